//! Tests of policies, congestion windows and weights written as formulas. Native code must give the same runs as
//! equivalent formulas, and random formulas must give the same runs on both engines.
//!
//! `CELLTRAIN_FORMULA_RUNS=1000000` turns the test of random formulas into a campaign (`make campaign NAME=formulas`).

pub(crate) mod drawn;
mod natives;
mod small;
mod windows;

use std::collections::{BTreeMap, BTreeSet};

use celltrain_core::engine::{Engine, PortMode};
use celltrain_core::metrics::RunResult;
use celltrain_core::network::Network;
use celltrain_core::policy::PolicyConfig;
use celltrain_core::probe::Nothing;
use celltrain_core::units::Duration;
use celltrain_scenario::{Scenario, build, read_json, read_toml};

use drawn::Draws;

fn by(ways: PortMode, network: &Network) -> RunResult {
    Engine::Fast.run_by(ways, network, Nothing, |_| true).expect("nothing cancels this run")
}

/// Checks that a scenario gives the same run on both engines if it is rewritten with formulas. Only the names of
/// policies and schedulers may differ, and thresholds, because formulas declare no threshold. Returns the result of the
/// run.
fn is_the_same_run(scenario: &Scenario, rewritten: &Scenario, seed: u64, what: &str) -> RunResult {
    let native = Engine::Fast.run_to_end(&build::network(scenario, seed));
    let network = build::network(rewritten, seed);
    for engine in Engine::ALL {
        let mut result = engine.run_to_end(&network);
        for (port, of_native) in result.ports.iter_mut().zip(&native.ports) {
            port.policy = of_native.policy;
            port.threshold_cells = of_native.threshold_cells;
            port.scheduler = of_native.scheduler;
        }
        assert_eq!(result.fingerprint, native.fingerprint, "{what}, seed {seed}, {engine:?}");
        assert!(result == native, "{what}, seed {seed}, {engine:?}: {result:?} and {native:?}");
    }
    native
}

/// Checks that a scenario gives the same run if its native policies are rewritten as formulas. Returns the number of
/// policies that were rewritten.
fn is_the_same_as_formulas(scenario: &Scenario, seed: u64, what: &str) -> usize {
    let mut rewritten = scenario.clone();
    let mut count = 0;
    for port in rewritten.port.values_mut() {
        if let Some(formula) = natives::as_formula(&port.policy) {
            port.policy = formula;
            count += 1;
        }
    }
    if count > 0 {
        is_the_same_run(scenario, &rewritten, seed, what);
    }
    count
}

/// Checks that a scenario gives the same run if its native congestion controls and weights are rewritten as formulas.
/// Returns the number of congestion controls and the number of schedulers that were rewritten.
fn is_the_same_with_windows_and_weights(scenario: &Scenario, seed: u64, what: &str) -> [usize; 2] {
    let mut rewritten = scenario.clone();
    let tcps = rewritten.flow.values_mut().filter_map(|flow| flow.tcp.as_mut()).chain([&mut rewritten.tcp]);
    let mut counts = [0; 2];
    for tcp in tcps {
        if let Some(formula) = windows::as_formula(tcp) {
            *tcp = formula;
            counts[0] += 1;
        }
    }
    for port in rewritten.port.values_mut() {
        if let Some(formula) = natives::weights_as_formula(&port.scheduler) {
            port.scheduler = formula;
            counts[1] += 1;
        }
    }
    if counts != [0; 2] {
        is_the_same_run(scenario, &rewritten, seed, what);
    }
    counts
}

/// Reads every shipped scenario and limits it to one simulated second. Returns the scenarios with their names. All
/// scenarios use the rules of the papers, because formulas do not know the inflation of cwnd in fast recovery.
fn shipped() -> Vec<(String, Scenario)> {
    let limited = |(name, text): (String, String)| {
        let has_rules = text.contains("rules = \"");
        let with_rules = |line: &str| {
            let is_tcp = line.starts_with("[tcp.") && line.matches('.').count() == 1;
            let rules = if is_tcp && !has_rules { "rules = \"paper\"\n" } else { "" };
            format!("{line}\n{rules}")
        };
        let text: String = text.lines().map(with_rules).collect();
        let mut scenario = read_toml(&text, &name).expect_scenario();
        scenario.duration = scenario.duration.min(Duration::from_microseconds(1_000_000));
        (name, scenario)
    };
    crate::scenarios_in("scenarios").into_iter().map(limited).collect()
}

