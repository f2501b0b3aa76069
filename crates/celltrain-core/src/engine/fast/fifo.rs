//! A first-in first-out buffer without a queue: the number of waiting cells follows from the time when the link will be
//! free.

use super::links::Pipe;
use super::output::{BufferView, PortEnd, PortQueue, Timing};
use crate::aal5::Framing;
use crate::cell::Cell;
use crate::index::Label;
use crate::policy::{BufferPolicy, View};
use crate::port::admission::{Admission, Verdict};
use crate::queue_range::QueueTracker;
use crate::rng;
use crate::scheduler::waiting::Counts;
use crate::units::{Span, Time};

/// The buffer of a port that sends cells in order of arrival. An admitted cell starts once all earlier cells have been
/// sent.
pub(super) struct Fifo {
    /// Time when all admitted cells will have been sent.
    pub(super) free_at: Time,
    /// Waiting time from which cells take the slow path, because the buffer may be full.
    full_above: u64,
    /// Waiting time below which the policy would admit every frame, so the port does not call the policy.
    admit_all_below: u64,
    /// The longest wait of a cell admitted since the latest sample, plus one; 0 if no cell was admitted.
    longest: u64,
    /// The shortest wait of cells recorded in `admitted`.
    shortest: u64,
    cell_time: Span,
    admission: Admission,
    /// Admitted cells, oldest first: waiting cells, and cells that have left since the list was last trimmed. If no
    /// probe looks at queues, the list contains only cells that may still wait at the horizon.
    admitted: Pipe<Label>,
    /// Time after which admitted cells are recorded in `admitted`.
    noted_from: Time,
    /// True if every admitted cell is recorded: the policy reads counts, or a probe looks at queues.
    always_records: bool,
    /// Number of cells in `admitted` that are also in `counts`.
    counted: usize,
    counts: Counts,
    capacity: u32,
    /// Tracks the range of the queue up to the latest sample.
    tracker: QueueTracker,
    /// True if the policy reads the number of waiting cells of each VC.
    counts_vcs: bool,
}

impl Fifo {
    /// Creates an empty buffer for a port with `vcs` VCs. `is_looked_at` is true if a probe looks at queues during the
    /// run, not only at the horizon ([`Fifo::ask_at`]).
    pub(super) fn new(
        vcs: usize,
        capacity: Option<u32>,
        policy: Box<dyn BufferPolicy>,
        rng: rng::Stream,
        (timing, framing): (&Timing, Framing),
        is_looked_at: bool,
    ) -> Self {
        let &Timing { cell_time, horizon, .. } = timing;
        let capacity = capacity.unwrap_or(u32::MAX);
        let counts_vcs = policy.reads_counts();
        let admission = Admission::new(vcs, policy, rng).framed(framing);
        let mut fifo = Self {
            free_at: Time::default(),
            admit_all_below: wait_for(admission.asked_from(), cell_time),
            full_above: wait_for(capacity, cell_time),
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
        };
        fifo.ask_at(horizon);
        fifo
    }

    /// Sets the time from which the results need the list of waiting cells.
    pub(super) fn ask_at(&mut self, horizon: Time) {
        if !self.always_records {
            // No cell waits longer than the transmission time of a full buffer.
            self.noted_from = Time(horizon.0.saturating_sub(wait_for(self.capacity, self.cell_time)));
        }
    }

    /// Returns whether packets delimit themselves. If so, [`Fifo::delimit`] must precede [`Fifo::enter`].
    pub(super) fn delimits(&self) -> bool {
        self.admission.delimits()
    }

    #[inline]
    pub(super) fn delimit(&mut self, cell: Cell) {
        self.admission.delimit(cell);
    }

