//! From a scenario that passed its checks to the network the engines run.

use std::collections::BTreeMap;

use celltrain_core::network::{Flow, Graph, N_SOURCE_BOTTLENECK, Network, NodeKind, Vc, n_source, n_source_paths};
use celltrain_core::units::Duration;

use crate::scenario::{GeneralNetwork, PortConfig, Scenario, Topology};

/// A scenario's graph and the paths of its flows.
pub struct Layout {
    /// Nodes and links.
    pub graph: Graph,
    /// Flows in order.
    pub flows: Vec<Route>,
    /// Index of the link efficiency is measured at.
    pub bottleneck: usize,
}

/// One flow's way.
pub struct Route {
    /// Its name.
    pub name: String,
    /// Links of its data.
    pub data: Vec<usize>,
    /// Links of its acknowledgements.
    pub acks: Vec<usize>,
    /// When it starts.
    pub start: Duration,
}

/// The network of a scenario that passed its checks, to be run with `seed`.
pub fn network(scenario: &Scenario, seed: u64) -> Network {
    let mut layout = layout(&scenario.topology);
    for (index, link) in layout.graph.links.iter_mut().enumerate() {
        if layout.graph.nodes[link.from].kind == NodeKind::Host {
            continue;
        }
        if let Some(port) = port_of(scenario, &link.name, index == layout.bottleneck) {
            link.buffer = port.buffer.cells();
            link.policy = port.policy.clone();
        }
    }
    let mut vcs = Vec::with_capacity(2 * layout.flows.len());
    let mut flows = Vec::with_capacity(layout.flows.len());
    for route in layout.flows {
        let data_vc = vcs.len();
        let [name, acks] = vc_names(&route.name);
        vcs.extend([Vc { name, path: route.data, merge: None }, Vc { name: acks, path: route.acks, merge: None }]);
        let tcp = scenario.tcp.clone();
        flows.push(Flow { name: route.name, data_vc, ack_vc: data_vc + 1, start: route.start, tcp });
    }
    Network {
        seed,
        duration: scenario.duration,
        nodes: layout.graph.nodes,
        links: layout.graph.links,
        vcs,
        merges: Vec::new(),
        flows,
        bottleneck: layout.bottleneck,
        tie_order: scenario.switch.tie_order,
        service_order: scenario.switch.service_order,
        aal5: scenario.aal5.clone(),
    }
}

/// The names of a flow's two VCs.
pub fn vc_names(flow: &str) -> [String; 2] {
    [flow.to_string(), format!("{flow}-acks")]
}

/// The settings of a switch's port: under its link's name, as the bottleneck, or as every other port.
pub fn port_of<'a>(scenario: &'a Scenario, link: &str, is_bottleneck: bool) -> Option<&'a PortConfig> {
    let as_bottleneck = || is_bottleneck.then(|| scenario.port.get("bottleneck")).flatten();
    scenario.port.get(link).or_else(as_bottleneck).or_else(|| scenario.port.get("default"))
}

/// The graph and the paths of a topology that passed its checks.
pub fn layout(topology: &Topology) -> Layout {
    match topology {
        Topology::NSource(config) => {
            let sources = config.sources as usize;
            let flow = |i: usize| {
                let [data, acks] = n_source_paths(i, sources);
                Route { name: format!("tcp{}", i + 1), data, acks, start: Duration::default() }
            };
            Layout {
                graph: n_source(sources, config.link_rate, config.link_delay),
                flows: (0..sources).map(flow).collect(),
                bottleneck: N_SOURCE_BOTTLENECK,
            }
        }
        Topology::Network(config) => general(config),
    }
}

fn general(config: &GeneralNetwork) -> Layout {
    let (graph, index) = graph(config);
    let leaving = graph.leaving();
    let back = |path: &[usize]| path.iter().rev().map(|link| link ^ 1).collect();
    let route = |(flow, number): (&crate::scenario::FlowConfig, usize)| {
        let data = match &flow.path {
            Some(nodes) => {
                let hop = |pair: &[String]| {
                    let (from, to) = (index[pair[0].as_str()], index[pair[1].as_str()]);
                    leaving[from].iter().copied().find(|&link| graph.links[link].to == to)
                };
                nodes.windows(2).map(hop).collect()
            }
            None => graph.shortest_path(&leaving, index[flow.from.as_str()], index[flow.to.as_str()]),
        };
        let data: Vec<usize> = data.expect("checks refuse a flow to nowhere");
        let name = flow.name.clone().unwrap_or_else(|| format!("tcp{number}"));
        Route { name, acks: back(&data), data, start: flow.start }
    };
    let flows: Vec<Route> = config.flows.iter().zip(1..).map(route).collect();
    let named = config.bottleneck.as_ref().and_then(|name| graph.links.iter().position(|link| link.name == *name));
    let bottleneck = named.unwrap_or_else(|| most_loaded(&graph, &flows));
    Layout { graph, flows, bottleneck }
}

/// Nodes and links, and the nodes' indices by name. Links come in pairs, there and back.
pub fn graph(config: &GeneralNetwork) -> (Graph, BTreeMap<&str, usize>) {
    let mut graph = Graph::default();
    let mut index = BTreeMap::new();
    for (names, kind) in [(&config.hosts, NodeKind::Host), (&config.switches, NodeKind::Switch)] {
        for name in names {
            index.insert(name.as_str(), graph.add_node(name, kind));
        }
    }
    for link in &config.links {
        let (a, b) = (&link.between.0, &link.between.1);
        graph.connect(index[a.as_str()], index[b.as_str()], link.rate, link.delay);
    }
    (graph, index)
}

/// The link with the most connections for its rate; the first among equals, and a switch's rather than a host's.
fn most_loaded(graph: &Graph, flows: &[Route]) -> usize {
    let mut crossing = vec![0u64; graph.links.len()];
    for link in flows.iter().flat_map(|flow| &flow.data) {
        crossing[*link] += 1;
    }
    let load = |link: usize| {
        let from_switch = graph.nodes[graph.links[link].from].kind == NodeKind::Switch;
        // Connections over rate, compared as fractions without division.
        (u128::from(crossing[link]), u128::from(graph.links[link].rate.bits_per_second), from_switch)
    };
    let mut best = 0;
    for link in 1..graph.links.len() {
        let ((n, rate, switch), (best_n, best_rate, best_switch)) = (load(link), load(best));
        let (this, other) = (n * best_rate, best_n * rate);
        if this > other || (this == other && switch && !best_switch) {
            best = link;
        }
    }
    best
}
