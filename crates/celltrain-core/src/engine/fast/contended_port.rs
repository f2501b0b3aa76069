//! A contended port, by the code that runs for it ([`super::port_plan`]).

use typed_index_collections::TiSlice;

use super::batching_port::BatchingPort;
use super::egress::{Egress, ToHosts};
use super::fabric::{Downstream, Fabric};
use super::fifo::Fifo;
use super::ingress::{Among, Batch, CellIngress};
use super::links::Links;
use super::output::{Arrival, Output, Timing};
use super::plan::PortIndex;
use super::train_port::TrainPort;
use crate::cell::{Cell, Run};
use crate::index::{Label, LinkIndex, indices};
use crate::port::PortState;
use crate::queue_range::QueueRange;
use crate::units::{Span, Time};

/// A contended port, by the way in which it works.
pub(super) enum ContendedPort {
    /// Trains arrive and leave.
    Trains(TrainPort),
    /// Cells arrive and leave one by one, first in, first out.
    Stream(StreamPort),
    /// Cells arrive and leave one by one, and wait in queues.
    Queues(QueuePort),
    /// Each cell is worked on before it arrives, downstream of the port that sends it.
    AtOnce(AtOnceIndex),
}

impl ContendedPort {
    /// Returns whether the order of departures is worked out later than the admission.
    pub(super) fn defers_order(&self) -> bool {
        match self {
            ContendedPort::Stream(_) | ContendedPort::AtOnce(_) => false,
            ContendedPort::Trains(TrainPort { output, .. }) | ContendedPort::Queues(QueuePort { output, .. }) => {
                output.defers_order
            }
        }
    }

    /// Settles everything before `until`, or a part of it if that could take too long for an interrupt, given that
    /// everything before `since` is settled. The batch is empty, and is empty again at the end.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a batch; the call costs 2 % of a plain run")]
    pub(super) fn work(
        &mut self,
        at: At,
        since: Time,
        until: Time,
        batch: &mut Batch,
        downstream: &mut Downstream<'_>,
    ) -> Worked {
        let (reached, free_at, next_arrival, effect_of_waiting) = match self {
            ContendedPort::Trains(port) => {
                downstream.links.swap_trains(at.port, &mut port.ingress);
                let until = port.reach(since, until);
                port.work(until, |run, first_start, period| downstream.go(at.link, run, first_start, period));
                let next_arrival = port.next_to_matter();
                downstream.links.swap_trains(at.port, &mut port.ingress);
                (until, port.output.free_at(), next_arrival, port.output.effect_of_waiting())
            }
            ContendedPort::Stream(port) => {
                let until = port.reach(until, downstream.links);
                port.work(until, batch, downstream);
                (until, port.fifo.free_at(), port.ingress.next_to_matter(), None)
            }
            ContendedPort::Queues(port) => {
                let until = port.reach(until, downstream.links);
                port.work(until, batch, downstream);
                let output = &port.output;
                (until, output.free_at(), port.ingress.next_to_matter(), output.effect_of_waiting())
            }
            ContendedPort::AtOnce(_) => return Worked { reached: until, next_effect: None },
        };
        downstream.links.set_free_at(at.port, free_at);
        let effect_of_next = next_arrival.map(|arrival| downstream.links.effect_of(at.port, arrival));
        Worked { reached, next_effect: effect_of_next.into_iter().chain(effect_of_waiting).min() }
    }

    /// Takes the arrivals noted for the port's allocator since the last call.
    #[inline]
    pub(super) fn take_arrivals(&mut self, note: impl FnMut(Arrival)) {
        if let ContendedPort::Trains(TrainPort { output, .. }) | ContendedPort::Queues(QueuePort { output, .. }) = self
            && output.timing.notes
        {
            output.arrivals().for_each(note);
        }
    }

    /// Brings the counts to `until`; everything before it is settled.
    pub(super) fn look_at(&mut self, until: Time) {
        match self {
            ContendedPort::Trains(TrainPort { output, .. }) | ContendedPort::Queues(QueuePort { output, .. }) => {
                output.look_at(until);
            }
            ContendedPort::Stream(port) => port.fifo.look_at(until),
            ContendedPort::AtOnce(_) => {}
        }
    }

