//! Overlapping trains at a port with a queue for each VC, admitted one after another.

use super::{Queued, StretchTrain};
use crate::coverage::reached;
use crate::engine::fast::egress::Depart;
use crate::engine::fast::train::{Input, InputArrival, Train};
use crate::engine::fast::train_port::TrainPort;
use crate::index::Label;
use crate::port::FrameOutcome;
use crate::queue_range::QueueRange;
use crate::scheduler::BacklogSensitivity;
use crate::units::{Span, Time};

/// Overlapping trains whose cells before `until` are admitted.
struct KnownTrains {
    trains: usize,
    until: Time,
    period: Span,
}

impl TrainPort<Queued> {
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
        self.delimit(self.ingress.next.len());
        let Some(known) = self.known_trains(now, until) else { return false };
        let mut stretch = std::mem::take(&mut self.output.buffer.queue.stretch);
        let (cells, last_arrival) = self.take_stock(now, &known, &mut stretch);
        self.output.catch_up(now);
        let fits = cells <= self.output.buffer.capacity - self.output.buffer.occupancy;
        let is_admitted = stretch.len() >= 2 && fits;
        if is_admitted {
            self.output.start_anew_if_idle(now, depart);
            let starts =
                (last_arrival.0.saturating_sub(self.output.next_start.0)).div_ceil(self.output.timing.cell_time.0);
            let with_last = self.output.buffer.occupancy + cells;
            let gone = u32::try_from(starts).unwrap_or(u32::MAX).min(with_last - 1);
            let range = QueueRange { least: self.output.buffer.occupancy, largest: with_last - gone };
            self.admit_trains(&stretch, range, depart);
            reached!(StretchAdmitted);
            self.pass_over_ties(&mut stretch);
        }
        stretch.clear();
        self.output.buffer.queue.stretch = stretch;
        is_admitted
    }

    /// Finds the trains from `now` on and before `until` whose cells are admitted without a decision, keep the link busy
    /// and have one period. Returns `None` if there are fewer than two.
    #[inline]
    fn known_trains(&self, now: Time, mut until: Time) -> Option<KnownTrains> {
        let order_matters = self.output.buffer.queue.sensitivity == BacklogSensitivity::Order;
        let cell_time = self.output.timing.cell_time;
        let (mut trains, mut busy_until, mut period) = (0, now, None);
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
                && (!order_matters || trains == 0 || self.has_cells_until(first, train.cell.label()))
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
        (trains >= 2).then(|| KnownTrains { trains, until, period: period.unwrap_or(cell_time) })
    }

    /// Lists the cells of the given trains. Returns their number, and the last arrival.
    #[inline]
    fn take_stock(&self, now: Time, known: &KnownTrains, stretch: &mut Vec<StretchTrain>) -> (u32, Time) {
        let &KnownTrains { trains, until, period } = known;
        let (mut cells, mut last_arrival) = (0, now);
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
        (cells, last_arrival)
    }

    /// Takes the cells of the given trains and admits them. The queue stays within `range`.
    #[inline]
    fn admit_trains(&mut self, stretch: &[StretchTrain], range: QueueRange, depart: &mut impl Depart) {
        for _ in stretch {
            self.ingress.next.pop_first();
        }
        for &StretchTrain { input, cells, first, .. } in stretch {
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
