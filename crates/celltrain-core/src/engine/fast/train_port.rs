//! A contended port: trains of cells come in on several links, one cell leaves a cell time.
//!
//! The cells of a frame that left together arrive as an arithmetic sequence, a [`Train`]; the port takes single cells
//! from its trains in the order of their arrival, ties as the scenario says, and offers them to its
//! [`BatchingPort`], which asks the same admission as the reference engine's port. In a first-in first-out queue that
//! loses nothing it has admitted, a cell's departure is known as it is admitted: it starts when everything before it
//! has been sent. So the port is worked on in batches, some time after the instants in question, and never later than
//! the earliest effect these could have anywhere else.

use std::collections::VecDeque;

use typed_index_collections::{TiVec, ti_vec};

use super::batching_port::{self, BatchingPort};
use super::run_queues::ReportGranularity;
use super::turns::{Turn, Turns};
use crate::cell::{Cell, Run};
use crate::index::Label;
use crate::port::Fate;
use crate::scheduler::BacklogSensitivity;
use crate::sizes::size;
use crate::tie::TieBreaker;
use crate::units::{Span, Time};

/// A contended port.
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub(super) struct TrainPort {
    pub(super) port: BatchingPort,
    ties: TieBreaker,
    /// When the next transmission can start: the waiting head's start, or when the link is free.
    next_start: Time,
    /// Set in a port with deferred order once a departure may matter by itself: another contended port follows, or the
    /// run is near its end. From then on each start is reported, not only of cells that end a run.
    reports_each: bool,
    /// The links on which its VCs arrive.
    inputs: Vec<Input>,
    /// Their numbers at the node, which decide ties.
    at_node: Vec<u32>,
    /// Inputs that have a train, by the arrival of its next cell, then by number.
    next: Turns,
    /// A list that is empty between calls, as are `in_step`, `stretch`, `touched` and `tied`: its room is kept.
    together: Vec<(u32, Cell)>,
    in_step: Vec<(u32, Cell)>,
    /// Whether trains that overlap may be admitted one after the other: each VC has a queue of its own, the scheduler
    /// is not [`BacklogSensitivity::Exact`], no cell is marked, no allocator notes arrivals, and arrivals precede the
    /// departure of their instant.
    any_order: bool,
    /// Whether the order in which empty queues fill affects the scheduler.
    fills_in_order: bool,
    /// Whether a queue that is empty for less than a cell time affects the scheduler.
    fills_exactly: bool,
    stretch: Vec<Part>,
    arrivals: Vec<Arrival>,
    /// Cells that have gone from a port that marks, with their starts, as they were marked.
    gone: Vec<(Cell, Time)>,
    /// By label: cells of a frame under way whose departure is known and not yet reported, because it has no effect.
    gathered: TiVec<Label, Run>,
    /// Whether cells of trains that take turns are admitted together: one queue holds all, they leave in the order of
    /// arrival, and the departure of a single cell has no effect.
    interleaves: bool,
    /// The interleaved cells, and their inputs.
    interleaved: Vec<Cell>,
    touched: Vec<u32>,
    tied: Vec<u32>,
    timing: Timing,
    /// The time in which all inputs together bring a million cells if they are as fast as this port.
    most_in_one_go: Span,
}

/// The times that govern a contended port.
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timing {
    /// One cell's transmission.
    pub(super) cell_time: Span,
    /// Least time from the start of a transmission to its first arrival with an effect.
    pub(super) least_lead: Span,
    /// A cell that starts no later than this arrives before the end of the run, on every way.
    pub(super) latest_start: Time,
    /// Whether a cell that does not complete a frame has an effect elsewhere: another contended port may be next.
    pub(super) every_cell_matters: bool,
    /// The departure of an instant comes before its arrivals.
    pub(super) serve_first: bool,
    /// Deferred order: admitted cells may be pushed out again, overtaken or marked, so which cells leave is worked out
    /// later.
    pub(super) defers_order: bool,
    /// Data cells that start while more cells wait are marked (EFCI).
    pub(super) marks_above: Option<u32>,
    /// Whether arrivals are noted, because the port has an allocator.
    pub(super) notes: bool,
}

/// Cells that have arrived, for the port's allocator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) run: Run,
    pub(super) first: Time,
    pub(super) period: Span,
}

/// Cells of one frame that arrive one cell time apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Train {
    /// Arrival of the next one.
    pub(super) next: Time,
    /// From one to the next.
    pub(super) period: Span,
    /// Cells still to come.
    pub(super) cells: u32,
    /// Whether the last of them is the last of the frame.
    pub(super) ends_frame: bool,
    /// A cell that is not the last, under its label at this port.
    pub(super) cell: Cell,
}

impl Train {
    /// The cells of a run under a new label, the first arriving at `next`.
    #[inline]
    pub(super) fn of(Run { last, cells }: Run, next: Time, period: Span, label: Label) -> Self {
        Self { next, period, cells, ends_frame: last.last_cell(), cell: last.not_last().relabelled(label) }
    }

    #[inline]
    pub(super) fn last(&self) -> Time {
        self.next + self.period * u64::from(self.cells - 1)
    }

    /// How many arrive before `until`, at least one.
    #[inline]
    fn cells_before(&self, until: Time) -> u32 {
        if self.last() < until {
            self.cells
        } else if self.next + self.period >= until {
            1
        } else {
            let in_time = (until - self.next).0.div_ceil(self.period.0);
            u32::try_from(in_time).expect("no more than all")
        }
    }

    /// Takes those that arrive before `until`, at least one.
    #[inline]
    pub(super) fn take_before(&mut self, until: Time) -> Run {
        self.take(self.cells_before(until))
    }

