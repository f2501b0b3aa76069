//! What comes in on one link: cells, or trains of them, in the order of their arrival.
//!
//! A link carries one cell at a time, so what it brings to a port is sorted, whatever VCs it holds.

use std::collections::VecDeque;
use std::ops::Range;

use super::batch::Batch;
use super::train::Train;
use crate::cell::Cell;
use crate::sizes::size;
use crate::units::Time;

/// A cell on its way to a port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arriving {
    pub(super) time: Time,
    /// Under its label at the port.
    pub(super) cell: Cell,
}

/// A list that grows at its end and is taken from its front.
#[derive(Clone, Debug)]
pub(super) struct Pipe<T> {
    items: Vec<T>,
    /// How many of them were taken.
    taken: usize,
}

impl<T: Copy> Pipe<T> {
    pub(super) const EMPTY: Self = Self { items: Vec::new(), taken: 0 };

    #[inline]
    pub(super) fn push(&mut self, item: T) {
        self.items.push(item);
    }

    /// What was not taken.
    #[inline]
    pub(super) fn rest(&self) -> &[T] {
        &self.items[self.taken..]
    }

    #[inline]
    pub(super) fn first(&self) -> Option<&T> {
        self.items.get(self.taken)
    }

    /// Whether all was taken, or nothing ever came.
    #[inline]
    fn is_empty(&self) -> bool {
        // What was taken goes when nothing else is left.
        self.items.is_empty()
    }

    /// Takes all.
    fn clear(&mut self) {
        self.items.clear();
        self.taken = 0;
    }

    /// Takes so many.
    #[inline]
    pub(super) fn take(&mut self, items: usize) {
        self.taken += items;
        debug_assert!(self.taken <= self.items.len(), "no more is taken than there is");
        // Each move of the rest is paid for by as many that were taken.
        if self.taken * 2 >= self.items.len() {
            self.items.copy_within(self.taken.., 0);
            self.items.truncate(self.items.len() - self.taken);
            self.taken = 0;
        }
    }
}

/// What comes in at all stream ports: port by port, each port's in the order of its inputs.
#[derive(Default)]
pub(super) struct Streams {
    /// Of each the arrival of its next cell; [`NEVER`] where none is on its way. They stand close together, as a port
    /// looks at all of its own for each batch, and most links bring nothing in it.
    next: Vec<Time>,
    all: Vec<Stream>,
}

impl Streams {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn extend(&mut self, more: impl IntoIterator<Item = Stream>) {
        self.all.extend(more);
        self.next.resize(self.all.len(), NEVER);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.all.iter()
    }

    pub(super) fn get(&self, number: usize) -> &Stream {
        &self.all[number]
    }

    pub(super) fn get_mut(&mut self, number: usize) -> &mut Stream {
        &mut self.all[number]
    }

    /// The first arrival of some that are in a row.
    #[inline]
    pub(super) fn first(&self, row: Range<usize>) -> Time {
        self.next[row].iter().copied().min().unwrap_or(NEVER)
    }

    /// A cell is on its way. Returns the port and the arrival where that may be the first there that matters elsewhere.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a cell")]
    pub(super) fn push(&mut self, number: u32, time: Time, cell: Cell) -> Option<(u32, Time)> {
        let stream = &mut self.all[number as usize];
        if stream.push(time, cell) {
            let may_matter = stream.note(&mut self.next[number as usize], time, cell);
            return may_matter.map(|arrival| (stream.port, arrival));
        }
        None
    }

    /// A train is on its way. Returns the port and the arrival of the cell that may be the first there that matters
    /// elsewhere.
    #[inline(never)]
    pub(super) fn join(&mut self, number: u32, train: Train) -> Option<(u32, Time)> {
        let (stream, next) = (&mut self.all[number as usize], &mut self.next[number as usize]);
        let Way::Trains(trains) = &mut stream.way else { return self.push_each(number, train) };
        let is_first = *next == NEVER;
        if is_first {
            *next = train.next;
        }
        if !trains.back_mut().is_some_and(|tail| tail.absorbs(&train)) {
            trains.push_back(train);
        }
        if stream.every_cell_matters {
            return is_first.then_some((stream.port, train.next));
        }
        // What came before may have been taken back since it was looked at, so the new cells alone can matter first.
        Some((stream.port, train.last()))
    }

    fn push_each(&mut self, number: u32, train: Train) -> Option<(u32, Time)> {
        let mut first = None;
        let mut time = train.next;
        for cell in train.run().iter() {
            first = first.or(self.push(number, time, cell));
            time += train.period;
        }
        first
    }

    /// Removes the last cells due of a stream of trains, which have not started.
    pub(super) fn take_back(&mut self, number: usize, mut cells: u32) {
        let Way::Trains(trains) = &mut self.all[number].way else { unreachable!("cells are taken back of trains") };
        while cells > 0 {
            let tail = trains.back_mut().expect("no more is taken back than was to come");
            cells -= tail.give_back(cells);
            if tail.cells == 0 {
                trains.pop_back();
            }
        }
        if trains.is_empty() {
            self.next[number] = NEVER;
        }
    }

