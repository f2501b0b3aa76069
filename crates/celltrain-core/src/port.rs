//! The output port: one buffer, its per-VC counts, the frame bookkeeping every policy shares, and its counters.
//!
//! Source: `docs/mechanisms.md` 2.0, whose skeleton [`Port::offer`] is. The queue counts waiting cells, not the one in
//! service: [`Port::take`] hands a cell to the transmitter, and it stops being counted.

use std::collections::VecDeque;

use crate::cell::{Cell, Label, Run};
use crate::footprint::{array, size};
use crate::policy::{BufferPolicy, Overflow, View};
use crate::rng::Stream;
use crate::scheduler::{BacklogSensitivity, Queues, ReportGranularity};

/// An output port's buffer with its policy.
pub struct Port {
    capacity: u32,
    /// Cells waiting: those of the queue but for `deferred_dequeues` that go first.
    occupancy: u32,
    max_queue: u32,
    fifo: VecDeque<Run>,
    /// Cells that have gone ([`Port::defer_dequeue`]) and are still to be taken off the queue and the per-VC counts.
    deferred_dequeues: u32,
    counts: Counts,
    vcs: Vec<VcState>,
    refused: Vec<Refused>,
    /// By label where VCs merge, otherwise empty: frames that wait until they are whole.
    held: Vec<Option<Held>>,
    /// Where cells wait instead of in `fifo`, if this is not first in, first out.
    queues: Option<Box<Queues>>,
    /// Whether cells go elsewhere than to the end of `fifo`, VCs merge or there are queues, or the policy follows them.
    apart: bool,
    /// Cells of all of them; those of `occupancy` that cannot be sent yet.
    held_cells: u32,
    /// Runs the latest offer made ready to be sent.
    released: usize,
    /// Cells handed to the transmitter, of all VCs.
    gone: u64,
    /// Of these, those reported to the policy, if it follows cells.
    reported_gone: u64,
    follows: bool,
    policy: Box<dyn BufferPolicy>,
    /// Whether there is a frame the policy could refuse.
    may_refuse_frames: bool,
    overflow: Overflow,
    rng: Stream,
}

/// The fate of the cells offered to a port, for one VC or for all together. At any time `offered` equals the sum of
/// the others and the cells waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Cells that arrived.
    pub offered: u64,
    /// Cells handed to the transmitter.
    pub forwarded: u64,
    /// Cells lost for want of room.
    pub lost_overflow: u64,
    /// Waiting cells pushed out for want of room.
    pub lost_pushed_out: u64,
    /// Cells of frames the policy refused whole.
    pub discarded_frame: u64,
    /// Later cells of frames that had already lost one.
    pub discarded_remainder: u64,
    /// Frames the policy refused whole.
    pub discarded_frames: u64,
    /// Frames that lost a cell for want of room.
    pub cut_frames: u64,
}

impl PortCounters {
    /// Cells lost for want of room, whatever the way.
    pub fn lost(&self) -> u64 {
        self.lost_overflow + self.lost_pushed_out
    }

    /// Cells discarded by decision of the policy.
    pub fn discarded(&self) -> u64 {
        self.discarded_frame + self.discarded_remainder
    }

    /// All VCs of a port together.
    pub fn sum(counters: impl IntoIterator<Item = PortCounters>) -> PortCounters {
        let mut sum = PortCounters::default();
        for counters in counters {
            sum.add(&counters);
        }
        sum
    }

    pub(crate) fn add(&mut self, other: &PortCounters) {
        self.offered += other.offered;
        self.forwarded += other.forwarded;
        self.lost_overflow += other.lost_overflow;
        self.lost_pushed_out += other.lost_pushed_out;
        self.discarded_frame += other.discarded_frame;
        self.discarded_remainder += other.discarded_remainder;
        self.discarded_frames += other.discarded_frames;
        self.cut_frames += other.cut_frames;
    }
}

/// A port at the end of a run, however an engine kept it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortState {
    /// The fate of each VC's cells, by label.
    pub counters: Vec<PortCounters>,
    /// Cells waiting of each VC, by label.
    pub waiting: Vec<u32>,
    /// The largest number of cells that ever waited.
    pub max_queue: u32,
}

