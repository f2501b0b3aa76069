//! Delays of packets: at each port, on the way through the network, and until the acknowledgement.
//!
//! A packet waits at a port from the arrival of its last cell to the start of that cell's transmission. So the delay
//! does not depend on how much of the packet had left before. The round-trip time is measured for every segment that is
//! sent once (Karn's algorithm, RFC 6298 section 3). Jitter follows RFC 3550 section 6.4.1 without its smoothing. Every
//! distribution is exact: it counts each delay that occurred, in units of the clock.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use typed_index_collections::{TiVec, ti_vec};

use crate::cell::{Cell, FrameNumber};
use crate::index::{FlowIndex, Label, LinkIndex};
use crate::tcp::Segment;
use crate::units::{Clock, Span, Time};

/// Selects the delays to measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DelayChoice {
    /// No delays.
    #[default]
    None,
    /// Delays at ports.
    Ports,
    /// Delays of flows.
    Flows,
    /// All delays.
    All,
}

impl DelayChoice {
    /// Returns the choice of delays at ports, of flows, or both.
    pub fn of(ports: bool, flows: bool) -> Self {
        match (ports, flows) {
            (false, false) => Self::None,
            (true, false) => Self::Ports,
            (false, true) => Self::Flows,
            (true, true) => Self::All,
        }
    }

    /// Returns whether the delays at ports are measured.
    pub fn at_ports(self) -> bool {
        matches!(self, Self::Ports | Self::All)
    }

    /// Returns whether the delays of flows are measured.
    pub fn of_flows(self) -> bool {
        matches!(self, Self::Flows | Self::All)
    }
}

/// Distribution of the delays of packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelayTimes {
    clock: Clock,
    /// Delays in ascending order, each with the number of packets that were not delayed longer.
    up_to: Vec<(Span, u64)>,
    /// Sum of all delays, in units of the clock.
    sum: u128,
}

impl DelayTimes {
    fn of(mut counts: Vec<(Span, u64)>, clock: Clock) -> Self {
        counts.sort_unstable();
        counts.dedup_by(|later, first| {
            let is_same = later.0 == first.0;
            first.1 += if is_same { later.1 } else { 0 };
            is_same
        });
        let (mut packets, mut sum) = (0, 0);
        for (delay, count) in &mut counts {
            sum += u128::from(delay.0) * u128::from(*count);
            packets += *count;
            *count = packets;
        }
        Self { clock, up_to: counts, sum }
    }

    /// Returns the distribution of packets without delay.
    pub(crate) fn without_delay(packets: u64, clock: Clock) -> Self {
        Self::of((packets > 0).then_some((Span(0), packets)).into_iter().collect(), clock)
    }

    /// Returns the distribution of all packets of several distributions with the same clock.
    fn merged<'a>(all: impl Iterator<Item = &'a DelayTimes>, clock: Clock) -> Self {
        let mut counts = Vec::new();
        for times in all {
            let mut before = 0;
            counts.extend(
                times.up_to.iter().map(|&(delay, packets)| (delay, packets - std::mem::replace(&mut before, packets))),
            );
        }
        Self::of(counts, clock)
    }

    /// Returns the number of packets.
    pub fn packets(&self) -> u64 {
        self.up_to.last().map_or(0, |&(_, packets)| packets)
    }

    /// Returns the mean delay in milliseconds; `None` without packets.
    pub fn mean_ms(&self) -> Option<f64> {
        let packets = self.packets();
        (packets > 0).then(|| self.sum as f64 / packets as f64 / self.clock.units_per_second as f64 * 1e3)
    }

    /// Returns the smallest delay in milliseconds that a share of the packets, in thousandths, did not exceed; `None`
    /// without packets.
    pub fn percentile_ms(&self, share: u16) -> Option<f64> {
        let rank = (u128::from(self.packets()) * u128::from(share)).div_ceil(1000);
        let place = self.up_to.partition_point(|&(_, packets)| u128::from(packets) < rank);
        self.up_to.get(place).map(|&(delay, _)| self.clock.seconds(Time(delay.0)) * 1e3)
    }
}

/// Delays of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowDelayTimes {
    /// Round-trip times of the segments that were sent once and acknowledged; empty without TCP.
    pub rtt: DelayTimes,
    /// One-way delays of the packets that arrived.
    pub one_way: DelayTimes,
    /// Mean absolute difference between the one-way delays of packets that arrived one after the other, in milliseconds;
    /// `None` if fewer than two arrived.
    pub jitter_ms: Option<f64>,
}

