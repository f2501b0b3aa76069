//! Virtual queuing with minimum shares: the virtual queues are first served at minimum shares, then round robin.
//!
//! Source: Chiussi, Xia and Kumar 1997, and Siu, Wu and Ren in Computer Communications 21, 1998, as recalled in
//! `docs/mechanisms.md` 2.8; its symbols Q, Th, `M_j`, `N_v` and k are used (Q is X elsewhere). Differences from the
//! source: the source's rules for discarding and for the minimum rates were not available. Here a VC's share of
//! the queue is its share of the link: its minimum share, and an equal part of the shares not promised to active VCs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::per_vc_accounting::k;
use super::virtual_queues::VirtualQueues;
use super::{BufferPolicy, CellFollower, Configure, Decision, PerVc, Settings, View, check_thresholds};
use crate::arbiter::{MINIMUM_SHARE, MinimumShares, check_shares, check_sum};
use crate::error::Fault;
use crate::index::Label;
use crate::rng::Stream;
use crate::threshold::Threshold;

/// Virtual queuing with minimum shares: like `virtual_queuing`, but the virtual queues are first served at their VCs'
/// minimum shares of the link, then round robin. A VC's share of the queue is its share of the link.
///
/// Source: Chiussi, Xia and Kumar, Virtual queuing techniques for ABR service, 1997.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "VirtualQueuingWeighted")]
pub struct Config {
    /// `m_j`: the VCs' minimum shares of the link, a number or a table keyed by VC name; their sum is at most 1.
    #[schemars(extend("x-expect" = "a share of the link (0 to 1), or a table of shares keyed by VC name"))]
    pub minimum_share: PerVc,
    /// Th: the threshold up to which every frame may start.
    pub threshold: Threshold,
    /// k: above the threshold, a VC may start a frame while its virtual queue holds at most `k` times its share of the
    /// queue.
    #[serde(default = "k")]
    #[schemars(range(min = 0.0), extend("x-expect" = "a factor (0 or more)"))]
    pub k: f64,
}

/// The policy.
#[derive(Debug)]
pub struct VirtualQueuingWeighted {
    th: u32,
    k: f64,
    queues: VirtualQueues<MinimumShares>,
}

impl Configure for Config {
    type Policy = VirtualQueuingWeighted;

    fn settings(&self) -> Settings<'_> {
        Settings { thresholds: vec![("threshold", self.threshold)], per_vc: vec![(MINIMUM_SHARE, &self.minimum_share)] }
    }

    fn check(&self, capacity: Option<u32>, vcs: &[&str]) -> Vec<Fault> {
        if !vcs.is_empty() {
            return check_sum(&self.minimum_share, vcs);
        }
        let mut faults = check_shares(&self.minimum_share);
        faults.extend(check_thresholds(self, capacity));
        faults
    }

    fn build(&self, capacity: u32, vcs: &[&str]) -> VirtualQueuingWeighted {
        let queues = VirtualQueues::new(vcs.len(), MinimumShares::new(&self.minimum_share.resolve(vcs)));
        VirtualQueuingWeighted { th: self.threshold.whole_cells(capacity), k: self.k, queues }
    }
}

impl BufferPolicy for VirtualQueuingWeighted {
    fn admit_frame(&mut self, buffer: &View<'_>, vc: Label, _rng: &mut Stream) -> bool {
        let q = buffer.occupancy;
        let m_j = self.queues.of(vc, q);
        q <= self.th || m_j <= self.k * f64::from(q) * self.queues.arbiter.part(vc.into())
    }

    fn admits_up_to(&self) -> Option<u32> {
        Some(self.th)
    }

    fn explain(&self, buffer: &View<'_>, vc: Label) -> Decision {
        let q = buffer.occupancy;
        Decision {
            rule: "Q is above Th, and M_j above k Q times its share",
            threshold: Some(self.th.into()),
            share: Some(self.k * f64::from(q) * self.queues.arbiter.part(vc.into())),
            held: Some(self.queues.of(vc, q)),
            ..Decision::default()
        }
    }

    fn follower(&mut self) -> Option<&mut dyn CellFollower> {
        Some(&mut self.queues)
    }
}

#[cfg(any(test, feature = "samples"))]
pub(super) fn sample(capacity: u32) -> Config {
    Config { minimum_share: PerVc::Same(0.2), threshold: (capacity.saturating_mul(4) / 5).into(), k: k() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::bench::Bench;

    fn config(shares: &[(&str, f64)]) -> Config {
        let shares = shares.iter().map(|&(name, share)| (name.to_string(), share)).collect();
        Config { minimum_share: PerVc::ByName(shares), threshold: 4.into(), k: 1.0 }
    }

    #[test]
    fn under_weighted_virtual_queuing_a_minimum_share_entitles_a_vc_to_more_of_the_queue() {
        let mut bench = Bench::new(&config(&[("vc0", 0.5), ("default", 0.0)]), 100, 2);
        bench.offer_frame(0, 9);
        bench.offer_frame(1, 3);
        // Q = 12. VC 0 gets 3/4 of the link and of the queue, and VC 1 gets 1/4.
        bench.offer_frame(1, 1);
        assert_eq!(bench.virtual_queues(), [9, 4], "the VC is exactly at its share of 3 cells");
        bench.offer_frame(1, 1);
        assert_eq!(bench.virtual_queues(), [9, 4], "the VC is above its share of 13/4 cells");
        bench.offer_frame(0, 4);
        assert_eq!(bench.virtual_queues(), [13, 4], "the VC is below its share of 39/4 cells");
        bench.offer_frame(0, 4);
        assert_eq!(bench.virtual_queues(), [13, 4], "the VC is above its share of 51/4 cells");
    }

    #[test]
    fn weighted_virtual_queuing_serves_virtual_queues_in_proportion_to_minimum_shares() {
        let mut bench = Bench::new(&config(&[("vc0", 0.5), ("default", 0.0)]), 100, 2);
        bench.offer_frame(1, 8);
        bench.offer_frame(0, 8);
        bench.take(8);
        assert_eq!(bench.port.per_vc().raw, [8, 0], "the FIFO has sent all cells of VC 1");
        // Every other turn goes to VC 0, because of its minimum share. The turns between them go to VCs 1, 0, 1 and 0,
        // round robin.
        assert_eq!(bench.virtual_queues(), [2, 6]);
    }

    #[test]
    fn weighted_virtual_queuing_refuses_minimum_shares_whose_sum_exceeds_the_link_rate() {
        assert_eq!(config(&[("default", -0.1)]).check(Some(10), &[])[0].key, "minimum_share.default");
        assert_eq!(config(&[("default", 0.6)]).check(Some(10), &["vc0", "vc1"])[0].key, "minimum_share");
        assert!(config(&[("default", 0.5)]).check(Some(10), &["vc0", "vc1"]).is_empty());
    }
}
