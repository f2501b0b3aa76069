//! Tests of runs that stop at deliveries, on both engines.

use super::*;
use crate::engine::Engine;
use crate::marking::MarkingConfig;
use crate::metrics::RunResult;
use crate::network::MeasureWindow;
use crate::network::tests::n_source_network;
use crate::policy::{PolicyConfig, tail_drop};
use crate::probe::{Recorder, SeriesChoice};
use crate::tcp::{TcpConfig, TcpOptions};
use crate::units::{Duration, Span};

const SOURCES: [NodeIndex; 2] = [NodeIndex::new(2), NodeIndex::new(3)];
const DATA: [VcIndex; 2] = [VcIndex::new(0), VcIndex::new(2)];

/// Returns a network in which two sources share a buffer of 60 cells with two flows of simulated TCP.
fn lan() -> Network {
    let tcp = TcpConfig::Vanilla(TcpOptions::default());
    n_source_network(2, "5us", Some(60), PolicyConfig::TailDrop(tail_drop::Config {}), &tcp, "30ms")
}

/// An injected packet: its time, its source, and its length in bytes.
type Injection = (Time, usize, u64);

/// Sends a burst of packets from each source every 3 ms, and one more packet for each arrival. Returns the injections
/// and the deliveries.
fn answered(engine: Engine, network: &Network, probe: impl Probe) -> (RunResult, Vec<Injection>, Vec<Delivered>) {
    let (mut injections, mut deliveries) = (Vec::new(), Vec::new());
    let result = engine.run_hosted::<_, SimulationError>(
        network,
        probe,
        |_| true,
        |simulation| {
            let mut send = |simulation: &mut HostedSimulation<'_, '_, _>, source: usize| {
                let number = injections.len() as u64;
                let bytes = 100 + number * 37 % 1400;
                injections.push((simulation.now(), source, bytes));
                simulation.inject(SOURCES[source], DATA[source], bytes, number)
            };
            let clock = simulation.clock();
            let burst = |number: u64| clock.time(Duration::from_microseconds(700 + 3000 * number));
            let mut bursts = 0;
            while simulation.now() < simulation.end() {
                let until = burst(bursts).min(simulation.end());
                simulation.advance_to_delivery(until)?;
                for delivered in simulation.take_deliveries() {
                    assert_eq!(delivered.time, simulation.now());
                    deliveries.push(delivered);
                    send(simulation, usize::from(delivered.vc == DATA[1]))?;
                }
                if simulation.now() == burst(bursts) {
                    bursts += 1;
                    (0..40).try_for_each(|i| send(simulation, i % 2))?;
                }
            }
            Ok(())
        },
    );
    (result.unwrap(), injections, deliveries)
}

#[test]
fn injecting_packets_in_reply_to_deliveries_gives_the_same_run_as_scheduling_them_in_advance() {
    let mut network = lan();
    network.measure =
        MeasureWindow { from: Some(Duration::from_milliseconds(7)), to: Some(Duration::from_milliseconds(23)) };
    let (whole, injections, deliveries) = answered(Engine::Fast, &network, Nothing);
    assert!(injections.len() > 100, "{}", injections.len());
    assert!(whole.cells.lost > 0);
    let by_reference = answered(Engine::Reference, &network, Nothing);
    assert_eq!(by_reference, (whole.clone(), injections.clone(), deliveries));
    for engine in Engine::ALL {
        let mut simulation = Simulation::new(engine, &network);
        for (tag, &(time, source, bytes)) in (0..).zip(&injections) {
            simulation.advance(time).unwrap();
            simulation.inject(SOURCES[source], DATA[source], bytes, tag).unwrap();
        }
        assert_eq!(simulation.finish(), whole);
    }
}

