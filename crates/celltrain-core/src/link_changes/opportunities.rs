//! Delivery opportunities in the form of Mahimahi: at each listed millisecond, a link may deliver 1,504 bytes.
//!
//! Source: Netravali et al., *Mahimahi: Accurate Record-and-Replay for HTTP*, USENIX ATC 2015, section 3.3, and the
//! rules of its `LinkShell`. Bytes of an opportunity that no waiting cell uses are lost. A cell that does not fit into the
//! rest of an opportunity takes the remaining bytes from the next one, and has arrived only after that.
//! Differences from the source: a cell also takes its time at the link's rate, so that cells follow each other.

use crate::units::{Clock, Duration, Span, Time};

/// Bytes that a link may deliver at each opportunity: an Ethernet payload, and 4 bytes of a TUN device.
pub const OPPORTUNITY_BYTES: u64 = 1504;
const OPPORTUNITY_BITS: u64 = OPPORTUNITY_BYTES * 8;

/// A list of delivery opportunities that repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Times of the opportunities, in milliseconds and in ascending order. After the last one, which is above 0, the
    /// list starts again.
    milliseconds: Vec<u64>,
}

impl Trace {
    /// Creates a trace. Returns `None` if the list is empty, not in order, or ends at 0.
    pub fn new(milliseconds: Vec<u64>) -> Option<Self> {
        let lasts = milliseconds.last().is_some_and(|&last| last > 0);
        (lasts && milliseconds.is_sorted()).then_some(Self { milliseconds })
    }

    /// Returns the time after which the list starts again.
    pub fn period(&self) -> Duration {
        Duration::from_milliseconds(self.milliseconds[self.milliseconds.len() - 1])
    }

    /// Returns the number of opportunities in the list.
    pub fn opportunities(&self) -> usize {
        self.milliseconds.len()
    }

    /// Returns the bits that can be delivered after `from` and up to `to`, in seconds since the start.
    pub(crate) fn bits_between(&self, from: f64, to: f64) -> f64 {
        let up_to = |seconds: f64| {
            let (milliseconds, period) = (seconds * 1e3, self.period().seconds() * 1e3);
            let rounds = (milliseconds / period).floor();
            let rest = milliseconds - rounds * period;
            let in_round = self.milliseconds.partition_point(|&at| at as f64 <= rest);
            rounds * self.milliseconds.len() as f64 + in_round as f64
        };
        (up_to(to) - up_to(from)) * OPPORTUNITY_BITS as f64
    }
}

/// The state of a port that sends at the opportunities of a trace.
#[derive(Clone, Debug)]
pub(crate) struct Opportunities {
    /// Times in the list.
    times: Vec<Time>,
    period: Span,
    /// Start of the current round, and the position of the next opportunity in it.
    round: Time,
    next: usize,
    /// Bits of earlier opportunities that may still be used.
    credit: u64,
    /// End of the latest transmission, or the latest time at which the port was free and looked for a cell.
    seen: Time,
    cell_time: Span,
    cell_bits: u64,
}

impl Opportunities {
    pub(super) fn new(trace: &Trace, clock: Clock, cell_time: Span) -> Self {
        let time = |&at: &u64| clock.time(Duration::from_milliseconds(at));
        Self {
            times: trace.milliseconds.iter().map(time).collect(),
            period: clock.span(trace.period()),
            round: Time::default(),
            next: 0,
            credit: 0,
            seen: Time::default(),
            cell_time,
            cell_bits: clock.cell_bits,
        }
    }

    fn next_time(&self) -> Time {
        self.round + Span(self.times[self.next].0)
    }

    fn skip(&mut self) {
        self.next += 1;
        if self.next == self.times.len() {
            (self.next, self.round) = (0, self.round + self.period);
        }
    }

    fn take(&mut self) {
        self.credit += OPPORTUNITY_BITS;
        self.skip();
    }

    /// Returns the earliest time from `now` on at which the free port may start a cell.
    pub(super) fn ready(&mut self, now: Time) -> Time {
        if now > self.seen {
            // No cell was waiting since the last call.
            self.credit = 0;
            while self.next_time() < now {
                self.skip();
            }
        }
        while self.next_time() <= now {
            self.take();
        }
        self.seen = now;
        if self.credit > 0 { now } else { self.next_time() }
    }

