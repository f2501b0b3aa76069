//! The names of the port that formulas may use, and the registers they are in.

use celltrain_formula::{Kind, Unit};

use crate::formulas::Name;

/// Registers of what the port hands in; those of the user's own names follow.
pub(super) const X: u8 = 0;
pub(super) const N: u8 = 1;
pub(super) const Y: u8 = 2;
pub(super) const TAGGED: u8 = 3;
pub(super) const NOW: u8 = 4;
pub(super) const FIRST_OWN: u8 = 5;

/// Where the value of a name comes from.
#[derive(Clone, Copy, PartialEq)]
pub enum Source {
    /// It stays the same during a run.
    Port,
    /// It changes as cells come and go; in this register.
    Queue(u8),
    /// It is of the frame that asks, or the instant at which it does; in this register.
    Frame(u8),
}

const fn of(name: &'static str, unit: Unit, from: Source, about: &'static str) -> (Name, Source) {
    (Name::number(name, unit, about), from)
}

/// Every name of the port's, and where it comes from.
pub const PORT_NAMES: &[(Name, Source)] = &[
    of("X", Unit::CELLS, Source::Queue(X), "cells waiting now, the arriving one and the one in service not counted"),
    of("K", Unit::CELLS, Source::Port, "places for waiting cells: `buffer` of the port"),
    of("Y", Unit::CELLS, Source::Frame(Y), "cells of this frame's VC waiting now"),
    of("N", Unit::NONE, Source::Frame(N), "VCs with at least one cell waiting"),
    of("V", Unit::NONE, Source::Port, "VCs that cross the port, whether they have cells waiting or not"),
    of("C", Unit::RATE, Source::Port, "the rate of the port's link"),
    of("now", Unit::SECONDS, Source::Frame(NOW), "seconds since the start of the run"),
    (Name { name: "tagged", kind: Kind::Truth, about: "whether the frame is tagged (CLP = 1)" }, Source::Frame(TAGGED)),
];
