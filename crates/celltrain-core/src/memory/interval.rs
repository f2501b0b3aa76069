//! The clock of a policy that acts at the multiples of an interval. It skips multiples at which nothing can change.

use crate::units::{Span, Time};

/// A clock that is due at every multiple of an interval.
///
/// A sleeping clock causes no events, however short its interval is. If neither the queues nor the policy have changed
/// since the last action, another action would have no effect. So the policy lets the clock sleep until the queues
/// change.
#[derive(Debug)]
pub(super) struct IntervalClock {
    interval: Span,
    /// The first multiple of the interval that is now or in the future.
    next: Time,
    sleeps: bool,
}

impl IntervalClock {
    /// Creates a clock whose first action is due after one interval.
    pub(super) fn new(interval: Span) -> Self {
        Self { interval, next: Time::default() + interval, sleeps: false }
    }

    /// Returns the time of the next action, unless the clock sleeps.
    pub(super) fn next_time(&self) -> Option<Time> {
        (!self.sleeps).then_some(self.next)
    }

    /// Records that the policy has acted. If nothing `changed`, the clock sleeps.
    pub(super) fn acted(&mut self, changed: bool) {
        self.next = Time(self.next.0.saturating_add(self.interval.0));
        self.sleeps = !changed;
    }

    /// Records a change at `now`, after which the next action can have an effect again.
    #[inline]
    pub(super) fn wake(&mut self, now: Time) {
        if self.sleeps {
            self.sleeps = false;
            self.skip(now.0.div_ceil(self.interval.0));
        }
    }

    /// Records that all actions at `now` are complete. Changes after that, still at `now`, wait for the next multiple.
    pub(super) fn pass(&mut self, now: Time) {
        if self.sleeps {
            self.skip(now.0 / self.interval.0 + 1);
        }
    }

    /// Skips all multiples of the interval before the given multiple.
    fn skip(&mut self, multiple: u64) {
        self.next = self.next.max(Time(multiple.saturating_mul(self.interval.0)));
    }
}
