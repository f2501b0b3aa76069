//! Faults and warnings about a scenario: their parts, and the messages to print.

use std::fmt;
use std::ops::Deref;

use serde::Serialize;

/// A fault of a scenario: its location, the problem and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Name of the file that contains the fault, or another name of the source.
    pub file: String,
    /// Line of the fault, from 1; `None` if the line is unknown, as in JSON.
    pub line: Option<usize>,
    /// Full path of the faulty key, for example `port.bottleneck.buffer`; empty if the fault concerns the text as a
    /// whole.
    pub key: String,
    /// The faulty value as the user wrote it; empty if the fault is not in a value.
    pub value: String,
    /// The problem and its remedy, as a clause after `key = value`.
    pub problem: String,
    /// The complete message to print.
    pub message: String,
    /// Lines to print below the message: an excerpt in which the position is marked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excerpt: Vec<String>,
}

/// A warning to consider before trusting a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// Full path of the key.
    pub key: String,
    /// The text of the warning.
    pub message: String,
}

/// A fault whose file and line are still unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFault {
    /// Full path of the key.
    pub key: String,
    /// The faulty value as the user wrote it; empty if the fault is not in a value.
    pub value: String,
    /// The problem and its remedy, as a clause after `key = value`.
    pub problem: String,
    /// Lines to print below the message; see [`Fault::excerpt`].
    pub excerpt: Vec<String>,
}

/// Faults of a scenario. The first faults are stored and all further faults are only counted, because a file may have a
/// hundred thousand faults.
#[derive(Debug, Default)]
pub struct Faults {
    kept: Vec<KeyFault>,
    count: usize,
}

/// Maximum number of faults that are stored. More faults probably mean that a faulty program wrote the scenario, and no
/// user would read them all.
pub const MAX_FAULTS: usize = 1000;

impl Faults {
    /// Adds a fault to the list.
    pub fn push(&mut self, fault: KeyFault) {
        self.count = self.count.saturating_add(1);
        if self.kept.len() < MAX_FAULTS {
            self.kept.push(fault);
        }
    }

    /// Appends the faults of another list.
    pub fn extend(&mut self, others: Self) {
        self.count = self.count.saturating_add(others.count);
        let room = MAX_FAULTS.saturating_sub(self.kept.len());
        self.kept.extend(others.kept.into_iter().take(room));
    }

    /// Merges equal faults from index `from` on. `note` returns a clause about the number of faults that were merged
    /// into one.
    pub fn merge_equal(&mut self, from: usize, note: impl Fn(usize) -> String) {
        let mut merged: Vec<(KeyFault, usize)> = Vec::new();
        let from = from.min(self.kept.len());
        for fault in self.kept.drain(from..) {
            match merged.iter_mut().find(|(other, _)| *other == fault) {
                Some((_, times)) => {
                    *times = times.saturating_add(1);
                    self.count = self.count.saturating_sub(1);
                }
                None => merged.push((fault, 1)),
            }
        }
        self.kept.extend(merged.into_iter().map(|(fault, times)| match times {
            1 => fault,
            _ => KeyFault { problem: format!("{} {}", fault.problem, note(times)), ..fault },
        }));
    }

    /// Returns the number of faults, including faults that are not stored.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the number of faults that were counted but not stored.
    pub fn more(&self) -> usize {
        self.count.saturating_sub(self.kept.len())
    }
}

impl Deref for Faults {
    type Target = [KeyFault];

    fn deref(&self) -> &[KeyFault] {
        &self.kept
    }
}

impl KeyFault {
    /// Creates a fault in a value.
    pub fn of_value(key: impl Into<String>, value: impl fmt::Display, problem: impl Into<String>) -> Self {
        Self { key: key.into(), value: value.to_string(), problem: problem.into(), excerpt: Vec::new() }
    }

    /// Creates a fault that concerns a key, not its value.
    pub fn of_key(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { key: key.into(), value: String::new(), problem: problem.into(), excerpt: Vec::new() }
    }

