//! What a run needs of memory, worked out before it: the sizes of its records times how many there will be.
//!
//! Two kinds of records: those that are made at the start and stay, which are counted; and those that come and go with
//! what is on its way, of which there is a bound: no flow has more on its way than its window, nor much more than its
//! path and the buffers on it hold. `docs/design/memory.md` says what grows with what.

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use crate::end_systems;
use crate::engine::{Engine, fast, reference};
use crate::gfr;
use crate::index::{FlowIndex, LinkIndex, MergeIndex};
use crate::metrics;
use crate::network::{Flow, Link, Network, Next, Node, NodeKind, Vc};
use crate::port::{self, PortCounters};
use crate::rate_control;
use crate::rng::Stream;
use crate::scheduler::{Class, SchedulerConfig};
use crate::shaped_port;
use crate::stop::{Interrupted, Stop};
use crate::traffic::Pattern;
use crate::units::CELL_BITS;

/// What a run needs of memory, and for how many things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Hosts, switches and edge devices.
    pub nodes: u64,
    /// Virtual channels, those of acknowledgements too.
    pub vcs: u64,
    /// How often VCs cross a link.
    pub hops: u64,
    /// Connections, and packets that nothing answers.
    pub flows: u64,
    /// Bytes at the peak.
    pub bytes: u64,
    /// Of these what is there from before the run until its answer is written: the network, and its results at last.
    pub kept: u64,
}

impl Footprint {
    /// That of a run of a network.
    ///
    /// # Errors
    /// When it is told to stop.
    pub fn of(network: &Network, engine: Engine, stop: &Stop<'_>) -> Result<Self, Interrupted> {
        let shape = Shape::new(network, stop)?;
        let run = shape.models() + shape.on_the_way(engine);
        let run = run
            + match engine {
                Engine::Fast => fast::footprint(&shape),
                Engine::Reference => reference::footprint(&shape),
            };
        stop.ask()?;
        Ok(Self {
            nodes: count(network.nodes.len()),
            vcs: count(network.vcs.len()),
            hops: shape.hops,
            flows: count(network.flows.len()),
            bytes: described(network) + shape.routing() + run + shape.results() + shape.ended(),
            kept: described(network) + shape.results(),
        })
    }

    /// The whole in words, beside the bytes that are free.
    pub fn in_words(&self, about: &str, free: u64) -> String {
        let Self { nodes, vcs, hops, bytes, .. } = self;
        format!(
            "{nodes} nodes and {vcs} VCs, which cross links {hops} times, take {about} {} of memory, and of the {} that are \
             free a run may have three quarters; fewer connections, shorter paths or smaller windows take less",
            in_units(*bytes),
            in_units(free)
        )
    }

    /// The least a network of so many links, flows and hops of their data takes, before it is laid out.
    pub fn at_least(nodes: u64, links: u64, flows: u64, hops: u64) -> u64 {
        let of_node = size::<Node>() + SMALL;
        let of_link = size::<Link>() + SMALL;
        // Two VCs and their hops each.
        let of_flow = size::<Flow>() + 2 * (size::<Vc>() + 2 * SMALL) + SMALL + end_systems::BYTES_PER_FLOW;
        let of_hop = 2 * (size::<LinkIndex>() + size::<Next>() + port::BYTES_PER_VC);
        let products = [(nodes, of_node), (links, of_link), (flows, of_flow), (hops, of_hop)];
        products.iter().fold(0, |sum: u64, (number, each)| sum.saturating_add(number.saturating_mul(*each)))
    }
}

/// Bytes as people say them: 1.5 GiB.
pub fn in_units(bytes: u64) -> String {
    let (whole, unit) = if bytes >= 1 << 30 { (1u64 << 30, "GiB") } else { (1 << 20, "MiB") };
    format!("{:.1} {unit}", bytes as f64 / whole as f64)
}

/// What is counted of a network, and bounds of what is on its way in it.
pub(crate) struct Shape<'a> {
    pub(crate) network: &'a Network,
    /// By link: the VCs that cross it, those that have merged counted once.
    pub(crate) labels: TiVec<LinkIndex, u64>,
    /// By link: the links that feed its port.
    pub(crate) feeders: fast::Feeders,
    /// By flow: the frames of its data that are on their way at most.
    frames: TiVec<FlowIndex, u64>,
    /// By link: the cells on their way of all flows that cross it.
    crossing: TiVec<LinkIndex, u64>,
    /// By link: the cells that wait at its port at most.
    pub(crate) queues: TiVec<LinkIndex, u64>,
    hops: u64,
}

