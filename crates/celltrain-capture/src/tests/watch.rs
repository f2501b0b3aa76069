//! Tests of captures that are written during runs.

use std::collections::BTreeMap;

use celltrain_core::engine::Engine;
use celltrain_core::events::{CellStep, Event, FrameStep, Observer, SegmentStep};
use celltrain_core::network::Network;
use celltrain_core::probe::Probe;
use celltrain_core::units::Time;
use celltrain_scenario::{build, read_toml};

use super::reader::{File, crc32_is_right, read, transport};
use crate::watch::Destination;
use crate::{About, CaptureChoice, Watch};

/// Returns a scenario with three sources and a port that loses cells within frames.
fn lossy(policy: &str) -> String {
    format!(
        "duration = \"30ms\"\n[topology.n_source]\nsources = 3\nlink_delay = \"5us\"\n[tcp.reno]\n\
         timer_granularity = \"1ms\"\n[port.bottleneck]\nbuffer = 60\n[port.bottleneck.policy.{policy}]\n"
    )
}

/// Returns the scenario of `lossy` with the policy EPD, so that its port also refuses whole frames.
fn refusing() -> String {
    lossy("epd") + "threshold = 40\n"
}

/// A scenario in which VCs merge, so that cells wait at a switch until their frame is complete.
const MERGING: &str = "duration = \"30ms\"\n[topology.vc_merge]\nvcs = 2\nsources_per_vc = 2\nlink_delay = \"5us\"\n\
                       [tcp.reno]\ntimer_granularity = \"1ms\"\n[port.bottleneck]\nbuffer = 60\n\
                       [port.bottleneck.policy.epd]\nthreshold = 40\n[port.\"local*->sw1\"]\nbuffer = 60\n\
                       [port.\"local*->sw1\".policy.tail_drop]\n";

fn network(text: &str) -> Network {
    build::network(&read_toml(text, "test").expect_scenario(), 1)
}

fn choice(network: &Network, kind: &str, at: Option<&str>, ports: Option<&[&str]>) -> CaptureChoice {
    let ports = ports.map(|ports| ports.iter().map(|&port| port.to_owned()).collect());
    CaptureChoice::new(network.duration, (kind, at), [ports, None, None], None).expect("the settings are valid")
}

fn captured(network: &Network, choice: &CaptureChoice, engine: Engine) -> (File, Vec<Event>) {
    let mut bytes = Vec::new();
    let events = seen_by(network, choice, engine, &mut |block: &[u8]| {
        bytes.extend_from_slice(block);
        true
    });
    (read(&bytes), events)
}

fn seen_by(
    network: &Network,
    choice: &CaptureChoice,
    engine: Engine,
    sink: &mut dyn FnMut(&[u8]) -> bool,
) -> Vec<Event> {
    let stopped = false.into();
    let has_outcomes = engine == Engine::Reference;
    let destination = Destination { sink, about: About::default(), has_outcomes, stopped: &stopped };
    let watch = Watch::new(choice, network, destination).expect("the network has all captured flows and ports");
    let mut probe = AndAll { watch, events: Vec::new() };
    engine.run(network, &mut probe, |_| true).expect("this test never cancels a run");
    probe.watch.finish().expect("writing to memory cannot fail");
    probe.events
}

/// An observer that captures a run and also stores every event of the run.
struct AndAll<'a> {
    watch: Watch<'a>,
    events: Vec<Event>,
}

impl Probe for AndAll<'_> {}

impl Observer for AndAll<'_> {
    const OBSERVES: bool = true;

    fn on_event(&mut self, now: Time, event: Event) {
        self.events.push(event);
        self.watch.on_event(now, event);
    }
}

fn ports(network: &Network) -> Vec<&str> {
    network.links.iter().map(|link| link.name.as_str()).collect()
}

/// Returns fields of a cell's header: VPI and VCI, and whether the cell is marked, ends its frame or is tagged.
fn header(cell: &[u8]) -> (u32, bool, bool, bool) {
    let word = u32::from_be_bytes([cell[0], cell[1], cell[2], cell[3]]);
    (word >> 4, word & 0b0100 != 0, word & 0b0010 != 0, word & 1 != 0)
}

