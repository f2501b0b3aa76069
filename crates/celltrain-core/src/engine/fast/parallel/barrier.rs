//! The barrier at which partitions wait for each other at the end of every window.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::cancellation::{CancellationToken, Interrupted};

/// A cancellable barrier: cancelling wakes all waiters, so that no partition waits for one that failed.
pub(super) struct Barrier {
    partitions: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
    is_cancelled: AtomicBool,
    sleepers: Mutex<()>,
    bell: Condvar,
}

/// Number of checks of a waiting partition before it yields its core, and number of yields before it sleeps. Partitions
/// arrive within some tens of microseconds of each other, and waking one takes as long.
const LOOKS: u32 = 1 << 11;
const YIELDS: u32 = 1 << 4;
/// Sleep between two checks for cancellation of the run.
const NAP: Duration = Duration::from_millis(20);

impl Barrier {
    pub(super) fn new(partitions: usize) -> Self {
        Self {
            partitions,
            arrived: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
            is_cancelled: AtomicBool::new(false),
            sleepers: Mutex::new(()),
            bell: Condvar::new(),
        }
    }

    /// Waits until all partitions have arrived. Each then sees the writes of the others. A long wait checks for
    /// cancellation of the run.
    ///
    /// # Errors
    /// [`Interrupted`] if the barrier or the run is cancelled.
    pub(super) fn wait_for_all(&self, token: &CancellationToken<'_>) -> Result<(), Interrupted> {
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.partitions {
            self.arrived.store(0, Ordering::Relaxed);
            let guard = self.lock();
            self.round.store(round.wrapping_add(1), Ordering::Release);
            drop(guard);
            self.bell.notify_all();
        } else {
            self.wait(round, token)?;
        }
        if self.is_cancelled() { Err(Interrupted) } else { Ok(()) }
    }

    fn wait(&self, round: usize, token: &CancellationToken<'_>) -> Result<(), Interrupted> {
        let waits = || self.round.load(Ordering::Acquire) == round && !self.is_cancelled();
        for _ in 0..LOOKS {
            if !waits() {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        for _ in 0..YIELDS {
            if !waits() {
                return Ok(());
            }
            thread::yield_now();
        }
        loop {
            let guard = self.lock();
            if !waits() {
                return Ok(());
            }
            drop(self.bell.wait_timeout(guard, NAP).unwrap_or_else(PoisonError::into_inner));
            token.check()?;
        }
    }

    /// Wakes all waiters; later waits fail at once.
    pub(super) fn cancel(&self) {
        let guard = self.lock();
        self.is_cancelled.store(true, Ordering::Release);
        drop(guard);
        self.bell.notify_all();
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cancels a barrier if it is dropped before its partition has ended, as in a panic.
pub(super) struct BarrierGuard<'a> {
    pub(super) barrier: &'a Barrier,
    pub(super) has_ended: bool,
}

impl Drop for BarrierGuard<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.barrier.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_wait_ends_when_all_have_arrived() {
        let (barrier, steps) = (Barrier::new(3), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 0..500 {
                        steps.fetch_add(1, Ordering::Relaxed);
                        barrier.wait_for_all(&CancellationToken::never()).unwrap();
                        let seen = steps.load(Ordering::Relaxed);
                        assert_eq!(seen, 3 * (round + 1), "in round {round}");
                        barrier.wait_for_all(&CancellationToken::never()).unwrap();
                    }
                });
            }
        });
        assert_eq!(steps.into_inner(), 1500);
    }

    #[test]
    fn a_wait_ends_when_another_partition_fails() {
        let barrier = Barrier::new(2);
        thread::scope(|scope| {
            let waits = scope.spawn(|| barrier.wait_for_all(&CancellationToken::never()));
            drop(BarrierGuard { barrier: &barrier, has_ended: false });
            assert_eq!(waits.join().unwrap(), Err(Interrupted));
        });
        assert_eq!(barrier.wait_for_all(&CancellationToken::never()), Err(Interrupted), "later waits fail at once");
    }

    #[test]
    fn a_wait_ends_when_the_run_is_cancelled() {
        let barrier = Barrier::new(2);
        let left = Cell::new(3_u32);
        let go_on = || left.replace(left.get().saturating_sub(1)) > 0;
        assert_eq!(barrier.wait_for_all(&CancellationToken::new(&go_on)), Err(Interrupted));
        assert_eq!(left.get(), 0, "the wait checks until the run is cancelled");
    }
}
