//! CUBIC: after a loss, cwnd returns to its old value as a cubic function of the time since the loss, regardless of the
//! round-trip time.
//!
//! Source: RFC 9438, whose symbols are used: C, `beta_cubic`, `W_max`, K, `W_est`, `cwnd_prior`, `cwnd_epoch`. Time is
//! in seconds and windows are in segments, as in the RFC. Differences from the source: the round-trip time is smoothed
//! as in RFC 6298 (2.3) from one exact sample per round trip, separately from the retransmission timer, which counts
//! coarse ticks. With the rules of the papers, min(cwnd, rwnd) replaces the flight size (4.6). Slow start is
//! standard unless `start.hystart` is on (4.10). Spurious losses are not undone (4.9). At or above the receiver's window, cwnd
//! does not grow in congestion avoidance (5.8), regardless of `windows.growth`.

use super::{CongestionControl, NewAck};
use crate::coverage::reached;
use crate::tcp::TcpOptions;
use crate::units::{Clock, Span, Time};

/// RFC 9438 (4.6): factor by which congestion reduces the window.
const BETA: f64 = 0.7;
/// RFC 9438 (5.1): growth rate of the cubic, in segments per cubic second.
const C: f64 = 0.4;
/// RFC 9438 (4.3): 3 (1 - beta) / (1 + beta). With this additive increase and this beta, CUBIC shares evenly with Reno.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// RFC 9438 (4.2): cwnd grows by at most half in a round trip.
const MOST_GROWTH: f64 = 1.5;
/// RFC 6298 (2.3): gain alpha of the smoothed round-trip time.
const GAIN: f64 = 0.125;

/// State of CUBIC.
#[derive(Debug)]
pub struct Cubic {
    units_per_second: f64,
    /// The smoothed round-trip time in seconds.
    srtt: f64,
    /// `W_max`: cwnd before the last reduction, or a smaller value if the previous `W_max` was larger.
    w_max: f64,
    /// `cwnd_prior`: cwnd when ssthresh was last set.
    cwnd_prior: f64,
    ended_by: EndedBy,
    /// Current stage of congestion avoidance.
    epoch: Option<Epoch>,
}

/// The event that ended the previous stage of congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndedBy {
    /// A timeout, or the start of the connection. The cubic of the next stage starts at the window with which the stage
    /// begins.
    Timeout,
    /// A fast retransmit. The next stage aims at `W_max`.
    Reduction,
}

/// A stage of congestion avoidance (4.2).
#[derive(Clone, Copy, Debug, PartialEq)]
struct Epoch {
    /// t: duration of the stage, without times in which cwnd could not grow because of the receiver's window or a lack
    /// of data.
    t: Span,
    /// Time of the last growth of cwnd; `None` while it does not grow.
    grew: Option<Time>,
    /// K: seconds from the start of the stage until the cubic reaches `w_max`.
    k: f64,
    w_max: f64,
    /// `W_est`: estimate of Reno's window.
    w_est: f64,
}

impl CongestionControl for Cubic {
    fn on_new_ack(&mut self, NewAck { now, acked, cwnd, rwnd }: NewAck) -> f64 {
        if cwnd >= rwnd {
            // Section 5.8: cwnd does not grow while the flow sends less than cwnd allows. Section 4.2: such time is not
            // counted.
            if let Some(epoch) = &mut self.epoch {
                reached!(CubicStopsAtReceiver);
                epoch.grew = None;
            }
            return cwnd;
        }
        let mut epoch = self.epoch.unwrap_or_else(|| self.begin(now, cwnd));
        epoch.t = epoch.t + epoch.grew.map_or(Span(0), |grew| now - grew);
        epoch.grew = Some(now);
        let t = epoch.t.0 as f64 / self.units_per_second;
        // Figure 4 of section 4.3. Alpha is 1 once the estimate has regained the previous window.
        let alpha = if epoch.w_est < self.cwnd_prior { ALPHA } else { 1.0 };
        epoch.w_est += alpha * acked / cwnd;
        self.epoch = Some(epoch);
        if epoch.w_cubic(t) < epoch.w_est {
            reached!(CubicFollowsReno);
            return cwnd.max(epoch.w_est);
        }
        let target = epoch.w_cubic(t + self.srtt).clamp(cwnd, MOST_GROWTH * cwnd);
        cwnd + (target - cwnd) / cwnd
    }

    fn decrease(&self, _window: f64) -> f64 {
        BETA
    }

