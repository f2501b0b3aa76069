//! Tests that both engines see the same cells at the head of a queue, with the same waits.

use super::*;
use crate::aal5::Framing;
use crate::marking::{MarkedAt, MarkingConfig};
use crate::memory::MemoryConfig;
use crate::policy::{drop_from_front, ppd};
use crate::scheduler::round_robin;
use crate::tcp::Ecn;
use crate::units::Span;

/// Returns networks of three sources at a port that marks packets. In some networks, the port uses a shared memory or
/// stores whole packets.
fn marking_networks() -> impl Iterator<Item = Network> {
    let tcp = TcpConfig::Reno(TcpOptions { ecn: Ecn::On, ..TcpOptions::default() });
    let network = move |policy: PolicyConfig| n_source_network(3, "5us", Some(200), policy, &tcp, "60ms");
    let tail_drop = || PolicyConfig::TailDrop(tail_drop::Config {});
    let policies = [
        tail_drop(),
        PolicyConfig::from(ppd::Config { keep_last_cell: true }),
        PolicyConfig::from(drop_from_front::Config {}),
    ];
    let mut networks: Vec<Network> = policies.map(&network).into();
    let mut scheduled = network(tail_drop());
    scheduled.links[N_SOURCE_BOTTLENECK].scheduler = SchedulerConfig::from(round_robin::Config {});
    let mut merged = network(tail_drop());
    let merge = merged.merges.push_and_get_key(Merge { name: "merged".into(), at: N_SOURCE_BOTTLENECK });
    let [first, second] = [FIRST, SECOND].map(|flow| merged.flows[flow].data_vc);
    merged.vcs[second].path[2] = merged.vcs[first].path[2];
    for vc in [first, second] {
        merged.vcs[vc].merge = Some(merge);
    }
    let (mut in_memory, mut stored) = (network(tail_drop()), network(tail_drop()));
    for network in [&mut in_memory, &mut stored] {
        network.memories.push(MemoryConfig::of_port(N_SOURCE_BOTTLENECK, Some(200)));
    }
    stored.aal5.framing = Framing::Packets;
    networks.extend([scheduled, merged, in_memory, stored]);
    networks.into_iter()
}

#[test]
fn both_engines_report_how_long_each_departing_packet_has_waited() {
    for mut network in marking_networks() {
        let cell_time = network.clock().cell_time(network.links[N_SOURCE_BOTTLENECK].rate);
        let mut by_length = MarkingConfig::step(1000.into());
        by_length.at = MarkedAt::Dequeue;
        let by_wait = MarkingConfig { longest_wait: Some(Span(60 * cell_time.0 + 7)), ..by_length.clone() };
        let of_port = |network: &Network| {
            let port = &network.links[N_SOURCE_BOTTLENECK];
            let (merges, memories) = (network.merges.len(), network.memories.len());
            format!("{}, {}, {merges} merges, {memories} memories", port.policy.name(), port.scheduler.name())
        };
        network.links[N_SOURCE_BOTTLENECK].marking = Some(by_length);
        let unmarked = run(&network);
        network.links[N_SOURCE_BOTTLENECK].marking = Some(by_wait);
        let expected = run(&network);
        assert_ne!(expected.fingerprint, unmarked.fingerprint, "packets are marked: {}", of_port(&network));
        for mode in [PortMode::Trains, PortMode::Streams] {
            let result = Engine::Fast.run_by(mode, &network, Nothing, |_| true).unwrap();
            assert_eq!(result, expected, "{}, {mode:?}", of_port(&network));
        }
    }
}
