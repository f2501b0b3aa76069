//! Resolves the tables of a scenario once for the layout of its topology. The checks and the construction of the
//! network use the result.

use std::collections::{BTreeMap, BTreeSet};

use celltrain_core::cancellation::Interrupted;
use celltrain_core::index::{LinkIndex, MemoryIndex, VcIndex};
use celltrain_core::memory::MemoryConfig;
use celltrain_core::network::NodeKind;
use celltrain_core::requests::Requests;
use celltrain_core::tcp::scoreboard::MAX_OPTION_BYTES;
use celltrain_core::traffic::TrafficConfig;
use typed_index_collections::{TiVec, ti_vec};

use crate::channels::{Channels, channels};
use crate::losses::LinkRules;
use crate::scenario::{FlowOptions, Scenario};
use crate::scope::Scope;
use crate::tables::Tables;
use crate::topology::{Congests, Layout};
use crate::{losses, memories, requests};

/// A scenario with the layout of its topology, for the checks and for building the network.
pub(crate) struct ResolvedScenario<'a> {
    /// The scenario as written by the user.
    pub(crate) scenario: &'a Scenario,
    /// The nodes, links and paths of the layout.
    pub(crate) layout: Layout,
    /// The VCs on the paths of the layout.
    pub(crate) channels: Channels,
    /// The scenario's tables that apply to each part of the network.
    pub(crate) tables: Tables<'a>,
    /// The number of cells of the longest frame on each VC.
    pub(crate) frames: TiVec<VcIndex, u32>,
    /// The memories shared by ports.
    pub(crate) memories: TiVec<MemoryIndex, MemoryConfig>,
    /// The rules for losses and delays on links. The map is incomplete if the tables of links have faults.
    pub(crate) losses: BTreeMap<LinkIndex, LinkRules>,
    /// Connections that open during the run. The list is incomplete if the tables of requests have faults.
    pub(crate) requests: Requests,
}

impl<'a> ResolvedScenario<'a> {
    /// Resolves each table of a scenario once for the layout of its topology, and reports the faults found on the way.
    /// The topology must have no faults. All further checks use the result.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if the token is cancelled.
    pub(crate) fn of(scenario: &'a Scenario, layout: Layout, root: &mut Scope<'_>) -> Result<Self, Interrupted> {
        let mut channels = channels(&layout);
        let requests = requests::resolve(scenario, &layout, &mut channels, root)?;
        let tables = Tables::of(scenario, &layout, &channels, root.token())?;
        let frames = longest_frames(scenario, &channels, &tables, &requests);
        let memories = memories::resolve(scenario, &layout, &channels, &tables, root);
        let losses = losses::resolve(scenario, &layout, &channels, &memories, root);
        Ok(Self { scenario, layout, channels, tables, frames, memories, losses, requests })
    }

    /// Returns the memory to which a port belongs; `None` if the port belongs to no memory.
    pub(crate) fn memory_of(&self, port: LinkIndex) -> Option<&MemoryConfig> {
        self.memories.iter().find(|memory| memory.ports.contains(&port))
    }

    /// Returns the buffer size K of a switch port that has a table; `None` if the buffer is unlimited.
    pub(crate) fn capacity(&self, port: LinkIndex) -> Option<u32> {
        let own = || self.tables.ports[port].and_then(|(_, port)| port.buffer.cells());
        self.memory_of(port).map_or_else(own, |memory| Some(memories::capacity(memory)))
    }

    /// Returns the smallest buffer size K among the ports of a table that belong to a memory.
    pub(crate) fn shared_capacity(&self, table: &str) -> Option<u32> {
        let ports = self.tables.ports.iter_enumerated();
        let own = ports.filter(|(_, own)| own.is_some_and(|(name, _)| name == table)).map(|(port, _)| port);
        own.filter_map(|port| self.memory_of(port)).map(memories::capacity).min()
    }

    /// Returns the size in cells of the largest frame that crosses each link.
    pub(crate) fn largest_frames(&self) -> TiVec<LinkIndex, u32> {
        let mut largest: TiVec<LinkIndex, u32> = ti_vec![0; self.layout.graph.links.len()];
        for (vc, &cells) in self.channels.vcs.iter().zip(&self.frames) {
            for &link in &vc.path {
                largest[link] = cells.max(largest[link]);
            }
        }
        largest
    }

    /// Returns the names of the VCs that cross each link. VCs that merge have a common name on the links after their
    /// merge.
    pub(crate) fn crossing(&self) -> TiVec<LinkIndex, Vec<&str>> {
        let ResolvedScenario { layout, channels, .. } = self;
        let mut crossing: TiVec<LinkIndex, Vec<&str>> = ti_vec![Vec::new(); layout.graph.links.len()];
        let mut merged = BTreeSet::new();
        for vc in &channels.vcs {
            let merge = vc.merge.map(|merge| &channels.merges[merge]);
            let mut name = &vc.name;
            for &link in &vc.path {
                // List the VC that results from a merge only once for each link, although several VCs have merged into
                // it.
                if name == &vc.name || merged.insert((link, vc.merge)) {
                    crossing[link].push(name);
                }
                if let Some(merge) = merge.filter(|merge| merge.at == link) {
                    name = &merge.name;
                }
            }
        }
        crossing
    }

