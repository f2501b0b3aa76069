//! What a run needs of memory, worked out before it: the sizes of its records times how many there will be.
//!
//! Two kinds of records: those that are made at the start and stay, which are counted; and those that come and go with
//! what is on its way, of which there is a bound: no flow has more on its way than its window, nor much more than its
//! path and the buffers on it hold. `docs/design/memory.md` says what grows with what.

use crate::contracts;
use crate::end_systems;
use crate::engine::{Engine, fast, reference};
use crate::index::LinkIndex;
use crate::metrics;
use crate::network::{Flow, Link, Network, Next, Node, Vc};
use crate::port::{self, PortCounters, PortState};
use crate::rate_control;
use crate::shape::Shape;
use crate::shaped_port;
use crate::sizes::{LIST, SMALL, array, count, grown, size};
use crate::stop::{Interrupted, Stop};
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
    /// Whether much of it is segments that are sent again before they have left.
    pub repeats: bool,
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
            bytes: described(network) + shape.routing() + run + shape.results() + shape.ended(engine),
            kept: described(network) + shape.results(),
            repeats: shape.repeats,
        })
    }

    /// Bytes that the fast engine needs in addition if a probe reads the range of these ports' queues.
    ///
    /// # Errors
    /// If it is told to stop.
    pub fn of_traced_ports(network: &Network, links: &[LinkIndex], stop: &Stop<'_>) -> Result<u64, Interrupted> {
        Ok(fast::of_traced_ports(&Shape::new(network, stop)?, links))
    }

    /// The whole in words, beside the bytes that are free.
    pub fn in_words(&self, about: &str, free: u64) -> String {
        let Self { nodes, vcs, hops, bytes, repeats, .. } = self;
        let advice = if *repeats {
            "longer retransmission timeouts"
        } else {
            "fewer connections, shorter paths or smaller windows"
        };
        format!(
            "{nodes} nodes and {vcs} VCs, which cross links {hops} times, take {about} {} of memory, and of the {} that are \
             free a run may have three quarters; {advice} take less",
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

impl Shape<'_> {
    /// Labels and where cells go from link to link: three lists a link that grow as VCs are given their labels.
    fn routing(&self) -> u64 {
        let of_link = |&labels: &u64| 3 * LIST + grown(labels, size::<Next>()) + grown(labels, 4) + grown(labels, 1);
        let lists: u64 = self.labels.iter().map(of_link).sum();
        lists + count(self.network.vcs.len()) * 4 + count(self.network.links.len()) * 4
    }

    /// End systems, contracts, shaped ports, loops and allocators: both engines drive the same.
    fn models(&self) -> u64 {
        let network = self.network;
        let flows = count(network.flows.len()) * end_systems::BYTES_PER_FLOW
            + end_systems::bytes_of_formulas(network.flows.iter());
        let abr = count(network.vcs.iter().filter(|vc| vc.abr.is_some()).count());
        let contracts = count(network.vcs.iter().filter(|vc| vc.contract.is_some()).count());
        let exchange_blocks = network.flows.iter().any(|flow| flow.tcp.selective());
        let merge = network.vcs.iter().any(|vc| vc.merge.is_some());
        let of_vc = end_systems::BYTES_PER_VC
            + if exchange_blocks { end_systems::BYTES_OF_BLOCKS } else { 0 }
            + if merge { end_systems::BYTES_OF_BRANCHES } else { 0 };
        let vcs = count(network.vcs.len()) * (of_vc + contracts::BYTES_PER_VC + rate_control::BYTES_PER_VC);
        let passes = if abr > 0 { self.hops * 12 } else { 0 };
        let allocated = |(link, &labels): (&Link, &u64)| {
            link.allocator.as_ref().map_or(0, |config| BYTES_PER_ALLOCATOR + array(labels, config.bytes_per_vc()))
        };
        let allocators: u64 = network.links.iter().zip(&self.labels).map(allocated).sum();
        let per_link = count(network.links.len()) * (2 * LIST);
        let hosts = if network.host.process() {
            count(network.nodes.len()) * end_systems::BYTES_PER_HOST + 16 * count(network.vcs.len())
        } else {
            0
        };
        flows
            + hosts
            + vcs
            + contracts * contracts::BYTES_PER_CONTRACT
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
            let held = if network.host.process() { 2 * grown(frames, end_systems::BYTES_PER_PACKET) } else { 0 };
            logs + rms + held
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
    fn ended(&self, engine: Engine) -> u64 {
        let labels: u64 =
            self.labels.iter().map(|&labels| array(labels, size::<PortCounters>()) + array(labels, 4)).sum();
        let of_port = match engine {
            Engine::Fast => fast::BYTES_PER_PORT_END,
            Engine::Reference => size::<PortState>(),
        };
        let ports = count(self.network.links.len()) * of_port;
        labels + ports + count(self.network.vcs.len()) * metrics::BYTES_PER_VC
    }
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

/// An allocator itself, and what it counts in the intervals it looks back to.
const BYTES_PER_ALLOCATOR: u64 = 384;

#[cfg(test)]
mod tests {
    use typed_index_collections::TiVec;

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
        let Footprint { nodes, vcs, hops, flows, bytes, kept, .. } = footprint;
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
    fn a_port_that_cells_only_pass_is_counted_as_contended_if_its_range_is_read() {
        let network = sources(3, Some(1000), "10ms");
        let more = |links: &[LinkIndex]| Footprint::of_traced_ports(&network, links, &Stop::never()).unwrap();
        assert_eq!(more(&[N_SOURCE_BOTTLENECK]), 0, "it is contended anyway");
        let all: Vec<_> = network.links.keys().collect();
        let passed = network.links.keys().filter(|&link| more(&[link]) > 0).count();
        assert_eq!(passed, 6, "a port of a switch for each host, but for the senders' data");
        assert!(more(&all) > 6 * 1000, "{}", more(&all));
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
