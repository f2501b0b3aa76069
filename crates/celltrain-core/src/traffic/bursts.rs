//! Bursts over TCP: files with pauses between them, on one connection.
//!
//! Source: this project, modelled on the highly bursty connections alongside bulk transfers in Computer Communications
//! 21(12), 1998. Differences from the source: cwnd does not change during a pause, unless `start.after_idle` says
//! otherwise; the last segment of a burst is full.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::on_off::Times;
use super::{Configure, Load};
use crate::rng::Stream;
use crate::units::{Bytes, Clock, Duration, Span};

/// Bursts: TCP sends `bytes`, rounded up to full segments, pauses when the last of them is acknowledged, and repeats
/// this without end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Bursts")]
pub struct Config {
    /// Size of a burst.
    pub bytes: Bytes,
    /// Time from the acknowledgement of a burst's last byte to the next burst; the mean if times are drawn.
    #[schemars(example = "300ms")]
    pub pause: Duration,
    /// Distribution of the pause: constant or random.
    #[serde(default)]
    pub times: Times,
}

impl Configure for Config {
    fn load(&self) -> Load<'_> {
        Load::Bursts(self)
    }
}

/// The successive pauses of a flow.
pub struct Pauses {
    mean: Span,
    times: Times,
    rng: Stream,
}

impl Pauses {
    /// Creates the pauses of a flow. Random pauses are drawn from `rng`.
    pub fn new(config: &Config, clock: Clock, rng: Stream) -> Self {
        Self { mean: clock.span(config.pause), times: config.times, rng }
    }

    /// Returns the length of the next pause. It is never 0, because no burst begins at the instant when the previous
    /// one ended.
    pub fn next_pause(&mut self) -> Span {
        let pause = match self.times {
            Times::Fixed => self.mean,
            Times::Exponential => self.rng.exponential(self.mean),
        };
        pause.max(Span(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: Clock = Clock::exact(97_200_000);

    fn pauses(times: Times, pause: Duration) -> Pauses {
        let config = Config { bytes: Bytes { bytes: 512 }, pause, times };
        Pauses::new(&config, CLOCK, Stream::new(1, "test"))
    }

    #[test]
    fn fixed_pauses_between_bursts_are_equal_and_last_at_least_one_time_unit() {
        let mut pauses = pauses(Times::Fixed, Duration::from_milliseconds(3));
        assert_eq!([(); 3].map(|()| pauses.next_pause()), [Span(291_600); 3]);
        assert_eq!(self::pauses(Times::Fixed, Duration::default()).next_pause(), Span(1));
    }

    #[test]
    fn exponential_pauses_between_bursts_have_the_configured_mean() {
        let mut pauses = pauses(Times::Exponential, Duration::from_milliseconds(3));
        let drawn: Vec<u64> = (0..20_000).map(|_| pauses.next_pause().0).collect();
        let mean = drawn.iter().sum::<u64>() as f64 / 20_000.0;
        // The mean of 20,000 pauses has a standard deviation of 0.7 %.
        assert!((mean / 291_600.0 - 1.0).abs() < 0.03, "{mean}");
        assert!(drawn.iter().any(|&pause| pause > 3 * 291_600), "one pause in twenty is at least this long");
    }
}
