//! Records the buffer of one port cell by cell: waiting cells, arrivals, departures, and cells of damaged frames.
//!
//! A [`Buffer`] is a probe that observes events. It observes from the start of the run, so that it knows which cells
//! are waiting when its time window begins. It records the events in the window as a [`History`]: numeric columns from
//! which the content of the port's buffer after any step can be derived.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};

use typed_index_collections::TiVec;

use celltrain_core::cell::FrameNumber;
use celltrain_core::events::{
    CellEvent, CellStep, Event, FrameEvent, FrameStep, Judged, Loss, MemoryEvent, MemoryStep, Observer, SegmentStep,
};
use celltrain_core::index::{LinkIndex, VcIndex};
use celltrain_core::network::Network;
use celltrain_core::probe::{NetworkView, Probe};
use celltrain_core::units::{Clock, Duration, Time};

mod history;
mod memory;

use crate::events::Wrong;
use crate::events::places::Places;
use history::NONE;
pub use history::{Cells, Frames, History, Judgements, STEPS, Step, Steps};
use memory::MemoryObserver;
pub use memory::{Refusals, SharedMemory};

type Frame = (VcIndex, FrameNumber);

#[derive(Clone, Copy)]
struct Waiting {
    vc: VcIndex,
    number: FrameNumber,
    is_rm: bool,
    index: Option<u32>,
    last: bool,
    /// The waiting cell's row in the history. Cells have rows once the time window has begun.
    row: usize,
}

/// Observer that records the events at the buffer of one port.
pub struct Buffer<'a> {
    link: LinkIndex,
    clock: Clock,
    window: [Time; 2],
    /// Maximum number of steps to record.
    most: usize,
    /// Flag that is set when `most` steps have been recorded, so that the caller can end the run.
    full: &'a Cell<bool>,
    /// Index of each VC among the VC names of the history; `None` if the VC does not cross the port.
    places_of: TiVec<VcIndex, Option<i32>>,
    /// For each VC, true if its frame numbers contain the number of the branch of a merge.
    merges: TiVec<VcIndex, bool>,
    places: Places,
    waiting: VecDeque<Waiting>,
    has_begun: bool,
    rows: BTreeMap<Frame, i32>,
    /// Damaged frames in flight, with the time and port of the damage. There is no port if the frame was joined to the
    /// previous frame of its VC.
    damaged: BTreeMap<Frame, (Time, Option<LinkIndex>)>,
    /// For each VC name, the frame whose first cells have entered the buffer, but whose last cell has not.
    unfinished: BTreeMap<i32, Frame>,
    /// Number of cells that each VC has sent over the link, by index among the VC names of the history.
    sent: Vec<u64>,
    /// Segments in the frames in flight.
    segments: BTreeMap<Frame, (u64, u32)>,
    /// The policy's decision that admitted the next cell to arrive.
    judged: i32,
    memory: Option<MemoryObserver>,
    history: History,
}

