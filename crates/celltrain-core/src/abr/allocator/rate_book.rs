//! Code shared by ERICA and ERICA+: a port's measurements in each averaging interval, and the rates derived from them.
//!
//! Source: R. Jain et al., ATM Forum 96-1172; the equations are numbered as in ATM Forum 98-0408, section 3. Its names
//! `z`, `delta`, `FairShare`, `VCShare` and `MaxAlloc` are kept.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use typed_index_collections::TiVec;

use super::{Allocator, PortKind, some_time, within};
use crate::abr::RmCell;
use crate::coverage::reached;
use crate::error::Fault;
use crate::index::Label;
use crate::units::{Duration, Span, Time};

/// The target load of a variant of ERICA.
pub trait Target: Send + 'static {
    /// Returns the target load while `queue` cells are waiting, as a fraction of `c_abr`, the capacity left for ABR in
    /// cells per second.
    fn fraction(&self, queue: u32, c_abr: f64) -> f64;
}

/// The allocator of one port.
#[derive(Debug)]
pub struct RateBook<T> {
    target: T,
    /// C: the link's rate, in cells per second.
    c: f64,
    delta: f64,
    interval: Span,
    seconds: f64,
    vcs: TiVec<Label, Vc>,
    /// Number of the latest interval in which a cell arrived or a rate was computed.
    current: u64,
    /// Counts for the intervals `current - 2`, `current - 1` and `current`.
    counts: [Counts; KEPT],
    /// Cells of reported runs that arrive after the interval `current`, in time order. A VC has at most one entry,
    /// because its next run starts after the last cell of its previous run.
    ahead: BinaryHeap<Reverse<Ahead>>,
    given: Given,
}

#[derive(Clone, Copy, Debug)]
struct Vc {
    is_abr: bool,
    above_abr: bool,
    ccr: f64,
    /// The interval in which the VC's last cell arrived.
    seen: Option<u64>,
    /// The latest interval in which the VC received a rate, and that rate.
    er: Option<(u64, f64)>,
}

pub(super) fn check(interval: Duration, delta: f64) -> Vec<Fault> {
    let mut faults = some_time("interval", interval);
    faults.extend(within("delta", delta, 0.0, 1.0));
    faults
}

/// Number of intervals whose counts are kept: the current interval and the two before it, on which its rates depend.
const KEPT: usize = 3;

/// The remaining part of a run of cells, which has not been counted yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ahead {
    /// Arrival time of the first remaining cell.
    next: Time,
    label: Label,
    period: Span,
    cells: u64,
}

/// The cells that arrived in one interval.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    abr: u64,
    /// Cells of CBR and VBR. UBR and GFR do not have priority over ABR, so their cells are not counted.
    above: u64,
    /// N: number of ABR VCs that sent cells.
    active: u32,
}

/// The values from which the rates for one interval are computed.
#[derive(Clone, Copy, Debug, Default)]
struct Given {
    interval: Option<u64>,
    target: f64,
    z: f64,
    fair_share: f64,
    max_alloc_previous: f64,
    max_alloc_current: f64,
}

#[expect(
    clippy::arithmetic_side_effects,
    reason = "no overflow: counts of arrived cells in intervals of at most 1,000 s"
)]
impl<T: Target> RateBook<T> {
    pub(super) fn new(target: T, port: &PortKind<'_>, interval: Duration, delta: f64) -> Self {
        let vc = |kind: &super::VcKind| Vc {
            is_abr: kind.is_abr,
            above_abr: kind.above_abr,
            ccr: 0.0,
            seen: None,
            er: None,
        };
        let units = Span(port.clock.span(interval).0.max(1));
        Self {
            target,
            c: port.rate,
            delta,
            interval: units,
            seconds: units.0 as f64 / port.clock.units_per_second as f64,
            vcs: port.vcs.iter().map(vc).collect(),
            current: 0,
            counts: [Counts::default(); KEPT],
            ahead: BinaryHeap::with_capacity(port.vcs.len()),
            given: Given::default(),
        }
    }

