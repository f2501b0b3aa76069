//! Cells that are only counted: a first-in first-out port at which nothing depends on which cells wait.
//!
//! The caller knows when each cell starts, so the port needs no queue. It counts the cells that would start after the
//! horizon (`Output::leave_waiting`).

mod interleaving;

use crate::cell::Run;
use crate::coverage::reached;
use crate::engine::fast::egress::Depart;
use crate::engine::fast::output::{Discipline, Output};
use crate::engine::fast::timing::Effects;
use crate::engine::fast::train::{InputArrival, Train, number};
use crate::engine::fast::train_port::{TrainDiscipline, TrainPort};
use crate::engine::fast::waiting_cells::{Departures, Kept, WaitingCells};
use crate::port::admission::Admission;
use crate::queue_range::QueueRange;
use crate::scheduler::waiting::{Counts, ReportGranularity};
use crate::units::{Span, Time};

/// The number of waiting cells, which the port keeps itself. The lists are empty between calls. They are fields only so
/// that their memory is used again.
#[derive(Default)]
pub(in crate::engine::fast) struct Counted {
    /// Inputs in step, each with the number of its cells that were admitted in rounds with losses.
    in_step: Vec<(u32, u32)>,
    /// Inputs with interleaved cells.
    touched: Vec<u32>,
    /// Inputs with simultaneous cells, or their positions among the inputs in step.
    tied: Vec<u32>,
}

impl WaitingCells for Counted {
    const KEPT: Kept = Kept::Number;

    #[inline(always)]
    fn departures(&self) -> Departures {
        Departures::AtAdmission
    }

    #[inline(always)]
    fn put(&mut self, _: Run, _: &mut Admission) {}

    #[inline(always)]
    fn take(&mut self, cells: u32, _: &mut Counts, _: ReportGranularity, _: impl FnMut(Run, u32)) {
        debug_assert_eq!(cells, 0, "departures are counted at once");
    }

    fn stored(&self) -> u32 {
        0
    }
}

impl Discipline for Counted {
    const NAME: &'static str = "Counted";
}

impl TrainDiscipline for Counted {
    #[inline]
    fn admit_run(port: &mut TrainPort<Self>, now: Time, period: Span, run: Run, depart: &mut impl Depart) -> bool {
        port.admit_in_step(now, period, run, depart)
    }

    #[inline]
    fn admit_overlap(port: &mut TrainPort<Self>, _: Time, until: Time, depart: &mut impl Depart) -> bool {
        port.ignores_single_cells()
            && port.interleaving_pays()
            && port.is_interleaved(until)
            && port.interleave(until, depart)
    }

    /// Each cell starts when it arrives, so at most one cell waits.
    #[inline(always)]
    fn admit_alone(port: &mut TrainPort<Self>, train: Train, depart: &mut impl Depart) -> bool {
        let (now, run) = (train.next, train.run());
        let label = run.last.label();
        port.output.catch_up(now);
        let Output { buffer, next_start, timing, .. } = &mut port.output;
        let may_enter = buffer.capacity > 0
            && buffer.admission.asked_from() > 0
            && (buffer.admission.starts_frame(label) || buffer.admission.is_passing(label));
        let is_idle = buffer.occupancy == 0 && *next_start <= now && timing.cell_time <= train.period;
        if !may_enter || !is_idle {
            return false;
        }
        if buffer.admission.take_start(label) {
            buffer.admission.pass_frame(label);
        }
        buffer.now = now;
        buffer.admit(run, QueueRange { least: 0, largest: 1 }, run.cells - 1);
        *next_start = train.last();
        port.hand_on(run, now, train.period, depart);
        true
    }

