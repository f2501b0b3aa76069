//! The TCP header with its options: encoding and parsing, with the checksum over the pseudo header.
//!
//! Source: RFC 9293 §3.1 (header and pseudo header) and §3.2 (end of list, no-operation, maximum
//! segment size), RFC 7323 §2.2 (window scale) and §3.2 (timestamps), RFC 2018 §2 and §3 (selective
//! acknowledgement), RFC 3168 §6.1 (ECE and CWR).
//!
//! Departures: options of other kinds are skipped by their length and dropped, so a segment with such options does not
//! encode back to the same bytes. The four reserved bits are sent as 0 and ignored when parsing. A window scale above
//! 14 is passed through; RFC 7323 §2.3 leaves the bound to the user of the value.

use std::net::Ipv4Addr;
use std::ops::BitOr;

use super::ParseError;
use super::ipv4::{PROTOCOL_TCP, internet_checksum, pseudo_header};

/// A TCP header (RFC 9293 §3.1).
///
/// It omits data offset and checksum, which [`TcpHeader::encode`] computes and [`TcpHeader::parse`] checks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TcpHeader {
    /// Source port (RFC 9293 §3.1).
    pub src_port: u16,
    /// Destination port (RFC 9293 §3.1).
    pub dst_port: u16,
    /// Sequence number of the first payload byte, or of the SYN (RFC 9293 §3.1).
    pub sequence: u32,
    /// Next sequence number that the sender of this segment expects, if ACK is set (RFC 9293 §3.1).
    pub acknowledgement: u32,
    /// The eight control bits (RFC 9293 §3.1).
    pub flags: TcpFlags,
    /// Receive window, in bytes before any window scale (RFC 9293 §3.1, RFC 7323 §2.2).
    pub window: u16,
    /// Urgent pointer, bytes past `sequence`, if URG is set (RFC 9293 §3.1).
    pub urgent: u16,
    /// The options in the order of sending, including no-operations, without the end-of-list padding (RFC 9293 §3.1);
    /// together at most [`MAX_OPTIONS_BYTES`] bytes.
    pub options: Vec<TcpOption>,
}

impl TcpHeader {
    /// Returns the bytes of the header with its options and padding, 20 to 60 (RFC 9293 §3.1).
    pub fn bytes(&self) -> usize {
        HEADER_BYTES + options_bytes(&self.options)
    }

