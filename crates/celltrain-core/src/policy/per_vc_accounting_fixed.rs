//! EPD with per-VC accounting and a fixed share: past a threshold, a VC that holds more than an equal part of the
//! threshold may not start a frame.
//!
//! Source: Li, Siu, Tzeng, Ikeda and Suzuki 1996, as `docs/mechanisms.md` 2.4 recalls it; its symbols Q, Th, Y, `N_a`,
//! F and k are kept (Q is X elsewhere).
//! Departures: as in `per_vc_accounting`; F = Th / `N_a` here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::per_vc_accounting::k;
use super::{BufferPolicy, Configure, Decision, Settings, View};
use crate::index::Label;
use crate::rng::Stream;
use crate::threshold::Threshold;

/// EPD with per-VC accounting and a fixed share: when more than `threshold` cells wait, a VC that holds more than `k`
/// times an equal part of the threshold may not start a frame.
///
/// Source: Li, Siu, Tzeng, Ikeda and Suzuki, TCP performance over ABR and UBR services in ATM, 1996.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PerVcAccountingFixed")]
pub struct Config {
    /// Th: the threshold up to which every frame may start.
    #[schemars(extend("x-former-name" = "threshold_cells"))]
    pub threshold: Threshold,
    /// k: how many times its part Th / `N_a` of the threshold a VC may hold when it starts a frame.
    #[serde(default = "k")]
    #[schemars(range(min = 0.0), extend("x-expect" = "a factor (0 or more)"))]
    pub k: f64,
}

/// The policy; it has no state.
#[derive(Debug)]
pub struct PerVcAccountingFixed {
    th: u32,
    k: f64,
}

impl Configure for Config {
    type Policy = PerVcAccountingFixed;

    fn settings(&self) -> Settings<'_> {
        Settings { thresholds: vec![("threshold", self.threshold)], ..Settings::default() }
    }

    fn build(&self, capacity: u32, _vcs: &[&str]) -> PerVcAccountingFixed {
        PerVcAccountingFixed { th: self.threshold.whole_cells(capacity), k: self.k }
    }
}

impl BufferPolicy for PerVcAccountingFixed {
    fn admit_frame(&mut self, buffer: &View<'_>, vc: Label, _rng: &mut Stream) -> bool {
        // Y_j > k Th / N_a, without the division.
        let y_j = f64::from(buffer.per_vc[vc]);
        buffer.occupancy <= self.th || y_j * f64::from(buffer.active_vcs) <= self.k * f64::from(self.th)
    }

    fn admits_up_to(&self) -> Option<u32> {
        Some(self.th)
    }

    fn explain(&self, buffer: &View<'_>, _vc: Label) -> Decision {
        let share = self.k * f64::from(self.th) / f64::from(buffer.active_vcs);
        Decision {
            rule: "Q is above Th, and Y_j above k Th / N_a",
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
    use crate::policy::conformance::most_cells;

    #[test]
    fn above_the_threshold_the_cut_is_at_an_equal_part_of_it() {
        let config = |k| Config { threshold: 750.into(), k };
        // Three active VCs: F = 250, whatever Q is.
        assert_eq!([750, 751, 1000].map(|q| most_cells(&config(1.0), 1000, q, 3)), [750, 250, 250]);
        assert_eq!(most_cells(&config(2.0), 1000, 900, 3), 500);
    }
}
