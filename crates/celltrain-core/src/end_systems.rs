//! Both ends of every connection: frames come in, frames go out, clocks tick. Both engines drive this one model.
//!
//! An engine hands over each cell that reaches a host and each instant at which something is due; it gets back frames to
//! put on the output port of a host. Nothing in here knows when that port will send them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::aal5::{Aal5Options, Frame, FrameLog, Reassembled, Reassembler};
use crate::cell::{Cell, Label};
use crate::fingerprint::Fingerprint;
use crate::network::{Network, Routing};
use crate::rng::Stream;
use crate::tcp::timers::Ticks;
use crate::tcp::{Ack, DelayedAcks, Receiver, SackBlocks, Segment, Sender, TickPhase};
use crate::units::{Clock, Duration, Span, Time};

/// A frame to put on a host's output port: all its cells, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Index of the link the host sends on.
    pub link: u32,
    /// The VC's label there.
    pub label: Label,
    /// The frame's number within its VC.
    pub frame: u32,
    /// Its length.
    pub cells: u32,
}

/// The ends of all connections.
pub struct EndSystems {
    max_cells: u32,
    flows: Vec<Connection>,
    vcs: Vec<VcEnds>,
    clocks: Vec<HostClock>,
    due: Vec<(ClockKind, u32)>,
    /// When paced senders may go on, each at most once.
    departures: BinaryHeap<Reverse<(Time, u32)>>,
    aal5: Aal5Options,
}

/// One connection: its two ends and what they have to show.
pub struct Connection {
    /// The sending end.
    pub sender: Sender,
    /// The receiving end.
    pub receiver: Receiver,
    data_vc: u32,
    ack_vc: u32,
    data_cells: u32,
    ack_cells: u32,
    /// The blocks of acknowledgements on their way, in step with the frames of their VC; only where the ends exchange them.
    blocks: Option<FrameLog<SackBlocks>>,
    start: Time,
    /// When its pace lets it go on, as noted among all departures.
    departure: Option<Time>,
    fingerprint: Fingerprint,
}

/// The two ends of a VC: what was put in, and what has been collected.
struct VcEnds {
    link: u32,
    label: Label,
    log: FrameLog<Body>,
    reassembler: Reassembler,
    counters: VcCounters,
}

/// What became of a VC's cells between its two ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VcCounters {
    /// Cells its source put in.
    pub offered: u64,
    /// Cells that reached the host at its end, whether or not they made a whole frame.
    pub delivered: u64,
    /// Of those, cells of frames that did not arrive whole.
    pub damaged: u64,
}

#[derive(Clone, Copy, Debug)]
enum Body {
    Data { flow: u32, segment: Segment },
    Ack { flow: u32, ack: Ack },
}

/// Connections whose clocks tick together.
struct HostClock {
    kind: ClockKind,
    ticks: Ticks,
    flows: Vec<u32>,
}

/// Retransmission clocks go before delayed-acknowledgement clocks where they tick at the same instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ClockKind {
    Retransmission,
    DelayedAck,
}

/// RFC 1122 (4.2.3.2) allows 500 ms; BSD's fast timeout is 200 ms.
pub const DELAYED_ACK_TICK: Duration = Duration::from_milliseconds(200);

impl EndSystems {
    /// The ends of a network's connections, before anything was sent.
    pub fn new(network: &Network, routing: &Routing, clock: Clock) -> Self {
        let index = |i: usize| u32::try_from(i).expect("indices fit 32 bits");
        let flows = network.flows.iter().map(|flow| {
            let options = flow.tcp.options();
            let data_cells = network.aal5.segment_cells(options.mss.bytes);
            let sender = Sender::new(&flow.tcp, clock);
            Connection {
                sender: match options.pacing_rate {
                    Some(rate) => sender.paced(clock.cell_time(rate) * u64::from(data_cells)),
                    None => sender,
                },
                receiver: Receiver::new(&flow.tcp),
                data_vc: index(flow.data_vc),
                ack_vc: index(flow.ack_vc),
                data_cells,
                ack_cells: network.aal5.segment_cells(0),
                blocks: flow.tcp.selective().then(FrameLog::default),
                start: Time::default() + clock.span(flow.start),
                departure: None,
                fingerprint: Fingerprint::default(),
            }
        });
        let vcs = network.vcs.iter().zip(&routing.first_label).map(|(vc, &label)| VcEnds {
            link: index(vc.path[0]),
            label,
            log: FrameLog::default(),
            reassembler: Reassembler::default(),
            counters: VcCounters::default(),
        });
        Self {
            max_cells: network.aal5.max_cells(),
            flows: flows.collect(),
            vcs: vcs.collect(),
            clocks: host_clocks(network, clock),
            due: Vec::new(),
            departures: BinaryHeap::with_capacity(network.flows.len()),
            aal5: network.aal5.clone(),
        }
    }

