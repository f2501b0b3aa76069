//! Resolves the tables of memories shared by ports of a switch, for a given layout.

use std::collections::BTreeSet;

use celltrain_core::aal5::Framing;
use celltrain_core::index::{LinkIndex, MemoryIndex, NodeIndex};
use celltrain_core::memory::{
    Lossless, MemoryConfig, PauseResponse, Pauses, PolicyScope, PoolConfig, PoolIndex, QueueConfig, QueueIndex, Side,
};
use celltrain_core::network::NodeKind;
use celltrain_core::scheduler::SchedulerConfig;
use typed_index_collections::{TiVec, ti_vec};

use crate::channels::Channels;
use crate::document::join;
use crate::hints::{closest, did_you_mean};
use crate::memory_options::{MAX_PRIORITY, MemoryOptions, OwnSwitch, PoolOptions, QueueOptions};
use crate::scenario::Scenario;
use crate::scope::Scope;
use crate::tables::{Tables, matches};
use crate::topology::Layout;

/// Finds the memories of a scenario, and reports faults.
pub(crate) fn resolve(
    scenario: &Scenario,
    layout: &Layout,
    channels: &Channels,
    tables: &Tables<'_>,
    root: &mut Scope<'_>,
) -> TiVec<MemoryIndex, MemoryConfig> {
    let mut found = TiVec::new();
    if scenario.switch.own.is_empty() {
        return found;
    }
    let before = root.found().len();
    let mut taken: TiVec<LinkIndex, Option<MemoryIndex>> = ti_vec![None; layout.graph.links.len()];
    let mut of_all = root.at("switch");
    let mut used: BTreeSet<&str> = BTreeSet::new();
    for (number, node) in layout.graph.nodes.iter_enumerated().filter(|(_, node)| node.kind == NodeKind::Switch) {
        let Some((key, own)) = table_of(scenario, &node.name) else { continue };
        used.insert(key);
        let mut scope = of_all.at(key);
        let single = own.memory.iter().map(|memory| (None, memory));
        for (part, options) in single.chain(own.memories.iter().map(|(name, memory)| (Some(name), memory))) {
            let name = part.map_or(node.name.clone(), |part| format!("{}.{part}", node.name));
            let resolver =
                Resolver { layout, channels, tables, switch: number, framing: scenario.framing().framing, options };
            let mut table = scope.at(if part.is_some() { "memories" } else { "memory" });
            let mut inner;
            let scope = match part {
                Some(part) => {
                    inner = table.at(part);
                    &mut inner
                }
                None => &mut table,
            };
            let memory = resolver.memory(name, scope);
            for &port in &memory.ports {
                if let Some(other) = taken[port].replace(found.next_key()).filter(|&other| other != found.next_key()) {
                    let (link, other): (_, &MemoryConfig) = (&layout.graph.links[port].name, &found[other]);
                    let problem = format!(
                        "has the port {link}, which is already in the memory {}; a port can be in only one \
                                 memory",
                        other.name
                    );
                    scope.at("ports").once(|scope| scope.refuse(problem));
                }
            }
            found.push(memory);
        }
    }
    for key in scenario.switch.own.keys().filter(|key| !used.contains(key.as_str())) {
        let switches = layout.graph.nodes.iter().filter(|node| node.kind == NodeKind::Switch);
        let names: Vec<&str> = switches.map(|node| node.name.as_str()).collect();
        let hint = did_you_mean(closest(key, names.iter().copied(), of_all.token()));
        let first = names.first().copied().unwrap_or("sw1");
        of_all.at(key).refuse(format!("is not a switch; {hint}it must be the name of one, such as \"{first}\""));
    }
    // A pattern of names may match several switches, which then have the same faults.
    root.merge_equal(before, |switches| format!("(at {switches} switches)"));
    found
}

/// Returns the table of a switch, with its key.
fn table_of<'a>(scenario: &'a Scenario, switch: &str) -> Option<(&'a String, &'a OwnSwitch)> {
    let own = &scenario.switch.own;
    own.get_key_value(switch).or_else(|| own.iter().find(|(key, _)| matches(key, switch)))
}

/// Returns the path of the table that describes a memory.
pub(crate) fn path_of(scenario: &Scenario, layout: &Layout, memory: &MemoryConfig) -> Option<String> {
    let switch = &layout.graph.nodes[layout.graph.links[*memory.ports.first()?].from].name;
    let table = join("switch", table_of(scenario, switch)?.0);
    Some(match memory.name.strip_prefix(switch.as_str()).and_then(|part| part.strip_prefix('.')) {
        Some(part) => join(&join(&table, "memories"), part),
        None => join(&table, "memory"),
    })
}

