//! From a scenario that passed its checks to the network the engines run.

use std::collections::BTreeMap;

use celltrain_core::edge_device::EdgeConfig;
use celltrain_core::names::{by_name, is_in_range};
use celltrain_core::network::{
    Flow, Graph, Merge, N_SOURCE_BOTTLENECK, Network, NodeKind, Search, Vc, n_source, n_source_paths,
};
use celltrain_core::stop::{Interrupted, Stop, all};
use celltrain_core::units::{BitRate, Duration};

use crate::scenario::{
    Chain, FlowOptions, GeneralNetwork, Internetwork, NSource, PortConfig, Scenario, Star, Topology, VcMerge, VcOptions,
};

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
    /// The name of its VC, if that is not its own.
    pub vc: Option<String>,
}

/// The virtual channels of a layout.
#[derive(Default)]
pub struct Channels {
    /// All of them.
    pub vcs: Vec<Vc>,
    /// Where some become one.
    pub merges: Vec<Merge>,
    /// Of each flow: the VC of its data and that of its acknowledgements.
    pub of_flow: Vec<[usize; 2]>,
}

/// The network of a scenario that passed its checks, to be run with `seed`.
pub fn network(scenario: &Scenario, seed: u64) -> Network {
    network_unless(scenario, seed, &Stop::never()).expect("nobody stops it")
}

/// The same, unless it is told to stop.
///
/// # Errors
/// When it is.
pub fn network_unless(scenario: &Scenario, seed: u64, stop: &Stop<'_>) -> Result<Network, Interrupted> {
    network_on(layout(&scenario.topology, stop)?, scenario, seed, stop)
}

/// The same on the layout of its topology.
///
/// # Errors
/// When it is told to stop.
pub fn network_on(mut layout: Layout, scenario: &Scenario, seed: u64, stop: &Stop<'_>) -> Result<Network, Interrupted> {
    for (index, link) in layout.graph.links.iter_mut().enumerate() {
        stop.steps_of([1, scenario.port.len(), scenario.edge.len()])?;
        match layout.graph.nodes[link.from].kind {
            NodeKind::Host => continue,
            NodeKind::EdgeDevice => {
                if layout.graph.nodes[link.to].kind != NodeKind::Host {
                    link.edge = edge_of(scenario, &layout.graph.nodes[link.from].name).cloned();
                }
                continue;
            }
            NodeKind::Switch => {}
        }
        if let Some((_, port)) = port_of(scenario, &link.name, index == layout.bottleneck) {
            link.buffer = port.buffer.cells();
            link.policy = port.policy.clone();
            link.scheduler = port.scheduler.clone();
            link.allocator.clone_from(&port.allocator);
        }
    }
    let Channels { mut vcs, merges, of_flow } = channels(&layout, stop)?;
    for vc in &mut vcs {
        stop.steps_of([1, scenario.vc.len()])?;
        if let Some(own) = vc_options(scenario, &vc.name) {
            vc.contract.clone_from(&own.gfr);
            vc.tagged = own.tagged;
            vc.class = own.class;
        }
    }
    for &[data_vc, ack_vc] in &of_flow {
        stop.steps_of([1, scenario.vc.len()])?;
        // One loop each way: the parameters are those of the data's VC.
        let abr = vc_options(scenario, &vcs[data_vc].name).and_then(|own| own.abr.clone());
        for (vc, partner) in [(data_vc, ack_vc), (ack_vc, data_vc)].into_iter().filter(|_| abr.is_some()) {
            vcs[vc].abr.clone_from(&abr);
            vcs[vc].partner = Some(partner);
        }
    }
    let flow = |(route, [data_vc, ack_vc]): (Route, [usize; 2])| {
        stop.steps_of([1, scenario.flow.len()])?;
        let own = flow_options(scenario, &route.name);
        let tcp = own.and_then(|own| own.tcp.as_ref()).unwrap_or(&scenario.tcp).clone();
        let start = own.and_then(|own| own.start).unwrap_or(route.start);
        let traffic = own.and_then(|own| own.traffic.clone()).unwrap_or_default();
        Ok(Flow { name: route.name, data_vc, ack_vc, start, tcp, traffic })
    };
    let flows = all(layout.flows.into_iter().zip(of_flow).map(flow))?;
    Ok(Network {
        seed,
        duration: scenario.duration,
        nodes: layout.graph.nodes,
        links: layout.graph.links,
        vcs,
        merges,
        flows,
        bottleneck: layout.bottleneck,
        tie_order: scenario.switch.tie_order,
        service_order: scenario.switch.service_order,
        aal5: scenario.aal5.clone(),
        file_size: scenario.measure.file_size,
    })
}

