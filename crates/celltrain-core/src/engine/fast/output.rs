//! The buffer of a contended port and its outgoing link: the waiting cells, their starts, and the cells that have left.
//!
//! With [`Departures::Later`], the port at first computes only the number of waiting cells, and determines later which
//! cells left.

use typed_index_collections::{TiVec, ti_vec};

use super::egress::{Depart, Downstream};
use super::output_buffer::OutputBuffer;
use super::port_queue::{BufferView, PortEnd, PortQueue};
use super::timing::{Arrivals, Effects, Timing};
use super::train::cells_after;
use super::waiting_cells::{Departures, Kept, WaitingCells};
use crate::cell::{Cell, Run};
use crate::departure::{Behind, HeadRule};
use crate::index::{Label, LinkIndex};
use crate::marking::MarkedAt;
use crate::scheduler::waiting::ReportGranularity;
use crate::units::{Span, Time};

/// The way in which cells are admitted one by one, and in which waiting cells have an effect.
pub(super) trait Discipline: WaitingCells + Sized + 'static {
    /// The name of the type, for `--explain-plan`.
    const NAME: &'static str;
    /// Whether [`Discipline::admit_one`] reports all starts of single cells.
    const REPORTS_CELLS: bool = false;

    /// Called after one cell has been admitted that can start at `start`. Returns the start if it is known and not
    /// reported yet.
    #[inline(always)]
    fn admit_one(_output: &mut Output<Self>, start: Time, _depart: &mut impl Depart) -> Option<Time> {
        Some(start)
    }

    /// Returns whether the policy may learn of all these cells of a VC when the first one arrives. The cells actually
    /// arrive one by one while `left` cells leave. `is_close` is true if they arrive at most a cell time apart.
    #[inline(always)]
    fn enters_at_once(_output: &mut Output<Self>, _label: Label, _left: u32, _is_close: bool) -> bool {
        true
    }

    /// Returns whether a cell may enter an empty queue up to a cell time before it arrives.
    #[inline(always)]
    fn may_fill_early(&self) -> bool {
        true
    }

    /// Returns whether a cell that finds an empty queue may start at once.
    #[inline(always)]
    fn may_be_bypassed(&self) -> bool {
        true
    }

    /// Returns which waiting cell may have an effect elsewhere if only frame ends have: a lower bound on the number of
    /// departures up to this cell. The port must have waiting cells and [`Departures::Later`].
    #[inline(always)]
    fn least_to_a_frame_end(&self) -> u32 {
        1
    }
}

/// The component of a contended port that handles cells after their arrival.
pub(super) struct Output<D> {
    pub(super) buffer: OutputBuffer<D>,
    /// Earliest start of the next transmission: the start of the first waiting cell, or the time when the link is free.
    pub(super) next_start: Time,
    pub(super) timing: Timing,
    /// Used only with [`Departures::Later`]. At first, only the starts of cells that end a run are reported. Every start
    /// is reported once a single departure may have an effect: if another contended port follows, or if the run is
    /// almost over.
    pub(super) granularity: ReportGranularity,
    /// Departed cells, with the starts of the last of each run, at a port with a rule that acts on departures.
    gone: Vec<(Run, Time)>,
    /// Departed cells of frames that have not left completely, if only whole frames are reported.
    parts: TiVec<Label, (Run, Time)>,
    /// The rule that acts on cells at the head of the queue, if there is one.
    rule: Option<Box<HeadRule>>,
    /// Arrivals that have been recorded but not yet taken.
    pub(super) arrivals: Vec<Arrival>,
}

/// No cells.
const NONE: (Run, Time) = (Run { last: Cell::NONE, cells: 0 }, Time(0));

/// Cells that have arrived, for the port's allocator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) run: Run,
    pub(super) first: Time,
    pub(super) period: Span,
}

impl Arrival {
    /// Reports the cells to the allocator of the port of `link`.
    #[inline]
    pub(super) fn report(self, link: LinkIndex, downstream: &mut Downstream<'_>) {
        let vc = downstream.routing.vcs[link][self.run.last.label()];
        downstream.fabric.rate_control.on_arrival(link, vc, self.run, self.first, self.period);
    }
}

impl<D: Discipline> Output<D> {
    /// `granularity` selects the starts that are reported from the beginning.
    pub(super) fn new(
        buffer: OutputBuffer<D>,
        timing: Timing,
        rule: Option<Box<HeadRule>>,
        granularity: ReportGranularity,
    ) -> Self {
        debug_assert!(
            rule.is_none() || buffer.queue.departures() == Departures::Later,
            "a rule that acts on departures sees each cell that leaves"
        );
        let parts = ti_vec![NONE; if rule.is_some() { buffer.counts.per_vc.len() } else { 0 }];
        let next_start = Time::default();
        Self { buffer, next_start, timing, granularity, gone: Vec::new(), parts, rule, arrivals: Vec::new() }
    }