#[test]
fn recording_the_queues_does_not_change_a_run_with_external_stacks_on_either_engine() {
    let network = lan();
    let plain = answered(Engine::Fast, &network, Nothing);
    let choice = SeriesChoice { queue: true, ..SeriesChoice::default() };
    let recorded = Engine::ALL.map(|engine| {
        let links = network.links.keys().collect();
        let mut recorder = Recorder::new(choice, links, Duration::from_microseconds(50), &network);
        assert_eq!(answered(engine, &network, &mut recorder), plain);
        (recorder.times.clone(), recorder.queue_cells, recorder.queue_cells_least, recorder.queue_cells_largest)
    });
    assert_eq!(recorded[0].0.len(), 601);
    assert!(recorded[0].1.iter().any(|&cells| cells > 0));
    assert_eq!(recorded[0], recorded[1]);
}

#[test]
fn the_result_of_a_flow_with_an_external_protocol_stack_contains_counters_reported_by_the_stack() {
    let mut network = lan();
    network.flows.iter_mut().for_each(|flow| flow.outside = true);
    for engine in Engine::ALL {
        let flow = FlowIndex::new(1);
        let result = engine.run_hosted::<_, Interrupted>(
            &network,
            Nothing,
            |_| true,
            |simulation| {
                simulation.advance_to_delivery(simulation.clock().time(Duration::from_milliseconds(10)))?;
                *simulation.counters(flow) = OutsideCounters {
                    delivered_bytes: 37_500,
                    segments_sent: 80,
                    retransmitted_segments: 5,
                    received_bytes: 38_000,
                    repeated_segments: 1,
                    completed: Some(simulation.now()),
                    ..OutsideCounters::default()
                };
                Ok(())
            },
        );
        let result = result.unwrap();
        assert_eq!(result.cells.offered, 0);
        let own = &result.flows[flow];
        // 37,500 bytes in 30 ms are 10 Mb/s.
        assert_eq!((own.goodput_mbps, own.delivered_bytes, own.received_bytes), (10.0, 37_500, 38_000));
        assert_eq!((own.segments_sent, own.retransmitted_segments, own.repeated_segments), (80, 5, 1));
        assert_eq!((own.completion_s, own.cwnd_segments), (Some(0.01), 0.0));
        assert_eq!(result.flows[FlowIndex::new(0)].delivered_bytes, 0);
    }
}

#[test]
fn a_run_with_external_protocol_stacks_can_be_interrupted() {
    let network = lan();
    for engine in Engine::ALL {
        let run = engine.run_hosted(
            &network,
            Nothing,
            |_| false,
            |simulation| simulation.advance_to_delivery(simulation.end()),
        );
        assert_eq!(run, Err(Interrupted));
    }
}

#[test]
#[should_panic(expected = "the target time is between now and the end of the run")]
fn a_run_with_external_protocol_stacks_does_not_advance_beyond_its_end_time() {
    let network = lan();
    let _ = Engine::Fast.run_hosted(
        &network,
        Nothing,
        |_| true,
        |simulation| simulation.advance_to_delivery(simulation.end() + Span(1)),
    );
}

/// A run that advances from one event to the next.
struct ByEvents {
    result: RunResult,
    deliveries: Vec<Delivered>,
    /// Counts of cells waiting at the first source's port after every event.
    waiting: Vec<(Time, u32)>,
    /// Time of the next event at the end of the run.
    next: Option<Time>,
}

/// Sends a burst from each source at 1 ms and advances from event to event to 4 ms, the end of the run.
fn by_events(engine: Engine, network: &Network) -> ByEvents {
    let (mut deliveries, mut waiting, mut next_at_end) = (Vec::new(), Vec::new(), None);
    let result = engine.run_hosted::<_, SimulationError>(
        network,
        Nothing,
        |_| true,
        |simulation| {
            let time = |us| simulation.clock().time(Duration::from_microseconds(us));
            let (burst, end, port) = (time(1000), time(4000), network.vcs[DATA[0]].path[0]);
            // Move the end of the run, and make the last step shorter.
            for end in [time(1500), time(3000), end] {
                simulation.end_at(end);
                while simulation.now() < end {
                    let next = simulation.next_event().unwrap_or(end).min(end);
                    let until = if simulation.now() < burst { next.min(burst) } else { next };
                    simulation.advance_to_delivery(until)?;
                    assert_eq!(simulation.now(), until, "nothing arrives before the next event");
                    deliveries.extend(simulation.take_deliveries());
                    if until == burst {
                        (0..40).try_for_each(|tag| {
                            let source = usize::from(tag % 2 == 1);
                            simulation.inject(SOURCES[source], DATA[source], 1000, tag)
                        })?;
                    }
                    waiting.push((until, simulation.waiting(port)));
                }
            }
            next_at_end = simulation.next_event();
            Ok(())
        },
    );
    ByEvents { result: result.unwrap(), deliveries, waiting, next: next_at_end }
}

