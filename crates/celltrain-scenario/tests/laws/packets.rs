//! Laws about packet framing.

use std::collections::BTreeSet;

use celltrain_core::aal5::{CellFormat, Framing};
use celltrain_core::memory::static_thresholds;
use celltrain_core::port::PortCounters;
use celltrain_core::switching::PacketAdmission;
use celltrain_scenario::topology::Topology;

use super::Case;
use super::same::same;
use crate::differential::memories;
use crate::differential::packets::{delimit, switch};

/// Size of a cell that carries every packet of a random network, with its headers.
const ONE_CELL: u64 = 70_000;

/// If all packets have one cell, AAL5 and packet framing give the same run.
pub(super) fn of_one_cell(case: &mut Case) -> Result<bool, String> {
    without_services_of_atm(case);
    let mut packets = case.network();
    packets.aal5.cell = CellFormat::of_memory(ONE_CELL);
    if !delimit(&mut packets) {
        return Ok(false);
    }
    switch(&mut packets, &mut case.draws);
    // Deciding with the length of a packet makes no difference for a packet of one cell, except for policies with
    // virtual queues.
    let mut aal5 = packets.clone();
    aal5.aal5.framing = Framing::Aal5;
    let (packets, aal5) = (case.run(&packets), case.run(&aal5));
    same(&packets, &aal5)?;
    Ok(packets.cells.offered > 0)
}

/// Removes contracts, rate control (ABR) and merging VCs, which need AAL5.
fn without_services_of_atm(case: &mut Case) {
    case.scenario.vc.clear();
    if let Topology::Network(network) = &mut case.scenario.topology {
        network.flows.iter_mut().for_each(|flow| flow.vc = None);
    }
}

/// A queue of a memory exceeds its threshold by at most all cells but one of each packet that arrives at the same time,
/// and not at all if packets are admitted with their length. Every cell that enters a memory leaves the memory, is
/// freed or waits.
pub(super) fn thresholds(case: &mut Case) -> Result<bool, String> {
    without_services_of_atm(case);
    let mut network = case.network();
    network.links.iter_mut().for_each(|link| link.policy = super::ports::tail_drop());
    memories::add(&mut network, &mut case.draws);
    if !delimit(&mut network) {
        return Ok(false);
    }
    switch(&mut network, &mut case.draws);
    let longest = network.flows.iter().map(|flow| flow.frame(&network.aal5).1).max().unwrap_or(1);
    let threshold = 1 + case.draws.below(longest);
    let cells = format!("{threshold} cells").parse().ok();
    for memory in &mut network.memories {
        for pool in &mut memory.pools {
            pool.policy = static_thresholds::Config { threshold: cells }.into();
        }
        for queue in &mut memory.queues {
            (queue.reserve, queue.threshold, queue.lossless) = (0, None, None);
        }
    }
    let result = case.run(&network);
    let fits = network.switching.admission == PacketAdmission::Fits;
    let vcs = u32::try_from(network.vcs.len()).expect("the number of VCs fits in 32 bits");
    let most = threshold + if fits { 0 } else { vcs * (longest - 1) };
    for (memory, config) in result.memories.raw.iter().zip(&network.memories) {
        let counters = || memory.queues.iter().map(|queue| queue.counters);
        let fullest = counters().map(|counters| counters.max_cells).max().unwrap_or(0);
        if fullest > most {
            return Err(format!("a queue has {fullest} cells; the limit is {most}, the threshold {threshold}"));
        }
        let sides: BTreeSet<_> = config.pools.iter().map(|pool| pool.side as u8).collect();
        let of_ports = |count: fn(&PortCounters) -> u64| -> u64 {
            config.ports.iter().map(|&port| count(&result.ports[port].counters)).sum()
        };
        let forwarded = of_ports(|port| port.forwarded) * sides.len() as u64;
        let left: u64 = counters().map(|counters| counters.entered - counters.pushed_out).sum::<u64>()
            - memory.queues.iter().map(|queue| u64::from(queue.cells)).sum::<u64>();
        // Places that were taken for cells that never arrive are freed without a departure.
        if left < forwarded || (!fits && left > forwarded) {
            return Err(format!("{left} cells left a memory, and its ports sent {forwarded}"));
        }
    }
    Ok(true)
}