impl<'a> Buffer<'a> {
    /// Creates an observer of the named port. The observer records at most `most` steps from `from` until just before
    /// `to`.
    ///
    /// # Errors
    /// Returns an error if the port does not exist.
    pub fn new(
        network: &Network,
        port: &str,
        [from, to]: [Duration; 2],
        (most, full): (usize, &'a Cell<bool>),
    ) -> Result<Self, Wrong> {
        let known: Vec<&str> = network.links.iter().map(|link| link.name.as_str()).collect();
        let found = network.links.position(|link| link.name == port);
        let Some(link) = found.or_else(|| (port == "bottleneck").then_some(network.bottleneck)) else {
            return Err(Wrong::new("port", port, "is not a port of this network", &known));
        };
        let clock = network.clock();
        let mut vcs: Vec<String> = Vec::new();
        let mut places_of: TiVec<VcIndex, Option<i32>> = TiVec::with_capacity(network.vcs.len());
        for vc in &network.vcs {
            let crosses = vc.path.contains(&link);
            places_of.push(crosses.then(|| {
                let name = network.merged_at(vc, link).map_or(&vc.name, |merge| &network.merges[merge].name);
                let place = vcs.iter().position(|known| known == name).unwrap_or_else(|| {
                    vcs.push(name.clone());
                    vcs.len() - 1
                });
                whole(place)
            }));
        }
        let at = |since_start: Duration| Time::default() + clock.span(since_start);
        // A window that lasts until the end of the run also includes the events of the last instant.
        let end = if to >= network.duration { Time(network.end(clock).0.saturating_add(1)) } else { at(to) };
        full.set(false);
        Ok(Self {
            link,
            clock,
            window: [at(from), end],
            most,
            full,
            places_of,
            merges: network.vcs.iter().map(|vc| vc.merge.is_some()).collect(),
            places: Places::default(),
            waiting: VecDeque::new(),
            has_begun: false,
            rows: BTreeMap::new(),
            damaged: BTreeMap::new(),
            unfinished: BTreeMap::new(),
            sent: vec![0; vcs.len()],
            segments: BTreeMap::new(),
            judged: NONE,
            memory: MemoryObserver::of(network, link),
            history: History {
                port: network.links[link].name.clone(),
                capacity: network.links[link].buffer,
                sent_before: Vec::new(),
                vcs,
                cells: Cells::default(),
                frames: Frames::default(),
                judgements: Judgements::default(),
                steps: Steps::default(),
                ports: network.links.iter().map(|link| link.name.clone()).collect(),
                memory: None,
                cut_short: false,
            },
        })
    }

    /// Returns the recorded history.
    pub fn history(mut self) -> History {
        if !self.has_begun {
            self.begin();
        }
        self.history.memory = self.memory.map(|memory| memory.recorded);
        self.history
    }

    /// Begins the window by adding to the history the cells that are already waiting.
    fn begin(&mut self) {
        self.has_begun = true;
        self.history.sent_before = self.sent.iter().map(|&sent| sent as f64).collect();
        for at in 0..self.waiting.len() {
            let row = self.cell_row(self.waiting[at]);
            self.waiting[at].row = row;
        }
    }

    fn seconds(&self, time: Time) -> f64 {
        self.clock.seconds(time)
    }

    /// Returns the row of a frame. Creates the row if the frame has no row yet.
    fn frame_row(&mut self, frame: Frame) -> i32 {
        if let Some(&row) = self.rows.get(&frame) {
            return row;
        }
        let (vc, number) = frame;
        let damaged = self.damaged.get(&frame).copied();
        let damaged_s = damaged.map_or(f64::NAN, |(since, _)| self.seconds(since));
        let segment = self.segments.get(&frame).copied();
        let number = if self.merges[vc] { number.within_branch() } else { number.number() };
        let frames = &mut self.history.frames;
        frames.vc.push(self.places_of[vc].expect("the path of the VC contains the port"));
        frames.number.push(i32::try_from(number).unwrap_or(i32::MAX));
        frames.arrived_s.push(f64::NAN);
        frames.damaged_s.push(damaged_s);
        frames.damaged_at.push(damaged.and_then(|(_, link)| link).map_or(NONE, |link| whole(usize::from(link))));
        frames.fate.push("admitted");
        frames.sequence.push(segment.map_or(f64::NAN, |(sequence, _)| sequence as f64));
        frames.length.push(segment.map_or(f64::NAN, |(_, length)| f64::from(length)));
        let row = whole(frames.vc.len() - 1);
        self.rows.insert(frame, row);
        row
    }

    fn cell_row(&mut self, cell: Waiting) -> usize {
        let frame = if cell.is_rm { NONE } else { self.frame_row((cell.vc, cell.number)) };
        let steps = whole(self.history.steps.kind.len());
        let cells = &mut self.history.cells;
        cells.vc.push(self.places_of[cell.vc].expect("the path of the VC contains the port"));
        cells.frame.push(frame);
        cells.index.push(cell.index.map_or(NONE, |index| i32::try_from(index).unwrap_or(i32::MAX)));
        cells.last.push(i8::from(cell.last));
        cells.from.push(steps);
        cells.until.push(i32::MAX);
        cells.vc.len() - 1
    }

    /// Returns whether to record an event at `now`. The first recorded event begins the window.
    fn keeps(&mut self, now: Time) -> bool {
        let [from, to] = self.window;
        if now < from || now >= to || self.full.get() {
            return false;
        }
        if !self.has_begun {
            self.begin();
        }
        if self.history.steps.kind.len() >= self.most {
            self.history.cut_short = true;
            self.full.set(true);
            return false;
        }
        true
    }

    /// Adds a step, with the indices of its cell, VC, frame and decision.
    fn step(&mut self, now: Time, kind: Step, [cell, vc, frame, judgement, refusal]: [i32; 5]) {
        let seconds = self.seconds(now);
        let steps = &mut self.history.steps;
        steps.time_s.push(seconds);
        steps.kind.push(kind as i8);
        steps.cell.push(cell);
        steps.vc.push(vc);
        steps.frame.push(frame);
        steps.occupancy.push(whole(self.waiting.len()));
        steps.judgement.push(judgement);
        steps.refusal.push(refusal);
        if let Some(memory) = &mut self.memory {
            memory.next = Some(now);
        }
    }

    /// Records that a frame cannot be delivered intact, from `now` on.
    fn damage(&mut self, frame: Frame, now: Time, link: Option<LinkIndex>) {
        self.damaged.entry(frame).or_insert((now, link));
        if let Some(&row) = self.rows.get(&frame)
            && let Ok(row) = usize::try_from(row)
            && self.history.frames.damaged_s[row].is_nan()
        {
            self.history.frames.damaged_s[row] = self.clock.seconds(now);
            self.history.frames.damaged_at[row] = link.map_or(NONE, |link| whole(usize::from(link)));
        }
    }

    /// Detects frames that the receiver will join to the previous frame, whose last cell never entered the buffer.
    fn on_admitted(&mut self, now: Time, frame: Frame, last: bool) {
        let vc = self.places_of[frame.0].expect("the path of the VC contains the port");
        if self.unfinished.get(&vc).is_some_and(|before| *before != frame) {
            self.damage(frame, now, None);
        }
        if last {
            self.unfinished.remove(&vc);
        } else {
            self.unfinished.insert(vc, frame);
        }
    }

    fn on_cell(&mut self, now: Time, event: CellEvent) {
        let index = self.places.of(&event);
        let CellEvent { vc, frame: number, last, step, .. } = event;
        let is_rm = event.rm.is_some();
        let kind = match step {
            CellStep::Arrived | CellStep::Tagged | CellStep::Marked | CellStep::LostOnLink(_) => return,
            CellStep::Admitted => Step::Admitted,
            CellStep::Lost(Loss::NoRoom { .. }) => Step::Lost,
            CellStep::Lost(Loss::WithFrame | Loss::WithRest) => Step::Discarded,
            CellStep::PushedOut => Step::PushedOut,
            CellStep::Dropped | CellStep::DroppedAtHead => Step::Dropped,
            CellStep::Departed => Step::Departed,
        };
        // The window must begin before its first step is recorded, so that the history includes the cells already
        // waiting.
        let keeps = self.keeps(now);
        let comes = matches!(kind, Step::Admitted | Step::Lost | Step::Discarded);
        if kind == Step::Departed {
            let vc = self.places_of[vc].expect("the path of the VC contains the port");
            self.sent[usize::try_from(vc).expect("the VC has an index at the port")] += 1;
        }
        let row = if comes {
            let mut cell = Waiting { vc, number, is_rm, index, last, row: 0 };
            if keeps {
                cell.row = self.cell_row(cell);
            }
            if kind == Step::Admitted {
                self.waiting.push_back(cell);
            }
            cell.row
        } else {
            let found = self.waiting.iter().position(|of| of.vc == vc && of.number == number && of.is_rm == is_rm);
            let Some(cell) = found.and_then(|at| self.waiting.remove(at)) else { return };
            cell.row
        };
        if kind == Step::Admitted && !is_rm {
            self.on_admitted(now, (vc, number), last);
        }
        if !keeps {
            return;
        }
        let steps = whole(self.history.steps.kind.len());
        let cells = &mut self.history.cells;
        if comes {
            // A cell that is lost or discarded never waits.
            cells.from[row] = steps + 1;
        }
        if kind != Step::Admitted {
            cells.until[row] = steps + 1;
        }
        let frame = cells.frame[row];
        let judgement = if comes { std::mem::replace(&mut self.judged, NONE) } else { NONE };
        let refusal = if kind == Step::Lost { self.refusal(now, (vc, number)) } else { NONE };
        let vc = self.places_of[vc].expect("the path of the VC contains the port");
        self.step(now, kind, [whole(row), vc, frame, judgement, refusal]);
    }

    fn on_frame(&mut self, now: Time, event: FrameEvent) {
        let frame = (event.vc, event.frame);
        let Some(vc) = self.places_of[event.vc] else { return };
        if matches!(event.step, FrameStep::Marked(_)) {
            return;
        }
        let Some(link) = event.step.link() else {
            // The frame and all earlier frames of its VC have reached the end of their path.
            forget(&mut self.damaged, frame);
            forget(&mut self.segments, frame);
            return;
        };
        let here = link == self.link && !matches!(event.step, FrameStep::LostOnLink { .. });
        let is_in_window = now < self.window[1] && !self.full.get();
        let is_damaged = !matches!(event.step, FrameStep::Admitted(_));
        if is_damaged && is_in_window {
            self.damage(frame, now, Some(link));
        }
        if !here || !self.keeps(now) {
            return;
        }
        let row = self.frame_row(frame);
        let judgement = match event.step {
            FrameStep::Admitted(judged) | FrameStep::Refused(judged) | FrameStep::NoRoom(judged) => {
                self.judge(now, row, &event.step, judged)
            }
            _ => NONE,
        };
        let frames = &mut self.history.frames;
        let place = usize::try_from(row).expect("the event refers to an earlier row");
        let (fate, kind) = match event.step {
            FrameStep::Admitted(_) => {
                self.judged = judgement;
                return;
            }
            FrameStep::Refused(_) | FrameStep::NoRoom(_) => ("refused", Step::Refused),
            FrameStep::LostJoined { .. } => ("joined", Step::Cut),
            FrameStep::Dropped { rate_fell: true, .. } | FrameStep::DroppedAtHead(_) => ("dropped", Step::Cut),
            _ => ("cut", Step::Cut),
        };
        frames.fate[place] = fate;
        self.step(now, kind, [NONE, vc, row, judgement, self.refusal(now, frame)]);
    }

    /// Returns the row of the memory's refusal of a cell of this frame at `now`, or -1 if there is no such refusal.
    fn refusal(&self, now: Time, frame: Frame) -> i32 {
        self.memory.as_ref().map_or(NONE, |memory| memory.refusal(now, frame))
    }

    /// Returns whether a shared memory has refused a cell whose VC crosses this port.
    fn is_refusal_here(&self, event: &MemoryEvent) -> bool {
        matches!(event.step, MemoryStep::Refused { vc, .. } if self.places_of[vc].is_some())
    }

    fn judge(&mut self, now: Time, row: i32, step: &FrameStep, judged: Judged) -> i32 {
        let seconds = self.seconds(now);
        let number = |value: Option<f64>| value.unwrap_or(f64::NAN);
        let place = usize::try_from(row).expect("the event refers to an earlier row");
        self.history.frames.arrived_s[place] = seconds;
        let judgements = &mut self.history.judgements;
        judgements.frame.push(row);
        judgements.time_s.push(seconds);
        judgements.admitted.push(i8::from(matches!(step, FrameStep::Admitted(_))));
        judgements.reason.push(step.reason());
        judgements.occupancy.push(number(step.occupancy().map(f64::from)));
        judgements.vc_cells.push(f64::from(judged.vc_cells));
        judgements.active_vcs.push(f64::from(judged.active_vcs));
        judgements.threshold_cells.push(number(judged.decision.threshold));
        judgements.share_cells.push(number(judged.decision.share));
        judgements.held_cells.push(number(judged.decision.held));
        judgements.drop_probability.push(number(judged.decision.probability));
        judgements.tagged.push(i8::from(judged.tagged));
        whole(judgements.frame.len() - 1)
    }
}

impl Probe for Buffer<'_> {
    fn next_snapshot(&self) -> Option<Time> {
        self.memory.as_ref()?.next
    }

