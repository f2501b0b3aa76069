//! Ports: which there are, what their VCs share, their buffers, policies and schedulers.

use std::collections::{BTreeMap, BTreeSet};

use celltrain_core::abr::allocator::AllocatorConfig;
use celltrain_core::error::Fault;
use celltrain_core::network::{Link, NodeKind};
use celltrain_core::policy::{Overflow, PerVc};
use celltrain_core::scheduler::{Class, SchedulerConfig};
use celltrain_core::stop::Interrupted;
use celltrain_core::units::BitRate;

use super::traffic::frame_cells;
use super::{Laid, MAX_BUFFER, any, closest, hint, rate_control};
use crate::build;
use crate::document::join;
use crate::fault::KeyFault;
use crate::scenario::{PortConfig, Topology};

/// Every port that a VC crosses has a table, and every table names a port. The largest frame that crosses the ports of
/// each table, in cells.
pub(super) fn ports<'a>(laid: Laid<'a>, faults: &mut Vec<KeyFault>) -> Result<BTreeMap<&'a str, u32>, Interrupted> {
    let Laid { scenario, layout, refused, stop, .. } = laid;
    let mut largest_frame = vec![0; layout.graph.links.len()];
    for flow in &layout.flows {
        stop.steps_of([1, scenario.flow.len()])?;
        let [data_cells, ack_cells] = frame_cells(scenario, &flow.name);
        for (path, cells) in [(&flow.acks, ack_cells), (&flow.data, data_cells)] {
            for &link in path {
                largest_frame[link] = largest_frame[link].max(cells);
            }
        }
    }
    let settings = scenario.port.iter().flat_map(|(name, port)| by_vc(name, port)).flat_map(|(_, settings)| settings);
    let crossing = if settings.count() > 0 { crossing(laid)? } else { vec![Vec::new(); layout.graph.links.len()] };
    merging(laid, faults)?;
    classes(laid, faults)?;
    let from_switch = |link: &&Link| layout.graph.nodes[link.from].kind == NodeKind::Switch;
    let links = || layout.graph.links.iter().filter(from_switch).map(|link| link.name.as_str());
    let known: BTreeSet<&str> = ["bottleneck", "default"].into_iter().chain(links()).collect();
    let mut meant: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    for name in scenario.port.keys().map(String::as_str) {
        stop.step()?;
        if !known.contains(name) && !any(links(), |link| build::matches_link(name, link), stop)? {
            meant.insert(name, hint(name, known.iter().copied(), faults, stop)?);
        }
    }
    for (name, meant) in &meant {
        let hint = meant.map(|meant| format!("did you mean \"{meant}\"? ")).unwrap_or_default();
        let link = &layout.graph.links[layout.bottleneck].name;
        let problem = format!(
            "is not an output port of a switch; {hint}It must be bottleneck, default, or a link such as \"{link}\""
        );
        faults.push(KeyFault::of_key(join("port", name), problem));
    }
    let every_vc: BTreeSet<&String> = crossing.iter().flatten().collect();
    let every_vc: Vec<String> = every_vc.into_iter().cloned().collect();
    for (name, config) in &scenario.port {
        for (path, settings) in by_vc(name, config) {
            let unknown =
                |(key, setting): (&'static str, &'a PerVc)| setting.unknown(&every_vc).map(move |vc| (key, vc));
            for (key, unknown) in settings.into_iter().flat_map(unknown) {
                let hint = closest(unknown, every_vc.iter().map(String::as_str), stop)?;
                let hint = hint.map(|meant| format!("did you mean \"{meant}\"? ")).unwrap_or_default();
                let problem =
                    format!("names no VC; {hint}A VC has the name of its flow, its acknowledgements' ends in -acks");
                faults.push(KeyFault::of_key(join(&join(&path, key), unknown), problem));
            }
        }
    }
    let congests = congesting(laid)?;
    let can_fill = rate_control::can_fill(laid)?;
    let is_general = matches!(scenario.topology, Topology::Network(_));
    let mut used: BTreeMap<&str, u32> = BTreeMap::new();
    for (index, link) in layout.graph.links.iter().enumerate().filter(|(_, link)| from_switch(link)) {
        stop.steps_of([1, scenario.port.len(), crossing[index].len()])?;
        let is_bottleneck = index == layout.bottleneck;
        let bottleneck = is_bottleneck.then_some("bottleneck");
        let names = [Some(link.name.as_str()), bottleneck, Some("default")];
        if let Some((name, config)) = build::port_of(scenario, &link.name, is_bottleneck) {
            let frame = used.entry(name).or_insert(0);
            *frame = (*frame).max(largest_frame[index]);
            // What was refused has been told of; what it leaves behind is no fault of its own.
            let crossing = &crossing[index];
            for ((path, settings), is_policy) in by_vc(name, config).into_iter().zip([true, false]) {
                let is_whole = refused.iter().all(|fault| !fault.key.starts_with(&path));
                let all = is_whole && per_vc(&path, settings, &link.name, crossing, faults);
                if all {
                    let vcs: Vec<&str> = crossing.iter().map(String::as_str).collect();
                    let told = if is_policy {
                        config.policy.check_vcs(config.buffer.cells(), &vcs)
                    } else {
                        config.scheduler.check_vcs(&vcs)
                    };
                    together(&path, told, faults);
                }
            }
            continue;
        }
        let filled = can_fill.get(&index);
        if largest_frame[index] == 0 || !(congests[index] || filled.is_some()) {
            continue;
        }
        let shown = if is_bottleneck && !is_general { "bottleneck" } else { &link.name };
        let path = join("port", shown);
        // A table that was refused, or whose name was misspelt, is not missing as well.
        let is_misspelt = names.into_iter().flatten().any(|name| meant.values().any(|meant| *meant == Some(name)));
        if !is_misspelt && !refused.iter().any(|fault| fault.key.starts_with(&path)) {
            let problem = match filled.filter(|_| !congests[index]) {
                Some((comes, vc)) => format!(
                    "has no table and no allocator, and carries the ABR VC {vc}: up to {} can come to its {}; write its table, \
                     or [port.default] for all others, with an allocator ({})",
                    BitRate::from_bits_per_second(*comes),
                    link.rate,
                    AllocatorConfig::NAMES.join(", ")
                ),
                None => "has no buffer and no policy; write its table, or [port.default] for all others".into(),
            };
            faults.push(KeyFault::of_key(path, problem));
        }
    }
    Ok(used)
}

