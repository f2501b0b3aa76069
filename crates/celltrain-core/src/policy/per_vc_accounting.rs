//! EPD with per-VC accounting: past a threshold, a VC that holds more than an equal share of the queue may not start a
//! frame.
//!
//! Source: Li, Siu, Tzeng, Ikeda and Suzuki 1996, as recalled in `docs/mechanisms.md` 2.4; its symbols Q, Th, Y, `N_a`,
//! F and k are used (Q is X elsewhere). Differences from the source: the source's share was not available. Here F = Q /
//! `N_a` (Th / `N_a` in `per_vc_accounting_fixed`) and k = 1.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::load_ratio::load_ratio;
use super::{BufferPolicy, Configure, Decision, Settings, View};
use crate::coverage::reached;
use crate::index::Label;
use crate::rng::Stream;
use crate::threshold::Threshold;

/// EPD with per-VC accounting: when more than `threshold` cells wait, a VC that holds more than `k` times an equal
/// share of them may not start a frame.
///
/// Source: Li, Siu, Tzeng, Ikeda and Suzuki, TCP performance over ABR and UBR services in ATM, 1996.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PerVcAccounting")]
pub struct Config {
    /// Th: the threshold up to which every frame may start.
    pub threshold: Threshold,
    /// k: above the threshold, a VC may start a frame while it holds at most `k` times its share Q / `N_a` of the
    /// waiting cells.
    #[serde(default = "k")]
    #[schemars(range(min = 0.0), extend("x-expect" = "a factor (0 or more)"))]
    pub k: f64,
}

/// Returns the default of k.
pub(super) fn k() -> f64 {
    1.0
}

/// The policy `per_vc_accounting` or `per_vc_accounting_fixed`. Neither has state that changes during a run.
#[derive(Debug)]
pub struct PerVcAccounting {
    pub(super) th: u32,
    pub(super) k: f64,
    /// True if VCs share the threshold, false if they share the waiting cells.
    pub(super) is_fixed: bool,
}

impl Configure for Config {
    type Policy = PerVcAccounting;

    fn settings(&self) -> Settings<'_> {
        Settings { thresholds: vec![("threshold", self.threshold)], ..Settings::default() }
    }

    fn build(&self, capacity: u32, _vcs: &[&str]) -> PerVcAccounting {
        PerVcAccounting { th: self.threshold.whole_cells(capacity), k: self.k, is_fixed: false }
    }
}

impl BufferPolicy for PerVcAccounting {
    fn admit_frame(&mut self, buffer: &View<'_>, vc: Label, _rng: &mut Stream) -> bool {
        if buffer.occupancy <= self.th {
            return true;
        }
        if self.is_fixed {
            // The comparison Y_j > k Th / N_a, without the division.
            let y_j = f64::from(buffer.per_vc[vc]);
            return y_j * f64::from(buffer.active_vcs) <= self.k * f64::from(self.th);
        }
        // Y_j > k Q / N_a, as a load ratio.
        reached!(WithinShareAboveThreshold if load_ratio(buffer, vc) <= self.k);
        load_ratio(buffer, vc) <= self.k
    }

    fn reads_own_view(&self) -> bool {
        true
    }

    fn admits_up_to(&self) -> Option<u32> {
        Some(self.th)
    }

    fn explain(&self, buffer: &View<'_>, _vc: Label) -> Decision {
        let (rule, shared) = if self.is_fixed {
            ("Q is above Th, and Y_j above k Th / N_a", self.th)
        } else {
            ("Q is above Th, and Y_j above k Q / N_a", buffer.occupancy)
        };
        let share = self.k * f64::from(shared) / f64::from(buffer.active_vcs);
        Decision {
            rule,
            threshold: Some(self.th.into()),
            share: share.is_finite().then_some(share),
            ..Decision::default()
        }
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
    fn per_vc_accounting_limits_each_vc_to_an_equal_share_of_a_queue_above_the_threshold() {
        let config = |k| Config { threshold: 800.into(), k };
        // With Q = 900 and three active VCs, F = 300.
        assert_eq!([1.0, 1.5].map(|k| most_cells(&config(k), 1000, 900, 3)), [300, 450]);
        assert_eq!([800, 801].map(|q| most_cells(&config(1.0), 1000, q, 3)), [800, 267]);
    }
}
