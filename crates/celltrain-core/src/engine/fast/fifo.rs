//! First in, first out, without a queue: how many wait follows from when the link will be free.

use typed_index_collections::TiSlice;

use super::stream::Pipe;
use crate::cell::Cell;
use crate::index::Label;
use crate::policy::{BufferPolicy, View};
use crate::port::PortState;
use crate::port::admission::{Admission, Verdict};
use crate::queue_range::{QueueRange, QueueTracker};
use crate::rng;
use crate::scheduler::waiting::Counts;
use crate::units::{Span, Time};

/// What waits at a port from which cells leave in the order of their arrival. A cell that is admitted starts when
/// everything before it has been sent.
pub(super) struct Fifo {
    /// When everything that was admitted will have been sent.
    free_at: Time,
    /// A cell that would wait as long finds no room, or it must be looked at more closely.
    full: u64,
    /// While a cell would wait for less, the policy admits every frame, and is not asked.
    calm: u64,
    /// The longest wait of a cell admitted since the latest sample, and one; 0 if none was.
    longest: u64,
    /// The shortest, if cells are noted in `admitted`.
    shortest: u64,
    cell_time: Span,
    admission: Admission,
    /// Cells that were admitted, oldest first: those that wait, and those that went since the list was last cut. Where
    /// nobody asks who waits before the end of the run, those that may wait then.
    admitted: Pipe<Label>,
    /// From when on cells are noted in `admitted`.
    noted_from: Time,
    /// Whether they always are: the policy reads counts, or queues are looked at during the run.
    always_notes: bool,
    /// Of these, how many are in `counts`.
    counted: usize,
    counts: Counts,
    capacity: u32,
    /// The range of the queue if the departure of an instant comes first; otherwise its range up to the latest sample.
    tracker: QueueTracker,
    /// The departure of an instant comes before its arrivals.
    serves_first: bool,
    /// The latest instant in which cells came to an idle port, where the departure comes first.
    begun: Option<Time>,
    /// Whether the policy reads the counts of VCs.
    counts_vcs: bool,
}

/// Memory of a VC, beside what admission keeps.
pub(super) const BYTES_PER_VC: u64 = 4;

impl Fifo {
    /// An empty buffer of a port that so many VCs cross. `serves_first`: the departure of an instant comes before its
    /// arrivals. `is_looked_at`: who waits may be asked at any time, not only at the horizon ([`Fifo::ask_at`]).
    pub(super) fn new(
        vcs: usize,
        (capacity, policy, rng): (Option<u32>, Box<dyn BufferPolicy>, rng::Stream),
        cell_time: Span,
        (serves_first, is_looked_at): (bool, bool),
    ) -> Self {
        let capacity = capacity.unwrap_or(u32::MAX);
        let counts_vcs = policy.reads_counts();
        let admission = Admission::new(vcs, policy, rng);
        Self {
            free_at: Time::default(),
            calm: calm(admission.asked_from(), cell_time, serves_first),
            full: if serves_first { 0 } else { cell_time.0.saturating_mul(u64::from(capacity)) },
            longest: 0,
            shortest: u64::MAX,
            cell_time,
            counts_vcs,
            noted_from: Time::default(),
            always_notes: counts_vcs || is_looked_at,
            admission,
            admitted: Pipe::EMPTY,
            counted: 0,
            counts: Counts::new(vcs),
            capacity,
            tracker: QueueTracker::default(),
            serves_first,
            begun: None,
        }
    }

    /// Who waits will be asked at the horizon, and no sooner.
    pub(super) fn ask_at(&mut self, horizon: Time) {
        if !self.always_notes {
            // Nobody waits longer than a full buffer takes, and a cell or two where the departure comes first.
            let longest = self.cell_time.0.saturating_mul(u64::from(self.capacity) + 2);
            self.noted_from = Time(horizon.0.saturating_sub(longest));
        }
    }

    /// When everything that was admitted will have been sent.
    #[inline]
    pub(super) fn free_at(&self) -> Time {
        self.free_at
    }

