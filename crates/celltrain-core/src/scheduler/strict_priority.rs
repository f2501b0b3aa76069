//! Strict priority: a queue for each class, served only while all higher classes are empty.
//!
//! Source: `docs/mechanisms.md` 2.14 and 2.15 (CBR and VBR above ABR, UBR and GFR). Differences from the source: CBR
//! goes before VBR.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Class, Configure, Scheduler, Service, VcKind, Waiting};

/// Strict priority: cells of class `cbr` are sent before those of `vbr`, and cells of `vbr` before those of `ubr`. Each
/// class is first in, first out. A cell in service is not interrupted. It has no parameters: the class is a setting of
/// the VC.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "StrictPriority")]
pub struct Config {}

impl Configure for Config {
    fn by_class(&self) -> bool {
        true
    }

    fn build(&self, vcs: &[VcKind<'_>]) -> Option<Service> {
        let queue_of = vcs.iter().map(|vc| vc.class as usize).collect();
        Some(Service::new(Class::ALL.len(), queue_of, StrictPriority))
    }
}

/// The scheduler, which has no state.
struct StrictPriority;

impl Scheduler for StrictPriority {
    fn serve(&mut self, mut cells: u32, waiting: &mut impl Waiting) {
        while cells > 0 {
            let queue = waiting.queues().find(|&queue| waiting.cells(queue) > 0).expect("at least one cell is waiting");
            cells -= waiting.send(queue, cells);
        }
    }
}

#[cfg(test)]
pub(super) fn sample() -> Config {
    Config {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::conformance::{self, sent};

    #[test]
    fn the_highest_waiting_class_is_served_first_and_cells_keep_their_order_within_a_class() {
        let mut queues = conformance::queues(&Config {}, &[Class::Ubr, Class::Vbr, Class::Cbr, Class::Vbr]);
        assert_eq!(sent(&mut queues, &[0, 3, 1, 2, 0, 3], 6), [2, 3, 1, 3, 0, 0]);
    }

    #[test]
    fn under_strict_priority_a_cell_waits_only_for_cells_of_the_same_and_higher_classes() {
        let mut queues = conformance::queues(&Config {}, &[Class::Ubr, Class::Vbr]);
        assert_eq!(sent(&mut queues, &[0, 0, 0], 1), [0]);
        assert_eq!(sent(&mut queues, &[1], 1), [1], "the class is served regardless of earlier cells of other classes");
        assert_eq!(sent(&mut queues, &[1, 0, 1], 5), [1, 1, 0, 0, 0]);
    }
}
