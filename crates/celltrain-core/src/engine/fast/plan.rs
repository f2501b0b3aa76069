//! What can be known of a network before it runs: where cells can wait, and what lies between two such places.
//!
//! A switch port fed by one link that is no faster than its own never keeps a cell waiting: every cell leaves in the
//! instant it arrives. Such a port is *transparent*: the way through it is a delay and nothing more. What remains are the
//! hosts' own ports, whose queues follow from arithmetic ([`super::nic`]), and the *contended* ports, where cells of
//! several links meet ([`super::server`]).

use crate::cell::Label;
use crate::network::{LinkTimes, Network, Next, NodeKind, Routing};
use crate::shaping::{Place, Shaping};
use crate::stop::{Interrupted, Stop};
use crate::units::Span;

/// A port's part in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A host's own port: its number among them.
    Host(usize),
    /// A shaped port: its number among them.
    Shaped(usize),
    /// Cells can wait here: its number among such ports.
    Contended(usize),
    /// No cell ever waits here.
    Transparent,
}

/// The way of one VC's cells from where they may wait to where they may wait or end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage {
    /// From the start of a cell's transmission to its arrival at the end of the stage.
    pub(super) lead: Span,
    /// What is there.
    pub(super) end: StageEnd,
}

/// What is at the end of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StageEnd {
    /// The host at the end of the VC.
    Host {
        /// The VC.
        vc: u32,
        /// Index of the link the host receives on: deliveries of one instant go by it.
        link: u32,
        /// Number of the lane that carries frames from this port over this lead.
        lane: u32,
    },
    /// A shaped port, which takes whole packets.
    Shaped {
        /// Number of the lane that carries packets from this port.
        lane: u32,
        /// Index of the link they come in on.
        link: u32,
        /// The VC.
        vc: u32,
    },
    /// A contended port.
    Port {
        /// Its number among contended ports.
        server: u32,
        /// Number of the input at its node.
        input: u32,
        /// The VC's label on its link.
        label: Label,
    },
}

/// Where a VC's frames leave their host, all in one place: frames of many VCs take turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// Number of the host's port.
    pub(super) nic: u32,
    /// One cell's transmission there.
    pub(super) cell_time: Span,
}

/// A transparent port on the way of a VC.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    /// Index of its link.
    pub(super) link: usize,
    /// The VC's label there.
    pub(super) label: Label,
    /// From the start of transmission at the stage's beginning to the arrival here.
    pub(super) lead: Span,
}

/// The way of one VC's RM cells through a stage.
#[derive(Clone, Debug)]
pub(super) struct RmWay {
    /// The VC.
    pub(super) vc: u32,
    /// The switches whose allocators write into backward ones.
    pub(super) passes: Vec<RmPass>,
    /// The end of their loop, if it is on the way.
    pub(super) end: Option<RmEnd>,
}

/// A switch where RM cells are written into.
#[derive(Clone, Copy, Debug)]
pub(super) struct RmPass {
    /// From the start of transmission at the stage's beginning to the arrival here.
    pub(super) lead: Span,
    /// The place of the allocator that does.
    pub(super) place: Place,
    /// Index of the link they come in on.
    pub(super) link: u32,
    /// Number of the errand lane.
    pub(super) lane: u32,
}

/// Where RM cells leave their VC.
#[derive(Clone, Copy, Debug)]
pub(super) struct RmEnd {
    /// From the start of transmission at the stage's beginning to the arrival here.
    pub(super) lead: Span,
    /// Index of the link they come in on.
    pub(super) link: u32,
    /// How many transparent ports they have passed.
    pub(super) passed: usize,
    /// Number of the errand lane.
    pub(super) lane: u32,
}

