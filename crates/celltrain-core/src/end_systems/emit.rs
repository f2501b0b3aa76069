//! Events that end systems report to an observer. If the observer's `OBSERVES` is false, these functions do nothing.

use super::connection::Packets;
use super::connections::Connections;
use super::{ArrivedAck, Body, Connection, Departure, EndSystems};
use crate::cell::{Cell, FrameNumber};
use crate::events::{
    AckKind, ArrivalKind, EcnBits, Event, Failure, FrameEvent, FrameStep, HandshakeStep, Observer, RequestEvent,
    RequestStep, SegmentEvent, SegmentStep, Timer, TimerEvent, TimerStep,
};
use crate::index::{FlowIndex, VcIndex};
use crate::tcp::sender::SenderCounters;
use crate::tcp::{Ack, SackBlocks, Segment};
use crate::units::Time;

/// A snapshot of a connection, taken before an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    /// Remaining ticks of the retransmission and persist timers.
    timers: [u64; 2],
    ack_delay: u32,
    sent: SenderCounters,
    acknowledged: u64,
    delivered: u64,
    repeated: u64,
}

/// A flow, and the number of one of its frames.
type FrameOf = (FlowIndex, FrameNumber);

/// Takes a snapshot of a connection if the observer wants events.
#[inline]
pub(super) fn before<P: Observer>(connections: &Connections, flow: FlowIndex, _probe: &P) -> Option<Before> {
    P::OBSERVES.then(|| {
        let Connection { sender, receiver, .. } = &connections[flow];
        Before {
            timers: sender.timers(),
            ack_delay: receiver.ack_delay(),
            sent: sender.counters(),
            acknowledged: sender.acknowledged(),
            delivered: receiver.delivered(),
            repeated: receiver.counters().repeated_segments,
        }
    })
}

impl EndSystems {
    #[inline]
    pub(super) fn emit_arrived(
        &self,
        (flow, frame): FrameOf,
        (segment, capable, marked): (Segment, bool, bool),
        before: Option<Before>,
        now: Time,
        observer: &mut impl Observer,
    ) {
        let Some(before) = before else { return };
        let Connection { sender, receiver, data_vc, .. } = &self.connections[flow];
        let ecn = EcnBits { capable, marked, ..EcnBits::default() };
        let kind = if receiver.counters().repeated_segments > before.repeated {
            ArrivalKind::Repeated
        } else if receiver.delivered() > before.delivered {
            ArrivalKind::InOrder
        } else {
            ArrivalKind::OutOfOrder
        };
        let step = SegmentStep::Arrived { segment, kind };
        let event = SegmentEvent { flow, vc: *data_vc, frame, step, sender: Some(sender.state()), ecn };
        observer.on_event(now, Event::Segment(event));
    }

    /// Reports the arrival of a packet sent without TCP.
    #[inline]
    pub(super) fn emit_packet_arrived<P: Observer>(
        &self,
        (flow, frame): FrameOf,
        packet: u64,
        now: Time,
        observer: &mut P,
    ) {
        if P::OBSERVES {
            let Connection { data_vc, packets, .. } = &self.connections[flow];
            let bytes = packets.as_ref().map_or(0, |packets| packets.bytes);
            let step = SegmentStep::Arrived { segment: place_of(packet, bytes), kind: ArrivalKind::InOrder };
            let ecn = EcnBits::default();
            observer.on_event(now, Event::Segment(SegmentEvent { flow, vc: *data_vc, frame, step, sender: None, ecn }));
        }
    }

    /// Reports an arrived acknowledgement.
    #[inline]
    pub(super) fn emit_acknowledged(
        &self,
        ArrivedAck { flow, frame, ack, echoes: echo, marked, .. }: ArrivedAck,
        blocks: SackBlocks,
        before: Option<Before>,
        now: Time,
        observer: &mut impl Observer,
    ) {
        let Some(before) = before else { return };
        let Connection { sender, ack_vc, .. } = &self.connections[flow];
        let kind = match ack.ack.cmp(&before.acknowledged) {
            std::cmp::Ordering::Greater => AckKind::New,
            std::cmp::Ordering::Equal => AckKind::Duplicate,
            std::cmp::Ordering::Less => AckKind::Old,
        };
        let step = SegmentStep::Acknowledged { ack, blocks, kind };
        let capable = sender.acknowledges_capable();
        let ecn = EcnBits { capable, marked: marked && capable, echo, ..EcnBits::default() };
        let event = SegmentEvent { flow, vc: *ack_vc, frame, step, sender: Some(sender.state()), ecn };
        observer.on_event(now, Event::Segment(event));
    }

