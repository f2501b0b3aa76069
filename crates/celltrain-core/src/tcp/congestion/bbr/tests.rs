//! BBR on a path with one bottleneck: invariants by state, after every acknowledgement, and the cases of the draft's
//! appendix that need one constant path.

use std::collections::BTreeMap;

use super::*;
use crate::tcp::{Ack, Congestion, Ecn, Receiver, SackBlocks, Segment, Sender, TcpConfig, TimerOptions};
use crate::units::Bytes;

const MSS: u64 = 1000;
/// Times are microseconds.
const CLOCK: Clock = Clock::exact(1_000_000);
const TICK: u64 = 10_000;

/// A path with one bottleneck. The sender and the receiver are at its ends.
struct Path {
    sender: Sender,
    receiver: Receiver,
    now: u64,
    /// Microseconds that a segment takes on the bottleneck, one way without it, and the buffer in segments.
    service: u64,
    one_way: u64,
    buffer: u64,
    /// Percentage of segments lost at random.
    lossy: u32,
    /// Queue length from which segments are marked.
    marks_from: u64,
    rng: Stream,
    free: u64,
    forward: BTreeMap<(u64, u64), (Segment, [bool; 2])>,
    back: BTreeMap<(u64, u64), (Ack, SackBlocks, bool)>,
    number: u64,
    lost: u64,
    log: Vec<Entry>,
}

/// The state of BBR after an event that has changed it.
#[derive(Clone, Copy, Debug)]
struct Entry {
    now: u64,
    state: State,
    in_flight: u64,
}

impl Path {
    /// Creates a path of `rate` segments a second and a round trip of `rtt` microseconds without a queue, with a buffer
    /// of a number of bandwidth-delay products.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn new(rate: u64, rtt: u64, buffer_in_bdp: f64, change: impl FnOnce(&mut TcpOptions)) -> Self {
        let mut options = TcpOptions {
            mss: Bytes { bytes: MSS },
            receive_window: Bytes { bytes: 100_000 * MSS },
            initial_window: 10,
            congestion: Congestion::Bbr,
            timer_granularity: Duration::from_milliseconds(10),
            timer: TimerOptions { initial_rto: Some(Duration::from_milliseconds(1_000)), ..TimerOptions::default() },
            minimum_rto: 20,
            ..TcpOptions::default()
        };
        change(&mut options);
        let config = TcpConfig::named("sack", options).expect("the schema lists this name");
        let service = 1_000_000 / rate;
        Self {
            sender: Sender::new(&config, CLOCK),
            receiver: Receiver::new(&config),
            now: 0,
            service,
            one_way: (rtt - service) / 2,
            buffer: ((rate * rtt) as f64 / 1e6 * buffer_in_bdp).ceil() as u64,
            lossy: 0,
            marks_from: u64::MAX,
            rng: Stream::new(5, "path"),
            free: 0,
            forward: BTreeMap::new(),
            back: BTreeMap::new(),
            number: 0,
            lost: 0,
            log: Vec::new(),
        }
    }

    fn send(&mut self) {
        while let Some(segment) = self.sender.next_segment(Time(self.now)) {
            self.number += 1;
            let queue = self.free.saturating_sub(self.now).div_ceil(self.service);
            if queue > self.buffer || self.rng.below(100) < self.lossy {
                self.lost += 1;
                continue;
            }
            let marked = queue >= self.marks_from && self.sender.sends_capable();
            self.free = self.free.max(self.now) + self.service;
            let flags = [marked, self.sender.reports_reduction()];
            self.forward.insert((self.free + self.one_way, self.number), (segment, flags));
        }
    }

    /// Runs until `end`, and checks the invariants after each event.
    fn run(&mut self, end: u64) {
        self.send();
        loop {
            let first = |time: Option<u64>| time.unwrap_or(u64::MAX);
            let next = ((self.now / TICK + 1) * TICK)
                .min(first(self.forward.first_key_value().map(|(key, _)| key.0)))
                .min(first(self.back.first_key_value().map(|(key, _)| key.0)))
                .min(first(self.sender.next_departure(Time(self.now)).map(|time| time.0)));
            if next > end {
                return;
            }
            self.now = next;
            while let Some(entry) = self.forward.first_entry().filter(|entry| entry.key().0 == next) {
                let (segment, [marked, reduced]) = entry.remove();
                self.receiver.on_mark(marked, reduced);
                if let Some(ack) = self.receiver.on_segment(segment) {
                    self.number += 1;
                    let echo = self.receiver.echoes_mark();
                    self.back.insert((next + self.one_way, self.number), (ack, self.receiver.blocks(), echo));
                }
            }
            while let Some(entry) = self.back.first_entry().filter(|entry| entry.key().0 == next) {
                let (ack, blocks, echo) = entry.remove();
                let timeouts = self.sender.counters().timeouts;
                self.sender.on_echo(echo);
                self.sender.on_ack(ack, &blocks, Time(next));
                self.check(timeouts);
                self.send();
            }
            if next.is_multiple_of(TICK) {
                self.sender.on_tick(Time(next));
            }
            self.send();
        }
    }

    /// Checks the rules of the state, by the table of 5.6.1 and the formulas of 5.6.
    fn check(&mut self, timeouts: u64) {
        let now = self.now;
        let (bbr, in_flight) = self.sender.bbr();
        let state = bbr.state;
        let before = self.log.last().map_or(State::Startup, |last| last.state);
        assert!(is_allowed(before, state), "{before:?} to {state:?} at {now}");
        if before != state || self.log.is_empty() {
            self.log.push(Entry { now, state, in_flight });
        }
        let (pacing_gain, cwnd_gain) = state.gains();
        if bbr.full_bw.reached {
            let rate = pacing_gain * bbr.max_bw().min(bbr.short_term.bw) * 0.99;
            assert!(
                (bbr.control.pacing_rate - rate).abs() <= 1e-6 * rate,
                "{state:?}: {} {rate}",
                bbr.control.pacing_rate
            );
            let own = if state == State::Up { 2.0 } else { 0.0 };
            let most = (cwnd_gain * bbr.bdp() + bbr.aggregation.extra_acked()).max(4.0) + own;
            assert!(bbr.control.cwnd <= most + 1e-6, "{state:?}: cwnd {} exceeds {most}", bbr.control.cwnd);
        }
        assert!(bbr.control.cwnd >= 4.0 || timeouts > 0, "{state:?}: cwnd {}", bbr.control.cwnd);
        let bound = match state {
            State::Down | State::Refill | State::Up => bbr.inflight_longterm,
            State::Cruise | State::ProbeRtt => 0.85 * bbr.inflight_longterm,
            State::Startup | State::Drain => f64::INFINITY,
        };
        let bound = bound.min(bbr.short_term.inflight).max(4.0);
        assert!(bbr.control.cwnd <= bound + 1.0, "{state:?}: cwnd {} beyond {bound}", bbr.control.cwnd);
        if state.accelerates() && state != State::Startup {
            assert!(bbr.short_term.bw.is_infinite() && bbr.short_term.inflight.is_infinite(), "{state:?}");
        }
    }

    fn since(&self, state: State) -> impl Iterator<Item = (Entry, Entry)> {
        self.log.windows(2).map(|pair| (pair[0], pair[1])).filter(move |pair| pair.0.state == state)
    }

    /// Returns the share of the bottleneck that data delivered from `from` on used.
    fn share(&mut self, from: u64, to: u64) -> f64 {
        self.run(from);
        let before = self.receiver.delivered();
        self.run(to);
        ((self.receiver.delivered() - before) / MSS * self.service) as f64 / (to - from) as f64
    }
}