    /// Returns whether the port determines later which cells leave.
    #[inline(always)]
    pub(super) fn is_deferred(&self) -> bool {
        self.buffer.queue.departures() == Departures::Later
    }

    /// Returns whether a rule acts on cells that leave.
    #[inline(always)]
    pub(super) fn sees_departures(&self) -> bool {
        self.is_deferred() && self.rule.is_some()
    }

    /// Returns whether the rest of a frame may be refused before all of its cells arrive, at a port with a rule that acts
    /// on departures. A marker of arriving packets counts refused packets too, and a policy may drop the rest of the frame
    /// at the head of the queue, which changes the reason for which arriving cells are refused.
    pub(super) fn may_refuse_at_once(&self) -> bool {
        self.timing.marks == Some(MarkedAt::Dequeue) && !self.rule.as_ref().is_some_and(|rule| rule.decides())
    }

    /// Records arriving cells for the port's allocator.
    #[inline]
    pub(super) fn note(&mut self, run: Run, first: Time, period: Span) {
        if self.timing.arrivals == Arrivals::Recorded {
            self.arrivals.push(Arrival { run, first, period });
        }
    }

    /// Reports the arrivals recorded since the last call to the allocator of the port of `link`.
    #[inline]
    pub(super) fn report_arrivals(&mut self, link: LinkIndex, downstream: &mut Downstream<'_>) {
        if self.timing.arrivals == Arrivals::Recorded {
            self.arrivals.drain(..).for_each(|arrival| arrival.report(link, downstream));
        }
    }

    /// Returns the earliest instant at which a waiting cell can have an effect elsewhere, if cells may leave in a
    /// different order than they arrived.
    #[inline]
    pub(super) fn effect_of_waiting(&self) -> Option<Time> {
        if !self.is_deferred() || self.buffer.ready() == 0 {
            return None;
        }
        let ahead = match self.timing.effects {
            Effects::EveryCell => 0,
            Effects::FrameEnds => match &self.rule {
                Some(rule) if rule.decides() => rule.least_to_a_frame_end() - 1,
                _ => self.buffer.queue.least_to_a_frame_end() - 1,
            },
        };
        Some(self.next_start + self.timing.cell_time * u64::from(ahead) + self.timing.least_lead)
    }

    /// Returns the earliest start of a cell that arrives from now on.
    pub(super) fn free_at(&self) -> Time {
        if self.is_deferred() { self.next_start } else { self.tail_start() }
    }

    /// Returns the first time, at most `arrival`, at which something must be settled.
    #[inline]
    pub(super) fn first_of(&self, arrival: Time) -> Time {
        let waits_late = self.is_deferred() && self.buffer.ready() > 0;
        if waits_late { arrival.min(self.next_start) } else { arrival }
    }

    /// Sends the cells whose transmission starts before `until`.
    #[inline]
    pub(super) fn serve_before(&mut self, until: Time) {
        if self.sees_departures() {
            self.see_departures(until);
            return;
        }
        let waiting = self.buffer.ready();
        let mut gone = 0;
        while self.next_start < until && gone < waiting {
            self.next_start += self.timing.cell_time;
            gone += 1;
        }
        if gone > 0 {
            self.buffer.defer_dequeue(gone);
        }
    }

    /// Sends the cells that start before `until` one by one, at a port with a rule that acts on cells at the head of the
    /// queue. The rule sees each cell when it starts.
    #[inline(never)]
    fn see_departures(&mut self, until: Time) {
        while self.next_start < until {
            let rule = self.rule.as_mut().expect("the port has a rule that observes its cells");
            let Some(cell) = self.buffer.take() else {
                rule.on_idle();
                break;
            };
            let label = cell.label();
            let own_queue = if rule.decides() { self.buffer.queue.in_queue_of(label) } else { None };
            let left = own_queue.unwrap_or(self.buffer.ready());
            let behind = Behind { left, counted: self.buffer.occupancy };
            let Some(cell) = rule.on_departure(cell, behind, self.next_start, &mut self.buffer.admission) else {
                self.buffer.drop_taken(label);
                continue;
            };
            let start = self.next_start;
            self.next_start += self.timing.cell_time;
            let in_frames = self.granularity == ReportGranularity::Runs && self.timing.effects == Effects::FrameEnds;
            if in_frames && rule.acts_on_frames() {
                self.leave_in_frames(cell, start);
            } else {
                self.gone.push((Run { last: cell, cells: 1 }, start));
            }
        }
    }

