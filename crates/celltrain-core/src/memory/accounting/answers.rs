//! The answers of a memory: offers, refusals, removals, and its state at the end of a run.

use typed_index_collections::TiVec;

use crate::index::{Label, LinkIndex};
use crate::memory::occupancy::OccupancyTimes;
use crate::memory::{PoolIndex, QueueEnd, QueueIndex};
use crate::units::Time;

/// The queues that count a cell: one on the ingress side and one on the egress side, if that side has pools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CellClass {
    /// The queue at the cell's output port.
    pub egress: Option<QueueIndex>,
    /// The priority group at the cell's input port.
    pub ingress: Option<QueueIndex>,
}

/// The queues of the cells of every VC that crosses a memory.
#[derive(Clone, Debug)]
pub struct CellClasses {
    /// The queues by output port and label; empty for ports outside the memory.
    classes: TiVec<LinkIndex, TiVec<Label, CellClass>>,
}

impl CellClasses {
    /// Creates the table from the classes of each output port's VCs, by label.
    pub(crate) fn new(classes: TiVec<LinkIndex, TiVec<Label, CellClass>>) -> Self {
        Self { classes }
    }

    /// Returns the queues of a VC's cells at an output port of the memory.
    #[inline]
    pub fn get(&self, port: LinkIndex, label: Label) -> CellClass {
        self.classes[port][label]
    }
}

/// The memory's answer to an arriving cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Offer {
    /// There was room, and the cell has been counted.
    Entered,
    /// There is no room for the cell.
    Refused(Refusal),
    /// A waiting cell must be removed first. The caller removes it from its port, reports the removal with
    /// [`leave`](super::Memory::leave), and offers the arriving cell again.
    PushOut(Removal),
}

/// An [`Offer`] without the details of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    Entered,
    /// The given queue has no room for a cell.
    Refused(QueueIndex, Limit),
    PushOut(Removal),
}

/// The reason why a queue has no room for a cell.
#[derive(Clone, Copy)]
pub(super) enum Obstacle {
    Limit(Limit),
    /// A waiting cell must be removed first.
    Waiting(Removal),
}

/// A waiting cell to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removal {
    /// Queue of the removed cell, which is on the egress side.
    pub queue: QueueIndex,
    /// The end of the queue from which the cell is removed.
    pub end: QueueEnd,
}

/// The limit that refused a cell, with the numbers at that instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refusal {
    /// The queue that had no room for the cell.
    pub queue: QueueIndex,
    /// The limit that refused the cell.
    pub limit: Limit,
    /// The queue's threshold in the shared part, if the policy has a threshold.
    pub threshold: Option<f64>,
    /// `q_i`: number of the queue's cells in the shared part.
    pub held: u32,
    /// Q: occupied cells of the shared part.
    pub used: u32,
}

/// A limit of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// All cells of the memory were occupied.
    Memory,
    /// All cells of the pool's shared part were occupied.
    Pool,
    /// The policy refused the cell.
    Policy,
    /// The headroom of the group, or the common headroom of the pool, was exhausted.
    Headroom,
}

impl Limit {
    /// Returns the reason for a refusal in words. `rule` is the rule of the pool's policy.
    pub fn reason(self, rule: &'static str) -> &'static str {
        match self {
            Self::Memory => "the memory is full",
            Self::Pool => "the pool is full",
            Self::Policy => rule,
            Self::Headroom => "the headroom is full",
        }
    }
}

/// A change of the pause of a priority group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseChange {
    /// The group.
    pub queue: QueueIndex,
    /// True if the link that feeds the group must stop (xoff), false if it may continue (xon).
    pub paused: bool,
    /// Time at which the pause began or ended.
    pub at: Time,
}

/// The counters of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounters {
    /// Number of cells that found room.
    pub entered: u64,
    /// Number of cells that found no room.
    pub refused: u64,
    /// Number of waiting cells that were removed.
    pub pushed_out: u64,
    /// Number of times that the group paused its link.
    pub pauses: u64,
    /// The largest number of cells in the queue, including its reserve and its headroom.
    pub max_cells: u32,
    /// The largest number of cells in the headroom.
    pub max_headroom: u32,
}

/// The state of a memory at the end of a run, in any engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryState {
    /// Cells in the memory.
    pub used: u32,
    /// The largest number of cells in the memory so far.
    pub max_used: u32,
    /// Distribution of the occupancy over time.
    pub occupancy: OccupancyTimes,
    /// Its pools.
    pub pools: TiVec<PoolIndex, PoolState>,
    /// Queues of the memory, each with its number of cells and its counters.
    pub queues: TiVec<QueueIndex, (u32, QueueCounters)>,
}

/// The state of the shared part of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolState {
    /// Q: occupied cells of the shared part.
    pub used: u32,
    /// The largest Q (cells in the shared part) so far.
    pub max_used: u32,
    /// Number of formula results of the policy that were replaced because they were NaN or infinite.
    pub replaced_results: u64,
}
