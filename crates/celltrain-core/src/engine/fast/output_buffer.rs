//! The buffer of a contended port: the waiting cells, as their discipline keeps them, and their admission. Many cells can
//! be admitted at once, and departures can be deferred.
//!
//! Source: `docs/mechanisms.md` 2.0. Processing a run as a whole has the same effect as a [`Port`](crate::port::Port)
//! that processes its cells one after another. Both use the same `Admission`.

use typed_index_collections::TiSlice;

use super::waiting_cells::{Departures, Kept, WaitingCells};
use crate::cell::{Cell, Run};
use crate::index::Label;
use crate::policy::View;
use crate::port::admission::{Admission, Verdict};
use crate::port::{FrameOutcome, PortCounters, PortState};
use crate::queue_range::{QueueRange, QueueTracker};
use crate::scheduler::waiting::{Counts, ReportGranularity};
use crate::units::Time;

pub(super) struct OutputBuffer<W> {
    pub(super) capacity: u32,
    /// Number of waiting cells: the cells in the queue minus the first `deferred_dequeues`.
    pub(super) occupancy: u32,
    pub(super) tracker: QueueTracker,
    pub(super) queue: W,
    /// Number of cells that have left ([`OutputBuffer::defer_dequeue`]) but still count in the queue and in the per-VC
    /// counts.
    pub(super) deferred_dequeues: u32,
    /// Waiting cells by VC, if the discipline keeps them.
    pub(super) counts: Counts,
    pub(super) admission: Admission,
    /// Number of cells passed to the transmitter, of all VCs.
    gone: u64,
    /// Arrival time of the next cell offered, for a policy that reads the time.
    pub(super) now: Time,
}

/// Maximum number of deferred dequeues before the counts are updated. It is small enough for the cells' places to
/// remain in the L1 cache.
const MOST_DEFERRED_DEQUEUES: u32 = 256;

impl<W: WaitingCells> OutputBuffer<W> {
    /// Creates the empty buffer of a port that `vcs` VCs cross.
    pub(super) fn new(capacity: Option<u32>, vcs: usize, admission: Admission, queue: W) -> Self {
        Self {
            capacity: capacity.unwrap_or(u32::MAX),
            occupancy: 0,
            tracker: QueueTracker::default(),
            queue,
            deferred_dequeues: 0,
            counts: Counts::new(vcs),
            admission,
            gone: 0,
            now: Time::default(),
        }
    }

    /// Admits an arriving cell, or refuses the cell and counts the reason. Returns whether the cell was admitted.
    #[inline]
    pub(super) fn offer(&mut self, cell: Cell) -> bool {
        if cell.is_rm() {
            return self.offer_rm(cell);
        }
        if self.admission.on_cell(cell, self.admits_all()).starts() {
            self.judge_frame(cell);
        }
        if self.occupancy < self.capacity && self.admission.is_passing(cell.label()) {
            self.enqueue(cell);
            return true;
        }
        self.offer_unwelcome(cell)
    }

    /// A variant of [`OutputBuffer::offer`] for a data cell that finds an empty queue and is the only arrival of its
    /// instant, at a port where VCs do not merge. Returns whether the cell was sent at once. A last cell that is
    /// admitted although its frame is refused enters the queue instead.
    #[inline]
    pub(super) fn bypass_queue(&mut self, cell: Cell) -> bool {
        debug_assert!(
            self.occupancy == 0 && self.deferred_dequeues == 0 && self.queue.awaiting() == 0,
            "nothing waits"
        );
        if self.admission.on_cell(cell, self.admits_all()).starts() {
            self.judge_frame(cell);
        }
        if self.capacity == 0 || !self.admission.is_passing(cell.label()) {
            self.offer_unwelcome(cell);
            return false;
        }
        self.queue.pass_through(cell.label(), &mut self.admission);
        self.tracker.rise(1);
        self.depart(1);
        true
    }

    /// Returns whether the queue is so short that the policy is certain to admit every frame.
    fn admits_all(&self) -> bool {
        self.occupancy < self.admission.asked_from()
    }

    /// Offers a resource management cell. It belongs to no frame, so only lack of room can cause its loss.
    #[inline(never)]
    fn offer_rm(&mut self, cell: Cell) -> bool {
        self.admission.on_cells_between(cell.label(), 1);
        let has_room = self.occupancy < self.capacity;
        if has_room {
            self.enqueue(cell);
        } else {
            self.admission.lose_rm(cell.label());
        }
        has_room
    }

    /// Returns whether the next cells of a VC are admitted without a decision of the policy while the buffer has room.
    #[inline]
    pub(super) fn admits_unasked(&self, label: Label) -> bool {
        if self.admission.starts_frame(label) {
            !self.admission.may_refuse_frames()
        } else {
            self.admission.is_passing(label)
        }
    }

    /// Returns whether departures must be reported ([`OutputBuffer::report_departures`]) before the VC's next cell is
    /// offered to a port with deferred order: if the policy decides, a cell may be pushed out, or the VC's queue may be
    /// empty.
    #[inline]
    pub(super) fn must_report_before(&self, label: Label) -> bool {
        self.deferred_dequeues > 0
            && ((!self.admits_all() && self.admission.starts_frame(label))
                || self.occupancy >= self.capacity
                || self.ahead(label) <= self.deferred_dequeues)
    }

