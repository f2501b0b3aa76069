//! Topologies: their numbers, the nodes, links, flows and paths of a general network, and the VCs that its flows share.

use std::collections::{BTreeMap, BTreeSet};

use celltrain_core::network::{Merge, NodeKind};
use celltrain_core::stop::{Interrupted, Stop};
use celltrain_core::units::{BitRate, Duration};

use super::{MAX_DELAY, MAX_DURATION, MAX_RATE, MIN_RATE, closest, hint, quoted};
use crate::build;
use crate::document::join;
use crate::fault::KeyFault;
use crate::scenario::{FlowConfig, GeneralNetwork, Topology};

/// Checks a topology; its layout, where finding its faults took one.
pub(super) fn check(
    topology: &Topology,
    faults: &mut Vec<KeyFault>,
    stop: &Stop<'_>,
) -> Result<Option<build::Layout>, Interrupted> {
    match topology {
        Topology::NSource(config) => {
            let path = "topology.n_source";
            link(path, ["link_rate", "link_delay"], config.link_rate, config.link_delay, faults);
            by_host(path, ("source", config.sources), &config.access_rates, &config.access_delays, faults);
        }
        Topology::VcMerge(config) => {
            link("topology.vc_merge", ["link_rate", "link_delay"], config.link_rate, config.link_delay, faults);
            link("topology.vc_merge", ["link_rate", "access_delay"], config.link_rate, config.access_delay, faults);
        }
        Topology::Internetwork(config) => {
            let keys = [("ip_delay", config.ip_delay), ("atm_delay", config.atm_delay)];
            for (key, delay) in keys {
                link("topology.internetwork", ["link_rate", key], config.link_rate, delay, faults);
            }
            faults.dedup_by(|a, b| a.key == b.key);
        }
        Topology::Chain(config) => {
            let path = "topology.chain";
            link(path, ["link_rate", "link_delay"], config.link_rate, config.link_delay, faults);
            let rate = config.access_rate.unwrap_or(MAX_RATE);
            link(path, ["access_rate", "access_delay"], rate, config.access_delay.unwrap_or_default(), faults);
        }
        Topology::Star(config) => {
            let path = "topology.star";
            link(path, ["link_rate", "link_delay"], config.link_rate, config.link_delay, faults);
            by_host(path, ("host", config.hosts), &config.access_rates, &config.access_delays, faults);
        }
        Topology::Network(config) => return general(config, faults, stop),
    }
    crossings(topology, faults);
    Ok(None)
}

/// Tables by the names of hosts, which are a stem and the numbers from 1 on: each name is that of a host or of several.
fn by_host(
    path: &str,
    (stem, hosts): (&str, u32),
    rates: &BTreeMap<String, BitRate>,
    delays: &BTreeMap<String, Duration>,
    faults: &mut Vec<KeyFault>,
) {
    let number = |name: &str| name.parse::<u32>().ok().filter(|n| (1..=hosts).contains(n) && *name == n.to_string());
    let stands_for_some = |name: &str| {
        let Some(numbers) = name.strip_prefix(stem) else { return name == build::DEFAULT };
        match numbers.split_once('-') {
            // A range may go beyond the last.
            Some((first, last)) => {
                number(first).is_some_and(|first| last.parse::<u32>().is_ok_and(|last| last >= first))
            }
            None => number(numbers).is_some(),
        }
    };
    let names = rates.keys().map(|name| ("access_rates", name));
    for (key, name) in names.chain(delays.keys().map(|name| ("access_delays", name))) {
        if !stands_for_some(name) {
            let problem = format!("names none of {stem}1 to {stem}{hosts}; write one, a range of them, or default");
            faults.push(KeyFault::of_key(join(&join(path, key), name), problem));
        }
    }
    for (name, &rate) in rates {
        link(&join(path, "access_rates"), [name, ""], rate, Duration::default(), faults);
    }
    for (name, &delay) in delays {
        link(&join(path, "access_delays"), ["", name], MAX_RATE, delay, faults);
    }
}

fn link(path: &str, keys: [&str; 2], rate: BitRate, delay: Duration, faults: &mut Vec<KeyFault>) {
    if rate < MIN_RATE || rate > MAX_RATE {
        let problem = format!("is not a positive rate from {MIN_RATE} to {MAX_RATE}");
        faults.push(KeyFault::of_value(join(path, keys[0]), quoted(rate), problem));
    }
    if delay > MAX_DELAY {
        let problem = format!("is not a delay up to {MAX_DELAY}");
        faults.push(KeyFault::of_value(join(path, keys[1]), quoted(delay), problem));
    }
}

pub(super) const NETWORK: &str = "topology.network";

