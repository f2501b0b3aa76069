//! The network that an engine runs: nodes, links, VCs and flows with dense indices.
//!
//! Every link is one-way and has its output port at its start, so a port and its link share one index. A VC is a path
//! of links. On each link, a VC has a separate label, numbered from 0 without gaps, because VPI and VCI are swapped at
//! every switch. So a port can store its per-VC state in a plain array.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod changes;
mod graph;
mod losses;
mod memories;
mod recording;
mod routing;
mod times;

pub use recording::Recording;

use std::ops::Range;

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use crate::aal5::{Aal5Options, Framing};
use crate::abr::{Parameters, allocator::AllocatorConfig};
use crate::delay_choice::DelayChoice;
use crate::edge_device::EdgeConfig;
use crate::gfr::Gfr;
use crate::host::HostOptions;
use crate::index::{FlowIndex, LinkIndex, MemoryIndex, MergeIndex, NodeIndex, VcIndex};
use crate::link_changes::LinkChanges;
use crate::link_loss::{DelayRule, LossRule};
use crate::marking::{Marker, MarkingConfig};
use crate::memory::MemoryConfig;
use crate::policy::{BufferPolicy, PolicyConfig};
use crate::requests::Requests;
use crate::rng::Stream;
use crate::scheduler::{Class, SchedulerConfig, Service, VcKind};
use crate::switching::{PacketAdmission, Switching};
use crate::tcp::TcpConfig;
use crate::tie::{ServiceOrder, TieOrder};
use crate::traffic::TrafficConfig;
use crate::units::{BitRate, Bytes, Duration};
use crate::until::Until;
use crate::wire::Wire;
pub use graph::Graph;
pub use routing::{Next, Routing};
pub use times::LinkTimes;
pub(crate) use times::PAUSE_FRAME_BITS;

/// The complete input of a run.
#[derive(Clone, Debug)]
pub struct Network {
    /// Seed of every random stream.
    pub seed: u64,
    /// Maximum duration of the run. Events exactly at its end still happen.
    pub duration: Duration,
    /// Determines whether the run may end earlier.
    pub until: Until,
    /// Hosts and switches.
    pub nodes: TiVec<NodeIndex, Node>,
    /// One-way links. Each has an output port at its start.
    pub links: TiVec<LinkIndex, Link>,
    /// Memories shared by output ports of one switch. A port belongs to at most one memory.
    pub memories: TiVec<MemoryIndex, MemoryConfig>,
    /// Virtual channels.
    pub vcs: TiVec<VcIndex, Vc>,
    /// Merges of virtual channels.
    pub merges: TiVec<MergeIndex, Merge>,
    /// TCP connections, and packet flows without acknowledgements.
    pub flows: TiVec<FlowIndex, Flow>,
    /// Connections that open and close during the run.
    pub requests: Requests,
    /// The link whose capacity is the reference for efficiency.
    pub bottleneck: LinkIndex,
    /// Order of cells that reach a port at the same instant.
    pub tie_order: TieOrder,
    /// Order of a departure and arrivals at a port in the same instant.
    pub service_order: ServiceOrder,
    /// Rules by which switches forward packets with packet framing.
    pub switching: Switching,
    /// Properties of hosts other than their TCP.
    pub host: HostOptions,
    /// Framing.
    pub aal5: Aal5Options,
    /// L: size of the files whose delay is measured; `None` if no file delay is measured.
    pub file_size: Option<Bytes>,
    /// The part of a run that rates and counters cover.
    pub measure: MeasureWindow,
    /// Delays of packets to measure.
    pub delays: DelayChoice,
    /// Records the questions to the policies, if the run is to have a [certificate](crate::certificate).
    pub recording: Option<Recording>,
}

/// The part of a run that rates and counters cover. Default: the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeasureWindow {
    /// Start of the measured time; the start of the run if not given.
    pub from: Option<Duration>,
    /// End of the measured time; the end of the run if not given.
    pub to: Option<Duration>,
}

/// A host or a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The node's name in the scenario.
    pub name: String,
    /// Its role.
    pub kind: NodeKind,
}

/// The role of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A host, which sends and receives. Its output queue is unlimited.
    Host,
    /// A switch, which forwards cells. It has one buffer at each output.
    Switch,
    /// Connects hosts to the ATM network. It takes whole packets from hosts, and sends them into the network cell by
    /// cell. It can only be the first or the last node between a path's two hosts.
    EdgeDevice,
}

