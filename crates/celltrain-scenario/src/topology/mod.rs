//! Topologies: the nodes, links and flows of a scenario.
//!
//! A new topology needs one file in this directory, two lines in this file, one page under `docs/models/` and one
//! scenario. The topology then has a name in scenarios and a Python class, and the tests for all topologies include it.
//! `docs/adding-a-topology.md` explains the steps.

pub(crate) mod search;

pub mod chain;
pub mod internetwork;
pub mod leaf_spine;
pub mod links;
pub mod n_source;
pub mod network;
pub mod star;
pub mod vc_merge;

use celltrain_core::cancellation::{CancellationToken, Interrupted};
use celltrain_core::index::LinkIndex;
use celltrain_core::network::Graph;
use celltrain_core::registry;
use celltrain_core::units::Duration;

use crate::fault::Warning;
use crate::limits::MAX_CROSSINGS;
use crate::scope::Scope;

registry! {
    /// The topology: a table whose only key is the name of its kind.
    pub enum Topology(module::Config) {
        /// N sources, two switches and N destinations. Only the link between the two switches is congested.
        n_source: NSource,
        /// Groups of sources. The VCs of a group merge into one VC at a local switch, and the merged VCs of all groups
        /// share a link.
        vc_merge: VcMerge,
        /// IP networks on two sides of an ATM network. Each source and each destination has its own edge device.
        internetwork: Internetwork,
        /// Switches in a row (parking lot). Long connections cross all links between switches, and each cross
        /// connection crosses one of these links.
        chain: Chain,
        /// Hosts around one switch. All other hosts send to one host, or each host sends to its neighbour, or each host
        /// sends to every other host.
        star: Star,
        /// Leaf switches with hosts, and a link from each leaf switch to every spine switch. The traffic consists of
        /// requests and incasts.
        leaf_spine: LeafSpine,
        /// A general network of any hosts, switches, edge devices, links and flows.
        network: Network,
    }

    /// Returns the settings of the topology.
    pub fn config(&self) -> &dyn Configure { |config| config }

    /// Returns a small sample of every topology, for tests that apply to all topologies.
    #[cfg(test)]
    pub(crate) fn samples() -> Vec<Self> { |mod topology| topology::sample().into() }
}

/// Interface that the `Config` of every topology implements.
pub trait Configure {
    /// Returns the size of the topology's network, without its layout.
    fn size(&self) -> Size;

    /// Checks the settings of the topology. Returns the layout if the checks needed it. `scope` is the scope of the
    /// topology's table.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if the token is cancelled.
    fn check(&self, scope: &mut Scope<'_>) -> Result<Option<Layout>, Interrupted>;

    /// Creates the graph of the network and the paths of its flows. This function is called only if the settings have
    /// no faults.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if the token is cancelled.
    fn lay_out(&self, token: &CancellationToken<'_>) -> Result<Layout, Interrupted>;

    /// Returns which switch ports need a table. Any other port has an unlimited buffer unless it has a table.
    fn congests(&self) -> Congests {
        Congests::Bottleneck
    }

    /// Reports that the topology has no flow and the scenario has no other traffic.
    fn without_flows(&self, scope: &mut Scope<'_>) {
        scope.refuse("has no flows; write a table [requests.NAME] or [incast.NAME]");
    }

    /// Checks properties of the layout whose faults do not prevent other checks.
    fn check_layout(&self, layout: &Layout, scope: &mut Scope<'_>) {
        let _ = (layout, scope);
    }

    /// Returns warnings about the topology to consider before trusting a result.
    fn warnings(&self, layout: &Layout) -> Vec<Warning> {
        let _ = layout;
        Vec::new()
    }
}

/// The size of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Key and value of the setting that determines the size, for the message if the network is too large.
    pub key: (&'static str, u64),
    /// Number of hosts, switches and edge devices.
    pub nodes: u64,
    /// Number of one-way links.
    pub links: u64,
    /// Number of flows.
    pub flows: u64,
    /// Number of links crossed by data, summed over all flows. If the number is unknown before the layout, this is a
    /// lower bound.
    pub crossings: u64,
}

/// Determines which switch ports need a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congests {
    /// Only the bottleneck port needs a table.
    Bottleneck,
    /// The bottleneck port, and every port crossed by the data of more than one flow, need a table.
    SharedLinks,
    /// Every port that a flow crosses needs a table. A message names each port without a table.
    Everywhere,
}

/// The graph of a network and the routes of its flows.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Nodes and links of the network.
    pub graph: Graph,
    /// Routes of the flows, in the order of the flows.
    pub flows: Vec<Route>,
    /// The link at which efficiency is measured.
    pub bottleneck: LinkIndex,
}

/// The route of a flow.
#[derive(Clone, Debug)]
pub struct Route {
    /// Name of the flow.
    pub name: String,
    /// Links that the flow's data crosses.
    pub data: Vec<LinkIndex>,
    /// Links that the flow's acknowledgements cross.
    pub acks: Vec<LinkIndex>,
    /// Time at which the flow starts to send.
    pub start: Duration,
    /// Name of the flow's data VC, if it differs from the flow's name.
    pub vc: Option<String>,
}

impl Route {
    /// Creates the route of a flow that starts at time 0 and has a VC of its own. Acknowledgements return the same way,
    /// over links created by [`Graph::connect`].
    pub fn there_and_back(name: String, data: Vec<LinkIndex>) -> Self {
        let acks = data.iter().rev().map(|&link| Graph::way_back(link)).collect();
        Self { name, data, acks, start: Duration::default(), vc: None }
    }
}

impl Topology {
    /// Checks the topology. Returns the layout if the checks needed it. `root` is the scope of the scenario. If
    /// `has_requests` is true, the topology needs no flows.
    ///
    /// # Errors
    /// Returns [`Interrupted`] if the token is cancelled.
    pub fn check(&self, has_requests: bool, root: &mut Scope<'_>) -> Result<Option<Layout>, Interrupted> {
        let (mut of_all, size) = (root.at("topology"), self.config().size());
        let mut own = of_all.at(self.name());
        let layout = self.config().check(&mut own)?;
        // The maximum number of links crossed also applies to topologies that a few numbers describe.
        if size.crossings > MAX_CROSSINGS as u64 {
            let Size { key: (key, _), flows, crossings, .. } = size;
            own.at(key).refuse(format!(
                "makes {flows} flows, which cross {crossings} links in all; at most {MAX_CROSSINGS} crossings are \
                 possible"
            ));
        }
        if size.flows == 0 && !has_requests {
            self.config().without_flows(&mut own);
        }
        Ok(layout)
    }

    /// Checks properties of the layout. `root` is the scope of the scenario.
    pub fn check_layout(&self, layout: &Layout, root: &mut Scope<'_>) {
        self.config().check_layout(layout, &mut root.at("topology").at(self.name()));
    }
}

#[cfg(test)]
mod conformance;
