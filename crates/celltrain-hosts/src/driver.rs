//! Runs stacks at the ends of a network's flows and requests.
//!
//! Order within an instant: first, all other events occur. Then arrived packets are passed to their stacks, in the
//! order of arrival. Finally, the stacks that received a packet, have an expired timeout or belong to a request that
//! opens are polled, by connection, the sender first. Their packets join the queues of their hosts' ports.
//!
//! A request closes when its receiver has all bytes and its sender knows it. Its stacks are then removed, and packets
//! still in transit to them are ignored.

mod idle;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::time::Duration;

use celltrain_core::cancellation::Interrupted;
use celltrain_core::cell::FrameNumber;
use celltrain_core::engine::{Delivered, HostedSimulation, OpenedOutside, SimulationError};
use celltrain_core::events::SegmentStep;
use celltrain_core::fingerprint::Fingerprint;
use celltrain_core::index::{FlowIndex, NodeIndex, VcIndex};
use celltrain_core::network::Network;
use celltrain_core::probe::Probe;
use celltrain_core::requests::GroupIndex;
use celltrain_core::units::Time;
use typed_index_collections::TiVec;

use crate::application::Application;
use crate::clock::StackClock;
use crate::contract::{Contract, MOST_PACKETS};
use crate::ecn;
use crate::seen::{Seen, Step};
use crate::segments::Segments;
use crate::stack::{Endpoint, Packet, Report, Side, Stack};
use idle::Idle;

/// A flow whose ends are real stacks. It must be [outside](celltrain_core::network::Flow::outside) the simulation.
pub struct HostedFlow {
    /// The flow.
    pub flow: FlowIndex,
    /// The stacks of the sender and the receiver.
    pub stacks: [Box<dyn Stack>; 2],
}

/// Creates the stacks of a request's sender and receiver, for the request's name, its ends and its data.
pub type MakeStacks = Box<dyn Fn(&str, [Endpoint; 2], Application) -> [Box<dyn Stack>; 2] + Send>;

/// The stacks at the ends of a network's flows and requests.
pub struct Hosts {
    /// The hosted flows and the open hosted requests, by running number.
    connections: BTreeMap<usize, Hosted>,
    /// Running number of the next connection.
    next: usize,
    /// The functions that create stacks, by group of requests; `None` if simulated TCP carries the group's requests.
    groups: TiVec<GroupIndex, Option<MakeStacks>>,
    /// Packets in transit, by VC, in sending order.
    on_the_way: TiVec<VcIndex, VecDeque<InFlight>>,
    /// By VC: whether a link delays chosen packets, so that later packets overtake them.
    overtaken: TiVec<VcIndex, bool>,
    /// Time of the next poll of each stack that has set a time.
    timeouts: BTreeSet<(Time, EndNumber)>,
    /// Number of packets sent so far.
    packets: u64,
}

/// Receives a run's probe and each packet seen.
type OnPacket<'a, P> = dyn FnMut(&mut P, &Seen<'_>) + 'a;

/// A hosted connection.
struct Hosted {
    flow: FlowIndex,
    /// Name and bytes of the request, if the connection belongs to a request.
    request: Option<OwnRequest>,
    /// The sending end and the receiving end.
    ends: [End; 2],
    segments: Segments,
}

/// The name of a request, and its bytes.
type OwnRequest = (String, u64);

/// An end of a connection: twice the connection's running number, plus 1 for the receiver.
type EndNumber = usize;

struct End {
    host: NodeIndex,
    /// The VC on which this end sends packets.
    vc: VcIndex,
    stack: Box<dyn Stack>,
    clock: StackClock,
    timeout: Option<Time>,
    idle: Idle,
    contract: Contract,
}

/// The result of polling a stack.
struct Polled<'a> {
    now: Duration,
    next: Option<Duration>,
    out: &'a [Packet],
    report: Report,
}

