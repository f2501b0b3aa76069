//! Builds the contended ports of a run and the links into them, as [`super::port_plan`] decides.

use typed_index_collections::TiVec;

use super::batching_port::BatchingPort;
use super::contended_port::{AtOnceIndex, AtOncePort, ContendedPort, QueuePort, StreamPort};
use super::egress::{Egress, Hop, HopEnd, PartialFrames, ToHosts};
use super::fifo::{Fifo, FifoOptions};
use super::ingress::CellIngress;
use super::links::{Ingress, Links, Stream};
use super::output::Timing;
use super::plan::{NicIndex, PortIndex, Role, Stage, StageEnd};
use super::port_plan::{Arrivals, PortBuilder, PortInfo, PortMode, PortOptions, PortPlan, Reason, TrainPlan};
use super::train::TrainIngress;
use super::train_port::TrainPort;
use crate::cancellation::{CancellationToken, Interrupted, all};
use crate::contracts::Edge;
use crate::index::{Label, LinkIndex, VcIndex};
use crate::network::Vc;
use crate::policy::{BufferPolicy, formula};
use crate::rate_control::RateControl;
use crate::rng;
use crate::scheduler::Service;
use crate::tie::{ServiceOrder, TieBreaker};
use crate::units::{Span, Time};

/// A port before the streams of the others are known.
struct Draft {
    link: LinkIndex,
    timing: Timing,
    reason: Reason,
    body: Body,
}

/// The buffer of a port, by its code.
enum Body {
    Trains(BatchingPort, TrainPlan),
    Stream(Fifo),
    Queues(BatchingPort),
    AtOnce(Fifo),
}

