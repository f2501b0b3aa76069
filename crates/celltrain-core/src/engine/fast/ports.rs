//! The contended ports of a run: the way of each, and what it is made of.

use typed_index_collections::{TiSlice, TiVec};

use super::at_once::{AtOnceIndex, AtOncePort};
use super::batching_port::BatchingPort;
use super::contended_port::ContendedPort;
use super::egress::{Egress, Hop, HopEnd};
use super::fifo::Fifo;
use super::inbox::{self, Inbox};
use super::links::{Ingress, Links, StreamIndex};
use super::output::Timing;
use super::partial_frames::{PartialFrames, ToHosts};
use super::parts::Part;
use super::plan::{NicIndex, Plan, PortIndex, Role, Stage, StageEnd};
use super::queue_port::QueuePort;
use super::stream::Stream;
use super::stream_port::StreamPort;
use super::train_ingress::TrainIngress;
use super::train_port::TrainPort;
use crate::contracts::Edge;
use crate::index::{Label, LinkIndex, VcIndex};
use crate::network::{LinkTimes, Network, Routing};
use crate::policy::formula::PortFacts;
use crate::policy::{BufferPolicy, Overflow};
use crate::rate_control::RateControl;
use crate::rng;
use crate::scheduler::Service;
use crate::sizes::size;
use crate::stop::{Interrupted, Stop, all};
use crate::tie::{ServiceOrder, TieBreaker};
use crate::units::{Clock, Span, Time};

/// Who decides in which way contended ports work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ways {
    /// The plan, by what is faster.
    #[default]
    Planned,
    /// Trains come in everywhere.
    Trains,
    /// Streams of cells come in wherever they can.
    Streams,
}

/// A port takes streams if its cells matter elsewhere no sooner than after so many cell times, since a batch would be a
/// few cells otherwise; and if as many VCs cross it, since few VCs often keep in step. A port without an
/// allocator takes them in any case if one link feeds it and all its cells go to hosts.
pub(super) const FAR: u64 = 8;
pub(super) const MANY: usize = 5;

/// What ports are made by.
pub(super) struct Making<'a> {
    pub(super) network: &'a Network,
    pub(super) routing: &'a Routing,
    pub(super) times: &'a TiSlice<LinkIndex, LinkTimes>,
    pub(super) plan: &'a Plan,
    pub(super) end: Time,
    pub(super) clock: Clock,
    /// What of the network is simulated here, if not all.
    pub(super) part: Option<Part<'a>>,
}

/// A port before the streams of others are known.
struct Draft {
    link: LinkIndex,
    policy: Box<dyn BufferPolicy>,
    queues: Option<Service>,
    timing: Timing,
}

