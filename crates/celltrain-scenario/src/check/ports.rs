//! Checks of ports: their tables, VCs, buffers, policies and schedulers.

use std::collections::{BTreeMap, BTreeSet};

use celltrain_core::abr::allocator::AllocatorConfig;
use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::error::Fault;
use celltrain_core::index::LinkIndex;
use celltrain_core::marking::{Counted, MarkingConfig};
use celltrain_core::network::NodeKind;
use celltrain_core::policy::{Overflow, PerVc, PolicyConfig};
use celltrain_core::scheduler::{Class, SchedulerConfig};
use celltrain_core::units::BitRate;
use typed_index_collections::{TiSlice, TiVec, ti_vec};

use crate::hints::{closest, did_you_mean, hint};
use crate::resolved::ResolvedScenario;
use crate::scenario::{Buffer, Infinite, PortConfig, Scenario, Shared};
use crate::scope::Scope;
use crate::tables::matches;
use crate::topology::Congests;

/// Maximum size of a buffer: 2^28 cells, whose transmission takes twelve minutes at OC-3. A larger buffer is probably
/// meant to be "infinite".
const MAX_BUFFER: u32 = 1 << 28;

/// Checks the tables of ports against the layout, if a layout exists, and then the settings of each table.
pub(super) fn check(
    scenario: &Scenario,
    resolved: Option<&ResolvedScenario<'_>>,
    frames_are_sound: bool,
    root: &mut Scope<'_>,
) -> Result<(), Interrupted> {
    let mut largest_frames = BTreeMap::new();
    if let Some(resolved) = resolved {
        buffers(resolved, root);
        largest_frames = tables(resolved, root)?;
    }
    for (name, config) in &scenario.port {
        let largest_frame = largest_frames.get(name.as_str()).copied().filter(|_| frames_are_sound);
        let shared = resolved.and_then(|resolved| resolved.shared_capacity(name));
        settings(config, shared, largest_frame.unwrap_or(1), &mut root.at("port").at(name));
    }
    Ok(())
}

/// Checks that every port that needs a table has a table, and that every table names a port. Returns, for each table,
/// the number of cells of the largest frame that crosses its ports.
fn tables<'a>(resolved: &ResolvedScenario<'a>, root: &mut Scope<'_>) -> Result<BTreeMap<&'a str, u32>, Interrupted> {
    let (links, token) = (resolved.layout.graph.links.len(), root.token());
    let largest_frame = resolved.largest_frames();
    let asks = |port: &PortConfig| has_settings_by_vc(port) || counts_vcs(port);
    let crossing =
        if resolved.scenario.port.values().any(asks) { resolved.crossing() } else { ti_vec![Vec::new(); links] };
    merging(resolved, root);
    pauses(resolved, root);
    classes(resolved, root);
    let meant = names(resolved, root, token)?;
    vcs(resolved, &crossing, root);
    let mut used: BTreeMap<&str, u32> = BTreeMap::new();
    // For tables whose settings depend only on the number of VCs, the numbers that have already been checked.
    let mut counted: BTreeSet<(&str, usize)> = BTreeSet::new();
    for (((number, table), vcs), (link, &frame)) in resolved
        .tables
        .ports
        .iter_enumerated()
        .zip(&crossing)
        .zip(resolved.layout.graph.links.iter().zip(&largest_frame))
    {
        token.tick(vcs.len().saturating_add(1))?;
        if let &Some((name, config)) = table {
            let largest = used.entry(name).or_insert(0);
            *largest = frame.max(*largest);
            if counts_vcs(config) && !has_settings_by_vc(config) && !counted.insert((name, vcs.len())) {
                continue;
            }
            of_vcs(config, resolved.capacity(number), &link.name, vcs, &mut root.at("port").at(name));
        }
    }
    token.check()?;
    without_table(resolved, &largest_frame, &meant, root);
    Ok(used)
}

/// Checks that every table names a port. Returns the ports suggested for names that match no port.
fn names<'a>(
    resolved: &'a ResolvedScenario<'_>,
    root: &mut Scope<'_>,
    token: &CancellationToken<'_>,
) -> Result<BTreeSet<&'a str>, Interrupted> {
    let ResolvedScenario { scenario, layout, .. } = resolved;
    let graph = &layout.graph;
    let of_switches = graph.links.iter().filter(|link| graph.nodes[link.from].kind == NodeKind::Switch);
    let links = of_switches.map(|link| link.name.as_str());
    let known: BTreeSet<&str> = ["bottleneck", "default"].into_iter().chain(links.clone()).collect();
    let mut meant: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    for name in scenario.port.keys().map(String::as_str) {
        token.tick(1)?;
        if !known.contains(name) && !token.any(links.clone(), |link| matches(name, link))? {
            meant.insert(name, hint(name, known.iter().copied(), root.found(), token));
        }
    }
    for (name, meant) in &meant {
        let hint = did_you_mean(*meant);
        let link = &graph.links[layout.bottleneck].name;
        let it = if hint.is_empty() { "it" } else { "It" };
        let problem = format!(
            "is not an output port of a switch; {hint}{it} must be bottleneck, default, or a link such as \"{link}\""
        );
        root.at("port").at(name).refuse(problem);
    }
    Ok(meant.into_values().flatten().collect())
}

