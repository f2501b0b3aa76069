//! Compares the fast engine's port with the naive one. Cells that are admitted, refused and sent in bulk must give the
//! same result as cells handled one after another.

use proptest::prelude::*;
use typed_index_collections::TiSlice;

use super::*;
use crate::cell::FrameNumber;
use crate::index::Label;
use crate::policy::{Overflow, PolicyConfig, View};
use crate::port::Port;
use crate::scheduler::{Class, SchedulerConfig, VcKind};

const NAMES: [&str; 4] = ["vc0", "vc1", "vc2", "vc3"];
const VCS: u32 = 4;
/// Number of scripts. Many are short, because bugs show within a few steps or not at all.
const CASES: u32 = 4_000;

/// A port of each kind, and the cells that have left each.
struct Pair {
    naive: Port,
    batching: OutputBuffer,
    /// Number of the current frame, by label, and number of the latest RM cell.
    frames: [u32; VCS as usize],
    rms: u32,
    left_naive: Vec<Cell>,
    left_batching: Vec<Cell>,
}

/// An operation at the port.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Cells of a VC's frame arrive back to back; the last of them may end it.
    Run { label: Label, cells: u32, ends: bool },
    /// An RM cell arrives.
    Rm { label: Label },
    /// A single cell arrives. If nothing waits, it bypasses the queue.
    Alone { label: Label, ends: bool },
    /// Cells leave, and are reported later.
    Gone { cells: u32 },
    /// A cell leaves, and is reported at once.
    Take,
    /// Departures are reported.
    Report,
    /// A sample is taken.
    Sample,
}

fn step() -> impl Strategy<Value = Step> {
    let label = || (0..VCS).prop_map(Label::new);
    prop_oneof![
        6 => (label(), 1u32..7, any::<bool>()).prop_map(|(label, cells, ends)| Step::Run { label, cells, ends }),
        1 => label().prop_map(|label| Step::Rm { label }),
        2 => (label(), any::<bool>()).prop_map(|(label, ends)| Step::Alone { label, ends }),
        3 => (1u32..9).prop_map(|cells| Step::Gone { cells }),
        2 => Just(Step::Take),
        1 => Just(Step::Report),
        1 => Just(Step::Sample),
    ]
}

/// A policy that gives engines no hints, so every default must be right.
struct Silent(Box<dyn BufferPolicy>);

impl BufferPolicy for Silent {
    fn admit_frame(&mut self, buffer: &View<'_>, vc: Label, rng: &mut Stream) -> bool {
        self.0.admit_frame(buffer, vc, rng)
    }

    fn overflow(&self) -> Overflow {
        self.0.overflow()
    }

    fn follower(&mut self) -> Option<&mut dyn CellFollower> {
        self.0.follower()
    }
}

impl Pair {
    /// Creates the pair for a policy and a scheduler, given by their indices in the lists; `None` if they cannot be
    /// combined.
    fn new((policy, silent): (usize, bool), scheduler: usize, capacity: u32, merging: [bool; 4]) -> Option<Self> {
        let policies = PolicyConfig::samples(capacity);
        let schedulers = SchedulerConfig::samples();
        let classes = [Class::Ubr, Class::Vbr, Class::Ubr, Class::Cbr];
        let kinds: Vec<_> = NAMES.iter().zip(classes).map(|(&name, class)| VcKind { name, class }).collect();
        let policy = &policies[policy % policies.len()];
        let built = || policy.build(Some(capacity), &NAMES);
        let service = || schedulers[scheduler % schedulers.len()].build(&kinds);
        let merges = merging.contains(&true);
        let one_queue_only = built().follower().is_some() || built().overflow() == Overflow::PushOutFront;
        if (service().is_some() && (merges || one_queue_only)) || (merges && one_queue_only) {
            return None;
        }
        let stream = || Stream::new(1, "port");
        let for_batching = if silent { Box::new(Silent(built())) } else { built() };
        Some(Self {
            naive: Port::new(Some(capacity), 4, built(), stream())
                .merging(TiSlice::from_ref(&merging))
                .scheduled(service()),
            batching: OutputBuffer::new(Some(capacity), 4, for_batching, stream())
                .merging(TiSlice::from_ref(&merging))
                .scheduled(service()),
            frames: [0; 4],
            rms: 0,
            left_naive: Vec::new(),
            left_batching: Vec::new(),
        })
    }

    fn report(&mut self) {
        let left = &mut self.left_batching;
        self.batching.report_departures(ReportGranularity::Each, |run, _| left.extend(run.iter()));
    }

    fn report_before(&mut self, label: Label) {
        // A port without deferred order updates its deferred state by itself, and does not report cells.
        if !self.batching.defers_order() || self.batching.must_report_before(label) {
            self.report();
        }
    }

    fn offer(&mut self, cell: Cell) {
        self.report_before(cell.label());
        assert_eq!(self.naive.offer(cell), self.batching.offer(cell), "{cell:?}");
    }

    fn room(&self) -> u32 {
        self.batching.capacity - self.batching.occupancy
    }

    fn of_frame(&self, label: Label, ends: bool) -> Cell {
        Cell::new(label, FrameNumber::new(self.frames[usize::from(label)]), ends)
    }

