//! Which part of a network each thread simulates.
//!
//! Parts are made of whole nodes. Cells go from one to another only on the way from a contended port to a host or to a
//! port that takes single cells in streams, and where that way is long, as it is the time for which a part can go on by
//! itself.

use std::collections::{BTreeMap, VecDeque};

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use super::Sharing;
use crate::engine::fast::plan::{Plan, PortIndex, Role, StageEnd};
use crate::index::{LinkIndex, NodeIndex};
use crate::network::{LinkTimes, Network};
use crate::policy::PolicyConfig;
use crate::stop::{Interrupted, Stop};
use crate::units::Span;

/// A network in parts.
#[derive(Debug)]
pub(in crate::engine::fast) struct Partition {
    /// By node: the number of its part.
    part_of: TiVec<NodeIndex, u32>,
    /// How many there are, at least two.
    pub(in crate::engine::fast) parts: usize,
    /// From the start of a cell in one part to its arrival in another, at the least.
    pub(in crate::engine::fast) window: Span,
}

/// One of its parts.
#[derive(Clone, Copy)]
pub(in crate::engine::fast) struct Part<'p> {
    pub(in crate::engine::fast) partition: &'p Partition,
    pub(in crate::engine::fast) number: u32,
}

impl Part<'_> {
    /// Whether it simulates this node.
    pub(in crate::engine::fast) fn has(self, node: NodeIndex) -> bool {
        self.partition.part_of[node] == self.number
    }
}

impl Partition {
    /// The part of a node.
    pub(in crate::engine::fast) fn of(&self, node: NodeIndex) -> u32 {
        self.part_of[node]
    }

    /// A network in so many parts, or fewer, if that is worth while. `takes_cells`: by contended port, whether single
    /// cells come to it in streams.
    pub(super) fn new(
        network: &Network,
        plan: &Plan,
        times: &TiVec<LinkIndex, LinkTimes>,
        takes_cells: &TiSlice<PortIndex, bool>,
        Sharing { threads, at_any_cost }: Sharing,
        stop: &Stop<'_>,
    ) -> Result<Option<Self>, Interrupted> {
        if plan.controls || !plan.shaped.is_empty() || asks_outside(network) {
            return Ok(None);
        }
        let ways = Ways::between_nodes(network, plan, takes_cells, stop)?;
        let least_work = LEAST_WORK.max(LEAST_WORK_PER_VC * network.vcs.len() as u64);
        let most = threads.min(network.nodes.len());
        for parts in (2..=most).rev().take(TRIES).chain((TRIES < most).then_some(2)) {
            for least_lead in ways.candidates() {
                stop.steps(network.nodes.len() + ways.apart.len() + ways.together.len())?;
                let least = (least_lead, if at_any_cost { u64::MAX } else { MOST_WORK });
                let Some(part_of) = ways.parts(network, least, parts) else { continue };
                let window = ways.shortest_across(&part_of);
                let partition = Self { part_of, parts, window };
                if at_any_cost || partition.cells_in_a_window(plan, times) >= least_work {
                    return Ok(Some(partition));
                }
            }
        }
        Ok(None)
    }

    /// How many cells all ports together send in a window, if they are busy.
    fn cells_in_a_window(&self, plan: &Plan, times: &TiVec<LinkIndex, LinkTimes>) -> u64 {
        let cells = plan.contended.iter().map(|&link| self.window.0 / times[link].cell_time.0);
        cells.fold(0, u64::saturating_add)
    }
}

/// Whether the run asks something that cannot be asked by several at once.
fn asks_outside(network: &Network) -> bool {
    network.links.iter().any(|link| matches!(link.policy, PolicyConfig::Python(_)))
}

/// How nodes hang together.
struct Ways {
    /// Nodes that are in one part in any case.
    together: Vec<(NodeIndex, NodeIndex)>,
    /// From one node to another, the shortest way of cells that may go from part to part.
    apart: BTreeMap<(NodeIndex, NodeIndex), Span>,
    /// By node: how many VCs cross its ports.
    work: TiVec<NodeIndex, u64>,
}

/// So many cells, at the least, all ports together can send in a window, or meeting takes too large a share of the time:
/// some are idle, and a meeting takes as long as a few hundred cells.
const LEAST_WORK: u64 = 1 << 14;
/// The same for each VC: whether it has news is asked for each in each window.
const LEAST_WORK_PER_VC: u64 = 4;
/// So many numbers of parts are tried, from the largest down, and at last two.
const TRIES: usize = 8;

/// A part has at most so many times as much to do as the average; in quarters.
const MOST_WORK: u64 = 5;
const QUARTERS: u64 = 4;
/// So many lengths of the shortest way between parts are tried at most.
const CANDIDATES: usize = 16;

