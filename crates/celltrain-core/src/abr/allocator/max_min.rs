//! Max-min: an ideal allocator for comparison. Each source gets its max-min fair share of the whole network.
//!
//! Source: Bertsekas and Gallager, *Data Networks*, section 6.5.2; [`crate::max_min`] computes the shares. Differences
//! from the source: no real switch knows the whole network. The shares assume that every VC always has something to
//! send.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use typed_index_collections::TiVec;

use super::{Allocator, Configure, PortKind};
use crate::abr::RmCell;
use crate::index::Label;
use crate::units::Time;

/// Max-min: a source may use its max-min fair share of the whole network, computed with full knowledge of the network.
///
/// Source: Bertsekas and Gallager, Data Networks, section 6.5.2.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "MaxMin")]
pub struct Config {}

/// The max-min allocator.
#[derive(Debug)]
pub struct MaxMin {
    /// Each VC's share, by label, in cells per second.
    shares: TiVec<Label, f64>,
}

impl Configure for Config {
    type Allocator = MaxMin;

    fn build(&self, port: &PortKind<'_>) -> MaxMin {
        MaxMin { shares: port.vcs.iter().map(|vc| vc.share).collect() }
    }
}

impl Allocator for MaxMin {
    fn on_backward_rm(&mut self, label: Label, _now: Time, _queue: u32, rm: &mut RmCell) {
        rm.er = rm.er.min(self.shares[label]);
    }
}

#[cfg(test)]
pub(super) fn sample() -> Config {
    Config {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abr::allocator::VcKind;
    use crate::abr::allocator::conformance::{brm, port};

    #[test]
    fn the_max_min_allocator_never_raises_a_rate_that_another_switch_has_granted() {
        let vcs = [70.0, 30.0].map(|share| VcKind { is_abr: true, above_abr: false, mcr: 0.0, share });
        let mut allocator = Config {}.build(&PortKind { vcs: &vcs, ..port(2) });
        for (label, er, expected) in [(0, 100.0, 70.0), (1, 100.0, 30.0), (0, 40.0, 40.0)] {
            let mut rm = brm(er);
            allocator.on_backward_rm(Label::new(label), Time(1), 0, &mut rm);
            assert_eq!(rm, brm(expected));
        }
    }
}
