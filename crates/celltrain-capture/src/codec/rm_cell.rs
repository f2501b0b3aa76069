//! The resource management (RM) cell of the ABR service, with its 16-bit rates: encoding and parsing.
//!
//! Source: ATM Forum TM 4.0, the RM cell's format and its rates (`docs/mechanisms.md` 4.4); ITU-T I.371; ITU-T I.610
//! (CRC-10, and the filler 6A for unused octets).
//!
//! Differences from the source: only RM cells of VCs are supported. RM cells are recognised by the payload type, never
//! by VCI 6, which marks the RM cells of a VP. Reserved fields are written as the standard requires and ignored when
//! parsing.

use super::cell_header::{CELL_BYTES, HEADER_BYTES, PAYLOAD_BYTES};
use super::{CellHeader, ParseError};
use celltrain_core::abr;
pub use celltrain_core::abr::Rate;

/// An RM cell as sent on the wire.
#[expect(clippy::struct_excessive_bools, reason = "the cast keeps exactly the bits of this field")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RmCell {
    /// Virtual path of the VC, 8 bits at the UNI.
    pub vpi: u8,
    /// Virtual channel of the VC, 16 bits.
    pub vci: u16,
    /// Cell loss priority: true if the cell was sent out of rate.
    pub clp: bool,
    /// DIR: direction, true if the cell is on its way back to the source.
    pub dir: bool,
    /// BN: backward notification, true if a switch or the destination generated the cell, not the source.
    pub bn: bool,
    /// CI: congestion indication.
    pub ci: bool,
    /// NI: no increase.
    pub ni: bool,
    /// RA: request or acknowledge. ITU-T I.371 uses it, but TM 4.0 does not.
    pub ra: bool,
    /// ER: explicit rate.
    pub er: Rate,
    /// CCR: current cell rate.
    pub ccr: Rate,
    /// MCR: minimum cell rate.
    pub mcr: Rate,
    /// QL: queue length in cells. ITU-T I.371 uses it, but TM 4.0 does not.
    pub ql: u32,
    /// SN: sequence number. ITU-T I.371 uses it, but TM 4.0 does not.
    pub sn: u32,
}

impl RmCell {
    /// Creates an RM cell with this content on a VC. The rates in the cell are rounded down.
    pub fn carrying(content: &abr::RmCell, vpi: u8, vci: u16) -> Self {
        Self {
            vpi,
            vci,
            clp: content.out_of_rate,
            dir: content.backward,
            bn: content.bn,
            ci: content.ci,
            ni: content.ni,
            er: Rate::at_most(content.er),
            ccr: Rate::at_most(content.ccr),
            mcr: Rate::at_most(content.mcr),
            ..Self::default()
        }
    }

    /// Returns the cell's content in the form that simulated ABR sources and switches use.
    pub fn content(&self) -> abr::RmCell {
        abr::RmCell {
            backward: self.dir,
            bn: self.bn,
            ci: self.ci,
            ni: self.ni,
            er: self.er.cells_per_second(),
            ccr: self.ccr.cells_per_second(),
            mcr: self.mcr.cells_per_second(),
            out_of_rate: self.clp,
        }
    }

    /// Encodes the 53 bytes of the cell.
    pub fn encode(&self) -> [u8; CELL_BYTES] {
        let mut cell = [UNUSED; CELL_BYTES];
        let (header, payload) = cell.split_at_mut(HEADER_BYTES);
        let Self { vpi, vci, clp, .. } = *self;
        header.copy_from_slice(&CellHeader { gfc: 0, vpi, vci, pti: PTI_RM, clp }.encode());
        payload[0] = PROTOCOL_ID;
        let flags = [self.dir, self.bn, self.ci, self.ni, self.ra];
        payload[1] = flags.iter().fold(0, |bits, &flag| bits << 1 | u8::from(flag)) << 3;
        payload[2..4].copy_from_slice(&self.er.bits().to_be_bytes());
        payload[4..6].copy_from_slice(&self.ccr.bits().to_be_bytes());
        payload[6..8].copy_from_slice(&self.mcr.bits().to_be_bytes());
        payload[8..12].copy_from_slice(&self.ql.to_be_bytes());
        payload[12..16].copy_from_slice(&self.sn.to_be_bytes());
        payload[46..].fill(0);
        let crc = crc10(payload);
        payload[46..].copy_from_slice(&crc.to_be_bytes());
        cell
    }

