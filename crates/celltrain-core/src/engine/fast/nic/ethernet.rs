//! Hosts' own ports whose links carry Ethernet frames. The cells of a frame start at equal distances, but the last cell takes
//! another time, so the port counts the frames that it has queued.

use std::collections::VecDeque;

use super::{ByVc, Nic, Phase, Queued, SHORT};
use crate::index::Label;
use crate::units::{Span, Time};

const HAS_FRAMES: &str = "a port on Ethernet knows its frames";

/// The frames of a port, in addition to [`ByVc::frames`].
#[derive(Default)]
pub(super) struct OnEthernet {
    /// The time that the last cell of each frame takes, in the order of [`ByVc::frames`].
    last_cells: VecDeque<Span>,
    /// Number of cells in the queued frames.
    cells: u64,
    /// Time that all frames so far take together, in units of the clock.
    total: u64,
}

impl Nic {
    /// Makes the link of the port carry Ethernet frames.
    #[must_use]
    pub(in crate::engine::fast) fn on_ethernet(mut self, vcs: usize) -> Self {
        let by_vc = self.by_vc.get_or_insert_with(|| Box::new(ByVc::new(vcs)));
        by_vc.on_ethernet = Some(OnEthernet::default());
        self
    }

    /// A variant of [`Nic::join`] for a frame whose last cell takes `last_cell`.
    pub(in crate::engine::fast) fn join_on_ethernet(
        &mut self,
        now: Time,
        phase: Phase,
        label: Label,
        cells: u32,
        last_cell: Span,
    ) -> Time {
        if (self.joined, self.phase) != (now, phase) {
            self.begin_phase_in_any(now, phase);
        }
        self.waiting = self.waiting.checked_add(cells).expect(SHORT);
        self.tracker.rise(self.waiting);
        self.offered += u64::from(cells);
        let first_start = self.free_at.max(now);
        let by_vc = self.by_vc.as_deref_mut().expect(HAS_FRAMES);
        let on_ethernet = by_vc.on_ethernet.as_mut().expect(HAS_FRAMES);
        while let Some(gone) = by_vc.frames.front().filter(|frame| frame.last_start(self.cell_time) <= now) {
            on_ethernet.cells -= u64::from(gone.cells);
            on_ethernet.last_cells.pop_front();
            by_vc.frames.pop_front();
        }
        let time = self.cell_time * u64::from(cells - 1) + last_cell;
        on_ethernet.total += time.0;
        on_ethernet.cells += u64::from(cells);
        on_ethernet.last_cells.push_back(last_cell);
        by_vc.join(now, Queued { label, first_start, cells }, self.cell_time);
        self.free_at = first_start + time;
        first_start
    }

    /// A variant of [`Nic::begin_phase`] that also supports links with Ethernet frames.
    pub(in crate::engine::fast) fn begin_phase_in_any(&mut self, now: Time, phase: Phase) {
        (self.joined, self.phase) = (now, phase);
        self.waiting = self.waiting_in(now, phase);
        self.tracker.fall(self.waiting);
    }

    /// A variant of [`Nic::waiting_at`] that also supports links with Ethernet frames.
    pub(super) fn waiting_in(&self, now: Time, phase: Phase) -> u32 {
        let on_ethernet = self.by_vc.as_ref().and_then(|by_vc| by_vc.waiting_on_ethernet(now, phase, self.cell_time));
        on_ethernet.unwrap_or_else(|| self.waiting_at(now, phase))
    }

    /// Returns the time for which the port has sent frames, in units of the clock, up to and including the cells that start at
    /// `now`.
    pub(in crate::engine::fast) fn sent_on_ethernet(&self, now: Time) -> u64 {
        let Some(ByVc { frames, on_ethernet: Some(on_ethernet), .. }) = self.by_vc.as_deref() else { return 0 };
        let later = |(frame, last_cell): (&Queued, &Span)| match frame.not_started(now, self.cell_time) {
            0 => 0,
            cells => (self.cell_time * u64::from(cells - 1) + *last_cell).0,
        };
        on_ethernet.total - frames.iter().zip(&on_ethernet.last_cells).map(later).sum::<u64>()
    }
}

impl ByVc {
    /// Returns the number of cells that have not started before this phase of the instant, if the link carries Ethernet
    /// frames.
    pub(super) fn waiting_on_ethernet(&self, now: Time, phase: Phase, cell_time: Span) -> Option<u32> {
        let on_ethernet = self.on_ethernet.as_ref()?;
        let latest = match phase {
            Phase::BeforeService => now.0.checked_sub(1).map(Time),
            Phase::Timers => Some(now),
        };
        let mut waiting = on_ethernet.cells;
        for frame in &self.frames {
            let Some(latest) = latest.filter(|&latest| frame.first_start <= latest) else { break };
            waiting -= u64::from(frame.cells - frame.not_started(latest, cell_time));
        }
        Some(u32::try_from(waiting).expect(SHORT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    #[test]
    fn the_queues_and_transmission_times_of_an_ethernet_port_match_a_simple_model() {
        let mut rng = Stream::new(1, "nic");
        let cell_time = Span(5);
        let mut nic = Nic::new(cell_time, 1).on_ethernet(1);
        let mut cells: Vec<(Time, Span)> = Vec::new();
        let mut free_at = Time(0);
        for now in (0..2000).map(Time) {
            for phase in [Phase::BeforeService, Phase::Timers] {
                if rng.below(16) > 0 {
                    continue;
                }
                let (count, last_cell) = (1 + rng.below(4), Span(1 + u64::from(rng.below(9))));
                let first = nic.join_on_ethernet(now, phase, Label::new(0), count, last_cell);
                assert_eq!(first, free_at.max(now));
                for number in 1..=count {
                    let start = first + cell_time * u64::from(number - 1);
                    cells.push((start, if number == count { last_cell } else { cell_time }));
                    free_at = start + cells[cells.len() - 1].1;
                }
                // A cell that starts in the instant in which its frame joins is waiting before ports send.
                let is_waiting = |start: Time| start > now || (start == now && phase == Phase::BeforeService);
                let waiting = cells.iter().filter(|&&(start, _)| is_waiting(start) || start >= first).count();
                assert_eq!(nic.waiting as usize, waiting, "{now:?} {phase:?}");
            }
            let started = || cells.iter().filter(|&&(start, _)| start <= now);
            assert_eq!(nic.state(now).waiting[Label::new(0)] as usize, cells.len() - started().count());
            assert_eq!(nic.waiting_in(now, Phase::Timers) as usize, cells.len() - started().count());
            assert_eq!(nic.sent_on_ethernet(now), started().map(|&(_, time)| time.0).sum::<u64>());
        }
        assert!(cells.len() > 100);
    }
}