/// What a flow has of its own: under its name, or the first range its name is in.
pub fn flow_options<'a>(scenario: &'a Scenario, flow: &str) -> Option<&'a FlowOptions> {
    by_name(&scenario.flow, flow)
}

/// What a VC has of its own: under its name, or the first range its name is in.
pub fn vc_options<'a>(scenario: &'a Scenario, vc: &str) -> Option<&'a VcOptions> {
    vc_table(scenario, vc).map(|(_, own)| own)
}

/// The same, and the name of its table.
pub fn vc_table<'a>(scenario: &'a Scenario, vc: &str) -> Option<(&'a str, &'a VcOptions)> {
    let in_range = || scenario.vc.iter().find(|(key, _)| is_in_range(key, vc));
    scenario.vc.get_key_value(vc).or_else(in_range).map(|(key, own)| (key.as_str(), own))
}

/// The VCs of a layout that passed its checks: two for each flow that shares none.
///
/// A VC that flows of one host share has its own name, and `-acks` behind it on the way back. Where flows of several hosts
/// merge, each branch has its first flow's name up to there, and a way back of its own.
///
/// # Errors
/// When it is told to stop.
#[expect(clippy::arithmetic_side_effects, reason = "indices of lists in memory")]
pub fn channels(layout: &Layout, stop: &Stop<'_>) -> Result<Channels, Interrupted> {
    let mut channels = Channels::default();
    let mut branches: BTreeMap<(&str, &[usize]), usize> = BTreeMap::new();
    let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for route in stop.each(&layout.flows) {
        let route = route?;
        let name = route.vc.as_deref().unwrap_or(&route.name);
        let data_vc = *branches.entry((name, &route.data)).or_insert_with(|| {
            let data_vc = channels.vcs.len();
            by_name.entry(name).or_default().push(data_vc);
            let vc = |name: &str, path: &[usize]| Vc { name: name.to_string(), path: path.to_vec(), ..Vc::default() };
            channels.vcs.extend([vc(&route.name, &route.data), vc(&format!("{}-acks", route.name), &route.acks)]);
            data_vc
        });
        channels.of_flow.push([data_vc, data_vc + 1]);
    }
    for (name, branches) in by_name {
        stop.steps(branches.len())?;
        if let [only] = branches[..] {
            channels.vcs[only].name = name.to_string();
            channels.vcs[only + 1].name = format!("{name}-acks");
            continue;
        }
        let paths: Vec<&[usize]> = branches.iter().map(|&vc| channels.vcs[vc].path.as_slice()).collect();
        let at = meeting(&paths).expect("checks refuse branches that never meet");
        for vc in branches {
            channels.vcs[vc].merge = Some(channels.merges.len());
        }
        channels.merges.push(Merge { name: name.to_string(), at });
    }
    Ok(channels)
}

/// The first link from which on all these paths are the same.
#[expect(clippy::arithmetic_side_effects, reason = "indices of lists in memory")]
pub fn meeting(paths: &[&[usize]]) -> Option<usize> {
    let (first, others) = paths.split_first()?;
    let shared = |behind: &usize| {
        let link = |path: &[usize]| path.len().checked_sub(behind + 1).map(|place| path[place]);
        link(first).is_some() && others.iter().all(|path| link(path) == link(first))
    };
    let shared = (0..first.len()).take_while(shared).count();
    (shared > 0).then(|| first[first.len() - shared])
}

