//! Captures the traffic at hosts and ports during a run, as a pcapng file for Wireshark and similar tools.
//!
//! A capture accepts packets or cells in time order and writes each immediately. It keeps one block and some recent
//! frames in memory. `wire` produces the bytes of packets and `pcapng` the file format.
//!
//! | kind | a packet is | link type |
//! |---|---|---|
//! | [`CaptureKind::Ip`], one host | an IPv4 packet | RAW (101) |
//! | [`CaptureKind::Ip`], several hosts | the same after four bytes that say IPv4 | NULL (0) |
//! | [`CaptureKind::Ip`], packet framing | an Ethernet frame without its checksum | ETHERNET (1) |
//! | [`CaptureKind::Aal5`], LLC/SNAP | an AAL5 frame with its pad and trailer | ERF (197), records of AAL5 |
//! | [`CaptureKind::Aal5`], VC multiplexing | the same | SUNATM (123) |
//! | [`CaptureKind::Cells`] | a cell of 53 bytes | USER0 (147) |
//! | [`CaptureKind::ErfCells`] | a cell without its HEC | ERF (197), records of ATM |
//!
//! ERF and SUNATM records both include VPI and VCI. In a SUNATM frame, Wireshark ignores pad and trailer. In an ERF
//! frame, it shows them, counts the cells and checks the CRC-32. However, it guesses the content of an ERF frame, and
//! guesses wrong if there is no LLC header. In a SUNATM frame of traffic type 0, Wireshark finds IPv4, but it takes
//! packets of 910 and 972 bytes for Frame Relay. Wireshark has no link type for cells with their HEC. An ERF record has
//! no HEC, but Wireshark shows the rest of the cell's header.
//!
//! libpcap (and so tcpdump and tcptrace) reads a file with several interfaces only if all have the same link type. It
//! rejects several RAW interfaces, because it compares the number in the file, 101, with its internal number for the
//! first interface, 12. For NULL both numbers are the same.
//!
//! Timestamps are nanoseconds since the start of the run. In the file, the run starts at the beginning of 1970, so
//! Wireshark's epoch time is the time since the start of the run.
//!
//! **The handshake** of every flow over TCP comes first, from nanosecond 1 to 2, with comments that call it synthetic.
//! Requests have the model's own handshake. A packet earlier than the end of the handshake gets the timestamp of that
//! end. The short round trip matters: Wireshark marks a segment retransmitted within the handshake's round trip as *out
//! of order*, not as a retransmission. If Wireshark does not know the round trip, it assumes 3 ms. It does not
//! recognise a round trip that takes no time or begins at time 0.
//!
//! **Counting retransmissions.** At a sender's host, Wireshark's `tcp.analysis.retransmission` marks retransmitted
//! segments, including fast retransmissions. A segment retransmitted in the same nanosecond as newer data is marked
//! `tcp.analysis.out_of_order` instead, so use both. Wireshark and tcptrace follow a connection across all interfaces
//! of a file. If both of its ends are in one file, every arrival looks like a retransmission, so write a capture for
//! each end.
//!
//! ```text
//! tshark -r run-sender.pcapng -Y 'tcp.analysis.retransmission || tcp.analysis.out_of_order'
//! tcptrace -l run-sender.pcapng
//! ```
//!
//! tcptrace also reads pcapng files of IPv4 packets, from one host or several. At the sender, its *rexmt data pkts* are
//! the retransmitted segments. At the receiver they are the segments without new data, and *outoforder pkts* are those
//! that filled a gap.

mod capture;
mod cells;
pub mod choice;
pub mod codec;
mod connections;
mod ethernet;
mod link_types;
mod outcomes;
mod outside;
mod own_packet;
mod pcapng;
pub mod selection;
mod sink;
mod tracker;
pub mod watch;
mod wire;

use std::fmt::{self, Display, Formatter};
use std::io;

use celltrain_core::aal5::Aal5Options;
use celltrain_core::abr;

pub use capture::Capture;
pub use choice::CaptureChoice;
pub use pcapng::Direction;
pub use watch::{Watch, nanoseconds};
pub use wire::{Carries, Circuit, Connection, End, Frame, Labels, Tcp};

