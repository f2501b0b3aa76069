//! Checks of VCs: their tables, their contracts, their ABR control loops, and the rates that links guarantee to VCs.

use std::collections::BTreeMap;

use celltrain_core::aal5::Framing;
use celltrain_core::abr::Parameters;
use celltrain_core::abr::allocator::AllocatorConfig;
use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::gfr::Gfr;
use celltrain_core::index::{LinkIndex, VcIndex};
use celltrain_core::network::atm_part;
use celltrain_core::scheduler::Class;
use celltrain_core::units::BitRate;
use celltrain_formula::names::{is_in_range, range};
use typed_index_collections::{TiVec, ti_vec};

use super::settings::refuse_key;
use crate::hints::{closest, did_you_mean};
use crate::resolved::ResolvedScenario;
use crate::scenario::VcOptions;
use crate::scope::Scope;

/// For each link, the sum of the bits per second guaranteed to its VCs.
type Promised = BTreeMap<LinkIndex, u64>;

/// Checks that every VC table names a VC, that contracts and ABR control loops are possible, and that no link
/// guarantees more than its rate.
pub(super) fn check(resolved: &ResolvedScenario<'_>, root: &mut Scope<'_>) -> Result<(), Interrupted> {
    if !resolved.scenario.vc.is_empty() {
        tables(resolved, root, root.token())?;
    }
    merging(resolved, root);
    Ok(())
}

fn tables(
    resolved: &ResolvedScenario<'_>,
    root: &mut Scope<'_>,
    token: &CancellationToken<'_>,
) -> Result<(), Interrupted> {
    let ResolvedScenario { scenario, layout, channels, .. } = resolved;
    let mut promised = Promised::new();
    for (key, options) in &scenario.vc {
        let vcs = meant(resolved, key, token)?;
        if vcs.is_empty() {
            let names = channels.vcs.iter().map(|vc| vc.name.as_str());
            let hint = did_you_mean(closest(key, names, token));
            let problem = format!(
                "is not a VC; {hint}A VC has the name of its flow; the VC with the suffix -acks carries the acknowledgements"
            );
            root.at("vc").at(key).refuse(problem);
        }
        let Some(gfr) = &options.gfr else { continue };
        for &vc in &vcs {
            contract(resolved, gfr, vc, resolved.frames[vc], &mut promised, &mut root.at("vc").at(key).at("gfr"));
        }
    }
    taken_out(resolved, root, token)?;
    loops(resolved, &mut promised, root, token)?;
    let more = |&(&link, &sum): &(&LinkIndex, &u64)| sum > layout.graph.links[link].rate.bits_per_second;
    if let Some((&link, &sum)) = promised.iter().rev().filter(more).max_by_key(|&(_, &sum)| sum) {
        let link = &layout.graph.links[link];
        let problem = format!(
            "guarantees {} to VCs on {}, which has only {}; the sum of mcr must not exceed this rate",
            BitRate::from_bits_per_second(sum),
            link.name,
            link.rate
        );
        root.at("vc").refuse(problem);
    }
    Ok(())
}

/// Returns the VCs to which the table `key` applies.
fn meant(
    resolved: &ResolvedScenario<'_>,
    key: &str,
    token: &CancellationToken<'_>,
) -> Result<Vec<VcIndex>, Interrupted> {
    let mut vcs = Vec::new();
    for ((number, vc), table) in resolved.channels.vcs.iter_enumerated().zip(&resolved.tables.vcs) {
        token.tick(1)?;
        let has_its_own = table.is_some_and(|(table, _)| table == vc.name);
        if vc.name == key || (!has_its_own && is_in_range(key, &vc.name)) {
            vcs.push(number);
        }
    }
    Ok(vcs)
}

