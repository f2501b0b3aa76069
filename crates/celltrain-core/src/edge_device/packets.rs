//! The packets of an edge device: their queues, sizes and counters, as seen by discard algorithms.

use std::collections::VecDeque;

use typed_index_collections::TiVec;

use super::Memory;
use crate::cell::{Cell, FrameNumber, Run};
use crate::index::Label;
use crate::port::{PortCounters, PortState};
use crate::queue_range::{QueueRange, QueueTracker};

/// A packet at an edge device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Number of the packet's frame within its VC.
    pub frame: FrameNumber,
    /// Number of cells of the packet, at least one.
    pub cells: u32,
    /// True if the packet's cells are tagged (CLP = 1).
    pub tagged: bool,
}

/// Reason why a packet is dropped from the front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The packet is dropped for lack of room in the buffer.
    NoRoom,
    /// The packet is dropped because the VC's ACR fell.
    RateFell,
}

/// Outcome of a packet, for observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketOutcome {
    /// Label of the VC that the packet belongs to.
    pub label: Label,
    /// The packet.
    pub packet: Packet,
    /// Waiting cells of all packets except the arriving packet.
    pub occupancy: u32,
    /// Waiting cells of the VC's packets, except the arriving packet.
    pub vc_cells: u32,
    /// VCs with cells waiting.
    pub active_vcs: u32,
    /// Its step.
    pub step: PacketStep,
}

/// An event in the life of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketStep {
    /// The packet is admitted to the buffer.
    Admitted,
    /// The packet is refused because the buffer is full.
    Refused,
    /// The packet is dropped to make room for another packet.
    DroppedForRoom,
    /// The packet is dropped because its VC's rate fell.
    DroppedByRate,
}

/// The waiting packets of all VCs. Discard algorithms read the packets and may drop some, but change nothing else.
pub struct Packets {
    /// EB, the buffer size; `u32::MAX` means unlimited.
    capacity: u32,
    memory: Memory,
    queues: TiVec<Label, Queue>,
    /// Waiting cells of all VCs.
    occupancy: u32,
    /// `occupancy` plus the cells already taken from packets under way.
    whole_cells: u64,
    tracker: QueueTracker,
    /// Outcomes of packets, if they are recorded.
    pub(super) outcomes: Option<Vec<PacketOutcome>>,
}

/// The packets and the state of one VC.
struct Queue {
    packets: VecDeque<Packet>,
    /// Cells taken from the first packet; 0 if it is not under way.
    taken: u32,
    cells: u32,
    /// Number of cells of one packet taken since the VC last changed. These cells can be put back.
    ahead: u32,
    /// The packet that was served last.
    served: Packet,
    longest: u32,
    /// ACR in cells a second.
    acr: f64,
    counters: PortCounters,
}

impl Packets {
    pub(super) fn new(capacity: Option<u32>, memory: Memory, longest_packet: &[u32]) -> Self {
        let queue = |&longest: &u32| Queue {
            packets: VecDeque::new(),
            taken: 0,
            cells: 0,
            ahead: 0,
            served: Packet { frame: FrameNumber::default(), cells: 0, tagged: false },
            longest: longest.max(1),
            acr: 0.0,
            counters: PortCounters::default(),
        };
        Self {
            capacity: capacity.unwrap_or(u32::MAX),
            memory,
            queues: longest_packet.iter().map(queue).collect(),
            occupancy: 0,
            whole_cells: 0,
            tracker: QueueTracker::default(),
            outcomes: None,
        }
    }

    /// Returns EB, the buffer size in cells, for each VC or for all VCs together; `u32::MAX` if infinite.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Returns whether VCs share the buffer.
    pub fn memory(&self) -> Memory {
        self.memory
    }

    /// Returns the labels of all VCs.
    pub fn vcs(&self) -> impl Iterator<Item = Label> {
        Label::counting().take(self.queues.len())
    }

    /// Returns QL, the number of waiting packets of a VC, including one under way.
    pub fn ql(&self, vc: Label) -> u32 {
        u32::try_from(self.queue(vc).packets.len())
            .expect("a queue has fewer packets than cells, and cells fit in 32 bits")
    }

    /// Returns the number of waiting cells of a VC.
    pub fn cells(&self, vc: Label) -> u32 {
        self.queue(vc).cells
    }

    /// Returns the number of cells in a VC's packets. A packet under way counts as a whole.
    pub fn whole_cells(&self, vc: Label) -> u64 {
        let queue = self.queue(vc);
        u64::from(queue.cells) + u64::from(queue.taken)
    }