    /// Offers a cell. Returns its start if it is admitted.
    #[inline(always)]
    pub(super) fn enter(&mut self, now: Time, cell: Cell) -> Option<Time> {
        let wait = self.free_at.0.saturating_sub(now.0);
        let passes = if cell.is_rm() {
            self.admission.on_cells_between(cell.label(), 1);
            true
        } else {
            let arrived = self.admission.on_cell(cell, wait < self.admit_all_below);
            arrived.passes() || (arrived.starts() && self.judge_frame(now, cell))
        };
        if (wait >= self.full_above || !passes) && !self.admits_unwelcome(now, cell) {
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

    /// Offers a cell whose frame is refused or for which there is no room. Returns whether the cell is admitted.
    #[cold]
    fn admits_unwelcome(&mut self, now: Time, cell: Cell) -> bool {
        if cell.is_rm() {
            self.admission.lose_rm(cell.label());
            return false;
        }
        self.admission.verdict(cell, self.waiting_before(now) >= self.capacity, false) == Verdict::Enter
    }

    /// Asks the policy about the frame whose first cell arrives. Returns whether it is admitted.
    #[inline(never)]
    fn judge_frame(&mut self, now: Time, cell: Cell) -> bool {
        let occupancy = self.waiting_before(now);
        if self.counts_vcs {
            self.count(occupancy);
        }
        let view = View {
            occupancy,
            capacity: self.capacity,
            active_vcs: self.counts.active_vcs,
            per_vc: &self.counts.per_vc,
            tagged: cell.tagged(),
            capable: cell.capable(),
            now,
        };
        self.admission.judge_frame(&view, cell.label())
    }

    /// Updates the counts to an instant at which `waiting` cells wait.
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

    /// Removes cells that left before `until` from the list.
    #[inline]
    pub(super) fn forget(&mut self, until: Time) {
        if self.counts_vcs {
            self.count(self.waiting_before(until));
        } else if !self.admitted.is_empty() {
            let noted = self.admitted.rest().len();
            self.admitted.take(noted.saturating_sub(self.waiting_before(until) as usize));
        }
    }

    /// Returns how many cells still wait after all cells that start before `until` have left.
    fn waiting_before(&self, until: Time) -> u32 {
        whole(self.free_at.0.saturating_sub(until.0) / self.cell_time.0)
    }

    /// Updates the counts to their state at `until`. All earlier events must be settled. Must not be called before the
    /// horizon, unless a probe looks at queues.
    pub(super) fn look_at(&mut self, until: Time) {
        self.forget(until);
        assert_eq!(self.occupancy(), self.waiting_before(until), "waiting VCs are recorded before the query");
        if !self.counts_vcs {
            self.counts = Counts::new(self.counts.per_vc.len());
            for &label in self.admitted.rest() {
                self.counts.put(label, 1);
            }
        }
    }

    fn occupancy(&self) -> u32 {
        u32::try_from(self.admitted.rest().len()).expect("queues have fewer than 2^32 cells")
    }

    /// Returns the queue's tracker, updated with the longest and the shortest wait. When a cell arrives, the waiting
    /// cells are those that start before it.
    fn tracked(&self) -> QueueTracker {
        let mut tracker = self.tracker;
        if self.longest > 0 {
            let found = |wait: u64| whole(wait / self.cell_time.0);
            tracker.rise(found(self.longest - 1) + 1);
            if self.shortest < u64::MAX {
                tracker.fall(found(self.shortest));
            }
        }
        tracker
    }
}

/// Call [`Fifo::look_at`] first.
impl PortQueue for Fifo {
    fn view(&self) -> BufferView<'_> {
        let occupancy = self.occupancy();
        BufferView { occupancy, range: self.tracked().range(occupancy), per_vc: &self.counts.per_vc }
    }

    fn start_range(&mut self) {
        self.tracker = self.tracked();
        self.tracker.start_range(self.occupancy());
        (self.longest, self.shortest) = (0, u64::MAX);
    }

    fn end(&self) -> PortEnd {
        PortEnd::in_order(self.admission.port_state(&self.counts.per_vc, self.tracked().max_queue()))
    }
}

/// Returns the transmission time of `cells` cells, or the longest possible time if their number is unlimited.
fn wait_for(cells: u32, cell_time: Span) -> u64 {
    if cells == u32::MAX { u64::MAX } else { cell_time.0.saturating_mul(u64::from(cells)) }
}

fn whole(cells: u64) -> u32 {
    u32::try_from(cells).expect("queues have fewer than 2^32 cells")
}
