//! Static thresholds: a queue holds at most a fixed number of cells.
//!
//! Source: Irland 1978, section II; Kamoun and Kleinrock, "Analysis of Shared Finite Storage in a Computer Network Node
//! Environment Under General Traffic Conditions", IEEE Transactions on Communications 28(7), 1980. Without thresholds
//! the pool is divided equally (complete partitioning). Differences from the source: none known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use typed_index_collections::TiVec;

use super::{Configure, Hooks, MemoryPolicy, PerQueue, PoolInfo, PoolQueue, Verdict, View};
use crate::error::Fault;
use crate::threshold::Threshold;

/// Static thresholds: a queue holds at most a fixed number of cells.
///
/// Source: Irland 1978, section II; Kamoun and Kleinrock 1980.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "StaticThresholds")]
pub struct Config {
    /// T: number of the pool's cells that a queue without its own threshold may hold. Default: an equal part of the
    /// pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Threshold>,
}

/// Static thresholds.
#[derive(Debug)]
pub struct StaticThresholds {
    /// `T_i`: number of cells that each queue may hold.
    thresholds: TiVec<PoolQueue, u32>,
}

impl Configure for Config {
    type Policy = StaticThresholds;

    fn per_queue(&self) -> PerQueue {
        PerQueue { threshold: true, ..PerQueue::default() }
    }

    fn check(&self, cells: u32) -> Vec<Fault> {
        self.threshold.map(|threshold| threshold.check("threshold", Some(cells))).unwrap_or_default()
    }

    fn build(&self, pool: &PoolInfo<'_>) -> StaticThresholds {
        let queues = u32::try_from(pool.queues.len()).expect("all indices fit in 32 bits").max(1);
        let common = self.threshold.map_or(pool.cells / queues, |threshold| threshold.whole_cells(pool.cells));
        StaticThresholds { thresholds: pool.queues.iter().map(|queue| queue.threshold.unwrap_or(common)).collect() }
    }
}

impl MemoryPolicy for StaticThresholds {
    fn admit(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) -> Verdict {
        if self.has_room(view, queue, cells) { Verdict::Admit } else { Verdict::Refuse }
    }

    fn threshold(&self, _view: &View<'_>, queue: PoolQueue) -> Option<f64> {
        Some(f64::from(self.thresholds[queue]))
    }

    fn admits_up_to(&self, _cells: u32, _used: u32, queue: PoolQueue) -> u32 {
        self.thresholds[queue]
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE
    }

    fn is_threshold(&self) -> bool {
        true
    }

    fn rule(&self) -> &'static str {
        "q_i would exceed T_i"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::{Pool, fill};

    #[test]
    fn static_thresholds_divide_the_shared_memory_equally_by_default() {
        assert_eq!(fill(&mut Pool::new(&Config::default().into(), 11, 3), &[0, 2]), [3, 0, 3]);
    }

    #[test]
    fn with_static_thresholds_only_the_threshold_of_a_queue_and_a_full_memory_limit_the_queue() {
        let config = Config { threshold: Some("60%".parse().unwrap()) };
        assert_eq!(fill(&mut Pool::new(&config.clone().into(), 10, 2), &[1]), [0, 6]);
        assert_eq!(fill(&mut Pool::new(&config.into(), 10, 2), &[0, 0, 0, 1]), [6, 4]);
    }
}
