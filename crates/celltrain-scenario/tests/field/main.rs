//! Tests of cases from bug reports and other projects, for which standards determine the correct result.
//!
//! Each scenario runs on both engines, which must give the same results.

mod kinds;
mod multi_hop;

use celltrain_core::engine::Engine;
use celltrain_core::events::{EcnBits, Event, Observer, SegmentEvent, SegmentStep};
use celltrain_core::metrics::RunResult;
use celltrain_core::network::Network;
use celltrain_core::probe::Probe;
use celltrain_core::tcp::Segment;
use celltrain_core::tcp::sender::{Cause, SenderState};
use celltrain_core::units::Time;
use celltrain_scenario::{build, read_toml};

/// An event at the sender of the only flow.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    /// Seconds since the start of the run.
    time: f64,
    what: What,
    sender: SenderState,
    ecn: EcnBits,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    Sent(Segment),
    Again(Segment, Cause),
    Acknowledged,
}

struct Watch {
    units_per_second: f64,
    seen: Vec<Seen>,
}

impl Observer for Watch {
    const OBSERVES: bool = true;

    fn on_event(&mut self, now: Time, event: Event) {
        let Event::Segment(SegmentEvent { step, sender: Some(sender), ecn, .. }) = event else { return };
        let what = match step {
            SegmentStep::Sent { segment, .. } => What::Sent(segment),
            SegmentStep::Retransmitted { segment, cause } => What::Again(segment, cause),
            SegmentStep::Acknowledged { .. } => What::Acknowledged,
            _ => return,
        };
        self.seen.push(Seen { time: now.0 as f64 / self.units_per_second, what, sender, ecn });
    }
}

impl Probe for Watch {}

/// Runs a scenario of this folder on both engines.
fn run(text: &str) -> (Network, RunResult, Vec<Seen>) {
    let scenario = read_toml(text, "here.toml").expect_scenario();
    let network = build::network(&scenario, scenario.seed);
    let run = |engine: Engine| {
        let units_per_second = network.clock().units_per_second as f64;
        let mut watch = Watch { units_per_second, seen: Vec::new() };
        let result = engine.run(&network, &mut watch, |_| true).expect("nothing cancels this run");
        watch.seen.sort_by(|one, other| one.time.total_cmp(&other.time));
        (result, watch.seen)
    };
    let (reference, seen_by_reference) = run(Engine::Reference);
    let (result, seen) = run(Engine::Fast);
    assert_eq!(result.fingerprint, reference.fingerprint);
    assert_eq!(seen.len(), seen_by_reference.len());
    (network, result, seen)
}

/// Returns the times of the first retransmissions after timeouts.
fn timeouts(seen: &[Seen]) -> Vec<f64> {
    let mut times: Vec<f64> = Vec::new();
    for Seen { time, what, sender, .. } in seen {
        if matches!(what, What::Again(_, Cause::Timeout)) && sender.cwnd == 1.0 {
            times.push(*time);
        }
    }
    times
}

//= test rfc6582#3.2 "three duplicates start a recovery only if they acknowledge more than the last one repaired"
#[test]
fn newreno_fast_retransmits_the_first_segment_of_a_connection() {
    let (_, _, seen) = run(include_str!("newreno-first-segment.toml"));
    let again: Vec<_> = seen.iter().filter(|one| matches!(one.what, What::Again(..))).collect();
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].what, What::Again(Segment { seq: 0, len: 1000 }, Cause::DuplicateAcks));
    assert!((again[0].time - 0.1).abs() < 0.001, "{}", again[0].time);
    assert!((seen.last().expect("the run has events").time - 0.2).abs() < 0.001);
}