impl Making<'_> {
    /// Builds all contended ports and the links into them. `is_looked_at`: queues are looked at during the run.
    ///
    /// # Errors
    /// When it is told to stop.
    pub(super) fn ports(
        &self,
        (ways, is_looked_at): (Ways, bool),
        rate_control: &mut RateControl,
        stop: &Stop<'_>,
    ) -> Result<Ports, Interrupted> {
        let mut links = Links::default();
        let mut taken_at_once = 0;
        let drafts: Vec<Draft> = all(self.plan.contended.iter_enumerated().map(|(port, &link)| {
            let feeders = self.plan.feeders.of(link);
            stop.steps(self.routing.vcs[link].len() + feeders.len())?;
            let draft = self.draft(link, rate_control);
            let ingress = if !self.takes_streams(&draft, ways) {
                Ingress::Trains(Box::new(TrainIngress::new(feeders.len(), draft.timing.every_cell_matters)))
            } else if !is_looked_at && self.takes_at_once(&draft) {
                taken_at_once += 1;
                Ingress::AtOnce(AtOnceIndex::from(taken_at_once - 1))
            } else {
                Ingress::Streams(links.add_streams(self.streams(&draft, port)))
            };
            links.add_port(ingress, draft.timing.least_lead);
            Ok(draft)
        }))?;
        let mut at_once = TiVec::with_capacity(taken_at_once);
        let port = |(number, draft): (PortIndex, Draft)| {
            stop.steps(self.routing.vcs[draft.link].len())?;
            Ok(match *links.ingress(number) {
                Ingress::Trains(_) => ContendedPort::Trains(self.train_port(draft, is_looked_at)),
                Ingress::Streams(first) if self.is_plain(&draft) => {
                    let (inbox, egress) = (self.inbox(&draft, first), self.egress(&draft, &links));
                    let least_lead = draft.timing.least_lead;
                    ContendedPort::Stream(StreamPort::new(inbox, self.fifo(draft, is_looked_at), egress, least_lead))
                }
                Ingress::Streams(first) => {
                    let (inbox, egress) = (self.inbox(&draft, first), self.egress(&draft, &links));
                    let timing = draft.timing;
                    ContendedPort::Queues(QueuePort::new(self.batching_port(draft), inbox, egress, timing))
                }
                Ingress::AtOnce(place) => {
                    let to_hosts = self.to_hosts(&draft);
                    at_once.push(AtOncePort { fifo: self.fifo(draft, is_looked_at), to_hosts });
                    ContendedPort::AtOnce(place)
                }
            })
        };
        let ports = all(PortIndex::counting().zip(drafts).map(port))?.into();
        Ok(Ports { ports, links, at_once })
    }

    /// By contended port: whether cells come to it in streams from other contended ports.
    ///
    /// # Errors
    /// When it is told to stop.
    pub(super) fn takes_cells(
        &self,
        ways: Ways,
        rate_control: &mut RateControl,
        stop: &Stop<'_>,
    ) -> Result<TiVec<PortIndex, bool>, Interrupted> {
        let takes = all(self.plan.contended.iter().map(|&link| {
            stop.steps(self.routing.vcs[link].len() + self.plan.feeders.of(link).len())?;
            Ok(self.takes_streams(&self.draft(link, rate_control), ways))
        }))?;
        Ok(takes.into())
    }

    fn draft(&self, link: LinkIndex, rate_control: &mut RateControl) -> Draft {
        let &Self { network, routing, .. } = self;
        let port = &network.links[link];
        let marks_above = rate_control.allocator(link).and_then(|allocator| allocator.marks_above());
        let mut policy = port.policy.build(port.buffer, &network.vc_names(routing, link));
        policy.at_port(&PortFacts::of(&port.name, port.buffer, port.rate, self.clock));
        Draft {
            link,
            policy,
            // Cells of a single queue leave in the order of their arrival, whatever the scheduler.
            queues: port.scheduler.build(&network.vc_kinds(routing, link)).filter(Service::has_a_choice),
            timing: self.timing(link, marks_above),
        }
    }

    /// The times that govern a port.
    fn timing(&self, index: LinkIndex, marks_above: Option<u32>) -> Timing {
        let &Self { network, routing, times, plan, end, .. } = self;
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
        Timing {
            cell_time,
            least_lead: leads().chain(of_rms).min().unwrap_or(cell_time),
            end,
            latest_start: Time(end.0.saturating_sub(leads().max().unwrap_or(cell_time).0)),
            // Where VCs merge, a cell that does not complete a frame does not leave.
            every_cell_matters: stages
                .iter()
                .zip(&routing.merging[index])
                .any(|(stage, merges)| !merges && matches!(stage.end, StageEnd::Port { .. })),
            serve_first: network.service_order == ServiceOrder::BeforeArrivals,
            marks_above,
            notes: network.links[index].allocator.is_some(),
        }
    }

    /// Whether a port takes streams. They gain something where single cells come or go: a contended port feeds it, or it
    /// feeds one. Elsewhere trains stay whole, and an allocator notes whole trains.
    fn takes_streams(&self, draft: &Draft, ways: Ways) -> bool {
        let Draft { link, timing, .. } = draft;
        let feeders = self.plan.feeders.of(*link);
        let can_gain = timing.every_cell_matters || feeders.iter().any(|&from| self.brings_cells(from));
        let is_far = timing.least_lead.0 >= timing.cell_time.0.saturating_mul(FAR);
        let is_crossed_by_many = self.routing.vcs[*link].len() >= MANY;
        let has_batches = is_far && is_crossed_by_many;
        let wanted = match ways {
            Ways::Planned => can_gain && (has_batches || (self.is_last_behind_one(draft) && !timing.notes)),
            Ways::Trains => false,
            Ways::Streams => true,
        };
        wanted && feeders.len() <= inbox::MOST_INPUTS
    }

    /// Whether a port is first in, first out, and a departure does nothing but add up.
    fn is_plain(&self, Draft { link, policy, queues, timing, .. }: &Draft) -> bool {
        queues.is_none()
            && !timing.notes
            && policy.overflow() != Overflow::PushOutFront
            && !policy.follows_cells()
            && !self.routing.merging[*link].contains(&true)
    }

    /// Whether one link feeds a port and all its cells go to hosts.
    fn is_last_behind_one(&self, draft: &Draft) -> bool {
        !draft.timing.every_cell_matters && self.plan.feeders.of(draft.link).len() == 1
    }

    /// Whether what comes over a link comes from a contended port, cell by cell. A transparent port has one feeder: what
    /// it brings comes from where that one begins.
    fn brings_cells(&self, link: LinkIndex) -> bool {
        matches!(self.plan.roles[self.beginning(link)], Role::Contended(_))
    }

    /// Where what comes over a link has begun its way.
    fn beginning(&self, link: LinkIndex) -> LinkIndex {
        let mut from = link;
        while let (Role::Transparent, &[feeder]) = (self.plan.roles[from], self.plan.feeders.of(from)) {
            from = feeder;
        }
        from
    }

    /// Whether what is on a link, or at its port, is simulated here.
    fn has(&self, link: LinkIndex) -> bool {
        self.part.is_none_or(|part| part.has(self.network.links[link].from))
    }

    /// Whether a port of streams can take each cell as soon as it is known that it will arrive.
    fn takes_at_once(&self, draft: &Draft) -> bool {
        let &[from] = self.plan.feeders.of(draft.link) else { return false };
        self.is_last_behind_one(draft)
            && self.is_plain(draft)
            && self.brings_cells(from)
            && self.has(self.beginning(from)) == self.has(draft.link)
    }

    /// The streams of a port, in the order of its inputs.
    fn streams(&self, Draft { link, timing, .. }: &Draft, port: PortIndex) -> impl Iterator<Item = Stream> {
        self.plan.feeders.of(*link).iter().map(move |&from| {
            if self.has(self.beginning(from)) && !self.has(*link) {
                return Stream::elsewhere(port);
            }
            Stream::new(port, !self.brings_cells(from), timing.every_cell_matters)
        })
    }

    fn draws(&self, link: LinkIndex, purpose: &str) -> rng::Stream {
        rng::Stream::new(self.network.seed, &format!("port/{}/{purpose}", self.network.links[link].name))
    }

    fn ties(&self, link: LinkIndex) -> TieBreaker {
        let &Self { network, routing, .. } = self;
        TieBreaker::new(network.tie_order, routing.inputs[network.links[link].from], self.draws(link, "ties"))
    }

    /// Numbers of the inputs of a port at its node, which decide ties.
    fn at_node(&self, link: LinkIndex) -> Vec<u32> {
        self.plan.feeders.of(link).iter().map(|&from| self.routing.input[from]).collect()
    }

    fn inbox(&self, &Draft { link, ref timing, .. }: &Draft, first: StreamIndex) -> Inbox {
        let spacing = self.plan.feeders.of(link).iter().map(|&from| self.times[from].cell_time);
        let least_spacing = spacing.min().unwrap_or(timing.cell_time);
        Inbox::new(self.ties(link), (first, self.at_node(link), least_spacing), timing.every_cell_matters)
    }

    fn fifo(&self, Draft { link, policy, timing, .. }: Draft, is_looked_at: bool) -> Fifo {
        let admission = (self.network.links[link].buffer, policy, self.draws(link, "policy"));
        let asked_at = if is_looked_at { Time::default() } else { self.end };
        Fifo::new(self.routing.vcs[link].len(), admission, timing.cell_time, (timing.serve_first, asked_at))
    }

    fn batching_port(&self, Draft { link, policy, queues, .. }: Draft) -> BatchingPort {
        let vcs = self.routing.vcs[link].len();
        BatchingPort::new(self.network.links[link].buffer, vcs, policy, self.draws(link, "policy"))
            .merging(&self.routing.merging[link])
            .scheduled(queues)
    }

    fn train_port(&self, draft: Draft, is_looked_at: bool) -> TrainPort {
        let Draft { link, timing, .. } = draft;
        let port = self.batching_port(draft);
        let is_read = is_looked_at || timing.marks_above.is_some();
        let port = if is_read { port } else { port.without_queue() };
        TrainPort::new(port, self.ties(link), self.routing.vcs[link].len(), self.at_node(link), timing)
    }

    fn to_hosts(&self, &Draft { link, ref timing, .. }: &Draft) -> ToHosts {
        let &Timing { cell_time, latest_start, .. } = timing;
        ToHosts { link, cell_time, latest_start, frames: PartialFrames::new(self.routing.vcs[link].len()) }
    }

    fn egress(&self, draft: &Draft, links: &Links) -> Egress {
        let link = draft.link;
        let hops = self.plan.stages[link].iter_enumerated();
        let hops = hops.map(|(label, stage)| self.hop(links, link, label, stage)).collect();
        Egress::new(hops, self.to_hosts(draft))
    }

    /// The next place of a VC's cells behind a port of single cells.
    fn hop(&self, links: &Links, link: LinkIndex, label: Label, stage: &Stage) -> Hop {
        let plan = self.plan;
        let is_watched = plan.marks && plan.rm_ways.get(link).is_some_and(|ways| ways[label].is_some());
        match stage.end {
            StageEnd::Port { port, input, label } => {
                let to = match links.ingress(port) {
                    Ingress::Streams(first) if !is_watched => HopEnd::Stream(first.input(input)),
                    &Ingress::AtOnce(port) if !is_watched => HopEnd::AtOnce(port),
                    _ => HopEnd::Fabric,
                };
                Hop::new(stage.lead, to, label)
            }
            StageEnd::Host { .. } | StageEnd::Shaped { .. } => Hop::new(stage.lead, HopEnd::Host, label),
        }
    }

    /// By VC, the route of its frames out of their host; none if the host's own port shapes it.
    ///
    /// # Errors
    /// When it is told to stop.
    pub(super) fn exits(&self, edge: &Edge, stop: &Stop<'_>) -> Result<TiVec<VcIndex, Option<Exit>>, Interrupted> {
        let exits = self.network.vcs.iter_enumerated().map(|(vc, of_vc)| {
            stop.step()?;
            let link = of_vc.path[0];
            Ok(match self.plan.roles[link] {
                Role::Host(nic) => {
                    Some(Exit { nic, cell_time: self.times[link].cell_time, is_policed: edge.polices_at(vc, link) })
                }
                Role::Shaped(_) => None,
                Role::Contended(_) | Role::Transparent => unreachable!("a VC starts at a host"),
            })
        });
        Ok(all(exits)?.into())
    }
}

/// The ports of a run.
pub(super) struct Ports {
    pub(super) ports: TiVec<PortIndex, ContendedPort>,
    pub(super) links: Links,
    pub(super) at_once: TiVec<AtOnceIndex, AtOncePort>,
}

/// The route of a VC's frames out of their host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exit {
    /// The host's own port.
    pub(super) nic: NicIndex,
    /// One cell's transmission there.
    pub(super) cell_time: Span,
    /// Whether cells are policed there.
    pub(super) is_policed: bool,
}

/// Memory of a VC's exit.
pub(super) const BYTES_PER_EXIT: u64 = size::<Option<Exit>>();
