//! The fabric between ports computes where and when departing cells arrive, and which end system, shaped port or
//! contended port receives them.

use typed_index_collections::TiVec;

use std::collections::BTreeMap;

use super::delays::StageDelays;
use super::ethernet::EthernetLinks;
use super::event_list::{EventList, Leaf, Rank};
use super::lanes::{Delivery, Lanes, RmEvent, What};
use super::late::{HeldBack, Late, RmDeparture};
use super::pauses::LinkPauses;
use super::plan::{LaneIndex, Plan, PortIndex, StageEnd};
use super::train::Train;
use crate::cell::{Cell, FrameNumber, Run};
use crate::contracts::Edge;
use crate::delay_line::DelayLine;
use crate::end_systems::EndSystems;
use crate::index::{Label, LinkIndex, VcIndex};
use crate::link_loss::{Fate, LinkLosses, LossyIndex};
use crate::rate_control::RateControl;
use crate::units::{Span, Time};

/// Everything between ports, except the links into contended ports.
pub(super) struct Fabric {
    pub(super) plan: Plan,
    pub(super) lanes: Lanes,
    pub(super) end_systems: EndSystems,
    pub(super) event_list: EventList,
    pub(super) late: Late,
    pub(super) rate_control: RateControl,
    pub(super) edge: Edge,
    pub(super) ethernet: EthernetLinks,
    /// For each link, whether its rate changes.
    pub(super) changes_rate: TiVec<LinkIndex, bool>,
    pub(super) losses: TiVec<LossyIndex, LinkLosses>,
    /// The VCs on each link with losses, by label.
    pub(super) lossy_vcs: TiVec<LossyIndex, TiVec<Label, VcIndex>>,
    /// The delay line of each link with losses, if the link delays packets.
    pub(super) lines: TiVec<LossyIndex, Option<Line>>,
    /// Delays of packets at ports, if they are measured.
    pub(super) delays: Option<Box<StageDelays>>,
    /// Pauses of links, if links can be paused.
    pub(super) pauses: Option<Box<LinkPauses>>,
    /// Instant up to which the run currently advances. Later arrivals are held back until the horizon moves.
    pub(super) horizon: Time,
}

/// A delay line, and the cells on their way to it, by arrival time. Unlike cells on other links, these cells need not
/// be in order.
pub(super) struct Line {
    line: Box<DelayLine>,
    coming: BTreeMap<Time, Cell>,
}

impl Line {
    pub(super) fn new(line: Box<DelayLine>) -> Self {
        Self { line, coming: BTreeMap::new() }
    }

    /// Returns the cells that are on the line.
    pub(super) fn cells(&self) -> impl Iterator<Item = Cell> {
        self.line.cells()
    }

    fn next_action(&self) -> Option<Time> {
        self.coming.keys().next().copied().into_iter().chain(self.line.next_action()).min()
    }
}

/// Cells on a link into a contended port.
#[derive(Clone, Copy)]
pub(super) struct Onward {
    pub(super) port: PortIndex,
    pub(super) input: u32,
    pub(super) train: Train,
}

impl Fabric {
    /// Sends cells from the port of a link: the first starts at `first_start`, the others follow a `period` apart.
    /// Returns the cells if their next port is contended.
    #[inline(always)]
    pub(super) fn go(&mut self, link: LinkIndex, run: Run, first_start: Time, period: Span) -> Option<Onward> {
        let label = run.last.label();
        if self.plan.watched.includes(run.last) && self.watch(link, label, run, first_start) {
            return None;
        }
        self.go_unwatched(link, run, first_start, period)
    }

    /// A variant of [`Fabric::go`] for cells whose RM events have been scheduled.
    #[inline(always)]
    pub(super) fn go_unwatched(
        &mut self,
        link: LinkIndex,
        mut run: Run,
        first_start: Time,
        period: Span,
    ) -> Option<Onward> {
        let stage = self.plan.stages[link][run.last.label()];
        let arrival = first_start + stage.lead;
        let last = arrival + period * u64::from(run.cells - 1);
        if last > self.horizon {
            run = self.hold_back(HeldBack { link, run, first_start, period, lead: stage.lead })?;
        }
        if let Some(delays) = &mut self.delays
            && run.last.last_cell()
        {
            delays.on_run(stage.number, run.last.frame, last);
        }
        match stage.end {
            StageEnd::Host { vc, link, lane } => {
                if let Some(frame) = self.end_systems.collect(vc, run, |_, _| {}) {
                    let delivery = Delivery { time: last, link, vc, frame, cells: 0 };
                    self.lanes.push_frame(lane, delivery, &mut self.event_list);
                }
                None
            }
            StageEnd::Shaped { lane, link, vc } => {
                self.send_to_shaped(
                    lane,
                    Delivery { time: last, link, vc, frame: run.last.frame, cells: run.cells },
                    run,
                );
                None
            }
            StageEnd::Port { port, input, label } => {
                Some(Onward { port, input, train: Train::of(run, arrival, period, label) })
            }
        }
    }

    /// Sends a packet to a shaped port if its last cell is in this run.
    #[inline(never)]
    fn send_to_shaped(&mut self, lane: LaneIndex, packet: Delivery, run: Run) {
        if run.last.last_cell() {
            if run.last.efci() {
                self.end_systems.mark(packet.vc, packet.frame);
            }
            self.lanes.push_frame(lane, packet, &mut self.event_list);
        }
    }

