//! Merging VCs: the cells of a frame wait separately until the frame is whole.

use typed_index_collections::TiSlice;

use super::{OutputBuffer, Run};
use crate::index::Label;

/// The waiting cells of a VC's frame that is not yet whole.
#[derive(Clone, Debug, Default)]
pub(super) struct AwaitingReassembly {
    pub(super) runs: Vec<Run>,
    cells: u32,
}

impl OutputBuffer {
    /// Makes VCs merge at this port, like [`Port::merging`](crate::port::Port::merging).
    #[must_use]
    pub fn merging(mut self, merging: &TiSlice<Label, bool>) -> Self {
        if merging.contains(&true) {
            self.admission.assert_may_merge();
            self.awaiting_reassembly = merging.iter().map(|&merges| merges.then(AwaitingReassembly::default)).collect();
            self.apart = true;
        }
        self
    }

    /// Returns whether the frames of any VC wait until they are whole.
    pub fn merges(&self) -> bool {
        !self.awaiting_reassembly.is_empty()
    }

    /// Returns the number of waiting cells in a VC's frame that is not yet whole.
    pub fn awaiting_reassembly(&self, label: Label) -> u32 {
        self.awaiting_reassembly.get(label).and_then(Option::as_ref).map_or(0, |frame| frame.cells)
    }

    /// Returns the runs that became ready to be sent with the latest offer, at a port where VCs merge.
    pub fn released(&self) -> impl Iterator<Item = Run> {
        self.fifo.range(self.fifo.len() - self.released..).copied()
    }

    /// At a port where VCs merge, appends cells to the queue or to their frame that is not yet whole.
    pub(super) fn await_reassembly(&mut self, run: Run) {
        self.released = 0;
        let Some(frame) = &mut self.awaiting_reassembly[run.last.label()] else {
            self.fifo.push_back(run);
            self.released = 1;
            return;
        };
        match frame.runs.last_mut() {
            Some(before) if before.goes_on_with(run) => {
                *before = Run { last: run.last, cells: before.cells + run.cells }
            }
            _ => frame.runs.push(run),
        }
        frame.cells += run.cells;
        self.awaiting_cells += run.cells;
        if run.last.last_cell() {
            self.awaiting_cells -= std::mem::take(&mut frame.cells);
            self.released = frame.runs.len();
            self.fifo.extend(frame.runs.drain(..));
        }
    }

    /// Returns whether a VC's frames wait until they are whole.
    pub fn reassembles(&self, label: Label) -> bool {
        self.awaiting_reassembly.get(label).is_some_and(Option::is_some)
    }

    /// Discards the waiting cells of a frame that can no longer become whole.
    pub(super) fn discard_awaiting(&mut self, label: Label) {
        let Some(frame) = &mut self.awaiting_reassembly[label] else { return };
        frame.runs.clear();
        let cells = std::mem::take(&mut frame.cells);
        self.awaiting_cells -= cells;
        self.occupancy -= cells;
        self.tracker.fall(self.occupancy);
        self.admission.on_held_discarded(label, cells);
        if cells > 0 {
            self.counts.take(label, cells);
        }
    }
}
