//! The representation of a cell in the engines. It takes eight bytes.
//!
//! The content of a frame is stored once, at its sender ([`crate::aal5::FrameLog`]). A cell carries its VC's label on
//! the current link, the number of its frame within the VC, and the header bits used by switches and end systems.

use std::collections::VecDeque;

use crate::index::{Label, indices};

/// One ATM cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// The label in the low 24 bits, with header bits above it.
    label_and_bits: u32,
    /// Number of the frame this cell belongs to, counted within its VC.
    pub frame: FrameNumber,
}

indices! {
    /// The number of a frame within its VC, or of a resource management (RM) cell among the VC's RM cells. If a log
    /// ([`crate::aal5::FrameLog`]) uses fewer than 32 bits, the number wraps around and the higher bits identify the
    /// branch of a merge.
    FrameNumber;
}

impl FrameNumber {
    /// Number of bits of a frame number if VCs merge. The higher bits identify the branch.
    pub const BITS_WHERE_VCS_MERGE: u32 = 24;

    /// Returns the frame number `frames` later, wrapped to the bits of `mask`.
    #[inline]
    #[must_use]
    pub const fn later(self, frames: u32, mask: u32) -> Self {
        Self(self.0.wrapping_add(frames) & mask)
    }

    /// Returns the distance from the frame number `earlier` to this one, wrapped to the bits of `mask`.
    #[inline]
    pub const fn since(self, earlier: FrameNumber, mask: u32) -> u32 {
        self.0.wrapping_sub(earlier.0) & mask
    }

    /// Returns this frame number, with the number of the branch in the higher bits.
    #[inline]
    #[must_use]
    pub const fn on_branch(self, branch: u8) -> Self {
        Self(self.0 | (branch as u32) << Self::BITS_WHERE_VCS_MERGE)
    }

    /// Returns the frame number without the number of the branch.
    #[inline]
    pub const fn within_branch(self) -> u32 {
        self.0 & ((1 << Self::BITS_WHERE_VCS_MERGE) - 1)
    }

    /// Returns the branch.
    #[inline]
    pub const fn branch(self) -> u8 {
        self.0.to_be_bytes()[0]
    }
}

const LABEL_MASK: u32 = 0x00ff_ffff;
const LAST_CELL: u32 = 1 << 24;
const TAGGED: u32 = 1 << 25;
const CONGESTED: u32 = 1 << 26;
const RM: u32 = 1 << 27;
const NOT_CAPABLE: u32 = 1 << 28;

/// A set of header bits that selects cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellBits(u32);

impl CellBits {
    /// Selects RM cells.
    pub const RM: Self = Self(RM);
    /// Selects RM cells and last cells of frames.
    pub const RM_OR_LAST: Self = Self(RM | LAST_CELL);
}

impl Cell {
    /// Largest number of VCs on one link.
    pub const MAX_LABELS: u32 = LABEL_MASK + 1;
    /// Placeholder value for a missing cell.
    pub const NONE: Self = Self::new(Label::new(0), FrameNumber::new(0), false);

    /// Creates a cell of frame `frame` on the VC labelled `label`.
    #[inline]
    pub const fn new(label: Label, frame: FrameNumber, last_cell: bool) -> Self {
        debug_assert!(label.number() < Self::MAX_LABELS, "a label fits in 24 bits");
        Self { label_and_bits: label.number() | if last_cell { LAST_CELL } else { 0 }, frame }
    }

    /// Returns the VC's label on the link this cell is on.
    #[inline]
    pub fn label(self) -> Label {
        Label::new(self.label_and_bits & LABEL_MASK)
    }

    /// Returns whether this is the last cell of its frame, which carries the AAL5 trailer (PTI user bit).
    #[inline]
    pub fn last_cell(self) -> bool {
        self.label_and_bits & LAST_CELL != 0
    }

    /// Returns whether the cell is tagged (CLP = 1), so that switches may discard it before untagged cells.
    #[inline]
    pub fn tagged(self) -> bool {
        self.label_and_bits & TAGGED != 0
    }

    /// Returns the same cell, tagged if `tagged`.
    #[inline]
    #[must_use]
    pub fn with_tag(self, tagged: bool) -> Self {
        Self { label_and_bits: self.label_and_bits & !TAGGED | if tagged { TAGGED } else { 0 }, ..self }
    }

    /// Returns whether the cell's frame is ECN-capable. Ports mark ECN-capable packets instead of dropping them.
    #[inline]
    pub fn capable(self) -> bool {
        self.label_and_bits & NOT_CAPABLE == 0
    }

    /// Returns the same cell, ECN-capable if `capable`.
    #[inline]
    #[must_use]
    pub fn with_capable(self, capable: bool) -> Self {
        Self { label_and_bits: self.label_and_bits & !NOT_CAPABLE | if capable { 0 } else { NOT_CAPABLE }, ..self }
    }

    /// Creates a resource management cell (PTI 110), the `number`th sent by its VC's source.
    #[inline]
    pub fn rm(label: Label, number: FrameNumber) -> Self {
        debug_assert!(label.number() < Self::MAX_LABELS, "a label fits in 24 bits");
        Self { label_and_bits: label.number() | RM, frame: number }
    }

