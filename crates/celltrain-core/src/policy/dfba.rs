//! Differential Fair Buffer Allocation (DFBA) of 1997: a VC above its own threshold loses frames at random.
//!
//! Source: ATM Forum 97-0831, section 4 and Table 4, whose symbols K, R, `R_i`, `W_i`, X, `X_i`, Z and u are used;
//! `docs/mechanisms.md` 2.10. Differences from the source: the ceiling Z `R_i` is a rule, as in the source's text; the
//! pseudo-code lacks it. The scenario sets `R_i`, as in the source's Table 4, and `W_i` = `R_i` / R follows. The
//! source sets `W_i`, and `R_i` = `W_i` R follows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use typed_index_collections::TiVec;

use super::{BufferPolicy, Configure, Decision, PerVc, Settings, View};
use crate::coverage::reached;
use crate::error::Fault;
use crate::index::Label;
use crate::rng::Stream;
use crate::threshold::Threshold;

/// Differential Fair Buffer Allocation of 1997: a VC below its threshold may start any frame. Above it, frames are
/// refused with a probability that grows with the VC's waiting cells. Frames are always refused if the VC exceeds `z`
/// times the threshold, if the buffer is congested, or if they are tagged.
///
/// Source: ATM Forum 97-0831, section 4.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Dfba")]
pub struct Config {
    /// `R_i`: the number of waiting cells below which a VC may start any frame; a number, or a table keyed by VC name.
    /// To give a VC the share `W_i` of the link, set `W_i` R.
    #[schemars(extend("x-unit" = "cells"))]
    pub thresholds: PerVc,
    /// R: the occupancy of the buffer at which a VC that has reached its threshold may no longer start a frame.
    /// Default: the whole buffer.
    #[serde(default)]
    pub congestion_threshold: Option<Threshold>,
    /// Z: a VC may not start a frame if it has more waiting cells than `z` times its threshold.
    #[serde(default = "z")]
    #[schemars(range(min = 1.0), extend("x-expect" = "a factor (above 1)"))]
    pub z: f64,
}

/// Returns the default of Z (section 4: "We selected Z = 1.5 in our simulations.").
fn z() -> f64 {
    1.5
}

/// The policy, which has no state.
#[derive(Debug)]
pub struct Dfba {
    r_i: TiVec<Label, f64>,
    r: f64,
    z: f64,
}

impl Configure for Config {
    type Policy = Dfba;

    fn settings(&self) -> Settings<'_> {
        let thresholds = self.congestion_threshold.map(|r| (CONGESTION_THRESHOLD, r)).into_iter().collect();
        Settings { thresholds, per_vc: vec![("thresholds", &self.thresholds)] }
    }

    fn check(&self, capacity: Option<u32>, vcs: &[&str]) -> Vec<Fault> {
        if !vcs.is_empty() {
            return self.check_sum(capacity, vcs).into_iter().collect();
        }
        let mut faults = self.thresholds.check("thresholds", |r| r >= 1.0, "must be a threshold of at least 1 cell");
        match (self.congestion_threshold, capacity) {
            (Some(r), _) if r.whole_cells(capacity.unwrap_or(u32::MAX)) == 0 => {
                faults.push(Fault::new(
                    CONGESTION_THRESHOLD,
                    r.written(),
                    "is less than one cell; it must be at least \"1 cell\"",
                ));
            }
            (Some(r), _) => faults.extend(r.check(CONGESTION_THRESHOLD, capacity)),
            (None, Some(_)) => {}
            (None, None) => {
                let problem = "is missing; with an \"infinite\" buffer it must be a number of cells";
                faults.push(Fault::new(CONGESTION_THRESHOLD, "", problem));
            }
        }
        if self.z <= 1.0 {
            let problem = "must be above 1: the ceiling of a VC is z times its threshold";
            faults.push(Fault::new("z", self.z, problem));
        }
        faults
    }

    fn build(&self, capacity: u32, vcs: &[&str]) -> Dfba {
        let r = self.r(Some(capacity)).expect("fractional thresholds require a finite buffer, which was checked");
        Dfba { r_i: self.thresholds.resolve(vcs).into(), r: f64::from(r), z: self.z }
    }
}

