//! The TCP header with its options, to and from bytes, with the checksum over the pseudo header.
//!
//! Source: RFC 9293 §3.1 (header and pseudo header) and §3.2 (end of list, no-operation, maximum
//! segment size), RFC 7323 §2.2 (window scale) and §3.2 (timestamps), RFC 2018 §2 and §3 (selective
//! acknowledgement), RFC 3168 §6.1 (ECE and CWR).
//!
//! Departures: options of other kinds are skipped by their length and not kept, so a segment that
//! has some is not encoded back to the same bytes. The four reserved bits are sent as 0 and not
//! looked at. A window scale above 14 is handed on as it came; RFC 7323 §2.3 has the user of the
//! value bound it.

use std::error::Error;
use std::fmt;
use std::net::Ipv4Addr;
use std::ops::BitOr;

use super::ipv4::{PROTOCOL_TCP, internet_checksum};

/// A TCP header (RFC 9293 §3.1).
///
/// Data offset and checksum are no fields: they follow from the rest, so [`TcpHeader::encode`]
/// computes and [`TcpHeader::parse`] checks them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TcpHeader {
    /// Source port (RFC 9293 §3.1).
    pub src_port: u16,
    /// Destination port (RFC 9293 §3.1).
    pub dst_port: u16,
    /// Sequence number of the first payload byte, or of the SYN (RFC 9293 §3.1).
    pub sequence: u32,
    /// Next sequence number the sender of this segment awaits, if ACK is set (RFC 9293 §3.1).
    pub acknowledgement: u32,
    /// The eight control bits (RFC 9293 §3.1).
    pub flags: TcpFlags,
    /// Receive window, in bytes before any window scale (RFC 9293 §3.1, RFC 7323 §2.2).
    pub window: u16,
    /// Urgent pointer, bytes past `sequence`, if URG is set (RFC 9293 §3.1).
    pub urgent: u16,
    /// The options in the order of sending, no-operations among them, without the end-of-list
    /// padding (RFC 9293 §3.1); together at most [`MAX_OPTIONS_BYTES`] bytes.
    pub options: Vec<TcpOption>,
}

impl TcpHeader {
    /// Bytes of the header with its options and padding, 20 to 60 (RFC 9293 §3.1).
    pub fn bytes(&self) -> usize {
        HEADER_BYTES + options_bytes(&self.options)
    }

    /// The segment of this header and `payload`, its checksum taken for the way from `src` to `dst`
    /// (RFC 9293 §3.1). Options are padded with end-of-list bytes to whole words.
    ///
    /// # Panics
    /// If the options exceed [`MAX_OPTIONS_BYTES`], if a SACK option has no block or more than
    /// [`MAX_SACK_BLOCKS`], or if the segment exceeds 65535 bytes, more than the length in the
    /// pseudo header can say.
    pub fn encode(&self, payload: &[u8], src: Ipv4Addr, dst: Ipv4Addr) -> Vec<u8> {
        let options_bytes = options_bytes(&self.options);
        assert!(
            options_bytes <= MAX_OPTIONS_BYTES,
            "TCP options have room for {MAX_OPTIONS_BYTES} bytes, not {options_bytes}"
        );
        let header_bytes = HEADER_BYTES + options_bytes;
        let total = header_bytes + payload.len();
        let length =
            u16::try_from(total).unwrap_or_else(|_| panic!("a TCP segment has at most 65535 bytes, not {total}"));
        let words = u8::try_from(header_bytes / 4).unwrap_or(u8::MAX);
        let mut segment = Vec::with_capacity(total);
        segment.extend_from_slice(&self.src_port.to_be_bytes());
        segment.extend_from_slice(&self.dst_port.to_be_bytes());
        segment.extend_from_slice(&self.sequence.to_be_bytes());
        segment.extend_from_slice(&self.acknowledgement.to_be_bytes());
        segment.extend_from_slice(&[words << 4, self.flags.bits()]);
        segment.extend_from_slice(&self.window.to_be_bytes());
        segment.extend_from_slice(&[0, 0]);
        segment.extend_from_slice(&self.urgent.to_be_bytes());
        for option in &self.options {
            option.append_to(&mut segment);
        }
        segment.resize(header_bytes, KIND_END);
        segment.extend_from_slice(payload);
        let checksum = internet_checksum(&[&pseudo_header(src, dst, length), &segment]);
        segment[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&checksum.to_be_bytes());
        segment
    }

