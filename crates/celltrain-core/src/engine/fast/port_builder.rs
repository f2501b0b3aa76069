//! Builds the contended ports of a run, as [`super::port_plan`] selects them, and the links into them.

use typed_index_collections::{TiVec, ti_vec};

use super::contended_port::{ContendedPort, Ports};
use super::disciplines::{AnyDiscipline, Counted, Followed, InOrder, Merging, Queued};
use super::egress::{AtOncePort, Egress, Hop, HopEnd, ToHosts};
use super::ethernet::{last_cell_times, least_spacing};
use super::fifo::Fifo;
use super::ingress::CellIngress;
use super::links::{Ingress, Links, Stream, StreamIndex, Way};
use super::memory_ports::{ArrivingVc, CellTimes, MemoryPort, MemoryPorts, Rules};
use super::output::{Discipline, Output};
use super::output_buffer::OutputBuffer;
use super::partitioning::Partition;
use super::pauses::Pausing;
use super::plan::{AtOnceIndex, MemoryPlace, MemoryPlan, NicIndex, Plan, PortIndex, Role, Stage, StageEnd, Watched};
use super::port_plan::{PortMode, PortPlan, PortProperties};
use super::queue_port::QueuePort;
use super::stream_port::StreamPort;
use super::timing::{Arrivals, Effects, Timing};
use super::train::TrainIngress;
use super::train_port::{TrainDiscipline, TrainPort};
use super::waiting_cells::{Departures, Kept};
use crate::aal5::Framing;
use crate::cancellation::{CancellationToken, Interrupted, all};
use crate::cell::CellBits;
use crate::contracts::Edge;
use crate::departure::HeadRule;
use crate::index::{Label, LinkIndex, MemoryIndex, VcIndex};
use crate::marking::{MarkedAt, Marker};
use crate::memory::{CellClass, FrameAdmission, MemoryConfig, Pauses, QueueIndex};
use crate::network::{LinkTimes, Network, Routing, Vc};
use crate::policy::formula::PortInfo;
use crate::policy::{BufferPolicy, Overflow};
use crate::port::admission::Admission;
use crate::rate_control::RateControl;
use crate::rng;
use crate::scheduler::Service;
use crate::scheduler::waiting::ReportGranularity;
use crate::tie::{ServiceOrder, TieBreaker};
use crate::units::{Clock, Span, Time};
use crate::wire::Wire;

/// Everything from which the contended ports of a run are built.
pub(super) struct PortBuilder<'a> {
    pub(super) network: &'a Network,
    pub(super) routing: Routing,
    pub(super) times: TiVec<LinkIndex, LinkTimes>,
    pub(super) rate_control: RateControl,
    pub(super) plan: Plan,
    pub(super) end: Time,
    pub(super) clock: Clock,
    /// The partition that this builder simulates; `None` for the whole network.
    partition: Option<Partition<'a>>,
    mode: PortMode,
    /// [`Kept::Cells`] if a probe looks at queues during the run.
    kept: Kept,
    /// For each VC, whether it carries acknowledgements of a flow.
    acknowledges: TiVec<VcIndex, bool>,
    token: &'a CancellationToken<'a>,
}

impl<'a> PortBuilder<'a> {
    /// Plans a run. Probes read the smallest and largest queue of the ports in `traced` during the run.
    pub(super) fn new(
        network: &'a Network,
        mode: PortMode,
        traced: Option<&[LinkIndex]>,
        partition: Option<Partition<'a>>,
        token: &'a CancellationToken<'a>,
    ) -> Result<Self, Interrupted> {
        let clock = network.clock();
        token.check()?;
        let routing = network.routing();
        let times = LinkTimes::of(network, clock);
        let rate_control = RateControl::new(network, &routing, clock, token)?;
        let partition_of = |node| partition.map_or(0, |partition| partition.partitioning.of(node));
        token.check()?;
        let plan = Plan::new(network, &routing, &rate_control, &times, partition_of, traced.unwrap_or_default());
        let kept = if traced.is_some() { Kept::Cells } else { Kept::Number };
        let end = network.end(clock);
        let mut acknowledges = ti_vec![false; network.vcs.len()];
        for flow in network.flows.iter().filter(|flow| flow.uses_tcp()) {
            acknowledges[flow.ack_vc] = true;
        }
        let builder = Self {
            network,
            routing,
            times,
            rate_control,
            plan,
            end,
            clock,
            partition,
            mode,
            kept,
            acknowledges,
            token,
        };
        Ok(builder)
    }
}

