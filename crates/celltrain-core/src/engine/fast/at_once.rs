//! Ports whose cells are worked on as soon as it is known that they will arrive.
//!
//! Such a port is first in, first out, a single contended link feeds it, and all its cells go to hosts. So nothing can
//! come before a cell that is known to arrive, and no probe looks at the port before the horizon. It needs no
//! batches and no events.

use super::fabric::Fabric;
use super::fifo::Fifo;
use super::partial_frames::ToHosts;
use crate::cell::Cell;
use crate::index::indices;
use crate::units::{Span, Time};

indices! {
    /// A port that takes cells at once.
    AtOnceIndex;
}

/// A port that takes cells at once.
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
