//! The plan of a network, computed before the run. It lists the places where cells can wait, and the stages between
//! these places.
//!
//! A switch port is *transparent* if no cell ever waits there: every cell leaves in the instant it arrives, and the
//! port is only a delay. This requires that a single link feeds it, that this link is no faster than the port's own,
//! that the link cannot be paused, that neither link carries Ethernet frames or changes its rate, that no VCs merge
//! there, that the port has no allocator, that its buffer has room for a cell, and that its policy admits every frame if the buffer is
//! empty. No port that stores packets whole is transparent. All other ports are hosts' own ports, whose queues are
//! calculated instead of simulated ([`super::nic`]), *shaped* ports ([`crate::shaped_port`]) or *contended* ports
//! ([`super::contended_port`]).
//!
//! A *stage* is the path of a VC from one of these ports to the next, or to its host. Its *lead* is the time from the
//! start of a cell's transmission to its arrival at the end. A *lane* is a queue of frames in transit: either the
//! frames from one port to hosts with the same lead, or the frames of one VC to a shaped port.

use std::collections::BTreeMap;

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use super::pausing_groups::pausable;
use crate::cell::Cell;
use crate::index::{Label, LinkIndex, MemoryIndex, NodeIndex, VcIndex, indices};
use crate::link_loss::LossyIndex;
use crate::network::{LinkTimes, Network, Next, NodeKind, Routing};
use crate::rate_control::{Place, RateControl};
use crate::units::Span;
use crate::upstream::UpstreamLinks;

indices! {
    NicIndex;

    ShapedIndex;

    /// A host's port whose link may be paused.
    PausableIndex;

    PortIndex;

    /// A contended port that processes each cell as soon as its arrival is known.
    AtOnceIndex;

    /// Position of a port among the ports of its memory.
    MemoryPlace;

    /// A lane: a queue of frames in transit.
    LaneIndex;

    /// A stage, numbered over all links.
    StageIndex;

    /// A queue of RM events, for RM cells from one port with the same lead.
    RmLaneIndex;
}

/// The role of a port in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Host(NicIndex),
    Shaped(ShapedIndex),
    /// A host's port whose link may be paused.
    Pausable(PausableIndex),
    Contended(PortIndex),
    Transparent,
}

/// The path of a VC's cells from a place where they may wait to the next place where they may wait, or to their host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage {
    pub(super) number: StageIndex,
    /// Time from the start of a cell's transmission to its arrival at the end of the stage.
    pub(super) lead: Span,
    pub(super) end: StageEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StageEnd {
    /// The host at the end of the VC.
    Host {
        vc: VcIndex,
        /// The link on which the host receives. Simultaneous deliveries happen in the order of these links.
        link: LinkIndex,
        /// The lane of frames from this port with this lead.
        lane: LaneIndex,
    },
    /// A shaped port, which takes whole packets.
    Shaped {
        /// The lane of this VC's packets from this port.
        lane: LaneIndex,
        link: LinkIndex,
        vc: VcIndex,
    },
    /// A contended port, or the first port of its memory.
    Port {
        port: PortIndex,
        /// Number of the input among the inputs of the port or, in a memory, of all its ports.
        input: u32,
        /// The VC's label at the port or, in a memory, its label among the VCs of all the memory's ports.
        label: Label,
    },
}

/// A transparent port on the path of a VC.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    pub(super) link: LinkIndex,
    pub(super) label: Label,
    /// Time from the start of a transmission at the beginning of the stage to the arrival at this port.
    pub(super) lead: Span,
}

/// The path of a VC's RM cells through a stage.
#[derive(Clone, Debug)]
pub(super) struct RmWay {
    pub(super) vc: VcIndex,
    /// The switches whose allocators write into backward RM cells.
    pub(super) passes: Vec<RmPass>,
    /// The end of the RM cells' loop, if it is on the path.
    pub(super) end: Option<RmEnd>,
}

/// A switch that writes into RM cells.
#[derive(Clone, Copy, Debug)]
pub(super) struct RmPass {
    /// Time from the start of a transmission at the beginning of the stage to the arrival at this place.
    pub(super) lead: Span,
    pub(super) place: Place,
    pub(super) link: LinkIndex,
    pub(super) lane: RmLaneIndex,
}

/// The place at which RM cells leave their VC.
#[derive(Clone, Copy, Debug)]
pub(super) struct RmEnd {
    /// Time from the start of a transmission at the beginning of the stage to the arrival at this place.
    pub(super) lead: Span,
    pub(super) link: LinkIndex,
    /// Number of transparent ports that the RM cells pass before this place.
    pub(super) passed: usize,
    pub(super) lane: RmLaneIndex,
}

