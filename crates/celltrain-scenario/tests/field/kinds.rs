//! Tests on random networks for each kind of case in this folder. Each law of TCP holds for every variant, congestion
//! control and formula, for flows and for requests, and both engines report the same history.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use celltrain_core::engine::Engine;
use celltrain_core::events::{AckKind, EcnBits, Event, HandshakeStep, Observer, RequestStep, SegmentStep};
use celltrain_core::metrics::RunResult;
use celltrain_core::probe::Probe;
use celltrain_core::tcp::TcpConfig;
use celltrain_core::tcp::sender::{Cause, SenderState};
use celltrain_core::units::Time;
use celltrain_scenario::{build, read_toml};
use proptest::prelude::*;

use crate::differential::{cases, runner};

const MSS: u64 = 1000;

/// Congestion controls, each with the lines of a scenario that choose the control for the TCP variant `{}`.
const CONTROLS: &[(&str, &str)] = &[
    ("jacobson", ""),
    ("cubic", "congestion = \"cubic\"\n"),
    ("dctcp", "congestion = \"dctcp\"\necn = \"on\"\n"),
    (
        "a formula of Reno",
        "congestion = \"formula\"\n[{}.formula.on_ack]\ncwnd = \"if cwnd < ssthresh then cwnd + 1 else cwnd + 1 / cwnd\"\n\
         [{}.formula.on_loss]\nssthresh = \"max(2, flight / 2)\"\ncwnd = \"max(2, flight / 2) + 3\"\n\
         [{}.formula.on_timeout]\nssthresh = \"max(2, flight / 2)\"\ncwnd = \"1\"\n",
    ),
    (
        "a formula that decreases less",
        "congestion = \"formula\"\n[{}.formula.on_loss]\nssthresh = \"max(2, 0.8 * flight)\"\ncwnd = \"max(2, 0.8 * flight)\"\n",
    ),
];

/// Random settings of a connection, and its source of data.
#[derive(Clone, Debug)]
struct Drawn {
    variant: &'static str,
    control: usize,
    ecn: bool,
    initial_window: u32,
    window: u64,
    /// Number of packets in each burst or request.
    burst: u64,
    /// True if requests send the data. If false, a flow sends the data.
    is_request: bool,
    /// Numbers of the packets that the first link loses.
    lost: BTreeSet<u32>,
    buffer: u32,
    /// Largest number of waiting packets at which the port marks no packet.
    k_min: u32,
    delay_ms: u32,
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let of_tcp = (prop::sample::select(TcpConfig::NAMES), 0..CONTROLS.len(), any::<bool>(), 1u32..12, 2u64..60);
    let lost = prop::collection::btree_set(0u32..60, 0..10);
    (of_tcp, 1u64..80, any::<bool>(), lost, 4u32..60, (2u32..30, 5u32..40)).prop_map(
        |((variant, control, ecn, initial_window, window), burst, is_request, lost, buffer, (k_min, delay_ms))| Drawn {
            variant,
            control,
            ecn: ecn || CONTROLS[control].0 == "dctcp",
            initial_window,
            window,
            burst,
            is_request,
            lost,
            buffer,
            k_min: k_min.min(buffer),
            delay_ms,
        },
    )
}

