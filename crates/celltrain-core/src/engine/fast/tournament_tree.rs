//! A tournament tree: the least of a fixed set of keys, each of which changes often. It holds the fast engine's event
//! list.
//!
//! A network has few sources of events: its contended ports and the lanes between them. Comparing eight of them costs
//! less than keeping them in order.

use crate::units::Time;

/// The time of an event, its rank within the instant, and its leaf. All three form one wide number, so that comparing
/// two keys is one subtraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(u128);

impl Key {
    /// Never.
    pub const NEVER: Key = Key(u128::MAX);

    /// The event of `leaf` at `time`; within an instant the least rank comes first.
    #[inline]
    pub fn new(time: Time, rank: u32, leaf: u32) -> Self {
        Self(u128::from(time.0) << 64 | u128::from(rank) << 32 | u128::from(leaf))
    }

    /// When.
    #[inline]
    pub fn time(self) -> Time {
        Time((self.0 >> 64) as u64)
    }

    /// Its place among what happens in the same instant.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the rank is the middle 32 bits of the key")]
    pub fn rank(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Whose it is.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the leaf is the lowest 32 bits of the key")]
    pub fn leaf(self) -> usize {
        self.0 as u32 as usize
    }
}

/// Ranks within an instant: ports settle what came before it, then RM cells come to the ends of their loops, frames and
/// packets are delivered by link, sources start, RM cells pass switches, shaped ports send, and clocks tick.
pub(super) const SETTLE: u32 = 0;
pub(super) const RM_END: u32 = 1;
pub(super) const FIRST_LINK: u32 = 1 << 30;
pub(super) const START: u32 = 1 << 31;
pub(super) const RM_PASS: u32 = START + 1;
pub(super) const SHAPED: u32 = u32::MAX - 2;
pub(super) const TICK: u32 = u32::MAX - 1;

/// The keys, with the least on top.
///
/// A tree with eight children a node. A change moves up only if its key was or is the least of its eight, and compares
/// all eight only if it was. Up to eight keys are all on top, and a change writes one key. With four a node it is 3 %
/// more instructions on a LAN of 5 sources and no fewer with 50 keys.
pub struct TournamentTree {
    /// The top first, the keys themselves last.
    levels: Vec<Vec<[Key; GROUP]>>,
}

const GROUP: usize = 8;

impl TournamentTree {
    /// So many keys, all of them never.
    pub fn new(size: usize) -> Self {
        let mut levels = Vec::new();
        let mut groups = size;
        loop {
            groups = groups.div_ceil(GROUP).max(1);
            levels.insert(0, vec![[Key::NEVER; GROUP]; groups]);
            if groups == 1 {
                return Self { levels };
            }
        }
    }

    /// The least key.
    #[inline]
    pub fn first(&self) -> Key {
        least(&self.levels[0][0])
    }

    /// The key of one.
    #[inline]
    pub fn key(&self, leaf: usize) -> Key {
        let keys = self.levels.last().expect("there is at least one level");
        keys[leaf / GROUP][leaf % GROUP]
    }

    /// Changes the key of one.
    #[inline]
    pub fn set(&mut self, leaf: usize, key: Key) {
        let (mut place, mut key) = (leaf, key);
        for i in (0..self.levels.len()).rev() {
            let group = &mut self.levels[i][place / GROUP];
            let before = std::mem::replace(&mut group[place % GROUP], key);
            if i == 0 {
                return;
            }
            place /= GROUP;
            let least_before = self.levels[i - 1][place / GROUP][place % GROUP];
            if key >= least_before {
                if before != least_before || key == before {
                    return;
                }
                key = least(&self.levels[i][place]);
            }
        }
    }
}

#[inline]
#[expect(clippy::many_single_char_names, reason = "eight keys that differ in nothing but their place")]
fn least(group: &[Key; GROUP]) -> Key {
    let [a, b, c, d, e, f, g, h] = *group;
    a.min(b).min(c.min(d)).min(e.min(f).min(g.min(h)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    #[test]
    fn the_first_is_the_least_after_any_changes() {
        let mut rng = Stream::new(1, "event_list");
        for size in [1, 2, 3, 8, 9, 13, 64, 65, 100] {
            let mut event_list = TournamentTree::new(size);
            let mut keys = vec![Key::NEVER; size];
            for _ in 0..500 {
                let leaf = rng.below(u32::try_from(size).unwrap()) as usize;
                let rank = rng.below(3);
                keys[leaf] = Key::new(Time(u64::from(rng.below(20))), rank, u32::try_from(leaf).unwrap());
                event_list.set(leaf, keys[leaf]);
                let first = event_list.first();
                assert_eq!(first, *keys.iter().min().unwrap());
                assert_eq!(first, event_list.key(first.leaf()));
            }
        }
    }
}
