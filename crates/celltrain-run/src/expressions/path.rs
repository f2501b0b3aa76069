//! Follows the path of a measure into the answer of a run.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::aggregates;
use super::similar::nearest;
use crate::as_python::{number_in, quoted};
use crate::vetting::grouped;

/// Maximum number of known names that are searched for a similar name. A mesh has thousands of connections, whose
/// search would take long.
const MOST_NEAR: usize = 200;

/// Other names under which users look for measures, each with a suggested measure.
const OTHERWISE: [(&str, &str); 9] = [
    ("throughput", "goodput_mbps or flows.sum(*).throughput_mbps"),
    ("loss", "cells.lost"),
    ("losses", "cells.lost"),
    ("drops", "cells.discarded"),
    ("utilisation", "ports.bottleneck.utilisation"),
    ("utilization", "ports.bottleneck.utilisation"),
    ("queue", "ports.bottleneck.max_queue_cells"),
    ("timeouts", "flows.sum(*).timeouts"),
    ("jain", "fairness"),
];

/// The reason why a path leads to no number.
#[derive(Debug)]
pub(super) enum Lack {
    /// This run has no value at the path, but other runs may have a value there.
    Undefined,
    /// The path does not exist in the results of this scenario. The text is the error message.
    Wrong(String),
}

fn wrong(problem: impl Into<String>) -> Lack {
    Lack::Wrong(problem.into())
}

/// Returns the number to which a path leads in an answer.
pub(super) fn follow(answer: &Value, path: &[&str]) -> Result<f64, Lack> {
    let Some(step) = path.first() else { return number(answer) };
    if let Some(members) = Members::of(answer) {
        return members.follow(path);
    }
    let mut problem = format!("a number or a string has no field {}", quoted(step));
    if !step.is_empty() && step.bytes().all(|digit| digit.is_ascii_digit()) {
        problem += "; the names of percentiles have no decimal point: p999 is the 99.9th percentile";
    }
    Err(Lack::Wrong(problem))
}

fn number(value: &Value) -> Result<f64, Lack> {
    match value {
        Value::Null => Err(Lack::Undefined),
        Value::Object(_) | Value::Array(_) => {
            Err(wrong("the path leads to a table or a list, not to a number: continue the path"))
        }
        Value::Bool(flag) => Ok(f64::from(u8::from(*flag))),
        Value::Number(number) => Ok(number.as_f64().expect("every number of an answer is finite")),
        Value::String(text) => number_in(text).ok_or_else(|| wrong("the path leads to a text, not to a number")),
    }
}

/// The members of a table or list of an answer, in their order.
pub(super) struct Members<'a> {
    /// Names and values of the members. A row of a list may have no name.
    all: Vec<(Option<&'a str>, Member<'a>)>,
    places: Places<'a>,
}

/// An index for finding members by name.
enum Places<'a> {
    InMap(&'a Map<String, Value>),
    Listed(HashMap<&'a str, usize>),
}

#[derive(Clone, Copy)]
enum Member<'a> {
    Value(&'a Value),
    Number(f64),
}

impl Member<'_> {
    fn follow(self, rest: &[&str]) -> Result<f64, Lack> {
        match (self, rest.first()) {
            (Self::Value(value), _) => follow(value, rest),
            (Self::Number(number), None) => Ok(number),
            (Self::Number(number), Some(_)) => follow(&Value::from(number), rest),
        }
    }
}

impl<'a> Members<'a> {
    /// Returns the members of a table or of a list of tables. The members of a list are its rows, by name or VC.
    fn of(value: &'a Value) -> Option<Self> {
        match value {
            Value::Object(map) => Some(Self { all: Vec::new(), places: Places::InMap(map) }),
            Value::Array(rows) if rows.iter().all(Value::is_object) => {
                let name = |row: &'a Value| row.get("name").or_else(|| row.get("vc")).and_then(Value::as_str);
                Some(Self::listed(rows.iter().map(|row| (name(row), Member::Value(row)))))
            }
            _ => None,
        }
    }

