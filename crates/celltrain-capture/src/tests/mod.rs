pub(crate) mod reader;
mod watch;

use std::io::{self, Write};

use celltrain_core::aal5::{Encapsulation, Framing};
use celltrain_core::events::EcnBits;
use celltrain_core::rng::Stream;
use celltrain_core::tcp::{Ack, SackBlocks, Segment, sequence};
use etherparse::{TcpHeader, TcpOptionElement};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use reader::{Options, Packet, big16, big32, crc10_is_right, crc32_is_right, hec_is_right, read, sdu, transport};

const MSS: u64 = 512;

/// Returns the settings of a property test with this seed.
pub(crate) fn proptest_seeded(seed: u64) -> ProptestConfig {
    ProptestConfig { rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..ProptestConfig::default() }
}

fn connection() -> Connection {
    Connection {
        name: "tcp1".to_owned(),
        sender: End { host: 0, interface: Some(0) },
        receiver: End { host: 1, interface: Some(1) },
        data: Labels { first: Circuit { vpi: 0, vci: 32 }, last: Circuit { vpi: 1, vci: 0x1234 } },
        acks: Labels { first: Circuit { vpi: 2, vci: 40 }, last: Circuit { vpi: 0, vci: 41 } },
        tcp: Some(Tcp { mss: MSS, receive_window: 600_000, selective: true, ecn: false }),
    }
}

fn packets() -> Connection {
    Connection { name: "cbr1".to_owned(), tcp: None, ..connection() }
}

fn setting(kind: CaptureKind, encapsulation: Encapsulation, connection: Connection) -> Setting {
    let framing = Aal5Options { encapsulation, ..Aal5Options::default() };
    let interface = |name: &str| Interface { name: name.to_owned(), description: format!("the host {name}") };
    Setting { kind, framing, interfaces: vec![interface("src1"), interface("dst1")], connections: vec![connection] }
}

fn capture(kind: CaptureKind, encapsulation: Encapsulation, connection: Connection) -> Capture<Vec<u8>> {
    let about = About { application: "celltrain".to_owned(), comment: "a test".to_owned() };
    Capture::new(Vec::new(), &about, setting(kind, encapsulation, connection)).expect("the settings are valid")
}

fn ip() -> Capture<Vec<u8>> {
    capture(CaptureKind::Ip, Encapsulation::LlcSnap, connection())
}

/// Returns the packets written, without the handshake.
fn written(capture: Capture<Vec<u8>>) -> Vec<Packet> {
    let packets = read(&capture.finish().expect("writing to memory cannot fail")).packets;
    packets
        .into_iter()
        .filter(|packet| !packet.comment.as_ref().is_some_and(|text| text.contains("synthetic")))
        .collect()
}

fn data(number: u32, seq: u64, len: u32) -> Frame {
    Frame { connection: 0, number, ecn: EcnBits::default(), carries: Carries::Data(Segment { seq, len }) }
}

fn ack(number: u32, ack: u64, blocks: &[(u64, u64)]) -> Frame {
    let mut list = SackBlocks::NONE;
    for &(start, end) in blocks {
        list.push(start, end);
    }
    Frame { connection: 0, number, ecn: EcnBits::default(), carries: Carries::Ack(Ack { ack, window: 37_500 }, list) }
}

fn packet(number: u64, bytes: u64) -> Frame {
    Frame { connection: 0, number: 7, ecn: EcnBits::default(), carries: Carries::Packet { number, bytes } }
}

fn seen(time_ns: u64, at: Place, frame: Frame) -> SeenFrame<'static> {
    SeenFrame { time_ns, at, frame, comment: None }
}

fn user(frame: Frame, index: u32) -> CellKind {
    CellKind::User { frame, index, clp: false, efci: false, damaged: false }
}

fn cell(cell: CellKind) -> SeenCell<'static> {
    let circuit = Circuit { vpi: 3, vci: 0x63 };
    SeenCell { time_ns: 5, interface: 1, direction: Direction::Outbound, circuit, cell, comment: None }
}

fn refusal<T>(result: Result<T, CaptureError>) -> String {
    match result {
        Err(CaptureError::Refused(problem)) => problem,
        Err(CaptureError::Write(error)) => panic!("the capture must be refused: {error}"),
        Ok(_) => panic!("the capture must be refused"),
    }
}

