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
    /// Several memories, by name. Each memory is shared by some of the switch's output ports.
    pub memories: BTreeMap<String, MemoryOptions>,
}

/// A memory shared by output ports of a switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryOptions {
    /// Number of cells that fit into the memory, including reserves and headrooms.
    #[schemars(range(min = 1), extend("x-unit" = "cells"))]
    pub cells: u32,
    /// The output ports that share the memory, by name or pattern. A port has the name of its link, such as `sw1->sw2`.
    /// A pattern is for example `sw1->*`. Default: all output ports of the switch.
    #[serde(default = "all_ports")]
    pub ports: Vec<String>,
    /// Pools of the memory, by name. A memory needs at least one pool.
    pub pool: BTreeMap<String, PoolOptions>,
    /// Settings of individual queues and priority groups. The first entry that matches a queue applies to it.
    #[serde(default)]
    pub queue: Vec<QueueOptions>,
    /// Treatment of a frame whose first cell finds no room in the memory.
    #[serde(default)]
    pub frames: FrameAdmission,
    /// Selects the buffer whose occupancy the policies of the ports see: the port's own queue or the memory.
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

/// A part of a memory, shared by queues on the egress side or by priority groups on the ingress side.
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
    /// Maximum number of cells in the headrooms of all priority groups of the pool together. Default: each group has a
    /// separate headroom.
    #[serde(default)]
    #[schemars(extend("x-unit" = "cells"))]
    pub headroom: Option<u32>,
    /// Policy that decides which cells enter the pool's shared part.
    pub policy: MemoryPolicyConfig,
}

/// Settings of some queues or priority groups of a memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QueueOptions {
    /// Pool to which the queues belong. The key may be absent if the memory has only one pool.
    pub pool: Option<String>,
    /// Output ports of the queues, or input ports if the pool is on the ingress side. A port is given by the name of
    /// its link or by a pattern of names. Default: all ports.
    pub ports: Option<Vec<String>>,
    /// Priorities of the queues, 0 to 7. By default, all priorities that VCs use.
    pub priorities: Option<Vec<u8>>,
    /// Number of cells of the memory reserved for each of these queues.
    #[schemars(extend("x-unit" = "cells"))]
    pub reserve: u32,
    /// Alpha of these queues, if the pool's policy has an alpha.
    #[schemars(extend("exclusiveMinimum" = 0.0, "x-expect" = "a factor for the number of free cells (above 0)"))]
    pub alpha: Option<f64>,
    /// Threshold of these queues in cells, if the pool's policy has thresholds.
    #[schemars(extend("x-unit" = "cells"))]
    pub threshold: Option<u32>,
    /// True if the priority groups are lossless: the link that feeds a group is paused before cells of the group are
    /// lost.
    pub lossless: bool,
    /// Number of cells of a lossless group that are still admitted after the group has reached its threshold.
    #[schemars(extend("x-unit" = "cells"))]
    pub headroom: Option<u32>,
    /// A pause ends when the headroom is empty and the group holds fewer than this number of cells in the shared part.
    #[schemars(extend("x-unit" = "cells"))]
    pub xon: Option<u32>,
    /// A pause also ends when the headroom is empty and the group is this number of cells below its threshold.
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
