//! The distribution of the occupancy of a memory over time.
//!
//! Instead of a histogram, the tracker sums, for each number of cells, the time during which the memory held at least
//! that many cells. An arrival or departure changes one of these sums: the arrival of the n-th cell subtracts its time
//! from sum n, and the departure that leaves n - 1 cells adds its time. So every level is exact, at the cost of one
//! addition per change. The list grows with the largest occupancy, and takes about as much memory as the cells waiting
//! at that time.

use crate::units::{Span, Time};

/// Sums of a memory's arrival and departure times, by number of cells.
pub(super) struct OccupancyTracker {
    /// For each number of cells n: the sum of the times at which the occupancy fell below n, minus the sum of the times
    /// at which it reached n, modulo 2^64. The list has an entry for each number reached so far.
    sums: Vec<u64>,
}

impl Default for OccupancyTracker {
    /// Creates the tracker of an empty memory at time 0.
    fn default() -> Self {
        Self { sums: vec![0] }
    }
}

impl OccupancyTracker {
    /// Records that a cell enters. `used` is the number of cells, including the new cell.
    #[inline]
    pub(super) fn rise(&mut self, used: u32, now: Time) {
        match self.sums.get_mut(used as usize) {
            Some(sum) => *sum = sum.wrapping_sub(now.0),
            None => self.grow(now),
        }
    }

    /// Adds an entry for an occupancy when it is reached for the first time.
    #[cold]
    fn grow(&mut self, now: Time) {
        self.sums.push(0_u64.wrapping_sub(now.0));
    }

    /// Records that a cell leaves. `used` is the number of cells, still including that cell.
    #[inline]
    pub(super) fn fall(&mut self, used: u32, now: Time) {
        let sum = &mut self.sums[used as usize];
        *sum = sum.wrapping_add(now.0);
    }

    /// Returns the largest number of cells so far.
    pub(super) fn max_used(&self) -> u32 {
        u32::try_from(self.sums.len() - 1).expect("numbers of cells fit in 32 bits")
    }

    /// Returns the distribution up to `now`, when the memory holds `used` cells.
    pub(super) fn times(&self, used: u32, now: Time) -> OccupancyTimes {
        let (held, others) = self.sums.split_at(used as usize + 1);
        let held = held.iter().map(|sum| Span(sum.wrapping_add(now.0)));
        OccupancyTimes { at_least: held.chain(others.iter().map(|&sum| Span(sum))).collect() }
    }
}

/// Distribution of the occupancy of a memory over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OccupancyTimes {
    /// For each number of cells, the time during which the memory held at least that many. The first entry is the whole
    /// time.
    at_least: Vec<Span>,
}

impl OccupancyTimes {
    /// Returns, for each number of cells, the time during which the memory held at least that many. The first entry is
    /// the whole time.
    pub fn at_least(&self) -> &[Span] {
        &self.at_least
    }

    /// Returns the mean number of cells over time; `None` if no time is covered.
    pub fn mean(&self) -> Option<f64> {
        let (&Span(total), held) = self.at_least.split_first()?;
        let sum: u128 = held.iter().map(|&Span(time)| u128::from(time)).sum();
        (total > 0).then(|| sum as f64 / total as f64)
    }

    /// Returns the smallest occupancy that the memory did not exceed during at least `share` thousandths of the time;
    /// `None` if no time is covered.
    ///
    /// # Panics
    /// If the share is more than 1000.
    pub fn percentile(&self, share: u16) -> Option<u32> {
        let rest = 1000_u16.checked_sub(share).expect("a share in thousandths is at most 1,000");
        let (&Span(total), held) = self.at_least.split_first()?;
        let is_exceeded = |&Span(time): &Span| u128::from(time) * 1000 > u128::from(total) * u128::from(rest);
        let cells = held.partition_point(is_exceeded);
        (total > 0).then(|| u32::try_from(cells).expect("numbers of cells fit in 32 bits"))
    }

    /// Subtracts the times in `earlier`, a record that began at the same instant and ended earlier.
    pub(crate) fn subtract(&mut self, earlier: &Self) {
        for (Span(time), Span(earlier)) in self.at_least.iter_mut().zip(&earlier.at_least) {
            *time -= earlier;
        }
    }

