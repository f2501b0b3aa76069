//! Bursts over TCP: a file, a pause, the next file, on one connection.
//!
//! Source: of this project, for what Computer Communications 21(12), 1998, calls highly bursty connections beside bulky ones.
//! Departures: cwnd stays what it was through a pause; the last segment of a burst is a full one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::on_off::Times;
use super::{Configure, Load};
use crate::rng::Stream;
use crate::units::{Bytes, Clock, Duration, Span};

/// Bursts: so many bytes over TCP, rounded up to full segments; when the last of them is acknowledged a pause, then as many
/// again, without end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Bursts")]
pub struct Config {
    /// Size of a burst.
    pub bytes: Bytes,
    /// From the acknowledgement of a burst's last byte to the next burst: each time, or in the mean.
    pub pause: Duration,
    /// Whether it is always the same or drawn.
    #[serde(default)]
    pub times: Times,
}

impl Configure for Config {
    fn load(&self) -> Load<'_> {
        Load::Bursts(self)
    }
}

/// The pauses of a flow, one after the other.
pub struct Pauses {
    mean: Span,
    times: Times,
    rng: Stream,
}

impl Pauses {
    /// Those of a flow; drawn ones come from `rng`.
    pub fn new(config: &Config, clock: Clock, rng: Stream) -> Self {
        Self { mean: clock.span(config.pause), times: config.times, rng }
    }

    /// How long the next one is. No burst begins at the instant at which the one before it ended.
    pub fn next_pause(&mut self) -> Span {
        let pause = match self.times {
            Times::Fixed => self.mean,
            Times::Exponential => self.rng.exponential(self.mean),
        };
        pause.max(Span(1))
    }
}