/// Waiting cells by VC.
#[derive(Clone, Debug)]
pub struct Counts {
    /// By label.
    per_vc: Vec<u32>,
    /// VCs with at least one.
    active_vcs: u32,
}

impl Counts {
    /// None of any of so many VCs.
    pub fn new(vcs: usize) -> Self {
        Self { per_vc: vec![0; vcs], active_vcs: 0 }
    }

    /// Cells of a VC come.
    #[inline]
    pub fn put(&mut self, label: Label, cells: u32) {
        let count = &mut self.per_vc[label as usize];
        self.active_vcs += u32::from(*count == 0);
        *count += cells;
    }

    /// Cells of a VC go.
    #[inline]
    pub fn take(&mut self, label: Label, cells: u32) {
        let count = &mut self.per_vc[label as usize];
        *count -= cells;
        self.active_vcs -= u32::from(*count == 0);
    }
}

/// The state read for every arriving cell of a VC, beside the count of its waiting cells.
#[derive(Clone, Copy, Debug)]
struct VcState {
    /// Cells that arrived.
    offered: u64,
    /// Frame number of the latest cell.
    current: u32,
    mode: Mode,
    /// The next cell starts a frame: there is no start marker, so this means "the last one seen ended one".
    at_start: bool,
}

/// The waiting cells of a VC's frame that is not yet whole.
#[derive(Clone, Debug, Default)]
struct Held {
    runs: Vec<Run>,
    cells: u32,
}

/// Cells of a VC that were not sent, by reason, as in [`PortCounters`].
#[derive(Clone, Copy, Debug, Default)]
struct Refused {
    overflow: u64,
    pushed_out: u64,
    frame: u64,
    remainder: u64,
    frames: u64,
    cut_frames: u64,
    /// The frame under way is counted among those.
    is_cut: bool,
}

impl Refused {
    fn cells(&self) -> u64 {
        self.overflow + self.pushed_out + self.frame + self.remainder
    }

    fn cut(&mut self) {
        self.cut_frames += u64::from(!std::mem::replace(&mut self.is_cut, true));
    }
}

/// What will become of a VC's next cells ([`Port::fate`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// They are admitted while there is room.
    Admitted,
    /// They are discarded, up to and with the last cell of their frame.
    Refused,
    /// It differs from one to the next: each has to be offered.
    CellByCell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Pass,
    RefuseFrame,
    RefuseRest { keep_last_cell: bool },
}

/// Runs of cells a port reserves room for at its start, in all and for each VC that crosses it; a larger queue grows
/// into its room as it fills. A large network has thousands of ports that one or two VCs cross.
const RESERVED_RUNS: usize = 1 << 14;
const RESERVED_RUNS_PER_VC: usize = 16;

/// The most deferred dequeues before the counts are brought up to date: few enough for their places to be still in the
/// nearest cache.
const MOST_DEFERRED_DEQUEUES: u32 = 256;

/// Memory of a port.
pub(crate) const BYTES: u64 = size::<Port>();
/// Memory of a VC that crosses it.
pub(crate) const BYTES_PER_VC: u64 = size::<VcState>() + size::<Refused>() + 4;

/// Memory of so many VCs that cross it.
pub(crate) fn rows(vcs: u64) -> u64 {
    array(vcs, size::<VcState>()) + array(vcs, size::<Refused>()) + array(vcs, 4)
}

/// Memory that a port crossed by so many VCs reserves for its queue.
pub(crate) fn reserved(capacity: Option<u32>, vcs: u64) -> u64 {
    let runs = reserved_runs(capacity, usize::try_from(vcs).unwrap_or(usize::MAX));
    array(runs as u64, size::<Run>())
}

fn reserved_runs(capacity: Option<u32>, vcs: usize) -> usize {
    let most = RESERVED_RUNS.min(vcs.saturating_mul(RESERVED_RUNS_PER_VC));
    capacity.map_or(0, |k| most.min(k as usize))
}

