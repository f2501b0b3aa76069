//! Deficit round robin with new and old queues: the service order of FQ-CoDel.
//!
//! Source: RFC 8290, sections 3.1 and 4.2. Differences from the source: the cells of a frame take the place of the packet
//! (`docs/design/queue-management-by-time.md`). A queue that has begun a frame continues it without regard to its
//! credits. As in Linux, a queue without credits, and not only one with negative credits, moves to the end of the old
//! queues.

use std::collections::VecDeque;

use super::{BacklogSensitivity, Scheduler, Service, Waiting};
use crate::cell::{Cell, FrameNumber};

/// Creates a queue for each of `vcs` VCs. `quantum` and `cell` are sizes in bits.
pub(crate) fn service(vcs: usize, quantum: u64, cell: u64) -> Service {
    let signed = |bits: u64| i64::try_from(bits).unwrap_or(i64::MAX);
    let scheduler = DeficitRoundRobin {
        quantum: signed(quantum),
        cell: signed(cell),
        flows: vec![Flow::default(); vcs],
        new: VecDeque::new(),
        old: VecDeque::new(),
    };
    Service::new(vcs, (0..vcs).collect(), scheduler)
}

/// The lists of queues, and the credits of each queue.
struct DeficitRoundRobin {
    /// Credits that a queue gets at once, in bits.
    quantum: i64,
    /// Size of a cell, in bits.
    cell: i64,
    flows: Vec<Flow>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    /// Remaining credits, in bits.
    credits: i64,
    /// True if the queue is in a list.
    is_active: bool,
    /// Frame of the latest cell that the queue sent.
    frame: Option<FrameNumber>,
}

impl DeficitRoundRobin {
    fn serve_one(&mut self, waiting: &mut impl Waiting) {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let &queue = list.front().expect("a queue with cells is in a list");
            let flow = &mut self.flows[queue];
            let is_empty = waiting.cells(queue) == 0;
            let frame = if is_empty { None } else { waiting.next_cell(queue).map(|cell| cell.frame) };
            let continues = frame.is_some() && frame == flow.frame;
            if flow.credits <= 0 && !continues {
                flow.credits += self.quantum;
                list.pop_front();
                self.old.push_back(queue);
            } else if is_empty {
                list.pop_front();
                if is_new {
                    // If an emptied new queue left the lists, it could stay ahead of the others by emptying again and
                    // again.
                    self.old.push_back(queue);
                } else {
                    flow.is_active = false;
                }
            } else {
                flow.credits -= self.cell;
                flow.frame = frame.or(flow.frame);
                waiting.send_one(queue);
                return;
            }
        }
    }
}

impl Scheduler for DeficitRoundRobin {
    fn on_backlog(&mut self, queue: usize) {
        let flow = &mut self.flows[queue];
        if !flow.is_active {
            (flow.is_active, flow.credits) = (true, self.quantum);
            self.new.push_back(queue);
        }
    }

    fn serve(&mut self, cells: u32, waiting: &mut impl Waiting) {
        (0..cells).for_each(|_| self.serve_one(waiting));
    }

    fn on_dropped(&mut self, queue: usize) {
        self.flows[queue].credits += self.cell;
    }

    fn on_idle(&mut self) {
        for queue in self.new.drain(..).chain(self.old.drain(..)) {
            self.flows[queue].is_active = false;
        }
    }

    fn leaving(&self, queue: usize) -> Option<FrameNumber> {
        self.flows[queue].frame
    }

    fn backlog_sensitivity(&self) -> BacklogSensitivity {
        BacklogSensitivity::Exact
    }
}

/// Largest number of frames that the longest queue loses at once.
///
/// RFC 8290, section 4.1: half of its packets, at most 64.
const MOST_FRAMES: usize = 64;

/// Returns the frames that the longest queue of a full port loses: the first half of the frames among `cells` from which
/// no cell has left. `leaving` is the frame that has begun to leave.
pub(crate) fn first_half(cells: impl Iterator<Item = Cell>, leaving: Option<FrameNumber>) -> Vec<FrameNumber> {
    let may_go = |cell: &Cell| !cell.is_rm() && leaving != Some(cell.frame);
    let mut frames: Vec<_> = cells.filter(may_go).map(|cell| cell.frame).collect();
    frames.dedup();
    frames.truncate(frames.len().div_ceil(2).min(MOST_FRAMES));
    frames
}

