//! Tests of the measures of requests in complete runs.

use celltrain_core::cancellation::CancellationToken;
use celltrain_core::engine::Engine;
use celltrain_core::metrics::RunResult;
use celltrain_core::network::Network;
use celltrain_scenario::scenario::MeasureOptions;
use celltrain_scenario::{build, read_toml};
use proptest::collection::vec;
use proptest::prelude::*;

use super::alone::{Recorder, Unloaded};
use super::{Counted, GroupMeasures, Percentile, Records, SizeMeasures, Statistics, Tally, measure, needed};

const NETWORK: &str = r#"
duration = "20ms"
topology.leaf_spine = { leaves = 2, spines = 2, hosts_per_leaf = 3, host_rate = "1Gbps", host_delay = "3us" }
tcp.newreno = { mss = "1460B", timer_granularity = "1ms", initial_window = 4 }
port.default = { buffer = 2000, policy.ppd = {} }
"#;

fn run(text: &str, engine: Engine) -> (Network, RunResult) {
    let network = build::network(&read_toml(text, "test").expect_scenario(), 1);
    let result = engine.run_to_end(&network);
    (network, result)
}

fn measured(text: &str, engine: Engine) -> (Vec<GroupMeasures>, Records) {
    let ((network, result), token) = (run(text, engine), CancellationToken::never());
    let run_alone =
        |network: &Network, recorder: &mut Recorder| engine.observe(network, network.duration, recorder, |_| true);
    let mut tally = Tally::new(&network, &MeasureOptions::default(), true);
    tally.add_records(&result.requests, &token).expect("no test cancels a run");
    let alone = Unloaded::simulate(tally.take_paths().expect("the network has requests"), run_alone)
        .expect("no test cancels a run");
    let measures = measure(&network, &result, &tally, Some(&alone), &token);
    let records = Records::of(&network, &result, &alone, &token);
    (measures.expect("no test cancels a run"), records.expect("no test cancels a run"))
}

#[test]
fn a_request_without_competing_traffic_has_a_slowdown_of_exactly_1() {
    let memory = "port.default.buffer = \"shared\"\nport.default.policy.ppd = {}\n\
                  switch.\"*\".memory = { cells = 4000, pool.main.policy.dynamic_threshold = { alpha = 1.0 } }\n";
    let with_memory = NETWORK.split("port.default").next().unwrap().to_string() + memory;
    let slow_uplinks = NETWORK.replace("host_delay", "uplink_rate = \"700Mbps\", uplink_delay = \"11us\", host_delay");
    for (name, network) in [("plain", NETWORK), ("memory", &with_memory), ("uplinks", &slow_uplinks)] {
        for more in ["", "handshake = false\n"] {
            let query =
                format!("{network}[incast.query]\nsenders = 1\nbytes = \"30kB\"\ninterval = \"1700us\"\n{more}");
            for engine in [Engine::Fast, Engine::Reference] {
                let (_, records) = measured(&query, engine);
                assert_eq!(records.slowdown, vec![1.0; 11], "{name} {more} {engine:?}");
            }
        }
    }
}

#[test]
fn requests_that_share_a_link_take_longer_than_requests_without_competing_traffic() {
    let text = format!("{NETWORK}[incast.query]\nsenders = 5\nbytes = \"75kB\"\ninterval = \"3ms\"\n");
    let (groups, records) = measured(&text, Engine::Fast);
    let [GroupMeasures { name, all, short, queries, .. }] = &groups[..] else {
        panic!(
            "the network has one group of \
        requests"
        )
    };
    assert_eq!((name.as_str(), all.opened, all.completed, short.opened), ("query", 30, 30, 30));
    let queries = queries.as_ref().expect("the group of requests is an incast");
    assert_eq!((queries.asked, queries.completed), (6, 6));
    // Five answers of 15 kB share a link of 1 Gb/s, so the last answer arrives after at least 0.6 ms.
    assert!(queries.completion_ms.mean.unwrap() > 0.6, "{queries:?}");
    let slowest = records.slowdown.iter().copied().fold(0.0, f64::max);
    assert!(slowest > 2.0 && records.slowdown.iter().all(|&slowdown| slowdown >= 1.0), "{:?}", records.slowdown);
    assert!(all.slowdown.p95.is_some_and(|p95| p95.value() > 1.0) && all.slowdown.p99.is_none(), "{all:?}");
}

#[test]
fn a_query_that_starts_at_the_end_of_the_run_is_not_counted() {
    for (interval, asked) in [("10ms", 1), ("5ms", 3), ("3ms", 6)] {
        let text = format!("{NETWORK}[incast.query]\nsenders = 2\nbytes = \"3kB\"\ninterval = \"{interval}\"\n");
        let (groups, records) = measured(&text, Engine::Fast);
        assert_eq!(records.bytes.len() as u64, 2 * asked, "{interval}");
        let (all, queries) = (&groups[0].all, groups[0].queries.as_ref().expect("the group of requests is an incast"));
        assert_eq!((queries.asked, queries.completed, all.opened), (asked, asked, 2 * asked), "{interval}");
    }
}

