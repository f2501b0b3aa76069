//! Schedulers: which of the waiting cells an output port sends next.
//!
//! The buffer policy decides what enters; a scheduler decides what leaves. Under `fifo` all VCs of a port share one
//! queue; under any other there are several, by class or by VC, each of them first in, first out, and the scheduler
//! says which of them goes next. A new scheduler is one file beside these, two lines below and one page under
//! `docs/models/`.

pub(crate) mod waiting;

pub mod fifo;
pub mod guaranteed_rate;
pub mod minimum_rate;
pub mod round_robin;
pub mod strict_priority;
pub mod wfq;
pub mod wfq_formula;

use waiting::WaitingCell;
pub use waiting::{WaitingCells, WaitingRuns};

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use typed_index_collections::TiVec;

use crate::error::Fault;
use crate::index::Label;
use crate::policy::PerVc;
use crate::registry;

registry! {
    /// The scheduler of a port, as a scenario names it: one table whose key is the scheduler's name.
    #[schemars(rename = "Scheduler")]
    pub enum SchedulerConfig(module::Config) {
        /// First in, first out: all VCs share one queue.
        fifo: Fifo,
        /// Strict priority: a queue for each class, and none is served while one above it has a cell.
        strict_priority: StrictPriority,
        /// Guaranteed rate: the UBR class yields to the others but for a share of the link.
        guaranteed_rate: GuaranteedRate,
        /// Weighted fair queuing: a queue for each VC, served in proportion to weights.
        wfq: Wfq,
        /// Weighted fair queuing with weights of your own, written as a formula in the scenario.
        wfq_formula: WfqFormula,
        /// Round robin (per-VC queuing): a queue for each VC, served in turns, a cell a turn.
        round_robin: RoundRobin,
        /// Minimum rate: a queue for each VC, served at minimum shares of the link first, and round robin beyond.
        minimum_rate: MinimumRate,
    }

    /// What is wrong with the settings.
    pub fn check(&self) -> Vec<Fault> { |config| config.check() }

    /// The settings that may differ from VC to VC, by key.
    pub fn per_vc(&self) -> Vec<(&'static str, &PerVc)> { |config| config.per_vc() }

    /// Of the constants in its `constants` table, those that differ from VC to VC, by name.
    pub fn constants_by_vc(&self) -> Vec<(&str, &PerVc)> { |config| config.constants_by_vc() }

    /// Whether the number of VCs matters to the settings, though none of these differs from VC to VC.
    pub fn counts_vcs(&self) -> bool { |config| config.counts_vcs() }

    /// Names in its tables that nothing uses, by their keys.
    pub fn unused(&self) -> Vec<String> { |config| config.unused() }

    /// What is wrong with the settings of VCs of these names, by label, that share a link.
    pub fn check_vcs(&self, vcs: &[&str]) -> Vec<Fault> { |config| config.check_vcs(vcs) }

    /// Whether it has to do with the classes of VCs.
    pub fn by_class(&self) -> bool { |config| config.by_class() }

    /// The queues of a port crossed by these VCs, by label; none where one queue holds all, first in, first out.
    pub fn build(&self, vcs: &[VcKind<'_>]) -> Option<Service> { |config| config.build(vcs) }

    /// Every scheduler with settings for any VCs, for tests that hold for all.
    #[cfg(test)]
    pub(crate) fn samples() -> Vec<Self> { |mod scheduler| scheduler::sample().into() }
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        Self::Fifo(fifo::Config {})
    }
}

/// The service category of a VC, as far as schedulers distinguish them; those above go first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Constant bit rate.
    Cbr,
    /// Variable bit rate.
    Vbr,
    /// Unspecified bit rate, with a guaranteed frame rate or without.
    #[default]
    Ubr,
}

impl Class {
    /// All of them, the first to be served first.
    pub const ALL: [Class; 3] = [Class::Cbr, Class::Vbr, Class::Ubr];

    /// Its name in scenarios.
    pub fn name(self) -> &'static str {
        match self {
            Class::Cbr => "cbr",
            Class::Vbr => "vbr",
            Class::Ubr => "ubr",
        }
    }
}

/// A VC as a scheduler sees it.
#[derive(Clone, Copy, Debug)]
pub struct VcKind<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its class.
    pub class: Class,
}

/// What a scheduler is asked. Both engines ask only this; the reference engine for one cell at a time.
///
/// It is written once for all that may wait, single cells and runs of them; a port keeps it as [`AnyScheduler`].
pub trait Scheduler: Send {
    /// A cell has come to `queue`, where none waited.
    fn on_backlog(&mut self, queue: usize) {
        let _ = queue;
    }

    /// Sends the next `cells` cells, of which there are as many, and none comes meanwhile.
    fn serve(&mut self, cells: u32, waiting: &mut impl Waiting);

