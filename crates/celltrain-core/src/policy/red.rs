//! Random early detection (RED): refuses frames at random, with a probability that grows with the average queue.
//!
//! Source: Floyd and Jacobson, "Random early detection gateways for congestion avoidance", IEEE/ACM Transactions on
//! Networking 1(4), 1993; with `adaptive`, Floyd, Gummadi and Shenker, "Adaptive RED", 2001; with `gentle`, Floyd,
//! "Recommendation on using the gentle variant of RED", 2000. Their names are used. Differences from the source: queues
//! are counted in cells, and the average is updated when the first cell of a frame arrives. Adaptive RED does not set
//! the other parameters.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        reason = "scenario checks keep times below 2^62 units, and periods are at least one unit"
    )
)]

use celltrain_formula::arithmetic::{exponential, logarithm};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::formula::PortInfo;
use super::{AtHead, BufferPolicy, Configure, Decision, Head, HeadPolicy, Settings, View, check_thresholds};
use crate::coverage::reached;
use crate::error::Fault;
use crate::index::Label;
use crate::rng::Stream;
use crate::threshold::Threshold;
use crate::units::{Bytes, Clock, Duration, Span, Time};

/// Random early detection: arriving frames are refused at random while the average queue is above `min_th`, and all of
/// them from `max_th`.
///
/// Source: Floyd and Jacobson 1993; `adaptive`: Floyd, Gummadi and Shenker 2001.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Red")]
pub struct Config {
    /// Average queue below which every frame is admitted.
    pub min_th: Threshold,
    /// Average queue from which every frame is refused.
    pub max_th: Threshold,
    /// Probability of a refusal just below `max_th`; with `adaptive`, the first value.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max_p: f64,
    /// `w_q`: weight of the newest value in the average.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub w_q: f64,
    /// Packet whose transmission time is `s`: while the queue is empty, the average falls as if such packets had arrived.
    pub mean_pktsize: Bytes,
    /// True if the probability rises from `max_p` at `max_th` to 1 at twice `max_th`.
    pub gentle: bool,
    /// True to adapt `max_p` so that the average stays halfway between the thresholds.
    pub adaptive: bool,
    /// Time between adaptations of `max_p`.
    pub interval: Duration,
    /// True to mark ECN-capable frames instead of refusing them while the average is below `max_th`.
    pub ecn: bool,
}

impl Default for Config {
    /// Returns thresholds in the ratio of 1 to 3, and the other values of the sources.
    fn default() -> Self {
        Self {
            min_th: 0.1.into(),
            max_th: 0.3.into(),
            max_p: 0.02,
            w_q: 0.002,
            mean_pktsize: Bytes { bytes: 512 },
            gentle: false,
            adaptive: false,
            interval: Duration::from_milliseconds(500),
            ecn: true,
        }
    }
}

impl Configure for Config {
    type Policy = Red;

    fn settings(&self) -> Settings<'_> {
        Settings { thresholds: vec![("min_th", self.min_th), ("max_th", self.max_th)], ..Settings::default() }
    }

    fn check(&self, capacity: Option<u32>, _vcs: &[&str]) -> Vec<Fault> {
        let mut faults = check_thresholds(self, capacity);
        let [min_th, max_th] = self.limits(capacity.unwrap_or(u32::MAX));
        if faults.is_empty() && min_th >= max_th {
            let problem = format!("is not above min_th, which is {min_th} cells; the sources use three times min_th");
            faults.push(Fault::new("max_th", self.max_th.written(), problem));
        }
        if !(self.max_p > 0.0 && self.max_p <= 1.0) {
            faults.push(Fault::new("max_p", self.max_p, "is not above 0 and at most 1"));
        }
        if !(self.w_q > 0.0 && self.w_q < 1.0) {
            faults.push(Fault::new("w_q", self.w_q, "is not between 0 and 1"));
        }
        if self.mean_pktsize.bytes == 0 {
            faults.push(Fault::new("mean_pktsize", "\"0B\"", "must be a size above 0"));
        }
        if self.interval.picoseconds == 0 {
            faults.push(Fault::new("interval", "\"0s\"", "must be a time above 0"));
        }
        faults
    }

    fn build(&self, capacity: u32, _vcs: &[&str]) -> Red {
        let [min_th, max_th] = self.limits(capacity);
        let (config, max_p) = (self.clone(), self.max_p);
        Red { config, min_th, max_th, max_p, count: -1, ..Red::default() }
    }
}

impl Config {
    /// Returns the thresholds in cells, for a buffer of `capacity` cells.
    fn limits(&self, capacity: u32) -> [f64; 2] {
        [self.min_th, self.max_th].map(|threshold| threshold.cells(capacity))
    }
}

