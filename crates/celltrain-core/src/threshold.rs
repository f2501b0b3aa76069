//! Thresholds of a buffer, as scenarios write them: a plain number, or a text that says what it counts from.
//!
//! The plain number means what the policy's source means by it: cells for EPD, R / K for Selective Drop. The texts mean
//! the same for all: `"90%"` of the buffer, `"800 cells"`, `"buffer - 200 cells"`. A text may be as good as a number
//! for one buffer, and goes on meaning the same when the buffer is varied.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::Fault;

/// A threshold whose plain number is an `N`: of cells (`u32`), or a share of the buffer (`f64`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Threshold<N> {
    /// A number.
    Plain(N),
    /// A text.
    Written(Written),
}

/// A threshold that says what it counts from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Written {
    /// Of the buffer, 0 to 100.
    Percent(f64),
    /// From an empty buffer.
    Cells(u32),
    /// Cells below a full buffer.
    Below(u32),
}

impl<N> From<N> for Threshold<N> {
    fn from(number: N) -> Self {
        Threshold::Plain(number)
    }
}

impl Threshold<u32> {
    /// R, in cells, of a buffer of `capacity` cells. What waits is whole, so nothing is above R that is not above this.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to the capacity, rounded down")]
    pub fn cells(&self, capacity: u32) -> u32 {
        match self {
            Threshold::Plain(cells) => *cells,
            Threshold::Written(written) => written.cells(capacity) as u32,
        }
    }

    /// What is wrong with it for a buffer of `capacity` cells (`None`: without limit).
    pub fn check(&self, key: &str, capacity: Option<u32>) -> Vec<Fault> {
        match (self, capacity) {
            (Threshold::Plain(cells), Some(k)) => within(key, cells, *cells, k),
            (Threshold::Plain(_), None) => Vec::new(),
            (Threshold::Written(written), _) => written.check(key, capacity),
        }
    }
}

impl Threshold<f64> {
    /// R, in cells, of a buffer of `capacity` cells.
    pub fn cells(&self, capacity: u32) -> f64 {
        match self {
            Threshold::Plain(share) => share * f64::from(capacity),
            Threshold::Written(written) => written.cells(capacity),
        }
    }

    /// What is wrong with it for a buffer of `capacity` cells (`None`: without limit). The formulas of policies whose
    /// sources give a share need the buffer's size themselves.
    pub fn check(&self, key: &str, capacity: Option<u32>) -> Vec<Fault> {
        match (self, capacity) {
            (Threshold::Written(written), Some(_)) => written.check(key, capacity),
            (Threshold::Plain(_), Some(_)) => Vec::new(),
            (Threshold::Plain(share), None) => vec![Fault::new(
                key,
                share,
                "is a share of the buffer, so the buffer must be a number of cells, not \"infinite\"",
            )],
            (Threshold::Written(written), None) => vec![Fault::new(
                key,
                format!("\"{written}\""),
                "belongs to a formula that needs the buffer's size, so that must be a number of cells, not \"infinite\"",
            )],
        }
    }
}

impl Written {
    fn cells(self, capacity: u32) -> f64 {
        let k = f64::from(capacity);
        match self {
            // In this order: 29 % of 100 cells are 29.
            Written::Percent(percent) => percent * k / 100.0,
            Written::Cells(cells) => cells.into(),
            Written::Below(cells) => k - f64::from(cells),
        }
    }

    fn check(self, key: &str, capacity: Option<u32>) -> Vec<Fault> {
        match (self, capacity) {
            (Written::Cells(cells), Some(k)) => within(key, format!("\"{self}\""), cells, k),
            (Written::Below(cells), Some(k)) if cells > k => {
                let problem = format!("is below an empty buffer; the buffer has {k} cells");
                vec![Fault::new(key, format!("\"{self}\""), problem)]
            }
            (Written::Percent(_) | Written::Below(_), None) => {
                let problem = "counts from the buffer, so that must be a number of cells, not \"infinite\"";
                vec![Fault::new(key, format!("\"{self}\""), problem)]
            }
            _ => Vec::new(),
        }
    }
}

/// A threshold in cells is refused above the buffer.
fn within(key: &str, written: impl fmt::Display, cells: u32, k: u32) -> Vec<Fault> {
    if cells <= k {
        return Vec::new();
    }
    let problem = format!("is above the buffer of {k} cells; a threshold is at most the buffer");
    vec![Fault::new(key, written, problem)]
}

/// The texts there are, for messages.
pub const EXAMPLES: &str = "\"90%\" (of the buffer), \"800 cells\" or \"buffer - 200 cells\"";

