//! Differential Fair Buffer Allocation (DFBA) of 1998: as the buffer fills, VCs above their shares lose frames at
//! random.
//!
//! Source: ATM Forum 98-0405, from memory and checked against an implementation; `docs/mechanisms.md` 2.11, whose
//! symbols K, L, H, X, `X_i`, `W_i`, W, `w_i`, alpha, `Z_i` and `P_i` are used. Differences from the source: W is the
//! sum of the weights of all VCs that cross the port. `X_i` counts all cells of a VC, tagged or not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use typed_index_collections::TiVec;

use super::load_ratio::Weights;
use super::{BufferPolicy, Configure, Decision, PerVc, Settings, View, check_thresholds};
use crate::coverage::reached;
use crate::error::Fault;
use crate::index::Label;
use crate::rng::Stream;
use crate::threshold::Threshold;

/// Differential Fair Buffer Allocation of 1998. Up to a low threshold, every frame may start. Above a high threshold,
/// no frame may start. Between them, tagged frames are refused, and frames of a VC above its weighted share are refused
/// at random.
///
/// Source: ATM Forum 98-0405.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Dfba1998")]
pub struct Config {
    /// `W_i`: the weights of the VCs, a number or a table keyed by VC name. Only their ratios count, so guaranteed
    /// rates in any unit can be used.
    pub weights: PerVc,
    /// L: the threshold up to which every frame is admitted.
    #[serde(default = "low_threshold")]
    pub low_threshold: Threshold,
    /// H: the threshold above which no frame may start.
    #[serde(default = "high_threshold")]
    pub high_threshold: Threshold,
    /// alpha: the weight, in the drop probability, of the VC's occupancy above its share. The queue has the remaining
    /// weight.
    #[serde(default = "alpha")]
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expect" = "a share (0 to 1)"))]
    pub alpha: f64,
    /// `Z_i`: the largest drop probability, 0 to 1; a number, or a table keyed by VC name. 1 - `W_i` / W when absent.
    #[serde(default)]
    pub z: Option<PerVc>,
}

/// Returns the default of L (`docs/mechanisms.md`, A-15).
fn low_threshold() -> Threshold {
    0.5.into()
}

/// Returns the default of H (`docs/mechanisms.md`, A-15).
fn high_threshold() -> Threshold {
    0.9.into()
}

/// Returns the default of alpha (`docs/mechanisms.md`, A-15).
fn alpha() -> f64 {
    0.5
}

/// The policy, which has no state.
#[derive(Debug)]
pub struct Dfba1998 {
    l: f64,
    h: f64,
    alpha: f64,
    z: TiVec<Label, f64>,
    weights: Weights,
}

impl Configure for Config {
    type Policy = Dfba1998;

    fn settings(&self) -> Settings<'_> {
        let thresholds = vec![("low_threshold", self.low_threshold), ("high_threshold", self.high_threshold)];
        let z = self.z.as_ref().map(|z| ("z", z));
        Settings { thresholds, per_vc: [("weights", &self.weights)].into_iter().chain(z).collect() }
    }

    fn check(&self, capacity: Option<u32>, _vcs: &[&str]) -> Vec<Fault> {
        let mut faults = self.weights.check_weights();
        faults.extend(check_thresholds(self, capacity));
        let k = capacity.unwrap_or(u32::MAX);
        if self.low_threshold.cells(k) > self.high_threshold.cells(k) {
            let problem = format!("is above high_threshold = {}; it must be at most that", self.high_threshold);
            faults.push(Fault::new("low_threshold", self.low_threshold.written(), problem));
        }
        let z = self.z.iter();
        faults.extend(z.flat_map(|z| z.check("z", |z| (0.0..=1.0).contains(&z), "is not a probability (0 to 1)")));
        faults
    }

    fn build(&self, capacity: u32, vcs: &[&str]) -> Dfba1998 {
        let weights = Weights::new(&self.weights, vcs);
        let z = match &self.z {
            Some(z) => z.resolve(vcs).into(),
            None => weights.of.iter().map(|w_i| 1.0 - w_i / weights.sum).collect(),
        };
        Dfba1998 {
            l: self.low_threshold.cells(capacity),
            h: self.high_threshold.cells(capacity),
            alpha: self.alpha,
            z,
            weights,
        }
    }
}

impl BufferPolicy for Dfba1998 {
    fn admit_frame(&mut self, buffer: &View<'_>, vc: Label, rng: &mut Stream) -> bool {
        let x = f64::from(buffer.occupancy);
        if x <= self.l {
            return true;
        }
        if x > self.h || buffer.tagged {
            return false;
        }
        let drop = self.drop_probability(x, f64::from(buffer.per_vc[vc]), vc);
        let admits = drop == 0.0 || rng.unit() >= drop;
        reached!(Dfba1998WithinShare if drop == 0.0);
        reached!(Dfba1998RefusedByChance if !admits);
        admits
    }

    fn admits_up_to(&self) -> Option<u32> {
        super::whole_cells(self.l)
    }

    fn explain(&self, buffer: &View<'_>, vc: Label) -> Decision {
        let x = f64::from(buffer.occupancy);
        let draws = x > self.l && x <= self.h && !buffer.tagged;
        let Weights { of, sum } = &self.weights;
        Decision {
            rule: "X is above H, or above L and the frame is tagged or refused by a random draw",
            threshold: Some(if x > self.h { self.h } else { self.l }),
            share: Some(x * of[vc] / sum),
            probability: draws.then(|| self.drop_probability(x, f64::from(buffer.per_vc[vc]), vc)),
            ..Decision::default()
        }
    }
}

