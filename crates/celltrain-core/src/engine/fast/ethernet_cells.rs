//! Cells on links where cells take different times: links that carry Ethernet frames or change their rate.

use super::egress::Downstream;
use super::fabric::{Fabric, Onward};
use super::lanes::Delivery;
use super::late::HeldBack;
use super::plan::StageEnd;
use super::train::Train;
use crate::cell::{Cell, Run};
use crate::index::LinkIndex;
use crate::units::{Span, Time};

impl Fabric {
    pub(super) fn is_on_ethernet(&self, link: LinkIndex) -> bool {
        self.ethernet.is_on(link)
    }

    /// Returns the time that a cell takes on a link with Ethernet frames.
    pub(super) fn sending_time(&self, link: LinkIndex, cell: Cell) -> Span {
        if cell.last_cell() {
            self.ethernet.sending_time(link, cell, &self.end_systems)
        } else {
            self.ethernet.cell_time(link)
        }
    }

    /// Sends a single cell, which starts at `start` and takes `sending` on its link. Returns the cell if its next port is
    /// contended.
    fn send_alone(&mut self, link: LinkIndex, last: Cell, start: Time, sending: Span) -> Option<Onward> {
        let (run, period) = (Run { last, cells: 1 }, Span(1));
        let stage = self.plan.stages[link][last.label()];
        let lead = sending + self.plan.delays[link];
        let arrival = start + lead;
        if arrival > self.horizon {
            self.hold_back(HeldBack { link, run, first_start: start, period, lead });
            return None;
        }
        if let Some(delays) = &mut self.delays
            && last.last_cell()
        {
            delays.on_ethernet_frame(stage.number, last.frame, start, arrival);
        }
        match stage.end {
            StageEnd::Host { vc, link, lane } => {
                if let Some(frame) = self.end_systems.collect(vc, run, |_, _| {}) {
                    let delivery = Delivery { time: arrival, link, vc, frame, cells: 0 };
                    self.lanes.push_frame(lane, delivery, &mut self.event_list);
                }
                None
            }
            StageEnd::Port { port, input, label } => {
                Some(Onward { port, input, train: Train::of(run, arrival, period, label) })
            }
            StageEnd::Shaped { .. } => unreachable!("no link with Ethernet frames leads to a shaped port"),
        }
    }
}

impl Downstream<'_> {
    /// Sends cells of a packet on a link with Ethernet frames. The first starts at `first_start`.
    pub(super) fn go_on_ethernet(&mut self, link: LinkIndex, run: Run, first_start: Time) {
        let period = self.fabric.ethernet.cell_time(link);
        let ends = u32::from(run.last.last_cell());
        let before = Run { last: run.last.not_last(), cells: run.cells - ends };
        if before.cells > 0
            && let Some(onward) = self.fabric.go_unwatched(link, before, first_start, period)
        {
            self.join(onward);
        }
        if ends > 0 {
            let sending = self.fabric.sending_time(link, run.last);
            self.send_alone(link, run.last, first_start + period * u64::from(before.cells), sending);
        }
    }

    /// Sends a cell that takes `sending` on a link where cells take different times.
    pub(super) fn send_alone(&mut self, link: LinkIndex, cell: Cell, start: Time, sending: Span) {
        if let Some(onward) = self.fabric.send_alone(link, cell, start, sending) {
            self.join(onward);
        }
    }

    /// Sends a cell that takes `sending` on a link with Ethernet frames.
    pub(super) fn send_on_ethernet(&mut self, link: LinkIndex, cell: Cell, start: Time, sending: Span) {
        if cell.last_cell() {
            self.send_alone(link, cell, start, sending);
        } else if let Some(onward) = self.fabric.go_unwatched(link, Run { last: cell, cells: 1 }, start, sending) {
            self.join(onward);
        }
    }
}
