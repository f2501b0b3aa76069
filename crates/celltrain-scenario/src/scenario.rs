//! The scenario file's types: every key, its meaning, its unit and its default.

use std::collections::BTreeMap;

use celltrain_core::aal5::Aal5Options;
use celltrain_core::abr::Parameters;
use celltrain_core::abr::allocator::AllocatorConfig;
use celltrain_core::edge_device::EdgeConfig;
use celltrain_core::gfr::Gfr;
use celltrain_core::policy::PolicyConfig;
use celltrain_core::scheduler::{Class, SchedulerConfig};
use celltrain_core::tcp::{TcpConfig, TcpOptions};
use celltrain_core::tie::{ServiceOrder, TieOrder};
use celltrain_core::traffic::TrafficConfig;
use celltrain_core::units::{BitRate, Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One experiment: a network, its traffic, its buffers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it is, for people.
    #[serde(default)]
    pub name: String,
    /// How long to simulate.
    pub duration: Duration,
    /// Seed of every random choice; the same seed gives the same run.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// The network and its flows.
    pub topology: Topology,
    /// The TCP of every flow.
    #[serde(default = "vanilla")]
    pub tcp: TcpConfig,
    /// What single flows have of their own, by the flow's name or a range of names such as `tcp1-5`.
    #[serde(default)]
    pub flow: BTreeMap<String, FlowOptions>,
    /// What single VCs have of their own, by the VC's name or a range of names: a flow's VC has the flow's name, that of its
    /// acknowledgements ends in `-acks`.
    #[serde(default)]
    pub vc: BTreeMap<String, VcOptions>,
    /// Output ports of switches by name: the link's (`sw1->sw2`), `bottleneck`, a pattern of links (`local*->sw1`), or
    /// `default` for all others.
    #[serde(default)]
    pub port: BTreeMap<String, PortConfig>,
    /// Buffers of edge devices, for packets on their way into the ATM network, by the device's name or a pattern of names
    /// such as `*`.
    #[serde(default)]
    pub edge: BTreeMap<String, EdgeConfig>,
    /// What all switches have in common.
    #[serde(default)]
    pub switch: SwitchOptions,
    /// Framing.
    #[serde(default)]
    pub aal5: Aal5Options,
    /// What is measured beyond the usual.
    #[serde(default)]
    pub measure: MeasureOptions,
}

/// The network, by kind: one table whose key is the kind's name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Topology {
    /// N sources, two switches, N destinations; only the link between the switches congests.
    NSource(NSource),
    /// Groups of sources whose VCs merge in local switches, one VC a group over a shared link.
    VcMerge(VcMerge),
    /// IP networks at both sides of an ATM network, each source and destination behind an edge device of its own.
    Internetwork(Internetwork),
    /// Switches in a row: long connections cross all of them, others one link each (parking lot).
    Chain(Chain),
    /// Hosts around one switch: all send to one, each to its neighbour, or each to every other.
    Star(Star),
    /// Any hosts, switches, links and flows.
    Network(GeneralNetwork),
}

impl Topology {
    /// Every kind's name, in the order of the list.
    pub const NAMES: &[&str] = &["n_source", "vc_merge", "internetwork", "chain", "star", "network"];

    /// The kind's name.
    pub fn name(&self) -> &'static str {
        match self {
            Topology::NSource(_) => "n_source",
            Topology::VcMerge(_) => "vc_merge",
            Topology::Internetwork(_) => "internetwork",
            Topology::Chain(_) => "chain",
            Topology::Star(_) => "star",
            Topology::Network(_) => "network",
        }
    }
}

/// N sources send through two switches to N destinations, all links alike but those of single sources. Nodes are `source1`, `sw1`, `sw2`,
/// `destination1` and so on; flows are `tcp1` and so on; the port `bottleneck` is `sw1->sw2`.
///
/// Source: ATM Forum 96-1269, Figure 2.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NSource {
    /// N: sources, each with a destination and a connection of its own.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub sources: u32,
    /// Rate of every link.
    #[serde(default = "oc3")]
    pub link_rate: BitRate,
    /// Propagation delay of every link, one way; a connection crosses three.
    pub link_delay: Duration,
    /// Rates of the links between single sources and `sw1`, by the source's name, a range such as `source1-5`, or `default`;
    /// `link_rate` where there is none.
    #[serde(default)]
    pub access_rates: BTreeMap<String, BitRate>,
    /// Propagation delays of these links one way, in the same form: unequal round trips; `link_delay` where there is none.
    #[serde(default)]
    pub access_delays: BTreeMap<String, Duration>,
}

/// Sources in groups: each group sends to a local switch, which merges its VCs into one without interleaving frames; the
/// merged VCs share the link between two backbone switches and end at one destination a group. Nodes are `source1`,
/// `local1`, `sw1`, `sw2`, `destination1` and so on; flows are `tcp1` and so on, merged VCs `vc1` and so on; the port
/// `bottleneck` is `sw1->sw2`.
///
/// Source: ATM Forum 97-0831, Figure 6.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VcMerge {
    /// Merged VCs, each with a local switch and a destination of its own.
    #[schemars(range(min = 1, max = 100_000))]
    pub vcs: u32,
    /// Sources that merge into each of them, each with a connection of its own.
    #[schemars(range(min = 1, max = 256))]
    pub sources_per_vc: u32,
    /// Rate of every link.
    #[serde(default = "oc3")]
    pub link_rate: BitRate,
    /// Propagation delay one way of each of the three links behind the local switches.
    pub link_delay: Duration,
    /// Propagation delay one way from a source to its local switch.
    #[serde(default)]
    pub access_delay: Duration,
}

