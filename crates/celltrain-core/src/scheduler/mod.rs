//! Schedulers, which select the next cell that an output port sends.
//!
//! The buffer policy decides what enters; a scheduler decides what leaves. Under `fifo` all VCs of a port share one
//! queue. Any other scheduler has several FIFO queues, one for each class or VC, and selects the next queue to serve.
//! To add a scheduler, add a file here, two lines in this file and one page under `docs/models/`.

pub(crate) mod deficit_round_robin;
pub(crate) mod time_shifted_fifo;
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

use crate::cell::{Cell, FrameNumber};
use crate::error::Fault;
use crate::index::Label;
use crate::policy::PerVc;
use crate::registry;
use crate::units::Time;

registry! {
    /// The scheduler of a port in a scenario: a table whose only key is the scheduler's name.
    #[schemars(rename = "Scheduler")]
    pub enum SchedulerConfig(module::Config) {
        /// First in, first out: all VCs share one queue.
        fifo: Fifo,
        /// Strict priority: a queue for each class, served only while all higher-priority queues are empty.
        strict_priority: StrictPriority,
        /// Guaranteed rate: the UBR class yields to the others, except for a share of the link.
        guaranteed_rate: GuaranteedRate,
        /// Weighted fair queuing: a queue for each VC, served in proportion to weights.
        wfq: Wfq,
        /// Weighted fair queuing with weights that a formula in the scenario computes.
        wfq_formula: WfqFormula,
        /// Round robin (per-VC queuing): a queue for each VC, served in turns, one cell per turn.
        round_robin: RoundRobin,
        /// Minimum rate: a queue for each VC, first served at minimum shares of the link, then round robin.
        minimum_rate: MinimumRate,
    }

    /// Returns the settings.
    pub fn config(&self) -> &dyn Configure { |config| config }

    /// Creates the queues of a port crossed by these VCs, by label; `None` if all VCs share one FIFO queue.
    pub fn build(&self, vcs: &[VcKind<'_>]) -> Option<Service> { |config| config.build(vcs) }

    /// Returns every scheduler with settings for any VCs, for tests of all schedulers.
    #[cfg(test)]
    pub(crate) fn samples() -> Vec<Self> { |mod scheduler| scheduler::sample().into() }
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        Self::Fifo(fifo::Config {})
    }
}

/// The service category of a VC, as far as schedulers distinguish categories, the highest priority first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Constant bit rate.
    Cbr,
    /// Variable bit rate.
    Vbr,
    /// Unspecified bit rate, with or without a guaranteed frame rate.
    #[default]
    Ubr,
}

impl Class {
    /// All classes, highest priority first.
    pub const ALL: [Class; 3] = [Class::Cbr, Class::Vbr, Class::Ubr];

    /// Returns the name of the class in scenarios.
    pub fn name(self) -> &'static str {
        match self {
            Class::Cbr => "cbr",
            Class::Vbr => "vbr",
            Class::Ubr => "ubr",
        }
    }
}

/// A VC, as seen by a scheduler.
#[derive(Clone, Copy, Debug)]
pub struct VcKind<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its class.
    pub class: Class,
}

/// A service discipline. Both engines use only these methods. The reference engine sends one cell at a time.
///
/// The trait is generic over single cells and runs of cells; a port stores it as [`AnyScheduler`].
pub trait Scheduler: Send {
    /// Records that a cell has arrived at `queue`, which was empty.
    fn on_backlog(&mut self, queue: usize) {
        let _ = queue;
    }

    /// Sends the next `cells` cells. At least that many cells are waiting, and no cell arrives in the meantime.
    fn serve(&mut self, cells: u32, waiting: &mut impl Waiting);

    /// Serves a single cell, which arrives at `queue` when all `queues` queues are empty, and leaves before the next
    /// arrival.
    fn serve_alone(&mut self, queue: usize, queues: usize)
    where
        Self: Sized,
    {
        self.on_backlog(queue);
        let mut alone = WaitingCell { queue: Some(queue), queues };
        self.serve(1, &mut alone);
        debug_assert_eq!(alone.queue, None, "a scheduler sends a cell if one is waiting");
    }

    /// Records that a cell has entered the port at `now`. Called only if the port's policy decides about frames at the
    /// head of the queue.
    fn on_enter(&mut self, cell: Cell, now: Time) {
        let _ = (cell, now);
    }

    /// Records that the latest cell sent from `queue` is dropped at the head of the queue instead.
    fn on_dropped(&mut self, queue: usize) {
        let _ = queue;
    }

    /// Records that the link is free and no cell is waiting.
    fn on_idle(&mut self) {}

    /// Returns the frame of the latest cell sent from a queue, if the scheduler records it.
    fn leaving(&self, queue: usize) -> Option<FrameNumber> {
        let _ = queue;
        None
    }

    /// Returns how precisely the scheduler must know when empty queues fill. Called once.
    fn backlog_sensitivity(&self) -> BacklogSensitivity {
        BacklogSensitivity::Insensitive
    }
}

/// The cells waiting at a port, for a scheduler.
pub trait Waiting {
    /// Returns the numbers of the queues.
    fn queues(&self) -> Range<usize>;

