//! A first-in first-out buffer without a queue: the number of waiting cells follows from the time when the link will be
//! free.

use typed_index_collections::{TiVec, ti_vec};

use super::links::Pipe;
use super::port_queue::{BufferView, PortEnd, PortQueue, VcCounts};
use super::timing::Timing;
use super::waiting_cells::Kept;
use crate::cell::Cell;
use crate::index::Label;
use crate::policy::View;
use crate::port::admission::{Admission, Verdict};
use crate::queue_range::QueueTracker;
use crate::scheduler::waiting::Counts;
use crate::switching::PacketAdmission;
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
    /// The longest time that a cell waits. Cells admitted earlier than this before the horizon need no record. `None` if
    /// every admitted cell is recorded, because the policy reads counts or a probe looks at queues.
    longest_wait: Option<u64>,
    /// Number of cells in `admitted` that are also in `counts`.
    counted: usize,
    counts: Counts,
    capacity: u32,
    /// Tracks the range of the queue up to the latest sample.
    tracker: QueueTracker,
    vc_counts: VcCounts,
    /// Packets that are still arriving, by label, if the port stores packets whole.
    packets: TiVec<Label, Vec<Cell>>,
    /// Number of cells in `packets`.
    held: u32,
    /// Cells of the latest packet that has arrived whole.
    whole: Vec<Cell>,
}

impl Fifo {
    /// Creates an empty buffer for a port with `vcs` VCs. With [`Kept::Cells`], a probe looks at queues during the
    /// run, not only at the horizon ([`PortQueue::set_horizon`]).
    pub(super) fn new(vcs: usize, capacity: Option<u32>, admission: Admission, timing: &Timing, kept: Kept) -> Self {
        let &Timing { cell_time, horizon, .. } = timing;
        let capacity = capacity.unwrap_or(u32::MAX);
        let vc_counts = VcCounts::of(&*admission.policy);
        let records_all = vc_counts == VcCounts::Kept || kept == Kept::Cells;
        let mut fifo = Self {
            free_at: Time::default(),
            admit_all_below: wait_for(admission.asked_from(), cell_time),
            full_above: wait_for(capacity, cell_time),
            longest: 0,
            shortest: u64::MAX,
            cell_time,
            vc_counts,
            packets: TiVec::new(),
            held: 0,
            whole: Vec::new(),
            noted_from: Time::default(),
            // No cell waits longer than the transmission time of a full buffer.
            longest_wait: (!records_all).then(|| wait_for(capacity, cell_time)),
            admission,
            admitted: Pipe::EMPTY,
            counted: 0,
            counts: Counts::new(vcs),
            capacity,
            tracker: QueueTracker::default(),
        };
        fifo.set_horizon(horizon);
        fifo
    }

    /// Makes packets wait until they are whole, if `stores` is given. Policies must decide when they start to arrive.
    #[must_use]
    pub(super) fn storing(mut self, stores: Option<PacketAdmission>) -> Self {
        assert!(matches!(stores, None | Some(PacketAdmission::Start)), "a FIFO does not know the lengths of packets");
        if stores.is_some() {
            self.packets = ti_vec![Vec::new(); self.counts.per_vc.len()];
        }
        self
    }

    /// Returns whether the port stores packets whole. If so, [`Fifo::store`] replaces [`Fifo::enter`].
    pub(super) fn stores(&self) -> bool {
        !self.packets.is_empty()
    }

