//! A contended port: trains of cells arrive on several links, and one cell leaves per cell time.
//!
//! The cells of a frame that left together arrive as an arithmetic sequence, a [`Train`]; the port takes single cells
//! from its trains in the order of their arrival, ties as the scenario says, and offers them to its
//! [`BatchingPort`], which asks the same admission as the reference engine's port. In a first-in first-out queue that
//! loses nothing it has admitted, a cell's departure is known as it is admitted: it starts when everything before it
//! has been sent. So the port is worked on in batches, some time after the instants in question, and never later than
//! the earliest effect these could have anywhere else.

mod in_step;
mod runs;
mod stretch;
mod taking_turns;

use super::batching_port::BatchingPort;
use super::output::{Output, Timing};
use super::partial_frames::PartialFrames;
use super::port_plan::TrainPlan;
use super::train_ingress::{Input, TrainIngress, number};
use crate::cell::{Cell, Run};
use crate::index::Label;
use crate::tie::TieBreaker;
use crate::units::{Span, Time};
use stretch::Part;

/// A contended port.
pub(super) struct TrainPort {
    pub(super) output: Output,
    ties: TieBreaker,
    /// The trains on its input links, which it borrows from [`super::links::Links`] while it is at work.
    pub(super) ingress: Box<TrainIngress>,
    /// Numbers of the links at the node, which decide ties.
    at_node: Vec<u32>,
    /// A list that is empty between calls, as are `in_step`, `stretch`, `touched` and `tied`: its room is kept.
    together: Vec<(u32, Cell)>,
    in_step: Vec<(u32, Cell)>,
    pub(super) plan: TrainPlan,
    stretch: Vec<Part>,
    /// By label: cells of a frame under way whose departure is known and not yet reported, because it has no effect.
    gathered: PartialFrames,
    /// The interleaved cells, and their inputs.
    interleaved: Vec<Cell>,
    touched: Vec<u32>,
    /// Inputs that tie, or their ranks among those in step.
    tied: Vec<u32>,
    /// By rank of an input among those in step: its cells that found room, for as long as these are worked on.
    entered: Vec<u32>,
    /// The time in which all inputs together bring a million cells if they are as fast as this port.
    most_in_one_go: Span,
}

/// A port handles this many cells in some ten milliseconds. The number is small in tests, so that every comparison of
/// engines also checks that it has no effect.
const CELLS_IN_ONE_GO: u64 = if cfg!(test) { 1 << 10 } else { 1 << 20 };

/// With more active inputs than this, the first arrival is taken instead of the first last cell.
const FEW: usize = 8;

impl TrainPort {
    /// Creates a port that `vcs` VCs cross. `at_node` has the numbers of its inputs among those of the node, in order.
    pub(super) fn new(
        port: BatchingPort,
        ties: TieBreaker,
        vcs: usize,
        at_node: Vec<u32>,
        timing: Timing,
        plan: TrainPlan,
    ) -> Self {
        let output = Output::new(port, timing);
        Self {
            plan,
            stretch: Vec::new(),
            interleaved: Vec::new(),
            touched: Vec::new(),
            tied: Vec::new(),
            entered: Vec::new(),
            output,
            ties,
            ingress: Box::default(),
            most_in_one_go: Span(timing.cell_time.0.saturating_mul(CELLS_IN_ONE_GO.div_ceil(1 + at_node.len() as u64))),
            at_node,
            together: Vec::new(),
            in_step: Vec::new(),
            gathered: PartialFrames::new(vcs),
        }
    }

    /// Returns the first arrival that matters elsewhere among the cells in flight, or an earlier instant.
    #[inline]
    pub(super) fn next_to_matter(&self) -> Option<Time> {
        let TrainIngress { next, inputs, .. } = &*self.ingress;
        if self.output.timing.every_cell_matters || next.len() > FEW {
            return (next.len() > 0).then(|| next.first().time());
        }
        next.iter().map(|turn| inputs[turn.input() as usize].train.last()).min()
    }

