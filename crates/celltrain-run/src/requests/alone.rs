//! Completion times of requests without other traffic on their paths.
//!
//! The simulation of a single connection on a path shows when each segment arrives. A request with n segments would
//! complete when the n-th segment has arrived. One simulation serves all paths with the same kinds of links and ports.
//!
//! A real stack may treat the last segment of a request differently, for example acknowledge it later. So there is a
//! separate simulation for each size of request over a real stack.

use std::collections::BTreeMap;
use std::fmt::Write;

use celltrain_core::events::{Event, Observer, RequestStep, SegmentStep};
use celltrain_core::host::{HostOptions, ProcessingTimes};
use celltrain_core::index::{LinkIndex, MemoryIndex, VcIndex};
use celltrain_core::network::{Link, Network, NodeKind};
use celltrain_core::policy::PolicyConfig;
use celltrain_core::probe::Probe;
use celltrain_core::requests::{
    Arrivals, GroupIndex, Pair, PairIndex, QueryTimes, RequestGroup, RequestRecord, Requests,
};
use celltrain_core::units::{Bytes, Clock, Duration, Span, Time};
use celltrain_core::until::Until;
use typed_index_collections::{TiVec, ti_vec};

/// The VCs of a request, for its data and for its acknowledgements.
type Vcs = [VcIndex; 2];

/// The paths that requests have used, by kind of path. One simulation serves all connections on paths of one kind.
pub struct Paths<'a> {
    describer: Describer<'a>,
    /// Index of the kind of each path that requests have used.
    places: BTreeMap<(GroupIndex, Vcs), u32>,
    kinds: BTreeMap<String, u32>,
    /// Index of the simulation for each kind of path, and for each size in bytes if real stacks carry the requests.
    simulations: BTreeMap<(u32, Option<u64>), u32>,
    needed: Vec<Needed>,
}

/// A simulation of a connection without other traffic on its path.
struct Needed {
    /// Group whose requests use this kind of path.
    group: GroupIndex,
    /// VCs of a request on this kind of path.
    vcs: Vcs,
    /// Bytes of the largest request on this kind of path.
    bytes: u64,
}

/// The simulation for a request without other traffic on its path, and the number of segments of the request in this
/// simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PathKind {
    simulation: u32,
    segments: u32,
}

impl<'a> Paths<'a> {
    /// Creates an empty set of paths.
    pub(super) fn of(network: &'a Network) -> Self {
        Self {
            describer: Describer::of(network),
            places: BTreeMap::new(),
            kinds: BTreeMap::new(),
            simulations: BTreeMap::new(),
            needed: Vec::new(),
        }
    }

    /// Adds the path of a request.
    pub(super) fn add(&mut self, group: GroupIndex, record: &RequestRecord) -> PathKind {
        let Self { describer, places, kinds, simulations, needed } = self;
        let requests = &describer.network.requests;
        let vcs = vcs(requests, record);
        let own = &requests.groups[group];
        let kind = *places.entry((group, vcs)).or_insert_with(|| {
            let number = index(kinds.len());
            // The description of a network does not contain the stack of a group, so the name of the group is added.
            let of_stack = if own.outside { format!(" {}", own.name) } else { String::new() };
            *kinds.entry(describer.describe(own, vcs) + &of_stack).or_insert(number)
        });
        let (size, segments, bytes) = sizes(own, record.bytes);
        let simulation = *simulations.entry((kind, size)).or_insert_with(|| {
            needed.push(Needed { group, vcs, bytes });
            index(needed.len() - 1)
        });
        let most = &mut needed[simulation as usize].bytes;
        *most = bytes.max(*most);
        PathKind { simulation, segments }
    }
}

/// Simulations of connections without other traffic on their paths.
pub struct Unloaded<'a> {
    paths: Paths<'a>,
    /// The result of each simulation of a connection.
    simulated: Vec<Arrived>,
}

