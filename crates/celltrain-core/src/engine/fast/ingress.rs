//! The ingress of a port of single cells, which takes cells from its streams in batches, in order of arrival.

use std::collections::VecDeque;
use std::ops::Range;

use super::links::{Links, Stream, StreamIndex, Way};
use super::timing::Effects;
use super::train::{Arriving, Train};
use crate::cell::{Cell, Run};
use crate::tie::TieBreaker;
use crate::units::{Span, Time};

/// The streams of a port. Cells that arrive before a given time are collected in batches and ordered by arrival; the
/// scenario's rule decides ties.
pub(super) struct CellIngress {
    pub(super) ties: TieBreaker,
    /// The first of the port's streams, which are consecutive.
    pub(super) first_stream: StreamIndex,
    /// The numbers of the port's links at the node. They decide ties.
    pub(super) at_node: Vec<u32>,
    /// The first arrival after the latest batch that can have an effect at another node.
    pub(super) next_to_matter: Option<Time>,
    /// The port has processed all arrivals before this instant.
    pub(super) reached: Time,
    /// A duration in which all inputs together deliver no more cells than fit in a batch.
    most_in_one_go: Span,
    /// The cells that have an effect elsewhere.
    effects: Effects,
}

/// Maximum number of cells in a batch.
const MOST: u64 = if cfg!(test) { 1 << 9 } else { BATCH_CELLS as u64 / 2 };
/// Maximum number of inputs for which batches are used.
pub(super) const MOST_INPUTS: usize = 1 << 7;
/// Above this number, a batch has no room for two cells from each input.
pub(super) const MOST_MEMORY_INPUTS: usize = BATCH_CELLS / 2;

impl CellIngress {
    /// Creates the ingress for the streams from `first_stream` on. `at_node` contains the numbers of their links at the
    /// node, in order. The fastest link delivers a cell every `least_spacing`. `effects` selects the cells that have
    /// an effect elsewhere.
    pub(super) fn new(
        ties: TieBreaker,
        first_stream: StreamIndex,
        at_node: Vec<u32>,
        least_spacing: Span,
        effects: Effects,
    ) -> Self {
        let inputs = at_node.len() as u64;
        let each = (MOST / inputs.max(1)).saturating_sub(1).max(1);
        Self {
            ties,
            first_stream,
            at_node,
            next_to_matter: None,
            reached: Time::default(),
            most_in_one_go: Span(least_spacing.0.saturating_mul(each)).min(LONGEST),
            effects,
        }
    }

    #[inline]
    pub(super) fn row(&self) -> Range<StreamIndex> {
        let first = usize::from(self.first_stream);
        self.first_stream..StreamIndex::from(first + self.at_node.len())
    }

    /// Returns the end of the next batch, so that all its cells fit. If the batch begins with an arrival, `first_of`
    /// returns its first instant.
    #[inline]
    pub(super) fn reach(&self, until: Time, links: &Links, first_of: impl Fn(Time) -> Time) -> Time {
        if until <= self.reached || until - self.reached <= self.most_in_one_go {
            return until;
        }
        let first = links.first(self.row()).min(until);
        until.min(first_of(first).max(self.reached) + self.most_in_one_go)
    }

    /// Collects the cells that arrive before `until`, in order of arrival. The batch must be empty.
    #[inline]
    pub(super) fn take_batch(&mut self, until: Time, links: &mut Links, batch: &mut Batch) {
        batch.base = self.reached;
        if until > self.reached && until - self.reached > self.most_in_one_go {
            batch.base = links.first(self.row()).min(until);
        }
        let mut to_matter = Time::NEVER;
        for (stream, next) in links.row(self.row()) {
            batch.begin_input();
            if *next < until {
                *next = batch.take_from(stream, until);
            }
            to_matter = to_matter.min(self.first_to_matter(stream, *next));
        }
        assert!(batch.cells.len() <= BATCH_CELLS, "a batch has a place for each cell");
        self.have_taken(until, to_matter);
        // Places follow the numbers of the inputs, so simultaneous cells are in that order.
        batch.sort();
    }

    /// Returns the first arrival with an effect on a stream whose next arrival is `next`.
    #[inline]
    pub(super) fn first_to_matter(&self, stream: &Stream, next: Time) -> Time {
        match self.effects {
            Effects::EveryCell => next,
            Effects::FrameEnds => stream.next_to_matter(next),
        }
    }

    /// Records that all cells that arrive before `until` have been taken, and that the first arrival with an effect
    /// after them is at `to_matter`.
    pub(super) fn have_taken(&mut self, until: Time, to_matter: Time) {
        self.next_to_matter = (to_matter < Time::NEVER).then_some(to_matter);
        self.reached = self.reached.max(until);
    }

