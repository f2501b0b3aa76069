//! BBR, version 3: cwnd and the pace follow a model of the path's rate and round-trip time, and the loss rate bounds
//! what is in flight.
//!
//! Source: draft-ietf-ccwg-bbr-06, whose constants and variables are used; `docs/design/pacing.md` lists the decisions.
//! Volumes are in segments, rates in segments per second. Differences from the source: segments leave one by one, so
//! the send quantum is one segment and the offload budget three (5.5.8, 5.6.3); no recovery is found to be spurious, so
//! nothing is undone (5.5.11); a mark counts as a loss beyond `LossThresh` (3.6); after idle times, `extra_acked` begins
//! another count (5.4.1). `startup` to `control` each contain the rules of one part of section 5.

mod control;
mod loss;
mod path;
mod probe_bw;
mod probe_rtt;
mod startup;
#[cfg(test)]
mod tests;

use super::model::{Model, Recovers};
use super::{CongestionControl, NewAck};
use crate::rng::Stream;
use crate::tcp::TcpOptions;
use crate::tcp::delivery::{DeliveryRate, Lost, Sample};
use crate::units::{Clock, Duration, Span, Time};
use loss::{Latest, ShortTerm};
use path::{Aggregation, Round};
use probe_bw::Probe;
use probe_rtt::MinRtt;
use startup::FullBw;

/// `LossThresh`: largest loss rate in a round trip while probing for bandwidth.
const LOSS_THRESH: f64 = 0.02;
/// Beta: share that remains after a round trip with losses.
const BETA: f64 = 0.7;
/// Headroom: share of `inflight_longterm` left to other flows.
const HEADROOM: f64 = 0.15;
/// `MinPipeCwnd`.
const MIN_PIPE_CWND: f64 = 4.0;

/// State of BBR.
#[derive(Debug)]
pub struct Bbr {
    units_per_second: f64,
    rng: Stream,
    state: State,
    round: Round,
    /// The current and the previous slot of `max_bw_filter`.
    max_bw: [f64; 2],
    /// bw: the smaller of `max_bw` and `bw_shortterm`.
    bw: f64,
    min_rtt: MinRtt,
    aggregation: Aggregation,
    full_bw: FullBw,
    latest: Latest,
    short_term: ShortTerm,
    /// `inflight_longterm`.
    inflight_longterm: f64,
    probe: Probe,
    control: Control,
    recovery: Option<Recovers>,
    /// `idle_restart`.
    idle_restart: bool,
}

/// The control parameters (5.6).
#[derive(Clone, Copy, Debug)]
struct Control {
    /// `C.InitialCwnd`.
    initial_cwnd: f64,
    cwnd: f64,
    /// `prior_cwnd`.
    prior_cwnd: f64,
    /// `C.pacing_rate`.
    pacing_rate: f64,
    /// True if the initial pacing rate follows from a measured round trip.
    measured: bool,
}

/// States of BBR (5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    /// Returns the pacing gain and the cwnd gain (5.6.1).
    fn gains(self) -> (f64, f64) {
        match self {
            Self::Startup => (2.77, 2.0),
            Self::Drain => (0.5, 2.0),
            Self::Down => (0.9, 2.0),
            Self::Cruise | Self::Refill => (1.0, 2.0),
            Self::Up => (1.25, 2.25),
            Self::ProbeRtt => (1.0, 0.5),
        }
    }

    /// `IsInAProbeBWState`.
    fn probes_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// `IsProbingBW`.
    fn accelerates(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}

impl Bbr {
    /// Creates the control of a connection that has sent nothing (5.2.1).
    pub fn new(options: &TcpOptions, clock: Clock) -> Self {
        let initial_cwnd = f64::from(options.initial_window);
        let mut bbr = Self {
            units_per_second: clock.units_per_second as f64,
            rng: Stream::new(0, "bbr"),
            state: State::Startup,
            round: Round::default(),
            max_bw: [0.0; 2],
            bw: 0.0,
            min_rtt: MinRtt::new(clock),
            aggregation: Aggregation::default(),
            full_bw: FullBw::default(),
            latest: Latest::default(),
            short_term: ShortTerm::default(),
            inflight_longterm: f64::INFINITY,
            probe: Probe::default(),
            control: Control { initial_cwnd, cwnd: initial_cwnd, prior_cwnd: 0.0, pacing_rate: 0.0, measured: false },
            recovery: None,
            idle_restart: false,
        };
        bbr.init_pacing_rate(clock.span(Duration::from_milliseconds(1)));
        bbr
    }

