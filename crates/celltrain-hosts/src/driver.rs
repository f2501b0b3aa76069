//! Runs stacks at the ends of a network's flows.
//!
//! Order within an instant: everything else happens first, then packets that have arrived are passed to their stacks in
//! the order of arrival. Then the stacks that received a packet or have a timeout are polled, by flow, the sender first,
//! and their packets join the queues of their hosts' ports.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::time::Duration;

use celltrain_core::cancellation::Interrupted;
use celltrain_core::cell::FrameNumber;
use celltrain_core::engine::{Delivered, HostedSimulation, SimulationError};
use celltrain_core::events::SegmentStep;
use celltrain_core::fingerprint::Fingerprint;
use celltrain_core::index::{FlowIndex, NodeIndex, VcIndex};
use celltrain_core::network::Network;
use celltrain_core::probe::Probe;
use celltrain_core::units::Time;
use typed_index_collections::TiVec;

use crate::clock::StackClock;
use crate::contract::{Contract, MOST_PACKETS};
use crate::seen::{Seen, Step};
use crate::segments::Segments;
use crate::stack::{Packet, Report, Side, Stack};

/// A flow whose ends are real stacks. It must be [outside](celltrain_core::network::Flow::outside) the simulation.
pub struct HostedFlow {
    /// The flow.
    pub flow: FlowIndex,
    /// The stacks of the sender and the receiver.
    pub stacks: [Box<dyn Stack>; 2],
}

/// The stacks at the ends of a network's flows.
pub struct Hosts {
    /// The sender and the receiver of each hosted flow.
    ends: Vec<End>,
    /// By hosted flow.
    segments: Vec<Segments>,
    /// Packets in transit, by VC, in sending order.
    on_the_way: TiVec<VcIndex, VecDeque<InFlight>>,
    /// Next poll time of each stack that has one.
    timeouts: BTreeSet<(Time, usize)>,
    /// Number of packets sent so far.
    packets: u64,
}

/// Receives a run's probe and each packet seen.
type OnPacket<'a, P> = dyn FnMut(&mut P, &Seen<'_>) + 'a;

struct End {
    flow: FlowIndex,
    side: Side,
    host: NodeIndex,
    /// The VC on which this end sends packets.
    vc: VcIndex,
    stack: Box<dyn Stack>,
    clock: StackClock,
    timeout: Option<Time>,
    idle: Idle,
    contract: Contract,
}

/// Counts idle polls, in which a stack does nothing.
#[derive(Default)]
struct Idle {
    /// True if a packet has arrived since the last poll.
    has_packet: bool,
    report: Report,
    /// Such polls within [`IDLE_TIME`].
    polls: Polls,
    /// Number of idle polls since the timeout was last in the future.
    due: Polls,
}

/// A number of polls, and the time of the first one.
#[derive(Clone, Copy, Default)]
struct Polls {
    count: u32,
    from: Duration,
}

/// Maximum number of idle polls within [`IDLE_TIME`].
const MOST_IDLE_POLLS: u32 = 100_000;
const IDLE_TIME: Duration = Duration::from_millis(10);

/// Maximum number of idle polls while every timeout is in the past, if this lasts longer than [`DUE_TIME`]. On a slow
/// link or with a coarse clock, few polls fit into [`IDLE_TIME`]. A stack with a coarse clock may return past times
/// until its clock advances.
const MOST_DUE_POLLS: u32 = 10;
const DUE_TIME: Duration = Duration::from_millis(20);

impl Polls {
    fn since(from: Duration) -> Self {
        Self { count: 0, from }
    }
}

impl Idle {
    /// Records a poll. Returns a description if the stack is polled too often without effect.
    fn stuck(&mut self, now: Duration, next: Option<Duration>, has_sent: bool, report: Report) -> Option<String> {
        let is_idle = !std::mem::take(&mut self.has_packet) && !has_sent && self.report == report;
        self.report = report;
        let is_due = next.is_some_and(|next| next <= now);
        if !is_due {
            self.due = Polls::since(now);
        }
        if !is_idle {
            return None;
        }
        if now.saturating_sub(self.polls.from) >= IDLE_TIME {
            self.polls = Polls::since(now);
        }
        self.polls.count += 1;
        self.due.count += u32::from(is_due);
        let lasted = now.saturating_sub(self.due.from);
        if self.polls.count > MOST_IDLE_POLLS {
            return Some(format!("{MOST_IDLE_POLLS} polls within 10 ms"));
        }
        (self.due.count > MOST_DUE_POLLS && lasted > DUE_TIME)
            .then(|| format!("{} polls within {} ms", self.due.count, lasted.as_millis()))
    }
}

