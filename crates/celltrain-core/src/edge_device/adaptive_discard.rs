//! Adaptive Discard Algorithm (ADA): drops packets from the front when the queue is full or when the VC's ACR has
//! fallen considerably.
//!
//! Source: draft-jagan-e2e-traf-mgmt-00, section 4.1, whose symbols are kept; part of its pseudocode is lost and is
//! reconstructed in `docs/mechanisms.md` 5.1. The state diagram in its Figure 4 prints "Queue < LT" on the transition
//! to phase 1. Its text and pseudocode say instead that the queue must have at least LT packets, because a shorter one
//! causes no duplicate acknowledgements. Differences from the source: the algorithm runs at every arrival, before the
//! packet is admitted, and at every change of ACR, unless `evaluated_at` says otherwise. An evaluation that
//! enters phase 1 ends there. After a drop, the new QL is used. "QL = MQS" is read as at least MQS, since
//! packets differ in length. If the only packet is being transmitted, it cannot be dropped and nothing changes.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use typed_index_collections::TiVec;

use super::{Cause, Configure, Discard, Memory, Packets};
use crate::coverage::reached;
use crate::error::Fault;
use crate::index::Label;

/// Adaptive Discard Algorithm for VCs with separate buffers.
///
/// Source: draft-jagan-e2e-traf-mgmt-00, section 4.1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "AdaptiveDiscard")]
pub struct Config {
    /// f: ACR has fallen considerably if it is below f times `LD_ACR`, 0 to 1. The source gives no value.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expect" = "a share of a rate (0 to 1)"))]
    pub reduction_factor: f64,
    /// LT: number of packets below which the queue counts as low. The source says only "a few".
    #[schemars(range(min = 1), extend("x-unit" = "packets"))]
    pub low_threshold: u32,
    /// Times at which the algorithm is evaluated. The source does not state them.
    pub evaluated_at: EvaluatedAt,
}

impl Default for Config {
    fn default() -> Self {
        Self { reduction_factor: 0.5, low_threshold: DEFAULT_LT, evaluated_at: EvaluatedAt::default() }
    }
}

/// When the Adaptive Discard Algorithm evaluates rate and queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvaluatedAt {
    /// Evaluates at every arrival and every change of ACR. In both cases, a queue at MQS loses a packet.
    #[default]
    ArrivalsAndRates,
    /// Evaluates at every arrival and every change of ACR, but only an arrival removes a packet from a full queue.
    FullAtArrivals,
    /// Evaluates at arrivals only. After a fall of ACR, the next arrival drops the packet.
    Arrivals,
}

/// The algorithm and the state of every VC.
#[derive(Debug)]
pub struct AdaptiveDiscard {
    thresholds: Thresholds,
    evaluated_at: EvaluatedAt,
    vcs: TiVec<Label, Vc>,
}

/// State of one VC, with its own memory or a shared one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaState {
    /// Congestion Phase.
    pub phase: Phase,
    /// `LD_ACR`: ACR at the latest drop, or, in phase 0, the largest ACR since then, in cells per second.
    pub ld_acr: f64,
    /// `P_CTR`: queue length in packets at the latest drop, minus the packets served since.
    pub p_ctr: u32,
}

/// Congestion Phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Phase 0: the network is considered uncongested, and a packet is dropped if ACR falls.
    Zero,
    /// Phase 1: a packet was dropped recently, and further packets are dropped only if the buffer is full.
    One,
}

/// Implements the methods of [`Discard`] that only read or change the state of one VC in the field `$vcs`.
macro_rules! keep_state {
    ($vcs:ident) => {
        fn on_served(&mut self, vc: Label) {
            self.$vcs[vc].on_served();
        }

        fn on_put_back(&mut self, vc: Label) {
            self.$vcs[vc].on_put_back();
        }

        fn state(&self, vc: Label) -> Option<AdaState> {
            Some(self.$vcs[vc].state)
        }
    };
}
pub(super) use keep_state;

impl Configure for Config {
    type Discard = AdaptiveDiscard;

    fn memory(&self) -> Option<Memory> {
        Some(Memory::PerVc)
    }

    fn check(&self, mqs: Option<u32>) -> Vec<Fault> {
        self.thresholds().check(mqs)
    }

    #[expect(clippy::arithmetic_side_effects, reason = "no underflow: every packet has at least one cell")]
    fn build(&self, packets: &Packets) -> AdaptiveDiscard {
        let vc = |vc| Vc { mqs: packets.capacity() / packets.longest(vc), ..Vc::default() };
        AdaptiveDiscard {
            thresholds: self.thresholds(),
            evaluated_at: self.evaluated_at,
            vcs: packets.vcs().map(vc).collect(),
        }
    }
}

impl Config {
    fn thresholds(&self) -> Thresholds {
        Thresholds { f: self.reduction_factor, lt: self.low_threshold }
    }
}

