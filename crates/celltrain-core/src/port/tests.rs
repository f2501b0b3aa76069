use super::*;
use crate::policy::PolicyConfig;
use crate::policy::tail_drop;

fn merging_port(capacity: u32) -> Port {
    let policy = PolicyConfig::TailDrop(tail_drop::Config {}).build(Some(capacity), &["a", "b", "c"]);
    // The third VC crosses the port without merging.
    Port::new(Some(capacity), 3, policy, Stream::new(1, "test")).merging(&[true, true, false])
}

fn sent(port: &mut Port) -> Vec<(Label, u32)> {
    std::iter::from_fn(|| port.take()).map(|cell| (cell.label(), cell.frame)).collect()
}

#[test]
fn frames_of_merged_vcs_leave_whole_and_in_the_order_they_became_whole() {
    let mut port = merging_port(100);
    // Cells of A and B come in turns; B's frame is whole first; C does not wait.
    for (label, last) in [(0, false), (1, false), (2, false), (0, false), (1, true), (2, true), (0, true)] {
        assert!(port.offer(Cell::new(label, 7, last)));
    }
    assert_eq!(port.occupancy(), 7);
    assert_eq!(sent(&mut port), [(2, 7), (1, 7), (1, 7), (2, 7), (0, 7), (0, 7), (0, 7)]);
}

#[test]
fn cells_admitted_in_turns_count_as_single_ones_do() {
    let rm = Cell::rm(2, 9);
    let cells = [(0, false), (1, false), (0, true), (1, false)].map(|(label, last)| Cell::new(label, 5, last));
    let cells = [cells[0], cells[1], rm, cells[2], cells[3]];
    // Two wait before. Then one goes, or all that wait but one, or all, between the first and the last of the cells.
    for gone in [1, 6, 7] {
        let policy = || PolicyConfig::TailDrop(tail_drop::Config {}).build(Some(10), &["a", "b", "c"]);
        let mut ports = [(); 2].map(|()| Port::new(Some(10), 3, policy(), Stream::new(1, "test")));
        for port in &mut ports {
            assert!(port.offer(Cell::new(0, 4, true)) && port.offer(Cell::new(1, 4, true)));
        }
        let [single, woven] = &mut ports;
        for cell in cells {
            assert!(single.offer(cell));
        }
        single.let_go(gone);
        for (label, cells, last) in [(0, 2, true), (1, 2, false)] {
            woven.fate(Cell::new(label, 5, false));
            woven.count_in_turns(Run { last: Cell::new(label, 5, last), cells });
        }
        woven.count_in_turns(Run { last: rm, cells: 1 });
        woven.admit_in_turns(&cells, 7, gone);
        for port in [&mut *single, &mut *woven] {
            port.count_off();
        }
        assert_eq!((single.state(), single.active_vcs()), (woven.state(), woven.active_vcs()));
        assert!(single.waiting().eq(woven.waiting()));
        assert_eq!([0, 1].map(|vc| single.starts_frame(vc)), [0, 1].map(|vc| woven.starts_frame(vc)));
    }
}

#[test]
fn what_is_not_whole_waits() {
    let mut port = merging_port(100);
    port.offer(Cell::new(0, 1, false));
    assert_eq!((port.occupancy(), port.ready(), port.held(0)), (1, 0, 1));
    assert_eq!(port.take(), None);
    port.offer(Cell::new(0, 1, true));
    assert_eq!((port.ready(), port.held(0)), (2, 0));
}

#[test]
fn a_frame_that_finds_no_room_for_a_cell_is_discarded_whole() {
    let mut port = merging_port(3);
    for (label, last) in [(0, false), (1, false), (0, false), (1, false), (1, true), (0, true)] {
        port.offer(Cell::new(label, 1, last));
    }
    // The second cell of B finds three waiting: its first one goes too, and leaves room for the end of A's frame.
    assert_eq!(sent(&mut port), [(0, 1); 3]);
    let of_b = port.vc_counters().nth(1).unwrap();
    assert_eq!((of_b.lost_overflow, of_b.lost_pushed_out, of_b.discarded_remainder, of_b.cut_frames), (1, 1, 1, 1));
}