/// Everything known beforehand.
pub(super) struct Plan {
    /// By link.
    pub(super) roles: Vec<Role>,
    /// Links of the hosts' ports, by number.
    pub(super) hosts: Vec<usize>,
    /// Links of the contended ports, by number.
    pub(super) contended: Vec<usize>,
    /// Links of the shaped ports, by number.
    pub(super) shaped: Vec<usize>,
    /// By link and label; empty for transparent ports.
    pub(super) stages: Vec<Vec<Stage>>,
    /// By link and label: the transparent ports on the stage's way.
    pub(super) passed: Vec<Vec<Vec<Passed>>>,
    /// Whether any VC's rate is controlled.
    pub(super) controls: bool,
    /// Whether any port marks cells.
    pub(super) marks: bool,
    /// By link and label: the way of RM cells, where there are some.
    pub(super) rm_ways: Vec<Vec<Option<RmWay>>>,
    /// Of each lane: the place its packets go to, if that is a shaped port.
    pub(super) lanes: Vec<Option<Place>>,
    /// Errand lanes: what RM cells from one port do after one lead.
    pub(super) errand_lanes: usize,
    /// Propagation by link.
    pub(super) delays: Vec<Span>,
    /// By VC; none where the host's own port shapes it.
    pub(super) ways: Vec<Option<Way>>,
}

impl Plan {
    pub(super) fn new(
        network: &Network,
        routing: &Routing,
        shaping: &Shaping,
        times: &[LinkTimes],
        stop: &Stop<'_>,
    ) -> Result<Self, Interrupted> {
        let mut plan = Plan {
            roles: Vec::with_capacity(network.links.len()),
            hosts: Vec::new(),
            contended: Vec::new(),
            shaped: Vec::new(),
            stages: Vec::with_capacity(network.links.len()),
            passed: Vec::with_capacity(network.links.len()),
            controls: network.vcs.iter().any(|vc| vc.abr.is_some()),
            marks: (0..network.links.len()).any(|link| shaping.marks(index(link))),
            rm_ways: Vec::with_capacity(network.links.len()),
            lanes: Vec::new(),
            errand_lanes: 0,
            delays: times.iter().map(|times| times.delay).collect(),
            ways: Vec::with_capacity(network.vcs.len()),
        };
        let feeders = feeders(network, stop)?;
        for (link, feeder) in feeders.iter().enumerate() {
            stop.steps(routing.merging[link].len())?;
            let role = if shaping.port(index(link)).is_some() {
                plan.shaped.push(link);
                Role::Shaped(plan.shaped.len() - 1)
            } else if network.nodes[network.links[link].from].kind == NodeKind::Host {
                plan.hosts.push(link);
                Role::Host(plan.hosts.len() - 1)
            } else if !routing.merging[link].contains(&true) && is_transparent(network, times, link, feeder) {
                Role::Transparent
            } else {
                plan.contended.push(link);
                Role::Contended(plan.contended.len() - 1)
            };
            plan.roles.push(role);
        }
        for link in 0..network.links.len() {
            let (stages, passed, rm_ways) = match plan.roles[link] {
                Role::Transparent => (Vec::new(), Vec::new(), Vec::new()),
                Role::Host(_) | Role::Shaped(_) | Role::Contended(_) => {
                    plan.stages_of(routing, shaping, times, link, stop)?
                }
            };
            plan.stages.push(stages);
            plan.passed.push(passed);
            plan.rm_ways.push(rm_ways);
        }
        for vc in stop.each(&network.vcs) {
            let link = vc?.path[0];
            let of_host = |nic| Way { nic: index(nic), cell_time: times[link].cell_time };
            plan.ways.push(match plan.roles[link] {
                Role::Host(nic) => Some(of_host(nic)),
                Role::Shaped(_) => None,
                Role::Contended(_) | Role::Transparent => unreachable!("a VC starts at a host"),
            });
        }
        Ok(plan)
    }

