//! A model of both ends of every connection, used by both engines. It handles incoming frames, outgoing frames and
//! clock ticks.
//!
//! An engine delivers each cell that reaches a host, and calls the model whenever an event is due. The model returns
//! frames for the hosts' output ports, and the engine alone determines when a port sends them. Events are reported to
//! an observer if required (`emit`).

mod arrivals;
mod clocks;
mod connection;
mod connections;
mod emit;
mod frames;
mod outside;
pub(crate) mod partition;
mod processing;
mod requests;
mod sending;
mod ticks;
mod vc_ends;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use crate::aal5::{Aal5Options, Frame, Reassembler};
use crate::cell::FrameNumber;
use crate::delay::{FlowDelayTimes, FlowDelays};
use crate::events::Observer;
use crate::fingerprint::Fingerprint;
use crate::index::{FlowIndex, VcIndex};
use crate::network::{Flow, Network, Routing};
use crate::tcp::{Ack, Segment};
use crate::timeouts::Timeouts;
use crate::units::{Clock, Duration, Time};
use arrivals::Collection;
use clocks::{ClockKind, HostClock, HostClocks};
pub use connection::{Connection, PacketCounters};
use connections::Connections;
pub(crate) use frames::Body;
pub use frames::Departure;
pub(crate) use outside::InjectedFrame;
use outside::Outside;
pub use outside::{Delivered, OpenedOutside, OutsideCounters};
use processing::Processing;
use requests::Requests;
use vc_ends::Vcs;

/// The ends of all connections.
pub struct EndSystems {
    max_cells: u32,
    connections: Connections,
    /// State of the requests, if the network has any.
    requests: Option<Box<Requests>>,
    vcs: Vcs,
    /// Stored separately from a VC's other state, because every cell accesses the value.
    collections: TiVec<VcIndex, Collection>,
    clocks: Vec<HostClock>,
    /// Indices of the sleeping clocks.
    asleep: Vec<usize>,
    /// True if a clock has woken since the next tick was scheduled.
    woken: bool,
    /// Indices of the clocks that tick now, and their connections.
    ticking: Vec<usize>,
    due: Vec<(ClockKind, FlowIndex)>,
    timeouts: Timeouts,
    /// Next sending times of paced senders, bursts and sources without TCP, with at most one entry for each.
    departures: BinaryHeap<Reverse<(Time, FlowIndex)>>,
    /// Packets that hosts are still processing, if processing takes time.
    processing: Option<Box<Processing>>,
    /// True if each flow's start has a different delay.
    spread: bool,
    aal5: Aal5Options,
    /// Frames of end systems outside the simulation; `None` until the first frame has been injected.
    outside: Option<Box<Outside>>,
    /// Delays of the flows' packets, if they are measured.
    delays: Option<Box<FlowDelays>>,
}

/// An acknowledgement that reaches the sender of a flow.
#[derive(Clone, Copy)]
struct ArrivedAck {
    flow: FlowIndex,
    vc: VcIndex,
    frame: FrameNumber,
    ack: Ack,
    /// True if the receiver reports a mark.
    echoes: bool,
    marked: bool,
}

/// Counts of a VC's cells at its sending and receiving host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VcCounters {
    /// Cells that the VC's source sent.
    pub offered: u64,
    /// Cells that reached the receiving host, including cells of incomplete frames.
    pub delivered: u64,
    /// Delivered cells of frames that never became complete.
    pub damaged: u64,
}

impl EndSystems {
    /// Creates the ends of a network's connections at the start of a run.
    pub fn new(network: &Network, routing: &Routing, clock: Clock) -> Self {
        let connection = |flow: &Flow| Connection::new(network, flow, clock);
        let connections = Connections::new(network.flows.iter().map(connection).collect());
        let mut clocks = HostClocks::of_flows(network, clock);
        let requests = Requests::new(network, &mut clocks, clock).map(Box::new);
        let mut exchanges_blocks: TiVec<VcIndex, bool> = ti_vec![false; network.vcs.len()];
        for flow in network.flows.iter().filter(|flow| flow.uses_tcp() && flow.tcp.selective()) {
            exchanges_blocks[flow.ack_vc] = true;
        }
        requests::exchange_blocks(network, &mut exchanges_blocks);
        let collection = Collection { reassembler: Reassembler::new(network.aal5.framing), ..Collection::default() };
        Self {
            max_cells: network.aal5.max_cells(),
            connections,
            requests,
            vcs: Vcs::new(network, &routing.first_label, &exchanges_blocks),
            collections: ti_vec![collection; network.vcs.len()],
            clocks: clocks.all,
            asleep: Vec::new(),
            woken: false,
            ticking: Vec::new(),
            due: Vec::new(),
            timeouts: Timeouts::new(network, clock),
            departures: BinaryHeap::with_capacity(network.flows.len()),
            processing: Processing::new(network, clock).map(Box::new),
            spread: network.host.start_spread > Duration::default(),
            aal5: network.aal5.clone(),
            outside: None,
            delays: (network.delays.of_flows())
                .then(|| Box::new(FlowDelays::new(network.window(clock), network.flows.len(), clock))),
        }
    }

