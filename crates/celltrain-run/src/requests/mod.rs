//! Measures of groups of requests: completion times and slowdowns, by size.
//!
//! Source: `docs/design/requests.md`. The slowdown of a request is its completion time divided by the completion time
//! of the same request alone on the same path ([`alone`]). A percentile is an order statistic of all requests that
//! opened in the measured time and completed: of n values, it is the one with rank p n, rounded up.

pub mod alone;
mod records;
mod tally;

pub use records::Records;
pub use tally::Tally;

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::metrics::RunResult;
use celltrain_core::network::Network;
use celltrain_core::requests::{Arrivals, GroupResult, QueryRecord};
use celltrain_core::units::{Clock, Span, Time};

use self::alone::Alone;

/// Measures of a group of requests.
#[derive(Clone, Debug, Default)]
pub struct GroupMeasures {
    /// Its name.
    pub name: String,
    /// Bytes passed to applications in the measured time.
    pub delivered_bytes: u64,
    /// The rate of these bytes, in megabits per second.
    pub goodput_mbps: f64,
    /// Requests of any size.
    pub all: SizeMeasures,
    /// Short requests.
    pub short: SizeMeasures,
    /// Requests that are neither short nor long.
    pub medium: SizeMeasures,
    /// Long requests.
    pub long: SizeMeasures,
    /// Queries, if the group is an incast.
    pub queries: Option<QueryMeasures>,
}

/// Measures of the requests of some sizes.
#[derive(Clone, Debug, Default)]
pub struct SizeMeasures {
    /// Requests that opened.
    pub opened: u64,
    /// Number of measured requests that completed.
    pub completed: u64,
    /// Data segments retransmitted, for all requests that opened.
    pub retransmitted_segments: u64,
    /// Expirations of retransmission timers, for all requests that opened.
    pub timeouts: u64,
    /// Completion times in milliseconds.
    pub completion_ms: Statistics,
    /// Slowdowns; missing unless requested.
    pub slowdown: Statistics,
}

impl SizeMeasures {
    /// Returns the requests that were not complete at the end of the run.
    pub fn open(&self) -> u64 {
        self.opened - self.completed
    }

    /// Returns the number of events per opened request; `None` if no request opened.
    pub fn per_request(&self, events: u64) -> Option<f64> {
        (self.opened > 0).then(|| events as f64 / self.opened as f64)
    }
}

/// Measures of the queries of an incast.
#[derive(Clone, Debug, Default)]
pub struct QueryMeasures {
    /// Queries asked.
    pub asked: u64,
    /// Number of measured queries for which all answers arrived.
    pub completed: u64,
    /// Times from the query to the last byte of the last answer, in milliseconds.
    pub completion_ms: Statistics,
}

/// Statistics of a set of values. A statistic is missing if there are too few values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Mean.
    pub mean: Option<f64>,
    /// Median.
    pub median: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
}

impl Statistics {
    /// Computes the statistics of values, which are numbers, each with the number of times it occurred.
    pub fn of(mut values: Vec<(f64, u64)>) -> Self {
        values.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
        let number: u64 = values.iter().map(|&(_, times)| times).sum();
        // Add repeated values one by one, so that the sum is rounded like a sum of single values.
        let add = |sum: f64, &(value, times): &(f64, u64)| (0..times).fold(sum, |sum, _| sum + value);
        let mean = (number > 0).then(|| values.iter().fold(0.0, add) / number as f64);
        let [median, p95, p99, p999] = [500, 950, 990, 999].map(|share| percentile(&values, number, share));
        Self { mean, median, p95, p99, p999 }
    }
}

/// Returns the number of values that a percentile needs, so that one value beyond it is expected. `share` is in
/// thousandths.
pub const fn needed(share: u64) -> u64 {
    1000_u64.div_ceil(1000 - share)
}

/// Returns an order statistic of `number` sorted values; `None` if there are too few. `share` is in thousandths.
fn percentile(sorted: &[(f64, u64)], number: u64, share: u64) -> Option<f64> {
    let rank = (number * share).div_ceil(1000);
    let mut up_to = 0;
    let place = sorted.iter().position(|&(_, times)| {
        up_to += times;
        up_to >= rank
    });
    place.filter(|_| number >= needed(share)).map(|place| sorted[place].0)
}

/// Groups of measures that include slowdowns.
pub const WITH_SLOWDOWNS: [&str; 4] = ["all", "short", "medium", "long"];

/// Measures the requests of a run. `tally` contains all requests of the result. Without `alone`, slowdowns are omitted.
/// Requests and queries that open at the last instant of the run are not counted, because they can transfer nothing.
///
/// # Errors
/// Returns [`Interrupted`] if cancelled.
pub fn measure(
    network: &Network,
    result: &RunResult,
    tally: &Tally<'_>,
    alone: Option<&Alone<'_>>,
    token: &CancellationToken<'_>,
) -> Result<Vec<GroupMeasures>, Interrupted> {
    let seconds = result.measured_to_s - result.measured_from_s;
    let mut groups = Vec::with_capacity(result.requests.len());
    for (number, group) in result.requests.iter_enumerated() {
        let [all, short, medium, long] = tally.measures(number, alone, token)?;
        let is_incast = matches!(network.requests.groups[number].arrivals, Arrivals::Incast { .. });
        let end = Time::default() + group.clock.span(network.duration);
        groups.push(GroupMeasures {
            name: group.name.clone(),
            delivered_bytes: group.delivered_bytes,
            goodput_mbps: if seconds > 0.0 { group.delivered_bytes as f64 * 8.0 / seconds / 1e6 } else { 0.0 },
            all,
            short,
            medium,
            long,
            queries: is_incast.then(|| of_queries(group, end)),
        });
    }
    Ok(groups)
}

fn of_queries(group: &GroupResult, end: Time) -> QueryMeasures {
    let completion = |query: &QueryRecord| Some(milliseconds(query.completed()? - query.asked, group.clock));
    let asked = || group.queries.iter().filter(|query| query.asked < end);
    let completions: Vec<(f64, u64)> = asked().filter_map(completion).map(|time| (time, 1)).collect();
    QueryMeasures {
        asked: asked().count() as u64,
        completed: completions.len() as u64,
        completion_ms: Statistics::of(completions),
    }
}

fn milliseconds(span: Span, clock: Clock) -> f64 {
    span.0 as f64 / clock.units_per_second as f64 * 1e3
}

#[cfg(test)]
mod tests;