impl BufferPolicy for Dfba {
    fn admit_frame(&mut self, buffer: &View<'_>, vc: Label, rng: &mut Stream) -> bool {
        let (x, x_i) = (f64::from(buffer.occupancy), f64::from(buffer.per_vc[vc]));
        let r_i = self.r_i[vc];
        reached!(DfbaAtThreshold if x_i == r_i);
        if x_i < r_i {
            return true;
        }
        if x_i > self.z * r_i || x >= self.r || buffer.tagged {
            reached!(DfbaAboveCeiling if x_i > self.z * r_i);
            reached!(DfbaCongested if x >= self.r);
            return false;
        }
        let drop = self.drop_probability(x_i, r_i);
        let admits = drop == 0.0 || rng.unit() >= drop;
        reached!(DfbaRefusedByChance if !admits);
        reached!(DfbaAdmittedByChance if admits && drop > 0.0);
        admits
    }

    fn admits_up_to(&self) -> Option<u32> {
        // While fewer cells wait than the lowest threshold, no VC can have reached its own threshold.
        let least = self.r_i.iter().copied().fold(self.r, f64::min);
        super::whole_cells(least.ceil() - 1.0)
    }

    fn explain(&self, buffer: &View<'_>, vc: Label) -> Decision {
        let (x_i, r_i) = (f64::from(buffer.per_vc[vc]), self.r_i[vc]);
        let draws = x_i >= r_i && x_i <= self.z * r_i && f64::from(buffer.occupancy) < self.r && !buffer.tagged;
        Decision {
            rule: "X_i reaches R_i, and either X reaches R, X_i is above Z R_i, the frame is tagged, or a random draw refuses it",
            threshold: Some(self.r),
            share: Some(r_i),
            probability: draws.then(|| self.drop_probability(x_i, r_i)),
            ..Decision::default()
        }
    }
}

impl Dfba {
    /// Returns P{drop} = `W_i` (`X_i` - `R_i`) / (Z `R_i` - `R_i`), with `W_i` = `R_i` / R.
    fn drop_probability(&self, x_i: f64, r_i: f64) -> f64 {
        let w_i = r_i / self.r;
        w_i * (x_i - r_i) / (r_i * (self.z - 1.0))
    }
}

impl Config {
    /// Checks the condition of the paper that defines DFBA: the weights `W_i = R_i / R` add up to less than 1.
    fn check_sum(&self, capacity: Option<u32>, vcs: &[&str]) -> Option<Fault> {
        // A separate check refuses a threshold of 0 cells.
        let r = self.r(capacity).filter(|&r| r > 0)?;
        let r_i = self.thresholds.resolve(vcs);
        let sum: f64 = r_i.iter().sum();
        if sum < f64::from(r) {
            return None;
        }
        let each = vcs.iter().zip(&r_i).take(SHOWN_VCS).map(|(vc, r_i)| format!("{vc} {r_i}"));
        let others = match vcs.len().saturating_sub(SHOWN_VCS) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        let each = each.collect::<Vec<_>>().join(", ");
        let what = if self.congestion_threshold.is_some() { CONGESTION_THRESHOLD } else { "the buffer" };
        let problem = format!(
            "add up to {sum} cells ({each}{others}); the thresholds of all VCs of a port must add up to less than \
             {what}, {r}"
        );
        Some(Fault::new("thresholds", "", problem))
    }

    /// Returns R, in cells, or `None` if neither R nor the buffer has a limit.
    fn r(&self, capacity: Option<u32>) -> Option<u32> {
        self.congestion_threshold.map_or(capacity, |r| Some(r.whole_cells(capacity.unwrap_or(u32::MAX))))
    }
}

const CONGESTION_THRESHOLD: &str = "congestion_threshold";
/// Maximum number of VCs named in the message about a sum of thresholds that is too large.
const SHOWN_VCS: usize = 4;

