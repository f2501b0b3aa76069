//! Random scenarios. They shrink towards the first item of each list: fewer nodes and flows, defaults, identical
//! links.
//!
//! Each network may use only a random half of the features and of the models of each list ([`Swarm`]). So some networks
//! have several VCs with contracts, or only ports under EPD, which a mixture of all features rarely contains (Groce and
//! others, "Swarm testing", ISSTA 2012).

#[path = "meshes.rs"]
pub(crate) mod meshes;
#[path = "overlapping.rs"]
pub(crate) mod overlapping;
#[path = "swarm.rs"]
mod swarm;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use celltrain_core::aal5::{Aal5Options, Encapsulation, Framing};
use celltrain_core::abr::Parameters;
use celltrain_core::abr::allocator::AllocatorConfig;
use celltrain_core::cancellation::CancellationToken;
use celltrain_core::edge_device::{DiscardConfig, EdgeConfig, Memory};
use celltrain_core::gfr::Gfr;
use celltrain_core::host::{HostOptions, ProcessingTimes};
use celltrain_core::index::NodeIndex;
use celltrain_core::network::{Link, NodeKind};
use celltrain_core::policy::PolicyConfig;
use celltrain_core::scheduler::{Class, SchedulerConfig};
use celltrain_core::tcp::{
    Congestion, OfferedWindow, ReceiverOptions, TcpConfig, TcpOptions, TimerOptions, WindowOptions,
};
use celltrain_core::tie::{ServiceOrder, TieOrder};
use celltrain_core::traffic::TrafficConfig;
use celltrain_core::units::{BitRate, Bytes, Duration};
use celltrain_scenario::document::join;
use celltrain_scenario::scenario::{
    Buffer, CellOptions, FlowOptions, Infinite, MeasureOptions, PortConfig, SwitchOptions, VcOptions, schema,
};
use celltrain_scenario::topology::network::{Config as GeneralNetwork, FlowConfig, LinkConfig};
use celltrain_scenario::topology::{Route, Topology, chain, n_source, star};
use celltrain_scenario::{Scenario, check};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use crate::formulas::drawn::Draws;
use swarm::{Feature, List, Pick, Swarm, swarm};

/// Draws a chain of one to five switches. Hosts are connected to them, some behind edge devices. Flows between any two
/// hosts have any combination of options.
pub(crate) fn any_network() -> BoxedStrategy<Scenario> {
    let host = (0usize..5, line(RATES, DELAYS), prop::option::weighted(0.4, line(RATES, DELAYS)));
    let flow = (0usize..8, 0usize..7, select(STARTS));
    let graph = (
        prop::collection::vec(line(RATES, DELAYS), 0..5),
        prop::collection::vec(host, 2..9),
        prop::collection::vec(flow, 1..9),
        mixed(0.5),
    );
    let ports = (port(BUFFERS, 0.5), prop::collection::vec((0usize..64, port(BUFFERS, 0.5)), 0..8));
    let sizes = Sizes { mss: &[512, 1, 1460, 9141], windows: &[65_535, 300_000, 1, 8] };
    let own = (
        prop::collection::vec((0usize..8, own_flow(sizes)), 0..5),
        prop::collection::vec((0usize..8, any::<bool>(), vc()), 0..6),
        edge(),
    );
    (graph, ports, own, rest(sizes, 30_000))
        .prop_map(|((trunks, hosts, flows, mixed), ports, (flow_options, vcs, edge), rest)| {
            let device = |i: usize| format!("e{}", i + 1);
            let switch = |i: usize| format!("sw{}", i + 1);
            let host = |i: usize| format!("h{}", i + 1);
            let has_device = |i: usize| hosts[i].2.is_some() && rest.swarm.has(Feature::EdgeDevices);
            let mut links = Vec::new();
            for (i, trunk) in trunks.iter().enumerate() {
                links.push(link(switch(i), switch(i + 1), *trunk));
            }
            for (i, (at, line, behind)) in hosts.iter().enumerate() {
                let switch = switch(at % (trunks.len() + 1));
                match behind.filter(|_| has_device(i)) {
                    None => links.push(link(host(i), switch, *line)),
                    Some(behind) => {
                        links.push(link(host(i), device(i), *line));
                        links.push(link(device(i), switch, behind));
                    }
                }
            }
            make_alike(&mut links, mixed);
            let flow = |&(from, away, start): &(usize, usize, u64)| {
                let from = from % hosts.len();
                let to = (from + 1 + away % (hosts.len() - 1)) % hosts.len();
                self::flow(host(from), host(to), start)
            };
            let network = GeneralNetwork {
                hosts: (0..hosts.len()).map(host).collect(),
                switches: (0..=trunks.len()).map(switch).collect(),
                edge_devices: (0..hosts.len()).filter(|&i| has_device(i)).map(device).collect(),
                flows: flows.iter().map(flow).collect(),
                links,
                bottleneck: None,
            };
            rest.scenario(&network, &ports, &Own { flows: flow_options, vcs, edge })
        })
        .boxed()
}

/// Draws up to forty sources that start at almost the same time, over almost identical links, so that long trains of
/// cells repeatedly coincide or alternate. In one measurement, 79 % of the cells at contended ports were in single
/// ties, 8 % in rounds of ties, 9 % between other cells, and 3 % in uninterrupted runs (62 % on random networks).
pub(crate) fn in_step() -> BoxedStrategy<Scenario> {
    let source = (select(&[0usize, 0, 0, 0, 1, 2][..]), select(STARTS));
    let graph = (
        prop_oneof![prop::collection::vec(source.clone(), 1..5), prop::collection::vec(source, 1..41)],
        prop::bool::weighted(0.25),
        [line(FEW_RATES, DELAYS), line(FEW_RATES, DELAYS), line(FEW_RATES, DELAYS)],
        (prop::option::of(line(FEW_RATES, DELAYS)), line(FEW_RATES, DELAYS)),
        mixed(0.25),
    );
    let sizes = Sizes { mss: &[512, 536, 9141, 60_000], windows: &[65_535, 300_000, 600_000, 8] };
    (graph, port(LARGE_BUFFERS, 0.1), rest(sizes, 20_000))
        .prop_map(|((sources, spread, access, (trunk, exit), mixed), port, rest)| {
            let source = |i: usize| format!("s{}", i + 1);
            let last = if trunk.is_some() { "sw2" } else { "sw1" };
            let mut links = Vec::new();
            for (i, (class, _)) in sources.iter().enumerate() {
                links.push(link(source(i), "sw1".into(), access[*class]));
            }
            links.extend(trunk.map(|trunk| link("sw1".into(), last.into(), trunk)));
            links.push(link(last.into(), "d".into(), exit));
            make_alike(&mut links, mixed);
            let start = |start: u64| if spread { start } else { 0 };
            let network = GeneralNetwork {
                hosts: (0..sources.len()).map(source).chain(["d".into()]).collect(),
                switches: if trunk.is_some() { vec!["sw1".into(), "sw2".into()] } else { vec!["sw1".into()] },
                edge_devices: Vec::new(),
                flows: sources.iter().enumerate().map(|(i, &(_, at))| flow(source(i), "d".into(), start(at))).collect(),
                links,
                bottleneck: None,
            };
            rest.scenario(&network, &(port, Vec::new()), &Own::default())
        })
        .boxed()
}

