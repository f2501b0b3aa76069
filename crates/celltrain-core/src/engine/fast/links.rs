//! Cells in flight on the links into contended ports.
//!
//! A port hands cells to the links behind it and takes cells that have arrived from the links in front of it, so ports
//! do not know each other. Links also hold each port's [`Horizon`], from which the earliest effect of an arrival
//! follows.

use std::ops::Range;

use typed_index_collections::TiVec;

use super::at_once::AtOnceIndex;
use super::batch::Batch;
use super::plan::PortIndex;
use super::stream::{NEVER, Stream};
use super::train::Train;
use super::train_ingress::TrainIngress;
use crate::cell::Cell;
use crate::index::indices;
use crate::units::{Span, Time};

indices! {
    /// A stream of single cells: the cells on one link of a port that takes streams.
    StreamIndex;
}

/// Cells in flight on the links into contended ports, by port and input.
#[derive(Default)]
pub(super) struct Links {
    ingress: TiVec<PortIndex, Ingress>,
    horizons: TiVec<PortIndex, Horizon>,
    /// By stream, the arrival of its next cell, or [`NEVER`]. They are adjacent in memory because a port checks all of
    /// its streams for each batch, and most links bring nothing.
    next: TiVec<StreamIndex, Time>,
    /// Port by port, each port's streams in the order of its inputs.
    streams: TiVec<StreamIndex, Stream>,
}

/// Form in which cells arrive at a port.
pub(super) enum Ingress {
    /// In trains. The port at work borrows them and leaves an empty box here.
    Trains(Box<TrainIngress>),
    /// In a row of streams, one for each input, starting with this one.
    Streams(StreamIndex),
    /// From one port only, which hands each cell over at once.
    AtOnce(AtOnceIndex),
}

/// The earliest start of a cell that arrives at a port, and how long after it the cell can have an effect elsewhere.
#[derive(Clone, Copy)]
struct Horizon {
    free_at: Time,
    least_lead: Span,
}

impl StreamIndex {
    /// Returns the stream of an input, if this is the first input's.
    #[inline]
    pub(super) fn input(self, input: u32) -> Self {
        Self::new(self.number() + input)
    }
}

impl Links {
    /// Adds the next port, whose cells come in as `ingress` and reach other places no sooner than `least_lead` after
    /// their start.
    pub(super) fn add_port(&mut self, ingress: Ingress, least_lead: Span) {
        self.ingress.push(ingress);
        self.horizons.push(Horizon { free_at: Time::default(), least_lead });
    }

    /// Adds a row of streams. Returns the first.
    pub(super) fn add_streams(&mut self, row: impl IntoIterator<Item = Stream>) -> StreamIndex {
        let first = StreamIndex::from(self.streams.len());
        self.streams.extend(row);
        self.next.resize(self.streams.len(), NEVER);
        first
    }

    /// Returns the form in which cells arrive at a port.
    pub(super) fn ingress(&self, port: PortIndex) -> &Ingress {
        &self.ingress[port]
    }

    pub(super) fn streams(&self) -> impl Iterator<Item = (StreamIndex, &Stream)> {
        self.streams.iter_enumerated()
    }

    pub(super) fn stream(&self, stream: StreamIndex) -> &Stream {
        &self.streams[stream]
    }

    pub(super) fn stream_mut(&mut self, stream: StreamIndex) -> &mut Stream {
        &mut self.streams[stream]
    }

    /// Exchanges the trains on the links into `port` with the empty ones that the port keeps while it is idle, or back.
    #[inline]
    pub(super) fn swap_trains(&mut self, port: PortIndex, trains: &mut Box<TrainIngress>) {
        let Ingress::Trains(ours) = &mut self.ingress[port] else { unreachable!("trains come in at this port") };
        std::mem::swap(ours, trains);
    }

    /// Sets the earliest start of cells that arrive at `port` from now on.
    #[inline]
    pub(super) fn set_free_at(&mut self, port: PortIndex, free_at: Time) {
        self.horizons[port].free_at = free_at;
    }

    /// Returns the form in which cells arrive at a port.
    #[inline]
    pub(super) fn ingress_mut(&mut self, port: PortIndex) -> &mut Ingress {
        &mut self.ingress[port]
    }

    /// Returns the earliest effect elsewhere of a cell that arrives at a port.
    #[inline]
    pub(super) fn effect_of(&self, port: PortIndex, arrival: Time) -> Time {
        let Horizon { free_at, least_lead } = self.horizons[port];
        arrival.max(free_at) + least_lead
    }

    /// Adds a train to a stream. Returns the arrival of its first cell that may matter elsewhere before all earlier
    /// cells.
    #[inline(never)]
    pub(super) fn join_stream(&mut self, stream: StreamIndex, train: Train) -> Option<Time> {
        let place = &mut self.streams[stream];
        if place.takes_trains() {
            return place.join(&mut self.next[stream], train);
        }
        let mut first = None;
        let mut time = train.next;
        for cell in train.run().iter() {
            first = first.or(self.push(stream, time, cell));
            time += train.period;
        }
        first
    }

    /// Adds a cell to a stream. Returns its arrival if it may matter elsewhere before all earlier cells.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a cell")]
    pub(super) fn push(&mut self, stream: StreamIndex, time: Time, cell: Cell) -> Option<Time> {
        let place = &mut self.streams[stream];
        if place.push(time, cell) { place.note(&mut self.next[stream], time, cell) } else { None }
    }

    /// Removes the last `cells` due on an input of `port`, which have not started.
    pub(super) fn take_back(&mut self, port: PortIndex, input: u32, cells: u32) {
        match &mut self.ingress[port] {
            Ingress::Trains(trains) => trains.take_back(input as usize, cells),
            &mut Ingress::Streams(first) => {
                let stream = first.input(input);
                self.streams[stream].take_back(&mut self.next[stream], cells);
            }
            Ingress::AtOnce(_) => unreachable!("only shaped ports take cells back"),
        }
    }

    /// Returns the first arrival in a row of streams.
    #[inline]
    pub(super) fn first(&self, row: Range<StreamIndex>) -> Time {
        self.next[row].iter().copied().min().unwrap_or(NEVER)
    }

    /// Moves the cells in a row of streams that arrive before `until` to `batch`. Returns the first arrival among the
    /// remaining cells that matters elsewhere.
    #[inline]
    pub(super) fn take_before(
        &mut self,
        row: Range<StreamIndex>,
        until: Time,
        every_cell_matters: bool,
        batch: &mut Batch,
    ) -> Time {
        let mut to_matter = NEVER;
        for (stream, next) in self.streams[row.clone()].iter_mut().zip(&mut self.next[row]) {
            batch.begin_input();
            if *next < until {
                batch.begin_run();
                *next = stream.take_before(until, batch);
            }
            to_matter = to_matter.min(if every_cell_matters { *next } else { stream.next_end() });
        }
        to_matter
    }
}
