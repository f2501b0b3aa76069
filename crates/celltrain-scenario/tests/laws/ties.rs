//! Random networks in which no cells arrive simultaneously.

use celltrain_core::engine::Engine;
use celltrain_core::events::{CellEvent, CellStep, Event, Observer};
use celltrain_core::index::LinkIndex;
use celltrain_core::network::{Network, NodeKind};
use celltrain_core::probe::Probe;
use celltrain_core::rng::Stream;
use celltrain_core::units::{Duration, Time};
use celltrain_scenario::topology::network::Config as GeneralNetwork;
use typed_index_collections::{TiVec, ti_vec};

/// Makes all delays and start times of a network different, so that ties are rare.
pub(super) fn prevent(network: &mut GeneralNetwork, rng: &mut Stream) {
    let mut later = |time: Duration| Duration { picoseconds: time.picoseconds + u64::from(rng.below(4_000_000)) };
    for link in &mut network.links {
        link.delay_back = Some(later(link.delay));
        link.delay = later(link.delay);
    }
    network.flows.iter_mut().for_each(|flow| flow.start = later(flow.start));
}

/// Returns whether cells arrive simultaneously at a port of a switch.
pub(super) fn occur(network: &Network) -> bool {
    let mut arrivals = Arrivals { network, last: ti_vec![Time::NEVER; network.links.len()], tie: false };
    Engine::Reference.observe(network, network.duration, &mut arrivals, |_| true).expect("nothing cancels this run");
    arrivals.tie
}

struct Arrivals<'a> {
    network: &'a Network,
    /// Time of the last arrival at each port.
    last: TiVec<LinkIndex, Time>,
    tie: bool,
}

impl Observer for Arrivals<'_> {
    const OBSERVES: bool = true;

    fn on_event(&mut self, now: Time, event: Event) {
        if let Event::Cell(CellEvent { link, step: CellStep::Arrived, .. }) = event
            && self.network.nodes[self.network.links[link].from].kind == NodeKind::Switch
        {
            self.tie |= std::mem::replace(&mut self.last[link], now) == now;
        }
    }
}

impl Probe for Arrivals<'_> {}
