//! The results of a run.

use std::fmt;

use typed_index_collections::TiVec;

use crate::cancellation::Interrupted;
use crate::delay::{DelayTimes, FlowDelayTimes};
use crate::file_delay::FileDelay;
use crate::fingerprint::Fingerprint;
use crate::gfr::EdgeCounters;
use crate::index::{FlowIndex, LinkIndex, MemoryIndex, VcIndex};
use crate::link_loss::{LossCounters, LossPattern, LossUnit, LossyIndex, RuleCounters};
use crate::memory::{OccupancyTimes, PoolIndex, QueueCounters, QueueIndex, Side};
use crate::network::{Link, Network};
use crate::port::PortCounters;
use crate::requests::{GroupIndex, GroupResult};
use crate::timeouts::Timeouts;

/// All results of a run. Rates are averages over the whole run, including its start, unless [`RunResult::over`] limits
/// the measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct RunResult {
    /// Simulated seconds.
    pub duration_s: f64,
    /// Start of the measured time, in seconds.
    pub measured_from_s: f64,
    /// End of the measured time, in seconds.
    pub measured_to_s: f64,
    /// Sum of the goodputs of the flows and requests that cross the bottleneck, each divided by its maximum possible
    /// goodput there.
    pub efficiency: f64,
    /// Jain's index of the goodputs of flows whose VCs have the class UBR, or of all flows if no flow has such a VC.
    /// `None` if these flows delivered nothing.
    pub fairness: Option<f64>,
    /// Jain's index of the goodputs of the same flows as in `fairness`, each divided by its max-min fair goodput: 1 if
    /// all flows get the same fraction of their fair share. Flows whose fair share is 0 do not count. `None` if these
    /// flows delivered nothing.
    pub fairness_max_min: Option<f64>,
    /// Sum of the goodputs of all flows and requests, in megabits per second.
    pub goodput_mbps: f64,
    /// Delay of the files of all flows together; `None` if it is not measured.
    pub file_delay: Option<FileDelay>,
    /// By flow.
    pub flows: TiVec<FlowIndex, FlowResult>,
    /// Timeouts of all flows.
    pub timeouts: Timeouts,
    /// Results for requests, by group.
    pub requests: TiVec<GroupIndex, GroupResult>,
    /// By link.
    pub ports: TiVec<LinkIndex, PortResult>,
    /// Results for memories shared by ports.
    pub memories: TiVec<MemoryIndex, MemoryResult>,
    /// The first deadlock: priority groups that paused each other forever, if any.
    pub deadlock: Option<Deadlock>,
    /// Results for links with loss rules.
    pub losses: TiVec<LossyIndex, LossResult>,
    /// Results for VCs with a contract.
    pub contracts: Vec<ContractResult>,
    /// Results for VCs whose rate is controlled (ABR).
    pub abr: Vec<AbrResult>,
    /// Counts of cells of all VCs together.
    pub cells: CellTotals,
    /// Number of cells that crossed a link, summed over all links.
    pub cell_hops: u64,
    /// 64-bit digest that changes if the time of any segment or acknowledgement changes.
    pub fingerprint: Fingerprint,
}

/// The result of a run, unless the run was interrupted.
pub type Outcome = Result<RunResult, Interrupted>;

