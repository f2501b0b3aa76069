//! Builds the network for the engines from a checked scenario.

use std::collections::BTreeMap;

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::delay::DelayChoice;
use celltrain_core::index::{LinkIndex, MemoryIndex, VcIndex};
use celltrain_core::memory::MemoryConfig;
use celltrain_core::network::{Flow, MeasureWindow, Network, NodeKind};
use celltrain_core::requests::Requests;

use typed_index_collections::TiVec;

use crate::channels::{Channels, channels};
use crate::fault::Faults;
use crate::frames;
use crate::losses::{self, LinkRules};
use crate::memories;
use crate::requests;
use crate::scenario::Scenario;
use crate::scope::Scope;
use crate::stack::StackConfig;
use crate::tables::Tables;
use crate::topology::{Layout, Route};

/// A scenario with the layout of its topology, for the checks and for building the network.
pub struct ResolvedScenario<'a> {
    /// The scenario as written by the user.
    pub scenario: &'a Scenario,
    /// The nodes, links and paths of the layout.
    pub layout: Layout,
    /// The VCs on the paths of the layout.
    pub channels: Channels,
    /// The scenario's tables that apply to each part of the network.
    pub tables: Tables<'a>,
    /// The number of cells of the longest frame on each VC.
    pub(crate) frames: TiVec<VcIndex, u32>,
    /// The memories shared by ports.
    pub memories: TiVec<MemoryIndex, MemoryConfig>,
    /// The loss rules of links. Incomplete if their tables have faults.
    pub(crate) losses: BTreeMap<LinkIndex, LinkRules>,
    /// Connections that open during the run. Incomplete if their tables have faults.
    pub requests: Requests,
}

/// Builds the network of a checked scenario for a run with `seed`.
pub fn network(scenario: &Scenario, seed: u64) -> Network {
    network_unless(scenario, seed, &CancellationToken::never()).expect("no test cancels a run")
}

/// Builds the network of a checked scenario, unless cancelled.
///
/// # Errors
/// Returns [`Interrupted`] if cancelled.
pub fn network_unless(scenario: &Scenario, seed: u64, token: &CancellationToken<'_>) -> Result<Network, Interrupted> {
    let layout = scenario.topology.config().lay_out(token)?;
    let mut none = Faults::default();
    Ok(ResolvedScenario::of(scenario, layout, &mut Scope::root(&mut none, &[], token))?.network(seed))
}

impl<'a> ResolvedScenario<'a> {
    /// Resolves each table of a scenario once for the layout of its topology, and reports the faults that this finds. The
    /// topology must have no faults. The remaining checks use the result.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if cancelled.
    pub fn of(scenario: &'a Scenario, layout: Layout, root: &mut Scope<'_>) -> Result<Self, Interrupted> {
        let mut channels = channels(&layout);
        let requests = requests::resolve(scenario, &layout, &mut channels, root)?;
        let tables = Tables::of(scenario, &layout, &channels, root.token())?;
        let frames = frames::longest(scenario, &channels, &tables, &requests);
        let memories = memories::resolve(scenario, &layout, &channels, &tables, root);
        let losses = losses::resolve(scenario, &layout, &channels, root);
        Ok(Self { scenario, layout, channels, tables, frames, memories, losses, requests })
    }

    /// Returns the memory of a port.
    pub fn memory_of(&self, port: LinkIndex) -> Option<&MemoryConfig> {
        self.memories.iter().find(|memory| memory.ports.contains(&port))
    }

    /// Returns K for a switch port that has a table; `None` if its buffer is unlimited.
    pub fn capacity(&self, port: LinkIndex) -> Option<u32> {
        let own = || self.tables.ports[port].and_then(|(_, port)| port.buffer.cells());
        self.memory_of(port).map_or_else(own, |memory| Some(memories::capacity(memory)))
    }

    /// Builds the network for a run with `seed`.
    pub fn network(self, seed: u64) -> Network {
        let Self {
            scenario, layout: Layout { mut graph, flows, bottleneck }, channels, tables, memories, losses, ..
        } = self;
        for (link, port) in graph.links.iter_mut().zip(&tables.ports) {
            if let Some((_, port)) = port {
                link.buffer = port.buffer.cells();
                link.policy = port.policy.clone();
                link.scheduler = port.scheduler.clone();
                link.allocator.clone_from(&port.allocator);
                link.marking.clone_from(&port.marking);
            }
            if graph.nodes[link.to].kind != NodeKind::Host {
                link.edge = tables.edges[link.from].cloned();
            }
        }
        for (link, rules) in losses {
            let LinkRules { losses, late, wire } = rules;
            let link = &mut graph.links[link];
            (link.losses, link.late, link.wire) = (losses, late, wire);
        }
        for memory in &memories {
            for &port in &memory.ports {
                graph.links[port].buffer = Some(memories::capacity(memory));
            }
        }
        let Channels { mut vcs, merges, of_flow } = channels;
        for (vc, own) in vcs.iter_mut().zip(&tables.vcs) {
            if let Some((_, own)) = own {
                vc.contract.clone_from(&own.gfr);
                vc.tagged = own.tagged;
                vc.class = own.class;
                vc.priority = own.priority;
            }
        }
        for &[data_vc, ack_vc] in &of_flow {
            // Each direction has its own loop. Both use the parameters of the data VC.
            let abr = tables.vc(data_vc).and_then(|own| own.abr.as_ref());
            for (vc, partner) in [(data_vc, ack_vc), (ack_vc, data_vc)].into_iter().filter(|_| abr.is_some()) {
                vcs[vc].abr = abr.cloned();
                vcs[vc].partner = Some(partner);
            }
        }
        let flow = |((Route { name, start, .. }, [data_vc, ack_vc]), own): ((Route, [VcIndex; 2]), &Option<_>)| {
            let own: Option<&crate::scenario::FlowOptions> = *own;
            let stack = scenario.stack_with(own).map(StackConfig::sizes);
            let tcp = match stack {
                Some(sizes) => sizes.tcp(),
                None => own.and_then(|own| own.tcp.as_ref()).unwrap_or(&scenario.tcp).clone(),
            };
            let start = own.and_then(|own| own.start).unwrap_or(start);
            let traffic = own.and_then(|own| own.traffic.clone()).unwrap_or_default();
            Flow { name, data_vc, ack_vc, start, tcp, traffic, outside: stack.is_some() }
        };
        let flows = flows.into_iter().zip(of_flow).zip(&tables.flows).map(flow).collect();
        Network {
            seed,
            duration: scenario.duration,
            until: scenario.until,
            nodes: graph.nodes,
            links: graph.links,
            memories,
            vcs,
            merges,
            flows,
            requests: self.requests,
            bottleneck,
            tie_order: scenario.switch.tie_order,
            service_order: scenario.switch.service_order,
            switching: scenario.switching(),
            host: scenario.host.clone(),
            aal5: scenario.framing(),
            file_size: scenario.measure.file_size,
            measure: MeasureWindow { from: scenario.measure.from, to: scenario.measure.to },
            delays: DelayChoice::None,
            recording: None,
        }
    }
}
