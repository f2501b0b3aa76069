use typed_index_collections::TiSlice;

use super::*;
use crate::cell::tests::cell;
use crate::marking::MarkingConfig;
use crate::policy::PolicyConfig;
use crate::policy::{drop_from_front, epd, tail_drop};

/// Returns a port crossed by two VCs.
fn port(policy: impl Into<PolicyConfig>, capacity: u32) -> Port {
    let policy = policy.into().build(Some(capacity), &["a", "b"]);
    Port::new(Some(capacity), 2, policy, Stream::new(1, "test"))
}

fn merging_port(capacity: u32) -> Port {
    let policy = PolicyConfig::TailDrop(tail_drop::Config {}).build(Some(capacity), &["a", "b", "c"]);
    // The third VC crosses the port but does not merge.
    Port::new(Some(capacity), 3, policy, Stream::new(1, "test")).merging(TiSlice::from_ref(&[true, true, false]))
}

fn sent(port: &mut Port) -> Vec<(u32, u32)> {
    std::iter::from_fn(|| port.take()).map(|cell| (cell.label().number(), cell.frame.number())).collect()
}

#[test]
fn merged_vcs_send_whole_frames_in_the_order_in_which_their_last_cells_arrived() {
    let mut port = merging_port(100);
    // Cells of A and B alternate, and B's frame is complete first. C does not wait.
    for (label, last) in [(0, false), (1, false), (2, false), (0, false), (1, true), (2, true), (0, true)] {
        assert!(port.offer(cell(label, 7, last)));
    }
    assert_eq!(port.occupancy(), 7);
    assert_eq!(sent(&mut port), [(2, 7), (1, 7), (1, 7), (2, 7), (0, 7), (0, 7), (0, 7)]);
}

#[test]
fn a_merge_point_holds_a_frame_until_its_last_cell_arrives() {
    let mut port = merging_port(100);
    port.offer(cell(0, 1, false));
    assert_eq!(port.occupancy(), 1);
    assert_eq!(port.take(), None);
    port.offer(cell(0, 1, true));
    assert_eq!(port.take(), Some(cell(0, 1, false)));
    assert_eq!(port.take(), Some(cell(0, 1, true)));
}

#[test]
fn a_merge_point_discards_a_whole_frame_if_one_of_its_cells_does_not_fit() {
    let mut port = merging_port(3);
    for (label, last) in [(0, false), (1, false), (0, false), (1, false), (1, true), (0, true)] {
        port.offer(cell(label, 1, last));
    }
    // The second cell of B finds three cells waiting. The first cell of B is also discarded, which leaves room for the
    // end of A's frame.
    assert_eq!(sent(&mut port), [(0, 1); 3]);
    let of_b = port.vc_counters().nth(1).unwrap();
    assert_eq!((of_b.lost_overflow, of_b.lost_pushed_out, of_b.discarded_remainder, of_b.cut_frames), (1, 1, 1, 1));
}

/// Uses tail drop, which admits every frame, so frames lose cells only because the buffer is full.
#[test]
fn each_frame_that_loses_cells_to_a_full_buffer_is_counted_once() {
    let mut port = port(tail_drop::Config {}, 2);
    // Two of the first frame's four cells find room, and none of the second frame's two. The third frame, of the other
    // VC, loses its only cell. Then one cell is sent, and the first of the fourth frame's two cells is admitted.
    for (label, frame, last) in [(0, 1, false), (0, 1, false), (0, 1, false), (0, 1, true), (0, 2, false), (0, 2, true)]
    {
        assert_eq!(port.offer(cell(label, frame, last)), port.counters().offered <= 2);
    }
    assert!(!port.offer(cell(1, 1, true)));
    assert!(port.take().is_some());
    assert!(port.offer(cell(0, 3, false)) && !port.offer(cell(0, 3, true)));
    // After the damaged frame, the port admits whole frames again.
    assert_eq!([port.take(), port.take()].map(|cell| cell.map(|cell| cell.frame.number())), [Some(1), Some(3)]);
    assert!(port.offer(cell(0, 4, false)) && port.offer(cell(0, 4, true)));
    let counters: Vec<_> = port.vc_counters().collect();
    assert_eq!(
        counters,
        [
            // 4 + 2 + 2 + 2 cells arrived. Of frames 1, 2 and 3, 2 + 2 + 1 cells were lost, and two cells are waiting.
            PortCounters { offered: 10, forwarded: 3, lost_overflow: 5, cut_frames: 3, ..PortCounters::default() },
            PortCounters { offered: 1, lost_overflow: 1, cut_frames: 1, ..PortCounters::default() },
        ]
    );
}

