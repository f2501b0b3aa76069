//! Buffer policies written as Python classes. Calls of a policy are forwarded from the core to the Python interpreter.
//!
//! The Python module `celltrain.model.python_classes` finds the class of a policy and creates its objects.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use celltrain_core::error::Fault;
use celltrain_core::index::Label;
use celltrain_core::policy::formula::{PortInfo, WhenFull};
use celltrain_core::policy::python::{Config, Interpreter, Object, Setting};
use celltrain_core::policy::{self};
use celltrain_core::rng::Stream;
use celltrain_core::units::Time;
use celltrain_run::outside;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use serde_json::json;

use crate::interpreter;

/// The Python module that loads users' classes.
pub(crate) const MODULE: &str = "celltrain.model.python_classes";

/// Access to buffer policy classes in the Python interpreter that loaded this module.
pub(crate) struct Classes;

impl Interpreter for Classes {
    fn check(&self, config: &Config) -> Vec<Fault> {
        interpreter::attach(|py| faults(py, "port", &config.class, &config.settings))
    }

    fn when_full(&self, config: &Config) -> Option<WhenFull> {
        let said: PyResult<Option<String>> =
            interpreter::attach(|py| py.import(MODULE)?.call_method1("when_full", (&config.class,))?.extract());
        // The check of the scenario reports an unknown value as a fault of the class.
        said.ok().flatten().and_then(|said| serde_json::from_value(said.into()).ok())
    }

    fn object(&self, config: &Config, port_info: &PortInfo<'_>, vcs: &[String]) -> Box<dyn Object> {
        let units_per_second = port_info.clock.units_per_second as f64;
        let capacity = port_info.capacity.filter(|&capacity| capacity != u32::MAX);
        let made = interpreter::attach(|py| {
            let port = (capacity, port_info.cells_per_second, PyTuple::new(py, vcs)?);
            let admit = py
                .import(MODULE)?
                .call_method1("made", ("port", &config.class, settings(py, &config.settings)?, port))?;
            let view = Py::new(py, View::new(capacity, port_info.cells_per_second, vcs.len()))?;
            Ok::<_, PyErr>((admit.unbind(), view))
        });
        match made {
            Ok((admit, view)) => Box::new(Class {
                name: config.class.clone(),
                port: port_info.name.to_string(),
                vcs: vcs.to_vec(),
                admit,
                view,
                units_per_second,
                has_failed: false,
            }),
            Err(error) => {
                let call = format!("{} cannot be created for the port {}", config.class, port_info.name);
                interpreter::attach(|py| failed(py, &call, &error));
                Box::new(Nothing)
            }
        }
    }
}

/// Returns the faults of a user's class and its settings. `kind` is "port", "memory" or "stack".
pub(crate) fn faults(py: Python<'_>, kind: &str, class: &str, own: &BTreeMap<String, Setting>) -> Vec<Fault> {
    let found = settings(py, own).and_then(|settings| {
        let faults = py.import(MODULE)?.call_method1("faults", (kind, class, settings))?;
        faults.extract::<Vec<(String, String, String)>>()
    });
    match found {
        Ok(faults) => faults.into_iter().map(|(key, value, problem)| Fault::new(key, value, problem)).collect(),
        Err(error) => vec![Fault::new("class", format!("\"{class}\""), format!("cannot be used: {error}"))],
    }
}

/// Converts the settings of a user's class to a Python dictionary.
pub(crate) fn settings<'py>(py: Python<'py>, own: &BTreeMap<String, Setting>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, setting) in own {
        match setting {
            Setting::Truth(value) => dict.set_item(name, value)?,
            Setting::Whole(value) => dict.set_item(name, value)?,
            Setting::Number(value) => dict.set_item(name, value)?,
            Setting::Text(value) => dict.set_item(name, value)?,
        }
    }
    Ok(dict)
}

/// The latest call of a user's class that an interrupt ended, with the call's traceback.
static INTERRUPTED: Mutex<Option<String>> = Mutex::new(None);

