//! Requests: connections that open during a run, send a number of bytes, and close.
//!
//! A group of requests describes when its connections open, between which hosts, and how much they send. Engines use
//! [`crate::end_systems`], which keeps only the state of open connections.
//!
//! Source: `docs/design/requests.md`.

pub(crate) mod arrivals;
mod results;

pub use results::{GroupResult, QueryRecord, RequestRecord};

use typed_index_collections::TiVec;

use crate::index::{NodeIndex, VcIndex, indices};
use crate::rng::Stream;
use crate::tcp::TcpConfig;
use crate::units::{Bytes, Duration};

indices! {
    /// Index of an ordered pair of hosts between which requests are possible.
    PairIndex;

    /// Index of a group of requests.
    GroupIndex;
}

/// The requests of a network.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// Ordered pairs of hosts.
    pub pairs: TiVec<PairIndex, Pair>,
    /// Groups of requests.
    pub groups: TiVec<GroupIndex, RequestGroup>,
    /// True if results omit closed requests. The run's observer receives their records when they close.
    pub drops_closed: bool,
}

/// An ordered pair of hosts, and the VCs from the first to the second. A VC carries the data of requests in this
/// direction and the acknowledgements of requests in the other direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The host that sends data.
    pub from: NodeIndex,
    /// The host that receives the requested data.
    pub to: NodeIndex,
    /// One VC for each path of equal cost, at least one. A hash of the connection and the seed selects the VC.
    pub vcs: Vec<VcIndex>,
    /// The same pair in the opposite direction.
    pub back: PairIndex,
}

/// A group of requests.
#[derive(Clone, Debug)]
pub struct RequestGroup {
    /// The group's name in scenarios and results.
    pub name: String,
    /// The TCP of its connections. If their ends are outside the simulation, only the sizes in these settings matter.
    pub tcp: TcpConfig,
    /// True if the ends of its connections are outside the simulation, for example real stacks. The connections then
    /// open and close when those end systems decide ([`crate::engine::HostedSimulation`]).
    pub outside: bool,
    /// Opening of connections: with a handshake or without.
    pub opening: Opening,
    /// Determines when connections open, between which hosts, and with which sizes.
    pub arrivals: Arrivals,
}

impl RequestGroup {
    /// Returns the pairs of hosts between which the group sends. A pair may occur more than once.
    pub fn pairs(&self) -> impl Iterator<Item = PairIndex> {
        let (of_all, by_receiver) = match &self.arrivals {
            Arrivals::Poisson { pairs, .. } => (pairs.as_slice(), &[][..]),
            Arrivals::Incast { receivers, .. } => (&[][..], receivers.as_slice()),
        };
        of_all.iter().chain(by_receiver.iter().flatten()).copied()
    }
}

/// Procedure by which connections open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Opening {
    /// Connections open with a SYN and a SYN-ACK, followed by data with the ACK (RFC 9293, 3.5).
    #[default]
    Handshake,
    /// Connections open without a handshake: the first data leaves immediately, as if the connection were already open.
    Open,
}

/// The times at which the connections of a group open, their hosts and their sizes.
#[derive(Clone, Debug)]
pub enum Arrivals {
    /// Single requests at the times of a Poisson process.
    Poisson {
        /// Mean time between two requests of the group.
        mean: Duration,
        /// Distribution of the sizes of requests.
        sizes: Sizes,
        /// Pairs of hosts, from which each request's pair is selected.
        pairs: Vec<PairIndex>,
        /// Rule that selects a request's pair of hosts.
        order: PairOrder,
    },
    /// Queries, each answered by several hosts at the same time.
    Incast {
        /// Time from one query to the next, and from the start of the run to the first query.
        interval: Duration,
        /// Distribution of the intervals: constant or random.
        times: QueryTimes,
        /// Total size of all answers to a query. Each sender sends an equal part, rounded up.
        bytes: Bytes,
        /// Number of hosts that answer each query.
        senders: u32,
        /// For each possible receiver, the pairs that lead to it; there are at least `senders`. Each query draws a
        /// receiver, and then the senders from its pairs.
        receivers: Vec<Vec<PairIndex>>,
        /// Maximum delay of an answer. Each delay is drawn between 0 and this value.
        spread: Duration,
    },
}

/// Rule that selects the pair of hosts of the next request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PairOrder {
    /// The pair of each request is drawn independently.
    #[default]
    Random,
    /// All pairs take turns, in a random order that is drawn once.
    InTurn,
}

/// The distribution of the intervals between queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueryTimes {
    /// Constant.
    #[default]
    Fixed,
    /// Intervals are drawn from an exponential distribution.
    Exponential,
}

/// A distribution of sizes, linear between the points of its cumulative distribution function.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    /// Sizes in bytes, each with the probability of at most this size. Sizes and probabilities rise, and the last
    /// probability is 1. If the first probability is above 0, it is the probability of exactly the first size.
    points: Vec<(f64, f64)>,
}