impl Port {
    /// A port with room for `capacity` waiting cells (`None`: without limit), crossed by `vcs` VCs.
    pub fn new(capacity: Option<u32>, vcs: usize, policy: Box<dyn BufferPolicy>, rng: Stream) -> Self {
        let start = VcState { offered: 0, current: 0, mode: Mode::Pass, at_start: true };
        Self {
            capacity: capacity.unwrap_or(u32::MAX),
            occupancy: 0,
            max_queue: 0,
            fifo: VecDeque::with_capacity(reserved_runs(capacity, vcs)),
            deferred_dequeues: 0,
            counts: Counts::new(vcs),
            vcs: vec![start; vcs],
            refused: vec![Refused::default(); vcs],
            held: Vec::new(),
            queues: None,
            apart: policy.follows_cells(),
            held_cells: 0,
            released: 0,
            gone: 0,
            reported_gone: 0,
            follows: policy.follows_cells(),
            may_refuse_frames: !policy.admits_all(),
            overflow: policy.overflow(),
            policy,
            rng,
        }
    }

    /// The same port where VCs merge: frames of those `merging` says, by label, wait until they are whole and are then
    /// sent in one go. One that loses a cell is discarded whole.
    #[must_use]
    pub fn merging(mut self, merging: &[bool]) -> Self {
        if merging.contains(&true) {
            assert!(!self.follows, "a policy follows cells only where none wait for others");
            self.held = merging.iter().map(|&merges| merges.then(Held::default)).collect();
            self.apart = true;
        }
        self
    }

    /// The same port with a scheduler's queues instead of one, where it has any. No VCs merge there, and its policy
    /// pushes out no cell.
    #[must_use]
    pub fn scheduled(mut self, queues: Option<Queues>) -> Self {
        if let Some(queues) = queues {
            assert!(!self.merges(), "VCs merge only where one queue holds all");
            assert!(!self.follows, "a policy follows cells only where one queue holds all");
            assert!(self.overflow != Overflow::PushOutFront, "cells are pushed out only where one queue holds all");
            self.queues = Some(Box::new(queues));
            self.apart = true;
        }
        self
    }

    /// Whether the order of departures is deferred: a later cell may leave first, or push an earlier one out.
    pub fn defers_order(&self) -> bool {
        self.queues.is_some() || self.pushes_out()
    }

    fn pushes_out(&self) -> bool {
        self.overflow == Overflow::PushOutFront && self.capacity < u32::MAX
    }

    /// Whether frames of some VC wait until they are whole.
    #[inline]
    pub fn merges(&self) -> bool {
        !self.held.is_empty()
    }

    /// Admits an arriving cell, or counts the reason for its refusal. Returns whether it was admitted.
    #[inline]
    pub fn offer(&mut self, cell: Cell) -> bool {
        if cell.is_rm() {
            return self.offer_rm(cell);
        }
        let vc = &mut self.vcs[cell.label() as usize];
        vc.offered += 1;
        vc.current = cell.frame;
        let starts_frame = std::mem::replace(&mut vc.at_start, cell.last_cell());
        if starts_frame {
            self.judge_frame(cell);
        }
        if self.occupancy < self.capacity && self.vcs[cell.label() as usize].mode == Mode::Pass {
            self.enqueue(cell);
            return true;
        }
        self.offer_unwelcome(cell)
    }

    /// A resource management cell belongs to no frame: it is lost only for want of room.
    #[inline(never)]
    fn offer_rm(&mut self, cell: Cell) -> bool {
        self.vcs[cell.label() as usize].offered += 1;
        let has_room = self.occupancy < self.capacity;
        if has_room {
            self.enqueue(cell);
        } else {
            self.refused[cell.label() as usize].overflow += 1;
        }
        has_room
    }

    /// Whether a VC is within a frame whose next cells are admitted as long as there is room for them.
    #[inline]
    pub fn passes(&self, label: Label) -> bool {
        let vc = &self.vcs[label as usize];
        vc.mode == Mode::Pass && !vc.at_start
    }

    /// Whether a VC's next cells are admitted as long as there is room for them, and no policy is asked.
    #[inline]
    pub fn admits_unasked(&self, label: Label) -> bool {
        let vc = &self.vcs[label as usize];
        if vc.at_start { !self.may_refuse_frames } else { vc.mode == Mode::Pass }
    }

    /// The scheduler's sensitivity to the order of cells of different VCs, if each VC has a queue of its own. While
    /// there is room for all, this order decides only when queues fill.
    pub fn keeps_vcs_apart(&self) -> Option<BacklogSensitivity> {
        self.queues.as_ref().filter(|queues| queues.one_a_vc()).map(|queues| queues.backlog_sensitivity())
    }

