//! The ranges of values that several checks share.

use celltrain_core::units::{BitRate, CELL_BITS, Duration};

/// Eleven days: at the finest clock still far below 2^62 units.
pub const MAX_DURATION: Duration = Duration::from_milliseconds(1_000_000_000);
/// Beyond 10 Tb/s a cell takes less than the finest clock can tell.
pub const MAX_RATE: BitRate = BitRate::from_bits_per_second(10_000_000_000_000);
/// A second a cell: slower is a slip of the unit.
pub const MIN_RATE: BitRate = BitRate::from_bits_per_second(CELL_BITS);
/// Half an hour, far beyond any orbit.
pub const MAX_DELAY: Duration = Duration::from_milliseconds(1_800_000);
/// The most times VCs may cross links in all, one way: some gigabytes of labels and counters.
pub const MAX_CROSSINGS: usize = 10_000_000;
