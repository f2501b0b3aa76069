//! The egress of ports. It sends cells to hosts, to links into contended ports, and to ports that process cells at
//! once.
//!
//! Cells on their way to a host are collected by VC until their frame is complete, because only complete frames have an
//! effect at a host.

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use super::event_list::EventList;
use super::fabric::{Fabric, Onward};
use super::fifo::Fifo;
use super::links::{HAS_THE_MEMORY, Ingress, Links, StreamIndex};
use super::plan::{AtOnceIndex, Stage, StageIndex};
use super::port_queue::PortQueue as _;
use super::timing::Timing;
use super::train::Train;
use crate::cell::{Cell, CellBits, Run};
use crate::index::{Label, LinkIndex};
use crate::link_loss::LossyIndex;
use crate::network::Routing;
use crate::units::{Span, Time};

/// Receives cells with known departures: a run, the start of its first cell, and the time from one cell to the next.
pub(super) trait Depart: FnMut(Run, Time, Span) {}

impl<F: FnMut(Run, Time, Span)> Depart for F {}

/// Collected cells of each VC's current frame, by label.
pub(super) struct PartialFrames(TiVec<Label, Run>);

const NOTHING: Run = Run { last: Cell::NONE, cells: 0 };

impl PartialFrames {
    pub(super) fn new(vcs: usize) -> Self {
        Self(ti_vec![NOTHING; vcs])
    }

    /// Collects cells whose start times have no effect. If cells of another frame were collected before, reports them
    /// first.
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

    /// Removes the cells collected so far of the frame that this run continues. Returns their number.
    #[inline]
    pub(super) fn take_before(&mut self, run: Run) -> u32 {
        let collected = &mut self.0[run.last.label()];
        if collected.goes_on_with(run) { std::mem::replace(collected, NOTHING).cells } else { 0 }
    }
}

/// The part of a port that sends cells to hosts, if the port processes cells one at a time.
pub(super) struct ToHosts {
    pub(super) link: LinkIndex,
    pub(super) cell_time: Span,
    /// Longest time from the start of a cell to the end of its stage.
    longest_lead: Span,
    /// Latest start at which a cell arrives by the horizon on every path.
    latest_start: Time,
    frames: PartialFrames,
    /// Number of the stage of the port's first VC. The numbers of the others follow in the order of labels.
    first_stage: StageIndex,
}

impl ToHosts {
    /// Creates the egress side of a port with the VCs that start the given stages.
    pub(super) fn new(link: LinkIndex, timing: &Timing, stages: &TiSlice<Label, Stage>) -> Self {
        let &Timing { cell_time, longest_lead, latest_start, .. } = timing;
        let first_stage = stages.first().map_or(StageIndex::default(), |stage| stage.number);
        let frames = PartialFrames::new(stages.len());
        Self { link, cell_time, longest_lead, latest_start, frames, first_stage }
    }

    pub(super) fn set_horizon(&mut self, horizon: Time) {
        self.latest_start = Time(horizon.0.saturating_sub(self.longest_lead.0));
    }

    /// Sends a cell towards a host. The cell is sent now if it ends a frame, is an RM cell, or may be too late for the
    /// end of the run. Other cells are collected.
    #[inline(always)]
    pub(super) fn send(&mut self, cell: Cell, start: Time, fabric: &mut Fabric) {
        if cell.is_rm() || cell.last_cell() || start > self.latest_start {
            self.send_what_matters(cell, start, fabric);
        } else {
            self.frames.collect(Run { last: cell, cells: 1 }, &mut to_host(fabric, self.link));
        }
    }

    /// Returns whether cells that start at `start`, and do not end a frame, are collected until their frame ends.
    #[inline]
    pub(super) fn collects(&self, start: Time) -> bool {
        start <= self.latest_start
    }

