//! One port of a memory: its queue, its admission, and the cells that leave it.

use std::collections::VecDeque;

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use crate::cell::{Cell, FrameNumber, Run};
use crate::departure::HeadRule;
use crate::engine::fast::egress::Egress;
use crate::engine::fast::port_queue::{BufferView, PortEnd, PortQueue, VcCounts};
use crate::index::{Label, LinkIndex, VcIndex};
use crate::link_changes::Transmitter;
use crate::marking::{Counted, Marker};
use crate::memory::{CellClass, CountingQueue, QueueEnd};
use crate::port::CellQueues;
use crate::port::admission::{Admission, is_of_frame};
use crate::queue_range::QueueTracker;
use crate::scheduler::Service;
use crate::scheduler::waiting::Counts;
use crate::switching::PacketAdmission;
use crate::units::Time;

use super::pause_frames::WirePauses;
use super::plain::Plain;
use super::stored::Stored;
use super::waiting::{PausableQueue, Waiting};

/// A port of a memory. The memory may remove cells from any port. So a cell's start is certain only once everything
/// that arrives up to that instant is known.
pub(in crate::engine::fast) struct MemoryPort {
    /// Number of waiting cells.
    pub(in crate::engine::fast) occupancy: u32,
    /// True if the port is sending a cell, or will start one in this instant.
    pub(super) is_busy: bool,
    pub(in crate::engine::fast) times: CellTimes,
    /// Time for which the port has sent Ethernet frames, in units of the clock.
    pub(in crate::engine::fast) on_ethernet: u64,
    pub(super) vc_counts: VcCounts,
    /// The rule that acts on cells at the head of the queue, if there is one.
    pub(super) rule: Option<Box<HeadRule>>,
    pub(super) waiting: Waiting,
    /// Packets that are still arriving, if the port stores packets whole.
    pub(super) stored: Option<Box<Stored>>,
    /// The pauses that the port obeys or sends, if it stores packets.
    pub(super) wire_pauses: Option<Box<WirePauses>>,
    pub(super) tracker: QueueTracker,
    pub(super) counts: Counts,
    pub(super) admission: Admission,
    /// For each label, the queues in which the memory counts the VC's cells.
    pub(super) classes: TiVec<Label, CellClass>,
    /// For each label, the queue of its class, if the VC's cells change nothing but counts of the memory.
    pub(super) counting: TiVec<Label, Option<CountingQueue>>,
    /// The departures that have been counted, if the port is plain.
    pub(super) plain: Option<Plain>,
    pub(super) removals: Removals,
    /// For each label, frames that lost a cell for lack of room, if some of their cells may still be waiting.
    pub(super) cut_frames: TiVec<Label, Vec<FrameNumber>>,
    pub(super) capacity: u32,
    pub(in crate::engine::fast) egress: Egress,
}

/// The transmission times of the cells of a port.
pub(in crate::engine::fast) enum CellTimes {
    /// All cells take the same time.
    Equal,
    /// The last cell of a packet takes a different time from the other cells.
    Ethernet,
    /// The rate of the link changes.
    Changing(Box<Transmitter>),
}

/// Possibility that the memory removes waiting cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removals {
    Never,
    Possible,
}

impl MemoryPort {
    /// Creates an empty port with its policy and, if it is not first in, first out, a scheduler's queues.
    pub(in crate::engine::fast) fn new(
        capacity: Option<u32>,
        classes: TiVec<Label, CellClass>,
        admission: Admission,
        queues: Option<Service>,
        rule: Option<Box<HeadRule>>,
        egress: Egress,
    ) -> Self {
        let vcs = classes.len();
        Self {
            occupancy: 0,
            is_busy: false,
            times: CellTimes::Equal,
            on_ethernet: 0,
            vc_counts: VcCounts::of(&*admission.policy),
            rule,
            waiting: match queues {
                Some(service) => Waiting::Scheduled(Box::new(CellQueues::new(service))),
                None => Waiting::Fifo(VecDeque::new()),
            },
            stored: None,
            wire_pauses: None,
            tracker: QueueTracker::default(),
            counts: Counts::new(vcs),
            admission,
            classes,
            counting: TiVec::new(),
            plain: None,
            removals: Removals::Never,
            cut_frames: ti_vec![Vec::new(); vcs],
            capacity: capacity.unwrap_or(u32::MAX),
            egress,
        }
    }

    /// Makes packets wait until they are whole, if `stores` is given.
    #[must_use]
    pub(in crate::engine::fast) fn storing(
        mut self,
        stores: Option<PacketAdmission>,
        vcs: &TiSlice<Label, VcIndex>,
    ) -> Self {
        if let Some(admission) = stores {
            self.stored = Some(Box::new(Stored::new(vcs, admission)));
            self.waiting = match self.waiting {
                Waiting::Scheduled(queues) => Waiting::Scheduled(Box::new(queues.of_packets())),
                Waiting::Fifo(_) | Waiting::Pausable(_) | Waiting::Packets(_) => Waiting::Packets(VecDeque::new()),
            };
        }
        self
    }

