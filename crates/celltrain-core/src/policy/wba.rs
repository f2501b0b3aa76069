//! Weighted Buffer Allocation (WBA): Selective Drop whose fair shares are proportional to weights.
//!
//! Source: ATM Forum 97-0607, from memory; `docs/mechanisms.md` 2.12, whose symbols K, R, X, `X_i`, `W_i`, W and Z are
//! used. Differences from the source: W is the sum of the weights of all VCs that cross the port, whether they have
//! cells waiting or not. The source has options to count only a VC's untagged cells for untagged frames, and to refuse
//! tagged frames first. Here tagged frames are treated like others.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::load_ratio::LoadRatio;
use super::{Configure, PerVc, Settings, check_thresholds};
use crate::error::Fault;
use crate::threshold::Threshold;

/// Weighted Buffer Allocation: above a threshold, a VC that holds more than `z` times its weighted share of the
/// occupied buffer may not start a frame.
///
/// Source: ATM Forum 97-0607.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Wba")]
pub struct Config {
    /// `W_i`: the weights of the VCs, a number or a table keyed by VC name. Only their ratios count, so guaranteed
    /// rates in any unit can be used.
    pub weights: PerVc,
    /// R: the threshold up to which every frame is admitted.
    #[serde(default = "threshold")]
    pub threshold: Threshold,
    /// Z: the largest weighted load ratio `X_i` W / (`W_i` X) tolerated above R.
    #[serde(default = "z")]
    #[schemars(range(min = 0.0), extend("x-expect" = "a load ratio (0 or more)"))]
    pub z: f64,
}

/// Returns the default of R / K, the same as in Selective Drop and FBA.
pub(super) fn threshold() -> Threshold {
    0.9.into()
}

/// Returns the default of Z, the same as in Selective Drop and FBA.
pub(super) fn z() -> f64 {
    0.8
}

impl Configure for Config {
    type Policy = LoadRatio;

    fn settings(&self) -> Settings<'_> {
        Settings { thresholds: vec![("threshold", self.threshold)], per_vc: vec![("weights", &self.weights)] }
    }

    fn check(&self, capacity: Option<u32>, _vcs: &[&str]) -> Vec<Fault> {
        let mut faults = self.weights.check_weights();
        faults.extend(check_thresholds(self, capacity));
        faults
    }

    fn build(&self, capacity: u32, vcs: &[&str]) -> LoadRatio {
        LoadRatio::new(capacity, self.threshold, self.z, "X is above R, and X_i above Z X W_i / W")
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
    use crate::policy::selective_drop;

    #[test]
    fn wba_limits_each_vc_to_z_times_its_weighted_share_above_the_threshold() {
        let config = Config { weights: PerVc::from([("vc0", 1.0), ("vc1", 3.0)]), ..sample(1000) };
        // At X = 990, the shares of 1/4 and 3/4 are 247.5 and 742.5 cells, and 0.8 of them are 198 and 594.
        assert_eq!([0, 1].map(|vc| most_cells_of_two(&config, 990, vc)), [198, 594]);
        assert_eq!([900, 901].map(|x| most_cells_of_two(&config, x, 0)), [900, 180]);
    }

    #[test]
    fn wba_equals_selective_drop_if_all_vcs_are_active_and_have_equal_weights() {
        let equal = Config { weights: PerVc::Same(7.0), threshold: 0.5.into(), z: 0.8 };
        assert_alike(&equal, &selective_drop::Config { threshold: 0.5.into(), z: 0.8 });
    }

    #[test]
    fn wba_refuses_a_weight_of_zero() {
        let faults = Config { weights: PerVc::Same(0.0), ..sample(1000) }.check(Some(1000), &[]);
        assert_eq!(faults[0].key, "weights");
        assert_eq!(sample(1000).check(None, &[])[0].key, "threshold");
    }
}
