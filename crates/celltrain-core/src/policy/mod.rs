//! Buffer policies: which frames an output port admits, and how it treats a cell that finds no room.
//!
//! The port maintains the queue, the per-VC counts and the state of frames. A policy only makes decisions, and sees
//! only its arguments. To add a policy, add a file here, two lines in this file, one page under `docs/models/` and one
//! scenario. Its name in scenarios, its Python class and the conformance tests then exist automatically.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod load_ratio;
pub(crate) mod not_capable;
pub(crate) mod recorded;
mod virtual_queues;

pub mod codel;
pub mod dfba;
pub mod dfba_1998;
pub mod double_epd;
pub mod drop_from_front;
pub mod dualpi2;
pub mod epd;
pub mod fba;
pub mod formula;
pub mod fq_codel;
pub mod per_vc_accounting;
pub mod per_vc_accounting_fixed;
pub mod pie;
pub mod ppd;
pub mod python;
pub mod red;
pub mod selective_drop;
pub mod single_drop;
pub mod tail_drop;
pub mod virtual_queuing;
pub mod virtual_queuing_threshold;
pub mod virtual_queuing_weighted;
pub mod wba;
pub mod weighted_fba;

pub use celltrain_formula::PerVc;

use std::any::Any;

use typed_index_collections::TiSlice;

use crate::error::Fault;
use crate::index::Label;
use crate::registry;
use crate::rng::Stream;
use crate::scheduler::Service;
use crate::threshold::Threshold;
use crate::units::{Clock, Span, Time};
use formula::PortInfo;

registry! {
    /// The policy of a port in a scenario: a table whose only key is the policy's name.
    #[schemars(rename = "Policy")]
    pub enum PolicyConfig(module::Config) {
        /// Tail drop (plain UBR): a cell that finds no room is lost, with no other effect.
        tail_drop: TailDrop,
        /// Partial packet discard: after a frame has lost a cell, the rest of the frame is refused.
        ppd: Ppd,
        /// Early packet discard: past a threshold no frame may start.
        epd: Epd,
        /// Double EPD: early packet discard with a lower threshold for tagged frames.
        double_epd: DoubleEpd,
        /// EPD with per-VC accounting: past a threshold, a VC that holds more than an equal share of the queue may not
        /// start a frame.
        per_vc_accounting: PerVcAccounting,
        /// EPD with per-VC accounting, fixed share: above a threshold, a VC that holds more than an equal share of that
        /// threshold may not start a frame.
        per_vc_accounting_fixed: PerVcAccountingFixed,
        /// Virtual queuing: a FIFO that counts the cells each VC would have waiting under round robin, and refuses
        /// frames accordingly.
        virtual_queuing: VirtualQueuing,
        /// Virtual queuing with real thresholds: each virtual queue has its own threshold, an equal share of a common
        /// one.
        virtual_queuing_threshold: VirtualQueuingThreshold,
        /// Virtual queuing with minimum shares: the virtual queues are first served at minimum shares, then round
        /// robin.
        virtual_queuing_weighted: VirtualQueuingWeighted,
        /// Selective Drop: above a threshold, a VC that holds more than its share may not start a frame.
        selective_drop: SelectiveDrop,
        /// Weighted Buffer Allocation: Selective Drop whose shares are proportional to weights.
        wba: Wba,
        /// Fair Buffer Allocation: Selective Drop whose tolerance shrinks as the buffer fills.
        fba: Fba,
        /// Weighted FBA: Fair Buffer Allocation whose shares are proportional to weights.
        weighted_fba: WeightedFba,
        /// Single drop: a VC that reaches its threshold loses one frame. It loses no other frame until it has been
        /// below the threshold again.
        single_drop: SingleDrop,
        /// Differential Fair Buffer Allocation of 1997: a VC above its own threshold loses frames at random.
        dfba: Dfba,
        /// Differential Fair Buffer Allocation of 1998: as the buffer fills, VCs above their shares lose frames at
        /// random.
        #[serde(rename = "dfba_1998")]
        dfba_1998: Dfba1998,
        /// Drop from front: a cell that finds no room pushes out the cell nearest to transmission.
        drop_from_front: DropFromFront,
        /// Controlled delay (RFC 8289): frames are dropped at the head of the queue if frames have waited too long.
        #[serde(rename = "codel")]
        codel: CoDel,
        /// FQ-CoDel (RFC 8290): a queue for each VC, served by deficit round robin, with `codel` at each queue.
        #[serde(rename = "fq_codel")]
        fq_codel: FqCoDel,
        /// PI2 with coupled queues (RFC 9332): L for scalable flows, C for others.
        #[serde(rename = "dualpi2")]
        dualpi2: DualPi2,
        /// PIE (RFC 8033): frames are refused at random, with a probability that follows the delay of the queue.
        pie: Pie,
        /// Random early detection: frames are refused at random, with a probability that follows the average queue.
        red: Red,
        /// A policy of your own, written as formulas in the scenario.
        formula: Formula,
        /// A policy of your own as a Python class.
        python: Python,
    }

    /// Returns the settings that are handled in the same way for all policies.
    pub fn settings(&self) -> Settings<'_> { |config| config.settings() }

    /// Checks the settings; see [`Configure::check`].
    fn check_for(&self, capacity: Option<u32>, vcs: &[&str]) -> Vec<Fault> { |config| config.check(capacity, vcs) }

    /// Creates the queues of a policy that has its own; see [`Configure::queues`].
    pub fn queues(&self, vcs: &[&str], clock: Clock) -> Option<Service> { |config| config.queues(vcs, clock) }

    /// Creates the policy for a buffer of `capacity` cells (`None`: infinite) crossed by VCs with these names, by
    /// label.
    pub fn build(&self, capacity: Option<u32>, vcs: &[&str]) -> Box<dyn BufferPolicy> {
        |config| Box::new(config.build(capacity.unwrap_or(u32::MAX), vcs))
    }

    /// Returns every policy, with default settings if it has them, for tests of all policies.
    #[cfg(any(test, feature = "samples"))]
    pub fn samples(capacity: u32) -> Vec<Self> { |mod policy| policy::sample(capacity).into() }
}