/// The sizes of what a port keeps, as one of the engines has it.
pub(crate) struct PortRecords {
    /// The port itself.
    pub(crate) port: u64,
    /// What it keeps of a VC, in lists of their own.
    pub(crate) of_vc: &'static [u64],
    /// Its queues where there are several, with who chooses among them; and each of these.
    pub(crate) queues: u64,
    pub(crate) queue: u64,
}

impl PortRecords {
    /// The lists of so many VCs.
    fn rows(&self, vcs: u64) -> u64 {
        self.of_vc.iter().map(|&each| array(vcs, each)).sum()
    }
}

impl<'a> Shape<'a> {
    pub(crate) fn new(network: &'a Network, stop: &Stop<'_>) -> Result<Self, Interrupted> {
        let mut labels = ti_vec![0; network.links.len()];
        let mut flows_over = ti_vec![0u64; network.links.len()];
        let mut has_branch: TiVec<MergeIndex, bool> = ti_vec![false; network.merges.len()];
        for vc in &network.vcs {
            stop.steps(vc.path.len())?;
            let merged = vc.merge.filter(|&merge| std::mem::replace(&mut has_branch[merge], true));
            for &link in &vc.path {
                labels[link] += 1;
                if merged.is_some_and(|merge| network.merges[merge].at == link) {
                    break;
                }
            }
        }
        for flow in stop.each(&network.flows) {
            let flow = flow?;
            for &link in &network.vcs[flow.data_vc].path {
                flows_over[link] += 1;
            }
        }
        let frames: TiVec<FlowIndex, u64> =
            stop.map(&network.flows, |flow| frames_of(network, flow, &flows_over))?.into();
        let mut crossing = ti_vec![0u64; network.links.len()];
        for (flow, frames) in network.flows.iter().zip(&frames) {
            stop.step()?;
            let cells = frames * u64::from(flow.frame(&network.aal5).1);
            for &link in &network.vcs[flow.data_vc].path {
                crossing[link] += cells;
            }
            // Acknowledgements.
            for &link in &network.vcs[flow.ack_vc].path {
                crossing[link] += frames;
            }
        }
        let waiting = |(&cells, link): (&u64, &Link)| link.buffer.map_or(cells, |k| u64::from(k).min(cells));
        let queues = crossing.iter().zip(&network.links).map(waiting).collect();
        let hops = network.vcs.iter().map(|vc| count(vc.path.len())).sum();
        Ok(Self { network, labels, feeders: fast::Feeders::new(network, stop)?, frames, crossing, queues, hops })
    }

    /// Labels and where cells go from link to link: three lists a link that grow as VCs are given their labels.
    fn routing(&self) -> u64 {
        let of_link = |&labels: &u64| 3 * LIST + grown(labels, size::<Next>()) + grown(labels, 4) + grown(labels, 1);
        let lists: u64 = self.labels.iter().map(of_link).sum();
        lists + count(self.network.vcs.len()) * 4 + count(self.network.links.len()) * 4
    }

    /// End systems, contracts, shaped ports, loops and allocators: both engines drive the same.
    fn models(&self) -> u64 {
        let network = self.network;
        let flows = count(network.flows.len()) * end_systems::BYTES_PER_FLOW;
        let abr = count(network.vcs.iter().filter(|vc| vc.abr.is_some()).count());
        let contracts = count(network.vcs.iter().filter(|vc| vc.contract.is_some()).count());
        let vcs =
            count(network.vcs.len()) * (end_systems::BYTES_PER_VC + gfr::BYTES_PER_VC + rate_control::BYTES_PER_VC);
        let passes = if abr > 0 { self.hops * 12 } else { 0 };
        let allocated = |(link, &labels): (&Link, &u64)| {
            link.allocator.as_ref().map_or(0, |config| BYTES_PER_ALLOCATOR + array(labels, config.bytes_per_vc()))
        };
        let allocators: u64 = network.links.iter().zip(&self.labels).map(allocated).sum();
        let per_link = count(network.links.len()) * (2 * LIST);
        flows
            + vcs
            + contracts * gfr::BYTES_PER_CONTRACT
            + abr * (shaped_port::BYTES + shaped_port::BYTES_PER_VC)
            + passes
            + allocators
            + per_link
    }

