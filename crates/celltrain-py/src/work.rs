//! Runs, one or many: read, built, run and measured on threads, each within its limit.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use celltrain_core::engine::Engine;
use celltrain_core::footprint::Footprint;
use celltrain_core::network::Network;
use celltrain_core::probe::Nothing;
use celltrain_core::stop::{Interrupted, Stop};
use celltrain_scenario::{Machine, Scenario, build, memory};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::answer::{self, Answer, Series, Trace, Wanted};
use crate::cancel::Cancel;
use crate::panics::{caught, quiet_while_caught};
use crate::{arrays, read_on, threads};

/// Why a run has no result.
pub(crate) enum Unfinished {
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

/// Runs one scenario on a thread of its own; the result's JSON, and the series if any were asked for.
pub(crate) fn one(
    py: Python<'_>,
    cancel: Option<&Py<Cancel>>,
    scenario: Scenario,
    seed: u64,
    how: &How<'_>,
    on_progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, Option<Series>)> {
    let mut outcome = None;
    let share = AtomicU64::new(0);
    let report =
        || on_progress.map_or(Ok(()), |call| call.call1((f64::from_bits(share.load(Ordering::Relaxed)),)).map(|_| ()));
    let scenario = Arc::new(scenario);
    let work = |_, stop: &AtomicBool| run(|_| Ok(Ok(scenario.clone())), seed, how, stop, &share);
    let keep = |_, done| {
        outcome = done;
        Ok(())
    };
    threads::watched(py, cancel, (1, 1), work, keep, report)?;
    match outcome {
        Some(Ok(done)) => Ok(done),
        Some(Err(problem)) => Err(PyValueError::new_err(problem)),
        None => Err(PyRuntimeError::new_err("the run was given up without a signal; please report this")),
    }
}

/// Scenarios as JSON, each read when it is first asked for: by the threads that run it, not by the one that looks for
/// signals.
pub(crate) struct Scenarios {
    texts: Vec<String>,
    read: Vec<Mutex<Option<Read>>>,
    machine: Machine,
}

/// A scenario, or why it is refused.
pub(crate) type Read = Result<Arc<Scenario>, String>;

impl Scenarios {
    pub(crate) fn new(texts: Vec<String>, machine: Machine) -> Self {
        Self { read: texts.iter().map(|_| Mutex::new(None)).collect(), texts, machine }
    }

    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    /// One of them. Reading that is told to stop is begun anew by whoever asks next.
    pub(crate) fn get(&self, index: usize, stop: &Stop<'_>) -> Result<Read, Interrupted> {
        // Reading that panics leaves nothing behind.
        let mut read = self.read[index].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = &*read {
            return Ok(read.clone());
        }
        Ok(read.insert(read_on(&self.texts[index], self.machine, stop)?.map(Arc::new)).clone())
    }

    /// Reads all of them on several threads; raises the refusal of the first that is refused.
    pub(crate) fn read_all(&self, py: Python<'_>, cancel: Option<&Py<Cancel>>, threads: usize) -> PyResult<()> {
        let work = |index: usize, stop: &AtomicBool| self.get(index, &Stop::new(&|| !stop.load(Ordering::Relaxed)));
        let mut refused: Option<(usize, String)> = None;
        let note = |index: usize, read: Result<Read, Interrupted>| {
            if let Ok(Err(refusal)) = read
                && refused.as_ref().is_none_or(|(first, _)| index < *first)
            {
                refused = Some((index, refusal));
            }
            Ok(())
        };
        threads::watched(py, cancel, (self.len(), threads), work, note, || Ok(()))?;
        refused.map_or(Ok(()), |(_, refusal)| Err(PyValueError::new_err(refusal)))
    }
}

/// How runs are done.
pub(crate) struct How<'a> {
    pub(crate) trace: Option<&'a Trace>,
    pub(crate) engine: Engine,
    /// What a run may take in real time, from the reading of its scenario on.
    pub(crate) limit: Option<Duration>,
    /// What of the answers is wanted; all of it when None.
    pub(crate) wanted: Option<&'a Wanted>,
}

/// Where results of many runs go.
pub(crate) struct Takers<'a, 'py> {
    pub(crate) on_result: &'a Bound<'py, PyAny>,
    /// A run that is refused, panics or goes past its limit goes here with what is wrong; where there is none, it ends them
    /// all.
    pub(crate) on_error: Option<&'a Bound<'py, PyAny>>,
}

