//! Random memories for the switches of a random network.

use std::collections::{BTreeMap, BTreeSet};

use celltrain_core::index::{LinkIndex, NodeIndex, VcIndex};
use celltrain_core::memory::{
    self, FrameAdmission, Lossless, MemoryConfig, MemoryPolicyConfig, PauseAt, PauseResponse, Pauses, PolicyScope,
    PoolConfig, PoolIndex, QueueConfig, Side, credence, dynamic_threshold, longest_queue_drop, occamy,
    static_thresholds,
};
use celltrain_core::metrics::RunResult;
use celltrain_core::network::{Network, NodeKind, Routing};
use celltrain_core::policy::python::Setting;
use celltrain_core::rng::Stream;
use typed_index_collections::TiVec;

use super::stand;

/// Kinds of memories, parts of memories, and events in memories.
pub(crate) const KINDS: &[&str] = &[
    "complete_sharing", "static_thresholds", "dynamic_threshold", "longest_queue_drop", "harmonic", "abm",
    "abm_occamy", "occamy", "credence", "formula", "python", "egress pool", "ingress pool", "reserve",
    "lossless group", "links that pause", "priority above 0", "whole frames", "policies that see the memory",
    "two memories at a switch", "refused cell", "cell pushed out", "pause", "cell in a headroom",
];

/// Returns how often each kind occurs in a network and in its result.
pub(crate) fn kinds(network: &Network, result: &RunResult) -> Vec<(&'static str, u64)> {
    let mut kinds: Vec<(&str, u64)> = Vec::new();
    let mut nodes = BTreeSet::new();
    for (memory, result) in network.memories.iter().zip(&result.memories) {
        let is_second = !nodes.insert(network.links[memory.ports[0]].from);
        kinds.push(("two memories at a switch", u64::from(is_second)));
        kinds.push(("whole frames", u64::from(memory.frames == FrameAdmission::Whole)));
        kinds.push(("links that pause", u64::from(memory.pauses == Pauses::Links)));
        kinds.push(("policies that see the memory", u64::from(memory.policies_see == PolicyScope::Memory)));
        for pool in &memory.pools {
            kinds.push((pool.policy.name(), 1));
            kinds.push((if pool.side == Side::Egress { "egress pool" } else { "ingress pool" }, 1));
        }
        for (queue, result) in memory.queues.iter().zip(&result.queues) {
            kinds.push(("reserve", u64::from(queue.reserve > 0)));
            kinds.push(("lossless group", u64::from(queue.lossless.is_some())));
            kinds.push(("priority above 0", u64::from(queue.priority > 0)));
            kinds.push(("refused cell", result.counters.refused));
            kinds.push(("cell pushed out", result.counters.pushed_out));
            kinds.push(("pause", result.counters.pauses));
            kinds.push(("cell in a headroom", u64::from(result.counters.max_headroom)));
        }
    }
    kinds
}

/// Adds one or two memories to most switches, with pools and queues of all kinds.
pub(crate) fn add(network: &mut Network, rng: &mut Stream) {
    let routing = network.routing();
    let priorities = 1 + rng.below(3);
    for vc in &mut network.vcs {
        vc.priority = u8::try_from(rng.below(priorities)).expect("a priority fits in 8 bits");
    }
    let switches: Vec<NodeIndex> = network
        .nodes
        .iter_enumerated()
        .filter(|(_, node)| node.kind == NodeKind::Switch)
        .map(|(node, _)| node)
        .collect();
    for node in switches {
        let may_share = |link: LinkIndex| network.links[link].from == node && !routing.merging[link].contains(&true);
        let mut ports: Vec<LinkIndex> = network.links.keys().filter(|&link| may_share(link)).collect();
        if rng.below(4) == 0 {
            ports.retain(|_| rng.below(2) == 0);
        }
        rng.shuffle(&mut ports);
        let second = if rng.below(4) == 0 { ports.split_off(ports.len() / 2) } else { Vec::new() };
        for ports in [ports, second].into_iter().filter(|ports| !ports.is_empty()) {
            let memory = memory(network, &routing, ports, rng);
            for &port in &memory.ports {
                network.links[port].buffer = Some(memory.cells);
            }
            network.memories.push(memory);
        }
    }
}

