//! Which table of a scenario is for which flow, VC, port and edge device.

use std::collections::BTreeMap;

use typed_index_collections::TiVec;

use celltrain_core::edge_device::EdgeConfig;
use celltrain_core::index::{FlowIndex, LinkIndex, NodeIndex, VcIndex};
use celltrain_core::names::{by_name, is_in_range};
use celltrain_core::network::NodeKind;
use celltrain_core::stop::{Interrupted, Stop, all};

use crate::channels::Channels;
use crate::scenario::{FlowOptions, PortConfig, Scenario, VcOptions};
use crate::topology::Layout;

/// The tables of everything in a layout, looked up once.
pub struct Tables<'a> {
    /// Of each flow: what it has of its own.
    pub flows: TiVec<FlowIndex, Option<&'a FlowOptions>>,
    /// Of each VC: what it has of its own, and the name of that table.
    pub vcs: TiVec<VcIndex, Option<(&'a str, &'a VcOptions)>>,
    /// Of each link: the table of its port, and that table's name; none where it leaves no switch.
    pub ports: TiVec<LinkIndex, Option<(&'a str, &'a PortConfig)>>,
    /// Of each node: its table; none where it is no edge device.
    pub edges: TiVec<NodeIndex, Option<&'a EdgeConfig>>,
}

impl<'a> Tables<'a> {
    /// Looks them up.
    ///
    /// # Errors
    /// When it is told to stop.
    pub fn of(
        scenario: &'a Scenario,
        layout: &Layout,
        channels: &Channels,
        stop: &Stop<'_>,
    ) -> Result<Self, Interrupted> {
        let nodes = &layout.graph.nodes;
        let flows = layout.flows.iter().map(|flow| {
            stop.steps_of([1, scenario.flow.len()])?;
            Ok(by_name(&scenario.flow, &flow.name))
        });
        let vcs = channels.vcs.iter().map(|vc| {
            stop.steps_of([1, scenario.vc.len()])?;
            Ok(of_vc(&scenario.vc, &vc.name))
        });
        let ports = layout.graph.links.iter_enumerated().map(|(index, link)| {
            stop.steps_of([1, scenario.port.len()])?;
            let leaves_a_switch = nodes[link.from].kind == NodeKind::Switch;
            Ok(leaves_a_switch.then(|| of_port(&scenario.port, &link.name, index == layout.bottleneck)).flatten())
        });
        let edges = nodes.iter().map(|node| {
            stop.steps_of([1, scenario.edge.len()])?;
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

    /// What a VC has of its own.
    pub fn vc(&self, vc: VcIndex) -> Option<&'a VcOptions> {
        self.vcs[vc].map(|(_, own)| own)
    }
}

/// The table of a VC: that of its name, or of the first range its name is in.
fn of_vc<'a>(tables: &'a BTreeMap<String, VcOptions>, vc: &str) -> Option<(&'a str, &'a VcOptions)> {
    let in_range = || tables.iter().find(|(key, _)| is_in_range(key, vc));
    tables.get_key_value(vc).or_else(in_range).map(|(key, own)| (key.as_str(), own))
}

/// The table of a switch's port: that of its link's name, of the bottleneck, of a pattern, or of every other port.
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

/// The table of an edge device: that of its name, or of a pattern.
fn of_edge<'a>(tables: &'a BTreeMap<String, EdgeConfig>, edge: &str) -> Option<&'a EdgeConfig> {
    let by_pattern = || tables.iter().find(|(name, _)| matches(name, edge)).map(|(_, config)| config);
    tables.get(edge).or_else(by_pattern)
}

/// Whether a pattern, in which `*` stands for any characters, stands for a name.
pub fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(inner) = name.strip_prefix(head).and_then(|name| name.strip_suffix(tail)) else { return false };
    // Each piece where it first comes behind the one before: a later place leaves less for the others.
    middle.split('*').try_fold(inner, |inner, piece| Some(inner.split_once(piece)?.1)).is_some()
}
