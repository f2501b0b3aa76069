//! A shaped output port: whole packets arrive, and cells leave at the rate of their VC.
//!
//! An edge device has a shaped port towards the ATM network, and so does a host with an ABR VC. The packets of each VC
//! wait in an [`EdgeBuffer`]. An ABR VC sends them as its [`Source`] allows, with its RM cells in between; any other VC
//! sends at the line rate. If several VCs may send, the VC that is due first sends, or the one with the lowest label if
//! they are due at the same time. So VCs at the line rate take turns. `docs/design/abr.md` describes the port's place
//! in the design.

use typed_index_collections::TiVec;

use crate::aal5::{Frame, FrameLog};
use crate::abr::{RmCell, Source};
use crate::cell::{Cell, FrameNumber, Run};
use crate::coverage::reached;
use crate::edge_device::{AdaState, EdgeBuffer, Packet, PacketOutcome, Packets};
use crate::index::Label;
use crate::port::{PortCounters, PortState};
use crate::units::{Span, Time};

/// An output port that shapes its VCs.
pub struct ShapedPort {
    cell_time: Span,
    /// Rate of the link, in cells per second.
    line_rate: f64,
    /// Time at which the link has sent all cells passed to it.
    free: Time,
    buffer: EdgeBuffer,
    vcs: TiVec<Label, Shaped>,
    ahead: Option<Ahead>,
}

/// State of one of the port's VCs.
struct Shaped {
    pace: Pace,
    /// Cells received of an incomplete packet.
    assembling: u32,
    /// Contents of the VC's RM cells in flight.
    rms: FrameLog<RmCell>,
    rms_sent: u64,
}

enum Pace {
    /// The ABR source determines when cells are sent.
    Controlled(Box<Source>),
    /// The source sends cells at the line rate. The next cell starts no earlier than this time.
    Line(Time),
}

/// Data cells that left the port's queue before their start time.
#[derive(Clone, Copy)]
struct Ahead {
    label: Label,
    /// Time at which the first of the cells sent ahead of time starts.
    first: Time,
    period: Span,
    cells: u32,
}

impl Ahead {
    /// Returns the number of cells that start at `now` or later.
    #[inline]
    fn not_started(&self, now: Time) -> u32 {
        let Ahead { first, period, cells, .. } = *self;
        if now <= first {
            return cells;
        }
        if now > first + period * u64::from(cells - 1) {
            return 0;
        }
        let started = ((now - first).0).div_ceil(period.0);
        cells - u32::try_from(started).expect("a train has at least as many cells as have started")
    }
}

/// A time longer than any run, but small enough to be added to another time.
const LONGEST_STEP: Span = Span(1 << 62);

impl ShapedPort {
    /// Creates a port that sends `line_rate` cells a second, each in `cell_time`. `sources` has, by label, a source for
    /// each VC whose rate is controlled.
    pub fn new(cell_time: Span, line_rate: f64, buffer: EdgeBuffer, sources: Vec<Option<Source>>) -> Self {
        let pace = |source| match source {
            Some(source) => Pace::Controlled(Box::new(source)),
            None => Pace::Line(Time::default()),
        };
        let shaped = |source| Shaped { pace: pace(source), assembling: 0, rms: FrameLog::default(), rms_sent: 0 };
        let vcs = sources.into_iter().map(shaped).collect();
        Self { cell_time, line_rate, free: Time::default(), buffer, vcs, ahead: None }
    }

    /// Receives cells of a packet; `run` may end it. The packet joins the buffer when it is complete.
    pub fn on_cells(&mut self, run: Run) {
        let label = run.last.label();
        let vc = &mut self.vcs[label];
        vc.assembling += run.cells;
        if run.last.last_cell() {
            let cells = std::mem::take(&mut vc.assembling);
            self.on_packet(label, Packet { frame: run.last.frame, cells, tagged: run.last.tagged() });
        }
    }