/// The ports that need a table, by link: all of a general network, of the others those that may come to be the bottleneck of
/// several connections.
#[expect(clippy::arithmetic_side_effects, reason = "counts of flows in memory, of which a network has 10^7 at most")]
fn congesting(laid: Laid<'_>) -> Result<Vec<bool>, Interrupted> {
    let Laid { scenario, layout, stop, .. } = laid;
    let links = layout.graph.links.len();
    Ok(match scenario.topology {
        Topology::Network(_) => vec![true; links],
        Topology::Chain(_) | Topology::Star(_) => {
            let mut crossing = vec![0u32; links];
            for flow in stop.each(&layout.flows) {
                for &link in &flow?.data {
                    crossing[link] += 1;
                }
            }
            (0..links).map(|link| link == layout.bottleneck || crossing[link] > 1).collect()
        }
        Topology::NSource(_) | Topology::VcMerge(_) | Topology::Internetwork(_) => {
            (0..links).map(|link| link == layout.bottleneck).collect()
        }
    })
}

/// The names of the VCs that cross each link.
fn crossing(laid: Laid<'_>) -> Result<Vec<Vec<String>>, Interrupted> {
    let Laid { layout, channels, stop, .. } = laid;
    let mut crossing: Vec<Vec<String>> = vec![Vec::new(); layout.graph.links.len()];
    let mut merged = BTreeSet::new();
    for vc in &channels.vcs {
        stop.steps(vc.path.len())?;
        let merge = vc.merge.map(|merge| &channels.merges[merge]);
        let mut name = &vc.name;
        for &link in &vc.path {
            // Only what has merged comes by more than once.
            if name == &vc.name || merged.insert((link, vc.merge)) {
                crossing[link].push(name.clone());
            }
            if let Some(merge) = merge.filter(|merge| merge.at == link) {
                name = &merge.name;
            }
        }
    }
    Ok(crossing)
}

