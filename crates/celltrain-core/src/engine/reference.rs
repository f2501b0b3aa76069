//! The reference engine: a single event list, with one event for every cell's arrival and one for the end of its
//! transmission.
//!
//! The engine is deliberately naive; a faster engine must give the same fingerprint. Events are ordered by time, then
//! by phase (deliveries, end systems, sources, admission, service, timers), and then by the index of the link, port or
//! flow (`docs/design/engine-order.md`). The scenario decides the order of cells that reach a port at the same instant.
//! Events are reported to a probe that observes them (`event_sink`).

mod buffers;
mod build;
mod event_sink;
mod link_ends;
mod pauses;
mod shaping;
mod shared_memory;
mod state;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use typed_index_collections::TiVec;

use super::{Advance, Interrupted, Progress};
use crate::cancellation::CancellationToken;
use crate::cell::{Cell, FrameNumber, Run};
use crate::contracts::Edge;
use crate::coverage::reached;
use crate::delay::PortDelays;
use crate::departing::Departing;
use crate::edge_device::Packet;
use crate::end_systems::{Departure, EndSystems, InjectedFrame};
use crate::events::CellStep;
use crate::index::{FlowIndex, Label, LinkIndex, VcIndex};
use crate::link_changes::Transmitter;
use crate::marking::Marker;
use crate::network::{Link, LinkTimes, Network, Routing};
use crate::policy::AtHead;
use crate::port::PortEvent;
use crate::port::admission::is_of_frame;
use crate::probe::Probe;
use crate::rate_control::{Place, RateControl};
use crate::tie::ServiceOrder;
use crate::units::{Clock, Span, Time};
use crate::wire::Wire;
use buffers::{Arriving, BufferEvent, Buffers};
use event_sink::{ReportedLosses, event_sink};
use link_ends::LinkEnds;
use pauses::PauseState;

pub(super) struct Engine<'a> {
    network: &'a Network,
    routing: Routing,
    clock: Clock,
    times: TiVec<LinkIndex, LinkTimes>,
    /// Buffers of ports that are not shaped.
    buffers: Buffers<'a>,
    /// The cell that a link is transmitting.
    transmitting: TiVec<LinkIndex, Option<Cell>>,
    pauses: PauseState,
    /// The transmitters of links whose rate changes; empty if there are none.
    transmitters: TiVec<LinkIndex, Option<Transmitter>>,
    /// Time for which each link with Ethernet frames has sent packets, in units of the clock.
    on_ethernet: TiVec<LinkIndex, u64>,
    rate_control: RateControl,
    /// Time of each shaped port's next event, by link, if the event is in the list.
    looked_after: TiVec<LinkIndex, Option<Time>>,
    edge: Edge,
    link_ends: LinkEnds,
    end_systems: EndSystems,
    events: BinaryHeap<Reverse<Event>>,
    now: Instant,
    reported_losses: ReportedLosses,
    /// Delays of packets at ports, if they are measured.
    delays: Option<PortDelays>,
}

/// An event. Events are ordered by time, then by kind, then by link or flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    /// A link has finished sending a cell, or a shaped port may send a cell.
    Sent(LinkIndex),
    /// A pause frame reaches the port of a link. `number` is the number of frames sent before it.
    Pause { link: LinkIndex, priority: u8, number: u64, stops: bool },
}

/// An event at the end of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum AtEnd {
    /// A cell arrives at the end of the link.
    Arrival,
    /// A cell leaves the delay line, or a packet on the line is due.
    Line,
}

/// Work lists for the current instant, reused to avoid allocations.
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
}

#[derive(Clone, Copy)]
struct PortArrival {
    port: LinkIndex,
    input: u32,
    vc: VcIndex,
    cell: Cell,
}

