//! Delivery-rate samples: how fast the network delivered the data that an acknowledgement reports.
//!
//! Source: draft-ietf-ccwg-bbr, 4.1 (before: draft-cheng-iccrg-delivery-rate-estimation), whose names are used. Counts
//! are segments. Differences from the source: a segment with a byte of a window probe counts as one segment; data sent
//! again counts as lost, even if no report shows the loss. State per segment exists only if the control needs it.

use std::collections::VecDeque;

use crate::units::{Span, Time};

/// State of a connection's delivery-rate samples.
#[derive(Debug)]
pub struct DeliveryRate {
    /// `C.has_selective_acks`: true if the receiver reports data beyond a gap.
    pub selective: bool,
    /// `C.delivered`: segments delivered.
    delivered: u64,
    /// `C.delivered_time`.
    delivered_time: Time,
    /// `C.first_send_time`: send time of the segment delivered last.
    first_send_time: Time,
    /// `C.lost`: segments declared lost.
    lost: u64,
    /// `C.inflight`.
    in_flight: u64,
    /// `C.lost_out` without `C.retrans_out`: segments declared lost and not sent again.
    unsent_losses: u64,
    /// `C.app_limited`.
    app_limited: u64,
    /// `C.min_rtt`.
    min_rtt: Option<Span>,
    limited: CwndLimited,
    packets: VecDeque<Packet>,
    /// Reports of the receiver have been evaluated below this offset.
    examined_to: u64,
    newest: Option<Newest>,
    newly_acked: u64,
}

/// `C.is_cwnd_limited`: whether cwnd was full in the current and in the previous round trip.
#[derive(Clone, Copy, Debug, Default)]
struct CwndLimited {
    now: bool,
    before: bool,
}

/// A segment and the state of the connection when it was last sent.
#[derive(Clone, Copy, Debug)]
struct Packet {
    seq: u64,
    end: u64,
    state: State,
    again: bool,
    sent: Sent,
}

/// Per-segment values `P.*`.
#[derive(Clone, Copy, Debug)]
struct Sent {
    time: Time,
    first_send_time: Time,
    delivered: u64,
    delivered_time: Time,
    lost: u64,
    in_flight: u64,
    app_limited: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InFlight,
    Lost,
    Delivered,
}

/// The segment sent last among those that an acknowledgement reports.
#[derive(Clone, Copy, Debug)]
struct Newest {
    end: u64,
    again: bool,
    sent: Sent,
    /// `RS.send_elapsed` and `RS.ack_elapsed`.
    elapsed: [Span; 2],
}

/// The sample of an acknowledgement, `RS.*`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// `RS.delivered`: segments delivered over `interval`.
    pub delivered: u64,
    /// `RS.interval`; `None` if the sample is not reliable, because it is shorter than any round trip.
    pub interval: Option<Span>,
    /// `RS.prior_delivered`.
    pub prior_delivered: u64,
    /// `RS.rtt`; `None` if the segment was sent more than once.
    pub rtt: Option<Span>,
    /// `RS.newly_acked`.
    pub newly_acked: u64,
    /// `RS.lost`: segments declared lost since the segment was sent.
    pub lost: u64,
    /// `RS.tx_in_flight`: segments in flight when the segment was sent.
    pub in_flight: u64,
    /// `RS.is_app_limited`.
    pub app_limited: bool,
}

/// A segment declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// First byte of the segment, and the byte after its last byte.
    pub range: (u64, u64),
    /// `RS.lost`: segments declared lost since this segment was sent, including this segment.
    pub since_sent: u64,
    /// `P.tx_in_flight`.
    pub in_flight: u64,
    /// `P.is_app_limited`.
    pub app_limited: bool,
}

impl DeliveryRate {
    /// Creates the state of a connection that has sent nothing.
    pub fn new(selective: bool) -> Self {
        Self {
            selective,
            delivered: 0,
            delivered_time: Time::default(),
            first_send_time: Time::default(),
            lost: 0,
            in_flight: 0,
            unsent_losses: 0,
            app_limited: 0,
            min_rtt: None,
            limited: CwndLimited::default(),
            packets: VecDeque::new(),
            examined_to: 0,
            newest: None,
            newly_acked: 0,
        }
    }

    /// Returns the number of segments delivered.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Returns the number of segments in the network, by the sender's estimate.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Returns whether cwnd was full in the last round trip.
    pub fn is_cwnd_limited(&self) -> bool {
        self.limited.now || self.limited.before
    }

    /// Returns whether the application limits what is in flight.
    pub fn is_app_limited(&self) -> bool {
        self.app_limited > 0
    }

    /// Begins the next round trip of [`DeliveryRate::is_cwnd_limited`].
    pub fn begin_round(&mut self) {
        self.limited = CwndLimited { now: false, before: self.limited.now };
    }

    /// Marks what is in flight as limited by the application.
    pub fn limit_by_application(&mut self) {
        self.app_limited = (self.delivered + self.in_flight).max(1);
    }

    /// Marks what is in flight as limited by the application, if cwnd allows more than there is to send.
    pub fn check_application(&mut self, has_unsent_data: bool, cwnd: f64) {
        if !has_unsent_data && (self.in_flight as f64) < cwnd && self.unsent_losses == 0 {
            self.limit_by_application();
        }
    }

