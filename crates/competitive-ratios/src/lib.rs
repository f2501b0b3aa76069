//! A slotted model of a shared memory, which compares memory policies with the best schedule that knows the future.
//!
//! Source: Aiello, Kesselman and Mansour, "Competitive Buffer Management for Shared-Memory Switches", ACM Transactions
//! on Algorithms 5(1), 2008, section 2. In every slot, any number of cells arrive for any ports, one after the other.
//! Then every port with a waiting cell sends one cell. M cells fit into the memory. After the last arrival, the memory
//! empties, so the number of cells sent is the number of cells that entered the memory and were not pushed out.
//!
//! The *ratio* of an arrival sequence is the number of cells that the [`optimum`] sends divided by the number that the
//! policy sends. The competitive ratio of a policy is the largest ratio of any sequence. [`game`] computes the
//! competitive ratio for two ports, and [`search`] finds sequences with a large ratio for more ports.
//!
//! ```
//! use celltrain_core::memory::complete_sharing;
//! use competitive_ratios::{Burst, optimum, sent};
//!
//! // The cells of port 0 take all places, so the cell of port 1 is refused.
//! let bursts = [Burst { slot: 0, port: 0, cells: 4 }, Burst { slot: 0, port: 1, cells: 1 }];
//! assert_eq!(sent(&complete_sharing::Config {}.into(), 4, 2, &bursts), 4);
//! assert_eq!(optimum(4, 2, &bursts), 4);
//! ```

pub mod game;
pub mod search;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use celltrain_core::aal5::CellFormat;
use celltrain_core::memory::{
    MemoryPolicy, MemoryPolicyConfig, PoolInfo, PoolQueue, PushOut, QueueEnd, QueueInfo, Verdict, View,
};
use celltrain_core::rng::Stream;
use celltrain_core::units::{Clock, Time};
use typed_index_collections::{TiSlice, TiVec, ti_vec};

/// Cells that arrive for one port in one slot, directly one after the other. An arrival sequence is a list of bursts,
/// sorted by slot. Bursts of one slot arrive in list order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Time slot of the burst, from 0.
    pub slot: u32,
    /// Number of the port for which the cells arrive.
    pub port: u32,
    /// Number of cells in the burst.
    pub cells: u32,
}

/// A memory with a single pool in the slotted model. Each port has one queue.
pub struct SlottedMemory {
    cells: u32,
    used: u32,
    queues: TiVec<PoolQueue, u32>,
    /// The waiting cells of each queue, as indices into `lost`.
    waiting: TiVec<PoolQueue, VecDeque<usize>>,
    policy: Box<dyn MemoryPolicy>,
    slot: u32,
    sent: u64,
    /// For each arriving cell, true if the cell was refused or pushed out.
    lost: Vec<bool>,
}

impl SlottedMemory {
    /// The clock that policies see. A slot takes one microsecond, which is the unit of the clock.
    pub const CLOCK: Clock = Clock::exact(1_000_000);

    /// Creates an empty memory of `cells` cells for `ports` ports, whose queues have default settings.
    pub fn new(policy: &MemoryPolicyConfig, cells: u32, ports: u32) -> Self {
        let queues: TiVec<PoolQueue, QueueInfo> = (0..ports).map(QueueInfo::at_port).collect();
        Self::with_queues(policy, cells, &queues)
    }

    /// Creates an empty memory of `cells` cells for the given queues, one per port.
    pub fn with_queues(policy: &MemoryPolicyConfig, cells: u32, queues: &TiSlice<PoolQueue, QueueInfo>) -> Self {
        Self::holding(policy, cells, queues, ti_vec![0; queues.len()])
    }

    /// Creates a memory of `cells` cells whose queues already contain cells. The cells in the queues count as the first
    /// arrivals, in the order of the queues.
    pub fn holding(
        policy: &MemoryPolicyConfig,
        cells: u32,
        queues: &TiSlice<PoolQueue, QueueInfo>,
        held: TiVec<PoolQueue, u32>,
    ) -> Self {
        let rng = &Stream::new(1, "memory/slotted");
        let policy =
            policy.build(&PoolInfo { name: "slotted", cells, queues, clock: Self::CLOCK, cell: CellFormat::ATM, rng });
        let mut numbers = 0..;
        let waiting = held.iter().map(|&held| numbers.by_ref().take(held as usize).collect()).collect();
        let lost = vec![false; numbers.start];
        Self { cells, used: held.iter().sum(), queues: held, waiting, policy, slot: 0, sent: 0, lost }
    }

