//! Random networks with packet framing.

use celltrain_core::aal5::{CellFormat, Framing};
use celltrain_core::delay::DelayChoice;
use celltrain_core::engine::Engine;
use celltrain_core::memory::Pauses;
use celltrain_core::network::{Link, Network, NodeKind};
use celltrain_core::policy::{Overflow, PolicyConfig, tail_drop};
use celltrain_core::rng::Stream;
use celltrain_core::switching::{PacketAdmission, Switching};
use celltrain_core::wire::Wire;
use celltrain_scenario::topology::Topology;
use celltrain_scenario::{Scenario, build, read_toml};
use proptest::prelude::*;

use super::compare::compare;
use super::{draw, losses, marks, memories, requests};

/// Kinds of networks, by their framing.
pub(crate) const KINDS: &[&str] = &[
    "AAL5", "packets", "admission at the start", "admission if it fits", "admission at the end", "cut-through",
    "larger cells", "Ethernet on all links", "Ethernet on some links", "Ethernet at a memory",
    "Ethernet that loses cells", "delays measured on Ethernet",
];

/// Returns the kinds of networks to which a network belongs, and whether its links pause.
pub(crate) fn kinds(network: &Network) -> Vec<&'static str> {
    if network.aal5.framing == Framing::Aal5 {
        return vec!["AAL5"];
    }
    let is_ethernet = |link: &Link| link.wire == Wire::Ethernet;
    let (frames, all) = (network.links.iter().filter(|link| is_ethernet(link)).count(), network.links.len());
    let mut ports = network.memories.iter().flat_map(|memory| &memory.ports);
    let kinds = [
        (true, "packets"),
        (network.switching.cut_through, "cut-through"),
        (network.aal5.cell != CellFormat::ATM, "larger cells"),
        (frames > 0 && frames == all, "Ethernet on all links"),
        (frames > 0 && frames < all, "Ethernet on some links"),
        (ports.any(|&port| is_ethernet(&network.links[port])), "Ethernet at a memory"),
        (network.links.iter().any(|link| is_ethernet(link) && !link.losses.is_empty()), "Ethernet that loses cells"),
        (frames > 0 && network.delays != DelayChoice::None, "delays measured on Ethernet"),
        (network.memories.iter().any(|memory| memory.pauses == Pauses::Links), "links that pause"),
    ];
    let admission = match network.switching.admission {
        PacketAdmission::Start => "admission at the start",
        PacketAdmission::Fits => "admission if it fits",
        PacketAdmission::End => "admission at the end",
    };
    let admission = (!network.switching.cut_through, admission);
    kinds.into_iter().chain([admission]).filter_map(|(has, kind)| has.then_some(kind)).collect()
}

/// Draws networks that rarely need AAL5.
pub(crate) fn any_network() -> BoxedStrategy<Scenario> {
    draw::any_network().prop_map(without_services_of_atm).boxed()
}

/// Draws networks with crowded ports that rarely need AAL5.
pub(crate) fn crowded() -> BoxedStrategy<Scenario> {
    draw::crowded().prop_map(without_services_of_atm).boxed()
}

/// Removes contracts, rate control (ABR) and merging VCs, which need AAL5, from a scenario.
fn without_services_of_atm(mut scenario: Scenario) -> Scenario {
    for vc in scenario.vc.values_mut() {
        (vc.abr, vc.gfr) = (None, None);
    }
    if let Topology::Network(network) = &mut scenario.topology {
        network.flows.iter_mut().for_each(|flow| flow.vc = None);
    }
    scenario
}

/// Selects packet framing for a network, unless the network needs AAL5. Ports that push out cells from the front of the
/// queue then refuse arriving cells instead. Returns whether packet framing was selected.
pub(crate) fn delimit(network: &mut Network) -> bool {
    let pushes_out = |link: &&mut Link| link.policy.build(Some(1), &[]).overflow() == Overflow::PushOutFront;
    network
        .links
        .iter_mut()
        .filter(pushes_out)
        .for_each(|link| link.policy = PolicyConfig::TailDrop(tail_drop::Config {}));
    let needs_aal5 = !network.merges.is_empty()
        || network.vcs.iter().any(|vc| vc.abr.is_some() || vc.contract.is_some())
        || network.nodes.iter().any(|node| node.kind == NodeKind::EdgeDevice);
    if !needs_aal5 {
        network.aal5.framing = Framing::Packets;
    }
    !needs_aal5
}