    /// Records a segment that leaves, while `cwnd` segments may be in flight.
    pub fn on_sent(&mut self, (seq, end): (u64, u64), now: Time, cwnd: f64) {
        if self.in_flight == 0 {
            (self.first_send_time, self.delivered_time) = (now, now);
        }
        let place = self.packets.partition_point(|packet| packet.end <= seq);
        let before = self.packets.get(place).filter(|packet| packet.seq <= seq).map(|packet| packet.state);
        self.unsent_losses -= u64::from(before == Some(State::Lost));
        self.in_flight += u64::from(before != Some(State::InFlight));
        let sent = Sent {
            time: now,
            first_send_time: self.first_send_time,
            delivered: self.delivered,
            delivered_time: self.delivered_time,
            lost: self.lost,
            in_flight: self.in_flight,
            app_limited: self.app_limited > 0,
        };
        match before {
            Some(_) => {
                let packet = &mut self.packets[place];
                (packet.state, packet.again, packet.sent) = (State::InFlight, true, sent);
            }
            None => self.packets.push_back(Packet { seq, end, state: State::InFlight, again: false, sent }),
        }
        self.limited.now |= (self.in_flight + 1) as f64 > cwnd;
    }

    /// Begins the sample of an acknowledgement.
    pub fn begin(&mut self) {
        (self.newest, self.newly_acked) = (None, 0);
    }

    /// Records that a range beyond a gap was delivered.
    pub fn on_reported(&mut self, (start, end): (u64, u64), now: Time) {
        let first = self.packets.partition_point(|packet| packet.end <= start);
        for place in first..self.packets.len() {
            if self.packets[place].end > end {
                break;
            }
            self.deliver(place, now);
        }
    }

    /// Records that all data before `una` was delivered.
    pub fn on_acknowledged(&mut self, una: u64, now: Time) {
        while self.packets.front().is_some_and(|packet| packet.end <= una) {
            self.deliver(0, now);
            self.packets.pop_front();
        }
    }

    /// `UpdateRateSample`.
    fn deliver(&mut self, place: usize, now: Time) {
        let packet = &mut self.packets[place];
        match packet.state {
            State::Delivered => return,
            State::InFlight => self.in_flight -= 1,
            State::Lost => self.unsent_losses -= 1,
        }
        packet.state = State::Delivered;
        let Packet { end, again, sent, .. } = *packet;
        self.delivered += 1;
        self.newly_acked += 1;
        self.delivered_time = now;
        let is_newest = self.newest.is_none_or(|newest| (sent.time, end) > (newest.sent.time, newest.end));
        if is_newest {
            let elapsed = [sent.time - sent.first_send_time, now - sent.delivered_time];
            self.newest = Some(Newest { end, again, sent, elapsed });
            self.first_send_time = sent.time;
        }
    }

    /// Returns the round-trip time of the newest segment that the acknowledgement reports.
    pub fn rtt(&self, now: Time) -> Option<Span> {
        self.newest.filter(|newest| !newest.again).map(|newest| now - newest.sent.time)
    }

    /// `GenerateRateSample`: returns the sample of the acknowledgement, if it reports any delivery.
    pub fn sample(&mut self, now: Time) -> Option<Sample> {
        if self.app_limited > 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let newest = self.newest?;
        let rtt = self.rtt(now);
        self.min_rtt = self.min_rtt.into_iter().chain(rtt).min();
        let interval = newest.elapsed[0].max(newest.elapsed[1]);
        let is_reliable = interval.0 > 0 && self.min_rtt.is_none_or(|least| interval >= least);
        Some(Sample {
            delivered: self.delivered - newest.sent.delivered,
            interval: is_reliable.then_some(interval),
            prior_delivered: newest.sent.delivered,
            rtt,
            newly_acked: self.newly_acked,
            lost: self.lost - newest.sent.lost,
            in_flight: newest.sent.in_flight,
            app_limited: newest.sent.app_limited,
        })
    }

    /// Declares the next segment lost that was sent once and ends at or before `below`. Returns `None` if no
    /// such segment is in flight.
    pub fn lose_below(&mut self, below: u64) -> Option<Lost> {
        if below <= self.examined_to {
            return None;
        }
        let examined_to = self.examined_to;
        let first = self.packets.partition_point(|packet| packet.end <= examined_to);
        let rest = self.packets.range(first..).take_while(|packet| packet.end <= below);
        let lost = rest.zip(first..).find(|(packet, _)| packet.state == State::InFlight && !packet.again);
        let Some((packet, place)) = lost else {
            self.examined_to = below;
            return None;
        };
        self.examined_to = packet.end;
        Some(self.lose_at(place))
    }

    /// Declares the segment at `seq` lost, if it is in flight.
    pub fn lose(&mut self, seq: u64) -> Option<Lost> {
        let place = self.packets.partition_point(|packet| packet.end <= seq);
        let is_in_flight = self.packets.get(place).is_some_and(|packet| packet.state == State::InFlight);
        is_in_flight.then(|| self.lose_at(place))
    }

    /// Declares the first segment in flight lost, after a timeout. Returns `None` if nothing is in flight.
    pub fn lose_first(&mut self) -> Option<Lost> {
        let place = self.packets.iter().position(|packet| packet.state == State::InFlight)?;
        Some(self.lose_at(place))
    }

    fn lose_at(&mut self, place: usize) -> Lost {
        let packet = &mut self.packets[place];
        packet.state = State::Lost;
        self.in_flight -= 1;
        self.unsent_losses += 1;
        self.lost += 1;
        let Packet { seq, end, sent, .. } = *packet;
        Lost {
            range: (seq, end),
            since_sent: self.lost - sent.lost,
            in_flight: sent.in_flight,
            app_limited: sent.app_limited,
        }
    }
}

#[cfg(test)]
mod tests;