#[test]
fn every_request_belongs_to_exactly_one_size_class() {
    let text = format!("{NETWORK}[requests.web]\nload = 0.4\nsizes = [[1000, 0.4], [200000, 0.8], [2000000, 1]]\n");
    let (groups, records) = measured(&text, Engine::Fast);
    let [GroupMeasures { all, short, medium, long, queries, goodput_mbps, .. }] = &groups[..] else {
        panic!("the network has one group of requests")
    };
    assert!(queries.is_none() && *goodput_mbps > 0.0);
    let sum = [short, medium, long].map(|class| class.opened).iter().sum::<u64>();
    assert_eq!((all.opened, all.opened), (sum, records.bytes.len() as u64));
    let is_short = |&&bytes: &&i64| bytes <= 100_000;
    assert_eq!(short.opened, records.bytes.iter().filter(is_short).count() as u64);
    assert!(all.open() > 0 && all.completed > 0, "{all:?}");
    let open = records.completed_s.iter().filter(|time| time.is_nan()).count();
    assert_eq!(all.open(), open as u64);
}

#[test]
fn request_measures_are_the_same_whether_or_not_a_record_of_each_request_is_kept() {
    let web = "[requests.web]\nload = 0.4\nsizes = [[1000, 0.4], [200000, 0.8], [2000000, 1]]\n";
    // Queries open at the first and at the last instant of the measured time.
    let query = "[incast.query]\nsenders = 3\nbytes = \"90kB\"\ninterval = \"2ms\"\n";
    let windows =
        ["", "measure = { from = \"4ms\", to = \"12ms\" }\n", "measure.from = \"4ms\"\n", "measure.to = \"16ms\"\n"];
    let is_nightly = std::env::var_os("CELLTRAIN_NIGHTLY").is_some();
    let tested = if is_nightly { 4 } else { 2 };
    for window in &windows[..tested] {
        let text = format!("{window}{NETWORK}{web}{query}");
        // The reference engine takes longer than the fast engine, so only the nightly job runs it without a measuring
        // window.
        let engines = if window.is_empty() && is_nightly { &Engine::ALL[..] } else { &[Engine::Fast] };
        for &engine in engines {
            let [kept, dropped] = [false, true].map(|drops_closed| {
                let mut network = build::network(&read_toml(&text, "test").expect_scenario(), 1);
                network.requests.drops_closed = drops_closed;
                let token = CancellationToken::never();
                let mut tally = Tally::new(&network, &MeasureOptions::default(), true);
                let result = engine.run(&network, &mut tally, |_| true).expect("no test cancels a run");
                let records: usize = result.requests.iter().map(|group| group.records.len()).sum();
                let opened: u64 = result.requests.iter().map(|group| group.opened).sum();
                tally.add_records(&result.requests, &token).expect("no test cancels a run");
                let run_alone = |network: &Network, recorder: &mut Recorder| {
                    engine.observe(network, network.duration, recorder, |_| true)
                };
                let alone = Unloaded::simulate(tally.take_paths().expect("the network has requests"), run_alone);
                let alone = alone.expect("no test cancels a run");
                let measures = measure(&network, &result, &tally, Some(&alone), &token).expect("no test cancels a run");
                assert!(measures[0].medium.completed > 0 && measures[1].all.completed > 0, "{window}: {measures:?}");
                assert_eq!(records as u64 == opened, !drops_closed, "{window}: {records} of {opened}");
                (format!("{measures:?}"), opened, result.fingerprint)
            });
            assert_eq!(kept, dropped, "{window} {engine:?}");
        }
    }
}

#[test]
fn a_request_percentile_is_an_order_statistic_and_requires_at_least_one_larger_sample() {
    let of = |number: u32| Statistics::of((1..=number).rev().map(|value| (f64::from(value), 1)).collect(), Vec::new());
    let exact = |value| Some(Percentile::Exact(value));
    assert_eq!(of(0), Statistics::default());
    assert_eq!(of(1), Statistics { mean: Some(1.0), ..Statistics::default() });
    assert_eq!(of(2), Statistics { mean: Some(1.5), median: exact(1.0), ..Statistics::default() });
    assert_eq!([of(19).p95, of(20).p95, of(21).p95], [None, exact(19.0), exact(20.0)]);
    assert_eq!([of(99).p99, of(100).p99, of(101).p99], [None, exact(99.0), exact(100.0)]);
    assert_eq!([of(999).p999, of(1000).p999], [None, exact(999.0)]);
    assert_eq!([500, 950, 990, 999].map(needed), [2, 20, 100, 1000]);
}

