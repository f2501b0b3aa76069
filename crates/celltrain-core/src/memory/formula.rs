//! A memory policy written as formulas in the scenario: which cells may enter the shared part of a pool, which waiting
//! cells make room for them, and how the policy's state changes.
//!
//! Source: the scenario. `celltrain-formula` defines the language, and `docs/design/formulas.md` explains how it runs.
//! Differences from the source: none known.

use std::collections::BTreeMap;

use celltrain_formula::rules::{Constant, Host, Name, On, Rules, Start, Texts, Updates, update};
use celltrain_formula::{Clause, Evaluator, Kind, Limit, Meaning, Program, Registers, Unit, Word};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use typed_index_collections::TiVec;

use super::{Configure, Hooks, MemoryPolicy, PoolInfo, PoolQueue, PushOut, QueueEnd, Verdict, View};
use crate::error::Fault;

/// A policy of your own: a condition for cells to enter, constants, state, and perhaps a rule for pushing out.
///
/// Source: the scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "MemoryFormula")]
pub struct Config {
    /// A cell may enter if this condition holds and the pool has room: `q_i + 1 <= alpha * (B - Q)`.
    #[schemars(extend("x-expect" = "a formula, such as \"q_i + 1 <= B - Q\""))]
    pub admit: String,
    /// Constants by name: each one is a number or a formula of constants.
    #[serde(default)]
    pub constants: BTreeMap<String, Start>,
    /// State variables of the pool, by name, each with its initial value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub state: BTreeMap<String, Start>,
    /// State variables of each queue, by name, each with its initial value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub queue_state: BTreeMap<String, Start>,
    /// New values of state when a cell arrives, before the decision.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub on_arrival: BTreeMap<String, String>,
    /// New values of state when a cell has left the shared part, sent or pushed out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub on_departure: BTreeMap<String, String>,
    /// If `admit` holds but the pool is full, the queue in which this number is largest and above 0 loses a cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-expect" = "a formula, such as \"q_i + arriving\""))]
    pub push_out: Option<String>,
    /// The cell that the queue loses: the one that arrived last, or the one that would be sent next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push_out_end: Option<QueueEnd>,
}

impl Default for Config {
    /// Returns Dynamic Threshold with an alpha of 1.
    fn default() -> Self {
        Self {
            admit: "q_i + 1 <= B - Q".into(),
            constants: BTreeMap::new(),
            state: BTreeMap::new(),
            queue_state: BTreeMap::new(),
            on_arrival: BTreeMap::new(),
            on_departure: BTreeMap::new(),
            push_out: None,
            push_out_end: None,
        }
    }
}

const Q: u8 = 0;
const OWN: u8 = 1;
const ACTIVE: u8 = 2;
const RANK: u8 = 3;
const PRIORITY: u8 = 4;
const ARRIVING: u8 = 5;
const NOW: u8 = 6;
const FIRST_OWN: u8 = 7;

/// All names that a pool provides to formulas, with their registers. Values without a register never change.
pub const NAMES: &[(Name, Option<u8>)] = &[
    (Name::number("B", Unit::CELLS, "size of the pool's shared part in cells"), None),
    (Name::number("N", Unit::NONE, "number of queues in the pool"), None),
    (Name::number("Q", Unit::CELLS, "occupied cells of the shared part, excluding the arriving cell"), Some(Q)),
    (Name::number("q_i", Unit::CELLS, "cells that the queue holds in the shared part"), Some(OWN)),
    (Name::number("n", Unit::NONE, "number of queues with cells in the shared part"), Some(ACTIVE)),
    (Name::number("rank", Unit::NONE, "rank of the queue by length; the longest has rank 1"), Some(RANK)),
    (Name::number("priority", Unit::NONE, "the priority of the queue"), Some(PRIORITY)),
    (
        Name::number("arriving", Unit::CELLS, "number of cells now arriving for the queue; 0 for other queues"),
        Some(ARRIVING),
    ),
    (Name::number("now", Unit::SECONDS, "seconds since the start of the run"), Some(NOW)),
    (
        Name::number("cell_size", BYTES_PER_CELL, "size of a cell in bytes; B * cell_size is the pool's size in bytes"),
        None,
    ),
];

const BYTES_PER_CELL: Unit = Unit { cells: -1, bytes: 1, ..Unit::NONE };

