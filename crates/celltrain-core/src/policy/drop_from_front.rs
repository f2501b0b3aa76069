//! Drop from front: a cell that finds no room pushes out the waiting cell that would be sent next.
//!
//! Source: Lakshman, Neidhardt and Ott 1996; `docs/mechanisms.md` 2.9. The receiver notices the loss earlier, by the
//! time that the buffer takes to drain. After a front drop, the rest of that frame is not sent either, because the
//! fragments would be useless. Differences from the source: the frame's last cell stays, and a last cell is pushed out
//! only when all waiting cells are last cells (the paper does not mention AAL5 frames; losing a delimiter would damage
//! the next frame too).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AdmitAll, Configure, Overflow};

/// Drop from front: a cell that finds no room pushes out the waiting cell that would be sent next, together with the
/// waiting rest of its frame except the last cell. It has no parameters.
///
/// Source: Lakshman, Neidhardt and Ott 1996.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DropFromFront")]
pub struct Config {}

impl Configure for Config {
    type Policy = AdmitAll;

    fn build(&self, _capacity: u32, _vcs: &[&str]) -> AdmitAll {
        AdmitAll { overflow: Overflow::PushOutFront }
    }
}

#[cfg(any(test, feature = "samples"))]
pub(super) fn sample(_capacity: u32) -> Config {
    Config {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Cell;
    use crate::policy::bench::Bench;

    #[test]
    fn drop_from_front_removes_the_frame_at_the_head_of_the_queue_except_its_last_cell() {
        let mut bench = Bench::new(&Config {}, 5, 2);
        bench.offer_frame(0, 3);
        bench.offer_frame(1, 2);
        bench.offer_frame(1, 1);
        let waiting: Vec<_> =
            bench.port.waiting().map(|c| (c.label().number(), c.frame.number(), c.last_cell())).collect();
        assert_eq!(waiting, [(0, 0, true), (1, 0, false), (1, 0, true), (1, 1, true)]);
        assert_eq!(bench.port.counters().lost_pushed_out, 2);
    }

    #[test]
    fn once_drop_from_front_has_removed_a_cell_later_cells_of_the_frame_are_refused() {
        let mut bench = Bench::new(&Config {}, 2, 2);
        bench.offer_cell(0, 0, false);
        bench.offer_cell(0, 0, false);
        bench.offer_cell(1, 0, true);
        bench.offer_cell(0, 0, false);
        assert_eq!(bench.port.occupancy(), 1, "the next cell of a cut frame is refused although there is room");
        bench.offer_cell(0, 0, true);
        assert_eq!(bench.port.occupancy(), 2, "the last cell of a cut frame is admitted");
        assert_eq!(bench.port.counters().discarded_remainder, 1);
    }

    #[test]
    fn under_drop_from_front_an_arriving_frame_may_push_out_waiting_cells_of_the_same_frame() {
        let mut bench = Bench::new(&Config {}, 2, 1);
        bench.offer_frame(0, 4);
        let waiting: Vec<_> = bench.port.waiting().map(Cell::last_cell).collect();
        assert_eq!(waiting, [true], "only the last cell of the frame is left");
    }

    #[test]
    fn drop_from_front_removes_the_oldest_cell_if_only_last_cells_are_queued() {
        let mut bench = Bench::new(&Config {}, 2, 1);
        for _ in 0..3 {
            bench.offer_frame(0, 1);
        }
        let waiting: Vec<_> = bench.port.waiting().map(|c| c.frame.number()).collect();
        assert_eq!(waiting, [1, 2]);
    }
}
