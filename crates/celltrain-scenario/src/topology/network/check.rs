//! Checks of a general network: its nodes, links, flows and paths, and the VCs that its flows share.

use std::collections::{BTreeMap, BTreeSet};

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use celltrain_core::cancellation::Interrupted;
use celltrain_core::index::{LinkIndex, NodeIndex};
use celltrain_core::network::{Graph, Merge, NodeKind};

use super::{Config, FlowConfig, Layout, Nodes};
use crate::fault::Warning;
use crate::hints::{closest, hint};
use crate::limits::{MAX_CROSSINGS, MAX_DURATION};
use crate::scope::{Scope, quoted};
use crate::topology::links::{check_delay, check_rate, meeting};

pub(super) fn check(config: &Config, scope: &mut Scope<'_>) -> Result<Option<Layout>, Interrupted> {
    let before = scope.found().count();
    let nodes = config.nodes_by_name();
    names(config, scope);
    links(config, &nodes, scope);
    let graph_is_sound = scope.found().count() == before;
    let sound_flows = flows(config, &nodes, scope);
    if !graph_is_sound {
        return Ok(None);
    }
    scope.token().check()?;
    let layout = routes(config, &nodes, &sound_flows, scope)?;
    Ok(layout.filter(|_| scope.found().count() == before))
}

/// Checks that every node has a valid and unique name.
fn names(config: &Config, scope: &mut Scope<'_>) {
    let mut known = BTreeSet::new();
    for (key, names, _) in config.nodes() {
        let mut list = scope.at(key);
        for (i, name) in names.iter().enumerate() {
            if name.is_empty() || name.contains("->") {
                list.item(i).refuse_text(name, "is not a name; it must not be empty or contain \"->\"");
            }
            if !known.insert(name) {
                list.item(i).refuse_text(name, "is the name of two nodes; names must be different");
            }
        }
    }
}

/// Checks that every link joins two different nodes, and that no two links join the same nodes.
fn links(config: &Config, nodes: &Nodes<'_>, scope: &mut Scope<'_>) {
    let mut list = scope.at("links");
    let mut joined = BTreeSet::new();
    for (i, config) in config.links.iter().enumerate() {
        let mut link = list.item(i);
        let (a, b) = (config.between.0.as_str(), config.between.1.as_str());
        for (end, name) in [a, b].into_iter().enumerate() {
            is_unknown(name, nodes, &mut link.at("between").item(end));
        }
        let between = || format!("[\"{a}\", \"{b}\"]");
        if a == b {
            link.at("between").refuse_value(between(), "is a loop: the link joins a node to itself");
        } else if !joined.insert([a.min(b), a.max(b)]) {
            let problem = "joins two nodes that are already joined; two nodes can have only one link";
            link.at("between").refuse_value(between(), problem);
        }
        check_rate("rate", config.rate, &mut link);
        check_delay("delay", config.delay, &mut link);
        if let Some(rate) = config.rate_back {
            check_rate("rate_back", rate, &mut link);
        }
        if let Some(delay) = config.delay_back {
            check_delay("delay_back", delay, &mut link);
        }
    }
}

/// If the network has no node of this name, reports a fault and returns true.
fn is_unknown(name: &str, nodes: &Nodes<'_>, scope: &mut Scope<'_>) -> bool {
    if nodes.contains_key(name) {
        return false;
    }
    let hint = hint(name, nodes.keys().copied(), scope.found(), scope.token());
    let hint = hint.map(|meant| format!("; did you mean \"{meant}\"?")).unwrap_or_default();
    scope.refuse_text(name, format!("is not a host, a switch or an edge device{hint}"));
    true
}

