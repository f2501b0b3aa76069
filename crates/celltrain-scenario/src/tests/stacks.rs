//! Tests of scenarios with real transport stacks.

use celltrain_core::index::FlowIndex;

use super::*;

/// Reads a scenario with three flows, with `text` before the port's table.
fn with(text: &str) -> Reading {
    let text = format!("duration = '1s'\ntopology.n_source = {{ sources = 3, link_delay = '5us' }}\n{text}");
    read(&format!("{text}\n[port.bottleneck]\nbuffer = 2000\npolicy.epd = {{}}\n"))
}

fn faults(text: &str) -> Vec<String> {
    with(text).faults.into_iter().map(|fault| fault.message).collect()
}

#[test]
fn flows_use_the_common_protocol_stack_unless_they_specify_a_transport() {
    let reading = with(
        "[stack.smoltcp]\nmss = '1460B'\nsend_buffer = '100kB'\n[flow.tcp2]\ntcp.reno = {}\n[flow.tcp3]\nstack.smoltcp = \
         { mss = '9140B' }",
    );
    assert_eq!(reading.faults, []);
    let (scenario, network) = (reading.scenario.unwrap(), reading.network.unwrap());
    let flow = |number| &network.flows[FlowIndex::new(number)];
    assert_eq!([0, 1, 2].map(|number| flow(number).outside), [true, false, true]);
    // Two flows send packets of 1500 and 9180 bytes in frames with LLC/SNAP and AAL5 trailer. The simulated TCP has its
    // default MSS.
    assert_eq!([0, 1, 2].map(|number| flow(number).frame(&network.aal5)), [(1460, 32), (512, 12), (9140, 192)]);
    assert_eq!(flow(0).tcp.options().receive_window.bytes, 100_000, "the largest buffer");
    assert!(scenario.stack_of("tcp2").is_none() && scenario.stack_of("tcp1").is_some());
}

#[test]
fn a_source_of_unacknowledged_packets_has_no_protocol_stack() {
    let reading = with("[stack.smoltcp]\n[flow.tcp1.traffic.constant_rate]\nrate = '1Mbps'");
    assert_eq!(reading.faults, []);
    assert!(!reading.network.unwrap().flows[FlowIndex::new(0)].outside);
    let own = faults("[flow.tcp1]\nstack.smoltcp = {}\ntraffic.constant_rate = { rate = '1Mbps' }");
    assert!(own[0].contains("flow.tcp1.stack.smoltcp has no effect: the flow sends packets"), "{own:?}");
}

#[test]
fn an_unknown_setting_of_a_protocol_stack_is_refused_with_a_list_of_known_settings() {
    for (text, says) in [
        ("receive_window = '1500MB'", "must be from one segment (512B) to 1073741824B, the maximum of smoltcp"),
        ("send_buffer = '511B'", "send_buffer = \"511B\" must be from one segment (512B)"),
        ("mss = '47B'", "mss = \"47B\" must be from 48B to 65495B, as smoltcp requires"),
        (
            "mss = '65495B'",
            "mss = \"65.495kB\" makes frames of 65543 bytes with headers, but AAL5 can carry only 65535",
        ),
        ("ack_delay = '501ms'", "ack_delay = \"501ms\" must be a time of at most 500ms"),
        ("congestion = 'bbr'", "congestion = \"bbr\" is not one of \"none\", \"reno\", \"cubic\""),
        ("window = '1kB'", "window is unknown"),
    ] {
        let found = faults(&format!("[stack.smoltcp]\n{text}"));
        assert!(found.len() == 1 && found[0].contains(says), "{found:?} lacks {says}");
        let found = faults(&format!("[flow.tcp2.stack.smoltcp]\n{text}"));
        assert!(found.len() == 1 && found[0].contains(says), "{found:?} lacks {says}");
    }
}

