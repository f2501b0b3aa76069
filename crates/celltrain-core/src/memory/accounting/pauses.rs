//! Start and end of the pauses of lossless groups.

use super::{Memory, PauseChange};
use crate::coverage::reached;
use crate::memory::{PauseAt, QueueIndex};
use crate::units::Time;

impl Memory {
    /// Starts the pause of a lossless group if its condition is met.
    #[inline(never)]
    pub(super) fn pause(&mut self, number: QueueIndex, now: Time) {
        let queue = &mut self.queues[number];
        let pool = &self.pools[queue.pool];
        let Some(lossless) = queue.lossless.filter(|_| !queue.paused) else { return };
        let is_reached = match lossless.pause_at {
            PauseAt::Headroom => queue.in_headroom > 0,
            PauseAt::Threshold => {
                queue.in_headroom > 0
                    || (queue.in_reserve == queue.reserve && !pool.policy.has_room(&pool.view(now), queue.place, 1))
            }
        };
        if is_reached {
            reached!(PausedAtThreshold if queue.in_headroom == 0);
            queue.paused = true;
            queue.counters.pauses += 1;
            self.pause_changes.push_back(PauseChange { queue: number, paused: true, at: now });
        }
    }

    /// Ends the pause of a lossless group if its condition is met.
    #[inline(never)]
    pub(super) fn resume(&mut self, number: QueueIndex, now: Time) {
        let queue = &mut self.queues[number];
        let pool = &self.pools[queue.pool];
        let Some(lossless) = queue.lossless.filter(|_| queue.in_headroom == 0) else { return };
        let held = pool.shared[queue.place];
        let is_below = |offset: u32| {
            let threshold = pool.policy.threshold(&pool.view(now), queue.place);
            threshold.is_some_and(|threshold| f64::from(held) + f64::from(offset) <= threshold)
        };
        if held == 0 || held < lossless.xon || lossless.xon_offset.is_some_and(is_below) {
            reached!(ResumedByOffset if held > 0 && held >= lossless.xon);
            queue.paused = false;
            self.pause_changes.push_back(PauseChange { queue: number, paused: false, at: now });
        }
    }

    /// Returns the next change of a pause that the caller has not retrieved. Changes are in time order.
    pub fn next_pause_change(&mut self) -> Option<PauseChange> {
        self.pause_changes.pop_front()
    }
}
