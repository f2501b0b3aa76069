//! Tests on whole files: the scenarios read, and the messages for faulty ones.

use std::fmt::Write;

use celltrain_core::cancellation::CancellationToken;
use celltrain_core::engine::Engine;
use celltrain_core::index::{FlowIndex, LinkIndex, VcIndex};
use celltrain_core::max_min;
use celltrain_core::metrics::jain;
use celltrain_core::network::Network;
use celltrain_core::policy::PolicyConfig;
use celltrain_core::probe::Nothing;
use celltrain_core::scheduler::SchedulerConfig;
use celltrain_core::tcp::TcpConfig;
use celltrain_core::traffic::TrafficConfig;
use proptest::prelude::*;

use crate::topology::Topology;
use crate::{Machine, Reading, build, read_json, read_toml};

const GOOD: &str = r#"name = "five sources, LAN, EPD"
duration = "10s"
seed = 1

[topology.n_source]
sources = 5
link_rate = "155.52Mbps"
link_delay = "5us"

[tcp.vanilla]
mss = "512B"
receive_window = "65535B"
timer_granularity = "100ms"

[port.bottleneck]
buffer = 1000                 # cells

[port.bottleneck.policy.epd]
threshold = 800               # cells
"#;

const GENERAL: &str = r#"duration = "1s"
[topology.network]
hosts = ["a", "b"]
switches = ["s", "t"]
links = [
    { between = ["a", "s"], delay = "1us" },
    { between = ["s", "t"], delay = "1ms", rate = "34.368Mbps" },
    { between = ["t", "b"], delay = "1us" },
]
flows = [{ from = "a", to = "b" }]
[port.default]
buffer = 500
policy.tail_drop = {}
"#;

fn read(text: &str) -> Reading {
    read_toml(text, "test.toml", with_memory(16 << 30))
}

fn messages(text: &str) -> Vec<String> {
    read(text).faults.into_iter().map(|fault| fault.message).collect()
}

/// Returns the only message of a good file with `from` replaced by `to`.
fn message(from: &str, to: &str) -> String {
    only(GOOD, from, to)
}

fn only(good: &str, from: &str, to: &str) -> String {
    assert!(good.contains(from), "{from}");
    let messages = messages(&good.replacen(from, to, 1));
    assert_eq!(messages.len(), 1, "{messages:#?}");
    messages.into_iter().next().unwrap()
}

#[test]
fn a_good_file_is_read_with_its_defaults() {
    let reading = read(GOOD);
    assert_eq!(reading.faults, []);
    let scenario = reading.scenario.unwrap();
    assert!(matches!(&scenario.topology, Topology::NSource(config) if config.sources == 5));
    assert_eq!(scenario.tcp.options().minimum_rto, 2);
    assert_eq!(scenario.port["bottleneck"].policy.name(), "epd");
    let network = build::network(&scenario, 7);
    assert_eq!((network.seed, network.flows.len(), network.links[LinkIndex::new(0)].buffer), (7, 5, Some(1000)));
}

#[test]
fn a_scenario_survives_the_way_through_json() {
    for text in [GOOD, GENERAL] {
        let scenario = read(text).scenario.unwrap();
        let json = serde_json::to_string(&scenario).unwrap();
        assert_eq!(read_json(&json, "x", Machine::default()).scenario, Some(scenario));
    }
}

#[test]
fn a_general_network_finds_its_paths_and_its_bottleneck() {
    let scenario = read(GENERAL).scenario.unwrap();
    let network = build::network(&scenario, 1);
    assert_eq!(network.links[network.bottleneck].name, "s->t");
    let names = |vc: VcIndex| -> Vec<_> {
        network.vcs[vc].path.iter().map(|&link| network.links[link].name.as_str()).collect()
    };
    assert_eq!(names(VcIndex::new(0)), ["a->s", "s->t", "t->b"]);
    assert_eq!(names(VcIndex::new(1)), ["b->t", "t->s", "s->a"]);
    assert_eq!(network.links[LinkIndex::new(0)].buffer, None, "a host's own queue has no limit");
}

#[test]
fn the_internetwork_has_an_edge_device_at_each_end_of_a_path() {
    let text = r#"
duration = "1ms"
topology.internetwork = { sources = 2, ip_delay = "3ms", atm_delay = "1ms", bidirectional = true }
edge."*" = { buffer = 500 }
port.bottleneck = { buffer = 1000, policy.tail_drop = {} }
"#;
    let network = build::network(&read(text).scenario.unwrap(), 1);
    let names = |vc: VcIndex| -> Vec<_> {
        network.vcs[vc].path.iter().map(|&link| network.links[link].name.as_str()).collect()
    };
    let there = ["source2->edge2", "edge2->sw1", "sw1->sw2", "sw2->far-edge2", "far-edge2->destination2"];
    let back = ["destination2->far-edge2", "far-edge2->sw2", "sw2->sw1", "sw1->edge2", "edge2->source2"];
    let [second, fourth] = [1, 3].map(FlowIndex::new);
    let flow = |flow: FlowIndex| [network.flows[flow].data_vc, network.flows[flow].ack_vc].map(names);
    assert_eq!(network.flows.len(), 4);
    assert_eq!(flow(second), [there, back]);
    assert_eq!(network.flows[fourth].name, "tcp4", "the other direction follows");
    assert_eq!(flow(fourth), [back, there]);
    let delays = network.vcs[network.flows[second].data_vc].path.iter().map(|&link| network.links[link].delay);
    assert_eq!(delays.map(|delay| delay.picoseconds / 1_000_000_000).collect::<Vec<_>>(), [3, 0, 1, 0, 3]);
    let buffered: Vec<_> = network.links.iter().filter(|link| link.edge.is_some()).map(|link| &link.name).collect();
    assert_eq!(buffered, ["edge1->sw1", "far-edge1->sw2", "edge2->sw1", "far-edge2->sw2"], "not towards hosts");
}

#[test]
fn every_fault_is_named_with_its_line_key_and_value() {
    let cases = [
        (
            "threshold = 800",
            "threshold = 1900",
            "test.toml:19: port.bottleneck.policy.epd.threshold = 1900 is above the buffer of 1000 cells; a threshold is at most the buffer",
        ),
        (
            "buffer = 1000",
            "bufer = 1000",
            "test.toml:16: port.bottleneck.bufer is unknown; did you mean buffer? Known keys: allocator, buffer, policy, scheduler",
        ),
        (
            "buffer = 1000",
            "buffer = \"big\"",
            "test.toml:16: port.bottleneck.buffer = \"big\" is not a whole number of cells such as 1000, or \"infinite\"",
        ),
        (
            "sources = 5",
            "sources = 0",
            "test.toml:6: topology.n_source.sources = 0 is not a whole number (1 to 1000000)",
        ),
        (
            "sources = 5",
            "sources = -5",
            "test.toml:6: topology.n_source.sources = -5 is not a whole number (1 to 1000000)",
        ),
        (
            "\"155.52Mbps\"",
            "\"0Mbps\"",
            "test.toml:7: topology.n_source.link_rate = \"0bps\" is not a positive rate from 424bps to 10000Gbps",
        ),
        (
            "\"155.52Mbps\"",
            "\"-1Mbps\"",
            "test.toml:7: topology.n_source.link_rate = \"-1Mbps\" is not a rate (it is negative); write a number and one of Gbps, Mbps, kbps, bps, for example \"155.52Mbps\"",
        ),
        (
            "\"5us\"",
            "5",
            "test.toml:8: topology.n_source.link_delay = 5 is not a time (no unit); write a number and one of s, ms, us, ns, ps, for example \"5us\"",
        ),
        ("\"10s\"", "\"0s\"", "test.toml:2: duration = \"0s\" is not a positive time up to 1000000s"),
        (
            "policy.epd]\nthreshold = 800",
            "policy.edp]\nthreshold = 800",
            "test.toml:18: port.bottleneck.policy.edp is unknown; did you mean epd? It must be one of {policies}",
        ),
    ];
    for (from, to, expected) in cases {
        let expected = expected.replace("{policies}", &PolicyConfig::NAMES.join(", "));
        assert_eq!(messages(&GOOD.replacen(from, to, 1)), [expected]);
    }
}

#[test]
fn all_faults_are_reported_at_once() {
    let text = GOOD
        .replace("seed = 1", "sed = 1")
        .replace("\"5us\"", "\"5 leagues\"")
        .replace("\"512B\"", "\"0B\"")
        .replace("buffer = 1000", "buffer = 5");
    let messages = messages(&text);
    assert!(messages.len() >= 2, "{messages:#?}");
    assert!(messages[0].starts_with("test.toml:3: sed is unknown"), "{messages:#?}");
    let text = GOOD.replace("seed = 1", "sed = 1").replace("threshold = 800", "threshold = 1001");
    assert_eq!(read(&text).faults.iter().map(|fault| fault.line).collect::<Vec<_>>(), [Some(3), Some(19)]);
}

