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

pub mod aal5;
pub mod cell_header;
pub mod ipv4;
pub mod llc_snap;
pub mod rm_cell;
pub mod tcp_header;
pub mod udp_header;

pub use aal5::{Aal5Error, Pdu, Reassembler};
pub use cell_header::{CELL_BYTES, CellHeader, CellHeaderError};
pub use ipv4::{Ipv4Error, Ipv4Header};
pub use llc_snap::LlcSnapError;
pub use rm_cell::RmCellError;
pub use tcp_header::{SackBlock, TcpFlags, TcpHeader, TcpHeaderError, TcpOption};
pub use udp_header::{UdpHeader, UdpHeaderError};

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
/// See [`SegmentError`].
pub fn parse_tcp_segment(cells: &[[u8; CELL_BYTES]]) -> Result<TcpSegment, SegmentError> {
    let mut circuit = None;
    let mut reassembler = Reassembler::new();
    let mut frame = None;
    for (cell, bytes) in cells.iter().enumerate() {
        if frame.is_some() {
            return Err(SegmentError::CellsBehindLast { cell });
        }
        let (header, payload) = split_cell(bytes);
        let header = CellHeader::parse(header).map_err(|error| SegmentError::CellHeader { cell, error })?;
        if !header.carries_user_data() {
            return Err(SegmentError::NotUserData { cell, pti: header.pti });
        }
        let CellHeader { vpi, vci, .. } = header;
        if *circuit.get_or_insert((vpi, vci)) != (vpi, vci) {
            return Err(SegmentError::OtherConnection { cell, vpi, vci });
        }
        frame = reassembler.accept(payload, header.last_cell()).transpose().map_err(SegmentError::Aal5)?;
    }
    let (Some(frame), Some((vpi, vci))) = (frame, circuit) else {
        return Err(SegmentError::NoLastCell { cells: cells.len() });
    };
    let packet = llc_snap::parse(&frame.payload).map_err(SegmentError::LlcSnap)?;
    let (ip, segment) = Ipv4Header::parse(packet).map_err(SegmentError::Ipv4)?;
    if ip.protocol != ipv4::PROTOCOL_TCP {
        return Err(SegmentError::NotTcp { protocol: ip.protocol });
    }
    let (tcp, payload) = TcpHeader::parse(segment, ip.src, ip.dst).map_err(SegmentError::TcpHeader)?;
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

/// Reasons why cells are not a TCP segment, by the layer that rejects them. Cells are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentError {
    /// A cell's header is damaged.
    CellHeader {
        /// Index of the cell.
        cell: usize,
        /// The header's error.
        error: CellHeaderError,
    },
    /// A cell carries management or control data, not user data.
    NotUserData {
        /// Index of the cell.
        cell: usize,
        /// Its payload type.
        pti: u8,
    },
    /// A cell belongs to a different connection than the first.
    OtherConnection {
        /// Index of the cell.
        cell: usize,
        /// Its virtual path.
        vpi: u8,
        /// Its virtual channel.
        vci: u16,
    },
    /// No cell ends the frame.
    NoLastCell {
        /// Number of cells.
        cells: usize,
    },
    /// There are cells after the one that ends the frame.
    CellsBehindLast {
        /// Index of the first of them.
        cell: usize,
    },
    /// The frame is damaged.
    Aal5(Aal5Error),
    /// The frame does not carry routed IPv4.
    LlcSnap(LlcSnapError),
    /// The codec does not accept the packet as IPv4.
    Ipv4(Ipv4Error),
    /// The packet's protocol is not TCP.
    NotTcp {
        /// The protocol number.
        protocol: u8,
    },
    /// The packet does not carry a TCP segment.
    TcpHeader(TcpHeaderError),
}

