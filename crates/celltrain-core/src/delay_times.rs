//! Exact distributions of the delays of packets: each delay that occurred, in units of the clock, with its number of
//! packets.

use std::sync::OnceLock;

use crate::units::{Clock, Span, Time};

/// Distribution of the delays of packets.
#[derive(Clone, Debug)]
pub struct DelayTimes {
    clock: Clock,
    /// Delays with their numbers of packets, unsorted. A delay may occur several times.
    counts: Vec<(Span, u64)>,
    /// Number of packets.
    packets: u64,
    /// Sum of all delays, in units of the clock.
    sum: u128,
    /// Delays in ascending order, each with the cumulative number of packets. Computed when a percentile is first
    /// requested.
    up_to: OnceLock<Vec<(Span, u64)>>,
}

impl PartialEq for DelayTimes {
    fn eq(&self, other: &Self) -> bool {
        self.clock == other.clock && self.up_to() == other.up_to()
    }
}

impl Eq for DelayTimes {}

impl DelayTimes {
    /// Creates the distribution from delays with their numbers of packets.
    fn of(counts: Vec<(Span, u64)>, clock: Clock) -> Self {
        let packets = counts.iter().map(|&(_, packets)| packets).sum();
        let sum = counts.iter().map(|&(delay, packets)| u128::from(delay.0) * u128::from(packets)).sum();
        Self { clock, counts, packets, sum, up_to: OnceLock::new() }
    }

    /// Merges several distributions.
    pub(crate) fn merged<'a>(mut all: impl Iterator<Item = &'a DelayTimes>, clock: Clock) -> Self {
        let (Some(first), second) = (all.next(), all.next()) else { return Self::of(Vec::new(), clock) };
        let Some(second) = second else { return first.clone() };
        let mut tracker = DelayTracker::default();
        for &(delay, packets) in [first, second].into_iter().chain(all).flat_map(|times| &times.counts) {
            tracker.add(delay, packets);
        }
        tracker.times(clock)
    }

    pub(crate) fn up_to(&self) -> &[(Span, u64)] {
        self.up_to.get_or_init(|| {
            let mut counts = self.counts.clone();
            counts.sort_unstable();
            counts.dedup_by(|later, first| {
                let is_equal = later.0 == first.0;
                first.1 += if is_equal { later.1 } else { 0 };
                is_equal
            });
            let mut packets = 0;
            for (_, count) in &mut counts {
                packets += *count;
                *count = packets;
            }
            counts
        })
    }

    /// Returns the number of packets.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the mean delay in milliseconds; `None` without packets.
    pub fn mean_ms(&self) -> Option<f64> {
        let packets = self.packets();
        (packets > 0).then(|| self.sum as f64 / packets as f64 / self.clock.units_per_second as f64 * 1e3)
    }

    /// Returns the smallest delay in milliseconds that at least a given fraction of the packets (in thousandths) does
    /// not exceed; `None` without packets.
    pub fn percentile_ms(&self, share: u16) -> Option<f64> {
        let rank = (u128::from(self.packets()) * u128::from(share)).div_ceil(1000);
        let place = self.up_to().partition_point(|&(_, packets)| u128::from(packets) < rank);
        self.up_to().get(place).map(|&(delay, _)| self.clock.seconds(Time(delay.0)) * 1e3)
    }
}

/// Counts delays.
#[derive(Clone, Default)]
pub(crate) struct DelayTracker {
    /// The latest delay and its number of consecutive occurrences. Many ports have only one delay value.
    latest: Span,
    times: u64,
    /// An open-addressing hash table of the earlier delays with their numbers of packets; 0 marks a free slot. Its size
    /// is a power of two, and at most three quarters of the slots are used.
    slots: Vec<(Span, u64)>,
    used: usize,
}

impl DelayTracker {
    /// Counts a delay if `counts` is true.
    #[inline]
    pub(crate) fn count_if(&mut self, counts: bool, delay: Span) {
        if counts {
            self.count(delay);
        }
    }

    /// Counts a delay if it equals the latest delay. Returns whether the delays are equal.
    #[inline]
    pub(crate) fn repeat(&mut self, delay: Span) -> bool {
        let repeats = delay == self.latest && self.times > 0;
        self.times += u64::from(repeats);
        repeats
    }

