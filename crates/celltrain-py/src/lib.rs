//! The bridge from Python to the core: types, errors, arrays; no logic. What each call takes and answers stands in
//! `docs/design/bridge.md`.

#![allow(clippy::needless_pass_by_value, reason = "arguments from Python arrive by value")]

mod answer;
mod cancel;
mod panics;
mod shipped;
mod threads;
mod work;

use std::time::Duration;

use celltrain_core::engine::Engine;
use celltrain_core::stop::{Interrupted, Stop};
use celltrain_scenario::document::Document;
use celltrain_scenario::memory::machine;
use celltrain_scenario::{Machine, Reader, Reading, Scenario, scenario};
use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule};

use answer::{Series, Trace, Wanted};
use cancel::Cancel;
use work::{How, Takers, Unfinished};

/// The private module.
#[pymodule]
#[pyo3(name = "_core")]
fn core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(build, module)?)?;
    module.add_function(wrap_pyfunction!(schema, module)?)?;
    module.add_function(wrap_pyfunction!(costs, module)?)?;
    module.add_function(wrap_pyfunction!(parse, module)?)?;
    module.add_function(wrap_pyfunction!(parse_json, module)?)?;
    module.add_function(wrap_pyfunction!(network, module)?)?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(run_many, module)?)?;
    module.add_function(wrap_pyfunction!(toml, module)?)?;
    module.add_function(wrap_pyfunction!(data, module)?)?;
    module.add_function(wrap_pyfunction!(data_names, module)?)?;
    module.add_function(wrap_pyfunction!(memory_limit, module)?)?;
    module.add_function(wrap_pyfunction!(memory_needed, module)?)?;
    module.add_function(wrap_pyfunction!(bench_cases, module)?)?;
    module.add_function(wrap_pyfunction!(measure, module)?)?;
    module.add_class::<Cancel>()?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}

/// The version, and whether the core was compiled with optimisation.
#[pyfunction]
fn build(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let build = answer::Build::this();
    let dict = PyDict::new(py);
    dict.set_item("version", build.version)?;
    dict.set_item("profile", build.profile)?;
    Ok(dict)
}

/// The JSON Schema of a scenario.
#[pyfunction]
fn schema() -> String {
    scenario::schema().to_string()
}

/// What policies and schedulers cost a switch.
#[pyfunction]
fn costs() -> String {
    answer::costs()
}

/// Reads a scenario in TOML.
#[pyfunction]
#[pyo3(signature = (text, source, cancel=None))]
fn parse(py: Python<'_>, text: &str, source: &str, cancel: Option<Py<Cancel>>) -> PyResult<String> {
    let read = |stop: &Stop<'_>| Reader { source, machine: machine(), stop }.toml(text);
    cancel::watched(py, cancel.as_ref(), |stop| Ok(answer::reading(&read(stop)?)))
}

/// Reads a scenario in JSON.
#[pyfunction]
#[pyo3(signature = (text, source, cancel=None))]
fn parse_json(py: Python<'_>, text: &str, source: &str, cancel: Option<Py<Cancel>>) -> PyResult<String> {
    let read = |stop: &Stop<'_>| Reader { source, machine: machine(), stop }.json(text);
    cancel::watched(py, cancel.as_ref(), |stop| Ok(answer::reading(&read(stop)?)))
}

/// Nodes, links and flows of a scenario in JSON.
#[pyfunction]
#[pyo3(signature = (scenario_json, cancel=None))]
fn network(py: Python<'_>, scenario_json: &str, cancel: Option<Py<Cancel>>) -> PyResult<String> {
    let work = |stop: &Stop<'_>| match read_on(scenario_json, machine(), stop)? {
        Ok(scenario) => answer::network(&scenario, stop).map(Ok),
        Err(refusal) => Ok(Err(refusal)),
    };
    cancel::watched(py, cancel.as_ref(), work)?.map_err(PyValueError::new_err)
}

