//! Delays of packets: at each port, from sender to receiver, and from sending to acknowledgement.
//!
//! A packet waits at a port from the arrival of its last cell to the start of that cell's transmission. So the delay
//! does not depend on when the packet's other cells left. The round-trip time is measured for every segment that is
//! sent once (Karn's algorithm, RFC 6298 section 3). Jitter follows RFC 3550 section 6.4.1 without its smoothing. Every
//! distribution is exact: it counts each delay that occurred, in units of the clock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use typed_index_collections::{TiVec, ti_vec};

use crate::cancellation::CancellationToken;
use crate::cell::FrameNumber;
pub use crate::delay_choice::DelayChoice;
pub use crate::delay_times::DelayTimes;
pub(crate) use crate::delay_times::DelayTracker;
use crate::departing::Departing;
use crate::index::{FlowIndex, Label, LinkIndex};
use crate::network::{Link, Network, Routing};
use crate::rate_control::RateControl;
use crate::scheduler::{Service, VcKind};
use crate::tcp::Segment;
use crate::units::{Clock, Span, Time};

/// Delays of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowDelayTimes {
    /// Round-trip times of acknowledged segments that were sent only once; empty without TCP.
    pub rtt: DelayTimes,
    /// One-way delays of packets that arrived.
    pub one_way: DelayTimes,
    /// Mean absolute difference between the one-way delays of consecutive arrivals, in milliseconds; `None` if fewer
    /// than two packets arrived.
    pub jitter_ms: Option<f64>,
}

/// The queues of a port. Packet delays are measured separately for each.
#[derive(Clone, Debug, Default)]
pub(crate) struct PortQueues {
    /// Names of the queues between which a scheduler or shaped port selects; empty if the port has one queue.
    names: Vec<String>,
    /// Index in `names` of each VC's queue, by label.
    of_vc: TiVec<Label, usize>,
    /// Index of each VC's part, by label. A part contains the VCs with the same named queue and the same queue of a
    /// shared memory.
    part_of: TiVec<Label, usize>,
    /// Number of parts, each with its own distribution of delays.
    pub(crate) parts: usize,
}

impl PortQueues {
    /// Finds the queues at each port of a network.
    pub(crate) fn find(network: &Network, routing: &Routing, rate_control: &RateControl) -> TiVec<LinkIndex, Self> {
        let classes: Vec<_> = network.memories.iter().map(|memory| network.cell_classes(routing, memory)).collect();
        let of_port = |link: LinkIndex| {
            let kinds = network.vc_kinds(routing, link);
            let vcs = (0..kinds.len()).map(Label::from);
            let scheduler = &network.links[link].scheduler;
            let service = network.service(routing, link);
            let mut queues = Self::default();
            if rate_control.port(link).is_some() {
                queues.names = kinds.iter().map(|kind| kind.name.to_owned()).collect();
                queues.of_vc = (0..kinds.len()).collect();
            } else if let Some(service) = service {
                let by_class = scheduler.config().by_class();
                queues.names = names(&kinds, &service, by_class);
                queues.of_vc = service.queue_of;
            } else {
                queues.of_vc = ti_vec![0; kinds.len()];
            }
            let of_memory = network.memories.iter().zip(&classes).find(|(memory, _)| memory.ports.contains(&link));
            let egress = |label| of_memory.and_then(|(_, classes)| classes.get(link, label).egress);
            let mut parts = BTreeMap::new();
            let part = |label: Label| {
                let next = parts.len();
                *parts.entry((queues.of_vc[label], egress(label))).or_insert(next)
            };
            queues.part_of = vcs.map(part).collect();
            queues.parts = parts.len();
            queues
        };
        network.links.keys().map(of_port).collect()
    }

    /// Returns the index and the name of each queue used by VCs; empty if the port has one queue.
    fn used(&self) -> impl Iterator<Item = (usize, &str)> {
        self.names.iter().map(String::as_str).enumerate().filter(|(_, name)| !name.is_empty())
    }

    /// Returns the index of the VC's group: the VCs whose delays are counted together.
    pub(crate) fn part(&self, label: Label) -> usize {
        self.part_of[label]
    }
}

