//! Byte-exact codecs for TCP over ATM: the cells of a TCP segment as on the wire.
//!
//! The engine carries small cell records and never uses these codecs. They are for captures, for teaching, and to prove
//! that the sizes the engine assumes are the sizes of real cells: [`tcp_segment_cells`] encodes cells and counts them.
//!
//! From the inside out: [`tcp_header`], [`ipv4`], [`llc_snap`], [`aal5`], [`cell_header`]. There are also
//! [`udp_header`], for packets without feedback, and [`rm_cell`], for cells that carry no user data.
//!
//! ```
//! use celltrain_capture::codec::{
//!     Ipv4Header, TcpHeader, TcpSegment, encode_tcp_segment, parse_tcp_segment,
//! };
//!
//! let segment = TcpSegment {
//!     vpi: 0,
//!     vci: 32,
//!     ip: Ipv4Header::for_tcp([10, 0, 0, 1].into(), [10, 0, 0, 2].into()),
//!     tcp: TcpHeader { src_port: 1024, dst_port: 80, ..TcpHeader::default() },
//!     payload: vec![0; 512],
//! };
//! let cells = encode_tcp_segment(&segment);
//! assert_eq!(cells.len(), 12);
//! assert_eq!(parse_tcp_segment(&cells), Ok(segment));
//! ```
//!
//! Building panics with a message if the format cannot express the input (a field too wide, a payload too long), which
//! is the caller's mistake. Parsing never panics, because bytes from a wire are untrusted.
//!
//! Source: RFC 2225 and RFC 2684 §5.1 (IPv4 over AAL5 with LLC/SNAP); each module lists its own sources.
//!
//! Departures: one connection carries IPv4 with TCP and nothing else; each module lists its own.

use std::error::Error;
use std::fmt;
use std::net::Ipv4Addr;

/// A [`ParseError`] with a formatted problem.
macro_rules! refuse {
    ($($problem:tt)*) => { Err($crate::codec::ParseError(format!($($problem)*))) };
}

pub mod aal5;
pub mod cell_header;
pub mod ipv4;
pub mod llc_snap;
pub mod rm_cell;
pub mod tcp_header;
pub mod udp_header;

pub use aal5::{Pdu, Reassembler};
pub use cell_header::{CELL_BYTES, CellHeader};
pub use ipv4::Ipv4Header;
pub use tcp_header::{SackBlock, TcpFlags, TcpHeader, TcpOption};
pub use udp_header::UdpHeader;

/// The reason why bytes are refused, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError(String);

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for ParseError {}

/// A TCP segment with everything that its cells carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpSegment {
    /// Virtual path of the connection, 8 bits at the UNI (ITU-T I.361).
    pub vpi: u8,
    /// Virtual channel of the connection, 16 bits (ITU-T I.361).
    pub vci: u16,
    /// The IPv4 header (RFC 791 §3.1); its protocol is [`ipv4::PROTOCOL_TCP`].
    pub ip: Ipv4Header,
    /// The TCP header with its options (RFC 9293 §3.1).
    pub tcp: TcpHeader,
    /// The payload, in bytes; with both headers at most [`MAX_PACKET_BYTES`].
    pub payload: Vec<u8>,
}

/// Encodes `segment` as cells in the order of sending: TCP in IPv4 in LLC/SNAP in AAL5 (RFC 2684 §5.1), with CPCS-UU,
/// generic flow control and loss priority all 0.
///
/// # Panics
/// If the IPv4 header's protocol is not TCP, if the packet exceeds [`MAX_PACKET_BYTES`], or if the options do not fit
/// (see [`TcpHeader::encode`]).
pub fn encode_tcp_segment(segment: &TcpSegment) -> Vec<[u8; CELL_BYTES]> {
    let TcpSegment { vpi, vci, ip, tcp, payload } = segment;
    assert!(
        ip.protocol == ipv4::PROTOCOL_TCP,
        "a TCP segment travels as IPv4 protocol {}, not {}",
        ipv4::PROTOCOL_TCP,
        ip.protocol
    );
    let packet = ip.encode(&tcp.encode(payload, ip.src, ip.dst));
    aal5::segment(&aal5::encode(&llc_snap::encode(&packet), 0))
        .map(|(cell_payload, last)| {
            let mut cell = [0; CELL_BYTES];
            let (header, body) = cell.split_at_mut(cell_header::HEADER_BYTES);
            header.copy_from_slice(&CellHeader::user_data(*vpi, *vci, last).encode());
            body.copy_from_slice(&cell_payload);
            cell
        })
        .collect()
}

