//! A general network of hosts, switches, edge devices, links and flows.
//!
//! Source: this project. A flow without a given path takes a path with the fewest links.

mod check;

use std::collections::BTreeMap;

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::index::{LinkIndex, NodeIndex};
use celltrain_core::network::{Graph, NodeKind};
use celltrain_core::units::{BitRate, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use typed_index_collections::{TiVec, ti_vec};

use super::links::oc3;
use super::search::Search;
use super::{Configure, Congests, Layout, Route, Size};
use crate::fault::Warning;
use crate::limits::MAX_CROSSINGS;
use crate::scope::Scope;

/// A general network: hosts send and receive, switches forward, edge devices connect hosts to the ATM network, and
/// links join two nodes in both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "GeneralNetwork")]
pub struct Config {
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// Names of the switches.
    pub switches: Vec<String>,
    /// Names of the IP/ATM edge devices. An edge device receives whole packets from hosts and sends the packets as
    /// cells. On a path, an edge device can only be the first or the last node between the hosts.
    #[serde(default)]
    pub edge_devices: Vec<String>,
    /// Links of the network. Each link joins two nodes in both directions.
    #[schemars(length(max = 100_000))]
    pub links: Vec<LinkConfig>,
    /// Connections of the network.
    pub flows: Vec<FlowConfig>,
    /// Port at which efficiency is measured, for example `sw1->sw2`. Default: the port with the most connections
    /// relative to its rate. A table `[port.bottleneck]` applies to this port.
    #[serde(default)]
    pub bottleneck: Option<String>,
}

/// A link between two nodes. Its two directions have the same rate and delay unless specified otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// The two nodes that the link joins.
    pub between: (String, String),
    /// Rate of the link, in each direction.
    #[serde(default = "oc3")]
    pub rate: BitRate,
    /// Propagation delay of the link, in each direction.
    pub delay: Duration,
    /// Rate in the direction from the second node to the first node. Default: `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_back: Option<BitRate>,
    /// Propagation delay in the direction from the second node to the first node. Default: `delay`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_back: Option<Duration>,
}

/// A flow: a TCP connection with endless data, unless its table under `flow` specifies other traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowConfig {
    /// Name of the flow in results. Default: `tcp1`, `tcp2` and so on, by the position in the list.
    #[serde(default)]
    pub name: Option<String>,
    /// Host that sends the flow's data.
    pub from: String,
    /// Host that receives the flow's data.
    pub to: String,
    /// Nodes that the flow's data crosses, including the two hosts. Default: a path with the fewest links.
    /// Acknowledgements return the same way.
    #[serde(default)]
    pub path: Option<Vec<String>>,
    /// Time at which the flow starts to send.
    #[serde(default)]
    pub start: Duration,
    /// Name of the VC that carries the flow's data. Default: a separate VC with the flow's name. All flows of a VC must
    /// end at the same host. Flows from the same host share the VC. The VCs of flows from different hosts merge where
    /// their paths meet, without interleaving frames.
    #[serde(default)]
    pub vc: Option<String>,
}

impl FlowConfig {
    /// Returns the flow's name. A flow without a name gets a name derived from its position in the list.
    fn name_at(&self, place: usize) -> String {
        self.name.clone().unwrap_or_else(|| format!("tcp{}", place.saturating_add(1)))
    }
}

impl Configure for Config {
    #[expect(clippy::arithmetic_side_effects, reason = "no overflow: these are lengths of lists in memory")]
    fn size(&self) -> Size {
        let nodes = (self.hosts.len() + self.switches.len() + self.edge_devices.len()) as u64;
        let [links, flows] = [2 * self.links.len(), self.flows.len()].map(|number| number as u64);
        Size { key: ("flows", flows), nodes, links, flows, crossings: flows }
    }

    fn check(&self, scope: &mut Scope<'_>) -> Result<Option<Layout>, Interrupted> {
        check::check(self, scope)
    }

