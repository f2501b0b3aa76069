//! Order of cells that reach an output port at the same instant.
//!
//! Source: `docs/mechanisms.md`, A-03 and section 11. N synchronous sources put N cells on a port at once. If the
//! buffer is full, the order decides which cell gets the one freed place. So it decides whether plain UBR shares the
//! link or one source captures it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rng::Stream;

/// The order of cells that arrive at a port in the same instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TieOrder {
    /// Uniformly random, drawn for every instant from the port's own stream.
    #[default]
    Random,
    /// By input link, starting one input further after every tie.
    Rotating,
    /// By input link, always the same: one source captures a full buffer completely.
    Fixed,
}

/// Order in which a port sends a cell and admits the arrivals of the same instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServiceOrder {
    /// Arrivals find the buffer as it was before the departure at that instant.
    #[default]
    AfterArrivals,
    /// The departure at that instant frees its place first.
    BeforeArrivals,
}

/// Orders ties at one port.
#[derive(Clone, Debug)]
pub struct TieBreaker {
    order: TieOrder,
    rng: Stream,
    inputs: u32,
    first: u32,
}

impl TieBreaker {
    /// Creates a tie breaker for a port of a node with `inputs` input links, numbered from 0.
    pub fn new(order: TieOrder, inputs: u32, rng: Stream) -> Self {
        Self { order, rng, inputs: inputs.max(1), first: 0 }
    }

    /// Orders cells that arrived at one instant. `cells` must be sorted by input link; each input has at most one.
    pub fn order<T>(&mut self, cells: &mut [T], input: impl Fn(&T) -> u32) {
        if cells.len() < 2 {
            return;
        }
        match self.order {
            TieOrder::Random => self.rng.shuffle(cells),
            TieOrder::Rotating => {
                let (first, inputs) = (self.first, self.inputs);
                cells.sort_by_key(|cell| (input(cell) + inputs - first) % inputs);
                self.first = (first + 1) % inputs;
            }
            TieOrder::Fixed => {}
        }
    }

    /// Draws or rotates as [`TieBreaker::order`] does for `cells` cells, but does not order them.
    #[inline]
    pub fn pass_over(&mut self, cells: u32) {
        if cells < 2 {
            return;
        }
        match self.order {
            TieOrder::Random => {
                for bound in (2..=cells).rev() {
                    self.rng.below(bound);
                }
            }
            TieOrder::Rotating => self.first = (self.first + 1) % self.inputs,
            TieOrder::Fixed => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_tie_order_never_changes_and_a_rotating_order_puts_each_input_first_in_turn() {
        for (order, winners) in [(TieOrder::Fixed, [0, 0, 0, 0]), (TieOrder::Rotating, [0, 1, 2, 0])] {
            let mut ties = TieBreaker::new(order, 3, Stream::new(1, "ties"));
            for first in winners {
                let mut cells = [0, 1, 2];
                ties.order(&mut cells, |&c| c);
                assert_eq!(cells, [first, (first + 1) % 3, (first + 2) % 3]);
            }
        }
    }

    #[test]
    fn skipping_a_tie_leaves_the_random_generator_as_if_the_tie_had_been_ordered() {
        for order in [TieOrder::Random, TieOrder::Rotating, TieOrder::Fixed] {
            let inputs = [0, 1, 2, 3, 4];
            let next = |mut ties: TieBreaker| {
                let mut cells = inputs;
                ties.order(&mut cells, |&c| c);
                cells
            };
            for tied in 0..=inputs.len() {
                let mut ordered = TieBreaker::new(order, 5, Stream::new(1, "ties"));
                let mut passed = ordered.clone();
                ordered.order(&mut inputs.to_vec()[..tied], |&c| c);
                passed.pass_over(u32::try_from(tied).unwrap());
                assert_eq!(next(ordered), next(passed), "{order:?}, {tied} cells");
            }
        }
    }

    #[test]
    fn no_random_number_is_drawn_for_a_cell_that_arrives_alone() {
        let mut ties = TieBreaker::new(TieOrder::Random, 3, Stream::new(1, "ties"));
        ties.order(&mut [7], |&c| c);
        assert_eq!(ties.rng.next_u64(), Stream::new(1, "ties").next_u64());
    }
}