/// A link with losses or delays. A stage ends at the end of the link. A new stage begins at the same place, on an
/// additional link with the same labels.
pub(super) struct LossPlan {
    pub(super) link: LinkIndex,
    /// Time from the start of transmission at [`Plan::beginning`] to the end of the link.
    lead: Span,
}

/// The ports of one memory. Admission at one port depends on the other ports, so all ports are simulated together. The
/// first port has the events and inputs of all ports.
pub(super) struct MemoryPlan {
    /// The memory's ports, in order.
    pub(super) ports: TiVec<MemoryPlace, LinkIndex>,
    pub(super) lead: PortIndex,
    /// The links that feed the memory's ports, in order.
    pub(super) upstream: Vec<LinkIndex>,
    /// Label of each port's first VC among the VCs of all the memory's ports.
    pub(super) first_labels: TiVec<MemoryPlace, Label>,
}

impl MemoryPlan {
    fn new(routing: &Routing, upstream: &UpstreamLinks, mut ports: Vec<LinkIndex>, lead: PortIndex) -> Self {
        ports.sort_unstable();
        let mut vcs = 0;
        let first_label = |&port: &LinkIndex| {
            let first = Label::from(vcs);
            vcs += routing.vcs[port].len();
            first
        };
        let first_labels = ports.iter().map(first_label).collect();
        let mut feeding: Vec<LinkIndex> = ports.iter().flat_map(|&port| upstream.of(port)).copied().collect();
        feeding.sort_unstable();
        feeding.dedup();
        Self { ports: ports.into(), lead, upstream: feeding, first_labels }
    }

    /// Returns the end of a stage that leads from one link to a port.
    fn stage_end(&self, from: LinkIndex, place: MemoryPlace, label: Label) -> StageEnd {
        let input = self.upstream.binary_search(&from).expect("the path of the VC contains both links");
        let label = Label::new(self.first_labels[place].number() + label.number());
        let input = u32::try_from(input).expect("all indices fit in 32 bits");
        StageEnd::Port { port: self.lead, input, label }
    }
}

/// The cells of controlled VCs that have effects on their way through the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watched {
    /// No cells are watched, because no VC's rate is controlled.
    Nothing,
    RmCells,
    /// RM cells and data cells, which ports may mark.
    AllCells,
}

impl Watched {
    fn on(network: &Network, rate_control: &RateControl) -> Self {
        let mut links = network.links.iter_enumerated();
        if network.vcs.iter().all(|vc| vc.abr.is_none()) {
            Self::Nothing
        } else if links.any(|(number, link)| rate_control.marks_above(number).is_some() || link.marking.is_some()) {
            Self::AllCells
        } else {
            Self::RmCells
        }
    }

    /// Returns whether a cell has effects on its way, if its VC is controlled.
    #[inline(always)]
    pub(super) fn includes(self, cell: Cell) -> bool {
        match self {
            Self::Nothing => false,
            Self::RmCells => cell.is_rm(),
            Self::AllCells => true,
        }
    }
}

pub(super) struct Plan {
    pub(super) roles: TiVec<LinkIndex, Role>,
    pub(super) upstream: UpstreamLinks,
    pub(super) hosts: TiVec<NicIndex, LinkIndex>,
    pub(super) contended: TiVec<PortIndex, LinkIndex>,
    pub(super) memories: TiVec<MemoryIndex, MemoryPlan>,
    /// Memory of each link's port, and the port's position in it. Empty if there are no memories.
    in_memory: TiVec<LinkIndex, Option<(MemoryIndex, MemoryPlace)>>,
    pub(super) shaped: TiVec<ShapedIndex, LinkIndex>,
    pub(super) pausable: TiVec<PausableIndex, LinkIndex>,
    /// For each link, whether the next switch may pause it; empty if no link is paused.
    may_be_paused: TiVec<LinkIndex, bool>,
    pub(super) losses: TiVec<LossyIndex, LossPlan>,
    /// Stages by link and label, with the additional links behind losses at the end; empty for transparent ports.
    pub(super) stages: TiVec<LinkIndex, TiVec<Label, Stage>>,
    /// Number of stages of all links.
    stages_in_all: usize,
    /// Transparent ports on the path of each stage, in order, by link and label.
    pub(super) passed: TiVec<LinkIndex, TiVec<Label, Vec<Passed>>>,
    pub(super) watched: Watched,
    /// Path of RM cells, by link and label; empty with [`Watched::Nothing`].
    pub(super) rm_ways: TiVec<LinkIndex, TiVec<Label, Option<RmWay>>>,
    /// For each lane, the shaped port that receives its packets, if any.
    pub(super) lanes: TiVec<LaneIndex, Option<Place>>,
    /// Number of lanes of RM events. RM cells from one port with the same lead share a lane.
    pub(super) rm_event_lanes: usize,
    pub(super) delays: TiVec<LinkIndex, Span>,
}

