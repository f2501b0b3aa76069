//! Tests of requests in complete runs of both engines.

use super::{lan, run};
use crate::engine::{Engine, ParallelOptions, PortMode};
use crate::metrics::RunResult;
use crate::network::tests::N_SOURCE_BOTTLENECK;
use crate::network::{MeasureWindow, Network};
use crate::policy::{PolicyConfig, epd};
use crate::requests::{
    Arrivals, GroupIndex, Opening, Pair, PairIndex, PairOrder, QueryTimes, RequestGroup, RequestRecord, Sizes,
};
use crate::tcp::{TcpConfig, TcpOptions, TimerOptions};
use crate::units::{Bytes, Duration};

const WEB: GroupIndex = GroupIndex::new(0);
const QUERIES: GroupIndex = GroupIndex::new(1);

/// Returns a LAN whose sources send requests instead of endless flows: single requests, and queries for each
/// destination. Every source sends to all destinations, and every VC crosses the bottleneck.
fn web(buffer: Option<u32>, duration: &str) -> Network {
    let mut network = lan(4, buffer, duration);
    let tcp = TcpOptions {
        timer_granularity: Duration::from_milliseconds(1),
        timer: TimerOptions { initial_rto: Some(Duration::from_milliseconds(10)), ..TimerOptions::default() },
        ..TcpOptions::default()
    };
    for flow in std::mem::take(&mut network.flows) {
        let ends = [network.source(flow.data_vc), network.destination(flow.data_vc)];
        let (there, pairs) = (network.requests.pairs.next_key(), &mut network.requests.pairs);
        let back = PairIndex::new(there.number() + 1);
        pairs.push(Pair { from: ends[0], to: ends[1], vcs: vec![flow.data_vc], back });
        pairs.push(Pair { from: ends[1], to: ends[0], vcs: vec![flow.ack_vc], back: there });
    }
    let pairs: Vec<PairIndex> = network.requests.pairs.keys().step_by(2).collect();
    let single = Arrivals::Poisson {
        mean: Duration::from_milliseconds(1),
        sizes: Sizes::new(vec![(100.0, 0.0), (20_000.0, 0.9), (100_000.0, 1.0)]),
        pairs: pairs.clone(),
        order: PairOrder::Random,
    };
    let queries = Arrivals::Incast {
        interval: Duration::from_milliseconds(20),
        times: QueryTimes::Fixed,
        bytes: Bytes { bytes: 60_000 },
        senders: 3,
        receivers: vec![pairs],
        spread: Duration::default(),
    };
    for (name, arrivals) in [("web", single), ("queries", queries)] {
        let group = RequestGroup {
            name: name.into(),
            tcp: TcpConfig::Vanilla(tcp.clone()),
            outside: false,
            opening: Opening::Handshake,
            arrivals,
        };
        network.requests.groups.push(group);
    }
    network
}

#[test]
fn the_policy_and_the_buffer_do_not_affect_which_requests_arrive() {
    let drawn = |network: &Network| {
        let result = run(network);
        let records = result.requests.iter().flat_map(|group| &group.records);
        let drawn = records.map(|record| (record.opened, record.pair, record.bytes, record.query()));
        (drawn.collect::<Vec<_>>(), result)
    };
    let roomy = drawn(&web(None, "300ms"));
    let mut network = web(Some(60), "300ms");
    network.links[N_SOURCE_BOTTLENECK].policy =
        PolicyConfig::Epd(epd::Config { threshold: crate::threshold::Threshold::Cells(20) });
    let tight = drawn(&network);
    assert_eq!(roomy.0, tight.0);
    assert!(roomy.0.len() > 250, "{}", roomy.0.len());
    assert_ne!(roomy.1.requests, tight.1.requests, "losses delay them");
    assert!(timeouts(&tight.1) > timeouts(&roomy.1));
}

fn timeouts(result: &RunResult) -> u32 {
    result.requests.iter().flat_map(|group| &group.records).map(|record| record.timeouts).sum()
}

#[test]
fn goodput_and_efficiency_include_the_bytes_of_requests() {
    let network = web(None, "300ms");
    let result = run(&network);
    let bytes: u64 = result.requests.iter().map(|group| group.delivered_bytes).sum();
    let of_records = |record: &RequestRecord| record.bytes.next_multiple_of(512);
    let complete =
        result.requests.iter().flat_map(|group| &group.records).filter(|record| record.completed().is_some());
    assert!(bytes >= complete.map(of_records).sum::<u64>());
    assert!((result.goodput_mbps / (bytes as f64 * 8.0 / 0.3 / 1e6) - 1.0).abs() < 1e-12);
    let most = 155.52 * 512.0 / (12.0 * 53.0);
    assert!(
        (result.efficiency / (result.goodput_mbps / most) - 1.0).abs() < 1e-12,
        "all requests cross the bottleneck"
    );
    assert_eq!((result.fairness, result.flows.len()), (None, 0));
}

#[test]
fn requests_that_start_in_the_measuring_window_are_measured_until_they_end() {
    let whole = run(&web(None, "300ms"));
    let mut network = web(None, "300ms");
    let [from, to] = [100, 200].map(Duration::from_milliseconds);
    network.measure = MeasureWindow { from: Some(from), to: Some(to) };
    let part = run(&network);
    for (whole, part) in whole.requests.iter().zip(&part.requests) {
        let within = |&&(_, record): &&(u32, RequestRecord)| {
            record.opened > whole.clock.time(from) && record.opened <= whole.clock.time(to)
        };
        let numbered: Vec<_> = (0..).zip(whole.records.iter().copied()).collect();
        let expected: Vec<_> = numbered.iter().filter(within).collect();
        assert_eq!(part.records, expected.iter().map(|&&(_, record)| record).collect::<Vec<_>>());
        assert_eq!((part.first, part.opened), (expected[0].0, expected.len() as u64));
        assert!(part.delivered_bytes < whole.delivered_bytes);
    }
    let asked =
        |result: &RunResult| result.requests[QUERIES].queries.iter().map(|query| query.asked).collect::<Vec<_>>();
    assert_eq!(
        part.requests[QUERIES].first_query, 5,
        "the queries at 20, 40, 60, 80 and 100 ms come before the window"
    );
    assert_eq!(asked(&part), asked(&whole)[5..10]);
    assert_eq!(part.fingerprint, whole.fingerprint);
    let last = part.requests[WEB].records.last().expect("the run has records of requests");
    assert!(
        last.completed() > Some(whole.requests[WEB].clock.time(to)),
        "the request is recorded beyond the end of \
        the window"
    );
}

#[test]
fn a_network_with_requests_runs_as_a_single_partition() {
    let network = web(None, "10ms");
    let options = ParallelOptions::if_possible(2);
    let parts = Engine::run_in_partitions(PortMode::Planned, options, &network, |_| true);
    assert_eq!(parts.expect("nothing cancels this run"), None);
}

#[test]
fn networks_without_requests_have_no_request_results() {
    assert!(run(&lan(2, None, "1ms")).requests.is_empty());
}
