//! A memory policy written as a formula in the scenario, which decides which cells may enter the shared part of a pool.
//!
//! Source: the scenario. `celltrain-formula` defines the language, and `docs/design/formulas.md` explains how it runs.
//! Differences from the source: none known.

use std::collections::BTreeMap;

use celltrain_formula::rules::{Constant, Host, Name, On, Start, Texts};
use celltrain_formula::{Clause, Evaluator, Kind, Meaning, Program, Registers, Unit, Word};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use typed_index_collections::TiVec;

use super::{Configure, Hooks, MemoryPolicy, PoolInfo, PoolQueue, Verdict, View};
use crate::error::Fault;

/// A policy of your own, written as a condition for cells to enter.
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
}

impl Default for Config {
    /// The default is Dynamic Threshold with an alpha of 1.
    fn default() -> Self {
        Self { admit: "q_i + 1 <= B - Q".into(), constants: BTreeMap::new() }
    }
}

/// A policy with its compiled formula.
#[derive(Debug)]
pub struct Formula {
    admit: Program,
    registers: Box<Registers>,
    priorities: TiVec<PoolQueue, u8>,
    /// Number of formula results replaced because they were NaN or infinite.
    replaced: u64,
}

const Q: u8 = 0;
const OWN: u8 = 1;
const ACTIVE: u8 = 2;
const RANK: u8 = 3;
const PRIORITY: u8 = 4;
const FIRST_OWN: u8 = 5;

/// All names that a pool provides to formulas, with their registers. Values without a register never change.
pub const NAMES: &[(Name, Option<u8>)] = &[
    (Name::number("B", Unit::CELLS, "size of the pool's shared part in cells"), None),
    (Name::number("N", Unit::NONE, "number of queues in the pool"), None),
    (Name::number("Q", Unit::CELLS, "occupied cells of the shared part, without the arriving one"), Some(Q)),
    (Name::number("q_i", Unit::CELLS, "cells of the shared part in the arriving cell's queue"), Some(OWN)),
    (Name::number("n", Unit::NONE, "number of queues with cells in the shared part"), Some(ACTIVE)),
    (Name::number("rank", Unit::NONE, "1 plus the number of queues longer than the arriving cell's"), Some(RANK)),
    (Name::number("priority", Unit::NONE, "the priority of the arriving cell"), Some(PRIORITY)),
];

/// The properties of the pool, if its size is known.
struct AtPool {
    cells: u32,
    queues: Option<usize>,
}

impl Host for AtPool {
    fn words(&self, on: On) -> Vec<Word> {
        let meaning = |name: &str, register: Option<u8>| match (name, register) {
            ("B", _) => Meaning::Constant(self.cells.into()),
            ("N", _) => Meaning::Constant(self.queues.map_or(1.0, |queues| queues as f64)),
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
        name == "N" && self.queues.is_none()
    }

    fn no_random(&self, _on: On) -> Option<&'static str> {
        Some("memory policies do not support random numbers")
    }

    fn taken(&self) -> [&'static str; 2] {
        ["the pool's", "docs/models/memory_formula.md"]
    }

    fn targets(&self) -> &'static str {
        "nothing"
    }
}

impl Config {
    fn compile(&self, pool: &AtPool) -> Result<(Program, Box<Registers>), Vec<Fault>> {
        let mut rules = self.with_texts(|texts| texts.compile(pool))?;
        Ok((rules.answers.remove(0), rules.registers))
    }

    /// Compiles the formulas and passes the compiled formulas to `read`.
    fn with_texts<T>(&self, read: impl FnOnce(Texts<'_>) -> T) -> T {
        let constants: BTreeMap<String, Constant> =
            self.constants.iter().map(|(name, start)| (name.clone(), start.clone().into())).collect();
        let state = BTreeMap::new();
        read(Texts {
            constants: &constants,
            state: &state,
            vc_state: &state,
            questions: &[("admit", &self.admit, Kind::Truth)],
            events: &[],
            vcs: Some(&[]),
            first: FIRST_OWN,
        })
    }

    /// Lists the clauses of `admit` that refuse a cell of `queue`. The list is empty if the condition holds.
    pub fn why_refused(&self, pool: &PoolInfo<'_>, view: &View<'_>, queue: PoolQueue) -> Vec<Clause> {
        let at_pool = AtPool { cells: pool.cells, queues: Some(pool.queues.len()) };
        let Ok((_, mut registers)) = self.compile(&at_pool) else { return Vec::new() };
        let Ok((tree, vocabulary)) = self.with_texts(|texts| texts.question(&at_pool, "admit")) else {
            return Vec::new();
        };
        set_registers(&mut registers, view, queue, pool.queues[queue].priority);
        Evaluator::new(&vocabulary, &registers, &mut || 0.5).why_not(&tree, &self.admit)
    }
}

/// Writes the values needed for a decision about `queue` into their registers.
fn set_registers(registers: &mut Registers, view: &View<'_>, queue: PoolQueue, priority: u8) {
    for (register, value) in [
        (Q, view.used),
        (OWN, view.queues[queue]),
        (ACTIVE, view.active()),
        (RANK, view.rank(queue)),
        (PRIORITY, priority.into()),
    ] {
        registers[usize::from(register)] = value.into();
    }
}

impl Configure for Config {
    type Policy = Formula;

    fn check(&self, cells: u32) -> Vec<Fault> {
        self.compile(&AtPool { cells, queues: None }).err().unwrap_or_default()
    }

    fn build(&self, pool: &PoolInfo<'_>) -> Formula {
        let at_pool = AtPool { cells: pool.cells, queues: Some(pool.queues.len()) };
        let compiled = self.compile(&at_pool).or_else(|faults| {
            debug_assert!(false, "formulas of a checked scenario can be read: {faults:?}");
            Config { admit: "true".into(), ..Config::default() }.compile(&at_pool)
        });
        let (admit, registers) = compiled.expect("the constant condition is a valid formula");
        let priorities = pool.queues.iter().map(|queue| queue.priority).collect();
        Formula { admit, registers, priorities, replaced: 0 }
    }
}

impl MemoryPolicy for Formula {
    fn admit(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) -> Verdict {
        if !view.fits(cells) {
            return Verdict::Refuse;
        }
        set_registers(&mut self.registers, view, queue, self.priorities[queue]);
        let holds = self.admit.run(&mut self.registers, &mut || 0.0, &mut self.replaced);
        if holds == 0.0 { Verdict::Refuse } else { Verdict::Admit }
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE
    }

    fn rule(&self) -> &'static str {
        "admit of the formula does not hold"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::{Pool, fill};
    use crate::memory::{MemoryPolicyConfig, dynamic_threshold, harmonic, static_thresholds};

    fn formula(admit: &str, constants: &[(&str, Start)]) -> Config {
        let constants = constants.iter().map(|(name, start)| ((*name).to_string(), start.clone())).collect();
        Config { admit: admit.into(), constants }
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
    }

    #[test]
    fn a_message_about_an_error_in_a_memory_policy_formula_shows_the_position_of_the_error() {
        let told = |config: Config, words: &str| {
            let faults = config.check(100);
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert!(faults[0].problem.contains(words), "{faults:?}");
        };
        told(formula("q + 1 <= B", &[]), "does not know q");
        told(formula("q_i + 1", &[]), "admit must be a condition");
        told(formula("random() < 0.5", &[]), "memory policies do not support random numbers");
        told(formula("q_i < R", &[("R", Start::Formula("Q / 2".into()))]), "this value changes during the run");
        told(formula("q_i < n", &[("n", Start::Number(1.0))]), "is already one of the pool's variables");
    }
}