/// One flow's measures.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowResult {
    /// Its name.
    pub name: String,
    /// The name of the flow's kind of traffic.
    pub traffic: &'static str,
    /// Name and version of the stack at the flow's ends, if the ends are outside the simulation; otherwise empty. Not
    /// in the fingerprint.
    pub stack: String,
    /// Bytes passed to the application in order, each counted once, in megabits per second.
    pub goodput_mbps: f64,
    /// The goodput that the flow would have at its max-min fair share of the network, in megabits per second:
    /// [`goodputs_mbps`](crate::max_min::goodputs_mbps).
    pub max_min_mbps: f64,
    /// Payload of all segments that arrived complete, including repetitions, in megabits per second.
    pub throughput_mbps: f64,
    /// Number of bytes passed to the application.
    pub delivered_bytes: u64,
    /// Payload of all segments that arrived complete, including repetitions, in bytes.
    pub received_bytes: u64,
    /// Number of segments sent, including retransmissions.
    pub segments_sent: u64,
    /// Segments retransmitted.
    pub retransmitted_segments: u64,
    /// Number of segments that arrived without new data.
    pub repeated_segments: u64,
    /// Number of packets without TCP and UDP, sent by a stack outside the simulation. If all its packets are of this
    /// kind, segment counts and throughput are unknown. Not in the fingerprint.
    pub unknown_packets: u64,
    /// Number of times the retransmission timer expired.
    pub timeouts: u64,
    /// Number of times duplicate acknowledgements triggered a retransmission.
    pub fast_retransmits: u64,
    /// cwnd at the end, in segments; 0 without TCP.
    pub cwnd_segments: f64,
    /// Results of the formulas of the flow's congestion control that were replaced because they were not finite
    /// numbers.
    pub replaced_results: u64,
    /// Number of packets sent; 0 with TCP.
    pub packets_sent: u64,
    /// Number of packets that arrived complete; 0 with TCP.
    pub packets_delivered: u64,
    /// Seconds from the flow's start until its whole file was acknowledged; `None` if it was not, or if the flow has no
    /// file.
    pub completion_s: Option<f64>,
    /// Delay of the files into which the flow's stream is divided; `None` if not measured or without TCP.
    pub file_delay: Option<FileDelay>,
    /// Delays of the flow's packets; `None` if they are not measured.
    pub delays: Option<FlowDelayTimes>,
}

impl FlowResult {
    /// Returns whether segment counts and throughput are known. They are unknown if a stack outside the simulation uses
    /// neither TCP nor UDP.
    pub const fn has_segments(&self) -> bool {
        self.segments_sent > 0 || self.unknown_packets == 0
    }
}

/// Measures of one output port.
#[derive(Clone, Debug, PartialEq)]
pub struct PortResult {
    /// Its name.
    pub name: String,
    /// Number of cells that can wait at the port; `None` if unlimited.
    pub buffer_cells: Option<u32>,
    /// The policy's name; at an edge device, the name of the discard algorithm.
    pub policy: &'static str,
    /// Occupancy up to which the policy admits every frame; `None` if it has no such threshold.
    pub threshold_cells: Option<u32>,
    /// The scheduler's name.
    pub scheduler: &'static str,
    /// Largest number of cells waiting at any time.
    pub max_queue_cells: u32,
    /// Cells waiting at the end of the run.
    pub queue_cells: u32,
    /// Counters of the port's cells.
    pub counters: PortCounters,
    /// Results of the formulas of the port's policy that were replaced because they were not finite numbers.
    pub replaced_results: u64,
    /// Time during which the port transmitted Ethernet frames, in units of the clock; 0 if its link carries cells.
    pub(crate) on_ethernet: u64,
    /// Share of the run during which the port transmitted.
    pub utilisation: f64,
    /// Delays of the packets at the port; `None` if not measured.
    pub delays: Option<DelayTimes>,
    /// The queues of a port that has several queues, with their delays; empty if delays are not measured.
    pub queues: Vec<QueueResult>,
}

/// Results for a memory shared by ports.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryResult {
    /// Its name.
    pub name: String,
    /// Number of cells that fit into the memory.
    pub cells: u32,
    /// The largest number of cells in the memory so far.
    pub max_used_cells: u32,
    /// Number of cells in the memory at the end.
    pub used_cells: u32,
    /// Distribution of the occupancy over the measured time.
    pub occupancy: OccupancyTimes,
    /// Its pools.
    pub pools: TiVec<PoolIndex, PoolResult>,
    /// Results of the memory's queues and priority groups.
    pub queues: TiVec<QueueIndex, QueueResult>,
}

/// A deadlock: priority groups that pause each other forever, because the cells of each group wait at the port that
/// feeds the next group.
#[derive(Clone, Debug, PartialEq)]
pub struct Deadlock {
    /// Time at which the last pause closed the cycle, in seconds.
    pub at_s: f64,
    /// The links that feed the groups of the cycle, with their priorities, in cycle order.
    pub cycle: Vec<(String, u8)>,
}

/// Results for a pool of a memory.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolResult {
    /// Its name.
    pub name: String,
    /// The side of the switch on which the pool's cells are counted.
    pub side: Side,
    /// The policy's name.
    pub policy: &'static str,
    /// B: cells of the pool's shared part.
    pub cells: u32,
    /// The largest number of cells in the shared part so far.
    pub max_used_cells: u32,
    /// Number of occupied cells in the shared part at the end.
    pub used_cells: u32,
    /// Results of the formulas of the pool's policy that were replaced because they were not finite numbers.
    pub replaced_results: u64,
}

