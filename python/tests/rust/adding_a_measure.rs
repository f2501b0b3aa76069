//! Runs a scenario with the measure from the page, and prints the line with this measure.

use std::sync::atomic::AtomicBool;

use celltrain_core::cancellation::CancellationToken;
use celltrain_run::answer::outlined;
use celltrain_run::runner::{How, Progress, one};
use celltrain_run::scenario::Handle;
use celltrain_run::tables;
use celltrain_scenario::read_toml;
use serde_json::{Value, json};

#[test]
fn a_result_contains_the_measure_that_the_example_adds() {
    let text = std::fs::read_to_string("../../scenarios/lan-epd.toml").unwrap();
    let text = text.replace("duration = \"10s\"", "duration = \"100ms\"");
    let (handle, read) = Handle::of_reading(read_toml(&text, "lan-epd.toml"));
    assert_eq!(read.reading.faults, []);
    let handle = handle.unwrap();
    let run = one(&handle, None, How::default(), &AtomicBool::new(false), &Progress::default()).unwrap();
    let answer: Value = serde_json::from_str(&run.answer).unwrap();
    let port = answer["ports"].as_array().unwrap().iter().find(|port| port["name"] == answer["bottleneck"]).unwrap();
    let [offered, lost, discarded] =
        ["offered_cells", "lost_cells", "discarded_cells"].map(|name| port[name].as_f64().unwrap());
    assert!(lost + discarded > 0.0, "the bottleneck lost cells");
    assert_eq!(port["loss_ratio"], json!((lost + discarded) / offered));

    let checked = handle.checked(&CancellationToken::never()).unwrap();
    let outline = outlined(&checked.network(1, &CancellationToken::never()).unwrap());
    assert_eq!(outline["ports"][0]["loss_ratio"], 1, "a plan can refer to the measure");

    let described = tables::described_all();
    let lines = described["ports"].as_array().unwrap();
    println!("described: {}", lines.iter().find(|line| line["name"] == "loss_ratio").unwrap());
}
