//! What is counted of a network before it runs: labels, feeders, and bounds of what is on its way.

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use crate::feeders::Feeders;
use crate::index::{FlowIndex, LinkIndex, MergeIndex};
use crate::network::{Flow, Link, Network, NodeKind};
use crate::rng::Stream;
use crate::scheduler::{Class, SchedulerConfig};
use crate::sizes::{PortRecords, count, size};
use crate::stop::{Interrupted, Stop};
use crate::tcp::TimerRestart;
use crate::traffic::Pattern;
use crate::units::CELL_BITS;

/// What is counted of a network, and bounds of what is on its way in it.
pub(crate) struct Shape<'a> {
    pub(crate) network: &'a Network,
    /// By link: the VCs that cross it, those that have merged counted once.
    pub(crate) labels: TiVec<LinkIndex, u64>,
    /// By link: the links that feed its port.
    pub(crate) feeders: Feeders,
    /// By flow: the frames of its data that are on their way at most.
    pub(crate) frames: TiVec<FlowIndex, u64>,
    /// By link: the cells on their way of all flows that cross it.
    pub(crate) crossing: TiVec<LinkIndex, u64>,
    /// By link: the cells that wait at its port at most.
    pub(crate) queues: TiVec<LinkIndex, u64>,
    pub(crate) hops: u64,
    /// Whether most frames of a flow are segments that are sent again before they have left.
    pub(crate) repeats: bool,
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
        let (frames, repeats): (Vec<u64>, Vec<bool>) =
            stop.map(&network.flows, |flow| frames_of(network, flow, &flows_over))?.into_iter().unzip();
        let (frames, repeats) = (TiVec::from(frames), repeats.contains(&true));
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
        Ok(Self { network, labels, feeders: Feeders::new(network, stop)?, frames, crossing, queues, hops, repeats })
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
/// buffers hold. Also returns whether most of them are segments that are sent again before they have left.
fn frames_of(network: &Network, flow: &Flow, flows_over: &TiSlice<LinkIndex, u64>) -> (u64, bool) {
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
    // So it may where hosts take time over what they send.
    let waits_at_home = share(first) <= least * NEARLY || network.host.process();
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
    let repeated = if over_tcp { GROWING * repeated(network, flow, share(first), least) * seconds } else { 0.0 };
    let repeats = repeated > frames;
    let frames = frames + repeated;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number of frames below 2^53")]
    let frames = frames.ceil().clamp(1.0, (1u64 << 53) as f64) as u64;
    (frames, repeats)
}

/// Frames a second that pile up because a segment times out before it has left: none unless timeouts are shorter than
/// a segment's time on the link it waits for. `first` and `least` are its shares of its host's link and of the
/// slowest one on its path, in frames a second.
fn repeated(network: &Network, flow: &Flow, first: f64, least: f64) -> f64 {
    let options = flow.tcp.options();
    let path = &network.vcs[flow.data_vc].path;
    let timers = if options.timer_restart == TimerRestart::PerSegment { options.window_segments() as f64 } else { 1.0 };
    let sent = timers / options.repeated_timeout().0.seconds();
    let sent = sent.min(1.0 / options.timer_granularity.seconds());
    // Ports behind the host drop what their buffers do not hold.
    let unlimited = path.iter().skip(1).any(|&link| network.links[link].buffer.is_none());
    let mut left = if unlimited { least } else { first };
    if let Some(abr) = &network.vcs[flow.data_vc].abr {
        left =
            left.min(abr.mcr.bits_per_second as f64 / CELL_BITS as f64 / f64::from(flow.frame(&network.aal5).1.max(1)));
    }
    if network.host.process() {
        left = left.min(1.0 / network.host.processing.seconds());
    }
    (sent - left).max(0.0)
}

/// A list that doubles is there twice while it is moved, half as long the first time.
const GROWING: f64 = 1.5;
/// How much more a sender may have on its way than its part of path and buffers: slow start goes on for a round trip
/// after the first loss.
const OVERSHOOT: f64 = 2.0;
/// Segments that are sent before one has arrived.
const FIRST: f64 = 2.0;
/// A host's link that has no more for a flow than this times the least on its path is where its window waits.
const NEARLY: f64 = 1.1;
/// Settings and counters of a policy that looks at VCs one by one.
const BYTES_PER_VC_OF_POLICY: u64 = 64;
