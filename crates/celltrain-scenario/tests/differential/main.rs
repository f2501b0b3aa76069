//! The fast engine against the reference engine: random scenarios, equal results and series to the last counter.
//!
//! `CELLTRAIN_DIFFERENTIAL=100000` makes it a campaign of so many scenarios (`make differential`). A scenario on which the
//! engines differ is shrunk and printed as TOML; saved in this folder, under a name that says what it showed, it is a test.

mod count;
mod draw;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use celltrain_core::engine::Engine;
use celltrain_core::metrics::RunResult;
use celltrain_core::network::Network;
use celltrain_core::probe::{Nothing, Probe, Recorder, SeriesChoice};
use celltrain_core::tcp::TcpConfig;
use celltrain_core::units::Duration;
use celltrain_scenario::{Machine, Scenario, build, read_toml};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};
use serde_json::{Value, json};

#[test]
fn both_engines_agree_on_random_networks() {
    let drawn = RefCell::new(BTreeMap::new());
    let scenarios = draw::any_network().prop_map(|scenario| {
        for what in count::all_of(&scenario) {
            *drawn.borrow_mut().entry(what).or_insert(0) += 1;
        }
        scenario
    });
    agree_on(scenarios, cases(), RngSeed::Fixed(5));
    let drawn = drawn.borrow();
    let rare: Vec<_> = count::every_one()
        .into_iter()
        .map(|what| (drawn.get(&what).copied().unwrap_or(0), what))
        .filter(|&(times, _)| times < cases() / RAREST)
        .collect();
    assert!(rare.is_empty(), "too rarely drawn: {rare:?} of {drawn:?}");
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
fn both_engines_agree_on_the_networks_that_are_written_in_a_few_numbers() {
    agree_on(draw::written_in_numbers(), cases() / 2, RngSeed::Fixed(9));
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
            celltrain_scenario::read_json(&scenario.to_string(), "drawn", Machine::default())
        };
        let short = text(json!(topology)).scenario.expect("it is sound");
        let long = text(json!({"network": draw::written_out(&topology)})).scenario.expect("it is sound");
        let [short, long] = [short, long].map(|scenario| build::network(&scenario, seed));
        for engine in Engine::ALL {
            prop_assert_eq!(run(engine, &short, &mut Nothing), run(engine, &long, &mut Nothing), "{:?}", topology);
        }
        Ok(())
    });
    same.unwrap();
}

#[test]
fn both_engines_agree_on_every_scenario_that_once_told_them_apart() {
    for path in once_found() {
        let text = std::fs::read_to_string(&path).unwrap();
        let reading = read_toml(&text, &path.display().to_string(), Machine::default());
        let scenario = reading.scenario.unwrap_or_else(|| panic!("{:?}", reading.faults));
        if let Err(difference) = compare(&scenario) {
            panic!("{}: {difference}", path.display());
        }
    }
}

#[test]
fn a_drawn_scenario_is_sound_and_its_text_is_the_same_scenario() {
    let config = Config { cases: 100, rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..Config::default() };
    let strategy = prop_oneof![draw::any_network(), draw::in_step(), draw::crowded(), draw::written_in_numbers()];
    let same = TestRunner::new(config).run(&strategy, |scenario| {
        let reading = read_toml(&text(&scenario), "drawn", Machine::default());
        prop_assert!(reading.faults.is_empty(), "{:?}", reading.faults);
        prop_assert_eq!(reading.scenario.unwrap(), scenario);
        Ok(())
    });
    same.unwrap();
}

/// Everything there is comes in one scenario of so many at least.
const RAREST: u32 = 100;

/// How many random scenarios, unless a campaign asks for more.
fn cases() -> u32 {
    std::env::var("CELLTRAIN_DIFFERENTIAL").ok().and_then(|n| n.parse().ok()).unwrap_or(2_000)
}

/// How often a scenario is made smaller, unless somebody says who only asks whether there is one.
fn shrinking() -> u32 {
    std::env::var("PROPTEST_MAX_SHRINK_ITERS").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000)
}