    /// Takes over the times of another partition if that partition simulates the memory. In all other partitions the
    /// memory stays empty.
    pub(crate) fn add_partition(&mut self, other: &Self) {
        if other.at_least.len() > self.at_least.len() {
            self.clone_from(other);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the occupancy of a memory to which a cell is added, or from which one is removed, at each of these
    /// times.
    fn times(changes: &[(u64, bool)], end: u64) -> OccupancyTimes {
        let (mut tracker, mut used) = (OccupancyTracker::default(), 0);
        for &(now, rises) in changes {
            if rises {
                used += 1;
                tracker.rise(used, Time(now));
            } else {
                tracker.fall(used, Time(now));
                used -= 1;
            }
        }
        tracker.times(used, Time(end))
    }

    #[test]
    fn percentiles_and_the_mean_of_memory_occupancy_equal_values_calculated_by_hand() {
        // The memory has no cells until 10, one until 50, two until 90, three until 91, two until 92 and one until 100.
        // So it is empty during 10 % of the time, and has one cell during 48 %, two during 41 % and three during 1 %.
        let changes = [(10, true), (50, true), (90, true), (91, false), (92, false)];
        let found = times(&changes, 100);
        assert_eq!(found.at_least(), [100, 90, 42, 1].map(Span));
        assert_eq!(found.mean(), Some(1.33));
        let percentiles =
            [0, 100, 101, 500, 580, 581, 990, 991, 999, 1000].map(|share| found.percentile(share).unwrap());
        assert_eq!(percentiles, [0, 0, 1, 1, 1, 2, 2, 3, 3, 3]);
    }

    #[test]
    fn an_occupancy_that_lasts_no_time_does_not_affect_percentiles() {
        let found = times(&[(5, true), (5, true), (5, false)], 10);
        assert_eq!(found.at_least(), [10, 5, 0].map(Span));
        assert_eq!((found.percentile(500), found.percentile(1000)), (Some(0), Some(1)));
    }

    #[test]
    fn the_time_spent_at_each_occupancy_in_a_window_is_the_difference_of_two_snapshots() {
        let changes = [(10, true), (20, true), (30, false), (40, true), (45, true)];
        let mut window = times(&changes, 50);
        window.subtract(&times(&changes[..2], 25));
        // The memory has one cell from 30 to 40, three cells from 45 on, and two cells at all other times.
        assert_eq!(window.at_least(), [25, 25, 15, 5].map(Span));
        assert_eq!((window.percentile(400), window.percentile(401)), (Some(1), Some(2)));
    }

    #[test]
    fn merging_results_from_a_partition_without_shared_memory_leaves_occupancies_unchanged() {
        let (busy, idle) = (times(&[(5, true)], 10), times(&[], 10));
        for (mut own, other) in [(busy.clone(), &idle), (idle.clone(), &busy)] {
            own.add_partition(other);
            assert_eq!(own, busy);
        }
    }

    #[test]
    fn occupancy_over_an_interval_of_zero_length_has_no_mean_and_no_percentiles() {
        for nothing in [OccupancyTimes::default(), times(&[], 0)] {
            assert_eq!((nothing.mean(), nothing.percentile(500)), (None, None));
        }
    }

    proptest! {
        /// Random arrivals and departures, some at the same instant, give the same percentiles as a list of the number
        /// of cells in each unit of time.
        #[test]
        fn occupancy_percentiles_equal_order_statistics_of_the_occupancy_sampled_in_every_time_unit(
            steps in prop::collection::vec((0_u64..4, any::<bool>()), 0..60),
            (from, rest) in (0_usize..40, 1_u64..20),
            share in 1_u16..=1000,
        ) {
            let (mut now, mut used) = (0_u64, 0_u32);
            let (mut changes, mut units) = (Vec::new(), Vec::new());
            for (pause, rises) in steps {
                units.extend((0..pause).map(|_| used));
                now += pause;
                if rises || used > 0 {
                    used = if rises { used + 1 } else { used - 1 };
                    changes.push((now, rises));
                }
            }
            units.extend((0..rest).map(|_| used));
            let end = units.len() as u64;
            let from = from.min(units.len() - 1);
            let before = changes.partition_point(|&(at, _)| at <= from as u64);
            let mut window = times(&changes, end);
            window.subtract(&times(&changes[..before], from as u64));
            let mut measured = units.split_off(from);
            measured.sort_unstable();
            let rank = (measured.len() * usize::from(share)).div_ceil(1000);
            let sum: u32 = measured.iter().sum();
            prop_assert_eq!(window.percentile(share), Some(measured[rank - 1]));
            prop_assert_eq!(window.mean(), Some(f64::from(sum) / measured.len() as f64));
        }
    }
}
