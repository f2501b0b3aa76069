//! The pacing rate and cwnd (5.6).

use super::{Arrival, Bbr, MIN_PIPE_CWND, State};
use crate::units::Span;

/// `PacingMarginPercent`: the pace is 1 % below bw.
const PACING_MARGIN: f64 = 0.99;
/// `offload_budget`: three quanta of one segment (5.5.8).
const OFFLOAD_BUDGET: f64 = 3.0;
/// `QuantizationBudget`: additional segments in `ProbeBW_UP`.
const UP_BUDGET: f64 = 2.0;

impl Bbr {
    /// `InitPacingRate` (5.6.2).
    pub(super) fn init_pacing_rate(&mut self, rtt: Span) {
        let nominal_bandwidth = self.control.initial_cwnd / self.seconds(rtt.max(Span(1)));
        self.control.pacing_rate = State::Startup.gains().0 * nominal_bandwidth;
    }

    /// `SetPacingRateWithGain` (5.6.2).
    pub(super) fn set_pacing_rate(&mut self, gain: f64) {
        let rate = gain * self.bw * PACING_MARGIN;
        if (self.full_bw.reached && rate > 0.0) || rate > self.control.pacing_rate {
            self.control.pacing_rate = rate;
        }
    }

    /// `bdp`: zero before the first round trip.
    pub(super) fn bdp(&self) -> f64 {
        self.min_rtt.least.map_or(0.0, |least| self.bw * self.seconds(least))
    }

    /// `BDPMultiple` (5.6.4.2).
    pub(super) fn bdp_multiple(&self, bw: f64, gain: f64) -> f64 {
        self.min_rtt.least.map_or(self.control.initial_cwnd, |least| gain * bw * self.seconds(least))
    }

    /// `Inflight` (5.6.4.2).
    pub(super) fn inflight(&self, bw: f64, gain: f64) -> f64 {
        self.quantization_budget(self.bdp_multiple(bw, gain))
    }

    /// `QuantizationBudget` (5.6.4.2).
    fn quantization_budget(&self, inflight_cap: f64) -> f64 {
        let up = if self.state == State::Up { UP_BUDGET } else { 0.0 };
        inflight_cap.max(OFFLOAD_BUDGET).max(MIN_PIPE_CWND) + up
    }

    /// `SetCwnd` (5.6.4.6).
    pub(super) fn set_cwnd_on_ack(&mut self, ack: &Arrival<'_>) {
        let multiple = self.bdp_multiple(self.bw, self.state.gains().1);
        let max_inflight = self.quantization_budget(multiple + self.aggregation.extra_acked());
        let grown = self.control.cwnd + ack.sample.newly_acked as f64;
        if self.full_bw.reached {
            self.control.cwnd = grown.min(max_inflight);
        } else if self.control.cwnd < max_inflight || (ack.rates.delivered() as f64) < self.control.initial_cwnd {
            self.control.cwnd = grown;
        }
        self.control.cwnd = self.control.cwnd.max(MIN_PIPE_CWND);
        if self.state == State::ProbeRtt {
            self.control.cwnd = self.control.cwnd.min(self.probe_rtt_cwnd());
        }
        self.control.cwnd = self.control.cwnd.min(self.cap());
    }

    /// The bound of `BoundCwndForModel` (5.6.4.7).
    fn cap(&self) -> f64 {
        let cap = match self.state {
            State::Down | State::Refill | State::Up => self.inflight_longterm,
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(),
            State::Startup | State::Drain => f64::INFINITY,
        };
        cap.min(self.short_term.inflight).max(MIN_PIPE_CWND)
    }

    /// `SaveCwnd` (5.6.4.4).
    pub(super) fn save_cwnd(&mut self) {
        let is_usual = self.recovery.is_none() && self.state != State::ProbeRtt;
        let before = if is_usual { 0.0 } else { self.control.prior_cwnd };
        self.control.prior_cwnd = self.control.cwnd.max(before);
    }

    /// `RestoreCwnd` (5.6.4.4).
    pub(super) fn restore_cwnd(&mut self) {
        self.control.cwnd = self.control.cwnd.max(self.control.prior_cwnd);
    }
}
