//! What is wrong with a setting, in the parts from which a caller makes its message.

use std::fmt;

/// One setting that a model refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The setting's key inside its own table, for example `threshold` or `thresholds.tcp1`.
    pub key: String,
    /// Its value, as the scenario would write it; empty where the fault is of no single value.
    pub value: String,
    /// What is wrong and what would be right: a clause that follows the value, for example
    /// `is above the buffer of 1000 cells`.
    pub problem: String,
    /// The line of a text at fault and the marks below it; empty where the fault is not of a place within a text.
    pub excerpt: Vec<String>,
}

impl Fault {
    /// A fault of `key`, whose value `value` `problem` (a clause: "is …", "needs …").
    pub fn new(key: impl Into<String>, value: impl fmt::Display, problem: impl Into<String>) -> Self {
        Self { key: key.into(), value: value.to_string(), problem: problem.into(), excerpt: Vec::new() }
    }
}
