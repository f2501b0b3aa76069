//! The memory of this process: the amount available to runs, and a check that runs do not exceed this amount.

mod estimate;

#[cfg(target_family = "wasm")]
mod provided;
#[cfg(not(target_family = "wasm"))]
mod system;

use std::cell::{Cell, OnceCell};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Instant;
pub use estimate::MemoryEstimate;

#[cfg(target_family = "wasm")]
pub use provided::allow;
#[cfg(target_family = "wasm")]
use provided::{free, used};
#[cfg(not(target_family = "wasm"))]
use system::{free, used};

/// Number of active runs, and measurements of memory taken while no run was active.
struct Readings {
    runs: u64,
    machine: Machine,
    used: Option<u64>,
    looked: Option<Instant>,
}

static READINGS: Mutex<Readings> =
    Mutex::new(Readings { runs: 0, machine: Machine { memory: None }, used: None, looked: None });

/// Interval at which a run checks its memory.
const LOOK: Duration = Duration::from_millis(20);
/// Time for which a measurement of the free memory remains valid.
const FRESH: Duration = Duration::from_secs(1);

/// Free memory of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Machine {
    /// Bytes of memory still available to the process; `None` if unknown.
    pub memory: Option<u64>,
}

impl Machine {
    /// Returns the number of free bytes if a run of `bytes` does not fit. All runs together may use three quarters of
    /// the free memory.
    fn lacks(self, bytes: u64) -> Option<u64> {
        self.memory.filter(|free| bytes > (free / 4).saturating_mul(3))
    }

    /// Checks that a run with this estimate fits into the free memory.
    ///
    /// # Errors
    /// Returns a message with the sizes if the run does not fit.
    pub fn fits(self, estimate: &MemoryEstimate) -> Result<(), String> {
        self.lacks(estimate.least).map_or(Ok(()), |free| Err(estimate.in_words(estimate.least, free)))
    }
}

/// Returns the memory that a run may use if no other run is active.
pub fn machine() -> Machine {
    readings().machine()
}

/// A check that a run fits into the free memory when it begins, and that all runs of this process stay within it.
#[derive(Default)]
pub struct Watch {
    begun: OnceCell<MemoryEstimate>,
    looked: Cell<Option<Instant>>,
    outgrown: OnceCell<String>,
}

impl Watch {
    /// Registers the beginning of a run with this memory estimate. The run counts as active until this value is
    /// dropped.
    ///
    /// # Errors
    /// Returns the reason if the run certainly does not fit.
    #[expect(clippy::arithmetic_side_effects, reason = "no overflow: this is the number of runs of a machine")]
    pub fn begin(&self, estimate: MemoryEstimate) -> Result<(), String> {
        let mut readings = readings();
        readings.machine().fits(&estimate).map_err(|words| format!("does not fit: {words}"))?;
        readings.runs += 1;
        self.begun.set(estimate).expect("a run begins once");
        Ok(())
    }

    /// Returns whether the runs of this process have stayed within their memory. After the result was false once, it
    /// remains false.
    pub fn suffices(&self) -> bool {
        let Some(estimate) = self.begun.get() else { return true };
        if self.outgrown.get().is_none() && self.looked.get().is_none_or(|then| then.elapsed() >= LOOK) {
            self.looked.set(Some(Instant::now()));
            if let Some(words) = readings().outgrown(estimate, used()) {
                self.outgrown.get_or_init(|| words);
            }
        }
        self.outgrown.get().is_none()
    }

    /// Returns the reason for ending the run; `None` if the runs of this process have not exceeded their memory.
    pub fn outgrown(&self) -> Option<String> {
        self.outgrown.get().cloned()
    }
}

impl Drop for Watch {
    #[expect(clippy::arithmetic_side_effects, reason = "no underflow: only runs that have begun end")]
    fn drop(&mut self) {
        if self.begun.get().is_some() {
            readings().runs -= 1;
        }
    }
}

impl Readings {
    /// Measures the free memory if no run is active. The result is cached, because measuring takes as long as a small
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

fn readings() -> MutexGuard<'static, Readings> {
    // The measurements remain valid even if a run panics while it holds the lock.
    READINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_refused_only_if_its_minimum_memory_estimate_exceeds_the_available_memory() {
        let Machine { memory: Some(memory) } = machine() else { return };
        let of = |least: u64| MemoryEstimate { least, likely: u64::MAX, ..MemoryEstimate::default() };
        let [half, other] = [Watch::default(), Watch::default()];
        assert_eq!([half.begin(of(memory / 2)), other.begin(of(memory / 2))], [Ok(()), Ok(())]);
        assert!(half.suffices() && other.suffices());
        assert!(Watch::default().begin(of(memory)).is_err_and(|words| words.contains("does not fit")));
    }

    #[test]
    fn a_run_that_needs_more_than_three_quarters_of_the_free_memory_gives_a_warning() {
        let machine = Machine { memory: Some(4 << 30) };
        let mut readings = Readings { runs: 1, machine, used: Some(1 << 30), looked: None };
        let run = MemoryEstimate { nodes: 3, vcs: 2, hops: 4, ..MemoryEstimate::default() };
        assert_eq!(readings.outgrown(&run, Some(4 << 30)), None);
        assert_eq!(readings.outgrown(&run, None), None, "the memory in use is unknown");
        let words = readings.outgrown(&run, Some(5 << 30)).expect("a run that took more than estimated is reported");
        assert!(
            words.starts_with(
                "does not fit: 3 nodes and 2 VCs, which cross links 4 times, need more than 4.0 GiB of memory; a run may use \
                 three quarters of the 4.0 GiB"
            ),
            "{words}"
        );
        readings.runs = 3;
        let words = readings.outgrown(&run, Some(5 << 30)).expect("a run that took more than estimated is reported");
        assert!(words.starts_with("does not fit next to 2 other runs of this process: 3 nodes"), "{words}");
    }
}
