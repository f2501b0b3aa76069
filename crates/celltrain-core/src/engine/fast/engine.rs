//! The state of a run, and its events.

use std::collections::VecDeque;

use typed_index_collections::TiVec;

use super::contended_port::{Due, Ports, Worked};
use super::delays::StageDelays;
use super::egress::{AtOncePort, Downstream, join_trains};
use super::ethernet::EthernetLinks;
use super::event_list::{EventList, Key, Leaf, Rank};
use super::fabric::{Fabric, Line, Onward};
use super::ingress::Batch;
use super::lanes::{Delivery, Lanes, RmEvent, What};
use super::late::Late;
use super::links::{HAS_THE_MEMORY, Ingress, Links};
use super::memory_ports::MemoryPorts;
use super::nic::{Nic, Phase};
use super::partitioning::Partition;
use super::pausable_nic::PausableNic;
use super::pauses::LinkPauses;
use super::plan::{
    AtOnceIndex, NicIndex, PausableIndex, Plan, PortIndex, RmLaneIndex, Role, ShapedIndex, Stage, StageEnd,
};
use super::port_builder::{Exit, PortBuilder, PortSet};
use super::port_plan::PortMode;
use super::port_queue::PortQueue;
use crate::cancellation::{CancellationToken, Interrupted};
use crate::cell::Run;
use crate::contracts::Edge;
use crate::edge_device::Packet;
use crate::end_systems::{Departure, EndSystems};
use crate::index::{FlowIndex, Label, LinkIndex, MemoryIndex, VcIndex};
use crate::network::{Network, Routing};
use crate::probe::Probe;
use crate::rate_control::Place;
use crate::shaped_port::ShapedPort;
use crate::units::{Clock, Span, Time};

/// The state of a run, or of one partition of a run.
pub(in crate::engine) struct Engine<'a> {
    pub(super) network: &'a Network,
    pub(super) routing: Routing,
    pub(super) clock: Clock,
    pub(super) end: Time,
    pub(super) fabric: Fabric,
    pub(super) nics: TiVec<NicIndex, Nic>,
    pub(super) pausable_nics: TiVec<PausableIndex, PausableNic>,
    /// The shaped port through which each VC's frames leave their host, if any; `None` if the host's own port sends
    /// them.
    pub(super) exits: TiVec<VcIndex, Option<Exit>>,
    pub(super) ports: Ports,
    pub(super) links: Links,
    pub(super) at_once: TiVec<AtOnceIndex, AtOncePort>,
    /// Cells that the current port has collected from its streams.
    pub(super) batch: Batch,
    pub(super) starts: VecDeque<(Time, FlowIndex)>,
    /// Longest lead of each shaped port's cells, or `None` if a cell sent early could not be taken back. The port may
    /// send cells early if they arrive by the horizon.
    pub(super) ahead: TiVec<ShapedIndex, Option<Span>>,
    /// Longest lead of each pausable host's cells, with `None` as in `ahead`.
    pub(super) nics_ahead: TiVec<PausableIndex, Option<Span>>,
    pub(super) departures: Vec<Departure>,
    /// Only events change anything before this instant. Afterwards, frames may be injected.
    pub(super) undisturbed_until: Time,
    /// The simulated partition; `None` for the whole network.
    pub(super) partition: Option<Partition<'a>>,
}

