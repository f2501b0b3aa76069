use proptest::prelude::*;
use typed_index_collections::{TiVec, ti_vec};

use super::*;
use crate::aal5::CellFormat;
use crate::index::LinkIndex;

/// The shared part of a pool with one queue per port, and its policy. The test counts the cells.
pub(super) struct Pool {
    cells: u32,
    queues: TiVec<PoolQueue, u32>,
    policy: Box<dyn MemoryPolicy>,
    now: Time,
}

impl Pool {
    pub(super) fn new(config: &MemoryPolicyConfig, cells: u32, queues: u32) -> Self {
        let infos: TiVec<PoolQueue, QueueInfo> = (0..queues).map(QueueInfo::at_port).collect();
        Self::with_queues(config, cells, &infos)
    }

    pub(super) fn with_queues(config: &MemoryPolicyConfig, cells: u32, queues: &TiSlice<PoolQueue, QueueInfo>) -> Self {
        let (clock, rng) = (Clock::exact(1_000_000), &Stream::new(1, "test"));
        let policy = config.build(&PoolInfo { name: "sw/main", cells, queues, clock, cell: CellFormat::ATM, rng });
        Self { cells, queues: ti_vec![0; queues.len()], policy, now: Time::default() }
    }

    /// Offers a cell. Returns whether the cell entered.
    pub(super) fn offer(&mut self, queue: u32) -> bool {
        let queue = PoolQueue::new(queue);
        self.ask(|policy, view| policy.arrived(view, queue, 1));
        loop {
            let is_certain = self.ask(|policy, view| {
                let used = (view.used + 3).min(view.cells - 1);
                view.used <= used && view.queues[queue] < policy.admits_up_to(view.cells, used, queue)
            });
            let verdict = self.ask(|policy, view| policy.admit(view, queue, 1));
            assert!(!is_certain || verdict == Verdict::Admit, "cells that the policy is certain to admit are admitted");
            match verdict {
                Verdict::Admit => break,
                Verdict::Refuse => return false,
                Verdict::PushOut(victim) => self.remove(victim.queue),
            }
        }
        self.queues[queue] += 1;
        assert!(self.queues.iter().sum::<u32>() <= self.cells, "a policy admits only cells that fit");
        self.ask(|policy, view| policy.entered(view, queue, 1));
        true
    }

    /// Returns the number of cells in every queue.
    pub(super) fn held(&self) -> Vec<u32> {
        self.queues.raw.clone()
    }

    /// Sends a cell.
    pub(super) fn leave(&mut self, queue: u32) {
        self.remove(PoolQueue::new(queue));
    }

    /// Lets the policy act at every time it is due, up to `now`.
    pub(super) fn act_at(&mut self, now: Time) {
        self.now = now;
        while self.policy.next_time().is_some_and(|time| time <= now) {
            if let Some(victim) = self.ask(MemoryPolicy::on_time) {
                self.remove(victim.queue);
            }
        }
    }

    pub(super) fn predict(&mut self, drops: Arc<[bool]>) {
        self.policy.predict(drops);
    }

    pub(super) fn threshold(&mut self, queue: u32) -> f64 {
        self.ask(|policy, view| policy.threshold(view, PoolQueue::new(queue))).expect("the policy has thresholds")
    }

    pub(super) fn has_threshold(&mut self, queue: u32) -> bool {
        self.ask(|policy, view| policy.threshold(view, PoolQueue::new(queue))).is_some()
    }

    pub(super) fn replaced_results(&self) -> u64 {
        self.policy.replaced_results()
    }

    fn remove(&mut self, queue: PoolQueue) {
        self.queues[queue] -= 1;
        self.ask(|policy, view| policy.left(view, queue, 1));
    }

