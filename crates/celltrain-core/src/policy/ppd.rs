//! Partial packet discard (PPD): after a frame has lost a cell, the rest of the frame is refused.
//!
//! Source: Armitage and Adams 1993; Romanow and Floyd 1995; `docs/mechanisms.md` 2.2. There is no threshold.
//! Differences from the source: none known. The last cell is kept if there is room, so that the receiver does
//! not join the next frame to the remains. No room is reserved for last cells.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AdmitAll, Configure, Overflow};

/// Partial packet discard: once a cell of a frame is lost, the frame's remaining cells are refused.
///
/// Source: Romanow and Floyd 1995; Armitage and Adams 1993.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Ppd")]
pub struct Config {
    /// True if the last cell of a damaged frame is still admitted when there is room.
    pub keep_last_cell: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { keep_last_cell: true }
    }
}

impl Configure for Config {
    type Policy = AdmitAll;

    fn build(&self, _capacity: u32, _vcs: &[&str]) -> AdmitAll {
        AdmitAll { overflow: Overflow::LoseRestOfFrame { keep_last_cell: self.keep_last_cell } }
    }
}

#[cfg(any(test, feature = "samples"))]
pub(super) fn sample(_capacity: u32) -> Config {
    Config::default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::bench::Bench;

    #[test]
    fn ppd_drops_the_remaining_cells_of_a_damaged_frame_except_its_last_cell() {
        let mut bench = Bench::new(&Config::default(), 2, 1);
        bench.offer_cell(0, 0, false);
        bench.offer_cell(0, 0, false);
        bench.offer_cell(0, 0, false);
        bench.port.take();
        bench.offer_cell(0, 0, false);
        assert_eq!(
            bench.port.occupancy(),
            1,
            "the cell is refused although there is room, because its frame is damaged"
        );
        bench.offer_cell(0, 0, true);
        assert_eq!(bench.port.occupancy(), 2, "the last cell of a damaged frame is kept");
        let counters = bench.port.counters();
        assert_eq!((counters.lost_overflow, counters.discarded_remainder), (1, 1));
    }

    #[test]
    fn ppd_drops_all_remaining_cells_of_a_damaged_frame_if_last_cells_are_not_kept() {
        let mut bench = Bench::new(&Config { keep_last_cell: false }, 1, 1);
        bench.offer_frame(0, 3);
        bench.port.take();
        assert_eq!(bench.port.occupancy(), 0);
        assert_eq!(bench.port.counters().discarded_remainder, 1);
        bench.offer_frame(0, 1);
        assert_eq!(bench.port.occupancy(), 1, "the next frame is judged independently");
    }
}
