//! Coarse timers. A timer is a countdown that a host's clock decrements once per tick.
//!
//! Source: 4.3BSD's slow (retransmission) and fast (delayed acknowledgement) timeouts; `docs/mechanisms.md` 3.2. A
//! timer set to n ticks expires after n - 1 to n ticks of real time, because the first tick may occur immediately. With
//! `timer.expiry = "after_rto"`, the sender sets its timers one check longer.

use std::collections::{BTreeSet, VecDeque};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::profile::rules;
use super::rtt::{EstimateForgotten, RttArithmetic, RttSampling};
use super::{Rules, Segment};
use crate::units::{Duration, Span, Time};

rules! {
    /// Rules of the retransmission timer and its estimate of the round-trip time.
    pub struct TimerRules, TimerOptions {
        /// MAX: the largest retransmission timeout.
        maximum_rto: Duration,
        /// The retransmission timeout before the first round-trip sample.
        initial_rto: Duration,
        /// Phases of the ticks of all connections.
        tick_phase: TickPhase,
        /// Earliest expiry of a retransmission timer of n ticks.
        expiry: TimerExpiry,
        /// Condition under which an acknowledgement of new data restarts the running retransmission timer.
        restart: TimerRestart,
        /// Growth of the retransmission timeout after repeated timeouts.
        backoff: Backoff,
        /// Round-trip time samples of retransmitted segments.
        rtt_sampling: RttSampling,
        /// Arithmetic of the round-trip time estimate.
        rtt_arithmetic: RttArithmetic,
        /// After which timeouts the sender discards its estimate of the round-trip time.
        estimate_forgotten: EstimateForgotten,
    }

    optional {
        /// Interval at which timers are checked, a whole fraction of `timer_granularity`. Short intervals allow timers of
        /// any length, as in ns-2. If absent, timers are checked at every tick.
        resolution: Duration,
    }
}

impl TimerRules {
    /// Returns the rules of a profile.
    pub fn of(rules: Rules) -> Self {
        let usual = Self {
            maximum_rto: Duration::from_milliseconds(64_000),
            initial_rto: Duration::from_milliseconds(3_000),
            tick_phase: TickPhase::Common,
            expiry: if rules.is_rfc() { TimerExpiry::AfterRto } else { TimerExpiry::AtTick },
            restart: TimerRestart::EveryNewAck,
            backoff: Backoff::Double,
            rtt_sampling: RttSampling::Karn,
            rtt_arithmetic: RttArithmetic::BsdIntegers,
            estimate_forgotten: EstimateForgotten::Never,
            resolution: None,
        };
        match rules {
            Rules::Rfc | Rules::Paper => usual,
            Rules::Today => Self {
                // Linux 6.12, include/net/tcp.h: TCP_TIMEOUT_INIT and TCP_RTO_MAX; tcp_rtt_estimator.
                initial_rto: Duration::from_milliseconds(1_000),
                maximum_rto: Duration::from_milliseconds(120_000),
                rtt_arithmetic: RttArithmetic::Fractions,
                ..usual
            },
            Rules::Bsd => Self {
                // tcp_newtcpcb: twice TCPTV_SRTTDFLT, 3 s.
                initial_rto: Duration::from_milliseconds(6_000),
                estimate_forgotten: EstimateForgotten::AtFourthTimeout,
                ..usual
            },
            Rules::Ns2 => Self { rtt_arithmetic: RttArithmetic::IntegersFromZero, ..usual },
        }
    }
}

/// Phases of the timer ticks of all connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TickPhase {
    /// All ticks occur at multiples of the granularity.
    #[default]
    Common,
    /// All connections tick together, and faster by up to 100 millionths. One value for the whole run, drawn from the
    /// seed.
    Drifting,
    /// Each connection's ticks have a random phase, drawn from the seed.
    Random,
}

/// Earliest expiry of a retransmission or persist timer of n ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimerExpiry {
    /// A timer expires at the n-th tick, after n - 1 to n ticks, as in BSD.
    AtTick,
    /// A timer expires at the first check after n whole ticks (RFC 6298, 5).
    AfterRto,
}

/// Condition under which an acknowledgement of new data restarts the running retransmission timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimerRestart {
    /// The timer restarts if data is still outstanding, as in BSD.
    #[default]
    EveryNewAck,
    /// The timer never restarts: it expires unless all outstanding data is acknowledged first.
    WhenAllAcked,
    /// Each segment has its own timer, which runs from its last transmission until its acknowledgement. Timeouts of
    /// other segments do not stop it.
    PerSegment,
}

/// Growth of the retransmission timeout after repeated timeouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    /// The timeout doubles up to six times, until a valid round-trip sample.
    #[default]
    Double,
    /// Every timeout follows only the estimate.
    None,
}

