//! Values against each other, and against the machine: what parses but cannot be run, or should not be trusted.

mod memory;
mod rate_control;
mod topology;

use std::collections::{BTreeMap, BTreeSet};

use celltrain_core::abr::allocator::AllocatorConfig;
use celltrain_core::error::Fault;
use celltrain_core::footprint::Footprint;
use celltrain_core::names::{is_in_range, number_in_range, range};
use celltrain_core::network::{Link, Network, NodeKind, atm_part};
use celltrain_core::policy::{Overflow, PerVc};
use celltrain_core::scheduler::{Class, SchedulerConfig};
use celltrain_core::stop::{Interrupted, Stop};
use celltrain_core::tcp::TcpConfig;
use celltrain_core::tcp::scoreboard::MAX_OPTION_BYTES;
use celltrain_core::traffic::{Pattern, TrafficConfig};
use celltrain_core::units::{BitRate, Bytes, CELL_BITS, Clock, Duration};

use crate::Machine;
use crate::build;
use crate::document::join;
use crate::fault::{KeyFault, Warning, nearest};
use crate::scenario::{PortConfig, Scenario, Topology, VcOptions};

/// What the checks found.
#[derive(Debug, Default)]
pub struct Verdict {
    /// What is wrong.
    pub faults: Vec<KeyFault>,
    /// What to look at before trusting a result.
    pub warnings: Vec<Warning>,
    /// What a run takes of memory, when nothing else is wrong.
    pub footprint: Option<Footprint>,
    /// The network that would be run, when nothing else is wrong.
    pub network: Option<Network>,
    /// Whether one of the faults is that it does not fit the memory there is.
    pub does_not_fit: bool,
}

/// A scenario whose topology is laid out.
#[derive(Clone, Copy)]
struct Laid<'a> {
    scenario: &'a Scenario,
    layout: &'a build::Layout,
    channels: &'a build::Channels,
    /// Faults of form: what they are about was taken out of the scenario.
    refused: &'a [KeyFault],
    stop: &'a Stop<'a>,
}

/// Checks a scenario. `refused` are the faults of form found before: what they are about was taken out of it.
///
/// # Errors
/// When it is told to stop.
pub fn check(
    scenario: &Scenario,
    refused: &[KeyFault],
    machine: Machine,
    stop: &Stop<'_>,
) -> Result<Verdict, Interrupted> {
    let mut verdict = Verdict::default();
    let faults = &mut verdict.faults;
    if scenario.duration == Duration::default() || scenario.duration > MAX_DURATION {
        let problem = format!("is not a positive time up to {MAX_DURATION}");
        faults.push(KeyFault::of_value("duration", quoted(scenario.duration), problem));
    }
    for (key, tcp) in tcps(scenario) {
        for fault in tcp.options().check() {
            faults.push(KeyFault::of_value(join(&key, &fault.key), fault.value, fault.problem));
        }
    }
    for (name, options) in &scenario.flow {
        if let Some(start) = options.start.filter(|&start| start > MAX_DURATION) {
            let problem = format!("is not a time up to {MAX_DURATION}");
            faults.push(KeyFault::of_value(join(&join("flow", name), "start"), quoted(start), problem));
        }
    }
    if !(1..=MAX_SDU).contains(&scenario.aal5.max_sdu.bytes) {
        let problem = format!("is outside 1B to {MAX_SDU}B");
        faults.push(KeyFault::of_value("aal5.max_sdu", quoted(scenario.aal5.max_sdu), problem));
    }
    traffic(scenario, faults);
    file_size(scenario, faults);
    let about_frames = |key: &str| ["tcp.", "aal5.", "flow."].iter().any(|table| key.starts_with(table));
    let frames_are_sound = !faults.iter().any(|fault| about_frames(&fault.key));
    if frames_are_sound {
        frames(scenario, faults);
    }
    let before = faults.len();
    let laid_out = topology::check(&scenario.topology, faults, stop)?;
    verdict.does_not_fit = memory::before_layout(scenario, machine, faults);
    // Only a topology without a fault, and not too large to hold, can be laid out.
    let layout = match laid_out.filter(|_| faults.len() == before) {
        None if faults.len() == before => Some(build::layout(&scenario.topology, stop)?),
        found => found,
    };
    let channels = match &layout {
        Some(layout) => build::channels(layout, stop)?,
        None => build::Channels::default(),
    };
    let laid = layout.as_ref().map(|layout| Laid { scenario, layout, channels: &channels, refused, stop });
    let largest_frames = match laid {
        Some(laid) => {
            flow_tables(laid, faults)?;
            rate_control::paths(laid, faults)?;
            rate_control::edges(laid, faults)?;
            files(laid, faults)?;
            contracts(laid, faults)?;
            ports(laid, faults)?
        }
        None => BTreeMap::new(),
    };
    for (name, config) in &scenario.port {
        let largest_frame = largest_frames.get(name.as_str()).copied().filter(|_| frames_are_sound);
        port(&join("port", name), config, largest_frame.unwrap_or(1), faults);
    }
    if let Some(laid) = laid.filter(|_| faults.is_empty()) {
        rates(laid, &mut verdict.warnings)?;
        beyond(laid, &mut verdict.warnings)?;
        if let Topology::Network(_) = scenario.topology {
            islands(laid, &mut verdict.warnings)?;
        }
    }
    if let Some(layout) = layout.filter(|_| verdict.faults.is_empty()) {
        let network = build::network_on(layout, scenario, scenario.seed, stop)?;
        clock(&network, &mut verdict.warnings);
        verdict.footprint = Some(memory::of_run(scenario, &network, machine, &mut verdict.faults, stop)?);
        verdict.does_not_fit = !verdict.faults.is_empty();
        verdict.network = Some(network);
    }
    Ok(verdict)
}