fn general(
    config: &GeneralNetwork,
    faults: &mut Vec<KeyFault>,
    stop: &Stop<'_>,
) -> Result<Option<build::Layout>, Interrupted> {
    let before = faults.len();
    let kinds = nodes(config, faults, stop)?;
    links(config, &kinds, faults, stop)?;
    let graph_is_sound = faults.len() == before;
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let mut sound_flows = Vec::new();
    for (i, flow) in config.flows.iter().enumerate() {
        stop.step()?;
        let before = faults.len();
        let path = format!("{NETWORK}.flows[{i}]");
        let name = flow.name.clone().unwrap_or_else(|| format!("tcp{}", i.saturating_add(1)));
        let first = *names.entry(name.clone()).or_insert(i);
        if first != i {
            let key = join(&path, "name");
            faults.push(match (&config.flows[first].name, &flow.name) {
                (Some(_), Some(_)) => KeyFault::of_value(key, quoted(name), "names two flows; names are different"),
                (_, Some(_)) => {
                    let problem =
                        format!("names two flows: flows[{first}] has no name and is that; names are different");
                    KeyFault::of_value(key, quoted(name), problem)
                }
                (_, None) => {
                    let problem =
                        format!("is missing and would be \"{name}\", which flows[{first}] is; names are different");
                    KeyFault::of_key(key, problem)
                }
            });
        }
        flow_ends(flow, &path, &kinds, faults, stop)?;
        if let Some(nodes) = &flow.path {
            path_form(flow, nodes, &join(&path, "path"), &kinds, faults, stop)?;
        }
        if faults.len() == before {
            sound_flows.push(i);
        }
    }
    if config.flows.is_empty() {
        faults.push(KeyFault::of_key(format!("{NETWORK}.flows"), "is empty; a run needs at least one flow"));
    }
    if !graph_is_sound {
        return Ok(None);
    }
    let layout = routes(config, &sound_flows, faults, stop)?;
    Ok(layout.filter(|_| faults.len() == before))
}

fn nodes<'a>(
    config: &'a GeneralNetwork,
    faults: &mut Vec<KeyFault>,
    stop: &Stop<'_>,
) -> Result<BTreeMap<&'a str, NodeKind>, Interrupted> {
    let mut kinds = BTreeMap::new();
    for (key, names, kind) in [
        ("hosts", &config.hosts, NodeKind::Host),
        ("switches", &config.switches, NodeKind::Switch),
        ("edge_devices", &config.edge_devices, NodeKind::EdgeDevice),
    ] {
        for (i, name) in names.iter().enumerate() {
            stop.step()?;
            let path = format!("{NETWORK}.{key}[{i}]");
            if name.is_empty() || name.contains("->") {
                let problem = "is not a name; it must not be empty or contain \"->\"";
                faults.push(KeyFault::of_value(&path, quoted(name), problem));
            }
            if kinds.insert(name.as_str(), kind).is_some() {
                faults.push(KeyFault::of_value(path, quoted(name), "names two nodes; names are different"));
            }
        }
    }
    Ok(kinds)
}

fn links(
    config: &GeneralNetwork,
    kinds: &BTreeMap<&str, NodeKind>,
    faults: &mut Vec<KeyFault>,
    stop: &Stop<'_>,
) -> Result<(), Interrupted> {
    let mut joined = BTreeSet::new();
    for (i, config) in config.links.iter().enumerate() {
        stop.step()?;
        let path = format!("{NETWORK}.links[{i}]");
        let (a, b) = (config.between.0.as_str(), config.between.1.as_str());
        for (end, name) in [a, b].into_iter().enumerate() {
            unknown_node(name, &format!("{path}.between[{end}]"), kinds, faults, stop)?;
        }
        let between = format!("[\"{a}\", \"{b}\"]");
        if a == b {
            let problem = "is a loop: it joins a node to itself";
            faults.push(KeyFault::of_value(join(&path, "between"), &between, problem));
        } else if !joined.insert([a.min(b), a.max(b)]) {
            let problem = "joins two nodes that are joined already; one link between two nodes";
            faults.push(KeyFault::of_value(join(&path, "between"), &between, problem));
        }
        link(&path, ["rate", "delay"], config.rate, config.delay, faults);
        let (rate, delay) = (config.rate_back.unwrap_or(MAX_RATE), config.delay_back.unwrap_or_default());
        link(&path, ["rate_back", "delay_back"], rate, delay, faults);
    }
    Ok(())
}

fn unknown_node(
    name: &str,
    path: &str,
    kinds: &BTreeMap<&str, NodeKind>,
    faults: &mut Vec<KeyFault>,
    stop: &Stop<'_>,
) -> Result<bool, Interrupted> {
    if kinds.contains_key(name) {
        return Ok(false);
    }
    let hint = hint(name, kinds.keys().copied(), faults, stop)?.map(|meant| format!("; did you mean \"{meant}\"?"));
    let problem = format!("is not a host, a switch or an edge device{}", hint.unwrap_or_default());
    faults.push(KeyFault::of_value(path, quoted(name), problem));
    Ok(true)
}