    /// What comes and goes: frames with what they carry, the runs and trains of their cells, or the cells themselves.
    fn on_the_way(&self, engine: Engine) -> u64 {
        let network = self.network;
        let of_flow = |(flow, &frames): (&Flow, &u64)| {
            let selective = if flow.tcp.selective() { end_systems::BYTES_PER_BLOCKS } else { 0 };
            let logs = grown(frames, end_systems::BYTES_PER_FRAME)
                + grown(frames.div_ceil(4), end_systems::BYTES_PER_FRAME + selective);
            let is_abr = network.vcs[flow.data_vc].abr.is_some();
            let rms = if is_abr { 2 * grown(frames.div_ceil(2) + 1, shaped_port::BYTES_PER_RM) } else { 0 };
            logs + rms
        };
        let logs: u64 = network.flows.iter().zip(&self.frames).map(of_flow).sum();
        logs + match engine {
            Engine::Fast => self.frames.iter().map(|&frames| grown(frames, fast::BYTES_PER_FRAME)).sum(),
            Engine::Reference => grown(self.cells_on_links(), reference::BYTES_PER_CELL),
        }
    }

    /// Cells that are sent or on their way between two ports at most: as many as fit on each link, cross it, or are
    /// sent in the run.
    fn cells_on_links(&self) -> u64 {
        let of_link = |(link, &crossing): (&Link, &u64)| {
            let time = link.delay.seconds().min(self.network.duration.seconds());
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some cells on a link")]
            let fitting = (link.rate.bits_per_second as f64 / CELL_BITS as f64 * time) as u64;
            crossing.min(fitting + 2)
        };
        self.network.links.iter().zip(&self.crossing).map(of_link).sum()
    }

    /// What the run ends with, while the engine is still there.
    fn results(&self) -> u64 {
        let ports = count(self.network.links.len()) * metrics::BYTES_PER_PORT;
        let abr = self.network.vcs.iter().filter(|vc| vc.abr.is_some());
        ports + count(self.network.flows.len()) * metrics::BYTES_PER_FLOW + count(abr.count()) * metrics::BYTES_PER_ABR
    }

    /// What they are put together from.
    fn ended(&self) -> u64 {
        let labels: u64 =
            self.labels.iter().map(|&labels| array(labels, size::<PortCounters>()) + array(labels, 4)).sum();
        let ports = count(self.network.links.len()) * (2 * LIST + 8);
        labels + ports + count(self.network.vcs.len()) * metrics::BYTES_PER_VC
    }

    /// Whether cells of several links meet at a port, or it looks at single ones for another reason.
    pub(crate) fn is_contended(&self, link: LinkIndex) -> bool {
        let port = &self.network.links[link];
        let rate = |link: LinkIndex| self.network.links[link].rate;
        let is_fed_slowly = match self.feeders.of(link) {
            [] => true,
            [from] => rate(*from) <= port.rate,
            _ => false,
        };
        self.network.nodes[port.from].kind == NodeKind::Switch && (!is_fed_slowly || port.allocator.is_some())
    }

    /// What the port of a link keeps for the VCs that cross it, policy and scheduler included; `waiting` are the bytes
    /// of what may wait there.
    pub(crate) fn port(&self, link: LinkIndex, records: &PortRecords, waiting: u64) -> u64 {
        let (labels, port) = (self.labels[link], &self.network.links[link]);
        let queues = match port.scheduler {
            SchedulerConfig::Fifo(_) => 0,
            ref by_class if by_class.by_class() => {
                records.queues + labels * 8 + count(Class::ALL.len()) * records.queue
            }
            _ => records.queues + labels * records.queue,
        };
        let policy = if port.policy.per_vc().is_empty() { 0 } else { labels * BYTES_PER_VC_OF_POLICY };
        records.port + records.rows(labels) + queues + policy + waiting + size::<Stream>()
    }
}

