//! Reads the scenario from the page with the page's new policy, and runs it for a short time.

use celltrain_core::engine::Engine;
use celltrain_scenario::{build, read_toml};

#[test]
fn the_scenario_in_the_tutorial_for_adding_a_policy_is_valid_and_runs() {
    let text = std::fs::read_to_string("../../scenarios/lan-per-vc-dynamic-threshold.toml").unwrap();
    let reading = read_toml(&text, "lan-per-vc-dynamic-threshold.toml");
    assert_eq!(reading.faults, []);
    let mut scenario = reading.scenario.unwrap();
    assert_eq!(scenario.port["bottleneck"].policy.name(), "per_vc_dynamic_threshold");
    scenario.duration = "50ms".parse().unwrap();
    let network = build::network(&scenario, 1);
    let result = Engine::Reference.run_to_end(&network);
    let port = &result.ports[network.bottleneck];
    assert!(port.counters.discarded_frame > 0, "the policy refused frames");
    assert!(port.max_queue_cells < 1000, "the policy left a part of the buffer empty");

    let refused = read_toml(&text.replace("alpha = 1.0", "alpha = 0.0"), "s.toml");
    assert!(refused.faults[0].message.contains("per_vc_dynamic_threshold.alpha = 0 admits no frame"), "{:?}", refused.faults);
    let listed = read_toml(&text.replace("policy.per_vc_dynamic_threshold", "policy.x"), "s.toml");
    assert!(listed.faults[0].message.contains("per_vc_dynamic_threshold"), "{:?}", listed.faults);
}
