//! Types of the scenario file: every key with its meaning, unit and default.

use std::collections::BTreeMap;

use celltrain_core::aal5::{Aal5Options, CELL_BYTES, CellFormat, Framing};
use celltrain_core::abr::Parameters;
use celltrain_core::abr::allocator::AllocatorConfig;
use celltrain_core::edge_device::EdgeConfig;
use celltrain_core::gfr::Gfr;
use celltrain_core::host::HostOptions;
use celltrain_core::marking::MarkingConfig;
use celltrain_core::policy::PolicyConfig;
use celltrain_core::scheduler::{Class, SchedulerConfig};
use celltrain_core::switching::{PacketAdmission, Switching};
use celltrain_core::tcp::{TcpConfig, TcpOptions};
use celltrain_core::tie::{ServiceOrder, TieOrder};
use celltrain_core::traffic::TrafficConfig;
use celltrain_core::units::{Bytes, Duration};
use celltrain_core::until::Until;
use celltrain_core::wire::Wire;
use celltrain_formula::names::by_name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::change_options::{DelayChangeOptions, JitterOptions, RateChangeOptions, ReorderOptions};
use crate::memory_options::OwnSwitch;
use crate::request_options::{IncastOptions, RequestOptions};
use crate::stack::StackConfig;
use crate::topology::Topology;

/// An experiment: a network, its traffic, and its buffers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Description of the scenario, shown in results and figures.
    #[serde(default)]
    pub name: String,
    /// Simulated time of a run.
    #[schemars(example = "10s")]
    pub duration: Duration,
    /// Condition that ends the run. With `finished`, the run ends at `duration` at the latest.
    #[serde(default, skip_serializing_if = "Until::is_duration")]
    #[schemars(extend("default" = "duration"))]
    pub until: Until,
    /// Seed for all random choices. Runs with the same seed are identical.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// The network and its flows.
    pub topology: Topology,
    /// The TCP of every flow.
    #[serde(default = "vanilla")]
    pub tcp: TcpConfig,
    /// Real transport stack of every flow and request, instead of simulated TCP. A flow or group of requests that sets
    /// its own TCP uses its TCP instead of the stack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<StackConfig>,
    /// Options for individual flows, by the flow's name or a range of names such as `tcp1-5`.
    #[serde(default)]
    pub flow: BTreeMap<String, FlowOptions>,
    /// Connections that open at random times, send a number of bytes and close. Each table is a group of such
    /// connections, with its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, RequestOptions>,
    /// Queries that several hosts answer at the same time. Each table is a group of such queries, with its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub incast: BTreeMap<String, IncastOptions>,
    /// Options for individual VCs, by the VC's name or a range of names. A flow's data VC has the flow's name; the VC of
    /// its acknowledgements has the suffix `-acks`. A request's VC is named after its two hosts: `host1->host2`.
    #[serde(default)]
    pub vc: BTreeMap<String, VcOptions>,
    /// Output ports of switches, by the name of their link (`sw1->sw2`), by a pattern of link names (`local*->sw1`), as
    /// `bottleneck`, or as `default` for all other ports.
    #[serde(default)]
    pub port: BTreeMap<String, PortConfig>,
    /// Options of links, by name, such as `sw1->sw2`. The opposite direction is a separate link, `sw2->sw1`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub link: BTreeMap<String, LinkOptions>,
    /// Buffers of edge devices for packets on their way into the ATM network, by the name of the device or by a pattern
    /// such as `*`.
    #[serde(default)]
    pub edge: BTreeMap<String, EdgeConfig>,
    /// Options of all switches, and memories that ports of a switch share.
    #[serde(default)]
    pub switch: SwitchOptions,
    /// Options of all hosts.
    #[serde(default)]
    pub host: HostOptions,
    /// Method by which receivers recognise packets in a sequence of cells. Default: `aal5` for cells of 53 bytes, and
    /// `packets` for other cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framing: Option<Framing>,
    /// Options of AAL5, if packets are framed by AAL5.
    #[serde(default)]
    pub aal5: Aal5Options,
    /// Size of the cells on all links and in all buffers.
    #[serde(default)]
    pub cell: CellOptions,
    /// Options of measurements, which do not affect the run.
    #[serde(default)]
    pub measure: MeasureOptions,
}

