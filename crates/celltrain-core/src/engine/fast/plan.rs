//! The plan of a network, made before it runs: the places where cells can wait, and the stages between them.
//!
//! A switch port is *transparent* if no cell ever waits there: every cell leaves in the instant it arrives, and the
//! port is only a delay. That holds if a single link feeds it that is not faster than its own, no VCs merge there, it
//! has no allocator, its buffer has a place, and its policy admits everything that finds it empty. All other ports are
//! hosts' own ports, whose queues follow from arithmetic ([`super::nic`]), *shaped* ports ([`crate::shaped_port`]) or
//! *contended* ports ([`super::contended_port`]).
//!
//! A *stage* is the way of a VC from one of these to the next, or to its host. Its *lead* is the time from the start of
//! a cell's transmission to the arrival at the end. A *lane* is a queue of frames on their way: from one port over one
//! lead to hosts, or of one VC to a shaped port.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

use typed_index_collections::{TiSlice, TiVec};

use crate::index::{Label, LinkIndex, NodeIndex, VcIndex, indices};
use crate::network::{LinkTimes, Network, Next, NodeKind, Routing};
use crate::rate_control::{Place, RateControl};
use crate::units::Span;
use crate::upstream::UpstreamLinks;

indices! {
    /// A host's own port.
    NicIndex;

    /// A shaped port.
    ShapedIndex;

    /// A contended port.
    PortIndex;

    /// A lane: a queue of frames on their way.
    LaneIndex;

    /// A queue of RM events: those of RM cells from one port after one lead.
    RmLaneIndex;
}

/// The role of a port in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A host's own port.
    Host(NicIndex),
    /// A shaped port.
    Shaped(ShapedIndex),
    /// Cells can wait here.
    Contended(PortIndex),
    /// No cell ever waits here.
    Transparent,
}

/// The way of one VC's cells from a place where they may wait to the next such place, or to their end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage {
    /// Time from the start of a cell's transmission to its arrival at the end of the stage.
    pub(super) lead: Span,
    /// The place at its end.
    pub(super) end: StageEnd,
}

/// The end of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StageEnd {
    /// The host at the end of the VC.
    Host {
        /// The VC.
        vc: VcIndex,
        /// Index of the link the host receives on: deliveries of one instant go by it.
        link: LinkIndex,
        /// The lane that carries frames from this port over this lead.
        lane: LaneIndex,
    },
    /// A shaped port, which takes whole packets.
    Shaped {
        /// The lane that carries packets from this port.
        lane: LaneIndex,
        /// Index of the link they come in on.
        link: LinkIndex,
        /// The VC.
        vc: VcIndex,
    },
    /// A contended port.
    Port {
        /// The port.
        port: PortIndex,
        /// Number of the input among those of the port.
        input: u32,
        /// The VC's label on its link.
        label: Label,
    },
}

/// A transparent port on the way of a VC.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    /// Index of its link.
    pub(super) link: LinkIndex,
    /// The VC's label there.
    pub(super) label: Label,
    /// Time from the start of transmission at the stage's beginning to the arrival here.
    pub(super) lead: Span,
}

/// The transparent ports on the ways of the stages that begin at one port.
#[derive(Clone, Debug, Default)]
pub(super) struct PassedPorts {
    /// Row offsets into `passed`, one per label, plus a final end offset. Empty at a port where no stage begins.
    first: Vec<u32>,
    passed: Vec<Passed>,
}

impl PassedPorts {
    fn new(vcs: usize) -> Self {
        let mut first = Vec::with_capacity(vcs + 1);
        first.push(0);
        Self { first, passed: Vec::new() }
    }

    /// Ends the way of a label: it has the ports added since the last call.
    fn end_way(&mut self) {
        self.first.push(index(self.passed.len()));
    }

    /// Returns how many ports were added since the last way ended.
    fn under_way(&self) -> usize {
        self.passed.len() - self.first.last().map_or(0, |&first| first as usize)
    }

    /// Returns the ports on the way of the stage with this label, in order.
    pub(super) fn of(&self, label: Label) -> &[Passed] {
        let label = usize::from(label);
        &self.passed[self.first[label] as usize..self.first[label + 1] as usize]
    }

    /// Creates a row with a place for each port, and one for the end of each way.
    pub(super) fn row(&self) -> Vec<u64> {
        vec![0; self.passed.len() + self.first.len().saturating_sub(1)]
    }

    /// Returns the places of one way in such a row.
    pub(super) fn places(&self, label: Label) -> Range<usize> {
        let label = usize::from(label);
        self.first[label] as usize + label..self.first[label + 1] as usize + label + 1
    }
}

