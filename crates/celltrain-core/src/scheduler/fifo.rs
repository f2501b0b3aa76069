//! First in, first out: all VCs share one queue.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Configure, Service, VcKind};

/// First in, first out: cells leave in the order in which they entered, whatever their VCs. This scheduler has no
/// parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Fifo")]
pub struct Config {}

impl Configure for Config {
    fn build(&self, _vcs: &[VcKind<'_>]) -> Option<Service> {
        None
    }
}

#[cfg(test)]
pub(super) fn sample() -> Config {
    Config {}
}
