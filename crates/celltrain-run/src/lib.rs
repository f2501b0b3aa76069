//! Results with one source of truth: every measure is one line of a table, and the rest follows from the tables.
//!
//! There is a table for each kind of row that an answer has ([`tables`]) and one for the recorded series ([`series`]).
//! From them follow the JSON answer ([`answer`]), the columns of the Arrow tables with their units and meanings, the
//! measures that a sweep, a tune plan or a claim may name, the printed tables and the page `docs/measures.md`.
//!
//! The crate also runs scenarios. A [`scenario::Handle`] is read and checked once. [`runner`] executes one run or many
//! on [`threads`], each within its limit, and turns a panic into that run's error. The [`events`] of a run are tables
//! too, a [`capture`] contains the bytes of the observed traffic, and [`buffer`] shows a port's buffer cell by cell.

pub mod answer;
pub mod buffer;
pub mod capture;
pub mod clock;
pub mod describe;
pub mod events;
mod limit;
pub mod measure;
pub mod memory;
pub mod outside;
mod panics;
pub mod runner;
pub mod scenario;
pub mod series;
pub mod tables;
pub mod threads;

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use celltrain_core::cancellation::Interrupted;

/// The reason why a run has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// The run was interrupted.
    Interrupted,
    /// The run was refused: the problem in words, or the faults of the scenario as [`describe::reading`] gives them.
    Refused(String),
    /// The run takes more memory than allowed; the text has the numbers.
    TooLarge(String),
    /// The run took longer in real time than this limit.
    TookTooLong(Duration),
    /// The run panicked, with this message and place.
    Panicked(String),
}

impl Display for Unfinished {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => f.write_str("was told to stop"),
            Self::Refused(problem) | Self::TooLarge(problem) => f.write_str(problem),
            Self::TookTooLong(most) => write!(f, "took longer than {} s of real time", most.as_secs_f64()),
            Self::Panicked(panic) => write!(f, "panicked: {panic}"),
        }
    }
}

impl From<Interrupted> for Unfinished {
    fn from(_: Interrupted) -> Self {
        Self::Interrupted
    }
}

impl From<events::Wrong> for Unfinished {
    fn from(wrong: events::Wrong) -> Self {
        Self::Refused(wrong.to_string())
    }
}

impl From<String> for Unfinished {
    fn from(problem: String) -> Self {
        Self::Refused(problem)
    }
}
