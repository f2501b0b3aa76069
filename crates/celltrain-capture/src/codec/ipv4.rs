//! The IPv4 header: encoding and parsing, with its checksum.
//!
//! Source: RFC 791 §3.1 (header), RFC 1071 (Internet checksum), RFC 1191 (purpose of the don't-fragment bit).
//!
//! Departures: options are skipped when parsing and never sent. Fragments are rejected, because a piece of a packet
//! carries no whole TCP segment. The reserved flag bit is sent as 0 and ignored when parsing.

use std::net::Ipv4Addr;

use super::ParseError;

/// An IPv4 header without options (RFC 791 §3.1).
///
/// It omits version, header length, total length and checksum, which [`Ipv4Header::encode`] computes and
/// [`Ipv4Header::parse`] checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ipv4Header {
    /// Type of service, 8 bits; today differentiated services and ECN (RFC 791 §3.1, RFC 3168 §5).
    pub tos: u8,
    /// Identification, shared by the fragments of one packet (RFC 791 §3.1).
    pub ident: u16,
    /// Don't-fragment flag (RFC 791 §3.1).
    pub dont_fragment: bool,
    /// Time to live, in hops (RFC 791 §3.1).
    pub ttl: u8,
    /// Protocol number of the payload; [`PROTOCOL_TCP`] for TCP (RFC 791 §3.1).
    pub protocol: u8,
    /// Source address (RFC 791 §3.1).
    pub src: Ipv4Addr,
    /// Destination address (RFC 791 §3.1).
    pub dst: Ipv4Addr,
}

impl Ipv4Header {
    /// Creates a header for a TCP segment from `src` to `dst` as common hosts send it: time to live 64, don't-fragment
    /// set for path MTU discovery (RFC 1191), everything else 0.
    pub const fn for_tcp(src: Ipv4Addr, dst: Ipv4Addr) -> Self {
        Self { tos: 0, ident: 0, dont_fragment: true, ttl: 64, protocol: PROTOCOL_TCP, src, dst }
    }

    /// Encodes a packet of this header and `payload` (RFC 791 §3.1).
    ///
    /// # Panics
    /// If header and payload together exceed [`MAX_PACKET_BYTES`], the maximum of the total length field.
    pub fn encode(&self, payload: &[u8]) -> Vec<u8> {
        let total = HEADER_BYTES + payload.len();
        let total_length = u16::try_from(total)
            .unwrap_or_else(|_| panic!("an IPv4 packet has at most {MAX_PACKET_BYTES} bytes, not {total}"));
        let flags = if self.dont_fragment { DONT_FRAGMENT } else { 0 };
        let mut packet = Vec::with_capacity(total);
        packet.extend_from_slice(&[VERSION_4_WORDS_5, self.tos]);
        packet.extend_from_slice(&total_length.to_be_bytes());
        packet.extend_from_slice(&self.ident.to_be_bytes());
        packet.extend_from_slice(&flags.to_be_bytes());
        packet.extend_from_slice(&[self.ttl, self.protocol, 0, 0]);
        packet.extend_from_slice(&self.src.octets());
        packet.extend_from_slice(&self.dst.octets());
        let checksum = internet_checksum(&[&packet]);
        packet[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&checksum.to_be_bytes());
        packet.extend_from_slice(payload);
        packet
    }

    /// Parses the header and payload of the packet at the start of `bytes` (RFC 791 §3.1). Options are skipped; bytes
    /// after the total length are link padding and are dropped.
    ///
    /// # Errors
    /// If they are damaged, cut off or a fragment.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let Some(fixed) = bytes.first_chunk::<HEADER_BYTES>() else {
            return refuse!("an IPv4 header has {HEADER_BYTES} bytes, there are only {}", bytes.len());
        };
        let version = fixed[0] >> 4;
        if version != 4 {
            return refuse!("IP version is {version}, not 4");
        }
        let words = fixed[0] & 0x0f;
        let header_bytes = 4 * usize::from(words);
        if header_bytes < HEADER_BYTES || header_bytes > bytes.len() {
            return refuse!(
                "IPv4 header of {words} words is less than 5 or more than the {} bytes there are",
                bytes.len()
            );
        }
        // The sum over a header that includes its correct checksum is zero (RFC 1071 §1).
        if internet_checksum(&[&bytes[..header_bytes]]) != 0 {
            return refuse!("IPv4 header damaged: it does not match its checksum");
        }
        let total_length = u16::from_be_bytes([fixed[2], fixed[3]]);
        let Some(payload) = bytes.get(header_bytes..usize::from(total_length)) else {
            return refuse!(
                "IPv4 total length {total_length} is less than the header of {header_bytes} bytes or more than the {} \
                 bytes there are",
                bytes.len()
            );
        };
        let fragment = u16::from_be_bytes([fixed[6], fixed[7]]);
        if fragment & (MORE_FRAGMENTS | FRAGMENT_OFFSET) != 0 {
            return refuse!("IPv4 packet is a fragment");
        }
        let header = Self {
            tos: fixed[1],
            ident: u16::from_be_bytes([fixed[4], fixed[5]]),
            dont_fragment: fragment & DONT_FRAGMENT != 0,
            ttl: fixed[8],
            protocol: fixed[9],
            src: Ipv4Addr::new(fixed[12], fixed[13], fixed[14], fixed[15]),
            dst: Ipv4Addr::new(fixed[16], fixed[17], fixed[18], fixed[19]),
        };
        Ok((header, payload))
    }
}