/// Delays of the packets at a port, by label.
pub type PortDelayTimes = TiVec<Label, DelayTimes>;

/// Counts delays.
#[derive(Clone, Default)]
pub(crate) struct DelayTracker {
    /// The latest delay, and how often it has occurred in a row. Many ports have a single one.
    latest: Span,
    times: u64,
    counts: HashMap<u64, u64, BuildHasherDefault<SpanHasher>>,
}

impl DelayTracker {
    /// Counts a delay if `counts` is true.
    #[inline]
    pub(crate) fn count_if(&mut self, counts: bool, delay: Span) {
        if counts {
            self.count(delay);
        }
    }

    #[inline]
    fn count(&mut self, delay: Span) {
        if delay != self.latest {
            self.change_to(delay);
        }
        self.times += 1;
    }

    fn change_to(&mut self, delay: Span) {
        if self.times > 0 {
            *self.counts.entry(self.latest.0).or_default() += self.times;
        }
        (self.latest, self.times) = (delay, 0);
    }

    /// Returns the distribution so far.
    pub(crate) fn times(&self, clock: Clock) -> DelayTimes {
        let counted = self.counts.iter().map(|(&delay, &count)| (Span(delay), count));
        // The order of a hash map has no effect, because the delays are sorted.
        DelayTimes::of(counted.chain((self.times > 0).then_some((self.latest, self.times))).collect(), clock)
    }
}

/// Hashes one integer by a multiplication.
#[derive(Default)]
struct SpanHasher(u64);

impl Hasher for SpanHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("delays are integers of 64 bits");
    }

    fn write_u64(&mut self, value: u64) {
        // 2^64 over the golden ratio. The high bits of the product are the best ones.
        self.0 = value.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(26);
    }
}

/// The measured time, from `first` to `until`. An instant at the start of a window precedes it.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    first: Time,
    pub(crate) until: Time,
}

impl Window {
    /// Creates a window from its ends; without them, from those of the run.
    pub(crate) fn new([after, until]: [Option<Time>; 2]) -> Self {
        Self { first: after.map_or(Time::default(), |after| after + Span(1)), until: until.unwrap_or(Time::NEVER) }
    }

    #[inline]
    pub(crate) fn contains(self, now: Time) -> bool {
        self.first <= now && now <= self.until
    }
}

/// The packets of a VC at a port.
#[derive(Clone, Default)]
pub(crate) struct VcAtPort {
    /// Packets whose last cell has arrived, in order. Lost packets stay until a later one leaves.
    arrived: VecDeque<(FrameNumber, Time)>,
    pub(crate) delays: DelayTracker,
}

impl VcAtPort {
    /// Records the arrival of a packet's last cell, even if it is lost.
    #[inline]
    pub(crate) fn arrive(&mut self, frame: FrameNumber, now: Time) {
        self.arrived.push_back((frame, now));
    }

    /// Records the start of the last cell of a packet, and its delay if `counts` is true. Packets must leave in order.
    #[inline]
    pub(crate) fn depart(&mut self, frame: FrameNumber, start: Time, counts: bool) {
        loop {
            let (arrived, arrival) =
                self.arrived.pop_front().expect("the last cell of a packet arrives before it leaves");
            if arrived == frame {
                return self.delays.count_if(counts, start - arrival);
            }
        }
    }
}

/// Measures the delays at all ports of a network, cell by cell.
pub(crate) struct PortDelays {
    window: Window,
    clock: Clock,
    ports: TiVec<LinkIndex, TiVec<Label, VcAtPort>>,
}

impl PortDelays {
    /// Creates the state at the start of a run. `vcs`: the number of VCs at each port.
    pub(crate) fn new(window: [Option<Time>; 2], vcs: impl Iterator<Item = usize>, clock: Clock) -> Self {
        let port = |vcs: usize| ti_vec![VcAtPort::default(); vcs];
        Self { window: Window::new(window), clock, ports: vcs.map(port).collect() }
    }

    /// Records a cell that arrives at a port.
    pub(crate) fn on_arrival(&mut self, port: LinkIndex, cell: Cell, now: Time) {
        if cell.last_cell() {
            self.ports[port][cell.label()].arrive(cell.frame, now);
        }
    }

