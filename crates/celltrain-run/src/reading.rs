//! Reading of scenarios that must fit the memory for runs.

use std::cell::Cell;

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_scenario::{Candidate, Fits, Reader, Reading};

use crate::memory::{Machine, MemoryEstimate};

/// The result of reading a scenario that must fit the memory for runs.
#[derive(Clone, Debug)]
pub struct Estimated {
    /// The result of reading it.
    pub reading: Reading,
    /// The memory that a run takes, if the scenario has no other faults.
    pub memory: Option<MemoryEstimate>,
}

impl From<Reading> for Estimated {
    fn from(reading: Reading) -> Self {
        let memory = reading.network.as_ref().map(MemoryEstimate::of);
        Self { reading, memory }
    }
}

/// Reads a scenario in TOML that must fit a machine. `source` is the name used in faults.
///
/// # Errors
/// If it is interrupted.
pub fn read_toml(
    text: &str,
    source: &str,
    machine: Machine,
    token: &CancellationToken<'_>,
) -> Result<Estimated, Interrupted> {
    estimated(machine, |fits| Reader { source, fits, token }.toml(text))
}

/// Reads a scenario in JSON that must fit a machine, as [`read_toml`] does.
///
/// # Errors
/// If it is interrupted.
pub fn read_json(
    text: &str,
    source: &str,
    machine: Machine,
    token: &CancellationToken<'_>,
) -> Result<Estimated, Interrupted> {
    estimated(machine, |fits| Reader { source, fits, token }.json(text))
}

fn estimated(
    machine: Machine,
    read: impl FnOnce(&Fits<'_>) -> Result<Reading, Interrupted>,
) -> Result<Estimated, Interrupted> {
    let memory = Cell::new(None);
    let fits = |candidate: Candidate<'_>| {
        let estimate = match candidate {
            Candidate::Planned(size) => MemoryEstimate::of_size(&size),
            Candidate::Built(network) => {
                let estimate = MemoryEstimate::of(network);
                memory.set(Some(estimate));
                estimate
            }
        };
        machine.fits(&estimate)
    };
    let reading = read(&fits)?;
    Ok(Estimated { reading, memory: memory.get() })
}
