//! Draws the times at which the connections of a group open, their hosts and their sizes. The seed alone determines all
//! draws.
//!
//! Times are drawn in picoseconds and then rounded to the clock, so networks with different clocks have the same
//! requests.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Arrivals, PairIndex, PairOrder, QueryTimes, RequestGroup, Requests, Sizes};
use crate::host::up_to;
use crate::index::NodeIndex;
use crate::rng::{Stream, hash};
use crate::units::{Clock, Duration, Span, Time};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opening {
    pub(crate) pair: PairIndex,
    pub(crate) bytes: u64,
    /// Number of the query, if the request is an answer to a query.
    pub(crate) query: Option<u32>,
}

/// An event of a group's schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// A host sends a query.
    Query(NodeIndex),
    Opening(Opening),
}

/// The requests of a group, in time order.
pub(crate) struct Schedule {
    clock: Clock,
    source: Source,
}

enum Source {
    Poisson(Poisson),
    Incast(Incast),
}

struct Poisson {
    mean: Duration,
    /// Time of the next request; `None` if it is after the end of every possible run.
    next: Option<Duration>,
    times: Stream,
    sizes: Sizes,
    size_draws: Stream,
    /// The pairs, in the order of their turns if pairs take turns.
    pairs: Vec<PairIndex>,
    order: PairOrder,
    pair_draws: Stream,
    /// The next pair, if pairs take turns.
    turn: usize,
}

struct Incast {
    interval: Duration,
    times: QueryTimes,
    time_draws: Stream,
    /// Time of the next query; `None` if it is after the end of every possible run.
    next: Option<Duration>,
    asked: u32,
    /// Size of each answer in bytes.
    share: u64,
    senders: u32,
    /// Each possible receiver, with the host pairs that lead to the receiver.
    receivers: Vec<(NodeIndex, Vec<PairIndex>)>,
    receiver_draws: Stream,
    sender_draws: Stream,
    /// Maximum delay before an answer, in picoseconds.
    spread: Span,
    spread_draws: Stream,
    /// Answers that have not started, sorted by time, query and draw.
    answers: BinaryHeap<Reverse<(Time, u32, u32, PairIndex)>>,
}

/// Latest time of a request, in picoseconds: about two months, longer than any run.
const LAST: u64 = 1 << 62;

impl Schedule {
    pub(crate) fn new(requests: &Requests, group: &RequestGroup, seed: u64, clock: Clock) -> Self {
        let stream = |purpose: &str| Stream::new(seed, &format!("requests/{}/{purpose}", group.name));
        let mut source = match &group.arrivals {
            Arrivals::Poisson { mean, sizes, pairs, order } => {
                assert!(*mean > Duration::default(), "the mean interval between requests is above zero");
                assert!(!pairs.is_empty(), "a request has a pair of hosts");
                let (mut pairs, mut pair_draws) = (pairs.clone(), stream("pairs"));
                if *order == PairOrder::InTurn {
                    pair_draws.shuffle(&mut pairs);
                }
                Source::Poisson(Poisson {
                    mean: *mean,
                    next: Some(Duration::default()),
                    times: stream("arrivals"),
                    sizes: sizes.clone(),
                    size_draws: stream("sizes"),
                    pairs,
                    order: *order,
                    pair_draws,
                    turn: 0,
                })
            }
            Arrivals::Incast { interval, times, bytes, senders, receivers, spread } => {
                assert!(*interval > Duration::default(), "the interval between queries is above zero");
                assert!(*senders > 0 && !receivers.is_empty(), "a query has a receiver and a sender");
                let receiver = |pairs: &Vec<PairIndex>| {
                    assert!(pairs.len() >= *senders as usize, "a query has enough senders");
                    (requests.pairs[pairs[0]].to, pairs.clone())
                };
                Source::Incast(Incast {
                    interval: *interval,
                    times: *times,
                    time_draws: stream("arrivals"),
                    next: Some(Duration::default()),
                    asked: 0,
                    share: bytes.bytes.div_ceil(u64::from(*senders)).max(1),
                    senders: *senders,
                    receivers: receivers.iter().map(receiver).collect(),
                    receiver_draws: stream("receivers"),
                    sender_draws: stream("senders"),
                    spread: Span(spread.picoseconds),
                    spread_draws: stream("spread"),
                    answers: BinaryHeap::new(),
                })
            }
        };
        match &mut source {
            Source::Poisson(poisson) => poisson.advance(),
            Source::Incast(incast) => incast.advance(),
        }
        Self { clock, source }
    }

