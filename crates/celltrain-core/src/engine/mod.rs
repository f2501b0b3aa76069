//! Engines: what moves the cells. The models know nothing of them.

pub mod fast;
pub mod reference;

use crate::metrics::RunResult;
use crate::network::Network;
use crate::probe::Probe;

/// Which engine moves the cells. The result is the same, to the last bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// By the frame where nothing can happen to a single cell.
    #[default]
    Fast,
    /// One event list, one event for every cell's arrival and departure.
    Reference,
}

impl Engine {
    /// Both engines.
    pub const ALL: [Engine; 2] = [Engine::Fast, Engine::Reference];

    /// The name users know it by.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Fast => "fast",
            Engine::Reference => "reference",
        }
    }

    /// The engine of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.name() == name)
    }

    /// Runs a network to its end, unless `keep_going` says no: it is asked every few milliseconds of work, and told how
    /// much of the run is done, from 0 to 1.
    ///
    /// # Errors
    /// [`Interrupted`] when `keep_going` said no.
    pub fn run(self, network: &Network, probe: &mut impl Probe, keep_going: impl FnMut(f64) -> bool) -> Outcome {
        match self {
            Engine::Fast => fast::run(network, probe, keep_going),
            Engine::Reference => reference::run(network, probe, keep_going),
        }
    }
}

/// Why a run gave no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

/// A run's result, unless it was told to stop.
pub type Outcome = Result<RunResult, Interrupted>;

#[cfg(test)]
mod tests;