fn agree_on(scenarios: impl Strategy<Value = Scenario>, cases: u32, rng_seed: RngSeed) {
    let config =
        Config { cases, rng_seed, failure_persistence: None, max_shrink_iters: shrinking(), ..Config::default() };
    let outcome = TestRunner::new(config).run(&scenarios, |scenario| compare(&scenario).map_err(TestCaseError::fail));
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

/// The first thing the engines differ in, with and without a probe.
fn compare(scenario: &Scenario) -> Result<(), String> {
    let network = build::network(scenario, scenario.seed);
    let (mut by_fast, mut by_reference) = (recorder(&network), recorder(&network));
    let reference = run(Engine::Reference, &network, &mut by_reference);
    let fast = run(Engine::Fast, &network, &mut by_fast);
    same_results(&fast, &reference)?;
    is_possible(&fast, &network)?;
    same("times of the samples", &by_fast.times, &by_reference.times)?;
    same("queues", &by_fast.queue_cells, &by_reference.queue_cells)?;
    same("occupancies", &by_fast.occupancy_cells, &by_reference.occupancy_cells)?;
    same("cwnd", &by_fast.cwnd_segments, &by_reference.cwnd_segments)?;
    same("ssthresh", &by_fast.ssthresh_segments, &by_reference.ssthresh_segments)?;
    same("delivered bytes", &by_fast.delivered_bytes, &by_reference.delivered_bytes)?;
    same("ACRs", &by_fast.acr_mbps, &by_reference.acr_mbps)?;
    same("packets at edges", &by_fast.edge_packets, &by_reference.edge_packets)?;
    same("phases", &by_fast.edge_phase, &by_reference.edge_phase)?;
    same("LD_ACRs", &by_fast.edge_ld_acr_mbps, &by_reference.edge_ld_acr_mbps)?;
    same("P_CTRs", &by_fast.edge_p_ctr, &by_reference.edge_p_ctr)?;
    let unwatched = run(Engine::Fast, &network, &mut Nothing);
    same_results(&unwatched, &reference).map_err(|difference| format!("without a probe: {difference}"))
}

fn run(engine: Engine, network: &Network, probe: &mut impl Probe) -> RunResult {
    engine.run(network, probe, |_| true).expect("nothing interrupts it")
}

/// Records all there is, at all ports.
fn recorder(network: &Network) -> Recorder {
    let choice =
        SeriesChoice { queue: true, occupancy: true, windows: true, delivered: true, rates: true, edges: true };
    let step = Duration { picoseconds: (network.duration.picoseconds / 50).max(1) };
    Recorder::new(choice, (0..network.links.len()).collect(), step, network)
}

fn same_results(fast: &RunResult, reference: &RunResult) -> Result<(), String> {
    same("flows", &fast.flows, &reference.flows)?;
    same("ports", &fast.ports, &reference.ports)?;
    same("contracts", &fast.contracts, &reference.contracts)?;
    same("ABR", &fast.abr, &reference.abr)?;
    // The rest, none of which is long.
    if fast != reference {
        let shown = |result: &RunResult| {
            let (flows, ports, contracts, abr) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            format!("{:?}", RunResult { flows, ports, contracts, abr, ..result.clone() })
        };
        return Err(format!("totals: fast {}; reference {}", shown(fast), shown(reference)));
    }
    Ok(())
}

/// The first thing of a result that cannot be, of what no engine computes: both are asked the same, so both may be wrong alike.
fn is_possible(result: &RunResult, network: &Network) -> Result<(), String> {
    let must = |holds: bool, what: &str, found: &dyn std::fmt::Debug| {
        if holds { Ok(()) } else { Err(format!("{what}: {found:?}")) }
    };
    let bytes = |mbps: f64| mbps * 1e6 * result.duration_s / 8.0;
    for (flow, found) in network.flows.iter().zip(&result.flows) {
        let (payload, _) = flow.frame(&network.aal5);
        let (arrived, delivered) = (bytes(found.throughput_mbps), found.delivered_bytes as f64);
        let sent = (found.segments_sent + found.packets_sent) * payload;
        must((bytes(found.goodput_mbps) - delivered).abs() < 0.1, "the goodput is that of the bytes delivered", found)?;
        must(arrived > delivered - 0.1, "what is delivered has arrived", found)?;
        must(arrived < sent as f64 + 0.1, "what arrives was sent", found)?;
        must(found.repeated_segments == 0 || arrived > delivered + 0.9, "what comes again arrives again", found)?;
        let is_once = found.packets_sent == 0 || arrived < delivered + 0.1;
        must(is_once, "packets that nothing answers arrive once", found)?;
    }
    let names = network.vcs.iter().filter(|vc| vc.contract.is_some()).map(|vc| vc.name.as_str());
    must(names.eq(result.contracts.iter().map(|found| found.name.as_str())), "every contract", &result.contracts)?;
    let with_contracts = network.vcs.iter().enumerate().filter(|(_, vc)| vc.contract.is_some());
    for (found, (number, vc)) in result.contracts.iter().zip(with_contracts) {
        let edge = found.edge;
        let is_tagged = vc.contract.as_ref().is_some_and(|contract| contract.tagging) && !vc.tagged;
        let judged = if is_tagged { edge.frames } else { edge.eligible_frames };
        must(edge.eligible_frames + edge.tagged_frames == judged, "a frame is eligible or tagged where any is", found)?;
        must(!vc.tagged || edge.eligible_frames == 0, "what comes tagged is not eligible", found)?;
        let of_vc = network.flows.iter().zip(&result.flows).filter(|(flow, _)| flow.data_vc == number);
        let frames: Vec<[u64; 2]> =
            of_vc.map(|(_, flow)| [flow.segments_sent + flow.packets_sent, flow.packets_delivered]).collect();
        let [sent, came] = [0, 1].map(|i| frames.iter().map(|of_flow| of_flow[i]).sum::<u64>());
        // A VC that carries acknowledgements alone has as many frames as its receiver sends.
        must(frames.is_empty() || edge.frames <= sent, "frames at the edge were sent", found)?;
        must(edge.frames >= came, "what arrives has passed the edge", found)?;
    }
    for found in &result.ports {
        must((0.0..=1.0).contains(&found.utilisation), "a share of the run", found)?;
        must((found.utilisation > 0.0) == (found.counters.forwarded > 0), "who forwards is busy", found)?;
    }
    Ok(())
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, fast: &[T], reference: &[T]) -> Result<(), String> {
    let differs = fast.iter().zip(reference).position(|(fast, reference)| fast != reference);
    match differs {
        Some(i) => Err(format!("{what}[{i}]:\n  fast      {:?}\n  reference {:?}", fast[i], reference[i])),
        None if fast.len() != reference.len() => Err(format!("{what}: {} and {} of them", fast.len(), reference.len())),
        None => Ok(()),
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

/// A scenario as a user would write it: what is as it is by default is left out.
fn text(scenario: &Scenario) -> String {
    let plain = |tcp: &TcpConfig| serde_json::to_value(draw::plain_tcp(tcp.name())).unwrap();
    let mut document = serde_json::to_value(scenario).unwrap();
    leave_out(&mut document["tcp"], &plain(&scenario.tcp));
    for (name, flow) in &scenario.flow {
        if let Some(tcp) = &flow.tcp {
            leave_out(&mut document["flow"][name]["tcp"], &plain(tcp));
        }
    }
    for (key, default) in [
        ("name", Value::from("")),
        ("flow", json!({})),
        ("vc", json!({})),
        ("switch", serde_json::to_value(celltrain_scenario::scenario::SwitchOptions::default()).unwrap()),
        ("aal5", serde_json::to_value(celltrain_core::aal5::Aal5Options::default()).unwrap()),
    ] {
        leave_out(&mut document[key], &default);
        if document[key] == default || document[key] == json!({}) {
            document.as_object_mut().unwrap().remove(key);
        }
    }
    for flow in document["topology"]["network"]["flows"].as_array_mut().into_iter().flatten() {
        leave_out(flow, &json!({"start": "0s"}));
    }
    without_nulls(&mut document);
    toml::to_string(&document).unwrap()
}

/// Keys of tables that say nothing but the default.
fn leave_out(value: &mut Value, defaults: &Value) {
    if let (Value::Object(map), Value::Object(defaults)) = (value, defaults) {
        // A table may be what was chosen, by its name alone.
        map.retain(|key, value| value.is_object() || defaults.get(key) != Some(value));
        for (key, value) in map {
            leave_out(value, defaults.get(key).unwrap_or(&Value::Null));
        }
    }
}

fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}
