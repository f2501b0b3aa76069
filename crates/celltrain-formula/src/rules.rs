//! Rules made of several formulas: constants, state, and updates of the state. They are read, checked and compiled
//! together.
//!
//! A [`Host`], such as a policy, a congestion control or a scheduler, provides the names and evaluates the formulas.

mod reading;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Kind, PerVc, Program, Registers, Unit, Word, parse};

/// A constant: a number, a formula, or a table of numbers keyed by VC name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "FormulaConstant", extend("x-expect" = "a number, a formula, or a table of numbers keyed by VC \
                                                            name"))]
pub enum Constant {
    /// A formula of other constants.
    Formula(String),
    /// A number for all VCs, or one number for each VC.
    Value(PerVc),
}

/// The initial value of state: a number, or a formula of constants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "FormulaStart", extend("x-expect" = "a number, or a formula of constants"))]
pub enum Start {
    /// A number.
    Number(f64),
    /// A formula of constants.
    Formula(String),
}

impl From<Start> for Constant {
    fn from(start: Start) -> Self {
        match start {
            Start::Number(value) => Self::Value(PerVc::Same(value)),
            Start::Formula(text) => Self::Formula(text),
        }
    }
}

/// Returns the constants that differ from VC to VC, by name.
pub fn constants_by_vc(constants: &BTreeMap<String, Constant>) -> Vec<(&str, &PerVc)> {
    let by_vc = constants.iter().filter_map(|(name, constant)| match constant {
        Constant::Value(values @ PerVc::ByName(_)) => Some((name.as_str(), values)),
        _ => None,
    });
    by_vc.collect()
}

/// A name that a host provides.
pub struct Name {
    /// The name.
    pub name: &'static str,
    /// Kind of the name's value, with its unit.
    pub kind: Kind,
    /// The name's meaning, for the reference page.
    pub about: &'static str,
}

impl Name {
    /// Creates the name of a number with this unit.
    pub const fn number(name: &'static str, unit: Unit, about: &'static str) -> Self {
        Self { name, kind: Kind::Number(Some(unit)), about }
    }
}

/// The occasion on which a formula is evaluated. It determines the names and functions that the formula may use.
#[derive(Clone, Copy, PartialEq)]
pub enum On {
    /// The formula is evaluated once, when the run starts.
    Start,
    /// The formula is evaluated to answer this question to the policy, or at this event.
    Event(&'static str),
}

/// A model that uses formulas and provides names for its formulas.
pub trait Host {
    /// Returns the names that the host provides to rules of this kind, with their meanings there.
    fn words(&self, on: On) -> Vec<Word>;

    /// Returns whether the value of this host name is unknown before the run.
    fn is_open(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// If random numbers are not available on that occasion, returns the reason as a clause; otherwise `None`.
    fn no_random(&self, on: On) -> Option<&'static str>;

    /// Returns why values of individual VCs are not available on that occasion: a clause that follows the name of a
    /// constant by VC, and a clause that follows the name of state to be changed.
    fn no_vc(&self, on: On) -> Option<[&'static str; 2]> {
        let _ = on;
        None
    }

    /// Returns the owner of the host's names, and the page that lists them. Users may not define these names again.
    fn taken(&self) -> [&'static str; 2];

    /// Returns those names of the host whose values events may change.
    fn settable(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the host's name for the table [`Texts::vc_state`]; hosts that keep state for things other than VCs
    /// override this method.
    fn state_by_vc(&self) -> &'static str {
        "vc_state"
    }

    /// Returns what an event may change, in words.
    fn targets(&self) -> &'static str;
}

/// The formulas to compile, with their context.
#[derive(Clone, Copy)]
pub struct Texts<'a> {
    /// Constants, by name.
    pub constants: &'a BTreeMap<String, Constant>,
    /// Names of the host's state, with initial values.
    pub state: &'a BTreeMap<String, Start>,
    /// Names of state that the host keeps for each VC.
    pub vc_state: &'a BTreeMap<String, Start>,
    /// Questions that formulas answer during a run: key, formula, kind of answer.
    pub questions: &'a [(&'static str, &'a str, Kind)],
    /// Formulas for new values of state, by event.
    pub events: &'a [(&'static str, &'a BTreeMap<String, String>)],
    /// The VCs, by label; `None` if the VCs are not known yet.
    pub vcs: Option<&'a [&'a str]>,
    /// The first register for the user's own names.
    pub first: u8,
}

/// New values of state variables, computed together.
pub type Updates = Vec<(u8, Program)>;

/// Compiled formulas.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Programs that answer the questions, in the order of the questions.
    pub answers: Vec<Program>,
    /// Updates for the events, in the order of the events.
    pub updates: Vec<Updates>,
    /// Registers with constants and shared state filled in.
    pub registers: Box<Registers>,
    /// Values of every VC, by label, for the registers from the user's first one on: constants by VC, then state.
    pub by_vc: Vec<f64>,
    /// Number of values per VC in `by_vc`.
    pub per_vc: usize,
    /// True if a constant differs from VC to VC.
    pub has_constants_by_vc: bool,
    /// All names in the formulas.
    pub names: BTreeSet<String>,
    /// Number of results replaced while computing constants.
    pub replaced: u64,
}

