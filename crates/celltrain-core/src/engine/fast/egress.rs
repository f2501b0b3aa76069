//! The egress of a port of single cells: each cell goes into a stream of the next port, or to a host. On their way to
//! hosts cells are collected by VC until the frame is whole, because only a whole frame has an effect there.

use typed_index_collections::{TiVec, ti_vec};

use super::contended_port::AtOnceIndex;
use super::fabric::{Downstream, Fabric};
use super::links::StreamIndex;
use crate::cell::{Cell, Run};
use crate::index::{Label, LinkIndex};
use crate::units::{Span, Time};

pub(super) struct Egress {
    pub(super) hops: TiVec<Label, Hop>,
    pub(super) to_hosts: ToHosts,
}

/// The next place of a VC's cells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hop {
    /// Time from the start of a cell to its arrival there.
    pub(super) lead: Span,
    pub(super) to: HopEnd,
    /// The VC's label there.
    pub(super) label: Label,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HopEnd {
    Stream(StreamIndex),
    AtOnce(AtOnceIndex),
    /// A port of trains, or a way on which each cell is watched: the fabric takes cells one by one.
    Fabric,
    Host,
}

impl Egress {
    /// Sends a cell that starts at `start`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a cell")]
    pub(super) fn send(&mut self, cell: Cell, start: Time, downstream: &mut Downstream<'_>) {
        let hop = self.hops[cell.label()];
        if start <= self.to_hosts.latest_start && !cell.is_rm() {
            let (arrival, there) = (start + hop.lead, cell.relabelled(hop.label));
            match hop.to {
                HopEnd::Stream(stream) => return downstream.push(stream, arrival, there),
                HopEnd::AtOnce(port) => return downstream.take_at_once(port, arrival, there),
                HopEnd::Fabric | HopEnd::Host => {}
            }
        }
        self.send_elsewhere(cell, hop.to, start, downstream);
    }

    /// Sends cells of a frame that start one after the other.
    #[inline]
    pub(super) fn send_run(&mut self, run: Run, first_start: Time, downstream: &mut Downstream<'_>) {
        let mut start = first_start;
        for cell in run.iter() {
            self.send(cell, start, downstream);
            start += self.to_hosts.cell_time;
        }
    }

    #[inline(never)]
    fn send_elsewhere(&mut self, cell: Cell, to: HopEnd, start: Time, downstream: &mut Downstream<'_>) {
        if to == HopEnd::Host {
            self.to_hosts.send(cell, start, &mut downstream.fabric);
        } else {
            let ToHosts { link, cell_time, .. } = self.to_hosts;
            downstream.go_rarely(link, Run { last: cell, cells: 1 }, start, cell_time);
        }
    }
}

/// By label: the cells collected of its frame, if there are any.
pub(super) struct PartialFrames(TiVec<Label, Run>);

const NOTHING: Run = Run { last: Cell::NONE, cells: 0 };

impl PartialFrames {
    pub(super) fn new(vcs: usize) -> Self {
        Self(ti_vec![NOTHING; vcs])
    }

    pub(super) fn labels(&self) -> impl Iterator<Item = Label> + use<> {
        self.0.keys()
    }

    /// Adds cells. Returns collected cells of another frame, if there are any.
    #[inline]
    pub(super) fn add(&mut self, run: Run) -> Option<Run> {
        let collected = &mut self.0[run.last.label()];
        if collected.cells > 0 && collected.goes_on_with(run) {
            collected.cells += run.cells;
            return None;
        }
        Some(std::mem::replace(collected, run)).filter(|before| before.cells > 0)
    }

    /// Takes the cells collected of a VC.
    #[inline]
    pub(super) fn take(&mut self, label: Label) -> Option<Run> {
        Some(std::mem::replace(&mut self.0[label], NOTHING)).filter(|run| run.cells > 0)
    }

    /// Takes the cells collected of the frame that this run continues. Returns how many.
    #[inline]
    pub(super) fn take_before(&mut self, run: Run) -> u32 {
        let collected = &mut self.0[run.last.label()];
        if collected.goes_on_with(run) { std::mem::replace(collected, NOTHING).cells } else { 0 }
    }
}

/// The cells that a port of single cells sends to hosts.
pub(super) struct ToHosts {
    pub(super) link: LinkIndex,
    pub(super) cell_time: Span,
    /// Most time from the start of a cell to the end of its stage.
    pub(super) longest_lead: Span,
    /// A cell that starts no later than this arrives by the horizon, on every way.
    pub(super) latest_start: Time,
    pub(super) frames: PartialFrames,
}

impl ToHosts {
    pub(super) fn set_horizon(&mut self, horizon: Time) {
        self.latest_start = Time(horizon.0.saturating_sub(self.longest_lead.0));
    }

    /// Hands on a cell on its way to a host. It matters only if it ends a frame, is an RM cell, or may be too late for
    /// the end of the run; others are collected.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a cell; what else is done is done once a frame")]
    pub(super) fn send(&mut self, cell: Cell, start: Time, fabric: &mut Fabric<'_>) {
        if cell.is_rm() || cell.last_cell() || start > self.latest_start {
            self.send_what_matters(cell, start, fabric);
        } else if let Some(others) = self.frames.add(Run { last: cell, cells: 1 }) {
            self.report(others, Time::default(), Span(0), fabric);
        }
    }

    #[inline(never)]
    fn send_what_matters(&mut self, cell: Cell, start: Time, fabric: &mut Fabric<'_>) {
        let run = Run { last: cell, cells: 1 };
        if cell.is_rm() || start > self.latest_start {
            self.report_partial_frame(cell.label(), fabric);
            self.report(run, start, self.cell_time, fabric);
        } else {
            let cells = self.frames.take_before(run) + 1;
            self.report_partial_frame(cell.label(), fabric);
            self.report(Run { cells, ..run }, start, Span(0), fabric);
        }
    }

    #[inline(never)]
    fn report(&self, run: Run, start: Time, period: Span, fabric: &mut Fabric<'_>) {
        let onward = fabric.go(self.link, run, start, period);
        assert!(onward.is_none(), "cells are collected only on their way to hosts");
    }

    /// Reports the collected cells of a VC, whose starts have no effect.
    fn report_partial_frame(&mut self, label: Label, fabric: &mut Fabric<'_>) {
        if let Some(collected) = self.frames.take(label) {
            self.report(collected, Time::default(), Span(0), fabric);
        }
    }

    /// Reports all collected cells, at the end of the run.
    pub(super) fn report_partial_frames(&mut self, fabric: &mut Fabric<'_>) {
        for label in self.frames.labels() {
            self.report_partial_frame(label, fabric);
        }
    }
}
