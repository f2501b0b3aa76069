//! Tests of the key `framing`: its default, and the rules of AAL5 that do not apply to packet framing.

use celltrain_core::aal5::Framing;
use celltrain_core::engine::Engine;

use super::{messages, read};

const LAN: &str = r#"duration = "20ms"
[topology.n_source]
sources = 5
link_delay = "5us"
"#;

const PORT: &str = "[port.bottleneck]\nbuffer = 60\npolicy.tail_drop = {}\n";

fn framing(first: &str) -> Framing {
    let reading = read(&format!("{first}{LAN}{PORT}"));
    assert_eq!(reading.faults, []);
    reading.network.expect("the scenario is valid").aal5.framing
}

#[test]
fn by_default_atm_cells_carry_aal5_frames_and_cells_of_other_sizes_carry_packets() {
    assert_eq!(framing(""), Framing::Aal5);
    assert_eq!(framing("cell.size = \"53B\"\ncell.payload = \"50B\"\n"), Framing::Aal5);
    assert_eq!(framing("cell.size = \"250B\"\n"), Framing::Packets);
    assert_eq!(framing("framing = \"packets\"\n"), Framing::Packets);
    assert_eq!(framing("framing = \"aal5\"\ncell.size = \"250B\"\n"), Framing::Aal5);
}

#[test]
fn settings_that_apply_only_to_aal5_are_refused_with_packet_framing() {
    let ppd = PORT.replace("tail_drop", "ppd");
    let from_front = PORT.replace("tail_drop", "drop_from_front");
    let contract = format!("{PORT}[vc.tcp1.gfr]\nmcr = \"1Mbps\"\nmfs = 12\n");
    for (first, ports, expected) in [
        (
            "cell.size = \"250B\"\naal5.encapsulation = \"vc_mux\"\n",
            PORT,
            "2: aal5.encapsulation has no effect with framing = \"packets\"; leave [aal5] out, or set framing = \
             \"aal5\"",
        ),
        (
            "framing = \"packets\"\naal5.max_sdu = \"9180B\"\n",
            PORT,
            "2: aal5.max_sdu = \"9.18kB\" has no effect with framing",
        ),
        ("cell.size = \"250B\"\n", &ppd, "8: port.bottleneck.policy.ppd is a rule for AAL5: with framing ="),
        ("cell.size = \"250B\"\n", &from_front, "8: port.bottleneck.policy.drop_from_front pushes out cells but keeps"),
        (
            "framing = \"packets\"\n",
            &contract,
            "1: framing = \"packets\" is not possible with a guaranteed frame rate, which needs AAL5; leave framing out",
        ),
    ] {
        let faults = messages(&format!("{first}{LAN}{ports}"));
        let [fault] = &faults[..] else { panic!("there is one fault: {faults:#?}") };
        assert!(fault.starts_with(&format!("test.toml:{expected}")), "{fault}");
    }
}

#[test]
fn packet_switch_settings_that_would_have_no_effect_are_refused() {
    let switch = |settings: &str| format!("[switch]\n{settings}\n");
    let virtual_queues = PORT.replace("tail_drop = {}", "virtual_queuing.threshold = 40");
    for (first, rest, expected) in [
        ("", switch("cut_through = true"), "9: switch.cut_through = true is a setting for framing ="),
        ("", switch("admission = \"end\""), "9: switch.admission = \"end\" is a setting for framing ="),
        (
            "cell.size = \"250B\"\n",
            switch("cut_through = true\nadmission = \"fits\""),
            "11: switch.admission = \"fits\" needs ports that store packets whole; set cut_through = false, or admission = \
             \"start\"",
        ),
    ] {
        let faults = messages(&format!("{first}{LAN}{PORT}{rest}"));
        let [fault] = &faults[..] else { panic!("there is one fault: {faults:#?}") };
        assert!(fault.starts_with(&format!("test.toml:{expected}")), "{fault}");
    }
    let fits = switch("admission = \"fits\"");
    let faults = messages(&format!("cell.size = \"250B\"\n{LAN}{virtual_queues}{fits}"));
    let [fault] = &faults[..] else { panic!("there is one fault: {faults:#?}") };
    assert!(fault.contains("follows single cells in virtual queues"), "{fault}");
}

#[test]
fn merging_vcs_are_refused_with_packet_framing() {
    let merging = "duration = \"20ms\"\n[topology.vc_merge]\nvcs = 2\nsources_per_vc = 2\nlink_delay = \"5us\"\n[port.default]\nbuffer = 600\n\
                   policy.epd.threshold = 300\n";
    for (first, expected) in [
        ("framing = \"packets\"\n", "1: framing = \"packets\" is not possible with merging VCs such as"),
        ("cell.size = \"64B\"\n", "1: cell.size = \"64B\" is not possible with merging VCs such as"),
    ] {
        let faults = messages(&format!("{first}{merging}"));
        assert!(faults.iter().any(|fault| fault.starts_with(&format!("test.toml:{expected}"))), "{faults:#?}");
    }
}