    /// Whether a queue that is empty for less than a cell time affects the scheduler.
    pub fn fills_exactly(&self) -> bool {
        self.queues.as_ref().is_some_and(|queues| queues.backlog_sensitivity() == BacklogSensitivity::Exact)
    }

    /// Whether departures must be reported ([`Port::report_departures`]) before a VC's next cell is offered to a port
    /// with deferred order: the policy is asked, a cell may be pushed out, or the VC's queue may be empty.
    #[inline]
    pub fn must_report_before(&self, label: Label) -> bool {
        self.deferred_dequeues > 0
            && ((self.may_refuse_frames && self.vcs[label as usize].at_start)
                || self.occupancy >= self.capacity
                || self.ahead(label) <= self.deferred_dequeues)
    }

    /// Cells in the queue of a VC, those among them included whose departure was not reported.
    #[inline]
    pub fn ahead(&self, label: Label) -> u32 {
        self.queues.as_ref().map_or(self.occupancy + self.deferred_dequeues, |queues| queues.ahead(label))
    }

    /// A lower bound on the number of departures up to the next end of a frame, in a port with deferred order and
    /// waiting cells.
    pub fn least_to_an_end(&self) -> u32 {
        self.queues.as_ref().map_or(1, |queues| queues.least_to_an_end())
    }

    /// No fewer cells than this will go before a cell of the VC that arrives now.
    pub fn least_ahead(&self, label: Label) -> u32 {
        // Cells in front may be pushed out.
        self.queues.as_ref().map_or(0, |queues| queues.ahead(label)).saturating_sub(self.deferred_dequeues)
    }

    /// Whether a VC's next cell starts a frame.
    #[cfg(test)]
    pub(crate) fn starts_frame(&self, label: Label) -> bool {
        self.vcs[label as usize].at_start
    }

    /// What will become of a VC's next cells, of which this is one, as long as there is room for them. It asks the
    /// policy where a frame starts, as the first cell's arrival would, and is followed by that arrival.
    #[inline]
    pub fn fate(&mut self, cell: Cell) -> Fate {
        let vc = cell.label() as usize;
        if std::mem::take(&mut self.vcs[vc].at_start) {
            self.judge_frame(cell);
        }
        match self.vcs[vc].mode {
            Mode::Pass => Fate::Admitted,
            Mode::RefuseRest { keep_last_cell } if keep_last_cell && cell.last_cell() => Fate::CellByCell,
            Mode::RefuseFrame | Mode::RefuseRest { .. } => Fate::Refused,
        }
    }

    /// Admits cells whose fate that is: as many single offers, between and after which `gone` cells have gone. There
    /// was room for each of them, and never more than `peak` cells waited.
    #[inline]
    pub fn admit(&mut self, run: Run, peak: u32, gone: u32) {
        debug_assert!(peak <= self.capacity, "no queue exceeds its buffer");
        let vc = &mut self.vcs[run.last.label() as usize];
        vc.offered += u64::from(run.cells);
        vc.current = run.last.frame;
        vc.at_start = run.last.last_cell();
        self.count_in(run);
        self.occupancy += run.cells;
        self.max_queue = self.max_queue.max(peak);
        self.defer_dequeue(gone);
    }

    /// Admits a cell of each of some VCs, in this order, all of which pass and find room, and none of which ends its
    /// frame. A port with deferred order must not have to report departures before any of them.
    #[inline]
    pub fn admit_round(&mut self, cells: impl ExactSizeIterator<Item = Cell>) {
        let arrived = u32::try_from(cells.len()).expect("fewer cells than the buffer has places");
        for cell in cells {
            self.vcs[cell.label() as usize].offered += 1;
            if self.apart {
                self.count_in(Run { last: cell, cells: 1 });
            } else {
                self.counts.put(cell.label(), 1);
                self.fifo.push_back(Run { last: cell, cells: 1 });
            }
        }
        self.occupancy += arrived;
        self.max_queue = self.max_queue.max(self.occupancy);
    }

