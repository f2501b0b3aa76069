//! Departing cells, as reported to a rule that acts on cells at the head of a queue.
//!
//! The rule sees each cell when its transmission starts, with the time for which its frame has waited. In both engines,
//! a port records the arrivals of frames in [`FrameArrivals`]; the fast engine does so only at ports with such a rule.

use std::collections::VecDeque;

use typed_index_collections::{TiVec, ti_vec};

use crate::cell::{Cell, FrameNumber};
use crate::index::Label;
use crate::marking::{MarkedAt, Marker};
use crate::units::{Span, Time};

/// A cell whose transmission starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departing {
    pub(crate) cell: Cell,
    /// Number of remaining cells, which the rule compares with its limits.
    pub(crate) left: u32,
    /// Time since the first cell of the frame entered the port. For a cell that ends its frame, the time since this cell
    /// entered. 0 for RM cells, which belong to no frame.
    pub(crate) waited: Span,
}

/// Arrival times of the frames that wait at a port, by label. Refused cells do not count.
#[derive(Clone, Debug)]
pub(crate) struct FrameArrivals(TiVec<Label, VecDeque<FrameArrival>>);

#[derive(Clone, Copy, Debug)]
struct FrameArrival {
    frame: FrameNumber,
    /// Arrivals of the first and of the latest cell.
    first: Time,
    latest: Time,
}

impl FrameArrivals {
    /// Creates the state of an empty port with `vcs` VCs.
    pub(crate) fn new(vcs: usize) -> Self {
        Self(ti_vec![VecDeque::new(); vcs])
    }

    /// Records a cell that enters the port at `now`. Callers may skip cells in the middle of a frame.
    #[inline]
    pub(crate) fn enter(&mut self, cell: Cell, now: Time) {
        if cell.is_rm() {
            return;
        }
        let frames = &mut self.0[cell.label()];
        match frames.back_mut() {
            Some(latest) if latest.frame == cell.frame => latest.latest = now,
            _ => frames.push_back(FrameArrival { frame: cell.frame, first: now, latest: now }),
        }
    }

    /// Records a cell that leaves the head of its queue at `now`. Returns [`Departing::waited`]. The frames of a VC
    /// leave in the order in which they entered. Earlier frames in the list have lost their last cells.
    #[inline]
    pub(crate) fn leave(&mut self, cell: Cell, now: Time) -> Span {
        if cell.is_rm() {
            return Span(0);
        }
        let frames = &mut self.0[cell.label()];
        loop {
            let &FrameArrival { frame, first, latest } = frames.front().expect("a cell enters before it leaves");
            if frame == cell.frame && !cell.last_cell() {
                return now - first;
            }
            frames.pop_front();
            if frame == cell.frame {
                return now - latest;
            }
        }
    }
}

/// A port's rule for cells at the head of its queue, and the arrival times from which it computes their waiting times.
/// The only such rule marks cells.
pub(crate) struct HeadRule {
    pub(crate) marker: Marker,
    /// `None` if the rule acts only on arriving cells.
    arrivals: Option<FrameArrivals>,
}

impl HeadRule {
    /// Creates the rule of a port with `vcs` VCs.
    pub(crate) fn new(marker: Marker, vcs: usize) -> Self {
        let arrivals = (marker.at() == MarkedAt::Dequeue).then(|| FrameArrivals::new(vcs));
        Self { marker, arrivals }
    }

    /// Passes an arriving cell to the rule. `waiting` cells are already waiting. Returns the cell, perhaps marked.
    #[inline]
    pub(crate) fn on_arrival(&mut self, cell: Cell, waiting: u32) -> Cell {
        self.marker.on_arrival(cell, waiting)
    }

    /// Records that an arriving cell has entered the queue.
    #[inline]
    pub(crate) fn enter(&mut self, cell: Cell, now: Time) {
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.enter(cell, now);
        }
    }

    /// Passes a cell whose transmission starts at `now` to the rule. Returns the cell, perhaps marked.
    #[inline]
    pub(crate) fn on_departure(&mut self, cell: Cell, left: u32, now: Time) -> Cell {
        let Some(arrivals) = &mut self.arrivals else { return cell };
        let waited = arrivals.leave(cell, now);
        self.marker.on_departure(Departing { cell, left, waited })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::tests::cell;

    #[test]
    fn waiting_times_start_at_the_arrival_of_the_first_cell_of_a_frame_except_for_last_cells() {
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
