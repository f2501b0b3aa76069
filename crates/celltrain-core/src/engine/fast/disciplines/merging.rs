//! Merging VCs: the cells of a frame wait separately until it is complete, and then leave one after the other.

use typed_index_collections::{TiSlice, TiVec};

use super::in_order::InOrder;
use crate::cell::{Cell, Run};
use crate::engine::fast::egress::Depart;
use crate::engine::fast::output::{Discipline, Output};
use crate::engine::fast::train_port::{TrainDiscipline, TrainPort};
use crate::engine::fast::waiting_cells::{Departures, WaitingCells};
use crate::index::Label;
use crate::port::admission::Admission;
use crate::queue_range::QueueRange;
use crate::scheduler::waiting::{Counts, ReportGranularity};
use crate::tie::ServiceOrder;
use crate::units::{Span, Time};

/// One queue of complete frames, and incomplete frames that wait at the port.
pub(in crate::engine::fast) struct Merging {
    ready: InOrder,
    /// The incomplete frame of each VC, by label; `None` for a VC that does not merge.
    frames: TiVec<Label, Option<PartialFrame>>,
    /// Number of cells in all frames.
    cells: u32,
    /// Number of runs in the frame that the latest cells completed.
    released: usize,
}

/// Waiting cells of an incomplete frame.
#[derive(Default)]
struct PartialFrame {
    runs: Vec<Run>,
    cells: u32,
}

impl Merging {
    /// `merging` contains, by label, whether a VC merges with others.
    pub(in crate::engine::fast) fn new(merging: &TiSlice<Label, bool>, departures: Departures) -> Self {
        let frames = merging.iter().map(|&merges| merges.then(PartialFrame::default)).collect();
        Self { ready: InOrder::new(departures), frames, cells: 0, released: 0 }
    }
}

impl WaitingCells for Merging {
    #[inline(always)]
    fn departures(&self) -> Departures {
        self.ready.departures()
    }

    /// Adds cells to their VC's frame, and a completed frame to the queue. If the VC does not merge, its cells are
    /// ready at once.
    #[inline(never)]
    fn put(&mut self, run: Run, _: &mut Admission) {
        let ready = &mut self.ready.runs;
        self.released = 0;
        let Some(frame) = &mut self.frames[run.last.label()] else {
            ready.push_back(run);
            self.released = 1;
            return;
        };
        match frame.runs.last_mut() {
            Some(before) if before.goes_on_with(run) => {
                *before = Run { last: run.last, cells: before.cells + run.cells }
            }
            _ => frame.runs.push(run),
        }
        frame.cells += run.cells;
        self.cells += run.cells;
        if run.last.last_cell() {
            self.cells -= std::mem::take(&mut frame.cells);
            self.released = frame.runs.len();
            ready.extend(frame.runs.drain(..));
        }
    }

    #[inline]
    fn take(&mut self, cells: u32, counts: &mut Counts, granularity: ReportGranularity, report: impl FnMut(Run, u32)) {
        self.ready.take(cells, counts, granularity, report);
    }

    fn stored(&self) -> u32 {
        let cells = |frame: &PartialFrame| frame.runs.iter().map(|run| run.cells).sum::<u32>();
        let awaiting: u32 = self.frames.iter().flatten().map(cells).sum();
        debug_assert_eq!(awaiting, self.cells, "every cell of an incomplete frame is counted");
        self.ready.stored() + awaiting
    }

    #[inline(always)]
    fn awaiting(&self) -> u32 {
        self.cells
    }

    fn awaiting_of(&self, label: Label) -> u32 {
        self.frames[label].as_ref().map_or(0, |frame| frame.cells)
    }

    fn awaits_frames_of(&self, label: Label) -> bool {
        self.frames[label].is_some()
    }

    fn discard_awaiting(&mut self, label: Label) -> u32 {
        let Some(frame) = &mut self.frames[label] else { return 0 };
        frame.runs.clear();
        let cells = std::mem::take(&mut frame.cells);
        self.cells -= cells;
        cells
    }

