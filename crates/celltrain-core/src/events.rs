//! What happens in a run, told one thing at a time to whoever watches ([`Watcher`]).
//!
//! `docs/design/events.md` says who tells what. An event holds indices and numbers; names and units are given to it
//! where it is written down. Each is told at its instant, in the order in which the engine works.

use crate::abr::RmCell;
pub use crate::abr::Rule;
use crate::cell::FrameNumber;
use crate::index::{FlowIndex, LinkIndex, VcIndex};
use crate::policy::Decision;
use crate::tcp::sender::{Cause, SenderState};
use crate::tcp::{Ack, SackBlocks, Segment};
use crate::units::Time;

/// Someone who is told what happens.
pub trait Watcher {
    /// Whether it watches at all. Where it does not, the engines are compiled without the telling.
    const WATCHES: bool = false;

    /// This happened at `now`.
    fn on_event(&mut self, now: Time, event: Event) {
        let _ = (now, event);
    }
}

impl<W: Watcher> Watcher for &mut W {
    const WATCHES: bool = W::WATCHES;

    fn on_event(&mut self, now: Time, event: Event) {
        (**self).on_event(now, event);
    }
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// To a segment or an acknowledgement at an end of its connection; or to a packet without TCP.
    Segment(SegmentEvent),
    /// To a timer of a connection.
    Timer(TimerEvent),
    /// To a frame, at a port or at the host it was for.
    Frame(FrameEvent),
    /// To a single cell at a port.
    Cell(CellEvent),
    /// To the rate of an ABR VC.
    Rate(RateEvent),
}

/// A kind of event: what a watcher chooses by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// [`Event::Segment`].
    Segments,
    /// [`Event::Timer`].
    Timers,
    /// [`Event::Frame`].
    Frames,
    /// [`Event::Cell`].
    Cells,
    /// [`Event::Rate`].
    Rates,
}

impl Kind {
    /// Whether the fast engine tells of it; the reference engine tells of all.
    pub fn of_end_systems(self) -> bool {
        matches!(self, Kind::Segments | Kind::Timers)
    }
}

/// What happened to a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SegmentEvent {
    /// The flow.
    pub flow: FlowIndex,
    /// The VC that carries its frame.
    pub vc: VcIndex,
    /// The frame's number within its VC.
    pub frame: FrameNumber,
    /// What it was.
    pub step: SegmentStep,
    /// The sender after it; nothing without TCP.
    pub sender: Option<SenderState>,
}

/// A step in the life of a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SegmentStep {
    /// TCP hands it to its host's port for the first time, or there is no TCP.
    Sent {
        /// Which bytes; of packets without TCP the place of their payload among all that was sent.
        segment: Segment,
        /// Whether a closed window is probed with it.
        is_probe: bool,
        /// Whether a bit of it is changed on its way, on purpose ([`WindowLoss`](crate::tcp::WindowLoss)).
        is_damaged: bool,
    },
    /// It is sent again.
    Retransmitted {
        /// Which bytes.
        segment: Segment,
        /// Why.
        cause: Cause,
    },
    /// It reached the receiver.
    Arrived {
        /// Which bytes.
        segment: Segment,
        /// What it brought.
        news: News,
    },
    /// The receiver acknowledges.
    AckSent {
        /// What is acknowledged.
        ack: Ack,
        /// What it keeps beyond that, where the ends exchange this.
        blocks: SackBlocks,
    },
    /// An acknowledgement reached the sender.
    Acknowledged {
        /// What is acknowledged.
        ack: Ack,
        /// The blocks that came with it.
        blocks: SackBlocks,
        /// What it said that was not known.
        news: AckNews,
    },
}

/// What a segment brought to its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// The next bytes expected.
    InOrder,
    /// Bytes beyond a gap.
    OutOfOrder,
    /// Nothing new.
    Repeated,
}

/// What an acknowledgement said to its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckNews {
    /// It acknowledges bytes that were not.
    New,
    /// It repeats the last one, with or without news of the window or of other segments.
    Duplicate,
    /// A later one has come before it.
    Old,
}

/// What happened to a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerEvent {
    /// The flow.
    pub flow: FlowIndex,
    /// Which of its timers.
    pub timer: Timer,
    /// What it was.
    pub step: TimerStep,
}

