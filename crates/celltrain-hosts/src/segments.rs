//! Segments of a flow, derived from packet headers.

use celltrain_core::engine::OutsideCounters;
use celltrain_core::events::{AckKind, ArrivalKind, SegmentStep};
use celltrain_core::tcp::sender::Cause;
use celltrain_core::tcp::{Ack, SackBlocks, Segment};
use etherparse::{SlicedPacket, TransportSlice};

/// The segments of a flow seen at its two ends. Positions are sequence numbers that do not wrap around.
#[derive(Default)]
pub struct Segments {
    /// Position of the first byte of data, once a segment has been sent.
    first: Option<u64>,
    /// Position after the newest data sent.
    sent: u64,
    acknowledged: u64,
    /// Data that has arrived: disjoint ranges of positions, in order.
    arrived: Vec<[u64; 2]>,
    /// Ports of the first segment that arrived.
    ports: Option<[u16; 2]>,
    /// True if some packet was not a segment of this one connection.
    is_mixed: bool,
}

/// The headers of a TCP segment or a UDP packet.
enum Headers {
    Tcp { ports: [u16; 2], sequence: u32, syn: bool, ack: Option<u32>, window: u16, bytes: u32 },
    Udp { bytes: u32 },
}

impl Segments {
    /// Counts a packet that leaves the sender of data.
    pub fn on_sent(&mut self, packet: &[u8], counters: &mut OutsideCounters) -> Option<SegmentStep> {
        let Some(headers) = headers(packet) else {
            counters.unknown_packets += 1;
            return None;
        };
        let (sequence, syn, len) = match headers {
            Headers::Tcp { sequence, syn, bytes, .. } => (sequence, syn, bytes),
            Headers::Udp { bytes } => {
                counters.segments_sent += u64::from(bytes > 0);
                return None;
            }
        };
        if self.first.is_none() {
            // Start in the second cycle of sequence numbers, so that earlier numbers also have a position. A SYN counts
            // as a byte.
            self.sent = LAP + u64::from(sequence) + u64::from(syn);
            self.first = Some(self.sent);
            self.acknowledged = self.sent;
        }
        if len == 0 {
            return None;
        }
        let start = self.position(sequence);
        let is_repeated = start < self.sent;
        counters.segments_sent += 1;
        counters.retransmitted_segments += u64::from(is_repeated);
        self.sent = self.sent.max(start + u64::from(len));
        let segment = Segment { seq: self.offset(start), len };
        Some(if is_repeated {
            SegmentStep::Retransmitted { segment, cause: Cause::Unknown }
        } else {
            SegmentStep::Sent { segment, is_probe: false, is_damaged: false }
        })
    }

    /// Counts a packet that reaches the receiver of data.
    pub fn on_arrived(&mut self, packet: &[u8], counters: &mut OutsideCounters) -> Option<SegmentStep> {
        let Some(headers) = headers(packet) else {
            self.is_mixed = true;
            return None;
        };
        let (sequence, len) = match headers {
            Headers::Tcp { ports, sequence, bytes, .. } => {
                self.is_mixed |= *self.ports.get_or_insert(ports) != ports;
                if bytes == 0 {
                    return None;
                }
                (sequence, bytes)
            }
            Headers::Udp { bytes } => {
                self.is_mixed = true;
                counters.received_bytes += u64::from(bytes);
                return None;
            }
        };
        let start = self.position(sequence);
        counters.received_bytes += u64::from(len);
        let is_new = self.add([start, start + u64::from(len)]);
        let [from, to] = self.arrived[0];
        let kind = match is_new {
            false => ArrivalKind::Repeated,
            true if self.first.is_some_and(|first| from <= first) && start < to => ArrivalKind::InOrder,
            true => ArrivalKind::OutOfOrder,
        };
        counters.repeated_segments += u64::from(kind == ArrivalKind::Repeated);
        Some(SegmentStep::Arrived { segment: Segment { seq: self.offset(start), len }, kind })
    }

    /// Returns the number of bytes of data that have arrived, each counted once.
    pub fn arrived_bytes(&self) -> u64 {
        self.arrived.iter().map(|[start, end]| end - start).sum()
    }

