//! Ranges of values that several checks use.

use celltrain_core::units::{BitRate, CELL_BITS, Duration};

/// Maximum duration of a run: eleven days, which is far below 2^62 ticks even on the finest clock.
pub const MAX_DURATION: Duration = Duration::from_milliseconds(1_000_000_000);
/// Maximum rate of a link: 10 Tb/s. At a higher rate, a cell is shorter than the finest clock can resolve.
pub const MAX_RATE: BitRate = BitRate::from_bits_per_second(10_000_000_000_000);
/// Minimum rate of a link: one cell per second. A lower rate probably has a wrong unit.
pub const MIN_RATE: BitRate = BitRate::from_bits_per_second(CELL_BITS);
/// Maximum delay of a link: half an hour, far longer than the delay of any satellite link.
pub const MAX_DELAY: Duration = Duration::from_milliseconds(1_800_000);
/// Maximum number of links crossed, summed over all VCs in one direction. More crossings would take gigabytes of labels
/// and counters.
pub const MAX_CROSSINGS: usize = 10_000_000;
/// Maximum size of a file or request in bytes. Sending this many bytes at OC-3 takes almost two years.
pub const MAX_FILE: u64 = 1 << 50;
/// Maximum number of equally long paths between two hosts for requests.
pub const MAX_PATHS: u64 = 64;