    /// Collects cells that do not end a frame. Their starts must have satisfied [`ToHosts::collects`].
    pub(super) fn collect(&mut self, run: Run, fabric: &mut Fabric) {
        self.frames.collect(run, &mut to_host(fabric, self.link));
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

    /// Records the last cell of a packet that enters the port at `now`, if delays are measured.
    #[inline]
    pub(super) fn record_entry(&self, cell: Cell, now: Time, start: Time, fabric: &mut Fabric) {
        if let Some(delays) = &mut fabric.delays {
            let stage = StageIndex::new(self.first_stage.number() + cell.label().number());
            delays.on_entry(stage, cell.frame, now, start, self.latest_start);
        }
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
        assert!(onward.is_none(), "only cells on their way to hosts are collected");
    }
}

/// A port that processes each cell as soon as its arrival is known. This requires a first-in first-out port with a
/// single contended input link, from which all cells go to hosts, and which no probe reads before the horizon. No other
/// cell can then arrive earlier, so the port needs neither batches nor events.
pub(super) struct AtOncePort {
    pub(super) fifo: Fifo,
    pub(super) to_hosts: ToHosts,
}

impl AtOncePort {
    /// Processes a cell that will arrive at `now`.
    #[inline]
    pub(super) fn take(&mut self, now: Time, cell: Cell, fabric: &mut Fabric) {
        let Some(start) = self.fifo.enter(now, cell) else { return };
        if cell.last_cell() {
            self.to_hosts.record_entry(cell, now, start, fabric);
            self.to_hosts.send_what_matters(cell, start, fabric);
            self.fifo.forget(now + Span(1));
        } else {
            self.to_hosts.send(cell, start, fabric);
        }
    }
}

/// All destinations of the cells that a port sends out.
pub(super) struct Downstream<'e> {
    pub(super) routing: &'e Routing,
    pub(super) fabric: &'e mut Fabric,
    pub(super) links: &'e mut Links,
    pub(super) at_once: &'e mut TiSlice<AtOnceIndex, AtOncePort>,
}

impl Downstream<'_> {
    /// Sends cells from a link's port to the next place where they can wait or end. The first starts at `first_start`,
    /// the others follow a `period` apart.
    #[inline(always)]
    pub(super) fn go(&mut self, link: LinkIndex, run: Run, first_start: Time, period: Span) {
        if let Some(onward) = self.fabric.go(link, run, first_start, period) {
            self.join(onward);
        }
    }

    /// Returns the receiver of the cells that leave the port of a link. Its type is the same at all ports.
    #[inline(always)]
    pub(super) fn leaving(&mut self, link: LinkIndex) -> impl Depart {
        move |run, first_start, period| self.go(link, run, first_start, period)
    }

    /// Adds cells to a link into a contended port.
    #[inline(always)]
    pub(super) fn join(&mut self, onward: Onward) {
        if let Some(onward) = join_trains(self.links, &mut self.fabric.event_list, onward) {
            self.join_others(onward);
        }
    }

    /// Adds cells to a link on which cells do not arrive in trains.
    #[inline(never)]
    pub(super) fn join_others(&mut self, Onward { port, input, train }: Onward) {
        let arrival = match &mut self.links.ingress[port] {
            Ingress::Trains(_) => unreachable!("{TRAINS_HAVE_JOINED}"),
            &mut Ingress::Streams(first) => self.links.join_stream(first.input(input), train),
            &mut Ingress::AtOnce(to) => {
                let mut time = train.next;
                for cell in train.run().iter() {
                    self.take_at_once(to, time, cell);
                    time += train.period;
                }
                return;
            }
            &mut Ingress::Losses(number) => return self.lose(number, train),
            &mut Ingress::Line(number) => return self.fabric.approach_line(number, train),
            Ingress::Member(..) => unreachable!("{HAS_THE_MEMORY}"),
        };
        if let Some(arrival) = arrival {
            self.fabric.event_list.settle_by(port, self.links.effect_of(port, arrival));
        }
    }

    /// Takes cells that reach the end of a link with losses, and forwards the cells that survive.
    #[inline(never)]
    fn lose(&mut self, number: LossyIndex, train: Train) {
        let behind = self.fabric.plan.behind(number);
        let mut time = train.next;
        let mut kept: Option<(Run, Time)> = None;
        for cell in train.run().iter() {
            let cell = self.fabric.keep(number, cell, time).map(|last| Run { last, cells: 1 });
            match (&mut kept, cell) {
                (Some((run, _)), Some(next)) if run.goes_on_with(next) => {
                    *run = Run { last: next.last, cells: run.cells + 1 };
                }
                _ => {
                    let next = cell.map(|run| (run, time));
                    if let Some((run, first)) = std::mem::replace(&mut kept, next) {
                        self.go(behind, run, first, train.period);
                    }
                }
            }
            time += train.period;
        }
        if let Some((run, first)) = kept {
            self.go(behind, run, first, train.period);
        }
    }

    /// Advances the delay line at the end of a link to `now`. `cell_time` is the cell time of that link.
    pub(super) fn move_line(&mut self, number: LossyIndex, cell_time: Span, now: Time) {
        if let Some(last) = self.fabric.move_line(number, now) {
            self.go(self.fabric.plan.behind(number), Run { last, cells: 1 }, now, cell_time);
        }
    }

    /// Adds a cell to a stream. The cell arrives at `time`, which must not be after the horizon.
    #[inline(always)]
    pub(super) fn push(&mut self, stream: StreamIndex, time: Time, cell: Cell) {
        if let Some(arrival) = self.links.push(stream, time, cell) {
            self.bring_forward(stream, arrival);
        }
    }

    /// Schedules a port earlier, because a cell may have an effect elsewhere before all other cells in its stream have.
    #[inline(never)]
    fn bring_forward(&mut self, stream: StreamIndex, arrival: Time) {
        let port = self.links.streams[stream].port;
        self.fabric.event_list.settle_by(port, self.links.effect_of(port, arrival));
    }

    /// Reports the cells of incomplete frames that a port which processes cells early has sent, at the horizon.
    pub(super) fn report_partial_frames_at_once(&mut self, port: AtOnceIndex) {
        let AtOncePort { fifo, to_hosts } = &mut self.at_once[port];
        fifo.look_at(self.fabric.horizon + Span(1));
        to_hosts.report_partial_frames(self.fabric);
    }

    /// Passes a cell to a port that processes it early. The cell arrives at `time`, which is not after the horizon.
    #[inline(never)]
    pub(super) fn take_at_once(&mut self, to: AtOnceIndex, time: Time, cell: Cell) {
        self.at_once[to].take(time, cell, self.fabric);
    }
}

