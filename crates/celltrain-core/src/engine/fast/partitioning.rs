//! The division of a network among threads.
//!
//! Partitions consist of whole nodes. Cells pass between partitions only on long paths from a contended port to a host,
//! or to a port that takes single cells in streams. The shortest of these paths is the lookahead.

use std::collections::{BTreeMap, VecDeque};

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use super::plan::{Plan, PortIndex, Role, StageEnd, Watched};
use super::support::supports;
use crate::cancellation::{CancellationToken, Interrupted};
use crate::delay::DelayChoice;
use crate::index::{LinkIndex, NodeIndex};
use crate::link_loss::{LossPattern, LossRule};
use crate::network::{LinkTimes, Network};
use crate::policy::PolicyConfig;
use crate::switching::PacketAdmission;
use crate::units::Span;

/// Number of threads for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParallelOptions {
    /// Maximum number of threads. A network that cannot be divided into as many partitions uses fewer.
    pub threads: usize,
    partitioned: Partitioned,
}

/// The networks that are partitioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Partitioned {
    IfFaster,
    IfPossible,
}

impl ParallelOptions {
    /// Allows up to `threads` threads, if more threads are faster.
    pub fn up_to(threads: usize) -> Self {
        Self { threads, partitioned: Partitioned::IfFaster }
    }

    /// Uses up to `threads` threads even if this is not faster, for tests.
    #[must_use]
    pub fn if_possible(threads: usize) -> Self {
        Self { threads, partitioned: Partitioned::IfPossible }
    }
}

#[derive(Debug)]
pub(super) struct Partitioning {
    partition_of: TiVec<NodeIndex, u32>,
    /// Number of partitions, at least two.
    pub(super) partitions: usize,
    /// Shortest time from the start of a cell in one partition to its arrival in another.
    pub(super) lookahead: Span,
}

#[derive(Clone, Copy)]
pub(in crate::engine) struct Partition<'p> {
    pub(super) partitioning: &'p Partitioning,
    pub(super) number: u32,
}

impl Partition<'_> {
    /// Returns whether the partition simulates this node.
    pub(super) fn has(self, node: NodeIndex) -> bool {
        self.partitioning.partition_of[node] == self.number
    }
}

impl Partitioning {
    pub(super) fn of(&self, node: NodeIndex) -> u32 {
        self.partition_of[node]
    }

    /// Divides a network into up to `threads` partitions, if partitions are faster. `takes_cells` states for each
    /// contended port whether single cells arrive in streams.
    pub(super) fn new(
        network: &Network,
        plan: &Plan,
        times: &TiVec<LinkIndex, LinkTimes>,
        takes_cells: &TiSlice<PortIndex, bool>,
        ParallelOptions { threads, partitioned }: ParallelOptions,
        token: &CancellationToken<'_>,
    ) -> Result<Option<Self>, Interrupted> {
        // With predictions, each partition would have to repeat the separate run that records the losses.
        let mut pools = network.memories.iter().flat_map(|memory| &memory.pools);
        let predicts = pools.any(|pool| pool.policy.needs_predictions());
        // With requests, partitions would have to agree on the numbers of connections.
        // Partitions would also have to agree on the end of a run that may end early.
        let opens = !network.requests.groups.is_empty() || !network.until.is_duration();
        // End systems outside the simulation act on the whole network.
        let hosts = network.flows.iter().any(|flow| flow.outside);
        // Delay lines access the records of the end systems, and so do loss rules that select a packet by a byte.
        let is_of_byte = |rule: &LossRule| matches!(rule.pattern, LossPattern::Byte { .. });
        let follows = network.links.iter().any(|link| link.has_delay_line() || link.losses.iter().any(is_of_byte));
        // A policy that decides with a packet's length reads it from the record of the packet's sender, and so does a port
        // that sends Ethernet frames.
        let fits = |link| network.stores(link) == Some(PacketAdmission::Fits);
        let reads_lengths = network.has_ethernet() || network.links.keys().any(fits);
        // The ends of a flow measure delays together.
        let needs_all = predicts || opens || hosts || follows || reads_lengths || network.delays != DelayChoice::None;
        if plan.watched != Watched::Nothing
            || needs_all
            || plan.pauses()
            || !supports(network)
            || !plan.shaped.is_empty()
            || asks_outside(network)
        {
            return Ok(None);
        }
        let connectivity = Connectivity::between_nodes(network, plan, takes_cells);
        let (least_work, most_work) = match partitioned {
            Partitioned::IfFaster => (LEAST_WORK.max(LEAST_WORK_PER_VC * network.vcs.len() as u64), MOST_WORK),
            Partitioned::IfPossible => (0, u64::MAX),
        };
        let most = threads.min(network.nodes.len());
        for partitions in (2..=most).rev().take(TRIES).chain((TRIES < most).then_some(2)) {
            for least_lead in connectivity.candidates() {
                token.tick(network.nodes.len() + connectivity.apart.len() + connectivity.together.len())?;
                let Some(partition_of) = connectivity.partition(network, least_lead, most_work, partitions) else {
                    continue;
                };
                let lookahead = connectivity.shortest_across(&partition_of);
                let partition = Self { partition_of, partitions, lookahead };
                if partition.cells_in_a_window(plan, times) >= least_work {
                    return Ok(Some(partition));
                }
            }
        }
        Ok(None)
    }

    /// Returns how many cells all ports together send in a window if every port is busy.
    fn cells_in_a_window(&self, plan: &Plan, times: &TiVec<LinkIndex, LinkTimes>) -> u64 {
        let cells = plan.contended.iter().map(|&link| self.lookahead.0 / times[link].cell_time.0);
        cells.fold(0, u64::saturating_add)
    }
}

