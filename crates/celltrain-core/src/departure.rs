//! Departing cells, as reported to the rules that act on cells at the head of a queue.
//!
//! A rule sees each cell when its transmission starts, with the time for which its frame has waited. There are two: a
//! marker marks cells, and a policy with a [`HeadPolicy`](crate::policy::HeadPolicy) decides about frames. In both
//! engines, a port records the arrivals of frames in [`FrameArrivals`]; the fast engine does so only at ports with such
//! a rule.

use std::collections::VecDeque;

use typed_index_collections::{TiVec, ti_vec};

use crate::cell::{Cell, FrameNumber};
use crate::departing::Departing;
use crate::index::Label;
use crate::marking::{MarkedAt, Marker};
use crate::policy::{AtHead, Head};
use crate::port::admission::Admission;
use crate::units::{Span, Time};

/// Arrival times of the frames that wait at a port, by label. Refused cells do not count.
#[derive(Clone, Debug)]
pub(crate) struct FrameArrivals(TiVec<Label, VecDeque<FrameArrival>>);

#[derive(Clone, Copy, Debug)]
struct FrameArrival {
    frame: FrameNumber,
    /// Arrivals of the first and of the latest cell.
    first: Time,
    latest: Time,
    /// Number of waiting cells. Not used unless every cell is recorded.
    cells: u32,
    /// Treatment of the frame's cells at the head of the queue.
    fate: AtHead,
    /// True if the policy has decided about the frame at the head of the queue.
    is_decided: bool,
    /// True if the last cell has entered.
    is_complete: bool,
}

impl FrameArrivals {
    /// Creates the state of an empty port with `vcs` VCs.
    pub(crate) fn new(vcs: usize) -> Self {
        Self(ti_vec![VecDeque::new(); vcs])
    }

    /// Records a cell that enters the port at `now`. Callers may skip cells in the middle of a frame, unless the port has
    /// a policy that decides at the head of the queue.
    #[inline]
    pub(crate) fn enter(&mut self, cell: Cell, now: Time) {
        if cell.is_rm() {
            return;
        }
        let frames = &mut self.0[cell.label()];
        match frames.back_mut() {
            Some(latest) if latest.frame == cell.frame => {
                latest.latest = now;
                latest.cells += 1;
                latest.is_complete = cell.last_cell();
            }
            _ => frames.push_back(FrameArrival {
                frame: cell.frame,
                first: now,
                latest: now,
                cells: 1,
                fate: AtHead::Send,
                is_decided: false,
                is_complete: cell.last_cell(),
            }),
        }
    }

    /// Returns the number of waiting cells of the frame whose cell has entered last.
    #[inline]
    fn latest_cells(&self, label: Label) -> u32 {
        self.0[label].back().expect(ENTERED).cells
    }

    /// Lets a cell leave that neither starts nor ends its frame. Returns the treatment of its frame, or `None` if it is
    /// another kind of cell, which then has not left.
    #[inline]
    fn leave_inside(&mut self, cell: Cell) -> Option<AtHead> {
        if cell.is_rm() || cell.last_cell() {
            return None;
        }
        let frame = self.0[cell.label()].front_mut().expect(ENTERED);
        if !frame.is_decided || frame.frame != cell.frame {
            return None;
        }
        frame.cells = frame.cells.saturating_sub(1);
        Some(frame.fate)
    }

    /// Returns the smallest number of waiting cells among the complete frames that leave at present; `u32::MAX` without
    /// such a frame.
    fn least_leaving(&self) -> u32 {
        let first = self.0.iter().filter_map(VecDeque::front);
        let leaving = first.filter(|frame| frame.is_decided && frame.is_complete && frame.fate != AtHead::Drop);
        leaving.map(|frame| frame.cells).min().unwrap_or(u32::MAX)
    }

    /// Reports a cell that has entered to a policy that decides at the head of the queue, and marks the cell's frame if
    /// the policy has decided so on arrival.
    #[inline]
    pub(crate) fn decide_on_entry(&mut self, cell: Cell, waiting: u32, now: Time, admission: &mut Admission) {
        if admission.marks(cell) {
            let latest = self.0[cell.label()].back_mut().expect("the cell has entered");
            latest.fate = AtHead::Mark;
        }
        admission.on_enter_queue(waiting, now);
    }

    /// Returns the frame of a cell at the head of the queue. The frames of a VC leave in the order in which they entered.
    /// Earlier frames in the list have lost their last cells.
    #[inline]
    fn of(&mut self, cell: Cell) -> &mut FrameArrival {
        let frames = &mut self.0[cell.label()];
        while frames.front().expect(ENTERED).frame != cell.frame {
            frames.pop_front();
        }
        frames.front_mut().expect(ENTERED)
    }