    /// Returns whether the cell is a resource management cell. In that case `frame` is the RM cell's number.
    #[inline]
    pub fn is_rm(self) -> bool {
        self.label_and_bits & RM != 0
    }

    /// Returns whether the cell has any of the header bits in `bits`.
    #[inline]
    pub fn is_selected(self, bits: CellBits) -> bool {
        self.label_and_bits & bits.0 != 0
    }

    /// Returns whether a switch has marked the cell (EFCI, the congestion bit of PTI).
    #[inline]
    pub fn efci(self) -> bool {
        self.label_and_bits & CONGESTED != 0
    }

    /// Returns the same cell, marked if `marked`.
    #[inline]
    #[must_use]
    pub fn with_efci(self, marked: bool) -> Self {
        Self { label_and_bits: self.label_and_bits & !CONGESTED | if marked { CONGESTED } else { 0 }, ..self }
    }

    /// Returns a cell of the same frame that is not the last cell.
    #[inline]
    #[must_use]
    pub fn not_last(self) -> Self {
        Self { label_and_bits: self.label_and_bits & !LAST_CELL, ..self }
    }

    /// Returns the last cell of the same frame.
    #[inline]
    #[must_use]
    pub fn ending_frame(self) -> Self {
        Self { label_and_bits: self.label_and_bits | LAST_CELL, ..self }
    }

    /// Returns the same cell with the label of the next link.
    #[inline]
    #[must_use]
    pub fn relabelled(self, label: Label) -> Self {
        Self { label_and_bits: self.label_and_bits & !LABEL_MASK | label.number(), ..self }
    }
}

/// Consecutive cells of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The last cell of the run. The other cells are equal, except that they never end a frame.
    pub last: Cell,
    /// Number of cells in the run, at least one.
    pub cells: u32,
}

impl Run {
    /// Returns the first `cells` cells of the run, which must contain more.
    #[inline]
    #[must_use]
    pub fn first(self, cells: u32) -> Run {
        debug_assert!(0 < cells && cells < self.cells, "a part of a run is smaller than the run");
        Run { last: self.last.not_last(), cells }
    }

    /// Returns the first `cells` cells, or all of them if the run has no more; `None` if `cells` is 0.
    pub fn at_most(self, cells: u32) -> Option<Run> {
        match cells {
            0 => None,
            cells if cells < self.cells => Some(self.first(cells)),
            _ => Some(self),
        }
    }

    /// Returns whether `next` continues this run with cells of the same frame.
    #[inline]
    pub fn goes_on_with(self, next: Run) -> bool {
        self.last == next.last.not_last()
    }

    /// Appends a run of cells to a queue, and merges it with the queue's last run if possible.
    #[inline]
    pub fn append(queue: &mut VecDeque<Run>, run: Run) {
        match queue.back_mut() {
            Some(back) if back.goes_on_with(run) => {
                *back = Run { last: run.last, cells: back.cells + run.cells };
            }
            _ => queue.push_back(run),
        }
    }

    /// Removes up to `most` cells from the first run in a queue.
    #[inline]
    pub fn take_first_cells(queue: &mut VecDeque<Run>, most: u32) -> Option<Run> {
        let run = queue.front_mut()?;
        if run.cells <= most {
            return queue.pop_front();
        }
        let first = run.first(most);
        run.cells -= most;
        Some(first)
    }

    /// Returns an iterator over the cells of the run.
    pub fn iter(self) -> impl Iterator<Item = Cell> {
        (1..=self.cells).map(move |i| if i == self.cells { self.last } else { self.last.not_last() })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const fn cell(label: u32, frame: u32, last_cell: bool) -> Cell {
        Cell::new(Label::new(label), FrameNumber::new(frame), last_cell)
    }

    #[test]
    fn within_a_run_of_cells_only_the_last_cell_may_be_the_end_of_a_frame() {
        let run = Run { last: cell(3, 77, true), cells: 3 };
        let ends: Vec<bool> = run.iter().map(Cell::last_cell).collect();
        assert_eq!(ends, [false, false, true]);
        assert_eq!(run.first(2), Run { last: cell(3, 77, false), cells: 2 });
    }

    #[test]
    fn a_cell_occupies_eight_bytes_of_memory() {
        assert_eq!(size_of::<Cell>(), 8);
    }

    #[test]
    fn changing_the_vc_label_of_a_cell_keeps_its_frame_number_and_its_end_mark() {
        let tagged = cell(3, 77, true).with_tag(true).relabelled(Label::new(Cell::MAX_LABELS - 1));
        assert_eq!(
            (tagged.label().number(), tagged.frame.number(), tagged.last_cell()),
            (Cell::MAX_LABELS - 1, 77, true)
        );
        assert!(tagged.tagged() && tagged.not_last().tagged() && !tagged.with_tag(false).tagged());
        assert!(!cell(3, 77, false).last_cell());
    }
}