    /// Takes the first `cells`.
    #[inline]
    fn take(&mut self, cells: u32) -> Run {
        self.cells -= cells;
        self.next += self.period * u64::from(cells);
        let ends_frame = self.cells == 0 && self.ends_frame;
        Run { last: if ends_frame { self.cell.ending_frame() } else { self.cell }, cells }
    }

    /// All its cells.
    pub(super) fn run(&self) -> Run {
        Run { last: if self.ends_frame { self.cell.ending_frame() } else { self.cell }, cells: self.cells }
    }

    /// No train.
    const NONE: Train = Train { next: Time(0), period: Span(0), cells: 0, ends_frame: false, cell: Cell::NONE };

    /// Whether a later train of the same frame continues this one in step.
    #[inline]
    pub(super) fn goes_on_with(&self, later: &Train) -> bool {
        // RM cells have numbers of their own, so none is like another.
        self.cell == later.cell && self.period == later.period && self.last() + self.period == later.next
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
    /// Cells of the train that are being interleaved, and the arrival of the first.
    interleaved: u32,
    interleaved_since: Time,
}

impl Input {
    /// Nothing comes in.
    const NONE: Input =
        Input { train: Train::NONE, behind: VecDeque::new(), interleaved: 0, interleaved_since: Time(0) };
}

/// Cells of one train that arrive in a stretch of several.
#[derive(Clone, Copy, Debug)]
struct Part {
    input: u32,
    cells: u32,
    /// Arrival of the first.
    first: Time,
    /// The arrival within a period: parts of equal phase tie in every common round.
    phase: Span,
    /// The first one's round, counted from the beginning of the stretch.
    round: u32,
}

/// The queue while cells that take turns join it.
struct Line {
    waiting: u32,
    /// When the first that waits starts, or the next that comes.
    next_start: Time,
    /// The most that waited after one joined.
    peak: u32,
    gone: u32,
}

/// Memory of a contended port beside its [`BatchingPort`]. Four of its working lists are counted at their first
/// capacity.
pub(super) const BYTES: u64 = size::<TrainPort>() - batching_port::BYTES + 4 * (4 * size::<Arrival>() + 16);
/// Memory of an input, its number at the node and that of its link; its turn is apart.
pub(super) const BYTES_PER_INPUT: u64 = size::<Input>() + 4 + 4;
/// Memory of a VC beside that at the [`BatchingPort`].
pub(super) const BYTES_PER_VC: u64 = size::<Run>();

/// No run.
const NOTHING: Run = Run { last: Cell::NONE, cells: 0 };

/// A train with more cells in a row than this is handled alone.
const FEW_IN_A_ROW: u32 = 4;

/// A port handles this many cells in some ten milliseconds. The number is small in tests, so that every comparison of
/// engines also checks that it has no effect.
const CELLS_IN_ONE_GO: u64 = if cfg!(test) { 1 << 10 } else { 1 << 20 };

/// With more active inputs than this, a simpler bound on effects is used.
const FEW: usize = 8;

impl TrainPort {
    /// A port that so many VCs cross; `at_node` has the numbers of its inputs among those of the node, in order.
    pub(super) fn new(port: BatchingPort, ties: TieBreaker, vcs: usize, at_node: Vec<u32>, timing: Timing) -> Self {
        Self {
            any_order: port.keeps_vcs_apart().is_some_and(|sensitivity| sensitivity != BacklogSensitivity::Exact)
                && timing.marks_above.is_none()
                && !timing.notes
                // An arrival at an empty queue would come before the departure of its instant.
                && !timing.serve_first,
            fills_in_order: port.keeps_vcs_apart() == Some(BacklogSensitivity::Order),
            fills_exactly: port.fills_exactly(),
            stretch: Vec::new(),
            interleaves: !timing.defers_order && !port.merges() && !timing.every_cell_matters,
            interleaved: Vec::new(),
            touched: Vec::new(),
            tied: Vec::new(),
            port,
            ties,
            next_start: Time::default(),
            reports_each: false,
            inputs: vec![Input::NONE; at_node.len()],
            next: Turns::new(at_node.len()),
            most_in_one_go: Span(timing.cell_time.0.saturating_mul(CELLS_IN_ONE_GO.div_ceil(1 + at_node.len() as u64))),
            at_node,
            together: Vec::new(),
            in_step: Vec::new(),
            arrivals: Vec::new(),
            gone: Vec::new(),
            gathered: ti_vec![NOTHING; vcs],
            timing,
        }
    }

    /// Whether the order of departures is worked out later than the admission.
    pub(super) fn defers_order(&self) -> bool {
        self.timing.defers_order
    }

    /// Adds a train behind those on an input. Returns its earliest effect elsewhere, where that may come before the
    /// effects of earlier trains.
    #[inline]
    pub(super) fn join(&mut self, input: usize, train: Train) -> Option<Time> {
        let Input { train: head, behind, .. } = &mut self.inputs[input];
        if head.cells == 0 {
            *head = train;
            self.next.put(Turn::new(train.next, number(input)));
        } else {
            let tail = behind.back_mut().unwrap_or(head);
            if tail.goes_on_with(&train) {
                tail.cells += train.cells;
                tail.ends_frame = train.ends_frame;
            } else {
                behind.push_back(train);
            }
            if self.timing.every_cell_matters {
                return None;
            }
        }
        // The new cells alone can bring the earliest effect forward, whether they were joined to a train or not.
        Some(self.effect_of(&train))
    }

