//! Ports where VCs merge: cells wait until their frame is whole.

use super::TrainPort;
use crate::cell::Run;
use crate::queue_range::QueueRange;
use crate::units::{Span, Time};

impl TrainPort {
    /// Admits a run of a VC whose frames wait until they are whole. Its cells only come while others go, so the queue
    /// shrinks or stays until all others have gone and grows from then on, or only grows: its largest is at one of the
    /// ends.
    #[inline(never)]
    pub(super) fn admit_held(
        &mut self,
        now: Time,
        period: Span,
        run: Run,
        depart: &mut impl FnMut(Run, Time, Span),
    ) -> bool {
        let last_arrival = now + period * u64::from(run.cells - 1);
        let until = if self.output.timing.serve_first { last_arrival + Span(1) } else { last_arrival };
        let ready = self.output.port.ready();
        let starts = (until.0.saturating_sub(self.output.next_start.0)).div_ceil(self.output.timing.cell_time.0);
        let gone = u32::try_from(starts).unwrap_or(ready).min(ready);
        let at_first = self.output.port.occupancy() + 1;
        let at_last = at_first + run.cells - 1 - gone;
        let range = QueueRange { least: self.least_while_held(now, period, gone), largest: at_first.max(at_last) };
        if range.largest > self.output.port.capacity() {
            return false;
        }
        self.output.next_start += self.output.timing.cell_time * u64::from(gone);
        self.output.port.admit(run, range, gone);
        if run.last.last_cell() {
            if gone == ready {
                self.output.next_start = self.output.next_start.max(last_arrival);
            }
            self.output
                .release(self.output.next_start + self.output.timing.cell_time * u64::from(ready - gone), depart);
        }
        true
    }

    /// The fewest cells waiting while `gone` cells go and cells that are held arrive a period apart from `now` on: they
    /// wait at first, or when the last of those that go has gone.
    fn least_while_held(&self, now: Time, period: Span, gone: u32) -> u32 {
        let waiting = self.output.port.occupancy();
        let Some(before_last) = gone.checked_sub(1) else { return waiting };
        let last_gone = self.output.next_start + self.output.timing.cell_time * u64::from(before_last);
        let since_first = last_gone.0.saturating_sub(now.0);
        let arrived =
            if self.output.timing.serve_first { since_first.div_ceil(period.0) } else { since_first / period.0 + 1 };
        let arrived = u32::try_from(arrived).expect("no more than the run has");
        waiting.min(waiting + arrived - gone)
    }
}
