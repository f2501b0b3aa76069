//! Laws about the order in which a network's parts are listed.

use celltrain_core::abr::allocator::AllocatorConfig;
use celltrain_core::index::{FlowIndex, LinkIndex, MergeIndex, NodeIndex, VcIndex};
use celltrain_core::network::{Flow, Link, Network};
use celltrain_core::policy::PolicyConfig;
use celltrain_core::rng::Stream;

use super::same::{by_name, same};
use super::written::general;
use super::{Case, ties};

/// New numbers of a network's parts.
pub(super) struct Numbers {
    nodes: Vec<usize>,
    links: Vec<usize>,
    vcs: Vec<usize>,
    merges: Vec<usize>,
}

impl Numbers {
    /// Returns the new numbers of a network's parts if the parts of another network of the same size come first.
    pub(super) fn of_copy(network: &Network) -> Self {
        let shifted = |parts: usize| (parts..2 * parts).collect();
        Self {
            nodes: shifted(network.nodes.len()),
            links: shifted(network.links.len()),
            vcs: shifted(network.vcs.len()),
            merges: shifted(network.merges.len()),
        }
    }

    /// Returns the new numbers of a network's parts if a link is inserted after `link`.
    pub(super) fn with_link_after(link: LinkIndex, network: &Network) -> Self {
        Self {
            nodes: (0..network.nodes.len()).collect(),
            links: network.links.keys().map(|other| usize::from(other) + usize::from(other > link)).collect(),
            vcs: (0..network.vcs.len()).collect(),
            merges: (0..network.merges.len()).collect(),
        }
    }

    /// Replaces the numbers of parts in all references of a network. The lists of parts keep their order.
    pub(super) fn replace(&self, network: &mut Network) {
        let node = |node: &mut NodeIndex| *node = NodeIndex::from(self.nodes[usize::from(*node)]);
        let link = |link: &mut LinkIndex| *link = LinkIndex::from(self.links[usize::from(*link)]);
        let vc = |vc: &mut VcIndex| *vc = VcIndex::from(self.vcs[usize::from(*vc)]);
        let merge = |merge: &mut MergeIndex| *merge = MergeIndex::from(self.merges[usize::from(*merge)]);
        for of_link in &mut network.links {
            node(&mut of_link.from);
            node(&mut of_link.to);
        }
        for of_vc in &mut network.vcs {
            of_vc.path.iter_mut().for_each(link);
            of_vc.partner.iter_mut().for_each(vc);
            of_vc.merge.iter_mut().for_each(merge);
        }
        network.merges.iter_mut().for_each(|merge| link(&mut merge.at));
        for flow in &mut network.flows {
            vc(&mut flow.data_vc);
            vc(&mut flow.ack_vc);
        }
        link(&mut network.bottleneck);
    }
}

/// Returns the network with nodes, links, VCs and flows in another order: `order[new]` is the old number.
fn reordered(network: &Network, [nodes, links, vcs, flows]: [&[usize]; 4]) -> Network {
    let mut changed = network.clone();
    changed.nodes = nodes.iter().map(|&old| network.nodes[NodeIndex::from(old)].clone()).collect();
    changed.links = links.iter().map(|&old| network.links[LinkIndex::from(old)].clone()).collect();
    changed.vcs = vcs.iter().map(|&old| network.vcs[VcIndex::from(old)].clone()).collect();
    changed.flows = flows.iter().map(|&old| network.flows[FlowIndex::from(old)].clone()).collect();
    let merges = (0..network.merges.len()).collect();
    let numbers = Numbers { nodes: inverse(nodes), links: inverse(links), vcs: inverse(vcs), merges };
    numbers.replace(&mut changed);
    changed
}

fn inverse(order: &[usize]) -> Vec<usize> {
    let mut numbers = vec![0; order.len()];
    for (new, &old) in order.iter().enumerate() {
        numbers[old] = new;
    }
    numbers
}

