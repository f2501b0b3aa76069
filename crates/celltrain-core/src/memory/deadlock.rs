//! Detects deadlocks of paused links.

use std::collections::{BTreeMap, BTreeSet};

use crate::index::LinkIndex;

/// A priority group that is paused: the link that feeds it, and its priority.
pub(crate) type PausedGroup = (LinkIndex, u8);

/// The paused groups that have cells, with the ports at which their cells wait.
pub(crate) type PausedGroups = BTreeMap<PausedGroup, BTreeSet<LinkIndex>>;

/// Finds a cycle of paused groups that can never resume, because the cells of each group wait only at ports stopped by
/// other groups of the cycle. `is_stopped` returns whether a port is stopped for a priority.
pub(crate) fn deadlock(mut groups: PausedGroups, is_stopped: impl Fn(PausedGroup) -> bool) -> Option<Vec<PausedGroup>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priority_groups_that_wait_only_for_a_busy_port_are_not_reported_as_deadlocked() {
        let link = LinkIndex::new;
        let at = |ports: &[u32]| ports.iter().copied().map(link).collect::<BTreeSet<_>>();
        let cycle = BTreeMap::from([((link(0), 3), at(&[1])), ((link(1), 3), at(&[0]))]);
        assert_eq!(deadlock(cycle.clone(), |_| true), Some(vec![(link(0), 3), (link(1), 3)]));
        assert_eq!(deadlock(cycle, |(port, _)| port != link(1)), None, "a pause frame is still in flight");
        let open = BTreeMap::from([((link(0), 3), at(&[1, 2])), ((link(1), 3), at(&[0]))]);
        assert_eq!(deadlock(open, |_| true), None, "cells that wait at port 2 are not part of the deadlock");
        let led_to = BTreeMap::from([((link(0), 3), at(&[1])), ((link(1), 3), at(&[2])), ((link(2), 3), at(&[1]))]);
        assert_eq!(
            deadlock(led_to, |_| true),
            Some(vec![(link(1), 3), (link(2), 3)]),
            "the path that leads to the cycle is not part of it"
        );
    }
}