    fn snapshot(&mut self, now: Time, view: &NetworkView<'_>) {
        if let Some(memory) = &mut self.memory {
            let steps = whole(self.history.steps.kind.len());
            memory.snapshot(view.queues.memory(memory.number()), steps, now);
        }
    }
}

impl Observer for Buffer<'_> {
    const OBSERVES: bool = true;

    fn on_event(&mut self, now: Time, event: Event) {
        match event {
            Event::Cell(cell) if cell.link == self.link => self.on_cell(now, cell),
            Event::Frame(frame) => self.on_frame(now, frame),
            Event::Memory(event) if self.is_refusal_here(&event) && self.keeps(now) => {
                if let Some(memory) = &mut self.memory {
                    memory.on_event(now, &event);
                }
            }
            Event::Segment(segment) if self.places_of[segment.vc].is_some() => {
                if let SegmentStep::Sent { segment: bytes, .. } | SegmentStep::Retransmitted { segment: bytes, .. } =
                    segment.step
                {
                    self.segments.insert((segment.vc, segment.frame), (bytes.seq, bytes.len));
                }
            }
            _ => {}
        }
    }
}

/// Removes a frame and all earlier frames of its VC. Frames of a VC never overtake each other.
fn forget<T>(of: &mut BTreeMap<Frame, T>, (vc, number): Frame) {
    while let Some((&frame, _)) = of.range((vc, FrameNumber::new(0))..=(vc, number)).next() {
        of.remove(&frame);
    }
}

/// Converts an index to `i32`, which is large enough because every list fits into memory.
fn whole(place: usize) -> i32 {
    i32::try_from(place).expect("the number of rows is below 2^31")
}

#[cfg(test)]
mod tests;
