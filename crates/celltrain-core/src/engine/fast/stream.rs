//! What comes in on one link: cells, or trains of them, in the order of their arrival.
//!
//! A link carries one cell at a time, so what it brings to a port is sorted, whatever VCs it holds.

use std::collections::VecDeque;

use super::train::Train;
use crate::cell::{Cell, Run};
use crate::sizes::size;
use crate::units::{Span, Time};

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

/// What comes in on one link of a stream port: cells from a contended port, or trains from a host's or a shaped one. It is
/// one line of a processor's cache, as a port looks at all of its streams for each batch.
#[repr(align(64))]
pub(super) struct Stream {
    /// The arrival of the next cell; [`NEVER`] where none is on its way.
    next: Time,
    cells: Pipe<Arriving>,
    apart: Option<Box<Apart>>,
    /// The number of the port among contended ports.
    pub(super) port: u32,
    /// Whether cells that end no frame have an effect elsewhere.
    every_cell_matters: bool,
    /// Whether what comes is kept in trains.
    in_trains: bool,
    /// Whether each cell is worked on as soon as it is known that it will arrive. The port has no other stream, so nothing
    /// can come before it; and nothing is asked of the port before the end of the run, as all its cells go to hosts.
    pub(super) is_taken_at_once: bool,
}

/// What most streams do not have.
#[derive(Default)]
struct Apart {
    trains: VecDeque<Train>,
    /// Where only whole frames matter: the arrivals of last cells and RM cells, of those in `cells`.
    ends: VecDeque<Time>,
}

/// Later than all.
pub(super) const NEVER: Time = Time(u64::MAX);

/// No cell arrives at the beginning of a run, as every way takes time.
const ELSEWHERE: Time = Time(0);

/// Memory of a stream, with room for some cells.
pub(super) const BYTES: u64 = size::<Stream>() + size::<Apart>();
/// Memory of a cell on its way, with what lists that double keep free.
pub(super) const BYTES_PER_CELL: u64 = 2 * size::<Arriving>();

impl Stream {
    /// Nothing, on its way to a port.
    pub(super) fn new(port: u32, in_trains: bool, every_cell_matters: bool, is_taken_at_once: bool) -> Self {
        let is_plain = every_cell_matters && !in_trains;
        Self {
            next: NEVER,
            cells: Pipe::EMPTY,
            apart: (!is_plain).then(Box::default),
            port,
            every_cell_matters,
            in_trains,
            is_taken_at_once,
        }
    }

    /// What comes in at a port that another part simulates: it is kept for that part, and nothing of it matters here.
    /// The next arrival is one that has passed, so no cell is the first.
    pub(super) fn elsewhere(port: u32) -> Self {
        Self { next: ELSEWHERE, ..Self::new(port, false, true, false) }
    }