/// A port behind which cells are on their way for more cell times than this takes no frame when it departs, because its
/// batches contain many frames.
const MOST_LEAD: u64 = 16;

/// The selected implementation of a port, with the data that every implementation needs.
struct Draft {
    policy: Box<dyn BufferPolicy>,
    queues: Option<Service>,
    timing: Timing,
    plan: PortPlan,
    reason: String,
    lead_of_hosts: Option<Span>,
}

impl PortBuilder<'_> {
    /// Builds all contended ports and the links into them.
    pub(super) fn ports(&self) -> Result<PortSet, Interrupted> {
        let mut set = PortSet::default();
        for &link in &self.plan.contended {
            if let Some((memory, place)) = self.plan.in_memory(link) {
                if place == MemoryPlace::default() {
                    self.add_memory(&mut set, memory)?;
                } else {
                    self.add_port_of_memory(&mut set, memory, place);
                }
                continue;
            }
            self.add_port(&mut set, link, self.draft(link)?);
        }
        for (number, losses) in self.plan.losses.iter_enumerated() {
            let has_line = self.network.links[losses.link].has_delay_line();
            let ingress = if has_line { Ingress::Line(number) } else { Ingress::Losses(number) };
            set.links.add_port(ingress, Span(0), None);
        }
        // All ports must exist first, because any port can be the next port of another.
        for port in set.ports.iter_mut().flatten() {
            port.each_egress(&mut |egress| egress.hops = self.hops(&set.links, egress.to_hosts.link));
        }
        Ok(set)
    }

    /// Returns, by contended port, whether cells from other contended ports arrive in streams.
    pub(super) fn takes_cells(&self) -> Result<TiVec<PortIndex, bool>, Interrupted> {
        Ok(all(self.plan.contended.iter().map(|&link| Ok(self.draft(link)?.plan != PortPlan::Trains)))?.into())
    }

    fn draft(&self, link: LinkIndex) -> Result<Draft, Interrupted> {
        let Self { network, routing, .. } = self;
        self.token.tick(routing.vcs[link].len() + self.plan.upstream.of(link).len())?;
        let port = &network.links[link];
        let mut policy = network.policy(routing, link);
        policy.at_port(&PortInfo::of(network, port, self.clock));
        // With a single queue, cells leave in the order of arrival under any scheduler.
        let has_queues = |service: &Service| service.has_a_choice() || policy.overflow() == Overflow::PushOutLongest;
        let queues = network.service(routing, link).filter(has_queues);
        let mut timing = self.timing(link);
        if policy.head_policy().is_some() {
            timing.marks = Some(MarkedAt::Dequeue);
        }
        let is_plain = queues.is_none()
            && timing.arrivals == Arrivals::Unrecorded
            && timing.service == ServiceOrder::AfterArrivals
            && !timing.marks()
            && policy.overflow() != Overflow::PushOutFront
            && policy.follower().is_none()
            && !routing.merging[link].contains(&true);
        let (plan, reason) = match self.plan.in_memory(link) {
            Some((memory, _)) => self.memory_plan(memory),
            None => self.port_plan(link, &timing, if is_plain { PortPlan::Stream } else { PortPlan::Queues }),
        };
        let is_prompt = timing.least_lead <= timing.cell_time * MOST_LEAD;
        let takes_alone = is_plain && is_prompt && plan == PortPlan::Trains;
        let lead_of_hosts = if takes_alone { self.lead_of_hosts(link) } else { None };
        Ok(Draft { policy, queues, timing, plan, reason, lead_of_hosts })
    }

    /// Returns the shortest time from the departure of a frame from its host to its arrival at a port of trains, if the
    /// port may take frames when they depart. Only hosts feed such a port, only with acknowledgements, and nothing looks
    /// at it during the run. Data rarely arrives alone.
    fn lead_of_hosts(&self, link: LinkIndex) -> Option<Span> {
        let Self { network, plan, .. } = self;
        let upstream = plan.upstream.of(link).iter().map(|&from| plan.beginning(from));
        let is_plain = |from| matches!(plan.roles[from], Role::Host(_)) && !network.is_on_ethernet(from);
        let may_take = self.kept == Kept::Number
            && self.partition.is_none()
            && plan.losses.is_empty()
            && !network.delays.at_ports()
            && network.aal5.framing == Framing::Aal5
            && self.routing.vcs[link].iter().all(|&vc| self.acknowledges[vc])
            && upstream.clone().all(is_plain);
        upstream.flat_map(|from| &plan.stages[from]).map(|stage| stage.lead).min().filter(|_| may_take)
    }

    fn port_plan(&self, link: LinkIndex, timing: &Timing, single_cells: PortPlan) -> (PortPlan, String) {
        let needs_memory = if self.plan.is_pausable(link) {
            Some("the next switch may pause the link")
        } else if self.network.is_on_ethernet(link) {
            Some("the link carries Ethernet frames")
        } else if self.network.changes_rate(link) {
            Some("the rate of the link changes")
        } else {
            None
        };
        if let Some(why) = needs_memory {
            return (PortPlan::Memory, format!("{why}, so the port is simulated as a shared memory of one port"));
        }
        let upstream = self.plan.upstream.of(link);
        let are_here = upstream.iter().all(|&from| self.are_together(self.plan.beginning(from), link));
        let properties = PortProperties {
            timing,
            vcs: self.routing.vcs[link].len(),
            inputs: upstream.len(),
            gets_single_cells: upstream.iter().any(|&from| self.brings_cells(from)),
            single_cells,
            tie_order: self.network.tie_order,
            // A port that processes cells at once cannot tell whether a cell starts a packet, with packet framing.
            may_run_ahead: self.kept == Kept::Number && are_here && self.network.aal5.framing == Framing::Aal5,
            stores: self.network.stores(link),
        };
        PortPlan::select(self.mode, &properties)
    }

    /// Returns the implementation of a memory's ports, and the reason for it.
    fn memory_plan(&self, memory: MemoryIndex) -> (PortPlan, String) {
        let (name, ports) = (&self.network.memories[memory].name, self.plan.memories[memory].ports.len());
        let why = match ports {
            1 => format!("the port is the only port of the memory {name}"),
            ports => format!("the port shares the memory {name}, whose {ports} ports are simulated together"),
        };
        (PortPlan::Memory, why)
    }

    /// Returns true if the cells on a link come one by one from a contended port.
    fn brings_cells(&self, link: LinkIndex) -> bool {
        matches!(self.plan.roles[self.plan.beginning(link)], Role::Contended(_))
    }

    /// Returns whether the same partition simulates the ports of both links. The answer is the same in every partition,
    /// so streams have the same numbers in all of them.
    fn are_together(&self, one: LinkIndex, other: LinkIndex) -> bool {
        let partition_of =
            |partition: Partition<'_>, link: LinkIndex| partition.partitioning.of(self.network.links[link].from);
        self.partition.is_none_or(|partition| partition_of(partition, one) == partition_of(partition, other))
    }

    fn has(&self, link: LinkIndex) -> bool {
        self.partition.is_none_or(|partition| partition.has(self.network.links[link].from))
    }

    fn add_port(&self, set: &mut PortSet, link: LinkIndex, mut draft: Draft) {
        let (least_lead, lead_of_hosts, plan) = (draft.timing.least_lead, draft.lead_of_hosts, draft.plan);
        let reason = std::mem::take(&mut draft.reason);
        let (ingress, port): (Ingress, Option<Box<dyn ContendedPort>>) = match plan {
            PortPlan::Trains => {
                let inputs = self.plan.upstream.of(link).len();
                let ingress = Box::new(TrainIngress::new(inputs, self.effects(link, &draft.timing)));
                (Ingress::Trains(ingress), Some(self.port_of_trains(link, draft)))
            }
            PortPlan::AtOnce => {
                let to_hosts = self.egress(link, &draft).to_hosts;
                let number = set.at_once.push_and_get_key(AtOncePort { fifo: self.fifo(link, draft), to_hosts });
                (Ingress::AtOnce(number), None)
            }
            PortPlan::Stream | PortPlan::Queues | PortPlan::Memory => {
                let (upstream, effects) = (self.plan.upstream.of(link), self.effects(link, &draft.timing));
                let ties = self.ties(link, self.draws("port", &self.network.links[link].name, "ties"));
                let (first, ingress) = self.cell_ingress(set, link, upstream, effects, ties);
                (Ingress::Streams(first), Some(self.port_of_cells(link, ingress, draft)))
            }
        };
        set.links.add_port(ingress, least_lead, lead_of_hosts);
        set.ports.push(port);
        set.plans.push((plan, reason));
    }

    fn port_of_trains(&self, link: LinkIndex, Draft { policy, queues, timing, .. }: Draft) -> Box<dyn ContendedPort> {
        let kept = if timing.marks() { Kept::Cells } else { self.kept };
        let output = self.output_parts(link, policy, timing);
        match self.discipline(&output, queues, kept) {
            AnyDiscipline::Counted(queue) => self.train_port(output, queue),
            AnyDiscipline::InOrder(queue) => self.train_port(output, queue),
            AnyDiscipline::Merging(queue) => self.train_port(output, queue),
            AnyDiscipline::Followed(queue) => self.train_port(output, queue),
            AnyDiscipline::Queued(queue) => self.train_port(output, queue),
        }
    }

    fn port_of_cells(&self, link: LinkIndex, ingress: CellIngress, draft: Draft) -> Box<dyn ContendedPort> {
        let egress = self.egress(link, &draft);
        match draft.plan {
            PortPlan::Stream => Box::new(StreamPort { ingress, fifo: self.fifo(link, draft), egress }),
            PortPlan::Memory => Box::new(self.memory_of_port(link, ingress, draft)),
            _ => {
                let output = self.output_parts(link, draft.policy, draft.timing);
                match self.discipline(&output, draft.queues, Kept::Cells) {
                    AnyDiscipline::Counted(_) => unreachable!("the port stores its waiting cells"),
                    AnyDiscipline::InOrder(queue) => queue_port(ingress, output, queue, egress),
                    AnyDiscipline::Merging(queue) => queue_port(ingress, output, queue, egress),
                    AnyDiscipline::Followed(queue) => queue_port(ingress, output, queue, egress),
                    AnyDiscipline::Queued(queue) => queue_port(ingress, output, queue, egress),
                }
            }
        }
    }

    /// Creates a memory for a single port.
    fn memory_of_port(&self, link: LinkIndex, ingress: CellIngress, draft: Draft) -> MemoryPorts {
        let Timing { cell_time, least_lead, service, arrivals, .. } = draft.timing;
        let class = CellClass { egress: Some(QueueIndex::default()), ingress: None };
        let arriving = |label| ArrivingVc { place: MemoryPlace::default(), label, class, arrivals };
        let arriving = self.routing.vcs[link].keys().map(arriving).collect();
        let port = self.memory_port(link, ti_vec![class; self.routing.vcs[link].len()], draft);
        let config = MemoryConfig::of_port(link, self.network.links[link].buffer);
        let memory = self.network.memory(&config, &self.times, self.clock);
        let rules = Rules::of(&config, service, least_lead);
        MemoryPorts::new(&config, memory, ingress, ti_vec![port], arriving, std::iter::once(cell_time), rules)
    }

    /// Creates a port of a memory.
    fn memory_port(&self, link: LinkIndex, classes: TiVec<Label, CellClass>, draft: Draft) -> MemoryPort {
        let Self { network, routing, .. } = self;
        let egress = self.egress(link, &draft);
        let admission = self.admission(link, draft.policy);
        let rule = self.head_rule(link, &admission);
        let port = MemoryPort::new(network.links[link].buffer, classes, admission, draft.queues, rule, egress);
        let mut port = port.storing(network.stores(link), &routing.vcs[link]);
        port.times = match network.transmitter(link, self.clock) {
            Some(transmitter) => CellTimes::Changing(Box::new(transmitter)),
            None if network.is_on_ethernet(link) => CellTimes::Ethernet,
            None => CellTimes::Equal,
        };
        if self.plan.is_pausable(link) {
            port = port.pausable(self.priorities(link));
        }
        port
    }

    /// Returns the priority of each VC on a link.
    fn priorities(&self, link: LinkIndex) -> TiVec<Label, u8> {
        self.routing.vcs[link].iter().map(|&vc| self.network.vcs[vc].priority).collect()
    }

    fn egress(&self, link: LinkIndex, Draft { plan, timing, .. }: &Draft) -> Egress {
        let counts_entries = plan.counts_entries(self.network.stores(link));
        let watches_ends = self.network.delays.at_ports() && !counts_entries;
        let watched = if watches_ends { CellBits::RM_OR_LAST } else { CellBits::RM };
        Egress { hops: TiVec::new(), watched, to_hosts: ToHosts::new(link, timing, &self.plan.stages[link]) }
    }

    fn fifo(&self, link: LinkIndex, Draft { policy, timing, .. }: Draft) -> Fifo {
        let Self { network, routing, .. } = self;
        let (vcs, capacity) = (routing.vcs[link].len(), network.links[link].buffer);
        let fifo = Fifo::new(vcs, capacity, self.admission(link, policy), &timing, self.kept);
        fifo.storing(network.stores(link))
    }

    fn admission(&self, link: LinkIndex, policy: Box<dyn BufferPolicy>) -> Admission {
        let draws = self.draws("port", &self.network.links[link].name, "policy");
        Admission::new(self.routing.vcs[link].len(), policy, draws).framed(self.network.aal5.framing)
    }

    fn output_parts(&self, link: LinkIndex, policy: Box<dyn BufferPolicy>, timing: Timing) -> OutputParts {
        let vcs = self.routing.vcs[link].len();
        let admission = self.admission(link, policy);
        let rule = self.head_rule(link, &admission);
        OutputParts { link, vcs, capacity: self.network.links[link].buffer, admission, rule, timing }
    }

    /// Selects the discipline of a port. With [`Kept::Number`], no probe looks at the port before the end of the run, so
    /// it need not keep its cells unless its policy or its queues depend on them.
    fn discipline(
        &self,
        OutputParts { link, capacity, admission, timing, .. }: &OutputParts,
        queues: Option<Service>,
        kept: Kept,
    ) -> AnyDiscipline {
        let merging = &self.routing.merging[*link];
        let pushes_out = admission.pushes_out() && capacity.is_some_and(|cells| cells < u32::MAX);
        let departures = if pushes_out || timing.marks() { Departures::Later } else { Departures::AtAdmission };
        let merges = merging.contains(&true);
        if let Some(service) = queues {
            admission.assert_may_be_scheduled(merges);
            AnyDiscipline::Queued(Queued::new(service, timing))
        } else if merges {
            admission.assert_may_merge();
            AnyDiscipline::Merging(Merging::new(merging, departures))
        } else if admission.follows_cells() {
            AnyDiscipline::Followed(Followed::new(departures))
        } else if kept == Kept::Cells || pushes_out || admission.policy.reads_counts() {
            AnyDiscipline::InOrder(InOrder::new(departures))
        } else {
            AnyDiscipline::Counted(Counted::default())
        }
    }

    fn train_port<D: TrainDiscipline>(&self, output: OutputParts, queue: D) -> Box<dyn ContendedPort> {
        let (link, vcs) = (output.link, output.vcs);
        let ties = self.ties(link, self.draws("port", &self.network.links[link].name, "ties"));
        let at_node = self.at_node(self.plan.upstream.of(link));
        Box::new(TrainPort::new(link, output.build(queue, ReportGranularity::Runs), ties, vcs, at_node))
    }

    /// Creates the marker of a port, if the port or its allocator marks cells; otherwise returns `None`.
    fn marker(&self, link: LinkIndex) -> Option<Marker> {
        self.network.marker(link).or_else(|| self.rate_control.marks_above(link).map(Marker::of_every_cell))
    }

    /// Creates the rule of a port that acts on cells at the head of its queue, if the port has one.
    fn head_rule(&self, link: LinkIndex, admission: &Admission) -> Option<Box<HeadRule>> {
        HeadRule::new(self.marker(link), admission.decides_at_head(), self.routing.vcs[link].len()).map(Box::new)
    }

    /// Adds the first port of a memory, which represents all ports of the memory.
    fn add_memory(&self, set: &mut PortSet, memory: MemoryIndex) -> Result<(), Interrupted> {
        let Self { network, routing, times, .. } = self;
        let MemoryPlan { ports, upstream, .. } = &self.plan.memories[memory];
        let config = &network.memories[memory];
        let classes = network.cell_classes(routing, config);
        let (mut built, mut vcs) = (TiVec::with_capacity(ports.len()), TiVec::new());
        let (mut least_lead, mut effects) = (Span(u64::MAX), Effects::default());
        let is_lossless = config.queues.iter().any(|queue| queue.lossless.is_some());
        let sends_pauses = is_lossless && config.pauses == Pauses::Links && network.has_pause_frames();
        for (place, &link) in ports.iter_enumerated() {
            let draft = self.draft(link)?;
            let Timing { least_lead: lead, arrivals, .. } = draft.timing;
            assert!(!routing.merging[link].contains(&true), "VCs do not merge at the ports of a memory");
            least_lead = least_lead.min(lead);
            effects = effects.max(self.effects(link, &draft.timing));
            let class = |label| classes.get(link, label);
            vcs.extend(routing.vcs[link].keys().map(|label| ArrivingVc {
                place,
                label,
                class: class(label),
                arrivals,
            }));
            let mut port = self.memory_port(link, routing.vcs[link].keys().map(class).collect(), draft);
            if sends_pauses {
                port = port.pausable(self.priorities(link));
            }
            built.push(port);
        }
        let pausing = Pausing::new(network, config, ports, times, self.clock);
        if let Some(lead) = pausing.as_ref().and_then(|(pausing, _)| pausing.least_lead()) {
            // Any cell may start or end a pause.
            (least_lead, effects) = (least_lead.min(lead), Effects::EveryCell);
        }
        let first = ports[MemoryPlace::default()];
        let ties = self.ties(first, self.draws("memory", &config.name, "ties"));
        let (row, ingress) = self.cell_ingress(set, first, upstream, effects, ties);
        let mut rules = Rules::of(config, network.service_order, least_lead);
        if network.aal5.framing == Framing::Packets {
            rules.frames = FrameAdmission::Whole;
        }
        let cell_times = ports.iter().map(|&link| times[link].cell_time);
        let unit = network.memory(config, times, self.clock);
        let unit = MemoryPorts::new(config, unit, ingress, built, vcs, cell_times, rules).pausing(pausing);
        set.links.add_port(Ingress::Streams(row), least_lead, None);
        set.ports.push(Some(Box::new(unit)));
        set.plans.push(self.memory_plan(memory));
        Ok(())
    }

    fn add_port_of_memory(&self, set: &mut PortSet, memory: MemoryIndex, place: MemoryPlace) {
        set.links.add_port(Ingress::Member(self.plan.memories[memory].lead, place), Span(0), None);
        set.ports.push(None);
        set.plans.push(self.memory_plan(memory));
    }

    fn draws(&self, of: &str, name: &str, purpose: &str) -> rng::Stream {
        rng::Stream::new(self.network.seed, &format!("{of}/{name}/{purpose}"))
    }

    /// Returns the time parameters of a port.
    fn timing(&self, index: LinkIndex) -> Timing {
        let &Self { network, ref routing, ref times, ref plan, end, .. } = self;
        let cell_time = times[index].cell_time;
        let stages = &plan.stages[index];
        let of_rms = plan
            .rm_ways
            .get(index)
            .into_iter()
            .flatten()
            .flatten()
            .flat_map(|way| way.passes.iter().map(|pass| pass.lead).chain(way.end.iter().map(|end| end.lead)));
        let leads = || stages.iter().map(|stage| stage.lead);
        let mut longest_lead = leads().max().unwrap_or(cell_time);
        let mut least_lead = leads().chain(of_rms).min().unwrap_or(cell_time);
        if network.is_on_ethernet(index) {
            let (shortest, longest) = last_cell_times(network.links[index].rate, self.clock);
            longest_lead = longest_lead.max(longest + times[index].delay);
            least_lead = least_lead.min(shortest + times[index].delay);
        }
        Timing {
            cell_time,
            least_lead,
            longest_lead,
            latest_start: Time(end.0.saturating_sub(longest_lead.0)),
            horizon: end,
            end,
            // At a port where VCs merge, cells wait until their frame is complete.
            effects: stages
                .iter()
                .zip(&routing.merging[index])
                .find(|(stage, merges)| !*merges && matches!(stage.end, StageEnd::Port { .. }))
                .map_or(Effects::FrameEnds, |_| Effects::EveryCell),
            service: network.service_order,
            marks: self.marker(index).map(|marker| marker.at()),
            arrivals: network.links[index].allocator.as_ref().map_or(Arrivals::Unrecorded, |_| Arrivals::Recorded),
        }
    }

    /// Returns the cells that have an effect behind a port. A packet that is stored whole has none before its last cell
    /// arrives.
    fn effects(&self, link: LinkIndex, timing: &Timing) -> Effects {
        if self.network.stores(link).is_some() { Effects::FrameEnds } else { timing.effects }
    }

    fn ties(&self, link: LinkIndex, draws: rng::Stream) -> TieBreaker {
        let Self { network, routing, times, .. } = self;
        let inputs = routing.inputs[network.links[link].from].iter();
        TieBreaker::new(network.tie_order, inputs.map(|&from| times[from].cell_time), draws)
    }

    /// Returns the numbers of a port's links at the node. They decide the order of simultaneous cells.
    fn at_node(&self, upstream: &[LinkIndex]) -> Vec<u32> {
        upstream.iter().map(|&from| self.routing.input[from]).collect()
    }

    /// Adds the streams of the next port, in the order of the links that feed it. Returns the first stream, and the
    /// port's ingress.
    fn cell_ingress(
        &self,
        set: &mut PortSet,
        link: LinkIndex,
        upstream: &[LinkIndex],
        effects: Effects,
        ties: TieBreaker,
    ) -> (StreamIndex, CellIngress) {
        let port = set.ports.next_key();
        let first = set.links.add_streams(upstream.iter().map(|&from| {
            if self.has(self.plan.beginning(from)) && !self.has(link) {
                return Stream::elsewhere(port);
            }
            let way = if self.brings_cells(from) { Way::NO_CELLS } else { Way::NO_TRAINS };
            Stream::new(port, way, effects)
        }));
        let spacings = upstream.iter().map(|&from| {
            let cell_time = self.times[from].cell_time;
            let feeder = &self.network.links[from];
            match feeder.wire {
                Wire::Cells => cell_time,
                Wire::Ethernet => least_spacing(cell_time, feeder.rate, self.clock),
            }
        });
        let least_spacing = spacings.min().unwrap_or(self.times[link].cell_time);
        (first, CellIngress::new(ties, first, self.at_node(upstream), least_spacing, effects))
    }

    fn hops(&self, links: &Links, link: LinkIndex) -> TiVec<Label, Hop> {
        let hops = self.plan.stages[link].iter_enumerated();
        hops.map(|(label, stage)| self.hop(links, link, label, stage)).collect()
    }

    /// Returns the next hop of a VC's cells after a port of single cells.
    fn hop(&self, links: &Links, link: LinkIndex, label: Label, stage: &Stage) -> Hop {
        let plan = &self.plan;
        let is_watched =
            plan.watched == Watched::AllCells && plan.rm_ways.get(link).is_some_and(|ways| ways[label].is_some());
        let (to, label) = match stage.end {
            StageEnd::Port { port, input, label } => match &links.ingress[port] {
                Ingress::Streams(first) if !is_watched => (HopEnd::Stream(first.input(input)), label),
                &Ingress::AtOnce(port) if !is_watched => (HopEnd::AtOnce(port), label),
                _ => (HopEnd::Fabric, label),
            },
            StageEnd::Host { .. } | StageEnd::Shaped { .. } => (HopEnd::Host, label),
        };
        Hop { lead: stage.lead, to, label }
    }

    /// For each VC, returns the shaped port through which its frames leave their host; `None` if the host's own port
    /// sends them.
    pub(super) fn exits(&self, edge: &Edge, links: &Links) -> TiVec<VcIndex, Option<Exit>> {
        let exit = |(vc, of_vc): (VcIndex, &Vc)| {
            let link = of_vc.path[0];
            match self.plan.roles[link] {
                Role::Host(_) if self.network.is_on_ethernet(link) => None,
                Role::Host(nic) => {
                    let is_policed = edge.polices_at(vc, link) && self.plan.losses_on(link).is_none();
                    let end = self.plan.stages[link][self.routing.first_label[vc]].end;
                    let may_be_alone =
                        matches!(end, StageEnd::Port { port, .. } if links.lead_of_hosts(port).is_some());
                    Some(Exit { nic, cell_time: self.times[link].cell_time, is_policed, may_be_alone })
                }
                Role::Shaped(_) | Role::Pausable(_) => None,
                Role::Contended(_) | Role::Transparent => unreachable!("a VC starts at a host"),
            }
        };
        self.network.vcs.iter_enumerated().map(exit).collect()
    }
}

