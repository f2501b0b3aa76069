//! Effects of open requests on measures: a percentile may be a lower bound, a mean excludes open requests, and a
//! percentile may have too few requests.

use serde_json::Value;

use super::path::{follow, named, several};
use crate::as_python::quoted;
use crate::vetting::grouped;

/// Statistics of requests, each with the number of requests that it needs.
pub const NEEDED: [(&str, u64); 4] = [("median", 2), ("p95", 20), ("p99", 100), ("p999", 1000)];

/// Maximum share of requests that may be open without a note about the mean of the completed requests.
const MOST_OPEN: f64 = 0.01;

/// A note about the open requests of a group. Notes are ordered by the number of open requests.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OpenNote {
    open: u64,
    pub(super) text: String,
    /// True if the measure is a percentile that is only a lower bound.
    pub(super) is_bound: bool,
}

/// Returns the statistic at the end of a path, its class of requests, and whether the class consists of queries.
fn statistic(path: &[String]) -> Option<(&str, &str, bool)> {
    let [list, _, class, measure] = path else { return None };
    let statistic = measure.rsplit_once('_').map_or(measure.as_str(), |(_, statistic)| statistic);
    (list == "requests").then_some((statistic, class, class == "queries"))
}

fn needed(statistic: &str) -> Option<u64> {
    NEEDED.iter().find(|(name, _)| *name == statistic).map(|(_, needed)| *needed)
}

/// Returns the word `queries` or `requests`, and the name of the measure that counts all queries or requests.
fn words(are_queries: bool) -> (&'static str, &'static str) {
    if are_queries { ("queries", "asked") } else { ("requests", "opened") }
}

/// Returns a clause about the reason why a percentile of requests or queries has no value; `None` for any other
/// measure.
pub(super) fn too_few(path: &[String], answer: &Value) -> Option<String> {
    let (statistic, class, are_queries) = statistic(path)?;
    let needed = needed(statistic)?;
    let (what, opened) = words(are_queries);
    // If the path combines several groups of requests, the same function combines their counts.
    let opened = follow(answer, &[&path[0], &path[1], class, opened]).ok()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the value is a number of requests")]
    let opened = opened as u64;
    let needed = grouped(needed);
    Some(format!("needs {needed} {what} of a run, but this run has only {}", grouped(opened)))
}

/// Returns a note for each group of requests whose open requests affect the measure at a path.
pub(super) fn notes(path: &[String], answer: &Value) -> Vec<OpenNote> {
    let Some((statistic, class, are_queries)) = statistic(path) else { return Vec::new() };
    if statistic != "mean" && needed(statistic).is_none() {
        return Vec::new();
    }
    let groups = answer["requests"].as_array().map_or(&[][..], Vec::as_slice);
    let all: Vec<&str> = groups.iter().filter_map(|group| group["name"].as_str()).collect();
    let names = match several(&path[1]) {
        Some((_, names)) if !all.contains(&path[1].as_str()) => named(names, &all).unwrap_or_default(),
        _ => vec![path[1].clone()],
    };
    let (what, opened) = words(are_queries);
    let note = |name: String| {
        let row = &groups.iter().rfind(|group| group["name"] == name.as_str())?[class];
        let (open, opened) = (row["open"].as_u64()?, row[opened].as_u64()?);
        let of = format!("{} of {} {what} were open at the end", grouped(open), grouped(opened));
        let path = quoted(&path.join("."));
        if statistic == "mean" {
            let text = format!("{path} excludes unfinished {what}: {of}");
            return (open as f64 > MOST_OPEN * opened as f64).then_some(OpenNote { open, text, is_bound: false });
        }
        let is_bound = row[format!("{statistic}_censored")].as_bool()?;
        is_bound.then(|| OpenNote { open, text: format!("{path} is a lower bound: {of}"), is_bound })
    };
    names.into_iter().filter_map(note).collect()
}
