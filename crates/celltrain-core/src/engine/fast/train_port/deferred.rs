//! Ports with deferred order: how many wait follows from arithmetic, which of them go first is worked out later.

use super::TrainPort;
use crate::cell::Run;
use crate::queue_range::QueueRange;
use crate::units::{Span, Time};

impl TrainPort {
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
        self.output.start_anew_if_idle(now, depart);
        let behind = u64::from(run.cells - 1);
        let last_arrival = now + period * behind;
        let at_first = self.output.port.occupancy() + 1;
        let at_last = if period == self.output.timing.cell_time {
            at_first
        } else {
            let last_start = (self.output.tail_start() + self.output.timing.cell_time * behind).max(last_arrival);
            self.waiting_with(last_start, last_arrival)
        };
        // It only grows or only shrinks from one arrival to the next, see `admit_in_step`.
        let range = QueueRange { least: at_first.min(at_last) - 1, largest: at_first.max(at_last) };
        let gone = at_first + run.cells - 1 - at_last;
        let is_close = period <= self.output.timing.cell_time && !self.fills_exactly;
        let in_time = is_close || self.output.port.least_ahead(run.last.label()) >= gone;
        if range.largest > self.output.port.capacity() || !in_time {
            return false;
        }
        self.output.port.admit(run, range, 0);
        true
    }
}
