//! The reference engine: a single event list, with one event for every cell's arrival and one for the end of its
//! transmission.
//!
//! It is deliberately naive; a faster engine must give the same fingerprint. The order of events
//! (`docs/design/engine-order.md`) is by time; within an instant by phase: deliveries, end systems, sources, admission,
//! service, timers; and within a phase by the index of the link, port or flow. The scenario decides the order of cells
//! that reach a port at the same instant. Events are reported to a probe that observes them (`event_sink`).

mod event_sink;
mod pause_frames;
mod shared_memory;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use typed_index_collections::{TiVec, ti_vec};

use super::predictions::{LossRecorder, predictions};
use super::{Advance, Interrupted, Outcome, Progress};
use crate::cancellation::{CancellationToken, all};
use crate::cell::{Cell, FrameNumber, Run};
use crate::contracts::Edge;
use crate::coverage::reached;
use crate::delay::PortDelays;
use crate::delay_line::DelayLine;
use crate::edge_device::Packet;
use crate::end_systems::{Departure, EndSystems, InjectedFrame};
use crate::events::CellStep;
use crate::index::{FlowIndex, Label, LinkIndex, MemoryIndex, VcIndex};
use crate::link_loss::{Fate, LinkLosses, LossyIndex};
use crate::marking::Marker;
use crate::memory::Memory;
use crate::metrics::FinalState;
use crate::network::{Graph, Link, LinkTimes, Network, Next, PAUSE_FRAME_BITS, Routing};
use crate::policy::formula::PortInfo;
use crate::port::admission::is_of_frame;
use crate::port::{Port, PortEvent};
use crate::probe::{NetworkView, Nothing, Probe, Queues};
use crate::queue_range::QueueRange;
use crate::rate_control::{Place, RateControl};
use crate::rng::Stream;
use crate::shaped_port::ShapedPort;
use crate::tie::{ServiceOrder, TieBreaker};
use crate::units::{Clock, Span, Time};
use crate::wire::Wire;
use event_sink::{EventSink, ReportedLosses};
use pause_frames::{PauseFrames, PauseOrder};
use shared_memory::{AtMemory, PausedGroup, SharedMemories, deadlock};

pub(super) struct Engine<'a> {
    network: &'a Network,
    routing: Routing,
    clock: Clock,
    times: TiVec<LinkIndex, LinkTimes>,
    ports: TiVec<LinkIndex, Port>,
    ties: TiVec<LinkIndex, TieBreaker>,
    markers: TiVec<LinkIndex, Option<Marker>>,
    memories: SharedMemories<'a>,
    /// The cell that a link is transmitting.
    transmitting: TiVec<LinkIndex, Option<Cell>>,
    /// For each link, the priorities that pause frames have stopped, one bit each.
    stopped: TiVec<LinkIndex, u8>,
    /// Pause frames as on a wire, if the network has them.
    pause_frames: Option<PauseFrames>,
    /// Time for which each link with Ethernet frames has sent packets, in units of the clock.
    on_ethernet: TiVec<LinkIndex, u64>,
    /// The first deadlock found, if any.
    deadlock: Option<(Time, Vec<PausedGroup>)>,
    rate_control: RateControl,
    /// Time of each shaped port's next event, by link, if the event is in the list.
    looked_after: TiVec<LinkIndex, Option<Time>>,
    edge: Edge,
    losses: TiVec<LossyIndex, LinkLosses>,
    /// The delay lines of links that delay packets.
    lines: TiVec<LossyIndex, Option<Box<DelayLine>>>,
    /// Time of each delay line's next event, if the event is in the list.
    line_events: TiVec<LossyIndex, Option<Time>>,
    /// Losses and delays on each link that has any.
    lossy: TiVec<LinkIndex, Option<LossyIndex>>,
    end_systems: EndSystems,
    events: BinaryHeap<Reverse<Event>>,
    now: Instant,
    reported_losses: ReportedLosses,
    /// Delays of packets at ports, if they are measured.
    delays: Option<PortDelays>,
}

/// An event. Events are ordered by time, then by kind, then by link or flow.
#[derive(Clone, Copy)]
struct Event {
    time: Time,
    what: What,
    /// The arriving cell. Other events do not use this field.
    cell: Cell,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A cell reaches the end of a link, or the delay line at that end has an event.
    AtEnd(LinkIndex, AtEnd),
    /// A connection starts to send.
    Start(FlowIndex),
    /// A link has finished sending a cell, or a shaped port may send one.
    Sent(LinkIndex),
    /// A pause frame reaches the port of a link.
    Pause { link: LinkIndex, priority: u8, stops: bool },
}

