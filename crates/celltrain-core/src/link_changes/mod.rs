//! Links whose rate or delay changes during a run, and links that deliver packets with jitter or out of order.
//!
//! Rates change at the port at the start of a link (`transmitter`), delays at the link's end (`changing_delay`).
//! `docs/design/changing-links.md` has the rules.

mod changing_delay;
mod opportunities;
mod transmitter;

pub(crate) use changing_delay::{ChangingDelay, Lateness};
pub use opportunities::{OPPORTUNITY_BYTES, Trace};
pub(crate) use transmitter::Transmitter;

use crate::rng::Stream;
use crate::units::{BitRate, Duration};

/// The changes of a link. By default, nothing changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkChanges {
    /// The rate at any time, at most the link's `rate`.
    pub rate: Option<RateChange>,
    /// The delay at any time, at least the link's `delay`.
    pub delay: Option<DelayChange>,
    /// Random differences between the delays of packets.
    pub jitter: Option<Jitter>,
    /// Packets that overtake others.
    pub reordering: Option<Reordering>,
}

/// The rate of a link as a function of time.
#[derive(Clone, Debug, PartialEq)]
pub enum RateChange {
    /// New rates with the times from which they apply, in ascending order. Until the first, the link has its own rate.
    /// With a rate of 0, the port waits for the next change.
    Steps(Vec<(Duration, BitRate)>),
    /// A random walk in bits per second, drawn from the stream `link/<name>/rate`.
    Walk(Walk),
    /// Delivery opportunities. Cells that may leave have the link's own rate.
    Trace(Trace),
}

/// The delay of a link as a function of time.
#[derive(Clone, Debug, PartialEq)]
pub enum DelayChange {
    /// New delays with the times from which they apply, in ascending order. Until the first, the link has its own delay.
    Steps(Vec<(Duration, Duration)>),
    /// A random walk in picoseconds, drawn from the stream `link/<name>/delay`.
    Walk(Walk),
}

/// A value that moves up or down by the same step at regular times, with equal probabilities. It stays within limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Time between two steps, above 0.
    pub every: Duration,
    /// Value at the start.
    pub first: u64,
    /// Difference between two successive values of the walk.
    pub step: u64,
    /// Smallest value.
    pub least: u64,
    /// Largest value.
    pub most: u64,
}

impl Walk {
    /// Returns the values up to the time `until`.
    pub(crate) fn steps(&self, mut draws: Stream, until: Duration) -> Vec<(Duration, u64)> {
        let mut value = self.first;
        let next = |&at: &u64| at.checked_add(self.every.picoseconds).filter(|&at| at <= until.picoseconds);
        let times = std::iter::successors(Some(0), next);
        let step = |picoseconds| {
            if picoseconds > 0 {
                let moved = match draws.below(2) {
                    0 => value.saturating_sub(self.step),
                    _ => value.saturating_add(self.step),
                };
                value = moved.clamp(self.least, self.most);
            }
            (Duration { picoseconds }, value)
        };
        times.map(step).collect()
    }
}

/// Random differences between the delays of packets. All cells of a packet have the same difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter {
    /// Largest difference with [`Distribution::Uniform`], standard deviation with [`Distribution::Normal`].
    pub by: Duration,
    /// The distribution of the differences. Their mean is 0.
    pub distribution: Distribution,
}

/// The distribution of the differences between delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distribution {
    /// Every difference from `-by` to `by` is equally likely.
    #[default]
    Uniform,
    /// The normal distribution.
    Normal,
}

/// Selects packets that arrive after the link's own, shortest delay, and overtake the others. Like `reorder` of netem.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reordering {
    /// Probability with which a packet is selected, if enough others came before it.
    pub probability: f64,
    /// A packet can be selected only if at least `gap - 1` packets were not selected since the latest selection.
    pub gap: u64,
}

impl LinkChanges {
    /// A link that does not change.
    pub(crate) const NONE: Self = Self { rate: None, delay: None, jitter: None, reordering: None };

    /// Returns whether the delay of any packet may change.
    pub(crate) fn change_delays(&self) -> bool {
        self.delay.is_some() || self.jitter.is_some() || self.reordering.is_some()
    }

    /// Returns whether values are drawn that are not whole numbers of a clock's unit.
    pub(crate) fn need_finer_clock(&self) -> bool {
        self.jitter.is_some() || matches!(self.rate, Some(RateChange::Walk(_)))
    }

    /// Returns the times that a clock must represent.
    pub(crate) fn times(&self) -> Vec<Duration> {
        let mut times = Vec::new();
        match &self.rate {
            Some(RateChange::Steps(steps)) => times.extend(steps.iter().map(|&(at, _)| at)),
            Some(RateChange::Walk(walk)) => times.push(walk.every),
            Some(RateChange::Trace(_)) => times.push(Duration::from_milliseconds(1)),
            None => {}
        }
        match &self.delay {
            Some(DelayChange::Steps(steps)) => times.extend(steps.iter().flat_map(|&(at, delay)| [at, delay])),
            Some(DelayChange::Walk(Walk { every, first, step, least, most })) => {
                times.push(*every);
                times.extend([first, step, least, most].map(|&picoseconds| Duration { picoseconds }));
            }
            None => {}
        }
        times.extend(self.jitter.map(|jitter| jitter.by));
        times
    }

    /// Returns the rates other than 0 at which cells must take a whole number of units of a clock.
    pub(crate) fn rates(&self) -> impl Iterator<Item = BitRate> {
        let steps = match &self.rate {
            Some(RateChange::Steps(steps)) => &steps[..],
            _ => &[],
        };
        steps.iter().map(|&(_, rate)| rate).filter(|rate| rate.bits_per_second > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_walk_moves_by_one_step_at_a_time_and_stays_within_its_limits() {
        let every = Duration::from_milliseconds(10);
        let walk = Walk { every, first: 50, step: 20, least: 15, most: 100 };
        let steps = |seed| walk.steps(Stream::new(seed, "link/a->b/rate"), Duration::from_milliseconds(10_000));
        let drawn = steps(1);
        assert_eq!((drawn.len(), drawn[0]), (1001, (Duration::default(), 50)));
        for (number, pair) in drawn.windows(2).enumerate() {
            let (before, (at, value)) = (pair[0].1, pair[1]);
            assert_eq!(at, Duration::from_milliseconds(10 * (number as u64 + 1)));
            assert!(value == (before + 20).min(100) || value == before.saturating_sub(20).max(15), "{before} {value}");
        }
        let values = || drawn.iter().map(|step| step.1);
        assert_eq!((values().min(), values().max()), (Some(15), Some(100)));
        assert!(drawn == steps(1) && drawn != steps(2), "the walk depends only on the seed");
    }
}
