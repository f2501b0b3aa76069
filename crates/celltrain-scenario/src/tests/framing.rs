//! Tests of the key `framing`: its default, and the rules of AAL5 that do not apply to packets that delimit themselves.

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
fn cells_of_atm_carry_aal5_frames_and_other_cells_packets_unless_the_scenario_says_otherwise() {
    assert_eq!(framing(""), Framing::Aal5);
    assert_eq!(framing("cell.size = \"53B\"\ncell.payload = \"50B\"\n"), Framing::Aal5);
    assert_eq!(framing("cell.size = \"250B\"\n"), Framing::Packets);
    assert_eq!(framing("framing = \"packets\"\n"), Framing::Packets);
    assert_eq!(framing("framing = \"aal5\"\ncell.size = \"250B\"\n"), Framing::Aal5);
}

#[test]
fn rules_of_aal5_are_refused_if_packets_delimit_themselves() {
    let ppd = PORT.replace("tail_drop", "ppd");
    let from_front = PORT.replace("tail_drop", "drop_from_front");
    let contract = format!("{PORT}[vc.tcp1.gfr]\nmcr = \"1Mbps\"\nmfs = 12\n");
    for (first, ports, expected) in [
        (
            "cell.size = \"250B\"\naal5.encapsulation = \"vc_mux\"\n",
            PORT,
            "2: aal5.encapsulation has no effect on packets that delimit themselves; leave [aal5] out, or set framing = \
             \"aal5\"",
        ),
        (
            "framing = \"packets\"\naal5.max_sdu = \"9180B\"\n",
            PORT,
            "2: aal5.max_sdu = \"9.18kB\" has no effect on packets",
        ),
        ("cell.size = \"250B\"\n", &ppd, "8: port.bottleneck.policy.ppd is a rule for AAL5: if packets delimit"),
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
fn merging_vcs_are_refused_if_packets_delimit_themselves() {
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
fn a_memory_admits_whole_packets_so_that_no_packet_is_cut_before_the_memory_is_completely_full() {
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
    for (framing, is_cut) in [("aal5", true), ("packets", false)] {
        let reading = read(&format!("framing = \"{framing}\"\n{incast}"));
        assert_eq!(reading.faults, []);
        let result = Engine::Fast.run_to_end(&reading.network.expect("the scenario is valid"));
        let counters = || result.ports.iter().map(|port| port.counters);
        let refused: u64 = counters().map(|all| all.discarded_frames).sum();
        let cut: u64 = counters().map(|all| all.cut_frames).sum();
        assert_eq!((cut > 0, refused > 0), (is_cut, !is_cut), "{framing}");
        // Each of the eight packets that arrive at the same time has six cells. It may exceed the threshold by five.
        let longest = result.memories.raw[0].queues.iter().map(|queue| queue.counters.max_cells).max();
        assert!(longest.expect("there are queues") <= 100 + 8 * 5, "{longest:?}");
    }
}