/// Returns the names of the queues whose delays are measured separately, built from the link and the class or VCs.
pub fn queue_names(network: &Network) -> Vec<String> {
    let routing = network.routing();
    let rate_control = RateControl::new(network, &routing, network.clock(), &CancellationToken::never())
        .expect("nothing cancels the construction of the rules");
    let ports = PortQueues::find(network, &routing, &rate_control);
    let of_port = |(link, queues): (&Link, &PortQueues)| {
        queues.used().map(|(_, name)| format!("{}/{name}", link.name)).collect::<Vec<_>>()
    };
    network.links.iter().zip(&ports).flat_map(of_port).collect()
}

/// Returns the name of each of a scheduler's queues: its classes or VCs.
fn names(kinds: &[VcKind<'_>], service: &Service, by_class: bool) -> Vec<String> {
    let mut names = vec![BTreeSet::new(); service.queues];
    for (kind, &queue) in kinds.iter().zip(&service.queue_of) {
        names[queue].insert(if by_class { kind.class.name() } else { kind.name });
    }
    names.into_iter().map(|of_queue| of_queue.into_iter().collect::<Vec<_>>().join("+")).collect()
}

/// Packet delays at a port.
#[derive(Clone, Debug)]
pub struct PortDelayTimes {
    parts: Vec<DelayTimes>,
    queues: PortQueues,
}

impl PortDelayTimes {
    /// Creates the delays of a port from the delays measured for its queues.
    pub(crate) fn new(parts: Vec<DelayTimes>, queues: PortQueues) -> Self {
        Self { parts, queues }
    }

    /// Returns the distribution of all packets.
    pub(crate) fn all(&self, clock: Clock) -> DelayTimes {
        DelayTimes::merged(self.parts.iter(), clock)
    }

    /// Returns the distribution of the VCs that satisfy `is_in`. `is_in` must return the same for all VCs of a queue.
    pub(crate) fn of_vcs(&self, clock: Clock, is_in: impl Fn(Label) -> bool) -> DelayTimes {
        let mut is_part_in = vec![false; self.parts.len()];
        for (label, &part) in self.queues.part_of.iter_enumerated() {
            is_part_in[part] |= is_in(label);
        }
        DelayTimes::merged(self.parts.iter().zip(is_part_in).filter_map(|(times, is_in)| is_in.then_some(times)), clock)
    }

    /// Returns the names and distributions of the port's queues; empty if the port has one queue.
    pub(crate) fn queues(&self, clock: Clock) -> impl Iterator<Item = (&str, DelayTimes)> {
        let PortQueues { names, of_vc, part_of, .. } = &self.queues;
        // Each measured distribution belongs to one queue.
        let mut parts = vec![BTreeSet::new(); names.len()];
        if !names.is_empty() {
            for (&queue, &part) in of_vc.iter().zip(part_of) {
                parts[queue].insert(part);
            }
        }
        self.queues.used().map(move |(queue, name)| {
            (name, DelayTimes::merged(parts[queue].iter().map(|&part| &self.parts[part]), clock))
        })
    }
}

/// The measured period, from `first` to `first + length` inclusive. A window excludes events at its start, so `first`
/// is the next unit of time.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    first: Time,
    length: Span,
}

impl Window {
    /// A window that lies outside the run.
    pub(crate) const EMPTY: Self = Self { first: Time::NEVER, length: Span(0) };

    /// Creates a window from its ends. If an end is missing, it is the start or the end of the run.
    pub(crate) fn new([after, until]: [Option<Time>; 2]) -> Self {
        let first = after.map_or(Time::default(), |after| after + Span(1));
        Self { first, length: until.unwrap_or(Time::NEVER) - first }
    }

    #[inline]
    pub(crate) fn contains(self, now: Time) -> bool {
        now.0.wrapping_sub(self.first.0) <= self.length.0
    }

    /// Returns the last measured instant.
    pub(crate) fn until(self) -> Time {
        self.first + self.length
    }

    /// Returns the window moved later by this time.
    pub(crate) fn later(self, by: Span) -> Self {
        Self { first: Time(self.first.0.saturating_add(by.0)), ..self }
    }