    /// Adds the file and line to the fault.
    pub fn reported(&self, file: &str, line: Option<usize>) -> Fault {
        // Any field of a fault may contain megabytes of user input.
        let [file, key, problem] = [file, &self.key, &self.problem].map(|text| shortened(text, MOST_CLAUSE));
        let value = shortened(&self.value, MOST_VALUE);
        let place = line.map_or_else(|| file.clone(), |line| format!("{file}:{line}"));
        let subject = match (key.is_empty(), value.is_empty()) {
            (true, _) => String::new(),
            (false, true) => format!("{key} "),
            (false, false) => format!("{key} = {value} "),
        };
        let excerpt = self.excerpt.clone();
        Fault { message: format!("{place}: {subject}{problem}"), file, line, key, value, problem, excerpt }
    }
}

/// Maximum number of characters of a value in a message. A longer value is shortened in the middle.
const MOST_VALUE: usize = 100;
/// Maximum number of characters of a clause in a message. A longer clause is shortened in the middle.
const MOST_CLAUSE: usize = 1000;

/// Returns a string unchanged if it has at most `most` characters. Otherwise returns the string's beginning, length and
/// end.
fn shortened(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_string();
    }
    let note = format!("... ({length} in all) ...");
    let ends = most.saturating_sub(note.len()).max(2);
    let start: String = text.chars().take(ends.div_ceil(2)).collect();
    let end: String = text.chars().skip(length.saturating_sub(ends / 2)).collect();
    format!("{start}{note}{end}")
}

impl Warning {
    /// Returns the warning in printable form, with long strings shortened.
    #[must_use]
    pub fn reported(&self) -> Self {
        Self { key: shortened(&self.key, MOST_CLAUSE), message: shortened(&self.message, MOST_CLAUSE) }
    }
}

/// Returns the known name most similar to `given`, if a similar name exists.
pub fn nearest<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    names
        .into_iter()
        .map(|name| (distance(given, name), name))
        .filter(|(distance, name)| *distance <= 2.max(name.len() / 3) && *distance < name.len().min(given.len()))
        .min()
        .map(|(_, name)| name)
}

/// Returns the Levenshtein distance between the first 64 characters of two names.
fn distance(a: &str, b: &str) -> usize {
    let start = |name: &str| -> String { name.chars().take(64).collect() };
    strsim::levenshtein(&start(a), &start(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_in_a_message_is_shortened_in_the_middle_and_its_length_is_stated() {
        assert_eq!(shortened(&"ä".repeat(40), 40), "ä".repeat(40));
        let value = format!("{}Mbps", "9".repeat(1_000_000));
        assert_eq!(shortened(&value, 40), "99999999... (1000004 in all) ...9999Mbps");
        assert_eq!(shortened(&value, 40).len(), 40);
        let fault = KeyFault::of_value("k".repeat(5000), &value, format!("is {value}")).reported("file", Some(3));
        assert!(
            fault.message.len() < 2 * MOST_CLAUSE + MOST_VALUE + 20 && fault.value.len() <= MOST_VALUE,
            "{fault:?}"
        );
        assert!(fault.message.starts_with("file:3: kkk") && fault.message.ends_with("99Mbps"), "{fault:?}");
    }

    #[test]
    fn identical_errors_in_a_scenario_are_reported_once_with_their_count() {
        let mut faults = Faults::default();
        for key in ["a", "b", "a", "a"] {
            faults.push(KeyFault::of_key(key, "is wrong"));
        }
        faults.merge_equal(1, |times| format!("(at {times} switches)"));
        let told: Vec<String> = faults.iter().map(|fault| format!("{} {}", fault.key, fault.problem)).collect();
        assert_eq!(told, ["a is wrong", "b is wrong", "a is wrong (at 2 switches)"]);
        assert_eq!((faults.count(), faults.more()), (3, 0));
    }

    #[test]
    fn the_error_for_a_misspelt_name_suggests_the_most_similar_known_name() {
        assert_eq!(nearest("bufer", ["buffer", "policy"]), Some("buffer"));
        assert_eq!(nearest("selectivedrop", ["epd", "selective_drop"]), Some("selective_drop"));
        assert_eq!(nearest("xyzzy", ["buffer", "policy"]), None);
    }
}
