//! First in, first out, without a queue: the number of waiting cells follows from the time when the link will be free.

use super::contended_port::BufferView;
use super::links::Pipe;
use super::output::Timing;
use crate::cell::Cell;
use crate::index::Label;
use crate::policy::{BufferPolicy, View};
use crate::port::PortState;
use crate::port::admission::{Admission, Verdict};
use crate::queue_range::{QueueRange, QueueTracker};
use crate::rng;
use crate::scheduler::waiting::Counts;
use crate::units::{Span, Time};

/// The buffer of a port from which cells leave in the order of their arrival. A cell that is admitted starts when
/// everything before it has been sent.
pub(super) struct Fifo {
    /// Time when all admitted cells will have been sent.
    pub(super) free_at: Time,
    /// Waits of this length or more take the slow path: the buffer may be full.
    full_above: u64,
    /// At shorter waits the policy admits every frame and is not asked.
    admit_all_below: u64,
    /// The longest wait of a cell admitted since the latest sample, plus one; 0 if there was none.
    longest: u64,
    /// The shortest wait, if cells are noted in `admitted`.
    shortest: u64,
    cell_time: Span,
    admission: Admission,
    /// Admitted cells, oldest first: those that wait, and those that left since the list was last cut. If no probe
    /// looks at queues, only those that may wait at the horizon.
    admitted: Pipe<Label>,
    /// Time after which admitted cells are recorded in `admitted`.
    noted_from: Time,
    /// True if every admitted cell is recorded: the policy reads counts, or a probe looks at queues.
    always_records: bool,
    /// Number of cells in `admitted` that are also in `counts`.
    counted: usize,
    counts: Counts,
    capacity: u32,
    /// The range of the queue if the departure of an instant comes first; otherwise its range up to the latest sample.
    tracker: QueueTracker,
    /// The departure of an instant comes before its arrivals.
    serves_first: bool,
    /// The latest instant in which cells came to an idle port, if the departure comes first.
    begun: Option<Time>,
    /// True if the policy reads the counts of VCs.
    counts_vcs: bool,
}

impl Fifo {
    /// Creates an empty buffer for a port with `vcs` VCs. `is_looked_at`: a probe looks at queues during the run, not
    /// only at the horizon ([`Fifo::ask_at`]).
    pub(super) fn new(
        vcs: usize,
        capacity: Option<u32>,
        policy: Box<dyn BufferPolicy>,
        rng: rng::Stream,
        timing: &Timing,
        is_looked_at: bool,
    ) -> Self {
        let &Timing { cell_time, serve_first: serves_first, horizon, .. } = timing;
        let capacity = capacity.unwrap_or(u32::MAX);
        let counts_vcs = policy.reads_counts();
        let admission = Admission::new(vcs, policy, rng);
        let mut fifo = Self {
            free_at: Time::default(),
            admit_all_below: admit_all_below(admission.asked_from(), cell_time, serves_first),
            full_above: if serves_first { 0 } else { cell_time.0.saturating_mul(u64::from(capacity)) },
            longest: 0,
            shortest: u64::MAX,
            cell_time,
            counts_vcs,
            noted_from: Time::default(),
            always_records: counts_vcs || is_looked_at,
            admission,
            admitted: Pipe::EMPTY,
            counted: 0,
            counts: Counts::new(vcs),
            capacity,
            tracker: QueueTracker::default(),
            serves_first,
            begun: None,
        };
        fifo.ask_at(horizon);
        fifo
    }

    /// Moves the instant at which the results need the waiting cells.
    pub(super) fn ask_at(&mut self, horizon: Time) {
        if !self.always_records {
            // No cell waits longer than a full buffer takes, plus a cell or two if the departure comes first.
            let longest = self.cell_time.0.saturating_mul(u64::from(self.capacity) + 2);
            self.noted_from = Time(horizon.0.saturating_sub(longest));
        }
    }

    /// Offers a cell. Returns its start, unless it is refused.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a cell")]
    pub(super) fn enter(&mut self, now: Time, cell: Cell) -> Option<Time> {
        let wait = self.free_at.0.saturating_sub(now.0);
        let passes = if cell.is_rm() {
            self.admission.on_cells_between(cell.label(), 1);
            true
        } else {
            let arrived = self.admission.on_cell(cell, wait < self.admit_all_below);
            arrived.passes() || (arrived.starts() && self.judge_frame(now, cell))
        };
        // If the departure of an instant comes first, `full_above` is 0.
        if (wait >= self.full_above || !passes) && !self.admits_unwelcome(now, cell, passes) {
            return None;
        }
        self.longest = self.longest.max(wait + 1);
        let start = now + Span(wait);
        self.free_at = start + self.cell_time;
        if now >= self.noted_from {
            self.shortest = self.shortest.min(wait);
            self.admitted.push(cell.label());
        }
        Some(start)
    }

    /// Offers a cell of a refused frame, or one that may find no room. Returns whether it enters.
    #[cold]
    fn admits_unwelcome(&mut self, now: Time, cell: Cell, passes: bool) -> bool {
        let waiting = self.waiting_at(now);
        let is_full = waiting >= self.capacity;
        let enters = if cell.is_rm() {
            if is_full {
                self.admission.lose_rm(cell.label());
            }
            !is_full
        } else {
            (passes && !is_full) || self.admission.verdict(cell, is_full, false) == Verdict::Enter
        };
        if enters && self.serves_first {
            self.tracker.include(QueueRange { least: waiting, largest: waiting + 1 });
            // Cells of one instant that come to an idle port all wait, as its departure comes before them.
            if self.free_at <= now {
                self.begun = Some(now);
            }
        }
        enters
    }

