//! The queues of a port that is not first in, first out. They contain single cells, and a scheduler selects the next
//! cell.

use std::collections::VecDeque;

use typed_index_collections::TiVec;

use crate::cell::Cell;
use crate::index::Label;
use crate::scheduler::deficit_round_robin::{first_half, longest};
use crate::scheduler::{AnyScheduler, Service, WaitingCells};
use crate::units::Time;

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
        let (sent, used_turns) = Default::default();
        let waiting = WaitingCells { queues: vec![VecDeque::new(); queues], sent, used_turns };
        Self { queue_of, waiting, scheduler }
    }

    /// Makes queues send whole packets, which are pushed cell by cell and wait only when they are whole. The scheduler
    /// decides for each cell as before. The turn of a packet's first cell sends the whole packet, and the turns of its
    /// other cells are skipped.
    #[must_use]
    pub fn of_packets(mut self) -> Self {
        self.waiting.used_turns = vec![0; self.waiting.queues.len()];
        self
    }

    /// Puts a cell at the end of its VC's queue.
    pub fn push(&mut self, cell: Cell) {
        let number = self.queue_of[cell.label()];
        self.waiting.queues[number].push_back(cell);
        if self.waiting.turns(number) == 1 {
            self.scheduler.on_backlog(number);
        }
    }

    /// Takes the next cell to send. At least one cell must be waiting.
    pub fn pop(&mut self) -> Cell {
        while self.waiting.sent.is_empty() {
            self.scheduler.serve_cells(1, &mut self.waiting);
        }
        let cell = self.waiting.sent.pop_front().expect("a scheduler sends the requested number of cells");
        if self.waiting.used_turns.is_empty() {
            assert!(self.waiting.sent.is_empty(), "a scheduler sends no more cells than requested");
        } else if self.waiting.sent.is_empty() && self.waiting.queues.iter().all(VecDeque::is_empty) {
            // Nothing waits, so the turns that were used in advance pass before the next packet arrives.
            while self.waiting.used_turns.iter().any(|&used| used > 0) {
                self.scheduler.serve_cells(1, &mut self.waiting);
            }
        }
        cell
    }

    /// Records that a cell has entered the port at `now`.
    pub(crate) fn on_enter(&mut self, cell: Cell, now: Time) {
        self.scheduler.on_enter(cell, now);
    }

    /// Returns the number of cells left in the queue of a VC. Cells of packets that are not whole yet do not count.
    pub(crate) fn left(&self, label: Label) -> u32 {
        let left = self.waiting.queues[self.queue_of[label]].len() + self.waiting.sent.len();
        u32::try_from(left).expect("the size of a buffer in cells fits in 32 bits")
    }

    /// Records that the latest cell taken, of this VC, is dropped at the head of its queue instead.
    pub(crate) fn on_dropped(&mut self, label: Label) {
        self.scheduler.on_dropped(self.queue_of[label]);
    }

    /// Records that the link is free and no cell can be sent.
    pub(crate) fn on_idle(&mut self) {
        self.scheduler.on_idle();
    }

    /// Removes the first half of the frames of the longest queue, as [`first_half`] selects them. Returns their cells.
    pub(crate) fn push_out_longest(&mut self) -> Vec<Cell> {
        let queue = longest(self.waiting.queues.iter().map(VecDeque::len));
        let leaving = self.scheduler.leaving(queue);
        let Some(cells) = self.waiting.queues.get_mut(queue) else { return Vec::new() };
        let frames = first_half(cells.iter().copied(), leaving);
        let goes = |cell: &Cell| !cell.is_rm() && frames.contains(&cell.frame);
        let removed = cells.iter().copied().filter(goes).collect();
        cells.retain(|cell| !goes(cell));
        removed
    }

    /// Sends a cell of a VC at once. All queues must be empty, and no cell may arrive before it is sent.
    #[cfg(test)]
    pub(crate) fn serve_alone(&mut self, label: Label) {
        self.scheduler.serve_alone(self.queue_of[label], self.waiting.queues.len());
    }

    /// Returns the waiting cells, queue by queue.
    pub fn waiting(&self) -> impl Iterator<Item = Cell> {
        self.waiting.sent.iter().chain(self.waiting.queues.iter().flatten()).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::tests::cell;
    use crate::scheduler::{SchedulerConfig, VcKind, round_robin};

    /// Pushes a packet of this many cells.
    fn push(queues: &mut CellQueues, label: u32, packet: u32, cells: u32) {
        (1..=cells).for_each(|number| queues.push(cell(label, packet, number == cells)));
    }

    #[test]
    fn round_robin_sends_whole_packets_and_gives_long_and_short_packets_equal_shares() {
        let vcs = ["long", "short"].map(|name| VcKind { name, class: crate::scheduler::Class::Ubr });
        let service = SchedulerConfig::from(round_robin::Config {}).build(&vcs).expect("there are two queues");
        let mut queues = CellQueues::new(service).of_packets();
        (0..4).for_each(|packet| push(&mut queues, 0, packet, 3));
        (0..12).for_each(|packet| push(&mut queues, 1, packet, 1));
        let labels: Vec<u32> = (0..24).map(|_| queues.pop().label().number()).collect();
        assert_eq!(labels, [0, 0, 0, 1, 1, 1].repeat(4));
        // Nothing waits, so no VC has used turns in advance.
        push(&mut queues, 1, 12, 2);
        push(&mut queues, 0, 4, 2);
        let labels: Vec<u32> = (0..4).map(|_| queues.pop().label().number()).collect();
        assert_eq!(labels, [1, 1, 0, 0]);
    }
}
