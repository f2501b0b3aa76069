//! Pauses of hosts' links and of chained switches, on both engines.

use super::*;
use crate::engine::PortMode;
use crate::events::MemoryStep;
use crate::probe::Nothing;

/// Returns a network of two hosts, a chain of switches, and a host behind the slow last link. Each switch pauses the
/// links that feed it. The two hosts send packets of three cells at line rate. A cell takes 1 us, and so does each unit
/// of `delays`.
fn chain(delays: &[u64], slow: &str, lossless: Lossless) -> Network {
    let mut graph = Graph::default();
    let fast: BitRate = "424Mbps".parse().unwrap();
    let delay = Duration::from_microseconds;
    let switches: Vec<NodeIndex> =
        (0..delays.len()).map(|i| graph.add_node(format!("s{i}"), NodeKind::Switch)).collect();
    let [one, other, receiver] = ["one", "other", "receiver"].map(|name| graph.add_node(name, NodeKind::Host));
    let mut links: Vec<LinkIndex> = Vec::new();
    for (pair, &units) in switches.windows(2).zip(delays) {
        links.push(graph.connect(pair[0], pair[1], fast, delay(units)));
    }
    links.push(graph.connect(*switches.last().unwrap(), receiver, slow.parse().unwrap(), delay(delays[0])));
    let hosts = [(one, 1), (other, 2)].map(|(host, units)| graph.connect(host, switches[0], fast, delay(units)));
    let mut network = Network::new(graph, "3ms".parse().unwrap());
    for (i, host) in hosts.into_iter().enumerate() {
        add_flow(&mut network, i, [&[host], &links[..]].concat(), fast);
        let packet = Bytes { bytes: 100 };
        network.flows[FlowIndex::from(i)].traffic =
            TrafficConfig::ConstantRate(constant_rate::Config { rate: fast, packet });
    }
    for switch in switches {
        let of = |at: fn(&crate::network::Link) -> NodeIndex, network: &Network| -> Vec<LinkIndex> {
            network.links.iter_enumerated().filter(|(_, link)| at(link) == switch).map(|(link, _)| link).collect()
        };
        let (outputs, inputs) = (of(|link| link.from, &network), of(|link| link.to, &network));
        share(&mut network, outputs, 100, complete_sharing::Config {});
        let memory = network.memories.last_mut().unwrap();
        (memory.name, memory.pauses) = (format!("memory {switch:?}"), Pauses::Links);
        let policy = static_thresholds::Config { threshold: Some(4.into()) }.into();
        let (name, side) = ("lossless".into(), Side::Ingress);
        let pool = memory.pools.push_and_get_key(PoolConfig { name, side, cells: 60, headroom: None, policy });
        memory.queues.extend(inputs.into_iter().map(|link| QueueConfig {
            link,
            priority: 0,
            pool,
            reserve: 0,
            alpha: None,
            threshold: None,
            lossless: Some(lossless),
        }));
    }
    network
}

/// Returns the times at which a pause of each link began or ended.
fn changes(network: &Network) -> Vec<(Time, LinkIndex, bool)> {
    let mut changes = Vec::new();
    watch(network, |at, event| {
        if let Event::Memory(MemoryEvent { step: step @ (MemoryStep::Paused | MemoryStep::Resumed), link, .. }) = event
        {
            changes.push((at, link, step == MemoryStep::Paused));
        }
    });
    changes
}

fn all_orders() -> impl Iterator<Item = (ServiceOrder, TieOrder)> {
    let services = [ServiceOrder::AfterArrivals, ServiceOrder::BeforeArrivals];
    let ties = [TieOrder::Fixed, TieOrder::Random, TieOrder::Rotating];
    services.into_iter().flat_map(move |service| ties.into_iter().map(move |tie| (service, tie)))
}

#[test]
fn a_chain_of_switches_that_pause_each_other_loses_no_cells_and_both_engines_agree() {
    let lossless = Lossless { headroom: 12, xon: 3, xon_offset: None, pause_at: PauseAt::Threshold };
    for (service, tie) in all_orders() {
        for slow in ["212Mbps", "100Mbps"] {
            let mut network = chain(&[1, 2, 3], slow, lossless);
            (network.service_order, network.tie_order) = (service, tie);
            assert_eq!(Engine::Fast.for_network(&network), Engine::Fast);
            let result = run(&network);
            assert_eq!(result.cells.lost, 0);
            let pauses: Vec<u64> = result
                .memories
                .iter()
                .map(|memory| memory.queues.iter().map(|queue| queue.counters.pauses).sum())
                .collect();
            assert!(pauses.iter().all(|&pauses| pauses > 20), "every switch pauses the one before it: {pauses:?}");
            for mode in [PortMode::Trains, PortMode::Streams] {
                let other = Engine::Fast.run_by(mode, &network, Nothing, |_| true);
                assert_eq!(other.expect("nothing cancels this run"), result);
            }
        }
    }
}

#[test]
fn both_engines_process_a_pause_and_a_simultaneous_cell_in_the_same_order() {
    // A group pauses when a cell enters its headroom, and resumes when the headroom is empty, whatever else the group
    // holds, often in the same instant. All delays are multiples of a cell time, so the pause frames arrive as a cell
    // arrives or leaves.
    let lossless = Lossless { headroom: 12, xon: 100, xon_offset: None, pause_at: PauseAt::Headroom };
    let mut both = 0;
    for (service, tie) in all_orders() {
        for delays in [&[1][..], &[2, 1], &[1, 2, 1]] {
            let mut network = chain(delays, "212Mbps", lossless);
            (network.service_order, network.tie_order) = (service, tie);
            run(&network);
            let changes = changes(&network);
            let is_both = |pair: &&[(Time, LinkIndex, bool)]| pair[0].0 == pair[1].0 && pair[0].1 == pair[1].1;
            both += changes.windows(2).filter(is_both).count();
            // The host's next cell may arrive after the end of the run.
            for end in (20..120).step_by(if is_nightly() { 1 } else { 7 }) {
                network.duration = Duration::from_microseconds(end);
                run(&network);
            }
        }
    }
    assert!(both > 0, "some pauses begin and end in the same instant");
}

#[test]
fn the_fast_engine_simulates_a_paused_port_like_a_shared_memory_with_one_port() {
    let lossless = Lossless { headroom: 12, xon: 0, xon_offset: Some(2), pause_at: PauseAt::Threshold };
    let mut network = chain(&[1, 2], "100Mbps", lossless);
    // The first switch has ports with buffers of their own.
    network.memories.remove(MemoryIndex::new(0));
    let result = run(&network);
    assert!(result.memories[MemoryIndex::new(0)].queues.iter().any(|queue| queue.counters.pauses > 10));
    let plan = explain_plan(&network, &CancellationToken::never()).expect("nothing cancels this plan");
    let [host, trunk] = [network.vcs[network.flows[FlowIndex::new(0)].data_vc].path[0], LinkIndex::new(0)];
    assert_eq!(plan[usize::from(trunk)].code, "MemoryPorts");
    assert_eq!(plan[usize::from(host)].code, "host", "no switch pauses the host's link");
    network.delays = crate::delay::DelayChoice::All;
    let plan = explain_plan(&network, &CancellationToken::never()).expect("nothing cancels this plan");
    assert!(plan.iter().all(|port| port.code == "reference" && port.why.contains("delays")));
}
