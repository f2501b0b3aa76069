//! The ECN field of IPv4 packets (RFC 3168, section 5).

use celltrain_core::events::EcnBits;

/// Returns whether an IPv4 packet is ECN-capable, and whether a port has marked it.
pub fn bits(packet: &[u8]) -> EcnBits {
    let field = packet.get(1).map_or(0, |traffic_class| traffic_class & 0b11);
    EcnBits { capable: field != 0, marked: field == 0b11, ..EcnBits::default() }
}

/// Marks an ECN-capable IPv4 packet (Congestion Experienced), and updates the checksum of its header.
///
/// # Panics
/// If the packet is not ECN-capable.
pub fn mark(packet: &mut [u8]) {
    assert!(bits(packet).capable, "ports drop packets that are not ECN-capable");
    let before = packet[1];
    packet[1] |= 0b11;
    // RFC 1624, equation 3: HC' = ~(~HC + ~m + m'). Only one byte of the word m changes.
    let checksum = u16::from_be_bytes([packet[10], packet[11]]);
    let sum = u32::from(!checksum) + u32::from(!u16::from(before)) + u32::from(packet[1]);
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    let updated = !u16::try_from(folded).expect("a folded sum fits in 16 bits");
    packet[10..12].copy_from_slice(&updated.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{IpEcn, IpHeaders, IpNumber, Ipv4Extensions, Ipv4Header, PacketBuilder};

    fn ipv4(ecn: IpEcn) -> Vec<u8> {
        let mut ip = Ipv4Header::new(0, 64, IpNumber::UDP, [10, 0, 0, 1], [10, 0, 255, 2]).unwrap();
        ip.ecn = ecn;
        let mut packet = Vec::new();
        let headers = PacketBuilder::ip(IpHeaders::Ipv4(ip, Ipv4Extensions::default())).udp(1, 2);
        headers.write_to_vec(&mut packet, &[7; 10]).unwrap();
        packet
    }

    //= test rfc3168#5 "a router drops a packet that is not ECN-capable where it would mark another"
    #[test]
    fn marking_a_packet_of_a_stack_sets_ce_and_updates_the_ip_checksum() {
        let marked = ipv4(IpEcn::CongestionExperienced);
        for ecn in [IpEcn::Ect0, IpEcn::Ect1, IpEcn::CongestionExperienced] {
            let mut packet = ipv4(ecn);
            assert!(bits(&packet).capable);
            mark(&mut packet);
            assert_eq!(packet, marked, "{ecn:?}");
        }
        assert!(!bits(&ipv4(IpEcn::NotEct)).capable);
        assert!(!bits(b"").capable);
    }
}
