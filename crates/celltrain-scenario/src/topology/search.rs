//! Searches for shortest paths in the graph of a network.

use std::collections::BTreeSet;

use celltrain_core::index::{LinkIndex, NodeIndex};
use celltrain_core::network::{Graph, NodeKind};
use typed_index_collections::{TiVec, ti_vec};

/// A search for shortest paths in a graph.
#[derive(Debug)]
pub(crate) struct Search<'a> {
    graph: &'a Graph,
    /// For each node, the position in `leaving` at which its links begin, followed by the length of `leaving`.
    first: Vec<usize>,
    /// All links with the nodes to which they lead, grouped by the node that they leave. This is one contiguous list,
    /// because a search skips most of the links.
    leaving: Vec<(LinkIndex, NodeIndex)>,
    reached_by: TiVec<NodeIndex, Option<LinkIndex>>,
    /// For each node, true if it is a target of the search.
    is_wanted: TiVec<NodeIndex, bool>,
    queue: Vec<NodeIndex>,
}

#[expect(clippy::arithmetic_side_effects, reason = "no overflow: these are indices of lists in memory")]
impl<'a> Search<'a> {
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

    /// Returns the switch of a host whose only neighbour is a switch. All paths of the host go through this switch, so
    /// one search serves all hosts of the switch.
    pub(crate) fn only_switch(&self, host: NodeIndex) -> Option<NodeIndex> {
        let &[(_, only)] = self.leaving(host) else { return None };
        Some(only).filter(|&node| self.graph.nodes[node].kind == NodeKind::Switch)
    }

    /// Returns the links that leave a node, with the nodes to which they lead, in link order.
    pub(crate) fn leaving(&self, node: NodeIndex) -> &[(LinkIndex, NodeIndex)] {
        let node = usize::from(node);
        &self.leaving[self.first[node]..self.first[node + 1]]
    }

    /// Returns the paths with the fewest links from one node to several other nodes; `None` for a node that cannot be
    /// reached. Of several equally long paths, the first path in link order is chosen. Hosts do not forward. Edge
    /// devices forward only between a host and the network.
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

    /// Returns the path to the node `to` that the last search found.
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

/// A search for all shortest paths from one host to other hosts through switches. Hosts and edge devices do not
/// forward.
#[derive(Debug)]
pub(crate) struct EqualPaths<'a> {
    search: Search<'a>,
    arriving: TiVec<NodeIndex, Vec<LinkIndex>>,
    /// The node from which the last search started: the host, or the only switch to which it is connected.
    root: Option<NodeIndex>,
    /// For each node, the number of links from the root.
    distance: TiVec<NodeIndex, Option<usize>>,
    /// For each node, the number of shortest paths from the root.
    ways: TiVec<NodeIndex, u64>,
}

#[expect(clippy::arithmetic_side_effects, reason = "no overflow: these are numbers of links in memory")]
impl<'a> EqualPaths<'a> {
    pub(crate) fn new(graph: &'a Graph) -> Self {
        let mut arriving: TiVec<NodeIndex, Vec<LinkIndex>> = ti_vec![Vec::new(); graph.nodes.len()];
        for (number, link) in graph.links.iter_enumerated() {
            arriving[link.to].push(number);
        }
        let nodes = graph.nodes.len();
        let (distance, ways) = (ti_vec![None; nodes], ti_vec![0; nodes]);
        Self { search: Search::new(graph), arriving, root: None, distance, ways }
    }

    /// Searches from a host, unless the result of the last search also applies to this host. Returns the number of
    /// links visited.
    pub(crate) fn search(&mut self, from: NodeIndex) -> usize {
        let root = self.search.only_switch(from).unwrap_or(from);
        if self.root.replace(root) == Some(root) {
            return 0;
        }
        self.distance.iter_mut().for_each(|distance| *distance = None);
        self.distance[root] = Some(0);
        self.ways[root] = 1;
        let (mut reached, mut next, mut looked_at) = (vec![root], 0, 0);
        while let Some(&node) = reached.get(next) {
            next += 1;
            if !self.forwards(node) {
                continue;
            }
            let here = self.distance[node].expect("the search has reached the node") + 1;
            for &(_, to) in self.search.leaving(node) {
                looked_at += 1;
                if self.search.graph.nodes[to].kind == NodeKind::EdgeDevice {
                    continue;
                }
                let distance = *self.distance[to].get_or_insert_with(|| {
                    reached.push(to);
                    self.ways[to] = 0;
                    here
                });
                if distance == here {
                    self.ways[to] = self.ways[to].saturating_add(self.ways[node]);
                }
            }
        }
        looked_at
    }

    /// Returns the number of shortest paths to a host after a search; 0 if the host cannot be reached.
    pub(crate) fn count(&self, to: NodeIndex) -> u64 {
        self.distance[to].map_or(0, |_| self.ways[to])
    }

