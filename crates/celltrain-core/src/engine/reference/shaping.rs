//! Shaped ports, and RM cells at the ends of their loops and at the ports of allocators.

use std::cmp::Reverse;

use typed_index_collections::TiVec;

use super::event_sink::event_sink;
use super::{AtEnd, Engine, Event, PortArrival, What};
use crate::cell::{Cell, FrameNumber, Run};
use crate::events::CellStep;
use crate::index::{Label, LinkIndex, VcIndex};
use crate::network::LinkTimes;
use crate::probe::Probe;
use crate::rate_control::Place;
use crate::shaped_port::ShapedPort;
use crate::units::Time;

impl Engine<'_> {
    /// Handles an RM cell at the end of its loop: the destination returns it, or the source changes its rate.
    pub(super) fn end_loop(&mut self, vc: VcIndex, number: FrameNumber, now: Time, probe: &mut impl Probe) {
        let turned = self.rate_control.turn_around(vc, number);
        let Place { link, label } = self.rate_control.goes_to(vc);
        let before = self.acr(link, label);
        self.rate_control.deliver(vc, number, turned, now);
        event_sink!(self, now, probe).rate(link, label, before);
        self.emit_packet_outcomes(link, now, probe);
        self.now.to_serve.push(link);
    }

    pub(super) fn admit_shaped(&mut self, arrival: &PortArrival, now: Time, probe: &mut impl Probe) {
        let &PortArrival { port, vc, cell, .. } = arrival;
        event_sink!(self, now, probe).cell(port, cell, CellStep::Arrived);
        self.buffers.frames[port].enter(cell, now);
        if cell.last_cell() && cell.efci() {
            self.end_systems.mark(vc, cell.frame);
        }
        self.rate_control.port_mut(port).expect("the port is shaped").on_cells(Run { last: cell, cells: 1 });
        self.emit_packet_outcomes(port, now, probe);
    }

    pub(super) fn serve_shaped(&mut self, link: LinkIndex, now: Time, probe: &mut impl Probe) {
        if let Some(cell) = self.shape(link, now, probe) {
            let departing = self.buffers.departing(link, cell, now);
            if let Some(delays) = &mut self.delays {
                delays.on_departure(link, departing, now);
            }
            let LinkTimes { cell_time, delay } = self.times[link];
            let what = What::AtEnd(link, AtEnd::Arrival);
            self.events.push(Reverse(Event { time: now + cell_time + delay, what, cell }));
        }
        let next = self.rate_control.port(link).expect("the port is shaped").next_start();
        let looked_after = &mut self.looked_after[link];
        if let Some(time) = next.filter(|&time| looked_after.is_none_or(|other| other <= now || time < other)) {
            *looked_after = Some(time);
            self.events.push(Reverse(Event { time, what: What::Sent(link), cell: Cell::NONE }));
        }
    }

    /// Removes the cell that a shaped port sends now, if the port may send a cell.
    fn shape<P: Probe>(&mut self, link: LinkIndex, now: Time, probe: &mut P) -> Option<Cell> {
        let vcs = || self.routing.vcs[link].keys();
        let before: TiVec<Label, f64> =
            if P::OBSERVES { vcs().map(|label| self.acr(link, label)).collect() } else { TiVec::new() };
        let (Run { last: cell, .. }, _) = self.rate_control.port_mut(link)?.send(now, None)?;
        if P::OBSERVES {
            let mut event_sink = event_sink!(self, now, probe);
            event_sink.rate(link, cell.label(), before[cell.label()]);
            if cell.is_rm() {
                event_sink.cell(link, cell, CellStep::Arrived);
                event_sink.cell(link, cell, CellStep::Admitted);
            }
            event_sink.cell(link, cell, CellStep::Departed);
        }
        Some(cell)
    }

    /// Reports the outcomes of packets at the shaped port of a link since the last call.
    pub(super) fn emit_packet_outcomes(&mut self, link: LinkIndex, now: Time, probe: &mut impl Probe) {
        let outcomes = self.rate_control.port_mut(link).map(ShapedPort::take_outcomes).unwrap_or_default();
        for fate in outcomes {
            event_sink!(self, now, probe).packet(link, &fate);
        }
    }

    /// Returns the ACR of a VC that is shaped at the port of a link, or the line rate if it has no ACR. Returns 0 at
    /// other ports.
    fn acr(&self, link: LinkIndex, label: Label) -> f64 {
        self.rate_control.port(link).map_or(0.0, |port| port.acr(label))
    }

    /// Lets allocators write into the backward RM cells that pass their ports.
    pub(super) fn write(&mut self, now: Time) {
        for (vc, number, place) in self.now.passing.drain(..) {
            if self.rate_control.goes_backward(vc, number) {
                let queue = self.buffers.ports[place.link].occupancy();
                self.rate_control.write(vc, number, place, queue, now);
            }
        }
    }
}