    /// Returns the part of the window that ends at the given time.
    pub(crate) fn up_to(self, end: Time) -> Self {
        match end.0.checked_sub(self.first.0) {
            Some(length) => Self { length: self.length.min(Span(length)), ..self },
            None => Self::EMPTY,
        }
    }
}

/// The packets of a VC whose last cells have reached the port, in order. Lost packets remain until a later packet
/// leaves.
#[derive(Clone, Default)]
pub(crate) struct Waiting {
    /// A ring buffer whose size is a power of two, faster than a `VecDeque`.
    ring: Vec<(FrameNumber, Time)>,
    /// Counts of packets that have left and that have arrived.
    gone: usize,
    come: usize,
}

impl Waiting {
    /// Records the arrival of a packet's last cell, even if that cell is lost.
    #[inline]
    pub(crate) fn arrive(&mut self, frame: FrameNumber, now: Time) {
        if self.come.wrapping_sub(self.gone) >= self.ring.len() {
            return self.grow_and_arrive(frame, now);
        }
        let place = self.come & (self.ring.len() - 1);
        self.ring[place] = (frame, now);
        self.come += 1;
    }

    /// Grows the buffer. This is a tail call, so that [`Waiting::arrive`] saves no registers.
    #[cold]
    fn grow_and_arrive(&mut self, frame: FrameNumber, now: Time) {
        let size = self.ring.len();
        self.ring.rotate_left(self.gone & size.saturating_sub(1));
        (self.gone, self.come) = (0, size);
        self.ring.resize((2 * size).max(4), Default::default());
        self.arrive(frame, now);
    }

    /// Returns whether there are neither waiting packets nor remaining lost ones.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.come == self.gone
    }

    /// Undoes the latest arrival of a packet.
    pub(crate) fn take_back(&mut self) {
        self.come -= 1;
    }

    /// Returns the arrival time of a packet's last cell if no earlier packet remains. The packet must be waiting.
    #[inline]
    pub(crate) fn first(&self, frame: FrameNumber) -> Option<Time> {
        let place = self.gone & self.ring.len().wrapping_sub(1);
        self.ring.get(place).and_then(|&(first, arrival)| (first == frame).then_some(arrival))
    }

    /// Removes a packet whose last cell starts to leave. Returns the arrival time of that cell. Packets must leave in
    /// order.
    #[inline]
    pub(crate) fn depart(&mut self, frame: FrameNumber) -> Time {
        loop {
            assert!(self.gone < self.come, "the last cell of a packet arrives before it leaves");
            let (arrived, arrival) = self.ring[self.gone & (self.ring.len() - 1)];
            self.gone += 1;
            if arrived == frame {
                return arrival;
            }
        }
    }
}

/// Measures the delays at all ports of a network, cell by cell.
pub(crate) struct PortDelays {
    window: Window,
    clock: Clock,
    ports: TiVec<LinkIndex, AtPort>,
}

struct AtPort {
    trackers: Vec<DelayTracker>,
    queues: PortQueues,
}

impl PortDelays {
    /// Creates the state at the start of a run.
    pub(crate) fn new(network: &Network, routing: &Routing, rate_control: &RateControl, clock: Clock) -> Self {
        let port = |queues: PortQueues| AtPort { trackers: vec![DelayTracker::default(); queues.parts], queues };
        let ports = PortQueues::find(network, routing, rate_control).into_iter().map(port).collect();
        Self { window: Window::new(network.window(clock)), clock, ports }
    }

    /// Records a cell whose transmission starts at `now`.
    pub(crate) fn on_departure(&mut self, port: LinkIndex, Departing { cell, waited, .. }: Departing, now: Time) {
        if cell.last_cell() {
            let AtPort { trackers, queues } = &mut self.ports[port];
            trackers[queues.part(cell.label())].count_if(self.window.contains(now), waited);
        }
    }

    /// Returns the distributions measured so far, by port.
    pub(crate) fn times(&self) -> TiVec<LinkIndex, PortDelayTimes> {
        let times = |port: &AtPort| {
            let parts = port.trackers.iter().map(|tracker| tracker.times(self.clock)).collect();
            PortDelayTimes::new(parts, port.queues.clone())
        };
        self.ports.iter().map(times).collect()
    }
}

