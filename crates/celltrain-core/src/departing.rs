//! A departing cell, as rules and measurements of delays see it.

use crate::cell::Cell;
use crate::units::Span;

/// A cell whose transmission starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departing {
    pub(crate) cell: Cell,
    /// Number of remaining cells, which the rule compares with its limits.
    pub(crate) left: u32,
    /// Time since the first cell of the frame entered the port. For a cell that ends its frame, the time since this cell
    /// entered. 0 for RM cells, which belong to no frame.
    pub(crate) waited: Span,
}
