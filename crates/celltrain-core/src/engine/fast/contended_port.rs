//! A contended port. [`super::port_plan`] selects its variant.

use super::egress::{AtOncePort, Downstream, Egress, ToHosts};
use super::fifo::Fifo;
use super::ingress::{Among, Batch, CellIngress};
use super::memory_ports::MemoryPorts;
use super::output::Output;
use super::plan::{AtOnceIndex, MemoryPlace, PortIndex};
use super::train_port::TrainPort;
use crate::cell::Run;
use crate::index::LinkIndex;
use crate::network::Routing;
use crate::rate_control::RateControl;
use crate::units::{Span, Time};

pub(super) enum ContendedPort {
    Trains(TrainPort),
    /// Cells arrive and leave one by one, first in, first out (FIFO).
    Stream(StreamPort),
    /// Cells arrive and leave one by one, and wait in queues.
    Queues(QueuePort),
    /// Each cell is processed before it arrives, when the port upstream sends it.
    AtOnce(AtOnceIndex),
    /// The first port of a memory, which does the work of all the memory's ports.
    Memory(Box<MemoryPorts>),
    /// Another port of a memory: the memory's first port, and this port's place in the memory.
    InMemory(PortIndex, MemoryPlace),
}

impl ContendedPort {
    /// Returns the port that does the work of this port (number `own`). For a port in a memory, also returns its place
    /// in the memory.
    pub(super) fn unit(&self, own: PortIndex) -> (PortIndex, MemoryPlace) {
        match *self {
            ContendedPort::InMemory(first, place) => (first, place),
            _ => (own, MemoryPlace::default()),
        }
    }

    /// Settles everything before `until`, or only a part if everything would delay a check for cancellation too long.
    /// Everything before `since` is already settled. `batch` must be empty, and is empty again afterwards.
    #[inline(always)]
    pub(super) fn work(
        &mut self,
        number: PortIndex,
        link: LinkIndex,
        since: Time,
        until: Time,
        batch: &mut Batch,
        downstream: &mut Downstream<'_>,
    ) -> Worked {
        let (reached, free_at, next_arrival, effect_of_waiting) = match self {
            ContendedPort::Trains(port) => {
                downstream.links.swap_trains(number, &mut port.ingress);
                let until = port.reach(since, until);
                port.work(until, |run, first_start, period| downstream.go(link, run, first_start, period));
                let next_arrival = port.next_to_matter();
                downstream.links.swap_trains(number, &mut port.ingress);
                (until, port.output.free_at(), next_arrival, port.output.effect_of_waiting())
            }
            ContendedPort::Stream(port) => {
                let until = port.ingress.reach(until, downstream.links, |first| first);
                if port.fifo.stores() {
                    port.work_whole(until, batch, downstream);
                } else if downstream.fabric.delays.is_some() {
                    port.work_measuring(until, batch, downstream);
                } else if port.fifo.delimits() {
                    port.work::<true, false>(until, batch, downstream);
                } else {
                    port.work::<false, false>(until, batch, downstream);
                }
                (until, port.fifo.free_at, port.ingress.next_to_matter, None)
            }
            ContendedPort::Queues(port) => {
                let until = port.ingress.reach(until, downstream.links, |first| port.output.first_of(first));
                port.work(until, batch, downstream);
                let output = &port.output;
                (until, output.free_at(), port.ingress.next_to_matter, output.effect_of_waiting())
            }
            ContendedPort::Memory(ports) => {
                let until = ports.ingress.reach(until, downstream.links, |first| first);
                if ports.stores() {
                    ports.work::<true, true>(until, batch, downstream);
                } else if ports.delimits() {
                    ports.work::<true, false>(until, batch, downstream);
                } else {
                    ports.work::<false, false>(until, batch, downstream);
                }
                (until, Time::default(), ports.ingress.next_to_matter, ports.effect_of_waiting())
            }
            ContendedPort::AtOnce(_) | ContendedPort::InMemory(..) => {
                return Worked { reached: until, next_effect: None };
            }
        };
        downstream.links.set_free_at(number, free_at);
        let effect_of_next = next_arrival.map(|arrival| downstream.links.effect_of(number, arrival));
        Worked { reached, next_effect: effect_of_next.into_iter().chain(effect_of_waiting).min() }
    }

    /// Reports the arrivals recorded since the last call to the port's allocator. `link` is the port's link.
    #[inline]
    pub(super) fn report_arrivals(&mut self, link: LinkIndex, routing: &Routing, rate_control: &mut RateControl) {
        match self {
            ContendedPort::Trains(TrainPort { output, .. }) | ContendedPort::Queues(QueuePort { output, .. }) => {
                if output.timing.notes {
                    output.arrivals.drain(..).for_each(|arrival| arrival.report(link, routing, rate_control));
                }
            }
            ContendedPort::Memory(ports) => ports.report_arrivals(routing, rate_control),
            ContendedPort::Stream(_) | ContendedPort::AtOnce(_) | ContendedPort::InMemory(..) => {}
        }
    }

    /// Updates the counts to their state at `until`. All earlier events must be settled.
    pub(super) fn look_at(&mut self, until: Time) {
        match self {
            ContendedPort::Trains(TrainPort { output, .. }) | ContendedPort::Queues(QueuePort { output, .. }) => {
                output.look_at(until);
            }
            ContendedPort::Stream(port) => port.fifo.look_at(until),
            ContendedPort::Memory(ports) => ports.look_at(),
            ContendedPort::AtOnce(_) | ContendedPort::InMemory(..) => {}
        }
    }

