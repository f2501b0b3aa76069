//! Values against each other, and against the machine: what parses but cannot be run, or should not be trusted.

use std::collections::{BTreeMap, BTreeSet};

use celltrain_core::network::{Link, NodeKind};
use celltrain_core::units::{BitRate, CELL_BITS, Clock, Duration};

use crate::Machine;
use crate::build;
use crate::document::join;
use crate::fault::{KeyFault, Warning, nearest};
use crate::scenario::{FlowConfig, GeneralNetwork, PortConfig, Scenario, Topology};

/// What the checks found.
#[derive(Debug, Default)]
pub struct Verdict {
    /// What is wrong.
    pub faults: Vec<KeyFault>,
    /// What to look at before trusting a result.
    pub warnings: Vec<Warning>,
}

/// Checks a scenario. `refused` are the faults of form found before: what they are about was taken out of it.
pub fn check(scenario: &Scenario, refused: &[KeyFault], machine: Machine) -> Verdict {
    let mut verdict = Verdict::default();
    let faults = &mut verdict.faults;
    if scenario.duration == Duration::default() || scenario.duration > MAX_DURATION {
        let problem = format!("is not a positive time up to {MAX_DURATION}");
        faults.push(KeyFault::of_value("duration", quoted(scenario.duration), problem));
    }
    let tcp = join("tcp", scenario.tcp.name());
    for fault in scenario.tcp.options().check() {
        faults.push(KeyFault::of_value(join(&tcp, &fault.key), fault.value, fault.problem));
    }
    if !(1..=MAX_SDU).contains(&scenario.aal5.max_sdu.bytes) {
        let problem = format!("is outside 1B to {MAX_SDU}B");
        faults.push(KeyFault::of_value("aal5.max_sdu", quoted(scenario.aal5.max_sdu), problem));
    }
    let frames_are_sound = !faults.iter().any(|fault| fault.key.starts_with("tcp.") || fault.key.starts_with("aal5."));
    if frames_are_sound {
        frames(scenario, faults);
    }
    let before = faults.len();
    topology(&scenario.topology, faults);
    memory(scenario, machine, faults);
    // Only a topology without a fault, and not too large to hold, can be laid out.
    let layout = (faults.len() == before).then(|| build::layout(&scenario.topology));
    let largest_frames = match &layout {
        Some(layout) => ports(scenario, layout, refused, faults),
        None => BTreeMap::new(),
    };
    for (name, config) in &scenario.port {
        let largest_frame = largest_frames.get(name.as_str()).copied().filter(|_| frames_are_sound);
        port(&join("port", name), config, largest_frame.unwrap_or(1), faults);
    }
    if faults.is_empty() {
        clock(scenario, &mut verdict);
    }
    verdict
}

/// Eleven days: at the finest clock still far below 2^62 units.
const MAX_DURATION: Duration = Duration::from_milliseconds(1_000_000_000);
/// ITU-T I.363.5: the length field has 16 bits.
const MAX_SDU: u64 = 65_535;
/// Beyond 10 Tb/s a cell takes less than the finest clock can tell.
const MAX_RATE: BitRate = BitRate::from_bits_per_second(10_000_000_000_000);
/// A second a cell: slower is a slip of the unit.
const MIN_RATE: BitRate = BitRate::from_bits_per_second(CELL_BITS);
/// Half an hour, far beyond any orbit.
const MAX_DELAY: Duration = Duration::from_milliseconds(1_800_000);
/// 2 GiB of cells, twelve minutes of an OC-3: beyond it "infinite" is meant.
const MAX_BUFFER: u32 = 1 << 28;

fn quoted(value: impl std::fmt::Display) -> String {
    format!("\"{value}\"")
}

