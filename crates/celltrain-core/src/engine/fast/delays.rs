//! Delays of packets at ports: a packet is recorded once per stage, with all ports that it reaches in the stage.

use typed_index_collections::TiVec;

use super::late::Late;
use super::plan::{Plan, StageEnd};
use crate::cell::Run;
use crate::delay::{PortDelays, PortDelayTimes};
use crate::index::{Label, LinkIndex};
use crate::network::{Network, Next, Routing};
use crate::units::{Clock, Time};

/// Measures the delays at the ports of a run.
pub(super) struct StageDelays {
    pub(super) ports: PortDelays,
    /// Number of links of the network. Cells do not wait at the additional links behind losses.
    links: usize,
    /// For each link and label: the contended port at the end of the stage, and the label there.
    next: TiVec<LinkIndex, TiVec<Label, Option<(LinkIndex, Label)>>>,
}

impl StageDelays {
    pub(super) fn new(network: &Network, routing: &Routing, plan: &Plan, clock: Clock) -> Option<Self> {
        let ports = PortDelays::new(network, routing, clock)?;
        let links = network.links.len();
        let next = plan.stages.iter_enumerated().map(|(start, stages)| {
            let first = plan.link_of(start);
            let next = |label: Label| {
                let StageEnd::Port { port, .. } = plan.stages[start][label].end else { return None };
                let (link, at) = plan.passed[start][label].last().map_or((first, label), |last| (last.link, last.label));
                match routing.next[link][at] {
                    Next::Port { link, label } => plan.is_contended(port).then_some((link, label)),
                    Next::Host { .. } => None,
                }
            };
            stages.keys().map(next).collect()
        });
        Some(Self { ports, links, next: next.collect() })
    }

    /// Records a run that ends a packet, leaves for a link, and arrives at the end of its stage. Its last cell starts at
    /// `start`.
    pub(super) fn on_run(&mut self, plan: &Plan, link: LinkIndex, run: Run, start: Time) {
        self.depart(plan, link, run, start, Time::NEVER);
        let label = run.last.label();
        if let Some((port, at)) = self.next[link][label] {
            self.ports.on_packet(port, at, run.last.frame, start + plan.stages[link][label].lead);
        }
    }

    /// Records the starts of a packet's last cell up to `until`: at its port, and at the transparent ports of the stage.
    fn depart(&mut self, plan: &Plan, link: LinkIndex, run: Run, start: Time, until: Time) {
        if usize::from(link) < self.links && start <= until {
            self.ports.on_departure(link, run.last, start);
        }
        for passed in &plan.passed[link][run.last.label()] {
            if start + passed.lead <= until {
                self.ports.on_passage(passed.link, passed.label, start + passed.lead);
            }
        }
    }

    /// Returns the distributions up to the horizon, including the packets that do not reach the end of their stage by
    /// then.
    pub(super) fn times(&self, plan: &Plan, late: &Late, horizon: Time) -> TiVec<LinkIndex, PortDelayTimes> {
        let mut all = Self { ports: self.ports.clone(), links: self.links, next: TiVec::new() };
        for held in late.held_back.iter().filter(|held| held.run.last.last_cell()) {
            let start = held.first_start + held.period * u64::from(held.run.cells - 1);
            all.depart(plan, held.link, held.run, start, horizon);
        }
        all.ports.times()
    }
}