/// Frames of a flow's data that are on their way at most: as its window, its traffic and the time allow; and where a
/// buffer on its path has a limit and its own host's link is not what holds it back, not much more than path and
/// buffers hold.
fn frames_of(network: &Network, flow: &Flow, flows_over: &TiSlice<LinkIndex, u64>) -> u64 {
    let path = &network.vcs[flow.data_vc].path;
    let cells = f64::from(flow.frame(&network.aal5).1.max(1));
    let rate = |link: LinkIndex| network.links[link].rate.bits_per_second as f64 / CELL_BITS as f64 / cells;
    let seconds = network.duration.seconds();
    let first = path.first().copied().unwrap_or_default();
    let sent = match flow.traffic.packets() {
        Some(Pattern { rate, .. }) => rate.bits_per_second as f64 / CELL_BITS as f64 / cells * seconds,
        None => rate(first) * seconds,
    };
    let options = flow.tcp.options();
    let mss = options.mss.bytes.max(1);
    let round_trip = network.round_trip(&network.vcs[flow.data_vc]).seconds()
        + 2.0 * path.iter().map(|&link| 1.0 / rate(link)).sum::<f64>();
    let over_tcp = flow.traffic.packets().is_none();
    let window = if over_tcp {
        let most = flow
            .traffic
            .bytes()
            .map_or(options.receive_window.bytes, |file| file.bytes.min(options.receive_window.bytes));
        // It doubles in a round trip at most.
        let grown = 2f64.powf((seconds / round_trip + 1.0).min(60.0));
        ((most / mss).max(1) as f64).min(grown)
    } else {
        f64::INFINITY
    };
    let share = |link: LinkIndex| rate(link) / flows_over[link].max(1) as f64;
    let least = path.iter().map(|&link| share(link)).fold(f64::INFINITY, f64::min);
    let limited = path.iter().any(|&link| network.links[link].buffer.is_some());
    let waits_at_home = share(first) <= least * NEARLY;
    let held = if limited && !waits_at_home {
        let buffers = path
            .iter()
            .filter_map(|&link| Some(f64::from(network.links[link].buffer?) / cells / flows_over[link].max(1) as f64));
        OVERSHOOT * (least * round_trip + buffers.sum::<f64>() + 1.0)
    } else {
        f64::INFINITY
    };
    // Beyond its first segments a sender sends one, or two in slow start, for one that has arrived; those of all flows
    // over a link are no more than the link sends in the run.
    let answered = if over_tcp { FIRST + least * seconds } else { f64::INFINITY };
    let frames = (sent + 1.0).min(window).min(held).min(answered);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number of frames below 2^53")]
    let frames = frames.ceil().clamp(1.0, (1u64 << 53) as f64) as u64;
    frames
}

/// What describes the network: its records, with the room their lists have for more, and their names.
fn described(network: &Network) -> u64 {
    let nodes = array(count(network.nodes.capacity()), size::<Node>());
    let links = array(count(network.links.capacity()), size::<Link>());
    let vcs = array(count(network.vcs.capacity()), size::<Vc>());
    let flows = array(count(network.flows.capacity()), size::<Flow>());
    let texts = network.nodes.iter().map(|node| &node.name).chain(network.links.iter().map(|link| &link.name));
    let texts = texts.chain(network.vcs.iter().map(|vc| &vc.name)).chain(network.flows.iter().map(|flow| &flow.name));
    let paths: u64 = network.vcs.iter().map(|vc| array(count(vc.path.capacity()), size::<LinkIndex>())).sum();
    nodes + links + vcs + flows + paths + texts.map(|text| array(count(text.capacity()), 1)).sum::<u64>()
}

/// How much more a sender may have on its way than its part of path and buffers: slow start goes on for a round trip
/// after the first loss.
const OVERSHOOT: f64 = 2.0;
/// Segments that are sent before one has arrived.
const FIRST: f64 = 2.0;
/// A host's link that has no more for a flow than this times the least on its path is where its window waits.
const NEARLY: f64 = 1.1;
/// Settings and counters of a policy that looks at VCs one by one.
const BYTES_PER_VC_OF_POLICY: u64 = 64;
/// An allocator itself, and what it counts in the intervals it looks back to.
const BYTES_PER_ALLOCATOR: u64 = 384;

/// A list, before anything is in it.
pub(crate) const LIST: u64 = 24;
/// The least an allocation takes.
const SMALL: u64 = 32;

/// A list of as many records as are needed.
pub(crate) fn array(records: u64, each: u64) -> u64 {
    if records == 0 || each == 0 {
        return 0;
    }
    records.saturating_mul(each).saturating_add(8).next_multiple_of(16).max(SMALL)
}

/// A list that has grown record by record, and doubled its room whenever that was full.
pub(crate) fn grown(records: u64, each: u64) -> u64 {
    if records == 0 {
        return 0;
    }
    let least = if each == 1 { 8 } else { 4 };
    array(records.min(1 << 60).next_power_of_two().max(least), each)
}

pub(crate) const fn size<T>() -> u64 {
    size_of::<T>() as u64
}

