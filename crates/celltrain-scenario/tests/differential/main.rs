//! Compares the fast engine with the reference engine on random scenarios: results and series must be identical.
//!
//! `CELLTRAIN_DIFFERENTIAL=100000` runs a campaign of 100,000 scenarios (`make campaign NAME=differential`). A scenario
//! on which the engines differ is shrunk and printed as TOML. To make it a test, save it in this folder under a
//! descriptive name.

mod beginning;
pub(crate) mod compare;
mod count;
pub(crate) mod draw;
pub(crate) mod marks;
pub(crate) mod memories;
pub(crate) mod requests;
pub(crate) mod stand;
mod steps;
pub(crate) mod text;
mod watch;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use celltrain_core::engine::Engine;
use celltrain_core::network::Network;
use celltrain_core::rng::Stream;
use celltrain_core::units::Duration;
use celltrain_scenario::{Scenario, build, read_toml};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};
use serde_json::{Value, json};

use compare::{ON_THREADS, compare, on_threads};
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
        let mut runner = TestRunner::new(config(100, RngSeed::Fixed(14)));
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
fn both_engines_agree_on_ten_thousand_vcs() {
    agree_on_vcs(10_000);
}

#[test]
#[ignore = "long: the nightly job runs it"]
fn both_engines_agree_on_a_hundred_thousand_vcs() {
    agree_on_vcs(100_000);
}

