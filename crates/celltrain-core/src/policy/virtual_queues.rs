//! Virtual queues: counters that grow and shrink like the queues of a port that serves each VC separately.
//!
//! Source: Chiussi, Xia and Kumar 1997, as recalled in `docs/mechanisms.md` 2.8, whose symbols `M_j` and `N_v` are
//! used.

use typed_index_collections::{TiSlice, TiVec, ti_vec};

use super::CellFollower;
use crate::arbiter::Arbiter;
use crate::index::Label;

/// The virtual queues of a port. A cell that enters the FIFO also enters the virtual queue of its VC. Each departure
/// from the FIFO, whatever its VC, is one turn of the virtual queues.
#[derive(Debug)]
pub(super) struct VirtualQueues<A> {
    /// `M_j`, by label. The arbiter numbers the queues by label.
    pub(super) cells: TiVec<Label, u32>,
    pub(super) sum: u32,
    pub(super) arbiter: A,
}

impl<A: Arbiter> VirtualQueues<A> {
    pub(super) fn new(vcs: usize, arbiter: A) -> Self {
        Self { cells: ti_vec![0; vcs], sum: 0, arbiter }
    }

    /// Returns `M_j` for a decision. Asserts that the virtual queues together hold as many cells as the real queue.
    #[inline]
    pub(super) fn of(&self, vc: Label, occupancy: u32) -> f64 {
        assert_eq!(self.sum, occupancy, "the virtual queues and the FIFO hold the same number of cells");
        f64::from(self.cells[vc])
    }
}

#[expect(clippy::arithmetic_side_effects, reason = "no overflow: these are counts of waiting cells")]
impl<A: Arbiter> CellFollower for VirtualQueues<A> {
    fn on_enter(&mut self, vc: Label, cells: u32) {
        if self.cells[vc] == 0 {
            self.arbiter.join(vc.into());
        }
        self.cells[vc] += cells;
        self.sum += cells;
    }

    fn on_leave(&mut self, mut cells: u32) {
        self.sum = self.sum.checked_sub(cells).expect("cells that leave the FIFO have entered the FIFO before");
        if let Some(vc) = self.arbiter.alone().map(Label::from).filter(|&vc| self.cells[vc] > cells) {
            self.cells[vc] -= cells;
            return;
        }
        let Self { cells: queues, arbiter, .. } = self;
        while cells > 0 {
            arbiter.serve(|queue| {
                let vc = Label::from(queue);
                queues[vc] -= 1;
                queues[vc] > 0
            });
            cells -= 1;
        }
    }

    /// Returns false if a turn could find the virtual queue empty, because recording the cells early would change that
    /// turn.
    fn enters_at_once(&self, vc: Label, left: u32, close: bool) -> bool {
        (A::FORGIVES && close) || self.cells[vc] >= left
    }

