//! Order of cells that reach an output port at the same instant.
//!
//! Source: `docs/mechanisms.md`, A-03 and section 11. N synchronous sources send N cells to a port at the same instant.
//! If the buffer is full, the order of these cells decides which of them gets the one free place. With plain UBR, this
//! decides whether sources share the link or one source captures it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rng::Stream;
use crate::units::{Span, Time};

/// The order of cells that arrive at a port in the same instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TieOrder {
    /// Uniformly random, drawn for every instant from the port's own stream.
    #[default]
    Random,
    /// By input link. After every tie, the order starts at the next link.
    Rotating,
    /// Always by input link, so that one source captures a full buffer completely.
    Fixed,
    /// As in a first-in first-out event list: cells of links that were idle come first, and cells of busy links keep
    /// their order.
    EventList,
    /// As in a last-in first-out event list: cells of links that were idle come first, and cells of busy links reverse
    /// their order at every cell.
    EventListLastIn,
}

impl TieOrder {
    /// Returns whether the order depends on which links had a cell before, so that the tie breaker must see every
    /// arrival.
    pub fn follows_bursts(self) -> bool {
        matches!(self, Self::EventList | Self::EventListLastIn)
    }
}

/// Order in which a port sends a cell and admits the arrivals of the same instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServiceOrder {
    /// Arrivals find the buffer as it was before the departure.
    #[default]
    AfterArrivals,
    /// The departure frees its place before the arrivals.
    BeforeArrivals,
}

/// Orders ties at one port.
#[derive(Clone, Debug)]
pub enum TieBreaker {
    /// [`TieOrder::Random`].
    Random(Stream),
    /// [`TieOrder::Rotating`].
    Rotating {
        /// Number of input links of the node.
        inputs: u32,
        /// The input that comes first when cells next arrive at the same instant.
        first: u32,
    },
    /// [`TieOrder::Fixed`].
    Fixed,
    /// State for [`TieOrder::EventList`] and [`TieOrder::EventListLastIn`].
    EventList(EventList),
}

impl TieBreaker {
    /// Creates a tie breaker for a port of a node. `cell_times` contains the cell time of each input link of the node.
    pub fn new(order: TieOrder, cell_times: impl ExactSizeIterator<Item = Span>, rng: Stream) -> Self {
        let inputs = u32::try_from(cell_times.len()).expect("links have 32-bit numbers").max(1);
        match order {
            TieOrder::Random => Self::Random(rng),
            TieOrder::Rotating => Self::Rotating { inputs, first: 0 },
            TieOrder::Fixed => Self::Fixed,
            TieOrder::EventList => Self::EventList(EventList::new(cell_times, false)),
            TieOrder::EventListLastIn => Self::EventList(EventList::new(cell_times, true)),
        }
    }

    /// Returns whether the tie breaker must see all arrivals, including arrivals without a tie.
    #[inline]
    pub fn follows_bursts(&self) -> bool {
        matches!(self, Self::EventList(_))
    }

    /// Orders cells that arrived at `now`. `cells` must be sorted by input link, and each input has at most one cell.
    #[inline]
    pub fn order<T>(&mut self, now: Time, cells: &mut [T], input: impl Fn(&T) -> u32) {
        debug_assert!(cells.is_sorted_by_key(&input), "cells are in the order of their input links");
        match self {
            Self::Random(rng) => rng.shuffle(cells),
            others => others.order_by_input(now, cells, &input),
        }
    }

    /// The part of [`TieBreaker::order`] that is compiled once for each `T`, not for each caller.
    fn order_by_input<T>(&mut self, now: Time, cells: &mut [T], input: &dyn Fn(&T) -> u32) {
        match self {
            Self::EventList(list) => list.order(now, cells, input),
            Self::Rotating { inputs, first } if cells.len() > 1 => {
                cells.rotate_left(cells.partition_point(|cell| input(cell) < *first));
                *first = (*first + 1) % *inputs;
            }
            Self::Rotating { .. } | Self::Fixed | Self::Random(_) => {}
        }
    }

