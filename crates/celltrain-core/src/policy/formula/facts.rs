//! What a policy may know of the port it is at.

use crate::units::{BitRate, CELL_BITS, Clock};

/// What stays the same at a port during a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PortFacts<'a> {
    /// The name of its link.
    pub name: &'a str,
    /// K: places for waiting cells; `None` for a buffer without limit.
    pub capacity: Option<u32>,
    /// C: the rate of its link, in cells per second.
    pub cells_per_second: f64,
    /// Units of the run's clock in a second.
    pub units_per_second: f64,
}

impl<'a> PortFacts<'a> {
    /// Those of a port of this name with this buffer and rate, in a run by this clock.
    pub(crate) fn of(name: &'a str, buffer: Option<u32>, rate: BitRate, clock: Clock) -> Self {
        Self {
            name,
            capacity: buffer,
            cells_per_second: rate.bits_per_second as f64 / CELL_BITS as f64,
            units_per_second: clock.units_per_second as f64,
        }
    }

    /// Before the port is known, where only it matters whether a formula can be read. The rate is one that no formula
    /// has as a number too: equal numbers share a place, and a formula for which there is just room must have it at any
    /// rate.
    pub(super) fn unknown() -> Self {
        Self { name: "", capacity: None, cells_per_second: 353_207.547_169_811_3, units_per_second: 1.0 }
    }
}
