//! A stream: the cells or trains in flight on one link, in the order of their arrival.
//!
//! A link carries one cell at a time, so what it brings to a port is sorted, whatever VCs it holds.

use std::collections::VecDeque;

use super::batch::Batch;
use super::plan::PortIndex;
use super::train::{Arriving, Train};
use crate::cell::Cell;
use crate::units::Time;

/// A list that grows at its end and is taken from its front.
#[derive(Clone, Debug)]
pub(super) struct Pipe<T> {
    items: Vec<T>,
    /// Number of items taken.
    taken: usize,
}

impl<T: Copy> Pipe<T> {
    pub(super) const EMPTY: Self = Self { items: Vec::new(), taken: 0 };

    #[inline]
    pub(super) fn push(&mut self, item: T) {
        self.items.push(item);
    }

    /// Returns the items not taken.
    #[inline]
    pub(super) fn rest(&self) -> &[T] {
        &self.items[self.taken..]
    }

    #[inline]
    pub(super) fn first(&self) -> Option<&T> {
        self.items.get(self.taken)
    }

    /// Returns whether all was taken, or nothing ever came.
    #[inline]
    fn is_empty(&self) -> bool {
        // Items that were taken are removed when no other is left.
        self.items.is_empty()
    }

    /// Takes all items.
    fn clear(&mut self) {
        self.items.clear();
        self.taken = 0;
    }

    /// Takes the first `items`.
    #[inline]
    pub(super) fn take(&mut self, items: usize) {
        self.taken += items;
        debug_assert!(self.taken <= self.items.len(), "no more is taken than there is");
        // The cost of moving the rest is amortized over the items taken.
        if self.taken * 2 >= self.items.len() {
            self.items.copy_within(self.taken.., 0);
            self.items.truncate(self.items.len() - self.taken);
            self.taken = 0;
        }
    }
}

/// The link into a port of single cells: cells from a contended port, or trains from a host's or a shaped port. It is
/// one line of a processor's cache.
#[repr(align(64))]
pub(super) struct Stream {
    way: Way,
    /// Arrivals of last cells and RM cells, if only whole frames matter and single cells come.
    ends: Option<Box<Ends>>,
    /// The port.
    pub(super) port: PortIndex,
    /// True if cells that end no frame have an effect elsewhere.
    every_cell_matters: bool,
    /// True if another partition simulates the port: its cells are kept for that partition, and have no effect here.
    pub(super) is_elsewhere: bool,
}

/// The arrivals of cells that matter elsewhere. Most streams have none, and a stream is to stay small.
#[derive(Default)]
struct Ends(VecDeque<Time>);

/// Form in which cells are in flight.
enum Way {
    /// One by one, behind a contended port.
    Cells(Pipe<Arriving>),
    /// As they were sent.
    Trains(VecDeque<Train>),
}

/// Later than all events.
pub(super) const NEVER: Time = Time(u64::MAX);

impl Stream {
    /// Creates an empty stream into a port.
    pub(super) fn new(port: PortIndex, in_trains: bool, every_cell_matters: bool) -> Self {
        Self {
            way: if in_trains { Way::Trains(VecDeque::new()) } else { Way::Cells(Pipe::EMPTY) },
            ends: (!in_trains && !every_cell_matters).then(Box::default),
            port,
            every_cell_matters,
            is_elsewhere: false,
        }
    }

    /// Creates the stream into a port that another partition simulates.
    pub(super) fn elsewhere(port: PortIndex) -> Self {
        Self { is_elsewhere: true, ..Self::new(port, false, true) }
    }

    /// Returns the cells for another partition.
    pub(super) fn cells_elsewhere(&self) -> &[Arriving] {
        debug_assert!(self.is_elsewhere, "what comes here stays here");
        let Way::Cells(cells) = &self.way else { unreachable!("{ONE_BY_ONE}") };
        cells.rest()
    }

    /// Removes the cells sent to another partition.
    pub(super) fn forget_elsewhere(&mut self) {
        let Way::Cells(cells) = &mut self.way else { unreachable!("{ONE_BY_ONE}") };
        cells.clear();
    }

