//! Adaptive Discard Algorithm for VCs that share one memory.
//!
//! Source: draft-jagan-e2e-traf-mgmt-00, section 5, names this as future work and says no more; the extension is ours and
//! is argued in `docs/design/edge-device.md`. Every VC has its own phase, `LD_ACR` and `P_CTR`; rate rule and way back to
//! phase 0 are those of [`super::adaptive_discard`]. Only what the source calls a full queue is new:
//!
//!     W + cells > EB        W: cells of all packets, those under way counted whole
//!     S_i = EB * ACR_i / sum of ACR_j over the VCs that have packets
//!     the VC that exceeds its share S_i most loses the packet at its front
//!
//! For one VC with packets of one length this is `adaptive_discard` to the last packet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::adaptive_discard::{AdaState, Phase, Thresholds, Vc};
use super::{Cause, Configure, Discard, Memory, Packets};
use crate::cell::Label;
use crate::error::Fault;

/// Adaptive Discard Algorithm for VCs that share one memory: when it is full, the VC that exceeds its share of it most
/// loses the packet at its front. Shares are proportional to ACR.
///
/// Source: draft-jagan-e2e-traf-mgmt-00, section 4.1; the extension is celltrain's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "SharedAdaptiveDiscard")]
pub struct Config {
    /// f: an ACR below this share of `LD_ACR` has fallen much, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expect" = "a share of a rate (0 to 1)"))]
    pub reduction_factor: f64,
    /// LT: packets below which a VC's queue is low.
    #[schemars(range(min = 1), extend("x-unit" = "packets"))]
    pub low_threshold: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { reduction_factor: 0.5, low_threshold: 6 }
    }
}

/// The algorithm with the state of every VC.
#[derive(Debug)]
pub struct SharedAdaptiveDiscard {
    thresholds: Thresholds,
    vcs: Vec<Vc>,
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
                vcs[victim as usize].drop_front(packets, victim, Cause::NoRoom);
            }
        });
    }

    /// A change of rate never costs another VC a packet.
    fn on_rate(&mut self, packets: &mut Packets, vc: Label) {
        self.evaluate(packets, vc, |vcs, packets| {
            if over_share(packets, vc, packets.longest(vc)) == Some(vc) {
                vcs[vc as usize].drop_front(packets, vc, Cause::NoRoom);
            }
        });
    }

    fn on_served(&mut self, vc: Label) {
        self.vcs[vc as usize].on_served();
    }

    fn on_put_back(&mut self, vc: Label) {
        self.vcs[vc as usize].on_put_back();
    }

    fn state(&self, vc: Label) -> Option<AdaState> {
        Some(self.vcs[vc as usize].state)
    }
}

impl SharedAdaptiveDiscard {
    /// ADA's evaluation; `make_room` is what a full queue brings about.
    fn evaluate(&mut self, packets: &mut Packets, vc: Label, make_room: impl FnOnce(&mut [Vc], &mut Packets)) {
        let i = vc as usize;
        let phase = self.vcs[i].state.phase;
        // The rate rule first: the packet it drops may be all the room that is missing.
        if phase == Phase::Zero && self.thresholds.rate_fell(self.vcs[i].state, packets, vc) {
            self.vcs[i].drop_front(packets, vc, Cause::RateFell);
        }
        make_room(&mut self.vcs, packets);
        match phase {
            Phase::Zero if self.vcs[i].state.phase == Phase::Zero => self.vcs[i].follow_up(packets.acr(vc)),
            Phase::Zero => {}
            Phase::One => self.thresholds.relax(&mut self.vcs[i], packets.ql(vc)),
        }
    }
}

/// The VC to lose a packet where the memory is too full for `cells` more of `vc`: the one that exceeds its share most of
/// those that exceed it and have a packet to lose. Of equals it is `vc`, else the first.
fn over_share(packets: &Packets, vc: Label, cells: u32) -> Option<Label> {
    let eb = f64::from(packets.capacity());
    if packets.all_whole_cells() + u64::from(cells) <= u64::from(packets.capacity()) {
        return None;
    }
    let is_active = |j| j == vc || packets.ql(j) > 0;
    let total: f64 = packets.vcs().filter(|&j| is_active(j)).map(|j| packets.acr(j)).sum();
    let active = f64::from(u32::try_from(packets.vcs().filter(|&j| is_active(j)).count()).expect("labels fit 24 bits"));
    // Y_i - S_i; where no VC may send all have the same share.
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
