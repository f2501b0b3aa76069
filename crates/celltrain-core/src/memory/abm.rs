//! ABM, Active Buffer Management, as its authors implement it: Dynamic Threshold divided by the number of congested
//! queues of a priority, and multiplied by the drain rate of a queue.
//!
//! Source: Addanki, Apostolaki, Ghobadi, Schmid and Vanbever, "ABM: Active Buffer Management in Datacenters", SIGCOMM
//! 2022, equation 1; the authors' code for which queues count. `T_i` = `alpha_i` (B - Q) / `n_p` times the share of its
//! port's rate at which queue i drained in the last interval. `n_p` is the sum over ports of min(1, `q_i` / congested),
//! at least 1. The share is between 1 / priorities and 1. Differences from the source: in the authors' code, packets of
//! a flow's first round trip have an alpha of 1024. Here they are not distinguished, but their queue can have its own
//! alpha.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use typed_index_collections::TiVec;

use super::drain_rate::DrainRates;
use super::dynamic_threshold::check_alpha;
use super::interval::IntervalClock;
use super::{Configure, Hooks, MemoryPolicy, PerQueue, PoolInfo, PoolQueue, PushOut, Verdict, View};
use crate::error::Fault;
use crate::length::Length;
use crate::units::{Bytes, Duration, Span, Time};

/// ABM as its authors implement it: Dynamic Threshold over the congested queues of a priority, times the drain rate.
///
/// Source: Addanki and others, SIGCOMM 2022, equation 1, and the authors' code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Abm")]
pub struct Config {
    /// Alpha of all queues that set no alpha of their own.
    #[schemars(extend("exclusiveMinimum" = 0.0, "x-expect" = "a factor for the number of free cells (above 0)"))]
    pub alpha: f64,
    /// Length at which a queue counts as one congested queue; a shorter queue counts in proportion. The default is that
    /// of the authors' code.
    pub congested: Length,
    /// Interval in which drain rates are measured: the base round-trip time.
    #[schemars(example = "80us")]
    pub interval: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            alpha: 0.5,
            congested: Length::Bytes(Bytes { bytes: 28_000 }),
            interval: Duration::from_microseconds(80),
        }
    }
}

/// Settings of this policy or of `abm_occamy`.
#[derive(Debug)]
pub struct Abm {
    alphas: TiVec<PoolQueue, f64>,
    priorities: TiVec<PoolQueue, u8>,
    congestion: Congestion,
    drain_rates: DrainRates,
    clock: IntervalClock,
}

/// Rule for counting `n_p`, the number of congested queues of a priority.
#[derive(Debug)]
pub(super) enum Congestion {
    /// Counts queues by their present lengths: a queue with this many cells counts as one, and a shorter queue as a
    /// fraction.
    ByLength(f64),
    /// At the end of each interval, counts the queues that hold this share of their threshold.
    AtUpdates {
        share: f64,
        /// `n_p` of each priority.
        counts: Box<[u32; 256]>,
    },
}

impl Configure for Config {
    type Policy = Abm;

    fn per_queue(&self) -> PerQueue {
        PerQueue { alpha: true, ..PerQueue::default() }
    }

    fn check(&self, _cells: u32) -> Vec<Fault> {
        let mut faults = check_alpha(self.alpha);
        faults.extend(self.congested.check("congested"));
        faults.extend(check_interval(self.interval));
        faults
    }

    fn build(&self, pool: &PoolInfo<'_>) -> Abm {
        let congested = self.congested.cells(pool.cell);
        Abm::new(pool, self.alpha, Congestion::ByLength(f64::from(congested)), self.interval)
    }
}

pub(super) fn check_interval(interval: Duration) -> Option<Fault> {
    let problem = "is not a time above 0, such as 80us";
    (interval == Duration::default()).then(|| Fault::new("interval", format!("\"{interval}\""), problem))
}

impl Abm {
    pub(super) fn new(pool: &PoolInfo<'_>, alpha: f64, congestion: Congestion, interval: Duration) -> Self {
        let interval = pool.clock.span(interval).max(Span(1));
        Self {
            alphas: pool.queues.iter().map(|queue| queue.alpha.unwrap_or(alpha)).collect(),
            priorities: pool.queues.iter().map(|queue| queue.priority).collect(),
            congestion,
            drain_rates: DrainRates::new(pool, interval),
            clock: IntervalClock::new(interval),
        }
    }

