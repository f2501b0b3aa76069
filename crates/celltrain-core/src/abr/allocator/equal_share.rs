//! Equal share: the link's rate divided equally among the VCs that were recently active.
//!
//! Source: draft-jagan-e2e-traf-mgmt-00, section 3, "Explicit Rate Switch Scheme"; `docs/mechanisms.md` 4.6; the name
//! ERT is kept. Differences from the source: none known. VCs of every class count. A VC is already inactive at the
//! instant its timer expires. If no VC is active, the requesting VC gets the whole link.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use typed_index_collections::{TiVec, ti_vec};

use super::{Allocator, Configure, PortKind, some_time};
use crate::abr::RmCell;
use crate::error::Fault;
use crate::index::Label;
use crate::units::{Duration, Span, Time};

/// Equal share: a source may use the link's rate divided by the number of active VCs. A VC is active until its timer
/// expires; each of its cells restarts the timer.
///
/// Source: draft-jagan-e2e-traf-mgmt-00, section 3.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "EqualShare")]
pub struct Config {
    /// ERT: how long a VC counts as active after its last cell.
    #[serde(default = "ert")]
    pub ert: Duration,
}

/// Returns the default of ERT. The source recommends "a little more than the transmission time for a single TCP
/// packet".
fn ert() -> Duration {
    Duration::from_milliseconds(1)
}

/// The allocator.
#[derive(Debug)]
pub struct EqualShare {
    /// C: the link's rate, in cells per second.
    c: f64,
    ert: Span,
    /// Time at which each VC stops being active, by label.
    expires: TiVec<Label, Time>,
}

impl Configure for Config {
    type Allocator = EqualShare;

    fn check(&self, _capacity: Option<u32>) -> Vec<Fault> {
        some_time("ert", self.ert)
    }

    fn build(&self, port: &PortKind<'_>) -> EqualShare {
        EqualShare { c: port.rate, ert: port.clock.span(self.ert), expires: ti_vec![Time::default(); port.vcs.len()] }
    }
}

#[expect(clippy::arithmetic_side_effects, reason = "no overflow: scenario checks keep times below 2^62 units")]
impl Allocator for EqualShare {
    fn on_cells(&mut self, label: Label, first: Time, period: Span, cells: u32) {
        self.expires[label] = first + period * u64::from(cells - 1) + self.ert;
    }

    fn on_backward_rm(&mut self, _label: Label, now: Time, _queue: u32, rm: &mut RmCell) {
        let active = self.expires.iter().filter(|&&expires| now < expires).count();
        rm.er = rm.er.min(self.c / active.max(1) as f64);
    }
}

#[cfg(test)]
pub(super) fn sample() -> Config {
    Config { ert: ert() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abr::allocator::conformance::{C, er, port};

    /// ERT in microseconds, the unit of the test's clock.
    const ERT: u64 = 1000;

    #[test]
    fn equal_share_gives_each_of_four_active_vcs_a_quarter_of_the_link() {
        let mut allocator = sample().build(&port(5));
        for label in 0..4 {
            allocator.on_cells(Label::new(label), Time(10), Span(3), 1 + 9 * label);
        }
        assert_eq!(er(&mut allocator, 0, 100, 0), C / 4.0);
    }

    #[test]
    fn a_vc_counts_as_active_until_its_activity_timer_expires() {
        let mut allocator = sample().build(&port(2));
        // Three cells of one VC arrive at 100, 105 and 110, and one of the other VC at 400.
        allocator.on_cells(Label::new(0), Time(100), Span(5), 3);
        allocator.on_cells(Label::new(1), Time(400), Span(0), 1);
        assert_eq!(er(&mut allocator, 0, 110 + ERT - 1, 0), C / 2.0);
        assert_eq!(er(&mut allocator, 0, 110 + ERT, 0), C);
        allocator.on_cells(Label::new(0), Time(110 + ERT), Span(0), 1);
        assert_eq!(er(&mut allocator, 0, 111 + ERT, 0), C / 2.0);
    }

    #[test]
    fn the_equal_share_is_the_whole_link_if_no_vc_is_active() {
        assert_eq!(er(&mut sample().build(&port(3)), 0, 0, 0), C);
        assert_eq!(er(&mut sample().build(&port(3)), 0, 5000, 0), C);
    }

    #[test]
    fn an_activity_timer_of_zero_or_of_many_years_is_refused() {
        assert_eq!(Config { ert: Duration::default() }.check(None)[0].key, "ert");
        let fault = &Config { ert: "1000000s".parse().unwrap() }.check(None)[0];
        assert_eq!(
            (fault.value.as_str(), fault.problem.as_str()),
            ("\"1000000s\"", "must be a time above 0 and at most 1000s")
        );
        assert!(sample().check(None).is_empty());
    }
}