impl End {
    /// Returns the call of the stack that broke its contract, and the problem. `on_the_way` counts the packets in transit,
    /// and `most` is the largest number of bytes that may have been received.
    fn problem(
        &mut self,
        polled: &Polled<'_>,
        (on_the_way, most): (usize, Option<u64>),
        waiting: impl FnOnce() -> u32,
    ) -> Option<(&'static str, String)> {
        let Self { idle, contract, .. } = self;
        let Polled { now, next, out, report } = *polled;
        if out.len() > MOST_PACKETS {
            let problem = format!("the stack sends {} packets at once; send at most {MOST_PACKETS}", out.len());
            return Some(("poll", problem));
        }
        if let Some(problem) = out.iter().find_map(|packet| contract.packet_problem(packet)) {
            return Some(("poll", problem));
        }
        if let Some(problem) = contract.flood_problem(on_the_way, waiting) {
            return Some(("poll", problem));
        }
        if let Some(polls) = idle.stuck(now, next, !out.is_empty(), report) {
            let next = next.map_or_else(|| "nothing".to_owned(), |next| format!("{} ns", next.as_nanos()));
            let problem = format!(
                "the stack returned {next} after {polls} without a packet or progress; \
                 it must return a later time, or None if no timer runs"
            );
            return Some(("next_timeout", problem));
        }
        contract.report_problem(report).or_else(|| {
            let most = most.filter(|&most| report.received > most)?;
            let received = report.received;
            let problem = format!("received is {received}, but only {most} bytes of data have arrived in TCP segments");
            Some(("received", problem))
        })
    }
}

/// A packet in transit.
struct InFlight {
    number: u64,
    sent: Time,
    frame: FrameNumber,
    flow: FlowIndex,
    /// The end to which the packet is sent.
    to: EndNumber,
    bytes: Packet,
}

impl InFlight {
    /// Returns the side to which the packet is sent.
    fn side(&self) -> Side {
        side(self.to)
    }
}

fn side(end: EndNumber) -> Side {
    if end.is_multiple_of(2) { Side::Sender } else { Side::Receiver }
}

impl Hosts {
    /// Creates the hosts of the given flows of a network. Other flows use the simulation's own TCP.
    ///
    /// # Panics
    /// If a flow is not outside the simulation.
    pub fn new(network: &Network, flows: Vec<HostedFlow>) -> Self {
        Self::with_requests(network, flows, TiVec::new())
    }

    /// Creates the hosts of these flows and groups of requests. `groups` may be shorter than the network's list.
    ///
    /// # Panics
    /// If a flow or a group is not outside the simulation.
    pub fn with_requests(
        network: &Network,
        flows: Vec<HostedFlow>,
        groups: TiVec<GroupIndex, Option<MakeStacks>>,
    ) -> Self {
        for (group, own) in groups.iter_enumerated() {
            let outside = network.requests.groups[group].outside;
            assert_eq!(outside, own.is_some(), "the ends of hosted requests are outside the simulation");
        }
        let mut hosts = Self {
            connections: BTreeMap::new(),
            next: 0,
            groups,
            on_the_way: network.vcs.iter().map(|_| VecDeque::new()).collect(),
            overtaken: network
                .vcs
                .keys()
                .map(|vc| network.links.iter().any(|link| link.late.iter().any(|rule| rule.vc == vc)))
                .collect(),
            timeouts: BTreeSet::new(),
            packets: 0,
        };
        for HostedFlow { flow, stacks } in flows {
            let own = &network.flows[flow];
            assert!(own.outside, "the ends of a hosted flow are outside the simulation");
            let start = network.start_of(own, network.clock());
            let contracts = [Side::Sender, Side::Receiver].map(|side| Contract::new(network, flow, side));
            hosts.add(network, (flow, None), [own.data_vc, own.ack_vc], (stacks, contracts), start);
        }
        hosts
    }