/// Type of the packets in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureKind {
    /// IPv4 packets at hosts, in Ethernet frames with packet framing.
    Ip,
    /// IPv4 packets in AAL5 frames.
    Aal5,
    /// Whole cells at ports.
    Cells,
    /// Cells at ports, without the HEC byte, so that Wireshark shows VPI, VCI, payload type and loss priority.
    ErfCells,
}

impl CaptureKind {
    /// Returns true for cells at ports, false for packets at hosts.
    pub fn of_cells(self) -> bool {
        matches!(self, Self::Cells | Self::ErfCells)
    }
}

/// Description of a capture, stored in its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Program that wrote the capture, with its version.
    pub application: String,
    /// Description of the captured run.
    pub comment: String,
}

/// An observed host or port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// The interface's name in the scenario.
    pub name: String,
    /// Description of the interface.
    pub description: String,
}

/// The parts of a network that a capture shows, and their form.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Type of the capture's packets.
    pub kind: CaptureKind,
    /// Framing of packets.
    pub framing: Aal5Options,
    /// Observed hosts or ports, numbered from 0.
    pub interfaces: Vec<Interface>,
    /// Connections, numbered from 0.
    pub connections: Vec<Connection>,
}

/// A complete frame, observed at one end of its connection.
#[derive(Clone, Copy, Debug)]
pub struct SeenFrame<'a> {
    /// Nanoseconds since the start of the run.
    pub time_ns: u64,
    /// End of the connection at which the frame was observed.
    pub at: Place,
    /// The frame.
    pub frame: Frame,
    /// Comment on the frame.
    pub comment: Option<&'a str>,
}

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The end that sends data.
    Sender,
    /// The end that acknowledges the data.
    Receiver,
}

/// A packet with its own bytes, sent by a host outside the simulation.
#[derive(Clone, Copy, Debug)]
pub struct SeenPacket<'a> {
    /// Nanoseconds since the start of the run.
    pub time_ns: u64,
    /// Number of the host's interface in the capture.
    pub interface: u32,
    /// Whether the packet arrives or departs.
    pub direction: Direction,
    /// VPI and VCI of the packet's cells at the host.
    pub circuit: Circuit,
    /// Bytes of the packet, starting with its IP header.
    pub bytes: &'a [u8],
    /// Comment on the packet.
    pub comment: Option<&'a str>,
}

/// A cell seen at a port.
#[derive(Clone, Copy, Debug)]
pub struct SeenCell<'a> {
    /// Nanoseconds since the start of the run.
    pub time_ns: u64,
    /// Number of the port's interface in the capture.
    pub interface: u32,
    /// Whether the cell arrives or departs.
    pub direction: Direction,
    /// VPI and VCI of the cell at the port.
    pub circuit: Circuit,
    /// Content of the cell.
    pub cell: CellKind,
    /// Comment that the capture stores with the cell, for example why it was lost.
    pub comment: Option<&'a str>,
}

/// Content of a cell, with the bits of its header.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CellKind {
    /// A cell of a frame. The frame and the index determine whether it is the last one.
    User {
        /// The frame.
        frame: Frame,
        /// The cell's index in the frame, from 0.
        index: u32,
        /// Cell loss priority: true if the cell may be discarded before other cells.
        clp: bool,
        /// True if a switch has marked the cell.
        efci: bool,
        /// True if the frame was damaged on purpose: one bit of the first cell is flipped, and the CRC-32 detects it.
        damaged: bool,
    },
    /// A resource management cell; CLP is set if it was sent out of rate.
    Rm(abr::RmCell),
}

/// The reason why a capture failed.
#[derive(Debug)]
pub enum CaptureError {
    /// The capture could not be written.
    Write(io::Error),
    /// The capture was refused because it cannot represent the traffic; the string describes the problem.
    Refused(String),
}

impl Display for CaptureError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(error) => write!(f, "the capture could not be written: {error}"),
            Self::Refused(problem) => f.write_str(problem),
        }
    }
}

impl std::error::Error for CaptureError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Write(error) => Some(error),
            Self::Refused(_) => None,
        }
    }
}

impl From<io::Error> for CaptureError {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

/// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests;