/// The settings of a switch's port: under its link's name, as the bottleneck, under a pattern, or as every other port.
pub fn port_of<'a>(scenario: &'a Scenario, link: &str, is_bottleneck: bool) -> Option<(&'a str, &'a PortConfig)> {
    let named = |name: &str| scenario.port.get_key_value(name);
    let as_bottleneck = || is_bottleneck.then(|| named("bottleneck")).flatten();
    let by_pattern = || scenario.port.iter().find(|(name, _)| matches_link(name, link));
    let found = named(link).or_else(as_bottleneck).or_else(by_pattern).or_else(|| named("default"));
    found.map(|(name, config)| (name.as_str(), config))
}

/// The settings of an edge device: under its name, or a pattern.
pub fn edge_of<'a>(scenario: &'a Scenario, edge: &str) -> Option<&'a EdgeConfig> {
    let by_pattern = || scenario.edge.iter().find(|(name, _)| matches_link(name, edge)).map(|(_, config)| config);
    scenario.edge.get(edge).or_else(by_pattern)
}

/// Whether a pattern, in which `*` stands for any characters, stands for a link's name.
pub fn matches_link(pattern: &str, link: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == link };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(inner) = link.strip_prefix(head).and_then(|link| link.strip_suffix(tail)) else { return false };
    // Each piece where it first comes behind the one before: a later place leaves less for the others.
    middle.split('*').try_fold(inner, |inner, piece| Some(inner.split_once(piece)?.1)).is_some()
}

/// The graph and the paths of a topology that passed its checks.
///
/// # Errors
/// When it is told to stop.
pub fn layout(topology: &Topology, stop: &Stop<'_>) -> Result<Layout, Interrupted> {
    match topology {
        Topology::NSource(config) => sources(config, stop),
        Topology::VcMerge(config) => vc_merge(config, stop),
        Topology::Internetwork(config) => internetwork(config, stop),
        Topology::Chain(config) => chain(config, stop),
        Topology::Star(config) => star(config, stop),
        Topology::Network(config) => general(config, stop),
    }
}

/// Figure 2 of ATM Forum 96-1269.
#[expect(clippy::arithmetic_side_effects, reason = "indices of lists in memory")]
fn sources(config: &NSource, stop: &Stop<'_>) -> Result<Layout, Interrupted> {
    let sources = config.sources as usize;
    let mut graph = n_source(sources, config.link_rate, config.link_delay, stop)?;
    let mut flows = Vec::with_capacity(sources);
    for i in 0..sources {
        stop.steps_of([1, config.access_rates.len(), config.access_delays.len()])?;
        let [data, acks] = n_source_paths(i, sources);
        let (name, access) = (format!("source{}", i + 1), [data[0], acks[2]]);
        for link in access {
            let link = &mut graph.links[link];
            link.rate = of_host(&config.access_rates, &name).unwrap_or(link.rate);
            link.delay = of_host(&config.access_delays, &name).unwrap_or(link.delay);
        }
        flows.push(own_vc(format!("tcp{}", i + 1), data, acks));
    }
    Ok(Layout { graph, flows, bottleneck: N_SOURCE_BOTTLENECK })
}

/// What a table by hosts has for one: under its name, in the first range it is in, or for all others.
pub fn of_host<T: Copy>(table: &BTreeMap<String, T>, host: &str) -> Option<T> {
    by_name(table, host).or_else(|| table.get(DEFAULT)).copied()
}

/// The key for all hosts a table does not name.
pub const DEFAULT: &str = "default";

/// A flow from time 0 on, over a VC of its own.
fn own_vc(name: String, data: Vec<usize>, acks: Vec<usize>) -> Route {
    Route { name, data, acks, start: Duration::default(), vc: None }
}

/// The way back over links that all come in pairs.
fn back(path: &[usize]) -> Vec<usize> {
    path.iter().rev().map(|link| link ^ 1).collect()
}

