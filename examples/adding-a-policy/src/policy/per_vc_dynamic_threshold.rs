//! Dynamic Threshold: a VC may start a frame while it holds less than alpha times the number of free places.
//!
//! Source: Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches", IEEE/ACM
//! Transactions on Networking 6(2), 1998. Alpha and T are the source's; its B, Q and `Q_i` are K, X and `Y_i` here.
//! Differences from the source: the source limits output queues that share a memory, this one VCs that share a port's
//! FIFO; the source asks for every arrival, this one once a frame, and a frame that overflows falls back to partial
//! packet discard.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BufferPolicy, Configure, View};
use crate::error::Fault;
use crate::index::Label;
use crate::rng::Stream;

/// Dynamic Threshold: a VC may start a frame while it holds less than `alpha` times the number of free places.
///
/// Source: Choudhury and Hahne 1998.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "PerVcDynamicThreshold")]
pub struct Config {
    /// alpha: a VC may start a frame while it holds less than this many times the free places.
    #[schemars(range(min = 0.0), extend("x-expect" = "a factor (above 0)"))]
    pub alpha: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { alpha: 1.0 }
    }
}

/// The policy, which has no state.
#[derive(Debug)]
pub struct PerVcDynamicThreshold {
    alpha: f64,
}

impl Configure for Config {
    type Policy = PerVcDynamicThreshold;

    fn check(&self, _capacity: Option<u32>, _vcs: &[&str]) -> Vec<Fault> {
        if self.alpha > 0.0 {
            return Vec::new();
        }
        vec![Fault::new("alpha", self.alpha, "admits no frame at all; it must be above 0")]
    }

    fn build(&self, _capacity: u32, _vcs: &[&str]) -> PerVcDynamicThreshold {
        PerVcDynamicThreshold { alpha: self.alpha }
    }
}

impl BufferPolicy for PerVcDynamicThreshold {
    fn admit_frame(&mut self, buffer: &View<'_>, vc: Label, _rng: &mut Stream) -> bool {
        // T = alpha (K - X).
        f64::from(buffer.per_vc[vc]) < self.alpha * f64::from(buffer.capacity - buffer.occupancy)
    }
}

#[cfg(any(test, feature = "samples"))]
pub(super) fn sample(_capacity: u32) -> Config {
    Config::default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::bench::{Bench, admits};

    #[test]
    fn a_frame_may_start_if_the_queue_of_its_vc_is_below_alpha_times_the_free_cells() {
        // K = 1000 and X = 800, so 200 places are free, and half of these places are 100.
        let half = Config { alpha: 0.5 };
        assert!(admits(&half, 1000, 800, 9, 99));
        assert!(!admits(&half, 1000, 800, 9, 100));
    }

    #[test]
    fn no_vc_may_start_a_frame_in_a_full_buffer_even_without_queued_cells() {
        assert!(admits(&Config::default(), 1000, 999, 9, 0));
        assert!(!admits(&Config::default(), 1000, 1000, 9, 0));
    }

    #[test]
    fn vcs_that_always_send_fill_equal_shares_of_the_buffer_and_leave_one_share_free() {
        // n VCs stop at Y = alpha (K - n Y), that is at alpha K / (1 + n alpha): each VC holds 4 of 12 places, and 4
        // places remain free.
        let mut bench = Bench::new(&Config::default(), 12, 2);
        for _ in 0..12 {
            bench.offer_frame(0, 1);
            bench.offer_frame(1, 1);
        }
        assert_eq!(bench.port.per_vc().raw, [4, 4]);
    }

    #[test]
    fn an_alpha_with_which_the_policy_would_admit_no_frame_is_refused() {
        assert_eq!(Config { alpha: 0.0 }.check(Some(1000), &[])[0].key, "alpha");
        assert!(Config { alpha: 0.1 }.check(None, &[]).is_empty());
    }
}
