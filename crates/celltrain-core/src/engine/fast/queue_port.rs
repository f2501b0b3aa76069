//! A port of single cells whose departure times are not a simple sum.

use super::contended_port::{ContendedPort, Due, Worked};
use super::egress::{Downstream, Egress};
use super::ingress::{Among, Batch, CellIngress};
use super::output::{Discipline, Output};
use super::plan::MemoryPlace;
use super::port_queue::PortQueue;
use crate::cell::Run;
use crate::units::{Span, Time};

/// A port of single cells whose departure times are not a simple sum. The port may have a scheduler's queues, cells
/// pushed out from the front, marks, incomplete frames that wait, a policy that follows cells, or an allocator.
///
/// A cell's start is certain once all arrivals before it are settled. Only then does the cell enter the next port's
/// stream.
pub(super) struct QueuePort<D> {
    pub(super) ingress: CellIngress,
    pub(super) output: Output<D>,
    pub(super) egress: Egress,
}

impl<D: Discipline> QueuePort<D> {
    /// Processes all arrivals and departures before `until`.
    #[inline(never)]
    fn take_cells(&mut self, until: Time, batch: &mut Batch, downstream: &mut Downstream<'_>) {
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

impl<D: Discipline> ContendedPort for QueuePort<D> {
    fn work(&mut self, Due { port, until, .. }: Due, batch: &mut Batch, downstream: &mut Downstream<'_>) -> Worked {
        let reached = self.ingress.reach(until, downstream.links, |first| self.output.first_of(first));
        self.take_cells(reached, batch, downstream);
        let Self { ingress, output, egress } = self;
        output.report_arrivals(egress.to_hosts.link, downstream);
        let (free_at, effect_of_waiting) = (output.free_at(), output.effect_of_waiting());
        let next_effect = downstream.links.next_effect(port, free_at, ingress.next_to_matter, effect_of_waiting);
        Worked { reached, next_effect }
    }

    fn queue(&self, _: MemoryPlace) -> &dyn PortQueue {
        &self.output
    }

    fn queue_mut(&mut self, _: MemoryPlace) -> &mut dyn PortQueue {
        &mut self.output
    }

    fn each_egress(&mut self, act: &mut dyn FnMut(&mut Egress)) {
        act(&mut self.egress);
    }

    fn name(&self) -> String {
        format!("QueuePort<{}>", D::NAME)
    }

    fn report_partial_frames(&mut self, downstream: &mut Downstream<'_>) {
        self.output.buffer.report_to_policy();
        self.egress.to_hosts.report_partial_frames(downstream.fabric);
    }
}
