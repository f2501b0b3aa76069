//! The routes of messages from one partition to the others.

use std::collections::BTreeSet;

use typed_index_collections::{TiVec, ti_vec};

use crate::cell::FrameNumber;
use crate::engine::fast::engine::Engine;
use crate::engine::fast::fabric::Fabric;
use crate::engine::fast::links::StreamIndex;
use crate::engine::fast::partitioning::Partition;
use crate::engine::fast::plan::{LaneIndex, PortIndex, StageEnd};
use crate::index::{FlowIndex, VcIndex};

/// The routes of all messages that a partition sends to other partitions at the end of a window.
pub(super) struct Routes {
    /// Contended ports that send cells or frames to other partitions. These ports must be simulated before messages are
    /// sent.
    pub(super) ports: Vec<PortIndex>,
    /// Streams that begin in this partition and end in another, each with the other partition.
    pub(super) streams: Vec<(StreamIndex, u32)>,
    /// Lanes of frames that end in another partition, each with that partition.
    pub(super) lanes: Vec<(LaneIndex, u32)>,
    /// VCs whose frames start in this partition and that other partitions need.
    pub(super) frames: Vec<Frames>,
    /// Flows whose receiving ends are in this partition, each with the partition of its sending end.
    pub(super) flows: Vec<(FlowIndex, u32)>,
    /// For each flow, true if its receiving end acts before its sending end within an instant.
    pub(super) data_goes_first: TiVec<FlowIndex, bool>,
}

/// A VC whose frames are needed by another partition.
pub(super) struct Frames {
    pub(super) vc: VcIndex,
    /// Number of the next frame to be sent.
    pub(super) sent: FrameNumber,
    /// Other partitions that need the frames: the partition of the port that collects the VC's cells, and the partition
    /// of its destination.
    pub(super) to: BTreeSet<u32>,
    /// The partition of the VC's destination, if it is not this partition.
    pub(super) blocks_to: Option<u32>,
    /// True if this partition collects the VC's cells or contains its destination.
    pub(super) are_needed_here: bool,
}

impl Routes {
    pub(super) fn of(engine: &Engine<'_>, partition: Partition<'_>) -> Self {
        let Engine { network, fabric: Fabric { plan, .. }, .. } = engine;
        let partition_of = |node| partition.partitioning.of(node);
        let (source, destination) = (|vc| partition_of(network.source(vc)), |vc| partition_of(network.destination(vc)));
        let here = partition.number;
        let partition_of_port = |port: PortIndex| partition_of(network.links[plan.contended[port]].from);
        let streams = engine.links.streams.iter_enumerated().filter(|(_, stream)| stream.is_elsewhere);
        let lanes = lanes_elsewhere(engine, partition);
        let sends_elsewhere = |&port: &PortIndex| {
            let link = plan.contended[port];
            let last = |label| plan.stages_from(link, label).last().expect("the list has at least one stage");
            let mut ends = plan.stages[link].keys().map(|label| match last(label).end {
                StageEnd::Port { port, .. } => partition_of_port(port),
                StageEnd::Host { link, .. } | StageEnd::Shaped { link, .. } => partition_of(network.links[link].to),
            });
            partition.has(network.links[link].from) && ends.any(|to| to != here)
        };
        let collected = collected(engine, partition);
        let first_branches = network.first_branches();
        let frames = network.vcs.keys().filter(|&vc| source(vc) == here).map(|vc| {
            let needed = [collected[first_branches[vc]], destination(vc)];
            Frames {
                vc,
                sent: engine.fabric.end_systems.next_frame(vc),
                to: needed.into_iter().filter(|&to| to != here).collect(),
                blocks_to: Some(destination(vc)).filter(|&to| to != here),
                are_needed_here: needed.contains(&here),
            }
        });
        let flows = network.flows.iter_enumerated().map(|(number, flow)| (number, flow.data_vc));
        let unit = |port: PortIndex| engine.links.unit(port).0;
        let ports: BTreeSet<PortIndex> = engine.ports.keys().filter(sends_elsewhere).map(unit).collect();
        Self {
            ports: ports.into_iter().collect(),
            streams: streams.map(|(number, stream)| (number, partition_of_port(stream.port))).collect(),
            lanes: lanes.into_iter().collect(),
            frames: frames.filter(|frames| !frames.to.is_empty()).collect(),
            flows: flows
                .filter(|&(_, vc)| destination(vc) == here && source(vc) != here)
                .map(|(number, vc)| (number, source(vc)))
                .collect(),
            data_goes_first: network
                .flows
                .iter()
                .map(|flow| network.vcs[flow.data_vc].path.last() < network.vcs[flow.ack_vc].path.last())
                .collect(),
        }
    }
}

/// Returns the lanes of frames that begin in this partition and end in another, each with the other partition.
fn lanes_elsewhere(engine: &Engine<'_>, partition: Partition<'_>) -> BTreeSet<(LaneIndex, u32)> {
    let Engine { network, fabric: Fabric { plan, .. }, .. } = engine;
    let is_here = |link| partition.has(network.links[plan.beginning(link)].from);
    let begin_here = plan.stages.iter_enumerated().filter(|&(link, _)| is_here(link));
    let ends = begin_here.flat_map(|(_, stages)| stages).filter_map(|stage| match stage.end {
        StageEnd::Host { link, lane, .. } => Some((lane, partition.partitioning.of(network.links[link].to))),
        StageEnd::Port { .. } | StageEnd::Shaped { .. } => None,
    });
    ends.filter(|&(_, to)| to != partition.number).collect()
}

/// Returns, by VC, the partition that collects its cells into frames, which is the partition of the last port where
/// they can wait.
fn collected(engine: &Engine<'_>, partition: Partition<'_>) -> TiVec<VcIndex, u32> {
    let Engine { network, fabric: Fabric { plan, .. }, .. } = engine;
    let mut collected = ti_vec![0; network.vcs.len()];
    for (link, stages) in plan.stages.iter_enumerated() {
        for stage in stages {
            if let StageEnd::Host { vc, .. } = stage.end {
                collected[vc] = partition.partitioning.of(network.links[plan.beginning(link)].from);
            }
        }
    }
    collected
}
