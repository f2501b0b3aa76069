//! Executes many runs on several threads. The result of each run is delivered to Python when the run ends.

use std::time::Duration;

use celltrain_core::cancellation::CancellationToken;
use celltrain_run::Unfinished;
use celltrain_run::runner::{self, Finished, How};
use celltrain_run::scenario::Handle;
use celltrain_run::series::Trace;
use celltrain_run::threads::Event;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::cancel::{self, Cancel};
use crate::case::Case;
use crate::{Failure, arrays, engine_named, interpreter, policy};

/// Runs many scenarios on several threads, and delivers the result of each run when the run ends.
#[expect(clippy::too_many_arguments, reason = "Python passes each option as an argument of its own")]
#[pyfunction]
#[pyo3(signature = (
    scenarios, runs, threads, on_result, engine="fast", on_error=None, limit_s=None, trace=vec![], step=None, links=None,
    cancel=None
))]
pub(crate) fn run_many(
    py: Python<'_>,
    scenarios: Vec<Py<Case>>,
    runs: Vec<(usize, u64)>,
    threads: usize,
    on_result: Py<PyAny>,
    engine: &str,
    on_error: Option<Py<PyAny>>,
    limit_s: Option<f64>,
    trace: Vec<String>,
    step: Option<&str>,
    links: Option<Vec<String>>,
    cancel: Option<Py<Cancel>>,
) -> PyResult<()> {
    let engine = engine_named(engine)?;
    let handles: Vec<&Handle> = scenarios.iter().map(|scenario| &scenario.get().handle).collect();
    let cancel = cancel.as_ref();
    if on_error.is_none() {
        // Without an error callback, report an invalid scenario before the first run begins.
        let check = || interpreter::attach(|py| cancel::check(py, cancel));
        interpreter::detach(py, || runner::read_all(&handles, threads, check))?.map_err(Failure)?;
    }
    if let Some((index, _)) = runs.iter().find(|(index, _)| *index >= handles.len()) {
        return Err(PyValueError::new_err(format!(
            "a run refers to the scenario {index}, but there are only {} \
                                                  scenarios",
            handles.len()
        )));
    }
    let limit = limit_s.map(Duration::try_from_secs_f64).transpose();
    let limit = limit.map_err(|error| PyValueError::new_err(format!("limit_s: {error}")))?;
    let trace = if trace.is_empty() {
        None
    } else {
        // All runs use the same sampling step, by default derived from the first scenario's duration.
        let read = |token: &CancellationToken<'_>| runner::first_duration(&handles, token);
        let first = cancel::watched(py, cancel, read)?;
        let trace = first.map_or(Ok(None), |duration| Trace::new(duration, &trace, step, links));
        trace.map_err(PyValueError::new_err)?
    };
    let how = How { trace: trace.as_ref(), engine, limit, ..How::default() };
    let on = |event| {
        interpreter::attach(|py| {
            cancel::check(py, cancel)?;
            match event {
                Event::Look => Ok(()),
                Event::Done(index, done) => hand_over(py, index, done, &on_result, on_error.as_ref()),
            }
        })
    };
    cancel::noted(py, || runner::many(&handles, (&runs, threads), how, on))
}

/// Passes a result to `on_result`, or an error to `on_error`. Without `on_error`, an error in one run ends all runs.
fn hand_over(
    py: Python<'_>,
    index: usize,
    done: Result<Finished, Unfinished>,
    on_result: &Py<PyAny>,
    on_error: Option<&Py<PyAny>>,
) -> PyResult<()> {
    if done.is_err() {
        // Forget a call of a user's class that the time limit of the run interrupted.
        drop(policy::take_interrupted());
    }
    match (done, on_error) {
        (Ok(Finished { answer, series: None, .. }), _) => on_result.call1(py, (index, answer)),
        (Ok(Finished { answer, series: Some(series), .. }), _) => {
            on_result.call1(py, (index, answer, arrays(py, series)?))
        }
        (Err(Unfinished::Interrupted), _) => return Ok(()),
        (Err(unfinished), Some(on_error)) => on_error.call1(py, (index, unfinished.to_string())),
        (Err(unfinished), None) => return Err(Failure(unfinished).into()),
    }
    .map(drop)
}
