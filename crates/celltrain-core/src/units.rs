//! Times, rates and sizes: whole numbers in the engine, numbers with a unit in a scenario.
//!
//! Source: `docs/mechanisms.md` section 11. N synchronous sources collide at the same instant, and the winner of a
//! freed place decides the outcome of plain UBR. Therefore the clock's unit is chosen for each scenario so that every
//! cell time, delay and tick is a whole number of units, and ties are detected exactly.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use std::borrow::Cow;
use std::fmt;
use std::ops::{Add, AddAssign, Mul, Rem, Sub};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bits in a cell on the wire: 53 bytes.
pub const CELL_BITS: u64 = 424;
/// Picoseconds in a second.
pub const PS_PER_SECOND: u64 = 1_000_000_000_000;
/// The finest clock. If a scenario needs a finer one, its times are rounded, with a warning.
pub const MAX_UNITS_PER_SECOND: u64 = 1 << 40;

/// An instant, in units of the scenario's clock since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// A length of time, in units of the scenario's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub u64);

impl Time {
    /// An instant later than any other. Used for events that do not happen.
    pub const NEVER: Time = Time(u64::MAX);

    /// Returns the elapsed fraction of a run that ends at `end`, from 0 to 1.
    pub fn share_of(self, end: Time) -> f64 {
        self.0 as f64 / end.0.max(1) as f64
    }
}

#[expect(clippy::arithmetic_side_effects, reason = "no overflow: scenario checks keep times below 2^62 units")]
impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0 + span.0)
    }
}

#[expect(clippy::arithmetic_side_effects, reason = "no overflow: scenario checks keep times below 2^62 units")]
impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        self.0 += span.0;
    }
}

#[expect(clippy::arithmetic_side_effects, reason = "no underflow: the earlier time is subtracted from the later one")]
impl Sub for Time {
    type Output = Span;
    fn sub(self, earlier: Time) -> Span {
        Span(self.0 - earlier.0)
    }
}

#[expect(clippy::arithmetic_side_effects, reason = "no overflow: scenario checks keep times below 2^62 units")]
impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0 + other.0)
    }
}

#[expect(clippy::arithmetic_side_effects, reason = "no overflow: scenario checks keep times below 2^62 units")]
impl Mul<u64> for Span {
    type Output = Span;
    fn mul(self, times: u64) -> Span {
        Span(self.0 * times)
    }
}

/// The scenario's clock, defined by the number of units per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Units in a second.
    pub units_per_second: u64,
    /// True if every cell time and delay given when the clock was created is a whole number of units.
    pub exact: bool,
    /// Bits of a cell on the wire.
    pub cell_bits: u64,
}

impl Clock {
    /// Returns the coarsest clock on which the time of a cell of `cell_bits` at each of `rates` and each of `times` is
    /// a whole number of units. If that needs more than [`MAX_UNITS_PER_SECOND`], returns a picosecond clock that
    /// rounds (`exact` is false).
    pub fn covering(
        cell_bits: u64,
        rates: impl IntoIterator<Item = BitRate>,
        times: impl IntoIterator<Item = Duration>,
    ) -> Clock {
        Self::covering_bits(cell_bits, rates.into_iter().map(|rate| (cell_bits, rate)), times)
    }

