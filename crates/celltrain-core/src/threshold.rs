//! Thresholds of a buffer in scenarios. All policies use one grammar:
//!
//! | written | means |
//! |---|---|
//! | a number from 0 to 1, `"80%"` | a share of the buffer |
//! | a whole number above 1, `"800 cells"` | cells |
//! | `"buffer - 200 cells"` | cells below a full buffer |
//!
//! So 0 is an empty buffer and 1 is the whole buffer, with and without a decimal point. One cell is `"1 cell"`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::Fault;

/// A threshold of a buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// A plain number. 0 and 1 are fractions of the buffer, and larger numbers count cells.
    Whole(u32),
    /// A share of the buffer, 0 to 1.
    Share(f64),
    /// A string with a percentage of the buffer, 0 to 100.
    Percent(f64),
    /// A string with a number of cells.
    Cells(u32),
    /// A string with a number of cells below a full buffer.
    Below(u32),
}

impl From<u32> for Threshold {
    /// Converts a number of cells. The integer 1 is one cell, not the whole buffer.
    fn from(cells: u32) -> Self {
        Threshold::Cells(cells)
    }
}

impl From<f64> for Threshold {
    /// Converts a share of the buffer.
    fn from(share: f64) -> Self {
        Threshold::Share(share)
    }
}

impl Threshold {
    /// Returns R in cells, for a buffer of `capacity` cells. The share of a buffer need not be a whole number of cells.
    pub fn cells(self, capacity: u32) -> f64 {
        let k = f64::from(capacity);
        match self {
            Threshold::Whole(number @ (0 | 1)) => f64::from(number) * k,
            Threshold::Share(share) => share * k,
            // In this order of operations, 29 % of 100 cells is exactly 29.
            Threshold::Percent(percent) => percent * k / 100.0,
            Threshold::Whole(cells) | Threshold::Cells(cells) => cells.into(),
            Threshold::Below(cells) => k - f64::from(cells),
        }
    }

    /// Returns R in whole cells, rounded down: a whole number X exceeds R if and only if it exceeds the result. The
    /// rounding error of the product is ignored, so 0.29 of 100 cells is 29 although 0.29 * 100.0 is
    /// 28.999999999999996.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the value lies between 0 and the capacity and is rounded down"
    )]
    pub fn whole_cells(self, capacity: u32) -> u32 {
        (self.cells(capacity) * (1.0 + 4.0 * f64::EPSILON)) as u32
    }

    /// Returns the faults of this threshold for a buffer of `capacity` cells (`None`: infinite).
    pub fn check(self, key: &str, capacity: Option<u32>) -> Vec<Fault> {
        let fault = |problem: String| vec![Fault::new(key, self.written(), problem)];
        match (self, capacity) {
            (Threshold::Whole(0) | Threshold::Share(0.0), None) => Vec::new(),
            (Threshold::Whole(1) | Threshold::Share(_), None) => fault(
                "is a share of the buffer, so the buffer must be a number of cells, not \"infinite\"; otherwise write \
                 a number of cells, such as \"800 cells\""
                    .into(),
            ),
            (Threshold::Percent(_) | Threshold::Below(_), None) => {
                fault("depends on the size of the buffer, which must be a number of cells, not \"infinite\"".into())
            }
            (Threshold::Whole(cells @ 2..) | Threshold::Cells(cells), Some(k)) if cells > k => {
                fault(format!("is above the buffer of {k} cells; a threshold is at most the buffer"))
            }
            (Threshold::Below(cells), Some(k)) if cells > k => {
                fault(format!("is below zero, because the buffer has only {k} cells"))
            }
            _ => Vec::new(),
        }
    }

    /// Returns the value as it is written in a scenario: strings are in quotes.
    pub(crate) fn written(self) -> String {
        match self {
            Threshold::Whole(_) | Threshold::Share(_) => self.to_string(),
            _ => format!("\"{self}\""),
        }
    }
}

/// Description of valid thresholds, for messages.
pub const EXPECTED: &str = "a threshold: a share of the buffer (0 to 1), a whole number of cells (2 or more), or a text such \
                        as \"80%\", \"800 cells\" or \"buffer - 200 cells\"";