/// Everything of an [`Output`] except its discipline.
struct OutputParts {
    link: LinkIndex,
    vcs: usize,
    capacity: Option<u32>,
    admission: Admission,
    rule: Option<Box<HeadRule>>,
    timing: Timing,
}

impl OutputParts {
    fn build<D: Discipline>(self, queue: D, granularity: ReportGranularity) -> Output<D> {
        let buffer = OutputBuffer::new(self.capacity, self.vcs, self.admission, queue);
        Output::new(buffer, self.timing, self.rule, granularity)
    }
}

fn queue_port<D: Discipline>(
    ingress: CellIngress,
    output: OutputParts,
    queue: D,
    egress: Egress,
) -> Box<dyn ContendedPort> {
    Box::new(QueuePort { ingress, output: output.build(queue, ReportGranularity::Each), egress })
}

#[derive(Default)]
pub(super) struct PortSet {
    pub(super) ports: Ports,
    pub(super) links: Links,
    pub(super) at_once: TiVec<AtOnceIndex, AtOncePort>,
    /// The implementation of each port, and the reason for the choice.
    pub(super) plans: TiVec<PortIndex, (PortPlan, String)>,
}

/// The shaped port through which a VC's frames leave their host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exit {
    pub(super) nic: NicIndex,
    pub(super) cell_time: Span,
    pub(super) is_policed: bool,
    /// True if the VC's next port may take a frame when it departs.
    pub(super) may_be_alone: bool,
}
