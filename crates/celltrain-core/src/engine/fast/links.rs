//! Cells in flight on the links into contended ports.
//!
//! A port adds cells to its outgoing links and takes arrived cells from its incoming links, so ports do not access each
//! other. Links also contain each port's [`EffectBound`], which gives the earliest effect of an arrival.

use std::collections::VecDeque;
use std::ops::Range;

use typed_index_collections::TiVec;

use super::plan::{AtOnceIndex, MemoryPlace, PortIndex};
use super::timing::Effects;
use super::train::{Arriving, Train, TrainIngress};
use crate::cell::Cell;
use crate::index::indices;
use crate::link_loss::LossyIndex;
use crate::units::{Span, Time};

indices! {
    /// A stream of single cells: the cells on one link into a port that takes streams.
    StreamIndex;
}

/// Cells in flight on the links into contended ports, by port and input.
#[derive(Default)]
pub(super) struct Links {
    pub(super) ingress: TiVec<PortIndex, Ingress>,
    bounds: TiVec<PortIndex, EffectBound>,
    /// Shortest time from the departure of a frame from its host to the arrival of its first cell, at ports that may take
    /// frames when they depart.
    leads_of_hosts: TiVec<PortIndex, Option<Span>>,
    /// Arrival of each stream's next cell, or [`Time::NEVER`]. Stored contiguously, because a port checks all its
    /// streams for each batch and most are empty.
    next: TiVec<StreamIndex, Time>,
    /// All streams, grouped by port and in the order of the port's inputs.
    pub(super) streams: TiVec<StreamIndex, Stream>,
}

/// The form in which cells arrive at a port.
pub(super) enum Ingress {
    /// Cells arrive as trains. A port takes the trains while it runs, and leaves an empty box in their place.
    Trains(Box<TrainIngress>),
    /// Cells arrive as consecutive streams, one per input. The value is the index of the first stream.
    Streams(StreamIndex),
    /// From a single port, which forwards each cell early. No [`ContendedPort`](super::contended_port::ContendedPort)
    /// is needed: each cell is processed before it arrives.
    AtOnce(AtOnceIndex),
    /// At the first port of the memory, which does the work of all its ports. The place of this port in the memory.
    Member(PortIndex, MemoryPlace),
    /// At the end of a link with losses. Cells that are not lost continue at once.
    Losses(LossyIndex),
    /// At the delay line of a link, which takes cells one by one as they arrive.
    Line(LossyIndex),
}

/// The earliest start of a cell that arrives at a port from now on, and the shortest time from that start to an effect
/// elsewhere.
#[derive(Clone, Copy)]
struct EffectBound {
    free_at: Time,
    least_lead: Span,
}

impl StreamIndex {
    /// Returns the stream of an input, if `self` is the stream of the first input.
    pub(super) fn input(self, input: u32) -> Self {
        Self::new(self.number() + input)
    }
}

impl Links {
    /// Adds the next port, at which cells arrive in the form `ingress`. After they start, cells need at least
    /// `least_lead` to arrive elsewhere. `lead_of_hosts` is given if the port may take frames when they depart.
    pub(super) fn add_port(&mut self, ingress: Ingress, least_lead: Span, lead_of_hosts: Option<Span>) {
        self.ingress.push(ingress);
        self.bounds.push(EffectBound { free_at: Time::default(), least_lead });
        self.leads_of_hosts.push(lead_of_hosts);
    }

    /// Returns the shortest time from the departure of a frame from its host to its arrival at a port, if the port may
    /// take frames when they depart.
    pub(super) fn lead_of_hosts(&self, port: PortIndex) -> Option<Span> {
        self.leads_of_hosts[port]
    }

    /// Returns whether no cell is in flight to a port of trains.
    pub(super) fn is_idle(&self, port: PortIndex) -> bool {
        matches!(&self.ingress[port], Ingress::Trains(trains) if trains.next.len() == 0)
    }

    /// Records that cells which arrive at `port` from now on start at `free_at` or later.
    pub(super) fn set_free_at(&mut self, port: PortIndex, free_at: Time) {
        self.bounds[port].free_at = free_at;
    }

    pub(super) fn add_streams(&mut self, row: impl IntoIterator<Item = Stream>) -> StreamIndex {
        let first = StreamIndex::from(self.streams.len());
        self.streams.extend(row);
        self.next.resize(self.streams.len(), Time::NEVER);
        first
    }