    /// Like [`covering`](Clock::covering), for the transmission times of numbers of bits at given rates.
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "divisors are positive, and a product of 41 and 64 bits fits in 128 bits"
    )]
    pub fn covering_bits(
        cell_bits: u64,
        sent: impl IntoIterator<Item = (u64, BitRate)>,
        times: impl IntoIterator<Item = Duration>,
    ) -> Clock {
        let sending_times = sent.into_iter().map(|(bits, rate)| rate.bits_per_second / gcd(rate.bits_per_second, bits));
        let spans = times.into_iter().map(|time| PS_PER_SECOND / gcd(time.picoseconds, PS_PER_SECOND));
        let mut units: u128 = 1;
        for denominator in sending_times.chain(spans) {
            let denominator = u128::from(denominator);
            units = units / gcd(units, denominator) * denominator;
            if units > u128::from(MAX_UNITS_PER_SECOND) {
                return Clock { units_per_second: PS_PER_SECOND, exact: false, cell_bits };
            }
        }
        let units_per_second = u64::try_from(units).expect("the loop ensures that the value fits in 64 bits");
        Clock { units_per_second, exact: true, cell_bits }
    }

    /// Creates an exact clock for ATM cells.
    pub const fn exact(units_per_second: u64) -> Clock {
        Clock { units_per_second, exact: true, cell_bits: CELL_BITS }
    }

    /// Returns the clock with units `times` times shorter. Returns the same clock if it is not exact or the result
    /// would be too fine.
    #[must_use]
    pub fn finer(self, times: u64) -> Clock {
        match self.units_per_second.checked_mul(times) {
            Some(units_per_second) if self.exact && units_per_second <= MAX_UNITS_PER_SECOND => {
                Clock { units_per_second, ..self }
            }
            _ => self,
        }
    }

    /// Returns the transmission time of one cell on a link with this rate: its bits over the rate, at least one unit.
    pub fn cell_time(&self, rate: BitRate) -> Span {
        self.sending_time(self.cell_bits, rate).max(Span(1))
    }

    /// Returns the transmission time of a number of bits on a link with this rate.
    #[expect(clippy::arithmetic_side_effects, reason = "no overflow: a product of two 64-bit numbers fits in 128 bits")]
    pub fn sending_time(&self, bits: u64, rate: BitRate) -> Span {
        Span(div_round(u128::from(bits) * u128::from(self.units_per_second), rate.bits_per_second))
    }

    /// Converts a duration to this clock.
    #[expect(clippy::arithmetic_side_effects, reason = "no overflow: a product of two 64-bit numbers fits in 128 bits")]
    pub fn span(&self, duration: Duration) -> Span {
        Span(div_round(u128::from(duration.picoseconds) * u128::from(self.units_per_second), PS_PER_SECOND))
    }

    /// Returns the instant `since_start` after the start of a run.
    pub fn time(&self, since_start: Duration) -> Time {
        Time(self.span(since_start).0)
    }

    /// Returns the length of a unit, rounded up to whole picoseconds.
    pub fn tick(&self) -> Duration {
        Duration { picoseconds: PS_PER_SECOND.div_ceil(self.units_per_second.max(1)) }
    }

    /// Returns the seconds since the start, for reports.
    pub fn seconds(&self, time: Time) -> f64 {
        time.0 as f64 / self.units_per_second as f64
    }
}

#[expect(
    clippy::arithmetic_side_effects,
    reason = "the sum of the product and half the divisor fits in 128 bits, and the divisor is positive"
)]
fn div_round(numerator: u128, denominator: u64) -> u64 {
    let denominator = u128::from(denominator);
    u64::try_from((numerator + denominator / 2) / denominator).expect("scenario checks keep times below 2^62 units")
}

/// Returns the greatest common divisor. The function is generic, because 64-bit division is several times as fast as
/// 128-bit division.
#[expect(clippy::arithmetic_side_effects, reason = "no division by zero: b is positive")]
pub(crate) fn gcd<T: Copy + Default + PartialEq + Rem<Output = T>>(a: T, b: T) -> T {
    if b == T::default() { a } else { gcd(b, a % b) }
}

/// A link's rate in bits per second, written `155.52Mbps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate {
    /// Bits per second on the wire, 53-byte cells included.
    pub bits_per_second: u64,
}

/// A duration in picoseconds, written `5us`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration {
    /// Picoseconds.
    pub picoseconds: u64,
}

/// A size in bytes, written `512B`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes {
    /// Bytes.
    pub bytes: u64,
}

