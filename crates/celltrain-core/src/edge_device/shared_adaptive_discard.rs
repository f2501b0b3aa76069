//! Adaptive Discard Algorithm for VCs that share one memory.
//!
//! Source: draft-jagan-e2e-traf-mgmt-00, section 5, which names shared memory as future work without details. The
//! extension is celltrain's own and is justified in `docs/design/edge-device.md`. Every VC has its own phase, `LD_ACR`
//! and `P_CTR`. The rate rule and the return to phase 0 are as in [`super::adaptive_discard`]. Only the definition of a
//! full queue is new:
//!
//! ```text
//! W + cells > EB        W: cells of all packets, those under way counted whole
//! S_i = EB * ACR_i / sum of ACR_j over the VCs that have packets
//! the VC that exceeds its share S_i most loses the packet at its front
//! ```
//!
//! For a single VC with packets of equal length, this drops exactly the same packets as `adaptive_discard`.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use typed_index_collections::{TiSlice, TiVec};

use super::adaptive_discard::{AdaState, DEFAULT_LT, Phase, Thresholds, Vc, keep_state};
use super::{Cause, Configure, Discard, Memory, Packets};
use crate::error::Fault;
use crate::index::Label;

/// Adaptive Discard Algorithm for VCs that share one memory. When the memory is full, the VC that most exceeds its
/// share loses its front packet. Shares are proportional to ACR.
///
/// Source: draft-jagan-e2e-traf-mgmt-00, section 4.1, extended by celltrain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "SharedAdaptiveDiscard")]
pub struct Config {
    /// f: ACR has fallen considerably if it is below this share of `LD_ACR`, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expect" = "a share of a rate (0 to 1)"))]
    pub reduction_factor: f64,
    /// LT: number of packets below which a VC's queue counts as low.
    #[schemars(range(min = 1), extend("x-unit" = "packets"))]
    pub low_threshold: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { reduction_factor: 0.5, low_threshold: DEFAULT_LT }
    }
}

/// The algorithm and the state of every VC.
#[derive(Debug)]
pub struct SharedAdaptiveDiscard {
    thresholds: Thresholds,
    vcs: TiVec<Label, Vc>,
}

impl Configure for Config {
    type Discard = SharedAdaptiveDiscard;

    fn memory(&self) -> Option<Memory> {
        Some(Memory::Shared)
    }

    fn check(&self, mqs: Option<u32>) -> Vec<Fault> {
        self.thresholds().check(mqs)
    }

    fn build(&self, packets: &Packets) -> SharedAdaptiveDiscard {
        let vcs = packets.vcs().map(|_| Vc::default()).collect();
        SharedAdaptiveDiscard { thresholds: self.thresholds(), vcs }
    }
}

impl Config {
    fn thresholds(&self) -> Thresholds {
        Thresholds { f: self.reduction_factor, lt: self.low_threshold }
    }
}

impl Discard for SharedAdaptiveDiscard {
    fn on_arrival(&mut self, packets: &mut Packets, vc: Label, cells: u32) {
        self.evaluate(packets, vc, |vcs, packets| {
            while let Some(victim) = over_share(packets, vc, cells) {
                vcs[victim].drop_front(packets, victim, Cause::NoRoom);
            }
        });
    }

    /// A rate decrease of a VC can drop only packets of the same VC.
    fn on_rate(&mut self, packets: &mut Packets, vc: Label) {
        self.evaluate(packets, vc, |vcs, packets| {
            if over_share(packets, vc, packets.longest(vc)) == Some(vc) {
                vcs[vc].drop_front(packets, vc, Cause::NoRoom);
            }
        });
    }

    keep_state!(vcs);
}

