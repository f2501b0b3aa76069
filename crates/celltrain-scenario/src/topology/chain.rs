//! Switches in a row. Long connections cross all links between switches, and each cross connection crosses one of these
//! links.
//!
//! Source: `docs/mechanisms.md` 7 (Chiussi, Xia and Kumar; Li, Siu, Tzeng, Ikeda and Suzuki).

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::index::{LinkIndex, NodeIndex};
use celltrain_core::network::{Graph, NodeKind};
use celltrain_core::units::{BitRate, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::links::{check_delay, check_rate, oc3};
use super::{Configure, Congests, Layout, Route, Size};
use crate::scope::Scope;

/// A chain of switches, also called a parking lot: m + 1 switches with m links between them, long connections that
/// cross all m links, and c cross connections on each link that cross no other link between switches. Nodes are `sw1`
/// to `sw(m+1)`, `long-source1`, `long-destination1`, `cross-source1`, `cross-destination1` and so on. Flows are
/// `long1` and so on, then `cross1` and so on, link by link: the flows that cross only the first link are `cross1` to
/// `crossC`, where C = `cross`. The port `bottleneck` is `sw1->sw2`.
///
/// Source: `docs/mechanisms.md` 7 (Chiussi, Xia and Kumar; Li, Siu, Tzeng, Ikeda and Suzuki).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Chain")]
pub struct Config {
    /// m: number of links between switches in the row.
    #[schemars(range(min = 1, max = 10_000))]
    pub hops: u32,
    /// Number of connections that cross all links between switches.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100_000))]
    pub long: u32,
    /// c: number of connections on each link between switches that cross no other link between switches. They enter at
    /// one switch and leave at the next switch.
    #[schemars(range(min = 0, max = 100_000))]
    pub cross: u32,
    /// Rate of every link between switches.
    #[serde(default = "oc3")]
    pub link_rate: BitRate,
    /// Propagation delay of every link between switches, one way.
    pub link_delay: Duration,
    /// Rate of every link between a host and its switch. Default: `link_rate`.
    #[serde(default)]
    pub access_rate: Option<BitRate>,
    /// Propagation delay of every link between a host and its switch, one way. Default: `link_delay`.
    #[serde(default)]
    pub access_delay: Option<Duration>,
}

fn one() -> u32 {
    1
}

impl Configure for Config {
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "no overflow: small multiples of 10^5 are multiplied by at most 10^4"
    )]
    fn size(&self) -> Size {
        let [hops, long, cross] = [self.hops, self.long, self.cross].map(u64::from);
        let flows = long + cross * hops;
        let crossings = long * (hops + 2) + 3 * (flows - long);
        Size { key: ("cross", cross), nodes: hops + 1 + 2 * flows, links: 2 * hops + 4 * flows, flows, crossings }
    }

    fn check(&self, scope: &mut Scope<'_>) -> Result<Option<Layout>, Interrupted> {
        check_rate("link_rate", self.link_rate, scope);
        check_delay("link_delay", self.link_delay, scope);
        if let Some(rate) = self.access_rate {
            check_rate("access_rate", rate, scope);
        }
        if let Some(delay) = self.access_delay {
            check_delay("access_delay", delay, scope);
        }
        Ok(None)
    }

    #[expect(clippy::arithmetic_side_effects, reason = "no overflow: a chain has at most 10,001 switches")]
    fn lay_out(&self, token: &CancellationToken<'_>) -> Result<Layout, Interrupted> {
        let access_rate = self.access_rate.unwrap_or(self.link_rate);
        let access_delay = self.access_delay.unwrap_or(self.link_delay);
        let mut graph = Graph::default();
        let switches: Vec<NodeIndex> =
            (1..=self.hops + 1).map(|i| graph.add_node(format!("sw{i}"), NodeKind::Switch)).collect();
        let trunks: Vec<LinkIndex> =
            switches.windows(2).map(|pair| graph.connect(pair[0], pair[1], self.link_rate, self.link_delay)).collect();
        let hops = trunks.len();
        let mut flows = Vec::new();
        let mut flow = |kind: &str, number: u32, first: usize, last: usize| {
            token.tick(last - first)?;
            let source = graph.add_node(format!("{kind}-source{number}"), NodeKind::Host);
            let destination = graph.add_node(format!("{kind}-destination{number}"), NodeKind::Host);
            let mut data = vec![graph.connect(source, switches[first], access_rate, access_delay)];
            data.extend_from_slice(&trunks[first..last]);
            data.push(graph.connect(switches[last], destination, access_rate, access_delay));
            flows.push(Route::there_and_back(format!("{kind}{number}"), data));
            Ok(())
        };
        for number in 1..=self.long {
            flow("long", number, 0, hops)?;
        }
        let entries = (0..hops).flat_map(|hop| std::iter::repeat_n(hop, self.cross as usize));
        for (hop, number) in entries.zip(1..) {
            flow("cross", number, hop, hop + 1)?;
        }
        Ok(Layout { graph, flows, bottleneck: trunks[0] })
    }

    fn congests(&self) -> Congests {
        Congests::SharedLinks
    }
}

#[cfg(test)]
pub(super) fn sample() -> Config {
    let [link_delay, access_delay] = [100, 5].map(Duration::from_microseconds);
    let access_rate = Some(BitRate::from_bits_per_second(622_080_000));
    Config { hops: 3, long: 2, cross: 2, link_rate: oc3(), link_delay, access_rate, access_delay: Some(access_delay) }
}