/// An event at the end of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum AtEnd {
    /// A cell arrives.
    Arrival,
    /// A cell leaves the delay line, or a packet on the line is due.
    Line,
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.time, self.what).cmp(&(other.time, other.what))
    }
}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Event {}

/// The current instant; reused for all instants to avoid allocations.
#[derive(Default)]
struct Instant {
    at_hosts: Vec<(VcIndex, Cell)>,
    at_ports: Vec<PortArrival>,
    /// RM cells at the end of their loop, by VC and number.
    at_ends: Vec<(VcIndex, FrameNumber)>,
    /// RM cells that pass a switch, by VC and number. Each has the port whose allocator writes into the cell.
    passing: Vec<(VcIndex, FrameNumber, Place)>,
    starts: Vec<FlowIndex>,
    /// Ports that may be able to start a transmission.
    to_serve: Vec<LinkIndex>,
    departures: Vec<Departure>,
    pauses_arrived: bool,
}

#[derive(Clone, Copy)]
struct PortArrival {
    port: LinkIndex,
    input: u32,
    vc: VcIndex,
    cell: Cell,
}

impl<'a> Engine<'a> {
    /// Creates the engine at the start of a run.
    ///
    /// # Errors
    /// Returns an error if the run is interrupted.
    pub(super) fn new(network: &'a Network, token: &CancellationToken<'_>) -> Result<Self, Interrupted> {
        let clock = network.clock();
        let routing = network.routing();
        let stream = |link: LinkIndex, purpose: &str| {
            Stream::new(network.seed, &format!("port/{}/{purpose}", network.links[link].name))
        };
        let port = |(index, link): (LinkIndex, &crate::network::Link)| {
            let vcs = routing.vcs[index].len();
            token.tick(vcs)?;
            let mut policy = network.policy(&routing, index);
            policy.at_port(&PortInfo::of(&link.name, link.buffer, link.rate, clock));
            let queues = link.scheduler.build(&network.vc_kinds(&routing, index));
            let port = Port::new(link.buffer, vcs, policy, stream(index, "policy"));
            Ok(port
                .merging(&routing.merging[index])
                .scheduled(queues)
                .framed(network.aal5.framing)
                .storing(network.stores(index)))
        };
        let times = LinkTimes::of(network, clock);
        let tie_breaker = |(index, link): (LinkIndex, &crate::network::Link)| {
            let cell_times = routing.inputs[link.from].iter().map(|&from| times[from].cell_time);
            TieBreaker::new(network.tie_order, cell_times, stream(index, "ties"))
        };
        let start = |(index, flow): (FlowIndex, &crate::network::Flow)| {
            let time = Time::default() + clock.span(flow.start);
            Reverse(Event { time, what: What::Start(index), cell: Cell::NONE })
        };
        let losses = network.losses(&routing, clock);
        let line_events = ti_vec![None; losses.len()];
        let mut lossy = ti_vec![None; network.links.len()];
        for (number, of_link) in losses.iter_enumerated() {
            lossy[of_link.link] = Some(number);
        }
        let rate_control = RateControl::new(network, &routing, clock, token)?;
        let delays = network.delays.at_ports().then(|| PortDelays::new(network, &routing, &rate_control, clock));
        let mut engine = Self {
            network,
            ports: all(network.links.iter_enumerated().map(port))?.into(),
            ties: network.links.iter_enumerated().map(tie_breaker).collect(),
            times,
            markers: network.links.keys().map(|link| network.marker(link)).collect(),
            memories: SharedMemories::new(network, &routing),
            transmitting: ti_vec![None; network.links.len()],
            stopped: ti_vec![0; network.links.len()],
            pause_frames: network.has_pause_frames().then(|| PauseFrames::new(network.links.len())),
            on_ethernet: ti_vec![0; network.links.len()],
            deadlock: None,
            rate_control,
            looked_after: ti_vec![None; network.links.len()],
            edge: Edge::new(network, clock),
            losses,
            lines: network.delay_lines(&routing, clock),
            line_events,
            lossy,
            end_systems: EndSystems::new(network, &routing, clock),
            events: network.flows.iter_enumerated().map(start).collect(),
            now: Instant::default(),
            reported_losses: ReportedLosses::default(),
            delays,
            clock,
            routing,
        };
        engine.predict(token)?;
        Ok(engine)
    }

    /// Gives memory policies the losses of Longest Queue Drop, which a separate run records.
    fn predict(&mut self, token: &CancellationToken<'_>) -> Result<(), Interrupted> {
        let predictions = predictions(self.network, |network, memory| {
            let mut run = Engine::new(network, token)?;
            run.memories.memories[memory].recorder = Some(LossRecorder::default());
            run.advance(Advance::to(network.end(run.clock)), &mut Nothing, &Progress::default(), token)?;
            Ok(run.memories.memories[memory].recorder.take().map(LossRecorder::into_losses).unwrap_or_default())
        })?;
        for (memory, pool, losses) in predictions {
            self.memories.memories[memory].memory.predict(pool, losses.into());
        }
        Ok(())
    }