    /// Returns the rate allowed to a VC with this CCR, by equations (8) to (13).
    fn rate(&mut self, ccr: f64) -> f64 {
        let Given { target, z, fair_share, max_alloc_previous, .. } = self.given;
        // After an interval without cells, the target is the only limit.
        let vc_share = if z > 0.0 { ccr / z } else { target };
        reached!(EricaOverload if z > 1.0 + self.delta);
        reached!(EricaIdleInterval if z == 0.0);
        let er = if z > 1.0 + self.delta { fair_share.max(vc_share) } else { max_alloc_previous.max(vc_share) };
        self.given.max_alloc_current = self.given.max_alloc_current.max(er);
        // A VC far below FairShare reaches a larger rate in two steps.
        let er = if er > fair_share && ccr < fair_share { fair_share } else { er };
        er.min(target)
    }

    /// Computes the values for the rates in an interval from measurements of the previous one, by equations (1) to (7).
    fn measured(&self, number: u64, queue: u32) -> Given {
        let shares = |counts: Counts| {
            let c_abr = (self.c - counts.above as f64 / self.seconds).max(0.0);
            let target = self.target.fraction(queue, c_abr) * c_abr;
            (target, target / f64::from(counts.active.max(1)))
        };
        let counts = self.counts_of(number.checked_sub(1));
        let (target, fair_share) = shares(counts);
        let input = counts.abr as f64 / self.seconds;
        let max_alloc_previous = if self.given.interval.map(|last| last + 1) == Some(number) {
            self.given.max_alloc_current
        } else {
            // No rate was given in the previous interval.
            shares(self.counts_of(number.checked_sub(2))).1
        };
        Given {
            interval: Some(number),
            target,
            z: if target > 0.0 { input / target } else { f64::INFINITY },
            fair_share,
            max_alloc_previous,
            max_alloc_current: fair_share,
        }
    }

    fn number(&self, time: Time) -> u64 {
        time.0 / self.interval.0
    }

    fn counts_of(&self, number: Option<u64>) -> Counts {
        let age = number.and_then(|number| self.current.checked_sub(number));
        age.and_then(|age| self.counts.get(KEPT.checked_sub(1 + usize::try_from(age).ok()?)?))
            .copied()
            .unwrap_or_default()
    }

    /// Makes `number` the current interval, unless the current interval is later.
    fn advance(&mut self, number: u64) {
        if number <= self.current {
            return;
        }
        let past = usize::try_from(number - self.current).unwrap_or(KEPT).min(KEPT);
        self.counts.rotate_left(past);
        self.counts[KEPT - past..].fill(Counts::default());
        self.current = number;
        while self.ahead.peek().is_some_and(|Reverse(run)| self.number(run.next) <= number) {
            let Reverse(run) = self.ahead.pop().expect("the heap has the entry that was just inspected");
            self.count(run);
        }
    }

    /// Counts the cells of a run up to the end of the current interval, and stores the later cells in `ahead`. Cells in
    /// intervals whose counts were already discarded are ignored, because no rate depends on them. A port may report
    /// such old cells after later cells of other VCs.
    fn count(&mut self, mut run: Ahead) {
        let oldest = (self.current + 1).saturating_sub(KEPT as u64);
        run.skip(run.before(Time(oldest * self.interval.0)));
        while run.cells > 0 {
            let number = self.number(run.next);
            let Some(age) = self.current.checked_sub(number) else {
                self.ahead.push(Reverse(run));
                return;
            };
            let here = run.before(Time((number + 1) * self.interval.0));
            let index = KEPT - 1 - usize::try_from(age).expect("cells older than the kept intervals were skipped");
            self.add(run.label, number, index, here);
            run.skip(here);
        }
    }

    fn add(&mut self, label: Label, number: u64, index: usize, cells: u64) {
        let (counts, vc) = (&mut self.counts[index], &mut self.vcs[label]);
        if !vc.is_abr {
            if vc.above_abr {
                counts.above += cells;
            }
            return;
        }
        counts.abr += cells;
        if vc.seen != Some(number) {
            vc.seen = Some(number);
            counts.active += 1;
        }
    }
}

impl<T: Target> Allocator for RateBook<T> {
    /// Counts each cell in the interval in which it arrives.
    ///
    /// Takes constant time for a run, even if the run spans many intervals. Cells after the current interval wait in
    /// `ahead` until their interval becomes the current one. Cells in intervals without a rate are skipped.
    fn on_cells(&mut self, label: Label, first: Time, period: Span, cells: u32) {
        self.advance(self.number(first));
        self.count(Ahead { next: first, label, period, cells: u64::from(cells) });
    }

    fn on_forward_rm(&mut self, label: Label, _now: Time, rm: &RmCell) {
        self.vcs[label].ccr = rm.ccr;
    }