    /// Draws or rotates as [`TieBreaker::order`] does for `cells` cells, but does not order them.
    ///
    /// # Panics
    /// Panics if the order depends on which links had a cell before.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "inlining saves 1 % of the time of a run with WFQ: each tie calls this function"
    )]
    pub fn pass_over(&mut self, cells: u32) {
        match self {
            Self::Random(rng) => {
                for bound in (2..=cells).rev() {
                    rng.below(bound);
                }
            }
            others => others.pass_over_without_draws(cells),
        }
    }

    fn pass_over_without_draws(&mut self, cells: u32) {
        match self {
            Self::Rotating { inputs, first } if cells > 1 => *first = (*first + 1) % *inputs,
            Self::Rotating { .. } | Self::Fixed | Self::Random(_) => {}
            Self::EventList(_) => {
                assert!(cells < 2, "ports with the tie order of an event list handle single cells");
            }
        }
    }
}

/// The order of cells in the event list of a simulator in which each arrival of a cell on a link schedules the link's
/// next arrival.
///
/// Links that were idle come before links whose cells follow one another without a gap. Within each of these groups,
/// the order is that of the links' previous cells, or its reverse.
#[derive(Clone, Debug)]
pub struct EventList {
    links: Vec<LinkOfList>,
    is_reversed: bool,
    /// The smallest rank in the list.
    first: i64,
}

#[derive(Clone, Copy, Debug)]
struct LinkOfList {
    cell_time: Span,
    /// Arrival of the next cell, if it follows the previous cell without a gap.
    next: Time,
    continues: bool,
    /// The link's place in the list: links with smaller ranks come first.
    rank: i64,
}

impl EventList {
    fn new(cell_times: impl Iterator<Item = Span>, is_reversed: bool) -> Self {
        let link = |(rank, cell_time)| LinkOfList { cell_time, next: Time::NEVER, continues: false, rank };
        Self { links: (0..).zip(cell_times).map(link).collect(), is_reversed, first: 0 }
    }

