//! Contents of frames between end systems, and frames on their way to a port.

use crate::cell::Cell;
use crate::index::{FlowIndex, LinkIndex, VcIndex};
use crate::tcp::{Ack, Segment};
use crate::units::Time;

/// A frame for a host's output port: all its cells, back to back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The VC.
    pub vc: VcIndex,
    /// The host's link on which the frame leaves.
    pub link: LinkIndex,
    /// The frame's last cell on that link. The other cells are equal, except that they do not end the frame.
    pub last: Cell,
    /// The frame's length in cells.
    pub cells: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    Data {
        flow: FlowIndex,
        segment: Segment,
        sent: Time,
        /// True if the sender has reduced its window because of a mark (CWR).
        reduced: bool,
        /// True if the segment is ECN-capable (ECT).
        capable: bool,
    },
    Ack {
        flow: FlowIndex,
        ack: Ack,
        /// True if the receiver reports a mark (ECE).
        echoes: bool,
    },
    Packet {
        flow: FlowIndex,
        number: u64,
        sent: Time,
    },
    /// The first segment of a connection. It opens the connection.
    Syn {
        flow: FlowIndex,
    },
    /// The answer to a SYN.
    SynAck {
        flow: FlowIndex,
    },
    /// A segment with a bit error in transit: all its cells arrive, and AAL5 discards them because of the CRC.
    Damaged {
        /// The segment's bytes of data.
        len: u32,
    },
    /// A frame of an end system outside the simulation, identified by its tag.
    Outside {
        tag: u64,
        /// Length of the frame's packet.
        bytes: u64,
        /// True if the packet is ECN-capable.
        capable: bool,
    },
}

impl Departure {
    /// Returns the same departure, with or without ECN capability.
    pub(super) fn with_capable(self, capable: bool) -> Self {
        Self { last: self.last.with_capable(capable), ..self }
    }
}
