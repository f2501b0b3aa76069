//! ERICA+: ERICA with a target load that depends on the queue, to fill the link and keep the queue short but not empty.
//!
//! Source: S. Kalyanaraman, dissertation, Ohio State University 1997, as `docs/mechanisms.md` 4.7 gives its queue
//! control function; ATM Forum 96-1172. Its symbols f, q, Q0, T0, a, b and QDLF are kept. Differences from the source:
//! the same as ERICA's. The queue is measured at the first backward RM cell of an interval, not at the end of the
//! previous interval. Q0 is T0 times the whole rate that other classes leave.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rate_book::{self, RateBook, Target};
use super::{Configure, PortKind, erica, some_time, within};
use crate::coverage::reached;
use crate::error::Fault;
use crate::units::Duration;

/// ERICA+: computes rates like ERICA, with a target load that depends on the queue. The target exceeds the available
/// capacity while the queue would drain in less than `t0`, and is lower while draining would take longer.
///
/// Source: ATM Forum 96-1172; Kalyanaraman 1997.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "EricaPlus")]
pub struct Config {
    /// T0: time in which a queue of the target length drains.
    #[serde(default = "t0")]
    pub t0: Duration,
    /// a: how fast the target load falls as the queue grows beyond its target length, 1 to 10.
    #[serde(default = "a")]
    #[schemars(range(min = 1.0, max = 10.0), extend("x-expect" = "a parameter of the target's curve (1 to 10)"))]
    pub a: f64,
    /// b: target load with an empty queue, as a fraction of the available capacity, 1 to 10.
    #[serde(default = "b")]
    #[schemars(range(min = 1.0, max = 10.0), extend("x-expect" = "a parameter of the target's curve (1 to 10)"))]
    pub b: f64,
    /// QDLF (queue drain limit factor): the lowest target load as a fraction of the available capacity, 0.1 to 1.
    #[serde(default = "qdlf")]
    #[schemars(range(min = 0.1, max = 1.0), extend("x-expect" = "a share of the link rate (0.1 to 1)"))]
    pub qdlf: f64,
    /// Interval over which load, active VCs and the rate of other classes are measured. A VC gets one
    /// rate per interval.
    #[serde(default = "erica::interval")]
    pub interval: Duration,
    /// delta: how far the load may exceed its target before it counts as an overload, as a fraction of the target, from
    /// 0 to 1.
    #[serde(default = "erica::delta")]
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expect" = "the tolerated overload as a fraction of the target (0 to 1)"))]
    pub delta: f64,
}

fn t0() -> Duration {
    Duration::from_microseconds(500)
}

fn a() -> f64 {
    1.15
}

/// Returns the default of b, with which the figures of ATM Forum 97-0831 were made. Other sources use 1.
fn b() -> f64 {
    1.05
}

fn qdlf() -> f64 {
    0.5
}

/// Parameters of the queue control function.
#[derive(Clone, Copy, Debug)]
pub struct QueueControl {
    /// T0, the target for the queueing delay, in seconds.
    t0: f64,
    a: f64,
    b: f64,
    qdlf: f64,
}

impl Target for QueueControl {
    /// Returns f(q).
    fn fraction(&self, queue: u32, c_abr: f64) -> f64 {
        let (Self { a, b, .. }, q) = (*self, f64::from(queue));
        let q0 = self.t0 * c_abr;
        if q > q0 {
            reached!(QueueControlAtFloor if self.qdlf > a * q0 / ((a - 1.0) * q + q0));
            self.qdlf.max(a * q0 / ((a - 1.0) * q + q0))
        } else if q > 0.0 {
            b * q0 / ((b - 1.0) * q + q0)
        } else {
            b
        }
    }
}

impl Configure for Config {
    type Allocator = RateBook<QueueControl>;

    fn check(&self, _capacity: Option<u32>) -> Vec<Fault> {
        let mut faults = some_time("t0", self.t0);
        faults.extend(within("a", self.a, 1.0, 10.0));
        faults.extend(within("b", self.b, 1.0, 10.0));
        faults.extend(within("qdlf", self.qdlf, 0.1, 1.0));
        faults.extend(rate_book::check(self.interval, self.delta));
        faults
    }

