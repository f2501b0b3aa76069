//! Hosts around one switch.
//!
//! Source: this project.

use std::collections::BTreeMap;

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::network::{Graph, NodeKind};
use celltrain_core::units::{BitRate, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::links::{Access, check_delay, check_rate, oc3};
use super::{Configure, Congests, Layout, Route, Size};
use crate::scope::Scope;

/// A star: hosts around one switch. Nodes are `sw`, `host1` and so on. Flows are `tcp1` and so on. The port
/// `bottleneck` is `sw->host1`.
///
/// Source: this project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Star")]
pub struct Config {
    /// n: number of hosts.
    #[schemars(range(min = 2, max = 1_000_000))]
    pub hosts: u32,
    /// Pattern of the connections between hosts.
    #[serde(default)]
    pub pattern: Pattern,
    /// Rate of every link.
    #[serde(default = "oc3")]
    pub link_rate: BitRate,
    /// Propagation delay of every link, one way. Each connection crosses two links.
    pub link_delay: Duration,
    /// Rates of the links of individual hosts. A key is the name of a host, a range such as `host2-5`, or `default`.
    /// Hosts without an entry use `link_rate`.
    #[serde(default)]
    pub access_rates: BTreeMap<String, BitRate>,
    /// Propagation delays of the links of individual hosts, one way, with keys as in `access_rates`. Hosts without an
    /// entry use `link_delay`.
    #[serde(default)]
    pub access_delays: BTreeMap<String, Duration>,
}

/// Pattern of the connections between the hosts of a star.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "StarPattern")]
pub enum Pattern {
    /// All other hosts send to `host1`, so n - 1 connections share one port.
    #[default]
    ToOne,
    /// Each host sends to the next host, and the last host sends to `host1`. At every port, data and acknowledgements
    /// meet.
    Ring,
    /// Each host sends to every other host, so n - 1 connections share each port.
    AllPairs,
    /// No connections. Only requests and queries cross the network.
    None,
}

impl Pattern {
    /// Returns the number of flows among `n` hosts.
    fn flows(self, n: u64) -> u64 {
        match self {
            Pattern::ToOne => n.saturating_sub(1),
            Pattern::Ring => n,
            Pattern::AllPairs => n.saturating_mul(n.saturating_sub(1)),
            Pattern::None => 0,
        }
    }

    /// Returns the sender and the receiver of each flow among `n` hosts, which are numbered from 0.
    #[expect(clippy::arithmetic_side_effects, reason = "no underflow: a network has at least two hosts")]
    fn pairs(self, n: usize) -> Vec<(usize, usize)> {
        match self {
            Pattern::ToOne => (1..n).map(|from| (from, 0)).collect(),
            Pattern::Ring => (0..n).map(|from| (from, (from + 1) % n)).collect(),
            Pattern::AllPairs => {
                (0..n).flat_map(|from| (0..n).filter(move |&to| to != from).map(move |to| (from, to))).collect()
            }
            Pattern::None => Vec::new(),
        }
    }
}

impl Config {
    fn access(&self) -> Access<'_> {
        Access { rates: &self.access_rates, delays: &self.access_delays }
    }
}

impl Configure for Config {
    #[expect(clippy::arithmetic_side_effects, reason = "no overflow: the result is at most twice the square of 10^6")]
    fn size(&self) -> Size {
        let hosts = u64::from(self.hosts);
        let flows = self.pattern.flows(hosts);
        Size { key: ("hosts", hosts), nodes: 1 + hosts, links: 2 * hosts, flows, crossings: 2 * flows }
    }

    fn check(&self, scope: &mut Scope<'_>) -> Result<Option<Layout>, Interrupted> {
        check_rate("link_rate", self.link_rate, scope);
        check_delay("link_delay", self.link_delay, scope);
        self.access().check("host", self.hosts, scope);
        Ok(None)
    }

    fn lay_out(&self, token: &CancellationToken<'_>) -> Result<Layout, Interrupted> {
        let mut graph = Graph::default();
        let switch = graph.add_node("sw", NodeKind::Switch);
        let mut from_host = Vec::with_capacity(self.hosts as usize);
        for i in 1..=self.hosts {
            token.tick(self.access().len().saturating_add(1))?;
            let name = format!("host{i}");
            let (rate, delay) = self.access().of(&name, self.link_rate, self.link_delay);
            let host = graph.add_node(name, NodeKind::Host);
            from_host.push(graph.connect(host, switch, rate, delay));
        }
        let flow = |((from, to), number): ((usize, usize), usize)| {
            Route::there_and_back(format!("tcp{number}"), vec![from_host[from], Graph::way_back(from_host[to])])
        };
        let flows = token.map(self.pattern.pairs(self.hosts as usize).into_iter().zip(1..), flow)?;
        let to_the_first = Graph::way_back(from_host[0]);
        Ok(Layout { graph, flows, bottleneck: to_the_first })
    }

    fn congests(&self) -> Congests {
        Congests::SharedLinks
    }
}

#[cfg(test)]
pub(super) fn sample() -> Config {
    Config {
        hosts: 4,
        pattern: Pattern::AllPairs,
        link_rate: oc3(),
        link_delay: Duration::from_microseconds(5),
        access_rates: BTreeMap::new(),
        access_delays: BTreeMap::from([("host2".to_string(), Duration::from_milliseconds(1))]),
    }
}
