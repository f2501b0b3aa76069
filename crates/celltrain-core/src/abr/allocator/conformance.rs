//! Tests that every allocator in the list must pass, including new allocators.

use proptest::prelude::*;

use super::{Allocator, AllocatorConfig, PortKind, VcKind, erica, erica_plus};
use crate::abr::RmCell;
use crate::index::Label;
use crate::rng::proptest_seeded;
use crate::units::{Clock, Duration, Span, Time};

/// The link's rate, in cells per second.
pub(super) const C: f64 = 100_000.0;

/// Returns a port with `vcs` ABR VCs and a clock of one microsecond.
pub(super) fn port(vcs: usize) -> PortKind<'static> {
    const VCS: [VcKind; 16] = [VcKind { is_abr: true, above_abr: false, mcr: 0.0, share: C / 16.0 }; 16];
    PortKind { clock: Clock::exact(1_000_000), rate: C, capacity: 1000, vcs: &VCS[..vcs] }
}

/// Returns a backward RM cell with this ER, as it arrives at the port.
pub(super) fn brm(er: f64) -> RmCell {
    RmCell { backward: true, ..RmCell::forward(er, C / 8.0, 0.0) }
}

/// Reports a forward RM cell with this CCR and then `cells` cells of the VC, the first at `start` and the others
/// `period` apart.
pub(super) fn send(allocator: &mut impl Allocator, label: u32, start: u64, (cells, period): (u32, u64), ccr: f64) {
    let (label, start) = (Label::new(label), Time(start));
    allocator.on_forward_rm(label, start, &RmCell::forward(C, ccr, 0.0));
    allocator.on_cells(label, start, Span(period), cells);
}

/// Returns the rate that the allocator grants a VC at `now`, while `queue` cells are waiting.
pub(super) fn er(allocator: &mut impl Allocator, label: u32, now: u64, queue: u32) -> f64 {
    let mut rm = brm(f64::INFINITY);
    allocator.on_backward_rm(Label::new(label), Time(now), queue, &mut rm);
    rm.er
}

pub(super) fn assert_near(value: f64, expected: f64) {
    assert!((value - expected).abs() <= 1e-9 * expected, "{value}, not {expected}");
}

#[derive(Clone, Copy, Debug)]
enum Call {
    Cells { label: u32, period: u64, cells: u32 },
    Forward { label: u32, ccr: f64 },
    Backward { label: u32, queue: u32 },
}

const VCS: u32 = 4;

/// Generates random calls, each with the delay since the previous one. The delay is often zero and sometimes much
/// longer.
fn calls() -> impl Strategy<Value = Vec<(u64, Call)>> {
    let cells = (0..VCS, 0..400u64, 1..40u32).prop_map(|(label, period, cells)| Call::Cells { label, period, cells });
    let forward = (0..VCS, 1.0..C).prop_map(|(label, ccr)| Call::Forward { label, ccr });
    let backward = (0..VCS, 0..500u32).prop_map(|(label, queue)| Call::Backward { label, queue });
    let gap = prop_oneof![4 => Just(0), 4 => 1..300u64, 1 => 300..20_000u64];
    prop::collection::vec((gap, prop_oneof![4 => cells, 1 => forward, 3 => backward]), 0..120)
}