/// Draws many hosts at both ends of a trunk, over links faster and slower than the trunk. Their frames cross one or two
/// ports that schedule, push out or merge. Long trains arrive alone, interleaved or in step, at the queues of several
/// classes, which remain filled.
pub(crate) fn crowded() -> BoxedStrategy<Scenario> {
    let source = (select(&[0usize, 0, 0, 1, 2][..]), prop::bool::weighted(0.2), 0usize..4, select(STARTS));
    let graph = (
        prop::collection::vec(source, 1..13),
        [line(CROWDING_RATES, DELAYS), line(CROWDING_RATES, DELAYS), line(CROWDING_RATES, DELAYS)],
        (line(FEW_RATES, DELAYS), line(FEW_RATES, DELAYS), 1usize..4),
        mixed(0.7),
    );
    let sizes = Sizes { mss: &[512, 1460, 9141], windows: &[300_000, 65_535, 8] };
    let ports = (port(BUFFERS, 0.8), prop::collection::vec((0usize..64, port(BUFFERS, 0.8)), 0..3));
    let vcs = prop::collection::vec((0usize..12, Just(false), vc()), 0..8);
    (graph, ports, vcs, rest(sizes, 20_000))
        .prop_map(|((sources, access, (trunk, exit, ends), mixed), ports, vcs, rest)| {
            let source = |i: usize| format!("s{}", i + 1);
            let end = |i: usize| format!("d{}", i % ends + 1);
            let mut links = vec![link("sw1".into(), "sw2".into(), trunk)];
            for (i, &(class, behind, ..)) in sources.iter().enumerate() {
                links.push(link(source(i), if behind { "sw2" } else { "sw1" }.into(), access[class]));
            }
            links.extend((0..ends).map(|i| link("sw2".into(), end(i), exit)));
            make_alike(&mut links, mixed);
            let flows = sources.iter().enumerate().map(|(i, &(_, _, to, start))| flow(source(i), end(to), start));
            let network = GeneralNetwork {
                hosts: (0..sources.len()).map(source).chain((0..ends).map(end)).collect(),
                switches: vec!["sw1".into(), "sw2".into()],
                edge_devices: Vec::new(),
                flows: flows.collect(),
                links,
                bottleneck: None,
            };
            rest.scenario(&network, &ports, &Own { flows: Vec::new(), vcs, edge: Edge::default() })
        })
        .boxed()
}

/// Draws topologies that have only a few parameters, written as general networks. Some links differ between directions.
pub(crate) fn written_in_numbers() -> BoxedStrategy<Scenario> {
    let unlike = prop::collection::vec((0usize..64, line(RATES, DELAYS)), 0..4);
    let sizes = Sizes { mss: &[512, 1460, 9141], windows: &[65_535, 300_000] };
    let ports = (port(BUFFERS, 0.5), prop::collection::vec((0usize..64, port(BUFFERS, 0.5)), 0..4));
    (any_topology(), unlike, ports, rest(sizes, 20_000))
        .prop_map(|(topology, unlike, ports, rest)| {
            let mut network = written_out(&topology);
            let links = network.links.len();
            for (i, (rate, delay)) in unlike {
                let link = &mut network.links[i % links];
                link.rate_back = Some(BitRate::from_bits_per_second(rate));
                link.delay_back = Some(Duration::from_microseconds(delay));
            }
            for flow in &mut network.flows {
                flow.name = None;
            }
            network.bottleneck = None;
            rest.scenario(&network, &ports, &Own::default())
        })
        .boxed()
}

/// Draws N sources with unequal links, chains, and stars.
pub(crate) fn any_topology() -> BoxedStrategy<Topology> {
    let rate = || select(RATES).prop_map(BitRate::from_bits_per_second);
    let delay = || select(DELAYS).prop_map(Duration::from_microseconds);
    let tables = move |stem: &'static str| {
        let name = (1u32..5, 0u32..3, any::<bool>()).prop_map(move |(first, more, default)| match (default, more) {
            (true, _) => "default".to_string(),
            (false, 0) => format!("{stem}{first}"),
            (false, more) => format!("{stem}{first}-{}", first + more),
        });
        let rates = prop::collection::btree_map(name.clone(), rate(), 0..3);
        (rates, prop::collection::btree_map(name, delay(), 0..3))
    };
    let n_source = (4u32..9, rate(), delay(), tables("source")).prop_map(
        |(sources, link_rate, link_delay, (access_rates, access_delays))| {
            Topology::NSource(n_source::Config { sources, link_rate, link_delay, access_rates, access_delays })
        },
    );
    let access = (prop::option::of(rate()), prop::option::of(delay()));
    let chain = (1u32..5, 1u32..4, 0u32..4, (rate(), delay()), access).prop_map(
        |(hops, long, cross, (link_rate, link_delay), (access_rate, access_delay))| {
            Topology::Chain(chain::Config { hops, long, cross, link_rate, link_delay, access_rate, access_delay })
        },
    );
    let pattern = select(&[star::Pattern::ToOne, star::Pattern::Ring, star::Pattern::AllPairs][..]);
    let star = (4u32..6, pattern, rate(), delay(), tables("host")).prop_map(
        |(hosts, pattern, link_rate, link_delay, (access_rates, access_delays))| {
            Topology::Star(star::Config { hosts, pattern, link_rate, link_delay, access_rates, access_delays })
        },
    );
    prop_oneof![chain, n_source, star].boxed()
}

