//! Faults of settings, in the parts from which a caller builds its message.

use std::fmt;

/// A setting that a model refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The setting's key inside its own table, for example `threshold` or `thresholds.tcp1`.
    pub key: String,
    /// Its value, as written in a scenario; empty if the fault is not of a single value.
    pub value: String,
    /// The problem and the remedy: a clause that follows the value, for example `is above the buffer of 1000 cells`.
    pub problem: String,
    /// The faulty line of a text and the marks below it; empty if the fault has no place within a text.
    pub excerpt: Vec<String>,
}

impl Fault {
    /// Creates a fault of `key` with `value`; `problem` is a clause such as "is …" or "needs …".
    pub fn new(key: impl Into<String>, value: impl fmt::Display, problem: impl Into<String>) -> Self {
        Self { key: key.into(), value: value.to_string(), problem: problem.into(), excerpt: Vec::new() }
    }
}
