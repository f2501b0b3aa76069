//! Events that end systems report to a watcher. If the watcher has `WATCHES` unset, every function here does nothing.

use super::connection::Packets;
use super::{Body, Connection, Departure, EndSystems};
use crate::cell::FrameNumber;
use crate::events::{
    AckNews, Event, Failure, FrameEvent, FrameStep, News, SegmentEvent, SegmentStep, Timer, TimerEvent, TimerStep,
    Watcher,
};
use crate::index::{FlowIndex, VcIndex};
use crate::tcp::sender::SenderCounters;
use crate::tcp::{Ack, SackBlocks, Segment, Sender};
use crate::units::Time;

/// A snapshot of a connection before an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    /// Ticks left on the retransmission and persist timers.
    timers: [u64; 2],
    ack_waits: bool,
    sent: SenderCounters,
    acknowledged: u64,
    delivered: u64,
    repeated: u64,
}

/// A flow, and the number of one of its frames within the VC.
type FrameOf = (FlowIndex, FrameNumber);

/// Takes a snapshot of a connection if the watcher wants events.
#[inline]
pub(super) fn before<P: Watcher>(connection: &Connection, _probe: &P) -> Option<Before> {
    P::WATCHES.then(|| {
        let Connection { sender, receiver, .. } = connection;
        Before {
            timers: sender.timers(),
            ack_waits: receiver.ack_waits(),
            sent: sender.counters(),
            acknowledged: sender.acknowledged(),
            delivered: receiver.delivered(),
            repeated: receiver.counters().repeated_segments,
        }
    })
}

impl EndSystems {
    /// Reports an arrived segment.
    #[inline]
    pub(super) fn tell_arrived(
        &self,
        (flow, frame): FrameOf,
        segment: Segment,
        before: Option<Before>,
        now: Time,
        watcher: &mut impl Watcher,
    ) {
        let Some(before) = before else { return };
        let Connection { sender, receiver, data_vc, .. } = &self.flows[flow];
        let news = if receiver.counters().repeated_segments > before.repeated {
            News::Repeated
        } else if receiver.delivered() > before.delivered {
            News::InOrder
        } else {
            News::OutOfOrder
        };
        let step = SegmentStep::Arrived { segment, news };
        let event = SegmentEvent { flow, vc: *data_vc, frame, step, sender: Some(sender.state()) };
        watcher.on_event(now, Event::Segment(event));
    }

    /// Reports the arrival of a packet sent without TCP.
    #[inline]
    pub(super) fn tell_packet_arrived<P: Watcher>(
        &self,
        (flow, frame): FrameOf,
        packet: u64,
        now: Time,
        watcher: &mut P,
    ) {
        if P::WATCHES {
            let Connection { data_vc, packets, .. } = &self.flows[flow];
            let bytes = packets.as_ref().map_or(0, |packets| packets.bytes);
            let step = SegmentStep::Arrived { segment: place_of(packet, bytes), news: News::InOrder };
            watcher.on_event(now, Event::Segment(SegmentEvent { flow, vc: *data_vc, frame, step, sender: None }));
        }
    }

    /// Reports an arrived acknowledgement.
    #[inline]
    pub(super) fn tell_acknowledged(
        &self,
        (flow, frame): FrameOf,
        (ack, blocks): (Ack, SackBlocks),
        before: Option<Before>,
        now: Time,
        watcher: &mut impl Watcher,
    ) {
        let Some(before) = before else { return };
        let Connection { sender, ack_vc, .. } = &self.flows[flow];
        let news = match ack.ack.cmp(&before.acknowledged) {
            std::cmp::Ordering::Greater => AckNews::New,
            std::cmp::Ordering::Equal => AckNews::Duplicate,
            std::cmp::Ordering::Less => AckNews::Old,
        };
        let step = SegmentStep::Acknowledged { ack, blocks, news };
        let event = SegmentEvent { flow, vc: *ack_vc, frame, step, sender: Some(sender.state()) };
        watcher.on_event(now, Event::Segment(event));
    }

    /// Reports the timers that expired at a tick of the retransmission clock. Returns the snapshot as changed by the
    /// tick alone.
    #[inline]
    pub(super) fn tell_expired(
        &self,
        flow: FlowIndex,
        before: Option<Before>,
        now: Time,
        watcher: &mut impl Watcher,
    ) -> Option<Before> {
        let mut before = before?;
        let sent = self.flows[flow].sender.counters();
        let [retransmission, persist] = before.timers;
        let ran_out = [sent.timeouts > before.sent.timeouts, persist == 1];
        before.timers = [retransmission.saturating_sub(1), persist.saturating_sub(1)];
        for ((timer, ran_out), left) in TIMERS.into_iter().zip(ran_out).zip(&mut before.timers) {
            if ran_out {
                *left = 0;
                tell_timer(flow, timer, TimerStep::Expired, now, watcher);
            }
        }
        Some(before)
    }

