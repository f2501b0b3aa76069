//! The state of a port of trains, and the arrival of single cells and single trains.

use crate::cell::{Cell, Run};
use crate::coverage::reached;
use crate::engine::fast::egress::{Depart, PartialFrames};
use crate::engine::fast::output::{Discipline, Output};
use crate::engine::fast::timing::Effects;
use crate::engine::fast::train::{Input, Train, TrainIngress};
use crate::engine::fast::waiting_cells::Departures;
use crate::index::LinkIndex;
use crate::port::FrameOutcome;
use crate::queue_range::QueueRange;
use crate::tie::{ServiceOrder, TieBreaker};
use crate::units::{Span, Time};

/// The way in which trains are admitted without offering each of their cells.
pub(in crate::engine::fast) trait TrainDiscipline: Discipline {
    /// Admits all cells of a run at once, if the result is the same as admitting them one after another. The cells
    /// arrive a period apart, the first at `now`. Their frame has been admitted, and no other cell arrives between them.
    fn admit_run(port: &mut TrainPort<Self>, now: Time, period: Span, run: Run, depart: &mut impl Depart) -> bool;

    /// Admits cells of trains that overlap, from `now` on and before `until`, if the port need not admit them one by
    /// one. Returns whether any cell was admitted.
    #[inline(always)]
    fn admit_overlap(_port: &mut TrainPort<Self>, _now: Time, _until: Time, _depart: &mut impl Depart) -> bool {
        false
    }

    /// Admits a frame whose cells arrive alone, if the port is idle. Returns false without any effect if it is not, or if the
    /// cells need more than that.
    #[inline(always)]
    fn admit_alone(_port: &mut TrainPort<Self>, _train: Train, _depart: &mut impl Depart) -> bool {
        false
    }

    /// Returns how many times the cells of the first `tied` inputs arrive together, from `now` on and before `until`,
    /// and may be processed together.
    #[inline(always)]
    fn rounds(port: &TrainPort<Self>, now: Time, tied: usize, period: Span, until: Time) -> u32 {
        port.rounds_in_step(now, tied, period, until, |_| true)
    }

    /// Processes these rounds without ordering the cells. Returns false without any effect if the cells need an order.
    #[inline(always)]
    fn admit_rounds(
        _port: &mut TrainPort<Self>,
        _now: Time,
        _tied: usize,
        _rounds: u32,
        _depart: &mut impl Depart,
    ) -> bool {
        false
    }
}

pub(in crate::engine::fast) struct TrainPort<D> {
    pub(in crate::engine::fast) link: LinkIndex,
    pub(in crate::engine::fast) output: Output<D>,
    pub(in crate::engine::fast) ties: TieBreaker,
    /// The trains on the port's input links, borrowed from [`Links`](crate::engine::fast::links::Links) while the port is processed.
    pub(in crate::engine::fast) ingress: Box<TrainIngress>,
    /// The numbers of the port's links at the node. They decide ties.
    pub(in crate::engine::fast) at_node: Vec<u32>,
    /// The following lists are empty between calls. They are fields only so that their memory is used again.
    pub(in crate::engine::fast) together: Vec<(u32, Cell)>,
    pub(in crate::engine::fast) in_step: Vec<(u32, Cell)>,
    /// Cells of each VC's current frame whose departure is known but not reported yet, because it has no effect.
    pub(in crate::engine::fast) partial_frames: PartialFrames,
    /// Time in which all inputs together deliver about a million cells, if each input is as fast as this port.
    pub(in crate::engine::fast) most_in_one_go: Span,
}

/// A port processes this many cells in about ten milliseconds. In tests the number is small, so that every comparison
/// of engines also checks that the number does not affect results.
const CELLS_IN_ONE_GO: u64 = if cfg!(test) { 1 << 10 } else { 1 << 20 };

/// With more active inputs than this, the bound is the first arrival, not the first arrival that ends a train.
const FEW: usize = 8;

impl<D: TrainDiscipline> TrainPort<D> {
    /// Creates the port of `link`, which `vcs` VCs cross. `at_node` has the numbers of its links at the node, in the
    /// order of its inputs.
    pub(in crate::engine::fast) fn new(
        link: LinkIndex,
        output: Output<D>,
        ties: TieBreaker,
        vcs: usize,
        at_node: Vec<u32>,
    ) -> Self {
        let each = CELLS_IN_ONE_GO.div_ceil(1 + at_node.len() as u64);
        Self {
            link,
            ties,
            ingress: Box::default(),
            most_in_one_go: Span(output.timing.cell_time.0.saturating_mul(each)),
            output,
            at_node,
            together: Vec::new(),
            in_step: Vec::new(),
            partial_frames: PartialFrames::new(vcs),
        }
    }