/// Checks that every flow has a unique name, connects two hosts, and has a possible path. Returns the positions of
/// flows without faults.
fn flows(config: &Config, nodes: &Nodes<'_>, scope: &mut Scope<'_>) -> Vec<usize> {
    let mut list = scope.at("flows");
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let mut sound = Vec::new();
    for (i, flow) in config.flows.iter().enumerate() {
        let mut scope = list.item(i);
        let before = scope.found().count();
        let name = flow.name_at(i);
        let first = *names.entry(name.clone()).or_insert(i);
        if first != i {
            let mut key = scope.at("name");
            match (&config.flows[first].name, &flow.name) {
                (Some(_), Some(_)) => key.refuse_text(name, "is the name of two flows; names must be different"),
                (None, Some(_)) => {
                    let problem = format!(
                        "is the name of two flows: flows[{first}] has no name and gets this name; names must be \
                         different"
                    );
                    key.refuse_text(name, problem);
                }
                (_, None) => key.refuse(format!(
                    "is missing and would be \"{name}\", the name of flows[{first}]; names must be different"
                )),
            }
        }
        ends(flow, nodes, &mut scope);
        if let Some(path) = &flow.path {
            path_form(flow, path, nodes, &mut scope.at("path"));
        }
        if scope.found().count() == before {
            sound.push(i);
        }
    }
    sound
}

/// Checks that a flow connects two hosts.
fn ends(flow: &FlowConfig, nodes: &Nodes<'_>, scope: &mut Scope<'_>) {
    for (key, name) in [("from", &flow.from), ("to", &flow.to)] {
        let mut scope = scope.at(key);
        if !is_unknown(name, nodes, &mut scope) && nodes[name.as_str()].1 != NodeKind::Host {
            scope.refuse_text(name, "is not a host; a flow must join two hosts");
        }
    }
    if flow.from == flow.to {
        scope.at("to").refuse_text(&flow.to, "is the flow's own source; a flow must join two hosts");
    }
    if flow.start > MAX_DURATION {
        scope.at("start").refuse_text(flow.start, format!("must be a time of at most {MAX_DURATION}"));
    }
}

/// Checks the form of a given path: the path must connect the flow's two hosts, and may cross neither another host nor
/// any node twice.
fn path_form(flow: &FlowConfig, path: &[String], nodes: &Nodes<'_>, scope: &mut Scope<'_>) {
    if path.first() != Some(&flow.from) || path.last() != Some(&flow.to) {
        let FlowConfig { from, to, .. } = flow;
        scope.refuse(format!("does not lead from \"{from}\" to \"{to}\"; a path includes both ends"));
    }
    let mut seen = BTreeSet::new();
    for (j, name) in path.iter().enumerate() {
        let inside = j > 0 && j.saturating_add(1) < path.len();
        let mut scope = scope.item(j);
        if !is_unknown(name, nodes, &mut scope) && inside && nodes[name.as_str()].1 == NodeKind::Host {
            scope.refuse_text(name, "is a host; only switches forward data");
        }
        if !seen.insert(name) {
            scope.refuse_text(name, "is visited twice: a path must not have loops");
        }
    }
}

/// Checks that every flow has a path. Returns the layout of the network if the network has no faults.
fn routes(
    config: &Config,
    nodes: &Nodes<'_>,
    sound_flows: &[usize],
    scope: &mut Scope<'_>,
) -> Result<Option<Layout>, Interrupted> {
    let before = scope.found().count();
    let graph = config.graph(nodes);
    if let Some(name) = &config.bottleneck {
        let names = graph.links.iter().map(|link| link.name.as_str());
        if !names.clone().any(|link| link == name) {
            let hint = closest(name, names, scope.token()).map(|meant| format!("; did you mean \"{meant}\"?"));
            scope.at("bottleneck").refuse_text(name, format!("is not a link{}", hint.unwrap_or_default()));
        }
    }
    let Some(paths) = config.data_paths(&graph, nodes, sound_flows, scope.token())? else {
        let problem = format!("cross more than {MAX_CROSSINGS} links in all; use fewer flows, or shorter paths");
        scope.at("flows").refuse(problem);
        return Ok(None);
    };
    if paths.iter().any(Option::is_none) {
        let without = sound_flows.iter().zip(&paths).filter(|(_, path)| path.is_none()).map(|(&flow, _)| flow);
        without_a_path(config, nodes, &graph, without, scope);
    }
    if scope.found().count() > before || sound_flows.len() < config.flows.len() {
        return Ok(None);
    }
    let paths = paths.into_iter().map(|path| path.expect("flows without a path were reported above")).collect();
    let layout = config.layout(graph, paths);
    shared_vcs(config, &layout, scope)?;
    Ok(Some(layout))
}