/// Converts a topology to a general network in which every node, link and path is named.
pub(crate) fn written_out(topology: &Topology) -> GeneralNetwork {
    let layout = topology.config().lay_out(&CancellationToken::never()).unwrap();
    let nodes = &layout.graph.nodes;
    let named = |kind: NodeKind| nodes.iter().filter(move |node| node.kind == kind).map(|node| node.name.clone());
    let name = |node: NodeIndex| nodes[node].name.clone();
    let link = |pair: &[Link]| {
        let [there, back] = pair else { panic!("every link has a link in the opposite direction") };
        LinkConfig {
            between: (name(there.from), name(there.to)),
            rate: there.rate,
            delay: there.delay,
            rate_back: (back.rate != there.rate).then_some(back.rate),
            delay_back: (back.delay != there.delay).then_some(back.delay),
        }
    };
    let flow = |route: &Route| {
        let ends = route.data.iter().map(|&link| &layout.graph.links[link]);
        let path: Vec<String> =
            [name(layout.graph.links[route.data[0]].from)].into_iter().chain(ends.map(|link| name(link.to))).collect();
        let (from, to) = (path[0].clone(), path[path.len() - 1].clone());
        FlowConfig {
            name: Some(route.name.clone()),
            from,
            to,
            path: Some(path),
            start: route.start,
            vc: route.vc.clone(),
        }
    };
    GeneralNetwork {
        hosts: named(NodeKind::Host).collect(),
        switches: named(NodeKind::Switch).collect(),
        edge_devices: named(NodeKind::EdgeDevice).collect(),
        links: layout.graph.links.raw.chunks(2).map(link).collect(),
        flows: layout.flows.iter().map(flow).collect(),
        bottleneck: Some(layout.graph.links[layout.bottleneck].name.clone()),
    }
}

/// Returns a TCP variant with default options.
pub(crate) fn plain_tcp(name: &str) -> TcpConfig {
    TcpConfig::named(name, TcpOptions::default()).expect("the schema lists this name")
}

/// Rates in bit/s. There are only a few, so that ties are common. Two of them have no common time unit with the others.
const RATES: &[u64] = &[155_520_000, 155_520_000, 155_520_000, 77_760_000, 149_760_000, 34_368_000];
/// Rates in bit/s, most of which are multiples of each other.
const FEW_RATES: &[u64] = &[155_520_000, 155_520_000, 77_760_000, 77_760_000, 34_368_000];
/// Rates equal to, faster than, or slower than a trunk.
const CROWDING_RATES: &[u64] = &[155_520_000, 155_520_000, 622_080_000, 77_760_000, 149_760_000];
/// Microseconds.
const DELAYS: &[u64] = &[5, 5, 5, 0, 20, 1_000];
/// Microseconds.
const STARTS: &[u64] = &[0, 0, 0, 3, 500];
/// Size beyond the largest frame, in cells; `None` for an infinite buffer.
const BUFFERS: &[Option<u32>] =
    &[None, Some(100_000), Some(5_000), Some(1_000), Some(300), Some(88), Some(48), Some(13), Some(1), Some(0)];
/// Larger buffers are more frequent.
const LARGE_BUFFERS: &[Option<u32>] = &[None, None, None, Some(100_000), Some(5_000), Some(1_000), Some(88), Some(1)];
/// Capacity for policies that require a finite buffer, if the buffer is infinite.
const HUGE: u32 = 1_000_000;

type Line = (u64, u64);

fn line(rates: &'static [u64], delays: &'static [u64]) -> BoxedStrategy<Line> {
    (select(rates), select(delays)).boxed()
}

/// Draws whether the rates of links differ, and whether their delays differ, each with probability `how_often`.
fn mixed(how_often: f64) -> BoxedStrategy<(bool, bool)> {
    (prop::bool::weighted(how_often), prop::bool::weighted(how_often)).boxed()
}

fn link(a: String, b: String, (rate, delay): Line) -> LinkConfig {
    let (rate, delay) = (BitRate::from_bits_per_second(rate), Duration::from_microseconds(delay));
    LinkConfig { between: (a, b), rate, delay, rate_back: None, delay_back: None }
}

fn make_alike(links: &mut [LinkConfig], (rates, delays): (bool, bool)) {
    let (rate, delay) = (links[0].rate, links[0].delay);
    for link in links {
        link.rate = if rates { link.rate } else { rate };
        link.delay = if delays { link.delay } else { delay };
    }
}

fn flow(from: String, to: String, start: u64) -> FlowConfig {
    FlowConfig { name: None, from, to, path: None, start: Duration::from_microseconds(start), vc: None }
}

/// The parts of a scenario other than its network and its ports.
#[derive(Clone, Debug)]
struct Rest {
    swarm: Swarm,
    duration: Duration,
    seed: u64,
    tcp: Tcp,
    switch: SwitchOptions,
    host: HostOptions,
    encapsulation: Encapsulation,
    /// True if receivers can reassemble no longer frames than the longest in use.
    exact_sdu: bool,
    /// True if VCs that end at the same host are merged.
    merged: bool,
}

/// Options of individual flows and VCs, keyed by the flow's number; the `bool` selects the VC of the acknowledgements.
#[derive(Clone, Debug, Default)]
struct Own {
    flows: Vec<(usize, OwnFlow)>,
    vcs: Vec<(usize, bool, OwnVc)>,
    edge: Edge,
}

/// Windows below this number are in segments, others in bytes.
const SEGMENTS: u64 = 100;

/// Segment sizes and windows in bytes.
#[derive(Clone, Copy)]
struct Sizes {
    mss: &'static [u64],
    windows: &'static [u64],
}

impl Rest {
    /// These networks often use features that need AAL5, and keep them.
    fn scenario(&self, network: &GeneralNetwork, ports: &(Port, Vec<(usize, Port)>), own: &Own) -> Scenario {
        let mut scenario = self.as_drawn(network.clone(), ports, own);
        loop {
            let faults = check::check(&scenario, &[], &|_| Ok(()), &CancellationToken::never()).unwrap().faults;
            if faults.is_empty() {
                return scenario;
            }
            let keys: Vec<&str> = faults.iter().map(|fault| fault.key.as_str()).collect();
            assert!(leave_out(&mut scenario, &keys), "every drawn scenario is valid: {faults:?}");
        }
    }