/// Checks ports where VCs merge. Their policies must not remove single cells, because frames must stay complete.
fn merging(resolved: &ResolvedScenario<'_>, root: &mut Scope<'_>) {
    let ResolvedScenario { layout, channels, tables, .. } = resolved;
    for merge in &channels.merges {
        let link = &layout.graph.links[merge.at].name;
        let Some((name, port)) = tables.ports[merge.at] else { continue };
        let mut of_all = root.at("port");
        let mut scope = of_all.at(name);
        if port.scheduler != SchedulerConfig::default() {
            let problem = format!("has several queues, but {link} merges VCs into one queue; remove the scheduler");
            scope.at("scheduler").at(port.scheduler.name()).once(|scope| scope.refuse(problem));
        }
        if port.marking.is_some() {
            let problem = format!(
                "marks packets, but a port that merges VCs, such as {link}, cannot mark packets; remove the \
                         table"
            );
            scope.at("marking").once(|scope| scope.refuse(problem));
        }
        let mut policy = port.policy.build(Some(1), &[]);
        let reason = match policy.overflow() {
            Overflow::PushOutFront => Some("takes cells out of waiting frames"),
            _ if policy.follower().is_some() => Some("tracks single cells in the queue"),
            Overflow::PushOutLongest => Some("has a queue for each VC"),
            _ if port.policy.has_queues() => Some("has its own queues"),
            _ if policy.head_policy().is_some() => Some("drops or marks frames of a single queue"),
            _ => None,
        };
        if let Some(reason) = reason {
            let problem =
                format!("{reason}, but {link} merges VCs, whose frames must leave whole; choose another policy");
            scope.at("policy").at(port.policy.name()).once(|scope| scope.refuse(problem));
        }
    }
}

/// If switches pause links, checks that no policy drops frames at the head of the queue, because a pause waits for the
/// end of a packet.
fn pauses(resolved: &ResolvedScenario<'_>, root: &mut Scope<'_>) {
    if resolved.memories.iter().flat_map(|memory| &memory.queues).all(|queue| queue.lossless.is_none()) {
        return;
    }
    for (name, port) in &resolved.scenario.port {
        if port.policy.build(Some(1), &[]).head_policy().is_some() {
            let problem = "cannot be used if a switch pauses links; choose another policy, or leave lossless out";
            root.at("port").at(name).at("policy").at(port.policy.name()).refuse(problem);
        }
    }
}

/// Checks that VCs of several classes cross at least one port of each table whose scheduler distinguishes classes.
fn classes(resolved: &ResolvedScenario<'_>, root: &mut Scope<'_>) {
    let ResolvedScenario { scenario, layout, channels, tables: found, .. } = resolved;
    if !scenario.port.values().any(|port| port.scheduler.config().by_class()) {
        return;
    }
    let mut crossing: TiVec<LinkIndex, BTreeSet<Class>> = ti_vec![BTreeSet::new(); layout.graph.links.len()];
    for (number, vc) in channels.vcs.iter_enumerated() {
        let class = found.vc(number).map(|own| own.class).unwrap_or_default();
        for &link in &vc.path {
            crossing[link].insert(class);
        }
    }
    let mut with_abr: TiVec<LinkIndex, _> = ti_vec![(false, false); layout.graph.links.len()];
    for &[data_vc, ack_vc] in &channels.of_flow {
        let is_abr = found.vc(data_vc).is_some_and(|own| own.abr.is_some());
        for &link in channels.vcs[data_vc].path.iter().chain(&channels.vcs[ack_vc].path) {
            let (some, others) = &mut with_abr[link];
            *if is_abr { some } else { others } = true;
        }
    }
    // For each table, one of its ports, and whether VCs of several classes cross at least one of its ports.
    let mut tables: BTreeMap<&str, (LinkIndex, bool)> = BTreeMap::new();
    for (index, table) in found.ports.iter_enumerated().filter(|(index, _)| !crossing[*index].is_empty()) {
        if let Some((name, _)) = table.filter(|(_, port)| port.scheduler.config().by_class()) {
            tables.entry(name).or_insert((index, false)).1 |= crossing[index].len() > 1;
        }
    }
    for (name, (index, _)) in tables.into_iter().filter(|(_, (_, several))| !several) {
        let all = crossing[index].first().copied().unwrap_or_default();
        let other = if all == Class::Ubr { Class::Vbr } else { Class::Ubr };
        let (as_abr, table) = match with_abr[index] {
            (false, _) => ("", Some("a [vc.NAME] table")),
            (true, true) => (", as ABR VCs are", Some("the [vc.NAME] table of a VC without ABR")),
            (true, false) => (", as ABR VCs are", None),
        };
        let write = table.map(|table| format!("write class = \"{}\" into {table}, or ", other.name()));
        let problem = format!(
            "has only one class to serve: every VC that crosses {} is of class {}{as_abr}; {}leave the scheduler out",
            layout.graph.links[index].name,
            all.name(),
            write.unwrap_or_default()
        );
        let scheduler = scenario.port[name].scheduler.name();
        root.at("port").at(name).at("scheduler").at(scheduler).refuse(problem);
    }
}

