//! Hoe's fast recovery: fills one hole per round trip, and sends a new segment for every two duplicate
//! acknowledgements.
//!
//! Source: Hoe 1996, "Improving the start-up behavior of a congestion control scheme for TCP"; `docs/mechanisms.md`
//! 3.6, the default of A-26. Differences from the source: ssthresh is not initialized from a bandwidth estimate.
//! Duplicates are counted over the whole phase, from the fourth on. As after a fast retransmit, no new phase starts
//! until everything sent before a timeout is acknowledged.

use super::{Choice, Flight, Progress, Reaction, Recovery, THRESHOLD, Timer};
use crate::coverage::reached;
use crate::tcp::congestion::Windows;

/// The phase from a fast retransmit until everything that was outstanding is acknowledged.
#[derive(Debug, Default)]
pub struct NewrenoHoe {
    dup_acks: u32,
    /// Offset that must be acknowledged before another fast retransmit.
    recover: u64,
    recovering: bool,
    /// New segments allowed by the phase's duplicates and not yet sent.
    allowed: u32,
}

/// Hoe 1996: duplicates needed for one new segment.
const DUPLICATES_PER_SEGMENT: u32 = 2;

impl Recovery for NewrenoHoe {
    fn on_duplicate_ack(&mut self, flight: &Flight<'_>, _news: bool, windows: &mut Windows) -> Reaction {
        self.dup_acks += 1;
        if self.recovering {
            self.allowed += u32::from(self.dup_acks.is_multiple_of(DUPLICATES_PER_SEGMENT));
            return Reaction::Ignore;
        }
        if self.dup_acks != THRESHOLD || flight.una < self.recover {
            reached!(DuplicatesOfOldLoss if self.dup_acks == THRESHOLD);
            return Reaction::Ignore;
        }
        *self = Self { recover: flight.max, recovering: true, ..Self::default() };
        windows.on_fast_retransmit();
        windows.cwnd = windows.ssthresh;
        Reaction::Resend
    }

    fn on_new_ack(&mut self, flight: &Flight<'_>, _acked: u64, _windows: &mut Windows) -> Progress {
        if !self.recovering {
            self.dup_acks = 0;
            return Progress::Grow;
        }
        if flight.una < self.recover {
            reached!(PartialAck);
            return Progress::Resend(Timer::Restart);
        }
        *self = Self { recover: self.recover, ..Self::default() };
        Progress::Hold
    }

    fn on_timeout(&mut self, flight: &Flight<'_>) {
        reached!(TimeoutInRecovery if self.recovering);
        *self = Self { recover: flight.max, ..Self::default() };
    }

    fn chooses(&self) -> bool {
        self.recovering
    }

    fn choose(&self, flight: &Flight<'_>, windows: &Windows) -> Option<Choice> {
        (self.allowed > 0 && flight.has_new(windows)).then_some(Choice::New(flight.max))
    }

    fn on_sent(&mut self, choice: Choice, _mss: u64) {
        if let Choice::New(_) = choice {
            self.allowed -= 1;
        }
    }
}
