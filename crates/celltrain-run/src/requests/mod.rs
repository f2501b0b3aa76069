//! Measures of groups of requests: completion times and slowdowns, by class of sizes.
//!
//! Source: `docs/design/requests.md`. The slowdown of a request is its completion time divided by the completion time
//! of the same request without other traffic on the same path ([`alone`]). A percentile covers all requests that opened
//! in the measured time. Of n values in ascending order, the percentile is the value whose rank is p n, rounded up.
//! Unfinished requests count as longer than any completed request. If an unfinished request has this rank, only a lower
//! bound is known ([`Percentile::AtLeast`]): the percentile computed with the age of each unfinished request at the end
//! of the run as its completion time. A mean covers only completed requests.

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

use self::alone::Unloaded;

/// Measures of a group of requests.
#[derive(Clone, Debug, Default)]
pub struct GroupMeasures {
    /// Name of the group of requests.
    pub name: String,
    /// The real transport stack of the group's requests, with the stack's version and changed settings; empty for
    /// simulated TCP.
    pub stack: String,
    /// Number of bytes passed to applications in the measured time.
    pub delivered_bytes: u64,
    /// Mean rate at which bytes were passed to applications in the measured time, in megabits per second.
    pub goodput_mbps: f64,
    /// Measures of requests of all sizes.
    pub all: SizeMeasures,
    /// Measures of short requests.
    pub short: SizeMeasures,
    /// Measures of requests of medium size, neither short nor long.
    pub medium: SizeMeasures,
    /// Measures of long requests.
    pub long: SizeMeasures,
    /// Measures of queries, if the group is an incast.
    pub queries: Option<QueryMeasures>,
}

/// Measures of the requests in a class of sizes.
#[derive(Clone, Debug, Default)]
pub struct SizeMeasures {
    /// Number of requests that opened.
    pub opened: u64,
    /// Number of these requests that completed by the end of the run.
    pub completed: u64,
    /// Number of data segments retransmitted, for all requests that opened.
    pub retransmitted_segments: u64,
    /// Number of expirations of retransmission timers, for all requests that opened. Real stacks do not report
    /// expirations.
    pub timeouts: u64,
    /// True if the numbers of segments are unknown, because a stack sends neither TCP nor UDP.
    pub hides_segments: bool,
    /// Completion times in milliseconds.
    pub completion_ms: Statistics,
    /// Slowdowns of requests; missing unless a measure reads slowdowns.
    pub slowdown: Statistics,
}

impl SizeMeasures {
    /// Returns the number of requests that were not complete at the end of the run.
    pub fn open(&self) -> u64 {
        self.opened - self.completed
    }

    /// Returns for the median and the 95th, 99th and 99.9th percentile whether each is only a lower bound.
    pub fn censored(&self) -> [bool; 4] {
        let [times, slowdowns] = [&self.completion_ms, &self.slowdown].map(Statistics::censored);
        std::array::from_fn(|place| times[place] || slowdowns[place])
    }

    /// Returns the number of events per opened request; `None` if no request opened.
    pub fn per_request(&self, events: u64) -> Option<f64> {
        (self.opened > 0).then(|| events as f64 / self.opened as f64)
    }
}

/// Measures of the queries of an incast.
#[derive(Clone, Debug, Default)]
pub struct QueryMeasures {
    /// Number of queries that were asked in the measured time.
    pub asked: u64,
    /// Number of these queries that received all their answers by the end of the run.
    pub completed: u64,
    /// Times from the query to the last byte of the last answer, in milliseconds.
    pub completion_ms: Statistics,
}

impl QueryMeasures {
    /// Returns the number of queries that still lacked an answer at the end of the run.
    pub fn open(&self) -> u64 {
        self.asked - self.completed
    }
}

/// Statistics of the requests or queries that opened. A statistic for which there are too few requests or queries is
/// missing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Mean over the completed requests or queries.
    pub mean: Option<f64>,
    /// Median over the requests or queries that opened.
    pub median: Option<Percentile>,
    /// 95th percentile.
    pub p95: Option<Percentile>,
    /// 99th percentile.
    pub p99: Option<Percentile>,
    /// 99.9th percentile.
    pub p999: Option<Percentile>,
}

