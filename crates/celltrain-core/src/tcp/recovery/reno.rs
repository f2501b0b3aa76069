//! Reno: the third duplicate acknowledgement resends one segment, and half of the window remains for new segments.
//!
//! Source: 4.3BSD-Reno, `tcp_input.c` 7.25 (Jacobson 1990); RFC 5681 (3.2); `docs/mechanisms.md` 3.5. Differences from
//! the source: with the rules of the papers, min(cwnd, rwnd) replaces RFC 5681's flight size, as in 4.3BSD. There is no
//! Limited Transmit (RFC 3042) unless `limited_transmit` requires it.

use super::{Flight, Gate, Progress, Reaction, Recovery, THRESHOLD};
use crate::coverage::reached;
use crate::tcp::congestion::Windows;
use crate::tcp::{FastRetransmit, RecoveryEnd, TcpOptions};

/// Counts duplicate acknowledgements and starts fast recovery at the third.
#[derive(Debug, Default)]
pub struct Reno {
    dup_acks: u32,
    recovering: bool,
    gate: Gate,
    end: RecoveryEnd,
}

impl Recovery for Reno {
    fn new(options: &TcpOptions) -> Self {
        Self { gate: Gate::new(options, FastRetransmit::Always), end: options.recovery_rules().end, ..Self::default() }
    }

    fn dup_acks(&self) -> u32 {
        self.dup_acks
    }

    fn on_duplicate_ack(&mut self, flight: &Flight<'_>, _news: bool, windows: &mut Windows) -> Reaction {
        if self.recovering {
            // RFC 5681 (3.2, step 4): one more segment has left the network.
            windows.inflate(1.0);
            return Reaction::Ignore;
        }
        self.dup_acks += 1;
        if self.dup_acks != THRESHOLD || !self.gate.is_open(flight, windows) {
            return Reaction::Ignore;
        }
        self.recovering = true;
        self.gate.on_loss(flight);
        windows.on_fast_retransmit(flight);
        windows.cwnd = windows.in_recovery();
        // RFC 5681 (3.2, step 3): three segments have left the network.
        windows.inflate(f64::from(THRESHOLD));
        Reaction::Resend
    }

    fn on_new_ack(&mut self, flight: &Flight<'_>, acked: u64, windows: &mut Windows) -> Progress {
        self.dup_acks = 0;
        self.gate.on_new_ack(flight, acked);
        if !std::mem::take(&mut self.recovering) {
            return Progress::Grow;
        }
        // 4.3BSD-Reno, tcp_input: `t_dupacks > tcprexmtthresh` is false after exactly three duplicates.
        let keeps = self.end == RecoveryEnd::Bsd && windows.inflation <= f64::from(THRESHOLD);
        if !keeps {
            // RFC 5681 (3.2, step 6): "deflating" the window.
            windows.cwnd = windows.in_recovery();
        }
        windows.inflation = 0.0;
        self.end.progress()
    }

    fn on_timeout(&mut self, flight: &Flight<'_>) {
        reached!(TimeoutInRecovery if self.recovering);
        self.dup_acks = 0;
        self.recovering = false;
        self.gate.on_loss(flight);
    }
}
