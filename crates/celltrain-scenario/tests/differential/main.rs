//! Compares the fast engine with the reference engine on random scenarios: results and series must be identical.
//!
//! `CELLTRAIN_DIFFERENTIAL=100000` runs a campaign of 100,000 scenarios (`make campaign NAME=differential`). A scenario
//! on which the engines differ is shrunk and printed as TOML. To make it a test, save it in this folder under a
//! descriptive name.

mod beginning;
pub(crate) mod compare;
mod count;
pub(crate) mod draw;
mod memories;
mod stand;
mod steps;
pub(crate) mod text;
mod watch;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread;

use celltrain_core::engine::Engine;
use celltrain_core::network::Network;
use celltrain_core::rng::Stream;
use celltrain_core::units::Duration;
use celltrain_scenario::{Scenario, build, read_toml};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};
use serde_json::{Value, json};

use compare::{ON_THREADS, compare, compare_on, on_threads};
use text::text;

/// Runs on two threads, because it is the longest of these tests.
#[test]
fn both_engines_agree_on_random_networks() {
    let halves = [5, 15].map(|seed| {
        thread::spawn(move || {
            let drawn = RefCell::new(BTreeMap::new());
            let scenarios = draw::any_network().prop_map(|scenario| {
                for what in count::all_of(&scenario) {
                    *drawn.borrow_mut().entry(what).or_insert(0) += 1;
                }
                scenario
            });
            agree_on(scenarios, cases() / 2, RngSeed::Fixed(seed));
            drawn.into_inner()
        })
    });
    let mut drawn = BTreeMap::new();
    for half in halves {
        for (what, times) in half.join().expect("the engines agree") {
            *drawn.entry(what).or_insert(0) += times;
        }
    }
    let rare: Vec<_> = count::every_one()
        .into_iter()
        .map(|what| (drawn.get(&what).copied().unwrap_or(0), what))
        .filter(|&(times, _)| times < cases() / RAREST)
        .collect();
    assert!(rare.is_empty(), "too rarely drawn: {rare:?} of {drawn:?}");
}

#[test]
fn events_add_up_to_results_and_both_engines_tell_the_same() {
    check_on(draw::any_network(), cases() / 2, RngSeed::Fixed(12), watch::adds_up);
}

#[test]
fn both_engines_agree_where_ports_share_a_memory() {
    let shared = RefCell::new(0);
    let scenarios = draw::sharing::with_memories().prop_map(|scenario| {
        *shared.borrow_mut() += u32::from(!scenario.switch.own.is_empty());
        scenario
    });
    let drawn = cases() / 6;
    agree_on(scenarios, drawn, RngSeed::Fixed(21));
    let shared = shared.into_inner();
    assert!(shared > drawn * 2 / 5, "too rarely shared: {shared} of {drawn}");
}

#[test]
fn events_add_up_to_results_where_ports_share_a_memory() {
    check_on(draw::sharing::with_memories(), cases() / 2, RngSeed::Fixed(22), watch::adds_up);
}

#[test]
fn both_engines_agree_where_trains_run_in_step() {
    agree_on(draw::in_step(), cases() / 2, RngSeed::Fixed(6));
}

#[test]
fn both_engines_agree_where_long_trains_meet_ports_that_depart_late() {
    agree_on(draw::crowded(), cases(), RngSeed::Fixed(8));
}

#[test]
fn both_engines_agree_where_many_vcs_cross_a_mesh() {
    agree_on(draw::meshes::meshes(), cases() / 2, RngSeed::Fixed(13));
}

