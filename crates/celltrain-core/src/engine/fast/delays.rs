//! Delays of packets at ports. A packet is recorded once per stage, for all ports of the stage.

use typed_index_collections::{TiVec, ti_vec};

use super::late::HeldBack;
use super::plan::{Passed, Plan, Role, Stage, StageEnd, StageIndex};
use crate::cell::{FrameNumber, Run};
use crate::delay::{DelayTracker, PortDelayTimes, PortQueues, Waiting, Window};
use crate::index::{Label, LinkIndex};
use crate::network::{Network, Next, Routing};
use crate::rate_control::RateControl;
use crate::units::{Clock, Span, Time};

/// Measures the delays at the ports of a run.
#[derive(Clone)]
pub(super) struct StageDelays {
    window: Window,
    clock: Clock,
    /// Latest time at which hosts sent packets; [`Time::NEVER`] while held-back packets are released.
    pub(super) now: Time,
    stages: TiVec<StageIndex, VcInStage>,
    /// The queues of each link's port, and the number of the port's first tracker.
    queues: TiVec<LinkIndex, (PortQueues, usize)>,
    /// Delays of each part of a port's queue.
    trackers: Vec<DelayTracker>,
    /// Packets that pass a transparent port in the window but do not count in [`VcInStage::passed`].
    passages: TiVec<LinkIndex, TiVec<Label, u64>>,
}

/// The packets of a VC in a stage.
#[derive(Clone)]
struct VcInStage {
    /// The transparent ports of the stage.
    passes: Vec<Passed>,
    waiting: Waiting,
    place: Place,
    /// The latest packet at a shaped port, not counted yet because the port may take back its last cell.
    latest: Option<(FrameNumber, Time)>,
    /// Number of the packet's tracker at the port.
    tracker: usize,
    /// A packet that ends the stage in this period starts in the window, and also passes all transparent ports of the
    /// stage in the window. Empty at shaped ports and behind losses.
    passing: Window,
    /// Time that the latest of these packets took for the stage, delay included, and how many in a row took it. A VC's
    /// delay often stays the same.
    total: Span,
    times: u64,
    /// Number of these packets before the latest delay.
    passed: u64,
    /// Duration of the stage.
    lead: Span,
    /// The stage that begins at the contended or shaped port at the end of this stage, or [`NOWHERE`].
    next: StageIndex,
}

/// No stage. It is not an index of a stage, so that looking up a stage and finding out whether it exists are one check.
const NOWHERE: StageIndex = StageIndex::new(u32::MAX);

/// The place where a stage begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Host,
    /// A shaped port, which may take back the last cell of a packet.
    Shaped,
    Port,
    /// The end of a link with losses, where no cells wait.
    BehindLosses,
}

impl StageDelays {
    /// Creates the state at the start of a run, if the delays at ports are measured.
    pub(super) fn new(
        network: &Network,
        routing: &Routing,
        plan: &Plan,
        rate_control: &RateControl,
        clock: Clock,
    ) -> Option<Self> {
        if !network.delays.at_ports() {
            return None;
        }
        let window = Window::new(network.window(clock));
        let mut trackers = 0;
        let numbered = |queues: PortQueues| {
            let first = trackers;
            trackers += queues.parts;
            (queues, first)
        };
        let queues: TiVec<LinkIndex, _> =
            PortQueues::find(network, routing, rate_control).into_iter().map(numbered).collect();
        let stages =
            plan.stages.iter_enumerated().flat_map(|(start, stages)| stages.keys().map(move |label| (start, label)));
        let stage = |(start, label): (LinkIndex, Label)| {
            let first = plan.link_of(start);
            let place = match plan.roles.get(start) {
                None => Place::BehindLosses,
                Some(Role::Host(_)) => Place::Host,
                Some(Role::Shaped(_)) => Place::Shaped,
                Some(_) => Place::Port,
            };
            let Stage { lead, end, .. } = plan.stages[start][label];
            let last = plan.passed[start][label].last();
            let (link, at) = last.map_or((first, label), |last| (last.link, last.label));
            let next = match (end, routing.next[link][at]) {
                (StageEnd::Port { port, .. }, Next::Port { link, label }) if plan.is_contended(port) => {
                    plan.stages[link][label].number
                }
                (StageEnd::Shaped { .. }, Next::Port { link, label }) => plan.stages[link][label].number,
                _ => NOWHERE,
            };
            let to_last = last.map_or(0, |last| last.lead.0);
            let passing = match place {
                Place::Host | Place::Port => window.up_to(Time(window.until().0.saturating_sub(to_last))).later(lead),
                Place::Shaped | Place::BehindLosses => Window::EMPTY,
            };
            let (queues, tracker) = &queues[first];
            let (tracker, waiting) = (tracker + queues.part(label), Waiting::default());
            VcInStage {
                passes: plan.passed[start][label].clone(),
                waiting,
                place,
                latest: None,
                tracker,
                passing,
                total: lead,
                times: 0,
                passed: 0,
                lead,
                next,
            }
        };
        let stages = stages.map(stage).collect();
        let passages = routing.vcs.iter().map(|vcs| ti_vec![0; vcs.len()]).collect();
        let trackers = vec![DelayTracker::default(); trackers];
        Some(Self { window, clock, now: Time::default(), stages, queues, trackers, passages })
    }

