//! The UDP header: encoding and parsing, with the checksum over the pseudo header.
//!
//! Source: RFC 768.
//!
//! Departures: a checksum of 0, with which a sender omits the checksum, is rejected when parsing; `encode` always
//! computes one.

use std::net::Ipv4Addr;

use super::ParseError;
use super::ipv4::{internet_checksum, pseudo_header};

/// A UDP header (RFC 768). It omits length and checksum, which [`UdpHeader::encode`] computes and [`UdpHeader::parse`]
/// checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct UdpHeader {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
}

impl UdpHeader {
    /// Encodes a datagram of this header and `payload`, with the checksum for `src` and `dst` (RFC 768).
    ///
    /// # Panics
    /// If the datagram exceeds 65535 bytes, the maximum of its length field.
    pub fn encode(&self, payload: &[u8], src: Ipv4Addr, dst: Ipv4Addr) -> Vec<u8> {
        let total = HEADER_BYTES + payload.len();
        let length =
            u16::try_from(total).unwrap_or_else(|_| panic!("a UDP datagram has at most 65535 bytes, not {total}"));
        let mut datagram = Vec::with_capacity(total);
        for field in [self.src_port, self.dst_port, length, 0] {
            datagram.extend_from_slice(&field.to_be_bytes());
        }
        datagram.extend_from_slice(payload);
        // RFC 768: a checksum of 0 is sent as all ones, which is equivalent in ones' complement.
        let checksum = match internet_checksum(&[&pseudo_header(src, dst, PROTOCOL_UDP, length), &datagram]) {
            0 => u16::MAX,
            checksum => checksum,
        };
        datagram[CHECKSUM_AT..HEADER_BYTES].copy_from_slice(&checksum.to_be_bytes());
        datagram
    }

    /// Parses the header and payload of a datagram sent from `src` to `dst` (RFC 768).
    ///
    /// # Errors
    /// If it is damaged, cut off, or not for these addresses.
    pub fn parse(datagram: &[u8], src: Ipv4Addr, dst: Ipv4Addr) -> Result<(Self, &[u8]), ParseError> {
        let bytes = datagram.len();
        let Some((fixed, payload)) = datagram.split_first_chunk::<HEADER_BYTES>() else {
            return refuse!("a UDP header has {HEADER_BYTES} bytes, there are only {bytes}");
        };
        let field = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let length = field(4);
        if usize::from(length) != bytes {
            return refuse!("UDP length is {length}, but there are {bytes} bytes");
        }
        // The sum over a datagram that includes its correct checksum is zero (RFC 1071 §1).
        if field(CHECKSUM_AT) == 0
            || internet_checksum(&[&pseudo_header(src, dst, PROTOCOL_UDP, length), datagram]) != 0
        {
            return refuse!("UDP datagram damaged or misdirected: it does not match its checksum");
        }
        Ok((Self { src_port: field(0), dst_port: field(2) }, payload))
    }
}

/// Bytes of a UDP header (RFC 768).
pub const HEADER_BYTES: usize = 8;

/// The protocol number of UDP (RFC 790).
pub const PROTOCOL_UDP: u8 = 17;

const CHECKSUM_AT: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const SRC: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const DST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    #[test]
    fn a_datagram_is_the_bytes_summed_by_hand() {
        // Pseudo header 0a00 0001 0a00 0002 0011 000a, header 0001 0002 000a, payload 6869: their sum is 7c94.
        let datagram = UdpHeader { src_port: 1, dst_port: 2 }.encode(b"hi", SRC, DST);
        assert_eq!(datagram, [0, 1, 0, 2, 0, 10, 0x83, 0x6b, b'h', b'i']);
    }

    #[test]
    fn a_sum_of_zero_is_sent_as_ones() {
        // The payload is the complement of everything else: addresses, protocol, and the length twice.
        let rest = 0x0a00_u16 + 1 + 0x0a00 + 2 + 17 + 10 + 10;
        let datagram = UdpHeader::default().encode(&(!rest).to_be_bytes(), SRC, DST);
        assert_eq!(datagram[6..8], [0xff, 0xff]);
        assert!(UdpHeader::parse(&datagram, SRC, DST).is_ok());
    }

    proptest! {
        #![proptest_config(crate::tests::proptest_seeded(0x0000_7564))]

        #[test]
        fn any_datagram_is_parsed_back_and_no_flipped_bit_is_taken(
            ports in any::<(u16, u16)>(),
            payload in vec(any::<u8>(), 0..100),
            flipped in any::<prop::sample::Index>(),
        ) {
            let header = UdpHeader { src_port: ports.0, dst_port: ports.1 };
            let mut datagram = header.encode(&payload, SRC, DST);
            prop_assert_eq!(UdpHeader::parse(&datagram, SRC, DST), Ok((header, payload.as_slice())));
            let bit = flipped.index(8 * datagram.len());
            datagram[bit / 8] ^= 0x80 >> (bit % 8);
            prop_assert!(UdpHeader::parse(&datagram, SRC, DST).is_err());
        }
    }
}