    /// Starts a new range at a sample, after a look.
    pub(super) fn start_range(&mut self) {
        match self {
            ContendedPort::Trains(TrainPort { output, .. }) | ContendedPort::Queues(QueuePort { output, .. }) => {
                output.port.start_range();
            }
            ContendedPort::Stream(port) => port.fifo.start_range(),
            ContendedPort::AtOnce(_) => unreachable!("{UNWATCHED}"),
        }
    }

    /// Returns the buffer.
    pub(super) fn buffer<'a>(&'a self, at_once: &'a TiSlice<AtOnceIndex, AtOncePort>) -> Buffer<'a> {
        match self {
            ContendedPort::Trains(TrainPort { output, .. }) | ContendedPort::Queues(QueuePort { output, .. }) => {
                Buffer::Queues(&output.port)
            }
            ContendedPort::Stream(port) => Buffer::Fifo(&port.fifo),
            &ContendedPort::AtOnce(port) => Buffer::Fifo(&at_once[port].fifo),
        }
    }

    /// Moves the horizon: the port will be settled up to it next. A port that takes cells at once is elsewhere.
    pub(super) fn set_horizon(&mut self, horizon: Time) {
        match self {
            ContendedPort::Trains(port) => {
                port.output.set_horizon(horizon);
                port.output.report_runs();
            }
            ContendedPort::Stream(port) => port.set_horizon(horizon),
            ContendedPort::Queues(port) => port.set_horizon(horizon),
            ContendedPort::AtOnce(_) => {}
        }
    }

    /// Reports all cells that were collected.
    pub(super) fn report_partial_frames(&mut self, link: LinkIndex, downstream: &mut Downstream<'_>) {
        match self {
            ContendedPort::Trains(port) => {
                port.report_partial_frames(|run, first_start, period| downstream.go(link, run, first_start, period));
                port.output.port.report_to_policy();
            }
            ContendedPort::Stream(port) => port.egress.to_hosts.report_partial_frames(&mut downstream.fabric),
            ContendedPort::Queues(port) => {
                port.egress.to_hosts.report_partial_frames(&mut downstream.fabric);
                port.output.port.report_to_policy();
            }
            &mut ContendedPort::AtOnce(port) => {
                let Downstream { fabric, at_once, .. } = downstream;
                let AtOncePort { fifo, to_hosts, .. } = &mut at_once[port];
                fifo.look_at(fabric.horizon + Span(1));
                to_hosts.report_partial_frames(fabric);
            }
        }
    }
}

const UNWATCHED: &str = "no queue is looked at where a port takes cells at once";

/// A buffer as probes and results show it, after a look.
pub(super) enum Buffer<'a> {
    Queues(&'a BatchingPort),
    Fifo(&'a Fifo),
}

impl Buffer<'_> {
    /// Returns X, the number of waiting cells.
    pub(super) fn occupancy(&self) -> u32 {
        match self {
            Buffer::Queues(port) => port.occupancy(),
            Buffer::Fifo(fifo) => fifo.occupancy(),
        }
    }

    /// Returns the fewest and the most cells waiting since the latest sample.
    pub(super) fn range(&self) -> QueueRange {
        match self {
            Buffer::Queues(port) => port.range(),
            Buffer::Fifo(fifo) => fifo.range(),
        }
    }

    /// Returns `Y_i`, the waiting cells of each VC, by label.
    pub(super) fn per_vc(&self) -> &TiSlice<Label, u32> {
        match self {
            Buffer::Queues(port) => port.per_vc(),
            Buffer::Fifo(fifo) => fifo.per_vc(),
        }
    }

    /// Returns the number of waiting cells of a VC's frame that is not yet whole.
    pub(super) fn awaiting_reassembly(&self, label: Label) -> u32 {
        match self {
            Buffer::Queues(port) => port.awaiting_reassembly(label),
            Buffer::Fifo(_) => 0,
        }
    }

    /// Returns the state of the port, as results show it.
    pub(super) fn state(&self) -> PortState {
        match self {
            Buffer::Queues(port) => port.state(),
            Buffer::Fifo(fifo) => fifo.state(),
        }
    }
}

/// The place of a contended port in the network.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub(super) port: PortIndex,
    /// The link behind it.
    pub(super) link: LinkIndex,
}

/// The result of a batch.
pub(super) struct Worked {
    /// Everything before this is settled.
    pub(super) reached: Time,
    /// The earliest instant at which unsettled arrivals can have an effect elsewhere.
    pub(super) next_effect: Option<Time>,
}

