//! Delays of packets at ports. A packet is recorded once per stage, for all ports of the stage: when its last cell leaves
//! the port, or when that cell enters a first-in first-out port of single cells, where its start is already known.

use std::collections::BTreeMap;

use typed_index_collections::{TiVec, ti_vec};

use super::late::HeldBack;
use super::plan::{Passed, Plan, PortIndex, Role, StageEnd, StageIndex};
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
    /// The waiting packets. At a host, only those whose cells are held back; at a first-in first-out port, only those that
    /// may start after the horizon.
    waiting: Waiting,
    place: Place,
    /// The latest packet at a shaped port, not counted yet because the port may take back its last cell.
    latest: Option<(FrameNumber, Time)>,
    /// Number of the packet's tracker at the port.
    tracker: usize,
    /// A packet that ends the stage in this period starts in the window, and also passes all transparent ports of the
    /// stage in the window. Empty at shaped ports and behind losses.
    passing: Window,
    /// Time that the latest of these packets took for the stage, delay included, and the number of consecutive packets
    /// with this time. A VC's delay often stays the same.
    total: Span,
    times: u64,
    /// Number of counted packets before the packets with the latest delay.
    passed: u64,
    /// Duration of the stage.
    lead: Span,
    /// The stage that begins at the contended or shaped port at the end of this stage, or [`NOWHERE`].
    next: StageIndex,
}

/// No stage. This index is out of range, so that a single check finds both the stage and whether it exists.
const NOWHERE: StageIndex = StageIndex::new(u32::MAX);

/// The place where a stage begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Host,
    /// A shaped port, which may take back the last cell of a packet.
    Shaped,
    /// A port that reports its packets when they leave.
    Port,
    /// A first-in first-out port that counts its packets when they enter: [`StageDelays::on_entry`].
    Fifo,
    /// The end of a link with losses, where no cells wait.
    BehindLosses,
}

