//! Tests that every topology must pass, on the small sample of each topology.

use std::cell::Cell;
use std::collections::BTreeSet;

use celltrain_core::engine::Engine;
use celltrain_core::index::{LinkIndex, NodeIndex};
use celltrain_core::network::NodeKind;
use serde_json::json;

use super::*;
use crate::build;
use crate::{Candidate, Scenario, check, read_json};

fn laid_out(topology: &Topology) -> Layout {
    topology.config().lay_out(&CancellationToken::never()).expect("no test cancels a run")
}

/// Creates a scenario with this topology and identical ports.
fn scenario(topology: &Topology) -> Scenario {
    let has_edges = laid_out(topology).graph.nodes.iter().any(|node| node.kind == NodeKind::EdgeDevice);
    let edges = if has_edges { json!({"*": {"buffer": 1000, "discard": {"tail_drop": {}}}}) } else { json!({}) };
    let requests = json!({"some": {"load": 0.3, "sizes": "10kB"}});
    let text = json!({
        "duration": "20ms",
        "requests": if topology.config().size().flows > 0 { json!({}) } else { requests },
        "topology": serde_json::to_value(topology).unwrap(),
        "port": {"default": {"buffer": 1000, "policy": {"epd": {"threshold": 800}}}},
        "edge": edges,
    });
    read_json(&text.to_string(), topology.name()).expect_scenario()
}

#[test]
fn the_predicted_size_of_a_topology_equals_the_size_of_the_built_network() {
    for topology in Topology::samples() {
        let (size, layout) = (topology.config().size(), laid_out(&topology));
        let crossings: usize = layout.flows.iter().map(|flow| flow.data.len()).sum();
        let found =
            [layout.graph.nodes.len(), layout.graph.links.len(), layout.flows.len()].map(|number| number as u64);
        assert_eq!([size.nodes, size.links, size.flows], found, "{}", topology.name());
        // In a general network, the number of links that data crosses is unknown before the layout.
        let is_known = !matches!(topology, Topology::Network(_));
        let crossings = crossings as u64;
        assert!(size.crossings == crossings || (!is_known && size.crossings < crossings), "{}", topology.name());
    }
}

#[test]
fn every_topology_has_unique_names_and_symmetric_paths_between_hosts() {
    for topology in Topology::samples() {
        let name = topology.name();
        let Layout { graph, flows, bottleneck } = laid_out(&topology);
        let nodes: BTreeSet<&str> = graph.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(nodes.len(), graph.nodes.len(), "{name}");
        let names: BTreeSet<&str> = flows.iter().map(|flow| flow.name.as_str()).collect();
        assert_eq!(names.len(), flows.len(), "{name}");
        let is_crossed = flows.is_empty() || flows.iter().any(|flow| flow.data.contains(&bottleneck));
        assert!(is_crossed, "{name}: data crosses the bottleneck");
        for flow in &flows {
            let ends = |link: LinkIndex| [graph.links[link].from, graph.links[link].to];
            let is_host = |node: NodeIndex| graph.nodes[node].kind == NodeKind::Host;
            let [from, to] = [ends(flow.data[0])[0], ends(flow.data[flow.data.len() - 1])[1]];
            assert!(is_host(from) && is_host(to) && from != to, "{name}: {}", flow.name);
            for pair in flow.data.windows(2) {
                assert_eq!(ends(pair[0])[1], ends(pair[1])[0], "{name}: {}", flow.name);
                assert!(!is_host(ends(pair[1])[0]), "{name}: {}", flow.name);
            }
            let back: Vec<[NodeIndex; 2]> =
                flow.data.iter().rev().map(|&link| ends(link)).map(|[a, b]| [b, a]).collect();
            assert_eq!(flow.acks.iter().map(|&link| ends(link)).collect::<Vec<_>>(), back, "{name}: {}", flow.name);
        }
    }
}

#[test]
fn a_network_of_every_topology_gives_the_same_run_on_both_engines() {
    for topology in Topology::samples() {
        let scenario = scenario(&topology);
        let verdict =
            check::check(&scenario, &[], &|_| Ok(()), &CancellationToken::never()).expect("no test cancels a run");
        let network = verdict.network.unwrap_or_else(|| panic!("{}: {:?}", topology.name(), verdict.faults));
        let alone = build::network(&scenario, scenario.seed);
        assert_eq!(format!("{network:?}"), format!("{alone:?}"), "{}", topology.name());
        let [fast, reference] = [Engine::Fast, Engine::Reference].map(|engine| engine.run_to_end(&network));
        assert_eq!(fast.fingerprint, reference.fingerprint, "{}", topology.name());
        assert!(fast.flows.iter().all(|flow| flow.delivered_bytes > 0), "{}: all are served", topology.name());
    }
}

#[test]
fn the_error_for_a_topology_that_is_too_large_names_the_key_that_sets_its_size() {
    for topology in Topology::samples() {
        let scenario = scenario(&topology);
        let fits = |_: Candidate<'_>| Err("the topology is too large".to_string());
        let verdict = check::check(&scenario, &[], &fits, &CancellationToken::never()).expect("no test cancels a run");
        let Size { key: (key, value), .. } = topology.config().size();
        let [fault] = &verdict.faults[..] else { panic!("{}: {:?}", topology.name(), verdict.faults) };
        assert_eq!(fault.key, format!("topology.{}.{key}", topology.name()));
        assert_eq!(fault.value, value.to_string());
        assert!(verdict.does_not_fit && fault.problem.starts_with("makes a network that is too large"), "{fault:?}");
    }
}

/// A phase of work that regularly checks whether it has been cancelled.
type Phase<'a> = &'a dyn Fn(&CancellationToken<'_>) -> Result<(), Interrupted>;

#[test]
fn building_and_checking_the_network_of_every_topology_can_be_cancelled() {
    for topology in Topology::samples() {
        let (scenario, flows) = (scenario(&topology), laid_out(&topology).flows.len());
        let phases: [(&str, Phase<'_>); 2] = [
            ("layout", &|token| topology.config().lay_out(token).map(|_| ())),
            ("checks", &|token| check::check(&scenario, &[], &|_| Ok(()), token).map(|_| ())),
        ];
        for (name, part) in phases {
            let name = format!("{}: {name}", topology.name());
            let (questions, outcome) = asked(usize::MAX, part);
            assert_eq!(outcome, Ok(()), "{name}");
            assert!(questions >= flows, "{name} checks for cancellation {questions} times with {flows} flows");
            for most in 0..questions {
                assert_eq!(asked(most, part), (most + 1, Err(Interrupted)), "{name}");
            }
        }
    }
}

/// Runs work that checks for cancellation, and cancels it after `most` checks. Returns the number of checks and the
/// outcome.
fn asked(most: usize, work: Phase<'_>) -> (usize, Result<(), Interrupted>) {
    let asked = Cell::new(0);
    let go_on = || {
        asked.set(asked.get() + 1);
        asked.get() <= most
    };
    let outcome = work(&CancellationToken::every(1, &go_on));
    (asked.get(), outcome)
}
