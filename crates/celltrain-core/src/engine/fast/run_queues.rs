//! Queues of runs of cells for a scheduler. They work like [`CellQueues`](crate::port::CellQueues), but process many
//! cells at once.

use std::collections::VecDeque;

use typed_index_collections::TiVec;

use crate::cell::{Cell, Run};
use crate::index::Label;
use crate::scheduler::waiting::{Counts, Queue, ReportGranularity, Sent, WaitingRuns};
use crate::scheduler::{AnyScheduler, BacklogSensitivity, Service};

/// Runs of cells waiting in several queues.
pub(super) struct RunQueues {
    /// Number of each VC's queue, by label of the VC.
    queue_of: TiVec<Label, usize>,
    all: Vec<Queue>,
    scheduler: Box<dyn AnyScheduler>,
    /// The cells sent by the latest service.
    sent: Vec<Sent>,
}

impl RunQueues {
    /// Creates the queues of a scheduler, all empty.
    pub(super) fn new(Service { queues, queue_of, scheduler }: Service) -> Self {
        let none = Run { last: Cell::NONE, cells: 0 };
        let queue = Queue { cells: 0, front: none, behind: VecDeque::new(), unreported: 0 };
        Self { queue_of, all: vec![queue; queues], scheduler, sent: Vec::new() }
    }

    /// Appends cells to their VC's queue.
    #[inline]
    pub(super) fn push(&mut self, run: Run) {
        let number = self.queue_of[run.last.label()];
        let queue = &mut self.all[number];
        queue.cells += run.cells;
        if queue.front.cells == 0 {
            queue.front = run;
            self.scheduler.on_backlog(number);
        } else if queue.behind.is_empty() && queue.front.goes_on_with(run) {
            queue.front = Run { last: run.last, cells: queue.front.cells + run.cells };
        } else {
            Run::append(&mut queue.behind, run);
        }
    }

    /// Passes a cell of a VC through the empty queues. It is sent before another cell arrives.
    pub(super) fn bypass_queue(&mut self, label: Label) {
        self.scheduler.serve_alone(self.queue_of[label], self.all.len());
    }

    /// Sends the next `cells` cells, subtracts them from the counts and reports them in order. At least `cells` cells
    /// must wait. With [`ReportGranularity::Each`], all earlier departures must have been reported.
    #[inline]
    pub(super) fn serve(
        &mut self,
        cells: u32,
        counts: &mut Counts,
        granularity: ReportGranularity,
        mut report: impl FnMut(Run, u32),
    ) {
        let Self { all: queues, scheduler, sent, .. } = self;
        scheduler.serve_runs(cells, &mut WaitingRuns { queues, counts, sent, granularity, number: 0 });
        for &Sent { run, after } in &*sent {
            report(run, after);
        }
        sent.clear();
    }

    /// Reports the sent cells of runs that still have waiting cells.
    pub(super) fn report_parts(&mut self, mut report: impl FnMut(Run)) {
        for Queue { front, unreported, .. } in self.all.iter_mut().filter(|queue| queue.unreported > 0) {
            report(Run { last: front.last.not_last(), cells: std::mem::take(unreported) });
        }
    }

    /// Returns how the scheduler depends on the order and time in which empty queues fill.
    pub(super) fn backlog_sensitivity(&self) -> BacklogSensitivity {
        self.scheduler.backlog_sensitivity()
    }

    /// Returns whether no two VCs share a queue.
    pub(super) fn one_a_vc(&self) -> bool {
        self.queue_of.iter().copied().eq(0..self.all.len())
    }

    /// Returns the number of cells waiting in the queue of a VC.
    pub(super) fn ahead(&self, label: Label) -> u32 {
        self.all[self.queue_of[label]].cells
    }

    /// Returns a lower bound on the number of cells to be sent until one ends a frame, including that cell. There must
    /// be waiting cells.
    pub(super) fn least_to_an_end(&self) -> u32 {
        if self.all.len() > FEW {
            return 1;
        }
        let waiting = self.all.iter().filter(|queue| queue.cells > 0);
        waiting.map(|queue| queue.front.cells).min().unwrap_or(1)
    }
}

/// With more queues, finding the shortest queue costs more than it saves.
const FEW: usize = 8;
