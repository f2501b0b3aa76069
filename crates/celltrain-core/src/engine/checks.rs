//! Checks whether all measured traffic is complete, so that a run may end before its duration.

use crate::end_systems::EndSystems;
use crate::network::Network;
use crate::traffic::Load;
use crate::units::{Clock, Span, Time};

/// The instants at which a run may end early.
pub(crate) struct Checks {
    /// End of the measured time. Later requests need not complete.
    to: Time,
    /// First check.
    start: Time,
    step: Span,
    pub(crate) next: Time,
}

impl Checks {
    /// Returns the checks of a run; `None` if it lasts its whole duration.
    pub(crate) fn of(network: &Network, clock: Clock) -> Option<Self> {
        if network.until.is_duration() {
            return None;
        }
        let to = network.measure.to.map_or(Time::default(), |to| clock.time(to));
        let step = Span((clock.span(network.duration).0 / STEPS).max(1));
        let start = to.max(Time(1));
        Some(Self { to, start, step, next: start })
    }

    /// Returns whether the run ends at the current check, and schedules the next check.
    pub(crate) fn ends(&mut self, network: &Network, end_systems: &EndSystems) -> bool {
        self.next = self.following();
        let is_file = |load: Load<'_>| matches!(load, Load::Stream(Some(_)));
        let mut flows = network.flows.iter().zip(end_systems.connections());
        flows.all(|(flow, ends)| !is_file(flow.traffic.load()) || ends.completion().is_some())
            && end_systems.has_completed(self.to)
    }

    /// Returns the time of the next check. In the first step, the time between checks is a hundredth of the time since
    /// the start. So a run ends soon after its traffic, even if that is long before its duration ends.
    fn following(&self) -> Time {
        let passed = self.next - self.start;
        if passed >= self.step {
            return self.next + self.step;
        }
        let fine = Span((passed.0 / 100).max(self.step.0 / FIRST_STEPS).max(1));
        (self.next + fine).min(self.start + self.step)
    }
}

/// Number of checks of a run that is measured from its start and lasts its whole duration.
const STEPS: u64 = 1000;
/// Maximum number of intervals between checks in the first step.
const FIRST_STEPS: u64 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancellation_checks_become_rarer_as_simulated_time_passes_and_end_with_the_step() {
        let (start, step) = (Time(5_000), Span(1_000_000));
        let mut checks = Checks { to: start, start, step, next: start };
        let mut found = vec![start];
        while checks.next < start + step {
            checks.next = checks.following();
            found.push(checks.next);
        }
        assert_eq!(found.last(), Some(&Time(1_005_000)));
        assert_eq!(found[1] - found[0], Span(100));
        for pair in found.windows(2) {
            let passed = (pair[0] - start).0;
            assert!(pair[1] > pair[0] && (pair[1] - pair[0]).0 <= (passed / 100).max(100));
        }
        assert!(found.len() < 700);
        checks.next = checks.following();
        assert_eq!(checks.next, Time(2_005_000));
    }
}