    /// Hands over the cells of some that are in a row which arrive before `until`. Returns the first arrival, among what
    /// stays, that matters elsewhere.
    #[inline]
    pub(super) fn take_before(
        &mut self,
        row: Range<usize>,
        until: Time,
        every_cell_matters: bool,
        batch: &mut Batch,
    ) -> Time {
        let mut to_matter = NEVER;
        for (stream, next) in self.all[row.clone()].iter_mut().zip(&mut self.next[row]) {
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

/// What comes in on one link of a stream port: cells from a contended port, or trains from a host's or a shaped one. It is
/// one line of a processor's cache.
#[repr(align(64))]
pub(super) struct Stream {
    way: Way,
    /// Where only whole frames matter and single cells come: the arrivals of last cells and RM cells.
    ends: Option<Box<Ends>>,
    /// The number of the port among contended ports.
    pub(super) port: u32,
    /// Whether cells that end no frame have an effect elsewhere.
    every_cell_matters: bool,
    /// Whether each cell is worked on as soon as it is known that it will arrive. The port has no other stream, so nothing
    /// can come before it; and nothing is asked of the port before the end of the run, as all its cells go to hosts.
    pub(super) is_taken_at_once: bool,
    /// Whether another part simulates the port: what comes is kept for that part, and nothing of it matters here.
    pub(super) is_elsewhere: bool,
}

/// The arrivals of cells that matter elsewhere. Most streams have none, and a stream is to stay small.
#[derive(Default)]
struct Ends(VecDeque<Time>);

/// How cells are on their way.
enum Way {
    /// One by one, behind a contended port.
    Cells(Pipe<Arriving>),
    /// As they were sent.
    Trains(VecDeque<Train>),
}

/// Later than all.
pub(super) const NEVER: Time = Time(u64::MAX);

/// Memory of a stream.
pub(super) const BYTES: u64 = size::<Time>() + size::<Stream>() + size::<Ends>();
/// Memory of a cell on its way, with what lists that double keep free.
pub(super) const BYTES_PER_CELL: u64 = 2 * size::<Arriving>();

impl Stream {
    /// Nothing, on its way to a port.
    pub(super) fn new(port: u32, in_trains: bool, every_cell_matters: bool, is_taken_at_once: bool) -> Self {
        Self {
            way: if in_trains { Way::Trains(VecDeque::new()) } else { Way::Cells(Pipe::EMPTY) },
            ends: (!in_trains && !every_cell_matters).then(Box::default),
            port,
            every_cell_matters,
            is_taken_at_once,
            is_elsewhere: false,
        }
    }

    /// What comes in at a port that another part simulates.
    pub(super) fn elsewhere(port: u32) -> Self {
        Self { is_elsewhere: true, ..Self::new(port, false, true, false) }
    }

    /// The cells for another part.
    pub(super) fn cells_elsewhere(&self) -> &[Arriving] {
        debug_assert!(self.is_elsewhere, "what comes here stays here");
        let Way::Cells(cells) = &self.way else { unreachable!("{ONE_BY_ONE}") };
        cells.rest()
    }

    /// They have been told of.
    pub(super) fn forget_elsewhere(&mut self) {
        let Way::Cells(cells) = &mut self.way else { unreachable!("{ONE_BY_ONE}") };
        cells.clear();
    }

    /// A cell is on its way. Returns whether it is to be noted: it is the first, or ends a frame where only these matter.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a cell")]
    fn push(&mut self, time: Time, cell: Cell) -> bool {
        let Way::Cells(cells) = &mut self.way else { unreachable!("{ONE_BY_ONE}") };
        let is_first = cells.is_empty();
        cells.push(Arriving { time, cell });
        // One branch in all: the stream changes from cell to cell, so a branch on its kind would be a guess.
        is_first | (!self.every_cell_matters & (cell.last_cell() | cell.is_rm()))
    }

    /// Notes such a cell. Returns its arrival where that may be the first here that matters elsewhere.
    #[inline(never)]
    fn note(&mut self, next: &mut Time, time: Time, cell: Cell) -> Option<Time> {
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

    /// The first arrival of the end of a frame; one that never is where there is none.
    fn next_end(&self) -> Time {
        let end = match (&self.way, &self.ends) {
            (Way::Trains(trains), _) => trains.front().map(Train::last),
            (Way::Cells(_), Some(ends)) => ends.0.front().copied(),
            (Way::Cells(_), None) => None,
        };
        end.unwrap_or(NEVER)
    }

    /// Hands over the cells that arrive before `until`. Returns the arrival of the next.
    #[inline]
    fn take_before(&mut self, until: Time, batch: &mut Batch) -> Time {
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
