//! Tests of QUIC over simulated networks.

use std::sync::{Arc, Mutex};

use celltrain_core::engine::Engine;
use celltrain_core::index::FlowIndex;
use celltrain_core::marking::MarkingConfig;
use celltrain_core::policy::{PolicyConfig, tail_drop};
use celltrain_core::probe::Nothing;

use super::*;
use crate::driver::{HostedFlow, Hosts};
use crate::seen::Step;
use crate::trial::Trial;

/// A packet of the sender or the receiver: when it was seen, at which end, the event, and its length.
type Seen = (Duration, Side, Step, usize);

/// Passes packets to QUIC, except those with the numbers in `lost`, counted from 0 for this end.
struct Lossy {
    quic: Quic,
    arrived: usize,
    lost: &'static [usize],
}

impl Stack for Lossy {
    fn on_packet(&mut self, now: Duration, packet: &[u8]) {
        self.arrived += 1;
        if !self.lost.contains(&(self.arrived - 1)) {
            self.quic.on_packet(now, packet);
        }
    }

    fn poll(&mut self, now: Duration, out: &mut Vec<Packet>) {
        self.quic.poll(now, out);
    }

    fn next_timeout(&self) -> Option<Duration> {
        self.quic.next_timeout()
    }

    fn report(&self) -> Report {
        self.quic.report()
    }
}

/// Runs a file of `bytes` over a link with a round trip of 10 ms. The receiver loses packets.
fn file(config: &Config, bytes: u64, lost: &'static [usize]) -> (Vec<Seen>, celltrain_core::metrics::RunResult) {
    let trial = Trial::new(1)
        .round_trip(Duration::from_millis(10))
        .mss(u64::from(config.mtu) - 40)
        .duration(Duration::from_secs(3));
    let network = trial.network();
    let [sender, receiver] = Endpoint::pair(&network, FlowIndex::new(0));
    let receiver = Lossy { quic: Quic::new(config, receiver, Application::Bulk), arrived: 0, lost };
    let sender = Quic::new(config, sender, Application::File(bytes));
    let stacks: [Box<dyn Stack>; 2] = [Box::new(sender), Box::new(receiver)];
    let hosts = Hosts::new(&network, vec![HostedFlow { flow: FlowIndex::new(0), stacks }]);
    let log = Arc::new(Mutex::new(Vec::new()));
    let clock = network.clock();
    let run = Engine::Fast.run_hosted(
        &network,
        Nothing,
        |_| true,
        |simulation| {
            hosts.run(simulation, |_, seen| {
                let time = Duration::from_secs_f64(clock.seconds(seen.time));
                log.lock().unwrap().push((time, seen.side, seen.step, seen.bytes.len()));
            })
        },
    );
    let log = std::mem::take(&mut *log.lock().unwrap());
    (log, run.unwrap())
}

fn new_reno() -> Config {
    Config { congestion: Congestion::NewReno, ..Config::default() }
}

/// Returns the times at which an end observed an event.
fn times(log: &[Seen], side: Side, step: Step) -> Vec<Duration> {
    log.iter().filter(|seen| (seen.1, seen.2) == (side, step)).map(|seen| seen.0).collect()
}

#[test]
fn a_quic_handshake_takes_one_round_trip_and_has_packets_as_long_as_with_tls() {
    let (log, result) = file(&new_reno(), 1000, &[]);
    let first: Vec<(Side, usize)> =
        log.iter().filter(|seen| seen.2 == Step::Sent).map(|seen| (seen.1, seen.3)).collect();
    // Both ends pad their first datagrams to the MTU (RFC 9000, 14.1).
    assert_eq!(first[..2], [(Side::Sender, 1500), (Side::Receiver, 1500)]);
    let [sent, arrived] = [Step::Sent, Step::Arrived].map(|step| times(&log, Side::Sender, step));
    assert_eq!(sent[0], Duration::ZERO);
    // A packet of 32 cells takes 34 cell times through two switches, or 0.09 ms.
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    assert!((10.1..10.3).contains(&ms(arrived[0])), "{arrived:?}");
    // The data follows the handshake. It arrives half a round trip later and is acknowledged after another half.
    let completed = result.flows[FlowIndex::new(0)].completion_s.unwrap() * 1000.0;
    assert!((20.2..20.8).contains(&completed), "{completed}");
    assert_eq!(result.flows[FlowIndex::new(0)].delivered_bytes, 1000);
}

