//! Merging VCs: cells wait separately until their frame is complete.

use std::collections::VecDeque;

use typed_index_collections::{TiSlice, TiVec};

use crate::cell::Run;
use crate::index::Label;

/// Incomplete frames that wait at a port.
#[derive(Default)]
pub(in crate::engine::fast) struct Reassembly {
    /// The incomplete frame of each VC, by label; `None` for a VC that does not merge. Empty if no VCs merge.
    frames: TiVec<Label, Option<PartialFrame>>,
    /// Number of cells in all frames.
    pub(super) cells: u32,
    /// Number of runs in the frame that the latest cells completed.
    pub(super) released: usize,
}

/// Waiting cells of an incomplete frame.
#[derive(Default)]
struct PartialFrame {
    runs: Vec<Run>,
    cells: u32,
}

impl Reassembly {
    pub(super) fn new(merging: &TiSlice<Label, bool>) -> Self {
        let frames = merging.iter().map(|&merges| merges.then(PartialFrame::default)).collect();
        Self { frames, cells: 0, released: 0 }
    }

    /// Returns whether any VCs merge.
    pub(in crate::engine::fast) fn is_used(&self) -> bool {
        !self.frames.is_empty()
    }

    /// Returns whether a VC's frames wait until they are complete.
    pub(in crate::engine::fast) fn has(&self, label: Label) -> bool {
        self.frames.get(label).is_some_and(Option::is_some)
    }

    pub(in crate::engine::fast) fn cells_of(&self, label: Label) -> u32 {
        self.frames.get(label).and_then(Option::as_ref).map_or(0, |frame| frame.cells)
    }

    /// Adds cells to their VC's frame, and moves a completed frame to the end of `ready`. If the VC does not merge, its
    /// cells are ready at once.
    #[inline(never)]
    pub(super) fn add(&mut self, run: Run, ready: &mut VecDeque<Run>) {
        self.released = 0;
        let Some(frame) = &mut self.frames[run.last.label()] else {
            ready.push_back(run);
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
        self.cells += run.cells;
        if run.last.last_cell() {
            self.cells -= std::mem::take(&mut frame.cells);
            self.released = frame.runs.len();
            ready.extend(frame.runs.drain(..));
        }
    }

    /// Discards a VC's frame, which can no longer become complete. Returns the number of discarded cells.
    pub(super) fn discard(&mut self, label: Label) -> u32 {
        let Some(frame) = &mut self.frames[label] else { return 0 };
        frame.runs.clear();
        let cells = std::mem::take(&mut frame.cells);
        self.cells -= cells;
        cells
    }
}
