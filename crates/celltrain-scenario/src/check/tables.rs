//! Checks of the tables of flows and edge devices, and of settings for all flows, against the layout.

use std::collections::BTreeSet;

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::index::NodeIndex;
use celltrain_core::network::NodeKind;
use celltrain_core::traffic::TrafficConfig;
use celltrain_formula::names::is_in_range;

use crate::hints::{closest, did_you_mean, hint};
use crate::requests::Table;
use crate::resolved::ResolvedScenario;
use crate::scenario::FlowOptions;
use crate::scope::Scope;
use crate::stack::StackConfig;
use crate::tables::matches;

/// Checks the tables of flows and edge devices, the topology's own rules, and the settings for all flows.
pub(super) fn check(resolved: &ResolvedScenario<'_>, root: &mut Scope<'_>) -> Result<(), Interrupted> {
    let token = root.token();
    flows(resolved, root, token)?;
    resolved.scenario.topology.check_layout(&resolved.layout, root);
    token.check()?;
    edges(resolved, root, token)?;
    files(resolved, root);
    common_stack(resolved, root);
    until(resolved, root);
    Ok(())
}

/// Checks that every flow table names a flow.
fn flows(
    resolved: &ResolvedScenario<'_>,
    root: &mut Scope<'_>,
    token: &CancellationToken<'_>,
) -> Result<(), Interrupted> {
    let ResolvedScenario { scenario, layout, .. } = resolved;
    let known: BTreeSet<&str> = layout.flows.iter().map(|flow| flow.name.as_str()).collect();
    for key in scenario.flow.keys() {
        token.tick(1)?;
        let mut names = layout.flows.iter().map(|flow| flow.name.as_str());
        if known.contains(key.as_str()) || token.any(names.clone(), |name| is_in_range(key, name))? {
            continue;
        }
        let example = names.next().unwrap_or_default();
        let hint = did_you_mean(hint(key, names, root.found(), token));
        let write = if hint.is_empty() { "write" } else { "Write" };
        let problem = format!("is not a flow; {hint}{write} a flow's name such as \"{example}\", or a range of names");
        root.at("flow").at(key).refuse(problem);
    }
    Ok(())
}

fn edges(
    resolved: &ResolvedScenario<'_>,
    root: &mut Scope<'_>,
    token: &CancellationToken<'_>,
) -> Result<(), Interrupted> {
    let ResolvedScenario { scenario, layout, tables, .. } = resolved;
    let nodes = &layout.graph.nodes;
    let devices = || nodes.iter().filter(|node| node.kind == NodeKind::EdgeDevice).map(|node| node.name.as_str());
    let mut of_all = root.at("edge");
    for (key, config) in &scenario.edge {
        let mut scope = of_all.at(key);
        token.tick((nodes.len() / 8).saturating_add(1))?;
        if !devices().any(|device| matches(key, device)) {
            let hint = closest(key, devices(), token);
            let hint = did_you_mean(hint);
            let write = if hint.is_empty() { "write" } else { "Write" };
            let example = match devices().next() {
                Some(device) => {
                    format!("{hint}{write} a device's name such as \"{device}\", or a pattern such as \"*\"")
                }
                None => format!("the topology {} has none", scenario.topology.name()),
            };
            scope.refuse(format!("is not an edge device; {example}"));
        }
        for fault in config.check(longest_packet(resolved, key, token)?) {
            // The faults of the discard algorithm have keys that begin with the path of the algorithm's table.
            let discard = config.discard.name();
            match fault.key.strip_prefix(&format!("discard.{discard}.")) {
                Some(setting) => {
                    scope.at("discard").at(discard).at(setting).refuse_value(fault.value, fault.problem);
                }
                None => scope.refuse_setting(fault),
            }
        }
    }
    let without = |node: &NodeIndex| nodes[*node].kind == NodeKind::EdgeDevice && tables.edges[*node].is_none();
    if let Some(node) = nodes.keys().find(without) {
        let device = &nodes[node].name;
        of_all.refuse(format!("has no table for the edge device \"{device}\"; write [edge.\"*\"] with its buffer"));
    }
    Ok(())
}

/// Returns the length in cells of the longest packet that arrives at the devices of a table.
fn longest_packet(
    resolved: &ResolvedScenario<'_>,
    table: &str,
    token: &CancellationToken<'_>,
) -> Result<u32, Interrupted> {
    let layout = &resolved.layout;
    let mut longest = 1;
    for &vc in resolved.channels.of_flow.iter().flatten() {
        token.tick(1)?;
        let first = &layout.graph.nodes[layout.graph.links[resolved.channels.vcs[vc].path[0]].to];
        if first.kind == NodeKind::EdgeDevice && matches(table, &first.name) {
            longest = longest.max(resolved.frames[vc]);
        }
    }
    Ok(longest)
}

/// If the size of files is set, checks that at least one flow has a stream that can be divided into files.
fn files(resolved: &ResolvedScenario<'_>, root: &mut Scope<'_>) {
    let Some(size) = resolved.scenario.measure.file_size else { return };
    let no_stream = |own: Option<&FlowOptions>| {
        own.and_then(|own| own.traffic.as_ref()?.packets()).is_some() || resolved.scenario.stack_with(own).is_some()
    };
    if resolved.tables.flows.iter().copied().all(no_stream) {
        let problem = "has no effect: no flow uses the simulation's own TCP; leave it out";
        root.at("measure").at("file_size").refuse_text(size, problem);
    }
}

/// Checks that at least one flow or request uses the stack of all flows.
fn common_stack(resolved: &ResolvedScenario<'_>, root: &mut Scope<'_>) {
    let scenario = resolved.scenario;
    let Some(common) = &scenario.stack else { return };
    let is_common = |stack: Option<&StackConfig>| stack.is_some_and(|stack| std::ptr::eq(stack, common));
    let by_flow = resolved.tables.flows.iter().any(|&own| is_common(scenario.stack_with(own)));
    if by_flow || Table::all(scenario).any(|(_, _, table)| is_common(table.stack(scenario))) {
        return;
    }
    let problem = "is used by no flow and no request: each has a transport of its own, or sends packets without one; \
                   leave it out, or leave out a [flow.NAME.tcp] or [requests.NAME.tcp]";
    root.at("stack").at(common.name()).refuse(problem);
}

/// Checks that a run with `until = "finished"` has files or requests to finish, and that requests stop opening before
/// the end of the run.
fn until(resolved: &ResolvedScenario<'_>, root: &mut Scope<'_>) {
    let scenario = resolved.scenario;
    if scenario.until.is_duration() {
        return;
    }
    let own = resolved.tables.flows.iter().flatten();
    let has_files = own.filter_map(|own| own.traffic.as_ref()).any(|traffic| matches!(traffic, TrafficConfig::File(_)));
    let problem = match scenario.measure.to {
        _ if !scenario.has_requests() && !has_files => {
            "has no effect: no flow sends a file, and there are no requests; leave it out".to_owned()
        }
        None if scenario.has_requests() => {
            "has no effect without measure.to: new requests open until the end of the run; write measure.to, well before \
             the duration"
                .to_owned()
        }
        _ => return,
    };
    root.at("until").refuse_text("finished", problem);
}