    /// Returns the number of cells in the queue that a VC's cells enter, including cells whose departure is not reported
    /// yet.
    fn ahead(&self, label: Label) -> u32 {
        self.queue.in_queue_of(label).unwrap_or(self.occupancy + self.deferred_dequeues)
    }

    /// Returns a lower bound on the number of departures before a cell of this VC leaves, if it arrives now.
    pub(super) fn least_ahead(&self, label: Label) -> u32 {
        // In a single queue, cells in front of this cell may be pushed out.
        self.queue.in_queue_of(label).unwrap_or(0).saturating_sub(self.deferred_dequeues)
    }

    /// Reports departures to a policy that follows individual cells. Called before each decision.
    #[inline]
    pub(super) fn report_to_policy(&mut self) {
        self.queue.report_to_policy(&mut self.admission);
    }

    #[inline(always)]
    fn depart(&mut self, cells: u32) {
        self.gone += u64::from(cells);
        self.queue.on_departures(cells);
    }

    /// Asks the policy about the frame whose first cell has arrived.
    #[inline(never)]
    fn judge_frame(&mut self, cell: Cell) {
        self.dequeue_deferred();
        self.report_to_policy();
        let view = View {
            occupancy: self.occupancy,
            counted: self.occupancy,
            capacity: self.capacity,
            active_vcs: self.counts.active_vcs,
            per_vc: &self.counts.per_vc,
            tagged: cell.tagged(),
            capable: cell.capable(),
            now: self.now,
        };
        self.admission.judge_frame(&view, cell);
    }

    /// Offers a cell whose frame is refused or for which there is no room.
    #[cold]
    fn offer_unwelcome(&mut self, cell: Cell) -> bool {
        let mut verdict =
            self.admission.verdict(cell, self.occupancy >= self.capacity, self.queue.awaits_frames_of(cell.label()));
        if verdict == Verdict::PushOut {
            self.push_out_front(cell);
            verdict = self.admission.final_verdict(cell, self.occupancy >= self.capacity);
        }
        match verdict {
            Verdict::Enter => self.enqueue(cell),
            Verdict::DiscardHeld(_) => self.discard_awaiting(cell.label()),
            Verdict::Refuse(_) | Verdict::PushOut => {}
        }
        verdict == Verdict::Enter
    }

    /// Passes the next cell to the transmitter.
    #[inline]
    pub(super) fn take(&mut self) -> Option<Cell> {
        if self.deferred_dequeues > 0 {
            self.dequeue_deferred();
        }
        if self.ready() == 0 {
            self.queue.on_idle();
            return None;
        }
        let mut cell = None;
        self.defer_dequeue(1);
        self.report_departures(ReportGranularity::Each, |run, _| cell = Some(run.last));
        assert!(cell.is_some(), "a waiting cell can be sent");
        cell
    }

    /// Records that the cell which [`OutputBuffer::take`] has passed on is dropped at the head of the queue instead.
    pub(super) fn drop_taken(&mut self, label: Label) {
        self.gone -= 1;
        self.queue.on_dropped(label);
    }

    /// Passes the next `cells` cells to the transmitter and defers their removal from the queue. At least `cells` cells
    /// must be ready. In a FIFO, the caller knows these cells; with deferred order, [`OutputBuffer::report_departures`]
    /// determines them.
    #[inline(always)]
    pub(super) fn defer_dequeue(&mut self, cells: u32) {
        self.occupancy -= cells;
        self.tracker.fall(self.occupancy);
        self.depart(cells);
        if W::KEPT == Kept::Number {
            return;
        }
        self.deferred_dequeues += cells;
        if self.deferred_dequeues > MOST_DEFERRED_DEQUEUES && self.queue.departures() == Departures::AtAdmission {
            self.dequeue_deferred();
        }
    }

    /// Updates the per-VC counts with all departures since the last call, and calls `report(run, after)` for each
    /// departed run ([`WaitingCells::take`]).
    #[inline]
    pub(super) fn report_departures(&mut self, granularity: ReportGranularity, report: impl FnMut(Run, u32)) {
        let gone = std::mem::take(&mut self.deferred_dequeues);
        self.queue.take(gone, &mut self.counts, granularity, report);
    }

    /// Updates the per-VC counts with all departures. Must be called after [`OutputBuffer::defer_dequeue`] before
    /// counts are read. The port calls it before the policy decides.
    #[inline]
    pub(super) fn dequeue_deferred(&mut self) {
        debug_assert!(
            self.deferred_dequeues == 0 || self.queue.in_queue_of(Label::default()).is_none(),
            "departures from several queues must be reported"
        );
        self.report_departures(ReportGranularity::Runs, |_, _| {});
    }

