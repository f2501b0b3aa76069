//! Memory policies written as Python classes. Calls of a memory policy are forwarded from the core to the Python
//! interpreter.
//!
//! The Python module `celltrain.model.python_classes` finds the class of a policy and creates its objects.

use celltrain_core::error::Fault;
use celltrain_core::memory::python::{Config, Interpreter, Methods, Object, can_lose};
use celltrain_core::memory::{PoolInfo, PoolQueue, QueueEnd, View};
use celltrain_core::rng::Stream;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::interpreter;
use crate::policy::{MODULE, failed, faults, seconds, settings};

/// Access to memory policy classes in the Python interpreter that loaded this module.
pub(crate) struct Classes;

impl Interpreter for Classes {
    fn check(&self, config: &Config) -> Vec<Fault> {
        interpreter::attach(|py| faults(py, "memory", &config.class, &config.settings))
    }

    fn methods(&self, config: &Config) -> Methods {
        let found: PyResult<(bool, bool, Option<String>)> =
            interpreter::attach(|py| py.import(MODULE)?.call_method1("methods", (&config.class,))?.extract());
        // The check of the scenario reports an unknown class as a fault.
        let Ok((on_arrival, on_departure, push_out)) = found else { return Methods::default() };
        let push_out = push_out.and_then(|end| serde_json::from_value(end.into()).ok());
        Methods { on_arrival, on_departure, push_out }
    }

    fn object(&self, config: &Config, pool: &PoolInfo<'_>) -> Box<dyn Object> {
        let units_per_second = pool.clock.units_per_second as f64;
        let made = interpreter::attach(|py| {
            let queue = |queue: &celltrain_core::memory::QueueInfo| {
                (queue.port, queue.priority, units_per_second / queue.cell_time.0.max(1) as f64)
            };
            let queues: Vec<(u32, u8, f64)> = pool.queues.iter().map(queue).collect();
            let given = ("memory", &config.class, settings(py, &config.settings)?, (pool.name, pool.cells, queues));
            let made = py.import(MODULE)?.call_method1("made", given)?;
            let view = Py::new(py, MemoryView::new(pool))?;
            Ok::<_, PyErr>((made.unbind(), view))
        });
        match made {
            Ok((object, view)) => {
                let end = self.methods(config).push_out.unwrap_or(QueueEnd::Tail);
                let (name, pool) = (config.class.clone(), pool.name.to_string());
                Box::new(Class { name, pool, object, view, end, units_per_second, has_failed: false })
            }
            Err(error) => {
                let call = format!("{} cannot be created for the pool {}", config.class, pool.name);
                interpreter::attach(|py| failed(py, &call, &error));
                Box::new(Nothing)
            }
        }
    }
}

/// Placeholder for a policy object that could not be created. The run ends at its next check for cancellation.
struct Nothing;

impl Object for Nothing {
    fn admit(&mut self, _view: &View<'_>, _queue: PoolQueue, _cells: u32) -> bool {
        true
    }

