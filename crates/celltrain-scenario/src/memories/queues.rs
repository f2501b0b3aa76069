//! Resolves the entries of the key `queue`, which set the properties of a memory's queues.

use std::collections::BTreeSet;

use celltrain_core::index::LinkIndex;
use celltrain_core::memory::{Lossless, PoolIndex, QueueConfig, QueueIndex, Side};
use typed_index_collections::TiVec;

use super::Resolver;
use crate::hints::{closest, did_you_mean};
use crate::memory_options::{MAX_PRIORITY, PoolOptions, QueueOptions};
use crate::scope::Scope;

impl<'a> Resolver<'a> {
    /// Returns the queues of a memory with the given ports.
    pub(super) fn queues(
        &self,
        ports: &[LinkIndex],
        rules: &[Rule<'_>],
        names: &[&str],
        scope: &mut Scope<'_>,
    ) -> TiVec<QueueIndex, QueueConfig> {
        let links = &self.layout.graph.links;
        let mut queues = TiVec::new();
        for side in [Side::Egress, Side::Ingress] {
            let of_side: Vec<usize> =
                self.options.pool.values().enumerate().filter(|(_, pool)| pool.side == side).map(|(i, _)| i).collect();
            if of_side.is_empty() {
                continue;
            }
            let mut without: Option<(LinkIndex, u8)> = None;
            for (link, priority) in self.pairs(side, ports, rules) {
                let applies = |rule: &&Rule<'_>| rule.side == side && rule.links.contains(&link) && rule.has(priority);
                let rule = rules.iter().find(applies);
                let only = if let [only] = of_side[..] { Some(only) } else { None };
                let Some(pool) = rule.map(|rule| rule.pool).or(only) else {
                    without.get_or_insert((link, priority));
                    continue;
                };
                let options = rule.map(|rule| rule.options);
                queues.push(QueueConfig {
                    link,
                    priority,
                    pool: PoolIndex::from(pool),
                    reserve: options.map_or(0, |options| options.reserve),
                    alpha: options.and_then(|options| options.alpha),
                    threshold: options.and_then(|options| options.threshold),
                    lossless: options.filter(|options| options.lossless).map(|options| Lossless {
                        headroom: options.headroom.unwrap_or(0),
                        xon: options.xon.unwrap_or(0),
                        xon_offset: options.xon_offset,
                        pause_at: options.pause_at.unwrap_or_default(),
                    }),
                });
            }
            if let Some((link, priority)) = without {
                let problem = format!(
                    "has no entry for priority {priority} of {}, but there are several pools on that side: {}; name \
                     the pool of this queue",
                    links[link].name,
                    of_side.iter().map(|&pool| names[pool]).collect::<Vec<_>>().join(", ")
                );
                scope.at("queue").once(|scope| scope.refuse(problem));
            }
        }
        queues
    }

    /// Checks and resolves an entry of `queue`. Returns `None` if the pool of the entry is unknown.
    pub(super) fn rule(
        &self,
        options: &'a QueueOptions,
        pools: &[&str],
        outputs: &[LinkIndex],
        inputs: &[LinkIndex],
        scope: &mut Scope<'_>,
    ) -> Option<Rule<'a>> {
        for (number, &priority) in options.priorities.iter().flatten().enumerate() {
            if priority > MAX_PRIORITY {
                let mut list = scope.at("priorities");
                list.item(number).refuse_value(priority, format!("is not a priority (0 to {MAX_PRIORITY})"));
            }
        }
        let pool = match (&options.pool, pools) {
            (Some(name), _) => {
                let place = pools.iter().position(|pool| pool == name);
                if place.is_none() {
                    let hint = did_you_mean(closest(name, pools.iter().copied(), scope.token()));
                    let problem = format!("is not a pool of the memory; {hint}its pools are {}", pools.join(", "));
                    scope.at("pool").refuse_text(name, problem);
                }
                place?
            }
            (None, [_]) => 0,
            (None, _) => {
                scope.at("pool").refuse(format!("is missing; the memory has several pools: {}", pools.join(", ")));
                return None;
            }
        };
        let config = self.options.pool.values().nth(pool)?;
        let (links, kind) = match config.side {
            Side::Egress => (outputs, "an output port of the memory"),
            Side::Ingress => (inputs, "an input port of the switch"),
        };
        let links = match &options.ports {
            Some(patterns) => self.matching(links, patterns, kind, &mut scope.at("ports")),
            None => links.to_vec(),
        };
        queue_settings(options, config, pools[pool], scope);
        Some(Rule { pool, side: config.side, links, options })
    }