    /// Returns an upper bound on the bytes that the receiver has received; `None` if its packets are not one TCP
    /// connection.
    pub fn most_received(&self) -> Option<u64> {
        (!self.is_mixed).then(|| self.arrived_bytes())
    }

    /// Reads the acknowledgement in a packet that leaves the receiver of data.
    pub fn on_ack_sent(&self, packet: &[u8]) -> Option<SegmentStep> {
        let (position, window) = self.ack(packet)?;
        Some(SegmentStep::AckSent { ack: Ack { ack: self.offset(position), window }, blocks: SackBlocks::NONE })
    }

    /// Reads the acknowledgement in a packet that reaches the sender of data.
    pub fn on_acknowledged(&mut self, packet: &[u8]) -> Option<SegmentStep> {
        let (position, window) = self.ack(packet)?;
        let kind = match position.cmp(&self.acknowledged) {
            std::cmp::Ordering::Greater => AckKind::New,
            std::cmp::Ordering::Equal => AckKind::Duplicate,
            std::cmp::Ordering::Less => AckKind::Old,
        };
        self.acknowledged = self.acknowledged.max(position);
        let ack = Ack { ack: self.offset(position), window };
        Some(SegmentStep::Acknowledged { ack, blocks: SackBlocks::NONE, kind })
    }

    /// Returns the position and the window of an acknowledgement that is not part of the handshake.
    fn ack(&self, packet: &[u8]) -> Option<(u64, u16)> {
        match headers(packet)? {
            Headers::Tcp { syn: false, ack: Some(ack), window, .. } => Some((self.position(ack), window)),
            _ => None,
        }
    }

    /// Returns the position of a sequence number that is less than half a cycle away from the newest data.
    fn position(&self, sequence: u32) -> u64 {
        let ahead = sequence.wrapping_sub(low(self.sent)).cast_signed();
        self.sent.saturating_add_signed(i64::from(ahead))
    }

    /// Returns the number of bytes of data before a position.
    fn offset(&self, position: u64) -> u64 {
        position.saturating_sub(self.first.unwrap_or(position))
    }

