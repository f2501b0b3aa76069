//! Drop from front: a cell that finds no room pushes out the frame that is nearest to transmission.

use super::BatchingPort;
use crate::cell::{Cell, Run};
use crate::port::admission::is_of_frame;

impl BatchingPort {
    /// Makes room for `arriving`: removes the waiting cell nearest to transmission that does not end a frame, and the
    /// waiting rest of its frame but for the last cell, which keeps the next frame apart from the remains.
    pub(super) fn push_out_front(&mut self, arriving: Cell) {
        self.dequeue_deferred();
        let ends_frame = |run: &Run| run.cells == 1 && run.last.last_cell();
        let data = || self.fifo.iter().filter(|run| !run.last.is_rm());
        let Some(&victim) = data().find(|run| !ends_frame(run)).or_else(|| data().next()) else {
            return; // Nothing can be pushed out: the arriving cell is lost.
        };
        let keeps_last = !ends_frame(&victim);
        let victim = victim.last;
        let mut pushed_out = 0;
        self.fifo.retain_mut(|run| {
            if !is_of_frame(run.last, victim) {
                return true;
            }
            let kept = u32::from(keeps_last && run.last.last_cell());
            pushed_out += run.cells - kept;
            run.cells = kept;
            kept > 0
        });
        self.counts.take(victim.label(), pushed_out);
        self.occupancy -= pushed_out;
        self.tracker.fall(self.occupancy);
        self.admission.on_pushed_out(victim, pushed_out, arriving);
    }
}
