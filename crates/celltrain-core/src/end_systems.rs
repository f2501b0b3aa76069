//! A model of both ends of every connection, used by both engines. It handles incoming frames, outgoing frames and
//! clock ticks.
//!
//! An engine delivers each cell that reaches a host, and calls the model whenever an event is due. The model returns
//! frames for the hosts' output ports, and the engine alone determines when a port sends them. Events are reported to
//! an observer if required (`emit`).

mod clocks;
mod connection;
mod connections;
mod emit;
mod outside;
pub(crate) mod partition;
mod processing;
mod requests;
mod vc_ends;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use crate::aal5::{Aal5Options, Frame, Reassembled, Reassembler};
use crate::cell::{Cell, FrameNumber, Run};
use crate::coverage::reached;
use crate::delay::{FlowDelayTimes, FlowDelays};
use crate::events::{Failure, Observer};
use crate::fingerprint::Fingerprint;
use crate::index::{FlowIndex, LinkIndex, VcIndex};
use crate::network::{Flow, Network, Routing};
use crate::tcp::{Ack, SackBlocks, Segment};
use crate::timeouts::Timeouts;
use crate::units::{Clock, Duration, Span, Time};
use clocks::{ClockKind, HostClock, HostClocks};
use connection::Seen;
pub use connection::{Connection, PacketCounters};
use connections::Connections;
pub(crate) use outside::InjectedFrame;
use outside::Outside;
pub use outside::{Delivered, OpenedOutside, OutsideCounters};
use processing::Processing;
use requests::Requests;
use vc_ends::Vcs;

/// A frame for a host's output port: all its cells, back to back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The VC.
    pub vc: VcIndex,
    /// The host's link on which the frame leaves.
    pub link: LinkIndex,
    /// The frame's last cell on that link. The other cells are equal, except that they do not end the frame.
    pub last: Cell,
    /// The frame's length in cells.
    pub cells: u32,
}

/// The ends of all connections.
pub struct EndSystems {
    max_cells: u32,
    connections: Connections,
    /// Requests, if the network has any.
    requests: Option<Box<Requests>>,
    vcs: Vcs,
    /// Kept apart from other state of a VC, because every cell accesses it.
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
    /// Frames of end systems outside the simulation; `None` until one has been injected.
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

/// Cells that the receiving host of a VC has collected.
#[derive(Clone, Default)]
#[repr(align(32))]
struct Collection {
    reassembler: Reassembler,
    delivered: u64,
    damaged: u64,
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

#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    Data {
        flow: FlowIndex,
        segment: Segment,
        sent: Time,
        /// True if the sender has reduced its window because of a mark (CWR).
        reduced: bool,
        /// True if the segment is ECN-capable (ECT).
        capable: bool,
    },
    Ack {
        flow: FlowIndex,
        ack: Ack,
        /// True if the receiver reports a mark (ECE).
        echoes: bool,
    },
    Packet {
        flow: FlowIndex,
        number: u64,
        sent: Time,
    },
    /// The first segment of a connection. It opens the connection.
    Syn {
        flow: FlowIndex,
    },
    /// The answer to a SYN.
    SynAck {
        flow: FlowIndex,
    },
    /// A segment with a bit error in transit: all its cells arrive, and AAL5 discards them because of the CRC.
    Damaged {
        /// The segment's bytes of data.
        len: u32,
    },
    /// A frame of an end system outside the simulation, identified by its tag.
    Outside {
        tag: u64,
        /// Length of its packet.
        bytes: u64,
        /// True if the packet is ECN-capable.
        capable: bool,
    },
}

impl Departure {
    /// Returns the same departure, with or without ECN capability.
    fn with_capable(self, capable: bool) -> Self {
        Self { last: self.last.with_capable(capable), ..self }
    }
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