fn memory(network: &Network, routing: &Routing, ports: Vec<LinkIndex>, rng: &mut Stream) -> MemoryConfig {
    let most = [12, 100, 2000][rng.below(3) as usize];
    let cells = 1 + rng.below(most);
    // No cell may be pushed out if a policy has virtual queues, which must always have as many cells as the real queue.
    let follows_cells = ports.iter().any(|&port| {
        let link = &network.links[port];
        link.policy.build(link.buffer, &network.vc_names(routing, port)).needs_one_queue()
    });
    let is_fifo = ports.iter().all(|&port| network.links[port].is_fifo());
    let may_pause = network.links.iter().all(|link| link.policy.build(link.buffer, &[]).head_policy().is_none());
    let may_push_out = is_fifo && !follows_cells;
    let sides: &[Side] = match rng.below(4) {
        0 => &[Side::Ingress],
        1 => &[Side::Egress, Side::Ingress],
        _ => &[Side::Egress],
    };
    let (mut pools, mut queues) = (TiVec::new(), TiVec::new());
    for &side in sides {
        let first: PoolIndex = pools.next_key();
        for number in 0..=rng.below(3) {
            let cells = 1 + rng.below(cells);
            pools.push(PoolConfig {
                name: format!("{side:?} {number}"),
                side,
                cells,
                headroom: (side == Side::Ingress && rng.below(2) == 0).then(|| rng.below(20)),
                policy: policy(side == Side::Egress && may_push_out, cells, rng),
            });
        }
        for (link, priority) in queues_of(network, routing, &ports, side) {
            let pool = PoolIndex::new(first.number() + rng.below(pools.next_key().number() - first.number()));
            let per_queue = pools[pool].policy.per_queue();
            queues.push(QueueConfig {
                link,
                priority,
                pool,
                reserve: if rng.below(2) == 0 { 0 } else { rng.below(10) },
                alpha: (per_queue.alpha && rng.below(2) == 0).then(|| ALPHAS[rng.below(5) as usize]),
                threshold: (per_queue.threshold && rng.below(2) == 0).then(|| rng.below(cells)),
                lossless: (may_pause && side == Side::Ingress && rng.below(2) == 0).then(|| Lossless {
                    headroom: rng.below(30),
                    xon: rng.below(10),
                    xon_offset: (rng.below(2) == 0).then(|| rng.below(10)),
                    pause_at: [PauseAt::Headroom, PauseAt::Threshold][rng.below(2) as usize],
                }),
            });
        }
    }
    let can_pause = |queue: &QueueConfig| {
        let link = &network.links[queue.link];
        link.is_fifo() && network.nodes[link.from].kind != NodeKind::EdgeDevice
    };
    let mut lossless = queues.iter().filter(|queue| queue.lossless.is_some()).peekable();
    let may_pause = lossless.peek().is_some() && lossless.all(can_pause);
    let pauses = if may_pause && rng.below(2) == 0 { Pauses::Links } else { Pauses::Counted };
    MemoryConfig {
        name: format!("of {}", network.links[ports[0]].name),
        cells,
        ports,
        pools,
        queues,
        frames: [FrameAdmission::Cells, FrameAdmission::Whole][rng.below(2) as usize],
        pauses,
        pause_response: [None, Some(PauseResponse::Quanta(0)), Some(PauseResponse::Quanta(40))][cells as usize % 3],
        policies_see: if follows_cells || rng.below(2) == 0 { PolicyScope::Port } else { PolicyScope::Memory },
    }
}

