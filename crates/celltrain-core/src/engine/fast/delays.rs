//! Delays of packets at ports. A packet is recorded once per stage, for all ports of the stage.

use typed_index_collections::{TiVec, ti_vec};

use super::late::HeldBack;
use super::plan::{Plan, Role, StageEnd};
use crate::cell::Run;
use crate::delay::{DelayTimes, PortDelayTimes, VcAtPort, Window};
use crate::index::{Label, LinkIndex};
use crate::network::{Network, Next, Routing};
use crate::units::{Clock, Span, Time};

/// Measures the delays at the ports of a run.
#[derive(Clone)]
pub(super) struct StageDelays {
    window: Window,
    clock: Clock,
    /// The latest instant at which hosts sent packets; [`Time::NEVER`] while packets that were held back are released.
    pub(super) now: Time,
    /// By link and label, with the additional links behind losses at the end; empty for transparent ports.
    stages: TiVec<LinkIndex, TiVec<Label, VcInStage>>,
    /// Packets that pass a transparent port in the window and do not count in [`VcInStage::passed`].
    passages: TiVec<LinkIndex, TiVec<Label, u64>>,
}

/// The packets of a VC in a stage.
#[derive(Clone)]
struct VcInStage {
    place: Place,
    /// A packet that starts in the window up to this instant passes all transparent ports of the stage in the window.
    latest_to_pass: Time,
    /// Number of these packets.
    passed: u64,
    /// Duration of the stage.
    lead: Span,
    /// The contended port at the end of the stage, and the label there.
    next: Option<(LinkIndex, Label)>,
    at_port: VcAtPort,
}

/// The place where a stage begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Host,
    ContendedPort,
    /// The end of a link with losses, where nothing waits.
    BehindLosses,
}

impl StageDelays {
    /// Creates the state at the start of a run, if the delays at ports are measured.
    pub(super) fn new(network: &Network, routing: &Routing, plan: &Plan, clock: Clock) -> Option<Self> {
        if !network.delays.at_ports() {
            return None;
        }
        let window = Window::new(network.window(clock));
        let stages = plan.stages.iter_enumerated().map(|(start, stages)| {
            let first = plan.link_of(start);
            let place = match plan.roles.get(start) {
                None => Place::BehindLosses,
                Some(Role::Host(_)) => Place::Host,
                Some(_) => Place::ContendedPort,
            };
            let stage = |label: Label| {
                let last = plan.passed[start][label].last();
                let (link, at) = last.map_or((first, label), |last| (last.link, last.label));
                let next = match (stages[label].end, routing.next[link][at]) {
                    (StageEnd::Port { port, .. }, Next::Port { link, label }) if plan.is_contended(port) => {
                        Some((link, label))
                    }
                    _ => None,
                };
                let to_last = last.map_or(0, |last| last.lead.0);
                let latest_to_pass = Time(window.until.0.saturating_sub(to_last));
                let lead = stages[label].lead;
                VcInStage { place, latest_to_pass, passed: 0, lead, next, at_port: VcAtPort::default() }
            };
            stages.keys().map(stage).collect()
        });
        let stages = stages.collect();
        let passages = routing.vcs.iter().map(|vcs| ti_vec![0; vcs.len()]).collect();
        Some(Self { window, clock, now: Time::default(), stages, passages })
    }

    /// Records a run that ends a packet, leaves for a link, and reaches the end of its stage by the horizon. Its last
    /// cell starts at `start`.
    #[inline]
    pub(super) fn on_run(&mut self, plan: &Plan, link: LinkIndex, run: Run, start: Time) {
        let frame = run.last.frame;
        let VcInStage { place, latest_to_pass, passed, next, lead, at_port } = &mut self.stages[link][run.last.label()];
        let (next, arrival) = (*next, start + *lead);
        let counts = self.window.contains(start);
        match *place {
            Place::Host if self.now != Time::NEVER => at_port.delays.count_if(counts, start - self.now),
            Place::Host | Place::ContendedPort => at_port.depart(frame, start, counts),
            Place::BehindLosses => {}
        }
        if counts && start <= *latest_to_pass {
            *passed += 1;
        } else {
            self.pass(plan, link, run, start, Time::NEVER);
        }
        if let Some((port, at)) = next {
            self.stages[port][at].at_port.arrive(frame, arrival);
        }
    }

    /// Records a run that is held back when its packet leaves its host.
    pub(super) fn on_held_back(&mut self, link: LinkIndex, run: Run) {
        let stage = &mut self.stages[link][run.last.label()];
        if self.now != Time::NEVER && run.last.last_cell() && stage.place == Place::Host {
            stage.at_port.arrive(run.last.frame, self.now);
        }
    }

    /// Records the starts of a held-back packet's last cell up to `until`: at its port, and at the transparent ports of
    /// the stage.
    fn on_start(&mut self, plan: &Plan, link: LinkIndex, run: Run, start: Time, until: Time) {
        let stage = &mut self.stages[link][run.last.label()];
        if stage.place != Place::BehindLosses && start <= until {
            stage.at_port.depart(run.last.frame, start, self.window.contains(start));
        }
        self.pass(plan, link, run, start, until);
    }

    #[cold]
    fn pass(&mut self, plan: &Plan, link: LinkIndex, run: Run, start: Time, until: Time) {
        for passed in &plan.passed[link][run.last.label()] {
            let now = start + passed.lead;
            self.passages[passed.link][passed.label] += u64::from(now <= until && self.window.contains(now));
        }
    }

    /// Returns the distributions up to the horizon, including the packets that do not reach the end of their stage by
    /// then.
    pub(super) fn times(&self, plan: &Plan, held: &[HeldBack], horizon: Time) -> TiVec<LinkIndex, PortDelayTimes> {
        let mut all = self.clone();
        for held in held.iter().filter(|held| held.run.last.last_cell()) {
            let start = held.first_start + held.period * u64::from(held.run.cells - 1);
            all.on_start(plan, held.link, held.run, start, horizon);
        }
        for (link, stages) in all.stages.iter_enumerated() {
            for (label, stage) in stages.iter_enumerated() {
                for passed in &plan.passed[link][label] {
                    all.passages[passed.link][passed.label] += stage.passed;
                }
            }
        }
        let port = |(link, passages): (LinkIndex, &TiVec<Label, u64>)| {
            let times = |(label, &passages): (Label, &u64)| match all.stages[link].get(label) {
                Some(stage) => stage.at_port.delays.times(self.clock),
                None => DelayTimes::without_delay(passages, self.clock),
            };
            passages.iter_enumerated().map(times).collect()
        };
        all.passages.iter_enumerated().map(port).collect()
    }
}
