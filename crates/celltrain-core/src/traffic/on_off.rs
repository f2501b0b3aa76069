//! On and off: bursts of packets at a constant rate.
//!
//! Source: the VBR background of ATM Forum 97-0424, as recalled in `docs/mechanisms.md` 2.14.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Configure, Load, Pattern, packet};
use crate::units::{BitRate, Bytes, Duration};

/// On and off: UDP packets at equal intervals during bursts, and no packets between bursts. The defaults describe the
/// VBR background traffic in the papers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "OnOff")]
pub struct Config {
    /// Rate of the packets' cells on the line during a burst, cell headers included.
    pub rate: BitRate,
    /// Payload of a packet, without the headers of UDP and IP.
    pub packet: Bytes,
    /// Duration of a burst; the mean if times are drawn.
    pub on: Duration,
    /// Duration of the pause between two bursts. If times are drawn, this is the mean.
    pub off: Duration,
    /// Distribution of burst and pause durations: constant or random.
    pub times: Times,
}

/// Distribution of the times of bursts and pauses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Times {
    /// Always the same.
    #[default]
    Fixed,
    /// Drawn from exponential distributions.
    Exponential,
}

/// 300 ms on at 0.8 of an OC-3, 300 ms off.
impl Default for Config {
    fn default() -> Self {
        Self {
            rate: BitRate::from_bits_per_second(124_416_000),
            packet: packet(),
            on: Duration::from_milliseconds(300),
            off: Duration::from_milliseconds(300),
            times: Times::default(),
        }
    }
}

impl Configure for Config {
    fn load(&self) -> Load<'_> {
        Load::Packets(Pattern { rate: self.rate, packet: self.packet, bursts: Some(self) })
    }
}
