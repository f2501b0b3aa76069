//! Cells inside packets, at switches where no policy follows single cells.
//!
//! Between the first and the last cell of an admitted packet, an arriving cell needs only a place. Once a first-in
//! first-out port sends a packet, nothing removes its other cells. So these cells change the counts of the memory and of
//! the port in order of time, and the packet itself is updated once for all of them.

use typed_index_collections::TiSlice;

use super::port::Removals;
use super::waiting::Waiting;
use super::{ArrivingVc, MemoryPort, Switch};
use crate::cell::{Cell, Run};
use crate::coverage::reached;
use crate::engine::fast::egress::{Downstream, HopEnd};
use crate::engine::fast::links::{Stream, Way};
use crate::engine::fast::plan::MemoryPlace;
use crate::engine::fast::port_queue::VcCounts;
use crate::engine::fast::timing::Arrivals;
use crate::engine::fast::train::Train;
use crate::index::Label;
use crate::memory::{Attempt, CellClass, CountingQueue, Memory};
use crate::switching::PacketAdmission;
use crate::units::{Span, Time};

/// Returns whether cells inside packets change nothing but counts: no packet is removed after it has been admitted, all
/// ports are first in, first out, and no policy, allocator or place taken in advance depends on single cells.
pub(super) fn are_plain(
    memory: &Memory,
    ports: &TiSlice<MemoryPlace, MemoryPort>,
    vcs: &TiSlice<Label, ArrivingVc>,
) -> bool {
    let is_plain = |port: &MemoryPort| {
        matches!(port.waiting, Waiting::Packets(_))
            && port.stored.as_ref().is_some_and(|stored| stored.admission != PacketAdmission::Fits)
            && !port.acts_on_every_cell()
            && port.vc_counts == VcCounts::OnDemand
            && port.removals == Removals::Never
            && !port.admission.follows_cells()
    };
    memory.follows_no_cells() && ports.iter().all(is_plain) && vcs.iter().all(|vc| vc.arrivals == Arrivals::Unrecorded)
}

/// The part of an arriving packet whose cells enter without a decision, as long as there is room.
#[derive(Clone, Copy)]
pub(super) struct Inside {
    place: MemoryPlace,
    class: CellClass,
    /// The queue of `class`, if the packet's cells change only counts of the queue.
    queue: Option<CountingQueue>,
    /// One of the cells, with its label at the port.
    cell: Cell,
    period: Span,
    /// Cells before the train's last cell that have not entered.
    left: u32,
    /// Cells before the train's last cell that have not been taken from the train.
    left_in_train: u32,
    /// Cells before the train's last cell that have not been stored.
    left_to_store: u32,
}

impl Inside {
    pub(super) const NONE: Self = Self {
        place: MemoryPlace::new(0),
        class: CellClass { egress: None, ingress: None },
        queue: None,
        cell: Cell::NONE,
        period: Span(0),
        left: 0,
        left_in_train: 0,
        left_to_store: 0,
    };

    /// Returns whether the next cell is inside a packet.
    #[inline]
    pub(super) fn goes_on(&self) -> bool {
        self.left > 0
    }

    /// Returns the time from the next cell to the one after it, if the next cell is inside a packet.
    #[inline]
    pub(super) fn period(&self) -> Option<Span> {
        self.goes_on().then_some(self.period)
    }
}

/// The part of a packet being sent whose cells only change counts when they leave.
#[derive(Clone, Copy, Default)]
pub(super) struct Sending {
    class: CellClass,
    /// The queue of `class`, if the packet's cells change only counts of the queue.
    queue: Option<CountingQueue>,
    /// Cells before the last cell of the run.
    left: u32,
    /// Cells that have left, but have not been taken from the run.
    taken: u32,
}

impl Sending {
    /// Counts the departure of the next cell of a free port, if the cell is inside a packet. Returns whether the
    /// departure was counted. The caller makes the port busy.
    #[inline(always)]
    pub(super) fn send_next(&mut self, memory: &mut Memory, port: &mut MemoryPort, now: Time) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        self.taken += 1;
        match self.queue {
            Some(queue) => memory.count_out(queue, now),
            None => memory.leave(self.class, now),
        }
        port.occupancy -= 1;
        port.tracker.fall(port.occupancy);
        true
    }
}

impl Switch {
    /// Returns the cells of the train that arrives next that are inside a packet: all but its last cell, if the port has
    /// admitted the first cell of the packet and has lost none.
    #[inline]
    pub(super) fn inside_of(&self, train: Option<&Train>) -> Inside {
        let Some(&Train { cell, period, cells, .. }) = train.filter(|train| train.cells > 1 && self.is_plain) else {
            return Inside::NONE;
        };
        let ArrivingVc { place, label, class, .. } = self.vcs[cell.label()];
        let port = &self.ports[place];
        if cell.is_rm() || !port.admission.is_inside(cell.relabelled(label)) {
            return Inside::NONE;
        }
        let (cell, queue) = (cell.not_last().relabelled(label), port.counting[label]);
        let left = cells - 1;
        Inside { place, class, queue, cell, period, left, left_in_train: left, left_to_store: left }
    }

