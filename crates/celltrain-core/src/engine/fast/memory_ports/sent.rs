//! Departures from ports that store each packet whole.
//!
//! Once the first cell of a packet has left a first-in first-out port, its other cells follow, and nothing removes them.
//! So each of these cells only changes counts, and the packet goes downstream when its last cell starts.

use super::port::Removals;
use super::waiting::Waiting;
use super::{MemoryPort, Switch};
use crate::cell::{Cell, Run};
use crate::engine::fast::egress::{Downstream, HopEnd};
use crate::engine::fast::fabric::Fabric;
use crate::engine::fast::plan::MemoryPlace;
use crate::units::Time;

impl Switch {
    /// Makes a free port send its next cell, if a whole packet waits.
    #[inline(always)]
    pub(super) fn start_stored(&mut self, place: MemoryPlace, now: Time, downstream: &mut Downstream<'_>) {
        self.end_sending(place);
        if self.ports[place].wire_pauses.is_some() && !self.begin_packet(place, now, downstream) {
            return;
        }
        let port = &mut self.ports[place];
        let is_single = !port.has_equal_times() || port.acts_on_every_cell();
        match &mut port.waiting {
            Waiting::Packets(runs) => match runs.front_mut() {
                Some(run) if run.cells > 1 && !is_single => {
                    run.cells -= 1;
                    let cell = run.last.not_last();
                    self.start_inside(place, cell, now, downstream);
                }
                Some(_) => self.start::<true>(place, now, downstream),
                None => port.is_busy = false,
            },
            Waiting::Scheduled(_) => self.start::<true>(place, now, downstream),
            Waiting::Fifo(_) | Waiting::Pausable(_) => unreachable!("the port stores packets"),
        }
    }

    /// Sends a cell that is followed by another cell of its packet, and has been taken from its queue.
    #[inline(always)]
    fn start_inside(&mut self, place: MemoryPlace, cell: Cell, now: Time, downstream: &mut Downstream<'_>) {
        let port = &mut self.ports[place];
        port.leave_stored(cell);
        self.memory.leave(port.class(cell.label()), now);
        self.calendar.start(place, now);
        let egress = &mut port.egress;
        if egress.hops[cell.label()].to == HopEnd::Host && egress.to_hosts.collects(now) {
            port.stored_mut().sent += 1;
            self.begin_sending(place, now);
        } else {
            port.collect_sent(cell, downstream.fabric);
            port.egress.send_first_to_hosts(cell, now, downstream);
        }
    }
}

impl MemoryPort {
    /// Returns a lower bound on the number of cells that the port sends before a cell with an effect elsewhere. A packet
    /// for a host has its effect with its last cell.
    pub(super) fn least_to_an_effect(&self) -> u32 {
        let (Waiting::Packets(runs), Some(stored)) = (&self.waiting, &self.stored) else { return 0 };
        let Some(Run { last, cells }) = runs.front() else { return 0 };
        let is_certain = self.has_equal_times()
            && !self.acts_on_every_cell()
            && (self.removals == Removals::Never || stored.is_leaving(*last));
        if is_certain && self.egress.hops[last.label()].to == HopEnd::Host { cells - 1 } else { 0 }
    }

    /// Takes the next cell to be sent, if a whole packet waits.
    #[inline]
    pub(super) fn take_stored(&mut self) -> Option<Cell> {
        let is_ready = self.is_ready();
        let cell = match &mut self.waiting {
            Waiting::Packets(runs) => Run::take_first_cells(runs, 1)?.last,
            Waiting::Scheduled(queues) if !is_ready => {
                queues.on_idle();
                return None;
            }
            Waiting::Scheduled(queues) => queues.pop(),
            Waiting::Fifo(_) | Waiting::Pausable(_) => unreachable!("the port stores packets"),
        };
        self.leave_stored(cell);
        Some(cell)
    }

    /// Counts a cell that has been taken from its queue to be sent.
    #[inline(always)]
    fn leave_stored(&mut self, cell: Cell) {
        self.count_one_out(cell.label());
        self.stored_mut().leave(cell);
        if let Some(follower) = self.admission.follower() {
            follower.on_leave(1);
        }
    }

    /// Passes on the cells sent so far of the packet of `cell`, which is the next cell of this packet.
    #[inline]
    pub(super) fn collect_sent(&mut self, cell: Cell, fabric: &mut Fabric) {
        let cells = std::mem::take(&mut self.stored_mut().sent);
        if cells > 0 {
            self.egress.to_hosts.collect(Run { last: cell.not_last(), cells }, fabric);
        }
    }

    /// Passes on all cells sent so far.
    pub(super) fn collect_all_sent(&mut self, fabric: &mut Fabric) {
        if let Waiting::Packets(runs) = &self.waiting
            && let Some(&Run { last, .. }) = runs.front()
        {
            self.collect_sent(last, fabric);
        }
    }
}
