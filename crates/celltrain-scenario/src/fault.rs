//! What is wrong with a scenario, in parts and as the line to print.

use std::fmt;

use serde::Serialize;

/// One thing that is wrong: where, what, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The file, or what stands for it.
    pub file: String,
    /// Its line, from 1; none for a scenario that did not come from a text.
    pub line: Option<usize>,
    /// The key's full path, for example `port.bottleneck.buffer`; empty for the text as a whole.
    pub key: String,
    /// The value as written; empty where there is none.
    pub value: String,
    /// What is wrong and what would be right, a clause that follows `key = value`.
    pub problem: String,
    /// The whole line to print.
    pub message: String,
}

/// Something to look at before trusting a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// The key's full path.
    pub key: String,
    /// What to know.
    pub message: String,
}

/// A fault before it is known where its key stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFault {
    /// The key's full path.
    pub key: String,
    /// The value as written; empty where there is none.
    pub value: String,
    /// A clause that follows `key = value`.
    pub problem: String,
}

impl KeyFault {
    /// A fault of a value.
    pub fn of_value(key: impl Into<String>, value: impl fmt::Display, problem: impl Into<String>) -> Self {
        Self { key: key.into(), value: value.to_string(), problem: problem.into() }
    }

    /// A fault of a key, whatever its value.
    pub fn of_key(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { key: key.into(), value: String::new(), problem: problem.into() }
    }

    /// The fault with its place.
    pub fn reported(&self, file: &str, line: Option<usize>) -> Fault {
        let KeyFault { key, value, problem } = self.clone();
        let place = line.map_or_else(|| file.to_string(), |line| format!("{file}:{line}"));
        let subject = match (key.is_empty(), value.is_empty()) {
            (true, _) => String::new(),
            (false, true) => format!("{key} "),
            (false, false) => format!("{key} = {value} "),
        };
        Fault { message: format!("{place}: {subject}{problem}"), file: file.to_string(), line, key, value, problem }
    }
}

/// The name most like `given`, if one is like enough to be meant.
pub fn nearest<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    names
        .into_iter()
        .map(|name| (distance(given, name), name))
        .filter(|(distance, name)| *distance <= 2.max(name.len() / 3) && *distance < name.len().min(given.len()))
        .min()
        .map(|(_, name)| name)
}

/// Levenshtein's edit distance, on the first characters of long names.
#[expect(clippy::arithmetic_side_effects, reason = "lengths up to 64")]
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().take(64).collect();
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_miss_finds_the_name_meant() {
        assert_eq!(nearest("bufer", ["buffer", "policy"]), Some("buffer"));
        assert_eq!(nearest("selectivedrop", ["epd", "selective_drop"]), Some("selective_drop"));
        assert_eq!(nearest("xyzzy", ["buffer", "policy"]), None);
    }
}