/// A packet in transit.
struct InFlight {
    number: u64,
    sent: Time,
    frame: FrameNumber,
    /// The end to which the packet is sent.
    to: usize,
    bytes: Packet,
}

impl Hosts {
    /// Creates the hosts of the given flows of a network. Other flows use the simulation's own TCP.
    ///
    /// # Panics
    /// If a flow is not outside the simulation.
    pub fn new(network: &Network, flows: Vec<HostedFlow>) -> Self {
        let clock = network.clock();
        let segments = flows.iter().map(|_| Segments::default()).collect();
        let mut hosts = Self {
            ends: Vec::new(),
            segments,
            on_the_way: network.vcs.iter().map(|_| VecDeque::new()).collect(),
            timeouts: BTreeSet::new(),
            packets: 0,
        };
        for HostedFlow { flow, stacks } in flows {
            let own = &network.flows[flow];
            assert!(own.outside, "the ends of a hosted flow are outside the simulation");
            let start = network.start_of(own, clock);
            let sides = [(Side::Sender, own.data_vc), (Side::Receiver, own.ack_vc)];
            for (stack, (side, vc)) in stacks.into_iter().zip(sides) {
                let clock = StackClock::new(clock, stack.unit());
                hosts.timeouts.insert((start, hosts.ends.len()));
                let host = network.source(vc);
                hosts.ends.push(End {
                    flow,
                    side,
                    host,
                    vc,
                    stack,
                    clock,
                    timeout: Some(start),
                    idle: Idle::default(),
                    contract: Contract::new(network, flow, side),
                });
            }
        }
        hosts
    }

