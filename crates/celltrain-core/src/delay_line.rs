//! The delay line at the end of a link that delays some packets, or whose delay changes.
//!
//! Cells leave the line at least one cell time of the link apart. The cells of a delayed packet are collected and leave
//! together, so that its last cell is late by the packet's delay. A packet's cells never leave between cells of another
//! packet of the same VC. Later packets overtake a delayed packet (`docs/design/engine-order.md`).

use std::collections::VecDeque;

use typed_index_collections::{TiVec, ti_vec};

use crate::cell::{Cell, FrameNumber};
use crate::coverage::reached;
use crate::index::Label;
use crate::link_loss::Fate;
use crate::units::{Span, Time};

/// The state of a delay line.
#[derive(Clone, Debug)]
pub(crate) struct DelayLine {
    cell_time: Span,
    /// Earliest time at which the next cell can start to leave.
    free_at: Time,
    /// Cells ready to leave, in order, with their times.
    leaving: VecDeque<(Time, Cell)>,
    /// Complete packets, ordered by the time at which they may leave.
    late: VecDeque<LatePacket>,
    /// For each label, the first label of the VC with which it has merged, or the label itself. On the link behind the
    /// port where VCs merge, each branch still has its own label.
    merged: TiVec<Label, Label>,
    vcs: TiVec<Label, VcOnLine>,
}

#[derive(Clone, Debug)]
struct LatePacket {
    /// Time at which the packet's first cell may leave.
    due: Time,
    cells: Vec<Cell>,
}

#[derive(Clone, Debug, Default)]
struct VcOnLine {
    /// The delayed packet whose cells are currently arriving.
    collected: Option<Collected>,
    /// True if the last data cell that left was not the end of its packet. For merged VCs, stored at the first label.
    is_within_packet: bool,
    /// Packets that are due and wait for the end of the packet that is currently leaving, at the same label.
    waiting: VecDeque<Vec<Cell>>,
}

#[derive(Clone, Debug)]
struct Collected {
    delay: Span,
    /// Arrival time of the packet's latest cell.
    latest: Time,
    cells: Vec<Cell>,
}

impl DelayLine {
    /// Creates the line of a link. `merged` contains, for each label, the first label of the VC with which it has merged, or
    /// the label itself.
    pub(crate) fn new(merged: TiVec<Label, Label>, cell_time: Span) -> Self {
        let (leaving, late) = (VecDeque::new(), VecDeque::new());
        let vcs = ti_vec![VcOnLine::default(); merged.len()];
        Self { cell_time, free_at: Time::default(), leaving, late, merged, vcs }
    }

    /// Takes a cell that reaches the end of the link at `now`, and that the link does not lose. For each packet
    /// that later packets can no longer overtake, calls `released` with its label and number.
    pub(crate) fn enter(&mut self, cell: Cell, fate: Fate, now: Time, mut released: impl FnMut(Label, FrameNumber)) {
        self.advance(now, &mut released);
        let label = cell.label();
        // The last cell of the packet being collected may have been lost.
        let is_next = |collected: &mut Collected| !cell.is_rm() && collected.cells[0].frame != cell.frame;
        if let Some(cut) = self.vcs[label].collected.take_if(is_next) {
            reached!(DelayedPacketCut);
            self.complete(cut, now);
        }
        if let Fate::InOrder(by) = fate {
            self.leave(cell, now + by);
        } else if let Fate::Delayed(delay) = fate {
            let new = || Collected { delay, latest: now, cells: Vec::new() };
            let collected = self.vcs[label].collected.get_or_insert_with(new);
            collected.latest = now;
            collected.cells.push(cell);
            if cell.last_cell()
                && let Some(whole) = self.vcs[label].collected.take()
            {
                self.complete(whole, now);
            }
        } else {
            self.leave(cell, now);
            self.leave_waiting(self.merged[label], now, &mut released);
        }
        self.advance(now, &mut released);
    }

    /// Releases the packets that are due at `now`.
    pub(crate) fn advance(&mut self, now: Time, released: &mut impl FnMut(Label, FrameNumber)) {
        while self.late.front().is_some_and(|packet| packet.due <= now)
            && let Some(packet) = self.late.pop_front()
        {
            let label = self.merged[packet.cells[0].label()];
            self.vcs[label].waiting.push_back(packet.cells);
            reached!(DelayedPacketWaits if self.vcs[label].is_within_packet);
            self.leave_waiting(label, now, released);
        }
    }

    /// Returns the time of the next action, if any: a cell leaves or a packet is due.
    pub(crate) fn next_action(&self) -> Option<Time> {
        let leaves = self.leaving.front().map(|&(time, _)| time);
        leaves.into_iter().chain(self.late.front().map(|packet| packet.due)).min()
    }

    /// Removes the cell that leaves by `now`, if there is one.
    pub(crate) fn take(&mut self, now: Time) -> Option<Cell> {
        self.leaving.front().filter(|&&(time, _)| time <= now)?;
        self.leaving.pop_front().map(|(_, cell)| cell)
    }

    /// Returns the cells on the line.
    pub(crate) fn cells(&self) -> impl Iterator<Item = Cell> {
        let of_vcs = self.vcs.iter().flat_map(|vc| {
            let collected = vc.collected.iter().flat_map(|packet| &packet.cells);
            collected.chain(vc.waiting.iter().flatten())
        });
        let late = self.late.iter().flat_map(|packet| &packet.cells);
        self.leaving.iter().map(|(_, cell)| cell).chain(late).chain(of_vcs).copied()
    }

