use std::collections::VecDeque;

use super::*;
use crate::events::{Event, RequestEvent, SegmentEvent, SegmentStep, Timer, TimerEvent, TimerStep};
use crate::network::tests::{FIRST, simple_network};
use crate::probe::Nothing;
use crate::requests::{Opening as HowOpened, PairOrder, QueryTimes, RequestGroup, Sizes};
use crate::tcp::{Congestion, DelayedAcks, Ecn, Rules, TcpOptions, TimerOptions};
use crate::units::{Bytes, Duration, Span};

const GROUP: GroupIndex = GroupIndex::new(0);
/// The pair of VCs from the first source to its destination and back.
const THERE: PairIndex = PairIndex::new(0);

/// Returns a network of `sources` sources without flows. A group of requests uses each of their VCs.
fn network(sources: usize, options: TcpOptions, opening: HowOpened, arrivals: Arrivals) -> Network {
    let mut network = simple_network(sources, "1000s");
    for flow in std::mem::take(&mut network.flows) {
        let ends = [network.source(flow.data_vc), network.destination(flow.data_vc)];
        let pairs = &mut network.requests.pairs;
        let there = pairs.next_key();
        let back = PairIndex::new(there.number() + 1);
        pairs.push(Pair { from: ends[0], to: ends[1], vcs: vec![flow.data_vc], back });
        pairs.push(Pair { from: ends[1], to: ends[0], vcs: vec![flow.ack_vc], back: there });
    }
    let tcp = TcpConfig::Vanilla(options);
    network.requests.groups.push(RequestGroup { name: "web".into(), tcp, outside: false, opening, arrivals });
    network
}

/// Returns single requests of `bytes` over the first pair, 100 s apart on average.
fn rare(bytes: u64) -> Arrivals {
    Arrivals::Poisson {
        mean: Duration::from_milliseconds(100_000),
        sizes: Sizes::constant(Bytes { bytes }),
        pairs: vec![THERE],
        order: PairOrder::Random,
    }
}

/// Returns queries every 50 ms. `senders` of the pairs answer each query, with 512 bytes each.
fn queries(senders: u32, pairs: Vec<PairIndex>, spread: Duration) -> Arrivals {
    Arrivals::Incast {
        interval: Duration::from_milliseconds(50),
        times: QueryTimes::Fixed,
        bytes: Bytes { bytes: 512 * u64::from(senders) },
        senders,
        receivers: vec![pairs],
        spread,
    }
}

/// End systems connected by links on which every frame takes a millisecond.
struct Wires {
    ends: EndSystems,
    clock: Clock,
    now: Time,
    on_the_way: VecDeque<(Time, Departure)>,
    sent: u32,
    /// Numbers of the frames to lose, in sending order.
    lost: Vec<u32>,
    /// Numbers of the frames to be marked by a switch.
    marked: Vec<u32>,
    delivered: u32,
}

/// Log of events, each with the time in milliseconds since the first event.
#[derive(Default)]
struct Script {
    clock: Option<Clock>,
    start: Option<Time>,
    lines: Vec<String>,
}

impl Observer for Script {
    const OBSERVES: bool = true;

