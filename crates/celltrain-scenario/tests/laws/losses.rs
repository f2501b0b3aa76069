//! Laws about losses on links.

use celltrain_core::link_loss::{LossPattern, LossRule};
use celltrain_core::metrics::RunResult;
use celltrain_core::network::Network;

use super::Case;
use super::same::same;
use crate::differential::losses;

/// A periodic rule has the same effect as the list of its numbers. A list has the same effect as one rule per number. A
/// rule that selects no packets and no cells has no effect.
pub(super) fn patterns(case: &mut Case) -> Result<bool, String> {
    let mut network = case.network();
    losses::add(&mut network, &mut case.draws);
    let original = case.run_watched(&network);
    let changed = with_other_patterns(&network, &original);
    same(&without_rules(case.run_watched(&changed)), &without_rules(original.clone()))?;
    Ok(original.losses.iter().any(|losses| losses.counters.lost > 0))
}

/// Removes the counters of loss rules from a result, because the compared networks have different numbers of rules.
fn without_rules(mut result: RunResult) -> RunResult {
    result.losses.iter_mut().for_each(|of_link| of_link.rules.clear());
    result
}

fn with_other_patterns(network: &Network, result: &RunResult) -> Network {
    let cells = result.losses.iter().map(|losses| losses.counters.came).max().unwrap_or(0);
    let mut changed = network.clone();
    for link in &mut changed.links {
        for rule in std::mem::take(&mut link.losses) {
            let with = |pattern| LossRule { pattern, ..rule.clone() };
            match &rule.pattern {
                LossPattern::Numbers(numbers) => {
                    link.losses.extend(numbers.iter().map(|&number| with(LossPattern::Numbers(vec![number]))));
                }
                &LossPattern::Every { period, first } => {
                    let step = usize::try_from(period).expect("the period fits in the address space");
                    link.losses.push(with(LossPattern::Numbers((first..=first + cells).step_by(step).collect())));
                }
                LossPattern::Probability(_) | LossPattern::GilbertElliott(_) | LossPattern::Byte { .. } => {
                    link.losses.push(rule.clone());
                }
            }
            link.losses.push(with(LossPattern::Probability(0.0)));
            link.losses.push(with(LossPattern::Numbers(vec![u64::MAX])));
        }
    }
    changed
}