    /// Makes the port obey pauses of its link, and send pause frames if it stores packets. `priorities` contains the
    /// priority of each VC.
    #[must_use]
    pub(in crate::engine::fast) fn pausable(mut self, priorities: TiVec<Label, u8>) -> Self {
        if self.stored.is_some() {
            self.wire_pauses = Some(Box::new(WirePauses::new(priorities)));
        } else {
            self.waiting = Waiting::Pausable(Box::new(PausableQueue::new(priorities)));
        }
        self
    }

    /// Returns whether all cells take the same time.
    #[inline(always)]
    pub(super) fn has_equal_times(&self) -> bool {
        matches!(self.times, CellTimes::Equal)
    }

    pub(in crate::engine::fast) fn link(&self) -> LinkIndex {
        self.egress.to_hosts.link
    }

    /// Returns whether a rule may mark or drop cells that do not end a packet.
    #[inline]
    pub(super) fn acts_on_every_cell(&self) -> bool {
        let marks = |rule: &HeadRule| rule.marker.as_ref().is_some_and(Marker::marks_every_cell);
        self.rule.as_ref().is_some_and(|rule| rule.decides() || marks(rule))
    }

    /// Returns which waiting cells the port compares with its marking thresholds.
    pub(super) fn counted(&self) -> Counted {
        self.rule.as_ref().and_then(|rule| rule.marker.as_ref()).map_or(Counted::Port, |marker| marker.of)
    }

    #[inline]
    pub(super) fn class(&self, label: Label) -> CellClass {
        self.classes[label]
    }

    /// Puts a cell that the memory has already counted into its queue.
    #[inline(always)]
    pub(super) fn enqueue(&mut self, now: Time, cell: Cell) {
        self.count_one_in(cell.label());
        if let Some(rule) = &mut self.rule {
            rule.enter(cell, now, self.occupancy, &mut self.admission);
            if rule.decides() {
                self.waiting.on_enter(cell, now);
            }
        }
        if let Some(follower) = self.admission.follower() {
            follower.on_enter(cell.label(), 1);
        }
        match &mut self.waiting {
            Waiting::Fifo(cells) => cells.push_back(cell),
            Waiting::Pausable(queue) => queue.push(cell),
            Waiting::Scheduled(queues) => queues.push(cell),
            Waiting::Packets(_) => unreachable!("{STORED_WHOLE}"),
        }
    }

