//! The event list: the next event of each source.

use super::plan::{LaneIndex, Plan, PortIndex, RmLaneIndex, ShapedIndex};
use super::tournament_tree::{Key, Rank, TournamentTree};
use crate::units::Time;

/// A source of events. Each has at most one event on the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaf {
    /// A contended port settles what came before the instant.
    Port(PortIndex),
    /// The first frame of a lane arrives.
    Lane(LaneIndex),
    /// A shaped port sends.
    Shaped(ShapedIndex),
    /// Sources start.
    Start,
    /// Clocks tick.
    Tick,
    /// The first RM event of a lane.
    Rm(RmLaneIndex),
}

/// The event list. Within an instant, events are in the order of their [`Rank`], then of their leaves.
pub(super) struct EventList {
    /// Ports, then lanes, shaped ports, starts, ticks and RM lanes.
    keys: TournamentTree,
    first_lane: usize,
    first_shaped: usize,
    first_rm_lane: usize,
}

impl EventList {
    pub(super) fn new(plan: &Plan) -> Self {
        let first_lane = plan.contended.len();
        let first_shaped = first_lane + plan.lanes.len();
        let first_rm_lane = first_shaped + plan.shaped.len() + 2;
        let keys = TournamentTree::new(first_rm_lane + plan.rm_event_lanes);
        Self { keys, first_lane, first_shaped, first_rm_lane }
    }

    /// Returns the first event.
    #[inline]
    pub(super) fn first(&self) -> Key {
        self.keys.first()
    }

    /// Returns the source of an event.
    #[inline]
    pub(super) fn leaf(&self, event: Key) -> Leaf {
        let number = event.leaf();
        match event.rank() {
            Rank::Settle => Leaf::Port(PortIndex::from(number)),
            Rank::Delivery(_) => Leaf::Lane(LaneIndex::from(number - self.first_lane)),
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
            Leaf::Lane(lane) => self.first_lane + usize::from(lane),
            Leaf::Shaped(shaped) => self.first_shaped + usize::from(shaped),
            Leaf::Start => self.first_rm_lane - 2,
            Leaf::Tick => self.first_rm_lane - 1,
            Leaf::Rm(lane) => self.first_rm_lane + usize::from(lane),
        }
    }

    /// Replaces the next event of a source.
    #[inline]
    pub(super) fn set(&mut self, leaf: Leaf, event: Option<(Time, Rank)>) {
        let number = self.number(leaf);
        self.keys.set(number, event.map_or(Key::NEVER, |(time, rank)| Key::new(time, rank, number)));
    }

    /// Makes a port settle everything before `time` at that time at the latest.
    #[inline]
    pub(super) fn settle_by(&mut self, port: PortIndex, time: Time) {
        let number = usize::from(port);
        let key = Key::new(time, Rank::Settle, number);
        if key < self.keys.key(number) {
            self.keys.set(number, key);
        }
    }
}