/// `docs/mechanisms.md` 7: long VCs over all links between switches, others over one each.
#[expect(
    clippy::arithmetic_side_effects,
    reason = "numbers of switches and connections, which a chain has 10000 and 10^9 of at most"
)]
fn chain(config: &Chain, stop: &Stop<'_>) -> Result<Layout, Interrupted> {
    let access_rate = config.access_rate.unwrap_or(config.link_rate);
    let access_delay = config.access_delay.unwrap_or(config.link_delay);
    let mut graph = Graph::default();
    let switches: Vec<usize> =
        (1..=config.hops + 1).map(|i| graph.add_node(format!("sw{i}"), NodeKind::Switch)).collect();
    let trunks: Vec<usize> =
        switches.windows(2).map(|pair| graph.connect(pair[0], pair[1], config.link_rate, config.link_delay)).collect();
    let hops = trunks.len();
    let mut flows = Vec::new();
    let mut flow = |kind: &str, number: u32, first: usize, last: usize| {
        stop.steps(last - first)?;
        let source = graph.add_node(format!("{kind}-source{number}"), NodeKind::Host);
        let destination = graph.add_node(format!("{kind}-destination{number}"), NodeKind::Host);
        let mut data = vec![graph.connect(source, switches[first], access_rate, access_delay)];
        data.extend_from_slice(&trunks[first..last]);
        data.push(graph.connect(switches[last], destination, access_rate, access_delay));
        let acks = back(&data);
        flows.push(own_vc(format!("{kind}{number}"), data, acks));
        Ok(())
    };
    for number in 1..=config.long {
        flow("long", number, 0, hops)?;
    }
    let entries = (0..hops).flat_map(|hop| std::iter::repeat_n(hop, config.cross as usize));
    for (hop, number) in entries.zip(1..) {
        flow("cross", number, hop, hop + 1)?;
    }
    Ok(Layout { graph, flows, bottleneck: trunks[0] })
}

/// Hosts around a switch.
#[expect(clippy::arithmetic_side_effects, reason = "indices of lists in memory")]
fn star(config: &Star, stop: &Stop<'_>) -> Result<Layout, Interrupted> {
    let mut graph = Graph::default();
    let switch = graph.add_node("sw", NodeKind::Switch);
    for i in 1..=config.hosts {
        stop.steps_of([1, config.access_rates.len(), config.access_delays.len()])?;
        let name = format!("host{i}");
        let rate = of_host(&config.access_rates, &name).unwrap_or(config.link_rate);
        let delay = of_host(&config.access_delays, &name).unwrap_or(config.link_delay);
        let host = graph.add_node(name, NodeKind::Host);
        graph.connect(host, switch, rate, delay);
    }
    let flow = |((from, to), number): ((usize, usize), usize)| {
        let data = vec![2 * from, 2 * to + 1];
        let acks = back(&data);
        own_vc(format!("tcp{number}"), data, acks)
    };
    let flows = stop.map(config.pattern.pairs(config.hosts as usize).into_iter().zip(1..), flow)?;
    // To the first host.
    Ok(Layout { graph, flows, bottleneck: 1 })
}

/// Figure 6 of ATM Forum 97-0831.
#[expect(clippy::arithmetic_side_effects, reason = "indices of lists in memory")]
fn vc_merge(config: &VcMerge, stop: &Stop<'_>) -> Result<Layout, Interrupted> {
    let VcMerge { link_rate: rate, link_delay: delay, .. } = *config;
    let mut graph = Graph::default();
    let sw1 = graph.add_node("sw1", NodeKind::Switch);
    let sw2 = graph.add_node("sw2", NodeKind::Switch);
    let bottleneck = graph.connect(sw1, sw2, rate, delay);
    let mut flows: Vec<Route> = Vec::new();
    for vc in 1..=config.vcs {
        let local = graph.add_node(format!("local{vc}"), NodeKind::Switch);
        let up = graph.connect(local, sw1, rate, delay);
        let destination = graph.add_node(format!("destination{vc}"), NodeKind::Host);
        let down = graph.connect(sw2, destination, rate, delay);
        for _ in 0..config.sources_per_vc {
            stop.step()?;
            let number = flows.len() + 1;
            let source = graph.add_node(format!("source{number}"), NodeKind::Host);
            let data = vec![graph.connect(source, local, rate, config.access_delay), up, bottleneck, down];
            let acks = back(&data);
            let vc = Some(format!("vc{vc}"));
            flows.push(Route { name: format!("tcp{number}"), data, acks, start: Duration::default(), vc });
        }
    }
    Ok(Layout { graph, flows, bottleneck })
}

