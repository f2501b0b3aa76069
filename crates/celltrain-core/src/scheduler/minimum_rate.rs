//! Minimum rate: a queue for each VC, first served at minimum shares of the link, then round robin.
//!
//! Source: `docs/mechanisms.md` 2.8, variant (b), on real queues: minimum-rate credits are served first, and the excess
//! is shared round robin. Differences from the source: the source serves virtual queues this way
//! (`virtual_queuing_weighted`). This scheduler performs the service that they emulate, but has no discard rule.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::round_robin::Arbitrated;
use super::{Configure, Service, VcKind};
use crate::arbiter::{MINIMUM_SHARE, MinimumShares, check_shares, check_sum};
use crate::error::Fault;
use crate::policy::PerVc;

/// Minimum rate: every VC has its own queue and gets its minimum share of the link while it has cells waiting; the rest
/// of the link is shared round robin.
///
/// Source: Wu and others 1997 on UBR+, as far as its abstract describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "MinimumRate")]
pub struct Config {
    /// `m_j`: the VCs' minimum shares of the link, a number or a table keyed by VC name; their sum is at most 1.
    #[schemars(extend("x-expect" = "a share of the link (0 to 1), or a table of shares keyed by VC name"))]
    pub minimum_share: PerVc,
}

impl Configure for Config {
    fn check(&self) -> Vec<Fault> {
        check_shares(&self.minimum_share)
    }

    fn check_vcs(&self, vcs: &[&str]) -> Vec<Fault> {
        check_sum(&self.minimum_share, vcs)
    }

    fn per_vc(&self) -> Vec<(&'static str, &PerVc)> {
        vec![(MINIMUM_SHARE, &self.minimum_share)]
    }

    fn build(&self, vcs: &[VcKind<'_>]) -> Option<Service> {
        let names: Vec<&str> = vcs.iter().map(|vc| vc.name).collect();
        let arbiter = MinimumShares::new(&self.minimum_share.resolve(&names));
        Some(Service::new(vcs.len(), (0..vcs.len()).collect(), Arbitrated { arbiter }))
    }
}

#[cfg(test)]
pub(super) fn sample() -> Config {
    Config { minimum_share: PerVc::from([("vc1", 0.5), ("vc2-3", 0.1), ("default", 0.0)]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::Class;
    use crate::scheduler::conformance::{self, sent};

    #[test]
    fn minimum_shares_are_served_first_and_the_rest_of_the_link_is_shared_round_robin() {
        let mut queues = conformance::queues(&sample(), &[Class::Ubr; 2]);
        assert_eq!(sent(&mut queues, &[0, 0, 0, 0, 0, 1, 1, 1, 1, 1], 8), [1, 0, 1, 1, 1, 0, 1, 0]);
    }

    #[test]
    fn minimum_shares_whose_sum_exceeds_the_link_rate_are_refused() {
        assert_eq!(Config { minimum_share: PerVc::Same(2.0) }.check()[0].key, "minimum_share");
        assert_eq!(Config { minimum_share: PerVc::Same(0.5) }.check_vcs(&["a", "b", "c"])[0].value, "1.5");
        assert!(Config { minimum_share: PerVc::Same(0.1) }.check_vcs(&["a"; 10]).is_empty(), "tenths add up");
    }
}
