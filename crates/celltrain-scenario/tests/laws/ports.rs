//! Laws about buffers, policies and memories.

use celltrain_core::aal5::Framing;
use celltrain_core::index::LinkIndex;
use celltrain_core::memory::{
    FrameAdmission, MemoryConfig, MemoryPolicyConfig, Pauses, PolicyScope, PoolConfig, PoolIndex, QueueConfig, Side,
    dynamic_threshold,
};
use celltrain_core::metrics::RunResult;
use celltrain_core::network::{Link, Network, NodeKind, Routing};
use celltrain_core::policy::{Overflow, PolicyConfig, tail_drop};
use celltrain_core::tie::TieOrder;
use typed_index_collections::TiVec;

use super::Case;
use super::same::same;
use crate::differential::{memories, stand};

/// Removes rate control (ABR) from all VCs.
pub(super) fn without_abr(network: &mut Network) {
    network.vcs.iter_mut().for_each(|vc| (vc.abr, vc.partner) = (None, None));
    network.links.iter_mut().for_each(|link| link.allocator = None);
}

/// Replaces policies whose settings may contain times.
pub(super) fn without_formulas(network: &mut Network) {
    for link in &mut network.links {
        if matches!(link.policy, PolicyConfig::Formula(_) | PolicyConfig::Python(_)) {
            link.policy = tail_drop();
        }
    }
    for pool in network.memories.iter_mut().flat_map(|memory| &mut memory.pools) {
        if matches!(pool.policy, MemoryPolicyConfig::Formula(_) | MemoryPolicyConfig::Python(_)) {
            pool.policy = dynamic_threshold::Config::default().into();
        }
    }
}

pub(super) fn tail_drop() -> PolicyConfig {
    PolicyConfig::TailDrop(tail_drop::Config {})
}

/// Returns the output ports of switches.
fn switch_ports(network: &Network) -> Vec<LinkIndex> {
    let is_port = |link: &Link| network.nodes[link.from].kind == NodeKind::Switch;
    network.links.iter_enumerated().filter(|(_, link)| is_port(link)).map(|(number, _)| number).collect()
}

/// Makes the buffers of switches infinite and removes their policies.
pub(super) fn without_limits(network: &mut Network) {
    for port in switch_ports(network) {
        let link = &mut network.links[port];
        (link.buffer, link.policy) = (None, tail_drop());
    }
}

pub(super) fn large_buffers(case: &mut Case) -> Result<bool, String> {
    let mut network = case.network();
    without_abr(&mut network);
    without_limits(&mut network);
    let original = case.run(&network);
    let largest = |port: LinkIndex| original.ports[port].max_queue_cells;
    let ports = switch_ports(&network);
    for &port in &ports {
        network.links[port].buffer = Some(largest(port));
    }
    same(&with_ports_of(&original, case.run(&network)), &original)?;
    let used: Vec<LinkIndex> = ports.into_iter().filter(|&port| largest(port) > 0).collect();
    if used.is_empty() {
        return Ok(false);
    }
    let port = used[case.below(used.len())];
    network.links[port].buffer = Some(largest(port) - 1);
    let lost = case.run(&network).ports[port].counters.lost();
    if lost > 0 { Ok(true) } else { Err(format!("{} loses nothing", network.links[port].name)) }
}

/// Returns a result with the buffers, policies and thresholds of another result.
fn with_ports_of(other: &RunResult, mut result: RunResult) -> RunResult {
    for (port, other) in result.ports.iter_mut().zip(&other.ports) {
        (port.buffer_cells, port.policy) = (other.buffer_cells, other.policy);
        port.threshold_cells = other.threshold_cells;
    }
    result
}

pub(super) fn unused_policies(case: &mut Case) -> Result<bool, String> {
    let mut network = case.network();
    without_abr(&mut network);
    without_limits(&mut network);
    let (original, routing) = (case.run(&network), network.routing());
    let delimits = network.aal5.framing == Framing::Packets;
    // Only the first mock of Python in a program takes effect.
    stand::class(0);
    for port in switch_ports(&network) {
        let largest = original.ports[port].max_queue_cells;
        let is_fifo = is_fifo(&network, &routing, port);
        let names = network.vc_names(&routing, port);
        let admits_all = |(policy, capacity): &(PolicyConfig, u32)| {
            let mut built = policy.build(Some(*capacity), &names);
            // With packet framing, leave out drop from front, which keeps last cells for AAL5.
            let pushes_out = built.overflow() == Overflow::PushOutFront;
            let needs_fifo = built.needs_one_queue() || pushes_out;
            built.admits_up_to() >= Some(largest) && (is_fifo || !needs_fifo) && !(delimits && pushes_out)
        };
        // Find the smallest buffer with which the queue never exceeds the policy's threshold.
        let smallest = |kind: usize| {
            let sample = |capacity: u32| (PolicyConfig::samples(capacity).swap_remove(kind), capacity);
            let candidates: Vec<u32> = (largest.max(1)..=2 * largest.max(1) + 20).collect();
            let place = candidates.partition_point(|&capacity| !admits_all(&sample(capacity)));
            candidates.get(place).map(|&capacity| sample(capacity))
        };
        let policies: Vec<_> = (0..PolicyConfig::NAMES.len()).filter_map(smallest).collect();
        let (policy, capacity) = policies[case.below(policies.len())].clone();
        let link = &mut network.links[port];
        (link.policy, link.buffer) = (policy, Some(capacity));
    }
    same(&with_ports_of(&original, case.run(&network)), &original)?;
    Ok(true)
}