fn is_allowed(before: State, after: State) -> bool {
    use State::{Cruise, Down, Drain, ProbeRtt, Refill, Startup, Up};
    let usual = match before {
        Startup => &[Drain][..],
        // One acknowledgement may end DOWN too.
        Drain | Up => &[Down, Cruise, Refill],
        Down => &[Cruise, Refill],
        Cruise => &[Refill],
        Refill => &[Up],
        ProbeRtt => &[Startup, Cruise, Refill],
    };
    before == after || usual.contains(&after) || after == ProbeRtt
}

#[test]
fn bbr_startup_finds_the_rate_within_two_percent_and_ends_after_three_rounds_without_growth() {
    // Draft, appendix: "Exiting STARTUP on Bandwidth Plateau", "Exiting DRAIN Based on Inflight".
    for (rate, rtt) in [(1_000, 100_000), (10_000, 20_000), (500, 300_000), (10_000, 100_000)] {
        let mut path = Path::new(rate, rtt, 4.0, |_| {});
        path.run(30 * rtt);
        let (started, drained) = path.since(State::Startup).next().expect("Startup ends");
        let (_, after) = path.since(State::Drain).next().expect("Drain ends");
        let bdp = rate as f64 * rtt as f64 / 1e6;
        let most = ((bdp / 10.0).log2().max(0.0) + 6.0) * 2.0 * rtt as f64;
        assert!(((drained.now - started.now) as f64) < most, "Startup takes {} of {most}", drained.now - started.now);
        assert!((after.in_flight as f64) <= bdp * 1.03 + 1.0, "{} in flight after Drain, BDP {bdp}", after.in_flight);
        let (bbr, _) = path.sender.bbr();
        let found = bbr.max_bw() / rate as f64;
        assert!((0.98..=1.02).contains(&found), "{found} of {rate} segments/s");
        assert_eq!(bbr.min_rtt.least, Some(Span(path.service + 2 * path.one_way)));
        assert!(bbr.full_bw.reached && path.lost == 0);
    }
}

