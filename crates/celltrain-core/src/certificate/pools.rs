//! Checks whether a run would have been identical with other shared memories and pool policies.

use typed_index_collections::{TiVec, ti_vec};

use crate::memory::recorded::{Arriving, PoolRecord};
use crate::memory::{Memory, MemoryConfig, PoolIndex, PoolQueue, Verdict, View};
use crate::metrics::MemoryResult;
use crate::units::Time;

/// The settings of a memory in a run, and the decisions of its policy.
#[derive(Debug)]
pub(super) struct PoolCertificate {
    config: MemoryConfig,
    record: PoolRecord,
}

impl PoolCertificate {
    pub(super) fn new(config: &MemoryConfig, result: &MemoryResult, record: Option<PoolRecord>) -> Self {
        let mut record = record.unwrap_or_else(|| PoolRecord::new(true));
        record.most = record.most.max(result.max_used_cells);
        record.lacked_room |= result.max_used_cells >= config.cells;
        Self { config: config.clone(), record }
    }

    /// Returns whether the memory of the run has these settings.
    pub(super) fn is_of(&self, config: &MemoryConfig) -> bool {
        self.config == *config
    }

    /// Returns whether a memory with these settings, created by `create`, would have treated all cells of the run in
    /// the same way.
    pub(super) fn covers(&self, config: &MemoryConfig, create: impl FnOnce() -> Memory) -> bool {
        let Self { config: own, record } = self;
        if record.is_unknown || !own.is_single_pool() || !config.is_single_pool() {
            return false;
        }
        let has_room = if record.lacked_room { config.cells == own.cells } else { record.most <= config.cells };
        if !has_room {
            return false;
        }
        let mut memory = create();
        let policy = memory.policy_of(PoolIndex::default());
        if !(policy.is_threshold() || policy.admits_all_that_fits() && !record.lacked_room) {
            return false;
        }
        let mut lengths: TiVec<PoolQueue, u32> = ti_vec![0; own.queues.len()];
        record.all(|Arriving { queue, cells, .. }, used, held, admitted| {
            lengths[queue] = held;
            let view = View { cells: config.cells, used, queues: &lengths, now: Time(0) };
            used <= config.cells && (policy.admit(&view, queue, cells) == Verdict::Admit) == admitted
        })
    }
}
