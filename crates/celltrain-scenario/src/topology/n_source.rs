//! A topology of N sources, two switches and N destinations.
//!
//! Source: ATM Forum 96-1269, Figure 2; `docs/mechanisms.md` 7.

use std::collections::BTreeMap;

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::index::LinkIndex;
use celltrain_core::network::{Graph, NodeKind};
use celltrain_core::units::{BitRate, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::links::{Access, check_delay, check_rate, oc3};
use super::{Configure, Layout, Route, Size};
use crate::scope::Scope;

/// N sources send through two switches to N destinations. All links are alike, except that the links of individual
/// sources may differ. Nodes are `source1`, `sw1`, `sw2`, `destination1` and so on. Flows are `tcp1` and so on. The
/// port `bottleneck` is `sw1->sw2`.
///
/// Source: ATM Forum 96-1269, Figure 2.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NSource")]
pub struct Config {
    /// N: number of sources. Each source has its own destination and connection.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub sources: u32,
    /// Rate of every link.
    #[serde(default = "oc3")]
    pub link_rate: BitRate,
    /// Propagation delay of every link, one way; each connection crosses three links.
    pub link_delay: Duration,
    /// Rates of the links between individual sources and `sw1`. A key is the name of a source, a range such as
    /// `source1-5`, or `default`. Sources without an entry use `link_rate`.
    #[serde(default)]
    pub access_rates: BTreeMap<String, BitRate>,
    /// One-way propagation delays of the links between individual sources and `sw1`, with keys as in `access_rates`.
    /// Different delays give unequal round-trip times. Sources without an entry use `link_delay`.
    #[serde(default)]
    pub access_delays: BTreeMap<String, Duration>,
}

impl Config {
    fn access(&self) -> Access<'_> {
        Access { rates: &self.access_rates, delays: &self.access_delays }
    }
}

impl Configure for Config {
    #[expect(clippy::arithmetic_side_effects, reason = "no overflow: the values are small multiples of 10^6")]
    fn size(&self) -> Size {
        let flows = u64::from(self.sources);
        Size { key: ("sources", flows), nodes: 2 + 2 * flows, links: 2 + 4 * flows, flows, crossings: 3 * flows }
    }

    fn check(&self, scope: &mut Scope<'_>) -> Result<Option<Layout>, Interrupted> {
        check_rate("link_rate", self.link_rate, scope);
        check_delay("link_delay", self.link_delay, scope);
        self.access().check("source", self.sources, scope);
        Ok(None)
    }

    fn lay_out(&self, token: &CancellationToken<'_>) -> Result<Layout, Interrupted> {
        let Self { link_rate: rate, link_delay: delay, .. } = *self;
        let mut graph = Graph::default();
        let sw1 = graph.add_node("sw1", NodeKind::Switch);
        let sw2 = graph.add_node("sw2", NodeKind::Switch);
        let bottleneck = graph.connect(sw1, sw2, rate, delay);
        let mut first = Vec::with_capacity(self.sources as usize);
        for i in 1..=self.sources {
            token.tick(self.access().len().saturating_add(1))?;
            let name = format!("source{i}");
            let (rate, delay) = self.access().of(&name, rate, delay);
            let source = graph.add_node(name, NodeKind::Host);
            first.push(graph.connect(source, sw1, rate, delay));
        }
        let path = |(access, i): (LinkIndex, u32)| {
            let destination = graph.add_node(format!("destination{i}"), NodeKind::Host);
            let last = graph.connect(sw2, destination, rate, delay);
            Route::there_and_back(format!("tcp{i}"), vec![access, bottleneck, last])
        };
        let flows = token.map(first.into_iter().zip(1..), path)?;
        Ok(Layout { graph, flows, bottleneck })
    }
}

#[cfg(test)]
pub(super) fn sample() -> Config {
    Config {
        sources: 3,
        link_rate: oc3(),
        link_delay: Duration::from_microseconds(5),
        access_rates: BTreeMap::from([("source2-7".to_string(), BitRate::from_bits_per_second(10_000_000))]),
        access_delays: BTreeMap::from([("default".to_string(), Duration::from_milliseconds(1))]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::search::Search;

    #[test]
    fn the_paths_of_the_n_source_topology_are_shortest_paths() {
        let Layout { graph, flows, .. } = sample().lay_out(&CancellationToken::never()).unwrap();
        let mut search = Search::new(&graph);
        for path in flows.iter().flat_map(|flow| [&flow.data, &flow.acks]) {
            let [from, to] = [graph.links[path[0]].from, graph.links[path[2]].to];
            assert_eq!(search.paths(from, &[to]), [Some(path.clone())]);
        }
    }
}