    /// Reports a step of a connection's handshake.
    #[inline]
    pub(super) fn emit_handshake<P: Observer>(
        &self,
        (flow, frame): FrameOf,
        vc: VcIndex,
        (step, marked): (HandshakeStep, bool),
        now: Time,
        observer: &mut P,
    ) {
        if P::OBSERVES {
            let sender = &self.connections[flow].sender;
            let capable = sender.opens_capable();
            let ecn = EcnBits { capable, marked: marked && capable, ..EcnBits::default() };
            let (sender, step) = (Some(sender.state()), SegmentStep::Handshake(step));
            let event = SegmentEvent { flow, vc, frame, step, sender, ecn };
            observer.on_event(now, Event::Segment(event));
        }
    }

    /// Reports that the running timers of a connection stop because the connection closes.
    #[inline]
    pub(super) fn emit_stopped_timers<P: Observer>(&self, flow: FlowIndex, now: Time, observer: &mut P) {
        if P::OBSERVES {
            let Connection { sender, receiver, .. } = &self.connections[flow];
            let [retransmission, persist] = sender.timers().map(|left| left > 0);
            let running = [retransmission, persist, receiver.ack_delay() > 0];
            for (timer, _) in TIMERS.into_iter().chain([Timer::DelayedAck]).zip(running).filter(|(_, runs)| *runs) {
                emit_timer(flow, timer, TimerStep::Stopped, now, observer);
            }
        }
    }

    /// Reports the timers that expired at a tick of the retransmission clock. Returns the state of the timers directly
    /// after the tick.
    #[inline]
    pub(super) fn emit_expired(
        &self,
        flow: FlowIndex,
        before: Option<Before>,
        now: Time,
        observer: &mut impl Observer,
    ) -> Option<Before> {
        let mut before = before?;
        let sent = self.connections[flow].sender.counters();
        let [retransmission, persist] = before.timers;
        let ran_out = [sent.timeouts > before.sent.timeouts, persist == 1];
        before.timers = [retransmission.saturating_sub(1), persist.saturating_sub(1)];
        // RFC 3168 (6.1.2): after a mark, a sender with a cwnd of one segment waits for the timer, with nothing in flight.
        if retransmission == 1 && !ran_out[0] {
            emit_timer(flow, Timer::Retransmission, TimerStep::Stopped, now, observer);
        }
        for ((timer, ran_out), left) in TIMERS.into_iter().zip(ran_out).zip(&mut before.timers) {
            if ran_out {
                *left = 0;
                emit_timer(flow, timer, TimerStep::Expired, now, observer);
            }
        }
        Some(before)
    }

    /// Reports timers that started, stopped or have a different number of ticks left.
    #[inline]
    pub(super) fn emit_timers(&self, flow: FlowIndex, before: Option<Before>, now: Time, observer: &mut impl Observer) {
        let Some(before) = before else { return };
        let Connection { sender, receiver, .. } = &self.connections[flow];
        let [retransmission, persist] = sender.timers();
        let waits = [before.ack_delay, receiver.ack_delay()].map(u64::from);
        let changes = [[before.timers[0], retransmission], [before.timers[1], persist], waits];
        for (timer, [before, left]) in TIMERS.into_iter().chain([Timer::DelayedAck]).zip(changes) {
            let step = match (before, left) {
                (before, left) if before == left => continue,
                (0, left) => TimerStep::Started { left },
                (_, 0) => TimerStep::Stopped,
                (_, left) => TimerStep::Restarted { left },
            };
            emit_timer(flow, timer, step, now, observer);
        }
    }
}

/// The timers of a sender, in the same order as `Sender::timers`.
const TIMERS: [Timer; 2] = [Timer::Retransmission, Timer::Persist];

