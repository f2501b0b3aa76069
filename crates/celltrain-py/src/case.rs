//! A case in Python: a scenario that is read and checked once. Later steps use the case instead of the scenario's text.

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;

use celltrain_capture::CaptureChoice;
use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::engine::{Engine, ParallelOptions};
use celltrain_run::answer::Build;
use celltrain_run::events::Choice;
use celltrain_run::reading::Estimated;
use celltrain_run::runner::{self, Captured, EventOutput, Finished, How, Progress, Watched};
use celltrain_run::scenario::{Checked, Handle};
use celltrain_run::series::Trace;
use celltrain_run::threads::{self, Event};
use celltrain_run::{Unfinished, describe, lock_step};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyType};

use crate::cancel::{self, Cancel};
use crate::events::{Asked, Sink};
use crate::{Failure, arrays, captures, columns, engine_named, interpreter};

/// A scenario that is read and checked only once: by [`crate::parse`], or on first use if the case comes from another
/// process.
#[pyclass(frozen, module = "celltrain._core")]
pub(crate) struct Case {
    pub(crate) handle: Handle,
    /// The canonical text of the case, if it has been needed before. Each row of a sweep refers to this text.
    canonical: PyOnceLock<Py<PyString>>,
}

#[pymethods]
impl Case {
    #[new]
    #[pyo3(signature = (json, canonical=None))]
    fn new(py: Python<'_>, json: String, canonical: Option<Py<PyString>>) -> Self {
        let known = PyOnceLock::new();
        if let Some(text) = canonical {
            let _ = known.set(py, text);
        }
        Self { handle: Handle::of_text(json), canonical: known }
    }

    /// Returns the scenario's text.
    #[getter]
    fn json(&self, py: Python<'_>) -> String {
        interpreter::detach(py, || self.handle.json())
    }

    /// Returns the canonical text of the case, from which the keys of runs are computed. It has every default, but no
    /// name and no seed. The network that the checks built is dropped to save memory, because many cases may wait for
    /// their runs.
    #[getter]
    fn canonical(&self, py: Python<'_>) -> PyResult<Py<PyString>> {
        let make = || {
            let text = self.with_checked(py, None, |checked, _| {
                checked.forget_network();
                Ok(checked.canonical())
            })?;
            Ok::<_, PyErr>(PyString::new(py, &text).unbind())
        };
        Ok(self.canonical.get_or_try_init(py, make)?.clone_ref(py))
    }

    /// Returns the key of the run with this seed.
    fn key(&self, py: Python<'_>, seed: u64) -> PyResult<String> {
        run_key(py, self.canonical(py)?.to_str(py)?, seed, None)
    }

    /// Returns the reasons to doubt the scenario's results.
    #[getter]
    fn warnings(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with_checked(py, None, |checked, _| {
            Ok(checked.warnings().iter().map(|warning| warning.message.clone()).collect())
        })
    }

