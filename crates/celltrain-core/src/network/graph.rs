//! Topologies under construction.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use typed_index_collections::TiVec;

use super::{Link, Node, NodeKind};
use crate::index::{LinkIndex, NodeIndex};
use crate::policy::{PolicyConfig, tail_drop};
use crate::scheduler::SchedulerConfig;
use crate::units::{BitRate, Duration};
use crate::wire::Wire;

/// Nodes and links of a topology under construction.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Hosts and switches.
    pub nodes: TiVec<NodeIndex, Node>,
    /// One-way links. Their ports have unlimited buffers until a scenario sets a limit.
    pub links: TiVec<LinkIndex, Link>,
}

impl Graph {
    /// Adds a node and returns its index.
    pub fn add_node(&mut self, name: impl Into<String>, kind: NodeKind) -> NodeIndex {
        self.nodes.push_and_get_key(Node { name: name.into(), kind })
    }

    /// Returns the other link of a pair of links that were added together.
    pub fn way_back(link: LinkIndex) -> LinkIndex {
        LinkIndex::new(link.number() ^ 1)
    }

    /// Adds identical links in both directions between two nodes. Returns the link that leaves `a`; [`Graph::way_back`]
    /// returns the other.
    pub fn connect(&mut self, a: NodeIndex, b: NodeIndex, rate: BitRate, delay: Duration) -> LinkIndex {
        self.connect_unlike(a, b, [(rate, delay); 2])
    }

    /// Adds links in both directions between two nodes, each with its own rate and delay, the link from `a` first.
    /// Returns the link that leaves `a`; [`Graph::way_back`] returns the other.
    pub fn connect_unlike(&mut self, a: NodeIndex, b: NodeIndex, ways: [(BitRate, Duration); 2]) -> LinkIndex {
        let first = self.links.next_key();
        for ((from, to), (rate, delay)) in [(a, b), (b, a)].into_iter().zip(ways) {
            let name = format!("{}->{}", self.nodes[from].name, self.nodes[to].name);
            let policy = PolicyConfig::TailDrop(tail_drop::Config {});
            let scheduler = SchedulerConfig::default();
            let (buffer, allocator, marking, edge) = (None, None, None, None);
            self.links.push(Link {
                name,
                from,
                to,
                rate,
                delay,
                buffer,
                policy,
                scheduler,
                allocator,
                marking,
                edge,
                losses: Vec::new(),
                late: Vec::new(),
                wire: Wire::default(),
                changes: None,
            });
        }
        first
    }
}