/// The properties of the pool; `None` if unknown before a run.
struct AtPool {
    cells: u32,
    queues: Option<usize>,
    cell_size: Option<u64>,
}

impl AtPool {
    fn of(pool: &PoolInfo<'_>) -> Self {
        Self { cells: pool.cells, queues: Some(pool.queues.len()), cell_size: Some(pool.cell.size) }
    }
}

impl Host for AtPool {
    fn words(&self, on: On) -> Vec<Word> {
        let meaning = |name: &str, register: Option<u8>| match (name, register) {
            ("B", _) => Meaning::Constant(self.cells.into()),
            ("N", _) => Meaning::Constant(self.queues.map_or(1.0, |queues| queues as f64)),
            ("cell_size", _) => Meaning::Constant(self.cell_size.map_or(1.0, |bytes| bytes as f64)),
            ("arriving", _) if on == On::Event("on_departure") => {
                Meaning::NotHere("this value counts arriving cells, but this formula is evaluated when a cell leaves")
            }
            (_, Some(register)) if on != On::Start => Meaning::Register(register),
            _ => Meaning::NotHere(
                "this value changes during the run, but this formula is evaluated only once, at the start",
            ),
        };
        let word = |(name, register): &(Name, Option<u8>)| Word {
            name: name.name.into(),
            kind: name.kind,
            meaning: meaning(name.name, *register),
        };
        NAMES.iter().map(word).collect()
    }

    fn is_open(&self, name: &str) -> bool {
        match name {
            "N" => self.queues.is_none(),
            "cell_size" => self.cell_size.is_none(),
            _ => false,
        }
    }

    fn no_random(&self, _on: On) -> Option<&'static str> {
        Some("memory policies do not support random numbers")
    }

    fn taken(&self) -> [&'static str; 2] {
        ["the pool's", "docs/models/memory_formula.md"]
    }

    fn targets(&self) -> &'static str {
        "the name of a variable in state or queue_state"
    }

    fn state_by_vc(&self) -> &'static str {
        "queue_state"
    }
}

impl Config {
    fn compile(&self, pool: &AtPool) -> Result<Rules, Vec<Fault>> {
        self.with_texts(pool, None, |texts| texts.compile(pool))
    }

    /// Compiles the formulas, including the formula of a queue's threshold if `admit` compares the queue with one.
    fn compile_limit(&self, pool: &AtPool) -> Option<(Rules, Limit)> {
        let limit = Limit::of(&self.admit, "q_i", "arriving")?;
        let rules = self.with_texts(pool, Some(&limit.text), |texts| texts.compile(pool)).ok()?;
        Some((rules, limit))
    }