    /// Adds a connection whose ends are polled at `start`. Returns its running number.
    fn add(
        &mut self,
        network: &Network,
        (flow, request): (FlowIndex, Option<OwnRequest>),
        vcs: [VcIndex; 2],
        (stacks, contracts): ([Box<dyn Stack>; 2], [Contract; 2]),
        start: Time,
    ) -> usize {
        let number = self.next;
        self.next += 1;
        let mut parts = stacks.into_iter().zip(contracts);
        let ends = vcs.map(|vc| {
            let (stack, contract) = parts.next().expect("a connection has two ends");
            let clock = StackClock::new(network.clock(), stack.unit());
            let host = network.source(vc);
            End { host, vc, stack, clock, timeout: Some(start), idle: Idle::default(), contract }
        });
        self.timeouts.extend([(start, 2 * number), (start, 2 * number + 1)]);
        self.connections.insert(number, Hosted { flow, request, ends, segments: Segments::default() });
        number
    }

    /// Adds the connection of a request that opens now.
    fn open(&mut self, network: &Network, opened: &OpenedOutside, now: Time) {
        let &OpenedOutside { flow, group, number, vcs, bytes } = opened;
        let own = &network.requests.groups[group];
        let make = self.groups.get(group).and_then(Option::as_ref);
        let make = make.expect("every group of requests with ends outside the simulation has stacks");
        let name = format!("{}{number}", own.name);
        let ends = Endpoint::of_request(network, opened);
        let stacks = make(&name, ends, Application::File(bytes));
        let mss = own.tcp.options().mss.bytes;
        let contracts = ends.map(|end| Contract::of_end(end, mss, Some(bytes)));
        self.add(network, (flow, Some((name, bytes))), vcs, (stacks, contracts), now);
    }