/// Eleven days: at the finest clock still far below 2^62 units.
const MAX_DURATION: Duration = Duration::from_milliseconds(1_000_000_000);
/// ITU-T I.363.5: the length field has 16 bits.
const MAX_SDU: u64 = 65_535;
/// RFC 768 and RFC 791: 65535 bytes less 28 of headers.
const MAX_PACKET: u64 = 65_507;
/// A year of an OC-3.
const MAX_FILE: u64 = 1 << 50;
/// Shorter is a slip of the unit.
const MIN_BURST: Duration = Duration::from_microseconds(1);
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

/// The TCP of all flows and those some flows have of their own, by key.
fn tcps(scenario: &Scenario) -> Vec<(String, &TcpConfig)> {
    let mut tcps = vec![(join("tcp", scenario.tcp.name()), &scenario.tcp)];
    for (name, options) in &scenario.flow {
        if let Some(tcp) = &options.tcp {
            tcps.push((join(&join(&join("flow", name), "tcp"), tcp.name()), tcp));
        }
    }
    tcps
}

/// The packets of all flows that are not TCP's, and the keys they stand under.
fn packets(scenario: &Scenario) -> impl Iterator<Item = (&str, String, Pattern<'_>)> {
    scenario.flow.iter().filter_map(|(name, options)| {
        let traffic = options.traffic.as_ref()?;
        Some((name.as_str(), join(&join(&join("flow", name), "traffic"), traffic.name()), traffic.packets()?))
    })
}

/// What flows have to send can be sent.
fn traffic(scenario: &Scenario, faults: &mut Vec<KeyFault>) {
    for (name, path, pattern) in packets(scenario) {
        if pattern.rate < MIN_RATE || pattern.rate > MAX_RATE {
            let problem = format!("is not a positive rate from {MIN_RATE} to {MAX_RATE}");
            faults.push(KeyFault::of_value(join(&path, "rate"), quoted(pattern.rate), problem));
        }
        let most = scenario.aal5.max_cells();
        if !(1..=MAX_PACKET).contains(&pattern.packet.bytes) {
            let problem = format!("is outside 1B to {MAX_PACKET}B, what UDP and IP carry");
            faults.push(KeyFault::of_value(join(&path, "packet"), quoted(pattern.packet), problem));
        } else if scenario.aal5.packet_cells(pattern.packet.bytes) > most {
            let cells = scenario.aal5.packet_cells(pattern.packet.bytes);
            let problem =
                format!("makes frames of {cells} cells, more than aal5.max_sdu lets a receiver collect ({most})");
            faults.push(KeyFault::of_value(join(&path, "packet"), quoted(pattern.packet), problem));
        }
        for (key, time) in pattern.bursts.into_iter().flat_map(|bursts| [("on", bursts.on), ("off", bursts.off)]) {
            if time < MIN_BURST || time > MAX_DURATION {
                let problem = format!("is not a time from {MIN_BURST} to {MAX_DURATION}");
                faults.push(KeyFault::of_value(join(&path, key), quoted(time), problem));
            }
        }
        if let Some(tcp) = &scenario.flow[name].tcp {
            let key = join(&join(&join("flow", name), "tcp"), tcp.name());
            faults
                .push(KeyFault::of_key(key, "sends nothing: the flow's traffic is packets without TCP; leave it out"));
        }
    }
    for (name, options) in &scenario.flow {
        let Some(file) = options.traffic.as_ref().and_then(TrafficConfig::bytes) else { continue };
        if !(1..=MAX_FILE).contains(&file.bytes) {
            let problem = format!("is outside 1B to {}", Bytes { bytes: MAX_FILE });
            let kind = options.traffic.as_ref().map_or("", TrafficConfig::name);
            let key = join(&join(&join(&join("flow", name), "traffic"), kind), "bytes");
            faults.push(KeyFault::of_value(key, quoted(file), problem));
        }
    }
    for (name, options) in &scenario.flow {
        let Some(bursts) = options.traffic.as_ref().and_then(TrafficConfig::bursts) else { continue };
        if bursts.pause < MIN_BURST || bursts.pause > MAX_DURATION {
            let problem = format!("is not a time from {MIN_BURST} to {MAX_DURATION}");
            let key = join(&join(&join(&join("flow", name), "traffic"), "bursts"), "pause");
            faults.push(KeyFault::of_value(key, quoted(bursts.pause), problem));
        }
    }
}