/// Draws the rules by which switches forward packets.
pub(crate) fn switch(network: &mut Network, rng: &mut Stream) {
    let admission = [PacketAdmission::Start, PacketAdmission::Fits, PacketAdmission::Fits, PacketAdmission::End];
    let admission = admission[rng.below(4) as usize];
    network.switching = match rng.below(4) {
        0 => Switching { cut_through: true, ..Switching::default() },
        1 => Switching::default(),
        _ => Switching { cut_through: false, admission },
    };
    let follows = |link: &Link| link.policy.build(Some(1), &[]).follower().is_some();
    if network.links.iter().any(follows) && network.switching.admission == PacketAdmission::Fits {
        network.switching.admission = PacketAdmission::End;
    }
}

/// Selects packet framing if possible, and makes links lose cells.
pub(crate) fn delimit_and_lose(network: &mut Network, rng: &mut Stream) {
    delimit(network);
    switch(network, rng);
    losses::add(network, rng);
    carry_frames(network);
}

/// With packet framing, selects the size of cells. In half of the networks, every link or every other link carries
/// Ethernet frames, and delays are measured in half of these networks. The network's seed decides all this, so that the
/// random numbers for other settings remain the same.
fn carry_frames(network: &mut Network) {
    if network.aal5.framing != Framing::Packets {
        return;
    }
    network.aal5.cell = match network.seed / 4 % 3 {
        0 => CellFormat::ATM,
        1 => CellFormat::of_memory(64),
        _ => CellFormat::of_memory(250),
    };
    if network.seed % 4 > 1 {
        return;
    }
    if (network.seed / 12).is_multiple_of(2) {
        network.delays = DelayChoice::All;
    }
    let every = if network.seed.is_multiple_of(4) { 1 } else { 2 };
    for link in network.links.iter_mut().step_by(every).filter(|link| link.late.is_empty()) {
        link.wire = Wire::Ethernet;
    }
}

/// Selects packet framing if possible, in networks with memories and links that lose cells.
pub(crate) fn delimit_and_lose_in_memories(network: &mut Network, rng: &mut Stream) {
    memories::add(network, rng);
    delimit_and_lose(network, rng);
}

/// Selects packet framing if possible, in networks with memories, requests, marks and sometimes measured delays.
pub(crate) fn delimit_in_memories_with_requests_and_marks(network: &mut Network, rng: &mut Stream) {
    requests::add(network, rng);
    memories::add(network, rng);
    marks::add(network, rng);
    delimit(network);
    switch(network, rng);
    network.delays = [DelayChoice::None, DelayChoice::All][rng.below(2) as usize];
    carry_frames(network);
}

/// The order of cells inside packets only changes the counts of a memory, except with the admission `"fits"`.
#[test]
fn both_engines_agree_when_packets_overflow_a_shared_memory_in_every_tie_and_service_order() {
    const SCENARIO: &str = include_str!("../../../../scenarios/memory-dynamic-threshold.toml");
    let orders = ["random", "rotating", "fixed", "event_list"].map(|ties| (ties, "after_arrivals"));
    for (i, (ties, service)) in orders.into_iter().chain([("random", "before_arrivals")]).enumerate() {
        for (size, cells, admission) in [(53, 400, "start"), (250, 60, "end"), (53, 300, "fits")] {
            let text = SCENARIO
                .replace("duration = \"2s\"", &format!("duration = \"{}ms\"\nframing = \"packets\"", 20 + i))
                .replace("policy.ppd", "policy.tail_drop")
                .replace("cells = 1000", &format!("cells = {cells}"));
            let text = format!(
                "{text}\n[switch]\ntie_order = \"{ties}\"\nservice_order = \"{service}\"\nadmission = \"{admission}\"\n\n\
                 [cell]\nsize = \"{size}B\"\n"
            );
            let scenario = read_toml(&text, "packets").expect_scenario();
            let network = build::network(&scenario, scenario.seed);
            compare(&network).unwrap_or_else(|difference| panic!("{difference}\n\n{text}"));
            let result = Engine::Fast.run_to_end(&network);
            assert!(
                result.memories.iter().any(|memory| memory.max_used_cells > cells / 2),
                "the memory fills:\n{text}"
            );
        }
    }
}
