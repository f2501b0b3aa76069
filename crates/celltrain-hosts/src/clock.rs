//! Time as seen by a transport stack.

use std::time::Duration;

use celltrain_core::units::{Clock, Time};

const NS_PER_SECOND: u128 = 1_000_000_000;

/// Converts between simulation time and a stack's time, which is rounded down to the stack's unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StackClock {
    units_per_second: u128,
    unit_ns: u128,
}

impl StackClock {
    pub(crate) fn new(clock: Clock, unit: Duration) -> Self {
        Self { units_per_second: u128::from(clock.units_per_second), unit_ns: unit.as_nanos().max(1) }
    }

    /// Returns the time that the stack sees at an instant.
    pub(crate) fn told(self, now: Time) -> Duration {
        let nanoseconds = self.units(now) * self.unit_ns;
        Duration::from_nanos(u64::try_from(nanoseconds).expect("a run is shorter than 584 years"))
    }

    /// Returns the first time after `now` at which the stack's clock has reached `timeout`.
    pub(crate) fn first(self, timeout: Duration, now: Time) -> Time {
        let timeout = timeout.as_nanos().min(u128::from(u64::MAX)).div_ceil(self.unit_ns);
        let units = timeout.max(self.units(now) + 1);
        let instant = (units * self.unit_ns * self.units_per_second).div_ceil(NS_PER_SECOND);
        u64::try_from(instant).map_or(Time::NEVER, Time)
    }

    fn units(self, now: Time) -> u128 {
        u128::from(now.0) * NS_PER_SECOND / (self.units_per_second * self.unit_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The clock of a link at 155.52 Mb/s: a microsecond has 97.2 units.
    const CLOCK: Clock = Clock::exact(97_200_000);

    #[test]
    fn the_time_passed_to_a_stack_is_rounded_down_to_its_time_unit() {
        let clock = StackClock::new(CLOCK, Duration::from_micros(1));
        assert_eq!([0, 97, 98, 194, 195].map(|time| clock.told(Time(time)).as_micros()), [0, 0, 1, 1, 2]);
        let clock = StackClock::new(CLOCK, Duration::from_nanos(1));
        assert_eq!([0, 1, 97].map(|time| clock.told(Time(time)).as_nanos()), [0, 10, 997]);
    }

    #[test]
    fn a_timeout_expires_as_soon_as_the_rounded_clock_of_the_stack_reaches_it() {
        for unit in [1, 1_000, 250_000] {
            let clock = StackClock::new(CLOCK, Duration::from_nanos(unit));
            for timeout in [0, 1, 999, 1_000, 123_456, 249_999, 250_000, 250_001] {
                for now in [0, 96, 97, 98, 12_000, 30_000] {
                    let (timeout, now) = (Duration::from_nanos(timeout), Time(now));
                    let first = clock.first(timeout, now);
                    assert!(clock.told(first) >= timeout && clock.told(first) > clock.told(now));
                    let before = clock.told(Time(first.0 - 1));
                    assert!(before < timeout || before == clock.told(now), "{unit} {timeout:?} {now:?}");
                }
            }
        }
    }

    #[test]
    fn a_timeout_of_a_protocol_stack_beyond_the_longest_simulated_time_never_expires() {
        let clock = StackClock::new(Clock::exact(1 << 40), Duration::from_nanos(1));
        assert_eq!(clock.first(Duration::MAX, Time(0)), Time::NEVER);
    }
}
