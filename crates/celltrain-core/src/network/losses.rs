//! The links of a network that lose cells or delay packets.

use typed_index_collections::TiVec;

use super::{Link, Network, NodeKind, Routing};
use crate::delay_line::DelayLine;
use crate::index::{Label, LinkIndex, VcIndex};
use crate::link_loss::{DelayRule, LinkLosses, LossPattern, LossRule, LossUnit, LossyIndex};
use crate::rng::Stream;
use crate::units::Clock;

impl Network {
    /// Creates the state of all links with rules for losses or delays, in link order.
    pub fn losses(&self, routing: &Routing, clock: Clock) -> TiVec<LossyIndex, LinkLosses> {
        let state = |(index, link): (_, &Link)| {
            let delay = self.changing_delay(routing, index, clock);
            let mut losses = LinkLosses::new(index, routing.vcs[index].len(), delay);
            for rule in &link.losses {
                let (label, branch) = self.on_link(routing, rule.vc, index);
                losses.add(label, rule, branch, self.draws(link, rule));
            }
            for rule in &link.late {
                let (label, branch) = self.on_link(routing, rule.vc, index);
                let DelayRule { vc, ref pattern, by } = *rule;
                let draws = LossRule { vc, unit: LossUnit::Packets, pattern: pattern.clone() };
                losses.add_delay(label, rule, clock.span(by), branch, self.draws(link, &draws));
            }
            losses
        };
        self.links.iter_enumerated().filter(|(_, link)| link.has_rules()).map(state).collect()
    }

    /// For each link with rules, creates the delay line at its end; `None` if the link delays no packets.
    pub(crate) fn delay_lines(&self, routing: &Routing, clock: Clock) -> TiVec<LossyIndex, Option<Box<DelayLine>>> {
        let line = |(index, link): (LinkIndex, &Link)| {
            let new = || Box::new(DelayLine::new(self.merged(routing, index), clock.cell_time(link.rate)));
            link.has_delay_line().then(new)
        };
        self.links.iter_enumerated().filter(|(_, link)| link.has_rules()).map(line).collect()
    }

    /// Returns, for each label on a link, the first label with which it merges at the port, or the label itself.
    fn merged(&self, routing: &Routing, link: LinkIndex) -> TiVec<Label, Label> {
        let merge = |label: Label| self.vcs[routing.vcs[link][label]].merge.filter(|_| routing.merging[link][label]);
        let first = |label: Label| match merge(label) {
            None => label,
            own => routing.vcs[link].keys().find(|&other| merge(other) == own).unwrap_or(label),
        };
        routing.vcs[link].keys().map(first).collect()
    }

    /// Returns the label of a VC on a link with rules, and its branch if the VC has merged.
    fn on_link(&self, routing: &Routing, number: VcIndex, link: LinkIndex) -> (Label, Option<u8>) {
        let vc = &self.vcs[number];
        let place = vc.path.iter().position(|&other| other == link).expect("the VC crosses the link");
        let into_edge = place == 0 && self.nodes[self.links[link].to].kind == NodeKind::EdgeDevice;
        assert!(!into_edge, "an edge device receives whole packets");
        let label = routing.labels(self, number).nth(place).expect("a VC has a label on each of its links");
        let earlier = || self.vcs.iter().take(usize::from(number)).filter(|other| other.merge == vc.merge);
        let branch = vc.merge.map(|_| u8::try_from(earlier().count()).expect("a merge has at most 256 branches"));
        (label, branch)
    }

    fn draws(&self, link: &Link, rule: &LossRule) -> Stream {
        let model = match rule.pattern {
            LossPattern::GilbertElliott(_) => "/gilbert_elliott",
            _ => "",
        };
        let vc = &self.vcs[rule.vc].name;
        Stream::new(self.seed, &format!("link/{}/losses/{vc}/{}{model}", link.name, rule.unit.name()))
    }
}