/// Regular expression for strings that are thresholds.
const PATTERN: &str = r"^\s*([0-9]+\.?[0-9]*\s*%|\.[0-9]+\s*%|[0-9]+\s*cells?|buffer\s*-\s*[0-9]+\s*(cells?)?)\s*$";

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("is not {EXPECTED}");
        let trimmed = text.trim();
        if let Some(percent) = trimmed.strip_suffix('%') {
            let percent = decimal(percent).ok_or_else(refused)?;
            if percent > 100.0 {
                return Err("is more than the buffer; a share is at most \"100%\"".to_string());
            }
            return Ok(Threshold::Percent(percent));
        }
        let (below, number) = match trimmed.strip_prefix("buffer") {
            Some(rest) => (true, rest.trim_start().strip_prefix('-').ok_or_else(refused)?),
            None => (false, trimmed),
        };
        let number = number.trim();
        let bare = number.strip_suffix("cells").or_else(|| number.strip_suffix("cell"));
        let cells = bare.unwrap_or(number).trim();
        if cells.is_empty() || !cells.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(refused());
        }
        let cells: u32 = cells.parse().map_err(|_| more_than_any_buffer())?;
        match (below, bare) {
            (true, _) => Ok(Threshold::Below(cells)),
            (false, Some(_)) => Ok(Threshold::Cells(cells)),
            (false, None) => Err(format!("has no unit; write \"{cells} cells\", or the number without quotes")),
        }
    }
}

/// Parses a decimal number without sign and exponent.
fn decimal(text: &str) -> Option<f64> {
    let text = text.trim();
    let written = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|_| written)
}

fn more_than_any_buffer() -> String {
    format!("exceeds the largest possible buffer of {} cells", u32::MAX)
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |cells: u32| if cells == 1 { "" } else { "s" };
        match *self {
            Threshold::Whole(number) => number.fmt(f),
            Threshold::Share(share) => share.fmt(f),
            Threshold::Percent(percent) => write!(f, "{percent}%"),
            Threshold::Cells(cells) => write!(f, "{cells} cell{}", plural(cells)),
            Threshold::Below(cells) => write!(f, "buffer - {cells} cell{}", plural(cells)),
        }
    }
}

impl Serialize for Threshold {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Threshold::Whole(number) => serializer.serialize_u32(number),
            Threshold::Share(share) => serializer.serialize_f64(share),
            _ => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Threshold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AsWritten)
    }
}

/// Reads a number or a string.
struct AsWritten;

