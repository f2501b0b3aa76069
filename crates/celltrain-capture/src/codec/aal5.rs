//! AAL5 frames: encodes and parses payload, pad and trailer, and converts frames to and from cell payloads.
//!
//! Source: ITU-T I.363.5 (08/96), the CPCS-PDU of AAL type 5; RFC 2684 §4 and RFC 1483 §3 show the same format.
//!
//! Differences from the source: the option to deliver corrupted data is missing (a damaged frame is reported, but never
//! delivered). The streaming mode and the reassembly timer are missing too. The maximum payload is always 65535 bytes,
//! although a real connection may negotiate a smaller maximum. The abort frame of length 0 is parsed but never sent.

use crc::{CRC_32_BZIP2, Crc};

use super::ParseError;
use super::cell_header::PAYLOAD_BYTES;

/// Contents of one AAL5 frame (ITU-T I.363.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pdu {
    /// The frame's payload, 1 to [`MAX_SDU_BYTES`] bytes, without pad and trailer.
    pub payload: Vec<u8>,
    /// CPCS-UU, one byte from the sending user to the receiving user; unused in IP over ATM (RFC 2684 §4).
    pub uu: u8,
}

/// Encodes a frame: payload, zero pad, trailer. Its length is a multiple of 48 bytes, with the trailer at the end
/// (ITU-T I.363.5).
///
/// # Panics
/// If `payload` is empty or longer than [`MAX_SDU_BYTES`]. The 16-bit length field cannot express a greater length, and
/// the length 0 means an aborted frame.
pub fn encode(payload: &[u8], uu: u8) -> Vec<u8> {
    assert!(
        !payload.is_empty(),
        "an AAL5 frame carries at least one byte; length 0 would abort \
                                  it"
    );
    let length = u16::try_from(payload.len())
        .unwrap_or_else(|_| panic!("an AAL5 frame carries at most {MAX_SDU_BYTES} bytes, not {}", payload.len()));
    let frame_bytes = cells_for(payload.len()) * PAYLOAD_BYTES;
    let mut pdu = Vec::with_capacity(frame_bytes);
    pdu.extend_from_slice(payload);
    pdu.resize(frame_bytes - TRAILER_BYTES, 0);
    pdu.push(uu);
    pdu.push(CPI_ALIGNMENT_ONLY);
    pdu.extend_from_slice(&length.to_be_bytes());
    let check = crc32(&pdu);
    pdu.extend_from_slice(&check.to_be_bytes());
    pdu
}

/// Parses one whole frame into its payload and user byte (ITU-T I.363.5). The contents of the pad are ignored, because
/// the standard leaves the pad's coding open, but the CRC covers the pad.
///
/// # Errors
///
/// If the size or the CRC is wrong, the sender aborted the frame, or the length or the CPI is wrong. The checks are
/// made in this order, so a damaged frame is always reported as damaged, whatever its trailer contains.
pub fn parse(pdu: &[u8]) -> Result<Pdu, ParseError> {
    let not_whole = || {
        ParseError(format!(
            "an AAL5 frame consists of one or more cells of {PAYLOAD_BYTES} bytes, so it cannot have \
                               {} bytes",
            pdu.len()
        ))
    };
    if !pdu.len().is_multiple_of(PAYLOAD_BYTES) {
        return Err(not_whole());
    }
    let cells = pdu.len() / PAYLOAD_BYTES;
    if cells > MAX_FRAME_CELLS {
        return Err(too_long());
    }
    let (covered, carried) = pdu.split_last_chunk::<4>().ok_or_else(not_whole)?;
    let computed = crc32(covered);
    let carried = u32::from_be_bytes(*carried);
    if computed != carried {
        return refuse!("frame damaged: CRC-32 is {carried:#010x}, should be {computed:#010x}");
    }
    let (body, &[uu, cpi, length_high, length_low]) = covered.split_last_chunk::<4>().ok_or_else(not_whole)?;
    let length = u16::from_be_bytes([length_high, length_low]);
    if length == 0 {
        return refuse!("the sender has aborted the frame (length 0)");
    }
    let needed = cells_for(usize::from(length));
    if needed != cells {
        return refuse!("a frame of {cells} cells states a length of {length} bytes, which needs {needed} cells");
    }
    if cpi != CPI_ALIGNMENT_ONLY {
        return refuse!("the common part indicator is {cpi:#04x}, but only 0 is defined");
    }
    Ok(Pdu { payload: body[..usize::from(length)].to_vec(), uu })
}

