//! Lanes: frames on their way to hosts and shaped ports, and RM cells that will have an effect. The event list contains
//! only the first event of each lane.

use std::collections::VecDeque;

use typed_index_collections::{TiVec, ti_vec};

use super::event_list::{EventList, Leaf, Rank};
use super::plan::{LaneIndex, Plan, RmLaneIndex};
use crate::abr::RmCell;
use crate::cell::{FrameNumber, Run};
use crate::index::{LinkIndex, VcIndex};
use crate::rate_control::Place;
use crate::units::Time;

/// A complete frame on its way to a host or to a shaped port.
#[derive(Clone, Copy)]
pub(super) struct Delivery {
    pub(super) time: Time,
    pub(super) link: LinkIndex,
    pub(super) vc: VcIndex,
    /// Number of the frame in its VC's log.
    pub(super) frame: FrameNumber,
    /// Number of the frame's cells. For a frame on its way to a host it is 0, because the log contains the frame's
    /// length.
    pub(super) cells: u32,
}

const _: () = assert!(
    size_of::<Delivery>() == 24 && size_of::<Run>() == 12,
    "the sizes match those on the design \
    page"
);

/// An event of an RM cell: the cell passes a switch that writes into it, or reaches the end of its loop. Other cells
/// need no events.
#[derive(Clone, Copy, Debug)]
pub(super) struct RmEvent {
    pub(super) time: Time,
    /// Index of the link on which the RM cell arrives.
    pub(super) link: LinkIndex,
    pub(super) vc: VcIndex,
    /// Number of the RM cell in its VC.
    pub(super) number: FrameNumber,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// The cell reaches the end of its loop. If it is a forward cell, the destination returns the given cell.
    End(Option<RmCell>),
    /// The cell passes the switch at this place. If it is a backward cell, the switch's allocator writes into it.
    Pass(Place),
}

pub(super) struct Lanes {
    /// Frames in time order.
    pub(super) frames: TiVec<LaneIndex, VecDeque<Delivery>>,
    /// RM events in time order. RM cells from one port with the same lead share a lane.
    rm_events: TiVec<RmLaneIndex, VecDeque<RmEvent>>,
}

impl Lanes {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            frames: ti_vec![VecDeque::new(); plan.lanes.len()],
            rm_events: ti_vec![VecDeque::new(); plan.rm_event_lanes],
        }
    }

    #[inline(always)]
    pub(super) fn push_frame(&mut self, lane: LaneIndex, delivery: Delivery, event_list: &mut EventList) {
        self.frames[lane].push_back(delivery);
        if self.frames[lane].len() == 1 {
            self.schedule(lane, event_list);
        }
    }

    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "inlining saves 1 % of the time of a LAN run: each frame calls this function"
    )]
    pub(super) fn pop_frame(&mut self, lane: LaneIndex, event_list: &mut EventList) -> Delivery {
        let delivery = self.frames[lane].pop_front().expect("a lane on the event list contains a frame");
        self.schedule(lane, event_list);
        delivery
    }

    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "inlining saves 1 % of the time of a LAN run: each frame calls this function"
    )]
    fn schedule(&self, lane: LaneIndex, event_list: &mut EventList) {
        event_list.set(Leaf::Lane(lane), self.frames[lane].front().map(|next| (next.time, Rank::Delivery(next.link))));
    }

    pub(super) fn push_rm_event(&mut self, lane: RmLaneIndex, rm_event: RmEvent, event_list: &mut EventList) {
        let events = &mut self.rm_events[lane];
        // A port with deferred order may report cells of one class before earlier cells of another.
        let behind = events.iter().rev().take_while(|other| other.time > rm_event.time).count();
        events.insert(events.len() - behind, rm_event);
        if behind + 1 == events.len() {
            self.schedule_rm_event(lane, event_list);
        }
    }

    pub(super) fn pop_rm_event(&mut self, lane: RmLaneIndex, event_list: &mut EventList) -> RmEvent {
        let event = self.rm_events[lane].pop_front().expect("a lane on the event list contains an RM event");
        self.schedule_rm_event(lane, event_list);
        event
    }

    /// Schedules the first event of a lane. Within an instant, loop ends precede switches, and both are in link order.
    #[inline]
    fn schedule_rm_event(&self, lane: RmLaneIndex, event_list: &mut EventList) {
        let event = |&RmEvent { time, link, what, .. }: &RmEvent| {
            (time, if matches!(what, What::End(_)) { Rank::RmEnd(link) } else { Rank::RmPass(link) })
        };
        event_list.set(Leaf::Rm(lane), self.rm_events[lane].front().map(event));
    }
}
