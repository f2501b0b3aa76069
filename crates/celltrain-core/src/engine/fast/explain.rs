//! Explains which implementation runs for each port, and why: `celltrain run FILE --explain-plan`.

use super::plan::{MemoryPlace, Role};
use super::port_builder::{PortBuilder, PortSet};
use super::port_plan::PortMode;
use super::support::needs_reference;
use crate::cancellation::{CancellationToken, Interrupted};
use crate::index::LinkIndex;
use crate::network::{Network, Next};

/// A port's implementation and the reason for choosing it, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortExplanation {
    /// The port's link.
    pub link: LinkIndex,
    /// The type that implements the port, such as `TrainPort<Counted>`, or the role of a port that needs none.
    pub code: String,
    /// Choices in addition to the type, such as `Effects::FrameEnds`.
    pub details: Vec<String>,
    /// The reason for choosing this implementation.
    pub why: String,
    /// The names of the ports and hosts that the port's cells reach next.
    pub feeds: Vec<String>,
}

/// For each link of a network, explains which implementation its port has if no probe looks at queues.
pub(in crate::engine) fn explain(
    network: &Network,
    token: &CancellationToken<'_>,
) -> Result<Vec<PortExplanation>, Interrupted> {
    let builder = PortBuilder::new(network, PortMode::default(), None, None, token)?;
    let by_reference = needs_reference(network);
    let set = if by_reference.is_some() { PortSet::default() } else { builder.ports()? };
    let (PortSet { ports, links, plans, .. }, PortBuilder { plan, routing, .. }) = (set, builder);
    let explain = |link: LinkIndex| {
        let by_engine = || match plan.roles[link] {
            Role::Host(_) => ("host".into(), Vec::new(), "frames leave a host whole and in order".to_string()),
            Role::Pausable(_) => {
                ("pausable host".into(), Vec::new(), "the next switch may pause the link of the host".to_string())
            }
            Role::Shaped(_) => {
                ("shaped".into(), Vec::new(), "the port sends packets at the rates of its VCs".to_string())
            }
            Role::Transparent => (
                "transparent".into(),
                Vec::new(),
                "only one link feeds the port, and it is no faster than the port's link, so no cell ever waits"
                    .to_string(),
            ),
            Role::Contended(port) => {
                let unit = ports[links.unit(port).0].as_ref();
                let name = unit.map_or("AtOncePort".into(), |unit| unit.name());
                (
                    name,
                    unit.map_or(Vec::new(), |unit| unit.queue(MemoryPlace::default()).details()),
                    plans[port].1.clone(),
                )
            }
        };
        let (code, details, why): (String, Vec<String>, String) = match by_reference {
            Some(reason) => ("reference".into(), Vec::new(), reason.to_string()),
            None => by_engine(),
        };
        let mut feeds = Vec::new();
        for next in &routing.next[link] {
            let name = match *next {
                Next::Host { .. } => &network.nodes[network.links[link].to].name,
                Next::Port { link, .. } => &network.links[link].name,
            };
            if !feeds.contains(name) {
                feeds.push(name.clone());
            }
        }
        PortExplanation { link, code, details, why, feeds }
    };
    Ok(network.links.keys().map(explain).collect())
}