/// RFC 1122 (4.2.3.2) allows 500 ms; BSD's fast timeout is 200 ms.
pub const DELAYED_ACK_TICK: Duration = Duration::from_milliseconds(200);

/// A countdown in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Countdown {
    remaining: u32,
}

impl Countdown {
    /// Starts or restarts the countdown.
    pub fn start(&mut self, ticks: u32) {
        self.remaining = ticks;
    }

    /// Stops the countdown.
    pub fn stop(&mut self) {
        self.remaining = 0;
    }

    /// Returns whether the countdown is running.
    pub fn is_running(self) -> bool {
        self.remaining > 0
    }

    /// Returns the ticks until the countdown expires; 0 if it is not running.
    pub fn left(self) -> u32 {
        self.remaining
    }

    /// Counts ticks before the tick at which the countdown expires.
    pub fn skip(&mut self, ticks: u64) {
        debug_assert!(self.remaining == 0 || ticks < u64::from(self.remaining), "no expiry is skipped");
        self.remaining = self.remaining.saturating_sub(u32::try_from(ticks).unwrap_or(u32::MAX));
    }

    /// Counts one tick. Returns whether the countdown has just expired.
    pub fn on_tick(&mut self) -> bool {
        if self.remaining == 0 {
            return false;
        }
        self.remaining -= 1;
        self.remaining == 0
    }
}

/// The timer that detects segments that are not acknowledged in time.
#[derive(Clone, Debug)]
pub enum RetransmissionTimer {
    /// One timer for the connection.
    Common(Countdown),
    /// One timer for each segment. The variant is boxed so that senders without it stay small.
    PerSegment(Box<SegmentTimers>),
}

impl RetransmissionTimer {
    /// Returns whether a timer is running.
    #[inline]
    pub fn is_running(&self) -> bool {
        match self {
            Self::Common(timer) => timer.is_running(),
            Self::PerSegment(timers) => timers.is_running(),
        }
    }

    /// Stops the timer, or all timers.
    #[inline]
    pub fn stop(&mut self) {
        match self {
            Self::Common(timer) => timer.stop(),
            Self::PerSegment(timers) => timers.stop(),
        }
    }
}

/// Timers for each outstanding segment (`timer.restart = "per_segment"`).
#[derive(Clone, Debug, Default)]
pub struct SegmentTimers {
    /// Ticks counted.
    now: u64,
    /// For each segment in sending order: its end, and the tick after which it was sent. `None` if the segment has been
    /// resent since. The first entry is never `None`.
    sent: VecDeque<Option<(u64, u64)>>,
    /// Number of entries removed from the front. A segment's number is its index plus this number.
    gone: u64,
    /// End and number of each entry, to find a resent segment quickly among many.
    by_end: BTreeSet<(u64, u64)>,
}

impl SegmentTimers {
    /// Starts the timer of a segment that was sent. If the segment was sent `again`, restarts its timer.
    pub fn start(&mut self, segment: Segment, again: bool) {
        if again {
            let of_it = self.by_end.range((segment.seq + 1, 0)..=(segment.end(), u64::MAX));
            if let Some(&(end, number)) = of_it.min_by_key(|(_, number)| number) {
                self.by_end.remove(&(end, number));
                self.sent[place(number - self.gone)] = None;
                self.drop_empty_places();
            }
        }
        self.by_end.insert((segment.end(), self.gone + self.sent.len() as u64));
        self.sent.push_back(Some((segment.end(), self.now)));
    }

    /// Stops all timers.
    pub fn stop(&mut self) {
        self.sent.clear();
        self.by_end.clear();
    }

    /// Returns whether any timer is running.
    pub fn is_running(&self) -> bool {
        !self.sent.is_empty()
    }

    /// Returns the ticks, at least 1, until the first timer of a segment beyond `snd_una` reaches `rto` ticks; 0 if no
    /// timer is running.
    pub fn left(&self, snd_una: u64, rto: u32) -> u64 {
        let first = self.sent.iter().flatten().find(|&&(end, _)| end > snd_una);
        first.map_or(0, |&(_, at)| (at + u64::from(rto)).saturating_sub(self.now).max(1))
    }

    /// Counts ticks before the tick at which the first timer expires.
    pub fn skip(&mut self, ticks: u64) {
        self.now += ticks;
    }

    /// Counts one tick and removes timers that reached `rto`. Returns whether a removed timer was for a segment beyond
    /// `snd_una`.
    pub fn on_tick(&mut self, snd_una: u64, rto: u32) -> bool {
        self.now += 1;
        let mut ran_out = false;
        while let Some(&Some((end, at))) = self.sent.front() {
            if end > snd_una && self.now - at < u64::from(rto) {
                break;
            }
            ran_out |= end > snd_una;
            self.by_end.remove(&(end, self.gone));
            self.sent[0] = None;
            self.drop_empty_places();
        }
        ran_out
    }

