//! Coarse timers: counters that a host's clock counts down, one tick at a time.
//!
//! Source: 4.3BSD's slow (retransmission) and fast (delayed acknowledgement) timeouts; `MECHANISMS` 3.2. A timer set to n
//! ticks runs out after n - 1 to n ticks of real time, because the first tick may come at once.

use crate::units::{Span, Time};

/// A countdown in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Countdown {
    remaining: u32,
}

impl Countdown {
    /// Starts or restarts it.
    pub fn start(&mut self, ticks: u32) {
        self.remaining = ticks;
    }

    /// Stops it.
    pub fn stop(&mut self) {
        self.remaining = 0;
    }

    /// Whether it runs.
    pub fn is_running(self) -> bool {
        self.remaining > 0
    }

    /// One tick; whether it ran out just now.
    pub fn on_tick(&mut self) -> bool {
        if self.remaining == 0 {
            return false;
        }
        self.remaining -= 1;
        self.remaining == 0
    }
}

/// When a host's clock ticks next: at `phase`, then every `period`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    next: Time,
    period: Span,
}

impl Ticks {
    /// Ticks every `period`, the first at `phase`, or at one period where the phase is zero: the start is no tick.
    pub fn new(period: Span, phase: Span) -> Self {
        assert!(period.0 > 0, "ticks have a positive period");
        let first = if phase.0 == 0 { period } else { phase };
        Self { next: Time::default() + first, period }
    }

    /// The next tick.
    pub fn next(self) -> Time {
        self.next
    }

    /// Goes on to the tick after the next.
    pub fn advance(&mut self) {
        self.next += self.period;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_countdown_of_n_runs_out_at_the_nth_tick() {
        let mut timer = Countdown::default();
        assert!(!timer.on_tick(), "a stopped timer never runs out");
        timer.start(3);
        assert_eq!([(); 4].map(|()| timer.on_tick()), [false, false, true, false]);
        timer.start(2);
        timer.stop();
        assert!(!timer.on_tick());
    }

    #[test]
    fn the_start_of_the_run_is_no_tick() {
        let mut ticks = Ticks::new(Span(10), Span(0));
        assert_eq!(ticks.next(), Time(10));
        ticks.advance();
        assert_eq!(ticks.next(), Time(20));
        assert_eq!(Ticks::new(Span(10), Span(4)).next(), Time(4));
    }
}
