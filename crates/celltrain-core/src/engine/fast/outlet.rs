//! Where single cells go from a port: into the stream of another, or the slow way, as those for hosts do.

use typed_index_collections::TiVec;

use super::fabric::Fabric;
use super::gathered::{self, Gathered};
use super::onwards::Onwards;
use crate::cell::{Cell, Run};
use crate::index::{Label, LinkIndex};
use crate::sizes::size;
use crate::units::{Span, Time};

/// The way out of a port, by VC.
pub(super) struct Outlet {
    link: LinkIndex,
    cell_time: Span,
    /// A cell that starts no later than this arrives by the horizon, on every way.
    latest_start: Time,
    hops: TiVec<Label, Hop>,
    gathered: Gathered,
}

/// Where a VC's cells go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hop {
    /// From the start of a cell to its arrival there.
    pub(super) lead: Span,
    /// The number of the stream that takes them, or one of those below.
    pub(super) to: u32,
    /// The VC's label there.
    pub(super) label: Label,
}

impl Hop {
    /// From here on, the number of a contended port that takes cells at once stands behind it.
    pub(super) const AT_ONCE: u32 = 1 << 31;
    /// To no stream: they go to a port that takes trains, or each is watched on its way.
    pub(super) const ONE_BY_ONE: u32 = u32::MAX - 1;
    /// To no stream: they go to a host.
    pub(super) const TO_HOST: u32 = u32::MAX;
}

/// Memory of a VC.
pub(super) const BYTES_PER_VC: u64 = size::<Hop>() + gathered::BYTES_PER_VC;

impl Outlet {
    /// That of a port whose VCs go on as `hops` say.
    pub(super) fn new(link: LinkIndex, hops: TiVec<Label, Hop>, (cell_time, latest_start): (Span, Time)) -> Self {
        Self { link, cell_time, latest_start, gathered: Gathered::new(hops.len()), hops }
    }

    /// Moves the latest start of a cell that arrives by the horizon.
    pub(super) fn set_latest_start(&mut self, latest_start: Time) {
        self.latest_start = latest_start;
    }

    /// A cell starts.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a cell")]
    pub(super) fn send(&mut self, cell: Cell, start: Time, onwards: &mut Onwards<'_>) {
        let hop = self.hops[cell.label()];
        if start <= self.latest_start && !cell.is_rm() {
            let (arrival, there) = (start + hop.lead, cell.relabelled(hop.label));
            if hop.to < Hop::AT_ONCE {
                return onwards.push(hop.to, arrival, there);
            }
            if hop.to < Hop::ONE_BY_ONE {
                return onwards.hand_over(hop.to - Hop::AT_ONCE, arrival, there);
            }
        }
        self.send_elsewhere(cell, hop.to, start, onwards);
    }

    /// Cells of a frame start, one after the other.
    #[inline]
    pub(super) fn send_run(&mut self, run: Run, first_start: Time, onwards: &mut Onwards<'_>) {
        let mut start = first_start;
        for cell in run.iter() {
            self.send(cell, start, onwards);
            start += self.cell_time;
        }
    }

    #[inline(never)]
    fn send_elsewhere(&mut self, cell: Cell, to: u32, start: Time, onwards: &mut Onwards<'_>) {
        if to == Hop::TO_HOST {
            self.send_to_host(cell, start, &mut onwards.fabric);
        } else {
            onwards.go_seldom(Run { last: cell, cells: 1 }, start, self.cell_time);
        }
    }

    /// Hands on a cell on its way to a host. It matters only if it ends a frame, is an RM cell, or may be too late for
    /// the end of the run; others are gathered.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a cell; what else is done is done once a frame")]
    pub(super) fn send_to_host(&mut self, cell: Cell, start: Time, fabric: &mut Fabric<'_>) {
        if cell.is_rm() || cell.last_cell() || start > self.latest_start {
            self.send_what_matters(cell, start, fabric);
        } else if let Some(others) = self.gathered.add(Run { last: cell, cells: 1 }) {
            self.report(others, Time::default(), Span(0), fabric);
        }
    }

    #[inline(never)]
    fn send_what_matters(&mut self, cell: Cell, start: Time, fabric: &mut Fabric<'_>) {
        let run = Run { last: cell, cells: 1 };
        if cell.is_rm() || start > self.latest_start {
            self.report_gathered(cell.label(), fabric);
            self.report(run, start, self.cell_time, fabric);
        } else {
            let cells = self.gathered.take_before(run) + 1;
            self.report_gathered(cell.label(), fabric);
            self.report(Run { cells, ..run }, start, Span(0), fabric);
        }
    }

    #[inline(never)]
    fn report(&self, run: Run, start: Time, period: Span, fabric: &mut Fabric<'_>) {
        let onward = fabric.go(self.link, run, start, period);
        assert!(onward.is_none(), "cells are gathered only on their way to hosts");
    }

    /// Reports the collected cells of a VC, whose starts have no effect.
    fn report_gathered(&mut self, label: Label, fabric: &mut Fabric<'_>) {
        if let Some(gathered) = self.gathered.take(label) {
            self.report(gathered, Time::default(), Span(0), fabric);
        }
    }

    /// Reports all such cells, at the end of the run.
    pub(super) fn report_all_gathered(&mut self, onwards: &mut Onwards<'_>) {
        for label in self.gathered.labels() {
            self.report_gathered(label, &mut onwards.fabric);
        }
    }
}