#[test]
fn a_capture_file_names_the_program_that_wrote_it_and_its_interfaces() {
    let file = read(&ip().finish().expect("writing to memory cannot fail"));
    assert_eq!(file.section.0, [(1, b"a test".to_vec()), (4, b"celltrain".to_vec())]);
    let options = |name: &str| {
        Options(vec![(2, name.as_bytes().to_vec()), (3, format!("the host {name}").into_bytes()), (9, vec![9])])
    };
    assert_eq!(file.interfaces, [(0, options("src1")), (0, options("dst1"))]);
}

/// libpcap rejects a file with several interfaces of link type RAW, but every reader accepts one interface of this
/// type.
#[test]
fn captures_have_link_type_raw_ip_for_one_host_and_ipv4_for_several_hosts() {
    let about = About::default();
    let mut setting = setting(CaptureKind::Ip, Encapsulation::LlcSnap, connection());
    setting.interfaces.truncate(1);
    setting.connections[0].receiver.interface = None;
    let one =
        Capture::new(Vec::new(), &about, setting).and_then(Capture::finish).expect("writing to memory cannot fail");
    let (one, several) = (read(&one), read(&ip().finish().expect("writing to memory cannot fail")));
    assert_eq!(one.interfaces[0].0, 101);
    assert_eq!(several.interfaces[0].0, 0);
    // The SYN from the sender.
    assert_eq!(one.packets[0].bytes, several.packets[0].bytes);
}

#[test]
fn a_capture_of_a_network_with_packet_framing_contains_ethernet_frames() {
    let mut setting = setting(CaptureKind::Ip, Encapsulation::LlcSnap, connection());
    setting.framing.framing = Framing::Packets;
    let mut ethernet = Capture::new(Vec::new(), &About::default(), setting).expect("the settings are valid");
    let mut plain = ip();
    for capture in [&mut ethernet, &mut plain] {
        capture.frame(&seen(1_001, Place::Sender, data(1, 0, 512))).expect("the frame fits");
        capture.frame(&seen(2_002, Place::Sender, ack(2, 512, &[]))).expect("the frame fits");
    }
    let file = read(&ethernet.finish().expect("writing to memory cannot fail"));
    assert!(file.interfaces.iter().all(|(link_type, _)| *link_type == 1));
    let frames = file.packets.iter().filter(|packet| packet.time_ns > 2);
    let [from, to] = [[2, 0, 10, 0, 0, 1], [2, 0, 10, 0, 0, 2]];
    let ways = [[to, from], [from, to]];
    let packets = written(plain);
    assert_eq!(packets.len(), 2);
    for ((frame, packet), addresses) in frames.zip(&packets).zip(ways) {
        let packet_bytes = &packet.bytes;
        assert_eq!(frame.time_ns, packet.time_ns);
        assert_eq!(frame.bytes[..14], [&addresses.concat()[..], &[8, 0]].concat());
        assert_eq!(frame.bytes[14..14 + packet_bytes.len()], *packet_bytes);
        // An Ethernet frame without its checksum has at least 60 bytes, so the frame of an acknowledgement is padded.
        assert_eq!(frame.bytes.len(), (14 + packet_bytes.len()).max(60));
    }
}

#[test]
fn the_first_blocks_of_a_capture_file_have_the_expected_bytes() {
    let about = About { application: "c".to_owned(), comment: "abcd".to_owned() };
    let interfaces = vec![Interface { name: "p".to_owned(), description: "q".to_owned() }];
    let framing = Aal5Options::default();
    let setting = Setting { kind: CaptureKind::Cells, framing, interfaces, connections: vec![] };
    let bytes =
        Capture::new(Vec::new(), &about, setting).and_then(Capture::finish).expect("writing to memory cannot fail");
    #[rustfmt::skip]
    let expected: &[u8] = &[
        0x0a, 0x0d, 0x0d, 0x0a, 48, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        1, 0, 4, 0, b'a', b'b', b'c', b'd', 4, 0, 1, 0, b'c', 0, 0, 0, 0, 0, 0, 0, 48, 0, 0, 0,
        1, 0, 0, 0, 48, 0, 0, 0, 147, 0, 0, 0, 0, 0, 0, 0,
        2, 0, 1, 0, b'p', 0, 0, 0, 3, 0, 1, 0, b'q', 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 48, 0, 0, 0,
    ];
    assert_eq!(bytes, expected);
}

