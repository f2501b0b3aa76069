//! Proportional integral controller enhanced (PIE): refuses frames at random, with a probability that a controller adapts
//! to the delay of the queue.
//!
//! Source: RFC 8033, sections 4 and 5 and its pseudocode, whose names are used. Differences from the source
//! (`docs/design/queue-management-by-time.md`): the frame takes the place of the packet. It arrives and is dequeued with
//! its first cell, but each departing cell counts for the departure rate. Updates take place in order, but only before
//! the next arrival or departure. A queue that becomes empty has no delay. PIE is always active.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        reason = "scenario checks keep times below 2^62 units, and periods are at least one unit"
    )
)]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::formula::PortInfo;
use super::{AtHead, BufferPolicy, Configure, Decision, Head, HeadPolicy, View};
use crate::coverage::reached;
use crate::error::Fault;
use crate::index::Label;
use crate::rng::Stream;
use crate::units::{Bytes, Clock, Duration, Span, Time};

/// Proportional integral controller enhanced: arriving frames are refused at random. The probability grows while the
/// delay of the queue is above `qdelay_ref`, or rises.
///
/// Source: RFC 8033.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Pie")]
pub struct Config {
    /// `QDELAY_REF`: target delay of the queue.
    pub qdelay_ref: Duration,
    /// `T_UPDATE`: time between updates of the probability.
    pub t_update: Duration,
    /// `MAX_BURST`: time after an uncongested state in which no frame is refused at random.
    pub max_burst: Duration,
    /// Weight of the difference between the delay and its target, per second.
    pub alpha: f64,
    /// Weight of the change of the delay since the last update, per second.
    pub beta: f64,
    /// `MEAN_PKTSIZE`: no frame is refused at random while at most twice this number of bytes waits.
    pub mean_pktsize: Bytes,
    /// Largest probability at which ECN-capable frames are marked instead of refused; 0 turns marks off.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub mark_ecnth: f64,
    /// True to compute the delay from the queue length and an estimate of the departure rate, false to use the time for
    /// which the last frame has waited.
    pub dequeue_rate_estimation: bool,
    /// `DQ_THRESHOLD`: bytes that must leave for a sample of the departure rate.
    pub dq_threshold: Bytes,
    /// True to keep random refusals apart from each other (section 5.4).
    pub derandomization: bool,
    /// True to limit the increase of a large probability to 0.02 per update (section 5.5).
    pub cap_drop_adjustment: bool,
}

impl Default for Config {
    /// Returns the values of RFC 8033, and the mean size of RFC 8034.
    fn default() -> Self {
        Self {
            qdelay_ref: Duration::from_milliseconds(15),
            t_update: Duration::from_milliseconds(15),
            max_burst: Duration::from_milliseconds(150),
            alpha: 0.125,
            beta: 1.25,
            mean_pktsize: Bytes { bytes: 1024 },
            mark_ecnth: 0.1,
            dequeue_rate_estimation: false,
            dq_threshold: Bytes { bytes: 16_384 },
            derandomization: false,
            cap_drop_adjustment: false,
        }
    }
}

impl Configure for Config {
    type Policy = Pie;

    fn check(&self, _capacity: Option<u32>, _vcs: &[&str]) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (key, time) in [("qdelay_ref", self.qdelay_ref), ("t_update", self.t_update)] {
            if time.picoseconds == 0 {
                faults.push(Fault::new(key, format!("\"{time}\""), "must be a time above 0"));
            }
        }
        for (key, weight) in [("alpha", self.alpha), ("beta", self.beta)] {
            if !(weight >= 0.0 && weight.is_finite()) {
                faults.push(Fault::new(key, weight, "is not a finite number from 0"));
            }
        }
        if !(0.0..=1.0).contains(&self.mark_ecnth) {
            faults.push(Fault::new("mark_ecnth", self.mark_ecnth, "is not a probability (0 to 1)"));
        }
        if !(1..=LARGEST_DQ_THRESHOLD).contains(&self.dq_threshold.bytes) {
            let problem = format!(
                "must be from 1B to {LARGEST_DQ_THRESHOLD}B, because a sample has the weight \
                                   dq_threshold / {LARGEST_DQ_THRESHOLD}B"
            );
            faults.push(Fault::new("dq_threshold", format!("\"{}\"", self.dq_threshold), problem));
        }
        faults
    }

    fn build(&self, _capacity: u32, _vcs: &[&str]) -> Pie {
        Pie { config: self.clone(), ..Pie::default() }
    }
}

