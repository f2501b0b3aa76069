//! The fabric between ports: computes where and when cells that leave a port arrive, and which end system, shaped port
//! or contended port receives them.

use std::collections::VecDeque;

use typed_index_collections::{TiSlice, TiVec};

use super::contended_port::{AtOnceIndex, AtOncePort};
use super::event_list::{EventList, Leaf, Rank};
use super::links::{Ingress, Links, StreamIndex};
use super::plan::{LaneIndex, Passed, Plan, PortIndex, StageEnd};
use super::rm::{RmDeparture, RmEvent, RmEvents, What};
use super::train::Train;
use crate::cell::{Cell, FrameNumber, Run};
use crate::end_systems::EndSystems;
use crate::index::{Label, LinkIndex, VcIndex};
use crate::rate_control::RateControl;
use crate::units::{Span, Time};

/// A whole frame on its way to a host, or to a shaped port.
#[derive(Clone, Copy)]
pub(super) struct Delivery {
    pub(super) time: Time,
    pub(super) link: LinkIndex,
    pub(super) vc: VcIndex,
    /// Number of the frame in its VC's log.
    pub(super) frame: FrameNumber,
    /// Number of the frame's cells; 0 for a frame on its way to a host, because the log has it.
    pub(super) cells: u32,
}

const _: () = assert!(size_of::<Delivery>() == 24 && size_of::<Run>() == 12, "sizes the design page gives");

/// Everything between ports, except the links into contended ports.
pub(super) struct Fabric {
    pub(super) plan: Plan,
    pub(super) lanes: TiVec<LaneIndex, VecDeque<Delivery>>,
    pub(super) end_systems: EndSystems,
    pub(super) event_list: EventList,
    pub(super) late: Late,
    pub(super) rate_control: RateControl,
    pub(super) rm_events: RmEvents,
    /// The instant up to which the run is currently advanced. Later arrivals are held back until it moves.
    pub(super) horizon: Time,
}

/// Cells whose departure is known, but which arrive after the horizon.
pub(super) struct Late {
    /// Numbers of cells that arrive after the horizon, by link and label: for every transparent port on the path of the
    /// stage, and then for its end.
    pub(super) counts: TiVec<LinkIndex, TiVec<Label, Box<[u64]>>>,
    pub(super) held_back: Vec<HeldBack>,
    /// The end of the run. If the horizon is there, nothing is held back.
    pub(super) end: Time,
}

impl Late {
    pub(super) fn new(plan: &Plan, end: Time) -> Self {
        let zeros = |passed: &Vec<Passed>| vec![0; passed.len() + 1].into();
        let counts = plan.passed.iter().map(|stages| stages.iter().map(zeros).collect()).collect();
        Self { counts, held_back: Vec::new(), end }
    }
}

/// Cells that reach the end of their stage after the horizon. They continue when it moves.
#[derive(Clone, Copy)]
pub(super) struct HeldBack {
    pub(super) link: LinkIndex,
    pub(super) run: Run,
    pub(super) first_start: Time,
    pub(super) period: Span,
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
    /// Returns them if they go to a contended port.
    #[inline(always)]
    pub(super) fn go(&mut self, link: LinkIndex, run: Run, first_start: Time, period: Span) -> Option<Onward> {
        let label = run.last.label();
        if self.plan.controls && (self.plan.marks || run.last.is_rm()) && self.watch(link, label, run, first_start) {
            return None;
        }
        self.go_unwatched(link, run, first_start, period)
    }