/// Arrival times of segments on a connection without other traffic on its path.
struct Arrived {
    clock: Clock,
    /// For each n from 1, the time from opening until the first n segments have arrived. If a real stack carries the
    /// request, the list contains only the request's completion time.
    after: Vec<Span>,
}

impl<'a> Unloaded<'a> {
    /// Simulates a connection for each kind of path and TCP that requests have used. `run` simulates a network with a
    /// recorder until the end of the run.
    ///
    /// # Errors
    /// Returns the first error of `run`.
    pub fn simulate<E>(paths: Paths<'a>, run: impl Fn(&Network, &mut Recorder) -> Result<(), E>) -> Result<Self, E> {
        let network = paths.describer.network;
        let simulate = |&Needed { group, vcs, bytes }: &Needed| {
            let alone = network_for(network, (group, vcs), bytes);
            let own = &network.requests.groups[group];
            let mut recorder = Recorder::new((!own.outside).then(|| own.tcp.options().mss.bytes));
            run(&alone, &mut recorder)?;
            Ok(Arrived { clock: alone.clock(), after: recorder.after() })
        };
        let simulated = paths.needed.iter().map(simulate).collect::<Result<_, E>>()?;
        Ok(Self { paths, simulated })
    }

    /// Returns the slowdown of a request; `None` if the request is not complete. The times in the record are in units
    /// of `clock`.
    pub fn slowdown(&self, group: GroupIndex, record: &RequestRecord, clock: Clock) -> Option<f64> {
        let requests = &self.paths.describer.network.requests;
        let took = record.completed()? - record.opened;
        let kind = self.paths.places[&(group, vcs(requests, record))];
        let (size, segments, _) = sizes(&requests.groups[group], record.bytes);
        self.slowdown_of(PathKind { simulation: self.paths.simulations[&(kind, size)], segments }, took, clock)
    }

    /// Returns the slowdown of requests on a kind of path. `took` is their completion time in units of `clock`.
    pub(super) fn slowdown_of(&self, path: PathKind, took: Span, clock: Clock) -> Option<f64> {
        let alone = &self.simulated[path.simulation as usize];
        let after = alone.after.get(path.segments as usize - 1)?;
        // Both products are computed exactly, so the quotient of equal times is exactly 1.
        let product = |span: Span, of_other: Clock| u128::from(span.0) * u128::from(of_other.units_per_second);
        Some(product(took, alone.clock) as f64 / product(*after, clock) as f64)
    }
}

/// Returns the VCs that carry the data and acknowledgements of a request.
fn vcs(requests: &Requests, record: &RequestRecord) -> Vcs {
    [record.data_vc(requests), record.ack_vc(requests)]
}

/// Returns the size of the request if this size needs a separate simulation, the number of segments that must arrive in
/// the simulation, and the number of bytes to send in it.
fn sizes(group: &RequestGroup, bytes: u64) -> (Option<u64>, u32, u64) {
    if group.outside {
        return (Some(bytes), 1, bytes);
    }
    let mss = group.tcp.options().mss.bytes;
    let segments = bytes.div_ceil(mss).max(1);
    // Only an open request can have more than 2^32 segments, and no run is long enough to complete such a request.
    let segments = u32::try_from(segments).unwrap_or(u32::MAX);
    (None, segments, u64::from(segments).saturating_mul(mss))
}

fn index(number: usize) -> u32 {
    u32::try_from(number).expect("the number of simulations fits in 32 bits")
}

/// Returns the link without losses and without delays of single packets, at its highest rate and shortest delay.
fn at_its_best(link: &Link) -> Link {
    Link { losses: Vec::new(), late: Vec::new(), changes: None, ..link.clone() }
}

