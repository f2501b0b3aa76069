//! Tests of requests and answers as the lab page uses them. Tests in `lab/tests/engine` check the contents of answers
//! with the page's own code.

use std::sync::atomic::{AtomicU64, Ordering};

use celltrain_web::answer::Column;
use celltrain_web::calls::answer;
use serde_json::{Value, json};

const SCENARIO: &str = r#"
    duration = "50ms"
    [topology.n_source]
    sources = 2
    link_delay = "5us"
    [port.bottleneck]
    buffer = 100
    [port.bottleneck.policy.epd]
    threshold = 80
"#;

fn limits() -> Value {
    json!({"seconds": 1e3, "memory": 1_u64 << 30})
}

fn ask(request: &Value) -> (Value, Vec<Column>) {
    let answered = answer(request.to_string().as_bytes(), |_| ());
    (serde_json::from_str(&answered.text).expect("the answer is valid JSON"), answered.columns)
}

#[test]
fn a_malformed_request_from_the_lab_page_returns_an_error_and_does_not_panic() {
    for request in [&b"{"[..], b"\xff", br#"{"call": "fly"}"#, br#"{"call": "check", "toml": 1}"#] {
        let answered = answer(request, |_| ());
        assert!(answered.text.contains(r#""kind":"broken""#), "{}", answered.text);
    }
}

#[test]
fn a_run_on_the_lab_page_reports_progress_and_gives_the_command_lines_result() {
    static TOLD: AtomicU64 = AtomicU64::new(0);
    let request =
        json!({"call": "run", "toml": SCENARIO, "seed": 3, "engine": null, "series": null, "limits": limits()});
    let answered = answer(request.to_string().as_bytes(), |done| {
        assert!((0.0..=1.0).contains(&done));
        TOLD.fetch_add(1, Ordering::Relaxed);
    });
    let answer: Value = serde_json::from_str(&answered.text).expect("the text is valid JSON");
    assert_eq!(answer["ok"]["answer"]["seed"], 3);
    assert_eq!(answer["ok"]["answer"]["fingerprint"].as_str().map(str::len), Some(16));
    assert!(TOLD.load(Ordering::Relaxed) > 0);
}

#[test]
fn the_lab_page_result_refers_to_series_by_column_index() {
    let series = json!({"names": ["queue", "occupancy"], "ports": "all", "step": "10ms"});
    let request =
        json!({"call": "run", "toml": SCENARIO, "seed": 3, "engine": "fast", "series": series, "limits": limits()});
    let (answer, columns) = ask(&request);
    let shown = &answer["ok"]["series"];
    let column = |value: &Value| &columns[usize::try_from(value["$column"].as_u64().unwrap()).unwrap()];
    let Column::Numbers(times) = column(&shown["time_s"]) else { panic!("times are numbers") };
    assert_eq!(times, &[0.0, 0.01, 0.02, 0.03, 0.04, 0.05]);
    for measure in ["queue_cells", "queue_cells_least", "queue_cells_largest", "occupancy_cells"] {
        let measure = &shown["measures"][measure];
        let Column::Numbers(values) = column(&measure["values"]) else { panic!("these are numbers") };
        assert_eq!(values.len(), 6 * measure["names"].as_array().unwrap().len());
    }
    assert_eq!(shown["measures"]["occupancy_cells"]["ports"][0], answer["ok"]["answer"]["ports"][0]["name"]);
}

#[test]
fn a_run_on_the_lab_page_returns_request_rows_only_on_demand() {
    let toml = r#"
        duration = "10ms"
        [topology.leaf_spine]
        leaves = 2
        spines = 1
        hosts_per_leaf = 2
        host_rate = "1Gbps"
        host_delay = "1us"
        uplink_rate = "1Gbps"
        [incast.query]
        senders = 3
        bytes = "30kB"
        interval = "2ms"
        [tcp.newreno]
        mss = "1460B"
        receive_window = "1MB"
        timer_granularity = "1ms"
        [port.default]
        buffer = 3000
        [port.default.policy.ppd]
    "#;
    let request =
        |requests: bool| json!({"call": "run", "toml": toml, "seed": 1, "requests": requests, "limits": limits()});
    let (answer, columns) = ask(&request(true));
    let shown = &answer["ok"]["requests"];
    let column = |value: &Value| &columns[usize::try_from(value["$column"].as_u64().unwrap()).unwrap()];
    assert_eq!(shown["group"]["words"], json!(["query"]));
    let Column::Places(groups) = column(&shown["group"]["at"]) else { panic!("groups are indices") };
    let Column::Numbers(times) = column(&shown["completion_ms"]) else { panic!("times are numbers") };
    let Column::Numbers(slowdowns) = column(&shown["slowdown"]) else { panic!("slowdowns are numbers") };
    let of_group = &answer["ok"]["answer"]["requests"][0];
    assert_eq!(json!(groups.len()), of_group["opened"]);
    assert_eq!(json!(times.iter().filter(|time| !time.is_nan()).count()), of_group["completed"]);
    assert!(slowdowns.iter().zip(times).all(|(slowdown, time)| slowdown.is_nan() == time.is_nan()));
    let (without, _) = ask(&request(false));
    assert_eq!(without["ok"]["requests"], Value::Null);
    assert_eq!(without["ok"]["answer"]["fingerprint"], answer["ok"]["answer"]["fingerprint"]);
}

#[test]
fn a_run_on_the_lab_page_measures_packet_delays_only_if_the_page_requests_them() {
    let request =
        |delays: bool| json!({"call": "run", "toml": SCENARIO, "seed": 3, "delays": delays, "limits": limits()});
    let [(with, _), (without, _)] = [true, false].map(|delays| ask(&request(delays)));
    for (list, measure) in [("ports", "delay_ms_p99"), ("flows", "rtt_ms_p50")] {
        assert!(with["ok"]["answer"][list][0][measure].is_number(), "{list}");
        assert_eq!(without["ok"]["answer"][list][0].get(measure), None, "{list}");
    }
    assert_eq!(with["ok"]["answer"]["fingerprint"], without["ok"]["answer"]["fingerprint"]);
}

#[test]
fn every_call_from_the_lab_page_with_a_time_limit_reports_when_the_limit_expires() {
    let none = json!({"seconds": 0.0, "memory": 1_u64 << 30});
    let chosen = json!({"kinds": ["cells"], "from": null, "to": null, "ports": null, "flows": null, "most_rows": 10});
    let requests = [
        json!({"call": "check", "toml": SCENARIO, "limits": none}),
        json!({"call": "run", "toml": SCENARIO, "seed": 3, "engine": null, "series": null, "limits": none}),
        json!({"call": "events", "toml": SCENARIO, "seed": 3, "chosen": chosen, "limits": none}),
        json!({"call": "buffer", "toml": SCENARIO, "seed": 3, "port": "bottleneck", "from": 0.0, "to": 0.01,
               "most_steps": 10, "limits": none}),
    ];
    for request in requests {
        let (answer, _) = ask(&request);
        assert_eq!(answer["error"]["kind"], "too_long", "{request} {answer}");
    }
}

#[test]
fn a_check_returns_all_parts_of_the_network_that_the_lab_page_draws() {
    let (answer, _) = ask(&json!({"call": "check", "toml": SCENARIO, "limits": limits()}));
    let network = &answer["ok"]["network"];
    let bottleneck = &network["links"][usize::try_from(network["bottleneck"].as_u64().unwrap()).unwrap()];
    assert_eq!((&bottleneck["policy"], &bottleneck["buffer_cells"]), (&json!("epd"), &json!(100)));
    assert_eq!((&bottleneck["in_order"], &answer["ok"]["does_not_fit"]), (&json!(true), &json!(false)));
    let turns = format!("{SCENARIO}\n[port.bottleneck.scheduler.round_robin]");
    let (answer, _) = ask(&json!({"call": "check", "toml": turns, "limits": limits()}));
    let links = answer["ok"]["network"]["links"].as_array().unwrap();
    assert_eq!(links.iter().filter(|link| link["in_order"] == false).count(), 1, "only the bottleneck");
    let of_flow = |flow: u64| network["vcs"].as_array().unwrap().iter().filter(move |vc| vc["flow"] == flow).count();
    assert_eq!([of_flow(0), of_flow(1)], [2, 2], "data and acknowledgements");
    assert_eq!(network["duration_s"], 0.05);
}