impl Engine<'_> {
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
                token.tick(self.times.len())?;
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
        event.into_iter().chain(self.end_systems.next_tick()).chain(self.buffers.next_time()).min()
    }

    /// Processes everything that happens at `now`, phase by phase. Returns the number of events.
    fn step(&mut self, now: Time, probe: &mut impl Probe) -> usize {
        let mut events = self.collect(now, probe);
        self.deliver(now, probe);
        self.start_sources(now, probe);
        self.write(now);
        if self.network.service_order == ServiceOrder::BeforeArrivals {
            // The service order applies to ports that receive cells. Shaped ports receive packets, so they are
            // excluded.
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
                What::Pause { link, priority, stops, .. } => {
                    self.pauses.arrive(link, priority, stops);
                    self.now.to_serve.push(link);
                }
            }
        }
        before - self.events.len()
    }

    /// Runs the phases of deliveries and end systems.
    fn deliver(&mut self, now: Time, probe: &mut impl Probe) {
        let mut at_ends = std::mem::take(&mut self.now.at_ends);
        for (vc, number) in at_ends.drain(..) {
            self.end_loop(vc, number, now, probe);
        }
        self.now.at_ends = at_ends;
        let mut at_hosts = std::mem::take(&mut self.now.at_hosts);
        for (vc, cell) in at_hosts.drain(..) {
            // The cell may show that the previous packet has failed, and may be the only cell of its own packet.
            let mut failed = Vec::new();
            let run = Run { last: cell, cells: 1 };
            let whole = self.end_systems.collect(vc, run, |frame, why| failed.push((frame, why)));
            for (frame, why) in failed {
                event_sink!(self, now, probe).failed(vc, frame, why);
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
            if let Some(port) = self.rate_control.port_mut(link) {
                self.buffers.frames[link].enter(cell(cells), now);
                port.on_packet(last.label(), Packet { frame: last.frame, cells, tagged: last.tagged() });
                (1..=cells)
                    .for_each(|number| event_sink!(self, now, probe).cell(link, cell(number), CellStep::Arrived));
                self.emit_packet_outcomes(link, now, probe);
                continue;
            }
            (1..=cells).for_each(|number| self.offer(link, cell(number), now, probe));
        }
        self.now.departures = departures;
    }

    /// Admits the cells that have reached ports. Cells for ports of one memory are ordered together.
    fn admit(&mut self, now: Time, probe: &mut impl Probe) {
        let mut at_ports = std::mem::take(&mut self.now.at_ports);
        let mut rest = &mut at_ports[..];
        for group in self.group_by_order(rest) {
            let together;
            (together, rest) = rest.split_at_mut(group);
            let port = together[0].port;
            let room = self.buffers.ports[port].room() as usize;
            reached!(ArrivalAsOneLeaves if room == 0 && self.now.to_serve.contains(&port));
            self.now.to_serve.extend(together.chunk_by(|a, b| a.port == b.port).map(|cells| cells[0].port));
            if self.rate_control.port(port).is_some() {
                for arrival in together.iter() {
                    self.admit_shaped(arrival, now, probe);
                }
                continue;
            }
            self.buffers.of(port).ties().order(now, together, |arrival| arrival.input);
            reached!(TieAtFullBuffer if together.len() > 1 && room < together.len());
            for arrival in together {
                let run = Run { last: arrival.cell, cells: 1 };
                self.rate_control.on_arrival(arrival.port, arrival.vc, run, now, Span(0));
                self.offer(arrival.port, arrival.cell, now, probe);
            }
        }
        at_ports.clear();
        self.now.at_ports = at_ports;
    }

    /// Sorts cells by port and input link, and returns the lengths of the groups whose cells are ordered together.
    fn group_by_order(&self, at_ports: &mut [PortArrival]) -> Vec<usize> {
        let first_port = |arrival: &PortArrival| self.buffers.first_port(arrival.port);
        at_ports.sort_by_key(|arrival| (first_port(arrival), arrival.input));
        at_ports.chunk_by(|a, b| first_port(a) == first_port(b)).map(<[_]>::len).collect()
    }

    /// Offers a cell to the buffer of a port that is not shaped.
    fn offer(&mut self, link: LinkIndex, cell: Cell, now: Time, probe: &mut impl Probe) {
        event_sink!(self, now, probe).cell(link, cell, CellStep::Arrived);
        let waiting = self.buffers.counted(link, cell);
        let cell = self.mark(link, cell, |marker| marker.on_arrival(cell, waiting), now, probe);
        let in_service = self.transmitting[link];
        let length = || self.end_systems.packet_cells(self.routing.vcs[link][cell.label()], cell.frame);
        let mut event_sink = event_sink!(self, now, probe);
        self.buffers.offer(Arriving { link, cell, length: &length }, now, &mut |event| {
            reached!(FrameInServicePushedOut if is_of_frame_in_service(&event, in_service));
            event_sink.buffer(cell, &event);
        });
    }

    /// Marks the last cell of a frame that the port's policy has decided to mark. Returns the cell.
    fn mark_at_head(&mut self, link: LinkIndex, cell: Cell, fate: AtHead, now: Time, probe: &mut impl Probe) -> Cell {
        if fate != AtHead::Mark || !cell.last_cell() || cell.efci() {
            return cell;
        }
        let marked = cell.with_efci(true);
        event_sink!(self, now, probe).cell(link, marked, CellStep::Marked);
        marked
    }

    /// Passes a cell to the port's marker, on arrival or at departure. Returns the cell, perhaps marked.
    fn mark(
        &mut self,
        link: LinkIndex,
        cell: Cell,
        on: impl FnOnce(&mut Marker) -> Cell,
        now: Time,
        probe: &mut impl Probe,
    ) -> Cell {
        let Some(marker) = &mut self.buffers.markers[link] else { return cell };
        let after = on(marker);
        if after != cell {
            event_sink!(self, now, probe).cell(link, after, CellStep::Marked);
        }
        after
    }

    /// Starts a transmission at every port that is free and has a cell.
    fn serve(&mut self, now: Time, probe: &mut impl Probe) {
        let mut to_serve = std::mem::take(&mut self.now.to_serve);
        if !self.network.memories.is_empty() {
            // Departures from ports of one memory affect the thresholds of the memory's other ports.
            to_serve.sort_unstable();
        }
        for link in to_serve.drain(..) {
            if self.rate_control.port(link).is_some() {
                self.serve_shaped(link, now, probe);
            } else if self.transmitting[link].is_none() && !self.send_pause_frame(link, now) {
                self.send(link, now, probe);
            }
        }
        self.now.to_serve = to_serve;
    }

    /// Starts to transmit the next cell of a port that is not shaped, if there is one.
    fn send(&mut self, link: LinkIndex, now: Time, probe: &mut impl Probe) {
        if let Some(Some(transmitter)) = self.transmitters.get_mut(link) {
            let ready = transmitter.ready(now);
            if ready > now {
                self.transmitting[link] = Some(Cell::NONE);
                self.events.push(Reverse(Event { time: ready, what: What::Sent(link), cell: Cell::NONE }));
                return;
            }
        }
        let vcs = &self.routing.vcs[link];
        let priority = |label: Label| self.network.vcs[vcs[label]].priority;
        let departing = loop {
            let Some(cell) = self.pauses.take_cell(link, &mut self.buffers.ports[link], priority) else { return };
            let mut event_sink = event_sink!(self, now, probe);
            let mut emit = |event: BufferEvent<'_>| event_sink.buffer(cell, &event);
            self.buffers.of(link).leave(link, cell, now, &mut emit);
            self.pauses.on_departure(link, cell, &self.buffers);
            let fate = self.buffers.at_head(link, cell, now, &mut emit);
            let departing = self.buffers.departing(link, cell, now);
            if fate != AtHead::Drop {
                break Departing { cell: self.mark_at_head(link, cell, fate, now, probe), ..departing };
            }
            self.buffers.ports[link].drop_taken(cell);
            event_sink!(self, now, probe).cell(link, cell, CellStep::DroppedAtHead);
        };
        let cell = self.mark(link, departing.cell, |marker| marker.on_departure(departing), now, probe);
        if let Some(delays) = &mut self.delays {
            delays.on_departure(link, departing, now);
        }
        event_sink!(self, now, probe).cell(link, cell, CellStep::Departed);
        self.transmitting[link] = Some(cell);
        let sent = now + self.sending_time(link, cell, now);
        self.events.push(Reverse(Event { time: sent, what: What::Sent(link), cell }));
        let time = sent + self.times[link].delay;
        self.events.push(Reverse(Event { time, what: What::AtEnd(link, AtEnd::Arrival), cell }));
    }

    /// Returns the time that a cell takes on a link if it starts at `now`.
    fn sending_time(&mut self, link: LinkIndex, cell: Cell, now: Time) -> Span {
        if let Some(Some(transmitter)) = self.transmitters.get_mut(link) {
            return transmitter.send(cell, now);
        }
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
}

/// Returns whether a cell is pushed out of the frame whose cell is being transmitted.
fn is_of_frame_in_service(event: &BufferEvent<'_>, in_service: Option<Cell>) -> bool {
    let BufferEvent::Port(_, _, PortEvent::PushedOut { cell, .. }) = *event else { return false };
    in_service.is_some_and(|sent| is_of_frame(sent, cell))
}