impl BitRate {
    /// Creates a rate in bits per second.
    pub const fn from_bits_per_second(bits_per_second: u64) -> Self {
        Self { bits_per_second }
    }
}

impl Duration {
    /// Creates a duration in milliseconds, limited to the longest possible.
    pub const fn from_milliseconds(milliseconds: u64) -> Self {
        Self { picoseconds: milliseconds.saturating_mul(1_000_000_000) }
    }

    /// Creates a duration in microseconds, limited to the longest possible.
    pub const fn from_microseconds(microseconds: u64) -> Self {
        Self { picoseconds: microseconds.saturating_mul(1_000_000) }
    }

    /// Returns the duration in seconds, for reports and formulas.
    pub fn seconds(&self) -> f64 {
        self.picoseconds as f64 / PS_PER_SECOND as f64
    }
}

/// A kind of number with a unit: name in the schema, units from the largest to the smallest, example.
struct Quantity {
    kind: &'static str,
    /// Unit in which zero is written.
    base: &'static str,
    units: &'static [(&'static str, u64)],
    example: &'static str,
}

const RATE: Quantity = Quantity {
    kind: "rate",
    base: "bps",
    units: &[("Gbps", 1_000_000_000), ("Mbps", 1_000_000), ("kbps", 1_000), ("bps", 1)],
    example: "155.52Mbps",
};
const TIME: Quantity = Quantity {
    kind: "time",
    base: "s",
    units: &[("s", PS_PER_SECOND), ("ms", 1_000_000_000), ("us", 1_000_000), ("ns", 1_000), ("ps", 1)],
    example: "5us",
};
const SIZE: Quantity =
    Quantity { kind: "size", base: "B", units: &[("MB", 1_000_000), ("kB", 1_000), ("B", 1)], example: "512B" };

impl Quantity {
    /// Returns why a string is not this quantity: a clause that follows "is not".
    fn refuse(&self, why: &str) -> String {
        let units: Vec<_> = self.units.iter().map(|(name, _)| *name).collect();
        format!(
            "a {} ({why}); write a number and one of {}, for example \"{}\"",
            self.kind,
            units.join(", "),
            self.example
        )
    }

    /// Parses a decimal number and a unit exactly, without floats.
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "a fraction has at most 18 digits and a scale at most 13, so products are below 2^128"
    )]
    fn parse(&self, text: &str) -> Result<u64, String> {
        let text = text.trim();
        if text.starts_with('-') {
            return Err(self.refuse("it is negative"));
        }
        let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let unit = unit.trim();
        if number.is_empty() {
            return Err(self.refuse("no number"));
        }
        if unit.is_empty() {
            return Err(self.refuse("no unit"));
        }
        let Some((_, scale)) = self.units.iter().find(|(name, _)| *name == unit) else {
            return Err(self.refuse(&format!("unknown unit {unit:?}")));
        };
        let digits = number.replace('_', "");
        let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
        let fraction = fraction.trim_end_matches('0');
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) || fraction.len() > 18 {
            return Err(self.refuse(&format!("{number:?} is not a decimal number")));
        }
        let value = |part: &str| if part.is_empty() { Ok(0) } else { part.parse::<u128>() };
        let (Ok(whole), Ok(numerator)) = (value(whole), value(fraction)) else {
            return Err(self.refuse("too large"));
        };
        let denominator = 10u128.pow(u32::try_from(fraction.len()).expect("the number of digits was limited above"));
        let scale = u128::from(*scale);
        if numerator * scale % denominator != 0 {
            let smallest = self.units.last().expect("every quantity has at least one unit").0;
            return Err(self.refuse(&format!("finer than 1{smallest}")));
        }
        whole
            .checked_mul(scale)
            .and_then(|v| v.checked_add(numerator * scale / denominator))
            .and_then(|v| u64::try_from(v).ok())
            .ok_or_else(|| self.refuse("too large"))
    }

    /// Writes the value in the largest unit in which the value is at least one.
    #[expect(clippy::arithmetic_side_effects, reason = "no division by zero: scales are positive")]
    fn write(&self, value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if value == 0 {
            return write!(f, "0{}", self.base);
        }
        let smallest = *self.units.last().expect("every quantity has at least one unit");
        let (unit, scale) = *self.units.iter().find(|(_, scale)| value >= *scale).unwrap_or(&smallest);
        let (whole, rest) = (value / scale, value % scale);
        if rest == 0 {
            return write!(f, "{whole}{unit}");
        }
        let width = scale.ilog10() as usize;
        let fraction = format!("{rest:0width$}");
        write!(f, "{whole}.{}{unit}", fraction.trim_end_matches('0'))
    }
}

