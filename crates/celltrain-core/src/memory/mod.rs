//! Memories shared by output ports of one switch, and the policies that divide these memories.
//!
//! Source: `docs/design/shared-memory.md`. A [`MemoryConfig`] describes a memory, [`Memory`] keeps its counts, and a
//! [`MemoryPolicy`] decides which cells enter the shared part of a pool. Ports keep their own queues, frames and
//! policies. A port that belongs to a memory is full if the memory has no room for the arriving cell.
//!
//! A *queue* is an output port and a priority, and is counted on the egress side. A *priority group* is an input port
//! and a priority, and is counted on the ingress side. Both are called queues here. A cell must find room on every side
//! that counts: first in its queue's reserve, then in the pool's shared part, and then, if the queue is lossless, in
//! its headroom. The cell in service does not count (A-02).
//!
//! A new policy needs one file in this directory, two lines in this file, one page under `docs/models/` and one
//! scenario.

mod accounting;
mod config;
mod deadlock;
mod drain_rate;
mod interval;
mod occupancy;
mod pause_response;
pub(crate) mod recorded;

pub mod abm;
pub mod abm_occamy;
pub mod complete_sharing;
pub mod credence;
pub mod dynamic_threshold;
pub mod formula;
pub mod harmonic;
pub mod longest_queue_drop;
pub mod occamy;
pub mod python;
pub mod static_thresholds;

pub(crate) use accounting::{Attempt, CountingQueue};
pub use accounting::{
    CellClass, CellClasses, Limit, Memory, MemoryState, Offer, PauseChange, PoolState, QueueCounters, Refusal, Removal,
};
pub use config::{FrameAdmission, Lossless, MemoryConfig, PauseAt, Pauses, PolicyScope, PoolConfig, QueueConfig, Side};
pub(crate) use deadlock::{PausedGroup, PausedGroups, deadlock};
pub use occupancy::OccupancyTimes;
pub use pause_response::{PauseResponse, QUANTUM_BITS};

use std::any::Any;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use typed_index_collections::TiSlice;

use crate::aal5::CellFormat;
use crate::error::Fault;
use crate::index::indices;
use crate::registry;
use crate::rng::Stream;
use crate::units::{Clock, Span, Time};

indices! {
    /// Index of a pool in its memory.
    PoolIndex;

    /// Index of a queue or priority group in its memory.
    QueueIndex;

    /// The number of a queue within its pool. Policies see only numbers within the pool.
    PoolQueue;
}

registry! {
    /// The policy of a pool in a scenario: a table whose only key is the policy's name.
    #[schemars(rename = "MemoryPolicy")]
    pub enum MemoryPolicyConfig(module::Config) {
        /// Complete sharing: a cell enters while the pool has a place.
        complete_sharing: CompleteSharing,
        /// Static thresholds: a queue holds at most a fixed number of cells.
        static_thresholds: StaticThresholds,
        /// Dynamic Threshold: a queue holds at most alpha times the places that are free.
        dynamic_threshold: DynamicThreshold,
        /// Longest Queue Drop: every cell enters, and a full pool removes a cell of the longest queue.
        longest_queue_drop: LongestQueueDrop,
        /// Harmonic: the k-th longest queue holds at most B / (k `H_n`) cells.
        harmonic: Harmonic,
        /// ABM as its authors implement it: Dynamic Threshold over the congested queues of a priority, times the drain
        /// rate.
        abm: Abm,
        /// ABM as the baseline of Occamy: queues that hold 0.9 of their threshold count, and counts are updated in
        /// intervals.
        abm_occamy: AbmOccamy,
        /// Occamy: Dynamic Threshold with a large alpha. Cells are expelled from the heads of queues that exceed their
        /// threshold.
        occamy: Occamy,
        /// Credence: the thresholds of a virtual Longest Queue Drop, and predictions of the cells that this algorithm
        /// would lose.
        credence: Credence,
        /// A policy of your own, written as formulas in the scenario.
        formula: Formula,
        /// A policy of your own, written as a Python class.
        python: Python,
    }

    /// Returns whether the policy removes waiting cells.
    pub fn pushes_out(&self) -> bool { |config| config.pushes_out() }

    /// Returns whether the policy needs predictions of the cells that Longest Queue Drop loses.
    pub fn needs_predictions(&self) -> bool { |config| config.needs_predictions() }

    /// Returns the settings that may differ from queue to queue.
    pub fn per_queue(&self) -> PerQueue { |config| config.per_queue() }

    /// Checks the settings for a pool whose shared part has `cells` cells.
    pub fn check(&self, cells: u32) -> Vec<Fault> { |config| config.check(cells) }

    /// Creates the policy for a pool.
    pub fn build(&self, pool: &PoolInfo<'_>) -> Box<dyn MemoryPolicy> { |config| Box::new(config.build(pool)) }

    /// Returns every policy, with default settings if it has them, for tests that hold for all policies.
    #[cfg(any(test, feature = "samples"))]
    pub fn samples() -> Vec<Self> { |mod policy| policy::Config::default().into() }
}

/// The settings of a policy, implemented by each `Config`.
pub trait Configure {
    /// The policy that these settings configure.
    type Policy: MemoryPolicy + 'static;

    /// Returns whether the policy removes waiting cells. Such a policy needs a pool on the egress side and FIFO ports.
    fn pushes_out(&self) -> bool {
        false
    }

    /// Returns whether the policy needs [predictions](MemoryPolicy::predict).
    fn needs_predictions(&self) -> bool {
        false
    }

    /// Returns the settings that may differ from queue to queue.
    fn per_queue(&self) -> PerQueue {
        PerQueue::default()
    }

    /// Checks the settings for a pool whose shared part has `cells` cells.
    fn check(&self, cells: u32) -> Vec<Fault> {
        let _ = cells;
        Vec::new()
    }

    /// Creates the policy for a pool.
    fn build(&self, pool: &PoolInfo<'_>) -> Self::Policy;
}

/// The settings of a policy that may differ from queue to queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerQueue {
    /// True if a queue may have its own alpha.
    pub alpha: bool,
    /// True if a queue may have its own threshold.
    pub threshold: bool,
}

/// The properties of a pool that do not change during a run.
#[derive(Clone, Copy, Debug)]
pub struct PoolInfo<'a> {
    /// Names of the memory and the pool, such as `sw/main`.
    pub name: &'a str,
    /// B: number of cells in the shared part.
    pub cells: u32,
    /// Its queues.
    pub queues: &'a TiSlice<PoolQueue, QueueInfo>,
    /// The clock of the run.
    pub clock: Clock,
    /// The network's cells.
    pub cell: CellFormat,
    /// The random stream of the pool's policy.
    pub rng: &'a Stream,
}

