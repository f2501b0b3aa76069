//! What holds for every scheduler of the list.

use super::round_robin::InTurns;
use super::{Class, Queues, ReportGranularity, SchedulerConfig, VcKind};
use crate::cell::{Cell, Label, Run};
use crate::policy::{PolicyConfig, tail_drop};
use crate::port::{Counts, Port};
use crate::rng::Stream;
use crate::turns::RoundRobin;

const NAMES: [&str; 6] = ["vc0", "vc1", "vc2", "vc3", "vc4", "vc5"];

/// VCs of these classes, by label.
pub(super) fn kinds(classes: &[Class]) -> Vec<VcKind<'static>> {
    NAMES.iter().zip(classes).map(|(&name, &class)| VcKind { name, class }).collect()
}

/// The labels of the next cells that are sent after one cell each of these VCs has come.
pub(super) fn sent(queues: &mut Queues, come: &[Label], number: usize) -> Vec<Label> {
    for &label in come {
        queues.push(crate::cell::Run { last: Cell::new(label, 0, true), cells: 1 });
    }
    (0..number).map(|_| queues.pop().label()).collect()
}

impl Queues {
    /// The cell that is sent next; one waits.
    pub(super) fn pop(&mut self) -> Cell {
        // Who waits is no concern of a scheduler's.
        let mut counts = Counts::new(NAMES.len());
        for label in 0..6 {
            counts.put(label, 1);
        }
        let mut cell = None;
        self.serve(1, &mut counts, ReportGranularity::Each, |run, _| cell = Some(run.last));
        cell.expect("a scheduler sends as many cells as it is asked for")
    }
}

#[test]
fn every_listed_name_is_the_name_of_its_own_scheduler() {
    let names: Vec<_> = SchedulerConfig::samples().iter().map(SchedulerConfig::name).collect();
    assert_eq!(names, SchedulerConfig::NAMES);
    assert_eq!(SchedulerConfig::default().name(), "fifo");
}

#[test]
fn queues_know_whose_they_are_and_how_far_the_next_end_of_a_frame_is() {
    let queues = |queue_of: [usize; 3]| {
        let turns = RoundRobin::new(3);
        Queues::new(3, queue_of.to_vec(), InTurns { turns })
    };
    let mut own = queues([0, 1, 2]);
    assert!(own.one_a_vc());
    assert!(!queues([0, 1, 1]).one_a_vc(), "two share one, and one has none");
    assert_eq!(own.least_to_an_end(), 1, "no bound where nothing waits");
    for (label, cells) in [(0, 5), (2, 3)] {
        own.push(Run { last: Cell::new(label, 7, true), cells });
    }
    assert_eq!(own.least_to_an_end(), 3, "VC 2 ends a frame with its third cell");
}

#[test]
fn cells_of_a_vc_leave_in_order_no_link_idles_while_one_waits_and_counts_equal_a_recount() {
    let mut rng = Stream::new(5, "conformance");
    let classes = [Class::Ubr, Class::Vbr, Class::Ubr, Class::Cbr, Class::Vbr, Class::Ubr];
    for config in SchedulerConfig::samples() {
        let policy = PolicyConfig::TailDrop(tail_drop::Config {}).build(Some(40), &NAMES);
        let mut port =
            Port::new(Some(40), 6, policy, Stream::new(1, "bench")).scheduled(config.build(&kinds(&classes)));
        let (mut offered, mut taken) = ([0u32; 6], [0u32; 6]);
        let mut admitted: Vec<Vec<u32>> = vec![Vec::new(); 6];
        for _ in 0..20_000 {
            let label = rng.below(6);
            if rng.below(2) == 0 {
                let (vc, number) = (label as usize, offered[label as usize]);
                offered[vc] += 1;
                if port.offer(Cell::new(label, number, true)) {
                    admitted[vc].push(number);
                }
            } else {
                let waited = port.occupancy();
                let cell = port.take();
                assert_eq!(cell.is_some(), waited > 0, "{}: a link is not idle while a cell waits", config.name());
                if let Some(cell) = cell {
                    let vc = cell.label() as usize;
                    assert_eq!(cell.frame, admitted[vc][taken[vc] as usize], "{}: in order", config.name());
                    taken[vc] += 1;
                }
            }
            let mut recount = [0; 6];
            for cell in port.waiting() {
                recount[cell.label() as usize] += 1;
            }
            assert_eq!(port.per_vc(), recount, "{}", config.name());
            assert_eq!(port.occupancy(), recount.iter().sum::<u32>(), "{}", config.name());
        }
        assert!(port.counters().lost() > 0, "the buffer was full now and then");
        port.state();
    }
}