    fn on_event(&mut self, now: Time, event: Event) {
        let start = *self.start.get_or_insert(now);
        let ms = (now - start).0 * 1000 / self.clock.expect("the first call has set the start time").units_per_second;
        let what = match event {
            Event::Segment(SegmentEvent { flow, step, ecn, .. }) => {
                let what = match step {
                    SegmentStep::Handshake(step) => format!("{step:?}"),
                    SegmentStep::Sent { segment, .. } => format!("sent {}", segment.seq),
                    SegmentStep::Retransmitted { segment, .. } => format!("sent again {}", segment.seq),
                    SegmentStep::Arrived { segment, .. } => format!("arrived {}", segment.seq),
                    SegmentStep::AckSent { ack, .. } => format!("ACK sent {}", ack.ack),
                    SegmentStep::Acknowledged { ack, .. } => format!("ACK arrived {}", ack.ack),
                };
                let bits = [(ecn.capable, " ECT"), (ecn.marked, " CE"), (ecn.echo, " ECE")];
                let bits: String = bits.into_iter().filter_map(|(is_set, bit)| is_set.then_some(bit)).collect();
                format!("{} {what}{bits}", flow.number())
            }
            Event::Request(RequestEvent { flow, step }) => {
                let what = match step {
                    RequestStep::Opened { bytes, .. } => format!("opens for {bytes}"),
                    RequestStep::Completed => "is complete".to_owned(),
                    RequestStep::Closed => "closes".to_owned(),
                };
                format!("{} {what}", flow.number())
            }
            _ => return,
        };
        self.lines.push(format!("{ms}: {what}"));
    }
}

impl Wires {
    fn new(network: &Network) -> Self {
        let clock = network.clock();
        Self {
            ends: EndSystems::new(network, &network.routing(), clock),
            clock,
            now: Time::default(),
            on_the_way: VecDeque::new(),
            sent: 0,
            lost: Vec::new(),
            marked: Vec::new(),
            delivered: 0,
        }
    }

    fn losing(network: &Network, lost: &[u32]) -> Self {
        Self { lost: lost.to_vec(), ..Self::new(network) }
    }

    /// Runs until `requests` requests have closed. Returns the log.
    fn run(&mut self, requests: usize) -> Vec<String> {
        let mut script = Script { clock: Some(self.clock), ..Script::default() };
        self.run_with(&mut script, |script| {
            script.lines.iter().filter(|line| line.ends_with("closes")).count() == requests
        });
        script.lines
    }

    fn run_with<P: Observer>(&mut self, observer: &mut P, mut ends: impl FnMut(&P) -> bool) {
        let mut out = Vec::new();
        while !ends(observer) {
            let tick = self.ends.next_tick().expect("a clock never stops ticking");
            let arrival = self.on_the_way.front().map(|&(time, _)| time).filter(|&time| time <= tick);
            self.now = arrival.unwrap_or(tick);
            if arrival.is_some() {
                let (_, departure) =
                    self.on_the_way.pop_front().expect("the departure time of every packet in flight is known");
                self.deliver(departure, observer, &mut out);
            } else {
                self.ends.on_tick(tick, observer, &mut out);
            }
            self.leave(&mut out);
        }
    }

    fn deliver<P: Observer>(&mut self, departure: Departure, observer: &mut P, out: &mut Vec<Departure>) {
        if self.marked.contains(&self.delivered) {
            self.ends.mark(departure.vc, departure.last.frame);
        }
        self.delivered += 1;
        self.ends.deliver(departure.vc, departure.last.frame, self.now, observer, out);
    }

    fn leave(&mut self, out: &mut Vec<Departure>) {
        for departure in out.drain(..) {
            if !self.lost.contains(&self.sent) {
                let takes = self.clock.span(Duration::from_milliseconds(1));
                self.on_the_way.push_back((self.now + takes, departure));
            }
            self.sent += 1;
        }
    }

    fn records(&self) -> Vec<RequestRecord> {
        self.ends.request_results()[GROUP].records.clone()
    }

    fn took_ms(&self, record: &RequestRecord) -> Option<u64> {
        record.completed().map(|completed| (completed - record.opened).0 * 1000 / self.clock.units_per_second)
    }
}

/// Returns options with a tick of 10 ms, and a first timeout of 30 ms.
fn fast_timer() -> TcpOptions {
    TcpOptions {
        rules: Rules::Paper,
        timer_granularity: Duration::from_milliseconds(10),
        timer: TimerOptions { initial_rto: Some(Duration::from_milliseconds(30)), ..TimerOptions::default() },
        ..TcpOptions::default()
    }
}

