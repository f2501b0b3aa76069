//! The ingress of a port of single cells: takes cells from its streams in batches, in order of arrival.

use std::ops::Range;

use super::links::{Links, NEVER, StreamIndex};
use super::train::Arriving;
use crate::cell::{Cell, Run};
use crate::tie::TieBreaker;
use crate::units::{Span, Time};

/// The streams of a port. It collects cells that arrive before an instant in batches, in order, with ties as the
/// scenario says.
pub(super) struct CellIngress {
    ties: TieBreaker,
    /// Its streams are a row among all.
    first_stream: StreamIndex,
    /// Numbers of its links at the node, which decide ties.
    at_node: Vec<u32>,
    /// The first arrival, among cells in flight, that matters elsewhere.
    next_to_matter: Option<Time>,
    /// Everything before is settled.
    reached: Time,
    /// The time in which all inputs together bring no more cells than a batch holds.
    most_in_one_go: Span,
    /// True if cells that end no frame have an effect elsewhere.
    every_cell_matters: bool,
}

/// Cells that are handled in a batch at most.
const MOST: u64 = if cfg!(test) { 1 << 9 } else { BATCH_CELLS as u64 / 2 };
/// More inputs than this are too many for a batch.
pub(super) const MOST_INPUTS: usize = 1 << 7;

impl CellIngress {
    /// Creates the ingress for the streams from `first_stream` on. `at_node` has the numbers of their links among those
    /// of the node, in order; the fastest of them brings a cell every `least_spacing`. `every_cell_matters`: cells that
    /// end no frame have an effect elsewhere too.
    pub(super) fn new(
        ties: TieBreaker,
        first_stream: StreamIndex,
        at_node: Vec<u32>,
        least_spacing: Span,
        every_cell_matters: bool,
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
            every_cell_matters,
        }
    }

    #[inline]
    fn row(&self) -> Range<StreamIndex> {
        let first = usize::from(self.first_stream);
        self.first_stream..StreamIndex::from(first + self.at_node.len())
    }

    /// Returns the first arrival that matters elsewhere, among cells in flight at the end of the latest batch.
    #[inline]
    pub(super) fn next_to_matter(&self) -> Option<Time> {
        self.next_to_matter
    }

    /// Returns the end of the next batch, so that every cell has a place. `first_of` returns the beginning of a batch
    /// that would begin with an arrival.
    #[inline]
    pub(super) fn reach(&self, until: Time, links: &Links, first_of: impl Fn(Time) -> Time) -> Time {
        if until <= self.reached || until - self.reached <= self.most_in_one_go {
            return until;
        }
        let first = links.first(self.row()).min(until);
        until.min(first_of(first).max(self.reached) + self.most_in_one_go)
    }

    /// Collects the cells that arrive before `until`, in order. The batch must be empty.
    #[inline]
    pub(super) fn take_batch(&mut self, until: Time, links: &mut Links, batch: &mut Batch) {
        batch.base = self.reached;
        if until > self.reached && until - self.reached > self.most_in_one_go {
            batch.base = links.first(self.row()).min(until);
        }
        let to_matter = links.take_before(self.row(), until, self.every_cell_matters, batch);
        assert!(batch.len() <= BATCH_CELLS, "a batch has a place for each cell");
        self.next_to_matter = (to_matter < NEVER).then_some(to_matter);
        self.reached = self.reached.max(until);
        // Places follow the numbers of the inputs, so cells that tie are in that order.
        batch.sort();
    }

    /// Hands over the collected cells: `arrive` gets the instant of a cell, the cell, and its place among the cells of
    /// the instant.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "what is done for a cell belongs into its loop")]
    pub(super) fn hand_over(&mut self, batch: &mut Batch, mut arrive: impl FnMut(Time, Cell, Among)) {
        let base = batch.base;
        let (mut keys, cells, firsts) = batch.sorted();
        let (mut before, mut tied) = (None, None);
        // The sentinel behind all is the last, and has the instant of no cell.
        while let [first, next, ..] = keys {
            let now = since(*first);
            let is_last = now != since(*next);
            if !is_last && tied != Some(now) {
                tied = Some(now);
                tie(&mut self.ties, firsts, &self.at_node, keys);
            }
            let key = keys[0];
            arrive(base + now, cells[place(key)], Among { is_first: before != Some(now), is_last });
            before = Some(now);
            keys = &mut keys[1..];
        }
        batch.clear();
    }
}

/// The place of a cell among those that arrive in the same instant.
#[derive(Clone, Copy)]
pub(super) struct Among {
    pub(super) is_first: bool,
    pub(super) is_last: bool,
}

/// Puts cells that arrive in the same instant in order: the first of some, which have more behind them.
#[cold]
fn tie(ties: &mut TieBreaker, firsts: &[u32], at_node: &[u32], keys: &mut [u64]) {
    let input = |key: &u64| at_node[firsts.partition_point(|&first| first as usize <= place(*key)) - 1];
    let now = since(keys[0]);
    let together = keys.iter().take_while(|&&key| since(key) == now).count();
    ties.order(&mut keys[..together], input);
}