    /// The header and payload of a segment that went from `src` to `dst` (RFC 9293 §3.1).
    ///
    /// # Errors
    /// See [`TcpHeaderError`]. The checksum is looked at before anything it covers, so a damaged
    /// segment is named damaged whatever its fields have come to say.
    pub fn parse(segment: &[u8], src: Ipv4Addr, dst: Ipv4Addr) -> Result<(Self, &[u8]), TcpHeaderError> {
        let bytes = segment.len();
        let Some(fixed) = segment.first_chunk::<HEADER_BYTES>() else {
            return Err(TcpHeaderError::TooShort { bytes });
        };
        let length = u16::try_from(bytes).map_err(|_| TcpHeaderError::TooLong { bytes })?;
        // A sum over the segment with the right checksum in it comes out as zero (RFC 1071 §1).
        if internet_checksum(&[&pseudo_header(src, dst, length), segment]) != 0 {
            return Err(TcpHeaderError::ChecksumMismatch);
        }
        let words = fixed[12] >> 4;
        let header_bytes = 4 * usize::from(words);
        if header_bytes < HEADER_BYTES || header_bytes > bytes {
            return Err(TcpHeaderError::BadDataOffset { words, bytes });
        }
        let header = Self {
            src_port: u16::from_be_bytes([fixed[0], fixed[1]]),
            dst_port: u16::from_be_bytes([fixed[2], fixed[3]]),
            sequence: u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]),
            acknowledgement: u32::from_be_bytes([fixed[8], fixed[9], fixed[10], fixed[11]]),
            flags: TcpFlags::from_bits(fixed[13]),
            window: u16::from_be_bytes([fixed[14], fixed[15]]),
            urgent: u16::from_be_bytes([fixed[18], fixed[19]]),
            options: parse_options(&segment[HEADER_BYTES..header_bytes])?,
        };
        Ok((header, &segment[header_bytes..]))
    }
}

/// The eight control bits of a TCP header (RFC 9293 §3.1), joined with `|`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TcpFlags(u8);

impl TcpFlags {
    /// No more data from the sender (RFC 9293 §3.1).
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers (RFC 9293 §3.1).
    pub const SYN: Self = Self(0x02);
    /// Reset the connection (RFC 9293 §3.1).
    pub const RST: Self = Self(0x04);
    /// Push what is held to the receiving user (RFC 9293 §3.1).
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement field counts (RFC 9293 §3.1).
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer counts (RFC 9293 §3.1).
    pub const URG: Self = Self(0x20);
    /// Congestion experienced, the receiver's echo (RFC 3168 §6.1).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168 §6.1).
    pub const CWR: Self = Self(0x80);

    /// The flags of the fourteenth header byte, CWR its high bit (RFC 9293 §3.1).
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// The fourteenth header byte, CWR its high bit (RFC 9293 §3.1).
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether all of `flags` are set.
    pub const fn contains(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }
}

