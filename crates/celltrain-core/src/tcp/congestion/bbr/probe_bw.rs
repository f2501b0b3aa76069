//! `ProbeBW`: the cycle of DOWN, CRUISE, REFILL and UP (5.3.3).

use super::{Arrival, Bbr, HEADROOM, MIN_PIPE_CWND, State};
use crate::units::{Span, Time};

/// State of the probe for bandwidth.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    phase: AckPhase,
    /// `is_bw_probe_sample`.
    pub(super) is_sample: bool,
    /// `bw_probe_up_acked`.
    up_acked: f64,
    /// `probe_up_acked_per_inc`.
    up_acked_per_inc: f64,
    /// `bw_probe_up_rounds`.
    up_rounds: u32,
    /// `bw_probe_wait`.
    pub(super) wait: Span,
    /// `cycle_stamp`.
    pub(super) cycle_stamp: Time,
    /// `prev_probe_too_high`.
    pub(super) prev_too_high: bool,
    /// `prev_probe_precautionary`.
    prev_precautionary: bool,
}

impl Default for Probe {
    fn default() -> Self {
        Self {
            phase: AckPhase::Init,
            is_sample: false,
            up_acked: 0.0,
            up_acked_per_inc: f64::INFINITY,
            up_rounds: 0,
            wait: Span(0),
            cycle_stamp: Time::default(),
            prev_too_high: false,
            prev_precautionary: false,
        }
    }
}

/// `ack_phase`: what the acknowledgements say about the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// Largest exponent of the growth of `inflight_longterm`.
const MOST_UP_ROUNDS: u32 = 30;
/// Round trips between probes, if the BDP is not smaller (5.3.3.5).
const RENO_ROUNDS: f64 = 63.0;

impl Bbr {
    /// `StartProbeBW_DOWN`.
    pub(super) fn start_probe_bw_down(&mut self, delivered: u64, now: Time) {
        self.reset_congestion_signals();
        self.probe.up_acked_per_inc = f64::INFINITY;
        self.pick_probe_wait();
        self.probe.cycle_stamp = now;
        self.stop_probing(delivered);
        self.state = State::Down;
    }

    /// Begins to wait for the last feedback of a probe.
    pub(super) fn stop_probing(&mut self, delivered: u64) {
        self.probe.phase = AckPhase::ProbeStopping;
        self.start_round(delivered);
    }

    /// `StartProbeBW_REFILL`.
    fn start_probe_bw_refill(&mut self, delivered: u64) {
        self.reset_short_term_model();
        (self.probe.up_rounds, self.probe.up_acked) = (0, 0.0);
        self.probe.prev_precautionary = false;
        self.probe.phase = AckPhase::Refilling;
        self.start_round(delivered);
        self.state = State::Refill;
    }

    /// `StartProbeBW_UP`.
    fn start_probe_bw_up(&mut self, ack: &Arrival<'_>) {
        self.probe.phase = AckPhase::ProbeStarting;
        self.start_round(ack.rates.delivered());
        self.full_bw.reset(ack.rate);
        self.state = State::Up;
        self.raise_inflight_longterm_slope();
    }