    /// A connection starts to send.
    pub fn start(&mut self, flow: u32, out: &mut Vec<Departure>) {
        let start = self.flows[flow as usize].start;
        self.send(flow, start, out);
    }

    /// A cell of `vc` reaches the host at its end; the frame's number when this makes one whole. Cells of a VC come in
    /// order, but they may be collected ahead of the instant they arrive at: nothing else sees them before
    /// [`EndSystems::deliver`].
    #[inline]
    pub fn collect(&mut self, vc: u32, cell: Cell) -> Option<u32> {
        let ends = &mut self.vcs[vc as usize];
        ends.counters.delivered += 1;
        let log = &ends.log;
        match ends.reassembler.on_cell(cell, self.max_cells, |frame| log.frame(frame).cells) {
            Reassembled::Incomplete => None,
            Reassembled::Damaged { cells } => {
                ends.counters.damaged += u64::from(cells);
                None
            }
            Reassembled::Whole(frame) => Some(frame),
        }
    }

    /// A frame of `vc` that was collected whole is handed to TCP at the instant of its last cell.
    pub fn deliver(&mut self, vc: u32, number: u32, now: Time, out: &mut Vec<Departure>) {
        let log = &mut self.vcs[vc as usize].log;
        log.forget_before(number);
        let frame = log.frame(number);
        self.on_frame(frame, number, now, out);
    }

    /// Whether what TCP does may bring the next tick forward: whether any sender is paced.
    pub fn paced(&self) -> bool {
        !self.departures.is_empty()
    }

    /// The next instant at which a clock ticks or a paced sender goes on.
    pub fn next_tick(&self) -> Option<Time> {
        let departure = self.departures.peek().map(|departure| departure.0.0);
        self.clocks.iter().map(|clock| clock.ticks.next()).chain(departure).min()
    }

    /// All clocks due at `now` tick: retransmission clocks first, connections in index order. Then paced senders that may
    /// go on at `now` do, in index order.
    pub fn on_tick(&mut self, now: Time, out: &mut Vec<Departure>) {
        let mut due = std::mem::take(&mut self.due);
        for clock in self.clocks.iter_mut().filter(|clock| clock.ticks.next() == now) {
            clock.ticks.advance();
            due.extend(clock.flows.iter().map(|&flow| (clock.kind, flow)));
        }
        due.sort_unstable();
        for (kind, flow) in due.drain(..) {
            let connection = &mut self.flows[flow as usize];
            match kind {
                ClockKind::Retransmission => {
                    let timeouts = connection.sender.counters().timeouts;
                    let may_send = connection.sender.on_tick();
                    if connection.sender.counters().timeouts > timeouts {
                        connection.fingerprint.fold_all([Seen::Timeout as u64, now.0]);
                    }
                    if may_send {
                        self.send(flow, now, out);
                    }
                }
                ClockKind::DelayedAck => {
                    if let Some(ack) = connection.receiver.on_delayed_ack_tick() {
                        self.acknowledge(flow, ack, out);
                    }
                }
            }
        }
        self.due = due;
        while let Some(&Reverse((_, flow))) = self.departures.peek().filter(|departure| departure.0.0 == now) {
            self.departures.pop();
            self.flows[flow as usize].departure = None;
            self.send(flow, now, out);
        }
    }

    /// The connections, by flow.
    pub fn connections(&self) -> &[Connection] {
        &self.flows
    }

    /// What became of a VC's cells between its two ends.
    pub fn vc_counters(&self, vc: usize) -> VcCounters {
        self.vcs[vc].counters
    }

    /// Folds what every connection saw, in flow order.
    pub fn fold_into(&self, fingerprint: &mut Fingerprint) {
        for connection in &self.flows {
            let (sent, got) = (connection.sender.counters(), connection.receiver.counters());
            fingerprint.fold_all([
                connection.fingerprint.value(),
                connection.receiver.delivered(),
                sent.segments_sent,
                sent.retransmitted_segments,
                got.segments,
                connection.sender.cwnd().to_bits(),
            ]);
        }
        for vc in &self.vcs {
            fingerprint.fold_all([vc.counters.offered, vc.counters.delivered, vc.counters.damaged]);
        }
    }

