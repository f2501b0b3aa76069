//! Rules by which links lose or delay packets. This module checks the tables of a scenario, and converts them to the
//! network's rules.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::discriminant;

use celltrain_core::aal5::Framing;
use celltrain_core::index::{LinkIndex, MemoryIndex, VcIndex};
use celltrain_core::link_loss::{DelayRule, GilbertElliott, LossPattern, LossRule, LossUnit};
use celltrain_core::memory::MemoryConfig;
use celltrain_core::network::NodeKind;
use celltrain_core::units::{Bytes, Duration};
use celltrain_core::wire::Wire;
use typed_index_collections::TiSlice;

use crate::changes::{self, ChangedLink};
use crate::channels::Channels;
use crate::hints::closest;
use crate::requests::Table;
use crate::scenario::{DelayOptions, GilbertElliottOptions, LinkOptions, LossOptions, LossUnitOption, Scenario};
use crate::scope::Scope;
use crate::tables::matches;
use crate::topology::Layout;

/// The rules for losses and delays on a link, and the changes of the link.
#[derive(Default)]
pub(crate) struct LinkRules {
    pub(crate) losses: Vec<LossRule>,
    pub(crate) late: Vec<DelayRule>,
    pub(crate) wire: Wire,
    pub(crate) changes: Option<ChangedLink>,
}

/// Returns the rules of each link that has rules, and reports the faults in the tables of links. `root` is the scope of
/// the scenario.
pub(crate) fn resolve(
    scenario: &Scenario,
    layout: &Layout,
    channels: &Channels,
    memories: &TiSlice<MemoryIndex, MemoryConfig>,
    root: &mut Scope<'_>,
) -> BTreeMap<LinkIndex, LinkRules> {
    let mut rules: BTreeMap<LinkIndex, LinkRules> = BTreeMap::new();
    let graph = &layout.graph;
    let mut tables = root.at("link");
    for (name, options) in &scenario.link {
        let mut scope = tables.at(name);
        if options.wire == Wire::Ethernet {
            ethernet(scenario, options, &mut scope);
            for (link, _) in graph.links.iter_enumerated().filter(|(_, link)| matches(name, &link.name)) {
                rules.entry(link).or_default().wire = Wire::Ethernet;
            }
        }
        if name.contains('*') && graph.links.iter().any(|link| matches(name, &link.name)) {
            let of_one = [("lose", !options.lose.is_empty()), ("delay", !options.delay.is_empty())];
            for (key, is_there) in of_one.into_iter().chain(changes::keys(options)) {
                if is_there {
                    scope.at(key).refuse("needs the name of one link instead of a pattern");
                }
            }
            continue;
        }
        let Some(link) = graph.links.position(|link| link.name == *name) else {
            let names = graph.links.iter().map(|link| link.name.as_str());
            let hint = hint(closest(name, names, scope.token()));
            scope.refuse(format!("is not a link{hint}; a link is named after its two nodes, such as sw1->sw2"));
            continue;
        };
        let mut list = scope.at("lose");
        for (number, rule) in options.lose.iter().enumerate() {
            let mut scope = list.item(number);
            let Some(rule) = loss(scenario, layout, channels, link, rule, &mut scope) else { continue };
            let LinkRules { losses, .. } = rules.entry(link).or_default();
            let LossRule { vc, unit, ref pattern } = rule;
            let is_random = matches!(pattern, LossPattern::Probability(_) | LossPattern::GilbertElliott(_));
            let twice = |other: &LossRule| {
                (other.vc, other.unit, discriminant(&other.pattern)) == (vc, unit, discriminant(pattern))
            };
            if is_random && losses.iter().any(twice) {
                let vc = &channels.vcs[vc].name;
                scope.refuse(format!("gives VC {vc} a second probability for {}; keep only one rule", unit.name()));
            } else {
                losses.push(rule);
            }
        }
        let mut list = scope.at("delay");
        for (number, options) in options.delay.iter().enumerate() {
            let mut scope = list.item(number);
            let &DelayOptions { ref flow, ref vc, ref packets, bytes, times, by } = options;
            if scope.is_malformed() {
                continue;
            }
            if by > LONGEST_DELAY || by == Duration::default() {
                scope.at("by").refuse_value(by, "must be above 0 and at most 1000s");
            }
            if packets.is_some() == bytes.is_some() {
                scope.refuse("must have either packets or bytes");
                continue;
            }
            let (flow, vc, packets) = (flow.clone(), vc.clone(), packets.clone());
            let selected = LossOptions { flow, vc, packets, bytes, times, ..LossOptions::default() };
            if let Some(rule) = loss(scenario, layout, channels, link, &selected, &mut scope) {
                let LossRule { vc, pattern, .. } = rule;
                rules.entry(link).or_default().late.push(DelayRule { vc, pattern, by });
            }
        }
        if let Some(changed) = changes::resolve(scenario, layout, memories, link, options, &mut scope) {
            rules.entry(link).or_default().changes = Some(changed);
        }
    }
    for (link, rules) in &rules {
        let name = &graph.links[*link].name;
        if let Some(options) = scenario.link.get(name).filter(|_| rules.changes.is_some()) {
            changes::check_wire(options, rules.wire, &mut tables.at(name));
        }
    }
    rules
}

