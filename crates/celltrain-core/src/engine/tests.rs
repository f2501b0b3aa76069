//! Tests that run both engines to the end of short runs.

mod delays;
mod departures;
mod losses;
mod requests;

use std::cell::Cell;

use crate::aal5::Encapsulation;
use crate::cancellation::{CancellationToken, Interrupted};
use crate::engine::{Engine, Outcome, ParallelOptions, PortMode, Progress, Simulation, explain_plan};
use crate::events::{Event, Observer};
use crate::gfr::{EdgeCounters, Gfr};
use crate::host::ProcessingTimes;
use crate::index::VcIndex;
use crate::link_changes::{LinkChanges, RateChange};
use crate::metrics::{ContractResult, FlowResult, RunResult, jain};
use crate::network::tests::{FIRST, N_SOURCE_BOTTLENECK, N_SOURCE_WAY_BACK, SECOND, n_source_network};
use crate::network::{Merge, Network};
use crate::policy::{PerVc, PolicyConfig, tail_drop};
use crate::probe::{Nothing, Probe, Recorder, SeriesChoice};
use crate::rng::is_nightly;
use crate::scheduler::{Class, SchedulerConfig, guaranteed_rate, strict_priority, wfq};
use crate::tcp::{TcpConfig, TcpOptions, WindowOptions};
use crate::tie::{ServiceOrder, TieOrder};
use crate::traffic::{TrafficConfig, bursts, constant_rate, file, on_off};
use crate::units::{BitRate, Bytes, Duration, Time};

fn lan(sources: usize, buffer: Option<u32>, duration: &str) -> Network {
    let tcp = TcpConfig::Vanilla(TcpOptions::default());
    n_source_network(sources, "5us", buffer, PolicyConfig::TailDrop(tail_drop::Config {}), &tcp, duration)
}

/// Calls a function for each event of a run of the reference engine.
///
/// The engines are compiled once for each type of probe, so all unit tests use this type.
pub(super) fn watch(network: &Network, mut on_event: impl FnMut(Time, Event)) -> RunResult {
    struct Watch<'a>(&'a mut dyn FnMut(Time, Event));

    impl Observer for Watch<'_> {
        const OBSERVES: bool = true;

        fn on_event(&mut self, now: Time, event: Event) {
            self.0(now, event);
        }
    }

    impl Probe for Watch<'_> {}

    Engine::Reference.run(network, Watch(&mut on_event), |_| true).expect("nothing cancels this run")
}

/// Returns the result of the fast engine after checking that the reference engine agrees. On each push, long runs use
/// only the fast engine.
fn run(network: &Network) -> RunResult {
    let fast = Engine::Fast.run_to_end(network);
    let is_short = network.duration <= "300ms".parse().unwrap();
    if is_short || is_nightly() {
        assert_eq!(fast, Engine::Reference.run_to_end(network), "the engines agree");
    }
    fast
}

#[test]
fn an_engine_can_be_selected_by_name() {
    assert_eq!(["fast", "reference", "slow"].map(Engine::named), [Some(Engine::Fast), Some(Engine::Reference), None]);
}

#[test]
fn with_an_infinite_buffer_the_longest_lan_queues_equal_the_values_printed_in_paper_96_1269() {
    for (sources, queue) in [(5, 7591), (15, 22831)] {
        let result = run(&lan(sources, None, "200ms"));
        assert_eq!(result.ports[N_SOURCE_BOTTLENECK].max_queue_cells, queue, "{sources} sources");
    }
}

#[test]
fn a_single_segment_arrives_after_the_sum_of_all_delays_on_its_path() {
    // One segment is sent per round trip. It takes 12 cell times on the first link, one more on each of the two later
    // hops, and 5 us of delay on each hop. The acknowledgement's cells travel back in the same way. Each host adds its
    // processing time. In units of 1/97.2 MHz, a cell takes 265 and a delay 486.
    let cases = [(Encapsulation::LlcSnap, 2, 0), (Encapsulation::VcMux, 1, 0), (Encapsulation::LlcSnap, 2, 100)];
    for (encapsulation, ack_cells, processing_us) in cases {
        let tcp = TcpOptions { receive_window: Bytes { bytes: 512 }, ..TcpOptions::default() };
        let mut network = lan(1, None, "300ms");
        network.flows[FIRST].tcp = TcpConfig::Vanilla(tcp);
        network.aal5.encapsulation = encapsulation;
        network.host.processing = Duration::from_microseconds(processing_us);
        let [one_way, back] = [12, ack_cells].map(|cells| (cells + 2) * 265 + 3 * 486 + processing_us * 972 / 10);
        let delivered = 1 + (29_160_000 - one_way) / (one_way + back);
        assert_eq!(
            run(&network).flows[FIRST].delivered_bytes,
            delivered * 512,
            "{encapsulation:?}, {processing_us} us"
        );
    }
}

#[test]
fn the_processing_time_of_a_host_limits_its_sending_rate() {
    // 12 cells take 32.7 us on the link, and the host needs 100 us. With an open window, a segment leaves every 100 us.
    for (times, least, most) in [(ProcessingTimes::Fixed, 1990, 2000), (ProcessingTimes::Uniform, 3800, 4100)] {
        let mut network = lan(1, None, "200ms");
        network.host.processing = Duration::from_microseconds(100);
        network.host.processing_times = times;
        let segments = run(&network).flows[FIRST].delivered_bytes / 512;
        assert!((least..=most).contains(&segments), "{times:?}: {segments}");
    }
}

