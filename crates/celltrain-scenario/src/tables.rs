//! Finds the table of a scenario that applies to each flow, VC, port and edge device.

use std::collections::BTreeMap;

use typed_index_collections::TiVec;

use celltrain_core::cancellation::{CancellationToken, Interrupted, all};
use celltrain_core::edge_device::EdgeConfig;
use celltrain_core::index::{FlowIndex, LinkIndex, NodeIndex, VcIndex};
use celltrain_core::network::NodeKind;
use celltrain_formula::names::{by_name, is_in_range};

use crate::channels::Channels;
use crate::scenario::{FlowOptions, PortConfig, Scenario, VcOptions};
use crate::topology::Layout;

/// The tables that apply to each part of a layout, looked up once.
pub struct Tables<'a> {
    /// Options of each flow.
    pub flows: TiVec<FlowIndex, Option<&'a FlowOptions>>,
    /// Options of each VC, and the name of the table that contains them.
    pub vcs: TiVec<VcIndex, Option<(&'a str, &'a VcOptions)>>,
    /// For each link, the name and content of its port's table; always `None` for a link that does not leave a switch.
    pub ports: TiVec<LinkIndex, Option<(&'a str, &'a PortConfig)>>,
    /// For each node, its table; always `None` for a node that is not an edge device.
    pub edges: TiVec<NodeIndex, Option<&'a EdgeConfig>>,
}

impl<'a> Tables<'a> {
    /// Looks up the tables for all parts of a layout.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if the token is cancelled.
    pub fn of(
        scenario: &'a Scenario,
        layout: &Layout,
        channels: &Channels,
        token: &CancellationToken<'_>,
    ) -> Result<Self, Interrupted> {
        let nodes = &layout.graph.nodes;
        let flows = layout.flows.iter().map(|flow| {
            token.tick(scenario.flow.len().saturating_add(1))?;
            Ok(by_name(&scenario.flow, &flow.name))
        });
        let vcs = channels.vcs.iter().map(|vc| {
            token.tick(scenario.vc.len().saturating_add(1))?;
            Ok(of_vc(&scenario.vc, &vc.name))
        });
        let ports = layout.graph.links.iter_enumerated().map(|(index, link)| {
            token.tick(scenario.port.len().saturating_add(1))?;
            let leaves_a_switch = nodes[link.from].kind == NodeKind::Switch;
            Ok(leaves_a_switch.then(|| of_port(&scenario.port, &link.name, index == layout.bottleneck)).flatten())
        });
        let edges = nodes.iter().map(|node| {
            token.tick(scenario.edge.len().saturating_add(1))?;
            let is_edge = node.kind == NodeKind::EdgeDevice;
            Ok(is_edge.then(|| of_edge(&scenario.edge, &node.name)).flatten())
        });
        Ok(Self {
            flows: all(flows)?.into(),
            vcs: all(vcs)?.into(),
            ports: all(ports)?.into(),
            edges: all(edges)?.into(),
        })
    }

    /// Returns the options of a VC.
    pub fn vc(&self, vc: VcIndex) -> Option<&'a VcOptions> {
        self.vcs[vc].map(|(_, own)| own)
    }
}

/// Finds the table of a VC: the table with the VC's name, or the first table whose range of names contains the VC.
fn of_vc<'a>(tables: &'a BTreeMap<String, VcOptions>, vc: &str) -> Option<(&'a str, &'a VcOptions)> {
    let in_range = || tables.iter().find(|(key, _)| is_in_range(key, vc));
    tables.get_key_value(vc).or_else(in_range).map(|(key, own)| (key.as_str(), own))
}

/// Finds the table of a switch port: by its link's name, `bottleneck`, a pattern, or `default`, in this order.
fn of_port<'a>(
    tables: &'a BTreeMap<String, PortConfig>,
    link: &str,
    is_bottleneck: bool,
) -> Option<(&'a str, &'a PortConfig)> {
    let named = |name: &str| tables.get_key_value(name);
    let as_bottleneck = || is_bottleneck.then(|| named("bottleneck")).flatten();
    let by_pattern = || tables.iter().find(|(name, _)| matches(name, link));
    let found = named(link).or_else(as_bottleneck).or_else(by_pattern).or_else(|| named("default"));
    found.map(|(name, config)| (name.as_str(), config))
}

/// Finds the table of an edge device: the table with the device's name, or a table whose pattern matches the device.
fn of_edge<'a>(tables: &'a BTreeMap<String, EdgeConfig>, edge: &str) -> Option<&'a EdgeConfig> {
    let by_pattern = || tables.iter().find(|(name, _)| matches(name, edge)).map(|(_, config)| config);
    tables.get(edge).or_else(by_pattern)
}

/// Returns whether a name matches a pattern, in which `*` matches any number of any characters.
pub fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(inner) = name.strip_prefix(head).and_then(|name| name.strip_suffix(tail)) else { return false };
    // Match each piece of the pattern at its first position after the previous piece. A later position would leave less
    // of the name for the following pieces.
    middle.split('*').try_fold(inner, |inner, piece| Some(inner.split_once(piece)?.1)).is_some()
}
