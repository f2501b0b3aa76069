//! Python bindings of the core: types, errors and arrays, but no logic. `docs/design/bridge.md` describes every call.

#![allow(clippy::needless_pass_by_value, reason = "pyo3 passes the arguments of functions by value")]

mod cancel;
mod captures;
mod case;
#[cfg(target_os = "linux")]
mod emulate;
mod events;
mod expressions;
mod interpreter;
mod many;
mod memory;
mod policy;
mod rows;
mod shipped;
mod stack;

#[cfg(all(feature = "mimalloc", not(any(windows, target_family = "wasm"))))]
use celltrain_bench::allocator::BySize;
use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::engine::Engine;
use celltrain_core::threshold::{EXPECTED, Threshold};
use celltrain_run::answer::Build;
use celltrain_run::hosting::VERSIONS;
use celltrain_run::memory::machine;
use celltrain_run::requests::Records;
use celltrain_run::series::{Array, Recorded};
use celltrain_run::{Unfinished, describe, reading, tables};
use celltrain_scenario::document::Document;
use celltrain_scenario::{Reader, Reading};
use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;

use cancel::Cancel;
use case::Case;

/// Memory allocator of the module. `docs/design/memory.md` explains why the system's allocator is not used.
#[cfg(all(feature = "mimalloc", not(any(windows, target_family = "wasm"))))]
#[global_allocator]
static ALLOCATOR: BySize<mimalloc::MiMalloc> = BySize(mimalloc::MiMalloc);

/// The private Python module `celltrain._core`.
#[pymodule]
#[pyo3(name = "_core")]
mod module {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::{
        bench_cases, build, conformance, data, data_names, measure, measures, memory_conformance, memory_limit, parse,
        parse_json, schema, stacks, threshold, toml,
    };
    #[pymodule_export]
    use crate::{
        cancel::Cancel,
        case::{Case, run_key},
        expressions::{evaluate, named, parse_measure},
        interpreter::AwaitedAtExit,
        many::run_many,
        memory::MemoryView,
        policy::View,
        rows::run_cases,
    };

    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use crate::emulate::{emulate, emulated_hosts};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::interpreter::watch_exit(module)?;
        celltrain_run::threads::provide(celltrain_run::threads::Host {
            around: crate::interpreter::around,
            interrupt: crate::interpreter::interrupt,
            withdraw: crate::interpreter::withdraw,
        });
        celltrain_core::policy::python::provide(Box::new(crate::policy::Classes));
        celltrain_core::memory::python::provide(Box::new(crate::memory::Classes));
        celltrain_scenario::stack::python::provide(crate::stack::check);
        celltrain_run::hosting::python::provide(crate::stack::make);
        if let Some(commit) = option_env!("CELLTRAIN_COMMIT") {
            celltrain_run::answer::Build::identify(commit);
        }
        module.add("REQUESTS_NEEDED", celltrain_run::expressions::NEEDED.to_vec())?;
        module.add("__version__", celltrain_run::answer::Build::release())
    }
}

/// Returns the version, the commit, and whether the core was compiled with optimisation.
#[pyfunction]
fn build(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let build = Build::this();
    let dict = PyDict::new(py);
    dict.set_item("version", build.version)?;
    dict.set_item("commit", build.commit)?;
    dict.set_item("profile", build.profile)?;
    Ok(dict)
}

/// Returns the JSON Schema of a scenario.
#[pyfunction]
fn schema() -> String {
    celltrain_scenario::scenario::schema().to_string()
}

/// Checks a buffer policy, given as the valid JSON of a port's `policy`, against the rules for all buffer policies.
#[pyfunction]
fn conformance(py: Python<'_>, policy: &str, seed: u64) -> PyResult<String> {
    interpreter::detach(py, || describe::conformance(policy, seed)).map_err(|error| Failure(error).into())
}

/// Checks a memory policy, given as the valid JSON of a pool's `policy`, against the rules for all memory policies.
#[pyfunction]
fn memory_conformance(py: Python<'_>, policy: &str, seed: u64) -> PyResult<String> {
    interpreter::detach(py, || describe::memory_conformance(policy, seed)).map_err(|error| Failure(error).into())
}

/// Returns every measure of answers and series by table, each measure with its name, kind, unit and meaning.
#[pyfunction]
fn measures() -> String {
    tables::described_all().to_string()
}

/// Returns the names and versions of the real transport stacks in this build.
#[pyfunction]
fn stacks() -> Vec<(&'static str, &'static str)> {
    VERSIONS.to_vec()
}

/// Reads a scenario in TOML. Returns its case (None if the scenario is refused) and a report of faults and warnings.
#[pyfunction]
#[pyo3(signature = (text, source, cancel=None))]
fn parse(py: Python<'_>, text: &str, source: &str, cancel: Option<Py<Cancel>>) -> PyResult<(Option<Case>, String)> {
    read(py, source, cancel, |reader| reader.toml(text))
}

/// Reads a scenario in JSON, as `parse` does.
#[pyfunction]
#[pyo3(signature = (text, source, cancel=None))]
fn parse_json(
    py: Python<'_>,
    text: &str,
    source: &str,
    cancel: Option<Py<Cancel>>,
) -> PyResult<(Option<Case>, String)> {
    read(py, source, cancel, |reader| reader.json(text))
}

