//! The model of the path: round trips, bandwidth and aggregation (5.5.1 to 5.5.9).

use std::collections::VecDeque;

use super::{Arrival, Bbr};
use crate::units::Time;

/// `ExtraAckedFilterLen`, in round trips.
const EXTRA_ACKED_FILTER_LEN: u64 = 10;

/// Round trips, counted in packets (5.5.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    /// `round_count`.
    pub(super) count: u64,
    /// `round_start`: true on the acknowledgement that begins a round trip.
    pub(super) start: bool,
    /// `next_round_delivered`.
    pub(super) next_delivered: u64,
    /// `rounds_since_probe_up`.
    pub(super) since_probe_up: u64,
}

/// The degree of aggregation of acknowledgements (5.5.9).
#[derive(Debug, Default)]
pub(super) struct Aggregation {
    /// `extra_acked_interval_start`.
    interval_start: Time,
    /// `extra_acked_delivered`.
    delivered: f64,
    filter: MaxFilter,
}

impl Aggregation {
    /// Begins another interval. The draft continues the count (5.4.1), so that a flow with pauses would add up the
    /// excess of all its bursts. Linux and google/bbr begin another count, too.
    pub(super) fn restart(&mut self, now: Time) {
        (self.interval_start, self.delivered) = (now, 0.0);
    }

    /// `extra_acked`.
    pub(super) fn extra_acked(&self) -> f64 {
        self.filter.largest()
    }
}

/// A windowed maximum. Values fall from the front to the back.
#[derive(Debug, Default)]
pub(super) struct MaxFilter(VecDeque<(u64, f64)>);

impl MaxFilter {
    /// Records a value, and discards values that are `length` or more older.
    pub(super) fn update(&mut self, value: f64, time: u64, length: u64) {
        while self.0.back().is_some_and(|last| last.1 <= value) {
            self.0.pop_back();
        }
        self.0.push_back((time, value));
        while self.0.front().is_some_and(|first| first.0 + length <= time) {
            self.0.pop_front();
        }
    }

    pub(super) fn largest(&self) -> f64 {
        self.0.front().map_or(0.0, |first| first.1)
    }
}

impl Bbr {
    /// `StartRound`.
    pub(super) fn start_round(&mut self, delivered: u64) {
        self.round.next_delivered = delivered;
    }

    /// `UpdateMaxBw` (5.5.5), with `UpdateRound` (5.5.1).
    pub(super) fn update_max_bw(&mut self, ack: &mut Arrival<'_>) {
        self.round.start = ack.sample.prior_delivered >= self.round.next_delivered;
        if self.round.start {
            self.start_round(ack.rates.delivered());
            ack.rates.begin_round();
            self.round.count += 1;
            self.round.since_probe_up += 1;
        }
        if ack.rate > 0.0 && (ack.rate >= self.max_bw() || !ack.sample.app_limited) {
            self.max_bw[0] = self.max_bw[0].max(ack.rate);
        }
    }

    /// `AdvanceMaxBwFilter` (5.5.6): a `ProbeBW` cycle has ended.
    pub(super) fn advance_max_bw_filter(&mut self) {
        self.max_bw = [0.0, self.max_bw[0]];
    }

    /// `UpdateACKAggregation` (5.5.9).
    pub(super) fn update_ack_aggregation(&mut self, ack: &Arrival<'_>) {
        let mut expected = self.bw * self.seconds(ack.now - self.aggregation.interval_start);
        if self.aggregation.delivered <= expected {
            self.aggregation.delivered = 0.0;
            self.aggregation.interval_start = ack.now;
            expected = 0.0;
        }
        self.aggregation.delivered += ack.sample.newly_acked as f64;
        let extra = (self.aggregation.delivered - expected).min(self.control.cwnd);
        let length = if self.full_bw.reached { EXTRA_ACKED_FILTER_LEN } else { 1 };
        self.aggregation.filter.update(extra, self.round.count, length);
    }
}
