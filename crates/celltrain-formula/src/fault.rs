//! What is wrong with a text, and where.

use std::ops::Range;

/// One thing that is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where in the text, in bytes.
    pub at: Range<usize>,
    /// What is wrong and what would be right: a clause without a subject, for example
    /// `does not know "Q"; did you mean K?`.
    pub problem: String,
}

impl Fault {
    /// A fault at a place.
    pub fn new(at: Range<usize>, problem: impl Into<String>) -> Self {
        Self { at, problem: problem.into() }
    }

    /// The problem, and below it the line of the text with carets under the place.
    pub fn shown(&self, text: &str) -> String {
        let [line, carets] = self.excerpt(text);
        format!("{}\n    {line}\n    {carets}", self.problem)
    }

    /// The line of the text with the place, and carets to stand under it.
    pub fn excerpt(&self, text: &str) -> [String; 2] {
        let at = self.at.start.min(text.len());
        let start = text[..at].rfind('\n').map_or(0, |before| before.saturating_add(1));
        let line = text[start..].lines().next().unwrap_or_default();
        let before = text[start..at].chars().count();
        let marked = text.get(at..self.at.end.min(text.len())).unwrap_or_default();
        let marked = marked.lines().next().unwrap_or_default().chars().count().max(1);
        // Of a long line, what stands around the place.
        let left = before.saturating_sub(SHOWN / 2);
        let shown: String = line.chars().skip(left).take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
        let [dots, more] =
            [left > 0, line.chars().count() > left.saturating_add(SHOWN)].map(|cut| if cut { "..." } else { "" });
        let indent = before.saturating_sub(left).saturating_add(dots.len());
        let carets = marked.min(SHOWN.saturating_sub(before.saturating_sub(left))).max(1);
        [format!("{dots}{shown}{more}"), format!("{:indent$}{}", "", "^".repeat(carets))]
    }
}

/// Characters of a line that are shown.
const SHOWN: usize = 80;

/// The name most like `given`, if one is like enough to be meant.
pub fn nearest<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let close = |name: &str| {
        let (given, lower) = (given.to_lowercase(), name.to_lowercase());
        let distance = distance(&given, &lower);
        // A name of one letter is like another only in another case.
        (distance <= name.len().min(given.len()) / 3).then_some(distance)
    };
    names.into_iter().filter_map(|name| close(name).map(|distance| (distance, name))).min().map(|(_, name)| name)
}

/// Levenshtein's edit distance, on the first characters of long names.
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
    fn carets_stand_under_the_place_on_its_line() {
        let text = "X <= R or\n  Q <= 3";
        let shown = Fault::new(12..13, "does not know \"Q\"").shown(text);
        assert_eq!(shown, "does not know \"Q\"\n      Q <= 3\n      ^");
    }

    #[test]
    fn of_a_long_line_the_surroundings_are_shown() {
        let text = format!("{}Q{}", "X + ".repeat(100), " + X".repeat(100));
        let shown = Fault::new(400..401, "x").shown(&text);
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[1].len() < 100, "{shown}");
        assert_eq!(lines[1].find('Q'), lines[2].find('^'), "{shown}");
    }

    #[test]
    fn a_place_at_the_end_is_marked_behind_the_text() {
        assert_eq!(Fault::new(3..3, "ends").shown("X <"), "ends\n    X <\n       ^");
    }

    #[test]
    fn a_near_miss_finds_the_name_meant() {
        assert_eq!(nearest("tresh", ["thresh", "K"]), Some("thresh"));
        assert_eq!(nearest("k", ["X", "K"]), Some("K"));
        assert_eq!(nearest("Q", ["X", "K"]), None);
    }
}
