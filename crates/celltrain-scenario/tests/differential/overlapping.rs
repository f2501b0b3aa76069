//! Networks in which trains of cells overlap at a port with a queue for each VC.

use super::{
    BoxedStrategy, Duration, FlowConfig, GeneralNetwork, Model, Own, Port, Rest, Scenario, ServiceOrder, Sizes,
    Strategy, TieOrder, drawn, flow, link, prop, rest, select, vc,
};

/// Draws up to eight sources on links that are as fast as their common port or faster, and occasionally slower. Their
/// frames begin within a few cell times of each other. The port may admit trains one after another if the cells of a
/// queue do not depend on arrivals in other queues. The port must not do so with policies that decide on individual
/// cells or frames, RM cells, unequal spacing, ties of any kind, or nearly full buffers. Sometimes the port is followed
/// by a second port of this kind with its own source.
pub(crate) fn trains() -> BoxedStrategy<Scenario> {
    let sizes = Sizes { mss: &[9140, 1460, 512], windows: &[300_000, 65_535] };
    let source = (select(ACCESS_RATES), select(STARTS));
    let graph = (prop::collection::vec(source, 2..9), select(TRUNK_RATES), prop::option::weighted(0.3, select(STARTS)));
    let ties = select(&[TieOrder::Random, TieOrder::Random, TieOrder::Rotating, TieOrder::Fixed][..]);
    let vcs = prop::collection::vec((0usize..8, prop::bool::weighted(0.1), vc()), 0..2);
    (graph, port(), ties, prop::bool::weighted(0.1), vcs, rest(sizes, 8_000))
        .prop_map(|((sources, trunk, beside), port, tie_order, serve_first, vcs, mut rest): (_, _, _, _, _, Rest)| {
            let source = |i: usize| format!("s{}", i + 1);
            let at = |from: String, nanoseconds: u64| {
                let start = Duration { picoseconds: 1_000 * nanoseconds };
                FlowConfig { start, ..flow(from, "d".into(), 0) }
            };
            let mut links: Vec<_> =
                sources.iter().enumerate().map(|(i, &(rate, _))| link(source(i), "sw1".into(), (rate, 5))).collect();
            let mut flows: Vec<_> = sources.iter().enumerate().map(|(i, &(_, start))| at(source(i), start)).collect();
            let mut hosts: Vec<_> = (0..sources.len()).map(source).chain(["d".into()]).collect();
            let mut switches = vec!["sw1".to_string()];
            if let Some(start) = beside {
                switches.push("sw2".into());
                hosts.push("b".into());
                flows.push(at("b".into(), start));
                links.push(link("b".into(), "sw2".into(), (trunk, 5)));
                links.push(link("sw1".into(), "sw2".into(), (trunk, 5)));
            }
            links.push(link(switches[switches.len() - 1].clone(), "d".into(), (trunk, 5)));
            rest.switch.tie_order = tie_order;
            rest.switch.service_order =
                if serve_first { ServiceOrder::BeforeArrivals } else { ServiceOrder::AfterArrivals };
            rest.merged = false;
            let network = GeneralNetwork { hosts, switches, edge_devices: Vec::new(), flows, links, bottleneck: None };
            rest.scenario(&network, &(port, Vec::new()), &Own { vcs, ..Own::default() })
        })
        .boxed()
}

/// Rates of access links in bit/s: equal to the trunk's rate, faster by an integer or other factor, or slower.
const ACCESS_RATES: &[u64] =
    &[155_520_000, 155_520_000, 155_520_000, 311_040_000, 622_080_000, 160_000_000, 77_760_000];
const TRUNK_RATES: &[u64] = &[155_520_000, 155_520_000, 149_760_000];
/// Start times of sources in nanoseconds. A cell takes 2726 ns.
const STARTS: &[u64] = &[0, 0, 0, 2_000, 5_452, 40_000, 100_000, 700_000];

/// Draws a port with a queue for each VC.
fn port() -> BoxedStrategy<Port> {
    let one_of = |names: &'static [&'static str]| (select(names).prop_map(Model::Named), drawn());
    let scheduler = one_of(&["round_robin", "round_robin", "wfq", "minimum_rate"]);
    let policy = one_of(&["tail_drop", "ppd", "tail_drop", "ppd", "epd", "selective_drop"]);
    let beyond_a_frame = select(&[Some(5_000), None, Some(1_000), Some(300), Some(88), Some(13), Some(0)][..]);
    (policy, scheduler, beyond_a_frame)
        .prop_map(|(policy, scheduler, beyond_a_frame)| Port {
            policy,
            scheduler: Some(scheduler),
            allocator: None,
            beyond_a_frame,
        })
        .boxed()
}