    /// The stages that begin at a port, by label, and the transparent ports on their ways. Frames that go to hosts over
    /// the same lead share a lane.
    fn stages_of(
        &mut self,
        routing: &Routing,
        shaping: &Shaping,
        times: &[LinkTimes],
        start: usize,
        stop: &Stop<'_>,
    ) -> Result<Stages, Interrupted> {
        let mut lanes: Vec<(Span, u32)> = Vec::new();
        // By lead, and whether they end there.
        let mut errand_lanes: Vec<((Span, bool), u32)> = Vec::new();
        let all_errand_lanes = &mut self.errand_lanes;
        let mut errand_lane = |of: (Span, bool)| {
            let known = errand_lanes.iter().find(|lane| lane.0 == of).map(|lane| lane.1);
            known.unwrap_or_else(|| {
                errand_lanes.push((of, index(*all_errand_lanes)));
                *all_errand_lanes += 1;
                index(*all_errand_lanes - 1)
            })
        };
        let mut stages = Vec::with_capacity(routing.next[start].len());
        let mut ways = Vec::with_capacity(routing.next[start].len());
        let mut rm_ways = Vec::with_capacity(routing.next[start].len());
        for label in 0..routing.next[start].len() {
            let (mut link, mut at) = (start, label);
            let mut lead = Span(0);
            let mut passed = Vec::new();
            let vc = routing.vcs[start][label];
            let mut rm_way = RmWay { vc, passes: Vec::new(), end: None };
            let end = loop {
                stop.steps(lanes.len() + 1)?;
                lead = lead + times[link].cell_time + times[link].delay;
                if shaping.ends(vc, index(link)) {
                    let lane = errand_lane((lead, true));
                    rm_way.end = Some(RmEnd { lead, link: index(link), passed: passed.len(), lane });
                }
                rm_way.passes.extend(shaping.pass(index(link), index(at)).map(|place| {
                    let lane = errand_lane((lead, false));
                    RmPass { lead, place, link: index(link), lane }
                }));
                match routing.next[link][at] {
                    Next::Host { vc } => {
                        let known = lanes.iter().find(|lane| lane.0 == lead).map(|lane| lane.1);
                        let lane = known.unwrap_or_else(|| {
                            lanes.push((lead, index(self.lanes.len())));
                            self.lanes.push(None);
                            index(self.lanes.len() - 1)
                        });
                        break StageEnd::Host { vc, link: index(link), lane };
                    }
                    Next::Port { link: next, label } => {
                        let input = routing.input[link];
                        let came_in = link;
                        link = next as usize;
                        at = label as usize;
                        match self.roles[link] {
                            Role::Transparent => passed.push(Passed { link, label, lead }),
                            Role::Contended(server) => break StageEnd::Port { server: index(server), input, label },
                            Role::Shaped(_) => {
                                self.lanes.push(Some(Place { link: next, label }));
                                let lane = index(self.lanes.len() - 1);
                                break StageEnd::Shaped { lane, link: index(came_in), vc };
                            }
                            Role::Host(_) => unreachable!("no VC enters a host's own port"),
                        }
                    }
                }
            };
            stages.push(Stage { lead, end });
            ways.push(passed);
            rm_ways.push(shaping.home(vc as usize).map(|_| rm_way));
        }
        Ok((stages, ways, rm_ways))
    }
}

/// Stages by label, the transparent ports on their ways, and the ways of RM cells through them.
type Stages = (Vec<Stage>, Vec<Vec<Passed>>, Vec<Option<RmWay>>);

fn index(i: usize) -> u32 {
    u32::try_from(i).expect("indices fit 32 bits")
}

/// Which link feeds a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feeder {
    /// No VC crosses it.
    None,
    /// All its VCs come from this link.
    One(usize),
    /// They come from several.
    Several,
}

fn feeders(network: &Network, stop: &Stop<'_>) -> Result<Vec<Feeder>, Interrupted> {
    let mut feeders = vec![Feeder::None; network.links.len()];
    for hop in stop.each(network.vcs.iter().flat_map(|vc| vc.path.windows(2))) {
        let hop = hop?;
        let feeder = &mut feeders[hop[1]];
        *feeder = match *feeder {
            Feeder::None => Feeder::One(hop[0]),
            Feeder::One(link) if link == hop[0] => Feeder::One(link),
            Feeder::One(_) | Feeder::Several => Feeder::Several,
        };
    }
    Ok(feeders)
}

fn is_transparent(network: &Network, times: &[LinkTimes], link: usize, feeder: &Feeder) -> bool {
    let port = &network.links[link];
    let fed_slowly = match *feeder {
        Feeder::None => true,
        Feeder::One(from) => times[from].cell_time >= times[link].cell_time,
        Feeder::Several => false,
    };
    fed_slowly
        && port.allocator.is_none()
        && port.buffer != Some(0)
        && port.policy.build(port.buffer, &[]).admits_when_empty()
}
