//! Laws about adding parts that do not change results.

use celltrain_core::abr::allocator::{AllocatorConfig, equal_share};
use celltrain_core::index::{FlowIndex, LinkIndex};
use celltrain_core::metrics::RunResult;
use celltrain_core::network::{Flow, Graph, Link, Network, Node, NodeKind, Vc};
use celltrain_core::policy::PolicyConfig;
use celltrain_core::scheduler::SchedulerConfig;
use celltrain_core::switching::Switching;
use celltrain_core::tie::TieOrder;
use celltrain_core::units::{BitRate, Duration};

use super::Case;
use super::numbering::Numbers;
use super::ports::tail_drop;
use super::same::{by_name, same, without_totals};
use crate::differential::losses;

/// The law replaces a rotating order of ties, in which an idle source has a turn, because it is an input of its switch.
/// The law also replaces policies, schedulers and allocators that divide a port among all its VCs, active or not.
pub(super) fn idle_source(case: &mut Case) -> Result<bool, String> {
    let mut network = case.network();
    if network.tie_order == TieOrder::Rotating {
        network.tie_order = TieOrder::Fixed;
    }
    for link in &mut network.links {
        use PolicyConfig::{Dfba1998, Formula, Python, VirtualQueuingThreshold};
        if matches!(link.policy, Dfba1998(_) | VirtualQueuingThreshold(_) | Formula(_) | Python(_)) {
            link.policy = tail_drop();
        }
        if matches!(link.scheduler, SchedulerConfig::WfqFormula(_)) {
            link.scheduler = SchedulerConfig::default();
        }
        if let Some(AllocatorConfig::MaxMin(_)) = link.allocator {
            let ert = Duration::from_milliseconds(1);
            link.allocator = Some(AllocatorConfig::EqualShare(equal_share::Config { ert }));
        }
    }
    let beside = network.flows[FlowIndex::from(case.below(network.flows.len()))].clone();
    let [data, acks] = [beside.data_vc, beside.ack_vc].map(|vc| network.vcs[vc].path.clone());
    let Link { to, rate, delay, .. } = network.links[data[0]];
    if network.nodes[to].kind != NodeKind::Switch {
        return Ok(false);
    }
    let original = by_name(case.run_watched(&network));
    let first = change_graph(&mut network, |graph| {
        let host = graph.add_node(ADDED, NodeKind::Host);
        graph.connect(host, to, rate, delay)
    });
    let mut vc = |path: Vec<LinkIndex>| network.vcs.push_and_get_key(Vc { name: ADDED.into(), path, ..Vc::default() });
    let data_vc = vc([&[first], &data[1..]].concat());
    let ack_vc = vc([&acks[..acks.len() - 1], &[Graph::way_back(first)]].concat());
    let start = Duration { picoseconds: 2 * network.duration.picoseconds };
    network.flows.push(Flow { name: ADDED.into(), data_vc, ack_vc, start, ..beside });
    same(&without_added(case.run_watched(&network)), &original)?;
    Ok(true)
}

/// Name of the parts that a law adds to a network.
const ADDED: &str = "added";

fn without_added(result: RunResult) -> RunResult {
    let mut result = by_name(result);
    result.flows.raw.retain(|flow| flow.name != ADDED);
    result.ports.raw.retain(|port| !port.name.contains(ADDED));
    result
}

/// The parts of the two copies have the same names, so that both copies draw the same random numbers.
pub(super) fn copies(case: &mut Case) -> Result<bool, String> {
    let network = case.network();
    let mut copy = network.clone();
    Numbers::of_copy(&network).replace(&mut copy);
    let mut both = network.clone();
    both.nodes.append(&mut copy.nodes);
    both.links.append(&mut copy.links);
    both.vcs.append(&mut copy.vcs);
    both.merges.append(&mut copy.merges);
    both.flows.append(&mut copy.flows);
    let (mut first, original) = (case.run(&both), case.run(&network));
    let mut second = first.clone();
    second.flows = first.flows.split_off(FlowIndex::from(network.flows.len()));
    second.ports = first.ports.split_off(LinkIndex::from(network.links.len()));
    second.contracts = first.contracts.split_off(original.contracts.len());
    second.abr = first.abr.split_off(original.abr.len());
    let original = without_totals(by_name(original));
    for part in [first, second] {
        let RunResult { file_delay, fingerprint, .. } = original;
        same(&RunResult { file_delay, fingerprint, ..without_totals(by_name(part)) }, &original)?;
    }
    Ok(true)
}