    /// Compiles the formulas and passes them to `read`.
    fn with_texts<T>(&self, pool: &AtPool, threshold: Option<&str>, read: impl FnOnce(Texts<'_>) -> T) -> T {
        let constants: BTreeMap<String, Constant> =
            self.constants.iter().map(|(name, start)| (name.clone(), start.clone().into())).collect();
        let admit = ("admit", self.admit.as_str(), Kind::Truth);
        let push_out = self.push_out.as_ref().map(|text| ("push_out", text.as_str(), Kind::Number(None)));
        let threshold = threshold.map(|text| ("threshold", text, Kind::Number(None)));
        let questions: Vec<(&'static str, &str, Kind)> = [admit].into_iter().chain(push_out).chain(threshold).collect();
        // Queues have numbers instead of names, so no setting refers to a queue by name.
        let queues = vec![""; pool.queues.unwrap_or(0)];
        read(Texts {
            constants: &constants,
            state: &self.state,
            vc_state: &self.queue_state,
            questions: &questions,
            events: &[("on_arrival", &self.on_arrival), ("on_departure", &self.on_departure)],
            vcs: Some(&queues),
            first: FIRST_OWN,
        })
    }

    /// Lists the clauses of `admit` that refuse a cell of `queue` at the start of a run. The list is empty if the
    /// condition holds.
    pub fn why_refused(&self, pool: &PoolInfo<'_>, view: &View<'_>, queue: PoolQueue) -> Vec<Clause> {
        let at_pool = AtPool::of(pool);
        let found = self.with_texts(&at_pool, None, |texts| texts.question(&at_pool, "admit"));
        let (Ok((tree, vocabulary)), Ok(rules)) = (found, self.compile(&at_pool)) else { return Vec::new() };
        let mut policy = Formula::new(rules, self, None, pool);
        policy.arrived(view, queue, 1);
        policy.show(view, queue, 1);
        Evaluator::new(&vocabulary, &policy.registers, &mut || 0.5).why_not(&tree, &self.admit)
    }
}

impl Configure for Config {
    type Policy = Formula;

    fn pushes_out(&self) -> bool {
        self.push_out.is_some()
    }

    fn check(&self, cells: u32) -> Vec<Fault> {
        let mut faults = self.compile(&AtPool { cells, queues: None, cell_size: None }).err().unwrap_or_default();
        if self.push_out_end.is_some() && self.push_out.is_none() {
            let problem = "chooses the cell that is pushed out, but there is no push_out, such as \"q_i + arriving\"";
            faults.push(Fault::new("push_out_end", "", problem));
        }
        faults
    }

    fn build(&self, pool: &PoolInfo<'_>) -> Formula {
        let at_pool = AtPool::of(pool);
        if let Some((rules, limit)) = self.compile_limit(&at_pool) {
            return Formula::new(rules, self, Some(limit), pool);
        }
        let compiled = self.compile(&at_pool).or_else(|faults| {
            debug_assert!(false, "formulas of a checked scenario can be read: {faults:?}");
            Config { admit: "true".into(), ..Config::default() }.compile(&at_pool)
        });
        Formula::new(compiled.expect("the constant condition is a valid formula"), self, None, pool)
    }
}

/// The policy with its compiled formulas and its state.
#[derive(Debug)]
pub struct Formula {
    admit: Program,
    push_out: Option<Program>,
    /// The formula of a queue's threshold, if `admit` compares the queue with a formula.
    threshold: Option<(Program, Limit)>,
    end: QueueEnd,
    on_arrival: Updates,
    on_departure: Updates,
    /// Registers with values of the pool, constants and state. The state of a queue is copied to them for each
    /// evaluation.
    registers: Box<Registers>,
    queues: Queues,
    /// Number of results that were replaced because they were NaN or infinite.
    replaced: u64,
}

/// The values of queues that formulas read.
#[derive(Debug)]
struct Queues {
    /// State variables of every queue, queue after queue.
    state: Vec<f64>,
    /// Number of state variables of a queue.
    per_queue: usize,
    priorities: TiVec<PoolQueue, u8>,
    units_per_second: f64,
    /// True if a formula uses n or rank, which depend on every queue.
    reads_active: bool,
    reads_rank: bool,
}

impl Queues {
    /// Writes the values of a queue, at which `arriving` cells arrive, into the registers.
    fn write(&self, registers: &mut Registers, view: &View<'_>, queue: PoolQueue, arriving: u32) {
        let mut set = |register: u8, value: f64| registers[usize::from(register)] = value;
        set(Q, view.used.into());
        set(OWN, view.queues[queue].into());
        if self.reads_active {
            set(ACTIVE, view.active().into());
        }
        if self.reads_rank {
            set(RANK, view.rank(queue).into());
        }
        set(PRIORITY, self.priorities[queue].into());
        set(ARRIVING, arriving.into());
        set(NOW, view.now.0 as f64 / self.units_per_second);
        if self.per_queue > 0 {
            registers[usize::from(FIRST_OWN)..][..self.per_queue].copy_from_slice(&self.state[self.own(queue)]);
        }
    }

    /// Stores the state of a queue that the registers contain.
    fn read(&mut self, registers: &Registers, queue: PoolQueue) {
        if self.per_queue > 0 {
            let own = self.own(queue);
            self.state[own].copy_from_slice(&registers[usize::from(FIRST_OWN)..][..self.per_queue]);
        }
    }

    #[expect(clippy::arithmetic_side_effects, reason = "no overflow: this is an index into the state of all queues")]
    fn own(&self, queue: PoolQueue) -> std::ops::Range<usize> {
        let from = queue.number() as usize * self.per_queue;
        from..from + self.per_queue
    }
}

impl Formula {
    fn new(rules: Rules, config: &Config, limit: Option<Limit>, pool: &PoolInfo<'_>) -> Self {
        let Rules { answers, updates, registers, by_vc: state, per_vc: per_queue, replaced, .. } = rules;
        let mut answers = answers.into_iter();
        let admit = answers.next().expect("the program for the decision was compiled");
        let push_out = if config.push_out.is_some() { answers.next() } else { None };
        let threshold = answers.next().zip(limit);
        let [on_arrival, on_departure] =
            <[Updates; 2]>::try_from(updates).expect("the array has the updates of every event");
        let reads = |register: u8| {
            let of_events = on_arrival.iter().chain(&on_departure).map(|(_, program)| program);
            [&admit].into_iter().chain(&push_out).chain(of_events).any(|program| program.reads(register))
        };
        let (reads_active, reads_rank) = (reads(ACTIVE), reads(RANK));
        Self {
            admit,
            push_out,
            threshold,
            end: config.push_out_end.unwrap_or(QueueEnd::Tail),
            on_arrival,
            on_departure,
            registers,
            queues: Queues {
                state,
                per_queue,
                priorities: pool.queues.iter().map(|queue| queue.priority).collect(),
                units_per_second: pool.clock.units_per_second as f64,
                reads_active,
                reads_rank,
            },
            replaced,
        }
    }

    /// Writes the values of a queue, at which `arriving` cells arrive, into the registers.
    fn show(&mut self, view: &View<'_>, queue: PoolQueue, arriving: u32) {
        self.queues.write(&mut self.registers, view, queue, arriving);
    }

    /// Stores the state of a queue that the registers contain.
    fn store(&mut self, queue: PoolQueue) {
        self.queues.read(&self.registers, queue);
    }

    /// Chooses a waiting cell that makes room for cells of `queue`. The arriving cells would be the last of their
    /// queue. So if the queue that loses its last cell is their own, they are refused.
    fn victim(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) -> Verdict {
        let Some(push_out) = self.push_out.take() else { return Verdict::Refuse };
        let may_be_arriving = self.end == QueueEnd::Tail;
        let mut chosen: Option<(f64, PoolQueue)> = None;
        for other in view.queues.keys() {
            let is_own = other == queue;
            if view.queues[other] == 0 && !(is_own && may_be_arriving) {
                continue;
            }
            self.show(view, other, if is_own { cells } else { 0 });
            let value = push_out.run(&mut self.registers, &mut || 0.0, &mut self.replaced);
            if value > 0.0 && chosen.is_none_or(|(most, _)| value > most) {
                chosen = Some((value, other));
            }
        }
        self.push_out = Some(push_out);
        match chosen {
            Some((_, victim)) if victim != queue || !may_be_arriving => {
                Verdict::PushOut(PushOut { queue: victim, end: self.end })
            }
            _ => Verdict::Refuse,
        }
    }
}

impl MemoryPolicy for Formula {
    fn admit(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) -> Verdict {
        let fits = view.fits(cells);
        if !fits && self.push_out.is_none() {
            return Verdict::Refuse;
        }
        self.show(view, queue, cells);
        if self.admit.run(&mut self.registers, &mut || 0.0, &mut self.replaced) == 0.0 {
            return Verdict::Refuse;
        }
        if fits { Verdict::Admit } else { self.victim(view, queue, cells) }
    }

    fn threshold(&self, view: &View<'_>, queue: PoolQueue) -> Option<f64> {
        let (formula, limit) = self.threshold.as_ref()?;
        let mut registers = *self.registers;
        self.queues.write(&mut registers, view, queue, 0);
        Some(limit.largest(formula.run(&mut registers, &mut || 0.0, &mut 0)))
    }

    fn arrived(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) {
        self.show(view, queue, cells);
        update(&self.on_arrival, &mut self.registers, &mut || 0.0, &mut self.replaced);
        self.store(queue);
    }

    fn left(&mut self, view: &View<'_>, queue: PoolQueue, _cells: u32) {
        self.show(view, queue, 0);
        update(&self.on_departure, &mut self.registers, &mut || 0.0, &mut self.replaced);
        self.store(queue);
    }

    fn hooks(&self) -> Hooks {
        Hooks { arrivals: !self.on_arrival.is_empty(), cells: !self.on_departure.is_empty(), clock: false }
    }

    fn replaced_results(&self) -> u64 {
        self.replaced
    }

    fn rule(&self) -> &'static str {
        if self.push_out.is_some() {
            "the condition admit does not hold, or the pool is full and push_out chooses the arriving cell"
        } else {
            "the condition admit does not hold"
        }
    }
}

#[cfg(test)]
mod tests;
