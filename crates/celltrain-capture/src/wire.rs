//! Generates the bytes of frames. The bytes depend only on a frame's number and content, so a frame has the same bytes
//! wherever it is captured.
//!
//! The number of a frame is the IPv4 identification of its packet. The number identifies the packet wherever it is
//! captured, and distinguishes a retransmission from the original segment. The payload is text that gives the position
//! in the stream: lines of fifteen hexadecimal digits, each line with its own offset.

use std::array;
use std::collections::BTreeMap;

use celltrain_core::aal5::{Aal5Options, Encapsulation, Framing};
use celltrain_core::events::{EcnBits, HandshakeStep, SegmentEvent, SegmentStep};
use celltrain_core::tcp::{Ack, SackBlocks, Segment, sequence, window_scale};
use etherparse::TcpOptionElement::{
    MaximumSegmentSize, Noop, SelectiveAcknowledgement, SelectiveAcknowledgementPermitted, WindowScale,
};
use etherparse::{
    IpEcn, IpHeaders, Ipv4Extensions, Ipv4Header, PacketBuilder, PacketBuilderStep, TcpHeader, TcpOptionElement,
    UdpHeader,
};

use crate::codec::{aal5, llc_snap};

use crate::{CaptureError, CaptureKind, Place};

/// A TCP connection or a flow of UDP packets, with the values of its header fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Name of the connection in the scenario.
    pub name: String,
    /// The end that sends the connection's data.
    pub sender: End,
    /// The end that receives the connection's data.
    pub receiver: End,
    /// Labels of the VC that carries the data.
    pub data: Labels,
    /// Labels of the VC that carries the acknowledgements, if the connection has acknowledgements.
    pub acks: Labels,
    /// TCP parameters; `None` for a flow of UDP packets.
    pub tcp: Option<Tcp>,
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Number of the end's host, from 0: host 0 has the address 10.0.0.1, and so on.
    pub host: u32,
    /// The interface of the capture that observes this end; `None` if the end is not observed.
    pub interface: Option<u32>,
}

/// Parameters of a connection's handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// Payload bytes of a full segment.
    pub mss: u64,
    /// The receive window in bytes, from which the window scale is derived.
    pub receive_window: u64,
    /// True if the ends exchange selective acknowledgements.
    pub selective: bool,
    /// True if both ends use explicit congestion notification.
    pub ecn: bool,
}

/// The labels of a VC at its two hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// Label on the VC's first link.
    pub first: Circuit,
    /// Label on the VC's last link.
    pub last: Circuit,
}

/// A VC's VPI and VCI on one link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Circuit {
    /// Virtual path identifier.
    pub vpi: u8,
    /// Virtual channel identifier.
    pub vci: u16,
}

impl Circuit {
    /// Returns the VPI and VCI of a label. A label is the number of a VC on a link, from 0. The standards reserve the
    /// VCIs below 32 for signalling and management, so label 0 becomes VPI 0 and VCI 32. Returns `None` for a label too
    /// large for VPI and VCI.
    pub fn of_label(label: u32) -> Option<Self> {
        let vpi = u8::try_from(label / USABLE_VCIS).ok()?;
        let vci = u16::try_from(FIRST_VCI + label % USABLE_VCIS).ok()?;
        Some(Self { vpi, vci })
    }
}

/// A frame, with its number and content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Number of the connection in the capture's list.
    pub connection: u32,
    /// Number of the frame within its VC.
    pub number: u32,
    /// The ECN bits of the frame's headers.
    pub ecn: EcnBits,
    /// Content of the frame.
    pub carries: Carries,
}

