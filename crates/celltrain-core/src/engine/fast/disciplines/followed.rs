//! First in, first out, with a policy that follows single cells, such as virtual queuing.

use super::in_order::InOrder;
use crate::cell::{Cell, Run};
use crate::engine::fast::egress::Depart;
use crate::engine::fast::output::{Discipline, Output};
use crate::engine::fast::train_port::{TrainDiscipline, TrainPort};
use crate::engine::fast::waiting_cells::{Departures, WaitingCells};
use crate::index::Label;
use crate::policy::CellFollower;
use crate::port::admission::Admission;
use crate::scheduler::waiting::{Counts, ReportGranularity};
use crate::units::{Span, Time};

/// One queue, whose policy learns of each cell that enters and of the number of cells that leave.
pub(in crate::engine::fast) struct Followed {
    queue: InOrder,
    /// Number of departures not reported to the policy yet.
    unreported: u32,
}

impl Followed {
    pub(in crate::engine::fast) fn new(departures: Departures) -> Self {
        Self { queue: InOrder::new(departures), unreported: 0 }
    }
}

fn follower(admission: &mut Admission) -> &mut dyn CellFollower {
    admission.follower().expect("the policy observes single cells")
}

impl WaitingCells for Followed {
    #[inline(always)]
    fn departures(&self) -> Departures {
        self.queue.departures()
    }

    #[inline]
    fn put(&mut self, run: Run, admission: &mut Admission) {
        self.report_to_policy(admission);
        follower(admission).on_enter(run.last.label(), run.cells);
        self.queue.put(run, admission);
    }

    #[inline]
    fn take(&mut self, cells: u32, counts: &mut Counts, granularity: ReportGranularity, report: impl FnMut(Run, u32)) {
        self.queue.take(cells, counts, granularity, report);
    }

    fn stored(&self) -> u32 {
        self.queue.stored()
    }

    fn pass_through(&mut self, label: Label, admission: &mut Admission) {
        self.report_to_policy(admission);
        follower(admission).on_enter(label, 1);
    }

    #[inline]
    fn on_departures(&mut self, cells: u32) {
        self.unreported += cells;
    }

    #[inline]
    fn report_to_policy(&mut self, admission: &mut Admission) {
        if self.unreported > 0 {
            follower(admission).on_leave(std::mem::take(&mut self.unreported));
        }
    }

    fn push_out_front(&mut self) -> Option<(Cell, u32)> {
        self.queue.push_out_front()
    }
}

impl Discipline for Followed {
    const NAME: &'static str = "Followed";

    fn enters_at_once(output: &mut Output<Self>, label: Label, left: u32, is_close: bool) -> bool {
        output.buffer.report_to_policy();
        follower(&mut output.buffer.admission).enters_at_once(label, left, is_close)
    }
}

impl TrainDiscipline for Followed {
    #[inline]
    fn admit_run(port: &mut TrainPort<Self>, now: Time, period: Span, run: Run, depart: &mut impl Depart) -> bool {
        port.admit_by_departures(now, period, run, depart)
    }
}
