//! Computes the exact competitive ratio of a memory policy with two ports.
//!
//! An adversary chooses the arriving cells, and which of these cells its own memory admits. A state consists of the
//! queues of the policy and the queues of the adversary. An arrival leads to another state, and so does the end of a
//! slot, in which the policy and the adversary send cells. The two memories can empty after any sequence of arrivals.
//! So the competitive ratio is the largest ratio, over all cycles of states, of cells sent by the adversary to cells
//! sent by the policy. The ratio is found by Dinkelbach's method in whole numbers: while a cycle has a ratio above p /
//! q, the ratio of this cycle becomes the next p / q.

use typed_index_collections::TiVec;

use super::{Ratio, SlottedMemory};
use celltrain_core::memory::{MemoryPolicyConfig, PoolQueue, QueueInfo};

/// Numbers of cells in the queues of two ports.
pub type Queues = [u32; 2];

/// Returns the competitive ratio of a policy with two ports and a memory of `cells` cells, or `None` if the ratio has
/// no bound. The policy's decisions may depend on the lengths of the queues, but not on the past or on time.
pub fn two_port_ratio(policy: &MemoryPolicyConfig, cells: u32) -> Option<Ratio> {
    ratio_of_rule(cells, |queues, port| after_arrival(policy, cells, queues, port))
}

fn after_arrival(policy: &MemoryPolicyConfig, cells: u32, queues: Queues, port: u32) -> Queues {
    let infos: TiVec<PoolQueue, QueueInfo> = (0..2).map(QueueInfo::at_port).collect();
    let mut memory = SlottedMemory::holding(policy, cells, &infos, queues.to_vec().into());
    memory.offer(port);
    [0, 1].map(|port| memory.queues()[PoolQueue::new(port)])
}

/// Returns the competitive ratio of a rule; `None` if the ratio has no bound. The rule maps the lengths of the queues
/// and the port of an arriving cell to the lengths of the queues after the arrival.
pub fn ratio_of_rule(cells: u32, rule: impl FnMut(Queues, u32) -> Queues) -> Option<Ratio> {
    let game = Game::new(cells, rule);
    let mut best = Ratio::new(1, 1);
    while let Some((adversary, policy)) = game.better_cycle(best) {
        if policy == 0 {
            return None;
        }
        best = Ratio::new(adversary, policy);
    }
    Some(best)
}

/// A transition from one state of the two memories to another.
struct Step {
    from: u32,
    to: u32,
    /// Number of cells that the adversary sends in this step.
    adversary: u64,
    /// Number of cells that the policy sends in this step.
    policy: u64,
}

struct Game {
    states: usize,
    steps: Vec<Step>,
}

impl Game {
    fn new(cells: u32, mut rule: impl FnMut(Queues, u32) -> Queues) -> Self {
        let queues: Vec<Queues> = (0..=cells).flat_map(|a| (0..=cells - a).map(move |b| [a, b])).collect();
        let side = cells as usize + 1;
        let mut numbers = vec![0; side * side];
        for (number, [a, b]) in queues.iter().enumerate() {
            numbers[*a as usize * side + *b as usize] = number;
        }
        let number = |[a, b]: Queues| numbers[a as usize * side + b as usize];
        let state = |policy: usize, adversary: usize| {
            u32::try_from(policy * queues.len() + adversary).expect("the number of states fits in 32 bits")
        };
        let after_arrival: Vec<[usize; 2]> =
            queues.iter().map(|&queues| [0, 1].map(|port| number(rule(queues, port)))).collect();
        let after_slot: Vec<(usize, u64)> = queues
            .iter()
            .map(|queues| {
                let sent = queues.iter().map(|&held| u64::from(held > 0)).sum();
                (number(queues.map(|held| held.saturating_sub(1))), sent)
            })
            .collect();
        let mut steps = Vec::new();
        for policy in 0..queues.len() {
            for (adversary, held) in queues.iter().enumerate() {
                let from = state(policy, adversary);
                for (port, &next) in after_arrival[policy].iter().enumerate() {
                    steps.push(Step { from, to: state(next, adversary), adversary: 0, policy: 0 });
                    if held.iter().sum::<u32>() < cells {
                        let mut taken = *held;
                        taken[port] += 1;
                        steps.push(Step { from, to: state(next, number(taken)), adversary: 0, policy: 0 });
                    }
                }
                let ((policy_next, policy), (next, adversary)) = (after_slot[policy], after_slot[adversary]);
                steps.push(Step { from, to: state(policy_next, next), adversary, policy });
            }
        }
        steps.retain(|step| step.from != step.to);
        Self { states: queues.len() * queues.len(), steps }
    }

    /// Finds a cycle of states on which the cells sent by the adversary exceed `ratio` times the cells sent by the
    /// policy. Returns the number of cells sent on the cycle by the adversary and by the policy.
    fn better_cycle(&self, ratio: Ratio) -> Option<(u64, u64)> {
        let gain = |step: &Step| {
            (ratio.denominator * step.adversary).cast_signed() - (ratio.numerator * step.policy).cast_signed()
        };
        // For each state, the largest gain of a path to the state, and the last step of this path (Bellman-Ford
        // algorithm).
        let mut gains = vec![0_i64; self.states];
        let mut last: Vec<Option<usize>> = vec![None; self.states];
        loop {
            let mut is_changed = false;
            for (number, step) in self.steps.iter().enumerate() {
                let reached = gains[step.from as usize] + gain(step);
                if reached > gains[step.to as usize] {
                    gains[step.to as usize] = reached;
                    last[step.to as usize] = Some(number);
                    is_changed = true;
                }
            }
            if !is_changed {
                return None;
            }
            if let Some(sums) = self.cycle(&last) {
                return Some(sums);
            }
        }
    }

