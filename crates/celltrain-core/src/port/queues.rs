//! The queues of a port that is not first in, first out. They contain single cells, and a scheduler selects the next
//! cell.

use std::collections::VecDeque;

use typed_index_collections::TiVec;

use crate::cell::Cell;
use crate::index::Label;
use crate::scheduler::{AnyScheduler, Service, WaitingCells};

/// Single cells waiting in several queues.
pub struct CellQueues {
    /// Number of each VC's queue, by label of the VC.
    queue_of: TiVec<Label, usize>,
    waiting: WaitingCells,
    scheduler: Box<dyn AnyScheduler>,
}

impl CellQueues {
    /// Creates the queues of a scheduler, all empty.
    pub fn new(Service { queues, queue_of, scheduler }: Service) -> Self {
        let waiting = WaitingCells { queues: vec![VecDeque::new(); queues], sent: VecDeque::new() };
        Self { queue_of, waiting, scheduler }
    }

    /// Puts a cell at the end of its VC's queue.
    pub fn push(&mut self, cell: Cell) {
        let number = self.queue_of[cell.label()];
        self.waiting.queues[number].push_back(cell);
        if self.waiting.queues[number].len() == 1 {
            self.scheduler.on_backlog(number);
        }
    }

    /// Takes the next cell to send. At least one cell must be waiting.
    pub fn pop(&mut self) -> Cell {
        self.scheduler.serve_cells(1, &mut self.waiting);
        let cell = self.waiting.sent.pop_front().expect("a scheduler sends the requested number of cells");
        assert!(self.waiting.sent.is_empty(), "and no more");
        cell
    }

    /// Passes a cell of a VC through the empty queues. It is sent before another cell arrives.
    #[cfg(test)]
    pub(crate) fn serve_alone(&mut self, label: Label) {
        self.scheduler.serve_alone(self.queue_of[label], self.waiting.queues.len());
    }

    /// Returns the waiting cells, queue by queue.
    pub fn waiting(&self) -> impl Iterator<Item = Cell> {
        self.waiting.queues.iter().flatten().copied()
    }
}
