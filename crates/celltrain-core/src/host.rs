//! Properties of hosts besides their TCP: processing time per packet, clocks, and start times.
//!
//! Source: Floyd and Jacobson, "Traffic phase effects in packet-switched gateways", Computer Communication Review
//! 21(2), 1991, who add a random processing time between zero and the bottleneck's service time of a packet at the
//! sources; `docs/mechanisms.md`, A-60 to A-62. Differences from the source: a host takes processing time for
//! everything it sends, including acknowledgements.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Fault;
use crate::rng::Stream;
use crate::units::{Clock, Duration, Span};

/// Properties common to all hosts. With the defaults, hosts take no processing time and their clocks are exact.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HostOptions {
    /// Time a host takes to process each packet it sends. The host processes one packet at a time, before the packet
    /// joins the queue of its link.
    pub processing: Duration,
    /// Distribution of the processing time: constant, or drawn for each packet.
    pub processing_times: ProcessingTimes,
    /// Largest offset of a host's clock. The ticks of each host are delayed by a time drawn between 0 and this value
    ///
    pub clock_offset: Duration,
    /// Largest error of a host's clock. Each clock is slow or fast by a fraction drawn between minus and plus this
    /// value.
    #[schemars(range(min = 0.0, max = 0.1))]
    pub clock_skew: f64,
    /// Largest delay of a flow's start. Each flow is delayed by a time drawn between 0 and this value.
    pub start_spread: Duration,
}

/// Distribution of a host's processing time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProcessingTimes {
    /// Always the same.
    #[default]
    Fixed,
    /// Uniformly distributed from 0 to `processing`, drawn for each packet.
    Uniform,
}

/// The longest processing time allowed. A longer time probably has the wrong unit.
const MAX_PROCESSING: Duration = Duration::from_milliseconds(10_000);
const MAX_OFFSET: Duration = Duration::from_milliseconds(10_000);
const MAX_SKEW: f64 = 0.1;
const MAX_SPREAD: Duration = Duration::from_milliseconds(1_000_000);

impl HostOptions {
    /// Returns the faults in the options.
    pub fn check(&self) -> Vec<Fault> {
        let limits = [
            ("processing", self.processing, MAX_PROCESSING),
            ("clock_offset", self.clock_offset, MAX_OFFSET),
            ("start_spread", self.start_spread, MAX_SPREAD),
        ];
        let too_long = limits.into_iter().filter(|&(_, time, most)| time > most);
        let mut faults: Vec<_> = too_long
            .map(|(key, time, most)| {
                Fault::new(key, format!("\"{time}\""), format!("must be a time of at most {most}"))
            })
            .collect();
        if !(0.0..=MAX_SKEW).contains(&self.clock_skew) {
            let problem = format!("is not a share from 0 to {MAX_SKEW}");
            faults.push(Fault::new("clock_skew", self.clock_skew.to_string(), problem));
        }
        faults
    }

    /// Returns whether hosts take time to process packets.
    pub fn process(&self) -> bool {
        self.processing > Duration::default()
    }

    /// Returns the clock of a host.
    pub fn host_clock(&self, seed: u64, host: &str, clock: Clock) -> Rate {
        let drawn = |what: &str| Stream::new(seed, &format!("host/{host}/{what}"));
        let offset = clock.span(self.clock_offset);
        Rate {
            offset: if offset.0 == 0 { offset } else { up_to(offset, &mut drawn("clock_offset")) },
            skew: if self.clock_skew == 0.0 { 0.0 } else { (2.0 * drawn("clock_skew").unit() - 1.0) * self.clock_skew },
        }
    }

    /// Returns the delay of a flow's start.
    pub fn start_delay(&self, seed: u64, flow: &str, clock: Clock) -> Span {
        let spread = clock.span(self.start_spread);
        if spread.0 == 0 { spread } else { up_to(spread, &mut Stream::new(seed, &format!("flow/{flow}/start"))) }
    }
}

/// Draws a time uniformly from 0 to `most`, including both ends.
pub(crate) fn up_to(most: Span, rng: &mut Stream) -> Span {
    let units = (u128::from(rng.next_u64()) * (u128::from(most.0) + 1)) >> 64;
    Span(u64::try_from(units).expect("a share of a 64-bit number fits in 64 bits"))
}

/// The errors of a host's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Delay of the clock's first tick.
    pub offset: Span,
    /// Relative error of the clock: positive if it is slow, negative if it is fast.
    pub skew: f64,
}

impl Rate {
    /// Returns the true duration of a `period` measured by this clock.
    pub fn takes_for(self, period: Span) -> Span {
        // Periods are far below 2^53 units, and the correction is smaller than the period.
        #[expect(clippy::cast_possible_truncation, reason = "the value is at most a tenth of a period")]
        let more = (period.0 as f64 * self.skew).round() as i64;
        Span(period.0.saturating_add_signed(more).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: Clock = Clock::exact(1_000_000);

    #[test]
    fn the_default_host_options_are_valid_and_change_no_run() {
        let host = HostOptions::default();
        assert_eq!(host.check(), []);
        assert!(!host.process());
        let rate = host.host_clock(1, "s1", CLOCK);
        assert_eq!((rate.offset, rate.takes_for(Span(100_000))), (Span(0), Span(100_000)));
        assert_eq!(host.start_delay(1, "tcp1", CLOCK), Span(0));
    }

    #[test]
    fn each_host_option_out_of_range_is_refused() {
        let long = Duration::from_milliseconds(2_000_000);
        let host = HostOptions {
            processing: long,
            clock_offset: long,
            start_spread: long,
            clock_skew: 0.11,
            ..Default::default()
        };
        let keys: Vec<_> = host.check().into_iter().map(|fault| fault.key).collect();
        assert_eq!(keys, ["processing", "clock_offset", "start_spread", "clock_skew"]);
        assert_eq!(HostOptions { clock_skew: f64::NAN, ..Default::default() }.check().len(), 1);
    }

    #[test]
    fn random_clock_phases_of_hosts_are_uniform_and_include_both_ends_of_the_range() {
        let mut rng = Stream::new(1, "test");
        let drawn: Vec<u64> = (0..10_000).map(|_| up_to(Span(4), &mut rng).0).collect();
        let seen = [0, 1, 2, 3, 4].map(|units| drawn.iter().filter(|&&one| one == units).count());
        // About 2000 draws should give each value, with a standard deviation of 40.
        assert!(seen.iter().all(|&times| times.abs_diff(2000) < 200), "{seen:?}");
        assert_eq!(seen.iter().sum::<usize>(), 10_000);
    }

    #[test]
    fn each_host_has_its_own_clock() {
        let clock_offset = Duration::from_milliseconds(50);
        let host = HostOptions { clock_offset, clock_skew: 0.01, ..Default::default() };
        let rates: Vec<_> = ["a", "b"].map(|name| host.host_clock(1, name, CLOCK)).into();
        assert_ne!(rates[0], rates[1]);
        for rate in rates {
            assert!(rate.offset <= Span(50_000) && rate.skew.abs() <= 0.01);
            assert!((99_000..=101_000).contains(&rate.takes_for(Span(100_000)).0));
        }
        assert_eq!(Rate { offset: Span(0), skew: -0.01 }.takes_for(Span(100)), Span(99));
        assert_eq!(Rate { offset: Span(0), skew: -0.1 }.takes_for(Span(1)), Span(1));
    }
}