impl Drawn {
    fn text(&self) -> String {
        let Self { variant, initial_window, window, burst, buffer, k_min, delay_ms, .. } = self;
        let tcp = format!("tcp.{variant}");
        let control = CONTROLS[self.control].1;
        let ecn = if self.ecn && !control.contains("ecn") { "ecn = \"on\"\n" } else { "" };
        let marking = if self.ecn { format!("marking = {{ k_min = {k_min} }}\n") } else { String::new() };
        let (flows, source, name) = if self.is_request {
            let source = format!(
                "[incast.q]\nsenders = 1\nbytes = \"{}B\"\ninterval = \"1300ms\"\nreceivers = [\"b\"]\nhandshake = {}\n",
                burst * MSS,
                burst % 2 == 0
            );
            ("", source, "vc = \"a->b\"")
        } else {
            let source = format!("[flow.f.traffic.bursts]\nbytes = \"{}B\"\npause = \"1500ms\"\n", burst * MSS);
            ("{ name = \"f\", from = \"a\", to = \"b\" }", source, "flow = \"f\"")
        };
        let lost: Vec<_> = self.lost.iter().collect();
        let losses = if lost.is_empty() {
            String::new()
        } else {
            format!("[link.\"a->sw\"]\nlose = [{{ {name}, packets = {lost:?} }}]\n")
        };
        format!(
            "duration = \"6s\"\n[topology.network]\nhosts = [\"a\", \"b\"]\nswitches = [\"sw\"]\nlinks = [\
             {{ between = [\"a\", \"sw\"], rate = \"50Mbps\", delay = \"{delay_ms}ms\" }}, \
             {{ between = [\"sw\", \"b\"], rate = \"10Mbps\", delay = \"1ms\" }}]\nflows = [{flows}]\n\
             bottleneck = \"sw->b\"\n[{tcp}]\nrules = \"rfc\"\nmss = \"{MSS}B\"\nreceive_window = \"{}B\"\n\
             initial_window = {initial_window}\ntimer_granularity = \"1ms\"\nminimum_rto = 200\ntimer.initial_rto = \"500ms\"\n\
             timer.maximum_rto = \"2s\"\ntimer.rtt_arithmetic = \"fractions\"\n{ecn}{}{source}[cell]\nsize = \"1060B\"\n\
             [port.default]\nbuffer = {buffer}\npolicy.tail_drop = {{}}\n{marking}{losses}",
            window * MSS,
            control.replace("{}", &tcp)
        )
    }
}

/// An event of a connection, with the sender's state after the event.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    time: f64,
    step: SegmentStep,
    sender: Option<SenderState>,
    ecn: EcnBits,
}

/// The histories of connections. Each request has a new connection.
#[derive(Default)]
struct Histories {
    units_per_second: f64,
    /// Number of connections that have used each flow index.
    opened: BTreeMap<usize, usize>,
    seen: BTreeMap<(usize, usize), Vec<Seen>>,
}

impl Observer for Histories {
    const OBSERVES: bool = true;

    fn on_event(&mut self, now: Time, event: Event) {
        match event {
            Event::Request(event) if matches!(event.step, RequestStep::Opened { .. }) => {
                *self.opened.entry(usize::from(event.flow)).or_default() += 1;
            }
            Event::Segment(event) => {
                let index = usize::from(event.flow);
                let number = self.opened.get(&index).copied().unwrap_or(0);
                let time = now.0 as f64 / self.units_per_second;
                let seen = Seen { time, step: event.step, sender: event.sender, ecn: event.ecn };
                self.seen.entry((index, number)).or_default().push(seen);
            }
            _ => {}
        }
    }
}

impl Probe for Histories {}

/// Runs a scenario on both engines, whose results and histories must be equal.
fn run(text: &str) -> (RunResult, Vec<Vec<Seen>>) {
    let scenario = read_toml(text, "here.toml").expect_scenario();
    let network = build::network(&scenario, scenario.seed);
    let [(result, seen), (other, seen_by_other)] = [Engine::Reference, Engine::Fast].map(|engine| {
        let units_per_second = network.clock().units_per_second as f64;
        let mut histories = Histories { units_per_second, ..Histories::default() };
        let result = engine.run(&network, &mut histories, |_| true).expect("nothing cancels this run");
        let mut seen: Vec<_> = histories.seen.into_values().collect();
        // Engines may report simultaneous events of the two ends in either order.
        for seen in &mut seen {
            seen.sort_by(|a, b| a.time.total_cmp(&b.time));
        }
        (result, seen)
    });
    assert_eq!(result.fingerprint, other.fingerprint, "{text}");
    let counts = |seen: &[Vec<Seen>]| seen.iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(counts(&seen), counts(&seen_by_other), "{text}");
    (result, seen)
}

/// A law about the history of one connection. The function returns whether the law applied, or a description of its
/// violation.
type Law = fn(&Drawn, &[Seen]) -> Result<bool, String>;

/// Laws that the histories must obey, one law for each kind of case.
const LAWS: &[(&str, Law)] = &[
    ("windows grow only if they are used", growth),
    ("one window of data reduces the window once", one_reduction),
    ("a second timeout of a segment leaves ssthresh", second_timeout),
    ("which packets carry ECT, CWR and ECE", ecn_bits),
    ("after a pause, cwnd is at most the initial window", restart),
];