    /// Records the outcomes of packets, for a probe that observes events.
    pub(super) fn note_fates(&mut self) {
        self.rate_control.note_fates();
    }

    /// Advances the run to `until`, including that instant. The probe takes snapshots before `snapshots_end`.
    ///
    /// # Errors
    /// Returns an error if the run is interrupted.
    pub(super) fn advance(
        &mut self,
        Advance { until, snapshots_end }: Advance,
        probe: &mut impl Probe,
        progress: &Progress,
        token: &CancellationToken<'_>,
    ) -> Result<(), Interrupted> {
        loop {
            let next = self.next_instant();
            let is_next = |at: Time| next.is_none_or(|next| at < next) && at < snapshots_end;
            while let Some(at) = probe.next_snapshot().filter(|&at| is_next(at)) {
                token.tick(self.ports.len())?;
                probe.snapshot(at, &self.view());
                self.start_ranges(probe.traced_ports());
            }
            let Some(now) = next.filter(|&now| now <= until) else { break };
            progress.now.set(now);
            let events = self.step(now, probe);
            // An instant may contain only an action of a memory policy, without events.
            token.tick(events.max(1))?;
        }
        progress.now.set(until);
        Ok(())
    }

    /// Passes a frame to its host's port at `now`, after all other events of this instant. The run must have reached
    /// `now`.
    pub(super) fn inject(&mut self, frame: InjectedFrame, now: Time, probe: &mut impl Probe) {
        self.end_systems.inject(frame, now, &mut self.now.departures);
        self.depart(now, probe);
        self.serve(now, probe);
    }

    /// Returns the end systems.
    pub(super) fn end_systems(&mut self) -> &mut EndSystems {
        &mut self.end_systems
    }

    /// Returns the next instant at which something happens, or `None` if the run is over.
    pub(super) fn next_instant(&self) -> Option<Time> {
        let event = self.events.peek().map(|event| event.0.time);
        event.into_iter().chain(self.end_systems.next_tick()).chain(self.memories.next_time()).min()
    }

    /// Processes everything that happens at `now`, phase by phase. Returns the number of events.
    fn step(&mut self, now: Time, probe: &mut impl Probe) -> usize {
        let mut events = self.collect(now, probe);
        self.deliver(now, probe);
        self.start_sources(now, probe);
        self.write(now);
        if self.network.service_order == ServiceOrder::BeforeArrivals {
            // The service order applies to ports that receive cells. Shaped ports receive packets.
            let shaped: Vec<LinkIndex> =
                self.now.to_serve.extract_if(.., |link| self.rate_control.port(*link).is_some()).collect();
            self.serve(now, probe);
            self.now.to_serve = shaped;
        }
        self.admit(now, probe);
        self.serve(now, probe);
        self.act_on_memories(now, probe);
        if self.end_systems.next_tick() == Some(now) {
            events += self.end_systems.on_tick(now, probe, &mut self.now.departures);
            self.depart(now, probe);
            self.serve(now, probe);
        }
        events
    }

    /// Removes this instant's events from the list. Returns their number. Arrivals are in link order, and starts in
    /// flow order.
    fn collect(&mut self, now: Time, probe: &mut impl Probe) -> usize {
        let before = self.events.len();
        while let Some(event) = self.events.peek().filter(|event| event.0.time == now) {
            let Event { what, cell, .. } = event.0;
            self.events.pop();
            match what {
                What::Start(flow) => self.now.starts.push(flow),
                What::Sent(link) => {
                    self.transmitting[link] = None;
                    self.now.to_serve.push(link);
                }
                What::AtEnd(link, AtEnd::Arrival) => self.arrive(link, cell, now, probe),
                What::AtEnd(link, AtEnd::Line) => self.move_line(link, None, now, probe),
                What::Pause { link, priority, stops } => {
                    let mask = 1 << priority;
                    let stopped = &mut self.stopped[link];
                    *stopped = if stops { *stopped | mask } else { *stopped & !mask };
                    self.now.to_serve.push(link);
                    self.now.pauses_arrived = true;
                }
            }
        }
        before - self.events.len()
    }

