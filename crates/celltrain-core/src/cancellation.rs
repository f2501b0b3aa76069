//! Cancellation: loops that run longer than about ten milliseconds regularly check whether to continue.
//!
//! The code that reads and resolves a large network and the event loops of the engines share one [`CancellationToken`].
//! Each loop counts its units of work, and ends with [`Interrupted`] if the token is cancelled. Other code takes less
//! than ten milliseconds or checks the token when it ends.

use std::cell::Cell;

/// Error that is returned after a cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

/// Reports whether the work is cancelled. Checks once per `every` units of work.
pub struct CancellationToken<'a> {
    go_on: &'a dyn Fn() -> bool,
    /// Units of work between two checks.
    every: u64,
    /// Units of work until the next check.
    left: Cell<u64>,
}

/// A unit of work takes at most a microsecond, usually some tens of nanoseconds. Therefore a check happens at least
/// every millisecond, at negligible cost.
const PIECES: u64 = 1024;

impl<'a> CancellationToken<'a> {
    /// Creates a token that is cancelled when `go_on` returns false. After that, `go_on` must never return true again.
    pub fn new(go_on: &'a dyn Fn() -> bool) -> Self {
        Self::every(PIECES, go_on)
    }

    /// Creates a token that checks before the first unit of work and then once every `pieces` units.
    pub fn every(pieces: u64, go_on: &'a dyn Fn() -> bool) -> Self {
        Self { go_on, every: pieces, left: Cell::new(0) }
    }

    /// Creates a token that is never cancelled.
    pub fn never() -> CancellationToken<'static> {
        CancellationToken { go_on: &|| true, every: u64::MAX, left: Cell::new(u64::MAX) }
    }

    /// Checks now whether the work is cancelled.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if the work is cancelled.
    pub fn check(&self) -> Result<(), Interrupted> {
        self.left.set(self.every);
        if (self.go_on)() { Ok(()) } else { Err(Interrupted) }
    }

    /// Counts units of work before they are done, and checks for cancellation after every `pieces` units.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if the work is cancelled.
    #[inline]
    pub fn tick(&self, pieces: usize) -> Result<(), Interrupted> {
        let pieces = pieces as u64;
        let left = self.left.get();
        if left > pieces {
            self.left.set(left - pieces);
            return Ok(());
        }
        self.check()
    }

    /// Iterates over the items and calls `tick` before each.
    pub fn each<'b, I: IntoIterator>(
        &'b self,
        items: I,
    ) -> impl Iterator<Item = Result<I::Item, Interrupted>> + use<'b, 'a, I> {
        items.into_iter().map(|item| self.tick(1).map(|()| item))
    }

    /// Returns whether a condition holds for one of the items, and calls `tick` before each.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if the work is cancelled.
    pub fn any<I: IntoIterator>(&self, items: I, holds: impl Fn(I::Item) -> bool) -> Result<bool, Interrupted> {
        for item in self.each(items) {
            if holds(item?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Maps the items of an iterator and calls `tick` before each.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if the work is cancelled.
    pub fn map<I: IntoIterator, T>(&self, items: I, mut one: impl FnMut(I::Item) -> T) -> Result<Vec<T>, Interrupted> {
        all(self.each(items).map(|item| item.map(&mut one)))
    }
}

/// Collects fallible items into a pre-sized `Vec`. A `Vec` that grows could use up to twice as much memory.
///
/// # Errors
/// Returns the first error.
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
    fn the_cancellation_callback_is_called_before_the_first_item_and_then_after_every_n_items() {
        let asked = Cell::new(0);
        let count = || {
            asked.set(asked.get() + 1);
            true
        };
        let token = CancellationToken::every(10, &count);
        let mut questions = Vec::new();
        for _ in 0..31 {
            token.tick(1).unwrap();
            questions.push(asked.get());
        }
        let expected: Vec<u32> = (0..31).map(|piece| 1 + piece / 10).collect();
        assert_eq!(questions, expected);
        token.tick(1_000_000).unwrap();
        assert_eq!(asked.get(), 5, "the callback is called once before heavy work starts");
        // After a check, the next nine units are not checked.
        token.tick(7).unwrap();
        token.tick(2).unwrap();
        assert_eq!(asked.get(), 5, "each piece of work is counted once");
        token.tick(1).unwrap();
        assert_eq!(asked.get(), 6);
    }

    #[test]
    fn processing_ends_when_the_cancellation_callback_returns_stop() {
        let asked = Cell::new(0);
        let twice = || {
            asked.set(asked.get() + 1);
            asked.get() <= 2
        };
        let token = CancellationToken::every(10, &twice);
        let done = token.each(0..100).take_while(Result::is_ok).count();
        assert_eq!((done, asked.get()), (20, 3));
        assert_eq!(token.map(0..100, |i| i), Err(Interrupted), "the token stays cancelled");
        let all = CancellationToken::never().map(0..1025, |i| i).unwrap();
        assert!(all.iter().copied().eq(0..1025));
        assert_eq!(all.capacity(), 1025, "the capacity of the list equals the number of items");
    }
}
