//! Weighted FBA: Fair Buffer Allocation whose fair shares are proportional to weights.
//!
//! Source: ATM Forum 97-0607, from memory; `docs/mechanisms.md` 2.12, whose symbols K, R, X, `X_i`, `W_i`, W and Z are
//! used. Differences from the source: as in Weighted Buffer Allocation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fba::check_threshold;
use super::load_ratio::LoadRatio;
use super::wba::{threshold, z};
use super::{Configure, PerVc, Settings};
use crate::error::Fault;
use crate::threshold::Threshold;

/// Weighted FBA: above a threshold, a VC may start a frame while its weighted load ratio stays below a bound. The bound
/// falls from infinity to Z as the buffer fills.
///
/// Source: ATM Forum 97-0607.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WeightedFba")]
pub struct Config {
    /// `W_i`: the weights of the VCs, a number or a table keyed by VC name. Only their ratios count, so guaranteed
    /// rates in any unit can be used.
    pub weights: PerVc,
    /// R: the threshold up to which every frame is admitted.
    #[serde(default = "threshold")]
    pub threshold: Threshold,
    /// Z: the linear scale of the drop threshold, the largest weighted load ratio tolerated in a full buffer.
    #[serde(default = "z")]
    #[schemars(range(min = 0.0), extend("x-expect" = "a scale (0 or more)"))]
    pub z: f64,
}

impl Configure for Config {
    type Policy = LoadRatio;

    fn settings(&self) -> Settings<'_> {
        Settings { thresholds: vec![("threshold", self.threshold)], per_vc: vec![("weights", &self.weights)] }
    }

    fn check(&self, capacity: Option<u32>, _vcs: &[&str]) -> Vec<Fault> {
        let mut faults = self.weights.check_weights();
        faults.extend(check_threshold(self.threshold, capacity));
        faults
    }

    fn build(&self, capacity: u32, vcs: &[&str]) -> LoadRatio {
        LoadRatio::new(
            capacity,
            self.threshold,
            self.z,
            "X is above R, and X_i above Z (K - R) / (X - R) times X W_i / W",
        )
        .falling()
        .weighted(&self.weights, vcs)
    }
}

#[cfg(any(test, feature = "samples"))]
pub(super) fn sample(_capacity: u32) -> Config {
    Config { weights: PerVc::Same(0.2), threshold: threshold(), z: z() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::bench::{assert_alike, most_cells_of_two};
    use crate::policy::fba;

    #[test]
    fn under_weighted_fba_the_limit_of_a_vc_falls_towards_z_times_its_fair_share() {
        let config = Config { weights: PerVc::from([("vc0", 1.0), ("vc1", 4.0)]), ..sample(1000) };
        let most = |x| [0, 1].map(|vc| most_cells_of_two(&config, x, vc));
        // With X = K = 1000, the shares of 1/5 and 4/5 are 200 and 800 cells. The limits are 0.8 of the shares: 160 and 640.
        assert_eq!(most(1000), [160, 640]);
        // At X = 950, (K - R)/(X - R) = 2, so the limit is 1.6 times the share of 950/5 = 190 cells, which is 304. The
        // other VC may hold all cells.
        assert_eq!(most(950), [304, 950]);
        assert_eq!(most(900), [900, 900]);
    }

    #[test]
    fn weighted_fba_equals_fba_if_all_vcs_are_active_and_have_equal_weights() {
        let equal = Config { weights: PerVc::Same(7.0), threshold: 0.5.into(), z: 0.8 };
        assert_alike(&equal, &fba::Config { threshold: 0.5.into(), z: 0.8 });
    }

    #[test]
    fn weighted_fba_refuses_a_negative_weight() {
        let faults = Config { weights: PerVc::Same(-1.0), ..sample(1000) }.check(Some(1000), &[]);
        assert_eq!(faults[0].key, "weights");
        assert_eq!(sample(1000).check(None, &[])[0].key, "threshold");
    }
}