    /// Returns the number of bytes of memory that a run is expected to need.
    #[getter]
    fn memory_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        self.with_checked(py, None, |checked, _| Ok(checked.memory().likely))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (String, Option<Py<PyString>>)) {
        let canonical = self.canonical.get(py).map(|text| text.clone_ref(py));
        (py.get_type::<Self>(), (self.json(py), canonical))
    }

    /// Returns for each measure the reason why runs of this scenario do not have the measure; None for a measure that
    /// runs have.
    #[pyo3(signature = (measures, cancel=None))]
    fn problems(
        &self,
        py: Python<'_>,
        measures: Vec<String>,
        cancel: Option<Py<Cancel>>,
    ) -> PyResult<Vec<Option<String>>> {
        self.with_checked(py, cancel.as_ref(), |checked, token| Ok(checked.problems(&measures, token)?))
    }

    /// Returns the nodes, links and flows of the network.
    #[pyo3(signature = (cancel=None))]
    fn network(&self, py: Python<'_>, cancel: Option<Py<Cancel>>) -> PyResult<String> {
        self.with_checked(py, cancel.as_ref(), |checked, token| {
            let scenario = checked.scenario();
            Ok(checked.with_network(token, |network| describe::network(scenario, network, token))?.to_string())
        })
    }

    /// Returns a description of the flows in lock-step, as JSON; None if anything besides the order of ties is random.
    #[pyo3(signature = (cancel=None))]
    fn in_step(&self, py: Python<'_>, cancel: Option<Py<Cancel>>) -> PyResult<Option<String>> {
        self.with_checked(py, cancel.as_ref(), |checked, token| {
            let scenario = checked.scenario();
            let found = checked.with_network(token, |network| lock_step::in_step(scenario, network, token))?;
            Ok(found.map(|found| serde_json::json!(found).to_string()))
        })
    }

    /// Returns the paths of settings, other than the order of ties, that make flows differ at random.
    #[getter]
    fn drawn(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with_checked(py, None, |checked, _| Ok(lock_step::drawn(checked.scenario())))
    }

    /// Reports which code path of the fast engine each port uses.
    #[pyo3(signature = (cancel=None))]
    fn explain_plan(&self, py: Python<'_>, cancel: Option<Py<Cancel>>) -> PyResult<String> {
        self.with_checked(py, cancel.as_ref(), |checked, token| {
            Ok(checked.with_network(token, |network| describe::plan(network, token))?.to_string())
        })
    }

    /// Returns the number of threads that a run would use if `threads` are allowed.
    #[pyo3(signature = (threads, cancel=None))]
    fn threads_of(&self, py: Python<'_>, threads: usize, cancel: Option<Py<Cancel>>) -> PyResult<usize> {
        self.with_checked(py, cancel.as_ref(), |checked, token| {
            let options = ParallelOptions::up_to(threads);
            Ok(checked.with_network(token, |network| Engine::Fast.threads_of(options, network, token))?)
        })
    }

    /// Checks a selection of series for this scenario. Returns the series that would have no column, each with the
    /// reason.
    #[pyo3(signature = (trace, step=None, links=None, cancel=None))]
    fn empty_series(
        &self,
        py: Python<'_>,
        trace: Vec<String>,
        step: Option<&str>,
        links: Option<Vec<String>>,
        cancel: Option<Py<Cancel>>,
    ) -> PyResult<Vec<(&'static str, &'static str)>> {
        self.with_checked(py, cancel.as_ref(), |checked, token| {
            match Trace::new(checked.scenario().duration, &trace, step, links)? {
                Some(trace) => checked.with_network(token, |network| Ok(trace.empty(network)?)),
                None => Ok(Vec::new()),
            }
        })
    }

    /// Runs the scenario, with the given seed or the scenario's own seed. Calls `on_captured` with the number of
    /// packets or cells in each capture, and `on_warnings` with a list of warnings.
    #[expect(clippy::too_many_arguments, reason = "Python passes options one by one")]
    #[pyo3(signature = (seed, trace=vec![], step=None, links=None, engine="fast", on_progress=None, cancel=None, events=None, on_events=None, captures=vec![], on_captured=None, event_engine=None, threads=None, on_requests=None, most_requests=0, delays=false, on_warnings=None))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        seed: Option<u64>,
        trace: Vec<String>,
        step: Option<&str>,
        links: Option<Vec<String>>,
        engine: &str,
        on_progress: Option<Py<PyAny>>,
        cancel: Option<Py<Cancel>>,
        events: Option<Asked>,
        on_events: Option<Py<PyAny>>,
        captures: Vec<(captures::Asked, Py<PyAny>)>,
        on_captured: Option<Py<PyAny>>,
        event_engine: Option<&str>,
        threads: Option<NonZeroUsize>,
        on_requests: Option<Py<PyAny>>,
        most_requests: u64,
        delays: bool,
        on_warnings: Option<Py<PyAny>>,
    ) -> PyResult<(String, Option<Bound<'py, PyDict>>)> {
        let engine = engine_named(engine)?;
        let event_engine = event_engine.map(engine_named).transpose()?;
        let cancel = cancel.as_ref();
        let trace = self.with_checked(py, cancel, |checked, token| {
            let trace = Trace::new(checked.scenario().duration, &trace, step, links)?;
            if let Some(trace) = &trace {
                checked.with_network(token, |network| Ok::<_, Unfinished>(trace.refuse_empty(network)?))?;
            }
            Ok(trace)
        })?;
        let duration = self.with_checked(py, cancel, |checked, _| Ok(checked.scenario().duration))?;
        let choice = events.map(|events| events.choice(duration)).transpose()?;
        let captures: Vec<_> = captures
            .into_iter()
            .map(|(capture, call)| Ok((capture.choice(duration)?, call)))
            .collect::<Result<_, Failure>>()?;
        let events_sink = on_events.as_ref().map(Sink::new);
        let captures: Vec<_> = captures.iter().map(|(choice, call)| (choice, Sink::new(call))).collect();
        let how = How { trace: trace.as_ref(), engine, threads, most_records: most_requests, delays, ..How::default() };
        let events = choice.as_ref().zip(events_sink.as_ref());
        let finished =
            self.run_on_a_thread(py, (seed, how, event_engine), events, &captures, on_progress.as_ref(), cancel);
        let sinks = captures.into_iter().map(|(_, sink)| sink).chain(events_sink);
        if let Some(error) = sinks.into_iter().find_map(Sink::raised) {
            return Err(error);
        }
        let Finished { answer, series, records, captured, unmet, .. } = finished?;
        if let Some(call) = on_warnings {
            let warnings: Vec<String> = unmet.into_iter().map(|rule| rule.text).collect();
            call.call1(py, (warnings,))?;
        }
        if let Some(call) = on_captured {
            call.call1(py, (captured,))?;
        }
        if let (Some(call), Some(records)) = (on_requests, records) {
            call.call1(py, (columns(py, records)?,))?;
        }
        Ok((answer, series.map(|series| arrays(py, series)).transpose()?))
    }
}

