//! The scenario tables that describe memories shared by ports.

use std::collections::BTreeMap;

use celltrain_core::memory::{FrameAdmission, MemoryPolicyConfig, PauseAt, PauseResponse, Pauses, PolicyScope, Side};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of an individual switch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OwnSwitch {
    /// The memory shared by the switch's output ports. Default: each port has a separate buffer.
    pub memory: Option<MemoryOptions>,
    /// Several memories by name, each shared by some of the switch's output ports.
    pub memories: BTreeMap<String, MemoryOptions>,
}

/// A memory that output ports of one switch share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryOptions {
    /// Number of cells that fit into the memory, including reserves and headrooms.
    #[schemars(range(min = 1), extend("x-unit" = "cells"))]
    pub cells: u32,
    /// The output ports that share the memory, by name or pattern: the names of the switch's links, such as `sw1->*`.
    /// Default: all ports.
    #[serde(default = "all_ports")]
    pub ports: Vec<String>,
    /// Pools of the memory, by name; at least one.
    pub pool: BTreeMap<String, PoolOptions>,
    /// Settings of individual queues and priority groups. The first entry that matches a queue applies to it.
    #[serde(default)]
    pub queue: Vec<QueueOptions>,
    /// The treatment of a frame whose first cell finds no room.
    #[serde(default)]
    pub frames: FrameAdmission,
    /// The buffer that the policies of the ports see.
    #[serde(default)]
    pub policies_see: PolicyScope,
    /// Effect of the pauses of lossless groups.
    #[serde(default)]
    pub pauses: Pauses,
    /// Time that a port takes to obey a pause frame, such as `2us`, or pause quanta of 512 bit times, such as
    /// `394 quanta`. By default, the limit of IEEE 802.3 annex 31B.3.7 for the port's rate.
    #[serde(default)]
    pub pause_response: Option<PauseResponse>,
}

/// A part of a memory, shared by queues of one side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolOptions {
    /// Side of the switch on which the pool's cells are counted.
    #[serde(default)]
    pub side: Side,
    /// B: cells of the pool's shared part. Default: all cells of the memory that are not used by reserves, headrooms
    /// and other pools of the same side.
    #[serde(default)]
    #[schemars(extend("x-unit" = "cells"))]
    pub cells: Option<u32>,
    /// Maximum number of cells in the headrooms of all groups of the pool. Default: each group has its own headroom.
    #[serde(default)]
    #[schemars(extend("x-unit" = "cells"))]
    pub headroom: Option<u32>,
    /// Policy that decides which cells enter the pool's shared part.
    pub policy: MemoryPolicyConfig,
}

/// Settings of queues or priority groups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QueueOptions {
    /// Pool of the queues; may be absent if the memory has only one pool.
    pub pool: Option<String>,
    /// Output ports of the queues, or input ports if the pool is on the ingress side: names or patterns of links. All
    /// ports by default.
    pub ports: Option<Vec<String>>,
    /// Priorities of the queues, 0 to 7. By default, all priorities that VCs use.
    pub priorities: Option<Vec<u8>>,
    /// Cells of the memory reserved for this queue.
    #[schemars(extend("x-unit" = "cells"))]
    pub reserve: u32,
    /// Alpha of this queue, if the pool's policy has an alpha.
    #[schemars(extend("exclusiveMinimum" = 0.0, "x-expect" = "a factor for the number of free cells (above 0)"))]
    pub alpha: Option<f64>,
    /// The threshold of this queue in cells, if the pool's policy has thresholds.
    #[schemars(extend("x-unit" = "cells"))]
    pub threshold: Option<u32>,
    /// True if a priority group is lossless: the link that feeds it is paused before cells are lost.
    pub lossless: bool,
    /// Cells of a lossless group that are still admitted after its threshold is reached.
    #[schemars(extend("x-unit" = "cells"))]
    pub headroom: Option<u32>,
    /// A pause ends when the headroom is empty and the group holds fewer cells of the shared part than this.
    #[schemars(extend("x-unit" = "cells"))]
    pub xon: Option<u32>,
    /// A pause also ends when the headroom is empty and the group is this many cells below its threshold.
    #[schemars(extend("x-unit" = "cells"))]
    pub xon_offset: Option<u32>,
    /// Selects the cell that starts a pause of the link.
    pub pause_at: Option<PauseAt>,
}

fn all_ports() -> Vec<String> {
    vec!["*".to_string()]
}

/// The highest priority of a VC.
pub(crate) const MAX_PRIORITY: u8 = 7;
