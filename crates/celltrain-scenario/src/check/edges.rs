//! Checks that each edge device has a table, that each table names a device, and that each buffer can store a packet.

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::index::NodeIndex;
use celltrain_core::network::NodeKind;

use crate::build::ResolvedScenario;
use crate::hints::{closest, did_you_mean};
use crate::scope::Scope;
use crate::tables::matches;

pub(super) fn check(
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
            // Keys of the discard algorithm are prefixed with the path of its table.
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