    /// Offers a complete packet to the buffer, which may drop it.
    pub fn on_packet(&mut self, label: Label, packet: Packet) {
        debug_assert!(self.ahead.is_none(), "cells that were sent ahead of their time have been taken back");
        let acr = self.acr(label);
        self.buffer.offer(label, packet, acr);
    }

    /// Offers a packet at `now`, but does not take back the VC's cells that left the queue early. Returns whether there
    /// are such cells. Their packet is sent first in any case, and the buffer counts these cells as waiting until they
    /// start.
    pub fn on_packet_behind(&mut self, label: Label, packet: Packet, now: Time) -> bool {
        let Some(ahead) = self.ahead.filter(|ahead| ahead.label == label) else { return false };
        let back = ahead.not_started(now);
        if back > 0 {
            self.buffer.untake(label, back);
        }
        let acr = self.acr(label);
        self.buffer.offer(label, packet, acr);
        if back > 0 {
            self.buffer.take(label, back);
        }
        true
    }

    /// Returns whether this backward RM cell leaves the VC's rate unchanged, so that cells sent early need not be taken
    /// back.
    pub fn keeps_rate(&self, label: Label, rm: &RmCell) -> bool {
        self.source(label).is_some_and(|source| source.acr_after(rm) == source.acr())
    }

    /// Handles a backward RM cell that has returned to its source.
    pub fn on_backward_rm(&mut self, label: Label, rm: &RmCell, now: Time) {
        debug_assert!(
            self.ahead.is_none() || self.keeps_rate(label, rm),
            "cells that have not started are taken back \
            first"
        );
        let source = self.source_mut(label);
        let before = source.acr();
        source.on_backward_rm(rm, now);
        let acr = source.acr();
        if acr != before {
            self.buffer.on_rate(label, acr);
        }
    }

    /// Queues `rm`, a turned-around forward RM cell of the other direction, until this VC may send it.
    pub fn turn_around(&mut self, label: Label, rm: RmCell) {
        debug_assert!(self.ahead.is_none(), "cells that were sent ahead of their time have been taken back");
        self.source_mut(label).turn_around(rm);
    }

    /// Returns the content of RM cell `number` for modification. The cell must not have reached the end of its loop.
    pub fn rm(&mut self, label: Label, number: FrameNumber) -> &mut RmCell {
        &mut self.vcs[label].rms.frame_mut(number).body
    }

    /// Returns the content of RM cell `number`.
    pub fn rm_content(&self, label: Label, number: FrameNumber) -> RmCell {
        self.vcs[label].rms.frame(number).body
    }

    /// Starts recording the outcomes of packets.
    pub fn note_fates(&mut self) {
        self.buffer.note_fates();
    }

    /// Returns the outcomes of packets since the last call; empty if they are not recorded.
    pub fn take_outcomes(&mut self) -> Vec<PacketOutcome> {
        self.buffer.take_outcomes()
    }

    /// Removes the RM cells before `number`, because that cell has reached the end of its loop.
    pub fn forget_rms_before(&mut self, label: Label, number: FrameNumber) {
        self.vcs[label].rms.forget_before(number);
    }

    /// Returns the start of the next cell in the current state.
    pub fn next_start(&self) -> Option<Time> {
        self.first().map(|(time, _)| time.max(self.free))
    }

    /// Returns the VC that sends next, and the earliest instant at which it may send.
    fn first(&self) -> Option<(Time, Label)> {
        let one = |(label, vc): (Label, &Shaped)| {
            let data = self.waits(label);
            let time = match &vc.pace {
                Pace::Line(next) => data.then_some(*next)?,
                Pace::Controlled(source) => source.next_start(data)?,
            };
            Some((time, label))
        };
        Label::counting().zip(&self.vcs).filter_map(one).min()
    }

