//! Order of cells that reach an output port at the same instant.
//!
//! Source: `docs/mechanisms.md`, A-03 and section 11. N synchronous sources put N cells on a port at once. If the
//! buffer is full, the order decides which cell gets the one freed place. So it decides whether plain UBR shares the
//! link or one source captures it.

use std::cmp::{Ordering, Reverse};

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
    /// By input link, starting one input further after every tie.
    Rotating,
    /// By input link, always the same: one source captures a full buffer completely.
    Fixed,
    /// As in a simulator that processes events of the same instant first in, first out: cells of links that were idle
    /// come first, and links that continue keep their order.
    EventList,
    /// As in a simulator that processes events of the same instant last in, first out: cells of links that were idle
    /// come last, and links that continue reverse their order at every cell.
    EventListLastIn,
}

impl TieOrder {
    /// Returns whether the order depends on which links had a cell before, so that no arrival may be skipped.
    pub fn follows_bursts(self) -> bool {
        matches!(self, Self::EventList | Self::EventListLastIn)
    }
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
pub enum TieBreaker {
    /// [`TieOrder::Random`].
    Random(Stream),
    /// [`TieOrder::Rotating`].
    Rotating {
        /// Number of input links.
        inputs: u32,
        /// The input that comes first in the next tie.
        first: u32,
    },
    /// [`TieOrder::Fixed`].
    Fixed,
    /// [`TieOrder::EventList`] and [`TieOrder::EventListLastIn`].
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

    /// Returns whether the tie breaker must see all arrivals, also those without a tie.
    #[inline]
    pub fn follows_bursts(&self) -> bool {
        matches!(self, Self::EventList(_))
    }

    /// Orders cells that arrived at `now`. `cells` must be sorted by input link; each input has at most one.
    pub fn order<T>(&mut self, now: Time, cells: &mut [T], input: impl Fn(&T) -> u32) {
        if let Self::EventList(list) = self {
            list.order(now, cells, input);
        } else if cells.len() > 1 {
            match self {
                Self::Random(rng) => rng.shuffle(cells),
                Self::Rotating { inputs, first } => {
                    cells.sort_by_key(|cell| (input(cell) + *inputs - *first) % *inputs);
                    *first = (*first + 1) % *inputs;
                }
                Self::Fixed | Self::EventList(_) => {}
            }
        }
    }

    /// Draws or rotates as [`TieBreaker::order`] does for `cells` cells, but does not order them.
    ///
    /// # Panics
    /// Panics if the order depends on which links had a cell before.
    #[inline]
    pub fn pass_over(&mut self, cells: u32) {
        if cells < 2 {
            return;
        }
        match self {
            Self::Random(rng) => {
                for bound in (2..=cells).rev() {
                    rng.below(bound);
                }
            }
            Self::Rotating { inputs, first } => *first = (*first + 1) % *inputs,
            Self::Fixed => {}
            Self::EventList(_) => unreachable!("ports with an event list's order take single cells"),
        }
    }
}

/// The order of a list of events, in which the arrival of a link's cell creates the arrival of the next one. A link
/// that was idle starts earlier than links that continue, because the event that makes it send is older: an ACK.
///
/// Links with longer cells continue before links with shorter ones, because their events were created earlier. Links
/// that start together keep the order of their numbers.
#[derive(Clone, Debug)]
pub struct EventList {
    links: Vec<LinkBurst>,
    is_last_in_first: bool,
}

/// Cells that follow each other on a link without a gap.
#[derive(Clone, Copy, Debug)]
struct LinkBurst {
    cell_time: Span,
    /// Arrival of the first cell.
    start: Time,
    /// Arrival of the next cell, if it continues the burst.
    next: Time,
}

impl EventList {
    fn new(cell_times: impl Iterator<Item = Span>, is_last_in_first: bool) -> Self {
        let burst = |cell_time| LinkBurst { cell_time, start: Time::NEVER, next: Time::NEVER };
        Self { links: cell_times.map(burst).collect(), is_last_in_first }
    }

    fn order<T>(&mut self, now: Time, cells: &mut [T], input: impl Fn(&T) -> u32) {
        for cell in &*cells {
            let burst = &mut self.links[input(cell) as usize];
            if burst.next != now {
                burst.start = now;
            }
            burst.next = now + burst.cell_time;
        }
        if cells.len() > 1 {
            cells.sort_by(|one, other| match self.is_last_in_first {
                false => self.first_in(now, input(one), input(other)),
                true => self.last_in(now, input(one), input(other)),
            });
        }
    }

    /// Compares the events of two links that have a cell at `now`, in a list that is first in, first out.
    fn first_in(&self, now: Time, one: u32, other: u32) -> Ordering {
        let key = |input: u32| {
            let LinkBurst { cell_time, start, .. } = self.links[input as usize];
            let continues = start != now;
            (continues, Reverse(if continues { cell_time } else { Span(0) }), Reverse(start), input)
        };
        key(one).cmp(&key(other))
    }

