//! `newreno`: fast recovery lasts until all data outstanding at its start is acknowledged, and retransmits one hole per
//! round trip.
//!
//! Source: RFC 6582 (3.2, 4), with its variable `recover`; `docs/mechanisms.md` 3.6, option of A-26. Differences from
//! the source: with the rules of the papers, ssthresh is set from min(cwnd, rwnd) instead of the flight size. Step 3
//! offers two windows after a full acknowledgement; by default this variant uses the second, cwnd = ssthresh. Neither
//! of section 4's heuristics for duplicates after a timeout is the default, and the heuristic with timestamps is not
//! implemented. A partial acknowledgement deflates the window to at least one segment, where the text has no bound.
//! There is no Limited Transmit (RFC 3042) unless `recovery.limited_transmit` requires it.

use super::{Flight, Gate, Progress, Reaction, Recovery, THRESHOLD, Timer};
use crate::coverage::reached;
use crate::tcp::congestion::Windows;
use crate::tcp::{FastRetransmit, FullAcks, PartialAckTimer, PartialAcks, RecoveryEnd, RecoveryRules, TcpOptions};

/// The state of the loss recovery of `newreno`.
#[derive(Debug, Default)]
pub struct Newreno {
    dup_acks: u32,
    /// `recover` initially lies before the first byte of the stream. If it were the initial sequence number (RFC 6582,
    /// 3.2, step 1, taken literally), the first segment could never be fast-retransmitted; Linux, ns-2 and others allow
    /// it.
    gate: Gate,
    stage: Stage,
    partial_acks: PartialAcks,
    full_acks: FullAcks,
    timer: PartialAckTimer,
    end: RecoveryEnd,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Open,
    /// Fast recovery, before and after its first partial acknowledgement.
    Recovering { partial_acks: bool },
}

impl Recovery for Newreno {
    fn new(options: &TcpOptions) -> Self {
        let RecoveryRules { partial_acks, full_acks, partial_ack_timer: timer, end, .. } = options.recovery_rules();
        let gate = Gate::new(options, FastRetransmit::Careful);
        Self { gate, partial_acks, full_acks, timer, end, ..Self::default() }
    }

    fn dup_acks(&self) -> u32 {
        self.dup_acks
    }

    fn recovers(&self) -> bool {
        self.stage != Stage::Open
    }

    fn on_duplicate_ack(&mut self, flight: &Flight<'_>, _news: bool, windows: &mut Windows) -> Reaction {
        if self.stage != Stage::Open {
            // Step 2 refers to RFC 5681 (3.2, step 4): one more segment has left the network.
            windows.inflate(1.0);
            return Reaction::Ignore;
        }
        self.dup_acks += 1;
        // Step 2: only "if the Cumulative Acknowledgment field covers more than recover".
        if self.dup_acks != THRESHOLD || !self.gate.is_open(flight, windows) {
            reached!(DuplicatesOfOldLoss if self.dup_acks == THRESHOLD);
            return Reaction::Ignore;
        }
        self.gate.on_loss(flight);
        self.stage = Stage::Recovering { partial_acks: false };
        windows.on_fast_retransmit(flight);
        windows.cwnd = windows.in_recovery();
        windows.inflate(f64::from(THRESHOLD));
        Reaction::Resend
    }

    fn on_new_ack(&mut self, flight: &Flight<'_>, acked: u64, windows: &mut Windows) -> Progress {
        self.dup_acks = 0;
        self.gate.on_new_ack(flight, acked);
        let Stage::Recovering { partial_acks } = self.stage else { return Progress::Grow };
        if self.gate.is_recovered(flight) {
            // Step 3, full acknowledgement.
            if !(partial_acks && self.partial_acks == PartialAcks::KeepWindow) {
                windows.cwnd = match self.full_acks {
                    FullAcks::Ssthresh => windows.in_recovery(),
                    FullAcks::Flight => windows.ssthresh.min(flight.segments(flight.max - flight.una) + 1.0),
                    FullAcks::Deflated => (windows.cwnd - windows.inflation).max(1.0),
                };
            }
            windows.inflation = 0.0;
            self.stage = Stage::Open;
            return self.end.progress();
        }
        reached!(PartialAck);
        reached!(PartialAckAgain if partial_acks);
        let acked = flight.segments(acked);
        // Step 3, partial acknowledgement: "deflate the congestion window by the amount of new data acknowledged"; "if
        // the partial ACK acknowledges at least one SMSS of new data, then add back SMSS bytes".
        match self.partial_acks {
            PartialAcks::Deflate => {
                windows.cwnd = (windows.cwnd - acked).max(0.0) + 1.0;
                windows.inflation = (windows.inflation - acked).max(0.0) + 1.0;
            }
            PartialAcks::KeepWindow => {}
            PartialAcks::DropInflation => {
                windows.cwnd = windows.in_recovery();
                windows.inflation = 0.0;
            }
        }
        self.stage = Stage::Recovering { partial_acks: true };
        // "For the first partial ACK that arrives during fast recovery, also reset the retransmit timer."
        let restarts = !partial_acks || self.timer == PartialAckTimer::Every;
        Progress::Resend(if restarts { Timer::Restart } else { Timer::Keep })
    }

    fn on_timeout(&mut self, flight: &Flight<'_>) {
        reached!(TimeoutInRecovery if self.stage != Stage::Open);
        // Step 4.
        self.gate.on_loss(flight);
        self.stage = Stage::Open;
        self.dup_acks = 0;
    }
}
