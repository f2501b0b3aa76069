//! SACK with Fall and Floyd's pipe: an estimate of the data in the network decides when to send, and the scoreboard
//! decides what.
//!
//! Source: Fall and Floyd 1996, "Simulation-based comparisons of Tahoe, Reno, and SACK TCP", section 3.4, with its
//! variable `pipe`; RFC 2018; `docs/mechanisms.md` 3.7, the default of A-27. Differences from the source: no new
//! recovery starts until everything sent before a timeout is acknowledged, as in RFC 6675 (5.1); the source does not
//! cover this case.

use super::{Choice, Flight, Gate, Progress, Reaction, Recovery, THRESHOLD};
use crate::coverage::reached;
use crate::tcp::congestion::Windows;
use crate::tcp::{FastRetransmit, PipeRules, RecoveryEnd, TcpOptions};

/// The state of the recovery and its pipe estimate.
#[derive(Debug, Default)]
pub struct SackPipe {
    rules: PipeRules,
    end: RecoveryEnd,
    dup_acks: u32,
    gate: Gate,
    /// Offset that must be acknowledged before the recovery ends.
    recover: u64,
    recovering: bool,
    /// Estimated number of segments in the network.
    pipe: u64,
    /// Every hole below this offset has been retransmitted.
    resent_below: u64,
    /// For ns-2's rules: true from the start of a recovery until the next acknowledgement, so that the retransmission
    /// is sent alone.
    starting: bool,
    /// For ns-2's rules: true from a timeout until new data is acknowledged, so that duplicates do not count.
    timed_out: bool,
}

impl Recovery for SackPipe {
    fn new(options: &TcpOptions) -> Self {
        let gate = Gate::new(options, FastRetransmit::LessCareful);
        Self { rules: options.recovery_rules().pipe, end: options.recovery_rules().end, gate, ..Self::default() }
    }

    fn selective(&self) -> bool {
        true
    }

    fn dup_acks(&self) -> u32 {
        self.dup_acks
    }

    fn forgets_reports(&self) -> bool {
        self.is_ns2() && !self.recovering
    }

    fn on_duplicate_ack(&mut self, flight: &Flight<'_>, news: bool, windows: &mut Windows) -> Reaction {
        self.starting = false;
        if self.recovering {
            self.pipe = self.pipe.saturating_sub(u64::from(news));
            return Reaction::Ignore;
        }
        if self.timed_out || (self.is_ns2() && !news) {
            return Reaction::Ignore;
        }
        self.dup_acks += 1;
        if self.dup_acks != THRESHOLD || !self.gate.is_open(flight, windows) {
            reached!(DuplicatesOfOldLoss if self.dup_acks == THRESHOLD);
            return Reaction::Ignore;
        }
        windows.on_fast_retransmit(flight);
        windows.cwnd = windows.in_recovery();
        // Three segments have left the network. `on_sent` counts the retransmitted segment, except under ns-2's rules.
        let outstanding = (flight.max - flight.una) / flight.mss;
        self.pipe = outstanding.saturating_sub(u64::from(THRESHOLD));
        self.dup_acks = 0;
        self.gate.on_loss(flight);
        self.recover = flight.max;
        self.recovering = true;
        self.resent_below = flight.una;
        self.starting = self.is_ns2();
        Reaction::Resend
    }

    fn on_new_ack(&mut self, flight: &Flight<'_>, acked: u64, _windows: &mut Windows) -> Progress {
        self.dup_acks = 0;
        self.gate.on_new_ack(flight, acked);
        (self.starting, self.timed_out) = (false, false);
        if !self.recovering {
            return Progress::Grow;
        }
        // Both the lost segment and the retransmission of the segment have left the network.
        self.pipe = self.pipe.saturating_sub(2);
        if flight.una < self.recover {
            reached!(PartialAck);
            return Progress::Hold;
        }
        self.recovering = false;
        if self.is_ns2() {
            // Forget the end of this recovery. Only after a timeout may `recover` prevent the next recovery.
            self.gate.recover = None;
        }
        self.end.progress()
    }

    fn on_timeout(&mut self, flight: &Flight<'_>) {
        reached!(TimeoutInRecovery if self.recovering);
        reached!(ResentSegmentLost if self.recovering && self.resent_below > flight.una);
        self.gate.on_loss(flight);
        (self.dup_acks, self.recovering) = (0, false);
        (self.starting, self.timed_out) = (false, self.is_ns2());
    }

    fn chooses(&self) -> bool {
        self.recovering
    }

    fn choose(&self, flight: &Flight<'_>, windows: &Windows) -> Option<Choice> {
        if self.starting || (self.pipe + 1) as f64 > windows.cwnd {
            return None;
        }
        let choice = match flight.board.hole(self.resent_below.max(flight.una)) {
            Some(hole) => Choice::Hole(hole),
            None => Choice::New(flight.max),
        };
        flight.fits(choice.seq(), windows).then_some(choice)
    }

    fn on_sent(&mut self, choice: Choice, mss: u64) {
        self.pipe += u64::from(!self.starting);
        if let Choice::Hole(seq) = choice {
            self.resent_below = seq + mss;
        }
    }
}

impl SackPipe {
    fn is_ns2(&self) -> bool {
        self.rules == PipeRules::Ns2
    }
}