    /// Cells of a VC arrive between those of others: what as many single offers count of them alone. They are admitted
    /// ([`Port::admit_in_turns`]).
    #[inline]
    pub fn count_in_turns(&mut self, run: Run) {
        let vc = &mut self.vcs[run.last.label() as usize];
        vc.offered += u64::from(run.cells);
        if !run.last.is_rm() {
            vc.current = run.last.frame;
            vc.at_start = run.last.last_cell();
        }
    }

    /// Admits cells of several VCs, in this order, to a port whose one queue holds all: as many single offers, between
    /// and after which `gone` cells have gone. There was room for each of them, and never more than `peak` cells
    /// waited.
    pub fn admit_in_turns(&mut self, cells: &[Cell], peak: u32, gone: u32) {
        debug_assert!(self.queues.is_none() && !self.merges(), "one queue holds all");
        debug_assert!(peak <= self.capacity, "no queue exceeds its buffer");
        let arrived = u32::try_from(cells.len()).expect("a stretch has fewer than 2^32 cells");
        let queued = self.occupancy + self.deferred_dequeues;
        let all_gone = self.deferred_dequeues + gone;
        let through = all_gone.saturating_sub(queued);
        self.deferred_dequeues = all_gone - through;
        if through > 0 {
            self.dequeue_deferred();
        }
        for &cell in &cells[through as usize..] {
            self.counts.put(cell.label(), 1);
            self.fifo.push_back(Run { last: cell, cells: 1 });
        }
        self.occupancy = self.occupancy + arrived - gone;
        self.max_queue = self.max_queue.max(peak);
        self.gone += u64::from(gone);
        if self.deferred_dequeues > MOST_DEFERRED_DEQUEUES {
            self.dequeue_deferred();
        }
    }

    /// Refuses cells of a frame whose fate that is: as many single offers.
    #[inline]
    pub fn refuse(&mut self, run: Run) {
        let vc = &mut self.vcs[run.last.label() as usize];
        vc.offered += u64::from(run.cells);
        vc.current = run.last.frame;
        vc.at_start = run.last.last_cell();
        let refused = &mut self.refused[run.last.label() as usize];
        match vc.mode {
            Mode::RefuseFrame => refused.frame += u64::from(run.cells),
            Mode::RefuseRest { .. } => refused.remainder += u64::from(run.cells),
            Mode::Pass => unreachable!("cells of an admitted frame are not refused"),
        }
    }

    /// Reports to a policy that follows cells one that will be admitted with others ([`Port::admit_in_turns`]), when
    /// `gone` of those that will go meanwhile have gone.
    #[inline]
    pub fn follow(&mut self, label: Label, gone: u32) {
        if self.follows {
            let cells = self.gone + u64::from(gone) - self.reported_gone;
            self.reported_gone += cells;
            if cells > 0 {
                self.policy.on_leave(u32::try_from(cells).expect("no more than waited"));
            }
            self.policy.on_enter(label, 1);
        }
    }

    /// Reports to a policy that follows cells those that have gone: before it is asked, and before another enters.
    #[inline]
    fn report_to_policy(&mut self) {
        if self.follows && self.reported_gone < self.gone {
            let cells = self.gone - std::mem::replace(&mut self.reported_gone, self.gone);
            self.policy.on_leave(u32::try_from(cells).expect("no more than waited"));
        }
    }

    /// Whether cells of a VC that arrive one by one, while `left` cells leave, may be reported to the policy with the
    /// first of them ([`BufferPolicy::enters_at_once`]).
    #[inline]
    pub fn enters_at_once(&mut self, label: Label, left: u32, close: bool) -> bool {
        if !self.follows {
            return true;
        }
        self.report_to_policy();
        self.policy.enters_at_once(label, left, close)
    }

    /// `M_j`: the cells of the policy's virtual queues, by label, if it has any.
    pub fn virtual_queues(&mut self) -> Option<&[u32]> {
        self.report_to_policy();
        self.policy.virtual_queues()
    }