/// Draws an order of `parts` parts in which the parts in `tied` keep their relative order.
fn order(parts: usize, rng: &mut Stream, tied: impl Fn(usize, usize) -> bool) -> Vec<usize> {
    let mut rest: Vec<usize> = (0..parts).collect();
    let mut order = Vec::new();
    while !rest.is_empty() {
        let may_be_next = |&place: &usize| rest[..place].iter().all(|&before| !tied(before, rest[place]));
        let mut next: Vec<usize> = (0..rest.len()).filter(may_be_next).collect();
        rng.shuffle(&mut next);
        order.push(rest.remove(next[0]));
    }
    order
}

/// The law keeps the order of a node's inputs, a host's flows and a port's VCs, because this order decides ties.
pub(super) fn keep_ties(case: &mut Case) -> Result<bool, String> {
    let network = case.network();
    // Leave out ideal shares, which are sums over flows, so that their last digits depend on the order of the flows.
    if network.links.iter().any(|link| matches!(link.allocator, Some(AllocatorConfig::MaxMin(_)))) {
        return Ok(false);
    }
    same_in_another_order(case, &network, |a, b| a.to == b.to, |_| true)
}

/// Without ties, the law changes the order of inputs, which affects only ties. It keeps the order of a host's flows,
/// which act together when their clocks tick, and the order of VCs, because some ports serve VCs in turn.
pub(super) fn no_ties(case: &mut Case) -> Result<bool, String> {
    ties::prevent(general(&mut case.scenario), &mut case.draws);
    let network = case.network();
    let outcome = same_in_another_order(case, &network, |_, _| false, |port| has_turns(&network, port));
    if outcome.is_err() && ties::occur(&network) { Ok(false) } else { outcome }
}

/// Returns whether the port serves its VCs in turn, or adds rounded values of its VCs.
fn has_turns(network: &Network, port: LinkIndex) -> bool {
    use PolicyConfig::{VirtualQueuing, VirtualQueuingThreshold, VirtualQueuingWeighted};
    let Link { policy, edge, .. } = &network.links[port];
    let is_virtual = matches!(policy, VirtualQueuing(_) | VirtualQueuingThreshold(_) | VirtualQueuingWeighted(_));
    let is_shaped = edge.is_some() || network.vcs.iter().any(|vc| vc.abr.is_some() && vc.path.contains(&port));
    is_virtual || is_shaped || !network.links[port].is_fifo()
}

fn same_in_another_order(
    case: &mut Case,
    network: &Network,
    ties_links: impl Fn(&Link, &Link) -> bool,
    ties_vcs: impl Fn(LinkIndex) -> bool,
) -> Result<bool, String> {
    let Network { nodes, links, vcs, flows, .. } = network;
    let ends = |flow: usize| {
        let Flow { data_vc, ack_vc, .. } = flows[FlowIndex::from(flow)];
        [data_vc, ack_vc].map(|vc| network.source(vc))
    };
    let are_tied = |a: usize, b: usize| {
        let [a, b] = [a, b].map(|vc| &vcs[VcIndex::from(vc)]);
        let common = a.path.iter().find(|&link| b.path.contains(link) && ties_vcs(*link));
        common.is_some() || (a.merge.is_some() && a.merge == b.merge)
    };
    let orders = [
        order(nodes.len(), &mut case.draws, |_, _| false),
        order(links.len(), &mut case.draws, |a, b| ties_links(&links[LinkIndex::from(a)], &links[LinkIndex::from(b)])),
        order(vcs.len(), &mut case.draws, are_tied),
        order(flows.len(), &mut case.draws, |a, b| ends(a).iter().any(|end| ends(b).contains(end))),
    ];
    let changed = reordered(network, orders.each_ref().map(Vec::as_slice));
    same(&by_name(case.run_watched(&changed)), &by_name(case.run_watched(network)))?;
    Ok(orders.iter().any(|order| !order.is_sorted()))
}