    /// Returns the delay that was counted last, if any.
    pub(crate) fn latest(&self) -> Option<Span> {
        (self.times > 0).then_some(self.latest)
    }

    /// Counts a delay.
    #[inline]
    pub(crate) fn count(&mut self, delay: Span) {
        if delay == self.latest {
            self.times += 1;
        } else {
            self.change_to(delay);
        }
    }

    #[inline(never)]
    fn change_to(&mut self, delay: Span) {
        if self.times > 0 {
            self.add(self.latest, self.times);
        }
        (self.latest, self.times) = (delay, 1);
    }

    #[inline]
    fn add(&mut self, delay: Span, times: u64) {
        if self.used * 4 >= self.slots.len() * 3 {
            self.grow();
        }
        self.used += usize::from(put(&mut self.slots, delay, times));
    }

    #[cold]
    fn grow(&mut self) {
        let mut slots = vec![(Span(0), 0); (self.slots.len() * 4).max(16)];
        for &(delay, times) in self.slots.iter().filter(|&&(_, times)| times > 0) {
            put(&mut slots, delay, times);
        }
        self.slots = slots;
    }

    /// Returns the distribution so far.
    pub(crate) fn times(&self, clock: Clock) -> DelayTimes {
        self.times_with(&Self::default(), clock)
    }

    /// Returns the distribution of the packets counted in `self` and in `other`.
    pub(crate) fn times_with(&self, other: &Self, clock: Clock) -> DelayTimes {
        let mut counts = Vec::with_capacity(self.used + other.used + 2);
        for tracker in [self, other] {
            counts.extend(tracker.slots.iter().filter(|&&(_, times)| times > 0));
            if tracker.times > 0 {
                counts.push((tracker.latest, tracker.times));
            }
        }
        DelayTimes::of(counts, clock)
    }

    /// Counts a number of packets with the same delay.
    pub(crate) fn count_equal(&mut self, delay: Span, packets: u64) {
        if packets > 0 {
            self.add(delay, packets);
        }
    }
}

/// Adds packets to the hash table's slot for a delay. Returns whether the slot was free.
#[inline]
fn put(slots: &mut [(Span, u64)], delay: Span, times: u64) -> bool {
    let last = slots.len() - 1;
    // 2^64 divided by the golden ratio: the high half of the product depends on all relevant bits of the delay.
    let mut place = (delay.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize;
    loop {
        let slot = &mut slots[place & last];
        let is_free = slot.1 == 0;
        if is_free || slot.0 == delay {
            *slot = (delay, slot.1 + times);
            return is_free;
        }
        place += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CLOCK: Clock = Clock::exact(1000);

    proptest! {
        #[test]
        fn packet_delay_percentiles_and_means_equal_values_computed_from_the_list_of_all_delays(
            delays in prop::collection::vec(0_u64..40, 0..200),
            // Many different delays make the table grow.
            stretched in prop::collection::vec(0_u64..2000, 0..2000),
            takes_stretched in any::<bool>(),
            share in 1_u16..=1000,
        ) {
            let delays = if takes_stretched { stretched } else { delays };
            let mut tracker = DelayTracker::default();
            for &delay in &delays {
                tracker.count(Span(delay));
            }
            let times = tracker.times(CLOCK);
            let halves = delays.split_at(delays.len() / 3);
            let halves = [halves.0, halves.1].map(|half| {
                let mut tracker = DelayTracker::default();
                for &delay in half {
                    tracker.count(Span(delay));
                }
                tracker.times(CLOCK)
            });
            prop_assert_eq!(&DelayTimes::merged(halves.iter(), CLOCK), &times);
            let mut sorted = delays.clone();
            sorted.sort_unstable();
            let rank = (delays.len() * usize::from(share)).div_ceil(1000);
            let expected = rank.checked_sub(1).map(|place| CLOCK.seconds(Time(sorted[place])) * 1e3);
            prop_assert_eq!(times.percentile_ms(share), expected);
            let mean = delays.iter().sum::<u64>() as f64 / delays.len() as f64;
            prop_assert_eq!(times.mean_ms().is_some(), !delays.is_empty());
            prop_assert!(times.mean_ms().is_none_or(|exact| (exact - mean).abs() <= 1e-12 * mean));
            prop_assert_eq!(times.packets(), delays.len() as u64);
        }
    }
}