//= test rfc9438#4.2 "the time of the cubic leaves out periods in which the window did not limit the sender"
#[test]
fn the_window_of_cubic_does_not_grow_while_the_sender_pauses_between_bursts() {
    let (_, _, seen) = run(include_str!("cubic-idle.toml"));
    let most = |from: f64, to: f64| {
        let of = seen.iter().filter(|one| (from..to).contains(&one.time)).map(|one| one.sender.cwnd);
        of.fold(0.0, f64::max)
    };
    assert!(most(10.0, 11.0) < 90.0, "{}", most(10.0, 11.0));
    assert!(most(20.0, 32.0) < 110.0, "{}", most(20.0, 32.0));
}

//= test rfc3168#6.1.2 "all losses and marks of one window of data reduce the window once"
#[test]
fn a_congestion_mark_and_a_loss_in_the_same_window_halve_the_window_once() {
    let (_, _, seen) = run(include_str!("ecn-mark-then-loss.toml"));
    let at = |time: f64| seen.iter().rfind(|one| one.time <= time).expect("the connection has started").sender;
    assert_eq!((at(0.328).cwnd, at(0.330).ssthresh), (100.0, 50.0));
    let fast = seen.iter().find(|one| matches!(one.what, What::Again(_, Cause::DuplicateAcks | Cause::Hole)));
    let fast = fast.expect("the loss is repaired by fast retransmit");
    assert!((fast.time - 0.3346).abs() < 0.001, "{}", fast.time);
    assert_eq!((fast.sender.cwnd, fast.sender.ssthresh), (50.0, 50.0));
    let reported: Vec<_> = seen.iter().filter(|one| one.ecn.reduced && one.time < 0.4).collect();
    assert_eq!(reported.len(), 1, "one segment carries CWR: {reported:?}");
}

//= test rfc3168#6.1.5 "a segment that is sent again is not ECN-capable"
#[test]
fn retransmissions_are_not_ecn_capable() {
    let (_, _, seen) = run(include_str!("ecn-retransmission-ect.toml"));
    let again: Vec<_> = seen.iter().filter(|one| matches!(one.what, What::Again(..))).collect();
    assert!(!again.is_empty() && again.iter().all(|one| !one.ecn.capable));
    assert!(seen.iter().filter(|one| matches!(one.what, What::Sent(_))).all(|one| one.ecn.capable));
}

//= test rfc5681#4.1 "after such a pause cwnd is at most the restart window, min(IW, cwnd)"
#[test]
fn after_an_idle_period_the_congestion_window_is_the_initial_window() {
    let (_, _, seen) = run(include_str!("idle-restart.toml"));
    let is_of_burst = |one: &&Seen| matches!(one.what, What::Sent(_)) && one.time > 1.0;
    let first = seen.iter().find(is_of_burst).expect("the flow sends a second burst after the first").time;
    assert!((first - 1.3).abs() < 0.01, "{first}");
    assert_eq!(seen.iter().filter(is_of_burst).filter(|one| one.time < first + 0.001).count(), 10);
}

//= test rfc5681#3.1 "a further timeout of a segment leaves ssthresh as the first one has set it"
#[test]
fn a_repeated_timeout_does_not_change_ssthresh() {
    let (_, result, seen) = run(include_str!("second-timeout.toml"));
    let times = timeouts(&seen);
    assert!(times.len() >= 4, "{times:?}");
    for (time, right) in times.iter().zip([0.4, 1.0, 2.2, 4.6]) {
        assert!((right..right + 0.003).contains(time), "{times:?}");
    }
    for one in seen.iter().filter(|one| one.time > 0.45) {
        assert_eq!(one.sender.ssthresh, 3.0, "at {}", one.time);
    }
    assert_eq!(result.flows.first().map_or(0, |flow| flow.timeouts), 4);
}

//= test rfc3168#5 "a router drops a packet that is not ECN-capable where it would mark another"
#[test]
fn packets_without_ecn_are_dropped_above_the_threshold_at_which_ecn_capable_packets_are_marked() {
    let (_, result, _) = run(include_str!("dctcp-coexistence.toml"));
    let goodput: Vec<_> = result.flows.iter().map(|flow| flow.goodput_mbps).collect();
    assert!(goodput[0] > 900.0 && goodput[1] < 20.0, "{goodput:?}");
}

