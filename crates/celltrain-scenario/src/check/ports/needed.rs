//! Checks that every port that can fill has a table.

use std::collections::{BTreeMap, BTreeSet};

use celltrain_core::abr::allocator::AllocatorConfig;
use celltrain_core::index::LinkIndex;
use celltrain_core::network::NodeKind;
use celltrain_core::units::BitRate;
use typed_index_collections::{TiSlice, TiVec, ti_vec};

use crate::build::ResolvedScenario;
use crate::scope::Scope;
use crate::topology::Congests;

/// Checks that every port that needs a table has one. `meant` suggests names for misspelt tables.
pub(super) fn without_table(
    resolved: &ResolvedScenario<'_>,
    largest_frame: &TiSlice<LinkIndex, u32>,
    meant: &BTreeSet<&str>,
    root: &mut Scope<'_>,
) {
    let ResolvedScenario { scenario, layout, tables, .. } = resolved;
    let congests = congesting(resolved);
    let can_fill = can_fill(resolved);
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
        // If the table was refused or its name misspelt, do not also report the table as missing.
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

/// For each link, returns whether its port needs a table even without ABR VCs.
#[expect(clippy::arithmetic_side_effects, reason = "no overflow: a network has at most 10^7 flows")]
fn congesting(resolved: &ResolvedScenario<'_>) -> TiVec<LinkIndex, bool> {
    let ResolvedScenario { scenario, layout, channels, .. } = resolved;
    let links = layout.graph.links.len();
    let congests = scenario.topology.config().congests();
    let mut is_one: TiVec<LinkIndex, bool> = ti_vec![congests == Congests::Everywhere; links];
    is_one[layout.bottleneck] = true;
    if congests == Congests::SharedLinks {
        let mut crossing: TiVec<LinkIndex, u32> = ti_vec![0; links];
        for flow in &layout.flows {
            for &link in &flow.data {
                crossing[link] += 1;
                is_one[link] |= crossing[link] > 1;
            }
        }
    }
    // Requests of many connections share one VC.
    for &vc in resolved.requests.pairs.iter().flat_map(|pair| &pair.vcs) {
        for &link in &channels.vcs[vc].path {
            is_one[link] = true;
        }
    }
    is_one
}

/// Finds the switch ports that ABR VCs can fill. Returns for each such link the possible arrival rate in bits per
/// second and the name of an ABR VC. Only ports that carry data and whose VCs can exceed the port's rate indefinitely
/// are included. The rate of a VC is limited by its PCR and by the slowest link before the port. VCs that arrive over
/// the same link cannot exceed that link's rate in total.
fn can_fill<'a>(resolved: &'a ResolvedScenario<'_>) -> BTreeMap<LinkIndex, (u64, &'a str)> {
    #[derive(Default)]
    struct Port<'a> {
        by_link: BTreeMap<LinkIndex, u64>,
        has_data: bool,
        abr: Option<&'a str>,
    }

    let ResolvedScenario { scenario, layout, channels, tables, .. } = resolved;
    if scenario.vc.values().all(|own| own.abr.is_none()) {
        return BTreeMap::new();
    }
    let links = &layout.graph.links;
    let mut ports: BTreeMap<LinkIndex, Port<'_>> = BTreeMap::new();
    let ways = channels.of_flow.iter().flat_map(|&[data, acks]| [(data, data, true), (acks, data, false)]);
    // Count a VC shared by several flows once.
    for (vc, data_vc, is_data) in ways.collect::<BTreeSet<_>>() {
        let abr = tables.vc(data_vc).and_then(|own| own.abr.as_ref());
        let mut most = abr.and_then(|abr| abr.pcr).map_or(u64::MAX, |pcr| pcr.bits_per_second);
        for hop in channels.vcs[vc].path.windows(2) {
            most = most.min(links[hop[0]].rate.bits_per_second);
            if layout.graph.nodes[links[hop[1]].from].kind == NodeKind::Switch {
                let port = ports.entry(hop[1]).or_default();
                let sum = port.by_link.entry(hop[0]).or_insert(0);
                *sum = sum.saturating_add(most);
                port.has_data |= is_data;
                port.abr = port.abr.or_else(|| abr.map(|_| channels.vcs[vc].name.as_str()));
            }
        }
    }
    let filled = |(link, port): (LinkIndex, Port<'a>)| {
        let each = port.by_link.iter().map(|(&from, &sum)| sum.min(links[from].rate.bits_per_second));
        let comes = each.fold(0, u64::saturating_add);
        let vc = port.abr.filter(|_| port.has_data && comes > links[link].rate.bits_per_second)?;
        Some((link, (comes, vc)))
    };
    ports.into_iter().filter_map(filled).collect()
}