    /// Asks the policy about the frame whose first cell arrives. Returns whether it may enter.
    #[inline(never)]
    fn judge_frame(&mut self, now: Time, cell: Cell) -> bool {
        let occupancy = self.waiting_at(now);
        if self.counts_vcs {
            self.count(occupancy);
        }
        let view = View {
            occupancy,
            capacity: self.capacity,
            active_vcs: self.counts.active_vcs,
            per_vc: &self.counts.per_vc,
            tagged: cell.tagged(),
            now,
        };
        self.admission.judge_frame(&view, cell.label())
    }

    /// Returns how many cells wait when a cell arrives.
    #[inline]
    fn waiting_at(&self, now: Time) -> u32 {
        let wait = self.free_at.0.saturating_sub(now.0);
        let first = u64::from(self.serves_first);
        whole(wait.saturating_sub(first) / self.cell_time.0) + u32::from(self.begun == Some(now))
    }

    /// Brings the counts to an instant at which `waiting` cells wait.
    fn count(&mut self, waiting: u32) {
        for &label in &self.admitted.rest()[self.counted..] {
            self.counts.put(label, 1);
        }
        let gone = self.admitted.rest().len() - waiting as usize;
        for &label in &self.admitted.rest()[..gone] {
            self.counts.take(label, 1);
        }
        self.admitted.take(gone);
        self.counted = waiting as usize;
    }

    /// Removes the cells that have gone before `until` from the list.
    #[inline]
    pub(super) fn forget(&mut self, until: Time) {
        if self.counts_vcs {
            self.count(self.waiting_before(until));
        } else if self.admitted.first().is_some() {
            let noted = self.admitted.rest().len();
            self.admitted.take(noted.saturating_sub(self.waiting_before(until) as usize));
        }
    }

    /// Returns how many cells wait when all that start before `until` have left.
    #[inline]
    fn waiting_before(&self, until: Time) -> u32 {
        whole(self.free_at.0.saturating_sub(until.0) / self.cell_time.0)
    }

    /// Brings the counts to `until`; everything before it is settled. Not before the horizon, unless a probe looks at
    /// queues.
    pub(super) fn look_at(&mut self, until: Time) {
        self.forget(until);
        assert_eq!(self.occupancy(), self.waiting_before(until), "who waits when it is asked was noted");
        if !self.counts_vcs {
            self.counts = Counts::new(self.counts.per_vc.len());
            for &label in self.admitted.rest() {
                self.counts.put(label, 1);
            }
        }
    }

    fn occupancy(&self) -> u32 {
        u32::try_from(self.admitted.rest().len()).expect("a queue stays below 2^32 cells")
    }

    /// Returns what probes see, after a look.
    pub(super) fn view(&self) -> BufferView<'_> {
        let occupancy = self.occupancy();
        BufferView { occupancy, range: self.tracked().range(occupancy), per_vc: &self.counts.per_vc }
    }

    /// Returns the tracker of the queue, brought up to date from the longest and the shortest wait. An arriving cell
    /// finds as many cells waiting as will start before it.
    fn tracked(&self) -> QueueTracker {
        let mut tracker = self.tracker;
        if !self.serves_first && self.longest > 0 {
            let found = |wait: u64| whole(wait / self.cell_time.0);
            tracker.rise(found(self.longest - 1) + 1);
            if self.shortest < u64::MAX {
                tracker.fall(found(self.shortest));
            }
        }
        tracker
    }

    /// Starts a new range at a sample, after a look.
    pub(super) fn start_range(&mut self) {
        self.tracker = self.tracked();
        self.tracker.start_range(self.occupancy());
        (self.longest, self.shortest) = (0, u64::MAX);
    }

    /// Returns the state of the port, as results show it, after a look.
    pub(super) fn state(&self) -> PortState {
        PortState {
            counters: self.admission.counters(&self.counts.per_vc).collect(),
            waiting: self.counts.per_vc.clone(),
            max_queue: self.tracked().max_queue(),
            replaced_results: self.admission.replaced_results(),
        }
    }
}

/// Returns the wait below which fewer than `asked_from` cells are waiting. If the departure of an instant comes first,
/// a cell that came to the idle port in the same instant still waits.
fn admit_all_below(asked_from: u32, cell_time: Span, serves_first: bool) -> u64 {
    match asked_from {
        u32::MAX => u64::MAX,
        cells => cell_time.0.saturating_mul(u64::from(cells.saturating_sub(u32::from(serves_first)))),
    }
}

#[inline]
fn whole(cells: u64) -> u32 {
    u32::try_from(cells).expect("a queue stays below 2^32 cells")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_less_is_waited_for_fewer_wait_than_are_asked_from() {
        let cell_time = Span(7);
        for (asked_from, serves_first) in [0, 1, 2, 80].into_iter().flat_map(|from| [(from, false), (from, true)]) {
            let below = admit_all_below(asked_from, cell_time, serves_first);
            for wait in 0..700u64 {
                // If the departure comes first, a cell that came to the idle port in the same instant may wait.
                let first = u64::from(serves_first);
                let most = wait.saturating_sub(first) / 7 + first;
                let is_sure = most < u64::from(asked_from);
                assert!(wait >= below || is_sure, "{wait}, {asked_from}, {serves_first}: the policy would be asked");
                assert!(wait < below || most + first >= u64::from(asked_from), "{wait}, {asked_from}, {serves_first}");
            }
        }
        assert_eq!(admit_all_below(u32::MAX, cell_time, true), u64::MAX, "a policy that admits all is never asked");
        assert_eq!(admit_all_below(u32::MAX - 1, Span(u64::MAX / 2), false), u64::MAX, "no time is longer");
    }
}
