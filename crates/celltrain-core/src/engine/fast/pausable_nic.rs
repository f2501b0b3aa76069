//! A host's own port whose link the next switch may pause.
//!
//! Cells are sent ahead of their starts, as at other hosts' ports. If a pause begins or ends first, the port takes back the
//! cells that have not started, and decides again which of its cells start when.

use std::collections::VecDeque;

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use super::nic::Phase;
use super::pauses::{PauseCommand, StoppedPriorities};
use super::train::cells_after;
use crate::aal5::Framing;
use crate::cell::{Cell, Run};
use crate::index::Label;
use crate::port::{PortCounters, PortState};
use crate::queue_range::{QueueRange, QueueTracker};
use crate::units::{Span, Time};

/// Cells that a port takes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TakenBack {
    pub(super) label: Label,
    pub(super) cells: u32,
}

/// A host's own port that obeys pauses of its link.
pub(super) struct PausableNic {
    cell_time: Span,
    /// Number of each VC's class, by label. The VCs of a class have the same priority.
    class_of: TiVec<Label, usize>,
    classes: Vec<Class>,
    stopped: StoppedPriorities,
    /// With packet framing, a pause does not interrupt a packet.
    framing: Framing,
    /// The class of the latest frame sent, and the start of its first cell, if some of its cells have not been sent and a
    /// pause does not interrupt it.
    unfinished: Option<(usize, Time)>,
    /// Number of cells that have not been sent.
    unsent: u32,
    /// Cells that have been sent but may not have started, in order of their starts.
    ahead: VecDeque<Ahead>,
    /// Time when the link will have sent all cells passed to it. Cells that have not started follow each other without a gap.
    free_at: Time,
    /// Number of frames that the port has received so far.
    frames: u64,
    /// Instant and phase in which the latest frames joined.
    joined: (Time, Phase),
    /// Number of waiting cells after the latest frames joined, including those frames.
    waiting: u32,
    tracker: QueueTracker,
    offered: TiVec<Label, u64>,
}

/// The frames of a priority.
struct Class {
    priority: u8,
    /// Frames with cells that have not been sent, in order of arrival.
    frames: VecDeque<FrameRest>,
}

/// The last cells of a frame that have not been sent, or cells that have been sent.
#[derive(Clone, Copy)]
struct FrameRest {
    /// Position of the frame among the frames of the port.
    frame: u64,
    /// The last cell of the frame.
    last: Cell,
    cells: u32,
}

/// Cells of a frame that have been sent ahead of their starts.
#[derive(Clone, Copy)]
struct Ahead {
    sent: FrameRest,
    first_start: Time,
    /// Start of the frame's first cell, if a pause does not interrupt a packet; otherwise `first_start`.
    begun: Time,
}

/// Frames are sent ahead if they start within this number of cell times.
const MOST_AHEAD: u64 = 16;

const SHORT: &str = "a queue stays below 2^32 cells";

impl PausableNic {
    /// Creates an idle port. `priorities` contains the priority of each VC.
    pub(super) fn new(cell_time: Span, priorities: &TiSlice<Label, u8>, framing: Framing) -> Self {
        let mut classes: Vec<Class> = Vec::new();
        let class_of = |&priority: &u8| {
            let known = classes.iter().position(|class| class.priority == priority);
            known.unwrap_or_else(|| {
                classes.push(Class { priority, frames: VecDeque::new() });
                classes.len() - 1
            })
        };
        Self {
            cell_time,
            class_of: priorities.iter().map(class_of).collect(),
            classes,
            stopped: StoppedPriorities::NONE,
            framing,
            unfinished: None,
            unsent: 0,
            ahead: VecDeque::new(),
            free_at: Time::default(),
            frames: 0,
            joined: (Time::default(), Phase::BeforeService),
            waiting: 0,
            tracker: QueueTracker::default(),
            offered: ti_vec![0; priorities.len()],
        }
    }

    pub(super) fn cell_time(&self) -> Span {
        self.cell_time
    }

    /// Begins a new phase. The frames that joined in earlier phases count as waiting.
    pub(super) fn begin_phase(&mut self, now: Time, phase: Phase) {
        self.joined = (now, phase);
        self.waiting = self.waiting_at(now, phase);
        self.tracker.fall(self.waiting);
        while self.ahead.front().is_some_and(|ahead| ahead.last_start(self.cell_time) < now) {
            self.ahead.pop_front();
        }
    }

    /// Queues a frame.
    pub(super) fn join(&mut self, now: Time, phase: Phase, last: Cell, cells: u32) {
        if self.joined != (now, phase) {
            self.begin_phase(now, phase);
        }
        self.waiting = self.waiting.checked_add(cells).expect(SHORT);
        self.tracker.rise(self.waiting);
        self.offered[last.label()] += u64::from(cells);
        self.unsent += cells;
        self.classes[self.class_of[last.label()]].frames.push_back(FrameRest { frame: self.frames, last, cells });
        self.frames += 1;
    }

