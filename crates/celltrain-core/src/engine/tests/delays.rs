//! Tests of packet delays in complete runs of both engines, compared with closed-form results.

use super::{lan, run};
use crate::delay::{DelayChoice, DelayTimes};
use crate::index::LinkIndex;
use crate::network::tests::{FIRST, N_SOURCE_BOTTLENECK, SECOND};
use crate::network::{MeasureWindow, Network};
use crate::scheduler::{Class, strict_priority};
use crate::tcp::{TcpConfig, TcpOptions};
use crate::traffic::{TrafficConfig, constant_rate};
use crate::units::{BitRate, Bytes, Duration};

/// The clock of the LAN has 97.2 MHz: a cell takes 265 units, and a delay of 5 us takes 486.
const UNITS_PER_MS: f64 = 97_200.0;

fn measuring(network: Network) -> Network {
    Network { delays: DelayChoice::All, ..network }
}

fn percentiles(times: &DelayTimes) -> [Option<f64>; 3] {
    [1, 500, 1000].map(|share| times.percentile_ms(share).map(|ms| (ms * UNITS_PER_MS).round()))
}

#[test]
fn on_an_idle_path_packets_are_delayed_only_by_propagation_and_transmission() {
    let mut network = measuring(lan(1, None, "100ms"));
    network.flows[FIRST].tcp =
        TcpConfig::Vanilla(TcpOptions { receive_window: Bytes { bytes: 512 }, ..TcpOptions::default() });
    let result = run(&network);
    let delays = result.flows[FIRST].delays.as_ref().unwrap();
    // A segment has 12 cells, its acknowledgement 2, and each of the two later hops takes one more cell time.
    let [one_way, back] = [12, 2].map(|cells| f64::from((cells + 2) * 265 + 3 * 486));
    assert_eq!(percentiles(&delays.one_way), [Some(one_way); 3]);
    assert_eq!(percentiles(&delays.rtt), [Some(one_way + back); 3]);
    assert_eq!(delays.jitter_ms, Some(0.0));
    assert_eq!(delays.rtt.packets() * 512, result.flows[FIRST].delivered_bytes);
    // At its host, the last cell of a packet waits for the eleven other cells. No cell waits elsewhere.
    let ports = |index: usize| result.ports[LinkIndex::from(index)].delays.as_ref().unwrap();
    let first = usize::from(network.vcs[network.flows[FIRST].data_vc].path[0]);
    assert_eq!(percentiles(ports(first)), [Some(11.0 * 265.0); 3]);
    let bottleneck = result.ports[N_SOURCE_BOTTLENECK].delays.as_ref().unwrap();
    assert_eq!(percentiles(bottleneck), [Some(0.0); 3]);
    // One packet may be in flight at the end.
    assert!((0..=1).contains(&(bottleneck.packets() - delays.one_way.packets())));
}

#[test]
fn the_second_of_two_simultaneous_packets_waits_for_the_first() {
    let mut network = measuring(lan(2, None, "50ms"));
    for flow in [FIRST, SECOND] {
        let rate = BitRate::from_bits_per_second(20_000_000);
        network.flows[flow].traffic =
            TrafficConfig::ConstantRate(constant_rate::Config { rate, packet: Bytes { bytes: 512 } });
    }
    let result = run(&network);
    let bottleneck = result.ports[N_SOURCE_BOTTLENECK].delays.as_ref().unwrap();
    let frame = network.flows[FIRST].frame(&network.aal5).1;
    // The last two of 2 n cells arrive after n - 1 cell times and start after 2 n - 2 and 2 n - 1.
    let [shortest, _, longest] = percentiles(bottleneck);
    assert_eq!([shortest, longest], [frame - 1, frame].map(|cells| Some(f64::from(cells * 265))));
    let mean = bottleneck.mean_ms().unwrap() * UNITS_PER_MS / 265.0;
    assert!((mean - (f64::from(frame) - 0.5)).abs() < 1e-9, "{mean}");
}

#[test]
fn delays_are_measured_only_for_packets_in_the_measuring_window() {
    let packets = |from: Option<u64>, to: Option<u64>| {
        let mut network = measuring(lan(3, None, "60ms"));
        let [from, to] = [from, to].map(|at| at.map(Duration::from_milliseconds));
        network.measure = MeasureWindow { from, to };
        let result = run(&network);
        let of_flow = result.flows[FIRST].delays.as_ref().unwrap();
        let at_ports = result.ports.iter().map(|port| port.delays.as_ref().unwrap().packets());
        at_ports.chain([of_flow.rtt.packets(), of_flow.one_way.packets()]).collect::<Vec<u64>>()
    };
    let parts = [(None, Some(21)), (Some(21), Some(40)), (Some(40), None)].map(|(from, to)| packets(from, to));
    let sums: Vec<u64> = (0..parts[0].len()).map(|i| parts.iter().map(|part| part[i]).sum()).collect();
    assert_eq!(sums, packets(None, None));
    assert!(parts.iter().all(|part| part.iter().all(|&packets| packets > 0)), "{parts:?}");
}

#[test]
fn measuring_delays_changes_no_other_result() {
    let network = lan(3, Some(200), "60ms");
    let (with, without) = (run(&measuring(network.clone())), run(&network));
    assert_eq!(with.fingerprint, without.fingerprint);
    assert!(without.flows.iter().all(|flow| flow.delays.is_none()));
    assert!(without.ports.iter().all(|port| port.delays.is_none()));
}

#[test]
fn the_delays_at_a_port_with_a_scheduler_are_measured_for_each_queue() {
    let mut network = measuring(lan(2, None, "50ms"));
    let rate = BitRate::from_bits_per_second(20_000_000);
    for (flow, class) in [(FIRST, Class::Ubr), (SECOND, Class::Cbr)] {
        network.flows[flow].traffic =
            TrafficConfig::ConstantRate(constant_rate::Config { rate, packet: Bytes { bytes: 512 } });
        let vc = network.flows[flow].data_vc;
        network.vcs[vc].class = class;
    }
    network.links[N_SOURCE_BOTTLENECK].scheduler = strict_priority::Config {}.into();
    let result = run(&network);
    let frame = network.flows[FIRST].frame(&network.aal5).1;
    let port = &result.ports[N_SOURCE_BOTTLENECK];
    // Cells of the two packets arrive in pairs, a cell time apart. Cells of the first class never wait. Cells of the
    // other class wait until the last cell of the first class has left.
    let named = |class: &str| {
        let queue = port.queues.iter().find(|queue| queue.name == format!("{}/{class}", port.name));
        percentiles(queue.unwrap().delays.as_ref().unwrap())
    };
    assert_eq!(named("cbr"), [Some(0.0); 3]);
    assert_eq!(named("ubr"), [Some(f64::from(frame * 265)); 3]);
    let packets = port.queues.iter().map(|queue| queue.delays.as_ref().unwrap().packets());
    assert_eq!(packets.sum::<u64>(), port.delays.as_ref().unwrap().packets());
    // Each first-in first-out port has one queue.
    assert_eq!(result.ports.iter().filter(|port| !port.queues.is_empty()).count(), 1);
}
