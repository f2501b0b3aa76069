use super::*;
use crate::index::FlowIndex;
use crate::network::tests::simple_network;
use crate::probe::Nothing;
use crate::tcp::{Ack, DelayedAcks, Rules, TcpConfig, TcpOptions, TickPhase, TimerOptions};
use crate::units::Duration;

fn network(of_flows: &[TcpOptions]) -> Network {
    let mut network = simple_network(of_flows.len(), "10s");
    for (flow, options) in network.flows.iter_mut().zip(of_flows) {
        flow.tcp = TcpConfig::Vanilla(options.clone());
    }
    network
}

/// Returns options whose retransmission clock ticks every `milliseconds`.
fn ticking(milliseconds: u64) -> TcpOptions {
    TcpOptions {
        rules: Rules::Paper,
        timer_granularity: Duration::from_milliseconds(milliseconds),
        ..TcpOptions::default()
    }
}

/// Returns each clock's kind, its period in milliseconds, and its flows.
fn clocks(network: &Network) -> Vec<(ClockKind, u64, Vec<u32>)> {
    let clock = network.clock();
    let of = |host: HostClock| {
        let first = host.ticks.next();
        let mut later = host.ticks;
        later.advance();
        let period = (later.next() - first).0 * 1000 / clock.units_per_second;
        (host.kind, period, host.flows.into_iter().map(FlowIndex::number).collect())
    };
    HostClocks::of_flows(network, clock).all.into_iter().map(of).collect()
}

#[test]
fn connections_with_equal_clock_kind_granularity_and_phase_share_one_clock() {
    use ClockKind::{DelayedAck, Retransmission};
    let delayed = |options| TcpOptions { delayed_acks: DelayedAcks::On, ..options };
    // The fourth flow's retransmission clock ticks together with the delayed-acknowledgement clock, but is a separate
    // clock.
    let network = network(&[ticking(100), ticking(50), delayed(ticking(100)), delayed(ticking(200)), ticking(50)]);
    assert_eq!(
        clocks(&network),
        [
            (Retransmission, 100, vec![0, 2]),
            (Retransmission, 50, vec![1, 4]),
            (DelayedAck, 200, vec![2, 3]),
            (Retransmission, 200, vec![3]),
        ]
    );
}

#[test]
fn a_connection_with_a_random_clock_phase_has_a_separate_clock() {
    let random = || TcpOptions {
        timer: TimerOptions { tick_phase: Some(TickPhase::Random), ..TimerOptions::default() },
        ..ticking(100)
    };
    let network = network(&[random(), ticking(100), random(), ticking(100)]);
    let flows: Vec<_> = clocks(&network).into_iter().map(|(_, period, flows)| (period, flows)).collect();
    assert_eq!(flows, [(100, vec![0]), (100, vec![1, 3]), (100, vec![2])]);
    let clock = network.clock();
    for host in HostClocks::of_flows(&network, clock).all {
        assert!(host.ticks.next() <= Time::default() + clock.span(Duration::from_milliseconds(100)));
    }
}

#[test]
fn clock_drift_speeds_up_the_ticks_of_all_connections_by_the_same_fraction() {
    let drifting = |granularity| TcpOptions {
        timer: TimerOptions { tick_phase: Some(TickPhase::Drifting), ..TimerOptions::default() },
        ..ticking(granularity)
    };
    let mut network = network(&[drifting(100), drifting(50), drifting(100), ticking(100)]);
    let clock = network.clock();
    let tick = |milliseconds| clock.span(Duration::from_milliseconds(milliseconds));
    let mut seen = Vec::new();
    for seed in 1..=20 {
        network.seed = seed;
        let clocks = HostClocks::of_flows(&network, clock).all;
        let flows: Vec<_> = clocks.iter().map(|host| host.flows.len()).collect();
        assert_eq!(flows, [2, 1, 1], "connections share a clock even with clock drift");
        let early = |host: usize, period, ticks: u64| {
            (ticks + 1) * tick(period).0 - (clocks[host].ticks.after(ticks) - Time::default()).0
        };
        let drift = early(0, 100, 0);
        assert!(drift <= tick(100).0 / 10_000, "{drift}");
        assert_eq!((early(0, 100, 9), early(2, 100, 9)), (10 * drift, 0), "each tick comes earlier than without drift");
        assert!(early(1, 50, 0).abs_diff(drift / 2) <= 1, "the drift is the same fraction of every tick");
        seen.push(drift);
    }
    seen.sort_unstable();
    seen.dedup();
    assert!(seen.len() > 10, "{seen:?}");
}

