//! Rules that every stack must keep: valid IP headers, packets that fit the MTU, and reports of data that has arrived.

use std::net::Ipv4Addr;

use celltrain_core::aal5::TCP_IP_HEADERS;
use celltrain_core::index::FlowIndex;
use celltrain_core::network::Network;
use celltrain_core::traffic::Load;

use crate::stack::{Endpoint, HEADER, Report, Side};

/// Largest number of packets from one call of `poll`. A gigabit link needs half a second for as many full packets.
pub const MOST_PACKETS: usize = 50_000;

/// Maximum number of an end's packets in transit, and of their bytes, for a given number of cells waiting at its host's
/// port.
const MOST_ON_THE_WAY: (u64, u64) = (1_000_000, 1_000_000_000);

/// The packets of an end so far. They limit what its stack can send and report.
pub(crate) struct Contract {
    local: Ipv4Addr,
    remote: Ipv4Addr,
    mss: u64,
    side: Side,
    /// Bytes of the file that the flow sends; `None` for other data.
    file: Option<u64>,
    /// Packets sent.
    packets: u64,
    /// Bytes sent after IP headers.
    sent: u64,
    /// Number of bytes that have arrived, without IP headers.
    arrived: u64,
    /// Number of received bytes in the last report.
    received: u64,
}

impl Contract {
    pub(crate) fn new(network: &Network, flow: FlowIndex, side: Side) -> Self {
        let (mss, _) = network.flows[flow].frame(&network.aal5);
        let file = match network.flows[flow].traffic.load() {
            Load::Stream(Some(file)) => Some(file.bytes),
            _ => None,
        };
        Self::of_end(Endpoint::of(network, flow, side), mss, file)
    }

    /// Creates the contract of an end. The connection sends `file` bytes, or other data if it is `None`.
    pub(crate) fn of_end(end: Endpoint, mss: u64, file: Option<u64>) -> Self {
        let Endpoint { local, remote, side, .. } = end;
        Self { local, remote, mss, side, file, packets: 0, sent: 0, arrived: 0, received: 0 }
    }

    /// Counts a packet that has arrived.
    pub(crate) fn on_arrived(&mut self, packet: &[u8]) {
        self.arrived += payload(packet);
    }

    /// Counts a packet that leaves the end. Returns the error in its header, if any (RFC 791, 3.1).
    pub(crate) fn packet_problem(&mut self, packet: &[u8]) -> Option<String> {
        self.packets += 1;
        self.sent += payload(packet);
        let bytes = packet.len();
        let of = |problem: String| Some(format!("the stack sends a packet of {bytes} bytes: {problem}"));
        let Some(header) = packet.first_chunk::<HEADER>() else {
            return of(format!("the packet is shorter than an IP header ({HEADER} bytes)"));
        };
        let version = header[0] >> 4;
        let header_bytes = header_bytes(packet);
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let [from, to] = [12, 16].map(|at| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]));
        let longest = self.mss + TCP_IP_HEADERS;
        if version != 4 {
            of(format!("the IP version is {version}, but must be 4"))
        } else if header_bytes < HEADER || header_bytes > bytes {
            of(format!(
                "the IP header has {header_bytes} bytes, but must have at least {HEADER} and fit into the packet"
            ))
        } else if length != bytes {
            of(format!("the IP header states a total length of {length} bytes"))
        } else if from != self.local {
            of(format!("the source address is {from}, but must be the local address of its end ({})", self.local))
        } else if to != self.remote {
            of(format!("the destination address is {to}, but must be the remote address of its end ({})", self.remote))
        } else if bytes as u64 > longest {
            let needed = bytes as u64 - TCP_IP_HEADERS;
            of(format!(
                "an mss of {} bytes allows at most {longest} bytes; send less, or allow it: mss = {needed} in a Python \
                 class, .mss({needed}) in a trial",
                self.mss
            ))
        } else {
            None
        }
    }

    /// Describes the problem if an end sends faster than its host's port for too long. `waiting` returns the number of
    /// cells waiting at that port.
    pub(crate) fn flood_problem(&self, on_the_way: usize, waiting: impl FnOnce() -> u32) -> Option<String> {
        let (packets, bytes) = MOST_ON_THE_WAY;
        let most = packets.min(bytes / (self.mss + TCP_IP_HEADERS));
        if (on_the_way as u64) <= most {
            return None;
        }
        // If they are not waiting at the port, they are on a long and fast link.
        let waiting = waiting();
        (u64::from(waiting) > most).then(|| {
            let Self { packets, sent, .. } = self;
            format!(
                "it has sent {packets} packets with {sent} bytes; {on_the_way} of them have not arrived, and {waiting} \
                 cells wait at the port of its host; send only what a window or a rate allows"
            )
        })
    }

    /// Returns the incorrect part of a report, and the problem; `None` if the report is correct.
    pub(crate) fn report_problem(&mut self, report: Report) -> Option<(&'static str, String)> {
        let Report { received, completed, .. } = report;
        let (before, arrived, sent) = (self.received, self.arrived, self.sent);
        self.received = received;
        if received > arrived {
            let problem = format!("received is {received}, but only {arrived} bytes of IP payload have arrived");
            return Some(("received", problem));
        }
        if received < before {
            return Some((
                "received",
                format!("received is {received}, but was {before} before; this count must not fall"),
            ));
        }
        let file = self.file?;
        match self.side {
            Side::Sender if completed && sent < file => Some((
                "completed",
                format!("completed is true, but only {sent} of the {file} bytes of the file were sent"),
            )),
            Side::Receiver if received > file => {
                Some(("received", format!("received is {received}, but the file has only {file} bytes")))
            }
            _ => None,
        }
    }
}