    /// Calls `arrive` for each collected cell, with the time of arrival, the cell, and its place among the simultaneous
    /// cells.
    #[inline(always)]
    pub(super) fn hand_over(&mut self, batch: &mut Batch, mut arrive: impl FnMut(Time, Cell, Among)) {
        let base = batch.base;
        let Batch { keys, cells, firsts, .. } = batch;
        let mut keys = &mut keys[..];
        let follows_bursts = self.ties.follows_bursts();
        if follows_bursts {
            order_all(&mut self.ties, base, firsts, &self.at_node, keys);
        }
        let (mut before, mut tied) = (Span(u64::MAX), Span(u64::MAX));
        // The sentinel at the end has a time later than any cell's.
        while let [first, next, ..] = keys {
            let now = since(*first);
            let is_last = now != since(*next);
            if !is_last && tied != now {
                tied = now;
                if !follows_bursts {
                    tie(&mut self.ties, base, firsts, &self.at_node, keys);
                }
            }
            let key = keys[0];
            arrive(base + now, cells[place(key)], Among { is_first: before != now, is_last });
            before = now;
            keys = &mut keys[1..];
        }
        batch.clear();
    }
}

/// Position of a cell among simultaneous cells.
#[derive(Clone, Copy)]
pub(super) struct Among {
    pub(super) is_first: bool,
    pub(super) is_last: bool,
}

/// Orders cells that arrive in the same instant. These cells are at the front of `keys`, whose times are relative to
/// `base`. Returns the number of cells.
#[cold]
fn tie(ties: &mut TieBreaker, base: Time, firsts: &[u32], at_node: &[u32], keys: &mut [u64]) -> usize {
    let input = |key: &u64| at_node[firsts.partition_point(|&first| first as usize <= place(*key)) - 1];
    let now = since(keys[0]);
    let together = keys.iter().take_while(|&&key| since(key) == now).count();
    ties.order(base + now, &mut keys[..together], input);
    together
}

/// Orders all cells of a batch, for a tie breaker that must see all arrivals.
#[cold]
fn order_all(ties: &mut TieBreaker, base: Time, firsts: &[u32], at_node: &[u32], mut keys: &mut [u64]) {
    // The last key is a sentinel.
    while keys.len() > 1 {
        let together = tie(ties, base, firsts, at_node, keys);
        keys = &mut keys[together..];
    }
}

/// Cells sorted by arrival time. Simultaneous cells stay in the order in which they were added. All ports share one
/// batch, in turn, so that it stays in the processor's cache.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// The time from which times in keys are measured.
    base: Time,
    /// For each cell, its time since `base` and, in the low bits, its index in `cells`.
    keys: Vec<u64>,
    cells: Vec<Cell>,
    /// Index of each input's first cell, which decides the order of simultaneous cells.
    firsts: Vec<u32>,
    /// The ends of sorted parts of `keys`, and a list into which they are merged. Used only by [`Batch::sort`].
    ends: Vec<usize>,
    merged: Vec<u64>,
}

/// Number of bits for a cell's index in a batch.
const PLACE: u32 = 16;
const BATCH_CELLS: usize = 1 << PLACE;
const LONGEST: Span = Span((1 << (64 - PLACE)) - 2);
/// Larger than any key, because the time of a key is at most [`LONGEST`].
const BEHIND_ALL: u64 = u64::MAX;
const _: () = assert!(LONGEST.0 < BEHIND_ALL >> PLACE);

impl Batch {
    /// Starts the next link, even if the link has no cells.
    fn begin_input(&mut self) {
        self.firsts.push(u32::try_from(self.cells.len()).expect("the number of waiting cells fits in 32 bits"));
    }

    fn clear(&mut self) {
        self.firsts.clear();
        self.keys.clear();
        self.cells.clear();
    }

    /// Takes the cells of a stream that arrive before `until`. Returns the arrival of the next cell.
    #[inline]
    fn take_from(&mut self, stream: &mut Stream, until: Time) -> Time {
        let cells = match &mut stream.way {
            Way::Cells(cells) => cells,
            Way::Trains(trains) => return self.take_from_trains(trains, until),
        };
        let rest = cells.rest();
        let taken = self.extend_before(until, rest);
        let next = rest.get(taken).map_or(Time::NEVER, |arriving| arriving.time);
        cells.take(taken);
        next
    }