impl Plan {
    /// Creates the plan of a network. `partition_of` returns the partition that simulates a node, or 0 if there is only
    /// one. The ports in `traced` are treated as contended, because no transparent port records when cells pass.
    pub(super) fn new(
        network: &Network,
        routing: &Routing,
        rate_control: &RateControl,
        times: &TiSlice<LinkIndex, LinkTimes>,
        partition_of: impl Fn(NodeIndex) -> u32,
        traced: &[LinkIndex],
    ) -> Self {
        let partition_of = |link: LinkIndex| partition_of(network.links[link].to);
        let mut plan = Plan {
            roles: TiVec::with_capacity(network.links.len()),
            upstream: UpstreamLinks::new(network),
            hosts: TiVec::new(),
            contended: TiVec::new(),
            memories: TiVec::new(),
            in_memory: in_memory(network),
            shaped: TiVec::new(),
            pausable: TiVec::new(),
            may_be_paused: pausable(network),
            losses: TiVec::new(),
            stages: TiVec::with_capacity(network.links.len()),
            stages_in_all: 0,
            passed: TiVec::with_capacity(network.links.len()),
            watched: Watched::on(network, rate_control),
            rm_ways: TiVec::with_capacity(network.links.len()),
            lanes: TiVec::new(),
            rm_event_lanes: 0,
            delays: times.iter().map(|times| times.delay).collect(),
        };
        for link in network.links.keys() {
            let is_pausable = plan.is_pausable(link);
            let role = if rate_control.port(link).is_some() {
                Role::Shaped(plan.shaped.push_and_get_key(link))
            } else if network.nodes[network.links[link].from].kind == NodeKind::Host {
                if is_pausable {
                    Role::Pausable(plan.pausable.push_and_get_key(link))
                } else {
                    Role::Host(plan.hosts.push_and_get_key(link))
                }
            } else if !routing.merging[link].contains(&true)
                && network.stores(link).is_none()
                && is_transparent(network, times, link, plan.upstream.of(link))
                && !traced.contains(&link)
                && !is_pausable
                && plan.in_memory(link).is_none()
            {
                Role::Transparent
            } else {
                Role::Contended(plan.contended.push_and_get_key(link))
            };
            plan.roles.push(role);
        }
        for memory in &network.memories {
            let lead = *memory.ports.iter().min().expect("every memory has at least one port");
            let Role::Contended(lead) = plan.roles[lead] else {
                unreachable!("a port that shares a memory is treated as contended")
            };
            plan.memories.push(MemoryPlan::new(routing, &plan.upstream, memory.ports.clone(), lead));
        }
        let lossy = network.links.iter_enumerated().filter(|(_, link)| link.has_rules());
        let lead = |link: LinkIndex| {
            plan.way_to(link).fold(Span(0), |lead, link| lead + times[link].cell_time + times[link].delay)
        };
        plan.losses = lossy.map(|(link, _)| LossPlan { link, lead: lead(link) }).collect();
        let rules = PathRules { routing, rate_control, times, partition_of: &partition_of };
        for link in (0..network.links.len() + plan.losses.len()).map(LinkIndex::from) {
            plan.add_stages(&rules, link);
        }
        plan
    }

    /// Returns the additional link behind a link's losses.
    pub(super) fn behind(&self, number: LossyIndex) -> LinkIndex {
        LinkIndex::from(self.roles.len() + usize::from(number))
    }

    /// Returns the losses of a link, if it has any.
    pub(super) fn losses_on(&self, link: LinkIndex) -> Option<LossyIndex> {
        self.losses.binary_search_by_key(&link, |losses| losses.link).ok()
    }

    /// Returns the link of the network at whose start or end a stage begins.
    pub(super) fn link_of(&self, start: LinkIndex) -> LinkIndex {
        self.losses_before(start).map_or(start, |number| self.losses[number].link)
    }

    /// Returns whether any link may be paused.
    pub(super) fn pauses(&self) -> bool {
        !self.may_be_paused.is_empty()
    }

    /// Returns whether the next switch may pause a link.
    pub(super) fn is_pausable(&self, link: LinkIndex) -> bool {
        self.may_be_paused.get(link) == Some(&true)
    }