/// Options of individual flows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FlowOptions {
    /// TCP of this flow. Default: the TCP of all flows.
    pub tcp: Option<TcpConfig>,
    /// Real transport stack of this flow, instead of a TCP. Default: the stack of all flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<StackConfig>,
    /// Time at which the flow starts to send. Default: determined by the topology.
    #[schemars(example = "500ms")]
    pub start: Option<Duration>,
    /// Traffic that the flow sends. Default: endless data over TCP.
    pub traffic: Option<TrafficConfig>,
}

/// Options of individual VCs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VcOptions {
    /// Guaranteed frame rate (GFR), checked where the VC enters the network. Default: no guarantee (UBR).
    pub gfr: Option<Gfr>,
    /// True if the VC's source sends all cells tagged (CLP = 1).
    pub tagged: bool,
    /// Service class of the VC, by which some schedulers select cells.
    pub class: Class,
    /// Priority of the VC's cells in memories shared by ports.
    #[schemars(range(max = 7), extend("x-expect" = "a priority (0 to 7)"))]
    pub priority: u8,
    /// ABR parameters, for rate control in the two directions of the connection. Default: no rate control.
    pub abr: Option<Parameters>,
}

/// Options of an output port of a switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortConfig {
    /// K: places for waiting cells, without the one in service; or "infinite"; or "shared" if the port is in a memory of
    /// its switch.
    pub buffer: Buffer,
    /// Policy that admits or refuses frames, and decides what happens when the buffer is full.
    pub policy: PolicyConfig,
    /// Scheduler that selects the next cell to send.
    #[serde(default)]
    pub scheduler: SchedulerConfig,
    /// Allocator of rates to the sources of ABR VCs. An allocator is required if an ABR VC crosses the port.
    #[serde(default)]
    pub allocator: Option<AllocatorConfig>,
    /// Conditions under which the port marks packets as a sign of congestion, for TCPs with `ecn = "on"`. Default: no
    /// marks.
    #[serde(default)]
    pub marking: Option<MarkingConfig>,
}

/// Options of a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LinkOptions {
    /// Rules by which the link loses packets or cells. A lost cell still takes its transmission time on the link.
    pub lose: Vec<LossOptions>,
    /// Rules by which the link delays packets. Later packets overtake a delayed packet.
    pub delay: Vec<DelayOptions>,
    /// Changes of the link's rate during the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_change: Option<RateChangeOptions>,
    /// Changes of the link's delay during the run. Cells keep their order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_change: Option<DelayChangeOptions>,
    /// Random differences between the delays of packets. Packets keep their order, unless the link also has `reorder`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<JitterOptions>,
    /// Packets that overtake other packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder: Option<ReorderOptions>,
    /// The unit in which the link carries packets: whole cells, or Ethernet frames with preamble and gap. NAME may be a
    /// pattern such as `*`.
    pub wire: Wire,
}

/// A rule by which a link loses packets or cells. A rule has either `flow` or `vc`, and exactly one of `packets`,
/// `cells`, `every`, `probability`, `gilbert_elliott` and `bytes`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Loss")]
pub struct LossOptions {
    /// The flow whose packets are lost: data packets on the links to the flow's destination, and acknowledgements on
    /// the links back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// The VC whose packets or cells are lost, if the rule names no flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vc: Option<String>,
    /// Numbers of the packets that are lost with all their cells. Packets are counted from 0, in the order in which they
    /// enter the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<Vec<u64>>,
    /// Numbers of the cells that are lost, counted from 0. RM cells are counted too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cells: Option<Vec<u64>>,
    /// Loses every n-th packet or cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<Every>,
    /// Probability with which each packet or cell is lost, independently of all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<LossProbability>,
    /// Loses packets or cells in bursts, as a link that changes between a good and a bad state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gilbert_elliott: Option<GilbertElliottOptions>,
    /// Loses the packet that carries this byte of the flow, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
    /// With `bytes`: number of transmissions of the packet that are lost, beginning with the first transmission.
    /// Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub times: Option<u64>,
}

/// A rule by which a link delays packets. A rule has `by`, either `flow` or `vc`, and either `packets` or `bytes`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Delay", extend("x-expect" = "a table such as { flow = \"tcp1\", packets = [14], by = \"50ms\" }"))]
pub struct DelayOptions {
    /// The flow whose packets are delayed: data packets on the links to the flow's destination, and acknowledgements on
    /// the links back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// The VC whose packets are delayed, if the rule names no flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vc: Option<String>,
    /// Numbers of the packets that are delayed. Packets are counted from 0, in the order in which they enter the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<Vec<u64>>,
    /// Delays the packet that carries this byte of the flow, counted from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
    /// With `bytes`: number of transmissions of the packet that are delayed, beginning with the first transmission.
    /// Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub times: Option<u64>,
    /// Additional delay of the selected packets.
    #[schemars(example = "50ms")]
    pub by: Duration,
}

