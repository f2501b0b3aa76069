//! Tahoe: the third duplicate acknowledgement resends from the first hole, in slow start.
//!
//! Source: Jacobson 1988; `docs/mechanisms.md` 3.4: ssthresh = max(2, min(cwnd, rwnd)/2), cwnd = 1, go-back-N.
//! Differences from the source: 4.3BSD resends one segment and then continues with new data. This variant uses the
//! go-back-N of the specification.

use super::{Flight, Gate, Progress, Reaction, Recovery, THRESHOLD};
use crate::tcp::congestion::Windows;
use crate::tcp::{FastRetransmit, TcpOptions};

/// Counts duplicate acknowledgements.
#[derive(Debug, Default)]
pub struct Tahoe {
    dup_acks: u32,
    gate: Gate,
}

impl Recovery for Tahoe {
    fn new(options: &TcpOptions) -> Self {
        Self { gate: Gate::new(options, FastRetransmit::Always), ..Self::default() }
    }

    fn dup_acks(&self) -> u32 {
        self.dup_acks
    }

    fn on_duplicate_ack(&mut self, flight: &Flight<'_>, _news: bool, windows: &mut Windows) -> Reaction {
        self.dup_acks += 1;
        if self.dup_acks != THRESHOLD || !self.gate.is_open(flight, windows) {
            return Reaction::Ignore;
        }
        self.gate.on_loss(flight);
        windows.on_fast_retransmit(flight);
        windows.cwnd = 1.0;
        Reaction::GoBack
    }

    fn on_new_ack(&mut self, flight: &Flight<'_>, acked: u64, _windows: &mut Windows) -> Progress {
        self.dup_acks = 0;
        self.gate.on_new_ack(flight, acked);
        Progress::Grow
    }

    fn on_timeout(&mut self, flight: &Flight<'_>) {
        self.dup_acks = 0;
        self.gate.on_loss(flight);
    }
}
