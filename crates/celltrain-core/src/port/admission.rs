//! Admission: decides which arriving cells enter a port's buffer, and records why other cells do not.
//!
//! Source: `docs/mechanisms.md` 2.0. Both kinds of port use it: [`Port`](super::Port) for one cell at a time, and the
//! fast engine's port for many cells together. The ports themselves store and count the waiting cells.

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use super::under_way::{Arrived, Mode, UnderWay};
use super::{PortCounters, PortState};
use crate::aal5::Framing;
use crate::cell::{Cell, CellBits, FrameNumber, Run};
use crate::coverage::reached;
use crate::events::Loss;
use crate::index::Label;
use crate::policy::formula::Formula;
use crate::policy::{AtHead, BufferPolicy, CellFollower, Head, Overflow, View};
use crate::rng::Stream;
use crate::units::Time;

/// The current frames of all VCs that cross a port, counts of refused cells, and the policy that makes the decisions.
pub(crate) struct Admission {
    vcs: TiVec<Label, VcState>,
    refused: TiVec<Label, Refused>,
    pub(crate) policy: Box<dyn BufferPolicy>,
    follows_cells: bool,
    at_head: DecidesAtHead,
    /// The frame that the policy has admitted last, if it must be marked.
    marked: Option<(Label, FrameNumber)>,
    /// Number of waiting cells below which the policy admits every frame, so it is not called.
    asked_from: u32,
    overflow: Overflow,
    /// True with [`Framing::Packets`], where each cell identifies its packet.
    delimits: bool,
    rng: Stream,
}

/// The part of a VC's state that is read for every arriving cell.
#[derive(Clone, Copy, Debug)]
struct VcState {
    /// Number of cells that arrived.
    offered: u64,
    /// Frame number of the VC's latest cell.
    current: FrameNumber,
    under_way: UnderWay,
}

/// Cells of a VC that were not sent, by reason. See [`PortCounters`] for the reasons.
#[derive(Clone, Copy, Debug, Default)]
struct Refused {
    overflow: u64,
    pushed_out: u64,
    frame: u64,
    by_memory: u64,
    remainder: u64,
    frames: u64,
    cut_frames: u64,
}

impl Refused {
    fn cells(&self) -> u64 {
        self.overflow + self.pushed_out + self.frame + self.by_memory + self.remainder
    }
}

/// Decision about a VC's next cells, which holds while there is room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameOutcome {
    /// The cells are admitted.
    Admitted,
    /// The cells are discarded, up to and including the last cell of their frame.
    Refused,
    /// Decisions may differ from cell to cell, so each cell must be offered.
    CellByCell,
}

/// Tells whether the policy of a port decides about frames at the head of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DecidesAtHead {
    Never,
    ByFrame,
    /// The policy makes decisions, and must learn of each cell.
    FollowingCells,
}

/// A port's decision about a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The cell enters.
    Enter,
    /// The cell is lost and counted as lost.
    Refuse(Loss),
    /// The cell is lost together with the waiting cells of its frame, which can no longer be completed.
    DiscardHeld(Loss),
    /// Another cell is pushed out first, if possible. Then [`Admission::final_verdict`] makes the decision.
    PushOut,
}

impl Admission {
    /// Creates the admission state of a port with `vcs` VCs.
    pub(crate) fn new(vcs: usize, mut policy: Box<dyn BufferPolicy>, rng: Stream) -> Self {
        let start = VcState { offered: 0, current: FrameNumber::default(), under_way: UnderWay::NONE };
        Self {
            vcs: ti_vec![start; vcs],
            refused: ti_vec![Refused::default(); vcs],
            follows_cells: policy.follower().is_some(),
            at_head: match policy.head_policy() {
                None => DecidesAtHead::Never,
                Some(policy) if policy.follows_cells() => DecidesAtHead::FollowingCells,
                Some(_) => DecidesAtHead::ByFrame,
            },
            marked: None,
            asked_from: policy.admits_up_to().map_or(0, |most| most.saturating_add(1)),
            overflow: policy.overflow(),
            delimits: false,
            policy,
            rng,
        }
    }

    /// Sets the framing. With [`Framing::Packets`], each cell identifies its packet. After a packet has lost a cell,
    /// the rest of the packet is refused, even if the policy would lose only single cells.
    #[must_use]
    pub(crate) fn framed(mut self, framing: Framing) -> Self {
        self.delimits = framing == Framing::Packets;
        if self.delimits {
            assert!(!self.pushes_out(), "drop from front keeps last cells, which only AAL5 needs");
            if self.overflow != Overflow::PushOutLongest {
                self.overflow = Overflow::LoseRestOfFrame { keep_last_cell: false };
            }
        }
        self
    }

