//! Runs cases and returns a row of numbers for each run. Python receives blocks of rows while other runs continue.

use std::time::{Duration, Instant};

use celltrain_core::cancellation::CancellationToken;
use celltrain_run::Unfinished;
use celltrain_run::expressions::{Measures, STEP};
use celltrain_run::runner::{self, CaseRun, Finished, How};
use celltrain_run::scenario::Handle;
use celltrain_run::series::{Recorded, Trace};
use celltrain_run::threads::Event;
use numpy::IntoPyArray;
use numpy::ndarray::Array2;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::cancel::{self, Cancel};
use crate::case::Case;
use crate::{arrays, interpreter, policy};

/// Time after which a block of rows is delivered, even if it is not full.
const WAIT: Duration = Duration::from_millis(50);
/// Maximum number of runs in a block of rows.
const MOST: usize = 1024;

/// Names, sampling step and ports of the series that every run records.
type Recording = (Vec<String>, String, Option<Vec<String>>);

/// Runs cases, and calls `take` with blocks of finished runs, in the order in which they finish.
///
/// A run is given as the index of its case, its seed, and the index of its list of measures. If the call is cancelled,
/// finished runs are delivered before the exception is raised. With `certificates`, results are copied between runs
/// whose results are known to be equal.
#[expect(clippy::too_many_arguments, reason = "Python passes each option as an argument of its own")]
#[pyfunction]
#[pyo3(signature = (cases, runs, measures, threads, take, limit_s=None, recording=None, cancel=None, certificates=false))]
pub(crate) fn run_cases(
    py: Python<'_>,
    cases: Vec<Py<Case>>,
    runs: Vec<(usize, u64, usize)>,
    measures: Vec<Vec<String>>,
    threads: usize,
    take: Py<PyAny>,
    limit_s: Option<f64>,
    recording: Option<Recording>,
    cancel: Option<Py<Cancel>>,
    certificates: bool,
) -> PyResult<()> {
    let handles: Vec<&Handle> = cases.iter().map(|case| &case.get().handle).collect();
    let measures: Vec<Measures> = measures.into_iter().map(Measures::new).collect();
    let runs: Vec<CaseRun> = runs.into_iter().map(|(case, seed, measures)| CaseRun { case, seed, measures }).collect();
    if runs.iter().any(|run| run.case >= handles.len() || run.measures >= measures.len()) {
        return Err(PyValueError::new_err("a run refers to a case or to measures that do not exist"));
    }
    let cancel = cancel.as_ref();
    let limit = limit_s.map(Duration::try_from_secs_f64).transpose();
    let limit = limit.map_err(|error| PyValueError::new_err(format!("limit_s: {error}")))?;
    let is_recorded = recording.is_some();
    let recording = recording.or_else(|| {
        let needed = measures.iter().any(Measures::need_series);
        needed.then(|| (vec!["cwnd".to_owned()], STEP.to_owned(), Some(Vec::new())))
    });
    let trace = match recording {
        None => None,
        Some((names, step, ports)) => {
            let read = |token: &CancellationToken<'_>| runner::first_duration(&handles, token);
            let first = cancel::watched(py, cancel, read)?;
            let trace = first.map_or(Ok(None), |duration| Trace::new(duration, &names, Some(&step), ports));
            trace.map_err(PyValueError::new_err)?
        }
    };
    let width = measures.iter().map(Measures::count).max().unwrap_or(0);
    let mut block = Block::new(width, is_recorded);
    let how = How { trace: trace.as_ref(), limit, certificates, ..How::default() };
    let on = |event| {
        let is_done = matches!(event, Event::Done(..));
        if let Event::Done(index, done) = event {
            block.add(index, done);
        }
        if is_done && !block.is_due() {
            return Ok(());
        }
        interpreter::attach(|py| {
            let checked = cancel::check(py, cancel);
            if checked.is_err() || block.is_due() {
                block.deliver(py, &take)?;
            }
            checked
        })
    };
    cancel::noted(py, || runner::rows(&handles, &measures, (&runs, threads), how, on))?;
    block.deliver(py, &take)
}