    /// Handles a cell that reaches the end of a link.
    fn arrive(&mut self, link: LinkIndex, cell: Cell, now: Time, probe: &mut impl Probe) {
        let Some(number) = self.lossy[link] else { return self.pass_on(link, cell, now, probe) };
        let vc = self.routing.vcs[link][cell.label()];
        match self.losses[number].take(cell, || self.end_systems.segment(vc, cell.frame)) {
            Fate::Lost(loss) => self.event_sink(now, probe).lost_on_link(link, cell, loss),
            Fate::Passes if self.lines[number].is_none() => self.pass_on(link, cell, now, probe),
            Fate::Passes => self.move_line(link, Some((cell, None)), now, probe),
            Fate::Delayed(delay) => {
                self.end_systems.delay(vc, cell.frame);
                self.move_line(link, Some((cell, Some(delay))), now, probe);
            }
        }
    }

    /// Advances the delay line at the end of a link to `now`. A cell may enter the line, with the delay of its packet.
    fn move_line(
        &mut self,
        link: LinkIndex,
        entering: Option<(Cell, Option<Span>)>,
        now: Time,
        probe: &mut impl Probe,
    ) {
        let number = self.lossy[link].expect("the link has rules");
        let delayed = self.lines[number].as_mut().expect("the link has a delay line");
        let vcs = &self.routing.vcs[link];
        let mut released = |label, frame| self.end_systems.release(vcs[label], frame);
        match entering {
            Some((cell, delay)) => delayed.enter(cell, delay, now, &mut released),
            None => delayed.advance(now, &mut released),
        }
        let leaving = delayed.take(now);
        let event = &mut self.line_events[number];
        if let Some(time) = delayed.next_action().filter(|&time| event.is_none_or(|other| other <= now || time < other))
        {
            *event = Some(time);
            self.events.push(Reverse(Event { time, what: What::AtEnd(link, AtEnd::Line), cell: Cell::NONE }));
        }
        if let Some(cell) = leaving {
            self.pass_on(link, cell, now, probe);
        }
    }

    /// Handles a cell that has reached the end of a link and is not lost.
    fn pass_on(&mut self, link: LinkIndex, cell: Cell, now: Time, probe: &mut impl Probe) {
        let vc = self.routing.vcs[link][cell.label()];
        if self.rate_control.ends(vc, link) {
            if cell.is_rm() {
                self.now.at_ends.push((vc, cell.frame));
                return;
            }
            self.rate_control.on_data_end(vc, cell.efci());
        }
        match self.routing.next[link][cell.label()] {
            Next::Host { vc } => self.now.at_hosts.push((vc, cell)),
            Next::Port { link: port, label } => {
                if let Some(place) = self.rate_control.allocator_at(link, cell.label()).filter(|_| cell.is_rm()) {
                    self.now.passing.push((vc, cell.frame, place));
                }
                let input = self.routing.input[link];
                let polices_here = self.edge.polices_at(vc, link);
                let came_tagged = cell.tagged();
                let cell = if polices_here { self.edge.on_cell(vc, now, cell) } else { cell }.relabelled(label);
                if cell.tagged() != came_tagged {
                    self.event_sink(now, probe).cell(port, cell, CellStep::Tagged);
                }
                if let Some(delays) = &mut self.delays {
                    delays.on_arrival(port, cell, now);
                }
                self.now.at_ports.push(PortArrival { port, input, vc, cell });
            }
        }
    }

    /// Runs the phases of deliveries and end systems.
    fn deliver(&mut self, now: Time, probe: &mut impl Probe) {
        let mut at_ends = std::mem::take(&mut self.now.at_ends);
        for (vc, number) in at_ends.drain(..) {
            let turned = self.rate_control.turn_around(vc, number);
            let Place { link, label } = self.rate_control.goes_to(vc);
            let before = self.acr(link, label);
            self.rate_control.deliver(vc, number, turned, now);
            self.event_sink(now, probe).rate(link, label, before);
            self.emit_packet_outcomes(link, now, probe);
            self.now.to_serve.push(link);
        }
        self.now.at_ends = at_ends;
        let mut at_hosts = std::mem::take(&mut self.now.at_hosts);
        for (vc, cell) in at_hosts.drain(..) {
            // The cell may show that the previous packet has failed, and may be the only cell of its own packet.
            let mut failed = Vec::new();
            let run = Run { last: cell, cells: 1 };
            let whole = self.end_systems.collect(vc, run, |frame, why| failed.push((frame, why)));
            for (frame, why) in failed {
                self.event_sink(now, probe).failed(vc, frame, why);
            }
            if let Some(frame) = whole {
                self.end_systems.deliver(vc, frame, now, probe, &mut self.now.departures);
            }
        }
        self.now.at_hosts = at_hosts;
        self.depart(now, probe);
    }

    fn start_sources(&mut self, now: Time, probe: &mut impl Probe) {
        for flow in self.now.starts.drain(..) {
            self.end_systems.start(flow, probe, &mut self.now.departures);
        }
        self.depart(now, probe);
    }

