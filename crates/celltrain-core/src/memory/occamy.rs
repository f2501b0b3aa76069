//! Occamy: Dynamic Threshold with a large alpha, and cells at the heads of queues above their threshold are expelled.
//!
//! Source: Shan and others, "Occamy: A Preemptive Buffer Management for On-chip Shared-memory Switches", 2025. Queues
//! with `q_i` > `T_i` lose cells from their heads, round robin, paced by a token bucket in cells. Differences from the
//! source: in the paper, expulsions use the memory bandwidth that departures leave; here the bucket is filled at a
//! separate rate, by default the rate of the fastest port of the pool.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use typed_index_collections::TiVec;

use super::dynamic_threshold::check_alpha;
use super::{Configure, Hooks, MemoryPolicy, PerQueue, PoolInfo, PoolQueue, PushOut, QueueEnd, Verdict, View};
use crate::error::Fault;
use crate::units::{BitRate, Span, Time};

/// Occamy: Dynamic Threshold with a large alpha, and cells at the heads of queues above their threshold are expelled.
///
/// Source: Shan and others, 2025.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Occamy")]
pub struct Config {
    /// Alpha of all queues that set no alpha of their own.
    #[schemars(extend("exclusiveMinimum" = 0.0, "x-expect" = "a factor for the number of free cells (above 0)"))]
    pub alpha: f64,
    /// Rate of the line that the expelled cells would fill. Default: the rate of the fastest port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
    /// Number of cells that can be expelled at once after a period without expulsions.
    #[schemars(range(min = 1))]
    pub burst: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { alpha: 8.0, rate: None, burst: 1 }
    }
}

/// Occamy.
#[derive(Debug)]
pub struct Occamy {
    alphas: TiVec<PoolQueue, f64>,
    /// Time in which the token bucket gains a token.
    per_cell: Span,
    /// Time in which the bucket fills up after it contained one token.
    slack: Span,
    /// Time at which the bucket will be full again.
    full_at: Time,
    /// The queue at which the round robin continues.
    next: PoolQueue,
    has_victims: bool,
}

impl Configure for Config {
    type Policy = Occamy;

    fn pushes_out(&self) -> bool {
        true
    }

    fn per_queue(&self) -> PerQueue {
        PerQueue { alpha: true, ..PerQueue::default() }
    }

    fn check(&self, _cells: u32) -> Vec<Fault> {
        let mut faults = check_alpha(self.alpha);
        if let Some(rate) = self.rate.filter(|rate| rate.bits_per_second == 0) {
            faults.push(Fault::new("rate", format!("\"{rate}\""), "is not a rate above 0, such as 1Gbps"));
        }
        faults
    }

    fn build(&self, pool: &PoolInfo<'_>) -> Occamy {
        let fastest = pool.queues.iter().map(|queue| queue.cell_time).min().unwrap_or(Span(1));
        let per_cell = self.rate.map_or(fastest, |rate| pool.clock.cell_time(rate));
        Occamy {
            alphas: pool.queues.iter().map(|queue| queue.alpha.unwrap_or(self.alpha)).collect(),
            per_cell,
            slack: per_cell * u64::from(self.burst.saturating_sub(1)),
            full_at: Time::default(),
            next: PoolQueue::new(0),
            has_victims: false,
        }
    }
}

impl Occamy {
    fn is_above(&self, view: &View<'_>, queue: PoolQueue) -> bool {
        self.threshold(view, queue).is_some_and(|threshold| f64::from(view.queues[queue]) > threshold)
    }

    fn look_for_victims(&mut self, view: &View<'_>) {
        self.has_victims = view.queues.keys().any(|queue| self.is_above(view, queue));
    }
}

impl MemoryPolicy for Occamy {
    fn admit(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) -> Verdict {
        if self.has_room(view, queue, cells) { Verdict::Admit } else { Verdict::Refuse }
    }

    fn threshold(&self, view: &View<'_>, queue: PoolQueue) -> Option<f64> {
        Some(self.alphas[queue] * f64::from(view.free()))
    }

    fn entered(&mut self, view: &View<'_>, _queue: PoolQueue, _cells: u32) {
        self.look_for_victims(view);
    }

    fn left(&mut self, view: &View<'_>, _queue: PoolQueue, _cells: u32) {
        self.look_for_victims(view);
    }

    fn next_time(&self) -> Option<Time> {
        let with_token = Time(self.full_at.0.saturating_sub(self.slack.0));
        self.has_victims.then_some(with_token)
    }

    fn on_time(&mut self, view: &View<'_>) -> Option<PushOut> {
        let first = self.next;
        let keys = || view.queues.keys();
        let mut in_turn = keys().filter(|&queue| queue >= first).chain(keys().filter(|&queue| queue < first));
        // The policy last looked for victims when the counts of the pool last changed.
        let queue = in_turn.find(|&queue| self.is_above(view, queue)).expect("a queue is above its threshold");
        self.next = PoolQueue::new(queue.number() + 1);
        self.full_at = self.full_at.max(view.now) + self.per_cell;
        Some(PushOut { queue, end: QueueEnd::Head })
    }

    /// Takes a token for each cell of the removed packet.
    fn removed(&mut self, cells: u32) {
        self.full_at += self.per_cell * u64::from(cells.saturating_sub(1));
    }

    fn hooks(&self) -> Hooks {
        Hooks { arrivals: false, ..Hooks::ALL }
    }

    fn rule(&self) -> &'static str {
        "q_i would exceed alpha_i (B - Q)"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::{Pool, fill};

    #[test]
    fn occamy_removes_the_oldest_cells_of_the_queues_above_their_thresholds_in_round_robin_order() {
        let mut pool = Pool::new(&Config { alpha: 1.0, ..Config::default() }.into(), 12, 3);
        assert_eq!(fill(&mut pool, &[0]), [6, 0, 0]);
        // With the arriving cell, 7 places are occupied. The thresholds fall to 5, so queue 0 loses a cell immediately.
        assert!(pool.offer(1));
        pool.act_at(Time(0));
        assert_eq!(pool.held(), [5, 1, 0], "5 <= 12 - 6");
        assert!(pool.offer(1) && pool.offer(2));
        // 8 of 12 places are occupied. The next token comes one cell time after the last token.
        pool.act_at(Time(0));
        assert_eq!(pool.held(), [5, 2, 1]);
        pool.act_at(Time(1));
        assert_eq!(pool.held(), [4, 2, 1], "4 <= 12 - 7");
    }

    #[test]
    fn occamy_can_remove_many_cells_at_one_instant() {
        let mut pool = Pool::new(&Config { alpha: 2.0, burst: 2, rate: None }.into(), 30, 3);
        assert_eq!(fill(&mut pool, &[0]), [20, 0, 0]);
        // Three more cells arrive, and the threshold of queue 0 falls to 14.
        (0..3).for_each(|_| assert!(pool.offer(1)));
        pool.act_at(Time(0));
        assert_eq!(pool.held(), [18, 3, 0]);
        pool.act_at(Time(1));
        assert_eq!(pool.held(), [18, 3, 0], "18 <= 2 x (30 - 21)");
    }
}