impl Ways {
    fn between_nodes(
        network: &Network,
        plan: &Plan,
        takes_cells: &TiSlice<PortIndex, bool>,
        stop: &Stop<'_>,
    ) -> Result<Self, Interrupted> {
        let mut ways = Self { together: Vec::new(), apart: BTreeMap::new(), work: ti_vec![0; network.nodes.len()] };
        for (link, stages) in plan.stages.iter_enumerated() {
            stop.steps(stages.len())?;
            let from = network.links[link].from;
            let comes_in_cells = matches!(plan.roles[link], Role::Contended(_));
            ways.work[from] += stages.len() as u64;
            for stage in stages {
                match stage.end {
                    StageEnd::Port { port, .. } => {
                        let to = network.links[plan.contended[port]].from;
                        if comes_in_cells && takes_cells[port] {
                            ways.may_part(from, to, stage.lead);
                        } else {
                            ways.together.push((from, to));
                        }
                    }
                    StageEnd::Host { link, .. } if comes_in_cells => {
                        ways.may_part(from, network.links[link].to, stage.lead);
                    }
                    StageEnd::Host { link, .. } | StageEnd::Shaped { link, .. } => {
                        ways.together.push((from, network.links[link].to));
                    }
                }
            }
        }
        Ok(ways)
    }

    fn may_part(&mut self, from: NodeIndex, to: NodeIndex, lead: Span) {
        let shortest = self.apart.entry((from, to)).or_insert(lead);
        *shortest = lead.min(*shortest);
    }

    /// Lengths that the shortest way between parts may have, longest first.
    fn candidates(&self) -> Vec<Span> {
        let mut leads: Vec<_> = self.apart.values().copied().collect();
        leads.sort_unstable();
        leads.dedup();
        leads.reverse();
        let every = leads.len().div_ceil(CANDIDATES).max(1);
        let shortest = leads.last().copied();
        let mut candidates: Vec<_> = leads.into_iter().step_by(every).chain(shortest).collect();
        candidates.dedup();
        candidates
    }

    /// By node: the number of its part, where nodes that are closer than `least_lead` are in one; `None` if that does
    /// not make so many parts with about as much to do. `most_work`, in quarters of the average, is the most that one may
    /// have.
    fn parts(
        &self,
        network: &Network,
        (least_lead, most_work): (Span, u64),
        parts: usize,
    ) -> Option<TiVec<NodeIndex, u32>> {
        let close = self.apart.iter().filter(|&(_, &lead)| lead < least_lead).map(|(&ends, _)| ends);
        let groups = Groups::of(network.nodes.len(), self.together.iter().copied().chain(close));
        let mut work: TiVec<NodeIndex, u64> = ti_vec![0; network.nodes.len()];
        for node in network.nodes.keys() {
            work[groups.of[node]] += self.work[node];
        }
        let mut neighbours: BTreeMap<NodeIndex, Vec<NodeIndex>> = BTreeMap::new();
        for &(from, to) in self.apart.keys() {
            neighbours.entry(groups.of[from]).or_default().push(groups.of[to]);
            neighbours.entry(groups.of[to]).or_default().push(groups.of[from]);
        }
        // Neighbours stay together where they can, so groups are gone through in rings around the first.
        let all: u64 = work.iter().sum();
        let (mut given, mut of_part) = (0, vec![0; parts]);
        let mut part_of: TiVec<NodeIndex, Option<u32>> = ti_vec![None; network.nodes.len()];
        let mut ring = VecDeque::new();
        for first in network.nodes.keys().map(|node| groups.of[node]) {
            ring.push_back(first);
            while let Some(group) = ring.pop_front() {
                if part_of[group].is_some() {
                    continue;
                }
                // The part in which the middle of its work lies.
                let middle = given + work[group] / 2;
                let part = usize::try_from(middle * parts as u64 / all.max(1)).unwrap_or(usize::MAX).min(parts - 1);
                part_of[group] = Some(u32::try_from(part).expect("fewer parts than nodes"));
                of_part[part] += work[group];
                given += work[group];
                ring.extend(neighbours.get(&group).into_iter().flatten());
            }
        }
        let most = of_part.iter().max()?;
        let is_even =
            most * parts as u64 * QUARTERS <= all.saturating_mul(most_work) && of_part.iter().all(|&work| work > 0);
        let of = |node: NodeIndex| part_of[groups.of[node]].expect("every group was gone through");
        is_even.then(|| network.nodes.keys().map(of).collect())
    }

    fn shortest_across(&self, part_of: &TiVec<NodeIndex, u32>) -> Span {
        let across = self.apart.iter().filter(|&(&(from, to), _)| part_of[from] != part_of[to]);
        // Parts that nothing joins never wait for each other.
        across.map(|(_, &lead)| lead).min().unwrap_or(Span(u64::MAX))
    }
}

/// Nodes in groups, each known by one of its nodes.
struct Groups {
    of: TiVec<NodeIndex, NodeIndex>,
}

impl Groups {
    fn of(nodes: usize, together: impl Iterator<Item = (NodeIndex, NodeIndex)>) -> Self {
        let mut groups = Self { of: (0..nodes).map(NodeIndex::from).collect() };
        for (one, other) in together {
            let (one, other) = (groups.root(one), groups.root(other));
            // The least number stays, so groups do not depend on the order.
            groups.of[one.max(other)] = one.min(other);
        }
        for node in (0..nodes).map(NodeIndex::from) {
            groups.of[node] = groups.root(node);
        }
        groups
    }

    fn root(&mut self, mut node: NodeIndex) -> NodeIndex {
        while self.of[node] != node {
            let above = self.of[self.of[node]];
            self.of[node] = above;
            node = above;
        }
        node
    }
}
