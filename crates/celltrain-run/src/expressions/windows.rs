//! Measures computed from a trace of congestion windows: `series.<name>.<flow>`.

use super::aggregates;
use super::path::Lack;
use crate::series::{Array, Over, Recorded};

/// Time between two samples of a trace of congestion windows that is recorded for measures.
pub const STEP: &str = "10ms";

/// Minimum length of a growth phase of cwnd in seconds: several round trips, so that a recovery is not taken for a
/// growth phase.
const SHORTEST_CLIMB: f64 = 0.4;

/// A trace of congestion windows.
#[derive(Clone, Copy, Debug)]
pub struct Windows<'a> {
    time_s: &'a [f64],
    /// Names of all flows.
    flows: &'a [String],
    /// Names of the flows whose windows are known.
    shown: &'a [String],
    /// One row per sample, with a column for each flow whose windows are known.
    cwnd_segments: &'a [f64],
    ssthresh_segments: &'a [f64],
}

/// Computes a measure of one flow, given by its column.
type Measure = fn(&Windows<'_>, usize) -> f64;

/// Returns the measure of congestion windows that has this name.
pub(super) fn measure(name: &str) -> Option<Measure> {
    match name {
        "climb" => Some(climb),
        "mean_window" => Some(mean_window),
        _ => None,
    }
}

/// Returns the error for a path after `series` that names no measure or no flow.
pub(super) fn unknown() -> Lack {
    Lack::Wrong("series must be followed by climb or mean_window, and then a flow".into())
}

impl<'a> Windows<'a> {
    /// Returns the congestion windows among recorded series; `None` if they were not recorded.
    pub fn of(recorded: &'a Recorded) -> Option<Self> {
        let names = |over: Over| {
            let found = recorded.names.iter().find(|(name, _)| *name == over.name());
            found.map_or(&[][..], |(_, names)| names.as_slice())
        };
        let numbers = |wanted: &str| {
            recorded.arrays.iter().find_map(|(name, array)| match array {
                Array::Numbers(values) if *name == wanted => Some(values.as_slice()),
                _ => None,
            })
        };
        Some(Self {
            time_s: &recorded.time_s,
            flows: names(Over::Flows),
            shown: names(Over::WindowFlows),
            cwnd_segments: numbers("cwnd_segments")?,
            ssthresh_segments: numbers("ssthresh_segments")?,
        })
    }

    /// Returns whether the windows of a flow are unknown because its stack does not report congestion windows.
    pub(super) fn hides(&self, flow: &str) -> bool {
        let has = |names: &[String]| names.iter().any(|name| name == flow);
        has(self.flows) && !has(self.shown)
    }

    /// Returns the index of the column of each flow, with the flow's name.
    pub(super) fn flows(&self) -> impl Iterator<Item = (usize, &'a str)> {
        self.shown.iter().map(String::as_str).enumerate()
    }

    /// Returns the samples of a flow: time, congestion window and slow-start threshold.
    fn samples(&self, flow: usize) -> impl Iterator<Item = (f64, f64, f64)> {
        let column = move |values: &'a [f64]| values.iter().copied().skip(flow).step_by(self.shown.len());
        let windows = column(self.cwnd_segments).zip(column(self.ssthresh_segments));
        self.time_s.iter().zip(windows).map(|(&time, (cwnd, ssthresh))| (time, cwnd, ssthresh))
    }
}

/// Returns the linear growth of cwnd in segments per second: the mean over all growth phases of at least the minimum
/// length.
fn climb(windows: &Windows<'_>, flow: usize) -> f64 {
    let (mut grown, mut lasted) = (0.0, 0.0);
    let mut end_phase = |first: (f64, f64, f64), last: (f64, f64, f64)| {
        if last.0 - first.0 >= SHORTEST_CLIMB {
            grown += last.1 - first.1;
            lasted += last.0 - first.0;
        }
    };
    let mut samples = windows.samples(flow);
    let Some(mut last) = samples.next() else { return 0.0 };
    let mut first = last;
    for sample in samples {
        let (_, cwnd, ssthresh) = sample;
        // A growth phase lasts while cwnd is at least ssthresh, ssthresh does not change and cwnd does not shrink.
        if !(cwnd >= ssthresh && ssthresh == last.2 && cwnd >= last.1) {
            end_phase(first, last);
            first = sample;
        }
        last = sample;
    }
    end_phase(first, last);
    if lasted > 0.0 { grown / lasted } else { 0.0 }
}

/// Returns the mean of a flow's congestion window in its linear increase, in segments.
fn mean_window(windows: &Windows<'_>, flow: usize) -> f64 {
    let linear: Vec<f64> =
        windows.samples(flow).filter(|(_, cwnd, ssthresh)| cwnd >= ssthresh).map(|(_, cwnd, _)| cwnd).collect();
    if linear.is_empty() { 0.0 } else { aggregates::mean(&linear) }
}