    /// Returns the time of the next event, if there is one.
    pub(crate) fn next(&self) -> Option<Time> {
        let time = |next: Option<Duration>| next.map(|next| self.clock.time(next));
        match &self.source {
            Source::Poisson(poisson) => time(poisson.next),
            Source::Incast(incast) => {
                let answer = incast.answers.peek().map(|answer| answer.0.0);
                time(incast.next).into_iter().chain(answer).min()
            }
        }
    }

    /// Returns the next event if it is due at `now`, and draws the event after it. A query comes before its answers.
    pub(crate) fn take_due(&mut self, now: Time) -> Option<Due> {
        let clock = self.clock;
        let is_due = |next: Option<Duration>| next.filter(|&next| clock.time(next) <= now);
        match &mut self.source {
            Source::Poisson(poisson) => {
                is_due(poisson.next)?;
                poisson.advance();
                Some(Due::Opening(poisson.draw()))
            }
            Source::Incast(incast) => {
                if let Some(asked) = is_due(incast.next) {
                    incast.advance();
                    return Some(Due::Query(incast.ask(asked, clock)));
                }
                let &Reverse((_, query, _, pair)) = incast.answers.peek().filter(|answer| answer.0.0 <= now)?;
                incast.answers.pop();
                Some(Due::Opening(Opening { pair, bytes: incast.share, query: Some(query) }))
            }
        }
    }
}

impl Poisson {
    fn advance(&mut self) {
        let after = self.times.exponential(Span(self.mean.picoseconds));
        self.next = self.next.and_then(|time| later(time, after));
    }

    fn draw(&mut self) -> Opening {
        let bytes = self.sizes.draw(&mut self.size_draws).max(1);
        let place = match self.order {
            PairOrder::Random => draw_place(&mut self.pair_draws, self.pairs.len()),
            PairOrder::InTurn => {
                let next = (self.turn + 1) % self.pairs.len();
                std::mem::replace(&mut self.turn, next)
            }
        };
        Opening { pair: self.pairs[place], bytes, query: None }
    }
}

impl Incast {
    fn advance(&mut self) {
        let interval = Span(self.interval.picoseconds);
        let after = match self.times {
            QueryTimes::Fixed => interval,
            QueryTimes::Exponential => self.time_draws.exponential(interval),
        };
        self.next = self.next.and_then(|time| later(time, after));
    }

    /// Draws the receiver and the answers of a query. Returns the receiver.
    fn ask(&mut self, asked: Duration, clock: Clock) -> NodeIndex {
        let place = draw_place(&mut self.receiver_draws, self.receivers.len());
        let (receiver, pairs) = &self.receivers[place];
        // Each sender is drawn from the remaining senders, as in the first steps of a shuffle.
        let mut left = pairs.clone();
        for answer in 0..self.senders {
            let place = draw_place(&mut self.sender_draws, left.len());
            let pair = left.swap_remove(place);
            let offset = if self.spread == Span(0) { self.spread } else { up_to(self.spread, &mut self.spread_draws) };
            if let Some(starts) = later(asked, offset) {
                self.answers.push(Reverse((clock.time(starts), self.asked, answer, pair)));
            }
        }
        self.asked += 1;
        *receiver
    }
}

/// Returns the indices of the VCs for a request's data and acknowledgements, selected by a hash, as in routers. `vcs`
/// are the numbers of available VCs, and `key` is the key of the request's group.
pub(crate) fn paths(key: u64, number: u32, vcs: [usize; 2]) -> [usize; 2] {
    [0, 1].map(|way: usize| {
        let hashed = hash(key, 2 * u64::from(number) + way as u64);
        usize::try_from((u128::from(hashed) * vcs[way] as u128) >> 64).expect("the product is below the number of VCs")
    })
}

/// Returns the key of a group's path hashes.
pub(crate) fn path_key(seed: u64, group: &RequestGroup) -> u64 {
    Stream::new(seed, &format!("requests/{}/paths", group.name)).next_u64()
}

fn later(time: Duration, after: Span) -> Option<Duration> {
    let picoseconds = time.picoseconds.checked_add(after.0).filter(|&picoseconds| picoseconds < LAST)?;
    Some(Duration { picoseconds })
}

