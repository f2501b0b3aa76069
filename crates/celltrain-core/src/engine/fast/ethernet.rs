//! Links that carry Ethernet frames.
//!
//! The cells of a packet start at equal distances, as on other links, but the last cell takes another time
//! ([`Wire::last_cell_bits`]). So it travels behind the others, as a train of its own. No port at either end of such a link
//! is transparent, and the port that sends on it is a host's port, or is in a memory or simulated like one.

use typed_index_collections::TiVec;

use crate::cell::Cell;
use crate::end_systems::EndSystems;
use crate::index::{Label, LinkIndex, VcIndex};
use crate::network::{Network, Routing};
use crate::units::{BitRate, Clock, Span};
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

    pub(super) fn is_on(&self, link: LinkIndex) -> bool {
        matches!(self.links.get(link), Some(Some(_)))
    }

    pub(super) fn cell_time(&self, link: LinkIndex) -> Span {
        self.on(link).cell_time
    }

    /// Returns the time that the last cell of a packet takes on a link.
    pub(super) fn sending_time(&self, link: LinkIndex, last: Cell, end_systems: &EndSystems) -> Span {
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