    fn as_drawn(
        &self,
        mut network: GeneralNetwork,
        (default, others): &(Port, Vec<(usize, Port)>),
        own: &Own,
    ) -> Scenario {
        // Hosts without flows would only make failures harder to read.
        let is_idle = |host: &String| network.flows.iter().all(|flow| flow.from != *host && flow.to != *host);
        let idle: Vec<String> = network.hosts.iter().filter(|host| is_idle(host)).cloned().collect();
        let is_of_idle = |device: &String| {
            let links = network.links.iter().find(|link| link.between.1 == *device);
            links.is_some_and(|link| idle.contains(&link.between.0))
        };
        let of_idle: Vec<String> = network.edge_devices.iter().filter(|device| is_of_idle(device)).cloned().collect();
        network.hosts.retain(|host| !idle.contains(host));
        network.edge_devices.retain(|device| !of_idle.contains(device));
        let gone = |node: &String| idle.contains(node) || of_idle.contains(node);
        network.links.retain(|link| !gone(&link.between.0) && !gone(&link.between.1));
        if self.merged && self.swarm.has(Feature::Merging) {
            for flow in &mut network.flows {
                flow.vc = Some(format!("to-{}", flow.to));
            }
        }
        let name = |flow: usize| format!("tcp{}", 1 + flow % network.flows.len());
        let flow: BTreeMap<_, _> = own.flows.iter().map(|(flow, own)| (name(*flow), own.options(self.swarm))).collect();
        let tcp = self.tcp.config(self.swarm);
        let tcps = || flow.values().filter_map(|flow| flow.tcp.as_ref()).chain([&tcp]);
        let packets = flow.values().filter_map(|flow| Some(flow.traffic.as_ref()?.packets()?.packet.bytes));
        let mss = tcps().map(|tcp| tcp.options().mss.bytes).chain(packets).max().expect("the queue is not empty");
        let max_sdu = if self.exact_sdu { Bytes { bytes: mss + 48 } } else { Aal5Options::default().max_sdu };
        let aal5 = Aal5Options { encapsulation: self.encapsulation, max_sdu, ..Aal5Options::default() };
        let frame = aal5.segment_cells(mss);
        let own_vcs = |&(flow, acks, ref own): &(usize, bool, OwnVc)| {
            let mut options = own.options(self.swarm);
            if let Some(gfr) = &mut options.gfr {
                gfr.mfs += frame;
            }
            let flows = if self.swarm.has(Feature::AlikeVcs) { 0..network.flows.len() } else { flow..flow + 1 };
            let vc = move |flow| format!("{}{}", name(flow), if acks { "-acks" } else { "" });
            flows.map(move |flow| (vc(flow), options.clone())).collect::<Vec<_>>()
        };
        let vcs = own.vcs.iter().flat_map(own_vcs);
        let mut names = Vec::new();
        for LinkConfig { between: (a, b), .. } in &network.links {
            names.extend(network.switches.contains(a).then(|| format!("{a}->{b}")));
            names.extend(network.switches.contains(b).then(|| format!("{b}->{a}")));
        }
        let others = others.iter().map(|(i, other)| (names[i % names.len()].clone(), other.config(self.swarm, frame)));
        let ports = [("default".to_string(), default.config(self.swarm, frame))].into_iter().chain(others);
        let edge = (!network.edge_devices.is_empty())
            .then(|| ("*".to_string(), own.edge.config(self.swarm, frame)))
            .into_iter();
        Scenario {
            name: String::new(),
            duration: self.duration,
            until: celltrain_core::until::Until::Duration,
            seed: self.seed,
            vc: vcs.collect(),
            flow,
            requests: BTreeMap::new(),
            incast: BTreeMap::new(),
            topology: Topology::Network(network),
            tcp,
            stack: None,
            port: ports.collect(),
            link: BTreeMap::new(),
            edge: edge.collect(),
            cell: CellOptions::default(),
            // Many of these networks use something that needs AAL5, and keep it.
            framing: (self.seed % 5 < 3).then_some(Framing::Packets),
            switch: self.switch.clone(),
            host: if self.swarm.has(Feature::HostTimes) { self.host.clone() } else { HostOptions::default() },
            aal5,
            measure: MeasureOptions {
                file_size: self.seed.is_multiple_of(2).then_some(Bytes { bytes: 70_000 }),
                ..MeasureOptions::default()
            },
        }
    }
}

/// Removes the parts of a scenario to which these keys refer. Returns whether any were removed.
fn leave_out(scenario: &mut Scenario, keys: &[&str]) -> bool {
    let faulty = |path: &str| keys.iter().any(|key| *key == path || key.starts_with(&format!("{path}.")));
    if faulty("framing") {
        // Something in the network needs AAL5.
        scenario.framing = None;
        return true;
    }
    let before = scenario.clone();
    if faulty("aal5") {
        scenario.aal5 = Aal5Options::default();
    }
    for (name, port) in &mut scenario.port {
        let path = join("port", name);
        if faulty(&join(&path, "scheduler")) {
            port.scheduler = SchedulerConfig::default();
        }
        if faulty(&join(&path, "allocator")) {
            port.allocator = Some(named(&ALLOCATORS, "equal_share", &PLAIN, 0));
        }
        if faulty(&join(&path, "policy")) {
            port.policy = named(&POLICIES, PolicyConfig::NAMES[0], &PLAIN, 0);
        }
    }
    for (name, edge) in scenario.edge.iter_mut().filter(|(name, _)| faulty(&join("edge", name))) {
        *edge = EdgeConfig { buffer: edge.buffer, ..EdgeConfig::default() };
        edge.buffer = edge.buffer.filter(|_| !keys.contains(&join(&join("edge", name), "buffer").as_str()));
    }
    if faulty("measure.file_size") {
        scenario.measure.file_size = None;
    }
    scenario.vc.retain(|name, _| !faulty(&join("vc", name)));
    if keys.contains(&"vc") {
        // The VCs together have guarantees above the link's rate, so remove the last VC.
        let promised = |vc: &VcOptions| vc.gfr.is_some() || vc.abr.is_some();
        let last = scenario.vc.iter().rfind(|(_, vc)| promised(vc)).map(|(name, _)| name.clone());
        scenario.vc.retain(|name, _| Some(name) != last.as_ref());
    }
    for (name, flow) in &mut scenario.flow {
        if faulty(&join(&join("flow", name), "tcp")) {
            flow.tcp = None;
        }
    }
    if *scenario == before
        && let Topology::Network(network) = &mut scenario.topology
    {
        // Only merging VCs remain that can be removed.
        network.flows.iter_mut().for_each(|flow| flow.vc = None);
    }
    *scenario != before
}