impl Discard for AdaptiveDiscard {
    fn on_arrival(&mut self, packets: &mut Packets, vc: Label, _cells: u32) {
        self.evaluate(packets, vc, true);
    }

    fn on_rate(&mut self, packets: &mut Packets, vc: Label) {
        match self.evaluated_at {
            EvaluatedAt::ArrivalsAndRates => self.evaluate(packets, vc, true),
            EvaluatedAt::FullAtArrivals => self.evaluate(packets, vc, false),
            EvaluatedAt::Arrivals => {}
        }
    }

    keep_state!(vcs);
}

impl AdaptiveDiscard {
    /// Evaluates the algorithm. A packet is dropped because the queue is at MQS only if `full_counts`.
    fn evaluate(&mut self, packets: &mut Packets, vc: Label, full_counts: bool) {
        let v = &mut self.vcs[vc];
        let is_full = full_counts && packets.ql(vc) >= v.mqs;
        match v.state.phase {
            Phase::Zero => {
                if self.thresholds.rate_fell(v.state, packets, vc) {
                    v.drop_front(packets, vc, Cause::RateFell);
                } else if is_full {
                    v.drop_front(packets, vc, Cause::NoRoom);
                }
                v.follow_up(packets.acr(vc));
            }
            Phase::One => {
                if is_full {
                    v.drop_front(packets, vc, Cause::NoRoom);
                }
                self.thresholds.relax(v, packets.ql(vc));
            }
        }
    }
}

/// Default of LT, in packets.
pub(super) const DEFAULT_LT: u32 = 6;

/// The thresholds f and LT.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thresholds {
    pub(super) f: f64,
    pub(super) lt: u32,
}

impl Thresholds {
    pub(super) fn check(self, mqs: Option<u32>) -> Vec<Fault> {
        let mut faults = Vec::new();
        if !(0.0..=1.0).contains(&self.f) {
            faults.push(Fault::new("reduction_factor", self.f, "is not a share of a rate (0 to 1)"));
        }
        if self.lt == 0 {
            let problem = "must be at least 1; with 0 packets the queue would never be considered low";
            faults.push(Fault::new("low_threshold", self.lt, problem));
        }
        if let Some(mqs) = mqs.filter(|&mqs| self.lt > mqs) {
            // The message must also make sense to users who did not set the key.
            let own = if self.lt == DEFAULT_LT { ", so the default of low_threshold is too high" } else { "" };
            let problem = format!("must be at most {mqs}, the number of full packets that fit into the buffer{own}");
            faults.push(Fault::new("low_threshold", self.lt, problem));
        }
        faults
    }

    /// Returns whether ACR < f * `LD_ACR` and QL >= LT.
    pub(super) fn rate_fell(self, state: AdaState, packets: &Packets, vc: Label) -> bool {
        packets.acr(vc) < self.f * state.ld_acr && packets.ql(vc) >= self.lt
    }

