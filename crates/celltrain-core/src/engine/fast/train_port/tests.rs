//! Pairs of ports: one that keeps its queue and one that only counts how many wait; one that loses cells in
//! rounds and one that loses them one by one.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::output::Arrival;
use super::*;
use crate::cell::FrameNumber;
use crate::engine::fast::train::Train;
use crate::policy::{PolicyConfig, tail_drop};
use crate::rng::Stream;
use crate::tie::TieOrder;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const CELL_TIME: Span = Span(3);
const END: Time = Time(90);

/// The settings that differ from case to case.
#[derive(Clone, Debug)]
struct Case {
    policy: PolicyConfig,
    capacity: Option<u32>,
    order: TieOrder,
    serve_first: bool,
    every_cell_matters: bool,
    inputs: Vec<Link>,
}

/// A link on which a VC arrives: the time from cell to cell, and trains by the pause before each, its cells, and
/// whether the last of them ends the frame.
#[derive(Clone, Debug)]
struct Link {
    period: u64,
    trains: Vec<(u64, u32, bool)>,
}

impl Case {
    fn port(&self, keeps_queue: bool) -> TrainPort {
        let timing = Timing {
            cell_time: CELL_TIME,
            least_lead: Span(5),
            longest_lead: Span(7),
            latest_start: Time(END.0 - 7),
            horizon: END,
            end: END,
            every_cell_matters: self.every_cell_matters,
            serve_first: self.serve_first,
            marks_above: None,
            notes: false,
        };
        let policy = self.policy.build(self.capacity, &NAMES);
        let port = OutputBuffer::new(self.capacity, NAMES.len(), policy, Stream::new(1, "policy"));
        let port = if keeps_queue { port } else { port.without_queue() };
        let ties = TieBreaker::new(self.order, 4, Stream::new(1, "ties"));
        let mut port = TrainPort::new(port, ties, NAMES.len(), (0..4).collect(), timing);
        port.ingress = Box::new(TrainIngress::new(4, self.every_cell_matters));
        for (input, link) in self.inputs.iter().enumerate() {
            let (mut at, mut frame) = (0, 0);
            for &(pause, cells, ends_frame) in &link.trains {
                let cell = Cell::new(Label::new(number(input)), FrameNumber::new(frame), false);
                let period = Span(link.period);
                port.ingress.join(input, Train { next: Time(at + pause), period, cells, ends_frame, cell });
                at += pause + link.period * u64::from(cells);
                frame += u32::from(ends_frame);
            }
        }
        port
    }
}

/// The reports of a port about its VCs.
#[derive(Debug, Default, PartialEq)]
struct Reported {
    /// Cells that start in the run.
    in_time: [u64; 4],
    /// Cells that start after it.
    late: [u64; 4],
    /// Frames and the starts of their last cells. Frames of one batch may be reported in any order.
    ended: BTreeSet<(u32, FrameNumber, Time)>,
    /// Arrivals noted for an allocator.
    noted: BTreeSet<(Time, u32)>,
}

impl Reported {
    fn add(&mut self, run: Run, first_start: Time, period: Span) {
        let label = run.last.label().number();
        for i in 0..u64::from(run.cells) {
            let is_late = first_start + period * i > END;
            (if is_late { &mut self.late } else { &mut self.in_time })[label as usize] += 1;
        }
        if run.last.last_cell() {
            self.ended.insert((label, run.last.frame, first_start + period * u64::from(run.cells - 1)));
        }
    }
}

/// Works on both ports up to the end, step by step, and compares them. Returns what they report, which is the same.
fn compare(ports: &mut [TrainPort; 2], steps: impl Iterator<Item = u64>) -> Result<Reported, TestCaseError> {
    let mut reported = [Reported::default(), Reported::default()];
    let mut until = Time(0);
    // The end of a run settles its last instant too.
    for step in steps.chain([END.0 + 1]) {
        until = (until + Span(step)).min(END + Span(1));
        for (port, reported) in ports.iter_mut().zip(&mut reported) {
            port.work(until, |run, first_start, period| reported.add(run, first_start, period));
            port.output.look_at(until);
            for Arrival { run, first, period } in port.output.arrivals.drain(..) {
                let cells = 0..u64::from(run.cells);
                reported.noted.extend(cells.map(|i| (first + period * i, run.last.label().number())));
            }
        }
        let [one, other] = &*ports;
        prop_assert_eq!(one.output.buffer.occupancy(), other.output.buffer.occupancy());
        prop_assert_eq!(one.next_to_matter(), other.next_to_matter());
        prop_assert_eq!(one.output.effect_of_waiting(), other.output.effect_of_waiting());
        prop_assert_eq!(one.output.free_at(), other.output.free_at());
    }
    for (port, reported) in ports.iter_mut().zip(&mut reported) {
        port.report_partial_frames(|run, first_start, period| reported.add(run, first_start, period));
    }
    let [one, other] = &*ports;
    prop_assert_eq!(one.output.buffer.state(), other.output.buffer.state());
    let [of_one, of_other] = reported;
    prop_assert_eq!(&of_one, &of_other);
    Ok(of_one)
}

fn case() -> impl Strategy<Value = Case> {
    let policies: Vec<_> =
        PolicyConfig::samples(12).into_iter().filter(|policy| !policy.build(Some(12), &NAMES).reads_counts()).collect();
    let train = (prop_oneof![2 => Just(0u64), 1 => 0u64..9], 1u32..9, prop_oneof![3 => Just(true), 1 => Just(false)]);
    let period = prop_oneof![4 => Just(3u64), 1 => 2u64..10];
    let link = (period, prop::collection::vec(train, 0..9)).prop_map(|(period, trains)| Link { period, trains });
    let orders = prop::sample::select(&[TieOrder::Random, TieOrder::Rotating, TieOrder::Fixed][..]);
    (
        prop::sample::select(policies),
        prop_oneof![Just(None), Just(Some(12))],
        orders,
        any::<bool>(),
        prop_oneof![3 => Just(false), 1 => Just(true)],
        prop::collection::vec(link, 1..5),
    )
        .prop_map(|(policy, capacity, order, serve_first, every_cell_matters, inputs)| Case {
            policy,
            capacity,
            order,
            serve_first,
            every_cell_matters,
            inputs,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..crate::rng::proptest_seeded(31) })]

    #[test]
    fn who_only_counts_how_many_wait_reports_the_same(
        case in case(), steps in prop::collection::vec(1u64..40, 0..5),
    ) {
        let mut ports = [true, false].map(|keeps_queue| case.port(keeps_queue));
        let reported = compare(&mut ports, steps.into_iter())?;
        // If the order is deferred, cells waiting at the end are not reported.
        let output = &ports[0].output;
        if !output.defers_order {
            prop_assert!(output.buffer.per_vc().iter().map(|&cells| u64::from(cells)).eq(reported.late));
        }
    }

    #[test]
    fn cells_lost_in_rounds_are_those_lost_one_by_one(case in case(), capacity in 0u32..9, step in 1u64..40) {
        let policy = PolicyConfig::TailDrop(tail_drop::Config {});
        let case = Case { policy, capacity: Some(capacity), every_cell_matters: false, ..case };
        let mut ports = [true, false].map(|in_rounds| {
            let mut port = case.port(false);
            assert!(port.plan.loses_in_rounds);
            port.plan.loses_in_rounds = in_rounds;
            port.output.timing.notes = true;
            port
        });
        compare(&mut ports, std::iter::repeat_n(step, usize::try_from(END.0 / step).unwrap()))?;
    }
}
