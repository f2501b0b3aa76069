//! Laws about the times of a run.

use celltrain_core::engine::Simulation;
use celltrain_core::index::LinkIndex;
use celltrain_core::metrics::RunResult;
use celltrain_core::network::{Link, NodeKind};
use celltrain_core::tcp::timers::DELAYED_ACK_TICK;
use celltrain_core::tcp::{DelayedAcks, TcpConfig};
use celltrain_core::units::Duration;

use super::ports::{without_abr, without_formulas};
use super::same::{by_name, counts, same, without_totals};
use super::{Case, watch};
use crate::differential::{losses, marks, memories, requests};

/// The result for a part of a run equals the result of a run that ends after that part.
pub(super) fn longer(case: &mut Case) -> Result<bool, String> {
    let mut network = case.network();
    for add in [requests::add, memories::add, marks::add, losses::add] {
        if case.below(3) == 0 {
            add(&mut network, &mut case.draws);
        }
    }
    let mut beginning = network.clone();
    let microseconds = network.duration.picoseconds / 1_000_000;
    beginning.duration = Duration::from_microseconds(1 + case.draws.next_u64() % microseconds);
    // Both networks must have the same unit of time.
    network.duration.picoseconds = 3 * beginning.duration.picoseconds;
    let mut simulation = Simulation::new(case.engine, &network);
    let until = simulation.clock().time(beginning.duration);
    let snapshot = simulation
        .advance(until)
        .and_then(|()| simulation.snapshot())
        .expect("the time to advance to is not in the past");
    same(&snapshot, &case.run(&beginning))?;
    Ok(true)
}

/// Timers tick at multiples of their granularity, so the shift is a multiple of the granularity. No timer ticks at the
/// start of the run, so no source starts at this instant. The law removes ABR, whose sources and allocators count from
/// the start of the run.
pub(super) fn later(case: &mut Case) -> Result<bool, String> {
    let mut network = case.network();
    without_abr(&mut network);
    without_formulas(&mut network);
    network.host.clock_skew = 0.0;
    let no_tick = Duration::from_microseconds(1);
    network.flows.iter_mut().for_each(|flow| flow.start = flow.start.max(no_tick));
    let mut changed = network.clone();
    let ticks = network.flows.iter().flat_map(|flow| {
        let options = flow.tcp.options();
        let is_delayed = options.delayed_acks == DelayedAcks::On;
        [options.timer_granularity].into_iter().chain(is_delayed.then_some(DELAYED_ACK_TICK))
    });
    let delay = ticks.fold(1, |common, tick| common / gcd(common, tick.picoseconds) * tick.picoseconds);
    changed.duration.picoseconds += delay;
    changed.flows.iter_mut().for_each(|flow| flow.start.picoseconds += delay);
    let delay = Duration { picoseconds: delay };
    same(&counts(watch::run(case.engine, &changed, delay)), &counts(case.run_watched(&network)))?;
    Ok(true)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Without delayed acknowledgements, a receiver has no clock, so no other node notices that data reaches the receiver
/// later.
pub(super) fn farther_receiver(case: &mut Case) -> Result<bool, String> {
    let mut network = case.network();
    without_abr(&mut network);
    for flow in &mut network.flows {
        let mut options = flow.tcp.options().clone();
        options.delayed_acks = DelayedAcks::Off;
        flow.tcp = TcpConfig::named(flow.tcp.name(), options).expect("the name is that of a TCP variant");
    }
    let is_idle = |host| network.flows.iter().all(|flow| network.source(flow.data_vc) != host);
    let link = |of: &dyn Fn(&Link) -> bool| network.links.iter().position(of).map(LinkIndex::from);
    let mut hosts = network.nodes.iter_enumerated().filter(|(_, node)| node.kind == NodeKind::Host);
    let Some((host, _)) = hosts.find(|&(host, _)| is_idle(host)) else { return Ok(false) };
    let [Some(to), Some(from)] = [link(&|link| link.to == host), link(&|link| link.from == host)] else {
        return Ok(false);
    };
    let delay = network.links[from].delay.picoseconds;
    if delay == 0 {
        return Ok(false);
    }
    let mut changed = network.clone();
    changed.links[from].delay = Duration::default();
    changed.links[to].delay.picoseconds += delay;
    if changed.clock() != network.clock() {
        return Ok(false);
    }
    let others = |result: RunResult| {
        let mut result = without_totals(by_name(result));
        result.file_delay = None;
        result.ports.raw.retain(|port| port.name != network.links[from].name);
        for flow in &mut result.flows {
            let of_network = network.flows.iter().find(|of_network| of_network.name == flow.name);
            if of_network.is_some_and(|of_network| network.destination(of_network.data_vc) == host) {
                (flow.goodput_mbps, flow.throughput_mbps) = (0.0, 0.0);
                (flow.delivered_bytes, flow.received_bytes) = (0, 0);
                (flow.packets_delivered, flow.repeated_segments) = (0, 0);
            }
        }
        result
    };
    same(&others(case.run_watched(&changed)), &others(case.run_watched(&network)))?;
    Ok(true)
}