impl PolicyConfig {
    /// Checks the settings for a buffer of `capacity` cells (`None`: infinite), without regard to the VCs that cross
    /// the port.
    pub fn check(&self, capacity: Option<u32>) -> Vec<Fault> {
        self.check_for(capacity, &[])
    }

    /// Checks the settings of VCs with these names, by label, that share a buffer of `capacity` cells. Every setting
    /// has a value for every VC. Returns only faults that [`check`](Self::check) does not find.
    pub fn check_vcs(&self, capacity: Option<u32>, vcs: &[&str]) -> Vec<Fault> {
        let mut faults = self.check_for(capacity, vcs);
        if !faults.is_empty() {
            let alone = self.check(capacity);
            faults.retain(|fault| !alone.contains(fault));
        }
        faults
    }

    /// Returns whether the policy has its own queues instead of those of a scheduler.
    pub fn has_queues(&self) -> bool {
        self.queues(&[], Clock::exact(1)).is_some()
    }

    /// Returns the table of a policy that is written as formulas.
    fn formula(&self) -> Option<&formula::Table> {
        if let Self::Formula(table) = self { Some(table) } else { None }
    }

    /// Returns the constants of formulas that differ from VC to VC, by name.
    pub fn constants_by_vc(&self) -> Vec<(&str, &PerVc)> {
        self.formula().map(formula::Table::constants_by_vc).unwrap_or_default()
    }

    /// Returns whether formulas use the number of VCs.
    pub fn counts_vcs(&self) -> bool {
        self.formula().is_some_and(formula::Table::counts_vcs)
    }

    /// For each key of the formula tables, returns the names that no formula uses.
    pub fn unused(&self) -> Vec<String> {
        self.formula().map(formula::Table::unused).unwrap_or_default()
    }

    /// Returns the threshold of a buffer of `capacity` cells (`None`: infinite): the occupancy up to which every frame
    /// is admitted. `None` for policies that admit every frame, have thresholds for individual VCs, or are written by
    /// users.
    pub fn threshold_cells(&self, capacity: Option<u32>) -> Option<u32> {
        if matches!(self, Self::Dfba(_) | Self::VirtualQueuingThreshold(_) | Self::Formula(_) | Self::Python(_)) {
            return None;
        }
        self.build(capacity, &[]).admits_up_to().filter(|&cells| cells < u32::MAX)
    }
}