#[test]
fn a_cell_capture_contains_every_cell_that_arrived_or_left_including_cells_of_damaged_frames() {
    let texts = [lossy("tail_drop"), lossy("drop_from_front"), MERGING.to_owned(), lossy("ppd"), refusing()];
    let tested = if std::env::var_os("CELLTRAIN_NIGHTLY").is_some() { 5 } else { 2 };
    for text in &texts[..tested] {
        let network = network(text);
        let names = ports(&network);
        let choice = choice(&network, "cells", Some("both"), Some(&names));
        let (file, events) = captured(&network, &choice, Engine::Reference);
        assert!(file.interfaces.iter().all(|(link_type, _)| *link_type == 147));
        // The cell tracker reconstructs the headers in the file, whereas the events come from the engine's cells.
        let told = events.iter().filter_map(|event| match event {
            Event::Cell(cell) if cell.step == CellStep::Arrived => Some((1, cell)),
            Event::Cell(cell) if cell.step == CellStep::Departed => Some((2, cell)),
            _ => None,
        });
        let told: Vec<_> = told.collect();
        assert_eq!(file.packets.len(), told.len(), "{text}");
        assert!(file.packets.is_sorted_by_key(|packet| packet.time_ns));
        for (packet, (flags, cell)) in file.packets.iter().zip(&told) {
            let (_, efci, last, tagged) = header(&packet.bytes);
            assert_eq!(packet.interface, cell.link.number());
            assert_eq!((packet.flags, efci, last, tagged), (*flags, cell.efci, cell.last, cell.tagged), "{text}");
        }
        assert!(events.iter().any(|event| matches!(event, Event::Frame(of) if of.step != FrameStep::Delivered)));
        whole_frames_have_their_crc(&network, &file, &events);
    }
}

/// Checks that exactly the frames that are delivered intact have a correct CRC-32 in the capture.
fn whole_frames_have_their_crc(network: &Network, file: &File, events: &[Event]) {
    let into_hosts: Vec<bool> = network
        .links
        .iter()
        .map(|link| network.nodes[link.to].kind == celltrain_core::network::NodeKind::Host)
        .collect();
    let mut frames: BTreeMap<(u32, u32), Vec<u8>> = BTreeMap::new();
    let (mut right, mut wrong) = (0, 0);
    let leaves = |packet: &&super::reader::Packet| packet.flags == 2 && into_hosts[packet.interface as usize];
    for packet in file.packets.iter().filter(leaves) {
        let (circuit, _, last, _) = header(&packet.bytes);
        let frame = frames.entry((packet.interface, circuit)).or_default();
        frame.extend_from_slice(&packet.bytes[5..]);
        if last {
            *if crc32_is_right(&std::mem::take(frame)) { &mut right } else { &mut wrong } += 1;
        }
    }
    let ended = |wanted: fn(&FrameStep) -> bool| {
        events.iter().filter(|event| matches!(event, Event::Frame(of) if wanted(&of.step))).count()
    };
    let (delivered, failed) =
        (ended(|step| *step == FrameStep::Delivered), ended(|step| matches!(step, FrameStep::Failed(_))));
    // At the end of the run, some frames have left the last port but have not yet arrived at the host.
    let on_the_way = network.vcs.len() * 2;
    assert!((delivered..=delivered + on_the_way).contains(&right), "{right} right, {delivered} delivered");
    assert!((failed..=failed + on_the_way).contains(&wrong), "{wrong} wrong, {failed} failed");
    assert!(delivered > 100);
}

