//! Functions about measure expressions for Python: their syntax, their values, and the names that they select.

use celltrain_run::expressions::{self as run, Expression, Missing, Source};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;

/// Parses a measure. Returns whether the measure has a path, whether it needs a trace of congestion windows, and
/// whether it is a lower bound if the values that it reads are lower bounds.
///
/// # Errors
/// Returns the problem, followed by the line of the measure with carets under the position of the problem.
#[pyfunction]
pub(crate) fn parse_measure(text: &str) -> PyResult<(bool, bool, bool)> {
    let expression = Expression::new(text);
    match expression.syntax_error() {
        Some(error) => Err(PyValueError::new_err(error.to_owned())),
        None => Ok((expression.paths().next().is_some(), expression.needs_series(), expression.is_monotone())),
    }
}

/// Evaluates a measure of an answer, which is given as JSON. Returns the measure's value. If the measure has no value,
/// returns None, the kind of gap and a message.
#[pyfunction]
pub(crate) fn evaluate(text: &str, answer: &str) -> PyResult<(Option<f64>, &'static str, String)> {
    let answer: Value = serde_json::from_str(answer).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(match Expression::new(text).value(Source { answer: &answer, windows: None }) {
        Ok(value) => (Some(value), "", String::new()),
        Err(Missing::Undefined(message)) => (None, "undefined", message),
        Err(Missing::TooFew(message)) => (None, "too_few", message),
        Err(Missing::Wrong(message)) => (None, "wrong", message),
    })
}

/// Returns the known names that `text` selects. It is a name, a range such as `tcp1-3`, `*` for all names, or a
/// pattern.
#[pyfunction]
pub(crate) fn named(text: &str, known: Vec<String>) -> PyResult<Vec<String>> {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    run::named(text, &known).map_err(PyValueError::new_err)
}