    /// Creates a table whose members are these numbers.
    pub(super) fn of_numbers(numbers: impl Iterator<Item = (&'a str, f64)>) -> Self {
        Self::listed(numbers.map(|(name, number)| (Some(name), Member::Number(number))))
    }

    /// Collects the members of a list. If two members have the same name, the later value replaces the earlier value.
    fn listed(members: impl Iterator<Item = (Option<&'a str>, Member<'a>)>) -> Self {
        let (mut all, mut places, mut unnamed): (Vec<_>, HashMap<_, _>, _) = (Vec::new(), HashMap::new(), None);
        for (name, member) in members {
            let next = all.len();
            let place = match name {
                Some(name) => *places.entry(name).or_insert(next),
                None => *unnamed.get_or_insert(next),
            };
            if place == next {
                all.push((name, member));
            } else {
                all[place] = (name, member);
            }
        }
        Self { all, places: Places::Listed(places) }
    }

    fn get(&self, name: &str) -> Option<Member<'a>> {
        match &self.places {
            Places::InMap(map) => map.get(name).map(Member::Value),
            Places::Listed(places) => places.get(name).map(|&place| self.all[place].1),
        }
    }

    fn len(&self) -> usize {
        match &self.places {
            Places::InMap(map) => map.len(),
            Places::Listed(_) => self.all.len(),
        }
    }

    fn names(&self) -> Vec<&'a str> {
        match &self.places {
            Places::InMap(map) => map.keys().map(String::as_str).collect(),
            Places::Listed(_) => self.all.iter().filter_map(|(name, _)| *name).collect(),
        }
    }

    /// Returns the number to which a path of at least one step leads.
    pub(super) fn follow(&self, path: &[&str]) -> Result<f64, Lack> {
        let (step, rest) = path.split_first().expect("the caller checks that there is a step");
        let Some((combine, names)) = several(step) else {
            return self.get(step).ok_or_else(|| self.unknown(step))?.follow(rest);
        };
        let combine = aggregates::named(combine)
            .ok_or_else(|| wrong(format!("there is no {}; choose from {}", quoted(combine), aggregates::NAMES)))?;
        let values = if let (Places::Listed(_), "*") = (&self.places, names) {
            self.all.iter().map(|(_, member)| member.follow(rest)).collect::<Result<Vec<f64>, Lack>>()?
        } else {
            let chosen = named(names, &self.names()).map_err(Lack::Wrong)?;
            let member = |name: &String| self.get(name).expect("the name is known").follow(rest);
            chosen.iter().map(member).collect::<Result<_, _>>()?
        };
        if values.is_empty() && combine.needs_values() {
            return Err(wrong(format!("{} has no values", quoted(step))));
        }
        combine.of(&values).ok_or(Lack::Undefined)
    }

    fn unknown(&self, step: &str) -> Lack {
        // At the top level of the answer, suggests a measure for a common other name. At all levels, suggests a similar
        // name.
        let others: &[(&str, &str)] = if self.get("efficiency").is_some() { &OTHERWISE } else { &[] };
        let near = if self.len() <= MOST_NEAR {
            let known: Vec<&str> = self.names().into_iter().chain(others.iter().map(|(name, _)| *name)).collect();
            nearest(step, &known)
        } else {
            None
        };
        let other = |name: &str| others.iter().find(|(known, _)| *known == name).map(|(_, meant)| *meant);
        let meant = other(step).or_else(|| near.and_then(other)).or(near);
        let hint = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
        Lack::Wrong(format!("there is no {}{hint}", quoted(step)))
    }
}

/// Splits a step such as `sum(tcp1-3)` into its function and names; `None` for other steps.
pub(super) fn several(step: &str) -> Option<(&str, &str)> {
    let (function, rest) = step.split_once('(')?;
    let names = rest.strip_suffix(')')?;
    let is_word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_');
    (is_word(function) && !names.is_empty() && !names.contains('\n')).then_some((function, names))
}

/// Returns the known names that `text` selects. It is a name, a range such as `tcp1-3`, `*` for all names, or a pattern
/// such as `edge*->sw1`.
///
/// # Errors
/// Returns a clause that describes the error in `text`.
pub fn named(text: &str, known: &[&str]) -> Result<Vec<String>, String> {
    let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
    if text == "*" {
        return Ok(owned(known.to_vec()));
    }
    if known.contains(&text) {
        return Ok(vec![text.to_owned()]);
    }
    if text.contains('*') {
        let pattern: Vec<char> = text.chars().collect();
        let fitting: Vec<&str> = known.iter().copied().filter(|name| fits(name, &pattern)).collect();
        return if fitting.is_empty() { Err(format!("no name matches {}", quoted(text))) } else { Ok(owned(fitting)) };
    }
    let Some((stem, first, last)) = range(text) else {
        return Err(format!("{} is neither a name nor a range of names", quoted(text)));
    };
    if first > last {
        return Err(format!("{} is an empty range: put the lower number first", quoted(text)));
    }
    // Check the length before expanding the range, which might not fit into memory.
    if last - first >= known.len() as u64 {
        let (count, most) = (grouped(last - first + 1), grouped(known.len() as u64));
        return Err(format!("{} is a range of {count} names, but there are only {most}", quoted(text)));
    }
    let there: HashSet<&str> = known.iter().copied().collect();
    let names: Vec<String> = (first..=last).map(|number| format!("{stem}{number}")).collect();
    match names.iter().find(|name| !there.contains(name.as_str())) {
        Some(missing) => Err(format!("there is no {}", quoted(missing))),
        None => Ok(names),
    }
}