/// A cell takes a microsecond on the second part of the link. The second part is faster than the first, so no cell
/// waits between the parts. Switches do not store packets whole, because stored packets leave the added switch faster
/// than they arrive.
pub(super) fn split_link(case: &mut Case) -> Result<bool, String> {
    let mut network = case.network();
    network.switching = Switching { cut_through: true, ..Switching::default() };
    if case.below(3) == 0 {
        losses::add(&mut network, &mut case.draws);
    }
    let cell = Duration::from_microseconds(1);
    let fast = BitRate::from_bits_per_second(424_000_000);
    // Add a link of this rate without traffic to both networks, so that both have the same clock.
    add_link(&mut network, fast, cell);
    let original = without_totals(by_name(case.run_watched(&network)));
    // This law excludes edge devices, because no switch may be between an edge device and a host. It excludes ABR,
    // whose control loops begin with the delay of their path, and contracts, which are enforced at the first switch.
    let may_be_split = |link: LinkIndex| {
        let Link { from, to, delay, .. } = network.links[link];
        let kinds = [from, to].map(|node| network.nodes[node].kind);
        let is_of_edge = kinds.contains(&NodeKind::EdgeDevice) && kinds.contains(&NodeKind::Host);
        let mut vcs = network.vcs.iter().filter(|vc| vc.path.contains(&link)).peekable();
        vcs.peek().is_some()
            && vcs.all(|vc| vc.abr.is_none() && (vc.contract.is_none() || !vc.path[..2].contains(&link)))
            && delay >= cell
            && !is_of_edge
    };
    let links: Vec<LinkIndex> = network.links.keys().filter(|&link| may_be_split(link)).collect();
    if links.is_empty() {
        return Ok(false);
    }
    let link = links[case.below(links.len())];
    let microseconds = (network.links[link].delay.picoseconds - cell.picoseconds) / cell.picoseconds;
    let behind = Duration::from_microseconds(case.draws.next_u64() % (microseconds + 1));
    let changed = with_switch(&network, link, (fast, behind));
    same(&without_totals(without_added(case.run_watched(&changed))), &original)?;
    Ok(true)
}

/// Returns the network with a switch inserted into a link. The second part of the link has the next number, so that it
/// keeps the position of the original link among the inputs of its node.
fn with_switch(network: &Network, split: LinkIndex, (rate, delay): (BitRate, Duration)) -> Network {
    let mut changed = network.clone();
    Numbers::with_link_after(split, network).replace(&mut changed);
    let switch = changed.nodes.push_and_get_key(Node { name: ADDED.into(), kind: NodeKind::Switch });
    let first = &mut changed.links[split];
    let cell = Duration::from_microseconds(1);
    let end = std::mem::replace(&mut first.to, switch);
    first.delay.picoseconds -= delay.picoseconds + cell.picoseconds;
    let (policy, scheduler) = (tail_drop(), SchedulerConfig::default());
    let second = Link {
        losses: Vec::new(),
        late: Vec::new(),
        wire: first.wire,
        changes: None,
        name: ADDED.into(),
        from: switch,
        to: end,
        rate,
        delay,
        buffer: None,
        policy,
        scheduler,
        allocator: None,
        marking: None,
        edge: None,
    };
    let next = usize::from(split) + 1;
    changed.links.insert(LinkIndex::from(next), second);
    for vc in &mut changed.vcs {
        if let Some(place) = vc.path.iter().position(|&link| link == split) {
            vc.path.insert(place + 1, LinkIndex::from(next));
        }
    }
    changed
}

/// Adds a link that no VC crosses.
pub(super) fn add_link(network: &mut Network, rate: BitRate, delay: Duration) {
    change_graph(network, |graph| {
        let ends = ["one end", "other end"].map(|name| graph.add_node(name, NodeKind::Host));
        graph.connect(ends[0], ends[1], rate, delay)
    });
}

fn change_graph<T>(network: &mut Network, change: impl FnOnce(&mut Graph) -> T) -> T {
    let Network { nodes, links, .. } = network;
    let mut graph = Graph { nodes: std::mem::take(nodes), links: std::mem::take(links) };
    let changed = change(&mut graph);
    (*nodes, *links) = (graph.nodes, graph.links);
    changed
}
