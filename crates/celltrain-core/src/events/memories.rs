//! Events at memories shared by ports.

use crate::cell::FrameNumber;
use crate::index::{LinkIndex, MemoryIndex, VcIndex};
use crate::memory::{Limit, QueueIndex, Side};

/// An event at a memory shared by ports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemoryEvent {
    /// The memory.
    pub memory: MemoryIndex,
    /// The queue or priority group of the event.
    pub queue: QueueIndex,
    /// The output link of a queue; the input link of a priority group.
    pub link: LinkIndex,
    /// Its priority.
    pub priority: u8,
    /// The side of the memory (ingress or egress) on which the queue is counted.
    pub side: Side,
    /// Its step.
    pub step: MemoryStep,
    /// Cells in the queue, including its reserve and its headroom.
    pub held: u32,
    /// `q_i`: cells of the queue in the shared part.
    pub shared: u32,
    /// Q: number of cells in the pool's shared part.
    pub used: u32,
    /// The queue's threshold in the shared part, if the policy computes a threshold.
    pub threshold: Option<f64>,
}

/// The limit of a memory that refused a cell, with the relevant numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemoryRefusal {
    /// The memory.
    pub memory: MemoryIndex,
    /// The queue or priority group that had no room.
    pub queue: QueueIndex,
    /// The memory's limit that the cell would exceed.
    pub limit: Limit,
    /// The rule of the policy, in words.
    pub rule: &'static str,
    /// `q_i`: cells of the queue or group in the shared part.
    pub shared: u32,
    /// Q: number of occupied cells in the pool's shared part.
    pub used: u32,
    /// The queue's threshold in the shared part, if the policy computes a threshold.
    pub threshold: Option<f64>,
}

/// The kind of an event at a shared memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MemoryStep {
    /// The memory has no room for a cell. The port then reports its own event for the cell.
    Refused {
        /// The VC that carries the cell.
        vc: VcIndex,
        /// Number of the cell's frame within the VC, or of the RM cell.
        frame: FrameNumber,
        /// The memory's limit that the cell would exceed.
        limit: Limit,
        /// The rule of the policy, in words.
        rule: &'static str,
    },
    /// The link that feeds the group must stop sending (xoff).
    Paused,
    /// The link that feeds the group may send again (xon).
    Resumed,
    /// The group is part of a deadlock: all its cells wait at ports that other groups of the cycle have paused.
    Deadlocked,
}

impl MemoryStep {
    /// Returns the reason for the refusal in words, or an empty text if no cell was refused.
    pub fn reason(&self) -> &'static str {
        match *self {
            Self::Refused { limit, rule, .. } => limit.reason(rule),
            Self::Paused | Self::Resumed => "",
            Self::Deadlocked => "its cells wait at paused ports of a cycle",
        }
    }
}
