//! Tests with complete files: valid scenarios are read, and faulty files give the expected messages.

use std::fmt::Write;

use celltrain_core::cancellation::CancellationToken;
use celltrain_core::engine::Engine;
use celltrain_core::index::{FlowIndex, LinkIndex, VcIndex};
use celltrain_core::link_loss::{LossPattern, LossUnit};
use celltrain_core::max_min;
use celltrain_core::metrics::jain;
use celltrain_core::network::{Link, Network};
use celltrain_core::policy::PolicyConfig;
use celltrain_core::scheduler::SchedulerConfig;
use celltrain_core::tcp::TcpConfig;
use celltrain_core::traffic::TrafficConfig;
use proptest::prelude::*;

use crate::topology::Topology;
use crate::{Candidate, Reader, Reading, build, read_json, read_toml};

mod changes;
mod framing;
mod memories;
mod requests;
mod stacks;

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
    read_toml(text, "test.toml")
}

fn links(network: &Network, vc: VcIndex) -> Vec<&str> {
    network.vcs[vc].path.iter().map(|&link| network.links[link].name.as_str()).collect()
}

fn link<'a>(network: &'a Network, name: &str) -> &'a Link {
    network.links.iter().find(|link| link.name == name).unwrap()
}

fn messages(text: &str) -> Vec<String> {
    read(text).faults.into_iter().map(|fault| fault.message).collect()
}

