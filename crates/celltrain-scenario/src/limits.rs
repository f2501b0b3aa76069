//! The ranges of values that several checks share.

use celltrain_core::units::{BitRate, CELL_BITS, Duration};

/// Eleven days: far below 2^62 units even at the finest clock.
pub const MAX_DURATION: Duration = Duration::from_milliseconds(1_000_000_000);
/// Beyond 10 Tb/s a cell takes less time than the finest clock can resolve.
pub const MAX_RATE: BitRate = BitRate::from_bits_per_second(10_000_000_000_000);
/// One cell per second: a slower rate is probably a wrong unit.
pub const MIN_RATE: BitRate = BitRate::from_bits_per_second(CELL_BITS);
/// Half an hour, far beyond any orbit.
pub const MAX_DELAY: Duration = Duration::from_milliseconds(1_800_000);
/// Maximum number of links crossed by all VCs in one direction: some gigabytes of labels and counters.
pub const MAX_CROSSINGS: usize = 10_000_000;