/// Creates a network with a single connection, which opens after a time as long as the original run.
fn network_for(network: &Network, (group, [data_vc, ack_vc]): (GroupIndex, Vcs), bytes: u64) -> Network {
    let own = &network.requests.groups[group];
    // If a policy counts VCs or has settings for individual VCs, the network needs all VCs. Otherwise, it needs only
    // the two VCs of this connection.
    let keeps_all = network.vcs[data_vc].path.iter().chain(&network.vcs[ack_vc].path).any(|&link| {
        let Link { policy, scheduler, .. } = &network.links[link];
        policy.counts_vcs() || scheduler.config().counts_vcs()
    });
    let (vcs, [data_vc, ack_vc]) = if keeps_all {
        (network.vcs.clone(), [data_vc, ack_vc])
    } else {
        let vcs = [data_vc, ack_vc].map(|vc| network.vcs[vc].clone());
        (TiVec::from(vcs.to_vec()), [0, 1].map(VcIndex::new))
    };
    let ends = |vc: VcIndex| {
        let path = &vcs[vc].path;
        [network.links[path[0]].from, network.links[path[path.len() - 1]].to]
    };
    let [from, to] = ends(data_vc);
    let [there, back] = [0, 1].map(PairIndex::new);
    let pairs =
        vec![Pair { from, to, vcs: vec![data_vc], back }, Pair { from: to, to: from, vcs: vec![ack_vc], back: there }];
    let arrivals = Arrivals::Incast {
        interval: network.duration,
        times: QueryTimes::Fixed,
        bytes: Bytes { bytes },
        senders: 1,
        receivers: vec![vec![there]],
        spread: Duration::default(),
    };
    let groups = vec![RequestGroup { arrivals, ..own.clone() }];
    Network {
        seed: network.seed,
        // The run ends before a second query.
        duration: Duration { picoseconds: network.duration.picoseconds.saturating_mul(2) },
        until: Until::Duration,
        nodes: network.nodes.clone(),
        links: network.links.iter().map(at_its_best).collect(),
        memories: network.memories.clone(),
        vcs,
        merges: if keeps_all { network.merges.clone() } else { TiVec::new() },
        flows: TiVec::new(),
        requests: Requests { pairs: pairs.into(), groups: groups.into(), drops_closed: true },
        bottleneck: network.bottleneck,
        tie_order: network.tie_order,
        service_order: network.service_order,
        switching: network.switching,
        host: network.host.clone(),
        aal5: network.aal5.clone(),
        file_size: None,
        measure: celltrain_core::network::MeasureWindow::default(),
        delays: celltrain_core::delay::DelayChoice::None,
        recording: None,
    }
}

/// Records when each segment of the only connection arrives for the first time.
pub struct Recorder {
    /// Payload bytes of a full segment; `None` to record only the completion of the request.
    mss: Option<u64>,
    opened: Option<Time>,
    /// Arrival time of each segment, up to the last segment that arrived.
    arrived: Vec<Option<Time>>,
}

impl Recorder {
    fn new(mss: Option<u64>) -> Self {
        Self { mss, opened: None, arrived: Vec::new() }
    }

    /// Returns, for each n from 1, the time from opening until the first n segments have arrived. The list ends before
    /// the first segment that did not arrive.
    fn after(self) -> Vec<Span> {
        let Some(opened) = self.opened else { return Vec::new() };
        let mut last = opened;
        let times = self.arrived.into_iter().map_while(|arrived| {
            last = last.max(arrived?);
            Some(last - opened)
        });
        times.collect()
    }
}

impl Observer for Recorder {
    const OBSERVES: bool = true;

    fn on_event(&mut self, now: Time, event: Event) {
        match event {
            Event::Request(request) => match request.step {
                RequestStep::Opened { .. } => _ = self.opened.get_or_insert(now),
                RequestStep::Completed if self.mss.is_none() => self.arrived.push(Some(now)),
                RequestStep::Completed | RequestStep::Closed => {}
            },
            Event::Segment(segment) => {
                let SegmentStep::Arrived { segment, .. } = segment.step else { return };
                let Some(mss) = self.mss else { return };
                let number = usize::try_from(segment.seq / mss).expect("the number of segments fits 32 bits");
                // Only some segments of a long request may arrive before the end of the run.
                if self.arrived.len() <= number {
                    self.arrived.resize(number + 1, None);
                }
                self.arrived[number].get_or_insert(now);
            }
            _ => {}
        }
    }
}