/// Parses cells that carry exactly one TCP segment (RFC 2684 §5.1). Congestion and loss priority marks, flow control
/// and CPCS-UU may have any value.
///
/// # Errors
/// If a layer refuses its bytes. Cells are counted from 0.
pub fn parse_tcp_segment(cells: &[[u8; CELL_BYTES]]) -> Result<TcpSegment, ParseError> {
    let mut circuit = None;
    let mut reassembler = Reassembler::new();
    let mut frame = None;
    for (cell, bytes) in cells.iter().enumerate() {
        if frame.is_some() {
            return refuse!("cell {cell}: comes behind the end of the frame");
        }
        let (header, payload) = split_cell(bytes);
        let header = CellHeader::parse(header).map_err(|error| ParseError(format!("cell {cell}: {error}")))?;
        if !header.carries_user_data() {
            return refuse!("cell {cell}: payload type {} is not user data", header.pti);
        }
        let CellHeader { vpi, vci, .. } = header;
        if *circuit.get_or_insert((vpi, vci)) != (vpi, vci) {
            return refuse!("cell {cell}: belongs to another connection, {vpi}/{vci}");
        }
        frame = reassembler.accept(payload, header.last_cell()).transpose()?;
    }
    let (Some(frame), Some((vpi, vci))) = (frame, circuit) else {
        return refuse!("none of the {} cells ends the frame", cells.len());
    };
    let packet = llc_snap::parse(&frame.payload)?;
    let (ip, segment) = Ipv4Header::parse(packet)?;
    if ip.protocol != ipv4::PROTOCOL_TCP {
        return refuse!("IPv4 protocol is {}, TCP has {}", ip.protocol, ipv4::PROTOCOL_TCP);
    }
    let (tcp, payload) = TcpHeader::parse(segment, ip.src, ip.dst)?;
    Ok(TcpSegment { vpi, vci, ip, tcp, payload: payload.to_vec() })
}

/// Returns the number of cells of a TCP segment with `payload` bytes and these `options`, counted by encoding it: the
/// payload plus 20 bytes of IPv4, 20 of TCP, the options in whole words, 8 of LLC/SNAP and 8 of AAL5 trailer, in cells
/// of 48 (RFC 2684 §5.1, ITU-T I.363.5).
///
/// # Panics
/// Like [`encode_tcp_segment`]: if packet or options are too long.
pub fn tcp_segment_cells(payload: usize, options: &[TcpOption]) -> usize {
    encode_tcp_segment(&TcpSegment {
        vpi: 0,
        vci: 0,
        ip: Ipv4Header::for_tcp(Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED),
        tcp: TcpHeader { options: options.to_vec(), ..TcpHeader::default() },
        payload: vec![0; payload],
    })
    .len()
}

/// The longest IPv4 packet that fits an AAL5 frame after its LLC/SNAP header, in bytes: 65527, less than IPv4 alone
/// allows (ITU-T I.363.5, RFC 2684 §5.1).
pub const MAX_PACKET_BYTES: usize = aal5::MAX_SDU_BYTES - llc_snap::HEADER_BYTES;

fn split_cell(cell: &[u8; CELL_BYTES]) -> (&[u8], &[u8; cell_header::PAYLOAD_BYTES]) {
    cell.split_last_chunk().expect("a cell is longer than its payload")
}

#[cfg(test)]
mod tests {
    use super::rm_cell::RmCell;
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Returns the words with which a parser refused its bytes; empty if it did not.
    pub(super) fn refusal<T>(parsed: Result<T, ParseError>) -> String {
        parsed.err().map_or_else(String::new, |ParseError(problem)| problem)
    }