/// N sources, each behind an IP/ATM edge device, send through two switches to N destinations behind edge devices. Nodes
/// are `source1`, `edge1`, `sw1`, `sw2`, `far-edge1`, `destination1` and so on; flows are `tcp1` and so on, those of the
/// other direction follow; the port `bottleneck` is `sw1->sw2`.
///
/// Source: draft-jagan-e2e-traf-mgmt-00, Figure 1; `docs/mechanisms.md` 7.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Internetwork {
    /// N: sources, each with a destination and a connection of its own.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub sources: u32,
    /// Rate of every link.
    #[serde(default = "oc3")]
    pub link_rate: BitRate,
    /// Propagation delay one way between a host and its edge device.
    pub ip_delay: Duration,
    /// Propagation delay one way between the switches; between a switch and an edge device there is none.
    pub atm_delay: Duration,
    /// Whether every destination sends to its source as well.
    #[serde(default)]
    pub bidirectional: bool,
}

/// A chain of switches, also called a parking lot: m + 1 switches with m links between them, long connections that cross
/// all m, and c others on each. Nodes are `sw1` to `sw(m+1)`, `long-source1`, `long-destination1`, `cross-source1`,
/// `cross-destination1` and so on; flows are `long1` and so on, then `cross1` and so on link by link: those of the first
/// link are `cross1` to `crossC`, of C = `cross` in all. The port `bottleneck` is `sw1->sw2`.
///
/// Source: `docs/mechanisms.md` 7 (Chiussi, Xia and Kumar; Li, Siu, Tzeng, Ikeda and Suzuki).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// m: links between switches, one behind the other.
    #[schemars(range(min = 1, max = 10_000))]
    pub hops: u32,
    /// Connections that cross all of them.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100_000))]
    pub long: u32,
    /// c: connections that cross each of them and no other; they enter at one switch and leave at the next.
    #[schemars(range(min = 0, max = 100_000))]
    pub cross: u32,
    /// Rate of every link between switches.
    #[serde(default = "oc3")]
    pub link_rate: BitRate,
    /// Propagation delay of every link between switches, one way.
    pub link_delay: Duration,
    /// Rate of every link between a host and its switch; `link_rate` when absent.
    #[serde(default)]
    pub access_rate: Option<BitRate>,
    /// Propagation delay of these links, one way; `link_delay` when absent.
    #[serde(default)]
    pub access_delay: Option<Duration>,
}

/// A star: hosts around one switch. Nodes are `sw`, `host1` and so on; flows are `tcp1` and so on; the port `bottleneck`
/// is `sw->host1`.
///
/// Source: of this project.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Star {
    /// n: hosts.
    #[schemars(range(min = 2, max = 1_000_000))]
    pub hosts: u32,
    /// Who sends to whom.
    #[serde(default)]
    pub pattern: StarPattern,
    /// Rate of every link.
    #[serde(default = "oc3")]
    pub link_rate: BitRate,
    /// Propagation delay of every link, one way; a connection crosses two.
    pub link_delay: Duration,
    /// Rates of the links of single hosts, by the host's name, a range such as `host2-5`, or `default`; `link_rate` where
    /// there is none.
    #[serde(default)]
    pub access_rates: BTreeMap<String, BitRate>,
    /// Propagation delays of these links one way, in the same form; `link_delay` where there is none.
    #[serde(default)]
    pub access_delays: BTreeMap<String, Duration>,
}

/// Who sends to whom in a star.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StarPattern {
    /// All others to `host1`: n - 1 connections share one port.
    #[default]
    ToOne,
    /// Each to the next, the last to `host1`: at every port data meets acknowledgements.
    Ring,
    /// Each to every other: n - 1 connections share each port.
    AllPairs,
}

impl StarPattern {
    /// How many flows there are among `n` hosts.
    pub fn flows(self, n: u32) -> u64 {
        let n = u64::from(n);
        match self {
            StarPattern::ToOne => n.saturating_sub(1),
            StarPattern::Ring => n,
            StarPattern::AllPairs => n.saturating_mul(n.saturating_sub(1)),
        }
    }

    /// Sender and receiver of each flow among `n` hosts, counted from 0.
    #[expect(clippy::arithmetic_side_effects, reason = "numbers of hosts, of which there are two at least")]
    pub fn pairs(self, n: usize) -> Vec<(usize, usize)> {
        match self {
            StarPattern::ToOne => (1..n).map(|from| (from, 0)).collect(),
            StarPattern::Ring => (0..n).map(|from| (from, (from + 1) % n)).collect(),
            StarPattern::AllPairs => {
                (0..n).flat_map(|from| (0..n).filter(move |&to| to != from).map(move |to| (from, to))).collect()
            }
        }
    }
}

