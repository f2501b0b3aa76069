//! The 5-byte header of an ATM cell at the user-network interface: encoding and parsing.
//!
//! Source: ITU-T I.361 (the UNI cell header and the payload type codes), ITU-T I.432.1 §4.3
//! (header error control).
//!
//! Differences from the source: the header error control only detects errors. The single-bit correction mode of I.432.1
//! is omitted, so a cell with one flipped header bit is rejected, although a receiver in correction mode would correct
//! the bit. The VPI is always the 8 bits of the UNI, never the 12 bits of the network-network interface (NNI).

use crc::{CRC_8_I_432_1, Crc};

use super::ParseError;

/// The header of one cell at the user-network interface (ITU-T I.361).
///
/// The struct omits the header error control byte, which [`CellHeader::encode`] computes and [`CellHeader::parse`]
/// checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CellHeader {
    /// Generic flow control, 4 bits (0 to 15); 0 if unused (ITU-T I.361).
    pub gfc: u8,
    /// Virtual path identifier, 8 bits at the UNI (ITU-T I.361).
    pub vpi: u8,
    /// Virtual channel identifier, 16 bits (ITU-T I.361).
    pub vci: u16,
    /// Payload type, 3 bits (0 to 7). For user data, the first bit is 0, the second is EFCI and the third is AUU (ITU-T
    /// I.361).
    pub pti: u8,
    /// Cell loss priority, 1 bit: `true` marks a cell that may be dropped first (ITU-T I.361).
    pub clp: bool,
}

impl CellHeader {
    /// Creates the header of a user data cell without a congestion mark. `last` sets the AUU bit, which marks the last
    /// cell of an AAL5 frame (ITU-T I.361, I.363.5).
    pub const fn user_data(vpi: u8, vci: u16, last: bool) -> Self {
        Self { gfc: 0, vpi, vci, pti: if last { PTI_AUU } else { 0 }, clp: false }
    }

    /// Returns whether the cell carries user data: the high bit of the payload type is 0 (ITU-T I.361).
    pub const fn carries_user_data(self) -> bool {
        self.pti & PTI_NOT_USER == 0
    }

    /// Returns whether the cell ends an AAL5 frame: user data with the AUU bit set, payload type `0b0x1` (ITU-T I.361,
    /// I.363.5). A management cell never ends a frame, even if its low bit is set.
    pub const fn last_cell(self) -> bool {
        self.pti & (PTI_NOT_USER | PTI_AUU) == PTI_AUU
    }

    /// Returns whether a switch marked congestion on the cell: user data with the EFCI bit set, payload type `0b01x`
    /// (ITU-T I.361).
    pub const fn efci(self) -> bool {
        self.pti & (PTI_NOT_USER | PTI_EFCI) == PTI_EFCI
    }

    /// Encodes the five header bytes, with the header error control last (ITU-T I.361, I.432.1 §4.3.2).
    ///
    /// # Panics
    /// If `gfc` does not fit in 4 bits or `pti` does not fit in 3 bits, because a truncated field would encode a
    /// different header.
    pub fn encode(self) -> [u8; HEADER_BYTES] {
        assert!(self.gfc <= GFC_MAX, "the generic flow control has 4 bits, which cannot hold {}", self.gfc);
        assert!(self.pti <= PTI_MAX, "the payload type has 3 bits, which cannot hold {}", self.pti);
        let [vci_high, vci_low] = self.vci.to_be_bytes();
        let first_four = [
            self.gfc << 4 | self.vpi >> 4,
            self.vpi << 4 | vci_high >> 4,
            vci_high << 4 | vci_low >> 4,
            vci_low << 4 | self.pti << 1 | u8::from(self.clp),
        ];
        let [a, b, c, d] = first_four;
        [a, b, c, d, header_error_control(first_four)]
    }

    /// Encodes a cell with this header and `payload` (ITU-T I.361).
    ///
    /// # Panics
    /// If [`encode`](Self::encode) panics.
    pub fn cell(self, payload: &[u8; PAYLOAD_BYTES]) -> [u8; CELL_BYTES] {
        let mut cell = [0; CELL_BYTES];
        cell[..HEADER_BYTES].copy_from_slice(&self.encode());
        cell[HEADER_BYTES..].copy_from_slice(payload);
        cell
    }

    /// Parses the header in these five bytes (ITU-T I.361, I.432.1 §4.3).
    ///
    /// # Errors
    ///
    /// If there are not exactly five bytes, or the fifth byte is not the HEC of the first four bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let &[a, b, c, d, carried] = bytes else {
            return refuse!("a cell header has {HEADER_BYTES} bytes, not {}", bytes.len());
        };
        let computed = header_error_control([a, b, c, d]);
        if computed != carried {
            return refuse!(
                "the cell header is damaged: its error control is {carried:#04x}, but should be {computed:#04x}"
            );
        }
        Ok(Self {
            gfc: a >> 4,
            vpi: a << 4 | b >> 4,
            vci: u16::from_be_bytes([b << 4 | c >> 4, c << 4 | d >> 4]),
            pti: d >> 1 & PTI_MAX,
            clp: d & 1 == 1,
        })
    }
}