    /// [`Fabric::go`] for cells whose RM events have been scheduled.
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
            run = self.hold_back(HeldBack { link, run, first_start, period })?;
        }
        match stage.end {
            StageEnd::Host { vc, link, lane } => {
                if let Some(frame) = self.end_systems.collect(vc, run, |_| {}) {
                    self.carry(lane, Delivery { time: last, link, vc, frame, cells: 0 });
                }
                None
            }
            StageEnd::Shaped { lane, link, vc } => {
                if run.last.last_cell() {
                    if run.last.efci() {
                        self.end_systems.mark(vc, run.last.frame);
                    }
                    self.carry(lane, Delivery { time: last, link, vc, frame: run.last.frame, cells: run.cells });
                }
                None
            }
            StageEnd::Port { port, input, label } => {
                Some(Onward { port, input, train: Train::of(run, arrival, period, label) })
            }
        }
    }

    #[inline]
    fn carry(&mut self, lane: LaneIndex, delivery: Delivery) {
        self.lanes[lane].push_back(delivery);
        if self.lanes[lane].len() == 1 {
            schedule_lane(&mut self.event_list, lane, &self.lanes[lane]);
        }
    }

    /// Schedules RM events for RM cells, and reports data cells that pass the end of a loop. Returns whether the cells
    /// go no further.
    #[inline(never)]
    fn watch(&mut self, link: LinkIndex, label: Label, run: Run, start: Time) -> bool {
        let Self { plan, event_list, late, rate_control, rm_events, horizon, .. } = self;
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
                rm_events.push(pass.lane, rm_event, event_list);
            }
        }
        let Some(end) = way.end else { return false };
        if rm_events.leaves(RmDeparture { link, label, start }, plan, *horizon, late) {
            let what = What::End(rate_control.turn_around(way.vc, number));
            let rm_event = RmEvent { time: start + end.lead, link: end.link, vc: way.vc, number, what };
            rm_events.push(end.lane, rm_event, event_list);
        }
        true
    }

    /// Holds back the cells of a run that do not reach the end of their stage by the horizon, and counts them as late.
    /// Returns the others. These do not end a frame, so the arrival of their last cell has no effect.
    #[cold]
    fn hold_back(&mut self, whole: HeldBack) -> Option<Run> {
        let HeldBack { link, run, first_start, period } = whole;
        let missed = self.change_late(&whole, self.horizon, |late, cells| *late += cells);
        let goes_whole = matches!(self.plan.stages[link][run.last.label()].end, StageEnd::Shaped { .. });
        let in_time = if goes_whole { 0 } else { run.cells - missed };
        // Nothing continues after the end.
        if self.horizon < self.late.end {
            let run = Run { cells: run.cells - in_time, ..run };
            self.late.held_back.push(HeldBack { run, first_start: first_start + period * u64::from(in_time), ..whole });
        }
        run.at_most(in_time)
    }

    /// Subtracts cells that were held back at an earlier horizon from the number of late cells.
    pub(super) fn forget_late(&mut self, held: &HeldBack, horizon: Time) {
        self.change_late(held, horizon, |late, cells| *late -= cells);
    }

    /// Changes the number of late cells by those of a run that arrive after the horizon, at each transparent port they
    /// pass and at the end of their stage. Returns how many do not reach the end in time.
    fn change_late(&mut self, held: &HeldBack, horizon: Time, change: fn(&mut u64, u64)) -> u32 {
        let &HeldBack { link, run: Run { last, cells }, first_start, period } = held;
        let (passed, stage) = (&self.plan.passed[link][last.label()], &self.plan.stages[link][last.label()]);
        let mut missed = 0;
        let leads = passed.iter().map(|passed| passed.lead).chain([stage.lead]);
        for (late, lead) in self.late.counts[link][last.label()].iter_mut().zip(leads) {
            let first = first_start + lead;
            let in_time = if first > horizon { 0 } else { (horizon - first).0 / period.0 + 1 };
            missed = cells - u32::try_from(in_time).unwrap_or(cells).min(cells);
            change(late, u64::from(missed));
        }
        missed
    }
}

pub(super) fn schedule_lane(event_list: &mut EventList, lane: LaneIndex, frames: &VecDeque<Delivery>) {
    event_list.set(Leaf::Lane(lane), frames.front().map(|frame| (frame.time, Rank::Delivery(frame.link))));
}

/// Everything to which a port sends cells.
pub(super) struct Downstream<'e> {
    pub(super) fabric: &'e mut Fabric,
    pub(super) links: &'e mut Links,
    pub(super) at_once: &'e mut TiSlice<AtOnceIndex, AtOncePort>,
}

impl Downstream<'_> {
    /// Sends cells from the port of a link to the next place where they can wait or end. The first starts at
    /// `first_start`, the others follow a `period` apart.
    #[inline(always)]
    pub(super) fn go(&mut self, link: LinkIndex, run: Run, first_start: Time, period: Span) {
        if let Some(onward) = self.fabric.go(link, run, first_start, period) {
            self.join(onward);
        }
    }

    /// Adds cells to a link into a contended port.
    #[inline]
    pub(super) fn join(&mut self, Onward { port, input, train }: Onward) {
        let arrival = match &mut self.links.ingress[port] {
            Ingress::Trains(trains) => trains.join(input as usize, train),
            &mut Ingress::Streams(first) => self.links.join_stream(first.input(input), train),
            &mut Ingress::AtOnce(to) => {
                let mut time = train.next;
                for cell in train.run().iter() {
                    self.take_at_once(to, time, cell);
                    time += train.period;
                }
                return;
            }
        };
        if let Some(arrival) = arrival {
            self.fabric.event_list.settle_by(port, self.links.effect_of(port, arrival));
        }
    }

    /// Adds a cell to a stream; it arrives at `time`, which is not after the horizon.
    #[inline(always)]
    pub(super) fn push(&mut self, stream: StreamIndex, time: Time, cell: Cell) {
        if let Some(arrival) = self.links.push(stream, time, cell) {
            self.bring_forward(stream, arrival);
        }
    }

    /// Schedules a port for a cell that may matter elsewhere earlier than all others known in its stream.
    #[inline(never)]
    fn bring_forward(&mut self, stream: StreamIndex, arrival: Time) {
        let port = self.links.streams[stream].port;
        self.fabric.event_list.settle_by(port, self.links.effect_of(port, arrival));
    }

    /// Passes a cell to a port that takes it at once; it arrives at `time`, which is not after the horizon.
    #[inline(never)]
    pub(super) fn take_at_once(&mut self, to: AtOnceIndex, time: Time, cell: Cell) {
        self.at_once[to].take(time, cell, self.fabric);
    }
}
