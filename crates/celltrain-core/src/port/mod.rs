//! The output port: a buffer, its per-VC counts, its counters, and the frame state that all policies share.
//!
//! Source: `docs/mechanisms.md` 2.0, whose skeleton [`Port::offer`] follows. The queue counts waiting cells, not the
//! cell in service: a cell that [`Port::take`] passes to the transmitter no longer counts.
//!
//! [`Port`] is deliberately simple, like the reference engine that uses it: it stores single cells in plain queues and
//! counts them one by one. The fast engine's port (`OutputBuffer`) has its own queues and counts and is tested against
//! this port. Both use the same `Admission`.

pub(crate) mod admission;
mod pause_frames;
mod queues;
mod stored;
mod under_way;

pub use admission::FrameOutcome;
pub(crate) use pause_frames::{PauseFrames, PauseOrder};
pub use queues::CellQueues;
pub(crate) use stored::Freed;

use std::collections::VecDeque;

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use crate::aal5::Framing;
use crate::cell::{Cell, FrameNumber};
use crate::coverage::reached;
use crate::events::Loss;
use crate::index::Label;
use crate::memory::QueueEnd;
use crate::policy::{BufferPolicy, View};
use crate::queue_range::{QueueRange, QueueTracker};
use crate::rng::Stream;
use crate::scheduler::Service;
use crate::switching::PacketAdmission;
use crate::units::Time;
use admission::{Admission, Verdict, is_of_frame};

/// Counts of the cells offered to a port, for one VC or for all VCs together. At any time, `offered` equals the sum of
/// the other cell counts and the waiting cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Number of cells that arrived.
    pub offered: u64,
    /// Number of cells passed to the transmitter.
    pub forwarded: u64,
    /// Number of arriving cells lost because the buffer was full.
    pub lost_overflow: u64,
    /// Number of waiting cells pushed out to make room.
    pub lost_pushed_out: u64,
    /// Cells of frames that the policy refused as a whole.
    pub discarded_frame: u64,
    /// Cells of frames that the shared memory refused whole.
    pub refused_by_memory: u64,
    /// Cells of frames that had already lost a cell.
    pub discarded_remainder: u64,
    /// Number of frames that the policy or the memory refused whole.
    pub discarded_frames: u64,
    /// Number of frames that lost a cell because the buffer was full.
    pub cut_frames: u64,
}

impl PortCounters {
    /// Returns the number of cells lost because the buffer was full, including waiting cells that were pushed out.
    pub fn lost(&self) -> u64 {
        self.lost_overflow + self.lost_pushed_out
    }

    /// Returns the number of cells of frames that were refused whole, or had already lost a cell.
    pub fn discarded(&self) -> u64 {
        self.discarded_frame + self.refused_by_memory + self.discarded_remainder
    }

    /// Adds the counters of all VCs of a port.
    pub fn sum(counters: impl IntoIterator<Item = PortCounters>) -> PortCounters {
        let mut sum = PortCounters::default();
        for counters in counters {
            sum.add(&counters);
        }
        sum
    }

    pub(crate) fn add(&mut self, other: &PortCounters) {
        self.offered += other.offered;
        self.forwarded += other.forwarded;
        self.lost_overflow += other.lost_overflow;
        self.lost_pushed_out += other.lost_pushed_out;
        self.discarded_frame += other.discarded_frame;
        self.refused_by_memory += other.refused_by_memory;
        self.discarded_remainder += other.discarded_remainder;
        self.discarded_frames += other.discarded_frames;
        self.cut_frames += other.cut_frames;
    }
}

/// An event that a port reports when a cell arrives.
pub enum PortEvent<'a> {
    /// The first cell of a frame arrived, and the policy decided about the frame.
    Judged {
        /// The buffer as the policy saw it.
        view: &'a View<'a>,
        /// True if the policy admitted the frame.
        admitted: bool,
        /// The policy, which can explain its decision.
        policy: &'a dyn BufferPolicy,
    },
    /// A waiting cell was removed.
    PushedOut {
        /// The cell.
        cell: Cell,
        /// True if this is the first cell of the frame that this port loses because the buffer is full.
        cuts: bool,
    },
    /// The arriving cell does not enter the buffer.
    Lost(Loss),
    /// The arriving cell enters the buffer.
    Admitted,
}