/// The files of a measure hold a segment each at least: a smaller one takes as long as the segment it is in.
fn file_size(scenario: &Scenario, faults: &mut Vec<KeyFault>) {
    let Some(size) = scenario.measure.file_size else { return };
    let longest = tcps(scenario).into_iter().map(|(_, tcp)| tcp.options().mss).max().expect("a scenario has a TCP");
    let least = longest.bytes.clamp(1, MAX_FILE);
    if !(least..=MAX_FILE).contains(&size.bytes) {
        let most = Bytes { bytes: MAX_FILE };
        let problem = format!("is outside one segment ({least}B) to {most}; the papers have 100kB");
        faults.push(KeyFault::of_value("measure.file_size", quoted(size), problem));
    }
}

/// There is a stream to cut into files.
fn files(laid: Laid<'_>, faults: &mut Vec<KeyFault>) -> Result<(), Interrupted> {
    let Laid { scenario, layout, stop, .. } = laid;
    let Some(size) = scenario.measure.file_size else { return Ok(()) };
    let own_traffic = |flow: &build::Route| build::flow_options(scenario, &flow.name)?.traffic.as_ref();
    let mut streams = false;
    for flow in &layout.flows {
        stop.steps_of([1, scenario.flow.len()])?;
        streams |= own_traffic(flow).is_none_or(|traffic| traffic.packets().is_none());
        if streams {
            break;
        }
    }
    if !streams {
        let problem = "cuts no stream: the traffic of every flow is packets without TCP; leave it out";
        faults.push(KeyFault::of_value("measure.file_size", quoted(size), problem));
    }
    Ok(())
}

/// Packets come no faster than the host's link can send them, or its queue grows without end.
fn rates(laid: Laid<'_>, warnings: &mut Vec<Warning>) -> Result<(), Interrupted> {
    let Laid { scenario, layout, stop, .. } = laid;
    for (name, path, pattern) in packets(scenario) {
        let meant = |flow: &&build::Route| {
            flow.name == name || (is_in_range(name, &flow.name) && !scenario.flow.contains_key(&flow.name))
        };
        stop.steps(layout.flows.len() / 8)?;
        let slow = layout.flows.iter().filter(meant).map(|flow| &layout.graph.links[flow.data[0]]);
        if let Some(link) = slow.filter(|link| link.rate < pattern.rate).min_by_key(|link| link.rate) {
            warnings.push(Warning {
                key: join(&path, "rate"),
                message: format!(
                    "{} is above the {} of {}: the source's own queue grows all the time it sends, and what counts as sent \
                     may never leave",
                    pattern.rate, link.rate, link.name
                ),
            });
        }
    }
    Ok(())
}

/// Nodes on no link, and nodes whose links lead to none that a flow crosses: a line of the file was forgotten, perhaps.
fn islands(laid: Laid<'_>, warnings: &mut Vec<Warning>) -> Result<(), Interrupted> {
    let Laid { layout, stop, .. } = laid;
    let graph = &layout.graph;
    // Each node points towards one that stands for all its links lead to.
    let mut towards: Vec<usize> = (0..graph.nodes.len()).collect();
    let mut is_on_a_link = vec![false; graph.nodes.len()];
    for link in stop.each(&graph.links) {
        let link = link?;
        let [a, b] = [link.from, link.to].map(|node| root(&mut towards, node));
        towards[a.max(b)] = a.min(b);
        is_on_a_link[link.from] = true;
    }
    let mut is_used = vec![false; graph.nodes.len()];
    for flow in stop.each(&layout.flows) {
        let flow = flow?;
        is_used[root(&mut towards, graph.links[flow.data[0]].from)] = true;
    }
    let (mut alone, mut cut_off) = (Vec::new(), Vec::new());
    for (node, &is_on_a_link) in is_on_a_link.iter().enumerate() {
        if !is_on_a_link {
            alone.push(node);
        } else if !is_used[root(&mut towards, node)] {
            cut_off.push(node);
        }
    }
    for (nodes, [one, several]) in [
        (alone, ["is on no link", "are on no link"]),
        (cut_off, ["has no way to the nodes that flows cross", "have no way to the nodes that flows cross"]),
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
            key: format!("{}.links", topology::NETWORK),
            message: format!("{message}: nothing is sent there; leave out what is not needed, or link it"),
        });
    }
    Ok(())
}

fn kind_name(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Host => "host",
        NodeKind::Switch => "switch",
        NodeKind::EdgeDevice => "edge device",
    }
}

/// The node that stands for all that links lead to from this one. Whoever looks halves the way, so that ways stay short.
fn root(towards: &mut [usize], mut node: usize) -> usize {
    while towards[node] != node {
        towards[node] = towards[towards[node]];
        node = towards[node];
    }
    node
}