    fn ask<T>(&mut self, question: impl FnOnce(&mut dyn MemoryPolicy, &View<'_>) -> T) -> T {
        let used = self.queues.iter().sum();
        question(&mut *self.policy, &View { cells: self.cells, used, queues: &self.queues, now: self.now })
    }
}

/// Offers cells to these queues in turn until none is admitted. Returns the number of cells in every queue.
pub(super) fn fill(pool: &mut Pool, queues: &[u32]) -> Vec<u32> {
    loop {
        let entered = queues.iter().filter(|&&queue| pool.offer(queue)).count();
        if entered == 0 {
            break;
        }
    }
    pool.held()
}

const LINKS: u32 = 3;

/// Returns a memory with a lossless and a lossy pool on the ingress side, and one pool on the egress side. Link i is
/// both an input and an output port of the switch.
fn memory_config(pause_at: PauseAt, policy: &MemoryPolicyConfig) -> MemoryConfig {
    let pool = |name: &str, side, cells, headroom, policy: &MemoryPolicyConfig| PoolConfig {
        name: name.to_string(),
        side,
        cells,
        headroom,
        policy: policy.clone(),
    };
    let static_half: MemoryPolicyConfig = static_thresholds::Config { threshold: Some(0.5.into()) }.into();
    let mut queues = TiVec::new();
    for link in (0..LINKS).map(LinkIndex::new) {
        for (pool, priority, lossless) in [(0, 0, true), (1, 1, false), (2, 0, false), (2, 1, false)] {
            let lossless = lossless.then_some(Lossless { headroom: 3, xon: 2, xon_offset: Some(3), pause_at });
            let (alpha, threshold) = (None, None);
            let pool = PoolIndex::new(pool);
            queues.push(QueueConfig { link, priority, pool, reserve: 1, alpha, threshold, lossless });
        }
    }
    MemoryConfig {
        name: "sw".into(),
        cells: 40,
        ports: (0..LINKS).map(LinkIndex::new).collect(),
        pools: [
            pool("lossless", Side::Ingress, 16, Some(6), policy),
            pool("lossy", Side::Ingress, 12, None, &static_half),
            pool("egress", Side::Egress, 30, None, policy),
        ]
        .into_iter()
        .collect(),
        queues,
        frames: FrameAdmission::default(),
        policies_see: PolicyScope::default(),
        pauses: Pauses::default(),
        pause_response: None,
    }
}

/// Returns the class of a cell by the order in which `memory_config` lists queues.
fn class(input: u32, output: u32, priority: u32) -> CellClass {
    let queue = |place| Some(QueueIndex::new(place));
    CellClass { ingress: queue(4 * input + priority), egress: queue(4 * output + 2 + priority) }
}

fn memory(config: &MemoryConfig) -> Memory {
    Memory::new(config, |_| Span(1), Clock::exact(1), CellFormat::ATM, 1)
}

/// A model of a memory that stores only the parts of every queue, and computes everything else when needed.
struct Model {
    config: MemoryConfig,
    /// Cells of each queue in the reserve, the shared part and the headroom.
    parts: TiVec<QueueIndex, [u32; 3]>,
    paused: TiVec<QueueIndex, bool>,
    policies: TiVec<PoolIndex, Box<dyn MemoryPolicy>>,
}

impl Model {
    fn new(config: &MemoryConfig) -> Self {
        let build = |(pool, settings): (PoolIndex, &PoolConfig)| {
            let queues: TiVec<PoolQueue, QueueInfo> =
                config.queues.iter().filter(|queue| queue.pool == pool).map(|_| QueueInfo::at_port(0)).collect();
            let (clock, rng) = (Clock::exact(1), &Stream::new(1, "test"));
            settings.policy.build(&PoolInfo {
                name: "sw/main",
                cells: settings.cells,
                queues: &queues,
                clock,
                cell: CellFormat::ATM,
                rng,
            })
        };
        Self {
            config: config.clone(),
            parts: ti_vec![[0; 3]; config.queues.len()],
            paused: ti_vec![false; config.queues.len()],
            policies: config.pools.iter_enumerated().map(build).collect(),
        }
    }

    fn of_pool(&self, pool: PoolIndex) -> Vec<QueueIndex> {
        self.config.queues.iter_enumerated().filter(|(_, queue)| queue.pool == pool).map(|(number, _)| number).collect()
    }

