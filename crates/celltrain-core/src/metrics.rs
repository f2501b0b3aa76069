//! Measures of a run. This file defines every measure.
//!
//! Source: ATM Forum 96-1269, section 3.2; `docs/mechanisms.md` section 6.

mod window;

use std::fmt;

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use crate::cancellation::{CancellationToken, Interrupted};
use crate::contracts::Edge;
use crate::delay::{DelayTimes, FlowDelayTimes, PortDelayTimes};
use crate::end_systems::{Connection, EndSystems, VcCounters};
use crate::file_delay::FileDelay;
use crate::fingerprint::Fingerprint;
use crate::gfr::EdgeCounters;
use crate::index::{FlowIndex, LinkIndex, MemoryIndex, VcIndex};
use crate::link_loss::{LinkLosses, LossCounters, LossPattern, LossUnit, LossyIndex, RuleCounters};
use crate::max_min;
use crate::memory::{
    MemoryConfig, MemoryState, OccupancyTimes, PoolConfig, PoolIndex, PoolState, QueueConfig, QueueCounters,
    QueueIndex, Side,
};
use crate::network::{Link, Network, Routing};
use crate::port::{PortCounters, PortState};
use crate::rate_control::RateControl;
use crate::requests::{GroupIndex, GroupResult, RequestGroup};
use crate::scheduler::Class;
use crate::timeouts::Timeouts;
use crate::units::{CELL_BITS, Clock, Span, Time};
use crate::wire::Wire;

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
    /// Jain's index of the goodputs of flows whose VCs have the class UBR, or of all flows if there are none. `None` if
    /// these flows delivered nothing.
    pub fairness: Option<f64>,
    /// Jain's index of the goodputs of the same flows, each divided by its max-min fair goodput: 1 if all flows get the
    /// same fraction of their fair share. `None` if these flows delivered nothing.
    pub fairness_max_min: Option<f64>,
    /// Sum of the goodputs of all flows and requests, in megabits per second.
    pub goodput_mbps: f64,
    /// Delay of the files of all flows together; `None` if it is not measured.
    pub file_delay: Option<FileDelay>,
    /// By flow.
    pub flows: TiVec<FlowIndex, FlowResult>,
    /// Timeouts of all flows.
    pub timeouts: Timeouts,
    /// Requests, by group.
    pub requests: TiVec<GroupIndex, GroupResult>,
    /// By link.
    pub ports: TiVec<LinkIndex, PortResult>,
    /// Memories shared by ports.
    pub memories: TiVec<MemoryIndex, MemoryResult>,
    /// The first deadlock: priority groups that paused each other forever, if any.
    pub deadlock: Option<Deadlock>,
    /// Links with loss rules.
    pub losses: TiVec<LossyIndex, LossResult>,
    /// VCs with a contract.
    pub contracts: Vec<ContractResult>,
    /// VCs whose rate is controlled (ABR).
    pub abr: Vec<AbrResult>,
    /// All VCs together.
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
    /// The name of the flow's traffic.
    pub traffic: &'static str,
    /// Name and version of the stack at the flow's ends, if the ends are outside the simulation; otherwise empty. Not
    /// in the fingerprint.
    pub stack: String,
    /// Bytes passed to the application in order, each counted once, in megabits per second.
    pub goodput_mbps: f64,
    /// The goodput that the flow would have at its max-min fair share of the network, in megabits per second:
    /// [`max_min::goodputs_mbps`].
    pub max_min_mbps: f64,
    /// Payload of all segments that arrived complete, including repetitions, in megabits per second.
    pub throughput_mbps: f64,
    /// Bytes passed to the application.
    pub delivered_bytes: u64,
    /// Payload of all segments that arrived complete, including repetitions, in bytes.
    pub received_bytes: u64,
    /// Segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Segments retransmitted.
    pub retransmitted_segments: u64,
    /// Segments that arrived without new data.
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
    /// Packets sent; 0 with TCP.
    pub packets_sent: u64,
    /// Packets that arrived complete; 0 with TCP.
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
    /// Cells waiting at the end.
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
    /// Counters of the port's cells.
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

