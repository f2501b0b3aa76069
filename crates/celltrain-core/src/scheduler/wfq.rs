//! Weighted fair queuing of cells with self-clocked tags: a queue for each VC, served in proportion to weights.
//!
//! Source: Golestani 1994 (self-clocked fair queuing), `docs/mechanisms.md` 2.15, whose symbols F, v and `w_v` are
//! used. Differences from the source: only the differences between tags matter, so tags are rebased to a later `v_now`
//! before they grow too large. Only the tag of a queue's first cell is kept, and the other tags follow from it: while a
//! VC has cells waiting, `F_prev(v)` is not below `v_now`, so each tag is the previous one plus `1 / w_v`.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use std::ops::{Add, Sub};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Configure, Scheduler, Service, VcKind, Waiting};
use crate::arbiter::play;
use crate::error::Fault;
use crate::policy::PerVc;
use crate::units::gcd;

/// Weighted fair queuing: every VC has its own queue. The queues that have cells waiting share the link in proportion
/// to the weights of their VCs.
///
/// Source: Golestani, A self-clocked fair queueing scheme for broadband applications, 1994.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Wfq")]
pub struct Config {
    /// `w_v`: the weights of the VCs, a number or a table keyed by VC name. Only their ratios count, so guaranteed
    /// rates in any unit can be used.
    pub weights: PerVc,
}

impl Configure for Config {
    fn check(&self) -> Vec<Fault> {
        self.weights.check_weights()
    }

    fn per_vc(&self) -> Vec<(&'static str, &PerVc)> {
        vec![("weights", &self.weights)]
    }

    fn build(&self, vcs: &[VcKind<'_>]) -> Option<Service> {
        let names: Vec<&str> = vcs.iter().map(|vc| vc.name).collect();
        Some(service(&self.weights.resolve(&names)))
    }
}

/// Creates a queue for each VC, served in proportion to the given weights, by label.
pub(super) fn service(weights: &[f64]) -> Service {
    let steps = steps(weights);
    let queue_of = (0..weights.len()).collect();
    if steps.iter().all(|&step| step <= u64::MOST_STEP) {
        Service::new(weights.len(), queue_of, Wfq::<u64>::new(&steps))
    } else {
        Service::new(weights.len(), queue_of, Wfq::<u128>::new(&steps))
    }
}

/// The scheduler.
struct Wfq<N> {
    vcs: Vec<Vc<N>>,
    /// A tournament tree over the VCs, won by the smallest F. Ties go to the lower label. The overall winner is at
    /// index 1, and the second half contains the VCs themselves.
    tournament: Vec<N>,
    /// `v_now`: finishing tag F of the cell in service.
    v_now: N,
}

#[derive(Clone, Copy)]
struct Vc<N> {
    /// `1 / w_v`, in a unit in which the inverse weights of all VCs are whole numbers.
    step: N,
    /// F of the last cell sent, updated when the VC's queue becomes empty.
    previous: N,
}

/// An integer that represents a tag or a player in the tournament. A player is a VC with the F of its first waiting
/// cell. F is above the label's bits, so comparing integers compares F first and resolves ties by label.
trait Number: Copy + Ord + Add<Output = Self> + Sub<Output = Self> + Send + 'static {
    const ZERO: Self;
    /// Represents a VC without waiting cells in the tournament.
    const NO_PLAYER: Self;
    /// Upper limit of tags. All tags are lowered before one exceeds the limit.
    const MOST_TAG: Self;
    /// The largest step of any VC.
    const MOST_STEP: u128;

    /// Converts a step no larger than `MOST_STEP`.
    fn step(step: u128) -> Self;
    /// Shifts a tag to its position in a player.
    fn raised(self) -> Self;
    fn player(self, vc: usize) -> Self;
    fn tag(self) -> Self;
    fn vc(self) -> usize;
}

/// Number of bits of a cell's label.
const LABEL_BITS: u32 = 24;

macro_rules! numbers {
    ($($number:ident: $step_bits:literal,)*) => {
        $(impl Number for $number {
            const ZERO: Self = 0;
            const NO_PLAYER: Self = Self::MAX;
            const MOST_TAG: Self = 1 << (Self::BITS - LABEL_BITS - 1);
            const MOST_STEP: u128 = 1 << $step_bits;

            fn step(step: u128) -> Self {
                Self::try_from(step).expect("a step of virtual time has a limited number of bits")
            }

            #[inline(always)]
            fn raised(self) -> Self {
                self << LABEL_BITS
            }

            #[inline(always)]
            fn player(self, vc: usize) -> Self {
                self << LABEL_BITS | vc as Self
            }

            #[inline(always)]
            fn tag(self) -> Self {
                self >> LABEL_BITS
            }

            #[inline(always)]
            #[allow(clippy::cast_possible_truncation, reason = "the cast keeps the low bits on purpose")]
            fn vc(self) -> usize {
                self as usize & ((1 << LABEL_BITS) - 1)
            }
        })*
    };
}