fn draw_place(stream: &mut Stream, places: usize) -> usize {
    stream.below(u32::try_from(places).expect("lists of pairs have 32 bits")) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::index::VcIndex;
    use crate::requests::{Opening as HowOpened, Pair};
    use crate::tcp::{TcpConfig, TcpOptions};
    use crate::units::Bytes;

    /// One nanosecond.
    const CLOCK: Clock = Clock::exact(1_000_000_000);

    /// Returns requests between every two of `hosts` hosts; pair `i` leads to host `i % hosts`.
    fn requests(hosts: u32, arrivals: impl Fn(Vec<PairIndex>) -> Arrivals) -> Requests {
        let ends = (0..hosts).flat_map(|from| (0..hosts).map(move |to| [from, to].map(NodeIndex::new)));
        let pair = |[from, to]: [NodeIndex; 2]| Pair {
            from,
            to,
            vcs: vec![VcIndex::new(0)],
            back: PairIndex::new(to.number() * hosts + from.number()),
        };
        let pairs: typed_index_collections::TiVec<PairIndex, Pair> = ends.map(pair).collect();
        let arrivals = arrivals(pairs.keys().collect());
        let tcp = TcpConfig::Vanilla(TcpOptions::default());
        let group = RequestGroup { name: "web".into(), tcp, outside: false, opening: HowOpened::default(), arrivals };
        Requests { pairs, groups: vec![group].into(), drops_closed: false }
    }

    fn poisson(mean: Duration, sizes: Sizes, order: PairOrder) -> impl Fn(Vec<PairIndex>) -> Arrivals {
        move |pairs| Arrivals::Poisson { mean, sizes: sizes.clone(), pairs, order }
    }

    /// Returns the events of a schedule, until `number` connections have opened, with their times.
    fn events(requests: &Requests, seed: u64, clock: Clock, number: usize) -> Vec<(Time, Due)> {
        let mut schedule = Schedule::new(requests, &requests.groups.raw[0], seed, clock);
        let (mut events, mut opened) = (Vec::new(), 0);
        while opened < number {
            let now = schedule.next().expect("the schedule of requests never ends");
            while let Some(due) = schedule.take_due(now) {
                opened += usize::from(matches!(due, Due::Opening(_)));
                events.push((now, due));
            }
            assert!(schedule.next() > Some(now), "every request that is due has been taken");
        }
        events
    }

    fn openings(events: &[(Time, Due)]) -> Vec<(Time, Opening)> {
        let opening = |&(time, due): &(Time, Due)| match due {
            Due::Opening(opening) => Some((time, opening)),
            Due::Query(_) => None,
        };
        events.iter().filter_map(opening).collect()
    }

    const MEAN: Duration = Duration::from_microseconds(10);

    fn small() -> Sizes {
        Sizes::constant(Bytes { bytes: 1000 })
    }

    #[test]
    fn the_mean_interval_between_requests_over_all_host_pairs_is_the_configured_mean() {
        let requests = requests(4, poisson(MEAN, small(), PairOrder::Random));
        let opened = openings(&events(&requests, 1, CLOCK, 40_000));
        let mean = opened[39_999].0.0 as f64 / 40_000.0;
        // The standard error is half a percent.
        assert!((mean / 10_000.0 - 1.0).abs() < 0.025, "{mean}");
        let mut counts: BTreeMap<PairIndex, u32> = BTreeMap::new();
        for (_, opening) in &opened {
            *counts.entry(opening.pair).or_default() += 1;
        }
        // The expected count for each of the 16 pairs is 2500, with a standard deviation of 48.
        assert!(counts.len() == 16 && counts.values().all(|&count| count.abs_diff(2500) < 250), "{counts:?}");
    }

    #[test]
    fn request_sizes_and_host_pairs_are_drawn_from_separate_random_streams() {
        let of = |sizes: Sizes, order| openings(&events(&requests(4, poisson(MEAN, sizes, order)), 1, CLOCK, 100));
        let spread = Sizes::new(vec![(1.0, 0.0), (1e6, 1.0)]);
        let all =
            [of(small(), PairOrder::Random), of(spread.clone(), PairOrder::Random), of(spread, PairOrder::InTurn)];
        let times = all.each_ref().map(|of| of.iter().map(|&(time, _)| time).collect::<Vec<_>>());
        let pairs = all.each_ref().map(|of| of.iter().map(|(_, opening)| opening.pair).collect::<Vec<_>>());
        let bytes = all.each_ref().map(|of| of.iter().map(|(_, opening)| opening.bytes).collect::<Vec<_>>());
        assert!(times[0] == times[1] && times[1] == times[2]);
        assert!(pairs[0] == pairs[1] && pairs[1] != pairs[2]);
        assert!(bytes[0] != bytes[1] && bytes[1] == bytes[2]);
    }

    #[test]
    fn in_round_robin_order_all_host_pairs_are_used_equally_often() {
        let requests = requests(3, poisson(MEAN, small(), PairOrder::InTurn));
        let pairs: Vec<_> =
            openings(&events(&requests, 1, CLOCK, 18)).iter().map(|(_, opening)| opening.pair).collect();
        assert_eq!(pairs[..9], pairs[9..]);
        let mut sorted = pairs[..9].to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..9).map(PairIndex::new).collect::<Vec<_>>());
        assert_ne!(sorted, pairs[..9], "the order of the pairs is random");
    }

    #[test]
    fn a_coarser_clock_only_rounds_request_times() {
        let requests = requests(4, poisson(MEAN, small(), PairOrder::Random));
        let fine = openings(&events(&requests, 1, CLOCK, 1000));
        let coarse = openings(&events(&requests, 1, Clock::exact(1_000_000), 1000));
        for ((fine, of_fine), (coarse, of_coarse)) in fine.iter().zip(&coarse) {
            assert_eq!(of_fine, of_coarse);
            assert!(fine.0.abs_diff(coarse.0 * 1000) <= 500, "{fine:?} {coarse:?}");
        }
    }

    fn queries(hosts: u32, times: QueryTimes, senders: u32, spread: Duration) -> Requests {
        requests(hosts, |pairs| Arrivals::Incast {
            interval: MEAN,
            times,
            bytes: Bytes { bytes: 1000 },
            senders,
            receivers: (0..hosts)
                .map(|to| pairs.iter().copied().filter(|pair| pair.number() % hosts == to).collect())
                .collect(),
            spread,
        })
    }

    #[test]
    fn each_sender_of_a_query_sends_an_equal_share_of_the_answer() {
        let events = events(&queries(8, QueryTimes::Fixed, 3, Duration::default()), 1, CLOCK, 3000);
        let mut receivers = BTreeMap::new();
        for (number, query) in events.chunks(4).enumerate() {
            let (time, Due::Query(receiver)) = query[0] else { panic!("a query comes before its answers: {query:?}") };
            assert_eq!(time, Time(10_000 * (number as u64 + 1)));
            *receivers.entry(receiver).or_insert(0_u32) += 1;
            let answers = openings(&query[1..]);
            assert!(answers.iter().all(|&(at, answer)| at == time && answer.bytes == 334), "1000 / 3, rounded up");
            assert!(answers.iter().all(|(_, answer)| answer.pair.number() % 8 == receiver.number()));
            let mut pairs: Vec<_> = answers.iter().map(|(_, answer)| answer.pair).collect();
            pairs.sort_unstable();
            pairs.dedup();
            assert_eq!(pairs.len(), 3);
        }
        // The expected count for each of the 8 hosts is 125, with a standard deviation of 10.
        assert!(receivers.len() == 8 && receivers.values().all(|&times| times.abs_diff(125) < 55), "{receivers:?}");
    }

    #[test]
    fn answers_to_different_queries_can_overlap_if_their_start_times_are_spread() {
        let late = Duration::from_microseconds(100);
        let events = events(&queries(8, QueryTimes::Exponential, 3, late), 1, CLOCK, 3000);
        assert!(events.is_sorted_by_key(|&(time, _)| time));
        let asked: Vec<Time> =
            events.iter().filter(|(_, due)| matches!(due, Due::Query(_))).map(|&(time, _)| time).collect();
        let answers = openings(&events);
        let query = |opening: &Opening| opening.query.expect("every answer belongs to a query");
        for (time, opening) in &answers {
            let after = (*time - asked[query(opening) as usize]).0;
            // The times of the query and of the answer are both rounded to the clock.
            assert!(after <= 100_001, "{after}");
        }
        assert!(!answers.is_sorted_by_key(|(_, opening)| query(opening)));
        let mean = asked[asked.len() - 1].0 as f64 / asked.len() as f64;
        assert!((mean / 10_000.0 - 1.0).abs() < 0.15, "{mean}");
    }

    #[test]
    fn hashing_spreads_flows_over_all_paths_independently_in_each_direction() {
        let mut counts = BTreeMap::new();
        for number in 0..12_000 {
            *counts.entry(paths(7, number, [4, 3])).or_insert(0_u32) += 1;
        }
        // The expected count for each combination is 1000, with a standard deviation of 30.
        assert!(counts.len() == 12 && counts.values().all(|&times| times.abs_diff(1000) < 150), "{counts:?}");
        assert_eq!(paths(7, 5, [1, 1]), [0, 0]);
        assert_ne!(
            (0..9).map(|number| paths(7, number, [4, 4])).collect::<Vec<_>>(),
            (0..9).map(|number| paths(8, number, [4, 4])).collect::<Vec<_>>()
        );
    }
}
