//! Long work away from the interpreter: threads run, the calling thread watches for Ctrl-C and hands results over.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use celltrain_core::engine::Engine;
use celltrain_core::footprint::Footprint;
use celltrain_core::network::Network;
use celltrain_core::probe::Nothing;
use celltrain_scenario::{Machine, Scenario, build, memory};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::answer::{self, Answer, Series, Trace, Wanted};
use crate::panics::{self, caught};
use crate::{arrays, read_on};

/// How often the calling thread looks for a signal: well within the promised 0.1 s.
const LOOK: Duration = Duration::from_millis(20);

/// Runs one scenario on a thread of its own; the result's JSON, and the series if any were asked for.
pub(crate) fn one(
    py: Python<'_>,
    scenario: &Scenario,
    seed: u64,
    trace: Option<&Trace>,
    engine: Engine,
    on_progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, Option<Series>)> {
    let mut outcome = None;
    let share = AtomicU64::new(0);
    let report =
        || on_progress.map_or(Ok(()), |call| call.call1((f64::from_bits(share.load(Ordering::Relaxed)),)).map(|_| ()));
    let how = How { trace, engine, limit: None, wanted: None };
    let work = |stop: &AtomicBool| run(scenario, seed, &how, stop, &share);
    let keep = |_, done| {
        outcome = done;
        Ok(())
    };
    watched(py, 1, 1, |_, stop| work(stop), keep, report)?;
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
    read: Vec<OnceLock<Result<Scenario, String>>>,
    machine: Machine,
}

impl Scenarios {
    pub(crate) fn new(texts: Vec<String>, machine: Machine) -> Self {
        Self { read: texts.iter().map(|_| OnceLock::new()).collect(), texts, machine }
    }

    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    /// The scenario, or why it is refused.
    pub(crate) fn get(&self, index: usize) -> &Result<Scenario, String> {
        self.read[index].get_or_init(|| read_on(&self.texts[index], self.machine))
    }
}

/// How runs are done.
pub(crate) struct How<'a> {
    pub(crate) trace: Option<&'a Trace>,
    pub(crate) engine: Engine,
    /// What a run may take in real time.
    pub(crate) limit: Option<Duration>,
    /// What of the answers is wanted; all of it when None.
    pub(crate) wanted: Option<&'a Wanted>,
}

/// Runs many on `threads` threads; results go to `on_result` in the order they end. A run that is refused, panics or goes
/// past its limit goes to `on_error` with what is wrong; where there is none, it ends them all.
pub(crate) fn many(
    py: Python<'_>,
    scenarios: &Scenarios,
    runs: &[(usize, u64)],
    threads: usize,
    how: &How<'_>,
    on_result: &Bound<'_, PyAny>,
    on_error: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    panics::quiet_while_caught();
    let work = |index: usize, stop: &AtomicBool| {
        let (scenario, seed) = runs[index];
        match scenarios.get(scenario) {
            Ok(scenario) => caught(|| run(scenario, seed, how, stop, &AtomicU64::new(0)))
                .unwrap_or_else(|panic| Some(Err(format!("panicked: {panic}")))),
            Err(refusal) => Some(Err(refusal.clone())),
        }
    };
    let hand_over = |index: usize, done: Done| match (done, on_error) {
        (Some(Ok((result, None))), _) => on_result.call1((index, result)).map(|_| ()),
        (Some(Ok((result, Some(series)))), _) => on_result.call1((index, result, arrays(py, series)?)).map(|_| ()),
        (Some(Err(problem)), Some(on_error)) => on_error.call1((index, problem)).map(|_| ()),
        (Some(Err(problem)), None) => Err(PyValueError::new_err(problem)),
        (None, _) => Ok(()),
    };
    watched(py, runs.len(), threads, work, hand_over, || Ok(()))
}

type Done = Option<Result<(String, Option<Series>), String>>;