// With steps of 2^28, tags are lowered about once every two thousand cells.
numbers! {
    u64: 28,
    u128: 64,
}

#[expect(
    clippy::arithmetic_side_effects,
    reason = "no overflow: tags are lowered before they reach the largest number"
)]
impl<N: Number> Wfq<N> {
    fn new(steps: &[u128]) -> Self {
        let leaves = steps.len().next_power_of_two();
        Self {
            vcs: steps.iter().map(|&step| Vc { step: N::step(step), previous: N::ZERO }).collect(),
            tournament: vec![N::NO_PLAYER; 2 * leaves],
            v_now: N::ZERO,
        }
    }

    /// Subtracts `v_now` from all tags, because only differences matter and no tag is below `v_now`.
    #[cold]
    fn lower_tags(&mut self) {
        let base = std::mem::replace(&mut self.v_now, N::ZERO);
        for Vc { previous, .. } in &mut self.vcs {
            *previous = (*previous).max(base) - base;
        }
        for player in self.tournament.iter_mut().filter(|player| **player != N::NO_PLAYER) {
            *player = *player - base.raised();
        }
    }
}

#[expect(
    clippy::arithmetic_side_effects,
    reason = "no overflow: tags are lowered before they reach the largest number"
)]
impl<N: Number> Scheduler for Wfq<N> {
    /// Computes the tag `F = max(F_prev(v), v_now) + 1 / w_v`.
    #[inline]
    fn on_backlog(&mut self, queue: usize) {
        let Vc { step, previous } = self.vcs[queue];
        play(&mut self.tournament, queue, (previous.max(self.v_now) + step).player(queue));
    }

    /// Computes the tag directly, because no other VC competes.
    fn serve_alone(&mut self, queue: usize, _queues: usize) {
        debug_assert!(self.tournament[1] == N::NO_PLAYER, "no queue has a cell");
        let Vc { step, previous } = &mut self.vcs[queue];
        self.v_now = (*previous).max(self.v_now) + *step;
        *previous = self.v_now;
        if self.v_now >= N::MOST_TAG {
            self.lower_tags();
        }
    }

    fn serve(&mut self, cells: u32, waiting: &mut impl Waiting) {
        for _ in 0..cells {
            let first = self.tournament[1];
            let queue = first.vc();
            self.v_now = first.tag();
            let next = if waiting.send_one(queue) {
                first + self.vcs[queue].step.raised()
            } else {
                self.vcs[queue].previous = self.v_now;
                N::NO_PLAYER
            };
            play(&mut self.tournament, queue, next);
            if self.v_now >= N::MOST_TAG {
                self.lower_tags();
            }
        }
    }
}

/// Returns `1 / w_v` in a common unit. Weights are read as exact decimal numbers, and the unit is one over their least
/// common multiple. If the results are too large for tags, they are rounded to one part in 2^32 of the heaviest VC's
/// step. Steps are still whole numbers, so no error accumulates.
fn steps(weights: &[f64]) -> Vec<u128> {
    exact_steps(weights).unwrap_or_else(|| {
        let heaviest = weights.iter().fold(0.0_f64, |a, &b| a.max(b));
        weights.iter().map(|w| rounded_step(heaviest / w)).collect()
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the ratio of weights is at least 1, and larger ratios saturate at 2^64"
)]
fn rounded_step(ratio: f64) -> u128 {
    (ratio.min(MOST_STEP as f64 / UNIT) * UNIT).round() as u128
}

#[expect(
    clippy::arithmetic_side_effects,
    reason = "the number of digits was counted; weights and divisors are positive"
)]
fn exact_steps(weights: &[f64]) -> Option<Vec<u128>> {
    let decimals: Vec<String> = weights.iter().map(f64::to_string).collect();
    let places = |text: &String| text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let most = decimals.iter().map(places).max().unwrap_or(0);
    let whole = |text: &String| -> Option<u128> {
        let digits = text.replace('.', "");
        let zeros = "0".repeat(most - places(text));
        (digits.len() + zeros.len() <= MOST_DIGITS).then(|| (digits + &zeros).parse().ok())?
    };
    let weights: Vec<u128> = decimals.iter().map(whole).collect::<Option<_>>()?;
    let divisor = weights.iter().fold(0, |a, &b| gcd(a, b));
    let multiple = weights.iter().try_fold(1u128, |a, &b| {
        let b = b / divisor;
        (a / gcd(a, b)).checked_mul(b).filter(|&multiple| multiple <= MOST_STEP)
    })?;
    Some(weights.iter().map(|w| multiple / (w / divisor)).collect())
}

/// Number of digits that always fit in 64 bits.
const MOST_DIGITS: usize = 19;
/// The heaviest VC's step if steps are rounded: 2^32.
const UNIT: f64 = 4_294_967_296.0;
/// The largest step, before and after rounding.
const MOST_STEP: u128 = u128::MOST_STEP;

