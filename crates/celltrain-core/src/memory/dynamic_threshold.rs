//! Dynamic Threshold: a queue holds at most alpha times the number of free places.
//!
//! Source: Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM
//! Transactions on Networking 6(2), 1998, section III. Symbols: B cells in the shared part, Q of them occupied, `q_i`
//! by queue i, and `alpha_i`. S saturated queues settle at alpha B / (1 + alpha S). Differences from the source: the
//! paper counts in real numbers and does not say whether the arriving cell counts in Q; see [`ArrivingCell`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use typed_index_collections::TiVec;

use super::{Configure, Hooks, MemoryPolicy, PerQueue, PoolInfo, PoolQueue, Verdict, View, whole_cells};
use crate::error::Fault;

/// Dynamic Threshold: a queue holds at most alpha times the number of free places.
///
/// Source: Choudhury and Hahne 1998, section III.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "DynamicThreshold")]
pub struct Config {
    /// Alpha of all queues that set no alpha of their own.
    #[schemars(extend("exclusiveMinimum" = 0.0, "x-expect" = "a factor for the number of free cells (above 0)"))]
    pub alpha: f64,
    /// Selects whether the arriving cell counts in Q.
    pub arriving_cell: ArrivingCell,
}

/// The treatment of the arriving cell in Q.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArrivingCell {
    /// The arriving cell is not counted: a cell enters if `q_i` + 1 <= alpha (B - Q). A single active queue stops at
    /// alpha (B + 1) / (1 + alpha), rounded down.
    #[default]
    NotCounted,
    /// The arriving cell counts: a cell enters if `q_i` + 1 <= alpha (B - Q - 1). A queue alone stops at alpha B / (1 +
    /// alpha), rounded down, as in chips of the Tomahawk series.
    Counted,
}

impl Default for Config {
    fn default() -> Self {
        Self { alpha: 1.0, arriving_cell: ArrivingCell::default() }
    }
}

/// Dynamic Threshold.
#[derive(Debug)]
pub struct DynamicThreshold {
    alphas: TiVec<PoolQueue, f64>,
    arriving_cell: ArrivingCell,
}

impl Configure for Config {
    type Policy = DynamicThreshold;

    fn per_queue(&self) -> PerQueue {
        PerQueue { alpha: true, ..PerQueue::default() }
    }

    fn check(&self, _cells: u32) -> Vec<Fault> {
        check_alpha(self.alpha)
    }

    fn build(&self, pool: &PoolInfo<'_>) -> DynamicThreshold {
        DynamicThreshold {
            alphas: pool.queues.iter().map(|queue| queue.alpha.unwrap_or(self.alpha)).collect(),
            arriving_cell: self.arriving_cell,
        }
    }
}

pub(super) fn check_alpha(alpha: f64) -> Vec<Fault> {
    if alpha > 0.0 && alpha.is_finite() {
        return Vec::new();
    }
    vec![Fault::new("alpha", alpha, "admits no cell; alpha must be a number above 0, such as 1")]
}

impl MemoryPolicy for DynamicThreshold {
    fn admit(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) -> Verdict {
        if self.has_room(view, queue, cells) { Verdict::Admit } else { Verdict::Refuse }
    }

    fn has_room(&self, view: &View<'_>, queue: PoolQueue, cells: u32) -> bool {
        let free = match self.arriving_cell {
            ArrivingCell::NotCounted => view.free(),
            ArrivingCell::Counted => view.free().saturating_sub(cells),
        };
        let threshold = whole_cells(self.alphas[queue] * f64::from(free));
        view.fits(cells) && view.queues[queue].saturating_add(cells) <= threshold
    }

    fn admits_up_to(&self, cells: u32, used: u32, queue: PoolQueue) -> u32 {
        let arriving = u32::from(self.arriving_cell == ArrivingCell::Counted);
        whole_cells(self.alphas[queue] * f64::from(cells.saturating_sub(used + arriving)))
    }

    fn threshold(&self, view: &View<'_>, queue: PoolQueue) -> Option<f64> {
        Some(self.alphas[queue] * f64::from(view.free()))
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE
    }

    fn is_threshold(&self) -> bool {
        true
    }

    fn rule(&self) -> &'static str {
        "q_i would exceed alpha_i (B - Q)"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::{Pool, fill};

    /// Returns how many cells each queue finally holds if cells arrive in turn for `saturated` queues.
    fn settled(alpha: f64, arriving_cell: ArrivingCell, cells: u32, saturated: u32) -> Vec<u32> {
        let config = Config { alpha, arriving_cell };
        let queues: Vec<u32> = (0..saturated).collect();
        fill(&mut Pool::new(&config.into(), cells, saturated), &queues)
    }

    #[test]
    fn queues_that_always_have_arrivals_reach_the_fixed_point_of_dynamic_threshold() {
        for alpha in [0.25, 0.5, 1.0, 2.0, 8.0] {
            for saturated in 1..=8 {
                for cells in [100, 997, 12_000] {
                    let [s, b] = [saturated, cells].map(f64::from);
                    // When a queue has its turn, Q already counts the latest cells of the other queues.
                    let fixed_point = alpha * b / (1.0 + alpha * s);
                    for held in settled(alpha, ArrivingCell::Counted, cells, saturated) {
                        let error = f64::from(held) - fixed_point;
                        assert!(-1.0 - alpha < error && error < 1.0, "{alpha} {saturated} {cells}: {held}");
                    }
                }
            }
        }
    }

    #[test]
    fn dynamic_threshold_limits_a_single_queue_to_the_fixed_point_rounded_down() {
        for alpha in [0.125, 0.5, 1.0, 2.0, 8.0] {
            for cells in [1, 2, 3, 99, 100, 8001] {
                let b = f64::from(cells);
                let expected = |b: f64| whole_cells(alpha * b / (1.0 + alpha));
                assert_eq!(settled(alpha, ArrivingCell::Counted, cells, 1), [expected(b)], "{alpha} {cells}");
                let not_counted = expected(b + 1.0).min(cells);
                assert_eq!(settled(alpha, ArrivingCell::NotCounted, cells, 1), [not_counted], "{alpha} {cells}");
            }
        }
    }

    #[test]
    fn dynamic_threshold_with_alpha_1_gives_two_queues_a_third_of_the_memory_each() {
        assert_eq!(settled(1.0, ArrivingCell::NotCounted, 300, 2), [100, 100]);
        assert_eq!(settled(1.0, ArrivingCell::NotCounted, 301, 2), [101, 100]);
    }
}