/// The policy and its state.
#[derive(Debug, Default)]
pub struct Red {
    config: Config,
    min_th: f64,
    max_th: f64,
    max_p: f64,
    /// Units of the clock in which a packet of the mean size is sent.
    s: f64,
    interval: Span,
    next_adaptation: Time,
    /// Average number of waiting cells.
    avg: f64,
    /// Frames since the last refusal or mark; -1 while the average is below `min_th`.
    count: i64,
    /// Time when the queue became empty.
    q_time: Time,
    /// Probability of the last decision.
    p_a: f64,
    marks: bool,
}

impl Red {
    fn update_average(&mut self, queue: u32, now: Time) {
        let w_q = self.config.w_q;
        if queue > 0 {
            self.avg += w_q * (f64::from(queue) - self.avg);
        } else {
            let m = (now - self.q_time).0 as f64 / self.s;
            let mut replaced = 0;
            self.avg *= exponential(m * logarithm(1.0 - w_q, &mut replaced), &mut replaced);
        }
    }

    /// Adapts `max_p` at the instants up to `now`, between which the average does not change.
    fn adapt(&mut self, now: Time) {
        let range = self.max_th - self.min_th;
        let [low, high] = [0.4, 0.6].map(|share| self.min_th + share * range);
        while self.next_adaptation <= now {
            if self.avg > high && self.max_p <= 0.5 {
                self.max_p += (self.max_p / 4.0).min(0.01);
            } else if self.avg < low && self.max_p >= 0.01 {
                self.max_p *= 0.9;
            } else {
                // Further adaptations do not change `max_p`.
                let missed = (now - self.next_adaptation).0 / self.interval.0 + 1;
                self.next_adaptation += self.interval * missed;
                return;
            }
            reached!(RedAdapts);
            self.next_adaptation += self.interval;
        }
    }

    /// Returns `p_b`, or `None` if no frame is refused.
    fn p_b(&self) -> Option<f64> {
        if self.avg < self.min_th {
            None
        } else if self.avg < self.max_th {
            Some(self.max_p * (self.avg - self.min_th) / (self.max_th - self.min_th))
        } else if self.config.gentle && self.avg < 2.0 * self.max_th {
            Some(self.max_p + (1.0 - self.max_p) * (self.avg - self.max_th) / self.max_th)
        } else {
            Some(1.0)
        }
    }
}

impl BufferPolicy for Red {
    fn at_port(&mut self, port_info: &PortInfo<'_>) {
        let clock: Clock = port_info.clock;
        let cells_of_mean = self.config.mean_pktsize.bytes as f64 * 8.0 / clock.cell_bits as f64;
        self.s = cells_of_mean / port_info.cells_per_second * clock.units_per_second as f64;
        self.interval = Span(clock.span(self.config.interval).0.max(1));
        self.next_adaptation = Time(self.interval.0);
    }

    fn admit_frame(&mut self, buffer: &View<'_>, _vc: Label, rng: &mut Stream) -> bool {
        if self.config.adaptive {
            self.adapt(buffer.now);
        }
        self.update_average(buffer.occupancy, buffer.now);
        self.marks = false;
        let Some(p_b) = self.p_b() else {
            (self.count, self.p_a) = (-1, 0.0);
            return true;
        };
        self.count += 1;
        let left = 1.0 - self.count as f64 * p_b;
        self.p_a = if p_b < left { p_b / left } else { 1.0 };
        let acts = self.p_a >= 1.0 || (self.p_a > 0.0 && rng.unit() < self.p_a);
        if !acts {
            return true;
        }
        self.count = 0;
        self.marks = self.config.ecn && buffer.capable && self.avg < self.max_th;
        reached!(RedMarks if self.marks);
        self.marks
    }

    fn reads_counts(&self) -> bool {
        false
    }

    fn head_policy(&mut self) -> Option<&mut dyn HeadPolicy> {
        Some(self)
    }

    fn marks_admitted(&self) -> bool {
        self.marks
    }

    fn explain(&self, _buffer: &View<'_>, _vc: Label) -> Decision {
        Decision {
            rule: "the average queue is at least min_th, and a random number is below the probability",
            held: Some(self.avg),
            probability: Some(self.p_a),
            ..Decision::default()
        }
    }
}

impl HeadPolicy for Red {
    fn on_head(&mut self, _head: &Head, _rng: &mut Stream) -> AtHead {
        AtHead::Send
    }

    fn follows_cells(&self) -> bool {
        true
    }