#[test]
fn native_policies_and_equivalent_formulas_agree_at_the_start_of_shipped_scenarios() {
    policies_are_the_same_up_to(Duration::from_microseconds(100_000));
}

#[test]
#[ignore = "slow; the nightly job runs this test"]
fn native_policies_agree_with_equivalent_formulas_in_shipped_scenarios() {
    policies_are_the_same_up_to(Duration::from_microseconds(1_000_000));
}

fn policies_are_the_same_up_to(end: Duration) {
    let mut found = shipped();
    for (_, scenario) in &mut found {
        scenario.duration = scenario.duration.min(end);
    }
    let same = found.iter().filter(|(name, scenario)| is_the_same_as_formulas(scenario, scenario.seed, name) > 0);
    let names: Vec<&str> = same.map(|(name, _)| name.as_str()).collect();
    for policy in ["lan-selective-drop", "lan-fba", "wan-wba", "wan-dfba", "wan-dfba-1998"] {
        assert!(names.contains(&policy), "{policy} is among {names:?}");
    }
}

#[test]
#[ignore = "slow; the nightly job runs this test"]
fn native_congestion_controls_and_weights_and_equivalent_formulas_agree_at_the_start_of_shipped_scenarios() {
    is_the_same_up_to(Duration::from_microseconds(50_000), 6);
}

#[test]
#[ignore = "slow; the nightly job runs this test"]
fn native_congestion_controls_and_weights_agree_with_equivalent_formulas_in_every_shipped_scenario() {
    is_the_same_up_to(Duration::from_microseconds(1_000_000), usize::MAX);
}

/// Checks, for each combination of a TCP variant and schedulers, the first `each` shipped scenarios with this
/// combination.
fn is_the_same_up_to(end: Duration, each: usize) {
    let mut kinds = BTreeMap::new();
    let mut variants = BTreeSet::new();
    let mut weights = 0;
    for (name, mut scenario) in shipped() {
        let schedulers: BTreeSet<&str> = scenario.port.values().map(|port| port.scheduler.name()).collect();
        let of_this_kind = kinds.entry((scenario.tcp.name(), schedulers)).or_insert(0);
        *of_this_kind += 1;
        if *of_this_kind > each {
            continue;
        }
        scenario.duration = scenario.duration.min(end);
        let [controls, schedulers] = is_the_same_with_windows_and_weights(&scenario, scenario.seed, &name);
        variants.extend((controls > 0).then(|| scenario.tcp.name()));
        weights += schedulers;
    }
    for variant in ["vanilla", "tahoe", "reno", "newreno", "newreno_hoe", "sack", "sack_pipe"] {
        assert!(variants.contains(variant), "{variant} is among {variants:?}");
    }
    assert!(weights > 0);
}

#[test]
fn the_shipped_codel_and_pie_formulas_match_the_native_policies() {
    let all: BTreeMap<String, Scenario> = shipped().into_iter().collect();
    let (seeds, duration) =
        if std::env::var_os("CELLTRAIN_NIGHTLY").is_some() { (2, 2_000_000) } else { (1, 1_200_000) };
    for policy in ["codel", "pie"] {
        let [mut ours, native] =
            [format!("lan-formula-{policy}"), format!("lan-{policy}")].map(|name| all[&name].clone());
        ours.duration = Duration::from_microseconds(duration);
        for seed in 1..=seeds {
            let native = Scenario { duration: ours.duration, ..native.clone() };
            let result = is_the_same_run(&native, &ours, seed, policy);
            let dropped: u64 = result.ports.iter().map(|port| port.counters.discarded_frames).sum();
            assert!(dropped > 5, "{policy} drops {dropped} frames");
        }
    }
}

#[test]
fn the_shipped_reno_and_tahoe_formulas_match_the_native_variants() {
    let all: BTreeMap<String, Scenario> = shipped().into_iter().collect();
    for variant in ["reno", "tahoe"] {
        let [ours, native] = [format!("lan-formula-{variant}"), format!("lan-{variant}")].map(|name| {
            let result = Engine::Fast.run_to_end(&build::network(&all[&name], 3));
            assert!(result.flows.iter().map(|flow| flow.fast_retransmits).sum::<u64>() > 0);
            result
        });
        assert!(ours == native, "{variant}");
    }
}

