//! Counters of flows, derived from packet headers.

use std::collections::HashMap;

use celltrain_core::engine::OutsideCounters;
use celltrain_core::index::VcIndex;
use celltrain_hosts::Segments;
use etherparse::{SlicedPacket, TransportSlice};

/// Connections seen so far, by VC and ports. The two directions of a connection count separately.
#[derive(Default)]
pub(crate) struct Traffic {
    connections: HashMap<(VcIndex, u16, u16), Segments>,
}

impl Traffic {
    /// Counts a packet that a host sends.
    pub(crate) fn on_sent(&mut self, vc: VcIndex, packet: &[u8], counters: &mut OutsideCounters) {
        match self.connection(vc, packet) {
            Some((segments, _)) => drop(segments.on_sent(packet, counters)),
            None => counters.unknown_packets += 1,
        }
    }

    /// Counts a packet that reaches a host.
    pub(crate) fn on_arrived(&mut self, vc: VcIndex, packet: &[u8], counters: &mut OutsideCounters) {
        let Some((segments, is_tcp)) = self.connection(vc, packet) else { return };
        let (received, arrived) = (counters.received_bytes, segments.arrived_bytes());
        segments.on_arrived(packet, counters);
        counters.delivered_bytes +=
            if is_tcp { segments.arrived_bytes() - arrived } else { counters.received_bytes - received };
    }

    /// Returns the connection of a packet, and whether it uses TCP.
    fn connection(&mut self, vc: VcIndex, packet: &[u8]) -> Option<(&mut Segments, bool)> {
        let (ports, is_tcp) = match SlicedPacket::from_ip(packet).ok()?.transport? {
            TransportSlice::Tcp(segment) => {
                let ports = (vc, segment.source_port(), segment.destination_port());
                if segment.syn() {
                    // A new connection has its own sequence numbers.
                    self.connections.remove(&ports);
                }
                (ports, true)
            }
            TransportSlice::Udp(packet) => ((vc, packet.source_port(), packet.destination_port()), false),
            _ => return None,
        };
        Some((self.connections.entry(ports).or_default(), is_tcp))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;

    fn tcp(port: u16, sequence: u32, bytes: usize) -> Vec<u8> {
        let mut packet = Vec::new();
        let headers = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp(port, 2, sequence, 1000);
        headers.write_to_vec(&mut packet, &vec![0; bytes]).unwrap();
        packet
    }

    #[test]
    fn each_connection_in_an_emulation_has_separate_sequence_numbers() {
        let (mut traffic, mut counters) = (Traffic::default(), OutsideCounters::default());
        for packet in [tcp(1, 5000, 100), tcp(9, 0, 100), tcp(1, 5100, 100), tcp(1, 5000, 100), tcp(9, 100, 0)] {
            traffic.on_sent(VcIndex::new(0), &packet, &mut counters);
            traffic.on_arrived(VcIndex::new(0), &packet, &mut counters);
        }
        assert_eq!((counters.segments_sent, counters.retransmitted_segments), (4, 1));
        assert_eq!((counters.received_bytes, counters.delivered_bytes, counters.repeated_segments), (400, 300, 1));
    }

    #[test]
    fn every_datagram_sent_in_an_emulation_is_counted() {
        let (mut traffic, mut counters) = (Traffic::default(), OutsideCounters::default());
        let mut packet = Vec::new();
        let headers = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(1, 2);
        headers.write_to_vec(&mut packet, &[0; 10]).unwrap();
        for _ in 0..3 {
            traffic.on_arrived(VcIndex::new(0), &packet, &mut counters);
        }
        traffic.on_arrived(VcIndex::new(0), b"no packet", &mut counters);
        assert_eq!((counters.received_bytes, counters.delivered_bytes), (30, 30));
    }
}