#[test]
fn a_captured_handshake_has_tcp_options_and_a_comment_that_it_is_synthetic() {
    let packets = read(&ip().finish().expect("writing to memory cannot fail")).packets;
    let order: Vec<_> = packets.iter().map(|packet| (packet.time_ns, packet.interface, packet.flags)).collect();
    // The handshake consists of SYN, SYN-ACK and ACK. Each packet leaves one end of the connection and arrives at the
    // other end.
    assert_eq!(order, [(1, 0, 2), (1, 1, 1), (1, 1, 2), (1, 0, 1), (2, 0, 2), (2, 1, 1)]);
    for packet in &packets {
        let comment = packet.comment.as_ref().expect("every packet has a comment");
        assert!(comment.starts_with("synthetic: in the model the connection tcp1 is open from the start"), "{comment}");
    }
    let [syn, syn_ack, ack] = [0, 2, 4].map(|at: usize| transport(&packets[at].bytes));
    // The expected TCP options are MSS 512, two no-operations, SACK permitted, a no-operation and a window scale of 4.
    let options = [2, 4, 2, 0, 1, 1, 4, 2, 1, 3, 3, 4];
    assert_eq!((big32(syn, 4), big32(syn, 8), syn[13], big16(syn, 14), &syn[20..]), (0, 0, 0x02, 65535, &options[..]));
    assert_eq!((big32(syn_ack, 4), big32(syn_ack, 8), syn_ack[13], &syn_ack[20..]), (0, 1, 0x12, &options[..]));
    assert_eq!((big32(ack, 4), big32(ack, 8), ack[13], big16(ack, 14), ack.len()), (1, 1, 0x10, 37_500, 20));
}

#[test]
fn a_captured_handshake_offers_only_the_tcp_options_that_the_connection_uses() {
    let tcp = Some(Tcp { mss: MSS, receive_window: 65535, selective: false, ecn: false });
    let capture = capture(CaptureKind::Ip, Encapsulation::LlcSnap, Connection { tcp, ..connection() });
    let packets = read(&capture.finish().expect("writing to memory cannot fail")).packets;
    assert_eq!(transport(&packets[0].bytes)[20..], [2, 4, 2, 0]);
}

#[test]
fn captured_ip_and_tcp_headers_contain_the_ecn_bits() {
    let tcp = Some(Tcp { mss: MSS, receive_window: 65535, selective: false, ecn: true });
    let mut capture = capture(CaptureKind::Ip, Encapsulation::LlcSnap, Connection { tcp, ..connection() });
    let capable = EcnBits { capable: true, ..EcnBits::default() };
    for ecn in [capable, EcnBits { marked: true, ..capable }, EcnBits { reduced: true, ..capable }] {
        let frame = Frame { ecn, ..data(0, 0, 512) };
        capture.frame(&seen(5, Place::Sender, frame)).expect("writing to memory cannot fail");
    }
    let echo = Frame { ecn: EcnBits { echo: true, ..EcnBits::default() }, ..ack(0, 512, &[]) };
    capture.frame(&seen(6, Place::Receiver, echo)).expect("writing to memory cannot fail");
    let packets = read(&capture.finish().expect("writing to memory cannot fail")).packets;
    // For each packet, the ECN codepoint in the IP header, and the TCP flags CWR, ECE, ACK, SYN and PSH.
    let bits: Vec<_> = packets.iter().map(|packet| (packet.bytes[1] & 3, transport(&packet.bytes)[13])).collect();
    assert_eq!([bits[0], bits[2], bits[4]], [(0, 0xc2), (0, 0x52), (0, 0x10)], "the handshake");
    assert_eq!(bits[6..], [(2, 0x10), (3, 0x10), (2, 0x90), (0, 0x50)]);
}

#[test]
fn captures_of_cells_and_of_unacknowledged_packets_have_no_handshake() {
    let cells = capture(CaptureKind::Cells, Encapsulation::LlcSnap, connection());
    let udp = capture(CaptureKind::Ip, Encapsulation::LlcSnap, packets());
    for capture in [cells, udp] {
        assert_eq!(read(&capture.finish().expect("writing to memory cannot fail")).packets, []);
    }
}

