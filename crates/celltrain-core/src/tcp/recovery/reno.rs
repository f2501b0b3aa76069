//! Reno: the third duplicate acknowledgement resends one segment, and half of the window stays open for new ones.
//!
//! Source: Jacobson 1990 (4.3BSD Reno); RFC 5681 (3.2); `docs/mechanisms.md` 3.5. Differences from the source:
//! min(cwnd, rwnd) replaces RFC 5681's flight size, as in 4.3BSD; they are equal while a sender has data. There is no
//! Limited Transmit (RFC 3042).

use super::{Flight, Progress, Reaction, Recovery, THRESHOLD};
use crate::coverage::reached;
use crate::tcp::congestion::Windows;

/// Counts duplicate acknowledgements; the third starts fast recovery.
#[derive(Debug, Default)]
pub struct Reno {
    dup_acks: u32,
}

impl Recovery for Reno {
    fn on_duplicate_ack(&mut self, _flight: &Flight<'_>, _news: bool, windows: &mut Windows) -> Reaction {
        self.dup_acks += 1;
        if self.dup_acks < THRESHOLD {
            return Reaction::Ignore;
        }
        if self.dup_acks > THRESHOLD {
            // RFC 5681 (3.2, step 4): one more segment has left the network.
            windows.cwnd += 1.0;
            return Reaction::Ignore;
        }
        windows.on_fast_retransmit();
        // RFC 5681 (3.2, step 3): three segments have left the network.
        windows.cwnd = windows.ssthresh + f64::from(THRESHOLD);
        Reaction::Resend
    }

    fn on_new_ack(&mut self, _flight: &Flight<'_>, _acked: u64, windows: &mut Windows) -> Progress {
        let recovering = self.dup_acks >= THRESHOLD;
        self.dup_acks = 0;
        if !recovering {
            return Progress::Grow;
        }
        // RFC 5681 (3.2, step 6): "deflating" the window.
        windows.cwnd = windows.ssthresh;
        Progress::Hold
    }

    fn on_timeout(&mut self, _flight: &Flight<'_>) {
        reached!(TimeoutInRecovery if self.dup_acks >= THRESHOLD);
        self.dup_acks = 0;
    }
}