/// Bytes at which a sample of the departure rate would replace the estimate.
const LARGEST_DQ_THRESHOLD: u64 = 1 << 16;
/// Factors of the controller's output while the probability is below a limit (RFC 8033, section 4.2).
const AUTO_TUNING: [(f64, f64); 6] =
    [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];

/// The policy and its state. Delays are in seconds.
#[derive(Debug, Default)]
pub struct Pie {
    config: Config,
    clock: Option<Clock>,
    /// Bytes of a cell.
    cell_bytes: f64,
    t_update: Span,
    /// Time of the next update.
    next_update: Time,
    drop_prob: f64,
    qdelay_old: f64,
    current_qdelay: f64,
    burst_allowance: Span,
    accu_prob: f64,
    /// Number of waiting cells.
    waiting: u32,
    /// Start of the measurement of the departure rate, and bytes sent since the start.
    measurement: Option<(Time, f64)>,
    avg_dq_time: f64,
    marks: bool,
}

impl Pie {
    fn seconds(&self, span: Span) -> f64 {
        self.clock.map_or(0.0, |clock| clock.seconds(Time(span.0)))
    }

    /// Makes the updates that were due before `now` or are due at `now`.
    #[inline]
    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now && self.t_update > Span(0) {
            if self.is_at_rest() {
                // No update changes the state until a frame arrives.
                let missed = (now - self.next_update).0 / self.t_update.0 + 1;
                self.next_update += self.t_update * missed;
                return;
            }
            self.calculate_drop_prob();
            self.next_update += self.t_update;
        }
    }

    fn is_at_rest(&self) -> bool {
        self.drop_prob == 0.0
            && self.qdelay_old == 0.0
            && self.current_qdelay == 0.0
            && self.waiting == 0
            && self.burst_allowance == Span(0)
    }

    fn calculate_drop_prob(&mut self) {
        if self.config.dequeue_rate_estimation {
            let bytes = f64::from(self.waiting) * self.cell_bytes;
            self.current_qdelay = bytes * self.avg_dq_time / self.config.dq_threshold.bytes as f64;
        }
        let (qdelay, old, qdelay_ref) = (self.current_qdelay, self.qdelay_old, self.config.qdelay_ref.seconds());
        let mut p = self.config.alpha * (qdelay - qdelay_ref) + self.config.beta * (qdelay - old);
        if let Some((_, factor)) = AUTO_TUNING.iter().find(|(limit, _)| self.drop_prob < *limit) {
            p /= factor;
        }
        if self.config.cap_drop_adjustment && self.drop_prob >= 0.1 && p > 0.02 {
            reached!(PieCapsAdjustment);
            p = 0.02;
        }
        self.drop_prob += p;
        if qdelay == 0.0 && old == 0.0 {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.qdelay_old = qdelay;
        self.burst_allowance = Span(self.burst_allowance.0.saturating_sub(self.t_update.0));
    }

    /// Returns whether a frame is refused or marked (`drop_early` of the pseudocode).
    fn drop_early(&mut self, bytes: f64, rng: &mut Stream) -> bool {
        let is_short = self.qdelay_old < self.config.qdelay_ref.seconds() / 2.0 && self.drop_prob < 0.2;
        if is_short || bytes <= 2.0 * self.config.mean_pktsize.bytes as f64 {
            return false;
        }
        if self.config.derandomization {
            if self.drop_prob == 0.0 {
                self.accu_prob = 0.0;
            }
            self.accu_prob += self.drop_prob;
            if self.accu_prob < 0.85 {
                return false;
            }
            if self.accu_prob >= 8.5 {
                return true;
            }
        }
        rng.unit() < self.drop_prob
    }
}

impl BufferPolicy for Pie {
    fn at_port(&mut self, port_info: &PortInfo<'_>) {
        let clock = port_info.clock;
        self.clock = Some(clock);
        self.cell_bytes = clock.cell_bits as f64 / 8.0;
        self.t_update = Span(clock.span(self.config.t_update).0.max(1));
        self.next_update = Time(self.t_update.0);
    }