/// Draws the rest of a scenario that takes up to `longest` microseconds.
fn rest(sizes: Sizes, longest: u64) -> BoxedStrategy<Rest> {
    let switch = (
        select(
            &[TieOrder::Fixed, TieOrder::Rotating, TieOrder::Random, TieOrder::EventList, TieOrder::EventListLastIn][..],
        ),
        select(&[ServiceOrder::AfterArrivals, ServiceOrder::BeforeArrivals][..]),
    );
    let framing = (
        select(&[Encapsulation::LlcSnap, Encapsulation::VcMux][..]),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.4),
    );
    let settings = (swarm(), switch, framing, host());
    (1..=longest, 1..1_000_000u64, tcp(sizes), settings)
        .prop_map(|(duration, seed, tcp, (swarm, switch, framing, host))| {
            let (tie_order, service_order) = switch;
            let (encapsulation, exact_sdu, merged) = framing;
            Rest {
                swarm,
                duration: Duration::from_microseconds(duration),
                seed,
                tcp,
                switch: SwitchOptions { tie_order, service_order, ..SwitchOptions::default() },
                host,
                encapsulation,
                exact_sdu,
                merged,
            }
        })
        .boxed()
}

/// Draws host options, mostly without processing times or clock errors.
fn host() -> BoxedStrategy<HostOptions> {
    let processing = (
        select(&[0u64, 1, 27, 100, 1_000][..]),
        select(&[ProcessingTimes::Fixed, ProcessingTimes::Uniform, ProcessingTimes::Uniform][..]),
    );
    let clocks = (select(&[0u64, 700, 7_000][..]), select(&[0.0, 0.001, 0.1][..]));
    let drawn = (processing, clocks, select(&[0u64, 0, 100, 5_000][..]));
    prop::option::weighted(0.6, drawn)
        .prop_map(|drawn| {
            let ((processing, processing_times), (offset, clock_skew), spread) = drawn.unwrap_or_default();
            let time = Duration::from_microseconds;
            HostOptions {
                processing: time(processing),
                processing_times,
                clock_offset: time(offset),
                clock_skew,
                start_spread: time(spread),
            }
        })
        .boxed()
}

/// A TCP and its options, whose variant depends on those that the network may use.
#[derive(Clone, Debug)]
struct Tcp {
    variant: Pick,
    settings: Drawn,
    mss: u64,
    window: u64,
    /// In microseconds.
    tick: u64,
    pace: Option<u64>,
    /// In segments.
    lose_at: Option<u64>,
    /// In segments.
    ssthresh: Option<u64>,
}

fn tcp(sizes: Sizes) -> BoxedStrategy<Tcp> {
    let sizes = (select(sizes.mss), select(sizes.windows));
    let pace = select(&[None, Some(155_520_000), Some(34_368_000)][..]);
    let lose_at = select(&[None, Some(2), Some(5), Some(8), Some(17)][..]);
    let ssthresh = select(&[None, None, Some(2), Some(6)][..]);
    (any::<Pick>(), drawn(), sizes, select(&[10_000u64, 2_000, 1_000, 100][..]), pace, (lose_at, ssthresh))
        .prop_map(|(variant, settings, (mss, window), tick, pace, (lose_at, ssthresh))| Tcp {
            variant,
            settings,
            mss,
            window,
            tick,
            pace,
            lose_at,
            ssthresh,
        })
        .boxed()
}

impl Tcp {
    fn config(&self, swarm: Swarm) -> TcpConfig {
        let closes = [Feature::ClosingWindows, Feature::ShrinkingWindows, Feature::LossAtWindow];
        if closes.iter().all(|&feature| swarm.has(feature)) {
            return self.closing_window();
        }
        let Self { mss, tick, .. } = *self;
        let name = swarm.one_of(List::Tcp, TcpConfig::NAMES, self.variant);
        let variant = TCPS.iter().find(|variant| variant.name == name).expect("the schema lists this name");
        let size = |bytes: u64| json!(Bytes { bytes });
        let settings = if swarm.has(Feature::TcpOptions) { self.settings } else { PLAIN };
        let mut options = variant.settings(&settings, 0);
        if let Some(congestion) = options.get_mut("congestion") {
            *congestion = json!(swarm.one_of(List::Congestion, Congestion::NAMES, settings[0]));
        }
        if options.get("congestion") == Some(&json!("formula")) {
            options.insert("formula".into(), Draws::new(seed(&settings)).control(mss));
        }
        if options.get("congestion") == Some(&json!("dctcp")) {
            options.insert("ecn".into(), json!("on"));
        }
        let pace = self.pace.filter(|_| swarm.has(Feature::Pacing));
        let lose_at = self.lose_at.filter(|_| swarm.has(Feature::LossAtWindow));
        let ssthresh = self.ssthresh.filter(|_| swarm.has(Feature::TcpOptions));
        let in_bytes = |segments: Option<u64>| json!(segments.map(|segments| Bytes { bytes: segments * mss }));
        let mut window = if self.window < SEGMENTS { self.window * mss } else { self.window };
        if swarm.has(Feature::ShrinkingWindows) {
            put(&mut options, "receiver.offered_window", json!("less_kept"));
            // If all segments but the first are kept, the scaled window is smaller than a segment.
            window = if mss == 9141 { 8 * mss } else { window };
        }
        options.insert("mss".into(), size(mss));
        options.insert("receive_window".into(), size(window.max(mss)));
        options.insert("timer_granularity".into(), json!(Duration::from_microseconds(tick)));
        // Few applications pause for 10 ms.
        let initial_rto = if tick == 100 { 1 } else { 10 };
        put(&mut options, "timer.initial_rto", json!(Duration::from_milliseconds(initial_rto)));
        options.insert("pacing_rate".into(), json!(pace.map(BitRate::from_bits_per_second)));
        put(&mut options, "windows.lose_at_window", in_bytes(lose_at));
        put(&mut options, "start.initial_ssthresh", in_bytes(ssthresh));
        serde_json::from_value(json!({name: options})).expect("the schema lists all settings")
    }

    /// Creates a TCP whose receiver's window closes if a segment is lost when cwnd reaches the window: if all segments but
    /// the first are kept, the scaled window is a byte smaller than a segment. The sender soon probes the window, or has
    /// already sent the segment again.
    fn closing_window(&self) -> TcpConfig {
        let window = Bytes { bytes: 4 * 16_385 };
        let rto = Duration::from_milliseconds(1 + u64::from(self.settings[0] % 4));
        let options = TcpOptions {
            mss: Bytes { bytes: window.bytes / 4 },
            receive_window: window,
            receiver: ReceiverOptions { offered_window: Some(OfferedWindow::LessKept), ..ReceiverOptions::default() },
            windows: WindowOptions { lose_at_window: Some(window), ..WindowOptions::default() },
            timer: TimerOptions { initial_rto: Some(rto), maximum_rto: Some(rto), ..TimerOptions::default() },
            timer_granularity: Duration::from_microseconds(100),
            ..TcpOptions::default()
        };
        TcpConfig::named("vanilla", options).expect("the schema lists this name")
    }
}

