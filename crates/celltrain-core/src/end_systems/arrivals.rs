//! Cells and frames that reach their host.

use std::cmp::Reverse;

use super::connection::Seen;
use super::frames::{Body, Departure};
use super::outside::Delivered;
use super::{ArrivedAck, EndSystems, emit};
use crate::aal5::{Frame, Reassembled, Reassembler};
use crate::cell::{FrameNumber, Run};
use crate::coverage::reached;
use crate::events::{Failure, Observer};
use crate::index::{FlowIndex, VcIndex};
use crate::tcp::{SackBlocks, Segment};
use crate::units::Time;

/// Cells that the receiving host of a VC has collected.
#[derive(Clone, Default)]
#[repr(align(32))]
pub(super) struct Collection {
    pub(super) reassembler: Reassembler,
    pub(super) delivered: u64,
    pub(super) damaged: u64,
}

/// A frame of a flow that reaches its host.
#[derive(Clone, Copy)]
struct Arrival {
    flow: FlowIndex,
    number: FrameNumber,
    marked: bool,
    now: Time,
}

impl EndSystems {
    /// Collects cells of `vc` at the host where it ends. Returns the frame's number if they complete a frame. Cells of
    /// a VC must be passed in order. They may be passed before they arrive, because they have no effect until
    /// [`EndSystems::deliver`] is called. Calls `report` with the number of each failed frame and the reason: its last
    /// cell arrived but did not complete it, or, with packet framing, its last cell was lost.
    #[inline]
    pub fn collect(
        &mut self,
        vc: VcIndex,
        run: Run,
        mut report: impl FnMut(FrameNumber, Failure),
    ) -> Option<FrameNumber> {
        let Collection { reassembler, delivered, damaged } = &mut self.collections[vc];
        *delivered += u64::from(run.cells);
        match reassembler.on_run(run, self.max_cells, |frame| self.vcs.cells_of(vc, frame)) {
            Reassembled::Incomplete => None,
            Reassembled::Packet => self.collect_packet(vc, run, |frame| report(frame, Failure::Incomplete)),
            Reassembled::Damaged { cells } => {
                *damaged += u64::from(cells);
                if run.last.last_cell() {
                    let why = if reassembler.is_mixed() { Failure::Joined } else { Failure::Incomplete };
                    report(run.last.frame, why);
                }
                None
            }
            Reassembled::Whole(frame) => {
                if run.last.efci() {
                    self.vcs.mark(vc, frame);
                }
                Some(frame)
            }
        }
    }

    /// Collects cells of a packet, with packet framing. Calls `failed` with the number of each packet that has failed.
    #[inline(never)]
    fn collect_packet(&mut self, vc: VcIndex, run: Run, failed: impl FnMut(FrameNumber)) -> Option<FrameNumber> {
        let Collection { reassembler, damaged, .. } = &mut self.collections[vc];
        let (whole, discarded) = reassembler.on_packet_run(run, |frame| self.vcs.cells_of(vc, frame), failed);
        *damaged += u64::from(discarded);
        if whole.is_some() && run.last.efci() {
            self.vcs.mark(vc, run.last.frame);
        }
        whole
    }

    /// Marks a frame of `vc` in transit, because an edge device receives its last cell with a mark from a switch.
    pub(crate) fn mark(&mut self, vc: VcIndex, frame: FrameNumber) {
        self.vcs.mark(vc, frame);
    }

    /// Delivers a complete frame of `vc` at the instant its last cell arrives.
    pub fn deliver(
        &mut self,
        vc: VcIndex,
        number: FrameNumber,
        now: Time,
        observer: &mut impl Observer,
        out: &mut Vec<Departure>,
    ) {
        self.wake_before(now);
        let sender = self.vcs.sender_of(vc, number);
        let oldest = self.vcs.oldest_after(sender, number);
        let log = &mut self.vcs.get_mut(sender).log;
        log.forget_before(oldest);
        let Frame { body, marked, .. } = log.frame(number);
        emit::ended(sender, number, &body, now, observer);
        let has_requests = self.requests.is_some();
        if has_requests && !self.is_expected(sender, number, oldest) {
            reached!(FrameAfterClose);
            return;
        }
        match body {
            Body::Data { flow, segment, sent, reduced, capable } => {
                // Only an ECN-capable segment can carry a mark for TCP. Marks on other segments come from ABR switches.
                let arrival = Arrival { flow, number, marked: marked && capable, now };
                if let Some(delays) = &mut self.delays {
                    delays.on_delivered(flow, sent, now);
                }
                self.deliver_segment(arrival, segment, (reduced, capable), observer, out);
                if has_requests && self.connections.is_request(flow) {
                    self.on_progress(flow, now, observer);
                }
            }
            Body::Ack { flow, ack, echoes } => {
                let arrived = ArrivedAck { flow, vc: sender, frame: number, ack, echoes, marked };
                self.deliver_ack(arrived, oldest, now, observer, out);
            }
            Body::Syn { flow } => self.deliver_syn((flow, number, marked), now, observer, out),
            Body::SynAck { flow } => self.deliver_syn_ack((flow, number, marked), now, observer, out),
            Body::Packet { flow, number: packet, sent } => {
                self.deliver_packet(flow, packet, sent, now);
                self.emit_packet_arrived((flow, number), packet, now, observer);
            }
            Body::Damaged { .. } => {
                let cells = self.vcs.get(sender).log.frame(number).cells;
                self.collections[vc].damaged += u64::from(cells);
            }
            Body::Outside { tag, capable, .. } => {
                let cells = self.vcs.get(sender).log.frame(number).cells;
                let outside = self.outside.as_mut().expect("only injected frames belong to external end systems");
                outside.receive(Delivered { time: now, vc: sender, tag, marked: marked && capable }, cells);
            }
        }
    }

