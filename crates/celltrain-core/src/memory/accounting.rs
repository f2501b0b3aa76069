//! The counts that a memory keeps: reserves, shared parts, headrooms and pauses.
//!
//! [`Memory::offer`] finds room for a cell that arrives, and [`Memory::leave`] frees the room. The cells of a queue are
//! not distinguished: a departure frees headroom first, then the shared part, and the reserve last. Once a lossless
//! group has a cell in its headroom, its next cells also enter the headroom until the headroom is empty.

mod answers;
mod counting_queue;
mod counts;
mod packets;
mod pauses;
mod recorded;

use std::collections::VecDeque;
use std::sync::Arc;

use typed_index_collections::{TiVec, ti_vec};

use super::occupancy::OccupancyTracker;
use super::{
    Hooks, Lossless, MemoryConfig, MemoryPolicy, PoolIndex, PoolInfo, PoolQueue, PushOut, QueueIndex, QueueInfo, Side,
    Verdict, View,
};
use crate::aal5::CellFormat;
use crate::coverage::reached;
use crate::index::LinkIndex;
use crate::rng::Stream;
use crate::units::{Clock, Span, Time};
pub(crate) use answers::Attempt;
use answers::Obstacle;
pub use answers::{
    CellClass, CellClasses, Limit, MemoryState, Offer, PauseChange, PoolState, QueueCounters, Refusal, Removal,
};
use counting_queue::Certain;
pub(crate) use counting_queue::CountingQueue;

/// The part of a memory that holds a given cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Reserve,
    Shared,
    Headroom,
}

#[derive(Clone, Debug)]
struct Queue {
    pool: PoolIndex,
    place: PoolQueue,
    reserve: u32,
    lossless: Option<Lossless>,
    in_reserve: u32,
    in_headroom: u32,
    paused: bool,
    certain: Certain,
    counters: QueueCounters,
}

struct Pool {
    side: Side,
    /// B.
    cells: u32,
    /// Q.
    used: u32,
    max_used: u32,
    /// Cells in the headrooms of the pool's queues.
    in_headroom: u32,
    headroom: Option<u32>,
    /// `q_i`.
    shared: TiVec<PoolQueue, u32>,
    /// Index of each of the pool's queues in the memory.
    queues: TiVec<PoolQueue, QueueIndex>,
    policy: Box<dyn MemoryPolicy>,
    hooks: Hooks,
}

impl Pool {
    fn view(&self, now: Time) -> View<'_> {
        View { cells: self.cells, used: self.used, queues: &self.shared, now }
    }

    fn state(&self) -> PoolState {
        PoolState { used: self.used, max_used: self.max_used, replaced_results: self.policy.replaced_results() }
    }
}

/// The state of a memory.
pub struct Memory {
    cells: u32,
    used: u32,
    occupancy: OccupancyTracker,
    queues: TiVec<QueueIndex, Queue>,
    pools: TiVec<PoolIndex, Pool>,
    follows_arrivals: bool,
    /// True if a policy acts without an arrival or a departure.
    has_clock: bool,
    /// Pause changes that the caller has not retrieved yet, in order.
    pause_changes: VecDeque<PauseChange>,
}