#[test]
fn quic_retransmits_a_lost_packet_once_three_later_ones_are_acknowledged() {
    let (whole, undisturbed) = file(&new_reno(), 100_000, &[]);
    // The sixth arriving packet contains data.
    let (log, result) = file(&new_reno(), 100_000, &[5]);
    let flow = |result: &celltrain_core::metrics::RunResult| result.flows[FlowIndex::new(0)].clone();
    assert_eq!([&result, &undisturbed].map(|result| flow(result).delivered_bytes), [100_000; 2]);
    assert_eq!([&result, &undisturbed].map(|result| flow(result).retransmitted_segments), [1, 0]);
    // The packets are equal until an acknowledgement reports the loss.
    let [lossy, lossless] = [&log, &whole].map(|log| times(log, Side::Sender, Step::Sent));
    let same = lossy.iter().zip(&lossless).take_while(|(one, other)| one == other).count();
    let lost = times(&log, Side::Receiver, Step::Arrived)[5];
    let [soonest, latest] = [5, 7].map(|ms| lost + Duration::from_millis(ms));
    assert!((soonest..latest).contains(&lossy[same]), "{lost:?} {:?}", lossy[same]);
    // The window is halved once, after a few round trips.
    let more = flow(&result).completion_s.unwrap() - flow(&undisturbed).completion_s.unwrap();
    assert!((0.02..0.08).contains(&more), "{more}");
}

#[test]
fn quic_retransmits_a_lost_packet_at_the_end_of_the_data_after_a_probe_timeout() {
    // The sender's second datagram completes the handshake and contains all data.
    let (log, result) = file(&new_reno(), 1000, &[1]);
    let [sent, arrived] = [Step::Sent, Step::Arrived].map(|step| times(&log, Side::Sender, step));
    // RFC 9002, 6.2: smoothed_rtt + 4 rttvar after the datagram, with rttvar = smoothed_rtt / 2 after one sample. The
    // sender sends two probes.
    let timeout = arrived[0] + 3 * arrived[0];
    let probes = sent.iter().filter(|&&time| time.abs_diff(timeout) < Duration::from_micros(1)).count();
    assert_eq!(probes, 2, "{timeout:?} {sent:?}");
    assert_eq!(result.flows[FlowIndex::new(0)].delivered_bytes, 1000);
}

#[test]
fn quic_sends_each_burst_as_a_separate_stream_after_a_pause() {
    let trial = Trial::new(1).mss(1460).duration(Duration::from_millis(500));
    let bursts = || Application::Bursts { bytes: 20_000, pause: Box::new(|| Duration::from_millis(40)) };
    let result = trial.run(|ends| Quic::pair(&Config::default(), ends, bursts()));
    // A burst can take up to 25 ms longer than the pause, because the receiver may delay its acknowledgement that long.
    let bursts = result.flows[FlowIndex::new(0)].delivered_bytes / 20_000;
    assert!((7..=13).contains(&bursts), "{bursts}");
    assert!(result.flows[FlowIndex::new(0)].cwnd_segments.is_some_and(|cwnd| cwnd > 1.0));
}

#[test]
fn five_quic_senders_that_share_a_lan_give_the_recorded_results() {
    // Expected for 5 pairs, 1000 cells, NewReno, 64 kB: efficiency .93 with tail drop and .98 with EPD, fairness .99
    // and 1.00.
    let trial = Trial::new(5).mss(1460).duration(Duration::from_millis(400));
    let run = |trial: Trial| trial.run(|ends| Quic::pair(&new_reno(), ends, Application::Bulk));
    let tail = run(trial.clone().policy(PolicyConfig::TailDrop(tail_drop::Config {})));
    let early = run(trial);
    assert!((0.88..0.96).contains(&tail.efficiency) && tail.fairness > Some(0.95), "{}", tail.efficiency);
    assert!((0.96..0.99).contains(&early.efficiency) && early.fairness > Some(0.98), "{}", early.efficiency);
}