/// A port of single cells whose departures need more than addition: a scheduler's queues, cells pushed out from the
/// front, marks, frames that wait until they are whole, a policy that follows cells, an allocator.
///
/// A cell's start is certain when everything that arrives before its start is settled. Only then does it go into the
/// next port's stream.
pub(super) struct QueuePort {
    pub(super) ingress: CellIngress,
    pub(super) output: Output,
    pub(super) egress: Egress,
}

impl QueuePort {
    pub(super) fn new(port: BatchingPort, ingress: CellIngress, egress: Egress, timing: Timing) -> Self {
        Self { ingress, output: Output::new(port, timing).reporting_each(), egress }
    }

    /// Returns the end of the next batch.
    #[inline]
    pub(super) fn reach(&self, until: Time, links: &Links) -> Time {
        self.ingress.reach(until, links, |first| self.output.first_of(first))
    }

    /// Settles everything before `until`.
    #[inline(never)]
    pub(super) fn work(&mut self, until: Time, batch: &mut Batch, downstream: &mut Downstream<'_>) {
        let Self { ingress, output, egress } = self;
        ingress.take_batch(until, downstream.links, batch);
        ingress.hand_over(batch, |now, cell, Among { is_first, is_last }| {
            if is_first {
                output.catch_up(now);
            }
            output.note(Run { last: cell, cells: 1 }, now, Span(0));
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

    /// Moves the horizon.
    pub(super) fn set_horizon(&mut self, horizon: Time) {
        self.output.set_horizon(horizon);
        self.egress.to_hosts.latest_start = self.output.timing.latest_start;
    }
}

/// A port of single cells, first in, first out. An admitted cell goes downstream at once, because its start is known:
/// `docs/design/link-streams.md`.
pub(super) struct StreamPort {
    pub(super) ingress: CellIngress,
    pub(super) fifo: Fifo,
    pub(super) egress: Egress,
    /// Most time from the start of a cell to the end of its stage.
    longest_lead: Span,
}

impl StreamPort {
    pub(super) fn new(ingress: CellIngress, fifo: Fifo, egress: Egress, longest_lead: Span) -> Self {
        Self { ingress, fifo, egress, longest_lead }
    }

    /// Returns the end of the next batch.
    #[inline]
    pub(super) fn reach(&self, until: Time, links: &Links) -> Time {
        self.ingress.reach(until, links, |first| first)
    }

    /// Settles everything before `until`.
    #[inline(never)]
    pub(super) fn work(&mut self, until: Time, batch: &mut Batch, downstream: &mut Downstream<'_>) {
        let Self { ingress, fifo, egress, .. } = self;
        ingress.take_batch(until, downstream.links, batch);
        ingress.hand_over(batch, |now, cell, _| {
            if let Some(start) = fifo.enter(now, cell) {
                egress.send(cell, start, downstream);
            }
        });
        fifo.forget(until);
    }

    /// Moves the horizon.
    pub(super) fn set_horizon(&mut self, horizon: Time) {
        self.fifo.ask_at(horizon);
        self.egress.to_hosts.latest_start = Time(horizon.0.saturating_sub(self.longest_lead.0));
    }
}

indices! {
    /// A port that takes cells at once.
    AtOnceIndex;
}

/// A port that takes each cell as soon as its arrival is known. It is first in, first out, a single contended link
/// feeds it, all its cells go to hosts, and no probe looks at it before the horizon. So no other cell can come first,
/// and the port needs no batches and no events.
pub(super) struct AtOncePort {
    pub(super) fifo: Fifo,
    pub(super) to_hosts: ToHosts,
    /// Most time from the start of a cell to its arrival at its host.
    pub(super) longest_lead: Span,
}

impl AtOncePort {
    /// Moves the horizon.
    pub(super) fn set_horizon(&mut self, horizon: Time) {
        self.fifo.ask_at(horizon);
        self.to_hosts.latest_start = Time(horizon.0.saturating_sub(self.longest_lead.0));
    }

    /// Works on a cell that will arrive at `now`.
    #[inline]
    pub(super) fn take(&mut self, now: Time, cell: Cell, fabric: &mut Fabric<'_>) {
        let Some(start) = self.fifo.enter(now, cell) else { return };
        self.to_hosts.send(cell, start, fabric);
        if cell.last_cell() {
            self.fifo.forget(now + Span(1));
        }
    }
}