impl BitOr for TcpFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// One TCP option (RFC 9293 §3.2 and the sources of each).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TcpOption {
    /// Kind 1, one byte that moves the next option (RFC 9293 §3.2).
    NoOperation,
    /// Kind 2, the largest segment the sender of the option takes, in payload bytes
    /// (RFC 9293 §3.2).
    MaximumSegmentSize(u16),
    /// Kind 3, the shift in bits that the sender of the option applies to its windows
    /// (RFC 7323 §2.2).
    WindowScale(u8),
    /// Kind 4, selective acknowledgements may be sent (RFC 2018 §2).
    SackPermitted,
    /// Kind 5, blocks received beyond the acknowledgement, the newest first; 1 to
    /// [`MAX_SACK_BLOCKS`], and 3 at most beside timestamps (RFC 2018 §3).
    Sack(Vec<SackBlock>),
    /// Kind 8 (RFC 7323 §3.2).
    Timestamps {
        /// `TSval`, the sender's clock, in ticks of its own choice.
        value: u32,
        /// `TSecr`, the timestamp echoed, in the other side's ticks.
        echo_reply: u32,
    },
}

impl TcpOption {
    /// Bytes of the option by itself, without any padding (RFC 9293 §3.2 and the sources of each).
    pub fn bytes(&self) -> usize {
        match self {
            Self::NoOperation => 1,
            Self::MaximumSegmentSize(_) => 4,
            Self::WindowScale(_) => 3,
            Self::SackPermitted => 2,
            Self::Sack(blocks) => 2 + SACK_BLOCK_BYTES * blocks.len(),
            Self::Timestamps { .. } => 10,
        }
    }

    fn append_to(&self, segment: &mut Vec<u8>) {
        if let Self::Sack(blocks) = self {
            assert!(
                (1..=MAX_SACK_BLOCKS).contains(&blocks.len()),
                "a SACK option has 1 to {MAX_SACK_BLOCKS} blocks, not {}",
                blocks.len()
            );
        }
        let length = u8::try_from(self.bytes()).unwrap_or(u8::MAX);
        match self {
            Self::NoOperation => segment.push(KIND_NO_OPERATION),
            Self::MaximumSegmentSize(size) => {
                segment.extend_from_slice(&[KIND_MAXIMUM_SEGMENT_SIZE, length]);
                segment.extend_from_slice(&size.to_be_bytes());
            }
            Self::WindowScale(shift) => {
                segment.extend_from_slice(&[KIND_WINDOW_SCALE, length, *shift]);
            }
            Self::SackPermitted => segment.extend_from_slice(&[KIND_SACK_PERMITTED, length]),
            Self::Sack(blocks) => {
                segment.extend_from_slice(&[KIND_SACK, length]);
                for block in blocks {
                    segment.extend_from_slice(&block.left.to_be_bytes());
                    segment.extend_from_slice(&block.right.to_be_bytes());
                }
            }
            Self::Timestamps { value, echo_reply } => {
                segment.extend_from_slice(&[KIND_TIMESTAMPS, length]);
                segment.extend_from_slice(&value.to_be_bytes());
                segment.extend_from_slice(&echo_reply.to_be_bytes());
            }
        }
    }
}

/// A run of bytes that arrived beyond the acknowledgement (RFC 2018 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SackBlock {
    /// Sequence number of the first byte of the block.
    pub left: u32,
    /// Sequence number just past the last byte of the block.
    pub right: u32,
}

impl SackBlock {
    const fn from_edges([left, right]: [[u8; 4]; 2]) -> Self {
        Self { left: u32::from_be_bytes(left), right: u32::from_be_bytes(right) }
    }
}

/// Bytes that `options` take in a header, padded to whole words of 4 (RFC 9293 §3.1).
pub fn options_bytes(options: &[TcpOption]) -> usize {
    options.iter().map(TcpOption::bytes).sum::<usize>().next_multiple_of(4)
}

/// `options` with no-operations in front of each, so that each ends on a whole word: the layout
/// RFC 7323 Appendix A recommends, in which timestamps take 12 bytes and n SACK blocks 4 + 8n.
pub fn word_aligned(options: &[TcpOption]) -> Vec<TcpOption> {
    let mut aligned = Vec::new();
    let mut used = 0_usize;
    for option in options {
        let end = used + option.bytes();
        let padding = end.next_multiple_of(4) - end;
        aligned.extend(std::iter::repeat_n(TcpOption::NoOperation, padding));
        aligned.push(option.clone());
        used = end + padding;
    }
    aligned
}