    /// Returns the end of the next batch, given that everything before `since` is settled: `until`, or earlier if the
    /// batch could take too long for an interrupt.
    #[inline]
    pub(super) fn reach(&self, since: Time, until: Time) -> Time {
        let from = self.output.first_of(self.ingress.next.first().time()).max(since);
        if from >= until || until - from <= self.most_in_one_go { until } else { from + self.most_in_one_go }
    }

    /// Settles everything before `until`. `depart` receives the cells whose departure became known: the start of the
    /// first, and the period.
    #[inline]
    pub(super) fn work(&mut self, until: Time, mut depart: impl FnMut(Run, Time, Span)) {
        loop {
            let first = self.ingress.next.first();
            let (now, input) = (first.time(), first.input());
            if now >= until {
                break;
            }
            let other = self.ingress.next.at(1).time().min(until);
            let overlap =
                self.plan.any_order && other < until && other <= self.ingress.inputs[input as usize].train.last();
            if overlap && self.admit_stretch(now, until, &mut depart) {
                continue;
            }
            if self.plan.interleaves
                && self.ingress.next.len() > 1
                && self.interleaving_pays()
                && self.takes_turns(until)
                && self.interleave(until, &mut depart)
            {
                continue;
            }
            if other == now {
                self.tie(now, until, &mut depart);
            } else {
                let (run, period) = self.ingress.take_first(input, other);
                self.arrive_in_step(now, period, run, &mut depart);
            }
        }
        self.output.settle(until, &mut depart);
    }

    #[inline]
    fn arrive(&mut self, now: Time, cell: Cell, depart: &mut impl FnMut(Run, Time, Span)) {
        if let Some(start) = self.output.offer(now, cell, depart) {
            self.depart_one(cell, start, depart);
        }
    }

    /// Reports an admitted cell's start. If only whole frames matter, it does so if the cell ends a frame, is an RM
    /// cell or may be too late for the end of the run; other cells are gathered.
    #[inline]
    fn depart_one(&mut self, cell: Cell, start: Time, depart: &mut impl FnMut(Run, Time, Span)) {
        let run = Run { last: cell, cells: 1 };
        let matters = cell.last_cell() || cell.is_rm() || start > self.output.timing.latest_start;
        if matters || self.output.timing.every_cell_matters {
            self.report_gathered(cell.label(), depart);
            self.hand_on(run, start, self.output.timing.cell_time, depart);
            return;
        }
        self.gather(run, depart);
    }

    /// Hands on cells whose departure is known: the first starts at `first_start`, the others a `period` apart.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a train; its call is that of what it hands the cells to")]
    fn hand_on(&mut self, run: Run, first_start: Time, period: Span, depart: &mut impl FnMut(Run, Time, Span)) {
        if first_start + period * u64::from(run.cells - 1) > self.output.timing.horizon {
            self.output.leave_waiting(run, first_start, period);
        }
        depart(run, first_start, period);
    }

    /// Collects cells of a frame under way whose start has no effect.
    #[inline]
    fn gather(&mut self, run: Run, depart: &mut impl FnMut(Run, Time, Span)) {
        if let Some(before) = self.gathered.add(run) {
            depart(before, Time::default(), Span(0));
        }
    }

    /// Reports the collected cells of a VC, whose starts have no effect.
    #[inline]
    fn report_gathered(&mut self, label: Label, depart: &mut impl FnMut(Run, Time, Span)) {
        if let Some(gathered) = self.gathered.take(label) {
            depart(gathered, Time::default(), Span(0));
        }
    }

    /// Reports all gathered cells, at the end of the run.
    pub(super) fn report_all_gathered(&mut self, mut depart: impl FnMut(Run, Time, Span)) {
        for label in self.gathered.labels() {
            self.report_gathered(label, &mut depart);
        }
    }
}

#[cfg(test)]
mod tests;
