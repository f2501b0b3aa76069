//! Longest Queue Drop: every cell enters, and a full pool removes a cell of the longest queue.
//!
//! Source: Wei, Coyle and Hsiao, "An Optimal Buffer Management Policy for High-Performance Packet Switching", GLOBECOM
//! 1991; Aiello, Kesselman and Mansour, "Competitive Buffer Management for Shared-Memory Switches", ACM Transactions on
//! Algorithms 5(1), 2008. The arriving cell counts in the length of its queue. Differences from the source: published
//! versions differ in which cell is lost and how ties are decided, see [`Variant`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Configure, Hooks, MemoryPolicy, PoolInfo, PoolQueue, PushOut, QueueEnd, Verdict, View};
use crate::coverage::reached;

/// Longest Queue Drop: every cell enters, and a full pool removes a cell of the longest queue.
///
/// Source: Wei, Coyle and Hsiao 1991; Aiello, Kesselman and Mansour 2008.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "LongestQueueDrop")]
pub struct Config {
    /// Selects which cell of the longest queue is lost, and which queue if several are equally long.
    pub variant: Variant,
}

/// Selects which cell of the longest queue is lost, and which queue if several are equally long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "LongestQueueDropVariant")]
pub enum Variant {
    /// The last cell of the longest queue with the lowest index, as in Credence (2024). It can be the arriving cell.
    #[default]
    TailLowest,
    /// The first cell of the longest queue with the highest index, as in the simulation of Occamy (2025).
    HeadHighest,
}

/// The policy Longest Queue Drop.
#[derive(Debug)]
pub struct LongestQueueDrop {
    variant: Variant,
}

impl Configure for Config {
    type Policy = LongestQueueDrop;

    fn pushes_out(&self) -> bool {
        true
    }

    fn build(&self, _pool: &PoolInfo<'_>) -> LongestQueueDrop {
        LongestQueueDrop { variant: self.variant }
    }
}

impl MemoryPolicy for LongestQueueDrop {
    fn admit(&mut self, view: &View<'_>, queue: PoolQueue, cells: u32) -> Verdict {
        if view.fits(cells) {
            return Verdict::Admit;
        }
        let length = |other: PoolQueue| view.queues[other] + if other == queue { cells } else { 0 };
        let longest = match self.variant {
            // If several queues are longest, `max_by_key` returns the last longest queue.
            Variant::TailLowest => view.queues.keys().rev().max_by_key(|&other| length(other)),
            Variant::HeadHighest => view.queues.keys().max_by_key(|&other| length(other)),
        }
        .expect("every pool has at least one queue");
        reached!(LongestQueueTie if view.queues.keys().filter(|&other| length(other) == length(longest)).count() > 1);
        match self.variant {
            Variant::TailLowest if longest == queue => {
                reached!(ArrivalAtLongestQueue);
                Verdict::Refuse
            }
            _ if view.queues[longest] == 0 => Verdict::Refuse,
            Variant::TailLowest => Verdict::PushOut(PushOut { queue: longest, end: QueueEnd::Tail }),
            Variant::HeadHighest => Verdict::PushOut(PushOut { queue: longest, end: QueueEnd::Head }),
        }
    }

    fn admits_up_to(&self, _cells: u32, _used: u32, _queue: PoolQueue) -> u32 {
        u32::MAX
    }

    fn hooks(&self) -> Hooks {
        Hooks::NONE
    }

    fn admits_all_that_fits(&self) -> bool {
        true
    }

    fn rule(&self) -> &'static str {
        "the pool is full, and the queue is the longest"
    }
}

#[cfg(test)]
mod tests {
    use typed_index_collections::TiVec;

    use super::*;
    use crate::memory::tests::Pool;
    use crate::units::Time;

    /// Returns the decision about a cell that arrives for the first queue of a full pool with these queue lengths.
    fn verdict(variant: Variant, queues: &[u32]) -> Verdict {
        let queues: TiVec<PoolQueue, u32> = queues.to_vec().into();
        let used = queues.iter().sum();
        let view = View { cells: used, used, queues: &queues, now: Time::default() };
        LongestQueueDrop { variant }.admit(&view, PoolQueue::new(0), 1)
    }

    fn push_out(queue: u32, end: QueueEnd) -> Verdict {
        Verdict::PushOut(PushOut { queue: PoolQueue::new(queue), end })
    }

    #[test]
    fn longest_queue_drop_counts_the_arriving_cell_and_breaks_ties_by_the_configured_variant() {
        use QueueEnd::{Head, Tail};
        use Variant::{HeadHighest, TailLowest};
        assert_eq!(verdict(TailLowest, &[2, 4, 4]), push_out(1, Tail));
        assert_eq!(verdict(HeadHighest, &[2, 4, 4]), push_out(2, Head));
        // Counting the arriving cell, each queue has four cells.
        assert_eq!(verdict(TailLowest, &[3, 4, 4]), Verdict::Refuse);
        assert_eq!(verdict(HeadHighest, &[3, 4, 4]), push_out(2, Head));
        assert_eq!(verdict(TailLowest, &[4, 4, 4]), Verdict::Refuse);
        assert_eq!(verdict(HeadHighest, &[4, 4, 4]), push_out(0, Head));
        assert_eq!(verdict(HeadHighest, &[0, 0, 0]), Verdict::Refuse);
    }

    #[test]
    fn longest_queue_drop_keeps_queues_that_always_have_arrivals_equally_long() {
        for variant in [Variant::TailLowest, Variant::HeadHighest] {
            let mut pool = Pool::new(&Config { variant }.into(), 12, 3);
            (0..30).for_each(|_| assert!(pool.offer(2) || variant == Variant::TailLowest));
            assert_eq!(pool.held(), [0, 0, 12]);
            for _ in 0..30 {
                pool.offer(0);
                pool.offer(1);
            }
            assert_eq!(pool.held(), [4, 4, 4]);
        }
    }
}