impl<'a> Engine<'a> {
    /// Creates the engine at the start of a run. `traced` contains the ports whose ranges probes read during the run.
    /// `partition` is `None` for the whole network.
    pub(super) fn new(
        network: &'a Network,
        mode: PortMode,
        traced: Option<&[LinkIndex]>,
        partition: Option<Partition<'a>>,
        token: &CancellationToken<'_>,
    ) -> Result<Self, Interrupted> {
        let builder = PortBuilder::new(network, mode, traced, partition, token)?;
        let PortSet { ports, links, at_once, plans } = builder.ports()?;
        let edge = Edge::new(network, builder.clock);
        let exits = builder.exits(&edge, &links);
        let PortBuilder { routing, times, rate_control, plan, clock, end, .. } = builder;
        let nic = |&link: &LinkIndex| {
            let nic = Nic::new(times[link].cell_time, routing.vcs[link].len());
            if network.is_on_ethernet(link) { nic.on_ethernet(routing.vcs[link].len()) } else { nic }
        };
        let pausable_nic = |&link: &LinkIndex| {
            let priorities = routing.vcs[link].iter().map(|&vc| network.vcs[vc].priority).collect::<TiVec<Label, u8>>();
            PausableNic::new(times[link].cell_time, &priorities, network.aal5.framing)
        };
        let losses = network.losses(&routing, clock);
        let lines = network.delay_lines(&routing, clock);
        let mut starts: Vec<_> = network
            .flows
            .iter_enumerated()
            .filter(|(_, flow)| partition.is_none_or(|partition| partition.has(network.source(flow.data_vc))))
            .map(|(index, flow)| (Time::default() + clock.span(flow.start), index))
            .collect();
        starts.sort_unstable();
        let counts_entries = |port: PortIndex| plans[port].0.counts_entries(network.stores(plan.contended[port]));
        let delays = StageDelays::new(network, &routing, &plan, &rate_control, clock, counts_entries).map(Box::new);
        let mut engine = Self {
            network,
            clock,
            end,
            nics: plan.hosts.iter().map(nic).collect(),
            pausable_nics: plan.pausable.iter().map(pausable_nic).collect(),
            exits,
            ports,
            links,
            at_once,
            batch: Batch::default(),
            starts: starts.into(),
            ahead: plan.shaped.iter().map(|&link| ahead(&routing, &plan, &edge, link)).collect(),
            nics_ahead: plan.pausable.iter().map(|&link| ahead(&routing, &plan, &edge, link)).collect(),
            departures: Vec::new(),
            undisturbed_until: Time::default(),
            fabric: Fabric {
                delays,
                pauses: LinkPauses::new(network),
                edge,
                ethernet: EthernetLinks::new(network, &routing, clock),
                changes_rate: network.links.keys().map(|link| network.changes_rate(link)).collect(),
                lossy_vcs: losses.iter().map(|losses| routing.vcs[losses.link].clone()).collect(),
                losses,
                lines: lines.into_iter().map(|line| line.map(Line::new)).collect(),
                horizon: end,
                lanes: Lanes::new(&plan),
                rate_control,
                end_systems: EndSystems::new(network, &routing, clock),
                event_list: EventList::new(&plan),
                late: Late::new(&plan, end, network.delays.at_ports()),
                plan,
            },
            routing,
            partition,
        };
        engine.schedule_starts();
        engine.schedule_ticks();
        Ok(engine)
    }

    /// Processes the event with this key, which must be the first one in the event list.
    pub(super) fn step(
        &mut self,
        key: Key,
        probe: &mut impl Probe,
        token: &CancellationToken<'_>,
    ) -> Result<(), Interrupted> {
        let now = key.time();
        let phase = match self.fabric.event_list.leaf(key) {
            Leaf::Port(port) => return self.work(port, now, token),
            Leaf::Tick => {
                let ticked = self.fabric.end_systems.on_tick(now, probe, &mut self.departures);
                token.tick(ticked + self.departures.len())?;
                self.schedule_ticks();
                Phase::Timers
            }
            Leaf::Start => {
                while let Some(&(_, flow)) = self.starts.front().filter(|start| start.0 == now) {
                    self.starts.pop_front();
                    self.fabric.end_systems.start(flow, probe, &mut self.departures);
                    token.tick(1)?;
                }
                self.schedule_starts();
                Phase::BeforeService
            }
            Leaf::Shaped(shaped) => {
                self.shape(shaped, now);
                return Ok(());
            }
            Leaf::Pauses => return self.obey_pauses(now, token),
            Leaf::Pausable(nic) => {
                self.send_from_host(nic, now);
                return Ok(());
            }
            Leaf::Line(number) => {
                let link = self.fabric.losses[number].link;
                let cell_time = self.clock.cell_time(self.network.links[link].rate);
                self.downstream().0.move_line(number, cell_time, now);
                return Ok(());
            }
            Leaf::Rm(lane) => return self.run_rm_event(lane, now, token),
            Leaf::Lane(lane) => {
                let Fabric { lanes, event_list, .. } = &mut self.fabric;
                let Delivery { vc, frame, cells, .. } = lanes.pop_frame(lane, event_list);
                if cells > 0 {
                    let place = self.fabric.plan.lanes[lane]
                        .expect("packets on ABR VCs enter the network through shaped ports");
                    let tagged = self.network.vcs[vc].tagged;
                    self.put_in(place, Packet { frame, cells, tagged }, now, Phase::BeforeService);
                    return Ok(());
                }
                self.fabric.end_systems.deliver(vc, frame, now, probe, &mut self.departures);
                Phase::BeforeService
            }
        };
        if self.fabric.end_systems.take_rescheduled() {
            self.schedule_ticks();
        }
        self.depart(now, phase);
        Ok(())
    }

