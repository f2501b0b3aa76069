//! Arrivals at the ports of a memory, taken from the inputs one by one.
//!
//! Cells that arrive in the same instant on links of the same rate usually do so again one cell time later. So these inputs
//! stay together in one group. The next arrival of a group usually belongs at the end of the list of groups. Inputs whose
//! next cell begins a train are in a separate list.

use std::collections::VecDeque;

use super::inside::Inside;
use super::{MemoryPorts, Switch};
use crate::cell::Cell;
use crate::engine::fast::egress::Downstream;
use crate::engine::fast::ingress::CellIngress;
use crate::engine::fast::links::{Stream, StreamIndex, Way};
use crate::engine::fast::train::{InputArrival, Train, number};
use crate::units::Time;

/// The inputs with cells that arrive before a given time, and the packets that arrive.
pub(super) struct Merging {
    /// Groups of inputs, by the arrival of their next cells. Empty between calls, like all lists but `inside`.
    groups: VecDeque<Group>,
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
    /// Lists of inputs that are reused, so that no memory is allocated.
    spare: Vec<Vec<u32>>,
}

/// Inputs whose next cells arrive in the same instant.
struct Group {
    time: Time,
    /// Numbers of the inputs, in ascending order.
    inputs: Vec<u32>,
}

impl Merging {
    pub(super) fn new(ingress: &CellIngress) -> Self {
        let inputs = ingress.at_node.len();
        let (groups, later, tied, spare) = Default::default();
        let (cells, inside) = (vec![Cell::NONE; inputs], vec![Inside::NONE; inputs]);
        Self { groups, later, first_later: InputArrival::NONE, tied, cells, inside, spare }
    }

    pub(super) fn inside_mut(&mut self) -> impl Iterator<Item = &mut Inside> {
        self.inside.iter_mut()
    }
}

impl MemoryPorts {
    /// Takes the cells that arrive before `until`, in order of arrival; the scenario's rule decides ties.
    #[inline(always)]
    pub(super) fn take_arrivals<const DELIMITS: bool, const STORES: bool>(
        &mut self,
        until: Time,
        downstream: &mut Downstream<'_>,
    ) {
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
            merging.take_next::<STORES>(ingress, now, until, downstream);
            if merging.tied.len() > 1 || follows_bursts {
                let at_node = &ingress.at_node;
                ingress.ties.order(now, &mut merging.tied, |&input| at_node[input as usize]);
            }
            switch.begin_instant::<STORES>(now, downstream);
            for &input in &merging.tied {
                let cell = merging.cells[input as usize];
                if STORES {
                    let inside = &mut merging.inside[input as usize];
                    switch.take(now, cell, inside, ingress.first_stream.input(input), downstream);
                } else {
                    switch.arrive::<DELIMITS>(now, cell);
                }
            }
            merging.tied.clear();
            switch.end_instant::<STORES>(now, downstream);
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
        let first = self.groups.front().map_or(Time::NEVER, |group| group.time);
        let now = first.min(self.first_later.time());
        if now == first {
            let Group { inputs, .. } = self.groups.pop_front()?;
            self.spare.push(std::mem::replace(&mut self.tied, inputs));
        }
        if now == self.first_later.time() {
            while self.first_later.time() == now {
                self.tied.push(self.first_later.input());
                self.later.pop();
                self.update_first_later();
            }
            self.tied.sort_unstable();
        }
        Some(now)
    }

    fn update_first_later(&mut self) {
        self.first_later = self.later.last().copied().unwrap_or(InputArrival::NONE);
    }

    /// Takes the cells that arrive at `now`, on the inputs in `tied`.
    #[inline(always)]
    fn take_next<const STORES: bool>(
        &mut self,
        ingress: &CellIngress,
        now: Time,
        until: Time,
        downstream: &mut Downstream<'_>,
    ) {
        let mut group = Group { time: Time::NEVER, inputs: self.spare.pop().unwrap_or_default() };
        for i in 0..self.tied.len() {
            let input = self.tied[i];
            let stream = ingress.first_stream.input(input);
            let period = if STORES { self.inside[input as usize].period() } else { None };
            let (next, continues) = if let Some(period) = period {
                (now + period, true)
            } else {
                let (cell, next, continues) = downstream.links.streams[stream].take_first();
                self.cells[input as usize] = cell;
                (next, continues)
            };
            if next >= until {
                downstream.links.set_next(stream, next);
            } else if next == group.time {
                group.inputs.push(input);
            } else if continues {
                let inputs = self.spare.pop().unwrap_or_default();
                self.put(std::mem::replace(&mut group, Group { time: next, inputs }));
                group.inputs.push(input);
            } else {
                let arrival = InputArrival::new(next, input);
                let place = self.later.partition_point(|&other| other > arrival);
                self.later.insert(place, arrival);
                self.first_later = self.first_later.min(arrival);
            }
        }
        self.put(group);
    }

    /// Adds a group to the list. Usually it belongs at the end.
    #[inline]
    fn put(&mut self, group: Group) {
        if group.inputs.is_empty() {
            self.spare.push(group.inputs);
        } else if self.groups.back().is_none_or(|last| last.time < group.time) {
            self.groups.push_back(group);
        } else {
            self.insert(group);
        }
    }

    /// Adds a group before the end of the list, or joins it with another group.
    #[inline(never)]
    fn insert(&mut self, mut group: Group) {
        let place = self.groups.partition_point(|other| other.time < group.time);
        let other = &mut self.groups[place];
        if other.time == group.time {
            other.inputs.append(&mut group.inputs);
            other.inputs.sort_unstable();
            self.spare.push(group.inputs);
        } else {
            self.groups.insert(place, group);
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
    /// Takes the next cell. Returns it, the arrival of the cell after it, and false if that cell begins another train.
    #[inline(always)]
    pub(super) fn take_first(&mut self) -> (Cell, Time, bool) {
        match &mut self.way {
            Way::Trains(trains) => {
                let train = trains.front_mut().expect("an input with an arrival has a train");
                let cell = train.take(1).last;
                if train.cells > 0 {
                    return (cell, train.next, true);
                }
                trains.pop_front();
                (cell, trains.front().map_or(Time::NEVER, |train| train.next), false)
            }
            Way::Cells(cells) => {
                let cell = cells.rest()[0].cell;
                cells.take(1);
                (cell, cells.rest().first().map_or(Time::NEVER, |next| next.time), true)
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