#[test]
fn the_completion_time_of_a_flow_that_starts_late_is_measured_from_its_start() {
    // The completion time of a file is measured from the flow's own start, so both engines must agree on the start.
    let mut network = lan(3, None, "1s");
    for flow in &mut network.flows {
        flow.traffic = TrafficConfig::File(file::Config { bytes: Bytes { bytes: 512 } });
    }
    network.host.start_spread = Duration::from_milliseconds(500);
    let result = run(&network);
    let one_way_and_back = f64::from((14 + 4) * 265 + 6 * 486) / 97_200_000.0;
    for flow in &result.flows {
        let took = flow.completion_s.expect("every flow has ended");
        assert!((took - one_way_and_back).abs() < 1e-9, "{took}");
    }
}

#[test]
fn sack_blocks_of_a_receiver_reach_the_sender() {
    // A segment is lost whenever the window reaches eight segments. For SACK, only acknowledgements with new SACK
    // information count as duplicates (RFC 6675, 2). Without SACK blocks, the segment would be retransmitted only after
    // a timeout.
    let tcp = TcpOptions {
        windows: WindowOptions { lose_at_window: Some(Bytes { bytes: 8 * 512 }), ..WindowOptions::default() },
        ..TcpOptions::default()
    };
    let mut network = lan(1, None, "200ms");
    network.flows[FIRST].tcp = TcpConfig::Sack(tcp);
    let flow = &run(&network).flows[FIRST];
    assert!(flow.fast_retransmits > 100, "{}", flow.fast_retransmits);
    assert_eq!((flow.retransmitted_segments, flow.timeouts), (flow.fast_retransmits, 0));
}

#[test]
fn the_reported_final_window_is_the_congestion_window_of_the_sender() {
    // With a round trip of a little over 30 us in slow start, cwnd is 2 after the first acknowledgement.
    let network = lan(1, None, "100us");
    let flow = &run(&network).flows[FIRST];
    assert_eq!(flow.cwnd_segments, 2.0);
}

#[test]
fn if_ties_between_simultaneous_cells_have_a_fixed_order_one_source_takes_the_whole_link() {
    let mut network = lan(5, Some(1000), "2s");
    network.tie_order = TieOrder::Fixed;
    let result = run(&network);
    assert!(result.efficiency > 0.995, "{}", result.efficiency);
    assert!(result.fairness.is_some_and(|fairness| (fairness - 0.2).abs() < 1e-3), "{:?}", result.fairness);
}

#[test]
fn equal_seeds_give_equal_runs_and_different_seeds_different_runs() {
    let mut network = lan(5, Some(1000), "300ms");
    let first = run(&network);
    assert_eq!(first, run(&network));
    network.seed = 2;
    assert_ne!(first.fingerprint, run(&network).fingerprint);
}

#[test]
fn observing_a_run_does_not_change_its_result() {
    let network = lan(3, Some(500), "200ms");
    let choice = SeriesChoice {
        queue: true,
        occupancy: true,
        windows: true,
        rates: true,
        edges: true,
        delivered: true,
        memories: true,
    };
    for engine in Engine::ALL {
        let mut recorder = Recorder::new(choice, vec![N_SOURCE_BOTTLENECK], "1ms".parse().unwrap(), &network);
        let watched = engine.run(&network, &mut recorder, |_| true).unwrap();
        assert_eq!(watched, run(&network));
        assert_eq!(recorder.times.len(), 201, "the probe is called every millisecond from 0 to 200");
        assert_eq!(recorder.occupancy_cells.len(), 3 * 201);
        let largest = recorder.queue_cells.iter().max().unwrap();
        assert!(*largest <= watched.ports[N_SOURCE_BOTTLENECK].max_queue_cells);
        assert!(recorder.cwnd_segments.iter().any(|&cwnd| cwnd > 1.0));
    }
}

#[test]
fn both_engines_agree_if_a_cell_time_is_the_smallest_time_unit() {
    // At 42.4 Mb/s the link carries 100,000 cells a second, and all other times are whole numbers of cell times.
    let policy = PolicyConfig::TailDrop(tail_drop::Config {});
    for window in [2_048, 8_192, 65_535] {
        let tcp = TcpConfig::Vanilla(TcpOptions { receive_window: Bytes { bytes: window }, ..TcpOptions::default() });
        let mut network = n_source_network(3, "10us", None, policy.clone(), &tcp, "500ms");
        network.service_order = ServiceOrder::BeforeArrivals;
        for (i, link) in network.links.iter_mut().enumerate() {
            link.rate = if i < 2 { "42.4Mbps" } else { "21.2Mbps" }.parse().unwrap();
        }
        assert_eq!(network.clock().units_per_second, 100_000);
        run(&network);
    }
}

