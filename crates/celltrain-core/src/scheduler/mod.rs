//! Schedulers: which of the waiting cells an output port sends next.
//!
//! The buffer policy decides what enters; a scheduler decides what leaves. Under `fifo` all VCs of a port share one queue;
//! under any other there are several, by class or by VC, each of them first in, first out, and the scheduler says which of
//! them goes next. A new scheduler is one file beside these, one line in the list below and one page under
//! `docs/models/`.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cell::{Cell, Run};
use crate::error::Fault;
use crate::policy::PerVc;

macro_rules! schedulers {
    ($($(#[$doc:meta])* $module:ident: $Scheduler:ident,)*) => {
        $(pub mod $module;)*

        /// The scheduler of a port, as a scenario names it: one table whose key is the scheduler's name.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        #[schemars(rename = "Scheduler")]
        pub enum SchedulerConfig {
            $($(#[$doc])* $Scheduler($module::Config),)*
        }

        impl SchedulerConfig {
            /// Every scheduler's name, in the order of the list.
            pub const NAMES: &[&str] = &[$(stringify!($module)),*];

            /// The scheduler's name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$Scheduler(_) => stringify!($module),)*
                }
            }

            /// What is wrong with the settings.
            pub fn check(&self) -> Vec<Fault> {
                match self {
                    $(Self::$Scheduler(config) => config.check(),)*
                }
            }

            /// The settings that may differ from VC to VC, by key.
            pub fn per_vc(&self) -> Vec<(&'static str, &PerVc)> {
                match self {
                    $(Self::$Scheduler(config) => config.per_vc(),)*
                }
            }

            /// Whether it has to do with the classes of VCs.
            pub fn by_class(&self) -> bool {
                match self {
                    $(Self::$Scheduler(config) => config.by_class(),)*
                }
            }

            /// The queues of a port crossed by these VCs, by label; none where one queue holds all, first in, first out.
            pub fn build(&self, vcs: &[VcKind<'_>]) -> Option<Queues> {
                match self {
                    $(Self::$Scheduler(config) => config.build(vcs),)*
                }
            }

            /// Every scheduler with settings for any VCs, for tests that hold for all.
            #[cfg(test)]
            pub(crate) fn samples() -> Vec<Self> {
                vec![$(Self::$Scheduler($module::sample())),*]
            }
        }
    };
}

schedulers! {
    /// First in, first out: all VCs share one queue.
    fifo: Fifo,
    /// Strict priority: a queue for each class, and none is served while one above it has a cell.
    strict_priority: StrictPriority,
    /// Guaranteed rate: the UBR class yields to the others but for a share of the link.
    guaranteed_rate: GuaranteedRate,
    /// Weighted fair queuing: a queue for each VC, served in proportion to weights.
    wfq: Wfq,
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        Self::Fifo(fifo::Config {})
    }
}

/// The service category of a VC, as far as schedulers tell them apart; those above go first.
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

/// A VC as a scheduler is told of it.
#[derive(Clone, Copy, Debug)]
pub struct VcKind<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its class.
    pub class: Class,
}

/// What a scheduler is asked. Both engines ask only this.
pub trait Scheduler: Send {
    /// A cell has come to `queue`, where none waited.
    fn on_backlog(&mut self, queue: usize) {
        let _ = queue;
    }

    /// The queue whose first cell is sent now, of those that have one. `cells` says how many wait in each.
    fn serve(&mut self, cells: &[u32]) -> usize;
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

    /// Whether it has to do with the classes of VCs.
    fn by_class(&self) -> bool {
        false
    }

    /// The queues of a port crossed by these VCs, by label; none where one queue holds all, first in, first out.
    fn build(&self, vcs: &[VcKind<'_>]) -> Option<Queues>;
}

/// The queues of a port that is not first in, first out, and who chooses among them.
pub struct Queues {
    /// By label.
    queue_of: Vec<usize>,
    /// Cells waiting, by queue.
    cells: Vec<u32>,
    runs: Vec<VecDeque<Run>>,
    scheduler: Box<dyn Scheduler>,
}

impl Queues {
    /// `queues` of them, none with a cell; `queue_of` says by label where a VC's cells wait.
    pub fn new(queues: usize, queue_of: Vec<usize>, scheduler: impl Scheduler + 'static) -> Self {
        Self { queue_of, cells: vec![0; queues], runs: vec![VecDeque::new(); queues], scheduler: Box::new(scheduler) }
    }

    /// Puts cells at the end of their VC's queue.
    #[inline]
    pub fn push(&mut self, run: Run) {
        let queue = self.queue_of[run.last.label() as usize];
        let count = &mut self.cells[queue];
        let was_empty = *count == 0;
        *count += run.cells;
        Run::append(&mut self.runs[queue], run);
        if was_empty {
            self.scheduler.on_backlog(queue);
        }
    }

    /// Takes the cell that is sent next; one waits.
    #[inline]
    pub fn pop(&mut self) -> Cell {
        let queue = self.scheduler.serve(&self.cells);
        self.cells[queue] -= 1;
        Run::take_first(&mut self.runs[queue]).expect("a scheduler serves a queue that has a cell")
    }

    /// The waiting cells, queue by queue.
    pub fn waiting(&self) -> impl Iterator<Item = Cell> {
        self.runs.iter().flatten().flat_map(|run| run.iter())
    }
}

#[cfg(test)]
mod conformance;