/// Checks that the links of a table may carry Ethernet frames.
fn ethernet(scenario: &Scenario, options: &LinkOptions, scope: &mut Scope<'_>) {
    let format = scenario.cell.format();
    let headers;
    let problem = if scenario.framing().framing == Framing::Aal5 {
        "needs framing = \"packets\", because AAL5 frames fill whole cells; set this framing, or leave it out"
    } else if !options.delay.is_empty() {
        "cannot be combined with delay, which delivers cells at equal intervals; leave one of them out"
    } else if format.payload < format.size {
        let [size, payload] = [format.size, format.payload].map(|bytes| Bytes { bytes });
        headers = format!(
            "needs cells without headers, because Ethernet frames carry none: a cell has {size}, but only {payload} of a packet; set \
             cell.payload = \"{size}\""
        );
        &headers
    } else {
        return;
    };
    scope.at("wire").refuse_text("ethernet", problem);
}

/// Maximum additional delay of a packet. A longer delay probably has a wrong unit.
const LONGEST_DELAY: Duration = Duration::from_milliseconds(1_000_000);

/// Returns the rule by which a link loses packets or cells, and reports the faults in the rule's table.
fn loss(
    scenario: &Scenario,
    layout: &Layout,
    channels: &Channels,
    link: LinkIndex,
    rule: &LossOptions,
    scope: &mut Scope<'_>,
) -> Option<LossRule> {
    if scope.is_malformed() {
        return None;
    }
    let (vc, pattern) = (selected(scenario, layout, channels, link, rule, scope), pattern(rule, scope));
    let (vc, (unit, pattern)) = (vc?, pattern?);
    if rule.bytes.is_some() && !carries_bytes(scenario, layout, channels, rule, vc) {
        let problem = "needs a flow whose data the simulation sends over this link; name packets by number";
        scope.at("bytes").refuse(problem);
        return None;
    }
    let graph = &layout.graph;
    if graph.nodes[graph.links[link].to].kind == NodeKind::EdgeDevice && channels.vcs[vc].path[0] == link {
        let next = channels.vcs[vc].path.get(1).map_or("the next link", |&next| &graph.links[next].name);
        scope.refuse(format!("is on a link that carries whole packets to an edge device; write the rule for {next}"));
        return None;
    }
    Some(LossRule { vc, unit, pattern })
}

/// Returns the VC that a rule names, and reports a fault if the VC does not cross the link.
fn selected(
    scenario: &Scenario,
    layout: &Layout,
    channels: &Channels,
    link: LinkIndex,
    rule: &LossOptions,
    scope: &mut Scope<'_>,
) -> Option<VcIndex> {
    let (key, name, vcs) = match (&rule.flow, &rule.vc) {
        (Some(name), None) => {
            let Some((place, _)) = layout.flows.iter().enumerate().find(|(_, flow)| flow.name == *name) else {
                let names = layout.flows.iter().map(|flow| flow.name.as_str());
                let hint = hint(closest(name, names, scope.token()));
                let problem = match Table::all(scenario).find(|(_, table, _)| table == name) {
                    Some((kind, ..)) => format!(
                        "is a table of [{kind}], but a rule cannot name such a table; name a \
                                                 flow or a VC"
                    ),
                    None => format!("is not a flow{hint}; {}", flows(layout)),
                };
                scope.at("flow").refuse_text(name, problem);
                return None;
            };
            let both = channels.of_flow.raw[place];
            if channels.of_flow.iter().filter(|other| **other == both).count() > 1 {
                let vc = &channels.vcs[both[0]].name;
                let problem = format!(
                    "shares its VC with other flows; write vc = \"{vc}\" to count the packets of all these flows"
                );
                scope.at("flow").refuse_text(name, problem);
                return None;
            }
            ("flow", name, both.to_vec())
        }
        (None, Some(name)) => {
            let Some(vc) = channels.vcs.position(|vc| vc.name == *name) else {
                let hint = hint(closest(name, channels.vcs.iter().map(|vc| vc.name.as_str()), scope.token()));
                let problem = format!(
                    "is not a VC{hint}; a VC has the name of its flow, with the suffix -acks for the \
                                       acknowledgements"
                );
                scope.at("vc").refuse_text(name, problem);
                return None;
            };
            ("vc", name, vec![vc])
        }
        (None, None) => {
            scope.refuse("names neither a flow nor a VC; add flow = \"NAME\" or vc = \"NAME\"");
            return None;
        }
        (Some(_), Some(_)) => {
            scope.refuse("names both a flow and a VC; keep one of them");
            return None;
        }
    };
    let found = vcs.iter().copied().find(|&vc| channels.vcs[vc].path.contains(&link));
    if found.is_none() {
        let links = |&vc: &VcIndex| {
            let names: Vec<&str> = channels.vcs[vc].path.iter().map(|&link| &*layout.graph.links[link].name).collect();
            names.join(", ")
        };
        let ways: Vec<String> = vcs.iter().map(links).collect();
        let problem = format!(
            "does not cross this link; the links of its path are {}",
            ways.join("; its acknowledgements cross ")
        );
        scope.at(key).refuse_text(name, problem);
    }
    found
}