/// Checks the settings for marking packets at a port. `shared` is K of the port's memory; `None` if the port belongs to
/// no memory.
fn check_marking(marking: &MarkingConfig, port: &PortConfig, shared: Option<u32>, scope: &mut Scope<'_>) {
    for fault in marking.check(port.buffer.cells().or(shared)) {
        scope.refuse_setting(fault);
    }
    if marking.of != Counted::Port && shared.is_none() {
        let problem = "counts cells of a memory, but the port has a buffer of its own; write \"port\", or buffer = \
                       \"shared\" and a memory of the switch";
        scope.at("of").refuse(problem);
    }
    if matches!(port.allocator, Some(AllocatorConfig::Efci(_))) {
        let problem = "marks packets with the EFCI bit, but allocator.efci already sets it in every cell; remove one of \
                       the two";
        scope.refuse(problem);
    }
}

/// Checks the settings of a port's table without regard to other tables. `shared` is the smallest K among the ports of
/// the table that belong to a memory. `largest_frame` is the number of cells of the largest frame at these ports.
fn settings(config: &PortConfig, shared: Option<u32>, largest_frame: u32, scope: &mut Scope<'_>) {
    let capacity = config.buffer.cells().or(shared);
    if let Some(cells) = config.buffer.cells() {
        if cells < largest_frame.max(1) {
            let problem =
                format!("is smaller than a frame; a buffer must hold at least {} cells", largest_frame.max(1));
            scope.at("buffer").refuse_value(cells, problem);
        } else if cells > MAX_BUFFER {
            let problem = format!("is more than {MAX_BUFFER} cells; for a buffer without limit write \"infinite\"");
            scope.at("buffer").refuse_value(cells, problem);
        }
    }
    let mut refuse = |kind: &str, name: &str, faults: Vec<Fault>| {
        let mut of_kind = scope.at(kind);
        let mut table = of_kind.at(name);
        // Formulas refer to each other. If a malformed formula was removed, other formulas would contain unknown names.
        if matches!(name, "formula" | "wfq_formula") && table.is_malformed() {
            return;
        }
        for fault in faults {
            table.refuse_setting(fault);
        }
    };
    refuse("policy", config.policy.name(), config.policy.check(capacity));
    if let Some(allocator) = &config.allocator {
        refuse("allocator", allocator.name(), allocator.check(capacity));
    }
    refuse("scheduler", config.scheduler.name(), config.scheduler.config().check());
    if let Some(marking) = &config.marking {
        check_marking(marking, config, shared, &mut scope.at("marking"));
    }
    let mut built = config.policy.build(Some(1), &[]);
    if built.head_policy().is_some() {
        by_time(config, scope);
    }
    let reason = match built.overflow() {
        Overflow::PushOutFront => Some("pushes out the first cell of a single queue"),
        _ if built.follower().is_some() => Some("emulates several queues on a single queue"),
        _ if config.policy.has_queues() => Some("has its own queues"),
        _ if built.head_policy().is_some() => Some("manages a single queue"),
        _ => None,
    };
    if let Some(reason) = reason.filter(|_| config.scheduler != SchedulerConfig::default()) {
        let problem = format!(
            "has several queues, and {} {reason}; choose another policy, or leave the scheduler out",
            config.policy.name()
        );
        scope.at("scheduler").at(config.scheduler.name()).refuse(problem);
    }
}