impl PortBuilder<'_> {
    /// Builds all contended ports and the links into them.
    ///
    /// # Errors
    /// If it is interrupted.
    pub(super) fn ports(
        &self,
        options: PortOptions,
        rate_control: &mut RateControl,
        token: &CancellationToken<'_>,
    ) -> Result<PortSet, Interrupted> {
        let mut links = Links::default();
        let mut taken_at_once = 0;
        let drafts: Vec<Draft> = all(self.plan.contended.iter_enumerated().map(|(port, &link)| {
            let upstream = self.plan.upstream.of(link);
            token.tick(self.routing.vcs[link].len() + upstream.len())?;
            let draft = self.draft(link, options, rate_control);
            let ingress = match draft.body {
                Body::Trains(..) => {
                    Ingress::Trains(Box::new(TrainIngress::new(upstream.len(), draft.timing.every_cell_matters)))
                }
                Body::Stream(_) | Body::Queues(_) => Ingress::Streams(links.add_streams(self.streams(&draft, port))),
                Body::AtOnce(_) => {
                    taken_at_once += 1;
                    Ingress::AtOnce(AtOnceIndex::from(taken_at_once - 1))
                }
            };
            links.add_port(ingress, draft.timing.least_lead);
            Ok(draft)
        }))?;
        let mut at_once = TiVec::with_capacity(taken_at_once);
        let mut plans = TiVec::with_capacity(drafts.len());
        let port = |(number, draft): (PortIndex, Draft)| {
            let Draft { link, timing, reason, body } = draft;
            let (plan, port) = match body {
                Body::Trains(port, plan) => {
                    let vcs = self.routing.vcs[link].len();
                    let port = TrainPort::new(port, self.ties(link), vcs, self.at_node(link), timing, plan);
                    (PortPlan::Trains(plan), ContendedPort::Trains(port))
                }
                Body::Stream(fifo) => {
                    let (ingress, egress) =
                        (self.ingress(link, &timing, number, &links), self.egress(link, &timing, &links));
                    let port = StreamPort::new(ingress, fifo, egress, timing.longest_lead);
                    (PortPlan::Stream, ContendedPort::Stream(port))
                }
                Body::Queues(port) => {
                    let (ingress, egress) =
                        (self.ingress(link, &timing, number, &links), self.egress(link, &timing, &links));
                    (PortPlan::Queues, ContendedPort::Queues(QueuePort::new(port, ingress, egress, timing)))
                }
                Body::AtOnce(fifo) => {
                    let (to_hosts, longest_lead) = (self.to_hosts(link, &timing), timing.longest_lead);
                    at_once.push(AtOncePort { fifo, to_hosts, longest_lead });
                    (PortPlan::AtOnce, ContendedPort::AtOnce(AtOnceIndex::from(at_once.len() - 1)))
                }
            };
            plans.push((plan, reason));
            port
        };
        let ports = PortIndex::counting().zip(drafts).map(port).collect();
        Ok(PortSet { ports, links, at_once, plans })
    }

    /// Returns, by contended port, whether cells come to it in streams from other contended ports.
    ///
    /// # Errors
    /// If it is interrupted.
    pub(super) fn takes_cells(
        &self,
        mode: PortMode,
        rate_control: &mut RateControl,
        token: &CancellationToken<'_>,
    ) -> Result<TiVec<PortIndex, bool>, Interrupted> {
        let takes = all(self.plan.contended.iter().map(|&link| {
            token.tick(self.routing.vcs[link].len() + self.plan.upstream.of(link).len())?;
            let options = PortOptions { mode, is_looked_at: false };
            Ok(!matches!(self.draft(link, options, rate_control).body, Body::Trains(..)))
        }))?;
        Ok(takes.into())
    }

    fn draft(&self, link: LinkIndex, options: PortOptions, rate_control: &mut RateControl) -> Draft {
        let &Self { network, routing, .. } = self;
        let is_looked_at = options.is_looked_at;
        let port = &network.links[link];
        let marks_above = rate_control.allocator(link).and_then(|allocator| allocator.marks_above());
        let mut policy = port.policy.build(port.buffer, &network.vc_names(routing, link));
        policy.at_port(&formula::PortInfo::of(&port.name, port.buffer, port.rate, self.clock));
        // Cells of a single queue leave in the order of their arrival, whatever the scheduler.
        let queues = port.scheduler.build(&network.vc_kinds(routing, link)).filter(Service::has_a_choice);
        let timing = self.timing(link, marks_above);
        let port_info = PortInfo {
            link,
            overflow: policy.overflow(),
            follows_cells: policy.follower().is_some(),
            queues: queues.as_ref(),
            timing: &timing,
            is_looked_at,
        };
        let (arrivals, reason) = self.arrivals(&port_info, options.mode);
        let body = match arrivals {
            Arrivals::Trains => {
                let port = self.batching_port(link, policy, queues);
                let is_read = is_looked_at || timing.marks_above.is_some();
                let port = if is_read { port } else { port.without_queue() };
                let plan = TrainPlan::of(&port, &timing);
                Body::Trains(port, plan)
            }
            Arrivals::CellsAtOnce => Body::AtOnce(self.fifo(link, policy, &timing, is_looked_at)),
            Arrivals::Cells if Self::is_plain(&port_info, self.merges(link)) => {
                Body::Stream(self.fifo(link, policy, &timing, is_looked_at))
            }
            Arrivals::Cells => Body::Queues(self.batching_port(link, policy, queues)),
        };
        Draft { link, timing, reason, body }
    }

    /// Returns the times that govern a port.
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
        let longest_lead = leads().max().unwrap_or(cell_time);
        Timing {
            cell_time,
            least_lead: leads().chain(of_rms).min().unwrap_or(cell_time),
            longest_lead,
            latest_start: Time(end.0.saturating_sub(longest_lead.0)),
            horizon: end,
            end,
            // A cell of merging VCs that does not complete a frame does not leave.
            every_cell_matters: stages
                .iter()
                .zip(&routing.merging[index])
                .any(|(stage, merges)| !merges && matches!(stage.end, StageEnd::Port { .. })),
            serve_first: network.service_order == ServiceOrder::BeforeArrivals,
            marks_above,
            notes: network.links[index].allocator.is_some(),
        }
    }

    /// Returns the streams of a port, in the order of its inputs.
    fn streams(&self, Draft { link, timing, .. }: &Draft, port: PortIndex) -> impl Iterator<Item = Stream> {
        self.plan.upstream.of(*link).iter().map(move |&from| {
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

    /// Returns the numbers of a port's inputs at its node, which decide ties.
    fn at_node(&self, link: LinkIndex) -> Vec<u32> {
        self.plan.upstream.of(link).iter().map(|&from| self.routing.input[from]).collect()
    }

    fn ingress(&self, link: LinkIndex, timing: &Timing, port: PortIndex, links: &Links) -> CellIngress {
        let &Ingress::Streams(first) = links.ingress(port) else { unreachable!("it takes streams") };
        let spacing = self.plan.upstream.of(link).iter().map(|&from| self.times[from].cell_time);
        let least_spacing = spacing.min().unwrap_or(timing.cell_time);
        CellIngress::new(self.ties(link), first, self.at_node(link), least_spacing, timing.every_cell_matters)
    }

    fn fifo(&self, link: LinkIndex, policy: Box<dyn BufferPolicy>, timing: &Timing, is_looked_at: bool) -> Fifo {
        let options = FifoOptions { cell_time: timing.cell_time, serves_first: timing.serve_first, is_looked_at };
        let (vcs, capacity) = (self.routing.vcs[link].len(), self.network.links[link].buffer);
        let mut fifo = Fifo::new(vcs, capacity, policy, self.draws(link, "policy"), options);
        fifo.ask_at(timing.horizon);
        fifo
    }

    fn batching_port(&self, link: LinkIndex, policy: Box<dyn BufferPolicy>, queues: Option<Service>) -> BatchingPort {
        let vcs = self.routing.vcs[link].len();
        BatchingPort::new(self.network.links[link].buffer, vcs, policy, self.draws(link, "policy"))
            .merging(&self.routing.merging[link])
            .scheduled(queues)
    }

    fn to_hosts(&self, link: LinkIndex, timing: &Timing) -> ToHosts {
        let &Timing { cell_time, latest_start, .. } = timing;
        ToHosts { link, cell_time, latest_start, frames: PartialFrames::new(self.routing.vcs[link].len()) }
    }

    fn egress(&self, link: LinkIndex, timing: &Timing, links: &Links) -> Egress {
        let hops = self.plan.stages[link].iter_enumerated();
        let hops = hops.map(|(label, stage)| self.hop(links, link, label, stage)).collect();
        Egress::new(hops, self.to_hosts(link, timing))
    }

    /// Returns the next place of a VC's cells behind a port of single cells.
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

    /// Returns, by VC, the route of its frames out of their host; `None` if the host's own port shapes it.
    pub(super) fn exits(&self, edge: &Edge) -> TiVec<VcIndex, Option<Exit>> {
        let exit = |(vc, of_vc): (VcIndex, &Vc)| {
            let link = of_vc.path[0];
            match self.plan.roles[link] {
                Role::Host(nic) => {
                    Some(Exit { nic, cell_time: self.times[link].cell_time, is_policed: edge.polices_at(vc, link) })
                }
                Role::Shaped(_) => None,
                Role::Contended(_) | Role::Transparent => unreachable!("a VC starts at a host"),
            }
        };
        self.network.vcs.iter_enumerated().map(exit).collect()
    }
}

/// The ports of a run.
pub(super) struct PortSet {
    pub(super) ports: TiVec<PortIndex, ContendedPort>,
    pub(super) links: Links,
    pub(super) at_once: TiVec<AtOnceIndex, AtOncePort>,
    /// The code of each port, and the reason for it.
    pub(super) plans: TiVec<PortIndex, (PortPlan, Reason)>,
}

/// The route of a VC's frames out of their host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exit {
    /// The host's own port.
    pub(super) nic: NicIndex,
    /// One cell's transmission there.
    pub(super) cell_time: Span,
    /// True if cells are policed there.
    pub(super) is_policed: bool,
}
