//! Resolves the tables of memories shared by ports of a switch, for a given layout.

mod pools;
mod queues;

use std::collections::BTreeSet;

use celltrain_core::aal5::Framing;
use celltrain_core::index::{LinkIndex, MemoryIndex, NodeIndex};
use celltrain_core::memory::{
    MemoryConfig, PauseResponse, Pauses, PolicyScope, PoolConfig, PoolIndex, QueueConfig, QueueIndex, Side,
};
use celltrain_core::network::NodeKind;
use celltrain_core::scheduler::SchedulerConfig;
use typed_index_collections::{TiVec, ti_vec};

use crate::channels::Channels;
use crate::document::join;
use crate::hints::{closest, did_you_mean};
use crate::memory_options::{MemoryOptions, OwnSwitch};
use crate::scenario::Scenario;
use crate::scope::Scope;
use crate::tables::{Tables, matches};
use crate::topology::Layout;
use queues::Rule;

/// Resolves the memories of a scenario, and reports the faults in their tables.
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
    // Merge equal faults, because a pattern of names may match several switches, which then have the same faults.
    root.merge_equal(before, |switches| format!("(at {switches} switches)"));
    found
}

/// Returns the table that describes a switch, with the table's key.
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

impl Resolver<'_> {
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
        let rules: Vec<Rule<'_>> = (self.options.queue.iter().enumerate())
            .filter_map(|(number, options)| {
                let mut list = scope.at("queue");
                let mut scope = list.item(number);
                self.rule(options, &names, &ports, &inputs, &mut scope)
            })
            .collect();
        let queues = self.queues(&ports, &rules, &names, scope);
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

    /// Checks that the ports before the memory's switch can be paused.
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
            if let Some(table) = table.filter(|table| table.policy.has_queues()) {
                let problem = format!(
                    "pauses the port {}, whose policy {} has a queue for each VC; only ports with one queue can be paused",
                    link.name,
                    table.policy.name()
                );
                scope.once(|scope| scope.refuse_text("links", problem));
            }
            if self.layout.graph.nodes[link.from].kind == NodeKind::EdgeDevice {
                let problem = format!("pauses the port {} of an edge device, which cannot be paused", link.name);
                scope.once(|scope| scope.refuse_text("links", problem));
            }
        }
    }

    /// Checks that the memory sends pause frames, since a response time applies only to pause frames.
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

    /// Checks that a port can belong to the memory.
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
        let follows = || table.policy.build(Some(1), &[]).needs_one_queue();
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
                    "removes waiting cells, or follows a policy that removes them, but {reason}; change this policy, \
                     or the policy of the port"
                );
                let mut of_pools = scope.at("pool");
                let mut scope = of_pools.at(&pool.name);
                scope.at("policy").at(pool.policy.name()).once(|scope| scope.refuse(problem));
            }
        }
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
