//! Link types of captures, and the headers of packets and cells in captures of each type.

use celltrain_core::aal5::{Aal5Options, Encapsulation, Framing};

use crate::{CaptureError, CaptureKind};

/// Returns the link type of a capture.
pub(crate) fn link_type(kind: CaptureKind, framing: &Aal5Options, interfaces: usize) -> u16 {
    match (kind, framing.encapsulation) {
        (CaptureKind::Ip, _) if framing.framing == Framing::Packets => LINKTYPE_ETHERNET,
        (CaptureKind::Ip, _) if interfaces > 1 => LINKTYPE_NULL,
        (CaptureKind::Ip, _) => LINKTYPE_RAW,
        (CaptureKind::Aal5, Encapsulation::LlcSnap) | (CaptureKind::ErfCells, _) => LINKTYPE_ERF,
        (CaptureKind::Aal5, Encapsulation::VcMux) => LINKTYPE_SUNATM,
        (CaptureKind::Cells, _) => LINKTYPE_USER0,
    }
}

/// Builds the header of a record in Endace's Extensible Record Format (ERF): timestamp, type, flags and lengths.
pub(crate) fn erf_header(time_ns: u64, kind: u8, wire_bytes: usize) -> Result<[u8; ERF_HEADER_BYTES], CaptureError> {
    let too_long = |_| {
        let problem = format!("{wire_bytes} bytes do not fit into an ERF record; capture IPv4 packets instead");
        CaptureError::Refused(problem)
    };
    let record = u16::try_from(ERF_HEADER_BYTES + wire_bytes).map_err(too_long)?;
    let wire = u16::try_from(wire_bytes).map_err(too_long)?;
    // The timestamp consists of seconds and a 32-bit fraction of a second.
    let stamp = (u128::from(time_ns) << 32) / u128::from(NS_PER_SECOND);
    let stamp = u64::try_from(stamp)
        .map_err(|_| CaptureError::Refused("the run is too long for the timestamps of an ERF file".to_owned()))?;
    let mut header = [0; ERF_HEADER_BYTES];
    header[..8].copy_from_slice(&stamp.to_le_bytes());
    header[8] = kind;
    header[9] = ERF_VARYING_LENGTH;
    header[10..12].copy_from_slice(&record.to_be_bytes());
    header[14..].copy_from_slice(&wire.to_be_bytes());
    Ok(header)
}

const LINKTYPE_NULL: u16 = 0;
const LINKTYPE_ETHERNET: u16 = 1;
const LINKTYPE_RAW: u16 = 101;
const LINKTYPE_SUNATM: u16 = 123;
const LINKTYPE_USER0: u16 = 147;
const LINKTYPE_ERF: u16 = 197;

pub(crate) const ERF_HEADER_BYTES: usize = 16;
pub(crate) const ERF_CELL_HEADER_BYTES: usize = 4;
pub(crate) const ERF_TYPE_ATM: u8 = 3;
pub(crate) const ERF_TYPE_AAL5: u8 = 4;
const ERF_VARYING_LENGTH: u8 = 0b100;

/// The number `AF_INET` in the file's byte order, which precedes an IPv4 packet of link type NULL.
pub(crate) const NULL_IPV4: [u8; 4] = [2, 0, 0, 0];

pub(crate) const SUNATM_SENT: u8 = 0x80;
pub(crate) const SUNATM_TYPE_UNKNOWN: u8 = 0;

const NS_PER_SECOND: u64 = 1_000_000_000;