    /// Records a cell whose transmission starts.
    pub(crate) fn on_departure(&mut self, port: LinkIndex, cell: Cell, now: Time) {
        if cell.last_cell() {
            self.ports[port][cell.label()].depart(cell.frame, now, self.window.contains(now));
        }
    }

    /// Returns the distributions so far, by port.
    pub(crate) fn times(&self) -> TiVec<LinkIndex, PortDelayTimes> {
        let times = |port: &TiVec<Label, VcAtPort>| port.iter().map(|vc| vc.delays.times(self.clock)).collect();
        self.ports.iter().map(times).collect()
    }
}

/// Measures the delays of flows, at their ends.
pub(crate) struct FlowDelays {
    window: Window,
    clock: Clock,
    /// By flow. Connections of requests are not measured.
    flows: TiVec<FlowIndex, OfFlow>,
}

#[derive(Clone, Default)]
struct OfFlow {
    /// Segments that are not acknowledged, in order: the byte after each, and when it was sent, if it was sent once.
    segments: VecDeque<(u64, Option<Time>)>,
    /// The byte after the last byte sent.
    sent: u64,
    /// Packets in flight in the order in which they were sent. Lost ones stay until a later one arrives.
    in_flight: VecDeque<(FrameNumber, Time)>,
    rtt: DelayTracker,
    one_way: DelayTracker,
    /// One-way delay of the latest packet.
    latest: Option<Span>,
    /// Sum and number of the differences between consecutive delays.
    differences: (u128, u64),
}

impl FlowDelays {
    /// Creates the state of `flows` flows at the start of a run.
    pub(crate) fn new(window: [Option<Time>; 2], flows: usize, clock: Clock) -> Self {
        Self { window: Window::new(window), clock, flows: ti_vec![OfFlow::default(); flows] }
    }

    /// Records a packet that a flow sends at `now`.
    pub(crate) fn on_sent(&mut self, flow: FlowIndex, frame: FrameNumber, now: Time) {
        if let Some(of_flow) = self.flows.get_mut(flow) {
            of_flow.in_flight.push_back((frame, now));
        }
    }

    /// Records a segment that a flow sends at `now`, for the first time or again.
    pub(crate) fn on_segment(&mut self, flow: FlowIndex, segment: Segment, now: Time) {
        let Some(OfFlow { segments, sent, .. }) = self.flows.get_mut(flow) else { return };
        let end = segment.seq + u64::from(segment.len);
        let is_new = segment.seq >= *sent;
        if !is_new {
            let first = segments.partition_point(|&(end, _)| end <= segment.seq);
            for (of_other, sent_once) in segments.range_mut(first..) {
                *sent_once = None;
                if *of_other >= end {
                    break;
                }
            }
        }
        if end > *sent {
            *sent = end;
            segments.push_back((end, is_new.then_some(now)));
        }
    }

    /// Records an acknowledgement of all bytes before `ack` that reaches the sender at `now`.
    pub(crate) fn on_ack(&mut self, flow: FlowIndex, ack: u64, now: Time) {
        let Some(OfFlow { segments, rtt, .. }) = self.flows.get_mut(flow) else { return };
        while let Some(&(_, sent_once)) = segments.front().filter(|&&(end, _)| end <= ack) {
            segments.pop_front();
            if let Some(sent) = sent_once.filter(|_| self.window.contains(now)) {
                rtt.count(now - sent);
            }
        }
    }

    /// Records a packet that reaches the receiver at `now`. Packets sent before the packet `oldest` do not arrive later.
    pub(crate) fn on_delivered(&mut self, flow: FlowIndex, frame: FrameNumber, oldest: FrameNumber, now: Time) {
        let Some(of_flow) = self.flows.get_mut(flow) else { return };
        let place_of = |frame| of_flow.in_flight.iter().position(|&(other, _)| other == frame);
        let place = place_of(frame).expect("a packet is sent before it arrives");
        // An older packet that may still arrive can be of another flow on the same VC.
        let gone = if oldest == frame { place } else { place_of(oldest).unwrap_or(0) };
        let sent = of_flow.in_flight.remove(place).map_or(now, |(_, sent)| sent);
        of_flow.in_flight.drain(..gone);
        let delay = now - sent;
        let before = of_flow.latest.replace(delay);
        if self.window.contains(now) {
            of_flow.one_way.count(delay);
            if let Some(before) = before {
                of_flow.differences.0 += u128::from(delay.0.abs_diff(before.0));
                of_flow.differences.1 += 1;
            }
        }
    }