#[test]
fn the_first_data_of_a_request_leaves_one_round_trip_after_its_syn() {
    let mut wires = Wires::new(&network(1, fast_timer(), HowOpened::Handshake, rare(1000)));
    let script = wires.run(1);
    assert_eq!(
        script,
        [
            "0: 0 opens for 1000", "0: 0 SynSent { is_repeated: false }", "1: 0 SynArrived", "1: 0 SynAckSent",
            "2: 0 SynAckArrived", "2: 0 sent 0", "3: 0 arrived 0", "3: 0 ACK sent 512", "4: 0 ACK arrived 512",
            "4: 0 sent 512", "5: 0 arrived 512", "5: 0 ACK sent 1024", "5: 0 is complete", "6: 0 ACK arrived 1024",
            "6: 0 closes",
        ]
    );
    let record = wires.records()[0];
    assert_eq!((wires.took_ms(&record), record.bytes, record.pair, record.query()), (Some(5), 1000, THERE, None));
    assert_eq!((record.segments_sent, record.retransmitted_segments, record.timeouts), (2, 0, 0));
    let requests = &network(1, fast_timer(), HowOpened::Handshake, rare(1000)).requests;
    assert_eq!([record.data_vc(requests), record.ack_vc(requests)], [0, 1].map(VcIndex::new));
}

#[test]
fn a_request_without_a_handshake_sends_its_data_immediately() {
    let mut wires = Wires::new(&network(1, fast_timer(), HowOpened::Open, rare(512)));
    let expected = [
        "0: 0 opens for 512", "0: 0 sent 0", "1: 0 arrived 0", "1: 0 ACK sent 512", "1: 0 is complete",
        "2: 0 ACK arrived 512", "2: 0 closes",
    ];
    assert_eq!(wires.run(1), expected);
}

#[test]
fn the_handshake_provides_a_round_trip_sample_unless_the_syn_was_retransmitted() {
    // Frame 0 is the SYN, frame 1 the SYN-ACK or, if the first SYN was lost, the second SYN.
    for (lost, rto) in [(&[][..], 3), (&[0][..], 6), (&[1][..], 6)] {
        let options = TcpOptions { initial_window: 10, ..fast_timer() };
        let mut wires = Wires::losing(&network(1, options, HowOpened::Handshake, rare(512 * 10)), lost);
        let mut states = Vec::new();
        let mut script = Opened(&mut states);
        wires.run_with(&mut script, |states| !states.0.is_empty());
        // A round-trip sample of 1 tick gives a timeout of 1 + 2 ticks. The first timeout takes 3 ticks, and the next 6
        // ticks. After the timeout, the window is one segment (RFC 5681, 3.1).
        let cwnd = if lost.is_empty() { 10.0 } else { 1.0 };
        assert_eq!(states[0], (rto, cwnd, 127.0), "{lost:?}");
    }
}

//= test rfc6298#5.7 "after a repeated SYN, the timeout of the first data is at least 3 s"
#[test]
fn after_a_retransmitted_syn_the_first_retransmission_timeout_for_data_is_3_seconds() {
    // Ticks take 10 ms. If the timeout is 3 s or more, it keeps the value doubled by the SYN's retransmission.
    for (initial, lost, rto) in [(30, &[][..], 3), (30, &[0][..], 300), (30, &[0, 1][..], 300), (3_000, &[0][..], 600)]
    {
        let initial_rto = Duration::from_milliseconds(initial);
        let options = TcpOptions {
            rules: Rules::Rfc,
            timer: TimerOptions { initial_rto: Some(initial_rto), ..TimerOptions::default() },
            ..fast_timer()
        };
        let mut wires = Wires::losing(&network(1, options, HowOpened::Handshake, rare(512 * 10)), lost);
        let mut states = Vec::new();
        let mut script = Opened(&mut states);
        wires.run_with(&mut script, |states| !states.0.is_empty());
        assert_eq!(states[0].0, rto, "{initial} ms, {lost:?}");
    }
}

/// Logs a sender's timeout and windows when its SYN is acknowledged.
struct Opened<'a>(&'a mut Vec<(u32, f64, f64)>);

