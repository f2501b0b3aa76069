//! Several queues, such as one for each VC, and a scheduler that chooses the next one.
//!
//! They work like [`CellQueues`](crate::port::CellQueues), but process many cells at once. At first, the port computes
//! only the number of waiting cells, and determines later which cells left.

mod stretch;

use std::collections::VecDeque;

use typed_index_collections::TiVec;

use crate::cell::{Cell, Run};
use crate::engine::fast::egress::Depart;
use crate::engine::fast::output::Discipline;
use crate::engine::fast::timing::{Arrivals, Timing};
use crate::engine::fast::train_port::{TrainDiscipline, TrainPort};
use crate::engine::fast::waiting_cells::{Departures, WaitingCells};
use crate::index::Label;
use crate::port::admission::{Admission, is_of_frame};
use crate::scheduler::deficit_round_robin::{first_half, longest};
use crate::scheduler::waiting::{Counts, Queue, ReportGranularity, Sent, WaitingRuns};
use crate::scheduler::{AnyScheduler, BacklogSensitivity, Service};
use crate::tie::ServiceOrder;
use crate::units::{Span, Time};

/// Runs of cells waiting in several queues.
pub(in crate::engine::fast) struct Queued {
    /// Number of each VC's queue, by label of the VC.
    queue_of: TiVec<Label, usize>,
    all: Vec<Queue>,
    scheduler: Box<dyn AnyScheduler>,
    /// The cells sent by the latest service.
    sent: Vec<Sent>,
    sensitivity: BacklogSensitivity,
    overlap: Overlap,
    /// Trains of the current call; empty between calls.
    stretch: Vec<StretchTrain>,
}

/// The cells of one train within a group of overlapping trains.
#[derive(Clone, Copy, Debug)]
struct StretchTrain {
    input: u32,
    cells: u32,
    /// Arrival of the first cell.
    first: Time,
    /// Arrival time within a period. Trains of equal phase have simultaneous cells in every round they share.
    phase: Span,
    /// Round of the first cell, counted from the start of the group.
    round: u32,
}

/// The way in which cells of overlapping trains are admitted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Overlap {
    CellByCell,
    /// One train after the other. This requires that each VC has its own queue, the scheduler is not
    /// [`BacklogSensitivity::Exact`], no cell is marked, no allocator records arrivals, and arrivals precede the
    /// departure of their instant.
    TrainByTrain,
}

impl Queued {
    /// Creates the queues of a scheduler, all empty.
    pub(in crate::engine::fast) fn new(Service { queues, queue_of, scheduler }: Service, timing: &Timing) -> Self {
        let none = Run { last: Cell::NONE, cells: 0 };
        let queue = Queue { cells: 0, front: none, behind: VecDeque::new(), unreported: 0 };
        let sensitivity = scheduler.backlog_sensitivity();
        let may_overlap = queue_of.iter().copied().eq(0..queues)
            && sensitivity != BacklogSensitivity::Exact
            && !timing.marks()
            && timing.arrivals == Arrivals::Unrecorded
            // With service before arrivals, an arrival at an empty queue would come before the departure of the same
            // instant.
            && timing.service == ServiceOrder::AfterArrivals;
        let overlap = if may_overlap { Overlap::TrainByTrain } else { Overlap::CellByCell };
        let (all, sent, stretch) = (vec![queue; queues], Vec::new(), Vec::new());
        Self { queue_of, all, scheduler, sent, sensitivity, overlap, stretch }
    }
}

impl WaitingCells for Queued {
    #[inline(always)]
    fn departures(&self) -> Departures {
        Departures::Later
    }

    #[inline]
    fn put(&mut self, run: Run, _: &mut Admission) {
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

    /// At least `cells` cells must wait. With [`ReportGranularity::Each`], all earlier departures must have been
    /// reported.
    #[inline]
    fn take(
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

    fn stored(&self) -> u32 {
        let cells = |queue: &Queue| queue.front.cells + queue.behind.iter().map(|run| run.cells).sum::<u32>();
        debug_assert!(self.all.iter().all(|queue| queue.cells == cells(queue)), "every cell of a queue is counted");
        self.all.iter().map(|queue| queue.cells).sum()
    }

    fn pass_through(&mut self, label: Label, _: &mut Admission) {
        self.scheduler.serve_alone(self.queue_of[label], self.all.len());
    }

    fn report_parts(&mut self, mut report: impl FnMut(Run)) {
        for Queue { front, unreported, .. } in self.all.iter_mut().filter(|queue| queue.unreported > 0) {
            report(Run { last: front.last.not_last(), cells: std::mem::take(unreported) });
        }
    }

    fn in_queue_of(&self, label: Label) -> Option<u32> {
        Some(self.all[self.queue_of[label]].cells)
    }

    fn on_enter(&mut self, cell: Cell, now: Time) {
        self.scheduler.on_enter(cell, now);
    }

    fn on_dropped(&mut self, label: Label) {
        self.scheduler.on_dropped(self.queue_of[label]);
    }

    fn on_idle(&mut self) {
        self.scheduler.on_idle();
    }

    fn push_out_longest(&mut self) -> Vec<(Cell, u32)> {
        let number = longest(self.all.iter().map(|queue| queue.cells as usize));
        let Queue { cells, front, behind, .. } = &mut self.all[number];
        let mut runs = std::mem::take(behind);
        if front.cells > 0 {
            runs.push_front(*front);
        }
        let frames = first_half(runs.iter().map(|run| run.last), self.scheduler.leaving(number));
        let mut removed: Vec<(Cell, u32)> = Vec::new();
        runs.retain(|run| {
            let goes = !run.last.is_rm() && frames.contains(&run.last.frame);
            if goes {
                *cells -= run.cells;
                match removed.last_mut().filter(|(latest, _)| is_of_frame(run.last, *latest)) {
                    Some((_, cells)) => *cells += run.cells,
                    None => removed.push((run.last, run.cells)),
                }
            }
            !goes
        });
        *front = runs.pop_front().unwrap_or(Run { last: Cell::NONE, cells: 0 });
        *behind = runs;
        removed
    }
}

/// With more queues, finding the shortest queue costs more than it saves.
const FEW: usize = 8;

impl Discipline for Queued {
    const NAME: &'static str = "Queued";

    fn may_fill_early(&self) -> bool {
        self.sensitivity != BacklogSensitivity::Exact
    }

    fn least_to_a_frame_end(&self) -> u32 {
        if self.all.len() > FEW {
            return 1;
        }
        let waiting = self.all.iter().filter(|queue| queue.cells > 0);
        waiting.map(|queue| queue.front.cells).min().unwrap_or(1)
    }
}

impl TrainDiscipline for Queued {
    #[inline]
    fn admit_run(port: &mut TrainPort<Self>, now: Time, period: Span, run: Run, depart: &mut impl Depart) -> bool {
        port.admit_deferred(now, period, run, depart)
    }

    #[inline]
    fn admit_overlap(port: &mut TrainPort<Self>, now: Time, until: Time, depart: &mut impl Depart) -> bool {
        port.output.buffer.queue.overlap == Overlap::TrainByTrain && port.admit_stretch(now, until, depart)
    }
}