#[test]
fn both_engines_agree_for_every_policy_and_scheduler_and_for_vcs_that_merge() {
    const BUFFER: u32 = 40;
    let tcp = TcpConfig::Vanilla(TcpOptions::default());
    // Three sources send bursts of packets of 19, 7 and 2 cells. Together they send sometimes more and sometimes less
    // than the link carries.
    let network = |policy| {
        let mut network = n_source_network(3, "5us", Some(BUFFER), policy, &tcp, "5ms");
        let bursts = [("150Mbps", 860, 70, 90), ("80Mbps", 280, 150, 100), ("50Mbps", 40, 230, 40)];
        for (flow, (rate, packet, on, off)) in network.flows.iter_mut().zip(bursts) {
            let (on, off) = (Duration::from_microseconds(on), Duration::from_microseconds(off));
            let (rate, packet, times) = (rate.parse().unwrap(), Bytes { bytes: packet }, on_off::Times::Fixed);
            flow.traffic = TrafficConfig::OnOff(on_off::Config { rate, packet, on, off, times });
        }
        network
    };
    let samples = PolicyConfig::samples(BUFFER);
    let first_in_first_out = samples.iter().cloned().map(&network);
    let others = || {
        let policies = samples.iter().filter(|policy| ["tail_drop", "epd", "fba"].contains(&policy.name()));
        policies.cloned().map(&network)
    };
    let scheduled = SchedulerConfig::samples().into_iter().flat_map(|scheduler| {
        let with = move |network: Network| {
            let mut network = network;
            network.links[N_SOURCE_BOTTLENECK].scheduler = scheduler.clone();
            for (vc, class) in network.vcs.iter_mut().zip([Class::Ubr, Class::Ubr, Class::Vbr, Class::Ubr, Class::Cbr])
            {
                vc.class = class;
            }
            network
        };
        others().map(with)
    });
    // The branches of the first two flows go to the same host. The third VC crosses the port without merging.
    let merged = others().map(|mut network| {
        let merge = network.merges.push_and_get_key(Merge { name: "merged".into(), at: N_SOURCE_BOTTLENECK });
        let [first, second] = [FIRST, SECOND].map(|flow| network.flows[flow].data_vc);
        network.vcs[second].path[2] = network.vcs[first].path[2];
        for vc in [first, second] {
            network.vcs[vc].merge = Some(merge);
        }
        network
    });
    for network in first_in_first_out.chain(scheduled).chain(merged) {
        let expected = run(&network);
        let port = &network.links[N_SOURCE_BOTTLENECK];
        let what = format!("{} and {}, {} merges", port.policy.name(), port.scheduler.name(), network.merges.len());
        assert!(expected.cells.lost + expected.cells.discarded > 0, "{what}");
        let recorder = || {
            let choice = SeriesChoice { queue: true, ..SeriesChoice::default() };
            Recorder::new(choice, vec![N_SOURCE_BOTTLENECK], Duration::from_microseconds(50), &network)
        };
        let ranges = |recorder: Recorder| (recorder.queue_cells_least, recorder.queue_cells_largest);
        let mut by_reference = recorder();
        Engine::Reference.record(&network, &mut by_reference);
        let expected_ranges = ranges(by_reference);
        for mode in [PortMode::Trains, PortMode::Streams] {
            let result = Engine::Fast.run_by(mode, &network, Nothing, |_| true).unwrap();
            assert_eq!(result, expected, "{what}, {mode:?}");
            let mut watched = recorder();
            Engine::Fast.run_by(mode, &network, &mut watched, |_| true).unwrap();
            assert_eq!(ranges(watched), expected_ranges, "{what}, {mode:?}");
        }
    }
}

#[test]
fn a_departing_cell_makes_room_for_a_cell_that_arrives_at_the_same_instant() {
    // With zero delay, arrivals and departures both occur at multiples of the cell time, so the service order decides
    // which comes first.
    let tcp = TcpConfig::Vanilla(TcpOptions::default());
    let policy = PolicyConfig::TailDrop(tail_drop::Config {});
    let mut network = n_source_network(2, "0s", Some(20), policy, &tcp, "20ms");
    let after = run(&network);
    network.service_order = ServiceOrder::BeforeArrivals;
    assert_ne!(after.fingerprint, run(&network).fingerprint);
}

#[test]
fn the_simulation_clock_represents_the_200_ms_tick_of_delayed_acknowledgements_exactly() {
    // A cell takes a second, and no other time in this scenario needs a finer clock. Regression: the 200 ms timer was
    // rounded to zero.
    let mut network = lan(1, None, "10s");
    for link in &mut network.links {
        link.rate = crate::units::BitRate::from_bits_per_second(424);
        link.delay = crate::units::Duration::default();
    }
    let second = crate::units::Duration::from_milliseconds(1000);
    let options =
        TcpOptions { timer_granularity: second, delayed_acks: crate::tcp::DelayedAcks::On, ..TcpOptions::default() };
    network.flows[FIRST].tcp = TcpConfig::Vanilla(options);
    assert_eq!(network.clock().units_per_second, 5);
    run(&network);
}

