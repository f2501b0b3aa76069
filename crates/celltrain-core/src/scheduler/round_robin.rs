//! Round robin: a queue for each VC, served in turns, one cell per turn.
//!
//! Source: Li, Siu, Tzeng, Ikeda and Suzuki 1996 (per-VC queuing), as recalled in `docs/mechanisms.md` 2.7. Differences
//! from the source: the source does not say where a queue joins when it becomes non-empty; here it joins last.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BacklogSensitivity, Configure, Scheduler, Service, VcKind, Waiting};
use crate::arbiter::{Arbiter, RoundRobin as Ring};

/// Round robin: every VC has its own queue, and the queues that have cells waiting send one cell each in turn. It has
/// no parameters.
///
/// Source: Li, Siu, Tzeng, Ikeda and Suzuki, TCP performance over ABR and UBR services in ATM, 1996 (per-VC queuing).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RoundRobin")]
pub struct Config {}

impl Configure for Config {
    fn build(&self, vcs: &[VcKind<'_>]) -> Option<Service> {
        let arbiter = Ring::new(vcs.len());
        Some(Service::new(vcs.len(), (0..vcs.len()).collect(), Arbitrated { arbiter }))
    }
}

/// A scheduler whose arbiter selects a queue for each cell.
pub(crate) struct Arbitrated<A> {
    pub(crate) arbiter: A,
}

impl<A: Arbiter> Scheduler for Arbitrated<A> {
    fn on_backlog(&mut self, queue: usize) {
        self.arbiter.join(queue);
    }

    fn serve(&mut self, mut cells: u32, waiting: &mut impl Waiting) {
        while cells > 0 {
            if let Some(queue) = self.arbiter.alone().filter(|&queue| waiting.cells(queue) > cells) {
                while cells > 0 {
                    cells -= waiting.send(queue, cells);
                }
                return;
            }
            self.arbiter.serve(|queue| waiting.send_one(queue));
            cells -= 1;
        }
    }

    fn backlog_sensitivity(&self) -> BacklogSensitivity {
        if A::FORGIVES { BacklogSensitivity::Order } else { BacklogSensitivity::Exact }
    }
}

#[cfg(test)]
pub(super) fn sample() -> Config {
    Config {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::Class;
    use crate::scheduler::conformance::{self, sent};

    #[test]
    fn round_robin_serves_vcs_in_turn_and_a_queue_that_becomes_nonempty_goes_last() {
        let mut queues = conformance::queues(&Config {}, &[Class::Ubr; 3]);
        assert_eq!(sent(&mut queues, &[0, 0, 0, 1, 1], 2), [0, 1]);
        assert_eq!(sent(&mut queues, &[2, 2], 3), [0, 1, 2]);
        assert_eq!(sent(&mut queues, &[1], 3), [0, 2, 1]);
    }

    #[test]
    fn round_robin_keeps_serving_a_vc_that_is_the_only_one_with_cells() {
        let mut queues = conformance::queues(&Config {}, &[Class::Ubr; 2]);
        assert_eq!(sent(&mut queues, &[1; 5], 3), [1; 3]);
        assert_eq!(sent(&mut queues, &[0, 1], 4), [1, 0, 1, 1]);
    }
}
