//! Events of a run, reported one at a time to an [`Observer`].
//!
//! `docs/design/events.md` lists which component reports which event. Events contain indices and numbers; names and
//! units are added when an event is written out. Each event is reported at its instant, in the order of processing.

use crate::abr::RmCell;
pub use crate::abr::Rule;
use crate::cell::FrameNumber;
use crate::index::{FlowIndex, Label, LinkIndex, MemoryIndex, VcIndex};
use crate::link_loss::LinkLoss;
use crate::memory::{Limit, QueueIndex, Side};
use crate::policy::{Decision, View};
use crate::requests::{GroupIndex, PairIndex, RequestRecord};
use crate::tcp::sender::{Cause, SenderState};
use crate::tcp::{Ack, SackBlocks, Segment};
use crate::units::Time;

/// Receives the events of a run.
pub trait Observer {
    /// True if the observer needs events. If false, the engines are compiled without event reporting for it.
    const OBSERVES: bool = false;

    /// Handles an event at `now`.
    fn on_event(&mut self, now: Time, event: Event) {
        let _ = (now, event);
    }

    /// Receives the record of a closing request of this group.
    fn on_request_closed(&mut self, group: GroupIndex, record: &RequestRecord) {
        let _ = (group, record);
    }
}

impl<W: Observer> Observer for &mut W {
    const OBSERVES: bool = W::OBSERVES;

    fn on_event(&mut self, now: Time, event: Event) {
        (**self).on_event(now, event);
    }

    fn on_request_closed(&mut self, group: GroupIndex, record: &RequestRecord) {
        (**self).on_request_closed(group, record);
    }
}

/// An event of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// A segment or an acknowledgement at an end of its connection, or a packet without TCP.
    Segment(SegmentEvent),
    /// A timer of a connection.
    Timer(TimerEvent),
    /// A frame, at a port or at its receiving host.
    Frame(FrameEvent),
    /// A single cell at a port.
    Cell(CellEvent),
    /// The rate of an ABR VC.
    Rate(RateEvent),
    /// A memory shared by ports refused a cell, or a group's pause began or ended.
    Memory(MemoryEvent),
    /// A request opened, completed or closed.
    Request(RequestEvent),
}

/// An event of a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SegmentEvent {
    /// The flow. Indices from the number of flows on stand for connections of requests ([`RequestEvent`]).
    pub flow: FlowIndex,
    /// The VC that carries the frame.
    pub vc: VcIndex,
    /// The frame's number within its VC.
    pub frame: FrameNumber,
    /// Its step.
    pub step: SegmentStep,
    /// State of the sender afterwards; `None` without TCP.
    pub sender: Option<SenderState>,
    /// The ECN bits of its headers.
    pub ecn: EcnBits,
}

/// The bits of a segment's or acknowledgement's headers for explicit congestion notification (RFC 3168); all false if the
/// connection does not use it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the casts keep exactly the bits of header fields")]
pub struct EcnBits {
    /// The ends of the connection use ECN (ECT).
    pub capable: bool,
    /// A switch has marked the segment (CE).
    pub marked: bool,
    /// The segment reports a mark to the sender (ECE).
    pub echo: bool,
    /// The segment reports to the receiver that the sender has reduced its window (CWR).
    pub reduced: bool,
}

/// Events of a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SegmentStep {
    /// TCP passes a new segment to its host's port. Packets without TCP also use this event.
    Sent {
        /// The segment's range of bytes. For packets without TCP, offsets count the payload of all packets sent.
        segment: Segment,
        /// True if the segment probes a closed window.
        is_probe: bool,
        /// True if one bit is corrupted in transit, as the scenario asks ([`WindowLoss`](crate::tcp::WindowLoss)).
        is_damaged: bool,
    },
    /// The segment is retransmitted.
    Retransmitted {
        /// Its bytes.
        segment: Segment,
        /// Reason for the retransmission.
        cause: Cause,
    },
    /// The segment reached the receiver.
    Arrived {
        /// Its bytes.
        segment: Segment,
        /// The kind of arrival.
        kind: ArrivalKind,
    },
    /// The receiver sends an acknowledgement.
    AckSent {
        /// The acknowledgement.
        ack: Ack,
        /// Data received beyond `ack`, if the connection uses SACK.
        blocks: SackBlocks,
    },
    /// An acknowledgement reached the sender.
    Acknowledged {
        /// The acknowledgement.
        ack: Ack,
        /// SACK blocks in the acknowledgement.
        blocks: SackBlocks,
        /// The kind of acknowledgement.
        kind: AckKind,
    },
    /// A step of the handshake that opens a request's connection.
    Handshake(HandshakeStep),
}

