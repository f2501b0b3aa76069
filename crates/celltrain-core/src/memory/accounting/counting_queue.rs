//! Queues in which a cell changes only counters.

use super::{CellClass, Memory, Queue};
use crate::memory::{PoolIndex, PoolQueue, QueueIndex};
use crate::units::Time;

/// A queue in which a cell changes only counters: it is the only queue of its cells, without a reserve and without
/// pauses, and with a policy that does not follow cells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountingQueue {
    queue: QueueIndex,
    pool: PoolIndex,
    place: PoolQueue,
}

impl Memory {
    /// Returns the queue of the cells of a class, if these cells change only counters.
    pub(crate) fn counting_queue(&self, class: CellClass) -> Option<CountingQueue> {
        let ((Some(queue), None) | (None, Some(queue))) = (class.ingress, class.egress) else { return None };
        let Queue { pool, place, reserve, lossless, .. } = self.queues[queue];
        let only_counts = reserve == 0 && lossless.is_none() && !self.pools[pool].hooks.cells;
        only_counts.then_some(CountingQueue { queue, pool, place })
    }

    /// Counts an arriving cell of an admitted packet if the memory and the pool have room for it, as
    /// [`Memory::try_enter_rest`] does. Returns whether they have.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the engine's loop calls this function once per cell")]
    pub(crate) fn count_rest(&mut self, CountingQueue { queue, pool, place }: CountingQueue, now: Time) -> bool {
        let pool = &mut self.pools[pool];
        if pool.used >= pool.cells || self.used >= self.cells {
            return false;
        }
        pool.used += 1;
        pool.max_used = pool.max_used.max(pool.used);
        let shared = &mut pool.shared[place];
        *shared += 1;
        let held = *shared;
        self.used += 1;
        self.occupancy.rise(self.used, now);
        let counters = &mut self.queues[queue].counters;
        counters.entered += 1;
        counters.max_cells = counters.max_cells.max(held);
        true
    }

    /// Frees the place of a cell that is sent, as [`Memory::leave`] does.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the engine's loop calls this function once per cell")]
    pub(crate) fn count_out(&mut self, CountingQueue { pool, place, .. }: CountingQueue, now: Time) {
        self.occupancy.fall(self.used, now);
        self.used -= 1;
        let pool = &mut self.pools[pool];
        let shared = &mut pool.shared[place];
        debug_assert!(*shared > 0, "a cell leaves a queue that holds at least one cell");
        *shared -= 1;
        pool.used -= 1;
    }
}
