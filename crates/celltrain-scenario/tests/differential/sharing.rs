//! Random networks whose switches share their memories.

use celltrain_core::cancellation::CancellationToken;
use celltrain_core::memory::{FrameAdmission, MemoryPolicyConfig, PauseAt, Pauses, PolicyScope, Side};
use celltrain_scenario::memory_options::{MemoryOptions, OwnSwitch, PoolOptions, QueueOptions};
use celltrain_scenario::scenario::{Buffer, Shared};
use celltrain_scenario::{Scenario, check};
use proptest::prelude::*;
use proptest::sample::select;

use super::any_network;

/// Settings of the memories of all switches of a network.
#[derive(Clone, Debug)]
struct Drawn {
    cells: u32,
    /// The share of cells that the egress pool leaves to others, in 16ths.
    less: u32,
    egress: MemoryPolicyConfig,
    ingress: Option<MemoryPolicyConfig>,
    lossless: bool,
    reserve: u32,
    headroom: u32,
    alpha: Option<f64>,
    pause_at: PauseAt,
    pauses: Pauses,
    frames: FrameAdmission,
    policies_see: PolicyScope,
    /// True if the flows with odd numbers have priority 3.
    priorities: bool,
}

/// Draws a network in which all ports of a switch share a memory.
pub(crate) fn with_memories() -> BoxedStrategy<Scenario> {
    let policy = || select(MemoryPolicyConfig::samples());
    let without_removal = || policy().prop_filter("it removes no cells", |policy| !removes(policy));
    let sizes = (select(vec![60_u32, 200, 1000, 30]), 0..8_u32, 0..4_u32, 1..12_u32);
    let policies = (policy(), prop::option::weighted(0.5, without_removal()), any::<bool>());
    let pauses = (
        select(vec![PauseAt::Headroom, PauseAt::Threshold]),
        select(vec![Pauses::Counted, Pauses::Links]),
        prop::option::weighted(0.3, select(vec![0.5, 1.0, 4.0])),
    );
    let others = (
        select(vec![FrameAdmission::Cells, FrameAdmission::Whole]),
        select(vec![PolicyScope::Port, PolicyScope::Memory]),
        any::<bool>(),
    );
    let drawn = (sizes, policies, pauses, others).prop_map(
        |(
            (cells, less, reserve, headroom),
            (egress, ingress, lossless),
            (pause_at, pauses, alpha),
            (frames, policies_see, priorities),
        )| Drawn {
            cells,
            less,
            egress,
            ingress,
            lossless,
            reserve,
            headroom,
            alpha,
            pause_at,
            pauses,
            frames,
            policies_see,
            priorities,
        },
    );
    (any_network(), drawn).prop_map(|(scenario, drawn)| drawn.share(&scenario)).boxed()
}

fn removes(policy: &MemoryPolicyConfig) -> bool {
    policy.pushes_out() || policy.needs_predictions()
}

impl Drawn {
    /// Returns the scenario with memories. Settings that are incompatible with it are left out.
    fn share(&self, scenario: &Scenario) -> Scenario {
        let simpler = Self { egress: MemoryPolicyConfig::samples().remove(0), pauses: Pauses::Counted, ..self.clone() };
        let simplest = Self { ingress: None, lossless: false, less: 0, cells: 3000, ..simpler.clone() };
        for drawn in [self, &simpler, &simplest] {
            let shared = drawn.applied(scenario);
            let verdict = check::check(&shared, &[], &|_| Ok(()), &CancellationToken::never());
            if verdict.expect("nothing interrupts it").faults.is_empty() {
                return shared;
            }
        }
        scenario.clone()
    }

    fn applied(&self, scenario: &Scenario) -> Scenario {
        let mut shared = scenario.clone();
        // Thresholds of ports must fit.
        let largest = scenario.port.values().filter_map(|port| port.buffer.cells()).max().unwrap_or(0);
        let cells = self.cells.max(if self.policies_see == PolicyScope::Port { largest } else { 0 });
        for port in shared.port.values_mut() {
            port.buffer = Buffer::Shared(Shared::Shared);
        }
        if self.priorities {
            for flow in (1..8).step_by(2) {
                for name in [format!("tcp{flow}"), format!("tcp{flow}-acks")] {
                    if let Some(own) = shared.vc.get_mut(&name) {
                        own.priority = 3;
                    }
                }
            }
        }
        let pool = |side, policy: &MemoryPolicyConfig, cells| PoolOptions {
            side,
            cells,
            headroom: None,
            policy: policy.clone(),
        };
        let less = cells.saturating_mul(self.less) / 16;
        let egress = pool(Side::Egress, &self.egress, (less > 0).then_some(cells - less));
        let mut queue = vec![QueueOptions {
            pool: Some("out".into()),
            alpha: self.alpha.filter(|_| self.egress.per_queue().alpha),
            ..QueueOptions::default()
        }];
        let mut pools = vec![("out".to_string(), egress)];
        if let Some(policy) = &self.ingress {
            pools.push(("in".to_string(), pool(Side::Ingress, policy, None)));
            let lossless = self.lossless;
            queue.push(QueueOptions {
                pool: Some("in".into()),
                reserve: self.reserve,
                lossless,
                headroom: lossless.then_some(self.headroom),
                xon_offset: lossless.then_some(2),
                pause_at: lossless.then_some(self.pause_at),
                ..QueueOptions::default()
            });
        }
        let pauses = if self.ingress.is_some() && self.lossless { self.pauses } else { Pauses::Counted };
        let memory = MemoryOptions {
            cells,
            ports: vec!["*".into()],
            pool: pools.into_iter().collect(),
            queue,
            frames: self.frames,
            policies_see: self.policies_see,
            pauses,
        };
        let own = OwnSwitch { memory: Some(memory), ..OwnSwitch::default() };
        shared.switch.own = [("*".to_string(), own)].into();
        shared
    }
}
