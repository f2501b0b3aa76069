//! The inputs of a contended port, in the order of their next arrivals.

use crate::units::Time;

/// An input and the arrival of its next cell, as one wide number, so that comparing two is one subtraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn(u128);

impl Turn {
    /// An empty place; it sorts after all turns.
    const NONE: Turn = Turn(u128::MAX);

    #[inline]
    pub(super) fn new(time: Time, input: u32) -> Self {
        Self(u128::from(time.0) << 64 | u128::from(input))
    }

    /// The arrival; after any instant for an empty place.
    #[inline]
    pub(super) fn time(self) -> Time {
        Time((self.0 >> 64) as u64)
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the input is the lowest 32 bits")]
    pub(super) fn input(self) -> u32 {
        self.0 as u32
    }
}

/// Turns in order: by time, then by number of the input. Each input has at most one.
///
/// They are kept in a ring. A new turn usually belongs at the end, because trains arrive in the order in which hosts
/// send them, and cells of trains under way take turns. Most others belong near the front.
#[derive(Default)]
pub(super) struct Turns {
    /// A power of two of places, two of them free at least; a free one is nobody's turn.
    ring: Vec<Turn>,
    first: usize,
    len: usize,
}

impl Turns {
    /// None of any of so many inputs.
    pub(super) fn new(inputs: usize) -> Self {
        Self { ring: vec![Turn::NONE; (inputs + 2).next_power_of_two()], first: 0, len: 0 }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn place(&self, i: usize) -> usize {
        self.first.wrapping_add(i) & (self.ring.len() - 1)
    }

    /// The `i`th turn; an empty place beyond the last.
    #[inline]
    pub(super) fn at(&self, i: usize) -> Turn {
        self.ring[self.place(i)]
    }

    /// The first turn; an empty place where there is none.
    #[inline]
    pub(super) fn first(&self) -> Turn {
        self.at(0)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Turn> {
        (0..self.len).map(|i| self.at(i))
    }

    /// How many of the first, of which there is one, are at the same time, and the time of those after them.
    #[inline]
    pub(super) fn tied(&self) -> (usize, Time) {
        let now = self.first().time();
        let mut tied = 1;
        loop {
            let after = self.at(tied).time();
            if after != now {
                return (tied, after);
            }
            tied += 1;
        }
    }

    #[inline]
    pub(super) fn pop_first(&mut self) {
        let first = self.first;
        self.ring[first] = Turn::NONE;
        self.first = self.place(1);
        self.len -= 1;
    }

    /// Puts an input in its place.
    #[inline]
    pub(super) fn put(&mut self, turn: Turn) {
        let end = self.place(self.len);
        if self.len == 0 || turn > self.at(self.len - 1) {
            self.ring[end] = turn;
            self.len += 1;
            return;
        }
        self.insert(turn);
    }

    /// Inserts before the end: the turns on the shorter side move.
    #[inline(never)]
    fn insert(&mut self, turn: Turn) {
        let mut place = self.place(0);
        if turn < self.at(self.len / 2) {
            self.first = self.place(self.ring.len() - 1);
            let mut hole = self.first;
            while self.ring[place] < turn {
                self.ring[hole] = self.ring[place];
                hole = place;
                place = (place + 1) & (self.ring.len() - 1);
            }
            self.ring[hole] = turn;
        } else {
            let mut hole = self.place(self.len);
            place = self.place(self.len - 1);
            while self.ring[place] > turn {
                self.ring[hole] = self.ring[place];
                hole = place;
                place = place.wrapping_sub(1) & (self.ring.len() - 1);
            }
            self.ring[hole] = turn;
        }
        self.len += 1;
    }

    /// The first input takes another place; whether it is first again.
    #[inline]
    pub(super) fn put_back_first(&mut self, turn: Turn) -> bool {
        let first = self.first;
        if turn < self.at(1) {
            self.ring[first] = turn;
            return true;
        }
        let (last, end) = (self.place(self.len - 1), self.place(self.len));
        self.ring[first] = Turn::NONE;
        self.first = self.place(1);
        if turn > self.ring[last] {
            // They take turns.
            self.ring[end] = turn;
        } else {
            self.len -= 1;
            self.insert(turn);
        }
        false
    }

    /// An input has no turn any more.
    pub(super) fn remove(&mut self, input: u32) {
        let mut place = (0..self.len).find(|&i| self.at(i).input() == input).expect("an input with a train has a turn");
        while place + 1 < self.len {
            let (here, next) = (self.place(place), self.at(place + 1));
            self.ring[here] = next;
            place += 1;
        }
        let last = self.place(place);
        self.ring[last] = Turn::NONE;
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    #[test]
    fn turns_stay_in_order_after_any_changes() {
        let mut rng = Stream::new(1, "turns");
        for inputs in [1, 2, 3, 7, 40] {
            let mut turns = Turns::new(inputs as usize);
            let mut expected: Vec<Turn> = Vec::new();
            for _ in 0..2000 {
                let input = rng.below(inputs);
                let turn = Turn::new(Time(u64::from(rng.below(50))), input);
                let held = expected.iter().position(|other| other.input() == input);
                match (held, rng.below(3)) {
                    (None, _) => {
                        turns.put(turn);
                        expected.push(turn);
                    }
                    (Some(0), 0) => {
                        turns.pop_first();
                        expected.remove(0);
                    }
                    (Some(0), _) => {
                        let is_first = turns.put_back_first(turn);
                        expected[0] = turn;
                        assert_eq!(is_first, expected.iter().min() == Some(&turn));
                    }
                    (Some(i), 0) => {
                        turns.remove(input);
                        expected.remove(i);
                    }
                    (Some(_), _) => {}
                }
                expected.sort_unstable();
                assert!(turns.iter().eq(expected.iter().copied()));
                assert_eq!((turns.len(), turns.at(expected.len())), (expected.len(), Turn::NONE));
                let now = expected.first().map(|turn| turn.time());
                let tied = expected.iter().take_while(|turn| Some(turn.time()) == now).count();
                if tied > 0 {
                    let after = expected.get(tied).map_or(Turn::NONE, |&turn| turn).time();
                    assert_eq!(turns.tied(), (tied, after));
                }
            }
        }
    }
}
