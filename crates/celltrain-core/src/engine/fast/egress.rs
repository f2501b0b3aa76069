//! The egress of a port that handles cells one at a time: it sends each cell to a stream of the next port or to a host.
//! Cells on their way to a host are collected by VC until their frame is whole, because only whole frames have an effect
//! there.

use typed_index_collections::{TiVec, ti_vec};

use super::contended_port::AtOnceIndex;
use super::fabric::{Downstream, Fabric};
use super::links::StreamIndex;
use super::output::Depart;
use crate::cell::{Cell, Run};
use crate::index::{Label, LinkIndex};
use crate::units::{Span, Time};

pub(super) struct Egress {
    pub(super) hops: TiVec<Label, Hop>,
    pub(super) to_hosts: ToHosts,
}

/// The next hop of a VC's cells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hop {
    /// Time from the start of a cell's transmission to its arrival at the next hop.
    pub(super) lead: Span,
    pub(super) to: HopEnd,
    /// The VC's label at the next hop.
    pub(super) label: Label,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HopEnd {
    Stream(StreamIndex),
    AtOnce(AtOnceIndex),
    /// A port of trains, or a path on which each cell must be watched: the fabric handles the cells.
    Fabric,
    Host,
}

impl Egress {
    /// Sends a cell that starts at `start`.
    #[inline(always)]
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

    /// [`Egress::send`] of a port whose cells mostly go to hosts.
    #[inline(always)]
    pub(super) fn send_first_to_hosts(&mut self, cell: Cell, start: Time, downstream: &mut Downstream<'_>) {
        if self.hops[cell.label()].to == HopEnd::Host {
            self.to_hosts.send(cell, start, downstream.fabric);
        } else {
            self.send(cell, start, downstream);
        }
    }

    /// Sends cells of one frame back to back.
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
            self.to_hosts.send(cell, start, downstream.fabric);
        } else {
            let ToHosts { link, cell_time, .. } = self.to_hosts;
            downstream.go(link, Run { last: cell, cells: 1 }, start, cell_time);
        }
    }
}

/// By label: the collected cells of the current frame, if any.
pub(super) struct PartialFrames(TiVec<Label, Run>);

const NOTHING: Run = Run { last: Cell::NONE, cells: 0 };

impl PartialFrames {
    pub(super) fn new(vcs: usize) -> Self {
        Self(ti_vec![NOTHING; vcs])
    }

    /// Collects cells whose start times have no effect. If cells of another frame were collected before, reports those.
    #[inline]
    pub(super) fn collect(&mut self, run: Run, depart: &mut impl Depart) {
        let collected = &mut self.0[run.last.label()];
        if collected.cells > 0 && collected.goes_on_with(run) {
            collected.cells += run.cells;
            return;
        }
        let before = std::mem::replace(collected, run);
        if before.cells > 0 {
            depart(before, Time::default(), Span(0));
        }
    }

    /// Reports the collected cells of a VC.
    #[inline]
    pub(super) fn report(&mut self, label: Label, depart: &mut impl Depart) {
        let collected = std::mem::replace(&mut self.0[label], NOTHING);
        if collected.cells > 0 {
            depart(collected, Time::default(), Span(0));
        }
    }

    /// Reports all collected cells, at the end of the run.
    pub(super) fn report_all(&mut self, mut depart: impl Depart) {
        for label in self.0.keys() {
            self.report(label, &mut depart);
        }
    }

    /// Takes the collected cells of the frame that this run continues. Returns their number.
    #[inline]
    pub(super) fn take_before(&mut self, run: Run) -> u32 {
        let collected = &mut self.0[run.last.label()];
        if collected.goes_on_with(run) { std::mem::replace(collected, NOTHING).cells } else { 0 }
    }
}

/// The part of a port of single cells that sends them to hosts.
pub(super) struct ToHosts {
    pub(super) link: LinkIndex,
    pub(super) cell_time: Span,
    /// Longest time from the start of a cell to the end of its stage.
    pub(super) longest_lead: Span,
    /// A cell that starts no later than this arrives by the horizon on every path.
    pub(super) latest_start: Time,
    pub(super) frames: PartialFrames,
}

impl ToHosts {
    pub(super) fn set_horizon(&mut self, horizon: Time) {
        self.latest_start = Time(horizon.0.saturating_sub(self.longest_lead.0));
    }

    /// Sends a cell towards a host. If it ends a frame, is an RM cell, or may be too late for the end of the run, it is
    /// sent now; other cells are collected.
    #[inline(always)]
    pub(super) fn send(&mut self, cell: Cell, start: Time, fabric: &mut Fabric) {
        if cell.is_rm() || cell.last_cell() || start > self.latest_start {
            self.send_what_matters(cell, start, fabric);
        } else {
            self.frames.collect(Run { last: cell, cells: 1 }, &mut to_host(fabric, self.link));
        }
    }

    #[inline(never)]
    fn send_what_matters(&mut self, cell: Cell, start: Time, fabric: &mut Fabric) {
        let run = Run { last: cell, cells: 1 };
        let is_single = cell.is_rm() || start > self.latest_start;
        let before = if is_single { 0 } else { self.frames.take_before(run) };
        let mut depart = to_host(fabric, self.link);
        self.frames.report(cell.label(), &mut depart);
        let period = if is_single { self.cell_time } else { Span(0) };
        depart(Run { cells: before + 1, ..run }, start, period);
    }

    /// Reports all collected cells, at the end of the run.
    pub(super) fn report_partial_frames(&mut self, fabric: &mut Fabric) {
        self.frames.report_all(to_host(fabric, self.link));
    }
}

/// Sends cells from the port of a link to hosts.
fn to_host(fabric: &mut Fabric, link: LinkIndex) -> impl Depart {
    move |run, start, period| {
        let onward = fabric.go(link, run, start, period);
        assert!(onward.is_none(), "cells are collected only on their way to hosts");
    }
}