/// The buffer as seen by a policy, without the cell counts of VCs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer {
    /// X.
    pub(crate) occupancy: u32,
    /// Number of cells that a port with marking compares with its marking limits.
    pub(crate) counted: u32,
    /// K.
    pub(crate) capacity: u32,
    /// `N_a`.
    pub(crate) active_vcs: u32,
}

/// The state of a port at the end of a run, in any engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortState {
    /// Counts of each VC's cells, by label.
    pub counters: TiVec<Label, PortCounters>,
    /// Waiting cells of each VC, by label.
    pub waiting: TiVec<Label, u32>,
    /// Largest number of cells waiting at any time.
    pub max_queue: u32,
    /// Number of formula results of the port's policy that were replaced because they were NaN or infinite.
    pub replaced_results: u64,
}

/// An output port's buffer and policy, which handle one cell at a time.
pub struct Port {
    capacity: u32,
    /// Cells waiting.
    occupancy: u32,
    tracker: QueueTracker,
    /// Cells that can be sent, if the port is first in, first out.
    fifo: VecDeque<Cell>,
    /// The queues that other schedulers use instead of `fifo`.
    queues: Option<CellQueues>,
    /// Cells of each VC's incomplete frame, by label; `None` for a VC whose cells need not wait for the others.
    held: TiVec<Label, Option<Vec<Cell>>>,
    /// Admission rule of a port that stores packets whole; `None` if cells may leave before the rest of their packet
    /// arrives.
    stores: Option<PacketAdmission>,
    /// Places that each VC's arriving packet has taken for cells that have not arrived, by label.
    places: TiVec<Label, u32>,
    /// The packet of each VC that has begun to leave, by label.
    leaving: TiVec<Label, Option<FrameNumber>>,
    per_vc: TiVec<Label, u32>,
    /// Cells of each VC passed to the transmitter, by label.
    forwarded: TiVec<Label, u64>,
    admission: Admission,
}

impl Port {
    /// Creates a port with room for `capacity` waiting cells (`None`: infinite), crossed by `vcs` VCs.
    pub fn new(capacity: Option<u32>, vcs: usize, policy: Box<dyn BufferPolicy>, rng: Stream) -> Self {
        Self {
            capacity: capacity.unwrap_or(u32::MAX),
            occupancy: 0,
            tracker: QueueTracker::default(),
            fifo: VecDeque::new(),
            queues: None,
            held: ti_vec![None; vcs],
            stores: None,
            places: ti_vec![0; vcs],
            leaving: ti_vec![None; vcs],
            per_vc: ti_vec![0; vcs],
            forwarded: ti_vec![0; vcs],
            admission: Admission::new(vcs, policy, rng),
        }
    }

    /// Lets VCs merge at this port: frames of the VCs in `merging`, by label, wait until they are complete and are then
    /// sent back to back. A frame that loses a cell is discarded as a whole.
    #[must_use]
    pub fn merging(mut self, merging: &TiSlice<Label, bool>) -> Self {
        if merging.contains(&true) {
            self.admission.assert_may_merge();
        }
        self.held = merging.iter().map(|&merges| merges.then(Vec::new)).collect();
        self
    }

    /// Replaces the port's queue with the queues of a scheduler, if the scheduler has several. No VCs may merge at such
    /// a port, and its policy may not push out cells.
    #[must_use]
    pub fn scheduled(mut self, service: Option<Service>) -> Self {
        if service.is_some() {
            self.admission.assert_may_be_scheduled(self.held.iter().any(Option::is_some));
        }
        self.queues = service.map(CellQueues::new);
        self
    }

    /// Sets the framing of packets. With [`Framing::Packets`], the policy must not push out cells from the front, and
    /// no VCs may merge.
    #[must_use]
    pub fn framed(mut self, framing: Framing) -> Self {
        let merges = self.held.iter().any(Option::is_some);
        assert!(!merges || framing == Framing::Aal5, "merging VCs need last cells");
        self.admission = self.admission.framed(framing);
        self
    }

    /// Admits a cell that arrives at time 0, or counts the reason for its refusal. Returns whether the cell was
    /// admitted.
    pub fn offer(&mut self, cell: Cell) -> bool {
        self.offer_observed(cell, Time::default(), |_| {})
    }