    /// Returns whether the framing is [`Framing::Packets`], where each cell identifies its packet.
    #[inline]
    pub(crate) fn delimits(&self) -> bool {
        self.delimits
    }

    /// Prepares for a cell with packet framing: if the cell belongs to a different packet than the previous cell of its
    /// VC, it starts a packet. Must be called before any other method for this cell, and after all methods for earlier
    /// cells of its VC.
    #[inline]
    pub(crate) fn delimit(&mut self, cell: Cell) {
        self.starts_packet(cell);
    }

    /// Like [`Admission::delimit`]. Returns whether the last cell of the VC's previous packet is missing.
    #[inline]
    pub(crate) fn starts_packet(&mut self, cell: Cell) -> bool {
        let vc = &mut self.vcs[cell.label()];
        if vc.current == cell.frame || cell.is_rm() {
            return false;
        }
        let is_unfinished = !vc.under_way.is_at_start();
        reached!(PacketStartsUnannounced if is_unfinished);
        vc.current = cell.frame;
        vc.under_way.set_at_start(true);
        is_unfinished
    }

    pub(crate) fn assert_may_merge(&self) {
        assert!(
            !self.follows_cells && !self.decides_at_head(),
            "VCs cannot merge at a port whose policy tracks cells or decides at the head of the queue"
        );
    }

    /// Asserts that the port may have several queues. `merges` is true if VCs merge at the port.
    pub(crate) fn assert_may_be_scheduled(&self, merges: bool) {
        assert!(!merges, "VCs can merge only at a port with a single queue");
        assert!(!self.follows_cells, "a policy can track cells only at a port with a single queue");
        assert!(!self.pushes_out(), "cells can be pushed out only at a port with a single queue");
    }

    pub(crate) fn follows_cells(&self) -> bool {
        self.follows_cells
    }

    /// Returns whether the policy decides about frames at the head of the queue.
    pub(crate) fn decides_at_head(&self) -> bool {
        self.at_head != DecidesAtHead::Never
    }

    /// Lets the policy decide about the frame of a cell at the head of the queue.
    pub(crate) fn decide_at_head(&mut self, head: &Head, cell: Cell) -> AtHead {
        let policy = self.policy.head_policy().expect("the policy decides at the head of the queue");
        let fate = policy.on_head(head, &mut self.rng);
        if fate == AtHead::Drop {
            let label = cell.label();
            self.refused[label].frames += 1;
            let vc = &mut self.vcs[label];
            if !vc.under_way.is_at_start() && vc.current == cell.frame {
                reached!(ArrivingFrameDroppedAtHead);
                vc.under_way.set_mode(Mode::RefuseFrame);
            }
        }
        fate
    }

    /// Reports a cell that has entered to the policy that decides at the head of the queue. `waiting` cells wait.
    #[inline]
    pub(crate) fn on_enter_queue(&mut self, waiting: u32, now: Time) {
        if self.at_head == DecidesAtHead::FollowingCells
            && let Some(policy) = self.policy.head_policy()
        {
            policy.on_enter(waiting, now);
        }
    }

    /// Reports a departure to the policy that decides at the head of the queue.
    #[inline]
    pub(crate) fn on_departure_from_head(&mut self, vc: Label, left: u32, now: Time) {
        if self.at_head == DecidesAtHead::FollowingCells
            && let Some(policy) = self.policy.head_policy()
        {
            policy.on_departure(vc, left, now);
        }
    }

    /// Counts a waiting cell whose frame is dropped at the head of the queue.
    pub(crate) fn drop_at_head(&mut self, cell: Cell) {
        self.refused[cell.label()].frame += 1;
    }

    /// Returns whether the frame of a cell that has just entered must be marked, at a port whose policy decides at the
    /// head of the queue.
    #[inline]
    pub(crate) fn marks(&self, cell: Cell) -> bool {
        self.marked == Some((cell.label(), cell.frame)) && !cell.is_rm()
    }

    /// Returns the component of the policy that follows individual cells, if it has one.
    #[inline]
    pub(crate) fn follower(&mut self) -> Option<&mut dyn CellFollower> {
        if self.follows_cells { self.policy.follower() } else { None }
    }

    /// Returns how many formula results were replaced because they were NaN or infinite.
    pub(crate) fn replaced_results(&self) -> u64 {
        Formula::of(&*self.policy).map_or(0, Formula::replaced_results)
    }