    /// Returns whether trains come in, and not single cells.
    #[inline]
    pub(super) fn takes_trains(&self) -> bool {
        matches!(self.way, Way::Trains(_))
    }

    /// Adds a train. Returns the arrival of the cell that may be the first here that matters elsewhere.
    #[inline]
    pub(super) fn join(&mut self, next: &mut Time, train: Train) -> Option<Time> {
        let Way::Trains(trains) = &mut self.way else { unreachable!("only streams of trains are joined by trains") };
        let is_first = *next == NEVER;
        if is_first {
            *next = train.next;
        }
        if !trains.back_mut().is_some_and(|tail| tail.absorbs(&train)) {
            trains.push_back(train);
        }
        if self.every_cell_matters {
            return is_first.then_some(train.next);
        }
        // Earlier cells may have been taken back since they were looked at, so the new cells alone can matter first.
        Some(train.last())
    }

    /// Removes the last cells due, which have not started.
    pub(super) fn take_back(&mut self, next: &mut Time, mut cells: u32) {
        let Way::Trains(trains) = &mut self.way else { unreachable!("cells are taken back from trains") };
        while cells > 0 {
            let tail = trains.back_mut().expect("no more is taken back than was to come");
            cells -= tail.give_back(cells);
            if tail.cells == 0 {
                trains.pop_back();
            }
        }
        if trains.is_empty() {
            *next = NEVER;
        }
    }

    /// Adds a cell. Returns whether it must be noted: it is the first, or it ends a frame and only these matter.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a cell")]
    pub(super) fn push(&mut self, time: Time, cell: Cell) -> bool {
        let Way::Cells(cells) = &mut self.way else { unreachable!("{ONE_BY_ONE}") };
        let is_first = cells.is_empty();
        cells.push(Arriving { time, cell });
        // One branch in all: the stream changes from cell to cell, so a branch on its kind would be a guess.
        is_first | (!self.every_cell_matters & (cell.last_cell() | cell.is_rm()))
    }

    /// Notes such a cell. Returns its arrival if that may be the first here that matters elsewhere.
    #[inline(never)]
    pub(super) fn note(&mut self, next: &mut Time, time: Time, cell: Cell) -> Option<Time> {
        if self.is_elsewhere {
            return None;
        }
        let is_first = *next == NEVER;
        if is_first {
            *next = time;
        }
        let Some(Ends(ends)) = self.ends.as_deref_mut() else { return is_first.then_some(time) };
        if !(cell.last_cell() || cell.is_rm()) {
            return None;
        }
        ends.push_back(time);
        (ends.len() == 1).then_some(time)
    }

    /// Returns the first arrival of a frame's end, or [`NEVER`].
    pub(super) fn next_end(&self) -> Time {
        let end = match (&self.way, &self.ends) {
            (Way::Trains(trains), _) => trains.front().map(Train::last),
            (Way::Cells(_), Some(ends)) => ends.0.front().copied(),
            (Way::Cells(_), None) => None,
        };
        end.unwrap_or(NEVER)
    }

    /// Hands over the cells that arrive before `until`. Returns the arrival of the next.
    #[inline]
    pub(super) fn take_before(&mut self, until: Time, batch: &mut Batch) -> Time {
        let cells = match &mut self.way {
            Way::Cells(cells) => cells,
            Way::Trains(trains) => return take_from_trains(trains, until, batch),
        };
        let rest = cells.rest();
        let taken = batch.extend_before(until, rest);
        let next = rest.get(taken).map_or(NEVER, |arriving| arriving.time);
        cells.take(taken);
        if let Some(Ends(ends)) = self.ends.as_deref_mut() {
            while ends.front().is_some_and(|&end| end < until) {
                ends.pop_front();
            }
        }
        next
    }
}

const ONE_BY_ONE: &str = "cells of a contended port come one by one";

fn take_from_trains(trains: &mut VecDeque<Train>, until: Time, batch: &mut Batch) -> Time {
    while let Some(train) = trains.front_mut() {
        if train.next >= until {
            return train.next;
        }
        let (first, period) = (train.next, train.period);
        batch.extend_with_train(train.take_before(until), first, period);
        if train.cells > 0 {
            return train.next;
        }
        trains.pop_front();
    }
    NEVER
}