#[test]
fn bbr_cycles_through_its_phases_and_probes_after_3_seconds_or_63_round_trips() {
    // 1,000 segments/s and 100 ms: the BDP is 100, so 63 round trips of 6.3 s are longer than 2 to 3 s.
    let mut path = Path::new(1_000, 100_000, 2.0, |_| {});
    path.run(40_000_000);
    let ups: Vec<_> = path.since(State::Up).collect();
    assert!(ups.len() >= 8, "{} probes", ups.len());
    for (refill, up) in path.since(State::Refill).filter(|(_, next)| next.state == State::Up) {
        // One round trip in packets: from the next segment sent to its acknowledgement.
        assert!((95_000..260_000).contains(&(up.now - refill.now)), "REFILL takes {}", up.now - refill.now);
    }
    let mut waits = Vec::new();
    let mut begun = 0;
    for pair in path.log.windows(2) {
        // A cycle begins in DOWN, which one acknowledgement may end, or after ProbeRTT.
        match (pair[0].state, pair[1].state) {
            (State::Drain | State::Up | State::ProbeRtt, _) => begun = pair[1].now,
            (_, State::Refill) => waits.push(pair[1].now - begun),
            _ => {}
        }
    }
    assert!(waits.iter().all(|wait| (2_000_000..3_150_000).contains(wait)), "{waits:?}");
    waits.sort_unstable();
    waits.dedup();
    assert!(waits.len() > 3, "the waits must differ, but are {waits:?}");
    // 1,000 segments/s and 10 ms: min(BDP, 63) = 10 round trips of 10 ms, although one starts at 0 or 1.
    let mut path = Path::new(1_000, 10_000, 2.0, |_| {});
    path.run(3_000_000);
    let refills: Vec<_> = path.log.iter().filter(|entry| entry.state == State::Refill).map(|entry| entry.now).collect();
    assert!(refills.len() > 10);
    assert!(refills.windows(2).all(|pair| (70_000..300_000).contains(&(pair[1] - pair[0]))), "{refills:?}");
}

#[test]
fn bbr_enters_probe_rtt_at_most_every_5_seconds_and_then_holds_half_the_bdp() {
    for (rate, rtt, buffer) in [(1_000, 100_000, 1.0), (4_000, 30_000, 8.0), (2_000, 1_000, 20.0)] {
        let mut path = Path::new(rate, rtt, buffer, |_| {});
        path.run(30_000_000);
        let probes: Vec<_> = path.since(State::ProbeRtt).collect();
        assert!((4..=6).contains(&probes.len()), "{} of {rate} {rtt}", probes.len());
        for pair in probes.windows(2) {
            assert!(pair[1].0.now - pair[0].1.now >= 5_000_000, "{pair:?}");
        }
        for (enters, leaves) in &probes {
            let took = leaves.now - enters.now;
            assert!((200_000..=200_000 + 8 * rtt.max(10_000)).contains(&took), "ProbeRTT takes {took}");
            let most = (0.5 * rate as f64 * rtt as f64 / 1e6).max(4.0) * 1.03 + 1.0;
            assert!((leaves.in_flight as f64) <= most, "{} in flight, at most {most}", leaves.in_flight);
        }
        assert!(path.log.iter().all(|entry| entry.state != State::Startup || entry.now < 5_000_000));
    }
}

#[test]
fn a_bbr_flow_fills_the_link_with_few_losses_at_buffers_of_1_to_20_bdp() {
    for (buffer, least) in [(1.0, 0.93), (4.0, 0.95), (20.0, 0.95)] {
        let mut path = Path::new(2_000, 50_000, buffer, |_| {});
        let share = path.share(5_000_000, 45_000_000);
        assert!((least..=1.0).contains(&share), "the flow gets {share} of the link if the buffer holds {buffer} BDP");
        let lost = path.lost as f64 / path.sender.counters().segments_sent as f64;
        assert!(lost < 0.02, "a fraction {lost} of the segments is lost if the buffer holds {buffer} BDP");
        // Startup may overflow the buffer. RFC 6675 leaves the loss of a retransmission to the timer.
        assert!(path.sender.counters().timeouts <= u64::from(buffer < 2.0), "{buffer} BDP");
    }
}

