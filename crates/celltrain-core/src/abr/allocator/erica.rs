//! ERICA: gives ABR VCs equal shares of the capacity left by other classes, and keeps the link at a target load.
//!
//! Source: R. Jain et al., ATM Forum 96-1172 and 98-0408, as recalled in `docs/mechanisms.md` 4.7 \[R\]; the names of
//! the sources are kept. Differences from the source: intervals have a fixed length and begin at the start of the run,
//! instead of ending after a time or a number of cells, whichever comes first. Nothing is averaged over several
//! intervals. An interval without cells counts one active VC.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rate_book::{self, RateBook, Target};
use super::{Configure, PortKind, within};
use crate::error::Fault;
use crate::units::Duration;

/// ERICA: in an overload, each VC gets its equal share of the link, or its own rate divided by the overload factor if
/// that is larger. Without overload, it gets at least the largest rate of the previous interval. The target load is a
/// fixed fraction of the capacity that other classes leave.
///
/// Source: ATM Forum 96-1172.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Erica")]
pub struct Config {
    /// U: the target load as a fraction of the capacity left for ABR, 0.1 to 1. U times 1 + delta should not exceed 1,
    /// because loads up to this product do not count as an overload.
    #[serde(default = "target_utilisation")]
    #[schemars(range(min = 0.1, max = 1.0), extend("x-expect" = "a share of the link rate (0.1 to 1)"))]
    pub target_utilisation: f64,
    /// Interval over which load, active VCs and the rate of other classes are measured. A VC gets one
    /// rate per interval.
    #[serde(default = "interval")]
    pub interval: Duration,
    /// delta: how far the load may exceed its target before it counts as an overload, as a fraction of the target, from
    /// 0 to 1.
    #[serde(default = "delta")]
    #[schemars(range(min = 0.0, max = 1.0), extend("x-expect" = "the tolerated overload as a fraction of the target (0 to 1)"))]
    pub delta: f64,
}

fn target_utilisation() -> f64 {
    0.9
}

/// Returns the default interval: one millisecond, as in most published simulations.
pub(super) fn interval() -> Duration {
    Duration::from_milliseconds(1)
}

pub(super) fn delta() -> f64 {
    0.1
}

/// A target load that is a constant fraction of the capacity left for ABR.
#[derive(Debug)]
pub struct Fixed {
    u: f64,
}

impl Target for Fixed {
    fn fraction(&self, _queue: u32, _c_abr: f64) -> f64 {
        self.u
    }
}

impl Configure for Config {
    type Allocator = RateBook<Fixed>;

    fn check(&self, _capacity: Option<u32>) -> Vec<Fault> {
        let target = within("target_utilisation", self.target_utilisation, 0.1, 1.0);
        [target, rate_book::check(self.interval, self.delta)].concat()
    }

    fn build(&self, port: &PortKind<'_>) -> RateBook<Fixed> {
        RateBook::new(Fixed { u: self.target_utilisation }, port, self.interval, self.delta)
    }
}

