//! A contended port: trains of cells come in on several links, one cell leaves a cell time.
//!
//! The cells of a frame that left together arrive as an arithmetic sequence, a [`Train`]; the port takes single cells from
//! its trains in the order of their arrival, ties as the scenario says, and offers them to the same [`Port`] the reference
//! engine uses. In a first-in first-out queue that loses nothing it has admitted, a cell's departure is known as it is
//! admitted: it starts when everything before it has been sent. So the port is worked on in batches, some time after the
//! instants in question, and never later than the earliest effect these could have anywhere else.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::cell::{Cell, Label};
use crate::port::Port;
use crate::tie::TieBreaker;
use crate::units::{Span, Time};

/// A contended port.
pub(super) struct Server {
    pub(super) port: Port,
    ties: TieBreaker,
    cell_time: Span,
    /// When the next transmission can start: the waiting head's start, or when the link is free.
    next_start: Time,
    inputs: Vec<Input>,
    /// Inputs whose trains are under way, by the arrival of their next cells, then by number.
    running: VecDeque<(Time, u32)>,
    /// Inputs whose trains are still to begin, the first on top.
    coming: BinaryHeap<Reverse<(Time, u32)>>,
    together: Vec<(u32, Cell)>,
    timing: Timing,
    /// Least time from the start of a transmission to its arrival anywhere it matters.
    least_lead: Span,
    /// Whether a cell that does not complete a frame matters anywhere: another contended port may be next.
    every_cell_matters: bool,
}

/// What a server needs to know about when things happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timing {
    /// The departure of an instant comes before its arrivals.
    pub(super) serve_first: bool,
    /// Admitted cells may be pushed out again, so their departure is known only as it happens.
    pub(super) departs_late: bool,
}

/// Cells of one frame that arrive one cell time apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Train {
    /// Arrival of the next one.
    pub(super) next: Time,
    /// From one to the next.
    pub(super) period: Span,
    /// How many are to come.
    pub(super) cells: u32,
    /// Whether the last of them is the last of the frame.
    pub(super) ends_frame: bool,
    /// Their label at this port.
    pub(super) label: Label,
    /// Their frame.
    pub(super) frame: u32,
}

impl Train {
    #[inline]
    pub(super) fn last(&self) -> Time {
        self.next + self.period * u64::from(self.cells - 1)
    }

    /// No train.
    const NONE: Train = Train { next: Time(0), period: Span(0), cells: 0, ends_frame: false, label: 0, frame: 0 };

    /// Whether cells of one frame that left one by one are still in step with these.
    #[inline]
    fn goes_on_with(&self, later: &Train) -> bool {
        self.frame == later.frame
            && self.label == later.label
            && self.period == later.period
            && self.last() + self.period == later.next
    }
}

impl Input {
    /// Takes the next cell, and says whether its train goes on; the train behind comes forward with the last one.
    #[inline]
    fn take(&mut self) -> (Cell, bool) {
        let train = &mut self.train;
        train.cells -= 1;
        train.next += train.period;
        let cell = Cell::new(train.label, train.frame, train.cells == 0 && train.ends_frame);
        if train.cells > 0 {
            return (cell, true);
        }
        if let Some(behind) = self.behind.pop_front() {
            *train = behind;
        }
        (cell, false)
    }
}

fn number(input: usize) -> u32 {
    u32::try_from(input).expect("indices fit 32 bits")
}

/// What comes in on one link: the train whose cells arrive now, without cells when there is none, and those behind it.
#[derive(Clone, Debug)]
struct Input {
    train: Train,
    behind: VecDeque<Train>,
}

/// Beyond so many active inputs the bound on effects is taken more simply.
const FEW: usize = 8;

impl Server {
    pub(super) fn new(
        port: Port,
        ties: TieBreaker,
        inputs: usize,
        cell_time: Span,
        timing: Timing,
        leads: impl Iterator<Item = Span>,
        every_cell_matters: bool,
    ) -> Self {
        Self {
            port,
            ties,
            cell_time,
            next_start: Time::default(),
            inputs: vec![Input { train: Train::NONE, behind: VecDeque::new() }; inputs],
            running: VecDeque::new(),
            coming: BinaryHeap::new(),
            together: Vec::new(),
            timing,
            least_lead: leads.min().unwrap_or(cell_time),
            every_cell_matters,
        }
    }

    /// Whether a cell's departure is known only as it happens.
    pub(super) fn departs_late(&self) -> bool {
        self.timing.departs_late
    }

    /// A train will arrive on an input, behind those already there. The earliest effect it can have elsewhere.
    #[inline]
    pub(super) fn join(&mut self, input: usize, train: Train) -> Time {
        let Input { train: head, behind } = &mut self.inputs[input];
        if head.cells == 0 {
            *head = train;
            self.announce(input);
        } else {
            let tail = behind.back_mut().unwrap_or(head);
            if tail.goes_on_with(&train) {
                tail.cells += train.cells;
                tail.ends_frame = train.ends_frame;
            } else {
                behind.push_back(train);
            }
        }
        // Joined to another train or not, it is its own cells that could matter first.
        self.effect_of(if self.every_cell_matters { train.next } else { train.last() })
    }