#[test]
fn a_setting_that_quic_lacks_is_refused_with_a_list_of_quic_settings() {
    for (text, says) in [
        ("mtu = '1200B'", "mtu = \"1.2kB\" must be from 1228B (1200 bytes for QUIC and 28 bytes of headers)"),
        (
            "mtu = '65535B'",
            "mtu = \"65.535kB\" must be from 1228B (1200 bytes for QUIC and 28 bytes of headers) to 65527B \
             (the maximum of AAL5 with LLC/SNAP)",
        ),
        ("receive_window = '2999B'", "receive_window = \"2.999kB\" must be from two packets (3000B) to 1073741824B"),
        ("send_buffer = '2000MB'", "send_buffer = \"2000MB\" must be from two packets (3000B) to 1073741824B"),
        ("initial_window = '1B'", "initial_window = \"1B\" must be from two packets"),
        ("initial_rtt = '0s'", "initial_rtt = \"0s\" must be a time from 1us to 10s"),
        (
            "ack_delay = '26ms'",
            "ack_delay = \"26ms\" must be a time from 1ms to 25ms, the range that QUIC receivers allow",
        ),
        ("congestion = 'reno'", "congestion = \"reno\" is not one of \"new_reno\", \"cubic\""),
        ("mss = '512B'", "mss is unknown"),
    ] {
        let found = faults(&format!("[stack.quic]\n{text}"));
        assert!(found.len() == 1 && found[0].contains(says), "{found:?} lacks {says}");
    }
    let reading = with("[stack.quic]\nmtu = '9180B'\n[flow.tcp2]\ntcp.reno = {}");
    assert_eq!(reading.faults, []);
    let network = reading.network.unwrap();
    let flow = &network.flows[FlowIndex::new(0)];
    assert_eq!((flow.frame(&network.aal5), flow.tcp.options().receive_window.bytes), ((9140, 192), 8 * 65_535));
}

