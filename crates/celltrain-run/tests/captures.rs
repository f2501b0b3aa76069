//! Tests captures of random networks. An independent reader and the codecs read each capture without an error, or the
//! capture is refused with a message. The networks push out cells, lose cells on links, host real stacks and open
//! requests.
//!
//! `CELLTRAIN_CAPTURES=200` draws 200 networks, and tshark reads the captures too (`make campaign NAME=captures`).
//! `CELLTRAIN_CAPTURES_SEED=7` starts with seed 7. Captures are in `target/tmp/captures`.

#[path = "../../celltrain-capture/src/tests/reader.rs"]
#[allow(dead_code, reason = "only some of the tests that include this file read all fields")]
mod reader;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use celltrain_capture::CaptureChoice;
use celltrain_capture::codec::rm_cell::RmCell;
use celltrain_capture::codec::{CELL_BYTES, CellHeader, Reassembler, aal5, llc_snap};
use celltrain_core::cancellation::CancellationToken;
use celltrain_core::engine::Engine;
use celltrain_core::rng::Stream;
use celltrain_run::Unfinished;
use celltrain_run::runner::{Captured, How, Progress, Watched, one_watched};
use celltrain_run::scenario::Handle;
use celltrain_scenario::read_toml;
use etherparse::{SlicedPacket, TransportSlice};

/// Draws one of the options.
fn pick<T: Copy>(random: &mut Stream, options: &[T]) -> T {
    options[random.below(u32::try_from(options.len()).unwrap()) as usize]
}

/// A network and the part of it to capture.
#[derive(Debug)]
struct Case {
    scenario: String,
    kind: &'static str,
    at: Option<&'static str>,
    ports: Option<Vec<String>>,
    flow: Option<Which>,
    window: Option<&'static str>,
    is_vc_mux: bool,
}

/// Flow to which a capture is restricted.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Which {
    First,
    Last,
}