    /// Records a cell that starts at `start`, at a port where only whole frames have effects until the run is almost
    /// over.
    #[inline]
    fn leave_in_frames(&mut self, cell: Cell, start: Time) {
        let run = Run { last: cell, cells: 1 };
        if start > self.timing.latest_start {
            self.granularity = ReportGranularity::Each;
            self.end_parts();
        }
        if cell.is_rm() || self.granularity == ReportGranularity::Each {
            self.gone.push((run, start));
            return;
        }
        let part = &mut self.parts[cell.label()];
        let continues = part.0.cells > 0 && part.0.last.frame == cell.frame;
        if part.0.cells > 0 && !continues {
            self.gone.push(*part);
        }
        *part = (Run { cells: if continues { part.0.cells + 1 } else { 1 }, ..run }, start);
        if cell.last_cell() {
            self.gone.push(std::mem::replace(part, NONE));
        }
    }

    /// Counts the cells of frames that have left in part as departed runs.
    fn end_parts(&mut self) {
        let parts = self.parts.iter_mut().filter(|(run, _)| run.cells > 0);
        self.gone.extend(parts.map(|part| std::mem::replace(part, NONE)));
    }

    /// Reports the cells of frames that have left in part.
    pub(super) fn report_parts(&mut self, depart: &mut impl Depart) {
        self.end_parts();
        if !self.gone.is_empty() {
            self.report_departures(depart);
        }
    }

    /// Offers a cell to a port whose rule sees each cell.
    #[inline(never)]
    fn offer_seen(&mut self, now: Time, cell: Cell) {
        let rule = self.rule.as_mut().expect("the port has a rule that observes its cells");
        let cell = rule.on_arrival(cell, self.buffer.occupancy);
        let before = self.buffer.occupancy;
        let enters = self.buffer.offer(cell);
        if self.buffer.occupancy != before + u32::from(enters) {
            rule.on_pushed_out();
        }
        if enters {
            rule.enter(cell, now, self.buffer.occupancy, &mut self.buffer.admission);
            if rule.decides() {
                self.buffer.queue.on_enter(cell, now);
            }
        }
    }

    /// Removes the cells that left before the arrivals at `now`. If ports send before cells arrive, also removes the
    /// cell that starts at `now`.
    pub(super) fn catch_up(&mut self, now: Time) {
        self.serve_before(self.timing.served_before(now));
    }

    /// Processes the departures before `until`. All earlier arrivals must have been processed.
    #[inline]
    pub(super) fn settle(&mut self, until: Time, depart: &mut impl Depart) {
        if self.is_deferred() {
            self.serve_before(until);
            self.report_departures(depart);
        }
        assert!(self.buffer.occupancy <= self.buffer.capacity, "no queue exceeds its buffer");
        debug_assert!(self.buffer.is_consistent(), "every waiting cell is counted once");
    }

    /// Returns the time when all waiting cells will have been sent if no others arrive.
    pub(super) fn tail_start(&self) -> Time {
        self.next_start + self.timing.cell_time * u64::from(self.buffer.ready())
    }

    /// If the port is idle, prepares it to send a cell that arrives at `now` as soon as the link is free.
    #[inline]
    pub(super) fn start_anew_if_idle(&mut self, now: Time, depart: &mut impl Depart) {
        if self.buffer.ready() == 0 && self.next_start < now {
            if self.is_deferred() {
                self.report_departures(depart);
            }
            self.next_start = now;
        }
    }

    /// Offers a cell that arrives at `now`. Returns its start if the start is known and the cell need not wait for the
    /// rest of its frame. Reports the starts of other cells to `depart`.
    #[inline]
    pub(super) fn offer(&mut self, now: Time, cell: Cell, depart: &mut impl Depart) -> Option<Time> {
        self.start_anew_if_idle(now, depart);
        debug_assert!(self.buffer.now <= now, "cells are offered in order of time");
        self.buffer.now = now;
        if self.is_deferred() {
            if self.buffer.must_report_before(cell.label()) {
                self.report_departures(depart);
            }
            if self.rule.is_some() {
                self.offer_seen(now, cell);
            } else {
                self.buffer.offer(cell);
            }
            return None;
        }
        let start = self.tail_start();
        if !self.buffer.offer(cell) {
            return None;
        }
        D::admit_one(self, start, depart)
    }

