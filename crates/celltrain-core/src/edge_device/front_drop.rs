//! Front drop: packets at the head of the queue are dropped to make room for an arriving packet.
//!
//! Source: draft-jagan-e2e-traf-mgmt-00, section 4.2 (ABR-ER with FD), after Lakshman, Neidhardt and Ott 1996;
//! `docs/mechanisms.md` 5, A-10. TCP detects the loss one queueing delay earlier. Differences from the source: in a
//! shared memory, which the source does not cover, the arriving packet's own VC loses packets first, then the VC with
//! the most cells waiting. If drops cannot make enough room, the packet is refused and nothing is dropped.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Cause, Configure, Discard, Memory, Packets};
use crate::coverage::reached;
use crate::index::Label;

/// Front drop: whole packets are dropped from the head of the queue until the arriving one fits. A packet being
/// transmitted is never dropped. It has no parameters.
///
/// Source: draft-jagan-e2e-traf-mgmt-00, section 4.2.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "EdgeFrontDrop")]
pub struct Config {}

/// The front drop algorithm, which has no state.
#[derive(Debug)]
pub struct FrontDrop;

impl Configure for Config {
    type Discard = FrontDrop;

    fn build(&self, _packets: &Packets) -> FrontDrop {
        FrontDrop
    }
}

impl Discard for FrontDrop {
    fn on_arrival(&mut self, packets: &mut Packets, vc: Label, cells: u32) {
        if !packets.can_fit(vc, cells) {
            reached!(PacketCannotFit);
            return;
        }
        while !packets.fits(vc, cells) {
            if !packets.drop_front(vc, Cause::NoRoom) {
                let longest = longest_other(packets).expect(
                    "other packets can be dropped for a packet that is no \
                                                             larger than the buffer",
                );
                reached!(PacketDroppedForOther);
                packets.drop_front(longest, Cause::NoRoom);
            }
        }
    }
}

/// Returns the VC with the most waiting cells among VCs with a droppable packet; in a tie, the first of these VCs.
fn longest_other(packets: &Packets) -> Option<Label> {
    debug_assert_eq!(packets.memory(), Memory::Shared, "a private buffer has only one VC");
    packets.vcs().filter(|&vc| packets.can_drop(vc)).min_by_key(|&vc| std::cmp::Reverse(packets.cells(vc)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge_device::DiscardConfig;
    use crate::edge_device::conformance::Bench;

    fn bench(eb: u32, memory: Memory) -> Bench {
        Bench::new(DiscardConfig::FrontDrop(Config {}), Some(eb), memory, &[32; 3])
    }

    #[test]
    fn front_drop_removes_the_oldest_packets_until_the_new_packet_fits() {
        let mut bench = bench(20, Memory::PerVc);
        bench.offer_many(4, 5);
        bench.offer(0, 6);
        assert_eq!(bench.frames(0), [2, 3, 4]);
        let counters = bench.buffer.packets.vc_counters(Label::new(0));
        assert_eq!((counters.lost_pushed_out, counters.cut_frames, counters.lost_overflow), (10, 2, 0));
    }

    #[test]
    fn front_drop_keeps_the_packet_in_transmission_and_removes_the_next_packet() {
        for (taken, put_back, left) in [(1, 0, [0, 2, 3]), (10, 10, [1, 2, 3])] {
            let mut bench = bench(20, Memory::PerVc);
            bench.offer(0, 10);
            bench.offer_many(2, 5);
            bench.buffer.take(Label::new(0), taken);
            if put_back > 0 {
                bench.buffer.untake(Label::new(0), put_back);
            }
            bench.offer(0, 4);
            assert_eq!(bench.frames(0), left, "{put_back} of {taken} cells were put back");
        }
    }

    #[test]
    fn front_drop_drops_no_waiting_packet_for_a_packet_larger_than_the_whole_buffer() {
        let mut bench = bench(20, Memory::PerVc);
        bench.offer(0, 15);
        bench.offer(0, 5);
        bench.buffer.take(Label::new(0), 2);
        bench.offer(0, 8);
        assert_eq!(bench.frames(0), [0, 1], "13 stay, and 13 + 8 > 20");
        bench.offer(0, 7);
        assert_eq!(bench.frames(0), [0, 3]);
    }

    #[test]
    fn front_drop_removes_packets_of_the_same_vc_before_those_of_the_longest_queue() {
        let mut bench = bench(30, Memory::Shared);
        bench.offer(0, 4);
        bench.offer(1, 8);
        bench.offer(2, 9);
        bench.offer(2, 9);
        bench.offer(0, 6);
        assert_eq!((bench.frames(0), bench.frames(1), bench.frames(2)), (vec![1], vec![0], vec![1]));
        bench.offer(0, 12);
        assert_eq!((bench.frames(0), bench.frames(1), bench.frames(2)), (vec![2], vec![0], vec![1]));
    }

    #[test]
    fn front_drop_removes_a_packet_from_the_first_queue_if_queues_are_equally_long() {
        let mut bench = bench(20, Memory::Shared);
        bench.offer(2, 10);
        bench.offer(1, 10);
        bench.offer(0, 1);
        assert_eq!((bench.frames(1).len(), bench.frames(2).len()), (0, 1));
    }
}