/// A one-way link and the output port at its start.
#[derive(Clone, Debug)]
pub struct Link {
    /// The port's name in scenarios and results, for example `sw1->sw2`.
    pub name: String,
    /// The node at the start of the link.
    pub from: NodeIndex,
    /// The node at the end of the link.
    pub to: NodeIndex,
    /// Transmission rate of the link. If it changes, the highest rate.
    pub rate: BitRate,
    /// Propagation delay. If it changes, the shortest delay.
    pub delay: Duration,
    /// Number of cells that can wait; `None` if unlimited. Unused if the port is in a [memory](crate::memory).
    pub buffer: Option<u32>,
    /// The port's policy.
    pub policy: PolicyConfig,
    /// The scheduler, which selects the next cell to send.
    pub scheduler: SchedulerConfig,
    /// The allocator of the port, which controls the rates of ABR sources; `None` without one.
    pub allocator: Option<AllocatorConfig>,
    /// Rules for marking packets; `None` if the port marks no packets.
    pub marking: Option<MarkingConfig>,
    /// The packet buffer, if the link leads from an edge device into the ATM network.
    pub edge: Option<EdgeConfig>,
    /// Rules by which the link loses cells or packets.
    pub losses: Vec<LossRule>,
    /// Rules by which the link delays packets.
    pub late: Vec<DelayRule>,
    /// The unit in which the link carries packets.
    pub wire: Wire,
    /// Changes of the rate or the delay during the run, if there are any. Links with such changes carry cells.
    pub changes: Option<Box<LinkChanges>>,
}

impl Link {
    /// Returns whether the scheduler and the policy of the port use a single queue.
    pub fn is_fifo(&self) -> bool {
        self.scheduler == SchedulerConfig::default() && !self.policy.has_queues()
    }

    /// Returns whether the link has rules for losses or delays, or a delay that changes.
    pub fn has_rules(&self) -> bool {
        !self.losses.is_empty() || self.has_delay_line()
    }

    /// Returns the settings of the port that results show: its buffer, the name of its policy or discard algorithm, and
    /// its threshold.
    pub(crate) fn port_settings(&self) -> (Option<u32>, &'static str, Option<u32>) {
        match &self.edge {
            Some(edge) => (edge.buffer, edge.discard.name(), None),
            None => (self.buffer, self.policy.name(), self.policy.threshold_cells(self.buffer)),
        }
    }
}

/// A virtual channel: the links that its cells cross, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vc {
    /// The VC's name in scenarios: the name of its flow, followed by `-acks` for the VC of the acknowledgements.
    pub name: String,
    /// Its links.
    pub path: Vec<LinkIndex>,
    /// The merge to which the VC belongs, if any.
    pub merge: Option<MergeIndex>,
    /// The network's guarantee to the VC. It is enforced at the switch at the end of the VC's first link.
    pub contract: Option<Gfr>,
    /// True if the VC's source tags all of its cells (CLP = 1).
    pub tagged: bool,
    /// The VC's service class, used by schedulers.
    pub class: Class,
    /// The VC's priority in memories shared by ports, 0 to 7.
    pub priority: u8,
    /// Parameters of the rate control, if the VC's service is ABR.
    pub abr: Option<Parameters>,
    /// If `abr` is set, the VC in the other direction, which carries this VC's backward RM cells.
    pub partner: Option<VcIndex>,
}

/// Several VCs that merge into one. After the port where they meet, they share a label. That port keeps each frame
/// until it is complete and then sends its cells back to back, so frames are not interleaved (`docs/mechanisms.md` 7;
/// ATM Forum 97-0831, section 4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merge {
    /// The name of the merged VC.
    pub name: String,
    /// The link on which the merged VCs leave the merging switch: the first link that all branches cross.
    pub at: LinkIndex,
}

impl Merge {
    /// Largest number of branches of a merge: the branch number in a cell has eight bits.
    pub const MAX_BRANCHES: usize = 256;
}