impl Visitor<'_> for AsWritten {
    type Value = Threshold;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Threshold, E> {
        Err(refused())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Threshold, E> {
        u32::try_from(number).map(Threshold::Whole).map_err(|_| E::custom(more_than_any_buffer()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Threshold, E> {
        u64::try_from(number).map_or_else(|_| Err(refused()), |number| self.visit_u64(number))
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the number is a whole number above 1")]
    fn visit_f64<E: Error>(self, number: f64) -> Result<Threshold, E> {
        match number {
            0.0..=1.0 => Ok(Threshold::Share(number)),
            // Programs write computed whole numbers in this form, with a decimal point.
            _ if number > 1.0 && number.fract() == 0.0 => self.visit_u64(number as u64),
            _ => Err(refused()),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Threshold, E> {
        text.parse().map_err(E::custom)
    }
}

fn refused<E: Error>() -> E {
    E::custom(format!("is not {EXPECTED}"))
}

impl JsonSchema for Threshold {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Threshold".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-threshold": true,
            "x-expect": EXPECTED,
            "examples": [0.8, "80%", 800, "buffer - 200 cells"],
            "anyOf": [
                { "type": "number", "minimum": 0, "maximum": 1, "description": "A share of the buffer." },
                { "type": "integer", "minimum": 2, "maximum": u32::MAX, "description": "Cells." },
                {
                    "type": "string",
                    "pattern": PATTERN,
                    "description": "A share of the buffer, a number of cells, or a number of cells below a full \
                                    buffer.",
                },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(value: Value) -> Result<Threshold, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    /// Returns the number of cells of this threshold in a buffer of 1000.
    fn cells(value: Value) -> f64 {
        read(value).unwrap().cells(1000)
    }

    /// Returns the elements of a JSON array.
    fn each(array: Value) -> Vec<Value> {
        serde_json::from_value(array).unwrap()
    }

    #[test]
    fn equivalent_thresholds_in_different_notations_give_the_same_number_of_cells() {
        for value in each(json!([0.8, "80%", 800, 800.0, "800 cells", "buffer - 200 cells"])) {
            assert_eq!(cells(value.clone()), 800.0, "{value}");
            assert_eq!(read(value.clone()).unwrap().whole_cells(1000), 800, "{value}");
        }
    }

    #[test]
    fn plain_numbers_up_to_1_are_shares_of_the_buffer_and_larger_numbers_are_cells() {
        for (r, spellings) in [
            (0.0, json!([0, 0.0, "0%"])),
            (1000.0, json!([1, 1.0, "100%", 1000])),
            (1.0, json!(["1 cell", "1 cells"])),
            (2.0, json!([2])),
            (999.0, json!(["buffer - 1 cell"])),
            (800.0, json!(["buffer-200"])),
        ] {
            for value in each(spellings) {
                assert_eq!(cells(value.clone()), r, "{value}");
            }
        }
    }

    #[test]
    fn serializing_a_threshold_preserves_the_notation_that_was_parsed() {
        for value in each(json!([0, 1, 0.9, 1.0, 800, "12.5%", "1 cell", "buffer - 1 cell"])) {
            assert_eq!(serde_json::to_value(read(value.clone()).unwrap()).unwrap(), value);
        }
        let written = |text: &str| text.parse::<Threshold>().unwrap().to_string();
        assert_eq!(written(" 12.50 % "), "12.5%");
        assert_eq!(written("800cells"), "800 cells");
        assert_eq!(written("buffer-200"), "buffer - 200 cells");
        assert_eq!(serde_json::to_string(&read(json!(800.0)).unwrap()).unwrap(), "800");
    }

    #[test]
    fn a_threshold_as_a_share_of_the_buffer_is_rounded_down_without_floating_point_errors() {
        let whole = |value: Value, k| read(value).unwrap().whole_cells(k);
        assert_eq!((whole(json!("29%"), 100), whole(json!(0.29), 100)), (29, 29));
        assert_eq!((whole(json!("32.3%"), 1000), whole(json!(0.323), 1000)), (323, 323));
        assert_eq!((whole(json!("33.5%"), 101), whole(json!(0.335), 101)), (33, 33));
        assert_eq!(read(json!("33.5%")).unwrap().cells(101), 33.835);
        // Tests every fraction with three decimals, in buffers for which it is a whole number of cells and in other
        // buffers.
        for k in [1, 7, 100, 1000, 12_000, 99_999, 1 << 28] {
            for thousandths in 0..=1000u32 {
                let expected = u32::try_from(u64::from(thousandths) * u64::from(k) / 1000).unwrap();
                assert_eq!(whole(json!(f64::from(thousandths) / 1000.0), k), expected, "{thousandths} of {k}");
                let percent = format!("{}.{}%", thousandths / 10, thousandths % 10);
                assert_eq!(whole(json!(percent), k), expected, "{percent} of {k}");
            }
        }
        assert_eq!(whole(json!(1), u32::MAX), u32::MAX);
    }

    #[test]
    fn invalid_threshold_strings_and_numbers_are_refused() {
        for text in ["", "90", "ninety%", "-1%", "1e1%", "NaN%", "800 frames", "cells", "buffer", "buffer + 1 cells"] {
            assert!(text.parse::<Threshold>().is_err(), "{text}");
        }
        assert_eq!("100.1%".parse::<Threshold>().unwrap_err(), "is more than the buffer; a share is at most \"100%\"");
        assert!("800".parse::<Threshold>().unwrap_err().contains("write \"800 cells\""));
        assert!("4294967296 cells".parse::<Threshold>().unwrap_err().contains("4294967295"));
        for number in each(json!([-1, -0.1, 1.9, 800.5, true])) {
            assert_eq!(read(number).unwrap_err(), format!("is not {EXPECTED}"));
        }
        assert!(read(json!(4_294_967_296_u64)).unwrap_err().contains("exceeds the largest possible buffer"));
        assert!(read(json!(1e300)).unwrap_err().contains("exceeds the largest possible buffer"));
    }

    #[test]
    fn a_threshold_may_not_exceed_the_buffer_and_a_share_needs_a_finite_buffer() {
        for (buffer, refused, values) in [
            (Some(1000), 0, json!([1000, "1000 cells", "buffer - 1000 cells", 1, "100%"])),
            (Some(1000), 1, json!([1001, "1001 cells", "buffer - 1001 cells"])),
            (None, 0, json!([0, 0.0, 1001, "1 cell"])),
            (None, 1, json!([1, 0.5, "90%", "buffer - 10"])),
        ] {
            for value in each(values) {
                let faults = read(value.clone()).unwrap().check("threshold", buffer);
                assert_eq!(faults.len(), refused, "{value} of {buffer:?}");
            }
        }
        assert_eq!(Threshold::Share(0.9).check("threshold", None)[0].value, "0.9");
        assert_eq!(Threshold::Cells(9).check("threshold", Some(8))[0].value, "\"9 cells\"");
    }
}