/// The timers of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// For segments outstanding; of several, the one that runs out first.
    Retransmission,
    /// For a closed window.
    Persist,
    /// For an acknowledgement that waits.
    DelayedAck,
}

/// A step in the life of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerStep {
    /// It runs now, and so many ticks are left.
    Started {
        /// Ticks.
        left: u64,
    },
    /// It runs on, and another number of ticks is left than was.
    Restarted {
        /// Ticks.
        left: u64,
    },
    /// It runs no more.
    Stopped,
    /// It ran out.
    Expired,
}

/// What happened to a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrameEvent {
    /// The VC it was sent on.
    pub vc: VcIndex,
    /// Its number within that.
    pub frame: FrameNumber,
    /// What it was.
    pub step: FrameStep,
}

/// A step in the life of a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FrameStep {
    /// Its first cell came to a port, and it may enter.
    Admitted(Judged),
    /// Its first cell came to a port, and no cell of it may enter.
    Refused(Judged),
    /// It loses a cell at a port for want of room, and no longer can become whole.
    Cut {
        /// The port's link.
        link: LinkIndex,
        /// Cells waiting there.
        occupancy: u32,
        /// Whether it made room for another.
        pushed_out: bool,
    },
    /// It loses a cell at a port that takes it for a part of the frame before, whose last cell was lost on the way
    /// there.
    LostJoined {
        /// The port's link.
        link: LinkIndex,
        /// Cells waiting there.
        occupancy: u32,
    },
    /// It came whole to an edge device, which has no room for it.
    NoRoom(Judged),
    /// It waited whole before the ATM network, and an edge device drops it.
    Dropped {
        /// The port's link.
        link: LinkIndex,
        /// Cells waiting there before.
        occupancy: u32,
        /// Whether because the VC's rate fell, and not to make room.
        rate_fell: bool,
    },
    /// It reached the host it was for, whole.
    Delivered,
    /// Its last cell reached the host, and it was not whole.
    Failed(Failure),
}

/// A frame as a port judged it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// The port's link.
    pub link: LinkIndex,
    /// X: cells waiting.
    pub occupancy: u32,
    /// `Y_i`: cells of its VC waiting.
    pub vc_cells: u32,
    /// `N_a`: VCs with cells waiting.
    pub active_vcs: u32,
    /// Whether it is tagged (CLP = 1).
    pub tagged: bool,
    /// What the policy held against that.
    pub decision: Decision,
}

/// Why a frame is not delivered although its last cell came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Cells are missing.
    Incomplete,
    /// The frame before it lost its last cell, and its remains were joined with this one.
    Joined,
    /// A bit was changed on purpose ([`WindowLoss`](crate::tcp::WindowLoss)).
    Damaged,
}

/// What happened to a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellEvent {
    /// The port's link.
    pub link: LinkIndex,
    /// The VC it was sent on.
    pub vc: VcIndex,
    /// Number of its frame within that, or of the RM cell among those of its VC.
    pub frame: FrameNumber,
    /// Whether it ends its frame.
    pub last: bool,
    /// Whether it is tagged (CLP = 1).
    pub tagged: bool,
    /// Whether a switch has marked it (EFCI).
    pub efci: bool,
    /// What it says, if it is an RM cell.
    pub rm: Option<RmCell>,
    /// What it was.
    pub step: CellStep,
}

/// A step in the life of a cell at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellStep {
    /// It came.
    Arrived,
    /// It waits now.
    Admitted,
    /// It is gone.
    Lost(Loss),
    /// It waited, and made room for another, or its frame cannot become whole.
    PushedOut,
    /// It waited at an edge device, which drops its packet because the rate of its VC fell.
    Dropped,
    /// Its transmission begins.
    Departed,
    /// The port marks it (EFCI) as it departs.
    Marked,
    /// The network tags it as it comes (GFR).
    Tagged,
}

/// Why a cell does not enter a port's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// There is no room.
    NoRoom {
        /// Whether its frame had lost no cell so before.
        cuts: bool,
    },
    /// Its frame was refused.
    WithFrame,
    /// Its frame has lost a cell before.
    WithRest,
}

/// How the rate of an ABR VC changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateEvent {
    /// The VC.
    pub vc: VcIndex,
    /// ACR before, in cells per second.
    pub before: f64,
    /// ACR now.
    pub after: f64,
    /// By which rule of the source.
    pub rule: Rule,
}