    /// If single cells have no effect, three more conditions limit the number of rounds. First, the policy decides about
    /// no frame. Second, all cells are admitted, or lost one by one for lack of room. Third, either all of them are in
    /// time for the end of the run or all are too late.
    fn rounds(port: &TrainPort<Self>, now: Time, tied: usize, period: Span, until: Time) -> u32 {
        if !port.ignores_single_cells() {
            return port.rounds_in_step(now, tied, period, until, |_| true);
        }
        let (buffer, timing) = (&port.output.buffer, &port.output.timing);
        let rounds = port.rounds_in_step(now, tied, period, until, |label| buffer.admits_unasked(label));
        if rounds == 0 {
            return 0;
        }
        let cells = number(tied);
        let room = (buffer.capacity - buffer.occupancy) / cells;
        let room = if room == 0 && buffer.admission.loses_single_cells() { u32::MAX } else { room };
        // A round delays the end of the queue by at most the larger of two times: the transmission time of its cells,
        // and its own length.
        let a_round = (timing.cell_time.0 * u64::from(cells)).max(period.0);
        let start = port.output.tail_start().max(now);
        let before_the_end =
            if start > timing.end { u64::MAX } else { timing.latest_start.0.saturating_sub(start.0) / a_round };
        rounds.min(room).min(u32::try_from(before_the_end).unwrap_or(u32::MAX))
    }

    #[inline]
    fn admit_rounds(port: &mut TrainPort<Self>, now: Time, tied: usize, rounds: u32, depart: &mut impl Depart) -> bool {
        let may_count = port.ignores_single_cells();
        if may_count {
            port.count_rounds(now, tied, rounds, depart);
        }
        may_count
    }
}

impl TrainPort<Counted> {
    /// Returns whether only the departure of the last cell of a frame has an effect.
    #[inline(always)]
    fn ignores_single_cells(&self) -> bool {
        self.output.timing.effects == Effects::FrameEnds
    }

    /// Takes `rounds` rounds of the first `tied` inputs, at a port that only counts cells. Cells that find no room are
    /// lost one by one. If all cells are admitted, their order affects only the random draws.
    fn count_rounds(&mut self, now: Time, tied: usize, rounds: u32, depart: &mut impl Depart) {
        let mut in_step = std::mem::take(&mut self.output.buffer.queue.in_step);
        in_step.extend(self.ingress.next.iter().take(tied).map(|arrival| (arrival.input(), 0)));
        let mut ranks = std::mem::take(&mut self.output.buffer.queue.tied);
        let period = self.ingress.inputs[in_step[0].0 as usize].train.period;
        let (mut at, mut whole_rounds) = (now, 0);
        for _ in 0..rounds {
            self.output.catch_up(at);
            self.output.start_anew_if_idle(at, depart);
            let before = self.output.buffer.occupancy;
            let enter = number(tied).min(self.output.buffer.capacity - before);
            if enter == number(tied) {
                self.ties.pass_over(enter);
                whole_rounds += 1;
            } else {
                reached!(CellsLostInRounds);
                ranks.extend(0..number(tied));
                self.ties.order(at, &mut ranks, |&rank| self.at_node[in_step[rank as usize].0 as usize]);
                for rank in ranks.drain(..).take(enter as usize) {
                    in_step[rank as usize].1 += 1;
                }
            }
            let range = QueueRange { least: before, largest: before + enter };
            self.output.buffer.admit_in_any_order(enter, range, 0);
            at += period;
        }
        self.output.buffer.queue.tied = ranks;
        // None of the cells completes a frame, so all cells can be reported with the start of the last.
        let last_start = Time(self.output.tail_start().0.saturating_sub(self.output.timing.cell_time.0));
        for (input, entered) in in_step.drain(..) {
            let train = &mut self.ingress.inputs[input as usize].train;
            let all = train.take(rounds);
            self.ingress.next.put_back_first(InputArrival::new(at, input));
            self.output.note(all, now, period);
            // If the cell starts a frame, marks the start as handled without a decision of the policy.
            self.output.buffer.fate(all.last);
            let run = Run { cells: whole_rounds + entered, ..all };
            if run.cells < rounds {
                self.output.buffer.admission.lose(Run { cells: rounds - run.cells, ..all });
            }
            if run.cells > 0 {
                self.output.buffer.count_interleaved(run);
                self.hand_on(run, last_start, Span(0), depart);
            }
        }
        self.output.buffer.queue.in_step = in_step;
    }
}
