//! Results of the fast engine at its horizon, and the view of probes during the run.

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use super::engine::Engine;
use super::fabric::{Fabric, Line};
use super::memory_ports::MemoryPorts;
use super::plan::{Passed, Role, StageEnd};
use super::port_queue::PortEnd;
use crate::cancellation::CancellationToken;
use crate::engine::Outcome;
use crate::index::{Label, LinkIndex, MemoryIndex, VcIndex};
use crate::link_loss::LossCounters;
use crate::memory::{Memory, MemoryState};
use crate::metrics::FinalState;
use crate::port::{PortCounters, PortState};
use crate::probe::Queues;
use crate::queue_range::QueueRange;
use crate::shaped_port::ShapedPort;
use crate::units::Time;

impl Engine<'_> {
    /// Returns a view of the queues at `now`. Every port must already be simulated up to this instant.
    pub(super) fn seen(&self, now: Time) -> Seen<'_> {
        Seen { engine: self, now }
    }

    /// Starts new ranges of the queues of `links` for a sample at `now`, when every port must be simulated up to this
    /// instant.
    pub(super) fn start_ranges(&mut self, links: &[LinkIndex], now: Time) {
        for &link in links {
            match self.fabric.plan.roles[link] {
                Role::Host(number) => self.nics[number].start_range(now),
                Role::Pausable(number) => self.pausable_nics[number].start_range(now),
                Role::Shaped(_) => {
                    self.fabric
                        .rate_control
                        .port_mut(link)
                        .expect("every port has the state of its implementation")
                        .start_range();
                }
                Role::Contended(number) => self.queue_mut(number).start_range(),
                Role::Transparent => unreachable!("a port whose queue range is recorded is treated as contended"),
            }
        }
    }

    pub(super) fn memory_states(&self) -> TiVec<MemoryIndex, MemoryState> {
        let now = self.fabric.horizon;
        self.fabric.plan.memories.keys().map(|memory| self.memory(memory).state(now)).collect()
    }

    fn memory(&self, memory: MemoryIndex) -> &Memory {
        self.memory_ports(memory).memory()
    }

    pub(super) fn port_ends(&self) -> TiVec<LinkIndex, PortEnd> {
        let end = |(link, role): (LinkIndex, &Role)| match *role {
            Role::Host(number) => PortEnd::in_order(self.nics[number].state(self.fabric.horizon)),
            Role::Shaped(_) => {
                let port = self.fabric.rate_control.port(link).expect("every port has the state of its implementation");
                PortEnd { state: port.state(), leave_later: TiVec::new() }
            }
            // Cells that start later have not been sent.
            Role::Pausable(number) => {
                PortEnd { state: self.pausable_nics[number].state(self.fabric.horizon), leave_later: TiVec::new() }
            }
            Role::Contended(number) => self.queue(number).end(),
            Role::Transparent => {
                let vcs = self.routing.vcs[link].len();
                let (counters, waiting) = (ti_vec![PortCounters::default(); vcs], ti_vec![0; vcs]);
                PortEnd::in_order(PortState { counters, waiting, max_queue: 0, replaced_results: 0 })
            }
        };
        self.fabric.plan.roles.iter_enumerated().map(end).collect()
    }

    /// Returns the time for which each link has sent Ethernet frames.
    fn on_ethernet(&self) -> TiVec<LinkIndex, u64> {
        let sent = |role: &Role| match *role {
            Role::Host(number) => self.nics[number].sent_on_ethernet(self.fabric.horizon),
            Role::Contended(number) => {
                let (unit, place) = self.links.unit(number);
                let ports = self.ports[unit].as_deref().and_then(MemoryPorts::of);
                ports.map_or(0, |ports| ports.port(place).on_ethernet)
            }
            Role::Shaped(_) | Role::Pausable(_) | Role::Transparent => 0,
        };
        self.fabric.plan.roles.iter().map(sent).collect()
    }

    /// Counts the cells of a VC at the ports of a stage. Needs the number of cells that have begun the stage, and the
    /// number known to begin it later. Returns the number of cells on the links of the stage.
    fn follow(
        &self,
        link: LinkIndex,
        label: Label,
        [begun, known]: [u64; 2],
        ends: &mut TiSlice<LinkIndex, PortEnd>,
    ) -> u64 {
        let Fabric { plan, late, rate_control, .. } = &self.fabric;
        let late_cells = &late.counts[link][label];
        for (Passed { link, label, .. }, late) in plan.passed[link][label].iter().zip(late_cells) {
            let passed = known - late;
            let port = &mut ends[*link].state;
            // Several branches of a merge can have the same label on this link.
            port.counters[*label].offered += passed;
            port.counters[*label].forwarded += passed;
            // The cell arrives and leaves in the same instant, but counts as waiting between the two events.
            port.max_queue = port.max_queue.max(u32::from(passed > 0));
        }
        let arrived = known - late_cells.last().expect("a lane without a later cell ends at a receiver");
        if let StageEnd::Shaped { lane, .. } = plan.stages[link][label].end {
            // Cells of an incomplete packet wait for the rest.
            let place = plan.lanes[lane].expect("the event belongs to a shaped port");
            let port = rate_control.port(place.link).expect("the event belongs to a shaped port");
            let came = u32::try_from(arrived - port.buffer().vc_counters(place.label).offered);
            let port = &mut ends[place.link].state;
            let came = came.expect("the number of cells is less than the length of a packet");
            port.counters[place.label].offered += u64::from(came);
            port.waiting[place.label] += came;
        }
        begun - arrived - late.rm_cells_left(link, label)
    }

    /// Computes the results up to the horizon from the states of the ports and memories. `is_whole` is false if only one
    /// partition is covered.
    pub(super) fn result(
        &self,
        mut ends: TiVec<LinkIndex, PortEnd>,
        memories: &TiSlice<MemoryIndex, MemoryState>,
        is_whole: bool,
        token: &CancellationToken<'_>,
    ) -> Outcome {
        let mut on_links: TiVec<VcIndex, u64> = ti_vec![0; self.network.vcs.len()];
        for (link, role) in self.fabric.plan.roles.iter_enumerated() {
            if *role == Role::Transparent {
                continue;
            }
            for label in self.fabric.plan.stages[link].keys() {
                let PortEnd { state, leave_later } = &ends[link];
                let forwarded = state.counters[label].forwarded;
                // Cells with known departure times.
                let known = forwarded + leave_later.get(label).map_or(0, |&cells| u64::from(cells));
                on_links[self.routing.vcs[link][label]] += self.follow(link, label, [forwarded, known], &mut ends);
            }
        }
        for (number, losses) in self.fabric.losses.iter_enumerated() {
            let mut on_line: TiVec<Label, u64> = ti_vec![0; self.routing.vcs[losses.link].len()];
            for cell in self.fabric.lines[number].iter().flat_map(Line::cells) {
                on_line[cell.label()] += 1;
            }
            for (label, &vc) in self.routing.vcs[losses.link].iter_enumerated() {
                let LossCounters { came, lost, .. } = losses.of_vc(label);
                let [begun, known] = [came - lost, came - lost - on_line[label]];
                on_links[vc] += self.follow(self.fabric.plan.behind(number), label, [begun, known], &mut ends);
            }
        }
        let on_ethernet = self.network.has_ethernet().then(|| self.on_ethernet());
        let ports: TiVec<LinkIndex, _> = ends.into_iter().map(|end| end.state).collect();
        let (ports, on_links) = (&ports, &on_links);
        let &Self { network, ref routing, clock, ref fabric, .. } = self;
        let Fabric { horizon, end_systems, rate_control, edge, losses, .. } = fabric;
        let state = FinalState {
            network,
            routing,
            clock,
            end: *horizon,
            ports,
            memories,
            deadlock: fabric.pauses.as_ref().and_then(|pauses| pauses.deadlock.as_ref()),
            on_ethernet: on_ethernet.as_ref(),
            end_systems,
            on_links,
            losses,
            edge,
            rate_control,
            delays: fabric.delays.as_ref().map(|delays| delays.times(&fabric.plan, &fabric.late.held_back, *horizon)),
            token,
        };
        if is_whole { state.measure() } else { state.measure_partition() }
    }
}

