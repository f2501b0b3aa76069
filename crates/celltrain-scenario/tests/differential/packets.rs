//! Drawn networks whose packets delimit themselves.

use celltrain_core::aal5::Framing;
use celltrain_core::delay::DelayChoice;
use celltrain_core::engine::Engine;
use celltrain_core::network::{Link, Network, NodeKind};
use celltrain_core::policy::Overflow;
use celltrain_core::rng::Stream;
use celltrain_core::switching::{PacketAdmission, Switching};
use celltrain_core::wire::Wire;
use celltrain_scenario::{build, read_toml};

use super::compare::compare;
use super::{losses, marks, memories, requests};

/// Makes the packets of a network delimit themselves, unless the network needs AAL5. Returns whether they now do.
pub(crate) fn delimit(network: &mut Network) -> bool {
    let needs_aal5 = !network.merges.is_empty()
        || network.vcs.iter().any(|vc| vc.abr.is_some() || vc.contract.is_some())
        || network.nodes.iter().any(|node| node.kind == NodeKind::EdgeDevice)
        || network.links.iter().any(|link| link.policy.build(Some(1), &[]).overflow() == Overflow::PushOutFront);
    if !needs_aal5 {
        network.aal5.framing = Framing::Packets;
    }
    !needs_aal5
}

/// Draws how switches forward packets.
pub(crate) fn switch(network: &mut Network, rng: &mut Stream) {
    let admission = [PacketAdmission::Start, PacketAdmission::Fits, PacketAdmission::End][rng.below(3) as usize];
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

/// Makes packets delimit themselves if possible, and links lose cells. Some networks carry Ethernet frames.
pub(crate) fn delimit_and_lose(network: &mut Network, rng: &mut Stream) {
    let delimits = delimit(network);
    switch(network, rng);
    losses::add(network, rng);
    // Without a draw from the stream, the other networks stay the same.
    if delimits && network.seed % 16 == 3 {
        for link in network.links.iter_mut().filter(|link| link.late.is_empty()) {
            link.wire = Wire::Ethernet;
        }
    }
}

/// Makes packets delimit themselves if possible, both in memories and where links lose cells.
pub(crate) fn delimit_and_lose_in_memories(network: &mut Network, rng: &mut Stream) {
    memories::add(network, rng);
    delimit_and_lose(network, rng);
}

/// Makes packets delimit themselves if possible, in memories, with requests, marks and sometimes measured delays.
pub(crate) fn delimit_in_memories_with_requests_and_marks(network: &mut Network, rng: &mut Stream) {
    requests::add(network, rng);
    memories::add(network, rng);
    marks::add(network, rng);
    delimit(network);
    switch(network, rng);
    network.delays = [DelayChoice::None, DelayChoice::All][rng.below(2) as usize];
}

/// Cells inside packets only change counts here, except with `"fits"`.
#[test]
fn both_engines_agree_on_packets_that_overflow_a_shared_memory_in_every_order_of_cells() {
    const SCENARIO: &str = include_str!("../../../../scenarios/memory-dynamic-threshold.toml");
    let orders = ["random", "rotating", "fixed", "event_list"].map(|ties| (ties, "after_arrivals"));
    for (i, (ties, service)) in orders.into_iter().chain([("random", "before_arrivals")]).enumerate() {
        for (size, cells, admission) in [(53, 400, "start"), (250, 60, "end"), (53, 300, "fits")] {
            let text = SCENARIO
                .replace("duration = \"2s\"", &format!("duration = \"{}ms\"\nframing = \"packets\"", 40 + i))
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
