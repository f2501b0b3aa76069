//! Generates random scenarios. A scenario shrinks towards the first item of each list: fewer nodes and flows, default
//! values and identical links.
//!
//! Each network may use only a random half of the features and of the models of each list ([`Swarm`]). So some networks
//! have several VCs with contracts, or EPD at every port. A mixture of all features rarely gives such networks (Groce
//! and others, "Swarm testing", ISSTA 2012).

#[path = "kinds.rs"]
mod kinds;
#[path = "meshes.rs"]
pub(crate) mod meshes;
#[path = "overlapping.rs"]
pub(crate) mod overlapping;
#[path = "ports.rs"]
mod ports;
#[path = "swarm.rs"]
mod swarm;
#[path = "tcps.rs"]
mod tcps;
#[path = "topologies.rs"]
mod topologies;
#[path = "vcs.rs"]
mod vcs;

use std::collections::BTreeMap;

use celltrain_core::aal5::{Aal5Options, Encapsulation, Framing};
use celltrain_core::cancellation::CancellationToken;
use celltrain_core::edge_device::EdgeConfig;
use celltrain_core::host::{HostOptions, ProcessingTimes};
use celltrain_core::policy::PolicyConfig;
use celltrain_core::scheduler::SchedulerConfig;
use celltrain_core::tcp::{TcpConfig, TcpOptions};
use celltrain_core::tie::{ServiceOrder, TieOrder};
use celltrain_core::units::{BitRate, Bytes, Duration};
use celltrain_scenario::document::join;
use celltrain_scenario::scenario::{CellOptions, MeasureOptions, SwitchOptions, VcOptions};
use celltrain_scenario::topology::Topology;
use celltrain_scenario::topology::network::{Config as GeneralNetwork, FlowConfig, LinkConfig};
use celltrain_scenario::{Scenario, check};
use proptest::prelude::*;
use proptest::sample::select;

use kinds::{ALLOCATORS, PLAIN, POLICIES, drawn, named};
use ports::{Edge, Model, Port, edge, port};
use swarm::{Feature, Swarm, swarm};
use tcps::{OwnFlow, Tcp, own_flow, tcp};
pub(crate) use topologies::{any_topology, written_out};
use vcs::{OwnVc, vc};

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
/// cells repeatedly coincide or alternate. In one measurement, 79 % of the cells at contended ports were in isolated
/// ties, 8 % in rounds of ties, 9 % between other cells, and 3 % in uninterrupted trains (62 % on random networks).
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

/// Draws topologies that have only a few parameters, and writes them as general networks. Some links have different
/// directions.
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

/// Returns a TCP variant with default options.
pub(crate) fn plain_tcp(name: &str) -> TcpConfig {
    TcpConfig::named(name, TcpOptions::default()).expect("the schema lists this name")
}

/// Rates of links in bit/s. There are only a few rates, so that ties are common. Two of the rates have no common time
/// unit with the other rates.
const RATES: &[u64] = &[155_520_000, 155_520_000, 155_520_000, 77_760_000, 149_760_000, 34_368_000];
/// Rates of links in bit/s, most of which are multiples of each other.
const FEW_RATES: &[u64] = &[155_520_000, 155_520_000, 77_760_000, 77_760_000, 34_368_000];
/// Rates of links in bit/s: equal to, above or below the rate of the trunk.
const CROWDING_RATES: &[u64] = &[155_520_000, 155_520_000, 622_080_000, 77_760_000, 149_760_000];
/// Microseconds.
const DELAYS: &[u64] = &[5, 5, 5, 0, 20, 1_000];
/// Microseconds.
const STARTS: &[u64] = &[0, 0, 0, 3, 500];
/// Number of cells by which a buffer exceeds the largest frame; `None` for an infinite buffer.
const BUFFERS: &[Option<u32>] =
    &[None, Some(100_000), Some(5_000), Some(1_000), Some(300), Some(88), Some(48), Some(13), Some(1), Some(0)];
/// Numbers of cells by which a buffer exceeds the largest frame. Large buffers are more frequent in this list.
const LARGE_BUFFERS: &[Option<u32>] = &[None, None, None, Some(100_000), Some(5_000), Some(1_000), Some(88), Some(1)];
/// Capacity that replaces an infinite buffer for a policy that requires a finite buffer.
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
    /// True if receivers can reassemble no frame longer than the longest frame in use.
    exact_sdu: bool,
    /// True if VCs that end at the same host are merged.
    merged: bool,
}

/// Options of individual flows and VCs, by the number of the flow. The `bool` selects the VC of the flow's
/// acknowledgements.
#[derive(Clone, Debug, Default)]
struct Own {
    flows: Vec<(usize, OwnFlow)>,
    vcs: Vec<(usize, bool, OwnVc)>,
    edge: Edge,
}

/// A window below this number is in segments, and a larger window is in bytes.
const SEGMENTS: u64 = 100;

/// Segment sizes and windows in bytes.
#[derive(Clone, Copy)]
struct Sizes {
    mss: &'static [u64],
    windows: &'static [u64],
}

impl Rest {
    /// Returns a valid scenario from the random parts. Features that need AAL5 are kept, because random networks often
    /// use them.
    fn scenario(&self, network: &GeneralNetwork, ports: &(Port, Vec<(usize, Port)>), own: &Own) -> Scenario {
        let mut scenario = self.as_drawn(network.clone(), ports, own);
        loop {
            let faults = check::check(&scenario, &[], &|_| Ok(()), &CancellationToken::never()).unwrap().faults;
            if faults.is_empty() {
                return scenario;
            }
            let keys: Vec<&str> = faults.iter().map(|fault| fault.key.as_str()).collect();
            assert!(leave_out(&mut scenario, &keys), "every random scenario is valid: {faults:?}");
        }
    }

    fn as_drawn(
        &self,
        mut network: GeneralNetwork,
        (default, others): &(Port, Vec<(usize, Port)>),
        own: &Own,
    ) -> Scenario {
        // Leave out hosts without flows, which would only make failures harder to read.
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
            // Draw packet framing often, because many random networks use a feature that needs AAL5, and then keep
            // AAL5.
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
        // A feature of the network needs AAL5, so remove packet framing.
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
        // The sum of the rates guaranteed to VCs exceeds a link's rate, so remove the table of the last VC with a
        // guarantee.
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
        // Merging VCs are the only remaining VCs that can be removed.
        network.flows.iter_mut().for_each(|flow| flow.vc = None);
    }
    *scenario != before
}

/// Draws the parts other than network and ports of a scenario that lasts up to `longest` microseconds.
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