#[test]
fn bbr_limits_the_data_in_flight_after_losses_above_two_percent_and_tolerates_one_percent() {
    let mut path = Path::new(2_000, 50_000, 0.1, |_| {});
    let share = path.share(5_000_000, 30_000_000);
    let (bbr, _) = path.sender.bbr();
    let bound = bbr.inflight_longterm;
    assert!((80.0..=140.0).contains(&bound), "inflight_longterm is {bound}; BDP and buffer have 110");
    assert!(share > 0.75, "the flow gets {share} of the link if the buffer holds a tenth of the BDP");
    // CUBIC reaches 1.2 / sqrt(p) segments per round trip: an eighth of this link.
    let mut path = Path::new(2_000, 50_000, 1.0, |_| {});
    path.lossy = 1;
    let share = path.share(5_000_000, 30_000_000);
    assert!(share > 0.6, "the flow gets {share} of the link if 1 % of the segments are lost");
}

#[test]
fn losses_in_a_shallow_buffer_end_bbr_startup_while_the_rate_still_grows() {
    let mut path = Path::new(5_000, 100_000, 0.02, |_| {});
    path.run(4_000_000);
    let (bbr, _) = path.sender.bbr();
    assert!(bbr.inflight_longterm.is_finite() && bbr.full_bw.reached);
    assert!(path.since(State::Startup).next().is_some());
}

#[test]
fn on_a_path_with_a_low_bdp_bbr_fills_the_link_with_four_segments() {
    // Draft, appendix: "Correctly Managing Sub-Packet BDPs".
    let mut path = Path::new(50, 20_000, 10.0, |_| {});
    let share = path.share(5_000_000, 60_000_000);
    let (bbr, in_flight) = path.sender.bbr();
    assert!(bbr.control.cwnd >= 4.0 && in_flight <= 10, "{} and {in_flight}", bbr.control.cwnd);
    assert!(share > 0.95, "{share}");
}

#[test]
fn congestion_marks_reduce_the_rate_of_bbr_as_losses_do() {
    let mut path = Path::new(2_000, 50_000, 20.0, |options| options.ecn = Ecn::On);
    path.marks_from = 30;
    let share = path.share(5_000_000, 30_000_000);
    let (bbr, _) = path.sender.bbr();
    assert!(bbr.inflight_longterm < 200.0, "{}", bbr.inflight_longterm);
    assert!(share > 0.85 && path.lost == 0, "{share}");
}

#[test]
fn a_bbr_flow_without_data_stays_in_its_state_and_restarts_at_the_estimated_rate() {
    // Draft, appendix: "Skipping PROBE_RTT Due to Application-Limited Sending".
    let mut path = Path::new(1_000, 100_000, 2.0, |_| {});
    path.sender = path.sender.of_bytes(8_000 * MSS);
    path.run(30_000_000);
    let probes = path.since(State::ProbeRtt).count();
    path.sender.write(3_000 * MSS);
    path.run(30_250_000);
    let (bbr, _) = path.sender.bbr();
    assert!(bbr.state.probes_bw(), "{:?}", bbr.state);
    assert!((950.0..1_020.0).contains(&bbr.max_bw()), "{}", bbr.max_bw());
    assert_eq!(path.since(State::ProbeRtt).count(), probes);
    path.run(36_000_000);
    assert_eq!(path.receiver.delivered(), 11_000 * MSS);
}

#[test]
fn bursts_separated_by_pauses_increase_cwnd_by_at_most_one_burst() {
    // The draft's text (5.4.1) adds up the excess of all bursts: cwnd reached 737 segments in 10 s of bursts of 14.
    let mut path = Path::new(1_000, 40_000, 4.0, |_| {});
    path.sender = path.sender.of_bytes(14 * MSS);
    for burst in 1..100 {
        path.run(burst * 100_000);
        path.sender.write(14 * MSS);
    }
    let (bbr, _) = path.sender.bbr();
    assert!(bbr.aggregation.extra_acked() <= 14.0, "{}", bbr.aggregation.extra_acked());
    assert!(bbr.control.cwnd <= 2.0 * bbr.bdp() + 28.0, "{} of {}", bbr.control.cwnd, bbr.bdp());
}

#[test]
fn the_maximum_filter_forgets_values_older_than_its_window() {
    let mut filter = path::MaxFilter::default();
    for (time, value, largest) in
        [(0, 5.0, 5.0), (1, 3.0, 5.0), (2, 4.0, 5.0), (3, 1.0, 4.0), (4, 1.5, 4.0), (5, 0.5, 1.5)]
    {
        filter.update(value, time, 3);
        assert_eq!(filter.largest(), largest, "{time}");
    }
}
