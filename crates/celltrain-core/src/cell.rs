//! The cell as the engines move it: eight bytes.
//!
//! What a frame means is stored once a frame, where it was sent ([`crate::aal5::FrameLog`]); a cell carries its VC's
//! label on the link it is on, the number of its frame within the VC, and the header bits that switches and end systems
//! act on.

use std::collections::VecDeque;

use crate::index::Label;

/// One ATM cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The label in the low 24 bits, the header bits above.
    label_and_bits: u32,
    /// Number of the frame this cell belongs to, counted within its VC.
    pub frame: FrameNumber,
}

/// The number of a frame within its VC, or of a resource management cell among those of its VC. Where a log's numbers
/// have fewer bits than 32 ([`crate::aal5::FrameLog`]), they begin anew after the last, and the bits above tell the
/// branch of a merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameNumber(u32);

impl FrameNumber {
    /// Bits of a number where VCs merge; those above tell the branch.
    pub const BITS_WHERE_VCS_MERGE: u32 = 24;

    /// This number.
    #[inline]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// It as a plain number.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The number so many frames later, where numbers have the bits of this mask.
    #[inline]
    #[must_use]
    pub const fn later(self, frames: u32, mask: u32) -> Self {
        Self(self.0.wrapping_add(frames) & mask)
    }

    /// How many frames it is later than another, where numbers have the bits of this mask.
    #[inline]
    pub const fn since(self, earlier: FrameNumber, mask: u32) -> u32 {
        self.0.wrapping_sub(earlier.0) & mask
    }

    /// This number of the frame of a branch, which has the bits above.
    #[inline]
    #[must_use]
    pub const fn on_branch(self, branch: u8) -> Self {
        Self(self.0 | (branch as u32) << Self::BITS_WHERE_VCS_MERGE)
    }

    /// The number without the branch it tells.
    #[inline]
    pub const fn within_branch(self) -> u32 {
        self.0 & ((1 << Self::BITS_WHERE_VCS_MERGE) - 1)
    }

    /// The branch it tells.
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

impl Cell {
    /// The most VCs one link can carry.
    pub const MAX_LABELS: u32 = LABEL_MASK + 1;
    /// Stands where there is none.
    pub const NONE: Self = Self::new(Label::new(0), FrameNumber::new(0), false);

    /// A cell of frame `frame` on the VC labelled `label`.
    #[inline]
    pub const fn new(label: Label, frame: FrameNumber, last_cell: bool) -> Self {
        debug_assert!(label.number() < Self::MAX_LABELS, "a label fits 24 bits");
        Self { label_and_bits: label.number() | if last_cell { LAST_CELL } else { 0 }, frame }
    }

    /// The VC's label on the link this cell is on.
    #[inline]
    pub fn label(self) -> Label {
        Label::new(self.label_and_bits & LABEL_MASK)
    }

    /// Whether this is the last cell of its frame (PTI user bit; it carries the AAL5 trailer).
    #[inline]
    pub fn last_cell(self) -> bool {
        self.label_and_bits & LAST_CELL != 0
    }

    /// Whether it may be discarded before others (CLP = 1).
    #[inline]
    pub fn tagged(self) -> bool {
        self.label_and_bits & TAGGED != 0
    }

    /// The same cell, tagged or not.
    #[inline]
    #[must_use]
    pub fn with_tag(self, tagged: bool) -> Self {
        Self { label_and_bits: self.label_and_bits & !TAGGED | if tagged { TAGGED } else { 0 }, ..self }
    }

    /// A resource management cell (PTI 110), the `number`th its VC's source has sent.
    #[inline]
    pub fn rm(label: Label, number: FrameNumber) -> Self {
        debug_assert!(label.number() < Self::MAX_LABELS, "a label fits 24 bits");
        Self { label_and_bits: label.number() | RM, frame: number }
    }

    /// Whether it is a resource management cell; its number then stands for that of a frame.
    #[inline]
    pub fn is_rm(self) -> bool {
        self.label_and_bits & RM != 0
    }

    /// Whether a switch has marked it (EFCI, the congestion bit of PTI).
    #[inline]
    pub fn efci(self) -> bool {
        self.label_and_bits & CONGESTED != 0
    }