    fn seconds(&self, span: Span) -> f64 {
        span.0 as f64 / self.units_per_second
    }

    /// `RS.delivery_rate`: zero if the sample is not reliable.
    fn delivery_rate(&self, sample: &Sample) -> f64 {
        sample.interval.map_or(0.0, |interval| sample.delivered as f64 / self.seconds(interval))
    }

    /// `max_bw`.
    fn max_bw(&self) -> f64 {
        self.max_bw[0].max(self.max_bw[1])
    }
}

/// Inputs of the processing of an acknowledgement: delivered segments, its rate sample, and its time.
struct Arrival<'a> {
    rates: &'a mut DeliveryRate,
    sample: &'a Sample,
    rate: f64,
    marked: bool,
    now: Time,
}

impl Model for Bbr {
    fn draw_from(&mut self, stream: Stream) {
        self.rng = stream;
    }

    fn cwnd(&self) -> f64 {
        self.control.cwnd
    }

    fn set_cwnd(&mut self, cwnd: f64) {
        self.control.cwnd = cwnd;
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn interval(&self) -> Span {
        Span(((self.units_per_second / self.control.pacing_rate) as u64).max(1))
    }

    /// `HandleRestartFromIdle` (5.4.1).
    fn on_transmit(&mut self, rates: &DeliveryRate, now: Time) {
        if rates.in_flight() > 0 || !rates.is_app_limited() {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(now);
        if self.state.probes_bw() {
            self.set_pacing_rate(1.0);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(rates, now);
        }
    }

    fn on_lost(&mut self, rates: &DeliveryRate, lost: Lost, now: Time) {
        self.handle_lost_packet(rates, lost, now);
    }

    /// `OnEnterRTO`, `OnEnterFastRecovery` (5.6.4.4).
    fn on_recovery(&mut self, by: Recovers) {
        self.save_cwnd();
        self.recovery = Some(by);
        self.latest.recovery_round = self.round.count;
    }

    fn on_timeout(&mut self, rates: &DeliveryRate) {
        self.control.cwnd = rates.in_flight() as f64 + 1.0;
    }

    fn on_recovered(&mut self) {
        self.recovery = None;
        self.restore_cwnd();
    }

    /// `UpdateOnACK` (5.2.3).
    fn on_ack(&mut self, rates: &mut DeliveryRate, sample: &Sample, marked: bool, now: Time) {
        if let Some(rtt) = sample.rtt.filter(|_| !self.control.measured) {
            self.init_pacing_rate(rtt);
            self.control.measured = true;
        }
        let mut ack = Arrival { rate: self.delivery_rate(sample), rates, sample, marked, now };
        self.update_latest_delivery_signals(&ack);
        self.update_congestion_signals(&mut ack);
        self.update_ack_aggregation(&ack);
        self.check_full_bw_reached(&ack);
        self.check_startup_done(&ack);
        self.check_drain_done(&ack);
        self.update_probe_bw_cycle_phase(&ack);
        self.update_min_rtt(&ack);
        self.check_probe_rtt(&mut ack);
        self.advance_latest_delivery_signals(&ack);
        self.bw = self.max_bw().min(self.short_term.bw);
        self.set_pacing_rate(self.state.gains().0);
        self.set_cwnd_on_ack(&ack);
    }

    #[cfg(test)]
    fn bbr(&self) -> &Bbr {
        self
    }
}

impl CongestionControl for Bbr {
    /// The model sets cwnd.
    fn on_new_ack(&mut self, NewAck { cwnd, .. }: NewAck) -> f64 {
        cwnd
    }

    /// The model sets cwnd; ssthresh has no effect.
    fn decrease(&self, _window: f64) -> f64 {
        BETA
    }

    /// Uses the first round trip for the initial pacing rate (5.6.2).
    fn on_round_trip(&mut self, took: Span) {
        if !self.control.measured {
            self.init_pacing_rate(took);
            self.control.measured = true;
        }
    }

    fn model(&mut self) -> Option<&mut dyn Model> {
        Some(self)
    }
}
