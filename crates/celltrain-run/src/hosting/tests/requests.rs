use std::sync::atomic::AtomicBool;

use celltrain_capture::CaptureChoice;
use celltrain_core::engine::Engine;
use celltrain_core::units::Duration;
use celltrain_scenario::read_toml;
use serde_json::Value;

use crate::runner::{Captured, How, Progress, Watched, one, one_watched};
use crate::scenario::Handle;

/// A star of four hosts, with the given tables.
fn star(tables: &str) -> Handle {
    let text = format!(
        r#"
        duration = "60ms"
        cell.size = "250B"
        [topology.leaf_spine]
        leaves = 2
        spines = 1
        hosts_per_leaf = 2
        host_rate = "100Mbps"
        host_delay = "10us"
        uplink_rate = "200Mbps"
        [port.default]
        buffer = 300
        policy.tail_drop = {{}}
        {tables}
        "#
    );
    let (handle, read) = Handle::of_reading(read_toml(&text, "star.toml"));
    handle.unwrap_or_else(|| panic!("{:?}", read.reading.faults))
}

const STACKS: [&str; 2] =
    ["stack.smoltcp = { mss = '1460B', ack_delay = '0s', receive_window = '100kB' }", "stack.quic = {}"];

fn run(scenario: &Handle, engine: Engine) -> (Value, crate::requests::Records) {
    let how = How { engine, most_records: 100_000, ..How::default() };
    let finished = one(scenario, None, how, &AtomicBool::new(false), &Progress::default()).unwrap();
    (serde_json::from_str(&finished.answer).unwrap(), finished.records.expect("the run keeps its records"))
}

#[test]
fn requests_and_queries_over_real_stacks_complete_and_give_the_same_answer_on_both_engines() {
    for stack in STACKS {
        let scenario = star(&format!(
            "[requests.web]\nload = 0.3\nsizes = '10kB'\n{stack}\n[incast.query]\nsenders = 3\nbytes = '60kB'\n\
             interval = '10ms'\n{stack}\n[requests.own]\nload = 0.05\nsizes = '5kB'\ntcp.reno = {{}}\n\
             [measure]\nfrom = '1ms'\nto = '40ms'"
        ));
        let [(fast, records), (reference, others)] =
            [Engine::Fast, Engine::Reference].map(|engine| run(&scenario, engine));
        assert_eq!(fast["fingerprint"], reference["fingerprint"], "{stack}");
        assert_eq!(fast["requests"], reference["requests"], "{stack}");
        // Missing times are not equal to themselves.
        assert!(format!("{records:?}") == format!("{others:?}"), "{stack}");
        let group = |number: usize, key: &str| &fast["requests"][number][key];
        for number in 0..3 {
            let [opened, completed] = ["opened", "completed"].map(|key| group(number, key).as_u64().unwrap());
            assert!(completed > 8 && completed >= opened * 9 / 10, "{fast}");
            assert!(fast["requests"][number]["all"]["slowdown_mean"].as_f64() > Some(1.0), "{fast}");
        }
        assert!(group(2, "queries")["completed"].is_number() || group(1, "queries")["completed"].is_number());
        let by_name = |name: &str| (0..3).find(|&number| group(number, "name") == name).unwrap();
        assert!(group(by_name("own"), "timeouts").is_number() && group(by_name("web"), "timeouts").is_null());
        assert_eq!(group(by_name("own"), "stack"), "");
        assert!(group(by_name("web"), "stack").as_str().unwrap().starts_with(&stack[6..10]), "{fast}");
    }
}

#[test]
fn a_request_over_a_real_stack_that_meets_no_others_has_a_slowdown_of_one() {
    for stack in STACKS {
        let scenario = star(&format!("[incast.query]\nsenders = 1\nbytes = '50kB'\ninterval = '20ms'\n{stack}"));
        let (answer, records) = run(&scenario, Engine::Fast);
        assert_eq!(records.slowdown, [1.0, 1.0], "{stack} {answer}");
    }
}

#[test]
fn the_stacks_of_closed_requests_are_gone_and_a_run_keeps_no_records_of_them_by_default() {
    let scenario = star(&format!("[requests.web]\nload = 0.3\nsizes = '2kB'\n{}", STACKS[0]));
    let (with, _) = run(&scenario, Engine::Fast);
    let without = one(&scenario, None, How::default(), &AtomicBool::new(false), &Progress::default()).unwrap();
    let without: Value = serde_json::from_str(&without.answer).unwrap();
    assert_eq!((&with["fingerprint"], &with["requests"]), (&without["fingerprint"], &without["requests"]));
}

#[test]
fn a_capture_has_the_packets_of_requests_over_a_real_stack() {
    let scenario = star(&format!("[incast.query]\nsenders = 1\nbytes = '5kB'\ninterval = '20ms'\n{}", STACKS[0]));
    let mut bytes = Vec::new();
    let mut sink = |block: &[u8]| {
        bytes.extend_from_slice(block);
        true
    };
    let choice = CaptureChoice::new(Duration::from_milliseconds(60), ("ip", None), [None, None, None], None).unwrap();
    let watched = Watched { captures: vec![Captured::new(&choice, &mut sink)], ..Watched::default() };
    one_watched(&scenario, None, How::default(), watched, (&AtomicBool::new(false), &Progress::default())).unwrap();
    let count = |part: &[u8]| bytes.windows(part.len()).filter(|window| *window == part).count();
    assert_eq!(count(b"000000000000000\n000000000000010\n"), 2, "two queries");
}