    fn on_backward_rm(&mut self, label: Label, now: Time, queue: u32, rm: &mut RmCell) {
        let number = self.number(now);
        if self.given.interval != Some(number) {
            self.advance(number);
            self.given = self.measured(number, queue);
        }
        let vc = self.vcs[label];
        let er = match vc.er {
            Some((interval, er)) if interval == number => er,
            _ => self.rate(vc.ccr),
        };
        self.vcs[label].er = Some((number, er));
        rm.er = rm.er.min(er);
    }
}

#[expect(clippy::arithmetic_side_effects, reason = "no overflow: scenario checks keep times below 2^62 units")]
impl Ahead {
    /// Returns the number of cells of the run that arrive before `end`.
    fn before(&self, end: Time) -> u64 {
        if end <= self.next {
            0
        } else if self.period.0 == 0 {
            self.cells
        } else {
            (end - self.next).0.div_ceil(self.period.0).min(self.cells)
        }
    }

    fn skip(&mut self, cells: u64) {
        self.next += self.period * cells;
        self.cells -= cells;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abr::allocator::conformance::{C, brm, port};

    /// A target load equal to the capacity left for ABR.
    struct Whole;

    impl Target for Whole {
        fn fraction(&self, _queue: u32, _c_abr: f64) -> f64 {
            1.0
        }
    }

    fn book() -> RateBook<Whole> {
        RateBook::new(Whole, &port(2), Duration::from_milliseconds(1), 0.1)
    }

    #[test]
    fn erica_discards_the_counts_of_an_interval_once_no_later_rate_can_depend_on_them() {
        let mut book = book();
        let interval = book.interval;
        for number in 0..1000 {
            let start = Time::default() + interval * number;
            book.on_cells(Label::new(0), start, Span(interval.0 / 2), 2);
        }
        // Counts are kept for the latest intervals. After a long pause, none of them are.
        assert_eq!([997, 998, 999].map(|number| book.counts_of(Some(number)).abr), [2; 3]);
        assert_eq!(book.counts_of(Some(996)).abr, 0);
        book.on_cells(Label::new(1), Time::default() + interval * 5000, Span(0), 7);
        assert_eq!([999, 4999, 5000].map(|number| book.counts_of(Some(number)).abr), [0, 0, 7]);
    }

    /// Regression: with an interval of one picosecond, a run needed a record for every interval from its first cell to
    /// its last, which took 10 GB for twenty cells. The reference engine reports each cell separately and was not
    /// affected.
    #[test]
    fn empty_measuring_intervals_within_a_run_of_cells_need_neither_memory_nor_computation() {
        let mut book = RateBook::new(Whole, &port(2), Duration::from_microseconds(1), 0.1);
        assert_eq!(book.interval, Span(1));
        let (hour, cells) = (3_600_000_000, u32::MAX);
        book.on_cells(Label::new(0), Time(5), Span(hour), cells);
        let last = 5 + u64::from(cells - 1) * hour;
        book.on_cells(Label::new(1), Time(5 + hour), Span(hour), 3);
        assert_eq!([4, 5, 6].map(|number| book.counts_of(Some(number + hour)).active), [0, 2, 0]);
        let mut rm = brm(C);
        book.on_backward_rm(Label::new(0), Time(last + 2), 0, &mut rm);
        assert_eq!([last - 1, last, last + 1].map(|number| book.counts_of(Some(number)).active), [0, 1, 0]);
        assert!(
            book.ahead.is_empty() && book.ahead.capacity() == 2,
            "there is one entry for each VC, created at the start"
        );
    }

    #[test]
    fn a_cell_reported_late_counts_in_its_measuring_interval_if_the_interval_is_still_stored() {
        let mut book = book();
        let interval = book.interval;
        let at = |number: u64| Time::default() + interval * number;
        book.on_cells(Label::new(0), at(10), Span(0), 3);
        // Cells of another VC, interleaved with the reported cells, arrived two and three intervals ago.
        book.on_cells(Label::new(1), at(8), Span(0), 5);
        book.on_cells(Label::new(1), at(7), Span(0), 9);
        assert_eq!([7, 8, 9, 10].map(|number| book.counts_of(Some(number)).abr), [0, 5, 0, 3]);
        // Only one VC sent in each of the two intervals, so each VC's share is the whole link.
        assert_eq!([8, 9, 10].map(|number| book.counts_of(Some(number)).active), [1, 0, 1]);
    }
}
