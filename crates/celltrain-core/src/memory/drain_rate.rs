//! The drain rates of queues, measured in intervals. Both implementations of ABM use them.

use typed_index_collections::{TiVec, ti_vec};

use super::{PoolInfo, PoolQueue};
use crate::coverage::reached;
use crate::units::Span;

/// Each queue's drain rate in the last interval, as a fraction of its port's rate.
#[derive(Debug)]
pub(super) struct DrainRates {
    /// Number of cells that left each queue since the last interval ended.
    left: TiVec<PoolQueue, u64>,
    /// Number of cells that each port can send in an interval.
    most: TiVec<PoolQueue, f64>,
    /// The smallest fraction for each queue: 1 divided by its port's number of priorities.
    least: TiVec<PoolQueue, f64>,
    shares: TiVec<PoolQueue, f64>,
}

impl DrainRates {
    /// Creates rates for the queues of a pool. Until the first interval ends, every fraction is 1.
    pub(super) fn new(pool: &PoolInfo<'_>, interval: Span) -> Self {
        let priorities = |port: u32| pool.queues.iter().filter(|queue| queue.port == port).count();
        Self {
            left: ti_vec![0; pool.queues.len()],
            most: pool.queues.iter().map(|queue| interval.0 as f64 / queue.cell_time.0.max(1) as f64).collect(),
            least: pool.queues.iter().map(|queue| 1.0 / priorities(queue.port).max(1) as f64).collect(),
            shares: ti_vec![1.0; pool.queues.len()],
        }
    }

    pub(super) fn of(&self, queue: PoolQueue) -> f64 {
        self.shares[queue]
    }

    pub(super) fn left(&mut self, queue: PoolQueue, cells: u32) {
        self.left[queue] += u64::from(cells);
    }

    /// Ends an interval. Returns whether the rates or the counts of cells changed.
    pub(super) fn end_interval(&mut self) -> bool {
        let mut changed = false;
        for ((left, share), (most, least)) in
            self.left.iter_mut().zip(&mut self.shares).zip(self.most.iter().zip(&self.least))
        {
            changed |= *left > 0;
            let drained = std::mem::take(left) as f64 / most;
            reached!(DrainRateAtLeast if drained > 0.0 && drained < *least);
            let new_share = drained.clamp(*least, 1.0);
            changed |= new_share != *share;
            *share = new_share;
        }
        changed
    }
}
