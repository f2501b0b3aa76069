//! Records of the questions that a run asks its policies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::index::LinkIndex;
use crate::memory::recorded::PoolRecord;
use crate::memory::{Memory, MemoryConfig};
use crate::policy::BufferPolicy;
use crate::policy::recorded::{PortRecord, RecordedPolicy};
use crate::recording::{Budget, Records};
use crate::rng;

/// Collects the questions that a run asks its policies. Clones share the same records.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    pub(crate) ports: Records<LinkIndex, PortRecord>,
    /// Questions to pools, by the name of the memory.
    pub(crate) pools: Records<String, PoolRecord>,
    pub(crate) budget: Budget,
    drew_nothing: Arc<AtomicBool>,
}

impl Recording {
    /// Calls `run`, which runs a network with this recording on this thread, and notes whether it draws random numbers.
    /// Otherwise the run counts as one that does.
    pub fn watch_draws<T>(&self, run: impl FnOnce() -> T) -> T {
        let (result, drew) = rng::draws_in(run);
        self.drew_nothing.store(!drew, Ordering::Relaxed);
        result
    }

    pub(crate) fn drew_nothing(&self) -> bool {
        self.drew_nothing.load(Ordering::Relaxed)
    }

    pub(super) fn policy(&self, policy: Box<dyn BufferPolicy>, link: LinkIndex) -> Box<dyn BufferPolicy> {
        Box::new(RecordedPolicy::new(policy, link, &self.ports, &self.budget))
    }

    pub(super) fn memory(&self, memory: Memory, config: &MemoryConfig) -> Memory {
        memory.recorded(config, &self.pools, &self.budget)
    }
}