    /// Adds a range to the data that has arrived. Returns whether any part of it is new.
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

const LAP: u64 = 1 << 32;

#[expect(clippy::cast_possible_truncation, reason = "the cast keeps the low half on purpose")]
fn low(position: u64) -> u32 {
    position as u32
}

/// Returns the headers of a packet; `None` if it is neither TCP nor UDP.
fn headers(packet: &[u8]) -> Option<Headers> {
    let length = |payload: &[u8]| u32::try_from(payload.len()).unwrap_or(u32::MAX);
    match SlicedPacket::from_ip(packet).ok()?.transport? {
        TransportSlice::Tcp(segment) => Some(Headers::Tcp {
            ports: [segment.source_port(), segment.destination_port()],
            sequence: segment.sequence_number(),
            syn: segment.syn(),
            ack: segment.ack().then(|| segment.acknowledgment_number()),
            window: segment.window_size(),
            bytes: length(segment.payload()),
        }),
        TransportSlice::Udp(packet) => Some(Headers::Udp { bytes: length(packet.payload()) }),
        _ => None,
    }
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
    fn a_segment_that_starts_with_data_already_sent_counts_as_a_retransmission() {
        let (mut segments, mut counters) = (Segments::default(), OutsideCounters::default());
        // The sequence numbers wrap around.
        let first = u32::MAX - 99;
        for (sequence, bytes, retransmitted) in
            [(first, 0, 0), (first, 100, 0), (0, 100, 0), (first, 100, 1), (100, 100, 1), (50, 200, 2), (250, 10, 2)]
        {
            segments.on_sent(&tcp(sequence, bytes), &mut counters);
            assert_eq!(counters.retransmitted_segments, retransmitted, "{sequence}");
        }
        assert_eq!(counters.segments_sent, 6, "an acknowledgement does not count as a data segment");
    }

    #[test]
    fn a_segment_that_contains_no_new_data_counts_as_a_retransmission() {
        let (mut segments, mut counters) = (Segments::default(), OutsideCounters::default());
        segments.on_sent(&tcp(1000, 100), &mut counters);
        for (sequence, repeated) in
            [(1000, 0), (1200, 0), (1200, 1), (1100, 1), (1150, 2), (1000, 3), (1250, 3), (900, 3)]
        {
            segments.on_arrived(&tcp(sequence, 100), &mut counters);
            assert_eq!(counters.repeated_segments, repeated, "{sequence}");
        }
        assert_eq!((segments.arrived.len(), counters.received_bytes), (1, 800));
    }

    #[test]
    fn sequence_numbers_in_events_count_from_the_first_byte_of_data() {
        let (mut segments, mut counters) = (Segments::default(), OutsideCounters::default());
        let mut packet = Vec::new();
        let headers = || PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
        headers().tcp(1, 2, 999, 1000).syn().write_to_vec(&mut packet, &[]).unwrap();
        assert_eq!(segments.on_sent(&packet, &mut counters), None);
        let segment = |seq| Segment { seq, len: 100 };
        let sent = |seq| Some(SegmentStep::Sent { segment: segment(seq), is_probe: false, is_damaged: false });
        assert_eq!([1000, 1100].map(|seq| segments.on_sent(&tcp(seq, 100), &mut counters)), [0, 100].map(sent));
        let again = SegmentStep::Retransmitted { segment: segment(0), cause: Cause::Unknown };
        assert_eq!(segments.on_sent(&tcp(1000, 100), &mut counters), Some(again));
        let kinds = [(1100, ArrivalKind::OutOfOrder), (1000, ArrivalKind::InOrder), (1000, ArrivalKind::Repeated)];
        for (seq, kind) in kinds {
            let step = segments.on_arrived(&tcp(seq, 100), &mut counters);
            assert_eq!(step, Some(SegmentStep::Arrived { segment: segment(u64::from(seq) - 1000), kind }));
        }
        for (ack, kind) in [(1100, AckKind::New), (1100, AckKind::Duplicate), (1000, AckKind::Old)] {
            let mut packet = Vec::new();
            headers().tcp(2, 1, 7, 500).ack(ack).write_to_vec(&mut packet, &[]).unwrap();
            let (ack, blocks) = (Ack { ack: u64::from(ack) - 1000, window: 500 }, SackBlocks::NONE);
            assert_eq!(segments.on_ack_sent(&packet), Some(SegmentStep::AckSent { ack, blocks }));
            assert_eq!(segments.on_acknowledged(&packet), Some(SegmentStep::Acknowledged { ack, blocks, kind }));
        }
    }

    #[test]
    fn a_connection_never_receives_more_bytes_than_its_peer_sent() {
        let (mut segments, mut counters) = (Segments::default(), OutsideCounters::default());
        assert_eq!(segments.most_received(), Some(0));
        segments.on_sent(&tcp(1000, 512), &mut counters);
        for (sequence, most) in [(1000, 512), (1000, 512), (2024, 1024), (1256, 1280)] {
            segments.on_arrived(&tcp(sequence, 512), &mut counters);
            assert_eq!(segments.most_received(), Some(most), "{sequence}");
        }
        let mut other = Vec::new();
        let headers = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp(3, 2, 1000, 1000);
        headers.write_to_vec(&mut other, &[0; 512]).unwrap();
        segments.on_arrived(&other, &mut counters);
        assert_eq!(segments.most_received(), None, "two connections have separate sequence numbers");
    }

    #[test]
    fn udp_packets_are_counted_but_never_as_retransmissions() {
        let (mut segments, mut counters) = (Segments::default(), OutsideCounters::default());
        let mut packet = Vec::new();
        let headers = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(1, 2);
        headers.write_to_vec(&mut packet, &[0; 10]).unwrap();
        for _ in 0..2 {
            segments.on_sent(&packet, &mut counters);
            segments.on_arrived(&packet, &mut counters);
        }
        segments.on_sent(b"no packet", &mut counters);
        assert_eq!((counters.segments_sent, counters.retransmitted_segments, counters.unknown_packets), (2, 0, 1));
        assert_eq!((counters.received_bytes, counters.repeated_segments), (20, 0));
    }
}