#[test]
fn a_run_ends_as_soon_as_its_progress_callback_requests_a_stop() {
    let network = lan(4, None, "3ms");
    let run = |engine: Engine, most: usize, shares: &Cell<[usize; 3]>| -> (usize, Outcome) {
        let progress = Progress::default();
        let count = Cell::new(0);
        let go_on = || {
            count.set(count.get() + 1);
            let mut by_share = shares.get();
            by_share[match progress.share() {
                0.0 => 0,
                1.0 => 2,
                _ => 1,
            }] += 1;
            shares.set(by_share);
            count.get() <= most
        };
        let token = CancellationToken::every(1, &go_on);
        let simulation = Simulation::by(engine, PortMode::Planned, &network, Nothing, &token);
        let outcome = simulation.and_then(|simulation| simulation.finish_by(&progress, &token));
        (count.get(), outcome)
    };
    for engine in Engine::ALL {
        let shares = Cell::default();
        let (questions, whole) = run(engine, usize::MAX, &shares);
        assert!(whole.is_ok());
        let [building, running, measuring] = shares.get();
        assert!(building >= 4 && running >= 20 && measuring >= 4, "{building} {running} {measuring}");
        // Some of the questions, and all while the run begins or ends.
        let step = if is_nightly() { 10 } else { 50 };
        let ends = |most: usize| most < 20 || most + 20 > questions;
        for most in (0..questions).filter(|&most| most % step == 0 || ends(most)) {
            let (asked, outcome) = run(engine, most, &shares);
            assert_eq!((asked, outcome.err()), (most + 1, Some(Interrupted)), "{engine:?}");
        }
    }
}

#[test]
fn checking_for_cancellation_within_a_large_batch_does_not_change_the_result() {
    // All cells sent during the link delay of 100 ms reach the port in one batch of 60,000 cells.
    let traffic = TrafficConfig::ConstantRate(constant_rate::Config {
        rate: "150Mbps".parse().unwrap(),
        packet: Bytes { bytes: 60_000 },
    });
    let mut network = lan(2, Some(10_000), "600ms");
    for link in &mut network.links {
        link.delay = "100ms".parse().unwrap();
    }
    for flow in &mut network.flows {
        flow.traffic = traffic.clone();
    }
    let (mut before, mut in_a_row, mut most) = (0.0, 0, 0);
    let watch = |share: f64| {
        in_a_row = if share == before && share > 0.0 && share < 1.0 { in_a_row + 1 } else { 0 };
        before = share;
        most = most.max(in_a_row);
        true
    };
    let result = Engine::Fast.run(&network, Nothing, watch).unwrap();
    assert!(most >= 50, "the callback was called {most} times within an event");
    assert_eq!(result, run(&network));
}

#[test]
fn a_file_transfer_ends_when_its_last_segment_is_acknowledged() {
    // One segment is sent per round trip, so a file of 1000 segments takes 1000 round trips. A file of 511999 bytes
    // also has 1000 segments.
    let tcp = TcpOptions { receive_window: Bytes { bytes: 512 }, ..TcpOptions::default() };
    for (bytes, segments) in [(512_000, 1000), (511_999, 1000), (512_001, 1001), (1, 1)] {
        let mut network = lan(1, None, "2s");
        network.flows[FIRST].tcp = TcpConfig::Vanilla(tcp.clone());
        network.flows[FIRST].start = "1ms".parse().unwrap();
        network.flows[FIRST].traffic = TrafficConfig::File(file::Config { bytes: Bytes { bytes } });
        let round_trip = (14 + 4) * 265 + 6 * 486;
        let flow = &run(&network).flows[FIRST];
        assert_eq!(flow.completion_s, Some((segments * round_trip) as f64 / 97.2e6));
        assert_eq!((flow.delivered_bytes, flow.segments_sent), (segments * 512, segments));
    }
}

#[test]
fn a_burst_starts_when_one_pause_has_passed_since_the_previous_burst_was_acknowledged() {
    // One segment is sent per round trip. 1025 bytes are three segments, so a burst takes three round trips, and a
    // pause precedes the next burst.
    let tcp = TcpOptions { receive_window: Bytes { bytes: 512 }, ..TcpOptions::default() };
    let mut network = lan(1, None, "100ms");
    network.flows[FIRST].tcp = TcpConfig::Vanilla(tcp);
    let config =
        bursts::Config { bytes: Bytes { bytes: 1025 }, pause: "5ms".parse().unwrap(), times: on_off::Times::Fixed };
    network.flows[FIRST].traffic = TrafficConfig::Bursts(config);
    network.file_size = Some(Bytes { bytes: 1536 });
    let round_trip = (14 + 4) * 265 + 6 * 486;
    let whole = 9_720_000 / (3 * round_trip + 486_000);
    let flow = &run(&network).flows[FIRST];
    let delays = flow.file_delay.unwrap();
    assert_eq!((delays.files, flow.traffic), (whole + 1, "bursts"));
    assert_eq!(flow.delivered_bytes, (whole + 1) * 1536);
    // The delay of a burst excludes the pauses.
    assert!((delays.mean_ms.unwrap() - (3 * round_trip) as f64 / 97_200.0).abs() < 1e-9);
    assert_eq!(flow.completion_s, None, "there is always another event");
}

#[test]
fn a_bursty_source_continues_after_losses_under_every_tcp_variant() {
    for &name in TcpConfig::NAMES {
        let mut network = lan(5, Some(60), "10s");
        for flow in &mut network.flows {
            flow.tcp = TcpConfig::named(name, TcpOptions::default()).unwrap();
            let (bytes, pause) = (Bytes { bytes: 512 * 100 }, "300ms".parse().unwrap());
            let times = on_off::Times::Exponential;
            flow.traffic = TrafficConfig::Bursts(bursts::Config { bytes, pause, times });
        }
        let result = run(&network);
        for flow in &result.flows {
            assert!(flow.delivered_bytes > 3 * 512 * 100, "{name}: {}", flow.delivered_bytes);
        }
        assert!(result.cells.lost > 0, "{name}");
    }
}

