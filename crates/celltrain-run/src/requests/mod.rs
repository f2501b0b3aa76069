//! Measures of groups of requests: completion times and slowdowns, by size.
//!
//! Source: `docs/design/requests.md`. The slowdown of a request is its completion time divided by the completion time
//! of the same request alone on the same path ([`alone`]). A percentile is an order statistic of all requests that
//! opened in the measured time and completed: of n values, it is the one with rank p n, rounded up.

pub mod alone;
mod records;

pub use records::Records;

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::metrics::RunResult;
use celltrain_core::network::Network;
use celltrain_core::requests::{Arrivals, GroupResult, QueryRecord, RequestRecord};
use celltrain_core::units::{Clock, Span, Time};
use celltrain_scenario::scenario::MeasureOptions;

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
    /// Requests among them that completed.
    pub completed: u64,
    /// Data segments sent again, for all requests that opened.
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
    /// Queries among them with all answers.
    pub completed: u64,
    /// Times from the query to the last byte of the last answer, in milliseconds.
    pub completion_ms: Statistics,
}

/// Statistics of some values. A statistic is missing if there are too few values for it.
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
    /// Computes the statistics of values, which are numbers.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let mean = (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
        let [median, p95, p99, p999] = [500, 950, 990, 999].map(|share| percentile(&values, share));
        Self { mean, median, p95, p99, p999 }
    }
}

/// Returns how many values a percentile needs, so that one of them is expected beyond it. `share` is in thousandths.
pub const fn needed(share: usize) -> usize {
    1000_usize.div_ceil(1000 - share)
}

/// Returns an order statistic of sorted values; `None` if there are too few. `share` is in thousandths.
fn percentile(sorted: &[f64], share: usize) -> Option<f64> {
    let rank = (sorted.len() * share).div_ceil(1000);
    (sorted.len() >= needed(share)).then(|| sorted[rank - 1])
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Short,
    Medium,
    Long,
}

/// Limits of the classes of sizes, in bytes.
#[derive(Clone, Copy, Debug)]
struct Limits {
    short: u64,
    long: u64,
}

impl Limits {
    fn class(self, bytes: u64) -> Class {
        match bytes {
            bytes if bytes <= self.short => Class::Short,
            bytes if bytes > self.long => Class::Long,
            _ => Class::Medium,
        }
    }
}

/// Groups of measures that include slowdowns.
pub const WITH_SLOWDOWNS: [&str; 4] = ["all", "short", "medium", "long"];

/// Measures the requests of a run. Without `alone`, slowdowns are left out. Requests and queries that open at the last
/// instant of the run are not counted: they can transfer nothing.
///
/// # Errors
/// Returns [`Interrupted`] if cancelled.
pub fn measure(
    network: &Network,
    result: &RunResult,
    options: &MeasureOptions,
    alone: Option<&Alone<'_>>,
    token: &CancellationToken<'_>,
) -> Result<Vec<GroupMeasures>, Interrupted> {
    let limits = Limits { short: options.short().bytes, long: options.long().bytes };
    let seconds = result.measured_to_s - result.measured_from_s;
    let mut groups = Vec::with_capacity(result.requests.len());
    for (number, group) in result.requests.iter_enumerated() {
        let slowdown = |record: &RequestRecord| alone?.slowdown(number, record, group.clock);
        let end = Time::default() + group.clock.span(network.duration);
        let mut measures = of_group(group, end, limits, seconds, slowdown, token)?;
        let is_incast = matches!(network.requests.groups[number].arrivals, Arrivals::Incast { .. });
        measures.queries = is_incast.then(|| of_queries(group, end));
        groups.push(measures);
    }
    Ok(groups)
}

fn of_group(
    group: &GroupResult,
    end: Time,
    limits: Limits,
    seconds: f64,
    slowdown: impl Fn(&RequestRecord) -> Option<f64>,
    token: &CancellationToken<'_>,
) -> Result<GroupMeasures, Interrupted> {
    let mut by_class: [Collected; 3] = Default::default();
    for record in group.records.iter().filter(|record| record.opened < end) {
        token.tick(1)?;
        by_class[limits.class(record.bytes) as usize].add(record, group.clock, &slowdown);
    }
    let all = by_class.iter().fold(Collected::default(), |mut all, class| {
        all.extend(class);
        all
    });
    let [short, medium, long] = by_class.map(Collected::measures);
    Ok(GroupMeasures {
        name: group.name.clone(),
        delivered_bytes: group.delivered_bytes,
        goodput_mbps: if seconds > 0.0 { group.delivered_bytes as f64 * 8.0 / seconds / 1e6 } else { 0.0 },
        all: all.measures(),
        short,
        medium,
        long,
        queries: None,
    })
}

fn of_queries(group: &GroupResult, end: Time) -> QueryMeasures {
    let completion = |query: &QueryRecord| Some(milliseconds(query.completed()? - query.asked, group.clock));
    let asked = || group.queries.iter().filter(|query| query.asked < end);
    let completions: Vec<f64> = asked().filter_map(completion).collect();
    QueryMeasures {
        asked: asked().count() as u64,
        completed: completions.len() as u64,
        completion_ms: Statistics::of(completions),
    }
}

fn milliseconds(span: Span, clock: Clock) -> f64 {
    span.0 as f64 / clock.units_per_second as f64 * 1e3
}

/// Values collected from the records of some requests.
#[derive(Default)]
struct Collected {
    opened: u64,
    retransmitted_segments: u64,
    timeouts: u64,
    completions_ms: Vec<f64>,
    slowdowns: Vec<f64>,
}

impl Collected {
    fn add(&mut self, record: &RequestRecord, clock: Clock, slowdown: impl Fn(&RequestRecord) -> Option<f64>) {
        self.opened += 1;
        self.retransmitted_segments += u64::from(record.retransmitted_segments);
        self.timeouts += u64::from(record.timeouts);
        if let Some(completed) = record.completed() {
            self.completions_ms.push(milliseconds(completed - record.opened, clock));
            self.slowdowns.extend(slowdown(record));
        }
    }

    fn extend(&mut self, other: &Self) {
        self.opened += other.opened;
        self.retransmitted_segments += other.retransmitted_segments;
        self.timeouts += other.timeouts;
        self.completions_ms.extend(&other.completions_ms);
        self.slowdowns.extend(&other.slowdowns);
    }

    fn measures(self) -> SizeMeasures {
        SizeMeasures {
            opened: self.opened,
            completed: self.completions_ms.len() as u64,
            retransmitted_segments: self.retransmitted_segments,
            timeouts: self.timeouts,
            completion_ms: Statistics::of(self.completions_ms),
            slowdown: Statistics::of(self.slowdowns),
        }
    }
}

#[cfg(test)]
mod tests;