    fn on_frame(&mut self, frame: Frame<Body>, number: u32, now: Time, out: &mut Vec<Departure>) {
        match frame.body {
            Body::Data { flow, segment } => {
                let connection = &mut self.flows[flow as usize];
                connection.fingerprint.fold_all([Seen::Segment as u64, now.0, segment.seq]);
                if let Some(ack) = connection.receiver.on_segment(segment) {
                    self.acknowledge(flow, ack, out);
                }
            }
            Body::Ack { flow, ack } => {
                let connection = &mut self.flows[flow as usize];
                connection.fingerprint.fold_all([Seen::Ack as u64, now.0, ack.ack]);
                match &mut connection.blocks {
                    None => connection.sender.on_ack(ack, &SackBlocks::NONE, now),
                    Some(log) => {
                        log.forget_before(number);
                        connection.sender.on_ack(ack, &log.frame(number).body, now);
                    }
                }
                self.send(flow, now, out);
            }
        }
    }

    fn send(&mut self, flow: u32, now: Time, out: &mut Vec<Departure>) {
        let connection = &mut self.flows[flow as usize];
        let (vc, cells) = (connection.data_vc, connection.data_cells);
        while let Some(segment) = connection.sender.next_segment(now) {
            // A window probe carries a byte; everything else is a full segment.
            let cells = if segment.len > 1 { cells } else { self.aal5.segment_cells(u64::from(segment.len)) };
            let frame = Frame { cells, body: Body::Data { flow, segment } };
            out.push(self.vcs[vc as usize].put(frame));
        }
        let departure = connection.sender.next_departure(now);
        if departure.is_some() && departure != connection.departure {
            // One that was noted before has passed: the pace only moves on when a segment leaves.
            connection.departure = departure;
            self.departures.extend(departure.map(|time| Reverse((time, flow))));
        }
    }

    fn acknowledge(&mut self, flow: u32, ack: Ack, out: &mut Vec<Departure>) {
        let connection = &mut self.flows[flow as usize];
        let mut cells = connection.ack_cells;
        if let Some(log) = &mut connection.blocks {
            let blocks = connection.receiver.blocks();
            if !blocks.is_empty() {
                cells = self.aal5.segment_cells(blocks.option_bytes());
            }
            log.push(Frame { cells, body: blocks });
        }
        let frame = Frame { cells, body: Body::Ack { flow, ack } };
        out.push(self.vcs[connection.ack_vc as usize].put(frame));
    }
}

impl VcEnds {
    fn put(&mut self, frame: Frame<Body>) -> Departure {
        self.counters.offered += u64::from(frame.cells);
        let number = self.log.push(frame);
        Departure { link: self.link, label: self.label, frame: number, cells: frame.cells }
    }
}

/// What a connection's fingerprint folds.
#[derive(Clone, Copy)]
enum Seen {
    Segment = 1,
    Ack = 2,
    Timeout = 3,
}

/// One clock for all connections whose ticks fall together.
fn host_clocks(network: &Network, clock: Clock) -> Vec<HostClock> {
    let mut clocks: Vec<HostClock> = Vec::new();
    let mut join = |kind, ticks: Ticks, flow: u32| match clocks
        .iter_mut()
        .find(|clock| clock.kind == kind && clock.ticks == ticks)
    {
        Some(clock) => clock.flows.push(flow),
        None => clocks.push(HostClock { kind, ticks, flows: vec![flow] }),
    };
    for (flow, number) in network.flows.iter().zip(0..) {
        let options = flow.tcp.options();
        let period = clock.span(options.timer_granularity);
        let phase = match options.tick_phase {
            TickPhase::Common => Span(0),
            TickPhase::Random => {
                let name = format!("flow/{}/tick_phase", flow.name);
                Span(Stream::new(network.seed, &name).next_u64() % period.0)
            }
        };
        join(ClockKind::Retransmission, Ticks::new(period, phase), number);
        if options.delayed_acks == DelayedAcks::On {
            join(ClockKind::DelayedAck, Ticks::new(clock.span(DELAYED_ACK_TICK), Span(0)), number);
        }
    }
    clocks
}
