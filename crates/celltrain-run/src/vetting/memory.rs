//! Tests properties that every memory policy must have, with random cells at a memory outside any network.

#![expect(clippy::arithmetic_side_effects, reason = "no overflow: these are counts of a few thousand cells")]

use std::collections::BTreeMap;

use celltrain_core::aal5::CellFormat;
use celltrain_core::index::LinkIndex;
use celltrain_core::memory::{
    CellClass, FrameAdmission, Memory, MemoryConfig, MemoryPolicyConfig, Offer, Pauses, PolicyScope, PoolConfig,
    PoolIndex, QueueConfig, QueueIndex, Side,
};
use celltrain_core::rng::Stream;
use celltrain_core::units::{Clock, Span, Time};
use celltrain_scenario::liveness;

use super::{CAPACITY, Check, OPERATIONS, Operation, Verdict, grouped, operations};

const TRIALS: u32 = 16;
/// Number of queues in the tested memory. Each queue belongs to a different port.
const QUEUES: u32 = 4;
/// Number of cells offered to an empty pool.
const ROUNDS: u32 = 256;
/// Minimum number of the cells offered to an empty pool that a policy must admit.
const LEAST: u32 = ROUNDS / 4;
/// Format of the cells, as in the scenarios of the standard set for memories.
const CELL: CellFormat = CellFormat { size: 250, payload: 250 };
/// Time between two operations, in nanoseconds.
const STEP: u64 = 2831;
/// Time between two rounds of the check of an empty pool, in nanoseconds.
const ROUND: u64 = 1_000_000;

/// A memory under test, and a separate count of its cells.
struct Bench {
    memory: Memory,
    held: Vec<u32>,
    pushed_out: u64,
}

impl Bench {
    fn new(policy: &MemoryPolicyConfig, cells: u32, seed: u64) -> Self {
        let memory = Memory::new(&config(policy, cells), |_| Span(STEP), Clock::exact(1_000_000_000), CELL, seed);
        Self { memory, held: vec![0; QUEUES as usize], pushed_out: 0 }
    }

    /// Offers a cell. Returns whether the cell entered.
    fn offer(&mut self, queue: u32, now: Time) -> bool {
        self.memory.arrive(class(queue), now);
        loop {
            match self.memory.offer(class(queue), now) {
                Offer::Entered => break,
                Offer::Refused(_) => return false,
                Offer::PushOut(removal) => self.push_out(removal.queue.number(), now),
            }
        }
        self.held[queue as usize] += 1;
        true
    }

    fn push_out(&mut self, queue: u32, now: Time) {
        self.held[queue as usize] -= 1;
        self.pushed_out += 1;
        self.memory.push_out(class(queue), now);
    }

    /// Removes a cell from the queue, if the queue has a cell. Returns whether it had a cell.
    fn take(&mut self, queue: u32, now: Time) -> bool {
        if self.held[queue as usize] == 0 {
            return false;
        }
        self.held[queue as usize] -= 1;
        self.memory.leave(class(queue), now);
        true
    }

    /// Lets a policy that acts at fixed times act.
    fn act(&mut self, now: Time) {
        while let Some(removal) = self.memory.on_time(now) {
            self.push_out(removal.queue.number(), now);
        }
    }

    /// Compares the counters of the memory with the separate count of its cells. Returns an error if a counter differs.
    fn recounted(&self) -> Result<(), String> {
        let counts: Vec<u32> = (0..QUEUES).map(|queue| self.memory.shared(QueueIndex::new(queue))).collect();
        let (used, held) = (self.memory.pool_used(PoolIndex::new(0)), self.held.iter().sum::<u32>());
        if counts != self.held || used != held {
            return Err(format!("Q is {used} and q_i are {counts:?}, but {:?} cells wait", self.held));
        }
        Ok(())
    }
}