#[test]
fn faults_of_different_kinds_do_not_hide_each_other() {
    let text = GENERAL
        .replace("duration", "sed = 1\nduration")
        .replace("delay = \"1ms\", rate = \"34.368Mbps\"", "delay = \"1ms\", rate = \"0bps\"")
        .replace("to = \"b\" }", "to = \"zz\" }, { from = \"a\", to = \"b\", path = [\"a\", \"s\", \"a\", \"b\"] }")
        .replace("buffer = 500", "buffer = 0")
        .replace("policy.tail_drop = {}", "policy.epd = { threshold = 9 }");
    let messages = messages(&text);
    for expected in [
        "sed is unknown",
        "\"0bps\" is not a positive rate",
        "\"zz\" is not a host",
        "is a loop",
        "buffer = 0 is",
        "threshold = 9 is above",
    ] {
        assert!(messages.iter().any(|message| message.contains(expected)), "{expected}: {messages:#?}");
    }
}

#[test]
fn a_misspelt_or_refused_port_is_not_missing_as_well() {
    let misspelt = messages(&GOOD.replace("port.bottleneck", "port.botleneck"));
    assert!(misspelt.len() == 1 && misspelt[0].contains("did you mean \"bottleneck\"?"), "{misspelt:#?}");
    let refused = format!("{}port.bottleneck = 5\n", GOOD.split("[topology").next().unwrap());
    let refused = refused + "[topology" + GOOD.split("[topology").nth(1).unwrap().split("[port").next().unwrap();
    assert_eq!(messages(&refused).len(), 1, "{:#?}", messages(&refused));
}

#[test]
fn a_missing_key_says_what_it_must_be() {
    assert_eq!(
        message("duration = \"10s\"\n", ""),
        "test.toml:1: duration is missing; it must be a time such as \"10s\""
    );
    let text = GOOD.split("[port.bottleneck.policy").next().unwrap();
    let policies = PolicyConfig::NAMES.join(", ");
    let problem = format!("is missing; it must be a table named after one of {policies}");
    assert_eq!(messages(text), [format!("test.toml:15: port.bottleneck.policy {problem}")]);
}

#[test]
fn a_port_without_a_table_is_named() {
    let text = GOOD.split("[port.bottleneck]").next().unwrap();
    let problem = "has no buffer and no policy; write its table, or [port.default] for all others";
    assert_eq!(messages(text), [format!("test.toml:1: port.bottleneck {problem}")]);
}

#[test]
fn a_buffer_smaller_than_a_frame_is_refused() {
    let text = GOOD.replace("buffer = 1000", "buffer = 11").replace("threshold = 800", "threshold = 5");
    assert_eq!(
        messages(&text),
        ["test.toml:16: port.bottleneck.buffer = 11 is smaller than a frame; a buffer holds at least 12 cells"]
    );
}

fn with_memory(bytes: u64) -> Machine {
    Machine { memory: Some(bytes) }
}

#[test]
fn more_memory_than_the_machine_has_is_refused() {
    let billion = message("buffer = 1000", "buffer = 1_000_000_000");
    assert!(billion.contains("more than 268435456 cells") && billion.contains("infinite"), "{billion}");
    // Refused by the bare network, before it is laid out; and by its records.
    for (sources, memory) in [("900000", 1 << 30), ("900", 4 << 20)] {
        let text = GOOD.replace("sources = 5", &format!("sources = {sources}"));
        let reading = read_toml(&text, "x.toml", with_memory(memory));
        let [fault] = &reading.faults[..] else { panic!("{:?}", reading.faults) };
        let begins = format!("x.toml:6: topology.n_source.sources = {sources} makes a network that does not fit: ");
        assert!(fault.message.starts_with(&begins), "{}", fault.message);
        assert!(fault.message.contains(" times, take more than "), "{}", fault.message);
        assert!(fault.message.ends_with("smaller windows take less"), "{}", fault.message);
    }
    // The limit is three quarters of the memory, to the byte.
    let needs = read_toml(GOOD, "x.toml", Machine::default()).memory.unwrap().least;
    for (free, faults) in [(needs.div_ceil(3) * 4, 0), (needs / 3 * 4 - 4, 1)] {
        assert_eq!(read_toml(GOOD, "x.toml", with_memory(free)).faults.len(), faults);
    }
}

#[test]
fn a_number_that_is_neither_a_share_nor_whole_cells_is_refused_in_words() {
    for policy in ["selective_drop", "epd"] {
        let text = GOOD.replace("epd]\nthreshold = 800", &format!("{policy}]\nthreshold = 1.9"));
        let expected = format!(
            "test.toml:19: port.bottleneck.policy.{policy}.threshold = 1.9 is not a threshold: a share of the buffer (0 to \
             1), a whole number of cells (2 or more), or a text such as \"80%\", \"800 cells\" or \"buffer - 200 cells\""
        );
        assert_eq!(messages(&text), [expected]);
    }
}

#[test]
fn a_small_plain_threshold_gives_a_warning() {
    let warned = |policy: &str| -> Vec<String> {
        let reading = read(&GOOD.replace("epd]\nthreshold = 800               # cells", policy));
        assert_eq!(reading.faults, []);
        reading.warnings.into_iter().map(|warning| format!("{}: {}", warning.key, warning.message)).collect()
    };
    let path = "port.bottleneck.policy";
    assert_eq!(
        warned("epd]\nthreshold = 80"),
        [format!(
            "{path}.epd.threshold: {path}.epd.threshold = 80: 80 cells are 8 % of the buffer; did you mean 80%? Write \
             \"80 cells\" if not"
        )]
    );
    assert_eq!(
        warned("dfba_1998]\nweights = 1\nlow_threshold = 50\nhigh_threshold = 90")
            .iter()
            .map(|warning| warning.split(": ").next().unwrap().to_string())
            .collect::<Vec<_>>(),
        ["low", "high"].map(|which| format!("{path}.dfba_1998.{which}_threshold"))
    );
    assert!(warned("selective_drop]\nthreshold = 1")[0].contains("threshold = 1: 1 is the whole buffer"));
    let allocator = "epd]\n[port.bottleneck.allocator.efci]\nthreshold = 25";
    assert!(warned(allocator)[0].starts_with("port.bottleneck.allocator.efci.threshold: "));
    for policy in ["epd]", "epd]\nthreshold = \"80 cells\"", "epd]\nthreshold = 0.08", "epd]\nthreshold = 200"] {
        assert_eq!(warned(policy), [""; 0], "{policy}");
    }
}

#[test]
fn networks_that_cannot_carry_their_flows_are_refused() {
    let cases = [
        ("between = [\"a\", \"s\"]", "between = [\"a\", \"a\"]", "is a loop: it joins a node to itself"),
        ("between = [\"a\", \"s\"]", "between = [\"a\", \"x\"]", "\"x\" is not a host, a switch or an edge device"),
        ("between = [\"a\", \"s\"]", "between = [\"b\", \"t\"]", "joined already"),
        ("between = [\"a\", \"s\"]", "between = [\"a\"]", "has 1 items; it must have 2"),
        ("to = \"b\"", "to = \"s\"", "\"s\" is not a host; a flow joins two hosts"),
        ("to = \"b\"", "to = \"nowhere\"", "\"nowhere\" is not a host, a switch or an edge device"),
        ("to = \"b\"", "to = \"a\"", "is the flow's own source"),
        (
            "to = \"b\"",
            "to = \"b\", path = [\"a\", \"s\", \"t\", \"s\", \"t\", \"b\"]",
            "is a loop: the path has been there",
        ),
        ("to = \"b\"", "to = \"b\", path = [\"a\", \"t\", \"b\"]", "has no link from \"a\""),
        ("hosts = [\"a\", \"b\"]", "hosts = [\"a\", \"b\", \"a\"]", "names two nodes"),
        (
            "hosts = [\"a\", \"b\"]",
            "hosts = [\"a\", \"b\", \"c\"]\nbottleneck = \"s->x\"",
            "\"s->x\" is not a link; did you mean",
        ),
        ("[port.default]", "[port.\"s->t\"]", "has no buffer and no policy"),
        ("[port.default]", "[port.\"a->s\"]", "is not an output port of a switch"),
    ];
    for (from, to, expected) in cases {
        let messages = messages(&GENERAL.replacen(from, to, 1));
        assert!(messages.iter().any(|message| message.contains(expected)), "{to}: {messages:#?}");
    }
    let unreachable = GENERAL.replace("    { between = [\"t\", \"b\"], delay = \"1us\" },\n", "");
    assert!(messages(&unreachable)[0].contains("cannot be reached from \"a\""));
}

