//! The round-trip estimator in ticks, with BSD's integer arithmetic.
//!
//! Source: Jacobson 1988; 4.3BSD and 4.4BSD `tcp_xmit_timer`, as restated in `docs/mechanisms.md` 3.2. Differences from
//! the source: MIN bounds the timeout before it is doubled, not after. `timer.rtt_arithmetic = "tahoe_integers"` uses
//! 4.3BSD-Tahoe's timeout, and `integers_from_zero` counts ticks as ns-2 does; `fractions` is the same estimator without
//! rounding.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::options::MAX_DOUBLINGS;
use crate::coverage::reached;

/// The smoothed round-trip time, its variance, and the backoff since the last valid sample.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    /// srtt in eighths of a tick; 0 before the first sample.
    srtt: i64,
    /// rttvar in quarters of a tick.
    rttvar: i64,
    /// Number of times the timeout has doubled since the last valid sample.
    backoff: u32,
    limits: RtoLimits,
    /// srtt and rttvar in ticks with fractions; `None` without a sample, or if the estimator stores integers.
    fractions: Option<(f64, f64)>,
    arithmetic: RttArithmetic,
    /// Number of timeouts since the last valid sample.
    timeouts: u32,
    /// Rule by which timeouts discard the estimate.
    forgotten: EstimateForgotten,
    /// True if the next sample counts as the first.
    afresh: bool,
    /// The timeout in ticks, including backoff. It is read for every acknowledgement and changes rarely.
    rto: u32,
}

/// Round-trip time samples of retransmitted segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RttSampling {
    /// A segment that was sent more than once gives no sample (Karn and Partridge 1987).
    #[default]
    Karn,
    /// Retransmissions also give samples.
    IncludeRetransmissions,
}

/// Arithmetic of the round-trip time estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RttArithmetic {
    /// Integers as in BSD (eighths and quarters of a tick), with samples counted from 1; the timeout is srtt + 4
    /// rttvar.
    #[default]
    BsdIntegers,
    /// The same integers, with the timeout of 4.3BSD-Tahoe, srtt + 2 rttvar.
    TahoeIntegers,
    /// BSD's integers with samples counted from 0, at least 1, as in ns-2.
    IntegersFromZero,
    /// Fractions of a tick, with samples counted from 0. The timeout, srtt + 4 rttvar, is rounded up to ticks.
    Fractions,
}

/// After which timeouts the sender discards its estimate of the round-trip time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EstimateForgotten {
    /// The sender never forgets its estimate.
    #[default]
    Never,
    /// The sender forgets its estimate at the fourth timeout without a sample: the timeout stays, and the next sample
    /// counts as the first, as in BSD.
    AtFourthTimeout,
    /// The sender forgets its estimate at each timeout: `initial_rto` applies until the next sample.
    AtEachTimeout,
}

/// Bounds and initial value of the retransmission timeout, in clock ticks.
#[derive(Clone, Copy, Debug)]
pub struct RtoLimits {
    /// MIN.
    pub minimum: u32,
    /// MAX.
    pub maximum: u32,
    /// The timeout before the first round-trip sample.
    pub initial: u32,
    /// Lower bound of four deviations if the estimator uses fractions: one tick (RFC 6298, 4) or zero.
    pub least_variance: f64,
}

/// 4.3BSD, `tcp_timers`: `if (tp->t_rxtshift > TCP_MAXRXTSHIFT / 4)`, a quarter of twelve.
const TIMEOUTS_KEPT: u32 = 3;

impl RttEstimator {
    /// Creates an estimator without a sample.
    pub fn new(limits: RtoLimits, arithmetic: RttArithmetic) -> Self {
        let mut estimator = Self {
            srtt: 0,
            rttvar: 0,
            backoff: 0,
            limits,
            fractions: None,
            arithmetic,
            timeouts: 0,
            forgotten: EstimateForgotten::Never,
            afresh: false,
            rto: 0,
        };
        estimator.rto = estimator.rto_after(0);
        estimator
    }

    /// Sets the rule by which timeouts discard the round-trip estimate.
    #[must_use]
    pub fn forgetting(self, forgotten: EstimateForgotten) -> Self {
        Self { forgotten, ..self }
    }

    /// Records a sample of `m` ticks, counted from 1 at the instant of sending. Ends any backoff.
    pub fn sample(&mut self, m: u32) {
        self.backoff = 0;
        self.timeouts = 0;
        if std::mem::take(&mut self.afresh) {
            reached!(EstimateForgottenAfterFour);
            self.forget();
        }
        self.average(m);
        self.rto = self.rto_after(0);
    }

