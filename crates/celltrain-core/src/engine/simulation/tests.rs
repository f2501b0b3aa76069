//! Tests of steps, injections and errors on both engines.

use super::*;
use crate::aal5::Encapsulation;
use crate::gfr::Gfr;
use crate::network::MeasureWindow;
use crate::network::tests::n_source_network;
use crate::policy::{PolicyConfig, tail_drop};
use crate::tcp::{TcpConfig, TcpOptions};
use crate::units::{BitRate, Bytes, Duration};

/// Returns a network in which two sources share a buffer of 100 cells. Nodes 2 and 3 are the sources; VCs 0 and 2 carry
/// their data.
fn lan(duration: &str) -> Network {
    let tcp = TcpConfig::Vanilla(TcpOptions::default());
    n_source_network(2, "5us", Some(100), PolicyConfig::TailDrop(tail_drop::Config {}), &tcp, duration)
}

const SOURCE: NodeIndex = NodeIndex::new(2);
const DATA: VcIndex = VcIndex::new(0);

fn each_engine(network: &Network, mut test: impl FnMut(Simulation<'_>)) {
    for engine in Engine::ALL {
        test(Simulation::new(engine, network));
    }
}

fn message<T: fmt::Debug>(refused: Result<T, SimulationError>) -> String {
    refused.unwrap_err().to_string()
}

#[test]
fn a_simulation_advanced_in_steps_gives_the_result_of_an_uninterrupted_run() {
    let mut network = lan("50ms");
    network.measure =
        MeasureWindow { from: Some(Duration::from_milliseconds(11)), to: Some(Duration::from_milliseconds(37)) };
    let whole = Engine::Fast.run(&network, Nothing, |_| true).unwrap();
    assert_eq!((whole.measured_from_s, whole.measured_to_s), (0.011, 0.037));
    for step in ["3us", "170us", "11ms", "50ms"] {
        each_engine(&network, |mut simulation| {
            let step = simulation.clock().span(step.parse().unwrap());
            while simulation.now() < simulation.end() {
                simulation.advance((simulation.now() + step).min(simulation.end())).unwrap();
            }
            assert_eq!(simulation.finish(), whole);
        });
    }
}

#[test]
fn a_snapshot_at_an_instant_is_the_result_of_a_run_that_ends_at_this_instant() {
    let (network, short) = (lan("50ms"), lan("20ms"));
    let end = Engine::Reference.run(&short, Nothing, |_| true).unwrap();
    assert_eq!(network.clock(), short.clock());
    let whole = Engine::Fast.run(&network, Nothing, |_| true).unwrap();
    each_engine(&network, |mut simulation| {
        let at = simulation.clock().time(Duration::from_milliseconds(20));
        simulation.advance(at).unwrap();
        assert_eq!(simulation.snapshot().unwrap(), end);
        assert_eq!(simulation.snapshot().unwrap(), end, "it changes nothing");
        assert_eq!((simulation.now(), simulation.finish()), (at, whole.clone()));
    });
}

#[test]
fn an_injected_frame_arrives_after_the_transmission_and_propagation_times_of_its_path() {
    // 1500 bytes with LLC/SNAP take 32 cells. In units of 1/97.2 MHz, a cell takes 265 and the delay of a link is 486.
    // The frame takes 34 cell times and three link delays.
    let mut network = lan("50ms");
    network.flows.clear();
    each_engine(&network, |mut simulation| {
        let at = simulation.clock().time(Duration::from_milliseconds(1));
        simulation.advance(at).unwrap();
        simulation.inject(SOURCE, DATA, 1500, 7).unwrap();
        let arrival = at + Span(34 * 265 + 3 * 486);
        simulation.advance(Time(arrival.0 - 1)).unwrap();
        assert_eq!(simulation.take_deliveries(), []);
        simulation.advance(arrival).unwrap();
        assert_eq!(simulation.take_deliveries(), [Delivered { time: arrival, vc: DATA, tag: 7, marked: false }]);
        assert_eq!(simulation.take_deliveries(), [], "each delivered frame is returned exactly once");
        let cells = simulation.snapshot().unwrap().cells;
        assert_eq!((cells.offered, cells.delivered, cells.in_flight), (32, 32, 0));
    });
}

#[test]
fn frames_injected_at_the_same_instant_leave_a_busy_port_in_the_order_of_injection() {
    let mut network = lan("50ms");
    network.flows.clear();
    each_engine(&network, |mut simulation| {
        for tag in [3, 1, 2] {
            simulation.inject(SOURCE, DATA, 1500, tag).unwrap();
        }
        let link = network.vcs[DATA].path[0];
        let port = &simulation.snapshot().unwrap().ports[link];
        // One cell of the first frame has started before the other frames arrive.
        assert_eq!((port.max_queue_cells, port.queue_cells), (95, 95));
        simulation.advance(simulation.end()).unwrap();
        assert_eq!(simulation.take_deliveries().iter().map(|frame| frame.tag).collect::<Vec<_>>(), [3, 1, 2]);
    });
}

#[test]
fn injecting_a_frame_changes_the_fingerprints_of_both_engines_equally() {
    let network = lan("50ms");
    let plain = Engine::Fast.run(&network, Nothing, |_| true).unwrap().fingerprint;
    let mut found = Vec::new();
    each_engine(&network, |mut simulation| {
        simulation.advance(simulation.clock().time(Duration::from_milliseconds(3))).unwrap();
        simulation.inject(SOURCE, DATA, 40, 1).unwrap();
        found.push(simulation.finish());
    });
    assert_eq!(found[0], found[1]);
    assert_ne!(found[0].fingerprint, plain);
}

#[test]
fn a_step_to_an_earlier_time_or_past_the_end_of_the_run_is_refused() {
    let network = lan("50ms");
    each_engine(&network, |mut simulation| {
        let time = |ms| simulation.clock().time(Duration::from_milliseconds(ms));
        let [two, one, late] = [2, 1, 51].map(time);
        simulation.advance(two).unwrap();
        simulation.advance(two).unwrap();
        let backwards = simulation.advance(one);
        assert_eq!(message(backwards), "cannot advance to 0.001 s: the simulation has already reached 0.002 s");
        assert_eq!(message(simulation.advance(late)), "cannot advance to 0.051 s: the run ends at 0.05 s");
        assert_eq!(simulation.now(), two);
    });
}

#[test]
fn injecting_a_frame_on_an_unknown_vc_or_on_the_vc_of_another_host_is_refused() {
    let network = lan("50ms");
    each_engine(&network, |mut simulation| {
        let other = simulation.inject(NodeIndex::new(3), DATA, 40, 1);
        assert_eq!(message(other), "cannot inject a frame on VC vc0 at source2: the VC starts at source1");
        let nowhere = simulation.inject(NodeIndex::new(99), DATA, 40, 1);
        assert_eq!(message(nowhere), "cannot inject a frame on VC vc0 at node 99: the VC starts at source1");
        let unknown = simulation.inject(SOURCE, VcIndex::new(4), 40, 1);
        assert_eq!(message(unknown), "there is no VC 4: the network has 4 VCs, numbered from 0");
        assert_eq!(simulation.snapshot().unwrap().cells.offered, 24, "only data of flows counts as delivered");
    });
}

#[test]
fn injecting_a_frame_longer_than_its_vc_allows_is_refused() {
    let contract = |mfs| Gfr {
        mcr: BitRate::from_bits_per_second(1_000_000),
        pcr: None,
        mfs,
        mbs: None,
        cdvt: Duration::default(),
        tagging: false,
    };
    for (encapsulation, max_sdu, mfs, most) in [
        (Encapsulation::VcMux, 65_535, None, 65_535),
        (Encapsulation::LlcSnap, 65_535, None, 65_527),
        (Encapsulation::LlcSnap, 9188, None, 9180),
        // 32 cells hold 1536 bytes, and the trailer and LLC/SNAP take 16.
        (Encapsulation::LlcSnap, 65_535, Some(32), 1520),
        (Encapsulation::LlcSnap, 576, Some(32), 568),
    ] {
        let mut network = lan("50ms");
        network.aal5.encapsulation = encapsulation;
        network.aal5.max_sdu = Bytes { bytes: max_sdu };
        network.vcs[DATA].contract = mfs.map(contract);
        each_engine(&network, |mut simulation| {
            simulation.inject(SOURCE, DATA, most, 1).unwrap();
            let long = simulation.inject(SOURCE, DATA, most + 1, 1);
            let expected = format!(
                "a packet of {} bytes is too long for VC vc0: its longest frame has room for {most} bytes",
                most + 1
            );
            assert_eq!(message(long), expected);
        });
    }
}

#[test]
fn a_stepwise_simulation_can_be_interrupted() {
    let network = lan("50ms");
    each_engine(&network, |mut simulation| {
        let end = simulation.end();
        let token = || CancellationToken::new(&|| false);
        assert_eq!(simulation.advance_unless(end, &token()), Err(SimulationError::Interrupted));
        assert_eq!(simulation.snapshot_unless(&token()), Err(SimulationError::Interrupted));
    });
}
