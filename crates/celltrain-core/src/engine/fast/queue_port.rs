//! A contended port whose cells arrive one by one in the streams of its links, and whose departures need more than
//! addition: queues under a scheduler, cells pushed out from the front, marks, frames that wait until they are whole, a
//! policy that follows cells, an allocator.
//!
//! A cell's start is certain when everything that arrives before its start is settled. Only then does it go into the
//! next port's stream.

use super::batch::Batch;
use super::batching_port::BatchingPort;
use super::downstream::Downstream;
use super::egress::Egress;
use super::ingress::{Among, CellIngress};
use super::links::Links;
use super::output::{Output, Timing};
use crate::cell::Run;
use crate::units::{Span, Time};

/// A port of single cells with queues.
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
        ingress.gather(until, downstream.links, batch);
        ingress.hand_over(batch, |now, cell, Among { is_first, is_last }| {
            if is_first {
                output.catch_up(now);
            }
            output.note(Run { last: cell, cells: 1 }, now, Span(0));
            let mut depart = |run, start, _| egress.send_run(run, start, downstream);
            let start = if is_first && is_last && output.lets_pass(now, cell) {
                output.pass(now, cell, &mut depart)
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
