//! Builds the network for the engines from a checked scenario.

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::delay::DelayChoice;
use celltrain_core::index::VcIndex;
use celltrain_core::network::{Flow, MeasureWindow, Network, NodeKind};

use crate::changes::ChangedLink;
use crate::channels::Channels;
use crate::fault::Faults;
use crate::losses::LinkRules;
use crate::memories;
use crate::resolved::ResolvedScenario;
use crate::scenario::Scenario;
use crate::scope::Scope;
use crate::stack::StackConfig;
use crate::topology::{Layout, Route};

/// Builds the network of a checked scenario for a run with `seed`.
pub fn network(scenario: &Scenario, seed: u64) -> Network {
    network_unless(scenario, seed, &CancellationToken::never()).expect("no test cancels a run")
}

/// Builds the network of a checked scenario, unless the token cancels the work.
///
/// # Errors
/// Returns [`Interrupted`] if the token is cancelled.
pub fn network_unless(scenario: &Scenario, seed: u64, token: &CancellationToken<'_>) -> Result<Network, Interrupted> {
    let layout = scenario.topology.config().lay_out(token)?;
    let mut none = Faults::default();
    Ok(ResolvedScenario::of(scenario, layout, &mut Scope::root(&mut none, &[], token))?.network(seed))
}

impl ResolvedScenario<'_> {
    /// Builds the network for a run with `seed`.
    pub(crate) fn network(self, seed: u64) -> Network {
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
            let LinkRules { losses, late, wire, changes } = rules;
            let link = &mut graph.links[link];
            (link.losses, link.late, link.wire) = (losses, late, wire);
            if let Some(ChangedLink { changes, rate, delay }) = changes {
                (link.changes, link.rate, link.delay) = (Some(Box::new(changes)), rate, delay);
            }
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
            // Each direction of an ABR connection has a separate control loop. The two loops use the parameters of the
            // data VC.
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