#[test]
fn captured_data_segments_have_their_departure_time_at_the_sender_or_arrival_time_at_the_receiver() {
    let mut capture = ip();
    let late = 10_000_000_000;
    let comment = Some("refused by epd at sw1->sw2");
    capture
        .frame(&SeenFrame { comment, ..seen(late, Place::Sender, data(3, 0, 512)) })
        .expect("writing to memory cannot fail");
    capture.frame(&seen(late + 7, Place::Receiver, data(3, 0, 512))).expect("writing to memory cannot fail");
    capture.frame(&seen(late + 7, Place::Receiver, ack(0, 512, &[]))).expect("writing to memory cannot fail");
    capture.frame(&seen(late + 9, Place::Sender, ack(0, 512, &[]))).expect("writing to memory cannot fail");
    let packets = written(capture);
    let order: Vec<_> = packets.iter().map(|packet| (packet.time_ns, packet.interface, packet.flags)).collect();
    assert_eq!(order, [(late, 0, 2), (late + 7, 1, 1), (late + 7, 1, 2), (late + 9, 0, 1)]);
    assert_eq!(packets[0].comment.as_deref(), comment);
    assert_eq!(packets[0].bytes, packets[1].bytes, "a cell has the same bytes at every capture point");
    assert_eq!(packets[0].bytes[12..20], [10, 0, 0, 1, 10, 0, 0, 2]);
    assert_eq!(packets[2].bytes[12..20], [10, 0, 0, 2, 10, 0, 0, 1]);
}

#[test]
fn no_captured_packet_has_a_time_before_its_connection_opens() {
    let mut capture = ip();
    capture.frame(&seen(0, Place::Sender, data(0, 0, 512))).expect("writing to memory cannot fail");
    assert_eq!(written(capture)[0].time_ns, 2);
}

#[test]
fn packets_are_captured_only_at_the_chosen_end_of_a_connection() {
    let receiver = End { interface: None, ..connection().receiver };
    let mut capture = capture(CaptureKind::Ip, Encapsulation::LlcSnap, Connection { receiver, ..connection() });
    capture.frame(&seen(5, Place::Receiver, data(0, 0, 512))).expect("an end that is not captured gives no packets");
    let packets = read(&capture.finish().expect("writing to memory cannot fail")).packets;
    assert!(packets.len() == 3 && packets.iter().all(|packet| packet.interface == 0), "{packets:?}");
}

#[test]
fn captured_sequence_numbers_wrap_to_zero_after_four_gibibytes() {
    let mut capture = ip();
    let wrap = 1 << 32;
    capture.frame(&seen(5, Place::Sender, data(0, wrap - 2, 512))).expect("writing to memory cannot fail");
    capture.frame(&seen(6, Place::Sender, data(1, 5 * wrap + 7, 1))).expect("writing to memory cannot fail");
    let blocks = [(wrap - 2, wrap + 510), (3 * wrap, 3 * wrap + 1)];
    capture.frame(&seen(7, Place::Sender, ack(0, wrap - 1, &blocks))).expect("writing to memory cannot fail");
    let packets = written(capture);
    let segments: Vec<_> = packets.iter().map(|packet| transport(&packet.bytes)).collect();
    assert_eq!(segments[..2].iter().map(|segment| big32(segment, 4)).collect::<Vec<_>>(), [u32::MAX, 8]);
    assert_eq!(big32(segments[1], 8), 1, "segments with data acknowledge the receiver's SYN");
    assert_eq!((big32(segments[2], 4), big32(segments[2], 8)), (1, 0));
    let edges: Vec<_> = (0..4).map(|edge| big32(segments[2], 24 + 4 * edge)).collect();
    assert_eq!(edges, [u32::MAX, 511, 1, 2]);
}

#[test]
fn two_nop_options_precede_the_sack_blocks_in_a_tcp_header() {
    let mut capture = ip();
    capture
        .frame(&seen(5, Place::Receiver, ack(0, 10, &[(20, 30), (40, 50), (60, 70)])))
        .expect("writing to memory cannot fail");
    let packets = written(capture);
    let segment = transport(&packets[0].bytes);
    assert_eq!((segment[12] >> 4, &segment[20..24]), (12, &[1, 1, 5, 26][..]));
    assert_eq!((big32(segment, 24), big32(segment, 28), big16(segment, 14)), (21, 31, 37_500));
}