/// A percentile over requests that opened. Some of these requests may be unfinished.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Percentile {
    /// The exact percentile: the value of a completed request.
    Exact(f64),
    /// A lower bound of the percentile, because an unfinished request has the percentile's rank.
    AtLeast(f64),
}

impl Percentile {
    /// Returns the percentile or its lower bound.
    pub const fn value(self) -> f64 {
        let (Self::Exact(value) | Self::AtLeast(value)) = self;
        value
    }

    /// Returns whether only a lower bound of the percentile is known.
    pub const fn is_censored(self) -> bool {
        matches!(self, Self::AtLeast(_))
    }
}

/// Distinct values, each with the number of times it occurred.
type Counted = Vec<(f64, u64)>;

impl Statistics {
    /// Computes statistics from the values of completed requests, and from lower bounds for open requests.
    pub fn of(mut completed: Counted, mut open: Counted) -> Self {
        let in_order = |one: &(f64, u64), other: &(f64, u64)| one.0.total_cmp(&other.0);
        completed.sort_unstable_by(in_order);
        let number = total(&completed);
        // Adds a repeated value as often as it occurs, so that the sum is rounded as for a list with every occurrence.
        let add = |sum: f64, &(value, times): &(f64, u64)| (0..times).fold(sum, |sum, _| sum + value);
        let mean = (number > 0).then(|| completed.iter().fold(0.0, add) / number as f64);
        let opened = number + total(&open);
        open.extend(&completed);
        open.sort_unstable_by(in_order);
        let [median, p95, p99, p999] = [500, 950, 990, 999].map(|share| {
            let rank = (opened * share).div_ceil(1000);
            let exact = at_rank(&completed, rank).map(Percentile::Exact);
            exact.or_else(|| at_rank(&open, rank).map(Percentile::AtLeast)).filter(|_| opened >= needed(share))
        });
        Self { mean, median, p95, p99, p999 }
    }

    /// Returns the median and the 95th, 99th and 99.9th percentile.
    pub const fn percentiles(&self) -> [Option<Percentile>; 4] {
        [self.median, self.p95, self.p99, self.p999]
    }

    /// Returns for each percentile whether it is only a lower bound.
    pub fn censored(&self) -> [bool; 4] {
        self.percentiles().map(|one| one.is_some_and(Percentile::is_censored))
    }
}

/// Returns the number of values needed for a percentile, so that one value is expected to exceed the percentile.
/// `share` is in thousandths.
pub const fn needed(share: u64) -> u64 {
    1000_u64.div_ceil(1000 - share)
}

fn total(values: &[(f64, u64)]) -> u64 {
    values.iter().map(|&(_, times)| times).sum()
}

/// Returns the value with this rank among sorted values. Ranks start at 1. Returns `None` if there are fewer values.
fn at_rank(sorted: &[(f64, u64)], rank: u64) -> Option<f64> {
    let mut up_to = 0;
    let found = sorted.iter().find(|&&(_, times)| {
        up_to += times;
        up_to >= rank
    });
    found.map(|&(value, _)| value)
}

/// Groups of measures in a row of requests that include slowdowns.
pub const WITH_SLOWDOWNS: [&str; 4] = ["all", "short", "medium", "long"];

/// Measures the requests of a run. `tally` contains all requests of the result. Without `alone`, the measures omit
/// slowdowns. Requests and queries that open at the last instant of the run are not counted, because they can transfer
/// nothing.
///
/// # Errors
/// Returns [`Interrupted`] if the token is cancelled.
pub fn measure(
    network: &Network,
    result: &RunResult,
    tally: &Tally<'_>,
    alone: Option<&Unloaded<'_>>,
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
            stack: String::new(),
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
    let took = |query: &QueryRecord, until: Time| (milliseconds(until - query.asked, group.clock), 1);
    let (mut completed, mut open) = (Counted::new(), Counted::new());
    for query in group.queries.iter().filter(|query| query.asked < end) {
        match query.completed() {
            Some(last) => completed.push(took(query, last)),
            None => open.push(took(query, end)),
        }
    }
    QueryMeasures {
        asked: (completed.len() + open.len()) as u64,
        completed: completed.len() as u64,
        completion_ms: Statistics::of(completed, open),
    }
}

fn milliseconds(span: Span, clock: Clock) -> f64 {
    span.0 as f64 / clock.units_per_second as f64 * 1e3
}

#[cfg(test)]
mod tests;
