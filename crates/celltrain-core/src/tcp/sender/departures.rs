//! Limits on the departures of segments: bursts after an acknowledgement or a timeout, and the pace.

use crate::coverage::reached;
use crate::tcp::TcpOptions;
use crate::units::{Span, Time};

/// Limits on the segments that may leave now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departures {
    /// Number of segments that may still be sent because of the last acknowledgement or timeout.
    pub(super) left: u64,
    /// Limits on the number of segments sent together, if there are any.
    bursts: Option<Bursts>,
    pub(super) pace: Option<Pace>,
}

/// Largest numbers of segments sent because of one acknowledgement or one timeout.
#[derive(Clone, Copy, Debug)]
struct Bursts {
    largest: u64,
    in_recovery: u64,
}

/// The pacing state of a rate-limited sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    interval: Span,
    /// Earliest departure time of the next segment.
    pub(super) next: Time,
    /// True if a segment is waiting for `next`.
    pub(super) waiting: bool,
}

impl Departures {
    pub(super) fn new(options: &TcpOptions) -> Self {
        let (largest, in_recovery) = (options.window_rules().max_burst, options.recovery_rules().burst);
        let bursts = in_recovery.or(largest).map(|in_recovery| Bursts {
            largest: largest.map_or(u64::MAX, u64::from),
            in_recovery: in_recovery.into(),
        });
        Self { left: bursts.map_or(u64::MAX, |bursts| bursts.largest), bursts, pace: None }
    }

    /// Spaces segments at least `interval` apart.
    pub(super) fn paced(self, interval: Span) -> Self {
        Self { pace: Some(Pace { interval, next: Time::default(), waiting: false }), ..self }
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
        pace.waiting = now < pace.next;
        reached!(SegmentWaitsForPace if pace.waiting);
        if !pace.waiting {
            pace.next = now + pace.interval;
        }
        !pace.waiting
    }
}
