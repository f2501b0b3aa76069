//! Buffer policies: which frames an output port admits, and what it does with a cell that finds no room.
//!
//! The port owns the queue, the per-VC counts and the frame bookkeeping; a policy only answers questions and sees only
//! what it is handed. A new policy is one file beside these, two lines below, one page under `docs/models/` and one
//! scenario; its name in scenarios, its Python class and the conformance tests follow.

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod virtual_queues;

pub mod dfba;
pub mod dfba_1998;
pub mod double_epd;
pub mod drop_from_front;
pub mod epd;
pub mod fba;
pub mod formula;
pub mod per_vc_accounting;
pub mod per_vc_accounting_fixed;
pub mod ppd;
pub mod python;
pub mod selective_drop;
pub mod single_drop;
pub mod tail_drop;
pub mod virtual_queuing;
pub mod virtual_queuing_threshold;
pub mod virtual_queuing_weighted;
pub mod wba;
pub mod weighted_fba;

pub use crate::per_vc::PerVc;

use celltrain_formula::Clause;
use typed_index_collections::TiSlice;

use crate::error::Fault;
use crate::index::Label;
use crate::registry;
use crate::rng::Stream;
use crate::threshold::Threshold;
use crate::units::Time;
use formula::PortFacts;

registry! {
    /// The policy of a port, as a scenario names it: one table whose key is the policy's name.
    #[schemars(rename = "Policy")]
    pub enum PolicyConfig(module::Config) {
        /// Tail drop (plain UBR): a cell that finds no room is lost, and nothing else happens.
        tail_drop: TailDrop,
        /// Partial packet discard: the rest of a frame that lost a cell is refused too.
        ppd: Ppd,
        /// Early packet discard: past a threshold no frame may start.
        epd: Epd,
        /// Double EPD: early packet discard with a lower threshold for tagged frames.
        double_epd: DoubleEpd,
        /// EPD with per-VC accounting: past a threshold, a VC that holds more than an equal part of the queue may not
        /// start a frame.
        per_vc_accounting: PerVcAccounting,
        /// EPD with per-VC accounting, fixed share: past a threshold, a VC that holds more than an equal part of that
        /// threshold may not start a frame.
        per_vc_accounting_fixed: PerVcAccountingFixed,
        /// Virtual queuing: a FIFO that counts what each VC would have waiting under round robin, and refuses frames by
        /// that.
        virtual_queuing: VirtualQueuing,
        /// Virtual queuing with real thresholds: each virtual queue has an equal part of the threshold for its own.
        virtual_queuing_threshold: VirtualQueuingThreshold,
        /// Virtual queuing with minimum shares: the virtual queues are served at minimum shares first, and round robin
        /// beyond.
        virtual_queuing_weighted: VirtualQueuingWeighted,
        /// Selective Drop: past a threshold, a VC that holds more than its share may not start a frame.
        selective_drop: SelectiveDrop,
        /// Weighted Buffer Allocation: Selective Drop whose shares are proportional to weights.
        wba: Wba,
        /// Fair Buffer Allocation: Selective Drop whose tolerance shrinks as the buffer fills.
        fba: Fba,
        /// Weighted FBA: Fair Buffer Allocation whose shares are proportional to weights.
        weighted_fba: WeightedFba,
        /// Single drop: a VC that reaches its threshold loses one frame, and no other before it has fallen below.
        single_drop: SingleDrop,
        /// Differential Fair Buffer Allocation of 1997: above a threshold of its own a VC loses frames at random.
        dfba: Dfba,
        /// Differential Fair Buffer Allocation of 1998: in a filling buffer a VC above its share loses frames at
        /// random.
        #[serde(rename = "dfba_1998")]
        dfba_1998: Dfba1998,
        /// Drop from front: a cell that finds no room pushes out the cell nearest to transmission.
        drop_from_front: DropFromFront,
        /// A policy of your own, written as formulas in the scenario.
        formula: Formula,
        /// A policy of your own as a Python class.
        python: Python,
    }

    /// What is wrong with the settings for a buffer of `capacity` cells (`None`: without limit).
    pub fn check(&self, capacity: Option<u32>) -> Vec<Fault> { |config| config.check(capacity) }

    /// The thresholds of the buffer, by key.
    pub fn thresholds(&self) -> Vec<(&'static str, Threshold)> { |config| config.thresholds() }

    /// What is wrong with the settings of VCs of these names, by label, that share a buffer of `capacity` cells.
    pub fn check_vcs(&self, capacity: Option<u32>, vcs: &[&str]) -> Vec<Fault> {
        |config| config.check_vcs(capacity, vcs)
    }

    /// The settings that may differ from VC to VC, by key.
    pub fn per_vc(&self) -> Vec<(&'static str, &PerVc)> { |config| config.per_vc() }

    /// Of the constants in its `constants` table, those that differ from VC to VC, by name.
    pub fn constants_by_vc(&self) -> Vec<(&str, &PerVc)> { |config| config.constants_by_vc() }

    /// Whether the number of VCs matters to the settings, though none of these differs from VC to VC.
    pub fn counts_vcs(&self) -> bool { |config| config.counts_vcs() }

    /// Names in its tables that nothing uses, by their keys.
    pub fn unused(&self) -> Vec<String> { |config| config.unused() }

    /// The policy for a buffer of `capacity` cells (`None`: without limit) crossed by VCs of these names, by label.
    pub fn build(&self, capacity: Option<u32>, vcs: &[&str]) -> Box<dyn BufferPolicy> {
        |config| Box::new(config.build(capacity.unwrap_or(u32::MAX), vcs))
    }

    /// Every policy with its default settings where it has them, for tests that hold for all.
    #[cfg(test)]
    pub(crate) fn samples(capacity: u32) -> Vec<Self> { |mod policy| policy::sample(capacity).into() }
}

impl PolicyConfig {
    /// The occupancy up to which every frame is admitted, in a buffer of `capacity` cells (`None`: without limit). `None`
    /// for a policy that has no such threshold or admits every frame, and for policies of your own.
    pub fn threshold_cells(&self, capacity: Option<u32>) -> Option<u32> {
        if matches!(self, PolicyConfig::Formula(_) | PolicyConfig::Python(_)) {
            return None;
        }
        self.build(capacity, &[]).admits_up_to().filter(|&cells| cells < u32::MAX)
    }
}

/// What a policy is asked. Both engines ask only these questions.
pub trait BufferPolicy: Send {
    /// It is at this port; said once, before the run.
    fn at_port(&mut self, facts: &PortFacts<'_>) {
        let _ = facts;
    }

    /// May the frame whose first cell of VC `vc` arrives now enter? Asked once a frame, or not at all where
    /// [`admits_up_to`](Self::admits_up_to) has the answer; the arriving cell is not yet counted in `buffer`.
    fn admit_frame(&mut self, buffer: &View<'_>, vc: Label, rng: &mut Stream) -> bool {
        let _ = (buffer, vc, rng);
        true
    }

    /// What happens to a cell of an admitted frame that finds no room: partial packet discard unless the policy says
    /// otherwise. Asked once, when the port is built.
    fn overflow(&self) -> Overflow {
        Overflow::LoseRestOfFrame { keep_last_cell: true }
    }

    /// Whether every frame is admitted, without a random draw and whatever waits. An engine need not ask then.
    fn admits_all(&self) -> bool {
        false
    }

    /// The cells X that may wait such that a frame is admitted for certain: while there are no more, every frame is,
    /// whatever its VC has and whether it is tagged, without a random draw, and nothing is noted of it. An engine need
    /// not ask then. `None` where there is no such number. Asked once, when the port is built: the answer holds for the
    /// whole run.
    fn admits_up_to(&self) -> Option<u32> {
        self.admits_all().then_some(u32::MAX)
    }

    /// Whether its answers depend on how many cells of each VC wait. An engine need not count them for it otherwise.
    fn reads_counts(&self) -> bool {
        true
    }

    /// Whether a frame that finds nothing waiting is always admitted, without a random draw, as with every policy so
    /// far: an engine does not ask at a port where no cell ever waits. A test holds every policy of the list to its
    /// answer.
    fn admits_when_empty(&self) -> bool {
        true
    }

    /// Whether it is told of every cell that enters and leaves the buffer, in that order. The answer is always the
    /// same. Such a port is first in, first out, no VCs merge there, and no cell is pushed out.
    fn follows_cells(&self) -> bool {
        false
    }

    /// Cells of VC `vc` have entered.
    fn on_enter(&mut self, vc: Label, cells: u32) {
        let _ = (vc, cells);
    }

    /// Cells have left, whatever their VCs.
    fn on_leave(&mut self, cells: u32) {
        let _ = cells;
    }

    /// Whether cells of VC `vc` that arrive one by one, while `left` cells leave, may all enter with the first: nothing
    /// it does depends on the difference. `close`: no more than one leaves between any two of them. An engine need not
    /// tell of each then.
    fn enters_at_once(&self, vc: Label, left: u32, close: bool) -> bool {
        let _ = (vc, left, close);
        false
    }

    /// What it held against the buffer when it judged the frame of VC `vc`: for whoever watches a run, so in words and
    /// cells. Asked after [`admit_frame`](Self::admit_frame), of the same buffer.
    fn grounds(&self, buffer: &View<'_>, vc: Label) -> Grounds {
        let _ = (buffer, vc);
        Grounds::default()
    }

    /// Parts of its formula because of which it refused the frame of VC `vc`. Called right after
    /// [`admit_frame`](Self::admit_frame) returned false. `facts` and `vcs` describe the port, as when it was built.
    /// Empty for a policy that is not a formula.
    fn why_refused(&self, facts: &PortFacts<'_>, vcs: &[&str], vc: Label) -> Vec<Clause> {
        let _ = (facts, vcs, vc);
        Vec::new()
    }

    /// Results of its formulas that were replaced so far, because they are no numbers.
    fn replaced_results(&self) -> u64 {
        0
    }

    /// `M_j`: the cells of its virtual queues, by label, if it has any.
    fn virtual_queues(&self) -> Option<&TiSlice<Label, u32>> {
        None
    }
}

/// How many whole cells are no more than a threshold; `None` where it is below none.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "what is more than fits is all that fits")]
fn whole_cells(threshold: f64) -> Option<u32> {
    (threshold >= 0.0).then_some(threshold as u32)
}

/// The buffer as a policy sees it.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// X: cells waiting now, all VCs together, the one in service not counted.
    pub occupancy: u32,
    /// K: places for waiting cells; `u32::MAX` for a buffer without limit.
    pub capacity: u32,
    /// `N_a`: VCs with at least one cell waiting.
    pub active_vcs: u32,
    /// `Y_i`: cells of each VC waiting now, by label.
    pub per_vc: &'a TiSlice<Label, u32>,
    /// Whether the frame that asks is tagged (CLP = 1).
    pub tagged: bool,
    /// When it asks.
    pub now: Time,
}

/// The numbers of a policy's rule as they stood when it judged a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Grounds {
    /// When a frame is refused, in words; empty where none ever is.
    pub rule: &'static str,
    /// The threshold of the buffer, in cells.
    pub threshold: Option<f64>,
    /// What the VC may hold, in cells.
    pub share: Option<f64>,
    /// What it holds, in cells, where that is not `Y_i`.
    pub held: Option<f64>,
    /// The probability of a refusal, where it is drawn for.
    pub probability: Option<f64>,
}

