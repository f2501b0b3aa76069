//! What happens next: the least of a fixed set of keys, each of which changes often.
//!
//! A tree of winners over a flat array: changing a key costs one comparison a level, looking costs nothing. With the few
//! sources of events a network has (its contended ports and the lanes between them) that is two or three comparisons.

use crate::units::Time;

/// When something happens, and its place among what happens in the same instant: the phases' order, then an index. One
/// wide number, so that comparing two is one subtraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(u128);

impl Key {
    /// Never.
    pub(super) const NEVER: Key = Key(u128::MAX);

    #[inline]
    pub(super) fn new(time: Time, rank: u32) -> Self {
        Self(u128::from(time.0) << 32 | u128::from(rank))
    }

    #[inline]
    pub(super) fn time(self) -> Time {
        Time(u64::try_from(self.0 >> 32).unwrap_or(u64::MAX))
    }

    #[inline]
    pub(super) fn rank(self) -> u32 {
        let [.., a, b, c, d] = self.0.to_be_bytes();
        u32::from_be_bytes([a, b, c, d])
    }
}

/// The keys, and which is least.
pub(super) struct Agenda {
    /// Winners of the inner nodes from 1, then the leaves' own numbers.
    winners: Vec<u32>,
    keys: Vec<Key>,
    leaves: usize,
}

impl Agenda {
    /// So many keys, all of them never.
    pub(super) fn new(size: usize) -> Self {
        let leaves = size.max(1).next_power_of_two();
        let number = |i: usize| u32::try_from(i).expect("indices fit 32 bits");
        let mut winners = vec![0; 2 * leaves];
        for leaf in 0..leaves {
            winners[leaves + leaf] = number(leaf);
        }
        for node in (1..leaves).rev() {
            winners[node] = winners[2 * node];
        }
        Self { winners, keys: vec![Key::NEVER; leaves], leaves }
    }

    /// The least key and whose it is.
    #[inline]
    pub(super) fn first(&self) -> (Key, usize) {
        let leaf = self.winners[1] as usize;
        (self.keys[leaf], leaf)
    }

    /// The key of one.
    #[inline]
    pub(super) fn key(&self, leaf: usize) -> Key {
        self.keys[leaf]
    }

    /// Changes the key of one.
    #[inline]
    pub(super) fn set(&mut self, leaf: usize, key: Key) {
        self.keys[leaf] = key;
        let number = self.winners[self.leaves + leaf];
        let mut node = (self.leaves + leaf) >> 1;
        while node > 0 {
            let before = self.winners[node];
            let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
            let winner = if self.keys[right as usize] < self.keys[left as usize] { right } else { left };
            if winner == before && winner != number {
                // Another one wins here as before, so nothing changes further up.
                break;
            }
            self.winners[node] = winner;
            node >>= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    #[test]
    fn the_first_is_the_least_after_any_changes() {
        let mut rng = Stream::new(1, "agenda");
        for size in [1, 2, 3, 5, 8, 13] {
            let mut agenda = Agenda::new(size);
            let mut keys = vec![Key::NEVER; size];
            for _ in 0..500 {
                let leaf = rng.below(u32::try_from(size).unwrap()) as usize;
                keys[leaf] = Key::new(Time(u64::from(rng.below(20))), u32::try_from(leaf).unwrap());
                agenda.set(leaf, keys[leaf]);
                let (key, leaf) = agenda.first();
                assert_eq!(key, *keys.iter().min().unwrap());
                assert_eq!(key, keys[leaf]);
            }
        }
    }
}
