//! Tests of the shares of DCTCP flows in a network with two bottlenecks.
//!
//! Source: Alizadeh and others, "Data center TCP (DCTCP)", ACM SIGCOMM 2010, section 4.1: ten senders S1 and twenty
//! senders S2 share a link of 10 Gb/s, and S1 and ten senders S3 share the 1 Gb/s of a receiver. A port of 1 Gb/s marks
//! packets above 20 waiting packets, and a port of 10 Gb/s above 65. The paper measured the rates on real hosts.

use std::fmt::Write;

use celltrain_core::engine::Engine;
use celltrain_scenario::{build, read_toml};

/// A group of hosts: its letter, number of hosts and switch, and the rate of each sender in Mb/s in the paper.
type Group = (&'static str, usize, &'static str, f64);
const GROUPS: [Group; 3] = [("a", 10, "t1", 46.0), ("b", 20, "t1", 475.0), ("c", 10, "t2", 54.0)];
/// Length of a packet in bytes, of which 1460 are payload.
const PACKET: f64 = 1516.0;

/// Returns the scenario of the network with these settings of TCP. Each packet is one cell.
fn network(settings: &str) -> String {
    let names = |(letter, count, ..): Group| (1..=count).map(move |i| format!("{letter}{i}"));
    let receivers = ("r", 20, "t2", 0.0);
    let all = || GROUPS.into_iter().chain([receivers, ("x", 1, "t2", 0.0)]);
    let mut text = format!(
        "duration = \"150ms\"\nmeasure.from = \"50ms\"\ncell.size = \"{PACKET}B\"\n[topology.network]\n\
         hosts = {:?}\nswitches = [\"t1\", \"s\", \"t2\"]\nbottleneck = \"t2->x1\"\n",
        all().flat_map(names).collect::<Vec<_>>()
    );
    let hosts = all().flat_map(|group| names(group).map(move |host| (host, group.2, 1)));
    let switches = [("t1", 10), ("t2", 10)].map(|(switch, rate)| (switch.to_string(), "s", rate));
    for (one, other, rate) in hosts.chain(switches) {
        let between = [one.as_str(), other];
        let ends = format!("between = {between:?}\nrate = \"{rate}Gbps\"\ndelay = \"10us\"");
        writeln!(text, "[[topology.network.links]]\n{ends}").unwrap();
    }
    for (from, to) in GROUPS.into_iter().flat_map(|group| names(group).zip(names(receivers))) {
        let to = if from.starts_with('b') { &to } else { "x1" };
        writeln!(text, "[[topology.network.flows]]\nfrom = \"{from}\"\nto = \"{to}\"").unwrap();
    }
    for (port, marked_from) in [("default", 20), ("\"t1->s\"", 65)] {
        writeln!(text, "[port.{port}]\nbuffer = 1000\npolicy.tail_drop = {{}}\nmarking.k_min = {marked_from}").unwrap();
    }
    text + r#"
[tcp.newreno]
mss = "1460B"
receive_window = "3MB"
initial_window = 10
timer_granularity = "1ms"
minimum_rto = 10
ecn = "on"
congestion = "dctcp"
"# + settings
}

/// Returns the mean rate of a sender of each group in Mb/s, headers included. Both engines must give equal rates.
fn rates(text: &str) -> [f64; 3] {
    let scenario = read_toml(text, "here.toml").expect_scenario();
    let network = build::network(&scenario, scenario.seed);
    let [result, reference] = [Engine::Fast, Engine::Reference].map(|engine| engine.run_to_end(&network));
    assert_eq!(result.fingerprint, reference.fingerprint);
    let mut goodputs = result.flows.iter().map(|flow| flow.goodput_mbps);
    GROUPS.map(|(_, count, ..)| goodputs.by_ref().take(count).sum::<f64>() / count as f64 * PACKET / 1460.0)
}

/// The windows of S1 and S3 are so small that the shares depend on the minimum window. RFC 8257 sets no minimum, and
/// RFC 3168 (6.1.2) sets a minimum of one segment. Windows and Linux have a minimum of two segments, so that more than
/// 20 packets always wait at the receiver's port and every packet is marked. As in the paper (3.1), receivers delay
/// acknowledgements.
#[test]
fn dctcp_under_its_paper_rules_gets_the_rates_published_for_paths_with_two_bottlenecks() {
    let rates = rates(&network("rules = \"paper\"\ndelayed_acks = \"200ms\""));
    for (rate, (.., measured)) in rates.iter().zip(GROUPS) {
        assert!((rate / measured - 1.0).abs() < 0.1, "{rates:?}");
    }
}

#[test]
fn dctcp_with_a_minimum_window_of_one_segment_gets_less_than_published_through_two_bottlenecks() {
    let rates @ [s1, s2, s3] = rates(&network(""));
    // The two bottleneck links are nevertheless full.
    assert!(s1 + s3 > 98.0 && s1 + 2.0 * s2 > 980.0, "{rates:?}");
    assert!(s1 < 40.0, "{rates:?}");
}