    fn order<T>(&mut self, now: Time, cells: &mut [T], input: impl Fn(&T) -> u32) {
        for cell in &*cells {
            let link = &mut self.links[input(cell) as usize];
            link.continues = link.next == now;
            link.next = now + link.cell_time;
        }
        cells.sort_unstable_by_key(|cell| {
            let LinkOfList { continues, rank, .. } = self.links[input(cell) as usize];
            (continues, if self.is_reversed { -rank } else { rank })
        });
        for cell in cells.iter().rev() {
            self.first -= 1;
            self.links[input(cell) as usize].rank = self.first;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL_TIME: Span = Span(10);

    fn of_inputs(order: TieOrder, inputs: usize) -> TieBreaker {
        TieBreaker::new(order, vec![CELL_TIME; inputs].into_iter(), Stream::new(1, "ties"))
    }

    #[test]
    fn ties_start_with_each_input_in_turn_if_rotating_and_with_one_input_if_fixed() {
        for (order, winners) in [(TieOrder::Fixed, [0, 0, 0, 0]), (TieOrder::Rotating, [0, 1, 2, 0])] {
            let mut ties = of_inputs(order, 3);
            for first in winners {
                let mut cells = [0, 1, 2];
                ties.order(Time(0), &mut cells, |&c| c);
                assert_eq!(cells, [first, (first + 1) % 3, (first + 2) % 3]);
            }
        }
    }

    #[test]
    fn skipping_a_tie_advances_the_random_generator_as_far_as_ordering_the_tie() {
        for order in [TieOrder::Random, TieOrder::Rotating, TieOrder::Fixed] {
            let inputs = [0, 1, 2, 3, 4];
            let next = |mut ties: TieBreaker| {
                let mut cells = inputs;
                ties.order(Time(0), &mut cells, |&c| c);
                cells
            };
            for tied in 0..=inputs.len() {
                let mut ordered = of_inputs(order, 5);
                let mut passed = ordered.clone();
                ordered.order(Time(0), &mut inputs.to_vec()[..tied], |&c| c);
                passed.pass_over(u32::try_from(tied).unwrap());
                assert_eq!(next(ordered), next(passed), "{order:?}, {tied} cells");
            }
        }
    }

    #[test]
    fn no_random_number_is_drawn_for_a_cell_that_arrives_alone() {
        let mut ties = of_inputs(TieOrder::Random, 3);
        ties.order(Time(0), &mut [7], |&c| c);
        let TieBreaker::Random(mut rng) = ties else { unreachable!("the order is random") };
        assert_eq!(rng.next_u64(), Stream::new(1, "ties").next_u64());
    }

    #[test]
    fn the_event_list_tie_order_puts_idle_links_first_and_keeps_the_order_of_busy_links() {
        let mut ties = of_inputs(TieOrder::EventList, 4);
        let mut order = |time, mut cells: Vec<u32>| {
            ties.order(Time(time), &mut cells, |&c| c);
            cells
        };
        assert_eq!(order(0, vec![1, 3]), [1, 3], "links that start together keep the order of their numbers");
        assert_eq!(order(10, vec![1, 2, 3]), [2, 1, 3]);
        assert_eq!(order(20, vec![0, 1, 2, 3]), [0, 2, 1, 3]);
        assert_eq!(order(30, vec![0, 1, 3]), [0, 1, 3]);
        assert_eq!(order(40, vec![0, 1, 2, 3]), [2, 0, 1, 3], "a link without cells in the last round begins again");
        assert_eq!(order(45, vec![0, 1]), [0, 1], "cells that arrive early begin a new round");
    }

    #[test]
    fn the_last_in_first_out_tie_order_reverses_the_order_of_busy_links_at_every_tie() {
        let mut ties = of_inputs(TieOrder::EventListLastIn, 4);
        let mut order = |time, mut cells: Vec<u32>| {
            ties.order(Time(time), &mut cells, |&c| c);
            cells
        };
        assert_eq!(order(0, vec![1, 3]), [3, 1]);
        assert_eq!(order(10, vec![1, 2, 3]), [2, 1, 3]);
        assert_eq!(order(20, vec![0, 1, 2, 3]), [0, 3, 1, 2]);
        assert_eq!(order(30, vec![0, 1, 2, 3]), [2, 1, 3, 0]);
        assert_eq!(order(50, vec![2, 3]), [3, 2], "links that start together reverse their previous order");
    }

    /// Implements the rule literally, as a list of links from which the links with a cell move to the front.
    fn by_moving(list: &mut Vec<u32>, starting: &[u32], continuing: &[u32], is_reversed: bool) -> Vec<u32> {
        let of_list = |group: &[u32]| {
            let mut found: Vec<u32> = list.iter().copied().filter(|link| group.contains(link)).collect();
            if is_reversed {
                found.reverse();
            }
            found
        };
        let ordered = [of_list(starting), of_list(continuing)].concat();
        list.retain(|link| !ordered.contains(link));
        list.splice(0..0, ordered.iter().copied());
        ordered
    }

    #[test]
    fn the_event_list_tie_order_matches_the_order_of_a_simulator_with_an_event_list() {
        let mut rng = Stream::new(3, "cells");
        for (order, is_reversed) in [(TieOrder::EventList, false), (TieOrder::EventListLastIn, true)] {
            for cell_times in [[2, 2, 2, 2, 2], [2, 4, 2, 6, 4], [3, 5, 2, 2, 3]] {
                let mut ties = TieBreaker::new(order, cell_times.map(Span).into_iter(), Stream::new(1, "ties"));
                let mut list = (0..5).collect();
                let mut free_at = [0; 5];
                for now in 1..2000 {
                    let (mut starting, mut continuing) = (Vec::new(), Vec::new());
                    for link in 0..5_u32 {
                        let (free, cell_time) = (&mut free_at[link as usize], cell_times[link as usize]);
                        if *free <= now && rng.below(4) > 0 {
                            if *free == now { &mut continuing } else { &mut starting }.push(link);
                            *free = now + cell_time;
                        }
                    }
                    let mut cells = [&starting[..], &continuing].concat();
                    cells.sort_unstable();
                    ties.order(Time(now), &mut cells, |&c| c);
                    let expected = by_moving(&mut list, &starting, &continuing, is_reversed);
                    assert_eq!(cells, expected, "{order:?}, {cell_times:?}, at {now}");
                }
            }
        }
    }
}
