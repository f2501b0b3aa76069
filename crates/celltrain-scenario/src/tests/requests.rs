//! Tests of requests: the pairs of hosts, VCs and groups that a scenario's tables describe.

use celltrain_core::index::NodeIndex;
use celltrain_core::network::Network;
use celltrain_core::requests::{Arrivals, GroupIndex, Opening, PairIndex, PairOrder, QueryTimes};
use celltrain_core::units::Duration;

use super::{REQUESTS, links, messages, read};

fn network(text: &str) -> Network {
    let reading = read(text);
    assert_eq!(reading.faults, []);
    reading.network.unwrap()
}

fn node(network: &Network, name: &str) -> NodeIndex {
    network.nodes.position(|node| node.name == name).unwrap()
}

fn pair(network: &Network, from: &str, to: &str) -> PairIndex {
    let (from, to) = (node(network, from), node(network, to));
    network.requests.pairs.position(|pair| pair.from == from && pair.to == to).unwrap()
}

#[test]
fn every_pair_of_hosts_has_a_vc_for_each_shortest_path_in_both_directions() {
    let network = network(REQUESTS);
    assert_eq!(network.requests.pairs.len(), 8 * 7);
    for (number, pair) in network.requests.pairs.iter_enumerated() {
        let back = &network.requests.pairs[pair.back];
        assert_eq!((back.from, back.to, back.back), (pair.to, pair.from, number));
        for &vc in &pair.vcs {
            assert_eq!((network.source(vc), network.destination(vc)), (pair.from, pair.to));
        }
    }
    let vcs = |from: &str, to: &str| -> Vec<(String, Vec<&str>)> {
        let vcs = &network.requests.pairs[pair(&network, from, to)].vcs;
        vcs.iter().map(|&vc| (network.vcs[vc].name.clone(), links(&network, vc))).collect()
    };
    let over = |spine: &str| {
        let names = [format!("leaf1->{spine}"), format!("{spine}->leaf2")];
        ["host1->leaf1".to_string(), names[0].clone(), names[1].clone(), "leaf2->host5".to_string()]
    };
    let far = vcs("host1", "host5");
    assert_eq!(far.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["host1->host5", "host1->host5#2"]);
    assert_eq!([&far[0].1, &far[1].1], [&over("spine1").to_vec(), &over("spine2").to_vec()]);
    assert_eq!(vcs("host2", "host1"), [("host2->host1".to_string(), vec!["host2->leaf1", "leaf1->host1"])]);
}

#[test]
fn the_mean_interval_between_the_requests_of_a_group_is_computed_from_its_load() {
    // 40 requests per second, each with 10 segments of 32 cells, take 5,427,200 bit/s of the 80 Gb/s of the eight
    // links.
    let text = REQUESTS.replace("load = 0.5", "load = 0.00006784").replace("\"web_search\"", "\"14600B\"");
    let interval = |text: &str| match &network(text).requests.groups[GroupIndex::new(0)].arrivals {
        Arrivals::Poisson { mean, .. } => *mean,
        Arrivals::Incast { .. } => panic!("the first group of requests exists"),
    };
    assert_eq!(interval(&text), Duration::from_milliseconds(25));
    // With half of the hosts as sources, the links have half of the rate, so the interval doubles. All segments are
    // full.
    let half = text.replace("[incast", "sources = [\"host1-4\"]\n[incast");
    assert_eq!(interval(&half), Duration::from_milliseconds(50));
    assert_eq!(interval(&text.replace("14600B", "14599B")), Duration::from_milliseconds(25));
    assert_eq!(interval(&text.replace("14600B", "14601B")), Duration::from_microseconds(27_500));
}

#[test]
fn each_group_of_requests_has_the_settings_of_its_table() {
    let tables = "pairs = \"all_to_all\"\nsources = [\"host1-2\"]\ndestinations = [\"host2\", \"host*5\"]\nhandshake = false\n\
                  tcp.sack = {}\n[incast.query]\ntimes = \"exponential\"\nreceivers = [\"host3\"]\nspread = \"5us\"";
    let network = network(&REQUESTS.replace("[incast.query]", tables));
    let [web, query] = &network.requests.groups.raw[..] else { panic!("there are two groups") };
    assert_eq!([(&*web.name, web.tcp.name(), web.opening)], [("web", "sack", Opening::Open)]);
    assert_eq!([(&*query.name, query.tcp.name(), query.opening)], [("query", "newreno", Opening::Handshake)]);
    let Arrivals::Poisson { pairs, order, .. } = &web.arrivals else { panic!("the group contains requests") };
    let of = [("host1", "host2"), ("host1", "host5"), ("host2", "host5")];
    assert_eq!((pairs, order), (&of.map(|(from, to)| pair(&network, from, to)).to_vec(), &PairOrder::InTurn));
    let Arrivals::Incast { interval, times, bytes, senders, receivers, spread } = &query.arrivals else {
        panic!("the group contains queries")
    };
    assert_eq!((interval, times), (&Duration::from_milliseconds(2), &QueryTimes::Exponential));
    assert_eq!((bytes.bytes, *senders, spread), (200_000, 5, &Duration::from_microseconds(5)));
    let [to_host3] = &receivers[..] else { panic!("there is one receiver") };
    let others = ["host1", "host2", "host4", "host5", "host6", "host7", "host8"];
    assert_eq!(to_host3, &others.map(|from| pair(&network, from, "host3")));
}