/// None when it was told to stop. `share` says how much of the run is done.
fn run(scenario: &Scenario, seed: u64, how: &How<'_>, stop: &AtomicBool, share: &AtomicU64) -> Done {
    let How { trace, engine, limit, wanted } = *how;
    let network = build::network(scenario, seed);
    let footprint = match needed(&network, engine, trace, wanted) {
        Ok(footprint) => footprint,
        Err(problem) => return Some(Err(problem)),
    };
    let _kept = match memory::keep(&footprint, stop) {
        Ok(kept) => kept?,
        Err(problem) => return Some(Err(problem)),
    };
    let begun = Instant::now();
    let mut too_long = false;
    let keep_going = |done: f64| {
        share.store(done.to_bits(), Ordering::Relaxed);
        too_long = limit.is_some_and(|limit| begun.elapsed() > limit);
        !too_long && !stop.load(Ordering::Relaxed)
    };
    let mut recorder = match trace.map(|trace| trace.recorder(&network)).transpose() {
        Ok(recorder) => recorder,
        Err(problem) => return Some(Err(problem)),
    };
    let outcome = match &mut recorder {
        Some(recorder) => engine.run(&network, recorder, keep_going),
        None => engine.run(&network, &mut Nothing, keep_going),
    };
    let seconds = begun.elapsed().as_secs_f64();
    if let (true, Some(limit)) = (too_long, limit) {
        return Some(Err(format!("took longer than {} s of real time", limit.as_secs_f64())));
    }
    let bottleneck = &network.links[network.bottleneck].name;
    let result = outcome.ok()?;
    let engine_seconds = seconds;
    let answer = Answer { scenario, seed, engine, result: &result, engine_seconds, bottleneck, wanted };
    let text = answer.text();
    let series = trace.zip(recorder).map(|(trace, recorder)| Series::of(&network, trace, recorder));
    Some(Ok((text, series)))
}

/// What a run needs of memory, with what is recorded of it; its answer is put together when the engine is gone.
pub(crate) fn needed(
    network: &Network,
    engine: Engine,
    trace: Option<&Trace>,
    wanted: Option<&Wanted>,
) -> Result<Footprint, String> {
    let footprint = Footprint::of(network, engine);
    let series = trace.map_or(Ok(0), |trace| trace.bytes(network))?;
    let bytes = footprint.bytes.max(footprint.kept + answer::bytes(network, wanted)).saturating_add(series);
    Ok(Footprint { bytes, ..footprint })
}

/// Runs pieces of work on threads without the interpreter, and looks after them now and then. On a signal, or when a result is refused, the threads stop
/// before this returns.
fn watched(
    py: Python<'_>,
    pieces: usize,
    threads: usize,
    work: impl Fn(usize, &AtomicBool) -> Done + Sync,
    mut deliver: impl FnMut(usize, Done) -> PyResult<()>,
    look: impl Fn() -> PyResult<()>,
) -> PyResult<()> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.clamp(1, pieces.max(1)))
        .build()
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let stop = AtomicBool::new(false);
    let next = AtomicUsize::new(0);
    let (sender, receiver) = channel();
    let receiver = Mutex::new(receiver);
    pool.in_place_scope(|scope| {
        for _ in 0..pool.current_num_threads() {
            let (sender, stop, next, work) = (sender.clone(), &stop, &next, &work);
            scope.spawn(move |_| {
                while !stop.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    // The receiver is gone only once this run is given up.
                    if index >= pieces || sender.send((index, work(index, stop))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let outcome = loop {
            let latest = py.detach(|| receiver.lock().expect("only this thread locks it").recv_timeout(LOOK));
            let handled = match latest {
                Ok((index, done)) => py.check_signals().and_then(|()| deliver(index, done)),
                Err(RecvTimeoutError::Timeout) => py.check_signals().and_then(|()| look()),
                Err(RecvTimeoutError::Disconnected) => break Ok(()),
            };
            if let Err(error) = handled {
                break Err(error);
            }
        };
        stop.store(true, Ordering::Relaxed);
        outcome
    })
}
