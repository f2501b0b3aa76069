//! RM events: an RM cell passes a switch that writes into it, or reaches the end of its loop. The cells themselves
//! travel like any others.

use std::collections::VecDeque;

use typed_index_collections::{TiVec, ti_vec};

use super::plan::{Plan, RmLaneIndex, RmWay};
use crate::abr::RmCell;
use crate::cell::FrameNumber;
use crate::index::{Label, LinkIndex, VcIndex};
use crate::rate_control::Place;
use crate::units::Time;

/// An event of one RM cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct RmEvent {
    pub(super) time: Time,
    /// Index of the link it comes in on.
    pub(super) link: LinkIndex,
    /// The VC it travels on.
    pub(super) vc: VcIndex,
    /// Its number there.
    pub(super) number: FrameNumber,
    pub(super) what: What,
}

/// The kind of an RM event.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// The cell reaches the end of its loop. A forward cell is turned around as the given cell.
    End(Option<RmCell>),
    /// It passes the switch of this place, whose allocator writes into it if it goes backward.
    Pass(Place),
}

/// The departure of an RM cell that leaves its VC within the stage.
#[derive(Clone, Copy)]
pub(super) struct RmDeparture {
    pub(super) link: LinkIndex,
    pub(super) label: Label,
    pub(super) start: Time,
}

/// All RM events, and the count of RM cells that leave their VC within a stage.
pub(super) struct RmEvents {
    /// Events by lane: RM cells that leave one port for places equally far, in order of time.
    lanes: TiVec<RmLaneIndex, VecDeque<RmEvent>>,
    /// By link and label, empty if no rate is controlled: RM cells whose departure is known and that leave their VC
    /// before the stage ends.
    leaving: TiVec<LinkIndex, TiVec<Label, u64>>,
    /// By link and label, for every transparent port they pass and then for the end of their loop: the number of them
    /// that arrive there only after the horizon.
    late: TiVec<LinkIndex, TiVec<Label, Vec<u64>>>,
    /// RM cells whose loop ends only after the horizon.
    under_way: Vec<RmDeparture>,
}

impl RmEvents {
    pub(super) fn new(plan: &Plan) -> Self {
        let late = |way: &Option<RmWay>| {
            let end = way.as_ref().and_then(|way| way.end);
            end.map_or_else(Vec::new, |end| vec![0; end.passed + 1])
        };
        Self {
            lanes: ti_vec![VecDeque::new(); plan.rm_event_lanes],
            leaving: plan.rm_ways.iter().map(|ways| ti_vec![0; ways.len()]).collect(),
            late: plan.rm_ways.iter().map(|ways| ways.iter().map(late).collect()).collect(),
            under_way: Vec::new(),
        }
    }

    /// Adds an event; returns whether it is the first of its lane.
    pub(super) fn push(&mut self, lane: RmLaneIndex, rm_event: RmEvent) -> bool {
        let lane = &mut self.lanes[lane];
        // A port with deferred order may report one class's cells before another's.
        let behind = lane.iter().rev().take_while(|other| other.time > rm_event.time).count();
        lane.insert(lane.len() - behind, rm_event);
        behind + 1 == lane.len()
    }

    /// Returns the first event of a lane.
    pub(super) fn first(&self, lane: RmLaneIndex) -> Option<&RmEvent> {
        self.lanes[lane].front()
    }

    pub(super) fn pop(&mut self, lane: RmLaneIndex) -> Option<RmEvent> {
        self.lanes[lane].pop_front()
    }

    /// Records an RM cell that leaves its VC within the stage. Returns whether it does so before
    /// the run ends.
    pub(super) fn leaves(&mut self, cell: RmDeparture, plan: &Plan, horizon: Time, end: Time) -> bool {
        self.leaving[cell.link][cell.label] += 1;
        let arrival = self.change_late(cell, plan, |late, arrival| *late += u64::from(arrival > horizon));
        if arrival > horizon && horizon < end {
            self.under_way.push(cell);
        }
        arrival <= end
    }

    /// Returns the RM cells whose loop ends only after the horizon.
    pub(super) fn under_way(&self) -> &[RmDeparture] {
        &self.under_way
    }

    /// Counts the RM cells that arrive after `horizon` instead of those that arrive after `before`.
    pub(super) fn move_horizon(&mut self, plan: &Plan, before: Time, horizon: Time) {
        let mut under_way = std::mem::take(&mut self.under_way);
        under_way.retain(|&cell| {
            let arrival = self.change_late(cell, plan, |late, arrival| {
                *late = *late - u64::from(arrival > before) + u64::from(arrival > horizon);
            });
            arrival > horizon
        });
        self.under_way = under_way;
    }

    /// Changes the counts of late cells by one, given its arrival at each place. Returns its
    /// arrival at the end of its loop.
    fn change_late(
        &mut self,
        RmDeparture { link, label, start }: RmDeparture,
        plan: &Plan,
        change: impl Fn(&mut u64, Time),
    ) -> Time {
        let way = plan.rm_ways[link][label].as_ref();
        let end = way.and_then(|way| way.end).expect("asked only where it leaves its VC");
        let passed = &plan.passed[link].of(label)[..end.passed];
        let leads = passed.iter().map(|passed| passed.lead).chain([end.lead]);
        for (late, lead) in self.late[link][label].iter_mut().zip(leads) {
            change(late, start + lead);
        }
        start + end.lead
    }

    /// Counts the RM cells that leave their VC within a stage: how many there were, how many have passed its `i`th
    /// transparent port, and how many have left.
    pub(super) fn counted(&self, link: LinkIndex, label: Label) -> Leaving<'_> {
        match (self.leaving.get(link), self.late.get(link)) {
            (Some(all), Some(late)) => Leaving { all: all[label], late: &late[label] },
            _ => Leaving { all: 0, late: &[] },
        }
    }
}

/// The count of RM cells that leave their VC within a stage.
pub(super) struct Leaving<'a> {
    pub(super) all: u64,
    late: &'a [u64],
}

impl Leaving<'_> {
    /// Returns how many have passed the stage's `i`th transparent port; none of those behind the end of their loop.
    pub(super) fn passed(&self, i: usize) -> u64 {
        if i + 1 < self.late.len() { self.all - self.late[i] } else { 0 }
    }

    /// Returns how many have left.
    pub(super) fn left(&self) -> u64 {
        self.late.last().map_or(0, |late| self.all - late)
    }
}