#[test]
fn a_flow_without_a_name_that_would_have_anothers_is_told_apart() {
    let second = |first: &str, second: &str| {
        let end = r#"from = "a", to = "b""#;
        only(
            GENERAL,
            r#"flows = [{ from = "a", to = "b" }]"#,
            &format!("flows = [{{ {end}{first} }}, {{ {end}{second} }}]"),
        )
    };
    let key = "test.toml:10: topology.network.flows[1].name";
    assert_eq!(
        second(", name = \"tcp2\"", ""),
        format!("{key} is missing and would be \"tcp2\", which flows[0] is; names are different")
    );
    assert_eq!(
        second("", ", name = \"tcp1\""),
        format!("{key} = \"tcp1\" names two flows: flows[0] has no name and is that; names are different")
    );
    assert_eq!(
        second(", name = \"x\"", ", name = \"x\""),
        format!("{key} = \"x\" names two flows; names are different")
    );
}

#[test]
fn nodes_that_flows_cannot_reach_give_a_warning() {
    let warned = |hosts: &str, links: &str| -> Vec<String> {
        let text = GENERAL
            .replace("hosts = [\"a\", \"b\"", &format!("hosts = [\"a\", \"b\", {hosts}"))
            .replace("links = [\n", &format!("links = [\n{links}"));
        let reading = read(&text);
        assert_eq!(reading.faults, []);
        reading.warnings.into_iter().map(|warning| format!("{}: {}", warning.key, warning.message)).collect()
    };
    let advice = "nothing is sent there; leave out what is not needed, or link it";
    let key = "topology.network.links";
    assert_eq!(warned("\"z\"", ""), [format!("{key}: host \"z\" is on no link: {advice}")]);
    let island = r#"{ between = ["y", "z"], delay = "1us" }, { between = ["u", "z"], delay = "1us" }, "#;
    assert_eq!(
        warned(r#""p", "q", "u", "y", "z""#, island),
        [
            format!("{key}: 2 nodes (\"p\", \"q\") are on no link: {advice}"),
            format!("{key}: 3 nodes (\"u\", \"y\", \"z\") have no way to the nodes that flows cross: {advice}"),
        ]
    );
    let seven = warned("\"h1\", \"h2\", \"h3\", \"h4\", \"h5\", \"h6\", \"h7\"", "");
    assert!(seven[0].contains("7 nodes (\"h1\", \"h2\", \"h3\", \"h4\", \"h5\" and 2 more) are"), "{seven:?}");
    // A linked node without flows is fine.
    assert_eq!(warned("\"z\"", "{ between = [\"z\", \"t\"], delay = \"1us\" },\n"), [""; 0]);
}

#[test]
fn a_node_that_was_mistyped_in_a_flow_is_guessed() {
    let long = GENERAL.replace("\"a\"", "\"alpha\"").replace("\"b\"", "\"beta\"");
    for (from, to, path) in [
        ("to = \"beta\"", "to = \"bata\"", "to"),
        ("from = \"alpha\"", "from = \"alhpa\"", "from"),
        ("to = \"beta\"", "to = \"beta\", path = [\"alpha\", \"s\", \"t\", \"betta\", \"beta\"]", "path[3]"),
    ] {
        let messages = messages(&long.replacen(from, to, 1));
        let meant = if path == "from" { "alpha" } else { "beta" };
        let found = messages.iter().any(|message| {
            message.contains(&format!("flows[0].{path}")) && message.contains(&format!("did you mean \"{meant}\"?"))
        });
        assert!(found, "{to}: {messages:#?}");
    }
}

const CHAIN: &str = r#"duration = "1s"
[topology.chain]
hops = 3
long = 2
cross = 2
link_delay = "1ms"
access_delay = "5us"
[port."sw*->sw*"]
buffer = 500
policy.tail_drop = {}
"#;

#[test]
fn a_chain_has_long_connections_over_all_switches_and_others_over_two() {
    let network = build::network(&read(CHAIN).scenario.unwrap(), 1);
    let path = |flow: &str| -> Vec<&str> {
        let flow = network.flows.iter().find(|own| own.name == flow).unwrap();
        network.vcs[flow.data_vc].path.iter().map(|&link| network.links[link].name.as_str()).collect()
    };
    let long = ["long-source2->sw1", "sw1->sw2", "sw2->sw3", "sw3->sw4", "sw4->long-destination2"];
    assert_eq!(path("long2"), long);
    // Two on each link between switches, in the order of the links.
    assert_eq!(path("cross1")[1..2], ["sw1->sw2"]);
    assert_eq!(path("cross4"), ["cross-source4->sw2", "sw2->sw3", "sw3->cross-destination4"]);
    assert_eq!(path("cross6")[1], "sw3->sw4");
    assert_eq!(network.flows.len(), 8);
    assert_eq!(network.links[network.bottleneck].name, "sw1->sw2");
    let delays: Vec<_> = ["sw2->sw3", "sw2->cross-destination2"]
        .iter()
        .map(|name| network.links.iter().find(|link| link.name == *name).unwrap().delay.to_string())
        .collect();
    assert_eq!(delays, ["1ms", "5us"]);
}

const STAR: &str = r#"duration = "1s"
[topology.star]
hosts = 4
link_delay = "5us"
[port.default]
buffer = 500
policy.tail_drop = {}
"#;

#[test]
fn a_star_sends_to_one_around_or_to_all() {
    let ends = |pattern: &str| -> Vec<String> {
        let text = STAR.replace("hosts = 4", &format!("hosts = 4\n{pattern}"));
        let network = build::network(&read(&text).scenario.unwrap(), 1);
        assert_eq!(network.links[network.bottleneck].name, "sw->host1");
        let path = |flow: &celltrain_core::network::Flow| &network.vcs[flow.data_vc].path;
        let end = |flow| network.links[path(flow)[1]].name.clone();
        network.flows.iter().map(end).collect()
    };
    assert_eq!(ends(""), ["sw->host1"; 3]);
    assert_eq!(ends("pattern = \"ring\""), ["sw->host2", "sw->host3", "sw->host4", "sw->host1"]);
    assert_eq!(ends("pattern = \"all_pairs\"").len(), 12);
}

#[test]
fn sources_and_hosts_may_have_links_of_their_own() {
    let tables = "access_delays = { source1 = \"1ms\", source2-3 = \"2ms\", default = \"3ms\" }\n\
                  access_rates = { source5 = \"34.368Mbps\" }";
    let text = GOOD.replace("sources = 5", &format!("sources = 5\n{tables}"));
    let network = build::network(&read(&text).scenario.unwrap(), 1);
    let link = |name: &str| network.links.iter().find(|link| link.name == name).unwrap();
    for (source, delay) in [(1, "1ms"), (2, "2ms"), (3, "2ms"), (4, "3ms"), (5, "3ms")] {
        for name in [format!("source{source}->sw1"), format!("sw1->source{source}")] {
            assert_eq!(link(&name).delay.to_string(), delay, "{name}");
        }
    }
    assert_eq!(link("source5->sw1").rate.to_string(), "34.368Mbps");
    assert_eq!(link("source4->sw1").rate, link("sw1->sw2").rate);
    assert_eq!(link("sw2->destination1").delay.to_string(), "5us");
}

#[test]
fn a_link_may_differ_on_the_way_back() {
    let text =
        GENERAL.replace("rate = \"34.368Mbps\"", "rate = \"34.368Mbps\", rate_back = \"2Mbps\", delay_back = \"7ms\"");
    let network = build::network(&read(&text).scenario.unwrap(), 1);
    let link = |name: &str| network.links.iter().find(|link| link.name == name).unwrap();
    let ways = ["s->t", "t->s"].map(|name| (link(name).rate.to_string(), link(name).delay.to_string()));
    assert_eq!(ways, [("34.368Mbps".into(), "1ms".into()), ("2Mbps".into(), "7ms".into())]);
}

#[test]
fn topologies_that_cannot_be_are_refused() {
    let chain = |from: &str, to: &str| only(CHAIN, from, to);
    for (message, expected) in [
        (chain("hops = 3", "hops = 0"), "topology.chain.hops = 0 is not a whole number (1 to 10000)"),
        (chain("link_delay = \"1ms\"", "link_delay = \"-1ms\""), "is not a time"),
        (chain("link_delay = \"1ms\"", "link_delay = \"1\""), "no unit"),
        (chain("link_delay = \"1ms\"", "link_delay = 1"), "no unit"),
        (chain("\"5us\"", "\"3000s\""), "topology.chain.access_delay = \"3000s\" is not a delay up to 1800s"),
        (chain("long = 2", "long = 50000\naccess_rate = \"1bps\""), "access_rate = \"1bps\" is not a positive rate"),
        (chain("cross = 2", "crosses = 2"), "did you mean cross?"),
        (chain("hops = 3\nlong = 2", "hops = 10000\nlong = 100000"), "which cross 1000260000 links in all"),
        (only(STAR, "hosts = 4", "hosts = 1"), "topology.star.hosts = 1 is not a whole number (2 to 1000000)"),
        (
            only(STAR, "hosts = 4", "hosts = 4\npattern = \"all_pair\""),
            "is not one of \"to_one\", \"ring\", \"all_pairs\"; did you mean",
        ),
        (
            only(STAR, "hosts = 4", "hosts = 900000\npattern = \"all_pairs\""),
            "topology.star.hosts makes 809999100000 flows",
        ),
        (
            only(STAR, "hosts = 4", "hosts = 4\naccess_delays = { host5 = \"1ms\" }"),
            "topology.star.access_delays.host5 names none of host1 to host4",
        ),
        (
            message("sources = 5", "sources = 5\naccess_delays = { source3-2 = \"1ms\" }"),
            "names none of source1 to source5",
        ),
        (
            message("sources = 5", "sources = 5\naccess_rates = { source1 = \"0bps\" }"),
            "topology.n_source.access_rates.source1 = \"0bps\" is not a positive rate",
        ),
        (message("sources = 5", "sources = 5\naccess_delays = { source1 = 7 }"), "no unit"),
        (
            only(GENERAL, "delay = \"1ms\"", "delay = \"1ms\", delay_back = \"2000s\""),
            "links[1].delay_back = \"2000s\" is not a delay",
        ),
    ] {
        assert!(message.contains(expected), "{message}\n  lacks {expected}");
    }
    // Every port that connections share needs a table, not only the first.
    let bottleneck_alone = messages(&CHAIN.replace("\"sw*->sw*\"", "bottleneck"));
    assert_eq!(bottleneck_alone.len(), 2);
    assert!(bottleneck_alone[0].contains("port.\"sw2->sw3\" has no buffer and no policy"));
}

fn goodputs_mbps(network: &Network) -> Vec<f64> {
    max_min::goodputs_mbps(network, &CancellationToken::never()).unwrap()
}

/// Returns each flow's max-min fair share, in Mb/s of goodput.
fn fair(text: &str) -> Vec<f64> {
    let reading = read(text);
    let scenario = reading.scenario.unwrap_or_else(|| panic!("{:?}", reading.faults));
    goodputs_mbps(&build::network(&scenario, 1))
}

fn near(found: &[f64], expected: &[f64]) -> bool {
    found.len() == expected.len() && found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-9)
}