#[test]
fn each_captured_payload_contains_its_byte_offset_in_the_tcp_stream() {
    let mut capture = ip();
    capture.frame(&seen(5, Place::Sender, data(0, 510, 20))).expect("writing to memory cannot fail");
    let packets = written(capture);
    assert_eq!(&transport(&packets[0].bytes)[20..], b"0\n000000000000200\n00");
}

#[test]
fn a_captured_frame_has_as_many_cells_as_the_simulated_frame() {
    let mut random = Stream::new(1, "capture/cells");
    for encapsulation in [Encapsulation::LlcSnap, Encapsulation::VcMux] {
        let framing = Aal5Options { encapsulation, ..Aal5Options::default() };
        let [tcp, udp] = [connection(), packets()].map(|all| capture(CaptureKind::Aal5, encapsulation, all));
        let cells = |capture: &Capture<Vec<u8>>, frame| {
            let frame = capture.pdu(&frame).expect("the frame is short enough for AAL5");
            assert!(crc32_is_right(&frame), "CRC-32");
            u32::try_from(frame.len() / 48).expect("the number of cells of a frame fits in 32 bits")
        };
        let sizes: Vec<_> = (1..200).chain((0..50).map(|_| random.below(9_200))).chain([65_487]).collect();
        for bytes in sizes {
            assert_eq!(cells(&tcp, data(0, random.next_u64() >> 8, bytes)), framing.segment_cells(u64::from(bytes)));
            assert_eq!(cells(&udp, packet(9, u64::from(bytes))), framing.packet_cells(u64::from(bytes)));
        }
        assert_eq!(cells(&udp, packet(0, 0)), framing.packet_cells(0));
        for count in 0..=3 {
            let blocks = [(100, 200), (300, 400), (500, 600)];
            let acknowledgement = ack(0, 50, &blocks[..count]);
            let Carries::Ack(_, list) = acknowledgement.carries else { unreachable!("it is one") };
            assert_eq!(cells(&tcp, acknowledgement), framing.segment_cells(list.option_bytes()));
        }
    }
}

#[test]
fn packets_of_unacknowledged_traffic_are_captured_as_udp() {
    let mut capture = capture(CaptureKind::Ip, Encapsulation::LlcSnap, packets());
    capture.frame(&seen(5, Place::Sender, packet(2, 16))).expect("writing to memory cannot fail");
    let packets = written(capture);
    assert_eq!(packets[0].bytes[9], 17);
    let datagram = transport(&packets[0].bytes);
    assert_eq!((big16(datagram, 4), &datagram[8..]), (24, &b"000000000000020\n"[..]));
    assert_eq!(packets[0].time_ns, 5);
}

#[test]
fn frames_with_an_llc_header_are_captured_as_erf_records_with_vpi_and_vci() {
    let mut capture = capture(CaptureKind::Aal5, Encapsulation::LlcSnap, connection());
    capture.frame(&seen(2_500_000_000, Place::Sender, data(300, 0, 512))).expect("writing to memory cannot fail");
    capture.frame(&seen(2_500_000_009, Place::Receiver, data(300, 0, 512))).expect("writing to memory cannot fail");
    let file = read(&capture.finish().expect("writing to memory cannot fail"));
    assert!(file.interfaces.iter().all(|interface| interface.0 == 197));
    let [.., sent, arrived] = &file.packets[..] else { panic!("there are two") };
    assert_eq!(sent.bytes[..8], (5_u64 << 31).to_le_bytes(), "the packet arrives after two and a half seconds");
    assert_eq!((sent.bytes[8], big16(&sent.bytes, 10), big16(&sent.bytes, 14)), (4, 16 + 580, 580));
    // The header of the frame's last cell contains VPI 0 and VCI 32 at the sender, and VPI 1 and VCI 0x1234 at the
    // receiver.
    assert_eq!((big32(&sent.bytes, 16), big32(&arrived.bytes, 16)), (0x20 << 4 | 2, 1 << 20 | 0x1234 << 4 | 2));
    let sdu = sdu(&sent.bytes[20..]);
    assert_eq!(sdu[..8], [0xaa, 0xaa, 3, 0, 0, 0, 8, 0]);
    assert_eq!(big16(sdu, 8 + 4), 300, "the IP identification is the number of the frame");
    assert_eq!(transport(&sdu[8..]).len(), 532);
}

