//! Many cells at once: their fate, and their admission or refusal, with the result of single offers.

use super::{Cell, FrameOutcome, OutputBuffer, QueueRange, Run};
use crate::index::Label;

impl OutputBuffer {
    /// Returns the fate of a VC's next cells, starting with this one, as long as there is room for them. Asks the
    /// policy if a frame starts, as the first cell's arrival would. That arrival must follow.
    #[inline]
    pub fn fate(&mut self, cell: Cell) -> FrameOutcome {
        if self.admission.take_start(cell.label()) {
            self.judge_frame(cell);
        }
        self.admission.fate(cell)
    }

    /// Admits cells whose outcome is [`FrameOutcome::Admitted`], with the result of single offers between and after
    /// which `gone` cells leave. There was room for each of them, and the queue stayed within `range`.
    #[inline]
    pub fn admit(&mut self, run: Run, range: QueueRange, gone: u32) {
        debug_assert!(range.largest <= self.capacity, "no queue exceeds its buffer");
        self.admission.on_run(run);
        self.count_in(run);
        self.occupancy += run.cells;
        self.tracker.include(range);
        self.defer_dequeue(gone);
    }

    /// Admits one cell each of some VCs, in this order. All of them pass and find room, and none ends its frame. A port
    /// with deferred order must not have to report departures before any of them.
    #[inline]
    pub fn admit_round(&mut self, cells: impl ExactSizeIterator<Item = Cell>) {
        let arrived = u32::try_from(cells.len()).expect("fewer cells than the buffer has places");
        for cell in cells {
            self.admission.on_cells_between(cell.label(), 1);
            if self.apart {
                self.count_in(Run { last: cell, cells: 1 });
            } else {
                self.counts.put(cell.label(), 1);
                self.fifo.push_back(Run { last: cell, cells: 1 });
            }
        }
        self.occupancy += arrived;
        self.tracker.rise(self.occupancy);
    }

    /// Admits cells of several VCs to a port without a queue, with the result of single offers between and after which
    /// `gone` cells leave. There was room for each of them, and the queue stayed within `range`.
    #[inline]
    pub fn admit_in_any_order(&mut self, cells: u32, range: QueueRange, gone: u32) {
        debug_assert!(!self.keeps_queue, "the order of cells has no effect");
        debug_assert!(range.largest <= self.capacity, "no queue exceeds its buffer");
        self.occupancy += cells;
        self.tracker.include(range);
        self.defer_dequeue(gone);
    }

    /// Counts cells of a VC that arrive between cells of others, as single offers would.
    /// [`OutputBuffer::admit_in_any_order`] admits them.
    #[inline]
    pub fn count_interleaved(&mut self, run: Run) {
        if run.last.is_rm() {
            self.admission.on_cells_between(run.last.label(), run.cells);
        } else {
            self.admission.on_run(run);
        }
    }

    /// Loses cells whose outcome is [`FrameOutcome::Admitted`] but that find no room, at a port that loses single cells
    /// ([`OutputBuffer::loses_single_cells`]), with the result of single offers. Others of their frame may be admitted
    /// between them.
    #[inline]
    pub fn lose(&mut self, run: Run) {
        self.admission.lose(run);
    }

    /// Refuses cells of a frame whose outcome is [`FrameOutcome::Refused`], with the result of single offers.
    #[inline]
    pub fn refuse(&mut self, run: Run) {
        self.admission.refuse(run);
    }

    /// Returns whether cells of a VC that arrive one by one, while `left` cells leave, may be reported to the policy
    /// with the first of them (`CellFollower::enters_at_once`).
    #[inline]
    pub fn enters_at_once(&mut self, label: Label, left: u32, close: bool) -> bool {
        if !self.follows {
            return true;
        }
        self.report_to_policy();
        self.follower().enters_at_once(label, left, close)
    }
}