/// 512 bytes of 12 cells of 53 bytes are payload.
const PAYLOAD: f64 = 512.0 / 636.0;

#[test]
fn the_shares_of_a_chain_are_those_of_its_formula() {
    for (long, cross) in [(1u8, 1u8), (1, 4), (2, 3), (3, 0)] {
        let text = CHAIN.replace("long = 2\ncross = 2", &format!("long = {long}\ncross = {cross}"));
        let shares = vec![155.52 / f64::from(long + cross) * PAYLOAD; usize::from(long + 3 * cross)];
        assert!(near(&fair(&text), &shares), "{long} long, {cross} on each link: {:?}", fair(&text));
    }
    // If hosts are slow, the trunks limit no flow.
    let slow = CHAIN.replace("access_delay", "access_rate = \"10Mbps\"\naccess_delay");
    assert!(near(&fair(&slow), &[10.0 * PAYLOAD; 8]));
}

#[test]
fn shares_follow_from_the_slowest_lines_upward() {
    // By hand: tcp2 gets 10, tcp5 gets 20, and 125.52 are left for three.
    let third = 125.52 / 3.0 * PAYLOAD;
    let text = GOOD.replace(
        "sources = 5",
        "sources = 5\naccess_rates = { source2 = \"10Mbps\", source5 = \"20Mbps\", source1 = \"100Mbps\" }",
    );
    assert!(near(&fair(&text), &[third, 10.0 * PAYLOAD, third, third, 20.0 * PAYLOAD]), "{:?}", fair(&text));
    // 30 Mb/s half of the time, with 960 bytes of payload in 21 cells of 53 bytes, leave 140.52 to four flows. One of
    // them, with frames of 192 cells, has more payload in its share; one is paced at 5 Mb/s.
    let own = "\n[flow.tcp3.traffic.on_off]\nrate = \"30Mbps\"\non = \"1ms\"\noff = \"1ms\"\npacket = \"960B\"\n\
               [flow.tcp4.tcp.reno]\nmss = \"9140B\"\n[flow.tcp5.tcp.reno]\npacing_rate = \"5Mbps\"\n";
    let share = (155.52 - 15.0 - 5.0) / 3.0;
    let packet = 960.0 / f64::from(53 * 21);
    let large = 9140.0 / f64::from(53 * 192);
    let expected = [share * PAYLOAD, share * PAYLOAD, 15.0 * packet, share * large, 5.0 * PAYLOAD];
    let found = fair(&format!("{GOOD}{own}"));
    assert!(near(&found, &expected), "{found:?} {expected:?}");
}

