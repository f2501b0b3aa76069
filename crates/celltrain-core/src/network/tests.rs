use super::*;
use crate::index::{FlowIndex, Label, LinkIndex, VcIndex};
use crate::policy::tail_drop;
use crate::tcp::TcpOptions;

/// Indices of the first flows.
pub(crate) const FIRST: FlowIndex = FlowIndex::new(0);
pub(crate) const SECOND: FlowIndex = FlowIndex::new(1);
pub(crate) const N_SOURCE_BOTTLENECK: LinkIndex = LinkIndex::new(0);
/// The link in the opposite direction, for acknowledgements.
pub(crate) const N_SOURCE_WAY_BACK: LinkIndex = LinkIndex::new(1);

/// Builds N sources, two switches and N destinations. Only `sw1->sw2` can be congested. Source i is node 2 + i, and its
/// destination is node 2 + N + i.
fn n_source(sources: usize, rate: BitRate, delay: Duration) -> Graph {
    let mut graph = Graph::default();
    let [sw1, sw2] = ["sw1", "sw2"].map(|name| graph.add_node(name, NodeKind::Switch));
    graph.connect(sw1, sw2, rate, delay);
    for i in 1..=sources {
        let source = graph.add_node(format!("source{i}"), NodeKind::Host);
        graph.connect(source, sw1, rate, delay);
    }
    for i in 1..=sources {
        let destination = graph.add_node(format!("destination{i}"), NodeKind::Host);
        graph.connect(sw2, destination, rate, delay);
    }
    graph
}

/// Returns the data path of source `i` (from 0) among `sources` in [`n_source`]'s graph, and its acknowledgements'
/// path.
fn n_source_paths(i: usize, sources: usize) -> [Vec<LinkIndex>; 2] {
    // Links are in pairs, one link for each direction. The order is: bottleneck, links of the sources, links of the
    // destinations.
    let [source, destination] = [2 + 2 * i, 2 + 2 * (sources + i)].map(LinkIndex::from);
    let [to_source, from_destination] = [source, destination].map(Graph::way_back);
    [vec![source, N_SOURCE_BOTTLENECK, destination], vec![from_destination, N_SOURCE_WAY_BACK, to_source]]
}

/// Creates the N-source network with its flows, as in the papers.
pub(crate) fn n_source_network(
    sources: usize,
    delay: &str,
    buffer: Option<u32>,
    policy: PolicyConfig,
    tcp: &TcpConfig,
    duration: &str,
) -> Network {
    let graph = n_source(sources, "155.52Mbps".parse().unwrap(), delay.parse().unwrap());
    let mut network = Network::new(graph, duration.parse().unwrap());
    network.links[N_SOURCE_BOTTLENECK].buffer = buffer;
    network.links[N_SOURCE_BOTTLENECK].policy = policy;
    for i in 0..sources {
        let [data_vc, ack_vc] = n_source_paths(i, sources)
            .map(|path| network.vcs.push_and_get_key(Vc { name: format!("vc{i}"), path, ..Vc::default() }));
        network.flows.push(Flow {
            name: format!("tcp{}", i + 1),
            data_vc,
            ack_vc,
            start: Duration::default(),
            tcp: tcp.clone(),
            traffic: TrafficConfig::default(),
            outside: false,
        });
    }
    network
}

/// Creates the N-source network with short links, a buffer without limit and a simple TCP.
pub(crate) fn simple_network(sources: usize, duration: &str) -> Network {
    let tcp = TcpConfig::Vanilla(TcpOptions::default());
    n_source_network(sources, "5us", None, PolicyConfig::TailDrop(tail_drop::Config {}), &tcp, duration)
}

