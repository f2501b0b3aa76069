//! The resource management (RM) cell of the ABR service, to and from bytes, and the 16-bit rates in it.
//!
//! Source: ATM Forum TM 4.0, the RM cell's format and its rates (`MECHANISMS` 4.4); ITU-T I.371; ITU-T I.610 (CRC-10, and
//! the octet 6A that fills what is not used).
//!
//! Departures: VCs only, so the payload type says that the cell is an RM cell, never the VCI 6 of a VP's. What is
//! reserved is written as the standard says and not looked at when read.

use std::error::Error;
use std::fmt;

use super::cell_header::{CELL_BYTES, HEADER_BYTES, PAYLOAD_BYTES};
use super::{CellHeader, CellHeaderError};
use crate::abr;

/// An RM cell as it stands on the wire.
#[expect(clippy::struct_excessive_bools, reason = "the cell's own bits")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RmCell {
    /// Virtual path of the VC, 8 bits at the UNI.
    pub vpi: u8,
    /// Virtual channel of the VC, 16 bits.
    pub vci: u16,
    /// Cell loss priority: whether it was sent out of rate.
    pub clp: bool,
    /// DIR: whether it is on its way back to the source.
    pub dir: bool,
    /// BN: whether a switch or destination made it, not the source.
    pub bn: bool,
    /// CI: congestion indication.
    pub ci: bool,
    /// NI: no increase.
    pub ni: bool,
    /// RA: request or acknowledge; ITU-T I.371 uses it, TM 4.0 does not.
    pub ra: bool,
    /// ER: explicit rate.
    pub er: Rate,
    /// CCR: current cell rate.
    pub ccr: Rate,
    /// MCR: minimum cell rate.
    pub mcr: Rate,
    /// QL: queue length in cells; ITU-T I.371 uses it, TM 4.0 does not.
    pub ql: u32,
    /// SN: sequence number; ITU-T I.371 uses it, TM 4.0 does not.
    pub sn: u32,
}

