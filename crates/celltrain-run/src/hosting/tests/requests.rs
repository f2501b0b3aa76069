use std::sync::atomic::AtomicBool;

use celltrain_capture::CaptureChoice;
use celltrain_core::engine::Engine;
use celltrain_core::units::Duration;
use celltrain_scenario::read_toml;
use serde_json::Value;

use crate::runner::{Captured, How, Progress, Watched, one, one_watched};
use crate::scenario::Handle;

/// Returns a scenario with four hosts and the given tables.
fn hosts(tables: &str) -> Handle {
    lasting("60ms", tables)
}

fn lasting(duration: &str, tables: &str) -> Handle {
    let text = format!(
        r#"
        duration = "{duration}"
        cell.size = "250B"
        topology.leaf_spine.leaves = 2
        topology.leaf_spine.spines = 1
        topology.leaf_spine.hosts_per_leaf = 2
        topology.leaf_spine.host_rate = "100Mbps"
        topology.leaf_spine.host_delay = "10us"
        topology.leaf_spine.uplink_rate = "200Mbps"
        {tables}
        [port.default]
        buffer = 300
        policy.tail_drop = {{}}
        "#
    );
    let (handle, read) = Handle::of_reading(read_toml(&text, "hosts.toml"));
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
        let scenario = hosts(&format!(
            "[requests.web]\nload = 0.3\nsizes = '10kB'\n{stack}\n[incast.query]\nsenders = 3\nbytes = '60kB'\n\
             interval = '10ms'\n{stack}\n[requests.own]\nload = 0.05\nsizes = '5kB'\ntcp.reno = {{}}\n\
             [measure]\nfrom = '1ms'\nto = '40ms'"
        ));
        let [(fast, records), (reference, others)] =
            [Engine::Fast, Engine::Reference].map(|engine| run(&scenario, engine));
        assert_eq!(fast["fingerprint"], reference["fingerprint"], "{stack}");
        assert_eq!(fast["requests"], reference["requests"], "{stack}");
        // Compares texts, because a missing time is NaN, which is not equal to itself.
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
fn a_request_over_a_real_stack_has_a_slowdown_of_1_without_other_traffic() {
    for stack in STACKS {
        let scenario = hosts(&format!("[incast.query]\nsenders = 1\nbytes = '50kB'\ninterval = '20ms'\n{stack}"));
        let (answer, records) = run(&scenario, Engine::Fast);
        assert_eq!(records.slowdown, [1.0, 1.0], "{stack} {answer}");
    }
}

#[test]
fn closing_a_request_frees_its_stack_and_by_default_keeps_no_record_of_the_request() {
    let scenario = hosts(&format!("[requests.web]\nload = 0.3\nsizes = '2kB'\n{}", STACKS[0]));
    let (with, _) = run(&scenario, Engine::Fast);
    let without = one(&scenario, None, How::default(), &AtomicBool::new(false), &Progress::default()).unwrap();
    let without: Value = serde_json::from_str(&without.answer).unwrap();
    assert_eq!((&with["fingerprint"], &with["requests"]), (&without["fingerprint"], &without["requests"]));
}

#[test]
fn a_capture_contains_the_packets_of_requests_over_a_real_stack() {
    let scenario = hosts(&format!("[incast.query]\nsenders = 1\nbytes = '5kB'\ninterval = '20ms'\n{}", STACKS[0]));
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

#[test]
fn a_run_that_lasts_until_all_measured_requests_have_finished_leaves_no_request_open() {
    let all = ["tcp.newreno = { mss = '1460B', timer_granularity = '1ms' }", STACKS[0], STACKS[1]];
    for transport in &all[..if std::env::var_os("CELLTRAIN_NIGHTLY").is_some() { 3 } else { 2 }] {
        let tables = |until: &str| {
            format!(
                "{until}\n[incast.query]\nsenders = 3\nbytes = '60kB'\ninterval = '10ms'\n{transport}\n\
                 [requests.web]\nload = 0.3\nsizes = '10kB'\n{transport}\n[measure]\nfrom = '1ms'\nto = '30ms'"
            )
        };
        let early = lasting("4s", &tables("until = 'finished'"));
        let [fast, reference] = [Engine::Fast, Engine::Reference].map(|engine| run(&early, engine).0);
        assert_eq!(fast["fingerprint"], reference["fingerprint"], "{transport}");
        assert_eq!(fast["requests"], reference["requests"], "{transport}");
        let ends = fast["duration_s"].as_f64().unwrap();
        assert!((0.03..0.1).contains(&ends), "{transport}: {ends}");
        assert_eq!(fast["measured_to_s"], 0.03);
        for group in 0..2 {
            assert_eq!(fast["requests"][group]["open"], 0, "{transport}");
            assert!(fast["requests"][group]["completed"].as_u64() > Some(5));
        }
        let same = lasting(&format!("{}us", (ends * 1e6).round()), &tables(""));
        let same = run(&same, Engine::Fast).0;
        assert_eq!(same["fingerprint"], fast["fingerprint"], "{transport}");
        assert_eq!(same["requests"], fast["requests"], "{transport}");
        // This run ends at its duration of 30.1 ms, before its traffic is complete.
        let bounded = run(&lasting("30.1ms", &tables("until = 'finished'")), Engine::Fast).0;
        assert_eq!(bounded["duration_s"], 0.0301);
        assert!((0..2).any(|group| bounded["requests"][group]["open"].as_u64() > Some(0)), "{bounded}");
    }
}

#[test]
fn a_run_that_lasts_until_all_files_have_arrived_ends_when_the_last_file_arrives() {
    let text = |until: &str, stack: &str| {
        format!(
            "duration = '20s'\n{until}\n{stack}\ntopology.n_source = {{ sources = 3, link_delay = '5us' }}\n\
             [flow.tcp1]\ntraffic.file.bytes = '100kB'\n[flow.tcp2]\ntraffic.file.bytes = '300kB'\nstart = '10ms'\n\
             [port.bottleneck]\nbuffer = 2000\npolicy.epd = {{}}\n"
        )
    };
    for stack in ["", "stack.smoltcp = {}"] {
        let read = |until| {
            let (handle, read) = Handle::of_reading(read_toml(&text(until, stack), "files.toml"));
            handle.unwrap_or_else(|| panic!("{:?}", read.reading.faults))
        };
        let answer = |engine| {
            let how = How { engine, ..How::default() };
            let run = one(&read("until = 'finished'"), None, how, &AtomicBool::new(false), &Progress::default());
            serde_json::from_str::<Value>(&run.unwrap().answer).unwrap()
        };
        let [fast, reference] = [Engine::Fast, Engine::Reference].map(answer);
        assert_eq!(fast["fingerprint"], reference["fingerprint"], "{stack}");
        let second = fast["flows"][1]["completion_s"].as_f64().unwrap() + 0.01;
        let [first, ends] = [&fast["flows"][0]["completion_s"], &fast["duration_s"]].map(|one| one.as_f64().unwrap());
        // The engine checks every 20 ms whether the run may end.
        assert!((0.0..0.0201).contains(&(ends - first.max(second))), "{stack}: {first} {second} {ends}");
    }
}