fn agree_on_vcs(vcs: usize) {
    // Each connection has a VC in each direction.
    let sources = vcs / 2;
    let (buffer, threshold) = (3 * vcs, 2 * vcs);
    for scheduler in ["fifo = {}", "round_robin = {}"] {
        let text = format!(
            r#"
duration = "150us"
topology.n_source = {{ sources = {sources}, link_delay = "5us" }}
tcp.vanilla = {{}}
port.bottleneck = {{ buffer = {buffer}, policy.epd.threshold = {threshold}, scheduler.{scheduler} }}
"#
        );
        let scenario = read_toml(&text, "large.toml").expect_scenario();
        assert_eq!(build::network(&scenario, 1).vcs.len(), vcs);
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
    check_with(draw::any_network(), cases() / 3, RngSeed::Fixed(18), memories::add, compare);
}

#[test]
fn both_engines_agree_where_the_ports_of_a_mesh_share_memories() {
    check_with(draw::meshes::meshes(), cases() / 15, RngSeed::Fixed(19), memories::add, compare);
}

#[test]
fn events_add_up_to_results_where_ports_share_memories() {
    check_with(draw::any_network(), cases() / 2, RngSeed::Fixed(22), memories::add, watch::adds_up);
}

#[test]
fn drawn_memories_are_of_all_kinds_and_come_to_their_limits() {
    let mut runner = TestRunner::new(config(200, RngSeed::Fixed(21)));
    let mut drawn: BTreeMap<&str, u64> = memories::KINDS.iter().map(|&kind| (kind, 0)).collect();
    for seed in 0..200 {
        let scenario = draw::any_network().new_tree(&mut runner).expect("a scenario is drawn").current();
        let network = Drawn { scenario, added: Some((memories::add, seed)) }.network();
        for (kind, times) in memories::kinds(&network, &Engine::Fast.run_to_end(&network)) {
            *drawn.get_mut(kind).unwrap_or_else(|| panic!("{kind} is in the list")) += times;
        }
    }
    let rare: Vec<_> = drawn.iter().filter(|&(_, &times)| times < 10).collect();
    assert!(rare.is_empty(), "too rarely drawn: {rare:?} of {drawn:?}");
}

#[test]
fn any_steps_and_injections_are_the_same_run_where_ports_share_memories() {
    check_with(draw::any_network(), cases() / 15, RngSeed::Fixed(20), memories::add, steps::agree);
}

#[test]
fn both_engines_agree_where_ports_mark_packets() {
    check_with(draw::any_network(), cases() / 4, RngSeed::Fixed(22), marks::add, compare);
}

#[test]
fn both_engines_agree_where_the_ports_of_a_mesh_mark_packets() {
    check_with(draw::meshes::meshes(), cases() / 15, RngSeed::Fixed(23), marks::add, compare);
}

#[test]
fn both_engines_agree_where_ports_of_memories_mark_packets() {
    let both = |network: &mut Network, rng: &mut Stream| {
        memories::add(network, rng);
        marks::add(network, rng);
    };
    check_with(draw::any_network(), cases() / 6, RngSeed::Fixed(24), both, compare);
}

#[test]
fn any_steps_and_injections_are_the_same_run_where_ports_mark_packets() {
    check_with(draw::any_network(), cases() / 15, RngSeed::Fixed(25), marks::add, steps::agree);
}

#[test]
fn drawn_ports_mark_packets_of_all_kinds() {
    let config = Config { rng_seed: RngSeed::Fixed(26), failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let mut drawn: BTreeMap<&str, u64> = marks::KINDS.iter().map(|&kind| (kind, 0)).collect();
    for seed in 0..200 {
        let scenario = draw::any_network().new_tree(&mut runner).expect("a scenario is drawn").current();
        let mut network = build::network(&scenario, scenario.seed);
        let mut rng = Stream::new(seed, "additions");
        memories::add(&mut network, &mut rng);
        marks::add(&mut network, &mut rng);
        for kind in marks::kinds(&network) {
            *drawn.get_mut(kind).unwrap_or_else(|| panic!("{kind} is in the list")) += 1;
        }
    }
    let rare: Vec<_> = drawn.iter().filter(|&(_, &times)| times < 10).collect();
    assert!(rare.is_empty(), "too rarely drawn: {rare:?} of {drawn:?}");
}

#[test]
fn both_engines_agree_where_connections_open_and_close() {
    check_with(draw::any_network(), cases() / 2, RngSeed::Fixed(27), requests::add, compare);
}

#[test]
fn both_engines_agree_where_connections_open_and_close_across_a_mesh() {
    check_with(draw::meshes::meshes(), cases() / 5, RngSeed::Fixed(28), requests::add, compare);
}

#[test]
fn both_engines_agree_where_connections_open_and_close_at_ports_with_memories_and_marks() {
    let all = |network: &mut Network, rng: &mut Stream| {
        // Memories have queues for the VCs of requests too.
        requests::add(network, rng);
        memories::add(network, rng);
        marks::add(network, rng);
    };
    check_with(draw::any_network(), cases() / 4, RngSeed::Fixed(29), all, compare);
}

#[test]
fn any_steps_and_injections_are_the_same_run_where_connections_open_and_close() {
    check_with(draw::any_network(), cases() / 15, RngSeed::Fixed(30), requests::add, steps::agree);
}

#[test]
fn events_add_up_to_results_where_connections_open_and_close() {
    check_with(draw::any_network(), cases() / 4, RngSeed::Fixed(31), requests::add, watch::adds_up);
}

#[test]
fn drawn_requests_are_of_all_kinds() {
    let mut runner = TestRunner::new(config(200, RngSeed::Fixed(32)));
    let mut drawn: BTreeMap<&str, u64> = requests::KINDS.iter().map(|&kind| (kind, 0)).collect();
    for seed in 0..200 {
        let scenario = draw::any_network().new_tree(&mut runner).expect("a scenario is drawn").current();
        let network = Drawn { scenario, added: Some((requests::add, seed)) }.network();
        let kinds: BTreeSet<_> = requests::kinds(&network, &Engine::Fast.run_to_end(&network)).into_iter().collect();
        for kind in kinds {
            *drawn.get_mut(kind).unwrap_or_else(|| panic!("{kind} is in the list")) += 1;
        }
    }
    let rare: Vec<_> = drawn.iter().filter(|&(_, &times)| times < 10).collect();
    assert!(rare.is_empty(), "too rarely drawn: {rare:?} of {drawn:?}");
}

#[test]
fn a_topology_is_the_same_run_as_the_general_network_it_stands_for() {
    let same =
        TestRunner::new(config(60, RngSeed::Fixed(10))).run(&(draw::any_topology(), 1..1000u64), |(topology, seed)| {
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
    for (name, text) in crate::scenarios_in(FOLDER) {
        let scenario = read_toml(&text, &name).expect_scenario();
        if let Err(difference) = compare(&build::network(&scenario, scenario.seed)) {
            panic!("{name}: {difference}");
        }
    }
}

#[test]
fn a_drawn_scenario_is_sound_and_its_text_is_the_same_scenario() {
    let strategy = prop_oneof![
        draw::any_network(),
        draw::in_step(),
        draw::crowded(),
        draw::overlapping::trains(),
        draw::meshes::meshes(),
        draw::written_in_numbers()
    ];
    let same = TestRunner::new(config(100, RngSeed::Fixed(7))).run(&strategy, |scenario| {
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
pub(crate) fn cases() -> u32 {
    std::env::var("CELLTRAIN_DIFFERENTIAL").ok().and_then(|n| n.parse().ok()).unwrap_or(90)
}

pub(crate) fn config(cases: u32, rng_seed: RngSeed) -> Config {
    // The environment can lower the number of shrinking steps if shrinking is not needed.
    let most = std::env::var("PROPTEST_MAX_SHRINK_ITERS").ok().and_then(|n| n.parse().ok());
    Config { cases, rng_seed, failure_persistence: None, max_shrink_iters: most.unwrap_or(10_000), ..Config::default() }
}

fn agree_on(scenarios: impl Strategy<Value = Scenario>, cases: u32, rng_seed: RngSeed) {
    check_on(scenarios, cases, rng_seed, compare);
}

/// Returns an error if the engines differ on a network.
type Check = fn(&Network) -> Result<(), String>;

fn check_on(scenarios: impl Strategy<Value = Scenario>, cases: u32, rng_seed: RngSeed, check: Check) {
    check_drawn(scenarios.prop_map(|scenario| Drawn { scenario, added: None }), cases, rng_seed, check);
}

/// Checks networks to which `add` adds what scenarios do not draw.
fn check_with(scenarios: impl Strategy<Value = Scenario>, cases: u32, rng_seed: RngSeed, add: Add, check: Check) {
    let drawn =
        (scenarios, any::<u64>()).prop_map(move |(scenario, seed)| Drawn { scenario, added: Some((add, seed)) });
    check_drawn(drawn, cases, rng_seed, check);
}

fn check_drawn(drawn: impl Strategy<Value = Drawn>, cases: u32, rng_seed: RngSeed, check: Check) {
    let outcome = TestRunner::new(config(cases, rng_seed))
        .run(&drawn, |drawn| check(&drawn.network()).map_err(TestCaseError::fail));
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(difference, drawn)) => panic!(
            "the engines differ: {difference}\n\nSave this in {FOLDER}, under a name that says what it shows:\n\n{}\n{:#?}\n\
             with {:?}",
            text(&drawn.scenario),
            drawn.network().memories,
            drawn.added
        ),
        Err(TestError::Abort(reason)) => panic!("gave up: {reason}"),
    }
}

/// A random network.
#[derive(Clone, Debug)]
struct Drawn {
    scenario: Scenario,
    /// Adds parts that scenarios do not draw; and the seed for them.
    added: Option<(Add, u64)>,
}

/// Adds random parts to a network.
type Add = fn(&mut Network, &mut Stream);

impl Drawn {
    fn network(&self) -> Network {
        let mut network = build::network(&self.scenario, self.scenario.seed);
        if let Some((add, seed)) = self.added {
            add(&mut network, &mut Stream::new(seed, "memories"));
        }
        network
    }
}

/// Folder of scenarios on which the engines once differed.
const FOLDER: &str = "crates/celltrain-scenario/tests/differential";
