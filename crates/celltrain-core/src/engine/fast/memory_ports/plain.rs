//! First-in first-out ports at which a cell changes only counts, both when it enters and when it leaves.
//!
//! Departures are counted in order of time, because they make room at other ports. The cells themselves have no effect
//! before the end of the batch. So they stay in their queue until then, and are passed on together.

use super::port::{CellTimes, Removals, forget_cuts};
use super::waiting::Waiting;
use super::{MemoryPort, Room, Switch};
use crate::cell::Cell;
use crate::engine::fast::egress::Downstream;
use crate::engine::fast::plan::MemoryPlace;
use crate::engine::fast::port_queue::VcCounts;
use crate::engine::fast::timing::Arrivals;
use crate::memory::{CellClass, CountingQueue, Memory};
use crate::units::Time;

/// The departures from a plain port that have been counted.
#[derive(Clone, Copy)]
pub(super) struct Plain {
    /// The memory's queue of all cells of the port.
    pub(super) queue: CountingQueue,
    /// Number of cells at the front of the queue that have left. They left one after the other without a pause.
    pub(super) gone: u32,
    /// The time when the last departed cell was sent.
    free_at: Time,
}

impl Switch {
    /// Finds the plain ports.
    pub(super) fn find_plain_ports(&mut self) {
        for (place, port) in self.ports.iter_mut_enumerated() {
            let unrecorded = self.vcs.iter().all(|vc| vc.place != place || vc.arrivals == Arrivals::Unrecorded);
            let [Some(queue), others @ ..] = &port.counting.raw[..] else { continue };
            let is_plain = matches!(port.waiting, Waiting::Fifo(_))
                && matches!(port.times, CellTimes::Equal)
                && others.iter().all(|other| other == &Some(*queue))
                && port.rule.is_none()
                && port.vc_counts == VcCounts::OnDemand
                && !port.admission.follows_cells()
                && unrecorded;
            port.plain = is_plain.then_some(Plain { queue: *queue, gone: 0, free_at: Time::default() });
        }
    }

    /// Takes a cell inside an admitted frame, at a plain port. Returns false and changes nothing for other cells.
    #[inline(always)]
    pub(super) fn enter_plain<const DELIMITS: bool>(
        &mut self,
        place: MemoryPlace,
        cell: Cell,
        class: CellClass,
        now: Time,
    ) -> bool {
        let Self { ports, memory, to_start, .. } = self;
        let port = &mut ports[place];
        let Some(Plain { queue, .. }) = port.plain else { return false };
        if !port.admission.on_cell_inside(cell) {
            return false;
        }
        if !memory.count_certain(queue, now) {
            self.enter_or_refuse::<DELIMITS>(now, place, cell, class);
            return true;
        }
        port.occupancy += 1;
        port.tracker.rise(port.occupancy);
        let Waiting::Fifo(cells) = &mut port.waiting else { unreachable!("a plain port is first in, first out") };
        cells.push_back(cell);
        if !port.is_busy {
            port.is_busy = true;
            to_start.push(place);
        }
        true
    }

    /// Looks for room for a cell inside an admitted frame.
    #[inline(never)]
    fn enter_or_refuse<const DELIMITS: bool>(&mut self, now: Time, place: MemoryPlace, cell: Cell, class: CellClass) {
        match self.make_room::<DELIMITS>(now, place, cell, class) {
            Room::Found => self.enqueue(now, place, cell),
            room => self.refuse(now, place, cell, class, room == Room::NotFound),
        }
    }

    /// Passes on the cells that have left plain ports.
    pub(super) fn pass_on(&mut self, downstream: &mut Downstream<'_>) {
        self.ports.iter_mut().filter(|port| port.gone() > 0).for_each(|port| port.pass_on(downstream));
    }
}

impl MemoryPort {
    /// Counts the departure of the next cell of a plain port. Returns false if no cell waits, and `None` if the port is not
    /// plain.
    #[inline(always)]
    pub(super) fn leave_plain(
        &mut self,
        now: Time,
        memory: &mut Memory,
        downstream: &mut Downstream<'_>,
    ) -> Option<bool> {
        let &Plain { queue, gone, free_at } = self.plain.as_ref()?;
        if self.occupancy == 0 {
            return Some(false);
        }
        if gone > 0 && free_at < now {
            self.pass_on(downstream);
        }
        memory.count_out(queue, now);
        self.occupancy -= 1;
        self.tracker.fall(self.occupancy);
        let plain = self.plain.as_mut()?;
        plain.gone += 1;
        plain.free_at = now + self.egress.to_hosts.cell_time;
        Some(true)
    }

    /// Returns the number of cells at the front of the queue that have left.
    pub(super) fn gone(&self) -> usize {
        self.plain.as_ref().map_or(0, |plain| plain.gone as usize)
    }

    /// Passes on the cells that have left a plain port.
    #[inline(never)]
    fn pass_on(&mut self, downstream: &mut Downstream<'_>) {
        let (Some(plain), Waiting::Fifo(queue)) = (&mut self.plain, &mut self.waiting) else { return };
        let cells = std::mem::take(&mut plain.gone);
        let cell_time = self.egress.to_hosts.cell_time;
        let mut start = Time(plain.free_at.0 - cell_time.0 * u64::from(cells));
        let (front, back) = queue.as_slices();
        for &cell in front.iter().chain(back).take(cells as usize) {
            if self.removals == Removals::Possible {
                forget_cuts(&mut self.cut_frames, cell);
            }
            self.egress.send_first_to_hosts(cell, start, downstream);
            start += cell_time;
        }
        queue.drain(..cells as usize);
    }
}
