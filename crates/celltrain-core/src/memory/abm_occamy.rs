//! ABM as the baseline of Occamy: Dynamic Threshold divided by the number of queues near their threshold, and
//! multiplied by the drain rate of a queue, both updated in intervals.
//!
//! Source: Shan and others, "Occamy: A Preemptive Buffer Management for On-chip Shared-memory Switches", 2025, whose
//! simulation this follows; Addanki and others, SIGCOMM 2022, equation 1, for the formula. A queue counts in `n_p` if
//! it holds at least 0.9 of its threshold when the interval ends; `n_p` is at least 1. Differences from the source:
//! none known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::abm::{Abm, Congestion, check_interval};
use super::dynamic_threshold::check_alpha;
use super::{Configure, PerQueue, PoolInfo};
use crate::error::Fault;
use crate::units::Duration;

/// ABM as simulated for Occamy: queues that hold 0.9 of their threshold count, and counts are updated in intervals.
///
/// Source: the simulation of Occamy (2025); Addanki and others, SIGCOMM 2022, equation 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "AbmOccamy")]
pub struct Config {
    /// Alpha of all queues that set no alpha of their own.
    #[schemars(extend("exclusiveMinimum" = 0.0, "x-expect" = "a factor for the number of free cells (above 0)"))]
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

impl Configure for Config {
    type Policy = Abm;

    fn per_queue(&self) -> PerQueue {
        PerQueue { alpha: true, ..PerQueue::default() }
    }

    fn check(&self, _cells: u32) -> Vec<Fault> {
        let mut faults = check_alpha(self.alpha);
        faults.extend(check_interval(self.interval));
        faults
    }

    fn build(&self, pool: &PoolInfo<'_>) -> Abm {
        Abm::new(
            pool,
            self.alpha,
            Congestion::AtUpdates { share: self.congested, counts: [1; 256].into() },
            self.interval,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::{Pool, fill};
    use crate::units::{Span, Time};

    #[test]
    fn abm_occamy_counts_a_newly_congested_queue_only_from_the_next_periodic_update() {
        let config = Config { interval: Duration::from_microseconds(10), ..Config::default() };
        let mut pool = Pool::new(&config.into(), 101, 3);
        // Dynamic Threshold with an alpha of 2 gives a queue 2 x 101 / 5, about 40 cells.
        let held = fill(&mut pool, &[0, 1]);
        assert!(held[0].abs_diff(40) <= 2 && held[1].abs_diff(40) <= 2, "{held:?}");
        let before = pool.threshold(2);
        // Each port sends one cell per unit of time, so both queues drain at the full rate.
        for now in 1..=10 {
            (0..2).for_each(|queue| pool.leave(queue));
            fill(&mut pool, &[0, 1]);
            pool.act_at(Time::default() + Span(now));
        }
        assert_eq!(pool.threshold(0), before / 2.0, "two queues count as congested");
        assert_eq!(pool.threshold(2), before / 2.0, "with one priority per port, its smallest share of the rate is 1");
    }
}
