//! Tests that run for every listed scheduler. A new scheduler is tested as soon as it is listed.

use std::collections::VecDeque;

use super::waiting::WaitingCells;
use super::{Class, Configure, SchedulerConfig, Service, VcKind, Waiting};
use crate::cell::tests::cell;
use crate::policy::{PolicyConfig, tail_drop};
use crate::port::{CellQueues, Port};
use crate::rng::Stream;

const NAMES: [&str; 6] = ["vc0", "vc1", "vc2", "vc3", "vc4", "vc5"];

/// Returns VCs with the given classes, by label.
pub(super) fn kinds(classes: &[Class]) -> Vec<VcKind<'static>> {
    NAMES.iter().zip(classes).map(|(&name, &class)| VcKind { name, class }).collect()
}

/// Returns the queues of a scheduler, at a port crossed by VCs with these classes.
pub(super) fn queues(config: &impl Configure, classes: &[Class]) -> CellQueues {
    CellQueues::new(config.build(&kinds(classes)).expect("a scheduler with several queues has a list of queues"))
}

/// Adds one cell for each VC in `come`. Returns the labels of the next cells sent.
pub(super) fn sent(queues: &mut CellQueues, come: &[u32], number: usize) -> Vec<u32> {
    for &label in come {
        queues.put(label, 1);
    }
    (0..number).map(|_| queues.pop().label().number()).collect()
}

impl CellQueues {
    /// Adds `cells` cells of a VC, each in its own frame.
    pub(super) fn put(&mut self, label: u32, cells: u32) {
        for _ in 0..cells {
            self.push(cell(label, 0, true));
        }
    }
}

#[test]
fn every_scheduler_is_work_conserving_and_keeps_cell_order_and_counts_cells_correctly() {
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
                if port.offer(cell(label, number, true)) {
                    admitted[vc].push(number);
                }
            } else {
                let waited = port.occupancy();
                let cell = port.take();
                assert_eq!(cell.is_some(), waited > 0, "{}: the link is never idle while a cell waits", config.name());
                if let Some(cell) = cell {
                    let vc = usize::from(cell.label());
                    assert_eq!(cell.frame.number(), admitted[vc][taken[vc] as usize], "{}: in order", config.name());
                    taken[vc] += 1;
                }
            }
            let mut recount = [0; 6];
            for cell in port.waiting() {
                recount[usize::from(cell.label())] += 1;
            }
            assert_eq!(port.per_vc().raw, recount, "{}", config.name());
            assert_eq!(port.occupancy(), recount.iter().sum::<u32>(), "{}", config.name());
        }
        assert!(port.counters().lost() > 0, "the buffer was full at some times");
        port.state();
    }
}

#[test]
fn every_scheduler_sends_exactly_the_requested_number_of_cells() {
    let waiting = |queues| WaitingCells { queues, sent: VecDeque::new(), used_turns: Vec::new() };
    assert_eq!(waiting(vec![[cell(0, 0, true); 2].into()]).send(0, 2), 1, "a call sends one cell and returns 1");
    for config in SchedulerConfig::samples() {
        let Some(Service { queues, queue_of, mut scheduler }) = config.build(&kinds(&[Class::Ubr; 2])) else {
            continue;
        };
        let mut waiting = waiting(vec![VecDeque::new(); queues]);
        for label in [0, 0, 0, 0, 0, 0, 1, 1] {
            let cell = cell(label, 0, true);
            let queue = queue_of[cell.label()];
            waiting.queues[queue].push_back(cell);
            if waiting.queues[queue].len() == 1 {
                scheduler.on_backlog(queue);
            }
        }
        for sent in [1, 4, 7] {
            let cells = sent - u32::try_from(waiting.sent.len()).unwrap();
            scheduler.serve_cells(cells, &mut waiting);
            assert_eq!(waiting.sent.len(), sent as usize, "{}", config.name());
        }
    }
}

#[test]
fn passing_a_cell_through_an_empty_scheduler_equals_queuing_and_sending_it() {
    let mut rng = Stream::new(6, "conformance");
    let classes = [Class::Ubr, Class::Vbr, Class::Ubr, Class::Cbr, Class::Vbr, Class::Ubr];
    for config in SchedulerConfig::samples() {
        let queues = || config.build(&kinds(&classes)).map(CellQueues::new);
        let (Some(mut passing), Some(mut put_in)) = (queues(), queues()) else { continue };
        let (mut waiting, mut passed) = (0, 0);
        for number in 0..20_000 {
            let cell = cell(rng.below(6), number, true);
            if rng.below(3) == 0 {
                passing.push(cell);
                put_in.push(cell);
                waiting += 1;
            } else if waiting > 0 {
                assert_eq!(passing.pop(), put_in.pop(), "{}", config.name());
                waiting -= 1;
            } else {
                passing.serve_alone(cell.label());
                put_in.push(cell);
                assert_eq!(put_in.pop(), cell, "{}", config.name());
                passed += 1;
            }
        }
        assert!(passed > 2000, "{}: {passed}", config.name());
    }
}