/// Measures the delays of flows between their ends.
pub(crate) struct FlowDelays {
    window: Window,
    clock: Clock,
    /// Delays by flow. Connections of requests are not measured.
    flows: TiVec<FlowIndex, OfFlow>,
}

#[derive(Clone, Default)]
struct OfFlow {
    /// Unacknowledged segments in order: the byte after each segment and its sending time, or [`Time::NEVER`] after a
    /// retransmission.
    segments: VecDeque<(u64, Time)>,
    /// Position after the last byte sent.
    sent: u64,
    rtt: DelayTracker,
    one_way: DelayTracker,
    /// One-way delay of the latest packet before the window.
    before: Option<Span>,
    /// Sum of the differences between consecutive delays.
    differences: u128,
}

impl FlowDelays {
    /// Creates the state for `flows` flows at the start of a run.
    pub(crate) fn new(window: [Option<Time>; 2], flows: usize, clock: Clock) -> Self {
        Self { window: Window::new(window), clock, flows: ti_vec![OfFlow::default(); flows] }
    }

    /// Records a segment that a flow sends or retransmits at `now`.
    #[inline]
    pub(crate) fn on_segment(&mut self, flow: FlowIndex, segment: Segment, now: Time) {
        let Some(of_flow) = self.flows.get_mut(flow) else { return };
        let end = segment.seq + u64::from(segment.len);
        let is_new = segment.seq >= of_flow.sent;
        if !is_new {
            of_flow.send_again(segment.seq, end);
        }
        if end > of_flow.sent {
            of_flow.sent = end;
            of_flow.segments.push_back((end, if is_new { now } else { Time::NEVER }));
        }
    }

    /// Records that an acknowledgement of all bytes before `ack` reaches the sender at `now`.
    #[inline]
    pub(crate) fn on_ack(&mut self, flow: FlowIndex, ack: u64, now: Time) {
        let Some(OfFlow { segments, rtt, .. }) = self.flows.get_mut(flow) else { return };
        while let Some(&(end, sent)) = segments.front()
            && end <= ack
        {
            segments.pop_front();
            rtt.count_if(sent != Time::NEVER && self.window.contains(now), Span(now.0.wrapping_sub(sent.0)));
        }
    }

    /// Records that a packet sent at `sent` reaches the receiver at `now`.
    #[inline]
    pub(crate) fn on_delivered(&mut self, flow: FlowIndex, sent: Time, now: Time) {
        let Some(of_flow) = self.flows.get_mut(flow) else { return };
        let delay = now - sent;
        let is_measured = self.window.contains(now);
        if !is_measured || !of_flow.one_way.repeat(delay) {
            of_flow.on_other_delay(delay, is_measured);
        }
    }

    /// Returns the distributions measured so far, by flow.
    pub(crate) fn times(&self) -> TiVec<FlowIndex, FlowDelayTimes> {
        let times = |of_flow: &OfFlow| {
            let one_way = of_flow.one_way.times(self.clock);
            // Every measured packet has a packet before it, except the flow's first.
            let count = (one_way.packets() + u64::from(of_flow.before.is_some())).saturating_sub(1);
            let mean = of_flow.differences as f64 / count as f64;
            let jitter_ms = (count > 0).then(|| mean / (self.clock.units_per_second as f64 / 1e3));
            FlowDelayTimes { rtt: of_flow.rtt.times(self.clock), one_way, jitter_ms }
        };
        self.flows.iter().map(times).collect()
    }
}

impl OfFlow {
    #[inline(never)]
    fn on_other_delay(&mut self, delay: Span, is_measured: bool) {
        if is_measured {
            let before = self.one_way.latest().or(self.before).unwrap_or(delay);
            self.differences += u128::from(delay.0.abs_diff(before.0));
            self.one_way.count(delay);
        } else if self.one_way.latest().is_none() {
            self.before = Some(delay);
        }
    }

