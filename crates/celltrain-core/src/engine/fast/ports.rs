//! The contended ports of a run: the way of each, and what it is made of.

use typed_index_collections::TiSlice;

use super::batching_port::BatchingPort;
use super::contended_port::ContendedPort;
use super::fifo::Fifo;
use super::inbox::{self, Inbox};
use super::index;
use super::outlet::{Hop, Outlet};
use super::output::Timing;
use super::parts::Part;
use super::plan::{Plan, Role, Stage, StageEnd};
use super::queue_port::QueuePort;
use super::stream::{Stream, Streams};
use super::stream_port::StreamPort;
use super::train_port::TrainPort;
use crate::index::{Label, LinkIndex};
use crate::network::{LinkTimes, Network, Routing};
use crate::policy::formula::PortFacts;
use crate::policy::{BufferPolicy, Overflow};
use crate::rate_control::RateControl;
use crate::rng;
use crate::scheduler::Service;
use crate::stop::{Interrupted, Stop, all};
use crate::tie::{ServiceOrder, TieBreaker};
use crate::units::{Clock, Time};

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

/// A port before it is known where the streams of others begin.
struct Draft {
    link: LinkIndex,
    policy: Box<dyn BufferPolicy>,
    queues: Option<Service>,
    timing: Timing,
    /// The place of the first of its streams, if it takes streams.
    first_stream: Option<usize>,
}

impl Making<'_> {
    /// All contended ports, and what comes in at those that take streams: port by port, each port's in the order of its
    /// inputs. `is_looked_at`: queues are looked at during the run.
    ///
    /// # Errors
    /// When it is told to stop.
    pub(super) fn ports(
        &self,
        (ways, is_looked_at): (Ways, bool),
        rate_control: &mut RateControl,
        stop: &Stop<'_>,
    ) -> Result<(Vec<ContendedPort>, Streams), Interrupted> {
        let mut streams = Streams::default();
        let drafts: Vec<Draft> = all(self.plan.contended.iter().zip(0..).map(|(&link, number)| {
            stop.steps(self.routing.vcs[link].len() + self.plan.feeders.of(link).len())?;
            let mut draft = self.draft(link, rate_control);
            if self.takes_streams(&draft, ways) {
                draft.first_stream = Some(streams.len());
                self.add_streams(&draft, number, is_looked_at, &mut streams);
            }
            Ok(draft)
        }))?;
        let first_streams: Vec<_> = drafts.iter().map(|draft| draft.first_stream).collect();
        let port = |draft: Draft| {
            stop.steps(self.routing.vcs[draft.link].len())?;
            Ok(self.port(draft, (&first_streams, &streams), is_looked_at))
        };
        Ok((all(drafts.into_iter().map(port))?, streams))
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
    ) -> Result<Vec<bool>, Interrupted> {
        all(self.plan.contended.iter().map(|&link| {
            stop.steps(self.routing.vcs[link].len() + self.plan.feeders.of(link).len())?;
            Ok(self.takes_streams(&self.draft(link, rate_control), ways))
        }))
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
            first_stream: None,
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
        let longest_lead = leads().max().unwrap_or(cell_time);
        Timing {
            cell_time,
            least_lead: leads().chain(of_rms).min().unwrap_or(cell_time),
            longest_lead,
            latest_start: Time(end.0.saturating_sub(longest_lead.0)),
            horizon: end,
            end,
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

    fn add_streams(&self, draft: &Draft, number: u32, is_looked_at: bool, streams: &mut Streams) {
        let &Draft { link, ref timing, .. } = draft;
        let at_once = self.is_last_behind_one(draft) && self.is_plain(draft) && !is_looked_at;
        let has = |link: LinkIndex| self.part.is_none_or(|part| part.has(self.network.links[link].from));
        streams.extend(self.plan.feeders.of(link).iter().map(|&from| {
            let brings_cells = self.brings_cells(from);
            match (has(self.beginning(from)), has(link)) {
                (true, false) => Stream::elsewhere(number),
                (begins_here, ends_here) => {
                    let at_once = at_once && brings_cells && begins_here == ends_here;
                    Stream::new(number, !brings_cells, timing.every_cell_matters, at_once)
                }
            }
        }));
    }

    fn port(&self, draft: Draft, ahead: (&[Option<usize>], &Streams), is_looked_at: bool) -> ContendedPort {
        let is_plain = self.is_plain(&draft);
        let Draft { link: number, policy, queues, timing, first_stream } = draft;
        let &Self { network, routing, times, plan, .. } = self;
        let link = &network.links[number];
        let draws = |purpose: &str| rng::Stream::new(network.seed, &format!("port/{}/{purpose}", link.name));
        let ties = TieBreaker::new(network.tie_order, routing.inputs[link.from], draws("ties"));
        let feeders = plan.feeders.of(number);
        let inputs = feeders.iter().map(|&from| routing.input[from]).collect();
        let vcs = routing.vcs[number].len();
        let ways_out = || {
            let hops = plan.stages[number].iter_enumerated();
            let hops = hops.map(|(label, stage)| self.hop(ahead, number, label, stage)).collect();
            Outlet::new(number, hops, (timing.cell_time, timing.latest_start))
        };
        let inbox = |first_stream, ties, inputs| {
            let least_spacing = feeders.iter().map(|&from| times[from].cell_time).min().unwrap_or(timing.cell_time);
            Inbox::new(ties, (first_stream, inputs, least_spacing), timing.every_cell_matters)
        };
        if let (Some(first_stream), true) = (first_stream, is_plain) {
            let admission = (link.buffer, policy, draws("policy"));
            let mut fifo = Fifo::new(vcs, admission, timing.cell_time, (timing.serve_first, is_looked_at));
            fifo.ask_at(timing.horizon);
            return ContendedPort::Stream(StreamPort::new(
                inbox(first_stream, ties, inputs),
                fifo,
                ways_out(),
                [timing.least_lead, timing.longest_lead],
            ));
        }
        let port = BatchingPort::new(link.buffer, vcs, policy, draws("policy"));
        let port = port.merging(&routing.merging[number]).scheduled(queues);
        if let Some(first) = first_stream {
            return ContendedPort::Queues(QueuePort::new(port, inbox(first, ties, inputs), ways_out(), timing));
        }
        let is_read = is_looked_at || timing.marks_above.is_some();
        let port = if is_read { port } else { port.without_queue() };
        ContendedPort::Trains(TrainPort::new(port, ties, vcs, inputs, timing))
    }

    /// Where a VC's cells go from a port of single cells. Of the ports ahead: the places of their first streams, and the
    /// streams.
    pub(super) fn hop(
        &self,
        (first_streams, streams): (&[Option<usize>], &Streams),
        link: LinkIndex,
        label: Label,
        stage: &Stage,
    ) -> Hop {
        let plan = self.plan;
        let is_watched = plan.marks && plan.rm_ways.get(link).is_some_and(|ways| ways[label].is_some());
        let (to, label) = match stage.end {
            StageEnd::Port { contended_port, input, label } => {
                let first = first_streams[contended_port as usize].filter(|_| !is_watched);
                let stream = first.map(|first| first + input as usize);
                let to = match stream {
                    Some(stream) if streams.get(stream).is_taken_at_once => Hop::AT_ONCE + contended_port,
                    Some(stream) => index(stream),
                    None => Hop::ONE_BY_ONE,
                };
                (to, label)
            }
            StageEnd::Host { .. } | StageEnd::Shaped { .. } => (Hop::TO_HOST, label),
        };
        Hop { lead: stage.lead, to, label }
    }
}
