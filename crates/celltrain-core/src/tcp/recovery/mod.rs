//! Variants of loss recovery, each in its own file.
//!
//! The sender stores the sequence variables and the scoreboard, sends what the windows allow, and runs the timer. A
//! variant decides how to react to a duplicate acknowledgement and to an acknowledgement of new data. While
//! [`Recovery::chooses`] is true, the variant also picks the next segment. Offsets count bytes of the stream, and ends
//! are exclusive.

pub mod newreno;
pub mod newreno_hoe;
pub mod reno;
pub mod rules;
pub mod sack;
pub mod sack_pipe;
pub mod tahoe;
pub mod vanilla;

use super::congestion::Windows;
use super::scoreboard::Scoreboard;
use super::{FastRetransmit, RecoveryEnd, TcpOptions};
use crate::registry;

registry! {
    /// The TCP of a connection in a scenario: a table whose only key is the variant's name.
    #[schemars(rename = "Tcp")]
    pub enum TcpConfig(TcpOptions) {
        /// No fast retransmit: every loss waits for the retransmission timer (ATM Forum 96-1269).
        vanilla: Vanilla,
        /// Fast retransmit on the third duplicate acknowledgement, then slow start (Jacobson 1988).
        tahoe: Tahoe,
        /// Fast retransmit, then fast recovery until the first acknowledgement of new data (RFC 5681).
        reno: Reno,
        /// Fast recovery until all outstanding data is acknowledged. It retransmits one hole per round trip (RFC 6582).
        newreno: Newreno,
        /// Like `newreno`, with a new segment for every two duplicate acknowledgements (Hoe 1996).
        newreno_hoe: NewrenoHoe,
        /// Selective acknowledgements; the data in the network is computed from the scoreboard (RFC 6675).
        sack: Sack,
        /// Selective acknowledgements; the data in the network is estimated (Fall and Floyd 1996).
        sack_pipe: SackPipe,
    }

    /// Returns the options, common to all variants.
    pub fn options(&self) -> &TcpOptions { |options| options }

    /// Creates the variant's loss recovery.
    pub fn recovery(&self) -> Box<dyn Recovery> {
        |options, type Variant| Box::new(Variant::new(options))
    }
}

impl TcpConfig {
    /// Returns whether the two ends exchange selective acknowledgements (RFC 2018).
    pub fn selective(&self) -> bool {
        self.recovery().selective()
    }
}

/// Jacobson 1988, RFC 5681 (3.2): three duplicates indicate a loss rather than reordering.
pub(super) const THRESHOLD: u32 = 3;

/// The sender's interface to its loss recovery. Timeouts are handled in the same way for all variants
/// ([`Windows::on_timeout`], then go-back-N).
pub trait Recovery: Send {
    /// Returns whether the two ends exchange selective acknowledgements (RFC 2018).
    fn selective(&self) -> bool {
        false
    }

    /// Creates the recovery of a connection that has sent nothing. Most variants ignore the options.
    fn new(_options: &TcpOptions) -> Self
    where
        Self: Sized + Default,
    {
        Self::default()
    }