/// The properties of a queue that do not change during a run.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueInfo {
    /// Number of the queue's port among the ports of the pool, from 0.
    pub port: u32,
    /// The queue's priority, 0 to 7.
    pub priority: u8,
    /// Transmission time of a cell at its port.
    pub cell_time: Span,
    /// The queue's own alpha; `None` if the queue uses the pool's alpha.
    pub alpha: Option<f64>,
    /// The queue's own threshold in cells; `None` if the queue uses the pool's threshold.
    pub threshold: Option<u32>,
}

impl QueueInfo {
    /// Creates the queue of priority 0 at the port with this number, with default settings.
    pub fn at_port(port: u32) -> Self {
        Self { port, priority: 0, cell_time: Span(1), alpha: None, threshold: None }
    }
}

/// The shared part of a pool, as seen by a policy.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// B: number of cells in the shared part.
    pub cells: u32,
    /// Q: number of cells in the shared part, without the arriving cell.
    pub used: u32,
    /// `q_i`: number of cells of each queue in the shared part.
    pub queues: &'a TiSlice<PoolQueue, u32>,
    /// Time of the decision.
    pub now: Time,
}

impl View<'_> {
    /// Returns B - Q, the free places.
    pub fn free(&self) -> u32 {
        self.cells - self.used
    }

    /// Returns whether the shared part has room for this many cells.
    pub fn fits(&self, cells: u32) -> bool {
        cells <= self.free()
    }

    /// Returns n, the number of queues that hold a cell.
    pub fn active(&self) -> u32 {
        u32::try_from(self.queues.iter().filter(|&&cells| cells > 0).count()).expect("all indices fit in 32 bits")
    }

    /// Returns the rank of a queue by length: 1 plus the number of longer queues.
    pub fn rank(&self, queue: PoolQueue) -> u32 {
        let own = self.queues[queue];
        1 + u32::try_from(self.queues.iter().filter(|&&cells| cells > own).count()).expect("all indices fit in 32 bits")
    }
}

/// The decision about arriving cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The cells enter if the shared part has room.
    Admit,
    /// The cells are refused.
    Refuse,
    /// One waiting cell is removed first. Then the policy decides again.
    PushOut(PushOut),
}

/// A waiting cell that a policy removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushOut {
    /// The queue that loses a cell from the shared part.
    pub queue: PoolQueue,
    /// The end of the queue from which the cell is removed.
    pub end: QueueEnd,
}

/// Identifies the optional methods that a policy implements. A memory does not call the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hooks {
    /// True for [`MemoryPolicy::arrived`].
    pub arrivals: bool,
    /// True for [`MemoryPolicy::entered`] and [`MemoryPolicy::left`].
    pub cells: bool,
    /// True for [`MemoryPolicy::next_time`], [`MemoryPolicy::on_time`] and [`MemoryPolicy::pass`].
    pub clock: bool,
}

impl Hooks {
    /// All hooks.
    pub const ALL: Self = Self { arrivals: true, cells: true, clock: true };
    /// No hooks.
    pub const NONE: Self = Self { arrivals: false, cells: false, clock: false };
}

/// An end of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueueEnd {
    /// The cell at the front of the queue, which would be sent next.
    Head,
    /// The cell at the end of the queue, which arrived last.
    Tail,
}

