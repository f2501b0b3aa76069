//! Attaches threads to the Python interpreter so that the process can exit safely during a run.
//!
//! A daemon thread may be in a run when the interpreter finalizes. Before Python 3.14, `CPython` ends a daemon thread
//! the next time the thread waits for the interpreter, by unwinding the thread's stack. During a run, the stack
//! contains Rust frames, so the process would abort. Therefore all threads of celltrain use [`attach`] and [`detach`].
//! After [`on_exit`] has run, these functions block the thread until the process ends, instead of waiting for the
//! interpreter. `docs/stopping.md` lists what this cannot guarantee.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_long;
use std::mem;
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::ffi;
use pyo3::prelude::*;

/// Gate for threads that are attached to the interpreter, or about to attach, with Rust frames on their stack.
static CALLS: Gate = Gate::new();
/// Gate for Python threads whose work must finish before the process exits: [`AwaitedAtExit`].
static WORK: Gate = Gate::new();
/// The thread that finalizes the interpreter. This thread is never parked.
static FINALIZER: OnceLock<ThreadId> = OnceLock::new();

thread_local! {
    /// Number of entries of this thread into [`CALLS`]. The number exceeds one if a callback calls the core again.
    static OWN: Cell<usize> = const { Cell::new(0) };
}

/// Maximum time to wait at exit for threads to leave a gate.
const PATIENCE: Duration = Duration::from_secs(5);

