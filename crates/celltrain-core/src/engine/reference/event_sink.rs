//! Events that the reference engine reports to a probe: frames and cells at ports, and rates.

use std::collections::BTreeMap;

use crate::abr::RmCell;
use crate::cell::{Cell, FrameNumber};
use crate::edge_device::{PacketOutcome, PacketStep};
use crate::end_systems::EndSystems;
use crate::events::{
    CellEvent, CellStep, Event, Failure, FrameEvent, FrameStep, Judged, Loss, MemoryEvent, MemoryRefusal, MemoryStep,
    RateEvent,
};
use crate::index::{Label, LinkIndex, VcIndex};
use crate::link_loss::LinkLoss;
use crate::network::Routing;
use crate::policy::{AtHead, Decision};
use crate::port::PortEvent;
use crate::probe::Probe;
use crate::rate_control::RateControl;
use crate::units::Time;

use super::buffers::BufferEvent;

/// The latest frames reported as lost on arrival and as lost while waiting, by link and label.
pub(super) type ReportedLosses = BTreeMap<(LinkIndex, Label), [Option<FrameNumber>; 2]>;

/// Reports the events of an instant. If the probe does not observe events, every method does nothing.
pub(super) struct EventSink<'a, P> {
    pub(super) now: Time,
    pub(super) probe: &'a mut P,
    pub(super) routing: &'a Routing,
    pub(super) end_systems: &'a EndSystems,
    pub(super) rate_control: &'a RateControl,
    pub(super) reported_losses: &'a mut ReportedLosses,
    /// The limit of the memory that prevents the cell from entering.
    pub(super) refusal: Option<MemoryRefusal>,
}

/// Creates the sink of an engine. This is a macro, so that it borrows only the fields it needs.
macro_rules! event_sink {
    ($engine:ident, $now:expr, $probe:expr) => {
        $crate::engine::reference::event_sink::EventSink {
            now: $now,
            probe: &mut *$probe,
            routing: &$engine.routing,
            end_systems: &$engine.end_systems,
            rate_control: &$engine.rate_control,
            reported_losses: &mut $engine.reported_losses,
            refusal: None,
        }
    };
}
pub(super) use event_sink;

