//! Random settings of ports and edge devices.

use celltrain_core::abr::allocator::AllocatorConfig;
use celltrain_core::edge_device::{DiscardConfig, EdgeConfig, Memory};
use celltrain_core::policy::{PerVc, PolicyConfig};
use celltrain_core::scheduler::SchedulerConfig;
use celltrain_scenario::scenario::{Buffer, Infinite, PortConfig};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use super::HUGE;
use super::kinds::{ALLOCATORS, DISCARDS, Drawn, PLAIN, POLICIES, SCHEDULERS, drawn, named, seed};
use super::swarm::{Feature, List, Pick, Swarm};
use crate::formulas::drawn::Draws;

#[derive(Clone, Debug)]
pub(super) struct Port {
    pub(super) policy: (Model, Drawn),
    pub(super) scheduler: Option<(Model, Drawn)>,
    pub(super) allocator: Option<(Pick, Drawn)>,
    pub(super) beyond_a_frame: Option<u32>,
}

/// The choice of a model from a list: one of the models that the network may use, or a fixed model.
#[derive(Clone, Copy, Debug)]
pub(super) enum Model {
    Picked(Pick),
    Named(&'static str),
}

impl Model {
    pub(super) fn name(self, swarm: Swarm, list: List, names: &'static [&'static str]) -> &'static str {
        match self {
            Self::Picked(pick) => swarm.one_of(list, names, pick),
            Self::Named(name) => name,
        }
    }
}

/// Draws a port. With probability `how_often`, the table of the port sets a scheduler.
pub(super) fn port(buffers: &'static [Option<u32>], how_often: f64) -> BoxedStrategy<Port> {
    let model = || any::<Pick>().prop_map(Model::Picked);
    let scheduler = prop::option::weighted(how_often, (model(), drawn()));
    let allocator = prop::option::weighted(0.8, (any::<Pick>(), drawn()));
    let parts = ((model(), drawn()), scheduler, allocator, select(buffers));
    parts
        .prop_map(|(policy, scheduler, allocator, beyond_a_frame)| Port {
            policy,
            scheduler,
            allocator,
            beyond_a_frame,
        })
        .boxed()
}

impl Port {
    pub(super) fn config(&self, swarm: Swarm, frame: u32) -> PortConfig {
        let (policy, drawn) = self.policy;
        let name = policy.name(swarm, List::Policy, PolicyConfig::NAMES);
        let drawn = if swarm.has(Feature::PolicySettings) { &drawn } else { &PLAIN };
        let limited = self.beyond_a_frame.map(|cells| frame + cells);
        let scheduler = self.scheduler.filter(|(model, _)| match model {
            Model::Picked(_) => swarm.has(Feature::Schedulers),
            Model::Named(_) => true,
        });
        let scheduler =
            scheduler.map(|(model, drawn)| match model.name(swarm, List::Scheduler, SchedulerConfig::NAMES) {
                "wfq_formula" => weights(&drawn),
                name => named(&SCHEDULERS, name, &drawn, 0),
            });
        // Try the default settings next, and then a finite buffer, because the random settings may be incompatible, and
        // some policies need a finite buffer.
        for (limit, drawn) in [(limited, drawn), (limited, &PLAIN), (Some(HUGE), &PLAIN)] {
            let mut policy: PolicyConfig = if name == "formula" {
                formula(drawn, limit)
            } else if name == "python" {
                super::super::stand::class(drawn[0])
            } else {
                named(&POLICIES, name, drawn, limit.unwrap_or(HUGE))
            };
            if let PolicyConfig::DualPi2(config) = &mut policy {
                // Put all VCs into the queue L, because every port needs a VC in this queue.
                config.l4s = PerVc::Same(1.0);
            }
            if policy.check(limit).is_empty() {
                let buffer = limit.map_or(Buffer::Infinite(Infinite::Infinite), Buffer::Cells);
                let allocator = self.allocator.map(|(pick, drawn)| {
                    let name = swarm.one_of(List::Allocator, AllocatorConfig::NAMES, pick);
                    named(&ALLOCATORS, name, &drawn, limit.unwrap_or(HUGE))
                });
                let scheduler = scheduler.unwrap_or_default();
                return PortConfig { buffer, policy, scheduler, allocator, marking: None };
            }
        }
        panic!("{name}: random settings within their ranges may still be invalid");
    }
}

/// Creates a policy of random formulas, or a plain policy if the random formulas are invalid.
pub(super) fn formula(drawn: &Drawn, limit: Option<u32>) -> PolicyConfig {
    let plain = json!({"formula": {"admit": "X < 100"}});
    let random = json!({"formula": Draws::new(seed(drawn)).formula("tcp1")});
    let [plain, random]: [PolicyConfig; 2] =
        [plain, random].map(|policy| serde_json::from_value(policy).expect("a table of formulas has these keys"));
    // The draws include invalid formulas.
    if *drawn != PLAIN && random.check(limit).is_empty() && random.check_vcs(limit, &["tcp1", "tcp2"]).is_empty() {
        random
    } else {
        plain
    }
}

/// Creates fair queuing with weights from a random formula, or from a plain formula if the random formula is invalid.
pub(super) fn weights(drawn: &Drawn) -> SchedulerConfig {
    let [plain, random]: [SchedulerConfig; 2] =
        [json!({"weight": "V"}), Draws::new(seed(drawn)).weight("tcp1")].map(|table| {
            serde_json::from_value(json!({"wfq_formula": table})).expect("a table of formulas has these keys")
        });
    // The draws include invalid formulas.
    let is_sound = *drawn != PLAIN
        && random.config().check().is_empty()
        && random.config().check_vcs(&["tcp1", "tcp2"]).is_empty();
    if is_sound { random } else { plain }
}

/// Random settings of the buffers of edge devices.
#[derive(Clone, Debug)]
pub(super) struct Edge {
    pub(super) discard: (Pick, Drawn),
    pub(super) memory: Memory,
    pub(super) beyond_a_frame: Option<u32>,
}

impl Default for Edge {
    fn default() -> Self {
        Self { discard: (Pick::default(), PLAIN), memory: Memory::default(), beyond_a_frame: None }
    }
}

pub(super) fn edge() -> BoxedStrategy<Edge> {
    let parts = (
        (any::<Pick>(), drawn()),
        select(&[Memory::PerVc, Memory::Shared][..]),
        select(&[None, Some(2_000u32), Some(500), Some(40), Some(0)][..]),
    );
    parts.prop_map(|(discard, memory, beyond_a_frame)| Edge { discard, memory, beyond_a_frame }).boxed()
}

impl Edge {
    pub(super) fn config(&self, swarm: Swarm, frame: u32) -> EdgeConfig {
        let (pick, drawn) = &self.discard;
        let discard = named(&DISCARDS, swarm.one_of(List::Discard, DiscardConfig::NAMES, *pick), drawn, 0);
        EdgeConfig { buffer: self.beyond_a_frame.map(|cells| frame + cells), memory: self.memory, discard }
    }
}
