//! Loss rules of links, as scenarios write them: the checks, and the rules of the network.

use std::collections::BTreeMap;

use celltrain_core::index::{LinkIndex, VcIndex};
use celltrain_core::link_loss::{LossPattern, LossRule, LossUnit};
use celltrain_core::network::NodeKind;

use crate::channels::Channels;
use crate::hints::{closest, did_you_mean};
use crate::scenario::{Every, LossOptions, LossProbability, Scenario};
use crate::scope::Scope;
use crate::topology::Layout;

/// Returns the rules of each link that has any, and reports the faults in their tables. `root` is the scope of the
/// scenario.
pub(crate) fn resolve(
    scenario: &Scenario,
    layout: &Layout,
    channels: &Channels,
    root: &mut Scope<'_>,
) -> BTreeMap<LinkIndex, Vec<LossRule>> {
    let mut rules: BTreeMap<LinkIndex, Vec<LossRule>> = BTreeMap::new();
    let graph = &layout.graph;
    let mut tables = root.at("link");
    for (name, options) in &scenario.link {
        let mut scope = tables.at(name);
        let Some(link) = graph.links.position(|link| link.name == *name) else {
            let names = graph.links.iter().map(|link| link.name.as_str());
            let hint = did_you_mean(closest(name, names, scope.token()));
            scope.refuse(format!("is not a link; {hint}A link is named after its two nodes, such as sw1->sw2"));
            continue;
        };
        let into_edge = graph.nodes[graph.links[link].to].kind == NodeKind::EdgeDevice;
        let mut list = scope.at("lose");
        for (number, rule) in options.lose.iter().enumerate() {
            let mut scope = list.item(number);
            if scope.is_malformed() {
                continue;
            }
            let (vc, pattern) = (selected(layout, channels, link, rule, &mut scope), pattern(rule, &mut scope));
            let (Some(vc), Some((unit, pattern))) = (vc, pattern) else { continue };
            let rules = rules.entry(link).or_default();
            let is_random = |pattern: &LossPattern| matches!(pattern, LossPattern::Probability(_));
            let twice = |other: &LossRule| other.vc == vc && other.unit == unit && is_random(&other.pattern);
            if into_edge && channels.vcs[vc].path[0] == link {
                let next = channels.vcs[vc].path.get(1).map_or("the next link", |&next| &graph.links[next].name);
                scope.refuse(format!("is on a link that hands whole packets to an edge device; use {next}"));
            } else if is_random(&pattern) && rules.iter().any(twice) {
                let vc = &channels.vcs[vc].name;
                scope.refuse(format!("gives VC {vc} a second probability for {}; keep one", unit.name()));
            } else {
                rules.push(LossRule { vc, unit, pattern });
            }
        }
    }
    rules
}

/// Returns the VC that a rule names, which must cross the link.
fn selected(
    layout: &Layout,
    channels: &Channels,
    link: LinkIndex,
    rule: &LossOptions,
    scope: &mut Scope<'_>,
) -> Option<VcIndex> {
    let crosses = |vc: VcIndex| channels.vcs[vc].path.contains(&link);
    let (key, name, vcs) = match (&rule.flow, &rule.vc) {
        (Some(name), None) => {
            let Some((place, _)) = layout.flows.iter().enumerate().find(|(_, flow)| flow.name == *name) else {
                let hint =
                    did_you_mean(closest(name, layout.flows.iter().map(|flow| flow.name.as_str()), scope.token()));
                scope.at("flow").refuse_text(name, format!("is not a flow; {hint}A rule names one flow"));
                return None;
            };
            let both = channels.of_flow.raw[place];
            if channels.of_flow.iter().filter(|other| **other == both).count() > 1 {
                let vc = &channels.vcs[both[0]].name;
                let problem =
                    format!("shares its VC with other flows; write vc = \"{vc}\" to count the packets of all");
                scope.at("flow").refuse_text(name, problem);
                return None;
            }
            ("flow", name, both.to_vec())
        }
        (None, Some(name)) => {
            let Some(vc) = channels.vcs.position(|vc| vc.name == *name) else {
                let hint = did_you_mean(closest(name, channels.vcs.iter().map(|vc| vc.name.as_str()), scope.token()));
                let problem = format!("is not a VC; {hint}A VC has the name of its flow, with -acks on the way back");
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
    let found = vcs.iter().copied().find(|&vc| crosses(vc));
    if found.is_none() {
        let links =
            vcs.iter().flat_map(|&vc| &channels.vcs[vc].path).map(|&link| layout.graph.links[link].name.as_str());
        let links: Vec<&str> = links.collect();
        scope.at(key).refuse_text(name, format!("does not cross this link; it crosses {}", links.join(", ")));
    }
    found
}

/// Returns what a rule counts, and which of it is lost.
fn pattern(rule: &LossOptions, scope: &mut Scope<'_>) -> Option<(LossUnit, LossPattern)> {
    let LossOptions { packets, cells, every, first, probability, .. } = rule;
    let written = [
        ("packets", packets.is_some()),
        ("cells", cells.is_some()),
        ("every", every.is_some()),
        ("probability", probability.is_some()),
    ];
    let keys: Vec<&str> = written.into_iter().filter_map(|(key, is_there)| is_there.then_some(key)).collect();
    let &[key] = keys.as_slice() else {
        scope.refuse(match keys.as_slice() {
            [] => "does not say what is lost; add one of packets, cells, every, probability".to_string(),
            several => format!("has {}; a rule has one of them", several.join(" and ")),
        });
        return None;
    };
    if let Some(first) = first.filter(|_| every.is_none()) {
        scope.at("first").refuse_value(first, format!("has no effect with {key}; it is the first loss of every"));
        return None;
    }
    let lists = [(packets, LossUnit::Packets), (cells, LossUnit::Cells)];
    if let Some((numbers, unit)) = lists.into_iter().find_map(|(list, unit)| Some((list.clone()?, unit))) {
        if numbers.is_empty() {
            scope.at(key).refuse_value("[]", "is empty; list the numbers of what is lost, from 0");
            return None;
        }
        let mut numbers = numbers;
        numbers.sort_unstable();
        return Some((unit, LossPattern::Numbers(numbers)));
    }
    Some(match (*every, *probability) {
        (Some(Every::Packets(period)), _) => (LossUnit::Packets, one_in(period, *first)),
        (Some(Every::Cells(period)), _) => (LossUnit::Cells, one_in(period, *first)),
        (_, Some(LossProbability::Packets(share))) => (LossUnit::Packets, LossPattern::Probability(share)),
        (_, Some(LossProbability::Cells(share))) => (LossUnit::Cells, LossPattern::Probability(share)),
        (None, None) => return None,
    })
}

fn one_in(period: u64, first: Option<u64>) -> LossPattern {
    LossPattern::Every { period, first: first.unwrap_or(period.saturating_sub(1)) }
}