impl<P: Probe> EventSink<'_, P> {
    /// Reports a cell at the port of a link, with the cell's label on that link.
    pub(super) fn cell(&mut self, link: LinkIndex, cell: Cell, step: CellStep) {
        if P::OBSERVES {
            let (vc, rm) = self.vc_and_rm(link, cell);
            let (frame, last, tagged, efci) = (cell.frame, cell.last_cell(), cell.tagged(), cell.efci());
            self.probe.on_event(self.now, Event::Cell(CellEvent { link, vc, frame, last, tagged, efci, rm, step }));
        }
    }

    /// Reports an event at a link's port that concerns an arriving cell.
    fn port(&mut self, link: LinkIndex, cell: Cell, occupancy: u32, event: &PortEvent<'_>) {
        if !P::OBSERVES {
            return;
        }
        match *event {
            PortEvent::Judged { view, admitted, policy } => {
                let label = cell.label();
                let judged = Judged::of(link, label, view, policy.explain(view, label));
                if admitted {
                    self.frame(link, cell, FrameStep::Admitted(judged));
                    if policy.marks_admitted() {
                        self.frame(link, cell, FrameStep::Marked(judged));
                    }
                } else {
                    self.lost(link, cell, FrameStep::Refused(judged));
                }
            }
            PortEvent::PushedOut { cell, cuts } => {
                if cuts {
                    self.frame(link, cell, FrameStep::Cut { link, occupancy, pushed_out: true, refusal: None });
                    self.reported_losses.entry((link, cell.label())).or_default()[1] = Some(cell.frame);
                }
                self.cell(link, cell, CellStep::PushedOut);
            }
            PortEvent::Lost(loss) => {
                let is_reported = self
                    .reported_losses
                    .get(&(link, cell.label()))
                    .is_some_and(|lost| lost.contains(&Some(cell.frame)));
                if loss == (Loss::NoRoom { cuts: true }) {
                    let refusal = self.refusal.take();
                    self.lost(link, cell, FrameStep::Cut { link, occupancy, pushed_out: false, refusal });
                } else if !is_reported && !cell.is_rm() {
                    self.lost(link, cell, FrameStep::LostJoined { link, occupancy });
                }
                self.cell(link, cell, CellStep::Lost(loss));
            }
            PortEvent::Admitted => self.cell(link, cell, CellStep::Admitted),
        }
    }

    /// Reports a cell that a link loses.
    pub(super) fn lost_on_link(&mut self, link: LinkIndex, cell: Cell, loss: LinkLoss) {
        if P::OBSERVES {
            if loss.cuts {
                self.frame(link, cell, FrameStep::LostOnLink { link, loss });
            }
            self.cell(link, cell, CellStep::LostOnLink(loss));
        }
    }

    /// Reports an event at a buffer about an arriving cell.
    pub(super) fn buffer(&mut self, cell: Cell, event: &BufferEvent<'_>) {
        if !P::OBSERVES {
            return;
        }
        match *event {
            BufferEvent::Port(link, occupancy, ref event) => self.port(link, cell, occupancy, event),
            BufferEvent::AtHead { judged, fate: AtHead::Drop } => {
                self.frame(judged.link, cell, FrameStep::DroppedAtHead(judged));
                self.reported_losses.entry((judged.link, cell.label())).or_default()[1] = Some(cell.frame);
            }
            BufferEvent::AtHead { judged, .. } => self.frame(judged.link, cell, FrameStep::Marked(judged)),
            BufferEvent::Memory(mut event) => {
                if let MemoryStep::Refused { vc, frame, limit, rule } = &mut event.step {
                    // Merged VCs share a label.
                    *vc = self.end_systems.sender_of(*vc, *frame);
                    let (limit, rule) = (*limit, *rule);
                    let MemoryEvent { memory, queue, shared, used, threshold, .. } = event;
                    self.refusal = Some(MemoryRefusal { memory, queue, limit, rule, shared, used, threshold });
                }
                self.probe.on_event(self.now, Event::Memory(event));
            }
            BufferEvent::Frame { admitted: true, judged } => self.frame(judged.link, cell, FrameStep::Admitted(judged)),
            BufferEvent::Frame { admitted: false, judged } => self.lost(judged.link, cell, FrameStep::Refused(judged)),
        }
    }

    /// Reports the outcome of a packet at a shaped port.
    pub(super) fn packet(&mut self, link: LinkIndex, fate: &PacketOutcome) {
        let PacketOutcome { label, packet, occupancy, vc_cells, active_vcs, step } = *fate;
        let last = Cell::new(label, packet.frame, true).with_tag(packet.tagged);
        let judged =
            Judged { link, occupancy, vc_cells, active_vcs, tagged: packet.tagged, decision: Decision::default() };
        let of_frame = match step {
            PacketStep::Admitted => FrameStep::Admitted(judged),
            PacketStep::Refused => FrameStep::NoRoom(judged),
            PacketStep::DroppedForRoom => FrameStep::Dropped { link, occupancy, rate_fell: false },
            PacketStep::DroppedByRate => FrameStep::Dropped { link, occupancy, rate_fell: true },
        };
        self.frame(link, last, of_frame);
        for cell in 1..=packet.cells {
            let of_cell = match step {
                PacketStep::Admitted => CellStep::Admitted,
                PacketStep::Refused => CellStep::Lost(Loss::NoRoom { cuts: cell == 1 }),
                PacketStep::DroppedForRoom => CellStep::PushedOut,
                PacketStep::DroppedByRate => CellStep::Dropped,
            };
            self.cell(link, if cell == packet.cells { last } else { last.not_last() }, of_cell);
        }
    }

    /// Reports that the last cell of a frame of `vc` reached the host although the frame is not complete.
    pub(super) fn failed(&mut self, vc: VcIndex, frame: FrameNumber, why: Failure) {
        if P::OBSERVES {
            let vc = self.end_systems.sender_of(vc, frame);
            let event = FrameEvent { vc, frame, step: FrameStep::Failed(why) };
            self.probe.on_event(self.now, Event::Frame(event));
        }
    }

    /// Reports the rate of a VC that is shaped at the port of a link, if it differs from `before`.
    pub(super) fn rate(&mut self, link: LinkIndex, label: Label, before: f64) {
        let Some(source) = self.rate_control.port(link).and_then(|port| port.source(label)) else { return };
        let (after, rule) = (source.acr(), source.rule());
        if after != before {
            let vc = self.routing.vcs[link][label];
            self.probe.on_event(self.now, Event::Rate(RateEvent { vc, before, after, rule }));
        }
    }

    fn lost(&mut self, link: LinkIndex, cell: Cell, step: FrameStep) {
        self.reported_losses.entry((link, cell.label())).or_default()[0] = Some(cell.frame);
        self.frame(link, cell, step);
    }

    fn frame(&mut self, link: LinkIndex, cell: Cell, step: FrameStep) {
        let (vc, _) = self.vc_and_rm(link, cell);
        self.probe.on_event(self.now, Event::Frame(FrameEvent { vc, frame: cell.frame, step }));
    }

    /// Returns the VC on which a cell was sent, and the cell's content if the cell is an RM cell.
    fn vc_and_rm(&self, link: LinkIndex, cell: Cell) -> (VcIndex, Option<RmCell>) {
        let vc = self.routing.vcs[link][cell.label()];
        if cell.is_rm() {
            return (vc, Some(self.rate_control.rm_content(vc, cell.frame)));
        }
        (self.end_systems.sender_of(vc, cell.frame), None)
    }
}