#[test]
fn drawn_networks_come_apart_often_enough_for_threads_to_be_tried() {
    for (strategy, least) in [(draw::meshes::meshes(), [40, 40, 4]), (draw::any_network(), [5, 5, 1])] {
        let config = Config { rng_seed: RngSeed::Fixed(14), failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new(config);
        let mut of_100 = [0; ON_THREADS.len()];
        for _ in 0..100 {
            let scenario = strategy.new_tree(&mut runner).expect("a scenario is drawn").current();
            let mut network = build::network(&scenario, scenario.seed);
            network.duration = Duration::from_microseconds(1);
            for (apart, (ways, threads)) in of_100.iter_mut().zip(ON_THREADS) {
                *apart += u32::from(on_threads(ways, threads, &network).is_some());
            }
        }
        let enough = of_100.iter().zip(least).all(|(&apart, least)| apart >= least);
        assert!(enough, "{of_100:?} of 100 came apart");
    }
}

#[test]
fn both_engines_agree_on_a_hundred_thousand_vcs() {
    for scheduler in ["fifo = {}", "round_robin = {}"] {
        let text = format!(
            r#"
duration = "150us"
topology.n_source = {{ sources = 50_000, link_delay = "5us" }}
tcp.vanilla = {{}}
port.bottleneck = {{ buffer = 300_000, policy.epd.threshold = 200_000, scheduler.{scheduler} }}
"#
        );
        let scenario = read_toml(&text, "large.toml").expect_scenario();
        assert_eq!(build::network(&scenario, 1).vcs.len(), 100_000, "one each way");
        let [fast, reference] = Engine::ALL.map(|engine| engine.run_to_end(&build::network(&scenario, 1)).fingerprint);
        assert_eq!(fast, reference, "{scheduler}");
    }
}

#[test]
fn both_engines_agree_where_trains_overlap_in_queues_of_their_own() {
    agree_on(draw::overlapping::trains(), (cases() / 10).max(40), RngSeed::Fixed(11));
}

#[test]
fn both_engines_agree_on_the_networks_that_are_written_in_a_few_numbers() {
    agree_on(draw::written_in_numbers(), cases() / 2, RngSeed::Fixed(9));
}

#[test]
fn a_snapshot_is_what_a_recorder_sees_and_parts_of_a_run_add_up() {
    check_on(draw::any_network(), cases() / 10, RngSeed::Fixed(14), beginning::is_the_same);
}

#[test]
fn any_steps_and_injections_are_the_same_run_on_both_engines() {
    check_on(draw::any_network(), cases() / 4, RngSeed::Fixed(15), steps::agree);
}

#[test]
fn any_steps_and_injections_are_the_same_run_where_cells_come_in_streams() {
    check_on(draw::meshes::meshes(), cases() / 10, RngSeed::Fixed(16), steps::agree);
}

#[test]
fn any_steps_and_injections_are_the_same_run_where_ports_are_crowded() {
    check_on(draw::crowded(), cases() / 10, RngSeed::Fixed(17), steps::agree);
}

#[test]
fn both_engines_agree_where_ports_share_memories() {
    agree_with_memories(draw::any_network(), cases() / 4, RngSeed::Fixed(18), |network| compare_on(&network));
}

#[test]
fn both_engines_agree_where_the_ports_of_a_mesh_share_memories() {
    agree_with_memories(draw::meshes::meshes(), cases() / 15, RngSeed::Fixed(19), |network| compare_on(&network));
}

#[test]
fn drawn_memories_are_of_all_kinds_and_come_to_their_limits() {
    let config = Config { rng_seed: RngSeed::Fixed(21), failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let mut drawn: BTreeMap<&str, u64> = memories::KINDS.iter().map(|&kind| (kind, 0)).collect();
    for seed in 0..200 {
        let scenario = draw::any_network().new_tree(&mut runner).expect("a scenario is drawn").current();
        let mut network = build::network(&scenario, scenario.seed);
        memories::add(&mut network, &mut Stream::new(seed, "memories"));
        for (kind, times) in memories::kinds(&network, &Engine::Fast.run_to_end(&network)) {
            *drawn.get_mut(kind).unwrap_or_else(|| panic!("{kind} is in the list")) += times;
        }
    }
    let rare: Vec<_> = drawn.iter().filter(|&(_, &times)| times < 10).collect();
    assert!(rare.is_empty(), "too rarely drawn: {rare:?} of {drawn:?}");
}

#[test]
fn any_steps_and_injections_are_the_same_run_where_ports_share_memories() {
    agree_with_memories(draw::any_network(), cases() / 15, RngSeed::Fixed(20), steps::agree_on);
}

#[test]
fn a_topology_is_the_same_run_as_the_general_network_it_stands_for() {
    let config = Config { cases: 60, rng_seed: RngSeed::Fixed(10), failure_persistence: None, ..Config::default() };
    let same = TestRunner::new(config).run(&(draw::any_topology(), 1..1000u64), |(topology, seed)| {
        let text = |topology: Value| {
            let scenario = json!({
                "duration": "5ms",
                "topology": topology,
                "port": {"default": {"buffer": 60, "policy": {"epd": {"threshold": 30}}}},
            });
            celltrain_scenario::read_json(&scenario.to_string(), "drawn")
        };
        let short = text(json!(topology)).scenario.expect("it is sound");
        let long = text(json!({"network": draw::written_out(&topology)})).scenario.expect("it is sound");
        let [short, long] = [short, long].map(|scenario| build::network(&scenario, seed));
        for engine in Engine::ALL {
            prop_assert_eq!(engine.run_to_end(&short), engine.run_to_end(&long), "{:?}", topology);
        }
        Ok(())
    });
    same.unwrap();
}

#[test]
fn both_engines_agree_on_every_scenario_that_once_told_them_apart() {
    for path in once_found() {
        let text = std::fs::read_to_string(&path).unwrap();
        let scenario = read_toml(&text, &path.display().to_string()).expect_scenario();
        if let Err(difference) = compare(&scenario) {
            panic!("{}: {difference}", path.display());
        }
    }
}

#[test]
fn a_drawn_scenario_is_sound_and_its_text_is_the_same_scenario() {
    let config = Config { cases: 100, rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..Config::default() };
    let strategy = prop_oneof![
        draw::any_network(),
        draw::in_step(),
        draw::crowded(),
        draw::overlapping::trains(),
        draw::meshes::meshes(),
        draw::written_in_numbers()
    ];
    let same = TestRunner::new(config).run(&strategy, |scenario| {
        let reading = read_toml(&text(&scenario), "drawn");
        prop_assert!(reading.faults.is_empty(), "{:?}", reading.faults);
        prop_assert_eq!(reading.scenario.unwrap(), scenario);
        Ok(())
    });
    same.unwrap();
}

/// Every feature must occur in at least one of this many scenarios.
const RAREST: u32 = 100;

/// Returns the number of random scenarios. The jobs for each change, the nightly job and campaigns use more.
fn cases() -> u32 {
    std::env::var("CELLTRAIN_DIFFERENTIAL").ok().and_then(|n| n.parse().ok()).unwrap_or(250)
}

/// Returns the maximum number of shrinking steps. The environment can lower it if shrinking is not needed.
fn shrinking() -> u32 {
    std::env::var("PROPTEST_MAX_SHRINK_ITERS").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000)
}

fn agree_on(scenarios: impl Strategy<Value = Scenario>, cases: u32, rng_seed: RngSeed) {
    check_on(scenarios, cases, rng_seed, compare);
}

fn check_on(
    scenarios: impl Strategy<Value = Scenario>,
    cases: u32,
    rng_seed: RngSeed,
    check: fn(&Scenario) -> Result<(), String>,
) {
    let config =
        Config { cases, rng_seed, failure_persistence: None, max_shrink_iters: shrinking(), ..Config::default() };
    let outcome = TestRunner::new(config).run(&scenarios, |scenario| check(&scenario).map_err(TestCaseError::fail));
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(difference, scenario)) => panic!(
            "the engines differ: {difference}\n\nSave this as {}, under a name that says what it shows:\n\n{}",
            folder().join("NAME.toml").display(),
            text(&scenario)
        ),
        Err(TestError::Abort(reason)) => panic!("gave up: {reason}"),
    }
}

/// Checks networks whose switches were given memories.
fn agree_with_memories(
    scenarios: impl Strategy<Value = Scenario>,
    cases: u32,
    rng_seed: RngSeed,
    check: fn(Network) -> Result<(), String>,
) {
    let config =
        Config { cases, rng_seed, failure_persistence: None, max_shrink_iters: shrinking(), ..Config::default() };
    let outcome = TestRunner::new(config).run(&(scenarios, any::<u64>()), |(scenario, seed)| {
        let mut network = build::network(&scenario, scenario.seed);
        memories::add(&mut network, &mut Stream::new(seed, "memories"));
        check(network).map_err(TestCaseError::fail)
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(difference, (scenario, seed))) => {
            let mut network = build::network(&scenario, scenario.seed);
            memories::add(&mut network, &mut Stream::new(seed, "memories"));
            panic!("the engines differ: {difference}\n\n{}\n{:#?}", text(&scenario), network.memories)
        }
        Err(TestError::Abort(reason)) => panic!("gave up: {reason}"),
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential")
}

fn once_found() -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    assert!(!paths.is_empty(), "the scenarios are found");
    paths
}
