//! Constant rate: packets of one size at equal intervals, regardless of loss.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Configure, Load, Pattern, packet};
use crate::units::{BitRate, Bytes};

/// Constant rate: UDP packets at equal intervals. They are not acknowledged, and no congestion control slows them down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ConstantRate")]
pub struct Config {
    /// Rate of the packets' cells on the line, cell headers included.
    pub rate: BitRate,
    /// Payload of a packet, without the headers of UDP and IP.
    #[serde(default = "packet")]
    pub packet: Bytes,
}

impl Configure for Config {
    fn load(&self) -> Load<'_> {
        Load::Packets(Pattern { rate: self.rate, packet: self.packet, bursts: None })
    }
}