#[test]
fn a_shared_memory_that_admits_whole_packets_truncates_no_packet_until_it_is_completely_full() {
    let incast = r#"duration = "5ms"
cell.size = "250B"
[topology.star]
hosts = 9
link_rate = "10Gbps"
link_delay = "2us"
[incast.query]
senders = 8
receivers = ["host1"]
bytes = "120kB"
interval = "1ms"
[tcp.newreno]
mss = "1460B"
initial_window = 10
[switch."*".memory]
cells = 300
[switch."*".memory.pool.main.policy.dynamic_threshold]
alpha = 0.5
"#;
    for (settings, is_cut, beyond) in [
        ("framing = \"aal5\"", true, 0),
        ("switch.cut_through = true", false, 8 * 5),
        ("", false, 8 * 5),
        ("switch.admission = \"end\"", false, 8 * 5),
        ("switch.admission = \"fits\"", false, 2),
    ] {
        let reading = read(&format!("{settings}\n{incast}"));
        assert_eq!(reading.faults, []);
        let result = Engine::Fast.run_to_end(&reading.network.expect("the scenario is valid"));
        let counters = || result.ports.iter().map(|port| port.counters);
        let refused: u64 = counters().map(|all| all.discarded_frames).sum();
        let cut: u64 = counters().map(|all| all.cut_frames).sum();
        assert_eq!((cut > 0, refused > 0), (is_cut, !is_cut), "{settings}");
        // Eight packets of six cells arrive at the same time, and each packet may exceed the threshold by five cells. A
        // queue of 96 cells admits another packet, because the cells of the packet do not count in Q.
        let longest = result.memories.raw[0].queues.iter().map(|queue| queue.counters.max_cells).max();
        assert!(longest.expect("there are queues") <= 100 + beyond, "{settings}: {longest:?}");
    }
}

/// Runs an incast in which 32 hosts answer one host at the same time, and the memory of this host's leaf switch has
/// `cells` cells. Returns the number of cells that the memory refused, and the longest time of an answer in
/// milliseconds.
fn incast(settings: &str, cells: u32) -> (u64, f64) {
    let scenario = format!(
        r#"duration = "100ms"
cell.size = "256B"
[topology.leaf_spine]
leaves = 2
spines = 1
hosts_per_leaf = 64
host_rate = "100Gbps"
host_delay = "2us"
uplink_rate = "6400Gbps"
uplink_delay = "0s"
[incast.query]
senders = 32
receivers = ["host1"]
bytes = "1295360B"
interval = "60ms"
handshake = false
[tcp.newreno]
mss = "4048B"
receive_window = "4MB"
timer_granularity = "1ms"
minimum_rto = 10
timer.initial_rto = "10ms"
initial_window = 10
[switch]
{settings}
[switch."*".memory]
cells = {cells}
[switch."*".memory.pool.main.policy.dynamic_threshold]
"#
    );
    let reading = read(&scenario);
    assert_eq!(reading.faults, []);
    let network = reading.network.expect("the scenario is valid");
    let units_per_second = network.clock().units_per_second;
    let result = Engine::Fast.run_to_end(&network);
    let refused = result.memories.raw[0].queues.iter().map(|queue| queue.counters.refused).sum();
    let longest = (result.requests.iter().flat_map(|group| &group.records))
        .map(|record| record.completed().expect("the answer arrives") - record.opened)
        .max();
    (refused, longest.expect("the hosts answer").0 as f64 * 1e3 / units_per_second as f64)
}

#[test]
fn a_memory_5_percent_too_small_for_an_incast_delays_the_query_by_one_timeout() {
    // A queue of 310 packets of 16 cells stops at half of a memory of 9920 cells. The queue grows a little longer,
    // because a packet waits until all of its cells have arrived. If cells may leave before their packet is complete,
    // each of the 32 packets that arrive together may exceed the threshold by all of its cells but one.
    for (settings, smallest) in
        [("", 9913), ("admission = \"fits\"", 9928), ("admission = \"end\"", 9943), ("cut_through = true", 8989)]
    {
        assert_eq!(incast(settings, smallest).0, 0, "{settings}");
        assert!(incast(settings, smallest - 1).0 > 0, "{settings}");
        let (refused, longest) = incast(settings, smallest * 19 / 20);
        assert!((1..=32).contains(&refused) && (10.0..11.1).contains(&longest), "{settings}: {refused}, {longest} ms");
    }
}

