//! Reads scenarios whose runs must fit into memory.

use std::cell::Cell;
use std::time::Duration;

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_scenario::{Candidate, Reader, Reading};

use crate::clock::Instant;
use crate::memory::{Machine, MemoryEstimate};

/// The result of reading a scenario whose run must fit into memory.
#[derive(Clone, Debug)]
pub struct Estimated {
    /// The result of reading the scenario.
    pub reading: Reading,
    /// Memory estimate for a run; `None` if the scenario has faults other than its need for memory.
    pub memory: Option<MemoryEstimate>,
    /// Time that reading took.
    pub took: Duration,
}

impl From<Reading> for Estimated {
    fn from(reading: Reading) -> Self {
        let memory = reading.network.as_ref().map(MemoryEstimate::of);
        Self { reading, memory, took: Duration::ZERO }
    }
}

/// Reads a scenario whose run must fit into the memory of `machine`. `by` calls [`Reader::toml`] or [`Reader::json`]
/// with the scenario's text. Messages about faults refer to the text as `source`.
///
/// # Errors
/// Returns an error if the token is cancelled.
pub fn read(
    source: &str,
    machine: Machine,
    token: &CancellationToken<'_>,
    by: impl FnOnce(Reader<'_>) -> Result<Reading, Interrupted>,
) -> Result<Estimated, Interrupted> {
    let (begun, memory) = (Instant::now(), Cell::new(None));
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
    let reading = by(Reader { source, fits: &fits, token })?;
    Ok(Estimated { reading, memory: memory.get(), took: begun.elapsed() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_with(sources: &str, memory: Option<u64>) -> Estimated {
        let text = format!(
            "duration = '10ms'\n[topology.n_source]\nsources = {sources}\nlink_delay = '5us'\n[port.bottleneck]\n\
             buffer = 1000\npolicy.tail_drop = {{}}"
        );
        read("x.toml", Machine { memory }, &CancellationToken::never(), |reader| reader.toml(&text))
            .expect("nothing cancels the reading")
    }

    #[test]
    fn a_memory_limit_larger_than_the_memory_of_the_machine_is_refused() {
        // The first scenario is refused before its network is laid out, because of the numbers in its topology. The
        // second scenario is refused after its network has been built.
        for (sources, memory) in [("900000", 1 << 30), ("900", 4 << 20)] {
            let Estimated { reading, .. } = read_with(sources, Some(memory));
            assert!(reading.does_not_fit);
            let [fault] = &reading.faults[..] else { panic!("{:?}", reading.faults) };
            let begins = format!("x.toml:3: topology.n_source.sources = {sources} makes a network that is too large: ");
            assert!(fault.message.starts_with(&begins), "{}", fault.message);
            assert!(fault.message.contains(" times, need more than "), "{}", fault.message);
            assert!(fault.message.ends_with("shorter paths or smaller windows"), "{}", fault.message);
        }
        // The limit is exactly three quarters of the memory.
        let needs = read_with("5", None).memory.expect("the scenario is valid").least;
        for (free, faults) in [(needs.div_ceil(3) * 4, 0), (needs / 3 * 4 - 4, 1)] {
            let Estimated { reading, memory, .. } = read_with("5", Some(free));
            assert_eq!((reading.faults.len(), memory.is_some()), (faults, faults == 0));
        }
    }
}
