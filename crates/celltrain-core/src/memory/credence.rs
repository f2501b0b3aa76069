//! Credence: uses the thresholds of a virtual Longest Queue Drop, and predictions of the cells that Longest Queue Drop
//! would lose.
//!
//! Source: Addanki, Pacut and Schmid, "Credence: Augmenting Datacenter Switch Buffer Sharing with ML Predictions", NSDI
//! 2024, Algorithm 1. A virtual queue for each queue follows Longest Queue Drop: it grows at arrivals, shrinks at
//! departures, and the longest shrinks when their sum would exceed B. While no queue exceeds B / N, every cell enters.
//! Otherwise a cell enters if `q_i` stays within its virtual queue and Longest Queue Drop is not predicted to lose the
//! cell. Differences from the source: the authors' learned predictor is not available. Predictions are those of a run
//! of Longest Queue Drop (tail, lowest index) with the same arrivals, some of them flipped at random. If arrivals
//! depend on losses, as with TCP, the arrivals of the recorded run soon differ, and predictions are wrong.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use typed_index_collections::{TiVec, ti_vec};

use super::{Configure, Hooks, MemoryPolicy, PoolInfo, PoolQueue, Verdict, View};
use crate::coverage::reached;
use crate::error::Fault;
use crate::rng::Stream;

/// Credence: uses the thresholds of a virtual Longest Queue Drop, and predictions of the cells that Longest Queue Drop
/// would lose.
///
/// Source: Addanki, Pacut and Schmid, NSDI 2024, Algorithm 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Credence")]
pub struct Config {
    /// Probability that a prediction is inverted; 0 for perfect predictions.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expect" = "a probability (0 to 1)"))]
    pub flips: f64,
}

/// Credence.
#[derive(Debug)]
pub struct Credence {
    /// Lengths of the virtual queues, which serve as thresholds.
    thresholds: TiVec<PoolQueue, u32>,
    flips: f64,
    rng: Stream,
    /// For each arrival, true if Longest Queue Drop would lose the cell.
    drops: Arc<[bool]>,
    arrivals: usize,
    /// True if Longest Queue Drop is predicted to lose the arriving cell.
    is_drop: bool,
}

impl Configure for Config {
    type Policy = Credence;

    fn check(&self, _cells: u32) -> Vec<Fault> {
        if (0.0..=1.0).contains(&self.flips) {
            return Vec::new();
        }
        vec![Fault::new("flips", self.flips, "is not a probability (0 to 1)")]
    }

    fn needs_predictions(&self) -> bool {
        true
    }

    fn build(&self, pool: &PoolInfo<'_>) -> Credence {
        Credence {
            thresholds: ti_vec![0; pool.queues.len()],
            flips: self.flips,
            rng: pool.rng.clone(),
            drops: Arc::from([]),
            arrivals: 0,
            is_drop: false,
        }
    }
}

impl Credence {
    /// Adds `cells` arriving cells to a virtual queue.
    fn follow(&mut self, queue: PoolQueue, cells: u32, most: u32) {
        for _ in 0..cells {
            let sum: u32 = self.thresholds.iter().sum();
            if sum >= most {
                // If several queues are longest, selects the first longest queue.
                let longest = self.thresholds.keys().rev().max_by_key(|&other| self.thresholds[other]);
                let Some(longest) = longest.filter(|&longest| self.thresholds[longest] > 0) else { return };
                self.thresholds[longest] -= 1;
            }
            self.thresholds[queue] += 1;
        }
    }

    /// Predicts whether Longest Queue Drop loses the arriving cell.
    fn predicts_drop(&mut self) -> bool {
        let drops = self.drops.get(self.arrivals).copied().unwrap_or(false);
        self.arrivals += 1;
        let is_flipped = self.flips > 0.0 && self.rng.unit() < self.flips;
        reached!(PredictionFlipped if is_flipped);
        drops != is_flipped
    }
}

impl MemoryPolicy for Credence {
    fn admit(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) -> Verdict {
        if !view.fits(cells) {
            return Verdict::Refuse;
        }
        let queues = u32::try_from(view.queues.len()).expect("all indices fit in 32 bits");
        let longest = view.queues.iter().copied().max().unwrap_or(0);
        // Compare q with B / N without a division, to avoid rounding.
        let is_safe = u64::from(longest) * u64::from(queues) <= u64::from(view.cells);
        let is_within = view.queues[queue].saturating_add(cells) <= self.thresholds[queue];
        reached!(PredictedLoss if !is_safe && is_within && self.is_drop);
        if is_safe || (is_within && !self.is_drop) { Verdict::Admit } else { Verdict::Refuse }
    }

    fn threshold(&self, _view: &View<'_>, queue: PoolQueue) -> Option<f64> {
        Some(f64::from(self.thresholds[queue]))
    }

    fn arrived(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) {
        self.follow(queue, cells, view.cells);
        self.is_drop = self.predicts_drop();
    }

    fn left(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) {
        let threshold = &mut self.thresholds[queue];
        *threshold = if view.queues[queue] == 0 { 0 } else { threshold.saturating_sub(cells) };
    }

    fn predict(&mut self, drops: Arc<[bool]>) {
        self.drops = drops;
    }

    fn hooks(&self) -> Hooks {
        Hooks { clock: false, ..Hooks::ALL }
    }

    fn rule(&self) -> &'static str {
        "q_i would exceed its virtual queue, or Longest Queue Drop would lose the cell"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::{Pool, fill};

    fn pool(flips: f64, drops: &[bool]) -> Pool {
        let mut pool = Pool::new(&Config { flips }.into(), 12, 3);
        pool.predict(drops.into());
        pool
    }

    #[test]
    fn credence_lets_a_single_queue_take_the_whole_shared_memory_if_no_drop_is_predicted() {
        assert_eq!(fill(&mut pool(0.0, &[]), &[0]), [12, 0, 0]);
    }

    #[test]
    fn credence_follows_a_prediction_to_drop_only_if_queues_exceed_the_safe_length() {
        // Queues of up to B / N = 4 cells are safe; a longest queue of five cells is not.
        let mut pool = pool(0.0, &[true; 20]);
        assert_eq!(fill(&mut pool, &[0]), [5, 0, 0]);
        assert_eq!(fill(&mut pool, &[1]), [5, 0, 0], "the policy uses the longest queue of the memory");
    }

    #[test]
    fn the_thresholds_of_credence_are_the_queue_lengths_under_longest_queue_drop() {
        let mut pool = pool(0.0, &[]);
        (0..12).for_each(|_| assert!(pool.offer(0)));
        // Longest Queue Drop would now push a cell out of queue 0. Credence cannot do so, but lowers the threshold of
        // queue 0.
        assert!(!pool.offer(1));
        assert_eq!([0, 1].map(|queue| pool.threshold(queue)), [11.0, 1.0]);
        pool.leave(0);
        assert_eq!(pool.threshold(0), 10.0);
        assert!(pool.offer(1), "a place is free, and q_1 + 1 <= 2");
        assert!(!pool.offer(0), "q_0 is 11");
    }

    #[test]
    fn credence_inverts_the_configured_fraction_of_its_drop_predictions() {
        assert_eq!(fill(&mut pool(1.0, &[]), &[0]), [5, 0, 0]);
        assert_eq!(fill(&mut pool(1.0, &[true; 20]), &[0]), [12, 0, 0]);
    }
}