    /// Passes the end systems' frames to their hosts' ports, and sends the cells of these frames.
    pub(super) fn depart(&mut self, now: Time, phase: Phase) {
        if let Some(delays) = &mut self.fabric.delays {
            delays.now = now;
        }
        for i in 0..self.departures.len() {
            let Departure { vc, link, last, cells } = self.departures[i];
            let label = last.label();
            let Some(exit) = self.exits[vc] else {
                if self.fabric.is_on_ethernet(link) {
                    self.depart_on_ethernet(self.departures[i], now, phase);
                    continue;
                }
                if let Some(delays) = &mut self.fabric.delays {
                    delays.on_packet(self.fabric.plan.stages[link][label].number, last.frame);
                }
                if let Role::Pausable(nic) = self.fabric.plan.roles[link] {
                    self.pausable_nics[nic].join(now, phase, last, cells);
                    self.send_from_host(nic, now);
                    continue;
                }
                let packet = Packet { frame: last.frame, cells, tagged: last.tagged() };
                self.put_in(Place { link, label }, packet, now, phase);
                continue;
            };
            let first_start = self.nics[exit.nic].join(now, phase, label, cells);
            let mut run = Run { last, cells };
            if exit.is_policed {
                run = self.police(link, run, first_start, exit.cell_time, Time::default());
            }
            if exit.may_be_alone && self.departures.len() == 1 {
                self.go_alone(link, run, first_start, exit.cell_time);
            } else {
                self.go(link, run, first_start, exit.cell_time);
            }
        }
        self.departures.clear();
    }

    /// Sends the cells of an acknowledgement. If no other frame can arrive at the next port before or with its last cell,
    /// that port takes them now.
    #[inline(never)]
    fn go_alone(&mut self, link: LinkIndex, run: Run, first_start: Time, period: Span) {
        let Some(onward) = self.fabric.go(link, run, first_start, period) else { return };
        let Onward { port, train, .. } = onward;
        let lead = self.links.lead_of_hosts(port).expect("the port may take frames when they depart");
        // Frames from other hosts depart at the next event or later.
        let others = self.fabric.event_list.first().time().min(self.undisturbed_until);
        if train.last().0 - lead.0 < others.0 && self.links.is_idle(port) {
            let (mut downstream, ports, _) = self.downstream();
            let unit = ports[port].as_mut().expect("a port of trains does its own work");
            if let Some(free_at) = unit.take_alone(train, &mut downstream) {
                downstream.links.set_free_at(port, free_at);
                return;
            }
        }
        join_trains(&mut self.links, &mut self.fabric.event_list, onward);
    }

    /// Passes a frame to a host's port whose link carries Ethernet frames, and sends its cells.
    #[cold]
    fn depart_on_ethernet(&mut self, Departure { link, last, cells, .. }: Departure, now: Time, phase: Phase) {
        let Role::Host(nic) = self.fabric.plan.roles[link] else { unreachable!("shaped ports need AAL5") };
        let last_cell = self.fabric.sending_time(link, last);
        let first_start = self.nics[nic].join_on_ethernet(now, phase, last.label(), cells, last_cell);
        self.downstream().0.go_on_ethernet(link, Run { last, cells }, first_start);
    }

    /// Polices the cells of a run that reach the switch after `from` and by the horizon. Returns the run with the tag
    /// of the last of these cells.
    #[inline(never)]
    pub(super) fn police(&mut self, link: LinkIndex, run: Run, first_start: Time, period: Span, from: Time) -> Run {
        let vc = self.routing.vcs[link][run.last.label()];
        let at_switch = first_start + period + self.fabric.plan.delays[link];
        let cells = run.iter().zip(0..).map(|(cell, i)| (cell, at_switch + period * i));
        let mut tagged = run.last.tagged();
        for (cell, arrival) in cells.filter(|&(_, arrival)| from < arrival && arrival <= self.fabric.horizon) {
            tagged = self.fabric.edge.on_cell(vc, arrival, cell).tagged();
        }
        Run { last: run.last.with_tag(tagged), ..run }
    }