    /// Sets the time at which a packet may leave, so that its last cell is late by the packet's delay.
    fn complete(&mut self, Collected { delay, latest, cells }: Collected, now: Time) {
        let takes = self.cell_time * (cells.len() as u64 - 1);
        let due = now.max(latest + Span(delay.0.saturating_sub(takes.0)));
        let place = self.late.partition_point(|packet| packet.due <= due);
        self.late.insert(place, LatePacket { due, cells });
    }

    /// Sends a cell at the time `from` or later, after all cells that are ready to leave.
    fn leave(&mut self, cell: Cell, from: Time) {
        let start = self.free_at.max(from);
        self.free_at = start + self.cell_time;
        self.leaving.push_back((start, cell));
        if !cell.is_rm() {
            self.vcs[self.merged[cell.label()]].is_within_packet = !cell.last_cell();
        }
    }

    /// Sends the waiting packets of a VC, unless another packet of the VC is leaving.
    fn leave_waiting(&mut self, label: Label, now: Time, released: &mut impl FnMut(Label, FrameNumber)) {
        while !self.vcs[label].is_within_packet
            && let Some(cells) = self.vcs[label].waiting.pop_front()
        {
            for &cell in &cells {
                self.leave(cell, now);
            }
            released(cells[0].label(), cells[0].frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::tests::cell;

    /// Passes cells through a line with a cell time of 2. Each cell is given as time, frame, whether it ends the frame,
    /// and delay. Returns the frames and the times at which they leave.
    fn through(cells: &[(u64, u32, bool, Option<u64>)]) -> Vec<(u64, u32)> {
        through_merged(1, cells)
    }

    /// Passes cells of merged VCs through a line. The frames belong to the `branches` in turn.
    fn through_merged(branches: u32, cells: &[(u64, u32, bool, Option<u64>)]) -> Vec<(u64, u32)> {
        let mut line = DelayLine::new((0..branches).map(|_| Label::new(0)).collect(), Span(2));
        let (mut cells, mut left) = (VecDeque::from(cells.to_vec()), Vec::new());
        loop {
            let next = cells.front().map(|cell| Time(cell.0));
            let Some(now) = next.into_iter().chain(line.next_action()).min() else { break };
            line.advance(now, &mut |_, _| {});
            if next == Some(now)
                && let Some((_, frame, ends, delay)) = cells.pop_front()
            {
                let fate = delay.map_or(Fate::Passes, |delay| Fate::Delayed(Span(delay)));
                line.enter(cell(frame % branches, frame, ends), fate, now, |_, _| {});
            }
            while let Some(cell) = line.take(now) {
                left.push((now.0, cell.frame.number()));
            }
        }
        assert_eq!(line.cells().count(), 0);
        left
    }

    #[test]
    fn without_interference_every_cell_of_a_delayed_packet_has_the_configured_extra_delay() {
        let cells = [(0, 0, false, Some(10)), (2, 0, true, Some(10)), (4, 1, false, None), (6, 1, true, None)];
        assert_eq!(through(&cells), [(4, 1), (6, 1), (10, 0), (12, 0)]);
    }

    #[test]
    fn a_delayed_packet_starts_after_the_packet_in_transmission_and_then_delays_the_next_packet() {
        let cells = [
            (0, 0, false, Some(5)),
            (2, 0, true, Some(5)),
            (4, 1, false, None),
            (6, 1, true, None),
            (8, 2, false, None),
            (10, 2, true, None),
        ];
        assert_eq!(through(&cells), [(4, 1), (6, 1), (8, 0), (10, 0), (12, 2), (14, 2)]);
    }

    #[test]
    fn a_delayed_packet_waits_for_a_packet_of_another_vc_that_merges_into_the_same_vc() {
        let cells = [(0, 0, false, Some(5)), (2, 0, true, Some(5)), (4, 1, false, None), (6, 1, true, None)];
        assert_eq!(through_merged(2, &cells), [(4, 1), (6, 1), (8, 0), (10, 0)]);
    }

    #[test]
    fn a_delayed_packet_leaves_only_after_its_last_cell_has_arrived() {
        assert_eq!(through(&[(0, 0, false, Some(1)), (2, 0, true, Some(1))]), [(2, 0), (4, 0)]);
    }

    #[test]
    fn a_cell_whose_delay_shrinks_waits_for_all_earlier_cells() {
        let mut line = DelayLine::new(ti_vec![Label::new(0); 2], Span(2));
        for (number, (now, by)) in [(0, 10), (2, 10), (4, 1), (20, 1), (30, 9)].into_iter().enumerate() {
            let frame = u32::try_from(number).unwrap();
            line.enter(cell(frame % 2, frame, true), Fate::InOrder(Span(by)), Time(now), |_, _| {});
        }
        let leaving: Vec<_> = line.leaving.iter().map(|(time, cell)| (time.0, cell.frame.number())).collect();
        assert_eq!(leaving, [(10, 0), (12, 1), (14, 2), (21, 3), (39, 4)]);
    }

    #[test]
    fn a_delayed_packet_that_lost_its_last_cell_does_not_delay_the_next_packet() {
        let cells = [(0, 0, false, Some(4)), (6, 1, false, None), (8, 1, true, None)];
        // The packet was due at 4, but more of its cells could have arrived later.
        assert_eq!(through(&cells), [(6, 1), (8, 1), (10, 0)]);
    }
}