#[cfg(test)]
pub(super) fn sample() -> Config {
    // Every VC in the tests has a weight: by name, by range or by default.
    Config { weights: PerVc::from([("vc1", 3.0), ("vc2-4", 2.5), ("default", 1.0)]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Label;
    use crate::port::CellQueues;
    use crate::rng::Stream;
    use crate::scheduler::Class;
    use crate::scheduler::conformance::{self, sent};

    fn queues(weights: &[f64]) -> CellQueues {
        let table = weights.iter().zip(0..).map(|(&w, i)| (format!("vc{i}"), w)).collect();
        let config = Config { weights: PerVc::ByName(table) };
        conformance::queues(&config, &vec![Class::Ubr; weights.len()])
    }

    #[test]
    fn wfq_virtual_time_increments_are_the_smallest_integers_inversely_proportional_to_weights() {
        assert_eq!(steps(&[1.0, 2.0, 3.0]), [6, 3, 2]);
        assert_eq!(steps(&[1.0, 2.0, 4.0]), [4, 2, 1], "the steps are no larger than needed");
        assert_eq!(steps(&[0.1, 0.25]), [5, 2]);
        assert_eq!(steps(&[149.76, 149.76]), [1, 1]);
        assert_eq!(
            steps(&[1e-30, 2e-30]),
            [2 << 32, 1 << 32],
            "the weights are rounded, because they have too many digits"
        );
        assert_eq!(steps(&[1e-300, 1e300]), [MOST_STEP, 1 << 32], "tags have room for every step");
    }

    #[test]
    fn wfq_serves_a_backlogged_vc_of_triple_weight_three_times_as_often() {
        let mut queues = queues(&[3.0, 1.0]);
        // The first VC's tags are 1, 2, 3, 4, ..., and the second's 3, 6, ...; if tags are equal, the first VC is
        // served first.
        assert_eq!(sent(&mut queues, &[0, 0, 0, 0, 0, 0, 0, 1, 1, 1], 8), [0, 0, 0, 1, 0, 0, 0, 1]);
    }

    #[test]
    fn backlogged_vcs_always_get_their_shares_under_wfq_within_one_cell_per_vc() {
        for weights in [&[1.0, 2.0, 3.0, 4.0][..], &[1.0, 1.0], &[0.37, 149.76, 17.0, 1e-3], &[1.0 / 3.0, 0.1, 7.7]] {
            let mut queues = queues(weights);
            for label in 0..u32::try_from(weights.len()).unwrap() {
                queues.put(label, 1_000_000);
            }
            let sum: f64 = weights.iter().sum();
            let mut served = vec![0u32; weights.len()];
            for slot in 1..=1_000_000 {
                served[usize::from(queues.pop().label())] += 1;
                if slot % 9973 == 0 {
                    for (&served, w) in served.iter().zip(weights) {
                        let due = f64::from(slot) * w / sum;
                        assert!(
                            (f64::from(served) - due).abs() <= weights.len() as f64,
                            "{weights:?}: {served} of {due} in {slot}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn subtracting_a_constant_from_all_wfq_virtual_times_keeps_the_service_order() {
        let steps = [1 << 28, (1 << 27) + 1, 12_345, 77_777_777];
        let all = || (0..steps.len()).collect();
        let mut narrow = CellQueues::new(Service::new(steps.len(), all(), Wfq::<u64>::new(&steps)));
        let mut wide = CellQueues::new(Service::new(steps.len(), all(), Wfq::<u128>::new(&steps)));
        let mut rng = Stream::new(1, "arrivals");
        let (mut waiting, mut passed) = (0, 0);
        // The 64-bit tags are lowered dozens of times, but the 128-bit tags never.
        for _ in 0..100_000 {
            if waiting == 0 {
                let label = Label::new(rng.below(4));
                narrow.serve_alone(label);
                wide.serve_alone(label);
                passed += 1;
            }
            for _ in 0..rng.below(3).min(20 - waiting) {
                let label = rng.below(4);
                narrow.put(label, 1);
                wide.put(label, 1);
                waiting += 1;
            }
            if waiting > 0 {
                assert_eq!(narrow.pop().label(), wide.pop().label());
                waiting -= 1;
            }
        }
        assert!(passed > 1000, "{passed} passed");
    }

    #[test]
    fn a_vc_that_was_idle_has_neither_credit_nor_debt_under_wfq() {
        let mut queues = queues(&[1.0, 1.0]);
        assert_eq!(sent(&mut queues, &[0; 6], 4), [0; 4]);
        // The VC does not get its four missed turns in a row, and does not wait until the other VC's backlog is gone.
        assert_eq!(sent(&mut queues, &[1; 4], 6), [0, 1, 0, 1, 1, 1]);
    }

    #[test]
    fn wfq_refuses_an_invalid_weight() {
        let weights = PerVc::from([("tcp1", 0.0)]);
        assert_eq!(Config { weights }.check()[0].key, "weights.tcp1");
    }
}