/// Returns whether all cells of a port wait in one queue.
fn is_fifo(network: &Network, routing: &Routing, port: LinkIndex) -> bool {
    network.links[port].is_fifo() && !routing.merging[port].contains(&true)
}

/// The order of ties is fixed, because all cells that reach a memory compete with each other.
pub(super) fn large_memories(case: &mut Case) -> Result<bool, String> {
    let mut network = case.network();
    network.tie_order = TieOrder::Fixed;
    for port in switch_ports(&network) {
        let link = &mut network.links[port];
        if !link.policy.check(Some(HUGE)).is_empty() {
            link.policy = tail_drop();
        }
        link.buffer = Some(HUGE);
    }
    let original = case.run_watched(&network);
    let routing = network.routing();
    for node in network.nodes.keys() {
        let is_inside = |port: &LinkIndex| network.links[*port].from == node && !routing.merging[*port].contains(&true);
        let ports: Vec<LinkIndex> = switch_ports(&network).into_iter().filter(is_inside).collect();
        if !ports.is_empty() {
            let memory = memory(case, &network, &routing, ports);
            network.memories.push(memory);
        }
    }
    let without_memories = |result: &RunResult| RunResult { memories: TiVec::new(), ..result.clone() };
    let large = case.run_watched(&network);
    same(&without_memories(&large), &original)?;
    for (memory, result) in network.memories.iter_mut().zip(&large.memories) {
        memory.cells = result.max_used_cells;
    }
    let RunResult { fingerprint, .. } = original;
    let enough = RunResult { fingerprint, ..case.run(&network) };
    same(&without_memories(&enough), &original)?;
    let Some(full) = network.memories.iter_mut().find(|memory| memory.cells > 0) else { return Ok(false) };
    full.cells -= 1;
    let any_refused = |result: &RunResult| {
        result.memories.iter().flat_map(|memory| &memory.queues).any(|queue| queue.counters.refused > 0)
    };
    match [&large, &enough, &case.run(&network)].map(any_refused) {
        [false, false, true] => Ok(true),
        refused => Err(format!(
            "a huge memory, one of sufficient size and one that is a cell smaller refuse these numbers of cells: \
             {refused:?}"
        )),
    }
}

/// Number of cells that no memory of a random network reaches.
const HUGE: u32 = 1 << 26;

/// Returns a memory with any policy that admits every cell.
fn memory(case: &mut Case, network: &Network, routing: &Routing, ports: Vec<LinkIndex>) -> MemoryConfig {
    let mut policies = memories::memory_policies();
    // Leave out Python classes, because their mock refuses cells at random.
    policies.retain(|policy| policy.name() != "python");
    let is_fifo = ports.iter().all(|&port| is_fifo(network, routing, port));
    let follows = ports.iter().any(|&port| {
        let link = &network.links[port];
        link.policy.build(link.buffer, &network.vc_names(routing, port)).needs_one_queue()
    });
    policies.retain(|policy| !policy.needs_predictions() && (is_fifo && !follows || !policy.pushes_out()));
    let policy = policies.swap_remove(case.below(policies.len()));
    let pool = PoolConfig { name: "pool".into(), side: Side::Egress, cells: HUGE, headroom: None, policy };
    let queue = |&link: &LinkIndex| QueueConfig {
        link,
        priority: 0,
        pool: PoolIndex::new(0),
        reserve: 0,
        alpha: None,
        threshold: None,
        lossless: None,
    };
    MemoryConfig {
        name: "memory".into(),
        cells: HUGE,
        queues: ports.iter().filter(|&&port| !routing.vcs[port].is_empty()).map(queue).collect(),
        ports,
        pools: [pool].into_iter().collect(),
        frames: FrameAdmission::Cells,
        policies_see: PolicyScope::Port,
        pauses: Pauses::Counted,
        pause_response: None,
    }
}