#[test]
fn unused_tcp_settings_give_a_warning_and_their_segment_size_is_not_checked_against_the_frame_size() {
    let warnings = |text: &str| with(text).warnings.into_iter().map(|warning| warning.message).collect::<Vec<_>>();
    let says = "tcp.reno has no effect: stack.smoltcp replaces it";
    assert_eq!(warnings("[stack.smoltcp]\n[tcp.reno]"), [says]);
    assert_eq!(warnings("[stack.smoltcp]\n[tcp.vanilla]\n[flow.tcp1]\ntcp.reno = {}"), [""; 0]);
    assert_eq!(warnings("[flow.tcp1.stack.smoltcp]\n[tcp.reno]"), [""; 0]);
    let found = faults("[stack.smoltcp]\n[aal5]\nmax_sdu = '300B'");
    assert!(found.len() == 1 && found[0].contains("stack.smoltcp.mss"), "{found:?}");
    let found = faults("[flow.tcp1.stack.smoltcp]\n[aal5]\nmax_sdu = '300B'");
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn an_unknown_protocol_stack_and_a_second_transport_for_the_same_flow_are_refused() {
    let found = faults("[stack.smolttcp]");
    assert!(found[0].contains("stack.smolttcp is unknown; did you mean smoltcp?"), "{found:?}");
    let found = faults("[flow.tcp1]\nstack.smoltcp = {}\ntcp.reno = {}");
    assert_eq!(
        found,
        [
            "test.toml:4: flow.tcp1.stack.smoltcp is a second transport for the flow, in addition to [flow.tcp1.tcp.reno]; choose one of the two"
        ]
    );
}

#[test]
fn only_the_data_of_the_simulated_tcp_is_divided_into_files() {
    let measure = "[measure]\nfile_size = '100kB'";
    assert_eq!(faults(&format!("[flow.tcp1.stack.smoltcp]\n{measure}")), [""; 0]);
    let found = faults(&format!("[stack.smoltcp]\n{measure}"));
    assert!(found[0].contains("has no effect: no flow uses the simulation's own TCP"), "{found:?}");
}

/// Reads a scenario with four hosts, with the keys `own` in the table of requests, and with `tables` as further tables.
fn requests(own: &str, tables: &str) -> Reading {
    read(&format!(
        "duration = '1s'\n{tables}\n[topology.leaf_spine]\nleaves = 2\nspines = 1\nhosts_per_leaf = 2\n\
         host_rate = '100Mbps'\nhost_delay = '10us'\nuplink_rate = '200Mbps'\n[requests.web]\nload = 0.3\nsizes = '10kB'\n{own}\n\
         [port.default]\nbuffer = 2000\npolicy.epd = {{}}\n"
    ))
}

#[test]
fn requests_use_the_common_protocol_stack_unless_they_specify_a_transport() {
    let outside = |own: &str, tables: &str| {
        let reading = requests(own, tables);
        assert_eq!(reading.faults, []);
        let group = &reading.network.unwrap().requests.groups.raw[0];
        (group.outside, group.tcp.options().mss.bytes)
    };
    let common = "stack.smoltcp = { mss = '1460B' }";
    assert_eq!(outside("", ""), (false, 512));
    assert_eq!(outside("", common), (true, 1460));
    assert_eq!(outside("stack.quic = {}", ""), (true, 1460));
    assert_eq!(
        outside(
            "stack.quic = { mtu = '9180B' }",
            "incast.query = { senders = 2, bytes = '1kB', interval = '1ms' }\nstack.smoltcp = {}"
        )
        .1,
        9140
    );
}

#[test]
fn an_unused_protocol_stack_or_stack_setting_is_refused_with_a_remedy() {
    for (own, tables, says) in [
        (
            "tcp.reno = {}",
            "stack.smoltcp = {}",
            "stack.smoltcp is used by no flow and no request: each has a transport of its own",
        ),
        (
            "stack.smoltcp = {}\ntcp.reno = {}",
            "",
            "requests.web.stack.smoltcp is a second transport for the requests, in addition to [requests.web.tcp.reno]",
        ),
        (
            "stack.smoltcp = {}\nhandshake = false",
            "",
            "requests.web.handshake = false is not possible with stack.smoltcp, which opens its connections; leave it out",
        ),
        ("stack.smoltcp = { mss = '47B' }", "", "requests.web.stack.smoltcp.mss = \"47B\" must be from 48B"),
    ] {
        let found = requests(own, tables).faults;
        assert!(found.len() == 1 && found[0].message.contains(says), "{found:?} lacks {says}");
    }
    let found = faults("[stack.smoltcp]\n[flow.tcp1-3]\ntcp.reno = {}");
    assert!(found.len() == 1 && found[0].contains("stack.smoltcp is used by no flow"), "{found:?}");
    let warnings = |tables| requests("", tables).warnings.into_iter().map(|one| one.message).collect::<Vec<_>>();
    assert_eq!(warnings("stack.smoltcp = {}\ntcp.reno = {}"), ["tcp.reno has no effect: stack.smoltcp replaces it"]);
    assert_eq!(warnings("stack.smoltcp = {}\ntcp.vanilla.timer.tick_phase = 'random'").len(), 1);
}

//= test rfc3168#5 "a router drops a packet that is not ECN-capable where it would mark another"
#[test]
fn a_marking_port_gives_a_warning_for_a_stack_without_ecn_and_none_for_quic() {
    let marks = "[port.default.marking]\nk_min = 100\n";
    let warnings = |text: &str| -> Vec<String> {
        let text = format!(
            "duration = '1s'\n{text}[topology.n_source]\nsources = 3\nlink_delay = '5us'\n[port.default]\nbuffer = \
             2000\npolicy.epd = {{}}\n{marks}"
        );
        let reading = read(&text);
        assert_eq!(reading.faults, []);
        let about = |warning: &crate::fault::Warning| warning.key.ends_with("marking");
        reading.warnings.into_iter().filter(about).map(|warning| warning.message).collect()
    };
    let expected = "port.default.marking drops packets above k_min instead of marking them, because stack.smoltcp does \
                    not use ECN; leave port.default.marking out";
    assert_eq!(warnings("[stack.smoltcp]\n"), [expected]);
    assert_eq!(warnings("[stack.quic]\n"), [""; 0]);
    assert_eq!(warnings("[stack.smoltcp]\n[flow.tcp2.stack.quic]\n"), [""; 0]);
}