/// The cells of a flow's full segments or packets, and of its longest acknowledgements.
fn frame_cells(scenario: &Scenario, flow: &str) -> [u32; 2] {
    let own = build::flow_options(scenario, flow);
    let packets = own.and_then(|own| own.traffic.as_ref()).and_then(TrafficConfig::packets);
    if let Some(pattern) = packets {
        return [scenario.aal5.packet_cells(pattern.packet.bytes), 0];
    }
    let tcp = own.and_then(|own| own.tcp.as_ref()).unwrap_or(&scenario.tcp);
    let ack_options = if tcp.selective() { MAX_OPTION_BYTES } else { 0 };
    [tcp.options().mss.bytes, ack_options].map(|bytes| scenario.aal5.segment_cells(bytes))
}

/// Every table of a flow is about one.
fn flow_tables(laid: Laid<'_>, faults: &mut Vec<KeyFault>) -> Result<(), Interrupted> {
    let Laid { scenario, layout, stop, .. } = laid;
    let known: BTreeSet<&str> = layout.flows.iter().map(|flow| flow.name.as_str()).collect();
    for key in scenario.flow.keys() {
        stop.step()?;
        let mut names = layout.flows.iter().map(|flow| flow.name.as_str());
        if known.contains(key.as_str()) || any(names.clone(), |name| is_in_range(key, name), stop)? {
            continue;
        }
        let example = names.next().unwrap_or_default();
        let hint =
            hint(key, names, faults, stop)?.map(|meant| format!("did you mean \"{meant}\"? ")).unwrap_or_default();
        let problem = format!("is not a flow; {hint}Write a flow's name such as \"{example}\", or a range of names");
        faults.push(KeyFault::of_key(join("flow", key), problem));
    }
    Ok(())
}

