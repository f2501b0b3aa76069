//! Ranges of values that several checks use.

use celltrain_core::units::{BitRate, CELL_BITS, Duration};

/// The longest run is eleven days, which is far below 2^62 ticks even on the finest clock.
pub const MAX_DURATION: Duration = Duration::from_milliseconds(1_000_000_000);
/// The highest rate is 10 Tb/s. Above it, a cell is shorter than the finest clock can resolve.
pub const MAX_RATE: BitRate = BitRate::from_bits_per_second(10_000_000_000_000);
/// The lowest rate is one cell per second. A lower rate probably has a wrong unit.
pub const MIN_RATE: BitRate = BitRate::from_bits_per_second(CELL_BITS);
/// The longest delay is half an hour, far longer than the delay of any satellite link.
pub const MAX_DELAY: Duration = Duration::from_milliseconds(1_800_000);
/// Maximum number of links crossed, summed over all VCs in one direction. More would take gigabytes of labels and
/// counters.
pub const MAX_CROSSINGS: usize = 10_000_000;
/// Maximum size in bytes. Sending it at OC-3 takes almost two years.
pub const MAX_FILE: u64 = 1 << 50;
/// Maximum number of equally long paths between two hosts for requests.
pub const MAX_PATHS: u64 = 64;
