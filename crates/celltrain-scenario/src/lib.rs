//! The scenario: what a user writes, what it means, and what is wrong with it.
//!
//! The types in [`scenario`] are the one source of truth: the JSON Schema, the Python models and the defaults follow
//! from them. Reading goes in three steps, and each adds its faults instead of stopping at the first: [`document`]
//! (text to values that know their lines), [`form`] (values against the schema), [`check`] (values against each other
//! and the machine). [`topology`] has the networks that can be written, one file each; [`build`] makes the one the
//! engines run.

// What a user can set is never added or multiplied without a thought for the largest there is. The lints of casts are
// on in all of the workspace.
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

use celltrain_core::memory_estimate::MemoryEstimate;
use celltrain_core::network::Network;
use celltrain_core::stop::{Interrupted, Stop};
use document::Document;
use fault::KeyFault;
use serde::Deserialize;

/// What came of reading a scenario.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The scenario, when nothing is wrong with it.
    pub scenario: Option<Scenario>,
    /// Everything that is wrong.
    pub faults: Vec<Fault>,
    /// What to look at before trusting its results.
    pub warnings: Vec<Warning>,
    /// The memory that a run of it takes, when nothing else is wrong.
    pub memory: Option<MemoryEstimate>,
    /// The network that the checks built, with the scenario's own seed, when nothing is wrong.
    pub network: Option<Network>,
    /// Whether one of the faults is that it does not fit the memory there is: elsewhere, or later, it may.
    pub does_not_fit: bool,
}

/// What the reader may know of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Machine {
    /// Bytes of memory that the process may still have; `None` if they are not known.
    pub memory: Option<u64>,
}

impl Machine {
    /// Returns the bytes that are free if they are too few for a run that takes `bytes`: three quarters are for one run,
    /// or for several at once.
    pub fn lacks(&self, bytes: u64) -> Option<u64> {
        self.memory.filter(|free| bytes > (free / 4).saturating_mul(3))
    }
}

/// Reads a scenario in TOML. `source` is the name faults are reported under, usually the file's.
pub fn read_toml(text: &str, source: &str, machine: Machine) -> Reading {
    Reader { source, machine, stop: &Stop::never() }.toml(text).expect("nobody stops it")
}

/// Reads a scenario in JSON, with the keys of the TOML form; its faults carry no lines.
pub fn read_json(text: &str, source: &str, machine: Machine) -> Reading {
    Reader { source, machine, stop: &Stop::never() }.json(text).expect("nobody stops it")
}

/// What reading a scenario goes by: its name, the machine it is for, and whether to go on. A large one takes seconds.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    /// The name faults are reported under, usually the file's.
    pub source: &'a str,
    /// What it may be too large for.
    pub machine: Machine,
    /// Whether to go on.
    pub stop: &'a Stop<'a>,
}

impl Reader<'_> {
    /// Reads a scenario in TOML.
    ///
    /// # Errors
    /// When it is told to stop.
    pub fn toml(self, text: &str) -> Result<Reading, Interrupted> {
        self.stop.ask()?;
        read(Document::from_toml(text), self)
    }

    /// Reads a scenario in JSON, with the keys of the TOML form; its faults carry no lines.
    ///
    /// # Errors
    /// When it is told to stop.
    pub fn json(self, text: &str) -> Result<Reading, Interrupted> {
        self.stop.ask()?;
        read(Document::from_json(text), self)
    }
}

fn read(document: Result<Document, Vec<document::SyntaxFault>>, reader: Reader<'_>) -> Result<Reading, Interrupted> {
    let Reader { source, machine, stop } = reader;
    stop.ask()?;
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
    let mut faults = form::check(&mut document.root, stop)?;
    let (mut warnings, mut memory, mut network, mut does_not_fit) = (Vec::new(), None, None, false);
    // What has the wrong form was taken out, so the rest can be judged too; a required key that is gone ends it here.
    // With more faults than are kept it is not known what was taken out.
    let scenario: Option<Scenario> = if faults.more() > 0 { None } else { Scenario::deserialize(&document.root).ok() };
    stop.ask()?;
    if let Some(scenario) = &scenario {
        let verdict = check::check(scenario, &faults, machine, stop)?;
        faults.extend(verdict.faults);
        warnings = verdict.warnings.iter().map(Warning::reported).collect();
        memory = verdict.memory;
        network = verdict.network;
        does_not_fit = verdict.does_not_fit;
    }
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
