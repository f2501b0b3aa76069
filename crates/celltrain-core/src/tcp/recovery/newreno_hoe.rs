//! Hoe's fast recovery: fills one hole per round trip, and sends a new segment for every two duplicate
//! acknowledgements.
//!
//! Source: Hoe 1996, "Improving the start-up behavior of a congestion control scheme for TCP"; `docs/mechanisms.md`
//! 3.6, the default of A-26. Differences from the source: ssthresh is not initialized from a bandwidth estimate.
//! Duplicates are counted over the whole phase, from the fourth on. As after a fast retransmit, no new phase starts
//! until everything sent before a timeout is acknowledged.

use super::{Choice, Flight, Gate, Progress, Reaction, Recovery, THRESHOLD, Timer};
use crate::coverage::reached;
use crate::tcp::congestion::Windows;
use crate::tcp::{FastRetransmit, RecoveryEnd, TcpOptions};

/// The phase from a fast retransmit until all data outstanding at that time is acknowledged.
#[derive(Debug, Default)]
pub struct NewrenoHoe {
    dup_acks: u32,
    /// The byte at which recovery ends. Fast recovery lasts until this byte is acknowledged.
    gate: Gate,
    end: RecoveryEnd,
    recovering: bool,
    /// Number of new segments allowed by duplicates in this phase but not sent yet.
    allowed: u32,
}

/// Hoe 1996: number of duplicates needed for one new segment.
const DUPLICATES_PER_SEGMENT: u32 = 2;

impl Recovery for NewrenoHoe {
    fn new(options: &TcpOptions) -> Self {
        Self {
            gate: Gate::new(options, FastRetransmit::LessCareful),
            end: options.recovery_rules().end,
            ..Self::default()
        }
    }

    fn dup_acks(&self) -> u32 {
        self.dup_acks
    }

    fn on_duplicate_ack(&mut self, flight: &Flight<'_>, _news: bool, windows: &mut Windows) -> Reaction {
        self.dup_acks += 1;
        if self.recovering {
            self.allowed += u32::from(self.dup_acks.is_multiple_of(DUPLICATES_PER_SEGMENT));
            return Reaction::Ignore;
        }
        if self.dup_acks != THRESHOLD || !self.gate.is_open(flight, windows) {
            reached!(DuplicatesOfOldLoss if self.dup_acks == THRESHOLD);
            return Reaction::Ignore;
        }
        self.begin(true);
        self.gate.on_loss(flight);
        windows.on_fast_retransmit(flight);
        windows.cwnd = windows.in_recovery();
        Reaction::Resend
    }

    fn on_new_ack(&mut self, flight: &Flight<'_>, acked: u64, _windows: &mut Windows) -> Progress {
        self.gate.on_new_ack(flight, acked);
        if !self.recovering {
            self.dup_acks = 0;
            return Progress::Grow;
        }
        if !self.gate.is_recovered(flight) {
            reached!(PartialAck);
            return Progress::Resend(Timer::Restart);
        }
        self.begin(false);
        self.end.progress()
    }

    fn on_timeout(&mut self, flight: &Flight<'_>) {
        reached!(TimeoutInRecovery if self.recovering);
        self.begin(false);
        self.gate.on_loss(flight);
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

impl NewrenoHoe {
    /// Begins a phase: fast recovery, or the time after it.
    fn begin(&mut self, recovering: bool) {
        (self.dup_acks, self.recovering, self.allowed) = (0, recovering, 0);
    }
}
