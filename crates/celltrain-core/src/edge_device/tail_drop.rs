//! Tail drop: a packet that does not fit in the buffer is refused.
//!
//! Source: draft-jagan-e2e-traf-mgmt-00, sections 3 and 4.2 (its ABR-ER, which does not name the algorithm);
//! `docs/mechanisms.md` 5. Differences from the source: none known. As in an IP queue, whole packets are refused, not
//! single cells.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Configure, Discard, Packets};
use crate::index::Label;

/// Tail drop: a packet is refused if it does not fit into the buffer. It has no parameters.
///
/// Source: draft-jagan-e2e-traf-mgmt-00, section 4.2.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "EdgeTailDrop")]
pub struct Config {}

/// Tail drop does nothing, because the buffer already refuses packets that do not fit.
#[derive(Debug)]
pub struct TailDrop;

impl Configure for Config {
    type Discard = TailDrop;

    fn build(&self, _packets: &Packets) -> TailDrop {
        TailDrop
    }
}

impl Discard for TailDrop {
    fn on_arrival(&mut self, _packets: &mut Packets, _vc: Label, _cells: u32) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge_device::conformance::Bench;
    use crate::edge_device::{DiscardConfig, Memory};

    #[test]
    fn tail_drop_accepts_a_packet_that_needs_exactly_the_free_cells() {
        let mut bench = Bench::new(DiscardConfig::TailDrop(Config {}), Some(70), Memory::PerVc, &[32, 32]);
        bench.offer(0, 32);
        bench.offer(0, 32);
        bench.offer(0, 7);
        assert_eq!(bench.frames(0), [0, 1], "64 + 7 > 70");
        bench.offer(0, 6);
        bench.offer(1, 32);
        assert_eq!(
            (bench.frames(0), bench.frames(1)),
            (vec![0, 1, 3], vec![0]),
            "the packets of the other VC keep their places"
        );
        let counters = bench.buffer.packets.vc_counters(Label::new(0));
        assert_eq!((counters.lost_overflow, counters.cut_frames, counters.lost_pushed_out), (7, 1, 0));
    }

    #[test]
    fn an_edge_device_frees_the_buffer_space_shared_by_all_vcs_cell_by_cell() {
        let mut bench = Bench::new(DiscardConfig::TailDrop(Config {}), Some(70), Memory::Shared, &[32, 32]);
        bench.offer(0, 32);
        bench.offer(1, 32);
        bench.buffer.take(Label::new(1), 25);
        bench.offer(0, 32);
        assert_eq!(bench.buffer.packets.occupancy(), 39, "32 + 7 + 32 > 70");
        bench.buffer.take(Label::new(1), 1);
        bench.offer(0, 32);
        assert_eq!(
            (bench.frames(0), bench.buffer.packets.occupancy(), bench.buffer.packets.max_queue()),
            (vec![0, 2], 70, 70)
        );
    }
}
