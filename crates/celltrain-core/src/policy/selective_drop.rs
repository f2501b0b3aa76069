//! Selective Drop: past a threshold, a VC that holds more than its share may not start a frame.
//!
//! Source: ATM Forum 96-1269, section 6; its symbols K, R, X, `Y_i`, `N_a` and Z are used; `docs/mechanisms.md` 2.5.
//! Differences from the source: none known. R = 0.9 K is a real number, not rounded; overflow inside an admitted
//! frame is handled as by partial packet discard.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::load_ratio::LoadRatio;
use super::{Configure, Settings};
use crate::threshold::Threshold;

/// Selective Drop: above a threshold, a VC that holds more than its share may not start a frame. The defaults are the
/// best published values.
///
/// Source: ATM Forum 96-1269, section 6 and Table 4.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "SelectiveDrop")]
pub struct Config {
    /// R: the threshold up to which every frame is admitted.
    pub threshold: Threshold,
    /// Z: the largest load ratio `Y_i` `N_a` / X that is tolerated above R.
    #[schemars(range(min = 0.0), extend("x-expect" = "a load ratio (0 or more)"))]
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

    fn build(&self, capacity: u32, _vcs: &[&str]) -> LoadRatio {
        LoadRatio::new(capacity, self.threshold, self.z, "X is above R, and Y_i above Z X / N_a")
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
    fn selective_drop_limits_each_vc_to_z_times_its_fair_share_above_the_threshold() {
        // With K = 1000, X = 990 and three active VCs, the fair share is 330 cells. The bound is 0.8 times that, 264
        // cells.
        let most = [900, 901, 990, 1000].map(|x| most_cells(&Config::default(), 1000, x, 3));
        assert_eq!(most, [900, 240, 264, 266]);
    }
}
