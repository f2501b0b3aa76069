//! SACK with Fall and Floyd's pipe: an estimate of the data in the network decides when to send, and the scoreboard
//! decides what.
//!
//! Source: Fall and Floyd 1996, "Simulation-based comparisons of Tahoe, Reno, and SACK TCP", section 3.4, with its
//! variable `pipe`; RFC 2018; `docs/mechanisms.md` 3.7, the default of A-27. Differences from the source: no new
//! recovery starts until everything sent before a timeout is acknowledged, as in RFC 6675 (5.1); the source does not
//! cover this case.

use super::{Choice, Flight, Progress, Reaction, Recovery, THRESHOLD};
use crate::coverage::reached;
use crate::tcp::congestion::Windows;

/// The state of the recovery and its estimate.
#[derive(Debug, Default)]
pub struct SackPipe {
    dup_acks: u32,
    /// Offset that must be acknowledged before the recovery ends, and before another begins.
    recover: u64,
    recovering: bool,
    /// Estimated number of segments in the network.
    pipe: u64,
    /// Every hole below this offset was resent.
    resent_below: u64,
}

impl Recovery for SackPipe {
    fn selective(&self) -> bool {
        true
    }

    fn on_duplicate_ack(&mut self, flight: &Flight<'_>, news: bool, windows: &mut Windows) -> Reaction {
        if self.recovering {
            self.pipe = self.pipe.saturating_sub(u64::from(news));
            return Reaction::Ignore;
        }
        self.dup_acks += 1;
        if self.dup_acks != THRESHOLD || flight.una < self.recover {
            reached!(DuplicatesOfOldLoss if self.dup_acks == THRESHOLD);
            return Reaction::Ignore;
        }
        windows.on_fast_retransmit();
        windows.cwnd = windows.ssthresh;
        // Three segments have left the network; `on_sent` counts the one that is resent.
        let outstanding = (flight.max - flight.una) / flight.mss;
        *self = Self {
            dup_acks: 0,
            recover: flight.max,
            recovering: true,
            pipe: outstanding.saturating_sub(u64::from(THRESHOLD)),
            resent_below: flight.una,
        };
        Reaction::Resend
    }

    fn on_new_ack(&mut self, flight: &Flight<'_>, _acked: u64, _windows: &mut Windows) -> Progress {
        self.dup_acks = 0;
        if !self.recovering {
            return Progress::Grow;
        }
        // Both the lost segment and its retransmission have left the network.
        self.pipe = self.pipe.saturating_sub(2);
        self.recovering = flight.una < self.recover;
        reached!(PartialAck if self.recovering);
        Progress::Hold
    }

    fn on_timeout(&mut self, flight: &Flight<'_>) {
        reached!(TimeoutInRecovery if self.recovering);
        reached!(ResentSegmentLost if self.recovering && self.resent_below > flight.una);
        *self = Self { recover: flight.max, ..Self::default() };
    }

    fn chooses(&self) -> bool {
        self.recovering
    }

    fn choose(&self, flight: &Flight<'_>, windows: &Windows) -> Option<Choice> {
        if (self.pipe + 1) as f64 > windows.cwnd {
            return None;
        }
        let choice = match flight.board.hole(self.resent_below.max(flight.una)) {
            Some(hole) => Choice::Hole(hole),
            None => Choice::New(flight.max),
        };
        flight.fits(choice.seq(), windows).then_some(choice)
    }

    fn on_sent(&mut self, choice: Choice, mss: u64) {
        self.pipe += 1;
        if let Choice::Hole(seq) = choice {
            self.resent_below = seq + mss;
        }
    }
}