/// The memory that is being resolved.
struct Resolver<'a> {
    layout: &'a Layout,
    channels: &'a Channels,
    tables: &'a Tables<'a>,
    switch: NodeIndex,
    framing: Framing,
    options: &'a MemoryOptions,
}

impl<'a> Resolver<'a> {
    fn memory(&self, name: String, scope: &mut Scope<'_>) -> MemoryConfig {
        let MemoryOptions { cells, frames, policies_see, pauses, pause_response, .. } = *self.options;
        let links = &self.layout.graph.links;
        let outputs = links.iter_enumerated().filter(|(_, link)| link.from == self.switch);
        let outputs: Vec<LinkIndex> = outputs.map(|(number, _)| number).collect();
        let inputs = links.iter_enumerated().filter(|(_, link)| link.to == self.switch);
        let inputs: Vec<LinkIndex> = inputs.map(|(number, _)| number).collect();
        let ports =
            self.matching(&outputs, &self.options.ports, "an output port of the switch", &mut scope.at("ports"));
        if self.options.pool.is_empty() {
            scope.at("pool").refuse("has no pool; write a table such as [switch.NAME.memory.pool.main]");
        }
        let names: Vec<&str> = self.options.pool.keys().map(String::as_str).collect();
        let mut queues = TiVec::new();
        let rules: Vec<Rule<'_>> = (self.options.queue.iter().enumerate())
            .filter_map(|(number, options)| {
                let mut list = scope.at("queue");
                let mut scope = list.item(number);
                self.rule(options, &names, &ports, &inputs, &mut scope)
            })
            .collect();
        for side in [Side::Egress, Side::Ingress] {
            let of_side: Vec<usize> =
                self.options.pool.values().enumerate().filter(|(_, pool)| pool.side == side).map(|(i, _)| i).collect();
            if of_side.is_empty() {
                continue;
            }
            let mut without: Option<(LinkIndex, u8)> = None;
            for (link, priority) in self.pairs(side, &ports, &rules) {
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
        let pools = self.pools(&queues, scope);
        for &port in &ports {
            self.port(port, &pools, &queues, scope);
        }
        if pauses == Pauses::Links {
            self.pausing(&queues, scope);
        }
        if let Some(response) = pause_response {
            self.pause_response(response, scope);
        }
        MemoryConfig { name, cells, ports, pools, queues, frames, policies_see, pauses, pause_response }
    }

    fn matching(&self, links: &[LinkIndex], patterns: &[String], kind: &str, scope: &mut Scope<'_>) -> Vec<LinkIndex> {
        let name = |link: LinkIndex| self.layout.graph.links[link].name.as_str();
        for (number, pattern) in patterns.iter().enumerate() {
            if !links.iter().any(|&link| matches(pattern, name(link))) {
                let hint = did_you_mean(closest(pattern, links.iter().map(|&link| name(link)), scope.token()));
                let first = links.first().map_or("sw1->*", |&link| name(link));
                let problem = format!("is not {kind}; {hint}it must be a link such as \"{first}\", or a pattern");
                scope.item(number).refuse_text(pattern, problem);
            }
        }
        if patterns.is_empty() {
            scope.refuse("is empty; leave it out for all ports");
        }
        links.iter().copied().filter(|&link| patterns.iter().any(|pattern| matches(pattern, name(link)))).collect()
    }

    /// Checks an entry of `queue` and resolves it, unless its pool is unknown.
    fn rule(
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

    /// Returns the links and priorities that have a queue on a side: those that VCs use, and those that entries name.
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

    /// Assigns cells to every pool, and checks that they fit into the memory.
    fn pools(&self, queues: &TiVec<QueueIndex, QueueConfig>, scope: &mut Scope<'_>) -> TiVec<PoolIndex, PoolConfig> {
        let all = u64::from(self.options.cells);
        for side in [Side::Egress, Side::Ingress] {
            let Taken { reserves, headrooms, pools } = self.taken(side, queues);
            let beyond_pools = reserves.saturating_add(headrooms);
            if beyond_pools > all {
                let problem = format!(
                    "is less than the reserves and headrooms of the {} side, {reserves} and {headrooms} cells; make \
                     the memory larger, or reduce these",
                    side_name(side)
                );
                scope.at("cells").once(|scope| scope.refuse_value(all, problem));
                continue;
            }
            let mut without: Vec<&str> = Vec::new();
            for (name, pool) in self.options.pool.iter().filter(|(_, pool)| pool.side == side) {
                let Some(cells) = pool.cells else {
                    without.push(name);
                    continue;
                };
                if u64::from(cells) > all {
                    let problem = format!("is larger than the memory, which has {all} cells");
                    scope.at("pool").at(name).at("cells").refuse_value(cells, problem);
                } else if pools.saturating_add(beyond_pools) > all {
                    let problem = format!(
                        "is too large: the pools of the {} side have {pools} cells, reserves {reserves} and headrooms \
                         {headrooms}, but the whole memory has only {all}; leave the key cells out to use the remaining \
                         cells",
                        side_name(side)
                    );
                    scope.at("pool").at(name).at("cells").refuse_value(cells, problem);
                }
            }
            if let [first, second, ..] = without[..] {
                let problem = format!("is missing; {first} and {second} cannot both use the remaining cells");
                scope.at("pool").at(second).at("cells").refuse(problem);
            } else if let [only] = without[..]
                && pools.saturating_add(beyond_pools) == all
            {
                let problem = "is missing, but the other pools, reserves and headrooms leave no cells of the memory";
                scope.at("pool").at(only).at("cells").refuse(problem);
            }
        }
        let pool = |(number, (name, options)): (usize, (&String, &PoolOptions))| {
            let PoolOptions { side, cells, headroom, ref policy } = *options;
            let Taken { reserves, headrooms, pools } = self.taken(side, queues);
            let rest = all.saturating_sub(reserves.saturating_add(headrooms).saturating_add(pools));
            let cells = cells.unwrap_or(u32::try_from(rest).unwrap_or(u32::MAX));
            let mut of_pools = scope.at("pool");
            let mut scope = of_pools.at(name);
            let is_lossy = queues.iter().all(|queue| usize::from(queue.pool) != number || queue.lossless.is_none());
            if let Some(headroom) = headroom.filter(|_| is_lossy) {
                let problem = "is for lossless groups, but the pool has none; write lossless = true and a headroom \
                               into an entry of queue";
                scope.at("headroom").refuse_value(headroom, problem);
            }
            let mut of_policy = scope.at("policy");
            let mut scope = of_policy.at(policy.name());
            if (policy.pushes_out() || policy.needs_predictions()) && side == Side::Ingress {
                scope.refuse(
                    "removes waiting cells, or follows a policy that does; this is possible only in a pool on \
                              the egress side; choose another policy",
                );
            }
            for fault in policy.check(cells) {
                scope.refuse_setting(fault);
            }
            PoolConfig { name: name.clone(), side, cells, headroom, policy: policy.clone() }
        };
        self.options.pool.iter().enumerate().map(pool).collect()
    }

    /// Adds up the cells of the memory that one side uses.
    fn taken(&self, side: Side, queues: &TiVec<QueueIndex, QueueConfig>) -> Taken {
        let mut taken = Taken::default();
        for (number, pool) in self.options.pool.values().enumerate().filter(|(_, pool)| pool.side == side) {
            let own = || queues.iter().filter(|queue| usize::from(queue.pool) == number);
            let headrooms = own().filter_map(|queue| Some(queue.lossless?.headroom));
            taken.reserves = taken.reserves.saturating_add(sum(own().map(|queue| queue.reserve)));
            taken.headrooms = taken.headrooms.saturating_add(pool.headroom.map_or_else(|| sum(headrooms), u64::from));
            taken.pools = taken.pools.saturating_add(pool.cells.unwrap_or(0).into());
        }
        taken
    }

    /// Checks that links can be paused.
    fn pausing(&self, queues: &TiVec<QueueIndex, QueueConfig>, scope: &mut Scope<'_>) {
        let mut scope = scope.at("pauses");
        if queues.iter().all(|queue| queue.lossless.is_none()) {
            let problem = "has no effect without a lossless group; write lossless = true and a headroom into an entry of \
                           queue";
            scope.refuse_text("links", problem);
            return;
        }
        for queue in queues.iter().filter(|queue| queue.lossless.is_some()) {
            let link = &self.layout.graph.links[queue.link];
            let table = self.tables.ports[queue.link].map(|(_, table)| table);
            if let Some(table) = table.filter(|table| table.scheduler != SchedulerConfig::default()) {
                let problem = format!(
                    "pauses the port {}, which has the scheduler {}; only ports with one queue can be paused",
                    link.name,
                    table.scheduler.name()
                );
                scope.once(|scope| scope.refuse_text("links", problem));
            }
            if self.layout.graph.nodes[link.from].kind == NodeKind::EdgeDevice {
                let problem = format!("pauses the port {} of an edge device, which cannot be paused", link.name);
                scope.once(|scope| scope.refuse_text("links", problem));
            }
        }
    }

    /// Checks that the memory sends pause frames as on a wire.
    fn pause_response(&self, response: PauseResponse, scope: &mut Scope<'_>) {
        let problem = if self.options.pauses == Pauses::Counted {
            "has no effect, because pauses stop no port; set pauses = \"links\", or leave it out"
        } else if self.framing == Framing::Aal5 {
            "needs framing = \"packets\": with AAL5, a port stops between two cells as soon as a pause frame \
             arrives; set framing = \"packets\", or leave it out"
        } else {
            return;
        };
        scope.at("pause_response").refuse_text(response, problem);
    }

    /// Checks that a port can be in the memory.
    fn port(
        &self,
        port: LinkIndex,
        pools: &TiVec<PoolIndex, PoolConfig>,
        queues: &TiVec<QueueIndex, QueueConfig>,
        scope: &mut Scope<'_>,
    ) {
        let link = &self.layout.graph.links[port].name;
        let merges = self.channels.merges.iter().find(|merge| merge.at == port);
        if let Some(merge) = merges {
            let problem = format!(
                "has the port {link}, where VCs merge into {}; merging ports need their own buffers",
                merge.name
            );
            scope.at("ports").once(|scope| scope.refuse(problem));
        }
        if self.options.policies_see == PolicyScope::Memory {
            let of_port: BTreeSet<PoolIndex> =
                queues.iter().filter(|queue| queue.link == port).map(|queue| queue.pool).collect();
            let egress = pools.iter().filter(|pool| pool.side == Side::Egress).count();
            if of_port.len() > 1 || egress > 1 || (egress == 0 && pools.len() > 1) {
                let problem = "needs a memory with one pool on the egress side: X and K are Q and B of that pool";
                scope.at("policies_see").once(|scope| scope.refuse_text("memory", problem));
            }
        }
        let Some((_, table)) = self.tables.ports[port] else { return };
        let follows = || table.policy.build(Some(1), &[]).follower().is_some();
        if self.options.policies_see == PolicyScope::Memory && follows() {
            let problem = format!(
                "is not possible with the policy {} of the port {link}, which tracks the cells of its own queue",
                table.policy.name()
            );
            scope.at("policies_see").once(|scope| scope.refuse_text("memory", problem));
        }
        let removes = pools.iter().find(|pool| pool.policy.pushes_out() || pool.policy.needs_predictions());
        if let Some(pool) = removes {
            let reason = if table.scheduler != SchedulerConfig::default() {
                Some(format!("the port {link} has the scheduler {}", table.scheduler.name()))
            } else if follows() {
                Some(format!("the policy {} of the port {link} tracks cells in their queue", table.policy.name()))
            } else {
                None
            };
            if let Some(reason) = reason {
                let problem = format!(
                    "removes waiting cells, or follows a policy that does, but {reason}; change this policy, or the policy of the port"
                );
                let mut of_pools = scope.at("pool");
                let mut scope = of_pools.at(&pool.name);
                scope.at("policy").at(pool.policy.name()).once(|scope| scope.refuse(problem));
            }
        }
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

/// Number of the memory's cells that one side uses.
#[derive(Default)]
struct Taken {
    reserves: u64,
    headrooms: u64,
    /// Cells of the pools whose size is set.
    pools: u64,
}

fn sum(cells: impl Iterator<Item = u32>) -> u64 {
    cells.fold(0, |sum: u64, cells| sum.saturating_add(cells.into()))
}

/// A resolved entry of `queue`.
struct Rule<'a> {
    pool: usize,
    side: Side,
    links: Vec<LinkIndex>,
    options: &'a QueueOptions,
}

impl Rule<'_> {
    fn has(&self, priority: u8) -> bool {
        self.options.priorities.as_ref().is_none_or(|priorities| priorities.contains(&priority))
    }
}

fn side_name(side: Side) -> &'static str {
    match side {
        Side::Egress => "egress",
        Side::Ingress => "ingress",
    }
}

/// Returns the buffer size K that the policies of a memory's ports use.
pub(crate) fn capacity(memory: &MemoryConfig) -> u32 {
    match memory.policies_see {
        PolicyScope::Port => memory.cells,
        PolicyScope::Memory => {
            let egress = memory.pools.iter().find(|pool| pool.side == Side::Egress);
            egress.or(memory.pools.first()).map_or(memory.cells, |pool| pool.cells)
        }
    }
}
