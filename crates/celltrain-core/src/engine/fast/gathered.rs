//! Cells of frames under way to their hosts whose departure is known and has no effect: only a whole frame has one.

use typed_index_collections::{TiVec, ti_vec};

use crate::cell::{Cell, Run};
use crate::index::Label;
use crate::sizes::size;

/// By label: the cells gathered of its frame, if there are any.
pub(super) struct Gathered(TiVec<Label, Run>);

/// Memory of a VC.
pub(super) const BYTES_PER_VC: u64 = size::<Run>();

const NOTHING: Run = Run { last: Cell::NONE, cells: 0 };

impl Gathered {
    /// None of so many VCs.
    pub(super) fn new(vcs: usize) -> Self {
        Self(ti_vec![NOTHING; vcs])
    }

    pub(super) fn labels(&self) -> impl Iterator<Item = Label> + use<> {
        self.0.keys()
    }

    /// Adds cells. Those of another frame, if there were some, are handed back.
    #[inline]
    pub(super) fn add(&mut self, run: Run) -> Option<Run> {
        let gathered = &mut self.0[run.last.label()];
        if gathered.cells > 0 && gathered.goes_on_with(run) {
            gathered.cells += run.cells;
            return None;
        }
        Some(std::mem::replace(gathered, run)).filter(|before| before.cells > 0)
    }

    /// What was gathered of a VC.
    #[inline]
    pub(super) fn take(&mut self, label: Label) -> Option<Run> {
        Some(std::mem::replace(&mut self.0[label], NOTHING)).filter(|run| run.cells > 0)
    }

    /// How many cells were gathered of the frame that goes on with this run; they are taken.
    #[inline]
    pub(super) fn take_before(&mut self, run: Run) -> u32 {
        let gathered = &mut self.0[run.last.label()];
        if gathered.goes_on_with(run) { std::mem::replace(gathered, NOTHING).cells } else { 0 }
    }
}
