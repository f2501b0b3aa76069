//! Random loss rules on the links of a random network.

use std::collections::BTreeSet;

use celltrain_core::index::{LinkIndex, NodeIndex, VcIndex};
use celltrain_core::link_loss::{GilbertElliott, LossPattern, LossRule, LossUnit};
use celltrain_core::metrics::RunResult;
use celltrain_core::network::{Network, NodeKind};
use celltrain_core::rng::Stream;

/// Kinds of loss rules, and kinds of links to which rules apply.
pub(crate) const KINDS: &[&str] = &[
    "packets by number", "cells by number", "every packets", "every cells", "probability of packets",
    "probability of cells", "bursts of packets", "bursts of cells", "a byte", "rules at the first link",
    "between switches", "rules at the last link", "acknowledgements", "a merge", "a contract", "a controlled rate",
    "several rules", "lost cells",
];

pub(crate) fn kinds(network: &Network, result: &RunResult) -> BTreeSet<&'static str> {
    let mut kinds = BTreeSet::new();
    for (index, link) in network.links.iter_enumerated() {
        kinds.extend((link.losses.len() > 1).then_some("several rules"));
        for LossRule { vc: number, unit, pattern } in &link.losses {
            kinds.insert(match (pattern, unit) {
                (LossPattern::Numbers(_), LossUnit::Packets) => "packets by number",
                (LossPattern::Numbers(_), LossUnit::Cells) => "cells by number",
                (LossPattern::Every { .. }, LossUnit::Packets) => "every packets",
                (LossPattern::Every { .. }, LossUnit::Cells) => "every cells",
                (LossPattern::Probability(_), LossUnit::Packets) => "probability of packets",
                (LossPattern::Probability(_), LossUnit::Cells) => "probability of cells",
                (LossPattern::GilbertElliott(_), LossUnit::Packets) => "bursts of packets",
                (LossPattern::GilbertElliott(_), LossUnit::Cells) => "bursts of cells",
                (LossPattern::Byte { .. }, _) => "a byte",
            });
            kinds.extend(places(network, index, *number));
        }
    }
    kinds.extend(result.losses.iter().any(|losses| losses.counters.lost > 0).then_some("lost cells"));
    kinds
}

/// Describes the place where a link's rule applies to the cells of a VC.
pub(super) fn places(network: &Network, link: LinkIndex, number: VcIndex) -> Vec<&'static str> {
    let (vc, is_host) = (&network.vcs[number], |node: NodeIndex| network.nodes[node].kind == NodeKind::Host);
    let place = match (is_host(network.links[link].from), is_host(network.links[link].to)) {
        (true, _) => "rules at the first link",
        (_, true) => "rules at the last link",
        _ => "between switches",
    };
    let others = [
        network.flows.iter().any(|flow| flow.ack_vc == number).then_some("acknowledgements"),
        network.merged_at(vc, link).map(|_| "a merge"),
        vc.contract.as_ref().filter(|_| vc.path[0] == link).map(|_| "a contract"),
        vc.abr.as_ref().map(|_| "a controlled rate"),
    ];
    [Some(place)].into_iter().chain(others).flatten().collect()
}

/// For each VC, adds a loss rule on a sixth of its links, and on half of its links after a merge.
pub(crate) fn add(network: &mut Network, rng: &mut Stream) {
    let without = network.clone();
    for (number, vc) in without.vcs.iter_enumerated() {
        for (place, &link) in vc.path.iter().enumerate() {
            // Add no rule on a link to an edge device, which receives whole packets.
            let into_edge = place == 0 && without.nodes[without.links[link].to].kind == NodeKind::EdgeDevice;
            let one_in = if without.merged_at(vc, link).is_some() { 2 } else { 6 };
            if into_edge || rng.below(one_in) > 0 {
                continue;
            }
            let unit = if rng.below(2) == 0 { LossUnit::Packets } else { LossUnit::Cells };
            let most = if unit == LossUnit::Packets { 20 } else { 200 };
            let pattern = match rng.below(3) {
                0 => {
                    let mut numbers: Vec<u64> = (0..=rng.below(6)).map(|_| rng.below(most).into()).collect();
                    numbers.sort_unstable();
                    LossPattern::Numbers(numbers)
                }
                1 => LossPattern::Every { period: u64::from(1 + rng.below(most)), first: rng.below(most).into() },
                // Draw this number even if it is not used, so that archived networks do not change.
                _ => match rng.below(4) {
                    0 if unit == LossUnit::Packets => LossPattern::Byte { offset: 5000, times: 2 },
                    0 => LossPattern::Probability(0.5),
                    1 => LossPattern::Probability(0.02),
                    2 => LossPattern::GilbertElliott(GilbertElliott { p: 0.05, r: 0.3, good: 0.001, bad: 0.9 }),
                    _ => LossPattern::Probability(1.0),
                },
            };
            network.links[link].losses.push(LossRule { vc: number, unit, pattern });
        }
    }
}
