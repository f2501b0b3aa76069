//! The buffer of a contended port and its outgoing link: the waiting cells, their starts, and the cells that have left.
//!
//! With deferred order, the port at first computes only the number of waiting cells, and determines later which cells
//! left.

use super::egress::{Depart, Downstream};
use super::output_buffer::OutputBuffer;
use super::port_queue::{BufferView, PortEnd, PortQueue};
use super::timing::{Effects, Timing};
use crate::cell::{Cell, Run};
use crate::index::LinkIndex;
use crate::marking::Marker;
use crate::scheduler::waiting::ReportGranularity;
use crate::units::{Span, Time};

/// The component of a contended port that handles cells after their arrival.
pub(super) struct Output {
    pub(super) buffer: OutputBuffer,
    /// Earliest start of the next transmission: the start of the first waiting cell, or the time when the link is free.
    pub(super) next_start: Time,
    /// True if the order of departures is deferred: admitted cells may be pushed out, overtaken or marked, so the port
    /// determines later which cells leave.
    pub(super) defers_order: bool,
    pub(super) timing: Timing,
    /// True if a cell that finds an empty queue may start at once: no cell is marked, and no cell waits for the rest of
    /// its frame.
    may_bypass_queue: bool,
    /// Used only with deferred order. If true, every start is reported, not only starts of cells that end a run. Set
    /// once a single departure may have an effect, because another contended port follows or the run is almost over.
    pub(super) reports_each: bool,
    /// Departed cells with their starts, at a port that marks cells. Some of the cells may be marked.
    gone: Vec<(Cell, Time)>,
    marker: Option<Marker>,
    /// Arrivals that have been recorded but not yet taken.
    pub(super) arrivals: Vec<Arrival>,
}

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

impl Output {
    /// If `reports_each`, each start is reported from the beginning.
    pub(super) fn new(buffer: OutputBuffer, timing: Timing, marker: Option<Marker>, reports_each: bool) -> Self {
        Self {
            defers_order: buffer.defers_order() || timing.marks(),
            may_bypass_queue: !timing.marks() && !buffer.reassembly.is_used(),
            buffer,
            next_start: Time::default(),
            timing,
            reports_each,
            gone: Vec::new(),
            marker,
            arrivals: Vec::new(),
        }
    }

    /// Records arriving cells for the port's allocator.
    #[inline]
    pub(super) fn note(&mut self, run: Run, first: Time, period: Span) {
        if self.timing.notes {
            self.arrivals.push(Arrival { run, first, period });
        }
    }

    /// Reports the arrivals recorded since the last call to the allocator of the port of `link`.
    #[inline]
    pub(super) fn report_arrivals(&mut self, link: LinkIndex, downstream: &mut Downstream<'_>) {
        if self.timing.notes {
            self.arrivals.drain(..).for_each(|arrival| arrival.report(link, downstream));
        }
    }

    /// Returns the earliest instant at which a waiting cell can have an effect elsewhere, if cells may leave in a
    /// different order than they arrived.
    #[inline]
    pub(super) fn effect_of_waiting(&self) -> Option<Time> {
        if !self.defers_order || self.buffer.ready() == 0 {
            return None;
        }
        let ahead = match self.timing.effects {
            Effects::EveryCell => 0,
            Effects::FrameEnds => self.buffer.least_to_an_end() - 1,
        };
        Some(self.next_start + self.timing.cell_time * u64::from(ahead) + self.timing.least_lead)
    }

    /// Returns the earliest start of a cell that arrives from now on.
    pub(super) fn free_at(&self) -> Time {
        if self.defers_order { self.next_start } else { self.tail_start() }
    }

    /// Returns the first time, at most `arrival`, at which something must be settled.
    #[inline]
    pub(super) fn first_of(&self, arrival: Time) -> Time {
        let waits_late = self.defers_order && self.buffer.ready() > 0;
        if waits_late { arrival.min(self.next_start) } else { arrival }
    }