/// A link's rule that lost or delayed fewer packets than it should.
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
    /// Frames that lost a cell at these ports because a buffer was full.
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

/// Numbers of all cells by outcome: `offered = delivered + lost + discarded + in_flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CellTotals {
    /// Cells sent by end systems, plus RM cells.
    pub offered: u64,
    /// Number of cells that reached the host at the end of their VC, or of RM cells that reached the end of their loop.
    pub delivered: u64,
    /// Cells lost because a buffer was full, or on a link with loss rules.
    pub lost: u64,
    /// Discarded by policies.
    pub discarded: u64,
    /// Cells waiting, in service or on a link when the run ended.
    pub in_flight: u64,
}

/// The state of an engine at the end of a run.
pub struct FinalState<'a> {
    /// The simulated network.
    pub network: &'a Network,
    /// Its labels.
    pub routing: &'a Routing,
    /// Its clock.
    pub clock: Clock,
    /// End of the run.
    pub end: Time,
    /// Ports of the network, by link.
    pub ports: &'a TiSlice<LinkIndex, PortState>,
    /// Its memories.
    pub memories: &'a TiSlice<MemoryIndex, MemoryState>,
    /// Time at which groups paused each other forever, with the links and priorities of their cycle; `None` if this did
    /// not happen.
    pub deadlock: Option<&'a (Time, Vec<(LinkIndex, u8)>)>,
    /// Time for which each link with Ethernet frames has sent packets; `None` if no link has them.
    pub(crate) on_ethernet: Option<&'a TiVec<LinkIndex, u64>>,
    /// Its end systems.
    pub end_systems: &'a EndSystems,
    /// Cells in service or on a link, by VC.
    pub on_links: &'a TiSlice<VcIndex, u64>,
    /// Links of the network with loss rules.
    pub losses: &'a TiSlice<LossyIndex, LinkLosses>,
    /// The contracts at the network's edge.
    pub edge: &'a Edge,
    /// Shaped ports of the network, and the control loops of the ABR VCs.
    pub rate_control: &'a RateControl,
    /// Delays of packets at ports, if they are measured.
    pub delays: Option<TiVec<LinkIndex, PortDelayTimes>>,
    /// Token that cancels the measurement, which can take long in a large network.
    pub token: &'a CancellationToken<'a>,
}

