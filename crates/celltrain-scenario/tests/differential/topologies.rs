//! Random topologies, and general networks in which every node and link is named.

use celltrain_core::cancellation::CancellationToken;
use celltrain_core::index::NodeIndex;
use celltrain_core::network::{Link, NodeKind};
use celltrain_core::units::{BitRate, Duration};
use celltrain_scenario::topology::network::{Config as GeneralNetwork, FlowConfig, LinkConfig};
use celltrain_scenario::topology::{Route, Topology, chain, n_source, star};
use proptest::prelude::*;
use proptest::sample::select;

use super::{DELAYS, RATES};

/// Draws N sources with unequal links, chains, and stars.
pub(crate) fn any_topology() -> BoxedStrategy<Topology> {
    let rate = || select(RATES).prop_map(BitRate::from_bits_per_second);
    let delay = || select(DELAYS).prop_map(Duration::from_microseconds);
    let tables = move |stem: &'static str| {
        let name = (1u32..5, 0u32..3, any::<bool>()).prop_map(move |(first, more, default)| match (default, more) {
            (true, _) => "default".to_string(),
            (false, 0) => format!("{stem}{first}"),
            (false, more) => format!("{stem}{first}-{}", first + more),
        });
        let rates = prop::collection::btree_map(name.clone(), rate(), 0..3);
        (rates, prop::collection::btree_map(name, delay(), 0..3))
    };
    let n_source = (4u32..9, rate(), delay(), tables("source")).prop_map(
        |(sources, link_rate, link_delay, (access_rates, access_delays))| {
            Topology::NSource(n_source::Config { sources, link_rate, link_delay, access_rates, access_delays })
        },
    );
    let access = (prop::option::of(rate()), prop::option::of(delay()));
    let chain = (1u32..5, 1u32..4, 0u32..4, (rate(), delay()), access).prop_map(
        |(hops, long, cross, (link_rate, link_delay), (access_rate, access_delay))| {
            Topology::Chain(chain::Config { hops, long, cross, link_rate, link_delay, access_rate, access_delay })
        },
    );
    let pattern = select(&[star::Pattern::ToOne, star::Pattern::Ring, star::Pattern::AllPairs][..]);
    let star = (4u32..6, pattern, rate(), delay(), tables("host")).prop_map(
        |(hosts, pattern, link_rate, link_delay, (access_rates, access_delays))| {
            Topology::Star(star::Config { hosts, pattern, link_rate, link_delay, access_rates, access_delays })
        },
    );
    prop_oneof![chain, n_source, star].boxed()
}

/// Converts a topology to a general network in which every node, link and path is named.
pub(crate) fn written_out(topology: &Topology) -> GeneralNetwork {
    let layout = topology.config().lay_out(&CancellationToken::never()).unwrap();
    let nodes = &layout.graph.nodes;
    let named = |kind: NodeKind| nodes.iter().filter(move |node| node.kind == kind).map(|node| node.name.clone());
    let name = |node: NodeIndex| nodes[node].name.clone();
    let link = |pair: &[Link]| {
        let [there, back] = pair else { panic!("every link has a link in the opposite direction") };
        LinkConfig {
            between: (name(there.from), name(there.to)),
            rate: there.rate,
            delay: there.delay,
            rate_back: (back.rate != there.rate).then_some(back.rate),
            delay_back: (back.delay != there.delay).then_some(back.delay),
        }
    };
    let flow = |route: &Route| {
        let ends = route.data.iter().map(|&link| &layout.graph.links[link]);
        let path: Vec<String> =
            [name(layout.graph.links[route.data[0]].from)].into_iter().chain(ends.map(|link| name(link.to))).collect();
        let (from, to) = (path[0].clone(), path[path.len() - 1].clone());
        FlowConfig {
            name: Some(route.name.clone()),
            from,
            to,
            path: Some(path),
            start: route.start,
            vc: route.vc.clone(),
        }
    };
    GeneralNetwork {
        hosts: named(NodeKind::Host).collect(),
        switches: named(NodeKind::Switch).collect(),
        edge_devices: named(NodeKind::EdgeDevice).collect(),
        links: layout.graph.links.raw.chunks(2).map(link).collect(),
        flows: layout.flows.iter().map(flow).collect(),
        bottleneck: Some(layout.graph.links[layout.bottleneck].name.clone()),
    }
}