#[test]
fn a_zero_window_probe_is_a_frame_with_one_byte_of_data() {
    let network = network(&[ticking(100)]);
    let clock = network.clock();
    let mut ends = EndSystems::new(&network, &network.routing(), clock);
    let mut out = Vec::new();
    let flow = FlowIndex::new(0);
    ends.start(flow, &mut Nothing, &mut out);
    assert_eq!(out.len(), 1);
    assert_eq!(out[0].cells, network.aal5.segment_cells(512));
    out.clear();
    // The first segment has arrived, but the application has not read it.
    let closed = Body::Ack { flow, ack: Ack { ack: 512, window: 0 }, echoes: false };
    let departure = ends.vcs.put(network.flows[flow].ack_vc, Frame::new(2, closed), None);
    ends.deliver(departure.vc, departure.last.frame, Time::default(), &mut Nothing, &mut out);
    assert_eq!(out, []);
    let wait = ends.connections[flow].sender.timers()[1];
    let mut now = Time::default();
    while out.is_empty() {
        now = ends.next_tick().unwrap();
        ends.on_tick(now, &mut Nothing, &mut out);
    }
    assert_eq!(now, Time::default() + clock.span(Duration::from_milliseconds(100 * wait)), "{wait} ticks");
    assert_eq!(out.iter().map(|departure| departure.cells).collect::<Vec<_>>(), [network.aal5.segment_cells(1)]);
}

#[test]
fn connections_whose_clocks_tick_at_the_same_instant_are_processed_in_index_order() {
    // Flows 0 and 2 share a clock; flow 1 has its own. All three have their first timeout at three seconds.
    let network = network(&[ticking(100), ticking(50), ticking(100)]);
    let clock = network.clock();
    let routing = network.routing();
    let mut ends = EndSystems::new(&network, &routing, clock);
    let mut out = Vec::new();
    for flow in network.flows.keys() {
        ends.start(flow, &mut Nothing, &mut out);
    }
    assert_eq!(out.drain(..).map(|departure| departure.vc.number()).collect::<Vec<_>>(), [0, 2, 4]);
    let mut ticked = Vec::new();
    while out.is_empty() {
        let now = ends.next_tick().unwrap();
        ticked.push((ends.on_tick(now, &mut Nothing, &mut out), now));
    }
    // After each clock's first tick, only ticks at which a timer expires are simulated.
    let at = |milliseconds| Time::default() + clock.span(Duration::from_milliseconds(milliseconds));
    assert_eq!(ticked, [(1, at(50)), (2, at(100)), (3, at(3000))]);
    assert_eq!(out.iter().map(|departure| departure.vc.number()).collect::<Vec<_>>(), [0, 2, 4]);
}

#[test]
fn clocks_that_tick_every_microsecond_add_no_events_beyond_those_of_the_traffic() {
    let mut options = ticking(100);
    options.timer_granularity = Duration { picoseconds: 1_000_000 };
    options.minimum_rto = 1000;
    options.timer.initial_rto = Some(Duration::from_milliseconds(3000));
    let network = network(&[options]);
    let clock = network.clock();
    let mut ends = EndSystems::new(&network, &network.routing(), clock);
    let mut out = Vec::new();
    let flow = FlowIndex::new(0);
    ends.start(flow, &mut Nothing, &mut out);
    let mut ticks = 0;
    // Each round trip of 10 ms would have 10,000 ticks. The eleventh segment is lost.
    for round in 1..=10 {
        let now = Time::default() + clock.span(Duration::from_milliseconds(10 * round));
        while ends.next_tick().is_some_and(|tick| tick < now) {
            ends.on_tick(ends.next_tick().unwrap(), &mut Nothing, &mut out);
            ticks += 1;
        }
        let ack = Body::Ack { flow, ack: Ack { ack: 512 * round, window: 65535 }, echoes: false };
        let departure = ends.vcs.put(network.flows[flow].ack_vc, Frame::new(2, ack), None);
        out.clear();
        ends.deliver(departure.vc, departure.last.frame, now, &mut Nothing, &mut out);
        assert!(!out.is_empty(), "the receive window is open");
    }
    out.clear();
    while out.is_empty() {
        ends.on_tick(ends.next_tick().expect("a timer of the connection is running"), &mut Nothing, &mut out);
        ticks += 1;
    }
    assert!(ticks < 40, "{ticks} ticks were simulated");
}
