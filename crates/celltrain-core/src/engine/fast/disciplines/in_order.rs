//! First in, first out.

use std::collections::VecDeque;

use crate::cell::{Cell, Run};
use crate::engine::fast::egress::Depart;
use crate::engine::fast::output::Discipline;
use crate::engine::fast::train_port::{TrainDiscipline, TrainPort};
use crate::engine::fast::waiting_cells::{Departures, WaitingCells};
use crate::port::admission::{Admission, is_of_frame};
use crate::scheduler::waiting::{Counts, ReportGranularity};
use crate::units::{Span, Time};

/// One queue of runs, first in, first out.
pub(in crate::engine::fast) struct InOrder {
    pub(super) runs: VecDeque<Run>,
    departures: Departures,
}

impl InOrder {
    pub(in crate::engine::fast) fn new(departures: Departures) -> Self {
        Self { runs: VecDeque::new(), departures }
    }
}

impl WaitingCells for InOrder {
    #[inline(always)]
    fn departures(&self) -> Departures {
        self.departures
    }

    #[inline(always)]
    fn put(&mut self, run: Run, _: &mut Admission) {
        Run::append(&mut self.runs, run);
    }

    #[inline]
    fn take(
        &mut self,
        cells: u32,
        counts: &mut Counts,
        granularity: ReportGranularity,
        mut report: impl FnMut(Run, u32),
    ) {
        let mut after = 0;
        while after < cells {
            let run = Run::take_first_cells(&mut self.runs, cells - after).expect("departed cells were in the queue");
            counts.take(run.last.label(), run.cells);
            report(run, if granularity == ReportGranularity::Each { after } else { after + run.cells - 1 });
            after += run.cells;
        }
    }

    fn stored(&self) -> u32 {
        self.runs.iter().map(|run| run.cells).sum()
    }

    fn push_out_front(&mut self) -> Option<(Cell, u32)> {
        let ends_frame = |run: &Run| run.cells == 1 && run.last.last_cell();
        let data = || self.runs.iter().filter(|run| !run.last.is_rm());
        let &victim = data().find(|run| !ends_frame(run)).or_else(|| data().next())?;
        let keeps_last = !ends_frame(&victim);
        let mut pushed_out = 0;
        self.runs.retain_mut(|run| {
            if !is_of_frame(run.last, victim.last) {
                return true;
            }
            let kept = u32::from(keeps_last && run.last.last_cell());
            pushed_out += run.cells - kept;
            run.cells = kept;
            kept > 0
        });
        Some((victim.last, pushed_out))
    }
}

impl Discipline for InOrder {
    const NAME: &'static str = "InOrder";
}

impl TrainDiscipline for InOrder {
    #[inline]
    fn admit_run(port: &mut TrainPort<Self>, now: Time, period: Span, run: Run, depart: &mut impl Depart) -> bool {
        port.admit_by_departures(now, period, run, depart)
    }
}