/// Computes the header error control byte for the first four header bytes: the CRC with generator x^8 + x^2 + x + 1,
/// plus the coset 01010101 (ITU-T I.432.1 §4.3.2).
pub fn header_error_control(first_four: [u8; 4]) -> u8 {
    static HEC: Crc<u8> = Crc::<u8>::new(&CRC_8_I_432_1);
    HEC.checksum(&first_four)
}

/// Bytes of a cell: its header and payload (ITU-T I.361).
pub const CELL_BYTES: usize = 53;

/// Bytes of a cell's header (ITU-T I.361).
pub const HEADER_BYTES: usize = 5;

/// Bytes of a cell's payload (ITU-T I.361).
pub const PAYLOAD_BYTES: usize = 48;

const GFC_MAX: u8 = 0b1111;
const PTI_MAX: u8 = 0b111;
const PTI_NOT_USER: u8 = 0b100;
const PTI_EFCI: u8 = 0b010;
const PTI_AUU: u8 = 0b001;

#[cfg(test)]
pub(super) mod tests {
    use super::super::tests::refusal;
    use super::*;
    use crate::tests::reader::hec_is_right;
    use proptest::prelude::*;

    pub(in super::super) fn any_header() -> impl Strategy<Value = CellHeader> {
        (0..=GFC_MAX, any::<u8>(), any::<u16>(), 0..=PTI_MAX, any::<bool>())
            .prop_map(|(gfc, vpi, vci, pti, clp)| CellHeader { gfc, vpi, vci, pti, clp })
    }

    proptest! {
        #![proptest_config(crate::tests::proptest_seeded(0x0063_6865))]

        #[test]
        fn building_a_cell_header_and_parsing_it_returns_the_same_header(header in any_header()) {
            prop_assert_eq!(CellHeader::parse(&header.encode()), Ok(header));
        }

        #[test]
        fn a_cell_header_with_any_two_flipped_bits_is_refused(header in any_header()) {
            for first in 0..8 * HEADER_BYTES {
                for second in 0..first {
                    let mut bytes = header.encode();
                    bytes[first / 8] ^= 0x80 >> (first % 8);
                    bytes[second / 8] ^= 0x80 >> (second % 8);
                    prop_assert!(CellHeader::parse(&bytes).is_err(), "bits {first} and {second}");
                }
            }
        }

        #[test]
        fn any_four_bytes_followed_by_their_checksum_are_a_valid_cell_header(first_four in any::<[u8; 4]>()) {
            let mut bytes = [0; HEADER_BYTES];
            bytes[..4].copy_from_slice(&first_four);
            bytes[4] = header_error_control(first_four);
            let parsed = CellHeader::parse(&bytes).expect("the error control was computed");
            prop_assert_eq!(parsed.encode(), bytes);
        }

        #[test]
        fn the_header_checksum_is_the_remainder_of_a_long_division_plus_a_constant(header in any_header()) {
            prop_assert!(hec_is_right(&header.encode()));
        }
    }

    #[test]
    fn the_idle_cell_has_the_header_given_in_the_standard() {
        // I.432.1 prescribes 00 00 00 01 for the header of idle cells, with error control 01010010.
        let idle = CellHeader { clp: true, ..CellHeader::default() };
        assert_eq!(idle.encode(), [0, 0, 0, 1, 0b0101_0010]);
    }

    #[test]
    fn every_field_of_a_cell_header_is_at_the_offset_given_in_the_standard() {
        let header = CellHeader { gfc: 0xa, vpi: 0xbc, vci: 0xdef1, pti: 0b010, clp: true };
        assert_eq!(header.encode()[..4], [0xab, 0xcd, 0xef, 0x15]);
    }

    #[test]
    fn a_cell_ends_a_frame_only_if_it_carries_user_data_with_the_end_bit() {
        let ends: Vec<u8> =
            (0..=PTI_MAX).filter(|&pti| CellHeader { pti, ..CellHeader::default() }.last_cell()).collect();
        assert_eq!(ends, [0b001, 0b011]);
    }

    #[test]
    fn a_cell_reports_congestion_only_if_it_carries_user_data_with_the_congestion_bit() {
        let marked: Vec<u8> = (0..=PTI_MAX).filter(|&pti| CellHeader { pti, ..CellHeader::default() }.efci()).collect();
        assert_eq!(marked, [0b010, 0b011]);
    }

    #[test]
    fn a_cell_header_marks_control_cells_and_the_last_cell_of_a_frame() {
        for last in [false, true] {
            let header = CellHeader::user_data(1, 32, last);
            assert!(header.carries_user_data());
            assert!(!header.efci());
            assert_eq!(header.last_cell(), last);
        }
    }

    #[test]
    #[should_panic(expected = "the generic flow control has 4 bits")]
    fn a_five_bit_flow_control_value_is_refused_because_the_field_has_four_bits() {
        let header = CellHeader { gfc: 16, ..CellHeader::default() };
        let _ = header.encode();
    }

    #[test]
    #[should_panic(expected = "the payload type has 3 bits")]
    fn a_four_bit_payload_type_is_refused_because_the_field_has_three_bits() {
        let header = CellHeader { pti: 8, ..CellHeader::default() };
        let _ = header.encode();
    }

    #[test]
    fn a_message_about_a_damaged_cell_header_shows_the_received_and_the_computed_checksum() {
        let damaged = refusal(CellHeader::parse(&[0, 0, 0, 1, 5]));
        assert_eq!(damaged, "the cell header is damaged: its error control is 0x05, but should be 0x52");
    }
}
