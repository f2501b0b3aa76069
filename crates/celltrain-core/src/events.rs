//! Events of a run, reported one at a time to an [`Observer`].
//!
//! `docs/design/events.md` lists which component reports which event. Events contain indices and numbers; names and
//! units are added when an event is written out. Each event is reported at its instant, in the order of processing.

mod memories;
mod segments;

use crate::abr::RmCell;
pub use crate::abr::Rule;
use crate::cell::FrameNumber;
use crate::index::{FlowIndex, Label, LinkIndex, VcIndex};
use crate::link_loss::LinkLoss;
use crate::policy::{Decision, View};
use crate::requests::{GroupIndex, PairIndex, RequestRecord};
use crate::units::Time;
pub use memories::{MemoryEvent, MemoryRefusal, MemoryStep};
pub use segments::{
    AckKind, ArrivalKind, EcnBits, HandshakeStep, SegmentEvent, SegmentStep, Timer, TimerEvent, TimerStep,
};

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
    /// A change of an ABR VC's rate.
    Rate(RateEvent),
    /// A memory shared by ports refused a cell, or a group's pause began or ended.
    Memory(MemoryEvent),
    /// A request opened, completed or closed.
    Request(RequestEvent),
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
        /// Cells waiting at the port.
        occupancy: u32,
        /// True if the cell was pushed out to make room for another cell.
        pushed_out: bool,
        /// The limit of the shared memory that refused the cell, if the port belongs to a memory.
        refusal: Option<MemoryRefusal>,
    },
    /// The frame loses a cell at a port that mistakes it for part of the previous frame, because that frame's last cell
    /// was lost earlier.
    LostJoined {
        /// The port's link.
        link: LinkIndex,
        /// Cells waiting at the port.
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
    /// The first cell of the frame reached the head of the queue, and the policy drops the frame.
    DroppedAtHead(Judged),
    /// The policy marks the frame (ECN), when its first cell arrives or reaches the head of the queue.
    Marked(Judged),
    /// The complete frame reached its destination host.
    Delivered,
    /// The frame's last cell reached the host, but the frame was damaged.
    Failed(Failure),
}

impl FrameStep {
    /// Returns the link of the event, or the link of its port; `None` at a host.
    pub fn link(&self) -> Option<LinkIndex> {
        match *self {
            Self::Admitted(judged)
            | Self::Refused(judged)
            | Self::NoRoom(judged)
            | Self::DroppedAtHead(judged)
            | Self::Marked(judged) => Some(judged.link),
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
            Self::Admitted(judged)
            | Self::Refused(judged)
            | Self::NoRoom(judged)
            | Self::DroppedAtHead(judged)
            | Self::Marked(judged) => Some(judged.occupancy),
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
            Self::Refused(judged) | Self::DroppedAtHead(judged) | Self::Marked(judged) => judged.decision.rule,
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
    /// X: number of waiting cells.
    pub occupancy: u32,
    /// `Y_i`: waiting cells of the frame's VC.
    pub vc_cells: u32,
    /// `N_a`: number of VCs with waiting cells.
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
    /// Some cells of the frame are missing.
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
    /// The cell reaches the head of the queue, and the policy has dropped its frame.
    DroppedAtHead,
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
            Self::DroppedAtHead => "its frame was dropped at the head of the queue",
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
    /// The cell's whole frame was refused.
    WithFrame,
    /// The cell's frame had already lost a cell.
    WithRest,
}

/// A change of the rate of an ABR VC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateEvent {
    /// The VC.
    pub vc: VcIndex,
    /// ACR before the change, in cells per second.
    pub before: f64,
    /// ACR afterwards.
    pub after: f64,
    /// The source rule that changed the rate.
    pub rule: Rule,
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
        /// The VCs of the request's data and of its acknowledgements.
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

const NO_ROOM: &str = "no room";
const RATE_FELL: &str = "the rate fell";