/// Splits a frame into cell payloads in the order of sending. Each payload comes with a flag that is true for the
/// frame's last cell. The last cell is sent with the AUU bit set (ITU-T I.363.5, the SAR sublayer).
///
/// # Panics
/// If `pdu` is not a whole number of cells; [`encode`] never produces such a frame.
pub fn segment(pdu: &[u8]) -> impl ExactSizeIterator<Item = ([u8; PAYLOAD_BYTES], bool)> {
    let (payloads, rest) = pdu.as_chunks::<PAYLOAD_BYTES>();
    assert!(
        rest.is_empty(),
        "an AAL5 frame consists of whole cells of {PAYLOAD_BYTES} bytes, so it cannot have {} \
                              bytes",
        pdu.len()
    );
    let cells = payloads.len();
    payloads.iter().enumerate().map(move |(index, payload)| (*payload, index + 1 == cells))
}

/// Returns the number of cells of a frame with `payload_bytes` of payload: payload and the 8-byte trailer, rounded up
/// (ITU-T I.363.5).
pub const fn cells_for(payload_bytes: usize) -> usize {
    (payload_bytes + TRAILER_BYTES).div_ceil(PAYLOAD_BYTES)
}

/// Computes the CRC-32 of an AAL5 trailer over `bytes`: generator `0x04C11DB7`, most significant bit first, initial
/// register all ones, complemented result (ITU-T I.363.5).
pub fn crc32(bytes: &[u8]) -> u32 {
    // The CRC library calls CRC-32/AAL5 by the name CRC-32/BZIP2.
    static CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_BZIP2);
    CRC.checksum(bytes)
}

/// Reassembles the cells of one connection into frames (ITU-T I.363.5, the SAR sublayer).
///
/// Only the mark on the last cell ends a frame. If the last cell is lost, the cells of the next frame are appended to
/// the frame. The CRC or the length of the joined frame is wrong, so one report covers the loss of the two frames.
#[derive(Clone, Debug, Default)]
pub struct Reassembler {
    held: Vec<u8>,
    discarding: bool,
}

impl Reassembler {
    /// Creates a reassembler that expects the first cell of a frame.
    pub const fn new() -> Self {
        Self { held: Vec::new(), discarding: false }
    }

    /// Accepts the payload of the next cell. `last` is true if the cell is marked as the last of its frame (ITU-T
    /// I.363.5). Returns `None` within a frame. At the end of a frame, returns the frame's contents, or the reason for
    /// the frame's loss.
    ///
    /// Rejects a frame of more than [`MAX_FRAME_CELLS`] cells at the first excess cell and ignores the rest of the
    /// frame. Without this limit, a connection on which every last cell is lost would use unlimited memory.
    pub fn accept(&mut self, payload: &[u8; PAYLOAD_BYTES], last: bool) -> Option<Result<Pdu, ParseError>> {
        if self.discarding {
            self.discarding = !last;
            return None;
        }
        if self.held.len() == MAX_FRAME_CELLS * PAYLOAD_BYTES {
            self.held.clear();
            self.discarding = !last;
            return Some(Err(too_long()));
        }
        self.held.extend_from_slice(payload);
        if !last {
            return None;
        }
        let outcome = parse(&self.held);
        self.held.clear();
        Some(outcome)
    }
}

fn too_long() -> ParseError {
    ParseError(format!("the frame has more than {MAX_FRAME_CELLS} cells, which are enough for {MAX_SDU_BYTES} bytes"))
}