/// Returns whether the network uses a policy outside the core, which must be called from a single thread.
fn asks_outside(network: &Network) -> bool {
    network.links.iter().any(|link| matches!(link.policy, PolicyConfig::Python(_)))
}

/// Connectivity between nodes, used for partitioning.
struct Connectivity {
    /// Pairs of nodes that must be in the same partition.
    together: Vec<(NodeIndex, NodeIndex)>,
    /// For pairs of nodes that may be in different partitions, the shortest path of cells between them.
    apart: BTreeMap<(NodeIndex, NodeIndex), Span>,
    /// Number of VCs that cross each node's ports.
    work: TiVec<NodeIndex, u64>,
}

/// Minimum number of cells that all ports together can send in a window. With fewer cells, exchanging messages takes
/// too large a share of the time: it costs as much as processing a few hundred cells, and some ports are idle.
const LEAST_WORK: u64 = 1 << 14;
/// Minimum number of cells per window and VC at which checking each VC for messages in each window is worth its cost.
const LEAST_WORK_PER_VC: u64 = 4;
/// Number of partition counts to try, from the largest down. Two partitions are tried last.
const TRIES: usize = 8;

/// Maximum work of a partition, in quarters of the average.
const MOST_WORK: u64 = 5;
const QUARTERS: u64 = 4;
const CANDIDATES: usize = 16;

impl Connectivity {
    fn between_nodes(network: &Network, plan: &Plan, takes_cells: &TiSlice<PortIndex, bool>) -> Self {
        let mut connectivity =
            Self { together: Vec::new(), apart: BTreeMap::new(), work: ti_vec![0; network.nodes.len()] };
        for (link, stages) in plan.stages.iter_enumerated() {
            let beginning = plan.beginning(link);
            let from = network.links[beginning].from;
            let comes_in_cells = matches!(plan.roles[beginning], Role::Contended(_));
            connectivity.work[from] += stages.len() as u64;
            for stage in stages {
                let lead = plan.lead_to(link) + stage.lead;
                match stage.end {
                    StageEnd::Port { port, .. } => {
                        // Losses on a link belong to the partition that sends the link's cells.
                        let Some(&to) = plan.contended.get(port) else { continue };
                        let to = network.links[to].from;
                        if comes_in_cells && takes_cells[port] {
                            connectivity.may_separate(from, to, lead);
                        } else {
                            connectivity.together.push((from, to));
                        }
                    }
                    StageEnd::Host { link, .. } if comes_in_cells => {
                        connectivity.may_separate(from, network.links[link].to, lead);
                    }
                    StageEnd::Host { link, .. } | StageEnd::Shaped { link, .. } => {
                        connectivity.together.push((from, network.links[link].to));
                    }
                }
            }
        }
        connectivity
    }

    fn may_separate(&mut self, from: NodeIndex, to: NodeIndex, lead: Span) {
        let shortest = self.apart.entry((from, to)).or_insert(lead);
        *shortest = lead.min(*shortest);
    }

    /// Returns candidates for the shortest path between partitions, longest first.
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

    /// Assigns each node to a partition. Nodes closer than `least_lead` share a partition, and all `partitions`
    /// partitions have about equal work, at most `most_work` quarters of the average. Returns `None` if this is
    /// impossible.
    fn partition(
        &self,
        network: &Network,
        least_lead: Span,
        most_work: u64,
        partitions: usize,
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
        // Groups are visited breadth first from the first group, so that neighbours stay together.
        let all: u64 = work.iter().sum();
        let (mut given, mut work_of) = (0, vec![0; partitions]);
        let mut partition_of: TiVec<NodeIndex, Option<u32>> = ti_vec![None; network.nodes.len()];
        let mut ring = VecDeque::new();
        for first in network.nodes.keys().map(|node| groups.of[node]) {
            ring.push_back(first);
            while let Some(group) = ring.pop_front() {
                if partition_of[group].is_some() {
                    continue;
                }
                // A group belongs to the partition in whose share of the work the middle of the group's work lies.
                let middle = given + work[group] / 2;
                let partition =
                    usize::try_from(middle * partitions as u64 / all.max(1)).unwrap_or(usize::MAX).min(partitions - 1);
                partition_of[group] = Some(u32::try_from(partition).expect("there are fewer partitions than nodes"));
                work_of[partition] += work[group];
                given += work[group];
                ring.extend(neighbours.get(&group).into_iter().flatten());
            }
        }
        let most = work_of.iter().max()?;
        let is_even = most * partitions as u64 * QUARTERS <= all.saturating_mul(most_work)
            && work_of.iter().all(|&work| work > 0);
        let of = |node: NodeIndex| partition_of[groups.of[node]].expect("every group has been assigned to a partition");
        is_even.then(|| network.nodes.keys().map(of).collect())
    }

    fn shortest_across(&self, partition_of: &TiVec<NodeIndex, u32>) -> Span {
        let across = self.apart.iter().filter(|&(&(from, to), _)| partition_of[from] != partition_of[to]);
        // Partitions without a path between them never wait for each other.
        across.map(|(_, &lead)| lead).min().unwrap_or(Span(u64::MAX))
    }
}

/// Groups of nodes, each identified by one of its nodes.
struct Groups {
    of: TiVec<NodeIndex, NodeIndex>,
}

impl Groups {
    fn of(nodes: usize, together: impl Iterator<Item = (NodeIndex, NodeIndex)>) -> Self {
        let mut groups = Self { of: (0..nodes).map(NodeIndex::from).collect() };
        for (one, other) in together {
            let (one, other) = (groups.root(one), groups.root(other));
            // The lowest number identifies the merged group, so the order of merging does not matter.
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