/// The formula calculates the cube root as exp(log(x) / 3) and one step of Newton's method, whereas the native code
/// repeats Newton's method until it converges. The formula also adds seconds instead of clock ticks. Windows, which are
/// part of a run's fingerprint, may therefore differ in the last digit.
#[test]
fn cubic_as_a_formula_differs_from_native_cubic_only_in_the_last_digit_of_its_windows() {
    let all: BTreeMap<String, Scenario> = shipped().into_iter().collect();
    let seeds = if std::env::var_os("CELLTRAIN_NIGHTLY").is_some() { 10 } else { 3 };
    for seed in 1..=seeds {
        let [mut ours, native] = ["wan-formula-cubic", "wan-cubic"].map(|name| {
            let mut scenario = all[name].clone();
            scenario.duration = Duration::from_microseconds(5_000_000);
            Engine::Fast.run_to_end(&build::network(&scenario, seed))
        });
        for (flow, of_native) in ours.flows.iter_mut().zip(&native.flows) {
            let cwnd = std::mem::replace(&mut flow.cwnd_segments, of_native.cwnd_segments);
            assert!((cwnd / of_native.cwnd_segments - 1.0).abs() < 1e-14, "seed {seed}: {cwnd}");
        }
        ours.fingerprint = native.fingerprint;
        assert!(ours == native, "seed {seed}: {ours:?} and {native:?}");
    }
}

#[test]
fn native_congestion_controls_and_weights_and_equivalent_formulas_agree_in_random_scenarios() {
    let (mut losses, mut timeouts) = (0, 0);
    let runs = runs();
    for number in 0..runs {
        let mut draws = Draws::new(1_000_000 + number);
        let (topology, vc) = small::topology(&mut draws);
        let policy = natives::drawn(&mut draws, vc);
        let mut scenario = small::scenario(&mut draws, &topology, &policy);
        scenario["tcp"] = windows::drawn(&mut draws);
        if draws.below(2) == 0 {
            let weights = serde_json::json!({vc: 1 + draws.below(9), "default": f64::from(1 + draws.below(9)) / 4.0});
            scenario["port"]["default"]["scheduler"] = serde_json::json!({"wfq": {"weights": weights}});
        }
        let scenario = read(&scenario);
        let [controls, _] = is_the_same_with_windows_and_weights(&scenario, number, &format!("{:?}", scenario.tcp));
        assert_eq!(controls, 1);
        let result = Engine::Fast.run_to_end(&build::network(&scenario, number));
        losses += result.flows.iter().map(|flow| flow.fast_retransmits).sum::<u64>();
        timeouts += result.flows.iter().map(|flow| flow.timeouts).sum::<u64>();
    }
    assert!(losses > runs && timeouts > runs, "{losses} fast retransmits and {timeouts} timeouts");
}

#[test]
fn native_policies_and_equivalent_formulas_agree_in_random_scenarios() {
    let mut refused_frames = 0;
    let runs = runs();
    for number in 0..runs {
        let mut draws = Draws::new(number);
        let (topology, vc) = small::topology(&mut draws);
        let policy = natives::drawn(&mut draws, vc);
        let scenario = small::scenario(&mut draws, &topology, &policy);
        let scenario = read(&scenario);
        assert!(is_the_same_as_formulas(&scenario, number, &policy.to_string()) > 0, "{policy}");
        let result = Engine::Fast.run_to_end(&build::network(&scenario, number));
        refused_frames += result.ports.iter().map(|port| port.counters.discarded_frames).sum::<u64>();
    }
    assert!(refused_frames > 5 * runs, "{refused_frames} frames were refused, so the formulas had an effect");
}

/// Regression: if no constant was a per-VC table, the check assumed V = 0, and refused formulas that divide by V.
#[test]
fn the_formula_variable_v_counts_vcs_even_if_all_their_constants_are_equal() {
    let with = |r: &str, weight: &str| {
        read(&serde_json::json!({
            "duration": "30ms",
            "topology": {"n_source": {"sources": 4, "link_delay": "5us"}},
            "port": {"default": {
                "buffer": 250,
                "policy": {"formula": {"admit": "X <= R", "constants": {"R": r}}},
                "scheduler": {"wfq_formula": {"weight": weight}},
            }},
        }))
    };
    let [by_v, by_4] = [("K / V", "1 / V"), ("K / 4", "0.25")].map(|(r, weight)| {
        let network = build::network(&with(r, weight), 3);
        Engine::ALL.map(|engine| engine.run_to_end(&network))
    });
    assert!(by_v == by_4);
    assert!(by_v[0].ports.iter().any(|port| port.counters.discarded_frames > 0));
    assert!(by_v[0].ports.iter().all(|port| port.replaced_results == 0));
}

