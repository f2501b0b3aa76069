//! The fast engine: exact cells, worked on by the frame where nothing can happen to a single one.
//!
//! Why it is exact, and what it costs, stands in `docs/design/fast-engine.md`. In short: cells wait at hosts' ports,
//! where arithmetic gives the start of each cell ([`nic`]), at shaped ports, and at contended ports
//! ([`contended_port`]). Everything between is a delay ([`plan`]). Events are whole frames reaching hosts, ticks,
//! starts, and the batches in which contended ports catch up ([`tournament_tree`]). When the clock stands at an
//! instant, everything that happened in the network before it is settled.

mod advance;
mod batch;
pub mod batching_port;
mod contended_port;
mod exits;
mod fabric;
mod fifo;
mod footprint;
mod gathered;
mod inbox;
mod measure;
mod nic;
mod onwards;
mod outlet;
mod output;
pub mod parts;
mod plan;
mod ports;
mod queue_port;
mod rm;
// For the benchmarks.
#[doc(hidden)]
pub mod run_queues;
mod stream;
mod stream_port;
pub mod tournament_tree;
mod train;
mod train_port;
mod turns;

use std::collections::VecDeque;

use typed_index_collections::TiVec;

use super::{Interrupted, Outcome, Progress};
use crate::cell::{Cell, Run};
use crate::contracts::Edge;
use crate::edge_device::Packet;
use crate::end_systems::{Departure, EndSystems};
use crate::index::{FlowIndex, LinkIndex, VcIndex};
use crate::network::{LinkTimes, Network, Routing};
use crate::probe::Probe;
use crate::rate_control::{Place, RateControl};
use crate::shaped_port::ShapedPort;
use crate::stop::{Stop, all};
use crate::units::{Clock, Span, Time};

pub(crate) use footprint::{BYTES_PER_FRAME, footprint, of_traced_ports};
pub(crate) use measure::BYTES_PER_PORT_END;
pub use parts::Sharing;
pub use ports::Ways;

use advance::{EVENTS_AT_ONCE, PIECES_OF_AN_EVENT};
use batch::Batch;
use contended_port::ContendedPort;
use exits::Exit;
use fabric::{Delivery, Fabric, Held, first_rm_event_leaf, schedule_lane, schedule_rm_events};
use nic::{Nic, Phase};
use onwards::{Onwards, join, settle_by};
use output::Arrival;
use parts::Part;
use plan::{PassedPorts, Plan, Role, Stage, StageEnd};
use ports::Making;
use rm::{RmEvent, RmEvents, What};
use stream::{Arriving, Streams};
use tournament_tree::{Key, Rank, TournamentTree};
use train::Train;

pub(super) struct Engine<'a> {
    network: &'a Network,
    routing: Routing,
    clock: Clock,
    end: Time,
    /// The instant the run is to reach now. Nothing arrives later before it moves.
    horizon: Time,
    plan: Plan,
    nics: Vec<Nic>,
    /// By VC; none where the host's own port shapes it.
    exits: TiVec<VcIndex, Option<Exit>>,
    contended_ports: Vec<ContendedPort>,
    /// What comes in at stream ports, as [`ports`] has put it in a row.
    streams: Streams,
    /// What the port at work takes of its streams.
    batch: Batch,
    lanes: Vec<VecDeque<Delivery>>,
    starts: VecDeque<(Time, FlowIndex)>,
    rate_control: RateControl,
    rm_events: RmEvents,
    /// Cells that arrive only after the horizon.
    held: Vec<Held>,
    edge: Edge,
    end_systems: EndSystems,
    event_list: TournamentTree,
    /// By link and label ([`PassedPorts::places`]), for every transparent port on the way and at last for its end: how
    /// many of the cells whose departure is known arrive there only after the horizon.
    late: TiVec<LinkIndex, Vec<u64>>,
    /// By shaped port: the longest lead of a cell, which may be handed on ahead of time if it arrives by the horizon;
    /// `None` where a cell handed on could not be taken back.
    ahead: Vec<Option<Span>>,
    departures: Vec<Departure>,
    /// What of the network is simulated here, if not all.
    part: Option<Part<'a>>,
}