    /// Finds the first cell in flight that can have an effect outside this port. Returns the time of its
    /// arrival, or a lower bound on it.
    #[inline]
    pub(in crate::engine::fast) fn next_to_matter(&self) -> Option<Time> {
        let TrainIngress { next, inputs, .. } = &*self.ingress;
        if self.output.timing.effects == Effects::EveryCell || next.len() > FEW {
            return (next.len() > 0).then(|| next.first().time());
        }
        next.iter().map(|arrival| inputs[arrival.input() as usize].train.last()).min()
    }

    /// Returns the end of the next batch: `until`, or earlier if a check for cancellation would otherwise come too
    /// late. Everything before `since` must be settled.
    #[inline]
    pub(in crate::engine::fast) fn reach(&self, since: Time, until: Time) -> Time {
        let from = self.output.first_of(self.ingress.next.first().time()).max(since);
        if from >= until || until - from <= self.most_in_one_go { until } else { from + self.most_in_one_go }
    }

    /// Starts the packets of the first `inputs` trains to arrive, except packets that began with earlier cells of their
    /// VCs. All cells of earlier trains of these inputs must have been counted, except those of a train that is
    /// interleaved.
    #[inline(always)]
    pub(in crate::engine::fast) fn delimit(&mut self, inputs: usize) {
        if self.output.buffer.admission.delimits() {
            self.delimit_packets(inputs);
        }
    }

    #[inline(never)]
    fn delimit_packets(&mut self, inputs: usize) {
        for arrival in self.ingress.next.iter().take(inputs) {
            let Input { train, interleaved, .. } = &self.ingress.inputs[arrival.input() as usize];
            if *interleaved == 0 {
                self.output.buffer.admission.delimit(train.cell);
            }
        }
    }

    #[inline]
    pub(in crate::engine::fast) fn arrive(&mut self, now: Time, cell: Cell, depart: &mut impl Depart) {
        if let Some(start) = self.output.offer(now, cell, depart) {
            self.hand_on(Run { last: cell, cells: 1 }, start, self.output.timing.cell_time, depart);
        }
    }

    /// Reports cells whose departure is known: the first starts at `first_start`, the others follow a `period` apart. If
    /// only whole frames have effects, collects cells until their frame ends, unless they are RM cells, may be too late for
    /// the end of the run, or follow cells that the discipline reports itself.
    #[inline(always)]
    pub(in crate::engine::fast) fn hand_on(
        &mut self,
        run: Run,
        first_start: Time,
        period: Span,
        depart: &mut impl Depart,
    ) {
        let last_start = first_start + period * u64::from(run.cells - 1);
        let timing = &self.output.timing;
        if D::REPORTS_CELLS
            || timing.effects == Effects::EveryCell
            || last_start > timing.latest_start
            || run.last.is_rm()
        {
            self.hand_on_all(run, first_start, period, depart);
        } else if run.last.last_cell() {
            let before = self.partial_frames.take_before(run);
            self.partial_frames.report(run.last.label(), depart);
            depart(Run { cells: before + run.cells, ..run }, last_start, Span(0));
        } else {
            self.partial_frames.collect(run, depart);
        }
    }

    /// Reports cells that are not collected.
    #[inline(always)]
    fn hand_on_all(&mut self, run: Run, first_start: Time, period: Span, depart: &mut impl Depart) {
        self.partial_frames.report(run.last.label(), depart);
        if first_start + period * u64::from(run.cells - 1) > self.output.timing.horizon {
            self.output.leave_waiting(run, first_start, period);
        }
        depart(run, first_start, period);
    }

    #[inline(never)]
    fn hand_on_parts(&mut self, parts: [(Run, Time, Span); 2], depart: &mut impl Depart) {
        for (run, first_start, period) in parts {
            self.hand_on(run, first_start, period, depart);
        }
    }

    /// Handles cells that arrive a period apart, the first at `now`. No other cell arrives between them.
    #[inline]
    pub(in crate::engine::fast) fn arrive_in_step(
        &mut self,
        now: Time,
        period: Span,
        run: Run,
        depart: &mut impl Depart,
    ) {
        self.output.catch_up(now);
        self.output.note(run, now, period);
        if run.cells == 1 {
            self.arrive(now, run.last, depart);
            return;
        }
        if self.output.is_deferred() && self.output.buffer.must_report_before(run.last.label()) {
            self.output.report_departures(depart);
        }
        self.output.buffer.now = now;
        let marks = self.output.sees_departures();
        match self.output.buffer.fate(run.last) {
            FrameOutcome::Refused if !marks || self.output.may_refuse_at_once() => {
                self.output.buffer.admission.refuse(run);
                return;
            }
            FrameOutcome::Admitted if !marks && D::admit_run(self, now, period, run, depart) => return,
            _ => {}
        }
        let mut at = now;
        for cell in run.iter() {
            self.output.catch_up(at);
            self.arrive(at, cell, depart);
            at += period;
        }
    }