/// Returns the length of a packet's IP header in bytes.
fn header_bytes(packet: &[u8]) -> usize {
    packet.first().map_or(0, |first| 4 * usize::from(first & 15))
}

/// Returns the length of a packet in bytes, without its IP header.
fn payload(packet: &[u8]) -> u64 {
    packet.len().saturating_sub(header_bytes(packet)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Trial;
    use celltrain_core::traffic::{TrafficConfig, file};
    use celltrain_core::units::Bytes;

    #[test]
    fn a_packet_from_a_protocol_stack_above_the_mtu_or_with_an_invalid_header_is_refused() {
        let network = Trial::new(1).network();
        let [sender, _] = Endpoint::pair(&network, FlowIndex::new(0));
        let mut contract = Contract::new(&network, sender.flow, Side::Sender);
        let whole = sender.packet(253, &[7; 532]);
        assert_eq!(contract.packet_problem(&whole), None);
        let changed = |at: usize, byte: u8| {
            let mut packet = whole.clone();
            packet[at] = byte;
            packet
        };
        let cases = [
            (vec![1; 10], "10 bytes: the packet is shorter than an IP header (20 bytes)"),
            (changed(0, 0x65), "552 bytes: the IP version is 6, but must be 4"),
            (
                changed(0, 0x44),
                "552 bytes: the IP header has 16 bytes, but must have at least 20 and fit into the packet",
            ),
            (changed(3, 1), "552 bytes: the IP header states a total length of 513 bytes"),
            (
                changed(12, 9),
                "552 bytes: the source address is 9.0.0.1, but must be the local address of its end (10.0.0.1)",
            ),
            (
                changed(19, 9),
                "552 bytes: the destination address is 10.0.0.9, but must be the remote address of its end (10.0.0.2)",
            ),
            (
                sender.packet(253, &[7; 1480]),
                "1500 bytes: an mss of 512 bytes allows at most 552 bytes; send less, or allow it: mss = 1460 in a Python \
                 class, .mss(1460) in a trial",
            ),
        ];
        for (packet, words) in cases {
            assert_eq!(contract.packet_problem(&packet), Some(format!("the stack sends a packet of {words}")));
        }
    }

    #[test]
    fn the_received_byte_count_that_a_stack_reports_may_neither_exceed_arrivals_nor_decrease() {
        let network = Trial::new(1).network();
        let mut contract = Contract::new(&network, FlowIndex::new(0), Side::Receiver);
        let [sender, _] = Endpoint::pair(&network, FlowIndex::new(0));
        contract.on_arrived(&sender.packet(253, &[7; 100]));
        let mut problem = |received| contract.report_problem(Report { received, ..Report::default() });
        assert_eq!(problem(100), None);
        let falls = "received is 99, but was 100 before; this count must not fall";
        assert_eq!(problem(99), Some(("received", falls.to_owned())));
        let exceeds = "received is 101, but only 100 bytes of IP payload have arrived";
        assert_eq!(problem(101), Some(("received", exceeds.to_owned())));
    }

    #[test]
    fn a_file_is_complete_only_when_exactly_its_bytes_were_received() {
        let mut network = Trial::new(1).network();
        let bytes = Bytes { bytes: 1000 };
        network.flows[FlowIndex::new(0)].traffic = TrafficConfig::File(file::Config { bytes });
        let [sender, _] = Endpoint::pair(&network, FlowIndex::new(0));
        let mut contract = Contract::new(&network, sender.flow, Side::Sender);
        let completed = Report { completed: true, ..Report::default() };
        assert_eq!(contract.packet_problem(&sender.packet(253, &[7; 532])), None);
        let early = "completed is true, but only 532 of the 1000 bytes of the file were sent";
        assert_eq!(contract.report_problem(completed), Some(("completed", early.to_owned())));
        assert_eq!(contract.packet_problem(&sender.packet(253, &[7; 468])), None);
        assert_eq!(contract.report_problem(completed), None);
        let mut contract = Contract::new(&network, sender.flow, Side::Receiver);
        let packet = sender.packet(253, &[7; 1001]);
        contract.on_arrived(&packet);
        let report = |received| Report { received, ..Report::default() };
        assert_eq!(contract.report_problem(report(1000)), None);
        let beyond = "received is 1001, but the file has only 1000 bytes";
        assert_eq!(contract.report_problem(report(1001)), Some(("received", beyond.to_owned())));
    }
}
