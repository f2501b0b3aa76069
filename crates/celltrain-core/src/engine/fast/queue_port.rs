//! A contended port whose cells come one by one in the streams of its links, where more is to be done for a departure
//! than to add up: queues under a scheduler, cells pushed out from the front, marks, frames that wait until they are
//! whole, a policy that follows cells, an allocator.
//!
//! A cell starts for certain when everything that arrives before its start is settled, and goes into the next port's
//! stream then.

use super::batch::Batch;
use super::batching_port::BatchingPort;
use super::inbox::{Among, Inbox};
use super::onwards::Onwards;
use super::outlet::Outlet;
use super::output::{Output, Timing};
use super::stream::Streams;
use crate::cell::Run;
use crate::units::{Span, Time};

/// A port of single cells with queues.
pub(super) struct QueuePort {
    pub(super) inbox: Inbox,
    pub(super) output: Output,
    outlet: Outlet,
}

impl QueuePort {
    pub(super) fn new(port: BatchingPort, inbox: Inbox, outlet: Outlet, timing: Timing) -> Self {
        Self { inbox, output: Output::new(port, timing).reporting_each(), outlet }
    }

    /// The end of the next batch.
    #[inline]
    pub(super) fn reach(&self, until: Time, streams: &Streams) -> Time {
        self.inbox.reach(until, streams, |first| self.output.first_of(first))
    }

    /// Settles everything before `until`.
    #[inline(never)]
    pub(super) fn work(&mut self, until: Time, batch: &mut Batch, onwards: &mut Onwards<'_>) {
        let Self { inbox, output, outlet } = self;
        inbox.gather(until, onwards.streams, batch);
        inbox.hand_over(batch, |now, cell, Among { is_first, is_last }| {
            if is_first {
                output.catch_up(now);
            }
            output.note(Run { last: cell, cells: 1 }, now, Span(0));
            let mut depart = |run, start, _| outlet.send_run(run, start, onwards);
            let start = if is_first && is_last && output.lets_pass(now, cell) {
                output.pass(now, cell, &mut depart)
            } else {
                output.offer(now, cell, &mut depart)
            };
            if let Some(start) = start {
                outlet.send(cell, start, onwards);
            }
        });
        output.settle(until, &mut |run, start, _| outlet.send_run(run, start, onwards));
    }

    /// The earliest instant at which unsettled arrivals or departures can have an effect elsewhere.
    #[inline]
    pub(super) fn next_effect(&self) -> Option<Time> {
        let to_come = self.inbox.next_to_matter().map(|arrival| self.effect_of(arrival));
        to_come.into_iter().chain(self.output.effect_of_waiting()).min()
    }

    /// The earliest effect elsewhere of what arrives then.
    #[inline]
    pub(super) fn effect_of(&self, arrival: Time) -> Time {
        self.output.effect_at(arrival, 0)
    }

    /// Moves the horizon.
    pub(super) fn set_horizon(&mut self, horizon: Time) {
        self.output.set_horizon(horizon);
        self.outlet.set_latest_start(self.output.timing.latest_start);
    }

    /// Reports all cells that were gathered.
    pub(super) fn report_all_gathered(&mut self, onwards: &mut Onwards<'_>) {
        self.outlet.report_all_gathered(onwards);
    }
}