#[test]
fn files_arrive_complete_after_losses_under_every_tcp_variant() {
    for &name in TcpConfig::NAMES {
        let mut network = lan(5, Some(60), "20s");
        for flow in &mut network.flows {
            flow.tcp = TcpConfig::named(name, TcpOptions::default()).unwrap();
            flow.traffic = TrafficConfig::File(file::Config { bytes: Bytes { bytes: 512 * 300 } });
        }
        let result = run(&network);
        for flow in &result.flows {
            assert_eq!(flow.delivered_bytes, 512 * 300, "{name}");
            assert!(flow.completion_s.is_some(), "{name}");
        }
        assert_eq!(result.cells.in_flight, 0, "{name}: no cells are sent after all flows have ended");
        assert!(result.cells.lost > 0, "{name}");
    }
}

#[test]
fn constant_rate_sources_without_acknowledgements_keep_their_rate_despite_losses() {
    let mut network = lan(3, Some(100), "1s");
    let packet = Bytes { bytes: 512 };
    let rate = "38.88Mbps".parse().unwrap();
    network.flows[FIRST].traffic = TrafficConfig::ConstantRate(constant_rate::Config { rate, packet });
    network.flows[SECOND].traffic = TrafficConfig::OnOff(on_off::Config::default());
    network.vcs[VcIndex::new(2)].class = Class::Vbr;
    let result = run(&network);
    // 12 cells at a quarter of the link's rate take 12720 units; the first packet is sent immediately.
    assert_eq!(result.flows[FIRST].packets_sent, 97_200_000 / 12_720 + 1);
    // At 0.8 of the link's rate a packet takes 15900 / 4 units. Packets are sent from 0 to 300 ms and from 600 to 900
    // ms.
    assert_eq!(result.flows[SECOND].packets_sent, 2 * (29_160_000 / 3975 + 1));
    assert_eq!((result.flows[SECOND].segments_sent, result.flows[SECOND].cwnd_segments), (0, 0.0));
    assert_eq!(result.flows[SECOND].delivered_bytes, result.flows[SECOND].packets_delivered * 512);
    assert!(result.flows[FIRST].packets_delivered < result.flows[FIRST].packets_sent, "some are lost");
}

#[test]
fn max_min_fairness_excludes_a_flow_whose_link_has_no_rate() {
    let mut network = lan(3, None, "20ms");
    let first_link = network.vcs[network.flows[SECOND].data_vc].path[0];
    let rate = Some(RateChange::Steps(vec![(Duration::default(), BitRate::from_bits_per_second(0))]));
    network.links[first_link].changes = Some(Box::new(LinkChanges { rate, ..LinkChanges::default() }));
    let result = run(&network);
    let FlowResult { max_min_mbps, goodput_mbps, .. } = result.flows[SECOND];
    assert_eq!((max_min_mbps, goodput_mbps), (0.0, 0.0));
    let [fairness, by_shares] =
        [result.fairness, result.fairness_max_min].map(|index| index.expect("two flows deliver"));
    // The other two flows have equal shares. Only `fairness` counts the stopped flow.
    assert!((by_shares * 2.0 / 3.0 - fairness).abs() < 1e-9, "{by_shares} {fairness}");
}

#[test]
fn if_there_are_ubr_flows_fairness_is_computed_over_the_ubr_flows_only() {
    let mut network = lan(3, None, "100ms");
    for (flow, rate) in network.flows.iter_mut().zip(["15.552Mbps", "7.776Mbps", "31.104Mbps"]) {
        let (rate, packet) = (rate.parse().unwrap(), Bytes { bytes: 512 });
        flow.traffic = TrafficConfig::ConstantRate(constant_rate::Config { rate, packet });
    }
    // 12 cells at a tenth, a twentieth and a fifth of the link's rate take 31,800, 63,600 and 15,900 of 9,720,000
    // units: 306, 153 and 612 packets. The last of the 612 begins 5,100 units before the end, but takes 5,168 to
    // arrive.
    let [a, b, c] = [306.0, 153.0, 611.0];
    network.vcs[VcIndex::new(4)].class = Class::Vbr;
    let result = run(&network);
    assert_eq!(result.flows.iter().map(|flow| flow.packets_delivered as f64).collect::<Vec<_>>(), [a, b, c]);
    // The index of the two UBR flows is (2 + 1)^2 / (2 (4 + 1)).
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
    near(result.fairness.unwrap(), 0.9);
    // 1070 packets of 12 cells each are sent in a tenth of a second. In that time the link carries 36,679.245 cells.
    near(result.efficiency, 1070.0 * 12.0 * 424.0 / 15.552e6);
    // Each flow sends less than its fair share, so each flow gets its full rate.
    let parts = [FIRST, SECOND].map(|flow| result.flows[flow].goodput_mbps / result.flows[flow].max_min_mbps);
    near(result.fairness_max_min.unwrap(), jain(&parts).unwrap());
    assert!(result.fairness_max_min.unwrap() > 0.9999, "{:?}", result.fairness_max_min);
    // If all three flows are UBR or none is, the index is 1070^2 / (3 (306^2 + 153^2 + 611^2)).
    for class in [Class::Ubr, Class::Vbr] {
        network.vcs.iter_mut().for_each(|vc| vc.class = class);
        near(run(&network).fairness.unwrap(), 1_144_900.0 / 1_471_098.0);
    }
}

