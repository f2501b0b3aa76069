//! The cells that wait at a port of a memory.

use std::collections::VecDeque;

use crate::cell::Cell;
use crate::port::CellQueues;

/// Cells that wait at a port.
pub(super) enum Waiting {
    /// First in, first out.
    Fifo(VecDeque<Cell>),
    /// Cells leave in the order that a scheduler decides.
    Scheduled(Box<CellQueues>),
}
