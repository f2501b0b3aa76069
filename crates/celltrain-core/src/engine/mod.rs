//! Engines move the cells and advance the time. The models do not depend on them.

pub mod fast;
pub mod reference;

use std::cell::{Cell, RefCell};

pub use self::fast::Ways;
pub use crate::metrics::Outcome;
use crate::network::Network;
use crate::probe::Probe;
pub use crate::stop::Interrupted;
use crate::stop::Stop;
use crate::units::Time;

/// The two engines. Both give the same result, to the last bit.
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

    /// Runs a network to its end, unless `keep_going` returns false. It is called every few milliseconds of work, also
    /// while the engine is being built and the run measured, with the share of the run that is done, from 0 to 1. Once
    /// it has returned false it must not return true again.
    ///
    /// # Errors
    /// [`Interrupted`] when `keep_going` returned false.
    pub fn run(self, network: &Network, probe: &mut impl Probe, keep_going: impl FnMut(f64) -> bool) -> Outcome {
        self.run_by(Ways::default(), network, probe, keep_going)
    }

    /// The same with the ways of contended ports forced, which changes nothing but the time it takes: for tests and
    /// measurements.
    ///
    /// # Errors
    /// As [`Engine::run`].
    #[doc(hidden)]
    pub fn run_by(
        self,
        ways: Ways,
        network: &Network,
        probe: &mut impl Probe,
        keep_going: impl FnMut(f64) -> bool,
    ) -> Outcome {
        let (keep_going, progress) = (RefCell::new(keep_going), Progress::default());
        let go_on = || keep_going.borrow_mut()(progress.share());
        let stop = Stop::new(&go_on);
        match self {
            Engine::Fast => fast::run(ways, network, probe, &progress, &stop),
            Engine::Reference => reference::run(network, probe, &progress, &stop),
        }
    }
}

/// The progress of a run.
#[derive(Default)]
struct Progress {
    now: Cell<Time>,
    end: Cell<Time>,
}

impl Progress {
    /// From 0, while the engine is being built, to 1, while the run is measured.
    fn share(&self) -> f64 {
        if self.end.get() == Time::default() { 0.0 } else { self.now.get().share_of(self.end.get()) }
    }
}

#[cfg(test)]
mod tests;
