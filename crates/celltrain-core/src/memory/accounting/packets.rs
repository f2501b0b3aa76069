//! Admission of whole packets to a memory.

use super::{Attempt, CellClass, Limit, Memory, Obstacle, Offer, Part, Refusal, Removal};
use crate::coverage::reached;
use crate::memory::{PushOut, QueueIndex, Verdict, View};
use crate::units::Time;

impl Memory {
    /// Counts all cells of an arriving packet if there is room for all of them, and policies admit a packet of this
    /// length.
    pub fn offer_packet(&mut self, class: CellClass, cells: u32, now: Time) -> Offer {
        let attempt = self.try_enter_packet(class, cells, now);
        self.with_numbers(attempt, now)
    }

    /// Like [`Memory::offer_packet`], but without the details of a refusal.
    pub(crate) fn try_enter_packet(&mut self, class: CellClass, cells: u32, now: Time) -> Attempt {
        let mut places = [None; 2];
        for (place, queue) in places.iter_mut().zip([class.ingress, class.egress]) {
            let Some(queue) = queue else { continue };
            match self.find_parts(queue, cells, now) {
                Ok(parts) => *place = Some((queue, parts)),
                Err(obstacle) => return self.count_out_of_place(queue, obstacle),
            }
        }
        (0..cells).for_each(|_| self.count_in(now));
        for (queue, (in_reserve, part)) in places.into_iter().flatten() {
            (0..in_reserve).for_each(|_| self.enter(queue, Part::Reserve, now));
            (in_reserve..cells).for_each(|_| self.enter(queue, part, now));
        }
        Attempt::Entered
    }

    /// Finds room for the cells of a whole packet: the number of cells that go into the queue's reserve, and the part of the
    /// memory that has room for the others.
    fn find_parts(&mut self, number: QueueIndex, cells: u32, now: Time) -> Result<(u32, Part), Obstacle> {
        let queue = &self.queues[number];
        let pool = &mut self.pools[queue.pool];
        let in_reserve = cells.min(queue.reserve - queue.in_reserve);
        let rest = cells - in_reserve;
        let fits_memory = cells <= self.cells - self.used;
        if rest == 0 {
            return if fits_memory { Ok((in_reserve, Part::Shared)) } else { Err(Obstacle::Limit(Limit::Memory)) };
        }
        let fits_pool = rest <= pool.cells - pool.used;
        let limit = if queue.in_headroom > 0 {
            Limit::Headroom
        } else {
            let view = View { cells: pool.cells, used: pool.used, queues: &pool.shared, now };
            match pool.policy.admit(&view, queue.place, rest) {
                Verdict::Admit if fits_pool && fits_memory => return Ok((in_reserve, Part::Shared)),
                Verdict::Admit if fits_pool => Limit::Memory,
                Verdict::Admit => Limit::Pool,
                Verdict::Refuse if !fits_pool => Limit::Pool,
                Verdict::Refuse => Limit::Policy,
                Verdict::PushOut(PushOut { queue, end }) => {
                    return Err(Obstacle::Waiting(Removal { queue: pool.queues[queue], end }));
                }
            }
        };
        let Some(lossless) = queue.lossless else { return Err(Obstacle::Limit(limit)) };
        let is_beyond = |most: u32, used: u32| u64::from(used) + u64::from(rest) > u64::from(most);
        if is_beyond(lossless.headroom, queue.in_headroom)
            || pool.headroom.is_some_and(|most| is_beyond(most, pool.in_headroom))
        {
            return Err(Obstacle::Limit(Limit::Headroom));
        }
        if fits_memory { Ok((in_reserve, Part::Headroom)) } else { Err(Obstacle::Limit(Limit::Memory)) }
    }

    /// Refuses a cell for which a waiting packet should have made room, because every packet of the queue has begun to
    /// leave.
    pub(crate) fn refuse(&mut self, removal: Removal, now: Time) -> Refusal {
        reached!(NoPacketToRemove);
        self.queues[removal.queue].counters.refused += 1;
        let queue = removal.queue;
        let (threshold, held, used) = (self.threshold(queue, now), self.shared(queue), self.used_of(queue));
        Refusal { queue, limit: Limit::Pool, threshold, held, used }
    }

    /// Tells the policy of a queue how many cells its latest push-out removed.
    pub(crate) fn removed(&mut self, queue: QueueIndex, cells: u32) {
        self.pools[self.queues[queue].pool].policy.removed(cells);
    }
}
