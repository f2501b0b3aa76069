//! Cancellation: slow work checks now and then whether to continue.
//!
//! Reading, checking, laying out, building and measuring a large network each take seconds. All of them take a
//! [`Stop`], count the pieces of work they do, and end with [`Interrupted`] when cancelled.

use std::cell::Cell;

/// The work was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

/// A cancellation check, made once in a number of pieces of work.
pub struct Stop<'a> {
    go_on: &'a dyn Fn() -> bool,
    /// Pieces of work between two checks.
    every: u64,
    /// Pieces of work until the next check.
    left: Cell<u64>,
}

/// A piece of work takes some tens of nanoseconds, a microsecond at most: a check comes within a millisecond, and its
/// cost is negligible.
const PIECES: u64 = 1024;

impl<'a> Stop<'a> {
    /// Creates a check that calls `go_on`. Once it has returned false it must not return true again.
    pub fn new(go_on: &'a dyn Fn() -> bool) -> Self {
        Self::every(PIECES, go_on)
    }

    /// Creates a check that calls `go_on` once in `pieces` pieces of work, and before the first.
    pub fn every(pieces: u64, go_on: &'a dyn Fn() -> bool) -> Self {
        Self { go_on, every: pieces, left: Cell::new(0) }
    }

    /// Creates a check that never cancels.
    pub fn never() -> Stop<'static> {
        Stop { go_on: &|| true, every: u64::MAX, left: Cell::new(u64::MAX) }
    }

    /// Checks now.
    ///
    /// # Errors
    /// If the work is cancelled.
    pub fn ask(&self) -> Result<(), Interrupted> {
        self.left.set(self.every);
        if (self.go_on)() { Ok(()) } else { Err(Interrupted) }
    }

    /// Counts a piece of work about to be done; checks if it is time to.
    ///
    /// # Errors
    /// If the work is cancelled.
    #[inline]
    pub fn step(&self) -> Result<(), Interrupted> {
        self.steps(1)
    }

    /// Counts several pieces of work about to be done, with at most one check.
    ///
    /// # Errors
    /// If the work is cancelled.
    #[inline]
    pub fn steps(&self, pieces: usize) -> Result<(), Interrupted> {
        let pieces = pieces as u64;
        let left = self.left.get();
        if left > pieces {
            self.left.set(left - pieces);
            return Ok(());
        }
        self.ask()
    }

    /// Counts work of several parts about to be done, with the pieces of each.
    ///
    /// # Errors
    /// If the work is cancelled.
    pub fn steps_of<const PARTS: usize>(&self, pieces: [usize; PARTS]) -> Result<(), Interrupted> {
        self.steps(pieces.into_iter().fold(0, usize::saturating_add))
    }

    /// Returns the items of a loop, and counts each as a piece of work.
    pub fn each<'b, I: IntoIterator>(
        &'b self,
        items: I,
    ) -> impl Iterator<Item = Result<I::Item, Interrupted>> + use<'b, 'a, I> {
        items.into_iter().map(|item| self.step().map(|()| item))
    }

    /// Maps each item of a loop, and counts each as a piece of work.
    ///
    /// # Errors
    /// If the work is cancelled.
    pub fn map<I: IntoIterator, T>(&self, items: I, mut one: impl FnMut(I::Item) -> T) -> Result<Vec<T>, Interrupted> {
        all(self.each(items).map(|item| item.map(&mut one)))
    }
}

/// Collects fallible items into a `Vec` sized at the start: grown step by step, as for iterators of unknown length, it
/// would take up to twice as much memory.
///
/// # Errors
/// If one of the items is an error.
pub fn all<T>(items: impl IntoIterator<Item = Result<T, Interrupted>>) -> Result<Vec<T>, Interrupted> {
    let items = items.into_iter();
    let mut all = Vec::with_capacity(items.size_hint().0);
    for item in items {
        all.push(item?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_comes_before_the_first_piece_of_work_and_then_once_in_so_many() {
        let asked = Cell::new(0);
        let count = || {
            asked.set(asked.get() + 1);
            true
        };
        let stop = Stop::every(10, &count);
        let mut questions = Vec::new();
        for _ in 0..31 {
            stop.step().unwrap();
            questions.push(asked.get());
        }
        let expected: Vec<u32> = (0..31).map(|piece| 1 + piece / 10).collect();
        assert_eq!(questions, expected);
        stop.steps(1_000_000).unwrap();
        assert_eq!(asked.get(), 5, "one question before a heavy piece of work, not many");
        // Nine are left of the ten that follow a check.
        stop.steps_of([3, 4]).unwrap();
        stop.steps_of([1, 1]).unwrap();
        assert_eq!(asked.get(), 5, "parts are counted together, each piece once");
        stop.step().unwrap();
        assert_eq!(asked.get(), 6);
    }

    #[test]
    fn work_ends_at_the_question_that_is_answered_with_no() {
        let asked = Cell::new(0);
        let twice = || {
            asked.set(asked.get() + 1);
            asked.get() <= 2
        };
        let stop = Stop::every(10, &twice);
        let done = stop.each(0..100).take_while(Result::is_ok).count();
        assert_eq!((done, asked.get()), (20, 3));
        assert_eq!(stop.map(0..100, |i| i), Err(Interrupted), "the answer stays no");
        let all = Stop::never().map(0..1025, |i| i).unwrap();
        assert!(all.iter().copied().eq(0..1025));
        assert_eq!(all.capacity(), 1025, "a list of as many");
    }
}
