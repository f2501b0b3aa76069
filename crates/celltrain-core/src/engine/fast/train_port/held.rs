//! Ports where VCs merge: cells wait until their frame is whole.

use super::TrainPort;
use crate::cell::Run;
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
        let until = if self.timing.serve_first { last_arrival + Span(1) } else { last_arrival };
        let ready = self.port.ready();
        let starts = (until.0.saturating_sub(self.next_start.0)).div_ceil(self.timing.cell_time.0);
        let gone = u32::try_from(starts).unwrap_or(ready).min(ready);
        let at_first = self.port.occupancy() + 1;
        let at_last = at_first + run.cells - 1 - gone;
        let peak = at_first.max(at_last);
        if peak > self.port.capacity() {
            return false;
        }
        self.next_start += self.timing.cell_time * u64::from(gone);
        self.port.admit(run, peak, gone);
        if run.last.last_cell() {
            if gone == ready {
                self.next_start = self.next_start.max(last_arrival);
            }
            self.release(self.next_start + self.timing.cell_time * u64::from(ready - gone), depart);
        }
        true
    }

    /// Reports the frame that the latest arrival completed; it starts at `start`.
    #[inline]
    pub(super) fn release(&mut self, mut start: Time, depart: &mut impl FnMut(Run, Time, Span)) {
        for run in self.port.released() {
            depart(run, start, self.timing.cell_time);
            start += self.timing.cell_time * u64::from(run.cells);
        }
    }
}