    /// Exchanges the trains on the links into `port` for the empty box that an idle port has. A second call reverses
    /// the exchange.
    #[inline]
    pub(super) fn swap_trains(&mut self, port: PortIndex, trains: &mut Box<TrainIngress>) {
        let Ingress::Trains(ours) = &mut self.ingress[port] else {
            unreachable!("cells arrive at this port in trains")
        };
        std::mem::swap(ours, trains);
    }

    /// Returns the port that does the work of `port`, and the place of `port` in its memory.
    pub(super) fn unit(&self, port: PortIndex) -> (PortIndex, MemoryPlace) {
        match self.ingress[port] {
            Ingress::Member(first, place) => (first, place),
            _ => (port, MemoryPlace::default()),
        }
    }

    /// Returns when unprocessed cells of `port` can first have an effect elsewhere. The first one on its links arrives
    /// at `next_arrival`, and from now on, arriving cells start at `free_at` or later.
    #[inline]
    pub(super) fn next_effect(
        &mut self,
        port: PortIndex,
        free_at: Time,
        next_arrival: Option<Time>,
        effect_of_waiting: Option<Time>,
    ) -> Option<Time> {
        self.set_free_at(port, free_at);
        let effect_of_next = next_arrival.map(|arrival| self.effect_of(port, arrival));
        effect_of_next.into_iter().chain(effect_of_waiting).min()
    }

    /// Returns when a cell that arrives at `arrival` can first have an effect elsewhere.
    #[inline]
    pub(super) fn effect_of(&self, port: PortIndex, arrival: Time) -> Time {
        let EffectBound { free_at, least_lead } = self.bounds[port];
        arrival.max(free_at) + least_lead
    }

    /// Adds a train to a stream. Returns the arrival of the train's first cell that may have an effect elsewhere sooner
    /// than all earlier cells.
    #[inline(never)]
    pub(super) fn join_stream(&mut self, stream: StreamIndex, train: Train) -> Option<Time> {
        let Stream { way, effects, .. } = &mut self.streams[stream];
        if let Way::Trains(trains) = way {
            let next = &mut self.next[stream];
            let is_first = *next == Time::NEVER;
            if is_first {
                *next = train.next;
            }
            debug_assert!(
                trains.back().is_none_or(|tail| tail.last() < train.next),
                "trains on a link arrive one after the other"
            );
            if !trains.back_mut().is_some_and(|tail| tail.absorbs(&train)) {
                trains.push_back(train);
            }
            if *effects == Effects::EveryCell {
                return is_first.then_some(train.next);
            }
            // Earlier cells may have been taken back since the last check, so a cell of this train may be the first
            // cell with an effect.
            return Some(train.last());
        }
        let mut first = None;
        let mut time = train.next;
        for cell in train.run().iter() {
            first = first.or(self.push(stream, time, cell));
            time += train.period;
        }
        first
    }

    /// Adds a cell to a stream. Returns its arrival if the cell may have an effect elsewhere sooner than all earlier
    /// cells.
    #[inline(always)]
    pub(super) fn push(&mut self, stream: StreamIndex, time: Time, cell: Cell) -> Option<Time> {
        let Stream { way: Way::Cells(cells), is_elsewhere, .. } = &mut self.streams[stream] else {
            unreachable!("{ONE_BY_ONE}")
        };
        let is_first = cells.is_empty();
        debug_assert!(cells.rest().last().is_none_or(|last| last.time < time), "cells on a link arrive one by one");
        cells.push(Arriving { time, cell });
        if !is_first || *is_elsewhere {
            return None;
        }
        self.next[stream] = time;
        Some(time)
    }

    /// Removes the last `cells` cells on an input of `port`, which have not started.
    pub(super) fn take_back(&mut self, port: PortIndex, input: u32, mut cells: u32) {
        match &mut self.ingress[port] {
            Ingress::Trains(trains) => trains.take_back(input as usize, cells),
            &mut Ingress::Streams(first) => {
                let stream = first.input(input);
                let Way::Trains(trains) = &mut self.streams[stream].way else {
                    unreachable!("cells are taken back from trains")
                };
                while cells > 0 {
                    let tail = trains.back_mut().expect("no more cells are taken back than were expected");
                    cells -= tail.give_back(cells);
                    if tail.cells == 0 {
                        trains.pop_back();
                    }
                }
                if trains.is_empty() {
                    self.next[stream] = Time::NEVER;
                }
            }
            Ingress::AtOnce(_) | Ingress::Member(..) | Ingress::Losses(_) | Ingress::Line(_) => {
                unreachable!("only shaped ports take cells back")
            }
        }
    }

