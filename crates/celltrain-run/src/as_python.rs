//! Texts and numbers as Python writes and reads them, because keys and messages were first written in Python.

use std::fmt::Write;
use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

/// Returns a text in quotation marks, with escapes for invisible characters.
pub(crate) fn quoted(text: &str) -> String {
    let mark = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut quoted = String::from(mark);
    for c in text.chars() {
        let number = u32::from(c);
        // Writing to a string cannot fail.
        let _ = match c {
            '\n' => quoted.write_str("\\n"),
            '\r' => quoted.write_str("\\r"),
            '\t' => quoted.write_str("\\t"),
            '\\' => quoted.write_str("\\\\"),
            c if c == mark => write!(quoted, "\\{c}"),
            c if is_visible(c) => quoted.write_char(c),
            _ if number < 0x100 => write!(quoted, "\\x{number:02x}"),
            _ if number < 0x1_0000 => write!(quoted, "\\u{number:04x}"),
            _ => write!(quoted, "\\U{number:08x}"),
        };
    }
    quoted.push(mark);
    quoted
}

fn is_visible(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    // Test the character after a letter, because a combining accent is visible only after another character.
    !format!("a{c}").escape_debug().to_string().starts_with("a\\")
}

/// Returns the number that a text consists of; `None` if the text is not a number.
pub(crate) fn number_in(text: &str) -> Option<f64> {
    let text = text.trim();
    let digit = |place: usize| text.as_bytes().get(place).is_some_and(u8::is_ascii_digit);
    // An underscore may separate two digits.
    let separates = |(place, _): (usize, &str)| place > 0 && digit(place - 1) && digit(place + 1);
    let is_number = text.match_indices('_').all(separates);
    is_number.then(|| text.replace('_', "").parse().ok()).flatten()
}

/// Writes JSON without spaces.
pub(crate) fn json(value: &Value) -> String {
    let mut text = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut text, Numbers)).expect("all keys are strings");
    String::from_utf8(text).expect("JSON is UTF-8")
}

struct Numbers;

impl Formatter for Numbers {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(number(value).as_bytes())
    }
}

/// Returns the shortest text of a finite number. Absolute values below 0.0001 or from 10^16 have an exponent.
fn number(value: f64) -> String {
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').expect("the format has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is a whole number");
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |mantissa| ("-", mantissa));
    let digits = mantissa.replace('.', "");
    let shift = usize::try_from(exponent.abs()).expect("exponents have at most three digits");
    match exponent {
        0..16 => {
            let padded = format!("{digits:0<width$}", width = shift + 2);
            let (whole, rest) = padded.split_at(shift + 1);
            format!("{sign}{whole}.{rest}")
        }
        -4..0 => format!("{sign}0.{}{digits}", "0".repeat(shift - 1)),
        _ => format!("{sign}{mantissa}e{}{shift:02}", if exponent < 0 { '-' } else { '+' }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_as_in_python() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-155.52, "-155.52"),
            (100.0, "100.0"),
            (0.1 + 0.2, "0.30000000000000004"),
            (0.0001, "0.0001"),
            (0.00012, "0.00012"),
            (0.000_099, "9.9e-05"),
            (1e-7, "1e-07"),
            (1.5e-300, "1.5e-300"),
            (123_456_789.125, "123456789.125"),
            (9_999_999_999_999_998.0, "9999999999999998.0"),
            (1e16, "1e+16"),
            (1.234_567_890_123_456_8e17, "1.2345678901234568e+17"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
        ] {
            assert_eq!(number(value), text);
            assert_eq!(number(value).parse(), Ok(value));
        }
    }

    #[test]
    fn json_output_has_no_spaces_and_strings_are_escaped_only_where_json_requires_it() {
        let value = serde_json::json!({"b": [1, 2.5, null], "a": "\u{e9}\u{7f}\n\u{1}\"", "c": {}});
        assert_eq!(json(&value), "{\"a\":\"\u{e9}\u{7f}\\n\\u0001\\\"\",\"b\":[1,2.5,null],\"c\":{}}");
    }

    #[test]
    fn quotation_marks_and_invisible_characters_are_escaped_as_in_python() {
        for (text, shown) in [
            ("a", "'a'"),
            ("it's", "\"it's\""),
            ("'\"", "'\\'\"'"),
            ("\n\t\\\u{7f}\u{a0}\u{200b}\u{e0001}", "'\\n\\t\\\\\\x7f\\xa0\\u200b\\U000e0001'"),
            ("e\u{301}\u{fc}", "'e\u{301}\u{fc}'"),
        ] {
            assert_eq!(quoted(text), shown);
        }
    }

    #[test]
    fn a_number_given_as_a_string_is_parsed_as_a_number() {
        let found = [" 1_000.5\n", "inf", "-.5e-3", "+7.", "1__0", "_1", "1_", "0x1", "", "5us"].map(number_in);
        assert_eq!(found[..4], [Some(1000.5), Some(f64::INFINITY), Some(-0.0005), Some(7.0)]);
        assert_eq!(found[4..], [None; 6]);
    }
}