    /// Collects cells of `vc` at the host where it ends. Returns the frame's number if they complete a frame. Cells of
    /// a VC must be passed in order. They may be passed before they arrive, because they have no effect until
    /// [`EndSystems::deliver`] is called. Calls `report` with the number of each frame that has failed, and the reason: if
    /// a last cell does not complete a frame, or if a frame has lost its last cell and delimits itself.
    #[inline]
    pub fn collect(
        &mut self,
        vc: VcIndex,
        run: Run,
        mut report: impl FnMut(FrameNumber, Failure),
    ) -> Option<FrameNumber> {
        let Collection { reassembler, delivered, damaged } = &mut self.collections[vc];
        *delivered += u64::from(run.cells);
        match reassembler.on_run(run, self.max_cells, |frame| self.vcs.cells_of(vc, frame)) {
            Reassembled::Incomplete => None,
            Reassembled::Packet => self.collect_packet(vc, run, |frame| report(frame, Failure::Incomplete)),
            Reassembled::Damaged { cells } => {
                *damaged += u64::from(cells);
                if run.last.last_cell() {
                    let why = if reassembler.is_mixed() { Failure::Joined } else { Failure::Incomplete };
                    report(run.last.frame, why);
                }
                None
            }
            Reassembled::Whole(frame) => {
                if run.last.efci() {
                    self.vcs.mark(vc, frame);
                }
                Some(frame)
            }
        }
    }

    /// Collects cells of a self-delimiting packet. Calls `failed` with the number of each packet that has failed.
    #[inline(never)]
    fn collect_packet(&mut self, vc: VcIndex, run: Run, failed: impl FnMut(FrameNumber)) -> Option<FrameNumber> {
        let Collection { reassembler, damaged, .. } = &mut self.collections[vc];
        let (whole, discarded) = reassembler.on_packet_run(run, |frame| self.vcs.cells_of(vc, frame), failed);
        *damaged += u64::from(discarded);
        if whole.is_some() && run.last.efci() {
            self.vcs.mark(vc, run.last.frame);
        }
        whole
    }

    /// Marks a frame of `vc` in transit, because an edge device receives its last cell with a mark from a switch.
    pub(crate) fn mark(&mut self, vc: VcIndex, frame: FrameNumber) {
        self.vcs.mark(vc, frame);
    }

    /// Delivers a complete frame of `vc` at the instant its last cell arrives.
    pub fn deliver(
        &mut self,
        vc: VcIndex,
        number: FrameNumber,
        now: Time,
        observer: &mut impl Observer,
        out: &mut Vec<Departure>,
    ) {
        self.wake_before(now);
        let sender = self.vcs.sender_of(vc, number);
        let oldest = self.vcs.oldest_after(sender, number);
        let log = &mut self.vcs.get_mut(sender).log;
        log.forget_before(oldest);
        let Frame { body, marked, .. } = log.frame(number);
        emit::ended(sender, number, &body, now, observer);
        let has_requests = self.requests.is_some();
        if has_requests && !self.is_expected(sender, number, oldest) {
            reached!(FrameAfterClose);
            return;
        }
        match body {
            Body::Data { flow, segment, sent, reduced, capable } => {
                // Only an ECN-capable segment can carry a mark for TCP. Marks on other segments come from ABR switches.
                let marked = marked && capable;
                if let Some(delays) = &mut self.delays {
                    delays.on_delivered(flow, sent, now);
                }
                let before = emit::before(&self.connections, flow, observer);
                let mut connection = &mut self.connections[flow];
                connection.sees(Seen::Segment, now, segment.seq);
                if let Some(earlier) = connection.receiver.acknowledge_before(marked) {
                    self.acknowledge(flow, earlier, now, observer, out);
                    connection = &mut self.connections[flow];
                }
                connection.receiver.on_mark(marked, reduced);
                let ack = connection.receiver.on_segment(segment);
                self.emit_arrived((flow, number), (segment, capable, marked), before, now, observer);
                if let Some(ack) = ack {
                    self.acknowledge(flow, ack, now, observer, out);
                }
                self.emit_timers(flow, before, now, observer);
                if has_requests && self.connections.is_request(flow) {
                    self.on_progress(flow, now, observer);
                }
            }
            Body::Ack { flow, ack, echoes } => {
                let arrived = ArrivedAck { flow, vc: sender, frame: number, ack, echoes, marked };
                self.deliver_ack(arrived, oldest, now, observer, out);
            }
            Body::Syn { flow } => self.deliver_syn((flow, number, marked), now, observer, out),
            Body::SynAck { flow } => self.deliver_syn_ack((flow, number, marked), now, observer, out),
            Body::Packet { flow, number: packet, sent } => {
                self.deliver_packet(flow, packet, sent, now);
                self.emit_packet_arrived((flow, number), packet, now, observer);
            }
            Body::Damaged { .. } => {
                let cells = self.vcs.get(sender).log.frame(number).cells;
                self.collections[vc].damaged += u64::from(cells);
            }
            Body::Outside { tag, capable, .. } => {
                let cells = self.vcs.get(sender).log.frame(number).cells;
                let outside = self.outside.as_mut().expect("only injected frames belong to external end systems");
                outside.receive(Delivered { time: now, vc: sender, tag, marked: marked && capable }, cells);
            }
        }
    }

