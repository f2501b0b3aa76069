//! Queues in which a cell changes only counters.

use super::{Attempt, CellClass, Memory, Pool, Queue};
use crate::memory::{PoolIndex, PoolQueue, QueueIndex};
use crate::units::Time;

/// A queue in which a cell changes only counters: it is the only queue of its cells, without a reserve and without
/// pauses, and with a policy that does not follow cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CountingQueue {
    queue: QueueIndex,
    pool: PoolIndex,
    place: PoolQueue,
}

/// A length of a queue up to which the policy is certain to admit cells, as long as the shared part holds no more than
/// `used` cells.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Certain {
    length: u32,
    used: u32,
}

/// Number of cells by which the shared part may grow before the policy is asked again for a certain length.
const STEP: u32 = 64;

impl Memory {
    /// Returns the queue of the cells of a class, if these cells change only counters.
    pub(crate) fn counting_queue(&self, class: CellClass) -> Option<CountingQueue> {
        let ((Some(queue), None) | (None, Some(queue))) = (class.ingress, class.egress) else { return None };
        let Queue { pool, place, reserve, lossless, .. } = self.queues[queue];
        let only_counts = reserve == 0 && lossless.is_none() && !self.pools[pool].hooks.cells;
        only_counts.then_some(CountingQueue { queue, pool, place })
    }

    /// Does what [`Memory::try_enter`] does. `counting` is the queue of the cells of `class`, if these cells change
    /// nothing but counts. As long as that queue is short, the policy is not asked.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the engine's loop calls this function once per cell")]
    pub(crate) fn try_enter_counting(
        &mut self,
        counting: Option<CountingQueue>,
        class: CellClass,
        now: Time,
    ) -> Attempt {
        if counting.is_some_and(|counting| self.has_certain_room(counting) && self.count_rest(counting, now)) {
            return Attempt::Entered;
        }
        self.try_enter_asking(counting, class, now)
    }

    /// Returns whether the policy of a queue is certain to admit a cell.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the engine's loop calls this function once per cell")]
    fn has_certain_room(&self, counting: CountingQueue) -> bool {
        let Certain { length, used } = self.queues[counting.queue].certain;
        let pool = &self.pools[counting.pool];
        pool.used <= used && pool.shared[counting.place] < length
    }

    /// Counts an arriving cell if counting is certain to be the only effect of its arrival. Returns whether the cell
    /// was counted.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the engine's loop calls this function once per cell")]
    pub(crate) fn count_certain(&mut self, counting: CountingQueue, now: Time) -> bool {
        !self.follows_arrivals && self.has_certain_room(counting) && self.count_rest(counting, now)
    }

    #[inline(never)]
    fn try_enter_asking(&mut self, counting: Option<CountingQueue>, class: CellClass, now: Time) -> Attempt {
        let attempt = self.try_enter(class, now);
        if let (Some(CountingQueue { queue, pool, place }), Attempt::Entered) = (counting, attempt) {
            let (certain, pool) = (&mut self.queues[queue].certain, &self.pools[pool]);
            if pool.used > certain.used || pool.used.saturating_add(2 * STEP) < certain.used {
                *certain = Certain::of(pool, place);
            }
        }
        attempt
    }

    /// Counts an arriving cell of an admitted packet if the memory and the pool have room for the cell, as
    /// [`Memory::try_enter_rest`] does. Returns whether the cell was counted.
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

impl Certain {
    fn of(pool: &Pool, queue: PoolQueue) -> Self {
        let used = pool.used.saturating_add(STEP).min(pool.cells.saturating_sub(1));
        Self { length: pool.policy.admits_up_to(pool.cells, used, queue), used }
    }
}