/// The distance between two losses: a number of packets, or a number of cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("x-expect" = "a table such as { packets = 100 }"))]
pub struct Every {
    /// Distance between two losses, as a number of packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub packets: Option<u64>,
    /// Distance between two losses, as a number of cells.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub cells: Option<u64>,
    /// Number, from 0, of the first packet or cell that is lost. Default: the last of the first n, such as 99 if every
    /// 100th is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
}

/// The probability of the loss of each packet, or of each cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("x-expect" = "a table such as { cells = 1e-6 }"))]
pub struct LossProbability {
    /// Probability that a packet is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expect" = "a probability (0 to 1)"))]
    pub packets: Option<f64>,
    /// Probability that a cell is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expect" = "a probability (0 to 1)"))]
    pub cells: Option<f64>,
}

/// The model of Gilbert and Elliott: a link that changes between a good and a bad state.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "GilbertElliott", extend("x-expect" = "a table such as { p = 0.001, r = 0.2 }"))]
pub struct GilbertElliottOptions {
    /// p: probability of the change from good to bad after each packet or cell.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expect" = "a probability (0 to 1)"))]
    pub p: f64,
    /// r: probability of the change from bad to good after each packet or cell.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expect" = "a probability (0 to 1)"))]
    pub r: f64,
    /// Probability of a loss in the good state.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expect" = "a probability (0 to 1)"))]
    pub good: f64,
    /// Probability of a loss in the bad state.
    #[serde(default = "certain")]
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expect" = "a probability (0 to 1)"))]
    pub bad: f64,
    /// Unit in which the link loses data: packets or cells.
    #[serde(default)]
    pub unit: LossUnitOption,
}

fn certain() -> f64 {
    1.0
}

/// The unit that a link with two states loses: packets or cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "LossUnit")]
pub enum LossUnitOption {
    /// Packets with all their cells.
    #[default]
    Packets,
    /// Single cells.
    Cells,
}

/// Size of a port's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(extend("x-unit" = "cells", "x-expect" = "a whole number of cells such as 1000 (at most 4294967295), \"infinite\" or \"shared\""))]
pub enum Buffer {
    /// A number of places for waiting cells.
    Cells(u32),
    /// No limit.
    Infinite(Infinite),
    /// The memory to which the port belongs.
    Shared(Shared),
}

/// The word "shared".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Shared {
    /// The buffer is a memory that ports of the switch share.
    Shared,
}

/// The word "infinite".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Infinite {
    /// No limit.
    Infinite,
}

impl Buffer {
    /// Returns the port's own number of places; `None` if the buffer is unlimited or shared.
    pub fn cells(self) -> Option<u32> {
        match self {
            Buffer::Cells(cells) => Some(cells),
            Buffer::Infinite(_) | Buffer::Shared(_) => None,
        }
    }
}

/// Options of all switches, and settings for individual switches, by the switch's name or a pattern of names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SwitchOptions {
    /// Order of cells that arrive at a port at the same instant.
    pub tie_order: TieOrder,
    /// Order in which a port sends a cell and admits the arrivals of the same instant.
    pub service_order: ServiceOrder,
    /// With `framing = "packets"`: true if a port may start to send a packet before its last cell has arrived. Default:
    /// ports store each packet whole before they send it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_through: Option<bool>,
    /// With `framing = "packets"`: time at which policies decide about a packet, and whether they know the packet's
    /// length. Default: `start`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admission: Option<PacketAdmission>,
    /// Settings for individual switches, by the switch's name or a pattern of names.
    #[serde(flatten)]
    pub own: BTreeMap<String, OwnSwitch>,
}

/// Size of the cells on all links and in all buffers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CellOptions {
    /// Bytes of a cell, on links and in buffers. The last cell of a frame is padded.
    pub size: Bytes,
    /// Bytes of a cell that carry a frame. Default: 48 of the 53 bytes of an ATM cell, or all bytes of a cell of
    /// another size.
    pub payload: Option<Bytes>,
}