fn emit_timer(flow: FlowIndex, timer: Timer, step: TimerStep, now: Time, observer: &mut impl Observer) {
    observer.on_event(now, Event::Timer(TimerEvent { flow, timer, step }));
}

#[inline]
pub(super) fn request<P: Observer>(flow: FlowIndex, step: RequestStep, now: Time, observer: &mut P) {
    if P::OBSERVES {
        observer.on_event(now, Event::Request(RequestEvent { flow, step }));
    }
}

/// Reports an acknowledgement sent because of a tick of the delayed-acknowledgement clock.
#[inline]
pub(super) fn ack_expired<P: Observer>(flow: FlowIndex, now: Time, observer: &mut P) {
    if P::OBSERVES {
        emit_timer(flow, Timer::DelayedAck, TimerStep::Expired, now, observer);
    }
}

/// Reports that a frame reached its destination host.
#[inline]
pub(super) fn ended<P: Observer>(vc: VcIndex, frame: FrameNumber, body: &Body, now: Time, observer: &mut P) {
    if P::OBSERVES {
        let step = match body {
            Body::Damaged { .. } => FrameStep::Failed(Failure::Damaged),
            Body::Data { .. }
            | Body::Ack { .. }
            | Body::Syn { .. }
            | Body::SynAck { .. }
            | Body::Packet { .. }
            | Body::Outside { .. } => FrameStep::Delivered,
        };
        observer.on_event(now, Event::Frame(FrameEvent { vc, frame, step }));
    }
}

/// Reports a segment that was sent. `resent` is the number of earlier retransmissions, which this function updates.
#[inline]
pub(super) fn sent<P: Observer>(
    connection: &Connection,
    Departure { vc, last: Cell { frame, .. }, .. }: Departure,
    (flow, segment, is_damaged): (FlowIndex, Segment, bool),
    resent: &mut u64,
    now: Time,
    observer: &mut P,
) {
    if P::OBSERVES {
        let sender = &connection.sender;
        let now_resent = sender.counters().retransmitted_segments;
        let step = if now_resent > std::mem::replace(resent, now_resent) {
            SegmentStep::Retransmitted { segment, cause: sender.cause() }
        } else {
            SegmentStep::Sent { segment, is_probe: sender.has_probed_with(segment), is_damaged }
        };
        let ecn =
            EcnBits { capable: sender.sends_capable(), reduced: sender.reports_reduction(), ..EcnBits::default() };
        let event = SegmentEvent { flow, vc, frame, step, sender: Some(sender.state()), ecn };
        observer.on_event(now, Event::Segment(event));
    }
}

/// Reports a packet sent without TCP.
#[inline]
pub(super) fn packet_sent<P: Observer>(
    packets: &Packets,
    Departure { vc, last: Cell { frame, .. }, .. }: Departure,
    (flow, number): (FlowIndex, u64),
    now: Time,
    observer: &mut P,
) {
    if P::OBSERVES {
        let segment = place_of(number, packets.bytes);
        let step = SegmentStep::Sent { segment, is_probe: false, is_damaged: false };
        let ecn = EcnBits::default();
        observer.on_event(now, Event::Segment(SegmentEvent { flow, vc, frame, step, sender: None, ecn }));
    }
}

#[inline]
pub(super) fn ack_sent<P: Observer>(
    Connection { sender, receiver, .. }: &Connection,
    Departure { vc, last: Cell { frame, .. }, .. }: Departure,
    (flow, ack, blocks): (FlowIndex, Ack, Option<SackBlocks>),
    now: Time,
    observer: &mut P,
) {
    if P::OBSERVES {
        let step = SegmentStep::AckSent { ack, blocks: blocks.unwrap_or(SackBlocks::NONE) };
        let (capable, echo) = (sender.acknowledges_capable(), receiver.echoes_mark());
        let ecn = EcnBits { capable, echo, ..EcnBits::default() };
        let event = SegmentEvent { flow, vc, frame, step, sender: Some(sender.state()), ecn };
        observer.on_event(now, Event::Segment(event));
    }
}

/// Returns the position of a packet's payload among all bytes sent.
pub(super) fn place_of(packet: u64, bytes: u64) -> Segment {
    let len = u32::try_from(bytes).expect("scenario checks limit the size of packets");
    Segment { seq: packet.saturating_mul(bytes), len }
}