    /// Moves the horizon up to which the port can be settled next. Ports that process cells early are updated
    /// separately.
    pub(super) fn set_horizon(&mut self, horizon: Time) {
        match self {
            ContendedPort::Trains(port) => {
                port.output.set_horizon(horizon);
                // Report departures by run again, until a single departure may be too late for the new horizon.
                port.output.reports_each = false;
            }
            ContendedPort::Stream(port) => port.fifo.ask_at(horizon),
            ContendedPort::Queues(port) => port.output.set_horizon(horizon),
            ContendedPort::Memory(_) | ContendedPort::AtOnce(_) | ContendedPort::InMemory(..) => {}
        }
        self.each_to_hosts(|to_hosts| to_hosts.set_horizon(horizon));
    }

    pub(super) fn report_partial_frames(&mut self, link: LinkIndex, downstream: &mut Downstream<'_>) {
        match self {
            ContendedPort::Trains(port) => {
                let depart = |run, first_start, period| downstream.go(link, run, first_start, period);
                port.partial_frames.report_all(depart);
                port.output.buffer.report_to_policy();
            }
            ContendedPort::Queues(port) => port.output.buffer.report_to_policy(),
            &mut ContendedPort::AtOnce(port) => {
                let Downstream { fabric, at_once, .. } = downstream;
                let AtOncePort { fifo, to_hosts, .. } = &mut at_once[port];
                fifo.look_at(fabric.horizon + Span(1));
                to_hosts.report_partial_frames(fabric);
            }
            ContendedPort::Memory(ports) => return ports.report_partial_frames(downstream),
            ContendedPort::Stream(_) | ContendedPort::InMemory(..) => {}
        }
        self.each_to_hosts(|to_hosts| to_hosts.report_partial_frames(downstream.fabric));
    }

    /// Calls `act` for each component that sends cells to hosts, in a port of single cells or in the ports of a memory.
    fn each_to_hosts(&mut self, mut act: impl FnMut(&mut ToHosts)) {
        match self {
            ContendedPort::Stream(StreamPort { egress, .. }) | ContendedPort::Queues(QueuePort { egress, .. }) => {
                act(&mut egress.to_hosts);
            }
            ContendedPort::Memory(ports) => {
                ports.ports_mut().iter_mut().for_each(|port| act(&mut port.egress.to_hosts));
            }
            ContendedPort::Trains(_) | ContendedPort::AtOnce(_) | ContendedPort::InMemory(..) => {}
        }
    }
}

pub(super) struct Worked {
    /// Everything before this instant has been processed.
    pub(super) reached: Time,
    /// The earliest instant at which unprocessed arrivals can have an effect at another node.
    pub(super) next_effect: Option<Time>,
}

/// A port of single cells whose departure times are not a simple sum. The port may have a scheduler's queues, cells
/// pushed out from the front, marks, incomplete frames that wait, a policy that follows cells, or an allocator.
///
/// A cell's start is certain once all arrivals before it are settled. Only then does the cell enter the next port's
/// stream.
pub(super) struct QueuePort {
    pub(super) ingress: CellIngress,
    pub(super) output: Output,
    pub(super) egress: Egress,
}

impl QueuePort {
    /// Settles everything before `until`.
    #[inline(never)]
    pub(super) fn work(&mut self, until: Time, batch: &mut Batch, downstream: &mut Downstream<'_>) {
        let Self { ingress, output, egress } = self;
        let delimits = output.buffer.admission.delimits();
        ingress.take_batch(until, downstream.links, batch);
        ingress.hand_over(batch, |now, cell, Among { is_first, is_last }| {
            if is_first {
                output.catch_up(now);
            }
            output.note(Run { last: cell, cells: 1 }, now, Span(0));
            if delimits {
                output.buffer.admission.delimit(cell);
            }
            let cell = output.mark_arrival(cell);
            let mut depart = |run, start, _| egress.send_run(run, start, downstream);
            let start = if is_first && is_last && output.may_bypass_queue(now, cell) {
                output.bypass_queue(now, cell, &mut depart)
            } else {
                output.offer(now, cell, &mut depart)
            };
            if let Some(start) = start {
                egress.send(cell, start, downstream);
            }
        });
        output.settle(until, &mut |run, start, _| egress.send_run(run, start, downstream));
    }
}

/// A first-in first-out port of single cells. An admitted cell is sent downstream at once, because its start is known:
/// `docs/design/link-streams.md`.
pub(super) struct StreamPort {
    pub(super) ingress: CellIngress,
    pub(super) fifo: Fifo,
    pub(super) egress: Egress,
}

impl StreamPort {
    /// Settles everything before `until`. `DELIMITS` says whether packets delimit themselves, `MEASURES` whether delays are
    /// measured.
    #[inline(never)]
    pub(super) fn work<const DELIMITS: bool, const MEASURES: bool>(
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

    /// Settles everything before `until`, and records the delays of packets.
    #[inline(never)]
    fn work_measuring(&mut self, until: Time, batch: &mut Batch, downstream: &mut Downstream<'_>) {
        if self.fifo.delimits() {
            self.work::<true, true>(until, batch, downstream);
        } else {
            self.work::<false, true>(until, batch, downstream);
        }
    }

    /// Settles everything before `until`, at a port that stores packets whole.
    #[inline(never)]
    pub(super) fn work_whole(&mut self, until: Time, batch: &mut Batch, downstream: &mut Downstream<'_>) {
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