    /// Excludes segments with bytes between `seq` and `end` from the round-trip times, because they are retransmitted.
    #[cold]
    fn send_again(&mut self, seq: u64, end: u64) {
        let first = self.segments.partition_point(|&(end, _)| end <= seq);
        for (of_other, sent) in self.segments.range_mut(first..) {
            *sent = Time::NEVER;
            if *of_other >= end {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scheduler::{Class, SchedulerConfig};

    const CLOCK: Clock = Clock::exact(1000);

    #[test]
    fn a_retransmitted_segment_has_no_round_trip_time_sample() {
        let (mut delays, flow) = (FlowDelays::new([None; 2], 1, CLOCK), FlowIndex::default());
        let segment = |seq| Segment { seq, len: 100 };
        for (at, seq) in [(0, 0), (1, 100), (2, 200), (9, 100), (11, 300)] {
            delays.on_segment(flow, segment(seq), Time(at));
        }
        delays.on_ack(flow, 100, Time(10));
        delays.on_ack(flow, 400, Time(15));
        // The second segment was sent twice, so it is excluded. The others took 10, 13 and 4 units.
        let rtt = &delays.times()[flow].rtt;
        assert_eq!(rtt.up_to(), [(Span(4), 1), (Span(10), 2), (Span(13), 3)]);
        assert_eq!((rtt.mean_ms(), rtt.percentile_ms(990)), (Some(9.0), Some(13.0)));
    }

    #[test]
    fn naming_the_queues_of_a_port_takes_time_linear_in_the_number_of_vcs() {
        let vcs: Vec<String> = (0..200_000).map(|vc| format!("vc{vc}")).collect();
        let kinds: Vec<_> = vcs.iter().map(|name| VcKind { name, class: Class::default() }).collect();
        let scheduler = SchedulerConfig::samples().iter().find_map(|config| config.build(&kinds));
        let Service { scheduler, .. } = scheduler.expect("a scheduler has queues");
        // With a queue for each VC, the number of VCs times the number of queues would be 40 billion.
        let service = Service { queues: vcs.len(), queue_of: (0..vcs.len()).rev().collect(), scheduler };
        let names = names(&kinds, &service, false);
        assert!(names.iter().eq(vcs.iter().rev()));
        let service = Service { queues: 1, queue_of: vec![0; vcs.len()].into(), ..service };
        assert_eq!(super::names(&kinds, &service, true), [Class::default().name()]);
    }

    #[test]
    fn jitter_is_the_mean_absolute_difference_between_consecutive_delays() {
        let (mut delays, flow) = (FlowDelays::new([None; 2], 1, CLOCK), FlowIndex::default());
        // The packet sent at 20 is lost. The other packets take 5, 7, 4 and 4 units.
        for (sent, arrived) in [(0, 5), (10, 17), (30, 34), (40, 44)] {
            delays.on_delivered(flow, Time(sent), Time(arrived));
        }
        let times = &delays.times()[flow];
        assert_eq!(times.jitter_ms, Some(5.0 / 3.0));
        assert_eq!(times.one_way.up_to(), [(Span(4), 2), (Span(5), 3), (Span(7), 4)]);
    }

    proptest! {
        /// Each step adds a packet (and sometimes takes it back), or removes the first or second packet.
        #[test]
        fn the_recorded_arrival_time_of_a_departing_packet_is_correct_after_losses_and_withdrawn_arrivals(
            steps in prop::collection::vec((0..3_u8, any::<bool>()), 0..200),
        ) {
            let (mut waiting, mut expected) = (Waiting::default(), VecDeque::new());
            for (now, (step, is_second)) in steps.into_iter().enumerate() {
                let (frame, now) = (FrameNumber::from(now), Time(now as u64 * 7));
                if step < 2 {
                    waiting.arrive(frame, now);
                    expected.push_back((frame, now));
                    if is_second {
                        waiting.arrive(FrameNumber::from(1_000_000), now);
                        waiting.take_back();
                    }
                } else if let Some(&(frame, arrival)) = expected.get(usize::from(is_second)) {
                    prop_assert_eq!(waiting.depart(frame), arrival);
                    expected.drain(..=usize::from(is_second));
                }
            }
        }

    }
}