/// Computes the Internet checksum over the concatenated `parts`: the complement of the ones' complement sum of their
/// 16-bit words, with an odd last byte padded with 0 (RFC 1071 §1).
///
/// It is 0 over bytes that include their correct checksum.
///
/// # Panics
/// If a part other than the last has an odd number of bytes, which would misalign all following words.
pub fn internet_checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0_u64;
    for (index, part) in parts.iter().enumerate() {
        let (words, odd) = part.as_chunks::<2>();
        assert!(
            odd.is_empty() || index + 1 == parts.len(),
            "only the last part under an Internet checksum may be odd, part {index} has {} bytes",
            part.len()
        );
        sum += words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum::<u64>();
        if let [byte] = odd {
            sum += u64::from(u16::from_be_bytes([*byte, 0]));
        }
    }
    while sum > u64::from(u16::MAX) {
        sum = (sum >> 16) + (sum & u64::from(u16::MAX));
    }
    !u16::try_from(sum).unwrap_or(u16::MAX)
}

/// Returns what the checksums of TCP and UDP cover before their segment (RFC 9293 §3.1, RFC 768).
pub(super) fn pseudo_header(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8, length: u16) -> [u8; 12] {
    let mut header = [0; 12];
    header[..4].copy_from_slice(&src.octets());
    header[4..8].copy_from_slice(&dst.octets());
    header[9] = protocol;
    header[10..].copy_from_slice(&length.to_be_bytes());
    header
}

/// Bytes of an IPv4 header without options (RFC 791 §3.1).
pub const HEADER_BYTES: usize = 20;

/// Maximum length of an IPv4 packet in bytes, from the 16-bit total length (RFC 791 §3.1).
pub const MAX_PACKET_BYTES: usize = 65_535;

/// The protocol number of TCP (RFC 790).
pub const PROTOCOL_TCP: u8 = 6;

const VERSION_4_WORDS_5: u8 = 0x45;
const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1fff;
const CHECKSUM_AT: usize = 10;

#[cfg(test)]
pub(super) mod tests {
    use super::super::tests::refusal;
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    pub(in super::super) fn any_header() -> impl Strategy<Value = Ipv4Header> {
        (any::<u8>(), any::<u16>(), any::<bool>(), any::<u8>(), any::<u8>(), any::<[u8; 4]>(), any::<[u8; 4]>())
            .prop_map(|(tos, ident, dont_fragment, ttl, protocol, src, dst)| Ipv4Header {
                tos,
                ident,
                dont_fragment,
                ttl,
                protocol,
                src: src.into(),
                dst: dst.into(),
            })
    }

    /// Computes the same checksum independently, with the carry folded in after every word.
    fn checksum_word_by_word(bytes: &[u8]) -> u16 {
        let mut sum = 0_u16;
        for pair in bytes.chunks(2) {
            let word = u16::from(pair[0]) << 8 | pair.get(1).copied().map_or(0, u16::from);
            let (wrapped, carry) = sum.overflowing_add(word);
            sum = wrapped + u16::from(carry);
        }
        !sum
    }

    fn with_right_checksum(mut header: Vec<u8>, header_bytes: usize) -> Vec<u8> {
        header[CHECKSUM_AT..CHECKSUM_AT + 2].fill(0);
        let checksum = checksum_word_by_word(&header[..header_bytes]);
        header[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&checksum.to_be_bytes());
        header
    }