/// Returns 24 hex digits that identify a run by the canonical text of its case, its seed, and the version of celltrain
/// (by default, the version of this program).
#[pyfunction]
#[pyo3(signature = (canonical, seed, version=None))]
pub(crate) fn run_key(py: Python<'_>, canonical: &str, seed: u64, version: Option<&str>) -> PyResult<String> {
    let text = format!("{}\n{seed}\n{canonical}", version.map_or_else(Build::release, str::to_owned));
    let digest = py.import("hashlib")?.call_method1("sha256", (text.as_bytes(),))?.call_method0("hexdigest")?;
    Ok(digest.extract::<&str>()?[..24].to_owned())
}

impl Case {
    /// Splits the result of reading a scenario into its case (None if the scenario is refused) and a report as JSON.
    pub(crate) fn of_reading(reading: Estimated) -> (Option<Self>, String) {
        let (handle, rest) = Handle::of_reading(reading);
        (handle.map(|handle| Self { handle, canonical: PyOnceLock::new() }), describe::reading(&rest).to_string())
    }

    /// Calls `read` with the checked scenario, on the calling thread.
    pub(crate) fn with_checked<T: Send>(
        &self,
        py: Python<'_>,
        cancel: Option<&Py<Cancel>>,
        read: impl FnOnce(&Checked, &CancellationToken<'_>) -> Result<T, Unfinished> + Send,
    ) -> PyResult<T> {
        let read = |token: &CancellationToken<'_>| match self
            .handle
            .checked(token)
            .and_then(|checked| read(&checked, token))
        {
            Err(Unfinished::Interrupted) => Err(Interrupted),
            done => Ok(done),
        };
        Ok(cancel::watched(py, cancel, read)?.map_err(Failure)?)
    }

    fn run_on_a_thread(
        &self,
        py: Python<'_>,
        (seed, how, event_engine): (Option<u64>, How<'_>, Option<Engine>),
        events: Option<(&Choice, &Sink<'_>)>,
        captures: &[(&CaptureChoice, Sink<'_>)],
        on_progress: Option<&Py<PyAny>>,
        cancel: Option<&Py<Cancel>>,
    ) -> PyResult<Finished> {
        let (mut finished, progress) = (None, Progress::default());
        let on = |event| {
            interpreter::attach(|py| {
                cancel::check(py, cancel)?;
                match (event, on_progress) {
                    (Event::Done(_, done), _) => finished = Some(done),
                    (Event::Look, Some(call)) => drop(call.call1(py, (progress.done(),))?),
                    (Event::Look, None) => {}
                }
                Ok::<_, PyErr>(())
            })
        };
        let work = |_, stopped: &AtomicBool| {
            let mut take = |block| events.is_some_and(|(_, sink)| sink.take(block, stopped));
            let takers = captures.iter().map(|capture| move |bytes: &[u8]| capture.1.take_bytes(bytes, stopped));
            let mut takers: Vec<_> = takers.collect();
            let watched = Watched {
                events: events.map(|(choice, _)| EventOutput { choice, sink: &mut take }),
                captures: (captures.iter().zip(&mut takers))
                    .map(|((choice, _), sink)| Captured::new(choice, sink))
                    .collect(),
                event_engine,
            };
            runner::one_watched(&self.handle, seed, how, watched, (stopped, &progress))
        };
        cancel::noted(py, || threads::over((1, 1), work, on))?;
        match finished {
            Some(done) => Ok(done.map_err(Failure)?),
            None => Err(PyRuntimeError::new_err("the run was aborted without a signal; please report this")),
        }
    }
}
