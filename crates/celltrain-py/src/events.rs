//! Events of a run for Python: blocks of rows as arrays.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use celltrain_core::units::Duration;
use celltrain_run::events::{Block, Choice, Values, name_of};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::{Failure, interpreter};

/// Event options from Python: kinds of events; ports, VCs and flows (None for all); a time window such as `1.2s:1.3s`.
#[derive(FromPyObject)]
pub(crate) struct Asked(Vec<String>, Option<Vec<String>>, Option<Vec<String>>, Option<Vec<String>>, Option<String>);

impl Asked {
    /// Converts the options to a [`Choice`] for a run of `duration`.
    pub(crate) fn choice(self, duration: Duration) -> Result<Choice, Failure> {
        let Self(kinds, ports, vcs, flows, window) = self;
        Choice::new(duration, &kinds, [ports, vcs, flows], window.as_deref()).map_err(|wrong| Failure(wrong.into()))
    }
}

/// A Python function that receives blocks: blocks of events as the name of their kind with columns, and blocks of a
/// capture as bytes. The run ends if the function raises an exception.
pub(crate) struct Sink<'a> {
    call: &'a Py<PyAny>,
    raised: Mutex<Option<PyErr>>,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(call: &'a Py<PyAny>) -> Self {
        Self { call, raised: Mutex::new(None) }
    }

    /// Delivers a block of events. Returns whether the run continues. If the run must end, sets `stopped`.
    pub(crate) fn take(&self, block: Block, stopped: &AtomicBool) -> bool {
        self.handed(stopped, |py| self.call.call1(py, (name_of(block.kind), columns(py, block)?)))
    }

    /// Delivers a block of bytes of a capture, and sets `stopped` like [`Self::take`].
    pub(crate) fn take_bytes(&self, bytes: &[u8], stopped: &AtomicBool) -> bool {
        self.handed(stopped, |py| self.call.call1(py, (PyBytes::new(py, bytes),)))
    }

    fn handed(&self, stopped: &AtomicBool, hand: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>) -> bool {
        match interpreter::attach_uninterrupted(|py| hand(py).map(drop)) {
            Ok(()) => true,
            Err(error) => {
                self.raised.lock().expect("no thread panics while it holds the lock").get_or_insert(error);
                stopped.store(true, Ordering::Relaxed);
                false
            }
        }
    }

    /// Returns the exception that the Python function raised; `None` if it raised no exception.
    pub(crate) fn raised(self) -> Option<PyErr> {
        self.raised.into_inner().expect("no thread panics while it holds the lock")
    }
}

/// Converts each column of a block to an array, paired with the column's list of words, or with None for a column
/// without words.
fn columns(py: Python<'_>, block: Block) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for values in block.columns {
        let none = py.None().into_bound(py);
        let column = match values {
            Values::Numbers(values) => PyTuple::new(py, [values.into_pyarray(py).into_any(), none])?,
            Values::Counts(values) => PyTuple::new(py, [values.into_pyarray(py).into_any(), none])?,
            Values::Flags(values) => PyTuple::new(py, [values.into_pyarray(py).into_any(), none])?,
            Values::Words(values, words) => {
                let words = PyList::new(py, words.iter())?.into_any();
                PyTuple::new(py, [values.into_pyarray(py).into_any(), words])?
            }
        };
        list.append(column)?;
    }
    Ok(list)
}