impl Default for CellOptions {
    fn default() -> Self {
        Self { size: Bytes { bytes: CELL_BYTES }, payload: None }
    }
}

impl CellOptions {
    /// Returns the format of the cells.
    pub fn format(&self) -> CellFormat {
        // The checks refuse a size of 0.
        let size = self.size.bytes.max(1);
        let standard = if size == CELL_BYTES { CellFormat::ATM } else { CellFormat::of_memory(size) };
        CellFormat { payload: self.payload.map_or(standard.payload, |payload| payload.bytes.max(1)), ..standard }
    }
}

impl Scenario {
    /// Returns the real transport stack of a flow; `None` if the flow uses no real stack.
    pub fn stack_of(&self, flow: &str) -> Option<&StackConfig> {
        self.stack_with(by_name(&self.flow, flow))
    }

    /// Returns the real transport stack of a flow with the given options.
    pub(crate) fn stack_with<'a>(&'a self, own: Option<&'a FlowOptions>) -> Option<&'a StackConfig> {
        let Some(own) = own else { return self.stack.as_ref() };
        let is_own = own.tcp.is_some() || own.traffic.as_ref().and_then(TrafficConfig::packets).is_some();
        own.stack.as_ref().or(self.stack.as_ref()).filter(|_| !is_own)
    }

    /// Returns whether connections open during the run.
    pub fn has_requests(&self) -> bool {
        !self.requests.is_empty() || !self.incast.is_empty()
    }

    /// Returns the rules by which switches forward packets with packet framing.
    pub fn switching(&self) -> Switching {
        let SwitchOptions { cut_through, admission, .. } = &self.switch;
        Switching { cut_through: cut_through.unwrap_or_default(), admission: admission.unwrap_or_default() }
    }

    /// Returns the framing of end systems, with the network's cells.
    pub fn framing(&self) -> Aal5Options {
        let by_size = if self.cell.size.bytes == CELL_BYTES { Framing::Aal5 } else { Framing::Packets };
        let framing = self.framing.unwrap_or(by_size);
        Aal5Options { cell: self.cell.format(), framing, ..self.aal5.clone() }
    }
}

/// Options of measurements. They do not affect the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MeasureOptions {
    /// L: the stream of every TCP flow is divided into files of this size. The delay of each file is measured, from the
    /// first departure of its first byte until its last byte is acknowledged. Default: no measurement of files. The
    /// papers use 100 kB.
    pub file_size: Option<Bytes>,
    /// Start of the period covered by rates, efficiency, fairness, utilisations and counters, since a run that starts
    /// with empty buffers needs time to settle. Default: the start of the run.
    #[schemars(example = "2s")]
    pub from: Option<Duration>,
    /// End of the measured period. Default: the end of the run.
    #[schemars(example = "10s")]
    pub to: Option<Duration>,
    /// The largest size of a short request. Default: 100 kB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_requests: Option<Bytes>,
    /// Size above which a request counts as long. Default: 1 MB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long_requests: Option<Bytes>,
}

impl MeasureOptions {
    /// Returns the size up to which requests are short.
    pub fn short(&self) -> Bytes {
        self.short_requests.unwrap_or(Bytes { bytes: 100_000 })
    }

    /// Returns the size above which requests are long.
    pub fn long(&self) -> Bytes {
        self.long_requests.unwrap_or(Bytes { bytes: 1_000_000 })
    }
}

fn first_seed() -> u64 {
    1
}

pub(crate) fn vanilla() -> TcpConfig {
    TcpConfig::Vanilla(TcpOptions::default())
}

/// Returns the JSON Schema of a scenario.
#[cfg(not(target_family = "wasm"))]
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Scenario).to_value()
}

/// Returns the JSON Schema of a scenario, which the host program provides. In WebAssembly, code that generates the
/// schema would make the lab page much larger.
#[cfg(target_family = "wasm")]
pub fn schema() -> serde_json::Value {
    SCHEMA.get().expect("the schema is available before a scenario is read").clone()
}

/// Sets the JSON Schema, which the same version of this program must have generated on another target.
#[cfg(target_family = "wasm")]
pub fn provide_schema(schema: serde_json::Value) {
    SCHEMA.get_or_init(|| schema);
}

#[cfg(target_family = "wasm")]
static SCHEMA: std::sync::OnceLock<serde_json::Value> = std::sync::OnceLock::new();