    /// Returns to phase 0 if QL < LT and `P_CTR` = 0.
    pub(super) fn relax(self, v: &mut Vc, ql: u32) {
        if ql < self.lt && v.state.p_ctr == 0 {
            reached!(AdaReturnsToPhaseZero);
            v.state.phase = Phase::Zero;
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Vc {
    pub(super) state: AdaState,
    /// MQS: the number of packets that fit if every packet is as long as the VC's longest.
    mqs: u32,
    /// `P_CTR` before the latest packet was served, to undo the service.
    p_ctr_before: u32,
}

impl Default for Vc {
    /// Creates the state before the first packet; the first evaluation sets `LD_ACR` to ACR.
    fn default() -> Self {
        Self { state: AdaState { phase: Phase::Zero, ld_acr: 0.0, p_ctr: 0 }, mqs: u32::MAX, p_ctr_before: 0 }
    }
}

impl Vc {
    /// Drops a packet from the front if possible, and then sets the phase to 1.
    pub(super) fn drop_front(&mut self, packets: &mut Packets, vc: Label, cause: Cause) {
        if packets.drop_front(vc, cause) {
            reached!(AdaDropsAtRateFall if cause == Cause::RateFell);
            reached!(AdaDropsWhenFull if cause == Cause::NoRoom);
            self.state = AdaState { phase: Phase::One, ld_acr: packets.acr(vc), p_ctr: packets.ql(vc) };
        } else {
            reached!(AdaCannotDrop);
        }
    }

    /// In phase 0, raises `LD_ACR` to ACR if ACR is larger.
    pub(super) fn follow_up(&mut self, acr: f64) {
        self.state.ld_acr = self.state.ld_acr.max(acr);
    }

    pub(super) fn on_served(&mut self) {
        self.p_ctr_before = self.state.p_ctr;
        self.state.p_ctr = self.state.p_ctr.saturating_sub(1);
    }

    pub(super) fn on_put_back(&mut self) {
        self.state.p_ctr = self.p_ctr_before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::FrameNumber;
    use crate::edge_device::conformance::Bench;
    use crate::edge_device::{DiscardConfig, Packet};
    use Phase::{One, Zero};

    const VC: Label = Label::new(0);

    /// State before an evaluation, with `LD_ACR` = 100: phase, ACR, QL and `P_CTR`.
    type Before = (Phase, f64, u32, u32);
    /// State after the evaluation: phase, `LD_ACR`, QL and `P_CTR`.
    type After = (Phase, f64, u32, u32);

    /// Runs one evaluation with f = 0.5, LT = 3 and MQS = 5 (packets of 2 cells, EB = 10).
    fn evaluate((phase, acr, ql, p_ctr): Before) -> After {
        let mut packets = Packets::new(Some(10), Memory::PerVc, &[2]);
        let mut ada = Config { reduction_factor: 0.5, low_threshold: 3, ..Config::default() }.build(&packets);
        for frame in 0..ql {
            packets.admit_or_refuse(VC, Packet { frame: FrameNumber::new(frame), cells: 2, tagged: false });
        }
        packets.set_acr(VC, acr);
        ada.vcs[VC].state = AdaState { phase, ld_acr: 100.0, p_ctr };
        ada.on_rate(&mut packets, VC);
        let AdaState { phase, ld_acr, p_ctr } = ada.vcs[VC].state;
        (phase, ld_acr, packets.ql(VC), p_ctr)
    }

    #[test]
    fn tests_of_adaptive_discard_cover_every_state_transition_and_both_outcomes_of_every_condition() {
        #[rustfmt::skip]
        let table: [(&str, Before, After); 18] = [
            ("phase 0, ACR below f LD_ACR, QL equals LT",               (Zero,  49.0, 3, 0), (One,   49.0, 2, 2)),
            ("phase 0, ACR equals f LD_ACR",                            (Zero,  50.0, 3, 0), (Zero, 100.0, 3, 0)),
            ("phase 0, low queue: no drop, although Figure 4 prints one", (Zero,  49.0, 2, 0), (Zero, 100.0, 2, 0)),
            ("0: empty queue",                                (Zero,   0.0, 0, 0), (Zero, 100.0, 0, 0)),
            ("phase 0, QL is one below MQS",                           (Zero, 100.0, 4, 0), (Zero, 100.0, 4, 0)),
            ("0: QL at MQS",                                  (Zero, 100.0, 5, 0), (One,  100.0, 4, 4)),
            ("phase 0, QL equals MQS, ACR is somewhat lower",              (Zero,  60.0, 5, 0), (One,   60.0, 4, 4)),
            ("phase 0, both conditions hold, one packet is dropped (A-33)",           (Zero,  49.0, 5, 0), (One,   49.0, 4, 4)),
            ("phase 0, QL equals MQS, ACR is higher",                      (Zero, 120.0, 5, 0), (One,  120.0, 4, 4)),
            ("0: ACR higher",                                 (Zero, 120.0, 1, 0), (Zero, 120.0, 1, 0)),
            ("phase 1, a fall of ACR drops no packet",                (One,   10.0, 4, 1), (One,  100.0, 4, 1)),
            ("1: QL at MQS",                                  (One,   10.0, 5, 0), (One,   10.0, 4, 4)),
            ("phase 1, QL equals MQS, P_CTR restarts",               (One,  120.0, 5, 2), (One,  120.0, 4, 4)),
            ("phase 1, low queue, P_CTR is 0",                      (One,  100.0, 2, 0), (Zero, 100.0, 2, 0)),
            ("phase 1, QL equals LT, P_CTR is 0",                       (One,  100.0, 3, 0), (One,  100.0, 3, 0)),
            ("phase 1, low queue, P_CTR is above 0",                   (One,  100.0, 2, 1), (One,  100.0, 2, 1)),
            ("phase 1, LD_ACR does not change (A-37)",              (One,  120.0, 2, 1), (One,  100.0, 2, 1)),
            ("after a return to phase 0, rules apply from the next evaluation on", (One,  120.0, 0, 0), (Zero, 100.0, 0, 0)),
        ];
        for (row, before, after) in table {
            assert_eq!(evaluate(before), after, "{row}");
        }
    }

    fn bench(eb: u32, cells: u32) -> Bench {
        bench_evaluated_at(EvaluatedAt::default(), eb, cells)
    }

    fn bench_evaluated_at(evaluated_at: EvaluatedAt, eb: u32, cells: u32) -> Bench {
        let config = Config { evaluated_at, ..Config::default() };
        Bench::new(DiscardConfig::AdaptiveDiscard(config), Some(eb), Memory::PerVc, &[cells])
    }

    #[test]
    fn after_a_rate_change_the_number_of_dropped_packets_depends_on_when_the_queue_is_sampled() {
        // MQS = 15. Columns: packets; new ACR relative to the old one; packets left immediately afterwards; packets
        // lost after the next arrival (by the rate rule, and for lack of room).
        type Row = (u32, f64, usize, (u64, u64));
        let rows: [(EvaluatedAt, [Row; 3]); 3] = [
            (EvaluatedAt::ArrivalsAndRates, [(15, 0.9, 14, (0, 1)), (15, 0.4, 14, (1, 0)), (14, 0.4, 13, (1, 0))]),
            (EvaluatedAt::FullAtArrivals, [(15, 0.9, 15, (0, 1)), (15, 0.4, 14, (1, 0)), (14, 0.4, 13, (1, 0))]),
            (EvaluatedAt::Arrivals, [(15, 0.9, 15, (0, 1)), (15, 0.4, 15, (1, 0)), (14, 0.4, 14, (1, 0))]),
        ];
        for (evaluated_at, rows) in rows {
            for (packets, share, at_once, lost) in rows {
                let mut bench = bench_evaluated_at(evaluated_at, 500, 32);
                bench.offer_many(packets, 32);
                bench.buffer.on_rate(VC, Bench::ACR * share);
                assert_eq!(bench.frames(0).len(), at_once, "{evaluated_at:?}: {packets} packets, {share} of ACR");
                bench.offer_at(0, 32, Bench::ACR * share);
                let counters = bench.buffer.packets.vc_counters(VC);
                assert_eq!((counters.discarded_frames, counters.cut_frames), lost, "{evaluated_at:?}");
                assert_eq!(bench.frames(0).len(), packets as usize, "the next packet takes the free place");
            }
        }
    }

    #[test]
    fn the_largest_queue_of_an_edge_device_is_the_number_of_whole_packets_that_fit() {
        for (eb, cells, mqs) in [(500, 32, 15), (500, 33, 15), (1000, 32, 31), (1000, 33, 30), (33, 33, 1)] {
            let mut bench = bench(eb, cells);
            bench.offer_many(mqs, cells);
            assert_eq!(bench.buffer.packets.vc_counters(VC).lost(), 0, "{mqs} packets of {cells} cells fit {eb}");
            bench.offer(0, cells);
            assert_eq!(
                bench.frames(0),
                (1..=mqs).collect::<Vec<_>>(),
                "the next packet displaces the packet at the front"
            );
            assert_eq!(bench.buffer.packets.vc_counters(VC).lost_pushed_out, u64::from(cells));
            assert_eq!(bench.buffer.state(VC).map(|state| state.p_ctr), Some(mqs - 1));
        }
    }

    #[test]
    fn after_a_rate_decrease_adaptive_discard_drops_only_one_packet_before_the_queue_has_drained() {
        let mut bench = bench(500, 32);
        bench.offer_many(8, 32);
        bench.buffer.on_rate(VC, Bench::ACR * 0.4);
        assert_eq!(bench.frames(0), [1, 2, 3, 4, 5, 6, 7]);
        let counters = bench.buffer.packets.vc_counters(VC);
        assert_eq!((counters.discarded_frame, counters.discarded_frames, counters.lost()), (32, 1, 0));
        let phase_and_counter = |bench: &Bench| bench.buffer.state(VC).map(|state| (state.phase, state.p_ctr));
        assert_eq!(phase_and_counter(&bench), Some((One, 7)));
        for served in 1..=7 {
            bench.buffer.on_rate(VC, 1.0);
            bench.buffer.take(VC, 31);
            assert_eq!(
                phase_and_counter(&bench),
                Some((One, 8 - served)),
                "a packet counts as served when its last cell has left"
            );
            bench.buffer.take(VC, 1);
            assert_eq!(phase_and_counter(&bench), Some((One, 7 - served)));
        }
        bench.buffer.on_rate(VC, 1.0);
        assert_eq!(phase_and_counter(&bench), Some((Zero, 0)));
        assert_eq!(bench.buffer.packets.vc_counters(VC).discarded_frames, 1);
    }

    #[test]
    fn an_edge_device_counts_the_packet_in_transmission_as_queued_and_never_drops_it() {
        let mut bench = bench(500, 32);
        bench.offer_many(15, 32);
        bench.buffer.take(VC, 31);
        assert_eq!(bench.buffer.packets.ql(VC), 15, "one cell waits");
        bench.offer(0, 32);
        assert_eq!((bench.frames(0)[..2].to_vec(), bench.buffer.packets.ql(VC)), (vec![0, 2], 15));
        bench.buffer.take(VC, 1);
        assert_eq!(bench.buffer.packets.ql(VC), 14, "none does");
    }
}