impl Dfba1998 {
    /// Returns `P_i` = `Z_i` [alpha (`X_i` - X `w_i`) / (X (1 - `w_i`)) + (1 - alpha) (X - L) / (H - L)], with `w_i` =
    /// `W_i` / W; 0 for a VC within its share, that is, while `X_i` W is at most X `W_i`.
    fn drop_probability(&self, x: f64, x_i: f64, i: Label) -> f64 {
        let Weights { of, sum } = &self.weights;
        if x_i * sum <= x * of[i] {
            return 0.0;
        }
        let w_i = of[i] / sum;
        let excess = (x_i - x * w_i) / (x * (1.0 - w_i));
        let fill = (x - self.l) / (self.h - self.l);
        self.z[i] * (self.alpha * excess + (1.0 - self.alpha) * fill)
    }
}

#[cfg(any(test, feature = "samples"))]
pub(super) fn sample(_capacity: u32) -> Config {
    Config {
        weights: PerVc::Same(0.2),
        low_threshold: low_threshold(),
        high_threshold: high_threshold(),
        alpha: alpha(),
        z: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::bench::{self, draws, share_refused};

    /// Weights of 1 and 3: shares of 1/4 and 3/4.
    fn config() -> Config {
        let weights = PerVc::from([("vc0", 1.0), ("vc1", 3.0)]);
        Config { weights, ..sample(1000) }
    }

    /// Returns a buffer with K = 1000, so L = 500 and H = 900.
    fn view(per_vc: &[u32]) -> View<'_> {
        bench::view(1000, per_vc)
    }

    #[test]
    fn dfba_1998_admits_every_frame_below_the_low_threshold() {
        assert_eq!(share_refused(&config(), &view(&[500, 0]), 0), 0.0);
        assert_eq!(share_refused(&config(), &View { tagged: true, ..view(&[500, 0]) }, 0), 0.0);
        assert!(share_refused(&config(), &view(&[501, 0]), 0) > 0.0);
    }

    #[test]
    fn dfba_1998_admits_no_new_frame_above_the_high_threshold() {
        assert_eq!(share_refused(&config(), &view(&[0, 901]), 0), 1.0);
        assert_eq!(share_refused(&config(), &view(&[0, 900]), 0), 0.0);
    }

    #[test]
    fn under_dfba_1998_a_vc_that_holds_at_most_its_weighted_share_loses_no_frames() {
        // At X = 800, the shares are 200 and 600 cells.
        assert_eq!(share_refused(&config(), &view(&[200, 600]), 0), 0.0);
        assert_eq!(share_refused(&config(), &view(&[200, 600]), 1), 0.0);
        assert!(share_refused(&config(), &view(&[201, 599]), 0) > 0.0);
    }

    #[test]
    fn dfba_1998_drops_by_the_buffer_share_of_the_vc_and_the_queue_length() {
        // X = 800 and X_0 = 500, so the excess is (500 - 200)/(800 * 3/4) = 1/2 and the fill is (800 - 500)/400 = 3/4.
        // With Z_0 = 3/4, the probability is 3/4 (1/2 * 1/2 + 1/2 * 3/4) = 0.46875.
        let per_vc = [500, 300];
        let refused = |config: Config| share_refused(&config, &view(&per_vc), 0);
        let close = |share: f64, expected: f64| (share - expected).abs() < 0.025;
        assert!(close(refused(config()), 0.468_75), "{}", refused(config()));
        assert!(close(refused(Config { alpha: 1.0, ..config() }), 0.375));
        assert!(close(refused(Config { alpha: 0.0, ..config() }), 0.5625));
        assert!(close(refused(Config { z: Some(PerVc::Same(1.0)), ..config() }), 0.625));
        assert!(close(refused(Config { z: Some(PerVc::Same(0.0)), ..config() }), 0.0));
    }

    #[test]
    fn under_dfba_1998_a_single_active_vc_never_exceeds_its_share() {
        let alone = Config { weights: PerVc::Same(0.1), ..sample(1000) };
        assert_eq!(share_refused(&alone, &view(&[900]), 0), 0.0);
    }

    #[test]
    fn dfba_1998_admits_tagged_frames_only_up_to_the_low_threshold() {
        // VC 1 does not exceed its share.
        let refused = |tagged, x: u32| share_refused(&config(), &View { tagged, ..view(&[250, x - 250]) }, 1);
        assert_eq!([500, 501].map(|x| refused(true, x)), [0.0, 1.0]);
        assert_eq!(refused(false, 501), 0.0, "an untagged frame may start");
    }

    #[test]
    fn dfba_1998_draws_a_random_number_only_if_the_decision_depends_on_it() {
        for (per_vc, tagged, drawn) in [
            ([500, 0], false, false),
            ([501, 0], false, true),
            ([501, 0], true, false),
            ([200, 600], false, false),
            ([901, 0], false, false),
        ] {
            assert_eq!(draws(&config(), &View { tagged, ..view(&per_vc) }, 0), drawn, "{per_vc:?}");
        }
    }

    #[test]
    fn invalid_dfba_1998_settings_are_refused() {
        let keys = |config: Config, capacity| -> Vec<String> {
            config.check(capacity, &[]).into_iter().map(|fault| fault.key).collect()
        };
        assert_eq!(keys(Config { low_threshold: 0.95.into(), ..config() }, Some(1000)), ["low_threshold"]);
        assert_eq!(keys(Config { z: Some(PerVc::Same(1.5)), ..config() }, Some(1000)), ["z"]);
        assert_eq!(keys(Config { weights: PerVc::Same(0.0), ..config() }, Some(1000)), ["weights"]);
        assert_eq!(keys(config(), None), ["low_threshold", "high_threshold"]);
        assert!(keys(Config { low_threshold: 0.9.into(), ..config() }, Some(1000)).is_empty());
    }
}
