//! What comes in on one link: cells, or trains of them, in the order of their arrival.
//!
//! A link carries one cell at a time, so what it brings to a port is sorted, whatever VCs it holds.

use std::collections::VecDeque;

use super::train_port::Train;
use crate::cell::Cell;
use crate::sizes::size;
use crate::units::{Span, Time};

/// A cell on its way to a port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arriving {
    pub(super) time: Time,
    /// Under its label at the port.
    pub(super) cell: Cell,
}

/// A list that grows at its end and is taken from its front.
#[derive(Clone, Debug)]
pub(super) struct Pipe<T> {
    items: Vec<T>,
    /// How many of them were taken.
    taken: usize,
}

impl<T: Copy> Pipe<T> {
    pub(super) const EMPTY: Self = Self { items: Vec::new(), taken: 0 };

    #[inline]
    pub(super) fn push(&mut self, item: T) {
        self.items.push(item);
    }

    /// What was not taken.
    #[inline]
    pub(super) fn rest(&self) -> &[T] {
        &self.items[self.taken..]
    }

    #[inline]
    pub(super) fn first(&self) -> Option<&T> {
        self.items.get(self.taken)
    }

    /// Takes so many.
    #[inline]
    pub(super) fn take(&mut self, items: usize) {
        self.taken += items;
        debug_assert!(self.taken <= self.items.len(), "no more is taken than there is");
        // Each move of the rest is paid for by as many that were taken.
        if self.taken * 2 >= self.items.len() {
            self.items.copy_within(self.taken.., 0);
            self.items.truncate(self.items.len() - self.taken);
            self.taken = 0;
        }
    }
}

/// What comes in on one link of a stream port: cells from a contended port, or trains from a host's or a shaped one.
pub(super) struct Stream {
    pub(super) cells: Pipe<Arriving>,
    pub(super) trains: VecDeque<Train>,
    /// Where only whole frames matter: the arrivals of last cells and RM cells, of those in `cells`.
    ends: Pipe<Time>,
    /// The number of the port among contended ports.
    pub(super) port: u32,
    /// Whether cells that end no frame have an effect elsewhere.
    every_cell_matters: bool,
    /// Whether what comes is kept in trains.
    in_trains: bool,
    /// From an arrival at the port to its earliest effect.
    least_lead: Span,
}

/// Memory of a stream, with room for some cells.
pub(super) const BYTES: u64 = size::<Stream>();
/// Memory of a cell on its way, with what lists that double keep free.
pub(super) const BYTES_PER_CELL: u64 = 2 * size::<Arriving>();

impl Stream {
    /// Nothing, on its way to a port.
    pub(super) fn new(port: u32, in_trains: bool, every_cell_matters: bool, least_lead: Span) -> Self {
        Self {
            cells: Pipe::EMPTY,
            trains: VecDeque::new(),
            ends: Pipe::EMPTY,
            port,
            every_cell_matters,
            in_trains,
            least_lead,
        }
    }

    /// A cell is on its way. Returns its earliest effect elsewhere, where that may come before those of others here.
    #[inline]
    pub(super) fn push(&mut self, time: Time, cell: Cell) -> Option<Time> {
        let arriving = Arriving { time, cell };
        if self.every_cell_matters {
            let is_first = self.cells.first().is_none();
            self.cells.push(arriving);
            return is_first.then(|| time + self.least_lead);
        }
        self.cells.push(arriving);
        if !(cell.last_cell() || cell.is_rm()) {
            return None;
        }
        self.ends.push(time);
        (self.ends.rest().len() == 1).then(|| time + self.least_lead)
    }

    /// A train is on its way, likewise.
    #[inline]
    pub(super) fn join(&mut self, train: Train) -> Option<Time> {
        if !self.in_trains {
            return self.push_each(train);
        }
        match self.trains.back_mut() {
            Some(tail) if tail.goes_on_with(&train) => {
                tail.cells += train.cells;
                tail.ends_frame = train.ends_frame;
            }
            Some(_) => {
                self.trains.push_back(train);
                return None;
            }
            None => self.trains.push_back(train),
        }
        self.effect()
    }

    fn push_each(&mut self, train: Train) -> Option<Time> {
        let mut effect = None;
        let mut time = train.next;
        for cell in train.run().iter() {
            effect = effect.or(self.push(time, cell));
            time += train.period;
        }
        effect
    }

    /// Removes the last cells due, which have not started.
    pub(super) fn take_back(&mut self, mut cells: u32) {
        while cells > 0 {
            let tail = self.trains.back_mut().expect("no more is taken back than was to come");
            let taken = cells.min(tail.cells);
            tail.cells -= taken;
            tail.ends_frame = false;
            cells -= taken;
            if tail.cells == 0 {
                self.trains.pop_back();
            }
        }
    }

    /// The arrival of the next cell.
    #[inline]
    pub(super) fn next(&self) -> Option<Time> {
        if self.in_trains {
            return self.trains.front().map(|train| train.next);
        }
        self.cells.first().map(|arriving| arriving.time)
    }

    /// The earliest effect elsewhere of what is on its way.
    #[inline]
    pub(super) fn effect(&self) -> Option<Time> {
        let arrival = if self.every_cell_matters {
            self.next()
        } else if self.in_trains {
            self.trains.front().map(Train::last)
        } else {
            self.ends.first().copied()
        };
        arrival.map(|arrival| arrival + self.least_lead)
    }

    /// Hands over the cells that arrive before `until`.
    #[inline]
    pub(super) fn take_before(&mut self, until: Time, mut hand: impl FnMut(Time, Cell)) {
        if self.in_trains {
            self.take_from_trains(until, hand);
            return;
        }
        let rest = self.cells.rest();
        let mut taken = 0;
        while let Some(arriving) = rest.get(taken).filter(|arriving| arriving.time < until) {
            hand(arriving.time, arriving.cell);
            taken += 1;
        }
        self.cells.take(taken);
        if !self.every_cell_matters {
            let ended = self.ends.rest().iter().take_while(|&&end| end < until).count();
            self.ends.take(ended);
        }
    }

    fn take_from_trains(&mut self, until: Time, mut hand: impl FnMut(Time, Cell)) {
        while let Some(train) = self.trains.front_mut().filter(|train| train.next < until) {
            let (mut time, period) = (train.next, train.period);
            for cell in train.take_before(until).iter() {
                hand(time, cell);
                time += period;
            }
            if train.cells > 0 {
                return;
            }
            self.trains.pop_front();
        }
    }
}