impl FinalState<'_> {
    /// Measures the run. First asserts, by VC and by port, that every cell is accounted for.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if the work is cancelled.
    pub fn measure(&self) -> Outcome {
        self.measure_if(true)
    }

    /// Measures the part of a run that a partition has simulated. Its counters need not balance, because cells may move
    /// to other partitions.
    pub(crate) fn measure_partition(&self) -> Outcome {
        self.measure_if(false)
    }

    fn measure_if(&self, is_whole: bool) -> Outcome {
        self.token.check()?;
        let cells = self.conserve(is_whole);
        self.token.check()?;
        let seconds = self.clock.seconds(self.end);
        let flows = self.flows(seconds)?;
        let requests = self.end_systems.request_results();
        self.token.check()?;
        let Rates { efficiency, fairness, fairness_max_min, goodput_mbps } =
            Rates::of(self.network, &flows, &requests, seconds);
        let file_delay = self.network.file_size.is_some().then(|| self.file_delay());
        self.token.check()?;
        let (ports, contracts) = (self.ports(), self.contracts());
        self.token.check()?;
        let forwarded = |port: &PortState| PortCounters::sum(port.counters.iter().copied()).forwarded;
        Ok(RunResult {
            duration_s: seconds,
            measured_from_s: 0.0,
            measured_to_s: seconds,
            efficiency,
            fairness,
            fairness_max_min,
            goodput_mbps,
            file_delay,
            ports,
            memories: self.memories(),
            deadlock: self.deadlock.map(|(at, cycle)| Deadlock {
                at_s: self.clock.seconds(*at),
                cycle: cycle
                    .iter()
                    .map(|&(link, priority)| (self.network.links[link].name.clone(), priority))
                    .collect(),
            }),
            losses: self.losses(),
            contracts,
            abr: self.abr(),
            cells,
            cell_hops: self.ports.iter().map(forwarded).sum(),
            fingerprint: self.fingerprint(),
            flows,
            timeouts: self.end_systems.timeouts().clone(),
            requests,
        })
    }

    fn conserve(&self, is_whole: bool) -> CellTotals {
        // After a merge, the branch of a cell is unknown, so the cells of all branches are counted together.
        let first_branches = self.network.first_branches();
        let first = |vc: VcIndex| first_branches[vc];
        let mut within: TiVec<VcIndex, _> = ti_vec![PortCounters::default(); self.network.vcs.len()];
        let [mut in_flight, mut lost_on_links]: [TiVec<VcIndex, u64>; 2] =
            [(); 2].map(|()| ti_vec![0; self.network.vcs.len()]);
        let mut at_ends: TiVec<VcIndex, _> = ti_vec![VcCounters::default(); self.network.vcs.len()];
        for (port, vcs) in self.ports.iter().zip(&self.routing.vcs) {
            for ((counters, &held), &vc) in port.counters.iter().zip(&port.waiting).zip(vcs) {
                let accounted = counters.forwarded + counters.lost() + counters.discarded() + u64::from(held);
                assert_eq!(counters.offered, accounted, "a port forwards, loses, discards or holds every offered cell");
                within[first(vc)].add(counters);
                in_flight[first(vc)] += u64::from(held);
            }
        }
        for losses in self.losses {
            for (counters, &vc) in losses.counters().zip(&self.routing.vcs[losses.link]) {
                lost_on_links[first(vc)] += counters.lost;
            }
        }
        for (vc, &on_links) in self.on_links.iter_enumerated() {
            in_flight[first(vc)] += on_links;
            let VcCounters { offered, delivered, damaged } = self.end_systems.vc_counters(vc);
            let [rms_sent, rms_ended] = self.rate_control.rm_cells(vc).unwrap_or_default();
            let ends = &mut at_ends[first(vc)];
            ends.offered += offered + rms_sent;
            ends.delivered += delivered + rms_ended;
            ends.damaged += damaged;
        }
        let mut totals = CellTotals::default();
        for (((counters, lost_on_links), in_flight), ends) in
            within.iter().zip(lost_on_links).zip(in_flight).zip(at_ends)
        {
            let lost = counters.lost() + lost_on_links;
            assert!(
                !is_whole || ends.offered == ends.delivered + lost + counters.discarded() + in_flight,
                "every cell of a VC is delivered, lost, discarded or in flight"
            );
            totals.offered += ends.offered;
            totals.delivered += ends.delivered;
            totals.lost += lost;
            totals.discarded += counters.discarded();
            totals.in_flight += in_flight;
        }
        totals
    }

    fn flows(&self, seconds: f64) -> Result<TiVec<FlowIndex, FlowResult>, Interrupted> {
        let mut delays = self.end_systems.delays().map(IntoIterator::into_iter);
        let one = |((flow, connection), max_min_mbps): ((&crate::network::Flow, &Connection), f64)| {
            let (sent, got) = (connection.sender.counters(), connection.receiver.counters());
            let packets = connection.packets().unwrap_or_default();
            let delivered_bytes = connection.delivered_bytes();
            let outside = connection.outside().unwrap_or_default();
            let received_bytes = got.bytes + packets.delivered_bytes + outside.received_bytes;
            FlowResult {
                name: flow.name.clone(),
                traffic: flow.traffic.name(),
                stack: String::new(),
                goodput_mbps: mbps(delivered_bytes, seconds),
                max_min_mbps,
                throughput_mbps: mbps(received_bytes, seconds),
                delivered_bytes,
                received_bytes,
                segments_sent: sent.segments_sent + outside.segments_sent,
                retransmitted_segments: sent.retransmitted_segments + outside.retransmitted_segments,
                repeated_segments: got.repeated_segments + outside.repeated_segments,
                unknown_packets: outside.unknown_packets,
                timeouts: sent.timeouts,
                fast_retransmits: sent.fast_retransmits,
                cwnd_segments: connection.windows()[0],
                replaced_results: connection.sender.replaced_results(),
                packets_sent: packets.sent,
                packets_delivered: packets.delivered,
                completion_s: connection.completion().map(|span| self.clock.seconds(Time::default() + span)),
                file_delay: connection.file_delays().map(|delays| FileDelay::of(delays.to_vec(), self.clock)),
                delays: delays.as_mut().and_then(Iterator::next),
            }
        };
        let fair = max_min::goodputs_mbps(self.network, self.token)?;
        Ok(self.network.flows.iter().zip(self.end_systems.connections()).zip(fair).map(one).collect())
    }

    fn file_delay(&self) -> FileDelay {
        let connections = self.end_systems.connections().iter();
        let delays: Vec<Span> = connections.filter_map(Connection::file_delays).flatten().copied().collect();
        FileDelay::of(delays, self.clock)
    }

    fn losses(&self) -> TiVec<LossyIndex, LossResult> {
        let one = |losses: &LinkLosses| LossResult {
            name: self.network.links[losses.link].name.clone(),
            counters: losses.counters().fold(LossCounters::default(), LossCounters::plus),
            rules: losses.rules(),
        };
        self.losses.iter().map(one).collect()
    }

    fn contracts(&self) -> Vec<ContractResult> {
        let mut contracts = Vec::new();
        for (number, vc) in self.network.vcs.iter_enumerated() {
            let Some(edge) = self.edge.counters(number) else { continue };
            let mut frames = PortCounters::default();
            for (&link, label) in vc.path.iter().zip(self.routing.labels(self.network, number)) {
                // If several branches share a label, it belongs to the first branch of the merge.
                if self.routing.vcs[link][label] == number {
                    frames.add(&self.ports[link].counters[label]);
                }
            }
            contracts.push(ContractResult {
                name: vc.name.clone(),
                edge,
                discarded_frames: frames.discarded_frames,
                cut_frames: frames.cut_frames,
            });
        }
        contracts
    }

    fn abr(&self) -> Vec<AbrResult> {
        let one = |(number, vc): (VcIndex, &crate::network::Vc)| {
            let home = self.rate_control.home(number)?;
            let port = self.rate_control.port(home.link)?;
            let source = port.source(home.label)?;
            let sent = self.ports[home.link].counters[home.label].forwarded;
            let counters = source.counters();
            Some(AbrResult {
                name: vc.name.clone(),
                acr_mbps: source.acr() * CELL_BITS as f64 / 1e6,
                forward_rm_cells: counters.forward_rm_sent,
                out_of_rate_rm_cells: counters.out_of_rate_sent,
                returned_rm_cells: counters.backward_rm_received,
                rm_share: (sent > 0).then(|| port.rms_sent(home.label) as f64 / sent as f64),
            })
        };
        self.network.vcs.iter_enumerated().filter_map(one).collect()
    }

    fn ports(&self) -> TiVec<LinkIndex, PortResult> {
        let one = |((index, link), port): ((LinkIndex, &crate::network::Link), &PortState)| {
            let counters = PortCounters::sum(port.counters.iter().copied());
            let on_ethernet = self.on_ethernet.map_or(0, |times| times[index]);
            let busy = match link.wire {
                Wire::Cells => counters.forwarded as f64 * self.clock.cell_time(link.rate).0 as f64,
                Wire::Ethernet => on_ethernet as f64,
            };
            PortResult {
                name: link.name.clone(),
                buffer_cells: link.edge.as_ref().map_or(link.buffer, |edge| edge.buffer),
                policy: link.edge.as_ref().map_or(link.policy.name(), |edge| edge.discard.name()),
                threshold_cells: match link.edge {
                    Some(_) => None,
                    None => link.policy.threshold_cells(link.buffer),
                },
                scheduler: link.scheduler.name(),
                max_queue_cells: port.max_queue,
                queue_cells: port.waiting.iter().sum(),
                counters,
                replaced_results: port.replaced_results,
                // The last cell may still be in service at the end, so the quotient may exceed 1.
                on_ethernet,
                utilisation: (busy / self.end.0.max(1) as f64).min(1.0),
                delays: self.delays.as_ref().map(|times| times[index].all(self.clock)),
                queues: self.delays.as_ref().map_or_else(Vec::new, |times| self.queues(index, &times[index])),
            }
        };
        self.network.links.iter_enumerated().zip(self.ports).map(one).collect()
    }

    fn queues(&self, link: LinkIndex, times: &PortDelayTimes) -> Vec<QueueResult> {
        let queue = |(queue, delays): (&str, DelayTimes)| QueueResult {
            name: format!("{}/{queue}", self.network.links[link].name),
            pool: None,
            side: Side::Egress,
            cells: 0,
            counters: QueueCounters::default(),
            delays: Some(delays),
        };
        times.queues(self.clock).map(queue).collect()
    }

    fn memories(&self) -> TiVec<MemoryIndex, MemoryResult> {
        let one = |(config, state): (&MemoryConfig, &MemoryState)| {
            let pool = |(pool, state): (&PoolConfig, &PoolState)| PoolResult {
                name: pool.name.clone(),
                side: pool.side,
                policy: pool.policy.name(),
                cells: pool.cells,
                max_used_cells: state.max_used,
                used_cells: state.used,
                replaced_results: state.replaced_results,
            };
            let classes = self.delays.as_ref().map(|_| self.network.cell_classes(self.routing, config));
            let delays = |index: QueueIndex, queue: &QueueConfig| {
                let (times, classes) = self.delays.as_ref().zip(classes.as_ref())?;
                let is_in = |label| classes.get(queue.link, label).egress == Some(index);
                let is_output = config.pools[queue.pool].side == Side::Egress;
                is_output.then(|| times[queue.link].of_vcs(self.clock, is_in))
            };
            let queue = |((index, queue), &(cells, counters)): ((QueueIndex, &QueueConfig), &(u32, QueueCounters))| {
                QueueResult {
                    name: self.network.queue_name(config, queue),
                    pool: Some(config.pools[queue.pool].name.clone()),
                    side: config.pools[queue.pool].side,
                    cells,
                    counters,
                    delays: delays(index, queue),
                }
            };
            MemoryResult {
                name: config.name.clone(),
                cells: config.cells,
                max_used_cells: state.max_used,
                used_cells: state.used,
                occupancy: state.occupancy.clone(),
                pools: config.pools.iter().zip(&state.pools).map(pool).collect(),
                queues: config.queues.iter_enumerated().zip(&state.queues).map(queue).collect(),
            }
        };
        self.network.memories.iter().zip(self.memories).map(one).collect()
    }

    fn fingerprint(&self) -> Fingerprint {
        let mut fingerprint = Fingerprint::default();
        self.end_systems.fold_into(&mut fingerprint);
        for port in self.ports {
            fingerprint.fold(u64::from(port.max_queue));
            for (counters, &waiting) in port.counters.iter().zip(&port.waiting) {
                fingerprint.fold_all([
                    counters.offered,
                    counters.forwarded,
                    counters.lost_overflow,
                    counters.lost_pushed_out,
                    counters.discarded_frame + counters.refused_by_memory,
                    counters.discarded_remainder,
                    u64::from(waiting),
                ]);
            }
        }
        for memory in self.memories {
            fingerprint.fold_all([memory.used, memory.max_used].map(u64::from));
            for &(held, counters) in &memory.queues {
                let QueueCounters { entered, refused, pushed_out, pauses, max_cells, max_headroom } = counters;
                fingerprint.fold_all([entered, refused, pushed_out, pauses]);
                fingerprint.fold_all([held, max_cells, max_headroom].map(u64::from));
            }
        }
        for LossCounters { came, lost, cut_frames } in self.losses.iter().flat_map(LinkLosses::counters) {
            fingerprint.fold_all([came, lost, cut_frames]);
        }
        for vc in self.network.vcs.keys() {
            let Some(home) = self.rate_control.home(vc) else { continue };
            let acr = self.rate_control.port(home.link).map_or(0.0, |port| port.acr(home.label));
            fingerprint.fold(acr.to_bits());
            fingerprint.fold_all(self.rate_control.rm_cells(vc).unwrap_or_default());
        }
        fingerprint
    }
}