    /// Runs the stacks until the end of the run. Calls `observe` with the simulation's probe and each packet seen at an
    /// end.
    ///
    /// # Errors
    /// If the run is interrupted, or a stack sends a packet with a wrong IP header or beyond its MTU, floods its host's
    /// port, reports more bytes than have arrived, or is polled again and again for nothing.
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
                due.push(self.deliver(&delivered, simulation, observe));
            }
            while let Some((_, end)) = self.timeouts.first().copied().filter(|&(time, _)| time <= now) {
                self.timeouts.pop_first();
                self.ends[end].timeout = None;
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

    /// Passes an arrived packet to its stack. Returns the stack's end.
    fn deliver<P: Probe>(
        &mut self,
        delivered: &Delivered,
        simulation: &mut HostedSimulation<'_, '_, P>,
        observe: &mut OnPacket<'_, P>,
    ) -> usize {
        let &Delivered { time, vc, tag } = delivered;
        let kept = loop {
            let kept = self.on_the_way[vc].pop_front().expect("every arriving packet was sent before");
            if kept.number == tag {
                break kept;
            }
            // Packets of a VC do not overtake each other.
            observe(simulation.probe(), &self.seen(&kept, Step::Lost, None, time));
        };
        let End { flow, side, .. } = self.ends[kept.to];
        let (counters, segments) = (simulation.counters(flow), &mut self.segments[kept.to / 2]);
        counters.packets.fold_all([time.0, kept.number]);
        let segment = match side {
            Side::Sender => segments.on_acknowledged(&kept.bytes),
            Side::Receiver => segments.on_arrived(&kept.bytes, counters),
        };
        observe(simulation.probe(), &self.seen(&kept, Step::Arrived, segment, time));
        let End { stack, clock, idle, contract, .. } = &mut self.ends[kept.to];
        idle.has_packet = true;
        contract.on_arrived(&kept.bytes);
        stack.on_packet(clock.told(time), &kept.bytes);
        kept.to
    }

    /// Lets a stack send.
    fn poll<P: Probe>(
        &mut self,
        end: usize,
        out: &mut Vec<Packet>,
        simulation: &mut HostedSimulation<'_, '_, P>,
        observe: &mut OnPacket<'_, P>,
    ) -> Result<(), HostsError> {
        let now = simulation.now();
        let End { flow, side, host, vc, stack, clock, timeout, idle, contract } = &mut self.ends[end];
        let (flow, side, host, vc) = (*flow, *side, *host, *vc);
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
        let wrong = |call: &str, problem: String| {
            let side = match side {
                Side::Sender => "sender",
                Side::Receiver => "receiver",
            };
            let (stack, flow, now) = (stack.name(), &network.flows[flow].name, told.as_nanos());
            HostsError::Wrong(format!("{stack}.{call} for the {side} of {flow}, now {now} ns: {problem}"))
        };
        if out.len() > MOST_PACKETS {
            let problem = format!("the stack sends {} packets at once; send at most {MOST_PACKETS}", out.len());
            return Err(wrong("poll", problem));
        }
        if let Some(problem) = out.iter().find_map(|packet| contract.packet_problem(packet)) {
            return Err(wrong("poll", problem));
        }
        let port = network.vcs[vc].path[0];
        let on_the_way = self.on_the_way[vc].len() + out.len();
        if let Some(problem) = contract.flood_problem(on_the_way, || simulation.waiting(port)) {
            return Err(wrong("poll", problem));
        }
        if let Some(polls) = idle.stuck(told, next, !out.is_empty(), report) {
            let next = next.map_or_else(|| "nothing".to_owned(), |next| format!("{} ns", next.as_nanos()));
            let problem = format!(
                "the stack returned {next} after {polls} without a packet or progress; \
                 it must return a later time, or None if no timer runs"
            );
            return Err(wrong("next_timeout", problem));
        }
        if let Some((part, problem)) = contract.report_problem(report) {
            return Err(wrong(part, problem));
        }
        let most = if side == Side::Receiver { self.segments[end / 2].most_received() } else { None };
        if let Some(most) = most.filter(|&most| report.received > most) {
            let received = report.received;
            let problem = format!("received is {received}, but only {most} bytes of data have arrived in TCP segments");
            return Err(wrong("received", problem));
        }
        let counters = simulation.counters(flow);
        if side == Side::Receiver {
            counters.delivered_bytes = report.received;
        } else {
            counters.cwnd_bytes = report.cwnd.unwrap_or(0);
            counters.retransmitted_segments = report.retransmitted.unwrap_or(counters.retransmitted_segments);
            if report.completed {
                counters.completed.get_or_insert(now);
            }
        }
        for bytes in out.drain(..) {
            let number = self.packets;
            self.packets += 1;
            let counters = simulation.counters(flow);
            fold(&mut counters.packets, now, &bytes);
            let segments = &mut self.segments[end / 2];
            let segment = match side {
                Side::Sender => segments.on_sent(&bytes, counters),
                Side::Receiver => segments.on_ack_sent(&bytes),
            };
            let length = bytes.len() as u64;
            let kept = InFlight { number, sent: now, frame: simulation.next_frame(vc), to: end ^ 1, bytes };
            observe(simulation.probe(), &self.seen(&kept, Step::Sent, segment, now));
            self.on_the_way[vc].push_back(kept);
            simulation.inject(host, vc, length, number)?;
        }
        Ok(())
    }

    fn seen<'a>(&self, kept: &'a InFlight, step: Step, segment: Option<SegmentStep>, time: Time) -> Seen<'a> {
        let &InFlight { number, sent, frame, to, ref bytes } = kept;
        let at = match step {
            Step::Sent => to ^ 1,
            Step::Arrived | Step::Lost => to,
        };
        let End { flow, side, .. } = self.ends[at];
        Seen { time, sent, flow, side, step, segment, vc: self.ends[to ^ 1].vc, frame, number, bytes }
    }
}

/// Adds a packet that is sent to the fingerprint of its flow.
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
    /// arrived, or is polled again and again for nothing.
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
            // A packet that its VC cannot carry.
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