    /// Passes the end systems' frames to their hosts' ports.
    fn depart(&mut self, now: Time, probe: &mut impl Probe) {
        let mut departures = std::mem::take(&mut self.now.departures);
        for Departure { link, last, cells, .. } in departures.drain(..) {
            self.now.to_serve.push(link);
            let cell = |number| if number == cells { last } else { last.not_last() };
            if let Some(delays) = &mut self.delays {
                delays.on_arrival(link, cell(cells), now);
            }
            if let Some(port) = self.rate_control.port_mut(link) {
                port.on_packet(last.label(), Packet { frame: last.frame, cells, tagged: last.tagged() });
                (1..=cells).for_each(|number| self.event_sink(now, probe).cell(link, cell(number), CellStep::Arrived));
                self.emit_packet_outcomes(link, now, probe);
                continue;
            }
            (1..=cells).for_each(|number| self.offer(link, cell(number), now, probe));
        }
        self.now.departures = departures;
    }

    /// Offers a cell to a port that is not shaped.
    fn offer(&mut self, link: LinkIndex, cell: Cell, now: Time, probe: &mut impl Probe) {
        self.event_sink(now, probe).cell(link, cell, CellStep::Arrived);
        let marked = self.mark(link, cell, Marker::on_arrival);
        if marked != cell {
            self.event_sink(now, probe).cell(link, marked, CellStep::Marked);
        }
        let cell = marked;
        let Self { ports, memories, routing, end_systems, rate_control, reported_losses, transmitting, .. } = self;
        let mut event_sink =
            EventSink { now, probe, routing, end_systems, rate_control, reported_losses, refusal: None };
        let length = || end_systems.packet_cells(routing.vcs[link][cell.label()], cell.frame);
        if let Some(memory) = memories.of_port(link) {
            if ports[link].stores().is_some() {
                memory.store(ports, link, cell, length, now, |event| event_sink.memory(cell, &event));
            } else {
                memory.offer(ports, link, cell, now, |event| event_sink.memory(cell, &event));
            }
            return;
        }
        let port = &mut ports[link];
        let occupancy = port.occupancy();
        if port.stores().is_some() {
            port.store_observed(cell, length, now, |event| event_sink.port(link, cell, occupancy, &event));
            return;
        }
        port.offer_observed(cell, now, |event| {
            reached!(FrameInServicePushedOut if is_of_frame_in_service(&event, transmitting[link]));
            event_sink.port(link, cell, occupancy, &event);
        });
    }

    /// Passes a cell to the port's marker, on arrival or at departure. Returns the cell, perhaps marked.
    fn mark(&mut self, link: LinkIndex, cell: Cell, on: fn(&mut Marker, Cell, u32) -> Cell) -> Cell {
        let Some(marker) = &mut self.markers[link] else { return cell };
        let at_port = self.ports[link].occupancy();
        let waiting = match self.memories.of_port(link) {
            Some(shared) => shared.counted(marker.of, link, cell, at_port),
            None => at_port,
        };
        on(marker, cell, waiting)
    }

    fn act_on_memories(&mut self, now: Time, probe: &mut impl Probe) {
        let Self { ports, memories, routing, end_systems, rate_control, reported_losses, .. } = self;
        let mut event_sink =
            EventSink { now, probe, routing, end_systems, rate_control, reported_losses, refusal: None };
        for memory in &mut memories.memories {
            memory.on_time(ports, now, |event| event_sink.memory(Cell::NONE, &event));
        }
        self.send_pauses(now);
        if self.pause_frames.is_some() {
            self.serve(now, probe);
        }
        if std::mem::take(&mut self.now.pauses_arrived) && self.deadlock.is_none() {
            self.look_for_deadlock(now, probe);
        }
    }

    /// Sends the pause frames of this instant to the ports that feed the paused or released groups.
    fn send_pauses(&mut self, now: Time) {
        for memory in &mut self.memories.memories {
            for (link, priority, stops) in memory.take_pause_frames() {
                if let Some(frames) = &mut self.pause_frames {
                    let rate = self.network.links[link].rate;
                    let response = memory.pause_response(rate).span(rate, self.clock);
                    let by = Graph::way_back(link);
                    frames.push(by, PauseOrder { link, priority, stops, response });
                    self.now.to_serve.push(by);
                    continue;
                }
                // A pause frame is as long as a cell, and takes the link's delay to travel back.
                let LinkTimes { cell_time, delay } = self.times[link];
                let what = What::Pause { link, priority, stops };
                self.events.push(Reverse(Event { time: now + cell_time + delay, what, cell: Cell::NONE }));
            }
        }
    }

