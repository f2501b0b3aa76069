//! The reference engine: one list of events, one event for every cell's arrival and one for the end of its transmission.
//!
//! It is naive on purpose: whatever a faster engine does must give the same fingerprint as this one. The total order
//! (`docs/design/engine-order.md`): time first; within an instant the phases deliveries, end systems, sources, admission,
//! service, timers; within a phase the index of the link, port or flow. Cells that reach one port in the same instant are
//! put into the order the scenario asks for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Interrupted, Outcome};
use crate::cell::{Cell, Run};
use crate::end_systems::{Departure, EndSystems};
use crate::gfr::Edge;
use crate::metrics::{Ended, RunResult};
use crate::network::{LinkTimes, Network, Next, Routing};
use crate::port::Port;
use crate::probe::{NetworkView, Probe};
use crate::rng::Stream;
use crate::tie::{ServiceOrder, TieBreaker};
use crate::units::{Clock, Time};

/// Runs a network to its end. `keep_going` is asked every few thousand instants, and told which share
/// of the run is done; when it says no, the run is given up.
///
/// # Errors
/// [`Interrupted`] when `keep_going` said no.
pub fn run(network: &Network, probe: &mut impl Probe, mut keep_going: impl FnMut(f64) -> bool) -> Outcome {
    let mut engine = Engine::new(network);
    let mut instants = 0u32;
    loop {
        let now = engine.next_instant();
        let until = now.map_or(engine.end, |now| now.min(engine.end));
        while let Some(look) = probe.next_look().filter(|&look| look < until || now.is_none_or(|now| now > engine.end))
        {
            probe.look(look, &engine.view());
        }
        let Some(now) = now.filter(|&now| now <= engine.end) else { break };
        engine.step(now);
        instants += 1;
        if instants == INSTANTS_PER_QUESTION {
            instants = 0;
            if !keep_going(now.share_of(engine.end)) {
                return Err(Interrupted);
            }
        }
    }
    Ok(engine.measure())
}

/// Often enough to stop within milliseconds, seldom enough to cost nothing.
const INSTANTS_PER_QUESTION: u32 = 4096;

struct Engine<'a> {
    network: &'a Network,
    routing: Routing,
    clock: Clock,
    times: Vec<LinkTimes>,
    end: Time,
    ports: Vec<Port>,
    ties: Vec<TieBreaker>,
    transmitting: Vec<bool>,
    edge: Edge,
    end_systems: EndSystems,
    events: BinaryHeap<Reverse<Event>>,
    now: Instant,
}

/// An event. Events sort by time, then by what happens, then by the index of the link or flow it happens to.
#[derive(Clone, Copy)]
struct Event {
    time: Time,
    what: What,
    index: u32,
    /// The cell that arrives; without meaning for other events.
    cell: Cell,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// A cell reaches the end of a link.
    Arrival,
    /// A connection starts to send.
    Start,
    /// A link has sent a cell whole and is free.
    Sent,
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.time, self.what, self.index).cmp(&(other.time, other.what, other.index))
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

/// What happens in the instant being worked on; kept between instants to spare the allocations.
#[derive(Default)]
struct Instant {
    at_hosts: Vec<(u32, Cell)>,
    at_ports: Vec<PortArrival>,
    starts: Vec<u32>,
    /// Ports that may be able to start a transmission.
    to_serve: Vec<u32>,
    departures: Vec<Departure>,
}

#[derive(Clone, Copy)]
struct PortArrival {
    port: u32,
    input: u32,
    cell: Cell,
}

impl<'a> Engine<'a> {
    fn new(network: &'a Network) -> Self {
        let clock = network.clock();
        let routing = network.routing();
        let stream = |link: usize, purpose: &str| {
            Stream::new(network.seed, &format!("port/{}/{purpose}", network.links[link].name))
        };
        let port = |(index, link): (usize, &crate::network::Link)| {
            let vcs = routing.vcs[index].len();
            let policy = link.policy.build(link.buffer, &network.vc_names(&routing, index));
            let queues = link.scheduler.build(&network.vc_kinds(&routing, index));
            let port = Port::new(link.buffer, vcs, policy, stream(index, "policy"));
            port.merging(&routing.merging[index]).scheduled(queues)
        };
        let ties = |(index, link): (usize, &crate::network::Link)| {
            TieBreaker::new(network.tie_order, routing.inputs[link.from], stream(index, "ties"))
        };
        let start = |(flow, index): (&crate::network::Flow, u32)| {
            let time = Time::default() + clock.span(flow.start);
            Reverse(Event { time, what: What::Start, index, cell: Cell::new(0, 0, false) })
        };
        Self {
            network,
            times: LinkTimes::of(network, clock),
            end: network.end(clock),
            ports: network.links.iter().enumerate().map(port).collect(),
            ties: network.links.iter().enumerate().map(ties).collect(),
            transmitting: vec![false; network.links.len()],
            edge: Edge::new(network, clock),
            end_systems: EndSystems::new(network, &routing, clock),
            events: network.flows.iter().zip(0..).map(start).collect(),
            now: Instant::default(),
            clock,
            routing,
        }
    }