    /// Removes the last cells due on an input, which have not started.
    pub(super) fn take_back(&mut self, input: usize, mut cells: u32) {
        let Input { train: head, behind, .. } = &mut self.inputs[input];
        while cells > 0 {
            let tail = behind.back_mut().unwrap_or(head);
            let taken = cells.min(tail.cells);
            tail.cells -= taken;
            tail.ends_frame = false;
            cells -= taken;
            if tail.cells == 0 && behind.pop_back().is_none() {
                assert_eq!(cells, 0, "no more is taken back than was to come");
                self.next.remove(number(input));
            }
        }
    }

    /// The arrivals noted since the last call.
    pub(super) fn arrivals(&mut self) -> impl Iterator<Item = Arrival> {
        self.arrivals.drain(..)
    }

    /// Notes cells that arrive, for the port's allocator.
    #[inline]
    fn note(&mut self, run: Run, first: Time, period: Span) {
        if self.timing.notes {
            self.arrivals.push(Arrival { run, first, period });
        }
    }

    /// The earliest instant at which unsettled arrivals of this port can have an effect elsewhere.
    pub(super) fn next_effect(&self) -> Option<Time> {
        let to_come = if self.next.len() == 0 {
            None
        } else if self.timing.every_cell_matters || self.next.len() > FEW {
            Some(self.effect_at(self.next.first().time(), 0))
        } else {
            self.next.iter().map(|turn| self.effect_of_input(&self.inputs[turn.input() as usize])).min()
        };
        if !self.timing.defers_order || self.port.ready() == 0 {
            return to_come;
        }
        let ahead = if self.timing.every_cell_matters { 0 } else { self.port.least_to_an_end() - 1 };
        let of_waiting = self.next_start + self.timing.cell_time * u64::from(ahead) + self.timing.least_lead;
        Some(to_come.map_or(of_waiting, |to_come| to_come.min(of_waiting)))
    }

    /// The end of the next batch, given that everything before `since` is settled: `until`, or earlier where the batch
    /// could take too long for an interrupt.
    #[inline]
    pub(super) fn reach(&self, since: Time, until: Time) -> Time {
        let waits_late = self.timing.defers_order && self.port.ready() > 0;
        let from = if waits_late { self.next.first().time().min(self.next_start) } else { self.next.first().time() };
        let from = from.max(since);
        if from >= until || until - from <= self.most_in_one_go { until } else { from + self.most_in_one_go }
    }

    /// Settles everything before `until`. `depart` receives the cells whose departure became known: the start of the
    /// first, and the period.
    #[inline]
    pub(super) fn work(&mut self, until: Time, mut depart: impl FnMut(Run, Time, Span)) {
        loop {
            let first = self.next.first();
            let (now, input) = (first.time(), first.input());
            if now >= until {
                break;
            }
            let other = self.next.at(1).time().min(until);
            let overlap = self.any_order && other < until && other <= self.inputs[input as usize].train.last();
            if overlap && self.admit_stretch(now, until, &mut depart) {
                continue;
            }
            if self.interleaves && self.takes_turns(until) && self.interleave(until, &mut depart) {
                continue;
            }
            if other == now {
                self.tie(now, until, &mut depart);
            } else {
                let (run, period) = self.take_first(input, other);
                self.arrive_in_step(now, period, run, &mut depart);
            }
        }
        if self.timing.defers_order {
            self.serve_before(until);
            self.report_departures(&mut depart);
        }
    }

    /// Whether the next cells of the first train, or of the trains that tie with it, interleave with other trains.
    #[inline]
    fn takes_turns(&self, until: Time) -> bool {
        let first = self.next.first();
        let (tied, later) = self.next.tied();
        tied < self.next.len()
            && !self.is_alone(first.input(), if tied > 1 { 1 } else { FEW_IN_A_ROW }, later.min(until))
    }

    /// Whether more than `cells` cells of an input's train come before another's.
    #[inline]
    fn is_alone(&self, input: u32, cells: u32, other: Time) -> bool {
        let train = &self.inputs[input as usize].train;
        train.cells > cells && train.next + train.period * u64::from(cells) < other
    }

    /// Interleaves trains up to `until`, or to the first cell that is one of many in a row, asks the policy, finds no
    /// room, or may be too late for the end of the run. Returns whether any cell was admitted.
    ///
    /// Single cells change only the queue's length and the order of arrivals. Work for one train is done for all of its
    /// cells at the end of the train or of the stretch.
    #[inline(never)]
    fn interleave(&mut self, until: Time, depart: &mut impl FnMut(Run, Time, Span)) -> bool {
        let mut line = Line { waiting: self.port.occupancy(), next_start: self.next_start, peak: 0, gone: 0 };
        let capacity = self.port.capacity();
        loop {
            let (first, second) = (self.next.first(), self.next.at(1));
            let now = first.time();
            if now >= until {
                break;
            }
            self.pass(&mut line, now);
            if second.time() == now {
                if !self.interleave_tied(&mut line, until, depart) {
                    break;
                }
                continue;
            }
            let start = self.start(&line);
            let input = first.input();
            if line.waiting >= capacity
                || start > self.timing.latest_start
                || (self.inputs[input as usize].interleaved == 0 && !self.is_welcome(input))
            {
                break;
            }
            match self.interleave_one(input, now, start, &mut line, depart) {
                Some(next) => {
                    let is_first = self.next.put_back_first(Turn::new(next, input));
                    if is_first && self.is_alone(input, FEW_IN_A_ROW, second.time().min(until)) {
                        break;
                    }
                }
                None => self.next.pop_first(),
            }
        }
        if self.interleaved.is_empty() {
            return false;
        }
        self.next_start = line.next_start;
        let mut touched = std::mem::take(&mut self.touched);
        for input in touched.drain(..) {
            let Input { train, interleaved, interleaved_since, .. } = &mut self.inputs[input as usize];
            // A train that has ended since may have none left.
            if *interleaved > 0 {
                let (first, period) = (*interleaved_since, train.period);
                let run = Run { last: train.cell, cells: std::mem::take(interleaved) };
                self.end_turns(run, first, period);
                self.gather(run, depart);
            }
        }
        self.touched = touched;
        self.port.admit_in_turns(&self.interleaved, line.peak, line.gone);
        self.interleaved.clear();
        true
    }