#[test]
fn frames_without_an_llc_header_are_captured_with_a_sunatm_header() {
    let mut capture = capture(CaptureKind::Aal5, Encapsulation::VcMux, connection());
    capture.frame(&seen(5, Place::Sender, ack(0x38e, 1, &[]))).expect("writing to memory cannot fail");
    capture.frame(&seen(6, Place::Receiver, ack(0x38e, 1, &[]))).expect("writing to memory cannot fail");
    let file = read(&capture.finish().expect("writing to memory cannot fail"));
    assert!(file.interfaces.iter().all(|interface| interface.0 == 123));
    let [.., arrived, sent] = &file.packets[..] else { panic!("there are two") };
    assert_eq!((&arrived.bytes[..4], &sent.bytes[..4]), (&[0, 0, 0, 41][..], &[0x80, 2, 0, 40][..]));
    let sdu = sdu(&sent.bytes[4..]);
    assert_eq!(big16(sdu, 4), 0x838e);
    assert_eq!(transport(sdu).len(), 20);
}

#[test]
fn captured_cells_form_complete_frames_and_their_headers_contain_clp_tags_and_congestion_marks() {
    let mut random = Stream::new(2, "capture/frames");
    let mut capture = capture(CaptureKind::Cells, Encapsulation::LlcSnap, connection());
    let mut frames = Vec::new();
    for number in 0..50 {
        let frame = data(number, random.next_u64() >> 20, 1 + random.below(2_000));
        let pdu = capture.pdu(&frame).expect("the frame is short enough for AAL5");
        for index in 0..u32::try_from(pdu.len() / 48).expect("the number of cells of a frame fits in 32 bits") {
            let damaged = number == 7;
            let kind = CellKind::User { frame, index, clp: index == 1, efci: index == 2, damaged };
            capture.cell(&cell(kind)).expect("writing to memory cannot fail");
            // Interleaves a cell of another VC, which arrives at another interface.
            capture
                .cell(&SeenCell { interface: 0, ..cell(user(ack(number, 512, &[]), index % 2)) })
                .expect("an end that is not captured gives no packets");
        }
        frames.push(pdu);
    }
    let mut collected = vec![Vec::new()];
    for packet in written(capture).iter().filter(|packet| packet.interface == 1) {
        let cell = &packet.bytes;
        let current = collected.last_mut().expect("the queue is not empty");
        let index = current.len() / 48;
        assert!(cell.len() == 53 && hec_is_right(cell), "{cell:?}");
        assert_eq!(big32(cell, 0) >> 4, 3 << 16 | 0x63);
        let last = cell[3] >> 1 & 1 == 1;
        assert_eq!((cell[3] >> 1 & 0b110, cell[3] & 1), (if index == 2 { 0b010 } else { 0 }, u8::from(index == 1)));
        current.extend_from_slice(&cell[5..]);
        if last {
            collected.push(Vec::new());
        }
    }
    assert_eq!(collected.pop(), Some(Vec::new()));
    assert!(!crc32_is_right(&collected[7]), "the CRC of the damaged frame");
    collected[7].clone_from(&frames[7]);
    assert_eq!(collected, frames);
    assert!(frames.iter().all(|frame| sdu(frame).len() > 48));
}

#[test]
fn a_captured_rm_cell_has_the_simulated_rates_and_a_correct_crc() {
    let content = abr::RmCell {
        backward: true,
        bn: false,
        ci: true,
        ni: false,
        er: 1024.0,
        ccr: 512.0,
        mcr: 0.0,
        out_of_rate: true,
    };
    let mut capture = capture(CaptureKind::Cells, Encapsulation::LlcSnap, connection());
    capture.cell(&cell(CellKind::Rm(content))).expect("writing to memory cannot fail");
    let packets = written(capture);
    let bytes = &packets[0].bytes;
    assert!(hec_is_right(bytes) && crc10_is_right(&bytes[5..]));
    assert_eq!(big32(bytes, 0), 3 << 20 | 0x63 << 4 | 0b1101, "VPI, VCI, payload type 110, CLP");
    // The expected fields are protocol 1; DIR and CI; ER is 2^10 and CCR is 2^9, both with the nonzero bit set.
    assert_eq!(bytes[5..11], [1, 0b1010_0000, 0x54, 0, 0x52, 0]);
}

