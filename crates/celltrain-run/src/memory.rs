//! The memory of this process: the amount available to runs, the reservations of runs, and a check that runs stay
//! within them.

mod estimate;

#[cfg(target_family = "wasm")]
mod provided;
#[cfg(not(target_family = "wasm"))]
mod system;

use std::cell::{Cell, OnceCell};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Instant;
pub use estimate::MemoryEstimate;

#[cfg(target_family = "wasm")]
pub use provided::allow;
#[cfg(target_family = "wasm")]
use provided::{free, used};
#[cfg(not(target_family = "wasm"))]
use system::{free, used};

/// Memory reserved by the runs of this process.
struct Reservations {
    runs: u64,
    bytes: u64,
    /// Free memory and memory used by this process, both read while no run had a reservation.
    machine: Machine,
    used: Option<u64>,
    looked: Option<Instant>,
}

static RESERVATIONS: Mutex<Reservations> =
    Mutex::new(Reservations { runs: 0, bytes: 0, machine: Machine { memory: None }, used: None, looked: None });
static GIVEN_BACK: Condvar = Condvar::new();

/// Interval at which a run checks its memory while it waits or runs.
const LOOK: Duration = Duration::from_millis(20);
/// Time for which a reading of the free memory remains valid.
const FRESH: Duration = Duration::from_secs(1);

/// Memory of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Machine {
    /// Bytes of memory still available to the process; `None` if unknown.
    pub memory: Option<u64>,
}

impl Machine {
    /// Returns the number of free bytes if it is too small for `bytes`. All runs together may use three quarters of the
    /// free memory.
    fn lacks(self, bytes: u64) -> Option<u64> {
        self.memory.filter(|free| bytes > (free / 4).saturating_mul(3))
    }

    /// Checks that a run with this estimate fits.
    ///
    /// # Errors
    /// Returns a message with the sizes if the run does not fit.
    pub fn fits(self, estimate: &MemoryEstimate) -> Result<(), String> {
        self.lacks(estimate.least).map_or(Ok(()), |free| Err(estimate.in_words(estimate.least, free)))
    }
}

/// Returns the memory that a run may use if no other run is active.
pub fn machine() -> Machine {
    reservations().machine()
}

/// Memory reservation of a run, and the check that it is not exceeded.
#[derive(Default)]
pub struct Watch {
    reserved: OnceCell<MemoryEstimate>,
    looked: Cell<Option<Instant>>,
    outgrown: OnceCell<String>,
}

