//! What the fast engine needs of memory beside the models.

use super::Delivery;
use super::agenda::Key;
use super::nic::Nic;
use super::plan::{self, Stage};
use super::rm;
use super::server::{self, Train};
use super::turns::Turn;
use crate::footprint::{LIST, Shape, array, count, size};
use crate::network::NodeKind;

/// A frame on its way is a train at a port or in front of it, and one to be delivered at last.
pub(crate) const BYTES_PER_FRAME: u64 = size::<Train>() + size::<Delivery>();

/// What is made at the start of a run and stays.
pub(crate) fn footprint(shape: &Shape<'_>) -> u64 {
    let network = shape.network;
    let controls = network.vcs.iter().any(|vc| vc.abr.is_some());
    let mut bytes = 0;
    for (link, &labels) in shape.labels.iter().enumerate() {
        // Its role, its place in the lists of stages, ways, late cells and delays.
        bytes += 16 + LIST + 2 * LIST + LIST + 8 + 4;
        let at_host = network.nodes[network.links[link].from].kind != NodeKind::Switch;
        let contended = shape.is_contended(link);
        if at_host {
            bytes += size::<Nic>() + array(labels, 8) + 4;
        } else if contended {
            let inputs = count(shape.feeders.of(link).len());
            bytes += shape.port(link) + server::BYTES + array(labels, server::BYTES_PER_VC) + 8;
            bytes += array(inputs, server::BYTES_PER_INPUT) + array((inputs + 2).next_power_of_two(), size::<Turn>());
        }
        if at_host || contended {
            // Stages, with a place each for what comes late, and a lane or two at least with its key on the agenda.
            bytes += array(labels, size::<Stage>()) + array(labels + 1, 4) + array(labels, 8) + LANES * BYTES_PER_LANE;
            if controls {
                // Of RM cells: their ways, how many leave or come late, and a lane for their ends and one for what they pass.
                bytes += labels * (plan::BYTES_PER_RM_WAY + 8 + LIST + 32) + LANES * rm::BYTES_PER_LANE;
                bytes += LANES * size::<Key>() * 8 / 7;
            }
        } else {
            // Cells pass it on a stage that begins elsewhere.
            bytes += labels * (plan::BYTES_PER_PASSED + 8);
        }
        bytes += count(shape.feeders.of(link).len()) * 4 + 4;
    }
    let ways = count(network.vcs.len()) * plan::BYTES_PER_WAY;
    bytes + ways + count(network.flows.len()) * 16
}

/// Most ports send over one lead or two.
const LANES: u64 = 2;
/// A lane: its list, its key on the agenda, and where it leads.
const BYTES_PER_LANE: u64 = 32 + size::<Key>() * 8 / 7 + 12;