    /// Delivers a packet sent without TCP.
    fn deliver_packet(&mut self, flow: FlowIndex, packet: u64, sent: Time, now: Time) {
        let connection = &mut self.connections[flow];
        connection.sees(Seen::Packet, now, packet);
        let packets = connection.packets.as_mut().expect("a flow without TCP counts its packets");
        packets.counters.delivered += 1;
        packets.counters.delivered_bytes += packets.bytes;
        if let Some(delays) = &mut self.delays {
            delays.on_delivered(flow, sent, now);
        }
    }

    /// Delivers an acknowledgement. Its VC no longer needs the records of frames before `oldest`.
    fn deliver_ack(
        &mut self,
        arrived: ArrivedAck,
        oldest: FrameNumber,
        now: Time,
        observer: &mut impl Observer,
        out: &mut Vec<Departure>,
    ) {
        let ArrivedAck { flow, vc, frame, ack, echoes, .. } = arrived;
        if let Some(delays) = &mut self.delays {
            delays.on_ack(flow, ack.ack, now);
        }
        let before = emit::before(&self.connections, flow, observer);
        let connection = &mut self.connections[flow];
        connection.sees(Seen::Ack, now, ack.ack);
        connection.sender.on_echo(echoes);
        let mut reported = SackBlocks::NONE;
        match self.vcs.blocks(vc) {
            None => connection.sender.on_ack(ack, &SackBlocks::NONE, now),
            Some(log) => {
                log.forget_before(oldest);
                reported = log.frame(frame).body;
                connection.sender.on_ack(ack, &reported, now);
            }
        }
        let has_ended = connection.sender.has_ended();
        self.emit_acknowledged(arrived, reported, before, now, observer);
        let closes = has_ended && self.on_all_acknowledged(flow, now);
        self.send(flow, now, observer, out);
        self.emit_timers(flow, before, now, observer);
        if closes {
            self.close(flow, now, observer);
        }
    }

    /// Records that a receiver has acknowledged everything that its sender had to send. Returns whether the connection
    /// closes.
    #[inline(never)]
    fn on_all_acknowledged(&mut self, flow: FlowIndex, now: Time) -> bool {
        let connection = &mut self.connections[flow];
        match &mut connection.bursts {
            None => {
                connection.ended.get_or_insert(now);
                return self.connections.is_request(flow);
            }
            Some(bursts) if bursts.next.is_none() => {
                let next = now + bursts.pauses.next_pause();
                bursts.next = Some(next);
                self.departures.push(Reverse((next, flow)));
            }
            // A repeated segment arrived during the pause and was acknowledged.
            Some(_) => reached!(AckDuringPause),
        }
        false
    }

    /// Returns whether the next tick may now be earlier: a clock has woken, a sender is paced, pauses or does not use
    /// TCP, or hosts take time to process packets.
    pub fn take_rescheduled(&mut self) -> bool {
        std::mem::take(&mut self.woken) || !self.departures.is_empty() || self.processing.is_some()
    }

    /// Wakes all clocks because an event concerns a connection after all ticks before `until`.
    #[inline]
    fn wake_before(&mut self, until: Time) {
        if !self.asleep.is_empty() {
            self.wake(until);
        }
    }

    #[cold]
    fn wake(&mut self, until: Time) {
        for clock in self.asleep.drain(..) {
            self.clocks[clock].wake(until, &mut self.connections);
        }
        self.woken = true;
    }

