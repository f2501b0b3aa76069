//! Limit on the real time of a run.

use std::cell::Cell;
use std::time::Duration;

use crate::clock::Instant;

/// The limit of real time of one run, which includes the time for reading its scenario. A limit that was once found
/// exceeded remains exceeded.
pub(crate) struct Limit {
    most: Option<Duration>,
    spent: Duration,
    begun: Instant,
    passed: Cell<bool>,
}

impl Limit {
    /// Creates a time limit of which `spent` is already used. If `most` is `None`, the time is unlimited.
    pub(crate) fn new(most: Option<Duration>, spent: Duration) -> Self {
        Self { most, spent, begun: Instant::now(), passed: Cell::new(false) }
    }

    pub(crate) fn has_passed(&self) -> bool {
        let passed =
            self.passed.get() || self.most.is_some_and(|most| self.begun.elapsed().saturating_add(self.spent) > most);
        self.passed.set(passed);
        passed
    }

    /// Returns the limit if an earlier check found that the run exceeded it.
    pub(crate) fn found_passed(&self) -> Option<Duration> {
        self.most.filter(|_| self.passed.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_a_time_limit_has_expired_it_remains_expired() {
        let limit = Limit::new(Some(Duration::ZERO), Duration::ZERO);
        assert_eq!(limit.found_passed(), None, "no check was made yet");
        std::thread::sleep(Duration::from_millis(1));
        assert!(limit.has_passed());
        assert_eq!(limit.found_passed(), Some(Duration::ZERO));
    }

    #[test]
    fn a_run_without_a_time_limit_never_expires() {
        assert!(!Limit::new(None, Duration::MAX).has_passed());
    }
}
