//! The links into a port of trains: the trains in flight on each, in the order of their next arrivals.

use std::collections::VecDeque;

use super::train::Train;
use super::turns::{Turn, Turns};
use crate::cell::Run;
use crate::units::{Span, Time};

/// The inputs of a port of trains.
#[derive(Default)]
pub(super) struct TrainIngress {
    pub(super) inputs: Vec<Input>,
    /// Inputs that have a train, by the arrival of its next cell, then by number.
    pub(super) next: Turns,
    /// Whether cells that end no frame have an effect elsewhere.
    every_cell_matters: bool,
}

/// One input: the train whose cells arrive now, without cells if there is none, and the trains behind it.
#[derive(Clone, Debug)]
pub(super) struct Input {
    pub(super) train: Train,
    pub(super) behind: VecDeque<Train>,
    /// Cells of the train that are being interleaved, and the arrival of the first.
    pub(super) interleaved: u32,
    pub(super) interleaved_since: Time,
}

pub(super) fn number(input: usize) -> u32 {
    u32::try_from(input).expect("indices fit 32 bits")
}

impl TrainIngress {
    pub(super) fn new(inputs: usize, every_cell_matters: bool) -> Self {
        let none = Input { train: Train::NONE, behind: VecDeque::new(), interleaved: 0, interleaved_since: Time(0) };
        Self { inputs: vec![none; inputs], next: Turns::new(inputs), every_cell_matters }
    }

    /// Adds a train behind those on an input. Returns the arrival of its first cell that may matter elsewhere before all
    /// earlier cells.
    #[inline]
    pub(super) fn join(&mut self, input: usize, train: Train) -> Option<Time> {
        let Input { train: head, behind, .. } = &mut self.inputs[input];
        if head.cells == 0 {
            *head = train;
            self.next.put(Turn::new(train.next, number(input)));
            if self.every_cell_matters {
                return Some(train.next);
            }
        } else {
            let tail = behind.back_mut().unwrap_or(head);
            if !tail.absorbs(&train) {
                behind.push_back(train);
            }
            if self.every_cell_matters {
                return None;
            }
        }
        // The new cells alone can bring the earliest effect forward, whether they were joined to a train or not.
        Some(train.last())
    }

    /// Removes the last cells due on an input, which have not started.
    pub(super) fn take_back(&mut self, input: usize, mut cells: u32) {
        let Input { train: head, behind, .. } = &mut self.inputs[input];
        while cells > 0 {
            let tail = behind.back_mut().unwrap_or(head);
            cells -= tail.give_back(cells);
            if tail.cells == 0 && behind.pop_back().is_none() {
                assert_eq!(cells, 0, "no more is taken back than was to come");
                self.next.remove(number(input));
            }
        }
    }

    /// Takes the cells of the first input that arrive before `until`, at least one. Returns them and their period.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a train; the call costs 2 % of a plain run")]
    pub(super) fn take_first(&mut self, input: u32, until: Time) -> (Run, Span) {
        let Input { train, behind, .. } = &mut self.inputs[input as usize];
        let period = train.period;
        let run = train.take_before(until);
        if train.cells == 0 {
            let Some(next) = behind.pop_front() else {
                self.next.pop_first();
                return (run, period);
            };
            *train = next;
        }
        let next = train.next;
        self.next.put_back_first(Turn::new(next, input));
        (run, period)
    }
}