    /// Returns the next instant at which a clock ticks with an effect, a paced sender may send, a burst begins, a packet
    /// is due, a request opens, or a host has processed a packet.
    pub fn next_tick(&self) -> Option<Time> {
        let departure = self.departures.peek().map(|departure| departure.0.0);
        let done = self.processing.as_ref().and_then(|processing| processing.next());
        let opening = self.requests.as_ref().and_then(|requests| requests.next());
        let ticks = self.clocks.iter().map(|clock| clock.due).filter(|&due| due < Time::NEVER);
        ticks.chain(departure).chain(done).chain(opening).min()
    }

    /// Handles everything due at `now`: first clock ticks (retransmission clocks, then others, by connection), then
    /// paced senders, bursts and packets by index, then new requests by group, and finally processed packets by host.
    /// Returns the number of connections that had a tick.
    pub fn on_tick(&mut self, now: Time, observer: &mut impl Observer, out: &mut Vec<Departure>) -> usize {
        let mut due = std::mem::take(&mut self.due);
        self.asleep.retain(|&clock| self.clocks[clock].due != now);
        for (number, clock) in self.clocks.iter_mut().enumerate().filter(|(_, clock)| clock.due == now) {
            clock.wake(now, &mut self.connections);
            clock.ticks.advance();
            self.ticking.push(number);
            due.extend(clock.flows.iter().map(|&flow| (clock.kind, flow)));
        }
        due.sort_unstable();
        let ticked = due.len();
        for (kind, flow) in due.drain(..) {
            let before = emit::before(&self.connections, flow, observer);
            let connection = &mut self.connections[flow];
            match kind {
                ClockKind::Retransmission => {
                    let timeouts = connection.sender.counters().timeouts;
                    let may_send = connection.sender.on_tick(now);
                    if connection.sender.counters().timeouts > timeouts {
                        connection.sees(Seen::Timeout, now, 0);
                        if !self.connections.is_request(flow) {
                            self.timeouts.record(now, flow);
                        }
                    }
                    let before = self.emit_expired(flow, before, now, observer);
                    if may_send && self.connections[flow].sender.is_opening() {
                        self.send_syn(flow, true, now, observer, out);
                    } else if may_send {
                        self.send(flow, now, observer, out);
                    }
                    self.emit_timers(flow, before, now, observer);
                }
                ClockKind::DelayedAck => {
                    if let Some(ack) = connection.receiver.on_delayed_ack_tick() {
                        emit::ack_expired(flow, now, observer);
                        self.acknowledge(flow, ack, now, observer, out);
                    }
                }
            }
        }
        self.due = due;
        let after_ticks = now + Span(1);
        self.send_due(now, observer, out);
        if self.requests.as_ref().is_some_and(|requests| requests.next() == Some(now)) {
            self.wake_before(after_ticks);
            self.open_requests(now, observer, out);
        }
        if let Some(processing) = &mut self.processing {
            processing.leave(now, out);
        }
        for number in self.ticking.drain(..) {
            self.clocks[number].sleep(&self.connections);
            self.asleep.push(number);
        }
        ticked
    }