    /// Interleaves the cells that tie at the first instant. Returns false, with nothing done, if one of them lacks room
    /// or ends the stretch for another reason ([`TrainPort::interleave`]).
    #[inline(never)]
    fn interleave_tied(&mut self, line: &mut Line, until: Time, depart: &mut impl FnMut(Run, Time, Span)) -> bool {
        let (tied, _) = self.next.tied();
        let now = self.next.first().time();
        let with_all = u64::from(line.waiting) + tied as u64;
        if !self.takes_turns(until)
            || with_all > u64::from(self.port.capacity())
            || line.next_start + self.timing.cell_time * (with_all - 1) > self.timing.latest_start
            || !(0..tied).all(|i| self.is_welcome(self.next.at(i).input()))
        {
            return false;
        }
        let mut together = std::mem::take(&mut self.tied);
        for _ in 0..tied {
            together.push(self.next.first().input());
            self.next.pop_first();
        }
        self.ties.order(&mut together, |&input| self.at_node[input as usize]);
        for input in together.drain(..) {
            let start = self.start(line);
            if let Some(next) = self.interleave_one(input, now, start, line, depart) {
                self.next.put(Turn::new(next, input));
            }
        }
        self.tied = together;
        true
    }

    /// The next cell of an input, which arrives `now`; the arrival of the one after.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a cell that takes turns")]
    fn interleave_one(
        &mut self,
        input: u32,
        now: Time,
        start: Time,
        line: &mut Line,
        depart: &mut impl FnMut(Run, Time, Span),
    ) -> Option<Time> {
        let Input { train, interleaved, interleaved_since, .. } = &mut self.inputs[input as usize];
        if *interleaved == 0 {
            if !train.cell.is_rm() {
                // Uses up the start of a frame, if this is one; no policy is asked (`is_welcome`).
                self.port.fate(train.cell);
            }
            *interleaved_since = now;
            self.touched.push(input);
        }
        line.waiting += 1;
        line.peak = line.peak.max(line.waiting);
        self.port.follow(train.cell.label(), line.gone);
        *interleaved += 1;
        train.cells -= 1;
        train.next = now + train.period;
        if train.cells == 0 {
            return self.end_train(input, start, depart);
        }
        let (cell, next) = (train.cell, train.next);
        self.interleaved.push(cell);
        Some(next)
    }

    /// Ends a train whose last cell has been interleaved; returns the start of the next train on its input.
    #[inline(never)]
    fn end_train(&mut self, input: u32, start: Time, depart: &mut impl FnMut(Run, Time, Span)) -> Option<Time> {
        let Input { train, behind, interleaved, interleaved_since } = &mut self.inputs[input as usize];
        let last = if train.ends_frame { train.cell.ending_frame() } else { train.cell };
        let (first, period) = (*interleaved_since, train.period);
        let run = Run { last, cells: std::mem::take(interleaved) };
        let next = behind.pop_front().map(|next| {
            *train = next;
            next.next
        });
        self.interleaved.push(last);
        self.end_turns(run, first, period);
        if last.is_rm() || last.last_cell() {
            // Cells of the frame that were gathered before go with the last one.
            let gathered = &mut self.gathered[last.label()];
            let cells = if gathered.goes_on_with(run) { std::mem::replace(gathered, NOTHING).cells } else { 0 };
            self.report_gathered(last.label(), depart);
            depart(Run { last, cells: cells + run.cells }, start, Span(0));
        } else {
            self.gather(run, depart);
        }
        next
    }

    /// Counts the cells of a line that left before the arrivals of `now`. There are rarely more than two, and a branch
    /// could not predict none, one or two, so these are counted without branches.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a cell that takes turns")]
    fn pass(&self, line: &mut Line, now: Time) {
        let until = now + Span(u64::from(self.timing.serve_first));
        for _ in 0..2 {
            let one = u32::from(line.next_start < until) & u32::from(line.waiting > 0);
            line.next_start += self.timing.cell_time * u64::from(one);
            line.waiting -= one;
            line.gone += one;
        }
        while line.next_start < until && line.waiting > 0 {
            line.next_start += self.timing.cell_time;
            line.waiting -= 1;
            line.gone += 1;
        }
        let start_anew = if line.waiting == 0 { now } else { Time(0) };
        line.next_start = line.next_start.max(start_anew);
    }

    /// When one that joins a line starts.
    #[inline]
    fn start(&self, line: &Line) -> Time {
        line.next_start + self.timing.cell_time * u64::from(line.waiting)
    }

    /// Whether the next cell of an input is admitted if there is room for it.
    #[inline]
    fn is_welcome(&self, input: u32) -> bool {
        let Input { train, interleaved, .. } = &self.inputs[input as usize];
        *interleaved > 0 || train.cell.is_rm() || self.port.admits_unasked(train.cell.label())
    }

    /// Work for the interleaved cells of one train, except their departure.
    #[inline]
    fn end_turns(&mut self, run: Run, first: Time, period: Span) {
        self.port.count_in_turns(run);
        self.note(run, first, period);
    }