    fn on_arrival(&mut self, _view: &View<'_>, _queue: PoolQueue, _cells: u32) {}

    fn on_departure(&mut self, _view: &View<'_>, _queue: PoolQueue) {}

    fn push_out(&mut self, _view: &View<'_>, _queue: PoolQueue, _cells: u32) -> Option<PoolQueue> {
        None
    }
}

/// An object of a memory policy class, which serves one pool.
struct Class {
    name: String,
    /// The pool that the object serves, for error messages.
    pool: String,
    object: Py<PyAny>,
    view: Py<MemoryView>,
    end: QueueEnd,
    units_per_second: f64,
    has_failed: bool,
}

impl Class {
    /// Calls a method of the policy object. `read` converts the method's answer, or returns the error in the answer. An
    /// error is stored for the caller of the run. After an error, the object is not called again, and `otherwise` is
    /// returned instead.
    fn call<T>(
        &mut self,
        method: &str,
        (view, queue, cells): (&View<'_>, PoolQueue, u32),
        read: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
        otherwise: T,
    ) -> T {
        if self.has_failed {
            return otherwise;
        }
        let answer = interpreter::attach(|py| {
            let ask = || {
                self.view.try_borrow_mut(py)?.show(view, queue, cells, self.units_per_second);
                let answer = self.object.bind(py).call_method1(method, (&self.view, queue.number()))?;
                read(&answer)
            };
            ask().map_err(|error| {
                let at = seconds(view.now, self.units_per_second);
                let call = format!("{}.{method}(view, {}) for {} at {at} s", self.name, queue.number(), self.pool);
                failed(py, &call, &error);
            })
        });
        answer.unwrap_or_else(|()| {
            self.has_failed = true;
            otherwise
        })
    }
}

impl Object for Class {
    fn admit(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) -> bool {
        let read = |answer: &Bound<'_, PyAny>| {
            answer.extract().map_err(|_: PyErr| {
                PyTypeError::new_err(format!("admit returned {}, but must return True or False", shown(answer)))
            })
        };
        self.call("admit", (view, queue, cells), read, true)
    }

    fn on_arrival(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) {
        self.call("on_arrival", (view, queue, cells), |_| Ok(()), ());
    }

    fn on_departure(&mut self, view: &View<'_>, queue: PoolQueue) {
        self.call("on_departure", (view, queue, 0), |_| Ok(()), ());
    }

    fn push_out(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) -> Option<PoolQueue> {
        let end = self.end;
        let read = |answer: &Bound<'_, PyAny>| {
            if answer.is_none() {
                return Ok(None);
            }
            let chosen = answer.extract().ok().map(PoolQueue::new).filter(|&other| can_lose(view, other, queue, end));
            chosen.map(Some).ok_or_else(|| {
                let possible = view.queues.keys().filter(|&other| can_lose(view, other, queue, end));
                let possible: Vec<String> = possible.map(|other| other.number().to_string()).collect();
                PyValueError::new_err(format!(
                    "push_out returned {}, but must return None or the number of a queue that can lose a cell: {}",
                    shown(answer),
                    possible.join(", ")
                ))
            })
        };
        self.call("push_out", (view, queue, cells), read, None)
    }
}

/// Returns a value as Python prints it, shortened.
fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map_or_else(|_| "a value without a repr".into(), |repr| repr.to_string());
    text.chars().take(60).collect()
}

/// The shared part of a pool as a Python policy sees it. The values are updated for each call.
#[pyclass(module = "celltrain._core")]
pub(crate) struct MemoryView {
    /// B: cells of the shared part.
    #[pyo3(get, name = "B")]
    cells: u32,
    /// Q: occupied cells of the shared part, without the arriving cell.
    #[pyo3(get, name = "Q")]
    used: u32,
    /// `q_i`: cells of the shared part in the queue.
    #[pyo3(get, name = "q_i")]
    own: u32,
    /// n: number of queues with cells in the shared part.
    #[pyo3(get, name = "n")]
    active: u32,
    /// N: number of queues in the pool.
    #[pyo3(get, name = "N")]
    number: usize,
    /// Rank of the queue by length: 1 plus the number of longer queues.
    #[pyo3(get)]
    rank: u32,
    /// The priority of the queue.
    #[pyo3(get)]
    priority: u8,
    /// Arriving cells of the queue; 0 when a cell leaves.
    #[pyo3(get)]
    arriving: u32,
    /// Seconds since the start of the run.
    #[pyo3(get)]
    now: f64,
    /// Bytes of a cell.
    #[pyo3(get)]
    cell_size: u64,
    queues: Vec<u32>,
    priorities: Vec<u8>,
    stream: Stream,
}

#[pymethods]
impl MemoryView {
    /// B - Q: free cells of the shared part.
    #[getter]
    fn free(&self) -> u32 {
        self.cells - self.used
    }

    /// Number of cells of each queue in the shared part, indexed by the number of the queue.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, &self.queues)
    }

    /// Returns a random number in [0, 1), drawn from the pool's own stream.
    fn random(&mut self) -> f64 {
        self.stream.unit()
    }
}

impl MemoryView {
    fn new(pool: &PoolInfo<'_>) -> Self {
        Self {
            cells: pool.cells,
            used: 0,
            own: 0,
            active: 0,
            number: pool.queues.len(),
            rank: 1,
            priority: 0,
            arriving: 0,
            now: 0.0,
            cell_size: pool.cell.size,
            queues: vec![0; pool.queues.len()],
            priorities: pool.queues.iter().map(|queue| queue.priority).collect(),
            stream: pool.rng.clone(),
        }
    }

    fn show(&mut self, view: &View<'_>, queue: PoolQueue, arriving: u32, units_per_second: f64) {
        self.used = view.used;
        self.own = view.queues[queue];
        self.active = view.active();
        self.rank = view.rank(queue);
        self.priority = self.priorities[queue.number() as usize];
        self.arriving = arriving;
        self.now = view.now.0 as f64 / units_per_second;
        self.queues.copy_from_slice(&view.queues.raw);
    }
}