    /// Whether another part simulates the port.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.next == ELSEWHERE
    }

    /// The cells for another part.
    pub(super) fn cells_elsewhere(&self) -> &[Arriving] {
        debug_assert!(self.is_elsewhere(), "what comes here stays here");
        self.cells.rest()
    }

    /// They have been told of.
    pub(super) fn forget_elsewhere(&mut self) {
        self.cells.clear();
    }

    /// A cell is on its way. Returns its arrival where that may be the first here that matters elsewhere.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a cell")]
    pub(super) fn push(&mut self, time: Time, cell: Cell) -> Option<Time> {
        let is_first = self.next == NEVER;
        self.cells.push(Arriving { time, cell });
        self.next = if is_first { time } else { self.next };
        // One branch in all: the stream changes from cell to cell, so a branch on its kind would be a guess.
        let ends = cell.last_cell() | cell.is_rm();
        let may_matter = [ends, is_first][usize::from(self.every_cell_matters)];
        if may_matter { self.first_to_matter(time) } else { None }
    }

    #[inline(never)]
    fn first_to_matter(&mut self, time: Time) -> Option<Time> {
        if self.every_cell_matters {
            return Some(time);
        }
        let ends = &mut self.apart_mut().ends;
        ends.push_back(time);
        (ends.len() == 1).then_some(time)
    }

    fn apart_mut(&mut self) -> &mut Apart {
        self.apart.as_mut().expect("a stream of trains or whole frames has what most do not")
    }

    /// A train is on its way, likewise.
    #[inline(never)]
    pub(super) fn join(&mut self, train: Train) -> Option<Time> {
        if !self.in_trains {
            return self.push_each(train);
        }
        let is_first = self.next == NEVER;
        if is_first {
            self.next = train.next;
        }
        let trains = &mut self.apart_mut().trains;
        if !trains.back_mut().is_some_and(|tail| tail.absorbs(&train)) {
            trains.push_back(train);
        }
        if self.every_cell_matters {
            return is_first.then_some(train.next);
        }
        // What came before may have been taken back since it was looked at, so the new cells alone can matter first.
        Some(train.last())
    }

    fn push_each(&mut self, train: Train) -> Option<Time> {
        let mut first = None;
        let mut time = train.next;
        for cell in train.run().iter() {
            first = first.or(self.push(time, cell));
            time += train.period;
        }
        first
    }

    /// Removes the last cells due, which have not started.
    pub(super) fn take_back(&mut self, mut cells: u32) {
        let trains = &mut self.apart_mut().trains;
        while cells > 0 {
            let tail = trains.back_mut().expect("no more is taken back than was to come");
            cells -= tail.give_back(cells);
            if tail.cells == 0 {
                trains.pop_back();
            }
        }
        if trains.is_empty() {
            self.next = NEVER;
        }
    }

    /// The arrival of the next cell; one that never is where none is on its way.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// The first arrival that matters elsewhere, of what is on its way; one that never is where there is none.
    #[inline]
    pub(super) fn next_to_matter(&self) -> Time {
        if self.every_cell_matters { self.next } else { self.next_end() }
    }

    fn next_end(&self) -> Time {
        let Some(apart) = &self.apart else { return NEVER };
        let end = if self.in_trains { apart.trains.front().map(Train::last) } else { apart.ends.front().copied() };
        end.unwrap_or(NEVER)
    }

    /// Hands over the cells that arrive before `until`.
    #[inline]
    pub(super) fn take_before(&mut self, until: Time, batch: &mut Batch) {
        if self.in_trains {
            self.take_from_trains(until, batch);
            return;
        }
        let rest = self.cells.rest();
        let taken = rest.iter().take_while(|arriving| arriving.time < until).count();
        batch.extend(&rest[..taken]);
        self.next = rest.get(taken).map_or(NEVER, |arriving| arriving.time);
        self.cells.take(taken);
        if let Some(apart) = &mut self.apart {
            while apart.ends.front().is_some_and(|&end| end < until) {
                apart.ends.pop_front();
            }
        }
    }

    fn take_from_trains(&mut self, until: Time, batch: &mut Batch) {
        let trains = &mut self.apart.as_mut().expect("trains are kept apart").trains;
        while let Some(train) = trains.front_mut() {
            if train.next >= until {
                self.next = train.next;
                return;
            }
            let (first, period) = (train.next, train.period);
            batch.extend_with_train(train.take_before(until), first, period);
            if train.cells > 0 {
                self.next = train.next;
                return;
            }
            trains.pop_front();
        }
        self.next = NEVER;
    }
}

/// Cells that are put in order of arrival, those that tie in the order in which they were added. One is lent to whichever
/// port is at work, so it stays near the processor.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// The instant from which times count.
    pub(super) base: Time,
    /// Of each cell its time since `base` and, in the low bits, its place in `cells`.
    keys: Vec<u64>,
    cells: Vec<Cell>,
    /// The first place of each input's cells, by which ties are decided.
    firsts: Vec<u32>,
    /// Where each run of keys in order begins in `keys`; while there are several, [`BEHIND_ALL`] stands behind each.
    runs: Vec<u32>,
    /// Room for merging.
    merged: Vec<u64>,
}

/// Bits of a cell's place in a batch.
const PLACE: u32 = 16;
/// Cells of a batch at most.
pub(super) const MOST: usize = 1 << PLACE;
/// The longest time of a batch.
pub(super) const LONGEST: Span = Span((1 << (64 - PLACE)) - 2);
/// Larger than any key, which has a time of at most [`LONGEST`].
const BEHIND_ALL: u64 = u64::MAX;

