//! Guaranteed rate: other classes are served before UBR, but UBR gets a minimum share of the link.
//!
//! Source: ATM Forum 97-0424, as recalled in `docs/mechanisms.md` 2.14; its symbol g is used. Differences from the
//! source: time is counted in cells sent, so the credit does not change while the link is idle (it could have grown by
//! one cell at most). The credit does not fall below 0: UBR does not pay for cells that it sends while no other class
//! has any.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Class, Configure, Scheduler, Service, VcKind, Waiting};
use crate::arbiter::{ONE, billionths};
use crate::coverage::reached;

/// Guaranteed rate: cells of classes `cbr` and `vbr` are sent before those of `ubr`, but `ubr` gets at least a given
/// share of the link while it has cells waiting. Both groups are first in, first out.
///
/// Source: ATM Forum 97-0424.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "GuaranteedRate")]
pub struct Config {
    /// g: the minimum share of the link for UBR while it has cells waiting, 0 to 1, in whole billionths.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expect" = "a share of the link (0 to 1)"))]
    pub share: f64,
}

impl Configure for Config {
    fn by_class(&self) -> bool {
        true
    }

    fn build(&self, vcs: &[VcKind<'_>]) -> Option<Service> {
        let queue_of = vcs.iter().map(|vc| if vc.class == Class::Ubr { UBR } else { OTHERS }).collect();
        Some(Service::new(2, queue_of, GuaranteedRate { g: billionths(self.share.clamp(0.0, 1.0)), credit: 0 }))
    }
}

/// Indices of the two queues.
const OTHERS: usize = 0;
const UBR: usize = 1;

/// Credit required to send one cell.
const CELL: u64 = ONE;

/// The scheduler.
struct GuaranteedRate {
    /// g: growth of the credit per cell time.
    g: u64,
    /// Credit that UBR has accumulated.
    credit: u64,
}

#[expect(clippy::arithmetic_side_effects, reason = "no overflow: the credit is at most two cells")]
impl Scheduler for GuaranteedRate {
    fn serve(&mut self, cells: u32, waiting: &mut impl Waiting) {
        for _ in 0..cells {
            // The limit is slightly above one cell, so that no credit is lost in the step in which the credit reaches
            // one cell.
            self.credit = (self.credit + self.g).min(CELL + self.g);
            let queue = if waiting.cells(UBR) > 0 && (self.credit >= CELL || waiting.cells(OTHERS) == 0) {
                reached!(GuaranteedRateUsed if waiting.cells(OTHERS) > 0);
                self.credit = self.credit.saturating_sub(CELL);
                UBR
            } else {
                OTHERS
            };
            waiting.send(queue, 1);
        }
    }
}

#[cfg(test)]
pub(super) fn sample() -> Config {
    Config { share: 0.3 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::CellQueues;
    use crate::rng::Stream;
    use crate::scheduler::conformance::{self, sent};

    fn queues(share: f64) -> CellQueues {
        conformance::queues(&Config { share }, &[Class::Vbr, Class::Ubr])
    }

    fn backlogged(share: f64, cells: u32) -> CellQueues {
        let mut queues = queues(share);
        for label in [0, 1] {
            queues.put(label, cells);
        }
        queues
    }

    #[test]
    fn ubr_gets_exactly_its_guaranteed_share_of_cells_if_another_class_is_backlogged() {
        for share in [0.0, 0.1, 0.25, 1.0 / 3.0, 0.5, 0.999, 1.0] {
            let mut queues = backlogged(share, 200_000);
            let ubr = (0..100_000).filter(|_| queues.pop().label().number() == 1).count();
            assert!((ubr as f64 - share * 1e5).abs() <= 1.0, "{share}: {ubr}");
        }
    }

    #[test]
    fn every_fifth_cell_is_a_ubr_cell_if_ubr_is_guaranteed_a_fifth_of_the_link() {
        assert_eq!(sent(&mut backlogged(0.2, 20), &[], 10), [0, 0, 0, 0, 1, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn backlogged_ubr_always_gets_its_guaranteed_share() {
        let mut rng = Stream::new(1, "test");
        for share in [0.05, 0.3, 0.8] {
            let mut queues = queues(share);
            queues.put(1, 100_000);
            let mut vbr = 0u32;
            let (mut slots, mut ubr, mut least) = (0u32, 0u32, 0.0_f64);
            for _ in 0..50_000 {
                // The higher classes send bursts.
                if vbr == 0 && rng.below(50) == 0 {
                    vbr = 1 + rng.below(200);
                    queues.put(0, vbr);
                }
                let cell = queues.pop();
                slots += 1;
                ubr += cell.label().number();
                vbr -= 1 - cell.label().number();
                // In every interval of slots, UBR is at most one cell behind its share.
                let lead = f64::from(ubr) - share * f64::from(slots);
                assert!(lead > least - 1.000_001, "{share}: {slots}");
                least = least.max(lead);
            }
        }
    }

    #[test]
    fn vbr_is_not_compensated_for_time_in_which_it_was_idle_and_ubr_used_the_link() {
        let mut queues = queues(0.5);
        assert_eq!(sent(&mut queues, &[1; 10], 10), [1; 10]);
        assert_eq!(sent(&mut queues, &[0, 0, 0, 0, 1, 1, 1], 6), [0, 1, 0, 1, 0, 1]);
    }
}
