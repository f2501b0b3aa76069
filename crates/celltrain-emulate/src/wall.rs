//! The wall clock, in the simulation's units.

use std::time::{Duration, Instant};

use celltrain_core::units::{Clock, Time};

const NS_PER_SECOND: u128 = 1_000_000_000;

/// A wall clock that starts at the same time as a simulation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WallClock {
    start: Instant,
    units_per_second: u128,
}

impl WallClock {
    pub(crate) fn start(clock: Clock) -> Self {
        Self { start: Instant::now(), units_per_second: u128::from(clock.units_per_second) }
    }

    /// Returns the current time of the simulation.
    pub(crate) fn now(&self) -> Time {
        self.time(self.start.elapsed())
    }

    /// Returns how long ago `time` was; zero if it is in the future.
    pub(crate) fn since(&self, time: Time) -> Duration {
        self.start.elapsed().saturating_sub(self.duration(time))
    }

    /// Returns how far in the future `time` is; zero if it is in the past.
    pub(crate) fn until(&self, time: Time) -> Duration {
        self.duration(time).saturating_sub(self.start.elapsed())
    }

    fn time(&self, elapsed: Duration) -> Time {
        Time(u64::try_from(elapsed.as_nanos() * self.units_per_second / NS_PER_SECOND).unwrap_or(u64::MAX))
    }

    /// Round up, so that the clock has reached `time` when this duration is over.
    pub(crate) fn duration(&self, time: Time) -> Duration {
        let nanoseconds = (u128::from(time.0) * NS_PER_SECOND).div_ceil(self.units_per_second);
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_emulation_clock_reaches_a_simulated_time_exactly_when_that_much_real_time_has_elapsed() {
        // A microsecond has 97.2 units, so a nanosecond is shorter than a unit.
        for units_per_second in [97_200_000, 1_000_000_000_000] {
            let clock = WallClock::start(Clock::exact(units_per_second));
            for time in [0, 1, 96, 97, 98, 12_345_678, u64::from(u32::MAX)] {
                let duration = clock.duration(Time(time));
                assert!(clock.time(duration) >= Time(time));
                let before = duration.saturating_sub(Duration::from_nanos(1));
                assert!(time == 0 || clock.time(before) < Time(time), "{time}");
            }
        }
    }
}
