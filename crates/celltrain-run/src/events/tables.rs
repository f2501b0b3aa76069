//! The columns of each kind of event.

use std::ops::Deref;

use celltrain_core::events::{
    AckKind, ArrivalKind, CellEvent, CellStep, EcnBits, FrameEvent, FrameStep, HandshakeStep, Judged, MemoryEvent,
    MemoryRefusal, MemoryStep, RateEvent, Rule, SegmentEvent, SegmentStep, Timer, TimerEvent, TimerStep,
};
use celltrain_core::memory::Side;
use celltrain_core::tcp::sender::Cause;
use celltrain_core::tcp::{Ack, Segment};

use super::columns::Accessor::{self, Count, Flag, Flow, Number, Pool, Port, PortVc, Rate, Time, Vc, Word};
use super::columns::Column;

const fn column<E>(name: &'static str, unit: &'static str, meaning: &'static str, value: Accessor<E>) -> Column<E> {
    Column { name, unit, meaning, value }
}

const fn time<E>() -> Column<E> {
    column("time_s", "s", "time since the start of the run", Time)
}

/// Columns of the table of segment events.
pub const SEGMENTS: &[Column<SegmentEvent>] = &[
    time(),
    column("flow", "", "the connection", Flow(|row| row.flow)),
    column(
        "event",
        "",
        "sent, retransmitted, arrived, ack_sent or acknowledged; for requests also syn_sent, syn_arrived, syn_ack_sent or \
         syn_ack_arrived",
        Word(|row| match row.event.step {
            SegmentStep::Sent { .. } => "sent",
            SegmentStep::Retransmitted { .. } => "retransmitted",
            SegmentStep::Arrived { .. } => "arrived",
            SegmentStep::AckSent { .. } => "ack_sent",
            SegmentStep::Acknowledged { .. } => "acknowledged",
            SegmentStep::Handshake(HandshakeStep::SynSent { .. }) => "syn_sent",
            SegmentStep::Handshake(HandshakeStep::SynArrived) => "syn_arrived",
            SegmentStep::Handshake(HandshakeStep::SynAckSent) => "syn_ack_sent",
            SegmentStep::Handshake(HandshakeStep::SynAckArrived) => "syn_ack_arrived",
        }),
    ),
    column(
        "reason",
        "",
        "reason for a retransmission, or the effect of an arrival on its receiver",
        Word(|row| match row.event.step {
            SegmentStep::Sent { is_probe: true, .. } => "window probe",
            SegmentStep::Handshake(HandshakeStep::SynSent { is_repeated: true }) => "timeout",
            SegmentStep::Sent { .. } | SegmentStep::AckSent { .. } | SegmentStep::Handshake(_) => "",
            SegmentStep::Retransmitted { cause, .. } => match cause {
                Cause::Timeout => "timeout",
                Cause::DuplicateAcks => "third duplicate ACK",
                Cause::PartialAck => "partial ACK",
                Cause::Hole => "SACK hole",
                Cause::TailProbe => "tail loss probe",
                Cause::Unknown => "not reported by the stack",
            },
            SegmentStep::Arrived { kind, .. } => match kind {
                ArrivalKind::InOrder => "in order",
                ArrivalKind::OutOfOrder => "out of order",
                ArrivalKind::Repeated => "repeated",
            },
            SegmentStep::Acknowledged { kind, .. } => match kind {
                AckKind::New => "new",
                AckKind::Duplicate => "duplicate",
                AckKind::Old => "old",
            },
        }),
    ),
    column(
        "sequence",
        "bytes",
        "stream offset of the segment's first byte, from 0; empty for an ACK",
        Count(|row| segment(&row.event).map(|segment| segment.seq)),
    ),
    column(
        "length",
        "bytes",
        "payload of the segment; empty for an ACK",
        Count(|row| segment(&row.event).map(|segment| segment.len.into())),
    ),
    column(
        "acknowledgement",
        "bytes",
        "stream offset of the next byte that the receiver expects; only for ACKs",
        Count(|row| ack(&row.event).map(|ack| ack.ack)),
    ),
    column(
        "ecn",
        "",
        "congestion bits in the packet's headers: marked (CE), echo (ECE) or reduced (CWR)",
        Word(|row| match row.event.ecn {
            EcnBits { marked: true, echo: true, .. } => "marked and echo",
            EcnBits { marked: true, .. } => "marked",
            EcnBits { echo: true, .. } => "echo",
            EcnBits { reduced: true, .. } => "reduced",
            _ => "",
        }),
    ),
    column(
        "cwnd",
        "segments",
        "the sender's congestion window after the event",
        Number(|row| row.event.sender.map(|sender| sender.cwnd)),
    ),
    column(
        "ssthresh",
        "segments",
        "the sender's slow start threshold",
        Number(|row| row.event.sender.map(|sender| sender.ssthresh)),
    ),
    column(
        "flight",
        "bytes",
        "bytes sent and not yet acknowledged",
        Count(|row| row.event.sender.map(|sender| sender.flight)),
    ),
    column(
        "rto_s",
        "s",
        "the sender's retransmission timeout, backoff included",
        Number(|row| row.event.sender.map(|sender| f64::from(sender.rto) * row.tick_s)),
    ),
    column("vc", "", "the VC that carries the segment", Vc(|row| Some(row.event.vc))),
    column("frame", "1", "number of the segment's frame within its VC", Count(|row| Some(row.number.into()))),
];

