//! Engines: what moves the cells. The models know nothing of them.

pub mod reference;

use crate::metrics::RunResult;

/// Why a run gave no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

/// A run's result, unless it was told to stop.
pub type Outcome = Result<RunResult, Interrupted>;

#[cfg(test)]
mod tests;