    fn lay_out(&self, token: &CancellationToken<'_>) -> Result<Layout, Interrupted> {
        let nodes = self.nodes_by_name();
        let graph = self.graph(&nodes);
        let every_flow: Vec<usize> = (0..self.flows.len()).collect();
        let paths =
            self.data_paths(&graph, &nodes, &every_flow, token)?.expect("the check refuses paths with too many links");
        let paths = paths.into_iter().map(|path| path.expect("the check refuses a flow without a path")).collect();
        Ok(self.layout(graph, paths))
    }

    fn congests(&self) -> Congests {
        Congests::Everywhere
    }

    fn without_flows(&self, scope: &mut Scope<'_>) {
        scope.at("flows").refuse("is empty; a run needs at least one flow");
    }

    fn check_layout(&self, layout: &Layout, scope: &mut Scope<'_>) {
        check::edge_devices(layout, scope);
    }

    fn warnings(&self, layout: &Layout) -> Vec<Warning> {
        check::islands(layout)
    }
}

/// Indices and kinds of nodes, by the name of the node.
type Nodes<'a> = BTreeMap<&'a str, (NodeIndex, NodeKind)>;

impl Config {
    /// Returns for each kind of node the key of its list, and the names of the nodes. The indices of nodes are in this
    /// order.
    fn nodes(&self) -> [(&'static str, &[String], NodeKind); 3] {
        [
            ("hosts", &self.hosts, NodeKind::Host),
            ("switches", &self.switches, NodeKind::Switch),
            ("edge_devices", &self.edge_devices, NodeKind::EdgeDevice),
        ]
    }

    fn nodes_by_name(&self) -> Nodes<'_> {
        let named = self.nodes().into_iter().flat_map(|(_, names, kind)| names.iter().map(move |name| (name, kind)));
        let mut nodes = Nodes::new();
        for (number, (name, kind)) in NodeIndex::counting().zip(named) {
            nodes.insert(name, (number, kind));
        }
        nodes
    }

    /// Creates the nodes and links of the network. A link of the scenario becomes two links, one for each direction.
    fn graph(&self, nodes: &Nodes<'_>) -> Graph {
        let mut graph = Graph::default();
        for (_, names, kind) in self.nodes() {
            for name in names {
                graph.add_node(name, kind);
            }
        }
        for link in &self.links {
            let [a, b] = [&link.between.0, &link.between.1].map(|name| nodes[name.as_str()].0);
            let way_back = (link.rate_back.unwrap_or(link.rate), link.delay_back.unwrap_or(link.delay));
            graph.connect_unlike(a, b, [(link.rate, link.delay), way_back]);
        }
        graph
    }

    /// Creates the layout of the network, with the given paths for the data of flows.
    fn layout(&self, graph: Graph, paths: Vec<Vec<LinkIndex>>) -> Layout {
        let route = |((flow, data), place): ((&FlowConfig, Vec<LinkIndex>), usize)| Route {
            start: flow.start,
            vc: flow.vc.clone(),
            ..Route::there_and_back(flow.name_at(place), data)
        };
        let flows: Vec<Route> = self.flows.iter().zip(paths).zip(0..).map(route).collect();
        let named = self.bottleneck.as_ref().and_then(|name| graph.links.position(|link| link.name == *name));
        let bottleneck = match named {
            Some(link) => link,
            None => most_loaded(&graph, &flows),
        };
        Layout { graph, flows, bottleneck }
    }

