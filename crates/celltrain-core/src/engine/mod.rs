//! Engines, which move the cells and advance time. The models do not depend on them.

mod checks;
pub mod fast;
mod hosted;
mod predictions;
pub mod reference;
mod simulation;

use std::cell::{Cell, RefCell};

pub use self::fast::{ParallelOptions, PortExplanation, PortMode};
pub use self::hosted::HostedSimulation;
pub use self::simulation::{Simulation, SimulationError};
use crate::cancellation::CancellationToken;
pub use crate::cancellation::Interrupted;
pub use crate::end_systems::{Delivered, OpenedOutside, OutsideCounters};
pub use crate::metrics::Outcome;
use crate::metrics::RunResult;
use crate::network::Network;
use crate::probe::{Nothing, Probe, Recorder};
use crate::units::{Duration, Span, Time};

/// The two engines, which give exactly the same results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// The fast engine, which processes whole frames wherever cells need not be treated one by one.
    #[default]
    Fast,
    /// The reference engine: a single event list, with an event for every arrival and departure of a cell.
    Reference,
}

impl Engine {
    /// Both engines.
    pub const ALL: [Engine; 2] = [Engine::Fast, Engine::Reference];

    /// Returns the name of the implementation for users.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Fast => "fast",
            Engine::Reference => "reference",
        }
    }

    /// Returns the engine of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.name() == name)
    }

    /// Returns the engine that simulates a network: the reference engine if the fast one does not support it.
    #[must_use]
    pub fn for_network(self, network: &Network) -> Self {
        if fast::supports(network) { self } else { Engine::Reference }
    }

    /// Runs a network to its end, unless `keep_going` returns false. The engine calls `keep_going` every few
    /// milliseconds of work, with the fraction of the run that is done. Once `keep_going` has returned false, it must
    /// not return true again.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if `keep_going` returned false.
    pub fn run(self, network: &Network, probe: impl Probe, keep_going: impl FnMut(f64) -> bool) -> Outcome {
        self.run_by(PortMode::default(), network, probe, keep_going)
    }

    /// Runs a network with a forced implementation of contended ports, for tests and measurements. This changes only
    /// how long the run takes.
    ///
    /// # Errors
    /// Returns the errors of [`Engine::run`].
    #[doc(hidden)]
    pub fn run_by(
        self,
        mode: PortMode,
        network: &Network,
        probe: impl Probe,
        keep_going: impl FnMut(f64) -> bool,
    ) -> Outcome {
        asking(keep_going, |progress, token| {
            Simulation::by(self, mode, network, probe, token)?.finish_by(progress, token)
        })
    }

    /// Runs a network for its probe only, without a result, up to `until` or to the end of the run, whichever is
    /// earlier.
    ///
    /// # Errors
    /// Returns the errors of [`Engine::run`].
    pub fn observe(
        self,
        network: &Network,
        until: Duration,
        probe: impl Probe,
        keep_going: impl FnMut(f64) -> bool,
    ) -> Result<(), Interrupted> {
        asking(keep_going, |progress, token| {
            let mut simulation = Simulation::by(self, PortMode::default(), network, probe, token)?;
            let until = simulation.clock().time(until).min(simulation.end());
            progress.end.set(until);
            simulation.reach(Advance { until, snapshots_end: until + Span(1) }, progress, token)
        })
    }

    /// Runs a network to its end, together with end systems outside the simulation. `hosts` steps the simulation,
    /// injects frames and returns when it has nothing more to do.
    ///
    /// # Errors
    /// Returns the error of `hosts`, and [`Interrupted`] as for [`Engine::run`].
    pub fn run_hosted<P: Probe, E: From<Interrupted>>(
        self,
        network: &Network,
        probe: P,
        keep_going: impl FnMut(f64) -> bool,
        hosts: impl FnOnce(&mut HostedSimulation<'_, '_, P>) -> Result<(), E>,
    ) -> Result<RunResult, E> {
        asking(keep_going, |progress, token| {
            let simulation = Simulation::by(self, PortMode::default(), network, probe, token)?;
            let end = simulation.end();
            let mut hosted = HostedSimulation::new(simulation, end, progress, token);
            hosts(&mut hosted)?;
            Ok(hosted.finish()?)
        })
    }

    /// Runs a network like [`Engine::run_hosted`], but for the probe only, without a result, up to `until` or the end
    /// of the run, whichever is earlier.
    ///
    /// # Errors
    /// Returns the errors of [`Engine::run_hosted`].
    pub fn observe_hosted<P: Probe, E: From<Interrupted>>(
        self,
        network: &Network,
        until: Duration,
        probe: P,
        keep_going: impl FnMut(f64) -> bool,
        hosts: impl FnOnce(&mut HostedSimulation<'_, '_, P>) -> Result<(), E>,
    ) -> Result<(), E> {
        asking(keep_going, |progress, token| {
            let simulation = Simulation::by(self, PortMode::default(), network, probe, token)?;
            let end = simulation.clock().time(until).min(simulation.end());
            let mut hosted = HostedSimulation::new(simulation, end, progress, token);
            hosts(&mut hosted)?;
            Ok(hosted.close()?)
        })
    }

    /// Runs a network without a probe on several threads, which changes only how long it takes. The reference engine
    /// always uses one thread. Networks that cannot be partitioned also use one thread: networks with requests,
    /// controlled rates, edge devices, or flows or policies outside the core, and networks whose nodes are all close
    /// together.
    ///
    /// # Errors
    /// Returns the errors of [`Engine::run`].
    pub fn run_parallel(
        self,
        options: ParallelOptions,
        network: &Network,
        keep_going: impl FnMut(f64) -> bool,
    ) -> Outcome {
        asking(keep_going, |progress, token| {
            let mode = PortMode::default();
            // The web page uses one thread, and the code for several threads would be 1 % of the page.
            if cfg!(not(target_family = "wasm"))
                && self == Engine::Fast
                && let Some(result) = fast::parallel::run(mode, options, network, progress, token)?
            {
                return Ok(result);
            }
            Simulation::by(self, mode, network, Nothing, token)?.finish_by(progress, token)
        })
    }

    /// Returns how many threads [`Engine::run_parallel`] uses.
    ///
    /// # Errors
    /// Returns an error if the run is interrupted.
    pub fn threads_of(
        self,
        options: ParallelOptions,
        network: &Network,
        token: &CancellationToken<'_>,
    ) -> Result<usize, Interrupted> {
        match self {
            Engine::Fast => fast::parallel::number(options, network, token),
            Engine::Reference => Ok(1),
        }
    }

    /// Runs a network on several threads with a forced implementation of contended ports; `None` if the network cannot
    /// be partitioned.
    ///
    /// # Errors
    /// Returns the errors of [`Engine::run`].
    #[doc(hidden)]
    pub fn run_in_partitions(
        mode: PortMode,
        options: ParallelOptions,
        network: &Network,
        keep_going: impl FnMut(f64) -> bool,
    ) -> Result<Option<RunResult>, Interrupted> {
        asking(keep_going, |progress, token| fast::parallel::run(mode, options, network, progress, token))
    }
}