/// Returns the segment that an event sends, and the cause if the segment is a retransmission.
fn sent(seen: &Seen) -> Option<(u64, u64, Option<Cause>)> {
    match seen.step {
        SegmentStep::Sent { segment, is_probe: false, .. } => {
            Some((segment.seq, segment.seq + u64::from(segment.len), None))
        }
        SegmentStep::Retransmitted { segment, cause } => {
            Some((segment.seq, segment.seq + u64::from(segment.len), Some(cause)))
        }
        _ => None,
    }
}

//= test rfc7661#3 "the window counts as used only if it limited what was sent"
fn growth(drawn: &Drawn, history: &[Seen]) -> Result<bool, String> {
    let mut flight = 0.0f64;
    let (mut una, mut end, mut filled_to) = (0, 0, 0);
    let mut cwnd: Option<f64> = None;
    let mut is_troubled = false;
    for seen in history {
        let Some(sender) = seen.sender else { continue };
        end = end.max(sent(seen).map_or(0, |(_, to, _)| to));
        is_troubled |= seen.ecn.echo || sent(seen).is_some_and(|(.., cause)| cause.is_some());
        if let SegmentStep::Acknowledged { ack, kind, .. } = seen.step {
            is_troubled |= kind == AckKind::Duplicate;
            // Leave out recoveries, during which cwnd also grows by segments that have left the network.
            if let Some(before) = cwnd.filter(|&before| !is_troubled && sender.cwnd > before && una >= filled_to) {
                return Err(format!(
                    "at {} s, cwnd grows from {before} to {}, but the window was not full since byte {una}",
                    seen.time, sender.cwnd
                ));
            }
            una = una.max(ack.ack);
        }
        cwnd = Some(sender.cwnd);
        if (sender.flight / MSS + 1) as f64 > sender.cwnd.min(drawn.window as f64) {
            filled_to = end;
        }
        flight = flight.max(sender.flight as f64 / MSS as f64);
        let most = f64::from(drawn.initial_window).max(2.0 * flight) + 3.0;
        if sender.cwnd > most {
            return Err(format!(
                "at {} s, cwnd is {}, but at most {flight} segments were in flight",
                seen.time, sender.cwnd
            ));
        }
    }
    Ok(flight > 0.0)
}

//= test rfc3168#6.1.2 "all losses and marks of one window of data reduce the window once"
//= test rfc8257#3.5 "a loss changes the windows as in another TCP, also after a mark of the same window"
fn one_reduction(drawn: &Drawn, history: &[Seen]) -> Result<bool, String> {
    let (mut una, mut end, mut lowered_at, mut timed_out_to, mut applied) = (0, 0, None, 0, false);
    let is_dctcp = CONTROLS[drawn.control].0 == "dctcp";
    let mut lowered_by_mark = false;
    let mut ssthresh: Option<f64> = None;
    let mut resent = BTreeSet::new();
    for seen in history {
        let mut is_lost_again = false;
        match (seen.step, sent(seen)) {
            (_, Some((start, _, Some(Cause::Timeout)))) if start == una => {
                is_lost_again = resent.contains(&una);
                (timed_out_to, resent) = (end, BTreeSet::new());
            }
            (_, Some((start, _, Some(_)))) if una >= timed_out_to => _ = resent.insert(start),
            (_, Some((_, to, None))) => end = end.max(to),
            (SegmentStep::Acknowledged { ack, kind: AckKind::New, .. }, _) => una = una.max(ack.ack),
            _ => {}
        }
        let Some(sender) = seen.sender else { continue };
        if ssthresh.is_some_and(|before| sender.ssthresh < before) {
            let before = ssthresh.unwrap_or_default();
            let is_new = matches!(seen.step, SegmentStep::Acknowledged { kind: AckKind::New, .. });
            // For a mark, DCTCP reduces the window only by a share, so a later loss still halves the window.
            let is_loss_after_mark = is_dctcp && lowered_by_mark && !(is_new && seen.ecn.echo);
            let is_again = lowered_at.is_some_and(|end| una < end);
            if is_again && !is_lost_again && !is_loss_after_mark {
                return Err(format!(
                    "at {} s, ssthresh falls from {before} to {} in one window",
                    seen.time, sender.ssthresh
                ));
            }
            (lowered_at, applied) = (Some(end), true);
            lowered_by_mark = !is_again && seen.ecn.echo;
        }
        ssthresh = Some(sender.ssthresh);
    }
    Ok(applied)
}