impl<'a> Engine<'a> {
    /// The engine at the start of a run. `traced`: if queues are looked at during the run, the ports whose range is
    /// read.
    fn new(
        network: &'a Network,
        (ways, traced): (Ways, Option<&[LinkIndex]>),
        part: Option<Part<'a>>,
        stop: &Stop<'_>,
    ) -> Result<Self, Interrupted> {
        let clock = network.clock();
        let end = network.end(clock);
        let routing = network.routing(stop)?;
        let times = LinkTimes::of(network, clock);
        let mut rate_control = RateControl::new(network, &routing, clock, stop)?;
        let part_of = |node| part.map_or(0, |part| part.partition.of(node));
        let plan = Plan::new(network, &routing, &rate_control, &times, (part_of, traced.unwrap_or_default()), stop)?;
        let nic = |&link: &LinkIndex| {
            stop.steps(routing.vcs[link].len())?;
            Ok(Nic::new(times[link].cell_time, routing.vcs[link].len()))
        };
        let edge = Edge::new(network, clock, stop)?;
        let mut starts: Vec<_> = network
            .flows
            .iter_enumerated()
            .filter(|(_, flow)| part.is_none_or(|part| part.has(network.source(flow.data_vc))))
            .map(|(index, flow)| (Time::default() + clock.span(flow.start), index))
            .collect();
        starts.sort_unstable();
        let making = Making { network, routing: &routing, times: &times, plan: &plan, end, clock, part };
        let (contended_ports, streams) = making.ports((ways, traced.is_some()), &mut rate_control, stop)?;
        let mut engine = Self {
            network,
            clock,
            end,
            horizon: end,
            held: Vec::new(),
            nics: all(plan.hosts.iter().map(nic))?,
            exits: making.exits((&contended_ports, &streams), &edge, stop)?,
            contended_ports,
            streams,
            batch: Batch::default(),
            lanes: vec![VecDeque::new(); plan.lanes.len()],
            starts: starts.into(),
            rm_events: RmEvents::new(&plan),
            rate_control,
            end_systems: EndSystems::new(network, &routing, clock, stop)?,
            event_list: TournamentTree::new(
                plan.contended.len() + plan.lanes.len() + plan.shaped.len() + 2 + plan.rm_event_lanes,
            ),
            late: plan.passed.iter().map(PassedPorts::row).collect(),
            ahead: plan.shaped.iter().map(|&link| ahead(&routing, &plan, &edge, link)).collect(),
            departures: Vec::new(),
            edge,
            plan,
            routing,
            part,
        };
        if let Some(part) = part {
            engine.keep(part);
        }
        engine.schedule_starts();
        engine.schedule_ticks();
        Ok(engine)
    }

    fn step(&mut self, key: Key, probe: &mut impl Probe, stop: &Stop<'_>) -> Result<(), Interrupted> {
        let (now, leaf) = (key.time(), key.leaf());
        if leaf < self.contended_ports.len() {
            return self.work(leaf, now, stop);
        }
        let phase = match key.rank() {
            Rank::Tick => {
                let ticked = self.end_systems.on_tick(now, probe, &mut self.departures);
                stop.steps_of([ticked, self.departures.len()])?;
                self.schedule_ticks();
                Phase::Timers
            }
            Rank::Start => {
                while let Some(&(_, flow)) = self.starts.front().filter(|start| start.0 == now) {
                    self.starts.pop_front();
                    self.end_systems.start(flow, probe, &mut self.departures);
                    stop.step()?;
                }
                self.schedule_starts();
                Phase::BeforeService
            }
            Rank::Shape => {
                self.shape(leaf - self.contended_ports.len() - self.lanes.len(), now);
                return Ok(());
            }
            Rank::RmEnd(_) | Rank::RmPass(_) => {
                return self.run_rm_event(index(leaf - self.first_rm_event_leaf()), now, stop);
            }
            Rank::Settle => unreachable!("contended ports come first among the leaves"),
            Rank::Delivery(_) => {
                let lane = leaf - self.contended_ports.len();
                let delivery = self.lanes[lane].pop_front().expect("a lane on the event list has a frame");
                schedule_lane(&mut self.event_list, self.contended_ports.len(), lane, &self.lanes[lane]);
                let Delivery { vc, frame, cells, .. } = delivery;
                if cells > 0 {
                    let place = self.plan.lanes[lane].expect("packets go to shaped ports");
                    let tagged = self.network.vcs[vc].tagged;
                    self.put_in(place, Packet { frame, cells, tagged }, now, Phase::BeforeService);
                    return Ok(());
                }
                self.end_systems.deliver(vc, frame, now, probe, &mut self.departures);
                Phase::BeforeService
            }
        };
        if self.end_systems.paced() {
            // A paced sender may want to go on before the next tick.
            self.schedule_ticks();
        }
        self.depart(now, phase);
        Ok(())
    }