    /// Returns `n_p`.
    fn congested_queues(&self, view: &View<'_>, priority: u8) -> f64 {
        match &self.congestion {
            Congestion::ByLength(congested) => {
                let own = self.priorities.iter().zip(view.queues).filter(|&(&other, _)| other == priority);
                own.map(|(_, &cells)| (f64::from(cells) / congested).min(1.0)).sum::<f64>().max(1.0)
            }
            Congestion::AtUpdates { counts, .. } => f64::from(counts[usize::from(priority)]),
        }
    }

    /// For each priority, returns the number of queues that hold at least a given share of their threshold, or 1 if no
    /// queue does.
    fn near_threshold(&self, view: &View<'_>, share: f64) -> [u32; 256] {
        let mut counts = [0; 256];
        for (queue, &cells) in view.queues.iter_enumerated() {
            let threshold = self.threshold(view, queue).unwrap_or_default();
            let is_congested = cells > 0 && f64::from(cells) >= share * threshold;
            counts[usize::from(self.priorities[queue])] += u32::from(is_congested);
        }
        counts.map(|count| count.max(1))
    }
}

impl MemoryPolicy for Abm {
    fn admit(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) -> Verdict {
        if self.has_room(view, queue, cells) { Verdict::Admit } else { Verdict::Refuse }
    }

    fn threshold(&self, view: &View<'_>, queue: PoolQueue) -> Option<f64> {
        let n_p = self.congested_queues(view, self.priorities[queue]);
        Some(self.alphas[queue] * f64::from(view.free()) / n_p * self.drain_rates.of(queue))
    }

    fn entered(&mut self, view: &View<'_>, _queue: PoolQueue, _cells: u32) {
        if let Congestion::AtUpdates { .. } = self.congestion {
            self.clock.wake(view.now);
        }
    }

    fn left(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) {
        self.drain_rates.left(queue, cells);
        self.clock.wake(view.now);
    }

    fn next_time(&self) -> Option<Time> {
        self.clock.next_time()
    }

    fn pass(&mut self, now: Time) {
        self.clock.pass(now);
    }

    fn on_time(&mut self, view: &View<'_>) -> Option<PushOut> {
        let mut changed = false;
        if let Congestion::AtUpdates { share, .. } = self.congestion {
            let new_counts = self.near_threshold(view, share);
            if let Congestion::AtUpdates { counts, .. } = &mut self.congestion {
                changed = **counts != new_counts;
                **counts = new_counts;
            }
        }
        changed |= self.drain_rates.end_interval();
        self.clock.acted(changed);
        None
    }

    fn hooks(&self) -> Hooks {
        Hooks { arrivals: false, ..Hooks::ALL }
    }

    fn rule(&self) -> &'static str {
        "q_i would exceed alpha_i (B - Q) / n_p times the drain rate"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aal5::CellFormat;
    use crate::memory::QueueInfo;
    use crate::memory::tests::{Pool, fill};
    use crate::rng::Stream;
    use crate::units::Clock;

    #[test]
    fn abm_gives_a_single_congested_queue_the_same_threshold_as_dynamic_threshold() {
        let config = Config { alpha: 1.0, congested: Length::Cells(10), ..Config::default() };
        assert_eq!(fill(&mut Pool::new(&config.clone().into(), 99, 4), &[2]), [0, 0, 50, 0]);
        // With two congested queues, q = (99 - 2 q) / 2.
        let held = fill(&mut Pool::new(&config.into(), 99, 4), &[1, 2]);
        assert_eq!((held[0], held[3]), (0, 0));
        assert!(held[1].abs_diff(25) <= 1 && held[2].abs_diff(25) <= 1, "{held:?}");
    }

    #[test]
    fn abm_ignores_queues_of_other_priorities_and_gives_slowly_draining_queues_lower_thresholds() {
        let queues: TiVec<PoolQueue, QueueInfo> =
            [0, 1].map(|priority| QueueInfo { priority, ..QueueInfo::at_port(0) }).into_iter().collect();
        let config = Config { alpha: 1.0, congested: Length::Cells(1), interval: Duration::from_microseconds(100) };
        let mut pool = Pool::with_queues(&config.into(), 100, &queues);
        assert_eq!(fill(&mut pool, &[0]), [50, 0]);
        assert_eq!(pool.threshold(1), 50.0, "the other priority has no congested queue");
        // No cell departed during the interval. Both shares are then one half, the smallest possible with two priorities.
        pool.act_at(Time::default() + Span(100));
        assert_eq!(pool.threshold(1), 25.0);
        // In the next interval, queue 0 sends 25 cells, a quarter of the port's capacity. That is less than the
        // smallest share.
        (0..25).for_each(|_| pool.leave(0));
        pool.act_at(Time::default() + Span(200));
        assert_eq!(pool.threshold(0), 75.0 / 2.0);
        // The port can send 100 cells in an interval. Queue 0 sends 75 of them, in groups of 25, 33 and 17, and is
        // refilled after each group.
        for cells in [25, 33, 17] {
            (0..cells).for_each(|_| pool.leave(0));
            fill(&mut pool, &[0]);
        }
        pool.act_at(Time::default() + Span(300));
        let free = f64::from(100 - pool.held()[0]);
        assert_eq!(pool.threshold(0), free * 0.75);
        assert_eq!(pool.threshold(1), free / 2.0, "queue 1 sent nothing");
    }