//= test rfc5681#3.1 "a further timeout of a segment leaves ssthresh as the first one has set it"
fn second_timeout(_: &Drawn, history: &[Seen]) -> Result<bool, String> {
    let (mut last, mut applied) = (None, false);
    for seen in history {
        match (seen.step, sent(seen), seen.sender) {
            (_, Some((start, _, Some(Cause::Timeout))), Some(sender)) if sender.cwnd <= 1.0 => {
                if let Some((before, ssthresh)) = last
                    && before == start
                {
                    applied = true;
                    if ssthresh != sender.ssthresh {
                        return Err(format!(
                            "at {} s, ssthresh changes from {ssthresh} to {}",
                            seen.time, sender.ssthresh
                        ));
                    }
                }
                last = Some((start, sender.ssthresh));
            }
            (SegmentStep::Acknowledged { kind: AckKind::New, .. }, ..) => last = None,
            _ => {}
        }
    }
    Ok(applied)
}

//= test rfc3168#6.1.5 "a segment that is sent again is not ECN-capable"
fn ecn_bits(drawn: &Drawn, history: &[Seen]) -> Result<bool, String> {
    let mut may_report = false;
    for seen in history {
        let EcnBits { capable, marked, echo, reduced } = seen.ecn;
        let is_dctcp = CONTROLS[drawn.control].0 == "dctcp";
        let expected = match seen.step {
            SegmentStep::Sent { is_probe, .. } => drawn.ecn && !is_probe,
            SegmentStep::Handshake(HandshakeStep::SynSent { .. } | HandshakeStep::SynAckSent) => is_dctcp,
            SegmentStep::Retransmitted { .. } | SegmentStep::AckSent { .. } => false,
            _ => capable,
        };
        let is_sent = sent(seen).is_some();
        let fault = [
            (capable != expected, "ECT is wrong"),
            (marked && !capable, "a packet that is not ECN-capable is marked"),
            (!drawn.ecn && (capable || marked || echo || reduced), "a connection without ECN has ECN bits"),
            (is_sent && reduced && !may_report, "CWR without a mark or a loss"),
            (is_sent && echo, "data with ECE"),
        ];
        if let Some((_, fault)) = fault.iter().find(|(is_fault, _)| *is_fault) {
            return Err(format!("at {} s, {fault}: {seen:?}", seen.time));
        }
        may_report &= !(is_sent && reduced);
        may_report |= matches!(seen.step, SegmentStep::Acknowledged { .. }) && echo;
        may_report |= matches!(seen.step, SegmentStep::Retransmitted { .. });
    }
    Ok(drawn.ecn)
}

//= test rfc5681#4.1 "after such a pause cwnd is at most the restart window, min(IW, cwnd)"
fn restart(drawn: &Drawn, history: &[Seen]) -> Result<bool, String> {
    let (mut before, mut applied): (Option<(f64, SenderState)>, bool) = (None, false);
    for seen in history {
        let Some(sender) = seen.sender else { continue };
        if let (Some((time, last)), Some((_, _, None))) = (before, sent(seen))
            && last.flight == 0
            && seen.time - time > (f64::from(last.rto) + 2.0) / 1000.0
        {
            applied = true;
            if sender.cwnd > f64::from(drawn.initial_window).min(last.cwnd) {
                return Err(format!("at {} s, cwnd is {} after a pause; it was {}", seen.time, sender.cwnd, last.cwnd));
            }
        }
        before = Some((seen.time, sender));
    }
    Ok(applied)
}

/// Runs a test on random networks.
fn check(seed: u64, drawn: &impl Strategy<Value = Drawn>, test: impl Fn(Drawn) -> Result<(), TestCaseError>) {
    if let Err(error) = runner(seed, (cases() / 2).clamp(15, 64)).run(drawn, test) {
        panic!("{error}");
    }
}

#[test]
fn every_tcp_variant_and_congestion_control_follows_the_tested_rfc_rules_on_both_engines() {
    let applied: Vec<Cell<u32>> = vec![Cell::default(); LAWS.len()];
    check(54, &drawn(), |drawn| {
        let text = drawn.text();
        let (_, histories) = run(&text);
        prop_assert!(!histories.is_empty(), "nothing is sent\n{text}");
        for history in &histories {
            for ((name, law), applied) in LAWS.iter().zip(&applied) {
                match law(&drawn, history) {
                    Ok(holds_here) => applied.set(applied.get() + u32::from(holds_here)),
                    Err(violation) => prop_assert!(false, "{name}: {violation}\n{}\n{text}", CONTROLS[drawn.control].0),
                }
            }
        }
        Ok(())
    });
    let never: Vec<_> = LAWS.iter().zip(&applied).filter(|(_, count)| count.get() == 0).map(|(law, _)| law.0).collect();
    assert!(never.is_empty(), "laws that never applied: {never:?}");
}

