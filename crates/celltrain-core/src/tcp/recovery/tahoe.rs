//! Tahoe: the third duplicate acknowledgement resends from the first hole, in slow start.
//!
//! Source: Jacobson 1988; `MECHANISMS` 3.4: ssthresh = max(2, min(cwnd, rwnd)/2), cwnd = 1, go-back-N.
//! Departures: 4.3BSD sends the one segment and then goes on where it was; the specification's go-back-N is kept.

use super::{Reaction, Recovery};
use crate::tcp::congestion::Windows;

/// Counts duplicate acknowledgements.
#[derive(Debug, Default)]
pub struct Tahoe {
    dup_acks: u32,
}

/// Jacobson 1988: three duplicates mean a loss and not a reordering.
const THRESHOLD: u32 = 3;

impl Recovery for Tahoe {
    fn on_duplicate_ack(&mut self, windows: &mut Windows) -> Reaction {
        self.dup_acks += 1;
        if self.dup_acks != THRESHOLD {
            return Reaction::Ignore;
        }
        windows.ssthresh = windows.half_of_window();
        windows.cwnd = 1.0;
        Reaction::GoBack
    }

    fn on_new_ack(&mut self) {
        self.dup_acks = 0;
    }

    fn on_timeout(&mut self) {
        self.dup_acks = 0;
    }
}
