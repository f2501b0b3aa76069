//! The cells that wait at a port of a memory.

use std::collections::VecDeque;

use typed_index_collections::TiVec;

use crate::cell::{Cell, Run};
use crate::coverage::reached;
use crate::engine::fast::pauses::{PauseCommand, StoppedPriorities};
use crate::index::Label;
use crate::port::CellQueues;
use crate::units::Time;

/// Cells that wait at a port.
pub(super) enum Waiting {
    /// First in, first out.
    Fifo(VecDeque<Cell>),
    /// First in, first out, but the next switch may stop priorities.
    Pausable(Box<PausableQueue>),
    /// Whole packets, first in, first out. A packet is one run, unless its cells have different header bits.
    Packets(VecDeque<Run>),
    /// Cells leave in the order that a scheduler decides.
    Scheduled(Box<CellQueues>),
}

impl Waiting {
    /// Returns the queue that holds all cells, for a memory that removes cells.
    pub(super) fn single_queue(&mut self) -> &mut VecDeque<Cell> {
        match self {
            Self::Fifo(cells) => cells,
            Self::Pausable(queue) => {
                queue.passed_over = 0;
                &mut queue.cells
            }
            Self::Packets(_) | Self::Scheduled(_) => {
                unreachable!("cells can be removed only if a single queue holds all cells")
            }
        }
    }

    pub(super) fn pausable_queue(&mut self) -> &mut PausableQueue {
        let Self::Pausable(queue) = self else { unreachable!("the next switch may pause the link") };
        queue
    }

    /// Records that a cell has entered the port at `now`.
    pub(super) fn on_enter(&mut self, cell: Cell, now: Time) {
        if let Self::Scheduled(queues) = self {
            queues.on_enter(cell, now);
        }
    }

    /// Returns the waiting cells in runs.
    pub(super) fn runs(&self) -> Box<dyn Iterator<Item = Run> + '_> {
        let single = |cell: Cell| Run { last: cell, cells: 1 };
        match self {
            Self::Fifo(cells) => Box::new(cells.iter().copied().map(single)),
            Self::Pausable(queue) => Box::new(queue.cells.iter().copied().map(single)),
            Self::Packets(runs) => Box::new(runs.iter().copied()),
            Self::Scheduled(queues) => Box::new(queues.waiting().map(single)),
        }
    }
}

/// The cells that wait at a port whose link may be paused.
pub(super) struct PausableQueue {
    cells: VecDeque<Cell>,
    /// Priority of each VC, by label.
    priorities: TiVec<Label, u8>,
    stopped: StoppedPriorities,
    /// Number of cells at the front that are known to be stopped.
    passed_over: usize,
}

impl PausableQueue {
    pub(super) fn new(priorities: TiVec<Label, u8>) -> Self {
        Self { cells: VecDeque::new(), priorities, stopped: StoppedPriorities::NONE, passed_over: 0 }
    }

    #[inline]
    pub(super) fn push(&mut self, cell: Cell) {
        self.cells.push_back(cell);
    }

    /// Takes the first cell whose priority is not stopped.
    #[inline]
    pub(super) fn take(&mut self) -> Option<Cell> {
        if self.stopped == StoppedPriorities::NONE { self.cells.pop_front() } else { self.take_unstopped() }
    }

    #[inline(never)]
    fn take_unstopped(&mut self) -> Option<Cell> {
        let may_go = |cell: &Cell| !self.stopped.contain(self.priorities[cell.label()]);
        let place = self.cells.range(self.passed_over..).position(may_go).map(|place| self.passed_over + place);
        reached!(PausedPortWaits if place.is_none() && !self.cells.is_empty());
        reached!(PausedPriorityOvertaken if place > Some(0));
        self.passed_over = place.unwrap_or(self.cells.len());
        self.cells.remove(place?)
    }

    /// Returns false if no cell can be sent.
    pub(super) fn may_be_ready(&self) -> bool {
        self.passed_over < self.cells.len()
    }

    /// Stops a priority at the port, or lets the priority continue.
    pub(super) fn obey(&mut self, priority: u8, command: PauseCommand) {
        self.stopped.obey(priority, command);
        self.passed_over = 0;
    }
}