    /// Passes predictions to the policy: for each arriving cell, true if longest queue drop would lose the cell.
    pub fn predict(&mut self, drops: Arc<[bool]>) {
        self.policy.predict(drops);
    }

    /// Offers an arriving cell to the policy. Returns whether the cell entered.
    ///
    /// # Panics
    /// If the policy admits a cell into a full memory, or pushes a cell out of an empty queue.
    pub fn offer(&mut self, port: u32) -> bool {
        let queue = PoolQueue::new(port);
        self.ask(|policy, view| policy.arrived(view, queue, 1));
        loop {
            match self.ask(|policy, view| policy.admit(view, queue, 1)) {
                Verdict::Admit => break,
                Verdict::Refuse => {
                    self.lost.push(true);
                    return false;
                }
                Verdict::PushOut(victim) => self.push_out(victim),
            }
        }
        assert!(self.used < self.cells, "a policy admits only cells that fit");
        self.queues[queue] += 1;
        self.used += 1;
        self.waiting[queue].push_back(self.lost.len());
        self.lost.push(false);
        self.ask(|policy, view| policy.entered(view, queue, 1));
        true
    }

    /// Ends the current slot, in which every port with a waiting cell sends one cell.
    pub fn end_slot(&mut self) {
        for queue in self.queues.keys() {
            if self.queues[queue] > 0 {
                self.sent += 1;
                self.remove(queue, QueueEnd::Head);
            }
        }
        while self.policy.next_time().is_some_and(|time| time <= self.now()) {
            if let Some(victim) = self.ask(MemoryPolicy::on_time) {
                self.push_out(victim);
            }
        }
        self.slot += 1;
    }

    /// Ends slots until the slot with the given number begins.
    pub fn advance_to(&mut self, slot: u32) {
        while self.slot < slot {
            self.end_slot();
        }
    }

    /// Processes all bursts, and then ends slots until the memory is empty.
    pub fn run(&mut self, bursts: &[Burst]) {
        for burst in bursts {
            self.advance_to(burst.slot);
            for _ in 0..burst.cells {
                self.offer(burst.port);
            }
        }
        while self.used > 0 {
            self.end_slot();
        }
    }

    /// Returns the number of cells in each queue.
    pub fn queues(&self) -> &TiSlice<PoolQueue, u32> {
        &self.queues
    }

    /// Returns the number of cells in the memory.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Returns for each cell, in the order of arrival, whether the cell was refused or pushed out.
    pub fn lost(&self) -> &[bool] {
        &self.lost
    }

    /// Returns the number of cells sent so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    fn push_out(&mut self, PushOut { queue, end }: PushOut) {
        let cell = self.remove(queue, end);
        self.lost[cell] = true;
    }

    /// Removes a cell from one end of a queue. Returns the cell's index in `lost`.
    fn remove(&mut self, queue: PoolQueue, end: QueueEnd) -> usize {
        let waiting = &mut self.waiting[queue];
        let cell = match end {
            QueueEnd::Head => waiting.pop_front(),
            QueueEnd::Tail => waiting.pop_back(),
        };
        self.queues[queue] -= 1;
        self.used -= 1;
        self.ask(|policy, view| policy.left(view, queue, 1));
        cell.expect("a queue that loses a cell holds at least one cell")
    }

    fn now(&self) -> Time {
        Time(u64::from(self.slot))
    }

    fn ask<T>(&mut self, question: impl FnOnce(&mut dyn MemoryPolicy, &View<'_>) -> T) -> T {
        let view = View { cells: self.cells, used: self.used, queues: &self.queues, now: self.now() };
        question(&mut *self.policy, &view)
    }
}

/// A ratio of whole numbers in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    numerator: u64,
    denominator: u64,
}

impl Ratio {
    /// Creates a ratio.
    ///
    /// # Panics
    /// If the denominator is 0.
    pub fn new(numerator: u64, denominator: u64) -> Self {
        assert!(denominator > 0, "a ratio has a positive denominator");
        let (mut divisor, mut rest) = (denominator, numerator);
        while rest > 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        Self { numerator: numerator / divisor, denominator: denominator / divisor }
    }

    /// Returns the value of the ratio.
    pub fn value(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.numerator * other.denominator).cmp(&(other.numerator * self.denominator))
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.numerator, self.denominator)
    }
}

/// Returns the ratio of the optimum to a policy for these bursts, or `None` if the policy sends no cell.
pub fn ratio(policy: &MemoryPolicyConfig, cells: u32, ports: u32, bursts: &[Burst]) -> Option<Ratio> {
    let sent = sent(policy, cells, ports, bursts);
    (sent > 0).then(|| Ratio::new(optimum(cells, ports, bursts), sent))
}

