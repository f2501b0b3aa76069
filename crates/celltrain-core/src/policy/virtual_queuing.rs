//! Virtual queuing: a FIFO that counts the cells each VC would have waiting if the VCs were served round robin.
//!
//! Source: Chiussi, Xia and Kumar 1997, and Siu, Wu and Ren in Computer Communications 21, 1998, as recalled in
//! `docs/mechanisms.md` 2.8; its symbols Q, Th, `M_j`, `N_v` and k are used (Q is X elsewhere). Differences from the
//! source: the source's rule for discarding was not available. Here the rule of per-VC accounting is used, with
//! `M_j` instead of `Y_j`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::per_vc_accounting::k;
use super::virtual_queues::VirtualQueues;
use super::{BufferPolicy, CellFollower, Configure, Decision, Settings, View};
use crate::arbiter::RoundRobin;
use crate::coverage::reached;
use crate::index::Label;
use crate::rng::Stream;
use crate::threshold::Threshold;

/// Virtual queuing: when more than `threshold` cells wait, a VC whose virtual queue is longer than `k` times the
/// average may not start a frame. Virtual queues count the cells that would wait if each VC had its own queue and the
/// queues were served round robin; the real queue is first in, first out.
///
/// Source: Chiussi, Xia and Kumar, Virtual queuing techniques for ABR service, 1997.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "VirtualQueuing")]
pub struct Config {
    /// Th: the threshold up to which every frame may start.
    pub threshold: Threshold,
    /// k: above the threshold, a VC may start a frame while its virtual queue holds at most `k` times the average Q /
    /// `N_v`.
    #[serde(default = "k")]
    #[schemars(range(min = 0.0), extend("x-expect" = "a factor (0 or more)"))]
    pub k: f64,
}

/// The state of this policy and of `virtual_queuing_threshold`.
#[derive(Debug)]
pub struct VirtualQueuing {
    th: u32,
    k: f64,
    /// True if each virtual queue has an equal share of the threshold, regardless of the real queue's length.
    real_thresholds: bool,
    queues: VirtualQueues<RoundRobin>,
}

impl VirtualQueuing {
    pub(super) fn new(th: u32, k: f64, real_thresholds: bool, vcs: usize) -> Self {
        Self { th, k, real_thresholds, queues: VirtualQueues::new(vcs, RoundRobin::new(vcs)) }
    }

    /// Returns the number of cells that the virtual queues share: the threshold, or the queue length Q.
    fn shared(&self, q: u32) -> f64 {
        f64::from(if self.real_thresholds { self.th } else { q })
    }
}

impl Configure for Config {
    type Policy = VirtualQueuing;

    fn settings(&self) -> Settings<'_> {
        Settings { thresholds: vec![("threshold", self.threshold)], ..Settings::default() }
    }

    fn build(&self, capacity: u32, vcs: &[&str]) -> VirtualQueuing {
        VirtualQueuing::new(self.threshold.whole_cells(capacity), self.k, false, vcs.len())
    }
}

impl BufferPolicy for VirtualQueuing {
    fn admit_frame(&mut self, buffer: &View<'_>, vc: Label, _rng: &mut Stream) -> bool {
        // M_j is compared with k Q / N_v or k Th / N_v. N_v is moved to the other side, to avoid a division.
        let q = buffer.occupancy;
        let m_j = self.queues.of(vc, q);
        let is_admitted = (q <= self.th && !self.real_thresholds)
            || m_j * f64::from(self.queues.arbiter.members()) <= self.k * self.shared(q);
        reached!(WithinVirtualShare if q > self.th && is_admitted);
        is_admitted
    }

    fn admits_up_to(&self) -> Option<u32> {
        // An empty virtual queue is never above its threshold.
        Some(if self.real_thresholds { 0 } else { self.th })
    }

    fn explain(&self, buffer: &View<'_>, vc: Label) -> Decision {
        let q = buffer.occupancy;
        let (rule, threshold) = if self.real_thresholds {
            ("M_j is above k Th / N_v", None)
        } else {
            ("Q is above Th, and M_j above k Q / N_v", Some(self.th.into()))
        };
        let share = self.k * self.shared(q) / f64::from(self.queues.arbiter.members());
        Decision { rule, threshold, share: Some(share), held: Some(self.queues.of(vc, q)), ..Decision::default() }
    }

    fn follower(&mut self) -> Option<&mut dyn CellFollower> {
        Some(&mut self.queues)
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
    fn virtual_queuing_refuses_a_vc_far_above_its_share_even_if_the_real_queue_is_empty() {
        // VC 0 sends 6 cells, and then VC 1 sends 3. The FIFO has forwarded all cells of VC 0. If the VCs were served
        // in turns, 4 cells of VC 0 and 2 cells of VC 1 would have been forwarded.
        let mut bench = Bench::new(&Config { threshold: 4.into(), k: 1.0 }, 100, 2);
        bench.offer_frame(0, 6);
        bench.take(1);
        bench.offer_frame(1, 3);
        bench.take(5);
        assert_eq!(bench.port.per_vc().raw, [0, 3]);
        // If the VCs are served in turns, the order is VC 0, then VCs 0, 1, 0, 1 and 0.
        assert_eq!(bench.virtual_queues(), [2, 1]);
        bench.offer_frame(1, 2);
        assert_eq!(bench.virtual_queues(), [2, 3], "Q = 3 is below Th");
        bench.offer_frame(0, 1);
        assert_eq!(bench.virtual_queues(), [3, 3], "Q = 5 is above Th, and 2 is below the average");
        bench.offer_frame(1, 2);
        assert_eq!(bench.virtual_queues(), [3, 5], "at the average");
        bench.offer_frame(1, 9);
        assert_eq!(bench.virtual_queues(), [3, 5], "the virtual queue of 5 cells is above the average of 4");
        bench.offer_frame(0, 9);
        assert_eq!(
            bench.virtual_queues(),
            [12, 5],
            "VC 0's virtual queue is shorter than the average, so its frame is admitted"
        );
        assert_eq!(bench.port.per_vc().raw, [10, 7]);
    }

    #[test]
    fn a_larger_k_gives_each_vc_a_larger_share_under_virtual_queuing() {
        let mut bench = Bench::new(&Config { threshold: 4.into(), k: 1.5 }, 100, 2);
        bench.offer_frame(0, 6);
        bench.offer_frame(1, 2);
        // Q = 8 and N_v = 2, so a virtual queue may hold 1.5 * 4 = 6 cells.
        bench.offer_frame(0, 1);
        assert_eq!(bench.virtual_queues(), [7, 2]);
        bench.offer_frame(0, 1);
        assert_eq!(bench.virtual_queues(), [7, 2], "7 is above 6.75");
    }
}