/// Content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// A TCP segment with data, from the sender to the receiver.
    Data(Segment),
    /// An acknowledgement from the receiver to the sender, with its SACK blocks.
    Ack(Ack, SackBlocks),
    /// The SYN that begins a handshake, from the sender to the receiver.
    Syn,
    /// The SYN-ACK that answers a SYN, from the receiver to the sender.
    SynAck,
    /// A UDP packet, from the sender to the receiver.
    Packet {
        /// The packet's number, from 0.
        number: u64,
        /// The packet's payload in bytes.
        bytes: u64,
    },
    /// A packet whose bytes come from a host outside the simulation.
    Own {
        /// The packet's number in the run.
        packet: u64,
        /// True if the packet is on the VC that carries the flow's data.
        is_data: bool,
    },
}

impl Carries {
    /// Returns true if the frame travels from the sender to the receiver.
    pub(crate) fn is_forward(self) -> bool {
        match self {
            Self::Data(_) | Self::Packet { .. } | Self::Syn => true,
            Self::Ack(..) | Self::SynAck => false,
            Self::Own { is_data, .. } => is_data,
        }
    }
}

/// All connections of a capture, and the options of AAL5 frames.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) connections: Vec<Connection>,
    pub(crate) framing: Aal5Options,
    /// True if captured SYNs have TCP options. The simulation counts the cells of a SYN without options, so with VC
    /// multiplexing the cells of a SYN have no room for options.
    has_syn_options: bool,
    /// The packets of hosts outside the simulation, by number.
    pub(crate) own: BTreeMap<u64, Vec<u8>>,
}

impl Wire {
    /// Checks that the connections have distinct addresses and ports, and that their segments fit into a frame.
    pub(crate) fn new(
        connections: Vec<Connection>,
        framing: Aal5Options,
        kind: CaptureKind,
    ) -> Result<Self, CaptureError> {
        let has_syn_options = !kind.of_cells() || framing.encapsulation == Encapsulation::LlcSnap;
        let mut wire = Self { connections: Vec::new(), framing, has_syn_options, own: BTreeMap::new() };
        connections.into_iter().try_for_each(|connection| wire.add(connection))?;
        Ok(wire)
    }

    /// Adds a connection.
    pub(crate) fn add(&mut self, connection: Connection) -> Result<(), CaptureError> {
        let refuse = |problem: String| Err(CaptureError::Refused(format!("{}: {problem}", connection.name)));
        for End { host, .. } in [connection.sender, connection.receiver] {
            if host >= MAX_HOSTS {
                return refuse(format!("host {host} has no address in 10.0.0.0/8"));
            }
        }
        if self.connections.len() >= MAX_CONNECTIONS as usize {
            return refuse(format!("a capture can hold at most {MAX_CONNECTIONS} connections"));
        }
        if let Some(Tcp { mss, .. }) = connection.tcp {
            self.fits(&connection, mss.saturating_add(TcpHeader::MIN_LEN as u64))?;
        }
        self.connections.push(connection);
        Ok(())
    }

    pub(crate) fn connection(&self, frame: &Frame) -> &Connection {
        &self.connections[frame.connection as usize]
    }

    pub(crate) fn packet(&self, frame: &Frame) -> Result<Vec<u8>, CaptureError> {
        let connection = self.connection(frame);
        if let Carries::Own { packet, .. } = frame.carries {
            return Ok(self
                .own
                .get(&packet)
                .expect("the bytes of a frame are kept until its last cell is written")
                .clone());
        }
        let Some(tcp) = connection.tcp else { return self.udp(frame, connection) };
        let Tcp { receive_window, .. } = tcp;
        match frame.carries {
            Carries::Data(Segment { seq, len }) => {
                self.fits(connection, u64::from(len) + TcpHeader::MIN_LEN as u64)?;
                // This is the receive window of the data's sender. Its value has no effect, since nobody sends data to
                // the sender.
                let window = window_field(receive_window >> window_scale(receive_window));
                let header = header(sequence_number(seq), Some(sequence_number(0)), window);
                Ok(self.tcp(frame, header, &[], &payload(seq, u64::from(len))))
            }
            Carries::Ack(Ack { ack, window }, blocks) => {
                let header = header(sequence_number(0), Some(sequence_number(ack)), window);
                let mut edges = blocks.iter().map(|(start, end)| (sequence_number(start), sequence_number(end)));
                let options = match edges.next() {
                    Some(first) => {
                        let others = array::from_fn(|_| edges.next());
                        vec![Noop, Noop, SelectiveAcknowledgement(first, others)]
                    }
                    None => Vec::new(),
                };
                Ok(self.tcp(frame, header, &options, &[]))
            }
            Carries::Syn | Carries::SynAck => Ok(self.handshake(frame, tcp)),
            Carries::Packet { .. } | Carries::Own { .. } => Err(CaptureError::Refused(format!(
                "{}: this flow uses TCP, so it sends no packets without TCP",
                connection.name
            ))),
        }
    }

