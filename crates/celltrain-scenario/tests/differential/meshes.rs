//! Networks with several paths: rings, parking lots and meshes, whose trunks carry many VCs.

use std::collections::BTreeSet;

use super::{
    BUFFERS, BoxedStrategy, GeneralNetwork, Line, Own, Scenario, Sizes, Strategy, edge, flow, line, link, make_alike,
    mixed, port, prop, rest, select, vc,
};

/// Draws three to seven switches in a row or a ring, with additional trunks across, and up to two dozen flows between
/// any two hosts. Individual cells of many VCs pass from one contended port to the next, over links that hold many
/// cells or no cells. If all hosts send to the last host, the row is a parking lot.
pub(crate) fn meshes() -> BoxedStrategy<Scenario> {
    let graph = (
        prop::collection::vec(line(RATES, DELAYS), 3..8),
        prop::bool::weighted(0.6),
        prop::collection::vec((0usize..8, 0usize..8, line(RATES, DELAYS)), 0..5),
        prop::collection::vec((0usize..8, line(RATES, DELAYS)), 3..9),
        mixed(0.5),
    );
    let flows = (prop::collection::vec((0usize..8, 0usize..7, select(STARTS)), 4..25), prop::bool::weighted(0.2));
    let ports = (port(BUFFERS, 0.5), prop::collection::vec((0usize..64, port(BUFFERS, 0.5)), 0..6));
    let sizes = Sizes { mss: &[512, 1460, 9140], windows: &[65_535, 300_000] };
    let vcs = prop::collection::vec((0usize..24, prop::bool::ANY, vc()), 0..4);
    (graph, flows, ports, (vcs, edge()), rest(sizes, 15_000))
        .prop_map(|((trunks, is_closed, across, hosts, mixed), (flows, to_the_last), ports, (vcs, edge), rest)| {
            let switch = |i: usize| format!("sw{}", i + 1);
            let host = |i: usize| format!("h{}", i + 1);
            let mut joined = BTreeSet::new();
            let mut links = Vec::new();
            let mut join = |a: usize, b: usize, line: Line| {
                if a != b && joined.insert((a.min(b), a.max(b))) {
                    links.push(link(switch(a), switch(b), line));
                }
            };
            let switches = trunks.len();
            for (i, &trunk) in trunks.iter().enumerate().take(if is_closed { switches } else { switches - 1 }) {
                join(i, (i + 1) % switches, trunk);
            }
            for (a, b, trunk) in across {
                join(a % switches, b % switches, trunk);
            }
            links.extend(hosts.iter().enumerate().map(|(i, &(at, line))| link(host(i), switch(at % switches), line)));
            make_alike(&mut links, mixed);
            let last = hosts.len() - 1;
            let one = |&(from, away, start): &(usize, usize, u64)| {
                let from = if to_the_last { from % last } else { from % hosts.len() };
                let to = if to_the_last { last } else { (from + 1 + away % last) % hosts.len() };
                flow(host(from), host(to), start)
            };
            let network = GeneralNetwork {
                hosts: (0..hosts.len()).map(host).collect(),
                switches: (0..switches).map(switch).collect(),
                edge_devices: Vec::new(),
                flows: flows.iter().map(one).collect(),
                links,
                bottleneck: None,
            };
            rest.scenario(&network, &ports, &Own { flows: Vec::new(), vcs, edge })
        })
        .boxed()
}

/// Rates of links in bit/s. At the third rate, a cell takes exactly 10 us.
const RATES: &[u64] = &[155_520_000, 155_520_000, 42_400_000, 77_760_000, 622_080_000];
/// Microseconds.
const DELAYS: &[u64] = &[100, 100, 10, 5, 0, 30, 1_000];
/// Microseconds.
const STARTS: &[u64] = &[0, 0, 3, 10, 500];