impl Batch {
    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    /// What is added next comes in on the next link, if anything does.
    #[inline]
    pub(super) fn begin_input(&mut self) {
        self.firsts.push(u32::try_from(self.cells.len()).expect("places fit 16 bits"));
    }

    /// What is added next is in order.
    #[inline]
    pub(super) fn begin_run(&mut self) {
        if !self.runs.is_empty() {
            self.keys.push(BEHIND_ALL);
        }
        self.runs.push(u32::try_from(self.keys.len()).expect("places fit 32 bits"));
    }

    pub(super) fn clear(&mut self) {
        self.runs.clear();
        self.firsts.clear();
        self.keys.clear();
        self.cells.clear();
    }

    /// The keys, the cells that stand at their places, and the first place of each input.
    #[inline]
    pub(super) fn parts(&mut self) -> (&mut [u64], &[Cell], &[u32]) {
        (&mut self.keys, &self.cells, &self.firsts)
    }

    #[inline]
    fn extend(&mut self, arriving: &[Arriving]) {
        let (base, first) = (self.base, self.cells.len() as u64);
        let keys = arriving.iter().zip(first..).map(|(arriving, place)| (arriving.time - base).0 << PLACE | place);
        self.keys.extend(keys);
        self.cells.extend(arriving.iter().map(|arriving| arriving.cell));
    }

    #[inline]
    fn extend_with_train(&mut self, run: Run, first: Time, period: Span) {
        let (since, place) = ((first - self.base).0, self.cells.len() as u64);
        let keys = (0..u64::from(run.cells)).map(|i| (since + period.0 * i) << PLACE | (place + i));
        self.keys.extend(keys);
        self.cells.extend((1..run.cells).map(|_| run.last.not_last()));
        self.cells.push(run.last);
    }

    /// Puts them in order; those of each link are so already.
    #[inline]
    pub(super) fn sort(&mut self) {
        if self.runs.len() > 1 {
            self.keys.push(BEHIND_ALL);
            // Neighbours are merged until one run is left, so a cell is moved once for each doubling of the runs.
            while self.runs.len() > 1 {
                self.merge_pairs();
            }
            self.keys.pop();
        }
        self.runs.clear();
    }

    fn merge_pairs(&mut self) {
        let Self { keys, merged, runs, .. } = self;
        merged.resize(keys.len(), BEHIND_ALL);
        let (mut pair, mut left, mut out) = (0, 0, 0);
        while pair < runs.len() {
            let first = runs[pair] as usize;
            let end = runs.get(pair + 2).map_or(keys.len(), |&first| first as usize);
            runs[left] = u32::try_from(out).expect("places fit 32 bits");
            if let Some(&middle) = runs.get(pair + 1) {
                let cells = end - first - 2;
                merge(&keys[first..middle as usize], &keys[middle as usize..end], &mut merged[out..out + cells]);
                out += cells;
                merged[out] = BEHIND_ALL;
                out += 1;
            } else {
                merged[out..out + end - first].copy_from_slice(&keys[first..end]);
                out += end - first;
            }
            left += 1;
            pair += 2;
        }
        runs.truncate(left);
        merged.truncate(out);
        std::mem::swap(keys, merged);
    }
}

/// Merges two lists in order, which fill a third; behind each stands [`BEHIND_ALL`]. Which is next cannot be foreseen,
/// nor when one of them ends, so neither is a branch.
#[inline]
fn merge(one: &[u64], other: &[u64], into: &mut [u64]) {
    let (mut i, mut j) = (0, 0);
    for key in into {
        let (a, b) = (one[i], other[j]);
        let takes_one = a < b;
        *key = if takes_one { a } else { b };
        i += usize::from(takes_one);
        j += usize::from(!takes_one);
    }
}

/// Of a key: the time since the base of its batch.
#[inline]
pub(super) fn since(key: u64) -> Span {
    Span(key >> PLACE)
}

/// Of a key: the place of its cell.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "a place has 16 bits")]
pub(super) fn place(key: u64) -> usize {
    key as usize & (MOST - 1)
}
