use celltrain_core::engine::Engine;
use celltrain_scenario::{build, read_toml};

use super::*;

fn network(more: &str) -> Network {
    let text = format!(
        "duration = \"1ms\"\n[topology.n_source]\nsources = 2\nlink_delay = \"5us\"\n[tcp.reno]\n\
         [port.bottleneck]\nbuffer = 100\n[port.bottleneck.policy.ppd]\n{more}"
    );
    build::network(&read_toml(&text, "test").expect_scenario(), 1)
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn trace(network: &Network, series: &[&str], step: &str) -> Result<Option<Trace>, String> {
    Trace::new(network.duration, &names(series), Some(step), None)
}

#[test]
fn every_series_stores_its_samples_in_columns() {
    let network = network(
        "[port.bottleneck.allocator.equal_share]\n[port.default]\nbuffer = 500\npolicy.tail_drop = {}\n\
         allocator.equal_share = {}\n[vc.tcp1.abr]\n[port.\"sw2->destination1\"]\nbuffer = \"shared\"\n\
         policy.ppd = {}\nallocator.equal_share = {}\n[switch.sw2.memory]\ncells = 500\n\
         ports = [\"sw2->destination1\"]\npool.main.policy.complete_sharing = {}\n",
    );
    let all: Vec<&str> = SERIES.iter().map(|series| series.name).collect();
    let trace =
        trace(&network, &all, "100us").expect("the choice is valid").expect("the choice names at least one series");
    let mut recorder = trace.recorder(&network).expect("the choice is valid");
    Engine::Fast.run(&network, &mut recorder, |_| true).expect("no test cancels a run");
    let widths: Vec<usize> = SERIES
        .iter()
        .flat_map(|series| series.columns.iter().map(|_| series.over.width(&recorder, &network)))
        .collect();
    let taken = Recorded::of(&network, &trace, recorder);
    assert_eq!(taken.time_s.len(), 11);
    assert_eq!(taken.arrays.len(), widths.len());
    for ((name, array), width) in taken.arrays.iter().zip(widths) {
        let length = match array {
            Array::Counts(values) => values.len(),
            Array::Bytes(values) => values.len(),
            Array::Numbers(values) => values.len(),
        };
        assert!(width > 0, "{name} has columns");
        assert_eq!(length, 11 * width, "{name}");
    }
}

#[test]
fn the_series_of_a_shared_memory_contains_the_occupancy_and_the_threshold_of_each_queue() {
    let text = "duration = \"2ms\"\n[topology.n_source]\nsources = 2\nlink_delay = \"5us\"\n[tcp.reno]\n\
         [port.bottleneck]\nbuffer = \"shared\"\npolicy.ppd = {}\n[switch.sw1.memory]\ncells = 100\n\
         [switch.sw1.memory.pool.main.policy.dynamic_threshold]\nalpha = 0.5\n";
    let network = build::network(&read_toml(text, "test").expect_scenario(), 1);
    let trace = trace(&network, &["memory"], "10us")
        .expect("the choice is valid")
        .expect("the choice names at least one series");
    let [recorded, by_reference] = [Engine::Fast, Engine::Reference].map(|engine| {
        let mut recorder = trace.recorder(&network).expect("the choice is valid");
        engine.run(&network, &mut recorder, |_| true).expect("no test cancels a run");
        Recorded::of(&network, &trace, recorder)
    });
    assert_eq!(recorded, by_reference);
    let (_, names) =
        recorded.names.iter().find(|(over, _)| *over == "memory_queues").expect("the observer is still installed");
    assert!(names.iter().all(|name| name.starts_with("sw1/") && name.ends_with("/0")), "{names:?}");
    let [(_, Array::Counts(held)), (_, Array::Counts(shared)), (_, Array::Numbers(thresholds))] = &recorded.arrays[..]
    else {
        panic!("{:?}", recorded.arrays)
    };
    assert_eq!(held, shared, "nothing is reserved");
    assert!(held.iter().any(|&cells| cells > 20), "a queue grows");
    for (held, thresholds) in held.chunks(names.len()).zip(thresholds.chunks(names.len())) {
        let threshold = 0.5 * f64::from(100 - held.iter().sum::<u32>());
        assert!(thresholds.iter().all(|&one| one == threshold), "{thresholds:?} with {held:?}");
    }
}

#[test]
fn a_series_that_the_network_cannot_record_is_refused_with_a_message() {
    let network = network("");
    let refusal = |series: &[&str], step: &str| match trace(&network, series, step) {
        Err(problem) => problem,
        Ok(Some(trace)) => match trace.refuse_empty(&network) {
            Err(problem) => problem,
            Ok(()) => panic!("the trace is accepted"),
        },
        Ok(None) => panic!("the trace names no series"),
    };
    assert_eq!(
        refusal(&["window"], "1us"),
        "\"window\" is not a series; it must be one of queue, occupancy, cwnd, delivered, acr, edge, memory"
    );
    assert!(
        refusal(&["cwnd"], "0s").contains(
            "is too short: a run of 1ms may have 1000000 samples after the first, so the smallest step is 1ns"
        )
    );
    assert!(refusal(&["cwnd", "acr"], "1us").starts_with("trace = \"acr\" has nothing to record: no connection sends"));
    assert!(refusal(&["edge"], "1us").starts_with("trace = \"edge\" has nothing to record: no connection crosses"));
}

#[test]
fn a_series_that_is_requested_twice_is_recorded_once() {
    let network = network("");
    let twice = trace(&network, &["cwnd", "queue", "cwnd"], "1us")
        .expect("the choice is valid")
        .expect("the choice names at least one series");
    assert_eq!(twice.series.len(), 2);
    assert!(trace(&network, &[], "1us").expect("the choice is valid").is_none());
}
