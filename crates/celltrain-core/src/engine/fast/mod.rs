//! The fast engine: exact cells, worked on by the frame where nothing can happen to a single one.
//!
//! Why it is exact, and what it costs, stands in `docs/design/fast-engine.md`. In short: cells wait at hosts' ports, where
//! arithmetic tells when each starts ([`nic`]), and at contended ports ([`server`]); everything between is a delay
//! ([`plan`]). Events are whole frames reaching hosts, ticks, starts, and the batches in which contended ports catch up
//! ([`agenda`]). When the clock stands at an instant, everything that happened in the network before it is settled.

// For the benchmarks.
#[doc(hidden)]
pub mod agenda;
mod nic;
mod plan;
mod server;

use std::collections::VecDeque;

use super::{Interrupted, Outcome};
use crate::cell::{Cell, Run};
use crate::end_systems::{Departure, EndSystems};
use crate::gfr::Edge;
use crate::metrics::{Ended, RunResult};
use crate::network::{LinkTimes, Network, Routing};
use crate::port::{Port, PortCounters, PortState};
use crate::probe::{NetworkView, Probe, Queues};
use crate::rng::Stream;
use crate::tie::{ServiceOrder, TieBreaker};
use crate::units::{Clock, Span, Time};

use agenda::{Agenda, Key};
use nic::{Nic, Phase};
use plan::{Passed, Plan, Role, Stage, StageEnd, Way};
use server::{Server, Timing, Train};

/// Runs a network to its end. `keep_going` is asked every few hundred events, and told which share of the
/// run is done; when it says no, the run is given up.
///
/// # Errors
/// [`Interrupted`] when `keep_going` said no.
pub fn run(network: &Network, probe: &mut impl Probe, mut keep_going: impl FnMut(f64) -> bool) -> Outcome {
    let mut engine = Engine::new(network);
    let mut events = 0u32;
    loop {
        let key = engine.agenda.first();
        if let Some(look) = probe.next_look().filter(|&look| look < key.time() && look <= engine.end) {
            engine.settle(look);
            let seen = engine.seen(look);
            probe.look(look, &NetworkView { queues: &seen, end_systems: &engine.end_systems });
            // A look works on ports, and what they settle may come before what was next.
            continue;
        }
        if key.time() > engine.end {
            break;
        }
        engine.step(key);
        events += 1;
        if events == EVENTS_PER_QUESTION {
            events = 0;
            if !keep_going(key.time().share_of(engine.end)) {
                return Err(Interrupted);
            }
        }
    }
    Ok(engine.measure())
}

/// A batch at a contended port may be a round trip of cells, so the question comes more often than an event is short.
const EVENTS_PER_QUESTION: u32 = 256;

struct Engine<'a> {
    network: &'a Network,
    routing: Routing,
    clock: Clock,
    end: Time,
    plan: Plan,
    nics: Vec<Nic>,
    servers: Vec<Server>,
    lanes: Vec<VecDeque<Delivery>>,
    starts: VecDeque<(Time, u32)>,
    edge: Edge,
    end_systems: EndSystems,
    agenda: Agenda,
    /// By link and label, for every transparent port on the way and at last for its end: how many of the cells whose
    /// departure is known arrive there only after the run.
    late: Vec<Vec<Vec<u64>>>,
    departures: Vec<Departure>,
    onward: Vec<Onward>,
}

/// A whole frame on its way to a host.
#[derive(Clone, Copy)]
struct Delivery {
    time: Time,
    link: u32,
    vc: u32,
    frame: u32,
}

/// Cells on their way to another contended port.
#[derive(Clone, Copy)]
struct Onward {
    server: u32,
    input: u32,
    train: Train,
}

/// Ranks within an instant: ports settle what came before it, then frames are delivered by link, then sources start,
/// then clocks tick.
const SETTLE: u32 = 0;
const FIRST_LINK: u32 = 1;
const START: u32 = u32::MAX - 2;
const TICK: u32 = u32::MAX - 1;

