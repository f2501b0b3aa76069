//! ABM as the baseline of Occamy: Dynamic Threshold divided by the number of queues near their threshold, and
//! multiplied by the drain rate of a queue, both updated in intervals.
//!
//! Source: Shan and others, "Occamy: A Preemptive Buffer Management for On-chip Shared-memory Switches", 2025, whose
//! simulation this follows; Addanki and others, SIGCOMM 2022, equation 1, for the formula. A queue counts in `n_p` if
//! it holds at least 0.9 of its threshold when the interval ends; `n_p` is at least 1.
//! Departures: none known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use typed_index_collections::TiVec;

use super::abm::check_interval;
use super::drain_rate::DrainRates;
use super::dynamic_threshold::check_alpha;
use super::{Configure, Hooks, MemoryPolicy, PerQueue, PoolInfo, PoolQueue, PushOut, Verdict, View};
use crate::error::Fault;
use crate::units::{Duration, Time};

/// ABM as the baseline of Occamy: queues that hold 0.9 of their threshold count, and counts are updated in intervals.
///
/// Source: the simulation of Occamy (2025); Addanki and others, SIGCOMM 2022, equation 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "AbmOccamy")]
pub struct Config {
    /// Alpha of queues without their own.
    #[schemars(range(min = 0.0), extend("x-expect" = "a factor of the free places (above 0)"))]
    pub alpha: f64,
    /// Share of its threshold from which a queue counts as congested.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub congested: f64,
    /// Interval between updates.
    #[schemars(example = "80us")]
    pub interval: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self { alpha: 2.0, congested: 0.9, interval: Duration::from_microseconds(80) }
    }
}

/// ABM as the baseline of Occamy.
#[derive(Debug)]
pub struct AbmOccamy {
    alphas: TiVec<PoolQueue, f64>,
    priorities: TiVec<PoolQueue, u8>,
    congested: f64,
    /// `n_p` by priority.
    counts: [u32; 256],
    drain_rates: DrainRates,
}

impl Configure for Config {
    type Policy = AbmOccamy;

    fn per_queue(&self) -> PerQueue {
        PerQueue { alpha: true, ..PerQueue::default() }
    }

    fn check(&self, _cells: u32) -> Vec<Fault> {
        let mut faults = check_alpha(self.alpha);
        faults.extend(check_interval(self.interval));
        faults
    }

    fn build(&self, pool: &PoolInfo<'_>) -> AbmOccamy {
        AbmOccamy {
            alphas: pool.queues.iter().map(|queue| queue.alpha.unwrap_or(self.alpha)).collect(),
            priorities: pool.queues.iter().map(|queue| queue.priority).collect(),
            congested: self.congested,
            counts: [1; 256],
            drain_rates: DrainRates::new(pool, pool.clock.span(self.interval)),
        }
    }
}

impl MemoryPolicy for AbmOccamy {
    fn admit(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) -> Verdict {
        if self.has_room(view, queue, cells) { Verdict::Admit } else { Verdict::Refuse }
    }

    fn threshold(&self, view: &View<'_>, queue: PoolQueue) -> Option<f64> {
        let n_p = f64::from(self.counts[usize::from(self.priorities[queue])]);
        Some(self.alphas[queue] * f64::from(view.free()) / n_p * self.drain_rates.of(queue))
    }

    fn left(&mut self, _view: &View<'_>, queue: PoolQueue, cells: u32) {
        self.drain_rates.left(queue, cells);
    }

    fn next_time(&self) -> Option<Time> {
        Some(self.drain_rates.next_time())
    }

    fn on_time(&mut self, view: &View<'_>) -> Option<PushOut> {
        let thresholds = view.queues.keys().map(|queue| self.threshold(view, queue).unwrap_or_default());
        let thresholds: TiVec<PoolQueue, f64> = thresholds.collect();
        let mut counts = [0; 256];
        for (queue, &cells) in view.queues.iter_enumerated() {
            let is_congested = cells > 0 && f64::from(cells) >= self.congested * thresholds[queue];
            counts[usize::from(self.priorities[queue])] += u32::from(is_congested);
        }
        self.counts = counts.map(|count| count.max(1));
        self.drain_rates.on_time();
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
    use crate::memory::tests::{Pool, fill};
    use crate::units::Span;

    #[test]
    fn congested_queues_count_from_the_next_update_on() {
        let config = Config { interval: Duration::from_microseconds(10), ..Config::default() };
        let mut pool = Pool::new(&config.into(), 101, 3);
        // Dynamic Threshold with an alpha of 2 gives 2 x 101 / 5, which is about 40 cells.
        let held = fill(&mut pool, &[0, 1]);
        assert!(held[0].abs_diff(40) <= 2 && held[1].abs_diff(40) <= 2, "{held:?}");
        let before = pool.threshold(2);
        // Each port sends one cell per unit of time, so both queues drain at the full rate.
        for now in 1..=10 {
            (0..2).for_each(|queue| pool.leave(queue));
            fill(&mut pool, &[0, 1]);
            pool.act_at(Time::default() + Span(now));
        }
        assert_eq!(pool.threshold(0), before / 2.0, "two queues are near their threshold");
        assert_eq!(pool.threshold(2), before / 2.0, "one port has one priority, so its least share is 1");
    }
}
