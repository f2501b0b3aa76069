//! Early packet discard (EPD): past a threshold no frame may start.
//!
//! Source: Romanow and Floyd 1995; ATM Forum 96-1269, section 5 (thresholds of K - 200 cells); `docs/mechanisms.md`
//! 2.3. Its symbols K and R are used. Differences from the source: none known. "Exceeds" is read as strictly above
//! a frame in progress that overflows falls back to partial packet discard.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BufferPolicy, Configure, Decision, Settings, View};
use crate::coverage::reached;
use crate::index::Label;
use crate::rng::Stream;
use crate::threshold::Threshold;

/// Early packet discard: a frame whose first cell finds more than `threshold` cells waiting is refused whole.
///
/// Source: Romanow and Floyd 1995; ATM Forum 96-1269, section 5.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Epd")]
pub struct Config {
    /// R: the threshold above which no frame may start. ATM Forum 96-1269 uses the buffer size minus 200 cells.
    pub threshold: Threshold,
}

impl Default for Config {
    /// Returns a threshold of four fifths of the buffer: 800 of 1000 cells, as in ATM Forum 96-1269.
    fn default() -> Self {
        Self { threshold: 0.8.into() }
    }
}

/// The policy, which has no state.
#[derive(Debug)]
pub struct Epd {
    r: u32,
}

impl Configure for Config {
    type Policy = Epd;

    fn settings(&self) -> Settings<'_> {
        Settings { thresholds: vec![("threshold", self.threshold)], ..Settings::default() }
    }

    fn build(&self, capacity: u32, _vcs: &[&str]) -> Epd {
        Epd { r: self.threshold.whole_cells(capacity) }
    }
}

impl BufferPolicy for Epd {
    fn admit_frame(&mut self, buffer: &View<'_>, _vc: Label, _rng: &mut Stream) -> bool {
        reached!(EpdAtThreshold if buffer.occupancy == self.r);
        buffer.occupancy <= self.r
    }

    fn reads_own_view(&self) -> bool {
        true
    }

    fn admits_up_to(&self) -> Option<u32> {
        Some(self.r)
    }

    fn reads_counts(&self) -> bool {
        false
    }

    fn explain(&self, _buffer: &View<'_>, _vc: Label) -> Decision {
        Decision { rule: "X is above R", threshold: Some(self.r.into()), ..Decision::default() }
    }
}

#[cfg(any(test, feature = "samples"))]
pub(super) fn sample(capacity: u32) -> Config {
    Config { threshold: (capacity.saturating_mul(4) / 5).into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::bench::Bench;

    #[test]
    fn epd_admits_a_new_frame_at_its_threshold_and_refuses_it_one_cell_above() {
        let mut bench = Bench::new(&Config { threshold: 4.into() }, 10, 2);
        bench.offer_frame(0, 4);
        bench.offer_frame(1, 1);
        assert_eq!(bench.port.occupancy(), 5, "at R = 4 a frame may start");
        bench.offer_frame(0, 3);
        assert_eq!(bench.port.occupancy(), 5, "a frame may not start with 5 cells waiting");
        assert_eq!(bench.port.counters().discarded_frame, 3);
    }

    #[test]
    fn epd_keeps_refusing_the_cells_of_a_refused_frame_even_after_the_queue_drains() {
        let mut bench = Bench::new(&Config { threshold: 1.into() }, 10, 2);
        bench.offer_frame(0, 2);
        bench.offer_cell(1, 0, false);
        bench.port.take();
        bench.port.take();
        bench.offer_cell(1, 0, true);
        assert_eq!(bench.port.occupancy(), 0);
    }
}