impl<'a> Engine<'a> {
    fn new(network: &'a Network) -> Self {
        let clock = network.clock();
        let routing = network.routing();
        let times = LinkTimes::of(network, clock);
        let plan = Plan::new(network, &routing, &times);
        let nic = |&link: &usize| Nic::new(times[link].cell_time, routing.vcs[link].len());
        let mut starts: Vec<_> = network
            .flows
            .iter()
            .zip(0..)
            .map(|(flow, index)| (Time::default() + clock.span(flow.start), index))
            .collect();
        starts.sort_unstable();
        let mut engine = Self {
            network,
            clock,
            end: network.end(clock),
            nics: plan.hosts.iter().map(nic).collect(),
            servers: plan.contended.iter().map(|&link| server(network, &routing, &times, &plan, link)).collect(),
            lanes: vec![VecDeque::new(); plan.lanes],
            starts: starts.into(),
            edge: Edge::new(network, clock),
            end_systems: EndSystems::new(network, &routing, clock),
            agenda: Agenda::new(plan.contended.len() + plan.lanes + 2),
            late: plan.passed.iter().map(|ways| ways.iter().map(|way| vec![0; way.len() + 1]).collect()).collect(),
            departures: Vec::new(),
            onward: Vec::new(),
            plan,
            routing,
        };
        engine.schedule_starts();
        engine.schedule_ticks();
        engine
    }

    fn step(&mut self, key: Key) {
        let (now, leaf) = (key.time(), key.leaf());
        if leaf < self.servers.len() {
            self.work(leaf, now);
            return;
        }
        let phase = match key.rank() {
            TICK => {
                self.end_systems.on_tick(now, &mut self.departures);
                self.schedule_ticks();
                Phase::Timers
            }
            START => {
                while let Some(&(_, flow)) = self.starts.front().filter(|start| start.0 == now) {
                    self.starts.pop_front();
                    self.end_systems.start(flow, &mut self.departures);
                }
                self.schedule_starts();
                Phase::BeforeService
            }
            _ => {
                let lane = leaf - self.servers.len();
                let delivery = self.lanes[lane].pop_front().expect("a lane on the agenda has a frame");
                schedule_lane(&mut self.agenda, self.servers.len(), lane, &self.lanes[lane]);
                self.end_systems.deliver(delivery.vc, delivery.frame, now, &mut self.departures);
                Phase::BeforeService
            }
        };
        if self.end_systems.paced() {
            // A paced sender may want to go on before the next tick.
            self.schedule_ticks();
        }
        self.depart(now, phase);
    }

    /// Puts the end systems' frames on their hosts' ports, and from there on their way.
    fn depart(&mut self, now: Time, phase: Phase) {
        for Departure { vc, link, label, frame, cells, tagged } in self.departures.drain(..) {
            let Way { nic, cell_time: period, stage } = self.plan.ways[vc as usize];
            let first_start = self.nics[nic as usize].join(now, phase, label, cells);
            let arrival = first_start + stage.lead;
            let last = arrival + period * u64::from(cells - 1);
            let mut in_time = cells;
            if last > self.end {
                let passed = &self.plan.passed[link as usize][label as usize];
                let late = &mut self.late[link as usize][label as usize];
                in_time -= count_late(late, passed, stage.lead, self.end, (first_start, period, cells));
            }
            let mut tagged = tagged;
            if self.edge.polices(vc) {
                let run = Run { last: Cell::new(label, frame, true).with_tag(tagged), cells };
                let at_switch = first_start + period + self.plan.delays[link as usize];
                for (cell, i) in run.iter().zip(0..).take_while(|&(_, i)| at_switch + period * i <= self.end) {
                    tagged = self.edge.on_cell(vc, at_switch + period * i, cell).tagged();
                }
            }
            match stage.end {
                StageEnd::Port { server, input, label } => {
                    let train = Train { next: arrival, period, cells, ends_frame: true, tagged, label, frame };
                    let effect = self.servers[server as usize].join(input as usize, train);
                    settle_by(&mut self.agenda, server as usize, effect);
                }
                StageEnd::Host { vc, link, lane } => {
                    let run = Run { last: Cell::new(label, frame, true).with_tag(tagged), cells };
                    if let Some(run) = run.at_most(in_time)
                        && let Some(frame) = self.end_systems.collect(vc, run)
                    {
                        let lane = lane as usize;
                        self.lanes[lane].push_back(Delivery { time: last, link, vc, frame });
                        schedule_lane(&mut self.agenda, self.servers.len(), lane, &self.lanes[lane]);
                    }
                }
            }
        }
    }