    fn admit_frame(&mut self, buffer: &View<'_>, _vc: Label, rng: &mut Stream) -> bool {
        self.catch_up(buffer.now);
        self.marks = false;
        let bytes = f64::from(buffer.occupancy) * self.cell_bytes;
        let mut admitted = true;
        if self.burst_allowance == Span(0) && self.drop_early(bytes, rng) {
            self.accu_prob = 0.0;
            self.marks = buffer.capable && self.drop_prob <= self.config.mark_ecnth;
            reached!(PieMarks if self.marks);
            admitted = self.marks;
        }
        let half = self.config.qdelay_ref.seconds() / 2.0;
        if self.drop_prob == 0.0 && self.current_qdelay < half && self.qdelay_old < half {
            self.burst_allowance = self.clock.map_or(Span(0), |clock| clock.span(self.config.max_burst));
        }
        admitted
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
            rule: "a random number is below the probability computed from the queue's delay",
            probability: Some(self.drop_prob),
            waited: Some(self.qdelay_old),
            target: Some(self.config.qdelay_ref.seconds()),
            ..Decision::default()
        }
    }
}

impl HeadPolicy for Pie {
    fn on_head(&mut self, head: &Head, _rng: &mut Stream) -> AtHead {
        self.catch_up(head.now);
        if !self.config.dequeue_rate_estimation {
            self.current_qdelay = self.seconds(head.waited);
        }
        AtHead::Send
    }

    fn follows_cells(&self) -> bool {
        true
    }

    fn on_enter(&mut self, waiting: u32, now: Time) {
        self.catch_up(now);
        self.waiting = waiting;
    }