/// What a flow has of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FlowOptions {
    /// Its TCP; that of all flows when absent.
    pub tcp: Option<TcpConfig>,
    /// When it starts to send; as the topology says when absent.
    pub start: Option<Duration>,
    /// What it has to send; data without end over TCP when absent.
    pub traffic: Option<TrafficConfig>,
}

/// What a VC has of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VcOptions {
    /// Its guaranteed frame rate, looked after where it enters the network; none when absent (UBR).
    pub gfr: Option<Gfr>,
    /// Whether its source sends all of it tagged (CLP = 1).
    pub tagged: bool,
    /// Its service category, which schedulers by class go by.
    pub class: Class,
    /// Its rate is controlled in both directions, with these parameters (ABR); it is not when absent.
    pub abr: Option<Parameters>,
}

/// Any network: hosts send and receive, switches forward, edge devices stand between the two, links join two nodes both
/// ways.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GeneralNetwork {
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// Names of the switches.
    pub switches: Vec<String>,
    /// Names of the IP/ATM edge devices: they take whole packets from hosts and send them as cells, and are the first or the
    /// last node between the hosts of a path.
    #[serde(default)]
    pub edge_devices: Vec<String>,
    /// Links, each of them both ways.
    // With a search for paths from each of their switches a matter of seconds.
    #[schemars(length(max = 100_000))]
    pub links: Vec<LinkConfig>,
    /// Connections.
    pub flows: Vec<FlowConfig>,
    /// The port efficiency is measured at, for example `sw1->sw2`; the one with the most connections for its rate when
    /// absent. It may also be named `bottleneck` among the ports.
    #[serde(default)]
    pub bottleneck: Option<String>,
}

/// A link between two nodes, the same both ways unless it says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// The two nodes.
    pub between: (String, String),
    /// Rate each way.
    #[serde(default = "oc3")]
    pub rate: BitRate,
    /// Propagation delay each way.
    pub delay: Duration,
    /// Rate on the way back, from the second node to the first; `rate` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_back: Option<BitRate>,
    /// Propagation delay on the way back; `delay` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_back: Option<Duration>,
}

/// A flow: a TCP connection with an endless source, unless its table among the flows says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowConfig {
    /// Its name in results; `tcp1`, `tcp2` and so on by position when absent.
    #[serde(default)]
    pub name: Option<String>,
    /// The host that sends.
    pub from: String,
    /// The host that receives.
    pub to: String,
    /// The nodes its data crosses, both ends included; the path of fewest links when absent. Acknowledgements go back
    /// the same way.
    #[serde(default)]
    pub path: Option<Vec<String>>,
    /// When it starts to send.
    #[serde(default)]
    pub start: Duration,
    /// The VC its data crosses; one of its own, under its name, when absent. Flows of one VC end at one host. Those that
    /// start at one host share it; those that start at several merge where their paths meet, frames not interleaved.
    #[serde(default)]
    pub vc: Option<String>,
}

/// An output port of a switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortConfig {
    /// K: places for waiting cells, the one in service not counted; or "infinite".
    pub buffer: Buffer,
    /// Which frames it admits, and what it does when full.
    pub policy: PolicyConfig,
    /// Which of its cells is sent next.
    #[serde(default)]
    pub scheduler: SchedulerConfig,
    /// What it tells the sources of its ABR VCs; needed where one crosses it.
    #[serde(default)]
    pub allocator: Option<AllocatorConfig>,
}

/// Places for waiting cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(extend("x-unit" = "cells", "x-expect" = "a number of cells or \"infinite\""))]
pub enum Buffer {
    /// So many cells.
    Cells(u32),
    /// No limit.
    Infinite(Infinite),
}

/// The word "infinite".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Infinite {
    /// No limit.
    Infinite,
}

impl Buffer {
    /// The limit, if there is one.
    pub fn cells(self) -> Option<u32> {
        match self {
            Buffer::Cells(cells) => Some(cells),
            Buffer::Infinite(_) => None,
        }
    }
}

/// What all switches have in common.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SwitchOptions {
    /// Who goes first among cells that reach a port in the same instant.
    pub tie_order: TieOrder,
    /// Whether a port serves before or after it admits what arrives in the same instant.
    pub service_order: ServiceOrder,
}

/// What is measured beyond the usual. It changes nothing in the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MeasureOptions {
    /// L: the stream of every TCP flow is cut into files of this size, and the delay of each is measured: from its first
    /// byte's first departure until its last byte is acknowledged; not measured when absent. The papers have 100 kB
    ///
    pub file_size: Option<Bytes>,
}

fn first_seed() -> u64 {
    1
}

fn one() -> u32 {
    1
}

fn vanilla() -> TcpConfig {
    TcpConfig::Vanilla(TcpOptions::default())
}

/// ATM Forum 96-1269, section 3.1: all links run at 155.52 Mb/s, cells included.
fn oc3() -> BitRate {
    BitRate::from_bits_per_second(155_520_000)
}

/// The JSON Schema of a scenario.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Scenario).to_value()
}
