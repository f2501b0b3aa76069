//! The 8-byte LLC/SNAP header in front of a routed IPv4 packet in an AAL5 frame.
//!
//! Source: RFC 2684 §5.1 and RFC 1483 §4.1 (LLC encapsulation for routed protocols).
//!
//! Differences from the source: only routed IPv4 is supported. For other protocols, ISO protocols without SNAP and
//! bridged frames, the error names the first field that differs. VC multiplexing, which has no header, is not part of
//! this module.

use super::ParseError;

/// Prepends the LLC/SNAP header for routed IPv4 to `packet` (RFC 2684 §5.1).
pub fn encode(packet: &[u8]) -> Vec<u8> {
    [ROUTED_IPV4.as_slice(), packet].concat()
}

/// Returns the IPv4 packet after the LLC/SNAP header (RFC 2684 §5.1).
///
/// # Errors
/// If the header is not [`ROUTED_IPV4`]; the error names the first field that differs.
pub fn parse(bytes: &[u8]) -> Result<&[u8], ParseError> {
    let Some((&[dsap, ssap, control, oui_1, oui_2, oui_3, type_high, type_low], packet)) =
        bytes.split_first_chunk::<HEADER_BYTES>()
    else {
        return refuse!("an LLC/SNAP header has {HEADER_BYTES} bytes, but there are only {}", bytes.len());
    };
    if [dsap, ssap, control] != LLC_SNAP {
        return refuse!("the LLC header is {dsap:02X}-{ssap:02X}-{control:02X}, but SNAP needs AA-AA-03");
    }
    if [oui_1, oui_2, oui_3] != OUI_ETHERTYPE {
        return refuse!(
            "the organisation code is {oui_1:02X}-{oui_2:02X}-{oui_3:02X}, but a routed protocol has \
                        00-00-00"
        );
    }
    let ethertype = u16::from_be_bytes([type_high, type_low]);
    if ethertype != ETHERTYPE_IPV4 {
        return refuse!("the Ethernet type is {ethertype:#06x}, but IPv4 has 0x0800");
    }
    Ok(packet)
}

/// The header of routed IPv4: LLC `AA-AA-03`, OUI `00-00-00`, Ethernet type `08-00`
/// (RFC 2684 §5.1).
pub const ROUTED_IPV4: [u8; HEADER_BYTES] = [0xaa, 0xaa, 0x03, 0x00, 0x00, 0x00, 0x08, 0x00];

/// Bytes of an LLC header with SNAP: 3 of LLC, 3 of OUI, 2 of Ethernet type (RFC 2684 §5.1).
pub const HEADER_BYTES: usize = 8;

const LLC_SNAP: [u8; 3] = [0xaa, 0xaa, 0x03];
const OUI_ETHERTYPE: [u8; 3] = [0, 0, 0];
const ETHERTYPE_IPV4: u16 = 0x0800;

#[cfg(test)]
mod tests {
    use super::super::tests::refusal;
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::tests::proptest_seeded(0x0073_6e61))]

        #[test]
        fn adding_and_removing_an_llc_snap_header_returns_the_same_packet(packet in vec(any::<u8>(), 0..200)) {
            let wrapped = encode(&packet);
            prop_assert_eq!(wrapped.len(), packet.len() + 8);
            prop_assert_eq!(parse(&wrapped), Ok(packet.as_slice()));
        }
    }

    #[test]
    fn each_wrong_field_of_an_llc_snap_header_is_refused_with_a_message() {
        for (header, expected) in [
            (&ROUTED_IPV4[..7], "an LLC/SNAP header has 8 bytes, but there are only 7"),
            (&[0xfe, 0xfe, 0x03, 0, 0, 0, 8, 0], "the LLC header is FE-FE-03, but SNAP needs AA-AA-03"),
            // A bridged frame.
            (
                &[0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 7],
                "the organisation code is 00-80-C2, but a routed protocol has 00-00-00",
            ),
            (&[0xaa, 0xaa, 0x03, 0, 0, 0, 0x08, 0x06], "the Ethernet type is 0x0806, but IPv4 has 0x0800"),
        ] {
            assert_eq!(refusal(parse(header)), expected);
        }
    }
}