    /// Looks for groups that pause each other forever, and reports the first cycle.
    fn look_for_deadlock(&mut self, now: Time, probe: &mut impl Probe) {
        let mut groups = BTreeMap::new();
        for memory in &self.memories.memories {
            groups.extend(memory.paused_groups(&self.ports));
        }
        let finishes =
            |link| self.pause_frames.as_ref().is_some_and(|frames| frames.is_in_packet(link, &self.ports[link]));
        let is_stopped = |(link, priority): PausedGroup| self.stopped[link] & (1 << priority) != 0 && !finishes(link);
        let Some(cycle) = deadlock(groups, is_stopped) else { return };
        for &group in &cycle {
            let events = self.memories.memories.iter().find_map(|memory| memory.deadlocked(group, now));
            if let Some(event) = events {
                self.event_sink(now, probe).memory(Cell::NONE, &AtMemory::Memory(event));
            }
        }
        self.deadlock = Some((now, cycle));
    }

    fn event_sink<'b, P: Probe>(&'b mut self, now: Time, probe: &'b mut P) -> EventSink<'b, P> {
        let Self { routing, end_systems, rate_control, reported_losses, .. } = self;
        EventSink { now, probe, routing, end_systems, rate_control, reported_losses, refusal: None }
    }

    /// Reports the outcomes of packets at the shaped port of a link since the last call.
    fn emit_packet_outcomes(&mut self, link: LinkIndex, now: Time, probe: &mut impl Probe) {
        let outcomes = self.rate_control.port_mut(link).map(ShapedPort::take_outcomes).unwrap_or_default();
        for fate in outcomes {
            self.event_sink(now, probe).packet(link, &fate);
        }
    }

    /// Returns the ACR of a VC that is shaped at the port of a link, or the line rate if it has no ACR. Returns 0 at
    /// other ports.
    fn acr(&self, link: LinkIndex, label: Label) -> f64 {
        self.rate_control.port(link).map_or(0.0, |port| port.acr(label))
    }

    /// Lets allocators write into the backward RM cells that pass their ports.
    fn write(&mut self, now: Time) {
        for (vc, number, place) in self.now.passing.drain(..) {
            if self.rate_control.goes_backward(vc, number) {
                let queue = self.ports[place.link].occupancy();
                self.rate_control.write(vc, number, place, queue, now);
            }
        }
    }

    fn admit(&mut self, now: Time, probe: &mut impl Probe) {
        let mut at_ports = std::mem::take(&mut self.now.at_ports);
        let memories = &self.memories;
        at_ports.sort_by_key(|arrival| (memories.first_port(arrival.port), arrival.input));
        let first_port = |arrival: &PortArrival| memories.first_port(arrival.port);
        let groups: Vec<usize> = at_ports.chunk_by(|a, b| first_port(a) == first_port(b)).map(<[_]>::len).collect();
        let mut rest = &mut at_ports[..];
        for group in groups {
            let together;
            (together, rest) = rest.split_at_mut(group);
            let port = together[0].port;
            reached!(ArrivalAsOneLeaves if self.ports[port].room() == 0 && self.now.to_serve.contains(&port));
            self.now.to_serve.push(port);
            if self.rate_control.port(port).is_some() {
                for arrival in together {
                    self.event_sink(now, probe).cell(port, arrival.cell, CellStep::Arrived);
                    if arrival.cell.last_cell() && arrival.cell.efci() {
                        self.end_systems.mark(arrival.vc, arrival.cell.frame);
                    }
                    let shaped = self.rate_control.port_mut(port).expect("the port is shaped");
                    shaped.on_cells(Run { last: arrival.cell, cells: 1 });
                    self.emit_packet_outcomes(port, now, probe);
                }
                continue;
            }
            let ties = match self.memories.of_port(port) {
                Some(memory) => {
                    self.now.to_serve.extend(together[1..].iter().map(|arrival| arrival.port));
                    &mut memory.ties
                }
                None => &mut self.ties[port],
            };
            ties.order(now, together, |arrival| arrival.input);
            reached!(TieAtFullBuffer if together.len() > 1 && (self.ports[port].room() as usize) < together.len());
            for arrival in together {
                let run = Run { last: arrival.cell, cells: 1 };
                self.rate_control.on_arrival(arrival.port, arrival.vc, run, now, Span(0));
                self.offer(arrival.port, arrival.cell, now, probe);
            }
        }
        at_ports.clear();
        self.now.at_ports = at_ports;
    }