/// A step of a handshake (RFC 9293, 3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeStep {
    /// The sender sends a SYN.
    SynSent {
        /// True if the segment was sent before.
        is_repeated: bool,
    },
    /// A SYN reached the receiver.
    SynArrived,
    /// The receiver answers with a SYN-ACK.
    SynAckSent,
    /// A SYN-ACK reached the sender.
    SynAckArrived,
}

/// Kinds of segments at a receiver: with or without new data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalKind {
    /// The next byte that the receiver expects.
    InOrder,
    /// Bytes beyond a gap.
    OutOfOrder,
    /// The segment contained only bytes that had arrived before.
    Repeated,
}

/// The kind of information in an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckKind {
    /// An acknowledgement of new bytes.
    New,
    /// An acknowledgement of the same bytes as the previous one. It may change the window or report other segments.
    Duplicate,
    /// An acknowledgement that a later acknowledgement has overtaken.
    Old,
}

/// An event of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerEvent {
    /// The flow or the connection of a request.
    pub flow: FlowIndex,
    /// Its timer.
    pub timer: Timer,
    /// Its step.
    pub step: TimerStep,
}

/// The timers of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// The timer of outstanding segments. If there are several timers, the one that expires first.
    Retransmission,
    /// Guards a closed window.
    Persist,
    /// Delays an acknowledgement.
    DelayedAck,
}

/// Events of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerStep {
    /// The timer starts.
    Started {
        /// Ticks left.
        left: u64,
    },
    /// The timer continues with a different number of ticks left.
    Restarted {
        /// Ticks left.
        left: u64,
    },
    /// The timer stops.
    Stopped,
    /// The timer expires.
    Expired,
}

/// An event of a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrameEvent {
    /// The VC that carries the frame.
    pub vc: VcIndex,
    /// The frame's number within the VC.
    pub frame: FrameNumber,
    /// Its step.
    pub step: FrameStep,
}

/// Events of a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FrameStep {
    /// The frame's first cell arrived at a port, which admitted the frame.
    Admitted(Judged),
    /// The frame's first cell arrived at a port, which refuses all of the frame's cells.
    Refused(Judged),
    /// The frame loses a cell at a full port and is therefore incomplete.
    Cut {
        /// The port's link.
        link: LinkIndex,
        /// Cells waiting there.
        occupancy: u32,
        /// True if the cell was pushed out to make room for another.
        pushed_out: bool,
        /// The limit of the shared memory that refused the cell, if the port belongs to a memory.
        refusal: Option<MemoryRefusal>,
    },
    /// The frame loses a cell at a port that mistakes it for part of the previous frame, because that frame's last cell
    /// was lost earlier.
    LostJoined {
        /// The port's link.
        link: LinkIndex,
        /// Cells waiting there.
        occupancy: u32,
    },
    /// A loss rule discards a cell on this link, the first lost cell of the frame.
    LostOnLink {
        /// The link.
        link: LinkIndex,
        /// The packet or cell that the rule selected.
        loss: LinkLoss,
    },
    /// The frame arrived complete at an edge device whose buffer is full.
    NoRoom(Judged),
    /// An edge device drops the frame while it waits to enter the ATM network.
    Dropped {
        /// The port's link.
        link: LinkIndex,
        /// Number of cells waiting in the edge device after the drop.
        occupancy: u32,
        /// True if the frame was dropped because the VC's rate fell, false if it made room for another frame.
        rate_fell: bool,
    },
    /// The complete frame reached its destination host.
    Delivered,
    /// The frame's last cell reached the host, but the frame was damaged.
    Failed(Failure),
}

impl FrameStep {
    /// Returns the link of the event, or the link of its port; `None` at a host.
    pub fn link(&self) -> Option<LinkIndex> {
        match *self {
            Self::Admitted(judged) | Self::Refused(judged) | Self::NoRoom(judged) => Some(judged.link),
            Self::Cut { link, .. }
            | Self::LostJoined { link, .. }
            | Self::LostOnLink { link, .. }
            | Self::Dropped { link, .. } => Some(link),
            Self::Delivered | Self::Failed(_) => None,
        }
    }

