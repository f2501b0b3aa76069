//! Coupled dual queue with PI2 (`dualpi2`): a queue L for scalable flows with low delay and a queue C for other flows,
//! whose probabilities of marks and drops are coupled so that flows of both kinds get similar windows.
//!
//! Source: RFC 9332, sections 2.4 and 2.5 and the pseudocode of appendix A with overload, whose names are used.
//! Differences from the source: a list of VCs takes the place of ECT(1). Frames of L that are not ECN-capable are
//! dropped instead of marked. The frame takes the place of the packet (`docs/design/queue-management-by-time.md`).
//! `Th_len` is in bytes. Updates take place in order, but only before the next departure. The order of service is in
//! `scheduler/time_shifted_fifo.rs`.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        reason = "scenario checks keep times below 2^62 units, and periods are at least one unit"
    )
)]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use typed_index_collections::TiVec;

use super::formula::PortInfo;
use super::{AtHead, BufferPolicy, Configure, Decision, Head, HeadPolicy, PerVc, Settings, View};
use crate::coverage::reached;
use crate::error::Fault;
use crate::index::Label;
use crate::rng::Stream;
use crate::scheduler::{Service, time_shifted_fifo};
use crate::units::{Bytes, Clock, Duration, Span, Time};

/// Coupled dual queue with PI2: frames of scalable flows wait in a queue L, which marks early, and frames of other flows in a queue C. A
/// controller adapts a probability to the longer delay of both; frames are marked in L with `k` times this probability,
/// and dropped or marked in C with its square.
///
/// Source: RFC 9332, appendix A.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DualPi2")]
pub struct Config {
    /// 1 for a VC whose frames wait in the queue L, 0 for one whose frames wait in C.
    pub l4s: PerVc,
    /// Coupling factor: ratio of the probability of marks in L to the square root of the probability of drops in C. A
    /// probability of `1 / k^2` in C, or of 1 in L, is overload.
    #[serde(default = "defaults::k")]
    pub k: f64,
    /// Target delay of the longer queue.
    #[serde(default = "defaults::target")]
    pub target: Duration,
    /// `Tupdate`: time between updates of the probability.
    #[serde(default = "defaults::t_update")]
    pub t_update: Duration,
    /// Weight of the difference between the delay and its target, per second.
    #[serde(default = "defaults::alpha")]
    pub alpha: f64,
    /// Weight of the change of the delay since the last update, per second.
    #[serde(default = "defaults::beta")]
    pub beta: f64,
    /// `minTh`: waiting time in L above which frames are marked regardless of the delay of C.
    #[serde(default = "defaults::min_th")]
    pub min_th: Duration,
    /// Difference between `min_th` and the waiting time from which every frame of L is marked; `"0s"` for a step.
    #[serde(default = "defaults::range")]
    pub range: Duration,
    /// `Th_len`: a frame is not marked for its own waiting time if at most one packet of this length waits behind it.
    #[serde(default = "defaults::th_len")]
    pub th_len: Bytes,
    /// Advantage of L: a frame of C is sent first if it has waited longer by more than this time.
    #[serde(default = "defaults::tshift")]
    pub tshift: Duration,
}

/// Values of RFC 9332, appendix A.1, for a largest round-trip time of 100 ms.
mod defaults {
    use crate::units::{Bytes, Duration};

    pub(super) fn k() -> f64 {
        2.0
    }

    pub(super) fn target() -> Duration {
        Duration::from_milliseconds(15)
    }

    /// The smaller of the target and a third of the largest round-trip time.
    pub(super) fn t_update() -> Duration {
        Duration::from_milliseconds(15)
    }

    /// A tenth of `t_update`, divided by the square of the largest round-trip time.
    pub(super) fn alpha() -> f64 {
        0.15
    }

    /// 0.3, divided by the largest round-trip time.
    pub(super) fn beta() -> f64 {
        3.0
    }

    pub(super) fn min_th() -> Duration {
        Duration::from_microseconds(800)
    }

    pub(super) fn range() -> Duration {
        Duration::from_microseconds(400)
    }

    /// One packet.
    pub(super) fn th_len() -> Bytes {
        Bytes { bytes: 1500 }
    }

