//! A contended port whose cells come one by one, in the streams of its links, and go on in the stream of its own.
//!
//! First in, first out: a cell that is admitted is on its way at once, as its start is known.
//! `docs/design/link-streams.md`.

use super::batch::Batch;
use super::fabric::Fabric;
use super::fifo::Fifo;
use super::inbox::Inbox;
use super::onwards::Onwards;
use super::outlet::Outlet;
use super::stream::Streams;
use crate::cell::Cell;
use crate::units::{Span, Time};

/// A port of single cells, first in, first out.
pub(super) struct StreamPort {
    pub(super) inbox: Inbox,
    pub(super) fifo: Fifo,
    outlet: Outlet,
    /// From the start of a cell to its earliest effect, and to the end of its stage at the latest.
    leads: [Span; 2],
}

impl StreamPort {
    pub(super) fn new(inbox: Inbox, fifo: Fifo, outlet: Outlet, leads: [Span; 2]) -> Self {
        Self { inbox, fifo, outlet, leads }
    }

    /// The end of the next batch.
    #[inline]
    pub(super) fn reach(&self, until: Time, streams: &Streams) -> Time {
        self.inbox.reach(until, streams, |first| first)
    }

    /// Settles everything before `until`.
    #[inline(never)]
    pub(super) fn work(&mut self, until: Time, batch: &mut Batch, onwards: &mut Onwards<'_>) {
        let Self { inbox, fifo, outlet, .. } = self;
        inbox.gather(until, onwards.streams, batch);
        inbox.hand_over(batch, |now, cell, _| {
            if let Some(start) = fifo.enter(now, cell) {
                outlet.send(cell, start, onwards);
            }
        });
        fifo.forget(until);
    }

    /// Works on a cell that will arrive at `now`, of a stream that is taken at once.
    #[inline]
    pub(super) fn take_at_once(&mut self, now: Time, cell: Cell, fabric: &mut Fabric<'_>) {
        let Some(start) = self.fifo.enter(now, cell) else { return };
        self.outlet.send_to_host(cell, start, fabric);
        if cell.last_cell() {
            self.fifo.forget(now + Span(1));
        }
    }

    /// The earliest instant at which unsettled arrivals can have an effect elsewhere.
    #[inline]
    pub(super) fn next_effect(&self) -> Option<Time> {
        self.inbox.next_to_matter().map(|arrival| self.effect_of(arrival))
    }

    /// The earliest effect elsewhere of what arrives then: it starts behind all that was admitted.
    #[inline]
    pub(super) fn effect_of(&self, arrival: Time) -> Time {
        arrival.max(self.fifo.free_at()) + self.leads[0]
    }

    /// Moves the horizon.
    pub(super) fn set_horizon(&mut self, horizon: Time) {
        self.fifo.ask_at(horizon);
        self.outlet.set_latest_start(Time(horizon.0.saturating_sub(self.leads[1].0)));
    }

    /// Reports all cells that were gathered.
    pub(super) fn report_all_gathered(&mut self, onwards: &mut Onwards<'_>) {
        self.outlet.report_all_gathered(onwards);
    }
}