/// Whether something holds of any of these names.
fn any<'a>(
    names: impl IntoIterator<Item = &'a str>,
    holds: impl Fn(&str) -> bool,
    stop: &Stop<'_>,
) -> Result<bool, Interrupted> {
    for name in stop.each(names) {
        if holds(name?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The VCs a table of theirs is for.
fn meant_vcs(laid: Laid<'_>, key: &str) -> Result<Vec<usize>, Interrupted> {
    let Laid { scenario, channels, stop, .. } = laid;
    let meant = |vc: &str| vc == key || (is_in_range(key, vc) && !scenario.vc.contains_key(vc));
    let mut vcs = Vec::new();
    for (number, vc) in channels.vcs.iter().enumerate() {
        stop.step()?;
        if meant(&vc.name) {
            vcs.push(number);
        }
    }
    Ok(vcs)
}

/// Every table of a VC is about one, its contract can hold, and no link has promised more than it has.
fn contracts(laid: Laid<'_>, faults: &mut Vec<KeyFault>) -> Result<(), Interrupted> {
    let Laid { scenario, layout, channels, stop, .. } = laid;
    if scenario.vc.is_empty() {
        return Ok(());
    }
    let names = || channels.vcs.iter().map(|vc| vc.name.as_str());
    let mut longest_frame: BTreeMap<usize, u32> = BTreeMap::new();
    for (flow, vcs) in layout.flows.iter().zip(&channels.of_flow) {
        stop.steps_of([1, scenario.flow.len()])?;
        for (vc, cells) in vcs.iter().zip(frame_cells(scenario, &flow.name)) {
            let longest = longest_frame.entry(*vc).or_insert(0);
            *longest = cells.max(*longest);
        }
    }
    let mut promised: BTreeMap<usize, u64> = BTreeMap::new();
    for (key, options) in &scenario.vc {
        let path = join("vc", key);
        let vcs = meant_vcs(laid, key)?;
        if vcs.is_empty() {
            let hint =
                closest(key, names(), stop)?.map(|meant| format!("did you mean \"{meant}\"? ")).unwrap_or_default();
            let problem =
                format!("is not a VC; {hint}A VC has the name of its flow, its acknowledgements' ends in -acks");
            faults.push(KeyFault::of_key(&path, problem));
        }
        let Some(gfr) = &options.gfr else { continue };
        let path = join(&path, "gfr");
        let mut found: Vec<Fault> = Vec::new();
        for &vc in &vcs {
            stop.step()?;
            let path = &channels.vcs[vc].path;
            let first = path[atm_part(&layout.graph.nodes, &layout.graph.links, path).start];
            let first = &layout.graph.links[first];
            for fault in gfr.check(first.rate, longest_frame[&vc]) {
                if !found.iter().any(|other| other.key == fault.key) {
                    found.push(fault);
                }
            }
            for &link in &channels.vcs[vc].path {
                let sum = promised.entry(link).or_insert(0);
                *sum = sum.saturating_add(gfr.mcr.bits_per_second);
            }
        }
        let of_value = |fault: Fault| KeyFault::of_value(join(&path, &fault.key), fault.value, fault.problem);
        faults.extend(found.into_iter().map(of_value));
    }
    taken_out(laid, faults)?;
    rate_control::abr(laid, &mut promised, faults)?;
    let more = |&(&link, &sum): &(&usize, &u64)| sum > layout.graph.links[link].rate.bits_per_second;
    if let Some((&link, &sum)) = promised.iter().rev().filter(more).max_by_key(|&(_, &sum)| sum) {
        let link = &layout.graph.links[link];
        let problem = format!(
            "promises VCs {} in all over {}, which has {}; the sum of mcr must not be above it",
            BitRate::from_bits_per_second(sum),
            link.name,
            link.rate
        );
        faults.push(KeyFault::of_key("vc", problem));
    }
    Ok(())
}

/// No table takes a VC out of a range with a service, ABR or a guaranteed frame rate, without a word: one table counts for a VC.
fn taken_out(laid: Laid<'_>, faults: &mut Vec<KeyFault>) -> Result<(), Interrupted> {
    let Laid { scenario, channels, refused, stop, .. } = laid;
    let service = |own: &VcOptions| match (&own.abr, &own.gfr) {
        (Some(_), _) => Some("abr"),
        (None, Some(_)) => Some("gfr"),
        (None, None) => None,
    };
    let ranges: Vec<(&String, &str)> = scenario
        .vc
        .iter()
        .filter_map(|(key, own)| Some((key, service(own)?)))
        .filter(|(key, _)| range(key).is_some())
        .collect();
    for vc in channels.vcs.iter().map(|vc| vc.name.as_str()) {
        stop.steps_of([1, scenario.vc.len()])?;
        let Some((table, own)) = build::vc_table(scenario, vc).filter(|_| !ranges.is_empty()) else { continue };
        let Some((all, service)) = ranges.iter().find(|(key, _)| is_in_range(key, vc)) else { continue };
        let path = join("vc", table);
        let is_told = |fault: &KeyFault| fault.key == path || fault.key.starts_with(&format!("{path}."));
        if own.abr.is_none() && own.gfr.is_none() && !faults.iter().chain(refused).any(is_told) {
            let problem = format!(
                "takes {vc} out of [vc.{all}.{service}]: one table counts for a VC, that of its name or the first range; write \
                 [vc.{table}.{service}] too, or leave {vc} out of the range"
            );
            faults.push(KeyFault::of_key(path, problem));
        }
    }
    Ok(())
}

/// Ranges that go on beyond the last connection: a number was mistaken, perhaps.
fn beyond(laid: Laid<'_>, warnings: &mut Vec<Warning>) -> Result<(), Interrupted> {
    let Laid { scenario, layout, channels, stop, .. } = laid;
    let flows: Vec<&str> = layout.flows.iter().map(|flow| flow.name.as_str()).collect();
    let vcs: Vec<&str> = channels.vcs.iter().map(|vc| vc.name.as_str()).collect();
    let tables =
        [("flow", &flows, scenario.flow.keys().collect::<Vec<_>>()), ("vc", &vcs, scenario.vc.keys().collect())];
    for (kind, names, keys) in tables {
        for key in keys {
            let Some((stem, numbers)) = range(key) else { continue };
            stop.steps(names.len() / 8)?;
            let last = names.iter().filter_map(|name| Some((number_in_range(key, name)?, name))).max();
            if let Some((_, name)) = last.filter(|(number, _)| number < numbers.end()) {
                let (key, end) = (join(kind, key), numbers.end());
                let message = format!(
                    "the range {key} goes on to {stem}{end}, and {name} is the last there is; the rest is about nothing"
                );
                warnings.push(Warning { key, message });
            }
        }
    }
    Ok(())
}

/// The name that was meant, perhaps. Whoever has made many faults has not mistyped them, and looking through all names for each
/// would take its time.
fn hint<'a>(
    given: &str,
    names: impl IntoIterator<Item = &'a str>,
    faults: &[KeyFault],
    stop: &Stop<'_>,
) -> Result<Option<&'a str>, Interrupted> {
    const MOST: usize = 100;
    if faults.len() < MOST { closest(given, names, stop) } else { Ok(None) }
}

/// The name most like `given`, if one is like enough to be meant.
fn closest<'a>(
    given: &str,
    names: impl IntoIterator<Item = &'a str>,
    stop: &Stop<'_>,
) -> Result<Option<&'a str>, Interrupted> {
    let mut stopped = Ok(());
    let found = nearest(given, stop.each(names).map_while(|name| name.map_err(|error| stopped = Err(error)).ok()));
    stopped.map(|()| found)
}

/// A segment must fit a frame the receiver collects.
fn frames(scenario: &Scenario, faults: &mut Vec<KeyFault>) {
    for (key, tcp) in tcps(scenario) {
        let mss = tcp.options().mss;
        let cells = scenario.aal5.segment_cells(mss.bytes);
        let most = scenario.aal5.max_cells();
        if cells > most {
            let problem =
                format!("makes frames of {cells} cells, more than aal5.max_sdu lets a receiver collect ({most})");
            faults.push(KeyFault::of_value(join(&key, "mss"), quoted(mss), problem));
        }
    }
}