    /// Twice the target.
    pub(super) fn tshift() -> Duration {
        Duration::from_milliseconds(30)
    }
}

impl Config {
    /// Returns the default settings, with this queue for each VC.
    pub fn new(l4s: PerVc) -> Self {
        Self {
            l4s,
            k: defaults::k(),
            target: defaults::target(),
            t_update: defaults::t_update(),
            alpha: defaults::alpha(),
            beta: defaults::beta(),
            min_th: defaults::min_th(),
            range: defaults::range(),
            th_len: defaults::th_len(),
            tshift: defaults::tshift(),
        }
    }

    /// Returns the VCs whose frames wait in L, by label.
    fn in_l(&self, vcs: &[&str]) -> Vec<bool> {
        self.l4s.resolve(vcs).into_iter().map(|value| value == 1.0).collect()
    }
}

impl Configure for Config {
    type Policy = DualPi2;

    fn settings(&self) -> Settings<'_> {
        Settings { per_vc: vec![("l4s", &self.l4s)], ..Settings::default() }
    }

    fn check(&self, _capacity: Option<u32>, vcs: &[&str]) -> Vec<Fault> {
        let mut faults =
            self.l4s.check("l4s", |value| value == 0.0 || value == 1.0, "must be 1 (queue L) or 0 (queue C)");
        if !vcs.is_empty() && faults.is_empty() && !self.in_l(vcs).contains(&true) {
            let problem = "must be 1 for a VC of the port, because the queue L would have no VC";
            faults.push(Fault::new("l4s", "", problem));
        }
        if !(self.k > 0.0 && self.k.is_finite()) {
            faults.push(Fault::new("k", self.k, "must be a number above 0; RFC 9332 recommends 2"));
        }
        for (key, time) in [("target", self.target), ("t_update", self.t_update)] {
            if time.picoseconds == 0 {
                faults.push(Fault::new(key, format!("\"{time}\""), "must be a time above 0"));
            }
        }
        for (key, weight) in [("alpha", self.alpha), ("beta", self.beta)] {
            if !(weight >= 0.0 && weight.is_finite()) {
                faults.push(Fault::new(key, weight, "is not a finite number from 0"));
            }
        }
        faults
    }

    fn queues(&self, vcs: &[&str], clock: Clock) -> Option<Service> {
        Some(time_shifted_fifo::service(&self.in_l(vcs), clock.span(self.tshift)))
    }

    fn build(&self, _capacity: u32, vcs: &[&str]) -> DualPi2 {
        DualPi2 {
            in_l: self.in_l(vcs).into(),
            config: self.clone(),
            clock: None,
            th_len: 0,
            t_update: Span(0),
            next_update: Time(0),
            p: 0.0,
            prevq: 0.0,
            l: Queue::default(),
            c: Queue::default(),
            decision: Decision::default(),
        }
    }
}

/// The policy and its state. Delays are in seconds.
#[derive(Debug)]
pub struct DualPi2 {
    config: Config,
    in_l: TiVec<Label, bool>,
    clock: Option<Clock>,
    /// `Th_len` in cells.
    th_len: u32,
    t_update: Span,
    /// Time of the next update.
    next_update: Time,
    /// `p'`: the base probability.
    p: f64,
    prevq: f64,
    l: Queue,
    c: Queue,
    /// The last decision about a frame.
    decision: Decision,
}

/// The state of queue L or queue C.
#[derive(Debug, Default)]
struct Queue {
    /// Waiting time of the frame that was dequeued last; 0 while the queue is empty.
    delay: f64,
    /// Sum of probabilities, less 1 for each mark or drop.
    count: f64,
}

impl Queue {
    /// Returns true with a certain likelihood (`recur` of the pseudocode).
    fn recur(&mut self, likelihood: f64) -> bool {
        self.count += likelihood;
        let recurs = self.count > 1.0;
        if recurs {
            self.count -= 1.0;
        }
        recurs
    }
}

impl DualPi2 {
    fn seconds(&self, span: Span) -> f64 {
        self.clock.map_or(0.0, |clock| clock.seconds(Time(span.0)))
    }

