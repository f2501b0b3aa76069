//! Adds random marking to the ports of a random network, and TCPs that react to marks.

use celltrain_core::abr::allocator::AllocatorConfig;
use celltrain_core::marking::{Counted, MarkedAt, MarkingConfig};
use celltrain_core::network::{Network, NodeKind};
use celltrain_core::rng::Stream;
use celltrain_core::tcp::{Congestion, Ecn, TcpConfig};
use celltrain_core::threshold::Threshold;

/// Kinds of marking at ports, and kinds of TCPs that react to marks.
pub(crate) const KINDS: &[&str] = &[
    "at enqueue", "at dequeue", "a step", "a ramp", "an average", "of the port", "of the queue", "of the memory",
    "RFC 3168", "DCTCP", "an initial window",
];

pub(crate) fn kinds(network: &Network) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    for marking in network.links.iter().filter_map(|link| link.marking.as_ref()) {
        kinds.push(if marking.at == MarkedAt::Enqueue { "at enqueue" } else { "at dequeue" });
        kinds.push(if marking.k_max.is_none() { "a step" } else { "a ramp" });
        kinds.extend((marking.weight < 1.0).then_some("an average"));
        kinds.push(match marking.of {
            Counted::Port => "of the port",
            Counted::Queue => "of the queue",
            Counted::Memory => "of the memory",
        });
    }
    for flow in &network.flows {
        let options = flow.tcp.options();
        kinds.extend((options.ecn == Ecn::On).then_some("RFC 3168"));
        kinds.extend((options.congestion == Congestion::Dctcp).then_some("DCTCP"));
        kinds.extend((options.initial_window > 1).then_some("an initial window"));
    }
    kinds
}

/// Makes most ports of switches mark packets, and most flows react to marks.
pub(crate) fn add(network: &mut Network, rng: &mut Stream) {
    let merging = network.routing().merging;
    let Network { nodes, links, memories, flows, .. } = network;
    for (number, link) in links.iter_mut_enumerated() {
        let marks_cells = matches!(link.allocator, Some(AllocatorConfig::Efci(_)));
        let decides_itself = link.policy.build(link.buffer, &[]).head_policy().is_some();
        let cannot_mark = nodes[link.from].kind != NodeKind::Switch
            || marks_cells
            || decides_itself
            || merging[number].contains(&true);
        if cannot_mark || rng.below(4) == 0 {
            continue;
        }
        let shares = memories.iter().any(|memory| memory.ports.contains(&number));
        let most = link.buffer.unwrap_or(1000).clamp(1, 1000);
        let narrow = [5, 40, 1000][rng.below(3) as usize];
        let k_min = rng.below(most.min(narrow));
        let k_max = (rng.below(2) == 0).then(|| k_min + 1 + rng.below(most));
        link.marking = Some(MarkingConfig {
            k_min: Threshold::Cells(k_min),
            k_max: k_max.map(Threshold::Cells),
            p_max: [0.1, 0.5, 1.0][rng.below(3) as usize],
            weight: [1.0, 1.0, 0.25, 0.002][rng.below(4) as usize],
            at: if rng.below(2) == 0 { MarkedAt::Enqueue } else { MarkedAt::Dequeue },
            of: if shares {
                [Counted::Port, Counted::Queue, Counted::Memory][rng.below(3) as usize]
            } else {
                Counted::Port
            },
        });
    }
    for flow in flows.iter_mut().filter(|flow| flow.traffic.packets().is_none()) {
        let mut options = flow.tcp.options().clone();
        options.initial_window = [1, 2, 10][rng.below(3) as usize];
        if rng.below(4) > 0 {
            options.ecn = Ecn::On;
            if options.formula.is_none() && rng.below(2) == 0 {
                options.congestion = Congestion::Dctcp;
            }
        }
        flow.tcp = TcpConfig::named(flow.tcp.name(), options).expect("the name belongs to a TCP variant");
    }
}
