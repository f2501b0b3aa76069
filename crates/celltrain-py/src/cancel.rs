//! Cancellation of long calls from Python: by Ctrl-C on the main thread, or by a handle from any thread.

use std::sync::atomic::{AtomicBool, Ordering};

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_run::threads;
use pyo3::prelude::*;

use crate::{interpreter, policy};

pyo3::import_exception!(celltrain.errors, CancelledError);

/// A handle that cancels the calls to which it was passed.
#[pyclass(frozen, module = "celltrain._core")]
pub(crate) struct Cancel {
    cancelled: AtomicBool,
}

#[pymethods]
impl Cancel {
    #[new]
    fn new() -> Self {
        Self { cancelled: AtomicBool::new(false) }
    }

    /// Cancels the calls to which this handle was passed. Any thread may call this method.
    fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    #[getter]
    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// Raises an exception if a call must end: `KeyboardInterrupt` after Ctrl-C, and `CancelledError` after the call's
/// handle was cancelled or when the process exits.
pub(crate) fn check(py: Python<'_>, cancel: Option<&Py<Cancel>>) -> PyResult<()> {
    py.check_signals()?;
    if interpreter::is_exiting() {
        return Err(CancelledError::new_err("cancelled: the process exits"));
    }
    match cancel {
        Some(handle) if handle.get().cancelled() => Err(CancelledError::new_err("cancelled")),
        _ => Ok(()),
    }
}

/// Calls `work` with the interpreter detached. If `work` was interrupted in a call of a Python class, adds the name of
/// the call to the exception.
pub(crate) fn noted<T: Send>(py: Python<'_>, work: impl FnOnce() -> PyResult<T> + Send) -> PyResult<T> {
    drop(policy::take_interrupted());
    interpreter::detach(py, work).inspect_err(|error| {
        if let Some(call) = policy::take_interrupted() {
            let added = py
                .import("celltrain.errors")
                .and_then(|errors| errors.call_method1("add_note", (error.value(py), call)));
            // Ignore an error of the note itself, because a second Ctrl-C may interrupt the call that adds it.
            drop(added);
        }
    })
}

/// Runs `work` on the calling thread with the interpreter detached. Attaches the interpreter only to check for
/// cancellation.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    cancel: Option<&Py<Cancel>>,
    work: impl FnOnce(&CancellationToken<'_>) -> Result<T, Interrupted> + Send,
) -> PyResult<T> {
    interpreter::detach(py, || threads::here(|| interpreter::attach(|py| check(py, cancel)), work))
}
