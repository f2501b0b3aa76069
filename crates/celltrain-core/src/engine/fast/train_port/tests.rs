//! Runs of cells are admitted as if their cells arrived one by one: exhaustive tests over small numbers.

use super::{TrainDiscipline, TrainPort};
use crate::aal5::Framing;
use crate::cell::tests::cell;
use crate::cell::{Cell, Run};
use crate::engine::fast::disciplines::{Counted, InOrder, Merging, Queued};
use crate::engine::fast::fifo::Fifo;
use crate::engine::fast::output::Output;
use crate::engine::fast::output_buffer::OutputBuffer;
use crate::engine::fast::port_queue::PortQueue;
use crate::engine::fast::timing::{Arrivals, Effects, Timing};
use crate::engine::fast::train::{Train, TrainIngress};
use crate::engine::fast::waiting_cells::{Departures, Kept};
use crate::index::{Label, LinkIndex};
use crate::policy::{BufferPolicy, PolicyConfig, epd, tail_drop};
use crate::port::PortState;
use crate::port::admission::Admission;
use crate::rng::Stream;
use crate::scheduler::waiting::ReportGranularity;
use crate::scheduler::{Class, SchedulerConfig, VcKind};
use crate::tie::{ServiceOrder, TieBreaker, TieOrder};
use crate::units::{Span, Time};

/// Time at which all cells of a test have left.
const END: Time = Time(1_000);
const LATE: Time = Time(1_000_000);
const VCS: usize = 2;

/// The numbers of a case, all in units of time or cells.
#[derive(Clone, Copy, Debug)]
struct Case {
    capacity: u32,
    cell_time: u64,
    service: ServiceOrder,
    /// Cells that arrive on the first input at once, before the train.
    backlog: u32,
    period: u64,
    cells: u32,
    offset: u64,
    /// R of early packet discard; tail drop without it.
    threshold: Option<u32>,
    /// A train on the first input, with this period and number of cells, whose first cell arrives at 10.
    other: Option<(u64, u32)>,
    effects: Effects,
}

impl Case {
    fn timing(self) -> Timing {
        Timing {
            cell_time: Span(self.cell_time),
            least_lead: Span(1),
            longest_lead: Span(1),
            latest_start: LATE,
            horizon: LATE,
            end: LATE,
            effects: self.effects,
            service: self.service,
            marks: None,
            arrivals: Arrivals::Unrecorded,
        }
    }

    fn policy(self) -> Box<dyn BufferPolicy> {
        let config = match self.threshold {
            None => PolicyConfig::TailDrop(tail_drop::Config {}),
            Some(cells) => PolicyConfig::Epd(epd::Config { threshold: cells.into() }),
        };
        config.build(Some(self.capacity), &["a", "b"])
    }

    /// Returns the arrivals of the backlog, one unit apart and each a frame of its own, and the first arrival of the
    /// train.
    fn arrivals(self) -> (Vec<(u64, Cell)>, u64) {
        let backlog = (0..self.backlog).map(|i| (10 + u64::from(i), cell(0, i + 1, true)));
        (backlog.collect(), 10 + u64::from(self.backlog) + self.offset)
    }
}

fn all_cases(check: impl Fn(Case)) {
    for service in [ServiceOrder::AfterArrivals, ServiceOrder::BeforeArrivals] {
        for (capacity, cell_time) in (1..6).flat_map(|capacity| (1..5).map(move |time| (capacity, time))) {
            for (backlog, period) in (0..4).flat_map(|backlog| (1..7).map(move |period| (backlog, period))) {
                for (cells, offset) in (2..6).flat_map(|cells| (0..5).map(move |offset| (cells, offset))) {
                    for threshold in [None, Some(1)] {
                        let (other, effects) = (None, Effects::EveryCell);
                        check(Case {
                            capacity,
                            cell_time,
                            service,
                            backlog,
                            period,
                            cells,
                            offset,
                            threshold,
                            other,
                            effects,
                        });
                    }
                }
            }
        }
    }
}

/// Calls `check` for two trains on two inputs, which overlap, tie or follow each other.
fn all_pairs(check: impl Fn(Case)) {
    all_cases(|case| {
        if case.period <= 4 && [2, 5].contains(&case.capacity) {
            for cells in [1, 2, 5] {
                // The numbers of cells in the backlog serve as periods of the other train.
                let other = Some((u64::from(case.backlog) + 1, cells));
                check(Case { backlog: 0, other, ..case });
            }
        }
    });
}

/// Everything that can be seen of a port: the starts of its cells, and its counts.
#[derive(Debug, PartialEq)]
struct Seen {
    starts: Vec<(Label, bool, Time)>,
    waiting: u32,
    lost: u64,
    max_queue: u32,
}