    fn next_frame(&mut self, label: Label, ends: bool) {
        self.frames[usize::from(label)] += u32::from(ends);
    }

    fn play(&mut self, step: Step) {
        match step {
            Step::Run { label, cells, ends } => self.run(Run { last: self.of_frame(label, ends), cells }),
            Step::Rm { label } => {
                self.rms += 1;
                self.offer(Cell::rm(label, FrameNumber::new(self.rms)));
            }
            Step::Alone { label, ends } => self.alone(self.of_frame(label, ends)),
            Step::Gone { cells } => {
                let cells = cells.min(self.batching.ready());
                self.left_naive.extend((0..cells).map(|_| self.naive.take().expect("as many are ready")));
                if cells > 0 {
                    self.batching.defer_dequeue(cells);
                }
            }
            Step::Take => {
                self.report();
                let (naive, batching) = (self.naive.take(), self.batching.take());
                assert_eq!(naive, batching);
                self.left_naive.extend(naive);
                self.left_batching.extend(batching);
            }
            Step::Report => self.report(),
            Step::Sample => {
                self.naive.start_range();
                self.batching.tracker.start_range(self.batching.occupancy);
            }
        }
    }

    fn alone(&mut self, cell: Cell) {
        self.next_frame(cell.label(), cell.last_cell());
        self.report();
        if self.batching.occupancy > 0 || self.batching.merges() {
            return self.offer(cell);
        }
        let (enters, sent) = (self.naive.offer(cell), self.batching.bypass_queue(cell));
        assert_eq!(sent || self.batching.ready() > 0, enters);
        if sent {
            self.left_naive.extend(self.naive.take());
            self.left_batching.push(cell);
        }
    }

    /// Admits a run as a whole if there is room for all of it, otherwise one by one.
    fn run(&mut self, run: Run) {
        let label = run.last.label();
        self.next_frame(label, run.last.last_cell());
        self.report_before(label);
        let first = run.iter().next().unwrap();
        let has_room = run.cells <= self.room() && !self.batching.reassembles(label);
        let policy_may_follow = self.batching.enters_at_once(label, 0, true);
        if !has_room || !policy_may_follow {
            run.iter().for_each(|cell| self.offer(cell));
            return;
        }
        match self.batching.fate(first) {
            FrameOutcome::Admitted => {
                assert!(run.iter().all(|cell| self.naive.offer(cell)));
                // A cell that waited before the run leaves after it.
                let gone = self.batching.ready().min(1);
                self.left_naive.extend((0..gone).map(|_| self.naive.take().expect("it is ready")));
                let least = self.batching.occupancy;
                self.batching.admit(run, QueueRange { least, largest: least + run.cells }, gone);
            }
            FrameOutcome::Refused => {
                // A cell that ends a frame whose last cell is kept needs a separate decision.
                let (refused, last) =
                    if run.last.last_cell() && self.batching.fate(run.last) == FrameOutcome::CellByCell {
                        (run.at_most(run.cells - 1), Some(run.last))
                    } else {
                        (Some(run), None)
                    };
                if let Some(refused) = refused {
                    assert!(!refused.iter().any(|cell| self.naive.offer(cell)));
                    self.batching.admission.refuse(refused);
                }
                if let Some(last) = last {
                    self.offer(last);
                }
            }
            FrameOutcome::CellByCell => run.iter().for_each(|cell| self.offer(cell)),
        }
    }

    fn compare(&mut self) {
        assert_eq!(self.naive.occupancy(), self.batching.occupancy);
        assert_eq!(self.naive.max_queue(), self.batching.tracker.max_queue());
        assert_eq!(self.naive.range(), self.batching.tracker.range(self.batching.occupancy));
        for label in Label::counting().take(VCS as usize) {
            assert_eq!(self.naive.starts_frame(label), self.batching.admission.starts_frame(label));
        }
    }

    /// Compares the ports once all departures have been reported.
    fn compare_all(&mut self) {
        self.report();
        assert_eq!(self.left_naive, self.left_batching);
        assert_eq!(self.naive.per_vc(), self.batching.per_vc());
        assert_eq!(self.naive.active_vcs(), self.batching.counts.active_vcs);
        assert_eq!(self.naive.state(), self.batching.state());
        self.batching.report_to_policy();
        let follower = self.batching.admission.follower();
        assert_eq!(self.naive.virtual_queues(), follower.and_then(|follower| follower.virtual_queues()));
        assert!(self.naive.waiting().eq(self.batching.waiting()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, ..crate::rng::proptest_seeded(11) })]

    #[test]
    fn what_happens_at_once_comes_to_the_same_as_one_cell_after_the_other(
        policy in (0usize..100, any::<bool>()),
        scheduler in prop_oneof![2 => Just(0usize), 1 => 1usize..100],
        capacity in 1u32..40,
        merging in prop_oneof![4 => Just([false; 4]), 1 => any::<[bool; 4]>()],
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let Some(mut pair) = Pair::new(policy, scheduler, capacity, merging) else { return Ok(()) };
        for (step, number) in steps.into_iter().zip(1u32..) {
            pair.play(step);
            pair.compare();
            if number % 8 == 0 {
                pair.compare_all();
            }
        }
        pair.compare_all();
    }
}