/// The way of one VC's RM cells through a stage.
#[derive(Clone, Debug)]
pub(super) struct RmWay {
    /// The VC.
    pub(super) vc: VcIndex,
    /// The switches whose allocators write into backward RM cells.
    pub(super) passes: Vec<RmPass>,
    /// The end of their loop, if it is on the way.
    pub(super) end: Option<RmEnd>,
}

/// A switch that writes into RM cells.
#[derive(Clone, Copy, Debug)]
pub(super) struct RmPass {
    /// Time from the start of transmission at the stage's beginning to the arrival here.
    pub(super) lead: Span,
    /// The place of its allocator.
    pub(super) place: Place,
    /// Index of the link they come in on.
    pub(super) link: LinkIndex,
    /// The RM event lane.
    pub(super) lane: RmLaneIndex,
}

/// The place at which RM cells leave their VC.
#[derive(Clone, Copy, Debug)]
pub(super) struct RmEnd {
    /// Time from the start of transmission at the stage's beginning to the arrival here.
    pub(super) lead: Span,
    /// Index of the link they come in on.
    pub(super) link: LinkIndex,
    /// Number of transparent ports they have passed.
    pub(super) passed: usize,
    /// The RM event lane.
    pub(super) lane: RmLaneIndex,
}

/// The plan of a run.
pub(super) struct Plan {
    /// By link.
    pub(super) roles: TiVec<LinkIndex, Role>,
    /// The links that feed each port.
    pub(super) upstream: UpstreamLinks,
    /// Links of the hosts' ports.
    pub(super) hosts: TiVec<NicIndex, LinkIndex>,
    /// Links of the contended ports.
    pub(super) contended: TiVec<PortIndex, LinkIndex>,
    /// Links of the shaped ports.
    pub(super) shaped: TiVec<ShapedIndex, LinkIndex>,
    /// By link and label; empty for transparent ports.
    pub(super) stages: TiVec<LinkIndex, TiVec<Label, Stage>>,
    /// By link: the transparent ports on the ways of its stages.
    pub(super) passed: TiVec<LinkIndex, PassedPorts>,
    /// True if any VC's rate is controlled.
    pub(super) controls: bool,
    /// True if any port marks cells.
    pub(super) marks: bool,
    /// By link and label: the way of RM cells, if there are any; empty if no rate is controlled.
    pub(super) rm_ways: TiVec<LinkIndex, TiVec<Label, Option<RmWay>>>,
    /// By lane: the place its packets go to, if that is a shaped port.
    pub(super) lanes: TiVec<LaneIndex, Option<Place>>,
    /// Number of lanes of RM events, one for RM cells from one port after one lead.
    pub(super) rm_event_lanes: usize,
    /// Propagation by link.
    pub(super) delays: TiVec<LinkIndex, Span>,
}