/// A port where VCs merge keeps frames whole, so its policy must not take cells out of them.
fn merging(laid: Laid<'_>, faults: &mut Vec<KeyFault>) -> Result<(), Interrupted> {
    let Laid { scenario, layout, channels, stop, .. } = laid;
    for merge in &channels.merges {
        stop.steps_of([1, scenario.port.len()])?;
        let link = &layout.graph.links[merge.at].name;
        let Some((name, port)) = build::port_of(scenario, link, merge.at == layout.bottleneck) else { continue };
        if port.scheduler != SchedulerConfig::default() {
            let problem = format!("has queues of its own, and {link} merges VCs into one queue; leave it out there");
            let key = join(&join(&join("port", name), "scheduler"), port.scheduler.name());
            if !faults.iter().any(|fault| fault.key == key) {
                faults.push(KeyFault::of_key(key, problem));
            }
        }
        let policy = port.policy.build(Some(1), &[]);
        let reason = match policy.overflow() {
            Overflow::PushOutFront => Some("takes cells out of waiting frames"),
            _ if policy.follows_cells() => Some("follows cells through the queue one by one"),
            _ => None,
        };
        if let Some(reason) = reason {
            let problem = format!("{reason}, and {link} merges VCs, whose frames leave whole; choose another policy");
            let key = join(&join(&join("port", name), "policy"), port.policy.name());
            if !faults.iter().any(|fault| fault.key == key) {
                faults.push(KeyFault::of_key(key, problem));
            }
        }
    }
    Ok(())
}

/// A scheduler by class has classes to tell apart, at one at least of the ports its table stands for.
fn classes(laid: Laid<'_>, faults: &mut Vec<KeyFault>) -> Result<(), Interrupted> {
    let Laid { scenario, layout, channels, stop, .. } = laid;
    if !scenario.port.values().any(|port| port.scheduler.by_class()) {
        return Ok(());
    }
    let mut crossing: Vec<BTreeSet<Class>> = vec![BTreeSet::new(); layout.graph.links.len()];
    for vc in &channels.vcs {
        stop.steps_of([vc.path.len(), scenario.vc.len()])?;
        let class = build::vc_options(scenario, &vc.name).map(|own| own.class).unwrap_or_default();
        for &link in &vc.path {
            crossing[link].insert(class);
        }
    }
    let mut with_abr = vec![(false, false); layout.graph.links.len()];
    for &[data_vc, ack_vc] in &channels.of_flow {
        stop.steps_of([1, scenario.vc.len()])?;
        let is_abr = build::vc_options(scenario, &channels.vcs[data_vc].name).is_some_and(|own| own.abr.is_some());
        for &link in channels.vcs[data_vc].path.iter().chain(&channels.vcs[ack_vc].path) {
            let (some, others) = &mut with_abr[link];
            *if is_abr { some } else { others } = true;
        }
    }
    // Of each table: a port it stands for, and whether several classes cross one.
    let mut tables: BTreeMap<&str, (usize, bool)> = BTreeMap::new();
    for (index, link) in layout.graph.links.iter().enumerate() {
        if layout.graph.nodes[link.from].kind != NodeKind::Switch || crossing[index].is_empty() {
            continue;
        }
        stop.steps_of([1, scenario.port.len()])?;
        let port = build::port_of(scenario, &link.name, index == layout.bottleneck);
        if let Some((name, _)) = port.filter(|(_, port)| port.scheduler.by_class()) {
            tables.entry(name).or_insert((index, false)).1 |= crossing[index].len() > 1;
        }
    }
    for (name, (index, _)) in tables.into_iter().filter(|(_, (_, several))| !several) {
        let all = crossing[index].first().copied().unwrap_or_default();
        let other = if all == Class::Ubr { Class::Vbr } else { Class::Ubr };
        let (as_abr, table) = match with_abr[index] {
            (false, _) => ("", Some("a [vc.NAME] table")),
            (true, true) => (", as ABR VCs are", Some("the [vc.NAME] table of one without ABR")),
            (true, false) => (", as ABR VCs are", None),
        };
        let write = table.map(|table| format!("write class = \"{}\" into {table}, or ", other.name()));
        let problem = format!(
            "has nothing to tell apart: every VC that crosses {} is of class {}{as_abr}; {}leave the scheduler out",
            layout.graph.links[index].name,
            all.name(),
            write.unwrap_or_default()
        );
        let scheduler = scenario.port[name].scheduler.name();
        faults.push(KeyFault::of_key(join(&join(&join("port", name), "scheduler"), scheduler), problem));
    }
    Ok(())
}