impl Texts<'_> {
    /// Returns whether a formula uses this name.
    pub fn use_name(self, name: &str) -> bool {
        self.names().iter().any(|(_, used)| used == name)
    }

    /// Returns the keys of the user's names that no formula uses, other than the formulas that define them. The user
    /// may have forgotten such a name, or misspelt it elsewhere.
    pub fn unused(self) -> Vec<String> {
        let used = self.names();
        let is_used = |name: &str| used.iter().any(|(of, used)| used == name && of != name);
        let tables = [
            ("constants", self.constants.keys().collect::<Vec<_>>()),
            ("state", self.state.keys().collect()),
            ("vc_state", self.vc_state.keys().collect()),
        ];
        let own = tables.into_iter().flat_map(|(table, names)| names.into_iter().map(move |name| (table, name)));
        own.filter(|(_, name)| !is_used(name)).map(|(table, name)| format!("{table}.{name}")).collect()
    }

    /// Returns a pair for every name used in a formula: the name that the formula defines (empty for a question), and
    /// the name it uses.
    fn names(&self) -> BTreeSet<(String, String)> {
        let Self { constants, state, vc_state, questions, events, .. } = *self;
        let asked = questions.iter().map(|&(_, text, _)| ("", text));
        let of_constants = constants.iter().filter_map(|(name, constant)| match constant {
            Constant::Formula(text) => Some((name.as_str(), text.as_str())),
            Constant::Value(_) => None,
        });
        let of_state = state.iter().chain(vc_state).filter_map(|(name, start)| match start {
            Start::Formula(text) => Some((name.as_str(), text.as_str())),
            Start::Number(_) => None,
        });
        let of_events =
            events.iter().flat_map(|&(_, updates)| updates).map(|(name, text)| (name.as_str(), text.as_str()));
        let mut found = BTreeSet::new();
        for (of, text) in asked.chain(of_constants).chain(of_state).chain(of_events) {
            // A fault is reported for a formula that cannot be parsed.
            let Ok(tree) = parse(text) else { continue };
            found.extend(tree.names().into_iter().map(|name| (of.to_string(), name.to_string())));
        }
        found
    }
}

/// Maximum number of variables that one event can change.
const MOST_UPDATES: usize = 34;

/// Updates state. All new values are computed from the old values.
#[inline]
pub fn update(updates: &Updates, registers: &mut Registers, draw: &mut impl FnMut() -> f64, replaced: &mut u64) {
    match updates.as_slice() {
        [] => {}
        [(register, program)] => registers[usize::from(*register)] = program.run(registers, draw, replaced),
        several => update_together(several, registers, draw, replaced),
    }
}

#[inline(never)]
fn update_together(
    updates: &[(u8, Program)],
    registers: &mut Registers,
    draw: &mut impl FnMut() -> f64,
    replaced: &mut u64,
) {
    let mut values = [0.0; MOST_UPDATES];
    for (value, (_, program)) in values.iter_mut().zip(updates) {
        *value = program.run(registers, draw, replaced);
    }
    for (value, (register, _)) in values.into_iter().zip(updates) {
        registers[usize::from(*register)] = value;
    }
}

#[cfg(test)]
mod tests;
