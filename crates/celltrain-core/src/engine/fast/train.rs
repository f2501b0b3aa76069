//! Cells in flight: alone, or as a train of cells of one frame that arrive a period apart.

use crate::cell::{Cell, Run};
use crate::index::Label;
use crate::units::{Span, Time};

/// A cell on its way to a port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arriving {
    pub(super) time: Time,
    /// The cell, under its label at the port.
    pub(super) cell: Cell,
}

/// Cells of one frame that arrive a period apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Train {
    /// Arrival of the next cell.
    pub(super) next: Time,
    /// Time from one cell to the next.
    pub(super) period: Span,
    /// Cells still to come.
    pub(super) cells: u32,
    /// True if the last of them is the last of the frame.
    pub(super) ends_frame: bool,
    /// A cell that is not the last, under its label at this port.
    pub(super) cell: Cell,
}

impl Train {
    /// Creates a train of the cells of a run under a new label, the first arriving at `next`.
    #[inline]
    pub(super) fn of(Run { last, cells }: Run, next: Time, period: Span, label: Label) -> Self {
        Self { next, period, cells, ends_frame: last.last_cell(), cell: last.not_last().relabelled(label) }
    }

    #[inline]
    pub(super) fn last(&self) -> Time {
        self.next + self.period * u64::from(self.cells - 1)
    }

    /// Returns how many cells arrive before `until`, at least one.
    #[inline]
    pub(super) fn cells_before(&self, until: Time) -> u32 {
        if self.last() < until {
            self.cells
        } else if self.next + self.period >= until {
            1
        } else {
            let in_time = (until - self.next).0.div_ceil(self.period.0);
            u32::try_from(in_time).expect("no more than all")
        }
    }

    /// Takes the cells that arrive before `until`, at least one.
    #[inline]
    pub(super) fn take_before(&mut self, until: Time) -> Run {
        self.take(self.cells_before(until))
    }

    /// Takes the first `cells`.
    #[inline]
    pub(super) fn take(&mut self, cells: u32) -> Run {
        self.cells -= cells;
        self.next += self.period * u64::from(cells);
        let ends_frame = self.cells == 0 && self.ends_frame;
        Run { last: if ends_frame { self.cell.ending_frame() } else { self.cell }, cells }
    }

    /// Returns all its cells.
    pub(super) fn run(&self) -> Run {
        Run { last: if self.ends_frame { self.cell.ending_frame() } else { self.cell }, cells: self.cells }
    }

    /// No train.
    pub(super) const NONE: Train =
        Train { next: Time(0), period: Span(0), cells: 0, ends_frame: false, cell: Cell::NONE };

    /// Appends `later` if it continues this train at the same period. Returns whether it was appended.
    #[inline]
    pub(super) fn absorbs(&mut self, later: &Train) -> bool {
        let goes_on = self.goes_on_with(later);
        if goes_on {
            self.cells += later.cells;
            self.ends_frame = later.ends_frame;
        }
        goes_on
    }

    /// Gives back its last `cells` cells, or all. Returns how many.
    pub(super) fn give_back(&mut self, cells: u32) -> u32 {
        let back = cells.min(self.cells);
        self.cells -= back;
        self.ends_frame = false;
        back
    }

    /// Returns whether a later train of the same frame continues this one in step.
    #[inline]
    fn goes_on_with(&self, later: &Train) -> bool {
        // RM cells have numbers of their own, so no two are equal.
        self.cell == later.cell && self.period == later.period && self.last() + self.period == later.next
    }
}
