//! What this process may still have of memory, and who of several runs at once has it.

#[cfg(target_family = "wasm")]
mod provided;
#[cfg(not(target_family = "wasm"))]
mod system;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use celltrain_core::footprint::Footprint;

#[cfg(target_family = "wasm")]
pub use provided::allow;
#[cfg(target_family = "wasm")]
use provided::free;
#[cfg(not(target_family = "wasm"))]
use system::free;

use crate::Machine;
use crate::clock::Instant;

/// What runs have of memory, and what there was when none had any.
struct Book {
    runs: u32,
    bytes: u64,
    machine: Machine,
    /// When that was looked up.
    looked: Option<Instant>,
}

static BOOK: Mutex<Book> =
    Mutex::new(Book { runs: 0, bytes: 0, machine: Machine { memory: None, addresses: None }, looked: None });
static GIVEN_BACK: Condvar = Condvar::new();

/// How long a run that waits for memory goes without looking whether it should stop.
const LOOK: Duration = Duration::from_millis(20);
/// How long what was found is good.
const FRESH: Duration = Duration::from_secs(1);

/// What a run of this process may have, were it alone.
pub fn machine() -> Machine {
    look(&mut book())
}

/// Memory that is kept for a run as long as this is there.
pub struct Kept {
    bytes: u64,
}

impl Drop for Kept {
    #[expect(clippy::arithmetic_side_effects, reason = "what was kept is given back")]
    fn drop(&mut self) {
        let mut book = book();
        book.runs -= 1;
        book.bytes -= self.bytes;
        GIVEN_BACK.notify_all();
    }
}

/// Keeps memory for a run, and waits for it while other runs have what it needs; none when it was told to stop
/// meanwhile.
///
/// # Errors
/// With the reason in words, when it would not fit were it alone.
#[expect(clippy::arithmetic_side_effects, reason = "runs at once, and bytes of memory that is there")]
pub fn keep(footprint: &Footprint, stop: &AtomicBool) -> Result<Option<Kept>, String> {
    let mut book = book();
    loop {
        if let Some(free) = look(&mut book).lacks(footprint) {
            return Err(format!("does not fit: {}", footprint.in_words("about", free)));
        }
        let with_others = Footprint { bytes: footprint.bytes.saturating_add(book.bytes), ..*footprint };
        if book.runs == 0 || book.machine.lacks(&with_others).is_none() {
            book.runs += 1;
            book.bytes += footprint.bytes;
            return Ok(Some(Kept { bytes: footprint.bytes }));
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        book = GIVEN_BACK.wait_timeout(book, LOOK).unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// What there was when last no run had any; looking takes as long as a small run, so it is not done for each.
fn look(book: &mut Book) -> Machine {
    if book.runs == 0 && book.looked.is_none_or(|then| then.elapsed() > FRESH) {
        book.machine = free();
        book.looked = Some(Instant::now());
    }
    book.machine
}

fn book() -> MutexGuard<'static, Book> {
    // A run that panics changes nothing here.
    BOOK.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: u64) -> Footprint {
        Footprint { bytes, ..Footprint::default() }
    }

    #[test]
    fn a_run_waits_for_what_others_have_and_one_that_never_fits_is_refused() {
        // Whichever leaves less: the tests may run under a limit of addresses.
        let Machine { memory, addresses } = machine();
        let Some(memory) = memory.into_iter().chain(addresses).min() else { return };
        let stop = AtomicBool::new(false);
        let half = keep(&of(memory / 2), &stop).unwrap().expect("nobody else has any");
        assert!(keep(&of(memory), &stop).is_err_and(|words| words.contains("does not fit")));
        stop.store(true, Ordering::Relaxed);
        assert!(keep(&of(memory / 2), &stop).unwrap().is_none(), "two halves are more than three quarters");
        assert!(keep(&of(memory / 8), &stop).unwrap().is_some());
        drop(half);
        assert!(keep(&of(memory / 2), &stop).unwrap().is_some());
        let Book { runs, bytes, .. } = *book();
        assert_eq!((runs, bytes), (0, 0));
    }
}