#[test]
fn a_cell_has_the_same_bytes_at_every_capture_point_on_its_path() {
    let network = network(&lossy("tail_drop"));
    let names = ports(&network);
    let (file, _) = captured(&network, &choice(&network, "cells", Some("both"), Some(&names)), Engine::Reference);
    // Returns the payloads of all cells of a VC that arrived at a port or left the port. The direction is given by
    // `flags`. The links of the first source carry only one VC.
    let payloads = |port: &str, flags: u32, circuit: u32| -> Vec<&[u8]> {
        let interface = names.iter().position(|name| *name == port).expect("the capture contains the port");
        let here = |packet: &&super::reader::Packet| {
            packet.interface as usize == interface && packet.flags == flags && header(&packet.bytes).0 == circuit
        };
        file.packets.iter().filter(here).map(|packet| &packet.bytes[5..]).collect()
    };
    let sent = payloads("source1->sw1", 2, 32);
    let behind = payloads("sw1->sw2", 2, 32);
    let at_the_end = payloads("sw2->destination1", 2, 32);
    assert!(behind.len() < sent.len(), "some cells are lost: {} of {}", behind.len(), sent.len());
    let mut all = sent.iter();
    assert!(
        behind.iter().all(|cell| all.any(|other| other == cell)),
        "cells leave the port in the order of their arrival"
    );
    assert_eq!(at_the_end[..], behind[..at_the_end.len()]);
    assert!(at_the_end.len() + 100 > behind.len());
}

