//! EFCI: a congested port marks the data cells that leave it, and the destination reports the marks to the source.
//!
//! Source: draft-jagan-e2e-traf-mgmt-00, section 3 (threshold of 250 in a buffer of 1000 cells); ATM Forum TM 4.0 as
//! summarised in `docs/mechanisms.md` 4.5, whose symbol T is kept. Differences from the source: none known. A cell is
//! marked as it starts to leave, without hysteresis, and RM cells are not marked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Allocator, Configure, PortKind};
use crate::error::Fault;
use crate::threshold::Threshold;

/// EFCI: if more than `threshold` cells wait when a data cell leaves, the port marks the cell, and its source reduces
/// its rate.
///
/// Source: draft-jagan-e2e-traf-mgmt-00, section 3.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Efci")]
pub struct Config {
    /// T: the threshold above which cells are marked. The draft uses 250 in a buffer of 1000 cells.
    pub threshold: Threshold,
}

/// The EFCI allocator, which has no state.
#[derive(Debug)]
pub struct Efci {
    t: u32,
}

impl Configure for Config {
    type Allocator = Efci;

    fn check(&self, capacity: Option<u32>) -> Vec<Fault> {
        self.threshold.check("threshold", capacity)
    }

    fn thresholds(&self) -> Vec<(&'static str, Threshold)> {
        vec![("threshold", self.threshold)]
    }

    fn build(&self, port: &PortKind<'_>) -> Efci {
        Efci { t: self.threshold.whole_cells(port.capacity) }
    }
}

impl Allocator for Efci {
    fn marks_above(&self) -> Option<u32> {
        Some(self.t)
    }
}

#[cfg(test)]
pub(super) fn sample() -> Config {
    Config { threshold: 250.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abr::allocator::conformance::{brm, port};
    use crate::index::Label;
    use crate::units::Time;

    #[test]
    fn efci_marks_a_cell_only_if_the_queue_exceeds_the_threshold() {
        let efci = sample().build(&port(1));
        assert_eq!(efci.marks_above(), Some(250));
    }

    #[test]
    fn efci_leaves_rm_cells_unchanged() {
        let mut rm = brm(1e5);
        sample().build(&port(1)).on_backward_rm(Label::new(0), Time(1), 1000, &mut rm);
        assert_eq!(rm, brm(1e5));
    }

    #[test]
    fn an_efci_threshold_larger_than_the_buffer_is_refused() {
        assert_eq!(Config { threshold: 1001.into() }.check(Some(1000))[0].key, "threshold");
        assert!(Config { threshold: 1000.into() }.check(Some(1000)).is_empty());
        assert!(Config { threshold: 1001.into() }.check(None).is_empty());
    }
}