#[test]
fn throughput_counts_every_arrival_of_a_segment_and_goodput_only_the_first_arrival() {
    // Six links of 1 s: an acknowledgement arrives after six seconds plus cell times, and the first retransmission
    // timeout is three seconds. A file of one segment is sent at 0 and at about 3 s. The copies arrive at about 3 s and
    // 6 s, and the first is acknowledged before the next timeout, doubled, at about 9 s.
    let packets = TrafficConfig::ConstantRate(constant_rate::Config {
        rate: "424kbps".parse().unwrap(),
        packet: Bytes { bytes: 512 },
    });
    let tcp = TcpConfig::Vanilla(TcpOptions::default());
    let policy = PolicyConfig::TailDrop(tail_drop::Config {});
    let mut network = n_source_network(2, "1s", None, policy, &tcp, "10s");
    network.flows[FIRST].traffic = TrafficConfig::File(file::Config { bytes: Bytes { bytes: 512 } });
    network.flows[SECOND].traffic = packets;
    let result = run(&network);
    let segments = &result.flows[FIRST];
    assert_eq!((segments.segments_sent, segments.retransmitted_segments, segments.repeated_segments), (2, 1, 1));
    assert_eq!((segments.timeouts, segments.delivered_bytes), (1, 512));
    // 512 bytes in 10 s are 409.6 bits a second. Twice that rate is 819.2.
    assert_eq!(
        (segments.goodput_mbps, segments.throughput_mbps),
        (512.0 * 8.0 / 10.0 / 1e6, 1024.0 * 8.0 / 10.0 / 1e6)
    );
    // 12 cells at 1000 cells a second are a packet every 12 ms. The packets sent in the first 7 s, minus the
    // transmission time of the cells, have arrived.
    let packets = &result.flows[SECOND];
    assert_eq!((packets.packets_sent, packets.packets_delivered), (834, 584));
    assert_eq!(
        (packets.goodput_mbps, packets.throughput_mbps),
        (584.0 * 4096.0 / 10.0 / 1e6, 584.0 * 4096.0 / 10.0 / 1e6)
    );
    assert_eq!(result.goodput_mbps, segments.goodput_mbps + packets.goodput_mbps);
}

#[test]
fn gfr_contract_results_count_the_frames_that_reach_the_first_switch_of_the_vc() {
    let mut network = lan(3, None, "1s");
    let packet = Bytes { bytes: 512 };
    for (flow, rate) in network.flows.iter_mut().zip(["19.44Mbps", "38.88Mbps", "38.88Mbps"]) {
        let rate = rate.parse().unwrap();
        flow.traffic = TrafficConfig::ConstantRate(constant_rate::Config { rate, packet });
    }
    // The second source sends at its MCR, the third at twice its MCR. MBS is two frames.
    for (vc, mcr) in [(2, "38.88Mbps"), (4, "19.44Mbps")] {
        let mcr = mcr.parse().unwrap();
        let contract = Gfr { mcr, pcr: None, mfs: 12, mbs: None, cdvt: "0s".parse().unwrap(), tagging: true };
        network.vcs[VcIndex::new(vc)].contract = Some(contract);
    }
    let result = run(&network);
    // 12 cells at a quarter of the link's rate take 12,720 of 97,200,000 units. The first packet is sent immediately.
    // All cells reach the switch.
    let frames = 97_200_000 / 12_720 + 1;
    let all = EdgeCounters { frames, eligible_frames: frames, ..EdgeCounters::default() };
    let contract = |name: &str, edge| ContractResult { name: name.into(), edge, discarded_frames: 0, cut_frames: 0 };
    assert_eq!(result.contracts[0], contract("vc1", all));
    // Every other frame of the third source is eligible, and additional ones while the bucket fills. F-GCRA's bucket
    // holds 23 (1/MCR - 1/PCR), which is 20.125 cells at MCR. While all frames are eligible, frame k finds 6 k cells in
    // it: 6 at the second, then 12, 18, and 24 at the fifth, the first that is not eligible. From then on it drains by
    // 6 per frame and fills by 12.
    let tagged = (frames - 4).div_ceil(2);
    let half = EdgeCounters { frames, eligible_frames: frames - tagged, tagged_frames: tagged, nonconforming_cells: 0 };
    assert_eq!(result.contracts[1..], [contract("vc2", half)]);
}

/// Returns the share of each source in all delivered bytes.
fn shares(result: &RunResult) -> Vec<f64> {
    let sum: u64 = result.flows.iter().map(|flow| flow.delivered_bytes).sum();
    result.flows.iter().map(|flow| flow.delivered_bytes as f64 / sum as f64).collect()
}

#[test]
fn wfq_divides_the_link_among_greedy_sources_by_weight_within_1_per_cent() {
    let cases = [[0.7, 10.0, 3.3, 2.9, 3.1], [1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 1.0, 1.0, 1.0, 1.0]];
    for &weights in if is_nightly() { &cases[..] } else { &cases[..1] } {
        let mut network = lan(5, None, "250ms");
        let table = (0..5).map(|i| (format!("vc{i}"), weights[i])).collect();
        let config = wfq::Config { weights: PerVc::ByName(table) };
        network.links[N_SOURCE_BOTTLENECK].scheduler = SchedulerConfig::Wfq(config);
        let sum: f64 = weights.iter().sum();
        for (share, weight) in shares(&run(&network)).into_iter().zip(weights) {
            assert!((share * sum / weight - 1.0).abs() < 0.01, "{weights:?}: {share}");
        }
    }
}