    /// Runs the stacks until the end of the run. Calls `observe` with the simulation's probe and each packet seen at an
    /// end.
    ///
    /// # Errors
    /// If the run is interrupted, or a stack sends a packet with a wrong IP header or beyond its MTU, floods its host's
    /// port, reports more bytes than have arrived, or is polled repeatedly without effect.
    pub fn run<P: Probe>(
        mut self,
        simulation: &mut HostedSimulation<'_, '_, P>,
        mut observe: impl FnMut(&mut P, &Seen<'_>),
    ) -> Result<(), HostsError> {
        let observe: &mut OnPacket<'_, P> = &mut observe;
        let mut due = Vec::new();
        let mut out = Vec::new();
        loop {
            let timeout = self.timeouts.first().map_or(Time::NEVER, |&(time, _)| time);
            simulation.advance_to_delivery(timeout.min(simulation.end()))?;
            let now = simulation.now();
            for delivered in simulation.take_deliveries() {
                due.extend(self.deliver(&delivered, simulation, observe));
            }
            for opened in simulation.take_opened() {
                self.open(simulation.network(), &opened, now);
            }
            while let Some((_, end)) = self.timeouts.first().copied().filter(|&(time, _)| time <= now) {
                self.timeouts.pop_first();
                self.end(end).timeout = None;
                due.push(end);
            }
            due.sort_unstable();
            due.dedup();
            for end in due.drain(..) {
                self.poll(end, &mut out, simulation, observe)?;
            }
            if now == simulation.end() {
                return Ok(());
            }
        }
    }

    fn end(&mut self, end: EndNumber) -> &mut End {
        let connection = self.connections.get_mut(&(end / 2)).expect("only open connections have timeouts");
        &mut connection.ends[end % 2]
    }

    /// Passes an arrived packet to its stack. Returns the stack's end; `None` if the connection has closed.
    fn deliver<P: Probe>(
        &mut self,
        delivered: &Delivered,
        simulation: &mut HostedSimulation<'_, '_, P>,
        observe: &mut OnPacket<'_, P>,
    ) -> Option<EndNumber> {
        let &Delivered { time, vc, tag, marked } = delivered;
        let sent = &mut self.on_the_way[vc];
        let place = sent.binary_search_by_key(&tag, |kept| kept.number).expect("every arriving packet was sent before");
        let mut kept = if self.overtaken[vc] {
            // Packets sent before this packet may be lost, or late.
            sent.remove(place).expect("the list has a packet at this place")
        } else {
            for lost in sent.drain(..place) {
                observe(simulation.probe(), &seen(&lost, Step::Lost, None, (time, vc)));
            }
            sent.pop_front().expect("the packet is the first one now")
        };
        if marked {
            ecn::mark(&mut kept.bytes);
        }
        let Some(Hosted { flow, ends, segments, .. }) = self.connections.get_mut(&(kept.to / 2)) else {
            observe(simulation.probe(), &seen(&kept, Step::Arrived, None, (time, vc)));
            return None;
        };
        let counters = simulation.counters(*flow);
        counters.packets.fold_all([time.0, kept.number]);
        let segment = match kept.side() {
            Side::Sender => segments.on_acknowledged(&kept.bytes),
            Side::Receiver => segments.on_arrived(&kept.bytes, counters),
        };
        observe(simulation.probe(), &seen(&kept, Step::Arrived, segment, (time, vc)));
        let End { stack, clock, idle, contract, .. } = &mut ends[kept.to % 2];
        idle.has_packet = true;
        contract.on_arrived(&kept.bytes);
        stack.on_packet(clock.told(time), &kept.bytes);
        Some(kept.to)
    }

    /// Polls a stack, which may send packets.
    fn poll<P: Probe>(
        &mut self,
        end: usize,
        out: &mut Vec<Packet>,
        simulation: &mut HostedSimulation<'_, '_, P>,
        observe: &mut OnPacket<'_, P>,
    ) -> Result<(), HostsError> {
        let (now, side) = (simulation.now(), side(end));
        // The other end may have closed the connection at this instant.
        let Some(connection) = self.connections.get_mut(&(end / 2)) else { return Ok(()) };
        let Hosted { flow, request, ends, segments } = connection;
        let flow = *flow;
        let End { vc, stack, clock, timeout, .. } = &mut ends[end % 2];
        let vc = *vc;
        let told = clock.told(now);
        stack.poll(told, out);
        if let Some(earlier) = timeout.take() {
            self.timeouts.remove(&(earlier, end));
        }
        let next = stack.next_timeout();
        *timeout = next.map(|timeout| clock.first(timeout, now));
        self.timeouts.extend(timeout.map(|time| (time, end)));
        let report = stack.report();
        let network = simulation.network();
        let port = network.vcs[vc].path[0];
        let polled = Polled { now: told, next, out, report };
        let on_the_way = self.on_the_way[vc].len() + out.len();
        let most = if side == Side::Receiver { segments.most_received() } else { None };
        if let Some((call, problem)) = ends[end % 2].problem(&polled, (on_the_way, most), || simulation.waiting(port)) {
            let side = match side {
                Side::Sender => "sender",
                Side::Receiver => "receiver",
            };
            let name = name_of(network, flow, request.as_ref());
            let (stack, now) = (ends[end % 2].stack.name(), told.as_nanos());
            return Err(HostsError::Wrong(format!("{stack}.{call} for the {side} of {name}, now {now} ns: {problem}")));
        }
        let counters = simulation.counters(flow);
        if side == Side::Receiver {
            match request {
                None => counters.delivered_bytes = report.received,
                Some(_) => simulation.progress(flow, report.received),
            }
        } else {
            counters.cwnd_bytes = report.cwnd.unwrap_or(0);
            counters.retransmitted_segments = report.retransmitted.unwrap_or(counters.retransmitted_segments);
            if report.completed {
                counters.completed.get_or_insert(now);
            }
        }
        self.send(end, out, simulation, observe)?;
        let Hosted { request, ends, .. } = &self.connections[&(end / 2)];
        let has_all = |received| request.as_ref().is_some_and(|(_, bytes)| received >= *bytes);
        if has_all(simulation.counters(flow).delivered_bytes) && ends[0].idle.report.completed {
            self.close(end / 2);
            simulation.close_request(flow);
        }
        Ok(())
    }

    /// Passes the packets of a stack to its host's port.
    fn send<P: Probe>(
        &mut self,
        end: usize,
        out: &mut Vec<Packet>,
        simulation: &mut HostedSimulation<'_, '_, P>,
        observe: &mut OnPacket<'_, P>,
    ) -> Result<(), HostsError> {
        let (now, side) = (simulation.now(), side(end));
        let connection = self.connections.get_mut(&(end / 2)).expect("the connection is open");
        let Hosted { flow, ref ends, ref mut segments, .. } = *connection;
        let End { host, vc, .. } = ends[end % 2];
        for bytes in out.drain(..) {
            let number = self.packets;
            self.packets += 1;
            let counters = simulation.counters(flow);
            fold(&mut counters.packets, now, &bytes);
            let segment = match side {
                Side::Sender => segments.on_sent(&bytes, counters),
                Side::Receiver => segments.on_ack_sent(&bytes),
            };
            let (length, is_capable) = (bytes.len() as u64, ecn::bits(&bytes).capable);
            let kept = InFlight { number, sent: now, frame: simulation.next_frame(vc), flow, to: end ^ 1, bytes };
            observe(simulation.probe(), &seen(&kept, Step::Sent, segment, (now, vc)));
            self.on_the_way[vc].push_back(kept);
            if is_capable {
                simulation.inject_capable(host, vc, length, number)?;
            } else {
                simulation.inject(host, vc, length, number)?;
            }
        }
        Ok(())
    }

    /// Removes the stacks of a connection.
    fn close(&mut self, number: usize) {
        let closed = self.connections.remove(&number).expect("the connection is open");
        for (end, number) in closed.ends.into_iter().zip(2 * number..) {
            if let Some(timeout) = end.timeout {
                self.timeouts.remove(&(timeout, number));
            }
        }
    }
}

/// Returns the name of a connection.
fn name_of<'a>(network: &'a Network, flow: FlowIndex, request: Option<&'a OwnRequest>) -> &'a str {
    request.map_or_else(|| network.flows[flow].name.as_str(), |(name, _)| name)
}

/// Returns a packet as seen by an observer, on the VC that carries it.
fn seen(kept: &InFlight, step: Step, segment: Option<SegmentStep>, (time, vc): (Time, VcIndex)) -> Seen<'_> {
    let &InFlight { number, sent, frame, flow, to, ref bytes } = kept;
    let side = match step {
        Step::Sent => side(to ^ 1),
        Step::Arrived | Step::Lost => kept.side(),
    };
    Seen { time, sent, flow, side, step, vc, frame, segment, number, bytes }
}