    /// Returns the packet of a SYN or SYN-ACK.
    fn handshake(&self, frame: &Frame, tcp: Tcp) -> Vec<u8> {
        let is_syn = frame.carries == Carries::Syn;
        let scale = window_scale(tcp.receive_window);
        // Options are padded to whole words, as RFC 7323 (appendix A) recommends.
        let mut options = vec![MaximumSegmentSize(window_field(tcp.mss))];
        if tcp.selective {
            options.extend([Noop, Noop, SelectiveAcknowledgementPermitted]);
        }
        if scale > 0 {
            options.extend([Noop, WindowScale(u8::try_from(scale).expect("a window scale is at most 14"))]);
        }
        // RFC 7323 (2.2): the window of a SYN is not scaled.
        let acknowledgement = (!is_syn).then(|| sequence_number(0));
        let header = header(INITIAL, acknowledgement, window_field(tcp.receive_window));
        // RFC 3168 (6.1.1): a SYN that asks for ECN has both flags, ECE and CWR; the answer has only ECE.
        let header = TcpHeader { syn: true, ece: tcp.ecn, cwr: tcp.ecn && is_syn, ..header };
        self.tcp(frame, header, if self.has_syn_options { &options } else { &[] }, &[])
    }

    /// Returns the AAL5 frame that contains a packet. The frame consists of whole cells.
    pub(crate) fn frame(&self, packet: &[u8]) -> Vec<u8> {
        match self.framing.encapsulation {
            Encapsulation::LlcSnap => aal5::encode(&llc_snap::encode(packet), 0),
            Encapsulation::VcMux => aal5::encode(packet, 0),
        }
    }

    fn tcp(&self, frame: &Frame, header: TcpHeader, options: &[TcpOptionElement], payload: &[u8]) -> Vec<u8> {
        let (ip, [source_port, destination_port]) = self.ip(frame);
        let (ece, cwr) = (header.ece || frame.ecn.echo, header.cwr || frame.ecn.reduced);
        let mut header = TcpHeader { source_port, destination_port, ece, cwr, ..header };
        header.set_options(options).expect("three SACK blocks fit into the options of a header");
        let mut packet = Vec::new();
        ip.tcp_header(header).write_to_vec(&mut packet, payload).expect("the length of the packet was checked before");
        packet
    }

    /// Builds a UDP packet. The simulation also assumes a UDP header when it counts a packet's cells
    /// (`Aal5Options::packet_cells`).
    fn udp(&self, frame: &Frame, connection: &Connection) -> Result<Vec<u8>, CaptureError> {
        let Carries::Packet { number, bytes } = frame.carries else {
            let problem = format!(
                "{}: this flow sends packets without acknowledgements, so it has no TCP packets",
                connection.name
            );
            return Err(CaptureError::Refused(problem));
        };
        self.fits(connection, bytes.saturating_add(UdpHeader::LEN as u64))?;
        let (ip, [source_port, destination_port]) = self.ip(frame);
        let payload = payload(number.saturating_mul(bytes), bytes);
        let mut packet = Vec::new();
        ip.udp(source_port, destination_port)
            .write_to_vec(&mut packet, &payload)
            .expect("the length of the packet was checked before");
        Ok(packet)
    }

