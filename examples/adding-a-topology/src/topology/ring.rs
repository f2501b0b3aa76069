//! A ring of switches. Every host sends to a host a fixed number of switches away.
//!
//! Source: this project.

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::network::{Graph, NodeKind};
use celltrain_core::units::{BitRate, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::links::{check_delay, check_rate, oc3};
use super::{Configure, Congests, Layout, Route, Size};
use crate::scope::Scope;

/// A ring: n switches, each with a host, which sends to the host h switches further on. Nodes are `sw1`, `host1` and so on;
/// flows are `tcp1` and so on; the port `bottleneck` is `sw1->sw2`.
///
/// Source: this project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Ring")]
pub struct Config {
    /// n: switches.
    #[schemars(range(min = 3, max = 100_000))]
    pub switches: u32,
    /// h: links between switches that every connection crosses.
    #[schemars(range(min = 1, max = 100_000))]
    pub reach: u32,
    /// Rate of every link.
    #[serde(default = "oc3")]
    pub link_rate: BitRate,
    /// Propagation delay of every link, one way.
    pub link_delay: Duration,
}

impl Configure for Config {
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "no overflow: the values are products of two numbers up to 10^5"
    )]
    fn size(&self) -> Size {
        let [switches, reach] = [self.switches, self.reach].map(u64::from);
        Size {
            key: ("switches", switches),
            nodes: 2 * switches,
            links: 4 * switches,
            flows: switches,
            crossings: switches * (reach + 2),
        }
    }

    fn check(&self, scope: &mut Scope<'_>) -> Result<Option<Layout>, Interrupted> {
        if self.reach >= self.switches {
            let problem = format!("leads around the whole ring of {} switches; it must be smaller", self.switches);
            scope.at("reach").refuse_value(self.reach, problem);
        }
        check_rate("link_rate", self.link_rate, scope);
        check_delay("link_delay", self.link_delay, scope);
        Ok(None)
    }

    #[expect(clippy::arithmetic_side_effects, reason = "no overflow: these are indices of lists in memory")]
    fn lay_out(&self, token: &CancellationToken<'_>) -> Result<Layout, Interrupted> {
        let Self { link_rate: rate, link_delay: delay, .. } = *self;
        let (n, reach) = (self.switches as usize, self.reach as usize);
        let mut graph = Graph::default();
        let switches = token.map(1..=n, |i| graph.add_node(format!("sw{i}"), NodeKind::Switch))?;
        let trunks = token.map(0..n, |i| graph.connect(switches[i], switches[(i + 1) % n], rate, delay))?;
        let access = token.map(0..n, |i| {
            let host = graph.add_node(format!("host{}", i + 1), NodeKind::Host);
            graph.connect(host, switches[i], rate, delay)
        })?;
        let mut flows = Vec::with_capacity(n);
        for i in 0..n {
            token.tick(reach)?;
            let mut data = vec![access[i]];
            data.extend((i..i + reach).map(|hop| trunks[hop % n]));
            // The reverse link from the other host.
            data.push(Graph::way_back(access[(i + reach) % n]));
            flows.push(Route::there_and_back(format!("tcp{}", i + 1), data));
        }
        Ok(Layout { graph, flows, bottleneck: trunks[0] })
    }

    fn congests(&self) -> Congests {
        Congests::SharedLinks
    }
}

#[cfg(test)]
pub(super) fn sample() -> Config {
    Config { switches: 4, reach: 2, link_rate: oc3(), link_delay: Duration::from_microseconds(5) }
}

#[cfg(test)]
mod tests {
    use celltrain_core::index::LinkIndex;

    use super::*;
    use crate::fault::Faults;

    fn paths(ring: &Config) -> Vec<Vec<String>> {
        let Layout { graph, flows, .. } = ring.lay_out(&CancellationToken::never()).unwrap();
        let names = |links: &[LinkIndex]| links.iter().map(|&link| graph.links[link].name.clone()).collect();
        flows.iter().map(|flow| names(&flow.data)).collect()
    }

    #[test]
    fn the_reach_of_a_ring_sets_how_many_switches_away_the_destinations_are() {
        let paths = paths(&sample());
        assert_eq!(paths[0], ["host1->sw1", "sw1->sw2", "sw2->sw3", "sw3->host3"]);
        assert_eq!(paths[3], ["host4->sw4", "sw4->sw1", "sw1->sw2", "sw2->host2"]);
    }

    #[test]
    fn every_link_of_a_ring_carries_the_same_number_of_connections() {
        let paths = paths(&Config { switches: 7, reach: 3, ..sample() });
        for i in 1..=7 {
            let link = format!("sw{i}->sw{}", i % 7 + 1);
            assert_eq!(paths.iter().flatten().filter(|name| **name == link).count(), 3, "{link}");
        }
    }

    #[test]
    fn a_reach_setting_larger_than_the_ring_is_refused() {
        let faults = |reach| {
            let mut faults = Faults::default();
            let ring = Config { reach, ..sample() };
            ring.check(&mut Scope::root(&mut faults, &[], &CancellationToken::never())).unwrap();
            faults.count()
        };
        assert_eq!((faults(3), faults(4)), (0, 1));
    }
}