/// Every port that a VC crosses has a table, and every table names a port. The largest frame that crosses the ports of
/// each table, in cells.
fn ports<'a>(laid: Laid<'a>, faults: &mut Vec<KeyFault>) -> Result<BTreeMap<&'a str, u32>, Interrupted> {
    let Laid { scenario, layout, refused, stop, .. } = laid;
    let mut largest_frame = vec![0; layout.graph.links.len()];
    for flow in &layout.flows {
        stop.steps_of([1, scenario.flow.len()])?;
        let [data_cells, ack_cells] = frame_cells(scenario, &flow.name);
        for (path, cells) in [(&flow.acks, ack_cells), (&flow.data, data_cells)] {
            for &link in path {
                largest_frame[link] = largest_frame[link].max(cells);
            }
        }
    }
    let settings = scenario.port.iter().flat_map(|(name, port)| by_vc(name, port)).flat_map(|(_, settings)| settings);
    let crossing = if settings.count() > 0 { crossing(laid)? } else { vec![Vec::new(); layout.graph.links.len()] };
    merging(laid, faults)?;
    classes(laid, faults)?;
    let from_switch = |link: &&Link| layout.graph.nodes[link.from].kind == NodeKind::Switch;
    let links = || layout.graph.links.iter().filter(from_switch).map(|link| link.name.as_str());
    let known: BTreeSet<&str> = ["bottleneck", "default"].into_iter().chain(links()).collect();
    let mut meant: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    for name in scenario.port.keys().map(String::as_str) {
        stop.step()?;
        if !known.contains(name) && !any(links(), |link| build::matches_link(name, link), stop)? {
            meant.insert(name, hint(name, known.iter().copied(), faults, stop)?);
        }
    }
    for (name, meant) in &meant {
        let hint = meant.map(|meant| format!("did you mean \"{meant}\"? ")).unwrap_or_default();
        let link = &layout.graph.links[layout.bottleneck].name;
        let problem = format!(
            "is not an output port of a switch; {hint}It must be bottleneck, default, or a link such as \"{link}\""
        );
        faults.push(KeyFault::of_key(join("port", name), problem));
    }
    let every_vc: BTreeSet<&String> = crossing.iter().flatten().collect();
    let every_vc: Vec<String> = every_vc.into_iter().cloned().collect();
    for (name, config) in &scenario.port {
        for (path, settings) in by_vc(name, config) {
            let unknown =
                |(key, setting): (&'static str, &'a PerVc)| setting.unknown(&every_vc).map(move |vc| (key, vc));
            for (key, unknown) in settings.into_iter().flat_map(unknown) {
                let hint = closest(unknown, every_vc.iter().map(String::as_str), stop)?;
                let hint = hint.map(|meant| format!("did you mean \"{meant}\"? ")).unwrap_or_default();
                let problem =
                    format!("names no VC; {hint}A VC has the name of its flow, its acknowledgements' ends in -acks");
                faults.push(KeyFault::of_key(join(&join(&path, key), unknown), problem));
            }
        }
    }
    let congests = congesting(laid)?;
    let can_fill = rate_control::can_fill(laid)?;
    let is_general = matches!(scenario.topology, Topology::Network(_));
    let mut used: BTreeMap<&str, u32> = BTreeMap::new();
    for (index, link) in layout.graph.links.iter().enumerate().filter(|(_, link)| from_switch(link)) {
        stop.steps_of([1, scenario.port.len(), crossing[index].len()])?;
        let is_bottleneck = index == layout.bottleneck;
        let bottleneck = is_bottleneck.then_some("bottleneck");
        let names = [Some(link.name.as_str()), bottleneck, Some("default")];
        if let Some((name, config)) = build::port_of(scenario, &link.name, is_bottleneck) {
            let frame = used.entry(name).or_insert(0);
            *frame = (*frame).max(largest_frame[index]);
            // What was refused has been told of; what it leaves behind is no fault of its own.
            let crossing = &crossing[index];
            for ((path, settings), is_policy) in by_vc(name, config).into_iter().zip([true, false]) {
                let is_whole = refused.iter().all(|fault| !fault.key.starts_with(&path));
                let all = is_whole && per_vc(&path, settings, &link.name, crossing, faults);
                if all {
                    let vcs: Vec<&str> = crossing.iter().map(String::as_str).collect();
                    let told = if is_policy {
                        config.policy.check_vcs(config.buffer.cells(), &vcs)
                    } else {
                        config.scheduler.check_vcs(&vcs)
                    };
                    together(&path, told, faults);
                }
            }
            continue;
        }
        let filled = can_fill.get(&index);
        if largest_frame[index] == 0 || !(congests[index] || filled.is_some()) {
            continue;
        }
        let shown = if is_bottleneck && !is_general { "bottleneck" } else { &link.name };
        let path = join("port", shown);
        // A table that was refused, or whose name was misspelt, is not missing as well.
        let is_misspelt = names.into_iter().flatten().any(|name| meant.values().any(|meant| *meant == Some(name)));
        if !is_misspelt && !refused.iter().any(|fault| fault.key.starts_with(&path)) {
            let problem = match filled.filter(|_| !congests[index]) {
                Some((comes, vc)) => format!(
                    "has no table and no allocator, and carries the ABR VC {vc}: up to {} can come to its {}; write its table, \
                     or [port.default] for all others, with an allocator ({})",
                    BitRate::from_bits_per_second(*comes),
                    link.rate,
                    AllocatorConfig::NAMES.join(", ")
                ),
                None => "has no buffer and no policy; write its table, or [port.default] for all others".into(),
            };
            faults.push(KeyFault::of_key(path, problem));
        }
    }
    Ok(used)
}

