//! The queue that a port with marking compares with its thresholds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The queue whose length decides whether packets are marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// The waiting cells of the port.
    #[default]
    Port,
    /// The waiting cells of the port with the cell's priority. The port must be in a memory.
    Queue,
    /// The cells in the whole memory that the port shares.
    Memory,
}