impl Sizes {
    /// Creates the distribution with these points: sizes in bytes with cumulative probabilities.
    ///
    /// # Panics
    /// If the list is empty, a size or probability falls, a size is below one byte, or the last probability is not 1.
    pub fn new(points: Vec<(f64, f64)>) -> Self {
        assert!(
            points.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1),
            "sizes and probabilities increase from row to \
            row"
        );
        assert!(points.first().is_some_and(|&(bytes, share)| bytes >= 1.0 && share >= 0.0), "sizes are positive");
        assert!(points.last().is_some_and(|&(_, share)| share == 1.0), "a distribution ends at 1");
        Self { points }
    }

    /// Creates the distribution in which all requests have one size.
    pub fn constant(bytes: Bytes) -> Self {
        Self::new(vec![(bytes.bytes as f64, 1.0)])
    }

    /// Draws a size in bytes, at least 1.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "no overflow: checks keep sizes between 1 and 2^53"
    )]
    pub fn draw(&self, rng: &mut Stream) -> u64 {
        self.at(rng.unit()).round() as u64
    }

    /// Returns the size below which a request lies with probability `share`.
    fn at(&self, share: f64) -> f64 {
        let place = self.points.partition_point(|&(_, cumulative)| cumulative < share);
        let (bytes, cumulative) = self.points[place.min(self.points.len() - 1)];
        match place.checked_sub(1).map(|before| self.points[before]) {
            Some((lower, below)) if cumulative > below => {
                lower + (bytes - lower) * (share - below) / (cumulative - below)
            }
            _ => bytes,
        }
    }

    /// Returns the mean number of segments of `mss` bytes that a request needs, exactly: sizes are rounded to bytes, and
    /// segments are rounded up.
    pub fn mean_segments(&self, mss: u64) -> f64 {
        let mss = mss as f64;
        // Sizes from k mss + 1/2 on need more than k segments. So the mean is 1 plus the sum of these probabilities
        // over k. Sizes from `lower` to `upper` are equally likely.
        let mean = |lower: f64, upper: f64| {
            let [all, some] = [lower, upper].map(|size| ((size - 0.5) / mss).floor().max(0.0));
            let sizes = (some - all) * (upper - 0.5 - mss * (all + some + 1.0) / 2.0);
            1.0 + all + if upper > lower { sizes / (upper - lower) } else { 0.0 }
        };
        let first = self.points[0];
        let within = self.points.windows(2).map(|pair| (pair[1].1 - pair[0].1) * mean(pair[0].0, pair[1].0));
        first.1 * mean(first.0, first.0) + within.sum::<f64>()
    }

    /// Returns the mean of `f(size)`, with sizes in bytes. Its relative error is about 1e-6 for functions that are
    /// smooth between points.
    pub fn mean_of(&self, f: impl Fn(f64) -> f64) -> f64 {
        const STEPS: u32 = 1_000;
        let first = self.points[0];
        let within = self.points.windows(2).map(|pair| {
            let [(lower, below), (upper, above)] = [pair[0], pair[1]];
            let middle = |step: u32| lower + (upper - lower) * (f64::from(step) + 0.5) / f64::from(STEPS);
            (above - below) * (0..STEPS).map(|step| f(middle(step))).sum::<f64>() / f64::from(STEPS)
        });
        first.1 * f(first.0) + within.sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_sizes_are_interpolated_linearly_between_the_points_of_a_distribution() {
        let sizes = Sizes::new(vec![(100.0, 0.25), (200.0, 0.75), (1000.0, 1.0)]);
        assert_eq!(
            [0.0, 0.1, 0.25, 0.5, 0.75, 0.875, 1.0].map(|share| sizes.at(share)),
            [100.0, 100.0, 100.0, 150.0, 200.0, 600.0, 1000.0]
        );
        let mean = 0.25 * 100.0 + 0.5 * 150.0 + 0.25 * 600.0;
        assert!((sizes.mean_of(|bytes| bytes) / mean - 1.0).abs() < 1e-9);
        let mut stream = Stream::new(1, "test");
        let drawn: f64 = (0..100_000).map(|_| sizes.draw(&mut stream) as f64).sum::<f64>() / 1e5;
        assert!((drawn / mean - 1.0).abs() < 0.01, "{drawn}");
    }

    #[test]
    fn the_mean_number_of_segments_per_request_is_computed_exactly_from_the_size_distribution() {
        let sizes = Sizes::new(vec![(1.0, 0.0), (1460.0, 0.1), (1461.0, 0.1), (10_000.0, 0.7), (1e6, 1.0)]);
        for mss in [512, 1000, 1460, 3_000_000] {
            let mut drawn = 0.0;
            let steps = 1_000_000;
            for step in 0..steps {
                let size = sizes.at((f64::from(step) + 0.5) / f64::from(steps)).round();
                drawn += (size / mss as f64).ceil() / f64::from(steps);
            }
            let exact = sizes.mean_segments(mss);
            assert!((exact / drawn - 1.0).abs() < 1e-5, "{mss}: {exact} {drawn}");
        }
        assert_eq!(
            [1459, 1460, 1461].map(|mss| Sizes::constant(Bytes { bytes: 1460 }).mean_segments(mss)),
            [2.0, 1.0, 1.0]
        );
    }

    #[test]
    fn sampling_a_distribution_with_a_single_size_always_returns_that_size() {
        let sizes = Sizes::constant(Bytes { bytes: 1460 });
        let mut stream = Stream::new(1, "test");
        assert!((0..100).all(|_| sizes.draw(&mut stream) == 1460));
        assert_eq!(sizes.mean_of(|bytes| bytes), 1460.0);
    }
}