    /// Delivers a segment to a connection's receiver, and sends the acknowledgement if it is due.
    fn deliver_segment(
        &mut self,
        arrival: Arrival,
        segment: Segment,
        (reduced, capable): (bool, bool),
        observer: &mut impl Observer,
        out: &mut Vec<Departure>,
    ) {
        let Arrival { flow, number, marked, now } = arrival;
        let before = emit::before(&self.connections, flow, observer);
        let mut connection = &mut self.connections[flow];
        connection.sees(Seen::Segment, now, segment.seq);
        if let Some(earlier) = connection.receiver.acknowledge_before(marked) {
            self.acknowledge(flow, earlier, now, observer, out);
            connection = &mut self.connections[flow];
        }
        connection.receiver.on_mark(marked, reduced);
        let ack = connection.receiver.on_segment(segment);
        self.emit_arrived((flow, number), (segment, capable, marked), before, now, observer);
        if let Some(ack) = ack {
            self.acknowledge(flow, ack, now, observer, out);
        }
        self.emit_timers(flow, before, now, observer);
    }

    /// Delivers a packet sent without TCP.
    fn deliver_packet(&mut self, flow: FlowIndex, packet: u64, sent: Time, now: Time) {
        let connection = &mut self.connections[flow];
        connection.sees(Seen::Packet, now, packet);
        let packets = connection.packets.as_mut().expect("a flow without TCP counts its packets");
        packets.counters.delivered += 1;
        packets.counters.delivered_bytes += packets.bytes;
        if let Some(delays) = &mut self.delays {
            delays.on_delivered(flow, sent, now);
        }
    }

    /// Delivers an acknowledgement. Its VC no longer needs the records of frames before `oldest`.
    fn deliver_ack(
        &mut self,
        arrived: ArrivedAck,
        oldest: FrameNumber,
        now: Time,
        observer: &mut impl Observer,
        out: &mut Vec<Departure>,
    ) {
        let ArrivedAck { flow, vc, frame, ack, echoes, .. } = arrived;
        if let Some(delays) = &mut self.delays {
            delays.on_ack(flow, ack.ack, now);
        }
        let before = emit::before(&self.connections, flow, observer);
        let connection = &mut self.connections[flow];
        connection.sees(Seen::Ack, now, ack.ack);
        connection.sender.on_echo(echoes);
        let mut reported = SackBlocks::NONE;
        match self.vcs.blocks(vc) {
            None => connection.sender.on_ack(ack, &SackBlocks::NONE, now),
            Some(log) => {
                log.forget_before(oldest);
                reported = log.frame(frame).body;
                connection.sender.on_ack(ack, &reported, now);
            }
        }
        let has_ended = connection.sender.has_ended();
        self.emit_acknowledged(arrived, reported, before, now, observer);
        let closes = has_ended && self.on_all_acknowledged(flow, now);
        self.send(flow, now, observer, out);
        self.emit_timers(flow, before, now, observer);
        if closes {
            self.close(flow, now, observer);
        }
    }

    /// Records that a receiver has acknowledged everything that its sender had to send. Returns whether the connection
    /// closes.
    #[inline(never)]
    fn on_all_acknowledged(&mut self, flow: FlowIndex, now: Time) -> bool {
        let connection = &mut self.connections[flow];
        match &mut connection.bursts {
            None => {
                connection.ended.get_or_insert(now);
                return self.connections.is_request(flow);
            }
            Some(bursts) if bursts.next.is_none() => {
                let next = now + bursts.pauses.next_pause();
                bursts.next = Some(next);
                self.departures.push(Reverse((next, flow)));
            }
            // A repeated segment arrived during the pause and was acknowledged.
            Some(_) => reached!(AckDuringPause),
        }
        false
    }
}