#[test]
fn under_strict_priority_the_higher_class_waits_for_at_most_one_cell_in_service() {
    let mut network = lan(5, None, "200ms");
    // One segment is sent per round trip. A round trip takes the sum of its hops, and at most two more cell times to
    // wait for cells in service.
    network.flows[FIRST].tcp =
        TcpConfig::Vanilla(TcpOptions { receive_window: Bytes { bytes: 512 }, ..TcpOptions::default() });
    for link in [N_SOURCE_BOTTLENECK, N_SOURCE_WAY_BACK] {
        network.links[link].scheduler = SchedulerConfig::StrictPriority(strict_priority::Config {});
    }
    let alone = (14 + 4) * 265 + 6 * 486;
    let delivered = |network: &Network| run(network).flows[FIRST].delivered_bytes / 512;
    assert!(
        delivered(&network) < 19_440_000 / (10 * alone),
        "with a single class, the packet waits behind all other packets"
    );
    network.vcs[VcIndex::new(0)].class = Class::Vbr;
    network.vcs[VcIndex::new(1)].class = Class::Vbr;
    let delivered = delivered(&network);
    assert!(delivered >= 19_440_000 / (alone + 2 * 265) - 1, "{delivered}");
}

#[test]
fn ubr_gets_its_guaranteed_rate_even_if_a_higher_class_always_has_cells_to_send() {
    for &share in if is_nightly() { &[0.1, 0.3, 0.75][..] } else { &[0.3] } {
        let mut network = lan(4, None, "300ms");
        network.vcs[VcIndex::new(0)].class = Class::Vbr;
        network.vcs[VcIndex::new(2)].class = Class::Cbr;
        let config = guaranteed_rate::Config { share };
        network.links[N_SOURCE_BOTTLENECK].scheduler = SchedulerConfig::GuaranteedRate(config);
        let shares = shares(&run(&network));
        let ubr = shares[2] + shares[3];
        assert!((ubr / share - 1.0).abs() < 0.01, "{share}: {ubr}");
    }
}

/// Runs a network with files of `size` bytes, and checks that dividing the stream into files changes nothing else in
/// the run.
fn with_files(network: &Network, size: u64) -> RunResult {
    let without = run(network);
    assert_eq!(without.file_delay, None);
    let mut network = network.clone();
    network.file_size = Some(Bytes { bytes: size });
    let result = run(&network);
    let flows = result.flows.iter().map(|flow| FlowResult { file_delay: None, ..flow.clone() }).collect();
    assert_eq!(
        RunResult { file_delay: None, flows, ..result.clone() },
        without,
        "a run with measurements equals a run without"
    );
    result
}

#[test]
fn a_file_of_one_segment_takes_one_round_trip_to_send() {
    let mut network = lan(1, None, "100ms");
    let options = TcpOptions { receive_window: Bytes { bytes: 512 }, ..TcpOptions::default() };
    network.flows[FIRST].tcp = TcpConfig::Vanilla(options);
    let round_trip = (14 + 4) * 265 + 6 * 486;
    let delay = with_files(&network, 512).file_delay.unwrap();
    assert_eq!(delay.files, 9_720_000 / round_trip);
    for found in [delay.mean_ms, delay.median_ms, delay.p95_ms] {
        assert!((found.unwrap() - round_trip as f64 / 97_200.0).abs() < 1e-12, "{found:?}");
    }
}

#[test]
fn the_transfer_time_of_a_file_is_its_transmission_time_plus_a_round_trip() {
    // D = L / R + RTT. If the window W is smaller than the pipe, R = W / RTT, and RTT is the round-trip time of a
    // single segment. If W is larger, R is the line's rate and the rest of the window waits at the source, so RTT = W /
    // R.
    let alone = f64::from((14 + 4) * 265 + 6 * 486);
    let line: f64 = 512.0 / (12.0 * 265.0);
    for (segments, size) in [(1, 100_000), (2, 100_000), (2, 30_000), (20, 100_000), (127, 100_000), (127, 65_024)] {
        let window = segments * 512;
        let mut network = lan(1, None, "700ms");
        let options = TcpOptions { receive_window: Bytes { bytes: window }, ..TcpOptions::default() };
        network.flows[FIRST].tcp = TcpConfig::Vanilla(options);
        let rate = line.min(window as f64 / alone);
        let expected = (size as f64 / rate + window as f64 / rate) / 97_200.0;
        let result = with_files(&network, size);
        let delay = result.file_delay.unwrap();
        assert_eq!(result.flows[FIRST].file_delay, Some(delay), "the network has one flow");
        for found in [delay.mean_ms, delay.median_ms] {
            let found = found.unwrap();
            assert!((found / expected - 1.0).abs() < 0.01, "{segments} segments, {size} bytes: {found} for {expected}");
        }
        let acknowledged = result.flows[FIRST].delivered_bytes - window;
        assert!((acknowledged / size..=result.flows[FIRST].delivered_bytes / size).contains(&delay.files));
    }
}

