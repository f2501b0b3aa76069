//! Checks of certificates: a candidate network that the certificate of a run covers must have the same result as the
//! run, bit for bit.
//!
//! The settings of candidates are close to the limits of the run. Buffers have the length of the largest queue, or one
//! cell less or more. Thresholds equal occupancies at which the policy decided. Memories have the size of the largest
//! occupancy.

use celltrain_core::certificate::Certificate;
use celltrain_core::engine::Engine;
use celltrain_core::index::{LinkIndex, MemoryIndex};
use celltrain_core::memory::{
    MemoryPolicyConfig, PoolConfig, PoolIndex, QueueConfig, Side, dynamic_threshold, longest_queue_drop,
    static_thresholds,
};
use celltrain_core::metrics::RunResult;
use celltrain_core::network::{Network, NodeKind, Recording};
use celltrain_core::policy::{Overflow, PolicyConfig, double_epd, epd, fba, per_vc_accounting, selective_drop};
use celltrain_core::rng::Stream;
use celltrain_core::threshold::Threshold;

use super::trials::{Trial, cases};
use super::{memories, packets, stand};

/// Number of candidates for each network.
const CANDIDATES: u32 = 12;

/// Returns an error if a candidate that a certificate covers has a result that differs from that of the certificate's
/// run.
pub(super) fn cover_only_the_same_run(network: &Network) -> Result<(), String> {
    covered(network).map(|_| ())
}

/// Numbers of candidates, by kind of candidate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) candidates: u32,
    pub(super) covered: u32,
    /// Candidates that the certificate does not cover although they have the same result.
    pub(super) missed: u32,
    /// Covered candidates with another policy.
    pub(super) policies: u32,
    /// Covered candidates with another memory.
    pub(super) memories: u32,
    /// Covered candidates with another seed.
    pub(super) seeds: u32,
}

impl Counts {
    fn plus(self, other: Self) -> Self {
        Self {
            candidates: self.candidates + other.candidates,
            covered: self.covered + other.covered,
            missed: self.missed + other.missed,
            policies: self.policies + other.policies,
            memories: self.memories + other.memories,
            seeds: self.seeds + other.seeds,
        }
    }
}

/// Counts the candidates that a network's certificate covers.
///
/// # Errors
/// Returns the first difference between a covered candidate and the network.
pub(super) fn covered(network: &Network) -> Result<Counts, String> {
    // Only the first mock of Python in a program takes effect.
    stand::class(0);
    let mut rng = Stream::new(network.seed, "candidates");
    let engine = Engine::ALL[usize::from(rng.below(4) == 0)];
    let recording = Recording::default();
    let recorded = Network { recording: Some(recording.clone()), ..network.clone() };
    let result = recording.watch_draws(|| engine.run_to_end(&recorded));
    let plain = engine.run_to_end(network);
    if plain != result {
        return Err(format!("recording the decisions changes the result on {}", engine.name()));
    }
    let mut counts = Counts::default();
    let Ok(certificate) = Certificate::new(&recorded, &recording, &result) else { return Ok(counts) };
    for _ in 0..CANDIDATES {
        let Some(candidate) = candidate(network, &result, &mut rng) else { continue };
        counts.candidates += 1;
        let covers = certificate.covers(&candidate);
        let own = engine.run_to_end(&candidate);
        let is_same = own == result.clone().with_settings_of(&candidate);
        if covers && !is_same {
            let settings = |network: &Network| {
                let ports =
                    network.links.iter().map(|link| format!("{} {:?} {:?}", link.name, link.buffer, link.policy));
                let memories = network.memories.iter().map(|memory| format!("{memory:?}"));
                ports.chain(memories).collect::<Vec<_>>()
            };
            let changed = settings(&candidate).into_iter().zip(settings(network)).filter(|(new, old)| new != old);
            return Err(format!("{}: a certificate covers {:#?}", engine.name(), changed.collect::<Vec<_>>()));
        }
        counts.covered += u32::from(covers);
        counts.missed += u32::from(!covers && is_same);
        let other_policy = candidate.links.iter().zip(&network.links).any(|(new, old)| new.policy != old.policy);
        counts.policies += u32::from(covers && other_policy);
        counts.memories += u32::from(covers && candidate.memories != network.memories);
        counts.seeds += u32::from(covers && candidate.seed != network.seed);
    }
    Ok(counts)
}

/// Returns a copy of the network with other buffers, policies, memories or seeds; `None` if the random settings are not
/// valid.
fn candidate(network: &Network, result: &RunResult, rng: &mut Stream) -> Option<Network> {
    let mut candidate = network.clone();
    candidate.seed = candidate.seed.wrapping_add((rng.below(4) == 0).into());
    let ports: Vec<LinkIndex> = network
        .links
        .iter_enumerated()
        .filter(|(_, link)| network.nodes[link.from].kind == NodeKind::Switch && link.edge.is_none())
        .map(|(number, _)| number)
        .collect();
    for _ in 0..=rng.below(2) {
        match rng.below(3) {
            0 if !network.memories.is_empty() => change_memory(&mut candidate, result, rng),
            _ if ports.is_empty() => return None,
            _ => {
                let port = ports[index(rng, ports.len())];
                change_port(&mut candidate, port, result.ports[port].max_queue_cells, rng);
            }
        }
    }
    let routing = candidate.routing();
    let is_valid = candidate.links.iter_enumerated().all(|(number, link)| {
        let names = candidate.vc_names(&routing, number);
        let mut built = link.policy.build(link.buffer, &names);
        let is_special = built.needs_one_queue() || built.overflow() == Overflow::PushOutFront;
        let is_new = link.policy != network.links[number].policy;
        link.policy.check(link.buffer).is_empty()
            && link.policy.check_vcs(link.buffer, &names).is_empty()
            && !(is_new && is_special)
    });
    is_valid.then_some(candidate)
}