/// Formats a suggestion that follows a problem; empty if there is no suggestion.
fn hint(meant: Option<&str>) -> String {
    meant.map(|meant| format!(" (did you mean \"{meant}\"?)")).unwrap_or_default()
}

/// Returns a clause that lists the flows. If there are many flows, it lists only the first.
fn flows(layout: &Layout) -> String {
    const MOST: usize = 8;
    let names: Vec<&str> = layout.flows.iter().take(MOST).map(|flow| flow.name.as_str()).collect();
    match layout.flows.len() {
        0 => "the scenario has no flows; name a VC".to_string(),
        all if all > MOST => format!("the flows are {} and {} more", names.join(", "), all.saturating_sub(MOST)),
        _ => format!("the flows are {}", names.join(", ")),
    }
}

/// Returns whether a rule names a flow, and the simulation sends the flow's data on `vc`.
fn carries_bytes(scenario: &Scenario, layout: &Layout, channels: &Channels, rule: &LossOptions, vc: VcIndex) -> bool {
    let Some(name) = &rule.flow else { return false };
    let place = layout.flows.iter().position(|flow| flow.name == *name);
    let has_data = place.is_some_and(|place| channels.of_flow.raw[place][0] == vc);
    has_data && scenario.stack_with(scenario.flow.get(name)).is_none()
}

/// Returns the unit that a rule counts, packets or cells, and the pattern by which the rule selects units.
fn pattern(rule: &LossOptions, scope: &mut Scope<'_>) -> Option<(LossUnit, LossPattern)> {
    let &LossOptions { ref packets, ref cells, ref every, ref probability, gilbert_elliott, bytes, times, .. } = rule;
    if times.is_some() && bytes.is_none() {
        scope
            .at("times")
            .refuse("counts transmissions of the packet that the key bytes selects; add bytes, such as \"60000B\"");
        return None;
    }
    match (packets.is_some() || cells.is_some(), every, probability, gilbert_elliott, bytes) {
        (true, None, None, None, None) => {
            let (unit, numbers) = one_of(packets.clone(), cells.clone(), scope)?;
            let mut list = scope.at(unit.name());
            if numbers.is_empty() {
                list.refuse_value("[]", "is empty; list numbers (counted from 0), such as [14, 26]");
            }
            let mut sorted = BTreeSet::new();
            for (place, &number) in numbers.iter().enumerate() {
                if !sorted.insert(number) {
                    list.item(place).refuse_value(number, "is already in the list; list each number only once");
                }
            }
            Some((unit, LossPattern::Numbers(sorted.into_iter().collect())))
        }
        (false, Some(every), None, None, None) => {
            let (unit, period) = one_of(every.packets, every.cells, &mut scope.at("every"))?;
            let first = every.first.unwrap_or(period.saturating_sub(1));
            Some((unit, LossPattern::Every { period, first }))
        }
        (false, None, Some(probability), None, None) => {
            let (unit, share) = one_of(probability.packets, probability.cells, &mut scope.at("probability"))?;
            Some((unit, LossPattern::Probability(share)))
        }
        (false, None, None, Some(GilbertElliottOptions { p, r, good, bad, unit }), None) => {
            let unit = match unit {
                LossUnitOption::Packets => LossUnit::Packets,
                LossUnitOption::Cells => LossUnit::Cells,
            };
            Some((unit, LossPattern::GilbertElliott(GilbertElliott { p, r, good, bad })))
        }
        (false, None, None, None, Some(offset)) => {
            Some((LossUnit::Packets, LossPattern::Byte { offset: offset.bytes, times: times.unwrap_or(1) }))
        }
        _ => {
            scope.refuse(
                "must have exactly one of packets, cells, every, probability, gilbert_elliott and bytes; write a rule \
                 for each of them",
            );
            None
        }
    }
}

/// Returns the value for packets or the value for cells. A table has exactly one of these two values.
fn one_of<T>(packets: Option<T>, cells: Option<T>, scope: &mut Scope<'_>) -> Option<(LossUnit, T)> {
    match (packets, cells) {
        (Some(packets), None) => Some((LossUnit::Packets, packets)),
        (None, Some(cells)) => Some((LossUnit::Cells, cells)),
        _ => {
            scope.refuse("must have either packets or cells");
            None
        }
    }
}