impl fmt::Display for SegmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CellHeader { cell, error } => write!(f, "cell {cell}: {error}"),
            Self::NotUserData { cell, pti } => {
                write!(f, "cell {cell}: payload type {pti} is not user data")
            }
            Self::OtherConnection { cell, vpi, vci } => {
                write!(f, "cell {cell}: belongs to another connection, {vpi}/{vci}")
            }
            Self::NoLastCell { cells } => {
                write!(f, "none of the {cells} cells ends the frame")
            }
            Self::CellsBehindLast { cell } => {
                write!(f, "cell {cell}: comes behind the end of the frame")
            }
            Self::Aal5(error) => error.fmt(f),
            Self::LlcSnap(error) => error.fmt(f),
            Self::Ipv4(error) => error.fmt(f),
            Self::NotTcp { protocol } => write!(f, "IPv4 protocol is {protocol}, TCP has {}", ipv4::PROTOCOL_TCP),
            Self::TcpHeader(error) => error.fmt(f),
        }
    }
}

impl Error for SegmentError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::CellHeader { error, .. } => Some(error),
            Self::Aal5(error) => Some(error),
            Self::LlcSnap(error) => Some(error),
            Self::Ipv4(error) => Some(error),
            Self::TcpHeader(error) => Some(error),
            Self::NotUserData { .. }
            | Self::OtherConnection { .. }
            | Self::NoLastCell { .. }
            | Self::CellsBehindLast { .. }
            | Self::NotTcp { .. } => None,
        }
    }
}

/// The longest IPv4 packet that fits an AAL5 frame after its LLC/SNAP header, in bytes: 65527, less than IPv4 alone
/// allows (ITU-T I.363.5, RFC 2684 §5.1).
pub const MAX_PACKET_BYTES: usize = aal5::MAX_SDU_BYTES - llc_snap::HEADER_BYTES;

fn split_cell(cell: &[u8; CELL_BYTES]) -> (&[u8], &[u8; cell_header::PAYLOAD_BYTES]) {
    cell.split_last_chunk().expect("a cell is longer than its payload")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

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
    fn faults_among_the_cells_are_refused_by_their_own_names() {
        let whole = encode_tcp_segment(&small_segment());
        let changed = |change: fn(&mut CellHeader)| {
            let mut cells = whole.clone();
            change_header(&mut cells[1], change);
            parse_tcp_segment(&cells).expect_err("a fault")
        };
        assert_eq!(changed(|header| header.pti = 0b101), SegmentError::NotUserData { cell: 1, pti: 0b101 });
        assert_eq!(changed(|header| header.vci = 33), SegmentError::OtherConnection { cell: 1, vpi: 1, vci: 33 });
        assert_eq!(parse_tcp_segment(&[]), Err(SegmentError::NoLastCell { cells: 0 }));
        assert_eq!(parse_tcp_segment(&whole[..3]), Err(SegmentError::NoLastCell { cells: 3 }));
        assert_eq!(
            parse_tcp_segment(&[whole.as_slice(), &whole].concat()),
            Err(SegmentError::CellsBehindLast { cell: 4 })
        );
    }

    #[test]
    fn faults_in_the_layers_are_refused_by_their_own_names() {
        let refused = |payload: &[u8]| parse_tcp_segment(&cells_of_frame(payload)).expect_err("a fault");
        assert_eq!(refused(&[0xaa]), SegmentError::LlcSnap(LlcSnapError::TooShort { bytes: 1 }));
        assert_eq!(refused(&llc_snap::ROUTED_IPV4), SegmentError::Ipv4(Ipv4Error::TooShort { bytes: 0 }));
        let ip = small_segment().ip;
        let udp = Ipv4Header { protocol: 17, ..ip };
        assert_eq!(refused(&llc_snap::encode(&udp.encode(&[0; 8]))), SegmentError::NotTcp { protocol: 17 });
        assert_eq!(
            refused(&llc_snap::encode(&ip.encode(&[0; 8]))),
            SegmentError::TcpHeader(TcpHeaderError::TooShort { bytes: 8 })
        );
    }

    #[test]
    fn the_errors_say_which_cell_and_what_is_wrong() {
        let mut cells = encode_tcp_segment(&small_segment());
        cells[2][0] ^= 0x80;
        let error = parse_tcp_segment(&cells).expect_err("a damaged header");
        assert!(error.to_string().starts_with("cell 2: cell header damaged"));
        assert!(error.source().is_some());
        assert_eq!(
            SegmentError::OtherConnection { cell: 1, vpi: 0, vci: 33 }.to_string(),
            "cell 1: belongs to another connection, 0/33"
        );
    }
}
