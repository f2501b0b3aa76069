//! Random rules that delay packets on the links of a random network, together with random losses.

use std::collections::BTreeSet;

use celltrain_core::link_loss::{DelayRule, LossPattern};
use celltrain_core::network::{Network, NodeKind};
use celltrain_core::rng::Stream;
use celltrain_core::units::Duration;

use super::losses;

/// Kinds of delay rules, and kinds of links to which rules apply.
pub(crate) const KINDS: &[&str] = &[
    "packets by number", "every packets", "probability of packets", "a byte", "longer than a packet",
    "shorter than a packet", "late packets and losses on the same link", "several rules", "rules at the first link",
    "between switches", "rules at the last link", "acknowledgements", "a merge", "a contract", "a controlled rate",
];

pub(crate) fn kinds(network: &Network) -> BTreeSet<&'static str> {
    let mut kinds = BTreeSet::new();
    for (index, link) in network.links.iter_enumerated() {
        kinds.extend((link.late.len() > 1).then_some("several rules"));
        kinds.extend(
            (!link.late.is_empty() && !link.losses.is_empty()).then_some("late packets and losses on the same link"),
        );
        for DelayRule { vc: number, pattern, by } in &link.late {
            kinds.insert(match pattern {
                LossPattern::Numbers(_) => "packets by number",
                LossPattern::Every { .. } => "every packets",
                LossPattern::Byte { .. } => "a byte",
                LossPattern::Probability(_) | LossPattern::GilbertElliott(_) => "probability of packets",
            });
            let is_short = *by < SHORT;
            kinds.insert(if is_short { "shorter than a packet" } else { "longer than a packet" });
            kinds.extend(losses::places(network, index, *number));
        }
    }
    kinds
}

const SHORT: Duration = Duration::from_microseconds(5);

/// Adds losses. For each VC, also adds delays on a quarter of its links, and on half of its links after a merge.
pub(crate) fn add(network: &mut Network, rng: &mut Stream) {
    if rng.below(2) == 0 {
        losses::add(network, rng);
    }
    let without = network.clone();
    for (number, vc) in without.vcs.iter_enumerated() {
        for (place, &link) in vc.path.iter().enumerate() {
            // Add no rule on a link to an edge device, which receives whole packets.
            let into_edge = place == 0 && without.nodes[without.links[link].to].kind == NodeKind::EdgeDevice;
            let one_in = if without.merged_at(vc, link).is_some() { 2 } else { 4 };
            if into_edge || rng.below(one_in) > 0 {
                continue;
            }
            let pattern = match rng.below(4) {
                0 => {
                    let mut numbers: Vec<u64> = (0..=rng.below(6)).map(|_| rng.below(20).into()).collect();
                    numbers.sort_unstable();
                    LossPattern::Numbers(numbers)
                }
                1 => LossPattern::Every { period: u64::from(1 + rng.below(20)), first: rng.below(20).into() },
                2 => LossPattern::Probability([0.05, 0.5, 1.0][rng.below(3) as usize]),
                _ => LossPattern::Byte { offset: rng.below(5000).into(), times: u64::from(1 + rng.below(2)) },
            };
            // Draw a delay from a fraction of a cell time up to several round-trip times, often a multiple of cell
            // times.
            let by = match rng.below(4) {
                0 => Duration { picoseconds: 1 + u64::from(rng.below(4_000_000)) },
                1 => Duration::from_microseconds(u64::from(1 + rng.below(50))),
                2 => Duration::from_microseconds(u64::from(100 * (1 + rng.below(50)))),
                _ => Duration { picoseconds: 2_726_337 * u64::from(1 + rng.below(40)) },
            };
            network.links[link].late.push(DelayRule { vc: number, pattern, by });
        }
    }
}