    fn on_departure(&mut self, _vc: Label, left: u32, now: Time) {
        if left == 0 {
            self.q_time = now;
        }
    }

    fn explain_head(&self, _head: &Head) -> Decision {
        Decision::default()
    }
}

#[cfg(any(test, feature = "samples"))]
pub(super) fn sample(_capacity: u32) -> Config {
    Config::default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::bench::{stream, view};

    /// A policy for a buffer of 1,000 cells with a clock of microseconds, at 1,000 cells per second.
    fn red(config: &Config) -> Red {
        let mut red = config.build(1000, &[]);
        let clock = Clock::exact(1_000_000);
        red.at_port(&PortInfo { clock, cells_per_second: 1000.0, ..PortInfo::unknown() });
        red
    }

    fn arrives(red: &mut Red, now: u64, queue: u32, rng: &mut Stream) -> bool {
        let per_vc = [queue];
        let view = View { now: Time(now), capable: false, ..view(1000, &per_vc) };
        red.admit_frame(&view, Label::new(0), rng)
    }

    #[test]
    fn the_red_average_moves_towards_the_queue_length_and_falls_while_the_queue_is_empty() {
        let mut red = red(&Config { w_q: 0.5, mean_pktsize: Bytes { bytes: 53 }, ..Config::default() });
        let mut rng = stream();
        arrives(&mut red, 0, 80, &mut rng);
        assert_eq!(red.avg, 40.0);
        arrives(&mut red, 0, 80, &mut rng);
        assert_eq!(red.avg, 60.0);
        red.on_departure(Label::new(0), 0, Time(1000));
        // The port could have sent two cells since the departure.
        arrives(&mut red, 3000, 0, &mut rng);
        assert!((red.avg - 15.0).abs() < 1e-9, "{}", red.avg);
    }

    #[test]
    fn gaps_between_red_refusals_are_uniform_up_to_the_inverse_of_the_probability() {
        let mut red = red(&Config::default());
        let mut rng = stream();
        // Halfway between the thresholds, p_b is 0.01.
        red.avg = 200.0;
        let refused: Vec<u32> = (0..100_000).filter(|_| !arrives(&mut red, 0, 200, &mut rng)).collect();
        let gaps: Vec<u32> = refused.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().max() <= Some(&100), "{:?}", gaps.iter().max());
        let mean = f64::from(gaps.iter().sum::<u32>()) / gaps.len() as f64;
        assert!((mean - 50.5).abs() < 3.0, "{mean}");
    }

    #[test]
    fn red_admits_every_frame_below_min_th_and_no_frame_from_max_th_unless_gentle() {
        let shares = |gentle, avg: u32| {
            let mut red = red(&Config { gentle, ..Config::default() });
            let mut rng = stream();
            let refused = (0..1000).filter(|_| {
                red.avg = f64::from(avg);
                red.count = -1;
                !arrives(&mut red, 0, avg, &mut rng)
            });
            refused.count()
        };
        assert_eq!([99, 300, 599].map(|avg| shares(false, avg)), [0, 1000, 1000]);
        assert_eq!([99, 600].map(|avg| shares(true, avg)), [0, 1000]);
        assert!((400..600).contains(&shares(true, 450)));
    }

    #[test]
    fn adaptive_red_raises_max_p_by_at_most_a_hundredth_and_lowers_it_by_a_tenth() {
        let mut red = red(&Config { adaptive: true, max_p: 0.1, ..Config::default() });
        red.avg = 221.0;
        red.adapt(Time(500_000));
        assert_eq!(red.max_p, 0.1 + 0.01);
        red.avg = 200.0;
        red.adapt(Time(5_000_000));
        assert_eq!(red.max_p, 0.1 + 0.01);
        red.avg = 179.0;
        red.adapt(Time(6_000_000));
        assert_eq!(red.max_p, (0.1 + 0.01) * 0.9 * 0.9);
    }

    #[test]
    fn red_settings_out_of_range_are_refused() {
        let default = Config::default;
        for (config, keys) in [
            (default(), &[][..]),
            (Config { max_th: 100.into(), ..default() }, &["max_th"]),
            (Config { min_th: 1001.into(), ..default() }, &["min_th"]),
            (Config { max_p: 0.0, w_q: 1.0, ..default() }, &["max_p", "w_q"]),
            (Config { mean_pktsize: Bytes { bytes: 0 }, ..default() }, &["mean_pktsize"]),
            (Config { interval: Duration::from_milliseconds(0), ..default() }, &["interval"]),
        ] {
            let found: Vec<_> = config.check(Some(1000), &[]).into_iter().map(|fault| fault.key).collect();
            assert_eq!(found, keys);
        }
    }
}