    /// Records a cell that leaves the head of its queue at `now`. Returns [`Departing::waited`].
    #[inline]
    pub(crate) fn leave(&mut self, cell: Cell, now: Time) -> Span {
        if cell.is_rm() {
            return Span(0);
        }
        let frame = self.of(cell);
        frame.cells = frame.cells.saturating_sub(1);
        if !cell.last_cell() {
            return now - frame.first;
        }
        let waited = now - frame.latest;
        self.0[cell.label()].pop_front();
        waited
    }

    /// Lets the policy decide about the frame of a cell at the head of the queue, if it has not. `left` cells wait behind
    /// this cell in its queue. Returns the treatment of the cell. Calls `decided` after a decision of the policy.
    #[inline]
    pub(crate) fn decide(
        &mut self,
        cell: Cell,
        left: u32,
        now: Time,
        admission: &mut Admission,
        decided: impl FnOnce(&Head, AtHead, &mut Admission),
    ) -> AtHead {
        if cell.is_rm() {
            admission.on_departure_from_head(cell.label(), left, now);
            return AtHead::Send;
        }
        let frame = self.of(cell);
        if !frame.is_decided {
            frame.is_decided = true;
            let behind = left.saturating_sub(frame.cells.saturating_sub(1));
            let head = Head { now, vc: cell.label(), waited: now - frame.first, behind, capable: cell.capable() };
            let fate = admission.decide_at_head(&head, cell);
            frame.fate = frame.fate.max(fate);
            decided(&head, fate, admission);
        }
        let fate = frame.fate;
        admission.on_departure_from_head(cell.label(), left, now);
        fate
    }
}

const ENTERED: &str = "a cell enters before it leaves";

/// The numbers of cells that wait behind a departing cell.
#[derive(Clone, Copy)]
pub(crate) struct Behind {
    /// Cells in its queue. Cells of frames that wait for their last cells do not count.
    pub(crate) left: u32,
    /// Cells that a marker compares with its thresholds.
    pub(crate) counted: u32,
}

/// A port's rule for cells at the head of its queue, and the arrival times from which it computes their waiting times.
pub(crate) struct HeadRule {
    pub(crate) marker: Option<Marker>,
    /// True if the port's policy decides about frames at the head of the queue.
    decides: bool,
    /// `None` if the rule acts only on arriving cells.
    arrivals: Option<FrameArrivals>,
    frame_ends: FrameEnds,
}

/// Bounds the number of departures up to the next last cell of a frame. Dropped frames leave in no time, so a frame may
/// overtake all frames ahead of it that the policy has not decided about; but each of its own cells takes a cell time.
#[derive(Clone, Copy, Debug)]
struct FrameEnds {
    /// Lower bound on the number of cells of each complete frame about which the policy has not decided.
    shortest: u32,
    /// Lower bound on the number of departures up to a last cell.
    least: u32,
}

impl FrameEnds {
    const NONE: Self = Self { shortest: u32::MAX, least: u32::MAX };
    /// With more VCs, finding the frame that ends first costs more than it saves.
    const MOST_VCS: usize = 16;

    #[inline]
    fn on_complete(&mut self, cells: u32) {
        self.shortest = self.shortest.min(cells);
        self.least = self.least.min(cells);
    }

    #[inline]
    fn on_departure(&mut self, arrivals: &FrameArrivals) {
        self.least = self.least.saturating_sub(1);
        if self.least == 0 && arrivals.0.len() <= Self::MOST_VCS {
            self.least = self.shortest.min(arrivals.least_leaving());
        }
    }
}

impl HeadRule {
    /// Creates the rule of a port with `vcs` VCs, if it has one. `decides` is true if its policy decides about frames at
    /// the head of the queue.
    pub(crate) fn new(marker: Option<Marker>, decides: bool, vcs: usize) -> Option<Self> {
        let marks_there = marker.as_ref().is_some_and(|marker| marker.at() == MarkedAt::Dequeue);
        let arrivals = (decides || marks_there).then(|| FrameArrivals::new(vcs));
        (decides || marker.is_some()).then_some(Self { marker, decides, arrivals, frame_ends: FrameEnds::NONE })
    }

    /// Returns whether the port's policy decides about frames at the head of the queue.
    #[inline]
    pub(crate) fn decides(&self) -> bool {
        self.decides
    }

    /// Returns whether cells leave as they arrived, unless the policy drops or marks their whole frames.
    pub(crate) fn acts_on_frames(&self) -> bool {
        self.decides && self.marker.is_none()
    }