/// Finished runs that Python has not received yet.
struct Block {
    /// Maximum number of measures of a run.
    width: usize,
    is_recorded: bool,
    since: Instant,
    runs: Vec<usize>,
    /// Rows of values of measures. A measure without a value is NaN.
    values: Vec<f64>,
    /// Index of the row, index of the measure, kind and text of each note.
    notes: Vec<(usize, usize, &'static str, String)>,
    fingerprints: Vec<Option<String>>,
    seconds: Vec<f64>,
    cell_hops: Vec<u64>,
    /// For each row with a copied result, the row's index, and the index of the run from which the result was copied.
    from: Vec<(usize, usize)>,
    /// For each row whose result cannot be copied to other rows, the row's index and the reason.
    uncertified: Vec<(usize, &'static str)>,
    errors: Vec<(usize, String)>,
    /// For each row, the numbers of the rules of links that lost or delayed fewer packets or cells than specified, each
    /// with a warning.
    unmet: Vec<(usize, Vec<(usize, String)>)>,
    series: Vec<(usize, Recorded)>,
}

impl Block {
    fn new(width: usize, is_recorded: bool) -> Self {
        Self {
            width,
            is_recorded,
            since: Instant::now(),
            runs: Vec::new(),
            values: Vec::new(),
            notes: Vec::new(),
            fingerprints: Vec::new(),
            seconds: Vec::new(),
            cell_hops: Vec::new(),
            from: Vec::new(),
            uncertified: Vec::new(),
            errors: Vec::new(),
            unmet: Vec::new(),
            series: Vec::new(),
        }
    }

    /// Returns whether the block should be delivered now.
    fn is_due(&self) -> bool {
        self.runs.len() >= MOST || self.since.elapsed() >= WAIT
    }

    fn add(&mut self, index: usize, done: Result<Finished, Unfinished>) {
        let row = self.runs.len();
        if done.is_err() {
            // Forget a call of a user's class that the time limit of the run interrupted.
            drop(policy::take_interrupted());
        }
        match done {
            Err(Unfinished::Interrupted) => return,
            Err(unfinished) => {
                self.errors.push((row, unfinished.to_string()));
                self.fingerprints.push(None);
                self.seconds.push(0.0);
                self.cell_hops.push(0);
            }
            Ok(Finished { row: own, series, unmet, .. }) => {
                let own = own.expect("every run has measures");
                self.seconds.push(own.engine_seconds);
                self.cell_hops.push(own.cell_hops);
                self.from.extend(own.from.map(|from| (row, from)));
                self.uncertified.extend(own.uncertified.map(|reason| (row, reason)));
                self.fingerprints.push(Some(own.fingerprint));
                for (measure, figure) in own.figures.into_iter().enumerate() {
                    self.values.push(figure.value.unwrap_or(f64::NAN));
                    self.notes.extend(figure.note.map(|note| (row, measure, note.kind.name(), note.text)));
                }
                if !unmet.is_empty() {
                    self.unmet.push((row, unmet.into_iter().map(|rule| (rule.number, rule.text)).collect()));
                }
                self.series.extend(series.filter(|_| self.is_recorded).map(|series| (row, series)));
            }
        }
        self.runs.push(index);
        self.values.resize(self.runs.len() * self.width, f64::NAN);
    }

    /// Passes the finished runs to `take`. The runs count as delivered even if `take` raises an exception.
    fn deliver(&mut self, py: Python<'_>, take: &Py<PyAny>) -> PyResult<()> {
        let block = std::mem::replace(self, Self::new(self.width, self.is_recorded));
        if block.runs.is_empty() {
            return Ok(());
        }
        let values = Array2::from_shape_vec((block.runs.len(), block.width), block.values)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let dict = PyDict::new(py);
        dict.set_item("runs", block.runs)?;
        dict.set_item("values", values.into_pyarray(py))?;
        dict.set_item("notes", block.notes)?;
        dict.set_item("fingerprints", block.fingerprints)?;
        dict.set_item("seconds", block.seconds)?;
        dict.set_item("cell_hops", block.cell_hops)?;
        dict.set_item("filled_from", block.from)?;
        dict.set_item("uncertified", block.uncertified)?;
        dict.set_item("errors", block.errors)?;
        dict.set_item("unmet", block.unmet)?;
        let series = block.series.into_iter().map(|(row, series)| Ok((row, arrays(py, series)?)));
        dict.set_item("series", series.collect::<PyResult<Vec<_>>>()?)?;
        take.call1(py, (dict,)).map(drop)
    }
}