    fn any_segment(payload: std::ops::Range<usize>) -> impl Strategy<Value = TcpSegment> {
        (any::<(u8, u16)>(), ipv4::tests::any_header(), tcp_header::tests::any_header(), vec(any::<u8>(), payload))
            .prop_map(|((vpi, vci), ip, tcp, payload)| TcpSegment {
                vpi,
                vci,
                ip: Ipv4Header { protocol: ipv4::PROTOCOL_TCP, ..ip },
                tcp,
                payload,
            })
    }

    fn small_segment() -> TcpSegment {
        TcpSegment {
            vpi: 1,
            vci: 32,
            ip: Ipv4Header::for_tcp(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)),
            tcp: TcpHeader::default(),
            payload: vec![0xa5; 100],
        }
    }

    fn change_header(cell: &mut [u8; CELL_BYTES], change: impl FnOnce(&mut CellHeader)) {
        let mut header = CellHeader::parse(&cell[..5]).expect("a header of our own");
        change(&mut header);
        cell[..5].copy_from_slice(&header.encode());
    }

    fn cells_of_frame(payload: &[u8]) -> Vec<[u8; CELL_BYTES]> {
        aal5::segment(&aal5::encode(payload, 0))
            .map(|(payload, last)| {
                let mut cell = [0; CELL_BYTES];
                cell[..5].copy_from_slice(&CellHeader::user_data(0, 32, last).encode());
                cell[5..].copy_from_slice(&payload);
                cell
            })
            .collect()
    }

    proptest! {
        #![proptest_config(crate::tests::proptest_seeded(0x0000_6174_6d35))]

        #[test]
        fn any_segment_that_can_be_built_is_parsed_back(segment in any_segment(0..600)) {
            prop_assert_eq!(parse_tcp_segment(&encode_tcp_segment(&segment)), Ok(segment));
        }

        #[test]
        fn any_single_flipped_bit_of_any_cell_is_refused(segment in any_segment(0..60)) {
            let whole = encode_tcp_segment(&segment);
            for bit in 0..8 * CELL_BYTES * whole.len() {
                let mut cells = whole.clone();
                cells[bit / 8 / CELL_BYTES][bit / 8 % CELL_BYTES] ^= 0x80 >> (bit % 8);
                prop_assert!(parse_tcp_segment(&cells).is_err(), "bit {bit}");
            }
        }

        #[test]
        fn any_single_flipped_bit_is_refused_by_every_codec(
            segment in any_segment(1..60),
            header in cell_header::tests::any_header(),
            rm in rm_cell::tests::any_cell(),
        ) {
            let TcpSegment { ip, tcp, payload, .. } = segment;
            let (src, dst) = (ip.src, ip.dst);
            let parse_tcp = |bytes: &[u8]| refusal(TcpHeader::parse(bytes, src, dst));
            let all: [Covered<'_>; 6] = [
                ("cell header damaged", header.encode().into(), 5, &|bytes| refusal(CellHeader::parse(bytes))),
                ("damaged: ", rm.encode().into(), CELL_BYTES, &|bytes| refusal(RmCell::parse(bytes))),
                ("frame damaged: CRC-32", aal5::encode(&payload, 0), usize::MAX, &|bytes| refusal(aal5::parse(bytes))),
                ("", llc_snap::encode(&payload), llc_snap::HEADER_BYTES, &|bytes| refusal(llc_snap::parse(bytes))),
                ("I", ip.encode(&payload), ipv4::HEADER_BYTES, &|bytes| refusal(Ipv4Header::parse(bytes))),
                ("TCP segment damaged", tcp.encode(&payload, src, dst), usize::MAX, &parse_tcp),
            ];
            for (words, whole, covered, parse) in all {
                for bit in 0..8 * whole.len().min(covered) {
                    // These two make the header of IPv4 longer, so that the sum includes payload. The sum is then
                    // correct by chance for one payload in 65535, whatever the code does.
                    if words == "I" && (bit == 4 || bit == 6) {
                        continue;
                    }
                    let mut bytes = whole.clone();
                    bytes[bit / 8] ^= 0x80 >> (bit % 8);
                    let found = parse(&bytes);
                    prop_assert!(!found.is_empty() && found.contains(words), "{words}, bit {bit}: {found}");
                }
            }
        }

        #[test]
        fn bytes_of_any_number_and_value_never_panic(
            bytes in prop_oneof![vec(any::<u8>(), 0..12), vec(any::<u8>(), 0..200)],
        ) {
            let (length, any) = (bytes.len(), Ipv4Addr::LOCALHOST);
            let _ = (Ipv4Header::parse(&bytes), TcpHeader::parse(&bytes, any, any), UdpHeader::parse(&bytes, any, any));
            if let Ok(packet) = llc_snap::parse(&bytes) {
                prop_assert_eq!(llc_snap::encode(packet), bytes.clone());
            }
            for (refusal, fits, what) in [
                (refusal(CellHeader::parse(&bytes)), length == 5, "a cell header has 5 bytes"),
                (refusal(RmCell::parse(&bytes)), length == CELL_BYTES, "a cell has 53 bytes"),
                (refusal(aal5::parse(&bytes)), length > 0 && length % 48 == 0, "an AAL5 frame is one or more cells"),
            ] {
                prop_assert!(fits || refusal.starts_with(what), "{refusal}");
            }
        }

        #[test]
        fn any_lost_cell_is_noticed(
            segment in any_segment(0..600),
            lost in any::<prop::sample::Index>(),
        ) {
            let mut cells = encode_tcp_segment(&segment);
            cells.remove(lost.index(cells.len()));
            prop_assert!(parse_tcp_segment(&cells).is_err());
        }

        #[test]
        fn any_two_cells_swapped_are_noticed_unless_alike(
            segment in any_segment(100..600),
            first in any::<prop::sample::Index>(),
            second in any::<prop::sample::Index>(),
        ) {
            let whole = encode_tcp_segment(&segment);
            let mut cells = whole.clone();
            cells.swap(first.index(whole.len()), second.index(whole.len()));
            prop_assert_eq!(parse_tcp_segment(&cells).is_ok(), cells == whole);
        }

        #[test]
        fn marks_made_on_the_way_do_no_harm(
            segment in any_segment(0..300),
            marks in any::<(bool, bool)>(),
            gfc in 0_u8..16,
        ) {
            let mut cells = encode_tcp_segment(&segment);
            for cell in &mut cells {
                change_header(cell, |header| {
                    header.gfc = gfc;
                    header.clp = marks.0;
                    header.pti |= u8::from(marks.1) << 1;
                });
            }
            prop_assert_eq!(parse_tcp_segment(&cells), Ok(segment));
        }

        #[test]
        fn cells_of_any_content_never_panic(
            cells in vec((any::<CellFields>(), vec(any::<u8>(), 48)), 0..6),
        ) {
            let cells: Vec<_> = cells
                .into_iter()
                .map(|((vci, pti, damage), payload)| {
                    let header = CellHeader {
                        vci: u16::from(vci),
                        pti: pti % 8,
                        ..CellHeader::default()
                    };
                    let mut cell = [0; CELL_BYTES];
                    cell[..5].copy_from_slice(&header.encode());
                    cell[4] ^= u8::from(damage);
                    cell[5..].copy_from_slice(&payload);
                    cell
                })
                .collect();
            prop_assert!(parse_tcp_segment(&cells).is_err());
        }

        #[test]
        fn whole_frames_of_any_content_never_panic(
            start in 0_usize..=8,
            bytes in vec(any::<u8>(), 1..100),
        ) {
            let frame = [&llc_snap::ROUTED_IPV4[..start], bytes.as_slice()].concat();
            let _ = parse_tcp_segment(&cells_of_frame(&frame));
        }

        #[test]
        fn encoded_cells_number_what_the_formula_says(
            payload in 0_usize..=65_447,
            options in tcp_header::tests::any_options(),
        ) {
            let opt = tcp_header::options_bytes(&options);
            prop_assert_eq!(
                tcp_segment_cells(payload, &options),
                (payload + 40 + opt + 8 + 8).div_ceil(48)
            );
        }
    }

    type CellFields = (bool, u8, bool);
    /// A codec: a part of its refusal; bytes, and how many of them it covers; its parser.
    type Covered<'a> = (&'a str, Vec<u8>, usize, &'a dyn Fn(&[u8]) -> String);

    #[test]
    fn the_usual_segments_take_the_known_numbers_of_cells() {
        for (payload, cells) in
            [(0, 2), (512, 12), (536, 13), (1024, 23), (1460, 32), (1500, 33), (9140, 192), (9180, 193)]
        {
            assert_eq!(tcp_segment_cells(payload, &[]), cells, "{payload} bytes");
        }
    }

    #[test]
    fn timestamps_cost_a_cell_only_where_the_last_one_is_full() {
        let timestamps = tcp_header::word_aligned(&[TcpOption::Timestamps { value: 0, echo_reply: 0 }]);
        assert_eq!(tcp_segment_cells(0, &timestamps), 2);
        assert_eq!(tcp_segment_cells(512, &timestamps), 13);
    }

    #[test]
    fn the_longest_packet_is_parsed_back() {
        let segment = TcpSegment { payload: vec![0x5a; MAX_PACKET_BYTES - 40], ..small_segment() };
        let cells = encode_tcp_segment(&segment);
        assert_eq!(cells.len(), aal5::MAX_FRAME_CELLS);
        assert_eq!(parse_tcp_segment(&cells), Ok(segment));
    }

    #[test]
    #[should_panic(expected = "an AAL5 frame carries at most 65535 bytes, not 65536")]
    fn a_packet_beyond_the_frame_is_not_cut_in_silence() {
        let _ = tcp_segment_cells(MAX_PACKET_BYTES - 39, &[]);
    }

    #[test]
    #[should_panic(expected = "a TCP segment travels as IPv4 protocol 6, not 17")]
    fn a_header_that_names_another_protocol_is_not_encoded() {
        let mut segment = small_segment();
        segment.ip.protocol = 17;
        let _ = encode_tcp_segment(&segment);
    }

    #[test]
    fn faults_among_the_cells_and_in_the_layers_are_refused_in_words() {
        let whole = encode_tcp_segment(&small_segment());
        let mut damaged = whole.clone();
        damaged[2][0] ^= 0x80;
        let changed = |change: fn(&mut CellHeader)| {
            let mut cells = whole.clone();
            change_header(&mut cells[1], change);
            cells
        };
        let ip = small_segment().ip;
        let udp = Ipv4Header { protocol: 17, ..ip };
        for (cells, expected) in [
            (damaged, "cell 2: cell header damaged: header error control is 0xdd, should be 0xec"),
            (changed(|header| header.pti = 0b101), "cell 1: payload type 5 is not user data"),
            (changed(|header| header.vci = 33), "cell 1: belongs to another connection, 1/33"),
            (vec![], "none of the 0 cells ends the frame"),
            (whole[..3].to_vec(), "none of the 3 cells ends the frame"),
            ([whole.as_slice(), &whole].concat(), "cell 4: comes behind the end of the frame"),
            (cells_of_frame(&[0xaa]), "an LLC/SNAP header has 8 bytes, there are only 1"),
            (cells_of_frame(&llc_snap::ROUTED_IPV4), "an IPv4 header has 20 bytes, there are only 0"),
            (cells_of_frame(&llc_snap::encode(&udp.encode(&[0; 8]))), "IPv4 protocol is 17, TCP has 6"),
            (cells_of_frame(&llc_snap::encode(&ip.encode(&[0; 8]))), "a TCP header has 20 bytes, there are only 8"),
        ] {
            assert_eq!(refusal(parse_tcp_segment(&cells)), expected);
        }
    }
}
