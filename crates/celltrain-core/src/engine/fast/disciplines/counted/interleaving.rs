//! Processes interleaved trains, whose cells arrive alternately.

use super::Counted;
use crate::cell::Run;
use crate::coverage::reached;
use crate::engine::fast::egress::Depart;
use crate::engine::fast::train::{Input, InputArrival, number};
use crate::engine::fast::train_port::TrainPort;
use crate::queue_range::QueueRange;
use crate::units::{Span, Time};

/// A train with more consecutive cells than this is processed on its own. A train with at most this number of cells
/// left is not interleaved.
const FEW_IN_A_ROW: u32 = 4;

/// The state of the queue while interleaved cells are added.
struct InterleavedQueue {
    waiting: u32,
    /// Start of the first waiting cell; if no cell waits, of the next cell to arrive.
    next_start: Time,
    range: QueueRange,
    gone: u32,
    came: u32,
}

impl TrainPort<Counted> {
    /// Returns whether the cells of the trains with the first arrival alternate with cells of other trains.
    #[inline]
    pub(super) fn is_interleaved(&self, until: Time) -> bool {
        let first = self.ingress.next.first();
        let (tied, later) = self.ingress.next.tied();
        tied < self.ingress.next.len()
            && !self.is_alone(first.input(), if tied > 1 { 1 } else { FEW_IN_A_ROW }, later.min(until))
    }

    /// Returns whether interleaving saves more than it costs to begin and end it. It does if the cells of the first
    /// train arrive more slowly than cells leave. It also does if the first train does not tie, and both it and the
    /// second train have more than a few cells left. Other trains end or are in step after a cell or two. Cells that
    /// may be too late for the end of the run are not interleaved.
    #[inline]
    pub(super) fn interleaving_pays(&self) -> bool {
        let [first, second] = [0, 1].map(|i| self.ingress.next.at(i));
        let [train, next] = [first, second].map(|arrival| &self.ingress.inputs[arrival.input() as usize].train);
        (train.period > self.output.timing.cell_time
            || (first.time() < second.time() && train.cells.min(next.cells) > FEW_IN_A_ROW))
            && self.output.tail_start() <= self.output.timing.latest_start
    }

    /// Returns whether more than `cells` cells of an input's train arrive before the time `other`.
    #[inline]
    fn is_alone(&self, input: u32, cells: u32, other: Time) -> bool {
        let train = &self.ingress.inputs[input as usize].train;
        train.cells > cells && train.next + train.period * u64::from(cells) < other
    }

    /// Interleaves trains up to `until`. Stops earlier at a cell that begins a long row of one train's cells, needs a
    /// decision of the policy, finds no room, or may be too late for the end of the run. Returns whether any cell was
    /// admitted.
    ///
    /// Each cell updates only the queue length and the order of arrivals. The other work is done once, at the end of
    /// the train or at the end of interleaving.
    #[inline(never)]
    pub(super) fn interleave(&mut self, until: Time, depart: &mut impl Depart) -> bool {
        self.delimit(self.ingress.next.len());
        let waiting = self.output.buffer.occupancy;
        let range = QueueRange { least: waiting, largest: waiting };
        let mut queue = InterleavedQueue { waiting, next_start: self.output.next_start, range, gone: 0, came: 0 };
        let capacity = self.output.buffer.capacity;
        loop {
            let (first, second) = (self.ingress.next.first(), self.ingress.next.at(1));
            let now = first.time();
            if now >= until {
                break;
            }
            self.count_departures(&mut queue, now);
            if second.time() == now {
                if !self.interleave_tied(&mut queue, until, depart) {
                    break;
                }
                continue;
            }
            let start = self.start(&queue);
            let input = first.input();
            if queue.waiting >= capacity
                || start > self.output.timing.latest_start
                || (self.ingress.inputs[input as usize].interleaved == 0 && !self.is_welcome(input))
            {
                break;
            }
            match self.interleave_one(input, now, start, &mut queue, depart) {
                Some(next) => {
                    let is_first = self.ingress.next.put_back_first(InputArrival::new(next, input));
                    if is_first && self.is_alone(input, FEW_IN_A_ROW, second.time().min(until)) {
                        break;
                    }
                }
                None => self.ingress.next.pop_first(),
            }
        }
        if queue.came == 0 {
            return false;
        }
        self.output.next_start = queue.next_start;
        let mut touched = std::mem::take(&mut self.output.buffer.queue.touched);
        for input in touched.drain(..) {
            let Input { train, interleaved, interleaved_since, .. } = &mut self.ingress.inputs[input as usize];
            // A train that has ended by now may have no cells left.
            if *interleaved > 0 {
                let (first, period) = (*interleaved_since, train.period);
                let run = Run { last: train.cell, cells: std::mem::take(interleaved) };
                self.finish_interleaved(run, first, period);
                self.partial_frames.collect(run, depart);
            }
        }
        self.output.buffer.queue.touched = touched;
        self.output.buffer.admit_in_any_order(queue.came, queue.range, queue.gone);
        true
    }

