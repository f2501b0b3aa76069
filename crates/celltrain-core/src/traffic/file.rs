//! A file over TCP. The flow ends when the whole file is acknowledged.
//!
//! Differences from the source: the last segment is full, like all other segments.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Configure, Load};
use crate::units::Bytes;

/// A file: TCP sends `bytes`, rounded up to full segments. The flow ends when the sender receives the acknowledgement
/// of the last of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "File")]
pub struct Config {
    /// Its size.
    pub bytes: Bytes,
}

impl Configure for Config {
    fn load(&self) -> Load<'_> {
        Load::Stream(Some(self.bytes))
    }
}
