//! The end of a run: after its duration, or as soon as all measured traffic is complete.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a run ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// After its duration.
    #[default]
    Duration,
    /// When all files and all requests and queries that opened until `measure.to` are complete, at the latest after its
    /// duration. Checked from `measure.to` in steps of at most a thousandth of the duration.
    Finished,
}

impl Until {
    /// Returns whether a run always lasts its whole duration.
    pub fn is_duration(&self) -> bool {
        *self == Self::Duration
    }
}