/// Figure 1 of draft-jagan-e2e-traf-mgmt-00.
#[expect(clippy::arithmetic_side_effects, reason = "indices of lists in memory")]
fn internetwork(config: &Internetwork, stop: &Stop<'_>) -> Result<Layout, Interrupted> {
    let Internetwork { link_rate: rate, ip_delay, atm_delay, .. } = *config;
    let mut graph = Graph::default();
    let sw1 = graph.add_node("sw1", NodeKind::Switch);
    let sw2 = graph.add_node("sw2", NodeKind::Switch);
    let bottleneck = graph.connect(sw1, sw2, rate, atm_delay);
    let mut paths = Vec::new();
    for i in 1..=config.sources {
        stop.step()?;
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
        let there = vec![a, b, bottleneck, c, d];
        let back: Vec<usize> = there.iter().rev().map(|link| link + 1).collect();
        paths.push((there, back));
    }
    if config.bidirectional {
        let others: Vec<_> = paths.iter().map(|(there, back)| (back.clone(), there.clone())).collect();
        paths.extend(others);
    }
    let route = |((data, acks), number)| Route {
        name: format!("tcp{number}"),
        data,
        acks,
        start: Duration::default(),
        vc: None,
    };
    Ok(Layout { graph, flows: stop.map(paths.into_iter().zip(1..), route)?, bottleneck })
}

fn general(config: &GeneralNetwork, stop: &Stop<'_>) -> Result<Layout, Interrupted> {
    let (graph, index) = graph(config, stop)?;
    let every_flow: Vec<usize> = (0..config.flows.len()).collect();
    let paths = data_paths(config, &graph, &index, &every_flow, stop)?.expect("checks refuse too many links in all");
    let paths = paths.into_iter().map(|path| path.expect("checks refuse a flow to nowhere")).collect();
    general_over(config, graph, paths, stop)
}

/// The layout of a general network whose flows' data takes these paths.
///
/// # Errors
/// When it is told to stop.
pub fn general_over(
    config: &GeneralNetwork,
    graph: Graph,
    paths: Vec<Vec<usize>>,
    stop: &Stop<'_>,
) -> Result<Layout, Interrupted> {
    let route = |((flow, data), number): ((&crate::scenario::FlowConfig, Vec<usize>), usize)| {
        let name = flow.name.clone().unwrap_or_else(|| format!("tcp{number}"));
        Route { name, acks: back(&data), data, start: flow.start, vc: flow.vc.clone() }
    };
    let flows: Vec<Route> = stop.map(config.flows.iter().zip(paths).zip(1..), route)?;
    let named = config.bottleneck.as_ref().and_then(|name| graph.links.iter().position(|link| link.name == *name));
    let bottleneck = match named {
        Some(link) => link,
        None => most_loaded(&graph, &flows, stop)?,
    };
    Ok(Layout { graph, flows, bottleneck })
}