/// Returns the call of a user's class that an interrupt ended since this function was last called, with the call's
/// traceback.
pub(crate) fn take_interrupted() -> Option<String> {
    INTERRUPTED.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Records an exception raised by a user's class. In the recorded text, a line with the name of the call precedes the
/// traceback.
pub(crate) fn failed(py: Python<'_>, call: &str, error: &PyErr) {
    let traceback: Vec<String> = interpreter::attach_uninterrupted(|py| {
        py.import(MODULE)
            // Before Python 3.12, the exception value alone has no traceback.
            .and_then(|module| module.call_method1("traceback_of", (error.clone_ref(py).into_value(py),)))
            .and_then(|lines| lines.extract())
            .unwrap_or_default()
    });
    if error.is_instance_of::<PyKeyboardInterrupt>(py) {
        let lines = [&[format!("during {call}:")], &*traceback].concat().join("\n");
        INTERRUPTED.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(lines);
    }
    let message = format!("{call}: {error}");
    let fault = json!({
        "file": "", "line": null, "key": "", "value": "", "problem": message, "message": message, "excerpt": traceback,
    });
    outside::fail(json!({"faults": [fault], "warnings": []}).to_string());
}

/// Returns a time in seconds as text.
pub(crate) fn seconds(at: Time, units_per_second: f64) -> String {
    // Nine decimals show nanoseconds.
    let seconds = format!("{:.9}", at.0 as f64 / units_per_second);
    seconds.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// Placeholder for a policy object that could not be created. The run ends at its next check for cancellation.
struct Nothing;

impl Object for Nothing {
    fn admit(&mut self, _buffer: &policy::View<'_>, _vc: Label, _rng: &mut Stream) -> bool {
        true
    }
}

/// An object of a buffer policy class, which serves one port.
struct Class {
    name: String,
    /// Name of the port that the object serves, for error messages.
    port: String,
    /// Names of the VCs at the port by label, for error messages.
    vcs: Vec<String>,
    /// The bound method `admit` of the object.
    admit: Py<PyAny>,
    view: Py<View>,
    units_per_second: f64,
    has_failed: bool,
}

impl Object for Class {
    fn admit(&mut self, buffer: &policy::View<'_>, vc: Label, rng: &mut Stream) -> bool {
        if self.has_failed {
            return true;
        }
        interpreter::attach(|py| match self.answer(py, buffer, vc, rng) {
            Ok(admitted) => admitted,
            Err(error) => {
                let seconds = seconds(buffer.now, self.units_per_second);
                let of = self.vcs.get(vc.number() as usize).map_or("", String::as_str);
                let call = format!("{}.admit(view, {}) for {of} at {}, {seconds} s", self.name, vc.number(), self.port);
                failed(py, &call, &error);
                self.has_failed = true;
                true
            }
        })
    }
}

impl Class {
    fn answer(&self, py: Python<'_>, buffer: &policy::View<'_>, vc: Label, rng: &mut Stream) -> PyResult<bool> {
        self.view.try_borrow_mut(py)?.show(buffer, vc, self.units_per_second, rng);
        let answer = self.admit.call1(py, (&self.view, vc.number()))?;
        *rng = self.view.try_borrow(py)?.stream.clone();
        answer.extract(py).map_err(|_| {
            let kind = answer.bind(py).get_type().name().map_or_else(|_| String::new(), |name| name.to_string());
            pyo3::exceptions::PyTypeError::new_err(format!("admit returned {kind}, but must return True or False"))
        })
    }
}

/// The buffer of a port as a Python policy sees it during a decision. The values are updated for each frame.
#[pyclass(module = "celltrain._core")]
pub(crate) struct View {
    /// X: number of waiting cells, without the arriving cell and the cell in service.
    #[pyo3(get, name = "X")]
    occupancy: u32,
    /// K: places for waiting cells; None if the buffer is unlimited.
    #[pyo3(get, name = "K")]
    capacity: Option<u32>,
    /// Y: waiting cells of the frame's VC.
    #[pyo3(get, name = "Y")]
    of_vc: u32,
    /// N: number of VCs with at least one waiting cell.
    #[pyo3(get, name = "N")]
    active_vcs: u32,
    /// N: number of VCs that cross the port.
    #[pyo3(get, name = "V")]
    vcs: usize,
    /// The rate of the port's link, in cells per second.
    #[pyo3(get, name = "C")]
    cells_per_second: f64,
    /// Seconds since the start of the run.
    #[pyo3(get)]
    now: f64,
    /// True if the frame is tagged (CLP = 1).
    #[pyo3(get)]
    tagged: bool,
    per_vc: Vec<u32>,
    stream: Stream,
}

#[pymethods]
impl View {
    /// Number of waiting cells of each VC, indexed by the VC's number at the port.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.per_vc)
    }

    /// Returns a random number in [0, 1), drawn from the port's own stream.
    fn random(&mut self) -> f64 {
        self.stream.unit()
    }
}

impl View {
    fn new(capacity: Option<u32>, cells_per_second: f64, vcs: usize) -> Self {
        Self {
            occupancy: 0,
            capacity,
            of_vc: 0,
            active_vcs: 0,
            vcs,
            cells_per_second,
            now: 0.0,
            tagged: false,
            per_vc: vec![0; vcs],
            stream: Stream::new(0, "the view is refilled before each call"),
        }
    }

    fn show(&mut self, buffer: &policy::View<'_>, vc: Label, units_per_second: f64, rng: &Stream) {
        self.occupancy = buffer.occupancy;
        self.of_vc = buffer.per_vc[vc];
        self.active_vcs = buffer.active_vcs;
        self.now = buffer.now.0 as f64 / units_per_second;
        self.tagged = buffer.tagged;
        self.per_vc.copy_from_slice(&buffer.per_vc.raw);
        self.stream = rng.clone();
    }
}
