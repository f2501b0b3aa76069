//! Runs work on threads, while the calling thread checks for cancellation and delivers results.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ScopedJoinHandle, ThreadId};
use std::time::{Duration, Instant};

use celltrain_core::cancellation::{CancellationToken, Interrupted};

/// Interval at which the calling thread checks for cancellation, well below the documented limit of 0.1 s.
pub const LOOK: Duration = Duration::from_millis(20);

/// Time that threads have to stop by themselves before their code is interrupted.
const GRACE: Duration = Duration::from_millis(50);

/// An interpreter, such as Python's, whose code may run on the threads.
#[derive(Debug)]
pub struct Host {
    /// Calls the given function, which does all the work of a thread.
    pub around: fn(&mut (dyn FnMut() + Send)),
    /// Interrupts the interpreter's code on a thread. If the thread runs no code of the interpreter now, interrupts the
    /// next such code on the thread. Repeated calls are allowed.
    pub interrupt: fn(ThreadId),
    /// Withdraws an interrupt of this thread that has not interrupted any code yet.
    pub withdraw: fn(),
}

static HOST: OnceLock<Host> = OnceLock::new();
static NEXT: AtomicU64 = AtomicU64::new(0);
/// Runs with a limit of real time, by sequence number.
static DUE: Mutex<BTreeMap<u64, Due>> = Mutex::new(BTreeMap::new());

struct Due {
    thread: ThreadId,
    /// Time at which the interpreter's code on this thread is interrupted.
    at: Instant,
    is_interrupted: bool,
}

/// Sets the interpreter of this process. Later calls have no effect.
pub fn provide(host: Host) {
    let _ = HOST.set(host);
}

/// Interrupts the interpreter's code on this thread if the code is still busy after `limit`. The limit applies until
/// the returned value is dropped. Returns `None` if the process has no interpreter.
pub(crate) fn limited(limit: Duration) -> Option<Limited> {
    HOST.get()?;
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let at = Instant::now().checked_add(limit)?.checked_add(GRACE)?;
    locked().insert(number, Due { thread: thread::current().id(), at, is_interrupted: false });
    Some(Limited(number))
}

/// A time limit that ends when this value is dropped. The field is the limit's number in [`DUE`].
pub(crate) struct Limited(u64);

impl Drop for Limited {
    fn drop(&mut self) {
        let due = locked().remove(&self.0);
        // An interrupt that this limit caused must not affect the next run on the thread.
        if let (Some(Due { is_interrupted: true, .. }), Some(host)) = (due, HOST.get()) {
            (host.withdraw)();
        }
    }
}

fn locked() -> MutexGuard<'static, BTreeMap<u64, Due>> {
    DUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Events reported to the calling thread.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<T> {
    /// The interval [`LOOK`] has passed, so the calling thread should check for cancellation.
    Look,
    /// A work item is finished. The values are its index and its result.
    Done(usize, T),
}

/// Executes work items on threads. Calls `on` on this thread whenever a work item is finished, and regularly in
/// between. If `on` fails, stops the threads before returning.
///
/// # Errors
/// Returns the first error of `on`, or an error if no thread can be started.
pub fn over<T: Send, E: From<io::Error>>(
    (pieces, threads): (usize, usize),
    work: impl Fn(usize, &AtomicBool) -> T + Sync,
    mut on: impl FnMut(Event<T>) -> Result<(), E>,
) -> Result<(), E> {
    on(Event::Look)?;
    let stop = AtomicBool::new(false);
    let next = AtomicUsize::new(0);
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        let mut started = Vec::new();
        for _ in 0..threads.clamp(1, pieces.max(1)) {
            let (sender, stop, next, work) = (sender.clone(), &stop, &next, &work);
            let mut until_none_is_left = move || {
                while !stop.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    // Sending a result fails only if the calling thread has abandoned the work.
                    if index >= pieces || sender.send((index, work(index, stop))).is_err() {
                        break;
                    }
                }
            };
            let all = move || match HOST.get() {
                Some(host) => (host.around)(&mut until_none_is_left),
                None => until_none_is_left(),
            };
            match thread::Builder::new().spawn_scoped(scope, all) {
                Ok(thread) => started.push(thread),
                Err(error) if started.is_empty() => return Err(error.into()),
                // If a further thread cannot be started, the started threads do all the work.
                Err(_) => break,
            }
        }
        drop(sender);
        let outcome = loop {
            let event = match receiver.recv_timeout(LOOK) {
                Ok((index, done)) => Event::Done(index, done),
                Err(RecvTimeoutError::Timeout) => {
                    interrupt_late();
                    Event::Look
                }
                Err(RecvTimeoutError::Disconnected) => break Ok(()),
            };
            if let Err(error) = on(event) {
                break Err(error);
            }
        };
        stop.store(true, Ordering::Relaxed);
        if outcome.is_err() {
            interrupt(&started);
        }
        for thread in started {
            if let Err(panic) = thread.join() {
                resume_unwind(panic);
            }
        }
        outcome
    })
}