    /// Parses an RM cell.
    ///
    /// # Errors
    /// If the cell is damaged, or is not an RM cell of ABR.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        if bytes.len() != CELL_BYTES {
            return refuse!("a cell has {CELL_BYTES} bytes, not {}", bytes.len());
        }
        let (header, payload) = bytes.split_at(HEADER_BYTES);
        let header = CellHeader::parse(header)?;
        if header.pti != PTI_RM {
            return refuse!("an RM cell has payload type 0b110, not {:#05b}", header.pti);
        }
        let mut covered = [0; PAYLOAD_BYTES];
        covered.copy_from_slice(payload);
        let carried = u16::from_be_bytes([covered[46] & 0b11, covered[47]]);
        covered[46] &= !0b11;
        covered[47] = 0;
        let computed = crc10(&covered);
        if computed != carried {
            return refuse!("the RM cell is damaged: its CRC-10 is {carried:#05x}, but should be {computed:#05x}");
        }
        if payload[0] != PROTOCOL_ID {
            return refuse!("an RM cell of ABR has protocol id {PROTOCOL_ID}, not {}", payload[0]);
        }
        let flag = |bit: u8| payload[1] >> bit & 1 == 1;
        let rate = |at: usize| Rate::from_bits(u16::from_be_bytes([payload[at], payload[at + 1]]));
        let word = |at: usize| u32::from_be_bytes([payload[at], payload[at + 1], payload[at + 2], payload[at + 3]]);
        Ok(Self {
            vpi: header.vpi,
            vci: header.vci,
            clp: header.clp,
            dir: flag(7),
            bn: flag(6),
            ci: flag(5),
            ni: flag(4),
            ra: flag(3),
            er: rate(2),
            ccr: rate(4),
            mcr: rate(6),
            ql: word(8),
            sn: word(12),
        })
    }
}

/// Computes the CRC-10 of a payload whose last ten bits are zero. The generator is x^10 + x^9 + x^5 + x^4 + x + 1
/// (ITU-T I.610).
fn crc10(payload: &[u8]) -> u16 {
    payload.iter().fold(0, |remainder, &byte| {
        (0..8).rev().fold(remainder, |r, bit| {
            let shifted = r << 1 | u16::from(byte >> bit & 1);
            if shifted >> 10 & 1 == 0 { shifted } else { shifted ^ CRC_GENERATOR }
        })
    })
}

/// Payload type of a VC's RM cells (ITU-T I.361).
const PTI_RM: u8 = 0b110;
/// The protocol identifier of ABR (TM 4.0).
const PROTOCOL_ID: u8 = 1;
/// Value of unused octets (ITU-T I.610). Unused bits are zero.
const UNUSED: u8 = 0x6a;
/// x^10 + x^9 + x^5 + x^4 + x + 1.
const CRC_GENERATOR: u16 = 0b110_0011_0011;

#[cfg(test)]
pub(super) mod tests {
    use super::super::tests::refusal;
    use super::*;
    use crate::tests::reader::crc10_is_right;
    use proptest::prelude::*;

    fn any_rate() -> impl Strategy<Value = Rate> {
        (0..1_u16 << 15).prop_map(Rate::from_bits)
    }

    pub(in super::super) fn any_cell() -> impl Strategy<Value = RmCell> {
        let flags = any::<[bool; 6]>();
        (any::<u8>(), any::<u16>(), flags, [any_rate(), any_rate(), any_rate()], any::<[u32; 2]>()).prop_map(
            |(vpi, vci, [clp, dir, bn, ci, ni, ra], [er, ccr, mcr], [ql, sn])| RmCell {
                vpi,
                vci,
                clp,
                dir,
                bn,
                ci,
                ni,
                ra,
                er,
                ccr,
                mcr,
                ql,
                sn,
            },
        )
    }

    proptest! {
        #![proptest_config(crate::tests::proptest_seeded(0x0072_6d63))]

        #[test]
        fn building_an_rm_cell_and_parsing_it_returns_the_same_cell(cell in any_cell()) {
            let bytes = cell.encode();
            prop_assert!(crc10_is_right(&bytes[HEADER_BYTES..]));
            prop_assert_eq!(RmCell::parse(&bytes), Ok(cell));
        }

        #[test]
        fn any_two_flipped_bits_in_the_payload_of_an_rm_cell_are_detected(cell in any_cell(), first in 0_usize..384) {
            // The generator is (x + 1) times a primitive polynomial of degree 9, so the CRC detects any two wrong bits
            // less than 511 bits apart.
            for second in (0..384).filter(|&second| second != first) {
                let mut bytes = cell.encode();
                for bit in [first, second] {
                    bytes[HEADER_BYTES + bit / 8] ^= 0x80 >> (bit % 8);
                }
                prop_assert!(RmCell::parse(&bytes).is_err(), "bits {first} and {second}");
            }
        }
    }