    proptest! {
        #![proptest_config(crate::tests::proptest_seeded(0x6970_7634))]

        #[test]
        fn any_packet_that_can_be_built_is_parsed_back(
            header in any_header(),
            payload in vec(any::<u8>(), 0..200),
        ) {
            let packet = header.encode(&payload);
            prop_assert_eq!(packet.len(), 20 + payload.len());
            prop_assert_eq!(Ipv4Header::parse(&packet), Ok((header, payload.as_slice())));
        }

        #[test]
        fn any_header_behind_a_right_checksum_never_panics(
            mut bytes in vec(any::<u8>(), 60..100),
            words in 5_u8..16,
            total_length in 0_u16..110,
        ) {
            bytes[0] = 0x40 | words;
            bytes[2..4].copy_from_slice(&total_length.to_be_bytes());
            let bytes = with_right_checksum(bytes, 4 * usize::from(words));
            match Ipv4Header::parse(&bytes) {
                Ok((_, payload)) => prop_assert_eq!(
                    payload.len() + 4 * usize::from(words),
                    usize::from(total_length)
                ),
                Err(ParseError(problem)) => prop_assert!(
                    problem.starts_with("IPv4 total length") || problem.ends_with("fragment"),
                    "{problem}"
                ),
            }
        }

        #[test]
        fn options_are_skipped(
            header in any_header(),
            options in vec(any::<[u8; 4]>(), 1..=10),
            payload in vec(any::<u8>(), 0..60),
        ) {
            let plain = header.encode(&payload);
            let options = options.concat();
            let header_bytes = HEADER_BYTES + options.len();
            let mut packet = [&plain[..HEADER_BYTES], &options, &payload].concat();
            packet[0] = 0x40 | u8::try_from(header_bytes / 4).expect("at most 15 words");
            let total = u16::try_from(packet.len()).expect("a short packet");
            packet[2..4].copy_from_slice(&total.to_be_bytes());
            let packet = with_right_checksum(packet, header_bytes);
            prop_assert_eq!(Ipv4Header::parse(&packet), Ok((header, payload.as_slice())));
        }

        #[test]
        fn bytes_behind_the_total_length_are_cut_off(
            header in any_header(),
            payload in vec(any::<u8>(), 0..60),
            padding in vec(any::<u8>(), 0..60),
        ) {
            let padded = [header.encode(&payload), padding].concat();
            prop_assert_eq!(Ipv4Header::parse(&padded), Ok((header, payload.as_slice())));
        }

        #[test]
        fn the_checksum_agrees_with_one_word_at_a_time(
            even in vec(any::<[u8; 2]>(), 0..40),
            last in vec(any::<u8>(), 0..80),
        ) {
            let even = even.concat();
            prop_assert_eq!(
                internet_checksum(&[&even, &last]),
                checksum_word_by_word(&[even.clone(), last.clone()].concat())
            );
        }
    }

    #[test]
    fn the_checksum_of_the_worked_example_is_right() {
        // RFC 1071 §3: the words 0001 f203 f4f5 f6f7 sum to ddf2.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(internet_checksum(&[&bytes]), !0xddf2);
    }

    #[test]
    fn every_field_stands_in_its_place() {
        let header = Ipv4Header {
            tos: 0x02,
            ident: 0xbeef,
            ..Ipv4Header::for_tcp(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2))
        };
        let packet = header.encode(&[0xee; 3]);
        assert_eq!(packet[..10], [0x45, 0x02, 0, 23, 0xbe, 0xef, 0x40, 0, 64, 6]);
        assert_eq!(packet[12..], [10, 0, 0, 1, 10, 0, 0, 2, 0xee, 0xee, 0xee]);
    }

    #[test]
    fn each_fault_is_refused_in_words() {
        let whole = Ipv4Header::for_tcp(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST).encode(&[0; 4]);
        assert_eq!(refusal(Ipv4Header::parse(&whole[..19])), "an IPv4 header has 20 bytes, there are only 19");
        let length = "is less than the header of 20 bytes or more than the 24 bytes there are";
        for (at, byte, expected) in [
            (0, 0x65, "IP version is 6, not 4"),
            (0, 0x44, "IPv4 header of 4 words is less than 5 or more than the 24 bytes there are"),
            (0, 0x47, "IPv4 header of 7 words is less than 5 or more than the 24 bytes there are"),
            (3, 19, &format!("IPv4 total length 19 {length}")),
            (3, 25, &format!("IPv4 total length 25 {length}")),
            (6, 0x20, "IPv4 packet is a fragment"),
            (7, 0x01, "IPv4 packet is a fragment"),
        ] {
            let mut packet = whole.clone();
            packet[at] = byte;
            assert_eq!(refusal(Ipv4Header::parse(&with_right_checksum(packet, HEADER_BYTES))), expected);
        }
    }

    #[test]
    fn the_longest_packet_is_parsed_back() {
        let header = Ipv4Header::for_tcp(Ipv4Addr::LOCALHOST, Ipv4Addr::BROADCAST);
        let payload = vec![0xff; MAX_PACKET_BYTES - HEADER_BYTES];
        let packet = header.encode(&payload);
        assert_eq!(Ipv4Header::parse(&packet), Ok((header, payload.as_slice())));
    }

    #[test]
    #[should_panic(expected = "at most 65535 bytes, not 65536")]
    fn a_packet_beyond_the_length_field_is_not_cut_in_silence() {
        let header = Ipv4Header::for_tcp(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST);
        let _ = header.encode(&vec![0; 65_516]);
    }

    #[test]
    #[should_panic(expected = "only the last part under an Internet checksum may be odd")]
    fn an_odd_part_in_the_middle_is_not_summed_out_of_step() {
        let _ = internet_checksum(&[&[1, 2, 3], &[4]]);
    }
}