/// Reports why the given flows have no path.
fn without_a_path(
    config: &Config,
    nodes: &Nodes<'_>,
    graph: &Graph,
    flows: impl Iterator<Item = usize>,
    scope: &mut Scope<'_>,
) {
    let joined: BTreeSet<[NodeIndex; 2]> = graph.links.iter().map(|link| [link.from, link.to]).collect();
    let mut list = scope.at("flows");
    for i in flows {
        let (flow, mut scope) = (&config.flows[i], list.item(i));
        let Some(path) = &flow.path else {
            let mut problem = format!("cannot be reached from \"{}\": no links lead there through switches", flow.from);
            if !config.edge_devices.is_empty() {
                problem.push_str(". An edge device must be next to a host, not in the middle of a path");
            }
            scope.at("to").refuse_text(&flow.to, problem);
            continue;
        };
        for (j, pair) in path.windows(2).enumerate() {
            if !joined.contains(&[nodes[pair[0].as_str()].0, nodes[pair[1].as_str()].0]) {
                let problem = format!("has no link from \"{}\"", pair[0]);
                scope.at("path").item(j.saturating_add(1)).refuse_text(&pair[1], problem);
            }
        }
    }
}

/// Checks that flows of one VC end at the same host, and that flows from several hosts meet only once, at a switch.
fn shared_vcs(config: &Config, layout: &Layout, scope: &mut Scope<'_>) -> Result<(), Interrupted> {
    let token = scope.token();
    let mut list = scope.at("flows");
    let mut by_vc: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (i, route) in layout.flows.iter().enumerate() {
        by_vc.entry(route.vc.as_deref().unwrap_or(&route.name)).or_default().push(i);
    }
    for (vc, flows) in by_vc {
        let mut refuse = |i: usize, problem: String| list.item(i).at("vc").refuse_text(vc, problem);
        let first = &config.flows[flows[0]];
        let mut branches: Vec<usize> = Vec::new();
        for &i in &flows {
            token.tick(branches.len().saturating_add(1))?;
            let flow = &config.flows[i];
            let sibling = branches.iter().find(|&&other| config.flows[other].from == flow.from);
            if flow.to != first.to {
                refuse(i, format!("is also the VC of flows to \"{}\"; flows of one VC must end at one host", first.to));
            } else if sibling.is_some_and(|&other| layout.flows[other].data != layout.flows[i].data) {
                refuse(
                    i,
                    "is the VC of a flow that leaves the same host on another path; a VC has only one path".into(),
                );
            } else if sibling.is_none() {
                branches.push(i);
            }
        }
        if branches.len() < 2 || flows.iter().any(|&i| config.flows[i].to != first.to) {
            continue;
        }
        let path = |i: usize| layout.flows[i].data.as_slice();
        let name = |link: LinkIndex| layout.graph.links[link].name.as_str();
        let paths: Vec<&[LinkIndex]> = branches.iter().map(|&i| path(i)).collect();
        let Some(at) = meeting(&paths) else {
            refuse(
                branches[1],
                "never meets its other flows on a link; flows of one VC must arrive over one link".into(),
            );
            continue;
        };
        if branches.len() > Merge::MAX_BRANCHES {
            let problem = format!("merges {} sources; at most {} are possible", branches.len(), Merge::MAX_BRANCHES);
            refuse(branches[Merge::MAX_BRANCHES], problem);
        }
        for pair in branches.windows(2) {
            let earlier = meeting(&[path(pair[0]), path(pair[1])]).filter(|&link| link != at);
            if let Some(link) = earlier {
                let problem = format!(
                    "merges at {} and again at {}, where its frames would be interleaved; a VC merges at one port",
                    name(link),
                    name(at)
                );
                refuse(pair[1], problem);
            }
        }
    }
    Ok(())
}