/// Checks the settings of a port whose policy depends on how long frames wait.
fn by_time(config: &PortConfig, scope: &mut Scope<'_>) {
    let marking = match config.policy {
        PolicyConfig::Formula(_) => {
            "decides about frames at the head of the queue, and cannot mark packets; remove the table marking, or leave \
             out on_head, drop_head, on_drop, on_send and on_period"
        }
        _ => "decides which packets are marked, so the table marking must be left out",
    };
    let others = [
        (config.marking.is_some(), marking),
        (config.allocator.is_some(), "needs a port without an allocator; choose another policy, or remove allocator"),
    ];
    for (_, problem) in others.into_iter().filter(|(is_used, _)| *is_used) {
        scope.at("policy").at(config.policy.name()).refuse(problem);
    }
}

/// Checks that a port has a shared buffer if and only if it belongs to a memory.
fn buffers(resolved: &ResolvedScenario<'_>, root: &mut Scope<'_>) {
    let ResolvedScenario { layout, tables, .. } = resolved;
    for (port, link) in layout.graph.links.iter_enumerated() {
        let Some((name, table)) = tables.ports[port] else { continue };
        let mut of_all = root.at("port");
        let mut scope = of_all.at(name);
        let mut scope = scope.at("buffer");
        match (resolved.memory_of(port), table.buffer) {
            (Some(memory), Buffer::Cells(_) | Buffer::Infinite(_)) => {
                let problem = format!(
                    "is the buffer of {}, which belongs to the memory {}; write \"shared\", or leave the port out of \
                     the memory",
                    link.name, memory.name
                );
                scope.once(|scope| match table.buffer {
                    Buffer::Cells(cells) => scope.refuse_value(cells, problem),
                    Buffer::Infinite(Infinite::Infinite) => scope.refuse_text("infinite", problem),
                    Buffer::Shared(Shared::Shared) => {}
                });
            }
            (None, Buffer::Shared(_)) if layout.graph.nodes[link.from].kind == NodeKind::Switch => {
                let switch = &layout.graph.nodes[link.from].name;
                let problem = format!(
                    "needs a memory, but {} belongs to no memory; write a number of cells, or a table \
                     [switch.{switch}.memory]",
                    link.name
                );
                scope.once(|scope| scope.refuse_text("shared", problem));
            }
            _ => {}
        }
    }
}

/// Checks that per-VC settings name existing VCs.
fn vcs(resolved: &ResolvedScenario<'_>, crossing: &TiSlice<LinkIndex, Vec<&str>>, root: &mut Scope<'_>) {
    let every_vc: BTreeSet<&str> = crossing.iter().flatten().copied().collect();
    let every_vc: Vec<String> = every_vc.into_iter().map(String::from).collect();
    for (name, config) in &resolved.scenario.port {
        for table in by_vc(config) {
            for &(key, setting) in &table.settings {
                for unknown in setting.unknown(&every_vc) {
                    let hint = did_you_mean(closest(unknown, every_vc.iter().map(String::as_str), root.token()));
                    let problem = format!(
                        "is not a VC; {hint}A VC has the name of its flow; the VC with the suffix -acks carries the \
                         acknowledgements"
                    );
                    let mut root = root.at("port");
                    let mut port = root.at(name);
                    let mut kind = port.at(table.kind);
                    table.in_table(&mut kind, |scope| scope.at(key).at(unknown).refuse(problem));
                }
            }
        }
    }
}

/// Settings of a port's policy or scheduler that have a value for each VC.
struct ByVc<'a> {
    /// Table to which the settings belong: `policy` or `scheduler`.
    kind: &'static str,
    name: &'static str,
    /// Name of the inner table that contains the settings; `None` if the main table contains them.
    inside: Option<&'static str>,
    settings: Vec<(&'a str, &'a PerVc)>,
}

impl ByVc<'_> {
    /// Calls `act` in the table that contains the settings. `kind` is the scope of the enclosing table.
    fn in_table<T>(&self, kind: &mut Scope<'_>, act: impl FnOnce(&mut Scope<'_>) -> T) -> T {
        let mut own = kind.at(self.name);
        match self.inside {
            Some(table) => act(&mut own.at(table)),
            None => act(&mut own),
        }
    }
}

fn by_vc(port: &PortConfig) -> [ByVc<'_>; 4] {
    let PortConfig { policy, scheduler, .. } = port;
    let constants = Some("constants");
    [
        ByVc { kind: "policy", name: policy.name(), inside: constants, settings: policy.constants_by_vc() },
        ByVc { kind: "policy", name: policy.name(), inside: None, settings: policy.settings().per_vc },
        ByVc {
            kind: "scheduler",
            name: scheduler.name(),
            inside: constants,
            settings: scheduler.config().constants_by_vc(),
        },
        ByVc { kind: "scheduler", name: scheduler.name(), inside: None, settings: scheduler.config().per_vc() },
    ]
}

