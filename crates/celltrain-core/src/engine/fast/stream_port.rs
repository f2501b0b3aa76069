//! A contended port whose cells arrive one by one, in the streams of its links, and leave one by one.
//!
//! First in, first out: a cell that is admitted is on its way at once, as its start is known.
//! `docs/design/link-streams.md`.

use super::batch::Batch;
use super::downstream::Downstream;
use super::egress::Egress;
use super::fifo::Fifo;
use super::ingress::CellIngress;
use super::links::Links;
use crate::units::{Span, Time};

/// A port of single cells, first in, first out.
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
        ingress.gather(until, downstream.links, batch);
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