    /// Returns whether a cell that finds no room pushes out frames of the longest queue.
    pub(crate) fn pushes_out_longest(&self) -> bool {
        self.overflow == Overflow::PushOutLongest
    }

    /// Returns whether a cell that finds no room pushes out a cell of the port's single queue.
    pub(crate) fn pushes_out(&self) -> bool {
        self.overflow == Overflow::PushOutFront
    }

    /// Returns whether a cell that finds no room is lost without affecting other cells of its frame.
    pub(crate) fn loses_single_cells(&self) -> bool {
        self.overflow == Overflow::LoseCell
    }

    #[inline]
    pub(crate) fn may_refuse_frames(&self) -> bool {
        self.asked_from < u32::MAX
    }

    /// Returns the smallest number of waiting cells at which engines must call the policy.
    #[inline]
    pub(crate) fn asked_from(&self) -> u32 {
        self.asked_from
    }

    /// Records the arrival of a cell of a frame. Returns whether the cell starts a frame about which the policy must
    /// decide.
    #[inline]
    pub(crate) fn on_arrival(&mut self, cell: Cell) -> bool {
        if self.delimits {
            self.delimit(cell);
        }
        self.on_cell(cell, false).starts()
    }

    /// Records the arrival of a cell of a frame. Returns how it is treated. `admits_all` is true if so few cells wait
    /// that a frame is admitted without calling the policy.
    #[inline]
    pub(crate) fn on_cell(&mut self, cell: Cell, admits_all: bool) -> Arrived {
        let vc = &mut self.vcs[cell.label()];
        vc.offered += 1;
        vc.current = cell.frame;
        vc.under_way.on_cell(cell.last_cell(), admits_all)
    }

    /// Returns whether the cell that arrives next continues an admitted packet. For packet framing.
    #[inline]
    pub(crate) fn is_inside(&self, cell: Cell) -> bool {
        let vc = &self.vcs[cell.label()];
        vc.current == cell.frame && vc.under_way.passes_inside()
    }

    /// Records the arrival of a cell that neither starts nor ends an admitted frame. Returns false and records nothing
    /// if `cell` is another kind of cell.
    #[inline]
    pub(crate) fn on_cell_inside(&mut self, cell: Cell) -> bool {
        let vc = &mut self.vcs[cell.label()];
        let is_inside =
            vc.current == cell.frame && vc.under_way.passes_inside() && !cell.is_selected(CellBits::RM_OR_LAST);
        vc.offered += u64::from(is_inside);
        is_inside
    }

    /// Records the arrival of cells that neither start nor end a frame: cells inside a frame, or resource management
    /// cells. The latter belong to no frame and are lost only for lack of room.
    #[inline]
    pub(crate) fn on_cells_between(&mut self, label: Label, cells: u32) {
        self.vcs[label].offered += u64::from(cells);
    }

    /// Records the arrival of cells of a frame that has already been admitted or refused.
    #[inline]
    pub(crate) fn on_run(&mut self, run: Run) {
        let vc = &mut self.vcs[run.last.label()];
        vc.offered += u64::from(run.cells);
        vc.current = run.last.frame;
        vc.under_way.set_at_start(run.last.last_cell());
    }

    /// Records cells of an admitted frame that find no room, if the policy drops single cells.
    #[inline]
    pub(crate) fn lose(&mut self, run: Run) {
        self.on_run(run);
        self.cut(run.last.label());
        self.refused[run.last.label()].overflow += u64::from(run.cells - 1);
    }

    /// Counts a resource management cell that found no room.
    pub(crate) fn lose_rm(&mut self, label: Label) {
        reached!(RmCellLost);
        self.refused[label].overflow += 1;
    }

    /// Returns whether the cells of a VC's current frame are admitted as long as there is room.
    #[inline]
    pub(crate) fn is_passing(&self, label: Label) -> bool {
        self.vcs[label].under_way.passes()
    }

    #[inline]
    pub(crate) fn starts_frame(&self, label: Label) -> bool {
        self.vcs[label].under_way.is_at_start()
    }

    /// Returns whether a VC's next cell starts a frame, and clears this state, because the caller calls the policy
    /// before the cell arrives.
    #[inline]
    pub(crate) fn take_start(&mut self, label: Label) -> bool {
        let under_way = &mut self.vcs[label].under_way;
        let is_at_start = under_way.is_at_start();
        under_way.set_at_start(false);
        is_at_start
    }

    /// Starts a frame without a call to the policy.
    #[inline]
    pub(crate) fn pass_frame(&mut self, label: Label) {
        self.vcs[label].under_way.start(Mode::Pass);
    }

