//! Time-shifted FIFO: the service order of `dualpi2`.
//!
//! Source: RFC 9332, appendix A.1. Of the frames at the heads of the queues L and C, the one that entered first is sent,
//! as if frames of L had entered `shift` earlier. Differences from the source: a frame that has begun continues if its
//! next cell is at the head of its queue, and RM cells, which have no frame, do not wait for the other queue.

use std::collections::VecDeque;

use typed_index_collections::{TiVec, ti_vec};

use super::{BacklogSensitivity, Scheduler, Service, Waiting};
use crate::cell::{Cell, FrameNumber};
use crate::index::Label;
use crate::units::{Span, Time};

/// Number of the queue L.
const L: usize = 0;
/// Number of the queue C.
const C: usize = 1;

/// Creates the queues L and C. `in_l` is true for the VCs that use L, by label.
pub(crate) fn service(in_l: &[bool], shift: Span) -> Service {
    let queue_of = in_l.iter().map(|&in_l| if in_l { L } else { C }).collect();
    let scheduler = TimeShiftedFifo { shift, frames: ti_vec![VecDeque::new(); in_l.len()], begun: None };
    Service::new(2, queue_of, scheduler)
}

struct TimeShiftedFifo {
    shift: Span,
    /// Frames that have entered and the times at which their first cells did, by label.
    frames: TiVec<Label, VecDeque<(FrameNumber, Time)>>,
    /// Queue, VC and frame of the latest cell sent.
    begun: Option<(usize, Label, FrameNumber)>,
}

impl TimeShiftedFifo {
    /// Returns the time at which the frame of a cell at the head of a queue entered.
    fn entry(&mut self, head: Cell) -> Time {
        self.forget_frames_before(head);
        self.frames[head.label()].front().map_or(Time::default(), |&(_, entry)| entry)
    }

    /// Removes the frames before the frame of a cell at the head of a queue. The removed frames have left, or have lost
    /// the cells that would have left.
    fn forget_frames_before(&mut self, head: Cell) {
        let frames = &mut self.frames[head.label()];
        while frames.front().is_some_and(|&(frame, _)| frame != head.frame) {
            frames.pop_front();
        }
    }

    /// Returns the queue to serve if both queues have cells. A head is `None` if its cell is an RM cell, or belongs to a
    /// packet that has been sent already.
    fn choose(&mut self, heads: [Option<Cell>; 2]) -> usize {
        if let Some((queue, label, frame)) = self.begun
            && heads[queue].is_some_and(|head| (head.label(), head.frame) == (label, frame))
        {
            return queue;
        }
        match heads {
            [None, _] => L,
            [_, None] => C,
            [Some(l), Some(c)] => {
                if self.entry(l) <= self.entry(c) + self.shift {
                    L
                } else {
                    C
                }
            }
        }
    }
}

impl Scheduler for TimeShiftedFifo {
    fn on_enter(&mut self, cell: Cell, now: Time) {
        let frames = &mut self.frames[cell.label()];
        if !cell.is_rm() && frames.back().is_none_or(|&(frame, _)| frame != cell.frame) {
            frames.push_back((cell.frame, now));
        }
    }

    fn serve(&mut self, cells: u32, waiting: &mut impl Waiting) {
        for _ in 0..cells {
            let queue = match [L, C].map(|queue| waiting.cells(queue) > 0) {
                [true, true] => self.choose([L, C].map(|queue| waiting.next_cell(queue))),
                [true, false] => L,
                _ => C,
            };
            if let Some(head) = waiting.next_cell(queue) {
                self.begun = Some((queue, head.label(), head.frame));
                self.forget_frames_before(head);
            }
            waiting.send_one(queue);
        }
    }

    fn backlog_sensitivity(&self) -> BacklogSensitivity {
        BacklogSensitivity::Exact
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::tests::cell;
    use crate::port::CellQueues;
    use crate::scheduler::WaitingCells;

    /// Queues of which the first VC uses L.
    fn queues(shift: u64) -> CellQueues {
        CellQueues::new(service(&[true, false, false], Span(shift)))
    }

    /// Adds a frame of this many cells.
    fn push(queues: &mut CellQueues, (label, frame): (u32, u32), cells: u32, now: u64) {
        for number in 1..=cells {
            let cell = cell(label, frame, number == cells);
            queues.push(cell);
            queues.on_enter(cell, Time(now));
        }
    }

    fn sent(queues: &mut CellQueues, cells: usize) -> Vec<u32> {
        (0..cells).map(|_| queues.pop().label().number()).collect()
    }

    #[test]
    fn an_l4s_frame_is_sent_before_classic_frames_that_entered_at_most_the_shift_earlier() {
        for (now, order) in [(110, [0, 1]), (111, [1, 0])] {
            let mut queues = queues(10);
            push(&mut queues, (1, 0), 1, 100);
            push(&mut queues, (0, 0), 1, now);
            assert_eq!(sent(&mut queues, 2), order, "{now}");
        }
    }

    #[test]
    fn a_frame_in_transmission_is_finished_first_and_each_queue_keeps_its_order() {
        let mut queues = queues(1000);
        push(&mut queues, (1, 0), 3, 0);
        push(&mut queues, (2, 0), 2, 0);
        assert_eq!(sent(&mut queues, 1), [1]);
        push(&mut queues, (0, 0), 2, 1);
        assert_eq!(sent(&mut queues, 6), [1, 1, 0, 0, 2, 2]);
    }

    #[test]
    fn the_scheduler_discards_the_entry_times_of_frames_that_have_departed() {
        let mut scheduler = TimeShiftedFifo { shift: Span(0), frames: ti_vec![VecDeque::new()], begun: None };
        let mut waiting =
            WaitingCells { queues: vec![VecDeque::new(); 2], sent: VecDeque::new(), used_turns: Vec::new() };
        for frame in 0..100 {
            waiting.queues[L].push_back(cell(0, frame, true));
            scheduler.on_enter(cell(0, frame, true), Time(1));
            scheduler.serve(1, &mut waiting);
        }
        assert_eq!(scheduler.frames[Label::new(0)].len(), 1);
    }

    #[test]
    fn a_frame_that_has_lost_its_cells_has_no_effect_on_the_service_order() {
        let mut queues = queues(0);
        queues.on_enter(cell(1, 0, false), Time(0));
        push(&mut queues, (1, 1), 1, 20);
        push(&mut queues, (0, 0), 1, 10);
        assert_eq!(sent(&mut queues, 2), [0, 1]);
    }
}