impl FromStr for Written {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("is no threshold; write a number, or a text such as {EXAMPLES}");
        let trimmed = text.trim();
        if let Some(percent) = trimmed.strip_suffix('%') {
            let percent = decimal(percent).ok_or_else(refused)?;
            if percent > 100.0 {
                return Err("is more than the buffer; a share is at most \"100%\"".to_string());
            }
            return Ok(Written::Percent(percent));
        }
        let (below, number) = match trimmed.strip_prefix("buffer") {
            Some(rest) => (true, rest.trim_start().strip_prefix('-').ok_or_else(refused)?),
            None => (false, trimmed),
        };
        let bare = number.trim().strip_suffix("cells");
        let cells = bare.unwrap_or(number).trim();
        if cells.is_empty() || !cells.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(refused());
        }
        let cells: u32 = cells.parse().map_err(|_| format!("is more than any buffer, {} cells", u32::MAX))?;
        match (below, bare) {
            (true, _) => Ok(Written::Below(cells)),
            (false, Some(_)) => Ok(Written::Cells(cells)),
            (false, None) => Err(format!("does not say of what; write \"{cells} cells\", or a number without quotes")),
        }
    }
}

/// A decimal number without sign and exponent.
fn decimal(text: &str) -> Option<f64> {
    let text = text.trim();
    let written = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|_| written)
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Written::Percent(percent) => write!(f, "{percent}%"),
            Written::Cells(cells) => write!(f, "{cells} cells"),
            Written::Below(cells) => write!(f, "buffer - {cells} cells"),
        }
    }
}

impl<N: fmt::Display> fmt::Display for Threshold<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Threshold::Plain(number) => number.fmt(f),
            Threshold::Written(written) => written.fmt(f),
        }
    }
}

impl Serialize for Written {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The schema of a number, or of a text for it.
fn or_text(number: &Schema) -> Schema {
    json_schema!({
        "anyOf": [number, { "type": "string", "x-text": "threshold", "examples": ["90%", "buffer - 200 cells"] }],
    })
}

impl JsonSchema for Threshold<u32> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "CellThreshold".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut cells = u32::json_schema(generator);
        cells.insert("x-expect".into(), "a whole number of cells (0 or more; a share is a text)".into());
        or_text(&cells)
    }
}

impl JsonSchema for Threshold<f64> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ShareThreshold".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let expect = "a share of the buffer (0 to 1)";
        or_text(&json_schema!({ "type": "number", "minimum": 0, "maximum": 1, "x-expect": expect }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Threshold<u32> {
        Threshold::Written(text.parse().unwrap())
    }

    #[test]
    fn each_form_is_what_it_says_of_a_buffer_and_writes_itself_again() {
        let expected = [("90%", 900), ("800 cells", 800), ("buffer - 200 cells", 800), ("0%", 0), ("100%", 1000)];
        for (text, cells) in expected {
            assert_eq!(written(text).cells(1000), cells);
            assert_eq!(written(text).to_string(), text);
            let share: Threshold<f64> = serde_json::from_value(text.into()).unwrap();
            assert_eq!(share.cells(1000), f64::from(cells));
            assert_eq!(serde_json::to_value(share).unwrap(), text);
        }
        for (text, same) in [(" 12.50 % ", "12.5%"), ("800cells", "800 cells"), ("buffer-200", "buffer - 200 cells")] {
            assert_eq!(written(text).to_string(), same);
        }
    }

    #[test]
    fn a_share_of_a_buffer_is_exact_and_only_what_waits_is_whole() {
        // 0.29 * 100 is 28.999999999999996.
        assert_eq!(written("29%").cells(100), 29);
        assert_eq!(written("33.5%").cells(101), 33);
        assert_eq!(Threshold::<f64>::Written("33.5%".parse().unwrap()).cells(101), 33.835);
    }

    #[test]
    fn a_plain_number_means_what_the_policy_means_by_it() {
        let cells: Threshold<u32> = serde_json::from_str("800").unwrap();
        let share: Threshold<f64> = serde_json::from_str("0.9").unwrap();
        assert_eq!((cells.cells(1000), share.cells(1000)), (800, 900.0));
        assert_eq!(serde_json::to_string(&(cells, share)).unwrap(), "[800,0.9]");
    }

    #[test]
    fn what_no_buffer_can_have_is_refused() {
        for text in ["", "90", "ninety%", "-1%", "1e1%", "NaN%", "800 frames", "cells", "buffer", "buffer + 1 cells"] {
            assert!(text.parse::<Written>().is_err(), "{text}");
        }
        assert_eq!("101%".parse::<Written>().unwrap_err(), "is more than the buffer; a share is at most \"100%\"");
        assert!("800".parse::<Written>().unwrap_err().contains("write \"800 cells\""));
        assert!("4294967296 cells".parse::<Written>().unwrap_err().contains("4294967295"));
    }

    #[test]
    fn a_threshold_above_below_or_without_its_buffer_is_refused() {
        let of = |threshold: Threshold<u32>, k| threshold.check("threshold", k).len();
        assert_eq!([of(1000.into(), Some(1000)), of(1001.into(), Some(1000)), of(1001.into(), None)], [0, 1, 0]);
        assert_eq!([of(written("1000 cells"), Some(1000)), of(written("1001 cells"), Some(1000))], [0, 1]);
        assert_eq!([of(written("buffer - 10"), Some(10)), of(written("buffer - 11"), Some(10))], [0, 1]);
        assert_eq!(
            [of(written("90%"), None), of(written("buffer - 10"), None), of(written("9 cells"), None)],
            [1, 1, 0]
        );
        assert_eq!(Threshold::Plain(0.9).check("threshold", None)[0].value, "0.9");
    }
}
