//! Briefly runs, on both engines, the scenario shown on the page about the new model.

use celltrain_core::engine::Engine;
use celltrain_core::tcp::Congestion;
use celltrain_scenario::{build, read_toml};

/// Returns cwnd of every connection at the end of the run.
fn windows(text: &str, engine: Engine) -> Vec<f64> {
    let reading = read_toml(text, "scalable.toml");
    assert_eq!(reading.faults, []);
    let network = build::network(&reading.scenario.unwrap(), 1);
    let result = engine.run_to_end(&network);
    result.flows.iter().map(|flow| flow.cwnd_segments).collect()
}

#[test]
fn a_scenario_can_select_the_example_congestion_control_by_name() {
    let page = std::fs::read_to_string("../../docs/models/scalable.md").unwrap();
    let text = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let scenario = read_toml(text, "scalable.toml").scenario.unwrap();
    assert_eq!(scenario.tcp.options().congestion, Congestion::Scalable);

    // A low ssthresh ends slow start at once.
    let text = text.replace("duration = \"1s\"", "duration = \"200ms\"");
    let text = text.replace("[tcp.sack]", "[tcp.sack]\nstart.initial_ssthresh = \"10240B\"");
    let scalable = windows(&text, Engine::Reference);
    assert_eq!(scalable, windows(&text, Engine::Fast), "both engines give the same fingerprint");
    // cwnd is 20 segments plus 0.01 segments per acknowledgement.
    for cwnd in &scalable {
        let acknowledgements = (cwnd - 20.0) / 0.01;
        assert!(acknowledgements > 1.0 && (acknowledgements - acknowledgements.round()).abs() < 1e-6, "{cwnd}");
    }
    let other = windows(&text.replace("\"scalable\"", "\"jacobson\""), Engine::Reference);
    assert_ne!(scalable, other, "the page of the model equals the page of the example");

    let refused = read_toml(&text.replace("\"scalable\"", "\"scaleable\""), "s.toml");
    assert!(refused.faults[0].message.contains("\"scalable\""), "{:?}", refused.faults);
}
