use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::series::{Array, Over, Recorded};

/// Values, messages and notes of measures, computed by version 0.3.0.dev0 in Python before this evaluator existed.
const PINNED: &str = include_str!("pinned.json");

#[derive(Deserialize)]
struct Pinned {
    answers: BTreeMap<String, Value>,
    series: BTreeMap<String, Trace>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Trace {
    time_s: Vec<f64>,
    flows: Vec<String>,
    window_flows: Vec<String>,
    cwnd_segments: Vec<Vec<f64>>,
    ssthresh_segments: Vec<Vec<f64>>,
}

impl Trace {
    fn recorded(self) -> Recorded {
        Recorded {
            time_s: self.time_s,
            names: vec![(Over::Flows.name(), self.flows), (Over::WindowFlows.name(), self.window_flows)],
            occupancy_columns: Vec::new(),
            arrays: vec![
                ("cwnd_segments", Array::Numbers(self.cwnd_segments.concat())),
                ("ssthresh_segments", Array::Numbers(self.ssthresh_segments.concat())),
            ],
        }
    }
}

/// Names of the answer and the trace, the measure, its expected value, the kind of the expected note, and the expected
/// note.
#[derive(Deserialize)]
struct Case(String, Option<String>, String, Value, Option<String>, Option<String>);

#[test]
fn measure_expressions_give_the_recorded_values_and_messages() {
    let Pinned { answers, series, cases } = serde_json::from_str(PINNED).expect("the file is valid");
    let series: BTreeMap<String, Recorded> = series.into_iter().map(|(name, trace)| (name, trace.recorded())).collect();
    assert!(cases.len() > 1000);
    for Case(answer, trace, text, value, kind, message) in cases {
        let windows = trace.map(|name| Windows::of(&series[&name]).expect("the trace has windows"));
        let source = Source { answer: &answers[&answer], windows };
        let expression = Expression::new(text.as_str());
        let (found, figure) = (expression.value(source), expression.figure(source));
        let about = format!("{text:?} in {answer}");
        let message = message.as_deref();
        match kind.as_deref() {
            None | Some("open" | "bound") => {
                let value = value.as_f64().unwrap_or(f64::INFINITY);
                assert_eq!(found.as_ref().map(|value| value.to_bits()), Ok(value.to_bits()), "{about}: {found:?}");
                assert_eq!(figure.value, Some(value), "{about}");
                assert_eq!(figure.note.as_ref().map(|note| note.kind.name()), kind.as_deref(), "{about}");
                assert_eq!(figure.note.as_ref().map(|note| &*note.text), message, "{about}");
            }
            Some(kind) => {
                let missing = found.expect_err(&about);
                assert_eq!(Some(missing.message()), message, "{about}");
                let found = match missing {
                    Missing::Undefined(_) => "undefined",
                    Missing::TooFew(_) => "too_few",
                    Missing::Wrong(_) => "wrong",
                };
                assert_eq!(found, kind, "{about}");
                let note = figure.note.map(|note| (note.kind, note.text));
                let expected = message.filter(|_| kind != "undefined").map(|text| (NoteKind::Gap, text.to_owned()));
                assert_eq!((figure.value, note), (None, expected.clone()), "{about}");
                if source.windows.is_none() {
                    assert_eq!(expression.problem(source.answer), expected.map(|(_, text)| text), "{about}");
                }
            }
        }
    }
}

#[test]
fn only_the_columns_that_measure_expressions_read_are_requested() {
    let wanted = |texts: &[&str]| json!(Measures::new(texts.iter().copied()).wanted());
    let bottleneck = "ports.bottleneck.max_queue_cells";
    assert_eq!(
        wanted(&["efficiency", "flows.sum(*).timeouts", bottleneck, "flows.tcp1.timeouts", "scenario.port.x.y"]),
        json!({"flows": ["timeouts"], "bottleneck": ["max_queue_cells"]})
    );
    assert_eq!(
        wanted(&[bottleneck, "ports.sum(*).lost_cells / ports.mean(*).lost_cells"]),
        json!({"ports": ["lost_cells", "max_queue_cells"]})
    );
}

#[test]
fn only_a_single_lower_bound_or_a_mean_of_lower_bounds_counts_as_a_bound() {
    let is_monotone = |text: &str| Expression::new(text).is_monotone();
    assert!(is_monotone("a.b_p99") && is_monotone("a.mean(*).b_p99"));
    for text in ["a.fairness(*).b_p99", "a.variation(x1-2).b_p99", "a.b_p99 - 1", "- a.b_p99", "a.b_p99 %"] {
        assert!(!is_monotone(text), "{text}");
    }
}

#[test]
fn only_measures_that_read_series_require_series_to_be_recorded() {
    assert!(Measures::new(["efficiency", "2 * series.climb.mean(*)"]).need_series());
    assert!(!Measures::new(["flows.mean(*).goodput_mbps", "series", "scenario.seed"]).need_series());
    assert!(Measures::new(["scenario.seed"]).need_scenario());
}

#[test]
fn error_messages_never_suggest_a_table_row_that_has_no_name() {
    // Regression: suggestions for a list without names, such as the loss rules of a link, raised an error.
    let answer = json!({"lose": [{"flow": "tcp1", "at": 1}, {"flow": "tcp2", "at": 2}]});
    let problem = |text: &str| Expression::new(text).problem(&answer);
    assert!(problem("lose.tcp1.at").is_some_and(|problem| problem.contains("there is no 'tcp1'; to list")));
    assert_eq!(problem("lose.sum(*).at"), None);
}
