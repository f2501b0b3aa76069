//! `newreno`: fast recovery lasts until everything outstanding at its start is acknowledged, and fills one hole per
//! round trip.
//!
//! Source: RFC 6582 (3.2), with its variable `recover`; `docs/mechanisms.md` 3.6, option of A-26. Differences from the
//! source: ssthresh is set from min(cwnd, rwnd) instead of the flight size. Step 3 offers two windows after a full
//! acknowledgement; this variant uses the second, cwnd = ssthresh. Neither of section 4's heuristics for duplicates
//! after a timeout is implemented. A partial acknowledgement deflates the window to at least one segment, where the
//! text has no bound. There is no Limited Transmit (RFC 3042).

use super::{Flight, Progress, Reaction, Recovery, THRESHOLD, Timer};
use crate::coverage::reached;
use crate::tcp::congestion::Windows;
use crate::tcp::options::{PartialAcks, TcpOptions};

/// The state of the recovery.
#[derive(Debug, Default)]
pub struct Newreno {
    dup_acks: u32,
    /// RFC 6582 (3.2, step 1): initially the beginning of the stream.
    recover: u64,
    stage: Stage,
    partial_acks: PartialAcks,
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
        Self { partial_acks: options.partial_acks, ..Self::default() }
    }

    fn on_duplicate_ack(&mut self, flight: &Flight<'_>, _news: bool, windows: &mut Windows) -> Reaction {
        if self.stage != Stage::Open {
            // Step 2 leads to RFC 5681 (3.2, step 4): one more segment has left the network.
            windows.cwnd += 1.0;
            return Reaction::Ignore;
        }
        self.dup_acks += 1;
        // Step 2: only "if the Cumulative Acknowledgment field covers more than recover".
        if self.dup_acks != THRESHOLD || flight.una <= self.recover {
            reached!(DuplicatesOfOldLoss if self.dup_acks == THRESHOLD);
            return Reaction::Ignore;
        }
        self.recover = flight.max;
        self.stage = Stage::Recovering { partial_acks: false };
        windows.on_fast_retransmit();
        windows.cwnd = windows.ssthresh + f64::from(THRESHOLD);
        Reaction::Resend
    }

    fn on_new_ack(&mut self, flight: &Flight<'_>, acked: u64, windows: &mut Windows) -> Progress {
        self.dup_acks = 0;
        let Stage::Recovering { partial_acks } = self.stage else { return Progress::Grow };
        if flight.una >= self.recover {
            // Step 3, full acknowledgement, (2).
            if !(partial_acks && self.partial_acks == PartialAcks::KeepWindow) {
                windows.cwnd = windows.ssthresh;
            }
            self.stage = Stage::Open;
            return Progress::Hold;
        }
        reached!(PartialAck);
        reached!(PartialAckAgain if partial_acks);
        // Step 3, partial acknowledgement: "deflate the congestion window by the amount of new data acknowledged"; "if
        // the partial ACK acknowledges at least one SMSS of new data, then add back SMSS bytes".
        if self.partial_acks == PartialAcks::Deflate {
            windows.cwnd = (windows.cwnd - flight.segments(acked)).max(0.0) + 1.0;
        }
        self.stage = Stage::Recovering { partial_acks: true };
        // "For the first partial ACK that arrives during fast recovery, also reset the retransmit timer."
        Progress::Resend(if partial_acks { Timer::Keep } else { Timer::Restart })
    }

    fn on_timeout(&mut self, flight: &Flight<'_>) {
        reached!(TimeoutInRecovery if self.stage != Stage::Open);
        // Step 4.
        self.recover = flight.max;
        self.stage = Stage::Open;
        self.dup_acks = 0;
    }
}