/// The decisions of a policy at one port. Both engines call only these methods.
///
/// A policy must implement only [`admit_frame`](Self::admit_frame). The defaults of all other methods suit every
/// policy.
///
/// ```
/// use celltrain_core::error::Fault;
/// use celltrain_core::index::Label;
/// use celltrain_core::policy::{BufferPolicy, Configure, View};
/// use celltrain_core::rng::Stream;
///
/// /// Dynamic Threshold: a VC may start a frame while it holds less than `alpha` times the places that are free.
/// struct Config {
///     alpha: f64,
/// }
///
/// struct DynamicThreshold {
///     alpha: f64,
/// }
///
/// impl Configure for Config {
///     type Policy = DynamicThreshold;
///
///     fn check(&self, _capacity: Option<u32>, _vcs: &[&str]) -> Vec<Fault> {
///         if self.alpha > 0.0 {
///             return Vec::new();
///         }
///         vec![Fault::new("alpha", self.alpha, "admits no frame at all; it must be above 0")]
///     }
///
///     fn build(&self, _capacity: u32, _vcs: &[&str]) -> DynamicThreshold {
///         DynamicThreshold { alpha: self.alpha }
///     }
/// }
///
/// impl BufferPolicy for DynamicThreshold {
///     fn admit_frame(&mut self, buffer: &View<'_>, vc: Label, _rng: &mut Stream) -> bool {
///         f64::from(buffer.per_vc[vc]) < self.alpha * f64::from(buffer.capacity - buffer.occupancy)
///     }
/// }
/// ```
pub trait BufferPolicy: Any + Send {
    /// Informs the policy about the port it serves. Called once, before the run.
    fn at_port(&mut self, port_info: &PortInfo<'_>) {
        let _ = port_info;
    }

    /// Decides whether a frame of VC `vc` may enter when its first cell has arrived. `buffer` does not count that cell
    /// (A-07). Called once per frame, unless [`admits_up_to`](Self::admits_up_to) has already decided.
    fn admit_frame(&mut self, buffer: &View<'_>, vc: Label, rng: &mut Stream) -> bool;

    /// Returns what happens to a cell that finds no room although its frame was admitted. The default is partial packet
    /// discard. Called once, when the port is built.
    fn overflow(&self) -> Overflow {
        Overflow::LoseRestOfFrame { keep_last_cell: true }
    }

    /// Returns the largest X up to which every frame is admitted, regardless of its tag and its VC's cells, without a
    /// random draw and without changing the policy. Up to this X, engines need not call the policy. `u32::MAX` if every
    /// frame is admitted, `None` if there is no such number. Called once, when the port is built.
    fn admits_up_to(&self) -> Option<u32> {
        None
    }

    /// Returns whether decisions depend on the number of waiting cells of each VC. Otherwise engines need not count
    /// them.
    fn reads_counts(&self) -> bool {
        true
    }

    /// Returns whether every answer follows from the policy's settings and these parts of the view: X, K, `N_a`, the
    /// cells of the frame's own VC, and the marks of the frame. Then a [certificate](crate::certificate) can determine
    /// which other settings give the same run. False for a policy with state, or one that reads the clock or draws
    /// random numbers.
    fn reads_own_view(&self) -> bool {
        false
    }

    /// Returns the component of the policy that follows individual cells, if it has one. The result never changes. A
    /// port with such a policy must be first in, first out, without merging VCs, and no cell may be pushed out.
    fn follower(&mut self) -> Option<&mut dyn CellFollower> {
        None
    }

    /// Returns the component of the policy that decides about frames at the head of the queue, if it has one. The result
    /// never changes. A port with such a policy must be first in, first out, unless the policy has its own queues, and no
    /// VCs may merge.
    fn head_policy(&mut self) -> Option<&mut dyn HeadPolicy> {
        None
    }

    /// Returns whether the policy needs a port with a single queue, or its own queues, from which nothing else pushes out
    /// cells.
    fn needs_one_queue(&mut self) -> bool {
        self.follower().is_some() || self.head_policy().is_some()
    }

    /// Returns whether the frame that the policy has just admitted must be marked. Called only if the policy has a
    /// [`HeadPolicy`]: the port then marks the frame's last cell when it leaves.
    fn marks_admitted(&self) -> bool {
        false
    }

    /// Explains the last decision for `vc`, in words and cell counts, for event logs. `buffer` is the same as in
    /// [`admit_frame`](Self::admit_frame).
    fn explain(&self, buffer: &View<'_>, vc: Label) -> Decision {
        let _ = (buffer, vc);
        let threshold = self.admits_up_to();
        let rule = if threshold == Some(u32::MAX) { "" } else { "the policy refuses the frame" };
        Decision { rule, threshold: threshold.filter(|&cells| cells < u32::MAX).map(f64::from), ..Decision::default() }
    }
}

/// The component of a policy that sees frames at the head of the queue, with the time for which they have waited.
pub trait HeadPolicy {
    /// Decides about a frame when the first of its cells that were admitted would start to leave. Called once per frame.
    fn on_head(&mut self, head: &Head, rng: &mut Stream) -> AtHead;