/// Explains, by link, which implementation of the fast engine runs for each port of a network.
///
/// # Errors
/// Returns an error if the run is interrupted.
pub fn explain_plan(network: &Network, token: &CancellationToken<'_>) -> Result<Vec<PortExplanation>, Interrupted> {
    fast::explain(network, token)
}

/// Calls `work` with a cancellation token.
fn asking<T>(keep_going: impl FnMut(f64) -> bool, work: impl FnOnce(&Progress, &CancellationToken<'_>) -> T) -> T {
    let (keep_going, progress) = (RefCell::new(keep_going), Progress::default());
    let go_on = || keep_going.borrow_mut()(progress.share());
    work(&progress, &CancellationToken::new(&go_on))
}

/// The point to which the simulation advances.
#[derive(Clone, Copy)]
struct Advance {
    /// The last simulated instant.
    until: Time,
    /// Snapshots are taken only before this instant.
    snapshots_end: Time,
}

impl Advance {
    /// Creates an advance that ends at `until`, before the snapshot of that instant.
    fn to(until: Time) -> Self {
        Self { until, snapshots_end: until }
    }
}

#[derive(Default)]
struct Progress {
    now: Cell<Time>,
    end: Cell<Time>,
}

impl Progress {
    /// Returns the fraction of the work done, from 0 (building the engine) to 1 (computing the results).
    fn share(&self) -> f64 {
        if self.end.get() == Time::default() { 0.0 } else { self.now.get().share_of(self.end.get()) }
    }
}

/// Runs that cannot be interrupted. They are not generic, so that this crate compiles the engines for them and its
/// callers need not.
impl Engine {
    /// Runs a network to its end without a probe.
    pub fn run_to_end(self, network: &Network) -> RunResult {
        self.run(network, Nothing, |_| true).expect("nothing cancels this run")
    }

    /// Runs a network to its end with a recorder.
    pub fn record(self, network: &Network, recorder: &mut Recorder) -> RunResult {
        self.run(network, recorder, |_| true).expect("nothing cancels this run")
    }
}

#[cfg(test)]
mod tests;