/// Interrupts the interpreter's code on threads whose time limit has passed.
fn interrupt_late() {
    let Some(host) = HOST.get() else { return };
    let now = Instant::now();
    // The lock is held so that no run ends between the check of its limit and its interrupt.
    for due in locked().values_mut().filter(|due| due.at < now) {
        due.is_interrupted = true;
        (host.interrupt)(due.thread);
    }
}

/// Waits until all threads have stopped. Interrupts the interpreter's code on threads that do not stop by themselves.
fn interrupt(threads: &[ScopedJoinHandle<'_, ()>]) {
    let Some(host) = HOST.get() else { return };
    let stopped = Instant::now();
    while threads.iter().any(|thread| !thread.is_finished()) {
        thread::sleep(Duration::from_millis(1));
        if stopped.elapsed() > GRACE {
            for thread in threads.iter().filter(|thread| !thread.is_finished()) {
                (host.interrupt)(thread.thread().id());
            }
            thread::sleep(LOOK);
        }
    }
}

/// Does work on this thread, and regularly calls `check`, whose error stops the work.
///
/// # Errors
/// Returns the first error of `check`.
pub fn here<T, E>(
    check: impl Fn() -> Result<(), E>,
    work: impl FnOnce(&CancellationToken<'_>) -> Result<T, Interrupted>,
) -> Result<T, E> {
    check()?;
    let (looked, error) = (Cell::new(Instant::now()), RefCell::new(None));
    let go_on = || {
        if looked.get().elapsed() >= LOOK && error.borrow().is_none() {
            *error.borrow_mut() = check().err();
            looked.set(Instant::now());
        }
        error.borrow().is_none()
    };
    let done = work(&CancellationToken::new(&go_on));
    match (done, error.into_inner()) {
        (_, Some(error)) => Err(error),
        (Ok(done), None) => Ok(done),
        (Err(Interrupted), None) => unreachable!("a computation is interrupted only if it is cancelled"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    /// Works until a stop is requested.
    fn forever(stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            thread::yield_now();
        }
    }

    #[test]
    fn each_work_item_is_processed_once_and_its_result_is_delivered_on_the_calling_thread() {
        let (here, mut done) = (thread::current().id(), Vec::new());
        let on = |event| {
            assert_eq!(thread::current().id(), here);
            if let Event::Done(index, square) = event {
                done.push((index, square));
            }
            Ok::<_, io::Error>(())
        };
        over((100, 3), |index, _| index * index, on).unwrap();
        done.sort_unstable();
        assert_eq!(done, (0..100).map(|index| (index, index * index)).collect::<Vec<_>>());
    }

    #[test]
    fn work_items_are_processed_concurrently_on_the_requested_number_of_threads() {
        let all = Barrier::new(3);
        // With fewer threads, the first work item would wait forever for the second.
        let on = |_| Ok::<_, io::Error>(());
        over((3, 3), |_, _| all.wait(), on).unwrap();
        over((0, 3), |_, _| unreachable!("there is no work to do"), |_: Event<()>| Ok::<_, io::Error>(())).unwrap();
    }

    #[test]
    fn after_an_error_on_the_calling_thread_running_work_items_stop_and_none_starts() {
        let begun = AtomicUsize::new(0);
        let work = |index, stop: &AtomicBool| {
            begun.fetch_add(1, Ordering::Relaxed);
            if index > 0 {
                forever(stop);
            }
        };
        let refuse = |event| match event {
            Event::Done(0, ()) => Err(io::Error::other("enough")),
            _ => Ok(()),
        };
        assert_eq!(over((1000, 2), work, refuse).unwrap_err().to_string(), "enough");
        assert!(begun.into_inner() <= 4);
    }

    #[test]
    fn the_calling_thread_polls_for_cancellation_before_and_during_the_work() {
        let mut looks = 0;
        let on = |event| {
            assert_eq!(event, Event::Look);
            looks += 1;
            if looks == 3 { Err(io::Error::other("no")) } else { Ok(()) }
        };
        assert!(over((1, 1), |_, stop| forever(stop), on).is_err());
        assert_eq!(looks, 3);
        let at_once =
            over((1, 1), |_, _| panic!("the work has not started"), |_: Event<()>| Err(io::Error::other("no")));
        assert!(at_once.is_err());
    }

    #[test]
    #[should_panic(expected = "item 1 fails")]
    fn a_panic_in_the_processing_of_a_work_item_is_propagated_to_the_caller() {
        let _ = over((3, 2), |index, _| assert_ne!(index, 1, "item 1 fails"), |_| Ok::<_, io::Error>(()));
    }

    #[test]
    fn work_on_the_calling_thread_ends_with_the_first_error_that_the_polling_callback_returns() {
        let looks = Cell::new(0);
        let check = || {
            looks.set(looks.get() + 1);
            if looks.get() > 2 { Err(looks.get()) } else { Ok(()) }
        };
        let ended = here(check, |token| {
            loop {
                token.check()?;
            }
        });
        assert_eq!(ended, Err::<(), _>(3));
        assert_eq!(here(|| Ok::<_, ()>(()), |token| token.check().map(|()| 7)), Ok(7));
        assert_eq!(here(|| Err::<(), _>(1), |_| Ok(())), Err(1), "cancelled work is not started");
    }
}
