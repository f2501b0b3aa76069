//! Counts of a flow's data segments, read off the headers of its packets.

use celltrain_core::engine::OutsideCounters;
use etherparse::{SlicedPacket, TransportSlice};

/// The data segments of a connection that have been seen at its two ends.
#[derive(Default)]
pub struct Segments {
    /// End of the newest data sent, as an offset from the first sequence number seen.
    sent: Option<u64>,
    /// Data that has arrived: disjoint ranges of offsets, in order.
    arrived: Vec<[u64; 2]>,
}

/// The payload of a packet, with its sequence number if it is a TCP segment.
struct Payload {
    sequence: Option<u32>,
    bytes: u64,
}

impl Segments {
    /// Counts a packet that leaves the sender of data.
    pub fn on_sent(&mut self, packet: &[u8], counters: &mut OutsideCounters) {
        let Some(Payload { sequence, bytes }) = payload(packet) else { return };
        counters.segments_sent += 1;
        if let Some([start, end]) = self.range(sequence, bytes) {
            let newest = self.sent.get_or_insert(start);
            counters.retransmitted_segments += u64::from(start < *newest);
            *newest = end.max(*newest);
        }
    }

    /// Counts a packet that reaches the receiver of data.
    pub fn on_arrived(&mut self, packet: &[u8], counters: &mut OutsideCounters) {
        let Some(Payload { sequence, bytes }) = payload(packet) else { return };
        counters.received_bytes += bytes;
        if let Some(range) = self.range(sequence, bytes) {
            counters.repeated_segments += u64::from(!self.add(range));
        }
    }

    /// Returns the number of bytes that have arrived over TCP, each counted once.
    pub fn arrived_bytes(&self) -> u64 {
        self.arrived.iter().map(|[start, end]| end - start).sum()
    }

    /// Returns the offsets of a segment's payload.
    fn range(&self, sequence: Option<u32>, bytes: u64) -> Option<[u64; 2]> {
        // The first segment is in the middle of the first lap, so that earlier sequence numbers have an offset too.
        let newest = self.sent.unwrap_or(FIRST_LAP | u64::from(sequence?));
        let ahead = sequence?.wrapping_sub(low(newest)).cast_signed();
        let start = newest.saturating_add_signed(i64::from(ahead));
        Some([start, start + bytes])
    }

    /// Adds a range to the data that has arrived. Returns whether any of it is new.
    fn add(&mut self, [mut start, mut end]: [u64; 2]) -> bool {
        if self.arrived.iter().any(|own| own[0] <= start && end <= own[1]) {
            return false;
        }
        self.arrived.retain(|own| {
            let touches = own[0] <= end && start <= own[1];
            if touches {
                (start, end) = (start.min(own[0]), end.max(own[1]));
            }
            !touches
        });
        let place = self.arrived.partition_point(|own| own[0] < start);
        self.arrived.insert(place, [start, end]);
        true
    }
}

const FIRST_LAP: u64 = 1 << 32;

#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
fn low(offset: u64) -> u32 {
    offset as u32
}

/// Returns the payload of a TCP segment or UDP packet; `None` if it has none or is another packet.
fn payload(packet: &[u8]) -> Option<Payload> {
    let (sequence, bytes) = match SlicedPacket::from_ip(packet).ok()?.transport? {
        TransportSlice::Tcp(segment) => (Some(segment.sequence_number()), segment.payload().len()),
        TransportSlice::Udp(packet) => (None, packet.payload().len()),
        _ => return None,
    };
    (bytes > 0).then_some(Payload { sequence, bytes: bytes as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;

    fn tcp(sequence: u32, bytes: usize) -> Vec<u8> {
        let mut packet = Vec::new();
        let headers = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp(1, 2, sequence, 1000);
        headers.write_to_vec(&mut packet, &vec![0; bytes]).unwrap();
        packet
    }

    #[test]
    fn a_segment_that_begins_with_data_sent_before_is_a_retransmission() {
        let (mut segments, mut counters) = (Segments::default(), OutsideCounters::default());
        // The sequence numbers wrap around.
        let first = u32::MAX - 99;
        for (sequence, bytes, retransmitted) in
            [(first, 0, 0), (first, 100, 0), (0, 100, 0), (first, 100, 1), (100, 100, 1), (50, 200, 2), (250, 10, 2)]
        {
            segments.on_sent(&tcp(sequence, bytes), &mut counters);
            assert_eq!(counters.retransmitted_segments, retransmitted, "{sequence}");
        }
        assert_eq!(counters.segments_sent, 6, "an acknowledgement is no data segment");
    }

    #[test]
    fn a_segment_without_new_data_is_repeated() {
        let (mut segments, mut counters) = (Segments::default(), OutsideCounters::default());
        segments.on_sent(&tcp(1000, 100), &mut counters);
        for (sequence, repeated) in
            [(1000, 0), (1200, 0), (1200, 1), (1100, 1), (1150, 2), (1000, 3), (1250, 3), (900, 3)]
        {
            segments.on_arrived(&tcp(sequence, 100), &mut counters);
            assert_eq!(counters.repeated_segments, repeated, "{sequence}");
        }
        assert_eq!((segments.arrived.len(), counters.received_bytes, segments.arrived_bytes()), (1, 800, 450));
    }

    #[test]
    fn packets_over_udp_count_and_are_never_retransmissions() {
        let (mut segments, mut counters) = (Segments::default(), OutsideCounters::default());
        let mut packet = Vec::new();
        let headers = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(1, 2);
        headers.write_to_vec(&mut packet, &[0; 10]).unwrap();
        for _ in 0..2 {
            segments.on_sent(&packet, &mut counters);
            segments.on_arrived(&packet, &mut counters);
        }
        segments.on_sent(b"no packet", &mut counters);
        assert_eq!((counters.segments_sent, counters.retransmitted_segments), (2, 0));
        assert_eq!((counters.received_bytes, counters.repeated_segments), (20, 0));
    }
}