    /// Records a last cell that leaves the port of a link and reaches the end of its stage at `arrival`, which is not
    /// after the horizon.
    #[inline]
    pub(super) fn record_delay(&mut self, link: LinkIndex, cell: Cell, arrival: Time) {
        if let Some(delays) = &mut self.delays {
            delays.on_run(self.plan.stages[link][cell.label()].number, cell.frame, arrival);
        }
    }

    /// Holds back the cells that reach the end of their stage after the horizon. Returns the others.
    #[cold]
    pub(super) fn hold_back(&mut self, held: HeldBack) -> Option<Run> {
        if let Some(delays) = &mut self.delays {
            delays.on_held_back(self.plan.stages[held.link][held.run.last.label()].number, held.run);
        }
        self.late.hold_back(held, &self.plan, self.horizon)
    }

    /// Takes a cell that reaches the end of a link with losses. Returns it, perhaps tagged, unless it is lost.
    pub(super) fn keep(&mut self, number: LossyIndex, cell: Cell, now: Time) -> Option<Cell> {
        match self.take(number, cell, now) {
            Fate::Lost(_) => None,
            Fate::Passes | Fate::Delayed(_) | Fate::InOrder(_) => Some(self.police(number, cell, now)),
        }
    }

    fn take(&mut self, number: LossyIndex, cell: Cell, now: Time) -> Fate {
        let vc = self.lossy_vcs[number][cell.label()];
        self.losses[number].take(cell, now, || self.end_systems.segment(vc, cell.frame))
    }

    /// Returns the number of cells in a packet that is in flight on `vc`.
    pub(super) fn packet_cells(&self, vc: VcIndex, packet: FrameNumber) -> u32 {
        self.end_systems.packet_cells(vc, packet)
    }

    fn police(&mut self, number: LossyIndex, cell: Cell, now: Time) -> Cell {
        let vc = self.lossy_vcs[number][cell.label()];
        if self.edge.polices_at(vc, self.losses[number].link) { self.edge.on_cell(vc, now, cell) } else { cell }
    }

    /// Adds cells that are on their way to the delay line of a link.
    pub(super) fn approach_line(&mut self, number: LossyIndex, train: Train) {
        let coming = &mut self.lines[number].as_mut().expect("the link has a delay line").coming;
        let mut time = train.next;
        for cell in train.run().iter() {
            let other = coming.insert(time, cell);
            assert!(other.is_none(), "cells reach the end of a link one after the other");
            time += train.period;
        }
        self.schedule_line(number);
    }

    /// Advances the delay line of a link to `now`. Returns the cell that leaves it, possibly tagged.
    pub(super) fn move_line(&mut self, number: LossyIndex, now: Time) -> Option<Cell> {
        let came = self.lines[number].as_mut().and_then(|line| line.coming.remove(&now));
        let fate = came.map(|cell| (cell, self.take(number, cell, now)));
        let vcs = &self.lossy_vcs[number];
        if let Some((cell, Fate::Delayed(_))) = fate {
            self.end_systems.delay(vcs[cell.label()], cell.frame);
        }
        let Line { line, .. } = self.lines[number].as_mut().expect("the link has a delay line");
        let mut released = |label, frame| self.end_systems.release(vcs[label], frame);
        match fate {
            Some((_, Fate::Lost(_))) | None => line.advance(now, &mut released),
            Some((cell, fate)) => line.enter(cell, fate, now, released),
        }
        let leaving = line.take(now);
        self.schedule_line(number);
        leaving.map(|cell| self.police(number, cell, now))
    }

    fn schedule_line(&mut self, number: LossyIndex) {
        let next = self.lines[number].as_ref().and_then(Line::next_action);
        self.event_list.set(Leaf::Line(number), next.map(|time| (time, Rank::Line)));
    }

    /// Returns whether a VC's contract is enforced on cells that leave on this link. On a link with losses, enforcement
    /// applies to the cells that are not lost.
    pub(super) fn polices_departures(&self, vc: VcIndex, link: LinkIndex) -> bool {
        self.edge.polices_at(vc, link) && self.plan.losses_on(link).is_none()
    }

    /// Schedules RM events for RM cells, and reports data cells that pass the end of an RM loop. Returns true if the
    /// cells leave their VC here.
    #[inline(never)]
    fn watch(&mut self, link: LinkIndex, label: Label, run: Run, start: Time) -> bool {
        let Self { plan, event_list, lanes, late, rate_control, horizon, .. } = self;
        let Some(way) = &plan.rm_ways[link][label] else { return false };
        if !run.last.is_rm() {
            if way.end.is_some() {
                rate_control.on_data_end(way.vc, run.last.efci());
            }
            return false;
        }
        let number = run.last.frame;
        if !way.passes.is_empty() && rate_control.goes_backward(way.vc, number) {
            for pass in way.passes.iter().filter(|pass| start + pass.lead <= late.end) {
                let what = What::Pass(pass.place);
                let rm_event = RmEvent { time: start + pass.lead, link: pass.link, vc: way.vc, number, what };
                lanes.push_rm_event(pass.lane, rm_event, event_list);
            }
        }
        let Some(end) = way.end else { return false };
        if late.leaves(RmDeparture { link, label, start }, plan, *horizon) {
            let what = What::End(rate_control.turn_around(way.vc, number));
            let rm_event = RmEvent { time: start + end.lead, link: end.link, vc: way.vc, number, what };
            lanes.push_rm_event(end.lane, rm_event, event_list);
        }
        true
    }
}
