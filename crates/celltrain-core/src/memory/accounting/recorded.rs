//! Access to the policies of pools, for certificates.

use super::{Memory, Pool};
use crate::memory::recorded::{PoolRecord, RecordedPool};
use crate::memory::{MemoryConfig, MemoryPolicy, PoolIndex};
use crate::recording::{Budget, Records};

impl Memory {
    /// Wraps the policies of a memory, to record the questions to the policies.
    #[must_use]
    pub(crate) fn recorded(
        self,
        config: &MemoryConfig,
        records: &Records<String, PoolRecord>,
        budget: &Budget,
    ) -> Self {
        let record = |pool: Pool| {
            let policy: Box<dyn MemoryPolicy> = Box::new(RecordedPool::new(pool.policy, config, records, budget));
            Pool { policy, ..pool }
        };
        Self { pools: self.pools.into_iter().map(record).collect(), ..self }
    }

    /// Returns the policy of a pool.
    pub(crate) fn policy_of(&mut self, pool: PoolIndex) -> &mut dyn MemoryPolicy {
        &mut *self.pools[pool].policy
    }
}
