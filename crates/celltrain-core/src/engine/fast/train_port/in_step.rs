//! Trains in step: cells that tie do so again a period later, and are taken in rounds.

use super::TrainPort;
use crate::cell::Run;
use crate::engine::fast::turns::Turn;
use crate::units::{Span, Time};

impl TrainPort {
    /// Cells that arrive in the same instant, `now`, and at once those that arrive together with them again and again
    /// as long as nothing else comes before `until`.
    pub(super) fn tie(&mut self, now: Time, until: Time, depart: &mut impl FnMut(Run, Time, Span)) {
        if self.output.defers_order {
            // The queue holds cells that were put in early and do not wait yet.
            self.output.catch_up(now);
        }
        let (tied, other) = self.next.tied();
        let other = other.min(until);
        let rounds = self.rounds_in_step(now, tied, other);
        if rounds > 1 {
            self.keep_step(now, tied, rounds, depart);
            return;
        }
        let mut together = std::mem::take(&mut self.together);
        for _ in 0..tied {
            let input = self.next.first().input();
            let (run, _) = self.take_first(input, now + Span(1));
            together.push((input, run.last));
        }
        self.ties.order(&mut together, |&(input, _)| self.at_node[input as usize]);
        self.output.catch_up(now);
        for (_, cell) in together.drain(..) {
            self.output.note(Run { last: cell, cells: 1 }, now, Span(0));
            self.arrive(now, cell, depart);
        }
        self.together = together;
    }

    /// How often the cells of the first `tied` inputs arrive together, from `now` on and before `until`, all of them
    /// admitted, none of them the first or the last of a frame and all in time for the end of the run; 0 where each
    /// departure is reported as its cell arrives.
    pub(super) fn rounds_in_step(&self, now: Time, tied: usize, until: Time) -> u32 {
        if self.output.timing.every_cell_matters && !self.output.defers_order {
            return 0;
        }
        let period = self.inputs[self.next.first().input() as usize].train.period;
        let (mut rounds, mut cells) = (u32::MAX, 0);
        for turn in self.next.iter().take(tied) {
            let train = &self.inputs[turn.input() as usize].train;
            if train.cells == 1 || train.period != period || !self.output.port.passes(train.cell.label()) {
                return 0;
            }
            rounds = rounds.min(train.cells - 1);
            cells += 1;
        }
        let whole = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let room = (self.output.port.capacity() - self.output.port.occupancy()) / cells;
        // A round delays the end of the queue by at most its cells' transmission, or its own length.
        let a_round = (self.output.timing.cell_time.0 * u64::from(cells)).max(period.0);
        let before_the_end =
            self.output.timing.latest_start.0.saturating_sub(self.output.tail_start().max(now).0) / a_round;
        rounds.min(room).min(whole((until - now).0.div_ceil(period.0))).min(whole(before_the_end))
    }

    /// So many rounds of the `tied` inputs that come first.
    pub(super) fn keep_step(&mut self, now: Time, tied: usize, rounds: u32, depart: &mut impl FnMut(Run, Time, Span)) {
        let mut in_step = std::mem::take(&mut self.in_step);
        let mut together = std::mem::take(&mut self.together);
        let cell = |turn: Turn| (turn.input(), self.inputs[turn.input() as usize].train.cell);
        in_step.extend(self.next.iter().take(tied).map(cell));
        let period = self.inputs[in_step[0].0 as usize].train.period;
        let mut at = now;
        for _ in 0..rounds {
            together.extend_from_slice(&in_step);
            self.ties.order(&mut together, |&(input, _)| self.at_node[input as usize]);
            self.output.catch_up(at);
            self.output.start_anew_if_idle(at, depart);
            if self.output.defers_order
                && together.iter().any(|&(_, cell)| self.output.port.must_report_before(cell.label()))
            {
                self.output.report_departures(depart);
            }
            self.output.port.admit_round(together.iter().map(|&(_, cell)| cell));
            together.clear();
            at += period;
        }
        // None of them completes a frame, so it is enough to report them all with the start of the last.
        let last_start = self.output.tail_start().0.saturating_sub(self.output.timing.cell_time.0);
        for (input, cell) in in_step.drain(..) {
            let train = &mut self.inputs[input as usize].train;
            train.cells -= rounds;
            train.next = at;
            self.next.put_back_first(Turn::new(at, input));
            self.output.note(Run { last: cell, cells: rounds }, now, period);
            if !self.output.defers_order && !self.output.port.holds(cell.label()) {
                self.report_gathered(cell.label(), depart);
                depart(Run { last: cell, cells: rounds }, Time(last_start), Span(0));
            }
        }
        self.in_step = in_step;
        self.together = together;
    }
}
