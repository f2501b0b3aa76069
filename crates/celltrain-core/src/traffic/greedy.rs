//! Greedy: TCP with an endless source.
//!
//! Source: `docs/mechanisms.md` 3.1.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Configure, Load};

/// Greedy: the sender always has data. This traffic has no parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Greedy")]
pub struct Config {}

impl Configure for Config {
    fn load(&self) -> Load<'_> {
        Load::Stream(None)
    }
}
