//! Generates small scenarios for tests of formulas.

use serde_json::{Value, json};

use super::drawn::Draws;

/// Draws a few sources over one to four switches. Returns the topology and the name of one of its VCs.
pub(crate) fn topology(draws: &mut Draws) -> (Value, &'static str) {
    let delay = of(draws, &["0s", "5us", "20us", "333us"]);
    match draws.below(4) {
        0 => {
            (json!({"chain": {"hops": 1 + draws.below(3), "cross": 1 + draws.below(3), "link_delay": delay}}), "long1")
        }
        1 => (json!({"star": {"hosts": 3 + draws.below(4), "link_delay": delay}}), "tcp1"),
        _ => (json!({"n_source": {"sources": 1 + draws.below(6), "link_delay": delay}}), "tcp1"),
    }
}

/// Draws a scenario of a few milliseconds.
pub(crate) fn scenario(draws: &mut Draws, topology: &Value, policy: &Value) -> Value {
    let tcp = of(draws, &["reno", "vanilla", "newreno"]);
    let options = json!({
        "mss": of(draws, &["64B", "512B", "1460B", "4000B"]),
        "receive_window": of(draws, &["20000B", "65535B"]),
    });
    let port = json!({"buffer": 180 + draws.below(200), "policy": policy});
    json!({
        "duration": format!("{}ms", 2 + draws.below(8)),
        "topology": topology,
        "tcp": {tcp: options},
        "port": {"default": port},
        "switch": {
            "tie_order": of(draws, &["random", "random", "rotating", "fixed"]),
            "service_order": of(draws, &["after_arrivals", "after_arrivals", "before_arrivals"]),
        },
    })
}

/// In most scenarios, applies the policy only to the bottleneck, because parsing a formula for every port takes longer
/// than the short run.
pub(crate) fn mostly_at_the_bottleneck(draws: &mut Draws, scenario: &mut Value) {
    if draws.below(4) > 0 {
        let port = scenario["port"]["default"].take();
        scenario["port"] =
            json!({"default": {"buffer": port["buffer"], "policy": {"tail_drop": {}}}, "bottleneck": port});
    }
}

fn of(draws: &mut Draws, choices: &[&'static str]) -> &'static str {
    choices[draws.below(u32::try_from(choices.len()).expect("the length of this list fits in 32 bits")) as usize]
}