    /// Returns the distributions so far, by flow.
    pub(crate) fn times(&self) -> TiVec<FlowIndex, FlowDelayTimes> {
        let times = |of_flow: &OfFlow| {
            let (sum, count) = of_flow.differences;
            let units_per_ms = self.clock.units_per_second as f64 / 1e3;
            FlowDelayTimes {
                rtt: of_flow.rtt.times(self.clock),
                one_way: of_flow.one_way.times(self.clock),
                jitter_ms: (count > 0).then(|| sum as f64 / count as f64 / units_per_ms),
            }
        };
        self.flows.iter().map(times).collect()
    }
}

/// Returns the distribution of all VCs at a port, or of those for which `is_in` returns true.
pub(crate) fn of_vcs(times: &PortDelayTimes, clock: Clock, is_in: impl Fn(Label) -> bool) -> DelayTimes {
    let chosen = times.iter_enumerated().filter(|&(label, _)| is_in(label));
    DelayTimes::merged(chosen.map(|(_, times)| times), clock)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CLOCK: Clock = Clock::exact(1000);

    #[test]
    fn a_retransmitted_segment_has_no_round_trip_time() {
        let (mut delays, flow) = (FlowDelays::new([None; 2], 1, CLOCK), FlowIndex::default());
        let segment = |seq| Segment { seq, len: 100 };
        for (at, seq) in [(0, 0), (1, 100), (2, 200), (9, 100), (11, 300)] {
            delays.on_segment(flow, segment(seq), Time(at));
        }
        delays.on_ack(flow, 100, Time(10));
        delays.on_ack(flow, 400, Time(15));
        // The second segment was sent twice. The others took 10, 13 and 4 units.
        let rtt = &delays.times()[flow].rtt;
        assert_eq!(rtt.up_to, [(Span(4), 1), (Span(10), 2), (Span(13), 3)]);
        assert_eq!((rtt.mean_ms(), rtt.percentile_ms(990)), (Some(9.0), Some(13.0)));
    }

    #[test]
    fn jitter_is_the_mean_difference_of_consecutive_delays() {
        let (mut delays, flow) = (FlowDelays::new([None; 2], 1, CLOCK), FlowIndex::default());
        // The third packet is lost. The others take 5, 7, 4 and 4 units.
        for (number, sent) in [0, 10, 20, 30, 40].into_iter().enumerate() {
            delays.on_sent(flow, FrameNumber::from(number), Time(sent));
        }
        for (number, arrived) in [(0, 5), (1, 17), (3, 34), (4, 44)] {
            let frame = FrameNumber::from(number);
            delays.on_delivered(flow, frame, frame, Time(arrived));
        }
        let times = &delays.times()[flow];
        assert_eq!(times.jitter_ms, Some(5.0 / 3.0));
        assert_eq!(times.one_way.up_to, [(Span(4), 2), (Span(5), 3), (Span(7), 4)]);
    }

    proptest! {
        #[test]
        fn percentiles_and_means_match_the_list_of_delays(
            delays in prop::collection::vec(0_u64..40, 0..200),
            share in 1_u16..=1000,
        ) {
            let mut tracker = DelayTracker::default();
            for &delay in &delays {
                tracker.count(Span(delay));
            }
            let times = tracker.times(CLOCK);
            let halves = delays.split_at(delays.len() / 3);
            let halves = [halves.0, halves.1].map(|half| {
                let mut tracker = DelayTracker::default();
                for &delay in half {
                    tracker.count(Span(delay));
                }
                tracker.times(CLOCK)
            });
            prop_assert_eq!(&DelayTimes::merged(halves.iter(), CLOCK), &times);
            let mut sorted = delays.clone();
            sorted.sort_unstable();
            let rank = (delays.len() * usize::from(share)).div_ceil(1000);
            prop_assert_eq!(times.percentile_ms(share), rank.checked_sub(1).map(|place| sorted[place] as f64));
            let mean = delays.iter().sum::<u64>() as f64 / delays.len() as f64;
            prop_assert_eq!(times.mean_ms().is_some(), !delays.is_empty());
            prop_assert!(times.mean_ms().is_none_or(|exact| (exact - mean).abs() <= 1e-12 * mean));
            prop_assert_eq!(times.packets(), delays.len() as u64);
        }
    }
}
