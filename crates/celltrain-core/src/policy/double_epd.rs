//! Double early packet discard (double EPD): early packet discard with a lower threshold for tagged frames.
//!
//! Source: the switch with two thresholds in studies of the guaranteed frame rate, as in O. Bonaventure, "A simulation
//! study of TCP with the proposed GFR service category", 1997, which calls them LBO and HBO (low and high buffer
//! occupancy). The paper is known here only from secondary sources; the name and the two symbols are the paper's.
//! Differences from the source: none known. "Exceeds" is read as strictly above, as in EPD. The first cell of a
//! frame determines whether the frame is tagged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BufferPolicy, Configure, Decision, Settings, View, check_thresholds};
use crate::coverage::reached;
use crate::error::Fault;
use crate::index::Label;
use crate::rng::Stream;
use crate::threshold::Threshold;

/// Double early packet discard: a tagged frame (CLP = 1) is refused if its first cell finds more than
/// `tagged_threshold` cells waiting, and any other frame if its first cell finds more than `threshold`.
///
/// Source: Bonaventure 1997.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DoubleEpd")]
pub struct Config {
    /// HBO: the threshold above which no frame may start.
    pub threshold: Threshold,
    /// LBO: the threshold above which no tagged frame may start.
    pub tagged_threshold: Threshold,
}

/// The policy, which has no state.
#[derive(Debug)]
pub struct DoubleEpd {
    hbo: u32,
    lbo: u32,
}

impl Configure for Config {
    type Policy = DoubleEpd;

    fn settings(&self) -> Settings<'_> {
        Settings {
            thresholds: vec![("threshold", self.threshold), ("tagged_threshold", self.tagged_threshold)],
            ..Settings::default()
        }
    }

    fn check(&self, capacity: Option<u32>, _vcs: &[&str]) -> Vec<Fault> {
        let mut faults = check_thresholds(self, capacity);
        let k = capacity.unwrap_or(u32::MAX);
        if faults.is_empty() && self.tagged_threshold.whole_cells(k) > self.threshold.whole_cells(k) {
            let problem = format!(
                "is above threshold = {}; tagged frames are refused first, so their threshold is at most that",
                self.threshold
            );
            faults.push(Fault::new("tagged_threshold", self.tagged_threshold.written(), problem));
        }
        faults
    }

    fn build(&self, capacity: u32, _vcs: &[&str]) -> DoubleEpd {
        DoubleEpd { hbo: self.threshold.whole_cells(capacity), lbo: self.tagged_threshold.whole_cells(capacity) }
    }
}

impl BufferPolicy for DoubleEpd {
    fn admit_frame(&mut self, buffer: &View<'_>, _vc: Label, _rng: &mut Stream) -> bool {
        reached!(OnlyTaggedRefused if buffer.tagged && buffer.occupancy > self.lbo && buffer.occupancy <= self.hbo);
        buffer.occupancy <= if buffer.tagged { self.lbo } else { self.hbo }
    }

    fn reads_own_view(&self) -> bool {
        true
    }

    fn admits_up_to(&self) -> Option<u32> {
        Some(self.lbo.min(self.hbo))
    }

    fn explain(&self, buffer: &View<'_>, _vc: Label) -> Decision {
        let (rule, threshold) = if buffer.tagged { ("X is above LBO", self.lbo) } else { ("X is above HBO", self.hbo) };
        Decision { rule, threshold: Some(threshold.into()), ..Decision::default() }
    }
}

#[cfg(any(test, feature = "samples"))]
pub(super) fn sample(capacity: u32) -> Config {
    Config { threshold: (capacity.saturating_mul(4) / 5).into(), tagged_threshold: (capacity / 2).into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::bench::Bench;

    #[test]
    fn double_epd_admits_a_new_frame_at_its_threshold_and_refuses_it_one_cell_above() {
        for (tagged, threshold) in [(true, 2), (false, 8)] {
            let mut bench = Bench::new(&Config { threshold: 8.into(), tagged_threshold: 2.into() }, 20, 2);
            bench.offer_frame(0, threshold);
            for (cells, waiting) in [(1, threshold + 1), (4, threshold + 1)] {
                let offer = if tagged { Bench::offer_tagged_frame } else { Bench::offer_frame };
                offer(&mut bench, 1, cells);
                assert_eq!(bench.port.occupancy(), waiting, "tagged: {tagged}");
            }
            assert_eq!(bench.port.counters().discarded_frame, 4);
        }
    }

    #[test]
    fn a_double_epd_configuration_with_the_low_threshold_above_the_high_threshold_is_refused() {
        let keys = |threshold: u32, tagged_threshold: u32| -> Vec<String> {
            let faults = Config { threshold: threshold.into(), tagged_threshold: tagged_threshold.into() }
                .check(Some(1000), &[]);
            faults.into_iter().map(|fault| fault.key).collect()
        };
        assert_eq!(keys(1001, 1000), ["threshold"]);
        assert_eq!(keys(800, 801), ["tagged_threshold"]);
        assert!(keys(1000, 1000).is_empty());
    }
}