#[test]
fn runs_with_quinn_bbr_are_reproducible_although_bbr_draws_random_numbers_without_a_seed() {
    // Each connection draws in its first second and after the minimum round-trip time expires at 10 s.
    let run = || {
        let trial = Trial::new(1).mss(1460).link_rate(4_000_000).duration(Duration::from_secs(11));
        let config = Config { congestion: Congestion::Bbr, ..Config::default() };
        trial.round_trip(Duration::from_millis(20)).run(|ends| Quic::pair(&config, ends, Application::Bulk))
    };
    let first = run();
    assert!((0.8..1.0).contains(&first.efficiency), "{}", first.efficiency);
    for _ in 0..if std::env::var_os("CELLTRAIN_NIGHTLY").is_some() { 3 } else { 1 } {
        assert_eq!(run().fingerprint, first.fingerprint);
    }
}

#[test]
fn every_quic_setting_changes_the_packets_that_quic_sends() {
    let small = Config { mtu: Config::MIN_MTU, initial_window: Some(2456), ..new_reno() };
    let longest = |config: &Config| file(config, 50_000, &[]).0.iter().map(|seen| seen.3).max();
    assert_eq!([&small, &Config { mtu: 9180, ..new_reno() }].map(longest), [Some(1228), Some(9180)]);
    let completion = |config: &Config| file(config, 50_000, &[]).1.flows[FlowIndex::new(0)].completion_s.unwrap();
    let window = Config { receive_window: 5000, ..new_reno() };
    let [usual, slow_start, window, cubic] =
        [&new_reno(), &small, &window, &Config { congestion: Congestion::Cubic, ..new_reno() }].map(completion);
    assert!(
        slow_start > usual + 0.01 && window > usual + 0.03 && cubic <= usual,
        "{usual} {slow_start} {window} {cubic}"
    );
}

/// Returns the bytes that two connections receive in 400 ms, their lost packets, and the largest queue in cells.
fn two_connections(engine: Engine, marking: Option<MarkingConfig>) -> ([u64; 2], [u64; 2], u32) {
    let trial = Trial::new(2).round_trip(Duration::from_millis(2)).buffer(2000).mss(1460);
    let mut network = trial.duration(Duration::from_millis(400)).network();
    network.links[network.bottleneck].marking = marking;
    let hosted = [0, 1].map(|number| {
        let flow = FlowIndex::new(number);
        let stacks = Endpoint::pair(&network, flow)
            .map(|end| Box::new(Quic::new(&Config::default(), end, Application::Bulk)) as Box<dyn Stack>);
        HostedFlow { flow, stacks }
    });
    let hosts = Hosts::new(&network, hosted.into());
    let result = engine.run_hosted(&network, Nothing, |_| true, |simulation| hosts.run(simulation, |_, _| {}));
    let result = result.expect("the stacks make no mistakes");
    let flows = [0, 1].map(|number| &result.flows[FlowIndex::new(number)]);
    let port = &result.ports[network.bottleneck];
    (flows.map(|flow| flow.delivered_bytes), flows.map(|flow| flow.retransmitted_segments), port.max_queue_cells)
}

//= test rfc3168#5 "a router drops a packet that is not ECN-capable where it would mark another"
#[test]
fn quic_sends_ecn_capable_packets_and_reacts_to_marks_before_any_packet_is_lost() {
    let marking = Some(MarkingConfig::step(200.into()));
    let marked = two_connections(Engine::Fast, marking.clone());
    assert_eq!(marked, two_connections(Engine::Reference, marking));
    let (_, lost, most) = two_connections(Engine::Fast, None);
    assert!(lost.iter().sum::<u64>() > 0 && most > 1600, "{lost:?}, {most} cells");
    assert_eq!(marked.1, [0, 0]);
    assert!(marked.2 < most && marked.0.iter().sum::<u64>() > 3_500_000, "{marked:?}");
}
