//! Traffic contracts at the edge of a network: which VCs have a contract ([`Gfr`](crate::gfr::Gfr)), and on which links
//! the contracts are enforced.

use typed_index_collections::TiVec;

use crate::cell::Cell;
use crate::gfr::{EdgeCounters, Policer};
use crate::index::{LinkIndex, VcIndex};
use crate::network::{Network, Vc};
use crate::units::{Clock, Time};

/// The contracts enforced at the edge of a network.
pub struct Edge {
    by_vc: TiVec<VcIndex, Option<Box<Policer>>>,
    /// For each VC, the link to the first switch of the ATM network.
    at: TiVec<VcIndex, LinkIndex>,
}

impl Edge {
    /// Creates the contracts of a network's VCs, before the first cell is sent.
    pub fn new(network: &Network, clock: Clock) -> Self {
        let first_link = |vc: &Vc| vc.path[network.atm_part(vc).start];
        let policer = |vc: &Vc| {
            let contract = vc.contract.as_ref()?;
            Some(Box::new(Policer::new(contract, network.links[first_link(vc)].rate, clock)))
        };
        let vcs = network.vcs.iter();
        Self { by_vc: vcs.clone().map(policer).collect(), at: vcs.map(first_link).collect() }
    }

    /// Returns whether a VC has a contract.
    #[inline]
    pub fn polices(&self, vc: VcIndex) -> bool {
        self.by_vc[vc].is_some()
    }

    /// Returns whether the contract of a VC is enforced at the end of this link.
    pub fn polices_at(&self, vc: VcIndex, link: LinkIndex) -> bool {
        self.polices(vc) && self.at[vc] == link
    }

    /// Polices a cell of `vc` that reaches the first switch at `now`. Returns the cell, possibly tagged.
    pub fn on_cell(&mut self, vc: VcIndex, now: Time, cell: Cell) -> Cell {
        match &mut self.by_vc[vc] {
            Some(policer) => policer.on_cell(now, cell),
            None => cell,
        }
    }

    /// Copies the state of contracts that the partition `other` enforced in the same run.
    pub(crate) fn take_over(&mut self, mut other: Edge, looked_after: impl Fn(VcIndex) -> bool) {
        for (vc, mine) in self.by_vc.iter_mut_enumerated().filter(|&(vc, _)| looked_after(vc)) {
            std::mem::swap(mine, &mut other.by_vc[vc]);
        }
    }

    /// Returns the counters of a VC, if it has a contract.
    pub fn counters(&self, vc: VcIndex) -> Option<EdgeCounters> {
        self.by_vc[vc].as_ref().map(|policer| policer.counters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::tests::cell;
    use crate::gfr::tests::{clock, contract};
    use crate::network::tests::simple_network;
    use crate::units::BitRate;

    #[test]
    fn the_first_switch_on_a_path_polices_vcs_with_gfr_contracts_and_counts_their_frames() {
        let mut network = simple_network(2, "1ms");
        let vcs = [0, 1, 2, 3].map(VcIndex::new);
        let [without, _, with, _] = vcs;
        network.vcs[with].contract = Some(contract(1_555_200));
        let mut edge = Edge::new(&network, clock());
        assert_eq!(vcs.map(|vc| edge.polices(vc)), [false, false, true, false]);
        // VC 2 crosses its host's link, the bottleneck and its destination's link.
        let at = |vc: VcIndex| network.vcs[vc].path.iter().map(|&link| edge.polices_at(with, link));
        assert_eq!(at(with).collect::<Vec<_>>(), [true, false, false]);
        assert!(at(without).all(|polices| !polices), "the contract of one VC does not affect another VC");
        assert!(
            network.links.keys().all(|link| !edge.polices_at(without, link)),
            "a VC without a contract is not policed"
        );
        // Three frames of 12 cells arrive back to back, then two cells of a fourth. MBS is 24 cells, so two frames are
        // eligible. All 14 cells of the other frames are tagged.
        let cell_time = clock().cell_time(BitRate::from_bits_per_second(155_520_000));
        let mut tagged = 0;
        for i in 0..38 {
            let cell = cell(0, 0, i % 12 == 11);
            assert_eq!(
                edge.on_cell(without, Time::default() + cell_time * i, cell),
                cell,
                "cells without a contract are unchanged"
            );
            tagged += u64::from(edge.on_cell(with, Time::default() + cell_time * i, cell).tagged());
        }
        assert_eq!(tagged, 14);
        let counted = EdgeCounters { frames: 4, eligible_frames: 2, tagged_frames: 2, nonconforming_cells: 0 };
        assert_eq!(vcs.map(|vc| edge.counters(vc)), [None, None, Some(counted), None]);
    }
}
