//! The upstream links of each port. A port keeps state only for these links, not for every input of its node: the
//! switch of a star has an input for each host, but only two links feed most of its ports.

use crate::index::LinkIndex;
use crate::network::Network;

/// For each link, the links whose cells arrive at the link's port, in the order of their numbers at the node. A port
/// numbers its inputs by their positions in this list.
pub(crate) struct UpstreamLinks {
    /// Row offsets into `links`, one per link, plus a final end offset.
    first: Vec<u32>,
    links: Vec<LinkIndex>,
}

impl UpstreamLinks {
    /// Finds the upstream links of every port of a network.
    pub(crate) fn new(network: &Network) -> Self {
        let hops = || network.vcs.iter().flat_map(|vc| vc.path.windows(2)).map(|hop| (hop[0], hop[1]));
        let mut first = vec![0; network.links.len() + 1];
        for (_, to) in hops() {
            first[usize::from(to) + 1] += 1;
        }
        for link in 0..network.links.len() {
            first[link + 1] += first[link];
        }
        let mut next = first.clone();
        let mut by_hop = vec![LinkIndex::default(); first[network.links.len()]];
        for (from, to) in hops() {
            let place = &mut next[usize::from(to)];
            by_hop[*place] = from;
            *place += 1;
        }
        let mut upstream = Self { first: Vec::with_capacity(first.len()), links: Vec::new() };
        upstream.first.push(0);
        for ends in first.windows(2) {
            let own = &mut by_hop[ends[0]..ends[1]];
            own.sort_unstable();
            upstream.links.extend(own.chunk_by(|a, b| a == b).map(|same| same[0]));
            upstream.first.push(index(upstream.links.len()));
        }
        upstream.links.shrink_to_fit();
        upstream
    }

    /// Returns the links that feed the port at the start of `link`.
    pub(crate) fn of(&self, link: LinkIndex) -> &[LinkIndex] {
        let link = usize::from(link);
        &self.links[self.first[link] as usize..self.first[link + 1] as usize]
    }

    /// Returns the number of the upstream link `from` among the inputs of a port.
    pub(crate) fn input(&self, link: LinkIndex, from: LinkIndex) -> u32 {
        let place = self.of(link).binary_search(&from);
        index(place.expect("the path of the VC contains both links"))
    }
}

fn index(i: usize) -> u32 {
    u32::try_from(i).expect("all indices fit in 32 bits")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::tests::{N_SOURCE_BOTTLENECK, ring_network, simple_network};

    #[test]
    fn the_inputs_of_a_port_are_the_incoming_links_of_its_vcs_in_link_order() {
        let network = simple_network(3, "1ms");
        let (upstream, routing) = (UpstreamLinks::new(&network), network.routing());
        // The links are the bottleneck in both directions, then pairs that begin with links 2, 4 and 6 for the sources
        // and 8, 10 and 12 for the destinations.
        for (link, from) in [(0, &[2, 4, 6][..]), (1, &[9, 11, 13]), (8, &[0])] {
            assert!(
                upstream.of(LinkIndex::new(link)).iter().copied().eq(from.iter().copied().map(LinkIndex::new)),
                "{link}"
            );
        }
        assert!(upstream.of(LinkIndex::new(2)).is_empty(), "a host's own port");
        let inputs = [2, 4, 6].map(|from| upstream.input(N_SOURCE_BOTTLENECK, LinkIndex::new(from)));
        assert_eq!(inputs, [0, 1, 2]);
        for link in network.links.keys() {
            assert!(upstream.of(link).is_sorted_by_key(|&from| routing.input[from]), "{link:?}");
            assert!(upstream.of(link).iter().all(|&from| network.links[from].to == network.links[link].from));
        }
    }

    #[test]
    fn an_incoming_link_that_carries_many_vcs_to_a_port_counts_as_one_input() {
        let mut network = simple_network(1, "1ms");
        let more = network.vcs.clone();
        network.vcs.extend(more);
        assert_eq!(UpstreamLinks::new(&network).of(N_SOURCE_BOTTLENECK), [LinkIndex::new(2)]);
    }

    /// Regression: each port kept state for every input of its node, which took 10 GB with 10,000 hosts.
    #[test]
    fn the_number_of_port_inputs_grows_linearly_with_the_number_of_hosts() {
        let inputs = |hosts| UpstreamLinks::new(&ring_network(hosts, "1ms")).links.len();
        assert_eq!(
            [10, 20, 1000].map(inputs),
            [20, 40, 2000],
            "every port has two inputs, for data and acknowledgements"
        );
    }
}
