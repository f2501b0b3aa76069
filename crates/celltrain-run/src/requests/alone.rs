//! Completion times of requests that have their paths to themselves.
//!
//! A simulation of one connection alone on a path shows when each segment arrives. A request with n segments would
//! complete when the n-th segment has arrived. Paths with the same kinds of links and ports share a simulation.

use std::collections::BTreeMap;
use std::fmt::Write;

use celltrain_core::cancellation::Interrupted;
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
use typed_index_collections::{TiVec, ti_vec};

/// The VCs of a request, for its data and for its acknowledgements.
type Vcs = [VcIndex; 2];

/// The paths that requests have used, by kind. Connections on paths of one kind share a simulation.
pub struct Paths<'a> {
    describer: Describer<'a>,
    /// Kind of each group's path.
    places: BTreeMap<(GroupIndex, Vcs), u32>,
    kinds: BTreeMap<String, u32>,
    /// For each kind of path: a group that uses this kind, one such path, and the most segments of any request.
    needed: Vec<(GroupIndex, Vcs, u32)>,
}

/// The kind of the path of a request, and its number of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PathKind {
    kind: u32,
    segments: u32,
}

impl<'a> Paths<'a> {
    /// Creates an empty set of paths.
    pub(super) fn of(network: &'a Network) -> Self {
        Self { describer: Describer::of(network), places: BTreeMap::new(), kinds: BTreeMap::new(), needed: Vec::new() }
    }

    /// Adds the path of a request.
    pub(super) fn add(&mut self, group: GroupIndex, record: &RequestRecord) -> PathKind {
        let Self { describer, places, kinds, needed } = self;
        let requests = &describer.network.requests;
        let vcs = vcs(requests, record);
        let own = &requests.groups[group];
        let kind = *places.entry((group, vcs)).or_insert_with(|| {
            *kinds.entry(describer.describe(own, vcs)).or_insert_with(|| {
                needed.push((group, vcs, 0));
                u32::try_from(needed.len() - 1).expect("the number of kinds of paths fits in 32 bits")
            })
        });
        let segments = segments(own, record.bytes);
        let most = &mut needed[kind as usize].2;
        *most = segments.max(*most);
        PathKind { kind, segments }
    }
}

/// Simulations of connections that are alone on their paths.
pub struct Alone<'a> {
    paths: Paths<'a>,
    /// Simulations, by kind of path.
    simulated: Vec<Arrived>,
}

/// Arrival times of segments on a connection that has its path to itself.
struct Arrived {
    clock: Clock,
    /// Time from opening until the first n segments have arrived, for each n from 1.
    after: Vec<Span>,
}

impl<'a> Alone<'a> {
    /// Simulates a connection for each kind of path and TCP that requests have used. `run` runs a network to
    /// its end with a recorder.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if cancelled.
    pub fn simulate(
        paths: Paths<'a>,
        run: impl Fn(&Network, &mut Recorder) -> Result<(), Interrupted>,
    ) -> Result<Self, Interrupted> {
        let network = paths.describer.network;
        let simulate = |&(group, vcs, segments): &(GroupIndex, Vcs, u32)| {
            let alone = network_for(network, (group, vcs), u64::from(segments));
            let mut recorder = Recorder::new(network.requests.groups[group].tcp.options().mss.bytes);
            run(&alone, &mut recorder)?;
            Ok(Arrived { clock: alone.clock(), after: recorder.after() })
        };
        let simulated = paths.needed.iter().map(simulate).collect::<Result<_, Interrupted>>()?;
        Ok(Self { paths, simulated })
    }

    /// Returns the slowdown of a request; `None` if it is not complete. Times are on `clock`.
    pub fn slowdown(&self, group: GroupIndex, record: &RequestRecord, clock: Clock) -> Option<f64> {
        let requests = &self.paths.describer.network.requests;
        let took = record.completed()? - record.opened;
        let kind = self.paths.places[&(group, vcs(requests, record))];
        let segments = segments(&requests.groups[group], record.bytes);
        self.slowdown_of(PathKind { kind, segments }, took, clock)
    }