    /// Returns the paths for the data of some flows. A flow has no path if a link on its given path does not exist, or
    /// if its hosts are not connected. Returns `None` if all paths together cross more than [`MAX_CROSSINGS`] links.
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "no overflow: paths are no longer than the network, and counting ends at the limit"
    )]
    fn data_paths(
        &self,
        graph: &Graph,
        nodes: &Nodes<'_>,
        flows: &[usize],
        token: &CancellationToken<'_>,
    ) -> Result<Option<Vec<Option<Vec<LinkIndex>>>>, Interrupted> {
        let index = |name: &str| nodes[name].0;
        let mut search = Search::new(graph);
        let by_ends: BTreeMap<(NodeIndex, NodeIndex), LinkIndex> =
            graph.links.iter_enumerated().map(|(number, link)| ((link.from, link.to), number)).collect();
        let mut paths: Vec<Option<Vec<LinkIndex>>> = vec![None; flows.len()];
        // For each start node of a search, the flows that start there: their positions in `flows` and their
        // destinations.
        let mut searches: BTreeMap<NodeIndex, (Vec<usize>, Vec<NodeIndex>)> = BTreeMap::new();
        for (place, flow) in flows.iter().map(|&flow| &self.flows[flow]).enumerate() {
            token.tick(1)?;
            if let Some(nodes) = &flow.path {
                let hop = |pair: &[String]| by_ends.get(&(index(&pair[0]), index(&pair[1]))).copied();
                paths[place] = nodes.windows(2).map(hop).collect();
            } else {
                let from = index(&flow.from);
                let search = searches.entry(search.only_switch(from).unwrap_or(from)).or_default();
                search.0.push(place);
                search.1.push(index(&flow.to));
            }
        }
        let length = |path: &Option<Vec<LinkIndex>>| path.as_ref().map_or(0, Vec::len);
        let mut crossings: usize = paths.iter().map(length).sum();
        for (start, (places, to)) in searches {
            // In the worst case, a search visits every link.
            token.tick((graph.links.len() / 4).saturating_add(places.len()))?;
            for (place, path) in places.into_iter().zip(search.paths(start, &to)) {
                let from = index(&self.flows[flows[place]].from);
                let first = (from != start).then(|| search.leaving(from)[0].0);
                paths[place] = path.map(|path| first.into_iter().chain(path).collect());
                crossings += length(&paths[place]);
            }
            if crossings > MAX_CROSSINGS {
                return Ok(None);
            }
        }
        Ok(Some(paths))
    }
}

/// Returns the link with the most connections relative to its rate. Of several equal links, a link that leaves a switch
/// is preferred, and then the first link.
#[expect(clippy::arithmetic_side_effects, reason = "no overflow: a product of two 64-bit numbers fits in 128 bits")]
fn most_loaded(graph: &Graph, flows: &[Route]) -> LinkIndex {
    let mut crossing: TiVec<LinkIndex, u64> = ti_vec![0; graph.links.len()];
    for flow in flows {
        for &link in &flow.data {
            crossing[link] += 1;
        }
    }
    let load = |link: LinkIndex| {
        let from_switch = graph.nodes[graph.links[link].from].kind == NodeKind::Switch;
        // Compares the numbers of connections divided by the rates as fractions, without a division.
        (u128::from(crossing[link]), u128::from(graph.links[link].rate.bits_per_second), from_switch)
    };
    let mut best = LinkIndex::default();
    for link in graph.links.keys().skip(1) {
        let ((n, rate, switch), (best_n, best_rate, best_switch)) = (load(link), load(best));
        let (this, other) = (n * best_rate, best_n * rate);
        if this > other || (this == other && switch && !best_switch) {
            best = link;
        }
    }
    best
}

#[cfg(test)]
pub(super) fn sample() -> Config {
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    let link = |a: &str, b: &str| LinkConfig {
        between: (a.to_string(), b.to_string()),
        rate: oc3(),
        delay: Duration::from_microseconds(5),
        rate_back: None,
        delay_back: None,
    };
    let flow = |from: &str, to: &str| FlowConfig {
        name: None,
        from: from.to_string(),
        to: to.to_string(),
        path: None,
        start: Duration::default(),
        vc: None,
    };
    Config {
        hosts: names(&["a", "b", "c"]),
        switches: names(&["s", "t"]),
        edge_devices: names(&["e"]),
        links: vec![link("a", "s"), link("b", "t"), link("s", "t"), link("c", "e"), link("e", "t")],
        flows: vec![flow("a", "b"), flow("c", "a"), flow("b", "c")],
        bottleneck: None,
    }
}