    /// Hands on the cells whose transmission starts before `until`.
    #[inline]
    fn serve_before(&mut self, until: Time) {
        if let Some(most) = self.timing.marks_above {
            self.mark_before(until, most);
            return;
        }
        let waiting = self.port.ready();
        let mut gone = 0;
        while self.next_start < until && gone < waiting {
            self.next_start += self.timing.cell_time;
            gone += 1;
        }
        if gone > 0 {
            self.port.defer_dequeue(gone);
        }
    }

    /// The same, one by one, where cells that leave behind them more than `most` are marked.
    fn mark_before(&mut self, until: Time, most: u32) {
        while self.next_start < until {
            let Some(cell) = self.port.take() else { break };
            let marked = !cell.is_rm() && self.port.occupancy() > most;
            self.gone.push((if marked { cell.with_efci(true) } else { cell }, self.next_start));
            self.next_start += self.timing.cell_time;
        }
    }

    /// Reports which cells have gone from a port with deferred order. The link was never idle since it last did.
    #[inline(never)]
    fn report_departures(&mut self, depart: &mut impl FnMut(Run, Time, Span)) {
        for (cell, start) in self.gone.drain(..) {
            depart(Run { last: cell, cells: 1 }, start, self.timing.cell_time);
        }
        let gone = self.port.deferred_dequeues();
        if gone == 0 {
            return;
        }
        let cell_time = self.timing.cell_time;
        let first_start = Time(self.next_start.0 - cell_time.0 * u64::from(gone));
        if !self.reports_each && (self.timing.every_cell_matters || self.next_start > self.timing.latest_start) {
            self.reports_each = true;
            self.port.report_parts(|run| depart(run, first_start, Span(0)));
        }
        let start = |after: u32| first_start + cell_time * u64::from(after);
        if self.reports_each {
            self.port.report_departures(ReportGranularity::Each, |run, after| depart(run, start(after), cell_time));
        } else {
            self.port.report_departures(ReportGranularity::Runs, |run, after| depart(run, start(after), Span(0)));
        }
    }

    /// Brings the counts to `until`; everything before it is settled.
    pub(super) fn look_at(&mut self, until: Time) {
        self.serve_before(until);
        self.port.dequeue_deferred();
    }