    /// Returns the pairs of a link and a priority that have a queue on a side: the pairs that VCs use, and the pairs
    /// that entries of `queue` name.
    fn pairs(&self, side: Side, ports: &[LinkIndex], rules: &[Rule<'_>]) -> BTreeSet<(LinkIndex, u8)> {
        let mut pairs = BTreeSet::new();
        for (number, vc) in self.channels.vcs.iter_enumerated() {
            let priority = self.tables.vc(number).map_or(0, |own| own.priority);
            for hop in vc.path.windows(2).filter(|hop| ports.contains(&hop[1])) {
                pairs.insert((if side == Side::Egress { hop[1] } else { hop[0] }, priority));
            }
        }
        for rule in rules.iter().filter(|rule| rule.side == side) {
            for &priority in rule.options.priorities.iter().flatten() {
                pairs.extend(rule.links.iter().map(|&link| (link, priority)));
            }
        }
        pairs
    }
}

fn queue_settings(options: &QueueOptions, pool: &PoolOptions, name: &str, scope: &mut Scope<'_>) {
    let own = pool.policy.per_queue();
    if let Some(alpha) = options.alpha {
        if !own.alpha {
            let problem =
                format!("has no effect: {} of the pool {name} does not use alpha; leave it out", pool.policy.name());
            scope.at("alpha").refuse_value(alpha, problem);
        } else if !(alpha > 0.0 && alpha.is_finite()) {
            scope.at("alpha").refuse_value(alpha, "admits no cell; it must be a number above 0, such as 1");
        }
    }
    if let Some(threshold) = options.threshold.filter(|_| !own.threshold) {
        let problem = format!(
            "has no effect: {} of the pool {name} does not use the thresholds of queues; leave it out",
            pool.policy.name()
        );
        scope.at("threshold").refuse_value(threshold, problem);
    }
    if options.lossless && pool.side == Side::Egress {
        let problem = format!(
            "is for priority groups, but the pool {name} is on the egress side; name a pool with side = \"ingress\""
        );
        scope.at("lossless").refuse_value(true, problem);
    } else if options.lossless && options.headroom.unwrap_or(0) == 0 {
        let problem = "pauses a link without headroom, so cells in flight are lost; add headroom, in cells";
        match options.headroom {
            Some(cells) => scope.at("headroom").refuse_value(cells, problem),
            None => scope.at("lossless").refuse_value(true, problem),
        }
    }
    if !options.lossless {
        let only_lossless = [("headroom", options.headroom), ("xon", options.xon), ("xon_offset", options.xon_offset)];
        for (key, cells) in only_lossless {
            if let Some(cells) = cells {
                let problem = "belongs to a lossy group, which has no pauses; write lossless = true, or leave it out";
                scope.at(key).refuse_value(cells, problem);
            }
        }
        if options.pause_at.is_some() {
            scope.at("pause_at").refuse("belongs to a lossy group; write lossless = true, or leave it out");
        }
    }
}

/// A resolved entry of `queue`.
pub(super) struct Rule<'a> {
    pub(super) pool: usize,
    pub(super) side: Side,
    pub(super) links: Vec<LinkIndex>,
    pub(super) options: &'a QueueOptions,
}

impl Rule<'_> {
    fn has(&self, priority: u8) -> bool {
        self.options.priorities.as_ref().is_none_or(|priorities| priorities.contains(&priority))
    }
}
