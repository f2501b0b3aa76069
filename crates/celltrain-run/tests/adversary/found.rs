//! Regression tests for values, found by random testing, that once caused a wrapped number, a panic or an endless run.

use std::time::Instant;

use celltrain_core::engine::Engine;
use celltrain_scenario::{build, tables};

use super::{keys, scenario};

/// Returns a scenario of five sources at one port, with `more` appended.
fn lan(more: &str) -> String {
    format!(
        "duration = \"20ms\"\n\
         topology.n_source = {{ sources = 5, link_delay = \"5us\" }}\n\
         port.default = {{ buffer = 3000, policy.epd = {{ threshold = 2800 }} }}\n{more}\n"
    )
}

#[test]
fn a_gfr_burst_of_two_frames_of_the_largest_maximum_size_does_not_overflow_32_bits() {
    // Two frames of the maximum frame size (MFS) used to wrap to 2 in 32 bits, so every other frame was ineligible.
    // With a contract this large, all frames are eligible.
    let of_mfs = |mfs: &str| {
        let text = lan(&format!("vc.tcp1.gfr = {{ mcr = \"1Mbps\", {mfs} }}"));
        let network = build::network(&scenario(&text), 1);
        Engine::ALL.map(|engine| {
            let result = engine.run_to_end(&network);
            let [contract] = result.contracts.as_slice() else { panic!("only tcp1 has a contract") };
            (contract.edge.frames, contract.edge.eligible_frames)
        })
    };
    for (frames, eligible) in of_mfs("mfs = 2147483649").into_iter().chain(of_mfs("mfs = 4294967295")) {
        assert!(frames > 50, "{frames}");
        assert_eq!(frames, eligible);
    }
    let narrow = of_mfs("mfs = 12, mbs = 24");
    assert!(narrow.iter().all(|(frames, eligible)| eligible < frames), "the contract matters: {narrow:?}");
}

#[test]
fn a_packet_that_needs_more_cells_than_the_cell_counter_can_represent_is_refused() {
    let text = lan("flow.tcp1.traffic.constant_rate = { rate = \"1Mbps\", packet = \"300000MB\" }");
    assert_eq!(keys(&text), ["flow.tcp1.traffic.constant_rate.packet"]);
}

#[test]
fn a_segment_or_window_size_of_the_largest_integer_is_refused() {
    let of_tcp = |table: &str| {
        let mut keys = keys(&lan(table));
        keys.retain(|key| key.contains("tcp."));
        keys
    };
    for most in ["18446744073709551507B", "18446744073709551615B"] {
        let both = of_tcp(&format!("tcp.vanilla.mss = \"{most}\""));
        assert_eq!(both, ["tcp.vanilla.mss", "tcp.vanilla.receive_window"]);
        let both = of_tcp(&format!("flow.tcp1.tcp.sack.mss = \"{most}\""));
        assert_eq!(both, ["flow.tcp1.tcp.sack.mss", "flow.tcp1.tcp.sack.receive_window"]);
        assert_eq!(of_tcp(&format!("tcp.vanilla.receive_window = \"{most}\"")), ["tcp.vanilla.receive_window"]);
    }
}

#[test]
fn minimum_rates_whose_sum_exceeds_64_bits_are_refused() {
    let one = |i: u32| format!("vc.tcp{i}.gfr = {{ mcr = \"18446744073709551615bps\", mfs = 12 }}\n");
    let text = lan(&(1..=3).map(one).collect::<String>());
    let keys = keys(&text);
    assert!(keys.contains(&"vc.tcp1.gfr.mcr".to_string()) && keys.contains(&"vc".to_string()), "{keys:?}");
}

#[test]
fn a_round_trip_time_of_a_thousand_years_is_limited_to_the_maximum_simulated_time() {
    // The round-trip delay of ten thousand links, each of half an hour, exceeds 64 bits in picoseconds.
    let text = "duration = \"1ms\"\n\
                topology.chain = { hops = 10000, long = 1, cross = 0, link_delay = \"1800s\" }\n\
                port.default = { buffer = 100, policy.tail_drop = {}, allocator.equal_share = {} }\n\
                vc.long1.abr = {}\n";
    let network = build::network(&scenario(text), 1);
    let vc = network.vcs.first().expect("the network has a flow");
    assert_eq!(network.round_trip(vc).picoseconds, u64::MAX);
    let abr = vc.abr.as_ref().expect("the VC is under rate control");
    // TBE / FRTT: 2^24 - 1 cells in 1.8e7 seconds.
    let icr = abr.rates(network.links[vc.path[0]].rate, network.round_trip(vc)).icr;
    assert!((0.9..0.92).contains(&icr), "{icr}");
}

