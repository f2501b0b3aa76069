//! Labels of VCs on links, and the next hop of each label.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use typed_index_collections::{TiVec, ti_vec};

use super::Network;
use crate::index::{Label, LinkIndex, MergeIndex, NodeIndex, VcIndex};

/// The next hop of a cell at the end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The cell continues at the output port of this link.
    Port {
        /// The link.
        link: LinkIndex,
        /// The VC's label at that port.
        label: Label,
    },
    /// The VC ends at this host.
    Host {
        /// The VC.
        vc: VcIndex,
    },
}

/// The labels of all VCs on all links.
#[derive(Clone, Debug)]
pub struct Routing {
    /// Next hop of a cell, by link and label.
    pub next: TiVec<LinkIndex, TiVec<Label, Next>>,
    /// The VC, by link and label. If VCs have merged, the first branch.
    pub vcs: TiVec<LinkIndex, TiVec<Label, VcIndex>>,
    /// By link and label, true if the port keeps frames of the VC until they are complete.
    pub merging: TiVec<LinkIndex, TiVec<Label, bool>>,
    /// Label of each VC on its first link.
    pub first_label: TiVec<VcIndex, Label>,
    /// Number of each link among the input links of the node it reaches.
    pub input: TiVec<LinkIndex, u32>,
    /// Input links of each node, in order.
    pub inputs: TiVec<NodeIndex, Vec<LinkIndex>>,
}

impl Routing {
    /// Returns the labels of a VC on the links of its path, in path order.
    pub fn labels<'a>(&'a self, network: &'a Network, vc: VcIndex) -> impl Iterator<Item = Label> + 'a {
        let mut next = self.first_label[vc];
        network.vcs[vc].path.iter().map(move |&link| {
            let label = next;
            if let Next::Port { label: behind, .. } = self.next[link][label] {
                next = behind;
            }
            label
        })
    }
}

impl Network {
    /// Assigns every VC a label on each of its links.
    #[expect(clippy::arithmetic_side_effects, reason = "no overflow: these are indices of lists in memory")]
    pub fn routing(&self) -> Routing {
        let mut routing = Routing {
            next: ti_vec![TiVec::new(); self.links.len()],
            vcs: ti_vec![TiVec::new(); self.links.len()],
            merging: ti_vec![TiVec::new(); self.links.len()],
            first_label: TiVec::with_capacity(self.vcs.len()),
            input: TiVec::with_capacity(self.links.len()),
            inputs: ti_vec![Vec::new(); self.nodes.len()],
        };
        for (number, link) in self.links.iter_enumerated() {
            routing.input.push(u32::try_from(routing.inputs[link.to].len()).expect("links have 32-bit numbers"));
            routing.inputs[link.to].push(number);
        }
        // Labels of the first branch of each merge. After the merge, all branches have this label.
        let mut shared: TiVec<MergeIndex, Vec<Label>> = ti_vec![Vec::new(); self.merges.len()];
        let mut labels: Vec<Label> = Vec::new();
        for (number, vc) in self.vcs.iter_enumerated() {
            let at = vc.merge.map(|merge| self.merges[merge].at);
            let of_first = vc.merge.map_or(&[][..], |merge| &shared[merge]);
            let before_merge = vc.path.iter().position(|&link| Some(link) == at).map(|place| place + 1);
            let own = before_merge.filter(|_| !of_first.is_empty()).unwrap_or(vc.path.len());
            labels.clear();
            for &link in &vc.path[..own] {
                labels.push(routing.vcs[link].push_and_get_key(number));
                routing.merging[link].push(Some(link) == at);
            }
            labels.extend(&of_first[(of_first.len() + own).saturating_sub(vc.path.len())..]);
            for (i, &link) in vc.path[..own].iter().enumerate() {
                let next = match vc.path.get(i + 1) {
                    Some(&next) => Next::Port { link: next, label: labels[i + 1] },
                    None => Next::Host { vc: number },
                };
                routing.next[link].push(next);
            }
            routing.first_label.push(labels[0]);
            if let Some(merge) = vc.merge.filter(|&merge| shared[merge].is_empty()) {
                shared[merge].clone_from(&labels);
            }
        }
        routing
    }
}