    /// Puts the end systems' frames on their hosts' ports, and from there on their way.
    fn depart(&mut self, now: Time, phase: Phase) {
        let mut departures = std::mem::take(&mut self.departures);
        for Departure { vc, link, label, frame, cells, tagged } in departures.drain(..) {
            let Some(exit) = self.exits[vc] else {
                self.put_in(Place { link, label }, Packet { frame, cells, tagged }, now, phase);
                continue;
            };
            let first_start = self.nics[exit.nic as usize].join(now, phase, label, cells);
            let mut run = Run { last: Cell::new(label, frame, true).with_tag(tagged), cells };
            if let Some(stream) = exit.stream()
                && self.join_stream(stream, Train::of(run, first_start + exit.hop.lead, exit.cell_time, exit.hop.label))
            {
                continue;
            }
            if exit.is_policed {
                let at_switch = first_start + exit.cell_time + self.plan.delays[link];
                let cells = run.iter().zip(0..).map(|(cell, i)| (cell, at_switch + exit.cell_time * i));
                let mut tagged = tagged;
                for (cell, arrival) in cells.take_while(|&(_, arrival)| arrival <= self.horizon) {
                    tagged = self.edge.on_cell(vc, arrival, cell).tagged();
                }
                run.last = run.last.with_tag(tagged);
            }
            self.go(link, run, first_start, exit.cell_time);
        }
        self.departures = departures;
    }

    /// A frame is on its way to a port that takes streams, if all its cells arrive by the horizon. Returns
    /// whether it is.
    #[inline]
    fn join_stream(&mut self, stream: u32, train: Train) -> bool {
        let is_in_time = train.last() <= self.horizon;
        if is_in_time && let Some((port, arrival)) = self.streams.join(stream, train) {
            let port = port as usize;
            settle_by(&mut self.event_list, port, self.contended_ports[port].effect_of(arrival));
        }
        is_in_time
    }

    /// The fabric, the contended ports, what comes in at those that take streams, and the batch that is lent to them.
    #[inline]
    fn parts(&mut self) -> (Fabric<'_>, &mut [ContendedPort], &mut Streams, &mut Batch) {
        let fabric = Fabric {
            plan: &self.plan,
            lanes: &mut self.lanes,
            end_systems: &mut self.end_systems,
            event_list: &mut self.event_list,
            late: &mut self.late,
            rate_control: &mut self.rate_control,
            rm_events: &mut self.rm_events,
            held: &mut self.held,
            end: self.end,
            horizon: self.horizon,
            contended_ports: self.contended_ports.len(),
        };
        (fabric, &mut self.contended_ports, &mut self.streams, &mut self.batch)
    }

    /// A contended port, the batch it borrows, and where its cells go.
    #[inline]
    fn at_port(&mut self, number: usize, link: LinkIndex) -> (&mut ContendedPort, &mut Batch, Onwards<'_>) {
        let (fabric, contended_ports, streams, batch) = self.parts();
        let (before, rest) = contended_ports.split_at_mut(number);
        let (port, behind) = rest.split_first_mut().expect("it has this number");
        (port, batch, Onwards { link, fabric, streams, before, behind })
    }