pub(crate) fn count(of: usize) -> u64 {
    of as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fast::run_queues;
    use crate::index::VcIndex;
    use crate::network::Merge;
    use crate::network::tests::{FIRST, N_SOURCE_BOTTLENECK, N_SOURCE_WAY_BACK, n_source_network, ring_network};
    use crate::policy::{PolicyConfig, tail_drop};
    use crate::tcp::{TcpConfig, TcpOptions};

    fn sources(number: usize, buffer: Option<u32>, duration: &str) -> Network {
        let tcp = TcpConfig::Vanilla(TcpOptions::default());
        n_source_network(number, "5us", buffer, PolicyConfig::TailDrop(tail_drop::Config {}), &tcp, duration)
    }

    fn of(network: &Network, engine: Engine) -> Footprint {
        Footprint::of(network, engine, &Stop::never()).unwrap()
    }

    #[test]
    fn everything_is_counted_once() {
        let footprint = of(&sources(3, Some(1000), "10ms"), Engine::Fast);
        let Footprint { nodes, vcs, hops, flows, bytes, kept } = footprint;
        assert!(kept < bytes);
        assert_eq!([nodes, vcs, hops, flows], [8, 6, 18, 3]);
        assert!(
            footprint
                .in_words("about", 5 << 20)
                .starts_with("8 nodes and 6 VCs, which cross links 18 times, take about 0")
        );
        // 1000 runs of 12 bytes may wait, and a frame of each of 128 in a window is some 100 bytes.
        assert!((20_000..200_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn twice_the_network_takes_twice_the_memory() {
        for engine in Engine::ALL {
            let ring = |hosts| of(&ring_network(hosts, "1ms"), engine).bytes as f64;
            let n_source = |number| of(&sources(number, Some(1000), "1ms"), engine).bytes as f64;
            for ratio in [ring(2000) / ring(1000), n_source(2000) / n_source(1000)] {
                assert!((1.8..2.2).contains(&ratio), "{}: {ratio}", engine.name());
            }
        }
    }

    #[test]
    fn what_is_on_the_way_is_bounded_by_window_time_and_buffers() {
        let frames = |network: &Network| Shape::new(network, &Stop::never()).unwrap().frames[FIRST];
        // 65535 bytes are 127 segments of 512; one source has the link to itself.
        assert_eq!(frames(&sources(1, Some(1000), "1s")), 127);
        assert_eq!(frames(&sources(20, None, "1s")), 127, "a queue without limit holds them all");
        // 10 us are less than a round trip, in which a window of one may double; and 10 ms are not enough for 20
        // windows.
        assert_eq!(frames(&sources(1, None, "10us")), 2);
        assert!((10..30).contains(&frames(&sources(20, None, "10ms"))));
        // A frame is 12 cells, so the link sends 30566 in a second and a source's part of it is 1528.3. A round trip is
        // 30 us and six frames of 32.7 us: 0.35 frames of that part. Of the buffer it is 1000 / 12 / 20 = 4.17. With
        // one more, twice over: 11.02.
        assert_eq!(frames(&sources(20, Some(1000), "1s")), 12);
    }

    #[test]
    fn what_no_answer_holds_back_is_bounded_by_its_rate() {
        let frames = |text: &str| {
            let mut network = sources(1, None, "10ms");
            network.flows[FIRST].traffic = serde_json::from_str(text).unwrap();
            Shape::new(&network, &Stop::never()).unwrap().frames[FIRST]
        };
        // 4.24 Mb/s are 100 cells in 10 ms. 520 bytes with UDP's and IP's headers and the trailer make 12 cells: 8.33
        // packets, and the first of all.
        assert_eq!(frames(r#"{"constant_rate": {"rate": "4.24Mbps", "packet": "520B"}}"#), 10);
        assert_eq!(frames(r#"{"constant_rate": {"rate": "8.48Mbps", "packet": "520B"}}"#), 18);
        // A file of two segments is never more than that.
        assert_eq!(frames(r#"{"file": {"bytes": "1024B"}}"#), 2);
    }

    #[test]
    fn branches_are_one_vc_behind_the_link_they_merge_at() {
        let mut network = sources(3, None, "1ms");
        let exit = network.vcs[VcIndex::new(0)].path[2];
        let merge = network.merges.push_and_get_key(Merge { name: "all".into(), at: N_SOURCE_BOTTLENECK });
        for branch in [0, 2, 4].map(VcIndex::new) {
            network.vcs[branch].path[2] = exit;
            network.vcs[branch].merge = Some(merge);
        }
        let shape = Shape::new(&network, &Stop::never()).unwrap();
        let labels = |link: LinkIndex| shape.labels[link];
        assert_eq!([network.vcs[VcIndex::new(2)].path[0], N_SOURCE_BOTTLENECK, exit].map(labels), [1, 3, 1]);
        // A VC's acknowledgements merge with nobody's.
        assert_eq!(labels(N_SOURCE_WAY_BACK), 3);
        let of_routing: TiVec<LinkIndex, u64> =
            network.routing(&Stop::never()).unwrap().next.iter().map(|next| count(next.len())).collect();
        assert_eq!(shape.labels, of_routing);
    }

    #[test]
    fn the_bare_network_is_counted_by_its_records() {
        let of = |nodes, links, flows, hops| Footprint::at_least(nodes, links, flows, hops);
        // A record and its name each; a flow is two VCs with a name and a path each; a hop is a label both ways.
        assert_eq!(of(1, 0, 0, 0), size::<Node>() + 32);
        assert_eq!(of(0, 1, 0, 0), size::<Link>() + 32);
        assert_eq!(of(0, 0, 1, 0), size::<Flow>() + size::<Vc>() * 2 + 5 * 32 + end_systems::BYTES_PER_FLOW);
        assert_eq!(of(0, 0, 0, 1), 2 * (size::<LinkIndex>() + size::<Next>() + port::BYTES_PER_VC));
        assert_eq!(of(2, 3, 5, 7), 2 * of(1, 0, 0, 0) + 3 * of(0, 1, 0, 0) + 5 * of(0, 0, 1, 0) + 7 * of(0, 0, 0, 1));
    }

    #[test]
    fn routing_is_three_lists_a_link() {
        // Six links with a VC each: three lists of 24 bytes that have room for four ways of 12 bytes, four numbers and
        // eight truths, with what an allocation takes. Then a label for each of two VCs, and a number for each link.
        assert_eq!(size::<Next>(), 12);
        let network = sources(1, None, "1ms");
        let shape = Shape::new(&network, &Stop::never()).unwrap();
        assert_eq!(shape.routing(), 6 * (3 * 24 + 64 + 32 + 32) + 2 * 4 + 6 * 4);
    }

    #[test]
    fn a_scheduler_has_queues_by_class_or_by_vc() {
        let more = |scheduler: &str| {
            let mut network = sources(5, Some(100), "1ms");
            let records = &fast::batching_port::RECORDS;
            let before = Shape::new(&network, &Stop::never()).unwrap().port(N_SOURCE_BOTTLENECK, records, 0);
            network.links[N_SOURCE_BOTTLENECK].scheduler = serde_json::from_str(scheduler).unwrap();
            Shape::new(&network, &Stop::never()).unwrap().port(N_SOURCE_BOTTLENECK, records, 0) - before
        };
        // Three classes, CBR, VBR and UBR, and the class of each of five VCs; or a queue for each VC.
        let by_class = run_queues::BYTES + 5 * 8 + 3 * run_queues::BYTES_PER_QUEUE;
        assert_eq!(more(r#"{"strict_priority": {}}"#), by_class);
        assert_eq!(more(r#"{"guaranteed_rate": {"share": 0.1}}"#), by_class);
        assert_eq!(more(r#"{"round_robin": {}}"#), run_queues::BYTES + 5 * run_queues::BYTES_PER_QUEUE);
    }

    #[test]
    fn queues_hold_what_windows_fill_and_no_more_than_the_buffer() {
        let queue = |network: &Network| Shape::new(network, &Stop::never()).unwrap().queues[N_SOURCE_BOTTLENECK];
        assert_eq!(queue(&sources(50, Some(1000), "1s")), 1000);
        assert_eq!(queue(&sources(1, Some(1 << 28), "1s")), 127 * 12);
    }

    #[test]
    fn lists_are_as_allocators_give_them() {
        assert_eq!([array(0, 8), array(1, 8), array(10, 8), grown(1, 1), grown(5, 12)], [0, 32, 96, 32, 112]);
    }

    #[test]
    fn the_bare_network_is_less_than_the_whole() {
        let network = ring_network(500, "1ms");
        let least = Footprint::at_least(501, 1000, 500, 1000);
        let whole = of(&network, Engine::Fast).bytes;
        assert!(least < whole && least > whole / 20, "{least} of {whole}");
        assert_eq!(Footprint::at_least(u64::MAX, u64::MAX, 1, 1), u64::MAX);
    }
}
