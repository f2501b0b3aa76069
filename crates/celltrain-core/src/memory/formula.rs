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
    /// The default is Dynamic Threshold with an alpha of 1.
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
    (Name::number("Q", Unit::CELLS, "occupied cells of the shared part, without the arriving one"), Some(Q)),
    (Name::number("q_i", Unit::CELLS, "cells of the shared part in the queue"), Some(OWN)),
    (Name::number("n", Unit::NONE, "number of queues with cells in the shared part"), Some(ACTIVE)),
    (Name::number("rank", Unit::NONE, "1 plus the number of queues longer than the queue"), Some(RANK)),
    (Name::number("priority", Unit::NONE, "the priority of the queue"), Some(PRIORITY)),
    (Name::number("arriving", Unit::CELLS, "arriving cells of the queue, 0 for other queues"), Some(ARRIVING)),
    (Name::number("now", Unit::SECONDS, "seconds since the start of the run"), Some(NOW)),
    (Name::number("cell_size", BYTES_PER_CELL, "bytes of a cell, so B * cell_size is the pool in bytes"), None),
];

const BYTES_PER_CELL: Unit = Unit { cells: -1, bytes: 1, ..Unit::NONE };

/// The properties of the pool. Those that are not known before a run are `None`.
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

    /// Compiles the formulas, including that of a queue's threshold if `admit` is a comparison with it.
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
        // Queues have numbers, and no setting refers to one by name.
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
    /// The formula of a queue's threshold, if `admit` compares the queue with one.
    threshold: Option<(Program, Limit)>,
    end: QueueEnd,
    on_arrival: Updates,
    on_departure: Updates,
    /// Values of the pool, constants and state. State of a queue is copied here for each evaluation.
    registers: Box<Registers>,
    queues: Queues,
    /// Number of results that were replaced because they were NaN or infinite.
    replaced: u64,
}

/// The values of queues that formulas read.
#[derive(Debug)]
struct Queues {
    /// State of every queue, one after the other.
    state: Vec<f64>,
    /// Number of state variables of a queue.
    per_queue: usize,
    priorities: TiVec<PoolQueue, u8>,
    units_per_second: f64,
    /// True if a formula uses n or rank, which need a look at every queue.
    reads_active: bool,
    reads_rank: bool,
}

impl Queues {
    /// Writes the values of a queue, of which `arriving` cells arrive, into the registers.
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

    /// Writes the values of a queue, of which `arriving` cells arrive, into the registers.
    fn show(&mut self, view: &View<'_>, queue: PoolQueue, arriving: u32) {
        self.queues.write(&mut self.registers, view, queue, arriving);
    }

    /// Stores the state of a queue that the registers contain.
    fn store(&mut self, queue: PoolQueue) {
        self.queues.read(&self.registers, queue);
    }