    fn drop_empty_places(&mut self) {
        while let Some(None) = self.sent.front() {
            self.sent.pop_front();
            self.gone += 1;
        }
    }
}

fn place(number: u64) -> usize {
    usize::try_from(number).expect("every object in the JSON file has an index")
}

/// The next tick of a host's clock. The clock ticks at `phase`, and then every `period`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticks {
    next: Time,
    period: Span,
}

impl Ticks {
    /// Creates ticks every `period`. The first is at `phase`, or after one period if the phase is zero, because the
    /// start is not a tick.
    pub fn new(period: Span, phase: Span) -> Self {
        assert!(period.0 > 0, "ticks have a positive period");
        let first = if phase.0 == 0 { period } else { phase };
        Self { next: Time::default() + first, period }
    }

    /// Returns the next tick.
    pub fn next(self) -> Time {
        self.next
    }

    /// Advances to the following tick.
    pub fn advance(&mut self) {
        self.next += self.period;
    }

    /// Returns the time of the tick that is `ticks` ticks after the next tick.
    pub fn after(self, ticks: u64) -> Time {
        let time = ticks.checked_mul(self.period.0).and_then(|span| self.next.0.checked_add(span));
        time.map_or(Time::NEVER, Time)
    }

    /// Skips the ticks before `until`. Returns their number.
    pub fn skip_to(&mut self, until: Time) -> u64 {
        let Some(span) = until.0.checked_sub(self.next.0) else { return 0 };
        let ticks = span.div_ceil(self.period.0);
        self.next = self.after(ticks);
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tcp_timer_of_n_ticks_expires_at_the_nth_tick() {
        let mut timer = Countdown::default();
        assert!(!timer.on_tick(), "a stopped timer never expires");
        timer.start(3);
        assert_eq!([(); 4].map(|()| timer.on_tick()), [false, false, true, false]);
        timer.start(2);
        timer.stop();
        assert!(!timer.on_tick());
    }

    /// A model that searches a list from the beginning.
    #[derive(Default)]
    struct Searched {
        now: u64,
        sent: Vec<(u64, u64)>,
    }

    impl Searched {
        fn start(&mut self, segment: Segment, again: bool) {
            let is_it = |&(end, _): &(u64, u64)| (segment.seq + 1..=segment.end()).contains(&end);
            if again && let Some(at) = self.sent.iter().position(is_it) {
                self.sent.remove(at);
            }
            self.sent.push((segment.end(), self.now));
        }

        fn left(&self, snd_una: u64, rto: u32) -> u64 {
            let first = self.sent.iter().find(|&&(end, _)| end > snd_una);
            first.map_or(0, |&(_, at)| (at + u64::from(rto)).saturating_sub(self.now).max(1))
        }

        fn on_tick(&mut self, snd_una: u64, rto: u32) -> bool {
            self.now += 1;
            let over = |&(end, at): &(u64, u64)| end <= snd_una || self.now - at >= u64::from(rto);
            let gone = self.sent.iter().take_while(|one| over(one)).count();
            self.sent.drain(..gone).any(|(end, _)| end > snd_una)
        }
    }

    #[test]
    fn per_segment_timers_match_a_simple_list_of_timers() {
        let mut rng = crate::rng::Stream::new(1, "segment timers");
        for _ in 0..200 {
            let (mut timers, mut oracle) = (SegmentTimers::default(), Searched::default());
            let mut snd_una = 0;
            for _ in 0..200 {
                let segment = Segment { seq: snd_una + u64::from(rng.below(12)), len: 1 + rng.below(4) };
                match rng.below(12) {
                    0 => {
                        timers.stop();
                        oracle.sent.clear();
                    }
                    1 | 2 => assert_eq!(timers.on_tick(snd_una, 3), oracle.on_tick(snd_una, 3)),
                    3 => snd_una += u64::from(rng.below(3)),
                    _ => {
                        let again = rng.below(3) > 0;
                        timers.start(segment, again);
                        oracle.start(segment, again);
                    }
                }
                assert_eq!(timers.left(snd_una, 3), oracle.left(snd_una, 3));
                assert_eq!(timers.is_running(), !oracle.sent.is_empty());
                assert_eq!(timers.by_end.len(), oracle.sent.len());
            }
        }
    }

    #[test]
    fn no_tcp_clock_ticks_at_the_start_of_the_run() {
        let mut ticks = Ticks::new(Span(10), Span(0));
        assert_eq!(ticks.next(), Time(10));
        ticks.advance();
        assert_eq!(ticks.next(), Time(20));
        assert_eq!(Ticks::new(Span(10), Span(4)).next(), Time(4));
    }
}
