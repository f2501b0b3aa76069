//! What a part does for the others at the end of every window.

use std::collections::BTreeSet;

use typed_index_collections::{TiVec, ti_vec};

use super::Part;
use crate::cell::FrameNumber;
use crate::engine::fast::Engine;
use crate::engine::fast::links::StreamIndex;
use crate::engine::fast::plan::{LaneIndex, PortIndex, StageEnd};
use crate::index::{FlowIndex, VcIndex};

/// What a part does for others.
pub(super) struct Errands {
    /// Its number.
    pub(super) number: u32,
    /// Contended ports from which cells or frames go to other parts, and which are behind by what has come.
    pub(super) ports: Vec<PortIndex>,
    /// The streams that begin here and end in another part, and that part.
    pub(super) streams: Vec<(StreamIndex, u32)>,
    /// Lanes of frames, likewise.
    pub(super) lanes: Vec<(LaneIndex, u32)>,
    /// Frames that are put in here.
    pub(super) frames: Vec<Frames>,
    /// Flows whose receiving ends are here, and the part of their sending ends.
    pub(super) flows: Vec<(FlowIndex, u32)>,
    /// Of each flow: whether in an instant its receiving end comes before its sending end.
    pub(super) data_goes_first: TiVec<FlowIndex, bool>,
}

/// Frames of a VC that another part has to know.
pub(super) struct Frames {
    pub(super) vc: VcIndex,
    /// The number of the next frame that was not told yet.
    pub(super) told: FrameNumber,
    /// The part in which its cells are collected, and the one of its destination.
    pub(super) to: BTreeSet<u32>,
    /// The part of its destination, if that is another.
    pub(super) blocks_to: Option<u32>,
    /// Whether this part collects them, or is that of their destination.
    pub(super) are_needed_here: bool,
}

impl Errands {
    /// Those of a part.
    pub(super) fn of(engine: &Engine<'_>, part: Part<'_>) -> Self {
        let Engine { network, plan, .. } = engine;
        let part_of = |node| part.partition.of(node);
        let (source, destination) = (|vc| part_of(network.source(vc)), |vc| part_of(network.destination(vc)));
        let here = part.number;
        let part_of_port = |port: PortIndex| part_of(network.links[plan.contended[port]].from);
        let streams = engine.links.streams().filter(|(_, stream)| stream.is_elsewhere);
        let lanes = lanes_elsewhere(engine, part);
        let sends_elsewhere = |&port: &PortIndex| {
            let link = plan.contended[port];
            let mut ends = plan.stages[link].iter().map(|stage| match stage.end {
                StageEnd::Port { port, .. } => part_of_port(port),
                StageEnd::Host { link, .. } | StageEnd::Shaped { link, .. } => part_of(network.links[link].to),
            });
            part.has(network.links[link].from) && ends.any(|to| to != here)
        };
        let collected = collected(engine, part);
        let first_branches = network.first_branches();
        let frames = network.vcs.keys().filter(|&vc| source(vc) == here).map(|vc| {
            let needed = [collected[first_branches[vc]], destination(vc)];
            Frames {
                vc,
                told: engine.end_systems.next_frame(vc),
                to: needed.into_iter().filter(|&to| to != here).collect(),
                blocks_to: Some(destination(vc)).filter(|&to| to != here),
                are_needed_here: needed.contains(&here),
            }
        });
        let flows = network.flows.iter_enumerated().map(|(number, flow)| (number, flow.data_vc));
        Self {
            number: here,
            ports: engine.ports.keys().filter(sends_elsewhere).collect(),
            streams: streams.map(|(number, stream)| (number, part_of_port(stream.port))).collect(),
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

/// The lanes of frames that begin in a part and end in another, and that part.
pub(super) fn lanes_elsewhere(engine: &Engine<'_>, part: Part<'_>) -> BTreeSet<(LaneIndex, u32)> {
    let Engine { network, plan, .. } = engine;
    let begin_here = plan.stages.iter_enumerated().filter(|&(link, _)| part.has(network.links[link].from));
    let ends = begin_here.flat_map(|(_, stages)| stages).filter_map(|stage| match stage.end {
        StageEnd::Host { link, lane, .. } => Some((lane, part.partition.of(network.links[link].to))),
        StageEnd::Port { .. } | StageEnd::Shaped { .. } => None,
    });
    ends.filter(|&(_, to)| to != part.number).collect()
}

/// By VC: the part in which its cells are put together to frames, that of the last port where they can wait.
fn collected(engine: &Engine<'_>, part: Part<'_>) -> TiVec<VcIndex, u32> {
    let Engine { network, plan, .. } = engine;
    let mut collected = ti_vec![0; network.vcs.len()];
    for (link, stages) in plan.stages.iter_enumerated() {
        for stage in stages {
            if let StageEnd::Host { vc, .. } = stage.end {
                collected[vc] = part.partition.of(network.links[link].from);
            }
        }
    }
    collected
}
