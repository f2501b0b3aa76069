//! Tahoe: the third duplicate acknowledgement resends from the first hole, in slow start.
//!
//! Source: Jacobson 1988; `docs/mechanisms.md` 3.4: ssthresh = max(2, min(cwnd, rwnd)/2), cwnd = 1, go-back-N.
//! Differences from the source: 4.3BSD resends one segment and then continues where it was; this variant keeps the
//! specification's go-back-N.

use super::{Flight, Progress, Reaction, Recovery, THRESHOLD};
use crate::tcp::congestion::Windows;

/// Counts duplicate acknowledgements.
#[derive(Debug, Default)]
pub struct Tahoe {
    dup_acks: u32,
}

impl Recovery for Tahoe {
    fn on_duplicate_ack(&mut self, _flight: &Flight<'_>, _news: bool, windows: &mut Windows) -> Reaction {
        self.dup_acks += 1;
        if self.dup_acks != THRESHOLD {
            return Reaction::Ignore;
        }
        windows.on_fast_retransmit();
        windows.cwnd = 1.0;
        Reaction::GoBack
    }

    fn on_new_ack(&mut self, _flight: &Flight<'_>, _acked: u64, _windows: &mut Windows) -> Progress {
        self.dup_acks = 0;
        Progress::Grow
    }

    fn on_timeout(&mut self, _flight: &Flight<'_>) {
        self.dup_acks = 0;
    }
}