/// TCP, start time and traffic of an individual flow.
#[derive(Clone, Debug)]
struct OwnFlow {
    tcp: Option<Tcp>,
    start: Option<u64>,
    traffic: Option<(Pick, Drawn)>,
}

fn own_flow(sizes: Sizes) -> BoxedStrategy<OwnFlow> {
    let traffic = prop::option::weighted(0.7, (any::<Pick>(), drawn()));
    (prop::option::weighted(0.7, tcp(sizes)), prop::option::of(select(STARTS)), traffic)
        .prop_map(|(tcp, start, traffic)| OwnFlow { tcp, start, traffic })
        .boxed()
}

impl OwnFlow {
    fn options(&self, swarm: Swarm) -> FlowOptions {
        let tcp = self.tcp.as_ref().filter(|_| swarm.has(Feature::OwnTcps)).map(|tcp| tcp.config(swarm));
        let traffic =
            self.traffic.as_ref().filter(|_| swarm.has(Feature::OwnTraffic)).map(|(pick, drawn)| {
                named(&TRAFFIC, swarm.one_of(List::Traffic, TrafficConfig::NAMES, *pick), drawn, 0)
            });
        FlowOptions { tcp, stack: None, start: self.start.map(Duration::from_microseconds), traffic }
    }
}

/// A class, tagging, and a contract or ABR. The contract's `mfs` is drawn relative to the longest frame.
#[derive(Clone, Debug)]
struct OwnVc {
    tagged: bool,
    contract: Option<Gfr>,
    abr: Option<Parameters>,
    class: Class,
}

fn vc() -> BoxedStrategy<OwnVc> {
    let contract = (
        select(&[1_000_000u64, 15_552_000, 31_104_000][..]),
        select(&[0u32, 1, 200][..]),
        select(&[0u64, 3, 100][..]),
        any::<bool>(),
    );
    let contract = contract.prop_map(|(mcr, mfs, cdvt, tagging)| Gfr {
        mcr: BitRate::from_bits_per_second(mcr),
        pcr: None,
        mfs,
        mbs: None,
        cdvt: Duration::from_microseconds(cdvt),
        tagging,
    });
    let class = select(&[Class::Ubr, Class::Vbr, Class::Cbr][..]);
    let service = (prop::option::weighted(0.8, contract), prop::option::weighted(0.6, abr()));
    (prop::bool::weighted(0.5), service, class)
        .prop_map(|(tagged, (contract, abr), class)| OwnVc { tagged, contract, abr, class })
        .boxed()
}

impl OwnVc {
    fn options(&self, swarm: Swarm) -> VcOptions {
        let abr = self.abr.clone().filter(|_| swarm.has(Feature::Abr));
        if abr.is_some() {
            return VcOptions { abr, ..VcOptions::default() };
        }
        VcOptions {
            gfr: self.contract.clone().filter(|_| swarm.has(Feature::Contracts)),
            tagged: self.tagged && swarm.has(Feature::Tags),
            class: if swarm.has(Feature::Classes) { self.class } else { Class::default() },
            ..VcOptions::default()
        }
    }
}

fn abr() -> BoxedStrategy<Parameters> {
    let factor = select(&[0.0625, 1.0, 1.0 / 32.0, 1.0 / 1024.0][..]);
    let rates = (select(&[None, Some(15_552_000u64), Some(1_000_000)][..]), select(&[0u64, 1_000_000, 7_776_000][..]));
    let counts = (select(&[32u32, 2, 4, 256][..]), 2u32..4, select(&[16_777_215u32, 64, 1000][..]));
    let times = (select(&[100_000u64, 100, 3_000][..]), select(&[500_000u64, 10_000][..]));
    let tagged = (any::<bool>(), select(&[20_000_000u64, 2_000_000, 424_000, 4_240][..]));
    let parts = (factor.clone(), factor, rates, counts, times, tagged);
    parts
        .prop_map(|(rif, rdf, (icr, mcr), (nrm, mrm, tbe), (trm, adtf), (out_of_rate, tcr))| {
            let rate = BitRate::from_bits_per_second;
            // A source whose rate is never below TCR sends no out-of-rate RM cells.
            let out_of_rate = out_of_rate && tcr > mcr;
            let icr = icr.map(|icr| rate(icr.max(mcr)));
            let (trm, adtf) = (Duration::from_microseconds(trm), Duration::from_microseconds(adtf));
            let (mcr, tcr) = (rate(mcr), rate(tcr));
            Parameters { icr, mcr, rif, rdf, nrm, mrm, tbe, trm, adtf, out_of_rate, tcr, ..Parameters::default() }
        })
        .boxed()
}

/// Buffers of edge devices.
#[derive(Clone, Debug)]
struct Edge {
    discard: (Pick, Drawn),
    memory: Memory,
    beyond_a_frame: Option<u32>,
}

impl Default for Edge {
    fn default() -> Self {
        Self { discard: (Pick::default(), PLAIN), memory: Memory::default(), beyond_a_frame: None }
    }
}

fn edge() -> BoxedStrategy<Edge> {
    let parts = (
        (any::<Pick>(), drawn()),
        select(&[Memory::PerVc, Memory::Shared][..]),
        select(&[None, Some(2_000u32), Some(500), Some(40), Some(0)][..]),
    );
    parts.prop_map(|(discard, memory, beyond_a_frame)| Edge { discard, memory, beyond_a_frame }).boxed()
}

impl Edge {
    fn config(&self, swarm: Swarm, frame: u32) -> EdgeConfig {
        let (pick, drawn) = &self.discard;
        let discard = named(&DISCARDS, swarm.one_of(List::Discard, DiscardConfig::NAMES, *pick), drawn, 0);
        EdgeConfig { buffer: self.beyond_a_frame.map(|cells| frame + cells), memory: self.memory, discard }
    }
}

#[derive(Clone, Debug)]
struct Port {
    policy: (Model, Drawn),
    scheduler: Option<(Model, Drawn)>,
    allocator: Option<(Pick, Drawn)>,
    beyond_a_frame: Option<u32>,
}

/// A model from a list: one of the models that the network may use, or a given model.
#[derive(Clone, Copy, Debug)]
enum Model {
    Picked(Pick),
    Named(&'static str),
}

impl Model {
    fn name(self, swarm: Swarm, list: List, names: &'static [&'static str]) -> &'static str {
        match self {
            Self::Picked(pick) => swarm.one_of(list, names, pick),
            Self::Named(name) => name,
        }
    }
}

