//! Results with a single source of truth: one line of a table defines each measure, and all output is derived from the
//! tables.
//!
//! Each kind of row in an answer and each recorded series has a table ([`tables`], [`series`]). These tables
//! define the JSON answer ([`answer`]), the columns of the Arrow tables with their units and meanings, the measures
//! available to sweeps, tune plans and claims, the printed tables, and the page `docs/measures.md`.
//!
//! The crate also runs scenarios. A [`scenario::Handle`] reads and checks a scenario once. [`runner`] executes one or
//! more runs on [`threads`], each run with its own limit of time, and turns a panic into an error of the run. The
//! [`events`] of a run are tables too. A capture (`celltrain-capture`) contains the bytes of the observed traffic, and
//! [`buffer`] shows a port's buffer cell by cell.

pub mod answer;
mod as_python;
pub mod buffer;
mod captured;
pub mod clock;
pub mod describe;
pub mod events;
pub mod expressions;
mod families;
pub mod hosting;
mod limit;
pub mod lock_step;
pub mod measure;
pub mod memory;
pub mod outside;
mod panics;
pub mod reading;
pub mod requests;
pub mod runner;
pub mod scenario;
pub mod series;
pub mod tables;
pub mod threads;
pub mod vetting;

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use celltrain_core::cancellation::Interrupted;

/// The reason why a run has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// The run was interrupted.
    Interrupted,
    /// The run was refused. The text is a message, or the faults of the scenario in the format of
    /// [`describe::reading`].
    Refused(String),
    /// The run needs more memory than allowed. The text is a message with both sizes.
    TooLarge(String),
    /// The run exceeded the given limit of real time.
    TookTooLong(Duration),
    /// The run panicked. The text is the message with its location.
    Panicked(String),
}

impl Display for Unfinished {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => f.write_str("was cancelled"),
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

/// Compiles and runs the example in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
