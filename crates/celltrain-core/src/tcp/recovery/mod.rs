//! What loss makes a sender do. One file each.
//!
//! The sender keeps the sequence variables and the scoreboard, sends what the windows allow, and runs the timer. A
//! variant answers what a duplicate acknowledgement means, what an acknowledgement of new data means, and, while it
//! says so, which segment goes next. Offsets are of bytes in the stream; an offset that ends something is that of the
//! byte after it.

pub mod newreno;
pub mod newreno_hoe;
pub mod reno;
pub mod sack;
pub mod sack_pipe;
pub mod tahoe;
pub mod vanilla;

use super::congestion::Windows;
use super::options::TcpOptions;
use super::scoreboard::Scoreboard;
use crate::registry;

registry! {
    /// The TCP of a connection, as a scenario names it: one table whose key is the variant's name.
    #[schemars(rename = "Tcp")]
    pub enum TcpConfig(TcpOptions) {
        /// No fast retransmit: every loss waits for the retransmission timer (ATM Forum 96-1269).
        vanilla: Vanilla,
        /// Fast retransmit on the third duplicate acknowledgement, then slow start (Jacobson 1988).
        tahoe: Tahoe,
        /// Fast retransmit and fast recovery, which the first acknowledgement of new data ends (RFC 5681).
        reno: Reno,
        /// Fast recovery until everything outstanding is acknowledged, a hole a round trip (RFC 6582).
        newreno: Newreno,
        /// The same, with a new segment for every two duplicate acknowledgements (Hoe 1996).
        newreno_hoe: NewrenoHoe,
        /// Selective acknowledgements, the network's load read off the scoreboard (RFC 6675).
        sack: Sack,
        /// Selective acknowledgements, the network's load estimated (Fall and Floyd 1996).
        sack_pipe: SackPipe,
    }

    /// The options, the same for every variant.
    pub fn options(&self) -> &TcpOptions { |options| options }

    /// The variant's loss recovery.
    pub fn recovery(&self) -> Box<dyn Recovery> {
        |options, type Variant| Box::new(Variant::new(options))
    }
}

impl TcpConfig {
    /// Whether the two ends exchange selective acknowledgements (RFC 2018).
    pub fn selective(&self) -> bool {
        self.recovery().selective()
    }
}

/// Jacobson 1988, RFC 5681 (3.2): three duplicates mean a loss and not a reordering.
const THRESHOLD: u32 = 3;

/// What a sender asks its variant about loss. Timeouts are the same for all ([`Windows::on_timeout`], then go-back-N).
pub trait Recovery: Send {
    /// Whether the two ends exchange selective acknowledgements (RFC 2018).
    fn selective(&self) -> bool {
        false
    }

    /// The recovery of a connection that has sent nothing. Most take nothing from the options.
    fn new(_options: &TcpOptions) -> Self
    where
        Self: Sized + Default,
    {
        Self::default()
    }

    /// A duplicate acknowledgement arrived while data is outstanding; `news` when its blocks report something unknown.
    fn on_duplicate_ack(&mut self, flight: &Flight<'_>, news: bool, windows: &mut Windows) -> Reaction;

    /// `acked` bytes of new data were acknowledged; `flight` is what they leave.
    fn on_new_ack(&mut self, _flight: &Flight<'_>, _acked: u64, _windows: &mut Windows) -> Progress {
        Progress::Grow
    }

    /// The retransmission timer ran out; `flight` is what was outstanding.
    fn on_timeout(&mut self, _flight: &Flight<'_>) {}

    /// Whether what is sent now is for [`Recovery::choose`] to say and not for the windows alone.
    fn chooses(&self) -> bool {
        false
    }

    /// The segment to send now, if any. Asking does not send it.
    fn choose(&self, _flight: &Flight<'_>, _windows: &Windows) -> Option<Choice> {
        None
    }

    /// A chosen segment was sent, or the one that [`Reaction::Resend`] or [`Progress::Resend`] asked for.
    fn on_sent(&mut self, _choice: Choice, _mss: u64) {}
}

/// What is outstanding.
#[derive(Clone, Copy)]
pub struct Flight<'a> {
    /// First byte not acknowledged.
    pub una: u64,
    /// First byte never sent.
    pub max: u64,
    /// Where the data ends: no segment begins there or beyond.
    pub end: u64,
    /// Payload bytes of a segment.
    pub mss: u64,
    /// What the receiver reported beyond a gap.
    pub board: &'a Scoreboard,
}

impl Flight<'_> {
    /// Whether a segment at `seq` fits the receiver's window.
    pub fn fits(&self, seq: u64, windows: &Windows) -> bool {
        (seq + self.mss - self.una) as f64 <= windows.rwnd * self.mss as f64
    }

    /// Whether there is a segment that was never sent and it fits the receiver's window.
    pub fn has_new(&self, windows: &Windows) -> bool {
        self.max < self.end && self.fits(self.max, windows)
    }

    /// Bytes in segments.
    pub fn segments(&self, bytes: u64) -> f64 {
        bytes as f64 / self.mss as f64
    }
}

/// What follows a duplicate acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Nothing but what the windows or the variant now allow.
    Ignore,
    /// Fast retransmit: start again from the first unacknowledged segment.
    GoBack,
    /// Fast retransmit: the first unacknowledged segment, whatever the congestion window says; the rest goes on.
    Resend,
}

/// What follows an acknowledgement of new data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The window grows.
    Grow,
    /// It does not: this acknowledgement belongs to the recovery.
    Hold,
    /// It does not, and the first unacknowledged segment goes out at once.
    Resend(Timer),
}

/// What becomes of the retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// It starts anew, as with any acknowledgement of new data.
    Restart,
    /// It runs on.
    Keep,
}

/// A segment a variant chose, by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// One that was sent and is taken for lost.
    Hole(u64),
    /// The next that was never sent.
    New(u64),
    /// The last one outstanding, sent again to bring acknowledgements back (RFC 6675, 4, `NextSeg` 4).
    Rescue(u64),
}

impl Choice {
    /// Its first byte.
    pub fn seq(self) -> u64 {
        let (Self::Hole(seq) | Self::New(seq) | Self::Rescue(seq)) = self;
        seq
    }
}
