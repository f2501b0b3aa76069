//! IP networks on both sides of an ATM network.
//!
//! Source: draft-jagan-e2e-traf-mgmt-00, Figure 1; `docs/mechanisms.md` 7.

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::network::{Graph, NodeKind};
use celltrain_core::units::{BitRate, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::links::{check_delay, check_rate, oc3};
use super::{Configure, Layout, Route, Size};
use crate::scope::Scope;

/// N sources, each behind an IP/ATM edge device, send through two switches to N destinations, each behind an edge
/// device. Nodes are `source1`, `edge1`, `sw1`, `sw2`, `far-edge1`, `destination1` and so on. Flows are `tcp1` and so
/// on, first all flows from sources, then all flows from destinations. The port `bottleneck` is `sw1->sw2`.
///
/// Source: draft-jagan-e2e-traf-mgmt-00, Figure 1; `docs/mechanisms.md` 7.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Internetwork")]
pub struct Config {
    /// N: number of sources. Each source has its own destination and connection.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub sources: u32,
    /// Rate of every link.
    #[serde(default = "oc3")]
    pub link_rate: BitRate,
    /// Propagation delay between a host and its edge device, one way.
    pub ip_delay: Duration,
    /// Propagation delay between the switches, one way. Links between switches and edge devices have no delay.
    pub atm_delay: Duration,
    /// True if every destination also sends to its source.
    #[serde(default)]
    pub bidirectional: bool,
}

impl Configure for Config {
    #[expect(clippy::arithmetic_side_effects, reason = "no overflow: the values are small multiples of 10^6")]
    fn size(&self) -> Size {
        let sources = u64::from(self.sources);
        let flows = if self.bidirectional { 2 * sources } else { sources };
        let [nodes, links] = [2 + 4 * sources, 2 + 8 * sources];
        Size { key: ("sources", sources), nodes, links, flows, crossings: 5 * flows }
    }

    fn check(&self, scope: &mut Scope<'_>) -> Result<Option<Layout>, Interrupted> {
        check_rate("link_rate", self.link_rate, scope);
        check_delay("ip_delay", self.ip_delay, scope);
        check_delay("atm_delay", self.atm_delay, scope);
        Ok(None)
    }

    #[expect(
        clippy::arithmetic_side_effects,
        reason = "no overflow: there are two connections for each of at most 10^6 sources"
    )]
    fn lay_out(&self, token: &CancellationToken<'_>) -> Result<Layout, Interrupted> {
        let Self { link_rate: rate, ip_delay, atm_delay, .. } = *self;
        let mut graph = Graph::default();
        let sw1 = graph.add_node("sw1", NodeKind::Switch);
        let sw2 = graph.add_node("sw2", NodeKind::Switch);
        let bottleneck = graph.connect(sw1, sw2, rate, atm_delay);
        let mut flows = Vec::new();
        for i in 1..=self.sources {
            token.tick(1)?;
            let [source, edge, far_edge, destination] = [
                ("source", NodeKind::Host),
                ("edge", NodeKind::EdgeDevice),
                ("far-edge", NodeKind::EdgeDevice),
                ("destination", NodeKind::Host),
            ]
            .map(|(name, kind)| graph.add_node(format!("{name}{i}"), kind));
            let none = Duration::default();
            let links =
                [(source, edge, ip_delay), (edge, sw1, none), (sw2, far_edge, none), (far_edge, destination, ip_delay)];
            let [a, b, c, d] = links.map(|(from, to, delay)| graph.connect(from, to, rate, delay));
            flows.push(Route::there_and_back(format!("tcp{i}"), vec![a, b, bottleneck, c, d]));
        }
        if self.bidirectional {
            let back = |(there, number): (&Route, u32)| {
                let name = format!("tcp{}", self.sources + number);
                Route { name, data: there.acks.clone(), acks: there.data.clone(), ..there.clone() }
            };
            let others = token.map(flows.iter().zip(1..), back)?;
            flows.extend(others);
        }
        Ok(Layout { graph, flows, bottleneck })
    }
}

#[cfg(test)]
pub(super) fn sample() -> Config {
    let [ip_delay, atm_delay] = [5, 1000].map(Duration::from_microseconds);
    Config { sources: 2, link_rate: oc3(), ip_delay, atm_delay, bidirectional: true }
}