/// The links of the data of some flows of a general network; none for a flow whose written path misses a link, or that no
/// path leads for. `None` where they cross more links in all than a network may have crossings.
///
/// # Errors
/// When it is told to stop.
#[expect(
    clippy::arithmetic_side_effects,
    reason = "no path is longer than the network, and the first above the most ends it"
)]
pub fn data_paths(
    config: &GeneralNetwork,
    graph: &Graph,
    index: &BTreeMap<&str, usize>,
    flows: &[usize],
    stop: &Stop<'_>,
) -> Result<Option<Vec<Option<Vec<usize>>>>, Interrupted> {
    let mut search = Search::new(graph);
    let by_ends: BTreeMap<(usize, usize), usize> =
        graph.links.iter().zip(0..).map(|(link, number)| ((link.from, link.to), number)).collect();
    let mut paths = vec![None; flows.len()];
    // By where the search starts: the places of flows in `flows`, and where they go.
    let mut searches: BTreeMap<usize, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
    for (place, flow) in flows.iter().map(|&flow| &config.flows[flow]).enumerate() {
        stop.step()?;
        if let Some(nodes) = &flow.path {
            let hop = |pair: &[String]| by_ends.get(&(index[pair[0].as_str()], index[pair[1].as_str()])).copied();
            paths[place] = nodes.windows(2).map(hop).collect();
        } else {
            let from = index[flow.from.as_str()];
            let search = searches.entry(only_switch(graph, &search, from).unwrap_or(from)).or_default();
            search.0.push(place);
            search.1.push(index[flow.to.as_str()]);
        }
    }
    let length = |path: &Option<Vec<usize>>| path.as_ref().map_or(0, Vec::len);
    let mut crossings: usize = paths.iter().map(length).sum();
    for (start, (places, to)) in searches {
        // At worst it passes over every link.
        stop.steps_of([graph.links.len() / 4, places.len()])?;
        for (place, path) in places.into_iter().zip(search.paths(start, &to)) {
            let from = index[config.flows[flows[place]].from.as_str()];
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

/// The most times VCs may cross links in all, one way: some gigabytes of labels and counters.
pub const MAX_CROSSINGS: usize = 10_000_000;

/// The switch a host is at, if it has no other link: whatever goes from it goes from there, so one search will do for all its
/// hosts.
fn only_switch(graph: &Graph, search: &Search<'_>, host: usize) -> Option<usize> {
    let &[(_, only)] = search.leaving(host) else { return None };
    Some(only).filter(|&node| graph.nodes[node].kind == NodeKind::Switch)
}

/// Nodes and links, and the nodes' indices by name. Links come in pairs, there and back.
///
/// # Errors
/// When it is told to stop.
pub fn graph<'a>(
    config: &'a GeneralNetwork,
    stop: &Stop<'_>,
) -> Result<(Graph, BTreeMap<&'a str, usize>), Interrupted> {
    let mut graph = Graph::default();
    let mut index = BTreeMap::new();
    for (names, kind) in [
        (&config.hosts, NodeKind::Host),
        (&config.switches, NodeKind::Switch),
        (&config.edge_devices, NodeKind::EdgeDevice),
    ] {
        for name in names {
            stop.step()?;
            index.insert(name.as_str(), graph.add_node(name, kind));
        }
    }
    for link in stop.each(&config.links) {
        let link = link?;
        let (a, b) = (&link.between.0, &link.between.1);
        let way_back: (BitRate, Duration) =
            (link.rate_back.unwrap_or(link.rate), link.delay_back.unwrap_or(link.delay));
        graph.connect_unlike(index[a.as_str()], index[b.as_str()], [(link.rate, link.delay), way_back]);
    }
    Ok((graph, index))
}

/// The link with the most connections for its rate; the first among equals, and a switch's rather than a host's.
#[expect(clippy::arithmetic_side_effects, reason = "64 bits by 64 bits, in 128 bits")]
fn most_loaded(graph: &Graph, flows: &[Route], stop: &Stop<'_>) -> Result<usize, Interrupted> {
    let mut crossing = vec![0u64; graph.links.len()];
    for flow in stop.each(flows) {
        for &link in &flow?.data {
            crossing[link] += 1;
        }
    }
    let load = |link: usize| {
        let from_switch = graph.nodes[graph.links[link].from].kind == NodeKind::Switch;
        // Connections over rate, compared as fractions without division.
        (u128::from(crossing[link]), u128::from(graph.links[link].rate.bits_per_second), from_switch)
    };
    let mut best = 0;
    for link in 1..graph.links.len() {
        stop.step()?;
        let ((n, rate, switch), (best_n, best_rate, best_switch)) = (load(link), load(best));
        let (this, other) = (n * best_rate, best_n * rate);
        if this > other || (this == other && switch && !best_switch) {
            best = link;
        }
    }
    Ok(best)
}