/// Splits a range such as `tcp1-3`. The numbers have at most 19 digits.
fn range(text: &str) -> Option<(&str, u64, u64)> {
    let stem = text.find(|c: char| c.is_ascii_digit())?;
    let (first, last) = text[stem..].split_once('-')?;
    let number = |digits: &str| {
        let is_number = (1..=19).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit());
        is_number.then(|| digits.parse().ok()).flatten()
    };
    Some((&text[..stem], number(first)?, number(last)?))
}

/// Returns whether a name fits a pattern, in which `*` is the only wildcard.
fn fits(name: &str, pattern: &[char]) -> bool {
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut in_pattern) = (0, 0);
    // If the pattern after the last asterisk does not match, the asterisk matches one more character, and matching
    // continues from here.
    let mut retry: Option<(usize, usize)> = None;
    while at < name.len() {
        if in_pattern < pattern.len() && pattern[in_pattern] == '*' {
            retry = Some((at, in_pattern + 1));
            in_pattern += 1;
        } else if in_pattern < pattern.len() && pattern[in_pattern] == name[at] {
            at += 1;
            in_pattern += 1;
        } else if let Some((taken, after)) = retry {
            retry = Some((taken + 1, after));
            (at, in_pattern) = (taken + 1, after);
        } else {
            return false;
        }
    }
    pattern[in_pattern..].iter().all(|&c| c == '*')
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    /// Matches a pattern by trying every length of the text that an asterisk can match.
    fn fits_by_trial(name: &str, pattern: &str) -> bool {
        match pattern.strip_prefix('*') {
            Some(rest) => (0..=name.len()).any(|from| fits_by_trial(&name[from..], rest)),
            None => match pattern.chars().next() {
                Some(c) => name.strip_prefix(c).is_some_and(|rest| fits_by_trial(rest, &pattern[1..])),
                None => name.is_empty(),
            },
        }
    }

    proptest! {
        #[test]
        fn a_wildcard_pattern_matches_the_same_names_as_a_search_that_tries_every_possibility(name in "[ab]{0,7}", pattern in "[ab*]{0,7}") {
            let found = named(&pattern, &[&name]).is_ok();
            let is_pattern = pattern.contains('*') || pattern == name;
            prop_assert_eq!(found, is_pattern && fits_by_trial(&name, &pattern));
        }
    }

    #[test]
    fn a_pattern_with_many_asterisks_in_a_measure_is_matched_quickly() {
        // Regression: as a regular expression, the pattern backtracked forever.
        let begun = Instant::now();
        let (name, names) = ("b".repeat(200), vec!["b".repeat(1000); 100]);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for (pattern, known) in [("*b".repeat(14) + "*c", &[&*name][..]), ("*".repeat(9000) + "c", &names)] {
            assert!(named(&pattern, known).is_err_and(|problem| problem.starts_with("no name matches")));
        }
        assert!(begun.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn a_name_range_is_expanded_only_to_names_that_exist() {
        let known = ["tcp1", "tcp2", "tcp3"];
        assert_eq!(named("tcp2-3", &known).expect("both names of the range are known"), ["tcp2", "tcp3"]);
        let problem = |text: &str| named(text, &known).expect_err("the range is not valid for these names");
        assert!(problem("tcp1-99999999999").ends_with("is a range of 99,999,999,999 names, but there are only 3"));
        assert!(problem(&format!("tcp1-{}", "9".repeat(5000))).ends_with("is neither a name nor a range of names"));
        assert_eq!(problem("tcp2-1"), "'tcp2-1' is an empty range: put the lower number first");
        assert_eq!(problem("udp1-2"), "there is no 'udp1'");
    }
}