    /// A cell comes to `queue`, one of so many of which none has a cell, and is sent before another comes.
    fn pass(&mut self, queue: usize, queues: usize)
    where
        Self: Sized,
    {
        self.on_backlog(queue);
        let mut alone = WaitingCell { queue: Some(queue), queues };
        self.serve(1, &mut alone);
        debug_assert_eq!(alone.queue, None, "a scheduler that is asked for a cell sends it");
    }

    /// How much of the filling of empty queues matters to it. Asked once.
    fn backlog_sensitivity(&self) -> BacklogSensitivity {
        BacklogSensitivity::Insensitive
    }
}

/// What waits at a port, as a scheduler serves it.
pub trait Waiting {
    /// The queues.
    fn queues(&self) -> Range<usize>;

    /// Cells waiting in a queue.
    fn cells(&self, queue: usize) -> u32;

    /// Sends the first cells of a queue: `most`, or fewer, at least one of those in front. How many they were.
    fn send(&mut self, queue: usize, most: u32) -> u32;

    /// Sends the first cell of a queue, of which there is one. Whether others wait behind it.
    fn send_one(&mut self, queue: usize) -> bool;
}

/// A scheduler of the list, whichever it is.
pub trait AnyScheduler: Send {
    /// [`Scheduler::on_backlog`].
    fn on_backlog(&mut self, queue: usize);

    /// [`Scheduler::serve`] where single cells wait.
    fn serve_cells(&mut self, cells: u32, waiting: &mut WaitingCells);

    /// [`Scheduler::serve`] where runs of cells wait.
    fn serve_runs(&mut self, cells: u32, waiting: &mut WaitingRuns<'_>);

    /// [`Scheduler::pass`].
    fn pass(&mut self, queue: usize, queues: usize);

    /// [`Scheduler::backlog_sensitivity`].
    fn backlog_sensitivity(&self) -> BacklogSensitivity;
}

impl<S: Scheduler> AnyScheduler for S {
    #[inline]
    fn on_backlog(&mut self, queue: usize) {
        Scheduler::on_backlog(self, queue);
    }

    fn serve_cells(&mut self, cells: u32, waiting: &mut WaitingCells) {
        self.serve(cells, waiting);
    }

    fn serve_runs(&mut self, cells: u32, waiting: &mut WaitingRuns<'_>) {
        self.serve(cells, waiting);
    }

    fn pass(&mut self, queue: usize, queues: usize) {
        Scheduler::pass(self, queue, queues);
    }

    fn backlog_sensitivity(&self) -> BacklogSensitivity {
        Scheduler::backlog_sensitivity(self)
    }
}

/// How much of the filling of empty queues matters to a scheduler. In any case it learns of each before the next cell
/// is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BacklogSensitivity {
    /// Nothing more.
    Insensitive,
    /// The order in which queues fill matters; not that one was empty for less than a cell time.
    Order,
    /// All of it matters.
    Exact,
}

/// What every scheduler's `Config` can do.
pub trait Configure {
    /// What is wrong with the settings.
    fn check(&self) -> Vec<Fault> {
        Vec::new()
    }

    /// The settings that may differ from VC to VC, by key: whether every VC has a value is checked for all alike.
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

    /// What is wrong with the settings of VCs of these names, by label, taken together: they share a link. Asked for
    /// every port, when every VC has a value for every setting.
    fn check_vcs(&self, vcs: &[&str]) -> Vec<Fault> {
        let _ = vcs;
        Vec::new()
    }

    /// Whether it has to do with the classes of VCs.
    fn by_class(&self) -> bool {
        false
    }

    /// The queues of a port crossed by these VCs, by label; none where one queue holds all, first in, first out.
    fn build(&self, vcs: &[VcKind<'_>]) -> Option<Service>;
}

/// How cells wait at a port that is not first in, first out: in queues, of which a scheduler chooses the next.
pub struct Service {
    /// How many queues there are.
    pub queues: usize,
    /// By label: where a VC's cells wait.
    pub queue_of: TiVec<Label, usize>,
    /// The scheduler that chooses.
    pub scheduler: Box<dyn AnyScheduler>,
}

impl Service {
    /// So many queues; `queue_of` says by label where a VC's cells wait.
    pub fn new(queues: usize, queue_of: Vec<usize>, scheduler: impl Scheduler + 'static) -> Self {
        Self { queues, queue_of: queue_of.into(), scheduler: Box::new(scheduler) }
    }

    /// Whether cells may ever wait in more than one queue.
    pub fn has_a_choice(&self) -> bool {
        let mut queues = self.queue_of.iter();
        queues.next().is_some_and(|first| queues.any(|other| other != first))
    }
}

#[cfg(test)]
mod conformance;