    /// Sends the cell that starts at `now`, if any. With `ahead`, also sends the packet's next data cells, at equal
    /// intervals, that start by the time `ahead` if nothing arrives in between. Returns the cells and the interval.
    pub fn send(&mut self, now: Time, ahead: Option<Time>) -> Option<(Run, Span)> {
        debug_assert!(self.ahead.is_none(), "cells that were sent ahead of their time have been taken back");
        let (time, label) = self.first()?;
        if time.max(self.free) > now {
            return None;
        }
        self.free = now + self.cell_time;
        let data = self.waits(label);
        let vc = &mut self.vcs[label];
        let mut period = self.cell_time;
        let mut more = 0;
        match &mut vc.pace {
            Pace::Line(next) => *next = self.free,
            Pace::Controlled(source) => {
                let rm = if source.goes_out_of_rate(now, data) {
                    Some(source.sent_out_of_rate(now))
                } else {
                    let kind = source.next_kind(now, data).expect("data or an RM cell is waiting");
                    source.sent(now, kind)
                };
                if let Some(rm) = rm {
                    vc.rms_sent += 1;
                    let number = vc.rms.push(Frame::new(1, rm));
                    // Rules 4 and 11 determine the CLP bit.
                    let cell = Cell::rm(label, number).with_tag(rm.out_of_rate);
                    return Some((Run { last: cell, cells: 1 }, period));
                }
                period = source.interval().min(LONGEST_STEP);
            }
        }
        if let Some(ahead) = ahead.filter(|&ahead| ahead >= now && ahead - now >= period) {
            more = self.train(label, now + period, (ahead - now).0 / period.0);
        }
        let run = self.buffer.take(label, 1 + more);
        if more > 0 {
            let first = now + period;
            match &mut self.vcs[label].pace {
                Pace::Line(next) => *next = first + period * u64::from(more),
                Pace::Controlled(source) => source.sent_data(first, more),
            }
            self.free = first + period * u64::from(more - 1) + self.cell_time;
            self.ahead = Some(Ahead { label, first, period, cells: more });
        }
        Some((run, period))
    }

    /// Returns how many more data cells of the current packet a VC sends in a row from `first` on, if nothing arrives
    /// in between.
    fn train(&self, label: Label, first: Time, most: u64) -> u32 {
        let Some((_, left)) = self.buffer.packets().front(label) else { return 0 };
        let alone = |other: Label| {
            other == label
                || !self.waits(other)
                    && match &self.vcs[other].pace {
                        Pace::Line(_) => true,
                        Pace::Controlled(source) => !source.backward_rm_waits(),
                    }
        };
        if !Label::counting().zip(&self.vcs).all(|(other, _)| alone(other)) {
            return 0;
        }
        let most = u32::try_from(most).unwrap_or(u32::MAX).min(left - 1);
        match &self.vcs[label].pace {
            Pace::Line(_) => most,
            // Send cells one by one if an out-of-rate cell may come between two data cells.
            Pace::Controlled(source) if source.next_out_of_rate(true).is_some() => 0,
            Pace::Controlled(source) => most.min(source.data_cells_until_rm(first)),
        }
    }

    /// Takes back the cells sent early that would start at `now` or later. Returns their VC and their number, or `None`
    /// if there are none.
    pub fn take_back(&mut self, now: Time) -> Option<(Label, u32)> {
        let ahead = self.ahead.take()?;
        let Ahead { label, first, period, cells } = ahead;
        let back = ahead.not_started(now);
        if back > 0 {
            reached!(CellsTakenBack);
            self.buffer.untake(label, back);
            let next = first + period * u64::from(cells - back);
            match &mut self.vcs[label].pace {
                Pace::Line(at) => *at = next,
                Pace::Controlled(source) => source.unsend_data(back),
            }
            // The last cell that starts is the cell before the cells taken back.
            self.free = Time(next.0 - period.0) + self.cell_time;
        }
        (back > 0).then_some((label, back))
    }