    /// Takes the next cell to be sent, at a port that does not store packets.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Option<Cell> {
        let cell = match &mut self.waiting {
            Waiting::Fifo(cells) => cells.pop_front()?,
            Waiting::Pausable(queue) => queue.take()?,
            Waiting::Scheduled(queues) if self.occupancy == 0 => {
                queues.on_idle();
                return None;
            }
            Waiting::Scheduled(queues) => queues.pop(),
            Waiting::Packets(_) => unreachable!("{STORED_WHOLE}"),
        };
        self.count_one_out(cell.label());
        if let Some(follower) = self.admission.follower() {
            follower.on_leave(1);
        }
        if self.removals == Removals::Possible {
            forget_cuts(&mut self.cut_frames, cell);
        }
        Some(cell)
    }

    /// Returns whether a cell can be sent.
    pub(super) fn is_ready(&self) -> bool {
        match &self.waiting {
            Waiting::Packets(runs) => !runs.is_empty(),
            Waiting::Fifo(_) => self.occupancy > 0,
            Waiting::Pausable(queue) => queue.may_be_ready(),
            Waiting::Scheduled(_) => self.occupancy > self.stored.as_ref().map_or(0, |stored| stored.cells),
        }
    }

    #[inline]
    pub(super) fn count_one_in(&mut self, label: Label) {
        self.occupancy += 1;
        self.tracker.rise(self.occupancy);
        if self.vc_counts == VcCounts::Kept {
            self.counts.put(label, 1);
        }
    }

    #[inline]
    pub(super) fn count_one_out(&mut self, label: Label) {
        self.occupancy -= 1;
        self.tracker.fall(self.occupancy);
        if self.vc_counts == VcCounts::Kept {
            self.counts.take(label, 1);
        }
    }

    /// Records that the frame of an arriving cell has lost a cell for lack of room.
    pub(super) fn note_cut(&mut self, cell: Cell) {
        if self.removals == Removals::Possible && !self.cut_frames[cell.label()].contains(&cell.frame) {
            self.cut_frames[cell.label()].push(cell.frame);
        }
    }

    /// Removes the cell at one end of a non-empty queue. `is_in` selects the queue's VCs. `arriving` is the cell that
    /// needs the room, if that cell arrives at this port.
    pub(super) fn remove(&mut self, end: QueueEnd, arriving: Option<Cell>, is_in: impl Fn(CellClass) -> bool) -> Cell {
        let gone = self.gone();
        let cells = self.waiting.single_queue();
        let is_in = |cell: &Cell| is_in(self.classes[cell.label()]);
        let place = match end {
            QueueEnd::Head => cells.range(gone..).position(is_in),
            QueueEnd::Tail => cells.range(gone..).rposition(is_in),
        };
        let cell = place.and_then(|place| cells.remove(gone + place)).expect("the queue holds a cell");
        self.count_one_out(cell.label());
        let cuts = !cell.is_rm() && !self.cut_frames[cell.label()].contains(&cell.frame);
        if cuts {
            self.cut_frames[cell.label()].push(cell.frame);
        }
        self.admission.on_removed(cell, cuts, arriving);
        cell
    }

    /// Makes room for `arriving` by drop from front: removes the first waiting cell that does not end a frame, and the
    /// rest of its frame except the last cell. If the policy has several queues, the longest queue loses frames. Passes the class of each removed cell to `gone`.
    pub(super) fn push_out_front(&mut self, arriving: Cell, mut gone: impl FnMut(CellClass)) {
        if let Waiting::Scheduled(queues) = &mut self.waiting {
            let removed = queues.push_out_longest();
            for frame in removed.chunk_by(|&one, &next| is_of_frame(one, next)) {
                for cell in frame {
                    gone(self.classes[cell.label()]);
                }
                self.count_pushed_out(frame[0], frame.len(), arriving);
            }
            return;
        }
        let mut left = self.gone();
        let cells = self.waiting.single_queue();
        let data = || cells.range(left..).filter(|cell| !cell.is_rm());
        let Some(&victim) = data().find(|cell| !cell.last_cell()).or_else(|| data().next()) else {
            return; // Nothing can be pushed out: the arriving cell is lost.
        };
        let before = cells.len();
        let class = self.classes[victim.label()];
        cells.retain(|&cell| {
            let has_left = left > 0;
            left = left.saturating_sub(1);
            let stays = has_left || !is_of_frame(cell, victim) || (!victim.last_cell() && cell.last_cell());
            if !stays {
                gone(class);
            }
            stays
        });
        let pushed_out = before - cells.len();
        self.count_pushed_out(victim, pushed_out, arriving);
    }

    /// Counts cells of the frame of `victim` that have made room for `arriving`.
    fn count_pushed_out(&mut self, victim: Cell, cells: usize, arriving: Cell) {
        let pushed_out = u32::try_from(cells).expect("the size of a buffer in cells fits in 32 bits");
        self.occupancy -= pushed_out;
        self.tracker.fall(self.occupancy);
        if self.vc_counts == VcCounts::Kept {
            self.counts.take(victim.label(), pushed_out);
        }
        self.admission.on_pushed_out(victim, pushed_out, arriving);
    }

    /// Returns all cells of the port.
    pub(super) fn cells(&self) -> impl Iterator<Item = Run> {
        self.waiting.runs().chain(self.stored.iter().flat_map(|stored| stored.waiting()))
    }
}

/// Forgets frames that have left before `cell`. Cells of a VC leave in order.
#[inline]
pub(super) fn forget_cuts(cut_frames: &mut TiVec<Label, Vec<FrameNumber>>, cell: Cell) {
    if !cell.is_rm() {
        cut_frames[cell.label()].retain(|&frame| frame >= cell.frame);
    }
}

const STORED_WHOLE: &str = "a port that stores packets handles arriving and departing cells separately";

/// The counts must be up to date.
impl PortQueue for MemoryPort {
    fn view(&self) -> BufferView<'_> {
        let &Self { occupancy, ref tracker, ref counts, .. } = self;
        BufferView { occupancy, range: tracker.range(occupancy), per_vc: &counts.per_vc }
    }

    fn start_range(&mut self) {
        self.tracker.start_range(self.occupancy);
    }

    fn end(&self) -> PortEnd {
        let state = self.admission.port_state(&self.counts.per_vc, self.tracker.max_queue());
        // The port does not know any departure in advance.
        PortEnd { state, leave_later: TiVec::new() }
    }

    /// The port is always simulated up to the present.
    fn look_at(&mut self, _: Time) {
        if self.vc_counts == VcCounts::Kept {
            return;
        }
        let mut counts = Counts::new(self.counts.per_vc.len());
        self.cells().for_each(|run| counts.put(run.last.label(), run.cells));
        self.counts = counts;
    }
}
