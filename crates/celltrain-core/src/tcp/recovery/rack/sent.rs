//! The outstanding segments with the times at which they were sent.
//!
//! Source: RFC 8985 (5.1, 5.2, 6.1, 6.2 step 5), with its names `xmit_ts`, `end_seq`, `lost` and `retransmitted`.
//! Differences from the source: segments are also listed in the order of their last transmission, the optimisation that
//! section 6.2 describes.

use std::collections::{BTreeSet, VecDeque};

use crate::tcp::scoreboard::Scoreboard;
use crate::units::{Span, Time};

/// The time of a transmission, and the end of the segment. Later transmissions are greater (`RACK_sent_after`).
pub(super) type Transmission = (Time, u64);

/// An outstanding segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    seq: u64,
    end_seq: u64,
    xmit_ts: Time,
    pub(super) retransmitted: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InFlight,
    Lost,
    /// Reported by a block, but not acknowledged.
    Delivered,
}

impl Sent {
    pub(super) fn transmission(&self) -> Transmission {
        (self.xmit_ts, self.end_seq)
    }
}

/// The outstanding segments.
#[derive(Debug, Default)]
pub(super) struct SentSegments {
    /// Segments in the order of the stream.
    segments: VecDeque<Sent>,
    /// Transmissions in the order of time, each with the first byte of its segment. An entry is stale if its segment
    /// was sent again, delivered or lost.
    by_time: VecDeque<(Time, u64)>,
    /// First bytes of the lost segments that were not sent again.
    lost: BTreeSet<u64>,
    in_flight: u64,
    delivered: u64,
}

impl SentSegments {
    /// Returns the number of segments in flight.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Returns the number of outstanding segments that blocks have reported.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Returns the number of outstanding segments.
    pub(super) fn len(&self) -> usize {
        self.segments.len()
    }

    /// Returns the first byte of the first lost segment that was not sent again.
    pub(super) fn first_lost(&self) -> Option<u64> {
        self.lost.first().copied()
    }

    /// Returns the first byte of the first outstanding segment.
    pub(super) fn first(&self) -> Option<u64> {
        self.segments.front().map(|segment| segment.seq)
    }

    /// Returns the first byte of the last outstanding segment.
    pub(super) fn last(&self) -> Option<u64> {
        self.segments.back().map(|segment| segment.seq)
    }

    /// Records that the segment from `seq` on, of `mss` bytes, is sent.
    pub(super) fn on_sent(&mut self, seq: u64, mss: u64, now: Time) {
        let place = self.segments.partition_point(|segment| segment.seq < seq);
        if let Some(segment) = self.segments.get_mut(place).filter(|segment| segment.seq == seq) {
            (segment.xmit_ts, segment.retransmitted) = (now, true);
            match segment.state {
                State::Delivered => return,
                State::InFlight => {}
                State::Lost => {
                    segment.state = State::InFlight;
                    self.lost.remove(&seq);
                    self.in_flight += 1;
                }
            }
        } else {
            let (end_seq, state) = (seq + mss, State::InFlight);
            self.segments.insert(place, Sent { seq, end_seq, xmit_ts: now, retransmitted: false, state });
            self.in_flight += 1;
        }
        self.by_time.push_back((now, seq));
    }

    /// Removes the segments that an acknowledgement covers. Adds those that no block had reported to `news`.
    pub(super) fn acknowledge(&mut self, ack: u64, news: &mut Vec<Sent>) {
        while let Some(&segment) = self.segments.front().filter(|segment| segment.end_seq <= ack) {
            self.segments.pop_front();
            self.leave(segment);
            match segment.state {
                State::Delivered => self.delivered -= 1,
                State::InFlight | State::Lost => news.push(segment),
            }
        }
    }