    /// Returns a lower bound, at least 1, on the number of departures up to the next last cell of a frame, at a port whose
    /// policy decides about frames.
    #[inline]
    pub(crate) fn least_to_a_frame_end(&self) -> u32 {
        self.frame_ends.least.clamp(1, 4096)
    }

    /// Records that no cell is waiting.
    #[inline]
    pub(crate) fn on_idle(&mut self) {
        self.frame_ends = FrameEnds::NONE;
    }

    /// Records that waiting cells were pushed out, so that their frames may be shorter than they were.
    pub(crate) fn on_pushed_out(&mut self) {
        self.frame_ends = FrameEnds { shortest: 1, least: 1 };
    }

    /// Passes an arriving cell to the rule. `waiting` cells are already waiting. Returns the cell, perhaps marked.
    #[inline]
    pub(crate) fn on_arrival(&mut self, cell: Cell, waiting: u32) -> Cell {
        self.marker.as_mut().map_or(cell, |marker| marker.on_arrival(cell, waiting))
    }

    /// Records that an arriving cell has entered the queue. `waiting` cells wait, including this cell.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "only one place calls the function, once per cell")]
    pub(crate) fn enter(&mut self, cell: Cell, now: Time, waiting: u32, admission: &mut Admission) {
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.enter(cell, now);
            if self.decides {
                arrivals.decide_on_entry(cell, waiting, now, admission);
                if cell.is_rm() {
                    self.frame_ends.on_complete(1);
                } else if cell.last_cell() {
                    self.frame_ends.on_complete(arrivals.latest_cells(cell.label()));
                }
            }
        }
    }

    /// Passes a cell that would start at `now` to the rule. Returns the cell, perhaps marked, or `None` if it is dropped.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "only one place calls the function, once per cell")]
    pub(crate) fn on_departure(
        &mut self,
        cell: Cell,
        behind: Behind,
        now: Time,
        admission: &mut Admission,
    ) -> Option<Cell> {
        let Some(arrivals) = &mut self.arrivals else { return Some(cell) };
        if self.decides
            && self.marker.is_none()
            && let Some(fate) = arrivals.leave_inside(cell)
        {
            admission.on_departure_from_head(cell.label(), behind.left, now);
            if fate == AtHead::Drop {
                admission.drop_at_head(cell);
                return None;
            }
            self.frame_ends.on_departure(arrivals);
            return Some(cell);
        }
        self.on_departure_of_any(cell, behind, now, admission)
    }

    /// A slower variant of [`HeadRule::on_departure`], for all kinds of cells.
    #[inline(never)]
    fn on_departure_of_any(
        &mut self,
        mut cell: Cell,
        Behind { left, counted }: Behind,
        now: Time,
        admission: &mut Admission,
    ) -> Option<Cell> {
        let arrivals = self.arrivals.as_mut().expect("the rule acts on departures");
        let fate = if self.decides { arrivals.decide(cell, left, now, admission, |_, _, _| {}) } else { AtHead::Send };
        let waited = arrivals.leave(cell, now);
        match fate {
            AtHead::Drop => {
                admission.drop_at_head(cell);
                return None;
            }
            AtHead::Mark if cell.last_cell() => cell = cell.with_efci(true),
            AtHead::Mark | AtHead::Send => {}
        }
        if self.decides {
            self.frame_ends.on_departure(arrivals);
        }
        Some(self.marker.as_mut().map_or(cell, |marker| marker.on_departure(Departing { cell, left: counted, waited })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::tests::cell;

    #[test]
    fn the_waiting_time_of_a_cell_starts_with_its_frame_except_for_the_last_cell() {
        let mut arrivals = FrameArrivals::new(1);
        for (number, now) in [(1, 10), (2, 20), (3, 30)] {
            arrivals.enter(cell(0, 7, number == 3), Time(now));
        }
        arrivals.enter(cell(0, 8, true), Time(40));
        assert_eq!(arrivals.leave(cell(0, 7, false), Time(50)), Span(40));
        assert_eq!(arrivals.leave(cell(0, 7, false), Time(60)), Span(50));
        assert_eq!(arrivals.leave(cell(0, 7, true), Time(70)), Span(40));
        assert_eq!(arrivals.leave(cell(0, 8, true), Time(80)), Span(40));
    }

    #[test]
    fn a_frame_that_has_lost_its_last_cell_does_not_delay_the_next_frame() {
        let mut arrivals = FrameArrivals::new(2);
        arrivals.enter(cell(0, 7, false), Time(10));
        arrivals.enter(cell(1, 7, false), Time(15));
        arrivals.enter(cell(0, 8, false), Time(20));
        assert_eq!(arrivals.leave(cell(0, 8, false), Time(25)), Span(5));
        assert_eq!(arrivals.leave(cell(1, 7, false), Time(35)), Span(20));
    }
}