/// Draws a port. With probability `how_often`, it has its own scheduler.
fn port(buffers: &'static [Option<u32>], how_often: f64) -> BoxedStrategy<Port> {
    let model = || any::<Pick>().prop_map(Model::Picked);
    let scheduler = prop::option::weighted(how_often, (model(), drawn()));
    let allocator = prop::option::weighted(0.8, (any::<Pick>(), drawn()));
    let parts = ((model(), drawn()), scheduler, allocator, select(buffers));
    parts
        .prop_map(|(policy, scheduler, allocator, beyond_a_frame)| Port {
            policy,
            scheduler,
            allocator,
            beyond_a_frame,
        })
        .boxed()
}

impl Port {
    fn config(&self, swarm: Swarm, frame: u32) -> PortConfig {
        let (policy, drawn) = self.policy;
        let name = policy.name(swarm, List::Policy, PolicyConfig::NAMES);
        let drawn = if swarm.has(Feature::PolicySettings) { &drawn } else { &PLAIN };
        let limited = self.beyond_a_frame.map(|cells| frame + cells);
        let scheduler = self.scheduler.filter(|(model, _)| match model {
            Model::Picked(_) => swarm.has(Feature::Schedulers),
            Model::Named(_) => true,
        });
        let scheduler =
            scheduler.map(|(model, drawn)| match model.name(swarm, List::Scheduler, SchedulerConfig::NAMES) {
                "wfq_formula" => weights(&drawn),
                name => named(&SCHEDULERS, name, &drawn, 0),
            });
        // The drawn settings may be incompatible, and some policies need a finite buffer.
        for (limit, drawn) in [(limited, drawn), (limited, &PLAIN), (Some(HUGE), &PLAIN)] {
            let policy: PolicyConfig = if name == "formula" {
                formula(drawn, limit)
            } else if name == "python" {
                super::stand::class(drawn[0])
            } else {
                named(&POLICIES, name, drawn, limit.unwrap_or(HUGE))
            };
            if policy.check(limit).is_empty() {
                let buffer = limit.map_or(Buffer::Infinite(Infinite::Infinite), Buffer::Cells);
                let allocator = self.allocator.map(|(pick, drawn)| {
                    let name = swarm.one_of(List::Allocator, AllocatorConfig::NAMES, pick);
                    named(&ALLOCATORS, name, &drawn, limit.unwrap_or(HUGE))
                });
                let scheduler = scheduler.unwrap_or_default();
                return PortConfig { buffer, policy, scheduler, allocator, marking: None };
            }
        }
        panic!("{name}: random settings within their ranges may still be invalid");
    }
}

/// Creates a policy of random formulas, or a plain one if the drawn formulas are invalid.
fn formula(drawn: &Drawn, limit: Option<u32>) -> PolicyConfig {
    let plain = json!({"formula": {"admit": "X < 100"}});
    let random = json!({"formula": Draws::new(seed(drawn)).formula("tcp1")});
    let [plain, random]: [PolicyConfig; 2] =
        [plain, random].map(|policy| serde_json::from_value(policy).expect("a table of formulas has these keys"));
    // The draws include invalid formulas.
    if *drawn != PLAIN && random.check(limit).is_empty() && random.check_vcs(limit, &["tcp1", "tcp2"]).is_empty() {
        random
    } else {
        plain
    }
}

/// Creates fair queuing with weights from a random formula, or from a plain one if the drawn formula is invalid.
fn weights(drawn: &Drawn) -> SchedulerConfig {
    let [plain, random]: [SchedulerConfig; 2] =
        [json!({"weight": "V"}), Draws::new(seed(drawn)).weight("tcp1")].map(|table| {
            serde_json::from_value(json!({"wfq_formula": table})).expect("a table of formulas has these keys")
        });
    // The draws include invalid formulas.
    let is_sound = *drawn != PLAIN
        && random.config().check().is_empty()
        && random.config().check_vcs(&["tcp1", "tcp2"]).is_empty();
    if is_sound { random } else { plain }
}

fn seed(drawn: &Drawn) -> u64 {
    drawn.iter().fold(0u64, |seed, &byte| seed.wrapping_mul(257).wrapping_add(byte.into()))
}

/// A byte for each setting, in schema order. Values below [`DRAWN`] select the default.
type Drawn = [u8; 32];
const DRAWN: u8 = 128;
const PLAIN: Drawn = [0; 32];

fn drawn() -> BoxedStrategy<Drawn> {
    any::<Drawn>().boxed()
}

static POLICIES: LazyLock<Vec<Kind>> = LazyLock::new(|| kinds("Policy"));
static SCHEDULERS: LazyLock<Vec<Kind>> = LazyLock::new(|| kinds("Scheduler"));
static ALLOCATORS: LazyLock<Vec<Kind>> = LazyLock::new(|| kinds("Allocator"));
static DISCARDS: LazyLock<Vec<Kind>> = LazyLock::new(|| kinds("EdgeDiscard"));
static TCPS: LazyLock<Vec<Kind>> = LazyLock::new(|| kinds("Tcp"));
static TRAFFIC: LazyLock<Vec<Kind>> = LazyLock::new(|| kinds("Traffic"));

/// Creates a value of one of these kinds, with some of its settings.
fn named<T: serde::de::DeserializeOwned>(kinds: &[Kind], name: &str, drawn: &Drawn, capacity: u32) -> T {
    let kind = kinds.iter().find(|kind| kind.name == name).expect("the schema lists this name");
    serde_json::from_value(json!({name: kind.settings(drawn, capacity)})).expect("the schema lists all settings")
}

/// A kind of policy, scheduler, TCP or traffic with its settings. The schema provides the kinds, so new kinds need no
/// change here.
struct Kind {
    name: String,
    settings: Vec<Setting>,
}

struct Setting {
    /// The key, after the name of its group and a dot if it is in one.
    key: String,
    required: bool,
    range: Range,
}

enum Range {
    Words(Vec<Value>),
    Threshold,
    Cells,
    /// A number of cells; the sum over all VCs must be less than the buffer.
    CellsOfAVc,
    Number {
        least: f64,
        most: f64,
    },
    /// A share; the sum over all VCs must not exceed 1.
    ShareOfAVc,
    /// One number for all VCs, or a table.
    NumberOfAVc,
    /// A small number of segments, packets or ticks.
    Few,
}