/// Adds shared memories to a network. Most of the memories consist of one pool.
pub(super) fn add_memories(network: &mut Network, rng: &mut Stream) {
    memories::add(network, rng);
    for memory in &mut network.memories {
        let Some(pool) = memory.pools.iter().position(|pool| pool.side == Side::Egress) else { continue };
        if rng.below(4) == 0 {
            continue;
        }
        let pools = &memory.pools;
        let mut queues: Vec<QueueConfig> = memory.queues.iter().cloned().collect();
        queues.retain(|queue| pools[queue.pool].side == Side::Egress);
        for queue in &mut queues {
            (queue.pool, queue.reserve, queue.lossless) = (PoolIndex::default(), 0, None);
        }
        let pool = PoolConfig { cells: memory.cells, headroom: None, ..memory.pools.raw[pool].clone() };
        (memory.pools, memory.queues) = ([pool].into_iter().collect(), queues.into_iter().collect());
    }
}

/// Adds shared memories to a network with packet framing.
pub(super) fn add_memories_of_packets(network: &mut Network, rng: &mut Stream) {
    if packets::delimit(network) {
        packets::switch(network, rng);
    }
    add_memories(network, rng);
}

fn index(rng: &mut Stream, bound: usize) -> usize {
    rng.below(u32::try_from(bound).expect("the bound fits in 32 bits")) as usize
}

/// Returns a random number of cells close to `cells`.
fn near(cells: u32, rng: &mut Stream) -> u32 {
    match rng.below(4) {
        0 => (cells + 1).saturating_sub(rng.below(4)),
        1 => cells + rng.below(cells / 2 + 2),
        2 => cells.saturating_sub(rng.below(cells / 2 + 2)),
        _ => cells,
    }
}

fn change_port(candidate: &mut Network, port: LinkIndex, max_queue: u32, rng: &mut Stream) {
    let link = &mut candidate.links[port];
    let is_shared = candidate.memories.iter().any(|memory| memory.ports.contains(&port));
    if rng.below(2) == 0 && !is_shared {
        link.buffer = if rng.below(8) == 0 { None } else { Some(near(max_queue, rng)) };
    }
    if rng.below(2) == 0 {
        let threshold: Threshold = near(max_queue, rng).into();
        let z = [0.2, 0.5, 0.8, 1.0, 1.2, 2.0][index(rng, 6)];
        link.policy = match rng.below(7) {
            0 => epd::Config { threshold }.into(),
            1 => selective_drop::Config { threshold, z }.into(),
            2 => fba::Config { threshold, z }.into(),
            3 => double_epd::Config { threshold, tagged_threshold: near(max_queue, rng).into() }.into(),
            4 => per_vc_accounting::Config { threshold, k: z }.into(),
            _ => {
                let mut samples = PolicyConfig::samples(link.buffer.unwrap_or(max_queue).max(1));
                samples.retain(|policy| policy.name() != "python");
                let choice = index(rng, samples.len());
                samples.swap_remove(choice)
            }
        };
    }
}

fn change_memory(candidate: &mut Network, result: &RunResult, rng: &mut Stream) {
    let choice = index(rng, candidate.memories.len());
    let number = MemoryIndex::new(u32::try_from(choice).expect("the number of memories fits in 32 bits"));
    let (memory, used) = (&mut candidate.memories[number], result.memories[number].max_used_cells);
    let may_push_out = memory.ports.iter().all(|&port| {
        let link = &candidate.links[port];
        let follows_cells = link.policy.build(Some(1), &[]).needs_one_queue();
        link.is_fifo() && !follows_cells
    });
    let cells = if rng.below(3) == 0 { memory.cells } else { near(used, rng).max(1) };
    for pool in &mut memory.pools {
        if pool.cells == memory.cells {
            pool.cells = cells;
        }
        let alpha = [0.25, 0.5, 1.0, 2.0, 4.0, 16.0][index(rng, 6)];
        pool.policy = match rng.below(7) {
            0 => MemoryPolicyConfig::samples().swap_remove(0),
            1 => dynamic_threshold::Config { alpha, ..dynamic_threshold::Config::default() }.into(),
            2 => {
                let arriving_cell = dynamic_threshold::ArrivingCell::Counted;
                dynamic_threshold::Config { alpha, arriving_cell }.into()
            }
            3 => {
                let threshold = format!("{} cells", near(used, rng).max(1)).parse().ok();
                static_thresholds::Config { threshold }.into()
            }
            4 if pool.side == Side::Egress && may_push_out => longest_queue_drop::Config::default().into(),
            _ => pool.policy.clone(),
        };
    }
    memory.cells = cells;
    let ports = memory.ports.clone();
    for port in ports {
        candidate.links[port].buffer = Some(cells);
    }
}

#[test]
fn results_are_reused_for_many_of_the_changed_networks_of_each_kind() {
    let mut sum = Counts::default();
    for name in [
        "a_run_that_a_certificate_covers_equals_its_own_run",
        "a_run_that_a_certificate_covers_equals_its_own_run_where_ports_share_memories",
    ] {
        for seed in 0..u64::from(cases().clamp(6, 200)) {
            let own = covered(&Trial::named(name).draw(seed).network());
            sum = sum.plus(own.unwrap_or_else(|difference| panic!("{difference}")));
        }
    }
    println!("{sum:?}");
    let Counts { candidates, covered, missed, policies, memories, seeds } = sum;
    assert!(8 * covered >= candidates && missed <= 2 * covered && policies.min(memories).min(seeds) > 0, "{sum:?}");
}