    /// `UpdateProbeBWCyclePhase`.
    pub(super) fn update_probe_bw_cycle_phase(&mut self, ack: &Arrival<'_>) {
        if !self.full_bw.reached || self.adapt_long_term_model(ack) {
            return;
        }
        let goes_down = self.state == State::Up && self.is_time_to_go_down(ack);
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe_bw(ack.now) => {
                self.start_probe_bw_refill(ack.rates.delivered());
            }
            State::Down if self.is_time_to_cruise(ack) => self.state = State::Cruise,
            State::Refill if self.round.start => {
                self.probe.is_sample = true;
                self.start_probe_bw_up(ack);
            }
            State::Up if goes_down => {
                self.probe.prev_too_high = false;
                self.start_probe_bw_down(ack.rates.delivered(), ack.now);
            }
            _ => {}
        }
    }

    /// `IsTimeToCruise`.
    fn is_time_to_cruise(&self, ack: &Arrival<'_>) -> bool {
        let in_flight = ack.rates.in_flight() as f64;
        in_flight <= self.inflight_with_headroom() && in_flight <= self.inflight(self.max_bw(), 1.0)
    }

    /// `IsTimeToGoDown`.
    fn is_time_to_go_down(&mut self, ack: &Arrival<'_>) -> bool {
        if self.probe.prev_too_high && ack.rates.in_flight() as f64 >= self.inflight_longterm {
            self.probe.prev_precautionary = true;
            return true;
        }
        if self.is_bounded_by_inflight_longterm(ack) {
            self.full_bw.reset(ack.rate);
            return false;
        }
        self.full_bw.now
    }

    fn is_bounded_by_inflight_longterm(&self, ack: &Arrival<'_>) -> bool {
        ack.rates.is_cwnd_limited() && self.control.cwnd >= self.inflight_longterm
    }

    /// `IsTimeToProbeBW`, with `IsRenoCoexistenceProbeTime`.
    fn is_time_to_probe_bw(&self, now: Time) -> bool {
        let rounds = self.target_inflight().min(RENO_ROUNDS);
        now > self.probe.cycle_stamp + self.probe.wait || self.round.since_probe_up as f64 >= rounds
    }

    /// `PickProbeWait`: two to three seconds, and a round trip more or less.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn pick_probe_wait(&mut self) {
        self.round.since_probe_up = u64::from(self.rng.below(2));
        self.probe.wait = Span(((2.0 + self.rng.unit()) * self.units_per_second) as u64);
    }

    /// `TargetInflight`.
    pub(super) fn target_inflight(&self) -> f64 {
        self.bdp().min(self.control.cwnd)
    }

    /// `InflightWithHeadroom`.
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        if self.inflight_longterm.is_infinite() {
            return f64::INFINITY;
        }
        let headroom = (HEADROOM * self.inflight_longterm).max(1.0);
        (self.inflight_longterm - headroom).max(MIN_PIPE_CWND)
    }

    /// `RaiseInflightLongtermSlope`.
    fn raise_inflight_longterm_slope(&mut self) {
        let growth = f64::from(1u32 << self.probe.up_rounds);
        self.probe.up_rounds = (self.probe.up_rounds + 1).min(MOST_UP_ROUNDS);
        self.probe.up_acked_per_inc = (self.control.cwnd / growth).max(1.0);
    }

    /// `ProbeInflightLongtermUpward`.
    fn probe_inflight_longterm_upward(&mut self, ack: &Arrival<'_>) {
        if !self.is_bounded_by_inflight_longterm(ack) {
            return;
        }
        self.probe.up_acked += ack.sample.newly_acked as f64;
        let steps = (self.probe.up_acked / self.probe.up_acked_per_inc).floor();
        if steps >= 1.0 {
            self.probe.up_acked -= steps * self.probe.up_acked_per_inc;
            self.inflight_longterm += steps;
        }
        if self.round.start {
            self.raise_inflight_longterm_slope();
        }
    }

    /// `AdaptLongTermModel`. Returns whether the state has changed.
    fn adapt_long_term_model(&mut self, ack: &Arrival<'_>) -> bool {
        if self.probe.phase == AckPhase::ProbeStarting && self.round.start {
            self.probe.phase = AckPhase::ProbeFeedback;
        }
        if self.probe.phase == AckPhase::ProbeStopping && self.round.start {
            self.probe.is_sample = false;
            self.probe.phase = AckPhase::Init;
            if self.state.probes_bw() {
                if !ack.sample.app_limited {
                    self.advance_max_bw_filter();
                }
                if self.probe.prev_precautionary && !self.probe.prev_too_high {
                    self.start_probe_bw_refill(ack.rates.delivered());
                    return true;
                }
            }
        }
        let sample = ack.sample;
        if ack.marked || Self::is_inflight_too_high(sample.lost, sample.in_flight, ack.rates.selective) {
            return false;
        }
        if self.inflight_longterm.is_finite() {
            self.inflight_longterm = self.inflight_longterm.max(sample.in_flight as f64);
            if self.state == State::Up {
                self.probe_inflight_longterm_upward(ack);
            }
        }
        false
    }
}
