//! Arrivals at ports that store packets, taken from the inputs one by one.
//!
//! While packets arrive, inputs of the same rate alternate. So the next arrival of an input usually belongs at the end of
//! the list of these inputs, and the list costs less than a sorted batch. Other inputs join the list at their next cell.

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
    /// The inputs that are not in `order`, by the arrival of the next cell. The first arrival comes last.
    later: Vec<InputArrival>,
    /// Simultaneous cells, each with its input.
    tied: Vec<(u32, Option<Cell>)>,
    /// The packet that arrives on each input.
    inside: Vec<Inside>,
}

impl Merging {
    pub(super) fn new(ingress: &CellIngress) -> Self {
        let inputs = ingress.at_node.len();
        let (later, tied) = Default::default();
        Self { order: ArrivalOrder::new(inputs), later, tied, inside: vec![Inside::NONE; inputs] }
    }
}

impl MemoryPorts {
    /// Takes the cells that arrive before `until`, in the order of [`CellIngress::hand_over`].
    #[inline(never)]
    pub(super) fn take_arrivals(&mut self, until: Time, downstream: &mut Downstream<'_>) {
        let Self { ingress, merging, switch, .. } = self;
        let nexts = downstream.links.row(ingress.row()).map(|(_, next)| *next).enumerate();
        let arrivals = nexts.filter(|&(_, next)| next < until);
        merging.later.extend(arrivals.map(|(input, next)| InputArrival::new(next, number(input))));
        merging.later.sort_unstable_by(|a, b| b.cmp(a));
        let follows_bursts = ingress.ties.follows_bursts();
        while let Some((now, input)) = merging.first() {
            let cell = merging.take_next(ingress, (now, input), until, downstream);
            let mut next = merging.first();
            if next.is_none_or(|(time, _)| time > now) && !follows_bursts {
                let among = Among { is_first: true, is_last: true };
                switch.take(now, (input, cell), among, (ingress, &mut merging.inside), downstream);
                continue;
            }
            merging.tied.push((input, cell));
            while let Some((_, input)) = next.filter(|&(time, _)| time == now) {
                let cell = merging.take_next(ingress, (now, input), until, downstream);
                merging.tied.push((input, cell));
                next = merging.first();
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
        let every_cell_matters = ingress.every_cell_matters;
        let to_matter = |(stream, next): (&mut Stream, &mut Time)| {
            if every_cell_matters { *next } else { stream.next_to_matter(*next) }
        };
        let to_matter = downstream.links.row(ingress.row()).map(to_matter).min();
        ingress.next_to_matter = to_matter.filter(|&time| time < Time::NEVER);
        ingress.reached = ingress.reached.max(until);
    }
}

impl Merging {
    /// Returns the first arrival, with its input. That input is then the first one in `order`.
    #[inline(always)]
    fn first(&mut self) -> Option<(Time, u32)> {
        if let Some(&head) = self.later.last()
            && head < self.order.first()
        {
            self.later.pop();
            self.order.put(head);
        }
        let first = self.order.first();
        (self.order.len() > 0).then(|| (first.time(), first.input()))
    }

    /// Takes the first arrival, whose input is the first one in `order`. Returns `None` for a cell inside a packet.
    #[inline(always)]
    fn take_next(
        &mut self,
        ingress: &CellIngress,
        (now, input): (Time, u32),
        until: Time,
        downstream: &mut Downstream<'_>,
    ) -> Option<Cell> {
        let stream = ingress.first_stream.input(input);
        let (cell, next) = if let Some(period) = self.inside[input as usize].period() {
            let next = now + period;
            if next < until {
                self.order.put_back_first(InputArrival::new(next, input));
                return None;
            }
            (None, next)
        } else {
            let (cell, next) = downstream.links.streams[stream].take_first();
            (Some(cell), next)
        };
        self.order.pop_first();
        if next < until {
            let head = InputArrival::new(next, input);
            let place = self.later.partition_point(|&other| other > head);
            self.later.insert(place, head);
        } else {
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
        self.begin_instant::<true, true>(now, among, downstream);
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
            self.end_instant::<true, true>(now, downstream);
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