/// Checks that the network can guarantee a VC's frame rate where the VC enters the network.
fn contract(
    resolved: &ResolvedScenario<'_>,
    gfr: &Gfr,
    vc: VcIndex,
    longest_frame: u32,
    promised: &mut Promised,
    scope: &mut Scope<'_>,
) {
    let graph = &resolved.layout.graph;
    let path = &resolved.channels.vcs[vc].path;
    let first = path[atm_part(&graph.nodes, &graph.links, path).start];
    for fault in gfr.check(graph.links[first].rate, longest_frame) {
        scope.refuse_setting_once(fault);
    }
    promise(promised, path, gfr.mcr.bits_per_second);
}

fn promise(promised: &mut Promised, links: &[LinkIndex], rate: u64) {
    for &link in links {
        let sum = promised.entry(link).or_insert(0);
        *sum = sum.saturating_add(rate);
    }
}

/// Refuses a table that gives a VC neither ABR nor a guaranteed frame rate, if the VC also belongs to the range of a
/// table with one of these services. Only one table applies to a VC, so the VC would lose the service without notice.
fn taken_out(
    resolved: &ResolvedScenario<'_>,
    root: &mut Scope<'_>,
    token: &CancellationToken<'_>,
) -> Result<(), Interrupted> {
    let ResolvedScenario { scenario, channels, tables, .. } = resolved;
    let service = |own: &VcOptions| match (&own.abr, &own.gfr) {
        (Some(_), _) => Some("abr"),
        (None, Some(_)) => Some("gfr"),
        (None, None) => None,
    };
    let with_service = scenario.vc.iter().filter_map(|(key, own)| Some((key, service(own)?)));
    let ranges: Vec<(&String, &str)> = with_service.filter(|(key, _)| range(key).is_some()).collect();
    let mut of_all = root.at("vc");
    for (vc, table) in channels.vcs.iter().map(|vc| &vc.name).zip(&tables.vcs) {
        token.tick(ranges.len().saturating_add(1))?;
        let Some((table, _)) = table.filter(|(_, own)| service(own).is_none()) else { continue };
        let Some((all, service)) = ranges.iter().find(|(key, _)| is_in_range(key, vc)) else { continue };
        let mut scope = of_all.at(table);
        if !scope.is_faulty() {
            let problem = format!(
                "takes {vc} out of [vc.{all}.{service}]: a VC uses only one table: the one with its name, or else \
                 the first matching range; write [vc.{table}.{service}] too, or leave {vc} out of the range"
            );
            scope.refuse(problem);
        }
    }
    Ok(())
}

/// Checks the `abr` tables. Every ABR control loop needs a VC in each direction.
fn loops(
    resolved: &ResolvedScenario<'_>,
    promised: &mut Promised,
    root: &mut Scope<'_>,
    token: &CancellationToken<'_>,
) -> Result<(), Interrupted> {
    let ResolvedScenario { scenario, channels, .. } = resolved;
    if scenario.vc.values().all(|own| own.abr.is_none()) {
        return Ok(());
    }
    // For each data VC, the VC of its acknowledgements.
    let mut way_back: TiVec<VcIndex, Option<VcIndex>> = ti_vec![None; channels.vcs.len()];
    for &[data_vc, ack_vc] in &channels.of_flow {
        way_back[data_vc] = Some(ack_vc);
    }
    for (key, options) in &scenario.vc {
        let Some(parameters) = &options.abr else { continue };
        for number in meant(resolved, key, token)? {
            let vc = &channels.vcs[number];
            let mut of_all = root.at("vc");
            let mut table = of_all.at(key);
            let mut scope = table.at("abr");
            if resolved.requests.pairs.iter().any(|pair| pair.vcs.contains(&number)) {
                let problem = "controls the rate of a VC of requests, which many connections share; leave it out";
                scope.once(|scope| scope.refuse(problem));
                continue;
            }
            let Some(ack_vc) = way_back[number] else {
                let flow = vc.name.trim_end_matches("-acks");
                let problem = format!(
                    "is not necessary: the table of the VC of the data controls both directions; write \
                             [vc.{flow}.abr]"
                );
                scope.once(|scope| scope.refuse(problem));
                continue;
            };
            if vc.merge.is_some() {
                let problem = "controls the rate of a VC that merges with other VCs; a control loop has only one \
                               source";
                scope.once(|scope| scope.refuse(problem));
                continue;
            }
            for vc in [number, ack_vc] {
                one_way(resolved, (key, parameters), vc, promised, root);
            }
        }
    }
    Ok(())
}