fn segment(event: &SegmentEvent) -> Option<Segment> {
    match event.step {
        SegmentStep::Sent { segment, .. }
        | SegmentStep::Retransmitted { segment, .. }
        | SegmentStep::Arrived { segment, .. } => Some(segment),
        SegmentStep::AckSent { .. } | SegmentStep::Acknowledged { .. } | SegmentStep::Handshake(_) => None,
    }
}

fn ack(event: &SegmentEvent) -> Option<Ack> {
    match event.step {
        SegmentStep::AckSent { ack, .. } | SegmentStep::Acknowledged { ack, .. } => Some(ack),
        SegmentStep::Sent { .. }
        | SegmentStep::Retransmitted { .. }
        | SegmentStep::Arrived { .. }
        | SegmentStep::Handshake(_) => None,
    }
}

/// Columns of the table of timer events.
pub const TIMERS: &[Column<TimerEvent>] = &[
    time(),
    column("flow", "", "the connection", Flow(|row| row.flow)),
    column(
        "timer",
        "",
        "retransmission, persist (of a closed window) or delayed_ack",
        Word(|row| match row.event.timer {
            Timer::Retransmission => "retransmission",
            Timer::Persist => "persist",
            Timer::DelayedAck => "delayed_ack",
        }),
    ),
    column(
        "event",
        "",
        "event of the timer: started, restarted, stopped or expired",
        Word(|row| match row.event.step {
            TimerStep::Started { .. } => "started",
            TimerStep::Restarted { .. } => "restarted",
            TimerStep::Stopped => "stopped",
            TimerStep::Expired => "expired",
        }),
    ),
    column(
        "ticks",
        "ticks",
        "ticks of the timer's clock until the timer expires; the first tick may occur at once",
        Count(|row| match row.event.step {
            TimerStep::Started { left } | TimerStep::Restarted { left } => Some(left),
            TimerStep::Stopped | TimerStep::Expired => None,
        }),
    ),
];

/// Columns of the table of frame events.
pub const FRAMES: &[Column<FrameEvent>] = &[
    time(),
    column("flow", "", "the connection that uses the VC", Flow(|row| row.flow)),
    column("vc", "", "the VC on which the source sends", Vc(|row| Some(row.event.vc))),
    column(
        "port_vc",
        "",
        "the VC at the port: the merged VC after a merge; empty at a host",
        PortVc(|row| row.port_vc),
    ),
    column("frame", "1", "number of the frame within the VC of the source", Count(|row| Some(row.number.into()))),
    column(
        "event",
        "",
        "admitted, marked, refused, cut, joined or dropped at a port; lost on a link; delivered or failed at its host",
        Word(|row| match row.event.step {
            FrameStep::Admitted(_) => "admitted",
            FrameStep::Refused(_) => "refused",
            FrameStep::Cut { .. } | FrameStep::NoRoom(_) | FrameStep::Dropped { rate_fell: false, .. } => "cut",
            FrameStep::LostJoined { .. } => "joined",
            FrameStep::LostOnLink { .. } => "lost",
            FrameStep::Dropped { rate_fell: true, .. } | FrameStep::DroppedAtHead(_) => "dropped",
            FrameStep::Marked(_) => "marked",
            FrameStep::Delivered => "delivered",
            FrameStep::Failed(_) => "failed",
        }),
    ),
    column(
        "port",
        "",
        "the link, or the output port named after it; empty at a host",
        Port(|row| row.event.step.link()),
    ),
    column(
        "reason",
        "",
        "reason for which the frame was marked, refused, cut, joined, dropped, lost or failed",
        Word(|row| row.event.step.reason()),
    ),
    column(
        "occupancy",
        "cells",
        "X: cells waiting at the port",
        Count(|row| row.event.step.occupancy().map(u64::from)),
    ),
    column(
        "vc_cells",
        "cells",
        "Y_i: cells of port_vc waiting at the port at the decision",
        Count(|row| judged(&row.event).map(|judged| judged.vc_cells.into())),
    ),
    column(
        "active_vcs",
        "1",
        "N_a: VCs with cells waiting at the port at the decision",
        Count(|row| judged(&row.event).map(|judged| judged.active_vcs.into())),
    ),
    column(
        "threshold_cells",
        "cells",
        "threshold with which the policy compared X, or the memory compared the queue",
        Number(|row| {
            let of_memory = refusal(&row.event).and_then(|refusal| refusal.threshold);
            judged(&row.event).and_then(|judged| judged.decision.threshold).or(of_memory)
        }),
    ),
    column(
        "share_cells",
        "cells",
        "maximum number of cells that the policy allows the VC",
        Number(|row| judged(&row.event).and_then(|judged| judged.decision.share)),
    ),
    column(
        "held_cells",
        "cells",
        "length of the virtual queue or the memory's queue, if the limit applies to that queue",
        Number(|row| {
            let of_memory = refusal(&row.event).map(|refusal| refusal.shared.into());
            judged(&row.event).and_then(|judged| judged.decision.held).or(of_memory)
        }),
    ),
    column(
        "drop_probability",
        "1",
        "probability of refusal in the policy's random decision",
        Number(|row| judged(&row.event).and_then(|judged| judged.decision.probability)),
    ),
    column(
        "waited_s",
        "s",
        "waiting time in the queue, if the policy compares this time with a target",
        Number(|row| judged(&row.event).and_then(|judged| judged.decision.waited)),
    ),
    column(
        "target_s",
        "s",
        "target time with which the policy compared waited_s",
        Number(|row| judged(&row.event).and_then(|judged| judged.decision.target)),
    ),
    column(
        "tagged",
        "",
        "true if the frame is tagged (CLP = 1)",
        Flag(|row| judged(&row.event).map(|judged| judged.tagged)),
    ),
    column(
        "pool_used_cells",
        "cells",
        "Q: occupied cells of the memory's pool, if the memory refused the frame",
        Count(|row| refusal(&row.event).map(|refusal| refusal.used.into())),
    ),
    column(
        "lost_number",
        "1",
        "number, from 0, of the packet or cell that a loss rule selected",
        Count(|row| match row.event.step {
            FrameStep::LostOnLink { loss, .. } => Some(loss.number),
            _ => None,
        }),
    ),
];

