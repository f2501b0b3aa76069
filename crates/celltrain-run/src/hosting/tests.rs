//! Tests of scenarios with real stacks.

use super::*;

#[test]
fn a_protocol_stack_that_this_build_does_not_include_is_refused_with_a_message() {
    let words = version("tcpcrypt").unwrap_err();
    assert!(words.starts_with("the stack tcpcrypt is not in this build of celltrain; use a wheel"), "{words}");
}

/// Tests of requests over real stacks. The tests of the Python package cover stacks written in Python.
#[cfg(all(feature = "smoltcp", feature = "quic"))]
mod requests;

#[cfg(feature = "smoltcp")]
mod smoltcp {
    use std::sync::atomic::AtomicBool;

    use celltrain_capture::CaptureChoice;
    use celltrain_scenario::read_toml;
    use serde_json::Value;

    use crate::Unfinished;
    use crate::events::{Block, Choice, Values};
    use crate::runner::{Captured, EventOutput, How, Progress, Watched, one, one_watched};
    use crate::scenario::Handle;
    use crate::series::{Array, Trace};
    use celltrain_core::engine::Engine;

    /// Two flows over smoltcp, of which one sends a file, and one flow over simulated TCP.
    const MIXED: &str = r#"
        duration = "1.5s"
        seed = 3
        [topology.n_source]
        sources = 3
        link_rate = "8Mbps"
        link_delay = "1ms"
        [stack.smoltcp]
        receive_window = "20kB"
        [flow.tcp2]
        tcp.reno = {}
        [flow.tcp3]
        stack.smoltcp = { congestion = "cubic", mss = "1460B", ack_delay = "0s", nagle = false }
        traffic.file = { bytes = "5kB" }
        [port.bottleneck]
        buffer = 100
        policy.epd = {}
        [measure]
        from = "10ms"
    "#;

    fn handle(text: &str) -> Handle {
        let (handle, read) = Handle::of_reading(read_toml(text, "mixed.toml"));
        handle.unwrap_or_else(|| panic!("{:?}", read.reading.faults))
    }

    fn run(how: How<'_>, watched: Watched<'_>) -> Value {
        let control = (&AtomicBool::new(false), &Progress::default());
        let finished = one_watched(&handle(MIXED), None, how, watched, control).unwrap();
        serde_json::from_str(&finished.answer).unwrap()
    }