/// Checks that every edge device on a path lies between a host and the ATM network.
pub(super) fn edge_devices(layout: &Layout, scope: &mut Scope<'_>) {
    let mut list = scope.at("flows");
    for (i, flow) in layout.flows.iter().enumerate() {
        let Some((_, behind)) = flow.data.split_first() else { continue };
        let kind = |node: NodeIndex| layout.graph.nodes[node].kind;
        let inner: Vec<NodeIndex> = behind.iter().map(|&link| layout.graph.links[link].from).collect();
        let misplaced = |&(j, &node): &(usize, &NodeIndex)| {
            kind(node) == NodeKind::EdgeDevice && (inner.len() == 1 || !(j == 0 || j.saturating_add(1) == inner.len()))
        };
        if let Some((_, &node)) = inner.iter().enumerate().find(misplaced) {
            list.item(i).refuse(format!(
                "crosses the edge device \"{}\" in its middle; an edge device must be next to a host, with a switch or another edge device \
                 behind it",
                layout.graph.nodes[node].name
            ));
        }
    }
}

/// Warns about nodes without links, and about nodes that are not connected to any flow, because the scenario may lack
/// an entry.
pub(super) fn islands(layout: &Layout) -> Vec<Warning> {
    let graph = &layout.graph;
    // Each node refers to another node on the way to the root of its connected component.
    let mut towards: TiVec<NodeIndex, NodeIndex> = graph.nodes.keys().collect();
    let mut is_on_a_link: TiVec<NodeIndex, bool> = ti_vec![false; graph.nodes.len()];
    for link in &graph.links {
        let [a, b] = [link.from, link.to].map(|node| root(&mut towards, node));
        towards[a.max(b)] = a.min(b);
        is_on_a_link[link.from] = true;
    }
    let mut is_used: TiVec<NodeIndex, bool> = ti_vec![false; graph.nodes.len()];
    for flow in &layout.flows {
        is_used[root(&mut towards, graph.links[flow.data[0]].from)] = true;
    }
    let (mut alone, mut cut_off) = (Vec::new(), Vec::new());
    for (node, &is_on_a_link) in is_on_a_link.iter_enumerated() {
        if !is_on_a_link {
            alone.push(node);
        } else if !layout.flows.is_empty() && !is_used[root(&mut towards, node)] {
            cut_off.push(node);
        }
    }
    let mut warnings = Vec::new();
    for (nodes, [one, several]) in [
        (alone, ["is not connected to a link", "are not connected to a link"]),
        (cut_off, ["has no path to the nodes that flows cross", "have no path to the nodes that flows cross"]),
    ] {
        const SHOWN: usize = 5;
        let shown: Vec<String> = nodes.iter().take(SHOWN).map(|&node| quoted(&graph.nodes[node].name)).collect();
        let message = match (nodes.len(), shown.join(", ")) {
            (0, _) => continue,
            (1, name) => format!("{} {name} {one}", kind_name(graph.nodes[nodes[0]].kind)),
            (n @ ..=SHOWN, names) => format!("{n} nodes ({names}) {several}"),
            (n, names) => format!("{n} nodes ({names} and {} more) {several}", n.saturating_sub(SHOWN)),
        };
        warnings.push(Warning {
            key: "topology.network.links".into(),
            message: format!("{message}: no flow sends data there; remove these nodes, or add links to them"),
        });
    }
    warnings
}

fn kind_name(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Host => "host",
        NodeKind::Switch => "switch",
        NodeKind::EdgeDevice => "edge device",
    }
}

/// Returns the root of a node's connected component. Each search halves the way to the root, so that ways remain short.
fn root(towards: &mut TiSlice<NodeIndex, NodeIndex>, mut node: NodeIndex) -> NodeIndex {
    while towards[node] != node {
        towards[node] = towards[towards[node]];
        node = towards[node];
    }
    node
}