    /// Handles a duplicate acknowledgement while data is outstanding; `news` is true if its blocks report new data.
    fn on_duplicate_ack(&mut self, flight: &Flight<'_>, news: bool, windows: &mut Windows) -> Reaction;

    /// Handles an acknowledgement of `acked` new bytes; `flight` is the data that remains outstanding.
    fn on_new_ack(&mut self, _flight: &Flight<'_>, _acked: u64, _windows: &mut Windows) -> Progress {
        Progress::Grow
    }

    /// Returns whether an acknowledgement of new data also counts as a duplicate if its blocks report new data (RFC
    /// 6675, 2).
    fn counts_progress(&self) -> bool {
        false
    }

    /// Handles an expired retransmission timer; `flight` is the data that was outstanding.
    fn on_timeout(&mut self, _flight: &Flight<'_>) {}

    /// Returns the number of duplicates counted towards a fast retransmit, each of which may allow a segment beyond
    /// cwnd.
    fn dup_acks(&self) -> u32 {
        0
    }

    /// Returns whether the limit `recovery.burst` applies.
    fn recovers(&self) -> bool {
        false
    }

    /// Returns whether a timeout resends all data, including data that the receiver has already reported.
    fn forgets_reports(&self) -> bool {
        false
    }

    /// Returns whether [`Recovery::choose`], rather than the windows alone, determines the next segment.
    fn chooses(&self) -> bool {
        false
    }

    /// Returns the segment to send now, if any, without sending it.
    fn choose(&self, _flight: &Flight<'_>, _windows: &Windows) -> Option<Choice> {
        None
    }

    /// Records that a segment was sent: either the selected segment, or one requested by [`Reaction::Resend`] or
    /// [`Progress::Resend`].
    fn on_sent(&mut self, _choice: Choice, _mss: u64) {}
}

/// Decides whether duplicates may trigger another fast retransmit.
#[derive(Debug, Default)]
struct Gate {
    rule: FastRetransmit,
    /// Offset of the first unsent byte when the last loss was detected. `None` before the first loss, so that the first
    /// segment of a connection can also be retransmitted.
    recover: Option<u64>,
    /// First unacknowledged byte before the last acknowledgement of new data.
    previous: Option<u64>,
}

impl Gate {
    /// Creates the recovery gate of a new connection, for a variant with its own rule.
    fn new(options: &TcpOptions, of_variant: FastRetransmit) -> Self {
        let rule = match options.recovery_rules().fast_retransmit {
            FastRetransmit::ByVariant => of_variant,
            rule => rule,
        };
        Self { rule, ..Self::default() }
    }

    fn on_loss(&mut self, flight: &Flight<'_>) {
        self.recover = Some(flight.max);
    }

    fn on_new_ack(&mut self, flight: &Flight<'_>, acked: u64) {
        self.previous = Some(flight.una - acked);
    }

    /// Returns whether everything sent before the last loss is acknowledged.
    fn is_recovered(&self, flight: &Flight<'_>) -> bool {
        self.recover.is_none_or(|recover| flight.una >= recover)
    }

    //= rfc6582#3.2 "three duplicates start a recovery only if they acknowledge more than the last one repaired"
    fn is_open(&self, flight: &Flight<'_>, windows: &Windows) -> bool {
        // RFC 6582 (4.1): an acknowledgement of many segments means that the receiver had most of them, so
        // retransmitted segments caused the duplicates.
        let covers = |segments: u64| {
            let acked = self.previous.map_or(0, |previous| flight.una - previous);
            windows.cwnd > 1.0 && acked <= segments * flight.mss
        };
        let is_careful = || self.recover.is_none_or(|recover| flight.una > recover);
        match self.rule {
            FastRetransmit::ByVariant | FastRetransmit::Always => true,
            FastRetransmit::Careful => is_careful(),
            FastRetransmit::LessCareful => self.is_recovered(flight),
            FastRetransmit::AckHeuristic => is_careful() || covers(4),
            FastRetransmit::AckHeuristicOfThree => is_careful() || covers(3),
        }
    }
}

impl RecoveryEnd {
    /// Returns the progress of an acknowledgement that ends fast recovery.
    fn progress(self) -> Progress {
        match self {
            Self::Hold => Progress::Hold,
            Self::Grow | Self::Bsd => Progress::Grow,
        }
    }
}

/// The outstanding data.
#[derive(Clone, Copy)]
pub struct Flight<'a> {
    /// First unacknowledged byte of the stream.
    pub una: u64,
    /// First byte of the stream that has never been sent.
    pub max: u64,
    /// End of the data. No segment starts at or after this byte.
    pub end: u64,
    /// Payload bytes of a segment.
    pub mss: u64,
    /// True if the windows are already reduced for data that includes the first unacknowledged byte.
    pub reduced: bool,
    /// Ranges beyond a gap that the receiver has reported.
    pub board: &'a Scoreboard,
}

impl Flight<'_> {
    /// Returns whether a segment at `seq` fits the receiver's window.
    pub fn fits(&self, seq: u64, windows: &Windows) -> bool {
        (seq + self.mss - self.una) as f64 <= windows.rwnd * self.mss as f64
    }

    /// Returns whether there is unsent data and the receive window has room for a segment of it.
    pub fn has_new(&self, windows: &Windows) -> bool {
        self.max < self.end && self.fits(self.max, windows)
    }

    /// Converts bytes to segments.
    pub fn segments(&self, bytes: u64) -> f64 {
        bytes as f64 / self.mss as f64
    }
}

/// The reaction to a duplicate acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Sends only segments that the windows or the variant now allow.
    Ignore,
    /// Fast retransmit: resends from the first unacknowledged segment on.
    GoBack,
    /// Fast retransmit: resends the first unacknowledged segment regardless of cwnd, then continues at the previous
    /// position.
    Resend,
}

/// The reaction to an acknowledgement of new data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The window grows.
    Grow,
    /// The window does not grow, because the acknowledgement belongs to the recovery.
    Hold,
    /// The window does not grow, and the first unacknowledged segment is sent immediately.
    Resend(Timer),
}

/// Effect of an acknowledgement on the retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// Restarts the timer, like any acknowledgement of new data.
    Restart,
    /// Leaves the timer running.
    Keep,
}

/// A segment selected by a variant, given by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// A segment that was sent and is considered lost.
    Hole(u64),
    /// The next unsent segment.
    New(u64),
    /// The last outstanding segment, resent to elicit acknowledgements (RFC 6675, 4, `NextSeg` 4).
    Rescue(u64),
}

impl Choice {
    /// Returns the first byte of the segment.
    pub fn seq(self) -> u64 {
        let (Self::Hole(seq) | Self::New(seq) | Self::Rescue(seq)) = self;
        seq
    }
}