    fn on_round_trip(&mut self, took: Span) {
        let sample = took.0 as f64 / self.units_per_second;
        self.srtt = if self.srtt == 0.0 { sample } else { self.srtt + GAIN * (sample - self.srtt) };
    }

    fn on_fast_retransmit(&mut self, window: f64) {
        self.remember(window);
        self.ended_by = EndedBy::Reduction;
    }

    /// Ends the current stage (4.8).
    fn on_timeout(&mut self, window: Option<f64>) {
        match window {
            Some(window) => self.remember(window),
            None => self.epoch = None,
        }
        self.ended_by = EndedBy::Timeout;
    }

    //= rfc9438#4.2 "the time of the cubic leaves out periods in which the window did not limit the sender"
    fn on_pause(&mut self) {
        reached!(CubicPauses if self.epoch.is_some());
        if let Some(epoch) = &mut self.epoch {
            epoch.grew = None;
        }
    }

    //= rfc9438#4.2 "each stage of congestion avoidance begins with its own time, window and K"
    fn on_restart(&mut self) {
        self.epoch = None;
    }
}

impl Cubic {
    /// Creates a fresh control.
    pub fn new(_options: &TcpOptions, clock: Clock) -> Self {
        Self {
            units_per_second: clock.units_per_second as f64,
            srtt: 0.0,
            w_max: 0.0,
            cwnd_prior: 0.0,
            ended_by: EndedBy::Timeout,
            epoch: None,
        }
    }

    fn remember(&mut self, cwnd: f64) {
        reached!(CubicConvergesFast if cwnd < self.w_max);
        // Section 4.7, fast convergence: a flow that did not regain its previous window gives up bandwidth.
        self.w_max = if cwnd < self.w_max { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        self.cwnd_prior = cwnd;
        self.epoch = None;
    }

    fn begin(&mut self, now: Time, cwnd_epoch: f64) -> Epoch {
        if self.ended_by == EndedBy::Timeout {
            // Section 4.8: "K is set to 0, and W_max is set to the congestion window size at the beginning".
            self.w_max = cwnd_epoch;
        }
        let w_max = self.w_max.max(cwnd_epoch);
        Epoch { t: Span(0), grew: Some(now), k: cube_root((w_max - cwnd_epoch) / C), w_max, w_est: cwnd_epoch }
    }
}

impl Epoch {
    /// Returns `W_cubic(t) = C (t - K)^3 + W_max` (4.2, figure 1).
    fn w_cubic(&self, t: f64) -> f64 {
        let from_plateau = t - self.k;
        C * from_plateau * from_plateau * from_plateau + self.w_max
    }
}

/// Returns the cube root of a non-negative number. Newton's method with the four basic operations gives the same result
/// on every machine.
fn cube_root(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    // The iteration starts above the root. It approaches the root until rounding stops the progress.
    let mut root = x.max(1.0);
    loop {
        let next = (2.0 * root + x / (root * root)) / 3.0;
        if next >= root {
            return root;
        }
        root = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= test rfc9438#4.2 "each stage of congestion avoidance begins with its own time, window and K"
    #[test]
    fn cubic_starts_a_new_growth_epoch_after_an_idle_period() {
        let mut cubic = Cubic::new(&TcpOptions::default(), Clock::exact(1));
        cubic.on_fast_retransmit(100.0);
        let mut grown = |now, cwnd| cubic.on_new_ack(NewAck { now: Time(now), acked: 1.0, cwnd, rwnd: 1e6 });
        let first = [grown(0, 70.0), grown(1, 70.0)];
        let old = [grown(1000, 70.0), grown(1001, 70.0)];
        assert!(old[1] > first[1] + 0.2, "cwnd grows faster late in a stage than early: {old:?} and {first:?}");
        cubic.on_restart();
        let mut grown = |now, cwnd| cubic.on_new_ack(NewAck { now: Time(now), acked: 1.0, cwnd, rwnd: 1e6 });
        assert_eq!([grown(2000, 70.0), grown(2001, 70.0)], first);
    }

    #[test]
    fn the_integer_cube_root_of_the_cube_of_a_number_is_the_number() {
        for (x, root) in
            [(0.0, 0.0), (1.0, 1.0), (27.0, 3.0), (0.001, 0.1), (1e9, 1000.0), (75.0, 4.217_163_326_508_746)]
        {
            assert!((cube_root(x) - root).abs() < 1e-12 * (1.0 + root), "{x}: {}", cube_root(x));
        }
    }
}
