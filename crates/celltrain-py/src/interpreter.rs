//! Attaching threads to the Python interpreter, so that a process can exit during a run.
//!
//! A daemon thread may be in a run when the interpreter finalizes. Until Python 3.14, `CPython` ends such a thread where it
//! next waits for the interpreter, by unwinding its stack. The stack has Rust frames here, so the process would abort.
//! Therefore every thread of ours attaches through [`attach`] and [`detach`]. After [`on_exit`] has run, both park the
//! thread for good instead of waiting for the interpreter. `docs/stopping.md` says what this cannot promise.

use std::cell::Cell;
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// Threads that are attached or about to attach: they run or wait for Python below frames of Rust.
static CALLS: Gate = Gate::new();
/// Threads of Python with work that must not be cut short: [`AwaitedAtExit`].
static WORK: Gate = Gate::new();
/// The thread that finalizes the interpreter. It is never parked.
static FINALIZER: OnceLock<ThreadId> = OnceLock::new();

thread_local! {
    /// Passages of [`CALLS`] by this thread: more than one if a callback calls the core again.
    static OWN: Cell<usize> = const { Cell::new(0) };
}

/// Time that threads inside a gate get to leave it at exit.
const PATIENCE: Duration = Duration::from_secs(5);

/// Attaches this thread to the interpreter for `f`. Parks it if the process exits.
pub(crate) fn attach<R>(f: impl FnOnce(Python<'_>) -> R) -> R {
    let _call = Call::new();
    Python::attach(f)
}

/// Does work without the interpreter, and attaches again. Parks the thread if the process exits meanwhile.
pub(crate) fn detach<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    let mut call = None;
    let slot = &mut call;
    py.detach(move || {
        // The thread attaches again even after a panic of the work.
        let _before_attaching = OnDrop(move || *slot = Some(Call::new()));
        work()
    })
}

/// Returns whether the process exits. Only the thread that finalizes the interpreter learns of it: others are parked. A
/// run that it started could not call Python from its threads.
pub(crate) fn is_exiting() -> bool {
    CALLS.closed.load(Ordering::SeqCst)
}

/// Registers [`on_exit`] with `atexit`.
pub(crate) fn watch_exit(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let handler = wrap_pyfunction!(on_exit, module)?;
    let register = module.py().import("atexit")?.getattr("register")?;
    register.call1((handler, process::id())).map(drop)
}

/// Parks threads from now on instead of attaching them, and waits for callbacks under way. Then does the same for work
/// of Python's threads, which such a callback may wait for.
#[pyfunction]
fn on_exit(py: Python<'_>, process: u32) {
    // A forked process has none of the threads that were counted.
    if process != process::id() {
        return;
    }
    FINALIZER.get_or_init(|| thread::current().id());
    py.detach(|| {
        CALLS.close(OWN.get());
        WORK.close(0);
    });
}

/// Counts the threads inside, and parks those that arrive after it is closed.
struct Gate {
    closed: AtomicBool,
    inside: AtomicUsize,
}

impl Gate {
    const fn new() -> Self {
        Self { closed: AtomicBool::new(false), inside: AtomicUsize::new(0) }
    }

    /// Enters, unless it is closed; returns whether it did.
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

    /// Closes, and waits until no more than `own` passages are left.
    fn close(&self, own: usize) {
        self.closed.store(true, Ordering::SeqCst);
        let start = Instant::now();
        while self.inside.load(Ordering::SeqCst) > own && start.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A passage of [`CALLS`].
struct Call;

impl Call {
    /// Enters, or parks the thread; its earlier passages then no longer count.
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

/// Work on a daemon thread of Python that the process finishes before it exits, in a `with` statement: libraries that
/// call Python from C++ abort if they are cut short.
#[pyclass(frozen, module = "celltrain._core")]
pub(crate) struct AwaitedAtExit;

#[pymethods]
impl AwaitedAtExit {
    #[new]
    fn new() -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "a context manager's method")]
    fn __enter__(&self, py: Python<'_>) {
        if !WORK.enter() {
            py.detach(|| park());
        }
    }

    #[pyo3(signature = (*_raised))]
    #[expect(clippy::unused_self, reason = "a context manager's method")]
    fn __exit__(&self, _raised: &Bound<'_, pyo3::types::PyTuple>) {
        WORK.leave();
    }
}

/// Keeps this thread until the process ends.
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