    /// Follows the last steps of paths backward. If they form a cycle, returns the number of cells sent on the cycle by
    /// the adversary and by the policy.
    fn cycle(&self, last: &[Option<usize>]) -> Option<(u64, u64)> {
        // For each state, the start of the backward walk that first visited the state.
        let mut visited_from = vec![usize::MAX; self.states];
        for start in 0..self.states {
            let mut state = start;
            while visited_from[state] == usize::MAX {
                visited_from[state] = start;
                let Some(step) = last[state] else { break };
                state = self.steps[step].from as usize;
            }
            if visited_from[state] == start && last[state].is_some() {
                let (mut adversary, mut policy, first) = (0, 0, state);
                loop {
                    let step = &self.steps[last[state].expect("every state of a cycle has a last step")];
                    adversary += step.adversary;
                    policy += step.policy;
                    state = step.from as usize;
                    if state == first {
                        return Some((adversary, policy));
                    }
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use celltrain_core::memory::longest_queue_drop::{self, Variant};
    use celltrain_core::memory::{complete_sharing, static_thresholds};

    /// Selects the queue that loses a cell if the two queues have the same length.
    #[derive(Clone, Copy)]
    enum Tie {
        First,
        Second,
        Arriving,
        Other,
    }

    /// Returns the queues of longest queue drop after an arrival. The arriving cell counts in the length of its queue.
    fn longest_queue_drop(cells: u32, tie: Tie, mut queues: Queues, port: u32) -> Queues {
        queues[port as usize] += 1;
        if queues[0] + queues[1] > cells {
            let tied = match tie {
                Tie::First => 0,
                Tie::Second => 1,
                Tie::Arriving => port,
                Tie::Other => 1 - port,
            };
            let longest = if queues[0] == queues[1] { tied as usize } else { usize::from(queues[1] > queues[0]) };
            queues[longest] -= 1;
        }
        queues
    }

    /// Returns the ratio (4 M - 4) / (3 M - 2) of Kobayashi, Miyazaki and Okabe for an even M. For an odd M, the
    /// adversary can always admit the cells of the port whose queue gets the smaller half of the policy's memory.
    fn expected(cells: u32) -> Ratio {
        let [all, half] = [cells - 1, cells / 2].map(u64::from);
        Ratio::new(2 * all, all + half)
    }

    #[test]
    fn longest_queue_drop_with_two_ports_has_the_published_competitive_ratio() {
        let published = [(2, Ratio::new(1, 1)), (4, Ratio::new(6, 5)), (6, Ratio::new(5, 4)), (8, Ratio::new(14, 11))];
        for (cells, ratio) in published {
            let m = u64::from(cells);
            assert_eq!(ratio, Ratio::new(4 * m - 4, 3 * m - 2));
            for variant in [Variant::TailLowest, Variant::HeadHighest] {
                let policy = longest_queue_drop::Config { variant }.into();
                assert_eq!(two_port_ratio(&policy, cells), Some(ratio), "{cells} {variant:?}");
            }
        }
    }

    #[test]
    fn with_two_ports_ties_do_not_change_the_competitive_ratio_of_longest_queue_drop() {
        for cells in 2..=11 {
            for tie in [Tie::First, Tie::Second, Tie::Arriving, Tie::Other] {
                let found = ratio_of_rule(cells, |queues, port| longest_queue_drop(cells, tie, queues, port));
                assert_eq!(found, Some(expected(cells)), "{cells}");
            }
        }
        assert_eq!(expected(11), Ratio::new(4, 3));
    }

    #[test]
    fn longest_queue_drop_removes_cells_of_the_longest_queue_in_the_slotted_model() {
        for (variant, tie) in [(Variant::TailLowest, Tie::First), (Variant::HeadHighest, Tie::Second)] {
            let policy = longest_queue_drop::Config { variant }.into();
            for cells in 1..=7 {
                for (a, b) in (0..=cells).flat_map(|a| (0..=cells - a).map(move |b| (a, b))) {
                    for port in [0, 1] {
                        let expected = longest_queue_drop(cells, tie, [a, b], port);
                        assert_eq!(after_arrival(&policy, cells, [a, b], port), expected, "{cells}: {a} {b} {port}");
                    }
                }
            }
        }
    }

    #[test]
    fn complete_sharing_and_equal_static_thresholds_both_have_a_competitive_ratio_of_2_for_two_ports() {
        for cells in [2, 4, 6, 8] {
            assert_eq!(two_port_ratio(&complete_sharing::Config {}.into(), cells), Some(Ratio::new(2, 1)));
            assert_eq!(two_port_ratio(&static_thresholds::Config::default().into(), cells), Some(Ratio::new(2, 1)));
        }
    }

    #[test]
    fn a_memory_policy_that_refuses_every_cell_has_no_competitive_ratio() {
        assert_eq!(ratio_of_rule(3, |queues, _| queues), None);
    }
}