    /// Returns X, the number of cells waiting at the port where the event happened; `None` on a link and at a host.
    pub fn occupancy(&self) -> Option<u32> {
        match *self {
            Self::Admitted(judged) | Self::Refused(judged) | Self::NoRoom(judged) => Some(judged.occupancy),
            Self::Cut { occupancy, .. } | Self::LostJoined { occupancy, .. } | Self::Dropped { occupancy, .. } => {
                Some(occupancy)
            }
            Self::LostOnLink { .. } | Self::Delivered | Self::Failed(_) => None,
        }
    }

    /// Returns the reason in words if the frame was refused, cut, joined, dropped or damaged; otherwise an empty text.
    pub fn reason(&self) -> &'static str {
        match *self {
            Self::Admitted(_) | Self::Delivered => "",
            Self::Refused(judged) => judged.decision.rule,
            Self::Cut { refusal: Some(refusal), .. } => refusal.limit.reason(refusal.rule),
            Self::Cut { pushed_out: false, .. } => NO_ROOM,
            Self::Cut { pushed_out: true, .. } => "made room for another",
            Self::NoRoom(_) => "no room for the packet",
            Self::Dropped { rate_fell: false, .. } => "the packet made room for another",
            Self::LostJoined { .. } | Self::Failed(Failure::Joined) => {
                "joined with the frame before, whose last cell was lost"
            }
            Self::LostOnLink { loss, .. } => loss.reason(),
            Self::Dropped { rate_fell: true, .. } => RATE_FELL,
            Self::Failed(Failure::Incomplete) => "cells are missing",
            Self::Failed(Failure::Damaged) => "a bit was changed on purpose",
        }
    }
}

/// State of a port when it admitted or refused a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// The port's link.
    pub link: LinkIndex,
    /// X: cells waiting.
    pub occupancy: u32,
    /// `Y_i`: waiting cells of the frame's VC.
    pub vc_cells: u32,
    /// `N_a`: VCs with cells waiting.
    pub active_vcs: u32,
    /// True if the frame is tagged (CLP = 1).
    pub tagged: bool,
    /// The rule that the policy applied, and its numbers.
    pub decision: Decision,
}

impl Judged {
    /// Returns the state of the port of `link`. `view` is the state that its policy saw when it decided about the VC of
    /// `label`.
    pub(crate) fn of(link: LinkIndex, label: Label, view: &View<'_>, decision: Decision) -> Self {
        let &View { occupancy, active_vcs, tagged, .. } = view;
        Self { link, occupancy, vc_cells: view.per_vc[label], active_vcs, tagged, decision }
    }
}

/// Reason why a frame is not delivered even though its last cell arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Cells are missing.
    Incomplete,
    /// The previous frame lost its last cell, so its remaining cells were joined with this frame.
    Joined,
    /// A bit was deliberately corrupted ([`WindowLoss`](crate::tcp::WindowLoss)).
    Damaged,
}

/// An event of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellEvent {
    /// The port's link.
    pub link: LinkIndex,
    /// The VC that carries the cell.
    pub vc: VcIndex,
    /// Number of the cell's frame within the VC, or the cell's own number among the VC's RM cells.
    pub frame: FrameNumber,
    /// True if the cell ends its frame.
    pub last: bool,
    /// True if the cell is tagged (CLP = 1).
    pub tagged: bool,
    /// True if a switch has marked the cell (EFCI).
    pub efci: bool,
    /// Content of the cell, if it is an RM cell.
    pub rm: Option<RmCell>,
    /// Its step.
    pub step: CellStep,
}

/// Events of a cell at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellStep {
    /// The cell arrives.
    Arrived,
    /// The cell enters the buffer.
    Admitted,
    /// The cell is lost.
    Lost(Loss),
    /// The cell is lost on the link behind the port.
    LostOnLink(LinkLoss),
    /// The cell leaves the buffer to make room for another cell, or because its frame can no longer be completed.
    PushedOut,
    /// An edge device drops the cell's packet because the VC's rate fell.
    Dropped,
    /// The cell's transmission begins.
    Departed,
    /// The port marks the cell (EFCI) when it arrives or departs.
    Marked,
    /// The network tags the cell on arrival (GFR).
    Tagged,
}

