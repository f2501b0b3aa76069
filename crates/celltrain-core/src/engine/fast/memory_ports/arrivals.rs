//! Arrivals at ports that store packets, taken from the inputs one by one.
//!
//! While packets arrive, inputs of the same rate alternate. So the next arrival of an input usually belongs at the end of
//! the list of these inputs, and the list costs less than a sorted batch. Other inputs join the list at their next cell.

use super::inside::Inside;
use super::{MemoryPorts, Switch};
use crate::cell::Cell;
use crate::engine::fast::egress::Downstream;
use crate::engine::fast::ingress::{Among, CellIngress};
use crate::engine::fast::links::{Stream, StreamIndex, Way};
use crate::engine::fast::train::{ArrivalOrder, InputArrival, Train, number};
use crate::units::Time;

/// The inputs with cells that arrive before a given time. Empty between calls.
pub(super) struct Merging {
    order: ArrivalOrder,
    /// The inputs that are not in `order`, by the arrival of the next cell. The first arrival comes last.
    later: Vec<InputArrival>,
    /// The inputs of simultaneous cells.
    tied: Vec<u32>,
    /// The cell that has been taken from each input, unless it is inside a packet.
    cells: Vec<Cell>,
    /// The packet that arrives on each input.
    inside: Vec<Inside>,
}

impl Merging {
    pub(super) fn new(ingress: &CellIngress) -> Self {
        let inputs = ingress.at_node.len();
        let (later, tied) = Default::default();
        let (cells, inside) = (vec![Cell::NONE; inputs], vec![Inside::NONE; inputs]);
        Self { order: ArrivalOrder::new(inputs), later, tied, cells, inside }
    }
}

impl MemoryPorts {
    /// Takes the cells that arrive before `until`, in the order of [`CellIngress::hand_over`].
    #[inline(never)]
    pub(super) fn take_arrivals(&mut self, until: Time, downstream: &mut Downstream<'_>) {
        let Self { ingress, merging, switch, .. } = self;
        for (input, (stream, next)) in downstream.links.row(ingress.row()).enumerate() {
            if *next < until {
                merging.later.push(InputArrival::new(*next, number(input)));
                merging.inside[input] = switch.inside_of(stream.train());
            }
        }
        merging.later.sort_unstable_by(|a, b| b.cmp(a));
        let follows_bursts = ingress.ties.follows_bursts();
        while let Some((now, input)) = merging.first() {
            merging.take_next(ingress, (now, input), until, downstream);
            merging.tied.push(input);
            let mut next = merging.first();
            while let Some((_, input)) = next.filter(|&(time, _)| time == now) {
                merging.take_next(ingress, (now, input), until, downstream);
                merging.tied.push(input);
                next = merging.first();
            }
            if merging.tied.len() > 1 || follows_bursts {
                let at_node = &ingress.at_node;
                ingress.ties.order(now, &mut merging.tied, |&input| at_node[input as usize]);
            }
            switch.begin_instant::<true>(now, Among { is_first: true, is_last: true }, downstream);
            for &input in &merging.tied {
                let (cell, inside) = (merging.cells[input as usize], &mut merging.inside[input as usize]);
                switch.take(now, (cell, inside), ingress.first_stream.input(input), downstream);
            }
            merging.tied.clear();
            switch.end_instant::<true>(now, downstream);
        }
        let mut to_matter = Time::NEVER;
        for ((stream, next), inside) in downstream.links.row(ingress.row()).zip(&mut merging.inside) {
            if inside.is_any() {
                switch.store_taken(inside, stream);
                *inside = Inside::NONE;
            }
            to_matter = to_matter.min(if ingress.every_cell_matters { *next } else { stream.next_to_matter(*next) });
        }
        ingress.next_to_matter = (to_matter < Time::NEVER).then_some(to_matter);
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

    /// Takes the first arrival, whose input is the first one in `order`.
    #[inline(always)]
    fn take_next(
        &mut self,
        ingress: &CellIngress,
        (now, input): (Time, u32),
        until: Time,
        downstream: &mut Downstream<'_>,
    ) {
        let stream = ingress.first_stream.input(input);
        let next = if let Some(period) = self.inside[input as usize].period() {
            let next = now + period;
            if next < until {
                self.order.put_back_first(InputArrival::new(next, input));
                return;
            }
            next
        } else {
            let (cell, next) = downstream.links.streams[stream].take_first();
            self.cells[input as usize] = cell;
            next
        };
        self.order.pop_first();
        if next < until {
            let head = InputArrival::new(next, input);
            let place = self.later.partition_point(|&other| other > head);
            self.later.insert(place, head);
        } else {
            downstream.links.set_next(stream, next);
        }
    }
}

impl Switch {
    /// Takes the cell that arrives next on an input, which is `cell` unless it is inside a packet.
    #[inline(always)]
    fn take(
        &mut self,
        now: Time,
        (cell, inside): (Cell, &mut Inside),
        stream: StreamIndex,
        downstream: &mut Downstream<'_>,
    ) {
        if inside.goes_on() {
            if !self.enter_inside(inside, now) || !inside.goes_on() {
                self.end_inside(inside, &mut downstream.links.streams[stream], now);
            }
        } else {
            self.store(now, cell, |vc, frame| downstream.fabric.packet_cells(vc, frame));
            if !cell.last_cell() {
                *inside = self.inside_of(downstream.links.streams[stream].train());
            }
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
