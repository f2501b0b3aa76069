//! Pacing: the times between the segments of a sender.
//!
//! Source: `docs/design/pacing.md`; Linux 6.12, `tcp_update_pacing_rate` in `net/ipv4/tcp_input.c`. Differences from the
//! source: there are no aggregates of segments, and times are whole units of the run's clock, rounded down.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Span, Time};

/// The rate at which a sender is paced, in addition to `pacing_rate`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pacing {
    /// Segments leave as soon as the window and `pacing_rate` allow.
    #[default]
    None,
    /// Segments are spaced evenly over a round trip, as in Linux: at twice the rate of one window per round trip while
    /// cwnd is below half of ssthresh, otherwise at 1.2 times this rate. Until the first sample of the round-trip time,
    /// only `pacing_rate` applies.
    Window,
}

/// Linux: `tcp_pacing_ss_ratio`, in percent.
const SLOW_START_PERCENT: u128 = 200;
/// Linux: `tcp_pacing_ca_ratio`, in percent.
const AVOIDANCE_PERCENT: u128 = 120;

/// The pacing state of a sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Shortest interval between segments, given by `pacing_rate`.
    least: Span,
    /// Interval between segments at the current rate.
    interval: Span,
    /// Earliest departure time of the next segment.
    next: Time,
    /// True if a segment is waiting for `next`.
    waiting: bool,
    /// The smoothed round-trip time, if the window determines the rate. Zero before the first sample.
    smoothed: Option<Span>,
}

impl Pace {
    /// Creates the pace of a sender whose segments are at least `least` apart.
    pub(super) fn new(least: Span, pacing: Pacing) -> Self {
        let smoothed = (pacing == Pacing::Window).then_some(Span(0));
        Self { least, interval: least, next: Time::default(), waiting: false, smoothed }
    }

    /// Returns the same pace with another shortest interval.
    pub(super) fn at_least(self, least: Span) -> Self {
        Self { least, interval: self.interval.max(least), ..self }
    }

    /// Returns the same pace with another current interval.
    pub(super) fn every(mut self, interval: Span) -> Self {
        self.set_interval(interval);
        self
    }

    /// Returns whether a segment may leave now. If so, the segment counts as sent.
    pub(super) fn allow(&mut self, now: Time) -> bool {
        self.waiting = now < self.next;
        if !self.waiting {
            self.next = now + self.interval;
        }
        !self.waiting
    }

    /// Returns the time of the next departure, if a segment is waiting for it.
    pub(super) fn departure(&self, now: Time) -> Option<Time> {
        (self.waiting && self.next > now).then_some(self.next)
    }

    /// Returns the interval between segments.
    #[cfg(test)]
    pub(super) fn interval(&self) -> Span {
        self.interval
    }

    /// Sets the interval between segments. It applies from the next departure on.
    pub(super) fn set_interval(&mut self, interval: Span) {
        self.interval = interval.max(self.least);
    }

    /// Smooths a sample of the round-trip time (RFC 6298, 2.3).
    pub(super) fn on_round_trip(&mut self, sample: Span) {
        if let Some(smoothed) = &mut self.smoothed {
            let eighths = |span: Span| span.0 / 8;
            *smoothed = match *smoothed {
                Span(0) => sample,
                before => Span(before.0 - eighths(before) + eighths(sample)),
            };
        }
    }

    /// Follows the window: `used` is the larger of cwnd and the outstanding data, in whole segments.
    pub(super) fn follow(&mut self, used: u64, cwnd: f64, ssthresh: f64) {
        let Some(Span(smoothed @ 1..)) = self.smoothed else { return };
        let percent = if cwnd < ssthresh / 2.0 { SLOW_START_PERCENT } else { AVOIDANCE_PERCENT };
        let interval = u128::from(smoothed) * 100 / (percent * u128::from(used.max(1)));
        self.set_interval(Span(u64::try_from(interval).unwrap_or(u64::MAX)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pacing_rate_is_200_percent_of_cwnd_per_srtt_and_120_from_half_ssthresh() {
        let mut pace = Pace::new(Span(0), Pacing::Window);
        pace.follow(10, 10.0, 40.0);
        assert_eq!(pace.interval, Span(0), "no round trip was measured");
        pace.on_round_trip(Span(1_200));
        for (used, cwnd, ssthresh, interval) in
            [(10, 10.0, 40.0, 60), (20, 20.0, 40.0, 50), (7, 7.9, 40.0, 85), (30, 20.0, 40.0, 33), (0, 0.5, 40.0, 600)]
        {
            pace.follow(used, cwnd, ssthresh);
            assert_eq!(pace.interval, Span(interval), "{used} of {cwnd}");
        }
        pace.on_round_trip(Span(2_000));
        assert_eq!(pace.smoothed, Some(Span(1_300)));
        let mut limited = Pace::new(Span(55), Pacing::Window);
        limited.on_round_trip(Span(1_200));
        for (used, interval) in [(10, 60), (20, 55)] {
            limited.follow(used, used as f64, 100.0);
            assert_eq!(limited.interval, Span(interval), "pacing_rate is the highest rate");
        }
    }

    #[test]
    fn a_changed_pacing_interval_applies_from_the_next_departure() {
        let mut pace = Pace::new(Span(10), Pacing::None);
        assert!(pace.allow(Time(0)));
        pace.set_interval(Span(50));
        assert_eq!((pace.allow(Time(9)), pace.departure(Time(9))), (false, Some(Time(10))));
        assert!(pace.allow(Time(10)));
        assert_eq!((pace.allow(Time(59)), pace.departure(Time(59))), (false, Some(Time(60))));
        pace.set_interval(Span(3));
        assert_eq!((pace.allow(Time(59)), pace.departure(Time(60))), (false, None));
        assert!(pace.allow(Time(60)) && pace.allow(Time(70)), "the interval is now the shortest, 10");
    }
}
