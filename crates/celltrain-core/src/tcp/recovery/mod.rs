//! Variants of loss recovery, each in its own file.
//!
//! The sender stores the sequence variables and the scoreboard, sends what the windows allow, and runs the timer. A
//! variant decides how to react to a duplicate acknowledgement and to an acknowledgement of new data. While
//! [`Recovery::chooses`] is true, the variant also picks the next segment. Offsets count bytes of the stream, and ends
//! are exclusive.

pub mod newreno;
pub mod newreno_hoe;
mod prr;
mod rack;
pub mod reno;
pub mod rules;
pub mod sack;
pub mod sack_pipe;
pub mod tahoe;
pub mod vanilla;

use super::congestion::Windows;
use super::scoreboard::{SackBlocks, Scoreboard};
use super::sender::Cause;
use super::{FastRetransmit, LossDetection, RecoveryEnd, TcpOptions};
use crate::registry;
use crate::units::{Clock, Span, Time};
use rack::Rack;

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

    /// Creates the variant's loss recovery by duplicate acknowledgements.
    fn by_duplicates(&self) -> Box<dyn Recovery> {
        |options, type Variant| Box::new(Variant::new(options))
    }
}

impl TcpConfig {
    /// Creates the variant's loss recovery. Times are on `clock`.
    pub fn recovery(&self, clock: Clock) -> Box<dyn Recovery> {
        match self {
            Self::Sack(options) if options.recovery_rules().loss_detection != LossDetection::DuplicateAcks => {
                Box::new(Rack::new(options, clock))
            }
            _ => self.by_duplicates(),
        }
    }

    /// Returns whether the two ends exchange selective acknowledgements (RFC 2018).
    pub fn selective(&self) -> bool {
        self.by_duplicates().selective()
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

    /// Returns whether a timeout keeps the reports of the receiver, and leaves to the recovery which segments are lost.
    fn keeps_reports(&self) -> bool {
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

    /// Returns whether the sender calls the methods below.
    fn observes(&self) -> bool {
        false
    }

    /// Sets the time. Called before each event.
    fn at(&mut self, _now: Time) {}

    /// Handles an acknowledgement before the scoreboard records it and before every other method.
    fn on_arrival(&mut self, _arrival: &Arrival<'_>) {}

    /// Detects losses after an acknowledgement, or after the reordering timer has expired.
    fn detect(&mut self, _flight: &Flight<'_>, _windows: &mut Windows) -> Detected {
        Detected::Nothing
    }

    /// Records a round-trip time.
    fn on_round_trip(&mut self, _took: Span) {}

    /// Returns the number of segments in flight; `None` if the windows alone determine it.
    fn in_flight(&self) -> Option<u64> {
        None
    }

    /// Returns the early timer that must run while `flight` is outstanding.
    fn early_timer(&self, _flight: &Flight<'_>) -> Option<EarlyTimer> {
        None
    }

    /// Handles the end of the probe timeout.
    fn on_probe_timer(&mut self) {}

    /// Returns the reason for the next segment if it is sent again.
    fn cause(&self) -> Cause {
        Cause::Hole
    }
}

/// An acknowledgement that is about to be recorded.
#[derive(Clone, Copy)]
pub struct Arrival<'a> {
    /// First byte that the acknowledgement does not cover.
    pub ack: u64,
    /// Its blocks.
    pub blocks: &'a SackBlocks,
    /// First unacknowledged byte before this acknowledgement.
    pub una: u64,
    /// First byte of the stream that has never been sent.
    pub max: u64,
    /// Ranges that earlier acknowledgements reported.
    pub board: &'a Scoreboard,
}

impl Arrival<'_> {
    /// Returns the block that reports a repeated segment (DSACK): the first one, if the acknowledgement or the second
    /// block covers it (RFC 2883, 4).
    pub fn dsack(&self) -> Option<(u64, u64)> {
        let mut blocks = self.blocks.iter();
        let first = blocks.next()?;
        let is_in_second = blocks.next().is_some_and(|second| second.0 <= first.0 && first.1 <= second.1);
        (first.1 <= self.ack || is_in_second).then_some(first)
    }

    /// Returns the blocks that report data beyond the acknowledgement, in the order of the stream.
    fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let mut ranges = [(0, 0); super::scoreboard::MAX_BLOCKS];
        let skipped = usize::from(self.dsack().is_some());
        for (range, block) in ranges.iter_mut().zip(self.blocks.iter().skip(skipped)) {
            *range = (block.0.max(self.ack), block.1);
        }
        ranges.sort_unstable();
        ranges.into_iter().filter(|range| range.0 < range.1)
    }

    /// Returns the bytes that no earlier acknowledgement has reported (RFC 9937, 6.2: `DeliveredData`).
    fn delivered(&self) -> u64 {
        let beyond: u64 = self.ranges().map(|(start, end)| self.board.missing(start, end)).sum();
        self.board.missing(self.una, self.ack) + beyond
    }
}

/// Losses that an acknowledgement or a timer has revealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detected {
    /// No loss that reduces the windows.
    Nothing,
    /// A loss that starts a recovery.
    Loss,
    /// A loss that a probe has already repaired.
    Repaired,
}

/// A timer that runs in addition to the retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyTimer {
    /// Losses are detected again after this time.
    Reordering(Span),
    /// A probe may be sent after this time, or after a second without an estimate of the round-trip time, and later if
    /// only one segment is outstanding, whose acknowledgement may be delayed.
    Probe {
        /// Probe timeout: twice the estimate of the round-trip time.
        pto: Option<Span>,
        /// True if only one segment is outstanding.
        is_single: bool,
    },
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
