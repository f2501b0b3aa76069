//! Records of the questions that a run asks its policies.

use crate::index::LinkIndex;
use crate::memory::recorded::PoolRecord;
use crate::memory::{Memory, MemoryConfig};
use crate::policy::BufferPolicy;
use crate::policy::recorded::{PortRecord, RecordedPolicy};
use crate::recording::{Budget, Records};

/// Collects the questions that a run asks its policies. Clones share the same records.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    pub(crate) ports: Records<LinkIndex, PortRecord>,
    /// Questions to pools, by the name of the memory.
    pub(crate) pools: Records<String, PoolRecord>,
    pub(crate) budget: Budget,
}

impl Recording {
    pub(super) fn policy(&self, policy: Box<dyn BufferPolicy>, link: LinkIndex) -> Box<dyn BufferPolicy> {
        Box::new(RecordedPolicy::new(policy, link, &self.ports, &self.budget))
    }

    pub(super) fn memory(&self, memory: Memory, config: &MemoryConfig) -> Memory {
        memory.recorded(config, &self.pools, &self.budget)
    }
}
