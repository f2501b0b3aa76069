//! Limits on the departures of segments: bursts after an acknowledgement or a timeout, and the pace.

use super::deliveries::Deliveries;
use crate::coverage::reached;
use crate::tcp::pacing::{Pace, Pacing};
use crate::tcp::{Hystart, TcpOptions};
use crate::units::{Span, Time};

/// Limits on the segments that may leave now.
pub(super) struct Departures {
    /// Number of segments that may still be sent because of the last acknowledgement or timeout.
    pub(super) left: u64,
    /// Limits on the number of segments sent together, if there are any.
    bursts: Option<Bursts>,
    pub(super) pace: Option<Pace>,
    /// Samples of deliveries, if a control or `start.hystart` needs them.
    pub(super) deliveries: Option<Box<Deliveries>>,
}

/// Largest numbers of segments sent because of one acknowledgement or one timeout.
#[derive(Clone, Copy, Debug)]
struct Bursts {
    largest: u64,
    in_recovery: u64,
}

impl Departures {
    /// Creates the limits of a new connection. `interval` is the interval between segments of a control that paces.
    pub(super) fn new(options: &TcpOptions, selective: bool, interval: Option<Span>) -> Self {
        let rules = options.window_rules();
        let (largest, in_recovery) = (rules.max_burst, options.recovery_rules().burst);
        let bursts = in_recovery.or(largest).map(|in_recovery| Bursts {
            largest: largest.map_or(u64::MAX, u64::from),
            in_recovery: in_recovery.into(),
        });
        let pace = match interval {
            Some(interval) => Some(Pace::new(Span(0), Pacing::None).every(interval)),
            None => (rules.pacing == Pacing::Window).then(|| Pace::new(Span(0), rules.pacing)),
        };
        let samples = interval.is_some() || options.start_rules().hystart == Hystart::On;
        let deliveries = samples.then(|| Box::new(Deliveries::new(selective)));
        Self { left: bursts.map_or(u64::MAX, |bursts| bursts.largest), bursts, pace, deliveries }
    }

    /// Returns whether the pace or the samples depend on each acknowledgement.
    pub(super) fn watch_acks(&self) -> bool {
        self.pace.is_some() || self.deliveries.is_some()
    }

    /// Spaces segments at least `interval` apart.
    pub(super) fn paced(self, interval: Span) -> Self {
        let pace = self.pace.unwrap_or_else(|| Pace::new(interval, Pacing::None)).at_least(interval);
        Self { pace: Some(pace), ..self }
    }

    /// Allows the segments of a burst outside fast recovery.
    pub(super) fn begin_burst(&mut self) {
        self.left = self.bursts.map_or(u64::MAX, |bursts| bursts.largest);
    }

    /// Allows the segments of a burst after an acknowledgement. Calls `recovers` only if there are limits.
    #[inline]
    pub(super) fn on_ack(&mut self, recovers: impl FnOnce() -> bool) {
        if let Some(bursts) = self.bursts {
            self.left = if recovers() { bursts.in_recovery } else { bursts.largest };
        }
    }

    /// Returns whether the pace allows a segment now. If so, the segment counts as sent.
    #[inline]
    pub(super) fn allow(&mut self, now: Time) -> bool {
        let Some(pace) = &mut self.pace else { return true };
        let allowed = pace.allow(now);
        reached!(SegmentWaitsForPace if !allowed);
        allowed
    }
}