    /// Returns true if a stage that ends at `port` ends at a contended port, and false if it ends at a link's losses.
    pub(super) fn is_contended(&self, port: PortIndex) -> bool {
        usize::from(port) < self.contended.len()
    }

    /// Returns the losses in front of an additional link; `None` for any other link.
    fn losses_before(&self, link: LinkIndex) -> Option<LossyIndex> {
        usize::from(link).checked_sub(self.roles.len()).map(LossyIndex::from)
    }

    /// Returns the number of the end of a link with losses in stages and [`Links`](super::links::Links). These numbers
    /// follow the contended ports.
    fn port_of_losses(&self, number: LossyIndex) -> PortIndex {
        PortIndex::from(self.contended.len() + usize::from(number))
    }

    /// Returns a VC's stage that begins at a link, and the stages that begin at losses on the VC's path.
    pub(super) fn stages_from(&self, link: LinkIndex, label: Label) -> impl Iterator<Item = &Stage> {
        std::iter::successors(Some(&self.stages[link][label]), |stage| {
            let StageEnd::Port { port, label, .. } = stage.end else { return None };
            let number = usize::from(port).checked_sub(self.contended.len())?;
            Some(&self.stages[self.behind(LossyIndex::from(number))][label])
        })
    }

    /// Returns the links before a transparent port, back to the last port where cells can wait. A single link feeds a
    /// transparent port.
    fn way_to(&self, link: LinkIndex) -> impl Iterator<Item = LinkIndex> {
        std::iter::successors(Some(link), |&link| match (self.roles[link], self.upstream.of(link)) {
            (Role::Transparent, &[feeder]) => Some(feeder),
            _ => None,
        })
    }

    /// Returns the link of the last port where cells could wait on their way to this link.
    pub(super) fn beginning(&self, link: LinkIndex) -> LinkIndex {
        self.way_to(self.link_of(link)).last().expect("the path contains the link")
    }

    /// Returns the time from the start of transmission at [`Plan::beginning`] to the beginning of a stage.
    pub(super) fn lead_to(&self, link: LinkIndex) -> Span {
        self.losses_before(link).map_or(Span(0), |number| self.losses[number].lead)
    }

    pub(super) fn in_memory(&self, link: LinkIndex) -> Option<(MemoryIndex, MemoryPlace)> {
        *self.in_memory.get(link)?
    }

    /// Returns the place at which a VC's RM cells leave the VC. This place must be in the given stage.
    pub(super) fn rm_end(&self, link: LinkIndex, label: Label) -> RmEnd {
        let way = self.rm_ways[link][label].as_ref();
        way.and_then(|way| way.end).expect("RM cells are removed from their VC in this stage")
    }

    /// Adds the stages that begin at a port. Frames that go to hosts with the same lead share a lane.
    fn add_stages(&mut self, rules: &PathRules<'_>, start: LinkIndex) {
        let first = self.link_of(start);
        // Transparent ports begin no stage.
        let is_passed = first == start && self.roles[first] == Role::Transparent;
        let vcs = if is_passed { 0 } else { rules.routing.next[first].len() };
        let mut lanes = StageLanes::default();
        let mut stages = TiVec::with_capacity(vcs);
        let mut all_passed = TiVec::with_capacity(vcs);
        let mut rm_ways = TiVec::with_capacity(if self.watched == Watched::Nothing { 0 } else { vcs });
        for label in rules.routing.next[first].keys().take(vcs) {
            let Path { lead, end, passed, rm_way } = self.follow(rules, start, label, &mut lanes);
            stages.push(Stage { number: StageIndex::from(self.stages_in_all + stages.len()), lead, end });
            all_passed.push(passed);
            if self.watched != Watched::Nothing {
                rm_ways.push(rules.rate_control.home(rm_way.vc).map(|_| rm_way));
            }
        }
        self.stages_in_all += stages.len();
        self.stages.push(stages);
        self.passed.push(all_passed);
        if self.watched != Watched::Nothing {
            self.rm_ways.push(rm_ways);
        }
    }