    /// Marks the segments within a range as delivered, and adds them to `news`.
    pub(super) fn deliver(&mut self, (start, end): (u64, u64), news: &mut Vec<Sent>) {
        let first = self.segments.partition_point(|segment| segment.seq < start);
        for place in first..self.segments.len() {
            let segment = self.segments[place];
            if segment.end_seq > end {
                break;
            }
            if segment.state != State::Delivered {
                self.leave(segment);
                self.segments[place].state = State::Delivered;
                self.delivered += 1;
                news.push(segment);
            }
        }
    }

    fn leave(&mut self, segment: Sent) {
        match segment.state {
            State::InFlight => self.in_flight -= 1,
            State::Lost => _ = self.lost.remove(&segment.seq),
            State::Delivered => {}
        }
    }

    /// Implements `RACK_detect_loss`: marks segments as lost that were sent before `latest`, at least `wait` ago.
    /// Returns their number, and the time until the last of the other segments sent before `latest` would be lost.
    pub(super) fn detect(&mut self, latest: Transmission, wait: Span, now: Time) -> (u64, Option<Span>) {
        self.drop_stale();
        let (mut count, mut timeout) = (0, None);
        for i in 0..self.by_time.len() {
            let (xmit_ts, seq) = self.by_time[i];
            if xmit_ts > latest.0 {
                break;
            }
            let Some(place) = self.place_in_flight(xmit_ts, seq) else { continue };
            if self.segments[place].transmission() >= latest {
                continue;
            }
            if xmit_ts + wait <= now {
                self.lose(place);
                count += 1;
            } else {
                timeout = timeout.max(Some(xmit_ts + wait - now));
            }
        }
        (count, timeout)
    }

    /// Implements `RACK_mark_losses_on_RTO`: marks the first segment as lost, and those sent at least `wait` ago.
    pub(super) fn on_timeout(&mut self, wait: Span, now: Time) {
        let mut is_first = true;
        for place in 0..self.segments.len() {
            let Sent { state, xmit_ts, .. } = self.segments[place];
            if state == State::InFlight && (is_first || xmit_ts + wait <= now) {
                self.lose(place);
            }
            is_first &= state == State::Delivered;
        }
    }

    /// Divides the outstanding data into segments again if `una` is within a segment, because a window probe delivered
    /// its first byte. Nothing is in flight then, so all data that no block has reported is lost.
    pub(super) fn divide(&mut self, una: u64, mss: u64, board: &Scoreboard) {
        let Some(end) = self.segments.back().map(|last| last.end_seq).filter(|_| self.first() < Some(una)) else {
            return;
        };
        let is_delivered = |segment: &Sent| segment.state == State::Delivered && segment.end_seq > una;
        self.segments.retain(is_delivered);
        self.by_time.clear();
        self.lost.clear();
        (self.in_flight, self.delivered) = (0, self.segments.len() as u64);
        let mut seq = board.skip(una);
        while seq < end {
            let place = self.segments.partition_point(|segment| segment.seq < seq);
            let (end_seq, xmit_ts, state) = (seq + mss, Time::default(), State::Lost);
            self.segments.insert(place, Sent { seq, end_seq, xmit_ts, retransmitted: true, state });
            self.lost.insert(seq);
            seq = board.skip(end_seq);
        }
    }

    fn lose(&mut self, place: usize) {
        self.segments[place].state = State::Lost;
        self.lost.insert(self.segments[place].seq);
        self.in_flight -= 1;
    }

    fn drop_stale(&mut self) {
        while let Some(&(xmit_ts, seq)) = self.by_time.front() {
            if self.place_in_flight(xmit_ts, seq).is_some() {
                break;
            }
            self.by_time.pop_front();
        }
    }

    /// Returns the place of the segment that was last sent at `xmit_ts`, if it is in flight.
    fn place_in_flight(&self, xmit_ts: Time, seq: u64) -> Option<usize> {
        let place = self.segments.partition_point(|segment| segment.seq < seq);
        let is_it = |one: &&Sent| one.seq == seq && one.xmit_ts == xmit_ts && one.state == State::InFlight;
        self.segments.get(place).filter(is_it).map(|_| place)
    }
}
