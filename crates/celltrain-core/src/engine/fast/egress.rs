//! The egress of a port of single cells: each cell goes into a stream of the next port, or to a host.

use typed_index_collections::TiVec;

use super::at_once::AtOnceIndex;
use super::downstream::Downstream;
use super::links::StreamIndex;
use super::partial_frames::ToHosts;
use crate::cell::{Cell, Run};
use crate::index::Label;
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