    /// Returns whether an admitted cell that arrives at `now` would start at once. The cell must be the only arrival of
    /// this instant.
    pub(super) fn may_bypass_queue(&self, now: Time, cell: Cell) -> bool {
        !self.sees_departures()
            && self.buffer.queue.may_be_bypassed()
            && self.next_start <= now
            && self.buffer.ready() == 0
            && !cell.is_rm()
    }

    /// A variant of [`Output::offer`] for a cell that may bypass the queue.
    #[inline]
    pub(super) fn bypass_queue(&mut self, now: Time, cell: Cell, depart: &mut impl Depart) -> Option<Time> {
        if !self.is_deferred() {
            self.buffer.dequeue_deferred();
        } else if self.buffer.deferred_dequeues > 0 {
            self.report_departures(depart);
        }
        self.next_start = now;
        self.buffer.now = now;
        if self.buffer.bypass_queue(cell) {
            self.next_start += self.timing.cell_time;
            return Some(now);
        }
        // The queue may contain the last cell of a frame whose other cells were refused.
        (!self.is_deferred() && self.buffer.ready() > 0).then_some(now)
    }

    /// Records the cells of a run that start after the horizon, for the results of a port without a queue.
    #[cold]
    pub(super) fn leave_waiting(&mut self, run: Run, first_start: Time, period: Span) {
        let cells = cells_after(self.timing.horizon, first_start, period, run.cells);
        if D::KEPT == Kept::Number && cells > 0 {
            self.buffer.counts.put(run.last.label(), cells);
        }
    }

    /// After the horizon has moved from `before`, updates which cells of a run are waiting.
    #[cold]
    pub(super) fn update_waiting(&mut self, run: Run, first_start: Time, period: Span, before: Time) {
        let cells = cells_after(before, first_start, period, run.cells);
        if D::KEPT == Kept::Number && cells > 0 {
            self.buffer.counts.take(run.last.label(), cells);
        }
        self.leave_waiting(run, first_start, period);
    }

    /// Reports the departures of a port with [`Departures::Later`]. The link must have been busy since the previous report.
    #[inline(never)]
    pub(super) fn report_departures(&mut self, depart: &mut impl Depart) {
        for &(run, start) in &self.gone {
            depart(run, start, if run.cells == 1 { self.timing.cell_time } else { Span(0) });
        }
        self.gone.clear();
        let gone = self.buffer.deferred_dequeues;
        if gone == 0 {
            return;
        }
        let cell_time = self.timing.cell_time;
        let first_start = Time(self.next_start.0 - cell_time.0 * u64::from(gone));
        let may_matter = self.timing.effects == Effects::EveryCell || self.next_start > self.timing.latest_start;
        if self.granularity == ReportGranularity::Runs && may_matter {
            self.granularity = ReportGranularity::Each;
            self.buffer.queue.report_parts(|run| depart(run, first_start, Span(0)));
        }
        let start = |after: u32| first_start + cell_time * u64::from(after);
        let period = if self.granularity == ReportGranularity::Each { cell_time } else { Span(0) };
        self.buffer.report_departures(self.granularity, |run, after| depart(run, start(after), period));
    }
}

/// Call [`PortQueue::look_at`] first.
impl<D: Discipline> PortQueue for Output<D> {
    fn view(&self) -> BufferView<'_> {
        let OutputBuffer { occupancy, tracker, .. } = &self.buffer;
        BufferView { occupancy: *occupancy, range: tracker.range(*occupancy), per_vc: self.buffer.per_vc() }
    }

    fn start_range(&mut self) {
        self.buffer.tracker.start_range(self.buffer.occupancy);
    }

    fn end(&self) -> PortEnd {
        let state = self.buffer.state();
        let leaves = |(label, &cells)| cells - self.buffer.queue.awaiting_of(label);
        let waiting = state.waiting.iter_enumerated().filter(|_| !self.is_deferred());
        PortEnd { leave_later: waiting.map(leaves).collect(), state }
    }

    fn look_at(&mut self, until: Time) {
        self.serve_before(until);
        self.buffer.dequeue_deferred();
    }

    fn waiting_at(&mut self, now: Time) -> u32 {
        self.look_at(now);
        self.buffer.occupancy
    }

    fn set_horizon(&mut self, horizon: Time) {
        self.timing.horizon = horizon;
        self.timing.latest_start = Time(horizon.0.saturating_sub(self.timing.longest_lead.0));
    }

    fn details(&self) -> Vec<String> {
        let departures = format!("Departures::{:?}", self.buffer.queue.departures());
        vec![format!("Effects::{:?}", self.timing.effects), departures]
    }
}
