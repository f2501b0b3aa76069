use super::*;
use crate::cell::FrameNumber;
use crate::cell::tests::cell;
use crate::index::Label;
use crate::policy::PolicyConfig;
use crate::policy::{drop_from_front, ppd, tail_drop, virtual_queuing};
use crate::scheduler::{Class, SchedulerConfig, VcKind, round_robin};

mod model;

#[test]
fn cells_admitted_in_turns_count_as_single_ones_do() {
    let rm = Cell::rm(Label::new(2), FrameNumber::new(9));
    let cells = [(0, false), (1, false), (0, true), (1, false)].map(|(label, last)| cell(label, 5, last));
    let cells = [cells[0], cells[1], rm, cells[2], cells[3]];
    // Two wait before. Then one, or all but one, or all leave between the first and the last of the cells.
    for gone in [1, 6, 7] {
        let policy = || PolicyConfig::TailDrop(tail_drop::Config {}).build(Some(10), &["a", "b", "c"]);
        let mut ports = [(); 2].map(|()| BatchingPort::new(Some(10), 3, policy(), Stream::new(1, "test")));
        for port in &mut ports {
            assert!(port.offer(cell(0, 4, true)) && port.offer(cell(1, 4, true)));
        }
        let [single, interleaved] = &mut ports;
        for cell in cells {
            assert!(single.offer(cell));
        }
        single.defer_dequeue(gone);
        for (label, cells, last) in [(0, 2, true), (1, 2, false)] {
            interleaved.fate(cell(label, 5, false));
            interleaved.count_in_turns(Run { last: cell(label, 5, last), cells });
        }
        interleaved.count_in_turns(Run { last: rm, cells: 1 });
        interleaved.admit_in_turns(&cells, QueueRange { least: 0, largest: 7 }, gone);
        for port in [&mut *single, &mut *interleaved] {
            port.dequeue_deferred();
        }
        assert_eq!((single.state(), single.active_vcs()), (interleaved.state(), interleaved.active_vcs()));
        assert!(single.waiting().eq(interleaved.waiting()));
        assert_eq!(
            [0, 1].map(|vc| single.starts_frame(Label::new(vc))),
            [0, 1].map(|vc| interleaved.starts_frame(Label::new(vc)))
        );
    }
}

#[test]
fn cells_admitted_in_turns_are_of_the_frame_that_is_under_way() {
    let policy = PolicyConfig::DropFromFront(drop_from_front::Config {}).build(Some(3), &["a", "b"]);
    let mut port = BatchingPort::new(Some(3), 2, policy, Stream::new(1, "test"));
    // The first two cells of A's frame 8 and the first of B's frame 3 alternate; B's second pushes out A's two.
    let cells = [(0, 8), (1, 3), (0, 8)].map(|(label, frame)| cell(label, frame, false));
    for (last, cells) in [(cells[2], 2), (cells[1], 1)] {
        assert_eq!(port.fate(last), Fate::Admitted);
        port.count_in_turns(Run { last, cells });
    }
    port.admit_in_turns(&cells, QueueRange { least: 0, largest: 3 }, 0);
    assert!(port.offer(cell(1, 3, true)));
    // Frame 8 is cut, so the cells that still arrive are its rest.
    assert_eq!([false, true].map(|last| port.offer(cell(0, 8, last))), [false, true]);
    assert_eq!(port.vc_counters().next().map(|of_a| (of_a.lost_pushed_out, of_a.discarded_remainder)), Some((2, 1)));
}

#[test]
fn cells_admitted_at_once_are_of_the_frame_that_is_under_way() {
    let policy = PolicyConfig::DropFromFront(drop_from_front::Config {}).build(Some(3), &["a", "b"]);
    let mut port = BatchingPort::new(Some(3), 2, policy, Stream::new(1, "test"));
    // Two cells of A's frame 8 are admitted at once and wait; B's frame fills the buffer and pushes them out with its
    // second.
    let run = Run { last: cell(0, 8, false), cells: 2 };
    assert_eq!(port.fate(run.last), Fate::Admitted);
    port.admit(run, QueueRange { least: 0, largest: 2 }, 0);
    assert!(port.offer(cell(1, 3, false)) && port.offer(cell(1, 3, true)));
    // Frame 8 is now cut, so only its last cell still enters.
    assert_eq!([false, true].map(|last| port.offer(cell(0, 8, last))), [false, true]);
    port.dequeue_deferred();
    let of_a = port.vc_counters().next();
    let expected = PortCounters {
        offered: 4,
        lost_pushed_out: 2,
        discarded_remainder: 1,
        cut_frames: 1,
        ..PortCounters::default()
    };
    assert_eq!(of_a, Some(expected));
}