    /// Starts a connection.
    pub fn start(&mut self, flow: FlowIndex, observer: &mut impl Observer, out: &mut Vec<Departure>) {
        let Connection { start, outside, .. } = &self.connections[flow];
        if outside.is_some() {
            return;
        }
        let start = *start;
        if !self.spread {
            self.wake_before(start);
        }
        let packets = &mut self.connections[flow].packets;
        if self.spread {
            if let Some(packets) = packets {
                packets.emissions.next_emission();
            }
            self.departures.push(Reverse((start, flow)));
            return;
        }
        match packets {
            None => {
                let before = emit::before(&self.connections, flow, observer);
                self.send(flow, start, observer, out);
                self.emit_timers(flow, before, start, observer);
            }
            Some(packets) => {
                packets.emissions.next_emission();
                self.emit(flow, start, observer, out);
            }
        }
    }

    /// Returns the delays of the flows' packets so far, by flow, if delays are measured.
    pub(crate) fn delays(&self) -> Option<TiVec<FlowIndex, FlowDelayTimes>> {
        self.delays.as_ref().map(|delays| delays.times())
    }

    /// Returns the connections of all flows, by flow.
    pub fn connections(&self) -> &TiSlice<FlowIndex, Connection> {
        &self.connections.flows
    }

    /// Returns the timeouts of all flows.
    pub fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    /// Returns the counts of a VC's cells. For merged VCs, the first branch's counts include all deliveries.
    pub fn vc_counters(&self, vc: VcIndex) -> VcCounters {
        let Collection { delivered, damaged, .. } = self.collections[vc];
        let in_processing = self.processing.as_ref().map_or(0, |processing| processing.in_processing(vc));
        VcCounters { offered: self.vcs.get(vc).offered - in_processing, delivered, damaged }
    }

    /// Adds the results of each connection, in flow order, and of all requests to `fingerprint`.
    pub fn fold_into(&self, fingerprint: &mut Fingerprint) {
        for connection in &self.connections.flows {
            let (sent, got) = (connection.sender.counters(), connection.receiver.counters());
            fingerprint.fold_all([
                connection.fingerprint.value(),
                connection.receiver.delivered(),
                sent.segments_sent,
                sent.retransmitted_segments,
                got.segments,
                connection.sender.cwnd().to_bits(),
            ]);
            if let Some(packets) = connection.packets() {
                fingerprint.fold_all([packets.sent, packets.delivered]);
            }
            if let Some(ended) = connection.ended {
                fingerprint.fold(ended.0);
            }
            if let Some(outside) = &connection.outside {
                outside.fold_into(fingerprint);
            }
        }
        for vc in self.vcs.keys() {
            let VcCounters { offered, delivered, damaged } = self.vc_counters(vc);
            fingerprint.fold_all([offered, delivered, damaged]);
        }
        if let Some(outside) = &self.outside {
            fingerprint.fold(outside.fingerprint.value());
        }
        if let Some(requests) = &self.requests {
            requests.fold_into(fingerprint, &self.connections);
        }
    }

    /// Records that a link delays a frame of `vc`, which later frames may overtake. May be called for each of the
    /// frame's cells.
    pub(crate) fn delay(&mut self, vc: VcIndex, number: FrameNumber) {
        self.vcs.delay(vc, number);
    }

    /// Records that a delayed frame of `vc` leaves the link's delay line. From now on, later frames do not overtake it.
    pub(crate) fn release(&mut self, vc: VcIndex, number: FrameNumber) {
        self.vcs.release(vc, number);
    }

    /// Returns the number of cells in a frame that is in flight on `vc`.
    pub(crate) fn packet_cells(&self, vc: VcIndex, number: FrameNumber) -> u32 {
        self.vcs.cells_of(vc, number)
    }

    /// Returns the range of its flow's bytes that a frame carries; `None` if the frame carries no data. The frame must
    /// be in flight on `vc`.
    pub(crate) fn segment(&self, vc: VcIndex, number: FrameNumber) -> Option<Segment> {
        match self.vcs.get(self.vcs.sender_of(vc, number)).log.frame(number).body {
            Body::Data { segment, .. } => Some(segment),
            Body::Packet { flow, number, .. } => {
                let bytes = self.connections[flow].packets.as_ref().map_or(0, |packets| packets.bytes);
                Some(emit::place_of(number, bytes))
            }
            Body::Ack { .. } | Body::Syn { .. } | Body::SynAck { .. } | Body::Damaged { .. } | Body::Outside { .. } => {
                None
            }
        }
    }

    /// Returns the length of an IP packet in bytes, and in cells.
    pub(crate) fn length(&self, vc: VcIndex, number: FrameNumber) -> (u64, u32) {
        let Frame { cells, body, .. } = self.vcs.get(self.vcs.sender_of(vc, number)).log.frame(number);
        let bytes = match body {
            Body::Data { segment: Segment { len, .. }, .. } | Body::Damaged { len } => {
                self.aal5.segment_sdu(u64::from(len))
            }
            Body::Packet { flow, .. } => {
                self.aal5.packet_sdu(self.connections[flow].packets.as_ref().map_or(0, |packets| packets.bytes))
            }
            Body::Ack { .. } | Body::Syn { .. } | Body::SynAck { .. } => self.aal5.segment_sdu(0),
            Body::Outside { bytes, .. } => bytes,
        };
        (bytes, cells)
    }

    /// Returns the VC on which a frame was sent: `vc` itself, or one of the VCs merged into it.
    #[inline]
    pub fn sender_of(&self, vc: VcIndex, frame: FrameNumber) -> VcIndex {
        self.vcs.sender_of(vc, frame)
    }
}

#[cfg(test)]
mod tests;
