//! The cells that wait at a port of a memory.

use std::collections::VecDeque;

use crate::cell::{Cell, Run};
use crate::port::CellQueues;

/// Cells that wait at a port.
pub(super) enum Waiting {
    /// First in, first out.
    Fifo(VecDeque<Cell>),
    /// Whole packets, first in, first out. A packet is one run, unless its cells have different header bits.
    Packets(VecDeque<Run>),
    /// Cells leave in the order that a scheduler decides.
    Scheduled(Box<CellQueues>),
}
