//! A reader of captures that shares no code with the writer. The reader follows the pcapng draft and computes checksums
//! bit by bit.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) interface: u32,
    pub(super) time_ns: u64,
    pub(super) flags: u32,
    pub(super) comment: Option<String>,
    /// The packet's bytes, without the four bytes that precede a packet of link type NULL.
    pub(super) bytes: Vec<u8>,
}

/// Options in file order, as pairs of code and value.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Options(pub(super) Vec<(u16, Vec<u8>)>);

#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) section: Options,
    /// Link type and options of each interface.
    pub(super) interfaces: Vec<(u16, Options)>,
    pub(super) packets: Vec<Packet>,
}

pub(super) fn read(mut bytes: &[u8]) -> File {
    let mut file = File::default();
    let mut first = true;
    while !bytes.is_empty() {
        let length = little(bytes, 4) as usize;
        assert_eq!(length % 4, 0, "the length of a block is a multiple of four bytes");
        assert_eq!(little(bytes, length - 4) as usize, length, "a block states its length at both ends");
        let body = &bytes[8..length - 4];
        match little(bytes, 0) {
            0x0a0d_0d0a => {
                assert!(first, "one section");
                assert_eq!(body[..8], [0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0], "little-endian, version 1.0");
                assert_eq!(body[8..16], [0xff; 8], "the section length is marked as unknown");
                file.section = options(&body[16..]);
            }
            1 => {
                assert!(file.packets.is_empty(), "interfaces precede packets");
                assert_eq!(body[2..8], [0; 6], "the reserved bytes are zero and packets have no length limit");
                file.interfaces.push((u16::from_le_bytes([body[0], body[1]]), options(&body[8..])));
            }
            6 => {
                let captured = little(body, 12) as usize;
                assert_eq!(little(body, 16) as usize, captured, "packets are complete");
                let end = 20 + captured;
                let padded = end.next_multiple_of(4);
                assert!(body[end..padded].iter().all(|&byte| byte == 0), "padding bytes are zero");
                let options = options(&body[padded..]);
                let link_type = file.interfaces[little(body, 0) as usize].0;
                let start = if link_type == 0 { 24 } else { 20 };
                assert!(link_type != 0 || body[20..24] == [2, 0, 0, 0], "a packet of link type NULL is marked as IPv4");
                let of = |code| options.0.iter().find(|option| option.0 == code).map(|option| option.1.clone());
                file.packets.push(Packet {
                    interface: little(body, 0),
                    time_ns: u64::from(little(body, 4)) << 32 | u64::from(little(body, 8)),
                    flags: little(&of(2).expect("every packet states its direction"), 0),
                    comment: of(1).map(|text| String::from_utf8(text).expect("a comment is UTF-8")),
                    bytes: body[start..end].to_vec(),
                });
            }
            other => panic!("block of kind {other}"),
        }
        first = false;
        bytes = &bytes[length..];
    }
    file
}

fn options(mut bytes: &[u8]) -> Options {
    let mut options = Vec::new();
    loop {
        let code = u16::from_le_bytes([bytes[0], bytes[1]]);
        let length = usize::from(u16::from_le_bytes([bytes[2], bytes[3]]));
        if code == 0 {
            assert_eq!((length, bytes.len()), (0, 4), "the last option of a list is the empty end-of-options");
            return Options(options);
        }
        options.push((code, bytes[4..4 + length].to_vec()));
        bytes = &bytes[4 + length.next_multiple_of(4)..];
    }
}

fn little(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub(super) fn big16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub(super) fn big32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Checks bytes that include their Internet checksum: the sum of the bytes is all ones (RFC 1071).
pub(super) fn sums_up(parts: &[&[u8]]) -> bool {
    let mut sum = 0_u64;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
        }
    }
    while sum >> 16 > 0 {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum == 0xffff
}

/// Returns the transport header and payload of an IPv4 packet after checking its checksums.
pub(super) fn transport(packet: &[u8]) -> &[u8] {
    assert_eq!(packet[0], 0x45, "IPv4, no options");
    assert!(sums_up(&[&packet[..20]]), "IPv4 header checksum");
    let total = usize::from(big16(packet, 2));
    assert_eq!(big16(packet, 6), 0x4000, "don't fragment");
    assert_eq!(packet[8], 64, "time to live");
    let segment = &packet[20..total];
    let length = u16::try_from(segment.len()).expect("the length of a segment is below 65,536").to_be_bytes();
    assert!(sums_up(&[&packet[12..20], &[0, packet[9]], &length, segment]), "TCP or UDP checksum");
    segment
}

/// Returns the remainder of the bytes after long division by a polynomial, which has `bits` bits without its leading
/// bit. The remainder is zero if the bytes end with the correct check bits.
pub(super) fn remainder(bytes: &[u8], preset: u64, bits: u32, generator: u64) -> u64 {
    let mut register = preset;
    for byte in bytes {
        for bit in (0..8).rev() {
            let top = register >> (bits - 1) & 1 ^ u64::from(byte >> bit & 1);
            register = register << 1 & ((1 << bits) - 1);
            if top == 1 {
                register ^= generator;
            }
        }
    }
    register
}

/// Checks the header of a cell against its HEC (ITU-T I.432.1).
pub(crate) fn hec_is_right(cell: &[u8]) -> bool {
    remainder(&cell[..4], 0, 8, 0x07) ^ 0x55 == u64::from(cell[4])
}

/// Checks an AAL5 frame against its CRC-32 (ITU-T I.363.5).
pub(crate) fn crc32_is_right(frame: &[u8]) -> bool {
    let (covered, check) = frame.split_at(frame.len() - 4);
    remainder(covered, 0xffff_ffff, 32, 0x04c1_1db7) ^ 0xffff_ffff == u64::from(big32(check, 0))
}

/// Checks the payload of an RM cell against the CRC-10 in its last ten bits (ITU-T I.610).
pub(crate) fn crc10_is_right(payload: &[u8]) -> bool {
    remainder(payload, 0, 10, 0x233) == 0
}

/// Checks the trailer of an AAL5 frame and returns the frame's payload.
pub(super) fn sdu(frame: &[u8]) -> &[u8] {
    assert_eq!(frame.len() % 48, 0, "whole cells");
    assert!(crc32_is_right(frame), "CRC-32");
    let trailer = frame.len() - 8;
    let length = usize::from(big16(frame, trailer + 2));
    assert!(trailer - length < 48, "the frame has no more padding than needed");
    assert_eq!(frame[trailer..trailer + 2], [0, 0], "CPCS-UU and CPI");
    &frame[..length]
}
