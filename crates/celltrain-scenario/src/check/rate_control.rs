//! ABR VCs and edge devices: every loop can be closed, every buffer holds a packet.

use std::collections::{BTreeMap, BTreeSet};

use celltrain_core::abr::allocator::AllocatorConfig;
use celltrain_core::error::Fault;
use celltrain_core::network::{NodeKind, Vc, atm_part};
use celltrain_core::scheduler::Class;
use celltrain_core::stop::Interrupted;

use super::contracts::meant_vcs;
use super::traffic::frame_cells;
use super::{Laid, closest, quoted};
use crate::build::{self, Layout};
use crate::document::join;
use crate::fault::KeyFault;
use crate::scenario::Scenario;

/// Checks the `abr` tables of VCs; what their sources are promised is added to `promised`, by link, in bits per second.
pub(super) fn abr(
    laid: Laid<'_>,
    promised: &mut BTreeMap<usize, u64>,
    faults: &mut Vec<KeyFault>,
) -> Result<(), Interrupted> {
    let Laid { scenario, layout, channels, refused, stop } = laid;
    // Of each VC of data: that of its acknowledgements.
    let way_back: BTreeMap<usize, usize> =
        channels.of_flow.iter().map(|&[data_vc, ack_vc]| (data_vc, ack_vc)).collect();
    let links = &layout.graph.links;
    for (key, options) in &scenario.vc {
        let Some(parameters) = &options.abr else { continue };
        let path = join(&join("vc", key), "abr");
        let mut found: Vec<Fault> = Vec::new();
        let mut of_table: Vec<KeyFault> = Vec::new();
        let mut once = |fault: KeyFault| {
            if !of_table.iter().any(|other| other.key == fault.key) {
                of_table.push(fault);
            }
        };
        for number in meant_vcs(laid, key)? {
            stop.steps_of([1, scenario.vc.len(), scenario.port.len()])?;
            let vc = &channels.vcs[number];
            let Some(&ack_vc) = way_back.get(&number) else {
                let flow = vc.name.trim_end_matches("-acks");
                let problem = format!("is for both directions: write it for the VC of the data, [vc.{flow}.abr]");
                once(KeyFault::of_key(&path, problem));
                continue;
            };
            if vc.merge.is_some() {
                once(KeyFault::of_key(
                    &path,
                    "controls the rate of a VC that merges with others; a loop has one source",
                ));
                continue;
            }
            for vc in [vc, &channels.vcs[ack_vc]] {
                let own = build::vc_table(scenario, &vc.name).map(|(table, own)| (join("vc", table), own));
                // A table that takes the VC out of this one has had its fault.
                if let Some((table, own)) = own.filter(|(table, _)| !faults.iter().any(|told| told.key == *table)) {
                    if own.gfr.is_some() {
                        let problem = format!(
                            "does not go with [vc.{key}.abr]; a VC has one service, a guaranteed frame rate or ABR"
                        );
                        once(KeyFault::of_key(join(&table, "gfr"), problem));
                    }
                    if own.tagged {
                        let problem = format!(
                            "does not go with [vc.{key}.abr]: cells in rate have CLP = 0 (TM 4.0, source rule 4); leave it out"
                        );
                        once(KeyFault::of_value(join(&table, "tagged"), "true", problem));
                    }
                    if own.class != Class::default() {
                        let problem = format!(
                            "does not go with [vc.{key}.abr]: a VC has one service, and schedulers by class serve ABR with {}; \
                             leave it out",
                            Class::default().name()
                        );
                        once(KeyFault::of_value(join(&table, "class"), quoted(own.class.name()), problem));
                    }
                }
                let part = atm_part(&layout.graph.nodes, links, &vc.path);
                let wrong = parameters.check(links[vc.path[part.start]].rate);
                // A rate that cannot be promised has had its fault.
                let mcr = if wrong.iter().any(|fault| fault.key == "mcr") { 0 } else { parameters.mcr.bits_per_second };
                for fault in wrong {
                    if !found.iter().any(|other| other.key == fault.key) {
                        found.push(fault);
                    }
                }
                for &link in &vc.path[part] {
                    let sum = promised.entry(link).or_insert(0);
                    *sum = sum.saturating_add(mcr);
                }
                for fault in without_allocator(scenario, layout, vc) {
                    // An allocator that was refused, or misspelt, is not missing as well.
                    let is_told = |other: &KeyFault| other.key.starts_with(&fault.key);
                    if !faults.iter().chain(refused).any(is_told) {
                        faults.push(fault);
                    }
                }
            }
        }
        faults.extend(of_table);
        let of_value = |fault: Fault| KeyFault::of_value(join(&path, &fault.key), fault.value, fault.problem);
        faults.extend(found.into_iter().map(of_value));
    }
    Ok(())
}