/// Cells that are put in order of arrival, those that tie in the order in which they were added. One is lent to
/// whichever port is at work, so it stays near the processor.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// The instant from which times count.
    pub(super) base: Time,
    /// For each cell, its time since `base` and, in the low bits, its place in `cells`.
    keys: Vec<u64>,
    cells: Vec<Cell>,
    /// The first place of each input's cells, by which ties are decided.
    firsts: Vec<u32>,
    /// Start of each sorted run in `keys`, with [`BEFORE_ALL`] in front of it and [`BEHIND_ALL`] behind it.
    runs: Vec<u32>,
    /// Room for merging.
    merged: Vec<u64>,
}

/// Bits of a cell's place in a batch.
const PLACE: u32 = 16;
/// Cells of a batch at most.
const BATCH_CELLS: usize = 1 << PLACE;
/// The longest time of a batch.
const LONGEST: Span = Span((1 << (64 - PLACE)) - 2);
/// No key is less.
const BEFORE_ALL: u64 = 0;
/// Larger than any key, which has a time of at most [`LONGEST`].
const BEHIND_ALL: u64 = u64::MAX;

impl Batch {
    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Starts the cells of the next link, which may have none.
    #[inline]
    pub(super) fn begin_input(&mut self) {
        self.firsts.push(u32::try_from(self.cells.len()).expect("places fit 32 bits"));
    }

    /// Starts a sorted run.
    #[inline]
    pub(super) fn begin_run(&mut self) {
        if !self.runs.is_empty() {
            self.keys.push(BEHIND_ALL);
        }
        self.runs.push(u32::try_from(self.keys.len()).expect("places fit 32 bits"));
        self.keys.push(BEFORE_ALL);
    }

    pub(super) fn clear(&mut self) {
        self.runs.clear();
        self.firsts.clear();
        self.keys.clear();
        self.cells.clear();
    }

    /// Returns the keys with the sentinel behind them, the cells at their places, and the first place of each input.
    #[inline]
    pub(super) fn sorted(&mut self) -> (&mut [u64], &[Cell], &[u32]) {
        let keys = match &mut self.keys[..] {
            [BEFORE_ALL, keys @ ..] => keys,
            _ => &mut [],
        };
        (keys, &self.cells, &self.firsts)
    }

    /// Adds the cells of `on_their_way`, which are in order, that arrive before `until`. Returns how many.
    #[inline]
    pub(super) fn extend_before(&mut self, until: Time, on_their_way: &[Arriving]) -> usize {
        let in_time = on_their_way.iter().take_while(|arriving| arriving.time < until).count();
        let (base, first) = (self.base, self.cells.len() as u64);
        let key = |(arriving, place): (&Arriving, u64)| (arriving.time - base).0 << PLACE | place;
        self.keys.extend(on_their_way[..in_time].iter().zip(first..).map(key));
        self.cells.extend(on_their_way[..in_time].iter().map(|arriving| arriving.cell));
        in_time
    }

    #[inline]
    pub(super) fn extend_with_train(&mut self, run: Run, first: Time, period: Span) {
        let (since, place) = ((first - self.base).0, self.cells.len() as u64);
        let keys = (0..u64::from(run.cells)).map(|i| (since + period.0 * i) << PLACE | (place + i));
        self.keys.extend(keys);
        self.cells.extend((1..run.cells).map(|_| run.last.not_last()));
        self.cells.push(run.last);
    }

