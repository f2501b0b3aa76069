//! The event list, with the next event of each source.

use super::plan::{LaneIndex, PausableIndex, Plan, PortIndex, RmLaneIndex, ShapedIndex};
use crate::index::LinkIndex;
use crate::link_loss::LossyIndex;
use crate::units::Time;

/// A source of events. Each source has at most one event on the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaf {
    /// A contended port, which processes its arrivals and departures before the event's time.
    Port(PortIndex),
    /// The delay line at the end of a link.
    Line(LossyIndex),
    Lane(LaneIndex),
    Shaped(ShapedIndex),
    /// Pause frames that reach ports.
    Pauses,
    /// A host's port whose link may be paused.
    Pausable(PausableIndex),
    Start,
    Tick,
    Rm(RmLaneIndex),
}

/// The event list. Events at the same instant are ordered by [`Rank`], then by leaf.
pub(super) struct EventList {
    /// Leaves of the tree: ports, lanes, shaped ports, starts, ticks, RM lanes, delay lines, pause frames and hosts' ports
    /// that may be paused, in this order.
    keys: TournamentTree,
    first_lane: usize,
    first_shaped: usize,
    first_rm_lane: usize,
    lines_from: usize,
    pauses: usize,
}

impl EventList {
    pub(super) fn new(plan: &Plan) -> Self {
        let first_lane = plan.contended.len();
        let first_shaped = first_lane + plan.lanes.len();
        let first_rm_lane = first_shaped + plan.shaped.len() + 2;
        let lines_from = first_rm_lane + plan.rm_event_lanes;
        let pauses = lines_from + plan.losses.len();
        let of_pauses = if plan.pauses() { 1 + plan.pausable.len() } else { 0 };
        let keys = TournamentTree::new(pauses + of_pauses);
        Self { keys, first_lane, first_shaped, first_rm_lane, lines_from, pauses }
    }

    pub(super) fn first(&self) -> Key {
        self.keys.first()
    }

    /// Returns the source of an event.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "inlining saves 1 % of the time of a LAN run: each event calls this function"
    )]
    pub(super) fn leaf(&self, event: Key) -> Leaf {
        let number = event.leaf();
        match event.rank() {
            Rank::Settle => Leaf::Port(PortIndex::from(number)),
            Rank::Line if number == self.pauses => Leaf::Pauses,
            Rank::Line => Leaf::Line(LossyIndex::from(number - self.lines_from)),
            Rank::Delivery(_) => Leaf::Lane(LaneIndex::from(number - self.first_lane)),
            Rank::Shape if number > self.pauses => Leaf::Pausable(PausableIndex::from(number - self.pauses - 1)),
            Rank::Shape => Leaf::Shaped(ShapedIndex::from(number - self.first_shaped)),
            Rank::Start => Leaf::Start,
            Rank::Tick => Leaf::Tick,
            Rank::RmEnd(_) | Rank::RmPass(_) => Leaf::Rm(RmLaneIndex::from(number - self.first_rm_lane)),
        }
    }

    #[inline]
    fn number(&self, leaf: Leaf) -> usize {
        match leaf {
            Leaf::Port(port) => usize::from(port),
            Leaf::Line(line) => self.lines_from + usize::from(line),
            Leaf::Lane(lane) => self.first_lane + usize::from(lane),
            Leaf::Shaped(shaped) => self.first_shaped + usize::from(shaped),
            Leaf::Pauses => self.pauses,
            Leaf::Pausable(nic) => self.pauses + 1 + usize::from(nic),
            Leaf::Start => self.first_rm_lane - 2,
            Leaf::Tick => self.first_rm_lane - 1,
            Leaf::Rm(lane) => self.first_rm_lane + usize::from(lane),
        }
    }

    #[inline]
    pub(super) fn set(&mut self, leaf: Leaf, event: Option<(Time, Rank)>) {
        let number = self.number(leaf);
        self.keys.set(number, event.map_or(Key::NEVER, |(time, rank)| Key::new(time, rank, number)));
    }

    /// Makes a port process its arrivals and departures before `time`, at `time` or earlier.
    #[inline]
    pub(super) fn settle_by(&mut self, port: PortIndex, time: Time) {
        let number = usize::from(port);
        let key = Key::new(time, Rank::Settle, number);
        if key < self.keys.key(number) {
            self.keys.set(number, key);
        }
    }
}