/// Memory policies with state, a clock and push-out, as formulas in TOML.
const FORMULAS: [&str; 4] = [
    r#"admit = "q_i + 1 <= rank * (B - Q) or now - since <= 20 us"
       queue_state = { since = 0 }
       on_arrival = { since = "if q_i == 0 then now else since" }"#,
    r#"admit = "true"
       push_out = "q_i + arriving""#,
    r#"admit = "q_i + arriving <= B - Q + B * left / max(4 * all, 1)"
       state = { all = 0 }
       queue_state = { left = "N / 2" }
       on_departure = { all = "all + 1", left = "left + 1 + n" }"#,
    r#"admit = "q_i <= B / 2 or average < 3"
       state = { average = 0 }
       queue_state = { last = 0 }
       on_arrival = { average = "average + (q_i - average) / 8", last = "now" }
       on_departure = { last = "now - last" }
       push_out = "if q_i > average then q_i + B * last / (1 ms + last) else priority * 1 cells"
       push_out_end = "head""#,
];

fn formula(text: &str) -> MemoryPolicyConfig {
    let config: MemoryPolicyConfig =
        toml::from_str::<memory::formula::Config>(text).expect("the formula is valid TOML").into();
    assert_eq!(config.check(100), [], "{text}");
    config
}

/// Returns every shipped memory policy, and mocks of Python classes that override different methods.
pub(crate) fn memory_policies() -> Vec<MemoryPolicyConfig> {
    // Only the first mock of Python in a program takes effect.
    stand::class(0);
    let mut policies = MemoryPolicyConfig::samples();
    policies.retain(|policy| policy.name() != "python");
    let class = |kind| {
        let settings = BTreeMap::from([("kind".into(), Setting::Whole(kind))]);
        memory::python::Config { class: "stand:Shares".into(), settings }.into()
    };
    policies.extend((0..3).map(class));
    policies
}

const ALPHAS: [f64; 5] = [0.125, 0.5, 1.0, 2.0, 8.0];

fn policy(may_push_out: bool, cells: u32, rng: &mut Stream) -> MemoryPolicyConfig {
    use longest_queue_drop::Variant;
    let mut samples = memory_policies();
    samples.extend(FORMULAS.map(formula));
    samples.extend(ALPHAS.map(|alpha| {
        let arriving_cell = dynamic_threshold::ArrivingCell::Counted;
        dynamic_threshold::Config { alpha, arriving_cell }.into()
    }));
    let threshold = format!("{} cells", 1 + rng.below(cells)).parse().ok();
    samples.push(static_thresholds::Config { threshold }.into());
    samples.push(longest_queue_drop::Config { variant: Variant::HeadHighest }.into());
    samples.extend([0.1, 0.5].map(|flips| credence::Config { flips }.into()));
    samples.push(occamy::Config { alpha: 1.0, burst: 1 + rng.below(4), rate: None }.into());
    let pushes_out = |policy: &MemoryPolicyConfig| policy.pushes_out() || policy.needs_predictions();
    samples.retain(|policy| may_push_out || !pushes_out(policy));
    let choice = rng.below(u32::try_from(samples.len()).expect("the number of policies fits in 32 bits"));
    samples.swap_remove(choice as usize)
}

/// Returns the pairs of link and priority of the VCs that cross these ports, on one side of the switch.
fn queues_of(network: &Network, routing: &Routing, ports: &[LinkIndex], side: Side) -> BTreeSet<(LinkIndex, u8)> {
    let queue = |port: LinkIndex, vc: VcIndex| {
        let vc = &network.vcs[vc];
        let place = vc.path.iter().position(|&link| link == port).expect("the path of the VC contains the port");
        (if side == Side::Egress { port } else { vc.path[place - 1] }, vc.priority)
    };
    ports.iter().flat_map(|&port| routing.vcs[port].iter().map(move |&vc| queue(port, vc))).collect()
}
