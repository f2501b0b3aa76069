//! Results of trials.

use celltrain_core::fingerprint::Fingerprint;
use celltrain_core::index::{FlowIndex, LinkIndex};
use celltrain_core::link_loss::LossyIndex;
use celltrain_core::metrics::{CellTotals, FlowResult, LossResult, PortResult, RunResult};
use typed_index_collections::TiVec;

/// The result of a [trial](crate::Trial). Numbers that packets do not reveal are `None`, never 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Length of the run, in seconds.
    pub duration_s: f64,
    /// Sum of the goodputs, divided by the maximum that the bottleneck could carry.
    pub efficiency: f64,
    /// Jain's index of the goodputs: 1 if all goodputs are equal. `None` if nothing was delivered.
    pub fairness: Option<f64>,
    /// Sum of the goodputs, in megabits per second.
    pub goodput_mbps: f64,
    /// By flow.
    pub flows: TiVec<FlowIndex, FlowOutcome>,
    /// By link.
    pub ports: TiVec<LinkIndex, PortResult>,
    /// Results for the links that lose chosen packets.
    pub losses: TiVec<LossyIndex, LossResult>,
    /// Counts of cells of all flows together.
    pub cells: CellTotals,
    /// 64-bit digest that changes if the time or a byte of any packet changes.
    pub fingerprint: Fingerprint,
}

/// A flow's part of the result of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowOutcome {
    /// Its name.
    pub name: String,
    /// Bytes that the stack has delivered to its application.
    pub delivered_bytes: u64,
    /// Goodput: the delivered bytes in megabits per second.
    pub goodput_mbps: f64,
    /// Payload of all segments that arrived, in megabits per second; `None` without TCP or UDP.
    pub throughput_mbps: Option<f64>,
    /// Number of segments sent, including retransmissions; `None` without TCP or UDP.
    pub segments_sent: Option<u64>,
    /// Number of segments retransmitted; `None` without TCP or UDP.
    pub retransmitted_segments: Option<u64>,
    /// Number of segments that arrived without new data; `None` without TCP or UDP.
    pub repeated_segments: Option<u64>,
    /// Number of packets sent without TCP or UDP.
    pub unknown_packets: u64,
    /// Congestion window at the end, in segments; `None` if the stack does not report it.
    pub cwnd_segments: Option<f64>,
    /// Seconds from the start until the whole file was acknowledged; `None` if it was not.
    pub completion_s: Option<f64>,
}

impl From<RunResult> for Outcome {
    fn from(run: RunResult) -> Self {
        Self {
            duration_s: run.duration_s,
            efficiency: run.efficiency,
            fairness: run.fairness,
            goodput_mbps: run.goodput_mbps,
            flows: run.flows.into_iter().map(FlowOutcome::from).collect(),
            ports: run.ports,
            losses: run.losses,
            cells: run.cells,
            fingerprint: run.fingerprint,
        }
    }
}

impl From<FlowResult> for FlowOutcome {
    fn from(flow: FlowResult) -> Self {
        let is_known = flow.has_segments();
        let known = |count: u64| is_known.then_some(count);
        Self {
            throughput_mbps: is_known.then_some(flow.throughput_mbps),
            segments_sent: known(flow.segments_sent),
            retransmitted_segments: known(flow.retransmitted_segments),
            repeated_segments: known(flow.repeated_segments),
            cwnd_segments: (flow.cwnd_segments > 0.0).then_some(flow.cwnd_segments),
            name: flow.name,
            delivered_bytes: flow.delivered_bytes,
            goodput_mbps: flow.goodput_mbps,
            unknown_packets: flow.unknown_packets,
            completion_s: flow.completion_s,
        }
    }
}
