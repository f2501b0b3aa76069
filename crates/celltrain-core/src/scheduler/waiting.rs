//! The cells that wait at a port in several queues, stored as single cells or as runs, for schedulers.

use std::collections::VecDeque;
use std::ops::Range;

use typed_index_collections::{TiVec, ti_vec};

use super::Waiting;
use crate::cell::{Cell, Run};
use crate::index::Label;

/// Single cells waiting in several queues, for the port of the reference engine.
pub struct WaitingCells {
    pub(crate) queues: Vec<VecDeque<Cell>>,
    /// Cells sent but not yet retrieved, in order.
    pub(crate) sent: VecDeque<Cell>,
    /// For each queue, turns that its latest packet has used in advance; empty if queues send single cells.
    pub(crate) used_turns: Vec<u32>,
}

impl WaitingCells {
    /// Returns the number of cells for which a queue still has turns: the waiting cells and the turns used in advance.
    pub(crate) fn turns(&self, queue: usize) -> usize {
        self.queues[queue].len() + self.used_turns.get(queue).map_or(0, |&used| used as usize)
    }
}

impl Waiting for WaitingCells {
    fn queues(&self) -> Range<usize> {
        0..self.queues.len()
    }

    fn cells(&self, queue: usize) -> u32 {
        u32::try_from(self.turns(queue)).expect("the size of a buffer in cells fits in 32 bits")
    }

    fn next_cell(&self, queue: usize) -> Option<Cell> {
        let is_used = self.used_turns.get(queue).is_some_and(|&used| used > 0);
        self.queues[queue].front().copied().filter(|cell| !is_used && !cell.is_rm())
    }

    /// With whole packets, the turn of a packet's first cell sends the packet, and the turns of its other cells send
    /// nothing.
    fn send_one(&mut self, queue: usize) -> bool {
        match self.used_turns.get_mut(queue) {
            Some(used) if *used > 0 => *used -= 1,
            whole => {
                let cells = &mut self.queues[queue];
                let last = whole.as_ref().and_then(|_| cells.iter().position(|cell| cell.last_cell())).unwrap_or(0);
                assert!(last < cells.len(), "a scheduler chooses a queue with a cell");
                self.sent.extend(cells.drain(..=last));
                if let Some(used) = whole {
                    *used = u32::try_from(last).expect("the number of cells in a packet fits in 32 bits");
                }
            }
        }
        self.turns(queue) > 0
    }
}

/// The only waiting cell of a port.
pub(super) struct WaitingCell {
    /// Queue of the cell, until the cell is sent.
    pub(super) queue: Option<usize>,
    pub(super) queues: usize,
}

impl Waiting for WaitingCell {
    #[inline]
    fn queues(&self) -> Range<usize> {
        0..self.queues
    }

    #[inline]
    fn cells(&self, queue: usize) -> u32 {
        u32::from(self.queue == Some(queue))
    }

    fn next_cell(&self, _: usize) -> Option<Cell> {
        None
    }

    #[inline]
    fn send_one(&mut self, queue: usize) -> bool {
        debug_assert_eq!(self.queue, Some(queue), "a scheduler chooses a queue with a cell");
        self.queue = None;
        false
    }
}

/// The cells of a class or of a VC, first in, first out.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) cells: u32,
    /// Cells of the frame at the front; an empty run if the queue is empty.
    pub(crate) front: Run,
    pub(crate) behind: VecDeque<Run>,
    /// Cells of the first run that were sent but not reported yet.
    pub(crate) unreported: u32,
}

/// Cells of one frame that were sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) run: Run,
    /// Number of cells that the same call to `serve` sent earlier: before the first of these cells with
    /// [`ReportGranularity::Each`], otherwise before the last of them.
    pub(crate) after: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportGranularity {
    /// Runs of consecutive cells, each with the number of cells sent before the run.
    Each,
    /// Runs of cells that waited together. Each run is reported after its last cell has left, with the number of cells
    /// sent before that cell. Cells of other queues may leave between cells of a run.
    Runs,
}

/// Runs of cells waiting in several queues, for the port of the fast engine.
pub struct WaitingRuns<'a> {
    pub(crate) queues: &'a mut [Queue],
    pub(crate) counts: &'a mut Counts,
    pub(crate) sent: &'a mut Vec<Sent>,
    pub(crate) granularity: ReportGranularity,
    /// Number of cells sent so far in this call of `serve`.
    pub(crate) number: u32,
}

impl Waiting for WaitingRuns<'_> {
    #[inline]
    fn queues(&self) -> Range<usize> {
        0..self.queues.len()
    }

    #[inline]
    fn cells(&self, queue: usize) -> u32 {
        self.queues[queue].cells
    }

    fn next_cell(&self, queue: usize) -> Option<Cell> {
        let next = self.queues[queue].front.last;
        (!next.is_rm()).then_some(next)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the scheduler's loop calls this function once per cell")]
    fn send(&mut self, queue: usize, most: u32) -> u32 {
        let Queue { cells, front, unreported, .. } = &mut self.queues[queue];
        let sent = most.min(front.cells);
        *cells -= sent;
        front.cells -= sent;
        *unreported += sent;
        self.counts.take(front.last.label(), sent);
        self.number += sent;
        if front.cells == 0 || self.granularity == ReportGranularity::Each {
            self.report_departures(queue);
        }
        sent
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the scheduler's loop calls this function once per cell")]
    fn send_one(&mut self, queue: usize) -> bool {
        let Queue { cells, front, unreported, .. } = &mut self.queues[queue];
        *cells -= 1;
        front.cells -= 1;
        *unreported += 1;
        let others_wait = *cells > 0;
        self.counts.take(front.last.label(), 1);
        self.number += 1;
        if front.cells == 0 || self.granularity == ReportGranularity::Each {
            self.report_departures(queue);
        }
        others_wait
    }
}

impl WaitingRuns<'_> {
    /// Records departures from the first run, and moves to the next run when it is finished.
    #[inline(never)]
    fn report_departures(&mut self, queue: usize) {
        let Queue { front, behind, unreported, .. } = &mut self.queues[queue];
        let cells = std::mem::take(unreported);
        let after = self.number - if self.granularity == ReportGranularity::Each { cells } else { 1 };
        let is_rest = front.cells == 0;
        let last = if is_rest { front.last } else { front.last.not_last() };
        self.sent.push(Sent { run: Run { last, cells }, after });
        if is_rest && let Some(next) = behind.pop_front() {
            *front = next;
        }
    }
}

/// Waiting cells by VC.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    pub(crate) per_vc: TiVec<Label, u32>,
    /// Number of VCs with waiting cells.
    pub(crate) active_vcs: u32,
}

impl Counts {
    pub(crate) fn new(vcs: usize) -> Self {
        Self { per_vc: ti_vec![0; vcs], active_vcs: 0 }
    }

    #[inline]
    pub(crate) fn put(&mut self, label: Label, cells: u32) {
        let count = &mut self.per_vc[label];
        self.active_vcs += u32::from(*count == 0);
        *count += cells;
    }

    #[inline]
    pub(crate) fn take(&mut self, label: Label, cells: u32) {
        let count = &mut self.per_vc[label];
        *count -= cells;
        self.active_vcs -= u32::from(*count == 0);
    }
}
