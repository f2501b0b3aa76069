//! Deadlocks of links that pause each other, as both engines find them.

use std::collections::{BTreeMap, BTreeSet};

use crate::index::LinkIndex;

/// A priority group that is paused: the link that feeds it, and its priority.
pub(super) type PausedGroup = (LinkIndex, u8);

/// The paused groups that have cells, with the ports at which their cells wait.
pub(super) type PausedGroups = BTreeMap<PausedGroup, BTreeSet<LinkIndex>>;

/// Finds a cycle of paused groups that can never resume, because the cells of each group wait only at ports stopped by
/// other groups of the cycle. `is_stopped` returns whether a port is stopped for a priority.
pub(super) fn deadlock(mut groups: PausedGroups, is_stopped: impl Fn(PausedGroup) -> bool) -> Option<Vec<PausedGroup>> {
    loop {
        let can_go = |&(&(_, priority), at): &(&PausedGroup, &BTreeSet<LinkIndex>)| {
            at.iter().any(|&port| !is_stopped((port, priority)) || !groups.contains_key(&(port, priority)))
        };
        let Some((&free, _)) = groups.iter().find(can_go) else { break };
        groups.remove(&free);
    }
    let mut way = vec![*groups.keys().next()?];
    loop {
        let &(link, priority) = way.last()?;
        let next = (*groups[&(link, priority)].first()?, priority);
        if let Some(start) = way.iter().position(|&group| group == next) {
            return Some(way.split_off(start));
        }
        way.push(next);
    }
}