    /// The places of the buffer.
    #[inline]
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Asks the policy about the frame whose first cell has arrived.
    #[inline(never)]
    fn judge_frame(&mut self, cell: Cell) {
        if !self.may_refuse_frames {
            let vc = cell.label() as usize;
            self.vcs[vc].mode = Mode::Pass;
            self.refused[vc].is_cut = false;
            return;
        }
        self.dequeue_deferred();
        self.report_to_policy();
        let label = cell.label();
        let view = View {
            occupancy: self.occupancy,
            capacity: self.capacity,
            active_vcs: self.counts.active_vcs,
            per_vc: &self.counts.per_vc,
            tagged: cell.tagged(),
        };
        let admitted = self.policy.admit_frame(&view, label, &mut self.rng);
        self.vcs[label as usize].mode = if admitted { Mode::Pass } else { Mode::RefuseFrame };
        let refused = &mut self.refused[label as usize];
        refused.frames += u64::from(!admitted);
        refused.is_cut = false;
    }

    /// A cell of a refused frame, or one that finds no room.
    #[cold]
    fn offer_unwelcome(&mut self, cell: Cell) -> bool {
        let vc = cell.label() as usize;
        if self.vcs[vc].mode == Mode::Pass && self.holds(cell.label()) {
            self.vcs[vc].mode = Mode::RefuseRest { keep_last_cell: false };
            self.refused[vc].overflow += 1;
            self.refused[vc].cut();
            self.discard_held(cell.label());
            return false;
        }
        if self.vcs[vc].mode == Mode::Pass {
            match self.overflow {
                Overflow::LoseCell => {}
                Overflow::LoseRestOfFrame { keep_last_cell } => {
                    self.vcs[vc].mode = Mode::RefuseRest { keep_last_cell };
                    self.refused[vc].overflow += 1;
                    self.refused[vc].cut();
                    return false;
                }
                Overflow::PushOutFront => self.push_out_front(cell),
            }
        }
        let is_full = self.occupancy >= self.capacity;
        let refused = &mut self.refused[vc];
        match self.vcs[vc].mode {
            Mode::RefuseFrame => refused.frame += 1,
            Mode::RefuseRest { keep_last_cell } if !(keep_last_cell && cell.last_cell()) => refused.remainder += 1,
            Mode::Pass | Mode::RefuseRest { .. } if is_full => {
                refused.overflow += 1;
                refused.cut();
            }
            Mode::Pass | Mode::RefuseRest { .. } => {
                self.enqueue(cell);
                return true;
            }
        }
        false
    }

    /// Hands the next cell to the transmitter.
    #[inline]
    pub fn take(&mut self) -> Option<Cell> {
        if self.queues.is_none() {
            self.dequeue_deferred();
        }
        if self.ready() == 0 {
            return None;
        }
        let mut cell = None;
        self.defer_dequeue(1);
        self.report_departures(ReportGranularity::Each, |run, _| cell = Some(run.last));
        assert!(cell.is_some(), "a cell that waits can be sent");
        cell
    }

    /// Hands the next `cells` to the transmitter and defers their removal from the queue. At least that many must wait,
    /// and the caller must already know them.
    #[inline]
    pub fn defer_dequeue(&mut self, cells: u32) {
        self.occupancy -= cells;
        self.deferred_dequeues += cells;
        self.gone += u64::from(cells);
        if self.deferred_dequeues > MOST_DEFERRED_DEQUEUES && !self.defers_order() {
            self.dequeue_deferred();
        }
    }

    /// Deferred dequeues: cells that have gone and still stand in the queue and the per-VC counts.
    #[inline]
    pub fn deferred_dequeues(&self) -> u32 {
        self.deferred_dequeues
    }

    /// Brings the per-VC counts up to date with what has gone, and reports it: runs of cells and how many have gone
    /// since they were up to date last, as `granularity` says.
    #[inline]
    pub fn report_departures(&mut self, granularity: ReportGranularity, mut report: impl FnMut(Run, u32)) {
        let gone = std::mem::take(&mut self.deferred_dequeues);
        if let Some(queues) = &mut self.queues {
            queues.serve(gone, &mut self.counts, granularity, report);
            return;
        }
        let mut after = 0;
        while after < gone {
            let run = Run::take_first_cells(&mut self.fifo, gone - after).expect("what has gone was in the queue");
            self.counts.take(run.last.label(), run.cells);
            report(run, if granularity == ReportGranularity::Each { after } else { after + run.cells - 1 });
            after += run.cells;
        }
    }