    fn with_view<T>(&mut self, pool: PoolIndex, question: impl FnOnce(&mut dyn MemoryPolicy, &View<'_>) -> T) -> T {
        let queues: TiVec<PoolQueue, u32> = self.of_pool(pool).iter().map(|&queue| self.parts[queue][1]).collect();
        let (cells, used) = (self.config.pools[pool].cells, queues.iter().sum());
        question(&mut *self.policies[pool], &View { cells, used, queues: &queues, now: Time::default() })
    }

    /// Returns the part that has room for a cell of a queue: 0 for the reserve, 1 for the shared part, 2 for the
    /// headroom.
    fn part(&mut self, queue: QueueIndex) -> Option<usize> {
        let QueueConfig { pool, reserve, lossless, .. } = self.config.queues[queue].clone();
        let place = PoolQueue::from(self.of_pool(pool).iter().position(|&other| other == queue)?);
        let [in_reserve, _, in_headroom] = self.parts[queue];
        if in_reserve < reserve {
            return Some(0);
        }
        if in_headroom == 0 && self.with_view(pool, |policy, view| policy.admit(view, place, 1)) == Verdict::Admit {
            return Some(1);
        }
        let together: u32 = self.of_pool(pool).iter().map(|&queue| self.parts[queue][2]).sum();
        let most = self.config.pools[pool].headroom.unwrap_or(u32::MAX);
        (in_headroom < lossless?.headroom && together < most).then_some(2)
    }

    fn offer(&mut self, class: CellClass) -> bool {
        let queues = [class.ingress.unwrap(), class.egress.unwrap()];
        let parts = queues.map(|queue| self.part(queue));
        let [Some(first), Some(second)] = parts else { return false };
        for (queue, part) in queues.into_iter().zip([first, second]) {
            self.parts[queue][part] += 1;
            let Some(lossless) = self.config.queues[queue].lossless else { continue };
            let pauses = self.parts[queue][2] > 0
                || (lossless.pause_at == PauseAt::Threshold && !matches!(self.part(queue), Some(0 | 1)));
            self.paused[queue] |= pauses;
        }
        true
    }

    fn leave(&mut self, class: CellClass) {
        for queue in [class.ingress.unwrap(), class.egress.unwrap()] {
            let part = [2, 1, 0].into_iter().find(|&part| self.parts[queue][part] > 0).unwrap();
            self.parts[queue][part] -= 1;
            let QueueConfig { pool, lossless, .. } = self.config.queues[queue].clone();
            let [_, shared, in_headroom] = self.parts[queue];
            let place = PoolQueue::from(self.of_pool(pool).iter().position(|&other| other == queue).unwrap());
            let threshold = self.with_view(pool, |policy, view| policy.threshold(view, place)).unwrap();
            let Some(lossless) = lossless.filter(|_| in_headroom == 0) else { continue };
            let is_below = f64::from(shared + lossless.xon_offset.unwrap()) <= threshold;
            self.paused[queue] &= !(shared == 0 || shared < lossless.xon || is_below);
        }
    }
}

fn policies() -> impl Strategy<Value = MemoryPolicyConfig> {
    let alpha = prop_oneof![Just(0.5), Just(1.0), Just(3.0)];
    let arriving_cell =
        prop_oneof![Just(dynamic_threshold::ArrivingCell::Counted), Just(dynamic_threshold::ArrivingCell::NotCounted)];
    let dynamic = (alpha, arriving_cell)
        .prop_map(|(alpha, arriving_cell)| dynamic_threshold::Config { alpha, arriving_cell }.into());
    prop_oneof![Just(complete_sharing::Config {}.into()), Just(static_thresholds::Config::default().into()), dynamic]
}

proptest! {
    /// Random arrivals and departures give the same counts as the model.
    #[test]
    fn a_shared_memory_matches_a_simple_model(
        policy in policies(),
        at_threshold in any::<bool>(),
        steps in prop::collection::vec((any::<bool>(), 0..LINKS, 0..LINKS, 0..2u32), 1..300),
    ) {
        let pause_at = if at_threshold { PauseAt::Threshold } else { PauseAt::Headroom };
        let config = memory_config(pause_at, &policy);
        let (mut memory, mut model) = (memory(&config), Model::new(&config));
        let mut waiting: Vec<CellClass> = Vec::new();
        for (arrives, input, output, priority) in steps {
            let class = class(input, output, priority);
            if arrives {
                let entered = memory.offer(class, Time::default()) == Offer::Entered;
                prop_assert_eq!(entered, model.offer(class));
                waiting.extend(entered.then_some(class));
            } else if let Some(place) = waiting.iter().position(|other| other.egress == class.egress) {
                let class = waiting.remove(place);
                memory.leave(class, Time::default());
                model.leave(class);
            }
            prop_assert_eq!(memory.used() as usize, waiting.len());
            for (queue, parts) in model.parts.iter_enumerated() {
                prop_assert_eq!(memory.held(queue), parts.iter().sum::<u32>());
                prop_assert_eq!(memory.shared(queue), parts[1]);
                prop_assert_eq!(memory.in_headroom(queue), parts[2]);
                prop_assert_eq!(memory.is_paused(queue), model.paused[queue]);
            }
        }
    }
}

#[test]
fn a_cell_uses_reserved_space_first_then_shared_space_then_headroom() {
    let policy =
        dynamic_threshold::Config { arriving_cell: dynamic_threshold::ArrivingCell::Counted, ..Default::default() };
    let config = memory_config(PauseAt::Headroom, &policy.into());
    let mut memory = memory(&config);
    let group = QueueIndex::new(0);
    // The group has one reserved cell, half of the 16 shared cells, and three cells of headroom. The egress queues have
    // room for all cells.
    for cell in 1..=12 {
        assert_eq!(memory.offer(class(0, cell % LINKS, 0), Time::default()), Offer::Entered, "cell {cell}");
        assert_eq!(memory.shared(group), (cell - 1).min(8), "cell {cell}");
        assert_eq!(memory.in_headroom(group), cell.saturating_sub(9), "cell {cell}");
        assert_eq!(memory.is_paused(group), cell > 9, "cell {cell}");
    }
    let Offer::Refused(refusal) = memory.offer(class(0, 0, 0), Time::default()) else { panic!("no free cell") };
    assert_eq!((refusal.queue, refusal.limit, refusal.held), (group, Limit::Headroom, 8));
    assert_eq!(memory.counters(group).refused, 1);
    let changes: Vec<_> = std::iter::from_fn(|| memory.next_pause_change()).collect();
    assert_eq!(changes, [PauseChange { queue: group, paused: true, at: Time::default() }]);
    // Headroom is freed first. The pause ends once the group is 3 cells below its threshold: 7 + 3 > 16 - 7, but 6 + 3
    // <= 16 - 6.
    for cell in (1..=12).rev() {
        let still_paused = cell > 8;
        memory.leave(class(0, cell % LINKS, 0), Time::default());
        assert_eq!(memory.is_paused(group), still_paused, "cell {cell}");
    }
    assert_eq!(memory.used(), 0);
}

#[test]
fn a_packet_enters_the_headroom_only_if_all_its_cells_fit() {
    let policy =
        dynamic_threshold::Config { arriving_cell: dynamic_threshold::ArrivingCell::Counted, ..Default::default() };
    let mut memory = memory(&memory_config(PauseAt::Headroom, &policy.into()));
    // As for single cells, the group has one reserved cell, half of the 16 shared cells, and three cells of headroom.
    let packets = [(3, true), (3, true), (3, true), (1, true), (3, false), (2, true), (1, false)];
    for (number, (cells, enters)) in (0..).zip(packets) {
        let offer = memory.offer_packet(class(0, number % LINKS, 0), cells, Time::default());
        assert_eq!(offer == Offer::Entered, enters, "packet {number}");
    }
    let group = QueueIndex::new(0);
    assert_eq!([memory.shared(group), memory.in_headroom(group)], [8, 3]);
}

#[test]
fn a_pause_triggered_at_the_threshold_begins_one_cell_before_a_pause_at_the_headroom() {
    let policy =
        dynamic_threshold::Config { arriving_cell: dynamic_threshold::ArrivingCell::Counted, ..Default::default() };
    let config = memory_config(PauseAt::Threshold, &policy.into());
    let mut memory = memory(&config);
    let paused = (1..=12).find(|cell| {
        assert_eq!(memory.offer(class(0, cell % LINKS, 0), Time::default()), Offer::Entered);
        memory.is_paused(QueueIndex::new(0))
    });
    assert_eq!(paused, Some(9), "the queue holds one reserved cell and half of the 16 shared cells");
}

#[test]
fn every_limit_that_a_memory_policy_names_in_a_refusal_is_on_its_documentation_page() {
    let samples = MemoryPolicyConfig::samples();
    for name in ["abm", "dynamic_threshold", "harmonic", "occamy", "static_thresholds"] {
        let config = samples.iter().find(|config| config.name() == name).expect("the policy is listed");
        let rule = Pool::new(config, 100, 2).policy.rule();
        let limit = rule.strip_prefix("q_i would exceed ").and_then(|limit| limit.split(" times ").next());
        let page = format!("{}/../../docs/models/{name}.md", env!("CARGO_MANIFEST_DIR"));
        let page = std::fs::read_to_string(page).expect("every policy has a page");
        assert!(limit.is_some_and(|limit| page.contains(limit)), "{name}: {rule}");
    }
}

#[test]
fn equally_long_queues_of_a_shared_memory_have_the_same_rank() {
    let queues: TiVec<PoolQueue, u32> = vec![3, 5, 3, 0].into();
    let view = View { cells: 20, used: 11, queues: &queues, now: Time::default() };
    assert_eq!(queues.keys().map(|queue| view.rank(queue)).collect::<Vec<_>>(), [2, 1, 2, 4]);
    assert_eq!(view.active(), 3);
}