    /// Starts a cell at `now`. Returns the time until the port is free.
    pub(super) fn send(&mut self, now: Time) -> Span {
        let mut last = now;
        while self.credit < self.cell_bits {
            last = last.max(self.next_time());
            self.take();
        }
        self.credit -= self.cell_bits;
        self.seen = last + self.cell_time;
        self.seen - now
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::rng::Stream;

    /// The rule of `LinkShell`, written independently: at each opportunity, waiting packets of `size` bytes use up to 1,504
    /// bytes, and a packet leaves with its last byte. Arrivals and departures are in milliseconds.
    fn link_shell(list: &[u64], arrivals: &[u64], size: u64) -> Vec<u64> {
        let (mut waiting, mut left_of_first, mut departures) = (VecDeque::new(), 0, Vec::new());
        let mut arrivals = arrivals.iter().copied().collect::<VecDeque<u64>>();
        for round in 0.. {
            for &at in list {
                let now = round * list[list.len() - 1] + at;
                while arrivals.front().is_some_and(|&arrival| arrival <= now) {
                    waiting.extend(arrivals.pop_front());
                }
                let mut bytes = OPPORTUNITY_BYTES;
                while bytes > 0
                    && (left_of_first > 0
                        || waiting.pop_front().is_some_and(|_| {
                            left_of_first = size;
                            true
                        }))
                {
                    let used = bytes.min(left_of_first);
                    (bytes, left_of_first) = (bytes - used, left_of_first - used);
                    if left_of_first == 0 {
                        departures.push(now);
                    }
                }
            }
            if arrivals.is_empty() && waiting.is_empty() && left_of_first == 0 {
                return departures;
            }
        }
        unreachable!("the loop returns")
    }

    /// Returns the departures of a port with a queue, rounded down to milliseconds: a cell takes a nanosecond.
    fn by_port(trace: &Trace, arrivals: &[u64], size: u64) -> Vec<u64> {
        let clock = Clock { cell_bits: size * 8, ..Clock::exact(1_000_000_000) };
        let mut port = Opportunities::new(trace, clock, Span(1));
        let mut free_at = Time(0);
        let departure = |&arrival: &u64| {
            let mut start = free_at.max(Time(arrival * 1_000_000));
            loop {
                let ready = port.ready(start);
                if ready == start {
                    break;
                }
                start = ready;
            }
            free_at = start + port.send(start);
            free_at.0 / 1_000_000
        };
        arrivals.iter().map(departure).collect()
    }

    #[test]
    fn cells_leave_a_link_with_a_trace_when_mahimahi_would_send_the_packets() {
        let mut rng = Stream::new(1, "opportunities");
        for _ in 0..500 {
            let mut list: Vec<u64> = (0..=rng.below(12)).map(|_| rng.below(30).into()).collect();
            list.sort_unstable();
            list.push(list[list.len() - 1] + 1 + u64::from(rng.below(5)));
            let mut arrivals: Vec<u64> = (0..=rng.below(60)).map(|_| rng.below(200).into()).collect();
            arrivals.sort_unstable();
            let size = [53, 200, 752, 1504, 1538, 4000][rng.below(6) as usize];
            let trace = Trace::new(list.clone()).unwrap();
            assert_eq!(
                by_port(&trace, &arrivals, size),
                link_shell(&list, &arrivals, size),
                "{list:?} {arrivals:?} {size}"
            );
        }
    }

    #[test]
    fn a_link_trace_must_have_a_positive_duration_and_increasing_times() {
        assert_eq!([vec![], vec![0], vec![3, 2]].map(Trace::new), [None, None, None]);
        let trace = Trace::new(vec![0, 2, 2, 5]).unwrap();
        assert_eq!((trace.period(), trace.opportunities()), (Duration::from_milliseconds(5), 4));
        // At 5 ms, the last opportunity of the first round and the first of the second.
        assert_eq!(trace.bits_between(0.0, 0.010) / OPPORTUNITY_BITS as f64, 8.0);
        assert_eq!(trace.bits_between(0.002, 0.007) / OPPORTUNITY_BITS as f64, 4.0);
    }
}