impl Seen {
    /// Keeps only what has an effect if complete frames alone have one: the starts of their last cells, in order, and
    /// the number of cells that were sent.
    fn frames(mut self) -> (Self, usize) {
        let sent = self.starts.len();
        self.starts.retain(|&(_, ends_frame, _)| ends_frame);
        self.starts.sort_unstable_by_key(|&(.., start)| start);
        (self, sent)
    }
}

/// Creates the port of a case.
fn port<D: TrainDiscipline>(case: Case, queue: D, framing: Framing) -> TrainPort<D> {
    let admission = Admission::new(VCS, case.policy(), Stream::new(1, "policy")).framed(framing);
    let buffer = OutputBuffer::new(Some(case.capacity), VCS, admission, queue);
    let output = Output::new(buffer, case.timing(), None, ReportGranularity::Runs);
    let ties = TieBreaker::new(TieOrder::Random, [Span(1); 2].into_iter(), Stream::new(1, "ties"));
    let mut port = TrainPort::new(LinkIndex::default(), output, ties, VCS, vec![0, 1]);
    *port.ingress = TrainIngress::new(2, case.effects);
    port
}

/// Returns `cells` cells of a frame, the last of which is `last`.
fn train(last: Cell, first: u64, period: u64, cells: u32) -> Train {
    Train::of(Run { last, cells }, Time(first), Span(period), last.label())
}

/// Runs a case with the cells of its train as trains of at most `most` cells.
fn run<D: TrainDiscipline>(case: Case, queue: D, most: u32) -> Seen {
    let mut port = port(case, queue, Framing::Aal5);
    let (backlog, first) = case.arrivals();
    for (time, cell) in backlog {
        port.ingress.join(0, train(cell, time, 1, 1));
    }
    let other = case.other.map(|(period, cells)| (0, 10, period, cells));
    for (input, first, period, all) in other.into_iter().chain([(1, first, case.period, case.cells)]) {
        let mut sent = 0;
        while sent < all {
            let cells = most.min(all - sent);
            let last = cell(input, 1, sent + cells == all);
            // A train of one cell has another period, so that it is not joined to the one before.
            let its_period = if most == 1 { 100 + u64::from(2 * sent + input) } else { period };
            port.ingress.join(input as usize, train(last, first + period * u64::from(sent), its_period, cells));
            sent += cells;
        }
    }
    take_all(port)
}

/// Lets all trains arrive and all cells leave.
fn take_all<D: TrainDiscipline>(mut port: TrainPort<D>) -> Seen {
    let mut starts = Vec::new();
    let mut depart = |run: Run, first_start, period| {
        let mut start = first_start;
        for cell in run.iter() {
            starts.push((cell.label(), cell.last_cell(), start));
            start += period;
        }
    };
    port.take_trains(END, &mut depart);
    port.partial_frames.report_all(depart);
    port.output.look_at(END);
    Seen::new(starts, &port.output.buffer.state())
}

impl Seen {
    fn new(starts: Vec<(Label, bool, Time)>, state: &PortState) -> Self {
        let lost = state.counters.iter().map(|counters| counters.offered - counters.forwarded).sum();
        let waiting = state.waiting.iter().sum();
        Self { starts, waiting, lost, max_queue: state.max_queue }
    }
}

/// Runs a case cell by cell at a buffer whose thresholds are times.
fn run_in_times(case: Case) -> Seen {
    let admission = Admission::new(VCS, case.policy(), Stream::new(1, "policy"));
    let mut fifo = Fifo::new(VCS, Some(case.capacity), admission, &case.timing(), Kept::Cells);
    let (mut arrivals, first) = case.arrivals();
    arrivals.extend((0..case.cells).map(|i| (first + case.period * u64::from(i), cell(1, 1, i + 1 == case.cells))));
    let mut starts = Vec::new();
    for (time, cell) in arrivals {
        starts.extend(fifo.enter(Time(time), cell).map(|start| (cell.label(), cell.last_cell(), start)));
    }
    fifo.look_at(END);
    Seen::new(starts, &fifo.end().state)
}

#[test]
fn thresholds_converted_to_times_admit_the_same_cells_as_thresholds_in_cells() {
    all_cases(|case| {
        if case.service == ServiceOrder::AfterArrivals {
            assert_eq!(run_in_times(case), run(case, Counted::default(), 1), "{case:?}");
        }
    });
}

#[test]
fn a_port_that_only_counts_cells_makes_the_same_admission_decisions_for_batches_and_single_cells() {
    all_cases(|case| {
        assert_eq!(run(case, Counted::default(), u32::MAX), run(case, Counted::default(), 1), "{case:?}");
    });
}

