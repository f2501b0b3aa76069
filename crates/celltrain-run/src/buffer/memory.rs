//! The shared memory of an observed port: its occupancy after each instant, and the cells that it refused.

use typed_index_collections::TiVec;

use celltrain_core::cell::FrameNumber;
use celltrain_core::events::{MemoryEvent, MemoryStep};
use celltrain_core::index::{LinkIndex, MemoryIndex, VcIndex};
use celltrain_core::memory::{Memory, QueueConfig, QueueIndex, Side};
use celltrain_core::network::Network;
use celltrain_core::units::Time;

use super::{NONE, whole};

/// The occupancy of a memory shared by ports, after each instant with an event at the observed port. If the memory
/// counts its cells both on ingress and on egress, the queues are the queues on egress.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SharedMemory {
    /// Name of the shared memory.
    pub name: String,
    /// Capacity of the memory in cells.
    pub cells: u32,
    /// Names of the memory's queues: the link, followed by the priority unless the priority is 0.
    pub queues: Vec<String>,
    /// Number of steps in the history of the port up to each instant.
    pub steps: Vec<i32>,
    /// Number of cells in each queue, one row per instant and one column per queue.
    pub held: Vec<i32>,
    /// Maximum number of cells allowed in each queue, one row per instant and one column per queue; NaN if the queue's
    /// policy has no threshold.
    pub most: Vec<f64>,
    /// Cells for the observed port that the memory refused.
    pub refusals: Refusals,
}

/// Cells refused by a memory, one per row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Refusals {
    /// Index of the queue whose limit was reached, in [`Self::queues`].
    pub queue: Vec<i32>,
    /// Description of the limit that was reached.
    pub reason: Vec<&'static str>,
    /// Q: occupied cells in the shared part of the pool.
    pub used: Vec<i32>,
    /// B: cells of the shared part of the pool.
    pub pool_cells: Vec<i32>,
    /// `q_i`: the queue's cells in the shared part of the pool.
    pub shared: Vec<i32>,
    /// Threshold of the queue; NaN if its policy has no threshold.
    pub threshold: Vec<f64>,
    /// Name of each queue or priority group.
    pub queues: Vec<String>,
    /// Name of the pool of each queue or priority group.
    pub pools: Vec<String>,
}

pub(super) struct MemoryObserver {
    number: MemoryIndex,
    /// The queues of [`SharedMemory::queues`].
    queues: Vec<QueueIndex>,
    /// B, the number of cells in the shared part of its pool, for each queue.
    pool_cells: TiVec<QueueIndex, u32>,
    /// The next instant at which to read the memory.
    pub(super) next: Option<Time>,
    /// Time and frame of the memory's latest refusal, and its row in the table of refusals.
    refused: Option<(Time, (VcIndex, FrameNumber), i32)>,
    pub(super) recorded: SharedMemory,
}

impl MemoryObserver {
    /// Creates an observer of the memory of a port; `None` if the port belongs to no memory.
    pub(super) fn of(network: &Network, port: LinkIndex) -> Option<Self> {
        let number = network.memories.position(|memory| memory.ports.contains(&port))?;
        let config = &network.memories[number];
        let has = |side| config.pools.iter().any(|pool| pool.side == side);
        let side = if has(Side::Egress) { Side::Egress } else { Side::Ingress };
        let name = |queue: &QueueConfig| match (&network.links[queue.link].name, queue.priority) {
            (link, 0) => link.clone(),
            (link, priority) => format!("{link}, priority {priority}"),
        };
        let group = |queue: &QueueConfig| match config.pools[queue.pool].side {
            Side::Egress => format!("the queue of priority {} at {}", queue.priority, network.links[queue.link].name),
            Side::Ingress => {
                format!("the priority group of priority {} at {}", queue.priority, network.links[queue.link].name)
            }
        };
        let of_side = || config.queues.iter_enumerated().filter(|(_, queue)| config.pools[queue.pool].side == side);
        let refusals = Refusals {
            queues: config.queues.iter().map(group).collect(),
            pools: config
                .queues
                .iter()
                .map(|queue| format!("{}/{}", config.name, config.pools[queue.pool].name))
                .collect(),
            ..Refusals::default()
        };
        Some(Self {
            number,
            queues: of_side().map(|(index, _)| index).collect(),
            pool_cells: config.queues.iter().map(|queue| config.pools[queue.pool].cells).collect(),
            next: None,
            refused: None,
            recorded: SharedMemory {
                name: config.name.clone(),
                cells: config.cells,
                queues: of_side().map(|(_, queue)| name(queue)).collect(),
                refusals,
                ..SharedMemory::default()
            },
        })
    }

    pub(super) fn number(&self) -> MemoryIndex {
        self.number
    }

    /// Records the occupancy of the memory after `steps` steps of the history.
    pub(super) fn snapshot(&mut self, memory: &Memory, steps: i32, now: Time) {
        self.next = None;
        self.recorded.steps.push(steps);
        for &queue in &self.queues {
            let held = memory.held(queue);
            self.recorded.held.push(cells(held));
            // The threshold applies only to the queue's cells in the shared part of the pool.
            let most = |threshold| f64::from(held - memory.shared(queue)) + threshold;
            self.recorded.most.push(memory.threshold(queue, now).map_or(f64::NAN, most));
        }
    }

    /// Records a cell that this memory refuses. Afterwards, the port reports a separate event for the refused cell.
    pub(super) fn on_event(&mut self, now: Time, event: &MemoryEvent) {
        let MemoryStep::Refused { vc, frame, limit, rule } = event.step else { return };
        if event.memory != self.number {
            return;
        }
        let Refusals { queue, reason, used, pool_cells, shared, threshold, .. } = &mut self.recorded.refusals;
        queue.push(whole(usize::from(event.queue)));
        reason.push(limit.reason(rule));
        used.push(cells(event.used));
        pool_cells.push(cells(self.pool_cells[event.queue]));
        shared.push(cells(event.shared));
        threshold.push(event.threshold.unwrap_or(f64::NAN));
        self.refused = Some((now, (vc, frame), whole(queue.len() - 1)));
    }

    /// Returns the row of the refusal of a cell of this frame at `now`, or -1 if there is no such refusal.
    pub(super) fn refusal(&self, now: Time, frame: (VcIndex, FrameNumber)) -> i32 {
        self.refused.filter(|&(at, of, _)| (at, of) == (now, frame)).map_or(NONE, |(_, _, row)| row)
    }
}

fn cells(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
