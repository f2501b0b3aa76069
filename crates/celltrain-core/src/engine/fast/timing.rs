//! Times of a contended port, and the rules that determine them.

use crate::marking::MarkedAt;
use crate::tie::ServiceOrder;
use crate::units::{Span, Time};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timing {
    pub(super) cell_time: Span,
    /// Shortest time from the start of a transmission to its first arrival with an effect.
    pub(super) least_lead: Span,
    /// Longest time from the start of a transmission to the end of its stage.
    pub(super) longest_lead: Span,
    /// Latest start of a cell that arrives by the horizon on every path.
    pub(super) latest_start: Time,
    /// Time up to which the run currently advances. No later event is simulated yet.
    pub(super) horizon: Time,
    /// End of the run. A cell that would start later stays in the queue.
    pub(super) end: Time,
    /// The cells that can have an effect elsewhere.
    pub(super) effects: Effects,
    pub(super) service: ServiceOrder,
    /// When a rule acts on single cells, if the port has such a rule. [`MarkedAt::Dequeue`] for a policy that decides at
    /// the head of the queue.
    pub(super) marks: Option<MarkedAt>,
    pub(super) arrivals: Arrivals,
}

/// Whether a port records arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrivals {
    Unrecorded,
    /// Recorded for the port's allocator.
    Recorded,
}

/// The cells of a port that can have an effect at another place, in order of their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effects {
    /// Only cells that end a frame, and RM cells, affect other nodes. All other cells go to hosts or wait until their
    /// frame is complete.
    #[default]
    FrameEnds,
    /// Every cell affects other nodes, because another contended port may follow.
    EveryCell,
}

impl Timing {
    /// Returns the instant before which departures precede the arrivals at `now`.
    #[inline]
    pub(super) fn served_before(&self, now: Time) -> Time {
        now + Span(u64::from(self.service == ServiceOrder::BeforeArrivals))
    }

    pub(super) fn marks(&self) -> bool {
        self.marks.is_some()
    }
}