    fn push_out_front(&mut self) -> Option<(Cell, u32)> {
        self.ready.push_out_front()
    }
}

impl Discipline for Merging {
    const NAME: &'static str = "Merging";
    const REPORTS_CELLS: bool = true;

    /// Reports the frame that the cell completed.
    #[inline]
    fn admit_one(output: &mut Output<Self>, start: Time, depart: &mut impl Depart) -> Option<Time> {
        output.release(start, depart);
        None
    }

    fn may_be_bypassed(&self) -> bool {
        false
    }
}

impl TrainDiscipline for Merging {
    #[inline]
    fn admit_run(port: &mut TrainPort<Self>, now: Time, period: Span, run: Run, depart: &mut impl Depart) -> bool {
        let queue = &port.output.buffer.queue;
        if queue.departures() == Departures::AtAdmission && queue.awaits_frames_of(run.last.label()) {
            port.admit_awaiting(now, period, run, depart)
        } else {
            port.admit_by_departures(now, period, run, depart)
        }
    }
}

impl Output<Merging> {
    /// Reports the frame that the latest arrival completed, with its start at `start`.
    #[inline]
    fn release(&mut self, mut start: Time, depart: &mut impl Depart) {
        let Merging { ready: InOrder { runs, .. }, released, .. } = &self.buffer.queue;
        for &run in runs.range(runs.len() - released..) {
            depart(run, start, self.timing.cell_time);
            start += self.timing.cell_time * u64::from(run.cells);
        }
    }
}

impl TrainPort<Merging> {
    /// Admits a run of a VC whose frames wait until they are complete. While its cells arrive, only others leave, so
    /// the queue is longest at the first or the last arrival.
    #[inline(never)]
    fn admit_awaiting(&mut self, now: Time, period: Span, run: Run, depart: &mut impl Depart) -> bool {
        let last_arrival = now + period * u64::from(run.cells - 1);
        let until = self.output.timing.served_before(last_arrival);
        let ready = self.output.buffer.ready();
        let starts = (until.0.saturating_sub(self.output.next_start.0)).div_ceil(self.output.timing.cell_time.0);
        let gone = u32::try_from(starts).unwrap_or(ready).min(ready);
        let at_first = self.output.buffer.occupancy + 1;
        let at_last = at_first + run.cells - 1 - gone;
        let range = QueueRange { least: self.least_while_awaiting(now, period, gone), largest: at_first.max(at_last) };
        if range.largest > self.output.buffer.capacity {
            return false;
        }
        self.output.next_start += self.output.timing.cell_time * u64::from(gone);
        self.output.buffer.admit(run, range, gone);
        if run.last.last_cell() {
            if gone == ready {
                self.output.next_start = self.output.next_start.max(last_arrival);
            }
            let start = self.output.next_start + self.output.timing.cell_time * u64::from(ready - gone);
            self.output.release(start, depart);
        }
        true
    }

    /// Returns the minimum number of waiting cells while `gone` cells leave and cells of a partial frame arrive a
    /// period apart, the first at `now`. The minimum is at the beginning, or when the last of the `gone` cells has
    /// left.
    fn least_while_awaiting(&self, now: Time, period: Span, gone: u32) -> u32 {
        let waiting = self.output.buffer.occupancy;
        let Some(before_last) = gone.checked_sub(1) else { return waiting };
        let last_gone = self.output.next_start + self.output.timing.cell_time * u64::from(before_last);
        let since_first = last_gone.0.saturating_sub(now.0);
        let arrived = match self.output.timing.service {
            ServiceOrder::BeforeArrivals => since_first.div_ceil(period.0),
            ServiceOrder::AfterArrivals => since_first / period.0 + 1,
        };
        let arrived = u32::try_from(arrived).expect("the number of cells is limited by the duration of the run");
        waiting.min(waiting + arrived - gone)
    }
}
