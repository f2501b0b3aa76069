//! Faults in source text, with their positions.

use std::fmt;
use std::ops::Range;

/// A fault in source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Position in the text, in bytes.
    pub at: Range<usize>,
    /// The problem and its remedy, as a clause without a subject, for example `does not know "Q"; did you mean K?`.
    pub problem: String,
}

impl Fault {
    /// Creates a fault at a position.
    pub fn new(at: Range<usize>, problem: impl Into<String>) -> Self {
        Self { at, problem: problem.into() }
    }

    /// Formats the problem, followed by the line of the text with carets under the position.
    pub fn shown(&self, text: &str) -> String {
        let [line, carets] = self.excerpt(text);
        format!("{}\n    {line}\n    {carets}", self.problem)
    }

    /// Returns the faulty line of the text, and carets to print below it.
    pub fn excerpt(&self, text: &str) -> [String; 2] {
        let at = self.at.start.min(text.len());
        let start = text[..at].rfind('\n').map_or(0, |before| before.saturating_add(1));
        let line = text[start..].lines().next().unwrap_or_default();
        let before = text[start..at].chars().count();
        let marked = text.get(at..self.at.end.min(text.len())).unwrap_or_default();
        let marked = marked.lines().next().unwrap_or_default().chars().count().max(1);
        // Show only the surroundings of the position if the line is long.
        let left = before.saturating_sub(SHOWN / 2);
        let shown: String = line.chars().skip(left).take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
        let [dots, more] =
            [left > 0, line.chars().count() > left.saturating_add(SHOWN)].map(|cut| if cut { "..." } else { "" });
        let indent = before.saturating_sub(left).saturating_add(dots.len());
        let carets = marked.min(SHOWN.saturating_sub(before.saturating_sub(left))).max(1);
        [format!("{dots}{shown}{more}"), format!("{:indent$}{}", "", "^".repeat(carets))]
    }
}

/// A setting that a model refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingFault {
    /// The setting's key inside its own table, for example `threshold` or `thresholds.tcp1`.
    pub key: String,
    /// Value of the key, as written in a scenario; empty if the fault does not concern a single value.
    pub value: String,
    /// The problem and the remedy: a clause that follows the value, for example `is above the buffer of 1000 cells`.
    pub problem: String,
    /// The faulty line of source text and the marks below it; empty if the fault is not in source text.
    pub excerpt: Vec<String>,
}

impl SettingFault {
    /// Creates a fault of `key` with `value`; `problem` is a clause such as "is …" or "needs …".
    pub fn new(key: impl Into<String>, value: impl fmt::Display, problem: impl Into<String>) -> Self {
        Self { key: key.into(), value: value.to_string(), problem: problem.into(), excerpt: Vec::new() }
    }
}

/// Maximum number of characters shown of a line.
const SHOWN: usize = 80;

/// Returns the known name most similar to `given`, if a similar name exists.
pub fn nearest<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let close = |name: &str| {
        let (given, lower) = (given.to_lowercase(), name.to_lowercase());
        let distance = distance(&given, &lower);
        // Names of one letter match only if the letters are equal, apart from case.
        (distance <= name.len().min(given.len()) / 3).then_some(distance)
    };
    names.into_iter().filter_map(|name| close(name).map(|distance| (distance, name))).min().map(|(_, name)| name)
}

/// Returns Levenshtein's edit distance between the first 40 characters of two names.
fn distance(a: &str, b: &str) -> usize {
    let [a, b]: [Vec<char>; 2] = [a, b].map(|text| text.chars().take(40).collect());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.iter().enumerate() {
            let change = diagonal + usize::from(from != to);
            let shortest = change.min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], shortest);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_in_an_error_message_points_to_the_column_of_the_error_in_the_formula() {
        let text = "X <= R or\n  Q <= 3";
        let shown = Fault::new(12..13, "does not know \"Q\"").shown(text);
        assert_eq!(shown, "does not know \"Q\"\n      Q <= 3\n      ^");
    }

    #[test]
    fn in_an_error_message_a_long_formula_line_is_shortened_to_the_text_around_the_error() {
        let text = format!("{}Q{}", "X + ".repeat(100), " + X".repeat(100));
        let shown = Fault::new(400..401, "x").shown(&text);
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[1].len() < 100, "{shown}");
        assert_eq!(lines[1].find('Q'), lines[2].find('^'), "{shown}");
    }

    #[test]
    fn an_error_at_the_end_of_a_formula_is_marked_after_the_last_character() {
        assert_eq!(Fault::new(3..3, "ends").shown("X <"), "ends\n    X <\n       ^");
    }

    #[test]
    fn the_error_for_a_misspelt_name_in_a_formula_suggests_the_most_similar_known_name() {
        assert_eq!(nearest("tresh", ["thresh", "K"]), Some("thresh"));
        assert_eq!(nearest("k", ["X", "K"]), Some("K"));
        assert_eq!(nearest("Q", ["X", "K"]), None);
    }
}
