//! RM events: an RM cell passes a switch that writes into it, or reaches the end of its loop. Otherwise RM cells travel
//! like any others.

use std::collections::VecDeque;

use typed_index_collections::{TiVec, ti_vec};

use super::event_list::{EventList, Leaf, Rank};
use super::fabric::Late;
use super::plan::{Plan, RmLaneIndex};
use crate::abr::RmCell;
use crate::cell::FrameNumber;
use crate::index::{Label, LinkIndex, VcIndex};
use crate::rate_control::Place;
use crate::units::Time;

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
    /// The cell reaches the end of its loop. If it is a forward cell, it is turned around into the given cell.
    End(Option<RmCell>),
    /// The cell passes the switch at this place, whose allocator writes into the cell if it is a backward cell.
    Pass(Place),
}

/// The departure of an RM cell that leaves its VC within this stage.
#[derive(Clone, Copy)]
pub(super) struct RmDeparture {
    pub(super) link: LinkIndex,
    pub(super) label: Label,
    pub(super) start: Time,
}

/// All RM events, and the RM cells that leave their VC within a stage.
pub(super) struct RmEvents {
    /// Events by lane, in time order. A lane is for RM cells that leave one port with the same lead.
    lanes: TiVec<RmLaneIndex, VecDeque<RmEvent>>,
    /// By link and label: RM cells that have left their VC within the stage, by the horizon. Empty if no VC's rate is
    /// controlled.
    left: TiVec<LinkIndex, TiVec<Label, u64>>,
    /// RM cells that reach the end of their loop after the horizon.
    pub(super) under_way: Vec<RmDeparture>,
}

impl RmEvents {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            lanes: ti_vec![VecDeque::new(); plan.rm_event_lanes],
            left: plan.rm_ways.iter().map(|ways| ti_vec![0; ways.len()]).collect(),
            under_way: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, lane: RmLaneIndex, rm_event: RmEvent, event_list: &mut EventList) {
        let events = &mut self.lanes[lane];
        // A port with deferred order may report one class's cells before another's.
        let behind = events.iter().rev().take_while(|other| other.time > rm_event.time).count();
        events.insert(events.len() - behind, rm_event);
        if behind + 1 == events.len() {
            self.schedule(lane, event_list);
        }
    }

    pub(super) fn pop(&mut self, lane: RmLaneIndex, event_list: &mut EventList) -> RmEvent {
        let event = self.lanes[lane].pop_front().expect("a lane on the event list has an RM event");
        self.schedule(lane, event_list);
        event
    }

    /// Schedules the first event of a lane. Within an instant, ends precede passes, and both are in link order.
    #[inline]
    fn schedule(&self, lane: RmLaneIndex, event_list: &mut EventList) {
        let event = |&RmEvent { time, link, what, .. }: &RmEvent| {
            (time, if matches!(what, What::End(_)) { Rank::RmEnd(link) } else { Rank::RmPass(link) })
        };
        event_list.set(Leaf::Rm(lane), self.lanes[lane].front().map(event));
    }

    /// Returns the number of RM cells that have left their VC within a stage.
    pub(super) fn left(&self, link: LinkIndex, label: Label) -> u64 {
        self.left.get(link).map_or(0, |left| left[label])
    }

    /// Records an RM cell that leaves its VC within this stage. Returns whether it does so before the run ends.
    pub(super) fn leaves(&mut self, cell: RmDeparture, plan: &Plan, horizon: Time, late: &mut Late) -> bool {
        let RmDeparture { link, label, start } = cell;
        let end = plan.rm_end(link, label);
        let (passed, behind) = late.counts[link][label].split_at_mut(end.passed);
        // The cell never reaches the ports after the end of its loop.
        for late in behind {
            *late += 1;
        }
        let arrival = start + end.lead;
        if arrival <= horizon {
            self.left[link][label] += 1;
            return true;
        }
        for (late, port) in passed.iter_mut().zip(&plan.passed[link][label]) {
            *late += u64::from(start + port.lead > horizon);
        }
        if horizon < late.end {
            self.under_way.push(cell);
        }
        arrival <= late.end
    }

    /// Updates which RM cells count as late: those that arrive after `horizon`, no longer those that arrive after
    /// `before`.
    pub(super) fn move_horizon(&mut self, plan: &Plan, before: Time, horizon: Time, late: &mut Late) {
        self.under_way.retain(|&RmDeparture { link, label, start }| {
            let end = plan.rm_end(link, label);
            let counts = &mut late.counts[link][label][..end.passed];
            for (late, port) in counts.iter_mut().zip(&plan.passed[link][label]) {
                let arrival = start + port.lead;
                *late = *late - u64::from(arrival > before) + u64::from(arrival > horizon);
            }
            let is_late = start + end.lead > horizon;
            self.left[link][label] += u64::from(!is_late);
            is_late
        });
    }
}
