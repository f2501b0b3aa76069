//! Records the questions to the policy of a pool, with its answers, as [certificates](crate::certificate) define both
//! words.

use std::mem::size_of;
use std::sync::Arc;

use typed_index_collections::TiVec;

use super::{Hooks, MemoryConfig, MemoryPolicy, PoolQueue, PushOut, QueueConfig, Verdict, View};
use crate::recording::{Budget, Records};
use crate::units::Time;

/// Maximum number of recorded kinds of arrivals. Segments and acknowledgements are different kinds, because they have
/// different numbers of cells.
const MOST_KINDS: usize = 64;

/// The answers for one number of used cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Answers {
    /// Length of the shortest queue for which no arrival was admitted, nor for any longer queue.
    admitted_below: u32,
    /// Length of the shortest queue for which an arrival was refused; `u32::MAX` if none was.
    refused_from: u32,
}

impl Answers {
    const NONE: Self = Self { admitted_below: 0, refused_from: u32::MAX };
}

/// Questions to a pool's policy, if it is a [threshold](MemoryPolicy::is_threshold), or if it
/// [admits all that fits](MemoryPolicy::admits_all_that_fits) and everything fitted.
#[derive(Clone, Debug)]
pub(crate) struct PoolRecord {
    /// For each kind of arrival, the answers by the number of used cells. A kind is a number of cells that arrive
    /// together, and the first queue with the same settings as their queue.
    answers: Vec<(u32, PoolQueue, Vec<Answers>)>,
    /// True if the answers may have depended on other values, or there were too many questions.
    pub(crate) is_unknown: bool,
    /// True if admitted cells found no room in the pool.
    pub(crate) lacked_room: bool,
    /// Largest number of used cells including arrivals that were admitted.
    pub(crate) most: u32,
}

impl PoolRecord {
    pub(crate) fn new(is_unknown: bool) -> Self {
        Self { answers: Vec::new(), is_unknown, lacked_room: false, most: 0 }
    }

    fn add(&mut self, view: &View<'_>, queues: Arriving, admitted: bool, budget: &Budget) {
        let Arriving { queue, first_alike, cells } = queues;
        let held = view.queues[queue];
        self.lacked_room |= !view.fits(cells);
        let key = (cells, first_alike);
        let place = self.answers.iter().position(|&(cells, queue, _)| (cells, queue) == key).unwrap_or_else(|| {
            self.answers.push((cells, first_alike, Vec::new()));
            self.answers.len() - 1
        });
        let own = &mut self.answers[place].2;
        let used = view.used as usize;
        if own.len() <= used {
            let before = own.capacity();
            own.resize(used + 1, Answers::NONE);
            let bytes = (own.capacity() - before) * size_of::<Answers>();
            self.is_unknown |= place >= MOST_KINDS || !budget.may_grow(bytes);
        }
        let Answers { admitted_below, refused_from } = &mut own[used];
        if admitted {
            *admitted_below = (*admitted_below).max(held + 1);
            self.most = self.most.max(view.used.saturating_add(cells));
        } else {
            *refused_from = (*refused_from).min(held);
        }
    }

    /// Calls `same` with each decisive question and its answer: queue, number of arriving cells, number of used cells
    /// and length of the queue. A threshold answers all other questions in the same way. Returns whether all calls
    /// return true.
    pub(crate) fn all(&self, mut same: impl FnMut(Arriving, u32, u32, bool) -> bool) -> bool {
        self.answers.iter().all(|&(cells, queue, ref answers)| {
            let arriving = Arriving { queue, first_alike: queue, cells };
            (0..).zip(answers).all(|(used, &Answers { admitted_below, refused_from })| {
                (admitted_below == 0 || same(arriving, used, admitted_below - 1, true))
                    && (refused_from == u32::MAX || same(arriving, used, refused_from, false))
            })
        })
    }
}

/// Cells that arrive together for a queue.
#[derive(Clone, Copy)]
pub(crate) struct Arriving {
    pub(crate) queue: PoolQueue,
    /// The first queue with the same settings.
    first_alike: PoolQueue,
    pub(crate) cells: u32,
}