    /// Reports what has gone of runs that were reported as a whole so far.
    pub fn report_parts(&mut self, report: impl FnMut(Run)) {
        if let Some(queues) = &mut self.queues {
            queues.report_parts(report);
        }
    }

    /// Brings the per-VC counts up to date with what has gone. A reader of the counts calls this first after
    /// [`Port::defer_dequeue`]; the port itself does before it asks the policy.
    #[inline]
    pub fn dequeue_deferred(&mut self) {
        debug_assert!(
            self.deferred_dequeues == 0 || self.queues.is_none(),
            "departures from several queues have to be reported"
        );
        let mut deferred_dequeues = std::mem::take(&mut self.deferred_dequeues);
        while deferred_dequeues > 0 {
            let run = self.fifo.front_mut().expect("what has gone was in the queue");
            let label = run.last.label();
            if run.cells > deferred_dequeues {
                run.cells -= deferred_dequeues;
                self.counts.take(label, deferred_dequeues);
                return;
            }
            deferred_dequeues -= run.cells;
            let cells = run.cells;
            self.fifo.pop_front();
            self.counts.take(label, cells);
        }
    }

    /// Cells that can be sent: all that wait, but for frames that wait until they are whole.
    #[inline]
    pub fn ready(&self) -> u32 {
        self.occupancy - self.held_cells
    }

    /// Cells of a VC's frame that waits until it is whole.
    pub fn held(&self, label: Label) -> u32 {
        self.held.get(label as usize).and_then(Option::as_ref).map_or(0, |held| held.cells)
    }

    /// What the latest offer, of a port where VCs merge, made ready to be sent.
    pub fn released(&self) -> impl Iterator<Item = Run> {
        self.fifo.range(self.fifo.len() - self.released..).copied()
    }

    /// X: cells waiting.
    pub fn occupancy(&self) -> u32 {
        self.occupancy
    }

    /// `Y_i`: cells waiting of each VC, by label.
    pub fn per_vc(&self) -> &[u32] {
        assert_eq!(self.deferred_dequeues, 0, "counts are looked at when they are up to date");
        &self.counts.per_vc
    }

    /// `N_a`: VCs with at least one cell waiting.
    pub fn active_vcs(&self) -> u32 {
        assert_eq!(self.deferred_dequeues, 0, "counts are looked at when they are up to date");
        self.counts.active_vcs
    }

    /// The largest number of cells that ever waited.
    pub fn max_queue(&self) -> u32 {
        self.max_queue
    }

    /// The waiting cells, the next to be sent first where one queue holds all, those of frames that are not yet whole
    /// last.
    pub fn waiting(&self) -> impl Iterator<Item = Cell> {
        let held = self.held.iter().flatten().flat_map(|held| &held.runs).flat_map(|run| run.iter());
        let queued = self.queues.iter().flat_map(|queues| queues.waiting());
        self.fifo.iter().flat_map(|run| run.iter()).skip(self.deferred_dequeues as usize).chain(held).chain(queued)
    }

    /// The fate of each VC's cells, by label.
    pub fn vc_counters(&self) -> impl Iterator<Item = PortCounters> {
        let all = self.vcs.iter().zip(&self.refused).zip(self.per_vc());
        all.map(|((vc, refused), &waiting)| PortCounters {
            offered: vc.offered,
            forwarded: vc.offered - refused.cells() - u64::from(waiting),
            lost_overflow: refused.overflow,
            lost_pushed_out: refused.pushed_out,
            discarded_frame: refused.frame,
            discarded_remainder: refused.remainder,
            discarded_frames: refused.frames,
            cut_frames: refused.cut_frames,
        })
    }

    /// The port as results show it.
    pub fn state(&self) -> PortState {
        let state = PortState {
            counters: self.vc_counters().collect(),
            waiting: self.counts.per_vc.clone(),
            max_queue: self.max_queue,
        };
        assert_eq!(self.counters().forwarded, self.gone, "what was not refused and does not wait has gone");
        if let Some(virtual_queues) = self.policy.virtual_queues() {
            let sum = virtual_queues.iter().map(|&cells| u64::from(cells)).sum::<u64>();
            let unreported = self.gone - self.reported_gone;
            assert_eq!(
                sum,
                u64::from(self.occupancy) + unreported,
                "the virtual queues hold as many cells as the FIFO"
            );
        }
        state
    }