fn flow_ends(
    flow: &FlowConfig,
    path: &str,
    kinds: &BTreeMap<&str, NodeKind>,
    faults: &mut Vec<KeyFault>,
    stop: &Stop<'_>,
) -> Result<(), Interrupted> {
    for (key, name) in [("from", &flow.from), ("to", &flow.to)] {
        let path = join(path, key);
        if !unknown_node(name, &path, kinds, faults, stop)? && kinds[name.as_str()] != NodeKind::Host {
            faults.push(KeyFault::of_value(path, quoted(name), "is not a host; a flow joins two hosts"));
        }
    }
    if flow.from == flow.to {
        let problem = "is the flow's own source; a flow joins two hosts";
        faults.push(KeyFault::of_value(join(path, "to"), quoted(&flow.to), problem));
    }
    if flow.start > MAX_DURATION {
        let problem = format!("is not a time up to {MAX_DURATION}");
        faults.push(KeyFault::of_value(join(path, "start"), quoted(flow.start), problem));
    }
    Ok(())
}

/// A path as it is written: from the one end to the other, over switches, and nowhere twice.
fn path_form(
    flow: &FlowConfig,
    nodes: &[String],
    path: &str,
    kinds: &BTreeMap<&str, NodeKind>,
    faults: &mut Vec<KeyFault>,
    stop: &Stop<'_>,
) -> Result<(), Interrupted> {
    if nodes.first() != Some(&flow.from) || nodes.last() != Some(&flow.to) {
        let problem = format!("does not lead from \"{}\" to \"{}\"; both ends belong to it", flow.from, flow.to);
        faults.push(KeyFault::of_key(path, problem));
    }
    let mut seen = BTreeSet::new();
    for (j, name) in nodes.iter().enumerate() {
        let at = format!("{path}[{j}]");
        let inside = j > 0 && j.saturating_add(1) < nodes.len();
        stop.step()?;
        if !unknown_node(name, &at, kinds, faults, stop)? && inside && kinds[name.as_str()] == NodeKind::Host {
            faults.push(KeyFault::of_value(&at, quoted(name), "is a host; only switches forward"));
        }
        if !seen.insert(name) {
            faults.push(KeyFault::of_value(&at, quoted(name), "is a loop: the path has been there before"));
        }
    }
    Ok(())
}

/// Every flow has a way to go. The layout of the network, if it is sound.
fn routes(
    config: &GeneralNetwork,
    sound_flows: &[usize],
    faults: &mut Vec<KeyFault>,
    stop: &Stop<'_>,
) -> Result<Option<build::Layout>, Interrupted> {
    let before = faults.len();
    let (graph, index) = build::graph(config, stop)?;
    if let Some(name) = &config.bottleneck {
        let names = graph.links.iter().map(|link| link.name.as_str());
        if !names.clone().any(|link| link == name) {
            let hint = closest(name, names, stop)?.map(|meant| format!("; did you mean \"{meant}\"?"));
            let problem = format!("is not a link{}", hint.unwrap_or_default());
            faults.push(KeyFault::of_value(format!("{NETWORK}.bottleneck"), quoted(name), problem));
        }
    }
    let Some(paths) = build::data_paths(config, &graph, &index, sound_flows, stop)? else {
        let problem =
            format!("cross more than {} links in all; fewer flows, or shorter paths, can be run", build::MAX_CROSSINGS);
        faults.push(KeyFault::of_key(format!("{NETWORK}.flows"), problem));
        return Ok(None);
    };
    let mut joined: BTreeSet<[usize; 2]> = BTreeSet::new();
    if paths.iter().any(Option::is_none) {
        joined.extend(graph.links.iter().map(|link| [link.from, link.to]));
    }
    for (&i, _) in sound_flows.iter().zip(&paths).filter(|(_, path)| path.is_none()) {
        stop.step()?;
        let flow = &config.flows[i];
        let path = format!("{NETWORK}.flows[{i}]");
        let Some(nodes) = &flow.path else {
            let mut problem = format!("cannot be reached from \"{}\": no links lead there through switches", flow.from);
            if !config.edge_devices.is_empty() {
                problem.push_str("; an edge device stands next to a host, not in the middle of a path");
            }
            faults.push(KeyFault::of_value(join(&path, "to"), quoted(&flow.to), problem));
            continue;
        };
        for (j, pair) in nodes.windows(2).enumerate() {
            if !joined.contains(&[index[pair[0].as_str()], index[pair[1].as_str()]]) {
                let problem = format!("has no link from \"{}\"", pair[0]);
                faults.push(KeyFault::of_value(
                    format!("{path}.path[{}]", j.saturating_add(1)),
                    quoted(&pair[1]),
                    problem,
                ));
            }
        }
    }
    if faults.len() > before || sound_flows.len() < config.flows.len() {
        return Ok(None);
    }
    let paths = paths.into_iter().map(|path| path.expect("each has its faults above")).collect();
    let layout = build::general_over(config, graph, paths, stop)?;
    shared_vcs(config, &layout, faults, stop)?;
    Ok(Some(layout))
}