/// The test plants a fault, which the check of window growth must detect with every variant and congestion control.
#[test]
fn the_test_of_window_growth_detects_an_unused_window_that_grows_under_every_variant_and_control() {
    for &variant in TcpConfig::NAMES {
        for (control, &(name, ..)) in CONTROLS.iter().enumerate() {
            let drawn = Drawn {
                variant,
                control,
                ecn: name == "dctcp",
                initial_window: 10,
                window: 40,
                burst: 5,
                is_request: false,
                lost: BTreeSet::new(),
                buffer: 60,
                k_min: 60,
                delay_ms: 5,
            };
            let text = drawn.text();
            let faulty = text.replace("rules = \"rfc\"\n", "rules = \"rfc\"\nwindows.unused_window = \"grow\"\n");
            let found = [text, faulty].map(|text| growth(&drawn, &run(&text).1[0]).is_err());
            assert_eq!(found, [false, true], "{variant}, {name}");
        }
    }
}

//= test rfc6582#3.2 "three duplicates start a recovery only if they acknowledge more than the last one repaired"
#[test]
fn the_loss_of_the_first_segment_of_a_flow_or_a_request_is_repaired_by_fast_retransmit() {
    let first = drawn().prop_map(|drawn| Drawn {
        variant: if drawn.variant == "vanilla" { "reno" } else { drawn.variant },
        lost: [0].into(),
        initial_window: drawn.initial_window.max(4),
        window: drawn.window.max(4),
        burst: 4 + drawn.burst % 8 * 2 + 1,
        buffer: 60,
        k_min: 60,
        ..drawn
    });
    check(55, &first, |drawn| {
        // Without a handshake, packet 0 on the link carries the first segment.
        let text = drawn.text();
        let (result, histories) = run(&text);
        let again: Vec<_> = histories[0].iter().filter_map(sent).filter(|(.., cause)| cause.is_some()).collect();
        prop_assert!(matches!(again[..], [(0, MSS, Some(cause)), ..] if cause != Cause::Timeout), "{again:?}\n{text}");
        let timeouts: u64 = result.flows.iter().map(|flow| flow.timeouts).sum();
        prop_assert_eq!(timeouts, 0, "{}", text);
        Ok(())
    });
}

//= test rfc3168#5 "a router drops a packet that is not ECN-capable where it would mark another"
#[test]
fn for_senders_without_ecn_a_marking_port_drops_packets_exactly_as_a_buffer_of_k_packets_does() {
    let without = drawn().prop_map(|drawn| Drawn {
        control: if CONTROLS[drawn.control].0 == "dctcp" { 0 } else { drawn.control },
        ecn: false,
        buffer: 60,
        burst: drawn.burst.max(20),
        initial_window: 10,
        window: drawn.window.max(20),
        k_min: 2 + drawn.k_min % 8,
        ..drawn
    });
    let dropped = Cell::new(0);
    check(56, &without, |drawn| {
        // Marking has no effect if no TCP uses ECN, so a flow with ECN sends in the last tenth of a second.
        let text = drawn.text().replace("flows = [", "flows = [{ name = \"g\", from = \"a\", to = \"b\" }, ")
            + "[flow.g]\nstart = \"5900ms\"\n[flow.g.tcp.sack]\necn = \"on\"\n[port.\"sw->b\"]\npolicy.tail_drop = {}\n";
        let marks = run(&format!("{text}buffer = 60\nmarking = {{ k_min = {} }}\n", drawn.k_min));
        let drops = run(&format!("{text}buffer = {}\n", drawn.k_min + 1));
        dropped.set(dropped.get() + marks.0.cells.discarded);
        let [marks, drops] = [marks.1, drops.1].map(|histories| {
            let of = histories.into_iter().flatten();
            of.filter(|seen| seen.time < 5.9).collect::<Vec<_>>()
        });
        prop_assert_eq!(marks.len(), drops.len(), "{}", text);
        for (one, other) in marks.iter().zip(&drops) {
            prop_assert_eq!(one, other, "{}", text);
        }
        Ok(())
    });
    assert!(dropped.get() > 0, "no packet was dropped");
}
