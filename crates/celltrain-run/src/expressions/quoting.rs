//! Texts in messages, and numbers in texts, as Python writes and reads them: all messages come from one program.

use std::fmt::Write;

/// Returns a text in quotation marks, with escapes for invisible characters.
pub(super) fn quoted(text: &str) -> String {
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
    // An accent is visible after a letter.
    !format!("a{c}").escape_debug().to_string().starts_with("a\\")
}

/// Returns the number that a text consists of; `None` if it is not a number.
pub(super) fn number_in(text: &str) -> Option<f64> {
    let text = text.trim();
    let digit = |place: usize| text.as_bytes().get(place).is_some_and(u8::is_ascii_digit);
    // An underscore may separate two digits.
    let separates = |(place, _): (usize, &str)| place > 0 && digit(place - 1) && digit(place + 1);
    let is_number = text.match_indices('_').all(separates);
    is_number.then(|| text.replace('_', "").parse().ok()).flatten()
}