/// The ports that need a table, by link: all of a general network, of the others those that may come to be the bottleneck of
/// several connections.
#[expect(clippy::arithmetic_side_effects, reason = "counts of flows in memory, of which a network has 10^7 at most")]
fn congesting(laid: Laid<'_>) -> Result<Vec<bool>, Interrupted> {
    let Laid { scenario, layout, stop, .. } = laid;
    let links = layout.graph.links.len();
    Ok(match scenario.topology {
        Topology::Network(_) => vec![true; links],
        Topology::Chain(_) | Topology::Star(_) => {
            let mut crossing = vec![0u32; links];
            for flow in stop.each(&layout.flows) {
                for &link in &flow?.data {
                    crossing[link] += 1;
                }
            }
            (0..links).map(|link| link == layout.bottleneck || crossing[link] > 1).collect()
        }
        Topology::NSource(_) | Topology::VcMerge(_) | Topology::Internetwork(_) => {
            (0..links).map(|link| link == layout.bottleneck).collect()
        }
    })
}

/// The names of the VCs that cross each link.
fn crossing(laid: Laid<'_>) -> Result<Vec<Vec<String>>, Interrupted> {
    let Laid { layout, channels, stop, .. } = laid;
    let mut crossing: Vec<Vec<String>> = vec![Vec::new(); layout.graph.links.len()];
    let mut merged = BTreeSet::new();
    for vc in &channels.vcs {
        stop.steps(vc.path.len())?;
        let merge = vc.merge.map(|merge| &channels.merges[merge]);
        let mut name = &vc.name;
        for &link in &vc.path {
            // Only what has merged comes by more than once.
            if name == &vc.name || merged.insert((link, vc.merge)) {
                crossing[link].push(name.clone());
            }
            if let Some(merge) = merge.filter(|merge| merge.at == link) {
                name = &merge.name;
            }
        }
    }
    Ok(crossing)
}

/// A port where VCs merge keeps frames whole, so its policy must not take cells out of them.
fn merging(laid: Laid<'_>, faults: &mut Vec<KeyFault>) -> Result<(), Interrupted> {
    let Laid { scenario, layout, channels, stop, .. } = laid;
    for merge in &channels.merges {
        stop.steps_of([1, scenario.port.len()])?;
        let link = &layout.graph.links[merge.at].name;
        let Some((name, port)) = build::port_of(scenario, link, merge.at == layout.bottleneck) else { continue };
        if port.scheduler != SchedulerConfig::default() {
            let problem = format!("has queues of its own, and {link} merges VCs into one queue; leave it out there");
            let key = join(&join(&join("port", name), "scheduler"), port.scheduler.name());
            if !faults.iter().any(|fault| fault.key == key) {
                faults.push(KeyFault::of_key(key, problem));
            }
        }
        let policy = port.policy.build(Some(1), &[]);
        let reason = match policy.overflow() {
            Overflow::PushOutFront => Some("takes cells out of waiting frames"),
            _ if policy.follows_cells() => Some("follows cells through the queue one by one"),
            _ => None,
        };
        if let Some(reason) = reason {
            let problem = format!("{reason}, and {link} merges VCs, whose frames leave whole; choose another policy");
            let key = join(&join(&join("port", name), "policy"), port.policy.name());
            if !faults.iter().any(|fault| fault.key == key) {
                faults.push(KeyFault::of_key(key, problem));
            }
        }
    }
    Ok(())
}