/// The ports with a table of their own that an ABR VC crosses without hearing from them.
fn without_allocator(scenario: &Scenario, layout: &Layout, vc: &Vc) -> Vec<KeyFault> {
    let one = |&link: &usize| {
        let of_switch = layout.graph.nodes[layout.graph.links[link].from].kind == NodeKind::Switch;
        let name = &layout.graph.links[link].name;
        let (table, port) = build::port_of(scenario, name, link == layout.bottleneck).filter(|_| of_switch)?;
        let problem = format!(
            "is missing, and {name} carries the ABR VC {}; write which allocator tells its source the rate: {}",
            vc.name,
            AllocatorConfig::NAMES.join(", ")
        );
        port.allocator.is_none().then(|| KeyFault::of_key(join(&join("port", table), "allocator"), problem))
    };
    vc.path.iter().filter_map(one).collect()
}

/// The switches' ports that ABR VCs can fill, by link, and what can come there in bits per second, with the name of one of those
/// VCs. Each carries data, and the VCs that cross it can bring more than it takes for as long as they like. A VC brings no more
/// than the slowest link before the port, nor than its PCR; those that come over one link bring no more than that.
pub(super) fn can_fill(laid: Laid<'_>) -> Result<BTreeMap<usize, (u64, String)>, Interrupted> {
    #[derive(Default)]
    struct Port {
        by_link: BTreeMap<usize, u64>,
        has_data: bool,
        abr: Option<String>,
    }

    let Laid { scenario, layout, channels, stop, .. } = laid;
    if scenario.vc.values().all(|own| own.abr.is_none()) {
        return Ok(BTreeMap::new());
    }
    let links = &layout.graph.links;
    let mut ports: BTreeMap<usize, Port> = BTreeMap::new();
    let ways = channels.of_flow.iter().flat_map(|&[data, acks]| [(data, data, true), (acks, data, false)]);
    // A VC of several flows comes once.
    for (vc, data_vc, is_data) in ways.collect::<BTreeSet<_>>() {
        stop.steps_of([channels.vcs[vc].path.len(), scenario.vc.len()])?;
        let abr = build::vc_options(scenario, &channels.vcs[data_vc].name).and_then(|own| own.abr.as_ref());
        let mut most = abr.and_then(|abr| abr.pcr).map_or(u64::MAX, |pcr| pcr.bits_per_second);
        for hop in channels.vcs[vc].path.windows(2) {
            most = most.min(links[hop[0]].rate.bits_per_second);
            if layout.graph.nodes[links[hop[1]].from].kind == NodeKind::Switch {
                let port = ports.entry(hop[1]).or_default();
                let sum = port.by_link.entry(hop[0]).or_insert(0);
                *sum = sum.saturating_add(most);
                port.has_data |= is_data;
                port.abr = port.abr.take().or_else(|| abr.map(|_| channels.vcs[vc].name.clone()));
            }
        }
    }
    let filled = |(link, port): (usize, Port)| {
        let each = port.by_link.iter().map(|(&from, &sum)| sum.min(links[from].rate.bits_per_second));
        let comes = each.fold(0, u64::saturating_add);
        let vc = port.abr.filter(|_| port.has_data && comes > links[link].rate.bits_per_second)?;
        Some((link, (comes, vc)))
    };
    Ok(ports.into_iter().filter_map(filled).collect())
}

