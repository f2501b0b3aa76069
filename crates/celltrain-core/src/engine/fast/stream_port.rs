//! A first-in first-out port of single cells.

use super::contended_port::{ContendedPort, Due, Worked};
use super::egress::{Downstream, Egress};
use super::fifo::Fifo;
use super::ingress::{Batch, CellIngress};
use super::plan::MemoryPlace;
use super::port_queue::PortQueue;
use crate::units::Time;

/// A first-in first-out port of single cells. An admitted cell is sent downstream at once, because its start is known:
/// `docs/design/link-streams.md`.
pub(super) struct StreamPort {
    pub(super) ingress: CellIngress,
    pub(super) fifo: Fifo,
    pub(super) egress: Egress,
}

impl StreamPort {
    /// Processes all arrivals and departures before `until`. `DELIMITS` is true with packet framing, `MEASURES` if
    /// delays are measured.
    #[inline(never)]
    fn take_cells<const DELIMITS: bool, const MEASURES: bool>(
        &mut self,
        until: Time,
        batch: &mut Batch,
        downstream: &mut Downstream<'_>,
    ) {
        let Self { ingress, fifo, egress, .. } = self;
        ingress.take_batch(until, downstream.links, batch);
        ingress.hand_over(batch, |now, cell, _| {
            if DELIMITS {
                fifo.delimit(cell);
            }
            if let Some(start) = fifo.enter(now, cell) {
                if MEASURES && cell.last_cell() {
                    egress.to_hosts.record_entry(cell, now, start, downstream.fabric);
                }
                egress.send(cell, start, downstream);
            }
        });
        fifo.forget(until);
    }

    /// Processes all arrivals and departures before `until`, and records the delays of packets.
    #[inline(never)]
    fn measure_cells(&mut self, until: Time, batch: &mut Batch, downstream: &mut Downstream<'_>) {
        if self.fifo.delimits() {
            self.take_cells::<true, true>(until, batch, downstream);
        } else {
            self.take_cells::<false, true>(until, batch, downstream);
        }
    }

    /// Processes all arrivals and departures before `until`, at a port that stores packets whole.
    #[inline(never)]
    fn store_cells(&mut self, until: Time, batch: &mut Batch, downstream: &mut Downstream<'_>) {
        let Self { ingress, fifo, egress, .. } = self;
        ingress.take_batch(until, downstream.links, batch);
        ingress.hand_over(batch, |now, cell, _| {
            let Some(mut start) = fifo.store(now, cell) else { return };
            for &cell in fifo.whole() {
                egress.send(cell, start, downstream);
                start += egress.to_hosts.cell_time;
            }
        });
        fifo.forget(until);
    }
}

impl ContendedPort for StreamPort {
    fn work(&mut self, Due { port, until, .. }: Due, batch: &mut Batch, downstream: &mut Downstream<'_>) -> Worked {
        let reached = self.ingress.reach(until, downstream.links, |first| first);
        if self.fifo.stores() {
            self.store_cells(reached, batch, downstream);
        } else if downstream.fabric.delays.is_some() {
            self.measure_cells(reached, batch, downstream);
        } else if self.fifo.delimits() {
            self.take_cells::<true, false>(reached, batch, downstream);
        } else {
            self.take_cells::<false, false>(reached, batch, downstream);
        }
        let next_effect = downstream.links.next_effect(port, self.fifo.free_at, self.ingress.next_to_matter, None);
        Worked { reached, next_effect }
    }

    fn name(&self) -> String {
        "StreamPort".into()
    }

    fn queue(&self, _: MemoryPlace) -> &dyn PortQueue {
        &self.fifo
    }

    fn queue_mut(&mut self, _: MemoryPlace) -> &mut dyn PortQueue {
        &mut self.fifo
    }

    fn each_egress(&mut self, act: &mut dyn FnMut(&mut Egress)) {
        act(&mut self.egress);
    }
}