    /// Lets the policy decide about the frame whose first cell has arrived. Returns whether the frame may enter.
    #[inline]
    pub(crate) fn judge_frame(&mut self, view: &View<'_>, first: Cell) -> bool {
        let label = first.label();
        let admitted = self.policy.admit_frame(view, label, &mut self.rng);
        if self.decides_at_head() {
            let is_marked = admitted && self.policy.marks_admitted();
            self.marked = is_marked.then_some((label, first.frame));
        }
        self.vcs[label].under_way.start(if admitted { Mode::Pass } else { Mode::RefuseFrame });
        if !admitted {
            self.refused[label].frames += 1;
        }
        admitted
    }

    /// Returns the decision about a VC's next cells, including this cell. The decision holds while there is room.
    #[inline]
    pub(crate) fn fate(&self, cell: Cell) -> FrameOutcome {
        match self.vcs[cell.label()].under_way.mode() {
            Mode::Pass => FrameOutcome::Admitted,
            Mode::RefuseRest { keep_last_cell } if keep_last_cell && cell.last_cell() => FrameOutcome::CellByCell,
            Mode::RefuseFrame | Mode::RefusedByMemory | Mode::RefuseRest { .. } => FrameOutcome::Refused,
        }
    }

    /// Counts cells that are refused with their whole frame, or with the rest of their frame.
    #[inline]
    pub(crate) fn refuse(&mut self, run: Run) {
        self.on_run(run);
        let refused = &mut self.refused[run.last.label()];
        match self.vcs[run.last.label()].under_way.mode() {
            Mode::RefuseFrame => refused.frame += u64::from(run.cells),
            Mode::RefusedByMemory => refused.by_memory += u64::from(run.cells),
            Mode::RefuseRest { .. } => refused.remainder += u64::from(run.cells),
            Mode::Pass => unreachable!("cells of an admitted frame are not refused"),
        }
    }

    /// Decides whether to admit an arriving cell. `holds` is true if the cell's VC merges with others, so that its
    /// frame waits until it is complete.
    pub(crate) fn verdict(&mut self, cell: Cell, is_full: bool, holds: bool) -> Verdict {
        let vc = cell.label();
        if self.vcs[vc].under_way.passes() {
            if !is_full {
                return Verdict::Enter;
            }
            let keep_last_cell = match self.overflow {
                _ if holds => false,
                Overflow::LoseRestOfFrame { keep_last_cell } => keep_last_cell,
                Overflow::PushOutFront | Overflow::PushOutLongest => return Verdict::PushOut,
                Overflow::LoseCell => return self.final_verdict(cell, is_full),
            };
            self.vcs[vc].under_way.set_mode(Mode::RefuseRest { keep_last_cell });
            let loss = self.cut(vc);
            return if holds { Verdict::DiscardHeld(loss) } else { Verdict::Refuse(loss) };
        }
        self.final_verdict(cell, is_full)
    }

    /// Decides whether to admit a cell if no room is needed or no more room can be made.
    pub(crate) fn final_verdict(&mut self, cell: Cell, is_full: bool) -> Verdict {
        let vc = cell.label();
        if is_full && self.overflow == Overflow::PushOutLongest && self.vcs[vc].under_way.passes() {
            // No waiting cell could be pushed out.
            let keep_last_cell = !self.delimits;
            self.vcs[vc].under_way.set_mode(Mode::RefuseRest { keep_last_cell });
            return Verdict::Refuse(self.cut(vc));
        }
        let refused = &mut self.refused[vc];
        Verdict::Refuse(match self.vcs[vc].under_way.mode() {
            Mode::RefuseFrame => {
                refused.frame += 1;
                Loss::WithFrame
            }
            Mode::RefusedByMemory => {
                refused.by_memory += 1;
                Loss::WithFrame
            }
            Mode::RefuseRest { keep_last_cell } if !(keep_last_cell && cell.last_cell()) => {
                refused.remainder += 1;
                Loss::WithRest
            }
            mode @ (Mode::Pass | Mode::RefuseRest { .. }) if is_full => {
                reached!(LastCellLostToo if mode != Mode::Pass);
                self.cut(vc)
            }
            mode @ (Mode::Pass | Mode::RefuseRest { .. }) => {
                reached!(LastCellKept if mode != Mode::Pass);
                return Verdict::Enter;
            }
        })
    }