#[test]
fn a_full_buffer_drops_ecn_capable_packets_too() {
    for capable in [true, false] {
        let policy = PolicyConfig::TailDrop(tail_drop::Config {}).build(Some(2), &["a"]);
        let policy = MarkingConfig::step(2.into()).dropping(policy, Some(2));
        let mut port = Port::new(Some(2), 1, Box::new(policy), Stream::new(1, "test"));
        let entered = [1, 2, 3].map(|frame| port.offer(cell(0, frame, true).with_capable(capable)));
        assert_eq!((entered, port.counters().lost_overflow), ([true, true, false], 1), "{capable}");
    }
}

#[test]
fn drop_from_front_counts_removed_cells_and_frames_and_keeps_the_last_cell_of_each_frame() {
    let mut port = port(drop_from_front::Config {}, 4);
    let waits = |port: &Port| {
        port.waiting().map(|cell| (cell.label().number(), cell.frame.number(), cell.last_cell())).collect::<Vec<_>>()
    };
    let mut offer = |cells: &[(u32, u32, bool)]| {
        for &(label, frame, last) in cells {
            port.offer(cell(label, frame, last));
        }
        (waits(&port), port.per_vc().raw.to_vec(), port.active_vcs())
    };
    // A's frame of three cells arrives, and then the first cell of B's frame. The last cell of B's frame pushes out the
    // two cells that do not end A's frame.
    let found = offer(&[(0, 0, false), (0, 0, false), (0, 0, true), (1, 0, false), (1, 0, true)]);
    assert_eq!(found, (vec![(0, 0, true), (1, 0, false), (1, 0, true)], vec![1, 2], 2));
    // B's next frame has two cells. The last of them pushes out the first cell of B's frame 0.
    let found = offer(&[(1, 1, false), (1, 1, true)]);
    assert_eq!(found, (vec![(0, 0, true), (1, 0, true), (1, 1, false), (1, 1, true)], vec![1, 3], 2));
    // The first cell of B's frame 2 pushes out the first cell of frame 1. The second cell of frame 2 pushes out the
    // first cell of frame 2. Frame 2 is still arriving, so its second cell is also discarded.
    let found = offer(&[(1, 2, false), (1, 2, false)]);
    assert_eq!(found, (vec![(0, 0, true), (1, 0, true), (1, 1, true)], vec![1, 2], 2));
    // A's next frame is unaffected: its single cell finds room. The last cell of frame 2 finds no room, and no cell
    // that it could push out.
    let found = offer(&[(0, 1, true), (1, 2, true)]);
    assert_eq!(found, (vec![(0, 0, true), (1, 0, true), (1, 1, true), (0, 1, true)], vec![2, 2], 2));
    let counters: Vec<_> = port.vc_counters().collect();
    assert_eq!(
        counters,
        [
            PortCounters { offered: 4, lost_pushed_out: 2, cut_frames: 1, ..PortCounters::default() },
            // Seven of B's cells arrived. One cell each of frames 0, 1 and 2 was pushed out, one was discarded as a
            // remainder, and one found no room.
            PortCounters {
                offered: 7,
                lost_pushed_out: 3,
                discarded_remainder: 1,
                lost_overflow: 1,
                cut_frames: 3,
                ..PortCounters::default()
            },
        ]
    );
}

#[test]
fn cells_of_refused_frames_are_counted_separately_from_cells_lost_at_a_full_buffer() {
    let mut port = port(epd::Config { threshold: 1.into() }, 3);
    // A's frame of two cells fills the queue beyond the threshold, so B's frames of three cells and one cell are
    // refused. One cell is sent, and A's next frame of four begins: two cells find room, and the third does not.
    for (label, frame, last) in [(0, 1, false), (0, 1, true), (1, 1, false), (1, 1, false), (1, 1, true), (1, 2, true)]
    {
        assert_eq!(port.offer(cell(label, frame, last)), label == 0);
    }
    assert!(port.take().is_some());
    let admitted = [false, false, false, true].map(|last| port.offer(cell(0, 2, last)));
    assert_eq!(admitted[..3], [true, true, false]);
    let counters: Vec<_> = port.vc_counters().collect();
    let of_a = PortCounters { offered: 6, forwarded: 1, ..counters[0] };
    assert_eq!((counters[0], of_a.lost() + of_a.discarded(), of_a.cut_frames), (of_a, 2, 1));
    assert_eq!(
        counters[1],
        PortCounters { offered: 4, discarded_frame: 4, discarded_frames: 2, ..PortCounters::default() }
    );
}