/// The settings of a port that may differ from VC to VC, by key, and where the tables they stand in are.
fn by_vc<'a>(port: &str, config: &'a PortConfig) -> [(String, Vec<(&'static str, &'a PerVc)>); 2] {
    let table = |kind: &str, name: &str| join(&join(&join("port", port), kind), name);
    [
        (table("policy", config.policy.name()), config.policy.per_vc()),
        (table("scheduler", config.scheduler.name()), config.scheduler.per_vc()),
    ]
}

/// Whether every VC that crosses a port has a value for each of these settings of the table at `path`.
fn per_vc(
    path: &str,
    settings: Vec<(&'static str, &PerVc)>,
    link: &str,
    crossing: &[String],
    faults: &mut Vec<KeyFault>,
) -> bool {
    let mut all = true;
    for (key, setting) in settings {
        let without: Vec<&str> = crossing.iter().map(String::as_str).filter(|vc| setting.of(vc).is_none()).collect();
        let Some(first) = without.first() else { continue };
        all = false;
        let others = match without.len() {
            1 => String::new(),
            n => format!(" and {} more", n.saturating_sub(1)),
        };
        let problem = format!("has no value for \"{first}\"{others}, which cross {link}; name them, or write default");
        let path = join(path, key);
        if !faults.iter().any(|fault| fault.key == path) {
            faults.push(KeyFault::of_key(path, problem));
        }
    }
    all
}

/// The settings of the VCs that cross a port do not make sense together. A table for several ports is told of once.
fn together(table: &str, told: Vec<Fault>, faults: &mut Vec<KeyFault>) {
    for fault in told {
        let key = below(table, &fault.key);
        if !faults.iter().any(|fault| fault.key == key) {
            faults.push(KeyFault::of_value(key, fault.value, fault.problem));
        }
    }
}

/// The path of a key that may lead to a value inside a setting, such as `thresholds.tcp1`.
fn below(path: &str, key: &str) -> String {
    key.splitn(2, '.').fold(path.to_string(), |path, key| join(&path, key))
}

pub(super) fn port(path: &str, config: &PortConfig, largest_frame: u32, faults: &mut Vec<KeyFault>) {
    let capacity = config.buffer.cells();
    if let Some(cells) = capacity {
        let key = join(path, "buffer");
        if cells < largest_frame.max(1) {
            let problem = format!("is smaller than a frame; a buffer holds at least {} cells", largest_frame.max(1));
            faults.push(KeyFault::of_value(key, cells, problem));
        } else if cells > MAX_BUFFER {
            let problem = format!("is more than {MAX_BUFFER} cells; for a buffer without limit write \"infinite\"");
            faults.push(KeyFault::of_value(key, cells, problem));
        }
    }
    let policy = join(&join(path, "policy"), config.policy.name());
    for fault in config.policy.check(capacity) {
        faults.push(KeyFault::of_value(below(&policy, &fault.key), fault.value, fault.problem));
    }
    if let Some(allocator) = &config.allocator {
        let path = join(&join(path, "allocator"), allocator.name());
        for fault in allocator.check(capacity) {
            faults.push(KeyFault::of_value(below(&path, &fault.key), fault.value, fault.problem));
        }
    }
    let scheduler = join(&join(path, "scheduler"), config.scheduler.name());
    for fault in config.scheduler.check() {
        faults.push(KeyFault::of_value(below(&scheduler, &fault.key), fault.value, fault.problem));
    }
    let built = config.policy.build(Some(1), &[]);
    let reason = match built.overflow() {
        Overflow::PushOutFront => Some("pushes out the cell that is first in the only one"),
        _ if built.follows_cells() => Some("emulates queues on the only one"),
        _ => None,
    };
    if let Some(reason) = reason.filter(|_| config.scheduler != SchedulerConfig::default()) {
        let problem = format!(
            "has several queues, and {} {reason}; choose another policy, or leave the scheduler out",
            config.policy.name()
        );
        faults.push(KeyFault::of_key(scheduler, problem));
    }
}
