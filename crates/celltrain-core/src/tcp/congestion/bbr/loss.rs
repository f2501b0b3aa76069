//! The response to losses and marks (5.5.10).

use super::{Arrival, BETA, Bbr, LOSS_THRESH, State};
use crate::tcp::delivery::{DeliveryRate, Lost};
use crate::units::Time;

/// Signals of the last round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Latest {
    /// `bw_latest`.
    bw: f64,
    /// `inflight_latest`.
    pub(super) inflight: f64,
    /// `loss_round_delivered`.
    round_delivered: u64,
    /// `loss_round_start`.
    pub(super) round_start: bool,
    /// `is_loss_in_round`.
    is_loss_in_round: bool,
    /// Number of separate ranges lost in this round trip, and the end of the last range.
    pub(super) ranges: u64,
    last_end: u64,
    /// True if a mark was reported in this round trip.
    pub(super) marked: bool,
    /// `round_count` at the start of the last recovery.
    pub(super) recovery_round: u64,
}

/// The short-term model.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShortTerm {
    /// `bw_shortterm`.
    pub(super) bw: f64,
    /// `inflight_shortterm`.
    pub(super) inflight: f64,
}

impl Default for ShortTerm {
    fn default() -> Self {
        Self { bw: f64::INFINITY, inflight: f64::INFINITY }
    }
}

impl Bbr {
    /// `IsInflightTooHigh`.
    pub(super) fn is_inflight_too_high(lost: u64, in_flight: u64, selective: bool) -> bool {
        lost as f64 > in_flight as f64 * LOSS_THRESH || (lost > 0 && !selective)
    }

    /// `HandleLostPacket`.
    pub(super) fn handle_lost_packet(&mut self, rates: &DeliveryRate, lost: Lost, now: Time) {
        self.note_loss(rates.delivered());
        self.latest.ranges += u64::from(lost.range.0 != self.latest.last_end || self.latest.ranges == 0);
        self.latest.last_end = lost.range.1;
        if self.probe.is_sample && Self::is_inflight_too_high(lost.since_sent, lost.in_flight, rates.selective) {
            // `InflightAtLoss`, for a packet of one segment.
            let (inflight_prev, lost_prev) = (lost.in_flight as f64 - 1.0, lost.since_sent as f64 - 1.0);
            let lost_prefix = (LOSS_THRESH * inflight_prev - lost_prev) / (1.0 - LOSS_THRESH);
            self.handle_inflight_too_high(inflight_prev + lost_prefix, lost.app_limited, rates.delivered(), now);
        }
    }

    /// `NoteLoss`.
    fn note_loss(&mut self, delivered: u64) {
        if !self.latest.is_loss_in_round {
            self.latest.round_delivered = delivered;
            self.save_cwnd();
        }
        self.latest.is_loss_in_round = true;
    }

    /// `HandleInflightTooHigh`.
    fn handle_inflight_too_high(&mut self, in_flight: f64, app_limited: bool, delivered: u64, now: Time) {
        self.probe.prev_too_high = true;
        self.probe.is_sample = false;
        if !app_limited {
            self.inflight_longterm = in_flight.max(self.target_inflight() * BETA);
        }
        if self.state == State::Up {
            self.start_probe_bw_down(delivered, now);
        }
    }

    /// `UpdateLatestDeliverySignals`, after the response to a mark.
    pub(super) fn update_latest_delivery_signals(&mut self, ack: &Arrival<'_>) {
        if ack.marked {
            self.note_loss(ack.rates.delivered());
            self.latest.marked = true;
            if self.probe.is_sample {
                let delivered = ack.rates.delivered();
                self.handle_inflight_too_high(ack.sample.in_flight as f64, ack.sample.app_limited, delivered, ack.now);
            }
        }
        self.latest.bw = self.latest.bw.max(ack.rate);
        self.latest.inflight = self.latest.inflight.max(ack.sample.delivered as f64);
        self.latest.round_start = ack.sample.prior_delivered >= self.latest.round_delivered;
        if self.latest.round_start {
            self.latest.round_delivered = ack.rates.delivered();
        }
    }

    /// `AdvanceLatestDeliverySignals`.
    pub(super) fn advance_latest_delivery_signals(&mut self, ack: &Arrival<'_>) {
        if self.latest.round_start {
            (self.latest.bw, self.latest.inflight) = (ack.rate, ack.sample.delivered as f64);
        }
    }

    /// `ResetCongestionSignals`.
    pub(super) fn reset_congestion_signals(&mut self) {
        self.latest = Latest { is_loss_in_round: false, bw: 0.0, inflight: 0.0, ..self.latest };
    }

    /// `UpdateCongestionSignals`, with `AdaptLowerBoundsFromCongestion`.
    pub(super) fn update_congestion_signals(&mut self, ack: &mut Arrival<'_>) {
        self.update_max_bw(ack);
        if !self.latest.round_start {
            return;
        }
        if self.latest.is_loss_in_round && !self.state.accelerates() {
            let before = |bound: f64, first: f64| if bound.is_infinite() { first } else { bound };
            let bw = before(self.short_term.bw, self.max_bw());
            let inflight = before(self.short_term.inflight, self.control.cwnd);
            self.short_term.bw = self.latest.bw.max(BETA * bw);
            self.short_term.inflight = self.latest.inflight.max(BETA * inflight);
        }
        self.latest.is_loss_in_round = false;
    }

    /// `ResetShortTermModel`.
    pub(super) fn reset_short_term_model(&mut self) {
        self.short_term = ShortTerm::default();
    }
}