/// Adds cells to a link on which trains arrive, and schedules its port. Returns the cells if they arrive in another form.
#[inline(always)]
pub(super) fn join_trains(links: &mut Links, event_list: &mut EventList, onward: Onward) -> Option<Onward> {
    let Onward { port, input, train } = onward;
    let Ingress::Trains(trains) = &mut links.ingress[port] else { return Some(onward) };
    if let Some(arrival) = trains.join(input as usize, train) {
        event_list.settle_by(port, links.effect_of(port, arrival));
    }
    None
}

const TRAINS_HAVE_JOINED: &str = "trains are added to their link first";

/// The egress of a port that sends each cell to a stream of the next port or to a host.
pub(super) struct Egress {
    pub(super) hops: TiVec<Label, Hop>,
    /// Selects the cells that are watched on every hop: RM cells and, if delays are measured, last cells.
    pub(super) watched: CellBits,
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
    /// The fabric handles the cells, because their next port takes trains or each cell has effects on its way.
    Fabric,
    Host,
}

impl Egress {
    #[inline(always)]
    pub(super) fn send(&mut self, cell: Cell, start: Time, downstream: &mut Downstream<'_>) {
        let hop = self.hops[cell.label()];
        if start <= self.to_hosts.latest_start && !cell.is_selected(self.watched) {
            let (arrival, there) = (start + hop.lead, cell.relabelled(hop.label));
            match hop.to {
                HopEnd::Stream(stream) => return downstream.push(stream, arrival, there),
                HopEnd::AtOnce(port) => return downstream.take_at_once(port, arrival, there),
                HopEnd::Fabric | HopEnd::Host => {}
            }
        }
        self.send_elsewhere(cell, hop.to, start, downstream);
    }

    /// A variant of [`Egress::send`] that is faster if most cells go to hosts.
    #[inline(always)]
    pub(super) fn send_first_to_hosts(&mut self, cell: Cell, start: Time, downstream: &mut Downstream<'_>) {
        if self.hops[cell.label()].to == HopEnd::Host {
            self.to_hosts.send(cell, start, downstream.fabric);
        } else {
            self.send(cell, start, downstream);
        }
    }

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
            self.send_watched(cell, start, downstream);
        }
    }

    /// Sends a cell that is watched or may be too late for the end of the run to the next port.
    #[inline(never)]
    fn send_watched(&mut self, cell: Cell, start: Time, downstream: &mut Downstream<'_>) {
        let Hop { lead, to, label } = self.hops[cell.label()];
        let is_in_time = start <= self.to_hosts.latest_start && !cell.is_rm();
        let (arrival, there) = (start + lead, cell.relabelled(label));
        match to {
            HopEnd::Stream(stream) if is_in_time => {
                downstream.fabric.record_delay(self.to_hosts.link, cell, arrival);
                downstream.push(stream, arrival, there);
            }
            HopEnd::AtOnce(port) if is_in_time => {
                downstream.fabric.record_delay(self.to_hosts.link, cell, arrival);
                downstream.take_at_once(port, arrival, there);
            }
            HopEnd::Fabric | HopEnd::Host | HopEnd::Stream(_) | HopEnd::AtOnce(_) => {
                let ToHosts { link, cell_time, .. } = self.to_hosts;
                downstream.go(link, Run { last: cell, cells: 1 }, start, cell_time);
            }
        }
    }
}