#[test]
fn missing_settings_of_a_valid_scenario_get_their_default_values() {
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
fn the_paths_and_the_bottleneck_of_a_general_network_are_found() {
    let scenario = read(GENERAL).scenario.unwrap();
    let network = build::network(&scenario, 1);
    assert_eq!(network.links[network.bottleneck].name, "s->t");
    assert_eq!(links(&network, VcIndex::new(0)), ["a->s", "s->t", "t->b"]);
    assert_eq!(links(&network, VcIndex::new(1)), ["b->t", "t->s", "s->a"]);
    assert_eq!(network.links[LinkIndex::new(0)].buffer, None, "a host's own queue has no limit");
}

#[test]
fn in_the_internetwork_topology_each_path_has_an_edge_device_at_both_ends() {
    let text = r#"
duration = "1ms"
topology.internetwork = { sources = 2, ip_delay = "3ms", atm_delay = "1ms", bidirectional = true }
edge."*" = { buffer = 500 }
port.bottleneck = { buffer = 1000, policy.tail_drop = {} }
"#;
    let network = build::network(&read(text).scenario.unwrap(), 1);
    let there = ["source2->edge2", "edge2->sw1", "sw1->sw2", "sw2->far-edge2", "far-edge2->destination2"];
    let back = ["destination2->far-edge2", "far-edge2->sw2", "sw2->sw1", "sw1->edge2", "edge2->source2"];
    let [second, fourth] = [1, 3].map(FlowIndex::new);
    let flow =
        |flow: FlowIndex| [network.flows[flow].data_vc, network.flows[flow].ack_vc].map(|vc| links(&network, vc));
    assert_eq!(network.flows.len(), 4);
    assert_eq!(flow(second), [there, back]);
    assert_eq!(network.flows[fourth].name, "tcp4", "the next link is the opposite direction");
    assert_eq!(flow(fourth), [back, there]);
    let delays = network.vcs[network.flows[second].data_vc].path.iter().map(|&link| network.links[link].delay);
    assert_eq!(delays.map(|delay| delay.picoseconds / 1_000_000_000).collect::<Vec<_>>(), [3, 0, 1, 0, 3]);
    let buffered: Vec<_> = network.links.iter().filter(|link| link.edge.is_some()).map(|link| &link.name).collect();
    assert_eq!(buffered, ["edge1->sw1", "far-edge1->sw2", "edge2->sw1", "far-edge2->sw2"], "not towards hosts");
}

#[test]
fn a_scenario_without_a_policy_is_refused_with_a_list_of_all_policies() {
    let policies = PolicyConfig::NAMES.join(", ");
    let misspelt = format!("is unknown; did you mean epd? It must be one of {policies}");
    let found = messages(&GOOD.replace("policy.epd]", "policy.edp]"));
    assert_eq!(found, [format!("test.toml:18: port.bottleneck.policy.edp {misspelt}")]);
    let missing = format!("is missing; it must be a table named after one of {policies}");
    let found = messages(GOOD.split("[port.bottleneck.policy").next().unwrap());
    assert_eq!(found, [format!("test.toml:15: port.bottleneck.policy {missing}")]);
}

#[test]
fn a_tcp_key_that_has_moved_into_a_group_is_refused_with_its_new_path() {
    let found = messages(&GOOD.replace("[tcp.vanilla]\n", "[tcp.vanilla]\nfull_acks = \"flight\"\n"));
    let [message] = &found[..] else { panic!("{found:?}") };
    assert!(
        message.ends_with(": tcp.vanilla.full_acks = \"flight\" is now tcp.vanilla.recovery.full_acks"),
        "{message}"
    );
    let found = messages(&format!("{GOOD}[flow.tcp1.tcp.reno]\ntimer_restart = \"per_segment\"\n"));
    let [message] = &found[..] else { panic!("{found:?}") };
    assert!(message.contains(": flow.tcp1.tcp.reno.timer_restart = \"per_segment\" is now"), "{message}");
    assert!(message.ends_with("is now flow.tcp1.tcp.reno.timer.restart"), "{message}");
}

/// Regression: a malformed `ecn` was replaced by its default, which was then reported because it does not fit DCTCP.
#[test]
fn a_malformed_setting_is_reported_once_even_if_its_default_does_not_fit_the_other_settings() {
    let tcp = "[tcp.vanilla]\ncongestion = \"dctcp\"\necn = \"on\"\nwindows.growth = \"capped\"\n\
               windows.dctcp_gain = 0.1\n";
    let good = GOOD.replace("[tcp.vanilla]\n", tcp);
    assert_eq!(messages(&good), [""; 0]);
    let settings = [
        "congestion = \"dctcp\"", "ecn = \"on\"", "windows.growth = \"capped\"", "windows.dctcp_gain = 0.1",
        "mss = \"512B\"",
    ];
    for setting in settings {
        let (key, _) = setting.split_once(" = ").unwrap();
        let bad = good.replace(setting, &format!("{key} = \"malformed\""));
        let [message] = &messages(&bad)[..] else {
            panic!("{key} does not have exactly one fault: {:?}", messages(&bad))
        };
        assert!(message.contains(&format!("tcp.vanilla.{key}")), "{message}");
    }
}

#[test]
fn a_network_that_is_too_large_is_refused() {
    // In the first round, the network is refused before its layout. In the second round, it is refused after it has
    // been built.
    for is_built in [false, true] {
        let fits = |candidate: Candidate<'_>| match candidate {
            Candidate::Planned(size) if !is_built => Err(format!("{} nodes are too many", size.nodes)),
            Candidate::Planned(_) => Ok(()),
            Candidate::Built(network) => Err(format!("{} nodes are too many", network.nodes.len())),
        };
        let reader = Reader { source: "x.toml", fits: &fits, token: &CancellationToken::never() };
        let reading = reader.toml(GOOD).unwrap();
        assert!(reading.does_not_fit && reading.scenario.is_none());
        let problem = "topology.n_source.sources = 5 makes a network that is too large: 12 nodes are too many";
        assert_eq!(
            reading.faults.iter().map(|fault| &*fault.message).collect::<Vec<_>>(),
            [format!("x.toml:6: {problem}")]
        );
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
fn a_chain_has_connections_through_all_switches_and_connections_through_two_adjacent_switches() {
    let network = build::network(&read(CHAIN).scenario.unwrap(), 1);
    let path = |flow: &str| links(&network, network.flows.iter().find(|own| own.name == flow).unwrap().data_vc);
    let long = ["long-source2->sw1", "sw1->sw2", "sw2->sw3", "sw3->sw4", "sw4->long-destination2"];
    assert_eq!(path("long2"), long);
    // Each link between switches has two cross connections, which are numbered in link order.
    assert_eq!(path("cross1")[1..2], ["sw1->sw2"]);
    assert_eq!(path("cross4"), ["cross-source4->sw2", "sw2->sw3", "sw3->cross-destination4"]);
    assert_eq!(path("cross6")[1], "sw3->sw4");
    assert_eq!(network.flows.len(), 8);
    assert_eq!(network.links[network.bottleneck].name, "sw1->sw2");
    let delays = ["sw2->sw3", "sw2->cross-destination2"].map(|name| link(&network, name).delay.to_string());
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
fn the_traffic_pattern_of_a_star_topology_sets_the_destination_of_each_host() {
    let ends = |pattern: &str| -> Vec<String> {
        let text = STAR.replace("hosts = 4", &format!("hosts = 4\n{pattern}"));
        let network = build::network(&read(&text).scenario.unwrap(), 1);
        assert_eq!(network.links[network.bottleneck].name, "sw->host1");
        network.flows.iter().map(|flow| links(&network, flow.data_vc)[1].to_owned()).collect()
    };
    assert_eq!(ends(""), ["sw->host1"; 3]);
    assert_eq!(ends("pattern = \"ring\""), ["sw->host2", "sw->host3", "sw->host4", "sw->host1"]);
    assert_eq!(ends("pattern = \"all_pairs\"").len(), 12);
    let none = STAR.replace("hosts = 4", "hosts = 4\npattern = \"none\"");
    assert!(messages(&none).iter().any(|said| said.contains("has no flows; write a table [requests.NAME]")));
    let requests = format!("{none}\n[requests.web]\nload = 0.1\nsizes = \"1kB\"\n");
    assert!(build::network(&read(&requests).scenario.unwrap(), 1).flows.is_empty());
}

#[test]
fn the_access_link_of_each_source_and_host_can_be_configured_individually() {
    let tables = "access_delays = { source1 = \"1ms\", source2-3 = \"2ms\", default = \"3ms\" }\n\
                  access_rates = { source5 = \"34.368Mbps\" }";
    let text = GOOD.replace("sources = 5", &format!("sources = 5\n{tables}"));
    let network = build::network(&read(&text).scenario.unwrap(), 1);
    let link = |name: &str| link(&network, name);
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
fn the_two_directions_of_a_link_may_have_different_settings() {
    let text =
        GENERAL.replace("rate = \"34.368Mbps\"", "rate = \"34.368Mbps\", rate_back = \"2Mbps\", delay_back = \"7ms\"");
    let network = build::network(&read(&text).scenario.unwrap(), 1);
    let ways =
        ["s->t", "t->s"].map(|name| link(&network, name)).map(|way| (way.rate.to_string(), way.delay.to_string()));
    assert_eq!(ways, [("34.368Mbps".into(), "1ms".into()), ("2Mbps".into(), "7ms".into())]);
}

fn goodputs_mbps(network: &Network) -> Vec<f64> {
    max_min::goodputs_mbps(network, &CancellationToken::never()).unwrap()
}

/// Returns each flow's max-min fair share, in Mb/s of goodput.
fn fair(text: &str) -> Vec<f64> {
    let scenario = read(text).expect_scenario();
    goodputs_mbps(&build::network(&scenario, 1))
}

fn near(found: &[f64], expected: &[f64]) -> bool {
    found.len() == expected.len() && found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-9)
}

/// Share of the payload in the bytes of a full segment: 512 of the 636 bytes of 12 cells.
const PAYLOAD: f64 = 512.0 / 636.0;

#[test]
fn the_fair_shares_of_a_chain_of_switches_match_the_formula() {
    for (long, cross) in [(1u8, 1u8), (1, 4), (2, 3), (3, 0)] {
        let text = CHAIN.replace("long = 2\ncross = 2", &format!("long = {long}\ncross = {cross}"));
        let shares = vec![155.52 / f64::from(long + cross) * PAYLOAD; usize::from(long + 3 * cross)];
        assert!(near(&fair(&text), &shares), "{long} long flows, {cross} cross flows on each link: {:?}", fair(&text));
    }
    // If the links of hosts are slow, the links between switches limit no connection.
    let slow = CHAIN.replace("access_delay", "access_rate = \"10Mbps\"\naccess_delay");
    assert!(near(&fair(&slow), &[10.0 * PAYLOAD; 8]));
}

#[test]
fn max_min_shares_with_different_access_rates_equal_values_calculated_by_hand() {
    // Calculated by hand: tcp2 gets 10 Mb/s, tcp5 gets 20 Mb/s, and the three other flows share the remaining 125.52
    // Mb/s.
    let third = 125.52 / 3.0 * PAYLOAD;
    let text = GOOD.replace(
        "sources = 5",
        "sources = 5\naccess_rates = { source2 = \"10Mbps\", source5 = \"20Mbps\", source1 = \"100Mbps\" }",
    );
    assert!(near(&fair(&text), &[third, 10.0 * PAYLOAD, third, third, 20.0 * PAYLOAD]), "{:?}", fair(&text));
    // tcp3 sends 30 Mb/s half of the time, with 960 bytes of payload in 21 cells of 53 bytes. This leaves 140.52 Mb/s
    // to the other flows. The cells of tcp4 carry more payload, because its frames have 192 cells. tcp5 is paced at 5
    // Mb/s.
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
fn max_min_fairness_is_computed_from_each_goodput_divided_by_its_max_min_share() {
    // No data is lost, so all flows send as fast as their links allow.
    let text = GOOD
        .replace("10s", "300ms")
        .replace("sources = 5", "sources = 5\naccess_rates = { source1-2 = \"5Mbps\" }")
        .replace("buffer = 1000 ", "buffer = \"infinite\" ")
        .replace("threshold = 800 ", "threshold = 100000 ");
    let network = build::network(&read(&text).scenario.unwrap(), 1);
    let result = Engine::Fast.run_to_end(&network);
    let parts: Vec<f64> = result.flows.iter().map(|flow| flow.goodput_mbps / flow.max_min_mbps).collect();
    let goodputs: Vec<f64> = result.flows.iter().map(|flow| flow.goodput_mbps).collect();
    let fair: Vec<f64> = result.flows.iter().map(|flow| flow.max_min_mbps).collect();
    assert!(near(&fair, &goodputs_mbps(&network)) && (fair[0] - 5.0 * PAYLOAD).abs() < 1e-9);
    assert_eq!(result.fairness_max_min, jain(&parts));
    assert_eq!(result.fairness, jain(&goodputs));
    assert!(
        result.fairness_max_min.unwrap() > result.fairness.unwrap() + 0.1,
        "slow access links do not make the network unfair"
    );
}

#[test]
fn a_network_beyond_the_documented_size_is_refused_before_construction() {
    let links = "{ between = [\"a\", \"s\"], delay = \"1us\" },".repeat(100_001);
    let text = GENERAL.replace("links = [", &format!("links = [{links}"));
    assert_eq!(messages(&text), ["test.toml:5: topology.network.links has 100004 items; at most 100000 are possible"]);
    // A row of switches, with flows that cross the whole row.
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
fn for_a_network_with_thousands_of_errors_only_the_first_errors_are_reported() {
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
fn for_a_scenario_with_very_many_errors_only_the_first_errors_are_reported() {
    // Finding the line number of each error would take minutes.
    let text = format!("{GOOD}\n{}", "<a>\n".repeat(100_000));
    let faults = messages(&text);
    assert_eq!(faults.len(), 20);
    assert!(faults.iter().all(|fault| fault.contains("is not TOML")), "{faults:?}");
}

#[test]
fn a_truncated_scenario_is_refused_as_invalid_toml() {
    let faults = read(&GOOD[..GOOD.len() / 2]).faults;
    assert!(!faults.is_empty());
    assert!(faults.iter().all(|fault| fault.line.is_some()));
}

#[test]
fn unclosed_nested_brackets_are_an_error_not_a_stack_overflow() {
    for open in ["[", "{", "a=[", "[["] {
        let deep = open.repeat(200_000);
        assert!(!read(&deep).faults.is_empty());
        assert!(!read_json(&deep, "x").faults.is_empty());
    }
    assert!(messages(&"[".repeat(20_000_000))[0].contains("at most 16 MiB"));
}

/// Three connections in each direction between two IP networks.
const ABR: &str = r#"duration = "1s"
topology.internetwork = { sources = 3, ip_delay = "1ms", atm_delay = "1ms", bidirectional = true }
edge."*" = { buffer = 500 }
port."sw*->sw*" = { buffer = 1000, policy.tail_drop = {}, allocator.equal_share = {} }
"#;

/// Requests and queries between eight hosts at two leaf switches.
const REQUESTS: &str = r#"duration = "10ms"
topology.leaf_spine = { leaves = 2, spines = 2, hosts_per_leaf = 4, host_rate = "10Gbps", host_delay = "1us" }
[requests.web]
load = 0.5
sizes = "web_search"
[incast.query]
senders = 5
bytes = "200kB"
interval = "2ms"
[tcp.newreno]
mss = "1460B"
[port.default]
buffer = 1000
policy.ppd = {}
"#;

/// Checks the messages for the changed scenarios in `readings.txt`. The file explains its own format.
#[test]
fn the_parsed_example_scenarios_equal_the_saved_parse_results() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tests/readings.txt");
    let written = std::fs::read_to_string(path).unwrap();
    let bases =
        [("good", GOOD), ("general", GENERAL), ("chain", CHAIN), ("star", STAR), ("abr", ABR), ("requests", REQUESTS)];
    let (mut base, mut found) = ("", String::new());
    for line in written.lines().filter(|line| !line.starts_with("    ")) {
        writeln!(found, "{line}").unwrap();
        if let Some((name, _)) = line.strip_prefix("== ").and_then(|line| line.split_once(": ")) {
            base = bases.iter().find(|(known, _)| *known == name).unwrap().1;
        } else if !line.is_empty() && !line.starts_with("# ") {
            let reading = read(&changed(base, line));
            assert_eq!(reading.scenario.is_some(), reading.faults.is_empty(), "{line}");
            for fault in reading.faults {
                writeln!(found, "    {}", fault.message.strip_prefix("test.toml:").unwrap()).unwrap();
            }
            for warning in reading.warnings {
                writeln!(found, "    warning, {}: {}", warning.key, warning.message).unwrap();
            }
        }
    }
    if std::env::var_os("CELLTRAIN_BLESS").is_some() {
        std::fs::write(path, &found).unwrap();
        return;
    }
    let first = found.lines().zip(written.lines()).find(|(now, then)| now != then);
    assert!(found.lines().eq(written.lines()), "{path}: the message differs from the saved one: {first:?}");
}

/// Applies the changes in a line of `readings.txt` to a scenario.
fn changed(base: &str, line: &str) -> String {
    line.split(" && ").fold(base.to_string(), |text, change| {
        let change = change.replace("\\n", "\n");
        match (change.strip_prefix("+ "), change.split_once(" =>")) {
            (Some(more), _) => format!("{text}{more}\n"),
            (None, Some((from, to))) => {
                assert!(text.contains(from), "{line}");
                text.replacen(from, to.strip_prefix(' ').unwrap_or(to), 1)
            }
            (None, None) => panic!("{line} is not a change"),
        }
    })
}

#[test]
fn a_loss_rule_of_a_flow_applies_to_its_data_and_to_its_acknowledgements() {
    let text = format!(
        r#"{GOOD}
[link."sw1->sw2"]
lose = [{{ flow = "tcp2", packets = [7, 3] }}]
[link."sw2->sw1"]
lose = [{{ flow = "tcp2", every = {{ cells = 100 }} }}, {{ vc = "tcp1-acks", every = {{ packets = 5, first = 0 }} }}]
"#
    );
    let network = read(&text).network.unwrap();
    let rules = |link: &str| {
        let losses = &network.links.iter().find(|other| other.name == link).unwrap().losses;
        losses.iter().map(|rule| (network.vcs[rule.vc].name.as_str(), rule.unit, rule.pattern.clone()))
    };
    let every = |period, first| LossPattern::Every { period, first };
    assert!(rules("sw1->sw2").eq([("tcp2", LossUnit::Packets, LossPattern::Numbers(vec![3, 7]))]));
    let back = [("tcp2-acks", LossUnit::Cells, every(100, 99)), ("tcp1-acks", LossUnit::Packets, every(5, 0))];
    assert!(rules("sw2->sw1").eq(back));
    assert!(rules("source2->sw1").eq([]));
}

#[test]
fn a_file_size_in_the_tcp_table_of_a_scenario_applies_to_all_flows() {
    for (size, bytes) in [("file_size = \"100kB\"", Some(100_000)), ("file_size = \"512B\"", Some(512)), ("", None)] {
        let scenario = read(&format!("{GOOD}\n[measure]\n{size}")).scenario.unwrap();
        assert_eq!(build::network(&scenario, 1).file_size.map(|size| size.bytes), bytes);
    }
}

#[test]
fn the_error_for_an_integer_out_of_range_states_both_limits() {
    fn visit(schema: &serde_json::Value, path: &str, found: &mut Vec<String>) {
        let is_whole = schema["type"] == "integer" || schema["type"] == serde_json::json!(["integer", "null"]);
        // The settings of a Python class have no range, so they are left out.
        if is_whole && !path.contains("PythonSetting") {
            let told = crate::form::expectation(schema);
            if !told.contains(" to ") || told.contains("or more") {
                found.push(format!("{path}: {told}"));
            }
        }
        match schema {
            serde_json::Value::Object(map) => {
                map.iter().for_each(|(key, inner)| visit(inner, &format!("{path}.{key}"), found));
            }
            serde_json::Value::Array(items) => items.iter().for_each(|inner| visit(inner, path, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    visit(&crate::scenario::schema(), "", &mut found);
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn the_scenario_schema_lists_every_policy_and_every_tcp_variant() {
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
    fn the_scenario_parser_does_not_panic_on_any_text(text in ".{0,200}") {
        read(&text);
        read_json(&text, "x");
    }

    #[test]
    fn the_scenario_parser_does_not_panic_on_damaged_scenarios(
        good in prop_oneof![Just(GENERAL), Just(GOOD), Just(REQUESTS)],
        at in any::<prop::sample::Index>(),
        length in 0usize..12,
        new in "[-a-z0-9=\\[\\]{}\".,#\n ]{0,8}",
    ) {
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
fn the_error_for_an_invalid_value_of_one_megabyte_is_short() {
    // Regression: messages quoted the value of a quantity, a name or an unknown key in full.
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

/// Defaults that are whole numbers above 1, each with its unit. None of these defaults is a number of cells for which
/// the source gives a size in bytes.
const COUNTED_DEFAULTS: [(&str, &str); 6] = [
    ("Abr.mrm", "RM cells, which only ATM has"),
    ("Abr.nrm", "cells, as TM 4.0 counts them"),
    ("Abr.tbe", "cells, as TM 4.0 counts them"),
    ("AdaptiveDiscard.low_threshold", "packets"),
    ("SharedAdaptiveDiscard.low_threshold", "packets"),
    ("TcpOptions.minimum_rto", "ticks"),
];

#[test]
fn no_default_that_is_given_in_cells_depends_on_the_cell_size() {
    let schema = crate::scenario::schema();
    let mut found = Vec::new();
    let mut collect = |of: &str, schema: &serde_json::Value| {
        for (key, property) in schema["properties"].as_object().into_iter().flatten() {
            if property["default"].as_u64().is_some_and(|number| number > 1) {
                found.push(format!("{of}.{key}"));
            }
        }
    };
    collect("Scenario", &schema);
    for (name, one) in schema["$defs"].as_object().expect("a schema has definitions") {
        collect(name, one);
    }
    assert_eq!(found, COUNTED_DEFAULTS.map(|(key, _)| key));
}