/// Checks every property of a memory policy in trials with random cells derived from `seed`.
pub fn conformance(policy: &MemoryPolicyConfig, seed: u64) -> Vec<Verdict> {
    let mut draws = Stream::new(seed, "conformance/memory");
    let mut broken: BTreeMap<Check, String> = BTreeMap::new();
    let empty = empty_pool(policy, seed);
    if let Err(problem) = &empty {
        broken.insert(Check::AdmitsWhenEmpty, problem.clone());
    }
    let (mut trials, mut most, mut pushed_out) = (0, 0, 0);
    for number in 0..TRIALS {
        let small = 1 + draws.below(60);
        let operations = operations(&mut draws);
        // A policy whose threshold in cells exceeds a small pool does not support this pool.
        let cells = if number % 3 == 0 { small } else { CAPACITY };
        if !policy.check(cells).is_empty() {
            continue;
        }
        trials += 1;
        let mut trial = || {
            let mut bench = Bench::new(policy, cells, seed);
            let mut answers = Vec::with_capacity(operations.len());
            for (step, &operation) in (0_u32..).zip(&operations) {
                let now = Time(u64::from(step) * STEP);
                answers.push(match operation {
                    Operation::Offer { vc, .. } => bench.offer(vc % QUEUES, now),
                    Operation::Take => bench.take(step % QUEUES, now),
                });
                bench.act(now);
                if let Err(problem) = bench.recounted() {
                    broken.entry(Check::Counts).or_insert(format!("in trial {number} {problem}"));
                }
                let used = bench.memory.used();
                most = most.max(used);
                if used > cells {
                    let problem = format!("in trial {number} {used} cells wait in a pool of {cells}");
                    broken.entry(Check::Capacity).or_insert(problem);
                }
            }
            pushed_out += bench.pushed_out;
            (answers, bench.held, bench.pushed_out)
        };
        let (first, second) = (trial(), trial());
        if first != second {
            broken.entry(Check::SameSeed).or_insert_with(|| {
                let differ = first.0.iter().zip(&second.0).position(|(first, second)| first != second);
                let place =
                    differ.map_or_else(|| "at its end".into(), |step| format!("at cell {}", grouped(step as u64)));
                format!("trial {number} runs twice with the same seed, and its decisions differ {place}")
            });
        }
    }
    let evidence = |check| match check {
        Check::Capacity => {
            let cells = u64::from(OPERATIONS) * trials;
            format!(
                "{trials} trials, {} cells arrive or leave; at most {} cells wait",
                grouped(cells),
                grouped(most.into())
            )
        }
        Check::SameSeed => format!("{trials} trials, each executed twice"),
        Check::AdmitsWhenEmpty => {
            format!("{} of {ROUNDS} cells admitted while the pool is empty", empty.clone().unwrap_or(0))
        }
        _ => format!(
            "{} recounts; {} cells pushed out",
            grouped(2 * trials * u64::from(OPERATIONS)),
            grouped(pushed_out)
        ),
    };
    let verdict = |check: Check| match broken.get(&check) {
        Some(what) => Verdict { check, holds: false, evidence: what.clone() },
        None if trials == 0 => {
            let evidence = format!("no trial was possible: the policy does not work with a pool of {CAPACITY} cells");
            Verdict { check, holds: false, evidence }
        }
        None => Verdict { check, holds: true, evidence: evidence(check) },
    };
    [Check::Capacity, Check::Counts, Check::SameSeed, Check::AdmitsWhenEmpty].map(verdict).into()
}

/// Offers single cells to an empty pool, at times spread over a run. Returns the number of admitted cells, or the
/// reason why too few cells were admitted.
fn empty_pool(policy: &MemoryPolicyConfig, seed: u64) -> Result<u32, String> {
    if let Some(problem) = liveness::memory::probe(&config(policy, CAPACITY), PoolIndex::new(0), CELL) {
        return Err(problem);
    }
    let mut bench = Bench::new(policy, CAPACITY, seed);
    let mut refused = vec![0; QUEUES as usize];
    for round in 0..ROUNDS {
        let (queue, now) = (round % QUEUES, Time(u64::from(round) * ROUND));
        if bench.offer(queue, now) {
            bench.take(queue, now);
        } else {
            refused[queue as usize] += 1;
        }
        bench.act(now);
    }
    let admitted = ROUNDS - refused.iter().sum::<u32>();
    match refused.iter().position(|&cells| cells == ROUNDS / QUEUES) {
        _ if admitted == 0 => Err("refuses every cell while the pool is empty".into()),
        Some(queue) => Err(format!("refuses every cell of queue {queue} while the pool is empty")),
        None if admitted < LEAST => {
            Err(format!("refuses {} of {ROUNDS} cells while the pool is empty", ROUNDS - admitted))
        }
        None => Ok(admitted),
    }
}

fn class(queue: u32) -> CellClass {
    CellClass { egress: Some(QueueIndex::new(queue)), ingress: None }
}

/// Returns a memory with one pool for the queues of four ports.
fn config(policy: &MemoryPolicyConfig, cells: u32) -> MemoryConfig {
    let queue = |link| QueueConfig {
        link: LinkIndex::new(link),
        priority: 0,
        pool: PoolIndex::new(0),
        reserve: 0,
        alpha: None,
        threshold: None,
        lossless: None,
    };
    let pool = PoolConfig { name: "main".into(), side: Side::Egress, cells, headroom: None, policy: policy.clone() };
    MemoryConfig {
        name: "trial".into(),
        cells,
        ports: (0..QUEUES).map(LinkIndex::new).collect(),
        pools: [pool].into_iter().collect(),
        queues: (0..QUEUES).map(queue).collect(),
        frames: FrameAdmission::Cells,
        policies_see: PolicyScope::Port,
        pauses: Pauses::Counted,
        pause_response: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formula(admit: &str) -> MemoryPolicyConfig {
        celltrain_core::memory::formula::Config { admit: admit.into(), ..Default::default() }.into()
    }

    fn broken(policy: &MemoryPolicyConfig) -> Vec<(Check, String)> {
        let verdicts = conformance(policy, 1).into_iter().filter(|verdict| !verdict.holds);
        verdicts.map(|verdict| (verdict.check, verdict.evidence)).collect()
    }

    #[test]
    fn every_shipped_memory_policy_passes_the_checks_of_the_vet_command() {
        let step = if std::env::var_os("CELLTRAIN_NIGHTLY").is_some() { 1 } else { 3 };
        for policy in MemoryPolicyConfig::samples().into_iter().step_by(step) {
            assert_eq!(broken(&policy), [], "{}", policy.name());
        }
    }

    #[test]
    fn vetting_reports_a_memory_policy_that_admits_no_cell_into_an_empty_pool_with_the_reason() {
        let all = broken(&formula("q_i < 0.1 * Q"));
        let [(Check::AdmitsWhenEmpty, reason)] = &all[..] else { panic!("only this check fails: {all:?}") };
        assert!(reason.contains("while the pool is empty: q_i < 0.1 * Q is 0 < 0"), "{reason}");
    }
}
