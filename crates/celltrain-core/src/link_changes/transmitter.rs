//! The transmitter of a port whose link has a changing rate: when a waiting cell may start, and how long it takes.

use super::opportunities::{Opportunities, Trace};
use crate::cell::Cell;
use crate::units::{Clock, Span, Time};

/// The transmitter of a port.
#[derive(Clone, Debug)]
pub(crate) enum Transmitter {
    /// The link has a rate at any time.
    Rates(Rates),
    /// The link has delivery opportunities.
    Opportunities(Opportunities),
}

/// A list of rates.
#[derive(Clone, Debug)]
pub(crate) struct Rates {
    /// The transmission time of a cell, with the time from which it applies; `None` with a rate of 0.
    steps: Vec<(Time, Option<Span>)>,
    /// Position of the current rate.
    current: usize,
    /// True if all cells of a packet have the rate of its first cell.
    keeps_packets: bool,
    /// Transmission time of the other cells of the packet that is being sent.
    of_packet: Option<Span>,
}

/// A time that no run reaches.
const AFTER_ALL_RUNS: Time = Time(1 << 62);

impl Transmitter {
    /// Creates the transmitter of a link with these cell times and the times from which they apply; `None` stands for a
    /// rate of 0. With `keeps_packets`, all cells of a packet have the rate of its first cell.
    pub(crate) fn of_rates(steps: Vec<(Time, Option<Span>)>, keeps_packets: bool) -> Self {
        Self::Rates(Rates { steps, current: 0, keeps_packets, of_packet: None })
    }

    /// Creates the transmitter of a link with delivery opportunities, on which cells take `cell_time`.
    pub(crate) fn of_trace(trace: &Trace, clock: Clock, cell_time: Span) -> Self {
        Self::Opportunities(Opportunities::new(trace, clock, cell_time))
    }

    /// Returns the earliest time from `now` on at which the port, which is free, may start a cell. Times must not
    /// decrease. The answer is the same if the port has no cell to send yet.
    pub(crate) fn ready(&mut self, now: Time) -> Time {
        match self {
            Self::Rates(rates) => rates.ready(now),
            Self::Opportunities(opportunities) => opportunities.ready(now),
        }
    }

    /// Starts a cell at `now`, at which the port is ready. Returns the time that the cell takes.
    pub(crate) fn send(&mut self, cell: Cell, now: Time) -> Span {
        match self {
            Self::Rates(rates) => rates.send(cell),
            Self::Opportunities(opportunities) => opportunities.send(now),
        }
    }
}

impl Rates {
    fn ready(&mut self, now: Time) -> Time {
        if self.of_packet.is_some() {
            return now;
        }
        while self.steps.get(self.current + 1).is_some_and(|&(from, _)| from <= now) {
            self.current += 1;
        }
        if self.steps[self.current].1.is_some() {
            return now;
        }
        let later = self.steps[self.current..].iter().find(|(_, cell_time)| cell_time.is_some());
        later.map_or(AFTER_ALL_RUNS, |&(from, _)| from)
    }

    fn send(&mut self, cell: Cell) -> Span {
        let time = self.of_packet.or(self.steps[self.current].1).expect("the port is ready");
        self.of_packet = (self.keeps_packets && !cell.last_cell()).then_some(time);
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::tests::cell;

    fn rates(steps: &[(u64, u64)], keeps_packets: bool) -> Transmitter {
        let steps = steps.iter().map(|&(from, time)| (Time(from), (time > 0).then_some(Span(time)))).collect();
        Transmitter::of_rates(steps, keeps_packets)
    }

    /// Returns the starts of the cells of packets of three cells that all wait at 0, and the end of the last one.
    fn starts(mut rates: Transmitter, cells: u32) -> Vec<u64> {
        let mut now = Time(0);
        let mut times = Vec::new();
        for number in 0..cells {
            now = rates.ready(now);
            assert_eq!(rates.ready(now), now, "the port asks again when it is ready");
            times.push(now.0);
            now += rates.send(cell(0, number / 3, number % 3 == 2), now);
        }
        times.push(now.0);
        times
    }

    #[test]
    fn a_cell_keeps_its_initial_rate_and_an_outage_ends_with_the_next_rate() {
        // A cell takes 10 until 25, 4 until 36, none until 50, and then 3.
        let steps = [(0, 10), (25, 4), (36, 0), (50, 3)];
        assert_eq!(starts(rates(&steps, false), 7), [0, 10, 20, 30, 34, 50, 53, 56]);
        assert_eq!(starts(rates(&steps, true), 7), [0, 10, 20, 30, 34, 38, 50, 53], "packets keep their rate");
        assert_eq!(rates(&[(0, 0)], false).ready(Time(7)), AFTER_ALL_RUNS);
    }

    #[test]
    fn a_rate_applies_to_a_cell_that_starts_at_the_instant_of_the_change() {
        assert_eq!(starts(rates(&[(0, 10), (20, 5)], false), 4), [0, 10, 20, 25, 30]);
    }
}