    /// Records a packet that a host passes to the shaped port where a stage begins.
    pub(super) fn on_packet(&mut self, stage: StageIndex, frame: FrameNumber) {
        self.stages[stage].waiting.arrive(frame, self.now);
    }

    /// Records a packet whose last cell reaches the end of the stage at `arrival`, by the horizon.
    ///
    /// Other cases than the most frequent are tail calls, so that the function need not save registers. It runs for each
    /// packet and stage.
    #[inline(never)]
    pub(super) fn on_run(&mut self, number: StageIndex, frame: FrameNumber, arrival: Time) {
        let stage = &mut self.stages[number];
        if !stage.passing.contains(arrival) {
            return self.on_other_run(number, frame, arrival);
        }
        let total = if stage.place == Place::Host {
            if self.now == Time::NEVER {
                return self.on_other_run(number, frame, arrival);
            }
            arrival - self.now
        } else {
            let Some(since) = stage.waiting.first(frame) else {
                return self.on_run_after_lost(number, frame, arrival);
            };
            stage.waiting.remove_first();
            arrival - since
        };
        if total != stage.total {
            return self.on_other_total(number, frame, arrival, total);
        }
        stage.times += 1;
        let next = stage.next;
        if let Some(next) = self.stages.get_mut(next) {
            next.waiting.arrive(frame, arrival);
        }
    }

    /// Records a packet in the window behind packets that its port has lost.
    #[cold]
    fn on_run_after_lost(&mut self, number: StageIndex, frame: FrameNumber, arrival: Time) {
        let total = arrival - self.stages[number].waiting.depart(frame);
        self.on_other_total(number, frame, arrival, total);
    }

    #[inline(never)]
    fn on_other_total(&mut self, number: StageIndex, frame: FrameNumber, arrival: Time, total: Span) {
        let stage = &mut self.stages[number];
        if total != stage.total {
            stage.count(&mut self.trackers);
            stage.total = total;
        }
        stage.times += 1;
        let next = stage.next;
        if let Some(next) = self.stages.get_mut(next) {
            next.waiting.arrive(frame, arrival);
        }
    }

    #[cold]
    fn on_other_run(&mut self, number: StageIndex, frame: FrameNumber, arrival: Time) {
        let start = Time(arrival.0 - self.stages[number].lead.0);
        self.on_ethernet_frame(number, frame, start, arrival);
    }