impl Memory {
    /// Creates an empty memory. `cell_time` gives the transmission time of a cell on a link.
    pub fn new(
        config: &MemoryConfig,
        cell_time: impl Fn(LinkIndex) -> Span,
        clock: Clock,
        cell: CellFormat,
        seed: u64,
    ) -> Self {
        let mut pool_queues: TiVec<PoolIndex, TiVec<PoolQueue, QueueIndex>> = ti_vec![TiVec::new(); config.pools.len()];
        let mut queues = TiVec::with_capacity(config.queues.len());
        for (number, queue) in config.queues.iter_enumerated() {
            let side = config.pools[queue.pool].side;
            assert!(queue.lossless.is_none() || side == Side::Ingress, "only priority groups are lossless");
            queues.push(Queue {
                pool: queue.pool,
                place: pool_queues[queue.pool].push_and_get_key(number),
                reserve: queue.reserve,
                lossless: queue.lossless,
                in_reserve: 0,
                in_headroom: 0,
                paused: false,
                certain: Certain::default(),
                counters: QueueCounters::default(),
            });
        }
        let pool = |(pool, queues): (&super::PoolConfig, TiVec<PoolQueue, QueueIndex>)| {
            let mut ports: Vec<LinkIndex> = Vec::new();
            let info = |&number: &QueueIndex| {
                let queue = &config.queues[number];
                let port = ports.iter().position(|&link| link == queue.link).unwrap_or_else(|| {
                    ports.push(queue.link);
                    ports.len() - 1
                });
                QueueInfo {
                    port: u32::try_from(port).expect("all indices fit in 32 bits"),
                    priority: queue.priority,
                    cell_time: cell_time(queue.link),
                    alpha: queue.alpha,
                    threshold: queue.threshold,
                }
            };
            let name = format!("{}/{}", config.name, pool.name);
            let rng = Stream::new(seed, &format!("memory/{name}"));
            let info: TiVec<PoolQueue, QueueInfo> = queues.iter().map(info).collect();
            let policy =
                pool.policy.build(&PoolInfo { name: &name, cells: pool.cells, queues: &info, clock, cell, rng: &rng });
            Pool {
                side: pool.side,
                cells: pool.cells,
                used: 0,
                max_used: 0,
                in_headroom: 0,
                headroom: pool.headroom,
                shared: ti_vec![0; queues.len()],
                queues,
                hooks: policy.hooks(),
                policy,
            }
        };
        let pools: TiVec<PoolIndex, Pool> = config.pools.iter().zip(pool_queues).map(pool).collect();
        let follows_arrivals = pools.iter().any(|pool| pool.hooks.arrivals);
        let has_clock = pools.iter().any(|pool| pool.hooks.clock);
        let (used, occupancy, pause_changes) = Default::default();
        Self { cells: config.cells, used, occupancy, queues, pools, follows_arrivals, has_clock, pause_changes }
    }

    /// Returns whether no policy follows single cells, so that cells affect only counts and the policies' decisions.
    pub(crate) fn follows_no_cells(&self) -> bool {
        !self.follows_arrivals && !self.pools.iter().any(|pool| pool.hooks.cells)
    }

    /// Returns whether a policy acts without an arrival or a departure.
    #[inline]
    pub(crate) fn has_clock(&self) -> bool {
        self.has_clock
    }

    /// Reports an arriving cell to the policies. Called once per cell, before the cell is [offered](Self::offer).
    #[inline]
    pub fn arrive(&mut self, class: CellClass, now: Time) {
        if self.follows_arrivals {
            self.report_arrival(class, now);
        }
    }

    #[inline(never)]
    fn report_arrival(&mut self, class: CellClass, now: Time) {
        for queue in [class.ingress, class.egress].into_iter().flatten() {
            let Queue { pool, place, .. } = self.queues[queue];
            let pool = &mut self.pools[pool];
            let view = View { cells: pool.cells, used: pool.used, queues: &pool.shared, now };
            pool.policy.arrived(&view, place, 1);
        }
    }

    /// Counts an arriving cell if there is room for it.
    pub fn offer(&mut self, class: CellClass, now: Time) -> Offer {
        let attempt = self.try_enter(class, now);
        self.with_numbers(attempt, now)
    }

    /// Like [`Memory::offer`], for a cell of a packet whose first cell has been admitted. The policy refuses such a
    /// cell only if the shared part is full.
    pub fn offer_rest(&mut self, class: CellClass, now: Time) -> Offer {
        let attempt = self.try_enter_rest(class, now);
        self.with_numbers(attempt, now)
    }

    fn with_numbers(&self, attempt: Attempt, now: Time) -> Offer {
        match attempt {
            Attempt::Entered => Offer::Entered,
            Attempt::PushOut(removal) => Offer::PushOut(removal),
            Attempt::Refused(queue, limit) => {
                let (threshold, held, used) = (self.threshold(queue, now), self.shared(queue), self.used_of(queue));
                Offer::Refused(Refusal { queue, limit, threshold, held, used })
            }
        }
    }

    /// Like [`Memory::offer`], but without the details of a refusal.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the engine's loop calls this function once per cell")]
    pub(crate) fn try_enter(&mut self, class: CellClass, now: Time) -> Attempt {
        self.enter_as::<false>(class, now)
    }

    /// Like [`Memory::offer_rest`], but without the details of a refusal.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the engine's loop calls this function once per cell")]
    pub(crate) fn try_enter_rest(&mut self, class: CellClass, now: Time) -> Attempt {
        self.enter_as::<true>(class, now)
    }

