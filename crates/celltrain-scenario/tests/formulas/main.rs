//! Policies written as formulas: native ones give the same runs, random ones the same on both engines.
//!
//! `CELLTRAIN_FORMULA_RUNS=1000000` makes the last of these tests a campaign (`make formulas`).

mod drawn;
mod natives;
mod small;

use std::path::Path;

use celltrain_core::engine::{Engine, Ways};
use celltrain_core::metrics::RunResult;
use celltrain_core::network::Network;
use celltrain_core::policy::PolicyConfig;
use celltrain_core::probe::Nothing;
use celltrain_core::units::Duration;
use celltrain_scenario::{Machine, Scenario, build, read_json, read_toml};

use drawn::Draws;

fn run(engine: Engine, network: &Network) -> RunResult {
    engine.run(network, &mut Nothing, |_| true).expect("nothing interrupts it")
}

fn by(ways: Ways, network: &Network) -> RunResult {
    Engine::Fast.run_by(ways, network, &mut Nothing, |_| true).expect("nothing interrupts it")
}

/// Only the policy's name differs between a native policy's run and a formula's.
fn with_names_of(mut result: RunResult, other: &RunResult) -> RunResult {
    for (port, of_other) in result.ports.iter_mut().zip(&other.ports) {
        port.policy = of_other.policy;
    }
    result
}

/// Runs a scenario with native policies, and with these as formulas on both engines. How many policies were rewritten.
fn is_the_same_as_formulas(scenario: &Scenario, seed: u64, what: &str) -> usize {
    let mut rewritten = scenario.clone();
    let mut count = 0;
    for port in rewritten.port.values_mut() {
        if let Some(formula) = natives::as_formula(&port.policy) {
            port.policy = formula;
            count += 1;
        }
    }
    if count == 0 {
        return 0;
    }
    let native = run(Engine::Fast, &build::network(scenario, seed));
    let network = build::network(&rewritten, seed);
    for engine in Engine::ALL {
        let result = with_names_of(run(engine, &network), &native);
        assert_eq!(result.fingerprint, native.fingerprint, "{what}, seed {seed}, {engine:?}");
        assert!(result == native, "{what}, seed {seed}, {engine:?}: {result:?} and {native:?}");
    }
    count
}

#[test]
fn every_shipped_scenario_with_a_native_policy_is_the_same_run_with_a_formula() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut found: Vec<(String, Scenario)> = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let reading = read_toml(&text, &path.display().to_string(), Machine::default());
        let mut scenario = reading.scenario.unwrap_or_else(|| panic!("{:?}", reading.faults));
        scenario.duration = scenario.duration.min(Duration::from_microseconds(1_000_000));
        found.push((path.file_stem().unwrap().to_string_lossy().into(), scenario));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    let same = found.iter().filter(|(name, scenario)| is_the_same_as_formulas(scenario, scenario.seed, name) > 0);
    let names: Vec<&str> = same.map(|(name, _)| name.as_str()).collect();
    for policy in ["lan-selective-drop", "lan-fba", "wan-wba", "wan-dfba", "wan-dfba-1998"] {
        assert!(names.contains(&policy), "{policy} is among {names:?}");
    }
}

#[test]
fn a_thousand_random_scenarios_are_the_same_runs_with_formulas() {
    let mut refused_frames = 0;
    for number in 0..1000 {
        let mut draws = Draws::new(number);
        let (topology, vc) = small::topology(&mut draws);
        let policy = natives::drawn(&mut draws, vc);
        let scenario = small::scenario(&mut draws, &topology, &policy);
        let scenario = read(&scenario);
        assert!(is_the_same_as_formulas(&scenario, number, &policy.to_string()) > 0, "{policy}");
        let result = run(Engine::Fast, &build::network(&scenario, number));
        refused_frames += result.ports.iter().map(|port| port.counters.discarded_frames).sum::<u64>();
    }
    assert!(refused_frames > 5_000, "{refused_frames} frames refused: the formulas had something to decide");
}

fn read(scenario: &serde_json::Value) -> Scenario {
    let reading = read_json(&scenario.to_string(), "drawn", Machine::default());
    reading.scenario.unwrap_or_else(|| panic!("{:#?}\n{scenario:#}", reading.faults))
}

/// `make formulas` runs a million.
#[test]
fn random_formulas_are_the_same_runs_on_both_engines() {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().expect("a number"));
    let (runs, seed) = (number("CELLTRAIN_FORMULA_RUNS", 1_500), number("CELLTRAIN_FORMULAS_SEED", 1));
    let half = move |half: u64| {
        let mut tally = Seen::default();
        for number in (half..runs).step_by(2) {
            let mut draws = Draws::new(seed.wrapping_mul(1 << 40) + number);
            let (topology, vc) = small::topology(&mut draws);
            let policy = serde_json::json!({"formula": draws.formula(vc)});
            let reading =
                read_json(&small::scenario(&mut draws, &topology, &policy).to_string(), "drawn", Machine::default());
            let Some(scenario) = reading.scenario.filter(|_| reading.faults.is_empty()) else {
                tally.refused += 1;
                continue;
            };
            let network = build::network(&scenario, number);
            let reference = run(Engine::Reference, &network);
            for ways in [Ways::Planned, Ways::Streams] {
                let fast = by(ways, &network);
                assert!(fast == reference, "{number} of seed {seed}, {ways:?}: {policy:#}\n{fast:?}\n{reference:?}");
            }
            tally.note(&scenario, &reference);
        }
        tally
    };
    let threads = [0, 1].map(|which| std::thread::spawn(move || half(which)));
    let [a, b] = threads.map(|thread| thread.join().expect("no formula does harm"));
    println!("{runs} formulas of seed {seed}: {a:?} and {b:?}");
    let all = |count: fn(&Seen) -> u64| count(&a) + count(&b);
    assert!(all(|seen| seen.refused) * 5 < runs, "most are accepted");
    for (count, what) in [
        (all(|seen| seen.judged), "some frames refused and some admitted"),
        (all(|seen| seen.replaced), "results replaced"),
        (all(|seen| seen.follows), "cells followed"),
    ] {
        assert!(count * 20 > runs, "{count} of {runs}: {what}");
    }
}

/// What a campaign has come across, in runs.
#[derive(Debug, Default)]
struct Seen {
    refused: u64,
    judged: u64,
    replaced: u64,
    follows: u64,
}

impl Seen {
    fn note(&mut self, scenario: &Scenario, result: &RunResult) {
        let refused: u64 = result.ports.iter().map(|port| port.counters.discarded_frames).sum();
        let forwarded: u64 = result.ports.iter().map(|port| port.counters.forwarded).sum();
        self.judged += u64::from(refused > 0 && forwarded > 1000);
        self.replaced += u64::from(result.ports.iter().any(|port| port.replaced_results > 0));
        let follows = |policy: &PolicyConfig| policy.build(Some(1), &[]).follows_cells();
        self.follows += u64::from(scenario.port.values().any(|port| follows(&port.policy)));
    }
}