    /// Returns for each link whether its port needs a table even without ABR VCs.
    #[expect(clippy::arithmetic_side_effects, reason = "no overflow: a network has at most 10^7 flows")]
    pub(crate) fn congesting(&self) -> TiVec<LinkIndex, bool> {
        let ResolvedScenario { scenario, layout, channels, .. } = self;
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
        // The VC of a pair of hosts carries many requests, so its links can be congested.
        for &vc in self.requests.pairs.iter().flat_map(|pair| &pair.vcs) {
            for &link in &channels.vcs[vc].path {
                is_one[link] = true;
            }
        }
        is_one
    }

    /// Finds the switch ports that ABR VCs can fill. Returns, for the link of each of these ports, the possible arrival
    /// rate in bits per second and the name of an ABR VC. A port is included only if it carries data and the VCs that
    /// cross it can exceed its rate indefinitely. The rate of a VC is limited by the VC's PCR and by the slowest link
    /// before the port. VCs that arrive over the same link cannot exceed this link's rate in total.
    pub(crate) fn can_fill<'b>(&'b self) -> BTreeMap<LinkIndex, (u64, &'b str)> {
        #[derive(Default)]
        struct Port<'a> {
            by_link: BTreeMap<LinkIndex, u64>,
            has_data: bool,
            abr: Option<&'a str>,
        }

        let ResolvedScenario { scenario, layout, channels, tables, .. } = self;
        if scenario.vc.values().all(|own| own.abr.is_none()) {
            return BTreeMap::new();
        }
        let links = &layout.graph.links;
        let mut ports: BTreeMap<LinkIndex, Port<'_>> = BTreeMap::new();
        let ways = channels.of_flow.iter().flat_map(|&[data, acks]| [(data, data, true), (acks, data, false)]);
        // Count a VC that several flows share only once.
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
        let filled = |(link, port): (LinkIndex, Port<'b>)| {
            let each = port.by_link.iter().map(|(&from, &sum)| sum.min(links[from].rate.bits_per_second));
            let comes = each.fold(0, u64::saturating_add);
            let vc = port.abr.filter(|_| port.has_data && comes > links[link].rate.bits_per_second)?;
            Some((link, (comes, vc)))
        };
        ports.into_iter().filter_map(filled).collect()
    }
}

/// Returns the number of cells of the longest frame that flows and requests send over each VC.
fn longest_frames(
    scenario: &Scenario,
    channels: &Channels,
    tables: &Tables<'_>,
    requests: &Requests,
) -> TiVec<VcIndex, u32> {
    let framing = scenario.framing();
    let mut longest: TiVec<VcIndex, u32> = ti_vec![0; channels.vcs.len()];
    for (vcs, &own) in channels.of_flow.iter().zip(&tables.flows) {
        for (&vc, cells) in vcs.iter().zip(of_flow(scenario, own)) {
            longest[vc] = cells.max(longest[vc]);
        }
    }
    for group in &requests.groups {
        let options = group.tcp.options();
        let acks = if group.tcp.selective() || group.outside { MAX_OPTION_BYTES } else { 0 };
        let [data, acks] = [options.mss.bytes, acks].map(|bytes| framing.segment_cells(bytes));
        for pair in group.pairs() {
            let pair = &requests.pairs[pair];
            for (vcs, cells) in [(&pair.vcs, data), (&requests.pairs[pair.back].vcs, acks)] {
                for &vc in vcs {
                    longest[vc] = cells.max(longest[vc]);
                }
            }
        }
    }
    longest
}

/// Returns the numbers of cells of a flow's full segments (or packets) and of its longest acknowledgements.
fn of_flow(scenario: &Scenario, own: Option<&FlowOptions>) -> [u32; 2] {
    let packets = own.and_then(|own| own.traffic.as_ref()).and_then(TrafficConfig::packets);
    if let Some(pattern) = packets {
        return [scenario.framing().packet_cells(pattern.packet.bytes), 0];
    }
    if let Some(stack) = scenario.stack_with(own) {
        return [stack.sizes().mss, MAX_OPTION_BYTES].map(|bytes| scenario.framing().segment_cells(bytes));
    }
    let tcp = own.and_then(|own| own.tcp.as_ref()).unwrap_or(&scenario.tcp);
    let ack_options = if tcp.selective() { MAX_OPTION_BYTES } else { 0 };
    [tcp.options().mss.bytes, ack_options].map(|bytes| scenario.framing().segment_cells(bytes))
}