    /// Begins a frame's packet with an IPv4 header like that of common hosts. Returns the packet, and its source and
    /// destination port numbers.
    fn ip(&self, frame: &Frame) -> (PacketBuilderStep<IpHeaders>, [u16; 2]) {
        let Connection { sender, receiver, .. } = self.connection(frame);
        let ends = [(sender, frame.connection % PORTS), (receiver, frame.connection / PORTS)];
        let [from, to] = if frame.carries.is_forward() { ends } else { [ends[1], ends[0]] };
        let address = |(end, _): (&End, u32)| (NETWORK + 1 + end.host).to_be_bytes();
        let port = |(_, number): (&End, u32)| {
            FIRST_PORT
                + u16::try_from(number).expect(
                    "ports are numbered up to \
            16384",
                )
        };
        let header = Ipv4Header {
            identification: self.identification(frame),
            dont_fragment: true,
            ecn: match frame.ecn {
                EcnBits { marked: true, .. } => IpEcn::CongestionExperienced,
                EcnBits { capable: true, .. } => IpEcn::Ect0,
                _ => IpEcn::NotEct,
            },
            time_to_live: 64,
            source: address(from),
            destination: address(to),
            ..Ipv4Header::default()
        };
        (PacketBuilder::ip(IpHeaders::Ipv4(header, Ipv4Extensions::default())), [from, to].map(port))
    }

    /// Returns the IPv4 identification of a frame's packet: the low 16 bits of the frame's number. With VC
    /// multiplexing, the highest bit is set, because otherwise Wireshark would take a packet with identification 0x038e
    /// or 0x03cc for Frame Relay.
    fn identification(&self, frame: &Frame) -> u16 {
        let [_, _, high, low] = frame.number.to_be_bytes();
        match self.framing.encapsulation {
            Encapsulation::LlcSnap => u16::from_be_bytes([high, low]),
            Encapsulation::VcMux => u16::from_be_bytes([high | 0x80, low]),
        }
    }

    /// Returns the length of a packet, or an error if it is too long for the length field of IPv4 or AAL5. The
    /// simulation can count the cells of packets that are too long for a capture.
    pub(crate) fn fits(&self, connection: &Connection, transport_bytes: u64) -> Result<usize, CaptureError> {
        let packet = transport_bytes.saturating_add(Ipv4Header::MIN_LEN as u64);
        let most = match (self.framing.framing, self.framing.encapsulation) {
            (Framing::Aal5, Encapsulation::LlcSnap) => aal5::MAX_SDU_BYTES - llc_snap::HEADER_BYTES,
            (Framing::Aal5, Encapsulation::VcMux) | (Framing::Packets, _) => usize::from(u16::MAX),
        };
        usize::try_from(packet).ok().filter(|&packet| packet <= most).ok_or_else(|| {
            let name = &connection.name;
            let problem = format!(
                "{name}: its packets of {packet} bytes do not fit into an AAL5 frame, which holds at most \
                         {most} bytes"
            );
            CaptureError::Refused(problem)
        })
    }
}

/// Returns the three steps of a synthetic handshake: SYN, SYN-ACK and ACK.
pub(crate) fn made_up(connection: u32) -> [Frame; 3] {
    [Carries::Syn, Carries::SynAck, Carries::Data(Segment { seq: 0, len: 0 })].map(|carries| Frame {
        connection,
        number: 0,
        ecn: EcnBits::default(),
        carries,
    })
}