    /// Follows a VC from the start of a stage to its end.
    fn follow(&mut self, rules: &PathRules<'_>, start: LinkIndex, label: Label, lanes: &mut StageLanes) -> Path {
        let &PathRules { routing, rate_control, times, .. } = rules;
        let (mut link, mut at) = (self.link_of(start), label);
        let (mut lead, mut passed) = (Span(0), Vec::new());
        let mut rm_way = RmWay { vc: routing.vcs[link][label], passes: Vec::new(), end: None };
        let mut has_crossed = self.losses_before(start).is_some();
        let end = loop {
            if !std::mem::take(&mut has_crossed) {
                lead = lead + times[link].cell_time + times[link].delay;
                if let Some(number) = self.losses_on(link) {
                    break StageEnd::Port { port: self.port_of_losses(number), input: 0, label: at };
                }
            }
            if rate_control.ends(rm_way.vc, link) {
                let lane = lanes.rm(lead, true, &mut self.rm_event_lanes);
                rm_way.end = Some(RmEnd { lead, link, passed: passed.len(), lane });
            }
            if let Some(place) = rate_control.allocator_at(link, at) {
                let lane = lanes.rm(lead, false, &mut self.rm_event_lanes);
                rm_way.passes.push(RmPass { lead, place, link, lane });
            }
            let from = link;
            (link, at) = match routing.next[link][at] {
                Next::Host { vc } => {
                    let lane = lanes.frames.entry((lead, (rules.partition_of)(link)));
                    let lane = *lane.or_insert_with(|| self.lanes.push_and_get_key(None));
                    break StageEnd::Host { vc, link, lane };
                }
                Next::Port { link, label } => (link, label),
            };
            match self.roles[link] {
                Role::Transparent => passed.push(Passed { link, label: at, lead }),
                Role::Contended(port) => match self.in_memory(link) {
                    Some((memory, place)) => break self.memories[memory].stage_end(from, place, at),
                    None => break StageEnd::Port { port, input: self.upstream.input(link, from), label: at },
                },
                Role::Shaped(_) => {
                    let lane = self.lanes.push_and_get_key(Some(Place { link, label: at }));
                    break StageEnd::Shaped { lane, link: from, vc: rm_way.vc };
                }
                Role::Host(_) | Role::Pausable(_) => unreachable!("no VC enters a host through its own output port"),
            }
        };
        Path { lead, end, passed, rm_way }
    }
}

/// Everything that determines where the stages of a plan end.
struct PathRules<'a> {
    routing: &'a Routing,
    rate_control: &'a RateControl,
    times: &'a TiSlice<LinkIndex, LinkTimes>,
    /// The partition that simulates the node at the end of a link.
    partition_of: &'a dyn Fn(LinkIndex) -> u32,
}

/// A VC's path through a stage.
struct Path {
    lead: Span,
    end: StageEnd,
    passed: Vec<Passed>,
    rm_way: RmWay,
}

/// The lanes of the stages that begin at one port.
#[derive(Default)]
struct StageLanes {
    /// Lanes of frames to hosts, by lead and partition.
    frames: BTreeMap<(Span, u32), LaneIndex>,
    /// Lanes of RM events, by lead, and by whether the RM loop ends at the end of the lane.
    rm: BTreeMap<(Span, bool), RmLaneIndex>,
}

impl StageLanes {
    /// Returns the lane of RM events with this lead. `all` is the number of lanes in the plan so far.
    fn rm(&mut self, lead: Span, is_end: bool, all: &mut usize) -> RmLaneIndex {
        *self.rm.entry((lead, is_end)).or_insert_with(|| {
            *all += 1;
            RmLaneIndex::from(*all - 1)
        })
    }
}

/// Returns, by link, the memory of the link's port and the port's position in it.
fn in_memory(network: &Network) -> TiVec<LinkIndex, Option<(MemoryIndex, MemoryPlace)>> {
    let links = if network.memories.is_empty() { 0 } else { network.links.len() };
    let mut in_memory = ti_vec![None; links];
    for (number, memory) in network.memories.iter_enumerated() {
        let mut ports = memory.ports.clone();
        ports.sort_unstable();
        for (place, port) in MemoryPlace::counting().zip(ports) {
            in_memory[port] = Some((number, place));
        }
    }
    in_memory
}

fn is_transparent(
    network: &Network,
    times: &TiSlice<LinkIndex, LinkTimes>,
    link: LinkIndex,
    upstream: &[LinkIndex],
) -> bool {
    let port = &network.links[link];
    let has_other_times = |&link: &LinkIndex| network.is_on_ethernet(link) || network.changes_rate(link);
    let fed_slowly = match *upstream {
        [] => true,
        [from] => times[from].cell_time >= times[link].cell_time,
        _ => false,
    };
    fed_slowly
        && !has_other_times(&link)
        && !upstream.iter().any(has_other_times)
        && port.allocator.is_none()
        && port.buffer != Some(0)
        && port.policy.build(port.buffer, &[]).admits_up_to().is_some()
}
