//! Cells in flight, either single or in a train: cells of one frame that arrive at a fixed period. A port of trains
//! orders the trains on its links by next arrival.

use std::collections::VecDeque;

use super::timing::Effects;
use crate::cell::{Cell, Run};
use crate::index::Label;
use crate::units::{Span, Time};

/// A cell on its way to a port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arriving {
    pub(super) time: Time,
    /// The cell, with its label at the port.
    pub(super) cell: Cell,
}

/// Cells of one frame that arrive at a fixed period.
#[derive(Clone, Copy, Debug)]
pub(super) struct Train {
    pub(super) next: Time,
    /// Time from one cell to the next.
    pub(super) period: Span,
    /// Number of cells that have not arrived yet.
    pub(super) cells: u32,
    pub(super) ends_frame: bool,
    /// A cell of the train that does not end the frame, with the train's label at this port.
    pub(super) cell: Cell,
}

impl Train {
    /// Creates a train from the cells of a run, with a new label; the first cell arrives at `next`.
    pub(super) fn of(Run { last, cells }: Run, next: Time, period: Span, label: Label) -> Self {
        Self { next, period, cells, ends_frame: last.last_cell(), cell: last.not_last().relabelled(label) }
    }

    pub(super) fn last(&self) -> Time {
        self.next + self.period * u64::from(self.cells - 1)
    }

    /// Returns how many cells arrive before `until`. There must be at least one such cell.
    #[inline]
    pub(super) fn cells_before(&self, until: Time) -> u32 {
        if self.last() < until {
            self.cells
        } else if self.next + self.period >= until {
            1
        } else {
            let in_time = (until - self.next).0.div_ceil(self.period.0);
            u32::try_from(in_time).expect("the number of cells is at most the length of the train")
        }
    }

    /// Takes the cells that arrive before `until`. There must be at least one such cell.
    pub(super) fn take_before(&mut self, until: Time) -> Run {
        self.take(self.cells_before(until))
    }

    #[inline]
    pub(super) fn take(&mut self, cells: u32) -> Run {
        debug_assert!((1..=self.cells).contains(&cells), "only cells of the train are taken");
        self.cells -= cells;
        self.next += self.period * u64::from(cells);
        let ends_frame = self.cells == 0 && self.ends_frame;
        Run { last: if ends_frame { self.cell.ending_frame() } else { self.cell }, cells }
    }

    pub(super) fn run(&self) -> Run {
        Run { last: if self.ends_frame { self.cell.ending_frame() } else { self.cell }, cells: self.cells }
    }

    pub(super) const NONE: Train =
        Train { next: Time(0), period: Span(0), cells: 0, ends_frame: false, cell: Cell::NONE };

    /// Appends `later` if it continues this train at the same period. Returns whether `later` was appended.
    #[inline]
    pub(super) fn absorbs(&mut self, later: &Train) -> bool {
        // RM cells have their own numbers, so no two RM cells are equal.
        let goes_on = self.cell == later.cell && self.period == later.period && self.last() + self.period == later.next;
        if goes_on {
            self.cells += later.cells;
            self.ends_frame = later.ends_frame;
        }
        goes_on
    }

    /// Removes the last `cells` cells of the train, or all cells if there are fewer. Returns the number of removed
    /// cells.
    pub(super) fn give_back(&mut self, cells: u32) -> u32 {
        let back = cells.min(self.cells);
        self.cells -= back;
        self.ends_frame = false;
        back
    }
}

/// Returns how many of `cells` cells come after `now`, if the first comes at `first` and the others a `period` apart.
pub(super) fn cells_after(now: Time, first: Time, period: Span, cells: u32) -> u32 {
    let come = if first > now { 0 } else { (now - first).0 / period.0 + 1 };
    cells.saturating_sub(u32::try_from(come).unwrap_or(u32::MAX))
}

#[derive(Default)]
pub(super) struct TrainIngress {
    pub(super) inputs: Vec<Input>,
    /// Inputs with trains, ordered by the arrival of the input's next cell, then by number.
    pub(super) next: ArrivalOrder,
    effects: Effects,
}