    /// Returns all shortest paths between two hosts, in link order. The last search must have been a search from
    /// `from`.
    pub(crate) fn all(&self, from: NodeIndex, to: NodeIndex) -> Vec<Vec<LinkIndex>> {
        let root = self.root.expect("the search from this node has already ended");
        let links = &self.search.graph.links;
        // Builds all paths backwards from the receiving host, one link at a time.
        let mut paths: Vec<(NodeIndex, Vec<LinkIndex>)> = vec![(to, Vec::new())];
        for behind in (0..self.distance[to].unwrap_or(0)).rev() {
            for place in 0..paths.len() {
                let is_before = |&link: &LinkIndex| {
                    let node = links[link].from;
                    self.distance[node] == Some(behind) && self.forwards(node)
                };
                let at = paths[place].0;
                let before: Vec<LinkIndex> = self.arriving[at].iter().copied().filter(is_before).collect();
                let (&first, others) = before.split_first().expect("a node that was reached has an incoming link");
                for &link in others {
                    let mut path = paths[place].1.clone();
                    path.push(link);
                    paths.push((links[link].from, path));
                }
                paths[place].0 = links[first].from;
                paths[place].1.push(first);
            }
        }
        let first = (from != root).then(|| self.search.leaving(from)[0].0);
        let whole = |(_, path): (NodeIndex, Vec<LinkIndex>)| first.into_iter().chain(path.into_iter().rev()).collect();
        let mut paths: Vec<Vec<LinkIndex>> = paths.into_iter().map(whole).collect();
        paths.sort_unstable();
        paths
    }

    /// Returns whether a path may continue beyond a node.
    fn forwards(&self, node: NodeIndex) -> bool {
        self.search.graph.nodes[node].kind == NodeKind::Switch || Some(node) == self.root
    }
}

#[cfg(test)]
mod tests {
    use celltrain_core::units::{BitRate, Duration};

    use super::*;

    #[test]
    fn paths_never_pass_through_a_host() {
        let mut graph = Graph::default();
        let [a, b, c] = ["a", "b", "c"].map(|name| graph.add_node(name, NodeKind::Host));
        graph.connect(a, b, BitRate::from_bits_per_second(1_000), Duration::default());
        graph.connect(b, c, BitRate::from_bits_per_second(1_000), Duration::default());
        assert_eq!(Search::new(&graph).paths(a, &[c, b]), [None, Some(vec![LinkIndex::new(0)])]);
    }
    /// Returns a graph of two switches with two hosts each. The two switches are connected by three paths through other
    /// switches, of which one path is longer.
    fn diamond() -> Graph {
        let mut graph = Graph::default();
        let switches = ["s", "t", "a", "b", "c", "d"].map(|name| graph.add_node(name, NodeKind::Switch));
        let hosts = ["h1", "h2", "h3", "h4"].map(|name| graph.add_node(name, NodeKind::Host));
        let rate = BitRate::from_bits_per_second(1_000);
        for (from, to) in [(0, 2), (2, 1), (0, 3), (3, 1), (0, 4), (4, 5), (5, 1)] {
            graph.connect(switches[from], switches[to], rate, Duration::default());
        }
        for (host, switch) in hosts.into_iter().zip([0, 0, 1, 1]) {
            graph.connect(host, switches[switch], rate, Duration::default());
        }
        graph
    }

    #[test]
    fn the_path_search_finds_exactly_the_shortest_paths() {
        let graph = diamond();
        let mut paths = EqualPaths::new(&graph);
        let node = |name: &str| graph.nodes.position(|node| node.name == name).unwrap();
        let mut found = |from: &str, to: &str| {
            paths.search(node(from));
            let all = paths.all(node(from), node(to));
            assert_eq!(all.len() as u64, paths.count(node(to)), "{from} to {to}");
            let names = |path: &Vec<LinkIndex>| path.iter().map(|&link| graph.links[link].name.as_str()).collect();
            all.iter().map(names).collect::<Vec<Vec<&str>>>()
        };
        assert_eq!(found("h1", "h3"), [["h1->s", "s->a", "a->t", "t->h3"], ["h1->s", "s->b", "b->t", "t->h3"]]);
        assert_eq!(found("h2", "h1"), [["h2->s", "s->h1"]]);
        assert_eq!(found("h4", "h2"), [["h4->t", "t->a", "a->s", "s->h2"], ["h4->t", "t->b", "b->s", "s->h2"]]);
    }

    #[test]
    fn no_path_leads_through_a_host_or_an_edge_device() {
        let mut graph = Graph::default();
        let rate = BitRate::from_bits_per_second(1_000);
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| graph.add_node(name, NodeKind::Host));
        let edge = graph.add_node("e", NodeKind::EdgeDevice);
        for (from, to) in [(a, b), (b, c), (a, edge), (edge, d)] {
            graph.connect(from, to, rate, Duration::default());
        }
        let mut paths = EqualPaths::new(&graph);
        paths.search(a);
        assert_eq!([b, c, d].map(|host| paths.count(host)), [1, 0, 0]);
        assert_eq!(paths.all(a, b), [vec![LinkIndex::new(0)]]);
    }
}