    /// Counts a cell inside a packet. Returns false if the memory refuses it.
    #[inline(always)]
    pub(super) fn enter_inside(&mut self, inside: &mut Inside, now: Time) -> bool {
        let is_counted = inside.queue.is_some_and(|queue| self.memory.count_rest(queue, now));
        if !is_counted && !self.enter_rest(inside.class, now) {
            return false;
        }
        let port = &mut self.ports[inside.place];
        port.occupancy += 1;
        port.tracker.rise(port.occupancy);
        inside.left -= 1;
        true
    }

    /// Counts a cell inside a packet, if its queues do more than count cells, or are full.
    #[inline(never)]
    fn enter_rest(&mut self, class: CellClass, now: Time) -> bool {
        match self.memory.try_enter_rest(class, now) {
            Attempt::Entered => true,
            Attempt::Refused(..) => false,
            Attempt::PushOut(_) => unreachable!("the policy of this memory never removes waiting packets"),
        }
    }

    /// Stores the cells of a packet that have entered, and takes them from their train. If more cells are left, loses the
    /// next one, which the memory refuses.
    #[inline(never)]
    pub(super) fn end_inside(&mut self, inside: &mut Inside, stream: &mut Stream, now: Time) {
        self.store_entered(inside);
        let taken = inside.left_in_train - inside.left;
        if taken > 0 {
            let Way::Trains(trains) = &mut stream.way else { unreachable!("the packet arrives as a train") };
            let train = trains.front_mut().expect("the packet's last cell has not arrived");
            debug_assert_eq!(train.cell.frame, inside.cell.frame, "the packet arrives as a train");
            train.take(taken);
        }
        if inside.left > 0 {
            reached!(NoRoomInsidePacket);
            let (cell, ..) = stream.take_first();
            let cell = cell.relabelled(self.vcs[cell.label()].label);
            let port = &mut self.ports[inside.place];
            let is_inside = port.admission.on_cell_inside(cell);
            debug_assert!(is_inside, "the packet has lost no other cell");
            self.lose_packet(inside.place, cell, inside.class, true, now);
        }
        *inside = Inside::NONE;
    }

    /// Stores the cells of a packet that have entered since the last call.
    pub(super) fn store_entered(&mut self, inside: &mut Inside) {
        let cells = std::mem::replace(&mut inside.left_to_store, inside.left) - inside.left;
        if cells > 0 {
            let port = &mut self.ports[inside.place];
            port.admission.on_cells_between(inside.cell.label(), cells);
            port.stored_mut().append(Run { last: inside.cell, cells });
        }
    }

    /// Sends the cells that start before `until`, at ports that stay busy until then. Nothing arrives before then.
    #[inline(never)]
    pub(super) fn send_before(&mut self, until: Time, downstream: &mut Downstream<'_>) {
        loop {
            let Self { calendar, sending, memory, ports, .. } = &mut *self;
            let sends_inside = |now, place: MemoryPlace| sending[place].send_next(memory, &mut ports[place], now);
            let Some((now, place)) = calendar.restart_while(until, sends_inside) else { return };
            self.send_next(place, now, downstream);
        }
    }

    /// Makes a free port send its next cell, if a whole packet waits.
    #[inline(always)]
    pub(super) fn send_next(&mut self, place: MemoryPlace, now: Time, downstream: &mut Downstream<'_>) {
        if self.sending[place].send_next(&mut self.memory, &mut self.ports[place], now) {
            self.calendar.start(place, now);
        } else {
            self.start_stored(place, now, downstream);
        }
    }

    /// Prepares for the departure of the cells inside the packet that a port sends. One of its cells starts now, and
    /// another will follow.
    pub(super) fn begin_sending(&mut self, place: MemoryPlace, now: Time) {
        let port = &self.ports[place];
        if let Waiting::Packets(runs) = &port.waiting
            && let Some(&Run { last, cells }) = runs.front()
            && self.is_plain
            && port.egress.hops[last.label()].to == HopEnd::Host
            && port.egress.to_hosts.collects(now + port.egress.to_hosts.cell_time * u64::from(cells - 1))
        {
            let (class, queue) = (port.class(last.label()), port.counting[last.label()]);
            self.sending[place] = Sending { class, queue, left: cells - 1, taken: 0 };
        }
    }

    /// Takes the cells that have left a port from its queue, before another cell leaves in another way.
    pub(super) fn end_sending(&mut self, place: MemoryPlace) {
        let Sending { taken, .. } = std::mem::take(&mut self.sending[place]);
        self.ports[place].take_inside(taken);
    }

    /// Takes the cells that have left the ports from their queues.
    pub(super) fn update_sent(&mut self) {
        for (port, sending) in self.ports.iter_mut().zip(&mut self.sending) {
            port.take_inside(std::mem::take(&mut sending.taken));
        }
    }
}

impl MemoryPort {
    /// Takes cells inside the packet that the port sends. They have been counted.
    fn take_inside(&mut self, cells: u32) {
        if cells == 0 {
            return;
        }
        let Waiting::Packets(runs) = &mut self.waiting else { unreachable!("the port is first in, first out") };
        let run = runs.front_mut().expect("the last cell of the packet still waits");
        debug_assert!(run.cells > cells, "the last cell of the packet still waits");
        run.cells -= cells;
        self.stored_mut().sent += cells;
    }
}