/// One input, with its current train (without cells if there is no train) and the trains behind it.
#[derive(Clone, Debug)]
pub(super) struct Input {
    pub(super) train: Train,
    pub(super) behind: VecDeque<Train>,
    /// Cells of the train that have been interleaved, and the arrival time of the first of these cells.
    pub(super) interleaved: u32,
    pub(super) interleaved_since: Time,
}

pub(super) fn number(input: usize) -> u32 {
    u32::try_from(input).expect("all indices fit in 32 bits")
}

impl TrainIngress {
    pub(super) fn new(inputs: usize, effects: Effects) -> Self {
        let none = Input { train: Train::NONE, behind: VecDeque::new(), interleaved: 0, interleaved_since: Time(0) };
        Self { inputs: vec![none; inputs], next: ArrivalOrder::new(inputs), effects }
    }

    /// Adds a train to an input. Returns the arrival of the train's first cell that may have an effect elsewhere sooner
    /// than all earlier cells.
    #[inline]
    pub(super) fn join(&mut self, input: usize, train: Train) -> Option<Time> {
        let Input { train: head, behind, .. } = &mut self.inputs[input];
        if head.cells == 0 {
            *head = train;
            self.next.put(InputArrival::new(train.next, number(input)));
            if self.effects == Effects::EveryCell {
                return Some(train.next);
            }
        } else {
            let tail = behind.back_mut().unwrap_or(head);
            debug_assert!(tail.last() < train.next, "trains on a link arrive one after the other");
            if !tail.absorbs(&train) {
                behind.push_back(train);
            }
            if self.effects == Effects::EveryCell {
                return None;
            }
        }
        // Only new cells can make the earliest effect earlier, whether or not they were appended to another train.
        Some(train.last())
    }

    /// Removes the last cells on an input, which have not started.
    pub(super) fn take_back(&mut self, input: usize, mut cells: u32) {
        let Input { train: head, behind, .. } = &mut self.inputs[input];
        while cells > 0 {
            let tail = behind.back_mut().unwrap_or(head);
            cells -= tail.give_back(cells);
            if tail.cells == 0 && behind.pop_back().is_none() {
                assert_eq!(cells, 0, "no more cells are taken back than were expected");
                self.next.remove(number(input));
            }
        }
    }

    /// Takes the cells of the first input that arrive before `until`. There must be at least one. Returns the cells and
    /// their period.
    #[inline(always)]
    pub(super) fn take_first(&mut self, input: u32, until: Time) -> (Run, Span) {
        let Input { train, behind, .. } = &mut self.inputs[input as usize];
        let period = train.period;
        let run = train.take_before(until);
        if train.cells == 0 {
            let Some(next) = behind.pop_front() else {
                self.next.pop_first();
                return (run, period);
            };
            *train = next;
        }
        let next = train.next;
        self.next.put_back_first(InputArrival::new(next, input));
        (run, period)
    }
}

/// An input and the arrival of its next cell. Both are packed into one wide integer, so that two inputs are compared
/// with one subtraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InputArrival(u128);

impl InputArrival {
    /// An unused place in the list, which sorts after all arrivals.
    pub(super) const NONE: InputArrival = InputArrival(u128::MAX);

    pub(super) fn new(time: Time, input: u32) -> Self {
        Self(u128::from(time.0) << 64 | u128::from(input))
    }

