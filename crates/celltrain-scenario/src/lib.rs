//! Reads and checks scenarios, and builds their networks.
//!
//! The types in [`scenario`] are the single source of truth: the JSON Schema, the Python models and the defaults are
//! derived from them. Reading has three steps: [`document`] (text to values with line numbers), [`form`] (values
//! against the schema) and [`check`] (values against each other). Each step collects all faults instead of stopping at
//! the first fault. [`topology`] contains the available topologies, one per file. `ResolvedScenario` resolves the
//! tables of a scenario for a layout, and [`build`] translates the resolved tables into the network that the engines
//! run.

// Arithmetic on user settings must not overflow even for the largest values. Lints against lossy casts are enabled in
// the whole workspace.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

pub mod build;
pub mod change_options;
mod changes;
pub mod channels;
pub mod check;
pub mod document;
pub mod fault;
pub mod form;
mod hints;
pub mod limits;
pub mod liveness;
mod losses;
pub mod memories;
pub mod memory_options;
pub mod request_options;
pub mod requests;
mod resolved;
pub mod scenario;
pub mod scope;
mod sizes;
pub mod stack;
pub mod tables;
pub mod topology;

pub use fault::{Fault, Warning};
pub use scenario::Scenario;
pub use topology::Size;

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::network::Network;
use celltrain_core::tcp::Rules;
use document::Document;
use fault::KeyFault;
use serde::Deserialize;
use serde_json::Value;

/// The result of reading a scenario.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The scenario; `None` if it has faults.
    pub scenario: Option<Scenario>,
    /// All faults of the scenario.
    pub faults: Vec<Fault>,
    /// Warnings to consider before trusting the results.
    pub warnings: Vec<Warning>,
    /// The network built by the checks with the scenario's own seed; `None` if the scenario has faults.
    pub network: Option<Network>,
    /// True if the network is too large for the memory now available. The same network may fit on another machine, or
    /// later.
    pub does_not_fit: bool,
}

impl Reading {
    /// Returns the scenario, which must have no faults.
    ///
    /// # Panics
    /// Panics with the faults if the scenario is refused.
    pub fn expect_scenario(self) -> Scenario {
        self.scenario.unwrap_or_else(|| panic!("{:#?}", self.faults))
    }
}

/// A network whose size must be checked.
#[derive(Clone, Copy)]
pub enum Candidate<'a> {
    /// A network whose layout has not been computed.
    Planned(Size),
    /// A network that has been built.
    Built(&'a Network),
}

/// Function that checks the size of a network. Returns the reason if the network is too large. For a built network, the
/// function is called only if the scenario has no other faults.
pub type Fits<'a> = dyn Fn(Candidate<'_>) -> Result<(), String> + 'a;

/// Reads a scenario in TOML. `source` is the name used in faults, usually the file name.
pub fn read_toml(text: &str, source: &str) -> Reading {
    Reader { source, fits: &|_| Ok(()), token: &CancellationToken::never() }.toml(text).expect("no test cancels a run")
}

/// Reads a scenario in JSON, with the same keys as in TOML. Its faults have no line numbers.
pub fn read_json(text: &str, source: &str) -> Reading {
    Reader { source, fits: &|_| Ok(()), token: &CancellationToken::never() }.json(text).expect("no test cancels a run")
}

/// Reader of a scenario, with a check of the network's size and a token that cancels the reading, because reading a
/// large scenario takes seconds.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    /// The name used in faults, usually the file name.
    pub source: &'a str,
    /// Checks whether a network is small enough to be built.
    pub fits: &'a Fits<'a>,
    /// Cancels the reading of the scenario.
    pub token: &'a CancellationToken<'a>,
}

impl Reader<'_> {
    /// Reads a scenario in TOML.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if the token is cancelled.
    pub fn toml(self, text: &str) -> Result<Reading, Interrupted> {
        self.token.check()?;
        read(Document::from_toml(text), self)
    }

    /// Reads a scenario in JSON, with the same keys as in TOML. Its faults have no line numbers.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if the token is cancelled.
    pub fn json(self, text: &str) -> Result<Reading, Interrupted> {
        self.token.check()?;
        read(Document::from_json(text), self)
    }
}

fn read(document: Result<Document, Vec<document::SyntaxFault>>, reader: Reader<'_>) -> Result<Reading, Interrupted> {
    let Reader { source, fits, token } = reader;
    token.check()?;
    let mut document = match document {
        Ok(document) => document,
        Err(faults) => {
            let faults = faults.into_iter().map(|fault| fault.reported(source)).collect();
            return Ok(Reading { scenario: None, faults, warnings: Vec::new(), network: None, does_not_fit: false });
        }
    };
    complete_profiles(&mut document.root);
    let mut faults = form::check(&mut document.root, token)?;
    let (mut warnings, mut network, mut does_not_fit) = (Vec::new(), None, false);
    // Malformed values were removed, so the other values can also be checked, unless a required key is missing. If some
    // faults were not stored, it is unknown which values were removed.
    let scenario: Option<Scenario> = if faults.more() > 0 { None } else { Scenario::deserialize(&document.root).ok() };
    token.check()?;
    if let Some(scenario) = &scenario {
        let verdict = check::check(scenario, &faults, fits, token)?;
        faults.extend(verdict.faults);
        warnings = verdict.warnings.iter().map(Warning::reported).collect();
        network = verdict.network;
        does_not_fit = verdict.does_not_fit;
    }
    // Cancellation may have ended searches for hints early.
    token.check()?;
    assert!(scenario.is_some() || !faults.is_empty(), "a document that the schema accepts can be deserialized");
    let more = faults.more();
    let mut faults: Vec<Fault> = faults.iter().map(|fault| fault.reported(source, document.line(&fault.key))).collect();
    faults.sort_by_key(|fault| fault.line);
    if more > 0 {
        faults
            .push(KeyFault::of_key("", format!("has {more} more faults, which are not shown")).reported(source, None));
    }
    let (scenario, network) = if faults.is_empty() { (scenario, network) } else { (None, None) };
    Ok(Reading { scenario, faults, warnings, network, does_not_fit })
}

/// Adds, for absent keys at the top of each TCP table, the values that the table's profile gives them.
fn complete_profiles(root: &mut Value) {
    let complete = |table: &mut Value| {
        let tcps = table.get_mut("tcp").and_then(Value::as_object_mut);
        tcps.into_iter().flat_map(|tcps| tcps.values_mut()).filter_map(Value::as_object_mut).for_each(Rules::complete);
    };
    complete(root);
    for kind in ["flow", "requests", "incast"] {
        let tables = root.get_mut(kind).and_then(Value::as_object_mut);
        tables.into_iter().flat_map(|tables| tables.values_mut()).for_each(complete);
    }
}

/// Compiles and runs the example in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests;