/// Flows of one VC end at one host, and where they come from several they meet once, at a switch.
fn shared_vcs(
    config: &GeneralNetwork,
    layout: &build::Layout,
    faults: &mut Vec<KeyFault>,
    stop: &Stop<'_>,
) -> Result<(), Interrupted> {
    let mut by_vc: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (i, route) in layout.flows.iter().enumerate() {
        stop.step()?;
        by_vc.entry(route.vc.as_deref().unwrap_or(&route.name)).or_default().push(i);
    }
    for (vc, flows) in by_vc {
        let mut refuse = |i: usize, problem: String| {
            faults.push(KeyFault::of_value(format!("{NETWORK}.flows[{i}].vc"), quoted(vc), problem));
        };
        let first = &config.flows[flows[0]];
        let mut branches: Vec<usize> = Vec::new();
        for &i in &flows {
            stop.steps_of([1, branches.len()])?;
            let flow = &config.flows[i];
            let sibling = branches.iter().find(|&&other| config.flows[other].from == flow.from);
            if flow.to != first.to {
                refuse(i, format!("is the VC of flows to \"{}\" too; flows of one VC end at one host", first.to));
            } else if sibling.is_some_and(|&other| layout.flows[other].data != layout.flows[i].data) {
                refuse(i, "is the VC of a flow that leaves the same host on another path; a VC has one".into());
            } else if sibling.is_none() {
                branches.push(i);
            }
        }
        if branches.len() < 2 || flows.iter().any(|&i| config.flows[i].to != first.to) {
            continue;
        }
        let path = |i: usize| layout.flows[i].data.as_slice();
        let name = |link: usize| layout.graph.links[link].name.as_str();
        let paths: Vec<&[usize]> = branches.iter().map(|&i| path(i)).collect();
        let Some(at) = build::meeting(&paths) else {
            refuse(branches[1], "never meets its other flows on a link; flows of one VC arrive over one link".into());
            continue;
        };
        if branches.len() > Merge::MAX_BRANCHES {
            let problem = format!("merges {} sources; {} is the most", branches.len(), Merge::MAX_BRANCHES);
            refuse(branches[Merge::MAX_BRANCHES], problem);
        }
        for pair in branches.windows(2) {
            let earlier = build::meeting(&[path(pair[0]), path(pair[1])]).filter(|&link| link != at);
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

/// How many flows a topology has, and the key that says so.
pub(super) fn flows(topology: &Topology) -> (u64, String) {
    let (flows, key) = match topology {
        Topology::NSource(config) => (u64::from(config.sources), "sources"),
        Topology::VcMerge(config) => (u64::from(config.vcs).saturating_mul(config.sources_per_vc.into()), "vcs"),
        Topology::Internetwork(config) => (u64::from(config.sources).saturating_mul(2), "sources"),
        Topology::Chain(config) => {
            let crossing = u64::from(config.cross).saturating_mul(config.hops.into());
            (crossing.saturating_add(config.long.into()), "cross")
        }
        Topology::Star(config) => (config.pattern.flows(config.hosts), "hosts"),
        Topology::Network(config) => (config.flows.len() as u64, "flows"),
    };
    (flows, format!("topology.{}.{key}", topology.name()))
}

/// A topology written in a few numbers is not larger than what a general network may be.
#[expect(
    clippy::arithmetic_side_effects,
    reason = "products of numbers that have a most: 10^5 of 10^4 in a chain, 10^12 of a star"
)]
fn crossings(topology: &Topology, faults: &mut Vec<KeyFault>) {
    let (flows, key) = flows(topology);
    let crossings = match topology {
        Topology::Chain(config) => {
            let [hops, long] = [config.hops, config.long].map(u64::from);
            long * (hops + 2) + 3 * (flows - long)
        }
        Topology::Star(_) => 2 * flows,
        _ => return,
    };
    if crossings > build::MAX_CROSSINGS as u64 {
        let problem =
            format!("makes {flows} flows, which cross {crossings} links in all; {} is the most", build::MAX_CROSSINGS);
        faults.push(KeyFault::of_key(key, problem));
    }
}