    /// Returns three parts: everything downstream of the contended ports, the ports themselves, and their shared batch.
    #[inline]
    pub(super) fn downstream(&mut self) -> (Downstream<'_>, &mut Ports, &mut Batch) {
        let Self { routing, fabric, links, at_once, .. } = self;
        let downstream = Downstream { routing, fabric, links, at_once };
        (downstream, &mut self.ports, &mut self.batch)
    }

    /// Sends cells from a host's or a shaped port.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "inlining saves 1 % of the time of a LAN run: each frame calls this function"
    )]
    pub(super) fn go(&mut self, link: LinkIndex, run: Run, first_start: Time, period: Span) {
        // In most networks, hosts feed ports of trains. These need no `Downstream`.
        if let Some(onward) = self.fabric.go(link, run, first_start, period)
            && let Some(onward) = join_trains(&mut self.links, &mut self.fabric.event_list, onward)
        {
            self.downstream().0.join_others(onward);
        }
    }

    /// Simulates a contended port up to `now`.
    pub(super) fn work(
        &mut self,
        port: PortIndex,
        now: Time,
        token: &CancellationToken<'_>,
    ) -> Result<(), Interrupted> {
        let until = now.min(self.fabric.horizon + Span(1));
        let mut reached = Time::default();
        loop {
            reached = self.work_in_one_go(port, reached, until);
            if reached >= until {
                return Ok(());
            }
            token.check()?;
        }
    }

    /// Settles the port from `since` up to an instant, without a check for cancellation during that work. Returns that
    /// instant.
    #[inline]
    fn work_in_one_go(&mut self, port: PortIndex, since: Time, until: Time) -> Time {
        let (mut downstream, ports, batch) = self.downstream();
        let Some(unit) = &mut ports[port] else { return until };
        let Worked { reached, next_effect } = unit.work(Due { port, since, until }, batch, &mut downstream);
        self.fabric.event_list.set(Leaf::Port(port), next_effect.map(|time| (time, Rank::Settle)));
        reached
    }

    fn run_rm_event(&mut self, lane: RmLaneIndex, now: Time, token: &CancellationToken<'_>) -> Result<(), Interrupted> {
        let Fabric { lanes, event_list, .. } = &mut self.fabric;
        let RmEvent { vc, number, what, .. } = lanes.pop_rm_event(lane, event_list);
        match what {
            What::End(turned) => {
                let Place { link, .. } = self.fabric.rate_control.goes_to(vc);
                let goes_on = turned.is_none() && self.fabric.rate_control.keeps_rate(vc, number);
                if !goes_on {
                    self.take_back(link, now);
                }
                self.fabric.rate_control.deliver(vc, number, turned, now);
                if !goes_on {
                    self.schedule_shaped(link, now);
                }
            }
            What::Pass(place) => {
                let Role::Contended(port) = self.fabric.plan.roles[place.link] else {
                    unreachable!("a port with a rate allocator is treated as contended");
                };
                let (unit, member) = self.links.unit(port);
                self.work(unit, now, token)?;
                let unit = self.ports[unit].as_mut().expect("a port with an allocator processes arrivals");
                let occupancy = unit.queue_mut(member).waiting_at(now);
                self.fabric.rate_control.write(vc, number, place, occupancy, now);
            }
        }
        Ok(())
    }

    fn put_in(&mut self, place: Place, packet: Packet, now: Time, phase: Phase) {
        let not_started = match phase {
            Phase::BeforeService => now,
            Phase::Timers => now + Span(1),
        };
        let port = self
            .fabric
            .rate_control
            .port_mut(place.link)
            .expect("packets on ABR VCs enter the network through shaped ports");
        if !port.on_packet_behind(place.label, packet, not_started) {
            self.take_back(place.link, not_started);
            let port = self
                .fabric
                .rate_control
                .port_mut(place.link)
                .expect("packets on ABR VCs enter the network through shaped ports");
            port.on_packet(place.label, packet);
        }
        self.schedule_shaped(place.link, now);
    }

    /// Sends the cells of a shaped port that may start at `now`. Later cells are sent early, and taken back if an event
    /// occurs first.
    fn shape(&mut self, number: ShapedIndex, now: Time) {
        let link = self.fabric.plan.shaped[number];
        let port = self.fabric.rate_control.port_mut(link).expect("the port belongs to a shared memory");
        // All cells sent early have already started. Otherwise the next start would not be at `now`.
        port.take_back(now);
        let until = self.ahead[number].and_then(|lead| self.fabric.horizon.0.checked_sub(lead.0)).map(Time);
        if let Some((mut run, period)) = port.send(now, until) {
            let vc = self.routing.vcs[link][run.last.label()];
            if self.fabric.polices_departures(vc, link)
                && now + period + self.fabric.plan.delays[link] <= self.fabric.horizon
            {
                // A VC with a contract sends at the link's rate. Its cells are never sent early.
                let at_switch = now + period + self.fabric.plan.delays[link];
                run.last = self.fabric.edge.on_cell(vc, at_switch, run.last);
            }
            self.go(link, run, now, period);
        }
        self.schedule_shaped(link, now);
    }

    /// Takes back the cells that a shaped port has sent early and that would start at `now` or later. The caller must
    /// schedule the port again.
    pub(super) fn take_back(&mut self, link: LinkIndex, now: Time) {
        let port = self.fabric.rate_control.port_mut(link).expect("only shaped ports return cells of a train");
        if let Some((label, cells)) = port.take_back(now) {
            let stage = self.fabric.plan.stages[link][label];
            let StageEnd::Port { port, input, .. } = stage.end else {
                unreachable!("cells are passed on only to contended ports");
            };
            self.links.take_back(port, input, cells);
            if let Some(delays) = &mut self.fabric.delays {
                delays.take_back(stage.number, now);
            }
        }
    }

    pub(super) fn schedule_shaped(&mut self, link: LinkIndex, now: Time) {
        let Role::Shaped(shaped) = self.fabric.plan.roles[link] else {
            unreachable!("the port belongs to a shared memory")
        };
        let start = self.fabric.rate_control.port(link).and_then(ShapedPort::next_start);
        self.fabric.event_list.set(Leaf::Shaped(shaped), start.map(|time| (time.max(now), Rank::Shape)));
    }

    pub(super) fn queue(&self, port: PortIndex) -> &dyn PortQueue {
        let (unit, place) = self.links.unit(port);
        match (&self.ports[unit], &self.links.ingress[unit]) {
            (Some(port), _) => port.queue(place),
            (None, &Ingress::AtOnce(number)) => &self.at_once[number].fifo,
            (None, _) => unreachable!("{HAS_THE_MEMORY}"),
        }
    }

    pub(super) fn queue_mut(&mut self, port: PortIndex) -> &mut dyn PortQueue {
        let (unit, place) = self.links.unit(port);
        match (&mut self.ports[unit], &self.links.ingress[unit]) {
            (Some(port), _) => port.queue_mut(place),
            (None, &Ingress::AtOnce(number)) => &mut self.at_once[number].fifo,
            (None, _) => unreachable!("{HAS_THE_MEMORY}"),
        }
    }

    pub(super) fn memory_ports(&self, memory: MemoryIndex) -> &MemoryPorts {
        let port = self.ports[self.fabric.plan.memories[memory].lead].as_deref();
        port.and_then(MemoryPorts::of).expect(HAS_THE_MEMORY)
    }

    pub(super) fn memory_ports_mut(&mut self, memory: MemoryIndex) -> &mut MemoryPorts {
        let port = self.ports[self.fabric.plan.memories[memory].lead].as_deref_mut();
        port.and_then(MemoryPorts::of_mut).expect(HAS_THE_MEMORY)
    }

    fn schedule_starts(&mut self) {
        self.fabric.event_list.set(Leaf::Start, self.starts.front().map(|&(time, _)| (time, Rank::Start)));
    }

    pub(super) fn schedule_ticks(&mut self) {
        self.fabric.event_list.set(Leaf::Tick, self.fabric.end_systems.next_tick().map(|time| (time, Rank::Tick)));
    }
}

/// Returns the longest lead of the cells of a port that can take cells back, if they may be sent early. All of them must go to contended
/// ports, from which they can be taken back. None may be policed, because policing cannot be undone.
fn ahead(routing: &Routing, plan: &Plan, edge: &Edge, link: LinkIndex) -> Option<Span> {
    let stages = &plan.stages[link];
    let is_port = |stage: &Stage| matches!(stage.end, StageEnd::Port { .. });
    let can_come_back = |label: Label| plan.stages_from(link, label).count() == 1 && is_port(&stages[label]);
    let policed = routing.vcs[link].iter().any(|&vc| edge.polices(vc));
    let longest = stages.iter().map(|stage| stage.lead).max()?;
    (!policed && stages.keys().all(can_come_back)).then_some(longest)
}
