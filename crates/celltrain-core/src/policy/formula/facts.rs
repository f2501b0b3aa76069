//! What a policy may know of the port it is at.

use crate::units::{BitRate, CELL_BITS, Clock};

/// What stays the same at a port during a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PortFacts {
    /// K: places for waiting cells; `None` for a buffer without limit.
    pub capacity: Option<u32>,
    /// C: the rate of its link, in cells per second.
    pub cells_per_second: f64,
    /// Units of the run's clock in a second.
    pub units_per_second: f64,
}

impl PortFacts {
    /// Those of a port with this buffer and rate, in a run by this clock.
    pub(crate) fn of(buffer: Option<u32>, rate: BitRate, clock: Clock) -> Self {
        Self {
            capacity: buffer,
            cells_per_second: rate.bits_per_second as f64 / CELL_BITS as f64,
            units_per_second: clock.units_per_second as f64,
        }
    }

    /// Before the port is known, where only it matters whether a formula can be read.
    pub(super) fn unknown() -> Self {
        Self { capacity: None, cells_per_second: 1.0, units_per_second: 1.0 }
    }
}
