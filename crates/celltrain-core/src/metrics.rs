//! Measures of a run. This file defines every measure.
//!
//! Source: ATM Forum 96-1269, section 3.2; `docs/mechanisms.md` section 6.

mod results;
mod window;

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use crate::cancellation::{CancellationToken, Interrupted};
use crate::contracts::Edge;
use crate::delay::{DelayTimes, PortDelayTimes};
use crate::end_systems::{Connection, EndSystems, VcCounters};
use crate::file_delay::FileDelay;
use crate::fingerprint::Fingerprint;
use crate::index::{FlowIndex, LinkIndex, MemoryIndex, VcIndex};
use crate::link_loss::{LinkLosses, LossCounters, LossyIndex};
use crate::max_min;
use crate::memory::{MemoryConfig, MemoryState, PoolConfig, PoolState, QueueConfig, QueueCounters, QueueIndex, Side};
use crate::network::{Network, Routing};
use crate::port::{PortCounters, PortState};
use crate::rate_control::RateControl;
use crate::requests::{GroupIndex, GroupResult, RequestGroup};
use crate::scheduler::Class;
use crate::units::{CELL_BITS, Clock, Span, Time};
use crate::wire::Wire;
pub use results::{
    AbrResult, CellTotals, ContractResult, Deadlock, FlowResult, LossResult, MemoryResult, Outcome, PoolResult,
    PortResult, QueueResult, RunResult, UnmetRule,
};

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
    /// The network's end systems.
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
            Rates::of(self.network, &flows, &requests, [0.0, seconds]);
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
                assert_eq!(
                    counters.offered, accounted,
                    "every cell offered to a port is forwarded, lost, discarded or still held"
                );
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
                Wire::Cells if self.network.changes_rate(index) => {
                    let bits = counters.forwarded as f64 * self.clock.cell_bits as f64;
                    let rate = self.network.mean_rate(index, [0.0, self.clock.seconds(self.end)]);
                    bits / rate.max(1.0) * self.clock.units_per_second as f64
                }
                Wire::Cells => counters.forwarded as f64 * self.clock.cell_time(link.rate).0 as f64,
                Wire::Ethernet => on_ethernet as f64,
            };
            let (buffer_cells, policy, threshold_cells) = link.port_settings();
            PortResult {
                name: link.name.clone(),
                buffer_cells,
                policy,
                threshold_cells,
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
        [from_s, to_s]: [f64; 2],
    ) -> Self {
        let (bottleneck, seconds) = (network.bottleneck, to_s - from_s);
        let rate = network.mean_rate(bottleneck, [from_s, to_s]) / 1e6;
        let all = || network.flows.iter().zip(flows);
        let crossing = all().filter(|(flow, _)| network.vcs[flow.data_vc].path.contains(&bottleneck));
        // A link without any capacity carries nothing.
        let share = |mbps: f64, payload_share: f64| if rate > 0.0 { mbps / (rate * payload_share) } else { 0.0 };
        let shares = crossing.map(|(flow, own)| share(own.goodput_mbps, network.payload_share(flow)));
        let of_group = |(group, own): (&RequestGroup, &GroupResult)| {
            let mss = group.tcp.options().mss.bytes;
            let payload_share = network.aal5.payload_share(mss, network.aal5.segment_cells(mss));
            share(mbps(own.bottleneck_bytes, seconds), payload_share)
        };
        let of_requests = network.requests.groups.iter().zip(requests).map(of_group);
        let of_ubr = |flow: &crate::network::Flow| network.vcs[flow.data_vc].class == Class::Ubr;
        let has_ubr = network.flows.iter().any(of_ubr);
        let compared: Vec<&FlowResult> =
            all().filter(|(flow, _)| of_ubr(flow) || !has_ubr).map(|(_, own)| own).collect();
        let jain_of =
            |x: fn(&FlowResult) -> Option<f64>| jain(&compared.iter().filter_map(|flow| x(flow)).collect::<Vec<f64>>());
        Self {
            efficiency: shares.chain(of_requests).sum(),
            fairness: jain_of(|flow| Some(flow.goodput_mbps)),
            fairness_max_min: jain_of(|flow| (flow.max_min_mbps > 0.0).then(|| flow.goodput_mbps / flow.max_min_mbps)),
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
