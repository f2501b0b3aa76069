//! Values against each other, and against the machine: what parses but cannot be run, or should not be trusted.

mod contracts;
mod memory;
mod ports;
mod rate_control;
mod topology;
mod traffic;

use std::collections::{BTreeMap, BTreeSet};

use celltrain_core::footprint::Footprint;
use celltrain_core::names::is_in_range;
use celltrain_core::network::{Network, NodeKind};
use celltrain_core::stop::{Interrupted, Stop};
use celltrain_core::tcp::TcpConfig;
use celltrain_core::units::{BitRate, CELL_BITS, Clock, Duration};

use crate::Machine;
use crate::build;
use crate::document::join;
use crate::fault::{KeyFault, Warning, nearest};
use crate::scenario::{Scenario, Topology};

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
    traffic::traffic(scenario, faults);
    traffic::file_size(scenario, faults);
    let about_frames = |key: &str| ["tcp.", "aal5.", "flow."].iter().any(|table| key.starts_with(table));
    let frames_are_sound = !faults.iter().any(|fault| about_frames(&fault.key));
    if frames_are_sound {
        traffic::frames(scenario, faults);
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
            traffic::files(laid, faults)?;
            contracts::contracts(laid, faults)?;
            ports::ports(laid, faults)?
        }
        None => BTreeMap::new(),
    };
    for (name, config) in &scenario.port {
        let largest_frame = largest_frames.get(name.as_str()).copied().filter(|_| frames_are_sound);
        ports::port(&join("port", name), config, largest_frame.unwrap_or(1), faults);
    }
    if let Some(laid) = laid.filter(|_| faults.is_empty()) {
        rates(laid, &mut verdict.warnings)?;
        contracts::beyond(laid, &mut verdict.warnings)?;
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

/// Packets come no faster than the host's link can send them, or its queue grows without end.
fn rates(laid: Laid<'_>, warnings: &mut Vec<Warning>) -> Result<(), Interrupted> {
    let Laid { scenario, layout, stop, .. } = laid;
    for (name, path, pattern) in traffic::packets(scenario) {
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