    /// Takes the cells of the first input that arrive before `until`, at least one, and the time from one to the next.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a train; the call costs 2 % of a plain run")]
    fn take_first(&mut self, input: u32, until: Time) -> (Run, Span) {
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

    /// Cells that arrive in the same instant, `now`, and at once those that arrive together with them again and again
    /// as long as nothing else comes before `until`.
    fn tie(&mut self, now: Time, until: Time, depart: &mut impl FnMut(Run, Time, Span)) {
        if self.timing.defers_order {
            // The queue holds cells that were put in early and do not wait yet.
            self.catch_up(now);
        }
        let (tied, other) = self.next.tied();
        let other = other.min(until);
        let rounds = self.rounds_in_step(now, tied, other);
        if rounds > 1 {
            self.keep_step(now, tied, rounds, depart);
            return;
        }
        let mut together = std::mem::take(&mut self.together);
        for _ in 0..tied {
            let input = self.next.first().input();
            let (run, _) = self.take_first(input, now + Span(1));
            together.push((input, run.last));
        }
        self.ties.order(&mut together, |&(input, _)| self.at_node[input as usize]);
        self.catch_up(now);
        for (_, cell) in together.drain(..) {
            self.note(Run { last: cell, cells: 1 }, now, Span(0));
            self.arrive(now, cell, depart);
        }
        self.together = together;
    }

    /// Admits all cells of trains that overlap, from `now` on, train after train, and draws for their ties. It ends at
    /// `until`, or before the first train for which the result might differ from single admission. Returns whether any
    /// train was admitted.
    ///
    /// Arrivals no further apart than a cell time keep the link busy, and between one of them and the last one no more
    /// cells leave than arrive: the queue is largest with the last. The early presence of a train's cells changes
    /// nothing ([`TrainPort::admit_deferred`]), whatever other VCs' cells come meanwhile.
    #[inline(never)]
    fn admit_stretch(&mut self, now: Time, until: Time, depart: &mut impl FnMut(Run, Time, Span)) -> bool {
        let cell_time = self.timing.cell_time;
        let (mut until, mut busy_until, mut period) = (until, now, None);
        let mut trains = 0;
        for turn in self.next.iter() {
            let (first, input) = (turn.time(), turn.input());
            if first >= until {
                break;
            }
            let Input { train, behind, .. } = &self.inputs[input as usize];
            let in_step = train.cells == 1 || train.period == *period.get_or_insert(train.period);
            let is_known = in_step
                && train.period <= cell_time
                && !train.cell.is_rm()
                && first <= busy_until
                && (!self.fills_in_order || trains == 0 || self.has_cells_until(first, train.cell.label()))
                && self.port.admits_unasked(train.cell.label());
            if !is_known {
                until = first;
                break;
            }
            if let Some(next) = behind.front() {
                until = until.min(next.next);
            }
            busy_until = busy_until.max(train.last() + cell_time);
            trains += 1;
        }
        if trains < 2 {
            return false;
        }
        let period = period.unwrap_or(cell_time);
        let (mut cells, mut last_arrival) = (0, now);
        let mut stretch = std::mem::take(&mut self.stretch);
        for turn in self.next.iter().take(trains) {
            let (first, input) = (turn.time(), turn.input());
            if first >= until {
                break;
            }
            let train = &self.inputs[input as usize].train;
            let of_train = train.cells_before(until);
            cells += of_train;
            last_arrival = last_arrival.max(first + train.period * u64::from(of_train - 1));
            let (round, phase) = ((first - now).0 / period.0, Span((first - now).0 % period.0));
            let round = u32::try_from(round).expect("a stretch has fewer than 2^32 rounds");
            stretch.push(Part { input, cells: of_train, first, phase, round });
        }
        self.catch_up(now);
        if stretch.len() < 2 || cells > self.port.capacity() - self.port.occupancy() {
            stretch.clear();
            self.stretch = stretch;
            return false;
        }
        self.start_anew_if_idle(now, depart);
        let starts = last_arrival.0.saturating_sub(self.next_start.0).div_ceil(cell_time.0);
        let with_last = self.port.occupancy() + cells;
        let gone = u32::try_from(starts).unwrap_or(u32::MAX).min(with_last - 1);
        let peak = with_last - gone;
        for _ in &stretch {
            self.next.pop_first();
        }
        for &Part { input, cells, first, .. } in &stretch {
            let Input { train, behind, .. } = &mut self.inputs[input as usize];
            let run = train.take(cells);
            if train.cells == 0 {
                *train = behind.pop_front().unwrap_or(Train::NONE);
            }
            if train.cells > 0 {
                let next = train.next;
                self.next.put(Turn::new(next, input));
            }
            self.catch_up(first);
            if self.port.must_report_before(run.last.label()) {
                self.report_departures(depart);
            }
            let fate = self.port.fate(run.last);
            debug_assert_eq!(fate, Fate::Admitted, "no policy is asked within a stretch");
            self.port.admit(run, peak, 0);
        }
        self.pass_over_ties(&mut stretch);
        stretch.clear();
        self.stretch = stretch;
        true
    }

    /// Whether a VC's queue certainly does not run empty up to an instant.
    fn has_cells_until(&self, until: Time, label: Label) -> bool {
        let starts = until.0.saturating_sub(self.next_start.0) / self.timing.cell_time.0 + 1;
        u64::from(self.port.least_ahead(label)) > starts
    }

    /// Draws for the ties of a stretch, in order of time.
    fn pass_over_ties(&mut self, stretch: &mut [Part]) {
        stretch.sort_unstable_by_key(|part| part.phase);
        if stretch.windows(2).all(|two| two[0].phase != two[1].phase) {
            return;
        }
        let rounds = stretch.iter().map(|part| part.round + part.cells).max().unwrap_or(0);
        for round in 0..rounds {
            let (mut phase, mut tied) = (Span(0), 0);
            for part in &*stretch {
                if part.phase != phase {
                    self.ties.pass_over(tied);
                    (phase, tied) = (part.phase, 0);
                }
                tied += u32::from(round.wrapping_sub(part.round) < part.cells);
            }
            self.ties.pass_over(tied);
        }
    }

    /// How often the cells of the first `tied` inputs arrive together, from `now` on and before `until`, all of them
    /// admitted, none of them the first or the last of a frame and all in time for the end of the run; 0 where each
    /// departure is reported as its cell arrives.
    fn rounds_in_step(&self, now: Time, tied: usize, until: Time) -> u32 {
        if self.timing.every_cell_matters && !self.timing.defers_order {
            return 0;
        }
        let period = self.inputs[self.next.first().input() as usize].train.period;
        let (mut rounds, mut cells) = (u32::MAX, 0);
        for turn in self.next.iter().take(tied) {
            let train = &self.inputs[turn.input() as usize].train;
            if train.cells == 1 || train.period != period || !self.port.passes(train.cell.label()) {
                return 0;
            }
            rounds = rounds.min(train.cells - 1);
            cells += 1;
        }
        let whole = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let room = (self.port.capacity() - self.port.occupancy()) / cells;
        // A round delays the end of the queue by at most its cells' transmission, or its own length.
        let a_round = (self.timing.cell_time.0 * u64::from(cells)).max(period.0);
        let before_the_end = self.timing.latest_start.0.saturating_sub(self.tail_start().max(now).0) / a_round;
        rounds.min(room).min(whole((until - now).0.div_ceil(period.0))).min(whole(before_the_end))
    }

    /// So many rounds of the `tied` inputs that come first.
    fn keep_step(&mut self, now: Time, tied: usize, rounds: u32, depart: &mut impl FnMut(Run, Time, Span)) {
        let mut in_step = std::mem::take(&mut self.in_step);
        let mut together = std::mem::take(&mut self.together);
        let cell = |turn: Turn| (turn.input(), self.inputs[turn.input() as usize].train.cell);
        in_step.extend(self.next.iter().take(tied).map(cell));
        let period = self.inputs[in_step[0].0 as usize].train.period;
        let mut at = now;
        for _ in 0..rounds {
            together.extend_from_slice(&in_step);
            self.ties.order(&mut together, |&(input, _)| self.at_node[input as usize]);
            self.catch_up(at);
            self.start_anew_if_idle(at, depart);
            if self.timing.defers_order && together.iter().any(|&(_, cell)| self.port.must_report_before(cell.label()))
            {
                self.report_departures(depart);
            }
            self.port.admit_round(together.iter().map(|&(_, cell)| cell));
            together.clear();
            at += period;
        }
        // None of them completes a frame, so it is enough to report them all with the start of the last.
        let last_start = self.tail_start().0.saturating_sub(self.timing.cell_time.0);
        for (input, cell) in in_step.drain(..) {
            let train = &mut self.inputs[input as usize].train;
            train.cells -= rounds;
            train.next = at;
            self.next.put_back_first(Turn::new(at, input));
            self.note(Run { last: cell, cells: rounds }, now, period);
            if !self.timing.defers_order && !self.port.holds(cell.label()) {
                self.report_gathered(cell.label(), depart);
                depart(Run { last: cell, cells: rounds }, Time(last_start), Span(0));
            }
        }
        self.in_step = in_step;
        self.together = together;
    }

    /// Handles cells that arrive a period apart from `now`, with no other arrival between them.
    #[inline]
    fn arrive_in_step(&mut self, now: Time, period: Span, run: Run, depart: &mut impl FnMut(Run, Time, Span)) {
        self.catch_up(now);
        self.note(run, now, period);
        if run.cells == 1 {
            self.arrive(now, run.last, depart);
            return;
        }
        if self.timing.defers_order && self.port.must_report_before(run.last.label()) {
            self.report_departures(depart);
        }
        match self.port.fate(run.last) {
            Fate::Refused => {
                self.port.refuse(run);
                return;
            }
            Fate::Admitted if self.timing.marks_above.is_none() && self.admit_together(now, period, run, depart) => {
                return;
            }
            Fate::Admitted | Fate::CellByCell => {}
        }
        let mut at = now;
        for cell in run.iter() {
            self.catch_up(at);
            self.arrive(at, cell, depart);
            at += period;
        }
    }

    /// Admits all cells of a run at once, if the result is the same as one by one.
    #[inline]
    fn admit_together(&mut self, now: Time, period: Span, run: Run, depart: &mut impl FnMut(Run, Time, Span)) -> bool {
        if self.timing.defers_order {
            self.admit_deferred(now, period, run, depart)
        } else if self.port.holds(run.last.label()) {
            self.admit_held(now, period, run, depart)
        } else {
            self.admit_in_step(now, period, run, depart)
        }
    }

    /// Admits all cells of a run at once, unless the buffer would be full for one of them.
    ///
    /// With starts `s_i = max(a_i, s_{i-1} + T)` and arrivals a period `P` apart, `s_i - a_i` only grows (`P < T`) or
    /// only shrinks to nothing (`P >= T`); so does the queue, and its largest is at one of the ends.
    #[inline]
    fn admit_in_step(&mut self, now: Time, period: Span, run: Run, depart: &mut impl FnMut(Run, Time, Span)) -> bool {
        let behind = u64::from(run.cells - 1);
        let last_arrival = now + period * behind;
        let first_start = self.tail_start().max(now);
        let in_a_row = first_start + self.timing.cell_time * behind;
        let last_start = in_a_row.max(last_arrival);
        // Of those that wait, frames that are not yet whole stay.
        let ready = self.port.ready();
        let held = self.port.occupancy() - ready;
        let ready_at_last =
            if period == self.timing.cell_time { ready + 1 } else { self.waiting_with(last_start, last_arrival) };
        let peak = ready_at_last.max(ready + 1) + held;
        if peak > self.port.capacity() {
            return false;
        }
        let gone = ready + run.cells - ready_at_last;
        if !self.port.enters_at_once(run.last.label(), gone, period <= self.timing.cell_time) {
            return false;
        }
        self.report_gathered(run.last.label(), depart);
        self.port.admit(run, peak, gone);
        self.next_start = Time(last_start.0 - self.timing.cell_time.0 * u64::from(ready_at_last - 1));
        if last_start == in_a_row {
            depart(run, first_start, self.timing.cell_time);
            return true;
        }
        // The queue runs empty under way: from then on every cell starts as it arrives.
        let in_a_row = (first_start - now).0 / (period.0 - self.timing.cell_time.0) + 1;
        let first = run.first(u32::try_from(in_a_row).expect("fewer than all"));
        depart(first, first_start, self.timing.cell_time);
        depart(Run { cells: run.cells - first.cells, ..run }, now + period * in_a_row, period);
        true
    }

    /// Admits a run where the order is deferred. How many wait does not depend on which of them goes first.
    ///
    /// The i-th of them is sent no sooner than i cell times after the next start, and so has arrived by then if they
    /// arrive a cell time apart or closer: that it is there already changes nothing. Neither does it if cells of the
    /// same queue will still wait when the last of them arrives.
    #[inline(never)]
    fn admit_deferred(&mut self, now: Time, period: Span, run: Run, depart: &mut impl FnMut(Run, Time, Span)) -> bool {
        self.start_anew_if_idle(now, depart);
        let behind = u64::from(run.cells - 1);
        let last_arrival = now + period * behind;
        let at_first = self.port.occupancy() + 1;
        let at_last = if period == self.timing.cell_time {
            at_first
        } else {
            let last_start = (self.tail_start() + self.timing.cell_time * behind).max(last_arrival);
            self.waiting_with(last_start, last_arrival)
        };
        let peak = at_first.max(at_last);
        let gone = at_first + run.cells - 1 - at_last;
        let is_close = period <= self.timing.cell_time && !self.fills_exactly;
        let in_time = is_close || self.port.least_ahead(run.last.label()) >= gone;
        if peak > self.port.capacity() || !in_time {
            return false;
        }
        self.port.admit(run, peak, 0);
        true
    }

    /// Admits a run of a VC whose frames wait until they are whole. Its cells only come while others go, so the queue
    /// shrinks or stays until all others have gone and grows from then on, or only grows: its largest is at one of the
    /// ends.
    #[inline(never)]
    fn admit_held(&mut self, now: Time, period: Span, run: Run, depart: &mut impl FnMut(Run, Time, Span)) -> bool {
        let last_arrival = now + period * u64::from(run.cells - 1);
        let until = if self.timing.serve_first { last_arrival + Span(1) } else { last_arrival };
        let ready = self.port.ready();
        let starts = (until.0.saturating_sub(self.next_start.0)).div_ceil(self.timing.cell_time.0);
        let gone = u32::try_from(starts).unwrap_or(ready).min(ready);
        let at_first = self.port.occupancy() + 1;
        let at_last = at_first + run.cells - 1 - gone;
        let peak = at_first.max(at_last);
        if peak > self.port.capacity() {
            return false;
        }
        self.next_start += self.timing.cell_time * u64::from(gone);
        self.port.admit(run, peak, gone);
        if run.last.last_cell() {
            if gone == ready {
                self.next_start = self.next_start.max(last_arrival);
            }
            self.release(self.next_start + self.timing.cell_time * u64::from(ready - gone), depart);
        }
        true
    }

    /// Reports the frame that the latest arrival completed; it starts at `start`.
    #[inline]
    fn release(&mut self, mut start: Time, depart: &mut impl FnMut(Run, Time, Span)) {
        for run in self.port.released() {
            depart(run, start, self.timing.cell_time);
            start += self.timing.cell_time * u64::from(run.cells);
        }
    }

    /// How many cells wait when one has just arrived that will start at `start`, itself among them.
    fn waiting_with(&self, start: Time, arrival: Time) -> u32 {
        let ahead = (start - arrival).0;
        let gone_at_once = u64::from(self.timing.serve_first && ahead > 0);
        u32::try_from((ahead - gone_at_once) / self.timing.cell_time.0 + 1).expect("a queue stays below 2^32 cells")
    }

    /// Removes the cells that left before the arrivals of `now`, and the one that starts at `now` if service comes
    /// first.
    #[inline]
    fn catch_up(&mut self, now: Time) {
        self.serve_before(if self.timing.serve_first { now + Span(1) } else { now });
    }

    /// When all that wait will have been sent, if nothing else comes.
    #[inline]
    fn tail_start(&self) -> Time {
        self.next_start + self.timing.cell_time * u64::from(self.port.ready())
    }

    /// An idle port starts a cell that arrives at `now` at once, or when the link is free.
    #[inline]
    fn start_anew_if_idle(&mut self, now: Time, depart: &mut impl FnMut(Run, Time, Span)) {
        if self.port.ready() == 0 && self.next_start < now {
            if self.timing.defers_order {
                self.report_departures(depart);
            }
            self.next_start = now;
        }
    }

    #[inline]
    fn arrive(&mut self, now: Time, cell: Cell, depart: &mut impl FnMut(Run, Time, Span)) {
        self.start_anew_if_idle(now, depart);
        if self.timing.defers_order {
            if self.port.must_report_before(cell.label()) {
                self.report_departures(depart);
            }
            self.port.offer(cell);
            return;
        }
        let start = self.tail_start();
        if !self.port.offer(cell) {
            return;
        }
        if self.port.merges() {
            self.release(start, depart);
        } else {
            self.depart_one(cell, start, depart);
        }
    }

    /// Reports an admitted cell's start. Where only whole frames matter, it does so if the cell ends a frame, is an RM
    /// cell or may be too late for the end of the run; other cells are gathered.
    #[inline]
    fn depart_one(&mut self, cell: Cell, start: Time, depart: &mut impl FnMut(Run, Time, Span)) {
        let run = Run { last: cell, cells: 1 };
        let matters = cell.last_cell() || cell.is_rm() || start > self.timing.latest_start;
        if matters || self.timing.every_cell_matters {
            self.report_gathered(cell.label(), depart);
            depart(run, start, self.timing.cell_time);
            return;
        }
        self.gather(run, depart);
    }

    /// Collects cells of a frame under way whose start has no effect.
    #[inline]
    fn gather(&mut self, run: Run, depart: &mut impl FnMut(Run, Time, Span)) {
        let gathered = &mut self.gathered[run.last.label()];
        if gathered.cells > 0 && gathered.goes_on_with(run) {
            gathered.cells += run.cells;
            return;
        }
        self.report_gathered(run.last.label(), depart);
        self.gathered[run.last.label()] = run;
    }

    /// Reports the collected cells of a VC, whose starts have no effect.
    #[inline]
    fn report_gathered(&mut self, label: Label, depart: &mut impl FnMut(Run, Time, Span)) {
        let gathered = &mut self.gathered[label];
        if gathered.cells > 0 {
            depart(std::mem::replace(gathered, NOTHING), Time::default(), Span(0));
        }
    }

    /// Reports all such cells, at the end of the run.
    pub(super) fn report_all_gathered(&mut self, mut depart: impl FnMut(Run, Time, Span)) {
        for label in self.gathered.keys() {
            self.report_gathered(label, &mut depart);
        }
    }

    /// The earliest effect elsewhere of what comes in on a link. Trains behind the first come later; where the order is
    /// deferred, they may leave before it all the same.
    fn effect_of_input(&self, Input { train, behind, .. }: &Input) -> Time {
        let first = self.effect_of(train);
        match behind.front() {
            Some(next) if self.timing.defers_order => first.min(self.effect_at(next.last(), 0)),
            _ => first,
        }
    }

    /// The earliest effect of a train elsewhere.
    fn effect_of(&self, train: &Train) -> Time {
        if self.timing.every_cell_matters {
            return self.effect_at(train.next, 0);
        }
        let ahead = if self.timing.defers_order { self.port.least_ahead(train.cell.label()) } else { 0 };
        self.effect_at(train.last(), ahead)
    }

    /// When something that arrives at `arrival` can matter elsewhere: not before its transmission could start. Where
    /// the order is deferred, `ahead` cells go before it.
    fn effect_at(&self, arrival: Time, ahead: u32) -> Time {
        let ahead = if self.timing.defers_order { ahead } else { self.port.ready() };
        arrival.max(self.next_start + self.timing.cell_time * u64::from(ahead)) + self.timing.least_lead
    }
}