/// Why bytes are no TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpHeaderError {
    /// There are fewer than [`HEADER_BYTES`] bytes.
    TooShort {
        /// How many there are.
        bytes: usize,
    },
    /// There are more than the 65535 bytes that the length in the pseudo header can say.
    TooLong {
        /// How many there are.
        bytes: usize,
    },
    /// The segment was damaged or is not for these addresses: it does not match its checksum.
    ChecksumMismatch,
    /// The data offset says less than 5 words or more than there are bytes.
    BadDataOffset {
        /// The data offset field, in words of 4 bytes.
        words: u8,
        /// The bytes there are.
        bytes: usize,
    },
    /// The options end before an option's length byte.
    OptionWithoutLength {
        /// The option's kind.
        kind: u8,
    },
    /// An option's length is less than 2, more than the options have left, or not one that its kind
    /// can have.
    BadOptionLength {
        /// The option's kind.
        kind: u8,
        /// The length byte.
        length: u8,
    },
}

impl fmt::Display for TcpHeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort { bytes } => write!(f, "a TCP header has {HEADER_BYTES} bytes, there are only {bytes}"),
            Self::TooLong { bytes } => {
                write!(f, "a TCP segment has at most 65535 bytes, not {bytes}")
            }
            Self::ChecksumMismatch => write!(f, "TCP segment damaged or misdirected: it does not match its checksum"),
            Self::BadDataOffset { words, bytes } => {
                write!(f, "TCP header of {words} words is less than 5 or more than the {bytes} bytes there are")
            }
            Self::OptionWithoutLength { kind } => {
                write!(f, "TCP options end inside an option of kind {kind}")
            }
            Self::BadOptionLength { kind, length } => {
                write!(f, "TCP option of kind {kind} cannot have length {length} here")
            }
        }
    }
}

impl Error for TcpHeaderError {}

/// Bytes of a TCP header without options (RFC 9293 §3.1).
pub const HEADER_BYTES: usize = 20;

/// The most bytes of options, padding included: what the 4-bit data offset leaves beside the fixed
/// header (RFC 9293 §3.1).
pub const MAX_OPTIONS_BYTES: usize = 40;

/// The most blocks of a SACK option, as many as [`MAX_OPTIONS_BYTES`] hold (RFC 2018 §3).
pub const MAX_SACK_BLOCKS: usize = 4;

fn pseudo_header(src: Ipv4Addr, dst: Ipv4Addr, length: u16) -> [u8; 12] {
    let mut header = [0; 12];
    header[..4].copy_from_slice(&src.octets());
    header[4..8].copy_from_slice(&dst.octets());
    header[9] = PROTOCOL_TCP;
    header[10..].copy_from_slice(&length.to_be_bytes());
    header
}

fn parse_options(bytes: &[u8]) -> Result<Vec<TcpOption>, TcpHeaderError> {
    let mut options = Vec::new();
    let mut rest = bytes;
    loop {
        match *rest {
            [] | [KIND_END, ..] => return Ok(options),
            [KIND_NO_OPERATION, ..] => {
                options.push(TcpOption::NoOperation);
                rest = &rest[1..];
            }
            [kind] => return Err(TcpHeaderError::OptionWithoutLength { kind }),
            [kind, length, ..] => {
                let body = rest.get(2..usize::from(length)).ok_or(TcpHeaderError::BadOptionLength { kind, length })?;
                options.extend(parse_option(kind, length, body)?);
                rest = &rest[usize::from(length)..];
            }
        }
    }
}