#[cfg(test)]
pub(super) fn sample() -> Config {
    Config { target_utilisation: target_utilisation(), interval: interval(), delta: delta() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abr::RmCell;
    use crate::abr::allocator::conformance::{self, C, assert_near, er, port};
    use crate::abr::allocator::{Allocator, VcKind, some_time};
    use crate::index::Label;
    use crate::units::{Span, Time};

    /// U = 0.9 of 100,000 cells per second: 90 cells in an interval of 1 ms (1000 units).
    const TARGET: f64 = 0.9 * C;

    fn allocator(vcs: usize) -> RateBook<Fixed> {
        sample().build(&port(vcs))
    }

    /// Reports a VC's CCR and its cells, which are evenly spaced over an interval of 1 ms.
    fn send(allocator: &mut RateBook<Fixed>, label: u32, interval: u64, cells: u32, ccr: f64) {
        conformance::send(allocator, label, interval * 1000, (cells, 1000 / u64::from(cells)), ccr);
    }

    fn assert_rates(allocator: &mut RateBook<Fixed>, now: u64, expected: &[f64]) {
        (0..).zip(expected).for_each(|(label, &expected)| assert_near(er(allocator, label, now, 0), expected));
    }

    #[test]
    fn in_overload_erica_gives_the_larger_of_equal_share_and_rate_divided_by_load() {
        let mut allocator = allocator(2);
        send(&mut allocator, 0, 0, 160, 160_000.0);
        send(&mut allocator, 1, 0, 20, 20_000.0);
        // z = 180 / 90 = 2 and FairShare is 45,000. VCShare is 80,000 for the first VC and 10,000 for the second.
        assert_rates(&mut allocator, 1000, &[80_000.0, 45_000.0]);
    }

    #[test]
    fn without_overload_erica_gives_each_vc_the_largest_rate_of_the_previous_interval() {
        let mut allocator = allocator(2);
        send(&mut allocator, 0, 0, 160, 160_000.0);
        send(&mut allocator, 1, 0, 20, 20_000.0);
        assert_rates(&mut allocator, 1500, &[80_000.0]);
        // z = (70 + 20) / 90 = 1, so MaxAllocPrevious = 80,000 applies. A VC below FairShare first gets FairShare.
        send(&mut allocator, 0, 1, 70, 70_000.0);
        send(&mut allocator, 1, 1, 20, 20_000.0);
        assert_rates(&mut allocator, 2000, &[80_000.0, 45_000.0]);
    }

    #[test]
    fn erica_detects_an_overload_if_the_load_exceeds_1_plus_delta() {
        // With delta = 1/9, an overload is more than 100 cells in an interval. In the first interval, one VC sends 50
        // cells and no rate is given, so MaxAllocPrevious is the FairShare of that interval, 90,000. In the second
        // interval, two VCs send, so FairShare is 45,000.
        for (cells, expected) in [(100, 90_000.0), (101, 45_000.0)] {
            let mut allocator = Config { delta: 1.0 / 9.0 + 1e-12, ..sample() }.build(&port(2));
            send(&mut allocator, 0, 0, 50, 50_000.0);
            send(&mut allocator, 0, 1, 50, 48_000.0);
            send(&mut allocator, 1, 1, cells - 50, 50_000.0);
            assert_rates(&mut allocator, 2000, &[expected]);
        }
    }

    #[test]
    fn erica_computes_one_rate_per_vc_and_interval_and_never_exceeds_the_target_rate() {
        let mut allocator = allocator(3);
        assert_rates(&mut allocator, 10, &[TARGET]);
        send(&mut allocator, 0, 0, 90, 300_000.0);
        assert_rates(&mut allocator, 1001, &[TARGET]);
        send(&mut allocator, 0, 1, 90, 10.0);
        assert_rates(&mut allocator, 1999, &[TARGET]);
        // With a single VC, z = 1, so FairShare equals the target.
        assert_rates(&mut allocator, 2000, &[TARGET]);
    }

    #[test]
    fn erica_subtracts_the_rate_of_higher_service_classes_from_the_capacity_for_abr() {
        let mut vcs = port(3).vcs.to_vec();
        vcs[2] = VcKind { is_abr: false, above_abr: true, ..vcs[2] };
        let mut allocator = sample().build(&PortKind { vcs: &vcs, ..port(3) });
        send(&mut allocator, 2, 0, 40, 0.0);
        send(&mut allocator, 0, 0, 60, 60_000.0);
        send(&mut allocator, 1, 0, 48, 48_000.0);
        // Other classes leave 60 of 100 cells, so the target is 54, z = 108 / 54 = 2 and FairShare is 27,000.
        assert_rates(&mut allocator, 1000, &[30_000.0, 27_000.0]);
        // If other classes use the whole link, no capacity is left for ABR.
        send(&mut allocator, 2, 1, 125, 0.0);
        assert_eq!(er(&mut allocator, 0, 2000, 0), 0.0);
    }

    /// Regression: when a UBR VC filled the link for one interval, ABR sources stopped permanently.
    #[test]
    fn ubr_traffic_does_not_lower_the_target_rate_of_erica() {
        let mut vcs = port(2).vcs.to_vec();
        vcs[1] = VcKind { is_abr: false, ..vcs[1] };
        let mut allocator = sample().build(&PortKind { vcs: &vcs, ..port(2) });
        send(&mut allocator, 1, 0, 125, 0.0);
        send(&mut allocator, 0, 0, 90, 90_000.0);
        assert_rates(&mut allocator, 1000, &[TARGET]);
    }

    #[test]
    fn erica_counts_each_cell_of_a_run_in_the_measuring_interval_in_which_it_arrives() {
        let mut allocator = allocator(2);
        // 60 cells arrive from 0.9 ms on, one every 10 us: 10 in the first interval and 50 in the second.
        allocator.on_cells(Label::new(0), Time(900), Span(10), 60);
        allocator.on_cells(Label::new(1), Time(910), Span(1), 90);
        allocator.on_forward_rm(Label::new(0), Time(910), &RmCell::forward(C, 90_000.0, 0.0));
        // In the first interval, two VCs send 100 cells. z = 10/9 is an overload, and CCR / z = 90,000 * 0.9.
        assert_rates(&mut allocator, 1600, &[81_000.0]);
        // In the second interval, one VC sends 50 cells. z = 5/9, and CCR / z is above the target.
        assert_rates(&mut allocator, 2000, &[TARGET]);
    }

    #[test]
    fn the_default_settings_of_erica_are_the_published_values() {
        let config: Config = serde_json::from_str("{}").unwrap();
        assert_eq!((config.target_utilisation, config.interval, config.delta), (0.9, "1ms".parse().unwrap(), 0.1));
    }

    #[test]
    fn erica_settings_out_of_range_are_refused_and_the_message_names_the_setting() {
        let keys = |config: Config| config.check(None).iter().map(|fault| fault.key.clone()).collect::<Vec<_>>();
        assert!(keys(sample()).is_empty());
        assert_eq!(keys(Config { target_utilisation: 1.1, ..sample() }), ["target_utilisation"]);
        assert_eq!(keys(Config { interval: Duration::default(), delta: -0.1, ..sample() }), ["interval", "delta"]);
        assert_eq!(keys(Config { delta: f64::NAN, ..sample() }), ["delta"]);
    }

    #[test]
    fn the_measuring_interval_of_erica_must_be_positive_and_at_most_1000_seconds() {
        let faults = |picoseconds| some_time("interval", Duration { picoseconds }).len();
        let most = 1_000_000_000_000_000;
        assert_eq!([0, 1, most, most + 1].map(faults), [1, 0, 0, 1]);
    }
}