    /// A pool of three queues, and a random sequence of changes and ends of instants.
    struct Trial {
        policy: Abm,
        queues: TiVec<PoolQueue, u32>,
        actions: u32,
    }

    impl Trial {
        fn new(congestion: Congestion, interval: Duration) -> Self {
            let queue = |port, priority| QueueInfo { priority, cell_time: Span(7), ..QueueInfo::at_port(port) };
            let infos: TiVec<PoolQueue, QueueInfo> = vec![queue(0, 0), queue(0, 1), queue(1, 0)].into();
            let (clock, rng) = (Clock::exact(1_000_000), &Stream::new(1, "test"));
            let pool = PoolInfo { name: "sw/main", cells: 40, queues: &infos, clock, cell: CellFormat::ATM, rng };
            Self { policy: Abm::new(&pool, 1.5, congestion, interval), queues: vec![0; 3].into(), actions: 0 }
        }

        fn change(&mut self, queue: PoolQueue, enters: bool, now: Time) {
            let used: u32 = self.queues.iter().sum();
            if enters && used < 40 {
                self.queues[queue] += 1;
                let view = View { cells: 40, used: used + 1, queues: &self.queues, now };
                self.policy.entered(&view, queue, 1);
            } else if !enters && self.queues[queue] > 0 {
                self.queues[queue] -= 1;
                let view = View { cells: 40, used: used - 1, queues: &self.queues, now };
                self.policy.left(&view, queue, 1);
            }
        }

        fn end_instant(&mut self, now: Time, may_sleep: bool) {
            let Self { policy, queues, actions } = self;
            let view = View { cells: 40, used: queues.iter().sum(), queues, now };
            while policy.next_time().is_some_and(|time| time <= now) {
                policy.on_time(&view);
                *actions += 1;
                if !may_sleep {
                    policy.clock.wake(Time::default());
                }
            }
            policy.pass(now);
        }

        fn thresholds(&self, now: Time) -> Vec<Option<f64>> {
            let view = View { cells: 40, used: self.queues.iter().sum(), queues: &self.queues, now };
            self.queues.keys().map(|queue| self.policy.threshold(&view, queue)).collect()
        }
    }

    #[test]
    fn the_thresholds_of_abm_do_not_depend_on_whether_its_clock_pauses_without_traffic() {
        let mut rng = Stream::new(1, "abm");
        for case in 0..200 {
            let interval = Duration::from_microseconds(u64::from(1 + rng.below([2, 20, 2000][case % 3])));
            let congestion = || match case % 2 {
                0 => Congestion::ByLength(5.0),
                _ => Congestion::AtUpdates { share: 0.9, counts: [1; 256].into() },
            };
            let [mut sleeps, mut wakes] = [(); 2].map(|()| Trial::new(congestion(), interval));
            let (mut now, mut changes) = (Time(0), 0);
            for _ in 0..60 {
                let later = now + Span(1 + u64::from(rng.below([3, 300][case / 6 % 2])));
                while now < later {
                    now += Span(1);
                    if now == later {
                        for _ in 0..rng.below(4) {
                            let (queue, enters) = (PoolQueue::new(rng.below(3)), rng.below(2) == 0);
                            sleeps.change(queue, enters, now);
                            wakes.change(queue, enters, now);
                            changes += 1;
                        }
                    }
                    sleeps.end_instant(now, true);
                    wakes.end_instant(now, false);
                    assert_eq!(sleeps.thresholds(now), wakes.thresholds(now), "case {case} at {now:?}");
                    // The policy of another pool removes a cell after this policy has acted in the same instant.
                    if now == later && rng.below(4) == 0 {
                        let queue = PoolQueue::new(rng.below(3));
                        sleeps.change(queue, false, now);
                        wakes.change(queue, false, now);
                        changes += 1;
                    }
                }
            }
            assert!(sleeps.actions <= 8 * (changes + 1), "case {case}: {} actions, {changes} changes", sleeps.actions);
        }
    }
}
