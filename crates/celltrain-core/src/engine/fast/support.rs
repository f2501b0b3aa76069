//! The networks that the fast engine does not support, which run on the reference engine.

use typed_index_collections::{TiVec, ti_vec};

use super::ingress::MOST_MEMORY_INPUTS;
use super::pausing_groups::{has_cycle, pausable};
use crate::aal5::Framing;
use crate::index::{LinkIndex, NodeIndex};
use crate::memory::{MemoryConfig, Pauses};
use crate::network::{Graph, Link, Network, NodeKind};

/// Returns whether the fast engine supports a network.
pub(in crate::engine) fn supports(network: &Network) -> bool {
    needs_reference(network).is_none()
}

/// Returns why a network needs the reference engine, or `None` if the fast engine supports the network.
pub(super) fn needs_reference(network: &Network) -> Option<&'static str> {
    let pausable = pausable(network);
    let is_pausable = |link: LinkIndex| pausable.get(link) == Some(&true);
    if let Some(reason) = pauses_unsupported(network, is_pausable) {
        return Some(reason);
    }
    if let Some(reason) = rates_unsupported(network, is_pausable) {
        return Some(reason);
    }
    let mut inputs: TiVec<NodeIndex, usize> = ti_vec![0; network.nodes.len()];
    network.links.iter().for_each(|link| inputs[link.to] += 1);
    // A batch must have room for the cells of all inputs of each switch with a memory, with packets that wait until they are
    // whole or leave in Ethernet frames, with links that pause, or with an order of simultaneous cells that depends on
    // earlier arrivals.
    let has_room = |node| inputs[node] <= MOST_MEMORY_INPUTS;
    let has_other_times = |link| network.is_on_ethernet(link) || network.changes_rate(link);
    let is_unit = |link| network.stores(link).is_some() || has_other_times(link) || is_pausable(link);
    let fits = (!network.tie_order.follows_bursts() || network.nodes.keys().all(has_room))
        && network.memories.iter().all(|memory| has_room(network.links[memory.ports[0]].from))
        && network.links.iter_enumerated().all(|(number, link)| !is_unit(number) || has_room(link.from));
    (!fits).then_some("a switch has too many inputs; this needs the reference engine")
}

/// Returns why changes of links' rates need the reference engine, or `None` if they do not.
fn rates_unsupported(network: &Network, is_pausable: impl Fn(LinkIndex) -> bool) -> Option<&'static str> {
    let mut changing = network.links.iter_enumerated().filter(|&(link, _)| network.changes_rate(link)).peekable();
    changing.peek()?;
    let is_at = |link: &Link, kind| [link.from, link.to].iter().any(|&node| network.nodes[node].kind == kind);
    let routing = network.routing();
    changing.find_map(|(number, link)| {
        if network.nodes[link.from].kind == NodeKind::Host {
            Some("the rate of a host's own link changes; this needs the reference engine")
        } else if is_at(link, NodeKind::EdgeDevice) || network.vcs.iter().any(|vc| vc.abr.is_some()) {
            Some("the rate of a link changes in a network with ABR or at an edge device; this needs the reference engine")
        } else if is_pausable(number) {
            Some("a link pauses and changes its rate; this needs the reference engine")
        } else if routing.merging[number].contains(&true) {
            Some("the rate of a link changes where VCs merge; this needs the reference engine")
        } else {
            None
        }
    })
}

/// Returns why the pauses of a network need the reference engine, or `None` if they do not.
fn pauses_unsupported(network: &Network, is_pausable: impl Fn(LinkIndex) -> bool) -> Option<&'static str> {
    if !network.links.keys().any(&is_pausable) {
        return None;
    }
    let routing = network.routing();
    let merges = |link: LinkIndex| is_pausable(link) && routing.merging[link].contains(&true);
    let is_scheduled = |(number, link): (LinkIndex, &Link)| is_pausable(number) && !link.is_fifo();
    let is_host = |link: LinkIndex| network.nodes[network.links[link].from].kind == NodeKind::Host;
    let at = |kind: NodeKind| network.nodes.iter().any(|node| node.kind == kind);
    if network.delays.at_ports() {
        Some("links pause, and the delays at ports are measured; this needs the reference engine")
    } else if network.vcs.iter().any(|vc| vc.abr.is_some()) || at(NodeKind::EdgeDevice) {
        Some("links pause in a network with ABR or edge devices; this needs the reference engine")
    } else if network.links.keys().any(|link| is_pausable(link) && is_host(link) && network.is_on_ethernet(link)) {
        Some("a switch pauses a host that sends Ethernet frames; this needs the reference engine")
    } else if network.links.iter_enumerated().any(is_scheduled) {
        Some("a link that pauses has a scheduler; this needs the reference engine")
    } else if network.links.keys().any(merges) {
        Some("a link pauses where VCs merge; this needs the reference engine")
    } else if network.aal5.framing == Framing::Packets {
        pause_frames_unsupported(network)
    } else {
        None
    }
}

/// Returns why pause frames as on a wire need the reference engine, if they do.
fn pause_frames_unsupported(network: &Network) -> Option<&'static str> {
    let mut pausing = network.memories.iter().filter(|memory| memory.pauses == Pauses::Links);
    let sends_back = |memory: &MemoryConfig| {
        let fifo = |port: LinkIndex| network.links[port].is_fifo();
        let mut groups = memory.queues.iter().filter(|queue| queue.lossless.is_some());
        memory.ports.iter().all(|&port| fifo(port))
            && groups.all(|queue| memory.ports.contains(&Graph::way_back(queue.link)))
    };
    if network.switching.cut_through {
        Some("links pause, and switches do not store packets; this needs the reference engine")
    } else if has_cycle(network) {
        Some("pause frames can stop ports in a cycle; this needs the reference engine")
    } else if !pausing.all(sends_back) {
        Some("pause frames leave a port with a scheduler, or outside the memory; this needs the reference engine")
    } else {
        None
    }
}
