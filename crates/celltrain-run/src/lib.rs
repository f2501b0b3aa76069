//! Results with one source of truth: every measure is one line of a table, and the rest follows from the tables.
//!
//! There is a table for each kind of row that an answer has ([`tables`]) and one for the recorded series ([`series`]).
//! From them follow the JSON answer ([`answer`]), the columns of the Arrow tables with their units and meanings, the
//! measures that a sweep, a tune plan or a claim may name, the printed tables and the page `docs/measures.md`.

pub mod answer;
pub mod measure;
pub mod series;
pub mod tables;

use celltrain_core::stop::Interrupted;

/// Why a run has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// It was told to stop.
    Interrupted,
    /// It is refused, with what is wrong.
    Refused(String),
}

impl From<Interrupted> for Unfinished {
    fn from(_: Interrupted) -> Self {
        Self::Interrupted
    }
}

impl From<String> for Unfinished {
    fn from(problem: String) -> Self {
        Self::Refused(problem)
    }
}
