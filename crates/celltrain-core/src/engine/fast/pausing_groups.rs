//! Which lossless groups of shared memories pause links, and which of them can wait for each other.

use std::collections::{BTreeMap, BTreeSet};

use typed_index_collections::{TiVec, ti_vec};

use crate::index::LinkIndex;
use crate::memory::{PausedGroup, Pauses};
use crate::network::Network;

/// Returns the lossless groups that pause links.
pub(super) fn pausing_groups(network: &Network) -> impl Iterator<Item = PausedGroup> {
    let pausing = network.memories.iter().filter(|memory| memory.pauses == Pauses::Links);
    let lossless = pausing.flat_map(|memory| &memory.queues).filter(|queue| queue.lossless.is_some());
    lossless.map(|queue| (queue.link, queue.priority))
}

/// Returns, by link, whether the next switch may pause it; empty if no link is paused.
pub(super) fn pausable(network: &Network) -> TiVec<LinkIndex, bool> {
    let mut pausable = TiVec::new();
    for (link, _) in pausing_groups(network) {
        if pausable.is_empty() {
            pausable = ti_vec![false; network.links.len()];
        }
        pausable[link] = true;
    }
    pausable
}

/// Returns whether the VCs of a network let groups wait for each other in a cycle.
pub(super) fn has_cycle(network: &Network) -> bool {
    !waits_for(network, &pausing_groups(network).collect()).is_empty()
}

/// Returns which groups can wait for which others in a cycle. Cells of a group wait for another one if a VC enters a switch
/// on the link of the first and leaves it on the link of the second.
pub(super) fn waits_for(
    network: &Network,
    groups: &BTreeSet<PausedGroup>,
) -> BTreeMap<PausedGroup, BTreeSet<PausedGroup>> {
    let mut waits_for: BTreeMap<PausedGroup, BTreeSet<PausedGroup>> = BTreeMap::new();
    for vc in &network.vcs {
        for hop in vc.path.windows(2) {
            let [from, to] = [hop[0], hop[1]].map(|link| (link, vc.priority));
            if groups.contains(&from) && groups.contains(&to) {
                waits_for.entry(from).or_default().insert(to);
            }
        }
    }
    // A group that waits for no group that waits is not part of a cycle.
    loop {
        let waiting: BTreeSet<PausedGroup> = waits_for.keys().copied().collect();
        for others in waits_for.values_mut() {
            others.retain(|group| waiting.contains(group));
        }
        waits_for.retain(|_, others| !others.is_empty());
        if waits_for.len() == waiting.len() {
            return waits_for;
        }
    }
}
