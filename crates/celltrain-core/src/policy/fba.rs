//! Fair Buffer Allocation (FBA): Selective Drop whose tolerance shrinks as the buffer fills.
//!
//! Source: Heinanen and Kilkki; ATM Forum 96-1269, section 7; its symbols K, R, X, `Y_i`, `N_a` and Z are used;
//! `docs/mechanisms.md` 2.6. Differences from the source: none known. The paper prints the threshold once as "Z(1 +
//! (KX)/(XR))". The minus signs were lost: Z (1 + (K - X)/(X - R)) equals Z (K - R)/(X - R), the form used here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::load_ratio::LoadRatio;
use super::{Configure, Settings};
use crate::error::Fault;
use crate::threshold::Threshold;

/// Fair Buffer Allocation: above a threshold, a VC may start a frame while its load ratio stays below a bound. The
/// bound falls from infinity to Z as the buffer fills. The defaults are the best published values.
///
/// Source: Heinanen and Kilkki; ATM Forum 96-1269, section 7 and Tables 5 and 6.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Fba")]
pub struct Config {
    /// R: the threshold up to which every frame is admitted.
    pub threshold: Threshold,
    /// Z: the linear scale of the drop threshold, the largest load ratio tolerated in a full buffer.
    #[schemars(range(min = 0.0), extend("x-expect" = "a scale (0 or more)"))]
    pub z: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { threshold: 0.9.into(), z: 0.8 }
    }
}

impl Configure for Config {
    type Policy = LoadRatio;

    fn settings(&self) -> Settings<'_> {
        Settings { thresholds: vec![("threshold", self.threshold)], ..Settings::default() }
    }

    fn check(&self, capacity: Option<u32>, _vcs: &[&str]) -> Vec<Fault> {
        check_threshold(self.threshold, capacity)
    }

    fn build(&self, capacity: u32, _vcs: &[&str]) -> LoadRatio {
        LoadRatio::new(
            capacity,
            self.threshold,
            self.z,
            "X is above R, and Y_i above Z (K - R) / (X - R) times X / N_a",
        )
        .falling()
    }
}

/// Checks the threshold. The formula needs K, so the buffer must be finite, even if the threshold is in cells.
pub(super) fn check_threshold(threshold: Threshold, capacity: Option<u32>) -> Vec<Fault> {
    match capacity {
        Some(_) => threshold.check("threshold", capacity),
        None => vec![Fault::new(
            "threshold",
            threshold.written(),
            "belongs to a formula that uses the size of the buffer, which must be a number of cells, not \"infinite\"",
        )],
    }
}

#[cfg(any(test, feature = "samples"))]
pub(super) fn sample(_capacity: u32) -> Config {
    Config::default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::bench::most_cells;

    #[test]
    fn under_fba_the_limit_of_a_vc_falls_towards_z_times_its_fair_share() {
        let most = |x, active| most_cells(&Config::default(), 1000, x, active);
        // With X = K = 1000 and four active VCs, the fair share is 250 cells. The bound is 0.8 times that, 200 cells.
        assert_eq!(most(1000, 4), 200);
        // At X = 950, (K - R)/(X - R) = 2, so the limit is 1.6 times the fair share of 950/5 = 190 cells, which is 304.
        assert_eq!(most(950, 5), 304);
        assert_eq!(most(901, 1), 901, "just above the threshold even the only active VC may start a frame");
        assert_eq!(most(900, 1), 900);
    }
}