    /// Reports timers that started, stopped or changed their number of ticks left.
    #[inline]
    pub(super) fn tell_timers(&self, flow: FlowIndex, before: Option<Before>, now: Time, watcher: &mut impl Watcher) {
        let Some(before) = before else { return };
        let Connection { sender, receiver, .. } = &self.flows[flow];
        let [retransmission, persist] = sender.timers();
        let waits = [u64::from(before.ack_waits), u64::from(receiver.ack_waits())];
        let changes = [[before.timers[0], retransmission], [before.timers[1], persist], waits];
        for (timer, [before, left]) in TIMERS.into_iter().chain([Timer::DelayedAck]).zip(changes) {
            let step = match (before, left) {
                (before, left) if before == left => continue,
                (0, left) => TimerStep::Started { left },
                (_, 0) => TimerStep::Stopped,
                (_, left) => TimerStep::Restarted { left },
            };
            tell_timer(flow, timer, step, now, watcher);
        }
    }
}

/// The timers of a sender, in the order of [`Sender::timers`].
const TIMERS: [Timer; 2] = [Timer::Retransmission, Timer::Persist];

fn tell_timer(flow: FlowIndex, timer: Timer, step: TimerStep, now: Time, watcher: &mut impl Watcher) {
    watcher.on_event(now, Event::Timer(TimerEvent { flow, timer, step }));
}

/// Reports that a tick of the delayed-acknowledgement clock released an acknowledgement.
#[inline]
pub(super) fn ack_expired<P: Watcher>(flow: FlowIndex, now: Time, watcher: &mut P) {
    if P::WATCHES {
        tell_timer(flow, Timer::DelayedAck, TimerStep::Expired, now, watcher);
    }
}

/// Reports that a frame reached its destination host.
#[inline]
pub(super) fn ended<P: Watcher>(vc: VcIndex, frame: FrameNumber, body: &Body, now: Time, watcher: &mut P) {
    if P::WATCHES {
        let step = match body {
            Body::Damaged => FrameStep::Failed(Failure::Damaged),
            Body::Data { .. } | Body::Ack { .. } | Body::Packet { .. } | Body::Outside { .. } => FrameStep::Delivered,
        };
        watcher.on_event(now, Event::Frame(FrameEvent { vc, frame, step }));
    }
}

/// Reports a sent segment. `resent` holds the number of retransmissions so far.
#[inline]
pub(super) fn sent<P: Watcher>(
    connection: &Connection,
    Departure { vc, frame, .. }: Departure,
    (flow, segment, is_damaged): (FlowIndex, Segment, bool),
    resent: &mut u64,
    now: Time,
    watcher: &mut P,
) {
    if P::WATCHES {
        let sender = &connection.sender;
        let now_resent = sender.counters().retransmitted_segments;
        let step = if now_resent > std::mem::replace(resent, now_resent) {
            SegmentStep::Retransmitted { segment, cause: sender.cause() }
        } else {
            SegmentStep::Sent { segment, is_probe: sender.has_probed_with(segment), is_damaged }
        };
        let event = SegmentEvent { flow, vc, frame, step, sender: Some(sender.state()) };
        watcher.on_event(now, Event::Segment(event));
    }
}

/// Reports a packet sent without TCP.
#[inline]
pub(super) fn packet_sent<P: Watcher>(
    packets: &Packets,
    Departure { vc, frame, .. }: Departure,
    (flow, number): (FlowIndex, u64),
    now: Time,
    watcher: &mut P,
) {
    if P::WATCHES {
        let segment = place_of(number, packets.bytes);
        let step = SegmentStep::Sent { segment, is_probe: false, is_damaged: false };
        watcher.on_event(now, Event::Segment(SegmentEvent { flow, vc, frame, step, sender: None }));
    }
}

/// Reports a sent acknowledgement.
#[inline]
pub(super) fn ack_sent<P: Watcher>(
    sender: &Sender,
    Departure { vc, frame, .. }: Departure,
    (flow, ack, blocks): (FlowIndex, Ack, Option<SackBlocks>),
    now: Time,
    watcher: &mut P,
) {
    if P::WATCHES {
        let step = SegmentStep::AckSent { ack, blocks: blocks.unwrap_or(SackBlocks::NONE) };
        let event = SegmentEvent { flow, vc, frame, step, sender: Some(sender.state()) };
        watcher.on_event(now, Event::Segment(event));
    }
}

/// Returns the range of a packet's payload among all bytes sent.
fn place_of(packet: u64, bytes: u64) -> Segment {
    let len = u32::try_from(bytes).expect("scenario checks bound the size of packets");
    Segment { seq: packet.saturating_mul(bytes), len }
}
