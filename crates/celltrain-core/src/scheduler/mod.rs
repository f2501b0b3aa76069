//! Schedulers: which of the waiting cells an output port sends next.
//!
//! The buffer policy decides what enters; a scheduler decides what leaves. Under `fifo` all VCs of a port share one queue;
//! under any other there are several, by class or by VC, each of them first in, first out, and the scheduler says which of
//! them goes next. A new scheduler is one file beside these, one line in the list below and one page under
//! `docs/models/`.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cell::{Cell, Label, Run};
use crate::cost::Cost;
use crate::error::Fault;
use crate::footprint::size;
use crate::policy::PerVc;
use crate::port::Counts;
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
        /// Round robin (per-VC queuing): a queue for each VC, served in turns, a cell a turn.
        round_robin: RoundRobin,
        /// Minimum rate: a queue for each VC, served at minimum shares of the link first, and round robin beyond.
        minimum_rate: MinimumRate,
    }

    /// What is wrong with the settings.
    pub fn check(&self) -> Vec<Fault> { |config| config.check() }

    /// The settings that may differ from VC to VC, by key.
    pub fn per_vc(&self) -> Vec<(&'static str, &PerVc)> { |config| config.per_vc() }

    /// What is wrong with the settings of VCs of these names, by label, that share a link.
    pub fn check_vcs(&self, vcs: &[&str]) -> Vec<Fault> { |config| config.check_vcs(vcs) }

    /// Whether it has to do with the classes of VCs.
    pub fn by_class(&self) -> bool { |config| config.by_class() }

    /// The queues of a port crossed by these VCs, by label; none where one queue holds all, first in, first out.
    pub fn build(&self, vcs: &[VcKind<'_>]) -> Option<Queues> { |config| config.build(vcs) }

    /// What every scheduler costs a switch.
    fn each_cost() -> Vec<Cost> { |mod scheduler| scheduler::Config::cost() }

    /// Every scheduler with settings for any VCs, for tests that hold for all.
    #[cfg(test)]
    pub(crate) fn samples() -> Vec<Self> { |mod scheduler| scheduler::sample().into() }
}

impl SchedulerConfig {
    /// What every scheduler costs a switch, in the order of the list.
    pub fn costs() -> Vec<(&'static str, Cost)> {
        Self::NAMES.iter().copied().zip(Self::each_cost()).collect()
    }
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
pub trait Scheduler: Send {
    /// A cell has come to `queue`, where none waited.
    fn on_backlog(&mut self, queue: usize) {
        let _ = queue;
    }

    /// Sends the next `cells` cells, of which there are as many, and none comes meanwhile.
    fn serve(&mut self, cells: u32, waiting: &mut Waiting<'_>);

    /// What it is to it when a queue fills. Asked once.
    fn backlog_sensitivity(&self) -> BacklogSensitivity {
        BacklogSensitivity::Insensitive
    }
}

/// What it is to a scheduler when an empty queue fills, beside that it comes before the next cell is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BacklogSensitivity {
    /// Nothing.
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

    /// What is wrong with the settings of VCs of these names, by label, taken together: they share a link. Asked for every
    /// port, when every VC has a value for every setting.
    fn check_vcs(&self, vcs: &[&str]) -> Vec<Fault> {
        let _ = vcs;
        Vec::new()
    }

    /// Whether it has to do with the classes of VCs.
    fn by_class(&self) -> bool {
        false
    }

    /// What it costs a switch, beside what the policy counts.
    fn cost() -> Cost;

    /// The queues of a port crossed by these VCs, by label; none where one queue holds all, first in, first out.
    fn build(&self, vcs: &[VcKind<'_>]) -> Option<Queues>;
}

/// The queues of a port that is not first in, first out, and who chooses among them.
pub struct Queues {
    /// By label.
    queue_of: Vec<usize>,
    all: Vec<Queue>,
    scheduler: Box<dyn Scheduler>,
    /// What the latest service sent.
    sent: Vec<Sent>,
}

/// The cells of a class or of a VC, first in, first out.
#[derive(Clone, Debug)]
struct Queue {
    /// Cells waiting.
    cells: u32,
    /// Those of one frame that go first; none when the queue is empty.
    front: Run,
    behind: VecDeque<Run>,
    /// Cells of the first run that were sent and not yet reported.
    unreported: u32,
}

/// Memory of the queues of a port and of who chooses among them, with a list of what was sent.
pub(crate) const BYTES: u64 = size::<Queues>() + 2 * 64 + 8 * size::<Sent>();
/// Memory of a queue, its label and its place in its scheduler's turns.
pub(crate) const BYTES_PER_QUEUE: u64 = size::<Queue>() + 8 + 48;

/// Cells of one frame that were sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    run: Run,
    /// Of the cells of the same service, how many went before the first of these, where each is reported; otherwise
    /// before the last.
    after: u32,
}

/// How finely departures are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportGranularity {
    /// Runs of cells that go one after the other: how many cells went before the first.
    Each,
    /// What waits together may go with other queues' cells in between, and is reported when the last of it has gone:
    /// how many cells went before that one.
    Runs,
}

/// What waits at a port, as its scheduler serves it.
pub struct Waiting<'a> {
    queues: &'a mut [Queue],
    counts: &'a mut Counts,
    sent: &'a mut Vec<Sent>,
    granularity: ReportGranularity,
    /// Cells sent in this service.
    number: u32,
}

impl Waiting<'_> {
    /// The queues.
    #[inline]
    pub fn queues(&self) -> std::ops::Range<usize> {
        0..self.queues.len()
    }

    /// Cells waiting in a queue.
    #[inline]
    pub fn cells(&self, queue: usize) -> u32 {
        self.queues[queue].cells
    }

    /// Sends the first cells of a queue: `most`, or those of the frame in front if they are fewer. How many they were.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a cell in the scheduler's loop")]
    pub fn send(&mut self, queue: usize, most: u32) -> u32 {
        let Queue { cells, front, unreported, .. } = &mut self.queues[queue];
        let sent = most.min(front.cells);
        *cells -= sent;
        front.cells -= sent;
        *unreported += sent;
        self.counts.take(front.last.label(), sent);
        self.number += sent;
        if front.cells == 0 || self.granularity == ReportGranularity::Each {
            self.report_departures(queue);
        }
        sent
    }

    /// Sends the first cell of a queue, of which there is one. Whether others wait behind it.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "once a cell in the scheduler's loop")]
    pub fn send_one(&mut self, queue: usize) -> bool {
        let Queue { cells, front, unreported, .. } = &mut self.queues[queue];
        *cells -= 1;
        front.cells -= 1;
        *unreported += 1;
        let others_wait = *cells > 0;
        self.counts.take(front.last.label(), 1);
        self.number += 1;
        if front.cells == 0 || self.granularity == ReportGranularity::Each {
            self.report_departures(queue);
        }
        others_wait
    }

    /// Notes what was sent of the run in front, and turns to the next one if that was all.
    #[inline(never)]
    fn report_departures(&mut self, queue: usize) {
        let Queue { front, behind, unreported, .. } = &mut self.queues[queue];
        let cells = std::mem::take(unreported);
        let after = self.number - if self.granularity == ReportGranularity::Each { cells } else { 1 };
        let is_rest = front.cells == 0;
        let last = if is_rest { front.last } else { front.last.not_last() };
        self.sent.push(Sent { run: Run { last, cells }, after });
        if is_rest && let Some(next) = behind.pop_front() {
            *front = next;
        }
    }
}

impl Queues {
    /// `queues` of them, none with a cell; `queue_of` says by label where a VC's cells wait.
    pub fn new(queues: usize, queue_of: Vec<usize>, scheduler: impl Scheduler + 'static) -> Self {
        let none = Run { last: Cell::new(0, 0, false), cells: 0 };
        let queue = Queue { cells: 0, front: none, behind: VecDeque::new(), unreported: 0 };
        Self { queue_of, all: vec![queue; queues], scheduler: Box::new(scheduler), sent: Vec::new() }
    }

    /// Puts cells at the end of their VC's queue.
    #[inline]
    pub fn push(&mut self, run: Run) {
        let number = self.queue_of[run.last.label() as usize];
        let queue = &mut self.all[number];
        queue.cells += run.cells;
        if queue.front.cells == 0 {
            queue.front = run;
            self.scheduler.on_backlog(number);
        } else if queue.behind.is_empty() && queue.front.goes_on_with(run) {
            queue.front = Run { last: run.last, cells: queue.front.cells + run.cells };
        } else {
            Run::append(&mut queue.behind, run);
        }
    }

    /// Sends the next `cells` cells, of which there are as many, takes them off the counts and reports them, in order.
    /// Where each is reported, every earlier departure was reported.
    #[inline]
    pub fn serve(
        &mut self,
        cells: u32,
        counts: &mut Counts,
        granularity: ReportGranularity,
        mut report: impl FnMut(Run, u32),
    ) {
        let Self { all: queues, scheduler, sent, .. } = self;
        scheduler.serve(cells, &mut Waiting { queues, counts, sent, granularity, number: 0 });
        for Sent { run, after } in sent.drain(..) {
            report(run, after);
        }
    }

    /// Reports what was sent of runs that have not gone as a whole.
    pub fn report_parts(&mut self, mut report: impl FnMut(Run)) {
        for Queue { front, unreported, .. } in self.all.iter_mut().filter(|queue| queue.unreported > 0) {
            report(Run { last: front.last.not_last(), cells: std::mem::take(unreported) });
        }
    }

    /// What it is to the scheduler when a queue fills.
    pub fn backlog_sensitivity(&self) -> BacklogSensitivity {
        self.scheduler.backlog_sensitivity()
    }

    /// Whether no two VCs share a queue.
    pub fn one_a_vc(&self) -> bool {
        self.queue_of.iter().copied().eq(0..self.all.len())
    }

    /// Cells waiting in the queue of a VC.
    #[inline]
    pub fn ahead(&self, label: Label) -> u32 {
        self.all[self.queue_of[label as usize]].cells
    }

    /// No frame's last cell is among fewer of the next cells than this; one at least waits.
    pub fn least_to_an_end(&self) -> u32 {
        if self.all.len() > FEW {
            return 1;
        }
        let waiting = self.all.iter().filter(|queue| queue.cells > 0);
        waiting.map(|queue| queue.front.cells).min().unwrap_or(1)
    }

    /// The waiting cells, queue by queue.
    pub fn waiting(&self) -> impl Iterator<Item = Cell> {
        let runs = |queue: &Queue| std::iter::once(queue.front).chain(queue.behind.clone());
        self.all.iter().filter(|queue| queue.cells > 0).flat_map(runs).flat_map(Run::iter)
    }
}

/// Among more queues than this, looking for the shortest costs more than it saves.
const FEW: usize = 8;

#[cfg(test)]
mod conformance;