/// Maximum payload of a frame in bytes, from the 16-bit length field (ITU-T I.363.5).
pub const MAX_SDU_BYTES: usize = 65_535;

/// Bytes of the trailer: CPCS-UU 1, CPI 1, length 2, CRC 4 (ITU-T I.363.5).
pub const TRAILER_BYTES: usize = 8;

/// Cells of the longest frame, with a payload of [`MAX_SDU_BYTES`] (ITU-T I.363.5).
pub const MAX_FRAME_CELLS: usize = cells_for(MAX_SDU_BYTES);

/// The only defined value of the common part indicator, whose purpose is to fill the trailer up to 8 bytes.
const CPI_ALIGNMENT_ONLY: u8 = 0;

#[cfg(test)]
mod tests {
    use super::super::tests::refusal;
    use super::*;
    use crate::tests::reader::crc32_is_right;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn any_payload() -> impl Strategy<Value = Vec<u8>> {
        vec(any::<u8>(), 1..400)
    }

    /// Recomputes the CRC of a changed frame, so that the frame passes the check of its CRC.
    fn with_right_crc(mut pdu: Vec<u8>) -> Vec<u8> {
        let covered = pdu.len() - 4;
        let check = crc32(&pdu[..covered]);
        pdu[covered..].copy_from_slice(&check.to_be_bytes());
        pdu
    }

    fn accept_all(
        reassembler: &mut Reassembler,
        cells: impl IntoIterator<Item = ([u8; PAYLOAD_BYTES], bool)>,
    ) -> Vec<Result<Pdu, ParseError>> {
        cells.into_iter().filter_map(|(payload, last)| reassembler.accept(&payload, last)).collect()
    }