    /// Counts an arriving cell if there is room. `REST` is true if the cell's packet has already been admitted.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the engine's loop calls this function once per cell")]
    fn enter_as<const REST: bool>(&mut self, class: CellClass, now: Time) -> Attempt {
        match (class.ingress, class.egress) {
            (Some(queue), None) | (None, Some(queue)) => match self.find_part::<REST>(queue, now) {
                Ok(part) => {
                    self.count_in(now);
                    self.enter(queue, part, now);
                    Attempt::Entered
                }
                Err(obstacle) => self.count_out_of_place(queue, obstacle),
            },
            (Some(ingress), Some(egress)) => self.try_enter_both::<REST>(ingress, egress, now),
            (None, None) => {
                self.count_in(now);
                Attempt::Entered
            }
        }
    }

    #[inline(never)]
    fn try_enter_both<const REST: bool>(&mut self, ingress: QueueIndex, egress: QueueIndex, now: Time) -> Attempt {
        let of_ingress = match self.find_part::<REST>(ingress, now) {
            Ok(part) => part,
            Err(obstacle) => return self.count_out_of_place(ingress, obstacle),
        };
        let of_egress = match self.find_part::<REST>(egress, now) {
            Ok(part) => part,
            Err(obstacle) => {
                reached!(EgressRefusesAfterIngress);
                return self.count_out_of_place(egress, obstacle);
            }
        };
        self.count_in(now);
        self.enter(ingress, of_ingress, now);
        self.enter(egress, of_egress, now);
        Attempt::Entered
    }

    #[inline]
    fn count_in(&mut self, now: Time) {
        self.used += 1;
        self.occupancy.rise(self.used, now);
    }

    /// Counts a cell that finds no room, unless another cell is removed to make room.
    #[cold]
    fn count_out_of_place(&mut self, queue: QueueIndex, obstacle: Obstacle) -> Attempt {
        match obstacle {
            Obstacle::Limit(limit) => {
                self.queues[queue].counters.refused += 1;
                Attempt::Refused(queue, limit)
            }
            Obstacle::Waiting(removal) => Attempt::PushOut(removal),
        }
    }