/// Returns the kinds in a schema definition that is a choice between tables.
fn kinds(definition: &str) -> Vec<Kind> {
    let schema = schema();
    // For an optional setting, the values are in the first of two choices.
    let resolve = |value: &Value| match value["$ref"].as_str().or(value["anyOf"][0]["$ref"].as_str()) {
        Some(reference) => schema["$defs"][reference.rsplit('/').next().unwrap()].clone(),
        None => value.clone(),
    };
    let kind = |choice: &Value| {
        let (name, table) = choice["properties"].as_object().unwrap().iter().next().unwrap();
        let table = resolve(table);
        let required: Vec<&str> =
            table["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let setting = |group: &str, (key, value): (&String, &Value)| {
            let resolved = resolve(value);
            let quantity = resolved["x-quantity"].as_str().filter(|_| ["Allocator", "Traffic"].contains(&definition));
            let range = quantity.map(quantities).or_else(|| range(value, &resolved))?;
            Some(Setting { key: format!("{group}{key}"), required: required.contains(&key.as_str()), range })
        };
        let settings = table["properties"].as_object().into_iter().flatten().flat_map(|(key, value)| {
            let group = resolve(value);
            match group["properties"].as_object().filter(|_| definition == "Tcp" && value["$ref"].is_string()) {
                Some(keys) => keys.iter().filter_map(|one| setting(&format!("{key}."), one)).collect::<Vec<_>>(),
                None => setting("", (key, value)).into_iter().collect(),
            }
        });
        let settings = settings.collect();
        Kind { name: name.clone(), settings }
    };
    schema["$defs"][definition]["oneOf"].as_array().unwrap().iter().map(kind).collect()
}

fn range(own: &Value, schema: &Value) -> Option<Range> {
    let constants = |choices: &Value| -> Option<Vec<Value>> {
        choices.as_array()?.iter().map(|choice| choice.get("const").cloned()).collect()
    };
    if let Some(words) = schema["enum"].as_array().cloned().or_else(|| constants(&schema["oneOf"])) {
        return Some(Range::Words(words));
    }
    let is_in_cells = own["x-unit"] == "cells";
    if schema["x-threshold"] == true || schema["anyOf"][0]["x-threshold"] == true {
        return Some(Range::Threshold);
    }
    // One number for all VCs, or a table with a number for each.
    let is_number = |choice: &Value| choice["type"] == "number";
    if schema["anyOf"].as_array().is_some_and(|choices| choices.iter().any(is_number)) {
        let is_share = own["x-expect"].as_str().is_some_and(|expect| expect.starts_with("a share of the link"));
        return Some(match (is_in_cells, is_share) {
            (true, _) => Range::CellsOfAVc,
            (_, true) => Range::ShareOfAVc,
            _ => Range::NumberOfAVc,
        });
    }
    if is_in_cells {
        return Some(Range::Cells);
    }
    match schema["type"].as_str().or(own["x-rules"].as_object().and(schema["type"][0].as_str())) {
        Some("boolean") => Some(Range::Words(vec![json!(false), json!(true)])),
        Some("number") => {
            let least = own["minimum"].as_f64().unwrap_or(0.0);
            Some(Range::Number { least, most: own["maximum"].as_f64().unwrap_or(least + 2.0) })
        }
        Some("integer") => Some(Range::Few),
        // All other settings are set later, when the scenario is assembled, or never.
        _ => None,
    }
}

/// Returns values of a quantity of traffic or of an allocator: rates, sizes or times.
fn quantities(quantity: &str) -> Range {
    Range::Words(match quantity {
        "rate" => [10_000_000, 34_368_000, 124_416_000, 155_520_000, 200_000_000, 7_777_777]
            .map(|rate| json!(BitRate::from_bits_per_second(rate)))
            .into(),
        "size" => [512, 1, 64, 1_472, 9_140, 50_000].map(|bytes| json!(Bytes { bytes })).into(),
        "time" => [1, 333, 1_000, 5_000].map(|time| json!(Duration::from_microseconds(time))).into(),
        _ => panic!("{quantity} is not a known kind of quantity"),
    })
}

/// Sets a key of a table, or of a group in the table.
fn put(table: &mut Map<String, Value>, key: &str, value: Value) {
    match key.split_once('.') {
        Some((group, key)) => {
            let group = table.entry(group).or_insert_with(|| json!({}));
            group.as_object_mut().expect("a group is a table").insert(key.into(), value);
        }
        None => _ = table.insert(key.into(), value),
    }
}

impl Kind {
    /// Returns some of the settings. Shares of the buffer refer to `capacity` cells.
    fn settings(&self, drawn: &Drawn, capacity: u32) -> Map<String, Value> {
        let quarters = |share: f64| json!((8.0 * share).ceil().max(1.0) / 4.0);
        let mut settings = Map::new();
        for (setting, &byte) in self.settings.iter().zip(drawn.iter().cycle()) {
            // If no value was drawn, use four fifths of the range.
            let (part, of) = if byte < DRAWN { (4, 5) } else { (byte - DRAWN, u8::MAX - DRAWN) };
            let share = f64::from(part) / f64::from(of);
            let value = match &setting.range {
                _ if byte < DRAWN && !setting.required => continue,
                Range::Words(words) => words[usize::from(byte) % words.len()].clone(),
                Range::Threshold if byte % 2 == 0 => json!((share * 100.0).round() / 100.0),
                Range::Threshold => {
                    json!(format!("{} cells", u64::from(capacity) * u64::from(part) / u64::from(of)))
                }
                Range::Cells => json!(u64::from(capacity) * u64::from(part) / u64::from(of)),
                Range::Few => json!(1 + byte % 4),
                // Use multiples of a quarter, so that some values are multiples of others.
                Range::NumberOfAVc if byte % 2 == 0 => quarters(share),
                Range::NumberOfAVc => json!({"tcp1": quarters(share), "tcp2": quarters(1.0 - share), "default": 1}),
                Range::CellsOfAVc => json!((share * f64::from(capacity) / 50.0).ceil()),
                // At most about forty VCs share a link.
                Range::ShareOfAVc if byte % 2 == 0 => json!((share * 20.0).round() / 1000.0),
                Range::ShareOfAVc => json!({"tcp1": share / 4.0, "tcp2": (1.0 - share) / 4.0, "default": 0.01}),
                Range::Number { least, most } => {
                    json!((((least + share * (most - least)) * 100.0).round() / 100.0).max(*least))
                }
            };
            put(&mut settings, &setting.key, value);
        }
        settings
    }
}