/// A TCP connection, or a packet flow without acknowledgements.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The flow's name in the scenario.
    pub name: String,
    /// The VC of the flow's data.
    pub data_vc: VcIndex,
    /// The VC of the flow's acknowledgements, if there are any.
    pub ack_vc: VcIndex,
    /// Start time.
    pub start: Duration,
    /// TCP settings of the flow, if it sends over TCP.
    pub tcp: TcpConfig,
    /// The data to send, and its timing.
    pub traffic: TrafficConfig,
    /// True if both ends are end systems outside the simulation. The simulation sends nothing for such a flow. In its
    /// `tcp`, the MSS is the payload of a full frame, and the receive window is the larger buffer of its ends.
    pub outside: bool,
}

impl Flow {
    /// Returns whether the simulation sends the flow's data over its own TCP.
    pub fn uses_tcp(&self) -> bool {
        !self.outside && self.retransmits()
    }

    /// Returns whether the flow's ends retransmit lost data.
    pub fn retransmits(&self) -> bool {
        self.outside || self.traffic.packets().is_none()
    }

    /// Returns the payload and the number of cells of the flow's data frames.
    pub fn frame(&self, aal5: &Aal5Options) -> (u64, u32) {
        match self.traffic.packets().filter(|_| !self.outside) {
            Some(pattern) => (pattern.packet.bytes, aal5.packet_cells(pattern.packet.bytes)),
            None => (self.tcp.options().mss.bytes, aal5.segment_cells(self.tcp.options().mss.bytes)),
        }
    }
}

impl Network {
    /// Creates a network without VCs and flows, with the default options and the first link as its bottleneck.
    pub fn new(Graph { nodes, links }: Graph, duration: Duration) -> Self {
        Self {
            seed: 1,
            duration,
            until: Until::default(),
            nodes,
            links,
            memories: TiVec::new(),
            vcs: TiVec::new(),
            merges: TiVec::new(),
            flows: TiVec::new(),
            requests: Requests::default(),
            bottleneck: LinkIndex::default(),
            tie_order: TieOrder::default(),
            service_order: ServiceOrder::default(),
            switching: Switching::default(),
            host: HostOptions::default(),
            aal5: Aal5Options::default(),
            file_size: None,
            measure: MeasureWindow::default(),
            delays: DelayChoice::None,
            recording: None,
        }
    }