#[test]
fn a_captured_cell_has_every_header_field_except_the_checksum() {
    let frame = data(1, 0, 512);
    let mut whole = capture(CaptureKind::Cells, Encapsulation::LlcSnap, connection());
    let mut record = capture(CaptureKind::ErfCells, Encapsulation::LlcSnap, connection());
    for capture in [&mut whole, &mut record] {
        capture.cell(&cell(user(frame, 11))).expect("writing to memory cannot fail");
    }
    let [whole, record] = [whole, record].map(|capture| written(capture).remove(0).bytes);
    assert_eq!((record[8], big16(&record, 10), big16(&record, 14), record.len()), (3, 68, 52, 68));
    assert_eq!(record[16..], [&whole[..4], &whole[5..]].concat());
}

#[test]
fn vc_labels_become_vpi_and_vci_values_outside_the_reserved_ranges() {
    let circuit = |vpi, vci| Some(Circuit { vpi, vci });
    assert_eq!(Circuit::of_label(0), circuit(0, 32));
    assert_eq!(Circuit::of_label(65_503), circuit(0, 65_535));
    assert_eq!(Circuit::of_label(65_504), circuit(1, 32));
    assert_eq!(Circuit::of_label(256 * 65_504 - 1), circuit(255, 65_535));
    assert_eq!(Circuit::of_label(256 * 65_504), None);
}

#[test]
fn connections_between_the_same_two_hosts_have_different_tcp_ports() {
    let interfaces = vec![Interface::default(); 2];
    let connections = vec![connection(); 16_386];
    let framing = Aal5Options::default();
    let setting = Setting { kind: CaptureKind::Ip, framing, interfaces, connections };
    let mut capture = Capture::new(Vec::new(), &About::default(), setting).expect("the settings are valid");
    let numbers = [0, 1, 16_383, 16_384, 16_385];
    for connection in numbers {
        let frame = Frame { connection, ..data(0, 0, 1) };
        capture.frame(&seen(9, Place::Sender, frame)).expect("writing to memory cannot fail");
    }
    let ports = |packet: &Packet| (big16(&packet.bytes, 20), big16(&packet.bytes, 22));
    let ports: Vec<_> = written(capture).iter().map(ports).collect();
    assert_eq!(ports, [(49152, 49152), (49153, 49152), (65535, 49152), (49152, 49153), (49153, 49153)]);
}

#[test]
fn packets_and_hosts_that_a_capture_file_cannot_represent_are_refused_with_a_message() {
    let new = |connection| {
        let setting = setting(CaptureKind::Ip, Encapsulation::LlcSnap, connection);
        refusal(Capture::new(Vec::new(), &About::default(), setting))
    };
    let tcp = Some(Tcp { mss: 65_488, receive_window: 65_535, selective: false, ecn: false });
    assert_eq!(
        new(Connection { tcp, ..connection() }),
        "tcp1: its packets of 65528 bytes do not fit into an AAL5 frame, which holds at most 65527 bytes"
    );
    let sender = End { host: 0, interface: Some(2) };
    assert_eq!(new(Connection { sender, ..connection() }), "tcp1: this capture has no interface 2");
    let sender = End { host: (1 << 24) - 2, interface: None };
    assert_eq!(new(Connection { sender, ..connection() }), "tcp1: host 16777214 has no address in 10.0.0.0/8");

    let mut at_hosts = ip();
    assert_eq!(
        refusal(at_hosts.cell(&cell(user(data(0, 0, 1), 0)))),
        "a capture of packets at hosts cannot record cells"
    );
    assert_eq!(
        refusal(at_hosts.frame(&seen(0, Place::Sender, packet(0, 1)))),
        "tcp1: this flow uses TCP, so it sends no packets without TCP"
    );
    let udp = capture(CaptureKind::Ip, Encapsulation::LlcSnap, packets());
    assert_eq!(
        refusal(udp.pdu(&data(0, 0, 1))),
        "cbr1: this flow sends packets without acknowledgements, so it has no TCP packets"
    );
    assert!(refusal(udp.pdu(&packet(0, u64::MAX))).starts_with("cbr1: its packets of"));

    let mut at_ports = capture(CaptureKind::Cells, Encapsulation::LlcSnap, connection());
    assert_eq!(
        refusal(at_ports.frame(&seen(0, Place::Sender, data(0, 0, 1)))),
        "a capture of cells cannot record whole frames"
    );
    assert_eq!(
        refusal(at_ports.cell(&cell(user(data(0, 0, 512), 12)))),
        "tcp1: a frame of 12 cells has no cell with the index 12 (counted from 0)"
    );
    let elsewhere = SeenCell { interface: 2, ..cell(user(data(0, 0, 512), 0)) };
    assert_eq!(refusal(at_ports.cell(&elsewhere)), "this capture has no interface 2");
}