#[test]
fn open_requests_count_towards_the_sample_size_of_a_percentile_but_not_in_the_mean() {
    let one = |value: f64| (value, 1);
    let few = Statistics::of(vec![one(3.0)], vec![one(1.0)]);
    assert_eq!((few.mean, few.median, few.p95), (Some(3.0), Some(Percentile::Exact(3.0)), None));
    let none = Statistics::of(Vec::new(), vec![one(1.0), one(4.0)]);
    assert_eq!((none.mean, none.median), (None, Some(Percentile::AtLeast(1.0))));
    // The open request is the 20th of 20 requests, so only percentiles beyond the 20th request are unknown.
    let nineteen: Vec<_> = (1..=19).map(|value| one(f64::from(value))).collect();
    assert_eq!(Statistics::of(nineteen.clone(), vec![one(0.0)]).p95, Some(Percentile::Exact(19.0)));
    assert_eq!(Statistics::of(nineteen, vec![one(0.0), one(25.0)]).p95, Some(Percentile::AtLeast(19.0)));
}

/// Generates the same numbers in two forms: as distinct values with their counts, and as a list in which each value
/// occurs one to three times.
fn repeated(limit: u32, most: usize) -> impl Strategy<Value = (Counted, Vec<f64>)> {
    vec((0..limit, 1_usize..4), 0..most).prop_map(|values| {
        let counted = values.iter().map(|&(value, times)| (f64::from(value), times as u64)).collect();
        (counted, values.iter().flat_map(|&(value, times)| std::iter::repeat_n(f64::from(value), times)).collect())
    })
}

/// Returns the percentile that would result if all requests completed.
fn truth(completed: &[f64], late: impl Iterator<Item = f64>, share: u64) -> f64 {
    let mut all: Vec<f64> = completed.iter().copied().chain(late).collect();
    all.sort_unstable_by(f64::total_cmp);
    all[(all.len() * usize::try_from(share).unwrap()).div_ceil(1000) - 1]
}

proptest! {
    #[test]
    fn a_percentile_with_open_requests_is_at_most_the_percentile_after_all_requests_have_finished(
        (completed, each) in repeated(40, 600),
        (open, ages) in repeated(40, 40),
        more in vec(0..100_u32, 120),
    ) {
        let late = || ages.iter().zip(&more).map(|(age, &more)| age + f64::from(more));
        let opened = (each.len() + ages.len()) as u64;
        for (found, share) in Statistics::of(completed, open).percentiles().into_iter().zip([500, 950, 990, 999]) {
            match found {
                None => prop_assert!(opened < needed(share)),
                Some(Percentile::Exact(value)) => {
                    prop_assert_eq!(value, truth(&each, ages.iter().map(|_| f64::INFINITY), share));
                    prop_assert!(value >= truth(&each, late(), share));
                    prop_assert!(!ages.is_empty() || value == truth(&each, [].into_iter(), share));
                }
                Some(Percentile::AtLeast(value)) => {
                    prop_assert!(value <= truth(&each, late(), share));
                    prop_assert_eq!(value, truth(&each, ages.iter().copied(), share), "a larger bound exists");
                    prop_assert!(ages.len() as u64 * 1000 > opened * (1000 - share));
                }
            }
        }
    }
}

#[test]
fn after_all_requests_have_finished_no_percentile_is_below_its_reported_lower_bound() {
    // The requests of the second group are so large that none of them completes in the short run, even without other
    // traffic.
    let web = "[requests.web]\nload = 0.9\nsizes = [[1000, 0.4], [200000, 0.8], [2000000, 1]]\n";
    let text = format!("measure.to = \"20ms\"\n{NETWORK}{web}[requests.huge]\nload = 0.01\nsizes = \"9MB\"\n");
    let (short, _) = measured(&text, Engine::Fast);
    let (long, records) = measured(&text.replace("duration = \"20ms\"", "duration = \"300ms\""), Engine::Fast);
    assert_eq!(records.completed_s.iter().filter(|time| time.is_nan()).count(), 0);
    let mut kinds = [0; 2];
    for (short, long) in short.iter().zip(&long) {
        for (one, other) in [(&short.all, &long.all), (&short.medium, &long.medium), (&short.long, &long.long)] {
            assert_eq!(one.opened, other.opened, "the length of a run does not affect its requests");
            let values = |of: &SizeMeasures| [of.completion_ms.percentiles(), of.slowdown.percentiles()].concat();
            for (bound, truth) in values(one).into_iter().zip(values(other)) {
                let (Some(bound), Some(Percentile::Exact(truth))) = (bound, truth) else { continue };
                kinds[usize::from(bound.is_censored())] += 1;
                match bound {
                    Percentile::AtLeast(bound) => assert!(bound <= truth, "{one:?} {other:?}"),
                    Percentile::Exact(value) => assert!(value >= truth, "{one:?} {other:?}"),
                }
            }
        }
    }
    assert!(kinds.iter().all(|&kind| kind > 3), "{kinds:?}");
}
