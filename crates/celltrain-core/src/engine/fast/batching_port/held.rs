//! Frames that wait until they are whole, at a port where VCs merge.

use typed_index_collections::TiSlice;

use super::BatchingPort;
use crate::cell::Run;
use crate::index::Label;

/// The waiting cells of a VC's frame that is not yet whole.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    pub(super) runs: Vec<Run>,
    cells: u32,
}

impl BatchingPort {
    /// Makes VCs merge at this port, as [`Port::merging`](crate::port::Port::merging) does.
    #[must_use]
    pub fn merging(mut self, merging: &TiSlice<Label, bool>) -> Self {
        if merging.contains(&true) {
            self.admission.assert_may_merge();
            self.held = merging.iter().map(|&merges| merges.then(Held::default)).collect();
            self.apart = true;
        }
        self
    }

    /// Returns whether frames of some VC wait until they are whole.
    #[inline]
    pub fn merges(&self) -> bool {
        !self.held.is_empty()
    }

    /// Returns the number of waiting cells of a VC's frame that is not yet whole.
    pub fn held(&self, label: Label) -> u32 {
        self.held.get(label).and_then(Option::as_ref).map_or(0, |held| held.cells)
    }

    /// Returns the runs that the latest offer, to a port where VCs merge, made ready to be sent.
    pub fn released(&self) -> impl Iterator<Item = Run> {
        self.fifo.range(self.fifo.len() - self.released..).copied()
    }

    /// Puts cells of a port where VCs merge at the end of the queue, or with those of their frame that is not yet
    /// whole.
    pub(super) fn hold(&mut self, run: Run) {
        self.released = 0;
        let Some(held) = &mut self.held[run.last.label()] else {
            self.fifo.push_back(run);
            self.released = 1;
            return;
        };
        match held.runs.last_mut() {
            Some(before) if before.goes_on_with(run) => {
                *before = Run { last: run.last, cells: before.cells + run.cells }
            }
            _ => held.runs.push(run),
        }
        held.cells += run.cells;
        self.held_cells += run.cells;
        if run.last.last_cell() {
            self.held_cells -= std::mem::take(&mut held.cells);
            self.released = held.runs.len();
            self.fifo.extend(held.runs.drain(..));
        }
    }

    /// Returns whether a VC's frames wait until they are whole.
    #[inline]
    pub fn holds(&self, label: Label) -> bool {
        self.held.get(label).is_some_and(Option::is_some)
    }

    /// Discards the waiting cells of a frame that cannot become whole.
    pub(super) fn discard_held(&mut self, label: Label) {
        let Some(held) = &mut self.held[label] else { return };
        held.runs.clear();
        let cells = std::mem::take(&mut held.cells);
        self.held_cells -= cells;
        self.occupancy -= cells;
        self.tracker.fall(self.occupancy);
        self.admission.on_held_discarded(label, cells);
        if cells > 0 {
            self.counts.take(label, cells);
        }
    }
}
