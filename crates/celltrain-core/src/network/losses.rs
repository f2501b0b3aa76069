//! Links of a network that lose cells.

use typed_index_collections::TiVec;

use super::{Network, NodeKind, Routing};
use crate::link_loss::{LinkLosses, LossPattern, LossRule, LossyIndex};
use crate::metrics::RunResult;
use crate::rng::Stream;

impl Network {
    /// Creates the state of all links with loss rules, in link order.
    pub fn losses(&self, routing: &Routing) -> TiVec<LossyIndex, LinkLosses> {
        let lossy = self.links.iter_enumerated().filter(|(_, link)| !link.losses.is_empty());
        let state = |(index, link): (_, &super::Link)| {
            let mut losses = LinkLosses::new(index, routing.vcs[index].len());
            for rule in &link.losses {
                let LossRule { vc: number, unit, .. } = *rule;
                let vc = &self.vcs[number];
                let place = vc.path.iter().position(|&other| other == index).expect("the VC crosses the link");
                let into_edge = place == 0 && self.nodes[link.to].kind == NodeKind::EdgeDevice;
                assert!(!into_edge, "an edge device receives whole packets");
                let label = routing.labels(self, number).nth(place).expect("every VC has a label on each of its links");
                let earlier = || self.vcs.iter().take(usize::from(number)).filter(|other| other.merge == vc.merge);
                let branch =
                    vc.merge.map(|_| u8::try_from(earlier().count()).expect("a merge has 256 branches at most"));
                let model = match rule.pattern {
                    LossPattern::GilbertElliott(_) => "/gilbert_elliott",
                    _ => "",
                };
                let stream = format!("link/{}/losses/{}/{}{model}", link.name, vc.name, unit.name());
                losses.add(label, rule, branch, Stream::new(self.seed, &stream));
            }
            losses
        };
        lossy.map(state).collect()
    }

    /// Returns what the loss rules of links should have lost in a run but never met, as a warning for each rule: packets,
    /// cells or bytes beyond what was sent.
    pub fn unmet_losses(&self, result: &RunResult) -> Vec<String> {
        let lossy = self.links.iter().filter(|link| !link.losses.is_empty());
        let rules = lossy.zip(&result.losses).flat_map(|(link, of_link)| {
            link.losses.iter().zip(&of_link.rules).map(move |(rule, &counters)| (link, rule, counters))
        });
        let unmet = |(link, rule, counters): (&super::Link, &LossRule, _)| {
            let problem = rule.unmet(&self.vcs[rule.vc].name, counters)?;
            Some(format!("a loss on {} did not happen: {problem}", link.name))
        };
        rules.filter_map(unmet).collect()
    }
}