    /// A contended port catches up with everything before `now`.
    fn work(&mut self, number: usize, now: Time) {
        let Self { servers, plan, lanes, end_systems, agenda, late, onward, end, .. } = self;
        let (end, count) = (*end, servers.len());
        let link = plan.contended[number];
        let stages = &plan.stages[link];
        let until = now.min(end + Span(1));
        servers[number].work(until, |run, first_start, period| {
            let label = run.last.label() as usize;
            let stage: Stage = stages[label];
            let arrival = first_start + stage.lead;
            let mut last = arrival + period * u64::from(run.cells - 1);
            let mut run = run;
            if last > end {
                let of_run = (first_start, period, run.cells);
                let missed = count_late(&mut late[link][label], &plan.passed[link][label], stage.lead, end, of_run);
                let Some(in_time) = run.at_most(run.cells - missed) else { return };
                run = in_time;
                last = arrival + period * u64::from(run.cells - 1);
            }
            match stage.end {
                StageEnd::Host { vc, link, lane } => {
                    if let Some(frame) = end_systems.collect(vc, run) {
                        let lane = lane as usize;
                        lanes[lane].push_back(Delivery { time: last, link, vc, frame });
                        if lanes[lane].len() == 1 {
                            schedule_lane(agenda, count, lane, &lanes[lane]);
                        }
                    }
                }
                StageEnd::Port { server, input, label } => {
                    let Run { last, cells } = run;
                    let (ends_frame, tagged, frame) = (last.last_cell(), last.tagged(), last.frame);
                    let train = Train { next: arrival, period, cells, ends_frame, tagged, label, frame };
                    onward.push(Onward { server, input, train });
                }
            }
        });
        let effect = servers[number].next_effect();
        agenda.set(number, effect.map_or(Key::NEVER, |time| Key::new(time, SETTLE, index(number))));
        for Onward { server, input, train } in onward.drain(..) {
            let effect = servers[server as usize].join(input as usize, train);
            settle_by(agenda, server as usize, effect);
        }
    }

    /// Everything up to and including `now` is settled at every contended port; nothing on the agenda comes before.
    fn settle(&mut self, now: Time) {
        for number in 0..self.servers.len() {
            self.work(number, now + Span(1));
            self.servers[number].look_at(now + Span(1));
        }
    }

    fn schedule_starts(&mut self) {
        let leaf = self.servers.len() + self.lanes.len();
        let key = self.starts.front().map_or(Key::NEVER, |&(time, _)| Key::new(time, START, index(leaf)));
        self.agenda.set(leaf, key);
    }

    fn schedule_ticks(&mut self) {
        let leaf = self.servers.len() + self.lanes.len() + 1;
        let key = self.end_systems.next_tick().map_or(Key::NEVER, |time| Key::new(time, TICK, index(leaf)));
        self.agenda.set(leaf, key);
    }

    fn seen(&self, now: Time) -> Seen<'_> {
        Seen { plan: &self.plan, nics: &self.nics, servers: &self.servers, routing: &self.routing, now }
    }

    fn measure(&mut self) -> RunResult {
        self.settle(self.end);
        let mut ports = vec![PortState::default(); self.plan.roles.len()];
        for (link, role) in self.plan.roles.iter().enumerate() {
            let vcs = self.routing.vcs[link].len();
            ports[link] = match *role {
                Role::Host(number) => self.nics[number].state(self.end),
                Role::Contended(number) => self.servers[number].port.state(),
                Role::Transparent => {
                    PortState { counters: vec![PortCounters::default(); vcs], waiting: vec![0; vcs], max_queue: 0 }
                }
            };
        }
        let mut on_links = vec![0; self.network.vcs.len()];
        for (link, role) in self.plan.roles.iter().enumerate() {
            let departs_late = match *role {
                Role::Contended(number) => self.servers[number].departs_late(),
                Role::Host(_) => false,
                Role::Transparent => continue,
            };
            for (label, late) in self.late[link].iter().enumerate() {
                let counters = ports[link].counters[label];
                let waiting = if departs_late { 0 } else { u64::from(ports[link].waiting[label]) };
                let held = match *role {
                    Role::Contended(number) => u64::from(self.servers[number].port.held(index(label))),
                    _ => 0,
                };
                // Cells whose departure is known, those that will only start after the run among them.
                let known = counters.forwarded + waiting - held;
                for (Passed { link, label, .. }, late) in self.plan.passed[link][label].iter().zip(late) {
                    let passed = known - late;
                    let port = &mut ports[*link];
                    // Branches of a merge have the same label here.
                    port.counters[*label as usize].offered += passed;
                    port.counters[*label as usize].forwarded += passed;
                    // It arrives, and leaves in the same instant.
                    port.max_queue = port.max_queue.max(u32::from(passed > 0));
                }
                let arrived = known - late.last().expect("every way has an end");
                on_links[self.routing.vcs[link][label] as usize] += counters.forwarded - arrived;
            }
        }
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

/// Counts cells that arrive after `end` at the transparent ports they pass and at the end of their stage; how many miss the
/// latter. They are told by when the first starts, the time from one to the next, and their number.
#[cold]
fn count_late(
    late: &mut [u64],
    passed: &[Passed],
    lead: Span,
    end: Time,
    (first_start, period, cells): (Time, Span, u32),
) -> u32 {
    let mut missed = 0;
    for (late, lead) in late.iter_mut().zip(passed.iter().map(|passed| passed.lead).chain([lead])) {
        let first = first_start + lead;
        let in_time = if first > end { 0 } else { (end - first).0 / period.0 + 1 };
        missed = cells - u32::try_from(in_time).unwrap_or(cells).min(cells);
        *late += u64::from(missed);
    }
    missed
}

/// What a probe sees of the queues at an instant everything is settled at.
struct Seen<'a> {
    plan: &'a Plan,
    nics: &'a [Nic],
    servers: &'a [Server],
    routing: &'a Routing,
    now: Time,
}