    /// Chooses a waiting cell that makes room for cells of `queue`. The cells that arrive are the last of their queue, so
    /// they are refused if their queue is the one that loses its last cell.
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
            "admit of the formula does not hold, or the pool is full and push_out chooses the arriving cell"
        } else {
            "admit of the formula does not hold"
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::memory::tests::{Pool, fill};
    use crate::memory::{MemoryPolicyConfig, dynamic_threshold, harmonic, longest_queue_drop, static_thresholds};
    use crate::units::Time;

    fn formula(admit: &str, constants: &[(&str, Start)]) -> Config {
        let constants = constants.iter().map(|(name, start)| ((*name).to_string(), start.clone())).collect();
        Config { admit: admit.into(), constants, ..Config::default() }
    }

    fn table<T: Clone>(entries: &[(&str, T)]) -> BTreeMap<String, T> {
        entries.iter().map(|(name, value)| ((*name).to_string(), value.clone())).collect()
    }

    /// Offers cells to two pools in the same order, and asserts that both admit the same cells.
    fn assert_alike(formula: Config, native: MemoryPolicyConfig) {
        assert_eq!(formula.check(97), []);
        let [mut ours, mut theirs] = [formula.into(), native].map(|config| Pool::new(&config, 97, 4));
        for step in 0..4000_u32 {
            // The queues grow at different speeds, with departures in between.
            let queue = step * 7 % 13 % 4;
            if step % 5 < 3 {
                assert_eq!(ours.offer(queue), theirs.offer(queue), "step {step}");
            } else if ours.held()[queue as usize] > 0 {
                ours.leave(queue);
                theirs.leave(queue);
            }
            assert_eq!(ours.held(), theirs.held());
        }
        assert_eq!(fill(&mut ours, &[0, 1, 2, 3]), fill(&mut theirs, &[0, 1, 2, 3]));
    }

    #[test]
    fn published_memory_policies_give_the_same_decisions_when_written_as_formulas() {
        let alpha = [("alpha", Start::Number(2.0))];
        let dynamic = dynamic_threshold::Config { alpha: 2.0, ..Default::default() };
        assert_alike(formula("q_i + 1 <= alpha * (B - Q)", &alpha), dynamic.into());
        assert_alike(formula("q_i + 1 <= floor(B / N)", &[]), static_thresholds::Config::default().into());
        let h_n = [("H", Start::Formula("1 + 1 / 2 + 1 / 3 + 1 / 4".into()))];
        assert_alike(formula("q_i + 1 <= B / (rank * H)", &h_n), harmonic::Config {}.into());
        let longest = Config { push_out: Some("q_i + arriving".into()), ..formula("true", &[]) };
        assert!(MemoryPolicyConfig::from(longest.clone()).pushes_out());
        assert_alike(longest, longest_queue_drop::Config::default().into());
    }

    #[test]
    fn a_memory_formula_that_compares_the_queue_with_an_expression_has_the_threshold_of_the_native_policy() {
        let alpha = [("alpha", Start::Number(2.0))];
        let dynamic = dynamic_threshold::Config { alpha: 2.0, ..Default::default() };
        let h_n = [("H", Start::Formula("1 + 1 / 2 + 1 / 3 + 1 / 4".into()))];
        for (formula, native) in [
            (formula("q_i + 1 <= alpha * (B - Q)", &alpha), dynamic.clone().into()),
            (formula("let free = B - Q; alpha * free >= q_i + arriving", &alpha), dynamic.into()),
            (formula("q_i < floor(B / N)", &[]), static_thresholds::Config::default().into()),
            (formula("q_i + 1 <= B / (rank * H)", &h_n), harmonic::Config {}.into()),
        ] {
            let [mut ours, mut theirs]: [Pool; 2] =
                [formula.into(), native].map(|config: MemoryPolicyConfig| Pool::new(&config, 97, 4));
            for step in 0..200_u32 {
                let queue = step * 7 % 13 % 4;
                assert_eq!(ours.offer(queue), theirs.offer(queue), "step {step}");
                for queue in 0..4 {
                    let [own, native] = [&mut ours, &mut theirs].map(|pool| pool.threshold(queue));
                    assert!((own - native).abs() <= 1e-12 * native, "step {step}: {own}, {native}");
                }
            }
        }
    }

    #[test]
    fn the_threshold_of_a_memory_formula_follows_the_queue_state_and_a_condition_without_comparison_has_no_threshold() {
        let config = Config {
            queue_state: table(&[("seen", Start::Number(0.0))]),
            on_arrival: table(&[("seen", "seen + 1".to_string())]),
            ..formula("q_i < 10 cells * seen", &[])
        };
        let mut pool = Pool::new(&config.into(), 97, 2);
        (0..3).for_each(|_| assert!(pool.offer(1)));
        assert_eq!([0, 1].map(|queue| pool.threshold(queue)), [0.0, 30.0]);
        for other in ["true", "q_i < 10 or Q < 20", "Q < 10"] {
            assert!(!Pool::new(&formula(other, &[]).into(), 97, 2).has_threshold(0), "{other}");
        }
    }

    #[test]
    fn the_page_about_memory_formulas_lists_every_name_with_its_unit() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/models/memory_formula.md");
        let page = std::fs::read_to_string(page).unwrap();
        let table = page.split("## Symbols").nth(1).and_then(|text| text.split("\n\n").nth(1)).unwrap();
        let listed: BTreeSet<[String; 2]> = table
            .lines()
            .skip(2)
            .map(|row| {
                let cells: Vec<&str> = row.split('|').map(str::trim).collect();
                [cells[1].into(), cells[2].into()]
            })
            .collect();
        let provided = |(name, _): &(Name, _)| {
            let unit = match name.kind {
                Kind::Number(Some(unit)) if unit != Unit::NONE => unit.to_string(),
                _ => String::new(),
            };
            [format!("`{}`", name.name), unit]
        };
        assert_eq!(listed, NAMES.iter().map(provided).collect());
    }

    #[test]
    fn memory_formulas_convert_bytes_to_cells_with_the_cell_size() {
        // 53 bytes.
        let mut pool = Pool::new(&formula("(q_i + 1) * cell_size <= 530 bytes", &[]).into(), 97, 2);
        assert_eq!(fill(&mut pool, &[0, 1]), [10, 10]);
        let limit = [("limit", Start::Formula("530 bytes / cell_size".into()))];
        assert_eq!(fill(&mut Pool::new(&formula("q_i + 1 <= limit", &limit).into(), 97, 1), &[0]), [10]);
        assert_eq!(formula("q_i + 1 <= 530 bytes / cell_size", &[]).check(97), []);
        let faults = formula("q_i + 1 <= cell_size", &[]).check(97);
        assert!(faults[0].problem.contains("bytes/cells"), "{faults:?}");
    }

    #[test]
    fn a_memory_formula_keeps_state_of_the_pool_and_of_each_queue_and_knows_the_time() {
        let config = Config {
            state: table(&[("sent", Start::Number(0.0))]),
            queue_state: table(&[("since", Start::Number(-1.0))]),
            on_arrival: table(&[("since", "if since < 0 then now else since".to_string())]),
            on_departure: table(&[("sent", "sent + 1".to_string()), ("since", "-1".to_string())]),
            ..formula("q_i < 3 or sent > 1 or now - since >= 20 us", &[])
        };
        assert_eq!(config.check(97), []);
        // A unit of the pool's clock is a microsecond.
        let mut pool = Pool::new(&config.into(), 97, 3);
        assert_eq!(fill(&mut pool, &[0]), [3, 0, 0]);
        pool.act_at(Time(10));
        assert_eq!(fill(&mut pool, &[1]), [3, 3, 0]);
        pool.act_at(Time(20));
        assert!(pool.offer(0), "20 us after its first arrival");
        assert!(!pool.offer(1), "10 us after its first arrival");
        pool.leave(0);
        assert!(!pool.offer(0) || pool.held()[0] < 5, "its clock starts again");
        pool.leave(0);
        assert!(pool.offer(1), "two cells have left the pool");
    }

    #[test]
    fn results_of_a_memory_formula_that_are_not_numbers_are_replaced_and_counted() {
        let counted = |admit: &str| {
            let mut pool = Pool::new(&formula(admit, &[]).into(), 97, 2);
            assert!(pool.offer(0));
            assert!(pool.offer(0));
            pool.replaced_results()
        };
        assert_eq!(counted("q_i + 1 <= B * (B - Q) / Q"), 1, "the pool is empty only for the first cell");
        assert_eq!(counted("q_i + 1 <= B * (B - Q) / max(Q, 1)"), 0);
    }

    #[test]
    fn a_full_pool_loses_a_cell_of_the_queue_whose_push_out_formula_gives_the_largest_positive_number() {
        let pushing = |push_out: &str, end| {
            let config = Config { push_out: Some(push_out.into()), push_out_end: end, ..formula("q_i < 9", &[]) };
            let mut pool = Pool::new(&config.into(), 12, 3);
            assert_eq!(fill(&mut pool, &[0]), [9, 0, 0]);
            assert_eq!((0..3).filter(|_| pool.offer(1)).count(), 3);
            let admitted = pool.offer(2);
            (admitted, pool.held())
        };
        assert_eq!(pushing("q_i", None), (true, vec![8, 3, 1]));
        assert_eq!(
            pushing("10 cells - q_i", None),
            (false, vec![9, 3, 0]),
            "the arriving cell is the last of its queue"
        );
        assert_eq!(pushing("10 cells - q_i", Some(QueueEnd::Head)), (true, vec![9, 2, 1]), "queue 2 is empty");
        assert_eq!(pushing("1", None), (true, vec![8, 3, 1]), "the first of equal queues");
        assert_eq!(pushing("0", None), (false, vec![9, 3, 0]));
    }

    #[test]
    fn an_error_in_a_memory_policy_formula_names_its_place() {
        let told = |config: Config, key: &str, words: &str| {
            let faults = config.check(100);
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert_eq!(faults[0].key, key, "{faults:?}");
            assert!(faults[0].problem.contains(words), "{faults:?}");
        };
        told(formula("q + 1 <= B", &[]), "admit", "does not know q");
        told(formula("q_i + 1", &[]), "admit", "admit must be a condition");
        told(formula("random() < 0.5", &[]), "admit", "memory policies do not support random numbers");
        let changing = "this value changes during the run";
        told(formula("q_i < R", &[("R", Start::Formula("Q / 2".into()))]), "constants.R", changing);
        let taken = "is already one of the pool's variables";
        told(formula("q_i < n", &[("n", Start::Number(1.0))]), "constants.n", taken);
        let config = || formula("true", &[]);
        let twice = table(&[("a", Start::Number(1.0))]);
        let twice = Config { state: twice.clone(), queue_state: twice, ..config() };
        told(twice, "queue_state.a", "is the name of another constant or state");
        let unknown = Config { on_arrival: table(&[("a", "1".to_string())]), ..config() };
        told(unknown, "on_arrival.a", "it must be the name of a variable in state or queue_state");
        let leaving = Config {
            state: table(&[("a", Start::Number(1.0))]),
            on_departure: table(&[("a", "arriving".to_string())]),
            ..config()
        };
        told(leaving, "on_departure.a", "this value counts arriving cells");
        told(Config { push_out: Some("q_i > 1".into()), ..config() }, "push_out", "push_out must be a number");
        told(Config { push_out_end: Some(QueueEnd::Head), ..config() }, "push_out_end", "there is no push_out");
    }
}