    /// Compares the events of two links that have a cell at `now`, in a list that is last in, first out.
    fn last_in(&self, now: Time, one: u32, other: u32) -> Ordering {
        let [a, b] = [one, other].map(|input| self.links[input as usize]);
        if a.start == now || b.start == now || a.cell_time != b.cell_time {
            return self.first_in(now, one, other).reverse();
        }
        // Each cell reverses the order in which the later of both bursts started.
        let both = a.start.max(b.start);
        let is_reversed = ((now - both).0 / a.cell_time.0) % 2 == 1;
        let began = a.start.cmp(&b.start).then(other.cmp(&one));
        if is_reversed { began.reverse() } else { began }
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
    fn a_fixed_order_is_always_the_same_and_a_rotating_one_gives_every_input_its_turn() {
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
    fn skipping_a_tie_gives_the_same_state_as_ordering_it() {
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
    fn a_lone_cell_draws_nothing() {
        let mut ties = of_inputs(TieOrder::Random, 3);
        ties.order(Time(0), &mut [7], |&c| c);
        let TieBreaker::Random(mut rng) = ties else { unreachable!("the order is random") };
        assert_eq!(rng.next_u64(), Stream::new(1, "ties").next_u64());
    }

    #[test]
    fn links_that_were_idle_come_first_in_an_event_list_and_the_others_keep_their_order() {
        let mut ties = of_inputs(TieOrder::EventList, 4);
        let mut order = |time, mut cells: Vec<u32>| {
            ties.order(Time(time), &mut cells, |&c| c);
            cells
        };
        assert_eq!(order(0, vec![1, 3]), [1, 3], "links that start together keep the order of their numbers");
        assert_eq!(order(10, vec![1, 2, 3]), [2, 1, 3]);
        assert_eq!(order(20, vec![0, 1, 2, 3]), [0, 2, 1, 3]);
        assert_eq!(order(30, vec![0, 1, 3]), [0, 1, 3]);
        assert_eq!(order(40, vec![0, 1, 2, 3]), [2, 0, 1, 3], "a link that paused starts again");
        assert_eq!(order(45, vec![0, 1]), [0, 1], "cells that come early start again");
    }

    #[test]
    fn links_that_continue_reverse_their_order_at_every_cell_if_the_last_event_comes_first() {
        let mut ties = of_inputs(TieOrder::EventListLastIn, 4);
        let mut order = |time, mut cells: Vec<u32>| {
            ties.order(Time(time), &mut cells, |&c| c);
            cells
        };
        assert_eq!(order(0, vec![1, 3]), [3, 1]);
        assert_eq!(order(10, vec![1, 2, 3]), [1, 3, 2]);
        assert_eq!(order(20, vec![0, 1, 2, 3]), [2, 3, 1, 0]);
        assert_eq!(order(30, vec![0, 1, 2, 3]), [0, 1, 3, 2]);
    }

    /// A simulator's list of events, as [`EventList`] describes it.
    #[derive(Default)]
    struct Model {
        /// The links of the events to come, by time, in the order of creation.
        events: std::collections::BTreeMap<u64, Vec<u32>>,
    }

    impl Model {
        /// Returns the order of the links with a cell at `now`. All other events of this instant do not happen.
        fn order(&mut self, now: u64, cells: &[u32], cell_times: &[u64], is_last_in_first: bool) -> Vec<u32> {
            let created = self.events.remove(&now).unwrap_or_default();
            let starting = cells.iter().copied().filter(|cell| !created.contains(cell));
            let mut list: Vec<u32> = starting.chain(created.iter().copied().filter(|c| cells.contains(c))).collect();
            if is_last_in_first {
                list.reverse();
            }
            for &link in &list {
                self.events.entry(now + cell_times[link as usize]).or_default().push(link);
            }
            list
        }
    }

    #[test]
    fn the_order_is_that_of_a_list_of_events() {
        let mut rng = Stream::new(3, "cells");
        for (order, is_last_in_first) in [(TieOrder::EventList, false), (TieOrder::EventListLastIn, true)] {
            for cell_times in [[2, 2, 2, 2, 2], [2, 4, 2, 6, 4], [3, 5, 2, 2, 3]] {
                let spans = cell_times.map(Span).into_iter();
                let mut ties = TieBreaker::new(order, spans, Stream::new(1, "ties"));
                let mut model = Model::default();
                let mut free_at = [0; 5];
                for now in 0..2000 {
                    let mut cells = Vec::new();
                    for link in 0..5_u32 {
                        let (free, cell_time) = (&mut free_at[link as usize], cell_times[link as usize]);
                        if *free <= now && rng.below(4) > 0 {
                            *free = now + cell_time;
                            cells.push(link);
                        }
                    }
                    let expected = model.order(now, &cells, &cell_times, is_last_in_first);
                    ties.order(Time(now), &mut cells, |&c| c);
                    assert_eq!(cells, expected, "{order:?}, {cell_times:?}, at {now}");
                }
            }
        }
    }
}