/// Returns the number of cells that a policy sends for the given bursts.
pub fn sent(policy: &MemoryPolicyConfig, cells: u32, ports: u32, bursts: &[Burst]) -> u64 {
    let mut memory = SlottedMemory::new(policy, cells, ports);
    memory.run(bursts);
    memory.sent()
}

/// Returns the largest number of cells that any schedule sends for the given bursts.
pub fn optimum(cells: u32, ports: u32, bursts: &[Burst]) -> u64 {
    best_schedule(cells, ports, bursts).iter().map(|burst| u64::from(burst.cells)).sum()
}

/// Returns the cells that an optimal schedule admits from these bursts. The schedule sends every cell that it admits.
///
/// A cell that arrives in slot a and is sent in slot d occupies a place in the slots a to d. So a schedule is a set of
/// intervals of slots. Each slot is in at most M intervals, and no two intervals of a port end in the same slot.
///
/// 1. *The intervals can be fixed in advance.* Let each port of an infinite memory send the waiting cell that arrived
///    last, and let m(d) be the cell that a port sends in slot d. Some best schedule uses only intervals \[m(d), d\]. To
///    see this, change a best schedule slot by slot, so that m(d) is sent in slot d or not at all. If the schedule sends
///    another cell x in slot d, then x arrived no later than m(d), because m(d) is the waiting cell that arrived last:
///    exchange x and m(d). If the port sends no cell in slot d, but sends m(d) in a later slot, send m(d) in slot d.
///    Neither change puts any slot into more intervals.
/// 2. *The largest set of intervals that puts no slot into more than M of them* is found by a greedy algorithm: in the
///    order of their starts, remove the interval that ends last whenever M + 1 intervals contain a slot (Faigle and
///    Nawijn, "Note on Scheduling Intervals On-Line", Discrete Applied Mathematics 58, 1995; Carlisle and Lloyd, "On
///    the k-Coloring of Intervals", Discrete Applied Mathematics 59, 1995).
pub fn best_schedule(cells: u32, ports: u32, bursts: &[Burst]) -> Vec<Burst> {
    // Number of admitted cells, by slot and port.
    let mut schedule: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    let mut take = |slot, port| *schedule.entry((slot, port)).or_default() += 1;
    // The intervals that contain the current slot, as end, start and port.
    let mut present: BTreeSet<(u32, u32, u32)> = BTreeSet::new();
    for (start, end, port) in intervals(cells, ports, bursts) {
        while let Some(&(_, slot, port)) = present.first().filter(|first| first.0 < start) {
            present.pop_first();
            take(slot, port);
        }
        present.insert((end, start, port));
        if present.len() > cells as usize {
            present.pop_last();
        }
    }
    for (_, slot, port) in present {
        take(slot, port);
    }
    schedule.into_iter().map(|((slot, port), cells)| Burst { slot, port, cells }).collect()
}

/// Returns the intervals of an infinite memory whose ports always send the newest cell. Each interval is a start, an
/// end and a port, and the intervals are sorted.
fn intervals(cells: u32, ports: u32, bursts: &[Burst]) -> Vec<(u32, u32, u32)> {
    let mut by_port = vec![Vec::new(); ports as usize];
    for burst in bursts.iter().filter(|burst| burst.cells > 0) {
        by_port[burst.port as usize].push(burst);
    }
    let mut intervals = Vec::new();
    for (port, bursts) in (0..).zip(by_port) {
        // Number of waiting cells by slot of arrival. If more cells arrive in a slot than fit into the memory, the
        // excess cells never find a place.
        let mut waiting: Vec<(u32, u32)> = Vec::new();
        let mut slot = 0;
        let mut send_until = |waiting: &mut Vec<(u32, u32)>, end: Option<u32>| {
            while end.is_none_or(|end| slot < end) {
                let Some((arrival, left)) = waiting.last_mut() else { break };
                intervals.push((*arrival, slot, port));
                *left -= 1;
                if *left == 0 {
                    waiting.pop();
                }
                slot += 1;
            }
            slot = end.unwrap_or(slot);
        };
        for burst in bursts {
            send_until(&mut waiting, Some(burst.slot));
            match waiting.last_mut() {
                Some((arrival, left)) if *arrival == burst.slot => *left = cells.min(*left + burst.cells),
                _ => waiting.push((burst.slot, cells.min(burst.cells))),
            }
        }
        send_until(&mut waiting, None);
    }
    intervals.sort_unstable();
    intervals
}

#[cfg(test)]
mod tests;