/// A scheduler by class has classes to tell apart, at one at least of the ports its table stands for.
fn classes(laid: Laid<'_>, faults: &mut Vec<KeyFault>) -> Result<(), Interrupted> {
    let Laid { scenario, layout, channels, stop, .. } = laid;
    if !scenario.port.values().any(|port| port.scheduler.by_class()) {
        return Ok(());
    }
    let mut crossing: Vec<BTreeSet<Class>> = vec![BTreeSet::new(); layout.graph.links.len()];
    for vc in &channels.vcs {
        stop.steps_of([vc.path.len(), scenario.vc.len()])?;
        let class = build::vc_options(scenario, &vc.name).map(|own| own.class).unwrap_or_default();
        for &link in &vc.path {
            crossing[link].insert(class);
        }
    }
    let mut with_abr = vec![(false, false); layout.graph.links.len()];
    for &[data_vc, ack_vc] in &channels.of_flow {
        stop.steps_of([1, scenario.vc.len()])?;
        let is_abr = build::vc_options(scenario, &channels.vcs[data_vc].name).is_some_and(|own| own.abr.is_some());
        for &link in channels.vcs[data_vc].path.iter().chain(&channels.vcs[ack_vc].path) {
            let (some, others) = &mut with_abr[link];
            *if is_abr { some } else { others } = true;
        }
    }
    // Of each table: a port it stands for, and whether several classes cross one.
    let mut tables: BTreeMap<&str, (usize, bool)> = BTreeMap::new();
    for (index, link) in layout.graph.links.iter().enumerate() {
        if layout.graph.nodes[link.from].kind != NodeKind::Switch || crossing[index].is_empty() {
            continue;
        }
        stop.steps_of([1, scenario.port.len()])?;
        let port = build::port_of(scenario, &link.name, index == layout.bottleneck);
        if let Some((name, _)) = port.filter(|(_, port)| port.scheduler.by_class()) {
            tables.entry(name).or_insert((index, false)).1 |= crossing[index].len() > 1;
        }
    }
    for (name, (index, _)) in tables.into_iter().filter(|(_, (_, several))| !several) {
        let all = crossing[index].first().copied().unwrap_or_default();
        let other = if all == Class::Ubr { Class::Vbr } else { Class::Ubr };
        let (as_abr, table) = match with_abr[index] {
            (false, _) => ("", Some("a [vc.NAME] table")),
            (true, true) => (", as ABR VCs are", Some("the [vc.NAME] table of one without ABR")),
            (true, false) => (", as ABR VCs are", None),
        };
        let write = table.map(|table| format!("write class = \"{}\" into {table}, or ", other.name()));
        let problem = format!(
            "has nothing to tell apart: every VC that crosses {} is of class {}{as_abr}; {}leave the scheduler out",
            layout.graph.links[index].name,
            all.name(),
            write.unwrap_or_default()
        );
        let scheduler = scenario.port[name].scheduler.name();
        faults.push(KeyFault::of_key(join(&join(&join("port", name), "scheduler"), scheduler), problem));
    }
    Ok(())
}

/// The settings of a port that may differ from VC to VC, by key, and where the tables they stand in are.
fn by_vc<'a>(port: &str, config: &'a PortConfig) -> [(String, Vec<(&'static str, &'a PerVc)>); 2] {
    let table = |kind: &str, name: &str| join(&join(&join("port", port), kind), name);
    [
        (table("policy", config.policy.name()), config.policy.per_vc()),
        (table("scheduler", config.scheduler.name()), config.scheduler.per_vc()),
    ]
}

/// Whether every VC that crosses a port has a value for each of these settings of the table at `path`.
fn per_vc(
    path: &str,
    settings: Vec<(&'static str, &PerVc)>,
    link: &str,
    crossing: &[String],
    faults: &mut Vec<KeyFault>,
) -> bool {
    let mut all = true;
    for (key, setting) in settings {
        let without: Vec<&str> = crossing.iter().map(String::as_str).filter(|vc| setting.of(vc).is_none()).collect();
        let Some(first) = without.first() else { continue };
        all = false;
        let others = match without.len() {
            1 => String::new(),
            n => format!(" and {} more", n.saturating_sub(1)),
        };
        let problem = format!("has no value for \"{first}\"{others}, which cross {link}; name them, or write default");
        let path = join(path, key);
        if !faults.iter().any(|fault| fault.key == path) {
            faults.push(KeyFault::of_key(path, problem));
        }
    }
    all
}

/// The settings of the VCs that cross a port do not make sense together. A table for several ports is told of once.
fn together(table: &str, told: Vec<Fault>, faults: &mut Vec<KeyFault>) {
    for fault in told {
        let key = below(table, &fault.key);
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
    if let Some(allocator) = &config.allocator {
        let path = join(&join(path, "allocator"), allocator.name());
        for fault in allocator.check(capacity) {
            faults.push(KeyFault::of_value(below(&path, &fault.key), fault.value, fault.problem));
        }
    }
    let scheduler = join(&join(path, "scheduler"), config.scheduler.name());
    for fault in config.scheduler.check() {
        faults.push(KeyFault::of_value(below(&scheduler, &fault.key), fault.value, fault.problem));
    }
    let built = config.policy.build(Some(1), &[]);
    let reason = match built.overflow() {
        Overflow::PushOutFront => Some("pushes out the cell that is first in the only one"),
        _ if built.follows_cells() => Some("emulates queues on the only one"),
        _ => None,
    };
    if let Some(reason) = reason.filter(|_| config.scheduler != SchedulerConfig::default()) {
        let problem = format!(
            "has several queues, and {} {reason}; choose another policy, or leave the scheduler out",
            config.policy.name()
        );
        faults.push(KeyFault::of_key(scheduler, problem));
    }
}

fn clock(network: &Network, warnings: &mut Vec<Warning>) {
    let clock: Clock = network.clock();
    if !clock.exact {
        warnings.push(Warning {
            key: "topology".into(),
            message:
                "its rates and delays share no unit of time down to a picosecond: times are rounded, and cells that \
                      should tie may not. Use rates with a common divisor to be exact."
                    .into(),
        });
    }
}