    pub(super) fn first(&self, row: Range<StreamIndex>) -> Time {
        self.next[row].iter().copied().min().unwrap_or(Time::NEVER)
    }

    /// Sets the arrival of a stream's next cell after cells have been taken from the stream.
    #[inline]
    pub(super) fn set_next(&mut self, stream: StreamIndex, next: Time) {
        self.next[stream] = next;
    }

    /// Returns the next arrival of each stream in a row of streams.
    #[inline]
    pub(super) fn row(&mut self, row: Range<StreamIndex>) -> impl Iterator<Item = (&mut Stream, &mut Time)> {
        self.streams[row.clone()].iter_mut().zip(&mut self.next[row])
    }
}

/// A list with insertion at the end and removal at the front.
#[derive(Clone, Debug)]
pub(super) struct Pipe<T> {
    items: Vec<T>,
    taken: usize,
}

impl<T: Copy> Pipe<T> {
    pub(super) const EMPTY: Self = Self { items: Vec::new(), taken: 0 };

    pub(super) fn push(&mut self, item: T) {
        self.items.push(item);
    }

    pub(super) fn rest(&self) -> &[T] {
        &self.items[self.taken..]
    }

    /// Returns whether all items of the list have been taken.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        // Once the list is empty, also remove the taken items from memory.
        self.items.is_empty()
    }

    #[inline]
    pub(super) fn take(&mut self, items: usize) {
        self.taken += items;
        debug_assert!(self.taken <= self.items.len(), "no more cells are taken than exist");
        // The cost of moving the remaining items is amortized over the items taken.
        if self.taken * 2 >= self.items.len() {
            self.items.copy_within(self.taken.., 0);
            self.items.truncate(self.items.len() - self.taken);
            self.taken = 0;
        }
    }
}

/// The link into a port of single cells. Carries cells from a contended port, or trains from a host's or a shaped port.
/// It takes up one cache line.
#[repr(align(64))]
pub(super) struct Stream {
    pub(super) way: Way,
    pub(super) port: PortIndex,
    /// The cells that have an effect behind the port.
    effects: Effects,
    /// True if another partition simulates the port. The cells are then stored for that partition, and this partition
    /// does not process them.
    pub(super) is_elsewhere: bool,
}

const _: () =
    assert!(size_of::<Stream>() == 64 && size_of::<Train>() == 32, "the sizes match those on the design page");

/// The form in which cells travel to the port.
pub(super) enum Way {
    /// Single cells, after a contended port.
    Cells(Pipe<Arriving>),
    /// Trains, in the form in which the previous port sent them.
    Trains(VecDeque<Train>),
}

impl Way {
    pub(super) const NO_CELLS: Self = Self::Cells(Pipe::EMPTY);
    pub(super) const NO_TRAINS: Self = Self::Trains(VecDeque::new());
}

impl Stream {
    pub(super) fn new(port: PortIndex, way: Way, effects: Effects) -> Self {
        Self { way, port, effects, is_elsewhere: false }
    }

    /// Creates the stream into a port that another partition simulates.
    pub(super) fn elsewhere(port: PortIndex) -> Self {
        Self { is_elsewhere: true, ..Self::new(port, Way::NO_CELLS, Effects::EveryCell) }
    }

    /// Returns the cells that will be sent to another partition.
    pub(super) fn cells_elsewhere(&self) -> &[Arriving] {
        debug_assert!(self.is_elsewhere, "this partition keeps the cells of its own ports");
        let Way::Cells(cells) = &self.way else { unreachable!("{ONE_BY_ONE}") };
        cells.rest()
    }

    /// Removes the cells sent to another partition.
    pub(super) fn forget_elsewhere(&mut self) {
        let Way::Cells(cells) = &mut self.way else { unreachable!("{ONE_BY_ONE}") };
        cells.take(cells.rest().len());
    }

    /// Returns the first arrival with an effect, if only complete frames have an effect: the end of a train, or a
    /// single cell.
    #[inline]
    pub(super) fn next_to_matter(&self, next: Time) -> Time {
        match &self.way {
            Way::Trains(trains) => trains.front().map_or(Time::NEVER, Train::last),
            Way::Cells(_) => next,
        }
    }
}

pub(super) const HAS_THE_MEMORY: &str = "the first port of a memory represents all its ports";

const ONE_BY_ONE: &str = "cells of a contended port arrive one by one";
