//! The minimum round-trip time, and `ProbeRTT`, which measures it without a queue (5.3.4, 5.5.7).

use super::{Arrival, Bbr, MIN_PIPE_CWND, State};
use crate::tcp::delivery::DeliveryRate;
use crate::units::{Clock, Duration, Span, Time};

/// `MinRTTFilterLen`.
const MIN_RTT_FILTER_LEN: Duration = Duration::from_milliseconds(10_000);
/// `ProbeRTTDuration`.
const PROBE_RTT_DURATION: Duration = Duration::from_milliseconds(200);
/// `ProbeRTTInterval`.
const PROBE_RTT_INTERVAL: Duration = Duration::from_milliseconds(5_000);

/// Estimate of the minimum round-trip time, and the schedule of `ProbeRTT`.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    lengths: Lengths,
    /// `min_rtt` and `min_rtt_stamp`.
    pub(super) least: Option<Span>,
    stamp: Time,
    /// `probe_rtt_min_delay` and `probe_rtt_min_stamp`.
    probe_least: Option<Span>,
    probe_stamp: Time,
    /// `probe_rtt_expired`.
    expired: bool,
    /// `probe_rtt_done_stamp`.
    done: Option<Time>,
    /// `probe_rtt_round_done`.
    round_done: bool,
}

#[derive(Clone, Copy, Debug)]
struct Lengths {
    filter: Span,
    duration: Span,
    interval: Span,
}

impl MinRtt {
    pub(super) fn new(clock: Clock) -> Self {
        let lengths = Lengths {
            filter: clock.span(MIN_RTT_FILTER_LEN),
            duration: clock.span(PROBE_RTT_DURATION),
            interval: clock.span(PROBE_RTT_INTERVAL),
        };
        Self {
            lengths,
            least: None,
            stamp: Time::default(),
            probe_least: None,
            probe_stamp: Time::default(),
            expired: false,
            done: None,
            round_done: false,
        }
    }
}

/// Returns whether `rtt` is smaller than the smallest round-trip time so far, if one is known.
fn is_less(rtt: Span, least: Option<Span>) -> bool {
    least.is_none_or(|least| rtt < least)
}

impl Bbr {
    /// `UpdateMinRTT`.
    pub(super) fn update_min_rtt(&mut self, ack: &Arrival<'_>) {
        let own = &mut self.min_rtt;
        own.expired = ack.now > own.probe_stamp + own.lengths.interval;
        if let Some(rtt) = ack.sample.rtt.filter(|&rtt| own.expired || is_less(rtt, own.probe_least)) {
            (own.probe_least, own.probe_stamp) = (Some(rtt), ack.now);
        }
        let expired = ack.now > own.stamp + own.lengths.filter;
        if own.probe_least.is_some_and(|rtt| expired || is_less(rtt, own.least)) {
            (own.least, own.stamp) = (own.probe_least, own.probe_stamp);
        }
    }

    /// `CheckProbeRTT`.
    pub(super) fn check_probe_rtt(&mut self, ack: &mut Arrival<'_>) {
        if self.state != State::ProbeRtt && self.min_rtt.expired && !self.idle_restart {
            self.save_cwnd();
            self.state = State::ProbeRtt;
            self.min_rtt.done = None;
            self.stop_probing(ack.rates.delivered());
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(ack);
        }
        if ack.sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// `HandleProbeRTT`.
    fn handle_probe_rtt(&mut self, ack: &mut Arrival<'_>) {
        ack.rates.limit_by_application();
        if self.min_rtt.done.is_some() {
            self.min_rtt.round_done |= self.round.start;
            if self.min_rtt.round_done {
                self.check_probe_rtt_done(ack.rates, ack.now);
            }
        } else if ack.rates.in_flight() as f64 <= self.probe_rtt_cwnd() {
            self.min_rtt.done = Some(ack.now + self.min_rtt.lengths.duration);
            self.min_rtt.round_done = false;
            self.start_round(ack.rates.delivered());
        }
    }

    /// `CheckProbeRTTDone`, with `ExitProbeRTT` (5.3.4.4).
    pub(super) fn check_probe_rtt_done(&mut self, rates: &DeliveryRate, now: Time) {
        if self.min_rtt.done.is_none_or(|done| now <= done) {
            return;
        }
        self.min_rtt.probe_stamp = now;
        self.restore_cwnd();
        self.reset_short_term_model();
        if self.full_bw.reached {
            self.start_probe_bw_down(rates.delivered(), now);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    /// `ProbeRTTCwnd`.
    pub(super) fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp_multiple(self.bw, State::ProbeRtt.gains().1).max(MIN_PIPE_CWND)
    }
}
