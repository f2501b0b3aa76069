//! The interface of the cells that wait at a contended port.

use crate::cell::{Cell, Run};
use crate::index::Label;
use crate::port::admission::Admission;
use crate::scheduler::waiting::{Counts, ReportGranularity};
use crate::units::Time;

/// The instant at which a port knows when an admitted cell leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Departures {
    /// On arrival: the start of the cell is the time when all earlier cells have been sent.
    AtAdmission,
    /// The cell leaves the queue when its transmission starts. Until then, the cell may be overtaken, pushed out or
    /// marked.
    Later,
}

/// Information that a port keeps about its waiting cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// The port keeps only the number of waiting cells.
    Number,
    /// The port keeps the waiting cells, in order.
    Cells,
}

/// The waiting cells of a port.
pub(super) trait WaitingCells {
    const KEPT: Kept = Kept::Cells;

    fn departures(&self) -> Departures;

    /// Adds admitted cells to the end of their queue.
    fn put(&mut self, run: Run, admission: &mut Admission);

    /// Removes the next `cells` cells from the queue and from `counts`. Calls `report(run, after)` for each departed
    /// run. `after` is the number of these cells that left before the run's first cell ([`ReportGranularity::Each`]) or
    /// before its last ([`ReportGranularity::Runs`]).
    fn take(&mut self, cells: u32, counts: &mut Counts, granularity: ReportGranularity, report: impl FnMut(Run, u32));

    /// Returns the number of stored cells, to check the counts.
    fn stored(&self) -> u32;

    /// Passes a cell of a VC through the empty queue. It is sent before another cell arrives.
    fn pass_through(&mut self, _label: Label, _admission: &mut Admission) {}

    /// Records that the next `cells` cells depart. They may be removed from the queue later.
    fn on_departures(&mut self, _cells: u32) {}

    /// Reports departures to a policy that follows cells. Called before each of its decisions.
    fn report_to_policy(&mut self, _admission: &mut Admission) {}

    /// Reports the departed cells of runs that still have waiting cells.
    fn report_parts(&mut self, _report: impl FnMut(Run)) {}

    /// Returns the number of cells in a VC's own queue, including cells whose departure is not reported yet; `None` if
    /// all VCs share one queue.
    fn in_queue_of(&self, _label: Label) -> Option<u32> {
        None
    }

    /// Returns the number of cells that cannot be sent yet, because their frame is incomplete.
    fn awaiting(&self) -> u32 {
        0
    }

    /// Returns the number of a VC's cells that cannot be sent yet.
    fn awaiting_of(&self, _label: Label) -> u32 {
        0
    }

    /// Returns whether a VC's frames wait until they are complete.
    fn awaits_frames_of(&self, _label: Label) -> bool {
        false
    }

    /// Discards a VC's frame, which can no longer become complete. Returns the number of discarded cells.
    fn discard_awaiting(&mut self, _label: Label) -> u32 {
        unreachable!("only frames of merging VCs wait until they are complete")
    }

    /// Records that a cell has entered the port at `now`, if the port's policy decides about frames at the head of the
    /// queue.
    fn on_enter(&mut self, _cell: Cell, _now: Time) {}

    /// Records that the latest cell taken, of this VC, is dropped at the head of its queue instead.
    fn on_dropped(&mut self, _label: Label) {}

    /// Records that the link is free and no cell can be sent, at a port that takes cells one by one.
    fn on_idle(&mut self) {}

    /// Removes the first half of the frames of the longest queue. Returns a cell of each frame and the number of its
    /// cells.
    fn push_out_longest(&mut self) -> Vec<(Cell, u32)> {
        unreachable!("the port has several queues")
    }

    /// Removes the first waiting cell that does not end a frame, and the waiting rest of its frame except the last
    /// cell, which marks where the next frame begins. Returns one of these cells and their number.
    fn push_out_front(&mut self) -> Option<(Cell, u32)> {
        unreachable!("cells can be pushed out only if a single queue holds all cells")
    }
}