pub(super) fn has_settings_by_vc(port: &PortConfig) -> bool {
    by_vc(port).iter().any(|table| !table.settings.is_empty())
}

/// Returns whether a port's settings depend on the number of VCs that cross it.
pub(super) fn counts_vcs(port: &PortConfig) -> bool {
    port.policy.counts_vcs() || port.scheduler.config().counts_vcs()
}

/// Checks that every VC that crosses a port has a value for each per-VC setting, and that the values are consistent.
fn of_vcs(config: &PortConfig, capacity: Option<u32>, link: &str, vcs: &[&str], port: &mut Scope<'_>) {
    let mut are_there = true;
    for table in by_vc(config) {
        let mut of_kind = port.at(table.kind);
        // If the table was refused, do not report faults that are consequences of the refusal.
        are_there &= !of_kind.at(table.name).is_malformed()
            && table.in_table(&mut of_kind, |scope| have_values(&table.settings, link, vcs, scope));
        if table.inside.is_some() || !std::mem::replace(&mut are_there, true) {
            continue;
        }
        let mut scope = of_kind.at(table.name);
        let told = match table.kind {
            "policy" => config.policy.check_vcs(capacity, vcs),
            _ => config.scheduler.config().check_vcs(vcs),
        };
        // Report a fault only once, because a table may apply to several ports.
        for fault in told {
            scope.refuse_setting_once(fault);
        }
    }
}

/// Checks that every VC that crosses a port has a value for each of these settings. Returns whether every value exists.
fn have_values(settings: &[(&str, &PerVc)], link: &str, vcs: &[&str], scope: &mut Scope<'_>) -> bool {
    let mut all = true;
    for (key, setting) in settings {
        let without: Vec<&str> = vcs.iter().copied().filter(|vc| setting.of(vc).is_none()).collect();
        let Some(first) = without.first() else { continue };
        all = false;
        let others = match without.len() {
            1 => String::new(),
            n => format!(" and {} more", n.saturating_sub(1)),
        };
        let problem = format!(
            "has no value for \"{first}\"{others}, which cross {link}; give each VC a value, or add the key \
                     default"
        );
        scope.at(key).once(|scope| scope.refuse(problem));
    }
    all
}

/// Checks that every port that needs a table has a table. `meant` contains the ports that misspelt tables probably
/// mean.
fn without_table(
    resolved: &ResolvedScenario<'_>,
    largest_frame: &TiSlice<LinkIndex, u32>,
    meant: &BTreeSet<&str>,
    root: &mut Scope<'_>,
) {
    let ResolvedScenario { scenario, layout, tables, .. } = resolved;
    let congests = resolved.congesting();
    let can_fill = resolved.can_fill();
    let has_own_name = scenario.topology.config().congests() == Congests::Everywhere;
    // A port may be in the memory of a refused or misspelt switch.
    if root.at("switch").is_faulty() {
        return;
    }
    for (index, link) in layout.graph.links.iter_enumerated() {
        let filled = can_fill.get(&index);
        let is_needed = largest_frame[index] > 0 && (congests[index] || filled.is_some());
        let leaves_a_switch = layout.graph.nodes[link.from].kind == NodeKind::Switch;
        let has_buffer = tables.ports[index].is_some() || resolved.memory_of(index).is_some();
        if has_buffer || !leaves_a_switch || !is_needed {
            continue;
        }
        let bottleneck = (index == layout.bottleneck).then_some("bottleneck");
        let shown = bottleneck.filter(|_| !has_own_name).unwrap_or(&link.name);
        let names = [Some(link.name.as_str()), bottleneck, Some("default")];
        let mut of_all = root.at("port");
        let mut scope = of_all.at(shown);
        // If the table of the port was refused or its name is misspelt, do not also report the table as missing.
        if scope.is_malformed() || names.into_iter().flatten().any(|name| meant.contains(name)) {
            continue;
        }
        scope.refuse(match filled.filter(|_| !congests[index]) {
            Some((comes, vc)) => format!(
                "has no table and no allocator, but carries the ABR VC {vc}: cells can arrive at up to {}, but leave \
                 at {}; write a table for this port, or [port.default] for all other ports, with an allocator ({})",
                BitRate::from_bits_per_second(*comes),
                link.rate,
                AllocatorConfig::NAMES.join(", ")
            ),
            None => {
                "has no buffer and no policy; write a table for this port, or [port.default] for all other ports".into()
            }
        });
    }
}