    /// Sorts the cells; those of each link are already in order.
    #[inline]
    pub(super) fn sort(&mut self) {
        if !self.runs.is_empty() {
            self.keys.push(BEHIND_ALL);
        }
        // Neighbours are merged until one run is left, so a cell is moved once for each doubling of the runs.
        while self.runs.len() > 1 {
            self.merge_pairs();
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
                let behind = out + end - first - 2;
                merge(&keys[first..middle as usize], &keys[middle as usize..end], &mut merged[out..behind]);
                out = behind;
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

/// Merges two runs into a third, each with the sentinels before and behind all. The next key and the end of a run are
/// unpredictable, so neither is a branch. The lesser half is merged from the front and the greater from the back: each
/// key waits for the one before it, so two are in progress at a time.
#[inline]
#[expect(clippy::many_single_char_names, reason = "places in two runs, from the front and from the back")]
fn merge(one: &[u64], other: &[u64], into: &mut [u64]) {
    let [before_all, keys @ .., behind_all] = into else {
        unreachable!("a run has the sentinels before and behind all")
    };
    (*before_all, *behind_all) = (BEFORE_ALL, BEHIND_ALL);
    let (lesser, greater) = keys.split_at_mut(keys.len().div_ceil(2));
    let (mut i, mut j) = (1, 1);
    let (mut k, mut l) = (one.len() - 2, other.len() - 2);
    let mut lesser = lesser.iter_mut();
    for (low, high) in greater.iter_mut().rev().zip(&mut lesser).map(|(high, low)| (low, high)) {
        let (a, b) = (one[i], other[j]);
        let takes_one = a < b;
        *low = if takes_one { a } else { b };
        i += usize::from(takes_one);
        j += usize::from(!takes_one);
        let (a, b) = (one[k], other[l]);
        let takes_one = a > b;
        *high = if takes_one { a } else { b };
        k -= usize::from(takes_one);
        l -= usize::from(!takes_one);
    }
    if let Some(middle) = lesser.next() {
        *middle = one[i].min(other[j]);
    }
}

/// Returns the time of a key since the base of its batch.
#[inline]
pub(super) fn since(key: u64) -> Span {
    Span(key >> PLACE)
}

/// Returns the place of a key's cell.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "a place has 16 bits")]
pub(super) fn place(key: u64) -> usize {
    key as usize & (BATCH_CELLS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::tests::cell;
    use crate::rng::Stream;

    /// Returns the times and places of cells that arrive at these instants, by input, in the order of a batch.
    fn in_order(inputs: &[Vec<u64>]) -> Vec<(u64, usize)> {
        let mut batch = Batch { base: Time(1000), ..Batch::default() };
        for arrivals in inputs {
            batch.begin_input();
            if !arrivals.is_empty() {
                batch.begin_run();
                let arriving = |&since: &u64| Arriving { time: Time(1000 + since), cell: cell(0, 0, false) };
                batch.extend_before(Time(u64::MAX), &arrivals.iter().map(arriving).collect::<Vec<_>>());
            }
        }
        batch.sort();
        let (keys, cells, firsts) = batch.sorted();
        let keys = keys.split_last_mut().map_or(&mut [][..], |(_, keys)| keys);
        assert_eq!((keys.len(), firsts.len()), (cells.len(), inputs.len()));
        keys.iter().map(|&key| (since(key).0, place(key))).collect()
    }

    fn expected(inputs: &[Vec<u64>]) -> Vec<(u64, usize)> {
        let mut all: Vec<_> = inputs.iter().flatten().copied().zip(0..).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn runs_of_any_lengths_are_merged_in_order() {
        let mut draws = Stream::new(1, "batches");
        for round in 0..5000 {
            let inputs = 1 + draws.below(9);
            let arrivals = |_| {
                let mut since: Vec<u64> = (0..draws.below(12)).map(|_| u64::from(draws.below(40))).collect();
                since.sort_unstable();
                // A link carries one cell at a time.
                since.dedup();
                since
            };
            let inputs: Vec<Vec<u64>> = (0..inputs).map(arrivals).collect();
            assert_eq!(in_order(&inputs), expected(&inputs), "{round}: {inputs:?}");
        }
    }

    #[test]
    fn the_smallest_runs_and_keys_are_merged_in_order() {
        // The key of a cell that arrives at the base in the first place is 0.
        for inputs in [
            vec![],
            vec![vec![]],
            vec![vec![0]],
            vec![vec![0], vec![0]],
            vec![vec![1], vec![0]],
            vec![vec![], vec![0], vec![]],
            vec![vec![0, 1, 2], vec![3]],
            vec![vec![3], vec![0, 1, 2]],
            vec![vec![0], vec![1], vec![0]],
            vec![vec![5, 6], vec![0, 9], vec![5, 6], vec![0], vec![LONGEST.0]],
        ] {
            assert_eq!(in_order(&inputs), expected(&inputs), "{inputs:?}");
        }
    }

    #[test]
    fn what_arrives_before_an_instant_is_added_however_many_those_are() {
        for (cells, in_time) in (0..19).flat_map(|cells| (0..=cells).map(move |in_time| (cells, in_time))) {
            let arriving = |i: u32| Arriving { time: Time(1000 + 3 * u64::from(i)), cell: cell(0, i, false) };
            let on_their_way: Vec<_> = (0..).map(arriving).take(cells).collect();
            // A cell at the instant itself does not arrive before it.
            let until = Time(1000 + 3 * in_time as u64);
            let mut batch = Batch { base: Time(1000), ..Batch::default() };
            batch.begin_input();
            batch.begin_run();
            assert_eq!(batch.extend_before(until, &on_their_way), in_time, "of {cells}");
            batch.sort();
            let (keys, cells, _) = batch.sorted();
            let times: Vec<_> = keys.iter().take(in_time).map(|&key| since(key).0).collect();
            assert_eq!(times, (0..in_time as u64).map(|i| 3 * i).collect::<Vec<_>>());
            let frames: Vec<_> = cells.iter().map(|cell| cell.frame.number() as usize).collect();
            assert_eq!(frames, (0..in_time).collect::<Vec<_>>());
        }
    }
}