#[cfg(any(test, feature = "samples"))]
pub(super) fn sample(capacity: u32) -> Config {
    Config { thresholds: PerVc::Same(f64::from((capacity / 8).saturating_add(1))), congestion_threshold: None, z: z() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::bench::{self, draws, share_refused};

    /// Returns K = R = 1000, and thresholds of 400 and 200 cells, so the weights are 0.4 and 0.2.
    fn config() -> Config {
        let thresholds = PerVc::from([("vc0", 400.0), ("vc1", 200.0)]);
        Config { thresholds, congestion_threshold: None, z: 1.5 }
    }

    fn view(per_vc: &[u32; 2]) -> View<'_> {
        bench::view(1000, per_vc)
    }

    #[test]
    fn dfba_always_admits_new_frames_of_a_vc_below_its_threshold() {
        assert_eq!(share_refused(&config(), &view(&[399, 601]), 0), 0.0);
    }

    #[test]
    fn the_drop_probability_of_a_vc_rises_from_its_threshold_to_its_ceiling() {
        // For VC 0, the probability is 0.4 (X_i - 400) / 200: 0.2 at 500 and 0.4 at 600. With 10,000 draws, five
        // standard deviations are 0.025.
        let refused = |x_i| share_refused(&config(), &view(&[x_i, 0]), 0);
        assert_eq!(refused(400), 0.0);
        assert!((refused(500) - 0.2).abs() < 0.02, "{}", refused(500));
        assert!((refused(600) - 0.4).abs() < 0.025, "{}", refused(600));
        // For VC 1, the probability is 0.2 (X_i - 200) / 100: 0.1 at 250.
        let refused = share_refused(&config(), &view(&[0, 250]), 1);
        assert!((refused - 0.1).abs() < 0.015, "{refused}");
    }

    #[test]
    fn dfba_refuses_every_new_frame_of_a_vc_above_its_ceiling() {
        assert_eq!(share_refused(&config(), &view(&[601, 0]), 0), 1.0);
        assert_eq!(share_refused(&config(), &view(&[0, 301]), 1), 1.0);
    }

    #[test]
    fn if_the_buffer_is_congested_dfba_refuses_a_new_frame_of_a_vc_at_its_threshold() {
        assert_eq!(share_refused(&config(), &view(&[400, 599]), 0), 0.0);
        assert_eq!(share_refused(&config(), &view(&[400, 600]), 0), 1.0);
        let earlier = Config { congestion_threshold: Some(700.into()), ..config() };
        assert_eq!(share_refused(&earlier, &view(&[400, 299]), 0), 0.0);
        assert_eq!(share_refused(&earlier, &view(&[400, 300]), 0), 1.0);
    }

    #[test]
    fn dfba_admits_tagged_frames_only_below_the_threshold() {
        let refused = |tagged, x_i| share_refused(&config(), &View { tagged, ..view(&[x_i, 0]) }, 0);
        assert_eq!([399, 400].map(|x_i| refused(true, x_i)), [0.0, 1.0]);
        assert_eq!(refused(false, 400), 0.0, "an untagged frame may start: at the threshold the probability is 0");
    }

    #[test]
    fn dfba_draws_a_random_number_only_if_the_decision_depends_on_it() {
        for (x_0, drawn) in [(399, false), (400, false), (500, true), (601, false)] {
            assert_eq!(draws(&config(), &view(&[x_0, 0]), 0), drawn, "X_i = {x_0}");
        }
        assert!(!draws(&config(), &view(&[500, 500]), 0), "congested");
        assert!(!draws(&config(), &View { tagged: true, ..view(&[500, 0]) }, 0), "tagged");
    }

    #[test]
    fn dfba_refuses_vc_thresholds_whose_sum_reaches_the_congestion_threshold_or_the_buffer() {
        assert!(config().check(Some(601), &["vc0", "vc1"]).is_empty());
        let faults = config().check(Some(600), &["vc0", "vc1"]);
        let problem = "add up to 600 cells (vc0 400, vc1 200); the thresholds of all VCs of a port must add up to less \
                       than the buffer, 600";
        assert_eq!(faults, [Fault::new("thresholds", "", problem)]);
        let earlier = Config { congestion_threshold: Some(500.into()), ..config() };
        assert!(earlier.check(None, &["vc0", "vc1"])[0].problem.ends_with("less than congestion_threshold, 500"));
    }

    #[test]
    fn invalid_dfba_settings_are_refused() {
        let keys = |config: Config, capacity| -> Vec<String> {
            config.check(capacity, &[]).into_iter().map(|fault| fault.key).collect()
        };
        assert_eq!(keys(Config { z: 1.0, ..config() }, Some(1000)), ["z"]);
        assert_eq!(keys(Config { thresholds: PerVc::Same(0.5), ..config() }, Some(1000)), ["thresholds"]);
        assert_eq!(keys(config(), None), ["congestion_threshold"]);
        let above = Config { congestion_threshold: Some(1001.into()), ..config() };
        assert_eq!(keys(above.clone(), Some(1000)), ["congestion_threshold"]);
        assert!(keys(above, None).is_empty());
    }
}
