//! The scenario tables of a link whose rate or delay changes.

use celltrain_core::units::{BitRate, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rate of a link as a function of time. The table has exactly one of the keys `steps`, `walk` and `trace`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "RateChange", extend("x-expect" = "a table such as { steps = [{ at = \"2s\", rate = \"10Mbps\" }] }"))]
pub struct RateChangeOptions {
    /// New rates with their times, in order of time. At the rate `0bps`, the port stops until the next step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<RateStep>>,
    /// A rate that moves up or down at random.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub walk: Option<RateWalk>,
    /// Delivery opportunities in the form of Mahimahi: milliseconds at which 1504 bytes may leave. After the last number,
    /// the list starts again. Alternatively, a file with one of these numbers on each line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Vec<u64>>,
}

/// A new rate of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-expect" = "a table such as { at = \"2s\", rate = \"10Mbps\" }"))]
pub struct RateStep {
    /// Time from which the transmission of cells starts at this rate.
    #[schemars(example = "2s")]
    pub at: Duration,
    /// New rate of the link.
    #[schemars(example = "10Mbps")]
    pub rate: BitRate,
}

/// A rate that moves up or down by the same step at regular times, with equal probabilities. The walk begins at the
/// link's own rate, or at the nearest limit of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-expect" = "a random walk between least and most, such as { every = \"100ms\", step = \"1Mbps\", least = \"1Mbps\", most = \"20Mbps\" }"))]
pub struct RateWalk {
    /// Time between two changes.
    #[schemars(example = "100ms")]
    pub every: Duration,
    /// Difference between successive rates.
    #[schemars(example = "1Mbps")]
    pub step: BitRate,
    /// Lowest rate that the walk can reach.
    #[schemars(example = "1Mbps")]
    pub least: BitRate,
    /// Highest rate that the walk can reach.
    #[schemars(example = "20Mbps")]
    pub most: BitRate,
}

/// The delay of a link as a function of time. The table has either the key `steps` or the key `walk`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "DelayChange", extend("x-expect" = "a table such as { steps = [{ at = \"2s\", delay = \"50ms\" }] }"))]
pub struct DelayChangeOptions {
    /// New delays with their times, in order of time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<DelayStep>>,
    /// A delay that moves up or down at random.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub walk: Option<DelayWalk>,
}

/// A new delay of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-expect" = "a table such as { at = \"2s\", delay = \"50ms\" }"))]
pub struct DelayStep {
    /// Time from which sent cells have this delay.
    #[schemars(example = "2s")]
    pub at: Duration,
    /// New delay of the link.
    #[schemars(example = "50ms")]
    pub delay: Duration,
}

/// A delay that moves up or down by the same step at regular times, with equal probabilities. The walk begins at the
/// link's own delay, or at the nearest limit of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-expect" = "a random walk between least and most, such as { every = \"100ms\", step = \"1ms\", least = \"5ms\", most = \"50ms\" }"))]
pub struct DelayWalk {
    /// Time between two changes.
    #[schemars(example = "100ms")]
    pub every: Duration,
    /// Difference between successive delays.
    #[schemars(example = "1ms")]
    pub step: Duration,
    /// Shortest delay that the walk can reach.
    #[schemars(example = "5ms")]
    pub least: Duration,
    /// Longest delay that the walk can reach.
    #[schemars(example = "50ms")]
    pub most: Duration,
}

/// Random differences between the delays of packets, as with the Linux tool netem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Jitter", extend("x-expect" = "a table such as { by = \"2ms\" }"))]
pub struct JitterOptions {
    /// Maximum difference from the link's delay, or the standard deviation if the distribution is normal.
    #[schemars(example = "2ms")]
    pub by: Duration,
    /// Distribution of the differences.
    #[serde(default)]
    pub distribution: JitterDistribution,
}

/// Distribution of differences between delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JitterDistribution {
    /// Uniform, from `-by` to `by`.
    #[default]
    Uniform,
    /// Normal. A difference below minus four standard deviations is replaced by minus four standard deviations.
    Normal,
}

/// Packets that overtake other packets, as with the Linux tool netem. Needs `framing = "packets"`, because the cells of
/// a VC keep their order (ITU-T I.150).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Reorder", extend("x-expect" = "a table such as { probability = 0.25 }"))]
pub struct ReorderOptions {
    /// Probability with which a packet gets the short delay instead of the link's delay.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expect" = "a probability (0 to 1)"))]
    pub probability: f64,
    /// Only every `gap`-th packet can get the short delay, counted from the last packet that got the short delay.
    #[serde(default = "every_packet")]
    #[schemars(range(min = 1))]
    pub gap: u64,
    /// The short delay, with which a packet overtakes other packets.
    #[serde(default)]
    pub delay: Duration,
}

fn every_packet() -> u64 {
    1
}