/// Results for a queue or a priority group of a memory, or for a queue of a port with a scheduler or a shaped port.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueResult {
    /// The queue's name: the memory, the link and the priority; or the link, and the VCs or classes.
    pub name: String,
    /// The name of the queue's pool; `None` without a memory, in which case cells are not counted by queue.
    pub pool: Option<String>,
    /// The side of the switch on which the queue's cells are counted.
    pub side: Side,
    /// Cells in the queue at the end, including those in its reserve and its headroom.
    pub cells: u32,
    /// Counters of the queue's cells.
    pub counters: QueueCounters,
    /// Delays of the queue's packets at the output port; `None` for a priority group, or if not measured.
    pub delays: Option<DelayTimes>,
}

impl RunResult {
    /// Returns the packets, cells or bytes that loss rules select but that were never sent.
    pub fn unmet_rules(&self, network: &Network) -> Vec<UnmetRule> {
        let with_rules = network.links.iter().filter(|link| link.has_rules());
        let rules = with_rules.zip(&self.losses).flat_map(|(link, of_link)| {
            let losses = link.losses.iter().map(|rule| ("loss", rule.vc, rule.unit, &rule.pattern));
            let delays = link.late.iter().map(|rule| ("delay", rule.vc, LossUnit::Packets, &rule.pattern));
            losses.chain(delays).zip(&of_link.rules).map(move |(rule, &counters)| (link, rule, counters))
        });
        let unmet = |(link, (what, vc, unit, pattern), counters): (&Link, (_, VcIndex, _, &LossPattern), _)| {
            let problem = pattern.unmet(unit, &network.vcs[vc].name, counters)?;
            Some(format!("a {what} on {} did not happen: {problem}", link.name))
        };
        let texts = rules.map(unmet).enumerate();
        texts.filter_map(|(number, text)| Some(UnmetRule { number, text: text? })).collect()
    }
}

/// A link's rule that lost or delayed fewer packets than it should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmetRule {
    /// Number of the rule among all rules of the network, from 0; the same in all runs of a scenario.
    pub number: usize,
    /// The warning: what did not happen, on which link, and why.
    pub text: String,
}

impl fmt::Display for UnmetRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Results for a link with loss rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LossResult {
    /// The link's name.
    pub name: String,
    /// Counters of the cells at the end of the link.
    pub counters: LossCounters,
    /// Counters of the link's rules over the whole run, in order.
    pub rules: Vec<RuleCounters>,
}

/// Results for the frames of a VC with a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractResult {
    /// The VC's name.
    pub name: String,
    /// Counters at the edge of the network.
    pub edge: EdgeCounters,
    /// Whole frames that policies discarded at the VC's ports, before any merge.
    pub discarded_frames: u64,
    /// Frames that lost a cell at the VC's ports because a buffer was full.
    pub cut_frames: u64,
}

/// Results for the rate of an ABR VC.
#[derive(Clone, Debug, PartialEq)]
pub struct AbrResult {
    /// The VC's name.
    pub name: String,
    /// ACR at the end, in megabits per second, including cell headers.
    pub acr_mbps: f64,
    /// Number of forward RM cells that the VC's source sent in rate.
    pub forward_rm_cells: u64,
    /// Number of forward RM cells that the VC's source sent out of rate.
    pub out_of_rate_rm_cells: u64,
    /// Number of backward RM cells that returned to the VC's source.
    pub returned_rm_cells: u64,
    /// Fraction of RM cells, both forward and backward, among the cells that the VC's source sent. `None` if it sent no
    /// cells.
    pub rm_share: Option<f64>,
}

/// Counts of all cells by outcome: `offered = delivered + lost + discarded + in_flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CellTotals {
    /// Cells sent by end systems, including RM cells.
    pub offered: u64,
    /// Number of cells that reached the host at the end of their VC, and of RM cells that reached the end of their
    /// loop.
    pub delivered: u64,
    /// Cells lost because a buffer was full, or on a link with loss rules.
    pub lost: u64,
    /// Cells discarded by policies.
    pub discarded: u64,
    /// Cells waiting, in service or on a link when the run ended.
    pub in_flight: u64,
}
