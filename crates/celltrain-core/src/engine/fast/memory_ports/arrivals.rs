//! Arrivals at ports that store packets, taken from the inputs one by one.
//!
//! Cells that arrive in the same instant on links of the same rate usually do so again one cell time later. So these inputs
//! stay together as one entry. The next arrival of another input usually belongs at the end of the list of inputs that
//! alternate. Inputs that do not alternate are in a separate list.

use super::inside::Inside;
use super::{MemoryPorts, Switch};
use crate::cell::Cell;
use crate::engine::fast::egress::Downstream;
use crate::engine::fast::ingress::{Among, CellIngress};
use crate::engine::fast::links::{Stream, StreamIndex, Way};
use crate::engine::fast::train::{ArrivalOrder, InputArrival, Train, number};
use crate::units::Time;

/// The inputs with cells that arrive before a given time, and the packets that arrive.
pub(super) struct Merging {
    /// Inputs whose next cells arrive at `step`, by number. Empty between calls, like all lists but `inside`.
    in_step: Vec<u32>,
    /// [`Time::NEVER`] if no input is in `in_step`.
    step: Time,
    /// The inputs that alternate.
    order: ArrivalOrder,
    /// The other inputs, by the arrival of the next cell. The first arrival comes last.
    later: Vec<InputArrival>,
    /// The last entry of `later`, or [`InputArrival::NONE`].
    first_later: InputArrival,
    /// The inputs of simultaneous cells.
    tied: Vec<u32>,
    /// The cell that has been taken from each input, unless it is inside a packet.
    cells: Vec<Cell>,
    /// The packet that arrives on each input. Its cells that have entered are still part of their train.
    inside: Vec<Inside>,
}

impl Merging {
    pub(super) fn new(ingress: &CellIngress) -> Self {
        let inputs = ingress.at_node.len();
        let (in_step, later, tied) = Default::default();
        let (order, first_later) = (ArrivalOrder::new(inputs), InputArrival::NONE);
        let (cells, inside) = (vec![Cell::NONE; inputs], vec![Inside::NONE; inputs]);
        Self { in_step, step: Time::NEVER, order, later, first_later, tied, cells, inside }
    }

    pub(super) fn inside_mut(&mut self) -> impl Iterator<Item = &mut Inside> {
        self.inside.iter_mut()
    }
}

impl MemoryPorts {
    /// Takes the cells that arrive before `until`, in the order of [`CellIngress::hand_over`].
    #[inline(never)]
    pub(super) fn take_arrivals(&mut self, until: Time, downstream: &mut Downstream<'_>) {
        let Self { ingress, merging, switch, .. } = self;
        for (input, (_, next)) in downstream.links.row(ingress.row()).enumerate() {
            if *next < until {
                merging.later.push(InputArrival::new(*next, number(input)));
            }
        }
        merging.later.sort_unstable_by(|a, b| b.cmp(a));
        merging.update_first_later();
        let follows_bursts = ingress.ties.follows_bursts();
        while let Some(now) = merging.tie() {
            merging.take_next(ingress, now, until, downstream);
            if merging.tied.len() > 1 || follows_bursts {
                let at_node = &ingress.at_node;
                ingress.ties.order(now, &mut merging.tied, |&input| at_node[input as usize]);
            }
            switch.begin_instant::<true>(now, Among { is_first: true, is_last: true }, downstream);
            for &input in &merging.tied {
                let (cell, inside) = (merging.cells[input as usize], &mut merging.inside[input as usize]);
                switch.take(now, cell, inside, ingress.first_stream.input(input), downstream);
            }
            merging.tied.clear();
            switch.end_instant::<true>(now, downstream);
        }
        let mut to_matter = Time::NEVER;
        for (stream, next) in downstream.links.row(ingress.row()) {
            to_matter = to_matter.min(ingress.first_to_matter(stream, *next));
        }
        ingress.have_taken(until, to_matter);
    }
}

impl Merging {
    /// Moves the inputs of the first arrivals to `tied`, by number, and returns the time of these arrivals.
    #[inline(always)]
    fn tie(&mut self) -> Option<Time> {
        let mut first = self.first_other();
        let now = self.step.min(first.time());
        if now == Time::NEVER {
            return None;
        }
        if now == self.step {
            std::mem::swap(&mut self.tied, &mut self.in_step);
            self.step = Time::NEVER;
        }
        if now == first.time() {
            while first.time() == now {
                if first == self.first_later {
                    self.later.pop();
                    self.update_first_later();
                } else {
                    self.order.pop_first();
                }
                self.tied.push(first.input());
                first = self.first_other();
            }
            // The inputs that were in step come first in the list.
            self.tied.sort_unstable();
        }
        Some(now)
    }

    /// Returns the first arrival on an input that is not in `in_step`.
    #[inline(always)]
    fn first_other(&self) -> InputArrival {
        self.order.first().min(self.first_later)
    }

    fn update_first_later(&mut self) {
        self.first_later = self.later.last().copied().unwrap_or(InputArrival::NONE);
    }

    /// Takes the cells that arrive at `now`, on the inputs in `tied`.
    #[inline(always)]
    fn take_next(&mut self, ingress: &CellIngress, now: Time, until: Time, downstream: &mut Downstream<'_>) {
        let mut joins = false;
        for &input in &self.tied {
            let stream = ingress.first_stream.input(input);
            let period = self.inside[input as usize].period();
            let next = if let Some(period) = period {
                now + period
            } else {
                let (cell, next) = downstream.links.streams[stream].take_first();
                self.cells[input as usize] = cell;
                next
            };
            if next >= until {
                downstream.links.set_next(stream, next);
            } else if joins && next == self.step {
                self.in_step.push(input);
            } else if next < self.step {
                let later = self.in_step.drain(..).map(|input| InputArrival::new(self.step, input));
                later.for_each(|arrival| self.order.put(arrival));
                self.in_step.push(input);
                (self.step, joins) = (next, true);
            } else if period.is_some() {
                self.order.put(InputArrival::new(next, input));
            } else {
                let arrival = InputArrival::new(next, input);
                let place = self.later.partition_point(|&other| other > arrival);
                self.later.insert(place, arrival);
                self.first_later = self.first_later.min(arrival);
            }
        }
    }
}

impl Switch {
    /// Takes the cell that arrives next on an input, which is `cell` unless it is inside a packet.
    #[inline(always)]
    fn take(
        &mut self,
        now: Time,
        cell: Cell,
        inside: &mut Inside,
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