    /// Returns the number of cells of all VCs' packets. All cells of a packet under way count, so the result may exceed
    /// EB.
    pub fn all_whole_cells(&self) -> u64 {
        self.whole_cells
    }

    /// Returns the number of waiting cells of all VCs.
    pub fn occupancy(&self) -> u32 {
        self.occupancy
    }

    /// Returns the ACR last set for a VC, in cells a second; 0 if none has been set.
    pub fn acr(&self, vc: Label) -> f64 {
        self.queue(vc).acr
    }

    /// Returns the number of cells in a VC's longest packet.
    pub fn longest(&self, vc: Label) -> u32 {
        self.queue(vc).longest
    }

    /// Returns whether a packet of `cells` cells fits: occupied + cells <= EB.
    pub fn fits(&self, vc: Label, cells: u32) -> bool {
        cells <= self.capacity - self.occupied(vc)
    }

    /// Returns whether the packet would fit after all droppable packets were dropped.
    pub fn can_fit(&self, vc: Label, cells: u32) -> bool {
        let under_way = |queue: &Queue| queue.packets.front().map_or(0, |front| u64::from(queue.left(front)));
        let stays: u64 = match self.memory {
            Memory::PerVc => under_way(self.queue(vc)),
            Memory::Shared => self.queues.iter().map(under_way).sum(),
        };
        stays + u64::from(cells) <= u64::from(self.capacity)
    }

    /// Returns whether a VC has a packet that is not under way.
    pub fn can_drop(&self, vc: Label) -> bool {
        let queue = self.queue(vc);
        queue.packets.len() > queue.first_droppable()
    }

    /// Drops a VC's first packet that is not under way. Returns false if the VC has no such packet.
    pub fn drop_front(&mut self, vc: Label, cause: Cause) -> bool {
        let queue = &mut self.queues[vc];
        let Some(packet) = queue.packets.remove(queue.first_droppable()) else { return false };
        queue.ahead = 0;
        queue.cells -= packet.cells;
        self.occupancy -= packet.cells;
        self.whole_cells -= u64::from(packet.cells);
        let cells = u64::from(packet.cells);
        let step = match cause {
            Cause::NoRoom => {
                queue.counters.lost_pushed_out += cells;
                queue.counters.cut_frames += 1;
                PacketStep::DroppedForRoom
            }
            Cause::RateFell => {
                queue.counters.discarded_frame += cells;
                queue.counters.discarded_frames += 1;
                PacketStep::DroppedByRate
            }
        };
        self.note(vc, packet, step);
        true
    }

    pub(super) fn set_acr(&mut self, vc: Label, acr: f64) {
        debug_assert!(acr >= 0.0 && acr.is_finite(), "a rate is a number of cells per second");
        let queue = &mut self.queues[vc];
        queue.acr = acr;
        queue.ahead = 0;
    }

    pub(super) fn admit_or_refuse(&mut self, vc: Label, packet: Packet) {
        debug_assert!(packet.cells > 0, "a packet has a cell");
        let fits = self.fits(vc, packet.cells);
        self.note(vc, packet, if fits { PacketStep::Admitted } else { PacketStep::Refused });
        let queue = &mut self.queues[vc];
        queue.counters.offered += u64::from(packet.cells);
        if !fits {
            queue.counters.lost_overflow += u64::from(packet.cells);
            queue.counters.cut_frames += 1;
            return;
        }
        // Between arrivals the queue never grows, and cells taken early have been put back.
        self.tracker.fall(self.occupancy);
        queue.packets.push_back(packet);
        queue.cells += packet.cells;
        self.occupancy += packet.cells;
        self.whole_cells += u64::from(packet.cells);
        self.tracker.rise(self.occupancy);
    }

    /// Records what happened to a packet, for observers.
    fn note(&mut self, label: Label, packet: Packet, step: PacketStep) {
        let Some(mut outcomes) = self.outcomes.take() else { return };
        let (occupancy, vc_cells) = (self.occupancy, self.cells(label));
        let active = self.queues.iter().filter(|queue| queue.cells > 0).count();
        let active_vcs = u32::try_from(active).expect("all labels of VCs fit in 32 bits");
        outcomes.push(PacketOutcome { label, packet, occupancy, vc_cells, active_vcs, step });
        self.outcomes = Some(outcomes);
    }

    #[cfg(test)]
    pub(super) fn queued(&self, vc: Label) -> impl Iterator<Item = Packet> {
        self.queue(vc).packets.iter().copied()
    }

