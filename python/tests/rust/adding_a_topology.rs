//! Reads the scenario from the page with the page's new topology, and runs it for a short time.

use celltrain_core::engine::Engine;
use celltrain_scenario::{build, read_toml};

#[test]
fn the_scenario_in_the_tutorial_for_adding_a_topology_is_valid_and_runs() {
    let text = std::fs::read_to_string("../../scenarios/ring-selective-drop.toml").unwrap();
    let read = |text: &str| read_toml(text, "ring.toml");
    let reading = read(&text);
    assert_eq!((&reading.faults[..], &reading.warnings[..]), (&[][..], &[][..]));
    let mut scenario = reading.scenario.unwrap();
    assert_eq!(scenario.topology.name(), "ring");
    scenario.duration = "200ms".parse().unwrap();
    let network = build::network(&scenario, 1);
    let result = Engine::Reference.run_to_end(&network);
    assert_eq!(result.flows.len(), 6);
    for flow in &result.flows {
        // The formula on the page gives C / h = 51.84 Mb/s. A segment of 512 bytes takes 12 cells of 53 bytes: 51.84 x
        // 512 / 636.
        assert!((flow.max_min_mbps - 41.733).abs() < 0.001, "{}: {}", flow.name, flow.max_min_mbps);
        assert!(flow.delivered_bytes > 0, "{}", flow.name);
    }
    let discarding = result.ports.iter().filter(|port| port.counters.discarded_frame > 0).count();
    assert!(discarding >= 3, "{discarding} ports refused frames");

    for (from, to, message) in [
        ("reach = 3", "reach = 6", "topology.ring.reach = 6 leads around the whole ring of 6 switches; it must be smaller"),
        ("switches = 6", "switches = 2", "topology.ring.switches = 2 is not"),
        ("[topology.ring]", "[topology.x]", "ring"),
        ("sw*->sw*", "sw1->sw2", "port.\"sw2->sw3\" has no buffer and no policy"),
    ] {
        let faults = read(&text.replace(from, to)).faults;
        assert!(faults.iter().any(|fault| fault.message.contains(message)), "{to}: {faults:?}");
    }
}
