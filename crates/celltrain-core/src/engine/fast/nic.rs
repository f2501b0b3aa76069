//! A host's own port: an infinite queue in front of a link. The state of the queue is calculated instead of simulated.
//!
//! Frames are queued whole and cells leave in order, one per cell time, so the start of each cell is known when its
//! frame is queued. The queue length is exactly the reference engine's: the number of cells that have not started.
//! Within an instant, end systems act first, then ports send, then timers expire.

mod ethernet;

use std::collections::VecDeque;

use typed_index_collections::{TiVec, ti_vec};

use super::train::cells_after;
use crate::index::Label;
use crate::port::{PortCounters, PortState};
use crate::queue_range::{QueueRange, QueueTracker};
use crate::units::{Span, Time};
use ethernet::OnEthernet;

/// A host's own port. The record fits one cache line, because many frames leave through ports that have long been idle.
#[repr(align(64))]
pub(super) struct Nic {
    cell_time: Span,
    /// Time when the last queued cell will have been sent.
    free_at: Time,
    /// Instant and phase in which the latest frames were queued, and the number of waiting cells after that, including
    /// these frames.
    joined: Time,
    phase: Phase,
    waiting: u32,
    tracker: QueueTracker,
    offered: u64,
    /// State by VC, if several VCs cross the port.
    by_vc: Option<Box<ByVc>>,
}

struct ByVc {
    offered: TiVec<Label, u64>,
    /// Frames that may still have waiting cells, in order of departure.
    frames: VecDeque<Queued>,
    /// The times of the frames, if the link carries Ethernet frames.
    on_ethernet: Option<OnEthernet>,
}

/// Message of an assertion: the number of cells fits in 32 bits.
const SHORT: &str = "a queue stays below 2^32 cells";

/// The phase of an instant in which a frame is queued: end systems and sources act before ports send, timers after
/// that.
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

const _: () = assert!(size_of::<Nic>() == 64 && size_of::<Queued>() == 16, "the size is one cache line, as documented");

impl Nic {
    pub(super) fn new(cell_time: Span, vcs: usize) -> Self {
        Self {
            cell_time,
            free_at: Time::default(),
            joined: Time::default(),
            phase: Phase::BeforeService,
            waiting: 0,
            tracker: QueueTracker::default(),
            offered: 0,
            by_vc: (vcs != 1).then(|| Box::new(ByVc::new(vcs))),
        }
    }

    /// Begins a new phase. The frames queued in earlier phases count as waiting.
    #[inline]
    pub(super) fn begin_phase(&mut self, now: Time, phase: Phase) {
        (self.joined, self.phase) = (now, phase);
        self.waiting = self.waiting_at(now, phase);
        self.tracker.fall(self.waiting);
    }

    /// Queues a frame. Returns the start of its first cell.
    #[inline]
    pub(super) fn join(&mut self, now: Time, phase: Phase, label: Label, cells: u32) -> Time {
        if (self.joined, self.phase) != (now, phase) {
            self.begin_phase(now, phase);
        }
        self.waiting = self.waiting.checked_add(cells).expect(SHORT);
        self.tracker.rise(self.waiting);
        self.offered += u64::from(cells);
        let first_start = self.free_at.max(now);
        self.free_at = first_start + self.cell_time * u64::from(cells);
        if let Some(by_vc) = &mut self.by_vc {
            by_vc.join(now, Queued { label, first_start, cells }, self.cell_time);
        }
        first_start
    }

    /// Returns the state of the port at `now`, after all events of this instant.
    pub(super) fn state(&self, now: Time) -> PortState {
        let (offered, waiting): (TiVec<Label, u64>, TiVec<Label, u32>) = if let Some(by_vc) = &self.by_vc {
            (by_vc.offered.clone(), by_vc.waiting(now, self.cell_time))
        } else {
            let waiting = self.waiting_in(now, Phase::Timers);
            (ti_vec![self.offered], ti_vec![waiting])
        };
        let counters = |(&offered, &waiting): (&u64, &u32)| PortCounters {
            offered,
            forwarded: offered - u64::from(waiting),
            ..PortCounters::default()
        };
        PortState {
            counters: offered.iter().zip(&waiting).map(counters).collect(),
            max_queue: self.tracker.max_queue(),
            waiting,
            replaced_results: 0,
        }
    }

    /// Returns the number of cells that have not started before this phase of the instant. The last of these cells ends
    /// at `free_at`.
    fn waiting_at(&self, now: Time, phase: Phase) -> u32 {
        if self.free_at <= now {
            return 0;
        }
        let busy = (self.free_at - now).0;
        let cells = match phase {
            Phase::BeforeService => busy / self.cell_time.0,
            Phase::Timers => (busy - 1) / self.cell_time.0,
        };
        u32::try_from(cells).expect(SHORT)
    }

    /// Returns the minimum and maximum number of cells waiting since the latest sample, up to and including `now`.
    pub(super) fn range(&self, now: Time) -> QueueRange {
        self.tracker.range(self.waiting_in(now, Phase::Timers))
    }

    /// Starts a new range of queue lengths for a sample at `now`, after all events of this instant.
    pub(super) fn start_range(&mut self, now: Time) {
        self.tracker.start_range(self.waiting_in(now, Phase::Timers));
    }
}

impl ByVc {
    fn new(vcs: usize) -> Self {
        Self { offered: ti_vec![0; vcs], frames: VecDeque::new(), on_ethernet: None }
    }

    fn join(&mut self, now: Time, frame: Queued, cell_time: Span) {
        self.offered[frame.label] += u64::from(frame.cells);
        while self.frames.front().is_some_and(|frame| frame.last_start(cell_time) <= now) {
            self.frames.pop_front();
        }
        self.frames.push_back(frame);
    }

    fn waiting(&self, now: Time, cell_time: Span) -> TiVec<Label, u32> {
        let mut waiting = ti_vec![0; self.offered.len()];
        for frame in &self.frames {
            waiting[frame.label] += frame.not_started(now, cell_time);
        }
        waiting
    }
}

impl Queued {
    fn last_start(&self, cell_time: Span) -> Time {
        self.first_start + cell_time * u64::from(self.cells - 1)
    }

    fn not_started(&self, now: Time, cell_time: Span) -> u32 {
        cells_after(now, self.first_start, cell_time, self.cells)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_computed_queue_length_of_a_host_equals_the_number_of_cells_that_have_not_started() {
        let small = (1..4).flat_map(|time| (0..6).flat_map(move |gap| (1..4).map(move |cells| (time, gap, cells))));
        for (cell_time, gap, cells) in small {
            let mut nic = Nic::new(Span(cell_time), 1);
            let mut starts = Vec::new();
            for (joined, cells) in [(5, cells), (5 + gap, 2)] {
                let first = nic.join(Time(joined), Phase::BeforeService, Label::new(0), cells);
                starts.extend((0..u64::from(cells)).map(|i| first.0 + cell_time * i));
            }
            assert!(starts.is_sorted_by(|before, after| before + cell_time <= *after), "cells leave one by one");
            for now in 5 + gap..40 {
                let waiting = |latest| starts.iter().filter(|&&start| start > latest).count();
                assert_eq!(nic.waiting_at(Time(now), Phase::BeforeService) as usize, waiting(now - 1));
                assert_eq!(nic.waiting_at(Time(now), Phase::Timers) as usize, waiting(now));
            }
        }
    }
}
