//! Weighted FBA: Fair Buffer Allocation whose fair shares are proportional to weights.
//!
//! Source: ATM Forum 97-0607, as remembered; `docs/mechanisms.md` 2.12, whose symbols K, R, X, `X_i`, `W_i`, W and Z
//! are kept.
//! Departures: as in Weighted Buffer Allocation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fba::check_threshold;
use super::wba::Weights;
use super::{BufferPolicy, Configure, Decision, PerVc, Settings, View};
use crate::error::Fault;
use crate::index::Label;
use crate::rng::Stream;
use crate::threshold::Threshold;

/// Weighted FBA: past a threshold, a VC may start a frame while its weighted load ratio stays below a bound that falls
/// from infinity to Z as the buffer fills.
///
/// Source: ATM Forum 97-0607.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WeightedFba")]
pub struct Config {
    /// `W_i`: the weights of the VCs, a number or a table by the VC's name. Only their ratios count, so guaranteed
    /// rates in any unit will do.
    pub weights: PerVc,
    /// R: the threshold up to which every frame is admitted.
    #[serde(default = "threshold")]
    pub threshold: Threshold,
    /// Z: the linear scale of the drop threshold, the largest weighted load ratio tolerated in a full buffer.
    #[serde(default = "z")]
    #[schemars(range(min = 0.0), extend("x-expect" = "a scale (0 or more)"))]
    pub z: f64,
}

/// R / K, as in FBA.
fn threshold() -> Threshold {
    0.9.into()
}

/// Z, as in FBA.
fn z() -> f64 {
    0.8
}

/// The policy; it has no state.
#[derive(Debug)]
pub struct WeightedFba {
    k: f64,
    r: f64,
    z: f64,
    weights: Weights,
}

impl Configure for Config {
    type Policy = WeightedFba;

    fn settings(&self) -> Settings<'_> {
        Settings { thresholds: vec![("threshold", self.threshold)], per_vc: vec![("weights", &self.weights)] }
    }

    fn check(&self, capacity: Option<u32>, _vcs: &[&str]) -> Vec<Fault> {
        let mut faults = self.weights.check_weights();
        faults.extend(check_threshold(self.threshold, capacity));
        faults
    }

    fn build(&self, capacity: u32, vcs: &[&str]) -> WeightedFba {
        let k = f64::from(capacity);
        WeightedFba { k, r: self.threshold.cells(capacity), z: self.z, weights: Weights::new(&self.weights, vcs) }
    }
}

impl BufferPolicy for WeightedFba {
    fn admit_frame(&mut self, buffer: &View<'_>, vc: Label, _rng: &mut Stream) -> bool {
        let x = f64::from(buffer.occupancy);
        x <= self.r || self.weights.load_ratio(buffer, vc) <= self.z * (self.k - self.r) / (x - self.r)
    }

    fn admits_up_to(&self) -> Option<u32> {
        super::whole_cells(self.r)
    }

    fn explain(&self, buffer: &View<'_>, vc: Label) -> Decision {
        let x = f64::from(buffer.occupancy);
        let share = || self.z * (self.k - self.r) / (x - self.r) * self.weights.share(buffer, vc);
        Decision {
            rule: "X is above R, and X_i above Z (K - R) / (X - R) times X W_i / W",
            threshold: Some(self.r),
            share: (x > self.r).then(share),
            ..Decision::default()
        }
    }
}

#[cfg(any(test, feature = "samples"))]
pub(super) fn sample(_capacity: u32) -> Config {
    Config { weights: PerVc::Same(0.2), threshold: threshold(), z: z() }
}

#[cfg(test)]
mod tests {
    use typed_index_collections::TiSlice;

    use super::*;
    use crate::policy::conformance::{asked, asked_of_two};
    use crate::policy::fba;
    use crate::units::Time;

    /// Returns whether VC `vc` of two, with weights 1 and 4, may start a frame when it holds `x_i` of `x` cells
    /// (K = 1000).
    fn admitted(x: u32, vc: u32, x_i: u32) -> bool {
        let weights = PerVc::ByName([("vc0".to_string(), 1.0), ("vc1".to_string(), 4.0)].into());
        asked_of_two(&Config { weights, ..sample(1000) }, x, vc, x_i)
    }

    #[test]
    fn in_a_full_buffer_the_bound_is_z_times_the_weighted_share() {
        // X = K = 1000: shares of 1/5 and 4/5 are 200 and 800 cells, 0.8 of them 160 and 640.
        assert!(admitted(1000, 0, 160));
        assert!(!admitted(1000, 0, 161));
        assert!(admitted(1000, 1, 640));
        assert!(!admitted(1000, 1, 641));
    }

    #[test]
    fn halfway_above_the_threshold_the_bound_is_twice_z_in_weighted_shares() {
        // X = 950: (K - R)/(X - R) = 2, so 1.6 shares of 950/5 = 190 cells: 304. The other VC may hold all.
        assert!(admitted(950, 0, 304));
        assert!(!admitted(950, 0, 305));
        assert!(admitted(950, 1, 950));
    }

    #[test]
    fn up_to_the_threshold_every_frame_of_every_weight_enters() {
        assert!(admitted(900, 0, 900));
    }

    #[test]
    fn with_equal_weights_and_all_vcs_active_it_is_fba() {
        let equal = Config { weights: PerVc::Same(7.0), threshold: 0.5.into(), z: 0.8 };
        let plain = fba::Config { threshold: 0.5.into(), z: 0.8 };
        for y in 1..=20 {
            for others in 1..=40 {
                let per_vc = [y, others, 1];
                let view = View {
                    occupancy: y + others + 1,
                    capacity: 64,
                    active_vcs: 3,
                    per_vc: TiSlice::from_ref(&per_vc),
                    tagged: false,
                    now: Time(0),
                };
                let rng = &mut Stream::new(1, "bench");
                assert_eq!(asked(&equal, &view, 0, rng), asked(&plain, &view, 0, rng), "{per_vc:?}");
            }
        }
    }

    #[test]
    fn a_negative_weight_is_refused() {
        let faults = Config { weights: PerVc::Same(-1.0), ..sample(1000) }.check(Some(1000), &[]);
        assert_eq!(faults[0].key, "weights");
        assert_eq!(sample(1000).check(None, &[])[0].key, "threshold");
    }
}
