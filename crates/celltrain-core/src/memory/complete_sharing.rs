//! Complete sharing: a cell enters while the pool has room.
//!
//! Source: Irland, "Buffer Management in a Packet Switch", IEEE Transactions on Communications 26(3), 1978, section II.
//! Differences from the source: none known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Configure, Hooks, MemoryPolicy, PoolInfo, PoolQueue, Verdict, View};

/// Complete sharing: a cell enters while the pool has room.
///
/// Source: Irland 1978, section II.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CompleteSharing")]
pub struct Config {}

/// Complete sharing.
#[derive(Debug)]
pub struct CompleteSharing;

impl Configure for Config {
    type Policy = CompleteSharing;

    fn build(&self, _pool: &PoolInfo<'_>) -> CompleteSharing {
        CompleteSharing
    }
}

impl MemoryPolicy for CompleteSharing {
    fn admit(&mut self, view: &View<'_>, _queue: PoolQueue, cells: u32) -> Verdict {
        if view.fits(cells) { Verdict::Admit } else { Verdict::Refuse }
    }

    fn threshold(&self, view: &View<'_>, queue: PoolQueue) -> Option<f64> {
        Some(f64::from(view.queues[queue]) + f64::from(view.free()))
    }

    fn admits_up_to(&self, _cells: u32, _used: u32, _queue: PoolQueue) -> u32 {
        u32::MAX
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE
    }

    fn is_threshold(&self) -> bool {
        true
    }

    fn rule(&self) -> &'static str {
        "the pool is full"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::{Pool, fill};

    #[test]
    fn under_complete_sharing_one_queue_can_take_the_whole_shared_memory() {
        assert_eq!(fill(&mut Pool::new(&Config {}.into(), 10, 2), &[0]), [10, 0]);
        let mut pool = Pool::new(&Config {}.into(), 10, 2);
        assert_eq!(fill(&mut pool, &[0, 1]), [5, 5]);
        pool.leave(0);
        assert_eq!(fill(&mut pool, &[1]), [4, 6]);
    }
}
