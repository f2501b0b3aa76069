//! Shortest paths of a graph.

use std::collections::BTreeSet;

use celltrain_core::index::{LinkIndex, NodeIndex};
use celltrain_core::network::{Graph, NodeKind};
use typed_index_collections::{TiVec, ti_vec};

/// Searches for the shortest paths of a graph.
#[derive(Debug)]
pub(crate) struct Search<'a> {
    graph: &'a Graph,
    /// Row offsets into `leaving`, one per node, plus a final end offset.
    first: Vec<usize>,
    /// Links and the nodes they lead to, grouped by the node they leave, in order. They are contiguous, because a
    /// search skips most of them.
    leaving: Vec<(LinkIndex, NodeIndex)>,
    /// For each node, the link over which it was first reached.
    reached_by: TiVec<NodeIndex, Option<LinkIndex>>,
    /// For each node, true if it is a target of the search.
    is_wanted: TiVec<NodeIndex, bool>,
    queue: Vec<NodeIndex>,
}

#[expect(clippy::arithmetic_side_effects, reason = "indices of lists in memory")]
impl<'a> Search<'a> {
    /// Creates a search in a graph.
    pub(crate) fn new(graph: &'a Graph) -> Self {
        let mut first = vec![0; graph.nodes.len() + 1];
        for link in &graph.links {
            first[usize::from(link.from) + 1] += 1;
        }
        for node in 0..graph.nodes.len() {
            first[node + 1] += first[node];
        }
        let mut next = first.clone();
        let mut leaving = vec![(LinkIndex::default(), NodeIndex::default()); graph.links.len()];
        for (index, link) in graph.links.iter_enumerated() {
            let place = &mut next[usize::from(link.from)];
            leaving[*place] = (index, link.to);
            *place += 1;
        }
        let nodes = graph.nodes.len();
        Self {
            graph,
            first,
            leaving,
            reached_by: ti_vec![None; nodes],
            is_wanted: ti_vec![false; nodes],
            queue: Vec::new(),
        }
    }

    /// Returns the links that leave a node, in order, and the nodes they lead to.
    pub(crate) fn leaving(&self, node: NodeIndex) -> &[(LinkIndex, NodeIndex)] {
        let node = usize::from(node);
        &self.leaving[self.first[node]..self.first[node + 1]]
    }

    /// Returns the paths with the fewest links from one node to several others; `None` if there is no path. Among equal
    /// paths, the first in link order is chosen. Hosts do not forward; edge devices forward only between a host and the
    /// network.
    pub(crate) fn paths(&mut self, from: NodeIndex, to: &[NodeIndex]) -> Vec<Option<Vec<LinkIndex>>> {
        let graph = self.graph;
        let is_host = |node: NodeIndex| graph.nodes[node].kind == NodeKind::Host;
        let wanted: BTreeSet<NodeIndex> = to.iter().copied().collect();
        for &to in &wanted {
            self.is_wanted[to] = true;
        }
        let mut missing = wanted.len();
        self.reached_by.fill(None);
        self.queue.clear();
        self.queue.push(from);
        let mut next = 0;
        while next < self.queue.len() && missing > 0 {
            let node = self.queue[next];
            next += 1;
            let is_edge = node != from && graph.nodes[node].kind == NodeKind::EdgeDevice;
            let from_host = is_edge && self.reached_by[node].is_some_and(|link| is_host(graph.links[link].from));
            let place = usize::from(node);
            for &(link, reached) in &self.leaving[self.first[place]..self.first[place + 1]] {
                if reached == from || self.reached_by[reached].is_some() || (is_edge && from_host == is_host(reached)) {
                    continue;
                }
                self.reached_by[reached] = Some(link);
                missing -= usize::from(self.is_wanted[reached]);
                if !is_host(reached) {
                    self.queue.push(reached);
                }
            }
        }
        for to in wanted {
            self.is_wanted[to] = false;
        }
        to.iter().map(|&to| self.path(from, to)).collect()
    }

    /// Returns the path to `to` found by the last search.
    fn path(&self, from: NodeIndex, to: NodeIndex) -> Option<Vec<LinkIndex>> {
        let mut path = Vec::new();
        let mut at = to;
        while at != from || path.is_empty() {
            let link = self.reached_by[at]?;
            path.push(link);
            at = self.graph.links[link].from;
        }
        path.reverse();
        Some(path)
    }
}

#[cfg(test)]
mod tests {
    use celltrain_core::units::{BitRate, Duration};

    use super::*;

    #[test]
    fn hosts_do_not_forward() {
        let mut graph = Graph::default();
        let [a, b, c] = ["a", "b", "c"].map(|name| graph.add_node(name, NodeKind::Host));
        graph.connect(a, b, BitRate::from_bits_per_second(1_000), Duration::default());
        graph.connect(b, c, BitRate::from_bits_per_second(1_000), Duration::default());
        assert_eq!(Search::new(&graph).paths(a, &[c, b]), [None, Some(vec![LinkIndex::new(0)])]);
    }
}