    fn average(&mut self, m: u32) {
        if self.arithmetic == RttArithmetic::Fractions {
            self.fractions = Some(smoothed(self.fractions, f64::from(m - 1)));
            return;
        }
        // Converts the number of ticks since sending to the counting used for later samples, and to the counting used
        // for the first sample.
        let (elapsed, first) = match self.arithmetic {
            RttArithmetic::IntegersFromZero => (i64::from(m - 1).max(1), i64::from(m - 1).max(1)),
            _ => (i64::from(m - 1), i64::from(m)),
        };
        if self.srtt == 0 {
            self.srtt = first << 3;
            self.rttvar = first << 1;
            return;
        }
        let delta = elapsed - (self.srtt >> 3);
        self.srtt = (self.srtt + delta).max(1);
        let delta = delta.abs() - (self.rttvar >> 2);
        self.rttvar = (self.rttvar + delta).max(1);
    }

    /// Records a timeout, which may discard the round-trip estimate.
    pub fn on_timeout(&mut self) {
        self.timeouts += 1;
        reached!(TimeoutAgain if self.timeouts > 1);
        reached!(EstimateForgotten if self.forgotten == EstimateForgotten::AtEachTimeout);
        match self.forgotten {
            EstimateForgotten::Never => {}
            // BSD adds srtt to rttvar and then clears srtt, so that the timeout remains roughly the same.
            EstimateForgotten::AtFourthTimeout => self.afresh = self.timeouts > TIMEOUTS_KEPT,
            EstimateForgotten::AtEachTimeout => self.forget(),
        }
        self.rto = self.rto_after(0);
    }

    /// Doubles the timeout, up to 64 times the original.
    pub fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(MAX_DOUBLINGS);
        self.rto = self.rto_after(0);
    }

    /// Sets the timeout until the first sample, and ends any backoff.
    pub fn begin_at(&mut self, ticks: u32) {
        self.limits.initial = ticks;
        self.backoff = 0;
        self.rto = self.rto_after(0);
    }

    /// Returns the retransmission timeout in ticks, including backoff.
    #[inline]
    pub fn rto(&self) -> u32 {
        self.rto
    }

    /// Returns the retransmission timeout in ticks after further `doublings`.
    pub fn rto_after(&self, doublings: u32) -> u32 {
        let base = match self.fractions {
            // Jacobson 1988: the mean plus four times the deviation. Both are small and positive.
            #[allow(clippy::cast_possible_truncation)]
            Some((srtt, rttvar)) => (srtt + (4.0 * rttvar).max(self.limits.least_variance)).ceil() as i64,
            None if self.srtt == 0 => i64::from(self.limits.initial),
            // 4.3BSD-Tahoe: ((t_srtt >> 2) + t_rttvar) >> 1, the mean plus twice the deviation.
            None if self.arithmetic == RttArithmetic::TahoeIntegers => ((self.srtt >> 2) + self.rttvar) >> 1,
            None => (self.srtt >> 3) + self.rttvar,
        };
        let base = base.clamp(i64::from(self.limits.minimum), i64::from(self.limits.maximum));
        let doublings = (self.backoff + doublings).min(MAX_DOUBLINGS);
        let backed_off = (base << doublings).min(i64::from(self.limits.maximum));
        u32::try_from(backed_off).expect("the maximum fits in 32 bits")
    }

    fn forget(&mut self) {
        (self.srtt, self.rttvar, self.fractions) = (0, 0, None);
    }
}