/// Runs many on `threads` threads; results are handed over in the order they end.
pub(crate) fn many(
    py: Python<'_>,
    cancel: Option<&Py<Cancel>>,
    scenarios: &Scenarios,
    (runs, threads): (&[(usize, u64)], usize),
    how: &How<'_>,
    takers: &Takers<'_, '_>,
) -> PyResult<()> {
    quiet_while_caught();
    let work = |index: usize, stop: &AtomicBool| {
        let (scenario, seed) = runs[index];
        let done = caught(|| run(|stop| scenarios.get(scenario, stop), seed, how, stop, &AtomicU64::new(0)));
        done.unwrap_or_else(|panic| Some(Err(format!("panicked: {panic}"))))
    };
    let Takers { on_result, on_error } = *takers;
    let hand_over = |index: usize, done: Done| match (done, on_error) {
        (Some(Ok((result, None))), _) => on_result.call1((index, result)).map(|_| ()),
        (Some(Ok((result, Some(series)))), _) => on_result.call1((index, result, arrays(py, series)?)).map(|_| ()),
        (Some(Err(problem)), Some(on_error)) => on_error.call1((index, problem)).map(|_| ()),
        (Some(Err(problem)), None) => Err(PyValueError::new_err(problem)),
        (None, _) => Ok(()),
    };
    threads::watched(py, cancel, (runs.len(), threads), work, hand_over, || Ok(()))
}

/// None when it was told to stop.
type Done = Option<Result<(String, Option<Series>), String>>;

/// Does a run from the reading of its scenario on. `share` says how much of it is done.
fn run(
    scenario: impl FnOnce(&Stop<'_>) -> Result<Read, Interrupted>,
    seed: u64,
    how: &How<'_>,
    stopped: &AtomicBool,
    share: &AtomicU64,
) -> Done {
    let limit = Limit::new(how.limit);
    let go_on = || !limit.has_passed() && !stopped.load(Ordering::Relaxed);
    match within(&limit, scenario, seed, how, &Stop::new(&go_on), (stopped, share)) {
        Ok(done) => Some(Ok(done)),
        Err(Unfinished::Refused(problem)) => Some(Err(problem)),
        Err(Unfinished::Interrupted) => limit.in_words().map(Err),
    }
}

/// The same, unless it is told to stop.
fn within(
    limit: &Limit,
    scenario: impl FnOnce(&Stop<'_>) -> Result<Read, Interrupted>,
    seed: u64,
    how: &How<'_>,
    stop: &Stop<'_>,
    (stopped, share): (&AtomicBool, &AtomicU64),
) -> Result<(String, Option<Series>), Unfinished> {
    let How { trace, engine, wanted, .. } = *how;
    let scenario = scenario(stop)??;
    let network = build::network_unless(&scenario, seed, stop)?;
    let footprint = needed(&network, how, stop)?;
    let waited = Instant::now();
    let _kept = memory::keep(&footprint, stopped)?.ok_or(Interrupted)?;
    limit.put_off(waited.elapsed());
    let begun = Instant::now();
    let keep_going = |done: f64| {
        share.store(done.to_bits(), Ordering::Relaxed);
        stop.ask().is_ok()
    };
    let mut recorder = trace.map(|trace| trace.recorder(&network, stop)).transpose()?;
    let result = match &mut recorder {
        Some(recorder) => engine.run(&network, recorder, keep_going),
        None => engine.run(&network, &mut Nothing, keep_going),
    }?;
    let engine_seconds = begun.elapsed().as_secs_f64();
    let bottleneck = &network.links[network.bottleneck].name;
    let answer =
        Answer { scenario: &scenario, seed, engine, result: &result, engine_seconds, bottleneck, wanted, stop };
    let text = answer.text()?;
    let series = trace.zip(recorder).map(|(trace, recorder)| Series::of(&network, trace, recorder, stop));
    let series = series.transpose()?;
    // What passed its limit in the end has passed it.
    stop.ask()?;
    Ok((text, series))
}

/// What a run needs of memory, with what is recorded of it; its answer is put together when the engine is gone.
pub(crate) fn needed(network: &Network, how: &How<'_>, stop: &Stop<'_>) -> Result<Footprint, Unfinished> {
    let footprint = Footprint::of(network, how.engine, stop)?;
    let series = how.trace.map_or(Ok(0), |trace| trace.bytes(network, stop))?;
    let bytes = footprint.bytes.max(footprint.kept + answer::bytes(network, how.wanted)).saturating_add(series);
    Ok(Footprint { bytes, ..footprint })
}

/// What a run may take in real time.
struct Limit {
    most: Option<Duration>,
    begun: Cell<Instant>,
    passed: Cell<bool>,
}

impl Limit {
    fn new(most: Option<Duration>) -> Self {
        Self { most, begun: Cell::new(Instant::now()), passed: Cell::new(false) }
    }

    fn has_passed(&self) -> bool {
        let passed = self.passed.get() || self.most.is_some_and(|most| self.begun.get().elapsed() > most);
        self.passed.set(passed);
        passed
    }

    /// A run that waits for others to give memory back takes no time.
    fn put_off(&self, waited: Duration) {
        self.begun.set(self.begun.get() + waited);
    }

    /// What is wrong, if it has passed.
    fn in_words(&self) -> Option<String> {
        let most = self.most.filter(|_| self.passed.get())?;
        Some(format!("took longer than {} s of real time", most.as_secs_f64()))
    }
}
