//! Processes several trains at once. Cells of trains in step tie again after every period, and are taken in rounds.

use super::port::{TrainDiscipline, TrainPort};
use crate::cell::Run;
use crate::coverage::reached;
use crate::engine::fast::egress::Depart;
use crate::index::Label;
use crate::units::{Span, Time};

impl<D: TrainDiscipline> TrainPort<D> {
    /// Processes the cells that arrive at `now`, and the next rounds of the same inputs, until another cell arrives or
    /// `until` is reached.
    pub(super) fn tie(&mut self, now: Time, until: Time, depart: &mut impl Depart) {
        // Departures make room, which changes the number of possible rounds.
        self.output.catch_up(now);
        let (tied, other) = self.ingress.next.tied();
        self.delimit(tied);
        let period = self.ingress.inputs[self.ingress.next.first().input() as usize].train.period;
        reached!(TrainSplitByTie if self.ingress.inputs[self.ingress.next.first().input() as usize].train.cells > 1);
        let rounds = D::rounds(self, now, tied, period, other.min(until));
        if rounds > 1 && D::admit_rounds(self, now, tied, rounds, depart) {
            return;
        }
        let rounds = rounds.max(1);
        let mut in_step = std::mem::take(&mut self.in_step);
        for _ in 0..tied {
            let input = self.ingress.next.first().input();
            let (run, _) = self.ingress.take_first(input, now + period * u64::from(rounds - 1) + Span(1));
            in_step.push((input, run.last));
        }
        let mut together = std::mem::take(&mut self.together);
        let mut at = now;
        for _ in 0..rounds {
            together.extend_from_slice(&in_step);
            self.ties.order(at, &mut together, |&(input, _)| self.at_node[input as usize]);
            self.output.catch_up(at);
            for &(_, cell) in &together {
                self.output.note(Run { last: cell, cells: 1 }, at, Span(0));
                self.arrive(at, cell, depart);
            }
            together.clear();
            at += period;
        }
        self.together = together;
        in_step.clear();
        self.in_step = in_step;
    }

    /// Returns how many times the cells of the first `tied` inputs arrive together, from `now` on and before `until`,
    /// without the last cell of any train. Returns 0 if not all VCs satisfy `may`.
    #[inline(always)]
    pub(in crate::engine::fast) fn rounds_in_step(
        &self,
        now: Time,
        tied: usize,
        period: Span,
        until: Time,
        may: impl Fn(Label) -> bool,
    ) -> u32 {
        let mut rounds = u32::MAX;
        for arrival in self.ingress.next.iter().take(tied) {
            let train = &self.ingress.inputs[arrival.input() as usize].train;
            if train.cells == 1 || train.period != period || !may(train.cell.label()) {
                return 0;
            }
            rounds = rounds.min(train.cells - 1);
        }
        rounds.min(u32::try_from((until - now).0.div_ceil(period.0)).unwrap_or(u32::MAX))
    }
}