/// What happens to a cell of an admitted frame that finds no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// This cell is lost; later cells of the frame enter when there is room.
    LoseCell,
    /// This cell is lost and the frame's remaining cells are refused.
    LoseRestOfFrame {
        /// Whether the last cell is still admitted when there is room, so that the next frame is not glued to the
        /// remains.
        keep_last_cell: bool,
    },
    /// The cell nearest to transmission makes room, and the rest of its frame goes with it, last cells excepted.
    PushOutFront,
}

/// What every policy's `Config` can do.
pub trait Configure {
    /// The policy it configures.
    type Policy: BufferPolicy + 'static;

    /// The thresholds of the buffer, by key.
    fn thresholds(&self) -> Vec<(&'static str, Threshold)> {
        Vec::new()
    }

    /// What is wrong with the settings for a buffer of `capacity` cells (`None`: without limit).
    fn check(&self, capacity: Option<u32>) -> Vec<Fault> {
        check_thresholds(self, capacity)
    }

    /// What is wrong with the settings of VCs of these names, by label, taken together: they share a buffer of
    /// `capacity` cells (`None`: without limit). Asked for every port, when every VC has a value for every setting.
    fn check_vcs(&self, capacity: Option<u32>, vcs: &[&str]) -> Vec<Fault> {
        let _ = (capacity, vcs);
        Vec::new()
    }

    /// The settings that may differ from VC to VC, by key: whether every VC has a value is checked for all policies
    /// alike.
    fn per_vc(&self) -> Vec<(&'static str, &PerVc)> {
        Vec::new()
    }

    /// Of the constants in a `constants` table, those that differ from VC to VC, by name.
    fn constants_by_vc(&self) -> Vec<(&str, &PerVc)> {
        Vec::new()
    }

    /// Whether the number of VCs matters to the settings, though none of these differs from VC to VC.
    fn counts_vcs(&self) -> bool {
        false
    }

    /// Names in its tables that nothing uses, by their keys.
    fn unused(&self) -> Vec<String> {
        Vec::new()
    }

    /// The policy for a buffer of `capacity` cells (`u32::MAX`: without limit) crossed by VCs of these names, by label.
    fn build(&self, capacity: u32, vcs: &[&str]) -> Self::Policy;
}

/// Checks every threshold of a policy for a buffer of `capacity` cells (`None`: infinite).
fn check_thresholds(config: &(impl Configure + ?Sized), capacity: Option<u32>) -> Vec<Fault> {
    config.thresholds().into_iter().flat_map(|(key, threshold)| threshold.check(key, capacity)).collect()
}

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod grounds;