    fn on_departure(&mut self, _vc: Label, left: u32, now: Time) {
        self.catch_up(now);
        self.waiting = left;
        if !self.config.dequeue_rate_estimation {
            if left == 0 {
                self.current_qdelay = 0.0;
            }
            return;
        }
        let dq_threshold = self.config.dq_threshold.bytes as f64;
        if let Some((start, bytes)) = &mut self.measurement {
            *bytes += self.cell_bytes;
            if *bytes >= dq_threshold {
                let dq_time = now - *start;
                let dq_time = self.seconds(dq_time);
                let weight = dq_threshold / LARGEST_DQ_THRESHOLD as f64;
                self.avg_dq_time = if self.avg_dq_time == 0.0 {
                    dq_time
                } else {
                    dq_time * weight + self.avg_dq_time * (1.0 - weight)
                };
                self.measurement = None;
            }
        }
        if self.measurement.is_none() && f64::from(left) * self.cell_bytes >= dq_threshold {
            self.measurement = Some((now, 0.0));
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

    /// A policy with a clock of microseconds.
    fn pie(config: &Config) -> Pie {
        let mut pie = config.build(10_000, &[]);
        pie.at_port(&PortInfo { clock: Clock::exact(1_000_000), ..PortInfo::unknown() });
        pie
    }

    fn leaves(pie: &mut Pie, now: u64, waited: u64) {
        pie.on_head(
            &Head { now: Time(now), vc: Label::new(0), waited: Span(waited), behind: 100, capable: false },
            &mut stream(),
        );
        pie.on_departure(Label::new(0), 100, Time(now));
    }

    fn arrives(pie: &mut Pie, now: u64, capable: bool, rng: &mut Stream) -> bool {
        let per_vc = [100];
        let view = View { now: Time(now), capable, ..view(10_000, &per_vc) };
        pie.admit_frame(&view, Label::new(0), rng)
    }

    #[test]
    fn each_pie_update_adds_the_weighted_error_and_change_of_the_queuing_delay() {
        let mut pie = pie(&Config::default());
        leaves(&mut pie, 0, 40_000);
        pie.catch_up(Time(15_000));
        let first = (0.125 * (0.04 - 0.015) + 1.25 * 0.04) / 2048.0;
        assert_eq!(pie.drop_prob, first);
        pie.catch_up(Time(30_000));
        // The probability is 2.6e-5, so the factor is 128.
        assert_eq!(pie.drop_prob, first + 0.125 * (0.04 - 0.015) / 128.0);
    }

    #[test]
    fn missed_pie_updates_are_made_in_order_and_before_arrivals_at_the_same_time() {
        let [mut late, mut prompt] = [(); 2].map(|()| pie(&Config::default()));
        for pie in [&mut late, &mut prompt] {
            leaves(pie, 0, 40_000);
        }
        (1..=100).for_each(|update| prompt.catch_up(Time(15_000 * update)));
        late.catch_up(Time(1_499_999));
        assert_ne!(late.drop_prob, prompt.drop_prob);
        late.catch_up(Time(1_500_000));
        assert_eq!((late.drop_prob, late.next_update), (prompt.drop_prob, prompt.next_update));
    }

    #[test]
    fn pie_skips_the_updates_due_while_the_port_was_idle() {
        let mut pie = pie(&Config { t_update: Duration::from_microseconds(1), ..Config::default() });
        pie.catch_up(Time(1 << 60));
        assert_eq!(pie.next_update, Time((1 << 60) + 1));
    }

    #[test]
    fn pie_refuses_frames_at_its_drop_probability_only_after_the_burst_allowance() {
        let mut pie = pie(&Config::default());
        let mut rng = stream();
        assert!(arrives(&mut pie, 0, false, &mut rng));
        assert_eq!(pie.burst_allowance, Span(150_000));
        leaves(&mut pie, 1, 400_000);
        (pie.drop_prob, pie.qdelay_old) = (0.5, 0.4);
        assert!((0..100).all(|_| arrives(&mut pie, 2, false, &mut rng)));
        pie.burst_allowance = Span(0);
        let refused = (0..10_000).filter(|_| !arrives(&mut pie, 3, false, &mut rng)).count();
        assert!(refused.abs_diff(5000) < 200, "{refused}");
    }

    #[test]
    fn derandomized_pie_spaces_its_refusals_within_a_minimum_and_a_maximum_number_of_frames() {
        let mut pie = pie(&Config { derandomization: true, ..Config::default() });
        let mut rng = stream();
        (pie.drop_prob, pie.qdelay_old) = (0.1, 0.4);
        let refused: Vec<usize> = (0..10_000).filter(|_| !arrives(&mut pie, 3, false, &mut rng)).collect();
        let gaps: Vec<usize> = refused.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // The sum reaches 0.85 after 9 frames and 8.5 after 85 or, with rounding, 86.
        assert_eq!(gaps.iter().min(), Some(&9));
        assert!(gaps.iter().max() <= Some(&86), "{gaps:?}");
    }

    #[test]
    fn pie_marks_ecn_capable_frames_while_the_drop_probability_is_small() {
        for (drop_prob, expected) in [(0.1, 1.0), (0.11, 0.0)] {
            let mut pie = pie(&Config::default());
            let mut rng = stream();
            (pie.drop_prob, pie.qdelay_old) = (drop_prob, 0.4);
            let (mut marked, mut refused) = (0.0, 0.0);
            for _ in 0..1000 {
                let admitted = arrives(&mut pie, 3, true, &mut rng);
                marked += f64::from(u8::from(pie.marks));
                refused += f64::from(u8::from(!admitted));
            }
            assert!(marked + refused > 50.0);
            assert_eq!(marked / (marked + refused), expected);
        }
    }

    #[test]
    fn pie_estimates_the_queuing_delay_from_the_measured_departure_rate() {
        let mut pie = pie(&Config { dequeue_rate_estimation: true, ..Config::default() });
        // A cell per 10 us; 1,000 cells wait.
        (0..2000).for_each(|i| pie.on_departure(Label::new(0), 1000, Time(10 * i)));
        pie.catch_up(Time(30_000));
        // A sample ends with the first cell at or above 16,384 bytes, the 310th.
        assert!((pie.current_qdelay - 0.01).abs() < 1e-4, "{}", pie.current_qdelay);
    }

    #[test]
    fn pie_settings_out_of_range_are_refused() {
        let zero = Duration::from_milliseconds(0);
        for (config, keys) in [
            (Config::default(), &[][..]),
            (Config { qdelay_ref: zero, t_update: zero, ..Config::default() }, &["qdelay_ref", "t_update"]),
            (
                Config { alpha: -1.0, beta: f64::NAN, mark_ecnth: 1.1, ..Config::default() },
                &["alpha", "beta", "mark_ecnth"],
            ),
            (Config { dq_threshold: Bytes { bytes: 65_537 }, ..Config::default() }, &["dq_threshold"]),
        ] {
            let found: Vec<_> = config.check(None, &[]).into_iter().map(|fault| fault.key).collect();
            assert_eq!(found, keys);
        }
    }
}
