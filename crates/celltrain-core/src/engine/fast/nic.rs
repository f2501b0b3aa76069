//! A host's own port: a queue without limit in front of a link, known by arithmetic.
//!
//! Frames join whole and leave in order, one cell a cell time, so when each cell of a frame will start is known as the
//! frame joins. The reference engine's queue length is kept to the letter: it counts the cells that have not started,
//! and within an instant service comes after the end systems but before the timers.

use std::collections::VecDeque;

use typed_index_collections::{TiVec, ti_vec};

use crate::index::Label;
use crate::port::{PortCounters, PortState};
use crate::units::{Span, Time};

/// A host's own port.
pub(super) struct Nic {
    cell_time: Span,
    /// When the last cell that joined will have been sent.
    free_at: Time,
    /// The instant and phase of the latest frames to join, and how many cells waited then, all of them counted.
    joined: (Time, Phase),
    waiting: u64,
    max_queue: u64,
    offered: TiVec<Label, u64>,
    /// Frames that may still have cells waiting, in order; not kept where there is one VC, whose cells they all are.
    frames: VecDeque<Queued>,
}

/// When in an instant a frame joins: end systems and sources before service, timers after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    BeforeService,
    Timers,
}

#[derive(Clone, Copy)]
struct Queued {
    label: Label,
    first_start: Time,
    cells: u32,
}

#[cfg(test)]
pub(super) const QUEUED_BYTES: usize = size_of::<Queued>();

impl Nic {
    pub(super) fn new(cell_time: Span, vcs: usize) -> Self {
        Self {
            cell_time,
            free_at: Time::default(),
            joined: (Time::default(), Phase::BeforeService),
            waiting: 0,
            max_queue: 0,
            offered: ti_vec![0; vcs],
            frames: VecDeque::new(),
        }
    }

    /// A frame joins; when its first cell starts.
    #[inline]
    pub(super) fn join(&mut self, now: Time, phase: Phase, label: Label, cells: u32) -> Time {
        if self.joined != (now, phase) {
            self.joined = (now, phase);
            self.waiting = self.waiting_at(now, phase);
        }
        self.waiting += u64::from(cells);
        self.max_queue = self.max_queue.max(self.waiting);
        self.offered[label] += u64::from(cells);
        let first_start = self.free_at.max(now);
        self.free_at = first_start + self.cell_time * u64::from(cells);
        if self.offered.len() == 1 {
            return first_start;
        }
        while self.frames.front().is_some_and(|frame| self.last_start(*frame) <= now) {
            self.frames.pop_front();
        }
        self.frames.push_back(Queued { label, first_start, cells });
        first_start
    }

    /// The port at `now`, after everything that happens then.
    pub(super) fn state(&self, now: Time) -> PortState {
        let mut waiting: TiVec<Label, u32> = ti_vec![0; self.offered.len()];
        if let [all] = &mut waiting.raw[..] {
            let after_service = self.waiting_at(now, Phase::Timers);
            *all = u32::try_from(after_service).expect("a queue stays below 2^32 cells");
        }
        for frame in &self.frames {
            waiting[frame.label] += self.not_started(*frame, now);
        }
        let counters = |(&offered, &waiting): (&u64, &u32)| PortCounters {
            offered,
            forwarded: offered - u64::from(waiting),
            ..PortCounters::default()
        };
        PortState {
            counters: self.offered.iter().zip(&waiting).map(counters).collect(),
            max_queue: u32::try_from(self.max_queue).expect("a queue stays below 2^32 cells"),
            waiting,
            replaced_results: 0,
        }
    }

    /// Cells that have not started before the phase's place in the instant: the last of them ends at `free_at`.
    fn waiting_at(&self, now: Time, phase: Phase) -> u64 {
        if self.free_at <= now {
            return 0;
        }
        let busy = (self.free_at - now).0;
        match phase {
            Phase::BeforeService => busy / self.cell_time.0,
            Phase::Timers => (busy - 1) / self.cell_time.0,
        }
    }

    fn last_start(&self, frame: Queued) -> Time {
        frame.first_start + self.cell_time * u64::from(frame.cells - 1)
    }

    /// Cells of a frame that start after `now`.
    fn not_started(&self, frame: Queued, now: Time) -> u32 {
        if frame.first_start > now {
            return frame.cells;
        }
        let started = (now - frame.first_start).0 / self.cell_time.0 + 1;
        frame.cells - u32::try_from(started).unwrap_or(frame.cells).min(frame.cells)
    }
}
