//! The description of a memory that engines receive.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use typed_index_collections::{TiVec, ti_vec};

use super::{MemoryPolicyConfig, PauseResponse, PoolIndex, QueueIndex};
use crate::index::LinkIndex;

/// A memory that output ports of one switch share.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryConfig {
    /// The memory's name in scenarios and results.
    pub name: String,
    /// Number of cells that fit into the memory.
    pub cells: u32,
    /// The output ports whose waiting cells the memory holds, all at one switch.
    pub ports: Vec<LinkIndex>,
    /// Pools of the memory. There is at least one.
    pub pools: TiVec<PoolIndex, PoolConfig>,
    /// Queues and priority groups of the memory. If a side has a pool, every cell that crosses the memory has a queue there.
    pub queues: TiVec<QueueIndex, QueueConfig>,
    /// Determines what happens to a frame whose first cell finds no room.
    pub frames: FrameAdmission,
    /// Selects the buffer that the policies of the ports see.
    pub policies_see: PolicyScope,
    /// Selects the effect of pauses of the memory's priority groups.
    pub pauses: Pauses,
    /// The time after which a port obeys a pause frame, with packet framing; `None` for the
    /// [limit](PauseResponse::limit) of the standard.
    pub pause_response: Option<PauseResponse>,
}

impl MemoryConfig {
    /// Returns whether the memory consists of the shared part of one pool, so that all cells are counted in that part.
    pub(crate) fn is_single_pool(&self) -> bool {
        self.pools.len() == 1
            && self.pools.iter().all(|pool| pool.cells == self.cells && pool.headroom.is_none())
            && self.queues.iter().all(|queue| queue.reserve == 0 && queue.lossless.is_none())
    }

    /// Returns the memory of a single port. It admits a cell while it holds fewer than `cells` cells (`None`: infinite).
    pub(crate) fn of_port(link: LinkIndex, cells: Option<u32>) -> Self {
        let cells = cells.unwrap_or(u32::MAX);
        let (name, headroom, pool) = (String::new(), None, PoolIndex::default());
        let policy = super::complete_sharing::Config::default().into();
        let (priority, reserve, alpha, threshold, lossless) = Default::default();
        Self {
            name: String::new(),
            cells,
            ports: vec![link],
            pools: ti_vec![PoolConfig { name, side: Side::Egress, cells, headroom, policy }],
            queues: ti_vec![QueueConfig { link, priority, pool, reserve, alpha, threshold, lossless }],
            frames: FrameAdmission::Cells,
            policies_see: PolicyScope::Port,
            pauses: Pauses::Counted,
            pause_response: None,
        }
    }
}

/// The effect of pauses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pauses {
    /// Pauses are only counted and reported.
    #[default]
    Counted,
    /// Pauses stop the port that feeds the group for its priority. With packet framing, a port sends a pause frame
    /// between two packets, and finishes its packet before it obeys one. With AAL5, ports stop between two cells, after
    /// the propagation delay of the link and one cell time.
    Links,
}

/// A part of a memory shared by queues on one side. Its cells exclude the queues' reserves and headrooms.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolConfig {
    /// The pool's name in scenarios and results.
    pub name: String,
    /// The side of the switch on which the pool's cells are counted.
    pub side: Side,
    /// B: cells of the pool's shared part.
    pub cells: u32,
    /// Maximum number of cells in all headrooms of the pool's queues together; `None` if each queue has its own
    /// headroom.
    pub headroom: Option<u32>,
    /// Policy that decides which cells enter the pool's shared part.
    pub policy: MemoryPolicyConfig,
}

/// The side of a switch on which cells are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Cells are counted by output port and priority.
    #[default]
    Egress,
    /// Cells are counted by input port and priority.
    Ingress,
}

/// A queue on the egress side, or a priority group on the ingress side.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueConfig {
    /// The output link of a queue; the input link of a priority group.
    pub link: LinkIndex,
    /// The queue's priority, 0 to 7.
    pub priority: u8,
    /// Pool of the queue, on the same side as the queue.
    pub pool: PoolIndex,
    /// Cells of the memory reserved for this queue.
    pub reserve: u32,
    /// The queue's own alpha; if `None`, the alpha of the policy is used.
    pub alpha: Option<f64>,
    /// The queue's own threshold in cells; if `None`, the threshold of the policy is used.
    pub threshold: Option<u32>,
    /// Headroom and pauses, if the queue is a lossless priority group.
    pub lossless: Option<Lossless>,
}

/// The headroom of a lossless priority group, and the conditions for pausing the link that feeds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lossless {
    /// Number of cells still admitted after the threshold is reached.
    pub headroom: u32,
    /// The pause ends when the headroom is empty and the group holds fewer than this many cells of the shared part.
    pub xon: u32,
    /// The pause also ends when the headroom is empty and the group is this many cells below its threshold.
    pub xon_offset: Option<u32>,
    /// Selects which cell starts a pause of the link.
    pub pause_at: PauseAt,
}

/// Selects which cell starts a pause of the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PauseAt {
    /// The first cell in the headroom.
    #[default]
    Headroom,
    /// The last cell before the headroom. The next cell would find no room in the shared part.
    Threshold,
}

/// Selects what happens to a frame whose first cell finds no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FrameAdmission {
    /// The port's policy decides which cells of the frame are lost.
    #[default]
    Cells,
    /// The frame is refused whole, as by early packet discard.
    Whole,
}

/// The buffer that a port's policy sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PolicyScope {
    /// The cells of the port itself. K is the shared part of the pool that the arriving cell would enter.
    #[default]
    Port,
    /// The pool of the arriving cell: X is Q, K is B, and `N_a` counts the VCs with a cell in the memory.
    Memory,
}