    /// Starts a transmission at every port that is free and has a cell.
    fn serve(&mut self, now: Time, probe: &mut impl Probe) {
        let mut to_serve = std::mem::take(&mut self.now.to_serve);
        if !self.network.memories.is_empty() {
            // Departures from ports of one memory affect the thresholds of the memory's other ports.
            to_serve.sort_unstable();
        }
        for link in to_serve.drain(..) {
            let LinkTimes { cell_time, delay } = self.times[link];
            if self.rate_control.port(link).is_some() {
                if let Some(cell) = self.shape(link, now, probe) {
                    if let Some(delays) = &mut self.delays {
                        delays.on_departure(link, cell, now);
                    }
                    self.events.push(Reverse(Event {
                        time: now + cell_time + delay,
                        what: What::AtEnd(link, AtEnd::Arrival),
                        cell,
                    }));
                }
                let port = self.rate_control.port(link).expect("the port is shaped");
                let next = port.next_start();
                let looked_after = &mut self.looked_after[link];
                if let Some(time) = next.filter(|&time| looked_after.is_none_or(|other| other <= now || time < other)) {
                    *looked_after = Some(time);
                    let cell = Cell::NONE;
                    self.events.push(Reverse(Event { time, what: What::Sent(link), cell }));
                }
                continue;
            }
            if self.transmitting[link].is_some() {
                continue;
            }
            if self.send_pause_frame(link, now) {
                continue;
            }
            let Some(cell) = self.take_cell(link) else { continue };
            let port = &self.ports[link];
            let Self { memories, routing, end_systems, rate_control, reported_losses, .. } = self;
            if let Some(memory) = memories.of_port(link) {
                let mut event_sink =
                    EventSink { now, probe, routing, end_systems, rate_control, reported_losses, refusal: None };
                memory.leave(link, cell, now, |event| event_sink.memory(cell, &event));
            }
            let cell = match self.rate_control.allocator(link) {
                Some(allocator)
                    if !cell.is_rm() && allocator.marks_above().is_some_and(|most| port.occupancy() > most) =>
                {
                    let marked = cell.with_efci(true);
                    if marked != cell {
                        self.event_sink(now, probe).cell(link, marked, CellStep::Marked);
                    }
                    marked
                }
                _ => cell,
            };
            let marked = self.mark(link, cell, Marker::on_departure);
            if marked != cell {
                self.event_sink(now, probe).cell(link, marked, CellStep::Marked);
            }
            let cell = marked;
            if let Some(delays) = &mut self.delays {
                delays.on_departure(link, cell, now);
            }
            self.event_sink(now, probe).cell(link, cell, CellStep::Departed);
            self.transmitting[link] = Some(cell);
            let sent = now + self.sending_time(link, cell);
            self.events.push(Reverse(Event { time: sent, what: What::Sent(link), cell }));
            self.events.push(Reverse(Event { time: sent + delay, what: What::AtEnd(link, AtEnd::Arrival), cell }));
        }
        self.now.to_serve = to_serve;
    }

    /// Passes the next cell of a port that is not shaped to the transmitter.
    fn take_cell(&mut self, link: LinkIndex) -> Option<Cell> {
        let Self { network, routing, ports, stopped, pause_frames, now, .. } = self;
        let (port, stopped) = (&mut ports[link], stopped[link]);
        let may_go = (stopped != 0).then_some(|label| {
            let vc: VcIndex = routing.vcs[link][label];
            stopped & (1 << network.vcs[vc].priority) == 0
        });
        match (pause_frames, may_go) {
            (Some(frames), may_go) => {
                let cell = frames.take_cell(link, port, may_go)?;
                // The end of a packet at a stopped port may complete a deadlock.
                now.pauses_arrived |= stopped != 0 && cell.last_cell();
                Some(cell)
            }
            (None, Some(may_go)) => port.take_unpaused(may_go),
            (None, None) => port.take(),
        }
    }

    /// Returns the time that a cell takes on a link.
    fn sending_time(&mut self, link: LinkIndex, cell: Cell) -> Span {
        let LinkTimes { cell_time, .. } = self.times[link];
        let Link { wire: wire @ Wire::Ethernet, rate, .. } = self.network.links[link] else { return cell_time };
        let time = if cell.last_cell() {
            let (bytes, cells) = self.end_systems.length(self.routing.vcs[link][cell.label()], cell.frame);
            self.clock.sending_time(wire.last_cell_bits(bytes, cells, self.clock.cell_bits), rate)
        } else {
            cell_time
        };
        self.on_ethernet[link] += time.0;
        time
    }

    /// Starts to send the pause frame that waits at a free port, if no packet is under way. Returns whether it does.
    fn send_pause_frame(&mut self, link: LinkIndex, now: Time) -> bool {
        let Some(frames) = &mut self.pause_frames else { return false };
        let orders = frames.take(link, &self.ports[link]);
        if orders.is_empty() {
            return false;
        }
        let Link { wire, rate, .. } = self.network.links[link];
        let sent = now + self.clock.sending_time(wire.frame_bits(PAUSE_FRAME_BITS / 8), rate);
        self.transmitting[link] = Some(Cell::NONE);
        self.events.push(Reverse(Event { time: sent, what: What::Sent(link), cell: Cell::NONE }));
        for PauseOrder { link: stopped, priority, stops, response } in orders {
            let what = What::Pause { link: stopped, priority, stops };
            let time = sent + self.times[link].delay + response;
            self.events.push(Reverse(Event { time, what, cell: Cell::NONE }));
        }
        true
    }

