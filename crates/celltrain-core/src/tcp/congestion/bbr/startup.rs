//! Startup and Drain (5.3.1, 5.3.2).

use super::{Arrival, Bbr, LOSS_THRESH, State};
use crate::tcp::congestion::model::Recovers;

/// `StartupFullLossCnt`: ranges lost in a round trip that end Startup.
const STARTUP_FULL_LOSS_COUNT: u64 = 6;
/// Growth of the delivery rate, in three round trips, below which the path is full.
const FULL_BW_GROWTH: f64 = 1.25;
const FULL_BW_ROUNDS: u32 = 3;
/// Drain ends after this number of round trips.
const DRAIN_ROUNDS: u64 = 3;

/// The full-pipe estimator (5.3.1.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullBw {
    /// `full_bw_reached`.
    pub(super) reached: bool,
    /// `full_bw_now`.
    pub(super) now: bool,
    /// `full_bw`.
    bw: f64,
    /// `full_bw_count`.
    count: u32,
    /// `drain_start_round`.
    drain_start_round: u64,
}

impl FullBw {
    /// `ResetFullBW`, with a first value of `full_bw`.
    pub(super) fn reset(&mut self, bw: f64) {
        *self = Self { bw, count: 0, now: false, ..*self };
    }
}

impl Bbr {
    /// `CheckFullBWReached` (5.3.1.2).
    pub(super) fn check_full_bw_reached(&mut self, ack: &Arrival<'_>) {
        if self.full_bw.now || !self.round.start || ack.sample.app_limited {
            return;
        }
        if ack.rate >= self.full_bw.bw * FULL_BW_GROWTH {
            self.full_bw.reset(ack.rate);
            return;
        }
        self.full_bw.count += 1;
        self.full_bw.now = self.full_bw.count >= FULL_BW_ROUNDS;
        self.full_bw.reached |= self.full_bw.now;
    }

    /// `CheckStartupDone`.
    pub(super) fn check_startup_done(&mut self, ack: &Arrival<'_>) {
        self.check_startup_high_loss(ack);
        if self.state == State::Startup && self.full_bw.reached {
            self.state = State::Drain;
            self.full_bw.drain_start_round = self.round.count;
        }
    }

    /// `CheckStartupHighLoss` (5.3.1.3).
    fn check_startup_high_loss(&mut self, ack: &Arrival<'_>) {
        if !self.latest.round_start && ack.rates.selective {
            return;
        }
        let (ranges, marked) = (std::mem::take(&mut self.latest.ranges), std::mem::take(&mut self.latest.marked));
        if self.state != State::Startup || self.full_bw.reached {
            return;
        }
        let recovers = self.recovery == Some(Recovers::Fast);
        let is_high = if ack.rates.selective {
            let lost = ack.sample.lost as f64 > ack.sample.in_flight as f64 * LOSS_THRESH;
            lost && ranges >= STARTUP_FULL_LOSS_COUNT && self.round.count > self.latest.recovery_round
        } else {
            ranges > 0
        };
        if marked || (recovers && is_high) {
            self.full_bw.reached = true;
            self.full_bw.now = true;
            self.inflight_longterm = self.bdp().max(self.latest.inflight);
        }
    }

    /// `CheckDrainDone` (5.3.2).
    pub(super) fn check_drain_done(&mut self, ack: &Arrival<'_>) {
        let is_late = self.round.count > self.full_bw.drain_start_round + DRAIN_ROUNDS;
        if self.state == State::Drain && (ack.rates.in_flight() as f64 <= self.inflight(self.bw, 1.0) || is_late) {
            self.start_probe_bw_down(ack.rates.delivered(), ack.now);
        }
    }
}
