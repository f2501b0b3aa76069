//! The fast engine's output port, whose queue consists of runs of cells. Many cells can be admitted at once, and
//! departures can be deferred.
//!
//! Source: `docs/mechanisms.md` 2.0. Processing a run as a whole has the same effect as a [`Port`](crate::port::Port)
//! that processes its cells one after another. Both use the same `Admission`.

use std::collections::VecDeque;

use typed_index_collections::TiSlice;

use super::run_queues::RunQueues;
use crate::aal5::Framing;
use crate::cell::{Cell, Run};
use crate::index::Label;
use crate::policy::{BufferPolicy, CellFollower, View};
use crate::port::admission::{Admission, Verdict, is_of_frame};
use crate::port::{FrameOutcome, PortCounters, PortState};
use crate::queue_range::{QueueRange, QueueTracker};
use crate::rng::Stream;
use crate::scheduler::waiting::{Counts, ReportGranularity};
use crate::scheduler::{BacklogSensitivity, Service};
use crate::units::Time;
use reassembly::Reassembly;

mod reassembly;

pub(super) struct OutputBuffer {
    pub(super) capacity: u32,
    /// Number of waiting cells: the cells in the queue minus the first `deferred_dequeues`.
    pub(super) occupancy: u32,
    pub(super) tracker: QueueTracker,
    fifo: VecDeque<Run>,
    /// Number of cells that have left ([`OutputBuffer::defer_dequeue`]) but still count in the queue and in the per-VC
    /// counts.
    pub(super) deferred_dequeues: u32,
    pub(super) counts: Counts,
    pub(super) admission: Admission,
    pub(super) reassembly: Reassembly,
    /// Queues that contain the waiting cells instead of `fifo`, if the port is not first in, first out.
    queues: Option<Box<RunQueues>>,
    /// True if queuing a cell takes more than appending it to `fifo`: VCs merge, there are several queues, or the
    /// policy follows cells.
    apart: bool,
    /// True if `fifo` and `counts` are maintained ([`OutputBuffer::without_queue`]).
    pub(super) keeps_queue: bool,
    /// Number of cells passed to the transmitter, of all VCs.
    gone: u64,
    /// Arrival time of the next cell offered, for a policy that reads the time.
    pub(super) now: Time,
    /// Number of departures already reported to a policy that follows cells.
    reported_gone: u64,
    follows: bool,
}

/// Maximum number of deferred dequeues before the counts are updated. It is small enough for the cells' places to
/// remain in the L1 cache.
const MOST_DEFERRED_DEQUEUES: u32 = 256;

impl OutputBuffer {
    /// Creates a port, as [`Port::new`](crate::port::Port::new) does.
    pub(super) fn new(capacity: Option<u32>, vcs: usize, policy: Box<dyn BufferPolicy>, rng: Stream) -> Self {
        let admission = Admission::new(vcs, policy, rng);
        Self {
            capacity: capacity.unwrap_or(u32::MAX),
            occupancy: 0,
            tracker: QueueTracker::default(),
            fifo: VecDeque::new(),
            deferred_dequeues: 0,
            counts: Counts::new(vcs),
            reassembly: Reassembly::default(),
            queues: None,
            apart: admission.follows_cells(),
            keeps_queue: true,
            gone: 0,
            reported_gone: 0,
            now: Time::default(),
            follows: admission.follows_cells(),
            admission,
        }
    }

    /// Lets VCs merge at this port, like [`Port::merging`](crate::port::Port::merging).
    #[must_use]
    pub(super) fn merging(mut self, merging: &TiSlice<Label, bool>) -> Self {
        if merging.contains(&true) {
            self.admission.assert_may_merge();
            self.reassembly = Reassembly::new(merging);
            self.apart = true;
        }
        self
    }

    /// Replaces the queue by a scheduler's queues, like [`Port::scheduled`](crate::port::Port::scheduled).
    #[must_use]
    pub(super) fn scheduled(mut self, service: Option<Service>) -> Self {
        if let Some(service) = service {
            self.admission.assert_may_be_scheduled(self.reassembly.is_used());
            self.queues = Some(Box::new(RunQueues::new(service)));
            self.apart = true;
        }
        self
    }

    /// Makes packets delimit themselves, like [`Port::framed`](crate::port::Port::framed).
    #[must_use]
    pub(super) fn framed(mut self, framing: Framing) -> Self {
        self.admission = self.admission.framed(framing);
        self
    }

    /// Does without the queue, at a port that no probe looks at before the end of the run. If nothing depends on which
    /// cells wait (the port is first in, first out, and its policy does not read counts), the port only tracks their
    /// number. The caller knows when each cell starts, and counts those that would start after the end.
    #[must_use]
    pub(super) fn without_queue(mut self) -> Self {
        self.keeps_queue = self.apart || self.pushes_out() || self.admission.policy.reads_counts();
        self
    }

    /// Returns whether the order of departures is deferred, because a later cell may leave first or push out an earlier
    /// one.
    pub(super) fn defers_order(&self) -> bool {
        self.queues.is_some() || self.pushes_out()
    }

