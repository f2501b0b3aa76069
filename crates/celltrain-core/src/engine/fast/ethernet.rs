//! Links that carry Ethernet frames.
//!
//! The cells of a packet start at equal distances, as on other links, but the last cell takes another time
//! ([`Wire::last_cell_bits`]). So it travels behind the others, as a train of its own. No port at either end of such a link
//! is transparent, and the port that sends on it is a host's port, or is in a memory or simulated like one.

use typed_index_collections::TiVec;

use super::egress::Downstream;
use super::fabric::{Fabric, Onward};
use super::lanes::Delivery;
use super::late::HeldBack;
use super::plan::StageEnd;
use super::train::Train;
use crate::cell::{Cell, Run};
use crate::end_systems::EndSystems;
use crate::index::{Label, LinkIndex, VcIndex};
use crate::network::{Network, Routing};
use crate::units::{BitRate, Clock, Span, Time};
use crate::wire::Wire;

/// The links that carry Ethernet frames.
pub(super) struct EthernetLinks {
    /// By link; empty if there are none.
    links: TiVec<LinkIndex, Option<EthernetLink>>,
    clock: Clock,
}

struct EthernetLink {
    rate: BitRate,
    cell_time: Span,
    /// The VCs on the link, by label.
    vcs: TiVec<Label, VcIndex>,
}

impl EthernetLinks {
    pub(super) fn new(network: &Network, routing: &Routing, clock: Clock) -> Self {
        let one = |link: LinkIndex| {
            let (rate, vcs) = (network.links[link].rate, routing.vcs[link].clone());
            network.is_on_ethernet(link).then(|| EthernetLink { rate, cell_time: clock.cell_time(rate), vcs })
        };
        let links = if network.has_ethernet() { network.links.keys().map(one).collect() } else { TiVec::new() };
        Self { links, clock }
    }

    /// Returns the time that the last cell of a packet takes on a link.
    fn sending_time(&self, link: LinkIndex, last: Cell, end_systems: &EndSystems) -> Span {
        let EthernetLink { rate, vcs, .. } = self.on(link);
        let (bytes, cells) = end_systems.length(vcs[last.label()], last.frame);
        self.clock.sending_time(Wire::Ethernet.last_cell_bits(bytes, cells, self.clock.cell_bits), *rate)
    }

    fn on(&self, link: LinkIndex) -> &EthernetLink {
        self.links[link].as_ref().expect("the link carries Ethernet frames")
    }
}

/// Returns a time in which a link that carries Ethernet frames delivers at most one cell on average. Several cells of a
/// packet need more than a cell time for each but the last one, and a single cell needs the time of the shortest frame.
pub(super) fn least_spacing(cell_time: Span, rate: BitRate, clock: Clock) -> Span {
    Span(cell_time.0 / 2).min(clock.sending_time(Wire::Ethernet.frame_bits(0), rate)).max(Span(1))
}

/// Returns limits of the time that the last cell of a packet takes.
pub(super) fn last_cell_times(rate: BitRate, clock: Clock) -> (Span, Span) {
    let time = |bits| clock.sending_time(bits, rate);
    let longest = clock.cell_bits.saturating_add(Wire::Ethernet.frame_bits(0));
    (time(Wire::Ethernet.unit_bits(clock.cell_bits)), time(longest))
}

impl Fabric {
    pub(super) fn is_on_ethernet(&self, link: LinkIndex) -> bool {
        matches!(self.ethernet.links.get(link), Some(Some(_)))
    }

    /// Returns the time that a cell takes on a link with Ethernet frames.
    pub(super) fn sending_time(&self, link: LinkIndex, cell: Cell) -> Span {
        if cell.last_cell() {
            self.ethernet.sending_time(link, cell, &self.end_systems)
        } else {
            self.ethernet.on(link).cell_time
        }
    }

    /// Sends the last cell of a packet, which starts at `start` and takes `sending` on its link. Returns the cell if its next
    /// port is contended.
    fn end_packet(&mut self, link: LinkIndex, last: Cell, start: Time, sending: Span) -> Option<Onward> {
        let (run, period) = (Run { last, cells: 1 }, self.ethernet.on(link).cell_time);
        let stage = self.plan.stages[link][last.label()];
        let lead = sending + self.plan.delays[link];
        let arrival = start + lead;
        if arrival > self.horizon {
            self.hold_back(HeldBack { link, run, first_start: start, period, lead });
            return None;
        }
        if let Some(delays) = &mut self.delays {
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
            StageEnd::Shaped { .. } => unreachable!("shaped ports need AAL5"),
        }
    }
}

impl Downstream<'_> {
    /// Sends cells of a packet on a link with Ethernet frames. The first starts at `first_start`.
    pub(super) fn go_on_ethernet(&mut self, link: LinkIndex, run: Run, first_start: Time) {
        let period = self.fabric.ethernet.on(link).cell_time;
        let ends = u32::from(run.last.last_cell());
        let before = Run { last: run.last.not_last(), cells: run.cells - ends };
        if before.cells > 0
            && let Some(onward) = self.fabric.go_unwatched(link, before, first_start, period)
        {
            self.join(onward);
        }
        if ends > 0 {
            let sending = self.fabric.sending_time(link, run.last);
            self.end_packet(link, run.last, first_start + period * u64::from(before.cells), sending);
        }
    }

    /// Sends the last cell of a packet, which takes `sending` on a link with Ethernet frames.
    fn end_packet(&mut self, link: LinkIndex, last: Cell, start: Time, sending: Span) {
        if let Some(onward) = self.fabric.end_packet(link, last, start, sending) {
            self.join(onward);
        }
    }

    /// Sends a cell that takes `sending` on a link with Ethernet frames.
    pub(super) fn send_on_ethernet(&mut self, link: LinkIndex, cell: Cell, start: Time, sending: Span) {
        if cell.last_cell() {
            self.end_packet(link, cell, start, sending);
        } else if let Some(onward) = self.fabric.go_unwatched(link, Run { last: cell, cells: 1 }, start, sending) {
            self.join(onward);
        }
    }
}