/// Runs one scenario.
#[expect(clippy::too_many_arguments, reason = "Python passes options one by one")]
#[pyfunction]
#[pyo3(signature = (scenario_json, seed, trace, step=None, links=None, engine="fast", on_progress=None, cancel=None))]
fn run<'py>(
    py: Python<'py>,
    scenario_json: &str,
    seed: u64,
    trace: Vec<String>,
    step: Option<&str>,
    links: Option<Vec<String>>,
    engine: &str,
    on_progress: Option<&Bound<'py, PyAny>>,
    cancel: Option<Py<Cancel>>,
) -> PyResult<(String, Option<Bound<'py, PyDict>>)> {
    let engine = engine_named(engine)?;
    let cancel = cancel.as_ref();
    let read = |stop: &Stop<'_>| {
        let scenario = read_on(scenario_json, machine(), stop)??;
        let trace = Trace::new(&scenario, &trace, step, links)?;
        if let Some(trace) = &trace {
            trace.refuse_empty(&celltrain_scenario::build::network_unless(&scenario, seed, stop)?, stop)?;
        }
        Ok((scenario, trace))
    };
    let (scenario, trace) = cancel::watched(py, cancel, |stop| refused(read(stop)))?.map_err(PyValueError::new_err)?;
    let how = How { trace: trace.as_ref(), engine, limit: None, wanted: None };
    let (result, series) = work::one(py, cancel, scenario, seed, &how, on_progress)?;
    let series = series.map(|series| arrays(py, series)).transpose()?;
    Ok((result, series))
}

/// Runs many scenarios on several threads, and hands every result over as it comes.
#[expect(clippy::too_many_arguments, reason = "Python passes options one by one")]
#[pyfunction]
#[pyo3(signature = (
    scenarios, runs, threads, on_result, engine="fast", on_error=None, limit_s=None, trace=vec![], step=None, links=None,
    wanted=None, cancel=None
))]
fn run_many(
    py: Python<'_>,
    scenarios: Vec<String>,
    runs: Vec<(usize, u64)>,
    threads: usize,
    on_result: &Bound<'_, PyAny>,
    engine: &str,
    on_error: Option<&Bound<'_, PyAny>>,
    limit_s: Option<f64>,
    trace: Vec<String>,
    step: Option<&str>,
    links: Option<Vec<String>>,
    wanted: Option<Wanted>,
    cancel: Option<Py<Cancel>>,
) -> PyResult<()> {
    let engine = engine_named(engine)?;
    let scenarios = work::Scenarios::new(scenarios, machine());
    let cancel = cancel.as_ref();
    if on_error.is_none() {
        // Without an error callback, refuse bad scenarios before the first run.
        scenarios.read_all(py, cancel, threads)?;
    }
    if let Some((index, _)) = runs.iter().find(|(index, _)| *index >= scenarios.len()) {
        return Err(PyValueError::new_err(format!("run of scenario {index}, but there are {}", scenarios.len())));
    }
    let limit = limit_s.map(Duration::try_from_secs_f64).transpose();
    let limit = limit.map_err(|error| PyValueError::new_err(format!("limit_s: {error}")))?;
    let trace = if trace.is_empty() {
        None
    } else {
        // A step is for all of them; without one it would be the first's.
        let read = |stop: &Stop<'_>| {
            for index in 0..scenarios.len() {
                if let Ok(first) = scenarios.get(index, stop)? {
                    return Ok(Trace::new(&first, &trace, step, links)?);
                }
            }
            Ok(None)
        };
        cancel::watched(py, cancel, |stop| refused(read(stop)))?.map_err(PyValueError::new_err)?
    };
    let how = How { trace: trace.as_ref(), engine, limit, wanted: wanted.as_ref() };
    work::many(py, cancel, &scenarios, (&runs, threads), &how, &Takers { on_result, on_error })
}

/// What is wrong, apart from whether it was told to stop.
fn refused<T>(done: Result<T, Unfinished>) -> Result<Result<T, String>, Interrupted> {
    match done {
        Ok(done) => Ok(Ok(done)),
        Err(Unfinished::Refused(problem)) => Ok(Err(problem)),
        Err(Unfinished::Interrupted) => Err(Interrupted),
    }
}

/// A TOML text as JSON, with the line of every key.
#[pyfunction]
fn toml(text: &str, source: &str) -> String {
    answer::document(Document::from_toml(text), source)
}

/// The text of a file shipped with the package.
#[pyfunction]
fn data(path: &str) -> Option<&'static str> {
    shipped::text(path)
}

/// The paths of the shipped files that begin so.
#[pyfunction]
fn data_names(prefix: &str) -> Vec<String> {
    shipped::names(prefix)
}