#[test]
fn a_number_in_a_scenario_has_exactly_the_same_value_in_toml_and_in_json() {
    // The JSON parser without exact conversion of decimals used to return a neighbouring number.
    for number in ["0.30000000000000004", "0.12345678901234568", "0.9007199254740993", "0.1234567890123456789"] {
        let toml = scenario(&lan(&format!(
            "port.bottleneck.buffer = 100\nport.bottleneck.policy.fba = {{ threshold = {number} }}"
        )));
        let meant: f64 = number.parse().unwrap();
        let json = serde_json::json!({
            "duration": "20ms",
            "topology": {"n_source": {"sources": 5, "link_delay": "5us"}},
            "port": {
                "default": {"buffer": 3000, "policy": {"epd": {"threshold": 2800}}},
                "bottleneck": {"buffer": 100, "policy": {"fba": {"threshold": -1.5}}},
            },
        });
        let text = json.to_string().replace("-1.5", number);
        let json = celltrain_scenario::read_json(&text, "json").scenario.expect("the scenario is valid");
        assert_eq!(json, toml);
        let policy = serde_json::to_value(&json.port["bottleneck"].policy).unwrap();
        assert_eq!(policy["fba"]["threshold"].as_f64(), Some(meant));
    }
}

#[test]
fn a_name_pattern_with_many_wildcards_is_matched_quickly() {
    // Regression: the search tried every combination of positions of the wildcards, which took years for thirty
    // wildcards.
    let pattern = "a*".repeat(60) + "b";
    let link = "a".repeat(4000);
    let start = Instant::now();
    assert!(!tables::matches(&pattern, &link));
    assert!(tables::matches(&pattern, &(link + "b")));
    assert!(start.elapsed().as_secs() < 60, "the matching takes less than a minute");
}

/// Returns whether a pattern matches a name, by trying all strings that its wildcards can match.
fn stands_for(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([b'*', rest @ ..], _) => (0..=name.len()).any(|start| stands_for(rest, &name[start..])),
        ([first, pattern @ ..], [letter, name @ ..]) => first == letter && stands_for(pattern, name),
        _ => pattern.is_empty() && name.is_empty(),
    }
}

/// Returns all strings that consist of at most `longest` of these letters.
fn texts(letters: &str, longest: usize) -> Vec<String> {
    let (mut texts, mut shorter) = (vec![String::new()], 0);
    for _ in 0..longest {
        let longer =
            texts[shorter..].iter().flat_map(|text| letters.chars().map(move |letter| format!("{text}{letter}")));
        let longer: Vec<String> = longer.collect();
        shorter = texts.len();
        texts.extend(longer);
    }
    texts
}

#[test]
fn a_name_pattern_matches_names_that_contain_the_parts_between_its_wildcards_in_order() {
    let names = texts("aé", 6);
    for pattern in texts("aé*", 6) {
        for name in &names {
            let expected = stands_for(pattern.as_bytes(), name.as_bytes());
            assert_eq!(tables::matches(&pattern, name), expected, "{pattern:?} and {name:?}");
        }
    }
}

#[test]
fn averaging_a_rate_over_intervals_of_1_ps_takes_one_computation_step_per_cell() {
    // Regression: the fast engine recorded every averaging interval between two cells, which took 10 GB, and checked
    // the time limit only afterwards.
    for allocator in ["erica", "erica_plus"] {
        let text = "duration = \"5ms\"\n\
             topology.n_source = { sources = 3, link_delay = \"1ms\" }\n\
             port.default = { buffer = 3000, policy.tail_drop = {}, allocator.ALLOCATOR = { interval = \"1ps\" } }\n\
             vc.tcp1-3.abr = {}\n"
            .replace("ALLOCATOR", allocator);
        let network = build::network(&scenario(&text), 1);
        let start = Instant::now();
        let [fast, reference] = Engine::ALL.map(|engine| engine.run_to_end(&network));
        crate::compare::same_results(&fast, &reference).unwrap();
        assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    }
}
