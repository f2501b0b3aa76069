//! Ticks of clocks, and other events that are due at an instant.

use std::cmp::Reverse;

use super::clocks::ClockKind;
use super::connection::Seen;
use super::frames::Departure;
use super::{EndSystems, emit};
use crate::events::Observer;
use crate::index::FlowIndex;
use crate::units::{Span, Time};

impl EndSystems {
    /// Returns whether the next tick may now be earlier than scheduled: a clock has woken, a sender is paced, pauses or
    /// does not use TCP, or hosts take time to process packets.
    pub fn take_rescheduled(&mut self) -> bool {
        std::mem::take(&mut self.woken) || !self.departures.is_empty() || self.processing.is_some()
    }

    /// Wakes all clocks, because an event is about to affect a connection. Ticks before `until` count as earlier than
    /// the event.
    #[inline]
    pub(super) fn wake_before(&mut self, until: Time) {
        if !self.asleep.is_empty() {
            self.wake(until);
        }
    }

    #[cold]
    fn wake(&mut self, until: Time) {
        for clock in self.asleep.drain(..) {
            self.clocks[clock].wake(until, &mut self.connections);
        }
        self.woken = true;
    }

    /// Returns the next instant at which a clock ticks with an effect, a paced sender may send, a burst begins, a packet
    /// is due, a request opens, or a host has processed a packet.
    pub fn next_tick(&self) -> Option<Time> {
        let departure = self.departures.peek().map(|departure| departure.0.0);
        let done = self.processing.as_ref().and_then(|processing| processing.next());
        let opening = self.requests.as_ref().and_then(|requests| requests.next());
        let ticks = self.clocks.iter().map(|clock| clock.due).filter(|&due| due < Time::NEVER);
        ticks.chain(departure).chain(done).chain(opening).min()
    }

    /// Handles everything due at `now`: first clock ticks (retransmission clocks, then others, by connection), then
    /// paced senders, bursts and packets by index, then new requests by group, and finally processed packets by host.
    /// Returns the number of connections that had a tick.
    pub fn on_tick(&mut self, now: Time, observer: &mut impl Observer, out: &mut Vec<Departure>) -> usize {
        let mut due = std::mem::take(&mut self.due);
        self.asleep.retain(|&clock| self.clocks[clock].due != now);
        for (number, clock) in self.clocks.iter_mut().enumerate().filter(|(_, clock)| clock.due == now) {
            clock.wake(now, &mut self.connections);
            clock.ticks.advance();
            self.ticking.push(number);
            due.extend(clock.flows.iter().map(|&flow| (clock.kind, flow)));
        }
        due.sort_unstable();
        let ticked = due.len();
        for (kind, flow) in due.drain(..) {
            match kind {
                ClockKind::Retransmission => self.on_retransmission_tick(flow, now, observer, out),
                ClockKind::DelayedAck => {
                    if let Some(ack) = self.connections[flow].receiver.on_delayed_ack_tick() {
                        emit::ack_expired(flow, now, observer);
                        self.acknowledge(flow, ack, now, observer, out);
                    }
                }
            }
        }
        self.due = due;
        let after_ticks = now + Span(1);
        while let Some(&Reverse((_, flow))) = self.departures.peek().filter(|departure| departure.0.0 == now) {
            self.departures.pop();
            if self.connections.has_closed(flow) {
                continue;
            }
            let connection = &mut self.connections[flow];
            if connection.packets.is_some() {
                self.emit(flow, now, observer, out);
                continue;
            }
            self.wake_before(after_ticks);
            let before = emit::before(&self.connections, flow, observer);
            let connection = &mut self.connections[flow];
            match connection.bursts.as_mut().filter(|bursts| bursts.next == Some(now)) {
                Some(bursts) => {
                    bursts.next = None;
                    connection.sender.write(bursts.bytes);
                }
                None => connection.departure = None,
            }
            self.send(flow, now, observer, out);
            self.emit_timers(flow, before, now, observer);
        }
        if self.requests.as_ref().is_some_and(|requests| requests.next() == Some(now)) {
            self.wake_before(after_ticks);
            self.open_requests(now, observer, out);
        }
        if let Some(processing) = &mut self.processing {
            processing.leave(now, out);
        }
        for number in self.ticking.drain(..) {
            self.clocks[number].sleep(&self.connections);
            self.asleep.push(number);
        }
        ticked
    }
    fn on_retransmission_tick(
        &mut self,
        flow: FlowIndex,
        now: Time,
        observer: &mut impl Observer,
        out: &mut Vec<Departure>,
    ) {
        let before = emit::before(&self.connections, flow, observer);
        let connection = &mut self.connections[flow];
        let timeouts = connection.sender.counters().timeouts;
        let may_send = connection.sender.on_tick(now);
        if connection.sender.counters().timeouts > timeouts {
            connection.sees(Seen::Timeout, now, 0);
            if !self.connections.is_request(flow) {
                self.timeouts.record(now, flow);
            }
        }
        let before = self.emit_expired(flow, before, now, observer);
        if may_send && self.connections[flow].sender.is_opening() {
            self.send_syn(flow, true, now, observer, out);
        } else if may_send {
            self.send(flow, now, observer, out);
        }
        self.emit_timers(flow, before, now, observer);
    }
}