    /// Hands cells that start on the link of a host's or a shaped port to the fabric, and on to the contended port they
    /// reach next.
    #[inline]
    fn go(&mut self, link: LinkIndex, run: Run, first_start: Time, period: Span) {
        let (mut fabric, contended_ports, streams, _) = self.parts();
        if let Some(onward) = fabric.go(link, run, first_start, period) {
            let port = &mut contended_ports[onward.contended_port as usize];
            join(port, onward, streams, &mut fabric);
        }
    }

    /// A contended port catches up with everything before `now`.
    fn work(&mut self, number: usize, now: Time, stop: &Stop<'_>) -> Result<(), Interrupted> {
        let until = now.min(self.horizon + Span(1));
        let mut reached = Time::default();
        loop {
            reached = self.work_in_one_go(number, reached, until);
            if reached >= until {
                return Ok(());
            }
            stop.ask()?;
        }
    }

    /// The same from `since` on, as far as it goes without a question in between; how far that is.
    #[inline]
    fn work_in_one_go(&mut self, number: usize, since: Time, until: Time) -> Time {
        let link = self.plan.contended[number];
        let (port, batch, mut onwards) = self.at_port(number, link);
        let until = port.reach(since, until, onwards.streams);
        port.work(until, batch, &mut onwards);
        self.contended_ports[number].take_arrivals(|Arrival { run, first, period }| {
            let vc = self.routing.vcs[link][run.last.label()];
            self.rate_control.on_arrival(link, vc, run, first, period);
        });
        let effect = self.contended_ports[number].next_effect();
        self.event_list.set(number, effect.map_or(Key::NEVER, |time| Key::new(time, Rank::Settle, number)));
        until
    }

    fn first_rm_event_leaf(&self) -> usize {
        first_rm_event_leaf(&self.plan, self.contended_ports.len())
    }

    /// The first RM cell of a lane with something to do at `now` does it.
    fn run_rm_event(&mut self, lane: u32, now: Time, stop: &Stop<'_>) -> Result<(), Interrupted> {
        let RmEvent { vc, number, what, .. } =
            self.rm_events.pop(lane).expect("a lane on the event list has an RM event");
        schedule_rm_events(&mut self.event_list, &self.plan, self.contended_ports.len(), lane, &self.rm_events);
        match what {
            What::End(turned) => {
                let Place { link, .. } = self.rate_control.goes_to(vc);
                let goes_on = turned.is_none() && self.rate_control.keeps_rate(vc, number);
                if !goes_on {
                    self.take_back(link, now);
                }
                self.rate_control.deliver(vc, number, turned, now);
                if !goes_on {
                    self.schedule_shaped(link, now);
                }
            }
            What::Pass(place) => {
                let Role::Contended(contended_port) = self.plan.roles[place.link] else {
                    unreachable!("a port with an allocator counts as contended");
                };
                self.work(contended_port, now, stop)?;
                self.contended_ports[contended_port].look_at(now);
                let queue = self.contended_ports[contended_port].occupancy();
                self.rate_control.write(vc, number, place, queue, now);
            }
        }
        Ok(())
    }

    /// A whole packet joins a shaped port.
    fn put_in(&mut self, place: Place, packet: Packet, now: Time, phase: Phase) {
        let not_started = match phase {
            Phase::BeforeService => now,
            Phase::Timers => now + Span(1),
        };
        let port = self.rate_control.port_mut(place.link).expect("packets are put into shaped ports");
        if !port.on_packet_behind(place.label, packet, not_started) {
            self.take_back(place.link, not_started);
            let port = self.rate_control.port_mut(place.link).expect("packets are put into shaped ports");
            port.on_packet(place.label, packet);
        }
        self.schedule_shaped(place.link, now);
    }

    /// A shaped port sends the cells that may start at `now`, and hands on the cells that will follow if nothing comes
    /// in between.
    fn shape(&mut self, number: usize, now: Time) {
        let link = self.plan.shaped[number];
        let port = self.rate_control.port_mut(link).expect("it has this role");
        // All cells handed on before have started, or this would not be the next start.
        port.take_back(now);
        let ahead = self.ahead[number].and_then(|lead| self.horizon.0.checked_sub(lead.0)).map(Time);
        if let Some((mut run, period)) = port.send(now, ahead) {
            let vc = self.routing.vcs[link][run.last.label()];
            if self.edge.polices_at(vc, link) && now + period + self.plan.delays[link] <= self.horizon {
                // A VC with a contract sends at the line's rate, and none of its cells is handed on ahead of time.
                let at_switch = now + period + self.plan.delays[link];
                run.last = self.edge.on_cell(vc, at_switch, run.last);
            }
            self.go(link, run, now, period);
        }
        self.schedule_shaped(link, now);
    }

