//! Processes several trains at once. Cells of trains in step tie again after every period, and are taken in rounds. At
//! ports with a queue for each VC, overlapping trains are admitted one after another.

use super::port::{StretchTrain, TrainPort};
use crate::cell::Run;
use crate::coverage::reached;
use crate::engine::fast::egress::Depart;
use crate::engine::fast::output::Output;
use crate::engine::fast::train::{Input, InputArrival, Train, number};
use crate::index::Label;
use crate::port::FrameOutcome;
use crate::queue_range::QueueRange;
use crate::units::{Span, Time};

impl TrainPort {
    /// Processes the cells that arrive at `now`, and the next rounds of the same inputs, until another cell arrives or
    /// `until` is reached.
    pub(super) fn tie(&mut self, now: Time, until: Time, depart: &mut impl Depart) {
        // Departures make room, which changes the number of possible rounds.
        self.output.catch_up(now);
        let (tied, other) = self.ingress.next.tied();
        if self.plan.delimits {
            self.delimit(tied);
        }
        let period = self.ingress.inputs[self.ingress.next.first().input() as usize].train.period;
        reached!(TrainSplitByTie if self.ingress.inputs[self.ingress.next.first().input() as usize].train.cells > 1);
        let rounds = self.rounds_in_step(now, tied, period, other.min(until));
        if rounds > 1 && self.plan.interleaves {
            self.count_rounds(now, tied, rounds, depart);
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
    /// without the last cell of any train. At a port that only counts cells, two more conditions limit the number.
    /// First, all cells are admitted, or lost one by one for lack of room, without asking the policy. Second, either
    /// all of them are in time for the end of the run or all are too late.
    fn rounds_in_step(&self, now: Time, tied: usize, period: Span, until: Time) -> u32 {
        let Output { buffer, timing, .. } = &self.output;
        let (mut rounds, mut cells) = (u32::MAX, 0);
        for arrival in self.ingress.next.iter().take(tied) {
            let train = &self.ingress.inputs[arrival.input() as usize].train;
            let may_ask = self.plan.interleaves && !buffer.admits_unasked(train.cell.label());
            if train.cells == 1 || train.period != period || may_ask {
                return 0;
            }
            rounds = rounds.min(train.cells - 1);
            cells += 1;
        }
        let whole = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        rounds = rounds.min(whole((until - now).0.div_ceil(period.0)));
        if !self.plan.interleaves {
            return rounds;
        }
        let room = (buffer.capacity - buffer.occupancy) / cells;
        let room = if room == 0 && self.plan.loses_in_rounds { u32::MAX } else { room };
        // A round delays the end of the queue by at most the larger of two times: the transmission time of its cells,
        // and its own length.
        let a_round = (timing.cell_time.0 * u64::from(cells)).max(period.0);
        let start = self.output.tail_start().max(now);
        let before_the_end =
            if start > timing.end { u64::MAX } else { timing.latest_start.0.saturating_sub(start.0) / a_round };
        rounds.min(room).min(whole(before_the_end))
    }

    /// Takes `rounds` rounds of the first `tied` inputs, at a port that only counts cells. Cells that find no room are
    /// lost one by one. If all cells are admitted, their order affects only the random draws.
    fn count_rounds(&mut self, now: Time, tied: usize, rounds: u32, depart: &mut impl Depart) {
        let mut in_step = std::mem::take(&mut self.counted);
        in_step.extend(self.ingress.next.iter().take(tied).map(|arrival| (arrival.input(), 0)));
        let mut ranks = std::mem::take(&mut self.tied);
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
        self.tied = ranks;
        // None of the cells completes a frame, so all cells can be reported with the start of the last.
        let last_start = Time(self.output.tail_start().0.saturating_sub(self.output.timing.cell_time.0));
        for (input, entered) in in_step.drain(..) {
            let train = &mut self.ingress.inputs[input as usize].train;
            let all = train.take(rounds);
            self.ingress.next.put_back_first(InputArrival::new(at, input));
            self.output.note(all, now, period);
            // If a frame starts here, marks its start as handled without a decision of the policy.
            self.output.buffer.fate(all.last);
            let run = Run { cells: whole_rounds + entered, ..all };
            if run.cells < rounds {
                self.output.buffer.admission.lose(Run { cells: rounds - run.cells, ..all });
            }
            if run.cells > 0 {
                self.output.buffer.count_interleaved(run);
                self.partial_frames.report(run.last.label(), depart);
                self.hand_on(run, last_start, Span(0), depart);
            }
        }
        self.counted = in_step;
    }

    /// Admits all cells of overlapping trains from `now` on, one train after another, and makes the random draws for
    /// their ties. Stops at `until`, or before a train for which the result might differ from single cells. Returns
    /// whether any train was admitted.
    ///
    /// Arrivals at most a cell time apart keep the link busy, and between any of them and the last one no more cells
    /// leave than arrive. So the queue is longest at the last arrival and shortest before the first. Admitting a
    /// train's cells early changes nothing ([`TrainPort::admit_deferred`]), whatever cells of other VCs arrive in the
    /// meantime.
    #[inline(never)]
    pub(super) fn admit_stretch(&mut self, now: Time, until: Time, depart: &mut impl Depart) -> bool {
        if self.plan.delimits {
            self.delimit(self.ingress.next.len());
        }
        let cell_time = self.output.timing.cell_time;
        let (mut until, mut busy_until, mut period) = (until, now, None);
        let mut trains = 0;
        for arrival in self.ingress.next.iter() {
            let (first, input) = (arrival.time(), arrival.input());
            if first >= until {
                break;
            }
            let Input { train, behind, .. } = &self.ingress.inputs[input as usize];
            let in_step = train.cells == 1 || train.period == *period.get_or_insert(train.period);
            let is_known = in_step
                && train.period <= cell_time
                && !train.cell.is_rm()
                && first <= busy_until
                && (!self.plan.fills_in_order || trains == 0 || self.has_cells_until(first, train.cell.label()))
                && self.output.buffer.admits_unasked(train.cell.label());
            if !is_known {
                until = first;
                break;
            }
            if let Some(next) = behind.front() {
                until = until.min(next.next);
            }
            busy_until = busy_until.max(train.last() + cell_time);
            trains += 1;
        }
        if trains < 2 {
            return false;
        }
        let period = period.unwrap_or(cell_time);
        let (mut cells, mut last_arrival) = (0, now);
        let mut stretch = std::mem::take(&mut self.stretch);
        for arrival in self.ingress.next.iter().take(trains) {
            let (first, input) = (arrival.time(), arrival.input());
            if first >= until {
                break;
            }
            let train = &self.ingress.inputs[input as usize].train;
            let of_train = train.cells_before(until);
            cells += of_train;
            last_arrival = last_arrival.max(first + train.period * u64::from(of_train - 1));
            let (round, phase) = ((first - now).0 / period.0, Span((first - now).0 % period.0));
            let round = u32::try_from(round).expect("the number of rounds is below 2^32");
            stretch.push(StretchTrain { input, cells: of_train, first, phase, round });
        }
        self.output.catch_up(now);
        if stretch.len() < 2 || cells > self.output.buffer.capacity - self.output.buffer.occupancy {
            stretch.clear();
            self.stretch = stretch;
            return false;
        }
        self.output.start_anew_if_idle(now, depart);
        let starts = last_arrival.0.saturating_sub(self.output.next_start.0).div_ceil(cell_time.0);
        let with_last = self.output.buffer.occupancy + cells;
        let gone = u32::try_from(starts).unwrap_or(u32::MAX).min(with_last - 1);
        let range = QueueRange { least: self.output.buffer.occupancy, largest: with_last - gone };
        for _ in &stretch {
            self.ingress.next.pop_first();
        }
        for &StretchTrain { input, cells, first, .. } in &stretch {
            let Input { train, behind, .. } = &mut self.ingress.inputs[input as usize];
            let run = train.take(cells);
            if train.cells == 0 {
                *train = behind.pop_front().unwrap_or(Train::NONE);
            }
            if train.cells > 0 {
                let next = train.next;
                self.ingress.next.put(InputArrival::new(next, input));
            }
            self.output.catch_up(first);
            if self.output.buffer.must_report_before(run.last.label()) {
                self.output.report_departures(depart);
            }
            let fate = self.output.buffer.fate(run.last);
            debug_assert_eq!(fate, FrameOutcome::Admitted, "no policy decides within a stretch of cells");
            self.output.buffer.admit(run, range, 0);
        }
        reached!(StretchAdmitted);
        self.pass_over_ties(&mut stretch);
        stretch.clear();
        self.stretch = stretch;
        true
    }

    /// Returns true if a VC's queue is certainly not empty at any time before `until`.
    fn has_cells_until(&self, until: Time, label: Label) -> bool {
        let starts = until.0.saturating_sub(self.output.next_start.0) / self.output.timing.cell_time.0 + 1;
        u64::from(self.output.buffer.least_ahead(label)) > starts
    }

    /// In a group of trains, makes the random draws that decide the order of simultaneous cells, in time order.
    fn pass_over_ties(&mut self, stretch: &mut [StretchTrain]) {
        stretch.sort_unstable_by_key(|train| train.phase);
        if stretch.windows(2).all(|two| two[0].phase != two[1].phase) {
            return;
        }
        let rounds = stretch.iter().map(|train| train.round + train.cells).max().unwrap_or(0);
        for round in 0..rounds {
            let (mut phase, mut tied) = (Span(0), 0);
            for train in &*stretch {
                if train.phase != phase {
                    self.ties.pass_over(tied);
                    (phase, tied) = (train.phase, 0);
                }
                tied += u32::from(round.wrapping_sub(train.round) < train.cells);
            }
            self.ties.pass_over(tied);
        }
    }
}