    /// The same cell, marked or not.
    #[inline]
    #[must_use]
    pub fn with_efci(self, marked: bool) -> Self {
        Self { label_and_bits: self.label_and_bits & !CONGESTED | if marked { CONGESTED } else { 0 }, ..self }
    }

    /// A cell of the same frame that is not its last.
    #[inline]
    #[must_use]
    pub fn not_last(self) -> Self {
        Self { label_and_bits: self.label_and_bits & !LAST_CELL, ..self }
    }

    /// The last cell of the same frame.
    #[inline]
    #[must_use]
    pub fn ending_frame(self) -> Self {
        Self { label_and_bits: self.label_and_bits | LAST_CELL, ..self }
    }

    /// The same cell under the label of the next link.
    #[inline]
    #[must_use]
    pub fn relabelled(self, label: Label) -> Self {
        Self { label_and_bits: self.label_and_bits & !LABEL_MASK | label.number(), ..self }
    }
}

/// Consecutive cells of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The last of them; those before it differ from it in not being the last of the frame.
    pub last: Cell,
    /// How many they are, at least one.
    pub cells: u32,
}

impl Run {
    /// The first of them, and those behind it if there are any.
    #[inline]
    pub fn split_first(self) -> (Cell, Option<Run>) {
        if self.cells == 1 {
            return (self.last, None);
        }
        (self.last.not_last(), Some(Run { cells: self.cells - 1, ..self }))
    }

    /// The first `cells` of them, fewer than all.
    #[inline]
    #[must_use]
    pub fn first(self, cells: u32) -> Run {
        debug_assert!(0 < cells && cells < self.cells, "a part of a run is smaller than the run");
        Run { last: self.last.not_last(), cells }
    }

    /// Its first cells, or all if there are no more than that; nothing of none.
    pub fn at_most(self, cells: u32) -> Option<Run> {
        match cells {
            0 => None,
            cells if cells < self.cells => Some(self.first(cells)),
            _ => Some(self),
        }
    }

    /// Whether cells are the next of the same frame.
    #[inline]
    pub fn goes_on_with(self, next: Run) -> bool {
        self.last == next.last.not_last()
    }

    /// Puts these cells at the end of a queue, with the run before them where they go on with it.
    #[inline]
    pub fn append(queue: &mut VecDeque<Run>, run: Run) {
        match queue.back_mut() {
            Some(back) if back.goes_on_with(run) => {
                *back = Run { last: run.last, cells: back.cells + run.cells };
            }
            _ => queue.push_back(run),
        }
    }

    /// Takes the first cells of a queue: `most`, or those of the first run if they are fewer.
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

    /// Its cells one by one.
    pub fn iter(self) -> impl Iterator<Item = Cell> {
        (1..=self.cells).map(move |i| if i == self.cells { self.last } else { self.last.not_last() })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A cell of these numbers.
    pub(crate) const fn cell(label: u32, frame: u32, last_cell: bool) -> Cell {
        Cell::new(Label::new(label), FrameNumber::new(frame), last_cell)
    }

    #[test]
    fn only_the_last_cell_of_a_run_may_end_the_frame() {
        let run = Run { last: cell(3, 77, true), cells: 3 };
        let ends: Vec<bool> = run.iter().map(Cell::last_cell).collect();
        assert_eq!(ends, [false, false, true]);
        let (first, rest) = run.split_first();
        assert_eq!((first, rest), (cell(3, 77, false), Some(Run { cells: 2, ..run })));
        assert!(!run.first(2).last.last_cell());
        assert_eq!(Run { cells: 1, ..run }.split_first(), (run.last, None));
    }

    #[test]
    fn a_cell_is_eight_bytes() {
        assert_eq!(size_of::<Cell>(), 8);
    }

    #[test]
    fn relabelling_keeps_the_frame_and_its_end() {
        let tagged = cell(3, 77, true).with_tag(true).relabelled(Label::new(Cell::MAX_LABELS - 1));
        assert_eq!(
            (tagged.label().number(), tagged.frame.number(), tagged.last_cell()),
            (Cell::MAX_LABELS - 1, 77, true)
        );
        assert!(tagged.tagged() && tagged.not_last().tagged() && !tagged.with_tag(false).tagged());
        assert!(!cell(3, 77, false).last_cell());
    }
}