    fn next_instant(&self) -> Option<Time> {
        let event = self.events.peek().map(|event| event.0.time);
        event.into_iter().chain(self.end_systems.next_tick()).min()
    }

    /// Everything that happens at `now`, phase by phase.
    fn step(&mut self, now: Time) {
        self.collect(now);
        self.deliver(now);
        self.start_sources();
        if self.network.service_order == ServiceOrder::BeforeArrivals {
            self.serve(now);
        }
        self.admit();
        self.serve(now);
        if self.end_systems.next_tick() == Some(now) {
            self.end_systems.on_tick(now, &mut self.now.departures);
            self.depart();
            self.serve(now);
        }
    }

    /// Takes this instant's events off the list. They come in order: arrivals by link, starts by flow.
    fn collect(&mut self, now: Time) {
        while let Some(event) = self.events.peek().filter(|event| event.0.time == now) {
            let Event { what, index, cell, .. } = event.0;
            self.events.pop();
            match what {
                What::Start => self.now.starts.push(index),
                What::Sent => {
                    self.transmitting[index as usize] = false;
                    self.now.to_serve.push(index);
                }
                What::Arrival => match self.routing.next[index as usize][cell.label() as usize] {
                    Next::Host { vc } => self.now.at_hosts.push((vc, cell)),
                    Next::Port { link: port, label } => {
                        let input = self.routing.input[index as usize];
                        let vc = self.routing.vcs[index as usize][cell.label() as usize];
                        let is_first_link = self.network.vcs[vc as usize].path[0] == index as usize;
                        let cell = if is_first_link { self.edge.on_cell(vc, now, cell) } else { cell };
                        self.now.at_ports.push(PortArrival { port, input, cell: cell.relabelled(label) });
                    }
                },
            }
        }
    }

    fn deliver(&mut self, now: Time) {
        for (vc, cell) in self.now.at_hosts.drain(..) {
            if let Some(frame) = self.end_systems.collect(vc, Run { last: cell, cells: 1 }) {
                self.end_systems.deliver(vc, frame, now, &mut self.now.departures);
            }
        }
        self.depart();
    }

    fn start_sources(&mut self) {
        for flow in self.now.starts.drain(..) {
            self.end_systems.start(flow, &mut self.now.departures);
        }
        self.depart();
    }

    /// Puts the end systems' frames on their hosts' ports.
    fn depart(&mut self) {
        for departure in self.now.departures.drain(..) {
            let port = &mut self.ports[departure.link as usize];
            for cell in 1..=departure.cells {
                let cell = Cell::new(departure.label, departure.frame, cell == departure.cells);
                port.offer(cell.with_tag(departure.tagged));
            }
            self.now.to_serve.push(departure.link);
        }
    }

    fn admit(&mut self) {
        self.now.at_ports.sort_by_key(|arrival| (arrival.port, arrival.input));
        for together in self.now.at_ports.chunk_by_mut(|a, b| a.port == b.port) {
            let port = together[0].port;
            self.ties[port as usize].order(together, |arrival| arrival.input);
            for arrival in together {
                self.ports[port as usize].offer(arrival.cell);
            }
            self.now.to_serve.push(port);
        }
        self.now.at_ports.clear();
    }

    /// Every port that is free and has a cell starts to send it.
    fn serve(&mut self, now: Time) {
        for link in self.now.to_serve.drain(..) {
            if self.transmitting[link as usize] {
                continue;
            }
            let Some(cell) = self.ports[link as usize].take() else { continue };
            self.transmitting[link as usize] = true;
            let LinkTimes { cell_time, delay } = self.times[link as usize];
            let sent = now + cell_time;
            self.events.push(Reverse(Event { time: sent, what: What::Sent, index: link, cell }));
            self.events.push(Reverse(Event { time: sent + delay, what: What::Arrival, index: link, cell }));
        }
    }

    fn view(&self) -> NetworkView<'_> {
        NetworkView { queues: &self.ports, end_systems: &self.end_systems }
    }

    fn measure(&self) -> RunResult {
        let mut on_links = vec![0; self.network.vcs.len()];
        for Reverse(event) in self.events.iter().filter(|event| event.0.what == What::Arrival) {
            let vc = self.routing.vcs[event.index as usize][event.cell.label() as usize];
            on_links[vc as usize] += 1;
        }
        let ports: Vec<_> = self.ports.iter().map(Port::state).collect();
        let ended = Ended {
            network: self.network,
            routing: &self.routing,
            clock: self.clock,
            end: self.end,
            ports: &ports,
            end_systems: &self.end_systems,
            on_links: &on_links,
            edge: &self.edge,
        };
        ended.measure()
    }
}