impl Observer for Opened<'_> {
    const OBSERVES: bool = true;

    fn on_event(&mut self, _now: Time, event: Event) {
        if let Event::Segment(SegmentEvent { step, sender: Some(sender), .. }) = event
            && step == SegmentStep::Handshake(HandshakeStep::SynAckArrived)
        {
            self.0.push((sender.rto, sender.cwnd, sender.ssthresh));
        }
    }
}

/// Returns the times, in milliseconds since opening, of the log lines that contain `what`.
fn times(script: &[String], what: &str) -> Vec<u64> {
    let time = |line: &String| {
        line.split(':').next().and_then(|ms| ms.parse().ok()).expect("every line of a script begins with a time")
    };
    script.iter().filter(|line| line.contains(what)).map(time).collect()
}

#[test]
fn a_lost_syn_is_retransmitted_after_the_initial_timeout_and_then_after_twice_that_timeout() {
    let mut wires = Wires::losing(&network(1, fast_timer(), HowOpened::Handshake, rare(512)), &[0, 1, 2]);
    let script = wires.run(1);
    let syns = times(&script, "SynSent");
    // The first timeout takes two to three ticks of 10 ms, the next exactly 6 and 12 ticks.
    assert!((20..=30).contains(&syns[1]), "{script:?}");
    assert_eq!([syns[2] - syns[1], syns[3] - syns[2]], [60, 120]);
    assert_eq!((syns.len(), times(&script, "sent 0").len()), (4, 1));
    let record = wires.records()[0];
    assert_eq!((record.timeouts, record.segments_sent, record.retransmitted_segments), (3, 1, 0));
}

#[test]
fn the_server_retransmits_its_syn_ack_when_it_receives_a_duplicate_syn() {
    // Lose the SYN-ACK.
    let mut wires = Wires::losing(&network(1, fast_timer(), HowOpened::Handshake, rare(512)), &[1]);
    let script = wires.run(1);
    assert_eq!(times(&script, "SynAckSent").len(), 2);
    assert_eq!(times(&script, "SynAckArrived").len(), 1);
    assert_eq!(wires.records()[0].timeouts, 1);
}

#[test]
fn a_duplicate_syn_ack_is_ignored() {
    // A round trip takes 2 ms, and the timer expires after 1 ms or less.
    let tick = Duration::from_microseconds(500);
    let options = TcpOptions {
        timer_granularity: tick,
        timer: TimerOptions { initial_rto: Some(tick), ..TimerOptions::default() },
        minimum_rto: 1,
        ..fast_timer()
    };
    let mut wires = Wires::new(&network(1, options, HowOpened::Handshake, rare(512 * 4)));
    let script = wires.run(1);
    assert!(times(&script, "SynAckArrived").len() > 1, "{script:?}");
    assert_eq!(wires.records()[0].bytes, 512 * 4);
    assert_eq!(times(&script, "is complete").len(), 1);
}

#[test]
fn both_ends_of_a_request_ignore_frames_that_arrive_after_the_request_has_finished() {
    let network = network(1, fast_timer(), HowOpened::Handshake, rare(512));
    let mut wires = Wires::new(&network);
    wires.run(1);
    let fingerprint = |wires: &Wires| {
        let mut fingerprint = Fingerprint::default();
        let requests = wires.ends.requests.as_ref().expect("the network has at least one group of requests");
        requests.fold_into(&mut fingerprint, &wires.ends.connections);
        fingerprint
    };
    let before = fingerprint(&wires);
    let [data_vc, ack_vc] = [0, 1].map(VcIndex::new);
    let (segment, ack) = (crate::tcp::Segment { seq: 0, len: 512 }, crate::tcp::Ack { ack: 512, window: 65535 });
    let late = [
        (data_vc, Body::Syn { flow: FIRST }),
        (ack_vc, Body::SynAck { flow: FIRST }),
        (data_vc, Body::Data { flow: FIRST, segment, sent: Time::default(), reduced: false, capable: false }),
        (ack_vc, Body::Ack { flow: FIRST, ack, echoes: false }),
    ];
    let mut out = Vec::new();
    for (vc, body) in late {
        let departure = wires.ends.vcs.put(vc, Frame::new(2, body), None);
        let delivered = wires.ends.vc_counters(vc);
        wires.ends.deliver(vc, departure.last.frame, wires.now, &mut Nothing, &mut out);
        assert_eq!(wires.ends.vc_counters(vc), delivered);
    }
    assert_eq!((out.len(), wires.on_the_way.len()), (0, 0));
    assert_eq!(fingerprint(&wires), before);
    assert!(wires.ends.connections.has_closed(FIRST));
}