impl StageDelays {
    /// Creates the state at the start of a run, if the delays at ports are measured. `counts_entries` returns whether a
    /// contended port reports its packets when they enter.
    pub(super) fn new(
        network: &Network,
        routing: &Routing,
        plan: &Plan,
        rate_control: &RateControl,
        clock: Clock,
        counts_entries: impl Fn(PortIndex) -> bool,
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
        let place = |start: LinkIndex| match plan.roles.get(start) {
            None => Place::BehindLosses,
            Some(Role::Host(_)) => Place::Host,
            Some(Role::Shaped(_) | Role::Pausable(_)) => Place::Shaped,
            Some(&Role::Contended(port)) if counts_entries(port) => Place::Fifo,
            Some(_) => Place::Port,
        };
        let stage = |(start, label): (LinkIndex, Label)| {
            let stage = plan.stages[start][label];
            let (first, passes) = (plan.link_of(start), plan.passed[start][label].clone());
            let last = passes.last();
            let (link, at) = last.map_or((first, label), |last| (last.link, last.label));
            let next = match (stage.end, routing.next[link][at]) {
                (StageEnd::Port { port, .. }, Next::Port { link, label }) if plan.is_contended(port) => {
                    let counts_entry = matches!(plan.roles[link], Role::Contended(port) if counts_entries(port));
                    if counts_entry { NOWHERE } else { plan.stages[link][label].number }
                }
                (StageEnd::Shaped { .. }, Next::Port { link, label }) => plan.stages[link][label].number,
                _ => NOWHERE,
            };
            let (queues, tracker) = &queues[first];
            VcInStage::new(place(start), stage.lead, passes, window, tracker + queues.part(label), next)
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

    /// Records a packet whose last cell enters the first-in first-out port where a stage begins, and will start at
    /// `start`. If the start is after `latest_start`, the cell may be too late for the horizon, and counts when
    /// [`StageDelays::on_run`] or [`StageDelays::times`] finds it.
    #[inline(never)]
    pub(super) fn on_entry(
        &mut self,
        number: StageIndex,
        frame: FrameNumber,
        now: Time,
        start: Time,
        latest_start: Time,
    ) {
        let stage = &mut self.stages[number];
        if start > latest_start {
            return stage.waiting.arrive(frame, now);
        }
        let arrival = start + stage.lead;
        if !stage.passing.contains(arrival) {
            return self.on_other_entry(number, frame, now, start);
        }
        let total = arrival - now;
        if total != stage.total {
            return self.on_other_total(number, frame, arrival, total);
        }
        self.count_again(number, frame, arrival);
    }

    /// Records a packet that does not start in the window, or does not pass all transparent ports in the window.
    #[cold]
    fn on_other_entry(&mut self, number: StageIndex, frame: FrameNumber, now: Time, start: Time) {
        let stage = &mut self.stages[number];
        self.trackers[stage.tracker].count_if(self.window.contains(start), start - now);
        pass(&mut self.passages, self.window, stage, start, Time::NEVER);
        let (next, arrival) = (stage.next, start + stage.lead);
        if let Some(next) = self.stages.get_mut(next) {
            next.waiting.arrive(frame, arrival);
        }
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
        let since = match stage.place {
            Place::Port => stage.waiting.depart(frame),
            // If this is `NEVER`, the total exceeds the arrival time, so it differs from every other total.
            Place::Host => self.now,
            // The delay of the packet was counted when the packet entered the port.
            Place::Fifo if stage.waiting.is_empty() => return,
            _ => return self.on_run_of_waiting(number, frame, arrival),
        };
        let total = Span(arrival.0.wrapping_sub(since.0));
        if total != stage.total {
            return self.on_other_total(number, frame, arrival, total);
        }
        self.count_again(number, frame, arrival);
    }

    /// Records a packet in the window whose arrival is in [`VcInStage::waiting`], unless it counted when it entered.
    #[inline(never)]
    fn on_run_of_waiting(&mut self, number: StageIndex, frame: FrameNumber, arrival: Time) {
        let stage = &mut self.stages[number];
        if stage.waiting.first(frame).is_some() {
            let total = arrival - stage.waiting.depart(frame);
            self.on_other_total(number, frame, arrival, total);
        }
    }

    /// Counts a packet with the delay of the latest packets, and passes it to the next stage.
    #[inline]
    fn count_again(&mut self, number: StageIndex, frame: FrameNumber, arrival: Time) {
        let stage = &mut self.stages[number];
        stage.times += 1;
        let next = stage.next;
        if let Some(next) = self.stages.get_mut(next) {
            next.waiting.arrive(frame, arrival);
        }
    }

    #[inline(never)]
    fn on_other_total(&mut self, number: StageIndex, frame: FrameNumber, arrival: Time, total: Span) {
        let stage = &mut self.stages[number];
        if total != stage.total {
            if total.0 > arrival.0 {
                // Held-back packets of the stage are released.
                return self.on_other_run(number, frame, arrival);
            }
            stage.count(&mut self.trackers);
            stage.total = total;
        }
        self.count_again(number, frame, arrival);
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
            Place::Fifo if stage.waiting.first(frame).is_none() => return,
            Place::Host | Place::Port | Place::Fifo | Place::BehindLosses => {}
        }
        if let Some((frame, start)) = starts {
            self.on_start(number, frame, start);
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

    /// Counts the starts of a packet's last cell: at its port, and at the transparent ports of the stage.
    fn on_start(&mut self, number: StageIndex, frame: FrameNumber, start: Time) {
        let stage = &mut self.stages[number];
        if stage.place != Place::BehindLosses {
            let delay = start - stage.waiting.depart(frame);
            self.trackers[stage.tracker].count_if(self.window.contains(start), delay);
        }
        pass(&mut self.passages, self.window, stage, start, Time::NEVER);
    }

    /// Returns the distributions up to the horizon. They include the packets that have not reached the end of their
    /// stage by then.
    pub(super) fn times(&self, plan: &Plan, held: &[HeldBack], horizon: Time) -> TiVec<LinkIndex, PortDelayTimes> {
        let held = held.iter().filter(|held| held.run.last.last_cell()).map(|held| {
            let stage = plan.stages[held.link][held.run.last.label()].number;
            (stage, held.run.last.frame, held.first_start + held.period * u64::from(held.run.cells - 1))
        });
        let latest = self.stages.iter_enumerated().filter_map(|(number, stage)| {
            let (frame, start) = stage.latest?;
            Some((number, frame, start))
        });
        // Counts that are not in the trackers yet.
        let mut others = vec![DelayTracker::default(); self.trackers.len()];
        let mut passages = self.passages.clone();
        let mut waiting = BTreeMap::new();
        for (number, frame, start) in latest.chain(held) {
            let stage = &self.stages[number];
            if stage.place != Place::BehindLosses && start <= horizon {
                let arrival = waiting.entry(number).or_insert_with(|| stage.waiting.clone()).depart(frame);
                others[stage.tracker].count_if(self.window.contains(start), start - arrival);
            }
            pass(&mut passages, self.window, stage, start, horizon);
        }
        for stage in &self.stages {
            others[stage.tracker].count_equal(stage.delay(), stage.times);
            for passed in &stage.passes {
                passages[passed.link][passed.label] += stage.passed + stage.times;
            }
        }
        let port = |((queues, first), passages): (&(PortQueues, usize), &TiVec<Label, u64>)| {
            for (label, &packets) in passages.iter_enumerated() {
                others[first + queues.part(label)].count_equal(Span(0), packets);
            }
            let parts = *first..first + queues.parts;
            let times = parts.map(|part| self.trackers[part].times_with(&others[part], self.clock));
            PortDelayTimes::new(times.collect(), queues.clone())
        };
        self.queues.iter().zip(&passages).map(port).collect()
    }
}

impl VcInStage {
    /// Creates the state of a VC in a stage of duration `lead`, in which it crosses the transparent ports `passes`.
    fn new(place: Place, lead: Span, passes: Vec<Passed>, window: Window, tracker: usize, next: StageIndex) -> Self {
        let to_last = passes.last().map_or(0, |last| last.lead.0);
        let passing = match place {
            Place::Host | Place::Port | Place::Fifo => {
                window.up_to(Time(window.until().0.saturating_sub(to_last))).later(lead)
            }
            Place::Shaped | Place::BehindLosses => Window::EMPTY,
        };
        let (waiting, latest) = Default::default();
        Self { passes, waiting, place, latest, tracker, passing, total: lead, times: 0, passed: 0, lead, next }
    }

    /// Returns the delay of the latest packets at the port.
    fn delay(&self) -> Span {
        Span(self.total.0 - self.lead.0)
    }

    /// Counts the latest packets with equal delays.
    fn count(&mut self, trackers: &mut [DelayTracker]) {
        self.passed += self.times;
        trackers[self.tracker].count_equal(self.delay(), std::mem::take(&mut self.times));
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