fn read(
    py: Python<'_>,
    source: &str,
    cancel: Option<Py<Cancel>>,
    by: impl Fn(Reader<'_>) -> Result<Reading, Interrupted> + Sync,
) -> PyResult<(Option<Case>, String)> {
    let read = |token: &CancellationToken<'_>| reading::read(source, machine(), token, &by);
    cancel::watched(py, cancel.as_ref(), |token| Ok(Case::of_reading(read(token)?)))
}

/// Converts a TOML text to JSON, with the line of every key.
#[pyfunction]
fn toml(text: &str, source: &str) -> String {
    describe::document(Document::from_toml(text), source).to_string()
}

/// Returns the error in a threshold given as JSON; `None` if the threshold is valid.
#[pyfunction]
fn threshold(json: &str) -> Option<String> {
    read_threshold(json).err()
}

/// Parses a threshold. Parsing happens in two steps, so that an error does not contain a position in the JSON.
fn read_threshold(json: &str) -> Result<Threshold, String> {
    let value = serde_json::from_str(json).map_err(|_| format!("is not {EXPECTED}"))?;
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// Returns the text of a file shipped with the package.
#[pyfunction]
fn data(path: &str) -> Option<&'static str> {
    shipped::text(path)
}

/// Returns the paths of the shipped files that begin with `prefix`.
#[pyfunction]
fn data_names(prefix: &str) -> Vec<String> {
    shipped::names(prefix)
}

/// Returns the number of bytes that this process may still use; `None` if unknown.
#[pyfunction]
fn memory_limit() -> Option<u64> {
    machine().memory
}

/// Returns the complete scenarios of the benchmarks.
#[pyfunction]
fn bench_cases() -> String {
    let row = |case: &celltrain_bench::Case| {
        json!({
            "scenario": case.name,
            "title": case.title,
            "duration_s": case.duration_s(),
            "toml": case.toml(),
        })
    };
    let cases = celltrain_bench::all();
    // The text of a scenario is written only on demand. For other groups, the text would be long.
    let whole = cases.iter().filter(|case| case.group == celltrain_bench::Group::Whole);
    json!(whole.map(row).collect::<Vec<_>>()).to_string()
}

/// Runs a benchmark scenario `times` times. Returns the measurements of the fastest run.
#[pyfunction]
fn measure(py: Python<'_>, scenario: &str, engine: &str, times: u32) -> PyResult<String> {
    let engine = engine_named(engine)?;
    let unknown = || PyValueError::new_err(format!("{scenario:?} is not a benchmark's scenario"));
    let case = celltrain_bench::named(scenario).ok_or_else(unknown)?;
    Ok(interpreter::detach(py, || {
        json!(celltrain_bench::measure(&case, engine, (celltrain_core::engine::PortMode::Planned, 1), times.max(1)))
            .to_string()
    }))
}

fn engine_named(name: &str) -> PyResult<Engine> {
    let names = Engine::ALL.map(Engine::name).join(", ");
    Engine::named(name)
        .ok_or_else(|| PyValueError::new_err(format!("{name:?} is not an engine; it must be one of {names}")))
}

/// The reason why a run has no result, to be raised as a `ScenarioError`. For a refused scenario, the text of the error
/// is the JSON report of [`parse_json`].
struct Failure(Unfinished);

impl From<Failure> for PyErr {
    fn from(Failure(unfinished): Failure) -> Self {
        let text = unfinished.to_string();
        interpreter::attach(|py| {
            py.import("celltrain.errors")
                .and_then(|errors| errors.getattr("ScenarioError")?.call_method1("of_refusal", (text,)))
                .map_or_else(|error| error, PyErr::from_value)
        })
    }
}

fn arrays(py: Python<'_>, recorded: Recorded) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    let rows = recorded.time_s.len();
    dict.set_item("time_s", recorded.time_s.into_pyarray(py))?;
    dict.set_item("occupancy_columns", recorded.occupancy_columns)?;
    for (name, names) in recorded.names {
        dict.set_item(name, names)?;
    }
    for (name, values) in recorded.arrays {
        match values {
            Array::Counts(values) => dict.set_item(name, matrix(py, rows, values)?)?,
            Array::Bytes(values) => dict.set_item(name, matrix(py, rows, values)?)?,
            Array::Numbers(values) => dict.set_item(name, matrix(py, rows, values)?)?,
        }
    }
    Ok(dict)
}

/// Converts the records of requests to arrays and lists of names.
fn columns(py: Python<'_>, records: Records) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (name, names) in [("groups", records.groups), ("nodes", records.nodes), ("vcs", records.vcs)] {
        dict.set_item(name, names)?;
    }
    for (name, indices) in [
        ("group", records.group),
        ("from", records.from),
        ("to", records.to),
        ("data_vc", records.data_vc),
        ("ack_vc", records.ack_vc),
    ] {
        dict.set_item(name, indices.into_pyarray(py))?;
    }
    for (name, counts) in [
        ("number", records.number),
        ("query", records.query),
        ("bytes", records.bytes),
        ("segments_sent", records.segments_sent),
        ("retransmitted_segments", records.retransmitted_segments),
        ("timeouts", records.timeouts),
    ] {
        dict.set_item(name, counts.into_pyarray(py))?;
    }
    for (name, numbers) in
        [("opened_s", records.opened_s), ("completed_s", records.completed_s), ("slowdown", records.slowdown)]
    {
        dict.set_item(name, numbers.into_pyarray(py))?;
    }
    Ok(dict)
}

fn matrix<T: numpy::Element>(py: Python<'_>, rows: usize, values: Vec<T>) -> PyResult<Bound<'_, PyArray2<T>>> {
    let columns = values.len().checked_div(rows).unwrap_or(0);
    let array = Array2::from_shape_vec((rows, columns), values).map_err(|e| PyValueError::new_err(e.to_string()))?;
    Ok(array.into_pyarray(py))
}