impl Plan {
    /// Creates the plan of a network. `partition_of`: the partition that simulates a node, 0 if there is only one. The
    /// ports of `traced` count as contended, because a transparent port does not know when cells pass it.
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
            shaped: TiVec::new(),
            stages: TiVec::with_capacity(network.links.len()),
            passed: TiVec::with_capacity(network.links.len()),
            controls: network.vcs.iter().any(|vc| vc.abr.is_some()),
            marks: network.links.keys().any(|link| rate_control.marks(link)),
            rm_ways: TiVec::with_capacity(network.links.len()),
            lanes: TiVec::new(),
            rm_event_lanes: 0,
            delays: times.iter().map(|times| times.delay).collect(),
        };
        for link in network.links.keys() {
            let role = if rate_control.port(link).is_some() {
                plan.shaped.push(link);
                Role::Shaped(ShapedIndex::from(plan.shaped.len() - 1))
            } else if network.nodes[network.links[link].from].kind == NodeKind::Host {
                plan.hosts.push(link);
                Role::Host(NicIndex::from(plan.hosts.len() - 1))
            } else if !routing.merging[link].contains(&true)
                && is_transparent(network, times, link, plan.upstream.of(link))
                && !traced.contains(&link)
            {
                Role::Transparent
            } else {
                plan.contended.push(link);
                Role::Contended(PortIndex::from(plan.contended.len() - 1))
            };
            plan.roles.push(role);
        }
        for link in network.links.keys() {
            let (stages, passed, rm_ways) = match plan.roles[link] {
                Role::Transparent => (TiVec::new(), PassedPorts::default(), TiVec::new()),
                Role::Host(_) | Role::Shaped(_) | Role::Contended(_) => {
                    plan.stages_of(routing, rate_control, times, link, &partition_of)
                }
            };
            plan.stages.push(stages);
            plan.passed.push(passed);
            if plan.controls {
                plan.rm_ways.push(rm_ways);
            }
        }
        plan
    }

    /// Returns the stages that begin at a port, by label, and the transparent ports on their ways. Frames that go to
    /// hosts over the same lead share a lane.
    fn stages_of(
        &mut self,
        routing: &Routing,
        rate_control: &RateControl,
        times: &TiSlice<LinkIndex, LinkTimes>,
        start: LinkIndex,
        partition_of: &impl Fn(LinkIndex) -> u32,
    ) -> Stages {
        let mut lanes: BTreeMap<(Span, u32), LaneIndex> = BTreeMap::new();
        // By lead, and whether they end there.
        let mut rm_event_lanes: BTreeMap<(Span, bool), RmLaneIndex> = BTreeMap::new();
        let all_rm_event_lanes = &mut self.rm_event_lanes;
        let mut rm_event_lane = |of: (Span, bool)| {
            *rm_event_lanes.entry(of).or_insert_with(|| {
                *all_rm_event_lanes += 1;
                RmLaneIndex::from(*all_rm_event_lanes - 1)
            })
        };
        let mut stages = TiVec::with_capacity(routing.next[start].len());
        let mut passed_ports = PassedPorts::new(routing.next[start].len());
        let mut rm_ways = TiVec::with_capacity(if self.controls { routing.next[start].len() } else { 0 });
        for label in routing.next[start].keys() {
            let (mut link, mut at) = (start, label);
            let mut lead = Span(0);
            let vc = routing.vcs[start][label];
            let mut rm_way = RmWay { vc, passes: Vec::new(), end: None };
            let end = loop {
                lead = lead + times[link].cell_time + times[link].delay;
                if rate_control.ends(vc, link) {
                    let lane = rm_event_lane((lead, true));
                    rm_way.end = Some(RmEnd { lead, link, passed: passed_ports.under_way(), lane });
                }
                rm_way.passes.extend(rate_control.allocator_at(link, at).map(|place| {
                    let lane = rm_event_lane((lead, false));
                    RmPass { lead, place, link, lane }
                }));
                match routing.next[link][at] {
                    Next::Host { vc } => {
                        let lane = match lanes.entry((lead, partition_of(link))) {
                            Entry::Occupied(lane) => *lane.get(),
                            Entry::Vacant(lane) => {
                                self.lanes.push(None);
                                *lane.insert(LaneIndex::from(self.lanes.len() - 1))
                            }
                        };
                        break StageEnd::Host { vc, link, lane };
                    }
                    Next::Port { link: next, label } => {
                        let came_in = link;
                        link = next;
                        at = label;
                        match self.roles[link] {
                            Role::Transparent => passed_ports.passed.push(Passed { link, label, lead }),
                            Role::Contended(port) => {
                                let input = self.upstream.input(link, came_in);
                                break StageEnd::Port { port, input, label };
                            }
                            Role::Shaped(_) => {
                                self.lanes.push(Some(Place { link: next, label }));
                                let lane = LaneIndex::from(self.lanes.len() - 1);
                                break StageEnd::Shaped { lane, link: came_in, vc };
                            }
                            Role::Host(_) => unreachable!("no VC enters a host's own port"),
                        }
                    }
                }
            };
            stages.push(Stage { lead, end });
            passed_ports.end_way();
            if self.controls {
                rm_ways.push(rate_control.home(vc).map(|_| rm_way));
            }
        }
        (stages, passed_ports, rm_ways)
    }
}

/// Stages by label, the transparent ports on their ways, and the ways of RM cells through them.
type Stages = (TiVec<Label, Stage>, PassedPorts, TiVec<Label, Option<RmWay>>);

fn index(i: usize) -> u32 {
    u32::try_from(i).expect("indices fit 32 bits")
}

fn is_transparent(
    network: &Network,
    times: &TiSlice<LinkIndex, LinkTimes>,
    link: LinkIndex,
    upstream: &[LinkIndex],
) -> bool {
    let port = &network.links[link];
    let fed_slowly = match *upstream {
        [] => true,
        [from] => times[from].cell_time >= times[link].cell_time,
        _ => false,
    };
    fed_slowly
        && port.allocator.is_none()
        && port.buffer != Some(0)
        && port.policy.build(port.buffer, &[]).admits_up_to().is_some()
}