/// The kind of an event. Events at the same instant are processed in the order of this list, and events of the same
/// kind in link order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// A contended port, which processes its arrivals and departures before the event's time.
    Settle,
    /// A cell enters or leaves the delay line at the end of a link, or a packet on the line is due; after that, pause frames
    /// reach ports.
    Line,
    /// An RM cell reaches the end of its loop.
    RmEnd(LinkIndex),
    /// A frame is delivered to its host, or a packet to a shaped port.
    Delivery(LinkIndex),
    Start,
    /// An RM cell passes a switch.
    RmPass(LinkIndex),
    Shape,
    Tick,
}

/// The time of an event, its rank within the instant, and its leaf. One wide integer contains all three, so that one
/// subtraction compares two keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(u128);

/// First bit of each part of a key: 29 bits for the leaf, 32 for the link, 3 for the kind, and the remaining bits for
/// the time.
const LINK: u32 = 29;
const KIND: u32 = LINK + u32::BITS;
const TIME: u32 = 64;

impl Key {
    /// The key of a missing event, which sorts after all events.
    pub(super) const NEVER: Key = Key(u128::MAX);
    pub(super) const MAX_LEAVES: usize = 1 << LINK;

    /// Creates the key of the event of `leaf` at `time`. At the same instant, lower ranks come first.
    #[inline]
    pub(super) fn new(time: Time, rank: Rank, leaf: usize) -> Self {
        debug_assert!(leaf < Self::MAX_LEAVES, "leaves fit in 29 bits");
        // The numbers follow the order of the kinds. A test checks that keys and ranks have the same order.
        let (kind, link) = match rank {
            Rank::Settle => (0, 0),
            Rank::Line => (1, 0),
            Rank::RmEnd(link) => (2, link.number()),
            Rank::Delivery(link) => (3, link.number()),
            Rank::Start => (4, 0),
            Rank::RmPass(link) => (5, link.number()),
            Rank::Shape => (6, 0),
            Rank::Tick => (7, 0),
        };
        Self(u128::from(time.0) << TIME | u128::from((kind << KIND) | (u64::from(link) << LINK) | leaf as u64))
    }

    pub(super) fn time(self) -> Time {
        Time((self.0 >> TIME) as u64)
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the cast keeps the 32 bits of the link in the key")]
    pub(super) fn rank(self) -> Rank {
        let link = LinkIndex::new((self.0 >> LINK) as u32);
        match (self.0 >> KIND) as u64 & 7 {
            0 => Rank::Settle,
            1 => Rank::Line,
            2 => Rank::RmEnd(link),
            3 => Rank::Delivery(link),
            4 => Rank::Start,
            5 => Rank::RmPass(link),
            6 => Rank::Shape,
            7 => Rank::Tick,
            _ => unreachable!("an event that never happens has no rank"),
        }
    }

    pub(super) fn leaf(self) -> usize {
        self.0 as usize & (Self::MAX_LEAVES - 1)
    }
}

/// A tournament tree of keys, with the smallest at the root.
///
/// Each node of the tree has eight keys. A change propagates upwards only if its key was or becomes the smallest of its
/// eight, and compares all eight only if it was. Up to eight keys fit in the root, where a change writes one key; the
/// smallest of those in use is found when it is needed, which takes 2 % fewer instructions on a LAN than all eight. Four
/// keys per node would need 3 % more instructions on a LAN of 5 sources, and no fewer with 50 keys.
pub(super) struct TournamentTree {
    /// The nodes, level by level from the root. The smallest key of node `i` is also key `i - 1` of all keys, counted
    /// from the root. The leaves are the keys behind those.
    nodes: Vec<[Key; NODE]>,
    /// Number of the first leaf among all keys.
    first_leaf: usize,
    /// Number of keys in use in the root, except the first.
    others_in_root: usize,
}

const NODE: usize = 8;

impl TournamentTree {
    /// Creates a tree of `size` keys, all [`Key::NEVER`].
    pub(super) fn new(size: usize) -> Self {
        assert!(size <= Key::MAX_LEAVES, "the tree has more leaves than the network has ports and lanes");
        // Each node except the root takes the place of a leaf.
        let others = size.saturating_sub(1);
        let nodes = others.div_ceil(NODE - 1).max(1);
        let others_in_root = if nodes == 1 { others } else { NODE - 1 };
        Self { nodes: vec![[Key::NEVER; NODE]; nodes], first_leaf: nodes - 1, others_in_root }
    }