    /// Interleaves the cells that share the first arrival time. Returns false without any effect if one of them finds
    /// no room or ends the stretch for another reason ([`TrainPort::interleave`]).
    #[inline(never)]
    fn interleave_tied(&mut self, queue: &mut InterleavedQueue, until: Time, depart: &mut impl Depart) -> bool {
        let now = self.ingress.next.first().time();
        let tied = self.ingress.next.tied().0;
        let behind = number(tied) - 1;
        let last_start = self.start(queue) + self.output.timing.cell_time * u64::from(behind);
        if !self.is_interleaved(until)
            || queue.waiting + behind >= self.output.buffer.capacity
            || last_start > self.output.timing.latest_start
            || !self.ingress.next.iter().take(tied).all(|next| self.is_welcome(next.input()))
        {
            return false;
        }
        reached!(TieInterleaved);
        let mut together = std::mem::take(&mut self.output.buffer.queue.tied);
        for _ in 0..tied {
            together.push(self.ingress.next.first().input());
            self.ingress.next.pop_first();
        }
        self.ties.order(now, &mut together, |&input| self.at_node[input as usize]);
        for input in together.drain(..) {
            let start = self.start(queue);
            if let Some(next) = self.interleave_one(input, now, start, queue, depart) {
                self.ingress.next.put(InputArrival::new(next, input));
            }
        }
        self.output.buffer.queue.tied = together;
        true
    }

    /// Interleaves the next cell of an input, which arrives at `now`. Returns the arrival time of the following cell.
    #[inline(always)]
    fn interleave_one(
        &mut self,
        input: u32,
        now: Time,
        start: Time,
        queue: &mut InterleavedQueue,
        depart: &mut impl Depart,
    ) -> Option<Time> {
        let Input { train, interleaved, interleaved_since, .. } = &mut self.ingress.inputs[input as usize];
        if *interleaved == 0 {
            if !train.cell.is_rm() {
                // If the cell starts a frame, marks the start as handled without a decision of the policy
                // (`is_welcome`).
                self.output.buffer.fate(train.cell);
            }
            *interleaved_since = now;
            self.output.buffer.queue.touched.push(input);
        }
        queue.came += 1;
        queue.waiting += 1;
        queue.range.largest = queue.range.largest.max(queue.waiting);
        *interleaved += 1;
        train.cells -= 1;
        train.next = now + train.period;
        if train.cells == 0 {
            return self.end_train(input, start, depart);
        }
        Some(train.next)
    }

    /// Ends a train after its last cell has been interleaved. Returns the first arrival of the next train on its input.
    #[inline(never)]
    fn end_train(&mut self, input: u32, start: Time, depart: &mut impl Depart) -> Option<Time> {
        let Input { train, behind, interleaved, interleaved_since } = &mut self.ingress.inputs[input as usize];
        let last = if train.ends_frame { train.cell.ending_frame() } else { train.cell };
        let (first, period) = (*interleaved_since, train.period);
        let run = Run { last, cells: std::mem::take(interleaved) };
        let next = behind.pop_front().map(|next| {
            *train = next;
            next.next
        });
        self.finish_interleaved(run, first, period);
        if next.is_some() && self.output.buffer.admission.delimits() {
            self.output.buffer.admission.delimit(self.ingress.inputs[input as usize].train.cell);
        }
        self.hand_on(run, start, Span(0), depart);
        next
    }

    /// Counts the cells that left the queue before the arrivals at `now`. There are rarely more than two. The processor
    /// cannot predict whether there are zero, one or two, so they are counted without branches.
    #[inline(always)]
    fn count_departures(&self, queue: &mut InterleavedQueue, now: Time) {
        let until = self.output.timing.served_before(now);
        for _ in 0..2 {
            let one = u32::from(queue.next_start < until) & u32::from(queue.waiting > 0);
            queue.next_start += self.output.timing.cell_time * u64::from(one);
            queue.waiting -= one;
            queue.gone += one;
        }
        while queue.next_start < until && queue.waiting > 0 {
            queue.next_start += self.output.timing.cell_time;
            queue.waiting -= 1;
            queue.gone += 1;
        }
        queue.range.least = queue.range.least.min(queue.waiting);
        let start_anew = if queue.waiting == 0 { now } else { Time(0) };
        queue.next_start = queue.next_start.max(start_anew);
    }

    fn start(&self, queue: &InterleavedQueue) -> Time {
        queue.next_start + self.output.timing.cell_time * u64::from(queue.waiting)
    }

    /// Returns whether the next cell of an input is admitted, provided there is room.
    #[inline]
    fn is_welcome(&self, input: u32) -> bool {
        let Input { train, interleaved, .. } = &self.ingress.inputs[input as usize];
        *interleaved > 0 || train.cell.is_rm() || self.output.buffer.admits_unasked(train.cell.label())
    }

    /// Does all work for the interleaved cells of one train, except for reporting their departure.
    #[inline]
    fn finish_interleaved(&mut self, run: Run, first: Time, period: Span) {
        self.output.buffer.count_interleaved(run);
        self.output.note(run, first, period);
    }
}