#[test]
fn several_requests_can_share_one_vc() {
    // 200 requests, a millisecond apart on average, over one VC each way; each takes five milliseconds.
    let mut arrivals = rare(1000);
    if let Arrivals::Poisson { mean, .. } = &mut arrivals {
        *mean = Duration::from_milliseconds(1);
    }
    let mut wires = Wires::new(&network(1, fast_timer(), HowOpened::Handshake, arrivals));
    wires.run(200);
    let records = wires.records();
    let is_open = |other: &&RequestRecord, at: Time| other.opened <= at && other.completed() > Some(at);
    let open = |at: Time| records.iter().filter(|other| is_open(other, at)).count();
    let most = records.iter().map(|record| open(record.opened)).max();
    assert!(most > Some(5), "{most:?}");
    let took: Vec<_> = records.iter().filter_map(|record| wires.took_ms(record)).collect();
    assert!(took.len() >= 200 && took.iter().all(|&ms| ms == 5), "{took:?}");
}

#[test]
fn several_hosts_answer_a_query_simultaneously() {
    let pairs: Vec<PairIndex> = (0..6).map(|i| PairIndex::new(2 * i)).collect();
    let mut wires = Wires::new(&network(6, fast_timer(), HowOpened::Handshake, queries(4, pairs, Duration::default())));
    wires.run(8);
    let (results, records) = (wires.ends.request_results(), wires.records());
    assert_eq!(records.len(), 8, "two queries");
    for (number, answers) in records.chunks(4).enumerate() {
        let query = results[GROUP].queries[number];
        let asked = wires.clock.time(Duration::from_milliseconds(50 * (number as u64 + 1)));
        assert_eq!((query.asked, query.answers, query.completed()), (asked, 4, answers[0].completed()));
        assert!(answers.iter().all(|answer| (answer.opened, answer.bytes) == (asked, 512)));
        assert!(answers.iter().all(|answer| answer.query() == u32::try_from(number).ok()));
        let mut senders: Vec<_> = answers.iter().map(|answer| answer.pair).collect();
        senders.sort_unstable();
        senders.dedup();
        assert_eq!(senders.len(), 4);
    }
}

#[test]
fn answers_to_a_query_start_at_times_spread_over_the_configured_interval() {
    let pairs: Vec<PairIndex> = (0..6).map(|i| PairIndex::new(2 * i)).collect();
    let spread = Duration::from_milliseconds(80);
    let mut wires = Wires::new(&network(6, fast_timer(), HowOpened::Open, queries(6, pairs, spread)));
    wires.run(600);
    let results = wires.ends.request_results();
    let ms = |span: Span| span.0 as f64 * 1000.0 / wires.clock.units_per_second as f64;
    let late: Vec<f64> = wires
        .records()
        .iter()
        .map(|record| {
            ms(record.opened
                - results[GROUP].queries[record.query().expect("every record belongs to a query") as usize].asked)
        })
        .collect();
    assert!(late.iter().all(|late| (0.0..=80.0).contains(late)));
    let mean = late.iter().sum::<f64>() / late.len() as f64;
    // The standard deviation of the mean is 23 / 24 ms.
    assert!((mean - 40.0).abs() < 4.0, "{mean}");
}

