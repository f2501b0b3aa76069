//! Queues of runs of cells, and what a scheduler sent of them: [`CellQueues`](crate::port::CellQueues) for many cells
//! at once.

use std::collections::VecDeque;
use std::ops::Range;

use typed_index_collections::TiVec;

use super::batching_port::Counts;
use crate::cell::{Cell, Run};
use crate::footprint::size;
use crate::index::Label;
use crate::scheduler::{AnyScheduler, BacklogSensitivity, Service, Waiting};

/// Runs of cells that wait in several queues.
pub struct RunQueues {
    /// By label.
    queue_of: TiVec<Label, usize>,
    all: Vec<Queue>,
    scheduler: Box<dyn AnyScheduler>,
    /// What the latest service sent.
    sent: Vec<Sent>,
}

/// The cells of a class or of a VC, first in, first out.
#[derive(Clone, Debug)]
struct Queue {
    /// Cells waiting.
    cells: u32,
    /// Those of one frame that go first; none when the queue is empty.
    front: Run,
    behind: VecDeque<Run>,
    /// Cells of the first run that were sent and not yet reported.
    unreported: u32,
}

/// Memory of the queues of a port and of the scheduler that chooses among them, with a list of what was sent.
pub(crate) const BYTES: u64 = size::<RunQueues>() + 2 * 64 + 8 * size::<Sent>();
/// Memory of a queue, its label and its place in its scheduler's turns.
pub(crate) const BYTES_PER_QUEUE: u64 = size::<Queue>() + 8 + 48;

/// Cells of one frame that were sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    run: Run,
    /// Of the cells of the same service, how many went before the first of these, where each is reported; otherwise
    /// before the last.
    after: u32,
}

/// How finely departures are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportGranularity {
    /// Runs of cells that go one after the other: how many cells went before the first.
    Each,
    /// What waits together may go with other queues' cells in between, and is reported when the last of it has gone:
    /// how many cells went before that one.
    Runs,
}

/// What waits at a port, as its scheduler serves it.
pub struct WaitingRuns<'a> {
    queues: &'a mut [Queue],
    counts: &'a mut Counts,
    sent: &'a mut Vec<Sent>,
    granularity: ReportGranularity,
    /// Cells sent in this service.
    number: u32,
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

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a cell in the scheduler's loop")]
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
    #[expect(clippy::inline_always, reason = "once a cell in the scheduler's loop")]
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
    /// Notes what was sent of the run in front, and turns to the next one if that was all.
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

impl RunQueues {
    /// Those that a scheduler asks for, none with a cell.
    pub fn new(Service { queues, queue_of, scheduler }: Service) -> Self {
        let none = Run { last: Cell::NONE, cells: 0 };
        let queue = Queue { cells: 0, front: none, behind: VecDeque::new(), unreported: 0 };
        Self { queue_of, all: vec![queue; queues], scheduler, sent: Vec::new() }
    }

    /// Puts cells at the end of their VC's queue.
    #[inline]
    pub fn push(&mut self, run: Run) {
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

    /// Sends the next `cells` cells, of which there are as many, takes them off the counts and reports them, in order.
    /// Where each is reported, every earlier departure was reported.
    #[inline]
    pub fn serve(
        &mut self,
        cells: u32,
        counts: &mut Counts,
        granularity: ReportGranularity,
        mut report: impl FnMut(Run, u32),
    ) {
        let Self { all: queues, scheduler, sent, .. } = self;
        scheduler.serve_runs(cells, &mut WaitingRuns { queues, counts, sent, granularity, number: 0 });
        for Sent { run, after } in sent.drain(..) {
            report(run, after);
        }
    }

    /// Reports what was sent of runs that have not gone as a whole.
    pub fn report_parts(&mut self, mut report: impl FnMut(Run)) {
        for Queue { front, unreported, .. } in self.all.iter_mut().filter(|queue| queue.unreported > 0) {
            report(Run { last: front.last.not_last(), cells: std::mem::take(unreported) });
        }
    }

    /// How much of the filling of empty queues matters to the scheduler.
    pub fn backlog_sensitivity(&self) -> BacklogSensitivity {
        self.scheduler.backlog_sensitivity()
    }

    /// Whether no two VCs share a queue.
    pub fn one_a_vc(&self) -> bool {
        self.queue_of.iter().copied().eq(0..self.all.len())
    }

    /// Cells waiting in the queue of a VC.
    #[inline]
    pub fn ahead(&self, label: Label) -> u32 {
        self.all[self.queue_of[label]].cells
    }

    /// A lower bound on the number of cells that go up to the next last cell of a frame, itself among them, in queues
    /// with waiting cells.
    pub fn least_to_an_end(&self) -> u32 {
        if self.all.len() > FEW {
            return 1;
        }
        let waiting = self.all.iter().filter(|queue| queue.cells > 0);
        waiting.map(|queue| queue.front.cells).min().unwrap_or(1)
    }

    /// The waiting cells, queue by queue.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> impl Iterator<Item = Cell> {
        let runs = |queue: &Queue| std::iter::once(queue.front).chain(queue.behind.clone());
        self.all.iter().filter(|queue| queue.cells > 0).flat_map(runs).flat_map(Run::iter)
    }
}

/// Among more queues than this, looking for the shortest costs more than it saves.
const FEW: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::tests::cell;
    use crate::scheduler::round_robin::InTurns;
    use crate::turns::RoundRobin;

    #[test]
    fn queues_know_whose_they_are_and_how_far_the_next_end_of_a_frame_is() {
        let queues = |queue_of: [usize; 3]| {
            let turns = RoundRobin::new(3);
            RunQueues::new(Service::new(3, queue_of.to_vec(), InTurns { turns }))
        };
        let mut own = queues([0, 1, 2]);
        assert!(own.one_a_vc());
        assert!(!queues([0, 1, 1]).one_a_vc(), "two share one, and one has none");
        assert_eq!(own.least_to_an_end(), 1, "no bound where nothing waits");
        for (label, cells) in [(0, 5), (2, 3)] {
            own.push(Run { last: cell(label, 7, true), cells });
        }
        assert_eq!(own.least_to_an_end(), 3, "VC 2 ends a frame with its third cell");
    }
}