macro_rules! quantity {
    ($type:ident, $field:ident, $quantity:ident) => {
        impl FromStr for $type {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                $quantity.parse(text).map(|$field| Self { $field })
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                $quantity.write(self.$field, f)
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string",
                    "x-quantity": $quantity.kind,
                    "examples": [$quantity.example],
                })
            }
        }
    };
}

quantity!(BitRate, bits_per_second, RATE);
quantity!(Duration, picoseconds, TIME);
quantity!(Bytes, bytes, SIZE);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn in_the_lan_scenario_all_cell_times_and_delays_are_whole_numbers_of_time_units() {
        let rate: BitRate = "155.52Mbps".parse().unwrap();
        let delay: Duration = "5us".parse().unwrap();
        let clock = Clock::covering(CELL_BITS, [rate], [delay]);
        assert!(clock.exact);
        assert_eq!(clock.units_per_second, 97_200_000);
        assert_eq!(clock.cell_time(rate), Span(265));
        assert_eq!(clock.span(delay), Span(486));
    }

    #[test]
    fn link_rates_without_a_common_time_unit_are_rounded_with_a_warning() {
        let rates = [1_000_000_007, 998_244_353].map(BitRate::from_bits_per_second);
        let clock = Clock::covering(CELL_BITS, rates, []);
        assert!(!clock.exact);
        assert_eq!(clock.units_per_second, PS_PER_SECOND);
    }

    #[test]
    fn a_quantity_without_a_unit_is_refused_with_an_example() {
        let error = "5".parse::<Duration>().unwrap_err();
        assert_eq!(error, "a time (no unit); write a number and one of s, ms, us, ns, ps, for example \"5us\"");
        assert!("-5us".parse::<Duration>().unwrap_err().contains("negative"));
        assert!("5 parsecs".parse::<Duration>().unwrap_err().contains("unknown unit"));
        assert!("0.1ps".parse::<Duration>().unwrap_err().contains("finer than 1ps"));
        assert!("99999999999999999999s".parse::<Duration>().is_err());
        // A string with more digits than any quantity has is not a number, whatever follows the digits.
        let digits = |number: usize| format!("0.{}1s", "0".repeat(number - 1)).parse::<Duration>().unwrap_err();
        assert!(digits(18).contains("finer than 1ps") && digits(19).contains("is not a decimal number"));
    }

    proptest! {
        #![proptest_config(crate::rng::proptest_seeded(1))]

        #[test]
        fn formatting_a_quantity_and_parsing_it_returns_the_same_quantity(picoseconds in any::<u64>(), bits_per_second in any::<u64>()) {
            let duration = Duration { picoseconds };
            prop_assert_eq!(duration.to_string().parse::<Duration>().unwrap(), duration);
            let rate = BitRate { bits_per_second };
            prop_assert_eq!(rate.to_string().parse::<BitRate>().unwrap(), rate);
        }

        #[test]
        fn the_quantity_parser_does_not_panic_on_any_text(text in ".{0,40}") {
            let _ = text.parse::<Duration>();
            let _ = text.parse::<BitRate>();
            let _ = text.parse::<Bytes>();
        }
    }
}