    fn pushes_out(&self) -> bool {
        self.admission.pushes_out() && self.capacity < u32::MAX
    }

    /// Admits an arriving cell, or refuses it and counts the reason. Returns whether it was admitted.
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
            self.occupancy == 0 && self.deferred_dequeues == 0 && !self.reassembly.is_used(),
            "nothing waits"
        );
        if self.admission.on_cell(cell, self.admits_all()).starts() {
            self.judge_frame(cell);
        }
        if self.capacity == 0 || !self.admission.is_passing(cell.label()) {
            self.offer_unwelcome(cell);
            return false;
        }
        if let Some(queues) = &mut self.queues {
            queues.bypass_queue(cell.label());
        } else if self.follows {
            self.report_to_policy();
            self.follower().on_enter(cell.label(), 1);
        }
        self.tracker.rise(1);
        self.gone += 1;
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

    /// Returns whether, as long as there is room, a VC's next cells are admitted without a decision of the policy.
    #[inline]
    pub(super) fn admits_unasked(&self, label: Label) -> bool {
        if self.admission.starts_frame(label) {
            !self.admission.may_refuse_frames()
        } else {
            self.admission.is_passing(label)
        }
    }

    /// Returns how the scheduler depends on the order of cells of different VCs, and whether each VC has its own queue.
    /// If each has, and while there is room, the order affects only when queues fill. Returns `None` without a
    /// scheduler.
    pub(super) fn backlog_sensitivity(&self) -> Option<(BacklogSensitivity, bool)> {
        self.queues.as_ref().map(|queues| (queues.backlog_sensitivity(), queues.one_a_vc()))
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

    /// Returns the number of cells in a VC's queue, including cells whose departure is not reported yet.
    pub(super) fn ahead(&self, label: Label) -> u32 {
        self.queues.as_ref().map_or(self.occupancy + self.deferred_dequeues, |queues| queues.ahead(label))
    }

    /// Returns a lower bound on the number of departures up to the next end of a frame. The port must have deferred
    /// order and waiting cells.
    pub(super) fn least_to_an_end(&self) -> u32 {
        self.queues.as_ref().map_or(1, |queues| queues.least_to_an_end())
    }

    /// Returns a lower bound on the number of departures before a cell of this VC leaves, if it arrives now.
    pub(super) fn least_ahead(&self, label: Label) -> u32 {
        // Cells in front of this cell may be pushed out.
        self.queues.as_ref().map_or(0, |queues| queues.ahead(label)).saturating_sub(self.deferred_dequeues)
    }

    /// Returns the component of the policy that follows cells. The policy must have one.
    fn follower(&mut self) -> &mut dyn CellFollower {
        self.admission.follower().expect("the policy observes single cells")
    }

    /// Reports departures to a policy that follows cells. Called before each decision and before another cell enters.
    #[inline]
    pub(super) fn report_to_policy(&mut self) {
        if self.follows && self.reported_gone < self.gone {
            let cells = self.gone - std::mem::replace(&mut self.reported_gone, self.gone);
            self.follower()
                .on_leave(u32::try_from(cells).expect("the number of cells is at most the number of waiting cells"));
        }
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
        self.admission.judge_frame(&view, cell.label());
    }

    /// Offers a cell whose frame is refused or for which there is no room.
    #[cold]
    fn offer_unwelcome(&mut self, cell: Cell) -> bool {
        let mut verdict =
            self.admission.verdict(cell, self.occupancy >= self.capacity, self.reassembly.has(cell.label()));
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
        if self.queues.is_none() {
            self.dequeue_deferred();
        }
        if self.ready() == 0 {
            return None;
        }
        let mut cell = None;
        self.defer_dequeue(1);
        self.report_departures(ReportGranularity::Each, |run, _| cell = Some(run.last));
        assert!(cell.is_some(), "a waiting cell can be sent");
        cell
    }

    /// Passes the next `cells` cells to the transmitter and defers their removal from the queue. At least `cells` cells
    /// must be ready. In a FIFO, the caller knows these cells; with deferred order, [`OutputBuffer::report_departures`]
    /// determines them.
    #[inline(always)]
    pub(super) fn defer_dequeue(&mut self, cells: u32) {
        self.occupancy -= cells;
        self.tracker.fall(self.occupancy);
        self.gone += u64::from(cells);
        if !self.keeps_queue {
            return;
        }
        self.deferred_dequeues += cells;
        if self.deferred_dequeues > MOST_DEFERRED_DEQUEUES && !self.defers_order() {
            self.dequeue_deferred();
        }
    }

    /// Updates the per-VC counts with all departures since the last call, and calls `report(run, after)` for each
    /// departed run. `after` is the number of these cells that left before the run's first cell
    /// (`ReportGranularity::Each`) or before its last (`ReportGranularity::Runs`).
    #[inline]
    pub(super) fn report_departures(&mut self, granularity: ReportGranularity, mut report: impl FnMut(Run, u32)) {
        let gone = std::mem::take(&mut self.deferred_dequeues);
        if let Some(queues) = &mut self.queues {
            queues.serve(gone, &mut self.counts, granularity, report);
            return;
        }
        let mut after = 0;
        while after < gone {
            let run = Run::take_first_cells(&mut self.fifo, gone - after).expect("departed cells were in the queue");
            self.counts.take(run.last.label(), run.cells);
            report(run, if granularity == ReportGranularity::Each { after } else { after + run.cells - 1 });
            after += run.cells;
        }
    }

    /// Reports the departed cells of runs that still have waiting cells.
    pub(super) fn report_parts(&mut self, report: impl FnMut(Run)) {
        if let Some(queues) = &mut self.queues {
            queues.report_parts(report);
        }
    }

    /// Updates the per-VC counts with all departures. Must be called after [`OutputBuffer::defer_dequeue`] before
    /// counts are read. The port calls it before the policy decides.
    #[inline]
    pub(super) fn dequeue_deferred(&mut self) {
        debug_assert!(
            self.deferred_dequeues == 0 || self.queues.is_none(),
            "departures from several queues must be reported"
        );
        self.report_departures(ReportGranularity::Runs, |_, _| {});
    }

    /// Returns the number of cells that can be sent: all waiting cells, except cells of incomplete frames.
    pub(super) fn ready(&self) -> u32 {
        self.occupancy - self.reassembly.cells
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
        if self.keeps_queue {
            self.count_in(Run { last: cell, cells: 1 });
        }
        self.occupancy += 1;
        self.tracker.rise(self.occupancy);
    }

    /// Appends cells to the queue and counts them by VC.
    #[inline]
    fn count_in(&mut self, run: Run) {
        self.counts.put(run.last.label(), run.cells);
        if !self.apart {
            Run::append(&mut self.fifo, run);
        } else if let Some(queues) = &mut self.queues {
            queues.push(run);
        } else if self.follows {
            self.report_to_policy();
            self.follower().on_enter(run.last.label(), run.cells);
            Run::append(&mut self.fifo, run);
        } else {
            self.reassembly.add(run, &mut self.fifo);
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
        if self.keeps_queue {
            self.count_in(run);
        }
        self.occupancy += run.cells;
        self.tracker.include(range);
        self.defer_dequeue(gone);
    }

    /// Admits cells of several VCs to a port without a queue. The result is the same as if the cells had been offered
    /// one by one while `gone` cells departed. There must be room for each cell, and the queue length must stay within
    /// `range`.
    #[inline]
    pub(super) fn admit_in_any_order(&mut self, cells: u32, range: QueueRange, gone: u32) {
        debug_assert!(!self.keeps_queue, "the order of the cells must not matter here");
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

    /// Returns whether the policy may learn of all these cells of a VC when the first one arrives. In fact they arrive
    /// one by one while `left` cells leave (`CellFollower::enters_at_once`).
    #[inline]
    pub(super) fn enters_at_once(&mut self, label: Label, left: u32, close: bool) -> bool {
        if !self.follows {
            return true;
        }
        self.report_to_policy();
        self.follower().enters_at_once(label, left, close)
    }

    /// Returns the runs that the latest offer completed, at a port where VCs merge.
    pub(super) fn released(&self) -> impl Iterator<Item = Run> {
        self.fifo.range(self.fifo.len() - self.reassembly.released..).copied()
    }

    /// Discards the waiting cells of a frame that has lost a cell and can no longer be complete.
    fn discard_awaiting(&mut self, label: Label) {
        let cells = self.reassembly.discard(label);
        self.occupancy -= cells;
        self.tracker.fall(self.occupancy);
        self.admission.on_held_discarded(label, cells);
        if cells > 0 {
            self.counts.take(label, cells);
        }
    }

    /// Makes room for `arriving`. Removes the first waiting cell that does not end a frame, and the waiting rest of its
    /// frame except the last cell, which marks where the next frame begins.
    pub(super) fn push_out_front(&mut self, arriving: Cell) {
        self.dequeue_deferred();
        let ends_frame = |run: &Run| run.cells == 1 && run.last.last_cell();
        let data = || self.fifo.iter().filter(|run| !run.last.is_rm());
        let Some(&victim) = data().find(|run| !ends_frame(run)).or_else(|| data().next()) else {
            return; // Nothing can be pushed out: the arriving cell is lost.
        };
        let keeps_last = !ends_frame(&victim);
        let victim = victim.last;
        let mut pushed_out = 0;
        self.fifo.retain_mut(|run| {
            if !is_of_frame(run.last, victim) {
                return true;
            }
            let kept = u32::from(keeps_last && run.last.last_cell());
            pushed_out += run.cells - kept;
            run.cells = kept;
            kept > 0
        });
        self.counts.take(victim.label(), pushed_out);
        self.occupancy -= pushed_out;
        self.tracker.fall(self.occupancy);
        self.admission.on_pushed_out(victim, pushed_out, arriving);
    }
}
