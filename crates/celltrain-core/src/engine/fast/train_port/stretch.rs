//! Overlapping trains if each VC has a queue of its own: they are admitted one after the other.

use super::{Input, TrainPort};
use crate::cell::Run;
use crate::engine::fast::train::Train;
use crate::engine::fast::train_ingress::Turn;
use crate::index::Label;
use crate::port::Fate;
use crate::queue_range::QueueRange;
use crate::units::{Span, Time};

/// Cells of one train that arrive in a stretch of several.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    input: u32,
    cells: u32,
    /// Arrival of the first.
    first: Time,
    /// The arrival within a period: parts of equal phase tie in every common round.
    phase: Span,
    /// Round of the first cell, counted from the beginning of the stretch.
    round: u32,
}

impl TrainPort {
    /// Admits all cells of trains that overlap, from `now` on, train after train, and draws for their ties. It ends at
    /// `until`, or before the first train for which the result might differ from single admission. Returns whether any
    /// train was admitted.
    ///
    /// Arrivals no further apart than a cell time keep the link busy, and between one of them and the last one no more
    /// cells leave than arrive: the queue is largest with the last, and shortest before the first. The early presence
    /// of a train's cells changes nothing ([`TrainPort::admit_deferred`]), whatever other VCs' cells come meanwhile.
    #[inline(never)]
    pub(super) fn admit_stretch(&mut self, now: Time, until: Time, depart: &mut impl FnMut(Run, Time, Span)) -> bool {
        let cell_time = self.output.timing.cell_time;
        let (mut until, mut busy_until, mut period) = (until, now, None);
        let mut trains = 0;
        for turn in self.ingress.next.iter() {
            let (first, input) = (turn.time(), turn.input());
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
                && self.output.port.admits_unasked(train.cell.label());
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
        for turn in self.ingress.next.iter().take(trains) {
            let (first, input) = (turn.time(), turn.input());
            if first >= until {
                break;
            }
            let train = &self.ingress.inputs[input as usize].train;
            let of_train = train.cells_before(until);
            cells += of_train;
            last_arrival = last_arrival.max(first + train.period * u64::from(of_train - 1));
            let (round, phase) = ((first - now).0 / period.0, Span((first - now).0 % period.0));
            let round = u32::try_from(round).expect("a stretch has fewer than 2^32 rounds");
            stretch.push(Part { input, cells: of_train, first, phase, round });
        }
        self.output.catch_up(now);
        if stretch.len() < 2 || cells > self.output.port.capacity() - self.output.port.occupancy() {
            stretch.clear();
            self.stretch = stretch;
            return false;
        }
        self.output.start_anew_if_idle(now, depart);
        let starts = last_arrival.0.saturating_sub(self.output.next_start.0).div_ceil(cell_time.0);
        let with_last = self.output.port.occupancy() + cells;
        let gone = u32::try_from(starts).unwrap_or(u32::MAX).min(with_last - 1);
        let range = QueueRange { least: self.output.port.occupancy(), largest: with_last - gone };
        for _ in &stretch {
            self.ingress.next.pop_first();
        }
        for &Part { input, cells, first, .. } in &stretch {
            let Input { train, behind, .. } = &mut self.ingress.inputs[input as usize];
            let run = train.take(cells);
            if train.cells == 0 {
                *train = behind.pop_front().unwrap_or(Train::NONE);
            }
            if train.cells > 0 {
                let next = train.next;
                self.ingress.next.put(Turn::new(next, input));
            }
            self.output.catch_up(first);
            if self.output.port.must_report_before(run.last.label()) {
                self.output.report_departures(depart);
            }
            let fate = self.output.port.fate(run.last);
            debug_assert_eq!(fate, Fate::Admitted, "no policy is asked within a stretch");
            self.output.port.admit(run, range, 0);
        }
        self.pass_over_ties(&mut stretch);
        stretch.clear();
        self.stretch = stretch;
        true
    }

    /// Returns whether a VC's queue certainly does not run empty up to an instant.
    pub(super) fn has_cells_until(&self, until: Time, label: Label) -> bool {
        let starts = until.0.saturating_sub(self.output.next_start.0) / self.output.timing.cell_time.0 + 1;
        u64::from(self.output.port.least_ahead(label)) > starts
    }

    /// Draws for the ties of a stretch, in order of time.
    pub(super) fn pass_over_ties(&mut self, stretch: &mut [Part]) {
        stretch.sort_unstable_by_key(|part| part.phase);
        if stretch.windows(2).all(|two| two[0].phase != two[1].phase) {
            return;
        }
        let rounds = stretch.iter().map(|part| part.round + part.cells).max().unwrap_or(0);
        for round in 0..rounds {
            let (mut phase, mut tied) = (Span(0), 0);
            for part in &*stretch {
                if part.phase != phase {
                    self.ties.pass_over(tied);
                    (phase, tied) = (part.phase, 0);
                }
                tied += u32::from(round.wrapping_sub(part.round) < part.cells);
            }
            self.ties.pass_over(tied);
        }
    }
}
