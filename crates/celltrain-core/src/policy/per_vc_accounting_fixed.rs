//! EPD with per-VC accounting and a fixed share: past a threshold, a VC that holds more than an equal share of the
//! threshold may not start a frame.
//!
//! Source: Li, Siu, Tzeng, Ikeda and Suzuki 1996, as recalled in `docs/mechanisms.md` 2.4; its symbols Q, Th, Y, `N_a`,
//! F and k are used (Q is X elsewhere). Differences from the source: as in `per_vc_accounting`; F = Th / `N_a` here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::per_vc_accounting::{PerVcAccounting, k};
use super::{Configure, Settings};
use crate::threshold::Threshold;

/// EPD with per-VC accounting and a fixed share: when more than `threshold` cells wait, a VC that holds more than `k`
/// times an equal share of the threshold may not start a frame.
///
/// Source: Li, Siu, Tzeng, Ikeda and Suzuki, TCP performance over ABR and UBR services in ATM, 1996.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PerVcAccountingFixed")]
pub struct Config {
    /// Th: the threshold up to which every frame may start.
    pub threshold: Threshold,
    /// k: above the threshold, a VC may start a frame while it holds at most `k` times its share Th / `N_a` of the
    /// threshold.
    #[serde(default = "k")]
    #[schemars(range(min = 0.0), extend("x-expect" = "a factor (0 or more)"))]
    pub k: f64,
}

impl Configure for Config {
    type Policy = PerVcAccounting;

    fn settings(&self) -> Settings<'_> {
        Settings { thresholds: vec![("threshold", self.threshold)], ..Settings::default() }
    }

    fn build(&self, capacity: u32, _vcs: &[&str]) -> PerVcAccounting {
        PerVcAccounting { th: self.threshold.whole_cells(capacity), k: self.k, is_fixed: true }
    }
}

#[cfg(any(test, feature = "samples"))]
pub(super) fn sample(capacity: u32) -> Config {
    Config { threshold: (capacity.saturating_mul(4) / 5).into(), k: k() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::bench::most_cells;

    #[test]
    fn above_its_threshold_fixed_per_vc_accounting_limits_each_vc_to_an_equal_share() {
        let config = |k| Config { threshold: 750.into(), k };
        // With three active VCs, F = 250, whatever Q is.
        assert_eq!([750, 751, 1000].map(|q| most_cells(&config(1.0), 1000, q, 3)), [750, 250, 250]);
        assert_eq!(most_cells(&config(2.0), 1000, 900, 3), 500);
    }
}