    /// Returns the names of the VCs that cross a link, by label.
    pub fn vc_names<'a>(&'a self, routing: &Routing, link: LinkIndex) -> Vec<&'a str> {
        let name = |&vc: &VcIndex| {
            let vc = &self.vcs[vc];
            self.merged_at(vc, link).map_or(vc.name.as_str(), |merge| self.merges[merge].name.as_str())
        };
        routing.vcs[link].iter().map(name).collect()
    }

    /// Returns the largest fraction of a flow's data rate that its application can receive: the payload of its full
    /// frames, less the RM cells of an ABR VC (`docs/mechanisms.md` 1.1).
    pub fn payload_share(&self, flow: &Flow) -> f64 {
        let (payload, cells) = flow.frame(&self.aal5);
        self.aal5.payload_share(payload, cells) * self.data_share(flow)
    }

    /// Returns the fraction of data cells in a flow's rate. The fraction is below 1 only with ABR.
    pub fn data_share(&self, flow: &Flow) -> f64 {
        self.vcs[flow.data_vc].abr.as_ref().map_or(1.0, Parameters::data_share)
    }

    /// Returns how the port of a link admits packets, if it stores each packet whole before it sends it. Only switches
    /// with packet framing store packets.
    pub fn stores(&self, link: LinkIndex) -> Option<PacketAdmission> {
        let Switching { cut_through, admission } = self.switching;
        let delimits = self.aal5.framing == Framing::Packets;
        let is_switch = self.nodes[self.links[link].from].kind == NodeKind::Switch;
        (delimits && is_switch && !cut_through).then_some(admission)
    }

    /// Creates the policy of a port.
    pub(crate) fn policy(&self, routing: &Routing, link: LinkIndex) -> Box<dyn BufferPolicy> {
        let Link { policy, buffer, marking, .. } = &self.links[link];
        let policy = policy.build(*buffer, &self.vc_names(routing, link));
        let policy = match marking {
            Some(marking) => Box::new(marking.dropping(policy, *buffer)),
            None => policy,
        };
        match &self.recording {
            Some(recording) => recording.policy(policy, link),
            None => policy,
        }
    }

    /// Creates the marker of a port, if it marks packets.
    pub(crate) fn marker(&self, link: LinkIndex) -> Option<Marker> {
        let Link { name, buffer, marking, .. } = &self.links[link];
        let draws = || Stream::new(self.seed, &format!("port/{name}/marks"));
        marking.as_ref().map(|marking| marking.build(*buffer, draws()))
    }

    /// Creates the queues of a port if it has several: the queues of its policy, or otherwise of its scheduler.
    pub(crate) fn service(&self, routing: &Routing, link: LinkIndex) -> Option<Service> {
        let Link { policy, scheduler, .. } = &self.links[link];
        let own = policy.has_queues().then(|| policy.queues(&self.vc_names(routing, link), self.clock()));
        own.flatten().or_else(|| scheduler.build(&self.vc_kinds(routing, link)))
    }

    /// Returns the VCs that cross a link, by label, as input for the link's scheduler.
    pub fn vc_kinds<'a>(&'a self, routing: &Routing, link: LinkIndex) -> Vec<VcKind<'a>> {
        let classes = routing.vcs[link].iter().map(|&vc| self.vcs[vc].class);
        self.vc_names(routing, link).into_iter().zip(classes).map(|(name, class)| VcKind { name, class }).collect()
    }

    /// Returns the merge in which a VC shares its label on a link with other branches, if any.
    pub fn merged_at(&self, vc: &Vc, link: LinkIndex) -> Option<MergeIndex> {
        let place = |link: LinkIndex| vc.path.iter().position(|&other| other == link);
        vc.merge.filter(|&merge| place(link) > place(self.merges[merge].at))
    }

    /// Returns, for each VC, the first branch of its merge, or the VC itself if it does not merge.
    pub fn first_branches(&self) -> TiVec<VcIndex, VcIndex> {
        let mut of_merge: TiVec<MergeIndex, Option<VcIndex>> = ti_vec![None; self.merges.len()];
        let first =
            |(number, vc): (VcIndex, &Vc)| vc.merge.map_or(number, |merge| *of_merge[merge].get_or_insert(number));
        self.vcs.iter_enumerated().map(first).collect()
    }

    /// Returns the host at which a VC begins.
    pub fn source(&self, vc: VcIndex) -> NodeIndex {
        self.links[self.vcs[vc].path[0]].from
    }

    /// Returns the host at which a VC ends.
    pub fn destination(&self, vc: VcIndex) -> NodeIndex {
        self.links[*self.vcs[vc].path.last().expect("every path has at least one link")].to
    }

    /// Returns the part of a VC's path that belongs to the ATM network, see [`atm_part`].
    pub fn atm_part(&self, vc: &Vc) -> Range<usize> {
        atm_part(&self.nodes, &self.links, &vc.path)
    }

    /// Returns the round-trip propagation delay over the ATM part of a VC's path, limited to the longest `Duration`.
    /// The VC's RM cells cross only this part.
    pub fn round_trip(&self, vc: &Vc) -> Duration {
        let one_way = |vc: &Vc| -> u64 {
            let delays = vc.path[self.atm_part(vc)].iter().map(|&link| self.links[link].delay.picoseconds);
            delays.fold(0, u64::saturating_add)
        };
        let back = vc.partner.map_or(vc, |partner| &self.vcs[partner]);
        Duration { picoseconds: one_way(vc).saturating_add(one_way(back)) }
    }
}

/// Returns the part of a path that belongs to the ATM network, as a range of positions in the path. A shaped VC is
/// shaped at the first link of this part. The links before and after the part connect hosts and edge devices.
#[expect(clippy::arithmetic_side_effects, reason = "no underflow: every path has at least one link")]
pub fn atm_part(
    nodes: &TiSlice<NodeIndex, Node>,
    links: &TiSlice<LinkIndex, Link>,
    path: &[LinkIndex],
) -> Range<usize> {
    let at_edge = |node: NodeIndex| nodes[node].kind == NodeKind::EdgeDevice;
    let last = path.len() - 1;
    let start = usize::from(last > 0 && at_edge(links[path[0]].to));
    let end = last - usize::from(last > start && at_edge(links[path[last]].from));
    start..end + 1
}

#[cfg(test)]
pub(crate) mod tests;