    /// Returns a VC's packet that is under way or next, and the number of its waiting cells.
    #[inline]
    pub fn front(&self, vc: Label) -> Option<(Packet, u32)> {
        let queue = self.queue(vc);
        queue.packets.front().map(|&packet| (packet, packet.cells - queue.taken))
    }

    pub(super) fn take(&mut self, vc: Label, cells: u32) -> Run {
        let queue = &mut self.queues[vc];
        let packet = *queue.packets.front().expect("cells are taken only if cells are waiting");
        let left = packet.cells - queue.taken;
        assert!(0 < cells && cells <= left, "cells are taken from one packet at a time");
        queue.ahead = if queue.taken == 0 { cells } else { queue.ahead + cells };
        queue.taken += cells;
        queue.cells -= cells;
        queue.counters.forwarded += u64::from(cells);
        self.occupancy -= cells;
        let is_served = cells == left;
        if is_served {
            queue.served = packet;
            queue.packets.pop_front();
            queue.taken = 0;
            self.whole_cells -= u64::from(packet.cells);
        }
        Run { last: Cell::new(vc, packet.frame, is_served).with_tag(packet.tagged), cells }
    }

    /// Puts cells back. Returns whether the cells include the last cell of a packet.
    pub(super) fn untake(&mut self, vc: Label, cells: u32) -> bool {
        let queue = &mut self.queues[vc];
        assert!(0 < cells && cells <= queue.ahead, "only cells that were taken early are returned");
        // If no packet is under way, the cells belong to the packet that was served last.
        let was_served = queue.taken == 0;
        if was_served {
            queue.packets.push_front(queue.served);
            queue.taken = queue.served.cells;
            self.whole_cells += u64::from(queue.served.cells);
        }
        queue.ahead -= cells;
        queue.taken -= cells;
        queue.cells += cells;
        queue.counters.forwarded -= u64::from(cells);
        self.occupancy += cells;
        was_served
    }

    /// Returns the counters of the cells offered on a VC: [`PortCounters::lost_overflow`] for packets refused by a full
    /// buffer, [`PortCounters::lost_pushed_out`] for packets dropped to make room (both also count in
    /// [`PortCounters::cut_frames`]), and [`PortCounters::discarded_frame`] for packets dropped because ACR fell.
    pub fn vc_counters(&self, vc: Label) -> PortCounters {
        self.queue(vc).counters
    }

    /// Returns the largest number of waiting cells of all VCs together so far.
    pub fn max_queue(&self) -> u32 {
        self.tracker.max_queue()
    }

    /// Returns the smallest and largest number of waiting cells of all VCs together since the latest sample. The caller
    /// must already have put back cells that were taken early.
    pub fn range(&self) -> QueueRange {
        self.tracker.range(self.occupancy)
    }

    pub(super) fn start_range(&mut self) {
        self.tracker.start_range(self.occupancy);
    }

    /// Returns the state for results.
    ///
    /// # Panics
    /// If the counters do not account for every cell.
    pub fn port_state(&self) -> PortState {
        let state = PortState {
            counters: self.queues.iter().map(|queue| queue.counters).collect(),
            waiting: self.queues.iter().map(|queue| queue.cells).collect(),
            max_queue: self.max_queue(),
            replaced_results: 0,
        };
        for (counters, waiting) in state.counters.iter().zip(&state.waiting) {
            let gone = counters.forwarded + counters.lost() + counters.discarded();
            assert_eq!(
                counters.offered,
                gone + u64::from(*waiting),
                "every offered cell has departed, was lost or is \
                waiting"
            );
        }
        state
    }

    /// Returns the number of waiting cells that share a VC's buffer: its own cells, or the cells of all VCs.
    fn occupied(&self, vc: Label) -> u32 {
        match self.memory {
            Memory::PerVc => self.queue(vc).cells,
            Memory::Shared => self.occupancy,
        }
    }

    fn queue(&self, vc: Label) -> &Queue {
        &self.queues[vc]
    }
}

impl Queue {
    /// Returns the index of the first packet that is not under way.
    fn first_droppable(&self) -> usize {
        usize::from(self.taken > 0)
    }

    /// Returns the number of waiting cells of the first packet, if that packet is under way and cannot be dropped;
    /// otherwise 0.
    fn left(&self, front: &Packet) -> u32 {
        if self.taken > 0 { front.cells - self.taken } else { 0 }
    }
}