    /// Updates the probabilities for each period that has ended by `now`.
    #[inline]
    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now && self.t_update > Span(0) {
            let before = (self.p, self.prevq);
            self.update();
            self.next_update += self.t_update;
            if (self.p, self.prevq) == before && self.next_update <= now {
                // No update changes the state until a frame is dequeued.
                let missed = (now - self.next_update).0 / self.t_update.0 + 1;
                self.next_update += self.t_update * missed;
            }
        }
    }

    /// Updates the base probability (`dualpi2_update`).
    fn update(&mut self) {
        let curq = self.l.delay.max(self.c.delay);
        let change = self.config.alpha * (curq - self.config.target.seconds()) + self.config.beta * (curq - self.prevq);
        self.p = (self.p + change).clamp(0.0, 1.0);
        self.prevq = curq;
    }

    /// Returns `p_CL = k p'`, at most `p_Lmax = 1`.
    fn p_cl(&self) -> f64 {
        (self.config.k * self.p).min(1.0)
    }

    /// Returns `p_C = p'^2`, which is `(p_CL / k)^2`.
    fn p_c(&self) -> f64 {
        self.p * self.p
    }

    /// Returns `p_Cmax = min(1 / k^2, 1)`, from which C drops instead of marking.
    fn p_cmax(&self) -> f64 {
        (1.0 / (self.config.k * self.config.k)).min(1.0)
    }

    /// Returns the probability of a mark of a frame that has waited for `qdelay` in L (`laqm`).
    fn laqm(&self, qdelay: f64) -> f64 {
        let (min_th, range) = (self.config.min_th.seconds(), self.config.range.seconds());
        if qdelay <= min_th {
            0.0
        } else if qdelay >= min_th + range {
            1.0
        } else {
            (qdelay - min_th) / range
        }
    }

    fn on_head_of_l(&mut self, head: &Head, qdelay: f64) -> AtHead {
        let mark = if head.capable { AtHead::Mark } else { AtHead::Drop };
        let coupled = self.p_cl();
        if coupled < 1.0 {
            let native = if head.behind > self.th_len { self.laqm(qdelay) } else { 0.0 };
            let (rule, target) = if native > coupled {
                ("the packet has waited in the queue L for longer than min_th", self.config.min_th)
            } else {
                ("the queue L has k times the probability computed from the longer delay", self.config.target)
            };
            let probability = native.max(coupled);
            self.decision = Decision { rule, probability: Some(probability), ..Self::waiting(qdelay, target) };
            return if self.l.recur(probability) { mark } else { AtHead::Send };
        }
        let p_c = self.p_c();
        self.decision = Decision {
            rule: "overload: the queue L drops frames with the probability of the queue C",
            probability: Some(p_c),
            ..Self::waiting(qdelay, self.config.target)
        };
        if self.l.recur(p_c) {
            reached!(DualPi2DropsInL);
            return AtHead::Drop;
        }
        self.decision.rule = "overload: the queue L marks every frame that it does not drop";
        self.decision.probability = Some(coupled);
        if self.l.recur(coupled) { mark } else { AtHead::Send }
    }

    fn on_head_of_c(&mut self, head: &Head) -> AtHead {
        let p_c = self.p_c();
        let overload = p_c >= self.p_cmax();
        let rule = if overload && head.capable {
            "overload: the queue C drops frames instead of marking them"
        } else {
            "the queue C has the square of the probability computed from the longer delay"
        };
        self.decision = Decision { rule, probability: Some(p_c), ..Self::waiting(self.prevq, self.config.target) };
        if !self.c.recur(p_c) {
            return AtHead::Send;
        }
        if head.capable && !overload {
            reached!(DualPi2MarksInC);
            return AtHead::Mark;
        }
        AtHead::Drop
    }

    fn waiting(waited: f64, target: Duration) -> Decision {
        Decision { waited: Some(waited), target: Some(target.seconds()), ..Decision::default() }
    }
}

impl BufferPolicy for DualPi2 {
    fn at_port(&mut self, port_info: &PortInfo<'_>) {
        let clock = port_info.clock;
        self.clock = Some(clock);
        self.th_len = port_info.aal5.frame_cells(self.config.th_len.bytes);
        self.t_update = Span(clock.span(self.config.t_update).0.max(1));
        self.next_update = Time(self.t_update.0);
    }