/// A policy's decisions for one pool. Both engines call only these methods.
///
/// A policy must implement [`admit`](Self::admit) and [`rule`](Self::rule). The defaults of all other methods suit
/// every policy.
///
/// ```
/// use celltrain_core::memory::{MemoryPolicy, PoolQueue, Verdict, View};
///
/// /// A queue may hold half of the shared part.
/// struct Half;
///
/// impl MemoryPolicy for Half {
///     fn admit(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) -> Verdict {
///         if view.queues[queue] + cells <= view.cells / 2 { Verdict::Admit } else { Verdict::Refuse }
///     }
///
///     fn rule(&self) -> &'static str {
///         "the queue would hold more than half of the pool"
///     }
/// }
/// ```
pub trait MemoryPolicy: Any + Send {
    /// Decides whether to admit `cells` cells that arrive together for `queue` and find no room in its reserve. The
    /// cells are not yet counted in `view`. Called once for an arrival, and again after each cell that is pushed out to
    /// make room.
    fn admit(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) -> Verdict;

    /// Returns the maximum number of cells that `queue` may now hold in the shared part, if the policy has such a
    /// threshold. Used for pauses, events and figures.
    fn threshold(&self, view: &View<'_>, queue: PoolQueue) -> Option<f64> {
        let _ = (view, queue);
        None
    }

    /// Returns whether `cells` more cells of `queue` would find room, without changing the policy. Used for pauses.
    fn has_room(&self, view: &View<'_>, queue: PoolQueue, cells: u32) -> bool {
        let is_below = |threshold| view.queues[queue].saturating_add(cells) <= whole_cells(threshold);
        view.fits(cells) && self.threshold(view, queue).is_none_or(is_below)
    }

    /// Returns a length of `queue` up to which the policy admits each arriving cell, as long as the shared part of `cells`
    /// cells then holds at most `used`, which is less than `cells`. The memory may omit these calls of
    /// [`admit`](Self::admit).
    fn admits_up_to(&self, cells: u32, used: u32, queue: PoolQueue) -> u32 {
        let _ = (cells, used, queue);
        0
    }

    /// Records that cells arrive together for `queue`, before the memory looks for room.
    fn arrived(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) {
        let _ = (view, queue, cells);
    }

    /// Records that cells have entered the shared part. `view` already counts them.
    fn entered(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) {
        let _ = (view, queue, cells);
    }

    /// Records that cells have left the shared part, either sent or pushed out. `view` no longer counts them.
    fn left(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) {
        let _ = (view, queue, cells);
    }

    /// Returns the time at which the policy next acts without an arrival or a departure.
    fn next_time(&self) -> Option<Time> {
        None
    }

    /// Acts at the time of [`next_time`](Self::next_time), after ports have sent at that instant. Called repeatedly
    /// until `next_time` is later. Each call removes at most one cell.
    fn on_time(&mut self, view: &View<'_>) -> Option<PushOut> {
        let _ = view;
        None
    }

    /// Records that the latest [push-out](Self::on_time) removed this many cells. In networks that store whole packets,
    /// a push-out removes a whole packet, or no cell if every packet of the queue has begun to leave.
    fn removed(&mut self, cells: u32) {
        let _ = cells;
    }

    /// Records that the policy has had its turn at `now`, even if it was not due. Later changes at `now`, such as cells
    /// that another pool's policy removes, come after the actions of this instant.
    fn pass(&mut self, now: Time) {
        let _ = now;
    }

    /// Returns which of the optional methods have an effect. Called once, when the memory is built.
    fn hooks(&self) -> Hooks {
        Hooks::ALL
    }

    /// Receives predictions: for each arrival at the pool, true if Longest Queue Drop loses the cell. Called once,
    /// before the run, if the policy needs them.
    fn predict(&mut self, drops: Arc<[bool]>) {
        let _ = drops;
    }

    /// Returns whether the policy admits an arrival exactly if its queue holds at most a number of cells that follows
    /// from the settings of the policy and the queue, B, Q and the number of arriving cells. Then a
    /// [certificate](crate::network::Recording) can determine which other settings give the same run.
    fn is_threshold(&self) -> bool {
        false
    }

    /// Returns whether the policy admits every arrival that fits in the pool, whatever happened before. It may do anything if
    /// an arrival does not fit.
    fn admits_all_that_fits(&self) -> bool {
        false
    }

    /// Returns how many results of the policy's formulas were replaced so far because they were not finite numbers.
    fn replaced_results(&self) -> u64 {
        0
    }

    /// Describes the condition under which a cell is refused, for event logs.
    fn rule(&self) -> &'static str;
}

/// Returns the largest whole number of cells up to a threshold; 0 if the threshold is negative. Ignores the rounding
/// error of a product, so 0.29 of 100 cells is 29.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casting a larger value gives the largest value of the type"
)]
fn whole_cells(threshold: f64) -> u32 {
    (threshold * (1.0 + 4.0 * f64::EPSILON)) as u32
}

#[cfg(test)]
mod tests;