    /// The earliest instant at which what this port has not yet worked on can have an effect elsewhere.
    pub(super) fn next_effect(&self) -> Option<Time> {
        if self.timing.departs_late && self.port.occupancy() > 0 {
            return Some(self.next_start + self.least_lead);
        }
        let coming = self.coming.iter().map(|entry| entry.0);
        let inputs = self.running.iter().copied().chain(coming);
        let matters = if self.every_cell_matters || self.running.len() + self.coming.len() > FEW {
            self.running.front().copied().into_iter().chain(self.coming.peek().map(|first| first.0)).min()?.0
        } else {
            inputs.map(|(_, input)| self.inputs[input as usize].train.last()).min()?
        };
        Some(self.effect_of(matters))
    }

    /// Works on everything before `until`. `depart` is told of every cell whose departure became known, and when it
    /// starts.
    #[inline]
    pub(super) fn work(&mut self, until: Time, mut depart: impl FnMut(Cell, Time)) {
        while let Some((time, input)) = self.first().filter(|first| first.0 < until) {
            let second = self.running.get(1).map_or(until, |second| second.0.min(until));
            let next = self.coming.peek().map_or(second, |first| first.0.0.min(second));
            if next > time {
                self.running.pop_front();
                self.run_alone(input as usize, next, &mut depart);
            } else {
                self.tie(time, &mut depart);
            }
        }
        if self.timing.departs_late {
            self.serve_before(until, &mut depart);
        }
    }

    /// Lets go of cells whose transmission starts before `until`.
    pub(super) fn serve_before(&mut self, until: Time, depart: &mut impl FnMut(Cell, Time)) {
        while self.next_start < until {
            let Some(cell) = self.port.take() else { break };
            if self.timing.departs_late {
                depart(cell, self.next_start);
            }
            self.next_start += self.cell_time;
        }
    }

    /// Cells of one input, as long as no other comes before `until` or with them.
    #[inline]
    fn run_alone(&mut self, input: usize, until: Time, depart: &mut impl FnMut(Cell, Time)) {
        loop {
            let now = self.inputs[input].train.next;
            if now >= until {
                self.go_on(now, input);
                return;
            }
            let (cell, goes_on) = self.inputs[input].take();
            self.catch_up(now, depart);
            self.arrive(now, cell, depart);
            if !goes_on {
                self.announce(input);
                return;
            }
        }
    }

    /// Cells that arrive in the same instant.
    fn tie(&mut self, now: Time, depart: &mut impl FnMut(Cell, Time)) {
        let mut together = std::mem::take(&mut self.together);
        while let Some((_, input)) = self.first().filter(|first| first.0 == now) {
            self.running.pop_front();
            let (cell, goes_on) = self.inputs[input as usize].take();
            together.push((input, cell));
            if goes_on {
                self.go_on(self.inputs[input as usize].train.next, input as usize);
            } else {
                self.announce(input as usize);
            }
        }
        self.ties.order(&mut together, |&(input, _)| input);
        self.catch_up(now, depart);
        for (_, cell) in together.drain(..) {
            self.arrive(now, cell, depart);
        }
        self.together = together;
    }

    /// What has left before the arrivals of `now`: what starts in that very instant only where service comes first.
    #[inline]
    fn catch_up(&mut self, now: Time, depart: &mut impl FnMut(Cell, Time)) {
        let before = if self.timing.serve_first { now + Span(1) } else { now };
        self.serve_before(before, depart);
    }

    #[inline]
    fn arrive(&mut self, now: Time, cell: Cell, depart: &mut impl FnMut(Cell, Time)) {
        if self.port.occupancy() == 0 {
            self.next_start = self.next_start.max(now);
        }
        if self.port.offer(cell) && !self.timing.departs_late {
            depart(cell, self.next_start + self.cell_time * u64::from(self.port.occupancy() - 1));
        }
    }

    /// The input whose next cell comes first; a train whose time has come is under way from now on.
    #[inline]
    fn first(&mut self) -> Option<(Time, u32)> {
        if let Some(&Reverse(coming)) = self.coming.peek()
            && self.running.front().is_none_or(|running| coming < *running)
        {
            self.coming.pop();
            self.running.push_front(coming);
        }
        self.running.front().copied()
    }

    /// An input's train, if it has one, is still to begin.
    #[inline]
    fn announce(&mut self, input: usize) {
        let train = &self.inputs[input].train;
        if train.cells > 0 {
            self.coming.push(Reverse((train.next, number(input))));
        }
    }

    /// A train that is under way goes on at `time`. Where all cell times are equal that is after every other's next cell.
    // A hint did not hold when other code grew: left out of line it costs 4 % of all instructions (`make guard`).
    #[allow(clippy::inline_always)]
    #[inline(always)]
    fn go_on(&mut self, time: Time, input: usize) {
        let entry = (time, number(input));
        if self.running.back().is_none_or(|last| entry > *last) {
            self.running.push_back(entry);
        } else {
            let place = self.running.partition_point(|running| *running < entry);
            self.running.insert(place, entry);
        }
    }

    /// When something that arrives at `arrival` can matter elsewhere: not before its transmission could start.
    fn effect_of(&self, arrival: Time) -> Time {
        let backlog = if self.timing.departs_late { 0 } else { u64::from(self.port.occupancy()) };
        arrival.max(self.next_start + self.cell_time * backlog) + self.least_lead
    }
}