#[test]
fn captured_packets_are_in_time_order_and_a_lost_packet_names_where_it_was_lost() {
    let network = network(&refusing());
    let (file, events) = captured(&network, &choice(&network, "ip", None, None), Engine::Reference);
    let names: Vec<_> = file.interfaces.iter().map(|(_, options)| options.0[0].1.clone()).collect();
    assert_eq!(names, ["source1", "source2", "source3"].map(|name| name.as_bytes().to_vec()));
    assert!(file.packets.is_sorted_by_key(|packet| packet.time_ns));
    let sent_or_come = events.iter().filter(|event| match event {
        Event::Segment(of) => !matches!(of.step, SegmentStep::Arrived { .. } | SegmentStep::AckSent { .. }),
        _ => false,
    });
    let handshakes = 3 * 3;
    assert_eq!(file.packets.len(), handshakes + sent_or_come.count());
    let comments: Vec<_> = file.packets[handshakes..].iter().filter_map(|packet| packet.comment.clone()).collect();
    let refused: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Frame(of) => match of.step {
                FrameStep::Refused(judged) => {
                    let x = judged.occupancy;
                    Some(format!(
                        "lost at sw1->sw2: refused: X is above R (X = {x} cells waiting, threshold R = 40 cells)"
                    ))
                }
                FrameStep::Cut { occupancy, .. } => {
                    Some(format!("lost at sw1->sw2: cut: no room (X = {occupancy} cells waiting)"))
                }
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert!(refused.len() > 10, "{refused:?}");
    // Sort the comments, because packets are captured in the order in which they were sent, but losses are reported in
    // the order in which they happened at the port.
    let sorted = |mut list: Vec<String>| {
        list.sort_unstable();
        list
    };
    assert_eq!(sorted(comments), sorted(refused));
}

#[test]
fn both_engines_capture_the_same_packets_but_only_the_reference_engine_adds_comments() {
    for at in ["sender", "receiver", "both"] {
        for kind in ["ip", "aal5"] {
            let network = network(&lossy("ppd"));
            let choice = choice(&network, kind, Some(at), None);
            let [slow, fast] =
                [Engine::Reference, Engine::Fast].map(|engine| captured(&network, &choice, engine).0.packets);
            let made_up = |text: &String| text.starts_with("synthetic");
            let without = |packets: &[super::reader::Packet]| -> Vec<_> {
                let strip = |packet: &super::reader::Packet| super::reader::Packet {
                    comment: packet.comment.clone().filter(made_up),
                    ..packet.clone()
                };
                packets.iter().map(strip).collect()
            };
            assert!(slow != fast || at == "receiver", "data is lost");
            assert_eq!(without(&slow), fast);
        }
    }
}

#[test]
fn a_captured_cell_that_the_port_drops_on_arrival_is_labelled_as_dropped() {
    let network = network(&refusing());
    let (file, events) = captured(&network, &choice(&network, "cells", Some("in"), None), Engine::Reference);
    let lost = events.iter().filter(|event| match event {
        Event::Cell(of) => of.link == network.bottleneck && matches!(of.step, CellStep::Lost(_)),
        _ => false,
    });
    let comments: Vec<_> = file.packets.iter().filter_map(|packet| packet.comment.as_deref()).collect();
    assert_eq!(comments.len(), lost.count());
    assert!(comments.contains(&"lost here: its frame was refused"));
    assert!(comments.iter().any(|text| text.starts_with("lost at sw1->sw2: refused: X is above R (X = ")));
}

#[test]
fn a_cell_lost_on_a_link_is_captured_before_the_link_and_not_after_it() {
    let rules = r#"
        [link."source1->sw1"]
        lose = [{ flow = "tcp1", packets = [3] }]
        [link."sw2->destination1"]
        lose = [{ flow = "tcp1", cells = [30] }]
    "#;
    let network = network(&format!("{}{rules}", lossy("tail_drop")));
    let (file, _) = captured(&network, &choice(&network, "ip", None, None), Engine::Reference);
    let comments: Vec<_> = file.packets.iter().filter_map(|packet| packet.comment.as_deref()).collect();
    for (link, what) in [("source1->sw1", "packet"), ("sw2->destination1", "cell")] {
        let number = if what == "packet" { 3 } else { 30 };
        let comment = format!("lost on {link}: {what} chosen by a loss rule (number {number})");
        assert!(comments.contains(&comment.as_str()), "{comments:?}");
    }
    let names = ports(&network);
    let (file, events) = captured(&network, &choice(&network, "cells", Some("both"), Some(&names)), Engine::Reference);
    let lost = |event: &&Event| matches!(event, Event::Cell(of) if matches!(of.step, CellStep::LostOnLink(_)));
    assert_eq!(events.iter().filter(lost).count(), 13, "the capture has a packet of 12 cells and a single cell");
    let moved =
        |event: &&Event| matches!(event, Event::Cell(of) if matches!(of.step, CellStep::Arrived | CellStep::Departed));
    assert_eq!(file.packets.len(), events.iter().filter(moved).count());
}

#[test]
fn impossible_capture_options_are_refused_with_a_message() {
    let duration = network(&lossy("ppd")).duration;
    let said = |kind: &str, at: Option<&str>, ports: Option<&str>| {
        let ports = ports.map(|port| vec![port.to_owned()]);
        CaptureChoice::new(duration, (kind, at), [ports, None, None], None)
            .expect_err("the choice is refused")
            .to_string()
    };
    assert_eq!(
        said("cell", None, None),
        "kind = \"cell\" is not a kind of capture; did you mean cells? (choose from ip, aal5, cells, wireshark_cells)"
    );
    assert!(said("ip", Some("out"), None).starts_with("at = \"out\" is not an end of a connection"));
    assert!(said("cells", Some("sender"), None).ends_with("is not a direction at a port (choose from out, in, both)"));
    assert!(said("ip", None, Some("sw1->sw2")).contains("packets are captured at hosts; choose flows"));
}

#[test]
fn packets_too_long_for_their_link_type_are_refused_before_the_run() {
    let text = lossy("tail_drop").replace("timer_granularity", "mss = \"65480B\"\ntimer_granularity");
    let network = network(&text.replace("buffer = 60", "buffer = 6000"));
    let mut sink = |_: &[u8]| true;
    let stopped = false.into();
    let destination = Destination { sink: &mut sink, about: About::default(), has_outcomes: true, stopped: &stopped };
    let choice = choice(&network, "aal5", None, None);
    let refused = Watch::new(&choice, &network, destination).err();
    let problem = refused.expect("the capture is refused");
    assert!(problem.contains("do not fit"), "{problem}");
}

#[test]
fn with_packet_framing_only_ip_packets_can_be_captured() {
    let network = network(&format!("framing = \"packets\"\n{}", lossy("tail_drop")));
    let names = ports(&network);
    for kind in ["aal5", "cells", "wireshark_cells"] {
        let (at, ports) = if kind == "aal5" { (None, None) } else { (Some("both"), Some(&names[..])) };
        let choice = choice(&network, kind, at, ports);
        let stopped = false.into();
        let mut sink = |_: &[u8]| true;
        let destination =
            Destination { sink: &mut sink, about: About::default(), has_outcomes: true, stopped: &stopped };
        let problem = Watch::new(&choice, &network, destination).err().expect("the capture is refused");
        assert!(problem.ends_with("capture ip"), "{problem}");
    }
    let (file, _) = captured(&network, &choice(&network, "ip", None, None), Engine::Reference);
    let comments: Vec<_> = file.packets.iter().filter_map(|packet| packet.comment.as_deref()).collect();
    assert!(comments.iter().any(|comment| comment.starts_with("lost at")), "{comments:?}");
    assert!(!comments.iter().any(|comment| comment.contains("joined")), "{comments:?}");
}

#[test]
fn after_a_write_error_the_capture_writes_nothing_more_and_the_run_stops() {
    let network = network(&lossy("ppd"));
    let names = ports(&network);
    let choice = choice(&network, "cells", Some("both"), Some(&names));
    let mut asked = 0;
    let mut sink = |_: &[u8]| {
        asked += 1;
        false
    };
    let stopped = false.into();
    let destination = Destination { sink: &mut sink, about: About::default(), has_outcomes: true, stopped: &stopped };
    let mut watch = Watch::new(&choice, &network, destination).expect("the network has all captured flows and ports");
    Engine::Reference.run(&network, &mut watch, |_| !stopped.load(std::sync::atomic::Ordering::Relaxed)).ok();
    watch.finish().expect("the error is the one that the writer returned");
    assert_eq!(asked, 1);
    assert!(stopped.into_inner());
}

/// Returns a network whose only traffic is queries. Some segments of the answers are lost.
fn incast(more: &str) -> Network {
    let link = |host| format!("{{ between = [\"host{host}\", \"sw\"], delay = \"5us\" }}");
    let links = [1, 2, 3, 4].map(link).join(", ");
    network(&format!(
        "duration = \"30ms\"\n[topology.network]\nhosts = [\"host1\", \"host2\", \"host3\", \"host4\"]\n\
         switches = [\"sw\"]\nlinks = [{links}]\nflows = []\n[incast.q]\nsenders = 3\n\
         receivers = [\"host1\"]\nbytes = \"60kB\"\ninterval = \"4ms\"\n{more}\n[tcp.sack]\nminimum_rto = 1\n\
         timer_granularity = \"1ms\"\n[port.default]\nbuffer = 60\n[port.default.policy.tail_drop]\n"
    ))
}

/// A TCP packet: its time, flags, payload bytes and comment.
type Packet = (u64, u8, usize, Option<String>);

/// Returns the TCP packets of each connection, keyed by the lower and the higher port number.
fn by_connection(file: &File) -> BTreeMap<[u16; 2], Vec<Packet>> {
    let mut connections: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for packet in &file.packets {
        let tcp = etherparse::TcpSlice::from_slice(transport(&packet.bytes)).expect("the packet is a valid TCP packet");
        let mut ports = [tcp.source_port(), tcp.destination_port()];
        ports.sort_unstable();
        let flags = tcp.slice()[13];
        connections.entry(ports).or_default().push((
            packet.time_ns,
            flags,
            tcp.payload().len(),
            packet.comment.clone(),
        ));
    }
    connections
}

const SYN: u8 = 0b10;
const ACK: u8 = 0b1_0000;

#[test]
fn the_captured_packets_of_each_request_form_one_connection_with_the_simulated_handshake() {
    use celltrain_core::events::HandshakeStep::{SynAckArrived, SynAckSent, SynArrived, SynSent};

    let network = incast("");
    for at in ["sender", "receiver"] {
        let choice = choice(&network, "ip", Some(at), None);
        let (file, events) = captured(&network, &choice, Engine::Reference);
        let count = |is: fn(&SegmentStep) -> bool| {
            events.iter().filter(|event| matches!(event, Event::Segment(of) if is(&of.step))).count()
        };
        let of_sender = |step: &SegmentStep| match step {
            SegmentStep::Arrived { .. } | SegmentStep::AckSent { .. } => false,
            SegmentStep::Handshake(step) => matches!(step, SynSent { .. } | SynAckArrived),
            _ => true,
        };
        let of_receiver = |step: &SegmentStep| match step {
            SegmentStep::Arrived { .. } | SegmentStep::AckSent { .. } => true,
            SegmentStep::Handshake(step) => matches!(step, SynArrived | SynAckSent),
            _ => false,
        };
        assert_eq!(file.packets.len(), count(if at == "sender" { of_sender } else { of_receiver }));
        let connections = by_connection(&file);
        // The run has seven queries with three answers each. A lost SYN is not captured at the receiver.
        assert!(if at == "sender" { connections.len() == 21 } else { connections.len() > 12 }, "{}", connections.len());
        assert!(file.packets.is_sorted_by_key(|packet| packet.time_ns));
        let hosts = file.interfaces.len();
        assert_eq!(hosts, if at == "sender" { 3 } else { 1 });
        for (number, packets) in connections.values().enumerate() {
            let flags: Vec<u8> = packets.iter().map(|packet| packet.1).collect();
            // A SYN may occur several times, because a lost SYN is retransmitted.
            let opened = flags.iter().skip_while(|flags| **flags == SYN).skip_while(|flags| **flags == SYN | ACK);
            assert!(flags[0] == SYN && opened.copied().all(|flags| flags == ACK), "{at}: {flags:?}");
            let comment = packets[0].3.as_deref().expect("the comment of a SYN names its request");
            assert!(comment.starts_with(&format!("opens q{number}")) || at == "receiver", "{comment}");
        }
        let lost = file.packets.iter().filter_map(|packet| packet.comment.as_deref());
        let lost = lost.filter(|text| text.contains("lost at sw->host1: cut: no room (X = 60 cells waiting)")).count();
        assert!(if at == "sender" { lost > 10 } else { lost == 0 }, "{lost}");
    }
}

#[test]
fn the_capture_of_a_request_without_a_simulated_handshake_has_a_handshake_labelled_synthetic() {
    for (more, window) in [("handshake = false", None), ("", Some("4200us:30ms"))] {
        let network = incast(more);
        let choice = CaptureChoice::new(network.duration, ("ip", None), [None, None, None], window)
            .expect("the choice is valid");
        let (file, _) = captured(&network, &choice, Engine::Reference);
        let connections = by_connection(&file);
        let made_up = |packets: &&Vec<(u64, u8, usize, Option<String>)>| {
            // The time window may end between a lost SYN and its retransmission.
            let flags: Vec<u8> = packets.iter().take(3).map(|packet| packet.1).collect();
            assert!(flags.starts_with(&[SYN]) && (flags.len() < 2 || flags[1] & !ACK == SYN), "{flags:?}");
            packets.len() > 2
                && packets[..3]
                    .iter()
                    .all(|packet| packet.3.as_ref().is_some_and(|text| text.starts_with("synthetic: q")))
        };
        let count = connections.values().filter(made_up).count();
        assert_eq!((count, connections.len()), if window.is_some() { (3, 21) } else { (21, 21) });
    }
}

#[test]
fn captured_cells_of_requests_form_complete_frames_with_and_without_llc_headers() {
    for framing in ["", "[aal5]\nencapsulation = \"vc_mux\""] {
        let network = incast(framing);
        let names = ports(&network);
        let choice = choice(&network, "cells", Some("both"), Some(&names));
        let (file, events) = captured(&network, &choice, Engine::Reference);
        let moved = |event: &&Event| matches!(event, Event::Cell(of) if matches!(of.step, CellStep::Arrived | CellStep::Departed));
        assert_eq!(file.packets.len(), events.iter().filter(moved).count());
        whole_frames_have_their_crc(&network, &file, &events);
    }
}

#[test]
fn captured_acknowledgements_with_sack_blocks_have_as_many_cells_as_the_simulated_acknowledgements() {
    let text = lossy("tail_drop").replace("tcp.reno", "tcp.sack").replace("30ms", "8ms")
        + "[aal5]\nencapsulation = \"vc_mux\"\n";
    let network = network(&text);
    let names = ports(&network);
    let (file, events) = captured(&network, &choice(&network, "cells", Some("both"), Some(&names)), Engine::Reference);
    let has_blocks = |event: &Event| matches!(event, Event::Segment(of) if matches!(of.step, SegmentStep::AckSent { blocks, .. } if !blocks.is_empty()));
    assert!(events.iter().any(has_blocks));
    whole_frames_have_their_crc(&network, &file, &events);
}

#[test]
fn a_capture_that_would_be_empty_is_refused_with_a_list_of_possible_capture_points() {
    let refused = |network: &Network, kind: &str, [ports, vcs, flows]: [Option<&str>; 3]| {
        let list = |name: Option<&str>| name.map(|name| vec![name.to_owned()]);
        let choice = CaptureChoice::new(network.duration, (kind, None), [list(ports), list(vcs), list(flows)], None)
            .expect("the choice is valid");
        let (mut sink, stopped) = (|_: &[u8]| true, false.into());
        let into = Destination { sink: &mut sink, about: About::default(), has_outcomes: true, stopped: &stopped };
        Watch::new(&choice, network, into).err().expect("the capture would be empty")
    };
    let lan = network(&lossy("ppd"));
    for kind in ["cells", "wireshark_cells"] {
        assert_eq!(
            refused(&lan, kind, [Some("sw2->destination2"), None, Some("tcp1")]),
            "the capture would be empty: no chosen cells cross sw2->destination2; choose from sw1->sw2, sw2->sw1, \
             source1->sw1, sw1->source1, sw2->destination1, destination1->sw2"
        );
    }
    let queries = incast("");
    let said = refused(&queries, "ip", [None, Some("host2->host1"), None]);
    assert!(said.starts_with("the capture would be empty: the chosen VCs carry requests"), "{said}");
    assert!(refused(&queries, "cells", [Some("host4->sw"), Some("host2->host1"), None]).contains("choose from"));
}

#[test]
fn capturing_a_time_window_without_packets_is_an_error_that_reports_when_packets_were_sent() {
    let network = network(&lossy("ppd").replace("30ms\"\n", "6ms\"\n[flow.tcp1]\nstart = \"2ms\"\n"));
    let ended = |(kind, at): (&str, &str), window: &str, engine: Engine| {
        let flows = Some(vec!["tcp1".to_owned()]);
        let choice = CaptureChoice::new(network.duration, (kind, Some(at)), [None, None, flows], Some(window))
            .expect("the choice is valid");
        let (mut sink, stopped) = (|_: &[u8]| true, false.into());
        let has_outcomes = engine == Engine::Reference;
        let into = Destination { sink: &mut sink, about: About::default(), has_outcomes, stopped: &stopped };
        let mut watch = Watch::new(&choice, &network, into).expect("the choice is valid");
        engine.run(&network, &mut watch, |_| true).expect("no test cancels a run");
        watch.finish().expect("the traffic can be represented").packets()
    };
    for (kind, at, what) in [
        ("ip", "sender", "packets at senders"),
        ("aal5", "receiver", "packets at receivers"),
        ("ip", "both", "packets at hosts"),
        ("cells", "out", "cells at the chosen ports"),
        ("wireshark_cells", "in", "cells at the chosen ports"),
    ] {
        // Captures of cells need the reference engine, because only this engine reports cells.
        let engines: &[_] =
            if kind.ends_with("cells") { &[Engine::Reference] } else { &[Engine::Reference, Engine::Fast] };
        for &engine in engines {
            let problem = ended((kind, at), "1ms:2ms", engine).expect_err("the flow starts later");
            let begin = format!("the capture would be empty: its window has no chosen {what}; the run has them from ");
            let rest = problem.strip_prefix(&begin).unwrap_or_else(|| panic!("{problem}"));
            let (first, last) = rest.split_once(" to ").expect("the error has two times");
            let [first, last] = [first, last].map(|time| time.strip_suffix('s').unwrap().parse::<f64>().unwrap());
            assert!((0.002..0.0022).contains(&first) && (first..=0.006).contains(&last), "{kind} {at}: {problem}");
            // A capture whose window begins at the first or the last time in the error message is not empty.
            let window = format!("{first}s:{:.9}s", first + 1e-6);
            assert!(ended((kind, at), &window, engine).is_ok(), "{window}");
            let window = format!("{last}s:{:.9}s", (last + 1e-6).min(0.006));
            assert!(ended((kind, at), &window, engine).is_ok(), "{window}");
        }
    }
}