    pub(super) fn first(&self) -> Key {
        let [first, others @ ..] = &self.nodes[0];
        others[..self.others_in_root].iter().fold(*first, |least, &key| least.min(key))
    }

    #[inline]
    pub(super) fn key(&self, leaf: usize) -> Key {
        let place = self.first_leaf + leaf;
        self.nodes[place / NODE][place % NODE]
    }

    #[inline]
    pub(super) fn set(&mut self, leaf: usize, mut key: Key) {
        let mut place = self.first_leaf + leaf;
        loop {
            let node = place / NODE;
            let before = std::mem::replace(&mut self.nodes[node][place % NODE], key);
            let Some(parent) = node.checked_sub(1) else { return };
            let least_before = self.nodes[parent / NODE][parent % NODE];
            if key >= least_before {
                if before != least_before || key == before {
                    return;
                }
                key = least(&self.nodes[node]);
            }
            place = parent;
        }
    }
}

#[inline]
#[expect(clippy::many_single_char_names, reason = "the eight keys differ only in their index")]
fn least(node: &[Key; NODE]) -> Key {
    let [a, b, c, d, e, f, g, h] = *node;
    a.min(b).min(c.min(d)).min(e.min(f).min(g.min(h)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    fn rank(rng: &mut Stream) -> Rank {
        let link = LinkIndex::new([0, 1, 2, u32::MAX][rng.below(4) as usize]);
        let ranks = [Rank::Settle, Rank::Line, Rank::RmEnd(link), Rank::Delivery(link), Rank::Start];
        ranks.into_iter().chain([Rank::RmPass(link), Rank::Shape, Rank::Tick]).nth(rng.below(8) as usize).unwrap()
    }

    #[test]
    fn event_keys_sort_by_time_then_by_rank_and_then_by_position() {
        let mut rng = Stream::new(2, "event_list");
        let mut parts = |most: u32| {
            let leaf = [0, 1, Key::MAX_LEAVES - 1][rng.below(3) as usize];
            (Time(u64::from(rng.below(most))), rank(&mut rng), leaf)
        };
        for _ in 0..10_000 {
            let (one, other) = (parts(2), parts(2));
            let keys = [one, other].map(|(time, rank, leaf)| Key::new(time, rank, leaf));
            assert_eq!(keys[0].cmp(&keys[1]), one.cmp(&other), "{one:?} and {other:?}");
            assert_eq!((keys[0].time(), keys[0].rank(), keys[0].leaf()), one);
            assert!(keys[0] < Key::NEVER);
        }
    }

    #[test]
    fn the_event_list_always_returns_the_earliest_event_after_any_sequence_of_changes() {
        let mut rng = Stream::new(1, "event_list");
        for size in [1, 2, 3, 8, 9, 13, 64, 65, 100] {
            let mut event_list = TournamentTree::new(size);
            let mut keys = vec![Key::NEVER; size];
            for _ in 0..500 {
                let leaf = rng.below(u32::try_from(size).unwrap()) as usize;
                keys[leaf] = Key::new(Time(u64::from(rng.below(20))), rank(&mut rng), leaf);
                event_list.set(leaf, keys[leaf]);
                let first = event_list.first();
                assert_eq!(first, *keys.iter().min().unwrap());
                assert_eq!(first, event_list.key(first.leaf()));
            }
        }
    }
}
