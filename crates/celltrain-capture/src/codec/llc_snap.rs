//! The 8-byte LLC/SNAP header in front of a routed IPv4 packet in an AAL5 frame.
//!
//! Source: RFC 2684 §5.1 and RFC 1483 §4.1 (LLC encapsulation for routed protocols).
//!
//! Departures: routed IPv4 only. Other protocols, ISO protocols without SNAP and bridged frames are recognised far
//! enough for a specific error; VC multiplexing (no header at all) is not modelled.

use std::error::Error;
use std::fmt;

/// Prepends the LLC/SNAP header for routed IPv4 to `packet` (RFC 2684 §5.1).
pub fn encode(packet: &[u8]) -> Vec<u8> {
    [ROUTED_IPV4.as_slice(), packet].concat()
}

/// Returns the IPv4 packet after the LLC/SNAP header (RFC 2684 §5.1).
///
/// # Errors
/// See [`LlcSnapError`]; any header but [`ROUTED_IPV4`] is rejected.
pub fn parse(bytes: &[u8]) -> Result<&[u8], LlcSnapError> {
    let Some((&[dsap, ssap, control, oui_1, oui_2, oui_3, type_high, type_low], packet)) =
        bytes.split_first_chunk::<HEADER_BYTES>()
    else {
        return Err(LlcSnapError::TooShort { bytes: bytes.len() });
    };
    let llc = [dsap, ssap, control];
    if llc != LLC_SNAP {
        return Err(LlcSnapError::NotSnap { llc });
    }
    let oui = [oui_1, oui_2, oui_3];
    if oui != OUI_ETHERTYPE {
        return Err(LlcSnapError::NotRouted { oui });
    }
    let ethertype = u16::from_be_bytes([type_high, type_low]);
    if ethertype != ETHERTYPE_IPV4 {
        return Err(LlcSnapError::NotIpv4 { ethertype });
    }
    Ok(packet)
}

/// Reasons why bytes do not start with the LLC/SNAP header of routed IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LlcSnapError {
    /// There are fewer than [`HEADER_BYTES`] bytes.
    TooShort {
        /// Number of bytes.
        bytes: usize,
    },
    /// The LLC header does not announce SNAP (`AA-AA-03`).
    NotSnap {
        /// DSAP, SSAP and control byte received.
        llc: [u8; 3],
    },
    /// The organisation code does not announce an Ethernet type (`00-00-00`); `00-80-C2` would be
    /// a bridged frame.
    NotRouted {
        /// The organisation code received.
        oui: [u8; 3],
    },
    /// The Ethernet type is not IPv4 (`08-00`).
    NotIpv4 {
        /// The Ethernet type received.
        ethertype: u16,
    },
}

impl fmt::Display for LlcSnapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort { bytes } => {
                write!(f, "an LLC/SNAP header has {HEADER_BYTES} bytes, there are only {bytes}")
            }
            Self::NotSnap { llc: [a, b, c] } => {
                write!(f, "LLC header is {a:02X}-{b:02X}-{c:02X}, SNAP would be AA-AA-03")
            }
            Self::NotRouted { oui: [a, b, c] } => {
                write!(f, "organisation code is {a:02X}-{b:02X}-{c:02X}, a routed protocol has 00-00-00")
            }
            Self::NotIpv4 { ethertype } => {
                write!(f, "Ethernet type is {ethertype:#06x}, IPv4 has 0x0800")
            }
        }
    }
}

impl Error for LlcSnapError {}

/// The header of routed IPv4: LLC `AA-AA-03`, OUI `00-00-00`, Ethernet type `08-00`
/// (RFC 2684 §5.1).
pub const ROUTED_IPV4: [u8; HEADER_BYTES] = [0xaa, 0xaa, 0x03, 0x00, 0x00, 0x00, 0x08, 0x00];

/// Bytes of an LLC header with SNAP: LLC 3, OUI 3, Ethernet type 2 (RFC 2684 §5.1).
pub const HEADER_BYTES: usize = 8;

const LLC_SNAP: [u8; 3] = [0xaa, 0xaa, 0x03];
const OUI_ETHERTYPE: [u8; 3] = [0, 0, 0];
const ETHERTYPE_IPV4: u16 = 0x0800;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::tests::proptest_seeded(0x0073_6e61))]

        #[test]
        fn any_packet_that_is_wrapped_is_unwrapped_again(packet in vec(any::<u8>(), 0..200)) {
            let wrapped = encode(&packet);
            prop_assert_eq!(wrapped.len(), packet.len() + 8);
            prop_assert_eq!(parse(&wrapped), Ok(packet.as_slice()));
        }

        #[test]
        fn any_single_flipped_bit_of_the_header_is_refused(packet in vec(any::<u8>(), 0..60)) {
            for bit in 0..8 * HEADER_BYTES {
                let mut wrapped = encode(&packet);
                wrapped[bit / 8] ^= 0x80 >> (bit % 8);
                prop_assert!(parse(&wrapped).is_err(), "bit {bit}");
            }
        }

        #[test]
        fn bytes_of_any_number_and_value_never_panic(bytes in vec(any::<u8>(), 0..40)) {
            if let Ok(packet) = parse(&bytes) {
                prop_assert_eq!(encode(packet), bytes);
            }
        }
    }

    #[test]
    fn each_part_of_the_header_is_refused_by_its_own_name() {
        assert_eq!(parse(&ROUTED_IPV4[..7]), Err(LlcSnapError::TooShort { bytes: 7 }));
        assert_eq!(parse(&[0xfe, 0xfe, 0x03, 0, 0, 0, 8, 0]), Err(LlcSnapError::NotSnap { llc: [0xfe, 0xfe, 0x03] }));
        assert_eq!(
            parse(&[0xaa, 0xaa, 0x03, 0x00, 0x80, 0xc2, 0, 7]),
            Err(LlcSnapError::NotRouted { oui: [0x00, 0x80, 0xc2] })
        );
        assert_eq!(parse(&[0xaa, 0xaa, 0x03, 0, 0, 0, 0x08, 0x06]), Err(LlcSnapError::NotIpv4 { ethertype: 0x0806 }));
    }

    #[test]
    fn the_errors_say_what_is_wrong() {
        assert_eq!(
            LlcSnapError::NotRouted { oui: [0x00, 0x80, 0xc2] }.to_string(),
            "organisation code is 00-80-C2, a routed protocol has 00-00-00"
        );
        assert_eq!(LlcSnapError::NotIpv4 { ethertype: 0x0806 }.to_string(), "Ethernet type is 0x0806, IPv4 has 0x0800");
    }
}