    /// Returns the rate of a VC, in cells per second.
    pub fn acr(&self, label: Label) -> f64 {
        match &self.vcs[label].pace {
            Pace::Controlled(source) => source.acr(),
            Pace::Line(_) => self.line_rate,
        }
    }

    /// Returns the source of a VC whose rate is controlled.
    pub fn source(&self, label: Label) -> Option<&Source> {
        match &self.vcs[label].pace {
            Pace::Controlled(source) => Some(source),
            Pace::Line(_) => None,
        }
    }

    fn source_mut(&mut self, label: Label) -> &mut Source {
        match &mut self.vcs[label].pace {
            Pace::Controlled(source) => source,
            Pace::Line(_) => panic!("RM cells belong to VCs with rate control"),
        }
    }

    /// Returns the buffer of the port's packets.
    pub fn buffer(&self) -> &Packets {
        self.buffer.packets()
    }

    /// Returns the state that the discard algorithm keeps for a VC, if it keeps any.
    pub fn discard_state(&self, label: Label) -> Option<AdaState> {
        self.buffer.state(label)
    }

    /// Returns whether a VC has a cell of a complete packet to send.
    fn waits(&self, label: Label) -> bool {
        self.buffer().cells(label) > 0
    }

    /// Returns the number of RM cells a VC has sent.
    pub fn rms_sent(&self, label: Label) -> u64 {
        self.vcs[label].rms_sent
    }

    /// Returns the number of waiting cells of each VC, by label, counting complete packets only.
    pub fn per_vc(&self) -> impl Iterator<Item = u32> {
        Label::counting().zip(&self.vcs).map(|(label, _)| self.buffer().cells(label))
    }

    /// Returns the number of waiting cells of all VCs.
    pub fn occupancy(&self) -> u32 {
        self.per_vc().sum()
    }

    /// Starts a new range of the queue length at a sample.
    pub fn start_range(&mut self) {
        debug_assert!(self.ahead.is_none(), "cells that were sent ahead of their time have been taken back");
        self.buffer.start_range();
    }

    /// Returns the port's state for results. Arriving cells count as offered and as waiting even before their packet is
    /// complete.
    pub fn state(&self) -> PortState {
        let counters = Label::counting().zip(&self.vcs).map(|(label, vc)| {
            let data = self.buffer().vc_counters(label);
            let offered = data.offered + u64::from(vc.assembling) + vc.rms_sent;
            PortCounters { offered, forwarded: data.forwarded + vc.rms_sent, ..data }
        });
        let waiting = Label::counting().zip(&self.vcs).map(|(label, vc)| self.buffer().cells(label) + vc.assembling);
        PortState {
            counters: counters.collect(),
            waiting: waiting.collect(),
            max_queue: self.buffer().max_queue(),
            replaced_results: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::tests::cell;
    use crate::edge_device::{DiscardConfig, EdgeConfig, Memory, tail_drop};

    #[test]
    fn the_occupancy_of_a_shaped_port_counts_only_cells_of_packets_that_have_arrived_completely() {
        let discard = DiscardConfig::TailDrop(tail_drop::Config {});
        let config = EdgeConfig { buffer: None, memory: Memory::PerVc, discard };
        let mut port = ShapedPort::new(Span(10), 100.0, EdgeBuffer::new(&config, 2, &[12; 2]), vec![None, None]);
        // Packets of 12 and 2 cells: arriving cells, and the number of waiting cells afterwards.
        for (label, last, cells, waiting) in [(0, false, 7, 0), (0, true, 5, 12), (1, true, 2, 14)] {
            port.on_cells(Run { last: cell(label, 0, last), cells });
            assert_eq!(port.occupancy(), waiting);
        }
        let (sent, _) = port.send(Time(0), None).expect("at least one cell is waiting");
        assert_eq!((sent.cells, port.occupancy()), (1, 13));
    }
}