    /// Encodes a segment of this header and `payload`, with the checksum for `src` and `dst` (RFC 9293 §3.1). Options
    /// are padded with end-of-list bytes to whole words.
    ///
    /// # Panics
    /// If the options exceed [`MAX_OPTIONS_BYTES`], if a SACK option has no block or more than [`MAX_SACK_BLOCKS`], or
    /// if the segment exceeds 65535 bytes, the maximum length in the pseudo header.
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
        let checksum = internet_checksum(&[&pseudo_header(src, dst, PROTOCOL_TCP, length), &segment]);
        segment[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&checksum.to_be_bytes());
        segment
    }

    /// Parses the header and payload of a segment sent from `src` to `dst` (RFC 9293 §3.1).
    ///
    /// # Errors
    /// If it is damaged, cut off, or not for these addresses. The checksum is checked before anything it covers, so that a damaged segment is reported
    /// as damaged whatever its fields contain.
    pub fn parse(segment: &[u8], src: Ipv4Addr, dst: Ipv4Addr) -> Result<(Self, &[u8]), ParseError> {
        let bytes = segment.len();
        let Some(fixed) = segment.first_chunk::<HEADER_BYTES>() else {
            return refuse!("a TCP header has {HEADER_BYTES} bytes, there are only {bytes}");
        };
        let Ok(length) = u16::try_from(bytes) else {
            return refuse!("a TCP segment has at most 65535 bytes, not {bytes}");
        };
        // The sum over a segment that includes its correct checksum is zero (RFC 1071 §1).
        if internet_checksum(&[&pseudo_header(src, dst, PROTOCOL_TCP, length), segment]) != 0 {
            return refuse!("TCP segment damaged or misdirected: it does not match its checksum");
        }
        let words = fixed[12] >> 4;
        let header_bytes = 4 * usize::from(words);
        if header_bytes < HEADER_BYTES || header_bytes > bytes {
            return refuse!("TCP header of {words} words is less than 5 or more than the {bytes} bytes there are");
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

/// The eight control bits of a TCP header (RFC 9293 §3.1), combined with `|`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TcpFlags(u8);

impl TcpFlags {
    /// No more data from the sender (RFC 9293 §3.1).
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers (RFC 9293 §3.1).
    pub const SYN: Self = Self(0x02);
    /// Reset the connection (RFC 9293 §3.1).
    pub const RST: Self = Self(0x04);
    /// Push buffered data to the receiving user (RFC 9293 §3.1).
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement field is valid (RFC 9293 §3.1).
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is valid (RFC 9293 §3.1).
    pub const URG: Self = Self(0x20);
    /// Congestion experienced, echoed by the receiver (RFC 3168 §6.1).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168 §6.1).
    pub const CWR: Self = Self(0x80);

    /// Creates flags from the fourteenth header byte, with CWR as its high bit (RFC 9293 §3.1).
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// Returns the fourteenth header byte, with CWR as its high bit (RFC 9293 §3.1).
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns whether all of `flags` are set.
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

/// A TCP option (RFC 9293 §3.2 and the source of each).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TcpOption {
    /// Kind 1, one byte of padding before the next option (RFC 9293 §3.2).
    NoOperation,
    /// Kind 2, the largest segment that the sender of the option accepts, in payload bytes (RFC 9293 §3.2).
    MaximumSegmentSize(u16),
    /// Kind 3, the shift in bits that the sender of the option applies to its windows
    /// (RFC 7323 §2.2).
    WindowScale(u8),
    /// Kind 4, selective acknowledgements may be sent (RFC 2018 §2).
    SackPermitted,
    /// Kind 5, blocks received beyond the acknowledgement, the newest first; 1 to [`MAX_SACK_BLOCKS`], and at most 3
    /// together with timestamps (RFC 2018 §3).
    Sack(Vec<SackBlock>),
    /// Kind 8 (RFC 7323 §3.2).
    Timestamps {
        /// `TSval`, the sender's clock, in ticks of its own choice.
        value: u32,
        /// `TSecr`, the echoed timestamp, in the other side's ticks.
        echo_reply: u32,
    },
}

impl TcpOption {
    /// Returns the bytes of the option alone, without padding (RFC 9293 §3.2 and the source of each).
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
    /// Sequence number just after the last byte of the block.
    pub right: u32,
}

impl SackBlock {
    const fn from_edges([left, right]: [[u8; 4]; 2]) -> Self {
        Self { left: u32::from_be_bytes(left), right: u32::from_be_bytes(right) }
    }
}

/// Returns the bytes of `options` in a header, padded to whole words of 4 (RFC 9293 §3.1).
pub fn options_bytes(options: &[TcpOption]) -> usize {
    options.iter().map(TcpOption::bytes).sum::<usize>().next_multiple_of(4)
}

/// Inserts no-operations before each of `options` so that each ends on a whole word. RFC 7323 Appendix A recommends
/// this layout, in which timestamps take 12 bytes and n SACK blocks 4 + 8n.
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

/// Bytes of a TCP header without options (RFC 9293 §3.1).
pub const HEADER_BYTES: usize = 20;

/// Maximum number of option bytes, including padding: the 4-bit data offset also covers the fixed header (RFC 9293
/// §3.1).
pub const MAX_OPTIONS_BYTES: usize = 40;

/// Maximum number of blocks in a SACK option, limited by [`MAX_OPTIONS_BYTES`] (RFC 2018 §3).
pub const MAX_SACK_BLOCKS: usize = 4;

fn parse_options(bytes: &[u8]) -> Result<Vec<TcpOption>, ParseError> {
    let mut options = Vec::new();
    let mut rest = bytes;
    loop {
        match *rest {
            [] | [KIND_END, ..] => return Ok(options),
            [KIND_NO_OPERATION, ..] => {
                options.push(TcpOption::NoOperation);
                rest = &rest[1..];
            }
            [kind] => return refuse!("TCP options end inside an option of kind {kind}"),
            [kind, length, ..] => {
                let body = rest.get(2..usize::from(length)).ok_or_else(|| bad_length(kind, length))?;
                options.extend(parse_option(kind, length, body)?);
                rest = &rest[usize::from(length)..];
            }
        }
    }
}

/// Returns `None` if the kind is unknown.
fn parse_option(kind: u8, length: u8, body: &[u8]) -> Result<Option<TcpOption>, ParseError> {
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
            return Err(bad_length(kind, length));
        }
        _ => return Ok(None),
    };
    Ok(Some(option))
}

fn bad_length(kind: u8, length: u8) -> ParseError {
    ParseError(format!("TCP option of kind {kind} cannot have length {length} here"))
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
pub(super) mod tests;