#[test]
fn a_syn_is_not_ecn_capable_and_congestion_marks_on_a_syn_are_ignored() {
    let options = TcpOptions { ecn: Ecn::On, ..fast_timer() };
    let mut wires = Wires::new(&network(1, options, HowOpened::Handshake, rare(1000)));
    // Put a congestion mark on the SYN, the SYN-ACK and the first data segment.
    wires.marked = vec![0, 1, 2];
    let script = wires.run(1);
    let with = |bits: &str| script.iter().filter(|line| line.ends_with(bits)).cloned().collect::<Vec<_>>();
    assert_eq!(with(" CE"), ["3: 0 arrived 0 ECT CE"]);
    assert_eq!(with(" ECE")[0], "3: 0 ACK sent 512 ECE");
    assert!(script.iter().filter(|line| line.contains("Syn")).all(|line| !line.contains(" EC")));
}

//= test rfc3168#6.1.4 "an acknowledgement without data is not ECN-capable"
//= test rfc3168#6.1.5 "a segment that is sent again is not ECN-capable"
#[test]
fn dctcp_makes_every_packet_ecn_capable_only_under_the_rules_of_the_dctcp_paper() {
    let kinds = ["SynSent", "SynAckSent", " sent again", "ACK sent", " sent "];
    for (congestion, rules, capable) in [
        (Congestion::Jacobson, Rules::Rfc, [false, false, false, false, true]),
        (Congestion::Jacobson, Rules::Paper, [false, false, false, false, true]),
        (Congestion::Dctcp, Rules::Rfc, [true, true, false, false, true]),
        (Congestion::Dctcp, Rules::Paper, [true; 5]),
    ] {
        let options = TcpOptions { ecn: Ecn::On, congestion, rules, ..fast_timer() };
        // Lose the first segment.
        let script = Wires::losing(&network(1, options, HowOpened::Handshake, rare(1000)), &[2]).run(1);
        let mut seen = [const { Vec::new() }; 5];
        for line in &script {
            if let Some(kind) = kinds.iter().position(|&kind| line.contains(kind)) {
                seen[kind].push(line.contains(" ECT"));
            }
        }
        for ((kind, seen), capable) in kinds.iter().zip(&seen).zip(capable) {
            assert!(!seen.is_empty() && seen.iter().all(|&seen| seen == capable), "{kind}, {congestion:?}, {rules:?}");
        }
    }
}

#[test]
fn arrival_events_show_congestion_marks_on_every_kind_of_ecn_capable_packet() {
    let options = TcpOptions { ecn: Ecn::On, congestion: Congestion::Dctcp, ..fast_timer() };
    for rules in [Rules::Rfc, Rules::Paper] {
        let options = TcpOptions { rules, ..options.clone() };
        let mut wires = Wires::new(&network(1, options, HowOpened::Handshake, rare(1000)));
        wires.marked = (0..100).collect();
        for line in wires.run(1) {
            let is_capable = rules == Rules::Paper || !line.contains("ACK arrived");
            assert_eq!(line.contains(" ECT CE"), line.contains("rrived") && is_capable, "{rules:?}: {line}");
        }
    }
}

#[test]
fn congestion_marks_on_pure_acknowledgements_are_ignored() {
    let run = |marked: Vec<u32>| {
        let options = TcpOptions { ecn: Ecn::On, ..fast_timer() };
        let mut wires = Wires::new(&network(1, options, HowOpened::Handshake, rare(512 * 4)));
        wires.marked = marked;
        wires.run(1)
    };
    let unmarked = run(vec![]);
    let frames = unmarked.iter().filter(|line| line.contains("rrived"));
    let acks: Vec<u32> = frames.zip(0..).filter(|(line, _)| line.contains("ACK arrived")).map(|(_, n)| n).collect();
    assert_eq!(acks.len(), 4);
    assert_eq!(run(acks), unmarked);
    assert_ne!(run((0..10).collect()), unmarked, "marks on data segments reduce the window");
}