    /// Returns the arrival time; for a free place, a time after the end of any run.
    pub(super) fn time(self) -> Time {
        Time((self.0 >> 64) as u64)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the cast keeps the lowest 32 bits, which are the input")]
    pub(super) fn input(self) -> u32 {
        self.0 as u32
    }
}

/// Inputs ordered by their next arrivals, then by number. Each input appears at most once.
///
/// The list is a ring. A new arrival usually belongs at the end, because trains arrive in the order of sending and
/// cells of simultaneous trains alternate. Most others belong near the front.
#[derive(Default)]
pub(super) struct ArrivalOrder {
    /// The number of places is a power of two. At least two places are free and contain [`InputArrival::NONE`].
    ring: Vec<InputArrival>,
    first: usize,
    len: usize,
}

impl ArrivalOrder {
    pub(super) fn new(inputs: usize) -> Self {
        Self { ring: vec![InputArrival::NONE; (inputs + 2).next_power_of_two()], first: 0, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn place(&self, i: usize) -> usize {
        self.first.wrapping_add(i) & (self.ring.len() - 1)
    }

    /// Returns the `i`th arrival, or an unused place if there are fewer arrivals.
    pub(super) fn at(&self, i: usize) -> InputArrival {
        self.ring[self.place(i)]
    }

    /// Returns the first arrival, or an unused place if there are no arrivals.
    pub(super) fn first(&self) -> InputArrival {
        self.at(0)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = InputArrival> {
        (0..self.len).map(|i| self.at(i))
    }

    /// Returns the number of inputs that share the first arrival time, and the time of the next arrival after it.
    #[inline]
    pub(super) fn tied(&self) -> (usize, Time) {
        let now = self.first().time();
        let mut tied = 1;
        loop {
            let after = self.at(tied).time();
            if after != now {
                return (tied, after);
            }
            tied += 1;
        }
    }

    #[inline]
    pub(super) fn pop_first(&mut self) {
        let first = self.first;
        self.ring[first] = InputArrival::NONE;
        self.first = self.place(1);
        self.len -= 1;
    }

    #[inline]
    pub(super) fn put(&mut self, arrival: InputArrival) {
        let end = self.place(self.len);
        if self.len == 0 || arrival > self.at(self.len - 1) {
            self.ring[end] = arrival;
            self.len += 1;
            return;
        }
        self.insert(arrival);
    }

    /// Inserts an arrival before the end, moving the arrivals on the shorter side.
    #[inline(never)]
    fn insert(&mut self, arrival: InputArrival) {
        let mut place = self.place(0);
        if arrival < self.at(self.len / 2) {
            self.first = self.place(self.ring.len() - 1);
            let mut hole = self.first;
            while self.ring[place] < arrival {
                self.ring[hole] = self.ring[place];
                hole = place;
                place = (place + 1) & (self.ring.len() - 1);
            }
            self.ring[hole] = arrival;
        } else {
            let mut hole = self.place(self.len);
            place = self.place(self.len - 1);
            while self.ring[place] > arrival {
                self.ring[hole] = self.ring[place];
                hole = place;
                place = place.wrapping_sub(1) & (self.ring.len() - 1);
            }
            self.ring[hole] = arrival;
        }
        self.len += 1;
    }

    /// Moves the first input to the place of its next arrival. Returns whether the input is still first.
    #[inline]
    pub(super) fn put_back_first(&mut self, arrival: InputArrival) -> bool {
        let first = self.first;
        if arrival < self.at(1) {
            self.ring[first] = arrival;
            return true;
        }
        let (last, end) = (self.place(self.len - 1), self.place(self.len));
        self.ring[first] = InputArrival::NONE;
        self.first = self.place(1);
        if arrival > self.ring[last] {
            // Cells of several inputs alternate.
            self.ring[end] = arrival;
        } else {
            self.len -= 1;
            self.insert(arrival);
        }
        false
    }

    pub(super) fn remove(&mut self, input: u32) {
        let mut place =
            (0..self.len).find(|&i| self.at(i).input() == input).expect("an input with a train has an arrival");
        while place + 1 < self.len {
            let (here, next) = (self.place(place), self.at(place + 1));
            self.ring[here] = next;
            place += 1;
        }
        let last = self.place(place);
        self.ring[last] = InputArrival::NONE;
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::tests::cell;
    use crate::rng::Stream;

    #[test]
    fn the_arrivals_in_a_train_of_cells_stay_in_time_order_after_any_changes() {
        let mut rng = Stream::new(1, "turns");
        for inputs in [1, 2, 3, 7, 40] {
            let mut order = ArrivalOrder::new(inputs as usize);
            let mut expected: Vec<InputArrival> = Vec::new();
            for _ in 0..2000 {
                let input = rng.below(inputs);
                let arrival = InputArrival::new(Time(u64::from(rng.below(50))), input);
                let place = expected.iter().position(|other| other.input() == input);
                match (place, rng.below(3)) {
                    (None, _) => {
                        order.put(arrival);
                        expected.push(arrival);
                    }
                    (Some(0), 0) => {
                        order.pop_first();
                        expected.remove(0);
                    }
                    (Some(0), _) => {
                        let is_first = order.put_back_first(arrival);
                        expected[0] = arrival;
                        assert_eq!(is_first, expected.iter().min() == Some(&arrival));
                    }
                    (Some(i), 0) => {
                        order.remove(input);
                        expected.remove(i);
                    }
                    (Some(_), _) => {}
                }
                expected.sort_unstable();
                assert!(order.iter().eq(expected.iter().copied()));
                assert_eq!((order.len(), order.at(expected.len())), (expected.len(), InputArrival::NONE));
                let now = expected.first().map(|arrival| arrival.time());
                let tied = expected.iter().take_while(|arrival| Some(arrival.time()) == now).count();
                if tied > 0 {
                    let after = expected.get(tied).map_or(InputArrival::NONE, |&arrival| arrival).time();
                    assert_eq!(order.tied(), (tied, after));
                }
            }
        }
    }

    /// Calls `check` for every small train that ends a frame, with its arrivals.
    fn all_trains(check: impl Fn(Train, &[u64])) {
        for (next, period, cells) in (0..3).flat_map(|n| (1..5).flat_map(move |p| (1..6).map(move |c| (n, p, c)))) {
            let run = Run { last: cell(0, 7, true), cells };
            let arrivals: Vec<u64> = (0..u64::from(cells)).map(|i| next + period * i).collect();
            check(Train::of(run, Time(next), Span(period), Label::new(3)), &arrivals);
        }
    }

    fn arrivals(train: &Train) -> Vec<u64> {
        (0..u64::from(train.cells)).map(|i| train.next.0 + train.period.0 * i).collect()
    }

    #[test]
    fn splitting_or_joining_trains_of_cells_gives_the_same_arrivals_as_splitting_or_joining_lists() {
        all_trains(|train, all| {
            assert_eq!(arrivals(&train), all);
            assert_eq!(train.last().0, *all.last().unwrap());
            for until in all[0] + 1..all[0] + 30 {
                let mut rest = train;
                let taken = rest.take_before(Time(until));
                let (before, after) = all.split_at(taken.cells as usize);
                assert!(before.iter().all(|&time| time < until) && after.iter().all(|&time| time >= until));
                assert_eq!(arrivals(&rest), after);
                assert_eq!(taken.last.last_cell(), after.is_empty(), "only the last cell ends the frame");
                let mut joined = Train { cells: taken.cells, ends_frame: false, ..train };
                assert_eq!(rest.cells > 0 && joined.absorbs(&rest), rest.cells > 0);
                assert!(rest.cells == 0 || (arrivals(&joined) == all && joined.ends_frame));
            }
        });
    }

    #[test]
    fn the_computed_number_of_cells_of_a_train_after_an_instant_matches_a_count() {
        all_trains(|train, all| {
            for now in 0..all[0] + 30 {
                let after = all.iter().filter(|&&time| time > now).count();
                assert_eq!(cells_after(Time(now), train.next, train.period, train.cells) as usize, after);
            }
        });
        assert_eq!(cells_after(Time(u64::MAX - 1), Time(0), Span(1), u32::MAX), 0, "all cells have come");
    }

    #[test]
    fn cells_can_be_removed_from_the_end_of_a_train() {
        all_trains(|train, all| {
            for cells in 1..8 {
                let mut rest = train;
                let back = rest.give_back(cells);
                assert_eq!(back, cells.min(train.cells));
                assert_eq!(arrivals(&rest), all[..all.len() - back as usize]);
                assert!(!rest.ends_frame, "the cell that ends the frame is the last one");
            }
        });
    }

    #[test]
    fn a_train_of_cells_is_extended_only_by_cells_that_continue_it_at_the_same_interval() {
        all_trains(|train, _| {
            let behind = Train { next: train.last() + train.period, ..train };
            let others = [
                Train { next: behind.next + Span(1), ..behind },
                Train { period: train.period + Span(1), ..behind },
                Train { cell: cell(0, 8, false).relabelled(Label::new(3)), ..behind },
                Train { cell: cell(0, 7, false).relabelled(Label::new(4)), ..behind },
            ];
            for other in others {
                let mut same = train;
                assert!(!same.absorbs(&other), "{other:?}");
                assert_eq!(arrivals(&same), arrivals(&train));
            }
        });
    }
}