/// Checks one direction of an ABR control loop with the parameters in the table `key`.
fn one_way(
    resolved: &ResolvedScenario<'_>,
    (key, parameters): (&str, &Parameters),
    vc: VcIndex,
    promised: &mut Promised,
    root: &mut Scope<'_>,
) {
    let graph = &resolved.layout.graph;
    if let Some((table, own)) = resolved.tables.vcs[vc] {
        let mut of_all = root.at("vc");
        let mut scope = of_all.at(table);
        // If `table` applies to the VC instead of the table `key`, this fault has already been reported.
        if !scope.is_refused() {
            without_another_service(key, own, &mut scope);
        }
    }
    let path = &resolved.channels.vcs[vc].path;
    let part = atm_part(&graph.nodes, &graph.links, path);
    let wrong = parameters.check(graph.links[path[part.start]].rate);
    // A faulty rate does not count in the sum of guaranteed rates.
    let mcr = if wrong.iter().any(|fault| fault.key == "mcr") { 0 } else { parameters.mcr.bits_per_second };
    for fault in wrong {
        root.at("vc").at(key).at("abr").refuse_setting_once(fault);
    }
    promise(promised, &path[part], mcr);
    with_allocators(resolved, vc, root);
}

/// Checks that an ABR VC uses no other service.
fn without_another_service(key: &str, own: &VcOptions, scope: &mut Scope<'_>) {
    if own.gfr.is_some() {
        let problem = format!(
            "cannot be combined with [vc.{key}.abr]; a VC has only one service: a guaranteed frame rate or \
                     ABR"
        );
        scope.at("gfr").once(|scope| scope.refuse(problem));
    }
    if own.tagged {
        let problem = format!(
            "cannot be combined with [vc.{key}.abr]: cells in rate have CLP = 0 (TM 4.0, source rule 4); leave it out"
        );
        scope.at("tagged").once(|scope| scope.refuse_value(true, problem));
    }
    if own.class != Class::default() {
        let problem = format!(
            "cannot be combined with [vc.{key}.abr]: a VC has one service, and schedulers by class serve ABR with {}; leave it out",
            Class::default().name()
        );
        scope.at("class").once(|scope| scope.refuse_text(own.class.name(), problem));
    }
}

/// Checks that all ports with a table on the path of an ABR VC have an allocator, since each port must set the rate of
/// the VC.
fn with_allocators(resolved: &ResolvedScenario<'_>, vc: VcIndex, root: &mut Scope<'_>) {
    let vc = &resolved.channels.vcs[vc];
    for &link in &vc.path {
        let Some((table, _)) = resolved.tables.ports[link].filter(|(_, port)| port.allocator.is_none()) else {
            continue;
        };
        let mut of_all = root.at("port");
        let mut port = of_all.at(table);
        let mut scope = port.at("allocator");
        // If the allocator was refused or is misspelt, do not also report the allocator as missing.
        if !scope.is_faulty() {
            let problem = format!(
                "is missing, but {} carries the ABR VC {}; choose the allocator that sets the rate of its source: {}",
                resolved.layout.graph.links[link].name,
                vc.name,
                AllocatorConfig::NAMES.join(", ")
            );
            scope.refuse(problem);
        }
    }
}

/// Checks that no VCs merge with packet framing.
fn merging(resolved: &ResolvedScenario<'_>, root: &mut Scope<'_>) {
    let ResolvedScenario { scenario, channels, .. } = resolved;
    if scenario.framing().framing == Framing::Packets
        && let Some(merge) = channels.merges.first()
    {
        let problem = format!("is not possible with merging VCs such as {}, which need AAL5", merge.name);
        refuse_key(scenario, root, &problem);
    }
}