fn read(scenario: &serde_json::Value) -> Scenario {
    read_json(&scenario.to_string(), "drawn").expect_scenario()
}

fn runs() -> u64 {
    number_of("CELLTRAIN_FORMULA_RUNS", 100)
}

fn number_of(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("the value is a number"))
}

/// The nightly job runs 1,500 scenarios, and `make campaign NAME=formulas` runs a million scenarios.
#[test]
fn both_engines_agree_on_random_formulas() {
    let (runs, seed) = (runs(), number_of("CELLTRAIN_FORMULAS_SEED", 1));
    let half = move |half: u64| {
        let mut tally = Seen::default();
        for number in (half..runs).step_by(2) {
            let mut draws = Draws::new(seed.wrapping_mul(1 << 40) + number);
            let (topology, vc) = small::topology(&mut draws);
            let policy = serde_json::json!({"formula": draws.formula(vc)});
            let mut scenario = small::scenario(&mut draws, &topology, &policy);
            small::mostly_at_the_bottleneck(&mut draws, &mut scenario);
            windows::with_random_ones(&mut draws, &mut scenario, vc);
            let reading = read_json(&scenario.to_string(), "drawn");
            let Some(scenario) = reading.scenario.filter(|_| reading.faults.is_empty()) else {
                tally.refused += 1;
                continue;
            };
            let network = build::network(&scenario, number);
            let reference = Engine::Reference.run_to_end(&network);
            for ways in [PortMode::Planned, PortMode::Streams] {
                let fast = by(ways, &network);
                assert!(fast == reference, "{number} of seed {seed}, {ways:?}: {policy:#}\n{fast:?}\n{reference:?}");
            }
            tally.note(&scenario, &reference);
        }
        tally
    };
    let threads = [0, 1].map(|which| std::thread::spawn(move || half(which)));
    let [a, b] = threads.map(|thread| thread.join().expect("the thread with random formulas does not panic"));
    println!("{runs} formulas of seed {seed}: {a:?} and {b:?}");
    let all = |count: fn(&Seen) -> u64| count(&a) + count(&b);
    assert!(all(|seen| seen.refused) * 5 < runs, "most are accepted");
    for (count, what) in [
        (all(|seen| seen.judged), "some frames are refused and others are admitted"),
        (all(|seen| seen.replaced), "results replaced"),
        (all(|seen| seen.follows), "cells followed"),
        (all(|seen| seen.at_head), "frames dropped by a policy that decides at the head"),
        (all(|seen| seen.windows), "windows set"),
        (all(|seen| seen.weights), "weights"),
    ] {
        assert!(count * 20 > runs, "{count} of {runs}: {what}");
    }
}

/// Number of runs in which each kind of formula occurred.
#[derive(Debug, Default)]
struct Seen {
    refused: u64,
    judged: u64,
    replaced: u64,
    follows: u64,
    at_head: u64,
    windows: u64,
    weights: u64,
}

impl Seen {
    fn note(&mut self, scenario: &Scenario, result: &RunResult) {
        let refused: u64 = result.ports.iter().map(|port| port.counters.discarded_frames).sum();
        let forwarded: u64 = result.ports.iter().map(|port| port.counters.forwarded).sum();
        self.judged += u64::from(refused > 0 && forwarded > 1000);
        self.replaced += u64::from(result.ports.iter().any(|port| port.replaced_results > 0));
        let follows = |policy: &PolicyConfig| policy.build(Some(1), &[]).follower().is_some();
        let at_head = |policy: &PolicyConfig| policy.build(Some(1), &[]).head_policy().is_some();
        self.at_head += u64::from(refused > 0 && scenario.port.values().any(|port| at_head(&port.policy)));
        self.follows += u64::from(scenario.port.values().any(|port| follows(&port.policy)));
        self.windows += u64::from(scenario.tcp.options().formula.is_some());
        self.weights += u64::from(scenario.port.values().any(|port| port.scheduler.name() == "wfq_formula"));
    }
}