/// Returns the longest of several queues, given their lengths; the first of them if several are equally long.
pub(crate) fn longest(lengths: impl Iterator<Item = usize>) -> usize {
    let (mut longest, mut most) = (0, 0);
    for (queue, length) in lengths.enumerate() {
        if length > most {
            (longest, most) = (queue, length);
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::tests::cell;
    use crate::index::Label;
    use crate::port::CellQueues;

    /// Queues with cells of one bit.
    fn queues(quantum: u64) -> CellQueues {
        CellQueues::new(service(4, quantum, 1))
    }

    /// Adds a frame of this many cells.
    fn push(queues: &mut CellQueues, label: u32, frame: u32, cells: u32) {
        (1..=cells).for_each(|number| queues.push(cell(label, frame, number == cells)));
    }

    fn sent(queues: &mut CellQueues, cells: usize) -> Vec<u32> {
        (0..cells).map(|_| queues.pop().label().number()).collect()
    }

    #[test]
    fn backlogged_queues_send_a_quantum_in_turn_and_finish_a_frame_that_has_begun() {
        let mut queues = queues(4);
        (0..4).for_each(|frame| push(&mut queues, 0, frame, 3));
        (0..6).for_each(|frame| push(&mut queues, 1, frame, 2));
        // VC 0 sends six cells, two more than its quantum, and then waits for two quanta.
        assert_eq!(sent(&mut queues, 22), [[0; 6].as_slice(), &[1; 4], &[0; 3], &[1; 4], &[0; 3], &[1; 2]].concat());
    }

    #[test]
    fn deficit_round_robin_serves_a_new_queue_before_old_queues_but_only_once_per_turn() {
        let mut queues = queues(2);
        (0..6).for_each(|frame| push(&mut queues, 0, frame, 1));
        assert_eq!(sent(&mut queues, 3), [0; 3]);
        push(&mut queues, 1, 0, 1);
        assert_eq!(sent(&mut queues, 1), [1]);
        // VC 1 was found empty, so its queue counts as old now.
        assert_eq!(sent(&mut queues, 1), [0]);
        push(&mut queues, 1, 1, 1);
        assert_eq!(sent(&mut queues, 3), [1, 0, 0]);
    }

    #[test]
    fn cells_dropped_at_the_head_use_no_credits_of_deficit_round_robin() {
        let mut queues = queues(2);
        (0..8).for_each(|frame| push(&mut queues, 0, frame, 1));
        (0..8).for_each(|frame| push(&mut queues, 1, frame, 1));
        for _ in 0..3 {
            assert_eq!(queues.pop().label().number(), 0);
            queues.on_dropped(Label::new(0));
        }
        assert_eq!(sent(&mut queues, 5), [0, 0, 1, 1, 0]);
    }

    #[test]
    fn all_deficit_round_robin_queues_count_as_new_after_the_port_was_idle() {
        let mut queues = queues(2);
        push(&mut queues, 0, 0, 2);
        assert_eq!(sent(&mut queues, 2), [0, 0]);
        queues.on_idle();
        push(&mut queues, 1, 0, 1);
        push(&mut queues, 0, 1, 2);
        push(&mut queues, 1, 1, 2);
        assert_eq!(sent(&mut queues, 5), [1, 1, 1, 0, 0]);
    }

    #[test]
    fn overflow_drops_half_of_the_frames_in_the_longest_queue_but_at_most_64() {
        for (frames, lost) in [(1, 1), (2, 1), (3, 2), (4, 2), (128, 64), (1000, 64)] {
            let mut queues = queues(1);
            (0..=frames).for_each(|frame| push(&mut queues, 1, frame, 3));
            push(&mut queues, 0, 0, 2);
            queues.pop();
            let mut removed: Vec<_> = queues.push_out_longest().iter().map(|cell| cell.frame.number()).collect();
            assert_eq!(removed.len(), 3 * lost as usize);
            removed.dedup();
            assert_eq!(removed, (1..=lost).collect::<Vec<_>>());
        }
    }

    #[test]
    fn overflow_drops_no_cells_from_a_queue_whose_only_frame_is_in_transmission() {
        let mut queues = queues(1);
        push(&mut queues, 1, 0, 3);
        queues.pop();
        assert_eq!(queues.push_out_longest(), []);
    }
}
