//! Ports with deferred order: how many wait follows from arithmetic, which of them go first is worked out later.

use super::TrainPort;
use crate::cell::Run;
use crate::engine::fast::run_queues::ReportGranularity;
use crate::units::{Span, Time};

impl TrainPort {
    /// The same, one by one, where cells that leave behind them more than `most` are marked.
    pub(super) fn mark_before(&mut self, until: Time, most: u32) {
        while self.next_start < until {
            let Some(cell) = self.port.take() else { break };
            let marked = !cell.is_rm() && self.port.occupancy() > most;
            self.gone.push((if marked { cell.with_efci(true) } else { cell }, self.next_start));
            self.next_start += self.timing.cell_time;
        }
    }

    /// Reports which cells have gone from a port with deferred order. The link was never idle since it last did.
    #[inline(never)]
    pub(super) fn report_departures(&mut self, depart: &mut impl FnMut(Run, Time, Span)) {
        for (cell, start) in self.gone.drain(..) {
            depart(Run { last: cell, cells: 1 }, start, self.timing.cell_time);
        }
        let gone = self.port.deferred_dequeues();
        if gone == 0 {
            return;
        }
        let cell_time = self.timing.cell_time;
        let first_start = Time(self.next_start.0 - cell_time.0 * u64::from(gone));
        if !self.reports_each && (self.timing.every_cell_matters || self.next_start > self.timing.latest_start) {
            self.reports_each = true;
            self.port.report_parts(|run| depart(run, first_start, Span(0)));
        }
        let start = |after: u32| first_start + cell_time * u64::from(after);
        if self.reports_each {
            self.port.report_departures(ReportGranularity::Each, |run, after| depart(run, start(after), cell_time));
        } else {
            self.port.report_departures(ReportGranularity::Runs, |run, after| depart(run, start(after), Span(0)));
        }
    }

    /// Admits a run where the order is deferred. How many wait does not depend on which of them goes first.
    ///
    /// The i-th of them is sent no sooner than i cell times after the next start, and so has arrived by then if they
    /// arrive a cell time apart or closer: that it is there already changes nothing. Neither does it if cells of the
    /// same queue will still wait when the last of them arrives.
    #[inline(never)]
    pub(super) fn admit_deferred(
        &mut self,
        now: Time,
        period: Span,
        run: Run,
        depart: &mut impl FnMut(Run, Time, Span),
    ) -> bool {
        self.start_anew_if_idle(now, depart);
        let behind = u64::from(run.cells - 1);
        let last_arrival = now + period * behind;
        let at_first = self.port.occupancy() + 1;
        let at_last = if period == self.timing.cell_time {
            at_first
        } else {
            let last_start = (self.tail_start() + self.timing.cell_time * behind).max(last_arrival);
            self.waiting_with(last_start, last_arrival)
        };
        let peak = at_first.max(at_last);
        let gone = at_first + run.cells - 1 - at_last;
        let is_close = period <= self.timing.cell_time && !self.fills_exactly;
        let in_time = is_close || self.port.least_ahead(run.last.label()) >= gone;
        if peak > self.port.capacity() || !in_time {
            return false;
        }
        self.port.admit(run, peak, 0);
        true
    }
}
