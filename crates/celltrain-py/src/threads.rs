//! Threads that work while the calling thread watches for what ends them, and hands results over.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::cancel::{self, Cancel, LOOK};

/// Runs pieces of work on threads without the interpreter, and looks after them now and then. On a signal, once the handle is
/// cancelled, or when a result is refused, the threads stop before this returns.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    cancel: Option<&Py<Cancel>>,
    (pieces, threads): (usize, usize),
    work: impl Fn(usize, &AtomicBool) -> T + Sync,
    mut deliver: impl FnMut(usize, T) -> PyResult<()>,
    report: impl Fn() -> PyResult<()>,
) -> PyResult<()> {
    cancel::look(py, cancel)?;
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
                Ok((index, done)) => cancel::look(py, cancel).and_then(|()| deliver(index, done)),
                Err(RecvTimeoutError::Timeout) => cancel::look(py, cancel).and_then(|()| report()),
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