    fn build(&self, port: &PortKind<'_>) -> RateBook<QueueControl> {
        RateBook::new(self.control(), port, self.interval, self.delta)
    }
}

impl Config {
    fn control(&self) -> QueueControl {
        QueueControl { t0: self.t0.seconds(), a: self.a, b: self.b, qdlf: self.qdlf }
    }
}

#[cfg(test)]
pub(super) fn sample() -> Config {
    let (interval, delta) = (erica::interval(), erica::delta());
    Config { t0: t0(), a: a(), b: b(), qdlf: qdlf(), interval, delta }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abr::allocator::conformance::{C, assert_near, er, port, send};

    #[test]
    fn the_target_rate_of_erica_plus_falls_as_the_queue_grows_but_never_below_its_minimum() {
        let control = sample().control();
        // Q0 = 500 us * 100,000 cells per second = 50 cells.
        assert_eq!([0, 50].map(|q| control.fraction(q, C)), [1.05, 1.0]);
        // The value is 1.05 * 50 / (0.05 * 25 + 50) = 52.5 / 51.25 for 25 cells, and 1.15 * 50 / (0.15 * 100 + 50) =
        // 57.5 / 65 for 100.
        assert_near(control.fraction(25, C), 52.5 / 51.25);
        // For a single cell, the value is 1.05 * 50 / (0.05 + 50).
        assert_near(control.fraction(1, C), 52.5 / 50.05);
        assert_near(control.fraction(100, C), 57.5 / 65.0);
        // 57.5 / (0.15 q + 50) is QDLF = 0.5 at q = 433.3.
        assert_near(control.fraction(433, C), 57.5 / 114.95);
        assert_eq!(control.fraction(434, C), 0.5);
        // If other classes leave nothing for ABR, any queue is too long.
        assert_eq!(control.fraction(1, 0.0), 0.5);
        assert_eq!(control.fraction(0, 0.0), 1.05);
    }

    #[test]
    fn erica_plus_divides_a_rate_that_depends_on_the_queue_length_among_the_vcs() {
        let mut allocator = sample().build(&port(2));
        (0..2).for_each(|label| send(&mut allocator, label, 0, (100, 10), C / 8.0));
        // The input is 200,000 and the target is 57.5 / 65 of the link, so this is an overload. CCR / z is below
        // FairShare.
        assert_near(er(&mut allocator, 0, 1000, 100), C * 57.5 / 65.0 / 2.0);
    }

    #[test]
    fn erica_plus_gives_a_vc_above_the_equal_share_its_current_rate_divided_by_the_overload() {
        let mut allocator = sample().build(&port(2));
        send(&mut allocator, 0, 0, (160, 1), 160_000.0);
        send(&mut allocator, 1, 0, (20, 1), 20_000.0);
        // With Q0 = 50 cells waiting, the target is the whole link, so z = 180,000 / 100,000 and FairShare is 50,000.
        // CCR / z is 88,888.9 for the first VC. For the second VC it is 11,111.1, which is below FairShare.
        assert_near(er(&mut allocator, 0, 1000, 50), 160_000.0 / 1.8);
        assert_near(er(&mut allocator, 1, 1000, 50), 50_000.0);
    }

    #[test]
    fn the_default_settings_of_erica_plus_are_the_published_values() {
        let config: Config = serde_json::from_str("{}").unwrap();
        assert_eq!((config.t0, config.interval), ("500us".parse().unwrap(), "1ms".parse().unwrap()));
        assert_eq!((config.a, config.b, config.qdlf, config.delta), (1.15, 1.05, 0.5, 0.1));
    }

    #[test]
    fn erica_plus_settings_out_of_range_are_refused_and_the_message_names_the_setting() {
        let keys = |config: Config| config.check(None).iter().map(|fault| fault.key.clone()).collect::<Vec<_>>();
        assert!(keys(sample()).is_empty());
        assert_eq!(keys(Config { a: 0.9, b: 0.9, qdlf: 0.0, ..sample() }), ["a", "b", "qdlf"]);
        assert_eq!(keys(Config { t0: Duration::default(), ..sample() }), ["t0"]);
        assert_eq!(keys(Config { interval: Duration::default(), delta: 2.0, ..sample() }), ["interval", "delta"]);
    }
}