/// Attaches this thread to the interpreter to call `f`. Parks the thread if the process is exiting.
pub(crate) fn attach<R>(f: impl FnOnce(Python<'_>) -> R) -> R {
    let _call = Call::new();
    Python::attach(f)
}

/// Runs the work of a thread that calls Python from time to time. The thread keeps its Python thread state between
/// these calls, because creating a thread state takes longer than most callbacks.
pub(crate) fn around(work: &mut (dyn FnMut() + Send)) {
    let call = Call::new();
    Python::attach(move |py| {
        let number = py.import("threading").and_then(|module| module.call_method0("get_ident"));
        let number = number.and_then(|number| number.extract());
        let thread = thread::current().id();
        if let Ok(number) = number {
            threads().insert(thread, Worker { number, is_interrupted: false });
        }
        detach(py, move || {
            drop(call);
            work();
        });
        let worker = threads().remove(&thread);
        if let Some(Worker { number, is_interrupted: true }) = worker {
            absorb(py, number);
        }
    });
}

/// Raises `KeyboardInterrupt` in the Python code that a thread runs, if the thread is in [`around`].
pub(crate) fn interrupt(thread: ThreadId) {
    attach(|py| {
        // Hold the lock until the exception is set, so that the thread cannot end before.
        if let Some(worker) = threads().get_mut(&thread) {
            worker.is_interrupted = true;
            set_exception(py, worker.number, true);
        }
    });
}

/// Withdraws an [`interrupt`] of this thread whose exception has not been raised yet.
pub(crate) fn withdraw() {
    attach(|py| {
        let thread = thread::current().id();
        let worker = threads().get_mut(&thread).map(|worker| (worker.number, mem::take(&mut worker.is_interrupted)));
        if let Some((number, true)) = worker {
            absorb(py, number);
        }
    });
}

/// Attaches this thread to the interpreter to call `f`. [`interrupt`] must not interrupt `f`, because it writes files.
pub(crate) fn attach_uninterrupted<R>(f: impl FnOnce(Python<'_>) -> R) -> R {
    let thread = thread::current().id();
    attach(|py| {
        let worker = threads().remove(&thread);
        // Withdraw an earlier interrupt, which would otherwise be raised in `f`. The sender of interrupts repeats them
        // until the thread has stopped.
        if let Some(Worker { number, is_interrupted: true }) = worker {
            absorb(py, number);
        }
        let result = f(py);
        if let Some(Worker { number, .. }) = worker {
            threads().insert(thread, Worker { number, is_interrupted: false });
        }
        result
    })
}

/// Raises the exception of an [`interrupt`] in code that does nothing, so that no other code of this thread raises it.
///
/// Python 3.11 keeps a flag set if such an exception is replaced by null. Then all code is slower, and code under a
/// profiler never ends.
fn absorb(py: Python<'_>, number: c_long) {
    set_exception(py, number, true);
    if py.eval(c"None", None, None).is_ok() {
        set_exception(py, number, false);
    }
}

/// Sets or withdraws the `KeyboardInterrupt` of a thread, which is given by its number in Python.
fn set_exception(py: Python<'_>, number: c_long, is_raised: bool) {
    let class = py.get_type::<PyKeyboardInterrupt>();
    let exception = if is_raised { class.as_ptr() } else { ptr::null_mut() };
    // SAFETY: the interpreter is attached, and the pointer is an exception class, or null to withdraw it.
    #[expect(unsafe_code, reason = "PyO3 has no safe function that raises an exception in another thread")]
    unsafe {
        ffi::PyThreadState_SetAsyncExc(number, exception)
    };
}

/// A thread in [`around`].
struct Worker {
    /// The thread's number in Python.
    number: c_long,
    /// True if an [`interrupt`] has not been withdrawn.
    is_interrupted: bool,
}

/// The threads in [`around`].
fn threads() -> MutexGuard<'static, HashMap<ThreadId, Worker>> {
    static THREADS: LazyLock<Mutex<HashMap<ThreadId, Worker>>> = LazyLock::new(Mutex::default);
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Detaches this thread from the interpreter, runs `work`, and attaches the thread again. Parks the thread if the
/// process exits while `work` runs.
pub(crate) fn detach<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    let mut call = None;
    let slot = &mut call;
    py.detach(move || {
        // Attach the thread again even if `work` panics.
        let _before_attaching = OnDrop(move || *slot = Some(Call::new()));
        work()
    })
}

/// Returns whether the process is exiting. Only the finalizing thread can get the answer true, because all other
/// threads are parked. Worker threads of a run that the finalizing thread starts could not call Python.
pub(crate) fn is_exiting() -> bool {
    CALLS.closed.load(Ordering::SeqCst)
}

/// Registers [`on_exit`] with Python's module `atexit`.
pub(crate) fn watch_exit(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let handler = wrap_pyfunction!(on_exit, module)?;
    let register = module.py().import("atexit")?.getattr("register")?;
    register.call1((handler, process::id())).map(drop)
}

/// Makes [`attach`] and [`detach`] park threads from now on. Waits first for active callbacks, and then for the work of
/// Python threads that must finish before the process exits.
#[pyfunction]
fn on_exit(py: Python<'_>, process: u32) {
    // Do nothing in a child process after a fork, because the counted threads do not exist in the child process.
    if process != process::id() {
        return;
    }
    FINALIZER.get_or_init(|| thread::current().id());
    py.detach(|| {
        CALLS.close(OWN.get());
        WORK.close(0);
    });
}

/// Counts entries of threads into a part of the program. After the gate is closed, threads that try to enter are turned
/// away.
struct Gate {
    closed: AtomicBool,
    inside: AtomicUsize,
}

impl Gate {
    const fn new() -> Self {
        Self { closed: AtomicBool::new(false), inside: AtomicUsize::new(0) }
    }

    /// Enters the gate if it is open. Returns whether the gate was open.
    fn enter(&self) -> bool {
        self.inside.fetch_add(1, Ordering::SeqCst);
        let is_open = !self.closed.load(Ordering::SeqCst) || FINALIZER.get() == Some(&thread::current().id());
        if !is_open {
            self.leave();
        }
        is_open
    }

    fn leave(&self) {
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    /// Closes the gate, and waits until at most `own` entries are left.
    fn close(&self, own: usize) {
        self.closed.store(true, Ordering::SeqCst);
        let start = Instant::now();
        while self.inside.load(Ordering::SeqCst) > own && start.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// An entry into [`CALLS`].
struct Call;

impl Call {
    /// Enters [`CALLS`]. If this gate is closed, removes the thread's earlier entries and parks the thread.
    fn new() -> Self {
        if !CALLS.enter() {
            (0..OWN.take()).for_each(|_| CALLS.leave());
            park();
        }
        OWN.set(OWN.get().saturating_add(1));
        Self
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        OWN.set(OWN.get().saturating_sub(1));
        CALLS.leave();
    }
}

/// Context manager for work on a Python daemon thread that must finish before the process exits. A library that calls
/// Python from C++ aborts the process if it is interrupted.
#[pyclass(frozen, module = "celltrain._core")]
pub(crate) struct AwaitedAtExit;

#[pymethods]
impl AwaitedAtExit {
    #[new]
    fn new() -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "Python requires this signature for a context manager")]
    fn __enter__(&self, py: Python<'_>) {
        if !WORK.enter() {
            py.detach(|| park());
        }
    }

    #[pyo3(signature = (*_raised))]
    #[expect(clippy::unused_self, reason = "Python requires this signature for a context manager")]
    fn __exit__(&self, _raised: &Bound<'_, pyo3::types::PyTuple>) {
        WORK.leave();
    }
}

/// Blocks this thread until the process ends.
fn park() -> ! {
    loop {
        thread::park();
    }
}

struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