#[test]
fn only_a_policy_that_follows_cells_minds_that_they_enter_at_once() {
    let port = |policy: PolicyConfig| {
        BatchingPort::new(Some(10), 2, policy.build(Some(10), &["a", "b"]), Stream::new(1, "test"))
    };
    assert!(port(PolicyConfig::TailDrop(tail_drop::Config {})).enters_at_once(Label::new(0), 1, false));
    let mut port = port(PolicyConfig::VirtualQueuing(virtual_queuing::Config { threshold: 5.into(), k: 1.0 }));
    assert!(!port.enters_at_once(Label::new(0), 1, false), "the virtual queue is empty");
    assert!(port.offer(cell(0, 1, false)));
    assert!(port.enters_at_once(Label::new(0), 1, false), "the cell that leaves is the one before");
}

/// Sends all waiting cells.
fn drain(port: &mut BatchingPort) -> Vec<Cell> {
    std::iter::from_fn(|| port.take()).collect()
}

#[test]
fn a_cell_that_passes_counts_as_one_that_is_offered_and_taken() {
    let mut draws = Stream::new(1, "passing");
    let (names, classes) = (["a", "b"], [Class::Ubr; 2]);
    let kinds = [0, 1].map(|i| VcKind { name: names[i], class: classes[i] });
    let tail_drop = || PolicyConfig::TailDrop(tail_drop::Config {});
    let virtual_queuing = || PolicyConfig::VirtualQueuing(virtual_queuing::Config { threshold: 1.into(), k: 1.0 });
    let kinds_of_ports = [
        (tail_drop(), None),
        (tail_drop(), Some(SchedulerConfig::RoundRobin(round_robin::Config {}))),
        (PolicyConfig::Ppd(ppd::Config::default()), None),
        (PolicyConfig::Ppd(ppd::Config::default()), Some(SchedulerConfig::RoundRobin(round_robin::Config {}))),
        (PolicyConfig::DropFromFront(drop_from_front::Config {}), None),
        (virtual_queuing(), None),
    ];
    for ((policy, scheduler), capacity) in kinds_of_ports.into_iter().flat_map(|kind| [1, 3].map(|k| (kind.clone(), k)))
    {
        let port = || {
            let policy = policy.build(Some(capacity), &names);
            let service = scheduler.as_ref().and_then(|scheduler| scheduler.build(&kinds));
            BatchingPort::new(Some(capacity), 2, policy, Stream::new(1, "test")).scheduled(service)
        };
        let (mut passing, mut offered) = (port(), port());
        let mut passed = 0;
        for frame in 0..2000 {
            // Some cells find others waiting, and some of these find no room.
            for _ in 0..draws.below(6) {
                let cell = cell(draws.below(2), frame, draws.below(3) == 0);
                assert_eq!(passing.offer(cell), offered.offer(cell));
            }
            assert_eq!(drain(&mut passing), drain(&mut offered));
            let cell = cell(draws.below(2), frame, draws.below(3) == 0);
            let enters = offered.offer(cell);
            let sent = passing.pass(cell);
            assert_eq!(sent || passing.ready() > 0, enters, "{policy:?}");
            passed += u32::from(sent);
            assert_eq!(drain(&mut offered), Vec::from_iter(enters.then_some(cell)));
            assert_eq!(drain(&mut passing), Vec::from_iter((enters && !sent).then_some(cell)));
        }
        assert!(passed > 500, "{policy:?}: {passed}");
        for port in [&mut passing, &mut offered] {
            port.dequeue_deferred();
            port.report_to_policy();
        }
        assert_eq!(passing.state(), offered.state(), "{policy:?}");
    }
}
