//! What the fast engine needs of memory beside the models.

use super::Delivery;
use super::batching_port;
use super::egress;
use super::fifo;
use super::nic;
use super::plan::{self, Stage};
use super::port_builder::BYTES_PER_EXIT;
use super::port_plan::{FAR, MANY};
use super::rm;
use super::stream;
use super::tournament_tree::Key;
use super::train::Train;
use super::train_ingress::Turn;
use super::train_port;
use crate::cell::Run;
use crate::index::LinkIndex;
use crate::network::{Network, NodeKind};
use crate::shape::Shape;
use crate::sizes::{LIST, array, count, grown, size};
use crate::units::CELL_BITS;

/// A frame on its way is a train at a port or in front of it, and one to be delivered at last.
pub(crate) const BYTES_PER_FRAME: u64 = size::<Train>() + size::<Delivery>();

/// What is made at the start of a run and stays.
pub(crate) fn footprint(shape: &Shape<'_>) -> u64 {
    let network = shape.network;
    let controls = network.vcs.iter().any(|vc| vc.abr.is_some());
    let mut bytes = 0;
    for (link, &labels) in shape.labels.iter_enumerated() {
        bytes += BYTES_PER_LINK;
        let at_host = network.nodes[network.links[link].from].kind != NodeKind::Switch;
        let contended = shape.is_contended(link);
        if at_host {
            bytes += nic::bytes(labels) + size::<LinkIndex>();
        } else if contended {
            bytes += of_contended_port(shape, link);
        }
        if at_host || contended {
            bytes += of_stages(labels, controls);
        } else {
            // Cells pass it on a stage that begins elsewhere.
            bytes += labels * BYTES_PER_PASSED;
        }
    }
    let exits = count(network.vcs.len()) * BYTES_PER_EXIT;
    bytes + exits + count(network.flows.len()) * BYTES_PER_FLOW
}

/// Memory of ports that count as contended because their range is read ([`Probe::traced_ports`]), beyond that of
/// [`footprint`].
///
/// [`Probe::traced_ports`]: crate::probe::Probe::traced_ports
pub(crate) fn of_traced_ports(shape: &Shape<'_>, links: &[LinkIndex]) -> u64 {
    let network = shape.network;
    let controls = network.vcs.iter().any(|vc| vc.abr.is_some());
    let passed = |&&link: &&LinkIndex| {
        network.nodes[network.links[link].from].kind == NodeKind::Switch && !shape.is_contended(link)
    };
    links
        .iter()
        .filter(passed)
        .map(|&link| of_contended_port(shape, link) + of_stages(shape.labels[link], controls))
        .sum()
}

/// The port, what comes in, and its queue.
fn of_contended_port(shape: &Shape<'_>, link: LinkIndex) -> u64 {
    let (network, labels) = (shape.network, shape.labels[link]);
    let inputs = count(shape.feeders.of(link).len());
    // Where cells of several links meet, each that waits is a run of its own.
    let waiting = grown(shape.queues[link], size::<Run>());
    let fifo = waiting.max(batching_port::reserved(network.links[link].buffer, labels));
    let port = shape.port(link, &batching_port::RECORDS, fifo)
        + BYTES_PER_CONTENDED_PORT
        + array(labels, train_port::BYTES_PER_VC)
        + array(inputs, train_port::BYTES_PER_INPUT)
        + turns(inputs);
    if !may_take_streams(shape, link) {
        return port;
    }
    let cells = |from: &LinkIndex| shape.crossing[*from].min(cells_under_way(network, *from)) * stream::BYTES_PER_CELL;
    port + array(labels, egress::BYTES_PER_VC + fifo::BYTES_PER_VC)
        + inputs * stream::BYTES
        + shape.feeders.of(link).iter().map(cells).sum::<u64>()
}

/// The stages that begin at a port.
fn of_stages(labels: u64, controls: bool) -> u64 {
    let stages = array(labels, size::<Stage>()) + array(labels + 1, 4) + array(labels, 8) + BYTES_OF_LANES;
    stages + if controls { labels * BYTES_PER_CONTROLLED + BYTES_OF_RM_LANES } else { 0 }
}

const PICOSECONDS_PER_SECOND: u128 = 1_000_000_000_000;

/// Returns whether single cells may be on their way to a port in streams. Ports behind one link are left out, most of
/// which take each cell at once and keep none.
fn may_take_streams(shape: &Shape<'_>, link: LinkIndex) -> bool {
    shape.labels[link] >= count(MANY) && cells_under_way(shape.network, link) >= FAR
}

/// Returns how many cells a link holds, sent one after the other.
fn cells_under_way(network: &Network, link: LinkIndex) -> u64 {
    let link = &network.links[link];
    let picoseconds = u128::from(link.delay.picoseconds) * u128::from(link.rate.bits_per_second);
    let cells = picoseconds / (u128::from(CELL_BITS) * PICOSECONDS_PER_SECOND);
    u64::try_from(cells).unwrap_or(u64::MAX).saturating_add(1)
}

/// The turns of a port's inputs: one more on each side, and room for a whole tree.
fn turns(inputs: u64) -> u64 {
    array((inputs + 2).next_power_of_two(), size::<Turn>())
}

/// A flow in the list of those to be started.
const BYTES_PER_FLOW: u64 = 16;
/// A link's role, its place in the lists of stages, passed ports, late cells, delays and feeders.
const BYTES_PER_LINK: u64 = 16 + LIST + 2 * LIST + LIST + 8 + 4 + BYTES_PER_FEEDER;
/// A contended port and its number.
const BYTES_PER_CONTENDED_PORT: u64 = train_port::BYTES + size::<LinkIndex>();
/// A transparent port on the way of a VC, with a place for what comes late.
const BYTES_PER_PASSED: u64 = plan::BYTES_PER_PASSED + 8;
/// The number of a link that feeds the port of another; where there are several, they are inputs.
const BYTES_PER_FEEDER: u64 = 4;
/// Most ports send over one lead or two. A lane for each: its list, its key on the event list, and where it leads.
const BYTES_OF_LANES: u64 = 2 * (32 + size::<Key>() * 8 / 7 + 12);
/// Of a VC's RM cells: their way, and how many leave or come late.
const BYTES_PER_CONTROLLED: u64 = plan::BYTES_PER_RM_WAY + 8 + LIST + 32;
/// A lane for the ends of RM cells and one for what they pass, with their keys.
const BYTES_OF_RM_LANES: u64 = 2 * rm::BYTES_PER_LANE + 2 * size::<Key>() * 8 / 7;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::tests::{FIRST, ring_network};
    use crate::stop::Stop;

    #[test]
    fn a_second_flow_on_a_vc_has_its_own_place_and_nothing_else() {
        let mut network = ring_network(5, "1ms");
        let of = |network: &Network| footprint(&Shape::new(network, &Stop::never()).unwrap());
        let before = of(&network);
        network.flows.push(network.flows[FIRST].clone());
        assert_eq!(of(&network) - before, BYTES_PER_FLOW);
    }
}