    /// A cell comes; when it starts, unless it is refused.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a cell")]
    pub(super) fn enter(&mut self, now: Time, cell: Cell) -> Option<Time> {
        let wait = self.free_at.0.saturating_sub(now.0);
        let passes = if cell.is_rm() {
            self.admission.on_cells_between(cell.label(), 1);
            true
        } else {
            let arrived = self.admission.on_cell(cell, wait < self.calm);
            arrived.passes() || (arrived.starts() && self.judge_frame(now, cell))
        };
        // Where the departure of an instant comes first, `full` is 0.
        if (wait >= self.full || !passes) && !self.admits_unwelcome(now, cell, passes) {
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

    /// A cell of a refused frame, or one that may find no room; whether it enters all the same.
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

    /// Asks the policy about the frame whose first cell arrives; whether it may enter.
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

    /// How many wait when a cell arrives.
    #[inline]
    fn waiting_at(&self, now: Time) -> u32 {
        let wait = self.free_at.0.saturating_sub(now.0);
        let first = u64::from(self.serves_first);
        whole(wait.saturating_sub(first) / self.cell_time.0) + u32::from(self.begun == Some(now))
    }

    /// Brings the counts to an instant at which so many wait.
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

    /// Cuts what has gone before `until` off the list of cells.
    #[inline]
    pub(super) fn forget(&mut self, until: Time) {
        if self.counts_vcs {
            self.count(self.waiting_before(until));
        } else if self.admitted.first().is_some() {
            let noted = self.admitted.rest().len();
            self.admitted.take(noted.saturating_sub(self.waiting_before(until) as usize));
        }
    }

    /// How many wait when all that starts before `until` has gone.
    #[inline]
    fn waiting_before(&self, until: Time) -> u32 {
        whole(self.free_at.0.saturating_sub(until.0) / self.cell_time.0)
    }

    /// Brings the counts to `until`; everything before it is settled. No sooner than it was said that this is asked.
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

    /// X: cells waiting, after a look.
    pub(super) fn occupancy(&self) -> u32 {
        u32::try_from(self.admitted.rest().len()).expect("a queue stays below 2^32 cells")
    }

    /// `Y_i`: cells waiting of each VC, by label, after a look.
    pub(super) fn per_vc(&self) -> &TiSlice<Label, u32> {
        &self.counts.per_vc
    }

    /// The tracker of the queue, brought up to date from the longest and the shortest wait. An arriving cell finds as many
    /// cells waiting as will start before it.
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

    /// The fewest and the most cells waiting since the latest sample, after a look.
    pub(super) fn range(&self) -> QueueRange {
        self.tracked().range(self.occupancy())
    }

    /// Starts a new range at a sample, after a look.
    pub(super) fn start_range(&mut self) {
        self.tracker = self.tracked();
        self.tracker.start_range(self.occupancy());
        (self.longest, self.shortest) = (0, u64::MAX);
    }

    /// The port as results show it, after a look.
    pub(super) fn state(&self) -> PortState {
        PortState {
            counters: self.admission.counters(&self.counts.per_vc).collect(),
            waiting: self.counts.per_vc.clone(),
            max_queue: self.tracked().max_queue(),
            replaced_results: self.admission.policy.replaced_results(),
        }
    }
}

/// While a cell would wait for less than this, fewer than `asked_from` cells wait. Where the departure of an instant comes
/// first, a cell that came to the idle port in the same instant still waits.
fn calm(asked_from: u32, cell_time: Span, serves_first: bool) -> u64 {
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
            let calm = calm(asked_from, cell_time, serves_first);
            for wait in 0..700u64 {
                // Where the departure comes first, one may wait that came to the idle port in the same instant.
                let first = u64::from(serves_first);
                let most = wait.saturating_sub(first) / 7 + first;
                let is_sure = most < u64::from(asked_from);
                assert!(wait >= calm || is_sure, "{wait}, {asked_from}, {serves_first}: the policy would be asked");
                assert!(wait < calm || most + first >= u64::from(asked_from), "{wait}, {asked_from}, {serves_first}");
            }
        }
        assert_eq!(calm(u32::MAX, cell_time, true), u64::MAX, "a policy that admits all is never asked");
        assert_eq!(calm(u32::MAX - 1, Span(u64::MAX / 2), false), u64::MAX, "no time is longer");
    }
}