    fn virtual_queues(&self) -> Option<&TiSlice<Label, u32>> {
        Some(&self.cells)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use typed_index_collections::TiVec;

    use crate::arbiter::{Arbiter, MinimumShares, RoundRobin};
    use crate::cell::tests::cell;
    use crate::index::Label;
    use crate::policy::{PerVc, PolicyConfig, tail_drop, virtual_queuing, virtual_queuing_weighted};
    use crate::port::Port;
    use crate::rng::{Stream, is_nightly};
    use crate::scheduler::{Class, SchedulerConfig, VcKind, minimum_rate, round_robin};

    use super::{CellFollower, VirtualQueues};

    const VCS: usize = 6;
    const NAMES: [&str; VCS] = ["vc0", "vc1", "vc2", "vc3", "vc4", "vc5"];

    /// A simple model with real queues, as described in `docs/mechanisms.md` 2.7 and 2.8.
    struct Oracle {
        queues: Vec<VecDeque<u32>>,
        /// VCs with cells, in the order of service.
        active: Vec<usize>,
        /// For each VC with a minimum share: the number of turns between its cells, and the turn at which its next cell
        /// is due.
        shares: [Option<(u64, u64)>; VCS],
        turns: u64,
    }

    impl Oracle {
        fn new(steps: [Option<u64>; VCS]) -> Self {
            let queues = vec![VecDeque::new(); VCS];
            Self { queues, active: Vec::new(), shares: steps.map(|step| step.map(|step| (step, 0))), turns: 0 }
        }

        fn enter(&mut self, vc: usize, number: u32) {
            if self.queues[vc].is_empty() {
                self.active.push(vc);
                if let Some((_, due)) = &mut self.shares[vc] {
                    *due = (*due).max(self.turns);
                }
            }
            self.queues[vc].push_back(number);
        }

        fn leave(&mut self) -> (usize, u32) {
            let due = |vc: usize| self.shares[vc].filter(|share| share.1 <= self.turns && !self.queues[vc].is_empty());
            let first_due = (0..VCS).filter_map(|vc| due(vc).map(|share| (share.1, vc))).min();
            self.turns += 1;
            let vc = if let Some((_, vc)) = first_due {
                let (step, due) = self.shares[vc].as_mut().unwrap();
                *due += *step;
                vc
            } else {
                let vc = self.active.remove(0);
                self.active.push(vc);
                vc
            };
            let number = self.queues[vc].pop_front().unwrap();
            if self.queues[vc].is_empty() {
                self.active.retain(|&other| other != vc);
            }
            (vc, number)
        }
    }

    /// Sends random bursts to a FIFO with virtual queues, to a port with real queues, and to the naive model, each of
    /// which sends one cell per slot. Checks that all three have the same queues in every slot.
    fn have_the_same_queues(policy: &PolicyConfig, scheduler: &SchedulerConfig, steps: [Option<u64>; VCS]) {
        let slots = if is_nightly() { 3_000_000 } else { 500_000 };
        let stream = || Stream::new(1, "bench");
        let mut fifo = Port::new(None, VCS, policy.build(None, &NAMES), stream());
        let kinds = NAMES.map(|name| VcKind { name, class: Class::Ubr });
        let no_policy = PolicyConfig::TailDrop(tail_drop::Config {}).build(None, &NAMES);
        let mut per_vc = Port::new(None, VCS, no_policy, stream()).scheduled(scheduler.build(&kinds));
        let mut oracle = Oracle::new(steps);
        let mut rng = Stream::new(7, "arrivals");
        let (mut arrived, mut longest, mut emptied) = (0, 0, 0);
        let mut bursts = [0u32; VCS];
        for slot in 0..slots {
            for (label, burst) in (0..).zip(&mut bursts) {
                if *burst == 0 {
                    // VC 0 sends occasional bursts of 190 cells on average, and VC 5 bursts of one or two cells.
                    let mean = [190, 60, 30, 12, 3, 1][label as usize];
                    *burst = if rng.below(6 * mean) == 0 { 1 + rng.below(2 * mean) } else { 0 };
                }
                if *burst > 0 {
                    *burst -= 1;
                    arrived += 1;
                    let cell = cell(label, arrived, true);
                    assert!(fifo.offer(cell) && per_vc.offer(cell));
                    oracle.enter(label as usize, arrived);
                }
            }
            let sent = per_vc.take();
            assert_eq!(fifo.take().is_some(), sent.is_some(), "slot {slot}");
            if let Some(cell) = sent {
                assert_eq!((cell.label().into(), cell.frame.number()), oracle.leave(), "slot {slot}");
            }
            let lengths: TiVec<Label, u32> =
                oracle.queues.iter().map(|queue| u32::try_from(queue.len()).unwrap()).collect();
            assert_eq!(fifo.virtual_queues().unwrap(), &lengths, "slot {slot}");
            assert_eq!(per_vc.per_vc(), &lengths, "slot {slot}");
            longest = longest.max(fifo.occupancy());
            emptied += u32::from(fifo.occupancy() == 0);
        }
        assert!(arrived > slots / 2 && longest > 200 && emptied > slots / 100, "{arrived} {longest} {emptied}");
    }

    #[test]
    fn virtual_queues_have_the_lengths_of_real_queues_under_round_robin_service() {
        let policy = PolicyConfig::VirtualQueuing(virtual_queuing::Config { threshold: u32::MAX.into(), k: 1.0 });
        let scheduler = SchedulerConfig::RoundRobin(round_robin::Config {});
        have_the_same_queues(&policy, &scheduler, [None; VCS]);
    }

    #[test]
    fn virtual_queues_have_the_lengths_of_real_queues_under_minimum_share_service() {
        let shares = [("vc0", 0.5), ("vc1", 0.1), ("vc3", 0.2), ("default", 0.0)];
        let minimum_share = PerVc::from(shares);
        let policy = PolicyConfig::VirtualQueuingWeighted(virtual_queuing_weighted::Config {
            minimum_share: minimum_share.clone(),
            threshold: u32::MAX.into(),
            k: 1.0,
        });
        let scheduler = SchedulerConfig::MinimumRate(minimum_rate::Config { minimum_share });
        have_the_same_queues(&policy, &scheduler, [Some(2), Some(10), None, Some(5), None, None]);
    }

    /// Tests virtual queues with three cells for VC 0 and none for VC 1.
    fn enter_at_once(arbiter: impl Arbiter, forgives: bool) {
        let mut queues = VirtualQueues::new(2, arbiter);
        let [vc_0, vc_1] = [0, 1].map(Label::new);
        queues.on_enter(vc_0, 3);
        for close in [false, true] {
            assert!(queues.enters_at_once(vc_0, 3, close), "after three turns the virtual queue has one cell");
            for (vc, left) in [(vc_0, 4), (vc_1, 1)] {
                assert_eq!(
                    queues.enters_at_once(vc, left, close),
                    forgives && close,
                    "{vc:?}: the virtual queue may be empty when its turn comes"
                );
            }
        }
    }

    #[test]
    fn cells_enter_virtual_queues_in_batches_unless_a_virtual_queue_becomes_empty_within_the_batch() {
        enter_at_once(RoundRobin::new(2), true);
        enter_at_once(MinimumShares::new(&[0.5, 0.0]), false);
    }
}