//= test rfc3168#5 "a router drops a packet that is not ECN-capable where it would mark another"
#[test]
fn packets_of_unacknowledged_traffic_are_dropped_above_the_marking_threshold() {
    let (others, after) = include_str!("dctcp-coexistence.toml").split_once("[flow.tcp2.tcp.sack]").unwrap();
    let (_, after) = after.split_once("[cell]").unwrap();
    let traffic = "[flow.tcp2.traffic.constant_rate]\nrate = \"800Mbps\"\npacket = \"1460B\"\n[cell]";
    let (_, result, _) = run(&format!("{others}{traffic}{after}"));
    let goodput: Vec<_> = result.flows.iter().map(|flow| flow.goodput_mbps).collect();
    assert!(result.cells.discarded > 0 && goodput[0] > 300.0, "{goodput:?}");
    assert!(goodput[1] < 700.0, "{goodput:?}");
}

//= test rfc3168#6.1.4 "an acknowledgement without data is not ECN-capable"
#[test]
fn dctcp_acknowledgements_are_dropped_above_k_unless_the_paper_rules_make_acknowledgements_ecn_capable() {
    let refused = ["paper", "rfc"].map(|rules| {
        let text = include_str!("dctcp-both-ways.toml").replace("paper", rules);
        run(&text).1.cells.discarded
    });
    assert!(refused[0] == 0 && refused[1] > 0, "{refused:?}");
}

/// Returns the timeouts in a minute of `NewReno` behind a small buffer, with `rules`.
fn timeouts_at_a_small_buffer(rules: &str) -> u64 {
    let text = include_str!("newreno-small-buffer.toml").replace("rules = \"rfc\"", rules);
    run(&text).1.flows.first().map_or(0, |flow| flow.timeouts)
}

//= test rfc5681#3.2 "ssthresh is at most half of the flight, without what Limited Transmit has added"
#[test]
fn newreno_sends_no_more_than_cwnd_allows_after_a_timeout_during_fast_recovery() {
    let half_of_deflated_window = "rules = \"paper\"\nwindows.ssthresh_rule = \"half_of_deflated_window\"";
    let timeouts = ["rules = \"rfc\"", half_of_deflated_window, "rules = \"paper\""].map(timeouts_at_a_small_buffer);
    // The initial overshoot of slow start causes one or two timeouts. With the paper's rules, the repair of each
    // timeout leads to the next timeout.
    assert!(timeouts[0] <= 2 && timeouts[1] <= 2 && timeouts[2] >= 30, "{timeouts:?}");
}

/// Source of the shares: draft-ietf-ccwg-bbr-06. `ProbeRTT` leaves 0.98 of bw to the only flow (5.3.4.2), and the
/// pacing rate is 1 % below bw (5.6.2). Probes for bandwidth recover a part of these losses.
#[test]
fn bbr_reaches_the_link_share_stated_in_its_draft_at_buffers_of_1_to_20_bdp() {
    // A segment of 1460 bytes takes 32 cells. The bandwidth-delay product is 1900 cells.
    let most = 20.0 * 1460.0 * 8.0 / (32.0 * 424.0);
    for cells in [1_900, 4 * 1_900, 20 * 1_900] {
        let text = include_str!("bbr.toml").replace("buffer = 1900", &format!("buffer = {cells}"));
        let scenario = read_toml(&text, "here.toml").expect_scenario();
        let result = Engine::Fast.run_to_end(&build::network(&scenario, scenario.seed));
        let share = result.flows.first().map_or(0.0, |flow| flow.goodput_mbps) / most;
        assert!((0.95..0.995).contains(&share), "{share} with {cells} cells");
        let largest = result.ports.iter().map(|port| port.max_queue_cells).max().unwrap_or(0);
        assert!(largest <= 2 * 1_900, "{largest} of {cells} cells: at most twice the bandwidth-delay product waits");
    }
}