#[test]
fn a_capture_comment_that_is_too_long_is_truncated_at_a_character_boundary() {
    let mut capture = ip();
    let comment = format!("x{}", "ä".repeat(40_000));
    let long = SeenFrame { comment: Some(&comment), ..seen(5, Place::Sender, data(0, 0, 1)) };
    capture.frame(&long).expect("writing to memory cannot fail");
    let packets = written(capture);
    assert_eq!(packets[0].comment.as_deref(), Some(&comment[..65_535]));
}

/// A writer that fails after it has accepted a given number of bytes, like a full disk.
struct Disk(usize);

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.checked_sub(bytes.len()) {
            Some(left) => self.0 = left,
            None => return Err(io::Error::from(io::ErrorKind::StorageFull)),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_reported_when_the_next_packet_is_captured() {
    let enough = ip().finish().expect("writing to memory cannot fail").len();
    let setting = setting(CaptureKind::Ip, Encapsulation::LlcSnap, connection());
    let about = About { application: "celltrain".to_owned(), comment: "a test".to_owned() };
    let full = |result| matches!(result, Err(CaptureError::Write(error)) if error.kind() == io::ErrorKind::StorageFull);
    assert!(full(Capture::new(Disk(enough - 1), &about, setting.clone()).map(drop)));
    let mut capture = Capture::new(Disk(enough), &about, setting).expect("the disk has room for the handshake");
    assert!(full(capture.frame(&seen(5, Place::Sender, data(0, 0, 1)))));
}

proptest! {
    #![proptest_config(proptest_seeded(7))]

    #[test]
    fn reading_a_captured_header_returns_its_acknowledgement_number_and_sack_blocks(
        near in 0u64..8 << 32,
        gaps in vec((1u64..1 << 20, 1u64..1 << 20), 0..=3),
    ) {
        let (mut blocks, mut end) = (Vec::new(), near);
        for (gap, length) in gaps {
            blocks.push((end + gap, end + gap + length));
            end += gap + length;
        }
        let frame = ack(0, near, &blocks);
        let mut capture = ip();
        capture.frame(&seen(5, Place::Receiver, frame)).expect("writing to memory cannot fail");
        let packets = written(capture);
        let (read, []) = TcpHeader::from_slice(transport(&packets[0].bytes)).expect("the bytes are a TCP header") else {
            panic!("packets of acknowledgements carry no data")
        };
        let Carries::Ack(_, sent) = frame.carries else { unreachable!("it is one") };
        prop_assert_eq!(read.options.len() as u64, sent.option_bytes(), "the size in the simulation includes the TCP options");
        let offset = |number| sequence::offset(number, near, 1);
        prop_assert_eq!(offset(read.acknowledgment_number), near);
        let mut read_blocks = SackBlocks::NONE;
        for option in read.options_iterator() {
            if let TcpOptionElement::SelectiveAcknowledgement(first, others) = option.expect("every TCP option is well-formed") {
                for (left, right) in [first].into_iter().chain(others.into_iter().flatten()) {
                    read_blocks.push(offset(left), offset(right));
                }
            }
        }
        prop_assert_eq!(read_blocks, sent);
    }
}