    /// Sends the cells whose transmission starts before `until`.
    #[inline]
    pub(super) fn serve_before(&mut self, until: Time) {
        if self.timing.marks() {
            self.mark_before(until);
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

    /// Sends the cells one by one, and marks cells that leave a queue longer than the marking threshold.
    fn mark_before(&mut self, until: Time) {
        while self.next_start < until {
            let Some(mut cell) = self.buffer.take() else { break };
            let waiting = self.buffer.occupancy;
            if let Some(marker) = &mut self.marker {
                cell = marker.on_departure(cell, waiting);
            }
            self.gone.push((cell, self.next_start));
            self.next_start += self.timing.cell_time;
        }
    }

    /// Passes an arriving cell to the port's marker, if it has one. Returns the cell, perhaps marked.
    #[inline]
    pub(super) fn mark_arrival(&mut self, cell: Cell) -> Cell {
        match &mut self.marker {
            Some(marker) => marker.on_arrival(cell, self.buffer.occupancy),
            None => cell,
        }
    }

    /// Removes the cells that left before the arrivals at `now`. If ports send before cells arrive, also removes the
    /// cell that starts at `now`.
    pub(super) fn catch_up(&mut self, now: Time) {
        self.serve_before(self.timing.served_before(now));
    }

    /// Settles the departures before `until`. All earlier arrivals must be settled.
    #[inline]
    pub(super) fn settle(&mut self, until: Time, depart: &mut impl Depart) {
        if self.defers_order {
            self.serve_before(until);
            self.report_departures(depart);
        }
    }

    /// Updates the counts to their state at `until`. Everything before it must be settled.
    pub(super) fn look_at(&mut self, until: Time) {
        self.serve_before(until);
        self.buffer.dequeue_deferred();
    }

    /// Returns the number of cells waiting at `now`. Everything before it must be settled.
    pub(super) fn occupancy(&mut self, now: Time) -> u32 {
        self.look_at(now);
        self.buffer.occupancy
    }

    /// Returns the time when all waiting cells will have been sent if no others arrive.
    pub(super) fn tail_start(&self) -> Time {
        self.next_start + self.timing.cell_time * u64::from(self.buffer.ready())
    }

    /// If the port is idle, prepares it to send a cell that arrives at `now` as soon as the link is free.
    #[inline]
    pub(super) fn start_anew_if_idle(&mut self, now: Time, depart: &mut impl Depart) {
        if self.buffer.ready() == 0 && self.next_start < now {
            if self.defers_order {
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
        self.buffer.now = now;
        if self.defers_order {
            if self.buffer.must_report_before(cell.label()) {
                self.report_departures(depart);
            }
            self.buffer.offer(cell);
            return None;
        }
        let start = self.tail_start();
        if !self.buffer.offer(cell) {
            return None;
        }
        if self.buffer.reassembly.is_used() {
            self.release(start, depart);
            return None;
        }
        Some(start)
    }

    /// Returns whether an admitted cell that arrives at `now` would start at once. The cell must be the only arrival of
    /// this instant.
    pub(super) fn may_bypass_queue(&self, now: Time, cell: Cell) -> bool {
        self.may_bypass_queue && self.next_start <= now && self.buffer.ready() == 0 && !cell.is_rm()
    }

    /// A variant of [`Output::offer`] for a cell that may bypass the queue.
    #[inline]
    pub(super) fn bypass_queue(&mut self, now: Time, cell: Cell, depart: &mut impl Depart) -> Option<Time> {
        if !self.defers_order {
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
        (!self.defers_order && self.buffer.ready() > 0).then_some(now)
    }

    /// Records the cells of a run that start after the horizon, for the results of a port without a queue.
    #[cold]
    pub(super) fn leave_waiting(&mut self, run: Run, first_start: Time, period: Span) {
        let cells = waiting_at(self.timing.horizon, run, first_start, period);
        if !self.buffer.keeps_queue && cells > 0 {
            self.buffer.counts.put(run.last.label(), cells);
        }
    }

    /// After the horizon has moved from `before`, updates which cells of a run are waiting.
    #[cold]
    pub(super) fn update_waiting(&mut self, run: Run, first_start: Time, period: Span, before: Time) {
        let cells = waiting_at(before, run, first_start, period);
        if !self.buffer.keeps_queue && cells > 0 {
            self.buffer.counts.take(run.last.label(), cells);
        }
        self.leave_waiting(run, first_start, period);
    }

    pub(super) fn set_horizon(&mut self, horizon: Time) {
        self.timing.horizon = horizon;
        self.timing.latest_start = Time(horizon.0.saturating_sub(self.timing.longest_lead.0));
    }

    /// Reports the frame that the latest arrival completed, with its start at `start`.
    #[inline]
    pub(super) fn release(&mut self, mut start: Time, depart: &mut impl Depart) {
        for run in self.buffer.released() {
            depart(run, start, self.timing.cell_time);
            start += self.timing.cell_time * u64::from(run.cells);
        }
    }

    /// Reports the departures of a port with deferred order. The link must have been busy since the previous report.
    #[inline(never)]
    pub(super) fn report_departures(&mut self, depart: &mut impl Depart) {
        for &(cell, start) in &self.gone {
            depart(Run { last: cell, cells: 1 }, start, self.timing.cell_time);
        }
        self.gone.clear();
        let gone = self.buffer.deferred_dequeues;
        if gone == 0 {
            return;
        }
        let cell_time = self.timing.cell_time;
        let first_start = Time(self.next_start.0 - cell_time.0 * u64::from(gone));
        let may_matter = self.timing.effects == Effects::EveryCell || self.next_start > self.timing.latest_start;
        if !self.reports_each && may_matter {
            self.reports_each = true;
            self.buffer.report_parts(|run| depart(run, first_start, Span(0)));
        }
        let start = |after: u32| first_start + cell_time * u64::from(after);
        if self.reports_each {
            self.buffer.report_departures(ReportGranularity::Each, |run, after| depart(run, start(after), cell_time));
        } else {
            self.buffer.report_departures(ReportGranularity::Runs, |run, after| depart(run, start(after), Span(0)));
        }
    }
}

/// Call [`Output::look_at`] first.
impl PortQueue for Output {
    fn view(&self) -> BufferView<'_> {
        let OutputBuffer { occupancy, tracker, .. } = &self.buffer;
        BufferView { occupancy: *occupancy, range: tracker.range(*occupancy), per_vc: self.buffer.per_vc() }
    }

    fn start_range(&mut self) {
        self.buffer.tracker.start_range(self.buffer.occupancy);
    }

    fn end(&self) -> PortEnd {
        let state = self.buffer.state();
        let leaves = |(label, &cells)| cells - self.buffer.reassembly.cells_of(label);
        let waiting = state.waiting.iter_enumerated().filter(|_| !self.defers_order);
        PortEnd { leave_later: waiting.map(leaves).collect(), state }
    }
}

/// Returns how many cells of a run start after `now`.
fn waiting_at(now: Time, run: Run, first_start: Time, period: Span) -> u32 {
    let started = match (now.0 + 1).checked_sub(first_start.0) {
        None | Some(0) => 0,
        Some(left) => left.div_ceil(period.0),
    };
    run.cells - u32::try_from(started).map_or(run.cells, |started| started.min(run.cells))
}