    fn take_from_trains(&mut self, trains: &mut VecDeque<Train>, until: Time) -> Time {
        while let Some(train) = trains.front_mut() {
            if train.next >= until {
                return train.next;
            }
            let (first, period) = (train.next, train.period);
            self.extend_with_train(train.take_before(until), first, period);
            if train.cells > 0 {
                return train.next;
            }
            trains.pop_front();
        }
        Time::NEVER
    }

    /// Adds the cells of the time-ordered list `on_their_way` that arrive before `until`. Returns their number.
    #[inline]
    fn extend_before(&mut self, until: Time, on_their_way: &[Arriving]) -> usize {
        let in_time = on_their_way.iter().take_while(|arriving| arriving.time < until).count();
        let (base, first) = (self.base, self.cells.len() as u64);
        let key = |(arriving, place): (&Arriving, u64)| (arriving.time - base).0 << PLACE | place;
        self.keys.extend(on_their_way[..in_time].iter().zip(first..).map(key));
        self.cells.extend(on_their_way[..in_time].iter().map(|arriving| arriving.cell));
        in_time
    }

    #[inline]
    fn extend_with_train(&mut self, run: Run, first: Time, period: Span) {
        let (since, place) = ((first - self.base).0, self.cells.len() as u64);
        let keys = (0..u64::from(run.cells)).map(|i| (since + period.0 * i) << PLACE | (place + i));
        self.keys.extend(keys);
        self.cells.extend((1..run.cells).map(|_| run.last.not_last()));
        self.cells.push(run.last);
    }

    /// Sorts the cells. The cells of each input are in order, so neighbouring inputs are merged until one list is left.
    fn sort(&mut self) {
        let Self { keys, firsts, ends, merged, .. } = self;
        for end in firsts.iter().skip(1).map(|&first| first as usize).chain([keys.len()]) {
            if end > ends.last().copied().unwrap_or(0) {
                ends.push(end);
            }
        }
        while ends.len() > 1 {
            merged.resize(keys.len(), 0);
            let (mut begin, mut lists) = (0, 0);
            for i in (0..ends.len()).step_by(2) {
                let (middle, end) = (ends[i], *ends.get(i + 1).unwrap_or(&ends[i]));
                merge(&keys[begin..middle], &keys[middle..end], &mut merged[begin..end]);
                ends[lists] = end;
                (begin, lists) = (end, lists + 1);
            }
            ends.truncate(lists);
            std::mem::swap(keys, merged);
        }
        ends.clear();
        debug_assert!(keys.is_sorted(), "the cells of each input arrive in order");
        keys.push(BEHIND_ALL);
    }
}

/// Merges two sorted lists. The processor cannot predict which key is smaller, so the loop does not branch on it.
#[inline]
fn merge(one: &[u64], other: &[u64], merged: &mut [u64]) {
    let (mut i, mut j) = (0, 0);
    while let (Some(&a), Some(&b)) = (one.get(i), other.get(j)) {
        let takes_one = a < b;
        merged[i + j] = if takes_one { a } else { b };
        i += usize::from(takes_one);
        j += usize::from(!takes_one);
    }
    let (from_one, from_other) = merged[i + j..].split_at_mut(one.len() - i);
    from_one.copy_from_slice(&one[i..]);
    from_other.copy_from_slice(&other[j..]);
}

/// Returns the time of a key since the base of its batch.
fn since(key: u64) -> Span {
    Span(key >> PLACE)
}

#[expect(clippy::cast_possible_truncation, reason = "the cast keeps the 16 bits of the index")]
fn place(key: u64) -> usize {
    key as usize & (BATCH_CELLS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    #[test]
    fn a_batch_sorts_its_cells_by_arrival_and_simultaneous_cells_by_input() {
        let mut rng = Stream::new(1, "batch");
        let mut batch = Batch::default();
        for inputs in (0..200).map(|i| i % 12) {
            let mut expected = Vec::new();
            for _ in 0..inputs {
                batch.begin_input();
                let mut time = u64::from(rng.below(4));
                for _ in 0..rng.below(5) {
                    let place = batch.cells.len() as u64;
                    batch.extend_with_train(Run { last: Cell::NONE, cells: 2 }, Time(time), Span(3));
                    expected.extend([(time, place), (time + 3, place + 1)]);
                    time += 4 + u64::from(rng.below(3));
                }
            }
            batch.sort();
            expected.sort_unstable();
            let key = |&key: &u64| (since(key).0, place(key) as u64);
            assert!(batch.keys[..expected.len()].iter().map(key).eq(expected));
            assert_eq!(batch.keys.last(), Some(&BEHIND_ALL));
            batch.clear();
        }
    }
}