fn topology(topology: &Topology, faults: &mut Vec<KeyFault>) {
    match topology {
        Topology::NSource(config) => {
            link("topology.n_source", ["link_rate", "link_delay"], config.link_rate, config.link_delay, faults);
        }
        Topology::Network(config) => general(config, faults),
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

const NETWORK: &str = "topology.network";

fn general(config: &GeneralNetwork, faults: &mut Vec<KeyFault>) {
    let kinds = nodes(config, faults);
    links(config, &kinds, faults);
    let graph_is_sound = faults.iter().all(|fault| !fault.key.starts_with(NETWORK));
    let mut names = BTreeSet::new();
    let mut sound_flows = Vec::new();
    for (i, flow) in config.flows.iter().enumerate() {
        let before = faults.len();
        let path = format!("{NETWORK}.flows[{i}]");
        let name = flow.name.clone().unwrap_or_else(|| format!("tcp{}", i + 1));
        if !names.insert(name.clone()) {
            let problem = "names two flows; names are different";
            faults.push(KeyFault::of_value(join(&path, "name"), quoted(name), problem));
        }
        flow_ends(flow, &path, &kinds, faults);
        if let Some(nodes) = &flow.path {
            path_form(flow, nodes, &join(&path, "path"), &kinds, faults);
        }
        if faults.len() == before {
            sound_flows.push(i);
        }
    }
    if config.flows.is_empty() {
        faults.push(KeyFault::of_key(format!("{NETWORK}.flows"), "is empty; a run needs at least one flow"));
    }
    if graph_is_sound {
        routes(config, &sound_flows, faults);
    }
}

fn nodes<'a>(config: &'a GeneralNetwork, faults: &mut Vec<KeyFault>) -> BTreeMap<&'a str, NodeKind> {
    let mut kinds = BTreeMap::new();
    for (key, names, kind) in
        [("hosts", &config.hosts, NodeKind::Host), ("switches", &config.switches, NodeKind::Switch)]
    {
        for (i, name) in names.iter().enumerate() {
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
    kinds
}

fn links(config: &GeneralNetwork, kinds: &BTreeMap<&str, NodeKind>, faults: &mut Vec<KeyFault>) {
    let mut joined = BTreeSet::new();
    for (i, config) in config.links.iter().enumerate() {
        let path = format!("{NETWORK}.links[{i}]");
        let (a, b) = (config.between.0.as_str(), config.between.1.as_str());
        for (end, name) in [a, b].into_iter().enumerate() {
            unknown_node(name, &format!("{path}.between[{end}]"), kinds, faults);
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
    }
}

fn unknown_node(name: &str, path: &str, kinds: &BTreeMap<&str, NodeKind>, faults: &mut Vec<KeyFault>) -> bool {
    if kinds.contains_key(name) {
        return false;
    }
    let hint = nearest(name, kinds.keys().copied()).map(|meant| format!("; did you mean \"{meant}\"?"));
    let problem = format!("is not a host or a switch{}", hint.unwrap_or_default());
    faults.push(KeyFault::of_value(path, quoted(name), problem));
    true
}

fn flow_ends(flow: &FlowConfig, path: &str, kinds: &BTreeMap<&str, NodeKind>, faults: &mut Vec<KeyFault>) {
    for (key, name) in [("from", &flow.from), ("to", &flow.to)] {
        let path = join(path, key);
        if !unknown_node(name, &path, kinds, faults) && kinds[name.as_str()] == NodeKind::Switch {
            faults.push(KeyFault::of_value(path, quoted(name), "is a switch; a flow joins two hosts"));
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
}

/// A path as it is written: from the one end to the other, over switches, and nowhere twice.
fn path_form(
    flow: &FlowConfig,
    nodes: &[String],
    path: &str,
    kinds: &BTreeMap<&str, NodeKind>,
    faults: &mut Vec<KeyFault>,
) {
    if nodes.first() != Some(&flow.from) || nodes.last() != Some(&flow.to) {
        let problem = format!("does not lead from \"{}\" to \"{}\"; both ends belong to it", flow.from, flow.to);
        faults.push(KeyFault::of_key(path, problem));
    }
    let mut seen = BTreeSet::new();
    for (j, name) in nodes.iter().enumerate() {
        let at = format!("{path}[{j}]");
        let inside = j > 0 && j + 1 < nodes.len();
        if !unknown_node(name, &at, kinds, faults) && inside && kinds[name.as_str()] == NodeKind::Host {
            faults.push(KeyFault::of_value(&at, quoted(name), "is a host; only switches forward"));
        }
        if !seen.insert(name) {
            faults.push(KeyFault::of_value(&at, quoted(name), "is a loop: the path has been there before"));
        }
    }
}

/// Every flow has a way to go.
fn routes(config: &GeneralNetwork, sound_flows: &[usize], faults: &mut Vec<KeyFault>) {
    let (graph, index) = build::graph(config);
    let leaving = graph.leaving();
    for &i in sound_flows {
        let flow = &config.flows[i];
        let path = format!("{NETWORK}.flows[{i}]");
        let Some(nodes) = &flow.path else {
            if graph.shortest_path(&leaving, index[flow.from.as_str()], index[flow.to.as_str()]).is_none() {
                let problem = format!("cannot be reached from \"{}\": no links lead there through switches", flow.from);
                faults.push(KeyFault::of_value(join(&path, "to"), quoted(&flow.to), problem));
            }
            continue;
        };
        for (j, pair) in nodes.windows(2).enumerate() {
            let (from, to) = (index[pair[0].as_str()], index[pair[1].as_str()]);
            if !leaving[from].iter().any(|&link| graph.links[link].to == to) {
                let problem = format!("has no link from \"{}\"", pair[0]);
                faults.push(KeyFault::of_value(format!("{path}.path[{}]", j + 1), quoted(&pair[1]), problem));
            }
        }
    }
    if let Some(name) = &config.bottleneck {
        let names: Vec<&str> = graph.links.iter().map(|link| link.name.as_str()).collect();
        if !names.contains(&name.as_str()) {
            let hint = nearest(name, names).map(|meant| format!("; did you mean \"{meant}\"?"));
            let problem = format!("is not a link{}", hint.unwrap_or_default());
            faults.push(KeyFault::of_value(format!("{NETWORK}.bottleneck"), quoted(name), problem));
        }
    }
}

/// A segment must fit a frame the receiver collects.
fn frames(scenario: &Scenario, faults: &mut Vec<KeyFault>) {
    let options = scenario.tcp.options();
    let cells = scenario.aal5.segment_cells(options.mss.bytes);
    let most = scenario.aal5.max_cells();
    if cells > most {
        let problem = format!("makes frames of {cells} cells, more than aal5.max_sdu lets a receiver collect ({most})");
        let key = format!("tcp.{}.mss", scenario.tcp.name());
        faults.push(KeyFault::of_value(key, quoted(options.mss), problem));
    }
}

/// Every port that a VC crosses has a table, and every table names a port. The largest frame that crosses the ports of
/// each table, in cells.
fn ports<'a>(
    scenario: &'a Scenario,
    layout: &build::Layout,
    refused: &[KeyFault],
    faults: &mut Vec<KeyFault>,
) -> BTreeMap<&'a str, u32> {
    let mut largest_frame = vec![0; layout.graph.links.len()];
    let mut crossing: Vec<Vec<String>> = vec![Vec::new(); layout.graph.links.len()];
    let data_cells = scenario.aal5.segment_cells(scenario.tcp.options().mss.bytes);
    for flow in &layout.flows {
        let [data, acks] = build::vc_names(&flow.name);
        for (path, cells, vc) in [(&flow.acks, scenario.aal5.segment_cells(0), acks), (&flow.data, data_cells, data)] {
            for &link in path {
                largest_frame[link] = largest_frame[link].max(cells);
                crossing[link].push(vc.clone());
            }
        }
    }
    let from_switch = |link: &&Link| layout.graph.nodes[link.from].kind == NodeKind::Switch;
    let links = || layout.graph.links.iter().filter(from_switch).map(|link| link.name.as_str());
    let known: BTreeSet<&str> = ["bottleneck", "default"].into_iter().chain(links()).collect();
    let meant: BTreeMap<&str, Option<&str>> = scenario
        .port
        .keys()
        .filter(|name| !known.contains(name.as_str()))
        .map(|name| (name.as_str(), nearest(name, known.iter().copied())))
        .collect();
    for (name, meant) in &meant {
        let hint = meant.map(|meant| format!("did you mean \"{meant}\"? ")).unwrap_or_default();
        let link = &layout.graph.links[layout.bottleneck].name;
        let problem = format!(
            "is not an output port of a switch; {hint}It must be bottleneck, default, or a link such as \"{link}\""
        );
        faults.push(KeyFault::of_key(join("port", name), problem));
    }
    let every_vc: Vec<String> = layout.flows.iter().flat_map(|flow| build::vc_names(&flow.name)).collect();
    for (name, config) in &scenario.port {
        for (key, setting) in config.policy.per_vc() {
            let path = join(&join(&join("port", name), "policy"), config.policy.name());
            for unknown in setting.unknown(&every_vc) {
                let hint = nearest(unknown, every_vc.iter().map(String::as_str));
                let hint = hint.map(|meant| format!("did you mean \"{meant}\"? ")).unwrap_or_default();
                let problem =
                    format!("names no VC; {hint}A VC has the name of its flow, its acknowledgements' ends in -acks");
                faults.push(KeyFault::of_key(join(&join(&path, key), unknown), problem));
            }
        }
    }
    let is_n_source = matches!(scenario.topology, Topology::NSource(_));
    let mut used: BTreeMap<&str, u32> = BTreeMap::new();
    for (index, link) in layout.graph.links.iter().enumerate().filter(|(_, link)| from_switch(link)) {
        let is_bottleneck = index == layout.bottleneck;
        let bottleneck = is_bottleneck.then_some("bottleneck");
        let names = [Some(link.name.as_str()), bottleneck, Some("default")];
        let table = names.into_iter().flatten().find_map(|name| scenario.port.get_key_value(name));
        if let Some((name, config)) = table {
            let frame = used.entry(name).or_insert(0);
            *frame = (*frame).max(largest_frame[index]);
            // What was refused has been told of; what it leaves behind is no fault of its own.
            let policy = join(&join(&join("port", name), "policy"), config.policy.name());
            let is_whole = refused.iter().all(|fault| !fault.key.starts_with(&policy));
            if is_whole && per_vc(&policy, config, &link.name, &crossing[index], faults) {
                together(&policy, config, &crossing[index], faults);
            }
            continue;
        }
        if largest_frame[index] == 0 || (is_n_source && !is_bottleneck) {
            continue;
        }
        let shown = if is_bottleneck && is_n_source { "bottleneck" } else { &link.name };
        let path = join("port", shown);
        // A table that was refused, or whose name was misspelt, is not missing as well.
        let is_misspelt = names.into_iter().flatten().any(|name| meant.values().any(|meant| *meant == Some(name)));
        if !is_misspelt && !refused.iter().any(|fault| fault.key.starts_with(&path)) {
            let problem = "has no buffer and no policy; write its table, or [port.default] for all others";
            faults.push(KeyFault::of_key(path, problem));
        }
    }
    used
}

/// Whether every VC that crosses a port has a value for each of its settings that may differ from VC to VC.
fn per_vc(policy: &str, config: &PortConfig, link: &str, crossing: &[String], faults: &mut Vec<KeyFault>) -> bool {
    let mut all = true;
    for (key, setting) in config.policy.per_vc() {
        let without: Vec<&str> = crossing.iter().map(String::as_str).filter(|vc| setting.of(vc).is_none()).collect();
        let Some(first) = without.first() else { continue };
        all = false;
        let others = match without.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        let problem = format!("has no value for \"{first}\"{others}, which cross {link}; name them, or write default");
        let path = join(policy, key);
        if !faults.iter().any(|fault| fault.key == path) {
            faults.push(KeyFault::of_key(path, problem));
        }
    }
    all
}

/// The settings of the VCs that cross a port make sense together. A table for several ports is told of once.
fn together(policy: &str, config: &PortConfig, crossing: &[String], faults: &mut Vec<KeyFault>) {
    let vcs: Vec<&str> = crossing.iter().map(String::as_str).collect();
    for fault in config.policy.check_vcs(config.buffer.cells(), &vcs) {
        let key = below(policy, &fault.key);
        if !faults.iter().any(|fault| fault.key == key) {
            faults.push(KeyFault::of_value(key, fault.value, fault.problem));
        }
    }
}

/// The path of a key that may lead to a value inside a setting, such as `thresholds.tcp1`.
fn below(path: &str, key: &str) -> String {
    key.splitn(2, '.').fold(path.to_string(), |path, key| join(&path, key))
}

fn port(path: &str, config: &PortConfig, largest_frame: u32, faults: &mut Vec<KeyFault>) {
    let capacity = config.buffer.cells();
    if let Some(cells) = capacity {
        let key = join(path, "buffer");
        if cells < largest_frame.max(1) {
            let problem = format!("is smaller than a frame; a buffer holds at least {} cells", largest_frame.max(1));
            faults.push(KeyFault::of_value(key, cells, problem));
        } else if cells > MAX_BUFFER {
            let problem = format!("is more than {MAX_BUFFER} cells; for a buffer without limit write \"infinite\"");
            faults.push(KeyFault::of_value(key, cells, problem));
        }
    }
    let policy = join(&join(path, "policy"), config.policy.name());
    for fault in config.policy.check(capacity) {
        faults.push(KeyFault::of_value(below(&policy, &fault.key), fault.value, fault.problem));
    }
}

/// Bytes a run may come to need: buffers are reserved, windows can all be in flight.
fn memory(scenario: &Scenario, machine: Machine, faults: &mut Vec<KeyFault>) {
    const BYTES_PER_WAITING_CELL: u64 = 12;
    const BYTES_PER_CELL_IN_FLIGHT: u64 = 48;
    const BYTES_PER_FLOW: u64 = 8192;
    let Some(limit) = machine.memory else { return };
    let (flows, key) = match &scenario.topology {
        Topology::NSource(config) => (u64::from(config.sources), "topology.n_source.sources".to_string()),
        Topology::Network(config) => (config.flows.len() as u64, format!("{NETWORK}.flows")),
    };
    let options = scenario.tcp.options();
    let window = (options.receive_window.bytes / options.mss.bytes.max(1)).max(1);
    let frame = options.mss.bytes / celltrain_core::aal5::CELL_PAYLOAD + 2;
    let per_flow = (window.saturating_mul(frame)).saturating_mul(BYTES_PER_CELL_IN_FLIGHT) + BYTES_PER_FLOW;
    let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
    let mut needs = vec![(key, flows.to_string(), flows.saturating_mul(per_flow))];
    for (name, port) in &scenario.port {
        if let Some(cells) = port.buffer.cells() {
            let key = join(&join("port", name), "buffer");
            needs.push((key, cells.to_string(), u64::from(cells) * BYTES_PER_WAITING_CELL));
        }
    }
    let total = needs.iter().fold(0u64, |sum, need| sum.saturating_add(need.2));
    if total > limit / 4 * 3 {
        let (key, value, _) = needs.into_iter().max_by_key(|need| need.2).expect("flows are always there");
        let problem = format!(
            "asks for {:.1} GiB of memory in all; this machine has {:.1} GiB, of which a run may use three quarters",
            gib(total),
            gib(limit)
        );
        faults.push(KeyFault::of_value(key, value, problem));
    }
}

fn clock(scenario: &Scenario, verdict: &mut Verdict) {
    let network = build::network(scenario, scenario.seed);
    let clock: Clock = network.clock();
    if !clock.exact {
        verdict.warnings.push(Warning {
            key: "topology".into(),
            message:
                "its rates and delays share no unit of time down to a picosecond: times are rounded, and cells that \
                      should tie may not. Use rates with a common divisor to be exact."
                    .into(),
        });
    }
}