    /// Returns whether the policy must learn of each cell. The answer never changes.
    fn follows_cells(&self) -> bool {
        false
    }

    /// Records that a cell has entered at `now`. `waiting` cells wait, including this cell.
    fn on_enter(&mut self, waiting: u32, now: Time) {
        let _ = (waiting, now);
    }

    /// Records that a cell of VC `vc` leaves its queue at `now`. `left` cells remain in the queue.
    fn on_departure(&mut self, vc: Label, left: u32, now: Time) {
        let _ = (vc, left, now);
    }

    /// Explains the last decision of [`on_head`](Self::on_head), for event logs.
    fn explain_head(&self, head: &Head) -> Decision;
}

/// A frame at the head of the queue.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// Time of the decision.
    pub now: Time,
    /// VC of the frame.
    pub vc: Label,
    /// Time since the first cell of the frame entered.
    pub waited: Span,
    /// Number of cells of other frames that wait in the same queue.
    pub behind: u32,
    /// True if the frame is ECN-capable.
    pub capable: bool,
}

/// Treatment of a frame at the head of the queue, from the mildest to the most severe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AtHead {
    /// The frame is sent.
    Send,
    /// The frame is sent, and its last cell is marked.
    Mark,
    /// All cells of the frame are discarded: those that wait when they reach the head, the others when they arrive.
    Drop,
}

/// The component of a policy that follows every cell into the buffer and out of the buffer, in order.
pub trait CellFollower {
    /// Records that cells of VC `vc` have entered the buffer.
    fn on_enter(&mut self, vc: Label, cells: u32);

    /// Records that cells of one or more VCs have left the buffer.
    fn on_leave(&mut self, cells: u32);

    /// Returns whether all cells of VC `vc` can be recorded when the first of them arrives, although the others arrive
    /// later, one at a time, while `left` cells leave. If `close` is true, at most one cell leaves between any two
    /// arrivals.
    fn enters_at_once(&self, vc: Label, left: u32, close: bool) -> bool {
        let _ = (vc, left, close);
        false
    }

    /// Returns `M_j`, the number of cells in each virtual queue, by label; `None` without virtual queues.
    fn virtual_queues(&self) -> Option<&TiSlice<Label, u32>> {
        None
    }
}

/// Returns the largest whole number of cells up to a threshold, or `None` if the threshold is negative.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casting a larger value gives the largest value of the type"
)]
fn whole_cells(threshold: f64) -> Option<u32> {
    (threshold >= 0.0).then_some(threshold as u32)
}

/// The buffer, as seen by a policy.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// X: number of waiting cells of all VCs together, without the cell in service (A-02).
    pub occupancy: u32,
    /// Number of cells that a port with marking compares with its marking limits.
    pub counted: u32,
    /// K: number of cells that can wait; `u32::MAX` if unlimited.
    pub capacity: u32,
    /// `N_a`: number of VCs with at least one waiting cell.
    pub active_vcs: u32,
    /// `Y_i`: cells of each VC waiting now, by label.
    pub per_vc: &'a TiSlice<Label, u32>,
    /// True if the arriving frame is tagged (CLP = 1).
    pub tagged: bool,
    /// True if the frame is ECN-capable. If not, a port that marks packets must drop the frame instead of marking it.
    pub capable: bool,
    /// Time of the decision.
    pub now: Time,
}

