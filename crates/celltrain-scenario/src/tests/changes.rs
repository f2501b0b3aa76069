//! Tests of links whose rate or delay changes.

use celltrain_core::engine::Engine;
use celltrain_core::link_changes::{DelayChange, RateChange};
use celltrain_core::metrics::RunResult;
use celltrain_core::units::{BitRate, Duration};

use super::{link, messages, read};

/// Returns a scenario in which packets of one cell of 1,000 bytes fill the link from sw to b, which has 80 Mb/s. `keys`
/// are the keys of this link.
fn filled(keys: &str, rest: &str) -> String {
    format!(
        r#"duration = "40ms"
cell.size = "1000B"
[topology.network]
hosts = ["a", "b"]
switches = ["sw"]
links = [
    {{ between = ["a", "sw"], rate = "800Mbps", delay = "1us" }},
    {{ between = ["b", "sw"], rate = "80Mbps", delay = "5ms" }},
]
flows = [{{ from = "a", to = "b" }}]
[flow.tcp1.traffic.constant_rate]
rate = "90Mbps"
packet = "972B"
[port.default]
buffer = "infinite"
policy.tail_drop = {{}}
[link."sw->b"]
{keys}
{rest}"#
    )
}

/// Runs a scenario on both engines, which must agree.
fn run(text: &str) -> RunResult {
    let reading = read(text);
    assert_eq!(reading.faults, []);
    let network = reading.network.unwrap();
    assert_eq!(Engine::Fast.for_network(&network), Engine::Fast, "the fast engine supports the network");
    let [fast, reference] = Engine::ALL.map(|engine| engine.run_to_end(&network));
    assert_eq!(fast, reference);
    reference
}

fn forwarded(result: &RunResult) -> u64 {
    result.ports.iter().find(|port| port.name == "sw->b").unwrap().counters.forwarded
}

#[test]
fn a_saturated_link_whose_rate_changes_sends_as_many_cells_as_its_rates_allow() {
    // A cell takes 100 us until 10 ms, 1 ms until 20 ms, and 50 us from 30 ms. The highest rate exceeds the link's own
    // rate.
    let steps = r#"rate_change.steps = [
        { at = "10ms", rate = "8Mbps" }, { at = "20ms", rate = "0bps" }, { at = "30ms", rate = "160Mbps" }]"#;
    let result = run(&filled(steps, ""));
    let port = result.ports.iter().find(|port| port.name == "sw->b").unwrap();
    // The number is not exact, because the first packet arrives during the first cell time, and the rate changes after
    // the start of a cell.
    assert!((308..=311).contains(&port.counters.forwarded), "{}", port.counters.forwarded);
    assert!(port.utilisation > 0.99, "{}", port.utilisation);
    let [payload, capacity] = [result.goodput_mbps, 0.972 * (0.8 + 0.08 + 1.6) / 0.04];
    assert!((result.efficiency - payload / capacity).abs() < 1e-9, "{}", result.efficiency);
    let second_half = run(&filled(steps, "[measure]\nfrom = \"20ms\""));
    assert!((199..=201).contains(&forwarded(&second_half)), "{}", forwarded(&second_half));
}

#[test]
fn a_link_with_a_trace_sends_a_packet_of_1504_bytes_per_line_of_the_trace() {
    let text = filled("rate_change.trace = [1, 1, 4, 10]", "").replace("1000B", "1504B").replace("972B", "1476B");
    let result = run(&text);
    // The last delivery opportunity, at the end of the run, starts a cell.
    assert_eq!(forwarded(&result), 16);
    let rate = 16.0 * 1504.0 * 8.0 / 40e3;
    assert!((result.efficiency - result.goodput_mbps / (rate * 1476.0 / 1504.0)).abs() < 1e-9);
}

#[test]
fn random_link_changes_depend_only_on_the_seed() {
    for keys in [
        r#"rate_change.walk = { every = "1ms", step = "20Mbps", least = "20Mbps", most = "100Mbps" }"#,
        r#"delay_change.walk = { every = "1ms", step = "1ms", least = "1ms", most = "9ms" }"#,
        r#"jitter = { by = "2ms", distribution = "normal" }"#,
        r"reorder = { probability = 0.3, gap = 2 }",
    ] {
        let with_seed = |seed: u32| run(&filled(keys, "").replacen("duration", &format!("seed = {seed}\nduration"), 1));
        let [one, again, other] = [1, 1, 2].map(with_seed);
        assert_eq!(one.fingerprint, again.fingerprint, "{keys}");
        assert_ne!(one.fingerprint, other.fingerprint, "{keys}");
    }
}

