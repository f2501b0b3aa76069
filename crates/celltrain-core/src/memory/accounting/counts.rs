//! The counts of a memory that ports, measures and events read.

use super::{CellClass, Memory, MemoryState, Pool, Queue, QueueCounters};
use crate::marking::Counted;
use crate::memory::{PoolIndex, QueueIndex, Side};
use crate::units::Time;

impl Memory {
    /// Returns X for port policies that see the whole memory: Q of the first pool on the egress side, or of the first
    /// pool if there is none on the egress side.
    pub fn seen_by_policies(&self) -> u32 {
        let egress = self.pools.iter().find(|pool| pool.side == Side::Egress);
        egress.or(self.pools.first()).map_or(0, |pool| pool.used)
    }

    /// Returns the memory's counters and cells at the time `now`.
    pub fn state(&self, now: Time) -> MemoryState {
        MemoryState {
            used: self.used,
            max_used: self.max_used(),
            occupancy: self.occupancy.times(self.used, now),
            pools: self.pools.iter().map(Pool::state).collect(),
            queues: self.queues.iter_enumerated().map(|(number, queue)| (self.held(number), queue.counters)).collect(),
        }
    }

    /// Returns the number of cells in the memory.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Returns the largest number of cells in the memory so far.
    pub fn max_used(&self) -> u32 {
        self.occupancy.max_used()
    }

    /// Returns Q, the number of occupied cells in the shared part of a pool.
    pub fn pool_used(&self, pool: PoolIndex) -> u32 {
        self.pools[pool].used
    }

    /// Returns the largest number of occupied cells in the shared part of a pool so far.
    pub fn pool_max_used(&self, pool: PoolIndex) -> u32 {
        self.pools[pool].max_used
    }

    /// Returns the number of cells in a queue, including its reserve and its headroom.
    pub fn held(&self, queue: QueueIndex) -> u32 {
        let Queue { pool, place, in_reserve, in_headroom, .. } = self.queues[queue];
        in_reserve + self.pools[pool].shared[place] + in_headroom
    }

    /// Returns `q_i`, the number of a queue's cells in the shared part.
    pub fn shared(&self, queue: QueueIndex) -> u32 {
        self.pools[self.queues[queue].pool].shared[self.queues[queue].place]
    }

    /// Returns Q of the pool of a queue.
    pub fn used_of(&self, queue: QueueIndex) -> u32 {
        self.pools[self.queues[queue].pool].used
    }

    /// Returns the cells in the headroom of a queue.
    pub fn in_headroom(&self, queue: QueueIndex) -> u32 {
        self.queues[queue].in_headroom
    }

    /// Returns the maximum number of cells that a queue may now hold in the shared part, if its policy has such a
    /// threshold.
    pub fn threshold(&self, queue: QueueIndex, now: Time) -> Option<f64> {
        let Queue { pool, place, .. } = self.queues[queue];
        self.pools[pool].policy.threshold(&self.pools[pool].view(now), place)
    }

    /// Describes the rule by which the policy decides about a queue.
    pub fn rule(&self, queue: QueueIndex) -> &'static str {
        self.pools[self.queues[queue].pool].policy.rule()
    }

    /// Returns whether the link that feeds a group must stop sending.
    pub fn is_paused(&self, queue: QueueIndex) -> bool {
        self.queues[queue].paused
    }

    /// Returns the number of cells that a port compares with its marking thresholds for a packet of this class.
    /// `at_port` cells wait at the port.
    pub(crate) fn counted(&self, of: Counted, class: CellClass, at_port: u32) -> u32 {
        match of {
            Counted::Port => at_port,
            Counted::Queue => class.egress.or(class.ingress).map_or(at_port, |queue| self.held(queue)),
            Counted::Memory => self.seen_by_policies(),
        }
    }

    /// Returns the counters of a queue.
    pub fn counters(&self, queue: QueueIndex) -> QueueCounters {
        self.queues[queue].counters
    }
}