    proptest! {
        #![proptest_config(crate::tests::proptest_seeded(0x6161_6c35))]

        #[test]
        fn building_a_frame_and_parsing_it_returns_the_same_frame(payload in any_payload(), uu in any::<u8>()) {
            let pdu = encode(&payload, uu);
            prop_assert_eq!(pdu.len(), 48 * cells_for(payload.len()));
            prop_assert!(crc32_is_right(&pdu));
            prop_assert_eq!(parse(&pdu), Ok(Pdu { payload, uu }));
        }

        #[test]
        fn the_frame_parser_does_not_panic_on_arbitrary_bytes_with_a_correct_crc(
            cells in 1_usize..5,
            // Half of the trailers consist of small bytes, because random bytes rarely form a CPI of 0 and a plausible
            // length.
            trailer in prop_oneof![
                any::<[u8; 4]>(),
                (any::<u8>(), 0_u8..240).prop_map(|(uu, length)| [uu, 0, 0, length]),
            ],
        ) {
            let mut pdu = vec![0x5a; 48 * cells];
            pdu[48 * cells - 8..48 * cells - 4].copy_from_slice(&trailer);
            match parse(&with_right_crc(pdu)) {
                Ok(pdu) => prop_assert_eq!(cells_for(pdu.payload.len()), cells),
                Err(ParseError(problem)) => prop_assert!(!problem.contains("damaged"), "{problem}"),
            }
        }

        #[test]
        fn only_the_last_cell_of_a_frame_has_the_end_of_frame_mark(payload in any_payload()) {
            let pdu = encode(&payload, 0);
            let cells: Vec<_> = segment(&pdu).collect();
            prop_assert_eq!(cells.len(), cells_for(payload.len()));
            for (index, (bytes, last)) in cells.iter().enumerate() {
                prop_assert_eq!(&pdu[48 * index..48 * (index + 1)], bytes);
                prop_assert_eq!(*last, index + 1 == cells.len());
            }
        }

        #[test]
        fn consecutive_frames_are_reassembled_in_order(
            payloads in vec(any_payload(), 0..6),
        ) {
            let mut reassembler = Reassembler::new();
            let mut whole = Vec::new();
            for payload in &payloads {
                whole.extend(accept_all(&mut reassembler, segment(&encode(payload, 9))));
            }
            let sent: Vec<_> =
                payloads.into_iter().map(|payload| Ok(Pdu { payload, uu: 9 })).collect();
            prop_assert_eq!(whole, sent);
        }

        #[test]
        fn losing_the_last_cell_of_a_frame_destroys_that_frame_and_the_next_frame(
            first in vec(any::<u8>(), 41..400),
            second in any_payload(),
            third in any_payload(),
        ) {
            let mut reassembler = Reassembler::new();
            let first = encode(&first, 0);
            let beheaded = segment(&first).filter(|(_, last)| !last);
            prop_assert_eq!(accept_all(&mut reassembler, beheaded), vec![]);
            let both = accept_all(&mut reassembler, segment(&encode(&second, 0)));
            prop_assert_eq!(both.len(), 1);
            prop_assert!(both[0].is_err());
            let after = accept_all(&mut reassembler, segment(&encode(&third, 0)));
            prop_assert_eq!(after, vec![Ok(Pdu { payload: third, uu: 0 })]);
        }

        #[test]
        fn losing_a_cell_other_than_the_last_destroys_only_the_frame_that_contains_it(
            first in vec(any::<u8>(), 41..400),
            lost in any::<prop::sample::Index>(),
            second in any_payload(),
        ) {
            let mut reassembler = Reassembler::new();
            let mut cells: Vec<_> = segment(&encode(&first, 0)).collect();
            cells.remove(lost.index(cells.len() - 1));
            let damaged = accept_all(&mut reassembler, cells);
            prop_assert_eq!(damaged.len(), 1);
            prop_assert!(damaged[0].is_err());
            let after = accept_all(&mut reassembler, segment(&encode(&second, 0)));
            prop_assert_eq!(after, vec![Ok(Pdu { payload: second, uu: 0 })]);
        }

        #[test]
        fn the_crc_detects_that_two_different_cells_were_swapped(
            payload in vec(any::<u8>(), 41..400),
            indices in any::<[prop::sample::Index; 2]>(),
        ) {
            let whole = encode(&payload, 0);
            let (mut pdu, cells) = (whole.clone(), whole.len() / 48);
            let [first, second] = indices.map(|index| index.index(cells));
            for byte in 0..48 {
                pdu.swap(48 * first + byte, 48 * second + byte);
            }
            prop_assert_eq!(parse(&pdu).is_ok(), pdu == whole);
        }

        #[test]
        fn an_overlong_frame_is_reported_once_and_the_next_frame_is_reassembled(
            surplus in 0_usize..100,
            next in any_payload(),
        ) {
            let mut reassembler = Reassembler::new();
            for _ in 0..MAX_FRAME_CELLS {
                prop_assert_eq!(reassembler.accept(&[0x5a; 48], false), None);
            }
            prop_assert_eq!(reassembler.accept(&[0x5a; 48], surplus == 0), Some(Err(too_long())));
            for left in (0..surplus).rev() {
                prop_assert_eq!(reassembler.accept(&[0x5a; 48], left == 0), None);
            }
            let after = accept_all(&mut reassembler, segment(&encode(&next, 0)));
            prop_assert_eq!(after, vec![Ok(Pdu { payload: next, uu: 0 })]);
        }

        #[test]
        fn the_reassembler_does_not_panic_whatever_the_cells_contain(
            cells in vec((any::<[u8; 16]>(), any::<bool>()), 0..60),
        ) {
            let mut reassembler = Reassembler::new();
            for (fill, last) in cells {
                let mut payload = [0; 48];
                payload[32..].copy_from_slice(&fill);
                let answer = reassembler.accept(&payload, last);
                prop_assert_eq!(answer.is_some(), last);
            }
        }
    }