    /// Returns whether all counts of waiting cells agree, for debug builds.
    pub(super) fn is_consistent(&self) -> bool {
        let in_queue = self.occupancy + self.deferred_dequeues;
        let counts = &self.counts;
        self.queue.awaiting() <= self.occupancy
            && (W::KEPT == Kept::Number
                || (self.queue.stored() == in_queue
                    && counts.per_vc.iter().sum::<u32>() == in_queue
                    && counts.active_vcs as usize == counts.per_vc.iter().filter(|&&cells| cells > 0).count()))
    }

    /// Returns the number of cells that can be sent: all waiting cells, except cells of incomplete frames.
    pub(super) fn ready(&self) -> u32 {
        self.occupancy - self.queue.awaiting()
    }

    /// Returns `Y_i`, the number of waiting cells of each VC, by label.
    pub(super) fn per_vc(&self) -> &TiSlice<Label, u32> {
        assert_eq!(self.deferred_dequeues, 0, "counts are read only when they are up to date");
        &self.counts.per_vc
    }

    pub(super) fn state(&self) -> PortState {
        let state = self.admission.port_state(self.per_vc(), self.tracker.max_queue());
        let forwarded = PortCounters::sum(state.counters.iter().copied()).forwarded;
        assert_eq!(forwarded, self.gone, "cells that were not refused and do not wait have departed");
        state
    }

    #[inline]
    fn enqueue(&mut self, cell: Cell) {
        self.count_in(Run { last: cell, cells: 1 });
        self.occupancy += 1;
        self.tracker.rise(self.occupancy);
    }

    /// Appends cells to the queue and counts them by VC.
    #[inline]
    fn count_in(&mut self, run: Run) {
        if W::KEPT == Kept::Cells {
            self.counts.put(run.last.label(), run.cells);
            self.queue.put(run, &mut self.admission);
        }
    }

    /// Returns the outcome of a VC's next cells, starting with this one, while there is room. If a frame starts, asks
    /// the policy as the first cell's arrival would. The caller must then offer that cell.
    #[inline]
    pub(super) fn fate(&mut self, cell: Cell) -> FrameOutcome {
        if self.admission.take_start(cell.label()) {
            if self.admits_all() {
                self.admission.pass_frame(cell.label());
            } else {
                self.judge_frame(cell);
            }
        }
        self.admission.fate(cell)
    }

    /// Admits cells whose outcome is [`FrameOutcome::Admitted`]. The result is the same as if the cells had been
    /// offered one by one while `gone` cells departed. There must be room for each cell, and the queue length must stay
    /// within `range`.
    #[inline(always)]
    pub(super) fn admit(&mut self, run: Run, range: QueueRange, gone: u32) {
        debug_assert!(range.largest <= self.capacity, "no queue exceeds its buffer");
        self.admission.on_run(run);
        self.count_in(run);
        self.occupancy += run.cells;
        self.tracker.include(range);
        self.defer_dequeue(gone);
    }

    /// Admits cells of several VCs to a port without a queue. The result is the same as if the cells had been offered
    /// one by one while `gone` cells departed. There must be room for each cell, and the queue length must stay within
    /// `range`.
    #[inline]
    pub(super) fn admit_in_any_order(&mut self, cells: u32, range: QueueRange, gone: u32) {
        debug_assert_eq!(W::KEPT, Kept::Number, "the order of the cells must not matter here");
        debug_assert!(range.largest <= self.capacity, "no queue exceeds its buffer");
        self.occupancy += cells;
        self.tracker.include(range);
        self.defer_dequeue(gone);
    }

    /// Counts cells of a VC that arrive interleaved with others, as if they were offered one by one.
    /// [`OutputBuffer::admit_in_any_order`] admits them.
    #[inline]
    pub(super) fn count_interleaved(&mut self, run: Run) {
        if run.last.is_rm() {
            self.admission.on_cells_between(run.last.label(), run.cells);
        } else {
            self.admission.on_run(run);
        }
    }

    /// Discards the waiting cells of a frame that has lost a cell and can no longer be complete.
    fn discard_awaiting(&mut self, label: Label) {
        let cells = self.queue.discard_awaiting(label);
        self.occupancy -= cells;
        self.tracker.fall(self.occupancy);
        self.admission.on_held_discarded(label, cells);
        if cells > 0 {
            self.counts.take(label, cells);
        }
    }

    /// Makes room for `arriving` if possible ([`WaitingCells::push_out_front`], [`WaitingCells::push_out_longest`]).
    pub(super) fn push_out_front(&mut self, arriving: Cell) {
        self.dequeue_deferred();
        if self.admission.pushes_out_longest() {
            for (victim, cells) in self.queue.push_out_longest() {
                self.count_pushed_out(victim, cells, arriving);
            }
        } else if let Some((victim, cells)) = self.queue.push_out_front() {
            self.count_pushed_out(victim, cells, arriving);
        }
    }

    /// Counts cells of the frame of `victim` that have made room for `arriving`.
    fn count_pushed_out(&mut self, victim: Cell, pushed_out: u32, arriving: Cell) {
        self.counts.take(victim.label(), pushed_out);
        self.occupancy -= pushed_out;
        self.tracker.fall(self.occupancy);
        self.admission.on_pushed_out(victim, pushed_out, arriving);
    }
}