#[test]
fn queueing_and_counting_ports_make_the_same_admission_decisions_for_batches_and_single_cells() {
    all_cases(|case| {
        let in_order = || InOrder::new(Departures::AtAdmission);
        let of_run = run(case, in_order(), u32::MAX);
        assert_eq!(of_run, run(case, in_order(), 1), "{case:?}");
        assert_eq!(of_run, run(case, Counted::default(), u32::MAX), "{case:?}");
    });
}

#[test]
fn cells_leave_at_the_same_times_whether_departures_are_computed_late_or_on_arrival() {
    all_cases(|case| {
        let later = || InOrder::new(Departures::Later);
        let of_run = run(case, later(), u32::MAX);
        assert_eq!(of_run, run(case, later(), 1), "{case:?}");
        assert_eq!(of_run.starts, run(case, Counted::default(), u32::MAX).starts, "{case:?}");
    });
}

#[test]
fn a_port_that_merges_vcs_makes_the_same_admission_decisions_for_batches_and_single_cells() {
    let merging = typed_index_collections::ti_vec![false, true];
    all_cases(|case| {
        let merging = || Merging::new(&merging, Departures::AtAdmission);
        assert_eq!(run(case, merging(), u32::MAX), run(case, merging(), 1), "{case:?}");
    });
}

/// A case without arrivals.
const EMPTY: Case = Case {
    capacity: 10,
    cell_time: 10,
    service: ServiceOrder::AfterArrivals,
    backlog: 0,
    period: 1,
    cells: 0,
    offset: 0,
    threshold: None,
    other: None,
    effects: Effects::EveryCell,
};

#[test]
fn the_policy_decides_about_a_packet_even_if_the_previous_packet_lost_its_last_cell() {
    let case = Case { threshold: Some(1), ..EMPTY };
    let mut port = port(case, InOrder::new(Departures::AtAdmission), Framing::Packets);
    port.ingress.join(1, train(cell(1, 1, false), 10, 1, 3));
    port.ingress.join(1, train(cell(1, 2, true), 13, 1, 4));
    let seen = take_all(port);
    assert_eq!((seen.starts.len(), seen.lost), (3, 4), "above the threshold, early packet discard refuses the packet");
}

#[test]
fn a_train_of_cells_that_never_wait_is_admitted_whole_unless_the_buffer_is_zero() {
    for capacity in [0, 1] {
        let mut port = port(Case { capacity, ..EMPTY }, Counted::default(), Framing::Aal5);
        let admitted = Counted::admit_alone(&mut port, train(cell(1, 1, true), 10, 10, 5), &mut |_, _, _| {});
        assert_eq!(admitted, capacity > 0);
    }
}

#[test]
fn overlapping_trains_in_one_queue_get_the_same_admission_decisions_as_single_cells() {
    let merging = typed_index_collections::ti_vec![false, true];
    all_pairs(|case| {
        let alone = run(case, Counted::default(), 1);
        assert_eq!(run(case, Counted::default(), u32::MAX), alone, "{case:?}");
        assert_eq!(run(case, InOrder::new(Departures::AtAdmission), u32::MAX), alone, "{case:?}");
        let later = run(case, InOrder::new(Departures::Later), u32::MAX);
        assert_eq!((&later.starts, later.lost), (&alone.starts, alone.lost), "{case:?}");
        let merging = || Merging::new(&merging, Departures::AtAdmission);
        assert_eq!(run(case, merging(), u32::MAX), run(case, merging(), 1), "{case:?}");
    });
}

#[test]
fn counting_overlapping_trains_in_batches_gives_the_same_frames_as_counting_single_cells() {
    all_pairs(|case| {
        let of_frames = Case { effects: Effects::FrameEnds, ..case };
        let alone = run(case, Counted::default(), 1).frames();
        assert_eq!(run(of_frames, Counted::default(), u32::MAX).frames(), alone, "{case:?}");
    });
}

#[test]
#[ignore = "slow; the nightly job runs this test"]
fn overlapping_trains_in_separate_queues_get_the_same_admission_decisions_as_single_cells() {
    let kinds = ["a", "b"].map(|name| VcKind { name, class: Class::default() });
    for scheduler in SchedulerConfig::samples() {
        all_pairs(|case| {
            let Some(service) = scheduler.build(&kinds) else { return };
            let queues = |service| Queued::new(service, &case.timing());
            let alone = run(case, queues(scheduler.build(&kinds).expect("as above")), 1);
            assert_eq!(run(case, queues(service), u32::MAX), alone, "{scheduler:?} {case:?}");
        });
    }
}