/// `None` if the kind is unknown.
fn parse_option(kind: u8, length: u8, body: &[u8]) -> Result<Option<TcpOption>, TcpHeaderError> {
    let (words, rest) = body.as_chunks::<4>();
    let option = match (kind, words, rest) {
        (KIND_MAXIMUM_SEGMENT_SIZE, [], &[high, low]) => TcpOption::MaximumSegmentSize(u16::from_be_bytes([high, low])),
        (KIND_WINDOW_SCALE, [], &[shift]) => TcpOption::WindowScale(shift),
        (KIND_SACK_PERMITTED, [], []) => TcpOption::SackPermitted,
        (KIND_SACK, [_, ..], []) if words.len().is_multiple_of(2) => {
            let (blocks, _) = words.as_chunks::<2>();
            TcpOption::Sack(blocks.iter().copied().map(SackBlock::from_edges).collect())
        }
        (KIND_TIMESTAMPS, &[value, echo_reply], []) => {
            TcpOption::Timestamps { value: u32::from_be_bytes(value), echo_reply: u32::from_be_bytes(echo_reply) }
        }
        (KIND_MAXIMUM_SEGMENT_SIZE | KIND_WINDOW_SCALE | KIND_SACK_PERMITTED | KIND_SACK | KIND_TIMESTAMPS, _, _) => {
            return Err(TcpHeaderError::BadOptionLength { kind, length });
        }
        _ => return Ok(None),
    };
    Ok(Some(option))
}

const CHECKSUM_AT: usize = 16;
const SACK_BLOCK_BYTES: usize = 8;