/// Adds a sent packet to the fingerprint of its flow.
fn fold(fingerprint: &mut Fingerprint, now: Time, bytes: &[u8]) {
    fingerprint.fold_all([now.0, bytes.len() as u64]);
    for part in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        fingerprint.fold(u64::from_le_bytes(word));
    }
}

/// Reason why a hosted run has no result.
#[derive(Clone, Debug, PartialEq)]
pub enum HostsError {
    /// The run was interrupted.
    Interrupted,
    /// A stack sends a packet with a wrong header or beyond its MTU, floods its host's port, reports more than has
    /// arrived, or is polled repeatedly without effect.
    Wrong(String),
}

impl From<Interrupted> for HostsError {
    fn from(Interrupted: Interrupted) -> Self {
        Self::Interrupted
    }
}

impl From<SimulationError> for HostsError {
    fn from(error: SimulationError) -> Self {
        match error {
            SimulationError::Interrupted => Self::Interrupted,
            // All other errors concern a packet that its VC cannot carry.
            error => Self::Wrong(error.to_string()),
        }
    }
}

impl fmt::Display for HostsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => SimulationError::Interrupted.fmt(f),
            Self::Wrong(problem) => problem.fmt(f),
        }
    }
}

impl std::error::Error for HostsError {}

#[cfg(test)]
mod tests;