/// Converts bytes in a number of seconds to megabits per second. Zero bytes give 0, even if the time is 0.
fn mbps(bytes: u64, seconds: f64) -> f64 {
    if bytes > 0 { bytes as f64 * 8.0 / seconds / 1e6 } else { 0.0 }
}

/// Measures derived from the goodputs of all flows and requests: see the fields of [`RunResult`].
struct Rates {
    efficiency: f64,
    fairness: Option<f64>,
    fairness_max_min: Option<f64>,
    goodput_mbps: f64,
}

impl Rates {
    fn of(
        network: &Network,
        flows: &TiSlice<FlowIndex, FlowResult>,
        requests: &TiSlice<GroupIndex, GroupResult>,
        seconds: f64,
    ) -> Self {
        let bottleneck = network.bottleneck;
        let rate = network.links[bottleneck].rate.bits_per_second as f64 / 1e6;
        let all = || network.flows.iter().zip(flows);
        let crossing = all().filter(|(flow, _)| network.vcs[flow.data_vc].path.contains(&bottleneck));
        let shares = crossing.map(|(flow, own)| own.goodput_mbps / (rate * network.payload_share(flow)));
        let of_group = |(group, own): (&RequestGroup, &GroupResult)| {
            let mss = group.tcp.options().mss.bytes;
            let payload_share = network.aal5.payload_share(mss, network.aal5.segment_cells(mss));
            mbps(own.bottleneck_bytes, seconds) / (rate * payload_share)
        };
        let of_requests = network.requests.groups.iter().zip(requests).map(of_group);
        let of_ubr = |flow: &crate::network::Flow| network.vcs[flow.data_vc].class == Class::Ubr;
        let has_ubr = network.flows.iter().any(of_ubr);
        let compared: Vec<&FlowResult> =
            all().filter(|(flow, _)| of_ubr(flow) || !has_ubr).map(|(_, own)| own).collect();
        let jain_of = |x: fn(&FlowResult) -> f64| jain(&compared.iter().map(|flow| x(flow)).collect::<Vec<f64>>());
        Self {
            efficiency: shares.chain(of_requests).sum(),
            fairness: jain_of(|flow| flow.goodput_mbps),
            fairness_max_min: jain_of(|flow| flow.goodput_mbps / flow.max_min_mbps),
            goodput_mbps: flows
                .iter()
                .map(|flow| flow.goodput_mbps)
                .chain(requests.iter().map(|group| mbps(group.delivered_bytes, seconds)))
                .sum(),
        }
    }
}

/// Returns Jain's fairness index `(sum x)^2 / (n sum x^2)`: 1 if all are equal, k/n if k of n share equally. `None` if
/// all are 0, as the index is then 0/0.
pub fn jain(x: &[f64]) -> Option<f64> {
    let sum: f64 = x.iter().sum();
    let squares: f64 = x.iter().map(|x| x * x).sum();
    (squares > 0.0).then(|| sum * sum / (x.len() as f64 * squares))
}

#[cfg(test)]
mod tests;