fn refusal(event: &FrameEvent) -> Option<MemoryRefusal> {
    match event.step {
        FrameStep::Cut { refusal, .. } => refusal,
        _ => None,
    }
}

fn judged(event: &FrameEvent) -> Option<Judged> {
    match event.step {
        FrameStep::Admitted(judged)
        | FrameStep::Refused(judged)
        | FrameStep::NoRoom(judged)
        | FrameStep::DroppedAtHead(judged)
        | FrameStep::Marked(judged) => Some(judged),
        _ => None,
    }
}

/// Columns of the table of cell events.
pub const CELLS: &[Column<CellEvent>] = &[
    time(),
    column("port", "", "the output port, named after its link", Port(|row| Some(row.event.link))),
    column("flow", "", "the connection that uses the VC", Flow(|row| row.flow)),
    column("vc", "", "the VC on which the source sends", Vc(|row| Some(row.event.vc))),
    column("port_vc", "", "the VC at the port: the merged VC after a merge", PortVc(|row| row.port_vc)),
    column(
        "frame",
        "1",
        "number of the cell's frame, or of an RM cell, within the VC of the source",
        Count(|row| Some(row.number.into())),
    ),
    column(
        "index",
        "1",
        "index of the cell, from 0, among its frame's cells that arrived at this port; empty for an RM cell",
        Count(|row| row.index.map(u64::from)),
    ),
    column(
        "event",
        "",
        "arrived, tagged, admitted, lost, pushed_out, dropped, marked, departed or lost_on_link",
        Word(|row| match row.event.step {
            CellStep::Arrived => "arrived",
            CellStep::Admitted => "admitted",
            CellStep::Lost(_) => "lost",
            CellStep::LostOnLink(_) => "lost_on_link",
            CellStep::PushedOut => "pushed_out",
            CellStep::Dropped | CellStep::DroppedAtHead => "dropped",
            CellStep::Departed => "departed",
            CellStep::Marked => "marked",
            CellStep::Tagged => "tagged",
        }),
    ),
    column("reason", "", "reason for which the cell was lost or dropped", Word(|row| row.event.step.reason())),
    column("last", "", "true if the cell ends its frame", Flag(|row| Some(row.event.last))),
    column("tagged", "", "true if the cell is tagged (CLP = 1)", Flag(|row| Some(row.event.tagged))),
    column("efci", "", "true if a switch has marked the cell", Flag(|row| Some(row.event.efci))),
    column(
        "rm",
        "",
        "direction of an RM cell: forward or backward",
        Word(|row| match row.event.rm {
            None => "",
            Some(rm) if rm.backward => "backward",
            Some(_) => "forward",
        }),
    ),
    column(
        "ccr_mbps",
        "Mb/s",
        "CCR (current cell rate) of an RM cell, counting cell headers",
        Rate(|row| row.event.rm.map(|rm| rm.ccr)),
    ),
    column(
        "er_mbps",
        "Mb/s",
        "ER (explicit rate) of an RM cell, counting cell headers",
        Rate(|row| row.event.rm.map(|rm| rm.er)),
    ),
    column("ci", "", "CI (congestion indication) bit of an RM cell", Flag(|row| row.event.rm.map(|rm| rm.ci))),
    column("ni", "", "NI (no increase) bit of an RM cell", Flag(|row| row.event.rm.map(|rm| rm.ni))),
];

