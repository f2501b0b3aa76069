//! Arrivals at ports that store packets, taken from the inputs one by one.
//!
//! While packets arrive, inputs of the same rate alternate. So the next arrival of an input usually belongs at the end of
//! the list of inputs, and the list costs less than a sorted batch.

use super::inside::Inside;
use super::{MemoryPorts, Switch};
use crate::cell::Cell;
use crate::engine::fast::egress::Downstream;
use crate::engine::fast::ingress::{Among, CellIngress};
use crate::engine::fast::links::{Stream, Way};
use crate::engine::fast::train::{ArrivalOrder, InputArrival, Train, number};
use crate::units::Time;

/// The inputs with cells that arrive before a given time. Empty between calls.
pub(super) struct Merging {
    order: ArrivalOrder,
    /// The next arrivals at the start of a call.
    heads: Vec<InputArrival>,
    /// Simultaneous cells, each with its input.
    tied: Vec<(u32, Option<Cell>)>,
    /// The packet that arrives on each input.
    inside: Vec<Inside>,
}

impl Merging {
    pub(super) fn new(ingress: &CellIngress) -> Self {
        let inputs = ingress.at_node.len();
        let (heads, tied) = Default::default();
        Self { order: ArrivalOrder::new(inputs), heads, tied, inside: vec![Inside::NONE; inputs] }
    }
}

impl MemoryPorts {
    /// Takes the cells that arrive before `until`, in the order of [`CellIngress::hand_over`].
    #[inline(never)]
    pub(super) fn take_stored(&mut self, until: Time, downstream: &mut Downstream<'_>) {
        let Self { ingress, merging, switch, .. } = self;
        let nexts = downstream.links.row(ingress.row()).map(|(_, next)| *next).enumerate();
        let arrivals = nexts.filter(|&(_, next)| next < until);
        merging.heads.extend(arrivals.map(|(input, next)| InputArrival::new(next, number(input))));
        merging.heads.sort_unstable();
        merging.heads.drain(..).for_each(|head| merging.order.put(head));
        let follows_bursts = ingress.ties.follows_bursts();
        while merging.order.len() > 0 {
            let (now, input) = (merging.order.first().time(), merging.order.first().input());
            let cell = merging.take_next(ingress, (now, until), downstream);
            if merging.order.first().time() > now && !follows_bursts {
                let among = Among { is_first: true, is_last: true };
                switch.take(now, (input, cell), among, (ingress, &mut merging.inside), downstream);
                continue;
            }
            merging.tied.push((input, cell));
            while merging.order.first().time() == now {
                let input = merging.order.first().input();
                let cell = merging.take_next(ingress, (now, until), downstream);
                merging.tied.push((input, cell));
            }
            let at_node = &ingress.at_node;
            ingress.ties.order(now, &mut merging.tied, |&(input, _)| at_node[input as usize]);
            let last = merging.tied.len() - 1;
            for (i, arriving) in merging.tied.drain(..).enumerate() {
                let among = Among { is_first: i == 0, is_last: i == last };
                switch.take(now, arriving, among, (ingress, &mut merging.inside), downstream);
            }
        }
        for (input, inside) in merging.inside.iter_mut().enumerate() {
            if inside.is_any() {
                let stream = ingress.first_stream.input(number(input));
                switch.store_taken(inside, &mut downstream.links.streams[stream]);
                *inside = Inside::NONE;
            }
        }
        let to_matter = downstream.links.row(ingress.row()).map(|(stream, next)| {
            if ingress.every_cell_matters { *next } else { stream.next_to_matter(*next) }
        });
        ingress.next_to_matter = to_matter.min().filter(|&time| time < Time::NEVER);
        ingress.reached = ingress.reached.max(until);
    }
}

impl Merging {
    /// Takes the first arrival, and moves its input to the place of its next arrival. Returns `None` for a cell inside a
    /// packet.
    #[inline(always)]
    fn take_next(
        &mut self,
        ingress: &CellIngress,
        (now, until): (Time, Time),
        downstream: &mut Downstream<'_>,
    ) -> Option<Cell> {
        let input = self.order.first().input();
        let stream = ingress.first_stream.input(input);
        let (cell, next) = if let Some(period) = self.inside[input as usize].period() {
            (None, now + period)
        } else {
            let (cell, next) = downstream.links.streams[stream].take_first();
            (Some(cell), next)
        };
        if next < until {
            self.order.put_back_first(InputArrival::new(next, input));
        } else {
            self.order.pop_first();
            downstream.links.set_next(stream, next);
        }
        cell
    }
}

impl Switch {
    /// Takes an arriving cell, with its input; `None` stands for a cell inside a packet.
    #[inline(always)]
    fn take(
        &mut self,
        now: Time,
        (input, cell): (u32, Option<Cell>),
        among: Among,
        (ingress, inside): (&CellIngress, &mut [Inside]),
        downstream: &mut Downstream<'_>,
    ) {
        self.begin_instant::<true>(now, among, downstream);
        let inside = &mut inside[input as usize];
        if let Some(cell) = cell {
            self.store(now, cell, |vc, frame| downstream.fabric.packet_cells(vc, frame));
            if self.is_plain && !cell.last_cell() {
                let stream = ingress.first_stream.input(input);
                *inside = self.begin_inside(cell, downstream.links.streams[stream].train());
            }
        } else if !self.enter_inside(inside, now) || inside.period().is_none() {
            let stream = &mut downstream.links.streams[ingress.first_stream.input(input)];
            self.end_inside(inside, stream, now);
        }
        if among.is_last {
            self.end_instant::<true>(now, downstream);
        }
    }
}

impl Stream {
    /// Takes the next cell. Returns it, and the arrival of the cell after it.
    #[inline(always)]
    pub(super) fn take_first(&mut self) -> (Cell, Time) {
        match &mut self.way {
            Way::Trains(trains) => {
                let train = trains.front_mut().expect("an input with an arrival has a train");
                let cell = train.take(1).last;
                if train.cells > 0 {
                    return (cell, train.next);
                }
                trains.pop_front();
                (cell, trains.front().map_or(Time::NEVER, |train| train.next))
            }
            Way::Cells(cells) => {
                let cell = cells.rest()[0].cell;
                cells.take(1);
                (cell, cells.rest().first().map_or(Time::NEVER, |next| next.time))
            }
        }
    }

    /// Returns the train that arrives next, if cells come in trains.
    #[inline]
    fn train(&self) -> Option<&Train> {
        match &self.way {
            Way::Trains(trains) => trains.front(),
            Way::Cells(_) => None,
        }
    }
}
