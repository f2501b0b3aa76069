//! Captures the traffic at hosts and ports during a run, as a pcapng file for Wireshark and similar tools.
//!
//! A capture accepts packets or cells in time order and writes each packet or cell immediately. It keeps one block of
//! the file and some recent frames in memory. `wire` produces the bytes of packets, and `pcapng` produces the file
//! format.
//!
//! | kind | a packet is | link type |
//! |---|---|---|
//! | [`CaptureKind::Ip`], one host | an IPv4 packet | RAW (101) |
//! | [`CaptureKind::Ip`], several hosts | four bytes that mean IPv4, and an IPv4 packet | NULL (0) |
//! | [`CaptureKind::Ip`], packet framing | an Ethernet frame without its checksum | ETHERNET (1) |
//! | [`CaptureKind::Aal5`], LLC/SNAP | an AAL5 frame with its pad and trailer | ERF (197), records of AAL5 |
//! | [`CaptureKind::Aal5`], VC multiplexing | an AAL5 frame with its pad and trailer | SUNATM (123) |
//! | [`CaptureKind::Cells`] | a cell of 53 bytes | USER0 (147) |
//! | [`CaptureKind::ErfCells`] | a cell without its HEC | ERF (197), records of ATM |
//!
//! ERF and SUNATM records include VPI and VCI. In a SUNATM frame, Wireshark ignores pad and trailer. In an ERF frame,
//! Wireshark shows pad and trailer, counts the cells and checks the CRC-32. However, Wireshark guesses the content of
//! an ERF frame, and guesses wrong if the frame has no LLC header. In a SUNATM frame of traffic type 0, Wireshark
//! recognises IPv4, but takes packets of 910 and 972 bytes for Frame Relay. Wireshark has no link type for cells with
//! their HEC. An ERF record has no HEC, but Wireshark shows the rest of the cell's header.
//!
//! libpcap (and so tcpdump and tcptrace) reads a file with several interfaces only if all interfaces have the same link
//! type. It rejects a file with several RAW interfaces, because it compares the number of RAW in the file, 101, with
//! its internal number of RAW, 12. For NULL, the two numbers are equal.
//!
//! Timestamps are nanoseconds since the start of the run. In the file, the run starts at the beginning of 1970, so
//! Wireshark's epoch time is the time since the start of the run.
//!
//! **The handshake** of every flow over TCP comes first, from nanosecond 1 to 2, with comments that call it synthetic.
//! Requests have the handshake that the simulation executes. A packet earlier than nanosecond 2 gets nanosecond 2 as
//! its timestamp. The round trip of the synthetic handshake must be short: Wireshark marks a segment retransmitted
//! within the handshake's round-trip time as *out of order*, not as a retransmission. If Wireshark does not know the
//! round-trip time, it assumes 3 ms. Wireshark does not recognise a round trip that takes no time or begins at time 0.
//!
//! **Counting retransmissions.** At a sender's host, Wireshark's `tcp.analysis.retransmission` marks retransmitted
//! segments, including fast retransmissions. A segment retransmitted in the same nanosecond as newer data is marked
//! `tcp.analysis.out_of_order` instead, so use the two marks together. Wireshark and tcptrace follow a connection
//! across all interfaces of a file. If a file shows a connection at both of its ends, every arrival looks like a
//! retransmission, so write a separate capture for each end.
//!
//! ```text
//! tshark -r run-sender.pcapng -Y 'tcp.analysis.retransmission || tcp.analysis.out_of_order'
//! tcptrace -l run-sender.pcapng
//! ```
//!
//! tcptrace also reads pcapng files of IPv4 packets, from one host or several. In a capture at the sender, its *rexmt
//! data pkts* are the retransmitted segments. In a capture at the receiver, its *rexmt data pkts* are the segments
//! without new data, and its *outoforder pkts* are the segments that filled a gap.

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
    /// IPv4 packets at hosts. In a network with packet framing, Ethernet frames around the packets.
    Ip,
    /// IPv4 packets in AAL5 frames.
    Aal5,
    /// Whole cells at ports.
    Cells,
    /// Cells at ports, without the HEC byte, so that Wireshark shows VPI, VCI, payload type and loss priority.
    ErfCells,
}

impl CaptureKind {
    /// Returns true for a capture of cells at ports, and false for a capture of packets at hosts.
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
    /// Name of the host or port in the scenario.
    pub name: String,
    /// Description of the host or port.
    pub description: String,
}

/// The parts of a network that a capture shows, and their form.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Type of the capture's packets.
    pub kind: CaptureKind,
    /// Options of the AAL5 frames around packets.
    pub framing: Aal5Options,
    /// Hosts or ports that the capture observes, numbered from 0.
    pub interfaces: Vec<Interface>,
    /// Connections whose packets the capture contains, numbered from 0.
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
    /// Comment that the capture stores with the frame.
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

/// A packet whose bytes come from a host outside the simulation.
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
    /// Comment that the capture stores with the packet.
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
    /// A cell of a frame. The frame's length and the index determine whether the cell is the frame's last cell.
    User {
        /// The frame.
        frame: Frame,
        /// The cell's index in the frame, from 0.
        index: u32,
        /// Cell loss priority: true if the cell may be discarded before other cells.
        clp: bool,
        /// True if a switch has set the congestion mark (EFCI) of the cell.
        efci: bool,
        /// True to capture the frame as damaged. One bit of its first cell is then flipped, so that the CRC-32 is
        /// wrong.
        damaged: bool,
    },
    /// A resource management (RM) cell. CLP is set if the cell was sent out of rate.
    Rm(abr::RmCell),
}

/// The reason why a capture failed.
#[derive(Debug)]
pub enum CaptureError {
    /// The bytes of the capture could not be written.
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
