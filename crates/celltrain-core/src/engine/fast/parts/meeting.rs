//! Where the parts of a run meet at the end of every window.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::stop::{Interrupted, Stop};

/// A barrier that can be broken up: all that wait are told, and none waits for a part that will not come.
pub(super) struct Meeting {
    parts: usize,
    came: AtomicUsize,
    round: AtomicUsize,
    is_broken: AtomicBool,
    sleepers: Mutex<()>,
    bell: Condvar,
}

/// How often a part that waits looks before it yields its core, and how often it yields before it sleeps. Parts come within some tens of
/// microseconds of each other, and to be woken takes as long.
const LOOKS: u32 = 1 << 11;
const YIELDS: u32 = 1 << 4;
/// How long a part sleeps before it asks whether to go on.
const NAP: Duration = Duration::from_millis(20);

impl Meeting {
    pub(super) fn new(parts: usize) -> Self {
        Self {
            parts,
            came: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
            is_broken: AtomicBool::new(false),
            sleepers: Mutex::new(()),
            bell: Condvar::new(),
        }
    }

    /// Waits until all have come. All then see what each did before. A part that waits for long asks whether to go on.
    ///
    /// # Errors
    /// When it was broken up, or the part is told to stop.
    pub(super) fn meet(&self, stop: &Stop<'_>) -> Result<(), Interrupted> {
        let round = self.round.load(Ordering::Acquire);
        if self.came.fetch_add(1, Ordering::AcqRel) + 1 == self.parts {
            self.came.store(0, Ordering::Relaxed);
            let guard = self.lock();
            self.round.store(round.wrapping_add(1), Ordering::Release);
            drop(guard);
            self.bell.notify_all();
        } else {
            self.wait(round, stop)?;
        }
        if self.is_broken() { Err(Interrupted) } else { Ok(()) }
    }

    fn wait(&self, round: usize, stop: &Stop<'_>) -> Result<(), Interrupted> {
        let waits = || self.round.load(Ordering::Acquire) == round && !self.is_broken();
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
            stop.ask()?;
        }
    }

    /// Ends the waiting of all, and of those that come later.
    pub(super) fn break_up(&self) {
        let guard = self.lock();
        self.is_broken.store(true, Ordering::Release);
        drop(guard);
        self.bell.notify_all();
    }

    pub(super) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Breaks a meeting up when it is dropped before its part has ended, as in a panic.
pub(super) struct Attendance<'a> {
    pub(super) meeting: &'a Meeting,
    pub(super) has_ended: bool,
}

impl Drop for Attendance<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.meeting.break_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn nobody_goes_on_before_all_have_come() {
        let (meeting, steps) = (Meeting::new(3), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 0..500 {
                        steps.fetch_add(1, Ordering::Relaxed);
                        meeting.meet(&Stop::never()).unwrap();
                        let seen = steps.load(Ordering::Relaxed);
                        assert_eq!(seen, 3 * (round + 1), "in round {round}");
                        meeting.meet(&Stop::never()).unwrap();
                    }
                });
            }
        });
        assert_eq!(steps.into_inner(), 1500);
    }

    #[test]
    fn who_waits_is_told_when_another_will_not_come() {
        let meeting = Meeting::new(2);
        thread::scope(|scope| {
            let waits = scope.spawn(|| meeting.meet(&Stop::never()));
            drop(Attendance { meeting: &meeting, has_ended: false });
            assert_eq!(waits.join().unwrap(), Err(Interrupted));
        });
        assert_eq!(meeting.meet(&Stop::never()), Err(Interrupted), "nor does who comes later wait");
    }

    #[test]
    fn who_waits_hears_that_it_is_to_stop() {
        let meeting = Meeting::new(2);
        let left = Cell::new(3_u32);
        let go_on = || left.replace(left.get().saturating_sub(1)) > 0;
        assert_eq!(meeting.meet(&Stop::new(&go_on)), Err(Interrupted));
        assert_eq!(left.get(), 0, "it was asked until it said no");
    }
}