/// Creates a star in which each host sends to the next, and the last to the first, with a simple TCP.
pub(crate) fn ring_network(hosts: usize, duration: &str) -> Network {
    let mut network = simple_network(1, duration);
    let mut graph = Graph::default();
    let switch = graph.add_node("sw", NodeKind::Switch);
    let (flow, rate) = (network.flows.remove(FIRST), network.links[LinkIndex::new(0)].rate);
    network.vcs.clear();
    for host in 0..hosts {
        let node = graph.add_node(format!("host{host}"), NodeKind::Host);
        graph.connect(node, switch, rate, "5us".parse().unwrap());
        let next = (host + 1) % hosts;
        let ways = [("", [2 * host, 2 * next + 1]), ("-acks", [2 * next, 2 * host + 1])];
        let [data_vc, ack_vc] = ways.map(|(name, path)| {
            let (name, path) = (format!("tcp{host}{name}"), path.map(LinkIndex::from).to_vec());
            network.vcs.push_and_get_key(Vc { name, path, ..Vc::default() })
        });
        network.flows.push(Flow { name: format!("tcp{host}"), data_vc, ack_vc, ..flow.clone() });
    }
    Network { nodes: graph.nodes, links: graph.links, ..network }
}

#[test]
fn only_switches_with_packet_framing_and_without_cut_through_store_whole_packets() {
    let mut network = simple_network(1, "1ms");
    let from_source = network.vcs[VcIndex::new(0)].path[0];
    for (framing, cut_through, stores) in
        [(Framing::Packets, false, true), (Framing::Packets, true, false), (Framing::Aal5, false, false)]
    {
        network.aal5.framing = framing;
        network.switching.cut_through = cut_through;
        let of = [N_SOURCE_BOTTLENECK, from_source].map(|link| network.stores(link).is_some());
        assert_eq!(of, [stores, false], "{framing:?}, cut-through: {cut_through}");
    }
}

#[test]
fn the_vcs_on_each_link_have_consecutive_labels() {
    let network = simple_network(3, "1ms");
    let routing = network.routing();
    assert_eq!(
        routing.vcs[N_SOURCE_BOTTLENECK].raw,
        [0, 2, 4].map(VcIndex::new),
        "every data VC crosses the bottleneck"
    );
    assert_eq!(
        routing.vcs[N_SOURCE_WAY_BACK].raw,
        [1, 3, 5].map(VcIndex::new),
        "acknowledgements take the reverse path of the data"
    );
    assert_eq!(routing.first_label.raw, [Label::new(0); 6]);
    let mut at = Next::Port { link: network.vcs[VcIndex::new(4)].path[0], label: Label::new(0) };
    let mut hops = 0;
    while let Next::Port { link, label } = at {
        at = routing.next[link][label];
        hops += 1;
    }
    assert_eq!((hops, at), (3, Next::Host { vc: VcIndex::new(4) }));
}

#[test]
fn a_path_is_atm_between_its_edge_devices_or_entirely_if_without_edge_devices() {
    let mut graph = Graph::default();
    let kinds = [NodeKind::Host, NodeKind::EdgeDevice, NodeKind::Switch, NodeKind::EdgeDevice, NodeKind::Host];
    let mut nodes = kinds.map(|kind| graph.add_node("", kind)).to_vec();
    // Links 0, 2, 4 and 6 lead from each node to the next, and links 1, 3, 5 and 7 lead back.
    for pair in nodes.windows(2) {
        graph.connect(pair[0], pair[1], BitRate::from_bits_per_second(1_000), Duration::default());
    }
    // Add three hosts, two at the switch and one at the first edge device, and a link from the first host to the last
    // node.
    for (host, at) in [(5, 2), (6, 2), (7, 1), (0, 4)] {
        if host > 0 {
            nodes.push(graph.add_node("", NodeKind::Host));
        }
        graph.connect(nodes[host], nodes[at], BitRate::from_bits_per_second(1_000), Duration::default());
    }
    for (path, part) in [
        // The ATM network lies between the edge devices, or begins or ends with a host's own link to a switch.
        (&[0, 2, 4, 6][..], 1..3),
        (&[7, 5, 3, 1], 1..3),
        (&[0, 2, 9], 1..3),
        (&[8, 4, 6], 0..2),
        (&[8, 11], 0..2),
        // Two hosts share an edge device, so the second link is shaped.
        (&[0, 13], 1..2),
        // A path with a single link consists only of the ATM part.
        (&[14], 0..1),
        (&[0], 0..1),
    ] {
        let links: Vec<LinkIndex> = path.iter().copied().map(LinkIndex::new).collect();
        assert_eq!(atm_part(&graph.nodes, &graph.links, &links), part, "{path:?}");
    }
}
