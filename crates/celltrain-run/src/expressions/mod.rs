//! Measures of a run in the form that users write: paths into the run's answer, and arithmetic on their values.
//!
//! A *path* follows the keys of the answer (`celltrain run --json`) step by step: `flows.tcp1.goodput_mbps`. A step
//! into a list is the name of a row, or the VC of a contract. `ports.bottleneck` is the row of the bottleneck port,
//! whatever its name. `sum`, `mean`, `least`, `largest`, `variation` and `fairness` combine the numbers of several
//! members. A path that begins with `scenario` reads the scenario. A path that begins with `series` reads a trace of
//! congestion windows ([`Windows`]).
//!
//! `celltrain_formula` parses the text of a measure. Sweeps, comparisons and reproductions evaluate all measures with
//! this module.

mod aggregates;
mod open;
mod path;
mod similar;
mod windows;

use celltrain_formula::{Step, parse_measure};
use serde_json::Value;

use crate::answer::Wanted;
use crate::as_python::quoted;
pub use open::NEEDED;
pub use path::named;
use path::{Lack, Members};
pub use windows::{STEP, Windows};

/// A measure as a user writes it.
#[derive(Clone, Debug)]
pub struct Expression {
    text: String,
    /// The steps of the evaluation in postfix order, or the first syntax error.
    steps: Result<Vec<Step>, String>,
}

/// The reason why a measure has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The measure has no value in this run, but may have one in other runs. An example is a mean delay if no file was
    /// completed.
    Undefined(String),
    /// The run has too few requests or queries for a percentile.
    TooFew(String),
    /// The text is not a measure, or the answer does not have the measure's path.
    Wrong(String),
}

impl Missing {
    /// Returns the message that explains the missing value.
    pub fn message(&self) -> &str {
        match self {
            Self::Undefined(message) | Self::TooFew(message) | Self::Wrong(message) => message,
        }
    }
}

/// The value of a measure in one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The value of the measure; `None` if the measure has no value in this run.
    pub value: Option<f64>,
    /// Explanation of the missing value, or a note about the value.
    pub note: Option<Note>,
}

/// A note about a measure of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Kind of the note.
    pub kind: NoteKind,
    /// Text of the note.
    pub text: String,
}

/// Kinds of notes about a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// The measure has no value. The text is the reason.
    Gap,
    /// The value depends on requests that were open at the end of the run.
    Open,
    /// Because requests were open at the end of the run, the value is only a lower bound.
    Bound,
}

impl NoteKind {
    /// Returns the name of the kind of note.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gap => "gap",
            Self::Open => "open",
            Self::Bound => "bound",
        }
    }
}

/// The data of a run that measures read.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The answer of a run, or the outline of an answer. Its key `scenario` contains the scenario.
    pub answer: &'a Value,
    /// The trace of congestion windows. Without a trace, measures of congestion windows are 0.
    pub windows: Option<Windows<'a>>,
}

impl Expression {
    /// Parses a measure. If its syntax is wrong, each evaluation of the measure returns the error.
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let steps = parse_measure(&text).map_err(|fault| fault.shown(&text));
        Self { text, steps }
    }

    /// Returns the syntax error of the measure; `None` if its syntax is correct.
    pub fn syntax_error(&self) -> Option<&str> {
        self.steps.as_ref().err().map(String::as_str)
    }

    /// Returns the paths in the measure; no paths if the measure has a syntax error.
    pub fn paths(&self) -> impl Iterator<Item = &[String]> {
        self.steps.as_deref().unwrap_or_default().iter().filter_map(|step| match step {
            Step::Path(path) => Some(path.as_slice()),
            Step::Number(_) | Step::Negative | Step::Operator(_) => None,
        })
    }

    /// Returns whether the measure needs a trace of congestion windows.
    pub fn needs_series(&self) -> bool {
        self.paths().any(|path| path.len() > 1 && path[0] == "series")
    }

    /// Returns whether the measure is a lower bound if the values that it reads are lower bounds. Only a measure that
    /// is a single path can be.
    pub fn is_monotone(&self) -> bool {
        let combines = |step: &String| step.starts_with("variation(") || step.starts_with("fairness(");
        matches!(self.steps.as_deref(), Ok([Step::Path(path)]) if !path.iter().any(combines))
    }

    /// Returns the value of the measure.
    ///
    /// # Errors
    /// Returns the reason why the measure has no value.
    pub fn value(&self, source: Source<'_>) -> Result<f64, Missing> {
        let wrong = |error: &String| {
            let start: String = quoted(&self.text).chars().take(200).collect();
            Missing::Wrong(format!("{start} {error}"))
        };
        let mut values = Vec::new();
        let last = |values: &mut Vec<f64>| values.pop().expect("operands come before their operator");
        for step in self.steps.as_ref().map_err(wrong)? {
            let value = match step {
                Step::Number(value) => *value,
                Step::Path(path) => source.at(path)?,
                Step::Negative => -last(&mut values),
                Step::Operator(sign) => {
                    let (right, left) = (last(&mut values), last(&mut values));
                    match *sign {
                        "+" => left + right,
                        "-" => left - right,
                        "*" => left * right,
                        "/" if right == 0.0 => {
                            let text = quoted(&self.text);
                            let message = format!("{text} has no value in this run: it divides by zero");
                            return Err(Missing::Undefined(message));
                        }
                        "/" => left / right,
                        _ => unreachable!("measures have no other operator"),
                    }
                }
            };
            values.push(value);
        }
        Ok(last(&mut values))
    }

    /// Returns the value for the row of a run, with a note if the value is missing or depends on open requests.
    pub fn figure(&self, source: Source<'_>) -> Figure {
        match self.value(source) {
            Ok(value) => Figure { value: Some(value), note: self.note_on_open(source.answer) },
            Err(Missing::Undefined(_)) => Figure { value: None, note: None },
            Err(Missing::TooFew(text) | Missing::Wrong(text)) => {
                Figure { value: None, note: Some(Note { kind: NoteKind::Gap, text }) }
            }
        }
    }

    /// Returns why no run with this outline has the measure; `None` if runs may have the measure.
    pub fn problem(&self, outline: &Value) -> Option<String> {
        match self.value(Source { answer: outline, windows: None }) {
            // In the outline, every number is 1, so a divisor that is not zero in a run may be zero here.
            Ok(_) | Err(Missing::Undefined(_)) => None,
            Err(Missing::TooFew(message) | Missing::Wrong(message)) => Some(message),
        }
    }

    /// Returns a note if the measure depends on requests that were open at the end. If the measure reads several groups
    /// with open requests, the note names the group with the most open requests.
    fn note_on_open(&self, answer: &Value) -> Option<Note> {
        let found = self.paths().flat_map(|path| open::notes(path, answer)).max()?;
        let kind = if found.is_bound && self.is_monotone() { NoteKind::Bound } else { NoteKind::Open };
        Some(Note { kind, text: found.text })
    }
}