#[test]
fn the_completion_time_of_a_single_file_is_its_transfer_time() {
    for &name in TcpConfig::NAMES {
        let mut network = lan(5, Some(60), "20s");
        for flow in &mut network.flows {
            flow.tcp = TcpConfig::named(name, TcpOptions::default()).unwrap();
            flow.traffic = TrafficConfig::File(file::Config { bytes: Bytes { bytes: 512 * 150 } });
        }
        let whole = with_files(&network, 512 * 150);
        assert!(whole.cells.lost > 0, "{name}");
        for flow in &whole.flows {
            let (delay, completion) = (flow.file_delay.unwrap(), flow.completion_s.unwrap() * 1e3);
            assert_eq!(delay.files, 1, "{name}");
            assert!((delay.mean_ms.unwrap() / completion - 1.0).abs() < 1e-12, "{name}");
        }
        let all = whole.file_delay.unwrap();
        let of_flows: f64 = whole.flows.iter().map(|flow| flow.file_delay.unwrap().mean_ms.unwrap()).sum();
        assert!((all.mean_ms.unwrap() * 5.0 / of_flows - 1.0).abs() < 1e-12, "{name}");
        // Three parts of 47 segments each are complete. The other 9 segments do not complete a file.
        let parts = with_files(&network, 512 * 47);
        assert_eq!(parts.file_delay.unwrap().files, 5 * 3, "{name}");
    }
}

#[test]
fn only_the_data_of_tcp_flows_is_divided_into_files() {
    let mut network = lan(2, Some(100), "200ms");
    network.flows[SECOND].traffic = TrafficConfig::OnOff(on_off::Config::default());
    let result = with_files(&network, 10_000);
    assert_eq!(result.flows[SECOND].file_delay, None);
    assert_eq!(result.flows[FIRST].file_delay, result.file_delay);
    assert!(result.file_delay.unwrap().files > 10);
    let sum: f64 = result.flows.iter().map(|flow| flow.goodput_mbps).sum();
    assert_eq!(result.goodput_mbps, sum);
}

#[test]
fn the_port_plan_lists_the_implementation_of_each_port_and_its_next_hops() {
    let network = lan(3, Some(100), "1s");
    let ports = explain_plan(&network, &CancellationToken::never()).unwrap();
    assert!(ports.iter().map(|port| port.link).eq(network.links.keys()));
    let bottleneck = &ports[usize::from(network.bottleneck)];
    assert_eq!(
        (bottleneck.code.as_str(), bottleneck.feeds.len()),
        ("TrainPort<Counted>", 3),
        "the port leads to three hosts"
    );
    assert_eq!(bottleneck.details, ["Effects::FrameEnds", "Departures::AtAdmission"]);
    let codes = |code| ports.iter().filter(|port| port.code == code).count();
    assert_eq!(codes("host"), 6, "each end of a flow has a port");
    assert!(codes("transparent") > 0 && ports.iter().all(|port| !port.why.is_empty()));
}

/// Returns a network of distant nodes. With a delay of 50 ms, each partition has enough work before cells from another
/// partition arrive.
fn apart(sources: usize, delay: &str) -> Network {
    let tcp = TcpConfig::Sack(TcpOptions::default());
    n_source_network(sources, delay, Some(100), PolicyConfig::TailDrop(tail_drop::Config {}), &tcp, "8s")
}

#[test]
fn a_run_on_two_threads_and_the_run_on_one_thread_have_the_same_fingerprint() {
    let mut network = apart(3, "25ms");
    network.flows[SECOND].traffic = TrafficConfig::ConstantRate(constant_rate::Config {
        rate: BitRate::from_bits_per_second(10_000_000),
        packet: Bytes { bytes: 500 },
    });
    network.flows[FIRST].tcp = TcpConfig::Vanilla(TcpOptions::default());
    network.host.processing = Duration::from_microseconds(10);
    network.duration = Duration::from_milliseconds(3000);
    let alone = run(&network);
    let timeouts: u64 = alone.flows.iter().map(|flow| flow.timeouts).sum();
    assert!(alone.cells.lost > 0 && timeouts > 0, "something happens: {:?}, {timeouts} timeouts", alone.cells);
    for threads in [2, 3] {
        let options = ParallelOptions::up_to(threads);
        assert_eq!(
            Engine::Fast.threads_of(options, &network, &CancellationToken::never()),
            Ok(2),
            "the network can be divided into two at one link"
        );
        assert_eq!(Engine::Fast.run_parallel(options, &network, |_| true).unwrap(), alone);
    }
    assert_eq!(Engine::Reference.run_parallel(ParallelOptions::up_to(2), &network, |_| true).unwrap(), alone);
    let mut near = apart(3, "5us");
    near.duration = Duration::from_milliseconds(300);
    assert_eq!(Engine::Fast.threads_of(ParallelOptions::up_to(2), &near, &CancellationToken::never()), Ok(1));
    assert_eq!(Engine::Fast.run_parallel(ParallelOptions::up_to(2), &near, |_| true).unwrap(), run(&near));
}

#[test]
fn a_run_on_two_threads_can_be_cancelled() {
    let network = apart(3, "50ms");
    for most in [0.0, 0.01, 0.3] {
        let mut shares = Vec::new();
        let keep_going = |share: f64| {
            shares.push(share);
            share < most
        };
        assert_eq!(Engine::Fast.run_parallel(ParallelOptions::up_to(2), &network, keep_going), Err(Interrupted));
        assert!(shares.is_sorted(), "progress never decreases: {shares:?}");
    }
}