    /// Records a packet on a link where last cells take other times. Its last cell starts at `start`, and reaches the end of
    /// the stage at `arrival`, by the horizon.
    pub(super) fn on_ethernet_frame(&mut self, number: StageIndex, frame: FrameNumber, start: Time, arrival: Time) {
        let stage = &mut self.stages[number];
        let next = stage.next;
        let mut starts = Some((frame, start));
        match stage.place {
            Place::Host if self.now != Time::NEVER => stage.waiting.arrive(frame, self.now),
            Place::Shaped => starts = stage.latest.replace((frame, start)),
            Place::Host | Place::Port | Place::BehindLosses => {}
        }
        if let Some((frame, start)) = starts {
            self.on_start(number, frame, start, Time::NEVER);
        }
        if let Some(next) = self.stages.get_mut(next) {
            next.waiting.arrive(frame, arrival);
        }
    }

    /// Takes back the last cell that a shaped port has sent early, if the cell would start at `now` or later.
    pub(super) fn take_back(&mut self, stage: StageIndex, now: Time) {
        let VcInStage { ref mut latest, next, .. } = self.stages[stage];
        if latest.take_if(|&mut (_, start)| start >= now).is_some()
            && let Some(next) = self.stages.get_mut(next)
        {
            next.waiting.take_back();
        }
    }

    /// Records cells of packets that leave their host, if the cells are held back.
    pub(super) fn on_held_back(&mut self, stage: StageIndex, run: Run) {
        let stage = &mut self.stages[stage];
        if self.now != Time::NEVER && run.last.last_cell() && stage.place == Place::Host {
            stage.waiting.arrive(run.last.frame, self.now);
        }
    }

    /// Counts the starts of a packet's last cell up to `until`: at its port, and at the transparent ports of the stage.
    fn on_start(&mut self, number: StageIndex, frame: FrameNumber, start: Time, until: Time) {
        let stage = &mut self.stages[number];
        if stage.place != Place::BehindLosses && start <= until {
            let delay = start - stage.waiting.depart(frame);
            self.trackers[stage.tracker].count_if(self.window.contains(start), delay);
        }
        pass(&mut self.passages, self.window, stage, start, until);
    }

    /// Returns the distributions up to the horizon. They include the packets that have not reached the end of their
    /// stage by then.
    pub(super) fn times(&self, plan: &Plan, held: &[HeldBack], horizon: Time) -> TiVec<LinkIndex, PortDelayTimes> {
        let mut all = self.clone();
        for stage in self.stages.keys() {
            if let Some((frame, start)) = all.stages[stage].latest {
                all.on_start(stage, frame, start, horizon);
            }
        }
        for held in held.iter().filter(|held| held.run.last.last_cell()) {
            let start = held.first_start + held.period * u64::from(held.run.cells - 1);
            let stage = plan.stages[held.link][held.run.last.label()].number;
            all.on_start(stage, held.run.last.frame, start, horizon);
        }
        for stage in &mut all.stages {
            stage.count(&mut all.trackers);
            for passed in &stage.passes {
                all.passages[passed.link][passed.label] += stage.passed;
            }
        }
        for ((queues, first), passages) in all.queues.iter().zip(&all.passages) {
            for (label, &packets) in passages.iter_enumerated() {
                all.trackers[first + queues.part(label)].count_equal(Span(0), packets);
            }
        }
        let port = |(queues, first): (PortQueues, usize)| {
            let parts = &all.trackers[first..first + queues.parts];
            PortDelayTimes::new(parts.iter().map(|tracker| tracker.times(self.clock)).collect(), queues)
        };
        all.queues.into_iter().map(port).collect()
    }
}

impl VcInStage {
    /// Counts the latest packets with equal delays.
    fn count(&mut self, trackers: &mut [DelayTracker]) {
        self.passed += self.times;
        trackers[self.tracker].count_equal(Span(self.total.0 - self.lead.0), std::mem::take(&mut self.times));
    }
}

/// Counts a packet that starts at `start` at the transparent ports that it passes in the window, up to `until`.
#[cold]
fn pass(
    passages: &mut TiVec<LinkIndex, TiVec<Label, u64>>,
    window: Window,
    stage: &VcInStage,
    start: Time,
    until: Time,
) {
    for passed in &stage.passes {
        let now = start + passed.lead;
        passages[passed.link][passed.label] += u64::from(now <= until && window.contains(now));
    }
}