    /// Counts a cell that finds no room. Returns whether the cell is the first that its frame loses.
    fn cut(&mut self, label: Label) -> Loss {
        let refused = &mut self.refused[label];
        refused.overflow += 1;
        let cuts = self.vcs[label].under_way.cut();
        refused.cut_frames += u64::from(cuts);
        Loss::NoRoom { cuts }
    }

    /// Counts the discarded cells of a frame that was waiting to be completed.
    pub(crate) fn on_held_discarded(&mut self, label: Label, cells: u32) {
        self.refused[label].pushed_out += u64::from(cells);
    }

    /// Records that `cells` waiting cells of the frame of `victim` made room for `arriving`. If that frame is still
    /// arriving, refuses the rest of it. Its last cell is still admitted if the frame has lost only a part, because it
    /// marks where the next frame begins.
    pub(crate) fn on_pushed_out(&mut self, victim: Cell, cells: u32, arriving: Cell) {
        let vc = victim.label();
        let refused = &mut self.refused[vc];
        refused.pushed_out += u64::from(cells);
        // All cells that one frame loses are pushed out together. The last cell, which ends the frame, is kept.
        refused.cut_frames += u64::from(cells > 0);
        let frame = &mut self.vcs[vc];
        let arrives = is_of_frame(arriving, victim);
        if arrives || (!frame.under_way.is_at_start() && frame.current == victim.frame) {
            reached!(FramePushesOutItself if arrives);
            reached!(ArrivingFramePushedOut if !arrives);
            let keep_last_cell = self.overflow == Overflow::PushOutFront;
            frame.under_way.set_mode(Mode::RefuseRest { keep_last_cell });
            frame.under_way.cut();
        }
    }

    /// Refuses a frame because the shared memory has no room when its first cell arrives, although the policy admitted
    /// the frame.
    pub(crate) fn refuse_frame(&mut self, label: Label) {
        reached!(WholeFrameRefused);
        self.vcs[label].under_way.start(Mode::RefusedByMemory);
        self.refused[label].frames += 1;
    }

    /// Records that a shared memory removed the waiting cell `victim`. `cuts` is true if `victim` is the first cell
    /// that its frame loses for lack of room. If that frame is still arriving (`arriving` may belong to it), the rest
    /// of it is treated as if the cell had been lost on arrival.
    pub(crate) fn on_removed(&mut self, victim: Cell, cuts: bool, arriving: Option<Cell>) {
        let label = victim.label();
        self.refused[label].pushed_out += 1;
        if victim.is_rm() {
            return;
        }
        self.refused[label].cut_frames += u64::from(cuts);
        let frame = &mut self.vcs[label];
        let arrives = arriving.is_some_and(|arriving| is_of_frame(arriving, victim));
        if arrives || (!frame.under_way.is_at_start() && frame.current == victim.frame) {
            reached!(ArrivingFrameLosesCell);
            frame.under_way.cut();
            match self.overflow {
                Overflow::LoseCell => {}
                Overflow::LoseRestOfFrame { keep_last_cell } => {
                    frame.under_way.set_mode(Mode::RefuseRest { keep_last_cell });
                }
                Overflow::PushOutFront | Overflow::PushOutLongest => {
                    frame.under_way.set_mode(Mode::RefuseRest { keep_last_cell: true });
                }
            }
        }
    }

    /// Returns the state of the port for results, for given numbers of waiting cells.
    pub(crate) fn port_state(&self, waiting: &TiSlice<Label, u32>, max_queue: u32) -> PortState {
        let (counters, replaced_results) = (self.counters(waiting).collect(), self.replaced_results());
        PortState { counters, waiting: waiting.to_vec(), max_queue, replaced_results }
    }

    /// Returns each VC's counters, by label, for given numbers of waiting cells.
    pub(crate) fn counters<'a>(&'a self, waiting: &'a TiSlice<Label, u32>) -> impl Iterator<Item = PortCounters> + 'a {
        let all = self.vcs.iter().zip(&self.refused).zip(waiting);
        all.map(|((vc, refused), &waiting)| PortCounters {
            offered: vc.offered,
            forwarded: vc.offered - refused.cells() - u64::from(waiting),
            lost_overflow: refused.overflow,
            lost_pushed_out: refused.pushed_out,
            discarded_frame: refused.frame,
            refused_by_memory: refused.by_memory,
            discarded_remainder: refused.remainder,
            discarded_frames: refused.frames,
            cut_frames: refused.cut_frames,
        })
    }
}

pub(crate) fn is_of_frame(cell: Cell, other: Cell) -> bool {
    cell.label() == other.label() && cell.frame == other.frame && !cell.is_rm()
}