    fn admit_frame(&mut self, _buffer: &View<'_>, _vc: Label, _rng: &mut Stream) -> bool {
        true
    }

    fn reads_counts(&self) -> bool {
        false
    }

    fn head_policy(&mut self) -> Option<&mut dyn HeadPolicy> {
        Some(self)
    }
}

impl HeadPolicy for DualPi2 {
    fn on_head(&mut self, head: &Head, _rng: &mut Stream) -> AtHead {
        self.catch_up(head.now);
        let qdelay = self.seconds(head.waited);
        if self.in_l[head.vc] {
            self.l.delay = qdelay;
            self.on_head_of_l(head, qdelay)
        } else {
            self.c.delay = qdelay;
            self.on_head_of_c(head)
        }
    }

    fn follows_cells(&self) -> bool {
        true
    }

    fn on_departure(&mut self, vc: Label, left: u32, now: Time) {
        self.catch_up(now);
        if left == 0 {
            let queue = if self.in_l[vc] { &mut self.l } else { &mut self.c };
            queue.delay = 0.0;
        }
    }

    fn explain_head(&self, _head: &Head) -> Decision {
        self.decision
    }
}

#[cfg(any(test, feature = "samples"))]
pub(super) fn sample(_capacity: u32) -> Config {
    Config::new(PerVc::from([("default", 1.0), ("vc1", 0.0), ("tcp2", 0.0)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::bench::stream;

    const L: Label = Label::new(0);
    const C: Label = Label::new(1);

    /// A `DualPI2` policy with the given settings and a clock of microseconds.
    fn dualpi2(set: impl FnOnce(&mut Config)) -> DualPi2 {
        let mut config = Config::new(PerVc::from([("a", 1.0), ("b", 0.0)]));
        set(&mut config);
        let mut policy = config.build(10_000, &["a", "b"]);
        policy.at_port(&PortInfo { clock: Clock::exact(1_000_000), ..PortInfo::unknown() });
        policy
    }

    fn head(vc: Label, now: u64, waited: u64) -> Head {
        Head { now: Time(now), vc, waited: Span(waited), behind: 1000, capable: true }
    }

    /// Returns the treatment of this number of frames that reach the head at an instant: sent, marked and dropped.
    fn fates(policy: &mut DualPi2, head: &Head, frames: usize) -> [usize; 3] {
        let fates: Vec<_> = (0..frames).map(|_| policy.on_head(head, &mut stream())).collect();
        [AtHead::Send, AtHead::Mark, AtHead::Drop].map(|fate| fates.iter().filter(|&&found| found == fate).count())
    }

    #[test]
    fn each_dualpi2_update_adds_the_weighted_error_and_change_of_the_longer_queuing_delay() {
        let mut policy = dualpi2(|_| ());
        policy.on_head(&head(C, 0, 40_000), &mut stream());
        policy.on_head(&head(L, 0, 2_000), &mut stream());
        policy.catch_up(Time(15_000));
        let first = 0.15 * (0.04 - 0.015) + 3.0 * 0.04;
        assert_eq!(policy.p, first);
        policy.catch_up(Time(30_000));
        assert_eq!(policy.p, first + 0.15 * (0.04 - 0.015));
        policy.on_departure(C, 0, Time(31_000));
        policy.catch_up(Time(45_000));
        let third = policy.p;
        assert!(third < first / 10.0, "the longer delay is now that of L: {third}");
        policy.on_departure(L, 0, Time(46_000));
        policy.catch_up(Time(1 << 60));
        assert_eq!((policy.p, policy.prevq), (0.0, 0.0));
        assert!(policy.next_update > Time(1 << 60));
    }

    #[test]
    fn the_dualpi2_drop_probability_is_the_square_of_the_l4s_marking_probability_over_k() {
        for (k, p) in [(2.0, 0.2), (2.0, 0.01), (1.0, 0.7), (4.0, 0.1)] {
            let mut policy = dualpi2(|config| config.k = k);
            policy.p = p;
            let [_, marked, _] = fates(&mut policy, &head(L, 1, 0), 10_000);
            let [_, in_c, dropped] = fates(&mut policy, &head(C, 1, 0), 10_000);
            assert_eq!(dropped, 0);
            let p_cl = marked as f64 / 10_000.0;
            assert!((in_c as f64 / 10_000.0 - (p_cl / k) * (p_cl / k)).abs() <= 1.5e-4, "k = {k}, p' = {p}");
            assert!((p_cl - k * p).abs() <= 1e-4, "k = {k}, p' = {p}");
        }
    }

    #[test]
    fn dualpi2_marks_an_l4s_frame_by_a_ramp_or_a_step_in_its_waiting_time() {
        let mut policy = dualpi2(|_| ());
        for (waited, marked) in [(800, 0), (900, 25), (1000, 50), (1200, 100), (9000, 100)] {
            policy.l.count = 0.0;
            let found = fates(&mut policy, &head(L, 1, waited), 101)[1];
            assert!(found.abs_diff(marked) <= 1, "{waited}: {found}");
        }
        let mut step = dualpi2(|config| config.range = Duration { picoseconds: 0 });
        assert_eq!(fates(&mut step, &head(L, 1, 800), 10), [10, 0, 0]);
        assert_eq!(fates(&mut step, &head(L, 1, 801), 11), [1, 10, 0]);
    }

    #[test]
    fn dualpi2_marks_no_l4s_frame_with_at_most_th_len_queued_behind_the_frame() {
        let mut policy = dualpi2(|_| ());
        // A packet of 1,500 bytes is a frame of 32 cells.
        let few = Head { behind: 32, ..head(L, 1, 9000) };
        assert_eq!(fates(&mut policy, &few, 10), [10, 0, 0]);
        assert_eq!(fates(&mut policy, &Head { behind: 33, ..few }, 11), [1, 10, 0]);
    }

    #[test]
    fn in_overload_dualpi2_drops_equally_from_both_queues_and_marks_the_other_l4s_frames() {
        let mut policy = dualpi2(|_| ());
        policy.p = 0.5;
        assert_eq!(fates(&mut policy, &head(C, 1, 0), 1000), [751, 0, 249]);
        let [sent, marked, dropped] = fates(&mut policy, &head(L, 1, 0), 1000);
        assert!(sent <= 1 && marked > 0 && dropped > 0, "{sent} {marked} {dropped}");
        policy.p = 0.499;
        assert_eq!(fates(&mut policy, &head(C, 1, 0), 1000)[2], 0);
    }

    #[test]
    fn in_both_queues_dualpi2_drops_frames_that_cannot_be_marked() {
        let mut policy = dualpi2(|_| ());
        policy.p = 0.3;
        for (vc, dropped) in [(L, 600), (C, 90)] {
            let found = fates(&mut policy, &Head { capable: false, ..head(vc, 1, 0) }, 1000);
            assert!(found[1] == 0 && found[2].abs_diff(dropped) <= 1, "{found:?}");
        }
    }

    #[test]
    fn dualpi2_settings_out_of_range_are_refused() {
        let faults = |set: fn(&mut Config), vcs: &[&str]| -> Vec<String> {
            let mut config = Config::new(PerVc::from([("a", 1.0), ("default", 0.0)]));
            set(&mut config);
            config.check(None, vcs).into_iter().map(|fault| fault.key).collect()
        };
        assert_eq!(faults(|_| (), &["a", "b"]), [""; 0]);
        assert_eq!(faults(|_| (), &["b", "c"]), ["l4s"]);
        assert_eq!(faults(|config| config.l4s = PerVc::Same(0.5), &["a"]), ["l4s"]);
        assert_eq!(faults(|config| config.k = 0.0, &[]), ["k"]);
        assert_eq!(faults(|config| config.target.picoseconds = 0, &[]), ["target"]);
        assert_eq!(faults(|config| config.t_update.picoseconds = 0, &[]), ["t_update"]);
        assert_eq!(faults(|config| (config.alpha, config.beta) = (f64::NAN, -1.0), &[]), ["alpha", "beta"]);
    }
}