impl Probe for Recorder {}

/// Descriptions of paths. Without other traffic, a request takes the same time on all paths with equal descriptions.
struct Describer<'a> {
    network: &'a Network,
    memories: TiVec<LinkIndex, Option<MemoryIndex>>,
    /// True if properties of hosts, such as processing times, are drawn at random for each host.
    hosts_differ: bool,
}

impl<'a> Describer<'a> {
    fn of(network: &'a Network) -> Self {
        let mut memories = ti_vec![None; network.links.len()];
        for (number, memory) in network.memories.iter_enumerated() {
            for &port in &memory.ports {
                memories[port] = Some(number);
            }
        }
        let HostOptions { processing, processing_times, clock_offset, clock_skew, .. } = network.host;
        let is_drawn = processing_times == ProcessingTimes::Uniform && processing > Duration::default();
        Self { network, memories, hosts_differ: is_drawn || clock_offset > Duration::default() || clock_skew > 0.0 }
    }

    /// Describes everything that affects a connection of a group without other traffic on its path.
    fn describe(&self, group: &RequestGroup, vcs: Vcs) -> String {
        let mut text = format!("{:?} {:?}", group.tcp, group.opening);
        for vc in vcs {
            let vc = &self.network.vcs[vc];
            write!(text, " [{:?} {:?} {:?} {:?}", vc.class, vc.priority, vc.tagged, vc.contract)
                .expect("writing to a string cannot fail");
            let mut before = None;
            for &link in &vc.path {
                self.describe_link(&mut text, link, before, vc.priority);
                if self.depends_on_names(link) {
                    write!(text, " {}", vc.name).expect("writing to a string cannot fail");
                }
                before = Some(link);
            }
            text.push(']');
        }
        text
    }

    fn describe_link(&self, text: &mut String, link: LinkIndex, before: Option<LinkIndex>, priority: u8) {
        let Link { name, from, rate, delay, buffer, policy, scheduler, marking, wire, .. } = &self.network.links[link];
        write!(text, " {rate} {delay} {buffer:?} {policy:?} {scheduler:?} {marking:?} {wire:?}")
            .expect("writing to a string cannot fail");
        if (self.hosts_differ && self.network.nodes[*from].kind == NodeKind::Host) || self.depends_on_names(link) {
            write!(text, " {name}").expect("writing to a string cannot fail");
        }
        let Some(memory) = self.memories[link].map(|memory| &self.network.memories[memory]) else { return };
        let celltrain_core::memory::MemoryConfig {
            cells,
            ports,
            pools,
            queues,
            frames,
            policies_see,
            pauses,
            pause_response,
            ..
        } = memory;
        let (ports, queues_held) = (ports.len(), queues.len());
        write!(
            text,
            " {cells} {ports} {queues_held} {pools:?} {frames:?} {policies_see:?} {pauses:?} {pause_response:?}"
        )
        .expect("writing to a string cannot fail");
        for queue in queues.iter().filter(|queue| queue.priority == priority) {
            if queue.link == link || Some(queue.link) == before {
                let own = (queue.pool, queue.reserve, queue.alpha, queue.threshold, queue.lossless);
                write!(text, " {own:?}").expect("writing to a string cannot fail");
            }
        }
    }

    /// Returns whether a port distinguishes VCs by their names, or by other information outside the port's settings.
    fn depends_on_names(&self, link: LinkIndex) -> bool {
        let Link { policy, scheduler, .. } = &self.network.links[link];
        let config = scheduler.config();
        matches!(policy, PolicyConfig::Python(_))
            || policy.counts_vcs()
            || config.counts_vcs()
            || !policy.settings().per_vc.is_empty()
            || !policy.constants_by_vc().is_empty()
            || !config.per_vc().is_empty()
            || !config.constants_by_vc().is_empty()
    }
}