/// Returns the mean and the deviation after a sample (Jacobson 1988, with gains of 1/8 and 1/4). The first sample sets
/// the deviation to half its value.
fn smoothed(before: Option<(f64, f64)>, m: f64) -> (f64, f64) {
    match before {
        None => (m, m / 2.0),
        Some((srtt, rttvar)) => {
            let error = m - srtt;
            (srtt + error / 8.0, rttvar + (error.abs() - rttvar) / 4.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimator() -> RttEstimator {
        RttEstimator::new(
            RtoLimits { minimum: 2, maximum: 640, initial: 30, least_variance: 0.0 },
            RttArithmetic::BsdIntegers,
        )
    }

    #[test]
    fn srtt_moves_by_an_eighth_of_the_new_error_and_rttvar_by_a_quarter() {
        // The sample is 8 above the mean. The mean rises by 8 / 8 = 1, and the deviation by (8 - 4) / 4 = 1.
        assert_eq!(smoothed(Some((8.0, 4.0)), 16.0), (9.0, 5.0));
        assert_eq!(smoothed(Some((8.0, 4.0)), 8.0), (8.0, 3.0));
        assert_eq!(smoothed(None, 6.0), (6.0, 3.0));
    }

    //= test rfc6298#4 "where four deviations vanish, a tick takes their place"
    #[test]
    fn under_rfc_rules_the_variance_term_of_the_rto_is_at_least_one_tick() {
        for (least_variance, rto) in [(1.0, 6), (0.0, 5)] {
            let limits = RtoLimits { minimum: 1, maximum: 640, initial: 30, least_variance };
            let mut rtt = RttEstimator::new(limits, RttArithmetic::Fractions);
            (0..300).for_each(|_| rtt.sample(6));
            assert_eq!(rtt.rto(), rto, "{least_variance}");
        }
    }

    #[test]
    fn the_retransmission_timeout_of_tahoe_is_srtt_plus_twice_rttvar() {
        let limits = RtoLimits { minimum: 1, maximum: 640, initial: 30, least_variance: 0.0 };
        let mut rtt = RttEstimator::new(limits, RttArithmetic::TahoeIntegers);
        assert_eq!(rtt.rto(), 30);
        rtt.sample(5);
        // srtt = 40/8 and rttvar = 10/4, so the timeout is (10 + 10) / 2, twice the sample.
        assert_eq!(rtt.rto(), 10);
        rtt.sample(1);
        // delta = 1 - 1 - 5, so srtt = 35/8 and rttvar = (10 + 5 - 2) / 4 = 13/4. The timeout is (8 + 13) / 2, rounded
        // down.
        assert_eq!((rtt.srtt, rtt.rttvar, rtt.rto()), (35, 13, 10));
        for _ in 0..100 {
            rtt.sample(1);
        }
        assert_eq!(
            (rtt.srtt, rtt.rttvar, rtt.rto()),
            (7, 3, 2),
            "the timeout is one tick shorter than with four deviations"
        );
    }

    #[test]
    fn consecutive_timeouts_double_the_rto_up_to_a_factor_of_64_until_the_next_rtt_sample() {
        let mut rtt = estimator();
        rtt.sample(1);
        let mut seen = Vec::new();
        for _ in 0..8 {
            rtt.back_off();
            seen.push(rtt.rto());
        }
        assert_eq!(seen, [6, 12, 24, 48, 96, 192, 192, 192]);
        rtt.sample(1);
        assert!(rtt.rto() <= 3);
    }

    #[test]
    fn bsd_keeps_the_rto_and_restarts_the_round_trip_time_estimate_after_four_timeouts() {
        let after = |forgotten, timeouts| {
            let mut rtt = estimator().forgetting(forgotten);
            (0..100).for_each(|_| rtt.sample(1));
            (0..timeouts).for_each(|_| rtt.on_timeout());
            let kept = rtt.rto();
            rtt.sample(5);
            (kept, rtt.rto())
        };
        // A sample of 5 moves srtt from 7 to 11 eighths and rttvar from 3 to 7 quarters, so the timeout is 1 + 7. If it
        // counts as the first sample, the timeout is 5 + 10.
        assert_eq!(after(EstimateForgotten::Never, 9), (3, 8));
        assert_eq!(after(EstimateForgotten::AtFourthTimeout, 3), (3, 8));
        assert_eq!(after(EstimateForgotten::AtFourthTimeout, 4), (3, 15));
        assert_eq!(
            after(EstimateForgotten::AtEachTimeout, 1),
            (30, 15),
            "the timer uses the initial timeout until the first sample"
        );
    }

    #[test]
    fn rttvar_in_fractional_arithmetic_starts_at_half_of_the_first_rtt_sample() {
        let limits = RtoLimits { minimum: 1, maximum: 640, initial: 30, least_variance: 0.0 };
        let mut rtt = RttEstimator::new(limits, RttArithmetic::Fractions).forgetting(EstimateForgotten::AtEachTimeout);
        rtt.sample(1);
        rtt.on_timeout();
        assert_eq!(rtt.rto(), 30);
        rtt.sample(3);
        assert_eq!(rtt.rto(), 6, "2 + 4 * 1");
    }
}