    /// Returns the number of cells waiting in a queue.
    fn cells(&self, queue: usize) -> u32;

    /// Returns a cell of the frame at the front of a non-empty queue; `None` for an RM cell, and if the next turn sends
    /// nothing.
    fn next_cell(&self, queue: usize) -> Option<Cell>;

    /// Sends between one and `most` cells from the front of a queue. Returns how many were sent.
    #[inline]
    fn send(&mut self, queue: usize, most: u32) -> u32 {
        debug_assert!(most > 0, "the scheduler sends at least one cell");
        self.send_one(queue);
        1
    }

    /// Sends the first cell of a non-empty queue. Returns whether other cells remain in the queue.
    fn send_one(&mut self, queue: usize) -> bool;
}

/// Object-safe form of [`Scheduler`].
pub trait AnyScheduler: Send {
    /// [`Scheduler::on_backlog`].
    fn on_backlog(&mut self, queue: usize);

    /// Calls [`Scheduler::serve`] for single cells.
    fn serve_cells(&mut self, cells: u32, waiting: &mut WaitingCells);

    /// Calls [`Scheduler::serve`] for runs of cells.
    fn serve_runs(&mut self, cells: u32, waiting: &mut WaitingRuns<'_>);

    /// [`Scheduler::serve_alone`].
    fn serve_alone(&mut self, queue: usize, queues: usize);

    /// [`Scheduler::on_enter`].
    fn on_enter(&mut self, cell: Cell, now: Time);

    /// [`Scheduler::on_dropped`].
    fn on_dropped(&mut self, queue: usize);

    /// [`Scheduler::on_idle`].
    fn on_idle(&mut self);

    /// [`Scheduler::leaving`].
    fn leaving(&self, queue: usize) -> Option<FrameNumber>;

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

    fn serve_alone(&mut self, queue: usize, queues: usize) {
        Scheduler::serve_alone(self, queue, queues);
    }

    fn on_enter(&mut self, cell: Cell, now: Time) {
        Scheduler::on_enter(self, cell, now);
    }

    fn on_dropped(&mut self, queue: usize) {
        Scheduler::on_dropped(self, queue);
    }

    fn on_idle(&mut self) {
        Scheduler::on_idle(self);
    }

    fn leaving(&self, queue: usize) -> Option<FrameNumber> {
        Scheduler::leaving(self, queue)
    }

    fn backlog_sensitivity(&self) -> BacklogSensitivity {
        Scheduler::backlog_sensitivity(self)
    }
}

/// Sensitivity of a scheduler to the times at which empty queues fill. The scheduler is always notified before the next
/// cell is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BacklogSensitivity {
    /// The scheduler does not depend on the times at which queues fill.
    Insensitive,
    /// The scheduler depends on the order in which queues fill, but not on whether a queue was empty for less than a
    /// cell time.
    Order,
    /// Everything matters.
    Exact,
}

/// Methods of every scheduler's `Config`.
pub trait Configure {
    /// Checks the settings.
    fn check(&self) -> Vec<Fault> {
        Vec::new()
    }

    /// Returns the settings that may differ from VC to VC, by key. A common check ensures that every setting has a
    /// value for every VC.
    fn per_vc(&self) -> Vec<(&'static str, &PerVc)> {
        Vec::new()
    }

    /// Returns the constants in a `constants` table that differ from VC to VC, by name.
    fn constants_by_vc(&self) -> Vec<(&str, &PerVc)> {
        Vec::new()
    }

    /// Returns whether the settings depend on the number of VCs, although they do not differ from VC to VC.
    fn counts_vcs(&self) -> bool {
        false
    }

    /// Returns unused names in the scheduler's tables, by their keys.
    fn unused(&self) -> Vec<String> {
        Vec::new()
    }

    /// Checks the settings of VCs with these names, by label, that share a link. Called for each port after checking
    /// that every VC has a value for every setting.
    fn check_vcs(&self, vcs: &[&str]) -> Vec<Fault> {
        let _ = vcs;
        Vec::new()
    }

    /// Returns whether the scheduler distinguishes classes of VCs.
    fn by_class(&self) -> bool {
        false
    }

    /// Creates the queues of a port crossed by these VCs, by label; `None` if all VCs share one FIFO queue.
    fn build(&self, vcs: &[VcKind<'_>]) -> Option<Service>;
}

/// The queues of a port with several queues, and the scheduler that selects among them.
pub struct Service {
    /// Number of queues.
    pub queues: usize,
    /// Queue of each VC's cells, by label.
    pub queue_of: TiVec<Label, usize>,
    /// The scheduler that chooses the next queue.
    pub scheduler: Box<dyn AnyScheduler>,
}

impl Service {
    /// Creates a service with this many queues; `queue_of` gives each VC's queue by label.
    pub fn new(queues: usize, queue_of: Vec<usize>, scheduler: impl Scheduler + 'static) -> Self {
        Self { queues, queue_of: queue_of.into(), scheduler: Box::new(scheduler) }
    }

    /// Returns whether cells may ever wait in more than one queue.
    pub fn has_a_choice(&self) -> bool {
        let mut queues = self.queue_of.iter();
        queues.next().is_some_and(|first| queues.any(|other| other != first))
    }
}

#[cfg(test)]
mod conformance;
