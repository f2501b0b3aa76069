//! Contracts: which VCs they are for, and what they promise of the links.

use std::collections::BTreeMap;

use celltrain_core::error::Fault;
use celltrain_core::names::{is_in_range, number_in_range, range};
use celltrain_core::network::atm_part;
use celltrain_core::stop::Interrupted;
use celltrain_core::units::BitRate;

use super::traffic::frame_cells;
use super::{Laid, closest, rate_control};
use crate::build;
use crate::document::join;
use crate::fault::{KeyFault, Warning};
use crate::scenario::VcOptions;

/// The VCs a table of theirs is for.
pub(super) fn meant_vcs(laid: Laid<'_>, key: &str) -> Result<Vec<usize>, Interrupted> {
    let Laid { scenario, channels, stop, .. } = laid;
    let meant = |vc: &str| vc == key || (is_in_range(key, vc) && !scenario.vc.contains_key(vc));
    let mut vcs = Vec::new();
    for (number, vc) in channels.vcs.iter().enumerate() {
        stop.step()?;
        if meant(&vc.name) {
            vcs.push(number);
        }
    }
    Ok(vcs)
}

/// Every table of a VC is about one, its contract can hold, and no link has promised more than it has.
pub(super) fn contracts(laid: Laid<'_>, faults: &mut Vec<KeyFault>) -> Result<(), Interrupted> {
    let Laid { scenario, layout, channels, stop, .. } = laid;
    if scenario.vc.is_empty() {
        return Ok(());
    }
    let names = || channels.vcs.iter().map(|vc| vc.name.as_str());
    let mut longest_frame: BTreeMap<usize, u32> = BTreeMap::new();
    for (flow, vcs) in layout.flows.iter().zip(&channels.of_flow) {
        stop.steps_of([1, scenario.flow.len()])?;
        for (vc, cells) in vcs.iter().zip(frame_cells(scenario, &flow.name)) {
            let longest = longest_frame.entry(*vc).or_insert(0);
            *longest = cells.max(*longest);
        }
    }
    let mut promised: BTreeMap<usize, u64> = BTreeMap::new();
    for (key, options) in &scenario.vc {
        let path = join("vc", key);
        let vcs = meant_vcs(laid, key)?;
        if vcs.is_empty() {
            let hint =
                closest(key, names(), stop)?.map(|meant| format!("did you mean \"{meant}\"? ")).unwrap_or_default();
            let problem =
                format!("is not a VC; {hint}A VC has the name of its flow, its acknowledgements' ends in -acks");
            faults.push(KeyFault::of_key(&path, problem));
        }
        let Some(gfr) = &options.gfr else { continue };
        let path = join(&path, "gfr");
        let mut found: Vec<Fault> = Vec::new();
        for &vc in &vcs {
            stop.step()?;
            let path = &channels.vcs[vc].path;
            let first = path[atm_part(&layout.graph.nodes, &layout.graph.links, path).start];
            let first = &layout.graph.links[first];
            for fault in gfr.check(first.rate, longest_frame[&vc]) {
                if !found.iter().any(|other| other.key == fault.key) {
                    found.push(fault);
                }
            }
            for &link in &channels.vcs[vc].path {
                let sum = promised.entry(link).or_insert(0);
                *sum = sum.saturating_add(gfr.mcr.bits_per_second);
            }
        }
        let of_value = |fault: Fault| KeyFault::of_value(join(&path, &fault.key), fault.value, fault.problem);
        faults.extend(found.into_iter().map(of_value));
    }
    taken_out(laid, faults)?;
    rate_control::abr(laid, &mut promised, faults)?;
    let more = |&(&link, &sum): &(&usize, &u64)| sum > layout.graph.links[link].rate.bits_per_second;
    if let Some((&link, &sum)) = promised.iter().rev().filter(more).max_by_key(|&(_, &sum)| sum) {
        let link = &layout.graph.links[link];
        let problem = format!(
            "promises VCs {} in all over {}, which has {}; the sum of mcr must not be above it",
            BitRate::from_bits_per_second(sum),
            link.name,
            link.rate
        );
        faults.push(KeyFault::of_key("vc", problem));
    }
    Ok(())
}

/// No table takes a VC out of a range with a service, ABR or a guaranteed frame rate, without a word: one table counts for a VC.
fn taken_out(laid: Laid<'_>, faults: &mut Vec<KeyFault>) -> Result<(), Interrupted> {
    let Laid { scenario, channels, refused, stop, .. } = laid;
    let service = |own: &VcOptions| match (&own.abr, &own.gfr) {
        (Some(_), _) => Some("abr"),
        (None, Some(_)) => Some("gfr"),
        (None, None) => None,
    };
    let ranges: Vec<(&String, &str)> = scenario
        .vc
        .iter()
        .filter_map(|(key, own)| Some((key, service(own)?)))
        .filter(|(key, _)| range(key).is_some())
        .collect();
    for vc in channels.vcs.iter().map(|vc| vc.name.as_str()) {
        stop.steps_of([1, scenario.vc.len()])?;
        let Some((table, own)) = build::vc_table(scenario, vc).filter(|_| !ranges.is_empty()) else { continue };
        let Some((all, service)) = ranges.iter().find(|(key, _)| is_in_range(key, vc)) else { continue };
        let path = join("vc", table);
        let is_told = |fault: &KeyFault| fault.key == path || fault.key.starts_with(&format!("{path}."));
        if own.abr.is_none() && own.gfr.is_none() && !faults.iter().chain(refused).any(is_told) {
            let problem = format!(
                "takes {vc} out of [vc.{all}.{service}]: one table counts for a VC, that of its name or the first range; write \
                 [vc.{table}.{service}] too, or leave {vc} out of the range"
            );
            faults.push(KeyFault::of_key(path, problem));
        }
    }
    Ok(())
}

/// Ranges that go on beyond the last connection: a number was mistaken, perhaps.
pub(super) fn beyond(laid: Laid<'_>, warnings: &mut Vec<Warning>) -> Result<(), Interrupted> {
    let Laid { scenario, layout, channels, stop, .. } = laid;
    let flows: Vec<&str> = layout.flows.iter().map(|flow| flow.name.as_str()).collect();
    let vcs: Vec<&str> = channels.vcs.iter().map(|vc| vc.name.as_str()).collect();
    let tables =
        [("flow", &flows, scenario.flow.keys().collect::<Vec<_>>()), ("vc", &vcs, scenario.vc.keys().collect())];
    for (kind, names, keys) in tables {
        for key in keys {
            let Some((stem, numbers)) = range(key) else { continue };
            stop.steps(names.len() / 8)?;
            let last = names.iter().filter_map(|name| Some((number_in_range(key, name)?, name))).max();
            if let Some((_, name)) = last.filter(|(number, _)| number < numbers.end()) {
                let (key, end) = (join(kind, key), numbers.end());
                let message = format!(
                    "the range {key} goes on to {stem}{end}, and {name} is the last there is; the rest is about nothing"
                );
                warnings.push(Warning { key, message });
            }
        }
    }
    Ok(())
}