    /// Removes the cell that a shaped port sends now, if it may send one.
    fn shape<P: Probe>(&mut self, link: LinkIndex, now: Time, probe: &mut P) -> Option<Cell> {
        let vcs = || self.routing.vcs[link].keys();
        let before: TiVec<Label, f64> =
            if P::OBSERVES { vcs().map(|label| self.acr(link, label)).collect() } else { TiVec::new() };
        let (Run { last: cell, .. }, _) = self.rate_control.port_mut(link)?.send(now, None)?;
        if P::OBSERVES {
            let mut event_sink = self.event_sink(now, probe);
            event_sink.rate(link, cell.label(), before[cell.label()]);
            if cell.is_rm() {
                event_sink.cell(link, cell, CellStep::Arrived);
                event_sink.cell(link, cell, CellStep::Admitted);
            }
            event_sink.cell(link, cell, CellStep::Departed);
        }
        Some(cell)
    }

    fn start_ranges(&mut self, links: &[LinkIndex]) {
        for &link in links {
            match self.rate_control.port_mut(link) {
                Some(shaped) => shaped.start_range(),
                None => self.ports[link].start_range(),
            }
        }
    }

    fn view(&self) -> NetworkView<'_> {
        NetworkView { queues: self, rate_control: &self.rate_control, end_systems: &self.end_systems }
    }

    /// Computes the results up to `end`, which the run must have reached.
    ///
    /// # Errors
    /// Returns an error if the run is interrupted.
    pub(super) fn snapshot(&self, end: Time, token: &CancellationToken<'_>) -> Outcome {
        let mut on_links: TiVec<VcIndex, u64> = ti_vec![0; self.network.vcs.len()];
        for Reverse(event) in &self.events {
            if let What::AtEnd(link, AtEnd::Arrival) = event.what {
                let vc = self.routing.vcs[link][event.cell.label()];
                on_links[vc] += 1;
            }
        }
        for (losses, line) in self.losses.iter().zip(&self.lines) {
            for cell in line.iter().flat_map(|line| line.cells()) {
                on_links[self.routing.vcs[losses.link][cell.label()]] += 1;
            }
        }
        let state = |(link, port): (LinkIndex, &Port)| match self.rate_control.port(link) {
            Some(shaped) => shaped.state(),
            None => port.state(),
        };
        let ports: TiVec<LinkIndex, _> = self.ports.iter_enumerated().map(state).collect();
        let memories: TiVec<MemoryIndex, _> =
            self.memories.memories.iter().map(|shared| shared.memory.state(end)).collect();
        let (ports, on_links, memories) = (&ports, &on_links, &memories);
        let &Self { network, ref routing, clock, ref end_systems, ref edge, ref losses, ref rate_control, .. } = self;
        FinalState {
            network,
            routing,
            clock,
            end,
            ports,
            memories,
            deadlock: self.deadlock.as_ref(),
            on_ethernet: Some(&self.on_ethernet),
            end_systems,
            on_links,
            losses,
            edge,
            rate_control,
            delays: self.delays.as_ref().map(PortDelays::times),
            token,
        }
        .measure()
    }
}

/// Returns whether a cell is pushed out of the frame whose cell is being transmitted.
fn is_of_frame_in_service(event: &PortEvent<'_>, in_service: Option<Cell>) -> bool {
    matches!(*event, PortEvent::PushedOut { cell, .. } if in_service.is_some_and(|sent| is_of_frame(sent, cell)))
}

impl Queues for Engine<'_> {
    fn occupancy(&self, link: LinkIndex) -> u32 {
        match self.rate_control.port(link) {
            Some(shaped) => shaped.occupancy(),
            None => self.ports[link].occupancy(),
        }
    }

    fn range(&self, link: LinkIndex) -> QueueRange {
        match self.rate_control.port(link) {
            Some(shaped) => shaped.buffer().range(),
            None => self.ports[link].range(),
        }
    }

    fn per_vc(&self, link: LinkIndex, into: &mut Vec<u32>) {
        match self.rate_control.port(link) {
            Some(shaped) => into.extend(shaped.per_vc()),
            None => into.extend(self.ports[link].per_vc()),
        }
    }

    fn memory(&self, memory: MemoryIndex) -> &Memory {
        &self.memories.memories[memory].memory
    }
}
