//! Operations on many cells at once: their outcome, and their admission or refusal. The results are the same
//! as for single offers.

use super::{Cell, FrameOutcome, OutputBuffer, QueueRange, Run};
use crate::index::Label;

impl OutputBuffer {
    /// Returns the outcome of a VC's next cells, starting with this one, as long as there is room for them. If a frame
    /// starts, asks the policy, as the arrival of its first cell would. The caller must then offer that cell.
    #[inline]
    pub fn fate(&mut self, cell: Cell) -> FrameOutcome {
        if self.admission.take_start(cell.label()) {
            if self.admits_all() {
                self.admission.pass_frame(cell.label());
            } else {
                self.judge_frame(cell);
            }
        }
        self.admission.fate(cell)
    }

    /// Admits cells whose outcome is [`FrameOutcome::Admitted`]. The result is the same as if the cells were offered
    /// one by one, and `gone` cells left between and after the offers. There must have been room for each cell, and
    /// the queue must have stayed within `range`.
    #[inline]
    pub fn admit(&mut self, run: Run, range: QueueRange, gone: u32) {
        debug_assert!(range.largest <= self.capacity, "no queue exceeds its buffer");
        self.admission.on_run(run);
        if self.keeps_queue {
            self.count_in(run);
        }
        self.occupancy += run.cells;
        self.tracker.include(range);
        self.defer_dequeue(gone);
    }

    /// Admits cells of several VCs to a port without a queue. The result is the same as if the cells were offered one
    /// by one, and `gone` cells left between and after the offers. There must have been room for each cell, and the
    /// queue must have stayed within `range`.
    #[inline]
    pub fn admit_in_any_order(&mut self, cells: u32, range: QueueRange, gone: u32) {
        debug_assert!(!self.keeps_queue, "the order of cells has no effect");
        debug_assert!(range.largest <= self.capacity, "no queue exceeds its buffer");
        self.occupancy += cells;
        self.tracker.include(range);
        self.defer_dequeue(gone);
    }

    /// Counts cells of a VC that arrive interleaved with others, as single offers would.
    /// [`OutputBuffer::admit_in_any_order`] admits them.
    #[inline]
    pub fn count_interleaved(&mut self, run: Run) {
        if run.last.is_rm() {
            self.admission.on_cells_between(run.last.label(), run.cells);
        } else {
            self.admission.on_run(run);
        }
    }

    /// Returns whether cells of a VC that arrive one by one, while `left` cells leave, may all be reported to the
    /// policy with the first of them (`CellFollower::enters_at_once`).
    #[inline]
    pub fn enters_at_once(&mut self, label: Label, left: u32, close: bool) -> bool {
        if !self.follows {
            return true;
        }
        self.report_to_policy();
        self.follower().enters_at_once(label, left, close)
    }
}