impl Queues for Seen<'_> {
    fn occupancy(&self, link: usize) -> u32 {
        match self.plan.roles[link] {
            Role::Host(number) => self.nics[number].state(self.now).waiting.iter().sum(),
            Role::Contended(number) => self.servers[number].port.occupancy(),
            Role::Transparent => 0,
        }
    }

    fn per_vc(&self, link: usize, into: &mut Vec<u32>) {
        match self.plan.roles[link] {
            Role::Host(number) => into.extend(self.nics[number].state(self.now).waiting),
            Role::Contended(number) => into.extend(self.servers[number].port.per_vc()),
            Role::Transparent => into.extend(self.routing.vcs[link].iter().map(|_| 0)),
        }
    }
}

/// The contended port of a link.
fn server(network: &Network, routing: &Routing, times: &[LinkTimes], plan: &Plan, index: usize) -> Server {
    let link = &network.links[index];
    let vcs = routing.vcs[index].len();
    let stream = |purpose: &str| Stream::new(network.seed, &format!("port/{}/{purpose}", link.name));
    let policy = link.policy.build(link.buffer, &network.vc_names(routing, index));
    let cell_time = times[index].cell_time;
    let queues = link.scheduler.build(&network.vc_kinds(routing, index));
    let port = Port::new(link.buffer, vcs, policy, stream("policy"));
    let port = port.merging(&routing.merging[index]).scheduled(queues);
    let stages = &plan.stages[index];
    let leads = || stages.iter().map(|stage| stage.lead);
    let end = network.end(network.clock());
    let timing = Timing {
        cell_time,
        least_lead: leads().min().unwrap_or(cell_time),
        latest_start: Time(end.0.saturating_sub(leads().max().unwrap_or(cell_time).0)),
        // Where VCs merge, one that does not complete a frame does not even leave.
        every_cell_matters: stages
            .iter()
            .zip(&routing.merging[index])
            .any(|(stage, merges)| !merges && matches!(stage.end, StageEnd::Port { .. })),
        serve_first: network.service_order == ServiceOrder::BeforeArrivals,
        departs_late: port.departs_late(),
    };
    let inputs = routing.inputs[link.from];
    Server::new(port, TieBreaker::new(network.tie_order, inputs, stream("ties")), inputs, timing)
}

/// The first frame of a lane is what happens next there.
#[inline]
fn schedule_lane(agenda: &mut Agenda, servers: usize, lane: usize, frames: &VecDeque<Delivery>) {
    let leaf = servers + lane;
    let key = |frame: &Delivery| Key::new(frame.time, FIRST_LINK + frame.link, index(leaf));
    agenda.set(leaf, frames.front().map_or(Key::NEVER, key));
}

#[inline]
fn index(leaf: usize) -> u32 {
    u32::try_from(leaf).expect("indices fit 32 bits")
}

/// A port has to have settled its past by `time`.
#[inline]
fn settle_by(agenda: &mut Agenda, server: usize, time: Time) {
    let key = Key::new(time, SETTLE, index(server));
    if key < agenda.key(server) {
        agenda.set(server, key);
    }
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
    }
}