#[test]
fn a_run_with_external_protocol_stacks_can_advance_event_by_event_and_end_early() {
    let mut network = lan();
    network.flows.iter_mut().for_each(|flow| flow.outside = true);
    let fast = by_events(Engine::Fast, &network);
    let reference = by_events(Engine::Reference, &network);
    assert_eq!((&fast.result, &fast.deliveries), (&reference.result, &reference.deliveries));
    assert!(fast.deliveries.len() > 3 && fast.result.cells.lost > 0, "{}", fast.deliveries.len());
    assert_eq!((fast.next, reference.next), (None, None), "every frame has either arrived or been lost");
    assert_eq!(fast.result.duration_s, 0.004);
    let at = |of: &[(Time, u32)], time| of.iter().find(|&&(at, _)| at == time).map(|&(_, cells)| cells);
    // The source sends 20 frames of 22 cells each (1000 bytes, LLC/SNAP and trailer). One cell has started.
    assert_eq!(fast.waiting.iter().map(|&(_, cells)| cells).max(), Some(20 * 22 - 1));
    let both: Vec<_> =
        fast.waiting.iter().filter_map(|&(time, cells)| Some((cells, at(&reference.waiting, time)?))).collect();
    assert!(both.iter().filter(|&&(cells, _)| cells > 0).count() > 10, "{both:?}");
    assert!(both.iter().all(|&(fast, reference)| fast == reference), "{both:?}");
    // Run the same network with an end that the engine knows from the start.
    let whole = Network { duration: Duration::from_milliseconds(4), ..network };
    assert_eq!(by_events(Engine::Fast, &whole).result, fast.result);
}

//= test rfc3168#5 "a router drops a packet that is not ECN-capable where it would mark another"
#[test]
fn packets_injected_above_the_marking_threshold_are_marked_if_ecn_capable_and_otherwise_dropped() {
    let mut network = lan();
    network.flows.iter_mut().for_each(|flow| flow.outside = true);
    network.links[network.bottleneck].buffer = Some(2000);
    network.links[network.bottleneck].marking = Some(MarkingConfig::step(60.into()));
    let runs = Engine::ALL.map(|engine| {
        let mut deliveries = Vec::new();
        let result = engine.run_hosted::<_, SimulationError>(
            &network,
            Nothing,
            |_| true,
            |simulation| {
                for tag in 0..20 {
                    simulation.inject_capable(SOURCES[0], DATA[0], 1000, tag)?;
                    simulation.inject(SOURCES[1], DATA[1], 1000, tag)?;
                }
                while simulation.now() < simulation.end() {
                    simulation.advance_to_delivery(simulation.end())?;
                    deliveries.extend(simulation.take_deliveries());
                }
                Ok(())
            },
        );
        (result.unwrap(), deliveries)
    });
    assert_eq!(runs[0], runs[1]);
    let marks = |vc: VcIndex| -> Vec<bool> {
        runs[0].1.iter().filter(|delivered| delivered.vc == vc).map(|delivered| delivered.marked).collect()
    };
    let [capable, others] = DATA.map(marks);
    assert_eq!(capable.len(), 20);
    assert!(capable.contains(&true) && capable.contains(&false), "{capable:?}");
    assert!(others.len() < 20 && !others.contains(&true), "{others:?}");
}