    /// Lets the paced senders, bursts and flows without TCP send that are due at `now`, after its clock ticks.
    fn send_due(&mut self, now: Time, observer: &mut impl Observer, out: &mut Vec<Departure>) {
        while let Some(&Reverse((_, flow))) = self.departures.peek().filter(|departure| departure.0.0 == now) {
            self.departures.pop();
            if self.connections.has_closed(flow) {
                continue;
            }
            let connection = &mut self.connections[flow];
            if connection.packets.is_some() {
                self.emit(flow, now, observer, out);
                continue;
            }
            self.wake_before(now + Span(1));
            let before = emit::before(&self.connections, flow, observer);
            let connection = &mut self.connections[flow];
            match connection.bursts.as_mut().filter(|bursts| bursts.next == Some(now)) {
                Some(bursts) => {
                    bursts.next = None;
                    connection.sender.write(bursts.bytes);
                }
                None => connection.departure = None,
            }
            self.send(flow, now, observer, out);
            self.emit_timers(flow, before, now, observer);
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

    fn send(&mut self, flow: FlowIndex, now: Time, observer: &mut impl Observer, out: &mut Vec<Departure>) {
        let connection = &mut self.connections[flow];
        let (vc, cells) = (connection.data_vc, connection.data_cells);
        let mut resent = connection.sender.counters().retransmitted_segments;
        while let Some(segment) = connection.sender.next_segment(now) {
            // A window probe carries one byte. Every other segment has the full size.
            let cells = if segment.len > 1 { cells } else { probe_cells(&self.aal5, segment) };
            let lost = connection.loss.as_mut().is_some_and(|loss| loss.takes(segment, connection.sender.window()));
            let reduced = connection.sender.reports_reduction();
            let capable = connection.sender.sends_capable();
            let body = if lost {
                Body::Damaged { len: segment.len }
            } else {
                Body::Data { flow, segment, sent: now, reduced, capable }
            };
            let departure = self.vcs.put(vc, Frame::new(cells, body), None).with_capable(capable);
            if let Some(delays) = &mut self.delays {
                delays.on_segment(flow, segment, now);
            }
            leave(&mut self.processing, departure, now, out);
            emit::sent(connection, departure, (flow, segment, lost), &mut resent, now, observer);
        }
        if let Some(files) = &mut connection.files {
            // This function runs for every acknowledgement and every segment.
            files.on_progress(connection.sender.acknowledged(), connection.sender.sent(), now);
        }
        let departure = connection.sender.next_departure(now);
        if departure.is_some() && departure != connection.departure {
            // The previously recorded departure is in the past, because the pacing time changes only when a segment is
            // sent.
            connection.departure = departure;
            self.departures.extend(departure.map(|time| Reverse((time, flow))));
        }
    }

    /// Sends a packet and schedules the next one.
    fn emit(&mut self, flow: FlowIndex, now: Time, observer: &mut impl Observer, out: &mut Vec<Departure>) {
        let connection = &mut self.connections[flow];
        let packets = connection.packets.as_mut().expect("a sender whose timer is due sends packets");
        let number = packets.counters.sent;
        let frame = Frame::new(connection.data_cells, Body::Packet { flow, number, sent: now });
        packets.counters.sent += 1;
        let vc = connection.data_vc;
        let departure = self.vcs.put(vc, frame, None).with_capable(false);
        leave(&mut self.processing, departure, now, out);
        emit::packet_sent(packets, departure, (flow, number), now, observer);
        self.departures.push(Reverse((packets.emissions.next_emission(), flow)));
    }

    fn acknowledge(
        &mut self,
        flow: FlowIndex,
        ack: Ack,
        now: Time,
        observer: &mut impl Observer,
        out: &mut Vec<Departure>,
    ) {
        let connection = &self.connections[flow];
        let mut cells = connection.ack_cells;
        let blocks = connection.selective.then(|| connection.receiver.blocks());
        if let Some(blocks) = blocks.filter(|blocks| !blocks.is_empty()) {
            cells = self.aal5.segment_cells(blocks.option_bytes());
        }
        let echoes = connection.receiver.echoes_mark();
        let frame = Frame::new(cells, Body::Ack { flow, ack, echoes });
        let vc = connection.ack_vc;
        let capable = connection.sender.acknowledges_capable();
        let departure = self.vcs.put(vc, frame, blocks).with_capable(capable);
        leave(&mut self.processing, departure, now, out);
        emit::ack_sent(connection, departure, (flow, ack, blocks), now, observer);
    }

    /// Records that a link delays a frame of `vc`, which later frames may overtake. May be called for each of its cells.
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

/// Returns the number of cells of a window probe.
#[cold]
fn probe_cells(aal5: &Aal5Options, probe: Segment) -> u32 {
    aal5.segment_cells(u64::from(probe.len))
}

/// Passes a frame to its host's port, or to the host's packet processing if that takes time.
#[inline]
fn leave(processing: &mut Option<Box<Processing>>, departure: Departure, now: Time, out: &mut Vec<Departure>) {
    match processing {
        None => out.push(departure),
        Some(processing) => processing.take(departure, now),
    }
}

#[cfg(test)]
mod tests;
