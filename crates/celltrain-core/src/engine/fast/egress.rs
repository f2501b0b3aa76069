//! The egress of a port of single cells: each cell goes into a stream of the next port, or to a host. On their way to
//! hosts cells are collected by VC until the frame is whole, because only a whole frame has an effect there.

use typed_index_collections::{TiVec, ti_vec};

use super::contended_port::AtOnceIndex;
use super::fabric::{Downstream, Fabric};
use super::links::StreamIndex;
use crate::cell::{Cell, Run};
use crate::index::{Label, LinkIndex};
use crate::units::{Span, Time};

/// The hops behind a port, by VC.
pub(super) struct Egress {
    hops: TiVec<Label, Hop>,
    pub(super) to_hosts: ToHosts,
}

/// The next place of a VC's cells, in 16 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hop {
    /// Time from the start of a cell to its arrival there.
    pub(super) lead: Span,
    /// A [`HopEnd`] as a number.
    to: u32,
    /// The VC's label there.
    pub(super) label: Label,
}

/// The kind of place at the end of a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HopEnd {
    /// A stream of the next port.
    Stream(StreamIndex),
    /// A port that takes each cell at once.
    AtOnce(AtOnceIndex),
    /// A port of trains, or a way on which each cell is watched: the fabric takes cells one by one.
    Fabric,
    /// A host.
    Host,
}

impl Hop {
    const AT_ONCE: u32 = 1 << 31;
    const FABRIC: u32 = u32::MAX - 1;
    const HOST: u32 = u32::MAX;

    pub(super) fn new(lead: Span, to: HopEnd, label: Label) -> Self {
        let to = match to {
            HopEnd::Stream(stream) => stream.number(),
            HopEnd::AtOnce(port) => Self::AT_ONCE + port.number(),
            HopEnd::Fabric => Self::FABRIC,
            HopEnd::Host => Self::HOST,
        };
        Self { lead, to, label }
    }

    /// Returns the place at its end.
    #[inline]
    pub(super) fn to(&self) -> HopEnd {
        match self.to {
            ..Self::AT_ONCE => HopEnd::Stream(StreamIndex::new(self.to)),
            Self::AT_ONCE..Self::FABRIC => HopEnd::AtOnce(AtOnceIndex::new(self.to - Self::AT_ONCE)),
            Self::FABRIC => HopEnd::Fabric,
            Self::HOST => HopEnd::Host,
        }
    }
}

impl Egress {
    pub(super) fn new(hops: TiVec<Label, Hop>, to_hosts: ToHosts) -> Self {
        Self { hops, to_hosts }
    }

    /// Sends a cell that starts at `start`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a cell")]
    pub(super) fn send(&mut self, cell: Cell, start: Time, downstream: &mut Downstream<'_>) {
        let hop = self.hops[cell.label()];
        if start <= self.to_hosts.latest_start && !cell.is_rm() {
            let (arrival, there) = (start + hop.lead, cell.relabelled(hop.label));
            match hop.to() {
                HopEnd::Stream(stream) => return downstream.push(stream, arrival, there),
                HopEnd::AtOnce(port) => return downstream.take_at_once(port, arrival, there),
                HopEnd::Fabric | HopEnd::Host => {}
            }
        }
        self.send_elsewhere(cell, hop.to(), start, downstream);
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
    /// Creates the empty state for `vcs` VCs.
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
    /// A cell that starts no later than this arrives before the end of the run, on every way.
    pub(super) latest_start: Time,
    pub(super) frames: PartialFrames,
}

impl ToHosts {
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
