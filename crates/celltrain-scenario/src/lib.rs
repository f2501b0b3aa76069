//! Scenarios: reading, checking and building the network.
//!
//! The types in [`scenario`] are the only source of truth: the JSON Schema, the Python models and the defaults follow
//! from them. Reading has three steps, and each adds its faults instead of stopping at the first: [`document`] (text to
//! values with line numbers), [`form`] (values against the schema), [`check`] (values against each other and the
//! machine). [`topology`] has the available topologies, one file each. [`build`] builds the network that the engines
//! run.

// Arithmetic on user settings must always consider the largest values. The lints of casts are on in the whole
// workspace.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

pub mod build;
pub mod channels;
pub mod check;
pub mod document;
pub mod fault;
pub mod form;
mod hints;
pub mod limits;
pub mod scenario;
pub mod scope;
pub mod tables;
pub mod topology;

pub use fault::{Fault, Warning};
pub use scenario::Scenario;

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::memory_estimate::MemoryEstimate;
use celltrain_core::network::Network;
use document::Document;
use fault::KeyFault;
use serde::Deserialize;

/// The result of reading a scenario.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The scenario, if it has no faults.
    pub scenario: Option<Scenario>,
    /// All faults.
    pub faults: Vec<Fault>,
    /// Warnings to consider before trusting its results.
    pub warnings: Vec<Warning>,
    /// The memory that a run takes, if there are no other faults.
    pub memory: Option<MemoryEstimate>,
    /// The network that the checks built with the scenario's own seed, if there are no faults.
    pub network: Option<Network>,
    /// True if one of the faults is a lack of memory: the scenario may fit elsewhere, or later.
    pub does_not_fit: bool,
}

/// Properties of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Machine {
    /// Bytes of memory still available to the process; `None` if unknown.
    pub memory: Option<u64>,
}

impl Machine {
    /// Returns the free bytes if they are too few for a run that takes `bytes`: three quarters of them are available to
    /// one run, or to several at once.
    pub fn lacks(&self, bytes: u64) -> Option<u64> {
        self.memory.filter(|free| bytes > (free / 4).saturating_mul(3))
    }
}

/// Reads a scenario in TOML. `source` is the name used in faults, usually the file's.
pub fn read_toml(text: &str, source: &str, machine: Machine) -> Reading {
    Reader { source, machine, token: &CancellationToken::never() }.toml(text).expect("nobody stops it")
}

/// Reads a scenario in JSON, with the keys of the TOML form; its faults carry no lines.
pub fn read_json(text: &str, source: &str, machine: Machine) -> Reading {
    Reader { source, machine, token: &CancellationToken::never() }.json(text).expect("nobody stops it")
}

/// Reader of scenarios: a name, the machine, and a cancellation check. A large scenario takes seconds.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    /// The name used in faults, usually the file's.
    pub source: &'a str,
    /// The machine that a scenario must fit.
    pub machine: Machine,
    /// The cancellation check.
    pub token: &'a CancellationToken<'a>,
}

impl Reader<'_> {
    /// Reads a scenario in TOML.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if cancelled.
    pub fn toml(self, text: &str) -> Result<Reading, Interrupted> {
        self.token.check()?;
        read(Document::from_toml(text), self)
    }

    /// Reads a scenario in JSON, with the keys of the TOML form; its faults carry no lines.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if cancelled.
    pub fn json(self, text: &str) -> Result<Reading, Interrupted> {
        self.token.check()?;
        read(Document::from_json(text), self)
    }
}

fn read(document: Result<Document, Vec<document::SyntaxFault>>, reader: Reader<'_>) -> Result<Reading, Interrupted> {
    let Reader { source, machine, token } = reader;
    token.check()?;
    let mut document = match document {
        Ok(document) => document,
        Err(faults) => {
            let faults = faults.into_iter().map(|fault| fault.reported(source)).collect();
            return Ok(Reading {
                scenario: None,
                faults,
                warnings: Vec::new(),
                memory: None,
                network: None,
                does_not_fit: false,
            });
        }
    };
    let mut faults = form::check(&mut document.root, token)?;
    let (mut warnings, mut memory, mut network, mut does_not_fit) = (Vec::new(), None, None, false);
    // Malformed values were removed, so the rest can be checked too, unless a required key is gone. With more faults
    // than are kept, the removed values are unknown.
    let scenario: Option<Scenario> = if faults.more() > 0 { None } else { Scenario::deserialize(&document.root).ok() };
    token.check()?;
    if let Some(scenario) = &scenario {
        let verdict = check::check(scenario, &faults, machine, token)?;
        faults.extend(verdict.faults);
        warnings = verdict.warnings.iter().map(Warning::reported).collect();
        memory = verdict.memory;
        network = verdict.network;
        does_not_fit = verdict.does_not_fit;
    }
    // A hint ends early if it is cancelled.
    token.check()?;
    assert!(scenario.is_some() || !faults.is_empty(), "what the schema passes has the form of a scenario");
    let more = faults.more();
    let mut faults: Vec<Fault> = faults.iter().map(|fault| fault.reported(source, document.line(&fault.key))).collect();
    faults.sort_by_key(|fault| fault.line);
    if more > 0 {
        faults
            .push(KeyFault::of_key("", format!("has {more} more faults, which are not shown")).reported(source, None));
    }
    let (scenario, network) = if faults.is_empty() { (scenario, network) } else { (None, None) };
    Ok(Reading { scenario, faults, warnings, memory, network, does_not_fit })
}

#[cfg(test)]
mod tests;
