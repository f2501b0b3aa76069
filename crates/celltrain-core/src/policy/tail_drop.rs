//! Tail drop (plain UBR): a cell that finds no room is lost, and nothing else happens.
//!
//! Source: ATM Forum 96-1269, section 4; `docs/mechanisms.md` 2.1. Frames play no role: later cells of a damaged frame
//! still enter when there is room, and are carried although the frame is lost. Differences from the source: none known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AdmitAll, Configure, Overflow};

/// Tail drop: a cell that finds no room is lost. This policy has no parameters.
///
/// Source: ATM Forum 96-1269, section 4 (plain UBR).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TailDrop")]
pub struct Config {}

impl Configure for Config {
    type Policy = AdmitAll;

    fn build(&self, _capacity: u32, _vcs: &[&str]) -> AdmitAll {
        AdmitAll { overflow: Overflow::LoseCell }
    }
}

#[cfg(any(test, feature = "samples"))]
pub(super) fn sample(_capacity: u32) -> Config {
    Config {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::bench::Bench;

    #[test]
    fn tail_drop_admits_the_next_cell_of_a_frame_that_lost_a_cell_if_there_is_room() {
        let mut bench = Bench::new(&Config {}, 2, 1);
        bench.offer_frame(0, 3);
        assert_eq!(bench.port.occupancy(), 2);
        bench.port.take();
        bench.offer_cell(0, 1, true);
        assert_eq!(bench.port.occupancy(), 2);
        assert_eq!(bench.port.counters().lost_overflow, 1);
    }
}
