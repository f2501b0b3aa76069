//! Ethernet frames around IPv4 packets, without the frame's checksum, as network cards pass frames to programs (IEEE
//! 802.3, 3.1 and 3.2.7).
//!
//! The Ethernet address of a host is `02:00` followed by its IPv4 address. The byte `02` marks a locally administered
//! address.

/// Minimum length of an Ethernet frame in bytes, without the checksum of 4 bytes.
const SHORTEST: usize = 60;
const LOCALLY_ADMINISTERED: [u8; 2] = [0x02, 0];
const TYPE_IPV4: [u8; 2] = [0x08, 0];

/// Writes the Ethernet frame that contains an IPv4 packet into `frame`.
pub(crate) fn put(packet: &[u8], frame: &mut Vec<u8>) {
    // The IPv4 header of a packet from a host outside the simulation might be truncated.
    let address = |from: usize| packet.get(from..from + 4).unwrap_or(&[0; 4]);
    frame.clear();
    for address in [address(16), address(12)] {
        frame.extend_from_slice(&LOCALLY_ADMINISTERED);
        frame.extend_from_slice(address);
    }
    frame.extend_from_slice(&TYPE_IPV4);
    frame.extend_from_slice(packet);
    frame.resize(frame.len().max(SHORTEST), 0);
}