/// Bytes of memory that this process may still have, where it can be told.
#[pyfunction]
fn memory_limit() -> Option<u64> {
    let machine = machine();
    machine.memory.into_iter().chain(machine.addresses).min()
}

/// Bytes of memory that a run of a scenario takes, its whole answer included; it is not held against what there is.
#[pyfunction]
#[pyo3(signature = (scenario_json, engine="fast"))]
fn memory_needed(py: Python<'_>, scenario_json: &str, engine: &str) -> PyResult<u64> {
    let how = How { trace: None, engine: engine_named(engine)?, limit: None, wanted: None };
    let needed = |stop: &Stop<'_>| {
        let scenario = read_on(scenario_json, Machine::default(), stop)??;
        work::needed(&celltrain_scenario::build::network_unless(&scenario, scenario.seed, stop)?, &how, stop)
    };
    let needed = cancel::watched(py, None, |stop| refused(needed(stop)))?.map_err(PyValueError::new_err)?;
    Ok(needed.bytes)
}

/// The scenarios of the benchmarks.
#[pyfunction]
fn bench_cases() -> String {
    answer::bench_cases()
}

/// Runs a benchmark's scenario so many times; what the fastest run cost.
#[pyfunction]
fn measure(py: Python<'_>, scenario: &str, engine: &str, times: u32) -> PyResult<String> {
    let engine = engine_named(engine)?;
    let unknown = || PyValueError::new_err(format!("{scenario:?} is not a benchmark's scenario"));
    let case = celltrain_bench::named(scenario).ok_or_else(unknown)?;
    Ok(py.detach(|| answer::measured(&celltrain_bench::measure(&case, engine, times.max(1)))))
}

fn engine_named(name: &str) -> PyResult<Engine> {
    let names = Engine::ALL.map(Engine::name).join(", ");
    Engine::named(name)
        .ok_or_else(|| PyValueError::new_err(format!("{name:?} is not an engine; it must be one of {names}")))
}

/// The refusal is what [`parse_json`] answers.
pub(crate) fn read_on(json: &str, machine: Machine, stop: &Stop<'_>) -> Result<Result<Scenario, String>, Interrupted> {
    let mut reading: Reading = Reader { source: "scenario", machine, stop }.json(json)?;
    Ok(reading.scenario.take().ok_or_else(|| answer::reading(&reading)))
}

fn arrays(py: Python<'_>, series: Series) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    let rows = series.time_s.len();
    dict.set_item("time_s", series.time_s.into_pyarray(py))?;
    dict.set_item("ports", series.ports)?;
    dict.set_item("flows", series.flows)?;
    dict.set_item("rate_flows", series.rate_flows)?;
    dict.set_item("edge_flows", series.edge_flows)?;
    dict.set_item("occupancy_columns", series.occupancy_columns)?;
    for (name, cells) in [
        ("queue_cells", series.queue_cells),
        ("occupancy_cells", series.occupancy_cells),
        ("edge_packets", series.edge_packets),
        ("edge_phase", series.edge_phase),
        ("edge_p_ctr", series.edge_p_ctr),
    ] {
        if let Some(cells) = cells {
            dict.set_item(name, matrix(py, rows, cells)?)?;
        }
    }
    if let Some(bytes) = series.delivered_bytes {
        dict.set_item("delivered_bytes", matrix(py, rows, bytes)?)?;
    }
    for (name, values) in [
        ("cwnd_segments", series.cwnd_segments),
        ("ssthresh_segments", series.ssthresh_segments),
        ("acr_mbps", series.acr_mbps),
        ("edge_ld_acr_mbps", series.edge_ld_acr_mbps),
    ] {
        if let Some(values) = values {
            dict.set_item(name, matrix(py, rows, values)?)?;
        }
    }
    Ok(dict)
}

fn matrix<T: numpy::Element>(py: Python<'_>, rows: usize, values: Vec<T>) -> PyResult<Bound<'_, PyArray2<T>>> {
    let columns = values.len().checked_div(rows).unwrap_or(0);
    let array = Array2::from_shape_vec((rows, columns), values).map_err(|e| PyValueError::new_err(e.to_string()))?;
    Ok(array.into_pyarray(py))
}