/// Columns of the table of rate changes.
pub const RATES: &[Column<RateEvent>] = &[
    time(),
    column("flow", "", "the connection that uses the VC", Flow(|row| row.flow)),
    column("vc", "", "the ABR VC whose rate changes", Vc(|row| Some(row.event.vc))),
    column(
        "event",
        "",
        "direction of the change of rate: risen or fallen",
        Word(|row| if row.event.after > row.event.before { "risen" } else { "fallen" }),
    ),
    column(
        "reason",
        "",
        "source rule of TM 4.0 that changed the rate",
        Word(|row| match row.event.rule {
            Rule::Initial => "rule 2: the source starts at ICR",
            Rule::Idle => "rule 5: no forward RM cell was sent for ADTF",
            Rule::Unanswered => "rule 6: CRM forward RM cells are unanswered",
            Rule::CongestionIndication => "rule 8: CI was set",
            Rule::Increase => "rule 8: neither CI nor NI was set",
            Rule::ExplicitRate => "rule 9: ER",
        }),
    ),
    column("before_mbps", "Mb/s", "ACR before the change, counting cell headers", Rate(|row| Some(row.event.before))),
    column("acr_mbps", "Mb/s", "ACR after the change, counting cell headers", Rate(|row| Some(row.event.after))),
];

/// An event at a shared memory, with the pool in which it occurs.
pub struct InPool {
    /// The event.
    pub event: MemoryEvent,
    /// Index of the pool among the pools of all memories.
    pub pool: u32,
    /// B: cells of the pool's shared part.
    pub cells: u32,
}

impl Deref for InPool {
    type Target = MemoryEvent;

    fn deref(&self) -> &MemoryEvent {
        &self.event
    }
}

/// Columns of the table of events at memories shared by ports.
pub const MEMORIES: &[Column<InPool>] = &[
    time(),
    column(
        "event",
        "",
        "event of the memory: refused, paused (xoff), resumed (xon) or deadlocked",
        Word(|row| match row.event.step {
            MemoryStep::Refused { .. } => "refused",
            MemoryStep::Paused => "paused",
            MemoryStep::Resumed => "resumed",
            MemoryStep::Deadlocked => "deadlocked",
        }),
    ),
    column("reason", "", "the limit of the memory that was reached, in words", Word(|row| row.event.step.reason())),
    column(
        "port",
        "",
        "the output link of a queue, or the input link of a priority group",
        Port(|row| Some(row.event.link)),
    ),
    column("pool", "", "memory and pool of the queue", Pool(|row| row.event.pool)),
    column("priority", "1", "priority of the queue or priority group", Count(|row| Some(row.event.priority.into()))),
    column(
        "side",
        "",
        "egress for a queue, ingress for a priority group",
        Word(|row| match row.event.side {
            Side::Egress => "egress",
            Side::Ingress => "ingress",
        }),
    ),
    column(
        "held",
        "cells",
        "cells of the queue, including its reserve and headroom",
        Count(|row| Some(row.event.held.into())),
    ),
    column(
        "shared",
        "cells",
        "q_i: the queue's cells in the pool's shared part",
        Count(|row| Some(row.event.shared.into())),
    ),
    column("used", "cells", "Q: occupied cells of the pool's shared part", Count(|row| Some(row.event.used.into()))),
    column("pool_cells", "cells", "B: cells of the pool's shared part", Count(|row| Some(row.event.cells.into()))),
    column(
        "threshold",
        "cells",
        "threshold of the queue in the pool's shared part; empty if its policy has no threshold",
        Number(|row| row.event.threshold),
    ),
    column(
        "vc",
        "",
        "the VC of the refused cell",
        Vc(|row| match row.event.step {
            MemoryStep::Refused { vc, .. } => Some(vc),
            MemoryStep::Paused | MemoryStep::Resumed | MemoryStep::Deadlocked => None,
        }),
    ),
    column(
        "frame",
        "1",
        "number of the refused cell's frame within its VC",
        Count(|row| matches!(row.event.step, MemoryStep::Refused { .. }).then_some(row.number.into())),
    ),
];