    /// Offers a cell that arrives at `now`, and reports events to `emit` as they happen.
    pub fn offer_observed(&mut self, cell: Cell, now: Time, mut emit: impl FnMut(PortEvent<'_>)) -> bool {
        let label = cell.label();
        if cell.is_rm() {
            self.admission.on_cells_between(label, 1);
            if self.is_full() {
                self.admission.lose_rm(label);
                emit(PortEvent::Lost(Loss::NoRoom { cuts: false }));
                return false;
            }
            self.enqueue(cell);
            emit(PortEvent::Admitted);
            return true;
        }
        if self.admission.on_arrival(cell) {
            self.judge(cell, now, self.buffer(), &mut emit);
        }
        let holds = self.held[label].is_some();
        let mut verdict = self.admission.verdict(cell, self.is_full(), holds);
        if verdict == Verdict::PushOut {
            self.push_out_front(cell, &mut emit);
            verdict = self.admission.final_verdict(cell, self.is_full());
        }
        match verdict {
            Verdict::Enter => {
                self.enqueue(cell);
                emit(PortEvent::Admitted);
            }
            Verdict::DiscardHeld(loss) => {
                self.discard_held(label, &mut emit);
                emit(PortEvent::Lost(loss));
            }
            Verdict::Refuse(loss) => emit(PortEvent::Lost(loss)),
            Verdict::PushOut => unreachable!("the final decision does not remove cells"),
        }
        verdict == Verdict::Enter
    }

    /// Returns the buffer that the policy sees if the port shares no memory.
    pub(crate) fn buffer(&self) -> Buffer {
        let Self { occupancy, capacity, .. } = *self;
        Buffer { occupancy, counted: occupancy, capacity, active_vcs: self.active_vcs() }
    }

    /// Lets the policy decide about the frame that starts with `cell`. Returns whether the frame may enter.
    pub(crate) fn judge(&mut self, cell: Cell, now: Time, buffer: Buffer, mut emit: impl FnMut(PortEvent<'_>)) -> bool {
        let Buffer { occupancy, counted, capacity, active_vcs } = buffer;
        let (tagged, capable) = (cell.tagged(), cell.capable());
        let view = View { occupancy, counted, capacity, active_vcs, per_vc: &self.per_vc, tagged, capable, now };
        let admitted = self.admission.judge_frame(&view, cell);
        emit(PortEvent::Judged { view: &view, admitted, policy: &*self.admission.policy });
        admitted
    }

    /// Returns whether an arriving cell enters, provided there is room.
    pub(crate) fn wants(&self, cell: Cell) -> bool {
        self.admission.fate(cell) != FrameOutcome::Refused
    }

    pub(crate) fn admission_mut(&mut self) -> &mut Admission {
        &mut self.admission
    }

    fn is_full(&self) -> bool {
        self.room() == 0
    }

    /// Returns how many cells the port has room for.
    pub(crate) fn room(&self) -> u32 {
        self.capacity.saturating_sub(self.occupancy)
    }

    pub(crate) fn enqueue(&mut self, cell: Cell) {
        let label = cell.label();
        self.occupancy += 1;
        self.tracker.rise(self.occupancy);
        self.per_vc[label] += 1;
        self.places[label] = self.places[label].saturating_sub(1);
        if let Some(follower) = self.admission.follower() {
            follower.on_enter(label, 1);
        }
        let Some(held) = &mut self.held[label] else { return self.make_ready(cell) };
        held.push(cell);
        if cell.last_cell() {
            for cell in std::mem::take(held) {
                self.make_ready(cell);
            }
        }
    }

    /// Puts a waiting cell into the queue from which it can be sent.
    fn make_ready(&mut self, cell: Cell) {
        match &mut self.queues {
            Some(queues) => queues.push(cell),
            None => self.fifo.push_back(cell),
        }
    }

    /// Returns whether a cell can be sent.
    fn is_ready(&self) -> bool {
        let held: usize = self.held.iter().flatten().map(Vec::len).sum();
        self.occupancy as usize > held
    }

    /// Discards the waiting cells of a frame that can no longer be completed.
    fn discard_held(&mut self, label: Label, emit: &mut impl FnMut(PortEvent<'_>)) {
        reached!(AwaitingFrameDiscarded if self.held[label].as_ref().is_some_and(|held| !held.is_empty()));
        for cell in self.held[label].iter_mut().flat_map(std::mem::take) {
            self.occupancy -= 1;
            self.tracker.fall(self.occupancy);
            self.per_vc[cell.label()] -= 1;
            self.admission.on_held_discarded(label, 1);
            if let Some(follower) = self.admission.follower() {
                follower.on_leave(1);
            }
            // The loss of the arriving cell damaged the frame, not the removal of this cell.
            emit(PortEvent::PushedOut { cell, cuts: false });
        }
    }

    /// Makes room for `arriving`: removes the waiting cell closest to transmission, among cells that do not end a
    /// frame. Also removes the other waiting cells of the removed cell's frame, except for the last cell, which marks
    /// where the next frame begins. If the policy has several queues, the longest queue loses frames instead.
    pub(crate) fn push_out_front(&mut self, arriving: Cell, emit: &mut impl FnMut(PortEvent<'_>)) {
        if let Some(queues) = &mut self.queues {
            let removed = queues.push_out_longest();
            reached!(LongestQueueLosesNothing if removed.is_empty());
            reached!(LongestQueueLosesFrames if !removed.is_empty());
            for frame in removed.chunk_by(|&one, &next| is_of_frame(one, next)) {
                frame
                    .iter()
                    .zip(0..)
                    .for_each(|(&cell, number)| emit(PortEvent::PushedOut { cell, cuts: number == 0 }));
                self.count_pushed_out(frame[0], frame.len(), arriving);
            }
            return;
        }
        let data = || self.fifo.iter().filter(|cell| !cell.is_rm());
        let Some(&victim) = data().find(|cell| !cell.last_cell()).or_else(|| data().next()) else {
            reached!(PushOutFindsNothing);
            return; // Nothing can be pushed out: the arriving cell is lost.
        };
        reached!(LastCellPushedOut if victim.last_cell());
        let before = self.fifo.len();
        let mut cuts = true;
        self.fifo.retain(|&cell| {
            let stays = !is_of_frame(cell, victim) || (!victim.last_cell() && cell.last_cell());
            if !stays {
                emit(PortEvent::PushedOut { cell, cuts: std::mem::take(&mut cuts) });
            }
            stays
        });
        self.count_pushed_out(victim, before - self.fifo.len(), arriving);
    }

    /// Counts `cells` cells of the frame of `victim` that have made room for `arriving`.
    fn count_pushed_out(&mut self, victim: Cell, cells: usize, arriving: Cell) {
        let cells = u32::try_from(cells).expect("the size of a buffer in cells fits in 32 bits");
        self.occupancy -= cells;
        self.tracker.fall(self.occupancy);
        self.per_vc[victim.label()] -= cells;
        self.admission.on_pushed_out(victim, cells, arriving);
    }

    /// Removes the first or the last waiting cell of the VCs selected by `is_in`. Such a cell must exist, and the port
    /// must have a single FIFO queue.
    pub(crate) fn remove(&mut self, end: QueueEnd, is_in: impl Fn(Label) -> bool) -> Cell {
        assert!(self.queues.is_none(), "cells can be removed only at a port with a single queue");
        let mut own = self.fifo.iter().enumerate().filter(|(_, cell)| is_in(cell.label())).map(|(place, _)| place);
        let place = match end {
            QueueEnd::Head => own.next(),
            QueueEnd::Tail => own.next_back(),
        };
        let cell = place.and_then(|place| self.fifo.remove(place)).expect("the queue holds a cell");
        self.occupancy -= 1;
        self.tracker.fall(self.occupancy);
        self.per_vc[cell.label()] -= 1;
        cell
    }

    /// Passes the next cell to the transmitter.
    pub fn take(&mut self) -> Option<Cell> {
        if !self.is_ready() {
            if let Some(queues) = &mut self.queues {
                queues.on_idle();
            }
            return None;
        }
        let cell = match &mut self.queues {
            Some(queues) => Some(queues.pop()),
            None => self.fifo.pop_front(),
        }?;
        let label = cell.label();
        self.leaving[label] = (!cell.last_cell()).then_some(cell.frame);
        self.occupancy -= 1;
        self.tracker.fall(self.occupancy);
        self.per_vc[label] -= 1;
        self.forwarded[label] += 1;
        if let Some(follower) = self.admission.follower() {
            follower.on_leave(1);
        }
        Some(cell)
    }

    /// Records that a cell has entered at `now`, at a port whose policy decides at the head of the queue.
    pub(crate) fn on_enter(&mut self, cell: Cell, now: Time) {
        if let Some(queues) = &mut self.queues {
            queues.on_enter(cell, now);
        }
    }

    /// Returns the number of cells left in the queue of a VC. Cells of frames that wait for their last cells do not count.
    pub(crate) fn left_in_queue_of(&self, label: Label) -> u32 {
        let in_single_queue = || u32::try_from(self.fifo.len()).expect("the size of a buffer in cells fits in 32 bits");
        self.queues.as_ref().map_or_else(in_single_queue, |queues| queues.left(label))
    }

    /// Records that the cell which [`Port::take`] has passed on is dropped at the head of the queue instead.
    pub(crate) fn drop_taken(&mut self, cell: Cell) {
        self.forwarded[cell.label()] -= 1;
        if let Some(queues) = &mut self.queues {
            queues.on_dropped(cell.label());
        }
        self.admission.drop_at_head(cell);
    }

    /// Passes the next cell whose VC satisfies `may_go` to the transmitter. The port must be a FIFO.
    pub(crate) fn take_unpaused(&mut self, may_go: impl Fn(Label) -> bool) -> Option<Cell> {
        assert!(self.queues.is_none(), "only ports with a single queue can be paused");
        // A stopped port may hold a very large number of cells that may not be sent.
        let waits = |(label, &cells): (Label, &u32)| cells > 0 && may_go(label);
        if !self.per_vc.iter_enumerated().any(waits) {
            reached!(PausedPortWaits if self.occupancy > 0);
            return None;
        }
        let place = self.fifo.iter().position(|cell| may_go(cell.label()))?;
        reached!(PausedPriorityOvertaken if place > 0);
        let cell = self.fifo.remove(place)?;
        self.fifo.push_front(cell);
        self.take()
    }

    /// Returns whether the port has a single queue.
    pub(crate) fn is_fifo(&self) -> bool {
        self.queues.is_none()
    }

    /// Returns whether other cells of the packet of the cell `sent` are waiting. Cells of a VC wait in order.
    pub(crate) fn has_rest_of(&self, sent: Cell) -> bool {
        let next = || self.waiting().find(|cell| cell.label() == sent.label());
        self.per_vc[sent.label()] > 0 && next().is_some_and(|cell| is_of_frame(cell, sent))
    }

    /// Returns X, the number of waiting cells.
    pub fn occupancy(&self) -> u32 {
        self.occupancy
    }

    /// Returns `Y_i`, the waiting cells of each VC, by label.
    pub fn per_vc(&self) -> &TiSlice<Label, u32> {
        &self.per_vc
    }

    /// Returns `N_a`, the number of VCs with at least one waiting cell.
    pub fn active_vcs(&self) -> u32 {
        u32::try_from(self.per_vc.iter().filter(|&&cells| cells > 0).count()).expect("all labels of VCs fit in 32 bits")
    }

    /// Returns `M_j`, the cells of the policy's virtual queues, by label, if it has any.
    pub fn virtual_queues(&mut self) -> Option<&TiSlice<Label, u32>> {
        self.admission.follower()?.virtual_queues()
    }

    /// Returns the largest number of waiting cells so far.
    pub fn max_queue(&self) -> u32 {
        self.tracker.max_queue()
    }

    /// Returns the smallest and largest number of waiting cells since the latest sample.
    pub fn range(&self) -> QueueRange {
        self.tracker.range(self.occupancy)
    }

    /// Starts a new range at a sample.
    pub fn start_range(&mut self) {
        self.tracker.start_range(self.occupancy);
    }

    /// Returns the waiting cells. If the port is first in, first out, they are in the order of transmission, followed
    /// by the cells of incomplete frames.
    pub fn waiting(&self) -> impl Iterator<Item = Cell> {
        let queued = self.queues.iter().flat_map(CellQueues::waiting);
        self.fifo.iter().chain(self.held.iter().flatten().flatten()).copied().chain(queued)
    }

    /// Returns the counts of each VC's cells, by label.
    pub fn vc_counters(&self) -> impl Iterator<Item = PortCounters> {
        self.admission.counters(&self.per_vc)
    }

    /// Returns the state of the port for results.
    pub fn state(&self) -> PortState {
        let counters: TiVec<Label, _> = self.vc_counters().collect();
        let forwarded = counters.iter().map(|vc| vc.forwarded);
        assert!(forwarded.eq(self.forwarded.iter().copied()), "cells neither refused nor waiting have departed");
        let replaced_results = self.admission.replaced_results();
        PortState { counters, waiting: self.per_vc.clone(), max_queue: self.max_queue(), replaced_results }
    }

    /// Returns the counts of the cells of all VCs together.
    pub fn counters(&self) -> PortCounters {
        PortCounters::sum(self.vc_counters())
    }
}

#[cfg(test)]
mod tests;