    fn by(engine: Engine) -> How<'static> {
        How { engine, ..How::default() }
    }

    /// Regression: the hosts took a packet for lost when a later packet arrived, and panicked when the earlier packet
    /// arrived.
    #[test]
    fn a_packet_that_a_link_delays_reaches_its_protocol_stack_after_later_packets() {
        let late = r#"
            [link."source1->sw1"]
            delay = [{ flow = "tcp1", packets = [20, 40], by = "20ms" }]
        "#;
        let (answers, control) = ([Engine::Fast, Engine::Reference], (&AtomicBool::new(false), &Progress::default()));
        let [fast, reference] = answers.map(|engine| {
            let read = handle(&format!("{MIXED}{late}"));
            let finished = one_watched(&read, None, by(engine), Watched::default(), control).unwrap();
            serde_json::from_str::<Value>(&finished.answer).unwrap()
        });
        assert_eq!(fast["fingerprint"], reference["fingerprint"]);
        assert!(fast["flows"][0]["repeated_segments"].as_u64() > Some(0), "{fast}");
    }

    #[test]
    fn flows_with_protocol_stacks_have_every_measure_that_can_be_derived_from_their_packets() {
        let answer = run(by(Engine::Fast), Watched::default());
        let flow = |number: usize, key: &str| answer["flows"][number][key].clone();
        let version = format!("smoltcp {}", celltrain_hosts::smoltcp::VERSION);
        let common = format!("{version} (receive_window=20kB)");
        let own = format!("{version} (ack_delay=0s, congestion=cubic, mss=1.46kB, nagle=false)");
        assert_eq!([0, 1, 2].map(|number| flow(number, "stack")), [&*common, "", &own]);
        for number in 0..3 {
            let sent = |key| flow(number, key).as_u64().unwrap();
            assert!(sent("delivered_bytes") > 1000, "{answer}");
            assert!(sent("segments_sent") > sent("retransmitted_segments"), "{answer}");
        }
        assert!(flow(0, "retransmitted_segments").as_u64() > Some(0), "{answer}");
        for key in ["timeouts", "fast_retransmits", "cwnd_segments"] {
            assert!(flow(0, key).is_null() && flow(1, key).is_number(), "{key}");
        }
        assert!(flow(2, "completion_s").is_number() && flow(0, "completion_s").is_null());
        let efficiency = answer["efficiency"].as_f64().unwrap();
        assert!((0.3..1.0).contains(&efficiency), "{efficiency}");
    }

    #[cfg(feature = "quic")]
    #[test]
    fn the_results_of_a_quic_flow_include_its_congestion_window_and_its_losses() {
        let mixed = handle(&MIXED.replace("[stack.smoltcp]\n        receive_window = \"20kB\"", "[stack.quic]"));
        let duration = celltrain_core::units::Duration::from_milliseconds(1500);
        let trace = Trace::new(duration, &["cwnd".into()], Some("10ms"), None).unwrap();
        let how = |engine| How { engine, trace: trace.as_ref(), ..How::default() };
        let run = |engine| one(&mixed, None, how(engine), &AtomicBool::new(false), &Progress::default()).unwrap();
        let [fast, reference] = [Engine::Fast, Engine::Reference].map(run);
        let [answer, other]: [Value; 2] = [&fast, &reference].map(|run| serde_json::from_str(&run.answer).unwrap());
        assert_eq!(answer["fingerprint"], other["fingerprint"]);
        let flow = &answer["flows"][0];
        assert_eq!(flow["stack"], format!("quic {}", celltrain_hosts::quic::VERSION));
        let [sent, again] = ["segments_sent", "retransmitted_segments"].map(|key| flow[key].as_u64().unwrap());
        assert!(sent > again && again > 0 && flow["cwnd_segments"].as_f64() > Some(1.0), "{flow}");
        assert!(flow["timeouts"].is_null() && answer["flows"][2]["cwnd_segments"].is_null(), "{answer}");
        let smoltcp = handle(&MIXED.replace("tcp.reno = {}", "start = \"1ms\""));
        let refused = one(&smoltcp, None, how(Engine::Fast), &AtomicBool::new(false), &Progress::default());
        assert!(format!("{refused:?}").contains("cwnd cannot be recorded: the stacks of all flows hide their windows"));
    }

    #[test]
    fn runs_with_protocol_stacks_give_the_same_result_on_both_engines_and_any_number_of_threads() {
        let without_times = |mut answer: Value| {
            answer["timing"].take();
            answer["engine"].take();
            answer
        };
        let fast = without_times(run(by(Engine::Fast), Watched::default()));
        assert_eq!(without_times(run(by(Engine::Reference), Watched::default())), fast);
        let threads = How { threads: std::num::NonZeroUsize::new(2), ..How::default() };
        assert_eq!(without_times(run(threads, Watched::default())), fast);
        let mut other: Value = serde_json::from_str(&handle(MIXED).json()).unwrap();
        other["seed"] = 4.into();
        let control = (&AtomicBool::new(false), &Progress::default());
        let other = one(&Handle::of_text(other.to_string()), None, How::default(), control.0, control.1).unwrap();
        assert!(!other.answer.contains(fast["fingerprint"].as_str().unwrap()));
    }

    #[test]
    fn the_byte_series_of_a_flow_with_a_stack_ends_at_the_byte_count_in_the_result() {
        let scenario = handle(MIXED);
        let duration = celltrain_core::units::Duration::from_milliseconds(1500);
        let names = ["queue", "delivered", "cwnd"].map(str::to_owned);
        let trace = Trace::new(duration, &names, Some("10ms"), None).unwrap();
        let how = How { trace: trace.as_ref(), ..How::default() };
        let finished = one(&scenario, None, how, &AtomicBool::new(false), &Progress::default()).unwrap();
        let answer: Value = serde_json::from_str(&finished.answer).unwrap();
        assert_eq!(answer["fingerprint"], run(by(Engine::Fast), Watched::default())["fingerprint"]);
        let series = finished.series.unwrap();
        assert_eq!(series.time_s.len(), 151);
        let names = |list| series.names.iter().find(|(name, _)| *name == list).unwrap().1.join(" ");
        assert_eq!([names("flows"), names("window_flows")], ["tcp1 tcp2 tcp3", "tcp2"]);
        for (name, array) in
            series.arrays.iter().filter(|(name, _)| ["cwnd_segments", "ssthresh_segments"].contains(name))
        {
            assert!(matches!(array, Array::Numbers(windows) if windows.len() == 151 && windows[0] >= 1.0), "{name}");
        }
    }

    #[test]
    fn a_run_with_protocol_stacks_ends_if_it_is_cancelled_or_reaches_its_time_limit() {
        let limit = std::time::Duration::from_millis(20);
        let endless = handle(&MIXED.replace("1.5s", "100000s"));
        let how = How { limit: Some(limit), ..How::default() };
        let ended = one(&endless, None, how, &AtomicBool::new(false), &Progress::default());
        assert_eq!(ended, Err(Unfinished::TookTooLong(limit)));
        let ended = one(&endless, None, How::default(), &AtomicBool::new(true), &Progress::default());
        assert_eq!(ended, Err(Unfinished::Interrupted));
    }

    #[test]
    fn events_of_flows_with_protocol_stacks_are_derived_from_packet_headers() {
        let mut blocks: Vec<Block> = Vec::new();
        let mut sink = |block| {
            blocks.push(block);
            true
        };
        let duration = celltrain_core::units::Duration::from_milliseconds(1500);
        let flows = Some(vec!["tcp1".to_owned()]);
        let choice = Choice::new(duration, &["segments".to_owned()], [None, None, flows], None).unwrap();
        let events = Some(EventOutput { choice: &choice, sink: &mut sink });
        let answer = run(by(Engine::Fast), Watched { events, ..Watched::default() });
        let columns = || blocks.iter().flat_map(|block| &block.columns);
        let count = |event: &str| {
            let of = |column: &Values| match column {
                Values::Words(places, words) => {
                    let word = |place: &i32| words.get(usize::try_from(*place).ok()?);
                    places.iter().filter_map(word).filter(|word| *word == event).count()
                }
                _ => 0,
            };
            columns().map(of).sum::<usize>() as u64
        };
        // The answer excludes the first 10 ms, in which a few segments are sent.
        let own = |key: &str| answer["flows"][0][key].as_u64().unwrap();
        assert!(count("retransmitted") >= own("retransmitted_segments") && count("retransmitted") > 0);
        let sent = count("sent") + count("retransmitted");
        assert!((own("segments_sent")..own("segments_sent") + 30).contains(&sent), "{sent}");
        assert!(count("arrived") > 0 && count("ack_sent") >= count("acknowledged") && count("acknowledged") > 20);
    }

    /// Returns a capture of the run. The reference engine executes the run, because only the reference engine reports
    /// where packets are lost.
    fn capture(kind: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut sink = |block: &[u8]| {
            bytes.extend_from_slice(block);
            true
        };
        let duration = celltrain_core::units::Duration::from_milliseconds(1500);
        let choice = CaptureChoice::new(duration, (kind, None), [None, None, None], Some("0s:400ms")).unwrap();
        let captured = Captured::new(&choice, &mut sink);
        let watched = Watched { captures: vec![captured], event_engine: Some(Engine::Reference), ..Watched::default() };
        let answer = run(by(Engine::Fast), watched);
        assert_eq!(answer["fingerprint"], run(by(Engine::Fast), Watched::default())["fingerprint"]);
        bytes
    }

    fn count(bytes: &[u8], part: &[u8]) -> usize {
        bytes.windows(part.len()).filter(|window| *window == part).count()
    }

    #[test]
    fn a_capture_contains_the_packets_of_protocol_stacks_and_of_the_simulated_tcp() {
        let ip = capture("ip");
        // The first segments of each flow carry the first line of the stream.
        let first_line = count(&ip, b"000000000000000\n000000000000010\n");
        assert!(first_line >= 3, "{first_line}");
        // smoltcp's SYN has the window of its buffer: 512 bytes at the sender.
        assert_eq!(count(&ip, b"synthetic: in the model the connection tcp2 is open from the start"), 2 + 1);
        assert_eq!(count(&ip, b"synthetic: in the model the connection tcp1 is open from the start"), 0);
        assert!(count(&ip, b"lost at sw1->sw2: refused: ") > 0);
        // The ends of flow f with a real stack have the addresses 10.0.0.(4f + 1) and 10.0.0.(4f + 2). Other hosts have
        // 10.128.0.1 and so on.
        let addressed = |from: [u8; 4], to: [u8; 4]| count(&ip, &[from, to].concat());
        assert!(addressed([10, 0, 0, 9], [10, 0, 0, 10]) > 0 && addressed([10, 128, 0, 2], [10, 128, 0, 5]) > 0);
        let aal5 = capture("aal5");
        assert_eq!(count(&aal5, b"000000000000000\n000000000000010\n"), first_line);
        assert!(count(&aal5, &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]) > 100, "LLC/SNAP");
    }

    #[test]
    fn a_capture_of_cells_contains_the_cells_of_protocol_stacks() {
        let cells = capture("cells");
        // The LLC/SNAP header and the header of IPv4 packets from 10.0.0.1 to 10.0.0.2, the addresses of the first
        // flow.
        assert!(count(&cells, &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0, 0x45]) > 50);
        assert!(count(&cells, &[10, 0, 0, 1, 10, 0, 0, 2]) > 20);
    }
}
