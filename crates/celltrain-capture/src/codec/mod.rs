//! Byte-exact codecs for ATM: cells, AAL5 frames, LLC/SNAP headers and RM cells, as sent on the wire.
//!
//! The engines move small records of cells and never use these codecs. The codecs serve captures and teaching. Tests
//! also use the codecs to check that the sizes assumed by the engines equal the sizes of real cells.
//!
//! In the order of encapsulation, the modules are [`llc_snap`], [`aal5`] and [`cell_header`]. [`rm_cell`] encodes RM
//! cells, which carry no user data. The crate `etherparse` provides the headers of IPv4, TCP and UDP.
//!
//! ```
//! use celltrain_capture::codec::{CellHeader, Reassembler, aal5, llc_snap};
//! use etherparse::{PacketBuilder, SlicedPacket};
//!
//! let mut packet = Vec::new();
//! let headers = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp(1024, 80, 0, 65535);
//! headers.write_to_vec(&mut packet, &[0; 512]).expect("the payload fits into a frame");
//! let frame = aal5::encode(&llc_snap::encode(&packet), 0);
//! let cell = |(payload, last)| CellHeader::user_data(0, 32, last).cell(&payload);
//! let cells: Vec<[u8; 53]> = aal5::segment(&frame).map(cell).collect();
//! assert_eq!(cells.len(), 12);
//!
//! let mut reassembler = Reassembler::new();
//! let received = cells.iter().find_map(|cell| {
//!     let (header, payload) = cell.split_last_chunk().expect("a cell is longer than its payload");
//!     let header = CellHeader::parse(header).expect("the header checksum is correct");
//!     reassembler.accept(payload, header.last_cell())
//! });
//! let received = received.expect("the last cell ends the frame").expect("the CRC of the frame is correct");
//! let received = llc_snap::parse(&received.payload).expect("the payload is IPv4");
//! assert_eq!(received, packet);
//! assert!(SlicedPacket::from_ip(received).expect("the IP packet is complete").transport.is_some());
//! ```
//!
//! If the format cannot express the input, because a field is too wide or a payload too long, encoding panics with a
//! message. The mistake is the caller's. Parsing never panics, because bytes from a network are untrusted.
//!
//! Source: RFC 2225 and RFC 2684 §5.1 (IPv4 over AAL5 with LLC/SNAP); each module lists its own sources.
//!
//! Each module lists its differences from its source.

use std::error::Error;
use std::fmt;

/// Returns a [`ParseError`] with a formatted message.
macro_rules! refuse {
    ($($problem:tt)*) => { Err($crate::codec::ParseError(format!($($problem)*))) };
}

pub mod aal5;
pub mod cell_header;
pub mod llc_snap;
pub mod rm_cell;

pub use aal5::{Pdu, Reassembler};
pub use cell_header::{CELL_BYTES, CellHeader};

/// The reason why a parser rejected bytes, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError(String);

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for ParseError {}

#[cfg(test)]
mod tests {
    use super::rm_cell::RmCell;
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Returns the message with which a parser rejected bytes, or an empty string if the parser accepted the bytes.
    pub(super) fn refusal<T>(parsed: Result<T, ParseError>) -> String {
        parsed.err().map_or_else(String::new, |ParseError(problem)| problem)
    }

    proptest! {
        #![proptest_config(crate::tests::proptest_seeded(0x0000_6174_6d35))]

        #[test]
        fn every_codec_refuses_data_in_which_one_bit_was_flipped(
            payload in vec(any::<u8>(), 1..60),
            header in cell_header::tests::any_header(),
            rm in rm_cell::tests::any_cell(),
        ) {
            let all: [Covered<'_>; 4] = [
                ("the cell header is damaged", header.encode().into(), 5, &|bytes| refusal(CellHeader::parse(bytes))),
                ("damaged: ", rm.encode().into(), CELL_BYTES, &|bytes| refusal(RmCell::parse(bytes))),
                ("frame damaged: CRC-32", aal5::encode(&payload, 0), usize::MAX, &|bytes| refusal(aal5::parse(bytes))),
                ("", llc_snap::encode(&payload), llc_snap::HEADER_BYTES, &|bytes| refusal(llc_snap::parse(bytes))),
            ];
            for (words, whole, covered, parse) in all {
                for bit in 0..8 * whole.len().min(covered) {
                    let mut bytes = whole.clone();
                    bytes[bit / 8] ^= 0x80 >> (bit % 8);
                    let found = parse(&bytes);
                    prop_assert!(!found.is_empty() && found.contains(words), "{words}, bit {bit}: {found}");
                }
            }
        }

        #[test]
        fn no_sequence_of_bytes_makes_a_codec_panic(
            bytes in prop_oneof![vec(any::<u8>(), 0..12), vec(any::<u8>(), 0..200)],
        ) {
            let length = bytes.len();
            if let Ok(packet) = llc_snap::parse(&bytes) {
                prop_assert_eq!(llc_snap::encode(packet), bytes.clone());
            }
            for (refusal, fits, what) in [
                (refusal(CellHeader::parse(&bytes)), length == 5, "a cell header has 5 bytes"),
                (refusal(RmCell::parse(&bytes)), length == CELL_BYTES, "a cell has 53 bytes"),
                (refusal(aal5::parse(&bytes)), length > 0 && length % 48 == 0, "an AAL5 frame consists of one or more \
                    cells"),
            ] {
                prop_assert!(fits || refusal.starts_with(what), "{refusal}");
            }
        }
    }

    /// A test case for a codec: part of the expected message, the bytes, how many of the bytes the checksum covers, and
    /// the parser.
    type Covered<'a> = (&'a str, Vec<u8>, usize, &'a dyn Fn(&[u8]) -> String);
}
