//! Harmonic: the k-th longest queue holds at most B / (k `H_n`) cells.
//!
//! Source: Kesselman and Mansour, "Harmonic Buffer Management Policy for Shared Memory Switches", Theoretical Computer
//! Science 324(2-3), 2004, section 3. n is the number of queues of the pool, `H_n` = 1 + 1/2 + ... + 1/n. Differences
//! from the source: none known. The rank of a queue is 1 plus the number of longer queues before the arrival.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Configure, Hooks, MemoryPolicy, PoolInfo, PoolQueue, Verdict, View};

/// Harmonic: the k-th longest queue holds at most B / (k `H_n`) cells.
///
/// Source: Kesselman and Mansour 2004, section 3.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Harmonic")]
pub struct Config {}

/// Harmonic.
#[derive(Debug)]
pub struct Harmonic {
    /// B / `H_n`: limit of the longest queue, in cells.
    longest: f64,
}

impl Configure for Config {
    type Policy = Harmonic;

    fn build(&self, pool: &PoolInfo<'_>) -> Harmonic {
        Harmonic { longest: f64::from(pool.cells) / harmonic_number(pool.queues.len()) }
    }
}

fn harmonic_number(n: usize) -> f64 {
    (1..=n.max(1)).map(|k| 1.0 / k as f64).sum()
}

impl MemoryPolicy for Harmonic {
    fn admit(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) -> Verdict {
        if self.has_room(view, queue, cells) { Verdict::Admit } else { Verdict::Refuse }
    }

    fn threshold(&self, view: &View<'_>, queue: PoolQueue) -> Option<f64> {
        Some(self.longest / f64::from(view.rank(queue)))
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE
    }

    fn rule(&self) -> &'static str {
        "q_i would exceed B / (k H_n)"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::{Pool, fill};

    #[test]
    fn queues_filled_one_after_another_get_shares_of_the_harmonic_series_under_the_harmonic_policy() {
        // H_3 = 11/6, so the longest queue may hold 66 / H_3 = 36 cells, the second 36 / 2 and the third 36 / 3.
        let mut pool = Pool::new(&Config {}.into(), 66, 3);
        assert_eq!(fill(&mut pool, &[1]), [0, 36, 0]);
        assert_eq!(fill(&mut pool, &[2]), [0, 36, 18]);
        assert_eq!(fill(&mut pool, &[0]), [12, 36, 18]);
    }

    #[test]
    fn queues_that_grow_together_each_get_at_least_the_smallest_share_under_the_harmonic_policy() {
        // Queues of equal length all have rank 1, so the first queue that exceeds the limit of a lower rank remains the
        // longest.
        let held = fill(&mut Pool::new(&Config {}.into(), 66, 3), &[0, 1, 2]);
        assert!(held.iter().sum::<u32>() <= 66);
        assert!(held.iter().all(|&cells| cells >= 12), "{held:?}");
    }
}