    /// Returns true with packet framing. In this case, [`Fifo::delimit`] must precede [`Fifo::enter`].
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
        debug_assert!(start >= self.free_at, "the transmission of a cell starts after that of the previous cell");
        self.free_at = start + self.cell_time;
        if now >= self.noted_from {
            self.shortest = self.shortest.min(wait);
            self.admitted.push(cell.label());
        }
        Some(start)
    }

    /// Offers a cell to a port that stores packets whole. If its packet is whole now ([`Fifo::whole`]), returns the start of
    /// the packet's first cell.
    #[inline(always)]
    pub(super) fn store(&mut self, now: Time, cell: Cell) -> Option<Time> {
        let label = cell.label();
        if self.admission.starts_packet(cell) {
            self.free(now, label);
        }
        let wait = self.free_at.0.saturating_sub(now.0);
        // The cells of arriving packets count as waiting.
        let found = wait + self.held_time();
        let arrived = self.admission.on_cell(cell, found < self.admit_all_below);
        let passes = arrived.passes() || (arrived.starts() && self.judge_frame(now, cell));
        if found >= self.full_above || !passes {
            self.lose(now, cell);
            return None;
        }
        self.longest = self.longest.max(found + 1);
        if now >= self.noted_from {
            self.shortest = self.shortest.min(found);
        }
        let packet = &mut self.packets[label];
        packet.push(cell);
        if !cell.last_cell() {
            self.held += 1;
            if self.vc_counts == VcCounts::Kept {
                self.counts.put(label, 1);
            }
            return None;
        }
        std::mem::swap(packet, &mut self.whole);
        packet.clear();
        let cells = number_of(&self.whole);
        self.held -= cells - 1;
        if self.vc_counts == VcCounts::Kept && cells > 1 {
            self.counts.take(label, cells - 1);
        }
        let start = now + Span(wait);
        self.free_at = start + self.cell_time * u64::from(cells);
        if now >= self.noted_from {
            (0..cells).for_each(|_| self.admitted.push(label));
        }
        Some(start)
    }

    /// Returns the cells of the latest packet that has arrived whole.
    pub(super) fn whole(&self) -> &[Cell] {
        &self.whole
    }

    /// Returns the transmission time of the cells of arriving packets.
    fn held_time(&self) -> u64 {
        self.cell_time.0 * u64::from(self.held)
    }

    /// Loses an arriving cell, and frees the stored cells of its packet.
    #[cold]
    fn lose(&mut self, now: Time, cell: Cell) {
        self.admission.verdict(cell, self.waiting_before(now) + self.held >= self.capacity, true);
        self.free(now, cell.label());
    }

    /// Frees the stored cells of a VC's arriving packet.
    #[cold]
    fn free(&mut self, now: Time, label: Label) {
        let cells = number_of(&self.packets[label]);
        self.packets[label].clear();
        self.held -= cells;
        self.admission.on_held_discarded(label, cells);
        if cells == 0 {
            return;
        }
        if self.vc_counts == VcCounts::Kept {
            self.counts.take(label, cells);
        }
        if now >= self.noted_from {
            self.shortest = self.shortest.min(self.free_at.0.saturating_sub(now.0) + self.held_time());
        }
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

    /// Asks the policy about the frame whose first cell arrives. Returns whether the frame is admitted.
    #[inline(never)]
    fn judge_frame(&mut self, now: Time, cell: Cell) -> bool {
        let ready = self.waiting_before(now);
        if self.vc_counts == VcCounts::Kept {
            self.count(ready);
        }
        let view = View {
            occupancy: ready + self.held,
            counted: ready + self.held,
            capacity: self.capacity,
            active_vcs: self.counts.active_vcs,
            per_vc: &self.counts.per_vc,
            tagged: cell.tagged(),
            capable: cell.capable(),
            now,
        };
        self.admission.judge_frame(&view, cell)
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
        if self.vc_counts == VcCounts::Kept {
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

    fn occupancy(&self) -> u32 {
        self.ready() + self.held
    }

    /// Returns the number of waiting cells whose packets have arrived whole.
    fn ready(&self) -> u32 {
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

/// Call [`PortQueue::look_at`] first.
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
        let state = self.admission.port_state(&self.counts.per_vc, self.tracked().max_queue());
        let mut end = PortEnd::in_order(state);
        for cell in self.packets.iter().flatten() {
            end.leave_later[cell.label()] -= 1;
        }
        end
    }

    /// Must not be called before the horizon, unless a probe looks at queues.
    fn look_at(&mut self, until: Time) {
        self.forget(until);
        assert_eq!(self.ready(), self.waiting_before(until), "waiting VCs are recorded before the query");
        if self.vc_counts == VcCounts::OnDemand {
            self.counts = Counts::new(self.counts.per_vc.len());
            for &label in self.admitted.rest() {
                self.counts.put(label, 1);
            }
            for cell in self.packets.iter().flatten() {
                self.counts.put(cell.label(), 1);
            }
        }
    }

    /// The results will need the list of waiting cells at the horizon.
    fn set_horizon(&mut self, horizon: Time) {
        if let Some(longest_wait) = self.longest_wait {
            self.noted_from = Time(horizon.0.saturating_sub(longest_wait));
        }
    }
}

/// Returns the transmission time of `cells` cells, or the longest possible time if their number is unlimited.
fn wait_for(cells: u32, cell_time: Span) -> u64 {
    if cells == u32::MAX { u64::MAX } else { cell_time.0.saturating_mul(u64::from(cells)) }
}

fn number_of(cells: &[Cell]) -> u32 {
    u32::try_from(cells.len()).expect("queues have fewer than 2^32 cells")
}

fn whole(cells: u64) -> u32 {
    u32::try_from(cells).expect("queues have fewer than 2^32 cells")
}