#[test]
fn requests_and_flows_can_be_combined_on_every_topology_without_edge_devices() {
    let tables = "[requests.web]\nload = 0.1\nsizes = \"10kB\"\n[port.default]\nbuffer = 1000\npolicy.ppd = {}\n";
    for (topology, pairs) in [
        ("n_source = { sources = 2, link_delay = \"5us\" }", 12),
        ("chain = { hops = 2, cross = 1, link_delay = \"5us\" }", 30),
        ("vc_merge = { vcs = 1, sources_per_vc = 2, link_delay = \"5us\" }", 6),
        ("star = { hosts = 3, link_delay = \"5us\" }", 6),
    ] {
        let network = network(&format!("duration = \"1ms\"\ntopology.{topology}\n{tables}"));
        assert_eq!((network.requests.pairs.len(), network.flows.is_empty()), (pairs, false), "{topology}");
    }
    let internetwork = "internetwork = { sources = 1, ip_delay = \"1us\", atm_delay = \"1us\" }";
    let [fault] = &messages(&format!(
        "duration = \"1ms\"\ntopology.{internetwork}\nedge.\"*\" = {{ buffer = 500 }}\n{tables}"
    ))[..] else {
        panic!("the scenario has one fault")
    };
    let problem = "requests.web has no path from \"source1\" to \"destination1\": requests can cross only switches, \
                   not other hosts or edge devices";
    assert!(fault.contains(problem), "{fault}");
}

#[test]
fn a_network_without_flows_needs_requests_and_no_flow_may_have_the_name_of_a_request_vc() {
    let hosts = "duration = \"1ms\"\n[topology.network]\nhosts = [\"a\", \"b\"]\nswitches = [\"s\"]\nlinks = [\
                 { between = [\"a\", \"s\"], delay = \"1us\" }, { between = [\"b\", \"s\"], delay = \"1us\" }]\n";
    let tables = "[port.default]\nbuffer = 1000\npolicy.ppd = {}\n[requests.web]\nload = 0.1\nsizes = \"10kB\"\n";
    let with = |flows: &str, tables: &str| messages(&format!("{hosts}flows = [{flows}]\n{tables}"));
    assert_eq!(with("", tables), Vec::<String>::new());
    assert_eq!(network(&format!("{hosts}flows = []\n{tables}")).flows.len(), 0);
    let without = with("", tables.split("[requests").next().unwrap());
    assert_eq!(without, ["test.toml:6: topology.network.flows is empty; a run needs at least one flow"]);
    let named = with("{ name = \"b->a\", from = \"a\", to = \"b\" }", tables);
    let problem =
        "test.toml:10: requests.web needs a VC named \"b->a\", which is the name of a flow's VC; rename the flow";
    assert_eq!(named, [problem]);
    let leaf_spine = REQUESTS.split("[requests").next().unwrap();
    let [alone] = &messages(leaf_spine)[..] else { panic!("the scenario has one fault") };
    assert!(alone.ends_with("topology.leaf_spine has no flows; write a table [requests.NAME] or [incast.NAME]"));
}

#[test]
fn a_run_that_lasts_until_its_requests_finish_needs_requests_and_a_measurement_end() {
    let star = "topology.star = { hosts = 3, link_delay = '5us' }";
    let web = "requests.web = { load = 0.3, sizes = '10kB' }";
    for (tables, says) in [
        (format!("{star}\n{web}"), "has no effect without measure.to: new requests open until the end of the run"),
        (
            "topology.n_source = { sources = 2, link_delay = '5us' }".to_owned(),
            "has no effect: no flow sends a file, and there are no requests",
        ),
    ] {
        let text = format!(
            "duration = '1s'\nuntil = 'finished'\n{tables}\nport.default = {{ buffer = 100, policy.epd = {{}} }}"
        );
        let found = read(&text).faults;
        assert!(found.len() == 1 && found[0].message.contains(says), "{found:?} lacks {says}");
        assert!(found[0].message.starts_with("test.toml:2: until = \"finished\""), "{found:?}");
    }
}