/// A probe's view of the queues at an instant up to which every port is simulated.
pub(super) struct Seen<'a> {
    engine: &'a Engine<'a>,
    now: Time,
}

impl Seen<'_> {
    fn role(&self, link: LinkIndex) -> Role {
        self.engine.fabric.plan.roles[link]
    }

    fn shaped(&self, link: LinkIndex) -> &ShapedPort {
        self.engine.fabric.rate_control.port(link).expect("every port has the state of its implementation")
    }
}

impl Queues for Seen<'_> {
    fn occupancy(&self, link: LinkIndex) -> u32 {
        match self.role(link) {
            Role::Host(number) => self.engine.nics[number].state(self.now).waiting.iter().sum(),
            Role::Shaped(_) => self.shaped(link).occupancy(),
            Role::Pausable(number) => self.engine.pausable_nics[number].state(self.now).waiting.iter().sum(),
            Role::Contended(number) => self.engine.queue(number).view().occupancy,
            Role::Transparent => 0,
        }
    }

    fn range(&self, link: LinkIndex) -> QueueRange {
        match self.role(link) {
            Role::Host(number) => self.engine.nics[number].range(self.now),
            Role::Shaped(_) => self.shaped(link).buffer().range(),
            Role::Pausable(number) => self.engine.pausable_nics[number].range(self.now),
            Role::Contended(number) => self.engine.queue(number).view().range,
            Role::Transparent => unreachable!("a port whose queue range is recorded is treated as contended"),
        }
    }

    fn per_vc(&self, link: LinkIndex, into: &mut Vec<u32>) {
        match self.role(link) {
            Role::Host(number) => into.extend(self.engine.nics[number].state(self.now).waiting),
            Role::Shaped(_) => into.extend(self.shaped(link).per_vc()),
            Role::Pausable(number) => into.extend(self.engine.pausable_nics[number].state(self.now).waiting),
            Role::Contended(number) => into.extend(self.engine.queue(number).view().per_vc),
            Role::Transparent => into.extend(self.engine.routing.vcs[link].iter().map(|_| 0)),
        }
    }

    fn memory(&self, memory: MemoryIndex) -> &Memory {
        self.engine.memory(memory)
    }
}