    /// Returns the slowdown of requests on a kind of path with this completion time on `clock`.
    pub(super) fn slowdown_of(&self, path: PathKind, took: Span, clock: Clock) -> Option<f64> {
        let alone = &self.simulated[path.kind as usize];
        let after = alone.after.get(path.segments as usize - 1)?;
        // Both products are exact, so equal times give a quotient of exactly 1.
        let product = |span: Span, of_other: Clock| u128::from(span.0) * u128::from(of_other.units_per_second);
        Some(product(took, alone.clock) as f64 / product(*after, clock) as f64)
    }
}

/// Returns the VCs of a request.
fn vcs(requests: &Requests, record: &RequestRecord) -> Vcs {
    [record.data_vc(requests), record.ack_vc(requests)]
}

fn segments(group: &RequestGroup, bytes: u64) -> u32 {
    let segments = bytes.div_ceil(group.tcp.options().mss.bytes).max(1);
    // Only an open request can have more, and no run is so long that it would be complete.
    u32::try_from(segments).unwrap_or(u32::MAX)
}

/// Creates the network with one connection, which opens after a time as long as the original run.
fn network_for(network: &Network, (group, [data_vc, ack_vc]): (GroupIndex, Vcs), segments: u64) -> Network {
    let own = &network.requests.groups[group];
    let mss = own.tcp.options().mss.bytes;
    // Policies that count VCs or have per-VC settings need all VCs; others need only these two.
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
        bytes: Bytes { bytes: segments.saturating_mul(mss) },
        senders: 1,
        receivers: vec![vec![there]],
        spread: Duration::default(),
    };
    let groups = vec![RequestGroup { arrivals, ..own.clone() }];
    Network {
        seed: network.seed,
        // The run ends before a second query.
        duration: Duration { picoseconds: network.duration.picoseconds.saturating_mul(2) },
        nodes: network.nodes.clone(),
        // An empty network loses and delays no packets.
        links: network.links.iter().map(|link| Link { losses: Vec::new(), late: Vec::new(), ..link.clone() }).collect(),
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
    }
}

/// Records when each segment of the only connection arrives for the first time.
pub struct Recorder {
    mss: u64,
    opened: Option<Time>,
    /// For each segment up to the last that arrived, when it did.
    arrived: Vec<Option<Time>>,
}

impl Recorder {
    fn new(mss: u64) -> Self {
        Self { mss, opened: None, arrived: Vec::new() }
    }

    /// Returns, for each number of segments, the time until that many have arrived. Ends before the first segment that
    /// did not arrive.
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
            Event::Request(request) if matches!(request.step, RequestStep::Opened { .. }) => {
                self.opened.get_or_insert(now);
            }
            Event::Segment(segment) => {
                let SegmentStep::Arrived { segment, .. } = segment.step else { return };
                let number = usize::try_from(segment.seq / self.mss).expect("the number of segments fits 32 bits");
                // Only few of the segments of a long request may arrive before the end.
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

/// Descriptions of paths. A request takes the same time on all paths with equal descriptions.
struct Describer<'a> {
    network: &'a Network,
    memories: TiVec<LinkIndex, Option<MemoryIndex>>,
    /// True if properties of hosts are drawn for each host.
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

    /// Describes everything that affects a group's connection that has its path to itself.
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
        let Link { name, from, rate, delay, buffer, policy, scheduler, marking, .. } = &self.network.links[link];
        write!(text, " {rate} {delay} {buffer:?} {policy:?} {scheduler:?} {marking:?}")
            .expect("writing to a string cannot fail");
        if (self.hosts_differ && self.network.nodes[*from].kind == NodeKind::Host) || self.depends_on_names(link) {
            write!(text, " {name}").expect("writing to a string cannot fail");
        }
        let Some(memory) = self.memories[link].map(|memory| &self.network.memories[memory]) else { return };
        let celltrain_core::memory::MemoryConfig { cells, ports, pools, queues, frames, policies_see, pauses, .. } =
            memory;
        write!(text, " {cells} {} {} {pools:?} {frames:?} {policies_see:?} {pauses:?}", ports.len(), queues.len())
            .expect("writing to a string cannot fail");
        for queue in queues.iter().filter(|queue| queue.priority == priority) {
            if queue.link == link || Some(queue.link) == before {
                let own = (queue.pool, queue.reserve, queue.alpha, queue.threshold, queue.lossless);
                write!(text, " {own:?}").expect("writing to a string cannot fail");
            }
        }
    }

    /// Returns whether a port treats VCs by name, or by other information that is not in its settings.
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