impl RmCell {
    /// The cell that carries this content on a VC; its rates are rounded down.
    pub fn carrying(content: &abr::RmCell, vpi: u8, vci: u16, clp: bool) -> Self {
        Self {
            vpi,
            vci,
            clp,
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

    /// What the cell says to ABR.
    pub fn content(&self) -> abr::RmCell {
        abr::RmCell {
            backward: self.dir,
            bn: self.bn,
            ci: self.ci,
            ni: self.ni,
            er: self.er.cells_per_second(),
            ccr: self.ccr.cells_per_second(),
            mcr: self.mcr.cells_per_second(),
        }
    }

    /// The 53 bytes of the cell.
    pub fn encode(&self) -> [u8; CELL_BYTES] {
        let mut cell = [UNUSED; CELL_BYTES];
        let (header, payload) = cell.split_at_mut(HEADER_BYTES);
        let Self { vpi, vci, clp, .. } = *self;
        header.copy_from_slice(&CellHeader { gfc: 0, vpi, vci, pti: PTI_RM, clp }.encode());
        payload[0] = PROTOCOL_ID;
        let flags = [self.dir, self.bn, self.ci, self.ni, self.ra];
        payload[1] = flags.iter().fold(0, |bits, &flag| bits << 1 | u8::from(flag)) << 3;
        payload[2..4].copy_from_slice(&self.er.0.to_be_bytes());
        payload[4..6].copy_from_slice(&self.ccr.0.to_be_bytes());
        payload[6..8].copy_from_slice(&self.mcr.0.to_be_bytes());
        payload[8..12].copy_from_slice(&self.ql.to_be_bytes());
        payload[12..16].copy_from_slice(&self.sn.to_be_bytes());
        payload[46..].fill(0);
        let crc = crc10(payload);
        payload[46..].copy_from_slice(&crc.to_be_bytes());
        cell
    }

    /// The RM cell that these bytes are.
    ///
    /// # Errors
    /// See [`RmCellError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, RmCellError> {
        if bytes.len() != CELL_BYTES {
            return Err(RmCellError::WrongLength { bytes: bytes.len() });
        }
        let (header, payload) = bytes.split_at(HEADER_BYTES);
        let header = CellHeader::parse(header).map_err(RmCellError::CellHeader)?;
        if header.pti != PTI_RM {
            return Err(RmCellError::NotRm { pti: header.pti });
        }
        let mut covered = [0; PAYLOAD_BYTES];
        covered.copy_from_slice(payload);
        let carried = u16::from_be_bytes([covered[46] & 0b11, covered[47]]);
        covered[46] &= !0b11;
        covered[47] = 0;
        let computed = crc10(&covered);
        if computed != carried {
            return Err(RmCellError::CrcMismatch { computed, carried });
        }
        if payload[0] != PROTOCOL_ID {
            return Err(RmCellError::OtherProtocol { id: payload[0] });
        }
        let flag = |bit: u8| payload[1] >> bit & 1 == 1;
        let rate = |at: usize| Rate(u16::from_be_bytes([payload[at], payload[at + 1]]) & !RATE_RESERVED);
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

/// A rate as RM cells have it: nz 2^e (1 + m/512) cells per second, in one bit nz, five of e and nine of m. The default is
/// zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u16);

impl Rate {
    /// The greatest rate the format has up to so many cells per second; it is less than 1/512 below, from 1 cell a second
    /// to 2^32. A rate below 1 is zero. Rounding up would let a cell promise what nobody granted.
    ///
    /// # Panics
    /// If the rate is negative or no number.
    pub fn at_most(cells_per_second: f64) -> Self {
        assert!(cells_per_second >= 0.0, "a rate is zero or more, not {cells_per_second}");
        if cells_per_second < 1.0 {
            return Self::default();
        }
        if cells_per_second >= TWO_TO_32 {
            return Self(RATE_NONZERO | RATE_MANTISSA | 31 << RATE_EXPONENT_SHIFT);
        }
        // The float's own exponent, whose bias is 1023, and the first nine bits of its mantissa; the sign is zero.
        let bits = cells_per_second.to_bits();
        let exponent = u16::try_from((bits >> 52) - 1023).expect("the rate is below 2^32");
        let mantissa = u16::try_from(bits >> 43 & u64::from(RATE_MANTISSA)).expect("nine bits");
        Self(RATE_NONZERO | exponent << RATE_EXPONENT_SHIFT | mantissa)
    }

    /// The rate in cells per second.
    pub fn cells_per_second(self) -> f64 {
        if self.0 & RATE_NONZERO == 0 {
            return 0.0;
        }
        let power = 1_u32 << (self.0 >> RATE_EXPONENT_SHIFT & 0b1_1111);
        f64::from(power) * (1.0 + f64::from(self.0 & RATE_MANTISSA) / 512.0)
    }

    /// Its bits, the highest of which is reserved and zero.
    pub fn bits(self) -> u16 {
        self.0
    }
}

/// Why bytes are no RM cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RmCellError {
    /// The slice does not hold exactly [`CELL_BYTES`] bytes.
    WrongLength {
        /// How many bytes it holds.
        bytes: usize,
    },
    /// The header is damaged.
    CellHeader(CellHeaderError),
    /// The payload type is another one.
    NotRm {
        /// The payload type that came.
        pti: u8,
    },
    /// The payload's CRC-10 does not match it.
    CrcMismatch {
        /// The CRC that would match.
        computed: u16,
        /// The CRC that came.
        carried: u16,
    },
    /// The cell belongs to another protocol than ABR.
    OtherProtocol {
        /// The protocol id that came.
        id: u8,
    },
}

impl fmt::Display for RmCellError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongLength { bytes } => write!(f, "a cell has {CELL_BYTES} bytes, not {bytes}"),
            Self::CellHeader(error) => error.fmt(f),
            Self::NotRm { pti } => write!(f, "an RM cell has payload type 0b110, not {pti:#05b}"),
            Self::CrcMismatch { computed, carried } => {
                write!(f, "RM cell damaged: CRC-10 is {carried:#05x}, should be {computed:#05x}")
            }
            Self::OtherProtocol { id } => write!(f, "an RM cell of ABR has protocol id {PROTOCOL_ID}, not {id}"),
        }
    }
}

impl Error for RmCellError {}

/// The CRC with generator x^10 + x^9 + x^5 + x^4 + x + 1 of a payload whose last ten bits are zero (ITU-T I.610).
fn crc10(payload: &[u8]) -> u16 {
    payload.iter().fold(0, |remainder, &byte| {
        (0..8).rev().fold(remainder, |r, bit| {
            let shifted = r << 1 | u16::from(byte >> bit & 1);
            if shifted >> 10 & 1 == 0 { shifted } else { shifted ^ CRC_GENERATOR }
        })
    })
}

/// Payload type of an RM cell of a VC (ITU-T I.361).
const PTI_RM: u8 = 0b110;
/// TM 4.0: the protocol id of ABR.
const PROTOCOL_ID: u8 = 1;
/// ITU-T I.610: octets not used are 6A; bits not used are zero.
const UNUSED: u8 = 0x6a;
/// x^10 + x^9 + x^5 + x^4 + x + 1.
const CRC_GENERATOR: u16 = 0b110_0011_0011;

const RATE_RESERVED: u16 = 1 << 15;
const RATE_NONZERO: u16 = 1 << 14;
const RATE_EXPONENT_SHIFT: u32 = 9;
const RATE_MANTISSA: u16 = 0x1ff;
const TWO_TO_32: f64 = 4_294_967_296.0;