/// Measures that are all evaluated for each run.
#[derive(Debug)]
pub struct Measures {
    expressions: Vec<Expression>,
    /// The columns of answers that the measures read.
    wanted: Wanted,
}

impl Measures {
    /// Parses the texts of measures.
    pub fn new(texts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let expressions: Vec<_> = texts.into_iter().map(Expression::new).collect();
        let wanted = wanted(&expressions);
        Self { expressions, wanted }
    }

    /// Returns the number of measures.
    pub fn count(&self) -> usize {
        self.expressions.len()
    }

    /// Returns the columns of answers that the measures read.
    pub fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Returns whether a measure reads the scenario.
    pub fn need_scenario(&self) -> bool {
        self.expressions.iter().flat_map(Expression::paths).any(|path| path[0] == "scenario")
    }

    /// Returns whether a measure needs a trace of congestion windows.
    pub fn need_series(&self) -> bool {
        self.expressions.iter().any(Expression::needs_series)
    }

    /// Returns the values of the measures in a run, in the order of the measures.
    pub fn figures(&self, source: Source<'_>) -> Vec<Figure> {
        self.expressions.iter().map(|expression| expression.figure(source)).collect()
    }
}

/// Returns the columns of answers that these measures read, by list. The key `bottleneck` stands for the row of the
/// bottleneck port.
fn wanted(expressions: &[Expression]) -> Wanted {
    const LISTS: [&str; 8] = ["flows", "ports", "links", "contracts", "abr", "memories", "queues", "requests"];
    let mut wanted = Wanted::new();
    for path in expressions.iter().flat_map(Expression::paths) {
        let [list, row, column, ..] = path else { continue };
        if LISTS.contains(&list.as_str()) {
            let is_bottleneck = list == "ports" && row == "bottleneck";
            let columns = wanted.entry(if is_bottleneck { row.clone() } else { list.clone() }).or_default();
            if !columns.contains(column) {
                columns.push(column.clone());
            }
        }
    }
    if wanted.contains_key("ports")
        && let Some(columns) = wanted.remove("bottleneck")
    {
        wanted.entry("ports".into()).or_default().extend(columns);
    }
    wanted
}

impl Source<'_> {
    /// Returns the number to which a path leads.
    fn at(self, path: &[String]) -> Result<f64, Missing> {
        let steps: Vec<&str> = path.iter().map(String::as_str).collect();
        let found = match (&steps[..], self.answer.get("bottleneck").and_then(Value::as_str)) {
            (["series", ..], _) => self.of_series(&steps),
            (["ports", "bottleneck", rest @ ..], Some(bottleneck)) => {
                path::follow(self.answer, &[&["ports", bottleneck][..], rest].concat())
            }
            _ => path::follow(self.answer, &steps),
        };
        found.map_err(|lack| self.explained(path, lack))
    }

    fn of_series(self, path: &[&str]) -> Result<f64, Lack> {
        let [_, name, rest @ ..] = path else { return Err(windows::unknown()) };
        let (Some(measure), [flow, ..]) = (windows::measure(name), rest) else { return Err(windows::unknown()) };
        let Some(windows) = self.windows else {
            let flows = self.answer.get("flows").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let names = flows.iter().filter_map(|flow| flow.get("name")?.as_str());
            return Members::of_numbers(names.map(|name| (name, 0.0))).follow(rest);
        };
        if windows.hides(flow) {
            return Err(Lack::Undefined);
        }
        Members::of_numbers(windows.flows().map(|(place, name)| (name, measure(&windows, place)))).follow(rest)
    }

    /// Returns the message about a path that leads to no number.
    fn explained(self, path: &[String], lack: Lack) -> Missing {
        let shown = quoted(&path.join("."));
        match lack {
            Lack::Undefined => match open::too_few(path, self.answer) {
                Some(words) => Missing::TooFew(format!("{shown} {words}")),
                None => Missing::Undefined(format!("{shown} has no value in this run")),
            },
            Lack::Wrong(_) if path[0] == "file_delay_ms" && self.answer.get("file_delay_ms") == Some(&Value::Null) => {
                Missing::Wrong(format!(
                    "{shown} has no value, because this scenario has no files; set their size, as in \
                     measure.file_size = \"9180B\""
                ))
            }
            Lack::Wrong(problem) => {
                let listed = if problem.contains("did you mean") {
                    ""
                } else {
                    "; to list all measures: celltrain list measures"
                };
                Missing::Wrong(format!("{shown} is not in the result of a run: {problem}{listed}"))
            }
        }
    }
}

#[cfg(test)]
mod tests;