/// A pool's policy whose questions and answers are recorded.
pub(crate) struct RecordedPool {
    policy: Box<dyn MemoryPolicy>,
    memory: String,
    /// For each queue, the first queue with the same settings.
    first_alike: TiVec<PoolQueue, PoolQueue>,
    record: PoolRecord,
    records: Records<String, PoolRecord>,
    budget: Budget,
}

impl RecordedPool {
    pub(crate) fn new(
        policy: Box<dyn MemoryPolicy>,
        config: &MemoryConfig,
        records: &Records<String, PoolRecord>,
        budget: &Budget,
    ) -> Self {
        let is_known = policy.is_threshold() || policy.admits_all_that_fits();
        let record = PoolRecord::new(!is_known || !config.is_single_pool());
        let settings = |queue: &QueueConfig| (queue.alpha, queue.threshold);
        let first_alike = |queue: &QueueConfig| {
            let same = config.queues.iter().position(|other| settings(other) == settings(queue)).unwrap_or_default();
            PoolQueue::new(u32::try_from(same).expect("all indices fit in 32 bits"))
        };
        let first_alike = config.queues.iter().map(first_alike);
        let first_alike = first_alike.collect();
        Self {
            policy,
            memory: config.name.clone(),
            first_alike,
            record,
            records: records.clone(),
            budget: budget.clone(),
        }
    }
}

impl Drop for RecordedPool {
    fn drop(&mut self) {
        let record = std::mem::replace(&mut self.record, PoolRecord::new(true));
        let mut records = self.records.locked();
        let unknown = records.contains_key(&self.memory).then(|| PoolRecord::new(true));
        // If several pools have this name, it is unknown which of them a question belongs to.
        records.insert(std::mem::take(&mut self.memory), unknown.unwrap_or(record));
    }
}

impl MemoryPolicy for RecordedPool {
    fn admit(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) -> Verdict {
        let verdict = self.policy.admit(view, queue, cells);
        self.record.is_unknown |= !(view.fits(cells) || self.policy.is_threshold());
        if !self.record.is_unknown {
            let arriving = Arriving { queue, first_alike: self.first_alike[queue], cells };
            match verdict {
                Verdict::Admit => self.record.add(view, arriving, true, &self.budget),
                Verdict::Refuse => self.record.add(view, arriving, false, &self.budget),
                Verdict::PushOut(_) => self.record.is_unknown = true,
            }
        }
        verdict
    }

    fn threshold(&self, view: &View<'_>, queue: PoolQueue) -> Option<f64> {
        self.policy.threshold(view, queue)
    }

    fn has_room(&self, view: &View<'_>, queue: PoolQueue, cells: u32) -> bool {
        self.policy.has_room(view, queue, cells)
    }

    /// The memory must ask each question while questions are recorded.
    fn admits_up_to(&self, cells: u32, used: u32, queue: PoolQueue) -> u32 {
        if self.record.is_unknown { self.policy.admits_up_to(cells, used, queue) } else { 0 }
    }

    fn arrived(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) {
        self.policy.arrived(view, queue, cells);
    }

    fn entered(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) {
        self.policy.entered(view, queue, cells);
    }

    fn left(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) {
        self.policy.left(view, queue, cells);
    }

    fn next_time(&self) -> Option<Time> {
        self.policy.next_time()
    }

    fn on_time(&mut self, view: &View<'_>) -> Option<PushOut> {
        self.policy.on_time(view)
    }

    fn removed(&mut self, cells: u32) {
        self.policy.removed(cells);
    }

    fn pass(&mut self, now: Time) {
        self.policy.pass(now);
    }

    fn hooks(&self) -> Hooks {
        self.policy.hooks()
    }

    fn predict(&mut self, drops: Arc<[bool]>) {
        self.policy.predict(drops);
    }

    fn replaced_results(&self) -> u64 {
        self.policy.replaced_results()
    }

    fn is_threshold(&self) -> bool {
        self.policy.is_threshold()
    }

    fn admits_all_that_fits(&self) -> bool {
        self.policy.admits_all_that_fits()
    }

    fn rule(&self) -> &'static str {
        self.policy.rule()
    }
}