/// The rule and the numbers behind a decision of a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Decision {
    /// Description of the condition under which a frame is refused; empty if every frame is admitted.
    pub rule: &'static str,
    /// The threshold of the buffer, in cells.
    pub threshold: Option<f64>,
    /// The share of the VC, in cells.
    pub share: Option<f64>,
    /// The number of cells that is compared with the share, if this is not `Y_i`.
    pub held: Option<f64>,
    /// The probability of refusal, if the policy draws a random number.
    pub probability: Option<f64>,
    /// The time for which frames wait, in seconds, if the policy depends on it.
    pub waited: Option<f64>,
    /// The time with which `waited` is compared, in seconds.
    pub target: Option<f64>,
}

/// What is lost if a cell finds no room although its frame was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// Only this cell is lost. Later cells of the frame enter when there is room.
    LoseCell,
    /// This cell is lost and the frame's remaining cells are refused.
    LoseRestOfFrame {
        /// True if the last cell is still admitted when there is room. Without it, the receiver would join the next
        /// frame to the remains (A-04).
        keep_last_cell: bool,
    },
    /// The waiting cell that would be sent next makes room, together with the rest of its frame except the last cell.
    PushOutFront,
    /// The longest queue makes room: it loses whole frames from its front. If it has none, the rest of the arriving frame
    /// is refused. Only for policies with their own queues.
    PushOutLongest,
}

/// A policy that admits every frame. It only decides what happens to cells that find no room.
#[derive(Debug)]
pub struct AdmitAll {
    overflow: Overflow,
}

impl BufferPolicy for AdmitAll {
    fn admit_frame(&mut self, _buffer: &View<'_>, _vc: Label, _rng: &mut Stream) -> bool {
        true
    }

    fn overflow(&self) -> Overflow {
        self.overflow
    }

    fn reads_counts(&self) -> bool {
        false
    }

    fn reads_own_view(&self) -> bool {
        true
    }

    fn admits_up_to(&self) -> Option<u32> {
        Some(u32::MAX)
    }
}

/// The settings of a policy, implemented by each `Config`.
pub trait Configure {
    /// The policy that these settings configure.
    type Policy: BufferPolicy + 'static;

    /// Returns the settings that are handled in the same way for all policies.
    fn settings(&self) -> Settings<'_> {
        Settings::default()
    }

    /// Checks the settings for a buffer of `capacity` cells (`None`: infinite). Called first without VCs, and then for
    /// each port with the names of its VCs in `vcs`, by label, to check all their values together. Each fault is
    /// reported once.
    fn check(&self, capacity: Option<u32>, vcs: &[&str]) -> Vec<Fault> {
        let _ = vcs;
        check_thresholds(self, capacity)
    }

    /// Creates the queues of a port crossed by VCs with these names, by label, if the policy has its own queues.
    fn queues(&self, vcs: &[&str], clock: Clock) -> Option<Service> {
        let _ = (vcs, clock);
        None
    }

    /// Creates the policy for a buffer of `capacity` cells (`u32::MAX`: infinite). `vcs` has the names of its VCs, by
    /// label.
    fn build(&self, capacity: u32, vcs: &[&str]) -> Self::Policy;
}

/// Settings whose values are checked in the same way for all policies.
#[derive(Debug, Default)]
pub struct Settings<'a> {
    /// Thresholds that refer to the buffer, by key. A value that probably means something else causes a warning.
    pub thresholds: Vec<(&'static str, Threshold)>,
    /// Settings that may have a different value for each VC, by key. Every VC must have a value.
    pub per_vc: Vec<(&'static str, &'a PerVc)>,
}

/// Checks every threshold of a policy for a buffer of `capacity` cells (`None`: infinite).
fn check_thresholds(config: &(impl Configure + ?Sized), capacity: Option<u32>) -> Vec<Fault> {
    config.settings().thresholds.into_iter().flat_map(|(key, threshold)| threshold.check(key, capacity)).collect()
}

#[cfg(any(test, feature = "samples"))]
pub mod bench;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod decisions;
