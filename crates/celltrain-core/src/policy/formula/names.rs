//! Names that the port provides to formulas, and their registers.

use celltrain_formula::rules::Name;
use celltrain_formula::{Kind, Unit};

/// Registers of the port's values; the registers of the user's own names follow.
pub(super) const X: u8 = 0;
pub(super) const N: u8 = 1;
pub(super) const Y: u8 = 2;
pub(super) const TAGGED: u8 = 3;
/// Shares its register with `tagged`: only arriving frames have a tag, and only frames at the head have a sojourn time.
pub(super) const SOJOURN: u8 = TAGGED;
pub(super) const NOW: u8 = 4;
pub(super) const FIRST_OWN: u8 = 5;

/// Origin of a name's value.
#[derive(Clone, Copy, PartialEq)]
pub enum Source {
    /// A property of the port that is constant during a run.
    Port,
    /// A value that changes when cells arrive or leave, stored in this register.
    Queue(u8),
    /// A value that depends on the arriving frame, stored in this register.
    Frame(u8),
    /// The time, stored in this register. It is known when a frame arrives or reaches the head, and at a period.
    Clock(u8),
    /// A value that depends on the frame at the head of the queue, stored in this register.
    Head(u8),
}

const fn of(name: &'static str, unit: Unit, from: Source, about: &'static str) -> (Name, Source) {
    (Name::number(name, unit, about), from)
}

/// All names that a formula may read at a port, each with where its value comes from.
pub const PORT_NAMES: &[(Name, Source)] = &[
    of("X", Unit::CELLS, Source::Queue(X), "waiting cells, without the arriving cell and the cell in service"),
    of("K", Unit::CELLS, Source::Port, "size of the buffer, which the port's key `buffer` sets"),
    of("Y", Unit::CELLS, Source::Frame(Y), "waiting cells of the frame's VC"),
    of("N", Unit::NONE, Source::Frame(N), "number of VCs with at least one waiting cell"),
    of("V", Unit::NONE, Source::Port, "number of VCs that cross the port, with or without cells"),
    of("C", Unit::RATE, Source::Port, "rate of the port's link"),
    of("tick", Unit::SECONDS, Source::Port, "unit of the run's clock: every time is a whole number of ticks"),
    of("now", Unit::SECONDS, Source::Clock(NOW), "seconds since the start of the run"),
    (Name { name: "tagged", kind: Kind::Truth, about: "true if the frame is tagged (CLP = 1)" }, Source::Frame(TAGGED)),
    of("sojourn", Unit::SECONDS, Source::Head(SOJOURN), "time for which the frame at the head of the queue has waited"),
];