const KIND_END: u8 = 0;
const KIND_NO_OPERATION: u8 = 1;
const KIND_MAXIMUM_SEGMENT_SIZE: u8 = 2;
const KIND_WINDOW_SCALE: u8 = 3;
const KIND_SACK_PERMITTED: u8 = 4;
const KIND_SACK: u8 = 5;
const KIND_TIMESTAMPS: u8 = 8;

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const SRC: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const DST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn any_option() -> impl Strategy<Value = TcpOption> {
        let block = any::<(u32, u32)>().prop_map(|(left, right)| SackBlock { left, right });
        prop_oneof![
            Just(TcpOption::NoOperation),
            any::<u16>().prop_map(TcpOption::MaximumSegmentSize),
            any::<u8>().prop_map(TcpOption::WindowScale),
            Just(TcpOption::SackPermitted),
            vec(block, 1..=MAX_SACK_BLOCKS).prop_map(TcpOption::Sack),
            any::<(u32, u32)>().prop_map(|(value, echo_reply)| TcpOption::Timestamps { value, echo_reply }),
        ]
    }

    /// Options that fit: those of a longer list that still have room when their turn comes.
    pub(in super::super) fn any_options() -> impl Strategy<Value = Vec<TcpOption>> {
        vec(any_option(), 0..12).prop_map(|wanted| {
            let mut room = MAX_OPTIONS_BYTES;
            wanted
                .into_iter()
                .filter(|option| {
                    let fits = option.bytes() <= room;
                    room -= if fits { option.bytes() } else { 0 };
                    fits
                })
                .collect()
        })
    }

    pub(in super::super) fn any_header() -> impl Strategy<Value = TcpHeader> {
        (any::<(u16, u16)>(), any::<(u32, u32)>(), any::<u8>(), any::<(u16, u16)>(), any_options()).prop_map(
            |((src_port, dst_port), (sequence, acknowledgement), flags, (window, urgent), options)| TcpHeader {
                src_port,
                dst_port,
                sequence,
                acknowledgement,
                flags: TcpFlags::from_bits(flags),
                window,
                urgent,
                options,
            },
        )
    }

    /// A segment with these bytes for options and a right checksum, to reach what lies behind it.
    fn segment_with_options(options: &[u8]) -> Vec<u8> {
        let mut segment = TcpHeader::default().encode(&[], SRC, DST);
        segment.extend_from_slice(options);
        segment[12] = u8::try_from(segment.len() / 4).expect("at most 15 words") << 4;
        with_right_checksum(segment)
    }

    fn with_right_checksum(mut segment: Vec<u8>) -> Vec<u8> {
        segment[CHECKSUM_AT..CHECKSUM_AT + 2].fill(0);
        let length = u16::try_from(segment.len()).expect("a short segment");
        let checksum = internet_checksum(&[&pseudo_header(SRC, DST, length), &segment]);
        segment[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&checksum.to_be_bytes());
        segment
    }

    fn parsed_options(options: &[u8]) -> Result<Vec<TcpOption>, TcpHeaderError> {
        let segment = segment_with_options(options);
        TcpHeader::parse(&segment, SRC, DST).map(|(header, _)| header.options)
    }

    proptest! {
        #![proptest_config(crate::rng::proptest_seeded(0x0074_6370))]

        #[test]
        fn any_segment_that_can_be_built_is_parsed_back(
            header in any_header(),
            payload in vec(any::<u8>(), 0..200),
        ) {
            let segment = header.encode(&payload, SRC, DST);
            prop_assert_eq!(segment.len(), header.bytes() + payload.len());
            prop_assert_eq!(
                TcpHeader::parse(&segment, SRC, DST),
                Ok((header, payload.as_slice()))
            );
        }

        #[test]
        fn any_single_flipped_bit_is_refused(
            header in any_header(),
            payload in vec(any::<u8>(), 0..60),
        ) {
            let whole = header.encode(&payload, SRC, DST);
            for bit in 0..8 * whole.len() {
                let mut segment = whole.clone();
                segment[bit / 8] ^= 0x80 >> (bit % 8);
                prop_assert_eq!(
                    TcpHeader::parse(&segment, SRC, DST),
                    Err(TcpHeaderError::ChecksumMismatch),
                    "bit {}", bit
                );
            }
        }

        #[test]
        fn any_single_flipped_bit_of_an_address_is_refused(
            header in any_header(),
            bit in 0..32_u32,
        ) {
            let segment = header.encode(&[1, 2, 3], SRC, DST);
            let elsewhere = Ipv4Addr::from(u32::from(DST) ^ 1 << bit);
            prop_assert_eq!(
                TcpHeader::parse(&segment, SRC, elsewhere),
                Err(TcpHeaderError::ChecksumMismatch)
            );
        }

        #[test]
        fn bytes_of_any_number_and_value_never_panic(bytes in vec(any::<u8>(), 0..100)) {
            let _ = TcpHeader::parse(&bytes, SRC, DST);
        }

        #[test]
        fn any_header_behind_a_right_checksum_never_panics(bytes in vec(any::<u8>(), 20..100)) {
            let segment = with_right_checksum(bytes);
            prop_assert_ne!(
                TcpHeader::parse(&segment, SRC, DST),
                Err(TcpHeaderError::ChecksumMismatch)
            );
        }

        #[test]
        fn options_of_any_content_never_panic(
            // Kinds and lengths are small numbers, so small bytes reach deeper than any bytes.
            words in vec(prop_oneof![any::<[u8; 4]>(), prop::array::uniform4(0_u8..12)], 0..=10),
        ) {
            if let Ok(options) = parsed_options(&words.concat()) {
                prop_assert!(options_bytes(&options) <= 4 * words.len());
            }
        }

        #[test]
        fn unknown_options_are_skipped_by_their_length(
            kind in 9_u8..,
            body in vec(any::<u8>(), 0..=30),
        ) {
            let length = u8::try_from(body.len() + 2).expect("a short body");
            let mut options = [&[1, kind, length], body.as_slice(), &[3, 3, 7]].concat();
            options.resize(options.len().next_multiple_of(4), 0);
            prop_assert_eq!(
                parsed_options(&options),
                Ok(vec![TcpOption::NoOperation, TcpOption::WindowScale(7)])
            );
        }

        #[test]
        fn aligned_options_each_end_on_a_whole_word(options in vec(any_option(), 0..8)) {
            let mut end = 0;
            let aligned = word_aligned(&options);
            for option in &aligned {
                end += option.bytes();
                prop_assert!(end % 4 == 0 || *option == TcpOption::NoOperation);
            }
            let kept = |options: Vec<TcpOption>| -> Vec<TcpOption> {
                options.into_iter().filter(|o| *o != TcpOption::NoOperation).collect()
            };
            prop_assert_eq!(kept(aligned), kept(options));
        }
    }

    #[test]
    fn every_field_stands_in_its_place() {
        let header = TcpHeader {
            src_port: 0x0102,
            dst_port: 0x0304,
            sequence: 0x0506_0708,
            acknowledgement: 0x090a_0b0c,
            flags: TcpFlags::SYN | TcpFlags::ACK,
            window: 0x0d0e,
            urgent: 0x0f10,
            options: vec![TcpOption::MaximumSegmentSize(9140), TcpOption::WindowScale(3)],
        };
        let segment = header.encode(&[0xee], SRC, DST);
        assert_eq!(segment[..16], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x70, 0x12, 13, 14]);
        assert_eq!(segment[18..], [15, 16, 2, 4, 0x23, 0xb4, 3, 3, 3, 0, 0xee]);
    }

    #[test]
    fn every_option_has_the_bytes_of_its_source() {
        let header = TcpHeader {
            options: word_aligned(&[
                TcpOption::SackPermitted,
                TcpOption::Timestamps { value: 0x0102_0304, echo_reply: 0x0506_0708 },
                TcpOption::Sack(vec![SackBlock { left: 0x1112_1314, right: 0x1516_1718 }]),
                TcpOption::WindowScale(7),
            ]),
            ..TcpHeader::default()
        };
        let segment = header.encode(&[], SRC, DST);
        let (words, _) = segment[HEADER_BYTES..].as_chunks::<4>();
        assert_eq!(
            words,
            [
                [1, 1, 4, 2],
                [1, 1, 8, 10],
                [1, 2, 3, 4],
                [5, 6, 7, 8],
                [1, 1, 5, 10],
                [0x11, 0x12, 0x13, 0x14],
                [0x15, 0x16, 0x17, 0x18],
                [1, 3, 3, 7],
            ]
        );
    }

    #[test]
    fn the_checksum_of_a_bare_segment_is_what_a_hand_reckons() {
        // Words other than zero: 0a00 0001 0a00 0002 0006 0014 (pseudo header) and 5010 (offset 5,
        // ACK), which sum to 642d.
        let header = TcpHeader { flags: TcpFlags::ACK, ..TcpHeader::default() };
        let segment = header.encode(&[], SRC, DST);
        assert_eq!(segment[16..18], (!0x642d_u16).to_be_bytes());
    }

    #[test]
    fn each_flag_has_its_bit() {
        let all = [
            TcpFlags::FIN,
            TcpFlags::SYN,
            TcpFlags::RST,
            TcpFlags::PSH,
            TcpFlags::ACK,
            TcpFlags::URG,
            TcpFlags::ECE,
            TcpFlags::CWR,
        ];
        assert_eq!(all.map(TcpFlags::bits), [1, 2, 4, 8, 16, 32, 64, 128]);
        let both = TcpFlags::SYN | TcpFlags::ACK;
        assert!(both.contains(TcpFlags::SYN) && both.contains(both));
        assert!(!both.contains(TcpFlags::SYN | TcpFlags::FIN));
    }

    #[test]
    fn timestamps_leave_room_for_three_sack_blocks_and_four_stand_alone() {
        let timestamps = TcpOption::Timestamps { value: 1, echo_reply: 2 };
        let block = SackBlock { left: 3, right: 4 };
        let both = word_aligned(&[timestamps.clone(), TcpOption::Sack(vec![block; 3])]);
        assert_eq!(options_bytes(&word_aligned(&[timestamps])), 12);
        assert_eq!(options_bytes(&both), MAX_OPTIONS_BYTES);
        assert_eq!(options_bytes(&[TcpOption::Sack(vec![block; 4])]), 36);
    }

    #[test]
    fn what_stands_behind_the_end_of_the_list_is_not_looked_at() {
        assert_eq!(parsed_options(&[1, 0, 2, 99]), Ok(vec![TcpOption::NoOperation]));
    }

    #[test]
    fn malformed_option_lengths_are_refused() {
        for (options, kind, length) in [
            ([8, 0, 0, 0], 8, 0),
            ([8, 1, 0, 0], 8, 1),
            ([99, 1, 0, 0], 99, 1),
            ([99, 5, 0, 0], 99, 5),
            ([2, 3, 0, 0], 2, 3),
            ([2, 255, 0, 0], 2, 255),
            ([3, 4, 0, 0], 3, 4),
            ([4, 3, 0, 0], 4, 3),
            ([5, 2, 0, 0], 5, 2),
            ([5, 4, 0, 0], 5, 4),
            ([8, 4, 0, 0], 8, 4),
        ] {
            assert_eq!(parsed_options(&options), Err(TcpHeaderError::BadOptionLength { kind, length }), "{options:?}");
        }
        for length in [6, 14] {
            let mut options = [0; 16];
            options[..2].copy_from_slice(&[5, length]);
            assert_eq!(parsed_options(&options), Err(TcpHeaderError::BadOptionLength { kind: 5, length }));
        }
        assert_eq!(parsed_options(&[1, 1, 1, 8]), Err(TcpHeaderError::OptionWithoutLength { kind: 8 }));
    }

    #[test]
    fn a_data_offset_that_cannot_be_is_refused() {
        for words in [0, 4, 6, 15] {
            let mut segment = TcpHeader::default().encode(&[0; 3], SRC, DST);
            segment[12] = words << 4;
            assert_eq!(
                TcpHeader::parse(&with_right_checksum(segment), SRC, DST),
                Err(TcpHeaderError::BadDataOffset { words, bytes: 23 })
            );
        }
    }

    #[test]
    fn a_segment_too_short_or_too_long_is_refused() {
        assert_eq!(TcpHeader::parse(&[0; 19], SRC, DST), Err(TcpHeaderError::TooShort { bytes: 19 }));
        assert_eq!(TcpHeader::parse(&vec![0; 65_536], SRC, DST), Err(TcpHeaderError::TooLong { bytes: 65_536 }));
    }

    #[test]
    #[should_panic(expected = "TCP options have room for 40 bytes, not 44")]
    fn options_that_do_not_fit_are_not_cut_in_silence() {
        let header = TcpHeader { options: vec![TcpOption::NoOperation; 41], ..TcpHeader::default() };
        let _ = header.encode(&[], SRC, DST);
    }

    #[test]
    #[should_panic(expected = "a SACK option has 1 to 4 blocks, not 0")]
    fn a_sack_without_blocks_is_not_sent() {
        let header = TcpHeader { options: vec![TcpOption::Sack(vec![])], ..TcpHeader::default() };
        let _ = header.encode(&[], SRC, DST);
    }

    #[test]
    #[should_panic(expected = "a TCP segment has at most 65535 bytes, not 65536")]
    fn a_segment_beyond_the_length_field_is_not_cut_in_silence() {
        let _ = TcpHeader::default().encode(&vec![0; 65_516], SRC, DST);
    }

    #[test]
    fn the_errors_say_what_is_wrong() {
        assert_eq!(
            TcpHeaderError::BadOptionLength { kind: 8, length: 1 }.to_string(),
            "TCP option of kind 8 cannot have length 1 here"
        );
        assert_eq!(
            TcpHeaderError::BadDataOffset { words: 4, bytes: 20 }.to_string(),
            "TCP header of 4 words is less than 5 or more than the 20 bytes there are"
        );
    }
}