/// Returns the ER fields of the backward RM cells in a script of calls. If `singly`, every cell is reported separately
/// and in time order, even if runs of several VCs overlap. No run extends beyond a backward RM cell, and cells of a VC
/// arrive in order.
fn rates(config: &AllocatorConfig, script: &[(u64, Call)], singly: bool) -> Vec<f64> {
    let mut allocator = config.build(&port(VCS as usize));
    let (mut now, mut free, mut rates) = (Time(0), [Time(0); VCS as usize], Vec::new());
    // Cells that have not been reported yet, each with its time, the number of its call, and its VC.
    let mut waiting: Vec<(Time, usize, u32)> = Vec::new();
    for (number, &(gap, call)) in script.iter().enumerate() {
        now += Span(gap);
        waiting.sort_unstable();
        let come = waiting.partition_point(|&(first, ..)| first < now);
        for (first, _, label) in waiting.drain(..come) {
            allocator.on_cells(Label::new(label), first, Span(0), 1);
        }
        match call {
            Call::Cells { label, period, cells } => {
                let ends = time_of_next_brm(&script[number + 1..], now);
                if now < free[label as usize] || ends <= now {
                    continue;
                }
                let fit = if period == 0 { u64::from(cells) } else { (ends - now).0.div_ceil(period) };
                let cells = cells.min(u32::try_from(fit).unwrap_or(u32::MAX));
                free[label as usize] = now + Span(period) * u64::from(cells - 1) + Span(1);
                if singly {
                    waiting.extend((0..u64::from(cells)).map(|i| (now + Span(period) * i, number, label)));
                } else {
                    allocator.on_cells(Label::new(label), now, Span(period), cells);
                }
            }
            Call::Forward { label, ccr } => {
                allocator.on_forward_rm(Label::new(label), now, &RmCell { backward: false, ccr, ..brm(C) });
            }
            Call::Backward { label, queue } => {
                let mut rm = brm(2.0 * C);
                allocator.on_backward_rm(Label::new(label), now, queue, &mut rm);
                rates.push(rm.er);
            }
        }
    }
    rates
}

/// Returns the time of the next backward RM cell, or a time after all runs if no such cell follows.
fn time_of_next_brm(calls: &[(u64, Call)], mut now: Time) -> Time {
    for &(gap, call) in calls {
        now += Span(gap);
        if matches!(call, Call::Backward { .. }) {
            return now;
        }
    }
    Time(u64::MAX >> 1)
}

/// Allocators whose measurement intervals are shorter, or only slightly longer, than the time between two cells.
fn short_intervals() -> impl Iterator<Item = AllocatorConfig> {
    let erica = |interval| AllocatorConfig::Erica(erica::Config { interval, ..erica::sample() });
    let erica_plus = |interval| AllocatorConfig::EricaPlus(erica_plus::Config { interval, ..erica_plus::sample() });
    [1, 7, 150]
        .map(Duration::from_microseconds)
        .into_iter()
        .flat_map(move |interval| [erica(interval), erica_plus(interval)])
}

proptest! {
    #![proptest_config(proptest_seeded(17))]

    #[test]
    fn a_rate_allocator_gives_the_same_rates_for_a_run_of_cells_as_for_single_cells(calls in calls()) {
        for config in AllocatorConfig::samples().into_iter().chain(short_intervals()) {
            let one_by_one = rates(&config, &calls, true);
            prop_assert_eq!(rates(&config, &calls, false), one_by_one, "{}", config.name());
        }
    }

    #[test]
    fn rate_allocators_modify_only_rm_cells_and_never_raise_the_rates_in_them(calls in calls(), er in 0.0..C) {
        for config in AllocatorConfig::samples() {
            for rate in rates(&config, &calls, false) {
                prop_assert!((0.0..=2.0 * C).contains(&rate), "{}: {rate}", config.name());
            }
            let mut allocator = config.build(&port(VCS as usize));
            allocator.on_cells(Label::new(0), Time(5), Span(3), 20);
            let mut rm = brm(er);
            allocator.on_backward_rm(Label::new(0), Time(3000), 10, &mut rm);
            prop_assert!(rm.er <= er, "{}: {} above {er}", config.name(), rm.er);
            prop_assert_eq!(rm, RmCell { er: rm.er, ..brm(er) }, "{}", config.name());
        }
    }
}

#[test]
fn every_listed_rate_allocator_can_be_selected_by_name_in_a_scenario() {
    let samples = AllocatorConfig::samples();
    assert_eq!(samples.iter().map(AllocatorConfig::name).collect::<Vec<_>>(), AllocatorConfig::NAMES);
    for config in samples {
        let text = serde_json::to_value(&config).unwrap();
        assert_eq!(text.as_object().unwrap().keys().collect::<Vec<_>>(), [config.name()]);
        assert_eq!(serde_json::from_value::<AllocatorConfig>(text).unwrap(), config);
        assert!(config.check(Some(1000)).is_empty(), "{}", config.name());
    }
}