    /// The fate of all cells together.
    pub fn counters(&self) -> PortCounters {
        PortCounters::sum(self.vc_counters())
    }

    #[inline]
    fn enqueue(&mut self, cell: Cell) {
        self.count_in(Run { last: cell, cells: 1 });
        self.occupancy += 1;
        self.max_queue = self.max_queue.max(self.occupancy);
    }

    /// Puts cells at the end of the queue and into the per-VC counts.
    #[inline]
    fn count_in(&mut self, run: Run) {
        self.counts.put(run.last.label(), run.cells);
        if !self.apart {
            Run::append(&mut self.fifo, run);
        } else if let Some(queues) = &mut self.queues {
            queues.push(run);
        } else if self.follows {
            self.report_to_policy();
            self.policy.on_enter(run.last.label(), run.cells);
            Run::append(&mut self.fifo, run);
        } else {
            self.hold(run);
        }
    }

    /// Puts cells of a port where VCs merge at the end of the queue, or with those of their frame that is not yet
    /// whole.
    fn hold(&mut self, run: Run) {
        self.released = 0;
        let Some(held) = &mut self.held[run.last.label() as usize] else {
            self.fifo.push_back(run);
            self.released = 1;
            return;
        };
        match held.runs.last_mut() {
            Some(before) if before.goes_on_with(run) => {
                *before = Run { last: run.last, cells: before.cells + run.cells }
            }
            _ => held.runs.push(run),
        }
        held.cells += run.cells;
        self.held_cells += run.cells;
        if run.last.last_cell() {
            self.held_cells -= std::mem::take(&mut held.cells);
            self.released = held.runs.len();
            self.fifo.extend(held.runs.drain(..));
        }
    }

    /// Whether a VC's frames wait until they are whole.
    #[inline]
    pub fn holds(&self, label: Label) -> bool {
        self.held.get(label as usize).is_some_and(Option::is_some)
    }

    /// Discards the waiting cells of a frame that cannot become whole.
    fn discard_held(&mut self, label: Label) {
        let Some(held) = &mut self.held[label as usize] else { return };
        held.runs.clear();
        let cells = std::mem::take(&mut held.cells);
        self.held_cells -= cells;
        self.occupancy -= cells;
        self.refused[label as usize].pushed_out += u64::from(cells);
        if cells > 0 {
            self.counts.take(label, cells);
        }
    }

    /// Makes room for `arriving`: removes the waiting cell nearest to transmission that does not end a frame, and the
    /// waiting rest of its frame but for the last cell, which keeps the next frame apart from the remains.
    fn push_out_front(&mut self, arriving: Cell) {
        self.dequeue_deferred();
        let ends_frame = |run: &Run| run.cells == 1 && run.last.last_cell();
        let data = || self.fifo.iter().filter(|run| !run.last.is_rm());
        let Some(&victim) = data().find(|run| !ends_frame(run)).or_else(|| data().next()) else {
            return; // Nothing can be pushed out: the arriving cell is lost.
        };
        let keeps_last = !ends_frame(&victim);
        let victim = victim.last;
        let of_victim = |cell: Cell| cell.label() == victim.label() && cell.frame == victim.frame && !cell.is_rm();
        let mut pushed_out = 0;
        self.fifo.retain_mut(|run| {
            if !of_victim(run.last) {
                return true;
            }
            let kept = u32::from(keeps_last && run.last.last_cell());
            pushed_out += run.cells - kept;
            run.cells = kept;
            kept > 0
        });
        let vc = victim.label() as usize;
        self.counts.take(victim.label(), pushed_out);
        self.occupancy -= pushed_out;
        self.refused[vc].pushed_out += u64::from(pushed_out);
        // Its last cell ends it, so what is pushed out of one frame is pushed out at once.
        self.refused[vc].cut_frames += u64::from(pushed_out > 0);
        let frame = &mut self.vcs[vc];
        let in_progress = of_victim(arriving) || (!frame.at_start && frame.current == victim.frame);
        if in_progress {
            frame.mode = Mode::RefuseRest { keep_last_cell: true };
            self.refused[vc].is_cut = true;
        }
    }
}

#[cfg(test)]
mod tests;
