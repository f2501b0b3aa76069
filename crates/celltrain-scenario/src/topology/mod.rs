//! Topologies: which nodes, links and flows a scenario has.
//!
//! A new topology is one file beside these, two lines below, one page under `docs/models/` and one scenario;
//! its name in scenarios, its Python class and the tests for all topologies follow. `docs/adding-a-topology.md` does it
//! step by step.

pub(crate) mod links;

pub mod chain;
pub mod internetwork;
pub mod n_source;
pub mod network;
pub mod star;
pub mod vc_merge;

use celltrain_core::index::LinkIndex;
use celltrain_core::memory_estimate::MemoryEstimate;
use celltrain_core::network::Graph;
use celltrain_core::registry;
use celltrain_core::stop::{Interrupted, Stop};
use celltrain_core::units::Duration;

use crate::fault::Warning;
use crate::limits::MAX_CROSSINGS;
use crate::scope::Scope;

registry! {
    /// The network, by kind: one table whose key is the kind's name.
    pub enum Topology(module::Config) {
        /// N sources, two switches, N destinations; only the link between the switches congests.
        n_source: NSource,
        /// Groups of sources whose VCs merge in local switches, one VC a group over a shared link.
        vc_merge: VcMerge,
        /// IP networks at both sides of an ATM network, each source and destination behind an edge device of its own.
        internetwork: Internetwork,
        /// Switches in a row: long connections cross all of them, others one link each (parking lot).
        chain: Chain,
        /// Hosts around one switch: all send to one, each to its neighbour, or each to every other.
        star: Star,
        /// Any hosts, switches, links and flows.
        network: Network,
    }

    /// Its settings.
    pub fn config(&self) -> &dyn Configure { |config| config }

    /// A small one of every kind, for tests that hold for all.
    #[cfg(test)]
    pub(crate) fn samples() -> Vec<Self> { |mod topology| topology::sample().into() }
}

/// What every topology's `Config` can do.
pub trait Configure {
    /// How much there is of the network, worked out without laying it out.
    fn size(&self) -> Size;

    /// Judges the settings; the layout, where finding their faults took one. It is handed the scope of the topology's
    /// table.
    ///
    /// # Errors
    /// When it is told to stop.
    fn check(&self, scope: &mut Scope<'_>, stop: &Stop<'_>) -> Result<Option<Layout>, Interrupted>;

    /// The graph, and the paths of the flows. Asked when nothing is wrong with the settings.
    ///
    /// # Errors
    /// When it is told to stop.
    fn lay_out(&self, stop: &Stop<'_>) -> Result<Layout, Interrupted>;

    /// Which ports of switches need a table; the others have room without limit unless a table is theirs.
    fn congests(&self) -> Congests {
        Congests::Bottleneck
    }

    /// Judges what only the layout shows, and what need not keep the rest of the scenario from being checked.
    ///
    /// # Errors
    /// When it is told to stop.
    fn check_layout(&self, layout: &Layout, scope: &mut Scope<'_>, stop: &Stop<'_>) -> Result<(), Interrupted> {
        let _ = (layout, scope, stop);
        Ok(())
    }

    /// What to look at before trusting a result.
    ///
    /// # Errors
    /// When it is told to stop.
    fn warnings(&self, layout: &Layout, stop: &Stop<'_>) -> Result<Vec<Warning>, Interrupted> {
        let _ = (layout, stop);
        Ok(Vec::new())
    }
}

/// How much there is of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The key that makes it large, and its value: a network that is too large is refused with them.
    pub key: (&'static str, u64),
    /// Hosts, switches and edge devices.
    pub nodes: u64,
    /// One-way links.
    pub links: u64,
    /// Connections.
    pub flows: u64,
    /// How often data crosses links in all; the least, where only the layout shows it.
    pub crossings: u64,
}

impl Size {
    /// Estimates the memory of a run before the network is laid out.
    pub fn memory(&self) -> MemoryEstimate {
        MemoryEstimate::of_size(self.nodes, self.links, self.flows, self.crossings)
    }
}

/// Ports of switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congests {
    /// The bottleneck alone.
    Bottleneck,
    /// The bottleneck, and every port that the data of several flows crosses.
    SharedLinks,
    /// Every port that a flow crosses, each known by its own name.
    Everywhere,
}

/// A scenario's graph and the paths of its flows.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Nodes and links.
    pub graph: Graph,
    /// Flows in order.
    pub flows: Vec<Route>,
    /// The link efficiency is measured at.
    pub bottleneck: LinkIndex,
}

/// One flow's way.
#[derive(Clone, Debug)]
pub struct Route {
    /// Its name.
    pub name: String,
    /// Links of its data.
    pub data: Vec<LinkIndex>,
    /// Links of its acknowledgements.
    pub acks: Vec<LinkIndex>,
    /// When it starts.
    pub start: Duration,
    /// The name of its VC, if that is not its own.
    pub vc: Option<String>,
}

impl Route {
    /// A flow from time 0 on, over a VC of its own. Its acknowledgements go back the same way, over links that
    /// [`Graph::connect`] made.
    pub fn there_and_back(name: String, data: Vec<LinkIndex>) -> Self {
        let acks = data.iter().rev().map(|&link| Graph::way_back(link)).collect();
        Self { name, data, acks, start: Duration::default(), vc: None }
    }
}

impl Topology {
    /// Checks it; its layout, where finding its faults took one. It is handed the scope of the scenario.
    ///
    /// # Errors
    /// When it is told to stop.
    pub fn check(&self, root: &mut Scope<'_>, stop: &Stop<'_>) -> Result<Option<Layout>, Interrupted> {
        let (mut of_all, size) = (root.at("topology"), self.config().size());
        let mut own = of_all.at(self.name());
        let layout = self.config().check(&mut own, stop)?;
        // A topology written in a few numbers is not larger than what a general network may be.
        if size.crossings > MAX_CROSSINGS as u64 {
            let Size { key: (key, _), flows, crossings, .. } = size;
            own.at(key).refuse(format!(
                "makes {flows} flows, which cross {crossings} links in all; {MAX_CROSSINGS} is the most"
            ));
        }
        Ok(layout)
    }

    /// Checks what only the layout shows. It is handed the scope of the scenario.
    ///
    /// # Errors
    /// When it is told to stop.
    pub fn check_layout(&self, layout: &Layout, root: &mut Scope<'_>, stop: &Stop<'_>) -> Result<(), Interrupted> {
        self.config().check_layout(layout, &mut root.at("topology").at(self.name()), stop)
    }
}

#[cfg(test)]
mod conformance;