    /// Admits all cells of a run at once, at a port with a single queue.
    #[inline(always)]
    pub(in crate::engine::fast) fn admit_by_departures(
        &mut self,
        now: Time,
        period: Span,
        run: Run,
        depart: &mut impl Depart,
    ) -> bool {
        match self.output.buffer.queue.departures() {
            Departures::AtAdmission => self.admit_in_step(now, period, run, depart),
            Departures::Later => self.admit_deferred(now, period, run, depart),
        }
    }

    /// Admits all cells of a run at once, unless some cell would find the buffer full.
    ///
    /// With starts `s_i = max(a_i, s_{i-1} + T)` and arrivals a period `P` apart, `s_i - a_i` never shrinks if `P < T`,
    /// and never grows if `P >= T`. The queue length changes in the same way, so it is largest when the first or the
    /// last cell arrives. It is smallest just before one of these arrivals.
    #[inline]
    pub(in crate::engine::fast) fn admit_in_step(
        &mut self,
        now: Time,
        period: Span,
        run: Run,
        depart: &mut impl Depart,
    ) -> bool {
        let behind = u64::from(run.cells - 1);
        let last_arrival = now + period * behind;
        let first_start = self.output.tail_start().max(now);
        let in_a_row = first_start + self.output.timing.cell_time * behind;
        let last_start = in_a_row.max(last_arrival);
        // Waiting cells of incomplete frames stay in the buffer.
        let ready = self.output.buffer.ready();
        let awaiting = self.output.buffer.occupancy - ready;
        let ready_at_last = if period == self.output.timing.cell_time {
            ready + 1
        } else {
            self.waiting_with(last_start, last_arrival)
        };
        let peak = ready_at_last.max(ready + 1) + awaiting;
        if peak > self.output.buffer.capacity {
            reached!(TrainOverflows);
            return false;
        }
        let gone = ready + run.cells - ready_at_last;
        let is_close = period <= self.output.timing.cell_time;
        if !D::enters_at_once(&mut self.output, run.last.label(), gone, is_close) {
            return false;
        }
        let range = QueueRange { least: awaiting + ready.min(ready_at_last - 1), largest: peak };
        self.output.buffer.admit(run, range, gone);
        self.output.next_start = Time(last_start.0 - self.output.timing.cell_time.0 * u64::from(ready_at_last - 1));
        if last_start == in_a_row {
            self.hand_on(run, first_start, self.output.timing.cell_time, depart);
            return true;
        }
        reached!(QueueRunsEmptyInTrain);
        // The queue becomes empty before the last arrival, so each later cell starts when it arrives.
        let in_a_row = (first_start - now).0 / (period.0 - self.output.timing.cell_time.0) + 1;
        let first = run.first(u32::try_from(in_a_row).expect("the number of cells is less than the length of the run"));
        let first = (first, first_start, self.output.timing.cell_time);
        let rest = (Run { cells: run.cells - first.0.cells, ..run }, now + period * in_a_row, period);
        self.hand_on_parts([first, rest], depart);
        true
    }

    /// Returns how many cells wait, including one that has just arrived and will start at `start`.
    fn waiting_with(&self, start: Time, arrival: Time) -> u32 {
        let ahead = (start - arrival).0;
        let gone_at_once = u64::from(self.output.timing.service == ServiceOrder::BeforeArrivals && ahead > 0);
        u32::try_from((ahead - gone_at_once) / self.output.timing.cell_time.0 + 1)
            .expect("queues have fewer than 2^32 cells")
    }

    /// Admits a run if the order is deferred. The number of waiting cells does not depend on the order in which they
    /// leave.
    ///
    /// The i-th cell is sent no sooner than i cell times after the next start. If the cells arrive at most a cell time
    /// apart, it has arrived by then, so admitting it early changes nothing. The same is true if cells of the same
    /// queue will still wait when the last one arrives.
    #[inline(never)]
    pub(in crate::engine::fast) fn admit_deferred(
        &mut self,
        now: Time,
        period: Span,
        run: Run,
        depart: &mut impl Depart,
    ) -> bool {
        self.output.start_anew_if_idle(now, depart);
        let behind = u64::from(run.cells - 1);
        let last_arrival = now + period * behind;
        let at_first = self.output.buffer.occupancy + 1;
        let at_last = if period == self.output.timing.cell_time {
            at_first
        } else {
            let last_start = (self.output.tail_start() + self.output.timing.cell_time * behind).max(last_arrival);
            self.waiting_with(last_start, last_arrival)
        };
        // From one arrival to the next, the length either only grows or only shrinks; see `admit_in_step`.
        let range = QueueRange { least: at_first.min(at_last) - 1, largest: at_first.max(at_last) };
        let gone = at_first + run.cells - 1 - at_last;
        let is_close = period <= self.output.timing.cell_time && self.output.buffer.queue.may_fill_early();
        let in_time = is_close || self.output.buffer.least_ahead(run.last.label()) >= gone;
        if range.largest > self.output.buffer.capacity || !in_time {
            return false;
        }
        self.output.buffer.admit(run, range, 0);
        true
    }
}
