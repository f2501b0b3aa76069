//! Units of numbers, as powers of cells, seconds and bytes.

use std::fmt;

/// A unit: a product of powers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Unit {
    /// Exponent of cells.
    pub cells: i8,
    /// Exponent of seconds.
    pub seconds: i8,
    /// Exponent of bytes.
    pub bytes: i8,
}

impl Unit {
    /// A number without a unit.
    pub const NONE: Unit = Unit { cells: 0, seconds: 0, bytes: 0 };
    /// Cells.
    pub const CELLS: Unit = Unit { cells: 1, ..Self::NONE };
    /// Seconds.
    pub const SECONDS: Unit = Unit { seconds: 1, ..Self::NONE };
    /// Cells per second.
    pub const RATE: Unit = Unit { cells: 1, seconds: -1, ..Self::NONE };
    /// Bytes.
    pub const BYTES: Unit = Unit { bytes: 1, ..Self::NONE };

    /// Returns the unit of a product, or `None` if a power exceeds `MOST_POWER`.
    pub(crate) fn times(self, other: Unit) -> Option<Unit> {
        let power = |a: i8, b: i8| a.checked_add(b).filter(|power| power.abs() <= MOST_POWER);
        Some(Unit {
            cells: power(self.cells, other.cells)?,
            seconds: power(self.seconds, other.seconds)?,
            bytes: power(self.bytes, other.bytes)?,
        })
    }

    pub(crate) fn per(self, other: Unit) -> Option<Unit> {
        self.times(Unit { cells: -other.cells, seconds: -other.seconds, bytes: -other.bytes })
    }

    /// Returns the unit of a square root; `None` if that unit would have fractional powers.
    pub(crate) fn root(self) -> Option<Unit> {
        let Unit { cells, seconds, bytes } = self;
        let is_square = [cells, seconds, bytes].iter().all(|power| power % 2 == 0);
        is_square.then_some(Unit { cells: cells / 2, seconds: seconds / 2, bytes: bytes / 2 })
    }
}

/// The largest exponent of a base unit, such as 2 in `cells^2`.
const MOST_POWER: i8 = 16;

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |name: &str, power: i8| match power.abs() {
            0 => None,
            1 => Some(name.to_string()),
            power => Some(format!("{name}^{power}")),
        };
        let powers = [("cells", self.cells), ("bytes", self.bytes), ("s", self.seconds)];
        let part = |keep: fn(i8) -> bool| -> Vec<String> {
            powers.iter().filter(|(_, power)| keep(*power)).filter_map(|(name, power)| word(name, *power)).collect()
        };
        let (above, below) = (part(|power| power > 0), part(|power| power < 0));
        match (above.is_empty(), below.is_empty()) {
            (true, true) => write!(f, "a number without unit"),
            (false, true) => write!(f, "{}", above.join(" ")),
            (true, false) => write!(f, "1/{}", below.join("/")),
            (false, false) => write!(f, "{}/{}", above.join(" "), below.join("/")),
        }
    }
}

/// The kind of an expression's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number of this unit. `None` is a number without a unit, which takes the unit of the other operand.
    Number(Option<Unit>),
    /// A condition: true or false.
    Truth,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Number(None) => write!(f, "a number"),
            Kind::Number(Some(unit)) if *unit == Unit::NONE => write!(f, "{unit}"),
            Kind::Number(Some(unit)) => write!(f, "in {unit}"),
            Kind::Truth => write!(f, "a condition"),
        }
    }
}
