//! Records the losses of Longest Queue Drop, which memory policies use as predictions.

use std::collections::{BTreeMap, VecDeque};

use crate::cancellation::Interrupted;
use crate::cell::{Cell, FrameNumber};
use crate::index::{Label, MemoryIndex};
use crate::memory::{PoolConfig, PoolIndex, QueueEnd, QueueIndex, longest_queue_drop};
use crate::network::Network;

/// Returns the predictions that a network's memory pools need. `record` runs a network and returns the losses of a
/// memory.
pub(super) fn predictions(
    network: &Network,
    mut record: impl FnMut(&Network, MemoryIndex) -> Result<Vec<bool>, Interrupted>,
) -> Result<Vec<(MemoryIndex, PoolIndex, Vec<bool>)>, Interrupted> {
    let needs = |pool: &PoolConfig| pool.policy.needs_predictions();
    let mut predictions = Vec::new();
    for (number, memory) in network.memories.iter_enumerated() {
        for pool in memory.pools.keys().filter(|&pool| needs(&memory.pools[pool])) {
            let mut network = network.clone();
            let pools = network.memories.iter_mut().flat_map(|memory| &mut memory.pools);
            for pool in pools.filter(|pool| needs(pool)) {
                pool.policy = longest_queue_drop::Config::default().into();
            }
            predictions.push((number, pool, record(&network, number)?));
        }
    }
    Ok(predictions)
}

/// Records for each cell that arrives at a memory whether the cell is lost.
#[derive(Default)]
pub(super) struct LossRecorder {
    /// For each arrival, true if the cell was lost on arrival or removed later.
    losses: Vec<bool>,
    /// Arrivals of the waiting cells in each egress queue, in order.
    waiting: BTreeMap<QueueIndex, VecDeque<usize>>,
    /// Arrivals of the cells of each waiting packet, at ports that store whole packets. A packet is identified by its
    /// queue, label and number.
    packets: BTreeMap<(QueueIndex, Label, FrameNumber), Vec<usize>>,
}

impl LossRecorder {
    /// Records an arrival, with the cell's queue and whether the cell enters.
    pub(super) fn arrive(&mut self, queue: Option<QueueIndex>, enters: bool) {
        let number = self.losses.len();
        self.losses.push(queue.is_some() && !enters);
        if let Some(queue) = queue.filter(|_| enters) {
            self.waiting.entry(queue).or_default().push_back(number);
        }
    }

    /// Records the departure of the first cell of a queue.
    pub(super) fn leave(&mut self, queue: Option<QueueIndex>) {
        if let Some(waiting) = queue.and_then(|queue| self.waiting.get_mut(&queue)) {
            waiting.pop_front();
        }
    }

    /// Records that a waiting cell is removed.
    pub(super) fn remove(&mut self, queue: QueueIndex, end: QueueEnd) {
        let waiting = self.waiting.entry(queue).or_default();
        let number = match end {
            QueueEnd::Head => waiting.pop_front(),
            QueueEnd::Tail => waiting.pop_back(),
        };
        self.losses[number.expect("the cell was recorded when it entered")] = true;
    }

    /// Records the arrival of a cell of a packet, at a port that stores whole packets.
    pub(super) fn arrive_whole(&mut self, queue: Option<QueueIndex>, cell: Cell, enters: bool) {
        let number = self.losses.len();
        self.losses.push(queue.is_some() && !enters);
        if let Some(queue) = queue.filter(|_| enters) {
            self.packets.entry((queue, cell.label(), cell.frame)).or_default().push(number);
        }
    }

    /// Records that a packet leaves, or that its waiting cells are removed.
    pub(super) fn end_packet(&mut self, queue: Option<QueueIndex>, cell: Cell, is_lost: bool) {
        let cells = queue.and_then(|queue| self.packets.remove(&(queue, cell.label(), cell.frame)));
        for number in cells.into_iter().flatten() {
            self.losses[number] |= is_lost;
        }
    }

    /// Returns for each arrival whether the cell was lost.
    pub(super) fn into_losses(self) -> Vec<bool> {
        self.losses
    }
}