#[test]
fn a_link_that_changes_is_listed_with_its_highest_rate_and_shortest_delay() {
    let changed = |keys: &str| {
        let reading = read(&filled(keys, ""));
        assert_eq!(reading.faults, []);
        link(&reading.network.unwrap(), "sw->b").clone()
    };
    let own = Duration::from_milliseconds(5);
    let jitter = changed(r#"jitter = { by = "1ms", distribution = "normal" }"#);
    assert_eq!(jitter.delay, Duration::from_milliseconds(1));
    assert_eq!(jitter.changes().delay, Some(DelayChange::Steps(vec![(Duration::default(), own)])));
    assert_eq!(changed("reorder = { probability = 0.5 }").delay, Duration::default());
    assert_eq!(changed(r#"delay_change.steps = [{ at = "1ms", delay = "7ms" }]"#).delay, own);
    let steps = changed(r#"rate_change.steps = [{ at = "1ms", rate = "90Mbps" }, { at = "1s", rate = "8Mbps" }]"#);
    let mbps = |rate: u64| BitRate::from_bits_per_second(rate * 1_000_000);
    let kept = vec![(Duration::default(), mbps(80)), (Duration::from_milliseconds(1), mbps(90))];
    assert_eq!(
        (steps.rate, steps.changes().rate.clone()),
        (mbps(90), Some(RateChange::Steps(kept))),
        "the run ends before 1 s"
    );
}

#[test]
fn invalid_link_changes_are_refused_with_a_correction() {
    for (keys, problem) in [
        ("rate_change = {}", "rate_change must have exactly one of steps, walk and trace"),
        ("rate_change.steps = []", "steps is empty; list changes with their times"),
        (
            r#"rate_change.steps = [{ at = "2ms", rate = "8Mbps" }, { at = "1ms", rate = "9Mbps" }]"#,
            "steps[1].at = \"1ms\" must be later than the previous time, 2ms",
        ),
        (r#"rate_change.steps = [{ at = "0s", rate = "0bps" }]"#, "stops the link for the whole run; add a step"),
        (r#"rate_change.steps = [{ at = "0s", rate = "1bps" }]"#, "is not a positive rate from 424bps"),
        ("rate_change.trace = []", "trace is empty; list milliseconds at which the link may deliver"),
        (
            "rate_change.trace = [1, 5, 4]",
            "trace[2] = 4 goes backwards after 5; a trace is in order, so write 5 or more",
        ),
        ("rate_change.trace = [0, 0]", "trace[1] = 0 is the end of the trace, which must last from 1"),
        (
            "rate_change.trace = [1, 1, 1, 1, 1, 1, 1, 1]",
            "delivers 96.256 Mb/s on average, but cells leave at the link's rate",
        ),
        ("rate_change.trace = \"a.down\"", "trace = \"a.down\""),
        (
            r#"rate_change.walk = { every = "1ns", step = "1Mbps", least = "1Mbps", most = "9Mbps" }"#,
            "every = \"1ns\" is too short: a walk has at most 10000000 steps",
        ),
        (
            r#"delay_change.walk = { every = "1ms", step = "1ms", least = "9ms", most = "1ms" }"#,
            "least = \"9ms\" is above most, which is 1ms",
        ),
        (r#"jitter = { by = "0s" }"#, "jitter.by = \"0s\" must be above 0s"),
        (r#"reorder = { probability = 0.1, delay = "5ms" }"#, "is not below the link's delay of 5ms, so no packet"),
        ("reorder = { probability = 1.5 }", "is not a probability (0 to 1)"),
        ("jitter = { by = \"1ms\" }\nwire = \"ethernet\"", "cannot be combined with wire = \"ethernet\""),
        (
            "jitter = { by = \"1ms\" }\ndelay = [{ vc = \"tcp1\", packets = [1], by = \"1ms\" }]",
            "jitter cannot be combined with rules for the delay of packets",
        ),
    ] {
        let faults = messages(&filled(keys, ""));
        assert!(faults.len() == 1 && faults[0].contains(problem), "{keys}: {faults:?}");
    }
    let reorder = filled("reorder = { probability = 0.1 }", "");
    let aal5 = messages(&reorder.replace("cell.size = \"1000B\"", ""));
    assert!(aal5[0].contains("needs framing = \"packets\", because the cells of a VC keep their order"), "{aal5:?}");
    let pattern = messages(&reorder.replace("sw->b\"]", "sw->*\"]"));
    assert!(pattern[0].contains("reorder needs the name of one link instead of a pattern"), "{pattern:?}");
}
