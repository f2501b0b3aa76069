//! Virtual queuing with real thresholds: each virtual queue has its own threshold, an equal share of a common one.
//!
//! Source: Chiussi, Xia and Kumar 1997, and Siu, Wu and Ren in Computer Communications 21, 1998, as recalled in
//! `docs/mechanisms.md` 2.8; its symbols Q, Th, `M_j`, `N_v` and k are used (Q is X elsewhere). Differences from the
//! source: the source's rule for discarding was not available. Here only a VC's threshold decides, no matter how
//! long the real queue is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::per_vc_accounting::k;
use super::virtual_queuing::VirtualQueuing;
use super::{Configure, Settings};
use crate::threshold::Threshold;

/// Virtual queuing with real thresholds: a VC whose virtual queue is longer than `k` times an equal share of the
/// threshold may not start a frame. Virtual queues count the cells that would wait if each VC had its own queue and the
/// queues were served round robin; the real queue is first in, first out.
///
/// Source: Chiussi, Xia and Kumar, Virtual queuing techniques for ABR service, 1997.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "VirtualQueuingThreshold")]
pub struct Config {
    /// Th: the threshold that the non-empty virtual queues share equally.
    pub threshold: Threshold,
    /// k: a VC may start a frame while its virtual queue holds at most `k` times its share Th / `N_v` of the threshold.
    #[serde(default = "k")]
    #[schemars(range(min = 0.0), extend("x-expect" = "a factor (0 or more)"))]
    pub k: f64,
}

impl Configure for Config {
    type Policy = VirtualQueuing;

    fn settings(&self) -> Settings<'_> {
        Settings { thresholds: vec![("threshold", self.threshold)], ..Settings::default() }
    }

    fn build(&self, capacity: u32, vcs: &[&str]) -> VirtualQueuing {
        VirtualQueuing::new(self.threshold.whole_cells(capacity), self.k, true, vcs.len())
    }
}

#[cfg(any(test, feature = "samples"))]
pub(super) fn sample(capacity: u32) -> Config {
    Config { threshold: (capacity.saturating_mul(4) / 5).into(), k: k() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::bench::Bench;

    #[test]
    fn vcs_with_cells_in_their_virtual_queues_share_the_threshold_equally() {
        let mut bench = Bench::new(&Config { threshold: 12.into(), k: 1.0 }, 100, 3);
        bench.offer_frame(0, 12);
        bench.offer_frame(0, 1);
        assert_eq!(bench.virtual_queues(), [13, 0, 0], "a single VC may use the whole threshold");
        bench.offer_frame(0, 1);
        bench.offer_frame(1, 6);
        bench.offer_frame(1, 1);
        assert_eq!(bench.virtual_queues(), [13, 7, 0], "the threshold is 12 cells for one VC and 6 for two");
        bench.offer_frame(1, 1);
        bench.offer_frame(2, 5);
        bench.offer_frame(2, 1);
        assert_eq!(bench.virtual_queues(), [13, 7, 5], "the threshold is 4 cells for each of three VCs");
    }

    #[test]
    fn the_decisions_of_virtual_queuing_ignore_the_length_of_the_real_queue() {
        let mut bench = Bench::new(&Config { threshold: 12.into(), k: 0.5 }, 100, 2);
        bench.offer_frame(0, 7);
        bench.offer_frame(0, 1);
        assert_eq!(bench.port.occupancy(), 7, "the queue is below Th, and the VC above half of Th");
    }
}