    #[test]
    fn the_crcs_of_the_40_byte_example_frames_equal_the_published_values() {
        let counting: Vec<u8> = (1..=40).collect();
        for (payload, known) in
            [(vec![0x00; 40], 0x864d_7f99_u32), (vec![0xff; 40], 0xc55e_457a), (counting, 0xbf67_1ed0)]
        {
            assert_eq!(encode(&payload, 0)[44..], known.to_be_bytes());
        }
    }

    #[test]
    fn the_padding_puts_the_trailer_at_the_end_of_the_last_cell() {
        let pdu = encode(&[0xee; 41], 7);
        assert_eq!(pdu.len(), 96);
        assert_eq!(pdu[..41], [0xee; 41]);
        assert_eq!(pdu[41..88], [0; 47]);
        assert_eq!(pdu[88..92], [7, 0, 0, 41]);
    }

    #[test]
    fn forty_bytes_of_payload_fit_into_one_cell_and_forty_one_bytes_need_two_cells() {
        assert_eq!([1, 40, 41, 88, 89, MAX_SDU_BYTES].map(cells_for), [1, 1, 2, 2, 3, 1366]);
    }

    #[test]
    fn the_longest_payload_survives_segmentation_and_reassembly_unchanged() {
        let payload = vec![0xa5; MAX_SDU_BYTES];
        let mut reassembler = Reassembler::new();
        let whole = accept_all(&mut reassembler, segment(&encode(&payload, 0)));
        assert_eq!(whole, [Ok(Pdu { payload, uu: 0 })]);
    }

    #[test]
    fn the_values_of_padding_bytes_do_not_affect_whether_a_frame_is_accepted() {
        let mut pdu = encode(&[1, 2, 3], 0);
        pdu[3..40].fill(0xcc);
        let parsed = parse(&with_right_crc(pdu)).map(|pdu| pdu.payload);
        assert_eq!(parsed, Ok(vec![1, 2, 3]));
    }

    #[test]
    fn frame_errors_have_messages_and_a_wrong_length_is_reported_before_a_wrong_crc() {
        let refused = |at: usize, bytes: &[u8]| {
            let mut pdu = encode(&[1; 41], 0);
            pdu[at..at + bytes.len()].copy_from_slice(bytes);
            refusal(parse(&with_right_crc(pdu)))
        };
        for (length, cells) in [(1_u16, 1), (40, 1), (89, 3), (65_535, 1366)] {
            let expected = format!("a frame of 2 cells states a length of {length} bytes, which needs {cells} cells");
            assert_eq!(refused(90, &length.to_be_bytes()), expected);
        }
        assert_eq!(refused(90, &[0, 0]), "the sender has aborted the frame (length 0)");
        assert_eq!(refused(89, &[1]), "the common part indicator is 0x01, but only 0 is defined");
        let long = vec![0; PAYLOAD_BYTES * (MAX_FRAME_CELLS + 1)];
        assert_eq!(refusal(parse(&long)), "the frame has more than 1366 cells, which are enough for 65535 bytes");
        let damaged = [vec![0; 92], vec![0, 0, 0, 1]].concat();
        let expected = format!("frame damaged: CRC-32 is 0x00000001, should be {:#010x}", crc32(&[0; 92]));
        assert_eq!(refusal(parse(&damaged)), expected);
    }

    #[test]
    #[should_panic(expected = "an AAL5 frame carries at least one byte")]
    fn an_empty_payload_is_refused_because_its_frame_would_mean_an_aborted_packet() {
        let _ = encode(&[], 0);
    }

    #[test]
    #[should_panic(expected = "at most 65535 bytes, not 65536")]
    fn a_payload_too_long_for_the_length_field_of_the_trailer_is_refused() {
        let _ = encode(&vec![0; 65_536], 0);
    }

    #[test]
    #[should_panic(expected = "an AAL5 frame consists of whole cells of 48 bytes, so it cannot have 47 bytes")]
    fn a_frame_with_invalid_fields_is_not_segmented_into_cells() {
        let _ = segment(&[0; 47]);
    }
}