impl Watch {
    /// Reserves memory for the run until the watch is dropped. Waits while other runs occupy the memory it needs.
    /// Returns `false` if interrupted while waiting.
    ///
    /// # Errors
    /// Returns the reason if the run would not fit even on its own.
    #[expect(clippy::arithmetic_side_effects, reason = "no overflow: these are counts of runs and bytes of a machine")]
    pub fn reserve(&self, estimate: MemoryEstimate, stopped: &AtomicBool) -> Result<bool, String> {
        let mut reservations = reservations();
        loop {
            reservations.machine().fits(&estimate).map_err(|words| format!("does not fit: {words}"))?;
            let together = estimate.likely.saturating_add(reservations.bytes);
            if reservations.runs == 0 || reservations.machine.lacks(together).is_none() {
                reservations.runs += 1;
                reservations.bytes = together;
                self.reserved.set(estimate).expect("a run reserves memory once");
                return Ok(true);
            }
            if stopped.load(Ordering::Relaxed) {
                return Ok(false);
            }
            reservations = GIVEN_BACK.wait_timeout(reservations, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns whether the runs of this process have stayed within their memory. Once false, the result stays false.
    pub fn suffices(&self) -> bool {
        let Some(estimate) = self.reserved.get() else { return true };
        if self.outgrown.get().is_none() && self.looked.get().is_none_or(|then| then.elapsed() >= LOOK) {
            self.looked.set(Some(Instant::now()));
            if let Some(words) = reservations().outgrown(estimate, used()) {
                self.outgrown.get_or_init(|| words);
            }
        }
        self.outgrown.get().is_none()
    }

    /// Returns the reason for ending the run if the runs of this process have exceeded their memory.
    pub fn outgrown(&self) -> Option<String> {
        self.outgrown.get().cloned()
    }
}

impl Drop for Watch {
    #[expect(clippy::arithmetic_side_effects, reason = "no underflow: only reserved memory is released")]
    fn drop(&mut self) {
        if let Some(estimate) = self.reserved.get() {
            let mut reservations = reservations();
            reservations.runs -= 1;
            reservations.bytes = reservations.bytes.saturating_sub(estimate.likely);
            GIVEN_BACK.notify_all();
        }
    }
}

impl Reservations {
    /// Reads the free memory if no run has a reservation. Results are cached, because reading takes as long as a small
    /// run.
    fn machine(&mut self) -> Machine {
        if self.runs == 0 && self.looked.is_none_or(|then| then.elapsed() > FRESH) {
            (self.machine, self.used) = (free(), used());
            self.looked = Some(Instant::now());
        }
        self.machine
    }

    /// Returns the error for the run with this `estimate` if this process, which now uses `used` bytes, exceeds the
    /// memory for runs.
    fn outgrown(&self, estimate: &MemoryEstimate, used: Option<u64>) -> Option<String> {
        let taken = used?.saturating_sub(self.used?);
        let free = self.machine.lacks(taken)?;
        let others = match self.runs {
            0 | 1 => String::new(),
            runs => format!(" next to {} other runs of this process", runs.saturating_sub(1)),
        };
        Some(format!("does not fit{others}: {}", estimate.in_words(taken, free)))
    }
}

fn reservations() -> MutexGuard<'static, Reservations> {
    // The reservations remain valid if a run panics.
    RESERVATIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: u64) -> MemoryEstimate {
        MemoryEstimate { least: bytes, likely: bytes, ..MemoryEstimate::default() }
    }

    #[test]
    fn a_run_waits_until_memory_is_free_and_a_run_that_never_fits_is_refused() {
        let Machine { memory: Some(memory) } = machine() else { return };
        let stopped = AtomicBool::new(false);
        let reserve = |watch: &Watch, bytes| watch.reserve(of(bytes), &stopped);
        let half = Watch::default();
        assert_eq!(reserve(&half, memory / 2), Ok(true), "no other run has reserved memory");
        assert!(half.suffices());
        assert!(reserve(&Watch::default(), memory).is_err_and(|words| words.contains("does not fit")));
        stopped.store(true, Ordering::Relaxed);
        assert_eq!(
            reserve(&Watch::default(), memory / 2),
            Ok(false),
            "two runs that need half the memory each exceed three quarters of the memory"
        );
        assert_eq!(reserve(&Watch::default(), memory / 8), Ok(true));
        drop(half);
        assert_eq!(reserve(&Watch::default(), memory / 2), Ok(true));
        assert!(reservations().bytes < memory / 8, "other tests reserve little memory, and this test reserves none");
    }

    #[test]
    fn a_run_that_needs_over_three_quarters_of_the_free_memory_gets_a_warning() {
        let machine = Machine { memory: Some(4 << 30) };
        let mut reservations = Reservations { runs: 1, bytes: 0, machine, used: Some(1 << 30), looked: None };
        let run = MemoryEstimate { nodes: 3, vcs: 2, hops: 4, ..MemoryEstimate::default() };
        assert_eq!(reservations.outgrown(&run, Some(4 << 30)), None);
        assert_eq!(reservations.outgrown(&run, None), None, "nothing is known");
        let words =
            reservations.outgrown(&run, Some(5 << 30)).expect("a run that took more than estimated is reported");
        assert!(
            words.starts_with(
                "does not fit: 3 nodes and 2 VCs, which cross links 4 times, need more than 4.0 GiB of memory; a run may use \
                 three quarters of the 4.0 GiB"
            ),
            "{words}"
        );
        reservations.runs = 3;
        let words =
            reservations.outgrown(&run, Some(5 << 30)).expect("a run that took more than estimated is reported");
        assert!(words.starts_with("does not fit next to 2 other runs of this process: 3 nodes"), "{words}");
    }
}