/// Implementation of the ends of connections in a network.
#[derive(Clone, Copy, PartialEq)]
enum Ends {
    Model,
    Stack(&'static str),
    /// Requests over simulated TCP. The value is true if the network has flows as well as queries.
    Requests(bool),
}

fn case(seed: u64) -> Case {
    let random = &mut Stream::new(seed, "captures");
    let ends = pick(
        random,
        &[Ends::Model, Ends::Stack("smoltcp"), Ends::Stack("quic"), Ends::Requests(false), Ends::Requests(true)],
    );
    let (network, mut ports) = network(ends, random);
    let mut text = format!("duration = \"12ms\"\n{network}{}", hosts(ends, random));
    let is_vc_mux = random.below(2) == 0;
    if is_vc_mux {
        text += "[aal5]\nencapsulation = \"vc_mux\"\n";
    }
    let kind = pick(random, &["ip", "aal5", "cells", "cells", "wireshark_cells"]);
    let is_cells = kind.ends_with("cells");
    let at: &[Option<&str>] = if is_cells {
        &[None, Some("in"), Some("both"), Some("both")]
    } else {
        &[None, Some("receiver"), Some("both")]
    };
    ports.rotate_left(random.below(4) as usize);
    ports.truncate(1 + random.below(4) as usize);
    let ports = (is_cells && random.below(3) > 0).then(|| ports.into_iter().map(str::to_owned).collect());
    let has_flows = ends != Ends::Requests(false);
    let flow = pick(random, &[None, None, None, Some(Which::First), Some(Which::Last)]).filter(|_| has_flows);
    Case {
        kind,
        at: pick(random, at),
        ports,
        flow,
        window: pick(random, &[None, None, None, None, None, None, Some("3ms:7ms"), Some("4ms:"), Some("1us:2us")]),
        is_vc_mux,
        scenario: text,
    }
}

/// Draws a network, and names some of its ports.
fn network(ends: Ends, random: &mut Stream) -> (String, Vec<&'static str>) {
    let buffer = 40 + random.below(200);
    let shape = pick(random, &["lan", "star", "memory"]);
    if ends == Ends::Requests(false) || shape == "memory" {
        let link = |host| format!("{{ between = [\"h{host}\", \"sw\"], delay = \"5us\" }}");
        let links = [1, 2, 3, 4, 5].map(link).join(", ");
        let flow = |host| format!("{{ name = \"tcp{host}\", from = \"h{host}\", to = \"h5\" }}");
        let flows = if ends == Ends::Requests(false) { String::new() } else { [1, 2, 3, 4].map(flow).join(", ") };
        let policy = pick(random, &["longest_queue_drop", "longest_queue_drop", "dynamic_threshold"]);
        let text = format!(
            "[topology.network]\nhosts = [\"h1\", \"h2\", \"h3\", \"h4\", \"h5\"]\nswitches = [\"sw\"]\nlinks = [{links}]\n\
             flows = [{flows}]\n[port.default]\nbuffer = \"shared\"\npolicy.ppd = {{}}\n[switch.sw.memory]\n\
             cells = {buffer}\n[switch.sw.memory.pool.main.policy.{policy}]\n"
        );
        return (text, vec!["sw->h5", "h1->sw", "sw->h1", "h5->sw"]);
    }
    let policies = ["drop_from_front", "drop_from_front", "tail_drop", "ppd", "epd", "fba", "selective_drop"];
    let policy = pick(random, &policies);
    let port = format!("link_delay = \"5us\"\n[port.default]\nbuffer = {buffer}\npolicy.{policy} = {{}}\n");
    if shape == "star" {
        let text = format!("[topology.star]\nhosts = {}\n{port}", 3 + random.below(4));
        return (text, vec!["sw->host1", "host2->sw", "sw->host2", "host1->sw"]);
    }
    let losses = if random.below(3) == 0 {
        "[link.\"sw1->sw2\"]\nlose = [{ flow = \"tcp1\", cells = [50, 51, 90] }]\n"
    } else {
        ""
    };
    let text = format!("[topology.n_source]\nsources = {}\n{port}{losses}", 2 + random.below(3));
    (text, vec!["sw1->sw2", "sw2->sw1", "sw2->destination1", "source1->sw1"])
}

/// Draws the TCP variant or the real stack, and the requests.
fn hosts(ends: Ends, random: &mut Stream) -> String {
    if let Ends::Stack(stack) = ends {
        return format!("[stack.{stack}]\n");
    }
    let tcp = pick(random, &["sack", "sack", "reno", "newreno", "tahoe"]);
    let tcp = format!("[tcp.{tcp}]\ntimer_granularity = \"1ms\"\n");
    if ends == Ends::Model {
        return tcp;
    }
    let handshake = random.below(2) == 0;
    format!("{tcp}[incast.q]\nsenders = 2\nbytes = \"20kB\"\ninterval = \"2ms\"\nhandshake = {handshake}\n")
}

/// Captures a run. Returns the bytes of the capture and its number of packets, or the message of the refusal.
fn capture(case: &Case) -> Result<(Vec<u8>, u64), String> {
    let (handle, read) = Handle::of_reading(read_toml(&case.scenario, "captures.toml"));
    let handle = handle.unwrap_or_else(|| panic!("{}\n{:?}", case.scenario, read.reading.faults));
    let chosen = [case.ports.clone(), None, case.flow.map(|which| vec![flow(&handle, which)])];
    let duration = celltrain_core::units::Duration::from_milliseconds(12);
    let choice =
        CaptureChoice::new(duration, (case.kind, case.at), chosen, case.window).map_err(|wrong| wrong.to_string())?;
    let mut bytes = Vec::new();
    let mut sink = |block: &[u8]| {
        bytes.extend_from_slice(block);
        true
    };
    let captures = vec![Captured::new(&choice, &mut sink)];
    let watched = Watched { captures, event_engine: Some(Engine::Reference), ..Watched::default() };
    let how = How { engine: Engine::Reference, ..How::default() };
    match one_watched(&handle, Some(1), how, watched, (&AtomicBool::new(false), &Progress::default())) {
        Ok(finished) => Ok((bytes, finished.captured[0])),
        Err(Unfinished::Refused(words)) => Err(words),
        Err(other) => panic!("{}\n{other:?}", case.scenario),
    }
}

fn flow(handle: &Handle, which: Which) -> String {
    let go_on = || true;
    let token = CancellationToken::new(&go_on);
    let network = handle
        .checked(&token)
        .and_then(|checked| Ok(checked.network(1, &token)?))
        .expect("the program accepts the scenario");
    let mut flows = network.flows.raw.iter();
    let flow = if which == Which::First { flows.next() } else { flows.next_back() };
    flow.expect("the network has flows").name.clone()
}

/// Reads a capture. Returns the number of packets that were captured completely.
fn read(case: &Case, file: &[u8], count: u64) -> usize {
    let file = reader::read(file);
    let made_up =
        |packet: &&reader::Packet| packet.comment.as_ref().is_some_and(|text| text.starts_with("synthetic: in"));
    let handshakes = file.packets.iter().filter(made_up).count();
    assert_eq!(file.packets.len() - handshakes, usize::try_from(count).unwrap(), "{case:?}");
    assert!(file.packets.is_sorted_by_key(|packet| packet.time_ns), "{case:?}");
    let mut frames = BTreeMap::<_, Reassembler>::new();
    let mut whole = 0;
    for packet in &file.packets {
        let ip = match (case.kind, case.is_vc_mux) {
            ("ip", _) => Some(packet.bytes.clone()),
            // Offset of the packet after the ERF and cell headers, and after the four bytes of SUNATM.
            ("aal5", false) => {
                Some(unframed(case, aal5::parse(&packet.bytes[20..]).expect("the captured frame is whole").payload))
            }
            ("aal5", true) => {
                Some(unframed(case, aal5::parse(&packet.bytes[4..]).expect("the captured frame is whole").payload))
            }
            (kind, _) => {
                let mut cell = packet.bytes.clone();
                if kind == "wireshark_cells" {
                    // ERF records omit the HEC.
                    cell.drain(..16);
                    let header = [cell[0], cell[1], cell[2], cell[3]];
                    cell.insert(4, hec(header));
                }
                assert_eq!(cell.len(), CELL_BYTES);
                let header = CellHeader::parse(&cell[..5]).unwrap_or_else(|error| panic!("{error}: {case:?}"));
                if header.pti == 6 {
                    RmCell::parse(&cell).expect("the payload belongs to an RM cell");
                    continue;
                }
                let at = (packet.interface, packet.flags, header.vpi, header.vci);
                let payload = cell[5..].try_into().expect("the payload has 48 bytes");
                let frame = frames.entry(at).or_insert_with(Reassembler::new).accept(&payload, header.last_cell());
                frame.and_then(Result::ok).map(|pdu| unframed(case, pdu.payload))
            }
        };
        if let Some(ip) = ip {
            let parsed = SlicedPacket::from_ip(&ip).unwrap_or_else(|error| panic!("{error}: {case:?}"));
            let transport = parsed.transport.as_ref().expect("the packet is a TCP or UDP packet");
            assert!(matches!(transport, TransportSlice::Tcp(_) | TransportSlice::Udp(_)), "{case:?}");
            whole += 1;
        }
    }
    whole
}

fn unframed(case: &Case, payload: Vec<u8>) -> Vec<u8> {
    if case.is_vc_mux {
        payload
    } else {
        llc_snap::parse(&payload).expect("the payload begins with an LLC/SNAP header").to_vec()
    }
}

/// Returns the header error control (HEC) byte of a cell's header.
fn hec(header: [u8; 4]) -> u8 {
    let with = |check: u8| [&header[..], &[check]].concat();
    (0..=u8::MAX)
        .find(|&check| reader::hec_is_right(&with(check)))
        .expect("exactly one of the 256 checksums is correct")
}

/// Reads a capture with tshark. Returns a description of the first problem that tshark reports.
fn read_by_tshark(case: &Case, path: &Path, packets: usize) -> Result<(), String> {
    let checked = ["ip", "tcp", "udp"].map(|protocol| format!("-o{protocol}.check_checksum:TRUE"));
    let fields = ["_ws.malformed", "ip.checksum.status", "tcp.checksum.status", "udp.checksum.status"];
    let mut command = Command::new("tshark");
    command
        .arg("-n")
        .arg("-r")
        .arg(path)
        .args(checked)
        .args(["-T", "fields", "-E", "occurrence=f", "-E", "separator=,"]);
    command.args(fields.iter().flat_map(|field| ["-e", field]));
    let done = command.output().map_err(|error| format!("tshark cannot be started: {error}"))?;
    let printed = String::from_utf8_lossy(&done.stdout);
    if !done.status.success() {
        return Err(format!("{case:?}: {}", String::from_utf8_lossy(&done.stderr)));
    }
    let lines: Vec<&str> = printed.lines().collect();
    if lines.len() != packets {
        return Err(format!("{case:?}: {} of {packets} packets", lines.len()));
    }
    let is_wrong =
        |line: &&&str| line.split(',').enumerate().any(|(at, value)| !value.is_empty() && (at == 0 || value != "1"));
    match lines.iter().find(is_wrong) {
        Some(line) => Err(format!("{case:?}: {} = {line}", fields.join(","))),
        None => Ok(()),
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} = {text:?} is not a number")))
}

#[test]
fn a_capture_of_a_random_network_is_readable_or_refused_with_a_message() {
    let asked = number("CELLTRAIN_CAPTURES");
    let usual = if std::env::var_os("CELLTRAIN_NIGHTLY").is_some() { 24 } else { 10 };
    let (first, count) = (number("CELLTRAIN_CAPTURES_SEED").unwrap_or(1), asked.unwrap_or(usual));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("captures");
    fs::create_dir_all(&folder).unwrap();
    let (mut refused, mut packets, mut whole, mut problems) = (0, 0, 0, Vec::new());
    for seed in first..first + count {
        let case = case(seed);
        match capture(&case) {
            Ok((file, captured)) => {
                assert!(captured > 0, "{case:?}");
                packets += captured;
                whole += read(&case, &file, captured);
                if asked.is_some() {
                    let path = folder.join(format!("{seed}.pcapng"));
                    fs::write(&path, &file).unwrap();
                    problems.extend(read_by_tshark(&case, &path, reader::read(&file).packets.len()).err());
                }
            }
            Err(words) => {
                let known = ["the capture would be empty: ", "vcs = "];
                assert!(known.iter().any(|known| words.starts_with(known)), "{words}: {case:?}");
                refused += 1;
            }
        }
    }
    println!(
        "{count} networks: {refused} captures refused with a message, the others with {packets} packets and cells, \
         {whole} whole packets; tshark finds {} faults",
        problems.len()
    );
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(count < 10 || (packets > 400 * count && whole as u64 > 40 * count), "{packets} {whole}");
}