    /// Returns the next cells to send, which start at `until` or earlier, and the start of the first one. The others follow
    /// a cell time apart. No frame is sent long before it starts, because a pause would take it back.
    pub(super) fn send(&mut self, now: Time, until: Time) -> Option<(Run, Time)> {
        let first_start = self.free_at.max(now);
        if self.unsent == 0 || first_start > until.min(now + self.cell_time * MOST_AHEAD) {
            return None;
        }
        let (cell_time, class) = (self.cell_time, self.next_class()?);
        let begun = self.unfinished.map_or(first_start, |(_, begun)| begun);
        let frames = &mut self.classes[class].frames;
        let next = frames.front_mut()?;
        let FrameRest { last, .. } = *next;
        let later = cells_after(until, first_start, cell_time, next.cells);
        let sent = FrameRest { cells: next.cells - later, ..*next };
        next.cells -= sent.cells;
        let run = if next.cells == 0 {
            frames.pop_front();
            self.unfinished = None;
            Run { last, cells: sent.cells }
        } else {
            self.unfinished = (self.framing == Framing::Packets).then_some((class, begun));
            Run { last: last.not_last(), cells: sent.cells }
        };
        self.unsent -= sent.cells;
        self.free_at = first_start + cell_time * u64::from(sent.cells);
        self.ahead.push_back(Ahead { sent, first_start, begun });
        Some((run, first_start))
    }

    /// Returns when the port sends next, if any cell may go.
    pub(super) fn next_start(&self) -> Option<Time> {
        self.next_class().map(|_| self.free_at)
    }

    /// Returns the class of the first frame that may go.
    fn next_class(&self) -> Option<usize> {
        if let Some((class, _)) = self.unfinished {
            return Some(class);
        }
        let may_go = self.classes.iter().enumerate().filter(|(_, class)| !self.stopped.contain(class.priority));
        let first = may_go.filter_map(|(number, class)| Some((class.frames.front()?.frame, number)));
        first.min().map(|(_, number)| number)
    }

    /// Takes back the last cells sent, if they start at `now` or later, or the last packet, if it does. Repeated calls take
    /// back all of them.
    pub(super) fn take_back(&mut self, now: Time) -> Option<TakenBack> {
        let Ahead { sent, first_start, begun } = self.ahead.back_mut()?;
        if self.framing == Framing::Packets && *begun < now {
            return None;
        }
        let before = now.0.checked_sub(1).map(Time);
        let later = before.map_or(sent.cells, |before| cells_after(before, *first_start, self.cell_time, sent.cells));
        let back = FrameRest { cells: later, ..*sent };
        if back.cells == 0 {
            return None;
        }
        let gone = sent.cells - later;
        self.free_at = *first_start + self.cell_time * u64::from(gone);
        sent.cells = gone;
        if gone == 0 {
            self.ahead.pop_back();
        }
        self.unsent += back.cells;
        self.unfinished = None;
        let label = back.last.label();
        let frames = &mut self.classes[self.class_of[label]].frames;
        match frames.front_mut() {
            Some(first) if first.frame == back.frame => first.cells += back.cells,
            _ => frames.push_front(back),
        }
        Some(TakenBack { label, cells: back.cells })
    }

    /// Stops a priority, or lets it continue. The caller must have taken back the cells that have not started.
    pub(super) fn obey(&mut self, priority: u8, command: PauseCommand) {
        self.stopped.obey(priority, command);
    }

    /// Returns the state of the port at `now`, after all events of this instant.
    pub(super) fn state(&self, now: Time) -> PortState {
        let mut waiting = ti_vec![0; self.offered.len()];
        for unsent in self.classes.iter().flat_map(|class| &class.frames) {
            waiting[unsent.last.label()] += unsent.cells;
        }
        for &Ahead { sent, first_start, .. } in &self.ahead {
            waiting[sent.last.label()] += cells_after(now, first_start, self.cell_time, sent.cells);
        }
        let counters = |(&offered, &waiting): (&u64, &u32)| PortCounters {
            offered,
            forwarded: offered - u64::from(waiting),
            ..PortCounters::default()
        };
        PortState {
            counters: self.offered.iter().zip(&waiting).map(counters).collect(),
            max_queue: self.tracker.max_queue(),
            waiting,
            replaced_results: 0,
        }
    }

    /// Returns the number of cells that have not started before this phase of the instant.
    fn waiting_at(&self, now: Time, phase: Phase) -> u32 {
        let Some(busy) = self.free_at.0.checked_sub(now.0 + 1) else { return self.unsent };
        let not_started = match phase {
            Phase::BeforeService => (busy + 1) / self.cell_time.0,
            Phase::Timers => busy / self.cell_time.0,
        };
        u32::try_from(not_started).ok().and_then(|cells| self.unsent.checked_add(cells)).expect(SHORT)
    }

    /// Returns the minimum and maximum number of cells waiting since the latest sample, up to and including `now`.
    pub(super) fn range(&self, now: Time) -> QueueRange {
        self.tracker.range(self.waiting_at(now, Phase::Timers))
    }

    /// Starts a new range of queue lengths for a sample at `now`, after all events of this instant.
    pub(super) fn start_range(&mut self, now: Time) {
        self.tracker.start_range(self.waiting_at(now, Phase::Timers));
    }
}

impl Ahead {
    fn last_start(&self, cell_time: Span) -> Time {
        self.first_start + cell_time * u64::from(self.sent.cells - 1)
    }
}