/// Returns a scenario with two hosts at a switch. One host sends UDP packets with a payload of `payload` bytes at line
/// rate.
fn saturated(payload: u64, cell: &str, rest: &str) -> String {
    format!(
        r#"duration = "2ms"
framing = "packets"
cell = {{ size = "{cell}" }}
[topology.network]
hosts = ["a", "b"]
switches = ["sw"]
links = [
    {{ between = ["a", "sw"], rate = "10Gbps", delay = "1us" }},
    {{ between = ["b", "sw"], rate = "1Gbps", delay = "1us" }},
]
flows = [{{ from = "a", to = "b" }}]
[flow.tcp1.traffic.constant_rate]
rate = "5Gbps"
packet = "{payload}B"
[port.default]
buffer = "infinite"
policy.tail_drop = {{}}
[measure]
from = "1ms"
{rest}"#
    )
}

#[test]
fn a_saturated_ethernet_link_carries_exactly_the_packets_that_the_frame_transmission_times_allow() {
    // A packet has 28 bytes of UDP and IP headers before the payload. An Ethernet frame adds 18 bytes, and 20 bytes
    // separate the frames.
    for (payload, cell) in [(1, "250B"), (18, "250B"), (19, "250B"), (474, "250B"), (1472, "208B"), (8972, "1024B")] {
        let reading = read(&saturated(payload, cell, "[link.\"*\"]\nwire = \"ethernet\"\n"));
        assert_eq!(reading.faults, []);
        let network = reading.network.unwrap();
        assert!(network.clock().exact);
        let [fast, reference] = Engine::ALL.map(|engine| engine.run_to_end(&network));
        assert_eq!(fast, reference);
        let on_the_wire = (payload + 28 + 18).max(64) + 20;
        let packets = 1e-3 * 1e9 / (8 * on_the_wire) as f64;
        let delivered = reference.flows.iter().map(|flow| flow.packets_delivered).sum::<u64>() as f64;
        assert!((delivered - packets).abs() <= 1.0, "{payload} bytes: {delivered} packets, {packets} fit");
        let port = reference.ports.iter().find(|port| port.name == "sw->b").unwrap();
        // A cell takes at most 8 us of the measured millisecond.
        assert!(port.utilisation > 0.99, "{}", port.utilisation);
    }
}

#[test]
fn ethernet_framing_is_refused_on_links_that_send_cells_at_regular_intervals() {
    let ethernet = |text: &str, problem: &str| {
        let faults = messages(text);
        assert!(faults.len() == 1 && faults[0].contains(problem), "{faults:?}");
    };
    let text = saturated(100, "250B", "[link.\"*\"]\nwire = \"ethernet\"\n");
    ethernet(&text.replace("\"packets\"", "\"aal5\""), "wire = \"ethernet\" needs framing = \"packets\"");
    let late = "delay = [{ vc = \"tcp1\", packets = [1], by = \"1ms\" }]\n";
    let named = text.replace("[link.\"*\"]\n", &format!("[link.\"sw->b\"]\n{late}"));
    ethernet(&named, "wire = \"ethernet\" cannot be combined with delay");
    let headers = text.replace("size = \"250B\"", "size = \"250B\", payload = \"240B\"");
    ethernet(&headers, "a cell has 250B, but only 240B of a packet; set cell.payload = \"250B\"");
    ethernet(
        &text.replace("\"250B\"", "\"53B\""),
        "a cell has 53B, but only 48B of a packet; set cell.payload = \"53B\"",
    );
    let lost = text.replace("wire", "lose = [{ vc = \"tcp1\", packets = [1] }]\nwire");
    ethernet(&lost, "lose needs the name of one link instead of a pattern");
    ethernet(&text.replace("link.\"*\"", "link.\"x*\""), "is not a link");
    ethernet(&text.replace("\"ethernet\"", "\"ethernot\""), "wire");
}

#[test]
fn cells_larger_than_every_packet_give_a_warning_on_links_without_ethernet_frames() {
    let incast = |cell: &str, rest: &str| {
        let text = format!(
            "duration = \"5ms\"\ncell.size = \"{cell}\"\ntopology.star = {{ hosts = 5, link_rate = \"10Gbps\", link_delay = \"2us\" }}\n\
             tcp.newreno.mss = \"1460B\"\nport.default = {{ buffer = 100, policy.tail_drop = {{}} }}\n{rest}"
        );
        let reading = read(&text);
        assert_eq!(reading.faults, []);
        reading
            .warnings
            .iter()
            .filter(|warning| warning.key == "cell.size")
            .map(|found| found.message.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        incast("9kB", ""),
        [
            "cell.size = \"9kB\" is longer than every packet (at most 1.5kB), and links carry whole cells, so each packet takes the \
          time of 9kB; choose at most 1.5kB, or set wire = \"ethernet\" in [link.\"*\"]"
        ]
    );
    assert_eq!(incast("9kB", "link.\"*\".wire = \"ethernet\"\n"), [""; 0]);
    assert_eq!(incast("1500B", ""), [""; 0]);
    assert_eq!(incast("53B", ""), [""; 0]);
}
