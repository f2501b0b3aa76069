//! A topology of groups of sources. The VCs of each group merge into one VC.
//!
//! Source: ATM Forum 97-0831, Figure 6; `docs/mechanisms.md` 7.

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::network::{Graph, NodeKind};
use celltrain_core::units::{BitRate, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::links::{check_delay, check_rate, oc3};
use super::{Configure, Layout, Route, Size};
use crate::scope::Scope;

/// Groups of sources. Each group sends to a local switch, which merges the VCs of the group into one VC without
/// interleaving frames. The merged VCs share the link between two backbone switches, and each merged VC ends at its own
/// destination. Nodes are `source1`, `local1`, `sw1`, `sw2`, `destination1` and so on. Flows are `tcp1` and so on,
/// merged VCs are `vc1` and so on. The port `bottleneck` is `sw1->sw2`.
///
/// Source: ATM Forum 97-0831, Figure 6.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "VcMerge")]
pub struct Config {
    /// Number of merged VCs. Each merged VC has its own local switch and destination.
    #[schemars(range(min = 1, max = 100_000))]
    pub vcs: u32,
    /// Number of sources whose VCs merge into each merged VC. Each source has its own connection.
    #[schemars(range(min = 1, max = 256))]
    pub sources_per_vc: u32,
    /// Rate of every link.
    #[serde(default = "oc3")]
    pub link_rate: BitRate,
    /// Propagation delay of each of the three links on a path after the local switch, one way.
    pub link_delay: Duration,
    /// Propagation delay from a source to its local switch, one way.
    #[serde(default)]
    pub access_delay: Duration,
}

impl Configure for Config {
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "no overflow: small multiples of 10^5 are multiplied by at most 256"
    )]
    fn size(&self) -> Size {
        let vcs = u64::from(self.vcs);
        let flows = vcs * u64::from(self.sources_per_vc);
        let [nodes, links] = [2 + 2 * vcs + flows, 2 + 4 * vcs + 2 * flows];
        Size { key: ("vcs", vcs), nodes, links, flows, crossings: 4 * flows }
    }

    fn check(&self, scope: &mut Scope<'_>) -> Result<Option<Layout>, Interrupted> {
        check_rate("link_rate", self.link_rate, scope);
        check_delay("link_delay", self.link_delay, scope);
        check_delay("access_delay", self.access_delay, scope);
        Ok(None)
    }

    #[expect(clippy::arithmetic_side_effects, reason = "no overflow: these are indices of lists in memory")]
    fn lay_out(&self, token: &CancellationToken<'_>) -> Result<Layout, Interrupted> {
        let Self { link_rate: rate, link_delay: delay, .. } = *self;
        let mut graph = Graph::default();
        let sw1 = graph.add_node("sw1", NodeKind::Switch);
        let sw2 = graph.add_node("sw2", NodeKind::Switch);
        let bottleneck = graph.connect(sw1, sw2, rate, delay);
        let mut flows: Vec<Route> = Vec::new();
        for vc in 1..=self.vcs {
            let local = graph.add_node(format!("local{vc}"), NodeKind::Switch);
            let up = graph.connect(local, sw1, rate, delay);
            let destination = graph.add_node(format!("destination{vc}"), NodeKind::Host);
            let down = graph.connect(sw2, destination, rate, delay);
            for _ in 0..self.sources_per_vc {
                token.tick(1)?;
                let number = flows.len() + 1;
                let source = graph.add_node(format!("source{number}"), NodeKind::Host);
                let data = vec![graph.connect(source, local, rate, self.access_delay), up, bottleneck, down];
                let vc = Some(format!("vc{vc}"));
                flows.push(Route { vc, ..Route::there_and_back(format!("tcp{number}"), data) });
            }
        }
        Ok(Layout { graph, flows, bottleneck })
    }
}

#[cfg(test)]
pub(super) fn sample() -> Config {
    let [link_delay, access_delay] = [5, 0].map(Duration::from_microseconds);
    Config { vcs: 2, sources_per_vc: 3, link_rate: oc3(), link_delay, access_delay }
}