#[test]
fn shares_of_links_of_several_rates_are_those_found_by_hand() {
    // Three links in a row of 50, 150 and 100 Mb/s. a crosses all, b and c the first, d the second, e and f the last
    // two.
    //   first: 50 / 3 each for a, b, c   (then 133.33 are left of the second for d, e, f; 83.33 of the third for e, f)
    //   third: 83.33 / 2 each for e, f
    //   second: 133.33 - 83.33 = 50 for d
    let trunk = |a, b, rate| format!(r#"{{ between = ["s{a}", "s{b}"], delay = "1ms", rate = "{rate}Mbps" }},"#);
    let line = |host, switch| format!(r#"{{ between = ["{host}", "s{switch}"], delay = "1us", rate = "1Gbps" }},"#);
    let flows = [("a", 1, 4), ("b", 1, 2), ("c", 1, 2), ("d", 2, 3), ("e", 2, 4), ("f", 2, 4)];
    let mut links = trunk(1, 2, 50) + &trunk(2, 3, 150) + &trunk(3, 4, 100);
    let (mut hosts, mut ends) = (String::new(), String::new());
    for (name, from, to) in flows {
        links += &(line(name.to_string(), from) + &line(format!("to-{name}"), to));
        write!(hosts, r#""{name}", "to-{name}", "#).unwrap();
        write!(ends, r#"{{ name = "{name}", from = "{name}", to = "to-{name}" }},"#).unwrap();
    }
    let text = format!(
        "duration = \"1s\"\n[topology.network]\nhosts = [{hosts}]\nswitches = [\"s1\", \"s2\", \"s3\", \"s4\"]\n\
         links = [{links}]\nflows = [{ends}]\n[port.default]\nbuffer = 500\npolicy.tail_drop = {{}}\n"
    );
    let line = [50.0 / 3.0, 50.0 / 3.0, 50.0 / 3.0, 50.0, 125.0 / 3.0, 125.0 / 3.0];
    let expected = line.map(|share| share * PAYLOAD);
    assert!(near(&fair(&text), &expected), "{:?}", fair(&text));
}

#[test]
fn fairness_by_max_min_shares_compares_parts_of_them() {
    // Nothing is lost, so all flows send as much as they may.
    let text = GOOD
        .replace("10s", "300ms")
        .replace("sources = 5", "sources = 5\naccess_rates = { source1-2 = \"5Mbps\" }")
        .replace("buffer = 1000 ", "buffer = \"infinite\" ")
        .replace("threshold = 800 ", "threshold = 100000 ");
    let network = build::network(&read(&text).scenario.unwrap(), 1);
    let result = Engine::Fast.run(&network, &mut Nothing, |_| true).unwrap();
    let parts: Vec<f64> = result.flows.iter().map(|flow| flow.goodput_mbps / flow.max_min_mbps).collect();
    let goodputs: Vec<f64> = result.flows.iter().map(|flow| flow.goodput_mbps).collect();
    let fair: Vec<f64> = result.flows.iter().map(|flow| flow.max_min_mbps).collect();
    assert!(near(&fair, &goodputs_mbps(&network)) && (fair[0] - 5.0 * PAYLOAD).abs() < 1e-9);
    assert_eq!(result.fairness_max_min, jain(&parts));
    assert_eq!(result.fairness, jain(&goodputs));
    assert!(result.fairness_max_min.unwrap() > result.fairness.unwrap() + 0.1, "slow lines are no unfairness");
}

#[test]
fn networks_beyond_a_stated_size_are_refused_before_anything_is_laid_out() {
    let links = "{ between = [\"a\", \"s\"], delay = \"1us\" },".repeat(100_001);
    let text = GENERAL.replace("links = [", &format!("links = [{links}"));
    assert_eq!(messages(&text), ["test.toml:5: topology.network.links has 100004 items; 100000 is the most"]);
    // A row of switches, crossed from end to end.
    let name = |i: u32| format!("\"s{i}\", ");
    let switches: String = (0..2_001).map(name).collect();
    let trunk = |i: u32| format!("{{ between = [\"s{i}\", \"s{}\"], delay = \"1us\" }},", i + 1);
    let ends = "{ between = [\"a\", \"s0\"], delay = \"1us\" }, { between = [\"b\", \"s2000\"], delay = \"1us\" },";
    let links: String = (0..2_000).map(trunk).chain([ends.to_string()]).collect();
    let flows = "{ from = \"a\", to = \"b\" },".repeat(5_001);
    let text = format!(
        "duration = \"1s\"\n[topology.network]\nhosts = [\"a\", \"b\"]\nswitches = [{switches}]\nlinks = [{links}]\n\
         flows = [{flows}]\n[port.default]\nbuffer = 500\npolicy.tail_drop = {{}}\n"
    );
    let found = messages(&text);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].contains("topology.network.flows cross more than 10000000 links in all"), "{found:#?}");
}

#[test]
fn a_network_with_thousands_of_faults_is_answered_with_the_first() {
    let mut links = String::new();
    for i in 0..5_000 {
        writeln!(links, r#"{{ between = ["x{i}", "y{i}"] }},"#).unwrap();
    }
    let found = messages(&GENERAL.replace("links = [", &format!("links = [{links}")));
    assert_eq!(found.len(), 1_001);
    assert!(found[0].contains("links[0].delay is missing"), "{}", found[0]);
    assert_eq!(found[1_000], "test.toml: has 4000 more faults, which are not shown");
    let links = links.replace(" }", ", delay = \"1us\" }");
    let found = messages(&GENERAL.replace("links = [", &format!("links = [{links}")));
    assert!(found[0].contains("\"x0\" is not a host") && found[1_000].contains("9000 more faults"), "{}", found[1_000]);
}

#[test]
fn two_policies_at_one_port_are_refused() {
    let text = format!("{GOOD}\n[port.bottleneck.policy.ppd]\n");
    assert!(messages(&text)[0].contains("names 2 (epd, ppd); it must be one"), "{:?}", messages(&text));
}

#[test]
fn a_policy_given_as_a_word_is_told_to_be_a_table() {
    let text = GOOD.replace("[port.bottleneck.policy.epd]\nthreshold = 800", "policy = \"epd\"");
    assert!(messages(&text)[0].contains("is not a table; write the table [port.bottleneck.policy.epd]"));
}

#[test]
fn of_a_text_broken_in_a_great_many_places_the_first_are_told() {
    // Finding the line number of each error would take minutes.
    let text = format!("{GOOD}\n{}", "<a>\n".repeat(100_000));
    let faults = messages(&text);
    assert_eq!(faults.len(), 20);
    assert!(faults.iter().all(|fault| fault.contains("is not TOML")), "{faults:?}");
}

#[test]
fn a_truncated_file_is_not_toml() {
    let faults = read(&GOOD[..GOOD.len() / 2]).faults;
    assert!(!faults.is_empty());
    assert!(faults.iter().all(|fault| fault.line.is_some()));
}

#[test]
fn brackets_without_end_are_answered_and_not_followed() {
    for open in ["[", "{", "a=[", "[["] {
        let deep = open.repeat(200_000);
        assert!(!read(&deep).faults.is_empty());
        assert!(!read_json(&deep, "x", Machine::default()).faults.is_empty());
    }
    assert!(messages(&"[".repeat(20_000_000))[0].contains("at most 16 MiB"));
}

#[test]
fn rates_without_a_common_unit_give_a_warning() {
    let reading = read(&GENERAL.replace("34.368Mbps", "34.368001Mbps"));
    assert_eq!(reading.faults, []);
    assert!(reading.warnings[0].message.contains("rounded"), "{:?}", reading.warnings);
    assert_eq!(read(GENERAL).warnings, []);
}

#[test]
fn settings_by_vc_that_are_wrong_are_told_with_the_vc() {
    let policy = |text: &str| only(GOOD, "epd]\nthreshold = 800               # cells", text);
    let path = "port.bottleneck.policy";
    assert_eq!(
        policy("single_drop]\nthresholds = { tcp1-3 = 0, default = 100 }"),
        format!(
            "test.toml:19: {path}.single_drop.thresholds.tcp1-3 = 0 is not a threshold of 1 cell or more; the VC would \
             lose its first frame"
        )
    );
    assert_eq!(
        policy("wba]\nweights = { tcp1-4 = 1, tcp5 = -2 }"),
        format!(
            "test.toml:19: {path}.wba.weights.tcp5 = -2 is not a weight; it must be a number above 0 (only the ratios of \
             the weights count)"
        )
    );
    assert_eq!(
        policy("wba]\nweights = { tcp1-4 = 1, tcp5 = \"2\" }"),
        format!("test.toml:19: {path}.wba.weights.tcp5 = \"2\" is text; write a number without quotes, such as 2")
    );
    assert_eq!(
        policy("dfba_1998]\nweights = { tcp1-3 = 1, tpc4 = 2, default = 3 }"),
        format!(
            "test.toml:19: {path}.dfba_1998.weights.tpc4 names no VC; did you mean \"tcp4\"? A VC has the name of its \
             flow, its acknowledgements' ends in -acks"
        )
    );
    assert_eq!(
        policy("weighted_fba]\nweights = { tcp1-3 = 1 }"),
        format!(
            "test.toml:19: {path}.weighted_fba.weights has no value for \"tcp4\" and 1 more, which cross sw1->sw2; name \
             them, or write default"
        )
    );
}

#[test]
fn schedulers_that_cannot_be_are_refused() {
    let scheduler = |text: &str| read(&format!("{GOOD}\n[port.bottleneck.scheduler.{text}\n"));
    let only = |text: &str| {
        let faults = scheduler(text).faults;
        assert_eq!(faults.len(), 1, "{faults:?}");
        faults[0].message.split_once(": ").unwrap().1.to_string()
    };
    let path = "port.bottleneck.scheduler";
    assert_eq!(
        only("wfq]\nweights = { tcp1-4 = 1, tcp5 = 0 }"),
        format!(
            "{path}.wfq.weights.tcp5 = 0 is not a weight; it must be a number above 0 (only the ratios of the weights \
             count)"
        )
    );
    assert_eq!(
        only("wfq]\nweights = { tcp1-3 = 1 }"),
        format!(
            "{path}.wfq.weights has no value for \"tcp4\" and 1 more, which cross sw1->sw2; name them, or write default"
        )
    );
    assert!(only("wfq]").starts_with(&format!("{path}.wfq.weights is missing")));
    assert_eq!(
        only("wfq]\nweights = { tpc1 = 1, default = 1 }"),
        format!(
            "{path}.wfq.weights.tpc1 names no VC; did you mean \"tcp1\"? A VC has the name of its flow, its \
             acknowledgements' ends in -acks"
        )
    );
    assert_eq!(
        only("guaranteed_rate]\nshare = 1.5\n[vc.tcp1]\nclass = \"vbr\""),
        format!("{path}.guaranteed_rate.share = 1.5 is not a share of the link (0 to 1)")
    );
    assert_eq!(
        only("strict_priority]"),
        format!(
            "{path}.strict_priority has nothing to tell apart: every VC that crosses sw1->sw2 is of class ubr; write class \
             = \"vbr\" into a [vc.NAME] table, or leave the scheduler out"
        )
    );
    assert!(only("fifo]\n[vc.tcp1]\nclass = \"vrb\"").starts_with("vc.tcp1.class = \"vrb\" is not one of"));
    assert_eq!(scheduler("strict_priority]\n[vc.tcp1-2]\nclass = \"cbr\"").faults, []);
    let front = GOOD.replace("epd]\nthreshold = 800               # cells", "drop_from_front]");
    let faults = read(&format!("{front}\n[port.bottleneck.scheduler.wfq]\nweights = 1\n")).faults;
    assert!(
        faults[0].message.contains("scheduler.wfq has several queues, and drop_from_front pushes out"),
        "{faults:?}"
    );
    let emulated = GOOD.replace("policy.epd]", "policy.virtual_queuing]");
    assert_eq!(read(&emulated).faults, []);
    let faults = read(&format!("{emulated}\n[port.bottleneck.scheduler.round_robin]\n")).faults;
    let both = "scheduler.round_robin has several queues, and virtual_queuing emulates queues on the only one";
    assert!(faults[0].message.contains(both), "{faults:?}");
    let shares = "VCs that cross a port add up to, which is more than the link";
    assert!(only("minimum_rate]\nminimum_share = 0.25").contains(shares));
    assert!(
        only("minimum_rate]\nminimum_share = { tcp1 = 2, default = 0 }")
            .contains("tcp1 = 2 is not a share of the link")
    );
    let of_policy = emulated.replace("virtual_queuing]", "virtual_queuing_weighted]\nminimum_share = 0.21");
    assert!(read(&of_policy).faults[0].message.contains(shares));
    assert_eq!(read(&of_policy.replace("0.21", "0.2")).faults, []);
}

/// Returns a scenario of three connections each way between two IP networks, with a table for one port.
fn abr_both_ways(port: &str) -> String {
    format!(
        r#"
        duration = "1s"
        topology.internetwork = {{ sources = 3, ip_delay = "1ms", atm_delay = "1ms", bidirectional = true }}
        edge."*" = {{ buffer = 500 }}
        port."{port}" = {{ buffer = 1000, policy.tail_drop = {{}}, allocator.equal_share = {{}} }}
        "#
    )
}

#[test]
fn a_port_without_a_table_that_abr_vcs_can_fill_is_refused() {
    let said = |text: &str| {
        let faults = read(text).faults;
        faults.into_iter().map(|fault| fault.message.split_once(": ").unwrap().1.to_string()).collect::<Vec<_>>()
    };
    let missing = |link: &str, vc: &str, comes: &str| {
        format!(
            "port.\"{link}\" has no table and no allocator, and carries the ABR VC {vc}: up to {comes} can come to \
             its 155.52Mbps; write its table, or [port.default] for all others, with an allocator (efci, equal_share, erica, \
             erica_plus, max_min)"
        )
    };
    let one_way = abr_both_ways("sw1->sw2");
    assert_eq!(said(&format!("{one_way}vc.tcp1-6.abr = {{}}")), [missing("sw2->sw1", "tcp1-acks", "466.56Mbps")]);
    // The data of other flows fills the return path of tcp1's loop.
    assert_eq!(said(&format!("{one_way}vc.tcp1.abr = {{}}")), [missing("sw2->sw1", "tcp1-acks", "466.56Mbps")]);
    // Six VCs at this PCR fill the link exactly and cannot wait for long; slightly faster ones can.
    let with_pcr = |rate: &str| format!("{one_way}vc.tcp1-6.abr = {{ pcr = \"{rate}\" }}");
    assert_eq!(said(&with_pcr("25.92Mbps")), [""; 0]);
    assert_eq!(said(&with_pcr("25.920001Mbps")), [missing("sw2->sw1", "tcp1-acks", "155.520006Mbps")]);
    assert_eq!(said(&one_way), [""; 0]);
    assert_eq!(said(&format!("{}vc.tcp1-6.abr = {{}}", abr_both_ways("sw*->sw*"))), [""; 0]);
    assert_eq!(said(&format!("{}vc.tcp1-6.abr = {{}}", abr_both_ways("default"))), [""; 0]);
    let acks = one_way.replace(", bidirectional = true", "");
    assert_eq!(said(&format!("{acks}vc.tcp1-3.abr = {{}}")), [""; 0], "acknowledgements do not fill a port");
    // A misspelt table is not reported as missing too.
    let misspelt =
        format!("{one_way}vc.tcp1-6.abr = {{}}\nport.\"sw2->sw3\" = {{ buffer = 9, policy.tail_drop = {{}} }}");
    assert_eq!(said(&misspelt).len(), 1, "{:?}", said(&misspelt));
    // A single flow, from a fast host to a slow one.
    let star = r#"
        duration = "1s"
        topology.star = { hosts = 2, pattern = "ring", link_delay = "1ms", access_rates = { host1 = "622.08Mbps" } }
        port."sw->host1" = { buffer = 1000, policy.tail_drop = {}, allocator.equal_share = {} }
        vc.tcp1.abr = {}
        "#;
    let [only] = &said(star)[..] else { panic!("{:?}", said(star)) };
    assert!(only.contains("port.\"sw->host2\" has no table and no allocator, and carries the ABR VC tcp1"), "{only}");
    assert!(only.contains("up to 622.08Mbps can come to its 155.52Mbps"), "{only}");
}

#[test]
fn no_vc_loses_its_service_to_another_table() {
    let said = |vcs: &str| {
        let reading = read(&format!("{}{vcs}", abr_both_ways("sw*->sw*")));
        reading
            .faults
            .into_iter()
            .map(|fault| fault.message.split_once(": ").unwrap().1.to_string())
            .collect::<Vec<_>>()
    };
    let taken = |table: &str, vc: &str, range: &str| {
        format!(
            "vc.{table} takes {vc} out of [vc.{range}]: one table counts for a VC, that of its name or the first range; write \
             [vc.{table}.{}] too, or leave {vc} out of the range",
            range.rsplit('.').next().unwrap()
        )
    };
    assert_eq!(said("[vc.tcp1-5.abr]\n[vc.tcp1]\nclass = \"vbr\""), [taken("tcp1", "tcp1", "tcp1-5.abr")]);
    assert_eq!(said("[vc.tcp2-5.abr]\n[vc.tcp1-3]\nclass = \"vbr\""), [taken("tcp1-3", "tcp2", "tcp2-5.abr")]);
    let gfr = "gfr]\nmcr = \"1Mbps\"\nmfs = 12\nmbs = 24";
    assert_eq!(said(&format!("[vc.tcp1-5.{gfr}\n[vc.tcp1]\ntagged = true")), [taken("tcp1", "tcp1", "tcp1-5.gfr")]);
    assert_eq!(said(&format!("[vc.tcp1-5.abr]\n[vc.tcp1.{gfr}")), [""; 0], "another service is no accident");
    assert_eq!(said("[vc.tcp2-5.abr]\n[vc.tcp1]\nclass = \"vbr\""), [""; 0]);
    assert_eq!(said("[vc.tcp1-5.abr]\n[vc.tcp1.abr]\nnrm = 16"), [""; 0]);
    // The table of its acknowledgements does not matter.
    assert_eq!(said("[vc.tcp1-5.abr]\n[vc.tcp1-acks]\nclass = \"ubr\""), [""; 0]);
}

#[test]
fn a_range_that_goes_on_beyond_the_last_is_warned_of() {
    let warned = |tables: &str| {
        let reading = read(&format!("{}{tables}", abr_both_ways("sw*->sw*")));
        assert_eq!(reading.faults, [], "{tables}");
        reading.warnings.into_iter().map(|warning| format!("{}: {}", warning.key, warning.message)).collect::<Vec<_>>()
    };
    let beyond = |table: &str, end: &str| {
        format!("{table}: the range {table} goes on to {end}, and tcp6 is the last there is; the rest is about nothing")
    };
    assert_eq!(warned("[vc.tcp1-6.abr]\n[flow.tcp2-6]\nstart = \"1ms\""), [""; 0]);
    assert_eq!(warned("[vc.tcp1-7.abr]"), [beyond("vc.tcp1-7", "tcp7")]);
    assert_eq!(warned("[flow.tcp2-10]\nstart = \"1ms\""), [beyond("flow.tcp2-10", "tcp10")]);
}

#[test]
fn an_abr_vc_has_no_class_of_its_own() {
    let said_with = |scheduler: &str, text: &str| {
        let base = abr_both_ways("sw*->sw*")
            .replace("allocator.equal_share = {}", &format!("allocator.equal_share = {{}}{scheduler}"));
        let faults = read(&format!("{base}{text}")).faults;
        faults.into_iter().map(|fault| fault.message.split_once(": ").unwrap().1.to_string()).collect::<Vec<_>>()
    };
    let said = |text: &str| said_with("", text);
    for (class, table) in [("vbr", "tcp1"), ("cbr", "tcp1-acks")] {
        let tables = format!("[vc.tcp1.abr]\n[vc.{table}]\nclass = \"{class}\"");
        let fault = format!(
            "vc.{table}.class = \"{class}\" does not go with [vc.tcp1.abr]: a VC has one service, and schedulers by class \
             serve ABR with ubr; leave it out"
        );
        assert_eq!(said(&tables), [fault]);
    }
    assert_eq!(said("[vc.tcp1]\nclass = \"ubr\"\nabr = {}"), [""; 0]);
    let strict = |text: &str| said_with(", scheduler.strict_priority = {}", text);
    let nothing = "port.\"sw*->sw*\".scheduler.strict_priority has nothing to tell apart: every VC that crosses sw1->sw2 is of \
                   class ubr";
    assert_eq!(
        strict("[vc.tcp1-2.abr]"),
        [format!(
            "{nothing}, as ABR VCs are; write class = \"vbr\" into the [vc.NAME] table of one without ABR, or leave the \
             scheduler out"
        )]
    );
    assert_eq!(strict("[vc.tcp1-6.abr]"), [format!("{nothing}, as ABR VCs are; leave the scheduler out")]);
    assert_eq!(strict("[vc.tcp1-2.abr]\n[vc.tcp3]\nclass = \"vbr\""), [""; 0]);
}

#[test]
fn a_number_in_quotes_is_told_from_a_wrong_number() {
    let said = |line: &str| {
        let faults = read(&format!("{}[vc.tcp1-6.abr]\n{line}", abr_both_ways("sw*->sw*"))).faults;
        faults.into_iter().map(|fault| fault.message.split_once(": ").unwrap().1.to_string()).collect::<Vec<_>>()
    };
    for (given, example) in [
        ("nrm = \"32\"", "32"),
        ("rif = \"1/32\"", "0.03125"),
        ("rif = \"1 / 32768\"", "0.000030517578125"),
        ("rdf = \"0.5\"", "0.5"),
        // The probable meaning is not a valid value, so the default is suggested.
        ("nrm = \"1/32\"", "32"),
        ("nrm = \"many\"", "32"),
        ("nrm = \"512\"", "32"),
        ("rif = \"1/0\"", "0.0625"),
        ("cdf = \"0\"", "0"),
    ] {
        assert_eq!(
            said(given),
            [format!("vc.tcp1-6.abr.{given} is text; write a number without quotes, such as {example}")]
        );
    }
    // Numbers that exist in TOML but not in JSON.
    for (given, shown) in [("nan", "nan"), ("inf", "inf"), ("-inf", "-inf")] {
        let power = "is not a power of two from 1/32768 (0.000030517578125) to 1";
        assert_eq!(said(&format!("rif = {given}")), [format!("vc.tcp1-6.abr.rif = \"{shown}\" {power}")]);
    }
}

#[test]
fn traffic_that_cannot_be_sent_is_refused() {
    let reading = |text: &str| read(&format!("{GOOD}\n[flow.tcp2.traffic.{text}\n"));
    let only = |text: &str| {
        let faults = reading(text).faults;
        assert_eq!(faults.len(), 1, "{faults:?}");
        faults[0].message.split_once(": ").unwrap().1.to_string()
    };
    let path = "flow.tcp2.traffic";
    assert_eq!(
        only("constant_rate]\nrate = \"10Mbps\"\npacket = \"65508B\""),
        format!("{path}.constant_rate.packet = \"65.508kB\" is outside 1B to 65507B, what UDP and IP carry")
    );
    assert_eq!(
        only("constant_rate]\nrate = \"10Mbps\"\npacket = \"9180B\"\n[aal5]\nmax_sdu = \"9180B\""),
        format!(
            "{path}.constant_rate.packet = \"9.18kB\" makes frames of 193 cells, more than aal5.max_sdu lets a receiver \
             collect (192)"
        )
    );
    // Such packets were once accepted and carried, but captures and events refused them.
    assert_eq!(
        only("constant_rate]\nrate = \"10Mbps\"\npacket = \"65500B\""),
        format!(
            "{path}.constant_rate.packet = \"65.5kB\" makes frames of 65536 bytes with headers, more than AAL5 can carry \
             (65535); at most 65499B is right"
        )
    );
    let longest = |payload: u32, encapsulation: &str| {
        let text = format!(
            "constant_rate]\nrate = \"10Mbps\"\npacket = \"{payload}B\"\n[aal5]\nencapsulation = \"{encapsulation}\""
        );
        let mut faults = reading(&text).faults;
        // The buffer is too small for such a frame.
        faults.retain(|fault| fault.key != "port.bottleneck.buffer");
        faults.len()
    };
    assert_eq!([longest(65_499, "llc_snap"), longest(65_500, "llc_snap"), longest(65_507, "vc_mux")], [0, 1, 0]);
    let segment = messages(&GOOD.replace("512B", "65488B").replace("buffer = 1000", "buffer = 3000"));
    assert_eq!(segment.len(), 1, "{segment:?}");
    assert!(
        segment[0].contains("mss = \"65.488kB\" makes frames of 65536 bytes with headers, more than AAL5 can carry"),
        "{segment:?}"
    );
    assert!(only("constant_rate]").starts_with(&format!("{path}.constant_rate.rate is missing")));
    assert_eq!(
        only("on_off]\nrate = \"0bps\""),
        format!("{path}.on_off.rate = \"0bps\" is not a positive rate from 424bps to 10000Gbps")
    );
    assert_eq!(only("on_off]\non = \"0s\""), format!("{path}.on_off.on = \"0s\" is not a time from 1us to 1000000s"));
    assert!(only("file]\nbytes = \"0B\"").starts_with(&format!("{path}.file.bytes = \"0B\" is outside 1B to")));
    assert!(
        only("bursts]\nbytes = \"0B\"\npause = \"1ms\"")
            .starts_with(&format!("{path}.bursts.bytes = \"0B\" is outside 1B to"))
    );
    assert_eq!(
        only("bursts]\nbytes = \"1kB\"\npause = \"0s\""),
        format!("{path}.bursts.pause = \"0s\" is not a time from 1us to 1000000s")
    );
    assert!(only("bursts]\nbytes = \"1kB\"").starts_with(&format!("{path}.bursts.pause is missing")));
    assert_eq!(reading("bursts]\nbytes = \"1kB\"\npause = \"1ms\"\n[flow.tcp2.tcp.reno]").faults, []);
    assert!(only("on_off]\n[flow.tcp2.tcp.reno]").starts_with("flow.tcp2.tcp.reno sends nothing: the flow's traffic"));
    let fast = reading("constant_rate]\nrate = \"156Mbps\"");
    assert_eq!(fast.faults, []);
    assert!(
        fast.warnings[0].message.contains("156Mbps is above the 155.52Mbps of source2->sw1"),
        "{:?}",
        fast.warnings
    );
    assert_eq!(reading("on_off]").warnings, []);
}

/// Such a host resent a segment every microsecond and kept all copies: 601 MB after 10 s.
#[test]
fn timeouts_shorter_than_a_segment_takes_are_warned_of() {
    let tcp = "[tcp.vanilla]\nmss = \"512B\"\nreceive_window = \"65535B\"\ntimer_granularity = \"100ms\"\n";
    let of = |table: &str| read(&GOOD.replace("10s", "1s").replace(tcp, table));
    let short = "timer_granularity = \"1us\"\ninitial_rto = \"1us\"\nminimum_rto = 1\nmaximum_rto = \"1us\"\n";
    let warned = |reading: &crate::Reading| {
        let warnings = reading.warnings.iter();
        warnings.map(|warning| format!("{}: {}", warning.key, warning.message)).collect::<Vec<_>>()
    };
    let usual = of("[tcp.reno]\n");
    assert_eq!(warned(&usual), [""; 0]);
    let reading = of(&format!("[tcp.reno]\n{short}"));
    assert_eq!(
        warned(&reading),
        ["tcp.reno.maximum_rto: retransmission timeouts of 1us are shorter than the 32.716us that a segment takes on \
             source1->sw1: tcp1 sends segments again before they have left, and its host's queue grows until an \
             acknowledgement arrives. Raise minimum_rto and maximum_rto."]
    );
    let own = of(&format!("[tcp.reno]\n[flow.tcp2.tcp.sack]\n{short}"));
    assert_eq!(own.warnings.len(), 1);
    assert_eq!(own.warnings[0].key, "flow.tcp2.tcp.sack.maximum_rto");
    // Six doublings turn 1 us into 64 us.
    let backed_off = short.replace("maximum_rto = \"1us\"", "maximum_rto = \"1s\"");
    assert_eq!(warned(&of(&format!("[tcp.reno]\n{backed_off}"))), [""; 0]);
    let steady = of(&format!("[tcp.reno]\nbackoff = \"none\"\n{backed_off}"));
    assert_eq!(steady.warnings[0].key, "tcp.reno.minimum_rto");
}

#[test]
fn a_part_of_a_run_that_counts_lies_within_it() {
    let found = |measure: &str| messages(&format!("{GOOD}\n[measure]\n{measure}\n"));
    assert!(found("from = \"1ms\"").is_empty());
    for (measure, told) in [
        ("to = \"1000s\"", "measure.to = \"1000s\" is outside the run: a positive time up to its duration of"),
        ("to = \"0s\"", "measure.to = \"0s\" is outside the run"),
        ("from = \"1000s\"", "measure.from = \"1000s\" leaves nothing to measure: a time before the end of the run"),
        ("from = \"2ms\"\nto = \"2ms\"", "leaves nothing to measure: a time before the end of measure.to, 2ms"),
    ] {
        let found = found(measure);
        assert!(found.len() == 1 && found[0].contains(told), "{found:?}");
    }
}

#[test]
fn files_that_cannot_be_measured_are_refused() {
    let reading = |size: &str, more: &str| read(&format!("{GOOD}\n[measure]\nfile_size = {size}\n{more}"));
    let network = |size: &str| build::network(&reading(size, "").scenario.unwrap(), 1);
    assert_eq!(network("\"100kB\"").file_size.map(|size| size.bytes), Some(100_000));
    assert_eq!(network("\"512B\"").file_size.map(|size| size.bytes), Some(512));
    assert_eq!(build::network(&read(GOOD).scenario.unwrap(), 1).file_size, None);
    let message = |size: &str, more: &str| {
        let faults = reading(size, more).faults;
        assert_eq!(faults.len(), 1, "{faults:?}");
        faults[0].message.clone()
    };
    for size in ["0B", "511B", "1125899906842625B"] {
        let found = message(&format!("\"{size}\""), "");
        assert!(found.contains("measure.file_size = \""), "{found}");
        assert!(found.contains("is outside one segment (512B) to 1125899906.842624MB"), "{found}");
    }
    let larger = message("\"9kB\"", "[flow.tcp2.tcp.reno]\nmss = \"9140B\"");
    assert!(larger.contains("is outside one segment (9140B)"), "{larger}");
    assert!(message("100_000", "").contains("measure.file_size = 100000"), "a number without a unit");
    let packets = |flows: &str| format!("[flow.{flows}.traffic.on_off]");
    assert!(message("\"100kB\"", &packets("tcp1-5")).contains("cuts no stream: the traffic of every flow is packets"));
    assert_eq!(reading("\"100kB\"", &packets("tcp1-4")).faults, []);
}

#[test]
fn thresholds_of_vcs_are_judged_together() {
    let dfba = |text: &str| only(GOOD, "epd]\nthreshold = 800               # cells", &format!("dfba]\n{text}"));
    let path = "port.bottleneck.policy.dfba";
    assert_eq!(
        dfba("thresholds = { tcp1-4 = 150, tcp5 = 400 }"),
        format!(
            "test.toml:19: {path}.thresholds add up to 1000 cells (tcp1 150, tcp2 150, tcp3 150, tcp4 150 and 1 more); \
             those of all VCs of a port must add up to less than the buffer, 1000"
        )
    );
    assert_eq!(
        dfba("congestion_threshold = 600\nthresholds = 120"),
        format!(
            "test.toml:20: {path}.thresholds add up to 600 cells (tcp1 120, tcp2 120, tcp3 120, tcp4 120 and 1 more); \
             those of all VCs of a port must add up to less than congestion_threshold, 600"
        )
    );
    assert_eq!(
        dfba("congestion_threshold = 1001\nthresholds = 120"),
        format!(
            "test.toml:19: {path}.congestion_threshold = 1001 is above the buffer of 1000 cells; a threshold is at most \
             the buffer"
        )
    );
    assert_eq!(
        dfba("congestion_threshold = 0\nthresholds = 120"),
        format!("test.toml:19: {path}.congestion_threshold = 0 is less than one cell; it must be at least \"1 cell\"")
    );
    assert_eq!(
        dfba("thresholds = 120\nz = 1"),
        format!(
            "test.toml:20: {path}.z = 1 leaves no room between a VC's threshold and its ceiling of z times that; it must \
             be above 1"
        )
    );
    assert!(read(&GOOD.replace("epd]\nthreshold = 800", "dfba]\nthresholds = 199")).faults.is_empty());
}

#[test]
fn the_schema_lists_every_policy_and_variant() {
    let schema = crate::scenario::schema();
    let listed = |name: &str| -> Vec<String> {
        let choices = schema["$defs"][name]["oneOf"].as_array().unwrap();
        choices.iter().map(|choice| choice["required"][0].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(listed("Policy"), PolicyConfig::NAMES);
    assert_eq!(listed("Scheduler"), SchedulerConfig::NAMES);
    assert_eq!(listed("Traffic"), TrafficConfig::NAMES);
    assert_eq!(listed("Tcp"), TcpConfig::NAMES);
    assert_eq!(listed("Topology"), Topology::NAMES);
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: proptest::test_runner::RngSeed::Fixed(11),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_text_panics_the_reader(text in ".{0,200}") {
        read(&text);
        read_json(&text, "x", Machine::default());
    }

    #[test]
    fn no_damage_to_a_good_file_panics_the_reader(
        general in any::<bool>(),
        at in any::<prop::sample::Index>(),
        length in 0usize..12,
        new in "[-a-z0-9=\\[\\]{}\".,#\n ]{0,8}",
    ) {
        let good = if general { GENERAL } else { GOOD };
        let start = at.index(good.len());
        let end = (start + length).min(good.len());
        let text = format!("{}{new}{}", &good[..start], &good[end..]);
        let reading = read(&text);
        prop_assert!(reading.scenario.is_some() == reading.faults.is_empty());
        if let Some(scenario) = reading.scenario {
            build::network(&scenario, 1);
        }
    }
}

#[test]
fn a_megabyte_in_any_place_gives_a_line_a_person_can_read() {
    // The value of a quantity, a name and an unknown key used to be quoted in full.
    let long = "9".repeat(1_000_000);
    for (from, to) in [
        ("\"10s\"", format!("\"{long}s\"")),
        ("\"10s\"", format!("\"{long}\"")),
        ("duration", format!("x{long}")),
        ("sources = 5", format!("sources = {long}")),
        ("sources = 5", format!("sources = 5\naccess_delays = {{ x{long} = \"1ms\" }}")),
        ("[port.bottleneck]", format!("[flow.x{long}]\n[port.bottleneck]")),
    ] {
        let changed = GOOD.replacen(from, &to, 1);
        assert_ne!(changed, GOOD);
        let found = messages(&changed);
        assert!(!found.is_empty(), "{from}");
        assert!(found.iter().all(|message| message.len() < 2500), "{from}: {} bytes", found[0].len());
    }
    let named = read(&GENERAL.replace("\"a\"", &format!("\"a{long}\"")));
    assert!(named.faults.iter().all(|fault| fault.message.len() < 2500));
    assert!(named.warnings.iter().all(|warning| warning.message.len() < 2500));
}

fn warnings_of(policy: &str) -> Vec<String> {
    let text = GOOD.replace("[port.bottleneck.policy.epd]\nthreshold = 800               # cells\n", policy);
    let reading = read(&text);
    assert_eq!(reading.faults, [], "{text}");
    reading.warnings.into_iter().map(|warning| warning.message).collect()
}

/// It used to pass without a warning: its author saw a fairness of 1.
#[test]
fn a_policy_that_refuses_every_frame_of_an_empty_buffer_has_a_warning() {
    let dead = "X < 0.8 * K and Y * N < 1.2 * X";
    assert_eq!(
        warnings_of(&format!("policy.formula = {{ admit = \"{dead}\" }}")),
        [
            "port.bottleneck.policy.formula refuses every frame while the buffer is empty: Y * N < 1.2 * X is 0 < 0; add \"X <= ... or\""
        ]
    );
    assert_eq!(warnings_of(&format!("policy.formula = {{ admit = \"X <= 0.5 * K or {dead}\" }}")), [""; 0]);
    assert_eq!(
        warnings_of("policy.epd = { threshold = 0 }"),
        ["port.bottleneck.policy.epd refuses every frame while a single cell waits"]
    );
}

#[test]
fn a_dead_policy_is_probed_with_the_vcs_and_the_rate_of_its_port() {
    let of_vcs = "policy.formula = { admit = \"Y < w * K\", constants.w = { tcp3 = 0.0, default = 0.2 } }";
    let expected = "port.bottleneck.policy.formula refuses every frame of tcp3 while the buffer is empty: Y < w * K is \
                    0 < 0; add \"X <= ... or\"";
    assert_eq!(warnings_of(of_vcs), [expected]);
    assert_eq!(warnings_of("policy.formula = { admit = \"X < K / V\" }"), [""; 0]);
    let rate = "policy.formula = { admit = \"X < C * 1 us\" }";
    let expected =
        "port.bottleneck.policy.formula refuses every frame while a single cell waits: X < C * 1 us is 1 < 0.3668";
    assert_eq!(warnings_of(rate), [expected]);
}