/// The timers that run according to the events, and the number of closed connections.
#[derive(Default)]
struct RunningTimers {
    running: Vec<Timer>,
    closed: usize,
}

impl Observer for RunningTimers {
    const OBSERVES: bool = true;

    fn on_event(&mut self, _now: Time, event: Event) {
        match event {
            Event::Timer(TimerEvent { timer, step: TimerStep::Started { .. }, .. }) => self.running.push(timer),
            Event::Timer(TimerEvent { timer, step: TimerStep::Stopped | TimerStep::Expired, .. }) => {
                self.running.retain(|&other| other != timer);
            }
            Event::Request(RequestEvent { step: RequestStep::Closed, .. }) => {
                assert_eq!(self.running, [], "the timers of a connection stop before it closes");
                self.closed += 1;
            }
            _ => {}
        }
    }
}

#[test]
fn closing_a_connection_stops_the_timer_started_by_a_mark_at_a_cwnd_of_one_segment() {
    let options = TcpOptions { ecn: Ecn::On, rules: Rules::Rfc, ..fast_timer() };
    let mut wires = Wires::new(&network(1, options, HowOpened::Handshake, rare(512)));
    wires.marked = (0..1000).collect();
    wires.run_with(&mut RunningTimers::default(), |timers| timers.closed == 3);
}

#[test]
fn the_delayed_acknowledgement_timer_of_a_receiver_follows_the_clock_of_its_host() {
    let options = TcpOptions { delayed_acks: DelayedAcks::On, ..fast_timer() };
    let mut wires = Wires::new(&network(1, options, HowOpened::Handshake, rare(512)));
    let script = wires.run(1);
    let (arrived, acknowledged) = (times(&script, "arrived 0")[0], times(&script, "ACK sent")[0]);
    assert!((0..=200).contains(&(acknowledged - arrived)), "{script:?}");
    assert!(acknowledged > arrived, "the acknowledgement waits for the next tick");
    assert!(wires.ends.clocks.iter().all(|clock| clock.flows.is_empty()), "closed connections use no memory");
}

#[test]
fn the_memory_used_for_requests_grows_only_with_the_number_of_open_connections() {
    let mut arrivals = rare(512);
    if let Arrivals::Poisson { mean, .. } = &mut arrivals {
        *mean = Duration::from_milliseconds(1);
    }
    let mut wires = Wires::new(&network(1, fast_timer(), HowOpened::Handshake, arrivals));
    let requests = 200_000;
    let end = wires.clock.time(Duration::from_milliseconds(requests));
    let mut closed = Count::default();
    wires.run_with(&mut closed, |closed| closed.now >= end);
    assert!(closed.closed > requests * 99 / 100, "{}", closed.closed);
    // Each connection is open for four milliseconds, so four are open on average.
    let [slots, places] = wires.ends.connections.allocated();
    assert!(slots <= 32 && places <= 64, "{slots} slots, {places} places");
    assert!(wires.ends.clocks.iter().all(|clock| clock.flows.len() <= 32));
    assert_eq!(wires.records().len() as u64, wires.ends.request_results()[GROUP].opened);
}

#[derive(Default)]
struct Count {
    now: Time,
    closed: u64,
}

impl Observer for Count {
    const OBSERVES: bool = true;

    fn on_event(&mut self, now: Time, event: Event) {
        self.now = now;
        if let Event::Request(RequestEvent { step: RequestStep::Closed, .. }) = event {
            self.closed += 1;
        }
    }
}

#[test]
#[should_panic(expected = "a phase per connection")]
fn all_requests_of_a_host_share_its_clock_phase() {
    let options = TcpOptions {
        timer: TimerOptions { tick_phase: Some(TickPhase::Random), ..fast_timer().timer },
        ..fast_timer()
    };
    Wires::new(&network(1, options, HowOpened::Handshake, rare(512)));
}
