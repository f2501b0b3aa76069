//! Events of segments and of connections' timers.

use crate::cell::FrameNumber;
use crate::index::{FlowIndex, VcIndex};
use crate::tcp::sender::{Cause, SenderState};
use crate::tcp::{Ack, SackBlocks, Segment};

/// An event of a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SegmentEvent {
    /// The flow. Indices from the number of flows on stand for connections of requests
    /// ([`RequestEvent`](super::RequestEvent)).
    pub flow: FlowIndex,
    /// The VC that carries the frame.
    pub vc: VcIndex,
    /// The frame's number within its VC.
    pub frame: FrameNumber,
    /// Its step.
    pub step: SegmentStep,
    /// State of the sender afterwards; `None` without TCP.
    pub sender: Option<SenderState>,
    /// The ECN bits of the segment's headers.
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
        /// True if one bit is corrupted in transit, as the scenario configures
        /// ([`WindowLoss`](crate::tcp::WindowLoss)).
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
        /// Classification of the arriving segment.
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
        /// Classification of the acknowledgement.
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
    /// Bytes beyond a gap in the received data.
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
    /// Triggers a probe while the receiver's window is closed.
    Persist,
    /// Ends the delay of an acknowledgement.
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
