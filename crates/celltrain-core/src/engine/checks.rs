//! Checks whether all measured traffic is complete, so that a run may end before its duration.

use crate::end_systems::EndSystems;
use crate::network::Network;
use crate::traffic::Load;
use crate::units::{Clock, Span, Time};

/// The instants at which a run may end early.
pub(crate) struct Checks {
    /// End of the measured time. Later requests need not complete.
    to: Time,
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
        Some(Self { to, step, next: to.max(Time(1)) })
    }

    /// Returns whether the run ends at the present check. If not, the next check is due later.
    pub(crate) fn ends(&mut self, network: &Network, end_systems: &EndSystems) -> bool {
        self.next += self.step;
        let is_file = |load: Load<'_>| matches!(load, Load::Stream(Some(_)));
        let mut flows = network.flows.iter().zip(end_systems.connections());
        flows.all(|(flow, ends)| !is_file(flow.traffic.load()) || ends.completion().is_some())
            && end_systems.has_completed(self.to)
    }
}

/// Number of checks of a run that is measured from its start and lasts its whole duration.
const STEPS: u64 = 1000;