/// Returns the end of the connection at which a segment or ACK is seen, the content of its frame, and whether it leaves
/// this end.
pub(crate) fn seen(event: &SegmentEvent) -> (Place, Carries, bool) {
    let is_tcp = event.sender.is_some();
    match event.step {
        SegmentStep::Sent { segment, .. } | SegmentStep::Retransmitted { segment, .. } => {
            (Place::Sender, data(segment, is_tcp), true)
        }
        SegmentStep::Arrived { segment, .. } => (Place::Receiver, data(segment, is_tcp), false),
        SegmentStep::AckSent { ack, blocks } => (Place::Receiver, Carries::Ack(ack, blocks), true),
        SegmentStep::Acknowledged { ack, blocks, .. } => (Place::Sender, Carries::Ack(ack, blocks), false),
        SegmentStep::Handshake(HandshakeStep::SynSent { .. }) => (Place::Sender, Carries::Syn, true),
        SegmentStep::Handshake(HandshakeStep::SynArrived) => (Place::Receiver, Carries::Syn, false),
        SegmentStep::Handshake(HandshakeStep::SynAckSent) => (Place::Receiver, Carries::SynAck, true),
        SegmentStep::Handshake(HandshakeStep::SynAckArrived) => (Place::Sender, Carries::SynAck, false),
    }
}

/// Returns the content of a data segment, or of a packet sent without TCP. All packets of a flow without TCP have the
/// same size.
pub(crate) fn data(segment: Segment, is_tcp: bool) -> Carries {
    let Segment { seq, len } = segment;
    if is_tcp {
        return Carries::Data(segment);
    }
    let bytes = u64::from(len);
    Carries::Packet { number: seq.checked_div(bytes).unwrap_or(0), bytes }
}

/// Returns a TCP header without ports and options. The ACK flag is set if `acknowledgement` is not `None`.
fn header(sequence: u32, acknowledgement: Option<u32>, window: u16) -> TcpHeader {
    let acknowledgment_number = acknowledgement.unwrap_or(0);
    TcpHeader { ack: acknowledgement.is_some(), acknowledgment_number, ..TcpHeader::new(0, 0, sequence, window) }
}

/// Returns the sequence number of the byte at an offset of the stream, in either direction. The SYN has number 0, and
/// the first byte has number 1.
fn sequence_number(offset: u64) -> u32 {
    sequence::number(offset, INITIAL + 1)
}

fn window_field(bytes: u64) -> u16 {
    u16::try_from(bytes).unwrap_or(u16::MAX)
}

/// Returns `bytes` bytes of a stream's payload, beginning at the offset `start`.
fn payload(start: u64, bytes: u64) -> Vec<u8> {
    let bytes = usize::try_from(bytes).expect("a payload fits a frame");
    let skipped = usize::try_from(start % LINE).expect("the remainder is shorter than a line of the payload");
    let mut text = Vec::with_capacity(skipped + bytes + LINE_BYTES);
    let mut line = start - start % LINE;
    while text.len() < skipped + bytes {
        for digit in (0..LINE - 1).rev() {
            text.push(HEXADECIMAL[usize::from((line >> (4 * digit)).to_le_bytes()[0] & 0xf)]);
        }
        text.push(b'\n');
        line = line.wrapping_add(LINE);
    }
    text.drain(..skipped);
    text.truncate(bytes);
    text
}

/// Sequence number of a SYN. With the number 0, the sequence numbers in a capture equal the relative sequence numbers
/// that Wireshark shows, which are the offset plus one.
const INITIAL: u32 = 0;

/// The network 10.0.0.0/8, without its first and last address, which are not host addresses.
const NETWORK: u32 = 10 << 24;
const MAX_HOSTS: u32 = (1 << 24) - 2;

/// The first dynamic port number. Dynamic port numbers are assigned to no protocol (RFC 6335), so Wireshark does not
/// take the traffic for that of a known protocol.
const FIRST_PORT: u16 = 49152;
const PORTS: u32 = 16384;
const MAX_CONNECTIONS: u32 = PORTS * PORTS;

/// The first VCI that ITU-T I.361 and the ATM Forum's UNI 3.1 do not reserve.
const FIRST_VCI: u32 = 32;
const USABLE_VCIS: u32 = (1 << 16) - FIRST_VCI;

/// Length of a line of payload in bytes, including the end of the line.
const LINE: u64 = 16;
const LINE_BYTES: usize = 16;
const HEXADECIMAL: &[u8; 16] = b"0123456789abcdef";