    #[test]
    fn every_field_of_an_rm_cell_is_at_the_offset_given_in_the_standard() {
        let cell = RmCell {
            vpi: 1,
            vci: 0x0203,
            clp: true,
            dir: true,
            bn: false,
            ci: true,
            ni: false,
            ra: true,
            er: Rate::from_bits(0x4a5b),
            ccr: Rate::from_bits(0x4111),
            mcr: Rate::from_bits(0x0000),
            ql: 0x0405_0607,
            sn: 0x0809_0a0b,
        };
        let bytes = cell.encode();
        // GFC 0, VPI 01, VCI 0203, PTI 110, CLP 1.
        assert_eq!(bytes[..4], [0x00, 0x10, 0x20, 0x3d]);
        // The expected bytes are the protocol id; the bits DIR, BN, CI, NI, RA and three reserved bits, of which DIR,
        // CI and RA are set; ER; CCR; MCR; QL; SN.
        assert_eq!(bytes[5..7], [0x01, 0b1010_1000]);
        assert_eq!(bytes[7..13], [0x4a, 0x5b, 0x41, 0x11, 0x00, 0x00]);
        assert_eq!(bytes[13..21], [4, 5, 6, 7, 8, 9, 10, 11]);
        assert_eq!(bytes[21..51], [0x6a; 30]);
        assert_eq!(bytes[51] & 0b1111_1100, 0, "the six bits before the CRC are reserved");
    }

    #[test]
    fn the_crc_of_an_rm_cell_with_one_bit_set_equals_a_value_calculated_by_hand() {
        // If only the lowest bit that the CRC covers, x^10, is set in the payload, the remainder consists of the
        // generator's terms below x^10: 1000110011.
        let mut payload = [0; PAYLOAD_BYTES];
        payload[46] = 0b100;
        assert_eq!(crc10(&payload), 0b10_0011_0011);
        // If only x^11 is set, the remainder is x (x^9 + x^5 + x^4 + x + 1) = x^10 + x^6 + x^5 + x^2 + x, minus the
        // generator: x^9 + x^6 + x^4 + x^2 + 1.
        payload[46] = 0b1000;
        assert_eq!(crc10(&payload), 0b10_0101_0101);
    }

    #[test]
    fn an_rm_cell_that_was_written_is_read_back_unchanged() {
        let content = abr::RmCell {
            backward: true,
            bn: true,
            ci: false,
            ni: true,
            er: 1000.0,
            ccr: 512.0,
            mcr: 0.0,
            out_of_rate: false,
        };
        for out_of_rate in [false, true] {
            let content = abr::RmCell { out_of_rate, ..content };
            let cell = RmCell::carrying(&content, 0, 32);
            assert_eq!((cell.clp, cell.content()), (out_of_rate, content));
        }
    }

    #[test]
    fn reserved_bits_of_an_rm_cell_are_ignored_when_the_cell_is_read() {
        let cell = RmCell { er: Rate::from_bits(0x4001), ..RmCell::default() };
        let mut bytes = cell.encode();
        bytes[6] |= 0b111;
        bytes[7] |= 0x80;
        bytes[30] = 0;
        bytes[51] = 0b1010_1000;
        bytes[52] = 0;
        let crc = crc10(&bytes[HEADER_BYTES..]);
        bytes[51] |= crc.to_be_bytes()[0];
        bytes[52] = crc.to_be_bytes()[1];
        assert_eq!(RmCell::parse(&bytes), Ok(cell));
    }

    #[test]
    fn parsing_a_cell_of_another_type_as_an_rm_cell_is_an_error() {
        let mut data = RmCell::default().encode();
        data[..5].copy_from_slice(&CellHeader::user_data(0, 0, false).encode());
        assert_eq!(refusal(RmCell::parse(&data)), "an RM cell has payload type 0b110, not 0b000");
        let mut other = RmCell::default().encode();
        other[5] = 2;
        other[51..].fill(0);
        let crc = crc10(&other[5..]);
        other[51..].copy_from_slice(&crc.to_be_bytes());
        assert_eq!(refusal(RmCell::parse(&other)), "an RM cell of ABR has protocol id 1, not 2");
    }
}