    /// Finds the part of the memory that has room for a cell of a queue. The rest of an admitted packet (`REST`) enters
    /// the shared part without a decision of the policy. In a lossless group, the policy still decides between the
    /// shared part and the headroom.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the engine's loop calls this function once per cell")]
    fn find_part<const REST: bool>(&mut self, number: QueueIndex, now: Time) -> Result<Part, Obstacle> {
        let queue = &self.queues[number];
        let pool = &mut self.pools[queue.pool];
        if queue.in_reserve < queue.reserve {
            reached!(ReserveWithoutMemory if self.used >= self.cells);
            return if self.used < self.cells { Ok(Part::Reserve) } else { Err(Obstacle::Limit(Limit::Memory)) };
        }
        if REST && queue.lossless.is_none() && pool.used < pool.cells && self.used < self.cells {
            return Ok(Part::Shared);
        }
        let limit = if queue.in_headroom > 0 {
            Limit::Headroom
        } else {
            // Borrow the fields separately, because `admit` borrows the policy mutably and reads the other fields.
            let view = View { cells: pool.cells, used: pool.used, queues: &pool.shared, now };
            match pool.policy.admit(&view, queue.place, 1) {
                Verdict::Admit if pool.used < pool.cells && self.used < self.cells => return Ok(Part::Shared),
                Verdict::Admit if pool.used < pool.cells => Limit::Memory,
                Verdict::Admit => Limit::Pool,
                // The pool was full, so the policy could not have admitted the cell.
                Verdict::Refuse if pool.used >= pool.cells => Limit::Pool,
                Verdict::Refuse => Limit::Policy,
                Verdict::PushOut(PushOut { queue, end }) => {
                    assert!(pool.side == Side::Egress, "cells are pushed out of queues, never out of priority groups");
                    assert!(
                        pool.shared[queue] > 0,
                        "a queue that loses a cell holds at least one cell of the shared \
                                                     part"
                    );
                    return Err(Obstacle::Waiting(Removal { queue: pool.queues[queue], end }));
                }
            }
        };
        reached!(MemoryFull if limit == Limit::Memory);
        reached!(PoolFull if limit == Limit::Pool);
        let Some(lossless) = queue.lossless else { return Err(Obstacle::Limit(limit)) };
        if queue.in_headroom >= lossless.headroom || pool.headroom.is_some_and(|most| pool.in_headroom >= most) {
            reached!(HeadroomUsedUp if queue.in_headroom >= lossless.headroom && lossless.headroom > 0);
            reached!(PoolHeadroomUsedUp if queue.in_headroom < lossless.headroom);
            if REST && pool.used < pool.cells && self.used < self.cells {
                reached!(RestBeyondHeadroom);
                return Ok(Part::Shared);
            }
            return Err(Obstacle::Limit(Limit::Headroom));
        }
        if self.used < self.cells { Ok(Part::Headroom) } else { Err(Obstacle::Limit(Limit::Memory)) }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the engine's loop calls this function once per cell")]
    fn enter(&mut self, number: QueueIndex, part: Part, now: Time) {
        let queue = &mut self.queues[number];
        let pool = &mut self.pools[queue.pool];
        match part {
            Part::Reserve => queue.in_reserve += 1,
            Part::Shared => {
                pool.shared[queue.place] += 1;
                pool.used += 1;
                pool.max_used = pool.max_used.max(pool.used);
                if pool.hooks.cells {
                    let view = View { cells: pool.cells, used: pool.used, queues: &pool.shared, now };
                    pool.policy.entered(&view, queue.place, 1);
                }
            }
            Part::Headroom => {
                reached!(HeadroomUsed);
                queue.in_headroom += 1;
                pool.in_headroom += 1;
                queue.counters.max_headroom = queue.counters.max_headroom.max(queue.in_headroom);
            }
        }
        let held = queue.in_reserve + pool.shared[queue.place] + queue.in_headroom;
        queue.counters.entered += 1;
        queue.counters.max_cells = queue.counters.max_cells.max(held);
        if queue.lossless.is_some() {
            self.pause(number, now);
        }
    }

    /// Frees the place of a cell that is sent or was removed after a [`Removal`].
    ///
    /// # Panics
    /// If a queue of the cell is empty.
    #[inline]
    pub fn leave(&mut self, class: CellClass, now: Time) {
        self.occupancy.fall(self.used, now);
        self.used -= 1;
        if let Some(queue) = class.ingress {
            self.leave_queue(queue, now);
        }
        if let Some(queue) = class.egress {
            self.leave_queue(queue, now);
        }
    }

    /// Frees the place of a cell that is pushed out, and counts the removal.
    pub fn push_out(&mut self, class: CellClass, now: Time) {
        for queue in [class.ingress, class.egress].into_iter().flatten() {
            self.queues[queue].counters.pushed_out += 1;
        }
        self.leave(class, now);
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the engine's loop calls this function once per cell")]
    fn leave_queue(&mut self, number: QueueIndex, now: Time) {
        let queue = &mut self.queues[number];
        let pool = &mut self.pools[queue.pool];
        if queue.in_headroom > 0 {
            queue.in_headroom -= 1;
            pool.in_headroom -= 1;
        } else if pool.shared[queue.place] > 0 {
            pool.shared[queue.place] -= 1;
            pool.used -= 1;
            if pool.hooks.cells {
                let view = View { cells: pool.cells, used: pool.used, queues: &pool.shared, now };
                pool.policy.left(&view, queue.place, 1);
            }
        } else {
            assert!(queue.in_reserve > 0, "a cell leaves a queue that holds at least one cell");
            queue.in_reserve -= 1;
        }
        if queue.paused {
            self.resume(number, now);
        }
    }

    /// Passes predictions to the policy of a pool: for each arrival, true if Longest Queue Drop loses the cell.
    pub fn predict(&mut self, pool: PoolIndex, drops: Arc<[bool]>) {
        self.pools[pool].policy.predict(drops);
    }

    /// Returns the next time at which a policy acts without an arrival or a departure.
    #[inline]
    pub fn next_time(&self) -> Option<Time> {
        if self.has_clock { self.first_action() } else { None }
    }

    fn first_action(&self) -> Option<Time> {
        self.pools.iter().filter_map(|pool| pool.policy.next_time()).min()
    }

    /// Lets each policy act, if it is due to act. After service at an instant, the caller repeats this call until it
    /// returns `None`, and removes each returned cell as after [`Offer::PushOut`].
    pub fn on_time(&mut self, now: Time) -> Option<Removal> {
        for pool in &mut self.pools {
            while pool.policy.next_time().is_some_and(|time| time <= now) {
                let view = View { cells: pool.cells, used: pool.used, queues: &pool.shared, now };
                if let Some(PushOut { queue, end }) = pool.policy.on_time(&view) {
                    assert!(pool.side == Side::Egress, "cells are pushed out of queues, never out of priority groups");
                    return Some(Removal { queue: pool.queues[queue], end });
                }
            }
            if pool.hooks.clock {
                pool.policy.pass(now);
            }
        }
        None
    }
}