impl SharedAdaptiveDiscard {
    /// Runs ADA's evaluation; `make_room` handles a full queue.
    fn evaluate(
        &mut self,
        packets: &mut Packets,
        vc: Label,
        make_room: impl FnOnce(&mut TiSlice<Label, Vc>, &mut Packets),
    ) {
        let phase = self.vcs[vc].state.phase;
        // Apply the rate rule first, because dropping a packet may already make enough room.
        if phase == Phase::Zero && self.thresholds.rate_fell(self.vcs[vc].state, packets, vc) {
            self.vcs[vc].drop_front(packets, vc, Cause::RateFell);
        }
        make_room(&mut self.vcs, packets);
        match phase {
            Phase::Zero if self.vcs[vc].state.phase == Phase::Zero => self.vcs[vc].follow_up(packets.acr(vc)),
            Phase::Zero => {}
            Phase::One => self.thresholds.relax(&mut self.vcs[vc], packets.ql(vc)),
        }
    }
}

/// Returns the VC that loses a packet if the memory lacks room for `cells` more cells of `vc`. Of the VCs with a
/// droppable packet, this is the VC that most exceeds its share. In a tie, `vc` comes first, then the lowest label.
#[expect(
    clippy::arithmetic_side_effects,
    reason = "no overflow: the number of waiting cells plus 32 bits fits in 64 bits"
)]
fn over_share(packets: &Packets, vc: Label, cells: u32) -> Option<Label> {
    let eb = f64::from(packets.capacity());
    if packets.all_whole_cells() + u64::from(cells) <= u64::from(packets.capacity()) {
        return None;
    }
    let is_active = |j| j == vc || packets.ql(j) > 0;
    let total: f64 = packets.vcs().filter(|&j| is_active(j)).map(|j| packets.acr(j)).sum();
    let active = f64::from(
        u32::try_from(packets.vcs().filter(|&j| is_active(j)).count()).expect("the number of VCs fits in 24 bits"),
    );
    // Y_i - S_i, the excess over the share. If no VC may send, all shares are equal.
    let excess = |j: Label| {
        let y = packets.whole_cells(j) + if j == vc { u64::from(cells) } else { 0 };
        let share = if total > 0.0 { packets.acr(j) / total } else { 1.0 / active };
        y as f64 - eb * share
    };
    let mut worst = None;
    let mut most = 0.0;
    for j in std::iter::once(vc).chain(packets.vcs()).filter(|&j| packets.can_drop(j)) {
        if excess(j) > most {
            (worst, most) = (Some(j), excess(j));
        }
    }
    worst
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::edge_device::conformance::{Bench, Operation, operations};
    use crate::edge_device::{DiscardConfig, adaptive_discard};

    fn bench(eb: u32, longest: &[u32]) -> Bench {
        Bench::new(DiscardConfig::SharedAdaptiveDiscard(Config::default()), Some(eb), Memory::Shared, longest)
    }

    #[test]
    fn the_vc_that_exceeds_its_memory_share_the_most_loses_its_oldest_packet() {
        let mut bench = bench(100, &[10; 3]);
        // At the end, the VCs hold 60, 30 and 10 cells, which are their shares.
        for (vc, packets, acr) in [(0, 5, 600.0), (1, 4, 300.0), (2, 1, 100.0)] {
            for _ in 0..packets {
                bench.offer_at(vc, 10, acr);
            }
        }
        bench.offer_at(2, 5, 100.0);
        assert_eq!([bench.frames(0).len(), bench.frames(1).len(), bench.frames(2).len()], [5, 3, 2]);
        assert_eq!(bench.frames(1), [1, 2, 3], "VC 1 has the largest excess: 10, compared with 5 and -10");
        let state = bench.buffer.state(Label::new(1)).unwrap();
        assert_eq!(state, AdaState { phase: Phase::One, ld_acr: 300.0, p_ctr: 3 });
        assert_eq!(
            bench.buffer.state(Label::new(2)).unwrap().phase,
            Phase::Zero,
            "the arriving VC is not above its share"
        );
    }

    #[test]
    fn a_single_active_vc_uses_the_whole_memory_until_other_vcs_become_active() {
        let mut bench = bench(100, &[10; 2]);
        for _ in 0..10 {
            bench.offer_at(0, 10, 500.0);
        }
        assert_eq!(bench.buffer.packets.vc_counters(Label::new(0)).lost(), 0);
        for _ in 0..10 {
            bench.offer_at(1, 10, 500.0);
        }
        assert_eq!(
            [bench.frames(0).len(), bench.frames(1).len()],
            [5, 5],
            "two VCs with equal rates may each hold half of the memory"
        );
        assert_eq!(bench.frames(1)[0], 5, "a VC that holds more than half loses its own packet");
    }

    #[test]
    fn vcs_with_rates_below_one_cell_per_second_get_shares_of_the_memory() {
        let mut bench = bench(20, &[5; 2]);
        // The shares are 15 and 5 cells.
        for (vc, acr) in [(0, 0.375), (0, 0.375), (1, 0.125), (1, 0.125), (0, 0.375)] {
            bench.offer_at(vc, 5, acr);
        }
        assert_eq!(
            (bench.frames(0), bench.frames(1)),
            (vec![0, 1, 2], vec![1]),
            "one VC has an excess of 0 and the other an excess of 5"
        );
    }

    proptest! {
        #[test]
        fn shared_adaptive_discard_with_a_single_vc_acts_like_adaptive_discard_in_a_private_buffer(
            eb in 20u32..60,
            cells in 1u32..20,
            (f, lt) in (0.0f64..1.0, 1u32..5),
            operations in operations(1, 20),
        ) {
            let own =
                adaptive_discard::Config { reduction_factor: f, low_threshold: lt, ..adaptive_discard::Config::default() };
            let own = DiscardConfig::AdaptiveDiscard(own);
            let shared = DiscardConfig::SharedAdaptiveDiscard(Config { reduction_factor: f, low_threshold: lt });
            let mut benches = [
                Bench::new(own, Some(eb), Memory::PerVc, &[cells]),
                Bench::new(shared, Some(eb), Memory::Shared, &[cells]),
            ];
            for operation in operations {
                let operation = match operation {
                    Operation::Offer { vc, acr, .. } => Operation::Offer { vc, cells, acr },
                    other => other,
                };
                for bench in &mut benches {
                    bench.apply(operation);
                }
                let [own, shared] = &benches;
                prop_assert_eq!(own.buffer.packets.port_state(), shared.buffer.packets.port_state());
                prop_assert_eq!(own.buffer.state(Label::new(0)), shared.buffer.state(Label::new(0)));
            }
        }

        #[test]
        fn a_vc_within_its_share_of_the_memory_loses_no_packets_because_of_other_vcs(
            eb in 20u32..60,
            operations in operations(4, 20),
        ) {
            let mut bench = bench(eb, &[20; 4]);
            let mut acr = [0.0; 4];
            for operation in operations {
                let before = bench.buffer.packets.port_state().counters.raw;
                let arriving = match operation {
                    Operation::Offer { vc, acr: rate, .. } | Operation::Rate { vc, acr: rate } => {
                        acr[vc as usize] = rate;
                        Some(vc)
                    }
                    Operation::Take { .. } => None,
                };
                let held: Vec<u32> = (0..4).map(|vc| bench.whole_cells(vc)).collect();
                bench.apply(operation);
                let active = |vc: &usize| held[*vc] > 0 || arriving == Some(u32::try_from(*vc).unwrap());
                let total: f64 = (0..4).filter(active).map(|vc| acr[vc]).sum();
                for (vc, counters) in bench.buffer.packets.port_state().counters.into_iter().enumerate() {
                    if arriving != Some(u32::try_from(vc).unwrap()) && total > 0.0 {
                        let is_within = f64::from(held[vc]) <= f64::from(eb) * acr[vc] / total;
                        let lost = counters.lost() + counters.discarded() - before[vc].lost() - before[vc].discarded();
                        prop_assert!(!is_within || lost == 0, "VC {} lost {} cells", vc, lost);
                    }
                }
            }
        }
    }
}