/// Checks the tables of edge devices: each stands for one, each device has one, each buffer holds the longest packet.
pub(super) fn edges(laid: Laid<'_>, faults: &mut Vec<KeyFault>) -> Result<(), Interrupted> {
    let Laid { scenario, layout, stop, .. } = laid;
    let devices = || layout.graph.nodes.iter().filter(|node| node.kind == NodeKind::EdgeDevice);
    for (key, config) in &scenario.edge {
        let path = join("edge", key);
        stop.steps_of([1, layout.graph.nodes.len() / 8])?;
        if !devices().any(|device| build::matches_link(key, &device.name)) {
            let hint = closest(key, devices().map(|device| device.name.as_str()), stop)?;
            let hint = hint.map_or("write".to_string(), |meant| format!("did you mean \"{meant}\"? Write"));
            let example = match devices().next() {
                Some(device) => {
                    format!("{hint} a device's name such as \"{}\", or a pattern such as \"*\"", device.name)
                }
                None => format!("the topology {} has none", scenario.topology.name()),
            };
            faults.push(KeyFault::of_key(&path, format!("is not an edge device; {example}")));
        }
        for fault in config.check(longest_packet(laid, key)?) {
            let key = fault.key.split('.').fold(path.clone(), |path, key| join(&path, key));
            faults.push(KeyFault::of_value(key, fault.value, fault.problem));
        }
    }
    if let Some(device) = devices().find(|device| build::edge_of(scenario, &device.name).is_none()) {
        let problem =
            format!("has no table for the edge device \"{}\"; write [edge.\"*\"] with its buffer", device.name);
        faults.push(KeyFault::of_key("edge", problem));
    }
    Ok(())
}

/// Cells of the longest packet that comes to the devices a table is for.
fn longest_packet(laid: Laid<'_>, table: &str) -> Result<u32, Interrupted> {
    let Laid { scenario, layout, stop, .. } = laid;
    let mut longest = 1;
    for flow in &layout.flows {
        stop.steps_of([1, scenario.flow.len()])?;
        for (path, cells) in [&flow.data, &flow.acks].into_iter().zip(frame_cells(scenario, &flow.name)) {
            let first = &layout.graph.nodes[layout.graph.links[path[0]].to];
            if first.kind == NodeKind::EdgeDevice && build::matches_link(table, &first.name) {
                longest = longest.max(cells);
            }
        }
    }
    Ok(longest)
}

/// An edge device stands between a host and the ATM network.
pub(super) fn paths(laid: Laid<'_>, faults: &mut Vec<KeyFault>) -> Result<(), Interrupted> {
    let Laid { layout, stop, .. } = laid;
    for (i, flow) in layout.flows.iter().enumerate() {
        stop.step()?;
        let Some((_, behind)) = flow.data.split_first() else { continue };
        let kind = |node: usize| layout.graph.nodes[node].kind;
        let inner: Vec<usize> = behind.iter().map(|&link| layout.graph.links[link].from).collect();
        let misplaced = |&(j, &node): &(usize, &usize)| {
            kind(node) == NodeKind::EdgeDevice && (inner.len() == 1 || !(j == 0 || j.saturating_add(1) == inner.len()))
        };
        if let Some((_, &node)) = inner.iter().enumerate().find(misplaced) {
            let problem = format!(
                "crosses the edge device \"{}\" in its middle; one is next to a host, with a switch or another edge device \
                 behind it",
                layout.graph.nodes[node].name
            );
            faults.push(KeyFault::of_key(format!("topology.network.flows[{i}]"), problem));
        }
    }
    Ok(())
}