impl CellStep {
    /// Describes why the cell was lost or dropped; returns an empty text if it was not.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Lost(Loss::NoRoom { .. }) => NO_ROOM,
            Self::Lost(Loss::WithFrame) => "its frame was refused",
            Self::Lost(Loss::WithRest) => "its frame had lost a cell",
            Self::LostOnLink(loss) => loss.reason(),
            Self::Dropped => RATE_FELL,
            _ => "",
        }
    }
}

/// Reason why a cell does not enter a port's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The buffer is full.
    NoRoom {
        /// True for the first cell of the frame that is lost in this way.
        cuts: bool,
    },
    /// The cell's frame was refused.
    WithFrame,
    /// The cell's frame had already lost a cell.
    WithRest,
}

/// A change of the rate of an ABR VC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateEvent {
    /// The VC.
    pub vc: VcIndex,
    /// ACR before, in cells per second.
    pub before: f64,
    /// ACR afterwards.
    pub after: f64,
    /// The source rule that changed the rate.
    pub rule: Rule,
}

/// An event at a memory shared by ports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemoryEvent {
    /// The memory.
    pub memory: MemoryIndex,
    /// The queue or priority group.
    pub queue: QueueIndex,
    /// The output link of a queue; the input link of a priority group.
    pub link: LinkIndex,
    /// Its priority.
    pub priority: u8,
    /// The side of the memory (ingress or egress) on which the queue is counted.
    pub side: Side,
    /// Its step.
    pub step: MemoryStep,
    /// Cells in the queue, including its reserve and its headroom.
    pub held: u32,
    /// `q_i`: cells of the queue in the shared part.
    pub shared: u32,
    /// Q: number of cells in the pool's shared part.
    pub used: u32,
    /// The queue's threshold in the shared part, if the policy computes one.
    pub threshold: Option<f64>,
}

/// An event of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestEvent {
    /// Number of the request's connection. Flows have the first numbers, followed by requests in the order of opening.
    pub flow: FlowIndex,
    /// Its step.
    pub step: RequestStep,
}

/// A step of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestStep {
    /// The connection of a request opens. Logs name the request by its group and number, such as `web7`.
    Opened {
        /// Its group.
        group: GroupIndex,
        /// The request's number within the group, from 0.
        number: u32,
        /// The pair of hosts of the request.
        pair: PairIndex,
        /// The VCs of its data and of its acknowledgements.
        vcs: [VcIndex; 2],
        /// Bytes to send.
        bytes: u64,
        /// Number of the query that this request answers, if any.
        query: Option<u32>,
    },
    /// The last byte of the request has arrived at the receiver.
    Completed,
    /// The sender knows that the request is complete, and the connection closes. Later events never have its number.
    Closed,
}

/// The limit of a memory that refused a cell, with the relevant numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemoryRefusal {
    /// The memory.
    pub memory: MemoryIndex,
    /// The queue or priority group that had no room.
    pub queue: QueueIndex,
    /// The limit that was reached.
    pub limit: Limit,
    /// The rule of the policy, in words.
    pub rule: &'static str,
    /// `q_i`: cells of the queue or group in the shared part.
    pub shared: u32,
    /// Q: number of occupied cells in the pool's shared part.
    pub used: u32,
    /// The queue's threshold in the shared part, if the policy computes one.
    pub threshold: Option<f64>,
}

/// A step at a memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MemoryStep {
    /// The memory has no room for a cell. The port then reports its own event for the cell.
    Refused {
        /// The VC that carries the cell.
        vc: VcIndex,
        /// Number of the cell's frame within the VC, or of the RM cell.
        frame: FrameNumber,
        /// The limit that was reached.
        limit: Limit,
        /// The rule of the policy, in words.
        rule: &'static str,
    },
    /// The link that feeds the group must stop sending (xoff).
    Paused,
    /// The link may continue (xon).
    Resumed,
    /// The group is part of a deadlock: all its cells wait at ports that other groups of the cycle have paused.
    Deadlocked,
}

impl MemoryStep {
    /// Returns the reason for the refusal in words, or an empty text if no cell was refused.
    pub fn reason(&self) -> &'static str {
        match *self {
            Self::Refused { limit, rule, .. } => limit.reason(rule),
            Self::Paused | Self::Resumed => "",
            Self::Deadlocked => "its cells wait at paused ports of a cycle",
        }
    }
}

const NO_ROOM: &str = "no room";
const RATE_FELL: &str = "the rate fell";