    /// Takes back the cells a shaped port has handed on that would start at `now` or later. The caller schedules the
    /// port anew.
    fn take_back(&mut self, link: LinkIndex, now: Time) {
        let port = self.rate_control.port_mut(link).expect("only shaped ports give cells away");
        if let Some((label, cells)) = port.take_back(now) {
            let StageEnd::Port { contended_port, input, .. } = self.plan.stages[link][label].end else {
                unreachable!("cells are given away only to contended ports");
            };
            let port = &mut self.contended_ports[contended_port as usize];
            match (port.stream(input as usize), port) {
                (None, ContendedPort::Trains(port)) => port.take_back(input as usize, cells),
                (Some(stream), _) => self.streams.take_back(stream, cells),
                (None, _) => unreachable!("what takes no trains takes streams"),
            }
        }
    }

    fn schedule_shaped(&mut self, link: LinkIndex, now: Time) {
        let Role::Shaped(number) = self.plan.roles[link] else { unreachable!("it has this role") };
        let leaf = self.contended_ports.len() + self.lanes.len() + number;
        let start = self.rate_control.port(link).and_then(ShapedPort::next_start);
        let key = |time: Time| Key::new(time.max(now), Rank::Shape, leaf);
        self.event_list.set(leaf, start.map_or(Key::NEVER, key));
    }

    /// Cells are on their way to a contended port in one of its streams.
    fn arrive(&mut self, stream: u32, cells: &[Arriving]) {
        let Self { streams, contended_ports, event_list, .. } = self;
        for &Arriving { time, cell } in cells {
            if let Some((port, arrival)) = streams.push(stream, time, cell) {
                let port = port as usize;
                settle_by(event_list, port, contended_ports[port].effect_of(arrival));
            }
        }
    }

    fn schedule_starts(&mut self) {
        let leaf = self.contended_ports.len() + self.lanes.len() + self.plan.shaped.len();
        let key = self.starts.front().map_or(Key::NEVER, |&(time, _)| Key::new(time, Rank::Start, leaf));
        self.event_list.set(leaf, key);
    }

    fn schedule_ticks(&mut self) {
        let leaf = self.contended_ports.len() + self.lanes.len() + self.plan.shaped.len() + 1;
        let key = self.end_systems.next_tick().map_or(Key::NEVER, |time| Key::new(time, Rank::Tick, leaf));
        self.event_list.set(leaf, key);
    }
}

/// The longest lead of the cells of a shaped port that may hand them on ahead of time. All of them must go to contended
/// ports, which can give them back. Policing cannot be undone.
fn ahead(routing: &Routing, plan: &Plan, edge: &Edge, link: LinkIndex) -> Option<Span> {
    let stages = &plan.stages[link];
    let can_come_back = |stage: &Stage| matches!(stage.end, StageEnd::Port { .. });
    let policed = routing.vcs[link].iter().any(|&vc| edge.polices(vc));
    let longest = stages.iter().map(|stage| stage.lead).max()?;
    (!policed && stages.iter().all(can_come_back)).then_some(longest)
}

#[inline]
fn index(leaf: usize) -> u32 {
    u32::try_from(leaf).expect("indices fit 32 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hot_records_have_the_sizes_the_design_page_gives() {
        assert_eq!(size_of::<Run>(), 12);
        assert_eq!(size_of::<Train>(), 32);
        assert_eq!(size_of::<Delivery>(), 24);
        assert_eq!(nic::QUEUED_BYTES, 16);
        assert_eq!([size_of::<Nic>(), size_of::<stream::Stream>()], [64, 64], "a line of the cache");
    }
}
